/* str.c: Str and StrBuf. */
#include "base/str.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"

int str_compare(Str a, Str b) {
    size_t n = a.len < b.len ? a.len : b.len;
    int order = n ? memcmp(a.ptr, b.ptr, n) : 0;
    if (order) return order;
    return (a.len > b.len) - (a.len < b.len);
}

bool str_starts(Str s, Str prefix) {
    return s.len >= prefix.len && (prefix.len == 0 || memcmp(s.ptr, prefix.ptr, prefix.len) == 0);
}

bool str_ends(Str s, Str suffix) {
    return s.len >= suffix.len && (suffix.len == 0 || memcmp(s.ptr + s.len - suffix.len, suffix.ptr, suffix.len) == 0);
}

ptrdiff_t str_find(Str s, char c) {
    const char *at = s.len ? memchr(s.ptr, c, s.len) : NULL;
    return at ? at - s.ptr : -1;
}

Str str_slice(Str s, size_t from, size_t to) {
    if (to > s.len) to = s.len;
    if (from > to) from = to;
    return (Str){s.ptr + from, to - from};
}

static bool is_space(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

Str str_trim(Str s) {
    while (s.len && is_space(s.ptr[0])) s.ptr++, s.len--;
    while (s.len && is_space(s.ptr[s.len - 1])) s.len--;
    return s;
}

uint64_t str_hash(Str s) {
    uint64_t h = 0x9e3779b97f4a7c15ull ^ s.len;
    const char *p = s.ptr;
    size_t n = s.len;
    for (; n >= 8; n -= 8, p += 8) {
        uint64_t k;
        memcpy(&k, p, 8);
        h = (h ^ k) * 0xff51afd7ed558ccdull;
        h ^= h >> 32;
    }
    uint64_t tail = 0;
    if (n) memcpy(&tail, p, n);
    h = (h ^ tail) * 0xc4ceb9fe1a85ec53ull;
    return h ^ h >> 29;
}

char *str_dup(Str s) {
    return xstrndup(s.ptr, s.len);
}

bool str_to_int64(Str s, int64_t *out) {
    size_t i = 0;
    bool negative = false;
    if (s.len && (s.ptr[0] == '-' || s.ptr[0] == '+')) negative = s.ptr[i++] == '-';
    if (i == s.len) return false;
    int64_t value = 0;
    for (; i < s.len; i++) {
        if (s.ptr[i] < '0' || s.ptr[i] > '9') return false;
        int digit = s.ptr[i] - '0';
        if (__builtin_mul_overflow(value, (int64_t)10, &value)) return false;
        if (negative ? __builtin_sub_overflow(value, digit, &value) : __builtin_add_overflow(value, digit, &value)) return false;
    }
    *out = value;
    return true;
}

size_t str_utf8_length(Str s, size_t i) {
    const unsigned char *p = (const unsigned char *)s.ptr + i;
    if (i >= s.len) return 0;
    if (p[0] < 0x80) return 1;
    size_t n = p[0] >= 0xc2 && p[0] < 0xe0 ? 2 : p[0] >= 0xe0 && p[0] < 0xf0 ? 3 : p[0] >= 0xf0 && p[0] < 0xf5 ? 4 : 0;
    if (n > s.len - i) return 0;
    for (size_t k = 1; k < n; k++)
        if ((p[k] & 0xc0) != 0x80) return 0;
    if (n == 3 && ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f))) return 0;
    if (n == 4 && ((p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))) return 0;
    return n;
}

void str_make_utf8(char *text) {
    Str s = str_of(text);
    for (size_t i = 0; i < s.len;) {
        size_t n = str_utf8_length(s, i);
        if (n == 0) {
            text[i] = '?';
            n = 1;
        }
        i += n;
    }
}

Str str_next(Str *rest, char sep) {
    ptrdiff_t at = str_find(*rest, sep);
    Str head = at < 0 ? *rest : str_slice(*rest, 0, (size_t)at);
    *rest = at < 0 ? (Str){rest->ptr + rest->len, 0} : str_slice(*rest, (size_t)at + 1, rest->len);
    return head;
}

enum { LEAST_CAPACITY = 64 }; /* not to grow often at first */

static void reserve(StrBuf *b, size_t size) {
    if (size <= b->cap) return;
    char *lent = b->is_lent ? b->ptr : NULL;
    if (lent) *b = (StrBuf){.len = b->len};
    b->ptr = vec_reserve(b->ptr, &b->cap, size < LEAST_CAPACITY ? LEAST_CAPACITY : size, 1);
    if (lent) memcpy(b->ptr, lent, b->len);
}

void strbuf_reserve(StrBuf *b, size_t more) {
    reserve(b, b->len + more + 1);
}

void strbuf_add(StrBuf *b, Str s) {
    reserve(b, b->len + s.len + 1);
    if (s.len) memcpy(b->ptr + b->len, s.ptr, s.len);
    b->len += s.len;
    b->ptr[b->len] = 0;
}

void strbuf_addc(StrBuf *b, char c) {
    strbuf_add(b, (Str){&c, 1});
}

void strbuf_add_utf8(StrBuf *b, uint32_t character) {
    static const unsigned char lead[] = {0, 0xc0, 0xe0, 0xf0};
    int more = character < 0x80 ? 0 : character < 0x800 ? 1 : character < 0x10000 ? 2 : 3;
    strbuf_addc(b, (char)(lead[more] | character >> (6 * more)));
    for (int i = more - 1; i >= 0; i--) strbuf_addc(b, (char)(0x80 | (character >> (6 * i) & 63)));
}

void strbuf_addf(StrBuf *b, const char *fmt, ...) {
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    int len = vsnprintf(NULL, 0, fmt, args);
    reserve(b, b->len + (size_t)len + 1);
    vsnprintf(b->ptr + b->len, (size_t)len + 1, fmt, again);
    b->len += (size_t)len;
    va_end(again);
    va_end(args);
}

void strbuf_clear(StrBuf *b) {
    if (!b->is_lent) free(b->ptr);
    *b = (StrBuf){0};
}

char *strbuf_detach(StrBuf *b) {
    char *text = !b->ptr ? xstrdup("") : b->is_lent ? str_dup(strbuf_str(b)) : b->ptr;
    *b = (StrBuf){0};
    return text;
}
