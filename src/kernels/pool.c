/* pool.c: pools, window by window. */
#include "kernels/pool.h"

#include <float.h>
#include <string.h>

#include "base/float16.h"
#include "kernels/cpu.h"

PoolBox pool_box(const PoolShape *s, int64_t at) {
    PoolBox box;
    int64_t position[3] = {at / (s->out[1] * s->out[2]), at / s->out[2] % s->out[1], at % s->out[2]};
    box.count = 1;
    for (int d = 0; d < 3; d++) {
        int64_t from = position[d] * s->stride[d] - s->pad[d], to = from + s->k[d];
        box.from[d] = from > 0 ? from : 0;
        box.to[d] = to < s->in[d] ? to : s->in[d];
        box.count *= box.to[d] > box.from[d] ? box.to[d] - box.from[d] : 0;
    }
    return box;
}

#define BODY "kernels/pool_last.inc"
#define CPU_BODY "kernels/each_float_cpu.inc"
#include "kernels/each_cpu.inc"
#undef BODY

static const uint16_t lowest_f16 = 0xfbff, lowest_bf16 = 0xff7f;
static const float lowest_f32 = -FLT_MAX;
static const double lowest_f64 = -DBL_MAX;

#define BODY "kernels/pool.inc"
#define HAS_LAST 1
#define PLUS(a, b) ((a) + (b))
#include "kernels/each_float.inc"
#undef PLUS
#undef HAS_LAST
#define HAS_LAST 0
#define PLUS(a, b) (C)((W)(a) + (W)(b))
#include "kernels/each_signed.inc"
#include "kernels/each_unsigned.inc"
