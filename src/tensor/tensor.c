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

void tstring_clear(TString *s) {
    if (!s->near.mark) free(s->far.ptr);
    *s = (TString){0};
}

char *tstring_room(TString *s, size_t len) {
    tstring_clear(s);
    if (len > TSTRING_NEAR) {
        s->far.len = len;
        return s->far.ptr = xmalloc(len);
    }
    if (len) s->near.mark = (uint8_t)(TSTRING_IS_NEAR | len);
    return s->near.bytes;
}

void tstring_set(TString *s, Str value) {
    if (value.len > 0 && value.len <= TSTRING_NEAR && (s->near.mark || !s->far.ptr)) { /* nothing to free: written where it stays */
        memmove(s->near.bytes, value.ptr, value.len);
        s->near.mark = (uint8_t)(TSTRING_IS_NEAR | value.len);
        return;
    }
    TString new = {0};
    char *room = tstring_room(&new, value.len);
    if (value.len) memcpy(room, value.ptr, value.len);
    tstring_move(s, &new);
}

void tstring_take(TString *s, char *malloced, size_t len) {
    tstring_clear(s);
    s->far.ptr = malloced;
    s->far.len = len;
}

void tstring_move(TString *to, TString *from) {
    tstring_clear(to);
    *to = *from;
    *from = (TString){0};
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
        TString *dst = to;
        for (int64_t i = 0; i < n; i++) {
            if (!src[i].near.mark) {
                tstring_set(&dst[i], tstring_str(&src[i]));
            } else if (dst != src) {
                tstring_clear(&dst[i]);
                dst[i] = src[i];
            }
        }
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
        if (b->dtype == DT_STRING) tstring_clear((TString *)b->data + i);
        if (b->dtype == DT_RESOURCE) resource_handle_unref(((ResourceHandle **)b->data)[i]);
        if (b->dtype == DT_VARIANT) variant_set((Variant *)b->data + i, (Variant){0});
    }
}

/* A buffer, the tensor it was made for and the elements are one allocation; the elements start at the next multiple of 64. */
typedef struct Header {
    Buffer buffer; /* first */
    Tensor tensor;
} Header;
enum { HEADER = (sizeof(Header) + 63) / 64 * 64 };

/* The only holder need not write to the count: nobody else can count any more. */
static bool drop(RefCount *refs) {
    return refcount_is_one(refs) || refcount_dec(refs);
}

static void buffer_unref(Buffer *b) {
    if (!drop(&b->refs)) return;
    destroy_elements(b);
    if (b->release) b->release(b->owner);
    block_free(b, b->block);
}

static Tensor *fill(Tensor *t, DataType dtype, const Shape *shape, int64_t count, Buffer *buffer, void *data) {
    refcount_init(&t->refs);
    t->dtype = dtype;
    t->shape.rank = shape->rank;
    for (int i = 0; i < shape->rank; i++) t->shape.dims[i] = shape->dims[i];
    t->count = count;
    t->buffer = buffer;
    t->data = data;
    return t;
}

/* Of a new block of HEADER bytes and those of the elements. */
static Tensor *fill_header(Header *h, DataType dtype, const Shape *shape, int64_t count, size_t size) {
    h->buffer = (Buffer){.size = size, .block = HEADER + size, .data = (char *)h + HEADER, .dtype = dtype, .count = count};
    refcount_init(&h->buffer.refs);
    return fill(&h->tensor, dtype, shape, count, &h->buffer, h->buffer.data);
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
    Header *h = NULL;
    if (!__builtin_mul_overflow(count, (int64_t)dtype_size(dtype), &size) && size <= memory_size())
        h = block_alloc(HEADER + (size_t)size);
    if (!h) {
        char *text = shape_str(shape);
        err = error_new(CODE_RESOURCE_EXHAUSTED, "OOM when allocating tensor with shape%s and type %s", text, dtype_name(dtype));
        free(text);
        return err;
    }
    *out = fill_header(h, dtype, shape, count, (size_t)size);
    if (!dtype_is_plain(dtype)) memset(h->buffer.data, 0, (size_t)size);
    return NULL;
}

Tensor *tensor_alias(const Tensor *t, DataType dtype, const Shape *shape) {
    Tensor *alias = block_alloc(sizeof *alias);
    if (!alias) abort();
    refcount_inc(&t->buffer->refs);
    return fill(alias, dtype, shape, shape_count(shape), t->buffer, t->data);
}

Tensor *tensor_rows(const Tensor *t, int64_t from, int64_t to) {
    Shape shape = t->shape;
    shape.dims[0] = to - from;
    Tensor *rows = tensor_alias(t, t->dtype, &shape);
    rows->data = (char *)t->data + (size_t)(from * shape_prod(&t->shape, 1, t->shape.rank)) * dtype_size(t->dtype);
    return rows;
}

Tensor *tensor_wrap(DataType dtype, const Shape *shape, void *data, void (*release)(void *), void *owner) {
    Header *h = block_alloc(sizeof *h);
    if (!h) abort();
    int64_t count = shape_count(shape);
    h->buffer = (Buffer){.size = (size_t)count * dtype_size(dtype), .block = sizeof *h, .data = data, .dtype = dtype,
                         .count = count, .release = release, .owner = owner};
    refcount_init(&h->buffer.refs);
    return fill(&h->tensor, dtype, shape, count, &h->buffer, data);
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
    if (!t || !drop(&t->refs)) return;
    Buffer *b = t->buffer;
    if (t != &((Header *)b)->tensor) block_free(t, sizeof *t);
    buffer_unref(b);
}

bool tensor_is_lent(const Tensor *t) {
    return t->buffer->release;
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
    Header *h = block_alloc(HEADER + dtype_size(dtype));
    if (!h) abort();
    Tensor *t = fill_header(h, dtype, &SHAPE_SCALAR, 1, dtype_size(dtype));
    memcpy(t->data, value, dtype_size(dtype));
    return t;
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
    TString s = {0};
    tstring_set(&s, v);
    return scalar(DT_STRING, &s);
}
