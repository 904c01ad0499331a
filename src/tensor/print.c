/* print.c: elements and tensors as text. */
#include "tensor/print.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/float16.h"
#include "tensor/number.h"

static bool print_special(StrBuf *out, double v) {
    if (isnan(v)) strbuf_add(out, STR("nan"));
    if (isinf(v)) strbuf_addf(out, "%s", v < 0 ? "-inf" : "inf");
    return isnan(v) || isinf(v);
}

void print_float(StrBuf *out, float v) {
    char text[40];
    if (print_special(out, v)) return;
    snprintf(text, sizeof text, "%.*g", FLT_DIG, (double)v);
    if (strtof(text, NULL) != v) snprintf(text, sizeof text, "%.*g", FLT_DIG + 3, (double)v);
    strbuf_add(out, str_of(text));
}

void print_double(StrBuf *out, double v) {
    char text[40];
    if (print_special(out, v)) return;
    snprintf(text, sizeof text, "%.*g", DBL_DIG, v);
    if (strtod(text, NULL) != v) snprintf(text, sizeof text, "%.*g", DBL_DIG + 2, v);
    strbuf_add(out, str_of(text));
}

void print_escaped(StrBuf *out, Str s) {
    static const char specials[] = "\n\r\t\"'\\", letters[] = "nrt\"'\\";
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        const char *found = c ? strchr(specials, c) : NULL;
        if (found) {
            strbuf_addc(out, '\\');
            strbuf_addc(out, letters[found - specials]);
        } else if (c < 0x20 || c == 0x7f) {
            strbuf_addf(out, "\\%03o", c);
        } else {
            strbuf_addc(out, (char)c);
        }
    }
}

static void print_element(StrBuf *out, const Tensor *t, int64_t i, bool quoted) {
    switch (t->dtype) {
        case DT_FLOAT:
            print_float(out, tensor_f32(t)[i]);
            break;
        case DT_DOUBLE:
            print_double(out, tensor_f64(t)[i]);
            break;
        case DT_HALF:
            print_float(out, half_to_float(((const uint16_t *)t->data)[i]));
            break;
        case DT_BFLOAT16:
            print_float(out, bfloat16_to_float(((const uint16_t *)t->data)[i]));
            break;
        case DT_INT8:
        case DT_QINT8:
            strbuf_addf(out, "%d", ((const int8_t *)t->data)[i]);
            break;
        case DT_UINT8:
        case DT_QUINT8:
            strbuf_addf(out, "%u", tensor_u8(t)[i]);
            break;
        case DT_INT16:
        case DT_QINT16:
            strbuf_addf(out, "%d", ((const int16_t *)t->data)[i]);
            break;
        case DT_UINT16:
        case DT_QUINT16:
            strbuf_addf(out, "%u", ((const uint16_t *)t->data)[i]);
            break;
        case DT_INT32:
        case DT_QINT32:
            strbuf_addf(out, "%d", tensor_i32(t)[i]);
            break;
        case DT_UINT32:
            strbuf_addf(out, "%u", ((const uint32_t *)t->data)[i]);
            break;
        case DT_INT64:
            strbuf_addf(out, "%lld", (long long)tensor_i64(t)[i]);
            break;
        case DT_UINT64:
            strbuf_addf(out, "%llu", (unsigned long long)((const uint64_t *)t->data)[i]);
            break;
        case DT_BOOL:
            strbuf_addf(out, "%d", tensor_bool(t)[i]);
            break;
        case DT_STRING:
            if (quoted) strbuf_addc(out, '"');
            print_escaped(out, tstring_str(&tensor_str(t)[i]));
            if (quoted) strbuf_addc(out, '"');
            break;
        case DT_COMPLEX64:
            strbuf_addc(out, '(');
            print_float(out, (float)number_real(t, i));
            strbuf_addc(out, ',');
            print_float(out, (float)number_imag(t, i));
            strbuf_addc(out, ')');
            break;
        case DT_COMPLEX128:
            strbuf_addc(out, '(');
            print_double(out, number_real(t, i));
            strbuf_addc(out, ',');
            print_double(out, number_imag(t, i));
            strbuf_addc(out, ')');
            break;
        case DT_INT4:
        case DT_INT2:
            strbuf_addf(out, "%d", (int)number_int(t, i));
            break;
        case DT_UINT4:
        case DT_UINT2:
            strbuf_addf(out, "%u", (unsigned)number_uint(t, i));
            break;
        default:
            if (number_kind(t->dtype) == NUMBER_REAL)
                print_float(out, (float)number_real(t, i));
            else
                strbuf_addc(out, '?');
    }
}

/* Types of which TensorFlow prints the values. */
static bool is_printed(DataType t) {
    NumberKind kind = number_kind(t);
    if (t == DT_QINT32) return false;
    return kind == NUMBER_BOOL || kind == NUMBER_INT || kind == NUMBER_UINT || t == DT_STRING || t == DT_FLOAT || t == DT_DOUBLE || t == DT_HALF ||
           t == DT_BFLOAT16 || t == DT_FLOAT8_E5M2 || t == DT_FLOAT8_E4M3FN;
}

bool print_marks(StrBuf *out, const Tensor *t, int64_t max_entries) {
    if (is_printed(t->dtype)) return false;
    int64_t limit = max_entries < 0 || max_entries > t->count ? t->count : max_entries;
    for (int64_t i = 0; i < limit; i++) strbuf_add(out, i ? STR(" ?") : STR("?"));
    if (t->count > limit) strbuf_add(out, STR("..."));
    return true;
}

typedef struct Printing {
    StrBuf *out;
    const Tensor *t;
    int64_t limit, next; /* elements to print, of which the first `next` are done */
} Printing;

static void print_dimension(Printing *p, int d) {
    int rank = p->t->shape.rank;
    if (p->next >= p->limit) return;
    for (int64_t i = 0; i < p->t->shape.dims[d]; i++) {
        if (d == rank - 1) {
            if (p->next >= p->limit) {
                if (d != 0) strbuf_add(p->out, STR("..."));
                return;
            }
            if (i) strbuf_addc(p->out, ' ');
            print_element(p->out, p->t, p->next++, false);
            continue;
        }
        bool open = p->next < p->limit;
        if (open) strbuf_addc(p->out, '[');
        print_dimension(p, d + 1);
        if (open || p->next < p->limit) strbuf_addc(p->out, ']');
    }
}

void print_values(StrBuf *out, const Tensor *t, int64_t max_entries) {
    int64_t limit = max_entries < 0 || max_entries > t->count ? t->count : max_entries;
    if (t->shape.rank == 0) {
        if (limit) print_element(out, t, 0, false);
    } else {
        Printing p = {out, t, limit, 0};
        print_dimension(&p, 0);
    }
    if (t->count > limit) strbuf_add(out, STR("..."));
}

/* What separates two entries of dimension d. */
static void print_gap(StrBuf *out, int d, int rank) {
    if (d == rank - 1) {
        strbuf_addc(out, ' ');
        return;
    }
    for (int i = 0; i < rank - d - 1; i++) strbuf_addc(out, '\n');
    for (int i = 0; i <= d; i++) strbuf_addc(out, ' ');
}

static void print_nested_dimension(StrBuf *out, const Tensor *t, int d, int64_t first, int64_t ends) {
    int rank = t->shape.rank;
    if (d == rank) {
        print_element(out, t, first, true);
        return;
    }
    int64_t n = t->shape.dims[d], step = shape_prod(&t->shape, d + 1, rank);
    strbuf_addc(out, '[');
    for (int64_t i = 0; i < n; i++) {
        if (i) print_gap(out, d, rank);
        if (i == ends && n > 2 * ends) {
            strbuf_add(out, STR("..."));
            i = n - ends - 1;
            continue;
        }
        print_nested_dimension(out, t, d + 1, first + i * step, ends);
    }
    strbuf_addc(out, ']');
}

void print_nested(StrBuf *out, const Tensor *t, int64_t ends) {
    print_nested_dimension(out, t, 0, 0, ends < 0 || ends > t->count ? t->count : ends);
}
