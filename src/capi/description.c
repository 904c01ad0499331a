/* description.c: operations described and added to a graph. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "capi/attr_value_internal.h"
#include "capi/description_internal.h"
#include "capi/status_internal.h"
#include "graph/graph_def.h"
#include "proto/wire.h"

TF_OperationDescription *TF_NewOperationLocked(TF_Graph *graph, const char *op_type, const char *oper_name) {
    TF_OperationDescription *d = xcalloc(1, sizeof *d);
    d->graph = graph;
    d->arena = arena_new();
    d->op = arena_str(d->arena, str_of(op_type));
    d->name = arena_str(d->arena, str_of(oper_name));
    d->device = STR("");
    return d;
}

TF_OperationDescription *TF_NewOperation(TF_Graph *graph, const char *op_type, const char *oper_name) {
    return TF_NewOperationLocked(graph, op_type, oper_name); /* nothing of the graph is touched before the end */
}

static void description_free(TF_OperationDescription *d) {
    for (int i = 0; i < d->input_count; i++) free(d->inputs[i].outputs);
    free(d->inputs);
    free(d->attrs);
    free(d->controls);
    free(d->colocations);
    arena_free(d->arena);
    free(d);
}

void TF_SetDevice(TF_OperationDescription *d, const char *device) {
    d->device = arena_str(d->arena, str_of(device));
}

static void add_given(TF_OperationDescription *d, const TF_Output *outputs, int count, bool is_list) {
    GivenInput given = {xcalloc((size_t)count, sizeof *outputs), count, is_list};
    if (count) memcpy(given.outputs, outputs, sizeof *outputs * (size_t)count);
    d->inputs = vec_reserve(d->inputs, &d->input_capacity, (size_t)d->input_count + 1, sizeof *d->inputs);
    d->inputs[d->input_count++] = given;
}

void TF_AddInput(TF_OperationDescription *d, TF_Output input) {
    add_given(d, &input, 1, false);
}

void TF_AddInputList(TF_OperationDescription *d, const TF_Output *inputs, int num_inputs) {
    add_given(d, inputs, num_inputs, true);
}

void TF_AddControlInput(TF_OperationDescription *d, TF_Operation *input) {
    d->controls = vec_reserve(d->controls, &d->control_capacity, (size_t)d->control_count + 1, sizeof *d->controls);
    d->controls[d->control_count++] = input;
}

/* ---- Colocation: the attribute _class, a list of "loc:@node", sorted ---- */

static void add_colocation(TF_OperationDescription *d, Str location) {
    for (int i = 0; i < d->colocation_count; i++)
        if (str_eq(d->colocations[i], location)) return;
    d->colocations = vec_reserve(d->colocations, &d->colocation_capacity, (size_t)d->colocation_count + 1, sizeof *d->colocations);
    d->colocations[d->colocation_count++] = location;
}

void TF_ColocateWith(TF_OperationDescription *d, TF_Operation *op) {
    add_colocation(d, arena_printf(d->arena, "loc:@%s", op->name));
}

static int compare_strs(const void *a, const void *b) {
    return str_compare(*(const Str *)a, *(const Str *)b);
}

static void put_colocation(StrBuf *list, const void *items, int i) {
    wire_put_bytes(list, 2, ((const Str *)items)[i]);
}

/* Takes what was set as an attribute together with what TF_ColocateWith said. */
static void settle_colocation(TF_OperationDescription *d) {
    if (!d->colocation_count) return;
    for (int i = 0; i < d->attr_count; i++) {
        if (!str_is(d->attrs[i].name, "_class")) continue;
        int count = attr_list_strings(d->attrs[i].value, NULL, 0);
        Str *given = xcalloc(count > 0 ? (size_t)count : 1, sizeof *given);
        attr_list_strings(d->attrs[i].value, given, count);
        for (int j = 0; j < count; j++) add_colocation(d, given[j]);
        free(given);
    }
    qsort(d->colocations, (size_t)d->colocation_count, sizeof *d->colocations, compare_strs);
    description_set_attr(d, "_class", attr_make_list(d->arena, put_colocation, d->colocations, d->colocation_count));
}

void description_set_attr(TF_OperationDescription *d, const char *name, Str value) {
    Str key = str_of(name);
    for (int i = 0; i < d->attr_count; i++) {
        if (!str_eq(d->attrs[i].name, key)) continue;
        d->attrs[i].value = value;
        return;
    }
    d->attrs = vec_reserve(d->attrs, &d->attr_capacity, (size_t)d->attr_count + 1, sizeof *d->attrs);
    d->attrs[d->attr_count++] = (Attr){arena_str(d->arena, key), value};
}

/* ---- The end ---- */

/* Attributes are of the kinds that the op declares; of others it knows nothing. */
static Error *check_attrs(const Node *n) {
    for (int i = 0; i < n->attr_count; i++) {
        const Attr *attr = &n->attrs[i];
        const AttrInfo *declared = op_attr(n->info, attr->name);
        if (!declared) continue;
        Error *err = attr_check_kind(attr->value, declared);
        if (err) return error_append(err, "\n\t for attr '%.*s'\n\t; NodeDef: {{node %.*s}}; Op<name=%.*s>", STR_ARG(attr->name), STR_ARG(n->name), STR_ARG(n->op));
    }
    return NULL;
}

static const OpInfo *find_info(const TF_Graph *g, Str op) {
    const OpInfo *info = op_find(op);
    const Function *f = info ? NULL : function_find(g->functions, op);
    return f ? f->info : info;
}

static Error *add_node(TF_OperationDescription *d, Node **out) {
    Graph *g = d->graph->graph;
    const OpInfo *info = find_info(d->graph, d->op);
    if (!info)
        return error_invalid("Op type not registered '%.*s'. The most similar op of Rill is '%.*s'; docs/compatibility.md lists all. while building NodeDef '%.*s'", STR_ARG(d->op),
                             STR_ARG(op_nearest(d->op)), STR_ARG(d->name));
    if (graph_find(g, d->name)) return error_invalid("Duplicate node name in graph: '%.*s'", STR_ARG(d->name));
    Node *n = NULL;
    Error *err = graph_add_node(g, d->name, d->op, d->device, &n);
    if (err) return err;
    n->info = info;
    settle_colocation(d);
    for (int i = 0; i < d->attr_count; i++) node_add_attr(g, n, d->attrs[i].name, d->attrs[i].value);
    err = description_link_inputs(d, n);
    if (!err) err = check_attrs(n);
    if (!err) node_add_defaults(g, n);
    if (!err) err = node_resolve(g, n);
    if (!err) err = graph_validate_node(n);
    for (int i = 0; !err && i < d->control_count; i++) {
        if (d->controls[i]->graph != d->graph)
            err = error_invalid("Control input '%s' of '%.*s' is an operation of another graph", d->controls[i]->name, STR_ARG(d->name));
        else
            node_add_control(g, n, d->controls[i]->node);
    }
    *out = n;
    return err;
}

TF_Operation *TF_FinishOperationLocked(TF_OperationDescription *d, TF_Status *status) {
    TF_Graph *g = d->graph;
    int before = g->graph->node_count;
    Node *n = NULL;
    TF_Operation *op = NULL;
    Error *err = add_node(d, &n);
    if (!err) {
        graph_wrap_nodes_locked(g);
        op = graph_operation(g, n);
        err = shapes_infer_node(g->shapes, n);
    }
    if (err) {
        graph_drop_nodes_locked(g, before);
        op = NULL;
    }
    status_take(status, err);
    description_free(d);
    return op;
}

TF_Operation *TF_FinishOperation(TF_OperationDescription *d, TF_Status *status) {
    TF_Graph *g = d->graph;
    pthread_mutex_lock(&g->mutex);
    TF_Operation *op = TF_FinishOperationLocked(d, status);
    pthread_mutex_unlock(&g->mutex);
    return op;
}
