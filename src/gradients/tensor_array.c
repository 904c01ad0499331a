/* tensor_array.c: gradients of TensorArrays: a second array, with the gradients of the first one's elements.

   TensorArrayGradV3 finds or makes it, by the name of this call of gradients_add. Its flow orders the writes before the
   reads, as that of the first array does. */
#include "gradients/rule.h"

typedef struct GradientArray {
    Output handle, flow;
} GradientArray;

/* After `flow`. */
static GradientArray gradient_array(Builder *b, Rule *r, Output flow) {
    Output inputs[] = {rule_in(r, 0), flow};
    b_with(b, "source", attr_make_string(b->g->arena, rule_source(r)));
    Node *n = b_node(b, "TensorArrayGradV3", inputs, 2);
    Output later = b_identity(b, flow);
    if (!b->error) node_add_control(b->g, later.node, n);
    return (GradientArray){output_of(n, 0), later};
}

static DataType element_type(Builder *b, Rule *r) {
    Str value;
    return node_attr(rule_node(r), "dtype", &value) ? rule_type(b, r, "dtype") : rule_type(b, r, "T");
}

/* (handle, index, flow) -> value */
static void read_grad(Builder *b, Rule *r) {
    GradientArray g = gradient_array(b, r, rule_in(r, 2));
    rule_set(r, 2, b_op4(b, "TensorArrayWriteV3", g.handle, rule_in(r, 1), rule_dy(r, 0), g.flow));
}

/* (handle, index, value, flow) -> flow */
static void write_grad(Builder *b, Rule *r) {
    Output dflow = rule_dy(r, 0), index = rule_in(r, 1);
    GradientArray g = gradient_array(b, r, dflow);
    b_with_type(b, "dtype", element_type(b, r));
    rule_set(r, 2, b_op3(b, "TensorArrayReadV3", g.handle, index, g.flow));
    rule_set(r, 3, dflow);
}

/* (handle, indices, flow) -> value */
static void gather_grad(Builder *b, Rule *r) {
    GradientArray g = gradient_array(b, r, rule_in(r, 2));
    rule_set(r, 2, b_op4(b, "TensorArrayScatterV3", g.handle, rule_in(r, 1), rule_dy(r, 0), g.flow));
}

/* (handle, indices, value, flow) -> flow */
static void scatter_grad(Builder *b, Rule *r) {
    Output dflow = rule_dy(r, 0), indices = rule_in(r, 1);
    GradientArray g = gradient_array(b, r, dflow);
    b_with_type(b, "dtype", element_type(b, r));
    rule_set(r, 2, b_op3(b, "TensorArrayGatherV3", g.handle, indices, g.flow));
    rule_set(r, 3, dflow);
}

/* (handle, flow) -> (value, lengths) */
static void concat_grad(Builder *b, Rule *r) {
    GradientArray g = gradient_array(b, r, rule_in(r, 1));
    rule_set(r, 1, b_op4(b, "TensorArraySplitV3", g.handle, rule_dy(r, 0), rule_out(r, 1), g.flow));
}

/* (handle, value, lengths, flow) -> flow */
static void split_grad(Builder *b, Rule *r) {
    Output dflow = rule_dy(r, 0);
    GradientArray g = gradient_array(b, r, dflow);
    b_with_type(b, "dtype", element_type(b, r));
    rule_set(r, 1, b_op2(b, "TensorArrayConcatV3", g.handle, g.flow));
    rule_set(r, 3, dflow);
}

const GradientDef tensor_array_gradients[] = {
    {"TensorArrayConcatV3", concat_grad},
    {"TensorArrayGatherV3", gather_grad},
    {"TensorArrayReadV3", read_grad},
    {"TensorArrayScatterV3", scatter_grad},
    {"TensorArraySplitV3", split_grad},
    {"TensorArrayWriteV3", write_grad},
    {0},
};
