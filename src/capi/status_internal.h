/* status_internal.h: from the runtime's errors to TF_Status and TF_Buffer. */
#pragma once
#include "base/error.h"
#include "base/str.h"
#include "tensorflow/c/tf_buffer.h"
#include "tensorflow/c/tf_status.h"

/* Takes err; NULL means TF_OK. True when the status is TF_OK afterwards. */
bool status_take(TF_Status *s, Error *err);
/* The other way: NULL when it is TF_OK. */
Error *status_error(const TF_Status *s);

/* The bytes of a buffer; empty when b is NULL. */
static inline Str buffer_str(const TF_Buffer *b) {
    return b && b->data ? (Str){b->data, b->length} : (Str){"", 0};
}
/* Fills an empty buffer that the caller gave, taking the bytes over; InvalidArgument when it holds something already. */
Error *buffer_fill(TF_Buffer *b, StrBuf *take) MUST_CHECK;
