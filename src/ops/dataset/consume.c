/* consume.c: ops that walk a dataset to its end within one step: ReduceDataset, DatasetToSingleElement,
 * DatasetToTFRecord; and its cardinality. */
#include <stdlib.h>

#include "base/file.h"
#include "base/memory.h"
#include "io/record.h"
#include "ops/dataset/dataset.h"
#include "ops/dataset/dataset_origin.h"
#include "ops/dataset/element_list.h"
#include "ops/tensor_list.h"
#include "ops/lookup_table.h"
#include "ops/op_list.h"

const OpDef dataset_consume_ops[] = {
    {"ReduceDataset",
     "input_dataset: variant, initial_state: Tstate, other_arguments: Targuments -> components: output_types",
     "f: func; Tstate: list(type) >= 1; Targuments: list(type) >= 0; output_types: list(type) >= 1; output_shapes: "
     "list(shape) >= 1; use_inter_op_parallelism: bool = true; metadata: string = ''",
     OP_STATEFUL},
    {"DatasetToSingleElement", "dataset: variant -> components: output_types",
     "output_types: list(type) >= 1; output_shapes: list(shape) >= 1; metadata: string = ''", OP_STATEFUL},
    {"GetElementAtIndex", "dataset: variant, index: int64 -> components: output_types",
     "output_types: list(type) >= 1; output_shapes: list(shape) >= 1", 0},
    {"ExperimentalDatasetToTFRecord", "input_dataset: variant, filename: string, compression_type: string ->", "",
     OP_STATEFUL},
    {"DatasetToTFRecord", "input_dataset: variant, filename: string, compression_type: string ->", "", OP_STATEFUL},
    {"DatasetCardinality", "input_dataset: variant -> cardinality: int64", "cardinality_options: string = ''", 0},
    {"ExperimentalDatasetCardinality", "input_dataset: variant -> cardinality: int64", "", 0},
    {"InitializeTableFromDataset", "table_handle: resource, dataset: variant ->", "", OP_STATEFUL},
    {0},
};

/* A walk that belongs to the kernel. */
typedef struct Walk {
    IteratorContext context;
    DatasetIterator *it;
    int count;
} Walk;

static Error *walk_begin(KernelContext *k, int input, const char *root, bool by_place, Walk *w) {
    Dataset *d = NULL;
    *w = (Walk){.context = {.cancel = kernel_cancel(k), .root = root, .by_place = by_place}};
    Error *err = kernel_dataset(k, input, &d);
    if (err) return err;
    w->count = d->component_count;
    w->context.scope = closure_scope_new(k);
    return dataset_iterate(d, &w->context, &w->it);
}

static void walk_end(KernelContext *k, Walk *w, Error *err) {
    iterator_free(w->it);
    closure_scope_free(w->context.scope);
    if (!err) {
        err = k->error;
        k->error = NULL;
    }
    kernel_done(k, err);
}

static Error *set_outputs(KernelContext *k, Tensor **element, int count) {
    if (count != k->output_count)
        return error_invalid("The dataset gives %d components, %d are expected", count, k->output_count);
    for (int i = 0; i < count; i++)
        if (element[i]->dtype != kernel_output_type(k, i))
            return error_invalid("Component %d is %s, expected %s", i, dtype_name(element[i]->dtype),
                                 dtype_name(kernel_output_type(k, i)));
    for (int i = 0; i < count; i++) {
        kernel_set_output(k, i, element[i]);
        element[i] = NULL;
    }
    return NULL;
}

/* ---- Reduce ---- */

static void reduce(KernelContext *k, void *arg) {
    Closure *f = arg;
    Walk w;
    Error *err = walk_begin(k, 0, "ReduceIterator", false, &w);
    int n = k->output_count;
    Tensor **args = tuple_new(n + w.count), **rets = tuple_new(n);
    DataType *types = xcalloc((size_t)n + 1, sizeof *types);
    for (int i = 0; i < n; i++) types[i] = kernel_output_type(k, i);
    tuple_copy(args, k->in + 1, n);
    for (bool end = false; !err && !end;) {
        err = iterator_next(w.it, &w.context, args + n, &end);
        if (!err && !end) err = dataset_call(f, &w.context, args, n + w.count, types, n, rets);
        if (err || end) break;
        tuple_clear(args, n + w.count);
        tuple_move(args, rets, n);
    }
    if (!err) err = set_outputs(k, args, n);
    tuple_free(args, n + w.count);
    tuple_free(rets, n);
    free(types);
    iterator_free(w.it);
    w.it = NULL;
    closure_unref(f);
    walk_end(k, &w, err);
}

static Error *run_reduce(KernelContext *k) {
    DataType *types = NULL;
    int count = 0;
    Closure *f = NULL;
    Error *err = node_attr_types(k->node, "Tstate", &types, &count);
    free(types);
    if (!err && count != k->output_count)
        err = error_invalid("Tstate has %d types, output_types %d", count, k->output_count);
    if (!err) err = kernel_closure(k, "f", "Targuments", 1 + count, &f, NULL);
    if (!err) kernel_block(k, reduce, f);
    return err;
}

/* ---- Single element ---- */

static void single_element(KernelContext *k, void *arg) {
    Walk w;
    bool end = false;
    (void)arg;
    Error *err = walk_begin(k, 0, "SingleElementIterator", false, &w);
    Tensor **element = tuple_new(w.count), **second = tuple_new(w.count);
    if (!err) err = iterator_next(w.it, &w.context, element, &end);
    if (!err && end) err = error_invalid("Dataset was empty.");
    if (!err) err = iterator_next(w.it, &w.context, second, &end);
    if (!err && !end) err = error_invalid("Dataset had more than one element.");
    if (!err) err = set_outputs(k, element, w.count);
    tuple_free(element, w.count);
    tuple_free(second, w.count);
    walk_end(k, &w, err);
}

static Error *run_single_element(KernelContext *k) {
    kernel_block(k, single_element, NULL);
    return NULL;
}

/* ---- One element by its place ---- */

/* Kinds whose elements TensorFlow has by their place when it knows how many there are. */
static bool has_places(const Dataset *d) {
    static const char *const names[] = {"Batch", "Cache", "Concatenate", "Map", "ParallelMap", "ParallelBatch", "Prefetch", "Repeat", "Shard", "Shuffle", "Skip", "Take", "Unbatch", "Zip"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (str_is(str_of(d->kind->name), names[i])) return true;
    return false;
}

/* How many places there are; a map is taken to have all those of its input, which nobody may rely on who pulls. */
static int64_t count_places(const Dataset *d) {
    int64_t n = dataset_cardinality(d), rows, all;
    if (n != CARDINALITY_UNKNOWN) return n;
    if (d->kind->is_map) return count_places(d->inputs[0]);
    if (!str_is(str_of(d->kind->name), "Unbatch")) return n;
    n = count_places(d->inputs[0]);
    rows = dataset_origin_rows(d->inputs[0]);
    return n < 0 ? n : rows > 0 && !__builtin_mul_overflow(n, rows, &all) ? all : CARDINALITY_UNKNOWN;
}

static Error *check_place(const Dataset *d, int64_t index) {
    int64_t n = count_places(d);
    if (n == CARDINALITY_INFINITE || (n == CARDINALITY_UNKNOWN && has_places(d)))
        return error_new(CODE_FAILED_PRECONDITION,
                         "Dataset of type %sDatasetOp::Dataset has %s cardinality, which does not support random "
                         "access.",
                         d->kind->name, n == CARDINALITY_INFINITE ? "infinite" : "unknown");
    if (n == CARDINALITY_UNKNOWN)
        return error_unimplemented("Random access is not implemented for dataset %sDatasetOp::Dataset", d->kind->name);
    if (index < 0 || index >= n)
        return error_new(CODE_OUT_OF_RANGE, "Index out of range [0, %lld):%lld", (long long)n, (long long)index);
    Error *err = NULL;
    for (int i = 0; !err && i < d->input_count && str_is(str_of(d->kind->name), "Zip"); i++) err = check_place(d->inputs[i], index);
    return err;
}

/* Walks there: those before it are made and dropped. */
static void element_at(KernelContext *k, void *arg) {
    Walk w = {0};
    Dataset *d = NULL;
    bool end = false;
    int64_t index = 0;
    (void)arg;
    Error *err = kernel_int64(k, 1, "index", &index);
    if (!err) err = kernel_dataset(k, 0, &d);
    if (!err) err = check_place(d, index);
    if (!err) err = walk_begin(k, 0, NULL, true, &w);
    Tensor **element = tuple_new(w.count);
    for (int64_t i = 0; !err && !end && i <= index; i++) {
        tuple_clear(element, w.count);
        err = iterator_next(w.it, &w.context, element, &end);
    }
    if (!err && end) err = error_new(CODE_OUT_OF_RANGE, "The dataset ended before index %lld", (long long)index);
    if (!err) err = set_outputs(k, element, w.count);
    tuple_free(element, w.count);
    walk_end(k, &w, err);
}

static Error *run_element_at(KernelContext *k) {
    kernel_block(k, element_at, NULL);
    return NULL;
}

/* ---- To a file ---- */

static Error *write_records(Walk *w, RecordWriter *writer) {
    Tensor **element = tuple_new(w->count);
    Error *err = NULL;
    for (bool end = false; !err && !end;) {
        err = iterator_next(w->it, &w->context, element, &end);
        if (!err && !end && w->count != 1) err = error_invalid("ToTFRecordOp currently only support datasets of 1 single column, but got %d", w->count);
        if (!err && !end && element[0]->dtype != DT_STRING) err = error_invalid("ToTFRecordOp currently only supports DT_STRING dataypes, but got %s", dtype_name(element[0]->dtype));
        if (!err && !end && element[0]->count != 1) err = error_invalid("DatasetToTFRecord needs a dataset of scalar strings");
        if (!err && !end) err = record_writer_add(writer, tstring_str(tensor_str(element[0])));
        tuple_clear(element, w->count);
    }
    free(element);
    return err ? err : record_writer_finish(writer);
}

static void to_tfrecord(KernelContext *k, void *arg) {
    Walk w;
    Str path = STR(""), compression = STR("");
    Compression how = COMPRESSION_NONE;
    RecordWriter *writer = NULL;
    (void)arg;
    Error *err = walk_begin(k, 0, NULL, false, &w);
    if (!err) err = kernel_string(k, 1, "filename", &path);
    if (!err) err = kernel_string(k, 2, "compression_type", &compression);
    if (!err) err = record_compression_from_name(compression, &how);
    char *name = str_dup(path);
    if (!err) err = record_writer_open(&file_system_local, name, how, false, &writer);
    if (!err) err = write_records(&w, writer);
    record_writer_close(writer);
    free(name);
    walk_end(k, &w, err);
}

static Error *run_to_tfrecord(KernelContext *k) {
    kernel_block(k, to_tfrecord, NULL);
    return NULL;
}

/* ---- Into a lookup table ---- */

/* All elements as one tensor of keys and one of values: a table that cannot change takes its content at once. */
static Error *import_elements(LookupTable *table, const ElementList *l) {
    if (l->count == 0) return NULL;
    Tensor *both[2] = {NULL, NULL};
    Tensor **column = xcalloc((size_t)l->count, sizeof *column);
    Error *err = NULL;
    for (int side = 0; !err && side < 2; side++) {
        const Tensor *first = l->items[0][side];
        for (int64_t i = 0; !err && i < l->count; i++) {
            column[i] = l->items[i][side];
            if (!shape_eq(&column[i]->shape, &first->shape)) err = error_invalid("The elements of a table's dataset differ in shape");
        }
        if (!err) err = tensors_stack(column, l->count, first->dtype, &first->shape, &both[side]);
    }
    if (!err) err = lookup_check_types(table, both[0]->dtype, both[1]->dtype);
    if (!err) err = lookup_kind(table) == LOOKUP_FIXED ? lookup_import(table, both[0], both[1]) : lookup_insert(table, both[0], both[1]);
    free(column);
    tensor_unref(both[0]);
    tensor_unref(both[1]);
    return err;
}

static void fill_table(KernelContext *k, void *arg) {
    Walk w;
    LookupTable *table = arg;
    ElementList all = {0};
    Error *err = walk_begin(k, 1, NULL, false, &w);
    if (!err && w.count != 2) err = error_invalid("The dataset of a table must have two components, keys and values");
    for (bool end = false; !err && !end;) {
        Tensor **element = tuple_new(w.count);
        err = iterator_next(w.it, &w.context, element, &end);
        if (!err && !end)
            element_list_add(&all, element);
        else
            tuple_free(element, w.count);
    }
    if (!err) err = import_elements(table, &all);
    element_list_clear(&all, w.count);
    resource_unref((Resource *)table);
    walk_end(k, &w, err);
}

static Error *run_fill_table(KernelContext *k) {
    Resource *r = NULL;
    Error *err = kernel_resource(k, 0, &lookup_table_type, &r);
    if (!err) kernel_block(k, fill_table, r);
    return err;
}

/* ---- Cardinality ---- */

static Error *run_cardinality(KernelContext *k) {
    Dataset *d = NULL;
    Error *err = kernel_dataset(k, 0, &d);
    if (!err) kernel_set_output(k, 0, tensor_scalar_i64(dataset_cardinality(d)));
    return err;
}

const KernelDef dataset_consume_cpu[] = {
    {"ReduceDataset", .run = run_reduce, .flags = KERNEL_DEFERS},
    {"DatasetToSingleElement", .run = run_single_element, .flags = KERNEL_DEFERS},
    {"GetElementAtIndex", .run = run_element_at, .flags = KERNEL_DEFERS},
    {"DatasetToTFRecord", .run = run_to_tfrecord, .flags = KERNEL_DEFERS},
    {"ExperimentalDatasetToTFRecord", .run = run_to_tfrecord, .flags = KERNEL_DEFERS},
    {"DatasetCardinality", .run = run_cardinality},
    {"ExperimentalDatasetCardinality", .run = run_cardinality},
    {"InitializeTableFromDataset", .run = run_fill_table, .flags = KERNEL_DEFERS},
    {0},
};
