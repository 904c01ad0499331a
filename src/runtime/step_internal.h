/* step_internal.h: what step.c, step_failure.c and propagate.c share. */
#pragma once
#include <pthread.h>
#include <stdatomic.h>

#include "base/refcount.h"
#include "runtime/step.h"

/* What travels along a data edge: a tensor, or a reference to a variable. Neither: dead. */
typedef struct Value {
    Tensor *tensor;
    Variable *ref;
} Value;

static inline bool value_is_dead(const Value *v) {
    return !v->tensor && !v->ref;
}
static inline void value_clear(Value *v) {
    if (v->tensor) tensor_unref(v->tensor);
    if (v->ref) resource_unref(&v->ref->base);
    *v = (Value){0};
}
Value value_copy(const Value *v); /* with its own references */

typedef struct FrameState FrameState;

/* The counts and values of one iteration of a frame; the root frame has exactly one. */
typedef struct Iteration {
    FrameState *frame;
    int64_t number;
    Value *slots;
    _Atomic int *pending; /* by count_index */
    _Atomic int *dead;    /* dead inputs seen, by count_index */
    int64_t outstanding_nodes;  /* general propagator: ready or running here */
    int64_t outstanding_frames; /* child frames that are not finished */
} Iteration;

/* A node ready to run. */
typedef struct Item {
    int node;
    bool dead; /* has a dead input: its outputs are dead without running it */
    Iteration *iteration;
} Item;

typedef struct ReadyList {
    Item *items;
    size_t count, capacity;
} ReadyList;
void ready_add(ReadyList *list, Item item);
void ready_clear(ReadyList *list);

struct FrameState {
    const PlanFrame *plan;
    int plan_index;
    FrameState *parent;
    Iteration *parent_iteration;
    uint64_t id; /* the same in every task that runs a part of the loop */
    int parallel_iterations;
    int pending_enters; /* Enter nodes that have not arrived */
    Iteration **iterations; /* by number - first_kept; NULL when done */
    size_t iteration_capacity;
    int64_t iteration_count; /* number of the newest */
    int outstanding_iterations;
    struct {
        int node;
        Value value;
    } *next_roots, *invariants; /* NextIteration values that wait for room; constant Enter values */
    size_t next_root_count, next_root_capacity, invariant_count, invariant_capacity;
    int *dead_exits;
    size_t dead_exit_count, dead_exit_capacity;
    FrameState *next_child; /* list of the parent's children */
    FrameState *children;
};

typedef struct Step {
    const Plan *plan;
    StepContext *context;
    StepIo io;
    StepDone *done;
    void *done_arg;
    _Atomic int64_t in_flight; /* items queued or running */
    _Atomic bool failed;
    CancelWatch watch;
    pthread_mutex_t mutex; /* guards what follows, and all frames of the general propagator */
    Error *error;
    ReadyList shared; /* items for any thread that comes by */
    size_t shared_head;
    _Atomic size_t shared_left; /* items in it; written with the mutex held */
    _Atomic int64_t deferred; /* nodes that wait for their kernel_done */
    FrameState *root;
    RefCount refs;         /* of this struct: the step itself, tasks of the pool that look at `shared`, and who started it */
    _Atomic bool finished; /* done was called */
} Step;

/* propagate.c */
FrameState *frame_new_root(Step *step);
void frame_free(FrameState *f); /* with its children and what they still hold */
void frame_free_root(Step *step); /* the same */
/* Hands the outputs of a finished item to their consumers (taking the values) and lists what became ready. */
void propagate(Step *step, Item item, Value *outputs, ReadyList *ready);

/* step_failure.c */
void step_fail(Step *step, Error *err); /* takes err. Nothing more is run */
void step_cancelled(void *step);        /* somebody outside cancelled it */
void step_blame_canceller(Step *step);  /* before its end is told */
