/* init_ops.c: the operations that give variables their first values, and the report of those without one. */
#include <stdlib.h>

#include "base/memory.h"
#include "train/graph_internal.h"

RillVariable *rill_global_step(RillGraph *g) {
    if (g->global_step || rill_graph_failed(g)) return g->global_step;
    graph_push_absolute(g, "");
    g->global_step = rill_variable(g, "global_step", NULL, 0, &(RillVariableOptions){.type = TF_INT64, .init = {.kind = RILL_INIT_ZEROS}, .not_trainable = true});
    rill_name_pop(g);
    return g->global_step;
}

int rill_variable_count(const RillGraph *g) {
    return g->variable_count;
}

RillVariable *rill_variable_at(const RillGraph *g, int i) {
    return i >= 0 && i < g->variable_count ? g->variables[i] : NULL;
}

static TF_Operation *group_inits(RillGraph *g, const char *name, bool local) {
    int extra = local ? g->lists[LIST_TABLES].count + g->lists[LIST_LOCAL_INITS].count : 0, count = 0;
    TF_Operation **ops = xcalloc((size_t)(g->variable_count + extra) + 1, sizeof *ops);
    for (int i = 0; i < g->variable_count; i++)
        if (g->variables[i]->is_local == local) ops[count++] = g->variables[i]->initializer;
    for (int i = 0; local && i < g->lists[LIST_TABLES].count; i++) ops[count++] = g->lists[LIST_TABLES].items[i].op;
    for (int i = 0; local && i < g->lists[LIST_LOCAL_INITS].count; i++) ops[count++] = g->lists[LIST_LOCAL_INITS].items[i].op;
    TF_Operation *all = rill_group(g, name, ops, count);
    free(ops);
    return all;
}

TF_Operation *rill_init_op(RillGraph *g) {
    return group_inits(g, "init", false);
}

TF_Operation *rill_local_init_op(RillGraph *g) {
    return group_inits(g, "init_local", true);
}

/* Each part asked on its own device; the names of those without a value are picked out where the report is made. */
RillTensor rill_report_uninitialized(RillGraph *g) {
    int count = 0;
    for (int i = 0; i < g->variable_count; i++) count += g->variables[i]->is_local ? 0 : g->variables[i]->part_count;
    if (rill_graph_failed(g)) return NO_TENSOR;
    if (!count) return rill_const_strings(g, NULL, 0);
    RillTensor *flags = xcalloc((size_t)count, sizeof *flags);
    const char **names = xcalloc((size_t)count, sizeof *names);
    int at = 0;
    rill_name_push(g, "report_uninitialized_variables");
    for (int i = 0; i < g->variable_count; i++)
        for (int j = 0; !g->variables[i]->is_local && j < g->variables[i]->part_count; j++) {
            names[at] = TF_OperationName(g->variables[i]->parts[j].handle.oper);
            flags[at++] = rill_unary(g, "VarIsInitializedOp", g->variables[i]->parts[j].handle);
        }
    RillTensor missing = rill_unary(g, "LogicalNot", rill_stack(g, flags, count, 0));
    RillTensor indices = rill_op(g, "Squeeze", NULL, (RillTensor[]){rill_unary(g, "Where", missing)}, 1, (RillAttr[]){RILL_INTS("squeeze_dims", ((int64_t[]){1}), 1)}, 1);
    RillTensor in[] = {rill_const_strings(g, names, count), indices, rill_const_i32(g, 0)};
    RillTensor out = rill_op(g, "GatherV2", "names", in, 3, NULL, 0);
    rill_name_pop(g);
    free(flags);
    free(names);
    return out;
}
