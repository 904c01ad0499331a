/* description_inputs.c: the inputs of a described operation against the arguments of its op; attributes that follow from them. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "capi/attr_value_internal.h"
#include "capi/description_internal.h"
#include "proto/wire.h"

/* Says which operation and op a message is about. */
static Error *building(Error *err, const Node *n) {
    return error_append(err, " while building NodeDef '%.*s' using Op<name=%.*s>", STR_ARG(n->name), STR_ARG(n->op));
}

static bool given_attr(const Node *n, Str name, Str *value) {
    for (int i = 0; i < n->attr_count; i++) {
        if (!str_eq(n->attrs[i].name, name)) continue;
        *value = n->attrs[i].value;
        return true;
    }
    return false;
}

/* Sets an attribute that an input decides, or checks that the one given says the same. */
static Error *settle_type(Graph *g, Node *n, Str attr, DataType type) {
    Str value;
    DataType given;
    if (!given_attr(n, attr, &value)) {
        node_add_attr(g, n, attr, attr_make_type(g->arena, type));
        return NULL;
    }
    if (!attr_type(value, &given) || given == type) return NULL; /* of another kind: found later */
    return building(error_invalid("Inconsistent values for attr '%.*s' %s vs. %s", STR_ARG(attr), dtype_name(given), dtype_name(type)), n);
}

static Error *settle_number(Graph *g, Node *n, Str attr, int64_t number) {
    Str value;
    int64_t given;
    if (!given_attr(n, attr, &value)) {
        node_add_attr(g, n, attr, attr_make_int(g->arena, number));
        return NULL;
    }
    if (!attr_int(value, &given) || given == number) return NULL;
    return building(error_invalid("Inconsistent values for attr '%.*s' %lld vs. %lld", STR_ARG(attr), (long long)given, (long long)number), n);
}

static Error *settle_types(Graph *g, Node *n, Str attr, const DataType *types, int count) {
    Str value;
    if (given_attr(n, attr, &value)) return NULL; /* compared edge by edge when the node is validated */
    node_add_attr(g, n, attr, attr_make_types(g->arena, types, count));
    return NULL;
}

static Error *check_fixed(const Node *n, const ArgInfo *arg, DataType have) {
    if (arg->is_ref && !dtype_is_ref(have)) return building(error_invalid("Input '%.*s' passed %s expected ref type", STR_ARG(arg->name), dtype_name(have)), n);
    if (arg->type != DT_INVALID && dtype_base(have) != arg->type)
        return building(error_invalid("Input '%.*s' passed %s expected %s", STR_ARG(arg->name), dtype_name(have), dtype_name(arg->type)), n);
    return NULL;
}

static DataType output_type(Output o) {
    return o.node->info ? o.node->output_types[o.index] : DT_INVALID;
}

/* One argument: its outputs are linked and its types and number settled. */
static Error *link_argument(const TF_Graph *g, Node *n, const ArgInfo *arg, const GivenInput *given) {
    bool wants_list = arg->number_attr.len || arg->type_list_attr.len;
    if (wants_list && !given->is_list) return building(error_invalid("Single tensor passed to '%.*s', expected list", STR_ARG(arg->name)), n);
    if (!wants_list && given->is_list) return building(error_invalid("List provided to input '%.*s' when single Tensor expected", STR_ARG(arg->name)), n);
    DataType *types = arena_calloc(g->graph->arena, (size_t)given->count, sizeof *types);
    Error *err = NULL;
    for (int i = 0; !err && i < given->count; i++) {
        Output from = {0};
        err = capi_output(g, given->outputs[i], &from);
        if (err) break;
        types[i] = dtype_base(output_type(from));
        if (types[i] != DT_INVALID) err = check_fixed(n, arg, output_type(from));
        if (!err && arg->type_attr.len && types[i] != DT_INVALID) err = settle_type(g->graph, n, arg->type_attr, types[i]);
        node_add_input(g->graph, n, from);
    }
    if (!err && arg->number_attr.len) err = settle_number(g->graph, n, arg->number_attr, given->count);
    if (!err && arg->type_list_attr.len) err = settle_types(g->graph, n, arg->type_list_attr, types, given->count);
    return err;
}

Error *description_link_inputs(const TF_OperationDescription *d, Node *n) {
    const OpInfo *info = n->info;
    if (d->input_count > info->input_count)
        return building(error_invalid("More Input() calls than the %d input_args", info->input_count), n);
    Error *err = NULL;
    for (int i = 0; !err && i < d->input_count; i++) err = link_argument(d->graph, n, &info->inputs[i], &d->inputs[i]);
    if (!err && d->input_count < info->input_count)
        err = building(error_invalid("%d inputs specified of %d inputs in Op", d->input_count, info->input_count), n);
    return err;
}
