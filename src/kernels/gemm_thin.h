/* gemm_thin.h: products with few columns, which libraries made for squares are slow at. */
#pragma once
#include <stdbool.h>

#include "kernels/gemm.h"

enum { GEMM_THIN_MOST = 12 }; /* columns */

/* c = a * b of floats; false, and nothing done, when the shape or the processor is not for it. Each element is the same sum however rows
 * are shared among threads. */
bool gemm_thin_f32(const Gemm *g, ThreadPool *pool);
