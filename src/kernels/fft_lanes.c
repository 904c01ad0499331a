/* fft_lanes.c: many transforms of one length at once, one in each lane of vectors: passes of any factor run at full
 * width. */
#include <string.h>

#include "kernels/cpu.h"
#include "kernels/fft_internal.h"

typedef double _Complex Complex;

#define INLINE static inline __attribute__((always_inline))
#define VECTORS_OF(T) __attribute__((vector_size(FFT_LANES * sizeof(T)), aligned(sizeof(T)), may_alias))
typedef float FloatLanes VECTORS_OF(float);
typedef double DoubleLanes VECTORS_OF(double);
typedef struct FloatNumber {
    FloatLanes re, im;
} FloatNumber;
typedef struct DoubleNumber {
    DoubleLanes re, im;
} DoubleNumber;

#define CPU_BODY "kernels/fft_lanes.inc"
#define T float
#define Lanes FloatLanes
#define Number FloatNumber
#define NAME(f) CPU(f##_f32)
#include "kernels/each_cpu.inc"
#undef T
#undef Lanes
#undef Number
#undef NAME
#define T double
#define Lanes DoubleLanes
#define Number DoubleNumber
#define NAME(f) CPU(f##_f64)
#include "kernels/each_cpu.inc"

int64_t fft_lanes_scratch(const FftPlan *p) {
    return 2 * FFT_LANES * fft_plan_scratch(p);
}

void fft_lanes_f32(const FftPlan *p, float *data, float *scratch) {
    CPU_PICK(run_f32)(p, (void *)data, (void *)scratch);
}
void fft_lanes_f64(const FftPlan *p, double *data, double *scratch) {
    CPU_PICK(run_f64)(p, (void *)data, (void *)scratch);
}
void fft_lanes_real_f32(const FftPlan *p, bool inverse, float *data, float *scratch) {
    CPU_PICK(run_real_f32)(p, inverse, (void *)data, (void *)scratch);
}
void fft_lanes_real_f64(const FftPlan *p, bool inverse, double *data, double *scratch) {
    CPU_PICK(run_real_f64)(p, inverse, (void *)data, (void *)scratch);
}
