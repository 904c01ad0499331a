/* plan.c: compiles a graph to a plan: frames found, kernels chosen, edges laid out flat. */
#include "runtime/plan.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/hashmap.h"
#include "base/memory.h"
#include "graph/frames.h"
#include "graph/function.h"
#include "tensor/tensor_proto.h"

static NodeKind kind_of(const Node *n) {
    static const struct {
        const char *op;
        NodeKind kind;
    } rows[] = {
        {"Const", KIND_CONST},      {"Merge", KIND_MERGE},   {"RefMerge", KIND_MERGE},
        {"Enter", KIND_ENTER},      {"RefEnter", KIND_ENTER}, {"Exit", KIND_EXIT},
        {"RefExit", KIND_EXIT},     {"NextIteration", KIND_NEXT_ITERATION}, {"RefNextIteration", KIND_NEXT_ITERATION},
        {"ControlTrigger", KIND_CONTROL_TRIGGER},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (node_is(n, rows[i].op)) return rows[i].kind;
    return KIND_PLAIN;
}

/* ---- Frames ---- */

static Error *take_frames(Plan *p) {
    FrameMap map;
    Error *err = frame_map_build(p->graph, &map);
    if (err) return err;
    p->frame_count = map.frame_count;
    p->frames = arena_calloc(p->arena, (size_t)map.frame_count, sizeof *p->frames);
    for (int i = 0; i < map.frame_count; i++)
        p->frames[i] = (PlanFrame){.name = map.frames[i].name, .parent = map.frames[i].parent, .enter_count = map.frames[i].enter_count};
    for (int i = 0; !err && i < p->node_count; i++) {
        PlanNode *n = &p->nodes[i];
        n->frame = map.node_frame[i];
        n->child_frame = map.enter_frame[i];
        if (n->kind != KIND_ENTER) continue;
        n->parallel_iterations = map.frames[n->child_frame].parallel_iterations;
        err = node_attr_bool(n->node, "is_constant", &n->is_constant_enter);
    }
    frame_map_clear(&map);
    return err;
}

/* ---- Kernels ---- */

/* Its state lives as long as the session, for all graphs with a node of that name. */
static bool is_shared(const Plan *p, const PlanNode *n) {
    return (n->def->flags & KERNEL_PER_SESSION) && !p->graph->is_function_body;
}

static Error *find_kernel(Plan *p, PlanNode *n) {
    /* A node whose op is the name of a function calls it. */
    Node call = {.name = n->node->name, .op = STR("_FunctionCall")};
    bool is_call = !kernel_exists(n->node->op) && p->graph->functions && function_find(p->graph->functions, n->node->op);
    Error *err = kernel_find(is_call ? &call : n->node, &n->def, &n->run);
    if (err) return err;
    n->expensive = n->def->flags & KERNEL_EXPENSIVE;
    if (n->kind == KIND_CONST) {
        Str value, proto;
        if (!node_attr(n->node, "value", &value) || !attr_tensor(value, &proto)) return error_invalid("Const has no value");
        err = tensor_proto_decode(proto, &n->constant);
        if (!err && n->constant->dtype != dtype_base(n->node->output_types[0]))
            err = error_invalid("Type mismatch between value (%s) and dtype (%s)", dtype_name(n->constant->dtype), dtype_name(n->node->output_types[0]));
        return err;
    }
    if (!n->def->state_size) return n->def->init ? n->def->init(n->node, NULL) : NULL; /* it only looks at the attributes */
    if (is_shared(p, n)) return session_kernel_state(p->session, n->node, n->def, &n->state);
    n->state = xcalloc(1, n->def->state_size);
    err = n->def->init ? n->def->init(n->node, n->state) : NULL;
    return err; /* plan_free clears the state also when init left it half filled */
}

/* ---- Constants ---- */

/* A constant without control inputs is there before the step begins: who uses it need not wait for it. A Merge counts its inputs in its own way. */
static bool is_bound(const Plan *p, const PlanNode *n, int input) {
    const PlanNode *src = &p->nodes[n->node->inputs[input].node->id];
    return src->constant && src->node->control_count == 0 && src->frame == n->frame && n->kind != KIND_MERGE;
}

static void bind_constants(Plan *p) {
    for (int i = 0; i < p->node_count; i++) {
        PlanNode *n = &p->nodes[i];
        for (int j = 0; j < n->input_count; j++) {
            if (!is_bound(p, n, j)) continue;
            if (!n->constants) n->constants = arena_calloc(p->arena, (size_t)n->input_count, sizeof *n->constants);
            /* With a reference of its own, so that nobody takes the constant's memory for his result. */
            n->constants[j] = tensor_ref(p->nodes[n->node->inputs[j].node->id].constant);
            n->pending--;
        }
    }
}

/* ---- Layout ---- */

static Error *add_node(Plan *p, int id, const DeviceSet *devices) {
    PlanNode *n = &p->nodes[id];
    n->node = p->graph->nodes[id];
    if (!n->node->info)
        return node_unknown_op(n->node);
    n->kind = kind_of(n->node);
    n->device = devices->devices[n->node->placed >= 0 && n->node->placed < devices->count ? n->node->placed : 0];
    n->input_count = n->node->input_count;
    n->output_count = n->node->output_count;
    n->pending = n->kind == KIND_MERGE ? 1 + 2 * n->node->control_count : n->input_count + n->node->control_count;
    p->has_control_flow |= n->kind == KIND_MERGE || n->kind == KIND_ENTER;
    return NULL;
}

static void lay_out_frames(Plan *p) {
    for (int i = 0; i < p->node_count; i++) {
        PlanNode *n = &p->nodes[i];
        PlanFrame *f = &p->frames[n->frame];
        n->count_index = f->node_count++;
        n->slot = f->slot_count;
        f->slot_count += n->input_count;
    }
    for (int i = 0; i < p->frame_count; i++) p->frames[i].pending = arena_calloc(p->arena, (size_t)p->frames[i].node_count, sizeof(int));
    for (int i = 0; i < p->node_count; i++) p->frames[p->nodes[i].frame].pending[p->nodes[i].count_index] = p->nodes[i].pending;
}

static bool has_edge(const PlanNode *n, int input) {
    return !n->constants || !n->constants[input];
}

/* Counts edges by (source, output), then places them; the last group of a node is its control edges. */
static void lay_out_edges(Plan *p) {
    int total = 0;
    for (int i = 0; i < p->node_count; i++) {
        PlanNode *n = &p->nodes[i];
        n->edge_start = arena_calloc(p->arena, (size_t)n->output_count + 2, sizeof(int));
        total += n->node->input_count + n->node->control_count;
    }
    p->edges = arena_calloc(p->arena, (size_t)total, sizeof *p->edges);
    for (int i = 0; i < p->node_count; i++) {
        const Node *n = p->nodes[i].node;
        for (int j = 0; j < n->input_count; j++)
            if (has_edge(&p->nodes[i], j)) p->nodes[n->inputs[j].node->id].edge_start[n->inputs[j].index + 1]++;
        for (int j = 0; j < n->control_count; j++) {
            PlanNode *src = &p->nodes[n->controls[j]->id];
            src->edge_start[src->output_count + 1]++;
        }
    }
    int at = 0;
    for (int i = 0; i < p->node_count; i++) {
        PlanNode *n = &p->nodes[i];
        n->edge_start[0] = at;
        for (int j = 1; j <= n->output_count + 1; j++) n->edge_start[j] += n->edge_start[j - 1];
        at = n->edge_start[n->output_count + 1];
    }
    int *fill = xcalloc((size_t)total, sizeof *fill); /* how many of the group that starts here are placed */
    for (int i = 0; i < p->node_count; i++) {
        const Node *n = p->nodes[i].node;
        for (int j = 0; j < n->input_count + n->control_count; j++) {
            bool data = j < n->input_count;
            if (data && !has_edge(&p->nodes[i], j)) continue;
            PlanNode *src = &p->nodes[data ? n->inputs[j].node->id : n->controls[j - n->input_count]->id];
            int group = src->edge_start[data ? n->inputs[j].index : src->output_count];
            bool is_only = p->nodes[i].pending == 1 && p->nodes[i].kind != KIND_MERGE;
            p->edges[group + fill[group]++] = (PlanEdge){i, data ? p->nodes[i].slot + j : -1, is_only ? -1 : p->nodes[i].count_index};
        }
    }
    free(fill);
}

/* A constant without edges. */
static bool is_idle(const PlanNode *n) {
    return n->constant && n->edge_start[0] == n->edge_start[n->output_count + 1];
}

static void list_roots(Plan *p) {
    p->roots = arena_calloc(p->arena, (size_t)p->node_count, sizeof(int));
    for (int i = 0; i < p->node_count; i++)
        if (p->nodes[i].pending == 0 && !is_idle(&p->nodes[i])) p->roots[p->root_count++] = i;
    for (int i = 0; i < p->node_count; i++)
        if (p->nodes[i].pending == 0 && is_idle(&p->nodes[i])) p->roots[p->root_count + p->constant_count++] = i;
}

Error *plan_build(Graph *take, const DeviceSet *devices, SessionState *session, Plan **out) {
    Plan *p = xcalloc(1, sizeof *p);
    p->arena = arena_new();
    p->graph = take;
    p->session = session_state_ref(session);
    p->node_count = take->node_count;
    p->nodes = arena_calloc(p->arena, (size_t)take->node_count, sizeof *p->nodes);
    Error *err = NULL;
    for (int i = 0; !err && i < p->node_count; i++) err = add_node(p, i, devices);
    if (!err) err = take_frames(p);
    for (int i = 0; !err && i < p->node_count; i++) {
        err = find_kernel(p, &p->nodes[i]);
        err = error_append(err, "\n\t [[{{node %.*s}}]]", STR_ARG(p->nodes[i].node->name));
    }
    if (err) {
        plan_free(p);
        return err;
    }
    bind_constants(p);
    lay_out_frames(p);
    lay_out_edges(p);
    _Atomic int *costs = arena_calloc(p->arena, (size_t)p->node_count, sizeof *costs);
    for (int i = 0; i < p->node_count; i++) {
        atomic_init(&costs[i], -1);
        p->nodes[i].cost = &costs[i];
    }
    list_roots(p);
    *out = p;
    return NULL;
}

void plan_free(Plan *p) {
    if (!p) return;
    for (int i = 0; i < p->node_count; i++) {
        PlanNode *n = &p->nodes[i];
        tensor_unref(n->constant);
        for (int j = 0; n->constants && j < n->input_count; j++) tensor_unref(n->constants[j]);
        if (!n->state || is_shared(p, n)) continue;
        if (n->def->clear) n->def->clear(n->state);
        free(n->state);
    }
    graph_free(p->graph);
    session_state_unref(p->session);
    arena_free(p->arena);
    free(p);
}
