/* partition.c: cuts edges between tasks.

   Each cut edge becomes _Send -> _Recv, once for each (source output, destination task); a control edge sends an empty float. Inside a loop a
   _Recv must run once in every iteration, so each task that receives in a loop gets a control loop of its own: Enter -> Merge -> Switch ->
   NextIteration, steered by the loop's LoopCond; every _Recv there waits for that Merge. */
#include "placement/partition.h"

#include <stdlib.h>

#include "base/memory.h"
#include "graph/frames.h"
#include "tensor/tensor.h"

typedef struct Partitioner {
    Graph *g;
    const PartitionOptions *o;
    Graph **parts;
    FrameMap frames;
    Node **copies;  /* by node id */
    Node **loops;   /* [frame * task_count + task]: the Merge of the control loop there */
    StrMap recvs;   /* "src id:output:task" -> the _Recv (or the Identity of a control edge) */
    Arena *arena;
} Partitioner;

static int task_of(const Partitioner *p, const Node *n) {
    return p->o->devices[n->placed].task;
}

/* ---- Loops ---- */

/* Parts of loops that only forward follow the data, so that fewer edges are cut. */
static void settle_loop_devices(Partitioner *p) {
    Graph *g = p->g;
    for (int i = 0; i < g->node_count; i++) {
        Node *n = g->nodes[i];
        if ((node_is(n, "Switch") || node_is_exit(n)) && n->input_count) n->placed = n->inputs[0].node->placed;
    }
    bool *moved = xcalloc((size_t)g->node_count, sizeof *moved);
    for (int i = 0; i < g->node_count; i++) {
        Node *n = g->nodes[i];
        for (int j = 0; j < n->input_count; j++) {
            Node *src = n->inputs[j].node;
            if (moved[src->id] || !(node_is(src, "Enter") || node_is_next_iteration(src)) || node_is(src, "RefEnter")) continue;
            src->placed = n->placed;
            moved[src->id] = true;
        }
    }
    free(moved);
}

/* Adds a node that runs in the given frame. */
static Error *add_loop_node(Partitioner *p, const char *op, int frame, int placed, Node **out) {
    Str name = graph_unique_name(p->g, arena_printf(p->g->arena, "_cloop%s_%d_%d", op, frame, placed));
    Error *err = graph_add_node(p->g, name, str_of(op), STR(""), out);
    if (err) return err;
    (*out)->placed = placed;
    size_t count = (size_t)p->g->node_count;
    p->frames.node_frame = xrealloc(p->frames.node_frame, count * sizeof(int));
    p->frames.enter_frame = xrealloc(p->frames.enter_frame, count * sizeof(int));
    p->frames.node_frame[count - 1] = frame;
    p->frames.enter_frame[count - 1] = -1;
    return NULL;
}

static Str empty_float_attr(Arena *a) {
    Shape shape = shape_vector(0);
    Tensor *t = NULL;
    Error *err = tensor_new(DT_FLOAT, &shape, &t);
    error_free(err);
    Str attr = attr_make_tensor(a, t);
    tensor_unref(t);
    return attr;
}

/* The Merge of the control loop of a frame at the task of device `placed`; makes it, and those of the frames around. */
static Error *control_loop(Partitioner *p, int frame, int placed, Node **merge) {
    Node **slot = &p->loops[frame * p->o->task_count + p->o->devices[placed].task];
    if (*slot) {
        *merge = *slot;
        return NULL;
    }
    const Frame f = p->frames.frames[frame];
    Arena *a = p->g->arena;
    if (!f.loop_cond) return error_invalid("A cross-device loop must have a pivot predicate: frame '%.*s'", STR_ARG(f.name));
    Node *source, *enter, *made, *choice, *next;
    Error *err;
    if (f.parent > 0) {
        err = control_loop(p, f.parent, placed, &source);
    } else {
        err = add_loop_node(p, "Const", 0, placed, &source);
        if (err) return err;
        node_add_attr(p->g, source, STR("dtype"), attr_make_type(a, DT_FLOAT));
        node_add_attr(p->g, source, STR("value"), empty_float_attr(a));
        err = node_resolve(p->g, source);
    }
    Str type = attr_make_type(a, DT_FLOAT);
    if (!err) err = add_loop_node(p, "Enter", f.parent, placed, &enter);
    if (!err) err = add_loop_node(p, "Merge", frame, placed, &made);
    if (!err) err = add_loop_node(p, "Switch", frame, placed, &choice);
    if (!err) err = add_loop_node(p, "NextIteration", frame, placed, &next);
    if (err) return err;
    node_add_attr(p->g, enter, STR("T"), type);
    node_add_attr(p->g, enter, STR("frame_name"), attr_make_string(a, f.name));
    node_add_attr(p->g, enter, STR("is_constant"), attr_make_bool(a, false));
    node_add_attr(p->g, enter, STR("parallel_iterations"), attr_make_int(a, f.parallel_iterations));
    node_set_inputs(p->g, enter, &(Output){source, 0}, 1);
    node_add_attr(p->g, made, STR("T"), type);
    node_add_attr(p->g, made, STR("N"), attr_make_int(a, 2));
    node_set_inputs(p->g, made, (Output[]){{enter, 0}, {next, 0}}, 2);
    node_add_attr(p->g, choice, STR("T"), type);
    node_set_inputs(p->g, choice, (Output[]){{made, 0}, {f.loop_cond, 0}}, 2);
    node_add_attr(p->g, next, STR("T"), type);
    node_set_inputs(p->g, next, &(Output){choice, 1}, 1);
    Node *all[] = {enter, made, choice, next};
    for (size_t i = 0; !err && i < 4; i++) err = node_resolve(p->g, all[i]);
    *slot = *merge = made;
    return err;
}

/* Every task that receives inside a loop gets its control loop; the loops' own edges are looked at as well. */
static Error *add_control_loops(Partitioner *p) {
    for (int i = 0; i < p->g->node_count; i++) {
        Node *n = p->g->nodes[i];
        int frame = p->frames.node_frame[i];
        if (frame <= 0) continue;
        for (int j = 0; j < n->input_count + n->control_count; j++) {
            Node *src = j < n->input_count ? n->inputs[j].node : n->controls[j - n->input_count];
            Node *merge;
            if (task_of(p, src) == task_of(p, n)) continue;
            Error *err = control_loop(p, frame, n->placed, &merge);
            if (err) return err;
        }
    }
    return NULL;
}

/* ---- Edges ---- */

static Error *add_part_node(Partitioner *p, int task, Str prefix, const char *op, int placed, Node **out) {
    Graph *part = p->parts[task];
    Error *err = graph_add_node(part, graph_unique_name(part, prefix), str_of(op), STR(""), out);
    if (!err) (*out)->placed = placed;
    return err;
}

static void add_key_attrs(Partitioner *p, Graph *part, Node *n, Str tensor_name, int from, int to) {
    Arena *a = part->arena;
    node_add_attr(part, n, STR("tensor_name"), attr_make_string(a, tensor_name));
    node_add_attr(part, n, STR("send_device"), attr_make_string(a, p->o->devices[from].name));
    node_add_attr(part, n, STR("send_device_incarnation"), attr_make_int(a, (int64_t)p->o->devices[from].incarnation));
    node_add_attr(part, n, STR("recv_device"), attr_make_string(a, p->o->devices[to].name));
    node_add_attr(part, n, STR("client_terminated"), attr_make_bool(a, false));
    int from_task = p->o->devices[from].task, to_task = p->o->devices[to].task;
    if (p->o->pushed_to && from_task == 0 && p->o->pushed_to[to_task]) node_add_attr(part, n, STR("_pushed"), attr_make_bool(a, true));
}

static Error *add_cast(Partitioner *p, int task, Str name, Output input, DataType from, DataType to, int placed, Node **out) {
    Graph *part = p->parts[task];
    Error *err = add_part_node(p, task, name, "Cast", placed, out);
    if (err) return err;
    node_add_attr(part, *out, STR("SrcT"), attr_make_type(part->arena, from));
    node_add_attr(part, *out, STR("DstT"), attr_make_type(part->arena, to));
    node_add_attr(part, *out, STR("Truncate"), attr_make_bool(part->arena, to == DT_BFLOAT16));
    node_set_inputs(part, *out, &input, 1);
    return node_resolve(part, *out);
}

/* Cuts an edge: `value` at the source's task to the task of device `to`; *out is the received value. `wait` (optional) holds the receive back. */
static Error *send_recv(Partitioner *p, Str src_name, Output value, DataType type, int from, int to, Node *wait, Output *out, Node **recv_node) {
    int from_task = p->o->devices[from].task, to_task = p->o->devices[to].task;
    Graph *src_part = p->parts[from_task], *dst_part = p->parts[to_task];
    Str tensor_name = arena_printf(p->arena, "edge_%d_%.*s", ++*p->o->edge_count, STR_ARG(src_name));
    bool host = type == DT_STRING || type == DT_RESOURCE;
    bool shorten = p->o->bfloat16_edges && type == DT_FLOAT;
    Node *send, *recv;
    Error *err = NULL;
    if (shorten) {
        Node *cast;
        err = add_cast(p, from_task, arena_printf(p->arena, "%.*s/to_bfloat16", STR_ARG(src_name)), value, DT_FLOAT, DT_BFLOAT16, from, &cast);
        if (err) return err;
        value = (Output){cast, 0};
        type = DT_BFLOAT16;
    }
    err = add_part_node(p, from_task, arena_printf(p->arena, "%.*s_S%d", STR_ARG(src_name), *p->o->edge_count), host ? "_HostSend" : "_Send", from, &send);
    if (!err) err = add_part_node(p, to_task, arena_printf(p->arena, "%.*s_R%d", STR_ARG(src_name), *p->o->edge_count), host ? "_HostRecv" : "_Recv", to, &recv);
    if (err) return err;
    node_add_attr(src_part, send, STR("T"), attr_make_type(src_part->arena, type));
    add_key_attrs(p, src_part, send, tensor_name, from, to);
    node_set_inputs(src_part, send, &value, 1);
    node_add_attr(dst_part, recv, STR("tensor_type"), attr_make_type(dst_part->arena, type));
    add_key_attrs(p, dst_part, recv, tensor_name, from, to);
    if (wait) node_add_control(dst_part, recv, p->copies[wait->id]);
    err = node_resolve(src_part, send);
    if (!err) err = node_resolve(dst_part, recv);
    *out = (Output){recv, 0};
    *recv_node = recv;
    if (!err && shorten) {
        Node *cast;
        err = add_cast(p, to_task, arena_printf(p->arena, "%.*s/from_bfloat16", STR_ARG(src_name)), *out, DT_BFLOAT16, DT_FLOAT, to, &cast);
        *out = (Output){cast, 0};
    }
    return err;
}

static Node *loop_gate(Partitioner *p, const Node *dst) {
    int frame = p->frames.node_frame ? p->frames.node_frame[dst->id] : 0;
    return frame > 0 ? p->loops[frame * p->o->task_count + task_of(p, dst)] : NULL;
}

static Str recv_key(Partitioner *p, const Node *src, int output, int task) {
    return arena_printf(p->arena, "%d:%d:%d", src->id, output, task);
}

static Error *cut_data_edge(Partitioner *p, Node *dst, int i, Output *out, Node **ref_recv) {
    Output src = dst->inputs[i];
    DataType type = src.node->output_types[src.index];
    int task = task_of(p, dst);
    /* An op that wants the reference itself reads the value as late as it can: never shared. */
    bool is_ref_edge = dtype_is_ref(type);
    Str key = recv_key(p, src.node, src.index, task);
    Node *known = is_ref_edge ? NULL : strmap_get(&p->recvs, key);
    *ref_recv = NULL;
    if (known) {
        *out = (Output){known, 0};
        return NULL;
    }
    Node *recv;
    Error *err = send_recv(p, src.node->name, (Output){p->copies[src.node->id], src.index}, dtype_base(type), src.node->placed, dst->placed, loop_gate(p, dst), out, &recv);
    if (err) return err;
    if (is_ref_edge)
        *ref_recv = recv;
    else
        strmap_put(&p->recvs, key, out->node);
    return NULL;
}

static Error *cut_control_edge(Partitioner *p, Node *dst, Node *src, Node **out) {
    int from_task = task_of(p, src), to_task = task_of(p, dst);
    Str key = recv_key(p, src, -1, to_task);
    *out = strmap_get(&p->recvs, key);
    if (*out) return NULL;
    Graph *part = p->parts[from_task];
    Node *token, *recv;
    Error *err = add_part_node(p, from_task, arena_printf(p->arena, "%.*s/ctrl", STR_ARG(src->name)), "Const", src->placed, &token);
    if (err) return err;
    node_add_attr(part, token, STR("dtype"), attr_make_type(part->arena, DT_FLOAT));
    node_add_attr(part, token, STR("value"), empty_float_attr(part->arena));
    node_add_control(part, token, p->copies[src->id]);
    err = node_resolve(part, token);
    Output value;
    if (!err) err = send_recv(p, token->name, (Output){token, 0}, DT_FLOAT, src->placed, dst->placed, loop_gate(p, dst), &value, &recv);
    if (!err) err = add_part_node(p, to_task, arena_printf(p->arena, "%.*s/ctrl_received", STR_ARG(src->name)), "Identity", dst->placed, out);
    if (err) return err;
    node_add_attr(p->parts[to_task], *out, STR("T"), attr_make_type(p->parts[to_task]->arena, DT_FLOAT));
    node_set_inputs(p->parts[to_task], *out, &value, 1);
    strmap_put(&p->recvs, key, *out);
    return node_resolve(p->parts[to_task], *out);
}

static Error *copy_node(Partitioner *p, const Node *n) {
    int task = task_of(p, n);
    if (!p->parts[task]) {
        p->parts[task] = graph_new();
        p->parts[task]->functions = p->g->functions;
        p->parts[task]->producer = p->g->producer;
        p->parts[task]->min_consumer = p->g->min_consumer;
    }
    return graph_copy_node(p->parts[task], n, &p->copies[n->id]);
}

static Error *link_node(Partitioner *p, Node *n) {
    int task = task_of(p, n);
    Graph *part = p->parts[task];
    Node *copy = p->copies[n->id];
    Output *inputs = arena_alloc(part->arena, sizeof *inputs * (size_t)(n->input_count + 1));
    Node **ref_recvs = n->input_count ? xcalloc((size_t)n->input_count, sizeof *ref_recvs) : NULL;
    bool has_ref = false;
    Error *err = NULL;
    for (int i = 0; !err && i < n->input_count; i++) {
        Node *src = n->inputs[i].node;
        if (!src->info) {
            err = node_unknown_op(src);
        } else if (task_of(p, src) == task) {
            inputs[i] = (Output){p->copies[src->id], n->inputs[i].index};
        } else {
            err = cut_data_edge(p, n, i, &inputs[i], &ref_recvs[i]);
            has_ref |= ref_recvs[i] != NULL;
        }
    }
    if (!err) {
        copy->inputs = inputs;
        copy->input_count = n->input_count;
    }
    for (int i = 0; !err && i < n->control_count; i++) {
        Node *before = p->copies[n->controls[i]->id];
        if (task_of(p, n->controls[i]) != task) err = cut_control_edge(p, n, n->controls[i], &before);
        if (!err) node_add_control(part, copy, before);
    }
    /* A reference is read after the other inputs are there. */
    for (int i = 0; !err && has_ref && i < n->input_count; i++) {
        if (!ref_recvs[i]) continue;
        for (int j = 0; j < n->input_count; j++)
            if (!ref_recvs[j]) node_add_control(part, ref_recvs[i], inputs[j].node);
        for (int j = 0; j < copy->control_count; j++) node_add_control(part, ref_recvs[i], copy->controls[j]);
    }
    free(ref_recvs);
    return err;
}

static bool has_loops(const Graph *g) {
    for (int i = 0; i < g->node_count; i++)
        if (node_is_enter(g->nodes[i])) return true;
    return false;
}

static Error *partition(Partitioner *p) {
    Error *err = NULL;
    if (has_loops(p->g)) {
        settle_loop_devices(p);
        err = frame_map_build(p->g, &p->frames);
        p->loops = xcalloc((size_t)(p->frames.frame_count * p->o->task_count), sizeof *p->loops);
        if (!err) err = add_control_loops(p);
    }
    p->copies = xcalloc((size_t)p->g->node_count, sizeof *p->copies);
    for (int i = 0; !err && i < p->g->node_count; i++) err = copy_node(p, p->g->nodes[i]);
    for (int i = 0; !err && i < p->g->node_count; i++) err = link_node(p, p->g->nodes[i]);
    return err;
}

Error *graph_partition(Graph *g, const PartitionOptions *options, Graph **parts) {
    Partitioner p = {.g = g, .o = options, .parts = parts, .arena = arena_new()};
    for (int i = 0; i < options->task_count; i++) parts[i] = NULL;
    Error *err = partition(&p);
    for (int i = 0; err && i < options->task_count; i++) {
        graph_free(parts[i]);
        parts[i] = NULL;
    }
    frame_map_clear(&p.frames);
    strmap_clear(&p.recvs);
    free(p.copies);
    free(p.loops);
    arena_free(p.arena);
    return err;
}
