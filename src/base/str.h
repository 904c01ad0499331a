/* str.h: Str, a pointer and a length; StrBuf, a growing string. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct Str {
    const char *ptr;
    size_t len;
} Str;

#define STR(literal) ((Str){"" literal, sizeof(literal) - 1})
#define STR_ARG(s) (int)(s).len, (s).ptr /* for "%.*s" */

static inline Str str_of(const char *text) {
    return (Str){text ? text : "", text ? strlen(text) : 0};
}
static inline bool str_eq(Str a, Str b) {
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}
static inline bool str_is(Str a, const char *text) {
    return str_eq(a, str_of(text));
}
int str_compare(Str a, Str b); /* bytewise, as memcmp */
bool str_starts(Str s, Str prefix);
bool str_ends(Str s, Str suffix);
ptrdiff_t str_find(Str s, char c); /* -1 when absent */
Str str_slice(Str s, size_t from, size_t to); /* clipped */
Str str_trim(Str s);               /* without spaces at both ends */
uint64_t str_hash(Str s);
char *str_dup(Str s); /* malloc, 0-terminated */
bool str_to_int64(Str s, int64_t *out);  /* whole text, optional sign; false on anything else */
size_t str_utf8_length(Str s, size_t i); /* bytes of the UTF-8 character at s[i]; 0 when there is none */
void str_make_utf8(char *text);          /* in place: bytes that are not UTF-8 become '?' */

/* Takes the part before the first `sep` off the front of *rest; the whole of it when there is none. */
Str str_next(Str *rest, char sep);

typedef struct StrBuf {
    char *ptr; /* always 0-terminated once anything was added */
    size_t len, cap;
    bool is_lent; /* ptr is somebody's array; see strbuf_in */
} StrBuf;

/* Begins in an array of the caller, which must live as long as the text; goes to the heap when that is full. */
static inline StrBuf strbuf_in(char *room, size_t size) {
    return (StrBuf){.ptr = room, .cap = size, .is_lent = true};
}

void strbuf_add(StrBuf *b, Str s);
void strbuf_reserve(StrBuf *b, size_t more); /* makes room for so many bytes at once */
void strbuf_addc(StrBuf *b, char c);
void strbuf_add_utf8(StrBuf *b, uint32_t character);
void strbuf_addf(StrBuf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void strbuf_clear(StrBuf *b);    /* frees; may be used again */
char *strbuf_detach(StrBuf *b);  /* the text, the caller's to free; never NULL */
static inline Str strbuf_str(const StrBuf *b) {
    return (Str){b->ptr ? b->ptr : "", b->len};
}
