/* backprop.c: units in order of their dependence, gradients added up on the way back.

   A unit is a node of the scope's frame, or a loop inside of it. Units that ys need are listed depth first, so that
   producers come before consumers; the list is then walked from its end, when the gradients of a unit's outputs are
   complete. */
#include "gradients/backprop.h"

#include <stdlib.h>

#include "base/memory.h"
#include "graph/function.h"
#include "gradients/branch.h"

typedef struct Sum {
    Gradient *parts;
    int count;
    size_t capacity;
} Sum;

void scope_add(Scope *s, Output forward, Gradient part) {
    if (s->p->b.error || !has(part.values)) return;
    Sum *sum = intmap_get(&s->sums, output_key(forward));
    if (!sum) {
        sum = arena_calloc(s->p->scratch, 1, sizeof *sum);
        intmap_put(&s->sums, output_key(forward), sum);
    }
    sum->parts = vec_reserve(sum->parts, &sum->capacity, (size_t)sum->count + 1, sizeof *sum->parts);
    sum->parts[sum->count++] = part;
}

bool scope_gradient(Scope *s, Output forward, Gradient *out) {
    Sum *sum = intmap_get(&s->sums, output_key(forward));
    if (!sum) return false;
    sum->parts[0] = gradient_sum(&s->p->b, sum->parts, sum->count);
    sum->count = 1;
    *out = sum->parts[0];
    return true;
}

static void clear_sums(Scope *s) {
    size_t at = 0;
    uint64_t key;
    void *value;
    while (intmap_next(&s->sums, &at, &key, &value)) free(((Sum *)value)->parts);
    intmap_clear(&s->sums);
}

void backprop_mark_forward(Backprop *p, int first) {
    for (int i = first; p->forward_nodes && i < p->g->node_count; i++) intmap_put(p->forward_nodes, (uint64_t)i + 1, p);
}

/* ---- Units ---- */

int backprop_frame(const Backprop *p, const Node *n) {
    if (n->id < p->node_count) return frame_of_output(&p->frames, n);
    intptr_t frame = (intptr_t)intmap_get(&p->frame_of, (uint64_t)n->id + 1);
    return frame ? (int)frame - 1 : 0;
}

/* The unit a node is part of; -1 when it is not inside of the scope's frame. */
static int unit_of(const Scope *s, const Node *n) {
    const Backprop *p = s->p;
    if (n->id >= p->node_count) return -1;
    int frame = p->frames.node_frame[n->id];
    if (frame == s->frame && p->frames.enter_frame[n->id] >= 0) return p->node_count + p->frames.enter_frame[n->id];
    if (frame == s->frame) return n->id;
    while (frame > 0 && p->frames.frames[frame].parent != s->frame) frame = p->frames.frames[frame].parent;
    return frame > 0 ? p->node_count + frame : -1;
}

/* Where a loop's variables come from: the walk of its body ends there. */
static bool is_loop_head(const Scope *s, const Node *n) {
    if (!s->loop) return false;
    return node_is_loop_merge(n) || node_is_loop_switch(n) || node_is_enter(n);
}

/* Input i of a unit; false past the last one. */
static bool unit_input(const Scope *s, int unit, int i, Output *out) {
    const Backprop *p = s->p;
    if (unit < p->node_count) {
        const Node *n = p->g->nodes[unit];
        if (is_loop_head(s, n) || i >= n->input_count) return false;
        *out = n->inputs[i];
        return true;
    }
    const FrameEnters *enters = &p->enters[unit - p->node_count];
    if (i >= enters->count) return false;
    *out = enters->nodes[i]->inputs[0];
    return true;
}

typedef struct Visit {
    int unit, next;
} Visit;

typedef struct Order {
    int *units;
    int count;
} Order;

/* All units that ys need, producers first. */
static Order order_units(const Scope *s, const Output *ys, int ny) {
    size_t total = (size_t)(s->p->node_count + s->p->frames.frame_count);
    Order order = {xcalloc(total, sizeof(int)), 0};
    bool *seen = xcalloc(total, sizeof *seen);
    Visit *stack = xcalloc(total, sizeof *stack);
    for (int i = 0; i < ny; i++) {
        int depth = 0, start = unit_of(s, ys[i].node);
        if (start < 0 || seen[start]) continue;
        seen[start] = true;
        stack[depth++] = (Visit){start, 0};
        while (depth) {
            Visit *top = &stack[depth - 1];
            Output input;
            if (!unit_input(s, top->unit, top->next++, &input)) {
                order.units[order.count++] = top->unit;
                depth--;
                continue;
            }
            int unit = unit_of(s, input.node);
            if (unit < 0 || seen[unit]) continue;
            seen[unit] = true;
            stack[depth++] = (Visit){unit, 0};
        }
    }
    free(seen);
    free(stack);
    return order;
}

bool scope_depends(const Scope *s, Output x) {
    if (intmap_get(&s->xs, output_key(x))) return true;
    if (intmap_get(&s->p->stops, output_key(x))) return false;
    int unit = unit_of(s, x.node);
    return unit >= 0 && s->depends[unit] && (!x.node->info || dtype_is_trainable(output_dtype(x)));
}

static void find_dependent(Scope *s, const Order *order) {
    for (int i = 0; i < order->count; i++) {
        Output input;
        int unit = order->units[i];
        for (int j = 0; !s->depends[unit] && unit_input(s, unit, j, &input); j++)
            s->depends[unit] = scope_depends(s, input);
    }
}

/* ---- Walking back ---- */

static const GradientDef *find_rule(const Backprop *p, const Node *n) {
    const GradientDef *def = strmap_get(&p->rules, n->op);
    if (!def && p->g->functions && function_find(p->g->functions, n->op))
        def = strmap_get(&p->rules, STR("PartitionedCall"));
    return def;
}

static void undo_node(Scope *s, const Node *n) {
    Backprop *p = s->p;
    bool any = false;
    for (int i = 0; !any && i < n->output_count; i++) {
        Output out = {(Node *)n, i};
        any = intmap_get(&s->sums, output_key(out)) && !intmap_get(&p->stops, output_key(out));
    }
    if (!any) return;
    const GradientDef *def = find_rule(p, n);
    if (!def) {
        b_fail(&p->b, error_not_found("No gradient defined for operation '%.*s' (op type: %.*s)", STR_ARG(n->name),
                                      STR_ARG(n->op)));
        return;
    }
    if (!def->add) return;
    p->b.scope = arena_printf(p->g->arena, "%.*s/%.*s_grad", STR_ARG(p->prefix), STR_ARG(n->name));
    p->b.device = p->colocate ? n->device : STR("");
    Rule rule = {s, n, def};
    def->add(&p->b, &rule);
    p->b.error = error_wrap(p->b.error, "Gradient of node '%.*s' (op %.*s)", STR_ARG(n->name), STR_ARG(n->op));
}

/* Lists what ys need, and marks what depends on xs. */
static Order prepare(Scope *s, const Output *ys, int ny, const Output *xs, int nx) {
    s->depends = xcalloc((size_t)(s->p->node_count + s->p->frames.frame_count), sizeof *s->depends);
    for (int i = 0; i < nx; i++) intmap_put(&s->xs, output_key(xs[i]), s);
    Order order = order_units(s, ys, ny);
    find_dependent(s, &order);
    return order;
}

static void finish(Scope *s, Order *order) {
    free(order->units);
    free(s->depends);
    s->depends = NULL;
    clear_sums(s);
    intmap_clear(&s->xs);
}

void scope_find_dependent(Scope *s, const Output *ys, int ny, const Output *xs, int nx, bool *found) {
    Order order = prepare(s, ys, ny, xs, nx);
    for (int i = 0; i < ny; i++) found[i] = scope_depends(s, ys[i]);
    finish(s, &order);
}

void scope_find_needed(Scope *s, const Output *ys, int ny, const Output *xs, int nx, bool *found) {
    Order order = order_units(s, ys, ny);
    bool *listed = xcalloc((size_t)(s->p->node_count + s->p->frames.frame_count), sizeof *listed);
    for (int i = 0; i < order.count; i++) listed[order.units[i]] = true;
    for (int i = 0; i < nx; i++) found[i] = unit_of(s, xs[i].node) >= 0 && listed[unit_of(s, xs[i].node)];
    free(listed);
    free(order.units);
}

void scope_backprop(Scope *s, const Output *ys, const Gradient *given, int ny, const Output *xs, int nx,
                    Gradient *dys) {
    Backprop *p = s->p;
    Order order = prepare(s, ys, ny, xs, nx);
    for (int i = 0; i < ny; i++) scope_add(s, ys[i], given[i]);
    for (int i = order.count - 1; i >= 0 && !p->b.error; i--) {
        int unit = order.units[i];
        if (!s->depends[unit]) continue;
        if (unit >= p->node_count)
            loop_backprop(s, unit - p->node_count);
        else if (!is_loop_head(s, p->g->nodes[unit]))
            undo_node(s, p->g->nodes[unit]);
    }
    p->b.scope = p->prefix;
    for (int i = 0; i < nx; i++)
        if (p->b.error || !scope_gradient(s, xs[i], &dys[i])) dys[i] = (Gradient){0};
    finish(s, &order);
}
