/* number.c: reads and writes numbers by dtype. */
#include "tensor/number.h"

#include <math.h>

#include "base/float16.h"
#include "base/float8.h"

NumberKind number_kind(DataType t) {
    static const NumberKind kinds[DT_COUNT] = {
        [DT_BOOL] = NUMBER_BOOL,
        [DT_INT8] = NUMBER_INT,
        [DT_INT16] = NUMBER_INT,
        [DT_INT32] = NUMBER_INT,
        [DT_INT64] = NUMBER_INT,
        [DT_QINT8] = NUMBER_INT,
        [DT_QINT16] = NUMBER_INT,
        [DT_QINT32] = NUMBER_INT,
        [DT_INT4] = NUMBER_INT,
        [DT_INT2] = NUMBER_INT,
        [DT_UINT8] = NUMBER_UINT,
        [DT_UINT16] = NUMBER_UINT,
        [DT_UINT32] = NUMBER_UINT,
        [DT_UINT64] = NUMBER_UINT,
        [DT_QUINT8] = NUMBER_UINT,
        [DT_QUINT16] = NUMBER_UINT,
        [DT_UINT4] = NUMBER_UINT,
        [DT_UINT2] = NUMBER_UINT,
        [DT_FLOAT] = NUMBER_REAL,
        [DT_DOUBLE] = NUMBER_REAL,
        [DT_HALF] = NUMBER_REAL,
        [DT_BFLOAT16] = NUMBER_REAL,
        [DT_FLOAT8_E5M2] = NUMBER_REAL,
        [DT_FLOAT8_E4M3FN] = NUMBER_REAL,
        [DT_FLOAT8_E4M3FNUZ] = NUMBER_REAL,
        [DT_FLOAT8_E4M3B11FNUZ] = NUMBER_REAL,
        [DT_FLOAT8_E5M2FNUZ] = NUMBER_REAL,
        [DT_FLOAT4_E2M1FN] = NUMBER_REAL,
        [DT_COMPLEX64] = NUMBER_COMPLEX,
        [DT_COMPLEX128] = NUMBER_COMPLEX,
    };
    return kinds[dtype_base(t)];
}

/* Small integers are kept in bytes of which only the low bits count. */
static int64_t sign_extend(uint8_t byte, int bits) {
    int v = byte & ((1 << bits) - 1);
    return v >= 1 << (bits - 1) ? v - (1 << bits) : v;
}

int64_t number_int(const Tensor *t, int64_t i) {
    const void *p = t->data;
    switch (t->dtype) {
        case DT_BOOL:
            return ((const uint8_t *)p)[i] != 0;
        case DT_INT8:
        case DT_QINT8:
            return ((const int8_t *)p)[i];
        case DT_INT16:
        case DT_QINT16:
            return ((const int16_t *)p)[i];
        case DT_INT32:
        case DT_QINT32:
            return ((const int32_t *)p)[i];
        case DT_INT64:
            return ((const int64_t *)p)[i];
        case DT_INT4:
            return sign_extend(((const uint8_t *)p)[i], 4);
        case DT_INT2:
            return sign_extend(((const uint8_t *)p)[i], 2);
        default:
            return 0;
    }
}

uint64_t number_uint(const Tensor *t, int64_t i) {
    const void *p = t->data;
    switch (t->dtype) {
        case DT_UINT8:
        case DT_QUINT8:
            return ((const uint8_t *)p)[i];
        case DT_UINT16:
        case DT_QUINT16:
            return ((const uint16_t *)p)[i];
        case DT_UINT32:
            return ((const uint32_t *)p)[i];
        case DT_UINT64:
            return ((const uint64_t *)p)[i];
        case DT_UINT4:
            return ((const uint8_t *)p)[i] & 15;
        case DT_UINT2:
            return ((const uint8_t *)p)[i] & 3;
        default:
            return 0;
    }
}

static double small_float(DataType dtype, uint8_t byte) {
    switch (dtype) {
        case DT_FLOAT8_E5M2:
            return float8_value(byte, 2, 5, 15, FLOAT8_IEEE);
        case DT_FLOAT8_E4M3FN:
            return float8_value(byte, 3, 4, 7, FLOAT8_FN);
        case DT_FLOAT8_E4M3FNUZ:
            return float8_value(byte, 3, 4, 8, FLOAT8_FNUZ);
        case DT_FLOAT8_E4M3B11FNUZ:
            return float8_value(byte, 3, 4, 11, FLOAT8_FNUZ);
        case DT_FLOAT8_E5M2FNUZ:
            return float8_value(byte, 2, 5, 16, FLOAT8_FNUZ);
        default: /* DT_FLOAT4_E2M1FN */
            return float8_value(byte & 15, 1, 2, 1, FLOAT8_FINITE);
    }
}

double number_real(const Tensor *t, int64_t i) {
    const void *p = t->data;
    NumberKind kind = number_kind(t->dtype);
    if (kind == NUMBER_BOOL || kind == NUMBER_INT) return (double)number_int(t, i);
    if (kind == NUMBER_UINT) return (double)number_uint(t, i);
    switch (t->dtype) {
        case DT_FLOAT:
            return ((const float *)p)[i];
        case DT_DOUBLE:
            return ((const double *)p)[i];
        case DT_HALF:
            return half_to_float(((const uint16_t *)p)[i]);
        case DT_BFLOAT16:
            return bfloat16_to_float(((const uint16_t *)p)[i]);
        case DT_COMPLEX64:
            return ((const float *)p)[2 * i];
        case DT_COMPLEX128:
            return ((const double *)p)[2 * i];
        default:
            return kind == NUMBER_REAL ? small_float(t->dtype, ((const uint8_t *)p)[i]) : 0;
    }
}

double number_imag(const Tensor *t, int64_t i) {
    if (t->dtype == DT_COMPLEX64) return ((const float *)t->data)[2 * i + 1];
    if (t->dtype == DT_COMPLEX128) return ((const double *)t->data)[2 * i + 1];
    return 0;
}

/* ---- Writing ---- */

/* How many bits an integer dtype has. */
static int integer_bits(DataType t) {
    if (t == DT_INT4 || t == DT_UINT4) return 4;
    if (t == DT_INT2 || t == DT_UINT2) return 2;
    return (int)dtype_size(t) * 8;
}

static void put_bits(Tensor *t, int64_t i, uint64_t v) {
    size_t size = dtype_size(t->dtype); /* little endian: the low bytes come first */
    memcpy((char *)t->data + (size_t)i * size, &v, size);
}

bool number_put_int(Tensor *t, int64_t i, int64_t v) {
    NumberKind kind = number_kind(t->dtype);
    if (kind == NUMBER_UINT) return v >= 0 && number_put_uint(t, i, (uint64_t)v);
    if (kind == NUMBER_REAL || kind == NUMBER_COMPLEX) return number_put_real(t, i, (double)v);
    if (kind == NUMBER_BOOL) {
        if (v != 0 && v != 1) return false;
    } else if (kind == NUMBER_INT) {
        int bits = integer_bits(t->dtype);
        if (bits < 64 && (v >= (int64_t)1 << (bits - 1) || v < -((int64_t)1 << (bits - 1)))) return false;
    } else {
        return false;
    }
    put_bits(t, i, (uint64_t)v);
    return true;
}

bool number_put_uint(Tensor *t, int64_t i, uint64_t v) {
    NumberKind kind = number_kind(t->dtype);
    if (kind == NUMBER_REAL || kind == NUMBER_COMPLEX) return number_put_real(t, i, (double)v);
    if (kind != NUMBER_UINT) return v <= INT64_MAX && number_put_int(t, i, (int64_t)v);
    int bits = integer_bits(t->dtype);
    if (bits < 64 && v >> bits) return false;
    put_bits(t, i, v);
    return true;
}

bool number_put_complex(Tensor *t, int64_t i, double re, double im) {
    if (t->dtype == DT_COMPLEX64) {
        ((float *)t->data)[2 * i] = (float)re;
        ((float *)t->data)[2 * i + 1] = (float)im;
    } else if (t->dtype == DT_COMPLEX128) {
        ((double *)t->data)[2 * i] = re;
        ((double *)t->data)[2 * i + 1] = im;
    } else {
        return im == 0 && number_put_real(t, i, re);
    }
    return true;
}

bool number_put_real(Tensor *t, int64_t i, double v) {
    NumberKind kind = number_kind(t->dtype);
    if (kind == NUMBER_BOOL || kind == NUMBER_INT || kind == NUMBER_UINT) {
        if (!(v == floor(v) && v >= -0x1p63 && v < 0x1p64)) return false;
        return v < 0x1p63 ? number_put_int(t, i, (int64_t)v) : number_put_uint(t, i, (uint64_t)v);
    }
    switch (t->dtype) {
        case DT_FLOAT:
            ((float *)t->data)[i] = (float)v;
            return true;
        case DT_DOUBLE:
            ((double *)t->data)[i] = v;
            return true;
        case DT_HALF:
            ((uint16_t *)t->data)[i] = float_to_half((float)v);
            return true;
        case DT_BFLOAT16:
            ((uint16_t *)t->data)[i] = float_to_bfloat16((float)v);
            return true;
        case DT_COMPLEX64:
        case DT_COMPLEX128:
            return number_put_complex(t, i, v, 0);
        default:
            return false;
    }
}

static bool put_same(Tensor *to, const Tensor *from, int64_t i) {
    switch (number_kind(from->dtype)) {
        case NUMBER_BOOL:
        case NUMBER_INT:
            return number_put_int(to, i, number_int(from, i));
        case NUMBER_UINT:
            return number_put_uint(to, i, number_uint(from, i));
        case NUMBER_REAL:
            return number_put_real(to, i, number_real(from, i));
        case NUMBER_COMPLEX:
            return number_put_complex(to, i, number_real(from, i), number_imag(from, i));
        default:
            return false;
    }
}

Error *number_convert(const Tensor *t, DataType dtype, Tensor **out) {
    if (number_kind(t->dtype) == NUMBER_NONE || number_kind(dtype) == NUMBER_NONE)
        return error_invalid("%s cannot be made of %s", dtype_name(dtype), dtype_name(t->dtype));
    Tensor *result = NULL;
    Error *err = tensor_new(dtype, &t->shape, &result);
    for (int64_t i = 0; !err && i < t->count; i++)
        if (!put_same(result, t, i))
            err = error_invalid("element %lld, %.17g, does not fit into %s", (long long)i, number_real(t, i),
                                dtype_name(dtype));
    if (err)
        tensor_unref(result);
    else
        *out = result;
    return err;
}
