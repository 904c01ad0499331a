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
    if (ids->shape.rank == 0) return error_invalid("Segment_id cannot have rank 0");
    if (ids->shape.rank > in->shape.rank)
        return error_new(CODE_OUT_OF_RANGE, "Invalid segment_id rank %d for input with %d dimension(s)", ids->shape.rank, in->shape.rank);
    for (int d = 0; d < ids->shape.rank; d++) /* the second number is the rank of the input, as TensorFlow says it */
        if (in->shape.dims[d] != ids->shape.dims[d])
            return error_invalid("Segment dimension is %lld while input dimension is %d in rank %d", (long long)ids->shape.dims[d],
                                 in->shape.rank, d);
    for (int64_t i = 0; i < ids->count; i++)
        if (index_at(ids, i) < 0 || index_at(ids, i) >= segments)
            return error_invalid("segment_ids are not allowed to exceed num_segments or to have negative values.");
    return NULL;
}

static Error *run_join(KernelContext *k) {
    const JoinState *s = k->state;
    const Tensor *in = k->in[0], *ids = k->in[1];
    if (k->in[2]->shape.rank != 0) return error_invalid("Number of segments must be a scalar");
    int64_t segments = index_at(k->in[2], 0);
    if (segments < 0) return error_invalid("Number of segments must be non-negative but got %lld", (long long)segments);
    Error *err = check_join(in, ids, segments);
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
