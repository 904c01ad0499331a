/* tensor.c: TF_Tensor.

   Plain elements lie in a Tensor of the runtime, which may wrap the caller's memory. Elements of TF_STRING have another layout here
   (TF_TString) than in the runtime and are converted where tensors go in and out; a TF_RESOURCE is a serialised handle here. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "capi/status_internal.h"
#include "capi/tensor_internal.h"
#include "proto/wire.h"
#include "tensor/tensor_proto.h"
#include "tensorflow/c/c_api.h"

enum { ALIGNMENT = 64 };

typedef void Deallocator(void *data, size_t len, void *arg);

/* Memory of the caller, or our own. */
typedef struct HostMemory {
    RefCount refs;
    void *data;
    size_t len;
    Deallocator *deallocator; /* (optional) */
    void *arg;
    int64_t string_count; /* TF_TStrings to be emptied before the memory goes */
} HostMemory;

struct TF_Tensor {
    DataType dtype;
    Shape shape;
    Tensor *value;      /* plain elements and variants; its own shape is the one it was made with */
    HostMemory *memory; /* strings and handles, else NULL */
};

/* ---- Memory ---- */

static HostMemory *memory_new(void *data, size_t len, Deallocator *deallocator, void *arg) {
    HostMemory *m = xcalloc(1, sizeof *m);
    refcount_init(&m->refs);
    *m = (HostMemory){m->refs, data, len, deallocator, arg, 0};
    return m;
}

static void memory_unref(void *memory) {
    HostMemory *m = memory;
    if (!m || !refcount_dec(&m->refs)) return;
    for (int64_t i = 0; i < m->string_count; i++) TF_TString_Dealloc((TF_TString *)m->data + i);
    if (m->deallocator) m->deallocator(m->data, m->len, m->arg);
    free(m);
}

static void free_memory(void *data, size_t len, void *arg) {
    (void)len;
    (void)arg;
    free(data);
}

/* NULL when there is not that much. */
static HostMemory *memory_allocate(size_t len) {
    void *data = try_alloc(len ? len : 1);
    if (!data) return NULL;
    memset(data, 0, len);
    return memory_new(data, len, free_memory, NULL);
}

static bool is_aligned(const void *data) {
    return (uintptr_t)data % ALIGNMENT == 0;
}

/* ---- Shapes ---- */

Error *capi_shape(const int64_t *dims, int num_dims, PartialShape *out) {
    if (num_dims > SHAPE_MAX_RANK) return error_invalid("Shapes have at most %d dimensions, not %d", SHAPE_MAX_RANK, num_dims);
    *out = (PartialShape){.rank = num_dims < 0 ? -1 : num_dims};
    for (int i = 0; i < num_dims; i++) out->dims[i] = dims[i] < 0 ? -1 : dims[i];
    return NULL;
}

/* False when it is not the shape of a tensor. */
static bool full_shape(const int64_t *dims, int num_dims, Shape *out) {
    Error *err = capi_shape(dims, num_dims < 0 ? 0 : num_dims, out);
    if (!err) err = shape_check(out);
    error_free(err);
    return !err;
}

static bool is_plain(DataType dtype) {
    return dtype_is_valid((int)dtype) && !dtype_is_ref(dtype) && dtype_is_plain(dtype);
}

size_t TF_DataTypeSize(TF_DataType dt) {
    return is_plain((DataType)dt) ? dtype_size((DataType)dt) : 0;
}

/* ---- Made by the caller ---- */

/* Takes over the memory; NULL when it is too small for the shape. */
static TF_Tensor *tensor_over(DataType dtype, const int64_t *dims, int num_dims, HostMemory *memory) {
    Shape shape;
    bool ok = memory && dtype_is_valid((int)dtype) && full_shape(dims, num_dims, &shape);
    size_t size = 0;
    if (ok && dtype == DT_STRING) size = sizeof(TF_TString);
    if (ok && is_plain(dtype)) size = dtype_size(dtype);
    if (ok && dtype == DT_VARIANT) ok = false; /* objects of the runtime, not bytes */
    if (!ok || (size && (size_t)shape_count(&shape) > memory->len / size)) {
        memory_unref(memory);
        return NULL;
    }
    TF_Tensor *t = xcalloc(1, sizeof *t);
    *t = (TF_Tensor){.dtype = dtype, .shape = shape};
    if (is_plain(dtype)) {
        t->value = tensor_wrap(dtype, &shape, memory->data, memory_unref, memory);
        t->value->buffer->size = memory->len;
    } else {
        t->memory = memory;
    }
    return t;
}

TF_Tensor *TF_NewTensor(TF_DataType dtype, const int64_t *dims, int num_dims, void *data, size_t len, Deallocator *deallocator, void *deallocator_arg) {
    HostMemory *given = memory_new(data, len, deallocator, deallocator_arg);
    if (!is_plain((DataType)dtype) || is_aligned(data)) return tensor_over((DataType)dtype, dims, num_dims, given);
    HostMemory *copy = memory_allocate(len);
    if (copy && len) memcpy(copy->data, data, len);
    memory_unref(given);
    return tensor_over((DataType)dtype, dims, num_dims, copy);
}

/* A tensor whose memory is the runtime's own: kernels may hand it on without a copy. */
static TF_Tensor *allocate_plain(DataType dtype, const int64_t *dims, int num_dims, size_t len) {
    Shape shape;
    Tensor *value = NULL;
    if (!full_shape(dims, num_dims, &shape)) return NULL;
    Error *err = tensor_new(dtype, &shape, &value);
    if (err) {
        error_free(err);
        return NULL;
    }
    if (tensor_bytes(value) > len) {
        tensor_unref(value);
        return NULL;
    }
    TF_Tensor *t = xcalloc(1, sizeof *t);
    *t = (TF_Tensor){.dtype = dtype, .shape = shape, .value = value};
    return t;
}

TF_Tensor *TF_AllocateTensor(TF_DataType dtype, const int64_t *dims, int num_dims, size_t len) {
    if (is_plain((DataType)dtype)) return allocate_plain((DataType)dtype, dims, num_dims, len);
    return tensor_over((DataType)dtype, dims, num_dims, memory_allocate(len));
}

size_t TF_TensorDefaultAlignment(void) {
    return ALIGNMENT;
}

static void tensor_clear(TF_Tensor *t) {
    tensor_unref(t->value);
    memory_unref(t->memory);
    *t = (TF_Tensor){.dtype = DT_INVALID};
}

void TF_DeleteTensor(TF_Tensor *t) {
    if (!t) return;
    tensor_clear(t);
    free(t);
}

TF_Tensor *TF_TensorMaybeMove(TF_Tensor *tensor) {
    bool movable = tensor->value ? tensor_is_unique(tensor->value) : tensor->memory && refcount_is_one(&tensor->memory->refs) && tensor->memory->deallocator == free_memory;
    if (!movable) return NULL;
    TF_Tensor *moved = xmalloc(sizeof *moved);
    *moved = *tensor;
    free(tensor);
    return moved;
}

/* ---- What it is ---- */

TF_DataType TF_TensorType(const TF_Tensor *t) {
    return (TF_DataType)t->dtype;
}

void TF_SetShape(TF_Tensor *tensor, const int64_t *dims, int num_dims) {
    Shape shape;
    if (full_shape(dims, num_dims, &shape)) tensor->shape = shape;
}

int TF_NumDims(const TF_Tensor *t) {
    return t->shape.rank;
}

int64_t TF_Dim(const TF_Tensor *t, int dim_index) {
    return dim_index >= 0 && dim_index < t->shape.rank ? t->shape.dims[dim_index] : -1;
}

int64_t TF_TensorElementCount(const TF_Tensor *t) {
    return shape_count(&t->shape);
}

size_t TF_TensorByteSize(const TF_Tensor *t) {
    if (t->dtype == DT_STRING) return (size_t)shape_count(&t->shape) * sizeof(TF_TString);
    if (t->memory) return t->memory->len;
    return t->value ? (size_t)shape_count(&t->shape) * dtype_size(t->dtype) : 0;
}

void *TF_TensorData(const TF_Tensor *t) {
    if (t->memory) return t->memory->data;
    return t->value ? t->value->data : NULL;
}

bool TF_TensorIsAligned(const TF_Tensor *t) {
    return is_aligned(TF_TensorData(t));
}

static Error *bitcast(const TF_Tensor *from, DataType type, TF_Tensor *to, const int64_t *dims, int num_dims) {
    Shape shape;
    if (!from->value || !is_plain(from->dtype) || !is_plain(type))
        return error_invalid("Cannot bitcast from %s to %s: one of them has no fixed size", dtype_name(from->dtype), dtype_name(type));
    if (!full_shape(dims, num_dims, &shape)) return error_invalid("Cannot bitcast: the new shape is not valid");
    size_t have = TF_TensorByteSize(from), want = (size_t)shape_count(&shape) * dtype_size(type);
    if (have != want)
        return error_invalid("Cannot bitcast from %s to %s: %zu bytes are not %zu bytes", dtype_name(from->dtype), dtype_name(type), have, want);
    Tensor *value = tensor_alias(from->value, type, &shape); /* from and to may be one */
    tensor_clear(to);
    *to = (TF_Tensor){.dtype = type, .shape = shape, .value = value};
    return NULL;
}

void TF_TensorBitcastFrom(const TF_Tensor *from, TF_DataType type, TF_Tensor *to, const int64_t *new_dims, int num_new_dims, TF_Status *status) {
    status_take(status, bitcast(from, (DataType)type, to, new_dims, num_new_dims));
}

void TF_TensorFromProto(const TF_Buffer *from, TF_Tensor *to, TF_Status *status) {
    Tensor *value = NULL;
    TF_Tensor *made = NULL;
    Error *err = tensor_proto_decode(buffer_str(from), &value);
    if (!err) err = capi_tensor_new(value, &made);
    if (!err) {
        tensor_clear(to);
        *to = *made;
        free(made);
    }
    tensor_unref(value);
    status_take(status, err);
}

/* ---- Strings and handles, both ways ---- */

static Error *strings_get(const TF_Tensor *t, Tensor **out) {
    Error *err = tensor_new(DT_STRING, &t->shape, out);
    if (err) return err;
    const TF_TString *from = t->memory->data;
    for (int64_t i = 0; i < (*out)->count; i++)
        tstring_set(&tensor_str(*out)[i], (Str){TF_TString_GetDataPointer(&from[i]), TF_TString_GetSize(&from[i])});
    return NULL;
}

static Error *strings_new(const Tensor *value, TF_Tensor *t) {
    t->memory = memory_allocate((size_t)value->count * sizeof(TF_TString));
    if (!t->memory) return error_new(CODE_RESOURCE_EXHAUSTED, "OOM when copying %lld strings", (long long)value->count);
    t->memory->string_count = value->count;
    TF_TString *to = t->memory->data;
    for (int64_t i = 0; i < value->count; i++) {
        Str s = tstring_str(&tensor_str(value)[i]);
        TF_TString_Copy(&to[i], s.ptr, s.len);
    }
    return NULL;
}

/* TensorProto: dtype=1 tensor_shape=2 resource_handle_val=14. */
static Error *handle_get(const TF_Tensor *t, Tensor **out) {
    StrBuf proto = {0};
    wire_put_uint(&proto, 1, DT_RESOURCE);
    wire_put_bytes(&proto, 2, STR(""));
    wire_put_bytes(&proto, 14, (Str){t->memory->data, t->memory->len});
    Error *err = tensor_proto_decode(strbuf_str(&proto), out);
    strbuf_clear(&proto);
    return err;
}

static Error *handle_new(const Tensor *value, TF_Tensor *t) {
    if (value->count != 1) return error_invalid("A resource that leaves a session must be a scalar, this one has %lld elements", (long long)value->count);
    StrBuf proto = {0};
    tensor_proto_encode(value, &proto);
    Str handle = STR("");
    WireReader r = wire_reader(strbuf_str(&proto));
    while (wire_next(&r)) {
        if (r.field != 4 || r.type != WIRE_BYTES) continue; /* tensor_content: the length of the handle, then the handle */
        WireReader content = wire_reader(r.bytes);
        uint64_t len = 0;
        if (wire_varint(&content, &len)) handle = (Str){(const char *)content.at, (size_t)len};
    }
    t->memory = memory_allocate(handle.len);
    if (t->memory) memcpy(t->memory->data, handle.ptr, handle.len);
    strbuf_clear(&proto);
    return t->memory ? NULL : error_new(CODE_RESOURCE_EXHAUSTED, "OOM when copying a resource handle");
}

Error *capi_tensor_get(const TF_Tensor *t, Tensor **out) {
    if (t->dtype == DT_STRING || t->dtype == DT_RESOURCE) {
        if (TF_TensorByteSize(t) > t->memory->len) return error_invalid("The shape of a tensor needs more memory than it has");
        return t->dtype == DT_STRING ? strings_get(t, out) : handle_get(t, out);
    }
    if (!t->value) return error_invalid("A tensor without a value");
    if (is_plain(t->dtype) && TF_TensorByteSize(t) > t->value->buffer->size) return error_invalid("The shape of a tensor needs more memory than it has");
    *out = shape_eq(&t->shape, &t->value->shape) ? tensor_ref(t->value) : tensor_alias(t->value, t->dtype, &t->shape);
    return NULL;
}

Error *capi_tensor_new(Tensor *value, TF_Tensor **out) {
    TF_Tensor *t = xcalloc(1, sizeof *t);
    *t = (TF_Tensor){.dtype = value->dtype, .shape = value->shape};
    Error *err = NULL;
    if (value->dtype == DT_STRING)
        err = strings_new(value, t);
    else if (value->dtype == DT_RESOURCE)
        err = handle_new(value, t);
    else
        t->value = tensor_ref(value);
    if (err)
        TF_DeleteTensor(t);
    else
        *out = t;
    return err;
}
