/* request_ids.c: a ring of ids and a set of those in it. */
#include "cluster/request_ids.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/hashmap.h"
#include "base/memory.h"

struct RequestIds {
    pthread_mutex_t mutex; /* guards all below */
    IntMap set;
    int64_t *ring;
    int capacity, next;
};

RequestIds *request_ids_new(int capacity) {
    RequestIds *r = xcalloc(1, sizeof *r);
    pthread_mutex_init(&r->mutex, NULL);
    r->capacity = capacity;
    return r;
}

void request_ids_free(RequestIds *r) {
    if (!r) return;
    pthread_mutex_destroy(&r->mutex);
    intmap_clear(&r->set);
    free(r->ring);
    free(r);
}

bool request_ids_add(RequestIds *r, int64_t id) {
    if (id == 0) return true;
    pthread_mutex_lock(&r->mutex);
    bool fresh = !intmap_get(&r->set, (uint64_t)id);
    if (fresh) {
        if (!r->ring) r->ring = xcalloc((size_t)r->capacity, sizeof *r->ring);
        int64_t oldest = r->ring[r->next];
        if (oldest) intmap_remove(&r->set, (uint64_t)oldest);
        r->ring[r->next] = id;
        r->next = (r->next + 1) % r->capacity;
        intmap_put(&r->set, (uint64_t)id, r);
    }
    pthread_mutex_unlock(&r->mutex);
    return fresh;
}
