/* function_shapes.c: rules of calls: functions are looked into, If and While say what their attributes say. */
#include "graph/function.h"
#include "shapes/rule_list.h"
#include "shapes/shape_info_internal.h"

enum { MAX_CALL_DEPTH = 16 };

/* What is wrong inside a body is not the caller's fault: nothing is then known of the results. */
static void infer_body(ShapeContext *c, const FunctionBody *body) {
    ShapeInfo *info = shape_info_for_call(body->graph, c);
    Error *err = shapes_infer_graph(info);
    for (int i = 0; i < body->ret_count && i < c->out_count && !err; i++) {
        HandleShape *h = &c->out_handles[i];
        shapes_of(info, body->rets[i], &c->out[i]);
        h->is_known = shapes_handle(info, body->rets[i], &h->dtype, &h->shape);
    }
    error_free(err);
    shape_info_free(info);
}

static void call(ShapeContext *c, Str function) {
    const FunctionLibrary *lib = c->info->graph->functions;
    const Function *f = lib ? function_find(lib, func_name(function)) : NULL;
    FunctionBody *body = NULL;
    Attr attrs[64];
    int attr_count = func_attrs(function, attrs, 64);
    if (!f || attr_count < 0 || attr_count > 64 || c->info->call_depth >= MAX_CALL_DEPTH) return;
    Error *err = function_instantiate(lib, f, attrs, attr_count, &body);
    if (!err) infer_body(c, body);
    error_free(err);
    function_body_free(body);
}

static void partitioned_call(ShapeContext *c) {
    Str value, function;
    if (node_attr(c->node, "f", &value) && attr_func(value, &function)) call(c, function);
}

static void call_by_name(ShapeContext *c) {
    call(c, function_reference(c->info->arena, c->node));
}

/* Gradients are like what they are gradients of: the first inputs. */
static void symbolic_gradient(ShapeContext *c) {
    if (c->in_count < c->out_count) ctx_fail(c, "len(inputs) < len(outputs)");
    for (int i = 0; i < c->out_count && i < c->in_count; i++) ctx_out(c, i, c->in[i]);
}

const ShapeRow function_call_row = {"", call_by_name, 0};

const ShapeRow function_rules[] = {
    {"PartitionedCall", partitioned_call, 0},
    {"StatefulPartitionedCall", partitioned_call, 0},
    {"SymbolicGradient", symbolic_gradient, 0},
    {0},
};
