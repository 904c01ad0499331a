/* loop.c: gradients of loops of Enter, Merge, Switch, NextIteration and Exit.

   A second loop runs as often as the first did, and undoes one iteration each time. Its variables are the gradients by
   those of the first loop, sums of the gradients by its constants, a count that goes down to zero, and the lists of
   values that the first loop kept. Loops inside of loops work the same way: then the lists are kept in lists. */
#include "gradients/loop.h"

#include <stdlib.h>

#include "base/memory.h"

/* ---- Forward values ---- */

static Output enter_constant(Scope *s, Output outer) {
    Builder *b = &s->p->b;
    return loop_enter(b, s->loop->frame_name, s->loop->parallel_iterations, outer, true);
}

static Output copy_const(Builder *b, const Node *n) {
    b_with_attrs_of(b, n);
    return b_op0(b, "Const");
}

/* Taken off the end of its list; in the branch it was in. */
static Output pop(Scope *s, Output x) {
    Builder *b = &s->p->b;
    LoopGradient *l = s->loop;
    Output kept = forward_loop_list(s->p, l->forward, x);
    if (b->error) return NO_OUTPUT;
    NewVariable v = loop_open(b, l->frame_name, l->parallel_iterations, scope_value(l->outer, kept), l->cond);
    Output inputs[] = {output_of(v.head, 1), b_i32(b, -1)};
    b_with_type(b, "element_dtype", output_dtype(x));
    Node *popped = b_node(b, "TensorListPopBack", inputs, 2);
    loop_close(b, v, output_of(popped, 0));
    return output_of(popped, 1);
}

static Output in_branch(Scope *s, Output x, const Branch *branch) {
    if (!branch) return x;
    Output outer = in_branch(s, x, branch->parent);
    Node *n = b_node(&s->p->b, "Switch", (Output[]){outer, scope_value(s, branch->pred)}, 2);
    return output_of(n, branch->taken);
}

/* Handles do not change from iteration to iteration, and lists do not take them. */
static Output same_handle(Scope *s, Output x) {
    Output inputs[2] = {scope_value(s, x.node->inputs[0])};
    if (node_is(x.node, "Identity")) return inputs[0];
    inputs[1] = scope_value(s, x.node->inputs[1]);
    return output_of(b_node(&s->p->b, "Switch", inputs, 2), x.index);
}

static Output find_value(Scope *s, Output x) {
    Backprop *p = s->p;
    const Node *n = x.node;
    if (backprop_frame(p, n) != s->frame) return enter_constant(s, scope_value(s->parent, x));
    if (node_is_enter(n)) return enter_constant(s, scope_value(s->parent, n->inputs[0]));
    if (node_is(n, "Const")) return copy_const(&p->b, n);
    if (output_dtype(x) == DT_RESOURCE && (node_is(n, "Switch") || node_is(n, "Identity"))) return same_handle(s, x);
    return in_branch(s, pop(s, x), branch_of(p->branches, x));
}

Output scope_value(Scope *s, Output x) {
    if (!s->loop || s->p->b.error) return x;
    Saved *saved = intmap_get(&s->loop->values, output_key(x));
    if (saved) return saved->value;
    saved = arena_calloc(s->p->scratch, 1, sizeof *saved);
    Node *pivot = s->p->b.pivot;
    s->p->b.pivot = s->loop->pivot; /* the caller may be in a loop inside of this one */
    saved->value = find_value(s, x);
    s->p->b.pivot = pivot;
    intmap_put(&s->loop->values, output_key(x), saved);
    return saved->value;
}

/* Shapes are small: they are taken in the first loop and kept instead of the values. */
static Output scope_shape(Scope *s, Output x) {
    Builder *b = &s->p->b;
    bool is_kept =
        s->loop && !node_is_enter(x.node) && !node_is(x.node, "Const") && backprop_frame(s->p, x.node) == s->frame;
    if (!is_kept || b->error || output_dtype(x) == DT_RESOURCE) return b_shape(b, scope_value(s, x));
    Saved *saved = intmap_get(&s->loop->values, output_key(x) << 1 | UINT64_C(1) << 63);
    if (saved) return saved->value;
    saved = arena_calloc(s->p->scratch, 1, sizeof *saved);
    saved->value = scope_value(s, forward_loop_unary(s->p, s->loop->forward, "Shape", x));
    intmap_put(&s->loop->values, output_key(x) << 1 | UINT64_C(1) << 63, saved);
    return saved->value;
}

Output rule_in_shape(Rule *r, int i) {
    return scope_shape(r->scope, r->node->inputs[i < 0 ? r->node->input_count + i : i]);
}

/* Zeros like a forward value; `type` is that of the gradient, which differs for handles. */
static Output scope_zeros(Scope *s, Output x, DataType type) {
    Builder *b = &s->p->b;
    if (output_dtype(x) == DT_VARIANT) return b_zeros_like(b, scope_value(s, x));
    return b_fill(b, scope_shape(s, x), b_scalar(b, type, 0));
}

/* ---- Which variables take part ---- */

static Output value_of(const LoopVariable *v) {
    return (Output){v->head, 1};
}

static Output result_of(const LoopVariable *v) {
    return v->next->inputs[0];
}

/* Variables that depend on an x: from outside, through constants, or through others that do. */
static void find_dependent(Scope *body, Scope *outer, const ForwardLoop *f, bool *dependent, const bool *constants) {
    Output *xs = xcalloc((size_t)(f->variable_count + f->constant_count), sizeof *xs),
           *ys = xcalloc((size_t)f->variable_count, sizeof *ys);
    for (int i = 0; i < f->variable_count; i++) {
        dependent[i] = dtype_is_trainable(output_dtype(value_of(&f->variables[i]))) &&
                       scope_depends(outer, f->variables[i].enter->inputs[0]);
        ys[i] = result_of(&f->variables[i]);
    }
    for (bool changed = true; changed;) {
        int nx = 0;
        changed = false;
        for (int i = 0; i < f->constant_count; i++)
            if (constants[i]) xs[nx++] = (Output){f->constants[i], 0};
        for (int i = 0; i < f->variable_count; i++)
            if (dependent[i]) xs[nx++] = value_of(&f->variables[i]);
        bool *found = xcalloc((size_t)f->variable_count, sizeof *found);
        scope_find_dependent(body, ys, f->variable_count, xs, nx, found);
        for (int i = 0; i < f->variable_count; i++) {
            if (!found[i] || dependent[i] || !dtype_is_trainable(output_dtype(value_of(&f->variables[i])))) continue;
            dependent[i] = changed = true;
        }
        free(found);
    }
    free(xs);
    free(ys);
}

/* Variables that a gradient by an exit flows back to: exits with one, and all their results depend on. */
static void find_reached(Scope *body, Scope *outer, const ForwardLoop *f, bool *reached) {
    for (int i = 0; i < f->variable_count; i++) {
        Node *exit = f->variables[i].exit;
        reached[i] = exit && intmap_get(&outer->sums, output_key((Output){exit, 0}));
    }
    size_t count = (size_t)f->variable_count;
    Output *ys = xcalloc(count, sizeof *ys), *xs = xcalloc(count, sizeof *xs);
    bool *found = xcalloc(count, sizeof *found);
    for (int i = 0; i < f->variable_count; i++) xs[i] = value_of(&f->variables[i]);
    for (bool changed = true; changed;) {
        int ny = 0;
        changed = false;
        for (int i = 0; i < f->variable_count; i++)
            if (reached[i]) ys[ny++] = result_of(&f->variables[i]);
        scope_find_needed(body, ys, ny, xs, f->variable_count, found);
        for (int i = 0; i < f->variable_count; i++) {
            changed |= found[i] && !reached[i];
            reached[i] |= found[i];
        }
    }
    free(ys);
    free(xs);
    free(found);
}

/* ---- The loop back ---- */

static void start_loop(Scope *s, LoopGradient *l) {
    Builder *b = &s->p->b;
    const Frame *frame = &s->p->frames.frames[l->forward->frame];
    l->frame_name = arena_printf(b->g->arena, "%.*s/%.*s", STR_ARG(b->scope), STR_ARG(frame->name));
    l->parallel_iterations = frame->parallel_iterations;
    NewVariable left = loop_open(b, l->frame_name, l->parallel_iterations, scope_value(s, l->forward->trips), NULL);
    b->pivot = left.merge;
    Output more = b_op2(b, "Greater", output_of(left.merge, 0), b_i32(b, 0));
    l->cond = b_node(b, "LoopCond", &more, 1);
    left.head = b_node(b, "Switch", (Output[]){output_of(left.merge, 0), output_of(l->cond, 0)}, 2);
    l->pivot = b_identity(b, output_of(left.head, 1)).node;
    b->pivot = l->pivot;
    loop_close(b, left, b_sub(b, output_of(l->pivot, 0), b_i32(b, 1)));
}

/* The gradient by the variable after the last iteration. */
static Output last_gradient(Scope *s, ForwardLoop *f, LoopVariable *v) {
    Gradient found = {0};
    Output exit = forward_loop_exit(s->p, f, v);
    if (s->p->b.error) return NO_OUTPUT;
    if (scope_gradient(s, exit, &found)) return gradient_dense(&s->p->b, found);
    return scope_zeros(s, exit, output_dtype(exit));
}

/* Another part behind what came before. */
static Output collect(Scope *s, LoopGradient *l, Output start, Output part) {
    Builder *b = &s->p->b;
    NewVariable all = loop_open(b, l->frame_name, l->parallel_iterations, start, l->cond);
    loop_close(b, all, b_concat2(b, output_of(all.head, 1), part, 0));
    return b_op1(b, "Exit", output_of(all.head, 0));
}

/* The rows of all iterations. */
static void collect_rows(Scope *s, LoopGradient *l, Node *enter, Gradient part) {
    Builder *b = &s->p->b;
    Node *pivot = b->pivot;
    b->pivot = s->loop ? s->loop->pivot : NULL;
    Output shape = scope_shape(s, enter->inputs[0]);
    Gradient start = gradient_no_rows(b, shape, output_dtype(part.values), output_dtype(part.indices));
    b->pivot = pivot;
    Output values = collect(s, l, start.values, part.values);
    scope_add(s, enter->inputs[0], (Gradient){values, collect(s, l, start.indices, part.indices), shape});
}

/* The sum over all iterations of the gradient by a constant of the loop. */
static void sum_constant(Scope *s, LoopGradient *l, Node *enter, Output dense) {
    Builder *b = &s->p->b;
    Node *pivot = b->pivot;
    b->pivot = s->loop ? s->loop->pivot : NULL;
    Output start = scope_zeros(s, enter->inputs[0], output_dtype(dense));
    b->pivot = pivot;
    NewVariable sum = loop_open(b, l->frame_name, l->parallel_iterations, start, l->cond);
    Output terms[] = {output_of(sum.head, 1), dense};
    loop_close(b, sum, b_op(b, "AddN", terms, 2));
    scope_add(s, enter->inputs[0], (Gradient){.values = b_op1(b, "Exit", output_of(sum.head, 0))});
}

typedef struct LoopWalk {
    Output *ys, *xs;
    Gradient *given, *found;
    NewVariable *opened;
    int ny, nx;
} LoopWalk;

static void undo_body(Scope *s, LoopGradient *l, const bool *variables, const bool *constants) {
    Builder *b = &s->p->b;
    ForwardLoop *f = l->forward;
    Arena *a = s->p->scratch;
    size_t count = (size_t)(f->variable_count + f->constant_count);
    LoopWalk w = {arena_calloc(a, count, sizeof(Output)),
                  arena_calloc(a, count, sizeof(Output)),
                  arena_calloc(a, count, sizeof(Gradient)),
                  arena_calloc(a, count, sizeof(Gradient)),
                  arena_calloc(a, count, sizeof(NewVariable)),
                  0,
                  0};
    Node *outer_pivot = s->loop ? s->loop->pivot : NULL;
    for (int i = 0; i < f->variable_count && !b->error; i++) {
        if (!variables[i]) continue;
        b->pivot = outer_pivot;
        Output start = last_gradient(s, f, &f->variables[i]);
        b->pivot = l->pivot;
        w.opened[w.ny] = loop_open(b, l->frame_name, l->parallel_iterations, start, l->cond);
        w.given[w.ny].values = output_of(w.opened[w.ny].head, 1);
        w.xs[w.nx++] = value_of(&f->variables[i]);
        w.ys[w.ny++] = result_of(&f->variables[i]);
    }
    for (int i = 0; i < f->constant_count; i++)
        if (constants[i]) w.xs[w.nx++] = (Output){f->constants[i], 0};
    if (b->error) return;
    Scope body = {.p = s->p, .parent = s, .frame = f->frame, .loop = l};
    Str scope = b->scope;
    scope_backprop(&body, w.ys, w.given, w.ny, w.xs, w.nx, w.found);
    b->scope = scope;
    for (int i = 0, at = 0; i < f->variable_count && !b->error; i++) {
        if (!variables[i]) continue;
        Output next = has(w.found[at].values) ? gradient_dense(b, w.found[at])
                                              : scope_zeros(&body, w.xs[at], output_dtype(w.given[at].values));
        loop_close(b, w.opened[at], next);
        scope_add(s, f->variables[i].enter->inputs[0],
                  (Gradient){.values = b_op1(b, "Exit", output_of(w.opened[at].head, 0))});
        at++;
    }
    for (int i = 0, at = w.ny; i < f->constant_count && !b->error; i++) {
        if (!constants[i]) continue;
        if (has(w.found[at].indices))
            collect_rows(s, l, f->constants[i], w.found[at]);
        else if (has(w.found[at].values))
            sum_constant(s, l, f->constants[i], w.found[at].values);
        at++;
    }
}

void loop_backprop(Scope *s, int frame) {
    Backprop *p = s->p;
    Builder *b = &p->b;
    ForwardLoop *f = forward_loop(p, frame);
    if (!f) return;
    size_t count = (size_t)(f->variable_count + f->constant_count);
    bool *dependent = xcalloc(count, 1), *reached = xcalloc(count, 1), *constants = xcalloc(count, 1), any = false;
    LoopGradient l = {.forward = f, .outer = s};
    Scope probe = {.p = p, .parent = s, .frame = frame, .loop = &l};
    for (int i = 0; i < f->constant_count; i++) constants[i] = scope_depends(s, f->constants[i]->inputs[0]);
    find_reached(&probe, s, f, reached);
    find_dependent(&probe, s, f, dependent, constants);
    for (int i = 0; i < f->variable_count; i++) any |= reached[i] = reached[i] && dependent[i];
    if (any) {
        Node *pivot = b->pivot;
        b->scope =
            arena_printf(p->g->arena, "%.*s/%.*s_grad", STR_ARG(p->prefix), STR_ARG(p->frames.frames[frame].name));
        b->device = p->colocate ? f->cond->device : STR("");
        start_loop(s, &l);
        if (!b->error) undo_body(s, &l, reached, constants);
        b->pivot = pivot;
    }
    intmap_clear(&l.values);
    free(dependent);
    free(reached);
    free(constants);
}
