/* json_parse.c: text typed by people or written as JSON, as tensors. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/memory.h"
#include "tensor/json.h"
#include "tensor/number.h"

enum { MAX_SCALAR_TEXT = 400 };

typedef struct Parser {
    const char *at, *end;
    DataType dtype;
    int depth, rank; /* rank -1: no element seen yet */
    int64_t dims[SHAPE_MAX_RANK];
    StrBuf plain; /* elements of a numeric dtype */
    TString *strings;
    size_t string_capacity;
    int64_t count;
} Parser;

static void skip_space(Parser *p) {
    while (p->at < p->end && isspace((unsigned char)*p->at)) p->at++;
}

static Error *wrong(const Parser *p, const char *what) {
    Str rest = {p->at, (size_t)(p->end - p->at) < 20 ? (size_t)(p->end - p->at) : 20};
    return error_invalid("%s at '%.*s'", what, STR_ARG(rest));
}

/* ---- Strings ---- */

static bool parse_hex4(Parser *p, unsigned *out) {
    *out = 0;
    for (int i = 0; i < 4; i++, p->at++) {
        if (p->at >= p->end || !isxdigit((unsigned char)*p->at)) return false;
        int c = tolower((unsigned char)*p->at);
        *out = *out << 4 | (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    return true;
}

/* After the 'u' of an escape; two of them make one character above 0xffff. */
static bool parse_unicode(Parser *p, StrBuf *out) {
    unsigned c, low;
    if (!parse_hex4(p, &c)) return false;
    if (c >= 0xd800 && c < 0xdc00 && p->end - p->at >= 6 && p->at[0] == '\\' && p->at[1] == 'u') {
        p->at += 2;
        if (!parse_hex4(p, &low) || low < 0xdc00 || low > 0xdfff) return false;
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
    }
    strbuf_add_utf8(out, c);
    return true;
}

static Error *parse_quoted(Parser *p, StrBuf *out) {
    static const char letters[] = "nrtbf\"\\/", meaning[] = "\n\r\t\b\f\"\\/";
    const char *start = p->at++;
    while (p->at < p->end && *p->at != '"') {
        char c = *p->at++;
        if (c != '\\') {
            strbuf_addc(out, c);
            continue;
        }
        char letter = 0;
        if (p->at < p->end) letter = *p->at++;
        const char *found = letter ? strchr(letters, letter) : NULL;
        if (found)
            strbuf_addc(out, meaning[found - letters]);
        else if (letter != 'u' || !parse_unicode(p, out))
            return wrong(p, "unknown escape");
    }
    if (p->at >= p->end) {
        p->at = start;
        return wrong(p, "a string does not end");
    }
    p->at++;
    return NULL;
}

/* {"b64": "..."} */
static Error *parse_encoded(Parser *p, StrBuf *out) {
    StrBuf key = {0}, text = {0};
    p->at++;
    skip_space(p);
    Error *err = p->at < p->end && *p->at == '"' ? parse_quoted(p, &key) : wrong(p, "expected {\"b64\": ...}");
    skip_space(p);
    if (!err && (!str_is(strbuf_str(&key), "b64") || p->at >= p->end || *p->at++ != ':'))
        err = wrong(p, "expected {\"b64\": ...}");
    skip_space(p);
    if (!err) err = p->at < p->end && *p->at == '"' ? parse_quoted(p, &text) : wrong(p, "expected a string");
    skip_space(p);
    if (!err && (p->at >= p->end || *p->at++ != '}')) err = wrong(p, "expected }");
    if (!err && !base64_decode(strbuf_str(&text), out)) err = wrong(p, "not base64");
    strbuf_clear(&key);
    strbuf_clear(&text);
    return err;
}

/* Up to what ends an element; at depth 0 everything. */
static Str bare_word(Parser *p) {
    const char *start = p->at;
    while (p->at < p->end && (!p->depth || (*p->at != ',' && *p->at != ']'))) p->at++;
    return str_trim((Str){start, (size_t)(p->at - start)});
}

static Error *parse_string(Parser *p) {
    StrBuf text = {0};
    Error *err = NULL;
    if (p->at < p->end && *p->at == '"')
        err = parse_quoted(p, &text);
    else if (p->at < p->end && *p->at == '{')
        err = parse_encoded(p, &text);
    else
        strbuf_add(&text, bare_word(p));
    if (err) {
        strbuf_clear(&text);
        return err;
    }
    p->strings = vec_reserve(p->strings, &p->string_capacity, (size_t)p->count + 1, sizeof *p->strings);
    size_t len = text.len;
    p->strings[p->count] = (TString){0};
    tstring_take(&p->strings[p->count], strbuf_detach(&text), len);
    return NULL;
}

/* ---- Numbers ---- */

/* A real number at the start of the text; *rest is what follows. */
static bool take_real(char *text, double *v, char **rest) {
    *v = strtod(text, rest);
    return *rest != text;
}

/* "1", "-2.5", "3+4j", "4j", "(3+4j)" */
static bool take_complex(char *text, double *re, double *im) {
    char *rest;
    size_t len = strlen(text);
    if (len > 2 && text[0] == '(' && text[len - 1] == ')') {
        text[len - 1] = 0;
        text++;
    }
    *re = *im = 0;
    if (!take_real(text, re, &rest)) return false;
    if (*rest == 0) return true;
    if ((*rest == 'j' || *rest == 'i') && rest[1] == 0) {
        *im = *re;
        *re = 0;
        return true;
    }
    return (*rest == '+' || *rest == '-') && take_real(rest, im, &rest) && (*rest == 'j' || *rest == 'i') &&
           rest[1] == 0;
}

static bool put_number(Tensor *t, char *text) {
    NumberKind kind = number_kind(t->dtype);
    char *rest;
    double re, im;
    if (strcasecmp(text, "true") == 0) return number_put_int(t, 0, 1);
    if (strcasecmp(text, "false") == 0) return number_put_int(t, 0, 0);
    if (kind == NUMBER_INT || kind == NUMBER_UINT || kind == NUMBER_BOOL) {
        bool hex = strncasecmp(text + (*text == '-'), "0x", 2) == 0;
        errno = 0;
        long long v = strtoll(text, &rest, hex ? 16 : 10);
        if (*rest == 0 && rest != text && !errno) return number_put_int(t, 0, v);
        errno = 0;
        unsigned long long u = strtoull(text, &rest, hex ? 16 : 10);
        if (*rest == 0 && rest != text && !errno && *text != '-') return number_put_uint(t, 0, u);
        if (errno) return false;
    }
    return take_complex(text, &re, &im) && number_put_complex(t, 0, re, im);
}

static Error *parse_number(Parser *p) {
    const char *start = p->at;
    StrBuf quoted = {0};
    Str word = {0};
    Error *err = NULL;
    if (p->at < p->end && *p->at == '"') {
        err = parse_quoted(p, &quoted);
        word = strbuf_str(&quoted);
    } else {
        word = bare_word(p);
    }
    char text[MAX_SCALAR_TEXT + 1] = "", element[16];
    size_t size = dtype_size(p->dtype);
    Tensor one = {.dtype = p->dtype, .count = 1, .data = element};
    if (!err && word.len <= MAX_SCALAR_TEXT) {
        memcpy(text, word.ptr, word.len);
        text[word.len] = 0;
    }
    if (!err && (!*text || !put_number(&one, text))) {
        p->at = start;
        err = error_invalid("'%.*s' is no %s", (int)(word.len < 40 ? word.len : 40), word.ptr, dtype_name(p->dtype));
    }
    if (!err) strbuf_add(&p->plain, (Str){element, size});
    strbuf_clear(&quoted);
    return err;
}

/* ---- Lists ---- */

static Error *parse_value(Parser *p);

static Error *parse_list(Parser *p) {
    int depth = p->depth;
    int64_t n = 0;
    if (depth >= SHAPE_MAX_RANK) return wrong(p, "lists are nested too deep");
    p->at++;
    p->depth++;
    skip_space(p);
    while (p->at < p->end && *p->at != ']') {
        Error *err = parse_value(p);
        if (err) return err;
        n++;
        skip_space(p);
        if (p->at < p->end && *p->at == ',') {
            p->at++;
            skip_space(p);
        } else if (p->at < p->end && *p->at != ']') {
            return wrong(p, "expected , or ]");
        }
    }
    if (p->at >= p->end) return wrong(p, "a list does not end");
    p->at++;
    p->depth--;
    if (p->dims[depth] >= 0 && p->dims[depth] != n)
        return error_invalid("lists of different lengths at the same depth: %lld and %lld", (long long)p->dims[depth],
                             (long long)n);
    p->dims[depth] = n;
    if (n == 0 && p->rank < 0) p->rank = depth + 1;
    return NULL;
}

static Error *parse_value(Parser *p) {
    skip_space(p);
    if (p->at < p->end && *p->at == '[') return parse_list(p);
    if (p->rank >= 0 && p->rank != p->depth) return error_invalid("values at different depths of nested lists");
    p->rank = p->depth;
    Error *err = p->dtype == DT_STRING ? parse_string(p) : parse_number(p);
    if (!err) p->count++;
    return err;
}

static Error *make_tensor(Parser *p, Tensor **out) {
    Shape shape = {.rank = p->rank};
    for (int d = 0; d < p->rank; d++) shape.dims[d] = p->dims[d] < 0 ? 0 : p->dims[d];
    if (shape_prod(&shape, 0, shape.rank) != p->count)
        return error_invalid("nested lists do not form a box: %lld values", (long long)p->count);
    Tensor *t = NULL;
    Error *err = tensor_new(p->dtype, &shape, &t);
    if (err) return err;
    if (p->dtype == DT_STRING) {
        for (int64_t i = 0; i < p->count; i++) tstring_set(&tensor_str(t)[i], tstring_str(&p->strings[i]));
    } else if (p->plain.len) {
        memcpy(t->data, p->plain.ptr, p->plain.len);
    }
    *out = t;
    return NULL;
}

Error *json_parse_tensor(Str text, DataType dtype, Tensor **out) {
    if (number_kind(dtype) == NUMBER_NONE && dtype != DT_STRING)
        return error_invalid("a %s cannot be given as text", dtype_name(dtype));
    Parser p = {.at = text.ptr, .end = text.ptr + text.len, .dtype = dtype, .rank = -1};
    for (int d = 0; d < SHAPE_MAX_RANK; d++) p.dims[d] = -1;
    Error *err = parse_value(&p);
    skip_space(&p);
    if (!err && p.at < p.end) err = wrong(&p, "unexpected text");
    if (!err) err = make_tensor(&p, out);
    for (int64_t i = 0; i < p.count && p.strings; i++) tstring_clear(&p.strings[i]);
    free(p.strings);
    strbuf_clear(&p.plain);
    return err;
}
