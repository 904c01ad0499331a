/* text.c: reads text format by the descriptors that protoc-c generates. */
#include "proto/text.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/wire.h"

enum { MAX_DEPTH = 100, MAX_NUMBER = 64 };

typedef struct TextReader {
    const char *at, *end, *start;
    const ProtobufCMessageDescriptor *const *any_types;
    int depth;
} TextReader;

static Error *wrong(const TextReader *r, const char *what) {
    int line = 1;
    for (const char *p = r->start; p < r->at; p++) line += *p == '\n';
    Str rest = {r->at, (size_t)(r->end - r->at) < 20 ? (size_t)(r->end - r->at) : 20};
    ptrdiff_t newline = str_find(rest, '\n');
    if (newline >= 0) rest.len = (size_t)newline;
    return error_invalid("line %d: %s at '%.*s'", line, what, STR_ARG(rest));
}

static void skip_space(TextReader *r) {
    while (r->at < r->end) {
        if (isspace((unsigned char)*r->at)) {
            r->at++;
        } else if (*r->at == '#') {
            while (r->at < r->end && *r->at != '\n') r->at++;
        } else {
            break;
        }
    }
}

/* Takes this character, when it is the next. */
static bool take(TextReader *r, char c) {
    skip_space(r);
    if (r->at >= r->end || *r->at != c) return false;
    r->at++;
    return true;
}

static char peek(TextReader *r) {
    skip_space(r);
    return r->at < r->end ? *r->at : 0;
}

static Str take_word(TextReader *r) {
    skip_space(r);
    const char *start = r->at;
    while (r->at < r->end && (isalnum((unsigned char)*r->at) || strchr("_.+-", *r->at))) r->at++;
    return (Str){start, (size_t)(r->at - start)};
}

/* ---- Strings ---- */

static int hex_digit(char c) {
    return isdigit((unsigned char)c) ? c - '0' : isxdigit((unsigned char)c) ? tolower((unsigned char)c) - 'a' + 10 : -1;
}

/* After a backslash. */
static bool take_escape(TextReader *r, StrBuf *out) {
    static const char letters[] = "abfnrtv\\'\"?", meaning[] = "\a\b\f\n\r\t\v\\'\"?";
    if (r->at >= r->end) return false;
    char c = *r->at++;
    const char *found = c ? strchr(letters, c) : NULL;
    unsigned v = 0;
    if (found) {
        strbuf_addc(out, meaning[found - letters]);
    } else if (c >= '0' && c <= '7') {
        v = (unsigned)(c - '0');
        for (int i = 0; i < 2 && r->at < r->end && *r->at >= '0' && *r->at <= '7'; i++)
            v = v * 8 + (unsigned)(*r->at++ - '0');
        strbuf_addc(out, (char)v);
    } else if (c == 'x' || c == 'X' || c == 'u' || c == 'U') {
        int most = c == 'u' ? 4 : c == 'U' ? 8 : 2, digits = 0;
        for (; digits < most && r->at < r->end && hex_digit(*r->at) >= 0; digits++)
            v = v * 16 + (unsigned)hex_digit(*r->at++);
        if (!digits || (most > 2 && (digits < most || v > 0x10ffff))) return false;
        if (most == 2)
            strbuf_addc(out, (char)v);
        else
            strbuf_add_utf8(out, v);
    } else {
        return false;
    }
    return true;
}

/* One or more quoted pieces, which are one string. */
static Error *take_string(TextReader *r, StrBuf *out) {
    char quote = peek(r);
    if (quote != '"' && quote != '\'') return wrong(r, "expected a string");
    for (; quote == '"' || quote == '\''; quote = peek(r)) {
        r->at++;
        while (r->at < r->end && *r->at != quote) {
            if (*r->at == '\n') return wrong(r, "a string does not end on its line");
            if (*r->at != '\\') {
                strbuf_addc(out, *r->at++);
                continue;
            }
            r->at++;
            if (!take_escape(r, out)) return wrong(r, "unknown escape in a string");
        }
        if (r->at >= r->end) return wrong(r, "a string does not end");
        r->at++;
    }
    return NULL;
}

/* ---- Numbers ---- */

typedef struct Number {
    bool negative, is_real;
    uint64_t whole; /* without its sign */
    double real;
} Number;

static bool parse_number(Str word, Number *out) {
    char text[MAX_NUMBER + 1], *at = text, *end;
    if (!word.len || word.len > MAX_NUMBER) return false;
    memcpy(text, word.ptr, word.len);
    text[word.len] = 0;
    *out = (Number){0};
    errno = 0;
    out->whole = strtoull(at + (*at == '-'), &end, 0); /* also hexadecimal and octal */
    out->negative = *at == '-';
    if (!*end && end > at + out->negative && !errno && isdigit((unsigned char)at[out->negative])) {
        out->real = out->negative ? -(double)out->whole : (double)out->whole;
        return true;
    }
    out->is_real = true;
    out->real = strtod(text, &end);
    return end > text && (!*end || ((*end == 'f' || *end == 'F') && !end[1]));
}

static Error *take_number(TextReader *r, Number *out) {
    bool minus = take(r, '-'); /* a space may follow it */
    const char *before = r->at;
    Str word = take_word(r);
    if (!parse_number(word, out) || (minus && out->negative)) {
        r->at = before;
        return wrong(r, "expected a number");
    }
    if (minus) {
        out->negative = true;
        out->real = -out->real;
    }
    return NULL;
}

static Error *take_integer(TextReader *r, int bits, bool is_signed, uint64_t *out) {
    Number n = {0};
    Error *err = take_number(r, &n);
    if (err) return err;
    uint64_t most = is_signed    ? ((uint64_t)1 << (bits - 1)) - !n.negative
                    : bits == 64 ? UINT64_MAX
                                 : ((uint64_t)1 << bits) - 1;
    if (n.is_real || (n.negative && !is_signed && n.whole) || n.whole > most)
        return wrong(r, "the number before is out of range");
    *out = n.negative ? 0 - n.whole : n.whole;
    return NULL;
}

static Error *take_bool(TextReader *r, uint64_t *out) {
    const char *before = r->at;
    Str word = take_word(r);
    if (str_is(word, "true") || str_is(word, "True") || str_is(word, "t") || str_is(word, "1")) {
        *out = 1;
    } else if (str_is(word, "false") || str_is(word, "False") || str_is(word, "f") || str_is(word, "0")) {
        *out = 0;
    } else {
        r->at = before;
        return wrong(r, "expected true or false");
    }
    return NULL;
}

static Error *take_enum(TextReader *r, const ProtobufCEnumDescriptor *type, uint64_t *out) {
    skip_space(r);
    if (r->at < r->end && (isdigit((unsigned char)*r->at) || *r->at == '-')) return take_integer(r, 32, true, out);
    const char *before = r->at;
    Str word = take_word(r);
    char *name = str_dup(word);
    const ProtobufCEnumValue *v = protobuf_c_enum_descriptor_get_value_by_name(type, name);
    free(name);
    if (!v) {
        r->at = before;
        return wrong(r, "unknown value of an enumeration");
    }
    *out = (uint64_t)(int64_t)v->value;
    return NULL;
}

/* ---- Fields ---- */

static Error *read_message(TextReader *r, const ProtobufCMessageDescriptor *type, char closing, StrBuf *out);

/* A value nobody knows: a scalar, a list, or a message; out of the way. */
static Error *skip_value(TextReader *r) {
    char c = peek(r);
    if (c == '{' || c == '<') {
        r->at++;
        StrBuf nothing = {0};
        Error *err = read_message(r, NULL, c == '{' ? '}' : '>', &nothing);
        strbuf_clear(&nothing);
        return err;
    }
    if (c == '[') {
        r->at++;
        while (!take(r, ']')) {
            Error *err = skip_value(r);
            if (err) return err;
            if (!take(r, ',') && peek(r) != ']') return wrong(r, "expected , or ]");
        }
        return NULL;
    }
    StrBuf text = {0};
    Error *err = NULL;
    if (c == '"' || c == '\'')
        err = take_string(r, &text);
    else if (!take_word(r).len)
        err = wrong(r, "expected a value");
    strbuf_clear(&text);
    return err;
}

static Error *read_submessage(TextReader *r, const ProtobufCFieldDescriptor *f, StrBuf *out) {
    char c = peek(r);
    if (c != '{' && c != '<') return wrong(r, "expected {");
    r->at++;
    StrBuf inner = {0};
    Error *err = read_message(r, f->descriptor, c == '{' ? '}' : '>', &inner);
    if (!err) wire_put_bytes(out, f->id, strbuf_str(&inner));
    strbuf_clear(&inner);
    return err;
}

static Error *read_bytes(TextReader *r, uint32_t field, StrBuf *out) {
    StrBuf text = {0};
    Error *err = take_string(r, &text);
    if (!err) wire_put_bytes(out, field, strbuf_str(&text));
    strbuf_clear(&text);
    return err;
}

static Error *read_real(TextReader *r, const ProtobufCFieldDescriptor *f, StrBuf *out) {
    Number n = {0};
    Error *err = take_number(r, &n);
    if (err) return err;
    if (f->type == PROTOBUF_C_TYPE_FLOAT)
        wire_put_float(out, f->id, (float)n.real);
    else
        wire_put_double(out, f->id, n.real);
    return NULL;
}

/* How whole numbers of each kind are read and written. */
static Error *read_whole(TextReader *r, const ProtobufCFieldDescriptor *f, StrBuf *out) {
    uint64_t v = 0;
    Error *err = NULL;
    switch (f->type) {
        case PROTOBUF_C_TYPE_BOOL:
            err = take_bool(r, &v);
            break;
        case PROTOBUF_C_TYPE_ENUM:
            err = take_enum(r, f->descriptor, &v);
            break;
        case PROTOBUF_C_TYPE_UINT32:
        case PROTOBUF_C_TYPE_FIXED32:
            err = take_integer(r, 32, false, &v);
            break;
        case PROTOBUF_C_TYPE_UINT64:
        case PROTOBUF_C_TYPE_FIXED64:
            err = take_integer(r, 64, false, &v);
            break;
        case PROTOBUF_C_TYPE_INT32:
        case PROTOBUF_C_TYPE_SINT32:
        case PROTOBUF_C_TYPE_SFIXED32:
            err = take_integer(r, 32, true, &v);
            break;
        default:
            err = take_integer(r, 64, true, &v);
            break;
    }
    if (err) return err;
    switch (f->type) {
        case PROTOBUF_C_TYPE_FIXED32:
        case PROTOBUF_C_TYPE_SFIXED32:
            wire_put_fixed32(out, f->id, (uint32_t)v);
            break;
        case PROTOBUF_C_TYPE_FIXED64:
        case PROTOBUF_C_TYPE_SFIXED64:
            wire_put_fixed64(out, f->id, v);
            break;
        case PROTOBUF_C_TYPE_SINT32:
        case PROTOBUF_C_TYPE_SINT64:
            wire_put_uint(out, f->id, v << 1 ^ (v >> 63 ? UINT64_MAX : 0));
            break;
        default:
            wire_put_uint(out, f->id, v);
            break;
    }
    return NULL;
}

static Error *read_value(TextReader *r, const ProtobufCFieldDescriptor *f, StrBuf *out) {
    switch (f->type) {
        case PROTOBUF_C_TYPE_MESSAGE:
            return read_submessage(r, f, out);
        case PROTOBUF_C_TYPE_STRING:
        case PROTOBUF_C_TYPE_BYTES:
            return read_bytes(r, f->id, out);
        case PROTOBUF_C_TYPE_FLOAT:
        case PROTOBUF_C_TYPE_DOUBLE:
            return read_real(r, f, out);
        default:
            return read_whole(r, f, out);
    }
}

/* name: [a, b, c] */
static Error *read_list(TextReader *r, const ProtobufCFieldDescriptor *f, StrBuf *out) {
    r->at++;
    while (!take(r, ']')) {
        Error *err = read_value(r, f, out);
        if (err) return err;
        if (!take(r, ',') && peek(r) != ']') return wrong(r, "expected , or ]");
    }
    return NULL;
}

/* [type.googleapis.com/package.Name] { ... }: the two fields of an Any. An extension is read over. */
static Error *read_any(TextReader *r, StrBuf *out) {
    const char *start = r->at;
    while (r->at < r->end && *r->at != ']') r->at++;
    Str url = {start, (size_t)(r->at - start)};
    if (!take(r, ']')) return wrong(r, "expected ]");
    take(r, ':');
    Str name = url;
    for (size_t i = 0; i < url.len; i++)
        if (url.ptr[i] == '.' || url.ptr[i] == '/') name = str_slice(url, i + 1, url.len);
    const ProtobufCMessageDescriptor *const *type = r->any_types;
    while (type && *type && !str_is(name, (*type)->short_name)) type++;
    if (!type || !*type) return skip_value(r);
    char c = peek(r);
    if (c != '{' && c != '<') return wrong(r, "expected {");
    r->at++;
    StrBuf inner = {0};
    Error *err = read_message(r, *type, c == '{' ? '}' : '>', &inner);
    if (!err) wire_put_bytes(out, 1, url);
    if (!err) wire_put_bytes(out, 2, strbuf_str(&inner));
    strbuf_clear(&inner);
    return err;
}

static Error *read_field(TextReader *r, const ProtobufCMessageDescriptor *type, StrBuf *out) {
    if (take(r, '[')) return read_any(r, out);
    Str word = take_word(r);
    if (!word.len) return wrong(r, "expected the name of a field");
    char *name = str_dup(word);
    const ProtobufCFieldDescriptor *f = type ? protobuf_c_message_descriptor_get_field_by_name(type, name) : NULL;
    free(name);
    bool colon = take(r, ':');
    char next = peek(r);
    if (!colon && next != '{' && next != '<') return wrong(r, "expected : after the name of a field");
    if (!f) return skip_value(r);
    return next == '[' ? read_list(r, f, out) : read_value(r, f, out);
}

/* Up to the closing character; 0: to the end of the text. Without a type all fields are read over. */
static Error *read_message(TextReader *r, const ProtobufCMessageDescriptor *type, char closing, StrBuf *out) {
    if (++r->depth > MAX_DEPTH) return wrong(r, "messages are nested too deep");
    for (;;) {
        char next = peek(r);
        if (!next && closing) return wrong(r, "a message does not end");
        if (!next && r->at < r->end) return wrong(r, "a zero byte");
        if (next == closing) break;
        Error *err = read_field(r, type, out);
        if (err) return err;
        if (!take(r, ',')) take(r, ';');
    }
    if (closing) r->at++;
    r->depth--;
    return NULL;
}

Error *text_to_wire(const ProtobufCMessageDescriptor *type, const ProtobufCMessageDescriptor *const *any_types,
                    Str text, StrBuf *out) {
    TextReader r = {.at = text.ptr, .end = text.ptr + text.len, .start = text.ptr, .any_types = any_types};
    return read_message(&r, type, 0, out);
}
