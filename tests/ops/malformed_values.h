/* malformed_values.h: the table of malformed arguments: shapes, numbers, strings, handles; each row makes a tensor out of a valid one. */
#pragma once
#include <math.h>
#include <stdlib.h>

#include "base/float16.h"
#include "base/memory.h"
#include "tensor/tensor.h"

/* What becomes of the shape. */
typedef enum ShapeRule { KEEP, FIXED, DROP_FIRST, ADD_FIRST, GROW_FIRST, GROW_LAST, SHRINK_LAST, EMPTY_FIRST, EMPTY_LAST, FLAT, HUGE_EMPTY } ShapeRule;

/* What becomes of the elements: those of the valid tensor over and over, or one number everywhere, or in one place. */
typedef enum FillRule { CYCLE, ALL, FIRST, LAST, RAMP } FillRule;

typedef struct Pattern {
    const char *name;
    ShapeRule shape;
    FillRule fill;
    int rank;
    int64_t dims[8];
    long double number; /* of ALL, FIRST and LAST */
} Pattern;

#define HUGE_DIM ((int64_t)1 << 62)
#define MID_DIM ((int64_t)1 << 33)

static const Pattern patterns[] = {
    {"as it should be", .shape = KEEP},
    {"a scalar", FIXED, CYCLE, 0, {0}, 0},
    {"an empty vector", FIXED, CYCLE, 1, {0}, 0},
    {"[1]", FIXED, CYCLE, 1, {1}, 0},
    {"[2]", FIXED, CYCLE, 1, {2}, 0},
    {"[3]", FIXED, RAMP, 1, {3}, 0},
    {"[17]", FIXED, CYCLE, 1, {17}, 0},
    {"[1,1]", FIXED, CYCLE, 2, {1, 1}, 0},
    {"[2,3]", FIXED, CYCLE, 2, {2, 3}, 0},
    {"[3,0]", FIXED, CYCLE, 2, {3, 0}, 0},
    {"[0,3]", FIXED, CYCLE, 2, {0, 3}, 0},
    {"[2,2,2]", FIXED, CYCLE, 3, {2, 2, 2}, 0},
    {"[1,2,3,4]", FIXED, CYCLE, 4, {1, 2, 3, 4}, 0},
    {"[2,0,3,1]", FIXED, CYCLE, 4, {2, 0, 3, 1}, 0},
    {"[1,2,2,2,1]", FIXED, CYCLE, 5, {1, 2, 2, 2, 1}, 0},
    {"rank 7", FIXED, CYCLE, 7, {1, 1, 2, 1, 2, 1, 1}, 0},
    {"rank 8", FIXED, CYCLE, 8, {1, 2, 1, 1, 2, 1, 1, 2}, 0},
    {"[0,2^62]", FIXED, CYCLE, 2, {0, HUGE_DIM}, 0},
    {"[2^62,0]", FIXED, CYCLE, 2, {HUGE_DIM, 0}, 0},
    {"[2^33,0,2^33]", FIXED, CYCLE, 3, {MID_DIM, 0, MID_DIM}, 0},
    {"[2^33,2^33,0,1]", FIXED, CYCLE, 4, {MID_DIM, MID_DIM, 0, 1}, 0},
    {"without its first dimension", .shape = DROP_FIRST},
    {"with one dimension more", .shape = ADD_FIRST},
    {"with one row more", .shape = GROW_FIRST},
    {"with one column more", .shape = GROW_LAST},
    {"with one column less", .shape = SHRINK_LAST},
    {"without rows", .shape = EMPTY_FIRST},
    {"without columns", .shape = EMPTY_LAST},
    {"without rows, with 2^62 columns", .shape = HUGE_EMPTY},
    {"flat", .shape = FLAT},
    {"all 0", .fill = ALL},
    {"all 1", .fill = ALL, .number = 1},
    {"all -1", .fill = ALL, .number = -1},
    {"all 2^31-1", .fill = ALL, .number = 2147483647.0L},
    {"all -2^31", .fill = ALL, .number = -2147483648.0L},
    {"all 2^31", .fill = ALL, .number = 2147483648.0L},
    {"all 2^62", .fill = ALL, .number = 4611686018427387904.0L},
    {"all 2^63-1", .fill = ALL, .number = 9223372036854775807.0L},
    {"all -2^63", .fill = ALL, .number = -9223372036854775808.0L},
    {"all NaN", .fill = ALL, .number = NAN},
    {"all infinite", .fill = ALL, .number = INFINITY},
    {"all 1e-40", .fill = ALL, .number = 1e-40L},
    {"first -1", .fill = FIRST, .number = -1},
    {"first 0", .fill = FIRST, .number = 0},
    {"first 1000", .fill = FIRST, .number = 1000},
    {"first 2^31-1", .fill = FIRST, .number = 2147483647.0L},
    {"first -2^63", .fill = FIRST, .number = -9223372036854775808.0L},
    {"first NaN", .fill = FIRST, .number = NAN},
    {"last -1", .fill = LAST, .number = -1},
    {"last 7", .fill = LAST, .number = 7},
    {"last 2^31-1", .fill = LAST, .number = 2147483647.0L},
    {"last 2^63-1", .fill = LAST, .number = 9223372036854775807.0L},
    {"counting", .fill = RAMP},
    {"a scalar of -1", FIXED, ALL, 0, {0}, -1},
    {"a scalar of 2^31-1", FIXED, ALL, 0, {0}, 2147483647.0L},
    {"a scalar of 2^62", FIXED, ALL, 0, {0}, 4611686018427387904.0L},
    {"two of 2^33", FIXED, ALL, 1, {2}, 8589934592.0L},
    {"three of 2^24", FIXED, ALL, 1, {3}, 16777216.0L},
    {"four of 2^16", FIXED, ALL, 1, {4}, 65536.0L},
    {"four of 0", FIXED, ALL, 1, {4}, 0},
};
enum { PATTERN_COUNT = sizeof patterns / sizeof patterns[0] };

/* Of DT_STRING elements the number picks the text. */
#define TEXT(literal) {literal, sizeof(literal) - 1}
static const Str texts[] = {
    TEXT(""),
    TEXT("a"),
    TEXT("\0\0\0\0\0\0\0\0"),
    TEXT("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"),
    TEXT("1,2,\"3"),
    TEXT("((("),
    TEXT("%"),
    TEXT("-9223372036854775809"),
    TEXT("\x89PNG\r\n\x1a\n\0\0\0\rIHDR\x7f\xff\xff\xff\x7f\xff\xff\xff\x08\x06\0\0\0abcd"),
    TEXT("\xff\xd8\xff\xe0\0\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0\xff\xc0\0\x11\x08\xff\xff\xff\xff\x03\x01"),
    TEXT("GIF89a\xff\xff\xff\xff\xf7\0\0,\0\0\0\0\xff\xff\xff\xff\0\x08"),
    TEXT("BM\xff\xff\xff\x7f\0\0\0\0\x36\0\0\0\x28\0\0\0\xff\xff\xff\x7f\xff\xff\xff\x7f\x01\0\x18\0\0\0\0\0\0\0\0\0"),
    TEXT("\x08\x01\x12\x12\x12\x08\x08\x80\x80\x80\x80\x80\x80\x80\x40\x12\x08\x08\x80\x80\x80\x80\x80\x80\x80\x40\x22\x04\0\0\0\0"),
    TEXT("\x0a\x0a\x0a\x08\x0a\x01\x61\x12\x03\x1a\x01\x0a"),
    TEXT("\x0a\xff\xff\xff\xff\x0f\x01"),
    TEXT("\x78\x9c\x03\0\0\0\0\x01"),
    TEXT("RIFF\xff\xff\xff\xffWAVEfmt \x10\0\0\0\x01\0\xff\xff\0\0\0\0\0\0\0\0\0\0\x10\0"),
    TEXT("9999999999999999999999999999999999999999"),
};
enum { TEXT_COUNT = sizeof texts / sizeof texts[0] };

static inline uint64_t mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static inline long double clip(long double v, long double low, long double high) {
    return !(v >= low) ? low : v > high ? high : v; /* NaN: the least */
}

static inline void set_element(Tensor *t, int64_t i, long double v) {
    switch (t->dtype) {
    case DT_FLOAT: tensor_f32(t)[i] = (float)v; break;
    case DT_DOUBLE: tensor_f64(t)[i] = (double)v; break;
    case DT_HALF: ((uint16_t *)t->data)[i] = float_to_half((float)v); break;
    case DT_BFLOAT16: ((uint16_t *)t->data)[i] = float_to_bfloat16((float)v); break;
    case DT_COMPLEX64: tensor_f32(t)[2 * i] = (float)v, tensor_f32(t)[2 * i + 1] = 1; break;
    case DT_COMPLEX128: tensor_f64(t)[2 * i] = (double)v, tensor_f64(t)[2 * i + 1] = 1; break;
    case DT_INT64: tensor_i64(t)[i] = (int64_t)clip(v, (long double)INT64_MIN, (long double)INT64_MAX); break;
    case DT_UINT64: ((uint64_t *)t->data)[i] = v < 0 ? UINT64_MAX : (uint64_t)clip(v, 0, (long double)UINT64_MAX); break;
    case DT_INT32: case DT_QINT32: tensor_i32(t)[i] = (int32_t)clip(v, INT32_MIN, INT32_MAX); break;
    case DT_UINT32: ((uint32_t *)t->data)[i] = v < 0 ? UINT32_MAX : (uint32_t)clip(v, 0, UINT32_MAX); break;
    case DT_INT16: case DT_QINT16: ((int16_t *)t->data)[i] = (int16_t)clip(v, INT16_MIN, INT16_MAX); break;
    case DT_UINT16: case DT_QUINT16: ((uint16_t *)t->data)[i] = (uint16_t)clip(v, 0, UINT16_MAX); break;
    case DT_INT8: case DT_QINT8: ((int8_t *)t->data)[i] = (int8_t)clip(v, INT8_MIN, INT8_MAX); break;
    case DT_UINT8: case DT_QUINT8: tensor_u8(t)[i] = (uint8_t)clip(v, 0, UINT8_MAX); break;
    case DT_BOOL: tensor_bool(t)[i] = v != 0; break;
    case DT_STRING: tstring_set(&tensor_str(t)[i], texts[mix((uint64_t)clip(fabsl(v), 0, 1e18L)) % TEXT_COUNT]); break;
    case DT_RESOURCE: case DT_VARIANT: break;
    default: memset((char *)t->data + (size_t)i * dtype_size(t->dtype), (int)clip(v, 0, 15), dtype_size(t->dtype));
    }
}

static inline long double get_element(const Tensor *t, int64_t i) {
    switch (t->dtype) {
    case DT_FLOAT: return tensor_f32(t)[i];
    case DT_DOUBLE: return tensor_f64(t)[i];
    case DT_INT64: return tensor_i64(t)[i];
    case DT_INT32: case DT_QINT32: return tensor_i32(t)[i];
    case DT_INT16: case DT_QINT16: return ((int16_t *)t->data)[i];
    case DT_UINT16: case DT_QUINT16: return ((uint16_t *)t->data)[i];
    case DT_INT8: case DT_QINT8: return ((int8_t *)t->data)[i];
    case DT_UINT8: case DT_QUINT8: return tensor_u8(t)[i];
    case DT_BOOL: return tensor_bool(t)[i];
    default: return (long double)(i % 3);
    }
}

/* The same numbers in another type. */
static inline Tensor *retyped(const Tensor *t, DataType dtype) {
    Tensor *out = NULL;
    error_free(tensor_new(dtype, &t->shape, &out));
    for (int64_t i = 0; out && i < t->count; i++) set_element(out, i, get_element(t, i));
    return out;
}

static inline Shape ruled_shape(const Pattern *p, Shape s) {
    switch (p->shape) {
    case FIXED: return shape_of(p->rank, p->dims);
    case DROP_FIRST: if (s.rank) shape_remove_dim(&s, 0); break;
    case ADD_FIRST: if (s.rank < SHAPE_MAX_RANK) shape_insert_dim(&s, 0, 1); break;
    case GROW_FIRST: if (s.rank) s.dims[0]++; break;
    case GROW_LAST: if (s.rank) s.dims[s.rank - 1]++; break;
    case SHRINK_LAST: if (s.rank && s.dims[s.rank - 1]) s.dims[s.rank - 1]--; break;
    case EMPTY_FIRST: if (s.rank) s.dims[0] = 0; break;
    case EMPTY_LAST: if (s.rank) s.dims[s.rank - 1] = 0; break;
    case HUGE_EMPTY: if (s.rank > 1) s.dims[s.rank - 1] = HUGE_DIM, s.dims[0] = 0; break;
    case FLAT: return shape_vector(shape_count(&s));
    case KEEP: break;
    }
    return s;
}

/* What is fed instead of `valid`. NULL when the pattern makes nothing of it. */
static inline Tensor *malformed_tensor(const Pattern *p, const Tensor *valid) {
    Shape shape = ruled_shape(p, valid->shape);
    Tensor *t = NULL;
    error_free(tensor_new(valid->dtype, &shape, &t));
    if (!t) return NULL;
    for (int64_t i = 0; i < t->count; i++) {
        if (p->fill == ALL)
            set_element(t, i, p->number);
        else if (p->fill == RAMP)
            set_element(t, i, (long double)i);
        else if (valid->count && dtype_is_plain(t->dtype))
            memcpy((char *)t->data + (size_t)i * dtype_size(t->dtype), (char *)valid->data + (size_t)(i % valid->count) * dtype_size(t->dtype), dtype_size(t->dtype));
        else if (valid->count)
            elements_copy(t->dtype, (char *)t->data + (size_t)i * dtype_size(t->dtype), (char *)valid->data + (size_t)(i % valid->count) * dtype_size(t->dtype), 1);
        else
            set_element(t, i, 1);
    }
    if (t->count && p->fill == FIRST) set_element(t, 0, p->number);
    if (t->count && p->fill == LAST) set_element(t, t->count - 1, p->number);
    return t;
}

/* ---- Handles ---- */

enum { BAD_HANDLES = 6 };

/* Handles that lead nowhere: none at all, an empty tensor, foreign and unknown ones, one of another type. */
static inline Tensor *bad_handle(DataType dtype, int row) {
    Shape shape = row == 1 ? shape_vector(0) : row == 2 ? shape_vector(2) : SHAPE_SCALAR;
    Tensor *t = NULL;
    error_free(tensor_new(dtype, &shape, &t));
    if (!t || dtype != DT_RESOURCE || row < 3) return t;
    Str here = STR("/job:localhost/replica:0/task:0/device:CPU:0");
    if (row == 3) tensor_handles(t)[0] = resource_handle_new(STR("/job:elsewhere/replica:0/task:9/device:GPU:3"), STR("c"), STR("n"), STR("N10tensorflow3VarE"));
    if (row == 4) tensor_handles(t)[0] = resource_handle_new(here, STR(""), STR(""), STR(""));
    if (row == 5) tensor_handles(t)[0] = resource_handle_new(here, STR("localhost"), STR("variable"), STR("tensorflow::lookup::LookupInterface"));
    return t;
}
