/* gemm_int8.c: oneDNN multiplies unsigned by signed bytes; offsets, and the other signs, are worked out from sums of rows and columns. */
#include "kernels/gemm_int8.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "kernels/onednn.h"

enum { WORK_PER_TASK = 1 << 22, TILE = 16, SMALL = 4096 }; /* products that pay for another thread, for oneDNN */

static inline int32_t byte_at(const void *p, bool is_signed, int64_t i) {
    return is_signed ? ((const int8_t *)p)[i] : ((const uint8_t *)p)[i];
}

void gemm_int8_plain(const Int8Gemm *g) {
    const int64_t a_row = g->a_transposed ? 1 : g->k, a_step = g->a_transposed ? g->m : 1;
    const int64_t b_col = g->b_transposed ? g->k : 1, b_step = g->b_transposed ? 1 : g->n;
    memset(g->c, 0, (size_t)(g->m * g->n) * sizeof *g->c);
    for (int64_t i = 0; i < g->m; i++) {
        uint32_t *c = (uint32_t *)g->c + i * g->n;
        for (int64_t p = 0; p < g->k; p++) {
            uint32_t x = (uint32_t)byte_at(g->a, g->a_signed, i * a_row + p * a_step) - (uint32_t)g->a_offset;
            for (int64_t j = 0; j < g->n; j++)
                c[j] += x * ((uint32_t)byte_at(g->b, g->b_signed, p * b_step + j * b_col) - (uint32_t)g->b_offset);
        }
    }
}

/* Without these instructions oneDNN adds pairs of products in 16 bits, which saturate. */
static bool multiplies_bytes(void) {
    unsigned isa = (unsigned)dnnl_get_effective_cpu_isa();
    return (isa & dnnl_cpu_isa_avx512_core_vnni) == dnnl_cpu_isa_avx512_core_vnni ||
           (isa & dnnl_cpu_isa_avx2_vnni) == dnnl_cpu_isa_avx2_vnni;
}

/* Sums of the k elements that meet in each row of a (of `lines`), or in each column of b. */
static void line_sums(const void *p, bool is_signed, bool by_line, int64_t lines, int64_t k, uint32_t *sums) {
    memset(sums, 0, (size_t)lines * sizeof *sums);
    for (int64_t i = 0; by_line && i < lines; i++)
        for (int64_t j = 0; j < k; j++) sums[i] += (uint32_t)byte_at(p, is_signed, i * k + j);
    for (int64_t j = 0; !by_line && j < k; j++)
        for (int64_t i = 0; i < lines; i++) sums[i] += (uint32_t)byte_at(p, is_signed, j * lines + i);
}

/* The bytes with the other sign: v - 128 of unsigned, v + 128 of signed ones. */
static void *flip_signs(const void *p, int64_t n) {
    uint8_t *to = xmalloc((size_t)n + 1);
    for (int64_t i = 0; i < n; i++) to[i] = ((const uint8_t *)p)[i] ^ 0x80;
    return to;
}

typedef struct Int8Job {
    const Int8Gemm *g; /* a unsigned, b signed */
    const uint32_t *rows, *columns; /* sums of them */
    bool failed;
} Int8Job;

static void run_rows(void *arg, int64_t begin, int64_t end) {
    Int8Job *job = arg;
    const Int8Gemm *g = job->g;
    const int32_t zero = 0;
    const uint8_t *a = (const uint8_t *)g->a + (g->a_transposed ? begin : begin * g->k);
    onednn_thread_setup();
    if (dnnl_gemm_u8s8s32(g->a_transposed ? 'T' : 'N', g->b_transposed ? 'T' : 'N', 'F', end - begin, g->n, g->k, 1.0f, a,
                          g->a_transposed ? g->m : g->k, 0, g->b, g->b_transposed ? g->k : g->n, 0, 0.0f,
                          g->c + begin * g->n, g->n, &zero) != dnnl_success) {
        __atomic_store_n(&job->failed, true, __ATOMIC_RELAXED);
        return;
    }
    const uint32_t a_offset = (uint32_t)g->a_offset, b_offset = (uint32_t)g->b_offset;
    if (!a_offset && !b_offset) return;
    for (int64_t i = begin; i < end; i++) {
        uint32_t *c = (uint32_t *)g->c + i * g->n, row = (uint32_t)g->k * a_offset * b_offset - b_offset * job->rows[i];
        for (int64_t j = 0; j < g->n; j++) c[j] += row - a_offset * job->columns[j];
    }
}

void gemm_int8(const Int8Gemm *given, ThreadPool *pool) {
    if ((double)given->m * (double)given->n * (double)given->k < SMALL || !multiplies_bytes()) {
        gemm_int8_plain(given);
        return;
    }
    Int8Gemm g = *given;
    void *a = NULL, *b = NULL;
    if (g.a_signed) {
        g.a = a = flip_signs(g.a, g.m * g.k);
        g.a_offset = (int32_t)((uint32_t)g.a_offset + 128);
    }
    if (!g.b_signed) {
        g.b = b = flip_signs(g.b, g.k * g.n);
        g.b_offset = (int32_t)((uint32_t)g.b_offset - 128);
    }
    uint32_t *rows = xmalloc((size_t)(g.m + g.n) * sizeof *rows), *columns = rows + g.m;
    if (g.b_offset) line_sums(g.a, false, !g.a_transposed, g.m, g.k, rows);
    else memset(rows, 0, (size_t)g.m * sizeof *rows);
    if (g.a_offset) line_sums(g.b, true, g.b_transposed, g.n, g.k, columns);
    else memset(columns, 0, (size_t)g.n * sizeof *columns);
    Int8Job job = {&g, rows, columns, false};
    int64_t threads = pool ? threadpool_size(pool) : 1, share = (g.m + threads - 1) / threads;
    int64_t grain = (int64_t)(WORK_PER_TASK / ((double)g.n * (double)g.k)) + 1;
    if (share < grain) share = grain;
    threadpool_parallel_for(pool, g.m, (share + TILE - 1) / TILE * TILE, run_rows, &job);
    if (job.failed) gemm_int8_plain(given);
    free(rows);
    free(a);
    free(b);
}
