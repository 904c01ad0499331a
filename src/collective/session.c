/* session.c: two maps under a lock. */
#include "collective/session.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/hashmap.h"
#include "base/memory.h"

struct CollectiveSession {
    CollectiveLink link;
    pthread_mutex_t mutex; /* guards all below */
    IntMap groups;         /* by key */
    IntMap instances;      /* KnownInstance by both keys */
};

CollectiveSession *collective_session_new(const CollectiveLink *link) {
    CollectiveSession *s = xcalloc(1, sizeof *s);
    pthread_mutex_init(&s->mutex, NULL);
    s->link = *link;
    return s;
}

void collective_session_free(CollectiveSession *s) {
    if (!s) return;
    size_t at = 0;
    void *value;
    while (intmap_next(&s->groups, &at, NULL, &value)) group_unref(value);
    at = 0;
    while (intmap_next(&s->instances, &at, NULL, &value)) free(value);
    intmap_clear(&s->groups);
    intmap_clear(&s->instances);
    pthread_mutex_destroy(&s->mutex);
    free(s);
}

const CollectiveLink *collective_session_link(const CollectiveSession *s) {
    return &s->link;
}

Group *collective_session_group(CollectiveSession *s, int32_t key) {
    pthread_mutex_lock(&s->mutex);
    Group *g = intmap_get(&s->groups, (uint32_t)key);
    if (g) group_ref(g);
    pthread_mutex_unlock(&s->mutex);
    return g;
}

void collective_session_set_group(CollectiveSession *s, Group *g) {
    pthread_mutex_lock(&s->mutex);
    Group *old = intmap_put(&s->groups, (uint32_t)g->key, group_ref(g));
    pthread_mutex_unlock(&s->mutex);
    group_unref(old);
}

static uint64_t both_keys(int32_t group_key, int32_t instance_key) {
    return (uint64_t)(uint32_t)group_key << 32 | (uint32_t)instance_key;
}

bool collective_session_instance(CollectiveSession *s, int32_t group_key, int32_t instance_key, KnownInstance *out) {
    pthread_mutex_lock(&s->mutex);
    const KnownInstance *known = intmap_get(&s->instances, both_keys(group_key, instance_key));
    if (known) *out = *known;
    pthread_mutex_unlock(&s->mutex);
    return known != NULL;
}

void collective_session_set_instance(CollectiveSession *s, int32_t group_key, int32_t instance_key, const KnownInstance *known) {
    KnownInstance *copy = xcalloc(1, sizeof *copy);
    *copy = *known;
    pthread_mutex_lock(&s->mutex);
    KnownInstance *old = intmap_put(&s->instances, both_keys(group_key, instance_key), copy);
    pthread_mutex_unlock(&s->mutex);
    free(old);
}

void collective_session_forget(CollectiveSession *s, int32_t group_key) {
    pthread_mutex_lock(&s->mutex);
    Group *g = intmap_remove(&s->groups, (uint32_t)group_key);
    IntMap kept = {0};
    size_t at = 0;
    uint64_t key;
    void *value;
    while (intmap_next(&s->instances, &at, &key, &value)) {
        if (key >> 32 == (uint32_t)group_key)
            free(value);
        else
            intmap_put(&kept, key, value);
    }
    intmap_clear(&s->instances);
    s->instances = kept;
    pthread_mutex_unlock(&s->mutex);
    group_unref(g);
}
