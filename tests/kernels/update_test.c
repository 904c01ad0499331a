/* update_test.c: every optimizer gives the same bits with every instruction set this processor has. */
#include "kernels/update.h"

#include <stdlib.h>
#include <string.h>

#include "base/float16.h"
#include "base/memory.h"
#include "kernels/cpu.h"
#include "unit_test.h"

enum { COUNT = 203, OPTIMIZERS = sizeof(UpdateFns) / sizeof(UpdateFn *) }; /* no multiple of a vector */

static const size_t sizes[] = {[UPDATE_FLOAT] = 4, [UPDATE_DOUBLE] = 8, [UPDATE_HALF] = 2, [UPDATE_BFLOAT16] = 2};

static UpdateFn *optimizer_at(UpdateType type, int i) {
    UpdateFn *fn;
    memcpy(&fn, (const char *)update_fns(type) + (size_t)i * sizeof fn, sizeof fn);
    return fn;
}

/* Numbers in [from, from + 2): slots that hold squares are positive. */
static void fill(UpdateType type, void *to, int64_t n, int seed, float from) {
    for (int64_t i = 0; i < n; i++) {
        float f = from + (float)((i * 7919 + seed * 131) % 1999) / 1000;
        if (type == UPDATE_FLOAT) ((float *)to)[i] = f;
        if (type == UPDATE_DOUBLE) ((double *)to)[i] = (double)f;
        if (type == UPDATE_HALF) ((uint16_t *)to)[i] = float_to_half(f);
        if (type == UPDATE_BFLOAT16) ((uint16_t *)to)[i] = float_to_bfloat16(f);
    }
}

/* Variable and slots after two steps, one behind the other. */
static char *steps(UpdateType type, int optimizer, bool flag, int64_t n, const double *scalars) {
    size_t size = (size_t)n * sizes[type];
    char *all = xcalloc(UPDATE_MAX_SLOTS + 1, size + 1), *grad = all + UPDATE_MAX_SLOTS * size;
    void *v[UPDATE_MAX_SLOTS];
    for (int i = 0; i < UPDATE_MAX_SLOTS; i++) fill(type, v[i] = all + (size_t)i * size, n, i, i == 0 ? -1 : 1.5f);
    for (int step = 0; step < 2; step++) {
        fill(type, grad, n, 5 + step, -1);
        optimizer_at(type, optimizer)(v, grad, scalars, flag, n);
    }
    return all;
}

static void check(UpdateType type, int optimizer, bool flag, int64_t n, const double *scalars) {
    char *want = NULL;
    size_t size = UPDATE_MAX_SLOTS * (size_t)n * sizes[type];
    for (int level = 0; level < CPU_LEVELS; level++) {
        cpu_limit((CpuLevel)level);
        char *got = steps(type, optimizer, flag, n, scalars);
        if (want && memcmp(want, got, size) != 0)
            fail_msg("optimizer %d of type %d differs at level %d, n = %lld", optimizer, (int)type, level, (long long)n);
        free(want);
        want = got;
    }
    free(want);
    cpu_limit(CPU_AVX512);
}

static void levels_do_not_change_a_bit(void **state) {
    (void)state;
    static const double some[UPDATE_MAX_SCALARS] = {0.5, 0.25, 0.125, 0.9, 0.8, 0.01, 0.7, 0.6};
    static const double with_roots[UPDATE_MAX_SCALARS] = {0.5, 0.25, 0.125, -0.5, -0.5, 0.01, 0.7, 0.6}; /* lr_power of Ftrl */
    for (int type = UPDATE_FLOAT; type <= UPDATE_BFLOAT16; type++) {
        for (int i = 0; i < OPTIMIZERS; i++) {
            for (int64_t n = 1; n <= COUNT; n += 101) {
                check((UpdateType)type, i, false, n, some);
                check((UpdateType)type, i, true, n, some);
                check((UpdateType)type, i, false, n, with_roots);
                check((UpdateType)type, i, true, n, with_roots);
            }
        }
    }
}

/* A variable given as its own slot is changed element by element, as plain C does it. */
static void a_slot_may_be_the_variable(void **state) {
    (void)state;
    static const double scalars[UPDATE_MAX_SCALARS] = {0.5, 0.25};
    float want[COUNT], got[COUNT], grad[COUNT];
    fill(UPDATE_FLOAT, grad, COUNT, 1, -1);
    for (int level = 0; level < CPU_LEVELS; level++) {
        cpu_limit((CpuLevel)level);
        fill(UPDATE_FLOAT, got, COUNT, 2, -1);
        update_fns(UPDATE_FLOAT)->momentum((void *[]){got, got}, grad, scalars, false, COUNT);
        if (level == 0) memcpy(want, got, sizeof want);
        assert_memory_equal(got, want, sizeof want);
    }
    cpu_limit(CPU_AVX512);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(levels_do_not_change_a_bit),
        cmocka_unit_test(a_slot_may_be_the_variable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
