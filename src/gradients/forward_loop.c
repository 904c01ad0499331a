/* forward_loop.c: a loop of the graph is read, and made to remember what its gradient needs.

   Values of the body are kept in a TensorList that becomes a further variable of the loop. A value that lives in one
   branch of a cond is joined with a dummy of the other branch first: there is an element for every iteration. Nothing
   of this is run by steps that do not ask for the gradient. */
#include <stdlib.h>

#include "base/memory.h"
#include "gradients/loop.h"

Output loop_enter(Builder *b, Str frame_name, int64_t parallel_iterations, Output x, bool is_constant) {
    b_with(b, "frame_name", attr_make_string(b->g->arena, frame_name));
    b_with_bool(b, "is_constant", is_constant);
    b_with_int(b, "parallel_iterations", parallel_iterations);
    return b_op1(b, "Enter", x);
}

NewVariable loop_open(Builder *b, Str frame_name, int64_t parallel_iterations, Output start, Node *cond) {
    NewVariable v = {0};
    Output enter = loop_enter(b, frame_name, parallel_iterations, start, false);
    /* Both inputs are the Enter until loop_close. */
    v.merge = b_node(b, "Merge", (Output[]){enter, enter}, 2);
    if (cond) v.head = b_node(b, "Switch", (Output[]){output_of(v.merge, 0), output_of(cond, 0)}, 2);
    return v;
}

void loop_close(Builder *b, NewVariable v, Output next) {
    Output back = b_op1(b, "NextIteration", next);
    if (!b->error) v.merge->inputs[1] = back;
}

/* ---- Reading ---- */

static void add_variable(ForwardLoop *f, Node *merge) {
    LoopVariable v = {.merge = merge};
    for (int i = 0; i < merge->input_count; i++) {
        Node *input = merge->inputs[i].node;
        if (node_is_enter(input)) v.enter = input;
        if (node_is_next_iteration(input)) v.next = input;
    }
    if (v.enter && v.next) f->variables[f->variable_count++] = v;
}

static void add_head(ForwardLoop *f, Node *head) {
    for (int i = 0; i < f->variable_count; i++)
        if (f->variables[i].merge == head->inputs[0].node) f->variables[i].head = head;
}

static void add_exit(ForwardLoop *f, Node *exit) {
    for (int i = 0; i < f->variable_count; i++)
        if (f->variables[i].head == exit->inputs[0].node) f->variables[i].exit = exit;
}

static ForwardLoop *read_loop(Backprop *p, int frame) {
    const FrameMap *frames = &p->frames;
    ForwardLoop *f = arena_calloc(p->scratch, 1, sizeof *f);
    size_t enters = (size_t)frames->frames[frame].enter_count;
    f->frame = frame;
    f->cond = frames->frames[frame].loop_cond;
    f->variables = arena_calloc(p->scratch, enters, sizeof *f->variables);
    f->constants = arena_calloc(p->scratch, enters, sizeof *f->constants);
    for (int step = 0; step < 3; step++) {
        for (int i = 0; i < p->node_count; i++) {
            Node *n = p->g->nodes[i];
            bool constant = false;
            if (step == 0 && frames->enter_frame[i] == frame && !node_attr_bool(n, "is_constant", &constant) &&
                constant)
                f->constants[f->constant_count++] = n;
            if (frames->node_frame[i] != frame) continue;
            if (step == 0 && node_is_loop_merge(n)) add_variable(f, n);
            if (step == 1 && node_is_loop_switch(n)) add_head(f, n);
            if (step == 2 && node_is_exit(n)) add_exit(f, n);
        }
    }
    return f;
}

/* ---- Adding ---- */

static void put_frame(Backprop *p, const Node *n, int frame) {
    if (n) intmap_put(&p->frame_of, (uint64_t)n->id + 1, (void *)(intptr_t)(frame + 1));
}

/* What the Builder was before nodes were added to the forward loop. */
typedef struct Before {
    Str scope, device;
    Node *pivot;
    int node_count;
} Before;

static Before enter_forward(Backprop *p, const ForwardLoop *f, Node *pivot) {
    Before saved = {p->b.scope, p->b.device, p->b.pivot, p->g->node_count};
    p->b.scope = arena_printf(p->g->arena, "%.*s/%.*s", STR_ARG(p->prefix), STR_ARG(p->frames.frames[f->frame].name));
    p->b.device = p->colocate ? f->cond->device : STR("");
    p->b.pivot = pivot;
    return saved;
}

static void leave_forward(Backprop *p, Before saved) {
    backprop_mark_forward(p, saved.node_count);
    p->b.scope = saved.scope;
    p->b.device = saved.device;
    p->b.pivot = saved.pivot;
}

static Node *any_enter(const ForwardLoop *f) {
    return f->variable_count ? f->variables[0].enter : f->constants[0];
}

/* An Exit of a new variable, known to live outside of the loop, where the loop does. */
static Output add_result(Backprop *p, ForwardLoop *f, NewVariable v) {
    Output exit = b_op1(&p->b, "Exit", output_of(v.head, 0));
    if (p->b.error) return exit;
    put_frame(p, exit.node, p->frames.frames[f->frame].parent);
    branch_put(p->branches, exit.node, branch_of(p->branches, any_enter(f)->inputs[0]));
    return exit;
}

Output forward_loop_exit(Backprop *p, ForwardLoop *f, LoopVariable *v) {
    if (v->exit) return (Output){v->exit, 0};
    Before before = enter_forward(p, f, f->outer_pivot);
    v->exit = add_result(p, f, (NewVariable){v->merge, v->head}).node;
    leave_forward(p, before);
    return (Output){v->exit, 0};
}

static void add_counter(Backprop *p, ForwardLoop *f) {
    Builder *b = &p->b;
    const Frame *frame = &p->frames.frames[f->frame];
    Before saved = enter_forward(p, f, NULL);
    f->outer_pivot = b_identity(b, any_enter(f)->inputs[0]).node;
    b->pivot = f->outer_pivot;
    NewVariable count = loop_open(b, frame->name, frame->parallel_iterations, b_i32(b, 0), f->cond);
    f->pivot = b_identity(b, output_of(count.head, 1)).node;
    b->pivot = f->pivot;
    loop_close(b, count, b_add(b, output_of(f->pivot, 0), b_i32(b, 1)));
    f->trips = add_result(p, f, count);
    leave_forward(p, saved);
}

ForwardLoop *forward_loop(Backprop *p, int frame) {
    ForwardLoop *f = intmap_get(&p->loops, (uint64_t)frame);
    if (p->b.error) return NULL;
    if (f) return f;
    Str name = p->frames.frames[frame].name;
    f = read_loop(p, frame);
    if (!f->cond || f->variable_count + f->constant_count == 0) {
        b_fail(&p->b, error_invalid("The loop %.*s has no LoopCond or no variables", STR_ARG(name)));
        return NULL;
    }
    intmap_put(&p->loops, (uint64_t)frame, f);
    if (!p->branches) p->branches = branch_map_new(p);
    add_counter(p, f);
    return p->b.error ? NULL : f;
}

static Output empty_list(Builder *b, DataType type) {
    Output shape = b_i32(b, -1), limit = b_i32(b, -1);
    b_with_type(b, "element_dtype", type);
    return b_op2(b, "EmptyTensorList", shape, limit);
}

/* x, or a dummy in iterations that do not compute it. */
static Output always(Backprop *p, Output x, const Branch *branch) {
    Builder *b = &p->b;
    DataType type = output_dtype(x);
    for (; branch; branch = branch->parent) {
        Output dummy = type == DT_VARIANT ? empty_list(b, DT_FLOAT) : b_scalar(b, type, 0);
        Node *other = b_node(b, "Switch", (Output[]){dummy, branch->pred}, 2);
        x = b_op2(b, "Merge", x, output_of(other, !branch->taken));
    }
    return x;
}

Output forward_loop_list(Backprop *p, ForwardLoop *f, Output x) {
    Saved *saved = intmap_get(&f->lists, output_key(x));
    if (saved || p->b.error) return saved ? saved->value : NO_OUTPUT;
    Builder *b = &p->b;
    Before before = enter_forward(p, f, f->outer_pivot);
    const Frame *frame = &p->frames.frames[f->frame];
    NewVariable list = loop_open(b, frame->name, frame->parallel_iterations, empty_list(b, output_dtype(x)), f->cond);
    b->pivot = f->pivot;
    loop_close(b, list,
               b_op2(b, "TensorListPushBack", output_of(list.head, 1), always(p, x, branch_of(p->branches, x))));
    saved = arena_calloc(p->scratch, 1, sizeof *saved);
    saved->value = add_result(p, f, list);
    leave_forward(p, before);
    intmap_put(&f->lists, output_key(x), saved);
    return saved->value;
}

Output forward_loop_unary(Backprop *p, ForwardLoop *f, const char *op, Output x) {
    Before before = enter_forward(p, f, f->pivot);
    Output y = b_op1(&p->b, op, x);
    leave_forward(p, before);
    if (p->b.error) return y;
    put_frame(p, y.node, f->frame);
    branch_put(p->branches, y.node, branch_of(p->branches, x));
    return y;
}
