/* gemm_half.c: products of half types: bfloat16 as it is where the processor multiplies it, else in float and rounded once at the end. */
#include <stdatomic.h>
#include <stdlib.h>

#include "base/memory.h"
#include "kernels/cpu.h"
#include "kernels/gemm.h"
#include "kernels/half_rows.h"
#include "kernels/onednn.h"

typedef struct ConvertJob {
    const uint16_t *half;
    float *wide;
    uint16_t *out;
    bool bfloat;
    RangeCall done;
} ConvertJob;

static void widen_range(void *arg, int64_t begin, int64_t end) {
    const ConvertJob *job = arg;
    (job->bfloat ? bfloat16_widen : half_widen)(job->wide + begin, job->half + begin, end - begin);
}
static void narrow_range(void *arg, int64_t begin, int64_t end) {
    const ConvertJob *job = arg;
    (job->bfloat ? bfloat16_narrow : half_narrow)(job->out + begin, job->wide + begin, end - begin);
    range_call(job->done, begin, end);
}

/* False when there is no memory for the floats. */
static bool half_gemm(const Gemm *g, ThreadPool *pool, bool bfloat) {
    enum { GRAIN = 32768 };
    size_t a_size = (size_t)(g->m * g->k), b_size = (size_t)(g->k * g->n), c_size = (size_t)(g->m * g->n);
    float *room = try_alloc((a_size + b_size + c_size) * sizeof(float));
    if (!room) return false;
    ConvertJob a = {.half = g->a, .wide = room, .bfloat = bfloat}, b = {.half = g->b, .wide = room + a_size, .bfloat = bfloat};
    ConvertJob c = {.wide = room + a_size + b_size, .out = g->c, .bfloat = bfloat, .done = g->done};
    threadpool_parallel_for(pool, (int64_t)a_size, GRAIN, widen_range, &a);
    threadpool_parallel_for(pool, (int64_t)b_size, GRAIN, widen_range, &b);
    Gemm wide = *g;
    wide.a = a.wide;
    wide.b = b.wide;
    wide.c = c.wide;
    wide.done = (RangeCall){0};
    gemm_f32(&wide, pool);
    threadpool_parallel_for(pool, (int64_t)c_size, GRAIN, narrow_range, &c);
    free(room);
    return true;
}

void gemm_f16(const Gemm *g, ThreadPool *pool) {
    if (!half_gemm(g, pool, false)) gemm_plain_f16(g, pool);
}

/* ---- bfloat16 by the processor's own products ---- */

enum { NATIVE_PRODUCTS = 1 << 20, TILE = 32 }; /* fewer are not worth a primitive; rows or columns go by whole tiles */

typedef struct NativeJob {
    const Gemm *g;
    bool by_columns;
    _Atomic bool failed;
} NativeJob;

static bool describe(dnnl_memory_desc_t *desc, int64_t rows, int64_t columns, int64_t row_step, int64_t column_step) {
    dnnl_dims_t dims = {rows, columns}, strides = {row_step, column_step};
    return dnnl_memory_desc_init_by_strides(desc, 2, dims, dnnl_bf16, strides) == dnnl_success;
}

/* A matmul of these three; oneDNN keeps those it made and finds them again. */
static bool prepare(OnednnPrimitive *p, const dnnl_memory_desc_t *a, const dnnl_memory_desc_t *b, const dnnl_memory_desc_t *c) {
    dnnl_matmul_desc_t desc;
    dnnl_primitive_desc_t pd;
    dnnl_primitive_attr_t attr;
    if (dnnl_matmul_desc_init(&desc, a, b, NULL, c) != dnnl_success || !onednn_attributes(&attr)) return false;
    bool ok = dnnl_primitive_desc_create(&pd, &desc, attr, onednn_engine(), NULL) == dnnl_success;
    dnnl_primitive_attr_destroy(attr);
    return ok && onednn_primitive_init(p, pd);
}

static bool multiply(const Gemm *g, int64_t m, int64_t n, const uint16_t *a, const uint16_t *b, uint16_t *c) {
    dnnl_memory_desc_t da, db, dc;
    OnednnPrimitive p = {0};
    OnednnRunner r = {0};
    bool ok = describe(&da, m, g->k, g->a_transposed ? 1 : g->k, g->a_transposed ? g->m : 1) &&
              describe(&db, g->k, n, g->b_transposed ? 1 : g->n, g->b_transposed ? g->k : 1) && describe(&dc, m, n, g->n, 1) &&
              prepare(&p, &da, &db, &dc) && onednn_runner_init(&r);
    const OnednnArgument args[] = {{DNNL_ARG_SRC, &da, (void *)a}, {DNNL_ARG_WEIGHTS, &db, (void *)b}, {DNNL_ARG_DST, &dc, c}};
    ok = ok && onednn_execute(&r, &p, args, 3);
    onednn_runner_clear(&r);
    onednn_primitive_clear(&p);
    return ok;
}

static void native_range(void *arg, int64_t begin, int64_t end) {
    NativeJob *job = arg;
    const Gemm *g = job->g;
    const uint16_t *a = g->a, *b = g->b;
    uint16_t *c = g->c;
    bool ok = job->by_columns ? multiply(g, g->m, end - begin, a, b + (g->b_transposed ? begin * g->k : begin), c + begin)
                              : multiply(g, end - begin, g->n, a + (g->a_transposed ? begin : begin * g->k), b, c + begin * g->n);
    if (!ok) atomic_store(&job->failed, true);
}

/* False when the processor, or oneDNN, does not multiply bfloat16, or it does not pay. */
static bool native_gemm(const Gemm *g, ThreadPool *pool) {
    double products = (double)g->m * (double)g->n * (double)g->k;
    if (!cpu_multiplies_bfloat16() || products < NATIVE_PRODUCTS) return false;
    NativeJob job = {.g = g, .by_columns = g->n > g->m};
    int64_t count = job.by_columns ? g->n : g->m, threads = pool ? threadpool_size(pool) : 1;
    int64_t share = products < 2.0 * NATIVE_PRODUCTS ? count : (count + threads - 1) / threads;
    threadpool_parallel_for(pool, count, (share + TILE - 1) / TILE * TILE, native_range, &job);
    if (atomic_load(&job.failed)) return false;
    if (g->done.fn) threadpool_parallel_for(pool, g->m * g->n, 16384, g->done.fn, g->done.arg);
    return true;
}

void gemm_bf16(const Gemm *g, ThreadPool *pool) {
    if (native_gemm(g, pool)) return;
    if (!half_gemm(g, pool, true)) gemm_plain_bf16(g, pool);
}
