/* sampling.h: what stateful and stateless random ops share once they have a generator. */
#pragma once
#include "kernels/random.h"
#include "runtime/kernel.h"

/* Output 0 with the shape that input `shape_input` gives; *out stays NULL when it could not be made (see k->error). */
Error *sampling_output(KernelContext *k, int shape_input, Tensor **out) MUST_CHECK;
Error *sampling_fill(KernelContext *k, RandomKind kind, Philox p, Tensor *out) MUST_CHECK;
/* Integers in [minval, maxval), given as scalars in two inputs. */
Error *sampling_range(KernelContext *k, int low_input, int high_input, RandomSpec *spec) MUST_CHECK;
Error *sampling_shuffle(KernelContext *k, Philox p) MUST_CHECK;                  /* rows of input 0, to output 0 */
Error *sampling_classes(KernelContext *k, int64_t samples, Philox p) MUST_CHECK; /* logits in input 0, to output 0 */
/* out[s, i]: sample s of the gamma or Poisson distribution with parameter i. */
void sampling_parameters(ThreadPool *pool, Philox p, const Tensor *parameters, int64_t samples, bool gamma,
                         Tensor *out);
