/* accumulator_resource.h: Accumulator, sums the gradients of several workers until enough have come. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "runtime/cancel.h"
#include "runtime/resource.h"
#include "tensor/tensor.h"

typedef struct AccumulatorSpec {
    bool sparse; /* rows by index, each with its own count */
    bool mean;   /* else the sum */
    DataType dtype;
    PartialShape shape;
} AccumulatorSpec;

typedef struct Accumulator Accumulator;
extern const ResourceType accumulator_type;

Error *accumulator_new(Str name, const AccumulatorSpec *spec, Accumulator **out) MUST_CHECK;
/* A shared accumulator must be of the same kind and type; that its shape differs is allowed, as in TensorFlow. */
Error *accumulator_check_spec(const Accumulator *a, const AccumulatorSpec *spec) MUST_CHECK;

/* Gradients computed from an older step than the accumulator's are dropped without an error. One that the caller alone holds may be kept
   and overwritten: the caller must not read it any more. */
Error *accumulator_apply(Accumulator *a, int64_t local_step, Tensor *gradient) MUST_CHECK;
/* indices: int64 [n]; values: [n, ...], as the gradient above; shape (optional): int64 vector, of the whole gradient. */
Error *accumulator_apply_sparse(Accumulator *a, int64_t local_step, const Tensor *indices, Tensor *values, const Tensor *shape) MUST_CHECK;

/* err is the callee's; results (1, or indices, values and shape) are borrowed. Never called with a lock held. */
typedef void AccumulatorDone(void *arg, Error *err, Tensor **results);
/* Waits until `required` gradients have come, gives their mean or sum and starts the next step. */
void accumulator_take(Accumulator *a, int64_t required, Cancel *cancel, AccumulatorDone *done, void *arg);

void accumulator_set_step(Accumulator *a, int64_t step);
int64_t accumulator_count(Accumulator *a); /* gradients since the last take */
bool accumulator_is_sparse(const Accumulator *a);
DataType accumulator_dtype(const Accumulator *a);
