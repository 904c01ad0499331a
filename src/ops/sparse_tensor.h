/* sparse_tensor.h: SparseView, a sparse tensor given as indices, values and shape; how such tensors are checked and
 * ordered. */
#pragma once
#include "ops/elements.h"
#include "tensor/tensor_proto.h"

extern const VariantDecoder tensor_variant_decoder; /* of the parts of serialised sparse tensors */

/* Borrowed from the inputs of a kernel. Row i of `indices` (nnz x rank, int64) is where values[i] lies. */
typedef struct SparseView {
    const Tensor *indices_tensor, *values;
    const int64_t *indices;
    int64_t nnz;
    Shape shape; /* dimensions are not negative; their product may be more than int64_t holds */
} SparseView;

/* `what` begins the messages: "Input indices should be a matrix but received shape [3]". values may be NULL. */
Error *sparse_view(const char *what, const Tensor *indices, const Tensor *values, const Tensor *shape,
                   SparseView *out) MUST_CHECK;
/* Whether they are a matrix and a vector of different lengths; a matrix and a shape of different ranks: ops say so in their own words. */
bool sparse_counts_differ(const Tensor *indices, const Tensor *values);
bool sparse_ranks_differ(const Tensor *indices, const Tensor *shape);
/* Both, in the words of the ops that check their sparse tensors most. */
Error *sparse_check_sizes(const Tensor *indices, const Tensor *values, const Tensor *shape) MUST_CHECK;
/* The same after the ranks of all three. */
Error *sparse_check_ranks(const Tensor *indices, const Tensor *values, const Tensor *shape) MUST_CHECK;
/* Ranks and numbers of rows, as TensorFlow says it where it makes a sparse tensor of the parts. */
Error *sparse_check_made(const Tensor *indices, const Tensor *values) MUST_CHECK;
/* Ranks, in the words of ops that name their inputs `name`_indices and so on. */
Error *sparse_check_named(const char *name, const Tensor *indices, const Tensor *values, const Tensor *shape) MUST_CHECK;
/* Ranks of input number `at` of several. */
Error *sparse_check_at(const Tensor *indices, const Tensor *values, const Tensor *shape, int at) MUST_CHECK;
/* Every index, of int64, lies in the shape; in the words of the same ops. */
Error *sparse_check_tuples(const SparseView *s) MUST_CHECK;
/* A shape given as an int32 or int64 vector, for a sparse tensor. */
Error *sparse_shape_of(const Tensor *vector, Shape *out) MUST_CHECK;
/* Every index lies in the shape; with `ordered` they also ascend, none twice. */
Error *sparse_check_indices(const SparseView *s, bool ordered) MUST_CHECK;
Error *sparse_check_inside(const SparseView *s) MUST_CHECK; /* as above, not ordered */
Error *sparse_shape_count(const Shape *s,
                          int64_t *out) MUST_CHECK; /* elements of the dense tensor; overflow is an error */

/* -1, 0, 1: how row a of one list of indices stands to row b of another, in row-major order. */
static inline int sparse_compare(const int64_t *a, const int64_t *b, int rank) {
    for (int d = 0; d < rank; d++) {
        if (a[d] != b[d]) return a[d] < b[d] ? -1 : 1;
    }
    return 0;
}
/* Positions of the rows in row-major order of the chosen columns (all of them when columns is NULL), equal ones as they
 * stand; malloced. */
int64_t *sparse_order(const int64_t *indices, int64_t nnz, int rank, const int *columns, int column_count);

/* The three outputs of a sparse tensor, from output `first` on; false when one could not be made (see k->error). */
typedef struct SparseOut {
    Tensor *indices, *values, *shape;
} SparseOut;
bool sparse_output(KernelContext *k, int first, int64_t nnz, const Shape *shape, SparseOut *out);
void sparse_put_shape(Tensor *to, const Shape *shape);

static inline const char *element_at(const Tensor *t, int64_t i) {
    return (const char *)t->data + (size_t)i * dtype_size(t->dtype);
}
static inline char *element_to(Tensor *t, int64_t i) {
    return (char *)t->data + (size_t)i * dtype_size(t->dtype);
}

/* A vector of three variants that hold these tensors: a sparse tensor as datasets pass it on. */
Error *sparse_variant(Tensor *indices, Tensor *values, Tensor *shape, Tensor **out) MUST_CHECK;
