/* ragged_shapes.c: rules of ragged tensors (splits of every level, then values) and of rows changed in place. */
#include <stdlib.h>

#include "shapes/rule_list.h"

static void empty(ShapeContext *c) {
    ctx_in_rank(c, 0, 1);
    ctx_out(c, 0, ctx_shape_of(c, 0));
}

static void nth_element(ShapeContext *c) {
    PartialShape input = ctx_rank_at_least(c, c->in[0], 1);
    const Tensor *value = ctx_value(c, 1);
    if (value) ctx_want_scalar(c, 1);
    int64_t n = ctx_failed(c) ? DIM_UNKNOWN : ctx_dim_of(c, 1), last = shape_dim(input, -1);
    if (n >= 0 && last >= 0 && last <= n)
        ctx_fail(c, "Input must have last dimension > n = %lld but is %lld", (long long)n, (long long)last);
    ctx_out(c, 0, ctx_sub(c, input, 0, -1));
}

static void fingerprint(ShapeContext *c) {
    PartialShape data = ctx_rank_at_least(c, c->in[0], 1);
    ctx_want_scalar(c, 1);
    const Tensor *method = ctx_value(c, 1);
    bool known = method && method->dtype == DT_STRING && method->count == 1;
    if (known && !str_is(tstring_str(tensor_str(method)), "farmhash64")) ctx_fail(c, "Unsupported method");
    ctx_out(c, 0, shape_matrix(shape_dim(data, 0), known ? 8 : DIM_UNKNOWN));
}

static void segment_join(ShapeContext *c) {
    PartialShape ids = c->in[1];
    ctx_want_scalar(c, 2);
    if (ids.rank < 0) return;
    PartialShape data = ctx_merge_prefix(c, c->in[0], ids);
    ctx_out(c, 0, ctx_concat(c, shape_vector(ctx_dim_of(c, 2)), ctx_sub(c, data, ids.rank, SHAPE_END)));
}

/* Vectors are of one length; scalars fit all. */
static void ragged_range(ShapeContext *c) {
    int64_t rows = DIM_UNKNOWN;
    bool vectors = false, open = false;
    for (int i = 0; i < 3; i++) {
        PartialShape s = ctx_rank_at_most(c, c->in[i], 1);
        open |= s.rank < 0;
        if (s.rank != 1) continue;
        rows = vectors ? ctx_merge_dim(c, rows, s.dims[0]) : s.dims[0];
        vectors = true;
    }
    if (!vectors && !open) rows = 1;
    ctx_out(c, 0, shape_vector(ctx_dim_add(c, rows, 1)));
    ctx_out(c, 1, shape_vector(DIM_UNKNOWN));
}

/* Inputs [0, count) are splits. */
static void want_splits(ShapeContext *c, int count) {
    for (int i = 0; i < count; i++) ctx_in_rank(c, i, 1);
}

static void ragged_gather(ShapeContext *c) {
    int64_t rank = ctx_attr_int(c, "PARAMS_RAGGED_RANK"), out = ctx_attr_int(c, "OUTPUT_RAGGED_RANK");
    want_splits(c, c->in_count - 2);
    PartialShape indices = c->in[c->in_count - 1], values = ctx_rank_at_least(c, c->in[c->in_count - 2], 1);
    ctx_rank(c, indices, (int)(out - rank + 1));
    for (int i = 0; i + 1 < c->out_count; i++) ctx_out(c, i, shape_vector(DIM_UNKNOWN));
    ctx_out(c, c->out_count - 1, ctx_concat(c, shape_vector(DIM_UNKNOWN), ctx_sub(c, values, 1, SHAPE_END)));
}

static void ragged_to_sparse(ShapeContext *c) {
    int rank = c->in_count - 1;
    want_splits(c, rank);
    PartialShape values = ctx_rank_at_least(c, c->in[rank], 1);
    int64_t dims = values.rank < 0 ? DIM_UNKNOWN : rank + values.rank, count = shape_elements(values);
    ctx_out(c, 0, shape_matrix(count, dims));
    ctx_out(c, 1, shape_vector(count));
    ctx_out(c, 2, shape_vector(dims));
}

/* How many levels the partitions tell; -1 when one of them is of no known kind, or they do not fit the inputs from 3
 * on. */
static int partition_levels(ShapeContext *c) {
    static const char *const kinds[] = {"FIRST_DIM_SIZE", "VALUE_ROWIDS", "ROW_SPLITS",
                                        "ROW_LENGTHS",    "ROW_LIMITS",   "ROW_STARTS"};
    Str *words = NULL;
    int count = 0, levels = 0;
    Error *err = node_attr_strings(c->node, "row_partition_types", &words, &count);
    for (int i = 0; !err && i < count; i++) {
        int kind = 0;
        while (kind < 6 && !str_is(words[i], kinds[kind])) kind++;
        if (kind == 6) levels = -1;
        if (levels >= 0) levels += !(i == 0 && kind == 0);
        if (i + 3 < c->in_count) ctx_in_rank(c, i + 3, kind ? 1 : 0);
    }
    if (count != c->in_count - 3) levels = -1;
    error_free(err);
    free(words);
    return levels;
}

static void ragged_to_tensor(ShapeContext *c) {
    int levels = partition_levels(c);
    if (levels < 0) {
        ctx_fail(c, "The row partitions do not fit their types.");
        return;
    }
    PartialShape given = ctx_shape_of_or_scalar(c, 0), values = c->in[1], fill = c->in[2];
    if (values.rank >= 0) values = ctx_rank_at_least(c, values, 1);
    if (values.rank >= 0 && fill.rank >= values.rank)
        ctx_fail(c, "default_value.rank must be less than rt_input.flat_values.rank");
    for (int i = 0; values.rank >= 0 && i < fill.rank && !ctx_failed(c); i++) {
        int64_t a = fill.dims[i], b = values.dims[i + 1];
        if (a >= 0 && b >= 0 && a != 1 && a != b)
            ctx_fail(c, "default_value.shape and rt_input.flat_values.shape are incompatible");
    }
    if (values.rank < 0) {
        ctx_out(c, 0, given);
        return;
    }
    PartialShape needed = ctx_concat(c, shape_unknown_dims(levels + 1), ctx_sub(c, values, 1, SHAPE_END));
    ctx_out(c, 0, given.rank < 0 ? needed : ctx_merge(c, given, needed));
}

static void ragged_to_variant(ShapeContext *c) {
    int64_t rank = ctx_attr_int(c, "RAGGED_RANK");
    want_splits(c, (int)rank);
    ctx_rank_at_least(c, c->in[rank], 1);
    bool batched = ctx_attr_bool(c, "batched_input");
    ctx_out(c, 0, batched ? shape_vector(ctx_dim_sub(c, shape_dim(c->in[0], 0), 1)) : SHAPE_SCALAR);
}

static void ragged_from_variant(ShapeContext *c) {
    int64_t in = ctx_attr_int(c, "input_ragged_rank"), out = ctx_attr_int(c, "output_ragged_rank");
    if (in >= 0) ctx_rank(c, c->in[0], (int)(out - in));
    for (int i = 0; i + 1 < c->out_count; i++) ctx_out(c, i, shape_vector(DIM_UNKNOWN));
}

static void ragged_gradient(ShapeContext *c) {
    ctx_out(c, 0, ctx_shape_of(c, 2));
}

const ShapeRow ragged_rules[] = {
    {"Empty", empty, 0},
    {"InplaceUpdate", rule_same, 0},
    {"InplaceAdd", rule_same, 0},
    {"InplaceSub", rule_same, 0},
    {"DataFormatDimMap", rule_same, 0},
    {"DataFormatVecPermute", rule_same, 0},
    {"NthElement", nth_element, 0},
    {"Fingerprint", fingerprint, 0},
    {"UnsortedSegmentJoin", segment_join, 0},
    {"RngSkip", 0, "* [] [] ->"},
    {"RngReadAndSkip", 0, "* [] [] -> [3]"},
    {"RaggedRange", ragged_range, 0},
    {"RaggedGather", ragged_gather, 0},
    {"RaggedTensorToSparse", ragged_to_sparse, 0},
    {"RaggedTensorToTensor", ragged_to_tensor, 0},
    {"RaggedTensorToVariant", ragged_to_variant, 0},
    {"RaggedTensorFromVariant", ragged_from_variant, 0},
    {"RaggedTensorToVariantGradient", ragged_gradient, 0},
    {0},
};
