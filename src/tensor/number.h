/* number.h: single elements of tensors of any numeric dtype, read and written one at a time: for tools, not for
 * kernels. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "tensor/tensor.h"

typedef enum NumberKind { NUMBER_NONE, NUMBER_BOOL, NUMBER_INT, NUMBER_UINT, NUMBER_REAL, NUMBER_COMPLEX } NumberKind;

NumberKind number_kind(DataType t); /* NUMBER_NONE: strings, handles, variants */

int64_t number_int(const Tensor *t, int64_t i);   /* of NUMBER_BOOL and NUMBER_INT */
uint64_t number_uint(const Tensor *t, int64_t i); /* of NUMBER_UINT */
double number_real(const Tensor *t, int64_t i);   /* of any kind; the real part of a complex number */
double number_imag(const Tensor *t, int64_t i);   /* 0 unless complex */

/* Writers, rounding to the nearest; false when the dtype cannot hold such a value. Not for 8- and 4-bit floats. */
bool number_put_int(Tensor *t, int64_t i, int64_t v);
bool number_put_uint(Tensor *t, int64_t i, uint64_t v);
bool number_put_real(Tensor *t, int64_t i, double v); /* whole numbers only where the dtype has no others */
bool number_put_complex(Tensor *t, int64_t i, double re, double im);

/* The same values as another numeric dtype; InvalidArgument names a value that does not fit. */
Error *number_convert(const Tensor *t, DataType dtype, Tensor **out) MUST_CHECK;
