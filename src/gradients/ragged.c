/* ragged.c: gradients of ragged tensors (splits of rows, then the values): only values have gradients. */
#include <stdlib.h>

#include "base/memory.h"
#include "gradients/rule.h"

/* The values of all rows that were gathered, in their order, are rows of dy. */
static void ragged_gather_grad(Builder *b, Rule *r) {
    const Node *n = rule_node(r);
    int values = n->input_count - 2;
    Output splits = rule_in(r, 0), which = b_flatten(b, rule_in(r, -1));
    for (int i = 1; i < values; i++) splits = b_gather(b, rule_in(r, i), splits);
    Output starts = b_gather(b, splits, which), ends = b_gather(b, b_items(b, splits, 1, 0), which);
    Node *range = b_node(b, "RaggedRange", (Output[]){starts, ends, b_scalar(b, output_dtype(splits), 1)}, 3);
    rule_set_sparse(r, values, rule_dy(r, n->output_count - 1), output_of(range, 1), rule_in_shape(r, values));
}

/* The same op on the numbers of the values tells where each went; -1 is where the default is. */
static void ragged_to_tensor_grad(Builder *b, Rule *r) {
    const Node *n = rule_node(r);
    Str value;
    int count = node_attr(n, "row_partition_types", &value) ? attr_list_strings(value, NULL, 0) : 0, rank = 0;
    Str *kinds = xcalloc((size_t)(count > 0 ? count : 0) + 1, sizeof *kinds);
    if (count > 0) attr_list_strings(value, kinds, count);
    for (int i = 0; i < count; i++) rank += !str_is(kinds[i], "FIRST_DIM_SIZE");
    free(kinds);
    Output dy = rule_dy(r, 0), shape = b_shape(b, dy), values = rule_in_shape(r, 1), rows = b_item(b, values, 0);
    Output *inputs = arena_calloc(b->g->arena, (size_t)n->input_count, sizeof *inputs);
    inputs[0] = b_items(b, shape, 0, 1 + rank);
    inputs[1] = b_range(b, b_i32(b, 0), rows);
    inputs[2] = b_i32(b, -1);
    for (int i = 3; i < n->input_count; i++) inputs[i] = rule_in(r, i);
    b_with_type(b, "T", DT_INT32);
    b_with_type(b, "Tshape", DT_INT32);
    b_with_attrs_of(b, n);
    Output numbers = b_flatten(b, b_op(b, "RaggedTensorToTensor", inputs, n->input_count));
    Output inner = b_items(b, values, 1, 0), flat = b_reshape(b, dy, b_concat2(b, b_i32s(b, 1, (int[]){-1}), inner, 0));
    if (rule_wants(r, 1)) rule_set(r, 1, b_reshape(b, b_op3(b, "UnsortedSegmentSum", flat, numbers, rows), values));
    if (!rule_wants(r, 2)) return;
    Output ones = b_ones_like(b, inner), mask = b_reshape(b, b_op2(b, "Less", numbers, b_i32(b, 0)),
                                                          b_concat2(b, b_i32s(b, 1, (int[]){-1}), ones, 0));
    rule_set_reduced_to(b, r, 2, b_where_or_zero(b, mask, flat), b_shape(b, flat));
}

static void ragged_to_sparse_grad(Builder *b, Rule *r) {
    int values = rule_node(r)->input_count - 1;
    rule_set(r, values, b_reshape(b, rule_dy(r, 1), rule_in_shape(r, values)));
}

static void to_variant_grad(Builder *b, Rule *r) {
    int values = rule_node(r)->input_count - 1;
    Output dy = rule_dy(r, 0), splits = values ? rule_in(r, 0) : b_i32(b, 0), shape = rule_in_shape(r, values);
    b_with_type(b, "Tvalues", output_dtype(rule_in(r, values)));
    rule_set(r, values, b_op3(b, "RaggedTensorToVariantGradient", dy, splits, shape));
}

static void from_variant_grad(Builder *b, Rule *r) {
    const Node *n = rule_node(r);
    int splits = n->output_count - 1;
    Output *inputs = arena_calloc(b->g->arena, (size_t)n->output_count, sizeof *inputs);
    for (int i = 0; i < splits; i++) inputs[i] = rule_out(r, i);
    inputs[splits] = rule_dy(r, splits);
    b_with_bool(b, "batched_input", rule_int(b, r, "output_ragged_rank") > 0);
    b_with_type(b, "Tsplits", rule_type(b, r, "Tsplits"));
    b_with_int(b, "RAGGED_RANK", splits);
    rule_set(r, 0, b_op(b, "RaggedTensorToVariant", inputs, n->output_count));
}

/* Elements equal to the n-th share the gradient. */
static void nth_element_grad(Builder *b, Rule *r) {
    Output dy = b_expand(b, rule_dy(r, 0), -1);
    Output hits = b_cast(b, b_op2(b, "Equal", b_expand(b, rule_out(r, 0), -1), rule_in(r, 0)), output_dtype(dy));
    Output count = b_sum(b, hits, b_i32s(b, 1, (int[]){-1}), true);
    rule_set(r, 0, b_mul(b, b_div(b, hits, count), dy));
}

const GradientDef ragged_gradients[] = {
    {"NthElement", nth_element_grad},
    {"RaggedGather", ragged_gather_grad},
    {"RaggedTensorFromVariant", from_variant_grad},
    {"RaggedTensorToSparse", ragged_to_sparse_grad},
    {"RaggedTensorToTensor", ragged_to_tensor_grad},
    {"RaggedTensorToVariant", to_variant_grad},
    {0},
};
