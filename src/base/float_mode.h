/* float_mode.h: whether a thread computes with numbers smaller than the normal ones, or takes them for zero.

   TensorFlow's kernels take them for zero, inputs and results alike: such numbers cost a hundred times more than others. */
#pragma once
#include <stdint.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

typedef uint64_t FloatMode;

#if defined(__x86_64__)
enum { FLOAT_MODE_FLUSH = 0x8040 }; /* results to zero, inputs are zero */
static inline FloatMode float_mode_get(void) {
    return _mm_getcsr();
}
static inline void float_mode_set(FloatMode mode) {
    _mm_setcsr((unsigned)mode);
}
#elif defined(__aarch64__)
enum { FLOAT_MODE_FLUSH = 1 << 24 };
static inline FloatMode float_mode_get(void) {
    FloatMode mode;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    return mode;
}
static inline void float_mode_set(FloatMode mode) {
    __asm__ volatile("msr fpcr, %0" : : "r"(mode));
}
#else
enum { FLOAT_MODE_FLUSH = 0 };
static inline FloatMode float_mode_get(void) {
    return 0;
}
static inline void float_mode_set(FloatMode mode) {
    (void)mode;
}
#endif

/* From now on this thread takes small numbers for zero. Returns what float_mode_restore needs. */
static inline FloatMode float_mode_flush(void) {
    FloatMode before = float_mode_get();
    if ((before & FLOAT_MODE_FLUSH) != FLOAT_MODE_FLUSH) float_mode_set(before | FLOAT_MODE_FLUSH);
    return before;
}

static inline void float_mode_restore(FloatMode before) {
    if ((before & FLOAT_MODE_FLUSH) != FLOAT_MODE_FLUSH) float_mode_set(before);
}
