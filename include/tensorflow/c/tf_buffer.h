/* tf_buffer.h: TF_Buffer, bytes that a call takes or gives, mostly a serialised message. */
#ifndef TENSORFLOW_C_TF_BUFFER_H_
#define TENSORFLOW_C_TF_BUFFER_H_

#include <stddef.h>

#include "tensorflow/c/c_api_macros.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The bytes are released by data_deallocator when the buffer is deleted; NULL: they belong to someone else. */
typedef struct TF_Buffer {
    const void *data;
    size_t length;
    void (*data_deallocator)(void *data, size_t length);
} TF_Buffer;

TF_CAPI_EXPORT extern TF_Buffer *TF_NewBufferFromString(const void *proto, size_t proto_len); /* a copy */
TF_CAPI_EXPORT extern TF_Buffer *TF_NewBuffer(void);                                          /* empty, to be filled by a call */
TF_CAPI_EXPORT extern void TF_DeleteBuffer(TF_Buffer *);
TF_CAPI_EXPORT extern TF_Buffer TF_GetBuffer(TF_Buffer *buffer);

#ifdef __cplusplus
}
#endif

#endif
