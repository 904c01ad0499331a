/* step_sequence.c: a map from graph keys to the id of the next step, under a lock. */
#include "cluster/step_sequence.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/hashmap.h"
#include "base/memory.h"
#include "cluster/random_id.h"

struct StepSequences {
    pthread_mutex_t mutex; /* guards all below */
    IntMap next;           /* graph key -> next step id; absent: not known */
};

StepSequences *step_sequences_new(void) {
    StepSequences *s = xcalloc(1, sizeof *s);
    pthread_mutex_init(&s->mutex, NULL);
    return s;
}

void step_sequences_free(StepSequences *s) {
    if (!s) return;
    intmap_clear(&s->next);
    pthread_mutex_destroy(&s->mutex);
    free(s);
}

static int64_t get_locked(StepSequences *s, int64_t graph_key) {
    return (int64_t)(intptr_t)intmap_get(&s->next, (uint64_t)graph_key);
}

static void put_locked(StepSequences *s, int64_t graph_key, int64_t id) {
    if (id)
        intmap_put(&s->next, (uint64_t)graph_key, (void *)(intptr_t)id);
    else
        intmap_remove(&s->next, (uint64_t)graph_key);
}

int64_t step_sequence_next(StepSequences *s, int64_t graph_key) {
    pthread_mutex_lock(&s->mutex);
    int64_t id = get_locked(s, graph_key);
    pthread_mutex_unlock(&s->mutex);
    return id;
}

int64_t step_sequence_lead(StepSequences *s, int64_t graph_key) {
    pthread_mutex_lock(&s->mutex);
    int64_t id = get_locked(s, graph_key);
    if (!id) put_locked(s, graph_key, id = random_step_id());
    pthread_mutex_unlock(&s->mutex);
    return id;
}

void step_sequence_set(StepSequences *s, int64_t graph_key, int64_t next_step_id) {
    pthread_mutex_lock(&s->mutex);
    put_locked(s, graph_key, next_step_id);
    pthread_mutex_unlock(&s->mutex);
}

void step_sequence_retire(StepSequences *s, int64_t graph_key, int64_t step_id) {
    pthread_mutex_lock(&s->mutex);
    /* Another id means that two steps of one key overlapped: nobody knows the next. */
    int64_t next = get_locked(s, graph_key) == step_id ? (int64_t)(((uint64_t)step_id + 1) & ((1ull << 57) - 1)) : 0;
    put_locked(s, graph_key, next);
    pthread_mutex_unlock(&s->mutex);
}

void step_sequence_forget(StepSequences *s, int64_t graph_key) {
    step_sequence_set(s, graph_key, 0);
}
