/* sobol.c: SobolSample, points of a sequence that fills the unit cube evenly. */
#include <stdlib.h>

#include "base/memory.h"
#include "kernels/sobol.h"
#include "ops/elements.h"
#include "ops/op_list.h"

const OpDef sobol_ops[] = {
    {"SobolSample", "dim: int32, num_results: int32, skip: int32 -> samples: dtype", "dtype: {float, double} = float", 0},
    {0},
};

enum { POINTS_AT_ONCE = 512 };

typedef struct SobolRun {
    int64_t dim;
    uint32_t first;        /* number of the first point; point 0, the origin, is never asked for */
    int digits;
    const uint32_t *shifted; /* [digit][dim]: direction numbers with all digits below the point */
    Tensor *out;
} SobolRun;

static Error *want_int(KernelContext *k, int i, const char *name, int64_t *out) {
    if (k->in[i]->shape.rank != 0) return error_invalid("%s must be a scalar", name);
    *out = tensor_i32(k->in[i])[0];
    return NULL;
}

static void put_point(const SobolRun *run, int64_t at, const uint32_t *point) {
    double unit = 1.0 / (double)(1LL << run->digits);
    if (run->out->dtype == DT_DOUBLE)
        for (int64_t j = 0; j < run->dim; j++) tensor_f64(run->out)[at * run->dim + j] = (double)point[j] * unit;
    else
        for (int64_t j = 0; j < run->dim; j++) tensor_f32(run->out)[at * run->dim + j] = (float)point[j] * (float)unit;
}

/* Point i is the sum, digit by digit, of the directions in the Gray code of i; from one to the next a single one changes. */
static void sample_range(void *arg, int64_t from, int64_t to) {
    const SobolRun *run = arg;
    uint32_t *point = xcalloc((size_t)run->dim, sizeof *point), number = run->first + (uint32_t)from, code = number ^ number >> 1;
    for (int k = 0; k < run->digits; k++)
        for (int64_t j = 0; (code >> k & 1) && j < run->dim; j++) point[j] ^= run->shifted[k * run->dim + j];
    put_point(run, from, point);
    for (int64_t i = from + 1; i < to; i++) {
        const uint32_t *change = run->shifted + __builtin_ctz(~number++) * run->dim;
        for (int64_t j = 0; j < run->dim; j++) point[j] ^= change[j];
        put_point(run, i, point);
    }
    free(point);
}

static Error *run_sobol(KernelContext *k) {
    int64_t dim = 0, count = 0, skip = 0;
    Error *err = want_int(k, 0, "dim", &dim);
    if (!err) err = want_int(k, 1, "num_results", &count);
    if (!err) err = want_int(k, 2, "skip", &skip);
    if (err) return err;
    if (dim < 1) return error_invalid("dim must be at least one");
    if (dim > SOBOL_MAX_DIM) return error_invalid("dim must be at most %d", SOBOL_MAX_DIM);
    if (count < 1) return error_invalid("num_results must be at least one");
    if (skip < 0) return error_invalid("skip must be non-negative");
    if (count >= INT32_MAX - skip) return error_invalid("num_results+skip must be less than %d", INT32_MAX);
    Shape shape = shape_matrix(count, dim);
    Tensor *out = kernel_output(k, 0, &shape);
    if (!out) return NULL;
    SobolRun run = {.dim = dim, .first = (uint32_t)skip + 1, .digits = 64 - __builtin_clzll((uint64_t)(skip + count + 1)), .out = out};
    uint32_t *shifted = xmalloc((size_t)(dim * run.digits) * sizeof *shifted), numbers[SOBOL_MAX_DIGITS];
    SobolReader reader = {0};
    for (int64_t j = 0; j < dim; j++) {
        sobol_next(&reader, run.digits, numbers);
        for (int d = 0; d < run.digits; d++) shifted[d * dim + j] = numbers[d] << (run.digits - 1 - d);
    }
    run.shifted = shifted;
    threadpool_parallel_for(k->pool, count, POINTS_AT_ONCE, sample_range, &run);
    free(shifted);
    return NULL;
}

const KernelDef sobol_cpu[] = {
    {"SobolSample", .type_attr = "dtype", .by_type = {[DT_FLOAT] = run_sobol, [DT_DOUBLE] = run_sobol}, .flags = KERNEL_EXPENSIVE},
    {0},
};
