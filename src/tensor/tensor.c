/* tensor.c: tensors, their buffers and elements. */
#include "tensor/tensor.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/block_cache.h"
#include "base/memory.h"

ResourceHandle *resource_handle_new(Str device, Str container, Str name, Str type_name) {
    ResourceHandle *h = xcalloc(1, sizeof *h);
    refcount_init(&h->refs);
    h->device = str_dup(device);
    h->container = str_dup(container);
    h->name = str_dup(name);
    h->type_name = str_dup(type_name);
    h->shape.rank = -1;
    return h;
}

ResourceHandle *resource_handle_ref(ResourceHandle *h) {
    if (h) refcount_inc(&h->refs);
    return h;
}

void resource_handle_unref(ResourceHandle *h) {
    if (!h || !refcount_dec(&h->refs)) return;
    if (h->release_direct) h->release_direct(h->direct);
    free(h->device);
    free(h->container);
    free(h->name);
    free(h->type_name);
    free(h);
}

void tstring_set(TString *s, Str value) {
    char *copy = value.len ? xstrndup(value.ptr, value.len) : NULL;
    tstring_take(s, copy, value.len);
}

void tstring_take(TString *s, char *malloced, size_t len) {
    free(s->ptr);
    s->ptr = malloced;
    s->len = len;
}

void variant_set(Variant *v, Variant value) {
    if (value.type) value.type->ref(value.object);
    if (v->type) v->type->unref(v->object);
    *v = value;
}

void elements_copy(DataType dtype, void *to, const void *from, int64_t n) {
    if (n <= 0) return;
    if (dtype_is_plain(dtype)) {
        memcpy(to, from, (size_t)n * dtype_size(dtype));
    } else if (dtype == DT_STRING) {
        const TString *src = from;
        for (int64_t i = 0; i < n; i++) tstring_set((TString *)to + i, tstring_str(src + i));
    } else if (dtype == DT_RESOURCE) {
        ResourceHandle *const *src = from;
        ResourceHandle **dst = to;
        for (int64_t i = 0; i < n; i++) {
            ResourceHandle *h = resource_handle_ref(src[i]);
            resource_handle_unref(dst[i]);
            dst[i] = h;
        }
    } else {
        const Variant *src = from;
        for (int64_t i = 0; i < n; i++) variant_set((Variant *)to + i, src[i]);
    }
}

static void destroy_elements(Buffer *b) {
    if (dtype_is_plain(b->dtype)) return;
    for (int64_t i = 0; i < b->count; i++) {
        if (b->dtype == DT_STRING) free(((TString *)b->data)[i].ptr);
        if (b->dtype == DT_RESOURCE) resource_handle_unref(((ResourceHandle **)b->data)[i]);
        if (b->dtype == DT_VARIANT) variant_set((Variant *)b->data + i, (Variant){0});
    }
}

/* The header and the elements are one allocation; the elements start at the next multiple of 64. */
enum { HEADER = (sizeof(Buffer) + 63) / 64 * 64 };

static void buffer_unref(Buffer *b) {
    if (!refcount_dec(&b->refs)) return;
    destroy_elements(b);
    if (b->release) b->release(b->owner);
    block_free(b, b->block);
}

static Tensor *make(DataType dtype, const Shape *shape, Buffer *buffer, void *data) {
    Tensor *t = block_alloc(sizeof *t);
    if (!t) abort();
    refcount_init(&t->refs);
    t->dtype = dtype;
    t->shape = *shape;
    t->count = shape_count(shape);
    t->buffer = buffer;
    t->data = data;
    return t;
}

/* What the machine has; the system would promise more and kill us when it is used. */
static int64_t memory_size(void) {
    static _Atomic int64_t cached;
    int64_t size = atomic_load_explicit(&cached, memory_order_relaxed);
    if (size) return size;
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    size = pages > 0 && page > 0 ? (int64_t)pages * page : (int64_t)1 << 46;
    atomic_store_explicit(&cached, size, memory_order_relaxed);
    return size;
}

Error *tensor_new(DataType dtype, const Shape *shape, Tensor **out) {
    Error *err = shape_check(shape);
    if (err) return err;
    if (!dtype_is_valid((int)dtype) || dtype_is_ref(dtype)) return error_internal("Tensor of type %d", (int)dtype);
    int64_t count = shape_count(shape);
    int64_t size;
    Buffer *b = NULL;
    if (!__builtin_mul_overflow(count, (int64_t)dtype_size(dtype), &size) && size <= memory_size())
        b = block_alloc(HEADER + (size_t)size);
    if (!b) {
        char *text = shape_str(shape);
        err = error_new(CODE_RESOURCE_EXHAUSTED, "OOM when allocating tensor with shape%s and type %s", text, dtype_name(dtype));
        free(text);
        return err;
    }
    *b = (Buffer){.size = (size_t)size, .block = HEADER + (size_t)size, .data = (char *)b + HEADER, .dtype = dtype, .count = count};
    refcount_init(&b->refs);
    if (!dtype_is_plain(dtype)) memset(b->data, 0, (size_t)size);
    *out = make(dtype, shape, b, b->data);
    return NULL;
}

Tensor *tensor_alias(const Tensor *t, DataType dtype, const Shape *shape) {
    refcount_inc(&t->buffer->refs);
    return make(dtype, shape, t->buffer, t->data);
}

Tensor *tensor_rows(const Tensor *t, int64_t from, int64_t to) {
    Shape shape = t->shape;
    shape.dims[0] = to - from;
    Tensor *rows = tensor_alias(t, t->dtype, &shape);
    rows->data = (char *)t->data + (size_t)(from * shape_prod(&t->shape, 1, t->shape.rank)) * dtype_size(t->dtype);
    return rows;
}

Tensor *tensor_wrap(DataType dtype, const Shape *shape, void *data, void (*release)(void *), void *owner) {
    Buffer *b = block_alloc(sizeof *b);
    if (!b) abort();
    *b = (Buffer){.size = (size_t)shape_count(shape) * dtype_size(dtype), .block = sizeof *b, .data = data, .dtype = dtype,
                  .count = shape_count(shape), .release = release, .owner = owner};
    refcount_init(&b->refs);
    return make(dtype, shape, b, data);
}

Error *tensor_copy(const Tensor *t, Tensor **out) {
    Error *err = tensor_new(t->dtype, &t->shape, out);
    if (!err) elements_copy(t->dtype, (*out)->data, t->data, t->count);
    return err;
}

Tensor *tensor_ref(Tensor *t) {
    if (t) refcount_inc(&t->refs);
    return t;
}

void tensor_unref(Tensor *t) {
    if (!t || !refcount_dec(&t->refs)) return;
    buffer_unref(t->buffer);
    block_free(t, sizeof *t);
}

bool tensor_is_unique(const Tensor *t) {
    return refcount_is_one(&t->refs) && refcount_is_one(&t->buffer->refs) && !t->buffer->release;
}

size_t tensor_bytes(const Tensor *t) {
    return (size_t)t->count * dtype_size(t->dtype);
}

void tensor_normalize_bools(Tensor *t) {
    if (t->dtype != DT_BOOL) return;
    uint8_t *bytes = t->data;
    for (int64_t i = 0; i < t->count; i++) bytes[i] = bytes[i] != 0;
}

static Tensor *scalar(DataType dtype, const void *value) {
    Buffer *b = block_alloc(HEADER + dtype_size(dtype));
    if (!b) abort();
    *b = (Buffer){.size = dtype_size(dtype), .block = HEADER + dtype_size(dtype), .data = (char *)b + HEADER, .dtype = dtype, .count = 1};
    refcount_init(&b->refs);
    memcpy(b->data, value, dtype_size(dtype));
    return make(dtype, &SHAPE_SCALAR, b, b->data);
}

Tensor *tensor_scalar_f32(float v) {
    return scalar(DT_FLOAT, &v);
}

Tensor *tensor_scalar_i32(int32_t v) {
    return scalar(DT_INT32, &v);
}

Tensor *tensor_scalar_i64(int64_t v) {
    return scalar(DT_INT64, &v);
}

Tensor *tensor_scalar_bool(bool v) {
    return scalar(DT_BOOL, &v);
}

Tensor *tensor_scalar_str(Str v) {
    TString s = {v.len ? xstrndup(v.ptr, v.len) : NULL, v.len};
    return scalar(DT_STRING, &s);
}
