/* summary.c: ScalarSummary, HistogramSummary, MergeSummary, TensorSummary: serialised tf.Summary. */
#include <stdlib.h>

#include "base/hashmap.h"
#include "ops/op_list.h"
#include "ops/summary_value.h"
#include "proto/wire.h"
#include "tensor/number.h"

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
    if (!shape_eq(&tags->shape, &values->shape)) {
        char *a = shape_str(&tags->shape), *b = shape_str(&values->shape);
        Error *err = tags->count == 1 ? error_invalid("tags and values are not the same shape: %s != %s (tag '%.*s')", a, b, STR_ARG(tstring_str(tensor_str(tags))))
                                      : error_invalid("tags and values are not the same shape: %s != %s", a, b);
        free(a);
        free(b);
        return err;
    }
    StrBuf summary = {0};
    for (int64_t i = 0; i < tags->count; i++)
        summary_put_scalar(&summary, tstring_str(&tensor_str(tags)[i]), (float)number_real(values, i));
    return set_summary(k, &summary);
}

static Error *run_histogram(KernelContext *k) {
    if (k->in[0]->shape.rank != 0) return error_invalid("tags must be scalar");
    StrBuf summary = {0};
    Error *err = summary_put_histogram(&summary, tstring_str(tensor_str(k->in[0])), k->in[1], k->node->name);
    return err ? err : set_summary(k, &summary);
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

static Error *put_tensor(KernelContext *k, Str tag, Str node_name, const Tensor *value, Str metadata) {
    StrBuf summary = {0};
    summary_put_tensor(&summary, tag, node_name, value, metadata);
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
