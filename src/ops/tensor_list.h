/* tensor_list.h: TensorList, a list of tensors that travels as a variant. */
#pragma once
#include "runtime/kernel.h"
#include "tensor/tensor.h"
#include "tensor/tensor_proto.h"

/* Immutable once shared; an op that holds the only reference may change it. */
typedef struct TensorList {
    RefCount refs;
    DataType dtype;
    PartialShape shape; /* of every element */
    int64_t max_count;  /* -1: no limit */
    Tensor **items;     /* NULL: not set yet */
    int64_t count;
    size_t capacity;
} TensorList;

extern const VariantType tensor_list_type;
extern const VariantDecoder tensor_list_decoder;

TensorList *tensor_list_new(DataType dtype, const PartialShape *shape, int64_t max_count);
void tensor_list_unref(TensorList *list);
void tensor_list_resize(TensorList *list, int64_t count); /* new elements are not set */
void tensor_list_set(TensorList *list, int64_t i, Tensor *item); /* keeps a reference */

/* The list in input i; InvalidArgument when it is none, or of another element type than `dtype` (DT_INVALID: any). Borrowed. */
Error *kernel_list(KernelContext *k, int i, DataType dtype, TensorList **out) MUST_CHECK;
/* A list like that of input i that may be changed: itself when nobody else holds it, else a copy. It becomes output o. */
Error *kernel_list_output(KernelContext *k, int i, int o, TensorList **out) MUST_CHECK;
/* Makes a new list the output o; takes it over. */
void kernel_set_list(KernelContext *k, int o, TensorList *take);

/* Merges what is known of two shapes; InvalidArgument when they clash. */
Error *partial_shape_merge(PartialShape *into, const PartialShape *from) MUST_CHECK;
bool partial_shape_is_full(const PartialShape *s); /* every dimension is known */
/* A partial shape given as a tensor: a vector with -1 for unknown, or the scalar -1. */
Error *kernel_partial_shape(KernelContext *k, int i, PartialShape *out) MUST_CHECK;

Error *tensor_zeros(DataType dtype, const Shape *shape, Tensor **out) MUST_CHECK;
/* Stacks items [0, n) along a new first dimension; unset ones are zeros of `shape`, which must then be fully known. */
Error *tensors_stack(Tensor *const *items, int64_t n, DataType dtype, const PartialShape *shape, Tensor **out) MUST_CHECK;
/* Joins them along the first dimension. */
Error *tensors_concat(Tensor *const *items, int64_t n, DataType dtype, const PartialShape *shape_except_first, Tensor **out, Tensor **lengths) MUST_CHECK;
/* Row i of a tensor without its first dimension; its own memory. */
Error *tensor_row(const Tensor *t, int64_t i, Tensor **out) MUST_CHECK;
