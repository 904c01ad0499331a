/* sliding_window.c: SlidingWindowDataset: windows that overlap, each as one batch. */
#include <stdlib.h>

#include "base/memory.h"
#include "ops/dataset/batch.h"
#include "ops/dataset/element_list.h"
#include "ops/op_list.h"

const OpDef dataset_sliding_ops[] = {
    {"SlidingWindowDataset",
     "input_dataset: variant, window_size: int64, window_shift: int64, window_stride: int64 -> handle: variant",
     "drop_remainder: bool = true; output_types: list(type) >= 1; output_shapes: list(shape) >= 1", 0},
    {"ExperimentalSlidingWindowDataset",
     "input_dataset: variant, window_size: int64, window_shift: int64, window_stride: int64 -> handle: variant",
     "output_types: list(type) >= 1; output_shapes: list(shape) >= 1", 0},
    {0},
};

typedef struct SlidingDataset {
    Dataset base;
    int64_t size, shift, stride;
    int64_t span; /* elements from the first to the last of a window */
    bool drop_remainder;
} SlidingDataset;

typedef struct SlidingIterator {
    DatasetIterator base;
    ElementList buffer;
} SlidingIterator;

/* The next element; NULL once the input has ended. */
static Error *pull(DatasetIterator *it, IteratorContext *c, Tensor ***out) {
    int n = it->dataset->component_count;
    Tensor **element = tuple_new(n);
    bool end = false;
    Error *err = iterator_next(it->input, c, element, &end);
    *out = NULL;
    if (!err && !end) {
        *out = element;
        return NULL;
    }
    tuple_free(element, n);
    if (!err) {
        iterator_free(it->input);
        it->input = NULL;
    }
    return err;
}

static Error *fill(SlidingIterator *s, IteratorContext *c) {
    const SlidingDataset *d = (const SlidingDataset *)s->base.dataset;
    while (s->base.input && s->buffer.count < d->span) {
        Tensor **element = NULL;
        Error *err = pull(&s->base, c, &element);
        if (err) return err;
        if (element) element_list_add(&s->buffer, element);
    }
    return NULL;
}

static Error *stack_window(const SlidingIterator *s, Tensor **out) {
    const SlidingDataset *d = (const SlidingDataset *)s->base.dataset;
    int64_t count = (s->buffer.count - 1) / d->stride + 1;
    Tensor **column = xcalloc((size_t)count, sizeof *column);
    Error *err = NULL;
    for (int i = 0; !err && i < d->base.component_count; i++) {
        for (int64_t j = 0; j < count; j++) column[j] = s->buffer.items[j * d->stride][i];
        err = batch_stack(column, count, i, d->base.types[i], &out[i]);
    }
    free(column);
    return err;
}

/* Forgets what lies before the next window; elements between two windows are pulled and dropped. */
static Error *move_on(SlidingIterator *s, IteratorContext *c) {
    const SlidingDataset *d = (const SlidingDataset *)s->base.dataset;
    int n = d->base.component_count;
    Error *err = NULL;
    for (int64_t i = s->buffer.count; !err && s->base.input && i < d->shift; i++) {
        Tensor **between = NULL;
        err = pull(&s->base, c, &between);
        tuple_free(between, n);
    }
    if (!err) element_list_drop(&s->buffer, d->shift, n);
    return err;
}

static Error *next_window(DatasetIterator *it, IteratorContext *c, Tensor **out, bool *end) {
    SlidingIterator *s = (SlidingIterator *)it;
    const SlidingDataset *d = (const SlidingDataset *)it->dataset;
    Error *err = fill(s, c);
    if (err) return err;
    *end = !s->buffer.count || (d->drop_remainder && s->buffer.count < d->span);
    if (*end) return NULL;
    err = stack_window(s, out);
    Error *moved = move_on(s, c); /* also when the elements do not fit together: the next window may be whole */
    if (!err) return moved;
    error_free(moved);
    return err;
}

static void stop_sliding(DatasetIterator *it) {
    element_list_clear(&((SlidingIterator *)it)->buffer, it->dataset->component_count);
}

static Error *save_sliding(DatasetIterator *it, IteratorState *s) {
    Error *err = element_list_save(&((SlidingIterator *)it)->buffer, it->dataset->component_count, s);
    return err ? err : iterator_save_input(it, s);
}

static Error *restore_sliding(DatasetIterator *it, IteratorContext *c, IteratorState *s) {
    Error *err =
        element_list_restore(&((SlidingIterator *)it)->buffer, it->dataset->types, it->dataset->component_count, s);
    return err ? err : iterator_restore_input(it, c, s);
}

/* As TensorFlow counts, which is not always what comes. */
static int64_t count_windows(const Dataset *d) {
    const SlidingDataset *s = (const SlidingDataset *)d;
    int64_t n = dataset_cardinality(d->inputs[0]);
    return n < 0 ? n : n / s->shift + (!s->drop_remainder && n % s->shift);
}

static const DatasetKind sliding_kind = {.name = "SlidingWindow",
                                         .size = sizeof(SlidingDataset),
                                         .iterator_size = sizeof(SlidingIterator),
                                         .cardinality = count_windows,
                                         .start = iterator_start_input,
                                         .next = next_window,
                                         .save = save_sliding,
                                         .restore = restore_sliding,
                                         .stop = stop_sliding};

static Error *run_sliding(KernelContext *k) {
    Dataset *in = NULL;
    int64_t size = 0, shift = 0, stride = 0, span = 0;
    bool drop = true;
    Str value;
    Error *err = kernel_dataset(k, 0, &in);
    if (!err) err = kernel_int64(k, 1, "window_size", &size);
    if (!err && size <= 0) err = error_invalid("Window size must be greater than zero.");
    if (!err) err = kernel_int64(k, 2, "window_shift", &shift);
    if (!err && shift <= 0) err = error_invalid("Window shift must be greater than zero.");
    if (!err) err = kernel_int64(k, 3, "window_stride", &stride);
    if (!err && stride <= 0) err = error_invalid("window_stride must be greater than zero.");
    if (!err && (__builtin_mul_overflow(size - 1, stride, &span) || span == INT64_MAX))
        err = error_invalid("A window of %lld elements with stride %lld is too large", (long long)size,
                            (long long)stride);
    if (err) return err;
    if (node_attr(k->node, "drop_remainder", &value)) attr_bool(value, &drop);
    SlidingDataset *d = (SlidingDataset *)dataset_like(&sliding_kind, in);
    d->size = size;
    d->shift = shift;
    d->stride = stride;
    d->span = span + 1;
    d->drop_remainder = drop;
    kernel_set_dataset(k, 0, &d->base);
    return NULL;
}

const KernelDef dataset_sliding_cpu[] = {
    {"SlidingWindowDataset", .run = run_sliding},
    {"ExperimentalSlidingWindowDataset", .run = run_sliding},
    {0},
};
