/* update.c: one step of an optimizer on arrays, compiled for each level of processors. */
#include "kernels/update.h"

#include <complex.h>
#include <math.h>

#include "base/float16.h"
#include "kernels/cpu.h"

#define CPU_BODY "kernels/update_types.inc"
#include "kernels/each_cpu.inc"

#define TARGET
#define LOAD(x) (x)
#define STORE(x) (x)
#define T float _Complex
#define C float _Complex
#define SQRT csqrtf
#define NAME(x) x##_complex64
#include "kernels/update_complex.inc"

#define T double _Complex
#define C double _Complex
#define SQRT csqrt
#define NAME(x) x##_complex128
#include "kernels/update_complex.inc"

const UpdateFns *update_fns(UpdateType type) {
    switch (type) {
        case UPDATE_FLOAT:
            return CPU_PICK(update_float);
        case UPDATE_DOUBLE:
            return CPU_PICK(update_double);
        case UPDATE_HALF:
            return CPU_PICK(update_half);
        case UPDATE_BFLOAT16:
            return CPU_PICK(update_bfloat16);
        case UPDATE_COMPLEX64:
            return update_complex64;
        case UPDATE_COMPLEX128:
            return update_complex128;
    }
    return NULL;
}
