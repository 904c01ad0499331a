/* dtype.h: element types, numbered as types.proto. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

typedef enum DataType {
    DT_INVALID = 0,
    DT_FLOAT = 1,
    DT_DOUBLE = 2,
    DT_INT32 = 3,
    DT_UINT8 = 4,
    DT_INT16 = 5,
    DT_INT8 = 6,
    DT_STRING = 7,
    DT_COMPLEX64 = 8,
    DT_INT64 = 9,
    DT_BOOL = 10,
    DT_QINT8 = 11,
    DT_QUINT8 = 12,
    DT_QINT32 = 13,
    DT_BFLOAT16 = 14,
    DT_QINT16 = 15,
    DT_QUINT16 = 16,
    DT_UINT16 = 17,
    DT_COMPLEX128 = 18,
    DT_HALF = 19,
    DT_RESOURCE = 20,
    DT_VARIANT = 21,
    DT_UINT32 = 22,
    DT_UINT64 = 23,
    DT_FLOAT8_E5M2 = 24,
    DT_FLOAT8_E4M3FN = 25,
    DT_FLOAT8_E4M3FNUZ = 26,
    DT_FLOAT8_E4M3B11FNUZ = 27,
    DT_FLOAT8_E5M2FNUZ = 28,
    DT_INT4 = 29,
    DT_UINT4 = 30,
    DT_INT2 = 31,
    DT_UINT2 = 32,
    DT_FLOAT4_E2M1FN = 33,
    DT_COUNT = 34,
    DT_REF = 100, /* added to a type: a reference to a variable of it */
} DataType;

static inline bool dtype_is_ref(DataType t) {
    return t > DT_REF;
}
static inline DataType dtype_base(DataType t) {
    return t > DT_REF ? (DataType)(t - DT_REF) : t;
}
bool dtype_is_valid(int number);    /* a base type or a reference to one */
size_t dtype_size(DataType t);      /* bytes of one element in memory */
bool dtype_is_plain(DataType t);    /* elements are bytes that may be copied with memcpy */
const char *dtype_name(DataType t); /* as TensorFlow prints: "float", "int32", "float_ref" */
DataType dtype_from_name(Str name); /* DT_INVALID when unknown */
