/* candidate_sampler.h: what the samplers of classes ask of the true ones. */
#pragma once
#include "base/error.h"
#include "tensor/tensor.h"

/* A matrix of num_true columns, every class in [0, range); before the classes, whether the `needed` different samples are
 * possible. */
Error *true_classes_check(const Tensor *classes, int64_t num_true, int64_t range, int64_t needed, int64_t possible) MUST_CHECK;
