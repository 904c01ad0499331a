/* fingerprint.c: FarmHash64, CityHash128, MurmurHash64A and SipHash. */
#include "base/fingerprint.h"

static uint64_t load64(const char *p) {
    uint64_t v;
    memcpy(&v, p, 8);
    return v;
}

static uint64_t load32(const char *p) {
    uint32_t v;
    memcpy(&v, p, 4);
    return v;
}

static uint64_t rotate(uint64_t v, int by) { /* right */
    return v >> by | v << (64 - by);
}

/* ---- FarmHash ---- */

static const uint64_t K0 = 0xc3a5c85c97cb3127u, K1 = 0xb492b66fbe98f273u, K2 = 0x9ae16a3b2f90404fu;

static uint64_t mix(uint64_t v) {
    return v ^ v >> 47;
}

static uint64_t join(uint64_t u, uint64_t v, uint64_t mul) {
    uint64_t a = mix((u ^ v) * mul);
    return mix((v ^ a) * mul) * mul;
}

static uint64_t farm_to_16(const char *s, size_t len) {
    uint64_t mul = K2 + len * 2;
    if (len >= 8) {
        uint64_t a = load64(s) + K2, b = load64(s + len - 8);
        return join(rotate(b, 37) * mul + a, (rotate(a, 25) + b) * mul, mul);
    }
    if (len >= 4) return join(len + (load32(s) << 3), load32(s + len - 4), mul);
    if (!len) return K2;
    uint8_t a = (uint8_t)s[0], b = (uint8_t)s[len >> 1], c = (uint8_t)s[len - 1];
    uint32_t y = a + ((uint32_t)b << 8), z = (uint32_t)len + ((uint32_t)c << 2);
    return mix(y * K2 ^ z * K0) * K2;
}

static uint64_t farm_to_32(const char *s, size_t len) {
    uint64_t mul = K2 + len * 2, a = load64(s) * K1, b = load64(s + 8), c = load64(s + len - 8) * mul;
    uint64_t d = load64(s + len - 16) * K2;
    return join(rotate(a + b, 43) + rotate(c, 30) + d, a + rotate(b + K2, 18) + c, mul);
}

static uint64_t farm_to_64(const char *s, size_t len) {
    uint64_t mul = K2 + len * 2, a = load64(s) * K2, b = load64(s + 8), c = load64(s + len - 8) * mul;
    uint64_t d = load64(s + len - 16) * K2;
    uint64_t y = rotate(a + b, 43) + rotate(c, 30) + d;
    uint64_t z = join(y, a + rotate(b + K2, 18) + c, mul);
    uint64_t e = load64(s + 16) * mul, f = load64(s + 24);
    uint64_t g = (y + load64(s + len - 32)) * mul, h = (z + load64(s + len - 24)) * mul;
    return join(rotate(e + f, 43) + rotate(g, 30) + h, e + rotate(f + a, 18) + g, mul);
}

typedef struct Pair {
    uint64_t first, second;
} Pair;

static Pair weak_join(const char *s, uint64_t a, uint64_t b) {
    uint64_t w = load64(s), x = load64(s + 8), y = load64(s + 16), z = load64(s + 24);
    a += w;
    b = rotate(b + a + z, 21);
    uint64_t c = a;
    a += x + y;
    b += rotate(a, 44);
    return (Pair){a + z, b + c};
}

/* Mixes 64 bytes into the state that both hashes of long strings have. */
static void mix_block(const char *s, uint64_t *x, uint64_t *y, uint64_t *z, Pair *v, Pair *w) {
    uint64_t a = rotate(*x + *y + v->first + load64(s + 8), 37) * K1;
    *y = rotate(*y + v->second + load64(s + 48), 42) * K1;
    a ^= w->second;
    *y += v->first + load64(s + 40);
    *x = rotate(*z + w->first, 33) * K1;
    *z = a;
    *v = weak_join(s, v->second * K1, a + w->first);
    *w = weak_join(s + 32, *x + w->second, *y + load64(s + 16));
}

uint64_t fingerprint64(Str str) {
    const char *s = str.ptr;
    size_t len = str.len;
    if (len <= 16) return farm_to_16(s, len);
    if (len <= 32) return farm_to_32(s, len);
    if (len <= 64) return farm_to_64(s, len);
    uint64_t x = 81, y = 81 * K1 + 113, z = mix(y * K2 + 113) * K2, swap;
    Pair v = {0, 0}, w = {0, 0};
    x = x * K2 + load64(s);
    const char *end = s + (len - 1) / 64 * 64, *last64 = end + ((len - 1) & 63) - 63;
    do {
        mix_block(s, &x, &y, &z, &v, &w);
        s += 64;
    } while (s != end);
    uint64_t mul = K1 + ((z & 0xff) << 1);
    s = last64;
    w.first += (len - 1) & 63;
    v.first += w.first;
    w.first += v.first;
    x = rotate(x + y + v.first + load64(s + 8), 37) * mul;
    y = rotate(y + v.second + load64(s + 48), 42) * mul;
    x ^= w.second * 9;
    y += v.first * 9 + load64(s + 40);
    z = rotate(z + w.first, 33) * mul;
    v = weak_join(s, v.second * mul, x + w.first);
    w = weak_join(s + 32, z + w.second, y + load64(s + 16));
    swap = z, z = x, x = swap;
    return join(join(v.first, w.first, mul) + mix(y) * K0 + z, join(v.second, w.second, mul) + x, mul);
}

/* ---- CityHash128, FarmHash's Fingerprint128 ---- */

static uint64_t city_join(uint64_t u, uint64_t v) {
    return join(u, v, 0x9ddfea08eb382d69u);
}

static Pair city_short(const char *s, size_t len, Pair seed) {
    uint64_t a = seed.first, b = seed.second, c, d;
    if (len <= 16) {
        a = mix(a * K1) * K1;
        c = b * K1 + farm_to_16(s, len);
        d = mix(a + (len >= 8 ? load64(s) : c));
    } else {
        c = city_join(load64(s + len - 8) + K1, a);
        d = city_join(b + len, c + load64(s + len - 16));
        a += d;
        for (size_t at = 0; at + 16 < len; at += 16) {
            a = (a ^ mix(load64(s + at) * K1) * K1) * K1;
            b ^= a;
            c = (c ^ mix(load64(s + at + 8) * K1) * K1) * K1;
            d ^= c;
        }
    }
    a = city_join(a, c);
    b = city_join(d, b);
    return (Pair){a ^ b, city_join(b, a)};
}

static Pair city_long(const char *s, size_t len, Pair seed) {
    uint64_t x = seed.first, y = seed.second, z = len * K1;
    Pair v, w;
    v.first = rotate(y ^ K1, 49) * K1 + load64(s);
    v.second = rotate(v.first, 42) * K1 + load64(s + 8);
    w.first = rotate(y + z, 35) * K1 + x;
    w.second = rotate(x + load64(s + 88), 53) * K1;
    for (; len >= 128; len -= 128) {
        for (int half = 0; half < 2; half++, s += 64) mix_block(s, &x, &y, &z, &v, &w);
    }
    x += rotate(v.first + z, 49) * K0;
    y = y * K0 + rotate(w.second, 37);
    z = z * K0 + rotate(w.first, 27);
    w.first *= 9;
    v.first *= K0;
    for (size_t done = 32; done < len + 32; done += 32) { /* from the end; the last may begin before what is left */
        const char *t = s + len - done;
        y = rotate(x + y, 42) * K0 + v.second;
        w.first += load64(t + 16);
        x = x * K0 + w.first;
        z += w.second + load64(t);
        w.second += v.first;
        v = weak_join(t, v.first + z, v.second);
        v.first *= K0;
    }
    x = city_join(x, v.first);
    y = city_join(y + z, w.first);
    return (Pair){city_join(x + v.second, w.second) + y, city_join(x + w.second, y + v.second)};
}

void fingerprint128(Str s, uint64_t out[2]) {
    Pair seed = {K0, K1};
    if (s.len >= 16) {
        seed = (Pair){load64(s.ptr), load64(s.ptr + 8) + K0};
        s = str_slice(s, 16, s.len);
    }
    Pair p = s.len < 128 ? city_short(s.ptr, s.len, seed) : city_long(s.ptr, s.len, seed);
    out[0] = p.first;
    out[1] = p.second;
}

/* ---- MurmurHash64A ---- */

uint64_t hash64(Str s) {
    const uint64_t m = 0xc6a4a7935bd1e995u;
    uint64_t h = 0xDECAFCAFFEu ^ s.len * m;
    const char *p = s.ptr;
    size_t n = s.len;
    for (; n >= 8; n -= 8, p += 8) {
        uint64_t k = load64(p) * m;
        h = (h ^ (k ^ k >> 47) * m) * m;
    }
    if (n) {
        uint64_t rest = 0;
        for (size_t i = 0; i < n; i++) rest |= (uint64_t)(uint8_t)p[i] << 8 * i;
        h = (h ^ rest) * m;
    }
    h = (h ^ h >> 47) * m;
    return h ^ h >> 47;
}

/* ---- SipHash ---- */

static void sip_round(uint64_t v[4]) {
    v[0] += v[1];
    v[2] += v[3];
    v[1] = rotate(v[1], 51) ^ v[0];
    v[3] = rotate(v[3], 48) ^ v[2];
    v[0] = rotate(v[0], 32) + v[3];
    v[2] += v[1];
    v[3] = rotate(v[3], 43) ^ v[0];
    v[1] = rotate(v[1], 47) ^ v[2];
    v[2] = rotate(v[2], 32);
}

uint64_t siphash(Str s, uint64_t key[2]) {
    uint64_t v[4] = {key[0] ^ 0x736f6d6570736575u, key[1] ^ 0x646f72616e646f6du, key[0] ^ 0x6c7967656e657261u,
                     key[1] ^ 0x7465646279746573u};
    size_t at = 0;
    for (bool last = false; !last; at += 8) {
        uint64_t word = 0;
        last = s.len - at < 8;
        memcpy(&word, s.ptr + at, last ? s.len - at : 8);
        if (last) word |= (uint64_t)s.len << 56;
        v[3] ^= word;
        sip_round(v);
        sip_round(v);
        v[0] ^= word;
    }
    v[2] ^= 0xff;
    for (int i = 0; i < 4; i++) sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}
