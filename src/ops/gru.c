/* gru.c: GRUBlockCell, one step of a gated recurrent unit, and its gradient. */
#include <string.h>

#include "kernels/gemm.h"
#include "kernels/vector_math.h"
#include "ops/elements.h"
#include "ops/op_list.h"

const OpDef gru_ops[] = {
    {"GRUBlockCell", "x: T, h_prev: T, w_ru: T, w_c: T, b_ru: T, b_c: T -> r: T, u: T, c: T, h: T", "T: {float}", 0},
    {"GRUBlockCellGrad",
     "x: T, h_prev: T, w_ru: T, w_c: T, b_ru: T, b_c: T, r: T, u: T, c: T, d_h: T -> d_x: T, d_h_prev: T, d_c_bar: T, "
     "d_r_bar_u_bar: T",
     "T: {float}", 0},
    {0},
};

enum { X, H_PREV, W_RU, W_C, B_RU, B_C, R, U, C, D_H };

typedef struct GruSize {
    int64_t batch, inputs, cells, width; /* width: of input and output together */
} GruSize;

static Error *check_dim(const char *name, const Tensor *t, int axis, int64_t want, const char *what) {
    if (t->shape.dims[axis] == want) return NULL;
    bool state = !strchr("wb", name[0]); /* TensorFlow has two words for it */
    return error_invalid("%s.%s(%d) != %s: %lld vs. %lld", name, state ? "dims" : "dim_size", axis, what, (long long)t->shape.dims[axis],
                         (long long)want);
}

static Error *gru_check(const KernelContext *k, GruSize *s) {
    static const char *const names[] = {"x", "h_prev", "w_ru", "w_c", "b_ru", "b_c", "r", "u", "c", "d_h"};
    Tensor **in = k->in;
    Error *err = NULL;
    for (int i = 0; i < k->input_count; i++) {
        int rank = i == B_RU || i == B_C ? 1 : 2;
        if (in[i]->shape.rank != rank) return error_invalid("Rank of %s must be %d, got %d", names[i], rank, in[i]->shape.rank);
    }
    s->batch = in[X]->shape.dims[0];
    s->inputs = in[X]->shape.dims[1];
    s->cells = in[H_PREV]->shape.dims[1];
    if (s->cells > INT64_MAX / 8 || s->inputs > INT64_MAX / 2) return error_invalid("cell_size is too large");
    s->width = s->inputs + s->cells;
    err = check_dim("h_prev", in[H_PREV], 0, s->batch, "batch_size");
    if (!err) err = check_dim("w_ru", in[W_RU], 0, s->width, "input_size + cell_size");
    if (!err) err = check_dim("w_ru", in[W_RU], 1, 2 * s->cells, "cell_size * 2");
    if (!err) err = check_dim("w_c", in[W_C], 0, s->width, "input_size + cell_size");
    if (!err) err = check_dim("w_c", in[W_C], 1, s->cells, "cell_size");
    if (!err) err = check_dim("b_ru", in[B_RU], 0, 2 * s->cells, "cell_size * 2");
    if (!err) err = check_dim("b_c", in[B_C], 0, s->cells, "cell_size");
    for (int i = R; i < k->input_count && !err; i++) {
        err = check_dim(names[i], in[i], 0, s->batch, "batch_size");
        if (!err) err = check_dim(names[i], in[i], 1, s->cells, "cell_size");
    }
    return err;
}

static Tensor *matrix_scratch(KernelContext *k, int64_t rows, int64_t columns) {
    Shape shape = shape_matrix(rows, columns);
    return kernel_scratch(k, DT_FLOAT, &shape);
}
static float *matrix_output(KernelContext *k, int i, int64_t rows, int64_t columns) {
    Shape shape = shape_matrix(rows, columns);
    Tensor *t = kernel_output(k, i, &shape);
    return t ? tensor_f32(t) : NULL;
}

static void product(KernelContext *k, int64_t m, int64_t n, int64_t inner, const float *a, const float *b, bool b_transposed,
                    float *to) {
    Gemm g = {.m = m, .n = n, .k = inner, .b_transposed = b_transposed, .a = a, .b = b, .c = to};
    if (m > 0 && n > 0) gemm_f32(&g, k->pool);
}

typedef struct GruJob {
    GruSize s;
    const float *x, *h_prev, *b_ru, *b_c, *in_r, *in_u, *in_c, *d_h;
    float *gates, *joined; /* batch x 2 cells; batch x width */
    float *r, *u, *c, *h;
    float *d_x, *d_h_prev, *d_c_bar, *d_ru_bar;
    const float *from_c, *from_ru; /* gradients of [x, h_prev * r] and of [x, h_prev]; batch x width */
} GruJob;

static int64_t row_grain(const GruSize *s) {
    return 32768 / (8 * s->width + 1) + 1;
}

/* ---- Forward ---- */

static void join_rows(void *arg, int64_t begin, int64_t end) {
    const GruJob *j = arg;
    for (int64_t row = begin; row < end; row++) {
        float *to = j->joined + row * j->s.width;
        memcpy(to, j->x + row * j->s.inputs, (size_t)j->s.inputs * sizeof *to);
        memcpy(to + j->s.inputs, j->h_prev + row * j->s.cells, (size_t)j->s.cells * sizeof *to);
    }
}

/* r and u; h_prev * r takes the place of h_prev beside x. */
static void gate_rows(void *arg, int64_t begin, int64_t end) {
    const GruJob *j = arg;
    int64_t n = j->s.cells;
    for (int64_t row = begin; row < end; row++) {
        float *gate = j->gates + 2 * row * n, *r = j->r + row * n, *after = j->joined + row * j->s.width + j->s.inputs;
        for (int64_t i = 0; i < 2 * n; i++) gate[i] += j->b_ru[i];
        vector_sigmoid(r, gate, n);
        vector_sigmoid(j->u + row * n, gate + n, n);
        for (int64_t i = 0; i < n; i++) after[i] = j->h_prev[row * n + i] * r[i];
    }
}

static void mix_rows(void *arg, int64_t begin, int64_t end) {
    const GruJob *j = arg;
    int64_t n = j->s.cells;
    for (int64_t row = begin; row < end; row++) {
        float *c = j->c + row * n, *h = j->h + row * n;
        const float *u = j->u + row * n, *h_prev = j->h_prev + row * n;
        for (int64_t i = 0; i < n; i++) c[i] += j->b_c[i];
        vector_tanh(c, c, n);
        for (int64_t i = 0; i < n; i++) h[i] = u[i] * (h_prev[i] - c[i]) + c[i];
    }
}

static Error *gru_run(KernelContext *k) {
    GruJob j = {.x = tensor_f32(k->in[X]), .h_prev = tensor_f32(k->in[H_PREV]), .b_ru = tensor_f32(k->in[B_RU]),
                .b_c = tensor_f32(k->in[B_C])};
    GruSize *s = &j.s;
    Error *err = gru_check(k, s);
    if (err) return err;
    float **to[] = {&j.r, &j.u, &j.c, &j.h};
    for (int i = 0; i < 4; i++) {
        *to[i] = matrix_output(k, i, s->batch, s->cells);
        if (!*to[i]) return NULL;
    }
    Tensor *joined = matrix_scratch(k, s->batch, s->width), *gates = joined ? matrix_scratch(k, s->batch, 2 * s->cells) : NULL;
    if (gates) {
        int64_t grain = row_grain(s);
        j.joined = tensor_f32(joined);
        j.gates = tensor_f32(gates);
        threadpool_parallel_for(k->pool, s->batch, grain, join_rows, &j);
        product(k, s->batch, 2 * s->cells, s->width, j.joined, tensor_f32(k->in[W_RU]), false, j.gates);
        threadpool_parallel_for(k->pool, s->batch, grain, gate_rows, &j);
        product(k, s->batch, s->cells, s->width, j.joined, tensor_f32(k->in[W_C]), false, j.c);
        threadpool_parallel_for(k->pool, s->batch, grain, mix_rows, &j);
    }
    tensor_unref(joined);
    tensor_unref(gates);
    return NULL;
}

/* ---- Gradient ---- */

static void candidate_grad_rows(void *arg, int64_t begin, int64_t end) {
    const GruJob *j = arg;
    int64_t n = j->s.cells;
    for (int64_t row = begin; row < end; row++) {
        for (int64_t i = row * n; i < (row + 1) * n; i++) {
            float u = j->in_u[i], c = j->in_c[i], dh = j->d_h[i];
            j->d_c_bar[i] = dh * (1 - u) * (1 - c * c);
            j->d_ru_bar[2 * row * n + n + i - row * n] = dh * (j->h_prev[i] - c) * u * (1 - u);
        }
    }
}

static void reset_grad_rows(void *arg, int64_t begin, int64_t end) {
    const GruJob *j = arg;
    int64_t n = j->s.cells;
    for (int64_t row = begin; row < end; row++) {
        const float *d_hr = j->from_c + row * j->s.width + j->s.inputs;
        for (int64_t i = 0; i < n; i++) {
            float r = j->in_r[row * n + i];
            j->d_ru_bar[2 * row * n + i] = d_hr[i] * j->h_prev[row * n + i] * r * (1 - r);
        }
    }
}

static void input_grad_rows(void *arg, int64_t begin, int64_t end) {
    const GruJob *j = arg;
    int64_t n = j->s.cells, inputs = j->s.inputs;
    for (int64_t row = begin; row < end; row++) {
        const float *a = j->from_ru + row * j->s.width, *b = j->from_c + row * j->s.width;
        for (int64_t i = 0; i < inputs; i++) j->d_x[row * inputs + i] = a[i] + b[i];
        for (int64_t i = 0; i < n; i++) {
            int64_t at = row * n + i;
            j->d_h_prev[at] = a[inputs + i] + b[inputs + i] * j->in_r[at] + j->d_h[at] * j->in_u[at];
        }
    }
}

static Error *gru_grad_run(KernelContext *k) {
    GruJob j = {.h_prev = tensor_f32(k->in[H_PREV]), .in_r = tensor_f32(k->in[R]), .in_u = tensor_f32(k->in[U]),
                .in_c = tensor_f32(k->in[C]), .d_h = tensor_f32(k->in[D_H])};
    GruSize *s = &j.s;
    Error *err = gru_check(k, s);
    if (err) return err;
    float **to[] = {&j.d_x, &j.d_h_prev, &j.d_c_bar, &j.d_ru_bar};
    int64_t columns[] = {s->inputs, s->cells, s->cells, 2 * s->cells};
    for (int i = 0; i < 4; i++) {
        *to[i] = matrix_output(k, i, s->batch, columns[i]);
        if (!*to[i]) return NULL;
    }
    Tensor *from_c = matrix_scratch(k, s->batch, s->width), *from_ru = from_c ? matrix_scratch(k, s->batch, s->width) : NULL;
    if (from_ru) {
        int64_t grain = row_grain(s);
        j.from_c = tensor_f32(from_c);
        j.from_ru = tensor_f32(from_ru);
        threadpool_parallel_for(k->pool, s->batch, grain, candidate_grad_rows, &j);
        product(k, s->batch, s->width, s->cells, j.d_c_bar, tensor_f32(k->in[W_C]), true, tensor_f32(from_c));
        threadpool_parallel_for(k->pool, s->batch, grain, reset_grad_rows, &j);
        product(k, s->batch, s->width, 2 * s->cells, j.d_ru_bar, tensor_f32(k->in[W_RU]), true, tensor_f32(from_ru));
        threadpool_parallel_for(k->pool, s->batch, grain, input_grad_rows, &j);
    }
    tensor_unref(from_c);
    tensor_unref(from_ru);
    return NULL;
}

const KernelDef gru_cpu[] = {
    {"GRUBlockCell", .by_type = {[DT_FLOAT] = gru_run}, .flags = KERNEL_EXPENSIVE},
    {"GRUBlockCellGrad", .by_type = {[DT_FLOAT] = gru_grad_run}, .flags = KERNEL_EXPENSIVE},
    {0},
};
