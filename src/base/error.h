/* error.h: Error, a code and a message; NULL is success. */
#pragma once
#include <stdarg.h>
#include <stdbool.h>

#define MUST_CHECK __attribute__((warn_unused_result))
#define PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

/* The codes of gRPC, which are also tensorflow.error.Code. */
typedef enum ErrorCode {
    CODE_OK = 0,
    CODE_CANCELLED = 1,
    CODE_UNKNOWN = 2,
    CODE_INVALID_ARGUMENT = 3,
    CODE_DEADLINE_EXCEEDED = 4,
    CODE_NOT_FOUND = 5,
    CODE_ALREADY_EXISTS = 6,
    CODE_PERMISSION_DENIED = 7,
    CODE_RESOURCE_EXHAUSTED = 8,
    CODE_FAILED_PRECONDITION = 9,
    CODE_ABORTED = 10,
    CODE_OUT_OF_RANGE = 11,
    CODE_UNIMPLEMENTED = 12,
    CODE_INTERNAL = 13,
    CODE_UNAVAILABLE = 14,
    CODE_DATA_LOSS = 15,
    CODE_UNAUTHENTICATED = 16,
} ErrorCode;

typedef struct Error {
    ErrorCode code;
    bool derived;   /* a consequence of another error, not the root */
    bool restarted; /* the peer seems to have lost its state */
    char *message;  /* UTF-8; bytes that are not are replaced when the error is made */
} Error;

Error *error_new(ErrorCode code, const char *fmt, ...) PRINTF(2, 3);
Error *error_newv(ErrorCode code, const char *fmt, va_list args);

/* Shorthands for the codes kernels use most. */
Error *error_invalid(const char *fmt, ...) PRINTF(1, 2);
Error *error_not_found(const char *fmt, ...) PRINTF(1, 2);
Error *error_internal(const char *fmt, ...) PRINTF(1, 2);
Error *error_unimplemented(const char *fmt, ...) PRINTF(1, 2);

/* Puts "text: " before, or text after, the message; NULL stays NULL. Return the same error. */
Error *error_wrap(Error *err, const char *fmt, ...) PRINTF(2, 3);
Error *error_append(Error *err, const char *fmt, ...) PRINTF(2, 3);

Error *error_derived(Error *err); /* marks it derived */
Error *error_copy(const Error *err);
void error_free(Error *err);
const char *error_code_name(ErrorCode code); /* "INVALID_ARGUMENT" */
