/* linalg.c: factorisations of dense matrices, once for double and once for Complex; triangular solves of floats, too. */
#include "kernels/linalg.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/block_cache.h"
#include "base/memory.h"
#include "kernels/diagonal.h"
#include "kernels/gemm.h"
#include "kernels/linalg_internal.h"
#include "kernels/triangle.h"

enum {
    BLOCK = TRIANGLE_SIDE,       /* columns that are worked on before the rest of a matrix follows */
    STRIP = 64,                  /* columns or rows that one thread takes at least */
    SOLVE_STRIP = 128,           /* columns that are solved for together */
    UPDATE_ROWS = 128,           /* of a triangle, changed by one product */
    SMALL_PRODUCT = 1 << 12,     /* for which gemm takes longer than a plain loop */
    PARALLEL_WORK = 1 << 20,     /* products that pay for another thread */
    PARALLEL_NUMBERS = 1 << 16,  /* numbers of a matrix, when it is multiplied by one vector */
};

static int64_t strips_of_a_thread(int64_t strips, ThreadPool *pool) {
    int64_t threads = pool ? threadpool_size(pool) : 1;
    return (strips + threads - 1) / threads;
}

/* Whether vectors need no more than floats have. */
static bool is_single(double epsilon) {
    return epsilon > 1e-12;
}

/* Where the first, second ... of the values stand. */
static void order_values(const double *values, int64_t n, bool descending, int64_t *order) {
    for (int64_t i = 0; i < n; i++) order[i] = i;
    for (int64_t i = 0; i + 1 < n; i++) {
        int64_t best = i;
        for (int64_t j = i + 1; j < n; j++) {
            double x = values[order[j]], y = values[order[best]];
            if (descending ? x > y : x < y) best = j;
        }
        int64_t swap = order[i];
        order[i] = order[best];
        order[best] = swap;
    }
}

/* Without the search for infinities in what is not a number that C has for it. */
static inline Complex times(Complex x, Complex y) {
    return __builtin_complex(creal(x) * creal(y) - cimag(x) * cimag(y), creal(x) * cimag(y) + cimag(x) * creal(y));
}

#define T float
#define PARTS 1
#define TIMES(x, y) ((x) * (y))
#define NAME(f) f##_f32
#define CONJ(x) (x)
#define gemm_f32 gemm_tiles_f32
#include "kernels/linalg_solve.inc"
#undef gemm_f32
#undef T
#undef PARTS
#undef TIMES
#undef NAME
#undef CONJ

#define T double
#define SHORT float
#define PARTS 1
#define TIMES(x, y) ((x) * (y))
#define NAME(f) f##_f64
#define CONJ(x) (x)
#define REAL(x) (x)
#define IMAG(x) 0.0
#define ABS(x) fabs(x)
#define ABS2(x) ((x) * (x))
#include "kernels/linalg_solve.inc"
#include "kernels/linalg_factor.inc"
#include "kernels/linalg_reflect.inc"
#include "kernels/linalg_hessenberg.inc"
#include "kernels/linalg_eigen.inc"
#include "kernels/linalg_svd.inc"
#undef T
#undef SHORT
#undef PARTS
#undef TIMES
#undef NAME
#undef CONJ
#undef REAL
#undef IMAG
#undef ABS
#undef ABS2

#define T Complex
#define SHORT float _Complex
#define PARTS 2
#define TIMES(x, y) times(x, y)
#define NAME(f) f##_c128
#define CONJ(x) conj(x)
#define REAL(x) creal(x)
#define IMAG(x) cimag(x)
#define ABS(x) cabs(x)
#define ABS2(x) (creal(x) * creal(x) + cimag(x) * cimag(x))
#include "kernels/linalg_solve.inc"
#include "kernels/linalg_factor.inc"
#include "kernels/linalg_reflect.inc"
#include "kernels/linalg_hessenberg.inc"
#include "kernels/linalg_eigen.inc"
#include "kernels/linalg_svd.inc"
