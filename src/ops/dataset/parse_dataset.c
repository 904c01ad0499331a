/* parse_dataset.c: ParseExampleDataset: vectors of serialised examples as their features, in the order of their names. */
#include <stdlib.h>

#include "base/memory.h"
#include "ops/dataset/dataset.h"
#include "ops/op_list.h"
#include "ops/parse_example.h"
#include "ops/ragged_variant.h"
#include "ops/sparse_tensor.h"

const OpDef dataset_parse_ops[] = {
    {"ParseExampleDataset", "input_dataset: variant, num_parallel_calls: int64, dense_defaults: Tdense -> handle: variant",
     "sparse_keys: list(string) >= 0; dense_keys: list(string) >= 0; sparse_types: list({float, int64, string}) >= 0; Tdense: "
     "list({float, int64, string}) >= 0; dense_shapes: list(shape) >= 0; output_types: list(type) >= 1; output_shapes: "
     "list(shape) >= 1; sloppy: bool = false; ragged_keys: list(string) >= 0 = []; ragged_value_types: list({float, int64, "
     "string}) >= 0 = []; ragged_split_types: list({int32, int64}) >= 0 = []",
     0},
    {"ParseExampleDatasetV2", "input_dataset: variant, num_parallel_calls: int64, dense_defaults: Tdense -> handle: variant",
     "sparse_keys: list(string) >= 0; dense_keys: list(string) >= 0; sparse_types: list({float, int64, string}) >= 0; Tdense: "
     "list({float, int64, string}) >= 0; dense_shapes: list(shape) >= 0; output_types: list(type) >= 1; output_shapes: "
     "list(shape) >= 1; deterministic: string = 'default'; ragged_keys: list(string) >= 0 = []; ragged_value_types: list({float, "
     "int64, string}) >= 0 = []; ragged_split_types: list({int32, int64}) >= 0 = []",
     0},
    {"ExperimentalParseExampleDataset",
     "input_dataset: variant, num_parallel_calls: int64, dense_defaults: Tdense -> handle: variant",
     "sparse_keys: list(string) >= 0; dense_keys: list(string) >= 0; sparse_types: list({float, int64, string}) >= 0; Tdense: "
     "list({float, int64, string}) >= 0; dense_shapes: list(shape) >= 0; output_types: list(type) >= 1; output_shapes: "
     "list(shape) >= 1; sloppy: bool = false",
     0},
    {0},
};

typedef struct ParseDataset {
    Dataset base;
    ParseState state;
    Tensor **defaults; /* of dense columns */
    int *place;        /* of each column: which component it is */
    ThreadPool *pool;
} ParseDataset;

static int column_count(const ParseState *s) {
    return s->sparse_count + s->dense_count + s->ragged_count;
}

static void destroy_parse(Dataset *base) {
    ParseDataset *d = (ParseDataset *)base;
    for (int i = 0; d->defaults && i < d->state.dense_count; i++) tensor_unref(d->defaults[i]);
    free(d->defaults);
    free(d->place);
    parse_state_clear(&d->state);
}

static int64_t parse_cardinality(const Dataset *d) {
    return dataset_cardinality(d->inputs[0]);
}

/* What parse_examples gave, column by column: sparse and ragged ones as variants. */
static Error *pack(const ParseDataset *d, Tensor **parsed, Tensor **out) {
    const ParseState *s = &d->state;
    int sparse = s->sparse_count, dense = s->dense_count, ragged = s->ragged_count;
    Error *err = NULL;
    for (int i = 0; i < sparse && !err; i++)
        err = sparse_variant(parsed[i], parsed[sparse + i], parsed[2 * sparse + i], &out[d->place[i]]);
    for (int i = 0; i < dense && !err; i++) out[d->place[sparse + i]] = tensor_ref(parsed[3 * sparse + i]);
    for (int i = 0; i < ragged && !err; i++) {
        Tensor *parts[] = {parsed[3 * sparse + dense + ragged + i], parsed[3 * sparse + dense + i]};
        Tensor **to = &out[d->place[sparse + dense + i]];
        Variant v = {0};
        err = tensor_new(DT_VARIANT, &SHAPE_SCALAR, to);
        if (!err) err = ragged_variant_decoder.decode(STR(""), parts, 2, &v);
        if (!err) tensor_variants(*to)[0] = v;
    }
    return err;
}

static Error *next_parsed(DatasetIterator *it, IteratorContext *c, Tensor **out, bool *end) {
    const ParseDataset *d = (const ParseDataset *)it->dataset;
    int n = parse_result_count(&d->state);
    Tensor *examples = NULL, **parsed = tuple_new(n);
    Error *err = iterator_next(it->input, c, &examples, end);
    if (!err && !*end && examples->shape.rank != 1) err = error_invalid("Expected serialized to be a vector");
    if (!err && !*end) err = parse_examples(&d->state, d->pool, examples, NULL, d->state.keys, d->defaults, parsed);
    if (!err && !*end) err = pack(d, parsed, out);
    tensor_unref(examples);
    tuple_free(parsed, n);
    return err;
}

static const DatasetKind parse_kind = {
    .name = "ParseExample", .size = sizeof(ParseDataset), .destroy = destroy_parse, .cardinality = parse_cardinality,
    .start = iterator_start_input, .next = next_parsed,
};

/* Columns in the order of their names. */
static Error *read_places(ParseDataset *d) {
    const ParseState *s = &d->state;
    int n = column_count(s);
    if (n != d->base.component_count) return error_invalid("There are %d features but %d components", n, d->base.component_count);
    d->place = xcalloc((size_t)n + 1, sizeof *d->place);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            int order = str_compare(s->keys[j], s->keys[i]);
            if (i != j && order == 0) return error_invalid("Feature %.*s is asked for twice", STR_ARG(s->keys[i]));
            d->place[i] += order < 0;
        }
    for (int i = 0; i < n; i++) {
        bool dense = i >= s->sparse_count && i < s->sparse_count + s->dense_count;
        DataType want = dense ? s->dense_types[i - s->sparse_count] : DT_VARIANT;
        if (d->base.types[d->place[i]] != want)
            return error_invalid("Feature %.*s is of type %s, not %s", STR_ARG(s->keys[i]), dtype_name(want), dtype_name(d->base.types[d->place[i]]));
    }
    return NULL;
}

static Error *read_inputs(KernelContext *k, ParseDataset *d) {
    int64_t parallel = 0;
    Error *err = parse_state_init(k->node, &d->state);
    if (!err) err = kernel_int64(k, 1, "num_parallel_calls", &parallel);
    if (!err && parallel <= 0 && parallel != -1) err = error_invalid("num_parallel_calls must be greater than zero.");
    if (!err && k->input_count != 2 + d->state.dense_count) err = error_invalid("dense_defaults and dense_keys do not agree");
    if (!err) err = read_places(d);
    if (err) return err;
    d->defaults = xcalloc((size_t)d->state.dense_count + 1, sizeof *d->defaults);
    for (int i = 0; i < d->state.dense_count; i++) d->defaults[i] = tensor_ref(k->in[2 + i]);
    const Dataset *in = d->base.inputs[0];
    return in->component_count == 1 && in->types[0] == DT_STRING ? NULL : error_invalid("Input dataset should be a dataset of vectors of strings");
}

static Error *run_parse(KernelContext *k) {
    Dataset *in = NULL, *d = NULL;
    Error *err = kernel_dataset(k, 0, &in);
    if (!err) err = dataset_from_attr(k, &parse_kind, "output_types", &in, 1, &d);
    if (err) return err;
    ((ParseDataset *)d)->pool = k->pool;
    err = read_inputs(k, (ParseDataset *)d);
    if (err)
        dataset_unref(d);
    else
        kernel_set_dataset(k, 0, d);
    return err;
}

const KernelDef dataset_parse_cpu[] = {
    {"ParseExampleDataset", .run = run_parse},
    {"ParseExampleDatasetV2", .run = run_parse},
    {"ExperimentalParseExampleDataset", .run = run_parse},
    {0},
};
