/* control_flow.c: gradients of Switch and Merge as conds are made of. Loops are not undone node by node, but as a whole
 * (loop.c). */
#include "gradients/rule.h"

/* What flows back lives in the branch that was taken; the other one gives zeros, which live when that one is taken. */
static void switch_grad(Builder *b, Rule *r) {
    Output sides[2];
    DataType type = output_dtype(rule_dy(r, rule_has_dy(r, 0) ? 0 : 1));
    for (int i = 0; i < 2; i++) {
        if (rule_has_dy(r, i)) {
            sides[i] = rule_dy(r, i);
        } else if (type == DT_VARIANT) {
            Node *n = b_node(b, "Switch", (Output[]){rule_in(r, 0), rule_in(r, 1)}, 2);
            sides[i] = b_zeros_like(b, output_of(n, i));
        } else {
            Node *n = b_node(b, "Switch", (Output[]){rule_in_shape(r, 0), rule_in(r, 1)}, 2);
            sides[i] = b_fill(b, output_of(n, i), b_scalar(b, type, 0));
        }
    }
    rule_set(r, 0, b_op2(b, "Merge", sides[0], sides[1]));
}

/* The input that came gets the gradient; those of the others do not live. */
static void merge_grad(Builder *b, Rule *r) {
    const Node *n = rule_node(r);
    Output dy = rule_dy(r, 0), which = rule_out(r, 1);
    if (n->input_count == 2) {
        Node *s = b_node(b, "Switch", (Output[]){dy, b_op2(b, "Equal", which, b_i32(b, 1))}, 2);
        rule_set(r, 0, output_of(s, 0));
        rule_set(r, 1, output_of(s, 1));
        return;
    }
    for (int i = 0; i < n->input_count; i++) {
        Node *s = b_node(b, "Switch", (Output[]){dy, b_op2(b, "Equal", which, b_i32(b, i))}, 2);
        rule_set(r, i, output_of(s, 1));
    }
}

static void part_of_a_loop(Builder *b, Rule *r) {
    b_fail(b, error_invalid("Node %.*s is not part of a loop that can be undone", STR_ARG(rule_node(r)->name)));
}

const GradientDef control_flow_gradients[] = {
    {"Enter", part_of_a_loop},
    {"Exit", part_of_a_loop},
    {"Merge", merge_grad},
    {"NextIteration", part_of_a_loop},
    {"RefEnter", part_of_a_loop},
    {"RefExit", part_of_a_loop},
    {"RefMerge", merge_grad},
    {"RefNextIteration", part_of_a_loop},
    {"RefSwitch", switch_grad},
    {"Switch", switch_grad},
    {0},
};
