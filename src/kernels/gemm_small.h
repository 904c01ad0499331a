/* gemm_small.h: products of floats so small that calling a library takes longer than they do. */
#pragma once
#include <stdbool.h>

#include "kernels/gemm.h"

bool gemm_is_small(const Gemm *g);
void gemm_small_f32(const Gemm *g); /* adds as well */
