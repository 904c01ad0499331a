/* png_filter.c: which filter a row of a PNG gets; loops that compilers make vector code of. */
#include "io/png_filter.h"

#define INLINE static inline __attribute__((always_inline))

enum { PIECE = 256 }; /* bytes whose differences add up to less than 2^16 */

/* Of a difference of bytes, which wraps around. */
INLINE uint8_t size_of(uint8_t difference) {
    const uint8_t negative = (uint8_t)-difference;
    return difference < negative ? difference : negative;
}

INLINE uint8_t mean(uint8_t left, uint8_t up, uint8_t corner) {
    (void)corner;
    return (uint8_t)((left + up) >> 1);
}
INLINE int16_t distance(int16_t v) {
    return (int16_t)(v < 0 ? -v : v);
}
/* Paeth's: the neighbour nearest to left + up - corner. */
INLINE uint8_t nearest(uint8_t left, uint8_t up, uint8_t corner) {
    const int16_t across = (int16_t)(up - corner), down = (int16_t)(left - corner);
    const int16_t to_left = distance(across), to_up = distance(down), to_corner = distance((int16_t)(across + down));
    const int16_t other = to_up <= to_corner ? up : corner;
    return (uint8_t)(((to_left <= to_up) & (to_left <= to_corner)) ? left : other);
}
INLINE uint8_t nothing(uint8_t left, uint8_t up, uint8_t corner) {
    (void)left, (void)up, (void)corner;
    return 0;
}
INLINE uint8_t beside(uint8_t left, uint8_t up, uint8_t corner) {
    (void)up, (void)corner;
    return left;
}
INLINE uint8_t over(uint8_t left, uint8_t up, uint8_t corner) {
    (void)left, (void)corner;
    return up;
}

INLINE size_t differences(const uint8_t *row, const uint8_t *above, size_t n, size_t pixel, uint8_t (*guess)(uint8_t, uint8_t, uint8_t)) {
    size_t sum = 0;
    for (size_t at = 0; at < n; at += PIECE) {
        const size_t end = n - at < PIECE ? n : at + PIECE;
        uint16_t part = 0;
        for (size_t i = at; i < end; i++) part = (uint16_t)(part + size_of((uint8_t)(row[i] - guess(row[i - pixel], above[i], above[i - pixel]))));
        sum += part;
    }
    return sum;
}

int png_filter_of(const uint8_t *row, const uint8_t *above, size_t n, size_t pixel) {
    const size_t sums[] = {differences(row, above, n, pixel, nothing), differences(row, above, n, pixel, beside), differences(row, above, n, pixel, over),
                           differences(row, above, n, pixel, mean), differences(row, above, n, pixel, nearest)};
    int best = 0;
    for (int i = 1; i < 5; i++)
        if (sums[i] < sums[best]) best = i;
    return best;
}
