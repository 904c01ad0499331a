/* tf_status.h: TF_Status, how every call that can fail says what happened: a code and a text. */
#ifndef TENSORFLOW_C_TF_STATUS_H_
#define TENSORFLOW_C_TF_STATUS_H_

#include "tensorflow/c/c_api_macros.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct TF_Status TF_Status;

/* The codes of gRPC, which are those of TensorFlow. */
typedef enum TF_Code {
    TF_OK = 0,
    TF_CANCELLED = 1,
    TF_UNKNOWN = 2,
    TF_INVALID_ARGUMENT = 3,
    TF_DEADLINE_EXCEEDED = 4,
    TF_NOT_FOUND = 5,
    TF_ALREADY_EXISTS = 6,
    TF_PERMISSION_DENIED = 7,
    TF_UNAUTHENTICATED = 16,
    TF_RESOURCE_EXHAUSTED = 8,
    TF_FAILED_PRECONDITION = 9,
    TF_ABORTED = 10,
    TF_OUT_OF_RANGE = 11,
    TF_UNIMPLEMENTED = 12,
    TF_INTERNAL = 13,
    TF_UNAVAILABLE = 14,
    TF_DATA_LOSS = 15,
} TF_Code;

/* A new status is TF_OK. One status may serve many calls, one after the other. */
TF_CAPI_EXPORT extern TF_Status *TF_NewStatus(void);
TF_CAPI_EXPORT extern void TF_DeleteStatus(TF_Status *);

/* Replaces what the status said, its payloads too. */
TF_CAPI_EXPORT extern void TF_SetStatus(TF_Status *s, TF_Code code, const char *msg);
/* From an errno; the text is context and what the system says of it. */
TF_CAPI_EXPORT extern void TF_SetStatusFromIOError(TF_Status *s, int error_code, const char *context);
TF_CAPI_EXPORT extern TF_Code TF_GetCode(const TF_Status *s);
/* Valid until the status changes; "" when it is TF_OK. */
TF_CAPI_EXPORT extern const char *TF_Message(const TF_Status *s);

/* Pairs of texts that an error carries along; an earlier value of the key is replaced, TF_OK carries none. */
typedef void (*TF_PayloadVisitor)(const char *key, const char *value, void *capture);
TF_CAPI_EXPORT extern void TF_SetPayload(TF_Status *s, const char *key, const char *value);
TF_CAPI_EXPORT extern void TF_ForEachPayload(const TF_Status *s, TF_PayloadVisitor visitor, void *capture);

#ifdef __cplusplus
}
#endif

#endif
