/* csr.c: gradients of sparse matrices by compressed rows: matrices with the entries of what they are of. */
#include "gradients/rule.h"

/* Indices, values and shape of the matrix. */
static Node *entries_of(Builder *b, Output matrix, DataType type) {
    b_with_type(b, "type", type);
    return b_node(b, "CSRSparseMatrixToSparseTensor", &matrix, 1);
}

/* A matrix with these values in the places of others. */
static Output with_values(Builder *b, Node *entries, Output values) {
    return b_op3(b, "SparseTensorToCSRSparseMatrix", output_of(entries, 0), values, output_of(entries, 2));
}

static Output to_dense(Builder *b, Output matrix, DataType type) {
    b_with_type(b, "type", type);
    return b_op1(b, "CSRSparseMatrixToDense", matrix);
}

static void from_dense_grad(Builder *b, Rule *r) {
    rule_set(r, 0, to_dense(b, rule_dy(r, 0), rule_type(b, r, "T")));
}

static void to_dense_grad(Builder *b, Rule *r) {
    Node *entries = entries_of(b, rule_in(r, 0), rule_type(b, r, "type"));
    rule_set(r, 0, with_values(b, entries, b_op2(b, "GatherNd", rule_dy(r, 0), output_of(entries, 0))));
}

static void from_sparse_grad(Builder *b, Rule *r) {
    rule_set(r, 1, output_of(entries_of(b, rule_dy(r, 0), rule_type(b, r, "T")), 1));
}

static void to_sparse_grad(Builder *b, Rule *r) {
    rule_set(r, 0, b_op3(b, "SparseTensorToCSRSparseMatrix", rule_out(r, 0), rule_dy(r, 1), rule_out(r, 2)));
}

static Output transposed(Builder *b, Output matrix, DataType type, bool conjugate) {
    b_with_type(b, "type", type);
    b_with_bool(b, "conjugate", conjugate);
    return b_op1(b, "SparseMatrixTranspose", matrix);
}

static void transpose_grad(Builder *b, Rule *r) {
    rule_set(r, 0, transposed(b, rule_dy(r, 0), rule_type(b, r, "type"), rule_bool(b, r, "conjugate")));
}

/* ---- Products: z = f(a) g(b), where f and g leave a matrix as it is, transpose it, or transpose and conjugate it ---- */

typedef struct Turn {
    bool transposed, adjoint;
} Turn;

static Turn turn_of(Builder *b, Rule *r, const char *transpose, const char *adjoint) {
    return (Turn){rule_bool(b, r, transpose), rule_bool(b, r, adjoint)};
}

/* The sum over j of dz[p,j] conj(y[q,j]) for each entry (p, q) of the first matrix. */
static Output entry_products(Builder *b, Output indices, Output dz, Output y, bool swapped) {
    Output perm = b_i32s(b, 2, (int[]){1, 0}), sides = b_transpose(b, indices, perm), rank = b_item(b, b_shape(b, indices), 1);
    Output last = b_expand(b, b_shift(b, rank, -1), 0);
    Output rows = b_transpose(b, b_gather(b, sides, b_range(b, b_i32(b, 0), b_shift(b, rank, -1))), perm);
    Output without_row = b_concat2(b, b_range(b, b_i32(b, 0), b_shift(b, rank, -2)), last, 0);
    Output columns = b_transpose(b, b_gather(b, sides, without_row), perm);
    Output left = b_op2(b, "GatherNd", dz, swapped ? columns : rows), right = b_op2(b, "GatherNd", y, swapped ? rows : columns);
    return b_sum(b, b_mul(b, left, b_conj(b, right)), b_i32(b, 1), false);
}

static void product_grad(Builder *b, Rule *r) {
    const DataType type = rule_type(b, r, "T");
    const Turn f = turn_of(b, r, "transpose_a", "adjoint_a"), g = turn_of(b, r, "transpose_b", "adjoint_b");
    Output a = rule_in(r, 0), y = rule_in(r, 1), dz = rule_dy(r, 0);
    if (rule_bool(b, r, "conjugate_output")) dz = b_conj(b, dz);
    if (rule_bool(b, r, "transpose_output")) dz = b_swap_last(b, dz, false);
    if (rule_wants(r, 0)) {
        Node *entries = entries_of(b, a, type);
        if (!entries) return;
        Output turned = g.transposed || g.adjoint ? b_swap_last(b, y, g.adjoint) : y;
        Output values = entry_products(b, output_of(entries, 0), dz, turned, f.transposed || f.adjoint);
        rule_set(r, 0, with_values(b, entries, f.adjoint ? b_conj(b, values) : values));
    }
    if (!rule_wants(r, 1)) return;
    /* f(a)^H dz; the conjugate of a alone is that of its product with the conjugate. */
    Output right = f.transposed ? b_conj(b, dz) : dz;
    b_with_bool(b, "adjoint_a", !f.transposed && !f.adjoint);
    Output dy = b_op2(b, "SparseMatrixMatMul", a, right);
    if (f.transposed) dy = b_conj(b, dy);
    rule_set(r, 1, g.transposed || g.adjoint ? b_swap_last(b, dy, g.adjoint) : dy);
}

/* x^H for the matrix that is turned already, times dz; or dz times it. */
static Output times_adjoint(Builder *b, Output x, Turn turn, Output dz, bool x_first, DataType type) {
    if (turn.transposed) x = b_op1(b, "Conj", x);
    b_with_type(b, "type", type);
    b_with_bool(b, x_first ? "adjoint_a" : "adjoint_b", !turn.transposed && !turn.adjoint);
    return x_first ? b_op2(b, "SparseMatrixSparseMatMul", x, dz) : b_op2(b, "SparseMatrixSparseMatMul", dz, x);
}

/* Only the entries that the operand has. */
static void set_pruned(Builder *b, Rule *r, int i, Output d, Turn turn, DataType type) {
    if (turn.transposed || turn.adjoint) d = transposed(b, d, type, turn.adjoint);
    Node *entries = entries_of(b, rule_in(r, i), type);
    if (entries) rule_set(r, i, with_values(b, entries, b_op2(b, "GatherNd", to_dense(b, d, type), output_of(entries, 0))));
}

static void sparse_product_grad(Builder *b, Rule *r) {
    const DataType type = rule_type(b, r, "type");
    const Turn f = turn_of(b, r, "transpose_a", "adjoint_a"), g = turn_of(b, r, "transpose_b", "adjoint_b");
    Output dz = rule_dy(r, 0);
    if (rule_wants(r, 0)) set_pruned(b, r, 0, times_adjoint(b, rule_in(r, 1), g, dz, false, type), f, type);
    if (rule_wants(r, 1)) set_pruned(b, r, 1, times_adjoint(b, rule_in(r, 0), f, dz, true, type), g, type);
}

const GradientDef csr_gradients[] = {
    {"CSRSparseMatrixToDense", to_dense_grad},
    {"CSRSparseMatrixToSparseTensor", to_sparse_grad},
    {"DenseToCSRSparseMatrix", from_dense_grad},
    {"SparseMatrixMatMul", product_grad},
    {"SparseMatrixSparseMatMul", sparse_product_grad},
    {"SparseMatrixTranspose", transpose_grad},
    {"SparseTensorToCSRSparseMatrix", from_sparse_grad},
    {0},
};
