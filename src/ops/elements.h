/* elements.h: what array ops need to know of element types: how to copy, compute with and index them. */
#pragma once
#include "kernels/accumulate.h"
#include "kernels/copy.h"
#include "runtime/kernel.h"
#include "tensor/tensor.h"

ElementKind element_kind(DataType type);
const RowMath *row_math(DataType type);                                /* NULL: not a type to compute with */
const void *element_zero(DataType type);                               /* one element: 0, false, "" */
int64_t small_index_at(const Tensor *t, int64_t i);                    /* of the integer types but int32 and int64 */
Error *require_integers(const Tensor *t, const char *what) MUST_CHECK; /* an integer type that index_at reads */
/* Of any integer type. */
static inline int64_t index_at(const Tensor *t, int64_t i) {
    return t->dtype == DT_INT64 ? tensor_i64(t)[i] : t->dtype == DT_INT32 ? tensor_i32(t)[i] : small_index_at(t, i);
}
Error *element_scalar_int(KernelContext *k, int input, const char *what, int64_t *out) MUST_CHECK; /* rank 0 integer */

/* Row-major strides, in elements. */
void strides_of(const Shape *s, int64_t *strides);
/* Writes element i of an int32 or int64 tensor. */
void index_put(const Tensor *t, int64_t i, int64_t value);
/* Rows [from, to) of dimension 0, sharing memory when they start aligned, else copied. */
Error *rows_of(const Tensor *t, int64_t from, int64_t to, Tensor **out) MUST_CHECK;

/* The error of a bad index: "indices[1,0] = 7 is not in [0, 3)"; i counts the elements of `indices`. */
Error *bad_index(const char *what, const Tensor *indices, int64_t i, int64_t value, int64_t limit);
/* "indices[1] = [0, 7] does not index into <what> [2,3]"; at counts the rows of indices, of `depth` numbers each. */
Error *bad_nd_index(const Tensor *indices, int64_t at, int depth, const char *what, const Shape *shape);
/* dims of the tensor as text for messages, in a static-size buffer that the struct holds. */
typedef struct ShapeText {
    char text[256];
} ShapeText;
ShapeText shape_text(const Shape *s);
/* "DT_FLOAT", for messages. */
typedef struct TypeText {
    char text[32];
} TypeText;
TypeText type_text(DataType t);

/* The variable that input i means, a reference or a handle, with a reference of its own; resource_unref(&v->base). */
Error *kernel_variable(KernelContext *k, int i, Variable **out) MUST_CHECK;
/* With v->mutex held: the variable has a value of type `dtype` that may be written in place. */
Error *variable_write_locked(KernelContext *k, int i, Variable *v, DataType dtype) MUST_CHECK;
/* The error of a read when kernel_variable found nothing, in TensorFlow's words; takes err. */
Error *variable_missing(KernelContext *k, int i, Error *err);
/* Several threads: to[i] = to[i] op from[i] over all n elements of `size` bytes. */
void rows_apply(ThreadPool *pool, RowFn *fn, size_t size, void *to, const void *from, int64_t n);
/* An op on a reference passes it on. */
void kernel_pass_ref(KernelContext *k, int i);
/* Reshape: output 0 is input 0 in the shape that input 1 gives. */
Error *kernel_reshape(KernelContext *k) MUST_CHECK;
