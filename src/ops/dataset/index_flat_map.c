/* index_flat_map.c: IndexFlatMapDataset: slices of mapped elements; a second function says which slice of which element
 * is at a place. */
#include <stdlib.h>

#include "base/memory.h"
#include "ops/dataset/dataset.h"
#include "ops/dataset/iterator_path.h"
#include "ops/elements.h"
#include "ops/op_list.h"
#include "ops/tensor_list.h"
#include "tensor/print.h"

const OpDef dataset_index_flat_map_ops[] = {
    {"IndexFlatMapDataset",
     "input_dataset: variant, map_func_other_args: Tmap_func_args, index_map_func_other_args: Tindex_map_func_args, "
     "output_cardinality: int64 -> handle: "
     "variant",
     "map_func: func; index_map_func: func; Tmap_func_args: list(type) >= 0; Tindex_map_func_args: list(type) >= 0; "
     "output_types: list(type) >= 1; "
     "output_shapes: list(shape) >= 1; metadata: string = ''",
     0},
    {0},
};

typedef struct IndexFlatMap {
    Dataset base; /* closure: maps an element to rows */
    Closure *index_map;
    int64_t count;
} IndexFlatMap;

typedef struct IndexFlatMapIterator {
    DatasetIterator base;
    int64_t given;   /* elements */
    int64_t element; /* of the input, whose rows these are */
    Tensor **rows;
    bool has_rows;
} IndexFlatMapIterator;

static void destroy_flat(Dataset *d) {
    closure_unref(((IndexFlatMap *)d)->index_map);
}

static int64_t count_flat(const Dataset *d) {
    return ((const IndexFlatMap *)d)->count;
}

static Error *start_flat(DatasetIterator *it, IteratorContext *c) {
    ((IndexFlatMapIterator *)it)->rows = tuple_new(it->dataset->component_count);
    return iterator_start_input(it, c);
}

static void stop_flat(DatasetIterator *it) {
    tuple_free(((IndexFlatMapIterator *)it)->rows, it->dataset->component_count);
}

/* "Tensor<type: int64 shape: [2] values: 1 2>" behind a message; takes it. */
static Error *with_tensor(Error *take, const Tensor *t) {
    StrBuf values = {0};
    print_values(&values, t, 3);
    Error *err = error_invalid("%s Tensor<type: %s shape: %s values: %.*s>", take->message, dtype_name(t->dtype),
                               shape_text(&t->shape).text, STR_ARG(strbuf_str(&values)));
    strbuf_clear(&values);
    error_free(take);
    return err;
}

static Error *index_of(const Tensor *t, int64_t *out) {
    bool wide = t->dtype == DT_INT64 || t->dtype == DT_UINT64;
    if (t->count < 1 || (!wide && t->dtype != DT_INT32 && t->dtype != DT_UINT32))
        return with_tensor(error_invalid("The `index_map_func` for `index_flat_map` is expected to return two "
                                         "int32/int64 values representing the element "
                                         "index and an offset within the element. Got:"),
                           t);
    *out = wide ? *tensor_i64(t) : *tensor_i32(t);
    return NULL;
}

/* Where the element of a place is. */
static Error *find_place(DatasetIterator *it, IteratorContext *c, int64_t place, int64_t *element, int64_t *row) {
    Tensor *arg = tensor_scalar_i64(place), *rets[2] = {0};
    Error *err = dataset_call(((IndexFlatMap *)it->dataset)->index_map, c, &arg, 1, NULL, 2, rets);
    if (!err) err = index_of(rets[0], element);
    if (!err) err = index_of(rets[1], row);
    tensor_unref(arg);
    tensor_unref(rets[0]);
    tensor_unref(rets[1]);
    return err;
}

static Error *map_next(DatasetIterator *it, IteratorContext *c, bool *end) {
    Dataset *d = it->dataset;
    IndexFlatMapIterator *i = (IndexFlatMapIterator *)it;
    int n = d->inputs[0]->component_count;
    Tensor **element = tuple_new(n);
    tuple_clear(i->rows, d->component_count);
    i->has_rows = false;
    Error *err = iterator_next(it->input, c, element, end);
    if (!err && !*end) {
        err = dataset_call(d->closure, c, element, n, d->types, d->component_count, i->rows);
        i->has_rows = !err;
    }
    tuple_free(element, n);
    return err;
}

static Error *take_row(const Tensor *rows, int64_t row, Tensor **out) {
    if (rows->shape.rank == 0) {
        *out = tensor_ref((Tensor *)rows);
        return NULL;
    }
    if (row < 0 || row >= rows->shape.dims[0])
        return with_tensor(error_invalid("`index_flat_map` got invalid `index_map_func` which returns offset %lld, but "
                                         "the input element has %lld elements:",
                                         (long long)row, (long long)rows->shape.dims[0]),
                           rows);
    return tensor_row(rows, row, out);
}

static Error *next_flat(DatasetIterator *it, IteratorContext *c, Tensor **out, bool *end) {
    IndexFlatMapIterator *i = (IndexFlatMapIterator *)it;
    int64_t element = 0, row = 0;
    Error *err = find_place(it, c, i->given, &element, &row);
    if (!err && (element > i->element || !i->has_rows)) {
        err = map_next(it, c, end);
        if (!err && !*end) i->element = element;
    }
    if (err || *end) return err;
    for (int j = 0; !err && j < it->dataset->component_count; j++) err = take_row(i->rows[j], row, &out[j]);
    if (!err) i->given++;
    return err;
}

static Error *save_flat(DatasetIterator *it, IteratorState *s) {
    (void)it, (void)s;
    return error_new(CODE_UNIMPLEMENTED, "TODO(b/325112575): Support save/load for index_flat_map.");
}

static Error *restore_flat(DatasetIterator *it, IteratorContext *c, IteratorState *s) {
    (void)c;
    return save_flat(it, s);
}

static const DatasetKind flat_kind = {.name = "IndexFlatMap",
                                      .size = sizeof(IndexFlatMap),
                                      .iterator_size = sizeof(IndexFlatMapIterator),
                                      .destroy = destroy_flat,
                                      .cardinality = count_flat,
                                      .start = start_flat,
                                      .next = next_flat,
                                      .save = save_flat,
                                      .restore = restore_flat,
                                      .stop = stop_flat};

static Error *run_flat(KernelContext *k) {
    Dataset *in = NULL, *d = NULL;
    int next = 1;
    Error *err = kernel_dataset(k, 0, &in);
    if (!err) err = dataset_from_attr(k, &flat_kind, "output_types", &in, 1, &d);
    if (err) return err;
    err = kernel_closure(k, "map_func", "Tmap_func_args", 1, &d->closure, &next);
    if (!err)
        err = kernel_closure(k, "index_map_func", "Tindex_map_func_args", next, &((IndexFlatMap *)d)->index_map, &next);
    if (!err) err = kernel_int64(k, next, "output_cardinality", &((IndexFlatMap *)d)->count);
    if (err)
        dataset_unref(d);
    else
        kernel_set_dataset(k, 0, d);
    return err;
}

const KernelDef dataset_index_flat_map_cpu[] = {
    {"IndexFlatMapDataset", .run = run_flat},
    {0},
};
