/* summary.c: ScalarSummary, HistogramSummary, MergeSummary, TensorSummary: serialised tf.Summary. */
#include <float.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/float16.h"
#include "base/hashmap.h"
#include "ops/op_list.h"
#include "proto/wire.h"
#include "tensor/tensor_proto.h"

const OpDef summary_ops[] = {
    {"ScalarSummary", "tags: string, values: T -> summary: string",
     "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}", 0},
    {"HistogramSummary", "tag: string, values: T -> summary: string",
     "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64} = float", 0},
    {"MergeSummary", "inputs: N * string -> summary: string", "N: int >= 1", 0},
    {"TensorSummary", "tensor: T -> summary: string",
     "T: type; description: string = ''; labels: list(string) = []; display_name: string = ''", 0},
    {"TensorSummaryV2", "tag: string, tensor: T, serialized_summary_metadata: string -> summary: string", "T: type", 0},
    {0},
};

/* Element i of a tensor of any real type. */
static double number_at(const Tensor *t, int64_t i) {
    const void *p = t->data;
    switch (t->dtype) {
        case DT_FLOAT:
            return ((const float *)p)[i];
        case DT_DOUBLE:
            return ((const double *)p)[i];
        case DT_HALF:
            return half_to_float(((const uint16_t *)p)[i]);
        case DT_BFLOAT16:
            return bfloat16_to_float(((const uint16_t *)p)[i]);
        case DT_INT8:
            return ((const int8_t *)p)[i];
        case DT_UINT8:
            return ((const uint8_t *)p)[i];
        case DT_INT16:
            return ((const int16_t *)p)[i];
        case DT_UINT16:
            return ((const uint16_t *)p)[i];
        case DT_INT32:
            return ((const int32_t *)p)[i];
        case DT_UINT32:
            return ((const uint32_t *)p)[i];
        case DT_INT64:
            return (double)((const int64_t *)p)[i];
        case DT_UINT64:
            return (double)((const uint64_t *)p)[i];
        default:
            return 0;
    }
}

/* Output 0, taking the bytes. */
static Error *set_summary(KernelContext *k, StrBuf *bytes) {
    Tensor *out = kernel_output(k, 0, &SHAPE_SCALAR);
    size_t len = bytes->len;
    if (out)
        tstring_take(tensor_str(out), strbuf_detach(bytes), len);
    else
        strbuf_clear(bytes);
    return NULL;
}

static Error *run_scalar(KernelContext *k) {
    const Tensor *tags = k->in[0], *values = k->in[1];
    bool both_one = tags->count == 1 && values->count == 1;
    if (!both_one && !shape_eq(&tags->shape, &values->shape)) {
        char *a = shape_str(&tags->shape), *b = shape_str(&values->shape);
        Error *err = error_invalid("tags and values are not the same shape: %s != %s", a, b);
        free(a);
        free(b);
        return err;
    }
    StrBuf summary = {0}, value = {0};
    for (int64_t i = 0; i < tags->count; i++) {
        Str tag = tstring_str(&tensor_str(tags)[i]);
        if (tag.len) wire_put_bytes(&value, 1, tag);
        wire_put_float(&value, 2, (float)number_at(values, i));
        wire_put_bytes(&summary, 1, strbuf_str(&value));
        strbuf_clear(&value);
    }
    return set_summary(k, &summary);
}

/* ---- Histograms ---- */

enum { POSITIVE_LIMITS = 774, LIMITS = 2 * (POSITIVE_LIMITS + 1) + 1 };
static double limits[LIMITS]; /* upper ends of the buckets: 0, and +-1e-12 * 1.1^k below 1e20, and the largest double */
static int limit_count;
static pthread_once_t limits_once = PTHREAD_ONCE_INIT;

static void fill_limits(void) {
    double positive[POSITIVE_LIMITS + 1];
    int n = 0;
    for (double v = 1e-12; v < 1e20 && n < POSITIVE_LIMITS; v *= 1.1) positive[n++] = v;
    positive[n++] = DBL_MAX;
    for (int i = n - 1; i >= 0; i--) limits[limit_count++] = -positive[i];
    limits[limit_count++] = 0;
    for (int i = 0; i < n; i++) limits[limit_count++] = positive[i];
}

static int bucket_of(double v) {
    int low = 0, high = limit_count;
    while (low < high) {
        int middle = (low + high) / 2;
        if (limits[middle] <= v)
            low = middle + 1;
        else
            high = middle;
    }
    return low < limit_count ? low : limit_count - 1;
}

static void put_nonzero(StrBuf *b, uint32_t field, double v) {
    uint64_t bits;
    memcpy(&bits, &v, 8);
    if (bits) wire_put_fixed64(b, field, bits);
}

/* Runs of empty buckets become one. */
static void put_buckets(StrBuf *out, const double *counts) {
    StrBuf ends = {0}, sizes = {0};
    for (int i = 0; i < limit_count;) {
        double end = limits[i], count = counts[i];
        i++;
        while (count <= 0 && i < limit_count && counts[i] <= 0) end = limits[i++];
        strbuf_add(&ends, (Str){(const char *)&end, 8});
        strbuf_add(&sizes, (Str){(const char *)&count, 8});
    }
    wire_put_bytes(out, 6, strbuf_str(&ends));
    wire_put_bytes(out, 7, strbuf_str(&sizes));
    strbuf_clear(&ends);
    strbuf_clear(&sizes);
}

static Error *run_histogram(KernelContext *k) {
    const Tensor *tag = k->in[0], *values = k->in[1];
    if (tag->shape.rank != 0) return error_invalid("tags must be scalar");
    pthread_once(&limits_once, fill_limits);
    double counts[LIMITS] = {0}, min = DBL_MAX, max = -DBL_MAX, sum = 0, squares = 0;
    for (int64_t i = 0; i < values->count; i++) {
        double v = number_at(values, i);
        if (isnan(v)) return error_invalid("Nan in summary histogram for: %.*s", STR_ARG(k->node->name));
        if (isinf(v)) return error_invalid("Infinity in summary histogram for: %.*s", STR_ARG(k->node->name));
        counts[bucket_of(v)]++;
        min = v < min ? v : min;
        max = v > max ? v : max;
        sum += v;
        squares += v * v;
    }
    StrBuf histogram = {0}, value = {0}, summary = {0};
    put_nonzero(&histogram, 1, min);
    put_nonzero(&histogram, 2, max);
    put_nonzero(&histogram, 3, (double)values->count);
    put_nonzero(&histogram, 4, sum);
    put_nonzero(&histogram, 5, squares);
    put_buckets(&histogram, counts);
    Str name = tstring_str(tensor_str(tag));
    if (name.len) wire_put_bytes(&value, 1, name);
    wire_put_bytes(&value, 5, strbuf_str(&histogram));
    wire_put_bytes(&summary, 1, strbuf_str(&value));
    strbuf_clear(&histogram);
    strbuf_clear(&value);
    return set_summary(k, &summary);
}

/* ---- Merging ---- */

/* Checks one Summary and that its tags are new; tags stay in the input's memory. */
static Error *merge_one(Str bytes, StrMap *tags, StrBuf *out) {
    WireReader r = wire_reader(bytes);
    while (wire_next(&r)) {
        if (r.field != 1 || r.type != WIRE_BYTES) continue;
        WireReader v = wire_reader(r.bytes);
        Str tag = STR("");
        while (wire_next(&v))
            if (v.field == 1 && v.type == WIRE_BYTES) tag = v.bytes;
        if (v.failed) r.failed = true;
        if (tag.len && strmap_put(tags, tag, (void *)1))
            return error_invalid("Duplicate tag %.*s found in summary inputs", STR_ARG(tag));
        wire_put_bytes(out, 1, r.bytes);
    }
    return r.failed ? error_invalid("Could not parse one of the summary inputs") : NULL;
}

static Error *run_merge(KernelContext *k) {
    StrMap tags = {0};
    StrBuf out = {0};
    Error *err = NULL;
    for (int i = 0; !err && i < k->input_count; i++)
        for (int64_t j = 0; !err && j < k->in[i]->count; j++)
            err = merge_one(tstring_str(&tensor_str(k->in[i])[j]), &tags, &out);
    strmap_clear(&tags);
    if (!err) return set_summary(k, &out);
    strbuf_clear(&out);
    return err;
}

/* ---- Tensors ---- */

static Error *put_tensor(KernelContext *k, Str tag, Str node_name, const Tensor *t, Str metadata) {
    StrBuf proto = {0}, value = {0}, summary = {0};
    tensor_proto_encode_readable(t, &proto);
    if (tag.len) wire_put_bytes(&value, 1, tag);
    if (node_name.len) wire_put_bytes(&value, 7, node_name);
    wire_put_bytes(&value, 8, strbuf_str(&proto));
    if (metadata.ptr) wire_put_bytes(&value, 9, metadata);
    wire_put_bytes(&summary, 1, strbuf_str(&value));
    strbuf_clear(&proto);
    strbuf_clear(&value);
    return set_summary(k, &summary);
}

static Error *run_tensor(KernelContext *k) {
    return put_tensor(k, STR(""), k->node->name, k->in[0], (Str){0});
}

static Error *run_tensor_v2(KernelContext *k) {
    if (k->in[0]->shape.rank != 0) return error_invalid("tag must be scalar");
    if (k->in[2]->shape.rank != 0) return error_invalid("serialized_summary_metadata must be scalar");
    return put_tensor(k, tstring_str(tensor_str(k->in[0])), STR(""), k->in[1], tstring_str(tensor_str(k->in[2])));
}

const KernelDef summary_cpu[] = {
    {"ScalarSummary", .run = run_scalar},      {"HistogramSummary", .run = run_histogram},
    {"MergeSummary", .run = run_merge},        {"TensorSummary", .run = run_tensor},
    {"TensorSummaryV2", .run = run_tensor_v2}, {0},
};
