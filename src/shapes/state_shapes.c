/* state_shapes.c: rules of variables, of both kinds, and of the optimizers' updates. */
#include <stdlib.h>

#include "base/memory.h"
#include "shapes/rule_list.h"

static void variable_v1(ShapeContext *c) {
    PartialShape s = ctx_attr_shape(c, "shape");
    /* Variable, before V2, could not say that nothing is known: no dimensions meant that. */
    ctx_out(c, 0, s.rank == 0 ? SHAPE_UNKNOWN : s);
}

static void var_handle(ShapeContext *c) {
    ctx_out(c, 0, SHAPE_SCALAR);
    c->out_handles[0] = (HandleShape){true, ctx_attr_type(c, "dtype"), ctx_attr_shape(c, "shape")};
}

static void var_handles(ShapeContext *c) {
    Str value;
    int n = node_attr(c->node, "dtypes", &value) ? attr_list_types(value, NULL, 0) : 0, m = ctx_attr_shapes(c, "shapes", NULL, 0);
    if (n != c->out_count) ctx_fail(c, "Mismatched number of dtypes (n=%d, num dtypes=%d)", c->out_count, n);
    if (m != c->out_count) ctx_fail(c, "Mismatched number of shapes (n=%d, num shapes=%d)", c->out_count, m);
    ctx_out_all(c, SHAPE_SCALAR);
    if (c->err) return;
    DataType *dtypes = xcalloc((size_t)n + 1, sizeof *dtypes);
    PartialShape *shapes = xcalloc((size_t)n + 1, sizeof *shapes);
    attr_list_types(value, dtypes, n);
    ctx_attr_shapes(c, "shapes", shapes, n);
    for (int i = 0; i < n; i++) c->out_handles[i] = (HandleShape){true, dtypes[i], shapes[i]};
    free(shapes);
    free(dtypes);
}

/* The value of the variable that input i is a handle of, whose type must be `dtype`. */
static PartialShape variable_value(ShapeContext *c, int i, DataType dtype) {
    const HandleShape *h = &c->in_handles[i];
    if (!h->is_known) return SHAPE_UNKNOWN;
    if (dtype != DT_INVALID && h->dtype != dtype)
        ctx_fail(c, "Trying to read variable with wrong dtype. Expected %s got %s", dtype_name(dtype), dtype_name(h->dtype));
    return h->shape;
}

static void read_variable(ShapeContext *c) {
    ctx_out(c, 0, variable_value(c, 0, ctx_attr_type(c, "dtype")));
}

static void read_variables(ShapeContext *c) {
    if (c->in_count != c->out_count) ctx_fail(c, "Mismatched number of arguments to ReadVariablesOp");
    for (int i = 0; i < c->in_count && !c->err; i++) ctx_out(c, i, variable_value(c, i, c->node->output_types[i]));
}

static void assign_variable(ShapeContext *c) {
    ctx_merge(c, variable_value(c, 0, ctx_attr_type(c, "dtype")), c->in[1]);
}

static void variable_shape(ShapeContext *c) {
    PartialShape s = variable_value(c, 0, DT_INVALID);
    ctx_out(c, 0, shape_vector(s.rank < 0 ? DIM_UNKNOWN : s.rank));
}

static void assign(ShapeContext *c) {
    if (ctx_attr_bool(c, "validate_shape"))
        ctx_out(c, 0, ctx_merge(c, c->in[0], c->in[1]));
    else
        ctx_out(c, 0, c->in[1]);
}

static void count_up(ShapeContext *c) {
    ctx_out(c, 0, ctx_in_rank(c, 0, 0));
}

static void resource_count_up(ShapeContext *c) {
    if (!c->in_handles[0].is_known) ctx_fail(c, "Handle has no shape/type information.");
    PartialShape s = variable_value(c, 0, ctx_attr_type(c, "T"));
    ctx_out(c, 0, ctx_rank(c, s, 0));
}

static bool named(Str name, const char *const *names) {
    for (; *names; names++)
        if (str_is(name, *names)) return true;
    return false;
}

/* Updates of optimizers: arguments are known by their names. Slots are like the variable, rates are scalars, the gradient is like the
   variable or, with indices, like rows of it. */
static void apply(ShapeContext *c) {
    static const char *const scalars[] = {"lr", "alpha", "l1", "l2", "rho", "epsilon", "momentum", "beta1", "beta2", "beta1_power", "beta2_power", "lr_power",
                                          "l2_shrinkage", "global_step", "logbase", "sign_decay", "beta", NULL};
    const OpInfo *op = c->node->info;
    bool is_sparse = false, on_handles = c->node->input_types[0] == DT_RESOURCE;
    bool looks_at_handles = str_is(c->node->op, "ResourceApplyProximalAdagrad"); /* when nothing is known of what they hold */
    PartialShape var = SHAPE_UNKNOWN, grad = SHAPE_UNKNOWN;
    for (int i = 0; i < c->in_count; i++) {
        Str name = op->inputs[i].name;
        bool is_handle = c->node->input_types[i] == DT_RESOURCE;
        PartialShape s = is_handle ? variable_value(c, i, DT_INVALID) : c->in[i];
        if (is_handle && looks_at_handles && !c->in_handles[i].is_known) s = c->in[i];
        bool is_last = i == c->in_count - 1;
        if (named(name, scalars)) {
            /* TensorFlow forgets the last of FtrlV2. */
            if (!(is_last && str_ends(c->node->op, STR("FtrlV2")))) ctx_want_scalar(c, i);
        } else if (str_is(name, "grad") || str_is(name, "delta")) {
            /* With handles TensorFlow looks for one here too, and finds none. */
            grad = on_handles && !str_is(c->node->op, "ResourceApplyGradientDescent") && !str_is(c->node->op, "ResourceApplyProximalAdagrad") ? SHAPE_UNKNOWN : s;
        } else if (str_is(name, "indices")) {
            is_sparse = true;
            PartialShape indices = ctx_rank(c, s, 1);
            ctx_merge_dim(c, indices.dims[0], shape_dim(grad, 0));
            if (grad.rank >= 0) grad.dims[0] = DIM_UNKNOWN;
        } else {
            var = ctx_merge(c, var, s);
        }
    }
    if (is_sparse) grad = ctx_rank_at_least(c, grad, 1);
    var = ctx_merge(c, var, grad);
    ctx_out(c, 0, var);
}

const ShapeRow state_rules[] = {
    {"ApplyAdaMax", apply, 0},
    {"ApplyAdadelta", apply, 0},
    {"ApplyAdagrad", apply, 0},
    {"ApplyAdagradDA", apply, 0},
    {"ApplyAdagradV2", apply, 0},
    {"ApplyAdam", apply, 0},
    {"ApplyAddSign", apply, 0},
    {"ApplyCenteredRMSProp", apply, 0},
    {"ApplyFtrl", apply, 0},
    {"ApplyFtrlV2", apply, 0},
    {"ApplyGradientDescent", apply, 0},
    {"ApplyMomentum", apply, 0},
    {"ApplyPowerSign", apply, 0},
    {"ApplyProximalAdagrad", apply, 0},
    {"ApplyProximalGradientDescent", apply, 0},
    {"ApplyRMSProp", apply, 0},
    {"Assign", assign, 0},
    {"AssignAdd", rule_merge_all, 0},
    {"AssignAddVariableOp", assign_variable, 0},
    {"AssignSub", rule_merge_all, 0},
    {"AssignSubVariableOp", assign_variable, 0},
    {"AssignVariableOp", assign_variable, 0},
    {"CountUpTo", count_up, 0},
    {"DestroyResourceOp", rule_unknown, 0},
    {"DestroyTemporaryVariable", rule_same, 0},
    {"DisableCopyOnRead", rule_unknown, 0},
    {"DevicePlacementOp", rule_scalar, 0},
    {"DtypeWithDefaultOp", rule_scalar, 0},
    {"KernelLabel", rule_scalar, 0},
    {"KernelLabelRequired", 0, "[?] -> []"},
    {"Old", rule_unknown, 0},
    {"ResourceCreateOp", rule_unknown, 0},
    {"ResourceInitializedOp", rule_scalar, 0},
    {"ResourceUsingOp", rule_unknown, 0},
    {"StubResourceHandleOp", rule_scalar, 0},
    {"TestAttr", rule_unknown, 0},
    {"IsVariableInitialized", rule_scalar, 0},
    {"ReadVariableOp", read_variable, 0},
    {"ResourceApplyAdaMax", apply, 0},
    {"ResourceApplyAdadelta", apply, 0},
    {"ResourceApplyAdagrad", apply, 0},
    {"ResourceApplyAdagradDA", apply, 0},
    {"ResourceApplyAdagradV2", apply, 0},
    {"ResourceApplyAdam", apply, 0},
    {"ResourceApplyAdamWithAmsgrad", apply, 0},
    {"ResourceApplyAddSign", apply, 0},
    {"ResourceApplyCenteredRMSProp", apply, 0},
    {"ResourceApplyFtrl", apply, 0},
    {"ResourceApplyFtrlV2", apply, 0},
    {"ResourceApplyGradientDescent", apply, 0},
    {"ResourceApplyKerasMomentum", apply, 0},
    {"ResourceApplyMomentum", apply, 0},
    {"ResourceApplyPowerSign", apply, 0},
    {"ResourceApplyProximalAdagrad", apply, 0},
    {"ResourceApplyProximalGradientDescent", apply, 0},
    {"ResourceApplyRMSProp", apply, 0},
    {"ResourceCountUpTo", resource_count_up, 0},
    {"ResourceSparseApplyAdadelta", apply, 0},
    {"ResourceSparseApplyAdagrad", apply, 0},
    {"ResourceSparseApplyAdagradDA", apply, 0},
    {"ResourceSparseApplyAdagradV2", apply, 0},
    {"ResourceSparseApplyCenteredRMSProp", apply, 0},
    {"ResourceSparseApplyFtrl", apply, 0},
    {"ResourceSparseApplyFtrlV2", apply, 0},
    {"ResourceSparseApplyKerasMomentum", apply, 0},
    {"ResourceSparseApplyMomentum", apply, 0},
    {"ResourceSparseApplyProximalAdagrad", apply, 0},
    {"ResourceSparseApplyProximalGradientDescent", apply, 0},
    {"ResourceSparseApplyRMSProp", apply, 0},
    {"SparseApplyAdadelta", apply, 0},
    {"SparseApplyAdagrad", apply, 0},
    {"SparseApplyAdagradDA", apply, 0},
    {"SparseApplyAdagradV2", apply, 0},
    {"SparseApplyCenteredRMSProp", apply, 0},
    {"SparseApplyFtrl", apply, 0},
    {"SparseApplyFtrlV2", apply, 0},
    {"SparseApplyMomentum", apply, 0},
    {"SparseApplyProximalAdagrad", apply, 0},
    {"SparseApplyProximalGradientDescent", apply, 0},
    {"SparseApplyRMSProp", apply, 0},
    {"TemporaryVariable", 0, "-> @shape"},
    {"VarHandleOp", var_handle, 0},
    {"VarIsInitializedOp", rule_scalar, 0},
    {"Variable", variable_v1, 0},
    {"VariableShape", variable_shape, 0},
    {"VariableV2", 0, "-> @shape"},
    {"_ReadVariablesOp", read_variables, 0},
    {"_VarHandlesOp", var_handles, 0},
    {0},
};
