/* compare.h: whether a tensor is what TensorFlow gave, and tensors as text; for the runners of golden cases. */
#pragma once
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/float16.h"
#include "base/str.h"
#include "tensor/tensor.h"

static inline double number_at(const Tensor *t, int64_t i) {
    switch (t->dtype) {
        case DT_FLOAT:
        case DT_COMPLEX64: return tensor_f32(t)[i];
        case DT_DOUBLE:
        case DT_COMPLEX128: return tensor_f64(t)[i];
        case DT_HALF: return half_to_float(((uint16_t *)t->data)[i]);
        case DT_BFLOAT16: return bfloat16_to_float(((uint16_t *)t->data)[i]);
        default: return 0;
    }
}

static inline bool is_float(DataType t) {
    return t == DT_FLOAT || t == DT_DOUBLE || t == DT_HALF || t == DT_BFLOAT16 || t == DT_COMPLEX64 || t == DT_COMPLEX128;
}

/* Dtypes and shapes are equal already. NaN equals NaN; what is no float must be equal to the bit. */
static inline bool values_equal(const Tensor *got, const Tensor *want, double rtol, double atol) {
    if (want->dtype == DT_STRING) {
        for (int64_t i = 0; i < want->count; i++)
            if (!str_eq(tstring_str(&tensor_str(got)[i]), tstring_str(&tensor_str(want)[i]))) return false;
        return true;
    }
    if (!is_float(want->dtype)) return tensor_bytes(want) == 0 || memcmp(got->data, want->data, tensor_bytes(want)) == 0;
    int64_t n = want->count * (want->dtype == DT_COMPLEX64 || want->dtype == DT_COMPLEX128 ? 2 : 1);
    for (int64_t i = 0; i < n; i++) {
        double g = number_at(got, i), w = number_at(want, i);
        if (isnan(w) ? isnan(g) : isinf(w) ? g == w : fabs(g - w) <= atol + rtol * fabs(w)) continue;
        return false;
    }
    return true;
}

static inline void describe_element(StrBuf *b, const Tensor *t, int64_t i) {
    bool complex = t->dtype == DT_COMPLEX64 || t->dtype == DT_COMPLEX128;
    if (t->dtype == DT_STRING)
        strbuf_addf(b, " '%.*s'", STR_ARG(str_slice(tstring_str(&tensor_str(t)[i]), 0, 60)));
    else if (complex)
        strbuf_addf(b, " %.9g%+.9gj", number_at(t, 2 * i), number_at(t, 2 * i + 1));
    else if (is_float(t->dtype))
        strbuf_addf(b, " %.9g", number_at(t, i));
    else if (dtype_size(t->dtype) == 8)
        strbuf_addf(b, " %lld", (long long)tensor_i64(t)[i]);
    else if (dtype_size(t->dtype) == 4)
        strbuf_addf(b, " %d", tensor_i32(t)[i]);
    else if (dtype_size(t->dtype) == 2)
        strbuf_addf(b, " %d", ((int16_t *)t->data)[i]);
    else
        strbuf_addf(b, " %d", tensor_u8(t)[i]);
}

/* Type, shape and the first elements; malloced. */
static inline char *describe_tensor(const Tensor *t, int64_t most) {
    StrBuf b = {0};
    char *shape = shape_str(&t->shape);
    strbuf_addf(&b, "%s%s", dtype_name(t->dtype), shape);
    for (int64_t i = 0; i < t->count && i < most; i++) describe_element(&b, t, i);
    free(shape);
    return strbuf_detach(&b);
}
