/* lookup_table.c: hash tables over the bytes of keys. */
#include "ops/lookup_table.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/fingerprint.h"
#include "base/hashmap.h"
#include "base/memory.h"
#include "ops/dense_buckets.h"
#include "ops/elements.h"

typedef struct Entry {
    char *key; /* the bytes of the elements, or of the string */
    size_t key_len;
    int64_t position; /* in entries */
    Tensor *value;    /* never changed, only replaced */
} Entry;

struct LookupTable {
    Resource base;
    char *name;
    LookupKind kind;
    DataType key_type, value_type;
    Shape key_shape, value_shape;
    Tensor *forbidden[2];
    pthread_rwlock_t lock; /* guards what follows */
    StrMap by_key;         /* to Entry */
    Entry **entries;       /* in order of insertion, until something is removed */
    size_t count, capacity;
    DenseBuckets buckets; /* of a dense table */
    bool initialised;
};

static void entry_free(Entry *e) {
    tensor_unref(e->value);
    free(e->key);
    free(e);
}

static void clear_locked(LookupTable *t) {
    strmap_clear(&t->by_key);
    for (size_t i = 0; i < t->count; i++) entry_free(t->entries[i]);
    t->count = 0;
}

static void destroy(Resource *r) {
    LookupTable *t = (LookupTable *)r;
    clear_locked(t);
    dense_buckets_clear(&t->buckets);
    free(t->entries);
    for (int i = 0; i < 2; i++) tensor_unref(t->forbidden[i]);
    pthread_rwlock_destroy(&t->lock);
    free(t->name);
    free(t);
}

const ResourceType lookup_table_type = {
    .type_name = "N10tensorflow6lookup15LookupInterfaceE", .what = "table", .destroy = destroy};

LookupTable *lookup_table_new(Str name, const LookupSpec *spec) {
    LookupTable *t = xcalloc(1, sizeof *t);
    resource_init(&t->base, &lookup_table_type);
    pthread_rwlock_init(&t->lock, NULL);
    t->name = str_dup(name);
    t->kind = spec->kind;
    t->key_type = spec->key_type;
    t->value_type = spec->value_type;
    t->key_shape = spec->key_shape;
    t->value_shape = spec->value_shape;
    t->forbidden[0] = tensor_ref((Tensor *)spec->empty_key);
    t->forbidden[1] = tensor_ref((Tensor *)spec->deleted_key);
    t->buckets = (DenseBuckets){.count = spec->bucket_count, .max_load = spec->max_load};
    t->initialised = spec->kind != LOOKUP_FIXED;
    return t;
}

Error *lookup_check_types(const LookupTable *t, DataType key, DataType value) {
    if (t->key_type == key && t->value_type == value) return NULL;
    return error_invalid("Conflicting key/value dtypes %s->%s with %s-%s for table %s", dtype_name(key),
                         dtype_name(value), dtype_name(t->key_type), dtype_name(t->value_type), t->name);
}

DataType lookup_key_type(const LookupTable *t) {
    return t->key_type;
}
DataType lookup_value_type(const LookupTable *t) {
    return t->value_type;
}
LookupKind lookup_kind(const LookupTable *t) {
    return t->kind;
}

/* ---- Keys and rows ---- */

static Str key_at(const LookupTable *t, const Tensor *keys, int64_t i) {
    if (t->key_type == DT_STRING) return tstring_str(&tensor_str(keys)[i]);
    size_t size = (size_t)shape_count(&t->key_shape) * dtype_size(t->key_type);
    return (Str){(const char *)keys->data + (size_t)i * size, size};
}

/* keys is [..., key shape]: sets the part before. */
static Error *outer_shape(const LookupTable *t, const Tensor *keys, Shape *outer) {
    int rank = keys->shape.rank - t->key_shape.rank;
    if (keys->dtype != t->key_type)
        return error_invalid("Table %s has keys of type %s, got %s", t->name, dtype_name(t->key_type),
                             dtype_name(keys->dtype));
    bool fits = rank >= 0;
    for (int d = 0; fits && d < t->key_shape.rank; d++) fits = keys->shape.dims[rank + d] == t->key_shape.dims[d];
    if (!fits) {
        char *want = shape_str(&t->key_shape), *got = shape_str(&keys->shape);
        Error *err = error_invalid("Input key shape %s must end with the table's key shape %s", got, want);
        free(want);
        free(got);
        return err;
    }
    *outer = shape_of(rank, keys->shape.dims);
    return NULL;
}

/* Keys of a dense table come in a row. */
static Error *check_row_of_keys(const LookupTable *t, const Tensor *keys) {
    int64_t n = keys->shape.rank ? keys->shape.dims[0] : 1;
    if (t->kind != LOOKUP_DENSE || keys->count == n * shape_count(&t->key_shape)) return NULL;
    Shape want = t->key_shape;
    shape_insert_dim(&want, 0, n);
    return error_invalid("Expected key shape %s got %s", shape_text(&want).text, shape_text(&keys->shape).text);
}

static Error *values_shape(const LookupTable *t, const Shape *outer, Shape *out) {
    *out = *outer;
    if (outer->rank + t->value_shape.rank > SHAPE_MAX_RANK) return error_invalid("Too many dimensions");
    for (int d = 0; d < t->value_shape.rank; d++) out->dims[out->rank++] = t->value_shape.dims[d];
    return shape_check(out);
}

static Error *check_pairs(const LookupTable *t, const Tensor *keys, const Tensor *values, Shape *outer) {
    Shape want;
    Error *err = outer_shape(t, keys, outer);
    if (!err) err = lookup_check_types(t, keys->dtype, values->dtype);
    if (!err) err = values_shape(t, outer, &want);
    if (err || shape_eq(&want, &values->shape)) return err;
    char *expected = shape_str(&want), *got = shape_str(&values->shape);
    err = error_invalid("Expected shape %s for value, got %s", expected, got);
    free(expected);
    free(got);
    return err;
}

static Error *check_allowed(const LookupTable *t, Str key) {
    static const char *const names[] = {"empty_key", "deleted_key"};
    for (int i = 0; i < 2; i++)
        if (t->forbidden[i] && str_eq(key, key_at(t, t->forbidden[i], 0)))
            return error_invalid("Using the %s as a table key is not allowed", names[i]);
    return NULL;
}

static Error *row_of(const LookupTable *t, const Tensor *values, int64_t i, Tensor **out) {
    Error *err = tensor_new(t->value_type, &t->value_shape, out);
    if (err) return err;
    int64_t n = (*out)->count;
    elements_copy(t->value_type, (*out)->data, (const char *)values->data + (size_t)(i * n) * dtype_size(t->value_type),
                  n);
    return NULL;
}

/* ---- Operations ---- */

Error *lookup_find(LookupTable *t, const Tensor *keys, const Tensor *fallback, Tensor **out) {
    Shape outer, shape;
    Error *err = outer_shape(t, keys, &outer);
    if (!err) err = values_shape(t, &outer, &shape);
    if (err) return err;
    int64_t n = shape_count(&outer), row = shape_count(&t->value_shape);
    bool each = shape_eq(&fallback->shape, &shape);
    if (fallback->dtype != t->value_type || (!each && !shape_eq(&fallback->shape, &t->value_shape))) {
        return error_invalid("Expected shape %s or %s for default value, got %s", shape_text(&t->value_shape).text, shape_text(&shape).text,
                             shape_text(&fallback->shape).text);
    }
    each = each && t->kind == LOOKUP_MUTABLE; /* others take the first for all */
    Tensor *values;
    err = check_row_of_keys(t, keys);
    if (!err) err = tensor_new(t->value_type, &shape, &values);
    if (err) return err;
    size_t size = dtype_size(t->value_type);
    pthread_rwlock_rdlock(&t->lock);
    if (!t->initialised) err = error_new(CODE_FAILED_PRECONDITION, "Table not initialized.");
    for (int64_t i = 0; !err && i < n; i++) {
        Str key = key_at(t, keys, i);
        err = check_allowed(t, key);
        const Entry *e = err ? NULL : strmap_get(&t->by_key, key);
        const char *from = e ? e->value->data : (const char *)fallback->data + (each ? (size_t)(i * row) * size : 0);
        if (!err) elements_copy(t->value_type, (char *)values->data + (size_t)(i * row) * size, from, row);
    }
    pthread_rwlock_unlock(&t->lock);
    if (err)
        tensor_unref(values);
    else
        *out = values;
    return err;
}

static void put_locked(LookupTable *t, Str key, Tensor *value) {
    Entry *e = strmap_get(&t->by_key, key);
    if (e) {
        tensor_unref(e->value);
        e->value = value;
        return;
    }
    e = xmalloc(sizeof *e);
    *e = (Entry){str_dup(key), key.len, (int64_t)t->count, value};
    t->entries = vec_reserve(t->entries, &t->capacity, t->count + 1, sizeof *t->entries);
    if (t->kind == LOOKUP_DENSE) dense_buckets_add(&t->buckets, (int64_t)t->count, key);
    t->entries[t->count++] = e;
    strmap_put(&t->by_key, (Str){e->key, e->key_len}, e);
}

static Error *insert_locked(LookupTable *t, const Tensor *keys, const Tensor *values, int64_t n) {
    Error *err = NULL;
    for (int64_t i = 0; !err && i < n; i++) err = check_allowed(t, key_at(t, keys, i));
    if (!err && t->kind == LOOKUP_DENSE) err = dense_buckets_reserve(&t->buckets, (int64_t)t->count, n);
    for (int64_t i = 0; !err && i < n; i++) {
        Tensor *value;
        err = row_of(t, values, i, &value);
        if (!err) put_locked(t, key_at(t, keys, i), value);
    }
    return err;
}

Error *lookup_insert(LookupTable *t, const Tensor *keys, const Tensor *values) {
    Shape outer;
    if (t->kind == LOOKUP_FIXED)
        return error_unimplemented("Insert not supported by InitializableLookupTable implementations");
    Error *err = check_pairs(t, keys, values, &outer);
    if (!err) err = check_row_of_keys(t, keys);
    if (err) return err;
    pthread_rwlock_wrlock(&t->lock);
    err = insert_locked(t, keys, values, shape_count(&outer));
    pthread_rwlock_unlock(&t->lock);
    return err;
}

static void remove_locked(LookupTable *t, Str key) {
    Entry *e = strmap_remove(&t->by_key, key);
    if (!e) return;
    Entry *last = t->entries[--t->count];
    t->entries[e->position] = last;
    last->position = e->position;
    if (t->kind == LOOKUP_DENSE) dense_buckets_remove(&t->buckets, key, tensor_ref(e->value));
    entry_free(e);
}

Error *lookup_remove(LookupTable *t, const Tensor *keys) {
    Shape outer;
    if (t->kind == LOOKUP_FIXED)
        return error_unimplemented("Remove not supported by InitializableLookupTable implementations");
    Error *err = outer_shape(t, keys, &outer);
    if (!err) err = check_row_of_keys(t, keys);
    if (err) return err;
    int64_t n = shape_count(&outer);
    pthread_rwlock_wrlock(&t->lock);
    for (int64_t i = 0; !err && i < n; i++) err = check_allowed(t, key_at(t, keys, i));
    for (int64_t i = 0; !err && i < n; i++) remove_locked(t, key_at(t, keys, i));
    pthread_rwlock_unlock(&t->lock);
    return err;
}

static bool same_value(const LookupTable *t, const Tensor *value, const Tensor *values, int64_t i) {
    size_t size = (size_t)value->count * dtype_size(t->value_type);
    if (t->value_type != DT_STRING)
        return memcmp(value->data, (const char *)values->data + (size_t)i * size, size) == 0;
    for (int64_t j = 0; j < value->count; j++)
        if (!str_eq(tstring_str(&tensor_str(value)[j]), tstring_str(&tensor_str(values)[i * value->count + j])))
            return false;
    return true;
}

/* One element as a message shows it. */
static void add_element(StrBuf *b, const Tensor *t, int64_t i) {
    switch (t->dtype) {
        case DT_STRING: strbuf_addf(b, "%.*s", STR_ARG(tstring_str(&tensor_str(t)[i]))); break;
        case DT_FLOAT: strbuf_addf(b, "%g", (double)tensor_f32(t)[i]); break;
        case DT_DOUBLE: strbuf_addf(b, "%g", tensor_f64(t)[i]); break;
        case DT_BOOL: strbuf_addf(b, "%d", ((const bool *)t->data)[i]); break;
        case DT_INT32:
        case DT_INT64: strbuf_addf(b, "%lld", (long long)tensor_index(t, i)); break;
        default: strbuf_addf(b, "?");
    }
}

static Error *two_values(Str key, const Tensor *old, const Tensor *values, int64_t i) {
    StrBuf has = {0}, more = {0};
    add_element(&has, old, 0);
    add_element(&more, values, i);
    Error *err = error_new(CODE_FAILED_PRECONDITION, "HashTable has different value for same key. Key %.*s has %s and trying to add value %s", STR_ARG(key), has.ptr, more.ptr);
    strbuf_clear(&has);
    strbuf_clear(&more);
    return err;
}

/* The first content of a fixed table; no key may have two values. */
static Error *initialise_locked(LookupTable *t, const Tensor *keys, const Tensor *values, int64_t n) {
    Error *err = NULL;
    for (int64_t i = 0; !err && i < n; i++) {
        Str key = key_at(t, keys, i);
        const Entry *old = strmap_get(&t->by_key, key);
        Tensor *value;
        if (old && same_value(t, old->value, values, i)) continue;
        if (old) {
            StrBuf text = {0};
            add_element(&text, keys, i);
            err = two_values(strbuf_str(&text), old->value, values, i);
            strbuf_clear(&text);
        } else {
            err = row_of(t, values, i, &value);
        }
        if (!err) put_locked(t, key, value);
    }
    if (err)
        clear_locked(t);
    else
        t->initialised = true;
    return err;
}

/* What an export of a dense table gave: rows are buckets. */
static Error *import_buckets_locked(LookupTable *t, const Tensor *keys, const Tensor *values, int64_t n) {
    Error *err = NULL;
    clear_locked(t);
    dense_buckets_reset(&t->buckets, n < 4 ? 4 : n);
    for (int64_t i = 0; !err && i < n; i++) {
        Str key = key_at(t, keys, i);
        if (str_eq(key, key_at(t, t->forbidden[0], 0))) continue;
        Tensor *value;
        err = row_of(t, values, i, &value);
        if (err) break;
        if (str_eq(key, key_at(t, t->forbidden[1], 0)))
            dense_buckets_remove(&t->buckets, (Str){0}, value);
        else
            put_locked(t, key, value);
    }
    return err;
}

Error *lookup_import(LookupTable *t, const Tensor *keys, const Tensor *values) {
    Shape outer;
    Error *err = check_pairs(t, keys, values, &outer);
    if (err) return err;
    int64_t n = shape_count(&outer);
    if (t->kind == LOOKUP_FIXED && n == 0) return error_invalid("keys and values cannot be empty tensors.");
    pthread_rwlock_wrlock(&t->lock);
    if (t->kind == LOOKUP_DENSE) {
        err = import_buckets_locked(t, keys, values, n);
    } else if (t->kind != LOOKUP_FIXED) {
        clear_locked(t);
        err = insert_locked(t, keys, values, n);
    } else if (!t->initialised) {
        err = initialise_locked(t, keys, values, n);
    } else if (n != (int64_t)t->count) { /* TensorFlow takes content of the same size for the same */
        err = error_new(CODE_FAILED_PRECONDITION, "Table was already initialized with different data.");
    }
    pthread_rwlock_unlock(&t->lock);
    return err;
}

static void export_row(const LookupTable *t, Tensor *keys, Tensor *values, int64_t i, Str key, const Tensor *value) {
    if (t->key_type == DT_STRING)
        tstring_set(&tensor_str(keys)[i], key);
    else
        memcpy((char *)keys->data + (size_t)i * key.len, key.ptr, key.len);
    int64_t n = shape_count(&t->value_shape);
    char *to = (char *)values->data + (size_t)(i * n) * dtype_size(t->value_type);
    if (value)
        elements_copy(t->value_type, to, value->data, n);
    else if (dtype_is_plain(t->value_type))
        memset(to, 0, (size_t)n * dtype_size(t->value_type));
}

/* TensorFlow's hash of a key, by which it finds the bucket. */
static uint64_t key_hash(const LookupTable *t, Str key) {
    if (t->key_type == DT_STRING) return hash64(key);
    size_t size = dtype_size(t->key_type), n = key.len / size;
    uint64_t hash = 0;
    for (size_t i = 0; i < n; i++) {
        int64_t number = 0;
        if (t->key_type == DT_INT64)
            memcpy(&number, key.ptr + i * size, size);
        else if (t->key_type == DT_INT32)
            number = *(const int32_t *)(const void *)(key.ptr + i * size);
        hash = n == 1 ? (uint64_t)number : hash64_combine(hash, (uint64_t)number);
    }
    return hash;
}

/* Every bucket has the empty key but those of keys that are there, or were: they lie where TensorFlow looks for them when it imports this. */
static void export_buckets_locked(const LookupTable *t, Tensor *keys, Tensor *values) {
    const DenseBuckets *b = &t->buckets;
    bool *taken = xcalloc((size_t)b->count, sizeof *taken);
    for (size_t i = 0; i < b->removed_count; i++) {
        const RemovedBucket *r = &b->removed[i];
        uint64_t hash = r->key ? key_hash(t, (Str){r->key, r->key_len}) : i;
        export_row(t, keys, values, dense_buckets_place(b, hash, taken), key_at(t, t->forbidden[1], 0), r->value);
    }
    for (size_t i = 0; i < t->count; i++) {
        Str key = {t->entries[i]->key, t->entries[i]->key_len};
        export_row(t, keys, values, dense_buckets_place(b, key_hash(t, key), taken), key, t->entries[i]->value);
    }
    for (int64_t i = 0; i < b->count; i++)
        if (!taken[i]) export_row(t, keys, values, i, key_at(t, t->forbidden[0], 0), NULL);
    free(taken);
}

static void export_rows_locked(const LookupTable *t, Tensor *keys, Tensor *values) {
    for (size_t i = 0; i < t->count; i++) export_row(t, keys, values, (int64_t)i, (Str){t->entries[i]->key, t->entries[i]->key_len}, t->entries[i]->value);
}

Error *lookup_export(LookupTable *t, Tensor **keys, Tensor **values) {
    Tensor *k = NULL, *v = NULL;
    bool dense = t->kind == LOOKUP_DENSE;
    pthread_rwlock_rdlock(&t->lock);
    int64_t rows = dense ? t->buckets.count : (int64_t)t->count;
    Shape key_shape = t->key_shape, value_shape = t->value_shape;
    Error *err = t->initialised ? NULL : error_new(CODE_ABORTED, "HashTable is not initialized.");
    if (dense && key_shape.rank == 0) key_shape = shape_vector(1);
    if (dense && value_shape.rank == 0) value_shape = shape_vector(1);
    if (!err && (key_shape.rank == SHAPE_MAX_RANK || value_shape.rank == SHAPE_MAX_RANK)) err = error_invalid("Too many dimensions");
    if (!err) {
        shape_insert_dim(&key_shape, 0, rows);
        shape_insert_dim(&value_shape, 0, rows);
        err = tensor_new(t->key_type, &key_shape, &k);
    }
    if (!err) err = tensor_new(t->value_type, &value_shape, &v);
    if (!err) (dense ? export_buckets_locked : export_rows_locked)(t, k, v);
    pthread_rwlock_unlock(&t->lock);
    if (err) {
        tensor_unref(k);
        tensor_unref(v);
        return err;
    }
    *keys = k;
    *values = v;
    return NULL;
}

bool lookup_is_initialised(LookupTable *t) {
    pthread_rwlock_rdlock(&t->lock);
    bool yes = t->initialised;
    pthread_rwlock_unlock(&t->lock);
    return yes;
}

int64_t lookup_size(LookupTable *t) {
    pthread_rwlock_rdlock(&t->lock);
    int64_t n = (int64_t)t->count;
    pthread_rwlock_unlock(&t->lock);
    return n;
}
