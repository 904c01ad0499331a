/* iterator_state.h: IteratorState, where an iterator stands, as a sequence of numbers and tensors. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/str.h"
#include "proto/wire.h"
#include "tensor/tensor.h"

/* Read in the order in which it was written. */
typedef struct IteratorState {
    StrBuf written;
    WireReader reader;
} IteratorState;

void state_put_int(IteratorState *s, int64_t v);
void state_put_text(IteratorState *s, Str v);
Error *state_put_tensor(IteratorState *s,
                        const Tensor *t) MUST_CHECK; /* Unimplemented for what has no serialised form */
Error *state_put_element(IteratorState *s, Tensor *const *e, int count) MUST_CHECK;
void state_put_error(IteratorState *s, const Error *err); /* NULL is allowed */

Error *state_get_int(IteratorState *s, int64_t *out) MUST_CHECK;
Error *state_get_range(IteratorState *s, int64_t min, int64_t max, int64_t *out) MUST_CHECK; /* DataLoss outside */
Error *state_get_text(IteratorState *s, Str *out) MUST_CHECK;                                /* borrowed */
Error *state_get_tensor(IteratorState *s, Tensor **out) MUST_CHECK;
/* `count` tensors of these types into out, which is left cleared on error. */
Error *state_get_element(IteratorState *s, const DataType *types, int count, Tensor **out) MUST_CHECK;
Error *state_get_error(IteratorState *s, Error **out) MUST_CHECK;
