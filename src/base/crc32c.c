/* crc32c.c: CRC32C with the processor's instruction where there is one, with tables elsewhere. */
#include "base/crc32c.h"

#include <pthread.h>
#include <string.h>

/* table[k][b]: the CRC of byte b followed by k zero bytes, so that eight bytes are done at once. */
static uint32_t table[8][256];
static pthread_once_t table_once = PTHREAD_ONCE_INIT;

static void fill_table(void) {
    for (uint32_t b = 0; b < 256; b++) {
        uint32_t c = b;
        for (int bit = 0; bit < 8; bit++) c = c & 1 ? (c >> 1) ^ 0x82f63b78u : c >> 1;
        table[0][b] = c;
    }
    for (int k = 1; k < 8; k++)
        for (int b = 0; b < 256; b++) table[k][b] = (table[k - 1][b] >> 8) ^ table[0][table[k - 1][b] & 0xff];
}

uint32_t crc32c_by_table(uint32_t crc, const void *data, size_t size) {
    pthread_once(&table_once, fill_table);
    const uint8_t *p = data;
    uint32_t c = ~crc;
    for (; size >= 8; size -= 8, p += 8) {
        uint64_t v;
        memcpy(&v, p, 8);
        v ^= c;
        c = table[7][v & 0xff] ^ table[6][v >> 8 & 0xff] ^ table[5][v >> 16 & 0xff] ^ table[4][v >> 24 & 0xff] ^
            table[3][v >> 32 & 0xff] ^ table[2][v >> 40 & 0xff] ^ table[1][v >> 48 & 0xff] ^ table[0][v >> 56];
    }
    for (; size; size--) c = (c >> 8) ^ table[0][(c ^ *p++) & 0xff];
    return ~c;
}

#if defined(__x86_64__)
#include <nmmintrin.h>

__attribute__((target("sse4.2"))) static uint32_t crc32c_by_instruction(uint32_t crc, const void *data, size_t size) {
    const uint8_t *p = data;
    uint64_t c = ~crc;
    for (; size >= 8; size -= 8, p += 8) {
        uint64_t v;
        memcpy(&v, p, 8);
        c = _mm_crc32_u64(c, v);
    }
    for (; size; size--) c = _mm_crc32_u8((uint32_t)c, *p++);
    return ~(uint32_t)c;
}

uint32_t crc32c(uint32_t crc, const void *data, size_t size) {
    if (__builtin_cpu_supports("sse4.2")) return crc32c_by_instruction(crc, data, size);
    return crc32c_by_table(crc, data, size);
}
#else
uint32_t crc32c(uint32_t crc, const void *data, size_t size) {
    return crc32c_by_table(crc, data, size);
}
#endif
