/* grpc_frame.h: gRPC over HTTP/2: length-prefixed messages, and timeouts. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/str.h"
#include "net/lending.h"
#include "net/slice.h"

#define GRPC_MESSAGE_LIMIT ((size_t)INT32_MAX) /* of every implementation */

/* The message with its prefix in front; takes the slices. */
Message grpc_frame_message(Message *message);
/* The same, or what is sent in its place to a peer that can read our memory: then *loan must live as long as the call. */
Message grpc_frame_lend(const Lending *lending, Message *message, Loan **loan);

/* Collects the one message of a unary stream. Zero-initialised with a limit is ready. */
typedef struct GrpcReader {
    size_t limit;    /* longer messages are refused as soon as their prefix is there */
    AlignAt *align_at; /* (optional) */
    Lending *lending;  /* (optional) of the connection; has a reference. Without it, nothing is lent */
    bool is_lent;      /* what comes is a list of places in the peer's memory */
    uint8_t prefix[5];
    size_t prefix_len;
    char *memory; /* grows as the bytes come: a prefix alone reserves little */
    char *data;   /* in memory */
    size_t len, got, capacity;
} GrpcReader;

Error *grpc_reader_feed(GrpcReader *r, Str bytes) MUST_CHECK;
size_t grpc_reader_room(GrpcReader *r, char **to); /* where the next bytes go: fed from there they are not copied */
bool grpc_reader_is_complete(const GrpcReader *r);
/* The complete message; copies it when it was lent, with helpers: then it takes long. */
Error *grpc_reader_take(GrpcReader *r, ThreadPool *helpers, Message *out) MUST_CHECK;
void grpc_reader_clear(GrpcReader *r);

enum { GRPC_TIMEOUT_SIZE = 16 };
Str grpc_timeout_format(int64_t timeout_ns, char out[GRPC_TIMEOUT_SIZE]); /* rounds up; "20S", "1500m" */
bool grpc_timeout_parse(Str text, int64_t *timeout_ns);                   /* false when malformed */
