/* softmax.c: softmax, log-softmax and cross entropy, row by row. */
#include "kernels/softmax.h"

#include <tgmath.h>

#include "base/float16.h"
#include "kernels/cpu.h"
#include "kernels/half_rows.h"
#include "kernels/vector_library.h"

#define INLINE static inline __attribute__((always_inline))
enum { ROW_BLOCK = 1024, SUM_LANES = 16, MAX_LANES = 64 }; /* a choice becomes vectors only in a loop that is not unrolled */

#define BODY "kernels/softmax.inc"
#define CPU_BODY "kernels/each_float_cpu.inc"
#include "kernels/each_cpu.inc"
#undef BODY
#define BODY "kernels/softmax_pick.inc"
#include "kernels/each_float.inc"
