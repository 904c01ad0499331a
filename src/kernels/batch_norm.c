/* batch_norm.c: batch normalisation, channel by channel. */
#include "kernels/batch_norm.h"

#include <math.h>

#include "base/float16.h"

enum { BLOCK = 64 }; /* channels at a time */

#define S float
#define LOAD(s) (s)
#define STORE(c) (c)
#define NAME(f) f##_f32
#include "kernels/batch_norm.inc"
#undef S
#undef LOAD
#undef STORE
#undef NAME
#define S uint16_t
#define LOAD(s) half_to_float(s)
#define STORE(c) float_to_half(c)
#define NAME(f) f##_f16
#include "kernels/batch_norm.inc"
#undef LOAD
#undef STORE
#undef NAME
#define LOAD(s) bfloat16_to_float(s)
#define STORE(c) float_to_bfloat16(c)
#define NAME(f) f##_bf16
#include "kernels/batch_norm.inc"
