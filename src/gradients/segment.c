/* segment.c: gradients of sums and other reductions by segment. */
#include "gradients/rule.h"

static void segment_sum_grad(Builder *b, Rule *r) {
    rule_set(r, 0, b_gather(b, rule_dy(r, 0), rule_in(r, 1)));
}

/* The number of rows of each segment, with ones behind so that it divides rows. */
static Output segment_sizes(Builder *b, Rule *r, DataType type) {
    Output ids = rule_in(r, 1), rank = b_size(b, rule_in_shape(r, 0));
    Output tail = b_fill(b, b_expand(b, b_shift(b, rank, -1), 0), b_i32(b, 1));
    Output ones = b_fill(b, b_concat2(b, b_shape(b, ids), tail, 0), b_scalar(b, type, 1));
    return b_op2(b, "SegmentSum", ones, ids);
}

static void segment_mean_grad(Builder *b, Rule *r) {
    Output dy = rule_dy(r, 0);
    rule_set(r, 0, b_gather(b, b_div(b, dy, segment_sizes(b, r, output_dtype(dy))), rule_in(r, 1)));
}

static void segment_extreme_grad(Builder *b, Rule *r) {
    Output ids = rule_in(r, 1), dy = rule_dy(r, 0);
    Output hit = b_op2(b, "Equal", rule_in(r, 0), b_gather(b, rule_out(r, 0), ids));
    Output count = b_op2(b, "SegmentSum", b_cast(b, hit, output_dtype(dy)), ids);
    rule_set(r, 0, b_where_or_zero(b, hit, b_gather(b, b_div(b, dy, count), ids)));
}

/* What a reduction by segment asks of its ids, sorted or not: sums, products, and rows of the result. Negative ids have
 * no segment. */
typedef struct Segments {
    Output ids, safe_ids, count; /* count is none for sorted ids */
} Segments;

static Segments segments_of(Builder *b, Rule *r) {
    Segments s = {.ids = rule_in(r, 1)};
    s.safe_ids = s.ids;
    if (rule_node(r)->input_count < 3) return s;
    s.count = rule_in(r, 2);
    s.safe_ids = b_op2(b, "Maximum", s.ids, b_zeros_like(b, s.ids));
    return s;
}

static Output segment_op(Builder *b, const Segments *s, const char *sorted, const char *unsorted, Output x) {
    return has(s->count) ? b_op3(b, unsorted, x, s->ids, s->count) : b_op2(b, sorted, x, s->ids);
}

/* Of unsorted ids: whether each is one, of a shape that broadcasts to rows like `like`. */
static Output is_valid(Builder *b, const Segments *s, Output like) {
    Output valid = b_op2(b, "GreaterEqual", s->ids, b_zeros_like(b, s->ids)), shape = b_shape(b, s->ids);
    Output more = b_sub(b, b_rank(b, like), b_rank(b, s->ids));
    return b_reshape(b, valid, b_concat2(b, shape, b_fill(b, b_expand(b, more, 0), b_i32(b, 1)), 0));
}

static Output rows_or_zero(Builder *b, const Segments *s, Output x) {
    Output rows = b_gather(b, x, s->safe_ids);
    return has(s->count) ? b_where_or_zero(b, is_valid(b, s, rows), rows) : rows;
}

static void unsorted_sum_grad(Builder *b, Rule *r) {
    Segments s = segments_of(b, r);
    rule_set(r, 0, rows_or_zero(b, &s, rule_dy(r, 0)));
}

static void unsorted_extreme_grad(Builder *b, Rule *r) {
    Segments s = segments_of(b, r);
    Output dy = rule_dy(r, 0), rows = b_gather(b, rule_out(r, 0), s.safe_ids);
    Output hit = b_op2(b, "LogicalAnd", b_op2(b, "Equal", rule_in(r, 0), rows), is_valid(b, &s, rows));
    Output count = segment_op(b, &s, "SegmentSum", "UnsortedSegmentSum", b_cast(b, hit, output_dtype(dy)));
    rule_set(r, 0, b_where_or_zero(b, hit, b_gather(b, b_div(b, dy, count), s.safe_ids)));
}

/* The product of the others: by division where nothing is 0; of a segment with one 0, that element alone gets the
 * product of the rest. */
static void segment_prod_grad(Builder *b, Rule *r) {
    Segments s = segments_of(b, r);
    Output x = rule_in(r, 0), dy = rule_dy(r, 0);
    Output is_zero = b_op2(b, "Equal", x, b_scalar(b, output_dtype(x), 0));
    Output zeros = segment_op(b, &s, "SegmentSum", "UnsortedSegmentSum", b_cast(b, is_zero, DT_INT32));
    dy = b_select(b, b_op2(b, "Greater", zeros, b_i32(b, 1)), b_scalar(b, output_dtype(dy), 0), dy);
    Output others = b_select(b, is_zero, b_ones_like(b, x), x);
    Output rest = b_gather(b, segment_op(b, &s, "SegmentProd", "UnsortedSegmentProd", others), s.safe_ids);
    Output divided = b_div(b, b_gather(b, rule_out(r, 0), s.safe_ids), others);
    rule_set(r, 0, b_mul(b, rows_or_zero(b, &s, dy), b_select(b, is_zero, rest, divided)));
}

/* ---- Rows of data, by indices ---- */

static void sparse_segment_grad(Builder *b, Rule *r, const char *op, const char *sparse_op) {
    Output shape = rule_in_shape(r, 0), rows = b_item(b, shape, 0), dy = rule_dy(r, 0), indices = rule_in(r, 1),
           ids = rule_in(r, 2);
    Str value;
    bool sparse = false;
    if (node_attr(rule_node(r), "sparse_gradient", &value)) attr_bool(value, &sparse);
    if (!sparse) {
        rule_set(r, 0, b_op4(b, op, dy, indices, ids, rows));
        return;
    }
    Node *found = b_node(b, sparse_op, (Output[]){dy, indices, ids, rows}, 4);
    rule_set_sparse(r, 0, output_of(found, 0), output_of(found, 1), shape);
}

static void sparse_segment_sum_grad(Builder *b, Rule *r) {
    sparse_segment_grad(b, r, "SparseSegmentSumGrad", "SparseSegmentSumGradV2");
}

static void sparse_segment_mean_grad(Builder *b, Rule *r) {
    sparse_segment_grad(b, r, "SparseSegmentMeanGrad", "SparseSegmentMeanGradV2");
}

static void sparse_segment_sqrt_n_grad(Builder *b, Rule *r) {
    sparse_segment_grad(b, r, "SparseSegmentSqrtNGrad", "SparseSegmentSqrtNGradV2");
}

/* Each number that shares its value with neighbours gets the mean of their gradients. */
static void isotonic_grad(Builder *b, Rule *r) {
    Output dy = rule_dy(r, 0), shape = b_shape(b, dy), length = b_item(b, shape, -1), minus = b_i32s(b, 1, (int[]){-1});
    Output matrix = b_concat2(b, minus, b_items(b, shape, -1, 0), 0), rows = b_reshape(b, rule_out(r, 1), matrix);
    Output row_count = b_item(b, b_shape(b, rows), 0), starts = b_mul(b, b_range(b, b_i32(b, 0), row_count), length);
    Output ids = b_flatten(b, b_add(b, rows, b_expand(b, starts, 1))), values = b_flatten(b, dy), total = b_size(b, dy);
    Output sums = b_op3(b, "UnsortedSegmentSum", values, ids, total);
    Output counts = b_op3(b, "UnsortedSegmentSum", b_ones_like(b, values), ids, total);
    Output dx = b_div(b, b_gather(b, sums, ids), b_gather(b, counts, ids));
    rule_set(r, 0, b_cast(b, b_reshape(b, dx, shape), rule_type(b, r, "T")));
}

const GradientDef segment_gradients[] = {
    {"SegmentMax", segment_extreme_grad},
    {"SegmentMean", segment_mean_grad},
    {"SegmentMin", segment_extreme_grad},
    {"SegmentProd", segment_prod_grad},
    {"SegmentSum", segment_sum_grad},
    {"SparseSegmentMean", sparse_segment_mean_grad},
    {"SparseSegmentMeanWithNumSegments", sparse_segment_mean_grad},
    {"SparseSegmentSqrtN", sparse_segment_sqrt_n_grad},
    {"SparseSegmentSqrtNWithNumSegments", sparse_segment_sqrt_n_grad},
    {"SparseSegmentSum", sparse_segment_sum_grad},
    {"SparseSegmentSumWithNumSegments", sparse_segment_sum_grad},
    {"UnsortedSegmentMax", unsorted_extreme_grad},
    {"UnsortedSegmentMin", unsorted_extreme_grad},
    {"UnsortedSegmentProd", segment_prod_grad},
    {"UnsortedSegmentSum", unsorted_sum_grad},
    {"IsotonicRegression", isotonic_grad},
    {0},
};
