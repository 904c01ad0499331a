/* linalg_shapes.c: rules of linear algebra, Fourier transforms and diagonals; most take [..., rows, columns]. */
#include <stdlib.h>

#include "shapes/rule_list.h"

/* [..., m, n] -> values [..., min(m, n)] and vectors, as attributes say. */
static int64_t smaller(int64_t m, int64_t n) {
    if (m == 0 || n == 0) return 0;
    return m < 0 || n < 0 ? DIM_UNKNOWN : m < n ? m : n;
}

static PartialShape with_matrix(ShapeContext *c, PartialShape outer, int64_t rows, int64_t cols) {
    return ctx_concat(c, outer, shape_matrix(rows, cols));
}

static void cross(ShapeContext *c) {
    PartialShape s = SHAPE_UNKNOWN;
    for (int i = 0; i < 2; i++) {
        PartialShape x = ctx_rank_at_least(c, c->in[i], 1);
        ctx_dim_is(c, shape_dim(x, -1), 3);
        s = ctx_merge(c, s, x);
    }
    ctx_out(c, 0, s);
}

static void svd(ShapeContext *c) {
    PartialShape s = ctx_rank_at_least(c, c->in[0], 2), outer = ctx_sub(c, s, 0, s.rank < 0 ? 0 : s.rank - 2);
    int64_t m = shape_dim(s, -2), n = shape_dim(s, -1), p = smaller(m, n);
    ctx_out(c, 0, ctx_concat(c, outer, shape_vector(p)));
    bool full = ctx_attr_bool(c, "full_matrices");
    if (ctx_attr_bool(c, "compute_uv")) {
        ctx_out(c, 1, with_matrix(c, outer, m, full ? m : p));
        ctx_out(c, 2, with_matrix(c, outer, n, full ? n : p));
    } else {
        ctx_out(c, 1, shape_vector(0));
        ctx_out(c, 2, shape_vector(0));
    }
}

static void qr(ShapeContext *c) {
    PartialShape s = ctx_rank_at_least(c, c->in[0], 2), outer = ctx_sub(c, s, 0, s.rank < 0 ? 0 : s.rank - 2);
    int64_t m = shape_dim(s, -2), n = shape_dim(s, -1), p = smaller(m, n);
    bool full = ctx_attr_bool(c, "full_matrices");
    ctx_out(c, 0, with_matrix(c, outer, m, full ? m : p));
    ctx_out(c, 1, full ? s : with_matrix(c, outer, p, n));
}

static void eigen(ShapeContext *c) {
    PartialShape s = ctx_rank_at_least(c, c->in[0], 2), outer = ctx_sub(c, s, 0, s.rank < 0 ? 0 : s.rank - 2);
    int64_t n = ctx_merge_dim(c, shape_dim(s, -2), shape_dim(s, -1));
    ctx_out(c, 0, ctx_concat(c, outer, shape_vector(n)));
    ctx_out(c, 1, ctx_attr_bool(c, "compute_v") ? with_matrix(c, outer, n, n) : shape_vector(0));
}

static void self_adjoint_eig_v1(ShapeContext *c) {
    PartialShape s = ctx_rank_at_least(c, c->in[0], 2), outer = ctx_sub(c, s, 0, s.rank < 0 ? 0 : s.rank - 2);
    int64_t n = ctx_merge_dim(c, shape_dim(s, -2), shape_dim(s, -1));
    ctx_out(c, 0, with_matrix(c, outer, n < 0 ? DIM_UNKNOWN : n + 1, n));
}

/* Matrices and right-hand sides whose outer dimensions go together: merged, or broadcast. */
static void solve_of(ShapeContext *c, bool square, bool broadcasts) {
    PartialShape a = ctx_rank_at_least(c, c->in[0], 2), b = ctx_rank_at_least(c, c->in[1], 2);
    int64_t rows = shape_dim(a, -2), cols = shape_dim(a, -1);
    if (square) rows = cols = ctx_merge_dim(c, rows, cols);
    rows = ctx_merge_dim(c, rows, shape_dim(b, -2));
    if (square) cols = rows;
    PartialShape outer_a = ctx_sub(c, a, 0, a.rank < 0 ? 0 : a.rank - 2), outer_b = ctx_sub(c, b, 0, b.rank < 0 ? 0 : b.rank - 2);
    PartialShape outer = broadcasts ? ctx_broadcast(c, outer_a, outer_b) : ctx_merge(c, outer_a, outer_b);
    ctx_out(c, 0, with_matrix(c, outer, cols, shape_dim(b, -1)));
}

static void solve(ShapeContext *c) {
    solve_of(c, true, false);
}

static void triangular_solve(ShapeContext *c) {
    solve_of(c, true, true);
}

static void banded_solve(ShapeContext *c) {
    PartialShape a = ctx_rank_at_least(c, c->in[0], 2), b = ctx_rank_at_least(c, c->in[1], 2);
    int64_t bands = shape_dim(a, -2), size = shape_dim(a, -1), rows = ctx_merge_dim(c, size, shape_dim(b, -2));
    if (bands == 0) ctx_fail(c, "Number of bands must be positive, but is 0");
    if (bands >= 0 && size >= 0 && bands > size)
        ctx_fail(c, "Number of bands %lld cannot exceed the size of the matrix %lld", (long long)bands, (long long)size);
    PartialShape outer_a = ctx_sub(c, a, 0, a.rank < 0 ? 0 : a.rank - 2), outer_b = ctx_sub(c, b, 0, b.rank < 0 ? 0 : b.rank - 2);
    ctx_out(c, 0, with_matrix(c, ctx_broadcast(c, outer_a, outer_b), rows, shape_dim(b, -1)));
}

/* TensorFlow says what the right side is and little else. */
static void tridiagonal_solve(ShapeContext *c) {
    PartialShape a = ctx_rank_at_least(c, c->in[0], 2), b = ctx_rank_at_least(c, c->in[1], 2);
    PartialShape outer_a = ctx_sub(c, a, 0, a.rank < 0 ? 0 : a.rank - 2), outer_b = ctx_sub(c, b, 0, b.rank < 0 ? 0 : b.rank - 2);
    ctx_merge(c, outer_a, outer_b);
    ctx_dim_is(c, shape_dim(a, -2), 3);
    ctx_merge_dim(c, shape_dim(a, -1), shape_dim(b, -2));
    ctx_out(c, 0, b);
}

/* The outer dimensions of the superdiagonal are not compared with those of the right side. */
static void tridiagonal_matmul(ShapeContext *c) {
    static const int pairs[][2] = {{0, 1}, {0, 2}, {1, 2}, {1, 3}, {2, 3}};
    PartialShape in[4], outer[4];
    int64_t rows = DIM_UNKNOWN;
    for (int i = 0; i < 4; i++) {
        in[i] = ctx_rank_at_least(c, c->in[i], 2);
        outer[i] = ctx_sub(c, in[i], 0, in[i].rank < 0 ? 0 : in[i].rank - 2);
        rows = ctx_merge_dim(c, rows, shape_dim(in[i], i < 3 ? -1 : -2));
        if (i < 3) ctx_dim_is(c, shape_dim(in[i], -2), 1);
    }
    for (int i = 0; i < 5; i++) ctx_merge(c, outer[pairs[i][0]], outer[pairs[i][1]]);
    ctx_out(c, 0, in[3]);
}

static void solve_ls(ShapeContext *c) {
    ctx_want_scalar(c, 2);
    solve_of(c, false, false);
}

/* Transforms of the last `dims` dimensions. */
static void fft_of(ShapeContext *c, int dims) {
    ctx_out(c, 0, ctx_rank_at_least(c, c->in[0], dims));
}

static void fft1(ShapeContext *c) { fft_of(c, 1); }
static void fft2(ShapeContext *c) { fft_of(c, 2); }
static void fft3(ShapeContext *c) { fft_of(c, 3); }

/* Of real numbers: fft_length says how long each dimension is; the last of the complex side is half. */
static void rfft_of(ShapeContext *c, int dims, bool forward) {
    PartialShape s = ctx_rank_at_least(c, c->in[0], dims), lengths = ctx_in_rank(c, 1, 1);
    ctx_dim_is(c, lengths.dims[0], dims);
    const Tensor *t = ctx_value(c, 1);
    if (s.rank < 0 || c->err) return;
    for (int i = 0; i < dims; i++) {
        int64_t *dim = &s.dims[s.rank - dims + i];
        int64_t n = t && t->dtype == DT_INT32 ? tensor_index(t, i) : DIM_UNKNOWN;
        if (forward && i == dims - 1 && t) n = n ? n / 2 + 1 : 0; /* of negative ones too, says TensorFlow */
        *dim = n < 0 ? DIM_UNKNOWN : n;
    }
    ctx_out(c, 0, s);
}

static void rfft1(ShapeContext *c) { rfft_of(c, 1, true); }
static void rfft2(ShapeContext *c) { rfft_of(c, 2, true); }
static void rfft3(ShapeContext *c) { rfft_of(c, 3, true); }
static void irfft1(ShapeContext *c) { rfft_of(c, 1, false); }
static void irfft2(ShapeContext *c) { rfft_of(c, 2, false); }
static void irfft3(ShapeContext *c) { rfft_of(c, 3, false); }

static void matrix_diag(ShapeContext *c) {
    PartialShape s = ctx_rank_at_least(c, c->in[0], 1);
    if (s.rank >= 0) ctx_out(c, 0, ctx_concat(c, s, shape_vector(shape_dim(s, -1))));
}

static void matrix_diag_part(ShapeContext *c) {
    PartialShape s = ctx_rank_at_least(c, c->in[0], 2);
    if (s.rank < 0) return;
    int64_t n = smaller(shape_dim(s, -2), shape_dim(s, -1));
    ctx_out(c, 0, ctx_concat(c, ctx_sub(c, s, 0, -2), shape_vector(n)));
}

static void matrix_set_diag(ShapeContext *c) {
    PartialShape s = ctx_rank_at_least(c, c->in[0], 2), diagonal = ctx_rank_at_least(c, c->in[1], 1), out = s;
    if (s.rank >= 0) {
        int64_t n = smaller(shape_dim(s, -2), shape_dim(s, -1));
        diagonal = ctx_rank(c, diagonal, s.rank - 1);
        ctx_merge_dim(c, shape_dim(diagonal, -1), n);
        if (!c->err && !shape_is_full(s)) out = ctx_concat(c, ctx_merge(c, ctx_sub(c, s, 0, -2), ctx_sub(c, diagonal, 0, -1)), ctx_sub(c, s, -2, SHAPE_END));
    } else if (diagonal.rank >= 0) {
        out = with_matrix(c, ctx_sub(c, diagonal, 0, -1), DIM_UNKNOWN, DIM_UNKNOWN);
    }
    ctx_out(c, 0, out);
}

/* The diagonals k of V2 and V3: a number or a pair; false when they are not known. */
static bool diagonals(ShapeContext *c, int i, int64_t *low, int64_t *high) {
    const Tensor *t = ctx_value(c, i);
    ctx_rank_at_most(c, c->in[i], 1);
    if (!t || c->err) return false;
    if (t->count < 1 || t->count > 2) {
        ctx_fail(c, "diag_index must be a vector with one or two elements. It has %lld elements.", (long long)t->count);
        return false;
    }
    *low = tensor_index(t, 0);
    *high = tensor_index(t, t->count - 1);
    if (*low > *high) ctx_fail(c, "lower_diag_index is greater than upper_diag_index");
    return !c->err;
}

/* Whether the diagonals lie in a matrix of that size, when it is known. */
static void check_diagonals(ShapeContext *c, int64_t low, int64_t high, int64_t rows, int64_t cols) {
    int64_t index[] = {low, high};
    for (int i = 0; i < 2 && rows >= 0 && cols >= 0; i++)
        if (index[i] != 0 && (index[i] <= -rows || index[i] >= cols)) ctx_fail(c, "%s_diag_index is out of bound.", i ? "upper" : "lower");
}

static int64_t longest_diagonal(int64_t low, int64_t high, int64_t rows, int64_t cols) {
    int64_t down = rows + (high < 0 ? high : 0), across = cols - (low > 0 ? low : 0);
    return down < across ? down : across;
}

static void matrix_diag_part_v2(ShapeContext *c) {
    PartialShape s = ctx_rank_at_least(c, c->in[0], 2);
    int64_t low, high, rows = shape_dim(s, -2), cols = shape_dim(s, -1);
    ctx_want_scalar(c, 2);
    ctx_rank_at_most(c, c->in[1], 1);
    if (s.rank < 0 || !diagonals(c, 1, &low, &high)) return;
    check_diagonals(c, low, high, rows, cols);
    PartialShape out = ctx_sub(c, s, 0, -2);
    if (low < high) out = ctx_concat(c, out, shape_vector(high - low + 1));
    int64_t length = rows < 0 || cols < 0 ? DIM_UNKNOWN : longest_diagonal(low, high, rows, cols);
    ctx_out(c, 0, ctx_concat(c, out, shape_vector(length)));
}

static void matrix_diag_v2(ShapeContext *c) {
    PartialShape s = ctx_rank_at_least(c, c->in[0], 1);
    int64_t low, high, rows, cols;
    ctx_rank_at_most(c, c->in[1], 1);
    for (int i = 2; i < 5; i++) ctx_want_scalar(c, i);
    if (s.rank < 0 || !diagonals(c, 1, &low, &high)) return;
    if (low < high) {
        ctx_rank_at_least(c, s, 2);
        int64_t count = shape_dim(s, -2);
        if (count >= 0 && count != high - low + 1)
            ctx_fail(c, "The number of rows of `diagonal` doesn't match the number of diagonals implied from `d_lower` and `d_upper`.");
    }
    if (c->err) return;
    bool has_rows = ctx_int(c, 2, &rows), has_cols = ctx_int(c, 3, &cols);
    if (shape_dim(s, -1) > INT32_MAX) return; /* no such matrix fits anywhere */
    int64_t length = shape_dim(s, -1), least_rows = length - (high < 0 ? high : 0), least_cols = length + (low > 0 ? low : 0);
    if (!has_rows) rows = -1;
    if (!has_cols) cols = -1;
    /* An unknown length counts as -1, as it does in TensorFlow. */
    if (rows == -1 && cols == -1) {
        rows = cols = least_rows > least_cols ? least_rows : least_cols;
    } else if (rows == -1) {
        rows = least_rows;
    } else if (cols == -1) {
        cols = least_cols;
    }
    if (rows < least_rows) ctx_fail(c, "num_rows is too small");
    if (cols < least_cols) ctx_fail(c, "num_cols is too small.");
    if (rows != least_rows && cols != least_cols)
        ctx_fail(c, "num_rows and num_cols are not consistent with lower_diag_index, upper_diag_index, and the length of the given diagonals.");
    if (rows < 0) rows = DIM_UNKNOWN;
    if (cols < 0) cols = DIM_UNKNOWN;
    PartialShape outer = ctx_sub(c, s, 0, low < high ? -2 : -1);
    ctx_out(c, 0, with_matrix(c, outer, rows, cols));
}

static void matrix_set_diag_v2(ShapeContext *c) {
    PartialShape s = ctx_rank_at_least(c, c->in[0], 2), diagonal = ctx_rank_at_least(c, c->in[1], 1), out = s;
    int64_t low = 0, high = 0;
    bool known = diagonals(c, 2, &low, &high);
    if (known && s.rank >= 0) {
        check_diagonals(c, low, high, shape_dim(s, -2), shape_dim(s, -1));
        diagonal = ctx_rank(c, diagonal, low == high ? s.rank - 1 : s.rank);
    } else if (s.rank >= 0) {
        diagonal = ctx_rank_at_most(c, ctx_rank_at_least(c, diagonal, s.rank - 1), s.rank);
    }
    if (!c->err && diagonal.rank >= 0 && !shape_is_full(s))
        out = ctx_merge(c, s, with_matrix(c, ctx_sub(c, diagonal, 0, low == high || s.rank >= 0 ? -1 : -2), DIM_UNKNOWN, DIM_UNKNOWN));
    ctx_out(c, 0, out);
}

const ShapeRow linalg_rules[] = {
    {"BandedTriangularSolve", banded_solve, 0},
    {"BatchCholesky", rule_unknown, 0},
    {"BatchCholeskyGrad", rule_unknown, 0},
    {"BatchMatrixDeterminant", rule_unknown, 0},
    {"BatchMatrixInverse", rule_unknown, 0},
    {"BatchMatrixSolve", rule_unknown, 0},
    {"BatchMatrixSolveLs", rule_unknown, 0},
    {"BatchMatrixTriangularSolve", rule_unknown, 0},
    {"BatchSelfAdjointEig", rule_unknown, 0},
    {"BatchSelfAdjointEigV2", rule_unknown, 0},
    {"BatchSvd", rule_unknown, 0},
    {"Cholesky", 0, "[S...,n,n] -> [S...,n,n]"},
    {"CholeskyGrad", 0, "[S...,n,n] * -> [S...,n,n]"},
    {"Cross", cross, 0},
    {"Eig", eigen, 0},
    {"FFT", fft1, 0},
    {"FFT2D", fft2, 0},
    {"FFT3D", fft3, 0},
    {"IFFT", fft1, 0},
    {"IFFT2D", fft2, 0},
    {"IFFT3D", fft3, 0},
    {"IRFFT", irfft1, 0},
    {"IRFFT2D", irfft2, 0},
    {"IRFFT3D", irfft3, 0},
    {"LogMatrixDeterminant", 0, "[S...,n,n] -> S S"},
    {"Lu", 0, "[S...,n,n] -> [S...,n,n] [S...,n]"},
    {"BatchMatrixBandPart", rule_unknown, 0},
    {"BatchMatrixDiag", rule_unknown, 0},
    {"BatchMatrixDiagPart", rule_unknown, 0},
    {"BatchMatrixSetDiag", rule_unknown, 0},
    {"MatrixBandPart", rule_same, 0},
    {"MatrixDeterminant", 0, "[S...,n,n] -> S"},
    {"MatrixDiag", matrix_diag, 0},
    {"MatrixDiagPart", matrix_diag_part, 0},
    {"MatrixDiagPartV2", matrix_diag_part_v2, 0},
    {"MatrixDiagPartV3", matrix_diag_part_v2, 0},
    {"MatrixDiagV2", matrix_diag_v2, 0},
    {"MatrixDiagV3", matrix_diag_v2, 0},
    {"MatrixInverse", 0, "[S...,n,n] -> [S...,n,n]"},
    {"MatrixLogarithm", 0, "[S...,n,n] -> [S...,n,n]"},
    {"MatrixSetDiag", matrix_set_diag, 0},
    {"MatrixSetDiagV2", matrix_set_diag_v2, 0},
    {"MatrixSetDiagV3", matrix_set_diag_v2, 0},
    {"MatrixSolve", solve, 0},
    {"MatrixSolveLs", solve_ls, 0},
    {"MatrixSquareRoot", 0, "[S...,n,n] -> [S...,n,n]"},
    {"MatrixTriangularSolve", triangular_solve, 0},
    {"Qr", qr, 0},
    {"RFFT", rfft1, 0},
    {"RFFT2D", rfft2, 0},
    {"RFFT3D", rfft3, 0},
    {"SelfAdjointEig", self_adjoint_eig_v1, 0},
    {"SelfAdjointEigV2", eigen, 0},
    {"Svd", svd, 0},
    {"TridiagonalMatMul", tridiagonal_matmul, 0},
    {"TridiagonalSolve", tridiagonal_solve, 0},
    {0},
};
