/* summary_value.c: scalars, histograms and tensors as tf.Summary.Value. */
#include "ops/summary_value.h"

#include <float.h>
#include <math.h>
#include <pthread.h>
#include <string.h>

#include "proto/wire.h"
#include "tensor/number.h"
#include "tensor/tensor_proto.h"

static void put_value(StrBuf *summary, StrBuf *value) {
    wire_put_bytes(summary, 1, strbuf_str(value));
    strbuf_clear(value);
}

void summary_put_scalar(StrBuf *summary, Str tag, float v) {
    StrBuf value = {0};
    if (tag.len) wire_put_bytes(&value, 1, tag);
    wire_put_float(&value, 2, v);
    put_value(summary, &value);
}

void summary_put_tensor(StrBuf *summary, Str tag, Str node_name, const Tensor *t, Str metadata) {
    StrBuf proto = {0}, value = {0};
    tensor_proto_encode_readable(t, &proto);
    if (tag.len) wire_put_bytes(&value, 1, tag);
    if (node_name.len) wire_put_bytes(&value, 7, node_name);
    wire_put_bytes(&value, 8, strbuf_str(&proto));
    if (metadata.ptr) wire_put_bytes(&value, 9, metadata);
    strbuf_clear(&proto);
    put_value(summary, &value);
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

Error *summary_put_histogram(StrBuf *summary, Str tag, const Tensor *values, Str whose) {
    pthread_once(&limits_once, fill_limits);
    double counts[LIMITS] = {0}, min = DBL_MAX, max = -DBL_MAX, sum = 0, squares = 0;
    for (int64_t i = 0; i < values->count; i++) {
        double v = number_real(values, i);
        if (isnan(v)) return error_invalid("Nan in summary histogram for: %.*s", STR_ARG(whose));
        if (isinf(v)) return error_invalid("Infinity in Histogram for: %.*s", STR_ARG(whose));
        counts[bucket_of(v)]++;
        min = v < min ? v : min;
        max = v > max ? v : max;
        sum += v;
        squares += v * v;
    }
    StrBuf histogram = {0}, value = {0};
    put_nonzero(&histogram, 1, min);
    put_nonzero(&histogram, 2, max);
    put_nonzero(&histogram, 3, (double)values->count);
    put_nonzero(&histogram, 4, sum);
    put_nonzero(&histogram, 5, squares);
    put_buckets(&histogram, counts);
    if (tag.len) wire_put_bytes(&value, 1, tag);
    wire_put_bytes(&value, 5, strbuf_str(&histogram));
    strbuf_clear(&histogram);
    put_value(summary, &value);
    return NULL;
}
