/* inline.c: the body of a function copied to where it is called. */
#include <stdlib.h>

#include "base/memory.h"
#include "placement/device_name.h"
#include "graph/frames.h"
#include "placement/lowerer.h"
#include "placement/symbolic_gradient.h"

enum { MAX_NODES = 1000000, MAX_BODIES = 100000 };

/* Whether the nodes of a body have a say in where they run: in branches, loops and PartitionedCalls. Other bodies run where their call does. */
static bool may_span_devices(const Lowerer *l, const Node *caller) {
    Str value;
    bool says = false;
    if (node_attr(caller, "_lower_as_multi_device_function", &value) && attr_bool(value, &says)) return says;
    return !node_is(caller, "SymbolicGradient") && !node_is(caller, "RemoteCall") && !function_find(l->lib, caller->op);
}

static Str device_of_copy(Lowerer *l, Str own, const Node *caller) {
    DeviceName a, b;
    Str callers = caller->device;
    if (!own.len || !may_span_devices(l, caller)) return callers;
    Error *err = device_name_parse(own, &a);
    if (!err) err = device_name_parse(callers, &b);
    bool ok = !err;
    error_free(err);
    if (!ok) return own;
    device_name_fill(&a, &b);
    return device_name_text(l->g->arena, &a);
}

static Node *copy_of(Node **copies, const Node *n) {
    return copies[n->id];
}

static Error *copy_body_node(Lowerer *l, const Node *n, const Node *caller, Str prefix, Node *gate, int depth, Node **out) {
    Graph *g = l->g;
    Node *copy;
    Str name = graph_unique_name(g, arena_printf(g->arena, "%.*s/%.*s", STR_ARG(prefix), STR_ARG(n->name)));
    Error *err = graph_add_node(g, name, n->op, device_of_copy(l, n->device, caller), &copy);
    if (err) return err;
    for (int i = 0; i < n->attr_count; i++) {
        if (str_is(n->attrs[i].name, "_class")) continue; /* groups name nodes of the body; renaming them is not worth it */
        node_add_attr(g, copy, n->attrs[i].name, n->attrs[i].value);
    }
    /* Loops of the body need frames of their own. */
    if (node_is(copy, "Enter") || node_is(copy, "RefEnter")) {
        Str value, frame;
        if (node_attr(n, "frame_name", &value) && attr_string(value, &frame))
            node_add_attr(g, copy, STR("frame_name"), attr_make_string(g->arena, arena_printf(g->arena, "%.*s/%.*s", STR_ARG(prefix), STR_ARG(frame))));
    }
    err = node_resolve(g, copy);
    if (err) return err;
    lowerer_note(l, copy, depth + 1, gate);
    *out = copy;
    return NULL;
}

/* A value that is there in every iteration from its beginning, also in the last one, which has only a condition. */
static bool is_constant_of_loop(Output o) {
    Str value;
    bool yes = false;
    return node_is(o.node, "Enter") && node_attr(o.node, "is_constant", &value) && attr_bool(value, &yes) && yes;
}

/* Whether nothing says when `copy` may start. Only what `n` takes of its caller counts: loops of the body itself are of other frames. */
static bool starts_by_itself(const Node *n, const Node *copy) {
    bool waits = copy->control_count > 0;
    for (int i = 0; !waits && i < n->input_count; i++) waits = !node_is(n->inputs[i].node, "_Arg") || !is_constant_of_loop(copy->inputs[i]);
    return !waits;
}

/* Joins the copied nodes. A node that would start by itself waits for `gate`, so that it runs only in its branch or iteration, and so that a task that has
   nothing else of a loop is told of every iteration. */
static void link_body(Lowerer *l, const FunctionBody *body, Node **copies, const Output *args, Node *gate) {
    for (int i = 0; i < body->graph->node_count; i++) {
        const Node *n = body->graph->nodes[i];
        Node *copy = copies[i];
        if (!copy) continue;
        Output *inputs = arena_alloc(l->g->arena, sizeof *inputs * (size_t)(n->input_count + 1));
        for (int j = 0; j < n->input_count; j++) {
            Node *src = n->inputs[j].node;
            int64_t index = 0;
            bool is_arg = node_is(src, "_Arg");
            if (is_arg) error_free(node_attr_int(src, "index", &index));
            inputs[j] = is_arg ? args[index] : (Output){copy_of(copies, src), n->inputs[j].index};
        }
        copy->inputs = inputs;
        copy->input_count = n->input_count;
        for (int j = 0; j < n->control_count; j++)
            if (copy_of(copies, n->controls[j])) node_add_control(l->g, copy, copy_of(copies, n->controls[j]));
        if (gate && starts_by_itself(n, copy)) node_add_control(l->g, copy, gate);
    }
}

/* A call on its way into the graph. */
typedef struct Call {
    const Node *caller;
    const FunctionBody *body;
    Node **copies;
    Str prefix;
    const Output *args;
    Node *gate;
    bool whole; /* all that has an effect must run, not only what the function says */
} Call;

static bool must_run(const Call *c, const Node *n) {
    bool must = c->whole && node_is_stateful(n);
    for (int j = 0; !must && j < c->body->control_ret_count; j++) must = c->body->control_rets[j] == n;
    return must;
}

static bool has_switch(const Graph *g) {
    for (int i = 0; i < g->node_count; i++)
        if (node_is(g->nodes[i], "Switch") || node_is(g->nodes[i], "RefSwitch")) return true;
    return false;
}

static Error *add_effects(Lowerer *l, const Call *c, const char *name, const char *op, Node **out) {
    Error *err = lowerer_add(l, graph_unique_name(l->g, arena_printf(l->g->arena, "%.*s/%s", STR_ARG(c->prefix), name)), op, c->caller, out);
    return err ? err : node_resolve(l->g, *out);
}

/* What must run in a loop runs before its next iteration begins, and the loop before `after`. */
static void join_loop(Lowerer *l, const Call *c, const FrameMap *m, int loop, Node *ran, Node *after) {
    const Graph *g = c->body->graph;
    for (int i = 0; i < g->node_count; i++) {
        const Node *n = g->nodes[i];
        if (m->node_frame[n->id] != loop) continue;
        if (node_is_next_iteration(n)) node_add_control(l->g, c->copies[i], ran);
        if (node_is_exit(n)) node_add_control(l->g, after, c->copies[i]);
    }
}

/* What ran of each frame of a body: ControlTriggers, which run also where something is dead; of frame 0 only when something may be. */
typedef struct Ran {
    FrameMap frames;
    Node **triggers; /* by frame, made when needed */
    Node *all;
} Ran;

static Error *ran_in(Lowerer *l, const Call *c, Ran *r, int frame, Node **out) {
    Node *after = NULL;
    Error *err = NULL;
    if (frame > 0 && !r->triggers[frame]) {
        err = ran_in(l, c, r, r->frames.frames[frame].parent, &after);
        if (!err) err = add_effects(l, c, "ran", "ControlTrigger", &r->triggers[frame]);
        if (!err) join_loop(l, c, &r->frames, frame, r->triggers[frame], after);
    }
    *out = r->triggers[frame] ? r->triggers[frame] : r->all;
    return err;
}

/* Where the body has Switch nodes some of it may be dead in a call that is not; what the call itself waits for tells whether the call is dead. */
static Error *begin_effects(Lowerer *l, const Call *c, Ran *r) {
    bool may_be_dead = has_switch(c->body->graph);
    Error *err = add_effects(l, c, "effects", "NoOp", &r->all);
    if (!err && may_be_dead) err = add_effects(l, c, "ran", "ControlTrigger", &r->triggers[0]);
    if (err) return err;
    if (c->gate) node_add_control(l->g, r->all, c->gate);
    for (int i = 0; may_be_dead && i < c->body->arg_count; i++) node_add_control(l->g, r->all, c->args[i].node);
    if (may_be_dead) node_add_control(l->g, r->all, r->triggers[0]);
    return NULL;
}

/* Sets a node that is done when all is that must run; NULL when nothing must. */
static Error *join_effects(Lowerer *l, const Call *c, Node **out) {
    const Graph *g = c->body->graph;
    Ran r = {0};
    Error *err = frame_map_build(g, &r.frames);
    if (err) return error_wrap(err, "the body of {{node %.*s}}", STR_ARG(c->caller->name));
    r.triggers = xcalloc((size_t)r.frames.frame_count, sizeof *r.triggers);
    for (int i = 0; !err && i < g->node_count; i++) {
        Node *ran = NULL;
        if (!c->copies[i] || !must_run(c, g->nodes[i])) continue;
        if (!r.all) err = begin_effects(l, c, &r);
        if (!err) err = ran_in(l, c, &r, r.frames.node_frame[g->nodes[i]->id], &ran);
        if (!err) node_add_control(l->g, ran, c->copies[i]);
    }
    *out = r.all;
    free(r.triggers);
    frame_map_clear(&r.frames);
    return err;
}

/* What the caller's wish for a device says; every task has a CPU. */
static Str device_type_of(const Node *caller) {
    DeviceName name;
    Error *err = device_name_parse(caller->device, &name);
    bool known = !err && name.type.len;
    error_free(err);
    return known ? name.type : STR("CPU");
}

Error *lowerer_inline(Lowerer *l, Node *caller, Str function, Str prefix, const Output *args, int arg_count, Node *gate, int depth, Inlined *out) {
    const Function *f = function_find(l->lib, func_name(function));
    if (!f) return error_not_found("Function %.*s called by {{node %.*s}} is not in the library", STR_ARG(func_name(function)), STR_ARG(caller->name));
    if (++l->body_count > MAX_BODIES)
        return error_new(CODE_RESOURCE_EXHAUSTED, "The graph has more than %d function calls when functions are expanded, the last of %.*s by {{node %.*s}}",
                         MAX_BODIES, STR_ARG(f->name), STR_ARG(caller->name));
    f = function_implementation(l->lib, f, device_type_of(caller));
    int attr_count = func_attrs(function, NULL, 0);
    Attr *attrs = xcalloc((size_t)attr_count, sizeof *attrs);
    func_attrs(function, attrs, attr_count);
    FunctionBody *body = NULL;
    Node **copies = NULL;
    Error *err = node_is(caller, "SymbolicGradient") ? symbolic_gradient_body(l->lib, function, l->nesting + 1, &body)
                                                     : function_instantiate(l->lib, f, attrs, attr_count, &body);
    if (!err && body->arg_count != arg_count)
        err = error_invalid("Function %.*s takes %d arguments, {{node %.*s}} gives %d", STR_ARG(f->name), body->arg_count, STR_ARG(caller->name), arg_count);
    if (!err && l->g->node_count + body->graph->node_count > MAX_NODES)
        err = error_new(CODE_RESOURCE_EXHAUSTED, "Inlining %.*s would make more than %d nodes", STR_ARG(f->name), MAX_NODES);
    if (err) goto out;
    copies = xcalloc((size_t)body->graph->node_count, sizeof(Node *));
    for (int i = 0; !err && i < body->graph->node_count; i++)
        if (!node_is(body->graph->nodes[i], "_Arg")) err = copy_body_node(l, body->graph->nodes[i], caller, prefix, gate, depth, &copies[i]);
    if (err) goto out;
    link_body(l, body, copies, args, gate);
    out->ret_count = body->ret_count;
    out->rets = arena_calloc(l->g->arena, (size_t)body->ret_count, sizeof *out->rets);
    for (int i = 0; i < body->ret_count; i++) {
        Output ret = body->rets[i];
        int64_t index = 0;
        bool is_arg = node_is(ret.node, "_Arg");
        if (is_arg) error_free(node_attr_int(ret.node, "index", &index));
        out->rets[i] = is_arg ? args[index] : (Output){copy_of(copies, ret.node), ret.index};
    }
    err = join_effects(l, &(Call){caller, body, copies, prefix, args, gate, lowerer_runs_whole(caller)}, &out->effects);
out:
    free(copies);
    function_body_free(body);
    free(attrs);
    return err;
}
