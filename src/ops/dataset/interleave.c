/* interleave.c: flat_map, interleave and its parallel forms: elements of datasets that a function makes of the input's
   elements.

   A cycle of slots, each walking one dataset, gives block_length elements in turn. The parallel forms keep that order;
   there a thread runs ahead in each slot. */
#include <stdlib.h>

#include "base/memory.h"
#include "ops/dataset/iterator_path.h"
#include "ops/dataset/prefetcher.h"
#include "ops/op_list.h"

const OpDef dataset_interleave_ops[] = {
    {"FlatMapDataset", "input_dataset: variant, other_arguments: Targuments -> handle: variant",
     "f: func; Targuments: list(type) >= 0; output_types: list(type) >= 1; output_shapes: list(shape) >= 1; "
     "metadata: string = ''",
     0},
    {"InterleaveDataset",
     "input_dataset: variant, other_arguments: Targuments, cycle_length: int64, block_length: int64 -> handle: variant",
     "f: func; Targuments: list(type) >= 0; output_types: list(type) >= 1; output_shapes: list(shape) >= 1; "
     "metadata: string = ''",
     0},
    {"ParallelInterleaveDataset",
     "input_dataset: variant, other_arguments: Targuments, cycle_length: int64, block_length: int64, sloppy: bool, "
     "buffer_output_elements: int64, prefetch_input_elements: int64 -> handle: variant",
     "f: func; Targuments: list(type) >= 0; output_types: list(type) >= 1; output_shapes: list(shape) >= 1; "
     "metadata: string = ''",
     0},
    {"ParallelInterleaveDatasetV2",
     "input_dataset: variant, other_arguments: Targuments, cycle_length: int64, block_length: int64, "
     "num_parallel_calls: int64 -> handle: variant",
     "f: func; Targuments: list(type) >= 0; output_types: list(type) >= 1; output_shapes: list(shape) >= 1; sloppy: "
     "bool = false; metadata: string = ''",
     0},
    {"ParallelInterleaveDatasetV3",
     "input_dataset: variant, other_arguments: Targuments, cycle_length: int64, block_length: int64, "
     "num_parallel_calls: int64 -> handle: variant",
     "f: func; deterministic: string = 'default'; Targuments: list(type) >= 0; output_types: list(type) >= 1; "
     "output_shapes: list(shape) >= 1; metadata: string = ''",
     0},
    {"ParallelInterleaveDatasetV4",
     "input_dataset: variant, other_arguments: Targuments, cycle_length: int64, block_length: int64, "
     "buffer_output_elements: int64, prefetch_input_elements: int64, num_parallel_calls: int64 -> handle: variant",
     "f: func; deterministic: string = 'default'; Targuments: list(type) >= 0; output_types: list(type) >= 1; "
     "output_shapes: list(shape) >= 1; metadata: string = ''",
     0},
    {"LegacyParallelInterleaveDatasetV2",
     "input_dataset: variant, other_arguments: Targuments, cycle_length: int64, block_length: int64, "
     "buffer_output_elements: int64, prefetch_input_elements: int64 -> handle: variant",
     "f: func; deterministic: string = 'default'; Targuments: list(type) >= 0; output_types: list(type) >= 1; "
     "output_shapes: list(shape) >= 1; metadata: string = ''",
     0},
    {"ExperimentalParallelInterleaveDataset",
     "input_dataset: variant, other_arguments: Targuments, cycle_length: int64, block_length: int64, sloppy: bool, "
     "buffer_output_elements: int64, prefetch_input_elements: int64 -> handle: variant",
     "f: func; Targuments: list(type) >= 0; output_types: list(type) >= 1; output_shapes: list(shape) >= 1", 0},
    {0},
};

typedef struct InterleaveDataset {
    Dataset base;
    int64_t cycle, block;
    int64_t ahead; /* elements each slot runs ahead; 0: none */
} InterleaveDataset;

typedef struct Slot {
    Tensor **args;       /* what its dataset was made of; NULL: the slot is empty */
    DatasetIterator *it; /* one of these two */
    Prefetcher *prefetcher;
} Slot;

typedef struct InterleaveIterator {
    DatasetIterator base;
    Slot *slots;
    int64_t slot_count; /* made so far: a cycle may be longer than the input */
    size_t capacity;
    int64_t at, given; /* the slot, and how many of its block were given */
    int64_t open;      /* slots that are not empty */
    bool input_ended;
} InterleaveIterator;

static void slot_clear(InterleaveIterator *i, Slot *s) {
    prefetcher_free(s->prefetcher);
    iterator_free(s->it);
    tuple_free(s->args, i->base.dataset->inputs[0]->component_count);
    *s = (Slot){0};
}

static void stop_interleave(DatasetIterator *it) {
    InterleaveIterator *i = (InterleaveIterator *)it;
    for (int64_t j = 0; j < i->slot_count; j++) slot_clear(i, &i->slots[j]);
    free(i->slots);
}

static Slot *slot_at(InterleaveIterator *i, int64_t index) {
    if (index >= i->slot_count) {
        i->slots = vec_reserve(i->slots, &i->capacity, (size_t)index + 1, sizeof *i->slots);
        while (i->slot_count <= index) i->slots[i->slot_count++] = (Slot){0};
    }
    return &i->slots[index];
}

static Error *check_same_types(const Dataset *d, const Dataset *made) {
    bool same = d->component_count == made->component_count;
    for (int i = 0; same && i < d->component_count; i++) same = d->types[i] == made->types[i];
    return same ? NULL
                : error_invalid("The function of a %sDataset returned a dataset of other types than output_types says",
                                d->kind->name);
}

/* Makes the dataset of s->args and begins to walk it. */
static Error *open_slot(InterleaveIterator *i, IteratorContext *c, Slot *s) {
    Dataset *d = i->base.dataset, *made = NULL;
    Tensor *t = NULL;
    Error *err = dataset_call(d->closure, c, s->args, d->inputs[0]->component_count, NULL, 1, &t);
    err = iterator_function_error(&i->base, err);
    if (!err) err = tensor_dataset(t, &made);
    if (!err) err = check_same_types(d, made);
    if (!err) err = dataset_iterate(made, c, &s->it);
    if (!err && ((InterleaveDataset *)d)->ahead) {
        s->prefetcher = prefetcher_new(s->it, c, ((InterleaveDataset *)d)->ahead);
        s->it = NULL;
    }
    tensor_unref(t);
    return err;
}

static void next_slot(InterleaveIterator *i) {
    i->given = 0;
    i->at = (i->at + 1) % ((InterleaveDataset *)i->base.dataset)->cycle;
    /* Past the end of the input slots that were never used stay empty: skip them all. */
    if (i->input_ended && i->at >= i->slot_count) i->at = 0;
}

static Error *fill_slot(InterleaveIterator *i, IteratorContext *c, Slot *s) {
    Dataset *in = i->base.dataset->inputs[0];
    Tensor **args = tuple_new(in->component_count);
    Error *err = iterator_next(i->base.input, c, args, &i->input_ended);
    if (err || i->input_ended) {
        tuple_free(args, in->component_count);
        return err;
    }
    s->args = args;
    err = open_slot(i, c, s);
    if (err)
        slot_clear(i, s);
    else
        i->open++;
    return err;
}

static Error *next_interleaved(DatasetIterator *it, IteratorContext *c, Tensor **out, bool *end) {
    InterleaveIterator *i = (InterleaveIterator *)it;
    while (!i->input_ended || i->open) {
        Slot *s = slot_at(i, i->at);
        if (s->args) {
            bool ended = false;
            Error *err =
                s->prefetcher ? prefetcher_next(s->prefetcher, c, out, &ended) : iterator_next(s->it, c, out, &ended);
            if (err) return err;
            if (!ended) {
                if (++i->given == ((InterleaveDataset *)it->dataset)->block) next_slot(i);
                return NULL;
            }
            slot_clear(i, s);
            i->open--;
            next_slot(i);
        } else if (!i->input_ended) {
            Error *err = fill_slot(i, c, s);
            if (err) return err;
        } else {
            next_slot(i);
        }
    }
    *end = true;
    return NULL;
}

static Error *save_interleave(DatasetIterator *it, IteratorState *s) {
    InterleaveIterator *i = (InterleaveIterator *)it;
    state_put_int(s, i->slot_count);
    state_put_int(s, i->at);
    state_put_int(s, i->given);
    state_put_int(s, i->input_ended);
    Error *err = NULL;
    for (int64_t j = 0; !err && j < i->slot_count; j++) {
        Slot *slot = &i->slots[j];
        state_put_int(s, slot->args != NULL);
        if (!slot->args) continue;
        err = state_put_element(s, slot->args, it->dataset->inputs[0]->component_count);
        if (!err) err = slot->prefetcher ? prefetcher_save(slot->prefetcher, s) : iterator_save(slot->it, s);
    }
    return err ? err : iterator_save_input(it, s);
}

static Error *restore_slot(InterleaveIterator *i, IteratorContext *c, IteratorState *s, Slot *slot) {
    Dataset *in = i->base.dataset->inputs[0];
    slot->args = tuple_new(in->component_count);
    i->open++;
    Error *err = state_get_element(s, in->types, in->component_count, slot->args);
    if (!err) err = open_slot(i, c, slot);
    if (err) return err;
    return slot->prefetcher ? prefetcher_restore(slot->prefetcher, c, s) : iterator_restore(slot->it, c, s);
}

static Error *restore_interleave(DatasetIterator *it, IteratorContext *c, IteratorState *s) {
    InterleaveIterator *i = (InterleaveIterator *)it;
    int64_t count = 0, ended = 0, used = 0, cycle = ((InterleaveDataset *)it->dataset)->cycle;
    Error *err = state_get_range(s, 0, cycle, &count);
    if (!err) err = state_get_range(s, 0, cycle - 1, &i->at);
    if (!err) err = state_get_range(s, 0, INT64_MAX, &i->given);
    if (!err) err = state_get_range(s, 0, 1, &ended);
    i->input_ended = ended;
    for (int64_t j = 0; !err && j < count; j++) {
        err = state_get_range(s, 0, 1, &used);
        Slot *slot = slot_at(i, j);
        if (!err && used) err = restore_slot(i, c, s, slot);
    }
    return err ? err : iterator_restore_input(it, c, s);
}

#define INTERLEAVE(kind_name)                                                                              \
    {                                                                                                      \
        .name = kind_name, .size = sizeof(InterleaveDataset), .iterator_size = sizeof(InterleaveIterator), \
        .start = iterator_start_input, .next = next_interleaved, .save = save_interleave,                  \
        .restore = restore_interleave, .stop = stop_interleave                                             \
    }
static const DatasetKind flat_map_kind = INTERLEAVE("FlatMap");
static const DatasetKind interleave_kind = INTERLEAVE("Interleave");
static const DatasetKind parallel_kind = INTERLEAVE("ParallelInterleave");

static Error *make_interleave(KernelContext *k, const DatasetKind *kind, InterleaveDataset **out, int *next) {
    Dataset *in = NULL, *d = NULL;
    Error *err = kernel_dataset(k, 0, &in);
    if (!err) err = dataset_from_attr(k, kind, "output_types", &in, 1, &d);
    if (err) return err;
    err = kernel_closure(k, "f", "Targuments", 1, &d->closure, next);
    if (err) {
        dataset_unref(d);
        return err;
    }
    *out = (InterleaveDataset *)d;
    (*out)->cycle = (*out)->block = 1;
    return NULL;
}

static Error *run_flat_map(KernelContext *k) {
    InterleaveDataset *d = NULL;
    Error *err = make_interleave(k, &flat_map_kind, &d, NULL);
    if (!err) kernel_set_dataset(k, 0, &d->base);
    return err;
}

static Error *read_cycle(KernelContext *k, int i, InterleaveDataset *d) {
    Error *err = kernel_int64(k, i, "cycle_length", &d->cycle);
    if (!err) err = kernel_int64(k, i + 1, "block_length", &d->block);
    if (!err && d->cycle == -1) d->cycle = dataset_parallelism(-1);
    bool parallel = str_starts(k->node->op, STR("ParallelInterleaveDatasetV"));
    if (!err && parallel && d->cycle <= 0)
        err = error_invalid("`cycle_length` must be `tf.data.AUTOTUNE` or greater than 0 but is %lld",
                            (long long)d->cycle);
    if (!err && d->cycle <= 0) err = error_invalid("cycle_length must be greater than zero.");
    if (!err && d->block <= 0) err = error_invalid("block_length must be greater than zero.");
    return err;
}

static Error *run_interleave(KernelContext *k) {
    InterleaveDataset *d = NULL;
    int next = 0;
    Error *err = make_interleave(k, &interleave_kind, &d, &next);
    if (err) return err;
    err = read_cycle(k, next, d);
    if (err)
        dataset_unref(&d->base);
    else
        kernel_set_dataset(k, 0, &d->base);
    return err;
}

static Error *check_calls(KernelContext *k, int i, const InterleaveDataset *d) {
    int64_t calls = 0;
    Error *err = kernel_int64(k, i, "num_parallel_calls", &calls);
    if (!err && calls != -1 && calls <= 0) err = error_invalid("num_parallel_calls must be greater than zero.");
    if (!err && calls > d->cycle) err = error_invalid("If `cycle_length` is set to a fixed value, `num_parallel_calls` must be either `tf.data.AUTOTUNE` or a value less than or equal to `cycle_length`. However, `num_parallel_calls` is %lld and `cycle_length` is %lld", (long long)calls, (long long)d->cycle);
    return err;
}

static Error *run_parallel_interleave(KernelContext *k) {
    InterleaveDataset *d = NULL;
    int next = 0;
    Error *err = make_interleave(k, &parallel_kind, &d, &next);
    if (err) return err;
    err = read_cycle(k, next, d);
    bool legacy = str_starts(k->node->op, STR("Legacy")), first = str_ends(k->node->op, STR("Dataset"));
    if (!err && !legacy && !first) err = check_calls(k, k->input_count - 1, d);
    d->ahead = d->block < 2 ? 2 : d->block > 16 ? 16 : d->block;
    if (err)
        dataset_unref(&d->base);
    else
        kernel_set_dataset(k, 0, &d->base);
    return err;
}

const KernelDef dataset_interleave_cpu[] = {
    {"FlatMapDataset", .run = run_flat_map},
    {"InterleaveDataset", .run = run_interleave},
    {"ParallelInterleaveDataset", .run = run_parallel_interleave},
    {"ParallelInterleaveDatasetV2", .run = run_parallel_interleave},
    {"ParallelInterleaveDatasetV3", .run = run_parallel_interleave},
    {"ParallelInterleaveDatasetV4", .run = run_parallel_interleave},
    {"LegacyParallelInterleaveDatasetV2", .run = run_parallel_interleave},
    {"ExperimentalParallelInterleaveDataset", .run = run_parallel_interleave},
    {0},
};
