/* stochastic_cast.c: StochasticCastToInt, rounded up as often as the fraction says, by a key and a counter. */
#include <float.h>
#include <math.h>

#include "base/float16.h"
#include "ops/elements.h"
#include "ops/op_list.h"
#include "ops/sampling.h"

const OpDef stochastic_cast_ops[] = {
    {"StochasticCastToInt", "input: Tin, key: uint64, counter: uint64, alg: int32 -> output: Tout",
     "Tin: {half, bfloat16, float, double}; Tout: {int8, int16, int32}", 0},
    {0},
};

/* TensorFlow gives numbers that its vector units cast the same random numbers by the group, others one group each. */
enum { VECTOR = 8 }; /* integers */

typedef struct Rounding {
    DataType in;
    double least, most;
    int group;     /* random numbers that come at once */
    int per_group; /* elements that share them; 1: not a vector's */
} Rounding;

static double rounded(DataType t, double x) {
    switch (t) {
        case DT_HALF: return half_to_float(float_to_half((float)x));
        case DT_BFLOAT16: return bfloat16_to_float(float_to_bfloat16((float)x));
        case DT_FLOAT: return (float)x;
        default: return x;
    }
}

static Rounding rounding_of(DataType in, DataType out) {
    int bits = out == DT_INT8 ? 7 : out == DT_INT16 ? 15 : 31;
    Rounding r = {.in = in, .group = in == DT_DOUBLE ? 2 : 4, .per_group = 1};
    r.least = rounded(in, -ldexp(1, bits));
    r.most = rounded(in, ldexp(1, bits) - 1);
    if (out == DT_INT32 && in == DT_FLOAT) r.per_group = 8;
    if (out == DT_INT32 && in == DT_DOUBLE) r.per_group = 4;
    return r;
}

static void draw(const Rounding *r, Philox *p, double *out) {
    uint32_t x[4];
    uint16_t small[4];
    const RandomSpec spec = {.kind = RANDOM_UNIFORM, .type = r->in == DT_HALF ? RANDOM_HALF : RANDOM_BFLOAT16};
    if (r->in == DT_HALF || r->in == DT_BFLOAT16) {
        random_fill(NULL, &spec, *p, small, 4);
        for (int i = 0; i < 4; i++) out[i] = r->in == DT_HALF ? half_to_float(small[i]) : bfloat16_to_float(small[i]);
        philox_skip(p, 1);
        return;
    }
    philox_next(p, x);
    for (int i = 0; i < r->group; i++) out[i] = r->in == DT_FLOAT ? uniform_float(x[i]) : uniform_double(x[2 * i], x[2 * i + 1]);
}

static bool is_plain(const Rounding *r, double x) {
    return isnan(x) || x >= r->most || x <= r->least || floor(x) == x;
}

static double round_one(const Rounding *r, double x, double random, bool vector) {
    if (isnan(x)) return 0;
    if (x >= r->most) return r->most;
    if (x <= r->least) return r->least;
    if (floor(x) == x) return x;
    if (x < 0) return floor(rounded(r->in, x + random));
    if (vector) return floor(rounded(r->in, x + rounded(r->in, 1 - random)));
    return floor(rounded(r->in, rounded(r->in, x + 1) - random));
}

/* As a processor of TensorFlow's casts: what no int32 can hold becomes the least. */
static void put(Tensor *t, int64_t i, double x) {
    int32_t n = x >= -2147483648.0 && x < 2147483648.0 ? (int32_t)x : INT32_MIN;
    if (t->dtype == DT_INT8)
        ((int8_t *)t->data)[i] = (int8_t)n;
    else if (t->dtype == DT_INT16)
        ((int16_t *)t->data)[i] = (int16_t)n;
    else
        tensor_i32(t)[i] = n;
}

static Error *run(KernelContext *k) {
    const Tensor *in = k->in[0];
    Philox state;
    Error *err = sampling_key(k, 1, &state);
    if (err) return err;
    Tensor *out = kernel_output(k, 0, &in->shape);
    if (!out) return NULL;
    Rounding r = rounding_of(in->dtype, out->dtype);
    /* The counter is the generator's key, the key its upper counter. */
    Philox p = philox_from_seeds(philox_counter(&state, 0), philox_key(&state));
    double random[4];
    int64_t i = 0;
    for (; r.per_group > 1 && i + VECTOR <= in->count; i += VECTOR) {
        for (int j = 0; j < VECTOR; j++) {
            if (j % r.per_group == 0) draw(&r, &p, random);
            put(out, i + j, round_one(&r, sampling_number(in, i + j), random[j % r.group], true));
        }
    }
    for (; i < in->count; i++) {
        double x = sampling_number(in, i);
        if (!is_plain(&r, x)) draw(&r, &p, random);
        put(out, i, round_one(&r, x, random[0], false));
    }
    return NULL;
}

const KernelDef stochastic_cast_cpu[] = {
    {"StochasticCastToInt", .run = run},
    {0},
};
