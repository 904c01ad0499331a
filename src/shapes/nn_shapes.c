/* nn_shapes.c: rules of activations, normalisation, losses and what else neural networks use. */
#include "shapes/rule_list.h"
#include "shapes/window_shape.h"

static bool depth_is_first(ShapeContext *c) {
    Str value, format = STR("");
    if (node_attr(c->node, "data_format", &value)) attr_string(value, &format);
    return str_is(format, "NCHW") || str_is(format, "NCDHW");
}

void rule_bias_add(ShapeContext *c) {
    bool first = depth_is_first(c);
    PartialShape s = ctx_rank_at_least(c, c->in[0], first ? 3 : 2), bias = ctx_in_rank(c, 1, 1);
    int axis = first ? 1 : -1;
    int64_t depth = ctx_merge_dim(c, shape_dim(s, axis), bias.dims[0]);
    if (s.rank >= 0) ctx_out(c, 0, ctx_replace(c, s, axis, depth));
}

static void bias_add_v1(ShapeContext *c) {
    rule_bias_add(c);
}

static void bias_add_grad(ShapeContext *c) {
    bool first = depth_is_first(c);
    PartialShape s = ctx_rank_at_least(c, c->in[0], first ? 3 : 2);
    ctx_out(c, 0, shape_vector(shape_dim(s, first ? 1 : -1)));
}

static int norm_rank(ShapeContext *c) {
    Str format = ctx_attr_str(c, "data_format");
    return format.len == 5 ? 5 : 4;
}

static void fused_batch_norm(ShapeContext *c) {
    int rank = norm_rank(c), axis = depth_is_first(c) ? 1 : rank - 1;
    PartialShape x = ctx_in_rank(c, 0, rank);
    bool training = ctx_attr_bool(c, "is_training");
    int64_t depth = x.dims[axis];
    float factor = 1;
    Str value;
    if (node_attr(c->node, "exponential_avg_factor", &value)) attr_float(value, &factor);
    int vectors = !training || factor != 1.0f ? 5 : 3;
    for (int i = 1; i < vectors; i++) depth = ctx_merge_dim(c, depth, ctx_in_rank(c, i, 1).dims[0]);
    ctx_out(c, 0, ctx_replace(c, x, axis, depth));
    for (int i = 1; i < 5; i++) ctx_out(c, i, shape_vector(depth));
}

static void fused_batch_norm_grad(ShapeContext *c) {
    int rank = norm_rank(c), axis = depth_is_first(c) ? 1 : rank - 1;
    PartialShape grad = ctx_in_rank(c, 0, rank), x = ctx_in_rank(c, 1, rank);
    int64_t depth = ctx_merge_dim(c, grad.dims[axis], x.dims[axis]);
    for (int i = 2; i < 5; i++) depth = ctx_merge_dim(c, depth, ctx_in_rank(c, i, 1).dims[0]);
    ctx_out(c, 0, ctx_replace(c, grad, axis, depth));
    ctx_out(c, 1, shape_vector(depth));
    ctx_out(c, 2, shape_vector(depth));
    ctx_out(c, 3, shape_vector(0));
    ctx_out(c, 4, shape_vector(0));
}

static void cross_entropy(ShapeContext *c) {
    /* Alike if they can be; else one is broadcast. */
    ShapeContext trial = {.info = c->info, .node = c->node, .in = c->in};
    PartialShape s = ctx_merge(&trial, ctx_in_rank(&trial, 0, 2), c->in[1]);
    if (trial.err) s = ctx_broadcast(c, c->in[0], c->in[1]);
    error_free(trial.err);
    if (s.rank >= 0 && s.rank != 2) ctx_fail(c, "Shape must be rank 2 but is rank %d", s.rank);
    if (s.rank < 0) {
        ctx_in_rank(c, 0, 2);
        ctx_in_rank(c, 1, 2);
    }
    s = ctx_rank(c, s, 2);
    ctx_out(c, 0, shape_vector(s.dims[0]));
    ctx_out(c, 1, s);
}

static void top_k_of(ShapeContext *c, int64_t k) {
    PartialShape s = ctx_rank_at_least(c, c->in[0], 1);
    int64_t last = shape_dim(s, -1);
    if (last >= 0 && k >= 0 && last < k) ctx_fail(c, "input must have last dimension >= k = %lld but is %lld", (long long)k, (long long)last);
    ctx_out_all(c, ctx_replace(c, s, -1, k));
}

static void top_k(ShapeContext *c) {
    top_k_of(c, ctx_attr_int(c, "k"));
}

static void top_k_v2(ShapeContext *c) {
    top_k_of(c, ctx_dim_of(c, 1));
}

static void merge_two(ShapeContext *c) {
    ctx_out(c, 0, ctx_merge(c, c->in[0], c->in[1]));
}

/* Space and depth: blocks of block_size * block_size pixels. */
static void space_depth(ShapeContext *c, bool to_depth) {
    int64_t block = ctx_attr_int(c, "block_size");
    Str format = ctx_attr_str(c, "data_format");
    bool vectors = str_is(format, "NCHW_VECT_C"); /* depth in groups of four: a fifth dimension */
    ImageLayout at = image_layout(vectors ? STR("NCHW") : format, 4);
    PartialShape s = ctx_in_rank(c, 0, vectors ? 5 : 4);
    if (vectors) s.dims[4] = 4;
    for (int i = 0; i < 2; i++) {
        int64_t *dim = &s.dims[at.spatial + i];
        *dim = to_depth ? ctx_dim_div(c, *dim, block, true) : ctx_dim_mul(c, *dim, block);
    }
    int64_t *depth = &s.dims[at.depth];
    int64_t pixels = ctx_dim_mul(c, block, block);
    *depth = to_depth ? ctx_dim_mul(c, *depth, pixels) : ctx_dim_div(c, *depth, pixels, true);
    ctx_out(c, 0, s);
}

static void space_to_depth(ShapeContext *c) {
    space_depth(c, true);
}

static void depth_to_space(ShapeContext *c) {
    space_depth(c, false);
}

/* Batches and blocks. `block` holds `count` sizes (known), `pads` pairs of numbers or NULL. */
static void batch_blocks(ShapeContext *c, const int64_t *block, int count, int pad_input, bool to_batch) {
    PartialShape s = ctx_rank_at_least(c, c->in[0], count + 1), pads = ctx_rank(c, c->in[pad_input], 2);
    int64_t product = 1;
    ctx_dim_is(c, pads.dims[0], count);
    ctx_dim_is(c, pads.dims[1], 2);
    for (int i = 0; i < count; i++) {
        if (block[i] < 1) ctx_fail(c, "block_shape must be positive");
        product = ctx_dim_mul(c, product, block[i]);
    }
    const Tensor *t = ctx_value(c, pad_input);
    for (int64_t i = 0; t && i < t->count; i++)
        if (tensor_index(t, i) < 0) ctx_fail(c, "paddings and crops cannot be negative");
    if (s.rank < 0 || c->err) return;
    s.dims[0] = to_batch ? ctx_dim_mul(c, s.dims[0], product) : ctx_dim_div(c, s.dims[0], product, true);
    for (int i = 0; i < count; i++) {
        int64_t *dim = &s.dims[i + 1];
        int64_t before = t ? tensor_index(t, 2 * i) : 0, after = t ? tensor_index(t, 2 * i + 1) : 0;
        if (to_batch)
            *dim = t ? ctx_dim_div(c, ctx_dim_add(c, *dim, before + after), block[i], true) : DIM_UNKNOWN;
        else
            *dim = t ? ctx_dim_sub(c, ctx_dim_mul(c, *dim, block[i]), before + after) : DIM_UNKNOWN;
    }
    ctx_out(c, 0, s);
}

static void batch_blocks_2d(ShapeContext *c, bool to_batch) {
    int64_t size = ctx_attr_int(c, "block_size"), block[2] = {size, size};
    ctx_in_rank(c, 0, 4);
    if (!c->err) batch_blocks(c, block, 2, 1, to_batch);
    if (c->in[0].rank < 0) ctx_out(c, 0, shape_unknown_dims(4));
}

static void space_to_batch(ShapeContext *c) {
    batch_blocks_2d(c, true);
}

static void batch_to_space(ShapeContext *c) {
    batch_blocks_2d(c, false);
}

static void batch_blocks_nd(ShapeContext *c, bool to_batch) {
    PartialShape block_shape = ctx_in_rank(c, 1, 1), pads = ctx_in_rank(c, 2, 2);
    int64_t count = ctx_merge_dim(c, block_shape.dims[0], pads.dims[0]), block[SHAPE_MAX_RANK];
    const Tensor *t = ctx_value(c, 1);
    ctx_dim_is(c, pads.dims[1], 2);
    if (c->in[1].rank < 0) ctx_fail(c, "block_shape must have rank 1.");
    if (count >= 0 && count < SHAPE_MAX_RANK) ctx_rank_at_least(c, c->in[0], (int)count + 1);
    if (c->err) return;
    if (!t || count < 0 || count >= SHAPE_MAX_RANK) {
        PartialShape out = shape_unknown_dims(c->in[0].rank);
        for (int i = (int)count + 1; count >= 0 && i < out.rank; i++) out.dims[i] = c->in[0].dims[i];
        ctx_out(c, 0, out);
        return;
    }
    for (int i = 0; i < count; i++) block[i] = tensor_index(t, i);
    batch_blocks(c, block, (int)count, 2, to_batch);
}

static void space_to_batch_nd(ShapeContext *c) {
    batch_blocks_nd(c, true);
}

static void batch_to_space_nd(ShapeContext *c) {
    batch_blocks_nd(c, false);
}

static void fake_quant_per_channel(ShapeContext *c) {
    PartialShape s = ctx_rank_at_least(c, c->in[0], 1);
    int64_t depth = ctx_merge_dim(c, ctx_in_rank(c, 1, 1).dims[0], ctx_in_rank(c, 2, 1).dims[0]);
    ctx_merge_dim(c, shape_dim(s, -1), depth);
    ctx_out(c, 0, s);
}

static void fake_quant_per_channel_grad(ShapeContext *c) {
    PartialShape s = ctx_merge(c, ctx_rank_at_most(c, ctx_rank_at_least(c, c->in[0], 1), 4), c->in[1]);
    int64_t depth = ctx_merge_dim(c, ctx_merge_dim(c, shape_dim(s, -1), ctx_in_rank(c, 2, 1).dims[0]), ctx_in_rank(c, 3, 1).dims[0]);
    ctx_out(c, 0, s);
    ctx_out(c, 1, shape_vector(depth));
    ctx_out(c, 2, shape_vector(depth));
}

/* Ranges are scalars, or vectors along the axis; returns their shape. */
static PartialShape check_range(ShapeContext *c, int64_t axis, int low, int high) {
    PartialShape minmax = ctx_merge(c, ctx_rank(c, c->in[low], axis == -1 ? 0 : 1), c->in[high]);
    if (axis < -1) ctx_fail(c, "axis should be at least -1, got %lld", (long long)axis);
    if (axis < 0 || c->err) return minmax;
    PartialShape s = ctx_rank_at_least(c, c->in[0], shape_axis(axis) + 1);
    ctx_merge_dim(c, shape_dim(minmax, 0), shape_dim(s, shape_axis(axis)));
    return minmax;
}

static void quantize_and_dequantize(ShapeContext *c) {
    check_range(c, ctx_attr_int(c, "axis"), 1, 2);
    if (c->in_count > 3) ctx_want_scalar(c, 3);
    ctx_out(c, 0, c->in[0]);
}

static void quantize_v2(ShapeContext *c) {
    int64_t axis = ctx_attr_int(c, "axis");
    ctx_in_rank(c, 1, axis == -1 ? 0 : 1);
    PartialShape range = check_range(c, axis, 2, 2); /* TensorFlow looks at the maximum alone */
    ctx_out(c, 0, c->in[0]);
    for (int i = 1; i < 3; i++) ctx_out(c, i, range);
}

static void quantize_v4_grad(ShapeContext *c) {
    int64_t axis = ctx_attr_int(c, "axis");
    PartialShape minmax = check_range(c, axis, 2, 3);
    ctx_out(c, 0, ctx_merge(c, c->in[0], c->in[1]));
    ctx_out(c, 1, minmax);
    ctx_out(c, 2, minmax);
}

static void dequantize(ShapeContext *c) {
    int64_t axis = ctx_attr_int(c, "axis");
    if (axis >= 0 && axis >= c->in[0].rank) ctx_fail(c, "Axis must be less than input dimension(%d), got %lld", c->in[0].rank, (long long)axis);
    check_range(c, axis, 1, 2);
    ctx_out(c, 0, c->in[0]);
}

static void isotonic(ShapeContext *c) {
    ctx_out_all(c, c->in[0]);
}

static void lstm_cell_grad(ShapeContext *c) {
    PartialShape x = ctx_in_rank(c, 0, 2), state = ctx_in_rank(c, 1, 2);
    int64_t cells = state.dims[1];
    ctx_out_all(c, shape_vector(cells));
    ctx_out(c, 0, shape_matrix(x.dims[0], cells));
    ctx_out(c, 1, shape_matrix(x.dims[0], ctx_dim_mul(c, cells, 4)));
}

static void lstm_sequence(ShapeContext *c) {
    PartialShape x = ctx_in_rank(c, 1, 3), bias = ctx_in_rank(c, c->in_count - 1, 1);
    ctx_out_all(c, ctx_replace(c, x, 2, ctx_dim_div(c, bias.dims[0], 4, true)));
}

#define LSTM_SEQUENCE_GRAD "* [a,b,c] [d,e] [f,g] [h,i] [j] [k] [l] [m] -> [a,b,c] [d,e] [f,g] [h,i] [j] [k] [l] [m]"

static void approx_top_k(ShapeContext *c) {
    if (c->in[0].rank < 0) ctx_fail(c, "Invalid reduction dimension: -1. Must be within the range of [1, -2]");
    const int64_t axis = ctx_attr_int(c, "reduction_dimension"), rank = c->in[0].rank;
    if (axis == -1 || axis == rank - 1 || axis < -rank || axis >= rank)
        top_k(c);
    else
        ctx_out_all(c, ctx_replace(c, c->in[0], (int)axis, ctx_attr_int(c, "k")));
}

/* What weights change by is like the weights. */
static void sdca(ShapeContext *c) {
    int sparse = 0, sparse_count = 0, dense = 0, dense_count = 0;
    ctx_arg(c, "sparse_weights", &sparse, &sparse_count);
    ctx_arg(c, "dense_weights", &dense, &dense_count);
    ctx_out(c, 0, (PartialShape){.rank = 2, .dims = {DIM_UNKNOWN, 4}});
    for (int i = 0; i < sparse_count; i++) ctx_out(c, 1 + i, c->in[sparse + i]);
    for (int i = 0; i < dense_count; i++) ctx_out(c, 1 + sparse_count + i, c->in[dense + i]);
}

const ShapeRow nn_rules[] = {
    {"BatchToSpace", batch_to_space, 0},
    {"BatchToSpaceND", batch_to_space_nd, 0},
    {"BiasAdd", rule_bias_add, 0},
    {"BiasAddGrad", bias_add_grad, 0},
    {"BiasAddV1", bias_add_v1, 0},
    {"ApproxTopK", approx_top_k, 0},
    {"BatchNormWithGlobalNormalization", 0, "[a,b,c,d] [d] [d] [d] [d] -> [a,b,c,d]"},
    {"BatchNormWithGlobalNormalizationGrad", 0, "[a,b,c,d] [d] [d] [d] [a,b,c,d] -> [a,b,c,d] [d] [d] [d] [d]"},
    {"BlockLSTM", lstm_sequence, 0},
    {"BlockLSTMGrad", 0, LSTM_SEQUENCE_GRAD},
    {"BlockLSTMGradV2", 0, LSTM_SEQUENCE_GRAD},
    {"BlockLSTMV2", lstm_sequence, 0},
    {"CTCBeamSearchDecoder", 0, "[?,b,?] [b] -> [?,2] [?] [2] [b,{top_paths}]"},
    {"CTCGreedyDecoder", 0, "[?,b,?] [b] -> [?,2] [?] [2] [b,1]"},
    {"CTCLoss", 0, "[t,b,c] [n,?] [n] [b] -> [b] [t,b,c]"},
    {"CTCLossV2", 0, "[t,b,c] [n,?] [n] [b] -> [b] [t,b,c]"},
    {"DepthToSpace", depth_to_space, 0},
    {"Dequantize", dequantize, 0},
    {"Elu", rule_same, 0},
    {"EluGrad", merge_two, 0},
    {"FakeQuantWithMinMaxArgs", rule_same, 0},
    {"FakeQuantWithMinMaxArgsGradient", rule_same, 0},
    {"FakeQuantWithMinMaxVars", rule_same, "* [] []"},
    {"FakeQuantWithMinMaxVarsGradient", 0, "S S [] [] -> S [] []"},
    {"FakeQuantWithMinMaxVarsPerChannel", fake_quant_per_channel, 0},
    {"FakeQuantWithMinMaxVarsPerChannelGradient", fake_quant_per_channel_grad, 0},
    {"FusedBatchNorm", fused_batch_norm, 0},
    {"FusedBatchNormGrad", fused_batch_norm_grad, 0},
    {"FusedBatchNormGradV2", fused_batch_norm_grad, 0},
    {"FusedBatchNormGradV3", fused_batch_norm_grad, 0},
    {"FusedBatchNormV2", fused_batch_norm, 0},
    {"FusedBatchNormV3", fused_batch_norm, 0},
    {"_FusedBatchNormEx", fused_batch_norm, 0},
    {"_MklFusedInstanceNorm", rule_same, 0},
    {"_MklFusedMish", rule_same, 0},
    {"_MklLayerNorm", rule_same, 0},
    {"_MklSwish", rule_same, 0},
    {"GRUBlockCell", 0, "[b,?] [?,c] -> [b,c] [b,c] [b,c] [b,c]"},
    {"GRUBlockCellGrad", 0, "[b,i] [?,c] [?,w] -> [b,i] [b,c] [b,c] [b,w]"},
    {"KMC2ChainInitialization", rule_scalar, 0},
    {"SdcaFprint", 0, "[n] -> [n,2]"},
    {"SdcaOptimizer", sdca, 0},
    {"SdcaOptimizerV2", sdca, 0},
    {"SdcaShrinkL1", rule_unknown, 0},
    {"NegTrain", rule_unknown, 0},
    {"Skipgram", rule_unknown, 0},
    {"KmeansPlusPlusInitialization", rule_unknown, 0},
    {"NearestNeighbors", rule_unknown, 0},
    {"InTopK", 0, "[b,?] [b] -> [b]"},
    {"InTopKV2", 0, "[b,?] [b] * -> [b]"},
    {"L2Loss", rule_scalar, 0},
    {"LRN", 0, "[a,b,c,d] -> [a,b,c,d]"},
    {"LRNGrad", 0, "[a,b,c,d] [a,b,c,d] [a,b,c,d] -> [a,b,c,d]"},
    {"LSTMBlockCell", 0, "[b,?] [?,c] -> [b,c] [b,c] [b,c] [b,c] [b,c] [b,c] [b,c]"},
    {"LSTMBlockCellGrad", lstm_cell_grad, 0},
    {"LeakyRelu", rule_same, 0},
    {"LeakyReluGrad", merge_two, 0},
    {"LogSoftmax", 0, "[S...,n] -> [S...,n]"},
    {"QuantizeAndDequantize", rule_same, 0},
    {"QuantizeAndDequantizeV2", quantize_and_dequantize, 0},
    {"QuantizeAndDequantizeV3", quantize_and_dequantize, 0},
    {"QuantizeAndDequantizeV4", quantize_and_dequantize, 0},
    {"QuantizeAndDequantizeV4Grad", quantize_v4_grad, 0},
    {"QuantizeV2", quantize_v2, 0},
    {"Relu", rule_same, 0},
    {"Relu6", rule_same, 0},
    {"Relu6Grad", merge_two, 0},
    {"ReluGrad", merge_two, 0},
    {"Selu", rule_same, 0},
    {"SeluGrad", merge_two, 0},
    {"Softmax", 0, "[S...,n] -> [S...,n]"},
    {"SoftmaxCrossEntropyWithLogits", cross_entropy, 0},
    {"Softplus", rule_same, 0},
    {"SoftplusGrad", merge_two, 0},
    {"Softsign", rule_same, 0},
    {"SoftsignGrad", merge_two, 0},
    {"SpaceToBatch", space_to_batch, 0},
    {"SpaceToBatchND", space_to_batch_nd, 0},
    {"SpaceToDepth", space_to_depth, 0},
    {"SparseSoftmaxCrossEntropyWithLogits", 0, "[b,n] [b] -> [b] [b,n]"},
    {"TopK", top_k, 0},
    {"TopKV2", top_k_v2, 0},
    {"IsotonicRegression", isotonic, 0},
    {0},
};
