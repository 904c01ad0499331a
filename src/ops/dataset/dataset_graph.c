/* dataset_graph.c: what a dataset tells of how it was made: DatasetToGraph, GetOptions, DatasetFingerprint, ComputeBatchSize.

   GraphDef: node=1 library=2 versions=4. NodeDef: name=1 op=2 input=3 attr=5. VersionDef: producer=1. AttrValue: type=6 tensor=8 i=3. */
#include <stdlib.h>

#include "base/hashmap.h"
#include "graph/function.h"
#include "graph/op_def.h"
#include "ops/dataset/dataset.h"
#include "ops/dataset/dataset_origin.h"
#include "ops/op_list.h"
#include "proto/wire.h"
#include "tensor/tensor_proto.h"

const OpDef dataset_graph_ops[] = {
    {"DatasetToGraph", "input_dataset: variant -> graph: string",
     "stateful_whitelist: list(string) >= 0 = []; allow_stateful: bool = false; strip_device_assignment: bool = false", 0},
    {"DatasetToGraphV2", "input_dataset: variant -> graph: string", "external_state_policy: int = 0; strip_device_assignment: bool = false", 0},
    {"GetOptions", "input_dataset: variant -> serialized_options: string", "", 0},
    {"DatasetFingerprint", "input_dataset: variant -> fingerprint: uint64", "", 0},
    {"ComputeBatchSize", "input_dataset: variant -> batch_size: int64", "", 0},
    {0},
};

enum { PRODUCER = 2474, POLICY_FAIL = 2 };

/* ---- The graph ---- */

typedef struct GraphWriter {
    StrBuf graph;
    int count; /* of nodes */
    Error *err;
    bool refuses_state;
    const FunctionLibrary *functions; /* of the dataset met first that has some */
} GraphWriter;

static void put_attr(StrBuf *node, Str name, Str value) {
    StrBuf entry = {0};
    wire_put_bytes(&entry, 1, name);
    wire_put_bytes(&entry, 2, value);
    wire_put_bytes(node, 5, strbuf_str(&entry));
    strbuf_clear(&entry);
}

static void put_type_attr(StrBuf *node, const char *name, DataType type) {
    StrBuf value = {0};
    wire_put_uint(&value, 6, (uint64_t)type);
    put_attr(node, str_of(name), strbuf_str(&value));
    strbuf_clear(&value);
}

/* Adds the node, whose inputs and attributes `body` has; its name goes to `name`. */
static void put_node(GraphWriter *w, Str op, StrBuf *body, StrBuf *name) {
    StrBuf node = {0};
    strbuf_addf(name, "%.*s/_%d", STR_ARG(op), w->count++);
    wire_put_bytes(&node, 1, strbuf_str(name));
    wire_put_bytes(&node, 2, op);
    strbuf_add(&node, strbuf_str(body));
    wire_put_bytes(&w->graph, 1, strbuf_str(&node));
    strbuf_clear(&node);
}

static void put_constant(GraphWriter *w, const Tensor *t, StrBuf *name) {
    StrBuf body = {0}, proto = {0}, value = {0};
    tensor_proto_encode(t, &proto);
    wire_put_bytes(&value, 8, strbuf_str(&proto));
    put_type_attr(&body, "dtype", t->dtype);
    put_attr(&body, STR("value"), strbuf_str(&value));
    put_node(w, STR("Const"), &body, name);
    strbuf_clear(&body);
    strbuf_clear(&proto);
    strbuf_clear(&value);
}

static void put_dataset(GraphWriter *w, const Dataset *d, StrBuf *name);

static void put_input(GraphWriter *w, const Tensor *t, StrBuf *name) {
    Dataset *inner = NULL;
    if (t->dtype == DT_VARIANT && !(w->err = tensor_dataset_wrapped(t, &inner)))
        put_dataset(w, inner, name);
    else if (!w->err)
        put_constant(w, t, name);
}

static void put_dataset(GraphWriter *w, const Dataset *d, StrBuf *name) {
    StrBuf body = {0};
    const Tensor *input;
    Str attr, value;
    if (!d->origin) w->err = error_unimplemented("A dataset of kind %s cannot be written as a graph", d->kind->name);
    for (int i = 0; !w->err && (input = dataset_origin_input(d, i)); i++) {
        StrBuf input_name = {0};
        put_input(w, input, &input_name);
        wire_put_bytes(&body, 3, strbuf_str(&input_name));
        strbuf_clear(&input_name);
    }
    for (int i = 0; !w->err && dataset_origin_attr(d, i, &attr, &value); i++)
        if (!str_starts(attr, STR("_"))) put_attr(&body, attr, value);
    if (!w->err && dataset_origin_functions(d) && !w->functions) w->functions = dataset_origin_functions(d);
    if (!w->err && w->refuses_state) w->err = dataset_origin_check_state(d);
    if (!w->err) put_node(w, dataset_origin_op(d), &body, name);
    strbuf_clear(&body);
}

static void put_ending(GraphWriter *w, Str dataset) {
    StrBuf node = {0}, index = {0}, library = {0}, versions = {0};
    wire_put_bytes(&node, 1, STR("dataset"));
    wire_put_bytes(&node, 2, STR("_Retval"));
    wire_put_bytes(&node, 3, dataset);
    put_type_attr(&node, "T", DT_VARIANT);
    wire_put_uint(&index, 3, 0);
    put_attr(&node, STR("index"), strbuf_str(&index));
    wire_put_bytes(&w->graph, 1, strbuf_str(&node));
    if (w->functions) function_library_encode(w->functions, &library);
    wire_put_bytes(&w->graph, 2, strbuf_str(&library));
    wire_put_uint(&versions, 1, PRODUCER);
    wire_put_bytes(&w->graph, 4, strbuf_str(&versions));
    strbuf_clear(&node);
    strbuf_clear(&index);
    strbuf_clear(&library);
    strbuf_clear(&versions);
}

static Error *init_to_graph(const Node *node, void *state) {
    bool *refuses_state = state, allows = false;
    int64_t policy = 0;
    Str value;
    Error *err = NULL;
    if (node_attr(node, "allow_stateful", &value) || node_is(node, "DatasetToGraph")) {
        err = node_attr_bool(node, "allow_stateful", &allows);
        *refuses_state = !allows;
    } else {
        err = node_attr_int(node, "external_state_policy", &policy);
        *refuses_state = policy == POLICY_FAIL;
    }
    return err;
}

static Error *run_to_graph(KernelContext *k) {
    Dataset *d = NULL;
    GraphWriter w = {.refuses_state = *(bool *)k->state};
    StrBuf name = {0};
    Error *err = tensor_dataset_wrapped(k->in[0], &d);
    if (err) return err;
    put_dataset(&w, d, &name);
    if (!w.err) put_ending(&w, strbuf_str(&name));
    if (!w.err) kernel_set_output(k, 0, tensor_scalar_str(strbuf_str(&w.graph)));
    strbuf_clear(&name);
    strbuf_clear(&w.graph);
    return w.err ? error_wrap(w.err, "Failed to serialize the input pipeline graph") : NULL;
}

/* Messages one after another are one that has what each has, the last one's where two have the same. */
static void add_options(const Tensor *t, StrBuf *out) {
    Dataset *d = NULL;
    const Tensor *input;
    Str name, value;
    Error *err = tensor_dataset_wrapped(t, &d);
    for (int i = 0; !err && (input = dataset_origin_input(d, i)); i++)
        if (input->dtype == DT_VARIANT) add_options(input, out);
    for (int i = 0; !err && d->kind->is_wrapper && dataset_origin_attr(d, i, &name, &value); i++) {
        WireReader r = wire_reader(str_is(name, "serialized_options") ? value : STR(""));
        while (wire_next(&r))
            if (r.field == 2 && r.type == WIRE_BYTES) strbuf_add(out, r.bytes);
    }
    error_free(err); /* what is no dataset has no options */
}

static Error *run_get_options(KernelContext *k) {
    Dataset *d = NULL;
    StrBuf options = {0};
    Error *err = kernel_dataset(k, 0, &d);
    if (err) return err;
    add_options(k->in[0], &options);
    kernel_set_output(k, 0, tensor_scalar_str(strbuf_str(&options)));
    strbuf_clear(&options);
    return NULL;
}

static Error *run_fingerprint(KernelContext *k) {
    Dataset *d = NULL;
    Error *err = kernel_dataset(k, 0, &d);
    Tensor *out = err ? NULL : kernel_output(k, 0, &SHAPE_SCALAR);
    if (out) *(uint64_t *)out->data = dataset_fingerprint(d);
    return err;
}

/* ---- The batch size ---- */

typedef enum BatchRole { BATCH_SIZE_SECOND, BATCH_SIZE_THIRD_LAST, BATCH_ALL_INPUTS, BATCH_FIRST_INPUT } BatchRole;

/* Any version of an op counts. */
static const struct {
    const char *op;
    BatchRole role;
} batch_roles[] = {
    {"BatchDataset", BATCH_SIZE_SECOND},          {"PaddedBatchDataset", BATCH_SIZE_SECOND},   {"MapAndBatchDataset", BATCH_SIZE_THIRD_LAST},
    {"ExperimentalMapAndBatchDataset", BATCH_SIZE_THIRD_LAST}, {"ConcatenateDataset", BATCH_ALL_INPUTS}, {"ZipDataset", BATCH_ALL_INPUTS},
    {"AssertCardinalityDataset", BATCH_FIRST_INPUT}, {"CacheDataset", BATCH_FIRST_INPUT},      {"FilterDataset", BATCH_FIRST_INPUT},
    {"ModelDataset", BATCH_FIRST_INPUT},          {"OptimizeDataset", BATCH_FIRST_INPUT},      {"ParseExampleDataset", BATCH_FIRST_INPUT},
    {"PrefetchDataset", BATCH_FIRST_INPUT},       {"RepeatDataset", BATCH_FIRST_INPUT},        {"ShardDataset", BATCH_FIRST_INPUT},
    {"ShuffleAndRepeatDataset", BATCH_FIRST_INPUT}, {"ShuffleDataset", BATCH_FIRST_INPUT},     {"SkipDataset", BATCH_FIRST_INPUT},
    {"TakeDataset", BATCH_FIRST_INPUT},
};

static bool is_version_of(Str op, const char *name) {
    Str base = str_of(name);
    if (!str_starts(op, base)) return false;
    Str rest = str_slice(op, base.len, op.len);
    if (!rest.len) return true;
    bool digits = rest.len > 1 && rest.ptr[0] == 'V';
    for (size_t i = 1; i < rest.len; i++) digits = digits && rest.ptr[i] >= '0' && rest.ptr[i] <= '9';
    return digits;
}

static int64_t size_in(const Tensor *t) {
    return t && t->dtype == DT_INT64 && t->count == 1 ? tensor_i64(t)[0] : -1;
}

/* -1: not known. */
static int64_t batch_size_of(const Dataset *d) {
    Str op = dataset_origin_op(d);
    int inputs = 0;
    while (dataset_origin_input(d, inputs)) inputs++;
    for (size_t i = 0; i < sizeof batch_roles / sizeof *batch_roles; i++) {
        if (!is_version_of(op, batch_roles[i].op)) continue;
        BatchRole role = batch_roles[i].role;
        if (role == BATCH_SIZE_SECOND) return size_in(dataset_origin_input(d, 1));
        if (role == BATCH_SIZE_THIRD_LAST) return size_in(dataset_origin_input(d, inputs - 3));
        int64_t size = d->input_count ? batch_size_of(d->inputs[0]) : -1;
        for (int j = 1; role == BATCH_ALL_INPUTS && j < d->input_count; j++)
            if (batch_size_of(d->inputs[j]) != size) return -1;
        return size;
    }
    return -1;
}

static Error *run_batch_size(KernelContext *k) {
    Dataset *d = NULL;
    Error *err = kernel_dataset(k, 0, &d);
    if (!err) kernel_set_output(k, 0, tensor_scalar_i64(batch_size_of(d)));
    return err;
}

const KernelDef dataset_graph_cpu[] = {
    {"DatasetToGraph", .run = run_to_graph, .state_size = sizeof(bool), .init = init_to_graph},
    {"DatasetToGraphV2", .run = run_to_graph, .state_size = sizeof(bool), .init = init_to_graph},
    {"GetOptions", .run = run_get_options},
    {"DatasetFingerprint", .run = run_fingerprint},
    {"ComputeBatchSize", .run = run_batch_size},
    {0},
};
