/* run_message.h: a RunStepRequest read where it lies: names and tensors point into the bytes of the message. */
#pragma once
#include "base/error.h"
#include "base/str.h"
#include "net/slice.h"
#include "tensor/tensor.h"

typedef struct RunMessage {
    Str session_handle, partial_run_handle;
    Str options; /* serialised RunOptions; empty: none */
    Str *feeds;  /* names; then those of fetches and of targets, in the same block */
    Str *fetches, *targets;
    Str *feed_protos; /* serialised TensorProtos, as many as feeds */
    int feed_count, fetch_count, target_count;
    bool store_errors_in_response_body;
    int64_t request_id;
} RunMessage;

/* `bytes` must outlive it. InvalidArgument when malformed; `out` is to be cleared in any case. */
Error *run_message_read(Message *bytes, RunMessage *out) MUST_CHECK;
void run_message_clear(RunMessage *m);
