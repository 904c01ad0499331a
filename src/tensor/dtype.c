/* dtype.c: the table of element types. */
#include "tensor/dtype.h"

#include "base/str.h"
#include "tensor/tensor.h"

typedef struct Row {
    const char *name, *ref_name;
    size_t size;
    bool plain;
} Row;

#define ROW(type, text, bytes) [type] = {text, text "_ref", bytes, true}

static const Row rows[DT_COUNT] = {
    ROW(DT_FLOAT, "float", 4),
    ROW(DT_DOUBLE, "double", 8),
    ROW(DT_INT32, "int32", 4),
    ROW(DT_UINT8, "uint8", 1),
    ROW(DT_INT16, "int16", 2),
    ROW(DT_INT8, "int8", 1),
    [DT_STRING] = {"string", "string_ref", sizeof(TString), false},
    ROW(DT_COMPLEX64, "complex64", 8),
    ROW(DT_INT64, "int64", 8),
    ROW(DT_BOOL, "bool", 1),
    ROW(DT_QINT8, "qint8", 1),
    ROW(DT_QUINT8, "quint8", 1),
    ROW(DT_QINT32, "qint32", 4),
    ROW(DT_BFLOAT16, "bfloat16", 2),
    ROW(DT_QINT16, "qint16", 2),
    ROW(DT_QUINT16, "quint16", 2),
    ROW(DT_UINT16, "uint16", 2),
    ROW(DT_COMPLEX128, "complex128", 16),
    ROW(DT_HALF, "half", 2),
    [DT_RESOURCE] = {"resource", "resource_ref", sizeof(ResourceHandle *), false},
    [DT_VARIANT] = {"variant", "variant_ref", sizeof(Variant), false},
    ROW(DT_UINT32, "uint32", 4),
    ROW(DT_UINT64, "uint64", 8),
    ROW(DT_FLOAT8_E5M2, "float8_e5m2", 1),
    ROW(DT_FLOAT8_E4M3FN, "float8_e4m3fn", 1),
    ROW(DT_FLOAT8_E4M3FNUZ, "float8_e4m3fnuz", 1),
    ROW(DT_FLOAT8_E4M3B11FNUZ, "float8_e4m3b11fnuz", 1),
    ROW(DT_FLOAT8_E5M2FNUZ, "float8_e5m2fnuz", 1),
    ROW(DT_INT4, "int4", 1),
    ROW(DT_UINT4, "uint4", 1),
    ROW(DT_INT2, "int2", 1),
    ROW(DT_UINT2, "uint2", 1),
    ROW(DT_FLOAT4_E2M1FN, "float4_e2m1fn", 1),
};

bool dtype_is_valid(int number) {
    int base = number > DT_REF ? number - DT_REF : number;
    return base > 0 && base < DT_COUNT;
}

size_t dtype_size(DataType t) {
    return rows[dtype_base(t)].size;
}

bool dtype_is_plain(DataType t) {
    return rows[dtype_base(t)].plain;
}

const char *dtype_name(DataType t) {
    if (!dtype_is_valid((int)t)) return "invalid";
    return dtype_is_ref(t) ? rows[dtype_base(t)].ref_name : rows[t].name;
}

DataType dtype_from_name(Str name) {
    static const struct {
        const char *name;
        DataType type;
    } others[] = {{"float32", DT_FLOAT}, {"float64", DT_DOUBLE}, {"float16", DT_HALF}};
    for (int t = 1; t < DT_COUNT; t++) {
        if (str_is(name, rows[t].name)) return (DataType)t;
        if (str_is(name, rows[t].ref_name)) return (DataType)(t + DT_REF);
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (str_is(name, others[i].name)) return others[i].type;
    return DT_INVALID;
}
