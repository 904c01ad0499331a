/* cache.c: CacheDataset: what the first full pass gave is given again, from memory or from a file. */
#include <stdlib.h>
#include <time.h>

#include "base/memory.h"
#include "io/bundle.h"
#include "ops/dataset/dataset.h"
#include "ops/op_list.h"

const OpDef dataset_cache_ops[] = {
    {"CacheDataset", "input_dataset: variant, filename: string -> handle: variant",
     "output_types: list(type) >= 1; output_shapes: list(shape) >= 1; metadata: string = ''", 0},
    {"CacheDatasetV2", "input_dataset: variant, filename: string, cache: resource -> handle: variant",
     "output_types: list(type) >= 1; output_shapes: list(shape) >= 1; metadata: string = ''", OP_STATEFUL},
    {"DummyMemoryCache", "-> handle: resource", "", OP_STATEFUL},
    {"AnonymousMemoryCache", "-> handle: resource, deleter: variant", "", OP_STATEFUL},
    {"DeleteMemoryCache", "handle: resource, deleter: variant ->", "", OP_STATEFUL},
    {0},
};

/* ---- Elements in memory ---- */

typedef struct MemoryCache {
    Resource base;
    pthread_mutex_t mutex; /* guards all below */
    Tensor ***elements;    /* unchanging once complete */
    int64_t count;
    int component_count;
    bool complete;
} MemoryCache;

static void free_elements(Tensor ***elements, int64_t count, int component_count) {
    for (int64_t i = 0; i < count; i++) tuple_free(elements[i], component_count);
    free(elements);
}

static void destroy_cache(Resource *r) {
    MemoryCache *m = (MemoryCache *)r;
    free_elements(m->elements, m->count, m->component_count);
    pthread_mutex_destroy(&m->mutex);
    free(m);
}

static const ResourceType memory_cache_type = {
    .type_name = "N10tensorflow4data18MemoryCacheManagerE", .what = "memory cache", .destroy = destroy_cache};

static MemoryCache *cache_new(void) {
    MemoryCache *m = xcalloc(1, sizeof *m);
    resource_init(&m->base, &memory_cache_type);
    pthread_mutex_init(&m->mutex, NULL);
    return m;
}

static bool cache_is_complete(MemoryCache *m) {
    pthread_mutex_lock(&m->mutex);
    bool complete = m->complete;
    pthread_mutex_unlock(&m->mutex);
    return complete;
}

/* ---- The dataset ---- */

typedef struct CacheDataset {
    Dataset base;
    MemoryCache *cache; /* a reference */
    char *path;         /* of a file; NULL: memory */
} CacheDataset;

typedef enum CacheMode { CACHE_UNDECIDED, CACHE_WRITE, CACHE_READ } CacheMode;

typedef struct CacheIterator {
    DatasetIterator base;
    CacheMode mode;
    Tensor ***elements; /* writing to memory: so far */
    size_t capacity;
    int64_t at;
    char *lock;     /* a file that says that this iterator is writing; removed with it */
    int64_t shards; /* finished parts of the file: each state that was saved ends one */
    BundleWriter *writer;
    Bundle *reader;
    bool ended;
} CacheIterator;

static void close_writer(CacheIterator *i) {
    bundle_writer_close(i->writer);
    if (i->lock) error_free(file_system_local.remove(i->lock));
    free(i->lock);
    i->lock = NULL;
    i->writer = NULL;
}

static void stop_cache(DatasetIterator *it) {
    CacheIterator *i = (CacheIterator *)it;
    if (i->elements) free_elements(i->elements, i->at, it->dataset->component_count);
    close_writer(i);
    if (i->reader) bundle_close(i->reader);
    i->elements = NULL;
    i->reader = NULL;
}

static char *shard_path(const char *path, int64_t shard) {
    return xasprintf("%s_%lld", path, (long long)shard);
}

/* As TensorFlow names them: item and component, padded. */
static char *entry_name(int64_t item, int component, int component_count) {
    int digits = 1;
    for (int n = component_count - 1; n >= 10; n /= 10) digits++;
    return xasprintf("%7lld_%*d", (long long)item, digits, component);
}

static bool file_is_complete(const char *path) {
    char *index = xasprintf("%s.index", path);
    bool there = file_system_local.exists(index);
    free(index);
    return there;
}

/* Two that write the same file would spoil it. */
static Error *take_lock(CacheIterator *i, const char *path) {
    char *lock = xasprintf("%s.lockfile", path), *said = NULL;
    size_t len = 0;
    Error *err = NULL;
    if (file_system_local.exists(lock)) {
        error_free(file_read_all(&file_system_local, lock, &said, &len));
        err = error_new(CODE_ALREADY_EXISTS,
                        "There appears to be a concurrent caching iterator running - cache lockfile already exists "
                        "('%s'). If you are sure no other running TF computations are using this cache prefix, delete "
                        "the lockfile and re-initialize the iterator. Lockfile contents: %.*s",
                        lock, (int)len, said ? said : "");
        free(said);
    } else {
        char *text = xasprintf("Created at: %lld", (long long)time(NULL));
        err = file_write_all(&file_system_local, lock, str_of(text));
        free(text);
    }
    if (err)
        free(lock);
    else
        i->lock = lock;
    return err;
}

/* The next part of the file. */
static Error *open_writer(CacheIterator *i) {
    char *path = shard_path(((CacheDataset *)i->base.dataset)->path, i->shards);
    Error *err = take_lock(i, path);
    if (!err) err = bundle_writer_open(&file_system_local, path, &i->writer);
    free(path);
    return err;
}

static Error *choose_mode(CacheIterator *i, IteratorContext *c) {
    CacheDataset *d = (CacheDataset *)i->base.dataset;
    Error *err = NULL;
    if (d->path ? file_is_complete(d->path) : cache_is_complete(d->cache)) {
        if (d->path) err = bundle_open(&file_system_local, d->path, &i->reader);
        if (!err && !d->path && d->cache->component_count != d->base.component_count)
            err = error_invalid("The memory cache holds elements of another dataset");
        if (!err) i->mode = CACHE_READ;
        return err;
    }
    if (d->path) err = open_writer(i);
    if (!err) err = iterator_start_input(&i->base, c);
    if (!err) i->mode = CACHE_WRITE;
    if (err) stop_cache(&i->base);
    return err;
}

static Error *keep(CacheIterator *i, Tensor *const *element) {
    int n = i->base.dataset->component_count;
    Error *err = NULL;
    if (!((CacheDataset *)i->base.dataset)->path) {
        i->elements = vec_reserve(i->elements, &i->capacity, (size_t)i->at + 1, sizeof *i->elements);
        i->elements[i->at] = tuple_new(n);
        tuple_copy(i->elements[i->at++], element, n);
        return NULL;
    }
    if (!i->writer) err = open_writer(i);
    for (int j = 0; !err && j < n; j++) {
        char *name = entry_name(i->at, j, n);
        err = bundle_writer_add(i->writer, str_of(name), element[j]);
        free(name);
    }
    i->at++;
    return err;
}

static Error *end_shard(CacheIterator *i) {
    Error *err = i->writer ? bundle_writer_finish(i->writer) : NULL;
    if (!err && i->writer) i->shards++;
    close_writer(i);
    return err;
}

static Error *join_shards(CacheIterator *i, const char *path) {
    char **parts = xcalloc((size_t)i->shards + 1, sizeof *parts);
    for (int64_t j = 0; j < i->shards; j++) parts[j] = shard_path(path, j);
    Error *err = bundle_merge(&file_system_local, (const char *const *)parts, (int)i->shards, path, false);
    for (int64_t j = 0; j < i->shards; j++) free(parts[j]);
    free(parts);
    return err;
}

/* The input has ended: what was kept is the cache now, unless another iterator was faster. */
static Error *complete(CacheIterator *i) {
    const CacheDataset *d = (const CacheDataset *)i->base.dataset;
    MemoryCache *m = d->cache;
    if (d->path) {
        Error *err = end_shard(i);
        return err ? err : join_shards(i, d->path);
    }
    pthread_mutex_lock(&m->mutex);
    if (!m->complete) {
        m->elements = i->elements;
        m->count = i->at;
        m->component_count = i->base.dataset->component_count;
        m->complete = true;
        i->elements = NULL;
    }
    pthread_mutex_unlock(&m->mutex);
    return NULL;
}

static Error *next_written(CacheIterator *i, IteratorContext *c, Tensor **out, bool *end) {
    Error *err = iterator_next(i->base.input, c, out, end);
    if (err) return err;
    if (!*end) return keep(i, out);
    err = complete(i);
    stop_cache(&i->base);
    i->ended = true;
    return err;
}

static Error *next_read(CacheIterator *i, Tensor **out, bool *end) {
    Dataset *d = i->base.dataset;
    MemoryCache *m = ((CacheDataset *)d)->cache;
    Error *err = NULL;
    if (!i->reader) {
        *end = i->at >= m->count;
        if (!*end) tuple_copy(out, m->elements[i->at++], d->component_count);
        return NULL;
    }
    for (int j = 0; !err && !*end && j < d->component_count; j++) {
        char *name = entry_name(i->at, j, d->component_count);
        *end = !bundle_has(i->reader, str_of(name));
        if (!*end) err = bundle_read(i->reader, str_of(name), &out[j]);
        if (!err && !*end && out[j]->dtype != d->types[j])
            err = error_invalid("The cache file %s holds elements of another dataset", ((CacheDataset *)d)->path);
        free(name);
    }
    i->at++;
    return err;
}

static Error *next_cached(DatasetIterator *it, IteratorContext *c, Tensor **out, bool *end) {
    CacheIterator *i = (CacheIterator *)it;
    *end = i->ended;
    Error *err = i->mode == CACHE_UNDECIDED ? choose_mode(i, c) : NULL;
    if (err || *end) return err;
    return i->mode == CACHE_WRITE ? next_written(i, c, out, end) : next_read(i, out, end);
}

/* The state has all that was cached in memory: the cache itself is gone when it is restored. A file ends its part, and the next one follows. */
static Error *save_cache(DatasetIterator *it, IteratorState *s) {
    CacheIterator *i = (CacheIterator *)it;
    const CacheDataset *d = (const CacheDataset *)it->dataset;
    Error *err = d->path && i->mode == CACHE_WRITE && !i->ended ? end_shard(i) : NULL;
    if (err) return err;
    state_put_int(s, i->mode);
    state_put_int(s, i->ended);
    state_put_int(s, i->at);
    state_put_int(s, i->shards);
    bool reads = i->mode == CACHE_READ || i->ended;
    int64_t count = d->path ? 0 : reads ? d->cache->count : i->at;
    Tensor ***elements = reads ? d->cache->elements : i->elements;
    state_put_int(s, count);
    for (int64_t j = 0; !err && j < count; j++) err = state_put_element(s, elements[j], it->dataset->component_count);
    return err || reads || i->mode == CACHE_UNDECIDED ? err : iterator_save_input(it, s);
}

static Error *restore_cache(DatasetIterator *it, IteratorContext *c, IteratorState *s) {
    CacheIterator *i = (CacheIterator *)it;
    CacheDataset *d = (CacheDataset *)it->dataset;
    int64_t mode = 0, ended = 0, at = 0, shards = 0, count = 0;
    Error *err = state_get_range(s, CACHE_UNDECIDED, CACHE_READ, &mode);
    if (!err) err = state_get_range(s, 0, 1, &ended);
    if (!err) err = state_get_range(s, 0, INT64_MAX, &at);
    if (!err) err = state_get_range(s, 0, INT32_MAX, &shards);
    if (!err) err = state_get_range(s, 0, d->path ? 0 : INT64_MAX, &count);
    for (int64_t j = 0; !err && j < count; j++) {
        Tensor **element = tuple_new(d->base.component_count);
        err = state_get_element(s, d->base.types, d->base.component_count, element);
        if (!err) err = keep(i, element);
        tuple_free(element, d->base.component_count);
    }
    if (err || mode == CACHE_UNDECIDED) return err;
    i->ended = ended;
    i->mode = (CacheMode)mode;
    if (mode == CACHE_WRITE && !ended) {
        if (d->path) i->at = at, i->shards = shards;
        return iterator_restore_input(it, c, s);
    }
    if (!d->path) err = complete(i);
    if (i->elements) free_elements(i->elements, i->at, d->base.component_count);
    i->elements = NULL;
    i->at = at;
    return d->path && !ended ? bundle_open(&file_system_local, d->path, &i->reader) : err;
}

static int64_t count_input(const Dataset *d) {
    return dataset_cardinality(d->inputs[0]);
}

static void destroy_cache_dataset(Dataset *d) {
    resource_unref(&((CacheDataset *)d)->cache->base);
    free(((CacheDataset *)d)->path);
}

static const DatasetKind cache_kind = {.name = "Cache",
                                       .size = sizeof(CacheDataset),
                                       .iterator_size = sizeof(CacheIterator),
                                       .destroy = destroy_cache_dataset,
                                       .cardinality = count_input,
                                       .next = next_cached,
                                       .save = save_cache,
                                       .restore = restore_cache,
                                       .stop = stop_cache};

static Error *run_cache(KernelContext *k) {
    Dataset *in = NULL;
    Str path = STR("");
    Resource *shared = NULL;
    Error *err = kernel_dataset(k, 0, &in);
    if (!err) err = kernel_string(k, 1, "filename", &path);
    if (err) return err;
    if (k->input_count > 2) { /* a dummy handle names nothing: the cache is the dataset's own */
        err = kernel_resource(k, 2, &memory_cache_type, &shared);
        if (err && err->code != CODE_NOT_FOUND) return err;
        if (err) shared = NULL;
        error_free(err);
    }
    CacheDataset *d = (CacheDataset *)dataset_like(&cache_kind, in);
    d->cache = shared ? (MemoryCache *)shared : cache_new();
    d->path = path.len ? str_dup(path) : NULL;
    kernel_set_dataset(k, 0, &d->base);
    return NULL;
}

static void release(void *direct) {
    resource_unref(direct);
}

static Error *run_dummy(KernelContext *k) {
    kernel_set_output(k, 0, kernel_make_handle(k, STR(""), STR("dummy_memory_cache"), &memory_cache_type));
    return NULL;
}

static Error *run_anonymous(KernelContext *k) {
    Tensor *t = kernel_make_handle(k, STR(""), STR("anonymous_memory_cache"), &memory_cache_type);
    if (!t) return NULL;
    ResourceHandle *h = tensor_handles(t)[0];
    h->direct = cache_new();
    h->release_direct = release;
    kernel_set_output(k, 0, t);
    kernel_output(k, 1, &SHAPE_SCALAR);
    return NULL;
}

static Error *run_delete(KernelContext *k) {
    (void)k; /* it goes with its last handle */
    return NULL;
}

const KernelDef dataset_cache_cpu[] = {
    {"CacheDataset", .run = run_cache},       {"CacheDatasetV2", .run = run_cache},
    {"DummyMemoryCache", .run = run_dummy},   {"AnonymousMemoryCache", .run = run_anonymous},
    {"DeleteMemoryCache", .run = run_delete}, {0},
};
