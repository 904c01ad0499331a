/* control_shapes.c: rules of control flow, and of ops that only carry something through. */
#include "shapes/rule_list.h"

static void branch(ShapeContext *c) {
    for (int i = 0; i < c->out_count; i++) {
        c->out[i] = c->in[0];
        c->out_handles[i] = c->in_handles[0];
    }
}

/* A loop's variable may have another shape in each iteration; a constant of the loop keeps its own. */
static void enter(ShapeContext *c) {
    if (ctx_attr_bool(c, "is_constant")) ctx_out(c, 0, c->in[0]);
    c->out_handles[0] = c->in_handles[0];
}

static void merge(ShapeContext *c) {
    PartialShape out = c->in[0];
    for (int i = 1; i < c->in_count && out.rank >= 0; i++) {
        PartialShape s = c->in[i];
        if (s.rank != out.rank) out.rank = -1;
        for (int d = 0; d < out.rank; d++)
            if (s.dims[d] != out.dims[d]) out.dims[d] = DIM_UNKNOWN;
    }
    ctx_out(c, 0, out);
    ctx_out(c, 1, SHAPE_SCALAR);
}

static void ref_select(ShapeContext *c) {
    PartialShape first = c->in[1];
    ctx_want_scalar(c, 0);
    for (int i = 1; i < c->in_count; i++)
        if (!shape_is_full(c->in[i]) || !shape_eq(&c->in[i], &first)) return;
    ctx_out(c, 0, first);
}

/* The attribute output_shapes, when it is there. False when it is empty. */
static bool given_outputs(ShapeContext *c) {
    int n = ctx_attr_shapes(c, "output_shapes", NULL, 0);
    if (n == 0) return false;
    if (n == c->out_count)
        ctx_attr_shapes(c, "output_shapes", c->out, n);
    else
        ctx_fail(c, "`output_shapes` must be the same length as the outputs (%d vs. %d)", n, c->out_count);
    return true;
}

static void conditional(ShapeContext *c) {
    given_outputs(c);
}

static void while_loop(ShapeContext *c) {
    if (!given_outputs(c)) rule_identity(c);
}

const ShapeRow control_rules[] = {
    {"Abort", rule_unknown, 0},
    {"Assert", rule_unknown, 0},
    {"Case", conditional, 0},
    {"ControlTrigger", rule_unknown, 0},
    {"Enter", enter, 0},
    {"Exit", rule_identity, 0},
    {"For", rule_unknown, 0},
    {"If", conditional, 0},
    {"LoopCond", 0, "[] -> []"},
    {"Merge", merge, 0},
    {"NextIteration", rule_identity, 0},
    {"NoOp", rule_unknown, 0},
    {"Print", rule_same, 0},
    {"PrintV2", 0, "[]"},
    {"RefEnter", rule_same, 0},
    {"RefExit", rule_same, 0},
    {"RefIdentity", rule_same, 0},
    {"RefMerge", merge, 0},
    {"RefNextIteration", rule_same, 0},
    {"RefSelect", ref_select, 0},
    {"RefSwitch", branch, "* []"},
    {"RemoteCall", rule_unknown, 0},
    {"StatelessCase", conditional, 0},
    {"StatelessIf", conditional, 0},
    {"StatelessWhile", while_loop, 0},
    {"SyncDevice", rule_unknown, 0},
    {"IsTensorFloat32Enabled", rule_scalar, 0},
    {"Switch", branch, "* []"},
    {"Timestamp", rule_scalar, 0},
    {"ToBool", rule_scalar, 0},
    {"While", while_loop, 0},
    {"_ArrayToList", rule_unknown, 0},
    {"_FunctionCall", rule_unknown, 0},
    {"_HostRecv", rule_unknown, 0},
    {"_HostSend", rule_unknown, 0},
    {"_ListToArray", rule_unknown, 0},
    {"_Recv", rule_unknown, 0},
    {"_Retval", rule_unknown, 0},
    {"_Send", rule_unknown, 0},
    {"_SwitchN", branch, "* []"},
    {0},
};
