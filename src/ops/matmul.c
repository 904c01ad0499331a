/* matmul.c: MatMul, BatchMatMul and its later forms, SparseMatMul. */
#include <string.h>

#include "base/float16.h"
#include "ops/matmul.h"
#include "ops/elementwise.h"
#include "ops/op_list.h"

const OpDef matmul_ops[] = {
    {"MatMul", "a: T, b: T -> product: T",
     "transpose_a: bool = false; transpose_b: bool = false; T: {bfloat16, half, float, double, int32, int64, uint8, "
     "uint16, uint32, uint64, complex64, complex128}; grad_a: bool = false; grad_b: bool = false",
     0},
    {"BatchMatMul", "x: T, y: T -> output: T",
     "T: {bfloat16, half, float, double, int32, int64, complex64, complex128}; adj_x: bool = false; adj_y: bool = "
     "false; grad_x: bool = false; grad_y: bool = false",
     0},
    {"BatchMatMulV2", "x: T, y: T -> output: T",
     "T: {bfloat16, half, float, double, int16, int32, int64, uint8, uint16, uint32, uint64, complex64, complex128}; "
     "adj_x: bool = false; adj_y: bool = false; grad_x: bool = false; grad_y: bool = false",
     0},
    {"BatchMatMulV3", "x: Ta, y: Tb -> output: Tout",
     "Ta: {bfloat16, half, float, double, uint8, int8, int16, int32, int64, complex64, complex128}; Tb: {bfloat16, "
     "half, float, double, uint8, int8, int16, int32, int64, complex64, complex128}; Tout: {bfloat16, half, float, "
     "double, int16, int32, int64, complex64, complex128}; adj_x: bool = false; adj_y: bool = false; grad_x: bool = "
     "false; grad_y: bool = false",
     0},
    {"SparseMatMul", "a: Ta, b: Tb -> product: float",
     "transpose_a: bool = false; transpose_b: bool = false; a_is_sparse: bool = false; b_is_sparse: bool = false; "
     "Ta: {float, bfloat16} = float; Tb: {float, bfloat16} = float",
     0},
    {0},
};

Error *matmul_init(const Node *node, void *state) {
    MatMulState *st = state;
    Error *err = node_attr_bool(node, "transpose_a", &st->transpose_a);
    if (!err) err = node_attr_bool(node, "transpose_b", &st->transpose_b);
    return err;
}
static Error *batch_init(const Node *node, void *state) {
    MatMulState *st = state;
    Error *err = node_attr_bool(node, "adj_x", &st->transpose_a);
    if (!err) err = node_attr_bool(node, "adj_y", &st->transpose_b);
    return err;
}
GemmFn *gemm_of(DataType t) {
    static GemmFn *const table[DT_COUNT] = {
        [DT_HALF] = gemm_f16,         [DT_BFLOAT16] = gemm_bf16, [DT_FLOAT] = gemm_f32,
        [DT_DOUBLE] = gemm_f64,       [DT_INT8] = gemm_plain_i8, [DT_INT16] = gemm_plain_i16, [DT_UINT8] = gemm_plain_u8, [DT_UINT16] = gemm_plain_u16,
        [DT_INT32] = gemm_u32,        [DT_INT64] = gemm_u64,     [DT_UINT32] = gemm_u32,       [DT_UINT64] = gemm_u64,       COMPLEX_TYPES(gemm),
    };
    return t < DT_COUNT ? table[t] : NULL;
}

bool matmul_sizes(const MatMulState *st, const Shape *a, const Shape *b, Gemm *g) {
    int64_t a_rows = a->dims[a->rank - 2], a_cols = a->dims[a->rank - 1];
    int64_t b_rows = b->dims[b->rank - 2], b_cols = b->dims[b->rank - 1];
    memset(g, 0, sizeof *g);
    g->a_transposed = st->transpose_a;
    g->b_transposed = st->transpose_b;
    g->m = st->transpose_a ? a_cols : a_rows;
    g->k = st->transpose_a ? a_rows : a_cols;
    g->n = st->transpose_b ? b_rows : b_cols;
    return g->k == (st->transpose_b ? b_cols : b_rows);
}

static Error *matrix_product(KernelContext *k, Gemm *g, Tensor **out) {
    const MatMulState *st = k->state;
    const Tensor *a = k->in[0], *b = k->in[1];
    *out = NULL;
    if (a->shape.rank != b->shape.rank) {
        return error_invalid("In[0] and In[1] has different ndims: %s vs. %s", shape_text(&a->shape).text,
                             shape_text(&b->shape).text);
    }
    if (a->shape.rank != 2) return error_invalid("In[0] and In[1] ndims must be == 2: %d", a->shape.rank);
    if (!matmul_sizes(st, &a->shape, &b->shape, g)) {
        return error_invalid("Matrix size-incompatible: In[0]: %s, In[1]: %s", shape_text(&a->shape).text,
                             shape_text(&b->shape).text);
    }
    Shape shape = shape_matrix(g->m, g->n);
    *out = kernel_output(k, 0, &shape);
    if (!*out) return NULL;
    g->a = a->data;
    g->b = b->data;
    g->c = (*out)->data;
    return NULL;
}

static Error *matmul_run(KernelContext *k) {
    Gemm g;
    Tensor *z;
    GemmFn *gemm = gemm_of(k->in[0]->dtype);
    Error *err = matrix_product(k, &g, &z);
    if (err || !z) return err;
    g.done = kernel_tail(k, z);
    gemm(&g, k->pool);
    return NULL;
}

/* SparseMatMul: values that happen to be zero are not worth a format; computed as a dense float product. */
static Error *sparse_matmul_run(KernelContext *k) {
    const MatMulState *st = k->state;
    Tensor *wide[2] = {NULL, NULL};
    Gemm g;
    Error *err = NULL;
    for (int i = 0; i < 2; i++) {
        if (k->in[i]->shape.rank != 2) return error_invalid("%s is not a matrix", i == 0 ? "a" : "b");
    }
    if (!matmul_sizes(st, &k->in[0]->shape, &k->in[1]->shape, &g)) {
        return error_invalid("Matrix size incompatible: a: %s, b: %s", shape_text(&k->in[0]->shape).text,
                             shape_text(&k->in[1]->shape).text);
    }
    Shape shape = shape_matrix(g.m, g.n);
    Tensor *z = kernel_output(k, 0, &shape);
    if (!z) return NULL;
    for (int i = 0; i < 2; i++) {
        wide[i] = tensor_ref(k->in[i]);
        if (k->in[i]->dtype != DT_BFLOAT16) continue;
        tensor_unref(wide[i]);
        wide[i] = kernel_scratch(k, DT_FLOAT, &k->in[i]->shape);
        if (!wide[i]) goto out;
        const uint16_t *from = k->in[i]->data;
        for (int64_t j = 0; j < wide[i]->count; j++) tensor_f32(wide[i])[j] = bfloat16_to_float(from[j]);
    }
    g.a = wide[0]->data;
    g.b = wide[1]->data;
    g.c = z->data;
    gemm_f32(&g, k->pool);
out:
    tensor_unref(wide[0]);
    tensor_unref(wide[1]);
    return err;
}

/* ---- Batches ---- */

typedef struct BatchJob {
    Gemm g;
    GemmFn *gemm;
    size_t size;
    const char *a, *b;
    char *c;
    const BroadcastPlan *plan;
    ThreadPool *pool; /* inside one product, when there are few */
    RangeCall done;   /* of the whole result */
} BatchJob;

typedef struct ProductDone {
    RangeCall call;
    int64_t first; /* element of the product */
} ProductDone;
static void product_done(void *arg, int64_t begin, int64_t end) {
    const ProductDone *p = arg;
    range_call(p->call, p->first + begin, p->first + end);
}

static void batch_row(void *arg, int64_t out_at, const int64_t *in_at, const int64_t *step, int64_t n) {
    const BatchJob *job = arg;
    for (int64_t i = 0; i < n; i++) {
        Gemm g = job->g;
        g.a = job->a + (size_t)((in_at[0] + step[0] * i) * g.m * g.k) * job->size;
        g.b = job->b + (size_t)((in_at[1] + step[1] * i) * g.k * g.n) * job->size;
        g.c = job->c + (size_t)((out_at + i) * g.m * g.n) * job->size;
        ProductDone done = {job->done, (out_at + i) * g.m * g.n};
        if (job->done.fn) g.done = (RangeCall){product_done, &done};
        job->gemm(&g, job->pool);
    }
}
static void batch_range(void *arg, int64_t begin, int64_t end) {
    const BatchJob *job = arg;
    broadcast_walk(job->plan, begin, end, batch_row, arg);
}

static Error *batch_check_ranks(const Shape *a, const Shape *b) {
    if (a->rank < 2) return error_invalid("In[0] ndims must be >= 2: %d", a->rank);
    if (b->rank < 2) return error_invalid("In[1] ndims must be >= 2: %d", b->rank);
    return NULL;
}

static Error *batch_product(KernelContext *k, Tensor *a, Tensor *b) {
    const MatMulState *st = k->state;
    BroadcastInput inputs[2] = {{a->shape.rank - 2, a->shape.dims}, {b->shape.rank - 2, b->shape.dims}};
    BroadcastPlan plan;
    BatchJob job = {.gemm = gemm_of(a->dtype), .size = dtype_size(a->dtype), .a = a->data, .b = b->data, .plan = &plan};
    if (!broadcast_plan_init(&plan, inputs, 2)) {
        return error_invalid("In[0] and In[1] must have compatible batch dimensions: %s vs. %s",
                             shape_text(&a->shape).text, shape_text(&b->shape).text);
    }
    if (!matmul_sizes(st, &a->shape, &b->shape, &job.g)) {
        return error_invalid("Matrix size-incompatible: In[0]: %s, In[1]: %s", shape_text(&a->shape).text,
                             shape_text(&b->shape).text);
    }
    job.g.a_conjugated = st->transpose_a;
    job.g.b_conjugated = st->transpose_b;
    Shape shape = shape_of(plan.out_rank, plan.out_dims);
    shape_insert_dim(&shape, shape.rank, job.g.m);
    shape_insert_dim(&shape, shape.rank, job.g.n);
    Tensor *z = kernel_output(k, 0, &shape);
    if (!z || z->count == 0) return NULL;
    job.c = z->data;
    job.done = kernel_tail(k, z);
    int64_t work = job.g.m * job.g.n * (job.g.k > 0 ? job.g.k : 1);
    bool inside = plan.count < 4 && work > (1 << 20);
    job.pool = inside ? k->pool : NULL;
    threadpool_parallel_for(inside ? NULL : k->pool, plan.count, (1 << 18) / work + 1, batch_range, &job);
    return NULL;
}

static Error *batch_v2_run(KernelContext *k) {
    Error *err = batch_check_ranks(&k->in[0]->shape, &k->in[1]->shape);
    return err ? err : batch_product(k, k->in[0], k->in[1]);
}

static Error *batch_v1_run(KernelContext *k) {
    const Shape *a = &k->in[0]->shape, *b = &k->in[1]->shape;
    if (a->rank != b->rank) {
        return error_invalid("In[0] and In[1] has different ndims: %s vs. %s", shape_text(a).text, shape_text(b).text);
    }
    Error *err = batch_check_ranks(a, b);
    if (err) return err;
    for (int d = 0; d < a->rank - 2; d++) {
        if (a->dims[d] != b->dims[d]) {
            return error_invalid("In[0].dim(%d) and In[1].dim(%d) must be the same: %s vs %s", d, d, shape_text(a).text,
                                 shape_text(b).text);
        }
    }
    return batch_product(k, k->in[0], k->in[1]);
}

/* Integers of other types are widened to the type of the result first. */
static Tensor *widened(KernelContext *k, Tensor *x, DataType to) {
    if (x->dtype == to) return tensor_ref(x);
    Tensor *t = kernel_scratch(k, to, &x->shape);
    for (int64_t i = 0; t && i < x->count; i++) {
        if (to == DT_BFLOAT16)
            ((uint16_t *)t->data)[i] = float_to_bfloat16((float)index_at(x, i));
        else
            index_put(t, i, index_at(x, i));
    }
    return t;
}

static Error *batch_v3_run(KernelContext *k) {
    DataType to = kernel_output_type(k, 0);
    Error *err = batch_check_ranks(&k->in[0]->shape, &k->in[1]->shape);
    if (err) return err;
    bool same = k->in[0]->dtype == to && k->in[1]->dtype == to;
    bool bytes = to == DT_BFLOAT16; /* with bytes on the other side */
    for (int i = 0; i < 2; i++) bytes &= k->in[i]->dtype == to || k->in[i]->dtype == DT_INT8 || k->in[i]->dtype == DT_UINT8;
    if (!same && !bytes && to != DT_INT32 && to != DT_INT64) {
        return error_unimplemented("BatchMatMulV3 of %s and %s to %s", dtype_name(k->in[0]->dtype),
                                   dtype_name(k->in[1]->dtype), dtype_name(to));
    }
    for (int i = 0; i < 2 && !same && !bytes; i++) {
        err = require_integers(k->in[i], "BatchMatMulV3");
        if (err) return err;
    }
    Tensor *a = widened(k, k->in[0], to), *b = a ? widened(k, k->in[1], to) : NULL;
    if (b) err = batch_product(k, a, b);
    tensor_unref(a);
    tensor_unref(b);
    return err;
}

#define SAME(run)                                                                                                      \
    [DT_HALF] = run, [DT_BFLOAT16] = run, [DT_FLOAT] = run, [DT_DOUBLE] = run, [DT_INT16] = run, [DT_INT32] = run,     \
    [DT_INT64] = run, [DT_UINT8] = run, [DT_UINT16] = run, [DT_UINT32] = run, [DT_UINT64] = run, [DT_COMPLEX64] = run, \
    [DT_COMPLEX128] = run
#define STATE(f) .state_size = sizeof(MatMulState), .init = f, .flags = KERNEL_EXPENSIVE | KERNEL_TAIL

const KernelDef matmul_cpu[] = {
    {"MatMul", .by_type = {SAME(matmul_run)}, STATE(matmul_init)},
    {"BatchMatMul", .by_type = {SAME(batch_v1_run)}, STATE(batch_init)},
    {"BatchMatMulV2", .by_type = {SAME(batch_v2_run)}, STATE(batch_init)},
    {"BatchMatMulV3", .by_type = {SAME(batch_v3_run)}, .type_attr = "Tout", STATE(batch_init)},
    {"SparseMatMul", .run = sparse_matmul_run, .state_size = sizeof(MatMulState), .init = matmul_init, .flags = KERNEL_EXPENSIVE},
    {0},
};
