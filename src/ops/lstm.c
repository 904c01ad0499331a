/* lstm.c: LSTMBlockCell, one step of an LSTM; BlockLSTM, a whole sequence; their gradients. Half is computed as float and rounded at the end. */
#include <string.h>

#include "kernels/gemm.h"
#include "kernels/lstm.h"
#include "ops/as_float.h"
#include "ops/elements.h"
#include "ops/op_list.h"

#define WEIGHTS "w: T, wci: T, wcf: T, wco: T, b: T"
#define SEQUENCE "seq_len_max: int64, x: T, cs_prev: T, h_prev: T, " WEIGHTS
#define VALUES "i: T, cs: T, f: T, o: T, ci: T, co: T"
#define SEQUENCE_GRADS \
    "x_grad: T, cs_prev_grad: T, h_prev_grad: T, w_grad: T, wci_grad: T, wcf_grad: T, wco_grad: T, b_grad: T"

const OpDef lstm_ops[] = {
    {"LSTMBlockCell", "x: T, cs_prev: T, h_prev: T, " WEIGHTS " -> " VALUES ", h: T",
     "forget_bias: float = 1.0; cell_clip: float = 3.0; use_peephole: bool = false; T: {half, float}", 0},
    {"LSTMBlockCellGrad",
     "x: T, cs_prev: T, h_prev: T, " WEIGHTS ", " VALUES
     ", cs_grad: T, h_grad: T -> cs_prev_grad: T, dicfo: T, wci_grad: T, wcf_grad: T, wco_grad: T",
     "use_peephole: bool; T: {half, float}", 0},
    {"BlockLSTM", SEQUENCE " -> " VALUES ", h: T",
     "forget_bias: float = 1.0; cell_clip: float = 3.0; use_peephole: bool = false; T: {half, float}", 0},
    {"BlockLSTMV2", SEQUENCE " -> " VALUES ", h: T", "cell_clip: float = 0.0; use_peephole: bool = false; T: {half, float}", 0},
    {"BlockLSTMGrad", SEQUENCE ", " VALUES ", h: T, cs_grad: T, h_grad: T -> " SEQUENCE_GRADS,
     "use_peephole: bool; T: {half, float}", 0},
    {"BlockLSTMGradV2", SEQUENCE ", " VALUES ", h: T, cs_grad: T, h_grad: T -> " SEQUENCE_GRADS,
     "use_peephole: bool; T: {half, float}", 0},
    {0},
};

typedef struct LstmState {
    float forget_bias, clip;
    bool peephole, forget_second;
} LstmState;

static Error *lstm_init(const Node *node, void *state) {
    LstmState *st = state;
    Error *err = node_attr_bool(node, "use_peephole", &st->peephole);
    Str value;
    if (node_attr(node, "forget_bias", &value)) attr_float(value, &st->forget_bias);
    if (node_attr(node, "cell_clip", &value)) attr_float(value, &st->clip);
    st->forget_second = str_ends(node->op, STR("V2"));
    return err;
}

/* ---- Inputs and outputs ---- */

enum { X, CS_PREV, H_PREV, W, WCI, WCF, WCO, B, SHARED_COUNT, MAX_INPUTS = 17, MAX_OUTPUTS = 8 };

/* The inputs of any of these ops from x on, and its outputs, as floats. */
typedef struct LstmCall {
    LstmCell cell;
    int64_t time, inputs; /* steps; numbers a step is given */
    int64_t steps;        /* of them, to be looked at */
    Tensor *in[MAX_INPUTS], *out[MAX_OUTPUTS];
    int in_count;
} LstmCall;

static Error *check_dim(const char *name, const Tensor *t, int axis, int64_t want, const char *what) {
    if (t->shape.dims[axis] == want) return NULL;
    bool state = strstr(name, "_prev") != NULL; /* TensorFlow has two words for it */
    return error_invalid("%s.%s(%d) != %s: %lld vs. %lld", name, state ? "dims" : "dim_size", axis, what, (long long)t->shape.dims[axis],
                         (long long)want);
}
static Error *check_rank(const char *name, const Tensor *t, int rank) {
    return t->shape.rank == rank ? NULL : error_invalid("%s must be rank %d but is rank %d", name, rank, t->shape.rank);
}
/* batch x cells, and with a sequence the time before. */
static Error *check_values(const LstmCall *c, bool sequence, const char *name, const Tensor *t) {
    Error *err = check_rank(name, t, sequence ? 3 : 2);
    if (!err && sequence) err = check_dim(name, t, 0, c->time, "timelen");
    if (!err) err = check_dim(name, t, sequence, c->cell.batch, "batch_size");
    if (!err) err = check_dim(name, t, sequence + 1, c->cell.cells, "cell_size");
    return err;
}

/* Shapes of x to b. Gradients of weights that are not looked at may be of any size. */
static Error *check_shared(LstmCall *c, const LstmState *st, Tensor **in, bool sequence, bool gradient) {
    static const char *const names[] = {"x", "cs_prev", "h_prev", "w", "wci", "wcf", "wco", "b"};
    static const int ranks[] = {2, 2, 2, 2, 1, 1, 1, 1};
    Error *err = NULL;
    for (int i = 0; i < SHARED_COUNT && !err; i++) err = check_rank(names[i], in[i], ranks[i] + (i == X && sequence));
    if (err) return err;
    const int64_t *x = in[X]->shape.dims + sequence;
    c->time = c->steps = sequence ? in[X]->shape.dims[0] : 1;
    c->inputs = x[1];
    c->cell.batch = x[0];
    c->cell.cells = in[CS_PREV]->shape.dims[1];
    if (c->cell.cells > INT64_MAX / 8 || c->inputs > INT64_MAX / 2) return error_invalid("cell_size is too large");
    err = check_values(c, false, "cs_prev", in[CS_PREV]);
    if (!err) err = check_values(c, false, "h_prev", in[H_PREV]);
    if (!err) err = check_dim("w", in[W], 0, c->inputs + c->cell.cells, "input_size + cell_size");
    if (!err) err = check_dim("w", in[W], 1, c->cell.cells * 4, "cell_size * 4");
    if (!err) err = check_dim("b", in[B], 0, c->cell.cells * 4, "cell_size * 4");
    bool any_size = !st->peephole && (gradient || !sequence);
    for (int i = WCI; i <= WCO && !err && !any_size; i++) err = check_dim(names[i], in[i], 0, c->cell.cells, "cell_size");
    if (!err && gradient && sequence && c->cell.cells == 0) {
        err = error_invalid("w matrix columns must be a positive multiple of 4, but got 0");
    }
    if (!err && !gradient && !sequence && in[CS_PREV]->count == 0) {
        err = error_invalid("cs_prev_tensor is empty, has shape: (%lld,%lld).", (long long)c->cell.batch,
                            (long long)c->cell.cells);
    }
    return err;
}

static Error *check_steps(LstmCall *c, const Tensor *seq_len_max) {
    if (seq_len_max->shape.rank != 0) {
        return error_invalid("`seq_len_max_tensor` must be rank 0 but is rank %d", seq_len_max->shape.rank);
    }
    c->steps = tensor_i64(seq_len_max)[0];
    if (c->steps >= 0 && c->steps <= c->time) return NULL;
    return error_invalid("seq_len_max must be between 0 and %lld but is %lld", (long long)c->time, (long long)c->steps);
}

static const float *in_floats(const LstmCall *c, int i) {
    return tensor_f32(c->in[i]);
}

/* Checks all inputs and makes floats of them; false: see *err and k->error. */
static bool call_open(KernelContext *k, LstmCall *c, bool sequence, Error **err) {
    static const char *const names[2][9] = {{"i", "cs", "f", "o", "ci", "co", "cs_grad", "h_grad"},
                                            {"i", "cs", "f", "o", "ci", "co", "h", "cs_grad", "h_grad"}};
    const LstmState *st = k->state;
    Tensor **in = k->in + sequence;
    int count = k->input_count - sequence;
    memset(c, 0, sizeof *c);
    *err = check_shared(c, st, in, sequence, count > SHARED_COUNT);
    for (int i = SHARED_COUNT; i < count && !*err; i++) {
        *err = check_values(c, sequence, names[sequence][i - SHARED_COUNT], in[i]);
    }
    if (!*err && sequence) *err = check_steps(c, k->in[0]);
    for (; c->in_count < count && !*err; c->in_count++) {
        c->in[c->in_count] = kernel_floats(k, in[c->in_count]);
        if (!c->in[c->in_count]) return false;
    }
    if (*err) return false;
    c->cell.forget_second = st->forget_second;
    c->cell.forget_bias = st->forget_bias;
    c->cell.clip = st->clip;
    c->cell.bias = in_floats(c, B);
    if (!st->peephole) return true;
    c->cell.wci = in_floats(c, WCI);
    c->cell.wcf = in_floats(c, WCF);
    c->cell.wco = in_floats(c, WCO);
    return true;
}

/* NULL: see k->error. */
static float *call_output(KernelContext *k, LstmCall *c, int i, const Shape *shape) {
    Tensor *t = kernel_output(k, i, shape);
    if (!t) return NULL;
    c->out[i] = t->dtype == DT_FLOAT ? tensor_ref(t) : kernel_scratch(k, DT_FLOAT, shape);
    return c->out[i] ? tensor_f32(c->out[i]) : NULL;
}

/* Clears output i from element `from` on. */
static void output_clear(const LstmCall *c, int i, int64_t from) {
    memset(tensor_f32(c->out[i]) + from, 0, (size_t)(c->out[i]->count - from) * sizeof(float));
}

static void call_close(KernelContext *k, LstmCall *c) {
    for (int i = 0; i < MAX_OUTPUTS; i++) {
        if (c->out[i] && k->out[i]->dtype != DT_FLOAT) floats_store(tensor_f32(c->out[i]), k->out[i], 0, k->out[i]->count);
        tensor_unref(c->out[i]);
    }
    for (int i = 0; i < c->in_count; i++) tensor_unref(c->in[i]);
}

static Tensor *matrix_scratch(KernelContext *k, int64_t rows, int64_t columns) {
    Shape shape = shape_matrix(rows, columns);
    return kernel_scratch(k, DT_FLOAT, &shape);
}

static void product(KernelContext *k, int64_t m, int64_t n, int64_t inner, const float *a, bool a_transposed, const float *b,
                    bool b_transposed, float *to) {
    Gemm g = {.m = m, .n = n, .k = inner, .a_transposed = a_transposed, .b_transposed = b_transposed, .a = a, .b = b, .c = to};
    if (m > 0 && n > 0) gemm_f32(&g, k->pool);
}

/* ---- Forward ---- */

static bool values_output(KernelContext *k, LstmCall *c, const Shape *shape, LstmValues *v) {
    float **to[] = {&v->i, &v->cs, &v->f, &v->o, &v->ci, &v->co, &v->h};
    for (int i = 0; i < 7; i++) {
        *to[i] = call_output(k, c, i, shape);
        if (!*to[i]) return false;
        output_clear(c, i, c->steps * c->cell.batch * c->cell.cells);
    }
    return true;
}

static LstmValues values_at(const LstmValues *v, int64_t at) {
    return (LstmValues){v->i + at, v->cs + at, v->f + at, v->o + at, v->ci + at, v->co + at, v->h ? v->h + at : NULL};
}

static Error *cell_run(KernelContext *k) {
    LstmCall c;
    Error *err = NULL;
    Tensor *xh = NULL, *gates = NULL;
    LstmValues v;
    if (!call_open(k, &c, false, &err)) goto out;
    int64_t batch = c.cell.batch, cells = c.cell.cells, width = c.inputs + cells;
    Shape shape = shape_matrix(batch, cells);
    xh = matrix_scratch(k, batch, width);
    gates = xh ? matrix_scratch(k, batch, 4 * cells) : NULL;
    if (!gates || !values_output(k, &c, &shape, &v)) goto out;
    for (int64_t row = 0; row < batch; row++) {
        float *to = tensor_f32(xh) + row * width;
        memcpy(to, in_floats(&c, X) + row * c.inputs, (size_t)c.inputs * sizeof *to);
        memcpy(to + c.inputs, in_floats(&c, H_PREV) + row * cells, (size_t)cells * sizeof *to);
    }
    product(k, batch, 4 * cells, width, tensor_f32(xh), false, in_floats(&c, W), false, tensor_f32(gates));
    lstm_forward(&c.cell, tensor_f32(gates), NULL, in_floats(&c, CS_PREV), &v, k->pool);
out:
    tensor_unref(xh);
    tensor_unref(gates);
    call_close(k, &c);
    return err;
}

/* What is given is multiplied for all steps at once; only the product with the output of the step before is made in turn. */
static Error *sequence_run(KernelContext *k) {
    LstmCall c;
    Error *err = NULL;
    Tensor *from_x = NULL, *gates = NULL;
    LstmValues all;
    if (!call_open(k, &c, true, &err)) goto out;
    int64_t batch = c.cell.batch, cells = c.cell.cells, columns = 4 * cells;
    from_x = matrix_scratch(k, c.steps * batch, columns);
    gates = from_x ? matrix_scratch(k, batch, columns) : NULL;
    Shape shape = shape_of(3, (int64_t[]){c.time, batch, cells});
    if (!gates || !values_output(k, &c, &shape, &all)) goto out;
    const float *w = in_floats(&c, W), *h = in_floats(&c, H_PREV), *cs = in_floats(&c, CS_PREV);
    product(k, c.steps * batch, columns, c.inputs, in_floats(&c, X), false, w, false, tensor_f32(from_x));
    for (int64_t t = 0; t < c.steps; t++) {
        LstmValues v = values_at(&all, t * batch * cells);
        product(k, batch, columns, cells, h, false, w + c.inputs * columns, false, tensor_f32(gates));
        lstm_forward(&c.cell, tensor_f32(gates), tensor_f32(from_x) + t * batch * columns, cs, &v, k->pool);
        h = v.h;
        cs = v.cs;
    }
out:
    tensor_unref(from_x);
    tensor_unref(gates);
    call_close(k, &c);
    return err;
}

/* ---- Gradients ---- */

static LstmValues values_given(const LstmCall *c) {
    float *v[6];
    for (int i = 0; i < 6; i++) v[i] = tensor_f32(c->in[SHARED_COUNT + i]);
    return (LstmValues){v[0], v[1], v[2], v[3], v[4], v[5], NULL};
}

static Error *cell_grad_run(KernelContext *k) {
    LstmCall c;
    Error *err = NULL;
    float *to[5];
    if (!call_open(k, &c, false, &err)) goto out;
    Shape gates = shape_matrix(c.cell.batch, 4 * c.cell.cells);
    const Shape *shapes[] = {&c.in[CS_PREV]->shape, &gates, &c.in[WCI]->shape, &c.in[WCF]->shape, &c.in[WCO]->shape};
    for (int i = 0; i < 5; i++) {
        to[i] = call_output(k, &c, i, shapes[i]);
        if (!to[i]) goto out;
        if (i >= 2) output_clear(&c, i, 0);
    }
    LstmValues v = values_given(&c);
    const float *cs_prev = in_floats(&c, CS_PREV);
    lstm_backward(&c.cell, &v, cs_prev, in_floats(&c, SHARED_COUNT + 6), in_floats(&c, SHARED_COUNT + 7), to[1], to[0], k->pool);
    if (c.cell.wci) lstm_peephole_backward(&c.cell, to[1], cs_prev, v.cs, to[2], to[3], to[4]);
out:
    call_close(k, &c);
    return err;
}

typedef struct ColumnSums {
    const float *x;
    float *sums;
    int64_t rows, columns;
} ColumnSums;
static void sum_columns(void *arg, int64_t begin, int64_t end) {
    const ColumnSums *job = arg;
    for (int64_t row = 0; row < job->rows; row++) {
        for (int64_t j = begin; j < end; j++) job->sums[j] += job->x[row * job->columns + j];
    }
}

/* x_grad, w_grad and b_grad of all steps; h_before: what each step was given by the one before. */
static void weight_grads(KernelContext *k, const LstmCall *c, const float *dgates, const float *h_before, float *x_grad,
                         float *w_grad, float *b_grad) {
    int64_t rows = c->steps * c->cell.batch, columns = 4 * c->cell.cells;
    if (rows == 0) return;
    product(k, rows, c->inputs, columns, dgates, false, in_floats(c, W), true, x_grad);
    product(k, c->inputs, columns, rows, in_floats(c, X), true, dgates, false, w_grad);
    product(k, c->cell.cells, columns, rows, h_before, true, dgates, false, w_grad + c->inputs * columns);
    ColumnSums sums = {dgates, b_grad, rows, columns};
    threadpool_parallel_for(k->pool, columns, 65536 / rows + 64, sum_columns, &sums);
}

static void add_to(float *to, const float *from, int64_t n) {
    for (int64_t i = 0; i < n; i++) to[i] += from[i];
}

static Error *sequence_grad_run(KernelContext *k) {
    enum { X_GRAD, CS_PREV_GRAD, H_PREV_GRAD, W_GRAD, WCI_GRAD, WCF_GRAD, WCO_GRAD, B_GRAD };
    LstmCall c;
    Error *err = NULL;
    float *to[MAX_OUTPUTS];
    Tensor *dgates = NULL, *before = NULL;
    if (!call_open(k, &c, true, &err)) goto out;
    int64_t batch = c.cell.batch, cells = c.cell.cells, columns = 4 * cells, size = batch * cells;
    for (int i = 0; i < MAX_OUTPUTS; i++) {
        to[i] = call_output(k, &c, i, &c.in[i]->shape);
        if (!to[i]) goto out;
        output_clear(&c, i, i == X_GRAD ? c.steps * batch * c.inputs : 0);
    }
    dgates = matrix_scratch(k, c.steps * batch, columns);
    before = dgates ? matrix_scratch(k, c.steps * batch, cells) : NULL;
    if (!before) goto out;
    LstmValues all = values_given(&c);
    const float *h = in_floats(&c, SHARED_COUNT + 6), *dcs = in_floats(&c, SHARED_COUNT + 7), *dh = in_floats(&c, SHARED_COUNT + 8);
    const float *w_h = in_floats(&c, W) + c.inputs * columns;
    for (int64_t t = c.steps - 1; t >= 0; t--) {
        LstmValues v = values_at(&all, t * size);
        const float *cs_prev = t > 0 ? v.cs - size : in_floats(&c, CS_PREV);
        float *gates = tensor_f32(dgates) + t * batch * columns;
        add_to(to[CS_PREV_GRAD], dcs + t * size, size);
        add_to(to[H_PREV_GRAD], dh + t * size, size);
        lstm_backward(&c.cell, &v, cs_prev, to[CS_PREV_GRAD], to[H_PREV_GRAD], gates, to[CS_PREV_GRAD], k->pool);
        if (c.cell.wci) lstm_peephole_backward(&c.cell, gates, cs_prev, v.cs, to[WCI_GRAD], to[WCF_GRAD], to[WCO_GRAD]);
        product(k, batch, cells, columns, gates, false, w_h, true, to[H_PREV_GRAD]);
        memcpy(tensor_f32(before) + t * size, t > 0 ? h + (t - 1) * size : in_floats(&c, H_PREV), (size_t)size * sizeof(float));
    }
    weight_grads(k, &c, tensor_f32(dgates), tensor_f32(before), to[X_GRAD], to[W_GRAD], to[B_GRAD]);
out:
    tensor_unref(dgates);
    tensor_unref(before);
    call_close(k, &c);
    return err;
}

#define TYPES(run) .by_type = {[DT_FLOAT] = run, [DT_HALF] = run}
#define STATE .state_size = sizeof(LstmState), .init = lstm_init, .flags = KERNEL_EXPENSIVE

const KernelDef lstm_cpu[] = {
    {"LSTMBlockCell", TYPES(cell_run), STATE},
    {"LSTMBlockCellGrad", TYPES(cell_grad_run), STATE},
    {"BlockLSTM", TYPES(sequence_run), STATE},
    {"BlockLSTMV2", TYPES(sequence_run), STATE},
    {"BlockLSTMGrad", TYPES(sequence_grad_run), STATE},
    {"BlockLSTMGradV2", TYPES(sequence_grad_run), STATE},
    {0},
};
