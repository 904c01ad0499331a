/* rng_state.h: the state of a tf.random.Generator, a variable that random ops take numbers from. */
#pragma once
#include "base/rng.h"
#include "runtime/kernel.h"

/* The generator that the variable of input i holds, which then moves on by `samples`; `algorithm` must be Philox. */
Error *rng_state_take(KernelContext *k, int i, int64_t algorithm, uint64_t samples, Philox *out) MUST_CHECK;
/* The same for a state that begins with the number of its algorithm. */
Error *rng_state_take_tagged(KernelContext *k, int i, uint64_t samples, Philox *out) MUST_CHECK;
