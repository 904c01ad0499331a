/* propagate.c: from a finished node to the nodes it makes ready.

   Two ways. A plan without merges and loops counts down with atomics and takes no lock; a node with a dead input is dead. The general way
   follows TensorFlow's tagged-token rules under the step's mutex: values live in iterations of frames, Enter opens a frame, NextIteration
   goes on to the next iteration (at most parallel_iterations at a time, others wait as next_roots), Exit returns to the parent; a dead Exit is
   delivered when the frame ends, since a later iteration may still produce the value. A Merge fires on its first live input, or when all
   are dead: its pending count starts at 1 + 2 * controls, where the 1 stands for "no live input yet". */
#include <stdlib.h>
#include <string.h>

#include "base/block_cache.h"
#include "base/fingerprint.h"
#include "base/memory.h"
#include "runtime/step_internal.h"

Value value_copy(const Value *v) {
    if (v->ref) resource_ref(&v->ref->base);
    return (Value){tensor_ref(v->tensor), v->ref};
}

void ready_add(ReadyList *list, Item item) {
    if (list->count == list->capacity) {
        ReadyList grown = {.count = list->count, .capacity = list->capacity ? 2 * list->capacity : 32};
        grown.items = block_alloc(grown.capacity * sizeof *grown.items);
        if (!grown.items) abort();
        if (list->count) memcpy(grown.items, list->items, list->count * sizeof *grown.items);
        ready_clear(list);
        *list = grown;
    }
    list->items[list->count++] = item;
}

void ready_clear(ReadyList *list) {
    block_free(list->items, list->capacity * sizeof *list->items);
    *list = (ReadyList){0};
}

/* ---- Frames and iterations ---- */

/* With its slots and counts. */
static size_t iteration_size(const PlanFrame *pf) {
    return sizeof(Iteration) + sizeof(Value) * (size_t)pf->slot_count + 2 * sizeof(int) * (size_t)pf->node_count;
}

static Iteration *iteration_new(FrameState *f, int64_t number) {
    const PlanFrame *pf = f->plan;
    size_t slots = sizeof(Value) * (size_t)pf->slot_count, counts = sizeof(int) * (size_t)pf->node_count;
    char *block = block_zeroed(iteration_size(pf));
    Iteration *it = (Iteration *)block;
    it->frame = f;
    it->number = number;
    it->slots = (Value *)(block + sizeof(Iteration));
    it->pending = (_Atomic int *)(block + sizeof(Iteration) + slots);
    it->dead = (_Atomic int *)(block + sizeof(Iteration) + slots + counts);
    for (int i = 0; i < pf->node_count; i++) atomic_init(&it->pending[i], pf->pending[i]);
    return it;
}

static void iteration_free(Iteration *it) {
    if (!it) return;
    const PlanFrame *pf = it->frame->plan;
    for (int i = 0; i < pf->slot_count; i++) value_clear(&it->slots[i]);
    block_free(it, iteration_size(pf));
}

/* A frame keeps at most parallel_iterations + 1 iterations alive, so a ring indexed by number is enough. */
static Iteration **iteration_at(FrameState *f, int64_t number) {
    return &f->iterations[(size_t)number % f->iteration_capacity];
}

static FrameState *frame_new(Step *step, int plan_index, FrameState *parent, Iteration *parent_iteration, int parallel) {
    FrameState *f = block_zeroed(sizeof *f);
    f->plan = &step->plan->frames[plan_index];
    f->plan_index = plan_index;
    f->parent = parent;
    f->parent_iteration = parent_iteration;
    f->parallel_iterations = parallel;
    f->pending_enters = f->plan->enter_count;
    f->iteration_capacity = (size_t)parallel + 1;
    f->iterations = block_zeroed(f->iteration_capacity * sizeof *f->iterations);
    *iteration_at(f, 0) = iteration_new(f, 0);
    f->outstanding_iterations = 1;
    return f;
}

FrameState *frame_new_root(Step *step) {
    return frame_new(step, 0, NULL, NULL, 1);
}

void frame_free(FrameState *f) {
    if (!f) return;
    for (FrameState *c = f->children; c;) {
        FrameState *next = c->next_child;
        frame_free(c);
        c = next;
    }
    for (size_t i = 0; i < f->iteration_capacity; i++) iteration_free(f->iterations[i]);
    for (size_t i = 0; i < f->next_root_count; i++) value_clear(&f->next_roots[i].value);
    for (size_t i = 0; i < f->invariant_count; i++) value_clear(&f->invariants[i].value);
    block_free(f->iterations, f->iteration_capacity * sizeof *f->iterations);
    free(f->next_roots);
    free(f->invariants);
    free(f->dead_exits);
    block_free(f, sizeof *f);
}

void frame_free_root(Step *step) {
    Iteration **only = &step->root->iterations[0];
    if (*only && !step->plan->has_control_flow && !atomic_load(&step->failed)) { /* every node has taken what was in its slots */
        block_free(*only, iteration_size(step->root->plan));
        *only = NULL;
    }
    frame_free(step->root);
}

/* ---- The simple way ---- */

static void simple_edge(const Plan *plan, Iteration *it, const PlanEdge *e, bool dead, ReadyList *ready) {
    if (e->count >= 0) {
        if (dead) atomic_store_explicit(&it->dead[e->count], 1, memory_order_relaxed);
        if (atomic_fetch_sub_explicit(&it->pending[e->count], 1, memory_order_acq_rel) != 1) return;
        dead = atomic_load_explicit(&it->dead[e->count], memory_order_relaxed);
    }
    ready_add(ready, (Item){e->node, dead && plan->nodes[e->node].kind != KIND_CONTROL_TRIGGER, it});
}

/* Moves the value of an output into the slots of its data consumers. */
static void deliver(const PlanEdge *e, int count, Value *value, Value *slots) {
    if (!count) {
        value_clear(value);
        return;
    }
    for (int i = 1; i < count; i++) slots[e[i].slot] = value_copy(value);
    slots[e[0].slot] = *value;
}

static void propagate_simple(Step *step, Item item, Value *outputs, ReadyList *ready) {
    const Plan *plan = step->plan;
    const PlanNode *n = &plan->nodes[item.node];
    for (int i = 0; i < n->output_count; i++) {
        const PlanEdge *e = plan->edges + n->edge_start[i];
        int count = n->edge_start[i + 1] - n->edge_start[i];
        bool dead = value_is_dead(&outputs[i]);
        deliver(e, count, &outputs[i], item.iteration->slots);
        for (int j = 0; j < count; j++) simple_edge(plan, item.iteration, &e[j], dead, ready);
    }
    const PlanEdge *e = plan->edges + n->edge_start[n->output_count];
    int count = n->edge_start[n->output_count + 1] - n->edge_start[n->output_count];
    for (int j = 0; j < count; j++) simple_edge(plan, item.iteration, &e[j], item.dead, ready);
}

/* ---- The general way; the step's mutex is held in all that follows ---- */

static void make_ready_locked(Iteration *it, int node, bool dead, ReadyList *ready) {
    ready_add(ready, (Item){node, dead, it});
    it->outstanding_nodes++;
}

/* One edge into an iteration. `value` is copied when the destination wants it; a dead value counts as such. A dead Enter makes its Merge dead
   at once, since the other input only comes from a loop that never runs: so a loop on an untaken branch has dead exits. */
static void activate_locked(const Plan *plan, Iteration *it, const PlanEdge *e, const Value *value, bool dead, bool from_enter, ReadyList *ready) {
    const PlanNode *dst = &plan->nodes[e->node];
    _Atomic int *pending = &it->pending[dst->count_index], *dead_count = &it->dead[dst->count_index];
    bool is_ready, is_dead, wants_value = e->slot >= 0 && !dead;
    if (dst->kind == KIND_MERGE) {
        if (e->slot < 0) {
            int left = atomic_fetch_sub(pending, 2) - 2;
            is_dead = atomic_load(dead_count) == dst->input_count;
            is_ready = left == 0 || (left == 1 && is_dead);
        } else if (!dead) {
            int left = atomic_load(pending);
            wants_value = left & 1;
            if (wants_value) atomic_store(pending, left & ~1);
            is_dead = false;
            is_ready = left == 1;
        } else {
            is_dead = atomic_fetch_add(dead_count, 1) + 1 == dst->input_count || from_enter;
            is_ready = atomic_load(pending) == 1 && is_dead;
        }
    } else {
        if (dead) atomic_fetch_add(dead_count, 1);
        is_dead = atomic_load(dead_count) > 0;
        is_ready = atomic_fetch_sub(pending, 1) == 1;
    }
    if (wants_value) {
        value_clear(&it->slots[e->slot]);
        it->slots[e->slot] = value_copy(value);
    }
    if (is_ready) make_ready_locked(it, e->node, is_dead && dst->kind != KIND_CONTROL_TRIGGER, ready);
}

static void activate_all_locked(const Plan *plan, int node, bool dead, const Value *outputs, Iteration *it, ReadyList *ready) {
    const PlanNode *n = &plan->nodes[node];
    for (int i = 0; i <= n->output_count; i++) {
        bool control = i == n->output_count;
        for (int j = n->edge_start[i]; j < n->edge_start[i + 1]; j++) {
            bool edge_dead = control || !outputs ? dead : dead || value_is_dead(&outputs[i]);
            activate_locked(plan, it, &plan->edges[j], control || !outputs ? NULL : &outputs[i], edge_dead, n->kind == KIND_ENTER, ready);
        }
    }
}

static void increment_iteration_locked(const Plan *plan, FrameState *f, ReadyList *ready) {
    f->iteration_count++;
    Iteration *it = iteration_new(f, f->iteration_count);
    *iteration_at(f, f->iteration_count) = it;
    f->outstanding_iterations++;
    f->dead_exit_count = 0;
    for (size_t i = 0; i < f->next_root_count; i++) {
        activate_all_locked(plan, f->next_roots[i].node, value_is_dead(&f->next_roots[i].value), &f->next_roots[i].value, it, ready);
        value_clear(&f->next_roots[i].value);
    }
    f->next_root_count = 0;
    for (size_t i = 0; i < f->invariant_count; i++)
        activate_all_locked(plan, f->invariants[i].node, value_is_dead(&f->invariants[i].value), &f->invariants[i].value, it, ready);
}

static bool iteration_is_done_locked(FrameState *f, int64_t number) {
    Iteration *it = *iteration_at(f, number);
    if (!it || it->number != number || it->outstanding_nodes || it->outstanding_frames) return false;
    if (number == 0) return f->pending_enters == 0;
    Iteration *before = *iteration_at(f, number - 1);
    return !before || before->number != number - 1;
}

/* Drops finished iterations from `number` on; true when the frame is finished. */
static bool clean_iterations_locked(const Plan *plan, FrameState *f, int64_t number, ReadyList *ready) {
    for (; number <= f->iteration_count && iteration_is_done_locked(f, number); number++) {
        iteration_free(*iteration_at(f, number));
        *iteration_at(f, number) = NULL;
        f->outstanding_iterations--;
        if (f->next_root_count) increment_iteration_locked(plan, f, ready);
    }
    return f->pending_enters == 0 && f->outstanding_iterations == 0;
}

/* A frame ended: its dead exits reach the parent, which may end in turn. */
static void finish_frame_locked(Step *step, FrameState *f, ReadyList *ready) {
    while (f->parent) {
        FrameState *parent = f->parent;
        Iteration *it = f->parent_iteration;
        for (size_t i = 0; i < f->dead_exit_count; i++) activate_all_locked(step->plan, f->dead_exits[i], true, NULL, it, ready);
        FrameState **link = &parent->children;
        while (*link != f) link = &(*link)->next_child;
        *link = f->next_child;
        f->children = NULL;
        frame_free(f);
        it->outstanding_frames--;
        if (!clean_iterations_locked(step->plan, parent, it->number, ready)) return;
        f = parent;
    }
}

static FrameState *find_child_locked(Step *step, Iteration *it, const PlanNode *enter, ReadyList *ready) {
    (void)ready;
    FrameState *parent = it->frame;
    for (FrameState *c = parent->children; c; c = c->next_child)
        if (c->plan_index == enter->child_frame && c->parent_iteration == it) return c;
    FrameState *f = frame_new(step, enter->child_frame, parent, it, enter->parallel_iterations);
    f->id = hash64_combine(parent->id, hash64_combine((uint64_t)it->number, hash64(f->plan->name)));
    f->next_child = parent->children;
    parent->children = f;
    it->outstanding_frames++;
    return f;
}

static void enter_locked(Step *step, Item item, Value *output, ReadyList *ready) {
    const PlanNode *n = &step->plan->nodes[item.node];
    FrameState *f = find_child_locked(step, item.iteration, n, ready);
    if (n->is_constant_enter) {
        f->invariants = vec_reserve(f->invariants, &f->invariant_capacity, f->invariant_count + 1, sizeof *f->invariants);
        f->invariants[f->invariant_count].node = item.node;
        f->invariants[f->invariant_count++].value = value_copy(output);
        for (int64_t i = 0; i <= f->iteration_count; i++) {
            Iteration *it = *iteration_at(f, i);
            if (it && it->number == i) activate_all_locked(step->plan, item.node, item.dead, output, it, ready);
        }
    } else {
        activate_all_locked(step->plan, item.node, item.dead, output, *iteration_at(f, 0), ready);
    }
    f->pending_enters--;
    /* All that entered may be dead and done already. */
    if (f->pending_enters == 0 && clean_iterations_locked(step->plan, f, 0, ready)) finish_frame_locked(step, f, ready);
}

static void next_iteration_locked(Step *step, Item item, Value *output, ReadyList *ready) {
    if (item.dead) return; /* deadness stops here, or the loop would never end */
    FrameState *f = item.iteration->frame;
    if (f->iteration_count == item.iteration->number && f->outstanding_iterations == f->parallel_iterations) {
        f->next_roots = vec_reserve(f->next_roots, &f->next_root_capacity, f->next_root_count + 1, sizeof *f->next_roots);
        f->next_roots[f->next_root_count].node = item.node;
        f->next_roots[f->next_root_count++].value = value_copy(output);
        return;
    }
    if (f->iteration_count == item.iteration->number) increment_iteration_locked(step->plan, f, ready);
    activate_all_locked(step->plan, item.node, false, output, *iteration_at(f, item.iteration->number + 1), ready);
}

static void exit_locked(Step *step, Item item, Value *output, ReadyList *ready) {
    FrameState *f = item.iteration->frame;
    if (!item.dead) {
        activate_all_locked(step->plan, item.node, false, output, f->parent_iteration, ready);
        return;
    }
    if (item.iteration->number != f->iteration_count) return;
    f->dead_exits = vec_reserve(f->dead_exits, &f->dead_exit_capacity, f->dead_exit_count + 1, sizeof *f->dead_exits);
    f->dead_exits[f->dead_exit_count++] = item.node;
}

static void propagate_general(Step *step, Item item, Value *outputs, ReadyList *ready) {
    const PlanNode *n = &step->plan->nodes[item.node];
    FrameState *f = item.iteration->frame;
    int64_t number = item.iteration->number;
    pthread_mutex_lock(&step->mutex);
    switch (n->kind) {
        case KIND_ENTER: enter_locked(step, item, outputs, ready); break;
        case KIND_EXIT: exit_locked(step, item, outputs, ready); break;
        case KIND_NEXT_ITERATION: next_iteration_locked(step, item, outputs, ready); break;
        default: activate_all_locked(step->plan, item.node, item.dead, outputs, item.iteration, ready);
    }
    if (--item.iteration->outstanding_nodes == 0 && clean_iterations_locked(step->plan, f, number, ready))
        finish_frame_locked(step, f, ready);
    pthread_mutex_unlock(&step->mutex);
}

void propagate(Step *step, Item item, Value *outputs, ReadyList *ready) {
    if (!step->plan->has_control_flow) {
        propagate_simple(step, item, outputs, ready);
        return;
    }
    propagate_general(step, item, outputs, ready);
    const PlanNode *n = &step->plan->nodes[item.node];
    for (int i = 0; i < n->output_count; i++) value_clear(&outputs[i]);
}
