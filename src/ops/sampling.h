/* sampling.h: what stateful and stateless random ops share once they have a generator. */
#pragma once
#include "kernels/random.h"
#include "runtime/kernel.h"

/* Output 0 with the shape that input `shape_input` gives; *out stays NULL when it could not be made (see k->error). */
Error *sampling_output(KernelContext *k, int shape_input, Tensor **out) MUST_CHECK;
Error *sampling_fill(KernelContext *k, RandomKind kind, Philox p, Tensor *out) MUST_CHECK;
/* Integers in [minval, maxval), given as scalars in two inputs; the range may be empty when there are none to draw. */
Error *sampling_range(KernelContext *k, int low_input, int high_input, int64_t count, RandomSpec *spec) MUST_CHECK;
Error *sampling_shuffle(KernelContext *k, Philox p) MUST_CHECK;                  /* rows of input 0, to output 0 */
/* Logits in input 0, how many samples of a row in input 1; to output 0. */
Error *sampling_class_count(KernelContext *k, int64_t *samples) MUST_CHECK;
Error *sampling_classes(KernelContext *k, int64_t samples, Philox p) MUST_CHECK;
/* out[s, i]: sample s of the gamma or Poisson distribution with parameter i. */
void sampling_parameters(ThreadPool *pool, Philox p, const Tensor *parameters, int64_t samples, bool gamma,
                         Tensor *out);
/* A generator from input i, the seed of a stateless op. */
Error *sampling_seed(KernelContext *k, int i, Philox *out) MUST_CHECK;
/* The same from inputs i, i + 1 and i + 2: key, counter and algorithm, of which Rill has Philox. */
enum { SAMPLING_PHILOX = 1, SAMPLING_AUTO = 3 };
Error *sampling_key(KernelContext *k, int i, Philox *out) MUST_CHECK;
/* Element i of a parameter of any real type, and of an output; NaN is 0 where it cannot be held. */
double sampling_number(const Tensor *t, int64_t i);
void sampling_put(Tensor *t, int64_t i, double x);

/* Parameters that are broadcast to each other: their common shape, with which the shape of the samples must end, and where element `at`
 * of it is in one of them. */
Error *sampling_batch(const Tensor *const *parameters, int count, const char *names, Shape *out) MUST_CHECK;
Error *sampling_ends_with(const Shape *shape, const Shape *batch) MUST_CHECK;
int64_t sampling_place(const Shape *small, const Shape *full, int64_t at);
