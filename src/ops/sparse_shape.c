/* sparse_shape.c: sparse tensors reordered, reshaped, joined, split and sliced. */
#include <stdlib.h>

#include "base/memory.h"
#include "ops/op_list.h"
#include "ops/sparse_tensor.h"

const OpDef sparse_shape_ops[] = {
    {"SparseReorder",
     "input_indices: int64, input_values: T, input_shape: int64 -> output_indices: int64, output_values: T", "T: type",
     0},
    {"SparseReshape",
     "input_indices: int64, input_shape: int64, new_shape: int64 -> output_indices: int64, output_shape: int64", "", 0},
    {"SparseConcat",
     "indices: N * int64, values: N * T, shapes: N * int64 -> output_indices: int64, output_values: T, "
     "output_shape: int64",
     "concat_dim: int; N: int >= 2; T: type", 0},
    {"SparseSplit",
     "split_dim: int64, indices: int64, values: T, shape: int64 -> output_indices: num_split * int64, "
     "output_values: num_split * T, output_shape: num_split * int64",
     "num_split: int >= 1; T: type", 0},
    {"SparseSlice",
     "indices: int64, values: T, shape: int64, start: int64, size: int64 -> output_indices: int64, output_values: "
     "T, output_shape: int64",
     "T: type", 0},
    {"SparseSliceGrad",
     "backprop_val_grad: T, input_indices: int64, input_start: int64, output_indices: int64 -> val_grad: T",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}",
     0},
    {0},
};

static Error *run_reorder(KernelContext *k) {
    SparseView v;
    Error *err = sparse_check_ranks(k->in[0], k->in[1], k->in[2]);
    if (!err) err = sparse_view("Input", k->in[0], k->in[1], k->in[2], &v);
    if (err) return err;
    int rank = v.shape.rank;
    Tensor *indices = kernel_output(k, 0, &k->in[0]->shape),
           *values = indices ? kernel_output(k, 1, &k->in[1]->shape) : NULL;
    if (!values) return NULL;
    int64_t *order = sparse_order(v.indices, v.nnz, rank, NULL, 0);
    for (int64_t i = 0; i < v.nnz; i++) {
        memcpy(tensor_i64(indices) + i * rank, v.indices + order[i] * rank, (size_t)rank * sizeof(int64_t));
        elements_copy(values->dtype, element_to(values, i), element_at(v.values, order[i]), 1);
    }
    free(order);
    return NULL;
}

/* ---- SparseReshape ---- */

static Error *infer_shape(const Shape *from, int64_t count, const Tensor *wanted, Shape *out) {
    int unknown = -1;
    int64_t known = 1;
    *out = (Shape){.rank = (int)wanted->count};
    for (int d = 0; d < out->rank; d++) {
        int64_t size = tensor_i64(wanted)[d];
        out->dims[d] = size;
        if (size == -1) {
            if (unknown >= 0)
                return error_invalid("only one output dimension may be -1, not both %d and %d", unknown, d);
            unknown = d;
            out->dims[d] = 1;
        } else if (size < 0) {
            return error_invalid("size %d must be non-negative, not %lld", d, (long long)size);
        } else if (__builtin_mul_overflow(known, size, &known)) {
            return error_invalid("The requested shape of SparseReshape has too many elements");
        }
    }
    if (unknown >= 0) {
        if (known == 0)
            return error_invalid(
                "reshape cannot infer the missing input size for an empty tensor unless all specified "
                "input sizes are non-zero");
        if (count % known)
            return error_invalid(
                "Input to reshape is a SparseTensor with %lld dense values, but the requested shape requires "
                "a multiple of %lld. input_shape=%s output_shape=%s",
                (long long)count, (long long)known, shape_text(from).text, shape_text(out).text);
        out->dims[unknown] = count / known;
        known = count;
    }
    if (known != count)
        return error_invalid(
            "Input to reshape is a tensor with %lld dense values, but the requested shape has %lld. "
            "input_shape=%s output_shape=%s",
            (long long)count, (long long)known, shape_text(from).text, shape_text(out).text);
    return NULL;
}

static Error *run_reshape(KernelContext *k) {
    SparseView v;
    Shape shape = {0};
    int64_t count = 0;
    if (k->in[2]->shape.rank != 1)
        return error_invalid("Target shape should be a vector but received shape %s",
                             shape_text(&k->in[2]->shape).text);
    if (k->in[2]->count > SHAPE_MAX_RANK) return error_invalid("Target shape has too many dimensions");
    if (k->in[0]->shape.rank != 2) return error_invalid("Input must be a matrix.");
    if (k->in[1]->shape.rank != 1) return error_invalid("Input shape must be a vector.");
    if (sparse_ranks_differ(k->in[0], k->in[1])) return error_invalid("Input tensor rank must match input shape length.");
    Error *err = sparse_view("Input", k->in[0], NULL, k->in[1], &v);
    if (!err) err = sparse_shape_count(&v.shape, &count);
    if (!err) err = infer_shape(&v.shape, count, k->in[2], &shape);
    if (!err && count > 0) err = sparse_check_inside(&v);
    if (!err && count == 0 && v.nnz > 0 && !shape_eq(&v.shape, &shape))
        err = error_invalid("Input tensor has %lld non zero elements but input shape (%s) or output shape (%s) is empty", (long long)v.nnz, shape_text(&v.shape).text, shape_text(&shape).text);
    if (err) return err;
    Shape matrix = shape_matrix(v.nnz, shape.rank), vector = shape_vector(shape.rank);
    Tensor *indices = kernel_output(k, 0, &matrix), *dims = indices ? kernel_output(k, 1, &vector) : NULL;
    if (!dims) return NULL;
    sparse_put_shape(dims, &shape);
    if (shape_eq(&v.shape, &shape)) {
        memcpy(indices->data, v.indices, tensor_bytes(indices));
        return NULL;
    }
    for (int64_t i = 0; i < v.nnz; i++) {
        int64_t flat = 0;
        for (int d = 0; d < v.shape.rank; d++) flat = flat * v.shape.dims[d] + v.indices[i * v.shape.rank + d];
        for (int d = shape.rank - 1; d >= 0; d--) {
            tensor_i64(indices)[i * shape.rank + d] = flat % shape.dims[d];
            flat /= shape.dims[d];
        }
    }
    return NULL;
}

/* ---- SparseConcat, SparseSplit ---- */

typedef struct ConcatState {
    int64_t axis, count;
} ConcatState;

static Error *concat_init(const Node *node, void *state) {
    ConcatState *s = state;
    Error *err = node_attr_int(node, "concat_dim", &s->axis);
    return err ? err : node_attr_int(node, "N", &s->count);
}

/* The ranks of input i of n, in words that say where it stands. */
static Error *concat_check(KernelContext *k, int n, int i) {
    const Tensor *shape = k->in[2 * n + i], *first = k->in[2 * n];
    Error *err = sparse_check_at(k->in[i], k->in[n + i], shape, i);
    if (err) return err;
    if (first->count != shape->count)
        return error_invalid("Ranks of all input tensors must match: expected %lld but got %lld at position %d", (long long)first->count, (long long)shape->count, i);
    return NULL;
}

static Error *concat_views(KernelContext *k, SparseView *views, Shape *shape, int *axis, int64_t *nnz) {
    const ConcatState *s = k->state;
    int n = (int)s->count;
    for (int i = 0; i < n; i++) {
        Error *err = concat_check(k, n, i);
        if (!err) err = sparse_view("Input", k->in[i], k->in[n + i], k->in[2 * n + i], &views[i]);
        if (!err) err = sparse_check_inside(&views[i]);
        if (err) return err;
        int rank = views[0].shape.rank;
        if (i == 0) {
            *shape = views[0].shape;
            *nnz = views[0].nnz;
            *axis = (int)(s->axis < 0 ? s->axis + rank : s->axis);
            if (s->axis < -rank || s->axis >= rank)
                return error_invalid("Concat dimension must be in range [%d, %d), got %lld", -rank, rank,
                                     (long long)s->axis);
            continue;
        }
        for (int d = 0; d < rank; d++) {
            if (d != *axis && views[i].shape.dims[d] != shape->dims[d])
                return error_invalid(
                    "Input shapes must match: expected %lld for dimension %d but got %lld at position %d",
                    (long long)shape->dims[d], d, (long long)views[i].shape.dims[d], i);
        }
        if (__builtin_add_overflow(shape->dims[*axis], views[i].shape.dims[*axis], &shape->dims[*axis]))
            return error_invalid("The concatenated dimension is too large");
        *nnz += views[i].nnz;
    }
    return NULL;
}

static Error *run_concat(KernelContext *k) {
    int n = (int)((const ConcatState *)k->state)->count, axis = 0;
    SparseView *views = xcalloc((size_t)n, sizeof *views);
    Shape shape = {0};
    int64_t nnz = 0, at = 0, offset = 0;
    SparseOut out;
    Error *err = concat_views(k, views, &shape, &axis, &nnz);
    if (err || !sparse_output(k, 0, nnz, &shape, &out)) goto out;
    int rank = shape.rank;
    int64_t *rows = xmalloc((size_t)(nnz * rank + 1) * sizeof *rows);
    const char **from = xmalloc((size_t)(nnz + 1) * sizeof *from);
    for (int i = 0; i < n; i++) {
        for (int64_t j = 0; j < views[i].nnz; j++, at++) {
            memcpy(rows + at * rank, views[i].indices + j * rank, (size_t)rank * sizeof *rows);
            rows[at * rank + axis] += offset;
            from[at] = element_at(views[i].values, j);
        }
        offset += views[i].shape.dims[axis];
    }
    int64_t *order = sparse_order(rows, nnz, rank, NULL, 0);
    for (int64_t i = 0; i < nnz; i++) {
        memcpy(tensor_i64(out.indices) + i * rank, rows + order[i] * rank, (size_t)rank * sizeof *rows);
        elements_copy(out.values->dtype, element_to(out.values, i), from[order[i]], 1);
    }
    free(order);
    free(from);
    free(rows);
out:
    free(views);
    return err;
}

/* Elements [start, start + size) of every dimension, as a tensor of their own in outputs i, i + step, i + 2 * step. */
static void put_slice(KernelContext *k, const SparseView *v, const Shape *start, const Shape *size, int i, int step) {
    int rank = v->shape.rank;
    int64_t n = 0, *picked = xmalloc((size_t)(v->nnz + 1) * sizeof *picked);
    for (int64_t r = 0; r < v->nnz; r++) {
        bool inside = true;
        for (int d = 0; d < rank && inside; d++) {
            int64_t at = v->indices[r * rank + d];
            int64_t far = INT64_MAX;
            inside = at >= start->dims[d] && !__builtin_sub_overflow(at, start->dims[d], &far) && far < size->dims[d];
        }
        if (inside) picked[n++] = r;
    }
    Shape matrix = shape_matrix(n, rank), vector = shape_vector(n), dims = shape_vector(rank);
    Tensor *indices = kernel_output(k, i, &matrix), *values = indices ? kernel_output(k, i + step, &vector) : NULL;
    Tensor *shape = values ? kernel_output(k, i + 2 * step, &dims) : NULL;
    if (shape) sparse_put_shape(shape, size);
    for (int64_t r = 0; shape && r < n; r++) {
        for (int d = 0; d < rank; d++)
            tensor_i64(indices)[r * rank + d] = v->indices[picked[r] * rank + d] - start->dims[d];
        elements_copy(values->dtype, element_to(values, r), element_at(v->values, picked[r]), 1);
    }
    free(picked);
}

typedef struct SplitState {
    int64_t count;
} SplitState;

static Error *split_init(const Node *node, void *state) {
    return node_attr_int(node, "num_split", &((SplitState *)state)->count);
}

/* When the dimension does not divide evenly the first pieces get one more. */
static Error *run_split(KernelContext *k) {
    int64_t n = ((const SplitState *)k->state)->count, axis = 0;
    SparseView v;
    if (k->in[0]->shape.rank != 0) return error_invalid("Input axis should be a scalar but received shape %s", shape_text(&k->in[0]->shape).text);
    Error *err = element_scalar_int(k, 0, "split_dim", &axis);
    if (!err) err = sparse_check_sizes(k->in[1], k->in[2], k->in[3]);
    if (!err) err = sparse_view("Input", k->in[1], k->in[2], k->in[3], &v);
    if (err) return err;
    int rank = v.shape.rank;
    if (axis < -rank || axis >= rank)
        return error_invalid("Input axis should be in range [%d, %d), got %lld", -rank, rank, (long long)axis);
    if (axis < 0) axis += rank;
    int64_t dim = v.shape.dims[axis];
    if (n < 1 || n > dim)
        return error_invalid("Input num_split should be between 1 and the splitting dimension size (%lld), got %lld",
                             (long long)dim, (long long)n);
    err = sparse_check_tuples(&v);
    if (err) return err;
    Shape start = {.rank = rank}, size = v.shape;
    for (int64_t i = 0; i < n && !k->error; i++) {
        size.dims[axis] = dim / n + (i < dim % n);
        put_slice(k, &v, &start, &size, (int)i, (int)n);
        start.dims[axis] += size.dims[axis];
    }
    return NULL;
}

/* ---- SparseSlice ---- */

static Error *slice_bounds(const Tensor *t, const char *what, bool may_be_negative, int rank, Shape *out) {
    if (t->shape.rank != 1)
        return error_invalid("Input %s should be a vector but received shape %s", what, shape_text(&t->shape).text);
    if (t->count != rank)
        return error_invalid("Expected %s to be a vector of length %d but got length %lld", what, rank,
                             (long long)t->count);
    *out = (Shape){.rank = rank};
    for (int d = 0; d < rank; d++) {
        out->dims[d] = index_at(t, d);
        if (out->dims[d] < 0 && !may_be_negative) return error_invalid("Expected a non-negative size, got %lld", (long long)out->dims[d]);
    }
    return NULL;
}

static Error *run_slice(KernelContext *k) {
    SparseView v;
    Shape start = {0}, size = {0};
    Error *err = sparse_check_ranks(k->in[0], k->in[1], k->in[2]);
    if (!err) err = sparse_view("Input", k->in[0], k->in[1], k->in[2], &v);
    if (!err) err = slice_bounds(k->in[3], "start", true, v.shape.rank, &start);
    if (!err) err = slice_bounds(k->in[4], "size", false, v.shape.rank, &size);
    if (err) return err;
    for (int d = 0; d < v.shape.rank; d++) {
        int64_t rest = 0; /* a start before the first element is taken as it is */
        if (v.shape.dims[d] > start.dims[d] && __builtin_sub_overflow(v.shape.dims[d], start.dims[d], &rest)) rest = INT64_MAX;
        if (size.dims[d] > rest) size.dims[d] = rest;
    }
    put_slice(k, &v, &start, &size, 0, 1);
    return NULL;
}

static Error *run_slice_grad(KernelContext *k) {
    const Tensor *grad = k->in[0], *indices = k->in[1], *start = k->in[2], *out_indices = k->in[3];
    if (indices->shape.rank != 2 || out_indices->shape.rank != 2)
        return error_invalid("Input and output indices should be matrices but received shapes: %s and %s",
                             shape_text(&indices->shape).text, shape_text(&out_indices->shape).text);
    int64_t rank = indices->shape.dims[1], n = indices->shape.dims[0], sliced = out_indices->shape.dims[0], j = 0;
    if (out_indices->shape.dims[1] != rank)
        return error_invalid("The input and output should have the same ndims: got: %lld and %lld", (long long)rank,
                             (long long)out_indices->shape.dims[1]);
    if (grad->shape.rank != 1) return error_invalid("Input backprop_val_grad should be a vector but received shape: %s", shape_text(&grad->shape).text);
    if (grad->count != sliced)
        return error_invalid(
            "# elements of backprop_val_grad and # rows of output_indices should match (#nnz of sum): got %lld "
            "and %lld",
            (long long)grad->count, (long long)sliced);
    if (start->shape.rank == 1 && start->count != rank)
        return error_invalid("Expected input_start to be a vector of length %lld but got length %lld", (long long)rank, (long long)start->count);
    if (start->shape.rank != 1)
        return error_invalid("The input_start should be a vector but received shape %s", shape_text(&start->shape).text);
    if (sliced > n)
        return error_invalid("# rows of output_indices should be not greater than of input_indices, got %lld and %lld", (long long)sliced, (long long)n);
    Shape vector = shape_vector(n);
    Tensor *out = kernel_output(k, 0, &vector);
    if (!out) return NULL;
    memset(out->data, 0, tensor_bytes(out));
    for (int64_t i = 0; i < n && j < sliced; i++) {
        bool same = true;
        for (int64_t d = 0; d < rank && same; d++)
            same = (uint64_t)tensor_i64(indices)[i * rank + d] - (uint64_t)tensor_i64(start)[d] == (uint64_t)tensor_i64(out_indices)[j * rank + d];
        if (same) memcpy(element_to(out, i), element_at(grad, j++), dtype_size(grad->dtype));
    }
    if (j < sliced)
        return error_new(CODE_INTERNAL,
                         "Elements of backprop_val_grad aren't all propagated. Num elements:%lld, used: %lld",
                         (long long)sliced, (long long)j);
    return NULL;
}

const KernelDef sparse_shape_cpu[] = {
    {"SparseReorder", .run = run_reorder},
    {"SparseReshape", .run = run_reshape},
    {"SparseConcat", .run = run_concat, .state_size = sizeof(ConcatState), .init = concat_init},
    {"SparseSplit", .run = run_split, .state_size = sizeof(SplitState), .init = split_init},
    {"SparseSlice", .run = run_slice},
    {"SparseSliceGrad", .run = run_slice_grad},
    {0},
};
