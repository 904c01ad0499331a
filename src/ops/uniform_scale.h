/* uniform_scale.h: integers that stand for (q - zero point) * scale, with one scale for a tensor or one for each index of an axis. */
#pragma once
#include "runtime/kernel.h"

/* The scales and zero points of a tensor: scalars when axis is -1, else vectors of as many as the axis has. InvalidArgument in TensorFlow's words. */
Error *uniform_check(const Shape *data, const Tensor *scales, const Tensor *zero_points, int64_t axis) MUST_CHECK;
bool uniform_all_positive(const Tensor *scales);
/* An attribute that must fit an int32. */
Error *uniform_attr(const Node *node, const char *name, int32_t *out) MUST_CHECK;

/* A positive factor as a whole number and a shift. */
typedef struct UniformFactor {
    int32_t multiplier;
    int shift;
} UniformFactor;
Error *uniform_factor(double factor, UniformFactor *out) MUST_CHECK;

/* Where the results may lie. */
typedef struct UniformRange {
    int32_t low, high;
} UniformRange;
Error *uniform_range(const Node *node, const char *low, const char *high, UniformRange *out) MUST_CHECK;

/* Whole numbers wrap around, as TensorFlow's do. */
static inline int32_t wrap_add(int32_t a, int32_t b) {
    return (int32_t)((uint32_t)a + (uint32_t)b);
}
static inline int32_t wrap_sub(int32_t a, int32_t b) {
    return (int32_t)((uint32_t)a - (uint32_t)b);
}
static inline int32_t wrap_mul(int32_t a, int32_t b) {
    return (int32_t)((uint32_t)a * (uint32_t)b);
}
static inline int32_t uniform_clamp(int32_t v, UniformRange r) {
    v = v < r.high ? v : r.high;
    return v > r.low ? v : r.low;
}
int32_t uniform_scaled(int32_t v, UniformFactor f, int32_t zero_point, UniformRange range);
/* floor(v * inverse + 0.5) + zero_point, in the range; what no int32 can hold is the least one. */
int32_t uniform_quantized(float v, float inverse, int32_t zero_point, UniformRange range);

/* n floats as bytes, with the scale and zero point that suit them. */
void uniform_asymmetric(const float *from, int64_t n, int8_t *to, float *scale, int32_t *zero_point);
