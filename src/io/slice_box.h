/* slice_box.h: SliceBox, a slice with its ends known, and copying between two that meet. */
#pragma once
#include "io/tensor_slice.h"
#include "tensor/tensor.h"

/* start <= i < end in every dimension of the tensor it was cut out of. */
typedef struct SliceBox {
    int rank;
    int64_t start[SHAPE_MAX_RANK], end[SHAPE_MAX_RANK];
} SliceBox;

SliceBox slice_box(const TensorSlice *s, const Shape *full); /* the slice lies inside (slice_shape) */
SliceBox slice_box_whole(const Shape *full);
bool slice_box_meets(const SliceBox *a, const SliceBox *b); /* they have elements in common */
/* Internal, naming the first two, when two of the slices, all inside the tensor, have elements in common. */
Error *slices_check_disjoint(const TensorSlice *slices, size_t count, const Shape *full) MUST_CHECK;
/* Copies where the two meet; `to` and `from` are the tensors of the boxes. Returns the number of elements copied. */
int64_t slice_box_copy(const SliceBox *to_box, Tensor *to, const SliceBox *from_box, const Tensor *from);
