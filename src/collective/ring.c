/* ring.c: reduce, gather and reduce-scatter around a ring: each member receives from the one before it and sends to the one after it.

   The tensor is cut in n chunks for n members. In the first pass chunk c starts at rank c and is merged at every member it comes to, until rank c-1 has
   merged all; in the second pass it goes around again from there as it is. */
#include <stdlib.h>

#include "base/memory.h"
#include "collective/algorithm.h"

enum {
    ALIGN_BYTES = 64,
    MAX_CHUNK_BYTES = 4 << 20, /* rings are added until chunks are no larger */
    DEFAULT_SUBDIVS_PER_DEVICE = 2,
};

/* One ring: who stands where in it. */
typedef struct Ring {
    int *order; /* place -> rank */
    int size, place;
} Ring;

/* Each task's devices rotated by the offset, those of a negative offset in reverse. */
static Ring ring_of(const Group *g, int rank, int64_t offset) {
    Ring r = {.order = xcalloc((size_t)g->size, sizeof(int)), .size = g->size};
    int place = 0;
    for (int first = 0; first < g->size;) {
        int count = 1;
        while (first + count < g->size && str_is(str_of(g->members[first].task), g->members[first + count].task)) count++;
        for (int i = 0; i < count; i++, place++) {
            int shift = (int)(offset % count), at = (i + (shift < 0 ? -shift : shift)) % count;
            r.order[place] = first + (offset < 0 ? count - 1 - at : at);
            if (r.order[place] == rank) r.place = place;
        }
        first += count;
    }
    return r;
}

static int before(const Ring *r) {
    return (r->place + r->size - 1) % r->size;
}

typedef struct Chunks {
    int64_t total, size; /* elements of the tensor and of a chunk; the last ones may be short or empty */
} Chunks;

static int64_t chunk_at(const Chunks *c, int i) {
    int64_t at = c->size * i;
    return at < c->total ? at : c->total;
}

static int64_t chunk_count(const Chunks *c, int i) {
    return chunk_at(c, i + 1) - chunk_at(c, i);
}

/* Chunks end at a multiple of 64 bytes, a whole 64 further where they would anyway: as TensorFlow cuts. */
static Chunks aligned_chunks(int64_t total, int count, size_t element_bytes) {
    int64_t size = (total + count - 1) / count;
    if (element_bytes < ALIGN_BYTES) size += (ALIGN_BYTES - (int64_t)((size_t)size * element_bytes % ALIGN_BYTES)) / (int64_t)element_bytes;
    return (Chunks){total, size};
}

/* "group:instance:frame:iteration:pass:field:place of the sender" */
static char *ring_key(const char *exec_key, int pass, int field, int sender) {
    return xasprintf("%s:%d:%d:%d", exec_key, pass, field, sender);
}

static void reduce_around(Moves *m, const Ring *r, const Chunks *chunks, const char *exec_key, int subdiv, int subdiv_count) {
    int lane = moves_lane(m), n = r->size, from = before(r), from_rank = r->order[from];
    for (int step = 0; step < n; step++) {
        int field = (r->place + n - step) % n * subdiv_count + subdiv;
        int64_t at = chunk_at(chunks, field), count = chunk_count(chunks, field);
        if (!count) continue;
        bool is_last = step == n - 1;
        if (step == 0)
            moves_send_input(m, lane, ring_key(exec_key, 0, field, r->place), at, count);
        else
            moves_merge(m, lane, from_rank, ring_key(exec_key, 0, field, from), at, count, is_last);
        if (step > 0) moves_send_output(m, lane, ring_key(exec_key, is_last ? 1 : 0, field, r->place), at, count);
    }
    for (int step = 0; step < n - 1; step++) {
        int field = (r->place + n - step) % n * subdiv_count + subdiv;
        int64_t at = chunk_at(chunks, field), count = chunk_count(chunks, field);
        if (!count) continue;
        moves_receive(m, lane, from_rank, ring_key(exec_key, 1, field, from), at, count);
        if (step < n - 2) moves_send_output(m, lane, ring_key(exec_key, 1, field, r->place), at, count);
    }
}

/* The offsets of rings that nobody gave. */
static Error *make_offsets(const MovesContext *c, int64_t max_per_device, int64_t **offsets, int *count) {
    int per_task = c->group->size / c->group->task_count, rings = 1;
    int64_t most = (max_per_device > 0 ? max_per_device : DEFAULT_SUBDIVS_PER_DEVICE) * per_task;
    size_t bytes = tensor_bytes(c->out);
    if (max_per_device != -1 && !c->out->count) return error_internal("shape in CollectiveParams should be non-empty");
    if (max_per_device != -1)
        while (bytes / (size_t)c->group->size / (size_t)rings > MAX_CHUNK_BYTES && rings < most) rings++;
    int stride = per_task / rings > 0 ? per_task / rings : 1;
    *count = rings;
    *offsets = xcalloc((size_t)rings, sizeof **offsets);
    for (int i = 0; i < rings; i++) (*offsets)[i] = i % 2 ? -stride * i : stride * i;
    return NULL;
}

Error *ring_reduce(Moves *m, const MovesContext *c, const char *exec_key, const RingSubdivs *subdivs) {
    int64_t *made = NULL;
    const int64_t *offsets = subdivs->offsets;
    int rings = subdivs->count;
    if (!rings) {
        Error *err = make_offsets(c, subdivs->max_per_device, &made, &rings);
        if (err) return err;
        offsets = made;
    }
    Chunks chunks = aligned_chunks(c->out->count, c->group->size * rings, dtype_size(c->out->dtype));
    for (int i = 0; i < rings; i++) {
        Ring r = ring_of(c->group, c->rank, offsets[i]);
        if (c->group->size > 1) reduce_around(m, &r, &chunks, exec_key, i, rings);
        free(r.order);
    }
    if (c->group->size == 1) moves_copy_input(m, moves_lane(m), 0, 0, c->out->count);
    free(made);
    return NULL;
}

void ring_gather(Moves *m, const MovesContext *c, const char *exec_key) {
    int lane = moves_lane(m), n = c->group->size, rank = c->rank, from = (rank + n - 1) % n;
    int64_t count = c->in->count;
    if (!count) return;
    moves_copy_input(m, lane, 0, rank * count, count);
    if (n > 1) moves_send_input(m, lane, ring_key(exec_key, 0, rank, rank), 0, count);
    for (int step = 1; step < n; step++) {
        int chunk = (rank + n - step) % n;
        moves_receive(m, lane, from, ring_key(exec_key, 0, chunk, from), chunk * count, count);
        if (step < n - 1) moves_send_output(m, lane, ring_key(exec_key, 0, chunk, rank), chunk * count, count);
    }
}

void ring_reduce_scatter(Moves *m, const MovesContext *c, const char *exec_key) {
    int lane = moves_lane(m), n = c->group->size, rank = c->rank, from = (rank + n - 1) % n;
    int64_t count = c->out->count / n;
    if (!count) return;
    if (n == 1) moves_copy_input(m, lane, 0, 0, count);
    for (int step = 0; n > 1 && step < n; step++) {
        int chunk = (rank + 2 * n - 1 - step) % n;
        if (step == 0)
            moves_send_input(m, lane, ring_key(exec_key, 0, chunk, rank), chunk * count, count);
        else
            moves_merge(m, lane, from, ring_key(exec_key, 0, chunk, from), chunk * count, count, step == n - 1);
        if (step > 0 && step < n - 1) moves_send_output(m, lane, ring_key(exec_key, 0, chunk, rank), chunk * count, count);
    }
}
