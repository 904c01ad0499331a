/* window_dataset.c: WindowDataset, SlidingWindowDataset: parts of a sequence as datasets of their own; WindowOp. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "ops/dataset/batch.h"
#include "ops/dataset/element_list.h"
#include "ops/op_list.h"

const OpDef dataset_window_ops[] = {
    {"WindowDataset",
     "input_dataset: variant, size: int64, shift: int64, stride: int64, drop_remainder: bool -> handle: variant",
     "output_types: list(type) >= 1; output_shapes: list(shape) >= 1; metadata: string = ''", 0},
    {"WindowOp", "inputs: Tinputs -> handle: variant",
     "output_types: list(type) >= 1; output_shapes: list(shape) >= 1; Tinputs: list(type) >= 1", 0},
    {0},
};

/* ---- Lists of elements ---- */

void element_list_add(ElementList *l, Tensor **take) {
    l->items = vec_reserve(l->items, &l->capacity, (size_t)l->count + 1, sizeof *l->items);
    l->items[l->count++] = take;
}

void element_list_drop(ElementList *l, int64_t first, int component_count) {
    if (first > l->count) first = l->count;
    for (int64_t i = 0; i < first; i++) tuple_free(l->items[i], component_count);
    l->count -= first;
    if (first) memmove(l->items, l->items + first, (size_t)l->count * sizeof *l->items);
}

void element_list_clear(ElementList *l, int component_count) {
    element_list_drop(l, l->count, component_count);
    free(l->items);
    *l = (ElementList){0};
}

Error *element_list_save(const ElementList *l, int component_count, IteratorState *s) {
    Error *err = NULL;
    state_put_int(s, l->count);
    for (int64_t i = 0; !err && i < l->count; i++) err = state_put_element(s, l->items[i], component_count);
    return err;
}

Error *element_list_restore(ElementList *l, const DataType *types, int component_count, IteratorState *s) {
    int64_t count = 0;
    Error *err = state_get_range(s, 0, INT64_MAX, &count);
    for (int64_t i = 0; !err && i < count; i++) {
        Tensor **element = tuple_new(component_count);
        err = state_get_element(s, types, component_count, element);
        element_list_add(l, element);
    }
    return err;
}

typedef struct ListDataset {
    Dataset base;
    ElementList list;
} ListDataset;

typedef struct ListIterator {
    DatasetIterator base;
    int64_t at;
} ListIterator;

static void destroy_list(Dataset *d) {
    element_list_clear(&((ListDataset *)d)->list, d->component_count);
}

static int64_t count_list(const Dataset *d) {
    return ((const ListDataset *)d)->list.count;
}

static Error *next_in_list(DatasetIterator *it, IteratorContext *c, Tensor **out, bool *end) {
    const ElementList *l = &((ListDataset *)it->dataset)->list;
    ListIterator *i = (ListIterator *)it;
    (void)c;
    *end = i->at >= l->count;
    if (!*end) tuple_copy(out, l->items[i->at++], it->dataset->component_count);
    return NULL;
}

static Error *save_in_list(DatasetIterator *it, IteratorState *s) {
    state_put_int(s, ((ListIterator *)it)->at);
    return NULL;
}

static Error *restore_in_list(DatasetIterator *it, IteratorContext *c, IteratorState *s) {
    (void)c;
    return state_get_range(s, 0, INT64_MAX, &((ListIterator *)it)->at);
}

static const DatasetKind window_kind = {.name = "WindowElements",
                                        .size = sizeof(ListDataset),
                                        .iterator_size = sizeof(ListIterator),
                                        .destroy = destroy_list,
                                        .cardinality = count_list,
                                        .next = next_in_list,
                                        .save = save_in_list,
                                        .restore = restore_in_list};

Dataset *element_list_dataset(const ElementList *l, int64_t stride, const DataType *types, int from, int count) {
    ListDataset *d = (ListDataset *)dataset_new(&window_kind, types + from, count, NULL, 0);
    for (int64_t i = 0; i < l->count; i += stride) {
        Tensor **element = tuple_new(count);
        tuple_copy(element, l->items[i] + from, count);
        element_list_add(&d->list, element);
    }
    return &d->base;
}

const ElementList *element_list_of(const Dataset *d) {
    return d->kind == &window_kind ? &((const ListDataset *)d)->list : NULL;
}

/* ---- Windows ---- */

typedef struct WindowDataset {
    Dataset base;
    int64_t size, shift, stride, span; /* span: from the first element of a window to after the last */
    bool drop_remainder;
} WindowDataset;

typedef struct WindowIterator {
    DatasetIterator base;
    ElementList buffer; /* NULL where there is an error instead */
    Error **errors;     /* of each place in the buffer, most NULL */
    size_t capacity;
} WindowIterator;

static void add_place(WindowIterator *w, Tensor **take, Error *err) {
    w->errors = vec_reserve(w->errors, &w->capacity, (size_t)w->buffer.count + 1, sizeof *w->errors);
    w->errors[w->buffer.count] = err;
    element_list_add(&w->buffer, take);
}

static void drop_places(WindowIterator *w, int64_t first) {
    if (first > w->buffer.count) first = w->buffer.count;
    for (int64_t i = 0; i < first; i++) error_free(w->errors[i]);
    if (first) memmove(w->errors, w->errors + first, (size_t)(w->buffer.count - first) * sizeof *w->errors);
    element_list_drop(&w->buffer, first, w->base.dataset->inputs[0]->component_count);
}

/* The first error in the places of this window. */
static const Error *window_error(const WindowIterator *w) {
    for (int64_t i = 0; i < w->buffer.count; i += ((WindowDataset *)w->base.dataset)->stride)
        if (w->errors[i]) return w->errors[i];
    return NULL;
}

/* An element that failed has a place in its windows too. */
static Error *fill_window(WindowIterator *w, IteratorContext *c) {
    DatasetIterator *it = &w->base;
    int n = it->dataset->inputs[0]->component_count;
    while (it->input && w->buffer.count < ((WindowDataset *)it->dataset)->span) {
        Tensor **element = tuple_new(n);
        bool end = false;
        Error *err = iterator_next(it->input, c, element, &end);
        if (!err && !end) {
            add_place(w, element, NULL);
            continue;
        }
        tuple_free(element, n);
        if (err && cancel_is_set(c->cancel)) return err;
        if (err) {
            add_place(w, NULL, err);
            continue;
        }
        iterator_free(it->input);
        it->input = NULL;
    }
    return NULL;
}

/* What lies between this window and the next, failed or not. */
static void skip_gap(WindowIterator *w, IteratorContext *c, int64_t gap) {
    DatasetIterator *it = &w->base;
    int n = it->dataset->inputs[0]->component_count;
    Tensor **element = tuple_new(n);
    for (; it->input && gap > 0 && !cancel_is_set(c->cancel); gap--) {
        bool end = false;
        error_free(iterator_next(it->input, c, element, &end));
        tuple_clear(element, n);
        if (!end) continue;
        iterator_free(it->input);
        it->input = NULL;
    }
    free(element);
}

static Error *next_window(DatasetIterator *it, IteratorContext *c, Tensor **out, bool *end) {
    WindowIterator *w = (WindowIterator *)it;
    WindowDataset *d = (WindowDataset *)it->dataset;
    Dataset *in = it->dataset->inputs[0];
    Error *err = fill_window(w, c);
    *end = w->buffer.count == 0 || (d->drop_remainder && w->buffer.count < d->span);
    if (err || *end) return err;
    err = window_error(w) ? error_copy(window_error(w)) : NULL;
    for (int i = 0; !err && i < it->dataset->component_count; i++) {
        Dataset *window = element_list_dataset(&w->buffer, d->stride, in->types, i, 1);
        err = dataset_tensor(window, &out[i]);
        dataset_unref(window);
    }
    int64_t gap = d->shift - w->buffer.count;
    drop_places(w, d->shift);
    skip_gap(w, c, gap);
    return err;
}

static void stop_window(DatasetIterator *it) {
    WindowIterator *w = (WindowIterator *)it;
    drop_places(w, w->buffer.count);
    element_list_clear(&w->buffer, it->dataset->inputs[0]->component_count);
    free(w->errors);
}

static Error *save_window(DatasetIterator *it, IteratorState *s) {
    const WindowIterator *w = (const WindowIterator *)it;
    Error *err = NULL;
    state_put_int(s, w->buffer.count);
    for (int64_t i = 0; !err && i < w->buffer.count; i++) {
        state_put_error(s, w->errors[i]);
        if (!w->errors[i]) err = state_put_element(s, w->buffer.items[i], it->dataset->inputs[0]->component_count);
    }
    return err ? err : iterator_save_input(it, s);
}

static Error *restore_window(DatasetIterator *it, IteratorContext *c, IteratorState *s) {
    const Dataset *in = it->dataset->inputs[0];
    int64_t count = 0;
    Error *err = state_get_range(s, 0, INT64_MAX, &count);
    for (int64_t i = 0; !err && i < count; i++) {
        Error *saved = NULL;
        Tensor **element = NULL;
        err = state_get_error(s, &saved);
        if (!err && !saved) {
            element = tuple_new(in->component_count);
            err = state_get_element(s, in->types, in->component_count, element);
        }
        add_place((WindowIterator *)it, element, saved);
    }
    return err ? err : iterator_restore_input(it, c, s);
}

static int64_t count_windows(const Dataset *d) {
    const WindowDataset *w = (const WindowDataset *)d;
    int64_t n = dataset_cardinality(d->inputs[0]);
    if (n < 0) return n;
    if (!w->drop_remainder) return n / w->shift + (n % w->shift != 0);
    return n < w->span ? 0 : (n - w->span) / w->shift + 1;
}

static const DatasetKind windows_kind = {.name = "Window",
                                         .size = sizeof(WindowDataset),
                                         .iterator_size = sizeof(WindowIterator),
                                         .cardinality = count_windows,
                                         .start = iterator_start_input,
                                         .next = next_window,
                                         .save = save_window,
                                         .restore = restore_window,
                                         .stop = stop_window};

static Error *run_windows(KernelContext *k) {
    Dataset *in = NULL;
    WindowDataset w = {0};
    Error *err = kernel_dataset(k, 0, &in);
    if (!err) err = kernel_int64(k, 1, "size", &w.size);
    if (!err) err = kernel_int64(k, 2, "shift", &w.shift);
    if (!err) err = kernel_int64(k, 3, "stride", &w.stride);
    if (!err) err = kernel_bool(k, 4, "drop_remainder", &w.drop_remainder);
    if (!err && w.size <= 0) err = error_invalid("Window size must be greater than zero.");
    if (!err && w.shift <= 0) err = error_invalid("Window shift must be greater than zero.");
    if (!err && w.stride <= 0) err = error_invalid("Window stride must be greater than zero.");
    if (!err && (__builtin_mul_overflow(w.size - 1, w.stride, &w.span) || w.span == INT64_MAX))
        err = error_invalid("Window size times stride is too large");
    if (err) return err;
    DataType *types = xcalloc((size_t)in->component_count + 1, sizeof *types);
    for (int i = 0; i < in->component_count; i++) types[i] = DT_VARIANT;
    WindowDataset *d = (WindowDataset *)dataset_new(&windows_kind, types, in->component_count, &in, 1);
    free(types);
    d->size = w.size;
    d->shift = w.shift;
    d->stride = w.stride;
    d->span = w.span + 1;
    d->drop_remainder = w.drop_remainder;
    kernel_set_dataset(k, 0, &d->base);
    return NULL;
}

/* A window made by the client: the components of one element after those of another. */
static Error *run_window_op(KernelContext *k) {
    DataType *types = NULL;
    int n = 0;
    Error *err = node_attr_types(k->node, "output_types", &types, &n);
    if (!err && (n == 0 || k->input_count % n != 0))
        err = error_invalid("%d inputs are no elements of %d components", k->input_count, n);
    ElementList list = {0};
    for (int from = 0; !err && from < k->input_count; from += n) {
        Tensor **element = tuple_new(n);
        tuple_copy(element, k->in + from, n);
        element_list_add(&list, element);
        for (int i = 0; !err && i < n; i++)
            if (element[i]->dtype != types[i])
                err = error_invalid("Input %d is %s where %s was expected", from + i, dtype_name(element[i]->dtype),
                                    dtype_name(types[i]));
    }
    if (!err) kernel_set_dataset(k, 0, element_list_dataset(&list, 1, types, 0, n));
    element_list_clear(&list, n);
    free(types);
    return err;
}

const KernelDef dataset_window_cpu[] = {
    {"WindowDataset", .run = run_windows},
    {"WindowOp", .run = run_window_op},
    {0},
};
