/* lstm.c: a row of the batch at a time, so that its gates are read and written while they are in the cache. */
#include "kernels/lstm.h"

#include "kernels/vector_math.h"

enum { ROW_WORK = 32768 }; /* numbers that are worth a piece of their own */

typedef struct GateParts {
    int64_t ci, f, o; /* where they begin in a row; the input gate begins at 0 */
} GateParts;

static GateParts gate_parts(const LstmCell *c) {
    return (GateParts){c->forget_second ? 2 * c->cells : c->cells, c->forget_second ? c->cells : 2 * c->cells, 3 * c->cells};
}

typedef struct ForwardJob {
    const LstmCell *c;
    float *gates;
    const float *more, *cs_prev;
    const LstmValues *to;
} ForwardJob;

static void add_row(float *to, const float *from, int64_t n) {
    for (int64_t j = 0; j < n; j++) to[j] += from[j];
}
static void add_products(float *to, const float *a, const float *b, int64_t n) {
    for (int64_t j = 0; j < n; j++) to[j] += a[j] * b[j];
}

static void forward_row(const ForwardJob *job, int64_t row) {
    const LstmCell *c = job->c;
    const LstmValues *to = job->to;
    int64_t n = c->cells, at = row * n;
    GateParts parts = gate_parts(c);
    float *gate = job->gates + 4 * at, *f_gate = gate + parts.f, *cs = to->cs + at;
    const float *i = to->i + at, *ci = to->ci + at, *f = to->f + at, *cs_prev = job->cs_prev + at;
    if (job->more) add_row(gate, job->more + 4 * at, 4 * n);
    add_row(gate, c->bias, 4 * n);
    for (int64_t j = 0; j < n; j++) f_gate[j] += c->forget_bias;
    if (c->wci) {
        add_products(gate, cs_prev, c->wci, n);
        add_products(f_gate, cs_prev, c->wcf, n);
    }
    vector_sigmoid(to->i + at, gate, n);
    vector_tanh(to->ci + at, gate + parts.ci, n);
    vector_sigmoid(to->f + at, f_gate, n);
    for (int64_t j = 0; j < n; j++) cs[j] = i[j] * ci[j] + f[j] * cs_prev[j];
    for (int64_t j = 0; c->clip > 0 && j < n; j++) {
        if (cs[j] > c->clip) cs[j] = c->clip;
        if (cs[j] < -c->clip) cs[j] = -c->clip;
    }
    if (c->wci) add_products(gate + parts.o, cs, c->wco, n);
    vector_tanh(to->co + at, cs, n);
    vector_sigmoid(to->o + at, gate + parts.o, n);
    for (int64_t j = 0; j < n; j++) to->h[at + j] = to->o[at + j] * to->co[at + j];
}

static void forward_rows(void *arg, int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; row++) forward_row(arg, row);
}

void lstm_forward(const LstmCell *c, float *gates, const float *more, const float *cs_prev, const LstmValues *to,
                  ThreadPool *pool) {
    ForwardJob job = {c, gates, more, cs_prev, to};
    if (c->cells > 0) threadpool_parallel_for(pool, c->batch, ROW_WORK / (8 * c->cells) + 1, forward_rows, &job);
}

typedef struct BackwardJob {
    const LstmCell *c;
    const LstmValues *v;
    const float *cs_prev, *cs_grad, *h_grad;
    float *dgates, *cs_prev_grad;
} BackwardJob;

static void backward_row(const BackwardJob *job, int64_t row) {
    const LstmCell *c = job->c;
    const LstmValues *v = job->v;
    GateParts parts = gate_parts(c);
    int64_t from = row * c->cells;
    float *di = job->dgates + 4 * from, *dci = di + parts.ci, *df = di + parts.f, *d_o = di + parts.o;
    for (int64_t j = 0; j < c->cells; j++) {
        int64_t at = from + j;
        float i = v->i[at], f = v->f[at], o = v->o[at], ci = v->ci[at], co = v->co[at], dh = job->h_grad[at];
        d_o[j] = o * (1 - o) * dh * co;
        float dcs = (1 - co * co) * dh * o + job->cs_grad[at];
        if (c->wci) dcs += d_o[j] * c->wco[j];
        dci[j] = (1 - ci * ci) * dcs * i;
        df[j] = f * (1 - f) * dcs * job->cs_prev[at];
        di[j] = i * (1 - i) * dcs * ci;
        float before = dcs * f;
        if (c->wci) before += di[j] * c->wci[j] + df[j] * c->wcf[j];
        job->cs_prev_grad[at] = before;
    }
}

static void backward_rows(void *arg, int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; row++) backward_row(arg, row);
}

void lstm_backward(const LstmCell *c, const LstmValues *v, const float *cs_prev, const float *cs_grad, const float *h_grad,
                   float *dgates, float *cs_prev_grad, ThreadPool *pool) {
    BackwardJob job = {c, v, cs_prev, cs_grad, h_grad, dgates, cs_prev_grad};
    if (c->cells > 0) threadpool_parallel_for(pool, c->batch, ROW_WORK / (4 * c->cells) + 1, backward_rows, &job);
}

void lstm_peephole_backward(const LstmCell *c, const float *dgates, const float *cs_prev, const float *cs, float *wci_grad,
                            float *wcf_grad, float *wco_grad) {
    GateParts parts = gate_parts(c);
    for (int64_t row = 0; row < c->batch; row++) {
        const float *di = dgates + 4 * row * c->cells;
        add_products(wci_grad, di, cs_prev + row * c->cells, c->cells);
        add_products(wcf_grad, di + parts.f, cs_prev + row * c->cells, c->cells);
        add_products(wco_grad, di + parts.o, cs + row * c->cells, c->cells);
    }
}
