/* cpu.c: asks the processor once. */
#include "kernels/cpu.h"

#include <stdatomic.h>

static _Atomic int chosen = -1; /* not asked yet */

static CpuLevel ask(void) {
#if CPU_HAS_VECTORS
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return CPU_PLAIN;
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                   __builtin_cpu_supports("avx512bw")
               ? CPU_AVX512
               : CPU_AVX2;
#else
    return CPU_PLAIN;
#endif
}

CpuLevel cpu_level(void) {
    int level = atomic_load_explicit(&chosen, memory_order_relaxed);
    if (level < 0) {
        level = ask();
        atomic_store_explicit(&chosen, level, memory_order_relaxed);
    }
    return (CpuLevel)level;
}

CpuLevel cpu_limit(CpuLevel most) {
    CpuLevel has = ask();
    atomic_store_explicit(&chosen, most < has ? most : has, memory_order_relaxed);
    return cpu_level();
}

bool cpu_multiplies_bfloat16(void) {
#if CPU_HAS_VECTORS
    return cpu_level() == CPU_AVX512 && __builtin_cpu_supports("avx512bf16");
#else
    return false;
#endif
}
