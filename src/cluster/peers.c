/* peers.c: a map from address to channel. */
#include "cluster/peers.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/hashmap.h"
#include "base/memory.h"

struct Peers {
    Transport *transport;
    pthread_mutex_t mutex; /* guards channels */
    StrMap channels;
};

Peers *peers_new(Transport *transport) {
    Peers *p = xcalloc(1, sizeof *p);
    p->transport = transport;
    pthread_mutex_init(&p->mutex, NULL);
    return p;
}

void peers_free(Peers *p) {
    if (!p) return;
    size_t at = 0;
    void *value;
    while (strmap_next(&p->channels, &at, NULL, &value)) channel_unref(value);
    strmap_clear(&p->channels);
    pthread_mutex_destroy(&p->mutex);
    free(p);
}

Channel *peers_channel(Peers *p, Str address) {
    pthread_mutex_lock(&p->mutex);
    Channel *c = strmap_get(&p->channels, address);
    if (!c) {
        c = transport_channel(p->transport, address);
        strmap_put(&p->channels, channel_address(c), c);
    }
    pthread_mutex_unlock(&p->mutex);
    return c;
}
