/* json.c: tensors as JSON text. */
#include "tensor/json.h"

#include <math.h>
#include <stdlib.h>

#include "base/base64.h"
#include "tensor/number.h"
#include "tensor/print.h"

static bool is_utf8(Str s) {
    for (size_t i = 0, n; i < s.len; i += n)
        if (!(n = str_utf8_length(s, i))) return false;
    return true;
}

void json_print_str(StrBuf *out, Str s) {
    strbuf_addc(out, '"');
    for (size_t i = 0, n; i < s.len; i += n) {
        n = str_utf8_length(s, i);
        unsigned char c = (unsigned char)s.ptr[i];
        if (!n) {
            strbuf_add(out, STR("\xef\xbf\xbd"));
            n = 1;
        } else if (c == '"' || c == '\\') {
            strbuf_addf(out, "\\%c", c);
        } else if (c == '\n') {
            strbuf_add(out, STR("\\n"));
        } else if (c < 0x20 || c == 0x7f) {
            strbuf_addf(out, "\\u%04x", c);
        } else {
            strbuf_add(out, (Str){s.ptr + i, n});
        }
    }
    strbuf_addc(out, '"');
}

void json_print_bytes(StrBuf *out, Str s) {
    if (is_utf8(s)) {
        json_print_str(out, s);
        return;
    }
    static const char *const padding[] = {"", "==", "="};
    char *text = base64_encode(s);
    strbuf_addf(out, "{\"b64\": \"%s%s\"}", text, padding[s.len % 3]);
    free(text);
}

static bool print_special(StrBuf *out, double v) {
    if (isnan(v)) strbuf_add(out, STR("\"NaN\""));
    if (isinf(v)) strbuf_addf(out, "\"%sInfinity\"", v < 0 ? "-" : "");
    return !isfinite(v);
}

void json_print_double(StrBuf *out, double v) {
    if (!print_special(out, v)) print_double(out, v);
}

static void print_complex(StrBuf *out, const Tensor *t, int64_t i) {
    double parts[] = {number_real(t, i), number_imag(t, i)};
    strbuf_addc(out, '"');
    for (int p = 0; p < 2; p++) {
        if (p && !signbit(parts[1])) strbuf_addc(out, '+');
        if (p && isnan(parts[1]) && signbit(parts[1])) strbuf_addc(out, '+'); /* a NaN is printed without its sign */
        if (t->dtype == DT_COMPLEX64)
            print_float(out, (float)parts[p]);
        else
            print_double(out, parts[p]);
    }
    strbuf_add(out, STR("j\""));
}

void json_print_element(StrBuf *out, const Tensor *t, int64_t i) {
    switch (number_kind(t->dtype)) {
        case NUMBER_BOOL:
            strbuf_addf(out, "%s", number_int(t, i) ? "true" : "false");
            return;
        case NUMBER_INT:
            strbuf_addf(out, "%lld", (long long)number_int(t, i));
            return;
        case NUMBER_UINT:
            strbuf_addf(out, "%llu", (unsigned long long)number_uint(t, i));
            return;
        case NUMBER_COMPLEX:
            print_complex(out, t, i);
            return;
        case NUMBER_REAL:
            if (print_special(out, number_real(t, i))) return;
            if (t->dtype == DT_DOUBLE)
                print_double(out, number_real(t, i));
            else
                print_float(out, (float)number_real(t, i));
            return;
        case NUMBER_NONE:
            break;
    }
    if (t->dtype == DT_STRING) {
        json_print_bytes(out, tstring_str(&tensor_str(t)[i]));
    } else if (t->dtype == DT_RESOURCE) {
        const ResourceHandle *h = tensor_handles(t)[i];
        json_print_str(out, str_of(h ? h->name : ""));
    } else {
        const VariantType *type = t->dtype == DT_VARIANT ? tensor_variants(t)[i].type : NULL;
        json_print_str(out, str_of(type ? type->type_name : ""));
    }
}

static void print_dimension(StrBuf *out, const Tensor *t, int d, int64_t *next) {
    if (d == t->shape.rank) {
        json_print_element(out, t, (*next)++);
        return;
    }
    strbuf_addc(out, '[');
    for (int64_t i = 0; i < t->shape.dims[d]; i++) {
        if (i) strbuf_add(out, STR(", "));
        print_dimension(out, t, d + 1, next);
    }
    strbuf_addc(out, ']');
}

void json_print_tensor(StrBuf *out, const Tensor *t) {
    int64_t next = 0;
    print_dimension(out, t, 0, &next);
}
