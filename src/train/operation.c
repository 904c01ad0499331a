/* operation.c: any op by name: its inputs sorted into arguments, its attributes, its device. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "graph/op_def.h"
#include "train/graph_internal.h"

static bool is_list(const ArgInfo *a) {
    return a->number_attr.len || a->type_list_attr.len;
}

static const RillAttr *find_attr(const RillAttr *attrs, int count, Str name) {
    for (int i = 0; i < count; i++)
        if (str_is(name, attrs[i].name)) return &attrs[i];
    return NULL;
}

/* How many inputs an argument takes, when that is said; -1 when it follows from the others. */
static int said_length(const ArgInfo *a, const RillAttr *attrs, int attr_count) {
    if (!is_list(a)) return 1;
    const RillAttr *n = find_attr(attrs, attr_count, a->number_attr.len ? a->number_attr : a->type_list_attr);
    if (!n) return -1;
    return a->number_attr.len ? (int)n->number : n->count;
}

/* The length of the lists that nobody said: what is left, divided evenly (lists of one op that share their number are equally long). */
static bool list_length(const OpInfo *op, const RillAttr *attrs, int attr_count, int inputs, int *length) {
    int open = 0, fixed = 0;
    for (int i = 0; i < op->input_count; i++) {
        int n = said_length(&op->inputs[i], attrs, attr_count);
        open += n < 0;
        fixed += n < 0 ? 0 : n;
    }
    int left = inputs - fixed;
    *length = open ? left / open : 0;
    return open ? left >= 0 && left % open == 0 : left == 0;
}

static void add_inputs(TF_OperationDescription *d, const OpInfo *op, const RillTensor *inputs, const RillAttr *attrs, int attr_count, int length) {
    int at = 0;
    for (int i = 0; i < op->input_count; i++) {
        if (!is_list(&op->inputs[i])) {
            TF_AddInput(d, inputs[at++]);
            continue;
        }
        int n = said_length(&op->inputs[i], attrs, attr_count);
        if (n < 0) n = length;
        TF_AddInputList(d, inputs + at, n);
        at += n;
    }
}

static void set_attr(TF_OperationDescription *d, const RillAttr *a) {
    switch (a->kind) {
    case RILL_ATTR_TYPE: TF_SetAttrType(d, a->name, a->type); break;
    case RILL_ATTR_INT: TF_SetAttrInt(d, a->name, a->number); break;
    case RILL_ATTR_FLOAT: TF_SetAttrFloat(d, a->name, a->real); break;
    case RILL_ATTR_BOOL: TF_SetAttrBool(d, a->name, a->flag); break;
    case RILL_ATTR_STRING: TF_SetAttrString(d, a->name, a->text, strlen(a->text)); break;
    case RILL_ATTR_SHAPE: TF_SetAttrShape(d, a->name, a->list, a->count); break;
    case RILL_ATTR_INTS: TF_SetAttrIntList(d, a->name, a->list, a->count); break;
    case RILL_ATTR_TYPES: TF_SetAttrTypeList(d, a->name, a->list, a->count); break;
    case RILL_ATTR_SHAPES: {
        const RillShape *shapes = a->list;
        const int64_t **dims = xcalloc((size_t)a->count + 1, sizeof *dims);
        int *ranks = xcalloc((size_t)a->count + 1, sizeof *ranks);
        for (int i = 0; i < a->count; i++) {
            dims[i] = shapes[i].dims;
            ranks[i] = shapes[i].rank;
        }
        TF_SetAttrShapeList(d, a->name, dims, ranks, a->count);
        free(dims);
        free(ranks);
        break;
    }
    case RILL_ATTR_STRINGS: {
        const char *const *texts = a->list;
        const void **values = xcalloc((size_t)a->count + 1, sizeof *values);
        size_t *lengths = xcalloc((size_t)a->count + 1, sizeof *lengths);
        for (int i = 0; i < a->count; i++) {
            values[i] = texts[i];
            lengths[i] = strlen(texts[i]);
        }
        TF_SetAttrStringList(d, a->name, values, lengths, a->count);
        free(values);
        free(lengths);
        break;
    }
    }
}

/* An op on a resource goes where the resource is, whatever the scopes say. */
static char *device_of(RillGraph *g, const RillTensor *inputs, int count) {
    for (int i = 0; i < count; i++)
        if (TF_OperationOutputType(inputs[i]) == TF_RESOURCE) return xstrdup(TF_OperationDevice(inputs[i].oper));
    return graph_op_device(g);
}

static bool check_inputs(RillGraph *g, const char *op, const RillTensor *inputs, int count) {
    for (int i = 0; i < count; i++) {
        if (tensor_ok(inputs[i])) continue;
        rill_graph_fail(g, TF_INVALID_ARGUMENT, "Input %d of %s is not a tensor of the graph", i, op);
        return false;
    }
    return true;
}

TF_Operation *rill_operation(RillGraph *g, const char *op, const char *name, const RillTensor *inputs, int input_count, const RillAttr *attrs, int attr_count) {
    if (rill_graph_failed(g) || !check_inputs(g, op, inputs, input_count)) return NULL;
    const OpInfo *info = op_find(str_of(op));
    int length = 0;
    if (!info) {
        Str nearest = op_nearest(str_of(op));
        rill_graph_fail(g, TF_NOT_FOUND, "Op type not registered '%s'; the most similar is '%.*s'", op, STR_ARG(nearest));
        return NULL;
    }
    if (!list_length(info, attrs, attr_count, input_count, &length)) {
        rill_graph_fail(g, TF_INVALID_ARGUMENT, "%s takes another number of inputs than the %d given", op, input_count);
        return NULL;
    }
    char *full = graph_op_name(g, name ? name : op), *device = device_of(g, inputs, input_count);
    TF_OperationDescription *d = TF_NewOperation(g->tf, op, full);
    if (*device) TF_SetDevice(d, device);
    add_inputs(d, info, inputs, attrs, attr_count, length);
    for (int i = g->control_base; i < g->control_count; i++)
        for (int j = 0; j < g->controls[i].count; j++) TF_AddControlInput(d, g->controls[i].ops[j]);
    for (int i = 0; i < attr_count; i++) set_attr(d, &attrs[i]);
    TF_Operation *made = TF_FinishOperation(d, g->status);
    if (TF_GetCode(g->status) != TF_OK) {
        rill_graph_fail(g, TF_GetCode(g->status), "%s", TF_Message(g->status));
        made = NULL;
    }
    free(full);
    free(device);
    return made;
}

RillTensor rill_op(RillGraph *g, const char *op, const char *name, const RillTensor *inputs, int input_count, const RillAttr *attrs, int attr_count) {
    TF_Operation *made = rill_operation(g, op, name, inputs, input_count, attrs, attr_count);
    return made ? (RillTensor){made, 0} : NO_TENSOR;
}

RillTensor rill_unary(RillGraph *g, const char *op, RillTensor x) {
    return rill_op(g, op, NULL, &x, 1, NULL, 0);
}

RillTensor rill_binary(RillGraph *g, const char *op, RillTensor x, RillTensor y) {
    return rill_op(g, op, NULL, (RillTensor[]){x, y}, 2, NULL, 0);
}

TF_Operation *rill_group(RillGraph *g, const char *name, TF_Operation *const *ops, int count) {
    rill_control_push(g, ops, count);
    TF_Operation *made = rill_operation(g, "NoOp", name, NULL, 0, NULL, 0);
    rill_control_pop(g);
    return made;
}
