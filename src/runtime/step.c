/* step.c: runs the nodes of a plan as they become ready.

   A worker loop takes a ready node, runs its kernel, hands on the outputs and goes on with what became ready: cheap nodes in the same
   thread, expensive ones spread over the pool. A kernel that must wait defers; its completion comes back as a task of the pool. After the first error
   nothing more is run; the step ends when everything in flight has come back. */
#include "runtime/step.h"

#include <stdlib.h>
#include <string.h>

#include "base/before_long.h"
#include "base/block_cache.h"
#include "base/clock.h"
#include "base/float_mode.h"
#include "base/memory.h"
#include "base/spin.h"
#include "runtime/node_trace.h"
#include "runtime/step_internal.h"

enum {
    INLINE_ARGS = 8,
    LENT_NS = 2000000,
    LONG_NS = 10000, /* a kernel that takes longer keeps nobody's messages waiting */
    LOOK_AT_CLOCK = 64,
    WORTH_SHARING_NS = 20000, /* a node that takes less is done before another thread has it */
    BRIEF_NS = 30000,         /* a kernel that takes less is done before another thread was woken and has helped */
    LINGER_NS = 100000,
};

/* A kernel in the middle of its run: its context and the values it works on. On the stack, or on the heap once deferred. */
typedef struct Running {
    KernelContext k; /* first: kernel_defer gets from one to the other */
    Step *step;
    Item item;
    struct Running *moved_to; /* set when deferred */
    Error *result;            /* of a deferred kernel */
    int64_t scheduled_ns, start_ns;
    Value *inputs;
    void *arrays; /* one allocation for all arrays, or NULL when they are in room */
    Value room_inputs[INLINE_ARGS];
    Tensor *room_tensors[2 * INLINE_ARGS];
    Variable *room_refs[2 * INLINE_ARGS];
    struct Running *next; /* list of completions */
} Running;

/* What one thread works on right now. */
typedef struct Worklist {
    Step *step;
    ReadyList queue;
    size_t head;
    Running *completed; /* deferred kernels that ended while this thread was inside them */
    int64_t lent_until; /* the thread is whoever's that started the step: back by then (monotonic ns); 0: it is the pool's */
    unsigned taken;     /* nodes, to look at the clock now and then */
    bool aside;         /* the thread is another step's: only for what is soon done */
    int64_t let_go_ns;  /* when what was kept was last sent and woken; 0: not yet */
} Worklist;

static _Thread_local Worklist *current;
static _Thread_local bool is_lent;      /* between step_lend_begin and step_lend_end */
static _Thread_local Running *lent_to; /* what ended meanwhile */
static _Thread_local int working;      /* calls of work that this thread is inside of */
static _Thread_local Running *woken;   /* nodes of other steps that ended meanwhile: this thread goes on with them, or the pool does */

/* Room for inputs, which gather_inputs fills, and empty outputs. */
static void point_arrays(Running *r, int inputs, int outputs) {
    if (inputs > INLINE_ARGS || outputs > INLINE_ARGS) {
        size_t pointers = 2 * (size_t)(inputs + outputs);
        r->arrays = xcalloc(1, sizeof(Value) * (size_t)inputs + sizeof(void *) * pointers);
        r->inputs = r->arrays;
        r->k.in = (Tensor **)(r->inputs + inputs);
        r->k.ref = (Variable **)(r->k.in + inputs);
        r->k.out = (Tensor **)(r->k.ref + inputs);
        r->k.out_ref = (Variable **)(r->k.out + outputs);
        return;
    }
    r->arrays = NULL;
    r->inputs = r->room_inputs;
    r->k.in = r->room_tensors;
    r->k.out = r->room_tensors + INLINE_ARGS;
    r->k.ref = r->room_refs;
    r->k.out_ref = r->room_refs + INLINE_ARGS;
    r->k.out[0] = NULL;
    r->k.out_ref[0] = NULL;
    for (int i = 1; i < outputs; i++) {
        r->k.out[i] = NULL;
        r->k.out_ref[i] = NULL;
    }
}

KernelContext *kernel_defer(KernelContext *k) {
    Running *r = (Running *)k;
    Running *heap = block_zeroed(sizeof *heap);
    *heap = *r;
    if (!r->arrays) {
        heap->inputs = heap->room_inputs;
        heap->k.in = heap->room_tensors;
        heap->k.out = heap->room_tensors + INLINE_ARGS;
        heap->k.ref = heap->room_refs;
        heap->k.out_ref = heap->room_refs + INLINE_ARGS;
    }
    r->moved_to = heap;
    atomic_fetch_add_explicit(&r->step->deferred, 1, memory_order_relaxed);
    return &heap->k;
}

const StepIo *kernel_step_io(KernelContext *k) {
    return &((Running *)k)->step->io;
}

/* ---- One node ---- */

/* Input i comes from a variable: the node wants the variable or its value. */
static Error *gather_ref(Running *r, const PlanNode *n, int i) {
    Value *v = &r->inputs[i];
    if (dtype_is_ref(n->node->input_types[i])) {
        r->k.ref[i] = v->ref;
        return NULL;
    }
    v->tensor = variable_read(v->ref);
    if (v->tensor || (n->node->info->flags & OP_UNINITIALIZED_INPUT)) return NULL;
    return error_new(CODE_FAILED_PRECONDITION, "Attempting to use uninitialized value %s", v->ref->name);
}

static Error *gather_inputs(Running *r, const PlanNode *n) {
    Value *slots = r->item.iteration->slots + n->slot;
    Error *err = NULL;
    for (int i = 0; i < n->input_count; i++) {
        Value *v = &r->inputs[i];
        r->k.ref[i] = NULL;
        if (n->constants && n->constants[i]) { /* the plan's: nothing to give back */
            *v = (Value){0};
            r->k.in[i] = n->constants[i];
            continue;
        }
        *v = slots[i];
        slots[i] = (Value){0};
        if (v->ref && !err) err = gather_ref(r, n, i);
        r->k.in[i] = v->tensor;
    }
    return err;
}

static void clear_running(Running *r) {
    for (int i = 0; i < r->k.input_count; i++) value_clear(&r->inputs[i]);
    for (int i = 0; i < r->k.output_count; i++) {
        tensor_unref(r->k.out[i]);
        if (r->k.out_ref[i]) resource_unref(&r->k.out_ref[i]->base);
    }
    free(r->arrays);
}

static void record(Running *r) {
    const PlanNode *n = &r->step->plan->nodes[r->item.node];
    NodeTiming t = {.device = str_of(n->device->name), .scheduled_ns = r->scheduled_ns, .start_ns = r->start_ns, .end_ns = clock_wall_ns()};
    node_trace_add(r->step->context->stats, &r->k, t);
}

/* The kernel has run: outputs travel on, or the step fails. */
static void finish_node(Running *r, Error *err, ReadyList *ready) {
    Step *step = r->step;
    const PlanNode *n = &step->plan->nodes[r->item.node];
    if (!err && r->k.error) {
        err = r->k.error;
    } else {
        error_free(r->k.error);
    }
    r->k.error = NULL;
    if (step->context->stats) record(r);
    for (int i = 0; !err && !(n->def->flags & KERNEL_SKIPS) && i < n->output_count; i++)
        if (!r->k.out[i] && !r->k.out_ref[i]) err = error_internal("Missing %d-th output from {{node %.*s}}", i, STR_ARG(n->node->name));
    if (err) {
        step_fail(step, error_append(err, "\n\t [[{{node %.*s}}]]", STR_ARG(r->k.node->name)));
        return;
    }
    if (atomic_load_explicit(&step->failed, memory_order_relaxed)) return;
    Value room[INLINE_ARGS];
    Value *outputs = n->output_count > INLINE_ARGS ? xmalloc(sizeof *outputs * (size_t)n->output_count) : room;
    for (int i = 0; i < n->output_count; i++) {
        outputs[i] = (Value){r->k.out[i], r->k.out_ref[i]};
        if (outputs[i].ref && outputs[i].tensor) { /* a reference is all that is needed */
            tensor_unref(outputs[i].tensor);
            outputs[i].tensor = NULL;
        }
        r->k.out[i] = NULL;
        r->k.out_ref[i] = NULL;
    }
    /* Inputs go before the outputs travel on, so that a consumer may find itself the only holder. */
    for (int i = 0; i < r->k.input_count; i++) value_clear(&r->inputs[i]);
    r->k.input_count = 0;
    propagate(step, r->item, outputs, ready);
    if (outputs != room) free(outputs);
}

static void propagate_dead(Step *step, Item item, ReadyList *ready) {
    const PlanNode *n = &step->plan->nodes[item.node];
    Value *slots = item.iteration->slots + n->slot;
    for (int i = 0; i < n->input_count; i++) value_clear(&slots[i]);
    Value room[INLINE_ARGS] = {0};
    Value *outputs = n->output_count > INLINE_ARGS ? xcalloc((size_t)n->output_count, sizeof *outputs) : room;
    propagate(step, item, outputs, ready);
    if (outputs != room) free(outputs);
}

static void run_const(Step *step, Item item, const PlanNode *n, ReadyList *ready) {
    Value output = {tensor_ref(n->constant), NULL};
    propagate(step, item, &output, ready);
}

static void step_unref(Step *step) {
    if (!refcount_dec(&step->refs)) return;
    pthread_mutex_destroy(&step->mutex);
    ready_clear(&step->shared);
    block_free(step, sizeof *step);
}

static void finish_step(Step *step) {
    cancel_unwatch(step->context->cancel, &step->watch);
    step_blame_canceller(step);
    StepDone *done = step->done;
    void *arg = step->done_arg;
    Error *err = step->error;
    frame_free_root(step);
    done(arg, err);
    atomic_store_explicit(&step->finished, true, memory_order_release);
    step_unref(step);
}

/* Kernels that may be worth another thread are timed: the same op may take a microsecond or a second. */
static Error *run_timed(const PlanNode *n, KernelContext *k) {
    int before = atomic_load_explicit(n->cost, memory_order_relaxed);
    if (before < 0 || before >= LONG_NS) before_long();
    threadpool_brief(before >= 0 && before < BRIEF_NS);
    int64_t start = clock_mono_ns();
    Error *err = n->run(k);
    threadpool_brief(false);
    int64_t took = clock_mono_ns() - start;
    int now = (int)(took < INT32_MAX ? took : INT32_MAX);
    /* Slowly up, at once down: a thread that had to wait for its core says nothing of the kernel. */
    atomic_store_explicit(n->cost, before < 0 || now < before ? now : before + (now - before) / 8, memory_order_relaxed);
    return err;
}

static bool is_worth_sharing(const Plan *plan, int node) {
    const PlanNode *n = &plan->nodes[node];
    if (!n->expensive) return false;
    int cost = atomic_load_explicit(n->cost, memory_order_relaxed);
    return cost < 0 || cost >= WORTH_SHARING_NS;
}

/* Field by field: cleared as a whole it would cost more than many a kernel. The arrays are pointed to by point_arrays. */
static void start_context(KernelContext *k, const Step *step, const PlanNode *n, Item item) {
    k->node = n->node;
    k->state = n->kind == KIND_CONST ? n->constant : n->state;
    k->input_count = n->input_count;
    k->output_count = n->output_count;
    k->step = step->context;
    k->device = n->device;
    k->pool = step->context->pool;
    k->dead = item.dead;
    k->frame_id = item.iteration->frame->id;
    k->iteration = item.iteration->number;
    k->loop = NULL;
    k->tail = NULL;
    k->output_limit = 0;
    k->error = NULL;
}

/* Runs one item; false when it deferred and stays in flight. */
static bool run_item(Step *step, Item item, ReadyList *ready) {
    const PlanNode *n = &step->plan->nodes[item.node];
    if (atomic_load_explicit(&step->failed, memory_order_relaxed)) return true;
    if (item.dead && !(n->def->flags & KERNEL_RUNS_DEAD)) {
        propagate_dead(step, item, ready);
        return true;
    }
    if (n->kind == KIND_CONST && !step->context->stats) {
        run_const(step, item, n, ready);
        return true;
    }
    Running r;
    start_context(&r.k, step, n, item);
    r.step = step;
    r.item = item;
    r.moved_to = NULL;
    r.result = NULL;
    r.start_ns = r.scheduled_ns = step->context->stats ? clock_wall_ns() : 0;
    point_arrays(&r, n->input_count, n->output_count);
    Error *err = gather_inputs(&r, n);
    if (!err && n->kind == KIND_CONST)
        r.k.out[0] = tensor_ref(n->constant);
    else if (!err)
        err = n->expensive ? run_timed(n, &r.k) : n->run(&r.k);
    if (r.moved_to) return false;
    finish_node(&r, err, ready);
    clear_running(&r);
    return true;
}

/* ---- Threads ---- */

static void work(Worklist *list);

static bool take_shared(Step *step, Item *out) {
    pthread_mutex_lock(&step->mutex);
    bool any = step->shared_head < step->shared.count;
    if (any) *out = step->shared.items[step->shared_head++];
    if (step->shared_head == step->shared.count) step->shared_head = step->shared.count = 0;
    atomic_store_explicit(&step->shared_left, step->shared.count - step->shared_head, memory_order_relaxed);
    pthread_mutex_unlock(&step->mutex);
    return any;
}

static void run_shared_item(Step *step, Item item, int64_t lent_until) {
    Worklist list = {.step = step, .lent_until = lent_until};
    ready_add(&list.queue, item);
    work(&list);
}

/* A task of the pool; the item may be gone. */
static void run_shared(void *arg) {
    Step *step = arg;
    Item item;
    if (take_shared(step, &item)) run_shared_item(step, item, 0);
    step_unref(step);
}

static void share_item(Step *step, Item item) {
    refcount_inc(&step->refs);
    pthread_mutex_lock(&step->mutex);
    ready_add(&step->shared, item);
    atomic_store_explicit(&step->shared_left, step->shared.count - step->shared_head, memory_order_relaxed);
    pthread_mutex_unlock(&step->mutex);
    threadpool_post(step->context->pool, run_shared, step);
}

static void run_completed(void *arg) {
    Running *r = arg;
    Worklist list = {.step = r->step, .completed = r};
    work(&list);
}

/* Takes those of one step out of a list of completions that is not empty, oldest first. */
static Running *of_one_step(Running **all) {
    Running *kept = NULL, **at = all;
    const Step *step = (*all)->step;
    while (*at) {
        Running *r = *at;
        if (r->step != step) {
            at = &r->next;
            continue;
        }
        *at = r->next;
        r->next = kept;
        kept = r;
    }
    return kept;
}

static void post_completed(Running *all) {
    while (all) {
        Running *kept = of_one_step(&all);
        threadpool_post(kept->step->context->pool, run_completed, kept);
    }
}

static void post_woken(void) {
    Running *all = woken;
    woken = NULL;
    post_completed(all);
}

void kernel_done(KernelContext *k, Error *err) {
    Running *r = (Running *)k;
    r->result = err;
    r->next = NULL;
    atomic_fetch_sub_explicit(&r->step->deferred, 1, memory_order_relaxed);
    if (current && current->step == r->step) {
        r->next = current->completed;
        current->completed = r;
        return;
    }
    if (is_lent && !current) {
        r->next = lent_to;
        lent_to = r;
        return;
    }
    if (working) {
        r->next = woken;
        woken = r;
        return;
    }
    threadpool_post(r->step->context->pool, run_completed, r);
}

void step_lend_begin(void) {
    is_lent = true;
}

void step_lend_end(void) {
    Running *all = lent_to;
    is_lent = false;
    lent_to = NULL;
    if (!all) return;
    Running *kept = of_one_step(&all);
    post_completed(all);
    run_completed(kept);
}

/* Keeps what this thread will do itself, shares other expensive nodes. */
static void spread(Worklist *list, size_t from) {
    const Plan *plan = list->step->plan;
    bool busy = false; /* an expensive node is already kept here */
    size_t kept = from;
    if (threadpool_size(list->step->context->pool) == 1) return; /* nobody else to do it */
    bool looked = false;
    for (size_t i = from; i < list->queue.count; i++) {
        Item item = list->queue.items[i];
        bool expensive = !item.dead && is_worth_sharing(plan, item.node);
        for (size_t j = list->head; expensive && !looked && j < from; j++) busy |= is_worth_sharing(plan, list->queue.items[j].node);
        looked |= expensive;
        if (expensive && busy) {
            share_item(list->step, item);
            continue;
        }
        busy |= expensive;
        list->queue.items[kept++] = item;
    }
    list->queue.count = kept;
}

/* Cheap nodes first, so that what they make ready can go to other threads before this one is busy. */
static Item take(Worklist *list) {
    const Plan *plan = list->step->plan;
    size_t best = list->head;
    size_t limit = list->queue.count < list->head + 8 ? list->queue.count : list->head + 8;
    while (best < limit && plan->nodes[list->queue.items[best].node].expensive) best++;
    if (best == limit) best = list->head;
    Item item = list->queue.items[best];
    list->queue.items[best] = list->queue.items[list->head++];
    if (list->head == list->queue.count) list->head = list->queue.count = 0;
    return item;
}

static void run_list(void *arg) {
    Worklist *list = arg;
    work(list);
    block_free(list, sizeof *list);
}

/* Who starts a step also has to watch its deadline: after a while the rest goes to the pool. So does what takes long when the thread has another step: there
 * every node is looked at. */
static bool must_give_back(Worklist *list) {
    int64_t now = clock_mono_ns();
    if (!list->let_go_ns) list->let_go_ns = now;
    if (now - list->let_go_ns >= LONG_NS) {
        before_long();
        post_woken();
        list->let_go_ns = now;
    }
    if (list->aside) list->taken |= LOOK_AT_CLOCK - 1;
    if (list->aside && !list->completed && is_worth_sharing(list->step->plan, list->queue.items[list->head].node)) return true;
    return list->lent_until && now >= list->lent_until;
}

static bool give_back(Worklist *list) {
    if (!must_give_back(list)) return false;
    post_woken();
    Worklist *rest = block_zeroed(sizeof *rest);
    *rest = *list;
    rest->lent_until = 0;
    rest->aside = false;
    threadpool_post(list->step->context->pool, run_list, rest);
    return true;
}

static void work_on(Worklist *list) {
    Worklist *outer = current;
    current = list;
    bool gone = false;
    while (!gone && (list->head < list->queue.count || list->completed)) {
        if (++list->taken % LOOK_AT_CLOCK == 0 && give_back(list)) {
            current = outer;
            return;
        }
        size_t before;
        Step *step = list->step;
        if (list->completed) {
            Running *r = list->completed;
            list->completed = r->next;
            before = list->queue.count;
            finish_node(r, r->result, &list->queue);
            clear_running(r);
            block_free(r, sizeof *r);
        } else {
            Item item = take(list);
            before = list->queue.count;
            if (step->plan->nodes[item.node].expensive) {
                list->taken |= LOOK_AT_CLOCK - 1; /* time may have passed */
                if (woken && is_worth_sharing(step->plan, item.node)) post_woken();
            }
            if (!run_item(step, item, &list->queue)) continue;
        }
        int64_t more = (int64_t)(list->queue.count - before) - 1; /* what it made ready, less itself */
        if (more > 0) {
            atomic_fetch_add(&step->in_flight, more);
            spread(list, before);
        }
        if (more >= 0 || atomic_fetch_sub(&step->in_flight, 1) != 1) continue;
        gone = true;
        list->step = NULL;
        current = outer;
        finish_step(step);
    }
    current = outer;
    ready_clear(&list->queue);
}

/* What kernels of this step let go on in other steps is done after it: sooner than another thread could be woken. A client's own thread gets its way of
 * computing back. */
static void work(Worklist *list) {
    FloatMode before = float_mode_flush();
    int64_t lent_until = list->lent_until;
    working++;
    work_on(list);
    while (working == 1 && woken) {
        Running *kept = of_one_step(&woken);
        Worklist other = {.step = kept->step, .completed = kept, .lent_until = lent_until, .aside = true, .taken = LOOK_AT_CLOCK - 1};
        work_on(&other);
    }
    working--;
    float_mode_restore(before);
}

/* Who started the step will wait for its end: while others are at it, what they share is done here, and the end is seen sooner than one who
 * sleeps could be woken. Not while a node waits for a message or another step: to read messages may be this thread's work. */
static void linger(Step *step, int64_t lent_until) {
    Spin spin = spin_for(LINGER_NS);
    Item item;
    while (!atomic_load_explicit(&step->finished, memory_order_acquire) && !atomic_load_explicit(&step->deferred, memory_order_relaxed) &&
           clock_mono_ns() < lent_until) {
        if (atomic_load_explicit(&step->shared_left, memory_order_relaxed) && take_shared(step, &item)) {
            run_shared_item(step, item, lent_until);
            spin = spin_for(LINGER_NS);
        } else if (!spin_on(&spin)) {
            return;
        }
    }
}

void step_start(const Plan *plan, StepContext *context, const StepIo *io, StepDone *done, void *arg) {
    Step *step = block_zeroed(sizeof *step);
    step->plan = plan;
    step->context = context;
    if (io) step->io = *io;
    step->done = done;
    step->done_arg = arg;
    pthread_mutex_init(&step->mutex, NULL);
    refcount_init(&step->refs);
    step->root = frame_new_root(step);
    Worklist list = {.step = step, .lent_until = clock_mono_ns() + LENT_NS};
    Iteration *root = step->root->iterations[0];
    int root_count = plan->root_count + (context->stats ? plan->constant_count : 0);
    for (int i = 0; i < root_count; i++) ready_add(&list.queue, (Item){plan->roots[i], false, root});
    root->outstanding_nodes = root_count;
    atomic_init(&step->in_flight, (int64_t)list.queue.count);
    if (!cancel_watch(context->cancel, &step->watch, step_cancelled, step)) step_cancelled(step);
    if (list.queue.count == 0) {
        finish_step(step);
        return;
    }
    ThreadPool *pool = context->pool;
    int64_t lent_until = list.lent_until;
    bool entered = threadpool_enter(pool);
    refcount_inc(&step->refs);
    spread(&list, 0);
    if (list.queue.count) work(&list);
    if (entered) {
        FloatMode before = float_mode_flush();
        before_long();
        linger(step, lent_until);
        float_mode_restore(before);
    }
    step_unref(step);
    if (entered) threadpool_leave(pool);
}
