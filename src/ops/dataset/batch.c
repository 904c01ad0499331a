/* batch.c: batch, padded batch, unbatch, rebatch. */
#include "ops/dataset/batch.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "ops/dataset/dataset_origin.h"
#include "ops/elements.h"
#include "ops/op_list.h"
#include "ops/tensor_list.h"

const OpDef dataset_batch_ops[] = {
    {"BatchDataset", "input_dataset: variant, batch_size: int64 -> handle: variant",
     "output_types: list(type) >= 1; output_shapes: list(shape) >= 1; metadata: string = ''", 0},
    {"BatchDatasetV2", "input_dataset: variant, batch_size: int64, drop_remainder: bool -> handle: variant",
     "parallel_copy: bool = false; output_types: list(type) >= 1; output_shapes: list(shape) >= 1; metadata: string "
     "= ''",
     0},
    {"ParallelBatchDataset",
     "input_dataset: variant, batch_size: int64, num_parallel_calls: int64, drop_remainder: bool -> handle: variant",
     "parallel_copy: bool = false; output_types: list(type) >= 1; output_shapes: list(shape) >= 1; deterministic: "
     "string = 'default'; metadata: string = ''",
     0},
    {"PaddedBatchDataset",
     "input_dataset: variant, batch_size: int64, padded_shapes: N * int64, padding_values: Toutput_types -> handle: "
     "variant",
     "Toutput_types: list(type) >= 1; output_shapes: list(shape) >= 1; N: int >= 1; metadata: string = ''", 0},
    {"PaddedBatchDatasetV2",
     "input_dataset: variant, batch_size: int64, padded_shapes: N * int64, padding_values: Toutput_types, "
     "drop_remainder: bool -> handle: variant",
     "parallel_copy: bool = false; Toutput_types: list(type) >= 1; output_shapes: list(shape) >= 1; N: int >= 1; "
     "metadata: string = ''",
     0},
    {"UnbatchDataset", "input_dataset: variant -> handle: variant",
     "output_types: list(type) >= 1; output_shapes: list(shape) >= 1; metadata: string = ''", 0},
    {"ExperimentalUnbatchDataset", "input_dataset: variant -> handle: variant",
     "output_types: list(type) >= 1; output_shapes: list(shape) >= 1", 0},
    {"RebatchDatasetV2", "input_dataset: variant, batch_sizes: int64, drop_remainder: bool -> handle: variant",
     "output_types: list(type) >= 1; output_shapes: list(shape) >= 1", 0},
    {0},
};

typedef struct BatchDataset {
    Dataset base;
    int64_t size;
    bool drop_remainder;
    bool fused;     /* with a map: elements must be of one size, the first gives the shape */
    bool joined;    /* fused as TensorFlow's optimiser does it, not by name */
    int64_t *sizes; /* rebatch: of one batch after the other, over and over */
    int64_t size_count;
    PartialShape *shapes; /* padded: of each component, -1 where the largest counts */
    Tensor **padding;     /* padded: scalars */
} BatchDataset;

/* Up to `size` elements, each component's together. */
typedef struct Gathered {
    Tensor ***components; /* [component][element] */
    size_t *capacity;
    int component_count;
    int64_t count;
} Gathered;

static void gathered_clear(Gathered *g) {
    for (int i = 0; g->components && i < g->component_count; i++) {
        for (int64_t j = 0; j < g->count; j++) tensor_unref(g->components[i][j]);
        free(g->components[i]);
    }
    free(g->components);
    free(g->capacity);
}

/* The rest of a batch of which an element failed. */
static void skip_rest(DatasetIterator *it, IteratorContext *c, int64_t count, Tensor **element) {
    bool end = false;
    for (int64_t i = 0; !end && i < count && !cancel_is_set(c->cancel); i++) {
        error_free(iterator_next(it->input, c, element, &end));
        tuple_clear(element, it->dataset->inputs[0]->component_count);
    }
}

static Error *gather(DatasetIterator *it, IteratorContext *c, int64_t size, Gathered *g, bool *end) {
    int n = it->dataset->inputs[0]->component_count;
    Tensor **element = tuple_new(n);
    *g = (Gathered){.components = xcalloc((size_t)n + 1, sizeof *g->components),
                    .capacity = xcalloc((size_t)n + 1, sizeof(size_t)),
                    .component_count = n};
    Error *err = NULL;
    *end = !it->input;
    while (!err && !*end && g->count < size) {
        err = iterator_next(it->input, c, element, end);
        if (err && it->dataset->kind->joins_map && it->input->kind->is_map)
            skip_rest(it, c, size - g->count - 1, element);
        if (err || *end) break;
        for (int i = 0; i < n; i++) {
            g->components[i] = vec_reserve(g->components[i], &g->capacity[i], (size_t)g->count + 1, sizeof(Tensor *));
            g->components[i][g->count] = element[i];
            element[i] = NULL;
        }
        g->count++;
    }
    if (!err && *end) {
        iterator_free(it->input);
        it->input = NULL;
    }
    tuple_free(element, n);
    return err;
}

Error *batch_stack(Tensor *const *items, int64_t n, int component, DataType type, Tensor **out) {
    for (int64_t i = 1; i < n; i++)
        if (!shape_eq(&items[i]->shape, &items[0]->shape))
            return error_invalid(
                "Cannot batch tensors with different shapes in component %d. First element had shape %s and element "
                "%lld had shape %s.",
                component, shape_text(&items[0]->shape).text, (long long)i, shape_text(&items[i]->shape).text);
    return tensors_stack(items, n, type, &items[0]->shape, out);
}

/* ---- Padding ---- */

static Error *padded_shape(const BatchDataset *d, Tensor *const *items, int64_t n, int component, Shape *out) {
    *out = d->shapes[component];
    for (int a = 0; a < out->rank; a++) {
        int64_t known = out->dims[a];
        for (int64_t i = 0; i < n; i++) {
            if (items[i]->shape.rank != out->rank)
                return error_invalid(
                    "All elements in a batch must have the same rank as the padded shape for component%d: expected "
                    "rank %d but got element "
                    "with rank %d",
                    component, out->rank, items[i]->shape.rank);
            if (known >= 0 && items[i]->shape.dims[a] > known)
                return error_new(CODE_DATA_LOSS, "Attempted to pad to a smaller size than the input element.");
            if (known < 0 && items[i]->shape.dims[a] > out->dims[a]) out->dims[a] = items[i]->shape.dims[a];
        }
        if (out->dims[a] < 0) out->dims[a] = 0;
    }
    for (int64_t i = 0; out->rank == 0 && i < n; i++)
        if (items[i]->shape.rank != 0)
            return error_invalid(
                "All elements in a batch must have the same rank as the padded shape for component%d: expected rank 0 "
                "but got element with "
                "rank %d",
                component, items[i]->shape.rank);
    return NULL;
}

/* Copies a block of `from` (row-major of shape `inner`) into the corner of one of shape `outer`. */
static void copy_corner(DataType type, char *to, const char *from, const Shape *outer, const Shape *inner, int axis) {
    size_t size = dtype_size(type);
    if (axis >= inner->rank - 1) {
        elements_copy(type, to, from, inner->rank ? inner->dims[inner->rank - 1] : 1);
        return;
    }
    size_t to_step = (size_t)shape_prod(outer, axis + 1, outer->rank) * size,
           from_step = (size_t)shape_prod(inner, axis + 1, inner->rank) * size;
    for (int64_t i = 0; i < inner->dims[axis]; i++)
        copy_corner(type, to + (size_t)i * to_step, from + (size_t)i * from_step, outer, inner, axis + 1);
}

static Error *stack_padded(const BatchDataset *d, Tensor *const *items, int64_t n, int component, Tensor **out) {
    Shape row;
    Error *err = padded_shape(d, items, n, component, &row);
    if (!err && row.rank == SHAPE_MAX_RANK) err = error_invalid("A batch would have %d dimensions", row.rank + 1);
    if (err) return err;
    Shape whole = row;
    shape_insert_dim(&whole, 0, n);
    DataType type = items[0]->dtype;
    err = tensor_new(type, &whole, out);
    if (err) return err;
    const Tensor *padding = d->padding[component];
    size_t size = dtype_size(type), row_size = (size_t)shape_count(&row) * size;
    for (int64_t i = 0; i < n; i++) {
        char *to = (char *)(*out)->data + (size_t)i * row_size;
        bool full = shape_eq(&items[i]->shape, &row);
        for (int64_t j = 0; !full && j < shape_count(&row); j++)
            elements_copy(type, to + (size_t)j * size, padding->data, 1);
        if (full)
            elements_copy(type, to, items[i]->data, items[i]->count);
        else if (items[i]->count)
            copy_corner(type, to, items[i]->data, &row, &items[i]->shape, 0);
    }
    return NULL;
}

/* ---- Batches ---- */

static Error *stack_fused(Tensor *const *items, int64_t n, DataType type, Tensor **out) {
    for (int64_t i = 1; i < n; i++)
        if (items[i]->count != items[0]->count)
            return error_invalid(
                "Cannot add tensor to the batch: number of elements does not match. Shapes are: [tensor]: %s, [batch]: "
                "%s",
                shape_text(&items[i]->shape).text, shape_text(&items[0]->shape).text);
    Tensor **same = xcalloc((size_t)n, sizeof *same);
    for (int64_t i = 0; i < n; i++) same[i] = tensor_alias(items[i], type, &items[0]->shape);
    Error *err = tensors_stack(same, n, type, &items[0]->shape, out);
    for (int64_t i = 0; i < n; i++) tensor_unref(same[i]);
    free(same);
    return err;
}

static Error *batch_of(DatasetIterator *it, IteratorContext *c, int64_t size, Tensor **out, bool *end) {
    BatchDataset *d = (BatchDataset *)it->dataset;
    Gathered g;
    Error *err = gather(it, c, size, &g, end);
    *end = g.count == 0 || (d->drop_remainder && g.count < size);
    for (int i = 0; !err && !*end && i < g.component_count; i++)
        err = d->shapes  ? stack_padded(d, g.components[i], g.count, i, &out[i])
              : d->fused ? stack_fused(g.components[i], g.count, it->dataset->types[i], &out[i])
                         : batch_stack(g.components[i], g.count, i, it->dataset->types[i], &out[i]);
    gathered_clear(&g);
    return err;
}

static Error *next_batch(DatasetIterator *it, IteratorContext *c, Tensor **out, bool *end) {
    return batch_of(it, c, ((BatchDataset *)it->dataset)->size, out, end);
}

static int64_t count_batches(const Dataset *d) {
    const BatchDataset *b = (const BatchDataset *)d;
    int64_t n = dataset_cardinality(d->inputs[0]);
    return n < 0 ? n : n / b->size + (n % b->size && !b->drop_remainder);
}

static void destroy_batch(Dataset *d) {
    BatchDataset *b = (BatchDataset *)d;
    free(b->sizes);
    free(b->shapes);
    tuple_free(b->padding, d->component_count);
}

#define BATCH(kind_name, with_map)                                                                                    \
    {                                                                                                                 \
        .name = kind_name, .size = sizeof(BatchDataset), .cardinality = count_batches, .start = iterator_start_input, \
        .next = next_batch, .destroy = destroy_batch, .joins_map = (with_map)                                         \
    }
static const DatasetKind batch_kind = BATCH("Batch", true);
static const DatasetKind lone_batch_kind = BATCH("Batch", false);
static const DatasetKind parallel_batch_kind = BATCH("ParallelBatch", false);
static const DatasetKind padded_batch_kind = BATCH("PaddedBatch", false);

Dataset *fused_batch_dataset_new(Dataset *input, int64_t size, bool drop_remainder) {
    Dataset *d = batch_dataset_new(input, size, drop_remainder);
    ((BatchDataset *)d)->fused = true;
    return d;
}

static Dataset *make_batches(const DatasetKind *kind, Dataset *input, int64_t size, bool drop_remainder) {
    BatchDataset *d = (BatchDataset *)dataset_like(kind, input);
    d->size = size;
    d->drop_remainder = drop_remainder;
    return &d->base;
}

Dataset *batch_dataset_new(Dataset *input, int64_t size, bool drop_remainder) {
    return make_batches(&batch_kind, input, size, drop_remainder);
}

Dataset *batch_dataset_apart(const Dataset *d) {
    const BatchDataset *b = (const BatchDataset *)d;
    return d->kind == &batch_kind && b->joined ? make_batches(&lone_batch_kind, d->inputs[0], b->size, b->drop_remainder) : NULL;
}

static Error *batch_size(KernelContext *k, int i, int64_t *out) {
    Error *err = kernel_int64(k, i, "batch_size", out);
    return !err && *out <= 0 ? error_invalid("Batch size must be greater than zero.") : err;
}

static Error *make_batch(KernelContext *k, const DatasetKind *kind) {
    Dataset *in = NULL;
    int64_t size = 0;
    bool drop = false;
    Error *err = kernel_dataset(k, 0, &in);
    if (!err) err = batch_size(k, 1, &size);
    if (!err && k->input_count > 2) err = kernel_bool(k, k->input_count - 1, "drop_remainder", &drop);
    if (err) return err;
    BatchDataset *d = (BatchDataset *)make_batches(kind, in, size, drop);
    d->fused = d->joined = kind->joins_map && in->kind->is_map;
    kernel_set_dataset(k, 0, &d->base);
    return NULL;
}

static Error *run_batch(KernelContext *k) {
    return make_batch(k, &batch_kind);
}

static Error *run_parallel_batch(KernelContext *k) {
    return make_batch(k, &parallel_batch_kind);
}

static Error *read_padding(KernelContext *k, int component, int shape_input, int value_input, BatchDataset *d) {
    const Tensor *shape = k->in[shape_input], *value = k->in[value_input];
    if (shape->shape.rank != 1 || shape->count >= SHAPE_MAX_RANK)
        return error_invalid("All padded shapes must be vectors");
    if (value->shape.rank != 0) return error_invalid("All padding values must be scalars");
    if (value->dtype != d->base.types[component])
        return error_invalid("Mismatched type between padding value %d and input dataset's component %d: %s vs. %s",
                             component, component, dtype_name(value->dtype), dtype_name(d->base.types[component]));
    d->shapes[component].rank = (int)shape->count;
    for (int a = 0; a < shape->count; a++) {
        int64_t dim = tensor_index(shape, a);
        if (dim < -1) return error_invalid("Dimension %lld must be >= -1", (long long)dim);
        d->shapes[component].dims[a] = dim;
    }
    d->padding[component] = tensor_ref(k->in[value_input]);
    return NULL;
}

static Error *run_padded_batch(KernelContext *k) {
    Dataset *in = NULL;
    int64_t size = 0, n = 0;
    bool drop = false, v2 = node_is(k->node, "PaddedBatchDatasetV2");
    Error *err = kernel_dataset(k, 0, &in);
    if (!err) err = batch_size(k, 1, &size);
    if (!err) err = node_attr_int(k->node, "N", &n);
    if (!err && v2) err = kernel_bool(k, k->input_count - 1, "drop_remainder", &drop);
    if (!err && (n != in->component_count || k->input_count - 2 - v2 != 2 * n))
        err = error_invalid(
            "Number of padded shapes (%lld) must match the number of components in the input dataset's elements (%d)",
            (long long)n, in->component_count);
    if (err) return err;
    BatchDataset *d = (BatchDataset *)make_batches(&padded_batch_kind, in, size, drop);
    d->shapes = xcalloc((size_t)n + 1, sizeof *d->shapes);
    d->padding = tuple_new((int)n);
    for (int i = 0; !err && i < n; i++) err = read_padding(k, i, 2 + i, 2 + (int)n + i, d);
    if (err)
        dataset_unref(&d->base);
    else
        kernel_set_dataset(k, 0, &d->base);
    return err;
}

/* ---- Unbatch ---- */

typedef struct UnbatchIterator {
    DatasetIterator base;
    Tensor **batch;
    int64_t at, size;
} UnbatchIterator;

static Error *check_batch(UnbatchIterator *u) {
    int n = u->base.dataset->component_count;
    for (int i = 0; i < n; i++) {
        if (u->batch[i]->shape.rank == 0)
            return error_invalid("Input element must have a non-scalar value in each component.");
        if (u->batch[i]->shape.dims[0] != u->batch[0]->shape.dims[0])
            return error_invalid(
                "Input element must have the same batch size in each component. Component 0 had size %lld but "
                "component %d had size, %lld.",
                (long long)u->batch[0]->shape.dims[0], i, (long long)u->batch[i]->shape.dims[0]);
    }
    u->at = 0;
    u->size = n ? u->batch[0]->shape.dims[0] : 0;
    return NULL;
}

static Error *start_unbatch(DatasetIterator *it, IteratorContext *c) {
    ((UnbatchIterator *)it)->batch = tuple_new(it->dataset->component_count);
    return iterator_start_input(it, c);
}

static Error *fetch_batch(UnbatchIterator *u, IteratorContext *c, bool *end) {
    int n = u->base.dataset->component_count;
    tuple_clear(u->batch, n);
    *end = !u->base.input;
    Error *err = *end ? NULL : iterator_next(u->base.input, c, u->batch, end);
    if (err || *end) return err;
    err = check_batch(u);
    if (err) tuple_clear(u->batch, n);
    return err;
}

static Error *next_unbatched(DatasetIterator *it, IteratorContext *c, Tensor **out, bool *end) {
    UnbatchIterator *u = (UnbatchIterator *)it;
    int n = it->dataset->component_count;
    Error *err = NULL;
    while (!err && !*end && u->at >= u->size) err = fetch_batch(u, c, end);
    if (err || *end) return err;
    for (int i = 0; !err && i < n; i++) err = tensor_row(u->batch[i], u->at, &out[i]);
    if (!err) u->at++;
    return err;
}

static void stop_unbatch(DatasetIterator *it) {
    tuple_free(((UnbatchIterator *)it)->batch, it->dataset->component_count);
}

static Error *save_unbatch(DatasetIterator *it, IteratorState *s) {
    UnbatchIterator *u = (UnbatchIterator *)it;
    bool open = u->at < u->size;
    state_put_int(s, open);
    Error *err = open ? state_put_element(s, u->batch, it->dataset->component_count) : NULL;
    if (open) state_put_int(s, u->at);
    return err ? err : iterator_save_input(it, s);
}

static Error *restore_unbatch(DatasetIterator *it, IteratorContext *c, IteratorState *s) {
    UnbatchIterator *u = (UnbatchIterator *)it;
    int64_t open = 0;
    Error *err = state_get_range(s, 0, 1, &open);
    if (!err && open) {
        err = state_get_element(s, it->dataset->types, it->dataset->component_count, u->batch);
        if (!err) err = check_batch(u);
        if (!err) err = state_get_range(s, 0, u->size, &u->at);
    }
    return err ? err : iterator_restore_input(it, c, s);
}

static int64_t count_unbatched(const Dataset *d) {
    int64_t n = dataset_cardinality(d->inputs[0]), rows = n < 0 ? -1 : dataset_origin_rows(d->inputs[0]), all;
    if (n < 0) return n;
    return rows > 0 && !__builtin_mul_overflow(n, rows, &all) ? all : CARDINALITY_UNKNOWN;
}

static const DatasetKind unbatch_kind = {.name = "Unbatch",
                                         .cardinality = count_unbatched,
                                         .iterator_size = sizeof(UnbatchIterator),
                                         .start = start_unbatch,
                                         .next = next_unbatched,
                                         .save = save_unbatch,
                                         .restore = restore_unbatch,
                                         .stop = stop_unbatch};

static Error *run_unbatch(KernelContext *k) {
    Dataset *in = NULL;
    Error *err = kernel_dataset(k, 0, &in);
    if (!err) kernel_set_dataset(k, 0, dataset_like(&unbatch_kind, in));
    return err;
}

/* ---- Rebatch: rows, batched again ---- */

typedef struct RebatchIterator {
    DatasetIterator base;
    int64_t at; /* which size comes next */
} RebatchIterator;

/* No rows, like those of the batch that was read last, or else of the next one: without any there is no end of these. */
static Error *batch_of_nothing(DatasetIterator *it, IteratorContext *c, Tensor **out, bool *end) {
    UnbatchIterator *u = (UnbatchIterator *)it->input;
    *end = !u;
    Error *err = iterator_cancelled(c);
    if (!err && !*end && !u->batch[0]) err = fetch_batch(u, c, end);
    for (int i = 0; !err && !*end && i < it->dataset->component_count; i++) {
        Shape shape = u->batch[i]->shape;
        shape.dims[0] = 0;
        err = tensor_new(u->batch[i]->dtype, &shape, &out[i]);
    }
    return err;
}

static Error *next_rebatched(DatasetIterator *it, IteratorContext *c, Tensor **out, bool *end) {
    RebatchIterator *r = (RebatchIterator *)it;
    BatchDataset *d = (BatchDataset *)it->dataset;
    int64_t size = d->sizes[r->at];
    r->at = (r->at + 1) % d->size_count;
    return size ? batch_of(it, c, size, out, end) : batch_of_nothing(it, c, out, end);
}

static Error *save_rebatch(DatasetIterator *it, IteratorState *s) {
    state_put_int(s, ((RebatchIterator *)it)->at);
    return iterator_save_input(it, s);
}

static Error *restore_rebatch(DatasetIterator *it, IteratorContext *c, IteratorState *s) {
    Error *err = state_get_range(s, 0, ((BatchDataset *)it->dataset)->size_count - 1, &((RebatchIterator *)it)->at);
    return err ? err : iterator_restore_input(it, c, s);
}

static const DatasetKind rebatch_kind = {.name = "Rebatch",
                                         .size = sizeof(BatchDataset),
                                         .iterator_size = sizeof(RebatchIterator),
                                         .start = iterator_start_input,
                                         .next = next_rebatched,
                                         .save = save_rebatch,
                                         .restore = restore_rebatch,
                                         .destroy = destroy_batch};

static Error *run_rebatch(KernelContext *k) {
    Dataset *in = NULL;
    bool drop = false;
    const Tensor *sizes = k->in[1];
    Error *err = kernel_dataset(k, 0, &in);
    if (!err && (sizes->shape.rank > 1 || sizes->count < 1))
        err = error_invalid("`batch_sizes` must be a scalar or a vector.");
    for (int64_t i = 0; !err && i < sizes->count; i++)
        if (tensor_i64(sizes)[i] < 0) err = error_invalid("Batch size must not be negative.");
    if (!err) err = kernel_bool(k, 2, "drop_remainder", &drop);
    if (err) return err;
    Dataset *rows = dataset_like(&unbatch_kind, in);
    BatchDataset *d = (BatchDataset *)dataset_like(&rebatch_kind, rows);
    d->drop_remainder = drop;
    d->size_count = sizes->count;
    d->sizes = xmalloc(tensor_bytes(sizes));
    memcpy(d->sizes, sizes->data, tensor_bytes(sizes));
    kernel_set_dataset(k, 0, &d->base);
    dataset_unref(rows);
    return NULL;
}

const KernelDef dataset_batch_cpu[] = {
    {"BatchDataset", .run = run_batch},
    {"BatchDatasetV2", .run = run_batch},
    {"ParallelBatchDataset", .run = run_parallel_batch},
    {"PaddedBatchDataset", .run = run_padded_batch},
    {"PaddedBatchDatasetV2", .run = run_padded_batch},
    {"UnbatchDataset", .run = run_unbatch},
    {"ExperimentalUnbatchDataset", .run = run_unbatch},
    {"RebatchDatasetV2", .run = run_rebatch},
    {0},
};
