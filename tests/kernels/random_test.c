/* random_test.c: arrays of random numbers are those of the generator called one by one, with every instruction set and any number of threads. */
#include "kernels/random.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "kernels/cpu.h"
#include "kernels/philox_block.h"
#include "unit_test.h"

enum { MOST = 300 };

/* Counters that carry, one by one and in the middle of a vector; groups that follow each other or not. */
static void check_blocks(uint64_t apart) {
    static const uint64_t lows[] = {0, 1, UINT32_MAX - 5, UINT64_MAX, UINT64_MAX - 20, 0x123456789abcdef0u};
    static const uint64_t highs[] = {0, UINT32_MAX, UINT64_MAX};
    uint32_t want[MOST * 4], got[MOST * 4 + 1];
    for (size_t l = 0; l < sizeof lows / sizeof lows[0]; l++) {
        for (size_t h = 0; h < sizeof highs / sizeof highs[0]; h++) {
            Philox start = philox_from_state(0xfedcba9876543210u, lows[l], highs[h]);
            for (int i = 0; i < MOST; i++) {
                Philox p = start;
                philox_skip(&p, (uint64_t)i * apart);
                philox_next(&p, want + i * 4);
            }
            for (int level = 0; level < CPU_LEVELS; level++) {
                cpu_limit((CpuLevel)level);
                for (int n = 0; n <= MOST; n += n < 70 ? 1 : 23) {
                    memset(got, 0xab, sizeof got);
                    philox_block(&start, apart, got, n);
                    assert_memory_equal(got, want, (size_t)n * 16);
                    assert_int_equal(got[n * 4], 0xababababu);
                }
            }
        }
    }
    cpu_limit(CPU_AVX512);
}

static void blocks_are_the_numbers_one_by_one(void **state) {
    (void)state;
    check_blocks(1);
    check_blocks(128);
    check_blocks(256);
}

static void uniform_numbers_are_those_of_each(void **state) {
    (void)state;
    uint32_t x[MOST];
    float f[MOST];
    double d[MOST / 2];
    Philox p = philox_from_seeds(7, 8);
    philox_block(&p, 1, x, MOST / 4);
    for (int level = 0; level < CPU_LEVELS; level++) {
        cpu_limit((CpuLevel)level);
        uniform_floats(x, f, MOST);
        uniform_doubles(x, d, MOST / 2);
        for (int i = 0; i < MOST; i++) assert_true(f[i] == uniform_float(x[i]));
        for (int i = 0; i < MOST / 2; i++) assert_true(d[i] == uniform_double(x[2 * i], x[2 * i + 1]));
    }
    cpu_limit(CPU_AVX512);
}

/* All kinds and types: neither the level nor the threads change a bit, and a shorter array is the beginning of a longer one. */
static void check_fill(const RandomSpec *spec, size_t size, ThreadPool *pool) {
    enum { N = 10007, SHORT = 2501 };
    Philox start = philox_from_seeds(3, 5);
    char *want = xcalloc(N, size), *got = xcalloc(N + 1, size);
    cpu_limit(CPU_PLAIN);
    random_fill(NULL, spec, start, want, N);
    for (int level = 0; level < CPU_LEVELS; level++) {
        cpu_limit((CpuLevel)level);
        random_fill(pool, spec, start, got, N);
        assert_memory_equal(got, want, N * size);
        memset(got, 0xab, (N + 1) * size);
        random_fill(level % 2 ? pool : NULL, spec, start, got, SHORT);
        assert_memory_equal(got, want, SHORT * size);
        for (size_t i = SHORT * size; i < (SHORT + 1) * size; i++) assert_int_equal((unsigned char)got[i], 0xab);
    }
    cpu_limit(CPU_AVX512);
    free(want);
    free(got);
}

static void arrays_do_not_depend_on_processor_or_threads(void **state) {
    (void)state;
    static const size_t sizes[] = {2, 2, 4, 8, 4, 8};
    ThreadPool *pool = threadpool_new("test", 3);
    for (int kind = RANDOM_UNIFORM; kind <= RANDOM_RANGE; kind++) {
        for (int type = RANDOM_HALF; type <= RANDOM_INT64; type++) {
            bool integer = type >= RANDOM_INT32;
            if (integer != (kind == RANDOM_RANGE) && !(integer && kind == RANDOM_UNIFORM)) continue;
            RandomSpec spec = {.kind = (RandomKind)kind, .type = (RandomType)type, .low = 10, .range = 77};
            check_fill(&spec, sizes[type], pool);
        }
    }
    threadpool_free(pool);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_the_numbers_one_by_one),
        cmocka_unit_test(uniform_numbers_are_those_of_each),
        cmocka_unit_test(arrays_do_not_depend_on_processor_or_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
