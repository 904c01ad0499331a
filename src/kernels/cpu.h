/* cpu.h: which instructions the processor has. Hot loops are compiled once for each level (kernels/each_cpu.inc) and the best is chosen
 * when they run; all give the same bits, since products and sums are rounded one by one (-ffp-contract=off). */
#pragma once
#include <stdbool.h>

typedef enum CpuLevel { CPU_PLAIN, CPU_AVX2, CPU_AVX512 } CpuLevel;
enum { CPU_LEVELS = CPU_AVX512 + 1 };

CpuLevel cpu_level(void);
/* As if the processor had no more than this; returns what is used from now on. For tests. */
CpuLevel cpu_limit(CpuLevel most);

bool cpu_multiplies_bfloat16(void); /* at the level in use; products of pairs are summed in float, and subnormal numbers are zeros to it */

#if defined(__x86_64__)
#define CPU_HAS_VECTORS 1
#define CPU_TARGET_AVX2 __attribute__((target("avx2,fma")))
#if defined(__clang__)
#define CPU_TARGET_AVX512 __attribute__((target("avx512f,avx512vl,avx512dq,avx512bw,fma")))
#else
#define CPU_TARGET_AVX512 __attribute__((target("avx512f,avx512vl,avx512dq,avx512bw,fma,prefer-vector-width=512")))
#endif
#define CPU_PICK_OF(f) (cpu_level() == CPU_AVX512 ? f##_avx512 : cpu_level() == CPU_AVX2 ? f##_avx2 : f##_plain)
#else
#define CPU_HAS_VECTORS 0
#define CPU_PICK_OF(f) f##_plain
#endif
#define CPU_PICK(f) CPU_PICK_OF(f) /* the best of f_plain, f_avx2, f_avx512 */
