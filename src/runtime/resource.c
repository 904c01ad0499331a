/* resource.c: resource managers, and variables. */
#include "runtime/resource.h"

#include <stdlib.h>
#include <string.h>

#include "base/hashmap.h"
#include "base/memory.h"

void resource_init(Resource *r, const ResourceType *type) {
    refcount_init(&r->refs);
    r->type = type;
}

void resource_ref(Resource *r) {
    refcount_inc(&r->refs);
}

void resource_unref(Resource *r) {
    if (r && refcount_dec(&r->refs)) r->type->destroy(r);
}

typedef struct Entry {
    char *key; /* container 0 type 0 name */
    size_t key_len;
    size_t container_len;
    Resource *resource;
} Entry;

struct ResourceManager {
    RefCount refs;
    pthread_mutex_t mutex; /* guards entries and containers */
    StrMap entries;
    StrMap containers; /* names of those that had something in them since they were last cleared, to copies of them */
    char *default_container;
};

ResourceManager *resource_manager_new(Str default_container) {
    ResourceManager *m = xcalloc(1, sizeof *m);
    refcount_init(&m->refs);
    pthread_mutex_init(&m->mutex, NULL);
    m->default_container = str_dup(default_container);
    return m;
}

ResourceManager *resource_manager_ref(ResourceManager *m) {
    refcount_inc(&m->refs);
    return m;
}

Str resource_default_container(const ResourceManager *m) {
    return str_of(m->default_container);
}

static void entry_free(Entry *e) {
    if (!e) return;
    if (e->resource && e->resource->type->cancel) e->resource->type->cancel(e->resource);
    resource_unref(e->resource);
    free(e->key);
    free(e);
}

enum { KEY_ROOM = 512 }; /* enough for most keys */

static void put_key(const ResourceManager *m, Str container, Str name, const ResourceType *type, StrBuf *out) {
    strbuf_add(out, container.len ? container : str_of(m->default_container));
    strbuf_addc(out, 0);
    strbuf_add(out, str_of(type->type_name));
    strbuf_addc(out, 0);
    strbuf_add(out, name);
}

static Entry *entry_new(const ResourceManager *m, Str container, Str name, const ResourceType *type) {
    if (!container.len) container = str_of(m->default_container);
    Entry *e = xcalloc(1, sizeof *e);
    StrBuf key = {0};
    put_key(m, container, name, type, &key);
    e->container_len = container.len;
    e->key_len = key.len;
    e->key = strbuf_detach(&key);
    return e;
}

static Str entry_key(const Entry *e) {
    return (Str){e->key, e->key_len};
}

static void forget_containers_locked(ResourceManager *m, const Str *container) {
    size_t at = 0;
    void *name;
    if (container) {
        free(strmap_remove(&m->containers, *container));
        return;
    }
    while (strmap_next(&m->containers, &at, NULL, &name)) free(name);
    strmap_clear(&m->containers);
}

/* Removes all entries of a container (all when container is NULL) and frees them outside the lock. */
static void clear(ResourceManager *m, const Str *container) {
    pthread_mutex_lock(&m->mutex);
    forget_containers_locked(m, container);
    pthread_mutex_unlock(&m->mutex);
    for (;;) {
        Entry *found = NULL;
        size_t at = 0;
        Str key;
        void *value;
        pthread_mutex_lock(&m->mutex);
        while (!found && strmap_next(&m->entries, &at, &key, &value)) {
            Entry *e = value;
            if (!container || str_eq((Str){e->key, e->container_len}, *container)) found = e;
        }
        if (found) strmap_remove(&m->entries, entry_key(found));
        pthread_mutex_unlock(&m->mutex);
        if (!found) return;
        entry_free(found);
    }
}

void resource_manager_free(ResourceManager *m) {
    if (!m || !refcount_dec(&m->refs)) return;
    clear(m, NULL);
    strmap_clear(&m->entries);
    strmap_clear(&m->containers);
    pthread_mutex_destroy(&m->mutex);
    free(m->default_container);
    free(m);
}

void resource_clear_container(ResourceManager *m, Str container) {
    if (!container.len) container = str_of(m->default_container);
    clear(m, &container);
}

void resource_clear_all(ResourceManager *m) {
    clear(m, NULL);
}

int64_t resource_count(ResourceManager *m) {
    pthread_mutex_lock(&m->mutex);
    int64_t n = (int64_t)m->entries.count;
    pthread_mutex_unlock(&m->mutex);
    return n;
}

static Resource *find(ResourceManager *m, Str container, Str name, const ResourceType *type) {
    char room[KEY_ROOM];
    StrBuf key = strbuf_in(room, sizeof room);
    put_key(m, container, name, type, &key);
    pthread_mutex_lock(&m->mutex);
    Entry *e = strmap_get(&m->entries, strbuf_str(&key));
    Resource *r = e ? e->resource : NULL;
    if (r) resource_ref(r);
    pthread_mutex_unlock(&m->mutex);
    strbuf_clear(&key);
    return r;
}

static bool has_container(ResourceManager *m, Str container) {
    pthread_mutex_lock(&m->mutex);
    bool there = strmap_get(&m->containers, container) != NULL;
    pthread_mutex_unlock(&m->mutex);
    return there;
}

static Error *not_found(ResourceManager *m, Str container, Str name, const ResourceType *type) {
    if (!container.len) container = str_of(m->default_container);
    if (!has_container(m, container))
        return error_not_found("Container %.*s does not exist. (Could not find resource: %.*s/%.*s)", STR_ARG(container), STR_ARG(container), STR_ARG(name));
    return error_not_found("Resource %.*s/%.*s/%s does not exist.", STR_ARG(container), STR_ARG(name), type->type_name);
}

Error *resource_find(ResourceManager *m, Str container, Str name, const ResourceType *type, Resource **out) {
    *out = find(m, container, name, type);
    return *out ? NULL : not_found(m, container, name, type);
}

/* Puts e into the map unless its key is there; the resource that is there, or NULL when e went in. */
static Resource *insert(ResourceManager *m, Entry *e) {
    pthread_mutex_lock(&m->mutex);
    Entry *old = strmap_get(&m->entries, entry_key(e));
    Resource *there = old ? old->resource : NULL;
    Str container = {e->key, e->container_len};
    if (there)
        resource_ref(there);
    else
        strmap_put(&m->entries, entry_key(e), e);
    if (!there && !strmap_get(&m->containers, container)) {
        char *name = str_dup(container);
        strmap_put(&m->containers, (Str){name, container.len}, name);
    }
    pthread_mutex_unlock(&m->mutex);
    return there;
}

Error *resource_find_or_create(ResourceManager *m, Str container, Str name, const ResourceType *type, ResourceCreate *create,
                               void *arg, Resource **out) {
    Resource *r = find(m, container, name, type);
    if (r) {
        *out = r;
        return NULL;
    }
    Error *err = create(arg, &r);
    if (err) return err;
    Entry *e = entry_new(m, container, name, type);
    e->resource = r;
    resource_ref(r);
    Resource *there = insert(m, e);
    if (there) { /* another was faster */
        resource_unref(r);
        r = there;
        entry_free(e);
    }
    *out = r;
    return NULL;
}

Error *resource_add(ResourceManager *m, Str container, Str name, Resource *r) {
    Entry *e = entry_new(m, container, name, r->type);
    e->resource = r;
    resource_ref(r);
    Resource *there = insert(m, e);
    if (!there) return NULL;
    resource_unref(there);
    resource_unref(r);
    e->resource = NULL;
    Error *err = error_new(CODE_ALREADY_EXISTS, "Resource %.*s/%.*s/%s", (int)e->container_len, e->key, STR_ARG(name), r->type->type_name);
    entry_free(e);
    return err;
}

Error *resource_delete(ResourceManager *m, Str container, Str name, const ResourceType *type) {
    Entry *probe = entry_new(m, container, name, type);
    pthread_mutex_lock(&m->mutex);
    Entry *e = strmap_remove(&m->entries, entry_key(probe));
    pthread_mutex_unlock(&m->mutex);
    entry_free(probe);
    Str wanted = container.len ? container : str_of(m->default_container);
    if (!e && !has_container(m, wanted)) return error_not_found("Container %.*s does not exist.", STR_ARG(wanted));
    if (!e) return not_found(m, container, name, type);
    entry_free(e);
    return NULL;
}

/* ---- Variables ---- */

static void variable_destroy(Resource *r) {
    Variable *v = (Variable *)r;
    tensor_unref(v->value);
    pthread_mutex_destroy(&v->mutex);
    pthread_cond_destroy(&v->rows_free);
    free(v->name);
    free(v);
}

const ResourceType variable_type = {.type_name = "N10tensorflow3VarE", .what = "variable", .destroy = variable_destroy};

const ResourceType reference_variable_type = {.type_name = "N10tensorflow9LegacyVarE", .what = "variable", .destroy = variable_destroy};

static Variable *new_of_type(const ResourceType *type, DataType dtype, Str name) {
    Variable *v = xcalloc(1, sizeof *v);
    resource_init(&v->base, type);
    pthread_mutex_init(&v->mutex, NULL);
    pthread_cond_init(&v->rows_free, NULL);
    v->dtype = dtype;
    v->name = str_dup(name);
    return v;
}

Variable *variable_new(DataType dtype, Str name) {
    return new_of_type(&variable_type, dtype, name);
}

Variable *reference_variable_new(DataType dtype, Str name) {
    return new_of_type(&reference_variable_type, dtype, name);
}

Tensor *variable_read(Variable *v) {
    pthread_mutex_lock(&v->mutex);
    Tensor *t = tensor_ref(v->value);
    pthread_mutex_unlock(&v->mutex);
    return t;
}

void variable_assign(Variable *v, Tensor *value) {
    tensor_ref(value);
    pthread_mutex_lock(&v->mutex);
    Tensor *old = v->value;
    v->value = value;
    pthread_mutex_unlock(&v->mutex);
    tensor_unref(old);
}

Tensor *variable_begin_rows(Variable *v) {
    pthread_mutex_lock(&v->mutex);
    while (v->waiting_writers) pthread_cond_wait(&v->rows_free, &v->mutex);
    Tensor *t = tensor_ref(v->value);
    if (t) v->row_readers++;
    pthread_mutex_unlock(&v->mutex);
    return t;
}

void variable_end_rows(Variable *v, Tensor *value) {
    pthread_mutex_lock(&v->mutex);
    tensor_unref(value);
    if (--v->row_readers == 0) pthread_cond_broadcast(&v->rows_free);
    pthread_mutex_unlock(&v->mutex);
}

static void wait_for_rows_locked(Variable *v) {
    v->waiting_writers++;
    while (v->row_readers) pthread_cond_wait(&v->rows_free, &v->mutex);
    if (--v->waiting_writers == 0) pthread_cond_broadcast(&v->rows_free);
}

Error *variable_own_locked(Variable *v) {
    if (v->row_readers) wait_for_rows_locked(v);
    if (tensor_is_unique(v->value)) return NULL;
    Tensor *copy;
    Error *err = tensor_copy(v->value, &copy);
    if (err) return err;
    tensor_unref(v->value);
    v->value = copy;
    return NULL;
}
