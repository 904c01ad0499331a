/* map_staging.c: MapStage, MapUnstage, OrderedMapStage and the rest: tuples handed from step to step by key. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "ops/elements.h"
#include "ops/op_list.h"
#include "ops/wait_room.h"

const OpDef map_staging_ops[] = {
    {"MapStage", "key: int64, indices: int32, values: fake_dtypes ->",
     "capacity: int >= 0 = 0; memory_limit: int >= 0 = 0; dtypes: list(type); fake_dtypes: list(type) >= 1; "
     "container: string = ''; shared_name: string = ''",
     OP_STATEFUL},
    {"MapPeek", "key: int64, indices: int32 -> values: dtypes",
     "capacity: int >= 0 = 0; memory_limit: int >= 0 = 0; dtypes: list(type) >= 1; container: string = ''; "
     "shared_name: string = ''",
     OP_STATEFUL},
    {"MapUnstage", "key: int64, indices: int32 -> values: dtypes",
     "capacity: int >= 0 = 0; memory_limit: int >= 0 = 0; dtypes: list(type) >= 1; container: string = ''; "
     "shared_name: string = ''",
     OP_STATEFUL},
    {"MapUnstageNoKey", "indices: int32 -> key: int64, values: dtypes",
     "capacity: int >= 0 = 0; memory_limit: int >= 0 = 0; dtypes: list(type) >= 1; container: string = ''; "
     "shared_name: string = ''",
     OP_STATEFUL},
    {"MapSize", "-> size: int32",
     "capacity: int >= 0 = 0; memory_limit: int >= 0 = 0; dtypes: list(type); container: string = ''; shared_name: "
     "string = ''",
     OP_STATEFUL},
    {"MapIncompleteSize", "-> size: int32",
     "capacity: int >= 0 = 0; memory_limit: int >= 0 = 0; dtypes: list(type); container: string = ''; shared_name: "
     "string = ''",
     OP_STATEFUL},
    {"MapClear", "->",
     "capacity: int >= 0 = 0; memory_limit: int >= 0 = 0; dtypes: list(type); container: string = ''; shared_name: "
     "string = ''",
     OP_STATEFUL},
    {"OrderedMapStage", "key: int64, indices: int32, values: fake_dtypes ->",
     "capacity: int >= 0 = 0; memory_limit: int >= 0 = 0; dtypes: list(type); fake_dtypes: list(type) >= 1; "
     "container: string = ''; shared_name: string = ''",
     OP_STATEFUL},
    {"OrderedMapPeek", "key: int64, indices: int32 -> values: dtypes",
     "capacity: int >= 0 = 0; memory_limit: int >= 0 = 0; dtypes: list(type) >= 1; container: string = ''; "
     "shared_name: string = ''",
     OP_STATEFUL},
    {"OrderedMapUnstage", "key: int64, indices: int32 -> values: dtypes",
     "capacity: int >= 0 = 0; memory_limit: int >= 0 = 0; dtypes: list(type) >= 1; container: string = ''; "
     "shared_name: string = ''",
     OP_STATEFUL},
    {"OrderedMapUnstageNoKey", "indices: int32 -> key: int64, values: dtypes",
     "capacity: int >= 0 = 0; memory_limit: int >= 0 = 0; dtypes: list(type) >= 1; container: string = ''; "
     "shared_name: string = ''",
     OP_STATEFUL},
    {"OrderedMapSize", "-> size: int32",
     "capacity: int >= 0 = 0; memory_limit: int >= 0 = 0; dtypes: list(type); container: string = ''; shared_name: "
     "string = ''",
     OP_STATEFUL},
    {"OrderedMapIncompleteSize", "-> size: int32",
     "capacity: int >= 0 = 0; memory_limit: int >= 0 = 0; dtypes: list(type); container: string = ''; shared_name: "
     "string = ''",
     OP_STATEFUL},
    {"OrderedMapClear", "->",
     "capacity: int >= 0 = 0; memory_limit: int >= 0 = 0; dtypes: list(type); container: string = ''; shared_name: "
     "string = ''",
     OP_STATEFUL},
    {0},
};

/* The components that were given for one key. */
typedef struct Staged {
    int64_t key;
    int present;     /* components that are there */
    bool complete;   /* all were there at some time: they may be taken, in parts too */
    Tensor **values; /* NULL: not given yet, or taken */
} Staged;

typedef struct StagingMap {
    Resource base;
    WaitRoom room; /* its mutex guards what follows */
    Staged *items; /* by increasing key */
    size_t count, room_for;
    int64_t capacity, memory_limit; /* 0: none */
    int64_t bytes;
    int components;
    DataType *types;
} StagingMap;

enum { LINE_PUT, LINE_GET, LINE_PEEK };

static void drop(StagingMap *m, size_t at) {
    for (int i = 0; i < m->components; i++) {
        if (m->items[at].values[i]) m->bytes -= (int64_t)tensor_bytes(m->items[at].values[i]);
        tensor_unref(m->items[at].values[i]);
    }
    free(m->items[at].values);
    memmove(m->items + at, m->items + at + 1, (--m->count - at) * sizeof *m->items);
}

static void destroy(Resource *r) {
    StagingMap *m = (StagingMap *)r;
    while (m->count) drop(m, m->count - 1);
    free(m->items);
    free(m->types);
    wait_room_clear(&m->room);
    free(m);
}

static void abandon(Resource *r) {
    StagingMap *m = (StagingMap *)r;
    for (int line = 0; line < WAIT_ROOM_LINES; line++) {
        wait_room_lock(&m->room);
        wait_room_cancel_line_unlock(&m->room, line);
    }
}

static const ResourceType map_type = {.type_name = "N10tensorflow12_GLOBAL__N_110StagingMapE",
                                      .what = "staging map",
                                      .destroy = destroy,
                                      .cancel = abandon};

typedef struct MapState {
    char *container, *name;
    int64_t capacity, memory_limit;
    DataType *types;
    int type_count;
} MapState;

static Error *init_map(const Node *node, void *state) {
    MapState *s = state;
    Str container, name;
    Error *err = node_attr_string(node, "container", &container);
    if (!err) err = node_attr_string(node, "shared_name", &name);
    if (!err) err = node_attr_int(node, "capacity", &s->capacity);
    if (!err) err = node_attr_int(node, "memory_limit", &s->memory_limit);
    if (!err) err = node_attr_types(node, "dtypes", &s->types, &s->type_count);
    if (err) return err;
    s->container = str_dup(container);
    s->name = str_dup(name.len ? name : node->name);
    return NULL;
}

static void clear_map(void *state) {
    MapState *s = state;
    free(s->container);
    free(s->name);
    free(s->types);
}

static Error *create(void *arg, Resource **out) {
    const MapState *s = arg;
    StagingMap *m = xcalloc(1, sizeof *m);
    resource_init(&m->base, &map_type);
    wait_room_init(&m->room);
    for (int line = 0; line < WAIT_ROOM_LINES; line++) m->room.any_order[line] = true; /* each waits for its key */
    m->capacity = s->capacity;
    m->memory_limit = s->memory_limit;
    m->components = s->type_count;
    m->types = xcalloc((size_t)s->type_count + 1, sizeof *m->types);
    if (s->type_count) memcpy(m->types, s->types, (size_t)s->type_count * sizeof *m->types);
    *out = &m->base;
    return NULL;
}

static Error *find(KernelContext *k, StagingMap **out) {
    MapState *s = k->state;
    Resource *r;
    Error *err =
        resource_find_or_create(kernel_resources(k), str_of(s->container), str_of(s->name), &map_type, create, s, &r);
    if (!err) *out = (StagingMap *)r;
    return err;
}

/* Where the key is, or would be. */
static size_t position(const StagingMap *m, int64_t key) {
    size_t low = 0, high = m->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (m->items[middle].key < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* ---- Operations that wait ---- */

typedef struct MapOp {
    Waiter waiter; /* first: a Waiter is cast to it */
    StagingMap *map;
    KernelContext *k;
    int64_t key;
    bool any_key, peek;
    int indices[64]; /* components meant */
    int count;
    Tensor **values; /* to put, or got */
} MapOp;

static int64_t bytes_to_put(const MapOp *op) {
    int64_t bytes = 0;
    for (int i = 0; i < op->count; i++) bytes += (int64_t)tensor_bytes(op->values[i]);
    return bytes;
}

static AttemptResult try_put(Waiter *w) {
    MapOp *op = (MapOp *)w;
    StagingMap *m = op->map;
    size_t at = position(m, op->key);
    bool whole = at < m->count && m->items[at].key == op->key && m->items[at].complete; /* another one is made beside it */
    at += whole;
    bool known = at < m->count && m->items[at].key == op->key;
    int64_t bytes = bytes_to_put(op);
    if (!known && m->capacity > 0 && (int64_t)m->count >= m->capacity) return ATTEMPT_NOTHING;
    if (m->memory_limit > 0 && m->bytes + bytes > m->memory_limit) return ATTEMPT_NOTHING;
    if (whole && op->count == m->components) return ATTEMPT_DONE; /* an entry for a key that has one is dropped */
    for (int i = 0; known && i < op->count; i++)
        if (m->items[at].values[op->indices[i]]) {
            w->error = error_invalid("The tensor for index '%d' for key '%lld' was already initialized '%d'.", op->indices[i], (long long)op->key, m->components);
            return ATTEMPT_DONE;
        }
    if (!known) {
        m->items = vec_reserve(m->items, &m->room_for, m->count + 1, sizeof *m->items);
        memmove(m->items + at + 1, m->items + at, (m->count++ - at) * sizeof *m->items);
        m->items[at] = (Staged){.key = op->key, .values = xcalloc((size_t)m->components + 1, sizeof(Tensor *))};
    }
    Staged *s = &m->items[at];
    for (int i = 0; i < op->count; i++) s->values[op->indices[i]] = tensor_ref(op->values[i]);
    s->present += op->count;
    s->complete = s->present == m->components;
    m->bytes += bytes;
    if (whole && s->complete) drop(m, at);
    return ATTEMPT_DONE;
}

static AttemptResult try_get(Waiter *w) {
    MapOp *op = (MapOp *)w;
    StagingMap *m = op->map;
    size_t at = op->any_key ? 0 : position(m, op->key);
    while (op->any_key && at < m->count && !m->items[at].complete) at++;
    if (at == m->count || (!op->any_key && m->items[at].key != op->key) || !m->items[at].complete)
        return ATTEMPT_NOTHING;
    Staged *s = &m->items[at];
    for (int i = 0; i < op->count; i++)
        if (!s->values[op->indices[i]]) {
            w->error = error_invalid("Tensor at index '%d' for key '%lld' has already been removed.", op->indices[i],
                                     (long long)s->key);
            return ATTEMPT_DONE;
        }
    op->key = s->key;
    for (int i = 0; i < op->count; i++) {
        Tensor **value = &s->values[op->indices[i]];
        op->values[i] = tensor_ref(*value);
        if (op->peek) continue;
        m->bytes -= (int64_t)tensor_bytes(*value);
        tensor_unref(*value);
        *value = NULL;
        s->present--;
    }
    if (!op->peek && !s->present) drop(m, at);
    return ATTEMPT_DONE;
}

static void finish(Waiter *w) {
    MapOp *op = (MapOp *)w;
    KernelContext *k = op->k;
    Error *err = w->error;
    int first = op->any_key ? 1 : 0;
    if (!err && op->any_key) kernel_set_output(k, 0, tensor_scalar_i64(op->key));
    for (int i = first; !err && i < k->output_count; i++) {
        if (op->values[i - first]->dtype != kernel_output_type(k, i))
            err = error_invalid("Component %d of the staging map has type %s", i - first,
                                dtype_name(op->values[i - first]->dtype));
        else
            kernel_set_output(k, i, tensor_ref(op->values[i - first]));
    }
    for (int i = 0; i < op->count; i++) tensor_unref(op->values[i]);
    free(op->values);
    resource_unref(&op->map->base);
    free(op);
    kernel_done(k, err);
}

/* Reads and checks the indices and, where it comes before them, the key; makes the operation. */
static Error *op_new(KernelContext *k, int indices_input, int expected, MapOp **out) {
    const Tensor *indices = k->in[indices_input];
    StagingMap *m;
    int64_t key = 0;
    if (indices_input > 0 && k->in[0]->shape.rank != 0)
        return error_invalid("key must be an int64 scalar, got tensor with shape: %s", shape_text(&k->in[0]->shape).text);
    if (indices_input > 0) key = tensor_index(k->in[0], 0);
    Error *err = find(k, &m);
    if (err) return err;
    MapOp *op = xcalloc(1, sizeof *op);
    op->map = m;
    op->key = key;
    op->count = (int)indices->count;
    if (!indices->count)
        err = error_invalid("Indices are empty");
    else if (indices->count > 64 || indices->count != expected)
        err = error_invalid("Number of indices %lld does not match the number of values %d", (long long)indices->count,
                            expected);
    for (int i = 0; !err && i < op->count; i++) {
        op->indices[i] = tensor_i32(indices)[i];
        if (op->indices[i] < 0 || op->indices[i] >= m->components)
            err = error_invalid("Index '%d' for key '%lld' was out of bounds '%d'.", op->indices[i], (long long)key, m->components);
        else if (i && op->indices[i] <= op->indices[i - 1])
            err = error_invalid("Indices are not strictly ordered");
    }
    if (err) {
        resource_unref(&m->base);
        free(op);
        return err;
    }
    op->values = xcalloc((size_t)op->count + 1, sizeof *op->values);
    *out = op;
    return NULL;
}

static void start(KernelContext *k, MapOp *op, AttemptResult (*attempt)(Waiter *), int line) {
    op->waiter.attempt = attempt;
    op->waiter.finish = finish;
    op->waiter.cancel_text = "Staging operation was cancelled";
    op->k = kernel_defer(k);
    wait_room_enter(&op->map->room, line, &op->waiter, kernel_cancel(op->k));
}

/* What can never fit is not waited for. */
static Error *check_limit(const MapOp *op) {
    int64_t bytes = bytes_to_put(op), limit = op->map->memory_limit;
    if (limit <= 0 || bytes <= limit) return NULL;
    return error_new(CODE_RESOURCE_EXHAUSTED,
                     "Attempted to insert tensors with combined size of '%lld' bytes into Staging Area with a memory limit of '%lld'.",
                     (long long)bytes, (long long)limit);
}

static Error *run_put(KernelContext *k) {
    MapOp *op;
    Error *err = op_new(k, 1, k->input_count - 2, &op);
    if (err) return err;
    for (int i = 0; i < op->count; i++) {
        op->values[i] = tensor_ref(k->in[2 + i]);
        if (!err && op->values[i]->dtype != op->map->types[op->indices[i]])
            err = error_invalid("Component %d of the staging map has type %s, got %s", op->indices[i],
                                dtype_name(op->map->types[op->indices[i]]), dtype_name(op->values[i]->dtype));
    }
    if (!err) err = check_limit(op);
    if (err) {
        for (int i = 0; i < op->count; i++) tensor_unref(op->values[i]);
        free(op->values);
        resource_unref(&op->map->base);
        free(op);
        return err;
    }
    start(k, op, try_put, LINE_PUT);
    return NULL;
}

static Error *get(KernelContext *k, bool peek) {
    MapOp *op;
    Error *err = op_new(k, 1, k->output_count, &op);
    if (err) return err;
    op->peek = peek;
    start(k, op, try_get, peek ? LINE_PEEK : LINE_GET);
    return NULL;
}

static Error *run_peek(KernelContext *k) {
    return get(k, true);
}
static Error *run_get(KernelContext *k) {
    return get(k, false);
}

static Error *run_get_any(KernelContext *k) {
    MapOp *op;
    Error *err = op_new(k, 0, k->output_count - 1, &op);
    if (err) return err;
    op->any_key = true;
    start(k, op, try_get, LINE_GET);
    return NULL;
}

static Error *size(KernelContext *k, bool complete) {
    StagingMap *m;
    int32_t n = 0;
    Error *err = find(k, &m);
    if (err) return err;
    wait_room_lock(&m->room);
    for (size_t i = 0; i < m->count; i++) n += m->items[i].complete == complete;
    wait_room_unlock(&m->room);
    kernel_set_output(k, 0, tensor_scalar_i32(n));
    resource_unref(&m->base);
    return NULL;
}

static Error *run_size(KernelContext *k) {
    return size(k, true);
}
static Error *run_incomplete_size(KernelContext *k) {
    return size(k, false);
}

static Error *run_clear(KernelContext *k) {
    StagingMap *m;
    Error *err = find(k, &m);
    if (err) return err;
    wait_room_lock(&m->room);
    while (m->count) drop(m, m->count - 1);
    wait_room_unlock(&m->room);
    resource_unref(&m->base);
    return NULL;
}

#define MAP_OP(op_name, run_fn, more_flags)                                                           \
    {                                                                                                 \
        op_name, .run = run_fn, .state_size = sizeof(MapState), .init = init_map, .clear = clear_map, \
                 .flags = more_flags                                                                  \
    }

const KernelDef map_staging_cpu[] = {
    MAP_OP("MapStage", run_put, KERNEL_DEFERS),
    MAP_OP("MapPeek", run_peek, KERNEL_DEFERS),
    MAP_OP("MapUnstage", run_get, KERNEL_DEFERS),
    MAP_OP("MapUnstageNoKey", run_get_any, KERNEL_DEFERS),
    MAP_OP("MapSize", run_size, 0),
    MAP_OP("MapIncompleteSize", run_incomplete_size, 0),
    MAP_OP("MapClear", run_clear, 0),
    MAP_OP("OrderedMapStage", run_put, KERNEL_DEFERS),
    MAP_OP("OrderedMapPeek", run_peek, KERNEL_DEFERS),
    MAP_OP("OrderedMapUnstage", run_get, KERNEL_DEFERS),
    MAP_OP("OrderedMapUnstageNoKey", run_get_any, KERNEL_DEFERS),
    MAP_OP("OrderedMapSize", run_size, 0),
    MAP_OP("OrderedMapIncompleteSize", run_incomplete_size, 0),
    MAP_OP("OrderedMapClear", run_clear, 0),
    {0},
};
