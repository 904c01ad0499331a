/* half_rows.h: arrays of half and bfloat16 made floats and back, by the processor's own conversions where it has them. */
#pragma once
#include <stdint.h>

#include "kernels/vector_math.h"

typedef void WidenFn(float *z, const uint16_t *x, int64_t n);
typedef void NarrowFn(uint16_t *z, const float *x, int64_t n); /* to the nearest, ties to even */
WidenFn half_widen, bfloat16_widen;
NarrowFn half_narrow, bfloat16_narrow;

/* A function of floats over halves; z may be x. */
void half_map(VectorFn *f, uint16_t *z, const uint16_t *x, int64_t n);
void bfloat16_map(VectorFn *f, uint16_t *z, const uint16_t *x, int64_t n);
