/* matrix_batch.c: runs an op on every matrix of a batch. */
#include "ops/matrix_batch.h"

#include <stdlib.h>
#include <string.h>

#include "base/block_cache.h"
#include "base/float16.h"
#include "base/memory.h"

enum { MAX_SIDE = 1 << 29 }; /* products of two sides and their sums stay far below 2^63 */

Error *matrix_job_init(MatrixJob *job, KernelContext *k, bool square, bool two) {
    *job = (MatrixJob){.k = k, .options = k->state};
    for (int i = 0; i < (two ? 2 : 1); i++) {
        const Shape *s = &k->in[i]->shape;
        if (i > 0 && s->rank != k->in[0]->shape.rank) return error_invalid("All input tensors must have the same rank.");
        if (s->rank < 2) return error_invalid("Input tensor %d must have rank >= 2, got %d", i, s->rank);
    }
    Shape *a = &k->in[0]->shape;
    job->outer = shape_of(a->rank - 2, a->dims);
    job->batch = shape_count(&job->outer);
    job->m = a->dims[a->rank - 2];
    job->n = a->dims[a->rank - 1];
    if (job->m > MAX_SIDE || job->n > MAX_SIDE)
        return error_invalid("Matrices of shape %s are too large", shape_text(a).text);
    DataType type = k->in[0]->dtype;
    job->is_complex = type == DT_COMPLEX64 || type == DT_COMPLEX128;
    if (square && job->m != job->n) return error_invalid(two ? "First input (lhs) must be a square matrix." : "Input matrix must be square.");
    if (!two) return NULL;
    const Shape *b = &k->in[1]->shape;
    Shape outer = shape_of(b->rank - 2, b->dims);
    if (!shape_eq(&outer, &job->outer)) return error_invalid("All input tensors must have the same outer dimensions.");
    if (b->dims[b->rank - 2] != job->m) return error_invalid("Input matrix and rhs are incompatible.");
    job->cols = b->dims[b->rank - 1];
    return job->cols > MAX_SIDE ? error_invalid("Matrices of shape %s are too large", shape_text(b).text) : NULL;
}

Tensor *matrix_output(MatrixJob *job, int output, int64_t rows, int64_t cols) {
    Shape shape = job->outer;
    if (rows >= 0) shape.dims[shape.rank++] = rows;
    if (cols >= 0) shape.dims[shape.rank++] = cols;
    return kernel_output(job->k, output, &shape);
}

static void run_range(void *arg, int64_t begin, int64_t end) {
    MatrixJob *job = arg;
    size_t size = job->is_complex ? sizeof(Complex) : sizeof(double);
    void *scratch = block_alloc((size_t)(job->scratch + 1) * size);
    Error *err =
        scratch ? NULL
                : error_new(CODE_RESOURCE_EXHAUSTED, "No memory for matrices of %lld numbers", (long long)job->scratch);
    for (int64_t i = begin; i < end && !err; i++) err = (job->is_complex ? job->fn_c128 : job->fn_f64)(job, i, scratch);
    block_free(scratch, (size_t)(job->scratch + 1) * size);
    Error *none = NULL;
    if (err && !atomic_compare_exchange_strong(&job->error, &none, err)) error_free(err);
}

Error *matrix_job_run(MatrixJob *job) {
    double work = (double)job->m * (double)job->n * (double)(job->n + job->m);
    int64_t grain = work > 1e5 ? 1 : (int64_t)(1e5 / (work + 1)) + 1;
    threadpool_parallel_for(job->k->pool, job->batch, grain, run_range, job);
    return atomic_load(&job->error);
}

void matrix_load_f64(const Tensor *t, int64_t at, int64_t count, double *to) {
    const uint16_t *half = (const uint16_t *)t->data + at;
    switch (t->dtype) {
        case DT_FLOAT:
            for (int64_t i = 0; i < count; i++) to[i] = tensor_f32(t)[at + i];
            break;
        case DT_HALF:
            for (int64_t i = 0; i < count; i++) to[i] = half_to_float(half[i]);
            break;
        case DT_BFLOAT16:
            for (int64_t i = 0; i < count; i++) to[i] = bfloat16_to_float(half[i]);
            break;
        default:
            memcpy(to, tensor_f64(t) + at, (size_t)count * sizeof *to);
            break;
    }
}

void matrix_store_f64(Tensor *t, int64_t at, int64_t count, const double *from) {
    uint16_t *half = (uint16_t *)t->data + at;
    float *single = (float *)t->data + at;
    switch (t->dtype) {
        case DT_FLOAT:
            for (int64_t i = 0; i < count; i++) single[i] = (float)from[i];
            break;
        case DT_HALF:
            for (int64_t i = 0; i < count; i++) half[i] = float_to_half((float)from[i]);
            break;
        case DT_BFLOAT16:
            for (int64_t i = 0; i < count; i++) half[i] = float_to_bfloat16((float)from[i]);
            break;
        default:
            memcpy(tensor_f64(t) + at, from, (size_t)count * sizeof *from);
            break;
    }
}

void matrix_load_c128(const Tensor *t, int64_t at, int64_t count, Complex *to) {
    if (t->dtype == DT_COMPLEX64) {
        for (int64_t i = 0; i < count; i++) to[i] = ((const float _Complex *)t->data)[at + i];
    } else if (t->dtype == DT_COMPLEX128) {
        memcpy(to, (const Complex *)t->data + at, (size_t)count * sizeof *to);
    } else {
        double *real = (double *)to;
        matrix_load_f64(t, at, count, real);
        for (int64_t i = count - 1; i >= 0; i--) to[i] = real[i]; /* those behind are not read any more */
    }
}

void matrix_store_c128(Tensor *t, int64_t at, int64_t count, const Complex *from) {
    if (t->dtype == DT_COMPLEX64) {
        for (int64_t i = 0; i < count; i++) ((float _Complex *)t->data)[at + i] = (float _Complex)from[i];
    } else {
        memcpy((Complex *)t->data + at, from, (size_t)count * sizeof *from);
    }
}

/* Which matrix of an input belongs to each of the batch, when dimensions of 1 (or missing ones) are repeated. */
int64_t *matrix_broadcast_index(const Shape *outer, const Shape *in, int64_t batch) {
    int64_t *of = xmalloc((size_t)(batch + 1) * sizeof *of);
    int shift = outer->rank - (in->rank - 2);
    for (int64_t i = 0; i < batch; i++) {
        int64_t rest = i, flat = 0, stride = 1;
        for (int d = outer->rank - 1; d >= 0; d--) {
            int64_t at = rest % outer->dims[d];
            rest /= outer->dims[d];
            if (d < shift) continue;
            flat += in->dims[d - shift] == 1 ? 0 : at * stride;
            stride *= in->dims[d - shift];
        }
        of[i] = flat;
    }
    return of;
}

Error *matrix_broadcast_outer(const Shape *a, const Shape *b, Shape *out) {
    int ra = a->rank - 2, rb = b->rank - 2, rank = ra > rb ? ra : rb;
    *out = (Shape){.rank = rank};
    for (int d = 0; d < rank; d++) {
        int64_t x = d + ra >= rank ? a->dims[d + ra - rank] : 1, y = d + rb >= rank ? b->dims[d + rb - rank] : 1;
        if (x != y && x != 1 && y != 1)
            return error_invalid("In[0] and In[1] must have compatible batch dimensions: %s vs. %s", shape_text(a).text,
                                 shape_text(b).text);
        out->dims[d] = x == 1 ? y : x;
    }
    return NULL;
}
