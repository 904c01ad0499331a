/* base64.c: the usual alphabet, with + and /. */
#include "base/base64.h"

#include <stdint.h>
#include <string.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

char *base64_encode(Str bytes) {
    StrBuf out = {0};
    for (size_t i = 0; i < bytes.len; i += 3) {
        uint32_t group = 0;
        size_t n = bytes.len - i < 3 ? bytes.len - i : 3;
        for (size_t k = 0; k < 3; k++) group = group << 8 | (k < n ? (unsigned char)bytes.ptr[i + k] : 0);
        for (size_t k = 0; k <= n; k++) strbuf_addc(&out, alphabet[group >> (18 - 6 * k) & 63]);
    }
    return strbuf_detach(&out);
}

bool base64_decode(Str text, StrBuf *out) {
    uint32_t group = 0;
    int bits = 0;
    while (text.len > 0 && text.ptr[text.len - 1] == '=') text.len--;
    if (text.len % 4 == 1) return false;
    for (size_t i = 0; i < text.len; i++) {
        const char *at = text.ptr[i] ? strchr(alphabet, text.ptr[i]) : NULL;
        if (!at) return false;
        group = group << 6 | (uint32_t)(at - alphabet);
        bits += 6;
        if (bits >= 8) {
            bits -= 8;
            strbuf_addc(out, (char)(group >> bits));
        }
    }
    return true;
}
