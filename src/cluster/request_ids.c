/* request_ids.c: a ring of ids, and a hash table of their places in it. Both have their full size from the first id on, so that a task does not grow for hours while they fill. */
#include "cluster/request_ids.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/memory.h"

struct RequestIds {
    pthread_mutex_t mutex; /* guards all below */
    int64_t *ring;         /* NULL until the first id; 0: not used yet */
    uint32_t *table;       /* places in the ring + 1 by hash of their ids, with linear probing; 0: free */
    uint32_t capacity, next;
    int bits; /* the table has 1 << bits slots, at least twice as many as the ring */
};

RequestIds *request_ids_new(int capacity) {
    RequestIds *r = xcalloc(1, sizeof *r);
    pthread_mutex_init(&r->mutex, NULL);
    r->capacity = (uint32_t)capacity;
    r->bits = 1;
    while (1u << r->bits < 2 * r->capacity) r->bits++;
    return r;
}

void request_ids_free(RequestIds *r) {
    if (!r) return;
    pthread_mutex_destroy(&r->mutex);
    free(r->ring);
    free(r->table);
    free(r);
}

static uint32_t slot_of(const RequestIds *r, int64_t id) {
    return (uint32_t)((uint64_t)id * 0x9e3779b97f4a7c15ull >> (64 - r->bits));
}

static uint32_t after(const RequestIds *r, uint32_t slot) {
    return (slot + 1) & ((1u << r->bits) - 1);
}

/* The slot of an id, or the free one where it would go. */
static uint32_t find(const RequestIds *r, int64_t id) {
    uint32_t slot = slot_of(r, id);
    while (r->table[slot] && r->ring[r->table[slot] - 1] != id) slot = after(r, slot);
    return slot;
}

/* Frees the slot of an id, and moves up those behind it that would not be found any more. */
static void forget(RequestIds *r, int64_t id) {
    uint32_t hole = find(r, id);
    r->table[hole] = 0;
    for (uint32_t slot = after(r, hole); r->table[slot]; slot = after(r, slot)) {
        uint32_t home = slot_of(r, r->ring[r->table[slot] - 1]), mask = (1u << r->bits) - 1;
        if (((slot - home) & mask) < ((slot - hole) & mask)) continue; /* its way from home does not cross the hole */
        r->table[hole] = r->table[slot];
        r->table[slot] = 0;
        hole = slot;
    }
}

bool request_ids_add(RequestIds *r, int64_t id) {
    if (id == 0) return true;
    pthread_mutex_lock(&r->mutex);
    if (!r->ring) {
        r->ring = xcalloc(r->capacity, sizeof *r->ring);
        r->table = xcalloc((size_t)1 << r->bits, sizeof *r->table);
    }
    bool is_fresh = !r->table[find(r, id)];
    if (is_fresh) {
        if (r->ring[r->next]) forget(r, r->ring[r->next]);
        uint32_t slot = find(r, id);
        r->ring[r->next] = id;
        r->table[slot] = r->next + 1;
        r->next = (r->next + 1) % r->capacity;
    }
    pthread_mutex_unlock(&r->mutex);
    return is_fresh;
}
