/* csr_shapes.c: rules of sparse matrices by compressed rows; what is known of a matrix travels with its variant. */
#include "shapes/rule_list.h"

/* The shape of the matrix in input i, which must be known to have 2 or 3 dimensions. */
static PartialShape matrix_of(ShapeContext *c, int i) {
    ctx_want_scalar(c, i);
    if (!c->in_handles[i].is_known) {
        ctx_fail(c, "Unable to access shape and type info from variant input %d", i);
        return SHAPE_UNKNOWN;
    }
    PartialShape s = ctx_rank_at_most(c, ctx_rank_at_least(c, c->in_handles[i].shape, 2), 3);
    if (s.rank < 0) ctx_fail(c, "The matrix of input %d has an unknown rank.", i);
    return s;
}

static void set_matrix(ShapeContext *c, PartialShape s, DataType dtype) {
    ctx_out(c, 0, SHAPE_SCALAR);
    c->out_handles[0] = (HandleShape){true, dtype, s};
}

static void want_matrix_rank(ShapeContext *c, PartialShape s) {
    if (s.rank < 2 || s.rank > 3) ctx_fail(c, "Invalid rank: %d.  Expected a known rank of either 2 or 3.", s.rank);
}

static void from_sparse(ShapeContext *c) {
    PartialShape indices = ctx_in_rank(c, 0, 2), values = ctx_in_rank(c, 1, 1), dims = ctx_in_rank(c, 2, 1);
    ctx_merge_dim(c, indices.dims[0], values.dims[0]);
    ctx_merge_dim(c, indices.dims[1], dims.dims[0]);
    PartialShape s = ctx_shape_of(c, 2);
    if (s.rank < 0 && indices.dims[1] >= 0 && indices.dims[1] <= SHAPE_MAX_RANK) s = shape_unknown_dims((int)indices.dims[1]);
    want_matrix_rank(c, s);
    set_matrix(c, s, ctx_attr_type(c, "T"));
}

static void from_dense(ShapeContext *c) {
    want_matrix_rank(c, c->in[0]);
    if (c->in[1].rank != 2) ctx_fail(c, "indices must be a matrix; but its rank is not 2: %d", c->in[1].rank);
    else if (c->in[1].dims[1] != c->in[0].rank)
        ctx_fail(c, "indices.shape[1] must match rank of dense; saw: %lld vs. %d", (long long)c->in[1].dims[1], c->in[0].rank);
    set_matrix(c, c->in[0], ctx_attr_type(c, "T"));
}

static void to_dense(ShapeContext *c) {
    ctx_out(c, 0, matrix_of(c, 0));
}

static void to_sparse(ShapeContext *c) {
    int rank = matrix_of(c, 0).rank;
    ctx_out(c, 0, shape_matrix(DIM_UNKNOWN, rank));
    ctx_out(c, 1, shape_vector(DIM_UNKNOWN));
    ctx_out(c, 2, shape_vector(rank));
}

static void components(ShapeContext *c) {
    PartialShape s = matrix_of(c, 0);
    if (c->in[1].rank != 0) ctx_fail(c, "index must be a scalar.");
    ctx_out(c, 0, shape_vector(ctx_dim_add(c, shape_dim(s, -2), 1)));
    ctx_out(c, 1, shape_vector(DIM_UNKNOWN));
    ctx_out(c, 2, shape_vector(DIM_UNKNOWN));
}

static void nnz(ShapeContext *c) {
    PartialShape s = matrix_of(c, 0);
    ctx_out(c, 0, s.rank == 3 ? shape_vector(s.dims[0]) : SHAPE_SCALAR);
}

static bool turned(ShapeContext *c, const char *transpose, const char *adjoint) {
    bool t = ctx_attr_bool(c, transpose), a = ctx_attr_bool(c, adjoint);
    if (t && a) ctx_fail(c, "Only one of %s and %s may be true.", adjoint, transpose);
    return t || a;
}

/* Of a product of two matrices or batches of them; batches of one are repeated where they may be. */
static PartialShape product(ShapeContext *c, PartialShape a, PartialShape b, bool repeats) {
    bool ta = turned(c, "transpose_a", "adjoint_a"), tb = turned(c, "transpose_b", "adjoint_b");
    PartialShape batch_a = ctx_sub(c, a, 0, a.rank < 0 ? 0 : a.rank - 2), batch_b = b.rank < 0 ? SHAPE_UNKNOWN : ctx_sub(c, b, 0, b.rank - 2);
    PartialShape batch = repeats ? ctx_broadcast(c, batch_a, batch_b) : ctx_merge(c, batch_a, batch_b);
    ctx_merge_dim(c, shape_dim(a, ta ? -2 : -1), shape_dim(b, tb ? -1 : -2));
    return ctx_concat(c, batch, shape_matrix(shape_dim(a, ta ? -1 : -2), shape_dim(b, tb ? -2 : -1)));
}

static void dense_product(ShapeContext *c) {
    PartialShape a = matrix_of(c, 0), b = ctx_rank_at_most(c, ctx_rank_at_least(c, c->in[1], 2), 3), z = product(c, a, b, false);
    if (z.rank >= 2 && ctx_attr_bool(c, "transpose_output")) {
        int64_t rows = z.dims[z.rank - 2];
        z.dims[z.rank - 2] = z.dims[z.rank - 1];
        z.dims[z.rank - 1] = rows;
    }
    ctx_out(c, 0, z);
}

static void sparse_product(ShapeContext *c) {
    PartialShape a = matrix_of(c, 0), b = matrix_of(c, 1);
    set_matrix(c, product(c, a, b, true), c->in_handles[1].dtype);
}

static void transpose(ShapeContext *c) {
    PartialShape s = matrix_of(c, 0), z = s;
    if (s.rank >= 2) {
        z.dims[s.rank - 1] = s.dims[s.rank - 2];
        z.dims[s.rank - 2] = s.dims[s.rank - 1];
    }
    set_matrix(c, z, c->in_handles[0].dtype);
}

static void cholesky(ShapeContext *c) {
    PartialShape s = matrix_of(c, 0), order = ctx_rank_at_most(c, ctx_rank_at_least(c, c->in[1], 1), 2);
    if (order.rank < 0) ctx_fail(c, "permutation has an unknown rank.");
    int64_t n = ctx_merge_dim(c, shape_dim(s, -2), shape_dim(s, -1));
    ctx_merge_dim(c, n, shape_dim(order, -1));
    set_matrix(c, s, c->in_handles[0].dtype);
}

static void ordering(ShapeContext *c) {
    PartialShape s = matrix_of(c, 0);
    int64_t n = ctx_merge_dim(c, shape_dim(s, -2), shape_dim(s, -1));
    if (s.rank == 2) ctx_out(c, 0, (PartialShape){.rank = 1, .dims = {n}});
    if (s.rank == 3) ctx_out(c, 0, (PartialShape){.rank = 2, .dims = {s.dims[0], n}});
}

const ShapeRow csr_rules[] = {
    {"SparseMatrixOrderingAMD", ordering, 0},
    {"CSRSparseMatrixComponents", components, 0},
    {"CSRSparseMatrixToDense", to_dense, 0},
    {"CSRSparseMatrixToSparseTensor", to_sparse, 0},
    {"DenseToCSRSparseMatrix", from_dense, 0},
    {"SparseMatrixMatMul", dense_product, 0},
    {"SparseMatrixNNZ", nnz, 0},
    {"SparseMatrixSparseCholesky", cholesky, 0},
    {"SparseMatrixSparseMatMul", sparse_product, 0},
    {"SparseMatrixTranspose", transpose, 0},
    {"SparseTensorToCSRSparseMatrix", from_sparse, 0},
    {0},
};
