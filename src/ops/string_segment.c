/* string_segment.c: UnsortedSegmentJoin, the strings of each segment put together. */
#include <stdlib.h>

#include "base/memory.h"
#include "ops/elements.h"
#include "ops/op_list.h"

const OpDef string_segment_ops[] = {
    {"UnsortedSegmentJoin", "inputs: string, segment_ids: Tindices, num_segments: Tnumsegments -> output: string",
     "separator: string = ''; Tindices: {int32, int64}; Tnumsegments: {int32, int64} = int32", 0},
    {0},
};

typedef struct JoinState {
    char *separator;
    size_t len;
} JoinState;

static Error *init_join(const Node *node, void *state) {
    JoinState *s = state;
    Str separator;
    Error *err = node_attr_string(node, "separator", &separator);
    if (!err) *s = (JoinState){str_dup(separator), separator.len};
    return err;
}

static void clear_join(void *state) {
    free(((JoinState *)state)->separator);
}

static Error *check_join(const Tensor *in, const Tensor *ids, int64_t segments) {
    bool prefix = ids->shape.rank >= 1 && in->shape.rank >= ids->shape.rank;
    for (int d = 0; prefix && d < ids->shape.rank; d++) prefix = in->shape.dims[d] == ids->shape.dims[d];
    if (!prefix)
        return error_invalid("segment_ids.shape %s must be a prefix of input.shape %s", shape_text(&ids->shape).text,
                             shape_text(&in->shape).text);
    for (int64_t i = 0; i < ids->count; i++)
        if (index_at(ids, i) < 0 || index_at(ids, i) >= segments)
            return error_invalid("segment_ids are not allowed to exceed num_segments or to have negative values.");
    return NULL;
}

static Error *run_join(KernelContext *k) {
    const JoinState *s = k->state;
    const Tensor *in = k->in[0], *ids = k->in[1];
    int64_t segments;
    Error *err = element_scalar_int(k, 2, "num_segments", &segments);
    if (!err && segments < 0)
        err = error_invalid("Number of segments must be non-negative, got %lld", (long long)segments);
    if (!err) err = check_join(in, ids, segments);
    if (err) return err;
    Shape shape = shape_vector(segments);
    for (int d = ids->shape.rank; d < in->shape.rank; d++) shape_insert_dim(&shape, shape.rank, in->shape.dims[d]);
    Tensor *out = kernel_output(k, 0, &shape);
    if (!out) return NULL;
    int64_t width = shape_prod(&shape, 1, shape.rank);
    Shape of_counts = shape_vector(segments);
    Tensor *seen = kernel_scratch(k, DT_BOOL, &of_counts);
    if (!seen) return NULL;
    memset(seen->data, 0, tensor_bytes(seen));
    for (int64_t i = 0; i < ids->count; i++) {
        int64_t to = index_at(ids, i);
        bool *joined = (bool *)seen->data + to;
        for (int64_t j = 0; j < width; j++) {
            StrBuf text = {0};
            if (*joined) {
                strbuf_add(&text, tstring_str(&tensor_str(out)[to * width + j]));
                strbuf_add(&text, (Str){s->separator, s->len});
            }
            strbuf_add(&text, tstring_str(&tensor_str(in)[i * width + j]));
            tstring_set(&tensor_str(out)[to * width + j], strbuf_str(&text));
            strbuf_clear(&text);
        }
        *joined = true;
    }
    tensor_unref(seen);
    return NULL;
}

const KernelDef string_segment_cpu[] = {
    {"UnsortedSegmentJoin", .run = run_join, .state_size = sizeof(JoinState), .init = init_join, .clear = clear_join},
    {0},
};
