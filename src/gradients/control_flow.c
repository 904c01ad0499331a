/* control_flow.c: gradients of Switch and Merge as conds are made of. Loops are not undone node by node, but as a whole
 * (loop.c). */
#include "gradients/backprop.h"

static bool is_sparse(Rule *r, int i) {
    return rule_has_dy(r, i) && has(rule_sparse_dy(r, i).indices);
}

/* Rows that live in the branch that was taken; the other one gives none. */
static void sparse_switch_grad(Builder *b, Rule *r) {
    Gradient sides[2], known = rule_sparse_dy(r, is_sparse(r, 0) ? 0 : 1);
    bool same = !rule_has_dy(r, 0) || !rule_has_dy(r, 1) ||
                output_dtype(rule_sparse_dy(r, 0).indices) == output_dtype(rule_sparse_dy(r, 1).indices);
    DataType index_type = same ? output_dtype(known.indices) : DT_INT64;
    Output shape = rule_in_shape(r, 0);
    for (int i = 0; i < 2; i++) {
        if (rule_has_dy(r, i)) {
            sides[i] = rule_sparse_dy(r, i);
            sides[i].indices = b_cast(b, sides[i].indices, index_type);
        } else {
            Node *n = b_node(b, "Switch", (Output[]){shape, rule_in(r, 1)}, 2);
            sides[i] = gradient_no_rows(b, output_of(n, i), output_dtype(known.values), index_type);
        }
    }
    rule_set_sparse(r, 0, b_op2(b, "Merge", sides[0].values, sides[1].values), b_op2(b, "Merge", sides[0].indices, sides[1].indices), shape);
}

/* What flows back lives in the branch that was taken; the other one gives zeros, which live when that one is taken. */
static void switch_grad(Builder *b, Rule *r) {
    Output sides[2];
    if (!b->error && (is_sparse(r, 0) || !rule_has_dy(r, 0)) && (is_sparse(r, 1) || !rule_has_dy(r, 1))) {
        sparse_switch_grad(b, r);
        return;
    }
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

static Output switched(Builder *b, Output x, Output pred, int side) {
    return has(x) ? output_of(b_node(b, "Switch", (Output[]){x, pred}, 2), side) : x;
}

static void set_switched(Builder *b, Rule *r, int i, Gradient dy, Output pred, int side) {
    Output values = switched(b, dy.values, pred, side), indices = switched(b, dy.indices, pred, side);
    rule_set_sparse(r, i, values, indices, switched(b, dy.dense_shape, pred, side));
}

/* The input that came gets the gradient; those of the others do not live. */
static void merge_grad(Builder *b, Rule *r) {
    const Node *n = rule_node(r);
    Output which = rule_out(r, 1);
    Gradient dy = {.values = NO_OUTPUT};
    if (is_sparse(r, 0))
        dy = rule_sparse_dy(r, 0);
    else
        dy.values = rule_dy(r, 0);
    if (n->input_count == 2) {
        Output second = b_op2(b, "Equal", which, b_i32(b, 1));
        for (int i = 0; i < 2; i++) set_switched(b, r, i, dy, second, i);
        return;
    }
    for (int i = 0; i < n->input_count; i++) set_switched(b, r, i, dy, b_op2(b, "Equal", which, b_i32(b, i)), 1);
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
