/* uniform_scale.c: scales and zero points, checked, and the arithmetic with them. */
#include "ops/uniform_scale.h"

#include <math.h>

#include "ops/elements.h"

Error *uniform_check(const Shape *data, const Tensor *scales, const Tensor *zero_points, int64_t axis) {
    ShapeText s = shape_text(&scales->shape), z = shape_text(&zero_points->shape);
    if (!shape_eq(&scales->shape, &zero_points->shape))
        return error_invalid("scales and zero_points shape must be same, but given scales shape %s and zero_points shape %s", s.text, z.text);
    if (axis < -1 || axis >= data->rank) return error_invalid("quantization_axis must be -1 or in range [0, input.rank), but given %lld", (long long)axis);
    if (axis == -1 && scales->shape.rank != 0)
        return error_invalid("If quantization_axis is -1, scales and zero_points must be scalar tensors, but given scales shape %s and zero_points shape %s", s.text, z.text);
    if (axis >= 0 && (scales->shape.rank != 1 || scales->count != data->dims[axis]))
        return error_invalid(
            "If quantization_axis is not -1, scales and zero_points must be a tensor of rank 1 and the size must be equal to the input.dim_size(quantization_axis), but given "
            "quantization_axis %lld, scales shape %s and zero_points shape %s",
            (long long)axis, s.text, z.text);
    return NULL;
}

bool uniform_all_positive(const Tensor *scales) {
    for (int64_t i = 0; i < scales->count; i++)
        if (!(tensor_f32(scales)[i] > 0)) return false;
    return true;
}

Error *uniform_attr(const Node *node, const char *name, int32_t *out) {
    int64_t value = 0;
    Error *err = node_attr_int(node, name, &value);
    if (!err && (value < INT32_MIN || value > INT32_MAX)) err = error_invalid("Attr %s has value %lld out of range for an int32", name, (long long)value);
    if (!err) *out = (int32_t)value;
    return err;
}

Error *uniform_range(const Node *node, const char *low, const char *high, UniformRange *out) {
    Error *err = uniform_attr(node, low, &out->low);
    return err ? err : uniform_attr(node, high, &out->high);
}

Error *uniform_factor(double factor, UniformFactor *out) {
    if (!isfinite(factor) || factor <= 0) return error_invalid("double_multiplier must be a poisitive finite number. Given %g", factor);
    int shift = 0;
    int64_t whole = (int64_t)round(frexp(factor, &shift) * 2147483648.0);
    if (whole == INT64_C(1) << 31) {
        whole /= 2;
        shift++;
    }
    if (shift < -31) {
        shift = 0;
        whole = 0;
    } else if (shift > 30) {
        shift = 30;
        whole = INT32_MAX;
    }
    *out = (UniformFactor){(int32_t)whole, shift};
    return NULL;
}

int32_t uniform_scaled(int32_t v, UniformFactor f, int32_t zero_point, UniformRange range) {
    const int shift = 31 - f.shift;
    int64_t whole = (v * (int64_t)f.multiplier + (INT64_C(1) << (shift - 1))) >> shift;
    whole = whole < INT32_MIN ? INT32_MIN : whole > INT32_MAX ? INT32_MAX : whole;
    return uniform_clamp(wrap_add((int32_t)whole, zero_point), range);
}

int32_t uniform_quantized(float v, float inverse, int32_t zero_point, UniformRange range) {
    float scaled = v * inverse;
    scaled = floorf(scaled + 0.5f);
    int32_t whole = scaled >= -2147483648.0f && scaled < 2147483648.0f ? (int32_t)scaled : INT32_MIN;
    return uniform_clamp(wrap_add(whole, zero_point), range);
}

void uniform_asymmetric(const float *from, int64_t n, int8_t *to, float *scale, int32_t *zero_point) {
    const UniformRange range = {-128, 127};
    float least = 0, most = 0;
    for (int64_t i = 0; i < n; i++) {
        least = from[i] < least ? from[i] : least;
        most = from[i] > most ? from[i] : most;
    }
    const double low = (double)least, high = (double)most;
    *scale = (float)((high - low) / 255);
    float inverse = high != low ? (float)(255 / (high - low)) : 0;
    if (!(*scale != 0) || !isfinite(inverse)) {
        for (int64_t i = 0; i < n; i++) to[i] = 0;
        *scale = 1;
        *zero_point = 0;
        return;
    }
    const double below = low / (double)*scale, above = high / (double)*scale;
    double zero = 128 + fabs(below) < 127 + fabs(above) ? -128 - below : 127 - above;
    *zero_point = zero <= -128 ? -128 : zero >= 127 ? 127 : zero == zero ? (int32_t)round(zero) : 0;
    for (int64_t i = 0; i < n; i++) to[i] = (int8_t)uniform_quantized(from[i], inverse, *zero_point, range);
}
