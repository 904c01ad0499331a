/* debug_watch.c: Copy, CopyHost, DebugIdentity, DebugIdentityV3, DebugNanCount, DebugNumericSummary: values seen on their way, written where a debugger reads them. */
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/float16.h"
#include "io/debug_dump.h"
#include "ops/elements.h"
#include "ops/op_list.h"
#include "proto/wire.h"
#include "tensor/tensor_proto.h"

#define WATCH_ATTRS "T: type; device_name: string = ''; tensor_name: string = ''; debug_urls: list(string) = []; "

const OpDef debug_watch_ops[] = {
    {"Copy", "input: T -> output: T", "T: type; tensor_name: string = ''; debug_ops_spec: list(string) = []", OP_UNINITIALIZED_INPUT},
    {"CopyHost", "input: T -> output: T", "T: type; tensor_name: string = ''; debug_ops_spec: list(string) = []", OP_UNINITIALIZED_INPUT},
    {"DebugIdentity", "input: T -> output: T", WATCH_ATTRS "gated_grpc: bool = false", OP_UNINITIALIZED_INPUT},
    {"DebugIdentityV3", "input: T -> output: T",
     "T: type; device_name: string = ''; tensor_name: string = ''; io_of_node: string = ''; is_input: bool = false; io_index: int = -1; debug_urls: list(string) = []; "
     "gated_grpc: bool = false", OP_STATEFUL | OP_UNINITIALIZED_INPUT},
    {"DebugNanCount", "input: T -> output: int64", WATCH_ATTRS "gated_grpc: bool = false", OP_UNINITIALIZED_INPUT},
    {"DebugNumericSummary", "input: T -> output: double",
     WATCH_ATTRS "lower_bound: float = -inf; upper_bound: float = inf; mute_if_healthy: bool = false; gated_grpc: bool = false", OP_UNINITIALIZED_INPUT},
    {0},
};

static Error *copy_init(const Node *node, void *state) {
    (void)state;
    Str *specs = NULL;
    int count = 0;
    Error *err = node_attr_strings(node, "debug_ops_spec", &specs, &count);
    for (int i = 0; !err && i < count; i++) {
        int parts = 1;
        for (size_t c = 0; c < specs[i].len; c++) parts += specs[i].ptr[c] == ';';
        if (parts != 3) err = error_internal("Unexpected number of semicolons in debug_ops_spec element: %.*s", STR_ARG(specs[i]));
    }
    free(specs);
    return err;
}

typedef struct WatchState {
    DebugKey key;
    Str *urls;
    int url_count;
    float lower, upper;
    bool mute_if_healthy;
    PartialShape declared; /* of the variable that the input may be */
} WatchState;

static Error *parse_tensor_name(Str name, DebugKey *key) {
    Str rest = name;
    key->node = str_next(&rest, ':');
    if (!name.len) return error_invalid("Failed to parse tensor name: \"\"");
    if (key->node.len == name.len) return NULL;
    char *end, *text = str_dup(rest);
    long slot = strtol(text, &end, 10);
    Error *err = NULL;
    for (size_t i = 0; i < rest.len; i++)
        if (rest.ptr[i] == ':') err = error_invalid("Failed to parse tensor name: \"%.*s\"", STR_ARG(name));
    if (!err && (!*text || *end || slot < INT32_MIN || slot > INT32_MAX)) err = error_invalid("Invalid string value for output_slot: \"%s\"", text);
    free(text);
    key->slot = (int)slot;
    return err;
}

static Error *watch_init(const Node *node, void *state) {
    WatchState *s = state;
    Str tensor_name = {"", 0}, value;
    s->key.op = node->op;
    s->declared.rank = -1;
    Error *err = node_attr_strings(node, "debug_urls", &s->urls, &s->url_count);
    if (!err) err = node_attr_string(node, "device_name", &s->key.device);
    if (!err) err = node_attr_string(node, "tensor_name", &tensor_name);
    if (!err) err = parse_tensor_name(tensor_name, &s->key);
    if (!err && node_attr(node, "mute_if_healthy", &value)) {
        err = node_attr_bool(node, "mute_if_healthy", &s->mute_if_healthy);
        if (!err) err = node_attr_float(node, "lower_bound", &s->lower);
        if (!err) err = node_attr_float(node, "upper_bound", &s->upper);
    }
    if (!err && node_attr(node, "io_of_node", &value)) {
        int64_t index = 0;
        err = node_attr_string(node, "io_of_node", &s->key.io_of_node);
        if (!err) err = node_attr_bool(node, "is_input", &s->key.is_input);
        if (!err) err = node_attr_int(node, "io_index", &index);
        s->key.io_index = (int)index;
    }
    const Node *source = node->input_count ? node->inputs[0].node : NULL;
    if (!err && source && node_is(source, "VariableV2")) err = node_attr_shape(source, "shape", &s->declared);
    if (err) {
        free(s->urls);
        s->urls = NULL;
    }
    return err;
}

static void watch_clear(void *state) {
    free(((WatchState *)state)->urls);
}

/* A tensor that has no value: a TensorProto with its type and declared shape, and nothing in it. */
static void encode_nothing(DataType type, const PartialShape *shape, StrBuf *out) {
    StrBuf dims = {0};
    shape_encode(shape, &dims);
    wire_put_uint(out, 1, (uint64_t)type);
    wire_put_bytes(out, 2, strbuf_str(&dims));
    strbuf_clear(&dims);
}

static Error *publish(KernelContext *k, const Tensor *value, DataType type) {
    const WatchState *s = k->state;
    DebugKey key = s->key;
    int failed = 0;
    key.step = kernel_step_id(k);
    StrBuf proto = {0}, reasons = {0};
    if (s->url_count && value && value->dtype == DT_STRING)
        tensor_proto_encode_readable(value, &proto);
    else if (s->url_count && value)
        tensor_proto_encode(value, &proto);
    else if (s->url_count)
        encode_nothing(type, &s->declared, &proto);
    Error *bad = NULL;
    for (int i = 0; !bad && i < s->url_count; i++) {
        Str rest;
        Error *err = NULL;
        if (debug_url_is(s->urls[i], "file://", &rest))
            err = debug_dump_tensor(&file_system_local, rest, &key, strbuf_str(&proto));
        else if (debug_url_is(s->urls[i], "grpc://", &rest))
            err = error_new(CODE_UNIMPLEMENTED, "Rill writes what a debugger reads to file:// URLs, not to %.*s", STR_ARG(s->urls[i]));
        else
            bad = error_new(str_is(key.op, "DebugIdentityV3") ? CODE_INTERNAL : CODE_UNAVAILABLE, "Invalid debug target URL: %.*s", STR_ARG(s->urls[i]));
        if (!err) continue;
        failed++;
        strbuf_addf(&reasons, " %s;", err->message);
        error_free(err);
    }
    if (!bad && failed) bad = error_internal("Publishing to %d of %d debug target URLs failed, due to the following errors:%s", failed, s->url_count, reasons.ptr);
    strbuf_clear(&reasons);
    strbuf_clear(&proto);
    return bad;
}

/* What has no value gives an empty tensor. */
static Error *pass_on(KernelContext *k) {
    if (k->in[0])
        kernel_set_output(k, 0, tensor_ref(k->in[0]));
    else
        (void)kernel_output(k, 0, &(Shape){.rank = 1, .dims = {0}});
    return NULL;
}

static Error *run_copy(KernelContext *k) {
    Tensor *copy = NULL;
    if (!k->in[0] || !dtype_is_plain(k->in[0]->dtype)) return pass_on(k);
    Error *err = tensor_copy(k->in[0], &copy);
    if (!err) kernel_set_output(k, 0, copy);
    return err;
}

static Error *run_identity(KernelContext *k) {
    Error *err = publish(k, k->in[0], kernel_output_type(k, 0));
    return err ? err : pass_on(k);
}

static double number_at(const Tensor *t, int64_t i) {
    switch (t->dtype) {
        case DT_FLOAT: return tensor_f32(t)[i];
        case DT_DOUBLE: return tensor_f64(t)[i];
        case DT_HALF: return half_to_float(((const uint16_t *)t->data)[i]);
        case DT_BFLOAT16: return bfloat16_to_float(((const uint16_t *)t->data)[i]);
        case DT_BOOL: return tensor_bool(t)[i];
        case DT_UINT64: return (double)((const uint64_t *)t->data)[i];
        default: return (double)index_at(t, i);
    }
}

/* malloced, NULL for nothing. */
static Error *numbers_as_doubles(const Tensor *t, double **out) {
    if (!t || !t->count) return NULL;
    *out = try_alloc((size_t)t->count * sizeof **out);
    if (!*out) return error_new(CODE_RESOURCE_EXHAUSTED, "No memory for %lld numbers", (long long)t->count);
    for (int64_t i = 0; i < t->count; i++) (*out)[i] = number_at(t, i);
    return NULL;
}

static Error *run_nan_count(KernelContext *k) {
    const Tensor *t = k->in[0];
    double *values = NULL;
    Error *err = numbers_as_doubles(t, &values);
    Tensor *out = err ? NULL : kernel_output(k, 0, &(Shape){.rank = 1, .dims = {1}});
    if (out) {
        int64_t count = 0;
        for (int64_t i = 0; t && i < t->count; i++) count += isnan(values[i]) != 0;
        tensor_i64(out)[0] = count;
        err = publish(k, out, DT_INT64);
    }
    free(values);
    return err;
}

typedef struct Summary {
    double nans, negative_infs, negatives, zeros, positives, positive_infs;
    double min, max, mean, variance;
} Summary;

static void summarize(const double *x, int64_t n, const WatchState *s, Summary *out) {
    *out = (Summary){.min = INFINITY, .max = -INFINITY, .mean = NAN, .variance = NAN};
    double sum = 0, count = 0;
    for (int64_t i = 0; i < n; i++) {
        if (isnan(x[i])) {
            out->nans++;
            continue;
        }
        if (isinf(x[i])) {
            *(x[i] < 0 ? &out->negative_infs : &out->positive_infs) += 1;
            continue;
        }
        if (!isinf(s->lower) && x[i] <= s->lower)
            out->negative_infs++;
        else if (!isinf(s->upper) && x[i] >= s->upper)
            out->positive_infs++;
        else
            *(x[i] < 0 ? &out->negatives : x[i] > 0 ? &out->positives : &out->zeros) += 1;
        if (x[i] < out->min) out->min = x[i];
        if (x[i] > out->max) out->max = x[i];
        count++;
        sum += x[i];
    }
    if (count == 0) return;
    out->mean = sum / count;
    out->variance = 0;
    for (int64_t i = 0; i < n; i++)
        if (isfinite(x[i])) out->variance += (x[i] - out->mean) * (x[i] - out->mean);
    out->variance /= count;
}

static Error *run_summary(KernelContext *k) {
    const WatchState *s = k->state;
    const Tensor *t = k->in[0];
    DataType type = DT_FLOAT;
    double *values = NULL;
    Error *err = node_attr_type(k->node, "T", &type);
    if (!err) err = numbers_as_doubles(t, &values);
    if (err) return err;
    Summary sum;
    summarize(values, t ? t->count : 0, s, &sum);
    int rank = t ? t->shape.rank : s->declared.rank > 0 ? s->declared.rank : 0;
    Tensor *out = kernel_output(k, 0, &(Shape){.rank = 1, .dims = {14 + rank}});
    if (out) {
        const double head[14] = {t != NULL, t ? (double)t->count : 0, sum.nans, sum.negative_infs, sum.negatives, sum.zeros, sum.positives, sum.positive_infs,
                                 sum.min, sum.max, sum.mean, sum.variance, (double)type, rank};
        for (int i = 0; i < 14; i++) tensor_f64(out)[i] = head[i];
        for (int d = 0; d < rank; d++) tensor_f64(out)[14 + d] = (double)(t ? t->shape.dims[d] : s->declared.dims[d]);
        bool healthy = sum.nans + sum.negative_infs + sum.positive_infs == 0;
        if (!s->mute_if_healthy || !healthy) err = publish(k, out, DT_DOUBLE);
    }
    free(values);
    return err;
}

#define INTEGERS(run)                                                                                                                     \
    [DT_INT8] = run, [DT_INT16] = run, [DT_INT32] = run, [DT_INT64] = run, [DT_UINT8] = run, [DT_UINT16] = run, [DT_UINT32] = run, [DT_UINT64] = run
#define WATCHES .state_size = sizeof(WatchState), .init = watch_init, .clear = watch_clear

const KernelDef debug_watch_cpu[] = {
    {"Copy", .run = run_copy, .init = copy_init},
    {"CopyHost", .run = run_copy, .init = copy_init},
    {"DebugIdentity", .run = run_identity, WATCHES},
    {"DebugIdentityV3", .run = run_identity, WATCHES},
    {"DebugNanCount",
     .by_type = {INTEGERS(run_nan_count), [DT_FLOAT] = run_nan_count, [DT_DOUBLE] = run_nan_count, [DT_HALF] = run_nan_count, [DT_BFLOAT16] = run_nan_count},
     WATCHES},
    {"DebugNumericSummary", .by_type = {INTEGERS(run_summary), [DT_FLOAT] = run_summary, [DT_DOUBLE] = run_summary, [DT_BOOL] = run_summary}, WATCHES},
    {0},
};
