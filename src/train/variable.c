/* variable.c: variables, whole or split by rows over several tasks. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "train/graph_internal.h"
#include "train/variable_internal.h"

void variable_free(RillVariable *v) {
    free(v->name);
    free(v->parts);
    free(v);
}

static int64_t bytes_of(const RillVariable *v) {
    int64_t n = (int64_t)TF_DataTypeSize(v->type);
    if (!n) n = 24;
    for (int i = 0; i < v->shape.rank; i++) n *= v->shape.dims[i];
    return n;
}

/* "w" or "w/part_1": handle, initial value, assignment, read; all on the variable's device. */
static void make_part(RillGraph *g, RillVariable *v, int i, const RillInit *init) {
    VariablePart *p = &v->parts[i];
    char *name = v->part_count > 1 ? xasprintf("%s/part_%d", v->name, i) : xstrdup(v->name);
    char *scope = xasprintf("%s/", name), *init_scope = xasprintf("%s/Initializer/", name);
    int64_t dims[8];
    for (int d = 0; d < v->shape.rank; d++) dims[d] = d ? v->shape.dims[d] : p->rows;
    char *device = g->beside ? xstrdup(TF_OperationDevice(g->beside->parts[i].handle.oper)) : graph_variable_device(g, bytes_of(v) / v->part_count, v->is_local);
    int outer_devices = g->device_count;
    rill_device_push(g, device);
    graph_push_absolute(g, "");
    p->handle = rill_op(g, "VarHandleOp", name, NULL, 0, (RillAttr[]){RILL_TYPE("dtype", v->type), RILL_DIMS("shape", dims, v->shape.rank), RILL_STRING("shared_name", name)}, 3);
    rill_name_pop(g);
    graph_push_absolute(g, init_scope);
    RillTensor value = initial_part(g, init, v->type, v->shape.dims, v->shape.rank, p->first, p->rows);
    rill_name_pop(g);
    graph_push_absolute(g, scope);
    p->initializer = rill_operation(g, "AssignVariableOp", "Assign", (RillTensor[]){p->handle, value}, 2, NULL, 0);
    p->value = rill_op(g, "ReadVariableOp", "Read/ReadVariableOp", &p->handle, 1, (RillAttr[]){RILL_TYPE("dtype", v->type)}, 1);
    rill_name_pop(g);
    while (g->device_count > outer_devices) rill_device_pop(g);
    free(device);
    free(init_scope);
    free(scope);
    free(name);
}

static RillTensor joined(RillGraph *g, const RillVariable *v, const RillTensor *values) {
    if (v->part_count == 1) return values[0];
    char *scope = xasprintf("%s/ConcatPartitions/", v->name);
    graph_push_absolute(g, scope);
    RillTensor all = rill_concat(g, values, v->part_count, 0);
    rill_name_pop(g);
    free(scope);
    return all;
}

static void split_rows(RillVariable *v, int parts) {
    int64_t rows = v->shape.rank ? v->shape.dims[0] : 1, at = 0;
    v->part_count = parts;
    v->parts = xcalloc((size_t)parts, sizeof *v->parts);
    for (int i = 0; i < parts; i++) {
        v->parts[i].first = at;
        v->parts[i].rows = rows / parts + (i < rows % parts);
        at += v->parts[i].rows;
    }
}

static RillVariable *make(RillGraph *g, char *take_name, const int64_t *dims, int rank, const RillVariableOptions *o) {
    RillVariable *v = xcalloc(1, sizeof *v);
    *v = (RillVariable){.name = take_name, .type = o->type ? o->type : TF_FLOAT, .shape = {.rank = rank}, .is_trainable = !o->not_trainable && !o->local, .is_local = o->local};
    for (int i = 0; i < rank; i++) v->shape.dims[i] = dims[i];
    int64_t rows = rank ? dims[0] : 1;
    int parts = o->partitions ? o->partitions : o->local ? 1 : graph_variable_partitions(g, bytes_of(v), rows);
    if (parts > rows) parts = rows > 1 ? (int)rows : 1;
    split_rows(v, rank ? parts : 1);
    /* A variable does not wait for what the control scopes around wait for. */
    int controls = g->control_base;
    g->control_base = g->control_count;
    TF_Operation **inits = xcalloc((size_t)v->part_count, sizeof *inits);
    RillTensor *values = xcalloc((size_t)v->part_count, sizeof *values);
    for (int i = 0; i < v->part_count; i++) {
        make_part(g, v, i, &o->init);
        inits[i] = v->parts[i].initializer;
        values[i] = v->parts[i].value;
    }
    v->value = joined(g, v, values);
    v->initializer = inits[0];
    if (v->part_count > 1) {
        char *scope = xasprintf("%s/", v->name);
        graph_push_absolute(g, scope);
        v->initializer = rill_group(g, "Assign", inits, v->part_count);
        rill_name_pop(g);
        free(scope);
    }
    g->control_base = controls;
    free(inits);
    free(values);
    g->variables = vec_reserve(g->variables, &g->variable_capacity, (size_t)g->variable_count + 1, sizeof *g->variables);
    g->variables[g->variable_count++] = v;
    strmap_put(&g->variables_by_name, str_of(v->name), v);
    return v;
}

static void check_same(RillGraph *g, const RillVariable *v, const int64_t *dims, int rank, const RillVariableOptions *o) {
    bool same = v->shape.rank == rank && (!o->type || o->type == v->type);
    for (int i = 0; same && i < rank; i++) same = v->shape.dims[i] == dims[i];
    if (same) return;
    StrBuf had = {0}, wants = {0};
    for (int i = 0; i < v->shape.rank; i++) strbuf_addf(&had, "%s%lld", i ? "," : "", (long long)v->shape.dims[i]);
    for (int i = 0; i < rank; i++) strbuf_addf(&wants, "%s%lld", i ? "," : "", (long long)dims[i]);
    rill_graph_fail(g, TF_INVALID_ARGUMENT, "Variable %s exists with shape [%s] and type %d; it cannot be shared as [%s] and type %d", v->name, had.ptr ? had.ptr : "", (int)v->type,
                    wants.ptr ? wants.ptr : "", (int)(o->type ? o->type : v->type));
    strbuf_clear(&had);
    strbuf_clear(&wants);
}

RillVariable *rill_variable(RillGraph *g, const char *name, const int64_t *dims, int rank, const RillVariableOptions *options) {
    static const RillVariableOptions none;
    if (rill_graph_failed(g)) return NULL;
    const RillVariableOptions *o = options ? options : &none;
    char *full = graph_variable_name(g, name);
    for (int i = 0; i < rank && rank <= 8; i++)
        if (dims[i] < 0) rill_graph_fail(g, TF_INVALID_ARGUMENT, "Dimension %d of variable %s is %lld: it must be known", i, full, (long long)dims[i]);
    if (rank < 0 || rank > 8) rill_graph_fail(g, TF_INVALID_ARGUMENT, "Variable %s has rank %d: from 0 to 8 are possible", full, rank);
    RillVariable *known = rill_graph_failed(g) ? NULL : strmap_get(&g->variables_by_name, str_of(full));
    if (known) check_same(g, known, dims, rank, o);
    if (known && g->average_depth > 0) {
        char *average_name = xasprintf("%s/ExponentialMovingAverage", full);
        RillVariable *average = strmap_get(&g->variables_by_name, str_of(average_name));
        if (average) known = average;
        free(average_name);
    }
    if (known || rill_graph_failed(g)) {
        free(full);
        return rill_graph_failed(g) ? NULL : known;
    }
    RillVariable *v = make(g, full, dims, rank, o);
    return rill_graph_failed(g) ? NULL : v;
}

/* ---- Reading and writing ---- */

RillTensor rill_variable_read(RillGraph *g, const RillVariable *v) {
    if (rill_graph_failed(g) || !v) return NO_TENSOR;
    RillTensor *values = xcalloc((size_t)v->part_count, sizeof *values);
    for (int i = 0; i < v->part_count; i++)
        values[i] = rill_op(g, "ReadVariableOp", NULL, &v->parts[i].handle, 1, (RillAttr[]){RILL_TYPE("dtype", v->type)}, 1);
    RillTensor out = v->part_count == 1 ? values[0] : rill_concat(g, values, v->part_count, 0);
    free(values);
    return out;
}

static TF_Operation *update(RillGraph *g, const char *op, const RillVariable *v, RillTensor value) {
    if (rill_graph_failed(g) || !v) return NULL;
    if (v->part_count == 1) return rill_operation(g, op, NULL, (RillTensor[]){v->parts[0].handle, value}, 2, NULL, 0);
    int64_t *sizes = xcalloc((size_t)v->part_count, sizeof *sizes);
    TF_Operation **ops = xcalloc((size_t)v->part_count, sizeof *ops);
    for (int i = 0; i < v->part_count; i++) sizes[i] = v->parts[i].rows;
    RillTensor in[] = {value, rill_const(g, "sizes", TF_INT64, (int64_t[]){v->part_count}, 1, sizes), rill_const_i32(g, 0)};
    TF_Operation *split = rill_operation(g, "SplitV", NULL, in, 3, (RillAttr[]){RILL_INT("num_split", v->part_count)}, 1);
    for (int i = 0; split && i < v->part_count; i++) ops[i] = rill_operation(g, op, NULL, (RillTensor[]){v->parts[i].handle, {split, i}}, 2, NULL, 0);
    TF_Operation *all = split ? rill_group(g, op, ops, v->part_count) : NULL;
    free(sizes);
    free(ops);
    return all;
}

TF_Operation *rill_assign(RillGraph *g, const RillVariable *v, RillTensor value) {
    return update(g, "AssignVariableOp", v, value);
}

TF_Operation *rill_assign_add(RillGraph *g, const RillVariable *v, RillTensor value) {
    return update(g, "AssignAddVariableOp", v, value);
}

TF_Operation *rill_assign_sub(RillGraph *g, const RillVariable *v, RillTensor value) {
    return update(g, "AssignSubVariableOp", v, value);
}

/* ---- What it is ---- */

const char *rill_variable_name(const RillVariable *v) {
    return v ? v->name : "";
}

TF_DataType rill_variable_type(const RillVariable *v) {
    return v ? v->type : (TF_DataType)0;
}

RillShape rill_variable_shape(const RillVariable *v) {
    return v ? v->shape : (RillShape){.rank = -1};
}

RillTensor rill_variable_value(const RillVariable *v) {
    return v ? v->value : NO_TENSOR;
}

int rill_variable_parts(const RillVariable *v) {
    return v ? v->part_count : 0;
}

RillTensor rill_variable_part(const RillVariable *v, int i, int64_t *first, int64_t *rows) {
    if (!v || i < 0 || i >= v->part_count) return NO_TENSOR;
    if (first) *first = v->parts[i].first;
    if (rows) *rows = v->parts[i].rows;
    return v->parts[i].handle;
}

RillTensor rill_variable_part_value(const RillVariable *v, int i) {
    return v && i >= 0 && i < v->part_count ? v->parts[i].value : NO_TENSOR;
}

TF_Operation *rill_variable_initializer(const RillVariable *v) {
    return v ? v->initializer : NULL;
}

bool rill_variable_is_trainable(const RillVariable *v) {
    return v && v->is_trainable;
}

bool rill_variable_is_local(const RillVariable *v) {
    return v && v->is_local;
}
