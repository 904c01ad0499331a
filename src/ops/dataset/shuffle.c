/* shuffle.c: ShuffleDataset, ShuffleAndRepeatDataset.

   The order for given seeds is TensorFlow's: a ring of buffer_size elements in which each pass over the input is a
   slice; the next element is drawn from the oldest slice. Every pass has seeds of its own. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/rng.h"
#include "ops/dataset/dataset.h"
#include "ops/dataset/seed_generator.h"
#include "ops/op_list.h"

const OpDef dataset_shuffle_ops[] = {
    {"ShuffleDataset", "input_dataset: variant, buffer_size: int64, seed: int64, seed2: int64 -> handle: variant",
     "reshuffle_each_iteration: bool = true; output_types: list(type) >= 1; output_shapes: list(shape) >= 1; "
     "metadata: string = ''",
     0},
    {"ShuffleDatasetV2", "input_dataset: variant, buffer_size: int64, seed_generator: resource -> handle: variant",
     "output_types: list(type) >= 1; output_shapes: list(shape) >= 1; metadata: string = ''", OP_STATEFUL},
    {"ShuffleDatasetV3",
     "input_dataset: variant, buffer_size: int64, seed: int64, seed2: int64, seed_generator: resource -> handle: "
     "variant",
     "reshuffle_each_iteration: bool = true; output_types: list(type) >= 1; output_shapes: list(shape) >= 1; "
     "metadata: string = ''",
     OP_STATEFUL},
    {"ShuffleAndRepeatDataset",
     "input_dataset: variant, buffer_size: int64, seed: int64, seed2: int64, count: int64 -> handle: variant",
     "output_types: list(type) >= 1; output_shapes: list(shape) >= 1; reshuffle_each_iteration: bool = true; "
     "metadata: string = ''",
     0},
    {"ShuffleAndRepeatDatasetV2",
     "input_dataset: variant, buffer_size: int64, seed: int64, seed2: int64, count: int64, seed_generator: resource "
     "-> handle: variant",
     "reshuffle_each_iteration: bool = true; output_types: list(type) >= 1; output_shapes: list(shape) >= 1; "
     "metadata: string = ''",
     OP_STATEFUL},
    {0},
};

/* ---- The dataset ---- */

typedef struct ShuffleDataset {
    Dataset base;
    int64_t buffer_size, count; /* count: passes, -1 forever */
    SeedGenerator *seeds;       /* a reference */
} ShuffleDataset;

/* The elements [start, end) of one pass, by their number modulo buffer_size. */
typedef struct Slice {
    int64_t start, end;
} Slice;

enum { MAX_PASSES = 3 }; /* in the buffer at a time */

typedef struct ShuffleIterator {
    DatasetIterator base;
    Tensor ***ring;
    size_t ring_capacity;
    int64_t ring_used; /* slots of the ring that exist */
    Slice slices[MAX_PASSES + 2];
    int slice_count;
    int64_t element_count, pass;
    bool produced;
    uint64_t seed, seed2;
    PhiloxStream stream;
    int64_t drawn;
    bool by_place; /* all of the input is in the buffer */
} ShuffleIterator;

static void reset_stream(ShuffleIterator *s) {
    Philox p = philox_from_seeds(s->seed, s->seed2);
    philox_skip(&p, (uint64_t)s->drawn / 4);
    s->stream = philox_stream(p);
    for (int64_t i = 0; i < s->drawn % 4; i++) philox_stream_next(&s->stream);
}

static Error *start_shuffle(DatasetIterator *it, IteratorContext *c) {
    ShuffleIterator *s = (ShuffleIterator *)it;
    SeedGenerator *seeds = ((ShuffleDataset *)it->dataset)->seeds;
    s->by_place = c->by_place;
    if (s->by_place) {
        SeedState chosen = seeds_state(seeds);
        s->seed = (uint64_t)chosen.seed, s->seed2 = (uint64_t)chosen.seed2;
    } else {
        seeds_draw(seeds, &s->seed, &s->seed2);
    }
    reset_stream(s);
    return NULL;
}

static void clear_ring(ShuffleIterator *s) {
    for (int64_t i = 0; i < s->ring_used; i++) tuple_free(s->ring[i], s->base.dataset->component_count);
    s->ring_used = 0;
}

static void stop_shuffle(DatasetIterator *it) {
    ShuffleIterator *s = (ShuffleIterator *)it;
    clear_ring(s);
    free(s->ring);
}

/* The ring grows as it is first filled: few inputs are as large as the buffer that is asked for. */
static Tensor ***ring_at(ShuffleIterator *s, int64_t number) {
    int64_t i = s->by_place ? number : number % ((ShuffleDataset *)s->base.dataset)->buffer_size;
    if (i >= s->ring_used) {
        s->ring = vec_reserve(s->ring, &s->ring_capacity, (size_t)i + 1, sizeof *s->ring);
        while (s->ring_used <= i) s->ring[s->ring_used++] = NULL;
    }
    return &s->ring[i];
}

static Error *start_pass(ShuffleIterator *s, IteratorContext *c) {
    int64_t n = s->slice_count ? s->slices[s->slice_count - 1].end : 0;
    Error *err = iterator_start_input(&s->base, c);
    if (err) return err;
    s->slices[s->slice_count++] = (Slice){n, n};
    s->pass++;
    return NULL;
}

static bool wants_more(const ShuffleIterator *s) {
    const ShuffleDataset *d = (const ShuffleDataset *)s->base.dataset;
    if (!s->base.input && d->count >= 0 && s->pass >= d->count) return false;
    if (s->slice_count > MAX_PASSES && s->element_count > 0) return false;
    return s->by_place || s->element_count < d->buffer_size;
}

static void drop_empty_slices(ShuffleIterator *s) {
    while (s->slice_count && s->slices[0].start == s->slices[0].end) {
        memmove(s->slices, s->slices + 1, (size_t)--s->slice_count * sizeof(Slice));
        s->drawn = 0;
        seeds_draw(((ShuffleDataset *)s->base.dataset)->seeds, &s->seed, &s->seed2);
        reset_stream(s);
    }
}

static Error *fill(ShuffleIterator *s, IteratorContext *c) {
    DatasetIterator *it = &s->base;
    int n = it->dataset->component_count;
    while (wants_more(s)) {
        Error *err = NULL;
        if (!it->input) {
            if (s->slice_count > MAX_PASSES) drop_empty_slices(s); /* passes without elements */
            err = start_pass(s, c);
        }
        if (err) return err;
        Tensor **element = tuple_new(n);
        bool end = false;
        err = iterator_next(it->input, c, element, &end);
        if (!err && !end) {
            Slice *last = &s->slices[s->slice_count - 1];
            *ring_at(s, last->end++) = element;
            s->element_count++;
            s->produced = true;
            continue;
        }
        tuple_free(element, n);
        if (err) return err;
        iterator_free(it->input);
        it->input = NULL;
        /* An empty input repeated forever would never give anything. */
        if (!s->produced && ((ShuffleDataset *)it->dataset)->count < 0) return NULL;
    }
    return NULL;
}

static Error *next_shuffled(DatasetIterator *it, IteratorContext *c, Tensor **out, bool *end) {
    ShuffleIterator *s = (ShuffleIterator *)it;
    Error *err = fill(s, c);
    *end = s->element_count == 0;
    if (err || *end) return err;
    drop_empty_slices(s);
    Slice *first = &s->slices[0];
    s->drawn++;
    int64_t offset = (int64_t)philox_stream_next(&s->stream) % (first->end - first->start);
    Tensor ***at = ring_at(s, first->start + offset), ***start = ring_at(s, first->start);
    Tensor **element = *at;
    *at = *start;
    *start = NULL;
    first->start++;
    s->element_count--;
    tuple_move(out, element, it->dataset->component_count);
    free(element);
    return NULL;
}

static Error *save_shuffle(DatasetIterator *it, IteratorState *w) {
    ShuffleIterator *s = (ShuffleIterator *)it;
    SeedState g = seeds_state(((ShuffleDataset *)it->dataset)->seeds);
    int64_t numbers[] = {g.seed, g.seed2, g.drawn, (int64_t)s->seed, (int64_t)s->seed2,
                         s->drawn,         s->pass,           s->produced, s->slice_count};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) state_put_int(w, numbers[i]);
    Error *err = NULL;
    for (int i = 0; i < s->slice_count; i++) {
        state_put_int(w, s->slices[i].start);
        state_put_int(w, s->slices[i].end);
        for (int64_t j = s->slices[i].start; !err && j < s->slices[i].end; j++)
            err = state_put_element(w, *ring_at(s, j), it->dataset->component_count);
    }
    return err ? err : iterator_save_input(it, w);
}

static Error *restore_slices(ShuffleIterator *s, IteratorState *r, int64_t count) {
    const Dataset *d = s->base.dataset;
    Error *err = NULL;
    for (int64_t i = 0; !err && i < count; i++) {
        Slice slice = {0};
        int64_t room = ((const ShuffleDataset *)d)->buffer_size - s->element_count;
        err = state_get_range(r, 0, INT64_MAX, &slice.start);
        if (!err)
            err = state_get_range(r, slice.start, room < INT64_MAX - slice.start ? slice.start + room : INT64_MAX,
                                  &slice.end);
        if (err) return err;
        for (int64_t j = slice.start; !err && j < slice.end; j++) {
            Tensor **element = tuple_new(d->component_count);
            err = state_get_element(r, d->types, d->component_count, element);
            Tensor ***at = ring_at(s, j);
            tuple_free(*at, d->component_count);
            *at = element;
            s->element_count++;
        }
        s->slices[s->slice_count++] = slice;
    }
    return err;
}

static Error *restore_shuffle(DatasetIterator *it, IteratorContext *c, IteratorState *r) {
    ShuffleIterator *s = (ShuffleIterator *)it;
    int64_t n[9] = {0};
    Error *err = NULL;
    for (int i = 0; !err && i < 9; i++) err = state_get_int(r, &n[i]);
    if (!err && (n[2] < 0 || n[5] < 0 || n[6] < 0 || n[8] < 0 || n[8] > MAX_PASSES + 1))
        err = error_new(CODE_DATA_LOSS, "The saved state of a shuffle is damaged");
    if (err) return err;
    seeds_restore(((ShuffleDataset *)it->dataset)->seeds, (SeedState){n[0], n[1], n[2]});
    s->seed = (uint64_t)n[3];
    s->seed2 = (uint64_t)n[4];
    s->drawn = n[5];
    s->pass = n[6];
    s->produced = n[7];
    reset_stream(s);
    err = restore_slices(s, r, n[8]);
    return err ? err : iterator_restore_input(it, c, r);
}

static int64_t count_shuffled(const Dataset *d) {
    int64_t n = dataset_cardinality(d->inputs[0]), rounds = ((const ShuffleDataset *)d)->count, all;
    if (rounds < 0 || n == CARDINALITY_INFINITE) return CARDINALITY_INFINITE;
    if (n == CARDINALITY_UNKNOWN) return n;
    return __builtin_mul_overflow(n, rounds, &all) ? CARDINALITY_INFINITE : all;
}

static void destroy_shuffle(Dataset *d) {
    seeds_unref(((ShuffleDataset *)d)->seeds);
}

static const DatasetKind shuffle_kind = {.name = "Shuffle",
                                         .size = sizeof(ShuffleDataset),
                                         .iterator_size = sizeof(ShuffleIterator),
                                         .destroy = destroy_shuffle,
                                         .cardinality = count_shuffled,
                                         .start = start_shuffle,
                                         .next = next_shuffled,
                                         .save = save_shuffle,
                                         .restore = restore_shuffle,
                                         .stop = stop_shuffle};

/* ---- Kernels ---- */

/* Inputs: dataset, buffer_size, then per op: seed, seed2, count, seed_generator. */
static Error *make_shuffle(KernelContext *k, bool has_seeds, bool has_count, bool has_generator) {
    Dataset *in = NULL;
    int64_t size = 0, seed = 0, seed2 = 0, count = 1;
    bool reshuffle = true;
    int at = 2;
    SeedGenerator *seeds = NULL;
    Error *err = kernel_dataset(k, 0, &in);
    if (!err) err = kernel_int64(k, 1, "buffer_size", &size);
    if (!err && size <= 0 && size != -2 && size != -1)
        err = error_invalid("buffer_size must be greater than zero or UNKNOWN_CARDINALITY");
    if (!err && has_seeds) err = kernel_int64(k, at++, "seed", &seed);
    if (!err && has_seeds) err = kernel_int64(k, at++, "seed2", &seed2);
    if (!err && has_count) err = kernel_int64(k, at++, "count", &count);
    if (!err && (count < -1 || count == 0)) err = error_invalid("count must be greater than zero or equal to -1.");
    if (!err && has_seeds) err = node_attr_bool(k->node, "reshuffle_each_iteration", &reshuffle);
    if (!err && has_generator) err = kernel_seeds(k, at, &seeds);
    if (err) return err;
    ShuffleDataset *d = (ShuffleDataset *)dataset_like(&shuffle_kind, in);
    d->buffer_size = size < 0 ? INT64_MAX : size;
    d->count = count;
    d->seeds = seeds ? seeds : seeds_new(seed, seed2, !reshuffle);
    kernel_set_dataset(k, 0, &d->base);
    return NULL;
}

static Error *run_shuffle(KernelContext *k) {
    return make_shuffle(k, true, false, false);
}

static Error *run_shuffle_v2(KernelContext *k) {
    return make_shuffle(k, false, false, true);
}

static Error *run_shuffle_v3(KernelContext *k) {
    return make_shuffle(k, true, false, true);
}

static Error *run_shuffle_and_repeat(KernelContext *k) {
    return make_shuffle(k, true, true, false);
}

static Error *run_shuffle_and_repeat_v2(KernelContext *k) {
    return make_shuffle(k, true, true, true);
}

const KernelDef dataset_shuffle_cpu[] = {
    {"ShuffleDataset", .run = run_shuffle},
    {"ShuffleDatasetV2", .run = run_shuffle_v2},
    {"ShuffleDatasetV3", .run = run_shuffle_v3},
    {"ShuffleAndRepeatDataset", .run = run_shuffle_and_repeat},
    {"ShuffleAndRepeatDatasetV2", .run = run_shuffle_and_repeat_v2},
    {0},
};
