/* as_float.h: numbers of any real type as floats, for ops that compute in float whatever they are given. */
#pragma once
#include "runtime/kernel.h"

/* Elements [at, at + n) of a tensor of a floating or integer type. */
void floats_load(const Tensor *t, int64_t at, int64_t n, float *to);
void floats_store(const float *from, Tensor *t, int64_t at, int64_t n); /* floating types only; rounds */

/* The whole tensor as floats: itself (with a reference of its own) when it is of that type, else a converted copy; NULL
 * (and k->error) when there is no memory. Unref it. */
Tensor *kernel_floats(KernelContext *k, Tensor *t);
