/* quantized.h: integers that stand for the floats of a range, converted as TensorFlow's quantized ops do, to the bit. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The integers of a type: int8, uint8, int16, uint16 or int32. */
typedef struct QuantizedType {
    int bits;
    int64_t lowest, highest;
} QuantizedType;
extern const QuantizedType quantized_i8, quantized_u8, quantized_i16, quantized_u16, quantized_i32;

int32_t quantized_get(const QuantizedType *t, const void *data, int64_t i);
void quantized_put(const QuantizedType *t, void *data, int64_t i, int32_t v);

typedef struct QuantizedRange {
    float low, high;
} QuantizedRange;

/* One number at a time, in doubles. The place of v on the line through the range, and the integer nearest to it. */
int64_t quantized_place(const QuantizedType *t, float v, QuantizedRange r);
int32_t quantized_from_float(const QuantizedType *t, float v, QuantizedRange r);
float quantized_to_float(const QuantizedType *t, int32_t v, QuantizedRange r);
static inline int32_t quantized_move(const QuantizedType *from, QuantizedRange a, const QuantizedType *to, QuantizedRange b, int32_t v) {
    return quantized_from_float(to, quantized_to_float(from, v, a), b);
}

/* Many numbers, in floats: v = base + integer * scale, and back. They round elsewhere than those above. */
typedef struct QuantizedReader {
    float base, scale;
} QuantizedReader;
typedef struct QuantizedWriter {
    float scale, shift, lower, upper;
} QuantizedWriter;
QuantizedReader quantized_reader(const QuantizedType *t, QuantizedRange r);
QuantizedWriter quantized_writer(const QuantizedType *t, QuantizedRange r);
static inline float quantized_read(QuantizedReader r, int32_t v) {
    return r.base + (float)v * r.scale;
}
int32_t quantized_write(QuantizedWriter w, float v);

/* n integers of one type and range as those of another; from int32 to uint8 in fixed point. */
void quantized_convert(const QuantizedType *from, QuantizedRange a, const void *x, const QuantizedType *to, QuantizedRange b, void *z, int64_t n);

/* The range of int32 sums of products. symmetric: signed types leave out their lowest number, as oneDNN's do. */
QuantizedRange quantized_product_range(const QuantizedType *a, QuantizedRange ra, const QuantizedType *b, QuantizedRange rb, bool symmetric);
