/* tensor_slice.h: TensorSlice, a box cut out of a tensor: how partitioned variables are saved. */
#pragma once
#include <stdbool.h>

#include "base/error.h"
#include "base/str.h"
#include "tensor/shape.h"

/* Per dimension where it starts and how long it is; a length of -1 is the whole extent. */
typedef struct TensorSlice {
    int rank;
    int64_t start[SHAPE_MAX_RANK], length[SHAPE_MAX_RANK];
} TensorSlice;

bool slice_is_whole(const TensorSlice *s); /* every dimension */
void slice_text(const TensorSlice *s, StrBuf *out); /* "3,2:-" */
/* The shape of what is cut out of `full`; Internal when it does not lie inside. */
Error *slice_shape(const TensorSlice *s, const Shape *full, Shape *out) MUST_CHECK;

/* "5 2 3,2:0,2": the full shape, then the slice; "-" for a whole dimension. */
Error *slice_parse_spec(Str spec, Shape *full, TensorSlice *out) MUST_CHECK;
/* The same for a tensor that is to be saved as that slice, which must have its shape. */
Error *slice_of_tensor(Str spec, const Shape *tensor, Shape *full, TensorSlice *out) MUST_CHECK;

/* TensorSliceProto, both ways. */
bool slice_decode(Str proto, TensorSlice *out);
void slice_encode(const TensorSlice *s, StrBuf *out);

/* The key of a checkpoint under which the slice of a tensor is kept; ordered as (name, slice). */
void slice_key(Str name, const TensorSlice *s, StrBuf *out);
