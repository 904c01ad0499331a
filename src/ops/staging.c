/* staging.c: Stage, Unstage, StagePeek, StageSize, StageClear: tuples handed from step to step. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "ops/element_store.h"
#include "ops/op_list.h"
#include "ops/wait_room.h"

const OpDef staging_ops[] = {
    {"Stage", "values: dtypes ->",
     "capacity: int >= 0 = 0; memory_limit: int >= 0 = 0; dtypes: list(type) >= 1; container: string = ''; "
     "shared_name: string = ''",
     OP_STATEFUL},
    {"Unstage", "-> values: dtypes",
     "capacity: int >= 0 = 0; memory_limit: int >= 0 = 0; dtypes: list(type) >= 1; container: string = ''; "
     "shared_name: string = ''",
     OP_STATEFUL},
    {"StagePeek", "index: int32 -> values: dtypes",
     "capacity: int >= 0 = 0; memory_limit: int >= 0 = 0; dtypes: list(type) >= 1; container: string = ''; "
     "shared_name: string = ''",
     OP_STATEFUL},
    {"StageSize", "-> size: int32",
     "capacity: int >= 0 = 0; memory_limit: int >= 0 = 0; dtypes: list(type); container: string = ''; shared_name: "
     "string = ''",
     OP_STATEFUL},
    {"StageClear", "->",
     "capacity: int >= 0 = 0; memory_limit: int >= 0 = 0; dtypes: list(type); container: string = ''; shared_name: "
     "string = ''",
     OP_STATEFUL},
    {0},
};

typedef struct StagingArea {
    Resource base;
    WaitRoom room; /* its mutex guards what follows */
    ElementStore store;
    int64_t capacity, memory_limit; /* 0: none */
    int64_t bytes;
} StagingArea;

enum { LINE_PUT, LINE_GET, LINE_PEEK };

static void destroy(Resource *r) {
    StagingArea *a = (StagingArea *)r;
    element_store_clear(&a->store);
    wait_room_clear(&a->room);
    free(a);
}

static void abandon(Resource *r) {
    StagingArea *a = (StagingArea *)r;
    for (int line = 0; line < WAIT_ROOM_LINES; line++) {
        wait_room_lock(&a->room);
        wait_room_cancel_line_unlock(&a->room, line);
    }
}

static const ResourceType staging_type = {
    .type_name = "N10tensorflow12_GLOBAL__N_16BufferE", .what = "staging area", .destroy = destroy, .cancel = abandon};

/* All ops of one area name it by their attributes; the first one that runs makes it. */
typedef struct StageState {
    char *container, *name;
    int64_t capacity, memory_limit;
} StageState;

static Error *init_stage(const Node *node, void *state) {
    StageState *s = state;
    Str container, name;
    Error *err = node_attr_string(node, "container", &container);
    if (!err) err = node_attr_string(node, "shared_name", &name);
    if (!err) err = node_attr_int(node, "capacity", &s->capacity);
    if (!err) err = node_attr_int(node, "memory_limit", &s->memory_limit);
    if (err) return err;
    s->container = str_dup(container);
    s->name = str_dup(name.len ? name : node->name);
    return NULL;
}

static void clear_stage(void *state) {
    StageState *s = state;
    free(s->container);
    free(s->name);
}

static Error *create(void *arg, Resource **out) {
    const StageState *s = arg;
    StagingArea *a = xcalloc(1, sizeof *a);
    resource_init(&a->base, &staging_type);
    wait_room_init(&a->room);
    a->room.any_order[LINE_PEEK] = true; /* each waits for its index */
    element_store_init(&a->store, STORE_FIFO, 0, 0);
    a->capacity = s->capacity;
    a->memory_limit = s->memory_limit;
    *out = &a->base;
    return NULL;
}

static Error *find(KernelContext *k, StagingArea **out) {
    StageState *s = k->state;
    Resource *r;
    Error *err = resource_find_or_create(kernel_resources(k), str_of(s->container), str_of(s->name), &staging_type,
                                         create, s, &r);
    if (!err) *out = (StagingArea *)r;
    return err;
}

/* ---- Operations that wait ---- */

typedef struct StageOp {
    Waiter waiter; /* first: a Waiter is cast to it */
    StagingArea *area;
    KernelContext *k;
    Element *element; /* to put, or got */
    int64_t index;    /* to peek at */
} StageOp;

static int64_t element_bytes(const Element *e) {
    int64_t sum = 0;
    for (int i = 0; i < e->n; i++) sum += (int64_t)tensor_bytes(e->components[i]);
    return sum;
}

static AttemptResult try_put(Waiter *w) {
    StageOp *op = (StageOp *)w;
    StagingArea *a = op->area;
    int64_t size = element_bytes(op->element);
    if (a->capacity > 0 && a->store.count >= a->capacity) return ATTEMPT_NOTHING;
    if (a->memory_limit > 0 && a->bytes + size > a->memory_limit) return ATTEMPT_NOTHING;
    a->bytes += size;
    element_store_push(&a->store, op->element);
    op->element = NULL;
    return ATTEMPT_DONE;
}

static AttemptResult try_get(Waiter *w) {
    StageOp *op = (StageOp *)w;
    StagingArea *a = op->area;
    if (!a->store.count) return ATTEMPT_NOTHING;
    op->element = element_store_pop(&a->store);
    a->bytes -= element_bytes(op->element);
    return ATTEMPT_DONE;
}

static AttemptResult try_peek(Waiter *w) {
    StageOp *op = (StageOp *)w;
    ElementStore *s = &op->area->store;
    if (s->count <= op->index) return ATTEMPT_NOTHING;
    const Element *e = s->slots[(s->first + op->index) % s->capacity];
    op->element = element_new(e->components, e->n, false);
    return ATTEMPT_DONE;
}

static void finish(Waiter *w) {
    StageOp *op = (StageOp *)w;
    KernelContext *k = op->k;
    Error *err = w->error;
    const Element *e = op->element;
    for (int i = 0; !err && i < k->output_count; i++) {
        if (!e || i >= e->n || e->components[i]->dtype != kernel_output_type(k, i))
            err = error_invalid("The staging area holds tuples of other types");
        else
            kernel_set_output(k, i, tensor_ref(e->components[i]));
    }
    element_free(op->element);
    resource_unref(&op->area->base);
    free(op);
    kernel_done(k, err);
}

static void start(KernelContext *k, StagingArea *a, AttemptResult (*attempt)(Waiter *), int line, Element *e,
                  int64_t index) {
    StageOp *op = xcalloc(1, sizeof *op);
    op->area = a; /* the caller's reference */
    op->k = kernel_defer(k);
    op->element = e;
    op->index = index;
    op->waiter = (Waiter){.attempt = attempt, .finish = finish, .cancel_text = "Staging operation was cancelled"};
    wait_room_enter(&a->room, line, &op->waiter, kernel_cancel(op->k));
}

static Error *run_stage(KernelContext *k) {
    StagingArea *a;
    Error *err = find(k, &a);
    if (err) return err;
    Element *e = element_new(k->in, k->input_count, false);
    if (a->memory_limit > 0 && element_bytes(e) > a->memory_limit) {
        err = error_new(CODE_RESOURCE_EXHAUSTED,
                        "Attempted to insert tensors with combined size of '%lld' bytes into Staging Area with a "
                        "memory limit of '%lld'.",
                        (long long)element_bytes(e), (long long)a->memory_limit);
        element_free(e);
        resource_unref(&a->base);
        return err;
    }
    start(k, a, try_put, LINE_PUT, e, 0);
    return NULL;
}

static Error *run_unstage(KernelContext *k) {
    StagingArea *a;
    Error *err = find(k, &a);
    if (err) return err;
    start(k, a, try_get, LINE_GET, NULL, 0);
    return NULL;
}

static Error *run_peek(KernelContext *k) {
    StagingArea *a;
    int64_t index;
    Error *err = kernel_scalar_int(k, 0, &index);
    if (!err && index < 0) err = error_invalid("index must be at least 0");
    if (!err) err = find(k, &a);
    if (err) return err;
    start(k, a, try_peek, LINE_PEEK, NULL, index);
    return NULL;
}

static Error *run_size(KernelContext *k) {
    StagingArea *a;
    Error *err = find(k, &a);
    if (err) return err;
    wait_room_lock(&a->room);
    int32_t size = (int32_t)a->store.count;
    wait_room_unlock(&a->room);
    kernel_set_output(k, 0, tensor_scalar_i32(size));
    resource_unref(&a->base);
    return NULL;
}

static Error *run_clear(KernelContext *k) {
    StagingArea *a;
    Error *err = find(k, &a);
    if (err) return err;
    wait_room_lock(&a->room);
    while (a->store.count) element_free(element_store_pop(&a->store));
    a->bytes = 0;
    wait_room_unlock(&a->room);
    resource_unref(&a->base);
    return NULL;
}

#define STAGE(op_name, run_fn, more_flags)                                                                  \
    {                                                                                                       \
        op_name, .run = run_fn, .state_size = sizeof(StageState), .init = init_stage, .clear = clear_stage, \
                 .flags = more_flags                                                                        \
    }

const KernelDef staging_cpu[] = {
    STAGE("Stage", run_stage, KERNEL_DEFERS),    STAGE("Unstage", run_unstage, KERNEL_DEFERS),
    STAGE("StagePeek", run_peek, KERNEL_DEFERS), STAGE("StageSize", run_size, 0),
    STAGE("StageClear", run_clear, 0),           {0},
};
