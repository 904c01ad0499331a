/* fft_turn.c: lines of complex floats brought side by side for fft_lanes.c, and back: matrices turned in blocks of FFT_LANES x FFT_LANES. */
#include "kernels/cpu.h"
#include "kernels/fft.h"

/* Four rows, then columns: numbers, pairs and fours of two rows alternate. */
#define EVEN_1 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29
#define ODD_1 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31
#define EVEN_2 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29
#define ODD_2 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31
#define LOW_8 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23
#define HIGH_8 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31
#define EVEN_4 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27
#define ODD_4 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31

enum { turns_whole_plain = 0, turns_whole_avx2 = 0, turns_whole_avx512 = 1 }; /* where a row of a block is one vector */

typedef float Row __attribute__((vector_size(FFT_LANES * sizeof(float)), aligned(sizeof(float)), may_alias));

#define CPU_BODY "kernels/fft_turn.inc"
#include "kernels/each_cpu.inc"

void fft_lanes_take_f32(const float *from, const int64_t *starts, int64_t count, bool exchanged, float *lanes) {
    CPU_PICK(take)(from, starts, 2 * count, exchanged, lanes);
}

void fft_lanes_give_f32(const float *lanes, int64_t count, bool exchanged, float *to, const int64_t *starts) {
    CPU_PICK(give)(lanes, 2 * count, exchanged, to, starts);
}
