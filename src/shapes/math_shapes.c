/* math_shapes.c: rules of element-wise arithmetic, reductions and matrix products. */
#include "shapes/rule_list.h"

/* Equal and NotEqual may be told that shapes that do not go together are simply not equal. */
static void compare_equal(ShapeContext *c) {
    if (ctx_attr_bool(c, "incompatible_shape_error")) {
        rule_broadcast(c);
        return;
    }
    PartialShape a = c->in[0], b = c->in[1];
    PartialShape s = {.rank = a.rank < 0 || b.rank < 0 ? -1 : a.rank > b.rank ? a.rank : b.rank};
    for (int i = 0; i < s.rank; i++) {
        int ai = i - (s.rank - a.rank), bi = i - (s.rank - b.rank);
        int64_t x = ai < 0 ? 1 : a.dims[ai], y = bi < 0 ? 1 : b.dims[bi];
        s.dims[i] = x == 1 ? y : x;
        if (x == y || x == 1 || y == 1) continue;
        /* Unequal as a whole: one answer; perhaps so: nobody knows. */
        ctx_out(c, 0, x >= 0 && y >= 0 ? SHAPE_SCALAR : SHAPE_UNKNOWN);
        return;
    }
    ctx_out(c, 0, s);
}

static void approximate_equal(ShapeContext *c) {
    ctx_merge(c, c->in[0], c->in[1]);
    ctx_out(c, 0, c->in[0]);
}

/* Three alike; scalars go with anything. */
static void betainc(ShapeContext *c) {
    PartialShape out = SHAPE_UNKNOWN, other = SHAPE_UNKNOWN;
    int scalars = 0;
    for (int i = 0; i < 3; i++) {
        PartialShape s = c->in[i];
        scalars += s.rank == 0;
        if (s.rank > 0) out = ctx_merge(c, out, s);
        if (s.rank != 0) other = s.rank < 0 ? s : out;
    }
    ctx_out(c, 0, scalars == 3 ? SHAPE_SCALAR : scalars == 2 ? other : out);
}

/* Axes from a constant; false when they are not known. */
static void reduction(ShapeContext *c) {
    PartialShape s = c->in[0], axes_shape = c->in[1], out = SHAPE_SCALAR;
    Str value;
    bool keep = false, drop[SHAPE_MAX_RANK] = {0};
    if (node_attr(c->node, "keep_dims", &value)) attr_bool(value, &keep);
    if (axes_shape.rank > 1) ctx_fail(c, "Shape must be at most rank 1 but is rank %d", axes_shape.rank);
    const Tensor *axes = ctx_value(c, 1);
    if (!axes || s.rank < 0) {
        ctx_out(c, 0, keep ? shape_unknown_dims(s.rank) : SHAPE_UNKNOWN);
        return;
    }
    for (int64_t i = 0; i < axes->count; i++) {
        int64_t axis = tensor_index(axes, i);
        if (axis < -s.rank || axis >= s.rank) {
            ctx_fail(c, "Invalid reduction dimension %lld for input with %d dimensions.", (long long)axis, s.rank);
            return;
        }
        drop[axis < 0 ? axis + s.rank : axis] = true;
    }
    for (int i = 0; i < s.rank; i++) {
        if (drop[i] && !keep) continue;
        out.dims[out.rank++] = drop[i] ? 1 : s.dims[i];
    }
    ctx_out(c, 0, out);
}

void rule_matmul(ShapeContext *c) {
    PartialShape a = ctx_in_rank(c, 0, 2), b = ctx_in_rank(c, 1, 2);
    int ta = ctx_attr_bool(c, "transpose_a"), tb = ctx_attr_bool(c, "transpose_b");
    ctx_merge_dim(c, a.dims[ta ? 0 : 1], b.dims[tb ? 1 : 0]);
    ctx_out(c, 0, shape_matrix(a.dims[ta ? 1 : 0], b.dims[tb ? 0 : 1]));
}

static void batch_matmul_of(ShapeContext *c, bool broadcasts) {
    PartialShape a = ctx_rank_at_least(c, c->in[0], 2), b = ctx_rank_at_least(c, c->in[1], 2);
    bool ta = ctx_attr_bool(c, "adj_x"), tb = ctx_attr_bool(c, "adj_y");
    int64_t rows = shape_dim(a, ta ? -1 : -2), cols = shape_dim(b, tb ? -2 : -1);
    PartialShape outer_a = ctx_sub(c, a, 0, a.rank < 0 ? 0 : a.rank - 2), outer_b = ctx_sub(c, b, 0, b.rank < 0 ? 0 : b.rank - 2);
    PartialShape outer = broadcasts ? ctx_broadcast(c, outer_a, outer_b) : ctx_merge(c, outer_a, outer_b);
    ctx_merge_dim(c, shape_dim(a, ta ? -2 : -1), shape_dim(b, tb ? -1 : -2));
    ctx_out(c, 0, ctx_concat(c, outer, shape_matrix(rows, cols)));
}

static void batch_matmul(ShapeContext *c) {
    batch_matmul_of(c, false);
}

static void batch_matmul_v2(ShapeContext *c) {
    batch_matmul_of(c, true);
}

static void arg_reduction(ShapeContext *c) {
    PartialShape s = c->in[0];
    int64_t axis;
    ctx_want_scalar(c, 1);
    if (s.rank >= 0 && s.rank <= 1) {
        ctx_out(c, 0, SHAPE_SCALAR);
        return;
    }
    if (!ctx_int(c, 1, &axis)) {
        ctx_out(c, 0, s.rank < 0 ? SHAPE_UNKNOWN : shape_unknown_dims(s.rank - 1));
        return;
    }
    if (s.rank < 0) return;
    int at = shape_axis(axis < 0 ? axis + s.rank : axis);
    if (at < 0 || at >= s.rank) {
        ctx_fail(c, "Dimension (%lld) must be in the range [%d, %d), where %d is the number of dimensions in the input.", (long long)axis, -s.rank, s.rank,
                 s.rank);
        return;
    }
    shape_remove_dim(&s, at);
    ctx_out(c, 0, s);
}

static void broadcast_all(ShapeContext *c) {
    PartialShape s = SHAPE_SCALAR;
    for (int i = 0; i < c->in_count; i++) s = ctx_broadcast(c, s, c->in[i]);
    ctx_out(c, 0, s);
}

static void add_n(ShapeContext *c) {
    PartialShape s = c->in[c->in_count - 1];
    for (int i = c->in_count - 2; i >= 0; i--) s = ctx_merge(c, s, c->in[i]);
    ctx_out(c, 0, s);
}

const ShapeRow math_rules[] = {
    {"Abs", rule_same, 0},
    {"Acos", rule_same, 0},
    {"Acosh", rule_same, 0},
    {"Add", rule_broadcast, 0},
    {"AddN", add_n, 0},
    {"AddV2", rule_broadcast, 0},
    {"All", reduction, 0},
    {"Angle", rule_same, 0},
    {"Any", reduction, 0},
    {"ApproximateEqual", approximate_equal, 0},
    {"ArgMax", arg_reduction, 0},
    {"ArgMin", arg_reduction, 0},
    {"Asin", rule_same, 0},
    {"Asinh", rule_same, 0},
    {"Atan", rule_same, 0},
    {"Atan2", rule_broadcast, 0},
    {"Atanh", rule_same, 0},
    {"BatchMatMul", batch_matmul, 0},
    {"BatchMatMulV2", batch_matmul_v2, 0},
    {"BatchMatMulV3", batch_matmul_v2, 0},
    {"BesselI0", rule_same, 0},
    {"BesselI0e", rule_same, 0},
    {"BesselI1", rule_same, 0},
    {"BesselI1e", rule_same, 0},
    {"BesselJ0", rule_same, 0},
    {"BesselJ1", rule_same, 0},
    {"BesselK0", rule_same, 0},
    {"BesselK0e", rule_same, 0},
    {"BesselK1", rule_same, 0},
    {"BesselK1e", rule_same, 0},
    {"BesselY0", rule_same, 0},
    {"BesselY1", rule_same, 0},
    {"Betainc", betainc, 0},
    {"BitwiseAnd", rule_broadcast, 0},
    {"BitwiseOr", rule_broadcast, 0},
    {"BitwiseXor", rule_broadcast, 0},
    {"Cast", rule_same, 0},
    {"_HostCast", rule_same, 0},
    {"Ceil", rule_same, 0},
    {"ClipByValue", rule_same, 0},
    {"Complex", rule_broadcast, 0},
    {"ComplexAbs", rule_same, 0},
    {"Conj", rule_identity, 0},
    {"Cos", rule_same, 0},
    {"Cosh", rule_same, 0},
    {"Cumprod", rule_same, 0},
    {"Cumsum", rule_same, 0},
    {"CumulativeLogsumexp", rule_same, 0},
    {"Dawsn", rule_same, 0},
    {"Digamma", rule_same, 0},
    {"Div", rule_broadcast, 0},
    {"DivNoNan", rule_broadcast, 0},
    {"Equal", compare_equal, 0},
    {"Erf", rule_same, 0},
    {"Erfc", rule_same, 0},
    {"Erfinv", rule_same, 0},
    {"EuclideanNorm", reduction, 0},
    {"Exp", rule_same, 0},
    {"Expint", rule_same, 0},
    {"Expm1", rule_same, 0},
    {"Floor", rule_same, 0},
    {"FloorDiv", rule_broadcast, 0},
    {"FloorMod", rule_broadcast, 0},
    {"FresnelCos", rule_same, 0},
    {"FresnelSin", rule_same, 0},
    {"Greater", rule_broadcast, 0},
    {"GreaterEqual", rule_broadcast, 0},
    {"Igamma", rule_broadcast, 0},
    {"IgammaGradA", rule_broadcast, 0},
    {"Igammac", rule_broadcast, 0},
    {"Imag", rule_same, 0},
    {"Inv", rule_same, 0},
    {"InvGrad", rule_same, 0},
    {"Invert", rule_same, 0},
    {"IsFinite", rule_same, 0},
    {"IsInf", rule_same, 0},
    {"IsNan", rule_same, 0},
    {"LeftShift", rule_broadcast, 0},
    {"Less", rule_broadcast, 0},
    {"LessEqual", rule_broadcast, 0},
    {"Lgamma", rule_same, 0},
    {"Log", rule_same, 0},
    {"Log1p", rule_same, 0},
    {"LogicalAnd", rule_broadcast, 0},
    {"LogicalNot", rule_same, 0},
    {"LogicalOr", rule_broadcast, 0},
    {"MatMul", rule_matmul, 0},
    {"Max", reduction, 0},
    {"Maximum", rule_broadcast, 0},
    {"Mean", reduction, 0},
    {"Min", reduction, 0},
    {"Minimum", rule_broadcast, 0},
    {"Mod", rule_broadcast, 0},
    {"Mul", rule_broadcast, 0},
    {"MulNoNan", rule_broadcast, 0},
    {"Ndtri", rule_same, 0},
    {"Neg", rule_same, 0},
    {"NextAfter", rule_broadcast, 0},
    {"NotEqual", compare_equal, 0},
    {"Polygamma", rule_broadcast, 0},
    {"PopulationCount", rule_same, 0},
    {"Pow", rule_broadcast, 0},
    {"Prod", reduction, 0},
    {"Real", rule_same, 0},
    {"RealDiv", rule_broadcast, 0},
    {"Reciprocal", rule_same, 0},
    {"ReciprocalGrad", rule_same, 0},
    {"RightShift", rule_broadcast, 0},
    {"Rint", rule_same, 0},
    {"Round", rule_same, 0},
    {"Rsqrt", rule_same, 0},
    {"RsqrtGrad", rule_same, 0},
    {"Sigmoid", rule_same, 0},
    {"SigmoidGrad", rule_same, 0},
    {"Sign", rule_same, 0},
    {"Sin", rule_same, 0},
    {"Sinh", rule_same, 0},
    {"SparseMatMul", rule_matmul, 0},
    {"Spence", rule_same, 0},
    {"Sqrt", rule_same, 0},
    {"SqrtGrad", rule_same, 0},
    {"Square", rule_same, 0},
    {"SquaredDifference", rule_broadcast, 0},
    {"Sub", rule_broadcast, 0},
    {"Sum", reduction, 0},
    {"Tan", rule_same, 0},
    {"Tanh", rule_same, 0},
    {"TanhGrad", rule_same, 0},
    {"TruncateDiv", rule_broadcast, 0},
    {"TruncateMod", rule_broadcast, 0},
    {"Xdivy", rule_broadcast, 0},
    {"Xlog1py", rule_broadcast, 0},
    {"Xlogy", rule_broadcast, 0},
    {"Zeta", rule_broadcast, 0},
    {"_FusedElementwise", broadcast_all, 0},
    {"_FusedProduct", rule_unknown, 0},
    {"_ProductAdd", rule_unknown, 0},
    {"_ProductSlice", rule_unknown, 0},
    {"_MklFusedBatchMatMulV2", batch_matmul_v2, 0},
    {"_FusedMatMul", rule_matmul, 0},
    {"_UnaryOpsComposition", rule_same, 0},
    {0},
};
