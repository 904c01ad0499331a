/* grpc_status.h: an Error as gRPC trailers and back. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/str.h"
#include "net/http2.h"

/* grpc-message: UTF-8, percent-encoded, long texts are cut. */
char *grpc_message_encode(Str text);
char *grpc_message_decode(Str text);

/* grpc-status-details-bin, as TensorFlow's tasks fill it: which flags an error has. */
void grpc_details_encode(const Error *err, StrBuf *out);
bool grpc_details_decode(Str bytes, Error *err); /* sets the flags; false when malformed */

/* Trailers of a failed call; hold the text that the headers point to. */
typedef struct GrpcTrailers {
    Http2Header headers[5];
    size_t count;
    char code[4];
    char *message, *details;
} GrpcTrailers;

void grpc_trailers_init(GrpcTrailers *t, const Error *err); /* NULL: status 0 */
void grpc_trailers_clear(GrpcTrailers *t);

/* Collects the status from a response's headers. Zero-initialised is empty. */
typedef struct GrpcStatus {
    int http_status; /* 0: not seen */
    bool has_code, is_grpc;
    int code;
    char *message; /* decoded */
    StrBuf details;
} GrpcStatus;

void grpc_status_add(GrpcStatus *s, Str name, Str value);
Error *grpc_status_error(const GrpcStatus *s); /* NULL: OK */
void grpc_status_clear(GrpcStatus *s);

ErrorCode grpc_code_of_http2(uint32_t code); /* a stream that was reset */
