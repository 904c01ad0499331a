/* queue.c: FIFOQueue, RandomShuffleQueue, PaddingFIFOQueue, PriorityQueue and the ops on queues. */
#include <stdlib.h>

#include "base/memory.h"
#include "ops/op_list.h"
#include "ops/queue_resource.h"

const OpDef queue_ops[] = {
    {"FIFOQueue", "-> handle: Ref(string)",
     "component_types: list(type) >= 1; shapes: list(shape) >= 0 = []; capacity: int = -1; container: string = ''; "
     "shared_name: string = ''",
     OP_STATEFUL},
    {"FIFOQueueV2", "-> handle: resource",
     "component_types: list(type) >= 1; shapes: list(shape) >= 0 = []; capacity: int = -1; container: string = ''; "
     "shared_name: string = ''",
     OP_STATEFUL},
    {"RandomShuffleQueue", "-> handle: Ref(string)",
     "component_types: list(type) >= 1; shapes: list(shape) >= 0 = []; capacity: int = -1; min_after_dequeue: int "
     "= 0; seed: int = 0; seed2: int = 0; container: string = ''; shared_name: string = ''",
     OP_STATEFUL},
    {"RandomShuffleQueueV2", "-> handle: resource",
     "component_types: list(type) >= 1; shapes: list(shape) >= 0 = []; capacity: int = -1; min_after_dequeue: int "
     "= 0; seed: int = 0; seed2: int = 0; container: string = ''; shared_name: string = ''",
     OP_STATEFUL},
    {"PaddingFIFOQueue", "-> handle: Ref(string)",
     "component_types: list(type) >= 1; shapes: list(shape) >= 0 = []; capacity: int = -1; container: string = ''; "
     "shared_name: string = ''",
     OP_STATEFUL},
    {"PaddingFIFOQueueV2", "-> handle: resource",
     "component_types: list(type) >= 1; shapes: list(shape) >= 0 = []; capacity: int = -1; container: string = ''; "
     "shared_name: string = ''",
     OP_STATEFUL},
    {"PriorityQueue", "-> handle: Ref(string)",
     "component_types: list(type) >= 0 = []; shapes: list(shape) >= 0; capacity: int = -1; container: string = ''; "
     "shared_name: string = ''",
     OP_STATEFUL},
    {"PriorityQueueV2", "-> handle: resource",
     "component_types: list(type) >= 0 = []; shapes: list(shape) >= 0; capacity: int = -1; container: string = ''; "
     "shared_name: string = ''",
     OP_STATEFUL},
    {"QueueEnqueue", "handle: Ref(string), components: Tcomponents ->",
     "Tcomponents: list(type) >= 1; timeout_ms: int = -1", 0},
    {"QueueEnqueueV2", "handle: resource, components: Tcomponents ->",
     "Tcomponents: list(type) >= 1; timeout_ms: int = -1", OP_STATEFUL},
    {"QueueEnqueueMany", "handle: Ref(string), components: Tcomponents ->",
     "Tcomponents: list(type) >= 1; timeout_ms: int = -1", 0},
    {"QueueEnqueueManyV2", "handle: resource, components: Tcomponents ->",
     "Tcomponents: list(type) >= 1; timeout_ms: int = -1", OP_STATEFUL},
    {"QueueDequeue", "handle: Ref(string) -> components: component_types",
     "component_types: list(type) >= 1; timeout_ms: int = -1", 0},
    {"QueueDequeueV2", "handle: resource -> components: component_types",
     "component_types: list(type) >= 1; timeout_ms: int = -1", OP_STATEFUL},
    {"QueueDequeueMany", "handle: Ref(string), n: int32 -> components: component_types",
     "component_types: list(type) >= 1; timeout_ms: int = -1", 0},
    {"QueueDequeueManyV2", "handle: resource, n: int32 -> components: component_types",
     "component_types: list(type) >= 1; timeout_ms: int = -1", OP_STATEFUL},
    {"QueueDequeueUpTo", "handle: Ref(string), n: int32 -> components: component_types",
     "component_types: list(type) >= 1; timeout_ms: int = -1", 0},
    {"QueueDequeueUpToV2", "handle: resource, n: int32 -> components: component_types",
     "component_types: list(type) >= 1; timeout_ms: int = -1", OP_STATEFUL},
    {"QueueClose", "handle: Ref(string) ->", "cancel_pending_enqueues: bool = false", 0},
    {"QueueCloseV2", "handle: resource ->", "cancel_pending_enqueues: bool = false", OP_STATEFUL},
    {"QueueIsClosed", "handle: Ref(string) -> is_closed: bool", "", 0},
    {"QueueIsClosedV2", "handle: resource -> is_closed: bool", "", OP_STATEFUL},
    {"QueueSize", "handle: Ref(string) -> size: int32", "", 0},
    {"QueueSizeV2", "handle: resource -> size: int32", "", OP_STATEFUL},
    {0},
};

/* ---- Making queues ---- */

typedef struct MakeState {
    QueueSpec spec;
    DataType *types;
    PartialShape *shapes;
} MakeState;

static void make_clear(void *state) {
    MakeState *s = state;
    free(s->types);
    free(s->shapes);
}

/* The priority is a first component that the attributes do not name. */
static void add_priority(MakeState *s, int *type_count, int *shape_count) {
    DataType *types = xmalloc((size_t)(*type_count + 1) * sizeof *types);
    PartialShape *shapes = xmalloc((size_t)(*shape_count + 1) * sizeof *shapes);
    types[0] = DT_INT64;
    shapes[0] = SHAPE_SCALAR;
    for (int i = 0; i < *type_count; i++) types[i + 1] = s->types[i];
    for (int i = 0; i < *shape_count; i++) shapes[i + 1] = s->shapes[i];
    if (*shape_count || !*type_count) ++*shape_count;
    ++*type_count;
    free(s->types);
    free(s->shapes);
    s->types = types;
    s->shapes = shapes;
}

static Error *make_init(const Node *node, MakeState *s, QueueKind kind) {
    int type_count = 0, shape_count = 0;
    s->spec.kind = kind;
    Error *err = node_attr_types(node, "component_types", &s->types, &type_count);
    if (!err) err = node_attr_shapes(node, "shapes", &s->shapes, &shape_count);
    if (!err) err = node_attr_int(node, "capacity", &s->spec.capacity);
    if (!err && kind == QUEUE_SHUFFLE) {
        err = node_attr_int(node, "min_after_dequeue", &s->spec.min_after_dequeue);
        if (!err) err = node_attr_int(node, "seed", &s->spec.seed);
        if (!err) err = node_attr_int(node, "seed2", &s->spec.seed2);
        if (!err && s->spec.min_after_dequeue < 0)
            err = error_invalid("min_after_dequeue %lld must be >= 0", (long long)s->spec.min_after_dequeue);
        if (!err && s->spec.capacity >= 0 && s->spec.min_after_dequeue >= s->spec.capacity)
            err = error_invalid("min_after_dequeue %lld must be < capacity %lld", (long long)s->spec.min_after_dequeue,
                                (long long)s->spec.capacity);
    }
    if (err) return err;
    if (kind == QUEUE_PRIORITY) add_priority(s, &type_count, &shape_count);
    if (shape_count && shape_count != type_count)
        return error_invalid("Different number of component types: %d types, %d shapes of a queue", type_count,
                             shape_count);
    if (!shape_count && kind == QUEUE_PADDING)
        return error_invalid("Shapes must be provided for all components, but received %d dtypes and 0 shapes.", type_count);
    for (int i = 0; i < shape_count; i++) {
        const PartialShape *p = &s->shapes[i];
        bool known = p->rank >= 0;
        for (int d = 0; d < p->rank && kind != QUEUE_PADDING; d++) known = known && p->dims[d] >= 0;
        if (!known) return error_invalid("Shape of component %d of the queue must be fully defined", i);
    }
    s->spec.component_count = type_count;
    s->spec.types = s->types;
    s->spec.shapes = shape_count ? s->shapes : NULL;
    return NULL;
}

static Error *init_fifo(const Node *node, void *state) {
    return make_init(node, state, QUEUE_FIFO);
}
static Error *init_shuffle(const Node *node, void *state) {
    return make_init(node, state, QUEUE_SHUFFLE);
}
static Error *init_padding(const Node *node, void *state) {
    return make_init(node, state, QUEUE_PADDING);
}
static Error *init_priority(const Node *node, void *state) {
    return make_init(node, state, QUEUE_PRIORITY);
}

static Error *create(KernelContext *k, Str name, Resource **out) {
    MakeState *s = k->state;
    *out = (Resource *)queue_new(name, &s->spec);
    return NULL;
}

static Error *run_make(KernelContext *k) {
    MakeState *s = k->state;
    Resource *queue = NULL;
    Error *err = kernel_own_resource(k, &queue_type, false, create, &queue);
    if (!err) err = queue_check_spec((Queue *)queue, &s->spec);
    resource_unref(queue);
    return err;
}

/* ---- Operations ---- */

static Error *find_queue(KernelContext *k, Queue **out) {
    Resource *r;
    Error *err = kernel_resource(k, 0, &queue_type, &r);
    if (!err) *out = (Queue *)r;
    return err;
}

static void done(void *arg, Error *err, Tensor **components) {
    KernelContext *k = arg;
    for (int i = 0; !err && components && i < k->output_count; i++) kernel_set_output(k, i, tensor_ref(components[i]));
    kernel_done(k, err);
}

/* What the op says it puts or takes must be what is in the queue. */
static Error *check_signature(KernelContext *k, Queue *q, bool enqueues, const char *more_inputs) {
    int n = queue_component_count(q), given = enqueues ? k->input_count - 1 : k->output_count;
    StrBuf have = {0}, expected = {0};
    for (int i = 0; i < given; i++) {
        DataType t = enqueues ? k->in[i + 1]->dtype : kernel_output_type(k, i);
        strbuf_addf(&have, "%s%s", i || enqueues ? ", " : "", dtype_name(t));
    }
    for (int i = 0; i < n; i++)
        strbuf_addf(&expected, "%s%s", i || enqueues ? ", " : "", dtype_name(queue_component_type(q, i)));
    Error *err = NULL;
    if (!str_eq(strbuf_str(&have), strbuf_str(&expected))) {
        const char *handle = dtype_is_ref(k->node->input_types[0]) ? "string_ref" : "resource";
        const char *before = enqueues ? "" : "->", *after = enqueues ? "->" : "";
        err =
            error_invalid("Signature mismatch, have: %s%s%s%s%s expected: %s%s%s%s%s", handle, more_inputs, before,
                          strbuf_str(&have).ptr, after, handle, more_inputs, before, strbuf_str(&expected).ptr, after);
    }
    strbuf_clear(&have);
    strbuf_clear(&expected);
    return err;
}

static Error *enqueue(KernelContext *k, bool many) {
    Queue *q;
    Error *err = find_queue(k, &q);
    if (err) return err;
    err = check_signature(k, q, true, "");
    if (!err) err = queue_check_tuple(q, k->in + 1, k->input_count - 1, many);
    if (!err) {
        KernelContext *d = kernel_defer(k);
        (many ? queue_enqueue_many : queue_enqueue)(q, d->in + 1, kernel_cancel(d), done, d);
    }
    resource_unref((Resource *)q);
    return err;
}

static Error *run_enqueue(KernelContext *k) {
    return enqueue(k, false);
}
static Error *run_enqueue_many(KernelContext *k) {
    return enqueue(k, true);
}

static Error *run_dequeue(KernelContext *k) {
    Queue *q;
    Error *err = find_queue(k, &q);
    if (err) return err;
    err = check_signature(k, q, false, "");
    if (!err) {
        KernelContext *d = kernel_defer(k);
        queue_dequeue(q, kernel_cancel(d), done, d);
    }
    resource_unref((Resource *)q);
    return err;
}

static Error *dequeue_many(KernelContext *k, bool up_to) {
    Queue *q;
    int64_t n;
    Error *err = find_queue(k, &q);
    if (err) return err;
    err = check_signature(k, q, false, ", int32");
    if (!err) err = kernel_scalar_int(k, 1, &n);
    if (!err) {
        KernelContext *d = kernel_defer(k);
        queue_dequeue_many(q, n, up_to, kernel_cancel(d), done, d);
    }
    resource_unref((Resource *)q);
    return err;
}

static Error *run_dequeue_many(KernelContext *k) {
    return dequeue_many(k, false);
}
static Error *run_dequeue_up_to(KernelContext *k) {
    return dequeue_many(k, true);
}

static Error *init_close(const Node *node, void *state) {
    return node_attr_bool(node, "cancel_pending_enqueues", state);
}

static Error *run_close(KernelContext *k) {
    Queue *q;
    Error *err = find_queue(k, &q);
    if (err) return err;
    bool cancel_pending = *(bool *)k->state;
    KernelContext *d = kernel_defer(k);
    queue_close(q, cancel_pending, kernel_cancel(d), done, d);
    resource_unref((Resource *)q);
    return NULL;
}

static Error *run_is_closed(KernelContext *k) {
    Queue *q;
    Error *err = find_queue(k, &q);
    if (err) return err;
    kernel_set_output(k, 0, tensor_scalar_bool(queue_is_closed(q)));
    resource_unref((Resource *)q);
    return NULL;
}

static Error *run_size(KernelContext *k) {
    Queue *q;
    Error *err = find_queue(k, &q);
    if (err) return err;
    kernel_set_output(k, 0, tensor_scalar_i32((int32_t)queue_size(q)));
    resource_unref((Resource *)q);
    return NULL;
}

#define MAKE(op_name, init_fn)                                                                           \
    {                                                                                                    \
        op_name, .run = run_make, .state_size = sizeof(MakeState), .init = init_fn, .clear = make_clear, \
                 .flags = KERNEL_PER_SESSION                                                             \
    }
#define DEFERRED(op_name, run_fn) \
    { op_name, .run = run_fn, .flags = KERNEL_DEFERS }

const KernelDef queue_cpu[] = {
    MAKE("FIFOQueue", init_fifo),
    MAKE("FIFOQueueV2", init_fifo),
    MAKE("RandomShuffleQueue", init_shuffle),
    MAKE("RandomShuffleQueueV2", init_shuffle),
    MAKE("PaddingFIFOQueue", init_padding),
    MAKE("PaddingFIFOQueueV2", init_padding),
    MAKE("PriorityQueue", init_priority),
    MAKE("PriorityQueueV2", init_priority),
    DEFERRED("QueueEnqueue", run_enqueue),
    DEFERRED("QueueEnqueueV2", run_enqueue),
    DEFERRED("QueueEnqueueMany", run_enqueue_many),
    DEFERRED("QueueEnqueueManyV2", run_enqueue_many),
    DEFERRED("QueueDequeue", run_dequeue),
    DEFERRED("QueueDequeueV2", run_dequeue),
    DEFERRED("QueueDequeueMany", run_dequeue_many),
    DEFERRED("QueueDequeueManyV2", run_dequeue_many),
    DEFERRED("QueueDequeueUpTo", run_dequeue_up_to),
    DEFERRED("QueueDequeueUpToV2", run_dequeue_up_to),
    {"QueueClose", .run = run_close, .state_size = sizeof(bool), .init = init_close, .flags = KERNEL_DEFERS},
    {"QueueCloseV2", .run = run_close, .state_size = sizeof(bool), .init = init_close, .flags = KERNEL_DEFERS},
    {"QueueIsClosed", .run = run_is_closed},
    {"QueueIsClosedV2", .run = run_is_closed},
    {"QueueSize", .run = run_size},
    {"QueueSizeV2", .run = run_size},
    {0},
};
