/* shape_info.c: the shapes of a graph, node by node or all at once. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "graph/frames.h"
#include "shapes/rule_list.h"
#include "shapes/shape_info_internal.h"
#include "shapes/shape_inference.h"
#include "shapes/shape_spec.h"
#include "tensor/print.h"

ShapeInfo *shape_info_new(const Graph *g) {
    ShapeInfo *info = xcalloc(1, sizeof *info);
    info->graph = g;
    info->arena = arena_new();
    for (int i = 0; i < rule_table_count; i++)
        for (const ShapeRow *row = rule_tables[i]; row->op; row++) strmap_put(&info->rules, str_of(row->op), (void *)row);
    return info;
}

ShapeInfo *shape_info_for_call(const Graph *body, ShapeContext *caller) {
    ShapeInfo *info = shape_info_new(body);
    info->caller = caller;
    info->call_depth = caller->info->call_depth + 1;
    return info;
}

void shape_info_free(ShapeInfo *info) {
    if (!info) return;
    shape_info_clear_constants(info);
    strmap_clear(&info->rules);
    free(info->nodes);
    arena_free(info->arena);
    free(info);
}

bool shapes_has_rule(const ShapeInfo *info, Str op) {
    return strmap_get(&info->rules, op) != NULL;
}

NodeShapes *shape_info_node(const ShapeInfo *info, const Node *n) {
    return n && (size_t)n->id < info->node_capacity ? info->nodes[n->id] : NULL;
}

bool shapes_inferred(const ShapeInfo *info, const Node *n) {
    return shape_info_node(info, n) != NULL;
}

static void reserve_nodes(ShapeInfo *info, const Node *n) {
    size_t old = info->node_capacity;
    if ((size_t)n->id < old) return;
    info->nodes = vec_reserve(info->nodes, &info->node_capacity, (size_t)n->id + 1, sizeof *info->nodes);
    memset(info->nodes + old, 0, sizeof *info->nodes * (info->node_capacity - old));
}

/* Where the shapes of a node are kept; what was there is reused. */
static NodeShapes *make_node(ShapeInfo *info, const Node *n) {
    reserve_nodes(info, n);
    NodeShapes *kept = info->nodes[n->id];
    if (!kept || kept->count != n->output_count) {
        kept = arena_calloc(info->arena, 1, sizeof *kept);
        kept->count = n->output_count;
        kept->shapes = arena_calloc(info->arena, (size_t)n->output_count + 1, sizeof *kept->shapes);
        kept->handles = arena_calloc(info->arena, (size_t)n->output_count + 1, sizeof *kept->handles);
        for (int i = 0; i < kept->count; i++) kept->shapes[i] = SHAPE_UNKNOWN;
        info->nodes[n->id] = kept;
    }
    return kept;
}

void shapes_forget(ShapeInfo *info, int first_id) {
    for (size_t i = (size_t)first_id; i < info->node_capacity; i++) info->nodes[i] = NULL;
    shape_info_clear_constants(info);
}

/* ---- What is known ---- */

void shapes_of(const ShapeInfo *info, Output output, PartialShape *out) {
    const NodeShapes *kept = shape_info_node(info, output.node);
    *out = kept && output.index >= 0 && output.index < kept->count ? kept->shapes[output.index] : SHAPE_UNKNOWN;
}

bool shapes_handle(const ShapeInfo *info, Output output, DataType *dtype, PartialShape *shape) {
    const NodeShapes *kept = shape_info_node(info, output.node);
    if (!kept || output.index < 0 || output.index >= kept->count || !kept->handles[output.index].is_known) return false;
    *dtype = kept->handles[output.index].dtype;
    *shape = kept->handles[output.index].shape;
    return true;
}

void shapes_set_handle(ShapeInfo *info, Output output, DataType dtype, const PartialShape *shape) {
    NodeShapes *kept = make_node(info, output.node);
    if (output.index >= 0 && output.index < kept->count) kept->handles[output.index] = (HandleShape){true, dtype, *shape};
}

Error *shapes_set(ShapeInfo *info, Output output, const PartialShape *shape) {
    const Node *n = output.node;
    if (output.index < 0 || output.index >= n->output_count)
        return error_invalid("output_port '%d' is out of range, node '%.*s' has %d outputs", output.index, STR_ARG(n->name), n->output_count);
    NodeShapes *kept = make_node(info, n);
    ShapeContext c = {.info = info, .node = n};
    PartialShape merged = ctx_merge(&c, kept->shapes[output.index], *shape);
    if (c.err) return error_wrap(c.err, "shape of '%.*s:%d'", STR_ARG(n->name), output.index);
    kept->shapes[output.index] = merged;
    shape_info_forget_unknown_constants(info);
    return NULL;
}

/* ---- One node ---- */

/* "... for 'MatMul' (op: 'MatMul') with input shapes: [2,3], [4,5] from 'x:0' and 'w:0'." */
static Error *name_node(ShapeContext *c) {
    const Node *n = c->node;
    StrBuf text = {0}, values = {0};
    strbuf_addf(&text, " for '%.*s' (op: '%.*s') with input shapes: ", STR_ARG(n->name), STR_ARG(n->op));
    for (int i = 0; i < c->in_count; i++) {
        char *shape = shape_str(&c->in[i]);
        strbuf_addf(&text, "%s%s", i ? ", " : "", c->in[i].rank < 0 ? "?" : shape);
        free(shape);
    }
    for (int i = 0; i < c->in_count; i++)
        strbuf_addf(&text, "%s'%.*s:%d'", !i ? " from " : i + 1 < c->in_count ? ", " : " and ", STR_ARG(n->inputs[i].node->name), n->inputs[i].index);
    for (int i = 0; i < c->in_count; i++) {
        const Tensor *t = shapes_constant(c->info, n->inputs[i]);
        if (!t || t->count > 16 || (t->dtype != DT_INT32 && t->dtype != DT_INT64)) continue;
        strbuf_addf(&values, "%sinput[%d] = <", values.len ? ", " : "", i);
        print_values(&values, t, -1);
        strbuf_addc(&values, '>');
    }
    if (values.len) strbuf_addf(&text, " and with computed input tensors: %s", values.ptr);
    Error *err = error_append(c->err, "%s.", text.ptr);
    strbuf_clear(&values);
    strbuf_clear(&text);
    return err;
}

/* A GraphDef may say what the client knew: the attribute _output_shapes. */
static Error *merge_given_shapes(ShapeContext *c) {
    Str value;
    if (!node_attr(c->node, "_output_shapes", &value)) return NULL;
    int count = attr_list_shapes(value, NULL, 0);
    if (count != c->out_count)
        return error_invalid("Node '%.*s' has %d outputs but the _output_shapes attribute specifies shapes for %d outputs", STR_ARG(c->node->name),
                             c->out_count, count);
    PartialShape *given = xcalloc((size_t)count + 1, sizeof *given);
    if (attr_list_shapes(value, given, count) < 0) ctx_fail(c, "Node '%.*s' has a malformed _output_shapes attribute", STR_ARG(c->node->name));
    for (int i = 0; i < count && !c->err; i++) c->out[i] = ctx_merge(c, c->out[i], given[i]);
    free(given);
    return error_wrap(c->err, "Node '%.*s' has an _output_shapes attribute inconsistent with the GraphDef", STR_ARG(c->node->name));
}

static void read_inputs(ShapeContext *c) {
    for (int i = 0; i < c->in_count; i++) {
        Output from = c->node->inputs[i];
        shapes_of(c->info, from, &c->in[i]);
        HandleShape *h = &c->in_handles[i];
        h->is_known = shapes_handle(c->info, from, &h->dtype, &h->shape);
    }
}

static Error *infer(ShapeInfo *info, const Node *n, const ShapeRow *row) {
    ShapeContext c = {.info = info, .node = n, .in_count = n->input_count, .out_count = n->output_count};
    Error *err = NULL;
    PartialShape *shapes = xcalloc((size_t)(c.in_count + c.out_count) + 1, sizeof *shapes);
    HandleShape *handles = xcalloc((size_t)(c.in_count + c.out_count) + 1, sizeof *handles);
    c.in = shapes;
    c.out = shapes + c.in_count;
    c.in_handles = handles;
    c.out_handles = handles + c.in_count;
    ctx_out_all(&c, SHAPE_UNKNOWN);
    read_inputs(&c);
    if (row && row->spec) shape_spec_apply(&c, row->spec);
    if (row && row->rule && !c.err) row->rule(&c);
    err = c.err ? name_node(&c) : merge_given_shapes(&c);
    if (!err) {
        NodeShapes *kept = make_node(info, n);
        for (int i = 0; i < c.out_count; i++) {
            kept->shapes[i] = c.out[i];
            kept->handles[i] = c.out_handles[i];
        }
        shape_info_note_constants(info, n);
    }
    free(handles);
    free(shapes);
    return err;
}

Error *shapes_infer_node(ShapeInfo *info, const Node *n) {
    if (!n->info) return NULL;
    if (n->input_count != n->expected_inputs)
        return error_invalid("Node '%.*s' (op %.*s) has %d inputs where %d are expected", STR_ARG(n->name), STR_ARG(n->op), n->input_count,
                             n->expected_inputs);
    const ShapeRow *row = strmap_get(&info->rules, n->op);
    return infer(info, n, row ? row : &function_call_row);
}

/* ---- All nodes ---- */

/* Inputs first. A NextIteration comes after the Merge it leads to: the edge back is what makes a loop. */
static int order_nodes(const Graph *g, const Node **order) {
    int *waits = xcalloc((size_t)g->node_count + 1, sizeof *waits), *first = xcalloc((size_t)g->node_count + 2, sizeof *first);
    int done = 0;
    for (int i = 0; i < g->node_count; i++) {
        const Node *n = g->nodes[i];
        for (int j = 0; j < n->input_count; j++) {
            if (node_is_next_iteration(n->inputs[j].node)) continue;
            waits[i]++;
            first[n->inputs[j].node->id + 1]++;
        }
    }
    for (int i = 0; i < g->node_count; i++) first[i + 1] += first[i];
    int *fill = xcalloc((size_t)g->node_count + 1, sizeof *fill), *consumers = xcalloc((size_t)first[g->node_count] + 1, sizeof *consumers);
    for (int i = 0; i < g->node_count; i++) {
        const Node *n = g->nodes[i];
        for (int j = 0; j < n->input_count; j++) {
            int from = n->inputs[j].node->id;
            if (!node_is_next_iteration(n->inputs[j].node)) consumers[first[from] + fill[from]++] = i;
        }
    }
    for (int i = 0; i < g->node_count; i++)
        if (!waits[i]) order[done++] = g->nodes[i];
    for (int at = 0; at < done; at++) {
        int id = order[at]->id;
        for (int j = first[id]; j < first[id + 1]; j++)
            if (--waits[consumers[j]] == 0) order[done++] = g->nodes[consumers[j]];
    }
    free(consumers);
    free(fill);
    free(first);
    free(waits);
    return done;
}

Error *shapes_infer_graph(ShapeInfo *info) {
    const Graph *g = info->graph;
    const Node **order = xcalloc((size_t)g->node_count + 1, sizeof *order);
    int count = order_nodes(g, order);
    Error *err = count < g->node_count ? error_invalid("The graph has a cycle that is no loop") : NULL;
    for (int i = 0; i < count && !err; i++)
        if (!shapes_inferred(info, order[i])) err = shapes_infer_node(info, order[i]);
    free(order);
    return err;
}
