/* barrier.c: Barrier, which joins the components of tuples by key, and its ops. */
#include <stdlib.h>
#include <string.h>

#include "base/hashmap.h"
#include "base/memory.h"
#include "ops/elements.h"
#include "ops/op_list.h"
#include "ops/queue_resource.h"

const OpDef barrier_ops[] = {
    {"Barrier", "-> handle: Ref(string)",
     "component_types: list(type) >= 1; shapes: list(shape) >= 0 = []; capacity: int = -1; container: string = ''; "
     "shared_name: string = ''",
     OP_STATEFUL},
    {"BarrierInsertMany", "handle: Ref(string), keys: string, values: T ->", "T: type; component_index: int", 0},
    {"BarrierTakeMany",
     "handle: Ref(string), num_elements: int32 -> indices: int64, keys: string, values: component_types",
     "component_types: list(type) >= 1; allow_small_batch: bool = false; wait_for_incomplete: bool = false; "
     "timeout_ms: int = -1",
     0},
    {"BarrierClose", "handle: Ref(string) ->", "cancel_pending_enqueues: bool = false", 0},
    {"BarrierReadySize", "handle: Ref(string) -> size: int32", "", 0},
    {"BarrierIncompleteSize", "handle: Ref(string) -> size: int32", "", 0},
    {0},
};

typedef struct BarrierSpec {
    int count;
    DataType *types;
    PartialShape *shapes; /* NULL: any */
} BarrierSpec;

/* A tuple that is not complete yet. */
typedef struct Partial {
    char *key;
    size_t key_len;
    int64_t index; /* of the insertion that brought the key */
    int missing;
    struct Partial *next; /* of those that became complete */
    Tensor *values[];
} Partial;

typedef struct Barrier {
    Resource base;
    char *name;
    BarrierSpec spec;      /* own copies */
    Queue *ready;          /* by index: index, key, components */
    pthread_mutex_t mutex; /* guards what follows */
    StrMap incomplete;     /* to Partial */
    int64_t next_index;
    bool used_index; /* by the insertion going on */
    bool closed, cancelled;
} Barrier;

static void partial_free(Partial *p, int n) {
    for (int i = 0; i < n; i++) tensor_unref(p->values[i]);
    free(p->key);
    free(p);
}

static void clear_incomplete_locked(Barrier *b) {
    size_t at = 0;
    Str key;
    void *value;
    while (strmap_next(&b->incomplete, &at, &key, &value)) partial_free(value, b->spec.count);
    strmap_clear(&b->incomplete);
}

static void destroy(Resource *r) {
    Barrier *b = (Barrier *)r;
    clear_incomplete_locked(b);
    resource_unref((Resource *)b->ready);
    pthread_mutex_destroy(&b->mutex);
    free(b->spec.types);
    free(b->spec.shapes);
    free(b->name);
    free(b);
}

static void ignore(void *arg, Error *err, Tensor **components) {
    (void)arg;
    (void)components;
    error_free(err);
}

static void abandon(Resource *r) {
    queue_type.cancel((Resource *)((Barrier *)r)->ready);
}

static const ResourceType barrier_type = {
    .type_name = "N10tensorflow7barrier7BarrierE", .what = "barrier", .destroy = destroy, .cancel = abandon};

/* ---- Making ---- */

static Error *init_make(const Node *node, void *state) {
    BarrierSpec *s = state;
    int64_t capacity;
    int shape_count;
    Error *err = node_attr_types(node, "component_types", &s->types, &s->count);
    if (!err) err = node_attr_shapes(node, "shapes", &s->shapes, &shape_count);
    if (!err) err = node_attr_int(node, "capacity", &capacity);
    if (err) return err;
    if (shape_count != s->count) return error_invalid("All of the component shapes must be specified");
    if (capacity != -1)
        return error_invalid(
            "Barrier only accepts capacity=-1.  Feed the inputs to your Barrier through a queue to enforce a limited "
            "capacity.");
    int any = 0; /* a client that names no shapes says that all are unknown */
    for (int i = 0; i < shape_count; i++) any += s->shapes[i].rank < 0;
    bool none = any == shape_count;
    for (int i = 0; !none && i < shape_count; i++) {
        bool known = s->shapes[i].rank >= 0;
        for (int d = 0; d < s->shapes[i].rank; d++) known = known && s->shapes[i].dims[d] >= 0;
        if (!known) return error_invalid("Shape %s is not fully defined", shape_text(&s->shapes[i]).text);
    }
    if (none) {
        free(s->shapes);
        s->shapes = NULL;
    }
    return NULL;
}

static void clear_make(void *state) {
    BarrierSpec *s = state;
    free(s->types);
    free(s->shapes);
}

static Error *create(KernelContext *k, Str name, Resource **out) {
    const BarrierSpec *s = k->state;
    Barrier *b = xcalloc(1, sizeof *b);
    resource_init(&b->base, &barrier_type);
    pthread_mutex_init(&b->mutex, NULL);
    b->name = str_dup(name);
    b->next_index = INT64_MIN;
    int n = s->count + 2;
    DataType *types = xcalloc((size_t)n, sizeof *types);
    PartialShape *shapes = xcalloc((size_t)n, sizeof *shapes);
    types[0] = DT_INT64;
    types[1] = DT_STRING;
    shapes[0] = shapes[1] = SHAPE_SCALAR;
    memcpy(types + 2, s->types, (size_t)s->count * sizeof *types);
    if (s->shapes) memcpy(shapes + 2, s->shapes, (size_t)s->count * sizeof *shapes);
    b->ready = queue_new(name, &(QueueSpec){.kind = QUEUE_PRIORITY,
                                            .capacity = -1,
                                            .component_count = n,
                                            .types = types,
                                            .shapes = s->shapes ? shapes : NULL});
    b->spec.count = s->count;
    memmove(types, types + 2, (size_t)s->count * sizeof *types);
    memmove(shapes, shapes + 2, (size_t)s->count * sizeof *shapes);
    b->spec.types = types;
    b->spec.shapes = shapes;
    if (!s->shapes) {
        free(shapes);
        b->spec.shapes = NULL;
    }
    *out = &b->base;
    return NULL;
}

static Error *run_make(KernelContext *k) {
    const BarrierSpec *s = k->state;
    Resource *r = NULL;
    Error *err = kernel_own_resource(k, &barrier_type, false, create, &r);
    if (err) return err;
    const BarrierSpec *own = &((Barrier *)r)->spec;
    err = components_check("barrier", ((Barrier *)r)->name, &(Components){own->types, own->shapes, own->count}, &(Components){s->types, s->shapes, s->count});
    resource_unref(r);
    return err;
}

static Error *find(KernelContext *k, Barrier **out) {
    Resource *r;
    Error *err = kernel_resource(k, 0, &barrier_type, &r);
    if (!err) *out = (Barrier *)r;
    return err;
}

/* ---- Inserting ---- */

static Error *init_insert(const Node *node, void *state) {
    return node_attr_int(node, "component_index", state);
}

static void close_ready(Barrier *b) {
    queue_close(b->ready, false, NULL, ignore, NULL);
}

/* Hands complete tuples to those who take; without the mutex, since that may finish a step that waited for them. */
static void make_ready(Barrier *b, Partial *list) {
    int n = b->spec.count;
    Tensor **tuple = xcalloc((size_t)n + 2, sizeof *tuple);
    for (Partial *p = list, *next; p; p = next) {
        next = p->next;
        tuple[0] = tensor_scalar_i64(p->index);
        tuple[1] = tensor_scalar_str((Str){p->key, p->key_len});
        memcpy(tuple + 2, p->values, (size_t)n * sizeof *tuple);
        queue_enqueue(b->ready, tuple, NULL, ignore, NULL); /* no capacity: does not wait */
        tensor_unref(tuple[0]);
        tensor_unref(tuple[1]);
        partial_free(p, n);
    }
    free(tuple);
}

/* A tuple that becomes complete goes to the end of the list at *ready, which then points to the new end. */
static Error *insert_one_locked(Barrier *b, Str key, int component, Tensor *value, Partial ***ready) {
    Partial *p = strmap_get(&b->incomplete, key);
    if (p && p->values[component])
        return error_invalid("Key %.*s already has a value for component %d in barrier %s", STR_ARG(key), component,
                             b->name);
    if (!p) {
        p = xcalloc(1, sizeof *p + (size_t)b->spec.count * sizeof(Tensor *));
        p->key = str_dup(key);
        p->key_len = key.len;
        p->index = b->next_index;
        b->used_index = true;
        p->missing = b->spec.count;
        strmap_put(&b->incomplete, (Str){p->key, p->key_len}, p);
    }
    p->values[component] = tensor_ref(value);
    if (--p->missing == 0) {
        strmap_remove(&b->incomplete, (Str){p->key, p->key_len});
        **ready = p;
        *ready = &p->next;
    }
    return NULL;
}

static Error *check_insert(const Barrier *b, const Tensor *keys, const Tensor *values, int64_t component) {
    if (component < 0 || component >= b->spec.count)
        return error_invalid("The component ID is out of range %lld > num_components (= %d)", (long long)component,
                             b->spec.count);
    if (keys->shape.rank != 1) return error_invalid("Expected keys to be a vector");
    if (keys->count && !values->count)
        return error_invalid("Tensors with no elements are not supported %s: received shape %s", b->name,
                             shape_text(&values->shape).text);
    if (values->dtype != b->spec.types[component])
        return error_invalid("Signature mismatch, have: string_ref, string, %s-> expected: string_ref, string, %s->", dtype_name(values->dtype),
                             dtype_name(b->spec.types[component]));
    if (values->shape.rank < 1 || values->shape.dims[0] != keys->count)
        return error_invalid("Shape mismatch: keys has %lld elements, values must have as many rows",
                             (long long)keys->count);
    Shape row = values->shape;
    shape_remove_dim(&row, 0);
    if (b->spec.shapes && !shape_eq(&row, &b->spec.shapes[component])) {
        char *want = shape_str(&b->spec.shapes[component]), *got = shape_str(&row);
        Error *err = error_invalid("Shape mismatch in tuple component %lld. Expected %s, got %s", (long long)component + 2, want, got); /* behind index and key */
        free(want);
        free(got);
        return err;
    }
    return NULL;
}

static Error *check_open_locked(const Barrier *b, const Tensor *keys) {
    if (!b->closed) return NULL;
    Str fresh = STR("");
    int64_t fresh_count = 0, fresh_index = 0;
    for (int64_t i = 0; i < keys->count; i++) {
        Str key = tstring_str(&tensor_str(keys)[i]);
        if (strmap_get(&b->incomplete, key)) continue;
        if (fresh_count++) continue;
        fresh = key;
        fresh_index = i;
    }
    if (b->cancelled || (fresh_count && !b->incomplete.count))
        return error_new(CODE_CANCELLED, "Barrier %s is closed.  Pending enqueues cancelled: %d.  Number of new insertions: %lld.  Number of incomplete keys: %zu.",
                         b->name, b->cancelled, (long long)fresh_count, b->incomplete.count);
    if (!fresh_count) return NULL;
    return error_new(CODE_CANCELLED,
                     "Barrier %s is closed, but attempted to insert a brand new key: %.*s.  Pending enqueues cancelled: 0.  Insertion index: %lld.  Number of incomplete keys: %zu.",
                     b->name, STR_ARG(fresh), (long long)fresh_index, b->incomplete.count);
}

static Error *row_copy(const Tensor *values, int64_t i, Tensor **out) {
    Tensor *row = tensor_rows(values, i, i + 1);
    Shape shape = values->shape;
    shape_remove_dim(&shape, 0);
    Tensor *view = tensor_alias(row, row->dtype, &shape);
    view->data = row->data;
    Error *err = tensor_copy(view, out);
    tensor_unref(view);
    tensor_unref(row);
    return err;
}

static Error *run_insert(KernelContext *k) {
    Barrier *b;
    int64_t component = *(int64_t *)k->state;
    const Tensor *keys = k->in[1], *values = k->in[2];
    Error *err = find(k, &b);
    if (err) return err;
    err = check_insert(b, keys, values, component);
    if (!err) {
        Partial *ready = NULL, **end = &ready;
        pthread_mutex_lock(&b->mutex);
        err = check_open_locked(b, keys);
        for (int64_t i = 0; !err && i < keys->count; i++) {
            Tensor *row;
            err = row_copy(values, i, &row);
            if (err) break;
            err = insert_one_locked(b, tstring_str(&tensor_str(keys)[i]), (int)component, row, &end);
            tensor_unref(row);
        }
        if (!err && b->used_index) b->next_index++;
        b->used_index = false;
        bool complete = b->closed && !b->incomplete.count;
        pthread_mutex_unlock(&b->mutex);
        make_ready(b, ready);
        if (complete) close_ready(b);
    }
    resource_unref(&b->base);
    return err;
}

/* ---- Taking ---- */

static Error *init_take(const Node *node, void *state) {
    return node_attr_bool(node, "allow_small_batch", state);
}

static void taken(void *arg, Error *err, Tensor **components) {
    KernelContext *k = arg;
    for (int i = 0; !err && i < k->output_count; i++) kernel_set_output(k, i, tensor_ref(components[i]));
    kernel_done(k, err);
}

/* "string_ref, int32->int64, string, float" */
static void add_take_types(StrBuf *out, const DataType *types, int count) {
    strbuf_addf(out, "string_ref, int32->int64, string");
    for (int i = 0; i < count; i++) strbuf_addf(out, ", %s", dtype_name(dtype_base(types[i])));
}

static Error *check_take_types(const KernelContext *k, const Barrier *b) {
    bool same = k->output_count == b->spec.count + 2;
    for (int i = 0; same && i < b->spec.count; i++) same = kernel_output_type(k, i + 2) == b->spec.types[i];
    if (same) return NULL;
    StrBuf text = {0};
    strbuf_addf(&text, "Signature mismatch, have: ");
    add_take_types(&text, k->node->output_types + 2, k->output_count - 2);
    strbuf_addf(&text, " expected: ");
    add_take_types(&text, b->spec.types, b->spec.count);
    Error *err = error_invalid("%.*s", STR_ARG(strbuf_str(&text)));
    strbuf_clear(&text);
    return err;
}

/* Once the barrier is closed, a small batch is what is ready now, and a full one may wait for what is incomplete. */
static Error *check_take(KernelContext *k, Barrier *b, bool small, int64_t *n) {
    Error *err = check_take_types(k, b);
    if (err) return err;
    pthread_mutex_lock(&b->mutex);
    bool closed = b->closed;
    int64_t incomplete = (int64_t)b->incomplete.count;
    pthread_mutex_unlock(&b->mutex);
    if (!closed) return NULL;
    int64_t available = queue_size(b->ready);
    if (small && *n > available) *n = available;
    if (!small) available += incomplete;
    if (available < (*n > 1 ? *n : 1))
        return error_new(CODE_OUT_OF_RANGE,
                         "Barrier '%s' is closed and has insufficient elements (requested %lld, total size %lld)",
                         b->name, (long long)*n, (long long)available);
    return NULL;
}

static Error *run_take(KernelContext *k) {
    Barrier *b;
    int64_t n;
    bool small = *(bool *)k->state;
    if (k->in[1]->shape.rank) return error_invalid("num_elements must be a scalar.");
    Error *err = kernel_scalar_int(k, 1, &n);
    if (!err) err = find(k, &b);
    if (err) return err;
    err = check_take(k, b, small, &n);
    if (!err) {
        KernelContext *d = kernel_defer(k);
        queue_dequeue_many(b->ready, n, small, kernel_cancel(d), taken, d);
    }
    resource_unref(&b->base);
    return err;
}

static Error *init_close(const Node *node, void *state) {
    return node_attr_bool(node, "cancel_pending_enqueues", state);
}

static Error *run_close(KernelContext *k) {
    Barrier *b;
    bool cancel_pending = *(bool *)k->state;
    Error *err = find(k, &b);
    if (err) return err;
    pthread_mutex_lock(&b->mutex);
    if (b->closed && (b->cancelled || !cancel_pending))
        err = error_new(CODE_CANCELLED, "Barrier '%s' is already closed.", b->name);
    bool ended = false;
    if (!err) {
        b->closed = true;
        b->cancelled = cancel_pending;
        if (cancel_pending) clear_incomplete_locked(b);
        ended = !b->incomplete.count;
    }
    pthread_mutex_unlock(&b->mutex);
    if (ended) close_ready(b);
    resource_unref(&b->base);
    return err;
}

static Error *run_ready_size(KernelContext *k) {
    Barrier *b;
    Error *err = find(k, &b);
    if (err) return err;
    kernel_set_output(k, 0, tensor_scalar_i32((int32_t)queue_size(b->ready)));
    resource_unref(&b->base);
    return NULL;
}

static Error *run_incomplete_size(KernelContext *k) {
    Barrier *b;
    Error *err = find(k, &b);
    if (err) return err;
    pthread_mutex_lock(&b->mutex);
    int32_t size = (int32_t)b->incomplete.count;
    pthread_mutex_unlock(&b->mutex);
    kernel_set_output(k, 0, tensor_scalar_i32(size));
    resource_unref(&b->base);
    return NULL;
}

const KernelDef barrier_cpu[] = {
    {"Barrier", .run = run_make, .state_size = sizeof(BarrierSpec), .init = init_make, .clear = clear_make,
     .flags = KERNEL_PER_SESSION},
    {"BarrierInsertMany", .run = run_insert, .state_size = sizeof(int64_t), .init = init_insert},
    {"BarrierTakeMany", .run = run_take, .state_size = sizeof(bool), .init = init_take, .flags = KERNEL_DEFERS},
    {"BarrierClose", .run = run_close, .state_size = sizeof(bool), .init = init_close},
    {"BarrierReadySize", .run = run_ready_size},
    {"BarrierIncompleteSize", .run = run_incomplete_size},
    {0},
};
