/* averages.c: RillAverages: a slowly moving copy of every trainable variable. */
#include <stdlib.h>

#include "base/memory.h"
#include "rill/optimizer.h"
#include "train/graph_internal.h"

struct RillAverages {
    RillGraph *graph;
    RillVariable **variables, **averages;
    char **names;
    int count;
    double decay;
    bool by_step;
};

/* average -= (1 - decay) * (average - value), part by part, where the variable is. */
static TF_Operation *move(RillGraph *g, const VariablePart *v, const VariablePart *average, TF_DataType type, RillTensor rest) {
    rill_device_push(g, TF_OperationDevice(v->handle.oper));
    RillTensor value = rill_op(g, "ReadVariableOp", NULL, &v->handle, 1, (RillAttr[]){RILL_TYPE("dtype", type)}, 1);
    RillTensor old = rill_op(g, "ReadVariableOp", NULL, &average->handle, 1, (RillAttr[]){RILL_TYPE("dtype", type)}, 1);
    RillTensor step = rill_mul(g, rill_sub(g, old, value), rill_cast(g, rest, type));
    TF_Operation *moved = rill_operation(g, "AssignSubVariableOp", NULL, (RillTensor[]){average->handle, step}, 2, NULL, 0);
    rill_device_pop(g);
    return moved;
}

/* 1 - decay, with fewer steps behind it nearer to 1. */
static RillTensor rest_of(RillGraph *g, double decay, bool by_step) {
    if (!by_step) return rill_const_f32(g, (float)(1 - decay));
    RillTensor step = rill_cast(g, rill_variable_value(rill_global_step(g)), TF_FLOAT);
    RillTensor early = rill_div(g, rill_add(g, step, rill_const_f32(g, 1)), rill_add(g, step, rill_const_f32(g, 10)));
    return rill_sub(g, rill_const_f32(g, 1), rill_binary(g, "Minimum", early, rill_const_f32(g, (float)decay)));
}

/* Starts where the variable starts, whatever the scopes around wait for. */
static RillVariable *average_of(RillGraph *g, const RillVariable *v, const char *name) {
    int controls = g->control_base;
    g->control_base = g->control_count;
    rill_control_push(g, &v->initializer, 1);
    RillTensor start = rill_variable_read(g, v);
    rill_control_pop(g);
    g->control_base = controls;
    graph_push_absolute(g, "");
    g->beside = v;
    RillVariable *average = rill_variable(g, name, v->shape.dims, v->shape.rank,
                                          &(RillVariableOptions){.type = v->type, .init = {.kind = RILL_INIT_TENSOR, .tensor = start}, .not_trainable = true, .partitions = v->part_count});
    g->beside = NULL;
    rill_name_pop(g);
    return average;
}

RillAverages *rill_averages_new(RillGraph *g, double decay, bool by_step) {
    RillAverages *a = xcalloc(1, sizeof *a);
    int total = g->variable_count;
    *a = (RillAverages){.graph = g, .decay = decay, .by_step = by_step};
    a->variables = xcalloc((size_t)total + 1, sizeof *a->variables);
    a->averages = xcalloc((size_t)total + 1, sizeof *a->averages);
    a->names = xcalloc((size_t)total + 1, sizeof *a->names);
    for (int i = 0; i < total && !rill_graph_failed(g); i++) {
        RillVariable *v = g->variables[i];
        if (!v->is_trainable) continue;
        a->names[a->count] = xasprintf("%s/ExponentialMovingAverage", v->name);
        a->averages[a->count] = average_of(g, v, a->names[a->count]);
        a->variables[a->count++] = v;
    }
    return a;
}

TF_Operation *rill_averages_update(const RillAverages *a, TF_Operation *after) {
    RillGraph *g = a->graph;
    int parts = 0, made = 0;
    for (int i = 0; i < a->count; i++) parts += a->variables[i]->part_count;
    TF_Operation **moves = xcalloc((size_t)parts + 1, sizeof *moves);
    if (after) rill_control_push(g, &after, 1);
    RillTensor rest = rest_of(g, a->decay, a->by_step);
    for (int i = 0; i < a->count && !rill_graph_failed(g); i++) {
        const RillVariable *v = a->variables[i];
        for (int j = 0; j < v->part_count; j++) moves[made++] = move(g, &v->parts[j], &a->averages[i]->parts[j], v->type, rest);
    }
    TF_Operation *update = rill_group(g, "moving_averages", moves, made);
    if (after) rill_control_pop(g);
    free(moves);
    return update;
}

void rill_averages_free(RillAverages *a) {
    if (!a) return;
    for (int i = 0; i < a->count; i++) free(a->names[i]);
    free(a->names);
    free(a->averages);
    free(a->variables);
    free(a);
}

void rill_averages_push(const RillAverages *a) {
    a->graph->average_depth++;
}

void rill_averages_pop(const RillAverages *a) {
    a->graph->average_depth--;
}

int rill_averages_list(const RillAverages *a, RillVariable *const **variables, const char *const **names) {
    *variables = a->variables;
    *names = (const char *const *)a->names;
    return a->count;
}
