/* tensor.h: Tensor, a dtype, a shape and shared memory. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/refcount.h"
#include "base/str.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

/* Memory that several tensors may share, 64-byte aligned. */
typedef struct Buffer {
    RefCount refs;
    size_t size;
    size_t block; /* bytes of the allocation that begins with this struct */
    void *data;
    DataType dtype; /* elements that are not plain are destroyed with the buffer */
    int64_t count;  /* of those elements */
    void (*release)(void *owner); /* NULL: data is the buffer's own */
    void *owner;
} Buffer;

/* An element of a DT_STRING tensor, not 0-terminated: a malloced copy, or, of a few bytes, the bytes themselves. Zeros are the empty string.
 * It may be moved in memory; what tstring_str told is then no more. */
enum { TSTRING_NEAR = 15, TSTRING_IS_NEAR = 0x80 };
typedef union TString {
    struct {
        char *ptr;
        size_t len;
    } far;
    struct {
        char bytes[TSTRING_NEAR];
        uint8_t mark; /* the highest byte of far.len, which no length reaches: TSTRING_IS_NEAR and the length, or 0 */
    } near;
} TString;
_Static_assert(sizeof(TString) == 16 && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "where the mark is");

/* What a DT_RESOURCE element points to: the name of something that lives on one device. Immutable, shared. */
typedef struct ResourceHandle {
    RefCount refs;
    char *device, *container, *name, *type_name;
    uint64_t hash_code;
    DataType dtype;     /* of a variable, DT_INVALID when not said */
    PartialShape shape; /* of a variable */
    void *direct;       /* (optional) the object itself, for resources without a name; see release_direct */
    void (*release_direct)(void *direct);
} ResourceHandle;

ResourceHandle *resource_handle_new(Str device, Str container, Str name, Str type_name);
ResourceHandle *resource_handle_ref(ResourceHandle *h);
void resource_handle_unref(ResourceHandle *h);

typedef struct Variant Variant;

/* An element of a DT_VARIANT tensor: an object with a table of what can be done with it. Immutable once shared. */
typedef struct VariantType {
    const char *type_name; /* on the wire, "tensorflow::TensorList" */
    void (*ref)(void *object);
    void (*unref)(void *object);
    Error *(*encode)(const void *object, StrBuf *metadata, StrBuf *tensors); /* (optional) VariantTensorDataProto parts */
    Error *(*zeros_like)(const void *object, Variant *out);                  /* (optional) */
    Error *(*add)(const void *a, const void *b, Variant *out);               /* (optional) of two objects of this type */
    Error *(*conjugate)(const void *object, Variant *out);                   /* (optional) */
} VariantType;
struct Variant {
    const VariantType *type; /* NULL: empty */
    void *object;
};

/* Shared by reference count. The value does not change once another holder may see it. */
typedef struct Tensor {
    RefCount refs;
    DataType dtype;
    Shape shape;
    int64_t count; /* number of elements */
    Buffer *buffer;
    void *data; /* in buffer */
} Tensor;

/* Plain elements are not cleared; strings are empty, handles and variants NULL. ResourceExhausted when too large. */
Error *tensor_new(DataType dtype, const Shape *shape, Tensor **out) MUST_CHECK;
/* Shares the memory of t under another shape of the same number of elements (and, for plain types, dtype of the same size). */
Tensor *tensor_alias(const Tensor *t, DataType dtype, const Shape *shape);
/* Rows [from, to) of the first dimension, sharing memory. */
Tensor *tensor_rows(const Tensor *t, int64_t from, int64_t to);
/* A tensor over memory owned by someone else, released with the last reference. */
Tensor *tensor_wrap(DataType dtype, const Shape *shape, void *data, void (*release)(void *), void *owner);
Error *tensor_copy(const Tensor *t, Tensor **out) MUST_CHECK; /* own memory */
Tensor *tensor_ref(Tensor *t);
void tensor_unref(Tensor *t); /* NULL is allowed */
bool tensor_is_lent(const Tensor *t);   /* its memory is somebody else's, such as a message's: nobody overwrites it */
bool tensor_is_unique(const Tensor *t); /* nobody else holds the tensor or its memory: it may be overwritten */
size_t tensor_bytes(const Tensor *t);   /* count * size of an element */
/* After filling a tensor with bytes from outside: a bool that is neither 0 nor 1 becomes 1; C may not read such. Others stay. */
void tensor_normalize_bools(Tensor *t);

Tensor *tensor_scalar_f32(float v);
Tensor *tensor_scalar_i32(int32_t v);
Tensor *tensor_scalar_i64(int64_t v);
Tensor *tensor_scalar_bool(bool v);
Tensor *tensor_scalar_str(Str v);

/* Typed views of the elements. */
static inline float *tensor_f32(const Tensor *t) { return (float *)t->data; }
static inline double *tensor_f64(const Tensor *t) { return (double *)t->data; }
static inline int32_t *tensor_i32(const Tensor *t) { return (int32_t *)t->data; }
static inline int64_t *tensor_i64(const Tensor *t) { return (int64_t *)t->data; }
static inline uint8_t *tensor_u8(const Tensor *t) { return (uint8_t *)t->data; }
static inline bool *tensor_bool(const Tensor *t) { return (bool *)t->data; }
static inline TString *tensor_str(const Tensor *t) { return (TString *)t->data; }
static inline ResourceHandle **tensor_handles(const Tensor *t) { return (ResourceHandle **)t->data; }
static inline Variant *tensor_variants(const Tensor *t) { return (Variant *)t->data; }

static inline Str tstring_str(const TString *s) {
    if (s->near.mark) return (Str){s->near.bytes, s->near.mark & ~TSTRING_IS_NEAR};
    return (Str){s->far.ptr ? s->far.ptr : "", s->far.len};
}
/* These free what was there. */
void tstring_set(TString *s, Str value); /* value may lie in s */
char *tstring_room(TString *s, size_t len); /* so many bytes to be written */
void tstring_take(TString *s, char *malloced, size_t len);
void tstring_move(TString *to, TString *from); /* leaves `from` empty */
void tstring_clear(TString *s);
void variant_set(Variant *v, Variant value); /* unrefs what was there, refs the new one */

/* Copies `n` elements of any dtype between tensors' memory, strings and references included. */
void elements_copy(DataType dtype, void *to, const void *from, int64_t n);

/* Reads element i of an int32 or int64 tensor; the caller has checked dtype and range. */
static inline int64_t tensor_index(const Tensor *t, int64_t i) {
    return t->dtype == DT_INT64 ? tensor_i64(t)[i] : tensor_i32(t)[i];
}
