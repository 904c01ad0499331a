/* crc32c.h: the CRC of TFRecord files and checkpoints (Castagnoli), and the masked form in which files keep it. */
#pragma once
#include <stddef.h>
#include <stdint.h>

/* Of some bytes; crc is what came out for the bytes before them, 0 at the start. */
uint32_t crc32c(uint32_t crc, const void *data, size_t size);

/* A CRC of bytes that contain their CRC says little; the mask avoids that. */
static inline uint32_t crc32c_mask(uint32_t crc) {
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}
static inline uint32_t crc32c_unmask(uint32_t masked) {
    uint32_t rotated = masked - 0xa282ead8u;
    return (rotated >> 17) | (rotated << 15);
}

/* The two ways to compute it, for tests; crc32c chooses by what the processor can do. */
uint32_t crc32c_by_table(uint32_t crc, const void *data, size_t size);
