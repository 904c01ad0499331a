/* text_message.c: protobuf's text form, as far as descriptions of ops need it: name: value, name { ... }, name: < ... >, [a, b], # comments. */
#include "capi/text_message_internal.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/memory.h"
#include "proto/wire.h"

enum { MAX_DEPTH = 16 };

typedef struct Parser {
    const char *at, *end;
    int line, depth;
} Parser;

static Error *fail(const Parser *p, const char *what) {
    return error_invalid("Text of line %d: %s", p->line, what);
}

static void skip_space(Parser *p) {
    while (p->at < p->end && (isspace((unsigned char)*p->at) || *p->at == '#' || *p->at == ',' || *p->at == ';')) {
        if (*p->at == '#')
            while (p->at < p->end && *p->at != '\n') p->at++;
        if (p->at < p->end && *p->at == '\n') p->line++;
        if (p->at < p->end) p->at++;
    }
}

static bool take(Parser *p, char c) {
    skip_space(p);
    if (p->at >= p->end || *p->at != c) return false;
    p->at++;
    return true;
}

/* Letters, digits and what numbers hold. */
static Str take_word(Parser *p) {
    skip_space(p);
    const char *from = p->at;
    while (p->at < p->end && (isalnum((unsigned char)*p->at) || *p->at == '_' || *p->at == '.' || *p->at == '-' || *p->at == '+')) p->at++;
    return (Str){from, (size_t)(p->at - from)};
}

/* ---- Strings ---- */

static bool take_escape(Parser *p, StrBuf *out) {
    static const char names[] = "n\nr\rt\t\"\"''\\\\";
    if (p->at >= p->end) return false;
    char c = *p->at++;
    for (size_t i = 0; i + 1 < sizeof names; i += 2) {
        if (names[i] != c) continue;
        strbuf_addc(out, names[i + 1]);
        return true;
    }
    if (c < '0' || c > '7') return false;
    int value = c - '0';
    for (int i = 0; i < 2 && p->at < p->end && *p->at >= '0' && *p->at <= '7'; i++) value = value * 8 + (*p->at++ - '0');
    strbuf_addc(out, (char)value);
    return true;
}

static Error *take_quoted(Parser *p, char quote, StrBuf *out) {
    while (p->at < p->end && *p->at != quote) {
        char c = *p->at++;
        if (c == '\n') return fail(p, "a string ends with its line");
        if (c != '\\')
            strbuf_addc(out, c);
        else if (!take_escape(p, out))
            return fail(p, "unknown escape in a string");
    }
    if (p->at >= p->end) return fail(p, "a string has no end");
    p->at++;
    return NULL;
}

/* <<END, then lines up to one that is END. */
static Error *take_lines(Parser *p, StrBuf *out) {
    Str rest = {p->at, (size_t)(p->end - p->at)};
    Str mark = str_trim(str_next(&rest, '\n'));
    bool is_first = true;
    while (rest.len) {
        Str line = str_next(&rest, '\n');
        p->line++;
        if (str_eq(str_trim(line), mark)) {
            p->at = rest.ptr;
            return NULL;
        }
        if (!is_first) strbuf_addc(out, '\n');
        strbuf_add(out, line);
        is_first = false;
    }
    return fail(p, "lines without an end");
}

static Error *take_string(Parser *p, StrBuf *out) {
    skip_space(p);
    if (p->end - p->at >= 2 && p->at[0] == '<' && p->at[1] == '<') {
        p->at += 2;
        return take_lines(p, out);
    }
    bool any = false;
    for (;;) { /* strings one after the other are one */
        skip_space(p);
        if (p->at >= p->end || (*p->at != '"' && *p->at != '\'')) break;
        char quote = *p->at++;
        Error *err = take_quoted(p, quote, out);
        if (err) return err;
        any = true;
    }
    return any ? NULL : fail(p, "a string is expected");
}

/* ---- Values ---- */

static Error *take_fields(Parser *p, const TextField *fields, char closing, StrBuf *out);

static Error *take_message(Parser *p, const TextField *field, StrBuf *out) {
    char closing = take(p, '{') ? '}' : take(p, '<') ? '>' : 0;
    if (!closing) return fail(p, "{ is expected");
    if (++p->depth > MAX_DEPTH) return fail(p, "too deep");
    StrBuf nested = {0};
    Error *err = take_fields(p, field->fields, closing, &nested);
    p->depth--;
    wire_put_bytes(out, field->number, strbuf_str(&nested));
    strbuf_clear(&nested);
    return err;
}

static Error *take_scalar(Parser *p, const TextField *field, StrBuf *out) {
    Str word = take_word(p);
    int64_t number = 0;
    if (field->kind == TEXT_INT && str_to_int64(word, &number)) {
        wire_put_uint(out, field->number, (uint64_t)number);
        return NULL;
    }
    if (field->kind == TEXT_BOOL && (str_is(word, "true") || str_is(word, "false"))) {
        wire_put_uint(out, field->number, str_is(word, "true"));
        return NULL;
    }
    if (field->kind == TEXT_FLOAT && word.len) {
        char *text = str_dup(word);
        wire_put_float(out, field->number, strtof(text, NULL));
        free(text);
        return NULL;
    }
    for (const TextEnum *e = field->values; field->kind == TEXT_ENUM && e->name; e++) {
        if (!str_is(word, e->name)) continue;
        wire_put_uint(out, field->number, (uint64_t)e->number);
        return NULL;
    }
    return error_invalid("Text of line %d: '%.*s' is no value of %s", p->line, STR_ARG(word), field->name);
}

static Error *take_value(Parser *p, const TextField *field, StrBuf *out) {
    if (field->kind == TEXT_MESSAGE) return take_message(p, field, out);
    if (field->kind != TEXT_STRING) return take_scalar(p, field, out);
    StrBuf text = {0};
    Error *err = take_string(p, &text);
    if (!err) wire_put_bytes(out, field->number, strbuf_str(&text));
    strbuf_clear(&text);
    return err;
}

static Error *take_values(Parser *p, const TextField *field, StrBuf *out) {
    if (!take(p, '[')) return take_value(p, field, out);
    Error *err = NULL;
    while (!err && !take(p, ']')) err = p->at < p->end ? take_value(p, field, out) : fail(p, "a list has no end");
    return err;
}

static Error *take_fields(Parser *p, const TextField *fields, char closing, StrBuf *out) {
    for (;;) {
        if (closing && take(p, closing)) return NULL;
        skip_space(p);
        if (p->at >= p->end) return closing ? fail(p, "a message has no end") : NULL;
        Str name = take_word(p);
        const TextField *field = fields;
        while (field->name && !str_is(name, field->name)) field++;
        if (!field->name) return error_invalid("Text of line %d: there is no field '%.*s'", p->line, STR_ARG(name));
        if (!take(p, ':') && field->kind != TEXT_MESSAGE) return fail(p, ": is expected");
        Error *err = take_values(p, field, out);
        if (err) return err;
    }
}

Error *text_message_parse(Str text, const TextField *fields, StrBuf *out) {
    Parser p = {text.ptr, text.ptr + text.len, 1, 0};
    return take_fields(&p, fields, 0, out);
}
