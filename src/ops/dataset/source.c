/* source.c: datasets from tensors, ranges and random numbers. */
#include <stdlib.h>

#include "base/memory.h"
#include "base/rng.h"
#include "ops/dataset/dataset.h"
#include "ops/dataset/seed_generator.h"
#include "ops/elements.h"
#include "ops/op_list.h"
#include "ops/tensor_list.h"

const OpDef dataset_source_ops[] = {
    {"TensorDataset", "components: Toutput_types -> handle: variant",
     "Toutput_types: list(type) >= 1; output_shapes: list(shape) >= 1; metadata: string = ''", OP_STATEFUL},
    {"TensorSliceDataset", "components: Toutput_types -> handle: variant",
     "Toutput_types: list(type) >= 1; output_shapes: list(shape) >= 1; is_files: bool = false; metadata: string = "
     "''; replicate_on_split: bool = false",
     OP_STATEFUL},
    {"SparseTensorSliceDataset", "indices: int64, values: Tvalues, dense_shape: int64 -> handle: variant",
     "Tvalues: type", OP_STATEFUL},
    {"RangeDataset", "start: int64, stop: int64, step: int64 -> handle: variant",
     "output_types: list(type) >= 1; output_shapes: list(shape) >= 1; metadata: string = ''; replicate_on_split: "
     "bool = false",
     OP_STATEFUL},
    {"RandomDataset", "seed: int64, seed2: int64 -> handle: variant",
     "output_types: list(type) >= 1; output_shapes: list(shape) >= 1; metadata: string = ''", OP_STATEFUL},
    {"RandomDatasetV2", "seed: int64, seed2: int64, seed_generator: resource -> handle: variant",
     "rerandomize_each_iteration: bool = false; output_types: list(type) >= 1; output_shapes: list(shape) >= 1; "
     "metadata: string = ''",
     OP_STATEFUL},
    {"ExperimentalRandomDataset", "seed: int64, seed2: int64 -> handle: variant",
     "output_types: list(type) >= 1; output_shapes: list(shape) >= 1", OP_STATEFUL},
    {"ListDataset", "tensors: Tinput_types -> handle: variant",
     "Tinput_types: list(type) >= 1; output_types: list(type) >= 1; output_shapes: list(shape) >= 1; metadata: "
     "string = ''",
     OP_STATEFUL},
    {0},
};

/* ---- Tensors: one element; slices: one for each row ---- */

typedef struct TensorsDataset {
    Dataset base;
    Tensor **tensors;
    int tensor_count;
    int64_t rows;
} TensorsDataset;

typedef struct CountIterator {
    DatasetIterator base;
    int64_t next;
} CountIterator;

static void destroy_tensors(Dataset *d) {
    TensorsDataset *t = (TensorsDataset *)d;
    tuple_free(t->tensors, t->tensor_count);
}

static int64_t count_rows(const Dataset *d) {
    return ((const TensorsDataset *)d)->rows;
}

static Error *next_tensors(DatasetIterator *it, IteratorContext *c, Tensor **out, bool *end) {
    TensorsDataset *d = (TensorsDataset *)it->dataset;
    CountIterator *i = (CountIterator *)it;
    (void)c;
    *end = i->next >= d->rows;
    if (*end) return NULL;
    i->next++;
    tuple_copy(out, d->tensors, d->tensor_count);
    return NULL;
}

static Error *next_slice(DatasetIterator *it, IteratorContext *c, Tensor **out, bool *end) {
    TensorsDataset *d = (TensorsDataset *)it->dataset;
    CountIterator *i = (CountIterator *)it;
    Error *err = NULL;
    (void)c;
    *end = i->next >= d->rows;
    if (*end) return NULL;
    for (int j = 0; !err && j < d->tensor_count; j++) err = tensor_row(d->tensors[j], i->next, &out[j]);
    i->next++;
    return err;
}

static Error *next_in_list(DatasetIterator *it, IteratorContext *c, Tensor **out, bool *end) {
    TensorsDataset *d = (TensorsDataset *)it->dataset;
    CountIterator *i = (CountIterator *)it;
    (void)c;
    *end = i->next >= d->rows;
    if (*end) return NULL;
    tuple_copy(out, d->tensors + i->next * it->dataset->component_count, it->dataset->component_count);
    i->next++;
    return NULL;
}

static Error *save_count(DatasetIterator *it, IteratorState *s) {
    state_put_int(s, ((CountIterator *)it)->next);
    return NULL;
}

static Error *restore_count(DatasetIterator *it, IteratorContext *c, IteratorState *s) {
    (void)c;
    return state_get_range(s, 0, INT64_MAX, &((CountIterator *)it)->next);
}

#define TENSORS(kind_name, next_fn)                                                                 \
    {                                                                                               \
        .name = kind_name, .size = sizeof(TensorsDataset), .iterator_size = sizeof(CountIterator),  \
        .destroy = destroy_tensors, .cardinality = count_rows, .next = next_fn, .save = save_count, \
        .restore = restore_count                                                                    \
    }
static const DatasetKind tensors_kind = TENSORS("Tensor", next_tensors);
static const DatasetKind slices_kind = TENSORS("TensorSlice", next_slice);
static const DatasetKind list_kind = TENSORS("List", next_in_list);

static Error *make_tensors(KernelContext *k, const DatasetKind *kind, const char *types, TensorsDataset **out) {
    Dataset *d = NULL;
    Error *err = dataset_from_attr(k, kind, types, NULL, 0, &d);
    if (err) return err;
    *out = (TensorsDataset *)d;
    (*out)->tensors = tuple_new(k->input_count);
    (*out)->tensor_count = k->input_count;
    tuple_copy((*out)->tensors, k->in, k->input_count);
    return NULL;
}

static Error *run_tensors(KernelContext *k) {
    TensorsDataset *d = NULL;
    Error *err = make_tensors(k, &tensors_kind, "Toutput_types", &d);
    if (err) return err;
    d->rows = 1;
    kernel_set_dataset(k, 0, &d->base);
    return NULL;
}

static Error *run_slices(KernelContext *k) {
    for (int i = 0; i < k->input_count; i++) {
        if (k->in[i]->shape.rank < 1) return error_invalid("All components must be at least 1-dimensional");
        if (k->in[i]->shape.dims[0] != k->in[0]->shape.dims[0])
            return error_invalid("All components must have the same size in the 0th dimension");
    }
    TensorsDataset *d = NULL;
    Error *err = make_tensors(k, &slices_kind, "Toutput_types", &d);
    if (err) return err;
    d->rows = k->in[0]->shape.dims[0];
    kernel_set_dataset(k, 0, &d->base);
    return NULL;
}

/* The inputs are the elements one after another, each of all components. */
static Error *run_list(KernelContext *k) {
    TensorsDataset *d = NULL;
    Error *err = make_tensors(k, &list_kind, "output_types", &d);
    if (err) return err;
    int n = d->base.component_count;
    bool fits = n > 0 && k->input_count % n == 0;
    for (int i = 0; fits && i < k->input_count; i++) fits = k->in[i]->dtype == d->base.types[i % n];
    d->rows = n ? k->input_count / n : 0;
    if (fits) {
        kernel_set_dataset(k, 0, &d->base);
        return NULL;
    }
    dataset_unref(&d->base);
    return error_invalid("The %d tensors of a ListDataset do not make elements of its output_types", k->input_count);
}

/* ---- Sparse slices: element i is the sparse tensor of all entries whose first index is i ---- */

static Error *next_sparse(DatasetIterator *it, IteratorContext *c, Tensor **out, bool *end) {
    TensorsDataset *d = (TensorsDataset *)it->dataset;
    CountIterator *i = (CountIterator *)it;
    const Tensor *indices = d->tensors[0], *values = d->tensors[1], *shape = d->tensors[2];
    (void)c;
    *end = i->next >= d->rows;
    if (*end) return NULL;
    int64_t n = indices->shape.dims[0], rank = indices->shape.dims[1], from = 0, to;
    while (from < n && tensor_i64(indices)[from * rank] < i->next) from++;
    for (to = from; to < n && tensor_i64(indices)[to * rank] == i->next;) to++;
    i->next++;
    Shape matrix = shape_matrix(to - from, rank - 1), vector = shape_vector(to - from), dims = shape_vector(rank - 1);
    Error *err = tensor_new(DT_INT64, &matrix, &out[0]);
    if (!err) err = tensor_new(values->dtype, &vector, &out[1]);
    if (!err) err = tensor_new(DT_INT64, &dims, &out[2]);
    if (err) return err;
    for (int64_t e = from; e < to; e++)
        elements_copy(DT_INT64, tensor_i64(out[0]) + (e - from) * (rank - 1), tensor_i64(indices) + e * rank + 1,
                      rank - 1);
    elements_copy(values->dtype, out[1]->data, (const char *)values->data + (size_t)from * dtype_size(values->dtype),
                  to - from);
    elements_copy(DT_INT64, out[2]->data, tensor_i64(shape) + 1, rank - 1);
    return NULL;
}

static const DatasetKind sparse_kind = TENSORS("SparseTensorSlice", next_sparse);

static Error *run_sparse_slices(KernelContext *k) {
    const Tensor *indices = k->in[0], *values = k->in[1], *shape = k->in[2];
    if (indices->shape.rank != 2)
        return error_invalid("Input indices must be a matrix. Got: %s", shape_text(&indices->shape).text);
    if (values->shape.rank != 1)
        return error_invalid("Input values must be a vector. Got: %s", shape_text(&values->shape).text);
    if (shape->shape.rank != 1)
        return error_invalid("Input shape must be a vector. Got: %s", shape_text(&shape->shape).text);
    int64_t n = indices->shape.dims[0], rank = indices->shape.dims[1];
    if (values->count != n)
        return error_invalid(
            "Number of values must match first dimension of indices. Got %lld values, indices shape: %s",
            (long long)values->count, shape_text(&indices->shape).text);
    if (shape->count != rank)
        return error_invalid(
            "Number of dimensions must match second dimension of indices. Got %lld dimensions, indices shape: %s",
            (long long)shape->count, shape_text(&indices->shape).text);
    if (rank < 1) return error_invalid("The shape argument requires at least one element.");
    for (int64_t i = 1; i < n; i++)
        if (tensor_i64(indices)[i * rank] < tensor_i64(indices)[(i - 1) * rank])
            return error_unimplemented(
                "The SparseTensor must be ordered in the batch dimension; handling arbitrarily ordered input is not "
                "currently "
                "supported.");
    DataType types[] = {DT_INT64, values->dtype, DT_INT64};
    TensorsDataset *d = (TensorsDataset *)dataset_new(&sparse_kind, types, 3, NULL, 0);
    d->tensors = tuple_new(3);
    d->tensor_count = 3;
    tuple_copy(d->tensors, k->in, 3);
    d->rows = tensor_i64(shape)[0];
    kernel_set_dataset(k, 0, &d->base);
    return NULL;
}

/* ---- Ranges ---- */

typedef struct RangeDataset {
    Dataset base;
    int64_t start, stop, step;
} RangeDataset;

static int64_t count_range(const Dataset *d) {
    const RangeDataset *r = (const RangeDataset *)d;
    if (r->step > 0)
        return r->start >= r->stop ? 0
                                   : (int64_t)(((uint64_t)r->stop - (uint64_t)r->start - 1) / (uint64_t)r->step + 1);
    return r->start <= r->stop ? 0
                               : (int64_t)(((uint64_t)r->start - (uint64_t)r->stop - 1) / (0 - (uint64_t)r->step) + 1);
}

/* One up to the largest number has no end for TensorFlow. */
static int64_t range_cardinality(const Dataset *d) {
    return ((const RangeDataset *)d)->stop == INT64_MAX ? CARDINALITY_INFINITE : count_range(d);
}

static Error *next_in_range(DatasetIterator *it, IteratorContext *c, Tensor **out, bool *end) {
    const RangeDataset *r = (const RangeDataset *)it->dataset;
    CountIterator *i = (CountIterator *)it;
    (void)c;
    *end = i->next >= count_range(it->dataset);
    if (*end) return NULL;
    int64_t v = (int64_t)((uint64_t)r->start + (uint64_t)i->next++ * (uint64_t)r->step);
    DataType type = it->dataset->types[0];
    if (type == DT_INT64) {
        out[0] = tensor_scalar_i64(v);
        return NULL;
    }
    Error *err = tensor_new(type, &SHAPE_SCALAR, &out[0]);
    if (err) return err;
    switch (type) {
        case DT_INT32:
            *tensor_i32(out[0]) = (int32_t)v;
            break;
        case DT_UINT32:
            *(uint32_t *)out[0]->data = (uint32_t)v;
            break;
        case DT_UINT64:
            *(uint64_t *)out[0]->data = (uint64_t)v;
            break;
        case DT_INT16:
            *(int16_t *)out[0]->data = (int16_t)v;
            break;
        case DT_UINT16:
            *(uint16_t *)out[0]->data = (uint16_t)v;
            break;
        case DT_INT8:
            *(int8_t *)out[0]->data = (int8_t)v;
            break;
        case DT_UINT8:
            *tensor_u8(out[0]) = (uint8_t)v;
            break;
        case DT_FLOAT:
            *tensor_f32(out[0]) = (float)v;
            break;
        case DT_DOUBLE:
            *tensor_f64(out[0]) = (double)v;
            break;
        default:
            return error_invalid("Unsupported data type: %s", dtype_name(type));
    }
    return NULL;
}

static const DatasetKind range_kind = {.name = "Range",
                                       .size = sizeof(RangeDataset),
                                       .iterator_size = sizeof(CountIterator),
                                       .cardinality = range_cardinality,
                                       .next = next_in_range,
                                       .save = save_count,
                                       .restore = restore_count};

static Error *run_range(KernelContext *k) {
    int64_t v[3];
    static const char *const names[] = {"start", "stop", "step"};
    Error *err = NULL;
    for (int i = 0; !err && i < 3; i++) err = kernel_int64(k, i, names[i], &v[i]);
    if (!err && v[2] == 0) err = error_invalid("step must be a non-zero integer.");
    Dataset *d = NULL;
    if (!err) err = dataset_from_attr(k, &range_kind, "output_types", NULL, 0, &d);
    if (err) return err;
    if (d->component_count != 1) {
        dataset_unref(d);
        return error_invalid("A RangeDataset has one component");
    }
    RangeDataset *r = (RangeDataset *)d;
    r->start = v[0];
    r->stop = v[1];
    r->step = v[2];
    kernel_set_dataset(k, 0, d);
    return NULL;
}

/* ---- Random numbers ---- */

typedef struct RandomDataset {
    Dataset base;
    SeedGenerator *seeds; /* a reference */
} RandomDataset;

typedef struct RandomIterator {
    DatasetIterator base;
    uint64_t seed, seed2;
    PhiloxStream stream;
    int64_t drawn;
} RandomIterator;

static int64_t count_infinite(const Dataset *d) {
    (void)d;
    return CARDINALITY_INFINITE;
}

static Error *start_random(DatasetIterator *it, IteratorContext *c) {
    RandomIterator *r = (RandomIterator *)it;
    (void)c;
    seeds_draw(((const RandomDataset *)it->dataset)->seeds, &r->seed, &r->seed2);
    r->stream = philox_stream(philox_from_seeds(r->seed, r->seed2));
    return NULL;
}

static void destroy_random(Dataset *d) {
    seeds_unref(((RandomDataset *)d)->seeds);
}

static Error *next_random(DatasetIterator *it, IteratorContext *c, Tensor **out, bool *end) {
    RandomIterator *r = (RandomIterator *)it;
    (void)c;
    (void)end;
    r->drawn++;
    out[0] = tensor_scalar_i64((int64_t)philox_stream_next(&r->stream));
    return NULL;
}

static Error *save_random(DatasetIterator *it, IteratorState *s) {
    const RandomIterator *r = (const RandomIterator *)it;
    SeedState g = seeds_state(((const RandomDataset *)it->dataset)->seeds);
    int64_t numbers[] = {g.seed, g.seed2, g.drawn, (int64_t)r->seed, (int64_t)r->seed2, r->drawn};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) state_put_int(s, numbers[i]);
    return NULL;
}

static Error *restore_random(DatasetIterator *it, IteratorContext *c, IteratorState *s) {
    RandomIterator *r = (RandomIterator *)it;
    int64_t n[5] = {0};
    (void)c;
    Error *err = NULL;
    for (int i = 0; !err && i < 5; i++)
        err = i == 2 ? state_get_range(s, 0, INT64_MAX, &n[i]) : state_get_int(s, &n[i]);
    if (!err) err = state_get_range(s, 0, INT64_MAX, &r->drawn);
    if (err) return err;
    seeds_restore(((const RandomDataset *)it->dataset)->seeds, (SeedState){n[0], n[1], n[2]});
    r->seed = (uint64_t)n[3];
    r->seed2 = (uint64_t)n[4];
    Philox p = philox_from_seeds(r->seed, r->seed2);
    philox_skip(&p, (uint64_t)r->drawn / 4);
    r->stream = philox_stream(p);
    for (int64_t i = 0; i < r->drawn % 4; i++) philox_stream_next(&r->stream);
    return NULL;
}

static const DatasetKind random_kind = {.name = "Random",
                                        .size = sizeof(RandomDataset),
                                        .iterator_size = sizeof(RandomIterator),
                                        .destroy = destroy_random,
                                        .cardinality = count_infinite,
                                        .start = start_random,
                                        .next = next_random,
                                        .save = save_random,
                                        .restore = restore_random};

static Error *make_random(KernelContext *k, bool fixed, SeedGenerator *take) {
    int64_t seed = 0, seed2 = 0;
    Error *err = kernel_int64(k, 0, "seed", &seed);
    if (!err) err = kernel_int64(k, 1, "seed2", &seed2);
    if (err) {
        seeds_unref(take);
        return err;
    }
    DataType types[] = {DT_INT64};
    RandomDataset *d = (RandomDataset *)dataset_new(&random_kind, types, 1, NULL, 0);
    d->seeds = take ? take : seeds_new(seed, seed2, fixed);
    kernel_set_dataset(k, 0, &d->base);
    return NULL;
}

static Error *run_random(KernelContext *k) {
    return make_random(k, true, NULL);
}

static Error *run_random_v2(KernelContext *k) {
    SeedGenerator *seeds = NULL;
    bool again = false;
    Error *err = node_attr_bool(k->node, "rerandomize_each_iteration", &again);
    if (!err) err = kernel_seeds(k, 2, &seeds);
    return err ? err : make_random(k, !again, seeds);
}

const KernelDef dataset_source_cpu[] = {
    {"TensorDataset", .run = run_tensors},
    {"TensorSliceDataset", .run = run_slices},
    {"ListDataset", .run = run_list},
    {"SparseTensorSliceDataset", .run = run_sparse_slices},
    {"RangeDataset", .run = run_range},
    {"RandomDataset", .run = run_random},
    {"RandomDatasetV2", .run = run_random_v2},
    {"ExperimentalRandomDataset", .run = run_random},
    {0},
};
