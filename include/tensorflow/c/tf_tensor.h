/* tf_tensor.h: TF_Tensor, an array of elements of one type.

   Elements lie in row-major order. Those of TF_STRING are TF_TString structs (tf_tstring.h), 24 bytes each. */
#ifndef TENSORFLOW_C_TF_TENSOR_H_
#define TENSORFLOW_C_TF_TENSOR_H_

#include <stdbool.h>
#include <stdint.h>

#include "tensorflow/c/c_api_macros.h"
#include "tensorflow/c/tf_datatype.h"
#include "tensorflow/c/tf_status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct TF_AllocatorAttributes {
    size_t struct_size;
    TF_Bool on_host; /* 1: memory of the CPU */
} TF_AllocatorAttributes;
#define TF_ALLOCATOR_ATTRIBUTES_STRUCT_SIZE TF_OFFSET_OF_END(TF_AllocatorAttributes, on_host)

typedef struct TF_Tensor TF_Tensor;

/* A tensor over the caller's memory, given back by deallocator(data, len, deallocator_arg) when it is no longer needed:
 * at once when the memory is not aligned (it is copied then) or too small for the shape (NULL is returned then). */
TF_CAPI_EXPORT extern TF_Tensor *TF_NewTensor(TF_DataType, const int64_t *dims, int num_dims, void *data, size_t len,
                                              void (*deallocator)(void *data, size_t len, void *arg),
                                              void *deallocator_arg);
/* A tensor with memory of its own, aligned, to be filled through TF_TensorData. */
TF_CAPI_EXPORT extern TF_Tensor *TF_AllocateTensor(TF_DataType, const int64_t *dims, int num_dims, size_t len);
TF_CAPI_EXPORT extern size_t TF_TensorDefaultAlignment(void);
/* Takes `tensor` and returns one with the same memory when nobody else uses that; else NULL, and `tensor` stays. */
TF_CAPI_EXPORT extern TF_Tensor *TF_TensorMaybeMove(TF_Tensor *tensor);
TF_CAPI_EXPORT extern void TF_DeleteTensor(TF_Tensor *);

TF_CAPI_EXPORT extern TF_DataType TF_TensorType(const TF_Tensor *);
TF_CAPI_EXPORT extern void TF_SetShape(TF_Tensor *tensor, const int64_t *dims, int num_dims);
TF_CAPI_EXPORT extern int TF_NumDims(const TF_Tensor *);
TF_CAPI_EXPORT extern int64_t TF_Dim(const TF_Tensor *tensor, int dim_index); /* dim_index < TF_NumDims(tensor) */
TF_CAPI_EXPORT extern size_t TF_TensorByteSize(const TF_Tensor *);
TF_CAPI_EXPORT extern void *TF_TensorData(const TF_Tensor *);
TF_CAPI_EXPORT extern int64_t TF_TensorElementCount(const TF_Tensor *tensor);
TF_CAPI_EXPORT extern bool TF_TensorIsAligned(const TF_Tensor *);

/* Makes `to` share the memory of `from` as another type and shape of the same number of bytes, else InvalidArgument. */
TF_CAPI_EXPORT extern void TF_TensorBitcastFrom(const TF_Tensor *from, TF_DataType type, TF_Tensor *to,
                                                const int64_t *new_dims, int num_new_dims, TF_Status *status);

#ifdef __cplusplus
}
#endif

#endif
