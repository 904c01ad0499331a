/* averages.c: RillAverages: a slowly moving copy of every trainable variable. */
#include <stdlib.h>

#include "base/memory.h"
#include "rill/optimizer.h"
#include "train/graph_internal.h"

struct RillAverages {
    RillGraph *graph;
    RillVariable **variables;
    char **names;
    int count;
    TF_Operation *update;
};

/* average -= (1 - decay) * (average - value), part by part, where the variable is. */
static TF_Operation *move(RillGraph *g, const VariablePart *v, const VariablePart *average, TF_DataType type, RillTensor rest) {
    RillTensor value = rill_op(g, "ReadVariableOp", NULL, &v->handle, 1, (RillAttr[]){RILL_TYPE("dtype", type)}, 1);
    RillTensor old = rill_op(g, "ReadVariableOp", NULL, &average->handle, 1, (RillAttr[]){RILL_TYPE("dtype", type)}, 1);
    RillTensor step = rill_mul(g, rill_sub(g, old, value), rill_cast(g, rest, type));
    return rill_operation(g, "AssignSubVariableOp", NULL, (RillTensor[]){average->handle, step}, 2, NULL, 0);
}

/* 1 - decay, with fewer steps behind it nearer to 1. */
static RillTensor rest_of(RillGraph *g, double decay, bool by_step) {
    if (!by_step) return rill_const_f32(g, (float)(1 - decay));
    RillTensor step = rill_cast(g, rill_variable_value(rill_global_step(g)), TF_FLOAT);
    RillTensor early = rill_div(g, rill_add(g, step, rill_const_f32(g, 1)), rill_add(g, step, rill_const_f32(g, 10)));
    return rill_sub(g, rill_const_f32(g, 1), rill_binary(g, "Minimum", early, rill_const_f32(g, (float)decay)));
}

RillAverages *rill_averages_new(RillGraph *g, double decay, bool by_step) {
    RillAverages *a = xcalloc(1, sizeof *a);
    a->graph = g;
    int total = g->variable_count, parts = 0, made = 0;
    for (int i = 0; i < total; i++) parts += g->variables[i]->part_count;
    TF_Operation **moves = xcalloc((size_t)parts + 1, sizeof *moves);
    a->variables = xcalloc((size_t)total + 1, sizeof *a->variables);
    a->names = xcalloc((size_t)total + 1, sizeof *a->names);
    RillTensor rest = rest_of(g, decay, by_step);
    for (int i = 0; i < total && !rill_graph_failed(g); i++) {
        RillVariable *v = g->variables[i];
        if (!v->is_trainable) continue;
        a->names[a->count] = xasprintf("%s/ExponentialMovingAverage", v->name);
        int controls = g->control_base; /* starts where the variable starts, whatever the update waits for */
        g->control_base = g->control_count;
        rill_control_push(g, &v->initializer, 1);
        RillTensor start = rill_variable_read(g, v);
        rill_control_pop(g);
        g->control_base = controls;
        graph_push_absolute(g, "");
        rill_device_push(g, TF_OperationDevice(v->parts[0].handle.oper));
        RillVariable *average = rill_variable(g, a->names[a->count], v->shape.dims, v->shape.rank,
                                              &(RillVariableOptions){.type = v->type, .init = {.kind = RILL_INIT_TENSOR, .tensor = start}, .not_trainable = true, .partitions = v->part_count});
        rill_device_pop(g);
        rill_name_pop(g);
        a->variables[a->count++] = v;
        for (int j = 0; average && j < v->part_count; j++) moves[made++] = move(g, &v->parts[j], &average->parts[j], v->type, rest);
    }
    a->update = rill_group(g, "moving_averages", moves, made);
    free(moves);
    return a;
}

void rill_averages_free(RillAverages *a) {
    if (!a) return;
    for (int i = 0; i < a->count; i++) free(a->names[i]);
    free(a->names);
    free(a->variables);
    free(a);
}

TF_Operation *rill_averages_update(const RillAverages *a) {
    return a->update;
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
