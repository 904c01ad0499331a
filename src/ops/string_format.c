/* string_format.c: AsString, StringFormat, StringToNumber, EncodeBase64, DecodeBase64, Fact. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/decimal.h"
#include "base/float16.h"
#include "base/memory.h"
#include "ops/number_variant.h"
#include "ops/op_list.h"
#include "tensor/print.h"

const OpDef string_format_ops[] = {
    {"AsString", "input: T -> output: string",
     "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64, complex64, "
     "complex128, bool, variant, string}; precision: int = -1; scientific: bool = false; shortest: bool = false; "
     "width: int = -1; fill: string = ''",
     0},
    {"StringFormat", "inputs: T -> output: string",
     "T: list(type) >= 0; template: string = '%s'; placeholder: string = '%s'; summarize: int = 3", 0},
    {"StringToNumber", "string_tensor: string -> output: out_type",
     "out_type: {float, double, int32, int64, uint32, uint64} = float", 0},
    {"EncodeBase64", "input: string -> output: string", "pad: bool = false", 0},
    {"DecodeBase64", "input: string -> output: string", "", 0},
    {"Fact", "-> fact: string", "", 0},
    {0},
};

static void take_text(Tensor *t, int64_t i, StrBuf *b) {
    size_t len = b->len;
    tstring_take(&tensor_str(t)[i], strbuf_detach(b), len);
}

/* ---- AsString ---- */

typedef struct AsStringState {
    char flags[32]; /* of the conversion: "%", fill, width, precision */
    char conversion;
} AsStringState;

static Error *init_as_string(const Node *node, void *state) {
    AsStringState *s = state;
    int64_t precision, width;
    bool scientific, shortest;
    Str fill;
    DataType type;
    Error *err = node_attr_int(node, "precision", &precision);
    if (!err) err = node_attr_int(node, "width", &width);
    if (!err) err = node_attr_bool(node, "scientific", &scientific);
    if (!err) err = node_attr_bool(node, "shortest", &shortest);
    if (!err) err = node_attr_string(node, "fill", &fill);
    if (!err) err = node_attr_type(node, "T", &type);
    if (err) return err;
    bool real = type == DT_FLOAT || type == DT_DOUBLE || type == DT_HALF || type == DT_BFLOAT16 ||
                type == DT_COMPLEX64 || type == DT_COMPLEX128;
    if (scientific && shortest) return error_invalid("Cannot select both scientific and shortest notation");
    if (fill.len > 1) return error_invalid("Fill string must be one or fewer characters");
    if (fill.len && !strchr(" +-0#", fill.ptr[0]))
        return error_invalid("Fill argument not supported: \"%.*s\"", STR_ARG(fill));
    if (width > 4096 || precision > 4096) return error_invalid("width and precision must be at most 4096");
    if ((scientific || shortest) && !real)
        return error_invalid("scientific and shortest format not supported for datatype %s", dtype_name(type));
    if (precision >= 0 && !real) return error_invalid("precision not supported for datatype %s", dtype_name(type));
    int n = snprintf(s->flags, sizeof s->flags, "%%%.*s", STR_ARG(fill));
    if (width > -1) n += snprintf(s->flags + n, sizeof s->flags - (size_t)n, "%d", (int)width);
    if (precision > -1) snprintf(s->flags + n, sizeof s->flags - (size_t)n, ".%d", (int)precision);
    s->conversion = shortest ? 'g' : scientific ? 'e' : 'f';
    return NULL;
}

/* ---- The usual formats, without printf: a tenth of its time ---- */

enum { DECIMALS = 6 };

static bool is_usual(const AsStringState *s) {
    return s->flags[1] == '\0' && s->conversion == 'f';
}

/* The digits of v, at least `least` of them, end at `end`; returns where they begin. */
static char *digits_before(char *end, uint64_t v, int least) {
    for (; v > 0 || least > 0; v /= 10, least--) *--end = (char)('0' + v % 10);
    return end;
}

static void put_whole(uint64_t size, bool negative, StrBuf *b) {
    char text[32], *end = text + sizeof text, *at = digits_before(end, size, 1);
    if (negative) *--at = '-';
    strbuf_add(b, (Str){at, (size_t)(end - at)});
}

/* As "%f": the number is mantissa / 2^places exactly, and what is behind the sixth decimal is rounded to even. False: too large or too small for that. */
static bool put_decimals(double v, StrBuf *b) {
    const uint64_t million = 1000000;
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    int exponent = (int)(bits >> 52 & 0x7ff), places = 1075 - exponent;
    uint64_t mantissa = (bits & (((uint64_t)1 << 52) - 1)) | (uint64_t)1 << 52;
    if (v == 0) mantissa = 0, places = 1;
    if (places < 1 || places > 120) return false;
    uint64_t whole = places < 64 ? mantissa >> places : 0, part = places < 64 ? mantissa & (((uint64_t)1 << places) - 1) : mantissa;
    unsigned __int128 product = (unsigned __int128)part * million, half = (unsigned __int128)1 << (places - 1);
    uint64_t decimals = (uint64_t)(product >> places);
    unsigned __int128 rest = product - ((unsigned __int128)decimals << places);
    if (rest > half || (rest == half && decimals % 2 == 1)) decimals++;
    if (decimals == million) whole++, decimals = 0;
    char text[48], *end = text + sizeof text, *at = digits_before(end, decimals, DECIMALS);
    *--at = '.';
    at = digits_before(at, whole, 1);
    if (bits >> 63) *--at = '-';
    strbuf_add(b, (Str){at, (size_t)(end - at)});
    return true;
}

/* The format is built from checked parts in init, so it is one conversion of the right type. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
static void put_real(const AsStringState *s, double v, StrBuf *b) {
    char format[48];
    if (is_usual(s) && put_decimals(v, b)) return;
    snprintf(format, sizeof format, "%s%c", s->flags, s->conversion);
    strbuf_addf(b, format, v);
}

static void put_signed(const AsStringState *s, int64_t v, StrBuf *b) {
    char format[48];
    if (is_usual(s)) {
        put_whole(v < 0 ? 0 - (uint64_t)v : (uint64_t)v, v < 0, b);
        return;
    }
    snprintf(format, sizeof format, "%s%s", s->flags, PRId64);
    strbuf_addf(b, format, v);
}

static void put_unsigned(const AsStringState *s, uint64_t v, StrBuf *b) {
    char format[48];
    if (is_usual(s)) {
        put_whole(v, false, b);
        return;
    }
    snprintf(format, sizeof format, "%s%s", s->flags, PRIu64);
    strbuf_addf(b, format, v);
}

#pragma GCC diagnostic pop

static void put_complex(const AsStringState *s, double re, double im, StrBuf *b) {
    strbuf_addc(b, '(');
    put_real(s, re, b);
    strbuf_addc(b, ',');
    put_real(s, im, b);
    strbuf_addc(b, ')');
}

static void put_element(const AsStringState *s, const Tensor *t, int64_t i, StrBuf *b) {
    const void *p = t->data;
    switch (t->dtype) {
        case DT_FLOAT:
            put_real(s, tensor_f32(t)[i], b);
            break;
        case DT_DOUBLE:
            put_real(s, tensor_f64(t)[i], b);
            break;
        case DT_HALF:
            put_real(s, half_to_float(((const uint16_t *)p)[i]), b);
            break;
        case DT_BFLOAT16:
            put_real(s, bfloat16_to_float(((const uint16_t *)p)[i]), b);
            break;
        case DT_INT8:
            put_signed(s, ((const int8_t *)p)[i], b);
            break;
        case DT_INT16:
            put_signed(s, ((const int16_t *)p)[i], b);
            break;
        case DT_INT32:
            put_signed(s, tensor_i32(t)[i], b);
            break;
        case DT_INT64:
            put_signed(s, tensor_i64(t)[i], b);
            break;
        case DT_UINT8:
            put_unsigned(s, tensor_u8(t)[i], b);
            break;
        case DT_UINT16:
            put_unsigned(s, ((const uint16_t *)p)[i], b);
            break;
        case DT_UINT32:
            put_unsigned(s, ((const uint32_t *)p)[i], b);
            break;
        case DT_UINT64:
            put_unsigned(s, ((const uint64_t *)p)[i], b);
            break;
        case DT_BOOL:
            strbuf_add(b, str_of(tensor_bool(t)[i] ? "true" : "false")); /* the width is not for them */
            break;
        case DT_COMPLEX64:
            put_complex(s, tensor_f32(t)[2 * i], tensor_f32(t)[2 * i + 1], b);
            break;
        case DT_COMPLEX128:
            put_complex(s, tensor_f64(t)[2 * i], tensor_f64(t)[2 * i + 1], b);
            break;
        case DT_STRING:
            strbuf_add(b, tstring_str(&tensor_str(t)[i]));
            break;
        case DT_VARIANT: {
            int32_t value = 0;
            number_variant_int(&tensor_variants(t)[i], &value);
            strbuf_addf(b, "Variant<type: int value: %d>", value);
            break;
        }
        default:
            break;
    }
}

typedef struct AsStringJob {
    const AsStringState *state;
    const Tensor *in;
    Tensor *out;
} AsStringJob;

static void as_string_range(void *arg, int64_t begin, int64_t end) {
    const AsStringJob *job = arg;
    StrBuf b = {0};
    for (int64_t i = begin; i < end; i++) {
        b.len = 0;
        put_element(job->state, job->in, i, &b);
        tstring_set(&tensor_str(job->out)[i], (Str){b.ptr, b.len});
    }
    strbuf_clear(&b);
}

static Error *run_as_string(KernelContext *k) {
    int32_t number;
    for (int64_t i = 0; k->in[0]->dtype == DT_VARIANT && i < k->in[0]->count; i++)
        if (!number_variant_int(&tensor_variants(k->in[0])[i], &number)) return error_unimplemented("AsString of variants that are no int");
    Tensor *out = kernel_output(k, 0, &k->in[0]->shape);
    AsStringJob job = {k->state, k->in[0], out};
    if (out) threadpool_parallel_for(k->pool, out->count, 4096, as_string_range, &job);
    return NULL;
}

/* ---- StringFormat ---- */

typedef struct FormatState {
    char **parts; /* the template, cut at the placeholders */
    size_t *lens;
    int count;
    int64_t summarize;
} FormatState;

static void add_part(FormatState *s, Str part) {
    s->parts = xrealloc(s->parts, (size_t)(s->count + 1) * sizeof *s->parts);
    s->lens = xrealloc(s->lens, (size_t)(s->count + 1) * sizeof *s->lens);
    s->lens[s->count] = part.len;
    s->parts[s->count++] = str_dup(part);
}

static Error *init_format(const Node *node, void *state) {
    FormatState *s = state;
    Str text, placeholder;
    Error *err = node_attr_string(node, "template", &text);
    if (!err) err = node_attr_string(node, "placeholder", &placeholder);
    if (!err) err = node_attr_int(node, "summarize", &s->summarize);
    if (err) return err;
    for (size_t from = 0;;) {
        const char *hit =
            placeholder.len ? memmem(text.ptr + from, text.len - from, placeholder.ptr, placeholder.len) : NULL;
        add_part(s, str_slice(text, from, hit ? (size_t)(hit - text.ptr) : text.len));
        if (!hit) break;
        from = (size_t)(hit - text.ptr) + placeholder.len;
    }
    if (s->count - 1 != node->input_count)
        return error_invalid("num placeholders in template and num inputs must match: %d vs. %d", s->count - 1,
                             node->input_count);
    return NULL;
}

static void clear_format(void *state) {
    FormatState *s = state;
    for (int i = 0; i < s->count; i++) free(s->parts[i]);
    free(s->parts);
    free(s->lens);
}

/* Elements TensorFlow does not print are in one pair of brackets, whatever the shape. */
static void print_input(StrBuf *b, const Tensor *t, int64_t summarize) {
    StrBuf marks = {0};
    if (!print_marks(&marks, t, summarize))
        print_nested(b, t, summarize);
    else if (t->shape.rank == 0)
        strbuf_add(b, strbuf_str(&marks));
    else
        strbuf_addf(b, "[%.*s]", STR_ARG(strbuf_str(&marks)));
    strbuf_clear(&marks);
}

static Error *run_format(KernelContext *k) {
    const FormatState *s = k->state;
    StrBuf b = {0};
    for (int i = 0; i < s->count; i++) {
        strbuf_add(&b, (Str){s->parts[i], s->lens[i]});
        if (i < k->input_count) print_input(&b, k->in[i], s->summarize);
    }
    Tensor *out = kernel_output(k, 0, &SHAPE_SCALAR);
    if (out)
        take_text(out, 0, &b);
    else
        strbuf_clear(&b);
    return NULL;
}

/* ---- StringToNumber ---- */

/* Converts the whole of a trimmed text; false when it is no number of the type. */
static bool parse_number(Str s, DataType type, void *to) {
    char text[512], *end;
    while (s.len && isspace((unsigned char)s.ptr[0])) s = str_slice(s, 1, s.len);
    while (s.len && isspace((unsigned char)s.ptr[s.len - 1])) s = str_slice(s, 0, s.len - 1);
    if (type == DT_FLOAT && decimal_to_float(s, to)) return true;
    if (type == DT_DOUBLE && decimal_to_double(s, to)) return true;
    if (!s.len || s.len >= sizeof text || memchr(s.ptr, 0, s.len)) return false;
    memcpy(text, s.ptr, s.len);
    text[s.len] = 0;
    errno = 0;
    if (type == DT_FLOAT) {
        *(float *)to = strtof(text, &end);
        return *end == 0;
    }
    if (type == DT_DOUBLE) {
        *(double *)to = strtod(text, &end);
        return *end == 0;
    }
    if (!isdigit((unsigned char)text[s.len - 1])) return false;
    if (type == DT_UINT32 || type == DT_UINT64) {
        unsigned long long v = strtoull(text, &end, 10);
        bool ok = !errno && *end == 0 && text[0] != '-' && (type == DT_UINT64 || v <= UINT32_MAX);
        if (ok && type == DT_UINT32) *(uint32_t *)to = (uint32_t)v;
        if (ok && type == DT_UINT64) *(uint64_t *)to = v;
        return ok;
    }
    long long v = strtoll(text, &end, 10);
    bool ok = !errno && *end == 0 && (type == DT_INT64 || (v >= INT32_MIN && v <= INT32_MAX));
    if (ok && type == DT_INT32) *(int32_t *)to = (int32_t)v;
    if (ok && type == DT_INT64) *(int64_t *)to = v;
    return ok;
}

static Error *run_to_number(KernelContext *k) {
    Tensor *out = kernel_output(k, 0, &k->in[0]->shape);
    for (int64_t i = 0; out && i < out->count; i++) {
        Str s = tstring_str(&tensor_str(k->in[0])[i]);
        if (!parse_number(s, out->dtype, (char *)out->data + (size_t)i * dtype_size(out->dtype)))
            return error_invalid("StringToNumberOp could not correctly convert string: %.*s", STR_ARG(s));
    }
    return NULL;
}

/* ---- Base64, the web-safe alphabet ---- */

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static Error *init_pad(const Node *node, void *state) {
    return node_attr_bool(node, "pad", state);
}

static void encode(Str s, bool pad, StrBuf *b) {
    for (size_t i = 0; i < s.len; i += 3) {
        size_t n = s.len - i < 3 ? s.len - i : 3;
        uint32_t v = 0;
        for (size_t j = 0; j < 3; j++) v = v << 8 | (j < n ? (uint8_t)s.ptr[i + j] : 0u);
        for (size_t j = 0; j < 4; j++) {
            if (j <= n)
                strbuf_addc(b, alphabet[v >> (18 - 6 * j) & 63]);
            else if (pad)
                strbuf_addc(b, '=');
        }
    }
}

/* Only a last group of four may be padded. Groups before the last are read before its length is judged. */
static Error *decode(Str s, StrBuf *b) {
    bool whole = s.len && s.len % 4 == 0;
    for (int i = 0; whole && i < 2 && s.ptr[s.len - 1] == '='; i++) s.len--;
    size_t odd = s.len % 4 == 1;
    uint32_t v = 0;
    int bits = 0;
    for (size_t i = 0; i < s.len - odd; i++) {
        char c = s.ptr[i];
        const char *digit = c ? strchr(alphabet, c) : NULL;
        if (!digit) return error_invalid("Invalid character found in base64.");
        v = v << 6 | (uint32_t)(digit - alphabet);
        bits += 6;
        if (bits < 8) continue;
        bits -= 8;
        strbuf_addc(b, (char)(v >> bits));
    }
    return odd ? error_invalid("Base64 string length cannot be 1 modulo 4.") : NULL;
}

static Error *run_encode(KernelContext *k) {
    Tensor *out = kernel_output(k, 0, &k->in[0]->shape);
    for (int64_t i = 0; out && i < out->count; i++) {
        StrBuf b = {0};
        encode(tstring_str(&tensor_str(k->in[0])[i]), *(bool *)k->state, &b);
        take_text(out, i, &b);
    }
    return NULL;
}

static Error *run_decode(KernelContext *k) {
    Tensor *out = kernel_output(k, 0, &k->in[0]->shape);
    for (int64_t i = 0; out && i < out->count; i++) {
        StrBuf b = {0};
        Error *err = decode(tstring_str(&tensor_str(k->in[0])[i]), &b);
        if (err) {
            strbuf_clear(&b);
            return err;
        }
        take_text(out, i, &b);
    }
    return NULL;
}

static Error *run_fact(KernelContext *k) {
    kernel_set_output(k, 0, tensor_scalar_str(STR("0! == 1")));
    return NULL;
}

const KernelDef string_format_cpu[] = {
    {"AsString", .run = run_as_string, .state_size = sizeof(AsStringState), .init = init_as_string},
    {"StringFormat", .run = run_format, .state_size = sizeof(FormatState), .init = init_format, .clear = clear_format},
    {"StringToNumber", .run = run_to_number},
    {"EncodeBase64", .run = run_encode, .state_size = sizeof(bool), .init = init_pad},
    {"DecodeBase64", .run = run_decode},
    {"Fact", .run = run_fact},
    {0},
};
