/* methods.c: the methods of optimization as rows: which op, which slots, which inputs in which order. */
#include "train/methods.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "train/graph_internal.h"

enum { MAX_SLOTS = 3, MAX_INPUTS = 12 };

/* Inputs, in order: v variable; x y z slots; l learning rate; g gradient; i indices; m momentum; r rho; e epsilon; a l1; b l2; p power; s global step; B C beta1 and beta2;
 * P Q their powers. */
typedef struct MethodRow {
    const char *dense, *dense_inputs;
    const char *sparse, *sparse_inputs; /* NULL: made of smaller ops below */
    const char *slots[MAX_SLOTS];       /* names in checkpoints, as tf.train's */
    char slot_start[MAX_SLOTS];         /* '0' zeros, '1' ones, 'i' the initial value */
    double momentum, rho, epsilon;      /* defaults */
} MethodRow;

static const MethodRow rows[RILL_METHOD_COUNT] = {
    [RILL_SGD] = {.dense = "ResourceApplyGradientDescent", .dense_inputs = "vlg"},
    [RILL_MOMENTUM] = {"ResourceApplyMomentum", "vxlgm", "ResourceSparseApplyMomentum", "vxlgim", {"Momentum"}, {'0'}, 0.9, 0, 0},
    [RILL_ADAGRAD] = {"ResourceApplyAdagrad", "vxlg", "ResourceSparseApplyAdagrad", "vxlgi", {"Adagrad"}, {'i'}, 0, 0, 0},
    [RILL_ADADELTA] = {"ResourceApplyAdadelta", "vxylreg", "ResourceSparseApplyAdadelta", "vxylregi", {"Adadelta", "Adadelta_1"}, {'0', '0'}, 0, 0.95, 1e-8},
    [RILL_ADAM] = {"ResourceApplyAdam", "vxyPQlBCeg", NULL, NULL, {"Adam", "Adam_1"}, {'0', '0'}, 0, 0, 1e-8},
    [RILL_ADAMAX] = {"ResourceApplyAdaMax", "vxyPlBCeg", NULL, NULL, {"AdaMax", "AdaMax_1"}, {'0', '0'}, 0, 0, 1e-8},
    [RILL_RMSPROP] = {"ResourceApplyRMSProp", "vxylrmeg", "ResourceSparseApplyRMSProp", "vxylrmegi", {"RMSProp", "RMSProp_1"}, {'1', '0'}, 0, 0.9, 1e-10},
    [RILL_CENTERED_RMSPROP] = {"ResourceApplyCenteredRMSProp", "vxyzlrmeg", "ResourceSparseApplyCenteredRMSProp", "vxyzlrmegi", {"RMSProp_2", "RMSProp", "RMSProp_1"}, {'0', '1', '0'}, 0, 0.9, 1e-10},
    [RILL_FTRL] = {"ResourceApplyFtrl", "vxyglabp", "ResourceSparseApplyFtrl", "vxygilabp", {"Ftrl", "Ftrl_1"}, {'i', '0'}, 0, 0, 0},
    [RILL_PROXIMAL_SGD] = {.dense = "ResourceApplyProximalGradientDescent", .dense_inputs = "vlabg", .sparse = "ResourceSparseApplyProximalGradientDescent", .sparse_inputs = "vlabgi"},
    [RILL_PROXIMAL_ADAGRAD] = {"ResourceApplyProximalAdagrad", "vxlabg", "ResourceSparseApplyProximalAdagrad", "vxlabgi", {"ProximalAdagrad"}, {'i'}, 0, 0, 0},
    [RILL_ADAGRAD_DA] = {"ResourceApplyAdagradDA", "vxyglabs", "ResourceSparseApplyAdagradDA", "vxygilabs", {"AdagradDA", "AdagradDA_1"}, {'0', 'i'}, 0, 0, 0},
};

static double or_default(double given, double otherwise) {
    return given != 0 ? given : otherwise;
}

/* ---- Slots ---- */

/* A variable beside another, on its device, of its shape, under "NAME/SLOT". */
static RillTensor slot_of(RillGraph *g, const RillGradient *d, const char *slot, double start) {
    const VariablePart *p = &d->variable->parts[d->part];
    int64_t dims[8];
    for (int i = 0; i < d->variable->shape.rank; i++) dims[i] = i ? d->variable->shape.dims[i] : p->rows;
    char *name = xasprintf("%s/%s", TF_OperationName(p->handle.oper), slot);
    graph_push_absolute(g, "");
    rill_device_push(g, TF_OperationDevice(p->handle.oper));
    RillVariable *v = rill_variable(g, name, dims, d->variable->shape.rank,
                                    &(RillVariableOptions){.type = d->variable->type, .init = {.kind = RILL_INIT_CONSTANT, .a = start}, .not_trainable = true, .partitions = 1});
    rill_device_pop(g);
    rill_name_pop(g);
    free(name);
    return v ? v->parts[0].handle : NO_TENSOR;
}

/* beta^t, kept once for all variables, on the device of the first. */
static RillVariable *power_of(RillGraph *g, const char *name, double beta, const RillVariable *beside) {
    graph_push_absolute(g, "");
    rill_device_push(g, TF_OperationDevice(beside->parts[0].handle.oper));
    RillVariable *v = rill_variable(g, name, NULL, 0, &(RillVariableOptions){.type = beside->type, .init = {.kind = RILL_INIT_CONSTANT, .a = beta}, .not_trainable = true});
    rill_device_pop(g);
    rill_name_pop(g);
    return v;
}

void method_begin(MethodState *m, RillGraph *g, const RillOptimizer *o, const RillVariable *first) {
    *m = (MethodState){.o = o, .g = g};
    m->beta1 = or_default(o->beta1, 0.9);
    m->beta2 = or_default(o->beta2, 0.999);
    if (o->method != RILL_ADAM && o->method != RILL_ADAMAX) return;
    m->power1 = power_of(g, "beta1_power", m->beta1, first);
    if (o->method == RILL_ADAM) m->power2 = power_of(g, "beta2_power", m->beta2, first);
}

TF_Operation *method_end(MethodState *m, TF_Operation *const *after, int count) {
    if (!m->power1) return NULL;
    RillGraph *g = m->g;
    TF_Operation *ops[2] = {0};
    RillVariable *const powers[] = {m->power1, m->power2};
    const double betas[] = {m->beta1, m->beta2};
    rill_control_push(g, after, count);
    for (int i = 0; i < 2; i++)
        if (powers[i]) ops[i] = rill_assign(g, powers[i], rill_mul(g, powers[i]->value, rill_const_as(g, powers[i]->type, betas[i])));
    TF_Operation *all = rill_group(g, "powers", ops, 2);
    rill_control_pop(g);
    return all;
}

/* ---- Rows of inputs ---- */

static RillTensor number(MethodState *m, const RillGradient *d, double v) {
    return rill_const_as(m->g, d->variable->type, v);
}

static RillTensor rate_of(MethodState *m, const RillGradient *d) {
    return tensor_ok(m->o->rate) ? rill_cast(m->g, m->o->rate, d->variable->type) : number(m, d, m->o->learning_rate);
}

static RillTensor input_of(MethodState *m, const MethodRow *row, const RillGradient *d, const RillTensor *slots, char code) {
    const RillOptimizer *o = m->o;
    switch (code) {
    case 'v': return d->variable->parts[d->part].handle;
    case 'x': return slots[0];
    case 'y': return slots[1];
    case 'z': return slots[2];
    case 'l': return rate_of(m, d);
    case 'g': return d->values;
    case 'i': return d->indices;
    case 'm': return number(m, d, or_default(o->momentum, row->momentum));
    case 'r': return number(m, d, or_default(o->rho, row->rho));
    case 'e': return number(m, d, or_default(o->epsilon, row->epsilon));
    case 'a': return number(m, d, o->l1);
    case 'b': return number(m, d, o->l2);
    case 'p': return number(m, d, or_default(o->power, -0.5));
    case 's': return rill_add(m->g, rill_variable_value(rill_global_step(m->g)), rill_const_i64(m->g, 1)); /* counts from 1 */
    case 'B': return number(m, d, m->beta1);
    case 'C': return number(m, d, m->beta2);
    case 'P': return rill_cast(m->g, m->power1->value, d->variable->type);
    case 'Q': return rill_cast(m->g, m->power2->value, d->variable->type);
    default: return NO_TENSOR;
    }
}

static TF_Operation *apply_row(MethodState *m, const MethodRow *row, const RillGradient *d, const RillTensor *slots, const char *op, const char *inputs) {
    RillTensor in[MAX_INPUTS];
    int n = 0;
    for (const char *c = inputs; *c; c++) in[n++] = input_of(m, row, d, slots, *c);
    RillAttr nesterov[] = {RILL_BOOL("use_nesterov", m->o->nesterov)};
    return rill_operation(m->g, op, NULL, in, n, nesterov, m->o->method == RILL_MOMENTUM || m->o->method == RILL_ADAM ? 1 : 0);
}

/* ---- Sparse, of smaller ops ---- */

static TF_Operation *scatter(RillGraph *g, const char *op, RillTensor handle, RillTensor indices, RillTensor values) {
    return rill_operation(g, op, NULL, (RillTensor[]){handle, indices, values}, 3, NULL, 0);
}

static RillTensor read_after(RillGraph *g, RillTensor handle, TF_DataType type, TF_Operation *after) {
    rill_control_push(g, &after, 1);
    RillTensor value = rill_op(g, "ReadVariableOp", NULL, &handle, 1, (RillAttr[]){RILL_TYPE("dtype", type)}, 1);
    rill_control_pop(g);
    return value;
}

/* slot = beta * slot, then its rows += (1 - beta) * values; returns the slot's value afterwards. */
static RillTensor decayed(MethodState *m, const RillGradient *d, RillTensor slot, double beta, RillTensor values) {
    RillGraph *g = m->g;
    TF_DataType type = d->variable->type;
    RillTensor old = rill_op(g, "ReadVariableOp", NULL, &slot, 1, (RillAttr[]){RILL_TYPE("dtype", type)}, 1);
    TF_Operation *shrunk = rill_operation(g, "AssignVariableOp", NULL, (RillTensor[]){slot, rill_scale(g, old, beta)}, 2, NULL, 0);
    rill_control_push(g, &shrunk, 1);
    TF_Operation *added = scatter(g, "ResourceScatterAdd", slot, d->indices, rill_scale(g, values, 1 - beta));
    rill_control_pop(g);
    return read_after(g, slot, type, added);
}

static TF_Operation *sparse_adam(MethodState *m, const MethodRow *row, const RillGradient *d, const RillTensor *slots) {
    RillGraph *g = m->g;
    TF_DataType type = d->variable->type;
    RillTensor one = number(m, d, 1), p1 = rill_cast(g, m->power1->value, type), p2 = rill_cast(g, m->power2->value, type);
    RillTensor rate = rill_div(g, rill_mul(g, rate_of(m, d), rill_unary(g, "Sqrt", rill_sub(g, one, p2))), rill_sub(g, one, p1));
    RillTensor mean = decayed(m, d, slots[0], m->beta1, d->values);
    RillTensor square = decayed(m, d, slots[1], m->beta2, rill_mul(g, d->values, d->values));
    RillTensor epsilon = number(m, d, or_default(m->o->epsilon, row->epsilon));
    RillTensor step = rill_div(g, rill_mul(g, rate, mean), rill_add(g, rill_unary(g, "Sqrt", square), epsilon));
    return rill_operation(g, "AssignSubVariableOp", NULL, (RillTensor[]){d->variable->parts[d->part].handle, step}, 2, NULL, 0);
}

static RillTensor gathered(MethodState *m, const RillGradient *d, RillTensor slot) {
    return rill_op(m->g, "ResourceGather", NULL, (RillTensor[]){slot, d->indices}, 2, (RillAttr[]){RILL_TYPE("dtype", d->variable->type)}, 1);
}

/* Rows without a gradient stay as they are, their slots too. */
static TF_Operation *sparse_adamax(MethodState *m, const MethodRow *row, const RillGradient *d, const RillTensor *slots) {
    RillGraph *g = m->g;
    RillTensor rate = rill_div(g, rate_of(m, d), rill_sub(g, number(m, d, 1), rill_cast(g, m->power1->value, d->variable->type)));
    RillTensor mean = rill_add(g, rill_scale(g, gathered(m, d, slots[0]), m->beta1), rill_scale(g, d->values, 1 - m->beta1));
    RillTensor most = rill_binary(g, "Maximum", rill_scale(g, gathered(m, d, slots[1]), m->beta2), rill_unary(g, "Abs", d->values));
    RillTensor step = rill_div(g, rill_mul(g, rate, mean), rill_add(g, most, number(m, d, or_default(m->o->epsilon, row->epsilon))));
    TF_Operation *done[] = {scatter(g, "ResourceScatterUpdate", slots[0], d->indices, mean), scatter(g, "ResourceScatterUpdate", slots[1], d->indices, most),
                            scatter(g, "ResourceScatterSub", d->variable->parts[d->part].handle, d->indices, step)};
    return rill_group(g, "adamax", done, 3);
}

/* Each row once, with the sum of its gradients. */
static RillGradient summed(RillGraph *g, const RillGradient *d) {
    RillGradient out = *d;
    TF_Operation *unique = rill_operation(g, "Unique", NULL, &d->indices, 1, NULL, 0);
    if (!unique) return out;
    RillTensor rows_of = {unique, 0}, place = {unique, 1}, shape = rill_unary(g, "Shape", rows_of);
    RillTensor in[] = {shape, rill_const_i32s(g, (int32_t[]){0}, 1), rill_const_i32s(g, (int32_t[]){1}, 1), rill_const_i32s(g, (int32_t[]){1}, 1)};
    RillTensor count = rill_op(g, "StridedSlice", NULL, in, 4, (RillAttr[]){RILL_INT("shrink_axis_mask", 1)}, 1);
    out.indices = rows_of;
    out.values = rill_op(g, "UnsortedSegmentSum", NULL, (RillTensor[]){d->values, place, count}, 3, NULL, 0);
    return out;
}

TF_Operation *method_apply(MethodState *m, const RillGradient *gradient) {
    const MethodRow *row = &rows[m->o->method];
    RillGraph *g = m->g;
    RillTensor slots[MAX_SLOTS] = {{0}};
    for (int i = 0; i < MAX_SLOTS && row->slots[i]; i++) {
        double start = row->slot_start[i] == '1' ? 1 : row->slot_start[i] == 'i' ? or_default(m->o->initial, 0.1) : 0;
        slots[i] = slot_of(g, gradient, row->slots[i], start);
    }
    if (!tensor_ok(gradient->indices)) return apply_row(m, row, gradient, slots, row->dense, row->dense_inputs);
    if (m->o->method == RILL_SGD)
        return scatter(g, "ResourceScatterSub", gradient->variable->parts[gradient->part].handle, gradient->indices, rill_mul(g, gradient->values, rate_of(m, gradient)));
    RillGradient d = summed(g, gradient);
    if (row->sparse) return apply_row(m, row, &d, slots, row->sparse, row->sparse_inputs);
    return m->o->method == RILL_ADAM ? sparse_adam(m, row, &d, slots) : sparse_adamax(m, row, &d, slots);
}
