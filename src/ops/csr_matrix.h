/* csr_matrix.h: CsrMatrix, a sparse matrix, or a batch of them, by compressed rows; it travels as a variant. */
#pragma once
#include "runtime/kernel.h"
#include "tensor/tensor_proto.h"

/* Immutable. Of matrix b, entries [batches[b], batches[b + 1]) of cols and values are its own; row r has those from rows[b * (row_count + 1) + r] up to the
 * next one, counted from its first. */
typedef struct CsrMatrix {
    RefCount refs;
    DataType dtype;
    Tensor *shape;   /* int64, 2 or 3 of them */
    Tensor *batches; /* int32 as the rest: one more than matrices */
    Tensor *rows, *cols, *values;
} CsrMatrix;

extern const VariantDecoder csr_matrix_decoder;

static inline int csr_rank(const CsrMatrix *m) { return (int)m->shape->count; }
static inline int64_t csr_batch_count(const CsrMatrix *m) { return m->batches->count - 1; }
static inline int64_t csr_row_count(const CsrMatrix *m) { return tensor_i64(m->shape)[m->shape->count - 2]; }
static inline int64_t csr_col_count(const CsrMatrix *m) { return tensor_i64(m->shape)[m->shape->count - 1]; }

/* One matrix of a batch, borrowed. */
typedef struct CsrView {
    int64_t row_count, col_count, nnz;
    const int32_t *rows, *cols;
    const void *values;
} CsrView;
CsrView csr_view(const CsrMatrix *m, int64_t batch);

/* With memory for `nnz` entries in all, of `shape` (2 or 3 dimensions); batches and rows are 0. InvalidArgument when sizes do not fit into int32. */
Error *csr_new(DataType dtype, const Shape *shape, int64_t nnz, CsrMatrix **out) MUST_CHECK;
void csr_unref(CsrMatrix *m);
Error *csr_check(const CsrMatrix *m) MUST_CHECK; /* every pointer and index lies where it may */

/* The matrix in input i; InvalidArgument when there is none, or one of another type than `dtype` (DT_INVALID: any). Borrowed. */
Error *kernel_csr(KernelContext *k, int i, DataType dtype, const CsrMatrix **out) MUST_CHECK;
void kernel_set_csr(KernelContext *k, int o, CsrMatrix *take); /* makes it output o */
