/* example_json.c: tf.Example written as JSON, made into wire format.

   The rules are those of protobuf's mapping to JSON, as far as an Example needs them, with the liberties that protobuf's reader
   takes: names of fields in either spelling, quotes of either kind or none around names, a comma before a closing bracket, numbers
   in quotes, one value in place of a list of one, lists in lists. null stands for a field that is not set and, in a list, for a
   zero. */
#include "io/example_json.h"

#include <ctype.h>
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/base64.h"
#include "base/hashmap.h"
#include "proto/wire.h"

enum { MAX_DEPTH = 100 };
static const double EXACT_LIMIT = 9007199254740992; /* 2^53: a number written with a fraction or an exponent is no larger */

typedef struct JsonReader {
    const char *at, *end, *start;
    int depth; /* of the brackets that are open */
} JsonReader;

static Error *wrong(const JsonReader *r, const char *at, const char *fmt, ...) PRINTF(3, 4);

static Error *wrong(const JsonReader *r, const char *at, const char *fmt, ...) {
    int line = 1, column = 1;
    for (const char *p = r->start; p < at; p++) {
        column = *p == '\n' ? 1 : column + 1;
        line += *p == '\n';
    }
    va_list args;
    va_start(args, fmt);
    Error *err = error_newv(CODE_INVALID_ARGUMENT, fmt, args);
    va_end(args);
    return error_wrap(err, "invalid JSON in tensorflow.Example, near %d:%d (offset %td)", line, column, at - r->start);
}

/* The next character that is no space; 0 at the end. */
static char peek(JsonReader *r) {
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r')) r->at++;
    return r->at < r->end ? *r->at : 0;
}

static Error *expect(JsonReader *r, char c) {
    char next = peek(r);
    if (r->at >= r->end) return error_invalid("unexpected EOF");
    if (next != c) return wrong(r, r->at, "unexpected character: '%c'; expected '%c'", next, c);
    r->at++;
    return NULL;
}

static bool take_null(JsonReader *r) {
    if (peek(r) != 'n' || r->end - r->at < 4 || memcmp(r->at, "null", 4)) return false;
    r->at += 4;
    return true;
}

/* ---- Lists in brackets ---- */

static Error *open_bracket(JsonReader *r, char c) {
    Error *err = expect(r, c);
    if (!err && ++r->depth > MAX_DEPTH) err = wrong(r, r->at - 1, "JSON content was too deeply nested");
    return err;
}

/* Whether another item follows in a list that ends with `close`; takes the comma before it, or the end. */
static Error *next_item(JsonReader *r, char close, bool *first, bool *more) {
    char c = peek(r);
    *more = true;
    if (!*first && c != close) {
        if (c != ',') return wrong(r, r->at, "expected ','");
        r->at++;
        c = peek(r);
    }
    *first = false;
    if (r->at >= r->end) return error_invalid("unexpected EOF");
    if (c == close) {
        r->at++;
        r->depth--;
        *more = false;
    }
    return NULL;
}

/* ---- Strings and names ---- */

static Error *take_hex(JsonReader *r, uint32_t *out) {
    if (r->end - r->at < 4) return error_invalid("unexpected EOF");
    *out = 0;
    for (int i = 0; i < 4; i++, r->at++) {
        int c = tolower((unsigned char)*r->at);
        if (!isxdigit(c)) return wrong(r, r->at, "invalid Unicode escape");
        *out = *out << 4 | (uint32_t)(isdigit(c) ? c - '0' : c - 'a' + 10);
    }
    return NULL;
}

/* After the backslash and its u; characters beyond 16 bits come as two. */
static Error *take_unicode(JsonReader *r, StrBuf *out) {
    const char *at = r->at;
    uint32_t high, low;
    Error *err = take_hex(r, &high);
    if (err) return err;
    if (high >= 0xdc00 && high < 0xe000) return wrong(r, at, "unpaired low surrogate");
    if (high >= 0xd800 && high < 0xdc00) {
        if (r->end - r->at < 2 || r->at[0] != '\\' || r->at[1] != 'u') return wrong(r, at, "unpaired high surrogate");
        r->at += 2;
        err = take_hex(r, &low);
        if (err) return err;
        if (low < 0xdc00 || low >= 0xe000) return wrong(r, at, "invalid low surrogate");
        high = 0x10000 + ((high - 0xd800) << 10 | (low - 0xdc00));
    }
    strbuf_add_utf8(out, high);
    return NULL;
}

static Error *take_escape(JsonReader *r, StrBuf *out) {
    static const char letters[] = "bfnrt\"'\\/", meaning[] = "\b\f\n\r\t\"'\\/";
    if (r->at >= r->end) return error_invalid("unexpected EOF");
    char c = *r->at++;
    if (c == 'u' || c == 'U') return take_unicode(r, out);
    const char *found = c ? strchr(letters, c) : NULL;
    if (!found) return wrong(r, r->at - 1, "invalid escape char: '%c'", c);
    strbuf_addc(out, meaning[found - letters]);
    return NULL;
}

static Error *take_string(JsonReader *r, StrBuf *out) {
    char quote = peek(r);
    if (r->at >= r->end) return error_invalid("unexpected EOF");
    if (quote != '"' && quote != '\'') return wrong(r, r->at, "unexpected character: '%c'; expected '\"'", quote);
    r->at++;
    while (r->at < r->end && *r->at != quote) {
        if (*r->at == '\\') {
            r->at++;
            Error *err = take_escape(r, out);
            if (err) return err;
            continue;
        }
        size_t n = str_utf8_length((Str){r->at, (size_t)(r->end - r->at)}, 0);
        if (n == 0) return wrong(r, r->at, "invalid UTF-8 in string");
        strbuf_add(out, (Str){r->at, n});
        r->at += n;
    }
    if (r->at >= r->end) return error_invalid("unexpected EOF");
    r->at++;
    return NULL;
}

/* A name and the colon behind it; `name` is emptied first. */
static Error *take_name(JsonReader *r, StrBuf *name) {
    char c = peek(r);
    Error *err = NULL;
    strbuf_clear(name);
    if (c == '"' || c == '\'') {
        err = take_string(r, name);
    } else {
        const char *from = r->at;
        while (r->at < r->end && (isalnum((unsigned char)*r->at) || *r->at == '_')) r->at++;
        Str word = {from, (size_t)(r->at - from)};
        if (word.len == 0 || isdigit((unsigned char)*from) || str_is(word, "null") || str_is(word, "true") || str_is(word, "false"))
            return wrong(r, from, "expected bare word");
        strbuf_add(name, word);
    }
    return err ? err : expect(r, ':');
}

/* ---- Values ---- */

/* The number as it is written, in quotes or not; `room` holds its text. */
static Error *take_number(JsonReader *r, StrBuf *room, bool *quoted) {
    char c = peek(r);
    const char *from = r->at;
    *quoted = c == '"' || c == '\'';
    if (*quoted) return take_string(r, room);
    if (c == 't' || c == 'f' || c == '{') return wrong(r, from, "expected number or string");
    if (c != '-' && !isdigit((unsigned char)c)) return wrong(r, from, "unexpected character: '%c'", c);
    const char *p = from + (c == '-'), *digits = p;
    while (p < r->end && isdigit((unsigned char)*p)) p++;
    if (p == digits) return wrong(r, from, "expected a number");
    if (p - digits > 1 && *digits == '0') return wrong(r, from, "number cannot have extraneous leading zero");
    if (p < r->end && *p == '.') {
        const char *point = p++;
        while (p < r->end && isdigit((unsigned char)*p)) p++;
        if (p == point + 1) return wrong(r, from, "number cannot have trailing period");
    }
    if (p < r->end && (*p == 'e' || *p == 'E')) {
        p++;
        if (p < r->end && (*p == '+' || *p == '-')) p++;
        const char *exponent = p;
        while (p < r->end && isdigit((unsigned char)*p)) p++;
        if (p == exponent) return wrong(r, from, "invalid number");
    }
    strbuf_add(room, (Str){from, (size_t)(p - from)});
    r->at = p;
    return NULL;
}

/* The whole of a text as a double, spaces around it aside; a number too large for one is infinite. */
static bool to_double(Str text, double *out) {
    char *copy = str_dup(str_trim(text)), *end = copy;
    bool has_zero = memchr(text.ptr, 0, text.len) != NULL;
    *out = strtod(copy, &end);
    bool ok = end != copy && *end == 0 && !has_zero;
    free(copy);
    return ok;
}

static Error *take_int(JsonReader *r, StrBuf *room, int64_t *out) {
    bool quoted;
    double d;
    Error *err = take_number(r, room, &quoted);
    if (err) return err;
    const Str text = strbuf_str(room);
    if (str_to_int64(text, out)) return NULL;
    if (str_trim(text).len != text.len) return wrong(r, r->at, "non-number characters in quoted number");
    if (!to_double(text, &d) || !isfinite(d)) return wrong(r, r->at, "invalid number: '%.*s'", STR_ARG(text));
    if (fabs(d) > EXACT_LIMIT) return wrong(r, r->at, "JSON number out of range for int");
    if (d != trunc(d)) return wrong(r, r->at, "expected integer, but JSON number had fractional part");
    *out = (int64_t)d;
    return NULL;
}

static Error *take_float(JsonReader *r, StrBuf *room, float *out) {
    bool quoted;
    double d;
    Error *err = take_number(r, room, &quoted);
    if (err) return err;
    const Str text = strbuf_str(room);
    if (!to_double(text, &d) || (!quoted && !isfinite(d))) return wrong(r, r->at, "invalid number: '%.*s'", STR_ARG(text));
    *out = (float)d;
    if (isfinite(d) && !isfinite(*out)) return wrong(r, r->at, "float out of range");
    if (fabsf(*out) < FLT_MIN) *out = copysignf(0, *out); /* TensorFlow has no subnormal numbers here */
    return NULL;
}

/* base64_decode, of letters of both alphabets; padding is whole or not there. */
static bool decode_base64(Str text, StrBuf *out) {
    size_t padding = 0;
    while (padding < text.len && text.ptr[text.len - 1 - padding] == '=') padding++;
    if (padding > 2 || (padding && (text.len % 4 || text.len == padding))) return false;
    char *copy = str_dup(text);
    for (size_t i = 0; i < text.len; i++) {
        if (copy[i] == '-') copy[i] = '+';
        if (copy[i] == '_') copy[i] = '/';
    }
    bool ok = base64_decode((Str){copy, text.len}, out);
    free(copy);
    return ok;
}

static Error *take_bytes(JsonReader *r, StrBuf *room, StrBuf *bytes) {
    const char *at = r->at;
    Error *err = take_string(r, room);
    if (err) return err;
    return decode_base64(strbuf_str(room), bytes) ? NULL : wrong(r, at, "corrupt base64");
}

enum { BYTES_LIST = 1, FLOAT_LIST = 2, INT64_LIST = 3 }; /* numbers of the fields of Feature */

static Error *take_value(JsonReader *r, uint32_t kind, StrBuf *list) {
    StrBuf room = {0}, bytes = {0};
    float real = 0;
    int64_t integer = 0;
    Error *err = NULL;
    bool null = take_null(r);
    switch (kind) {
        case BYTES_LIST:
            if (!null) err = take_bytes(r, &room, &bytes);
            if (!err) wire_put_bytes(list, 1, strbuf_str(&bytes));
            break;
        case FLOAT_LIST:
            if (!null) err = take_float(r, &room, &real);
            if (!err) wire_put_float(list, 1, real);
            break;
        default:
            if (!null) err = take_int(r, &room, &integer);
            if (!err) wire_put_uint(list, 1, (uint64_t)integer);
    }
    strbuf_clear(&room);
    strbuf_clear(&bytes);
    return err;
}

/* One value, or any number of them in brackets. */
static Error *take_values(JsonReader *r, uint32_t kind, StrBuf *list) {
    if (peek(r) != '[') return take_value(r, kind, list);
    bool first = true, more;
    Error *err = open_bracket(r, '[');
    while (!err && !(err = next_item(r, ']', &first, &more)) && more) err = take_values(r, kind, list);
    return err;
}

/* ---- Messages ---- */

typedef struct Parent {
    StrBuf *out; /* the message that the fields belong to */
    uint32_t kind;
    StrMap names;   /* of the features of one map, */
    Arena *arena;   /* which are kept here */
} Parent;

typedef Error *FieldFn(JsonReader *r, Parent *parent, Str name);

/* { name: value, ... }; fn reads a value. */
static Error *take_object(JsonReader *r, FieldFn *fn, Parent *parent) {
    StrBuf name = {0};
    bool first = true, more;
    Error *err = open_bracket(r, '{');
    while (!err && !(err = next_item(r, '}', &first, &more)) && more) {
        err = take_name(r, &name);
        if (!err && peek(r) == 0 && r->at >= r->end) err = error_invalid("unexpected EOF");
        if (!err) err = fn(r, parent, strbuf_str(&name));
    }
    strbuf_clear(&name);
    return err;
}

/* A message as the value of a field of the parent. */
static Error *take_message(JsonReader *r, Parent *parent, uint32_t field, FieldFn *fn, uint32_t kind) {
    StrBuf out = {0};
    Parent inner = {.out = &out, .kind = kind};
    Error *err = take_object(r, fn, &inner);
    if (!err) wire_put_bytes(parent->out, field, strbuf_str(&out));
    strbuf_clear(&out);
    return err;
}

static Error *no_such_field(const JsonReader *r, Str name) {
    return wrong(r, r->at, "no such field: '%.*s'", STR_ARG(name));
}

static Error *list_field(JsonReader *r, Parent *list, Str name) {
    if (!str_is(name, "value")) return no_such_field(r, name);
    return take_null(r) ? NULL : take_values(r, list->kind, list->out);
}

static Error *feature_field(JsonReader *r, Parent *feature, Str name) {
    static const char *const names[][2] = {{"bytesList", "bytes_list"}, {"floatList", "float_list"}, {"int64List", "int64_list"}};
    uint32_t kind = 0;
    for (uint32_t i = 0; i < 3; i++)
        if (str_is(name, names[i][0]) || str_is(name, names[i][1])) kind = i + 1;
    if (kind == 0) return no_such_field(r, name);
    if (take_null(r)) return NULL;
    if (feature->kind)
        return wrong(r, r->at, "'%.*s' has already been set (either directly or as part of a oneof)", STR_ARG(name));
    feature->kind = kind;
    return take_message(r, feature, kind, list_field, kind);
}

/* A feature and its name, an entry of the map. */
static Error *map_entry(JsonReader *r, Parent *map, Str name) {
    if (strmap_get(&map->names, name))
        return wrong(r, r->at, "got unexpectedly-repeated repeated map key: '%.*s'", STR_ARG(name));
    strmap_put(&map->names, arena_str(map->arena, name), map);
    StrBuf out = {0};
    Parent entry = {.out = &out};
    wire_put_bytes(&out, 1, name);
    Error *err = take_null(r) ? NULL : take_message(r, &entry, 2, feature_field, 0);
    if (!err) wire_put_bytes(map->out, 1, strbuf_str(&out));
    strbuf_clear(&out);
    return err;
}

static Error *features_field(JsonReader *r, Parent *features, Str name) {
    if (!str_is(name, "feature")) return no_such_field(r, name);
    if (take_null(r)) return NULL;
    Parent map = {.out = features->out, .arena = arena_new()};
    Error *err = take_object(r, map_entry, &map);
    strmap_clear(&map.names);
    arena_free(map.arena);
    return err;
}

static Error *example_field(JsonReader *r, Parent *example, Str name) {
    if (!str_is(name, "features")) return no_such_field(r, name);
    return take_null(r) ? NULL : take_message(r, example, 1, features_field, 0);
}

Error *example_from_json(Str json, StrBuf *out) {
    JsonReader r = {.at = json.ptr, .end = json.ptr + json.len, .start = json.ptr};
    Parent example = {.out = out};
    Error *err = take_object(&r, example_field, &example);
    if (err) return err;
    peek(&r);
    return r.at < r.end ? error_invalid("extraneous characters after end of JSON object") : NULL;
}
