/* quantized.c: ranges of floats as integers. What is a float and what a double here decides about the last bit. */
#include "kernels/quantized.h"

#include <math.h>

const QuantizedType quantized_i8 = {8, INT8_MIN, INT8_MAX}, quantized_u8 = {8, 0, UINT8_MAX},
                    quantized_i16 = {16, INT16_MIN, INT16_MAX}, quantized_u16 = {16, 0, UINT16_MAX},
                    quantized_i32 = {32, INT32_MIN, INT32_MAX};

int32_t quantized_get(const QuantizedType *t, const void *data, int64_t i) {
    if (t->bits == 8) return t->lowest ? ((const int8_t *)data)[i] : ((const uint8_t *)data)[i];
    if (t->bits == 16) return t->lowest ? ((const int16_t *)data)[i] : ((const uint16_t *)data)[i];
    return ((const int32_t *)data)[i];
}

void quantized_put(const QuantizedType *t, void *data, int64_t i, int32_t v) {
    if (t->bits == 8)
        ((uint8_t *)data)[i] = (uint8_t)v;
    else if (t->bits == 16)
        ((uint16_t *)data)[i] = (uint16_t)v;
    else
        ((int32_t *)data)[i] = v;
}

/* As processors convert: what does not fit, and NaN, is the least number. */
static int64_t to_int64(double v) {
    return v >= -0x1p63 && v < 0x1p63 ? (int64_t)v : INT64_MIN;
}

static double steps_of(const QuantizedType *t) {
    return (double)((int64_t)1 << t->bits);
}

/* ---- One number, in doubles ---- */

int64_t quantized_place(const QuantizedType *t, float v, QuantizedRange r) {
    if (r.low == r.high) return t->lowest;
    double steps = steps_of(t), range = (double)(r.high - r.low) * (steps / (steps - 1.0)), scale = steps / range;
    return (int64_t)((uint64_t)to_int64(round((double)v * scale) - round((double)r.low * scale)) + (uint64_t)t->lowest);
}

static int64_t clamp(const QuantizedType *t, int64_t v) {
    return v < t->lowest ? t->lowest : v > t->highest ? t->highest : v;
}

int32_t quantized_from_float(const QuantizedType *t, float v, QuantizedRange r) {
    return (int32_t)clamp(t, quantized_place(t, v, r));
}

float quantized_to_float(const QuantizedType *t, int32_t v, QuantizedRange r) {
    if (r.low == r.high) return r.low;
    double steps = steps_of(t), range = (double)(r.high - r.low) * (steps / (steps - 1.0)), scale = range / steps;
    double low = round((double)(r.low / (float)scale)) * (double)(float)scale;
    return (float)(low + ((double)v - (double)t->lowest) * scale);
}

/* ---- Many, in floats ---- */

QuantizedReader quantized_reader(const QuantizedType *t, QuantizedRange r) {
    float scale = (float)((double)(r.high - r.low) / (steps_of(t) - 1.0));
    float low = r.high == r.low ? r.low : roundf(r.low / scale) * scale;
    return (QuantizedReader){low - (float)t->lowest * scale, scale};
}

QuantizedWriter quantized_writer(const QuantizedType *t, QuantizedRange r) {
    float scale = r.high == r.low ? 0.0f : (float)((steps_of(t) - 1.0) / (double)(r.high - r.low));
    float upper = t->bits == 32 ? 2.147483520e+09f : (float)t->highest;
    return (QuantizedWriter){scale, roundf(r.low * scale) - (float)t->lowest, (float)t->lowest, upper};
}

int32_t quantized_write(QuantizedWriter w, float v) {
    float place = roundf(v * w.scale) - w.shift;
    return place > w.lower ? (int32_t)(place < w.upper ? place : w.upper) : (int32_t)w.lower;
}

/* Sums become bytes in fixed point, with 16 bits behind the point. */
static void narrow_sums(QuantizedRange a, const int32_t *x, QuantizedRange b, uint8_t *z, int64_t n) {
    const float from = a.high - a.low, to = b.high - b.low, per_unit = to == 0.0f ? 0.0f : (float)(255.0 / (double)to);
    const float middle = (float)((double)(a.low + a.high) / 2.0);
    const int64_t scale = to == 0.0f ? 0 : to_int64(255.0 * 65536 * (double)from / (double)to);
    const uint64_t in_offset = (uint64_t)to_int64((double)(middle * per_unit * 65536.0f));
    const uint64_t out_offset = to == 0.0f ? 0 : (uint64_t)to_int64(65536 * ((double)b.low * 255.0) / (double)to);
    const uint64_t add = in_offset - out_offset + (1 << 15);
    for (int64_t i = 0; i < n; i++) {
        int64_t product = (int64_t)((uint64_t)(int64_t)x[i] * (uint64_t)scale);
        int64_t v = (int64_t)((uint64_t)(product >> 32) + add) >> 16;
        z[i] = (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
    }
}

void quantized_convert(const QuantizedType *from, QuantizedRange a, const void *x, const QuantizedType *to, QuantizedRange b, void *z, int64_t n) {
    if (from == &quantized_i32 && to == &quantized_u8) {
        narrow_sums(a, x, b, z, n);
        return;
    }
    const QuantizedReader reader = quantized_reader(from, a);
    const QuantizedWriter writer = quantized_writer(to, b);
    for (int64_t i = 0; i < n; i++)
        quantized_put(to, z, i, quantized_write(writer, quantized_read(reader, quantized_get(from, x, i))));
}

/* ---- Products ---- */

static float level(const QuantizedType *t, QuantizedRange r, bool symmetric) {
    int64_t lowest = t->lowest + (symmetric && t->lowest < -t->highest ? 1 : 0);
    return (r.high - r.low) / (float)(t->highest - lowest);
}

QuantizedRange quantized_product_range(const QuantizedType *a, QuantizedRange ra, const QuantizedType *b, QuantizedRange rb, bool symmetric) {
    float one = level(a, ra, symmetric) * level(b, rb, symmetric);
    return (QuantizedRange){one * (float)INT32_MIN, one * (float)INT32_MAX};
}
