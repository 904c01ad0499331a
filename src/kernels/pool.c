/* pool.c: pools, window by window. */
#include "kernels/pool.h"

#include <float.h>
#include <string.h>

#include "base/float16.h"
#include "kernels/cpu.h"

/* A pixel of the result: its d, h and w. */
typedef struct Place {
    int64_t v[3];
} Place;

/* To the next pixel; from the last one of an image to the first of the next. */
static inline void place_next(const PoolShape *s, Place *p) {
    for (int i = 2; i >= 0; i--) {
        if (++p->v[i] < s->out[i]) return;
        p->v[i] = 0;
    }
}

static inline PoolBox box_at(const PoolShape *s, Place p) {
    PoolBox box = {.count = 1};
    for (int i = 0; i < 3; i++) {
        int64_t from = p.v[i] * s->stride[i] - s->pad[i], to = from + s->k[i];
        box.from[i] = from > 0 ? from : 0;
        box.to[i] = to < s->in[i] ? to : s->in[i];
        box.count *= box.to[i] > box.from[i] ? box.to[i] - box.from[i] : 0;
    }
    return box;
}

PoolBox pool_box(const PoolShape *s, int64_t at) {
    return box_at(s, (Place){{at / (s->out[1] * s->out[2]), at / s->out[2] % s->out[1], at % s->out[2]}});
}

enum { LANES = 16, AVG_PIXELS = 4 };
typedef float Lanes __attribute__((vector_size(LANES * sizeof(float)), aligned(sizeof(float)), may_alias));
typedef int32_t Bits __attribute__((vector_size(LANES * sizeof(float))));

#define CPU_BODY "kernels/pool_lanes.inc"
#include "kernels/each_cpu.inc"
#undef CPU_BODY

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
