/* multi_device_iterator.c: MultiDeviceIterator: one sequence dealt out to several devices, an element to each in turn.

   Element i is of shard i modulo the number of devices, whoever asks first. Who asks for an element that is still
   behind others pulls those too, up to max_buffer_size for each other shard; then it waits for them to be taken. */
#include <pthread.h>
#include <stdlib.h>

#include "base/memory.h"
#include "ops/dataset/element_list.h"
#include "ops/dataset/iterator_resource.h"
#include "ops/dataset/string_handle.h"
#include "ops/op_list.h"

const OpDef dataset_multi_device_ops[] = {
    {"MultiDeviceIterator", "-> handle: resource",
     "devices: list(string) >= 1; shared_name: string; container: string; output_types: list(type) >= 1; "
     "output_shapes: list(shape) >= 1",
     OP_STATEFUL},
    {"MultiDeviceIteratorInit",
     "dataset: variant, multi_device_iterator: resource, max_buffer_size: int64 -> incarnation_id: int64", "",
     OP_STATEFUL},
    {"MultiDeviceIteratorGetNextFromShard",
     "multi_device_iterator: resource, shard_num: int32, incarnation_id: int64 -> components: output_types",
     "output_types: list(type) >= 1; output_shapes: list(shape) >= 1", OP_STATEFUL},
    {"MultiDeviceIteratorToStringHandle", "multi_device_iterator: resource -> string_handle: string", "", OP_STATEFUL},
    {"MultiDeviceIteratorFromStringHandle", "string_handle: string -> multi_device_iterator: resource",
     "output_types: list(type) >= 0 = []; output_shapes: list(shape) >= 0 = []", OP_STATEFUL},
    {"AnonymousMultiDeviceIterator", "-> handle: resource, deleter: variant",
     "devices: list(string) >= 1; output_types: list(type) >= 1; output_shapes: list(shape) >= 1", OP_STATEFUL},
    {"AnonymousMultiDeviceIteratorV3", "-> handle: resource",
     "devices: list(string) >= 1; output_types: list(type) >= 1; output_shapes: list(shape) >= 1", OP_STATEFUL},
    {"DeleteMultiDeviceIterator", "multi_device_iterator: resource, iterators: N * resource, deleter: variant ->",
     "N: int >= 0", OP_STATEFUL},
    {0},
};

/* An element that was pulled for a shard and waits for it. */
typedef struct Dealt {
    Tensor **element;
    Error *err; /* instead of it */
    struct Dealt *next;
} Dealt;

typedef struct Shard {
    Dealt *first, *last;
    int64_t count;
} Shard;

typedef struct MultiDeviceIterator {
    Resource base;
    int shard_count, component_count;
    ThreadPool *blocking;  /* of one that its handle owns */
    pthread_mutex_t mutex; /* guards all below */
    pthread_cond_t changed;
    IteratorResource *source;
    Shard *shards;
    int64_t max_buffer, incarnation;
    int turn; /* the shard of the next element */
    bool pulling, ended;
} MultiDeviceIterator;

static void dealt_free(Dealt *d, int components) {
    tuple_free(d->element, components);
    error_free(d->err);
    free(d);
}

static Dealt *take_first(Shard *s) {
    Dealt *d = s->first;
    s->first = d->next;
    if (!s->first) s->last = NULL;
    s->count--;
    return d;
}

static void clear_shards_locked(MultiDeviceIterator *m) {
    for (int i = 0; i < m->shard_count; i++)
        while (m->shards[i].first) dealt_free(take_first(&m->shards[i]), m->component_count);
    m->turn = 0;
    m->ended = false;
}

static void destroy_multi(Resource *r) {
    MultiDeviceIterator *m = (MultiDeviceIterator *)r;
    clear_shards_locked(m);
    resource_unref((Resource *)m->source);
    pthread_mutex_destroy(&m->mutex);
    pthread_cond_destroy(&m->changed);
    free(m->shards);
    free(m);
}

static void cancel_multi(Resource *r) {
    iterator_resource_type.cancel((Resource *)((MultiDeviceIterator *)r)->source);
}

static const ResourceType multi_device_iterator_type = {
    .type_name = "N10tensorflow4data12_GLOBAL__N_119MultiDeviceIteratorE",
    .what = "multi-device iterator",
    .destroy = destroy_multi,
    .cancel = cancel_multi};

/* ---- Making ---- */

static Error *make(KernelContext *k, MultiDeviceIterator **out) {
    Str *devices = NULL;
    DataType *types = NULL;
    PartialShape *shapes = NULL;
    int device_count = 0, type_count = 0, shape_count = 0;
    Error *err = node_attr_strings(k->node, "devices", &devices, &device_count);
    if (!err) err = node_attr_types(k->node, "output_types", &types, &type_count);
    if (!err) err = node_attr_shapes(k->node, "output_shapes", &shapes, &shape_count);
    if (!err && type_count != shape_count)
        err = error_invalid("output_types and output_shapes must be of the same length, not %d and %d", type_count,
                            shape_count);
    if (!err && device_count < 1) err = error_invalid("A MultiDeviceIterator needs a device");
    if (!err) {
        MultiDeviceIterator *m = xcalloc(1, sizeof *m);
        resource_init(&m->base, &multi_device_iterator_type);
        pthread_mutex_init(&m->mutex, NULL);
        pthread_cond_init(&m->changed, NULL);
        m->shard_count = device_count;
        m->component_count = type_count;
        m->shards = xcalloc((size_t)device_count, sizeof *m->shards);
        m->source = iterator_resource_new(types, shapes, type_count);
        *out = m;
    }
    free(devices);
    free(types);
    free(shapes);
    return err;
}

static Error *create(KernelContext *k, Str name, Resource **out) {
    MultiDeviceIterator *m = NULL;
    (void)name;
    Error *err = make(k, &m);
    if (!err) *out = &m->base;
    return err;
}

static Error *run_named(KernelContext *k) {
    Resource *r = NULL;
    Error *err = kernel_own_resource(k, &multi_device_iterator_type, false, create, &r);
    if (!err) resource_unref(r);
    return err;
}

static void drop(void *arg) {
    resource_unref(arg);
}

/* The last handle may go on a thread that must not wait for those of the pipeline. */
static void release(void *direct) {
    MultiDeviceIterator *m = direct;
    threadpool_post(m->blocking, drop, m);
}

static Error *run_anonymous(KernelContext *k) {
    MultiDeviceIterator *m = NULL;
    Error *err = make(k, &m);
    if (err) return err;
    Tensor *t = kernel_make_handle(k, STR(""), STR("anonymous_multi_device_iterator"), &multi_device_iterator_type);
    if (!t) {
        resource_unref(&m->base);
        return NULL;
    }
    m->blocking = kernel_blocking_pool(k);
    tensor_handles(t)[0]->direct = m;
    tensor_handles(t)[0]->release_direct = release;
    kernel_set_output(k, 0, t);
    if (k->output_count > 1) kernel_output(k, 1, &SHAPE_SCALAR);
    return NULL;
}

static Error *find(KernelContext *k, int i, MultiDeviceIterator **out) {
    Resource *r = NULL;
    Error *err = kernel_resource(k, i, &multi_device_iterator_type, &r);
    if (!err) *out = (MultiDeviceIterator *)r;
    return err;
}

static void done(KernelContext *k, MultiDeviceIterator *m, Error *err) {
    if (!err) {
        err = k->error;
        k->error = NULL;
    }
    resource_unref(&m->base);
    kernel_done(k, err);
}

/* ---- Beginning ---- */

static bool nobody_pulls(void *arg) {
    return !((MultiDeviceIterator *)arg)->pulling;
}

static void begin(KernelContext *k, void *arg) {
    MultiDeviceIterator *m = arg;
    Dataset *d = NULL;
    int64_t size = 0, incarnation = 0;
    IteratorContext c = {.cancel = kernel_cancel(k)};
    Error *err = kernel_dataset(k, 0, &d);
    if (!err) err = kernel_int64(k, 2, "max_buffer_size", &size);
    pthread_mutex_lock(&m->mutex);
    bool mine = !err && iterator_wait(&c, &m->mutex, &m->changed, nobody_pulls, m);
    if (mine) m->pulling = true;
    pthread_mutex_unlock(&m->mutex);
    if (!err && !mine) err = iterator_cancelled(&c);
    if (!err) err = iterator_resource_set(m->source, k, d);
    pthread_mutex_lock(&m->mutex);
    if (mine) m->pulling = false;
    if (!err) {
        clear_shards_locked(m);
        m->max_buffer = size;
        incarnation = ++m->incarnation;
    }
    pthread_cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->mutex);
    if (!err) kernel_set_output(k, 0, tensor_scalar_i64(incarnation));
    done(k, m, err);
}

static Error *run_begin(KernelContext *k) {
    MultiDeviceIterator *m = NULL;
    Error *err = find(k, 1, &m);
    if (!err) kernel_block(k, begin, m);
    return err;
}

/* ---- Dealing ---- */

typedef struct Asked {
    MultiDeviceIterator *m;
    int shard;
    int64_t incarnation;
} Asked;

static bool may_pull(const Asked *a) {
    const MultiDeviceIterator *m = a->m;
    return !m->pulling && (m->turn == a->shard || m->shards[m->turn].count < m->max_buffer);
}

static bool can_go_on(void *arg) {
    const Asked *a = arg;
    const MultiDeviceIterator *m = a->m;
    return m->incarnation != a->incarnation || m->shards[a->shard].first || (m->ended && !m->pulling) || may_pull(a);
}

/* Pulls the next element for the shard whose turn it is; with the mutex held, but not meanwhile. Only a step that was
 * cancelled fails itself: other errors are dealt out like elements. */
static Error *pull_locked(MultiDeviceIterator *m, KernelContext *k) {
    m->pulling = true;
    pthread_mutex_unlock(&m->mutex);
    Dealt *d = xcalloc(1, sizeof *d);
    int count = 0;
    d->err = iterator_resource_next(m->source, k, &d->element, &count);
    pthread_mutex_lock(&m->mutex);
    m->pulling = false;
    Error *cancelled = cancel_is_set(kernel_cancel(k)) ? d->err : NULL;
    if (cancelled || (!d->err && !d->element)) {
        m->ended = !cancelled;
        free(d);
    } else {
        Shard *s = &m->shards[m->turn];
        if (s->last)
            s->last->next = d;
        else
            s->first = d;
        s->last = d;
        s->count++;
        m->turn = (m->turn + 1) % m->shard_count;
    }
    pthread_cond_broadcast(&m->changed);
    return cancelled;
}

/* Its next element, the caller's; NULL at the end. */
static Error *deal(Asked *a, KernelContext *k, Dealt **out) {
    MultiDeviceIterator *m = a->m;
    IteratorContext c = {.cancel = kernel_cancel(k)};
    Error *err = NULL;
    *out = NULL;
    pthread_mutex_lock(&m->mutex);
    while (!err && !*out) {
        if (!iterator_wait(&c, &m->mutex, &m->changed, can_go_on, a)) {
            err = iterator_cancelled(&c);
        } else if (m->incarnation != a->incarnation) {
            err = error_invalid("Invalid incarnation id. Provided: %lld; Expected: %lld", (long long)a->incarnation,
                                (long long)m->incarnation);
        } else if (m->shards[a->shard].first) {
            *out = take_first(&m->shards[a->shard]);
            pthread_cond_broadcast(&m->changed);
        } else if (m->ended) {
            break;
        } else {
            err = pull_locked(m, k);
        }
    }
    pthread_mutex_unlock(&m->mutex);
    return err;
}

static Error *set_outputs(KernelContext *k, Tensor **element, int count) {
    if (count != k->output_count)
        return error_invalid("Number of components does not match: expected %d types but got %d.", k->output_count,
                             count);
    for (int i = 0; i < count; i++)
        if (element[i]->dtype != kernel_output_type(k, i))
            return error_invalid("Data type mismatch at component %d: expected %s but got %s.", i,
                                 dtype_name(kernel_output_type(k, i)), dtype_name(element[i]->dtype));
    for (int i = 0; i < count; i++) {
        kernel_set_output(k, i, element[i]);
        element[i] = NULL;
    }
    return NULL;
}

static void get_next(KernelContext *k, void *arg) {
    MultiDeviceIterator *m = arg;
    Asked a = {.m = m};
    int64_t shard = 0;
    Dealt *d = NULL;
    Error *err = kernel_int64(k, 1, "shard_num", &shard);
    if (!err) err = kernel_int64(k, 2, "incarnation_id", &a.incarnation);
    if (!err && (shard < 0 || shard >= m->shard_count))
        err = error_invalid("shard_num %lld is not in [0, %d)", (long long)shard, m->shard_count);
    a.shard = (int)shard;
    if (!err) err = deal(&a, k, &d);
    if (!err && !d) err = error_new(CODE_OUT_OF_RANGE, "End of sequence");
    if (!err && d->err) {
        err = d->err;
        d->err = NULL;
    }
    if (!err) err = set_outputs(k, d->element, m->component_count);
    if (d) dealt_free(d, m->component_count);
    done(k, m, err);
}

static Error *run_get_next(KernelContext *k) {
    MultiDeviceIterator *m = NULL;
    Error *err = find(k, 0, &m);
    if (!err) kernel_block(k, get_next, m);
    return err;
}

/* ---- Handles ---- */

static Error *run_to_string(KernelContext *k) {
    MultiDeviceIterator *m = NULL;
    Error *err = find(k, 0, &m);
    if (err) return err;
    resource_unref(&m->base);
    return kernel_handle_to_string(k);
}

static Error *run_from_string(KernelContext *k) {
    Resource *r = NULL;
    Tensor *handle = NULL;
    Error *err = kernel_handle_from_string(k, &multi_device_iterator_type, &r, &handle);
    if (err) return err;
    resource_unref(r);
    kernel_set_output(k, 0, handle);
    return NULL;
}

static Error *run_delete(KernelContext *k) {
    (void)k; /* it goes with its last handle */
    return NULL;
}

const KernelDef dataset_multi_device_cpu[] = {
    {"MultiDeviceIterator", .run = run_named},
    {"AnonymousMultiDeviceIterator", .run = run_anonymous},
    {"AnonymousMultiDeviceIteratorV3", .run = run_anonymous},
    {"MultiDeviceIteratorInit", .run = run_begin, .flags = KERNEL_DEFERS},
    {"MultiDeviceIteratorGetNextFromShard", .run = run_get_next, .flags = KERNEL_DEFERS},
    {"MultiDeviceIteratorToStringHandle", .run = run_to_string},
    {"MultiDeviceIteratorFromStringHandle", .run = run_from_string},
    {"DeleteMultiDeviceIterator", .run = run_delete},
    {0},
};
