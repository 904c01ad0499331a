/* gemm_wide.c: products of doubles and of complex numbers, for which oneDNN has none. */
#include <complex.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "kernels/cpu.h"
#include "kernels/gemm.h"

enum { GEMM_TILE_M = 64, GEMM_TILE_N = 64, GEMM_TILE_K = 128 };
enum { GEMM_WORK = 1 << 20, GEMM_SMALL = 1 << 12 }; /* products that pay for another thread; for tiles */

#define T float
#define LANES 16
#define NAME(f) CPU(f##_f32)
#include "kernels/gemm_wide_levels.inc"
#undef T
#undef LANES
#undef NAME
#define T double
#define LANES 8
#define NAME(f) CPU(f##_f64)
#include "kernels/gemm_wide_levels.inc"
#undef T
#undef LANES
#undef NAME

#define PARTS 1
#define REAL(v) (v)
#define IMAG(v) 0
#define MAKE(re, im) (re)
#define ADD_TILE CPU_PICK(add_tile_f64)
#define COPY_ROWS CPU_PICK(copy_rows_f64)
#define SUBTRACT_ROWS CPU_PICK(subtract_rows_f64)
#define S double
#define T double
#define NAME(f) f##_f64
#include "kernels/gemm_wide.inc"
#undef PARTS
#undef REAL
#undef IMAG
#undef MAKE
#undef S
#undef NAME

#define PARTS 2
#define REAL(v) creal(v)
#define IMAG(v) cimag(v)
#define MAKE(re, im) __builtin_complex(re, im)
#define S double _Complex
#define NAME(f) f##_c128
#include "kernels/gemm_wide.inc"
#undef ADD_TILE
#undef COPY_ROWS
#undef SUBTRACT_ROWS
#undef REAL
#undef IMAG
#undef MAKE
#undef S
#undef T
#undef NAME

#define REAL(v) crealf(v)
#define IMAG(v) cimagf(v)
#define MAKE(re, im) __builtin_complex(re, im)
#define ADD_TILE CPU_PICK(add_tile_f32)
#define COPY_ROWS CPU_PICK(copy_rows_f32)
#define SUBTRACT_ROWS CPU_PICK(subtract_rows_f32)
#define S float _Complex
#define T float
#define NAME(f) f##_c64
#include "kernels/gemm_wide.inc"
