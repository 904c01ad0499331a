/* sparse_math.c: sums and extremes of two sparse tensors or along axes of one; softmax of its rows. */
#include <math.h>
#include <stdlib.h>

#include "base/float16.h"
#include "base/memory.h"
#include "ops/elementwise.h"
#include "ops/op_list.h"
#include "ops/sparse_merge.h"

const OpDef sparse_math_ops[] = {
    {"SparseAdd",
     "a_indices: int64, a_values: T, a_shape: int64, b_indices: int64, b_values: T, b_shape: int64, thresh: Treal "
     "-> sum_indices: int64, sum_values: T, sum_shape: int64",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; Treal: {float, double, int32, uint8, int16, int8, "
     "int64, bfloat16, uint16, half, uint32, uint64}",
     0},
    {"SparseAddGrad",
     "backprop_val_grad: T, a_indices: int64, b_indices: int64, sum_indices: int64 -> a_val_grad: T, b_val_grad: T",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}",
     0},
    {"SparseSparseMaximum",
     "a_indices: int64, a_values: T, a_shape: int64, b_indices: int64, b_values: T, b_shape: int64 -> "
     "output_indices: int64, output_values: T",
     "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}", 0},
    {"SparseSparseMinimum",
     "a_indices: int64, a_values: T, a_shape: int64, b_indices: int64, b_values: T, b_shape: int64 -> "
     "output_indices: int64, output_values: T",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}",
     0},
    {"SparseReduceSum", "input_indices: int64, input_values: T, input_shape: int64, reduction_axes: int32 -> output: T",
     "keep_dims: bool = false; T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, "
     "qint32, bfloat16, qint16, quint16, uint16, complex128, half, uint32, uint64}",
     0},
    {"SparseReduceMax", "input_indices: int64, input_values: T, input_shape: int64, reduction_axes: int32 -> output: T",
     "keep_dims: bool = false; T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, "
     "uint32, uint64}",
     0},
    {"SparseReduceSumSparse",
     "input_indices: int64, input_values: T, input_shape: int64, reduction_axes: int32 -> output_indices: int64, "
     "output_values: T, output_shape: int64",
     "keep_dims: bool = false; T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, "
     "qint32, bfloat16, qint16, quint16, uint16, complex128, half, uint32, uint64}",
     0},
    {"SparseReduceMaxSparse",
     "input_indices: int64, input_values: T, input_shape: int64, reduction_axes: int32 -> output_indices: int64, "
     "output_values: T, output_shape: int64",
     "keep_dims: bool = false; T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, "
     "uint32, uint64}",
     0},
    {"SparseSoftmax", "sp_indices: int64, sp_values: T, sp_shape: int64 -> output: T", "T: {half, float, double}", 0},
    {0},
};

/* ---- Two tensors, merged ---- */

/* The dimensions of a shape, "2 3". */
static void put_dims(StrBuf *text, const Tensor *shape) {
    for (int64_t i = 0; i < shape->count; i++) strbuf_addf(text, "%s%lld", i ? " " : "", (long long)index_at(shape, i));
}

static Error *check_shapes(const Tensor *a, const Tensor *b) {
    if (a->count != b->count) {
        StrBuf text = {0};
        put_dims(&text, a);
        strbuf_add(&text, STR(" and "));
        put_dims(&text, b);
        Error *err = error_invalid("Operands do not have the same ranks; got shapes: %.*s", STR_ARG(strbuf_str(&text)));
        strbuf_clear(&text);
        return err;
    }
    for (int64_t d = 0; d < a->count; d++) {
        if (index_at(a, d) != index_at(b, d))
            return error_invalid("Operands' shapes do not match: got %lld and %lld for dimension %lld", (long long)index_at(a, d), (long long)index_at(b, d), (long long)d);
    }
    return NULL;
}

/* SparseAdd has words of its own for tensors that do not fit. */
static Error *check_sum(KernelContext *k) {
    const Tensor *a = k->in[0], *b = k->in[3];
    const Tensor *a_shape = k->in[2], *b_shape = k->in[5];
    if (a->shape.rank != 2 || b->shape.rank != 2)
        return error_invalid("Input indices should be matrices but received shapes: %s and %s", shape_text(&a->shape).text, shape_text(&b->shape).text);
    if (k->in[1]->shape.rank != 1 || k->in[4]->shape.rank != 1)
        return error_invalid("Input values should be vectors but received shapes: %s and %s", shape_text(&k->in[1]->shape).text, shape_text(&k->in[4]->shape).text);
    if (sparse_counts_differ(a, k->in[1]) || sparse_counts_differ(b, k->in[4]))
        return error_invalid("Expected %lld and %lld non-empty input values, got %lld and %lld", (long long)a->shape.dims[0], (long long)b->shape.dims[0], (long long)k->in[1]->count,
                             (long long)k->in[4]->count);
    if (a->shape.dims[1] != b->shape.dims[1])
        return error_invalid("Input indices must have the same dimension, got %lld and %lld", (long long)a->shape.dims[1], (long long)b->shape.dims[1]);
    if (a_shape->shape.rank != 1 || b_shape->shape.rank != 1)
        return error_invalid("Input shapes should be a vector but received shapes %s and %s", shape_text(&a_shape->shape).text, shape_text(&b_shape->shape).text);
    if (a_shape->count != a->shape.dims[1])
        return error_invalid("Second dimension of a_indices and length of a_shape must match, got %lld and %lld", (long long)a->shape.dims[1], (long long)a_shape->count);
    return check_shapes(a_shape, b_shape);
}

static Error *check_operands(KernelContext *k) {
    Error *err = sparse_check_ranks(k->in[0], k->in[1], k->in[2]);
    if (!err) err = sparse_check_ranks(k->in[3], k->in[4], k->in[5]);
    return err ? err : check_shapes(k->in[2], k->in[5]);
}

static Error *two_views(KernelContext *k, SparseView *a, SparseView *b) {
    Error *err = str_is(k->node->op, "SparseAdd") ? check_sum(k) : check_operands(k);
    if (!err) err = sparse_view("Input a_", k->in[0], k->in[1], k->in[2], a);
    return err ? err : sparse_view("Input b_", k->in[3], k->in[4], k->in[5], b);
}

static double magnitude(const Tensor *t, const char *v) {
    switch (t->dtype) {
        case DT_FLOAT:
            return fabs((double)*(const float *)v);
        case DT_DOUBLE:
            return fabs(*(const double *)v);
        case DT_COMPLEX64:
            return hypot((double)((const float *)v)[0], (double)((const float *)v)[1]);
        case DT_COMPLEX128:
            return hypot(((const double *)v)[0], ((const double *)v)[1]);
        default: {
            Tensor one = *t;
            one.data = (void *)v;
            return fabs((double)index_at(&one, 0));
        }
    }
}

/* No magnitude is smaller, and none is NaN. */
static bool all_reach(const Tensor *t, const char *values, int64_t n, double threshold) {
    bool small = false;
    if (t->dtype == DT_FLOAT) {
        const float *v = (const float *)values;
        for (int64_t i = 0; i < n; i++) small |= !((double)fabsf(v[i]) >= threshold);
        return !small;
    }
    for (int64_t i = 0; i < n && !small; i++) small = !(magnitude(t, values + (size_t)i * dtype_size(t->dtype)) >= threshold);
    return !small;
}

/* Of the sizes that numbers have, without a call. */
static inline void copy_number(char *to, const char *from, size_t size) {
    if (size == 4)
        memcpy(to, from, 4);
    else if (size == 8)
        memcpy(to, from, 8);
    else
        memcpy(to, from, size);
}

/* The values at `places`, one after the other, from `values` on. */
static void put_sums(const SparseRuns *places, const RowMath *math, const Tensor *a, const Tensor *b, char *values) {
    const size_t size = dtype_size(a->dtype);
    for (int64_t i = 0; i < places->count; i++) {
        const SparseRun run = places->runs[i];
        const char *from = run.a >= 0 ? element_at(a, run.a) : element_at(b, run.b);
        if (run.count == 1)
            copy_number(values, from, size);
        else
            memcpy(values, from, (size_t)run.count * size);
        if (run.a >= 0 && run.b >= 0) math->add(values, element_at(b, run.b), run.count);
        values += (size_t)run.count * size;
    }
}

/* Drops places with too small values, and moves the other values together: only sums are dropped. */
static void drop_small(SparseRuns *places, const Tensor *sums, double threshold) {
    const size_t size = dtype_size(sums->dtype);
    const char *from = sums->data;
    bool whole = true;
    for (int64_t i = 0; i < places->count && whole; i++) {
        const SparseRun run = places->runs[i];
        if (run.a >= 0 && run.b >= 0) whole = all_reach(sums, from, run.count, threshold);
        from += (size_t)run.count * size;
    }
    if (whole) return;
    SparseRuns kept = {0};
    from = sums->data;
    for (int64_t i = 0; i < places->count; i++) {
        const SparseRun run = places->runs[i];
        const bool is_sum = run.a >= 0 && run.b >= 0;
        for (int64_t at = 0; at < run.count; at++, from += size) {
            if (is_sum && !(magnitude(sums, from) >= threshold)) continue;
            memmove((char *)sums->data + (size_t)kept.places * size, from, size);
            sparse_runs_add(&kept, (SparseRun){run.a >= 0 ? run.a + at : -1, run.b >= 0 ? run.b + at : -1, 1});
        }
    }
    free(places->runs);
    *places = kept;
}

static Error *run_add(KernelContext *k) {
    SparseView a, b;
    const RowMath *math = row_math(k->in[1]->dtype);
    Error *err = two_views(k, &a, &b);
    if (err) return err;
    if (!math) return kernel_lacks_type(k->node, k->in[1]->dtype);
    if (k->in[6]->shape.rank != 0)
        return error_invalid("The magnitude threshold must be a scalar: got shape %s",
                             shape_text(&k->in[6]->shape).text);
    double threshold = k->in[6]->dtype == DT_FLOAT    ? tensor_f32(k->in[6])[0]
                       : k->in[6]->dtype == DT_DOUBLE ? tensor_f64(k->in[6])[0]
                                                      : (double)index_at(k->in[6], 0);
    SparseRuns places = sparse_merge(&a, &b);
    Shape vector = shape_vector(places.places);
    Tensor *sums = kernel_scratch(k, a.values->dtype, &vector);
    if (sums) {
        put_sums(&places, math, a.values, b.values, sums->data);
        drop_small(&places, sums, threshold);
    }
    SparseOut out;
    if (sums && sparse_output(k, 0, places.places, &a.shape, &out)) {
        memcpy(out.values->data, sums->data, (size_t)places.places * dtype_size(sums->dtype));
        sparse_runs_put(&places, &a, &b, tensor_i64(out.indices));
    }
    tensor_unref(sums);
    free(places.runs);
    return NULL;
}

/* The gradient of each operand is that of the sum at the same place, zero where the sum was dropped. */
static void gather_gradient(const Tensor *grad, const Tensor *indices, const Tensor *sum_indices, Tensor *out) {
    int rank = (int)indices->shape.dims[1];
    int64_t n = indices->shape.dims[0], sums = sum_indices->shape.dims[0], j = 0;
    size_t size = dtype_size(grad->dtype);
    memset(out->data, 0, tensor_bytes(out));
    for (int64_t i = 0; i < n; i++) {
        const int64_t *at = tensor_i64(indices) + i * rank;
        while (j < sums && sparse_compare(tensor_i64(sum_indices) + j * rank, at, rank) < 0) j++;
        if (j < sums && sparse_compare(tensor_i64(sum_indices) + j * rank, at, rank) == 0)
            memcpy(element_to(out, i), element_at(grad, j), size);
    }
}

static Error *run_add_grad(KernelContext *k) {
    const Tensor *grad = k->in[0], *a = k->in[1], *b = k->in[2], *sum = k->in[3];
    if (a->shape.rank != 2 || b->shape.rank != 2 || sum->shape.rank != 2)
        return error_invalid(
            "Input indices should be matrices but received shapes: %s and %s and %s",
            shape_text(&a->shape).text, shape_text(&b->shape).text, shape_text(&sum->shape).text);
    if (grad->shape.rank != 1)
        return error_invalid("Input backprop_val_grad should be a vector but received shape: %s", shape_text(&grad->shape).text);
    if (grad->count != sum->shape.dims[0])
        return error_invalid(
            "# elements of backprop_val_grad and # rows of sum_indices should match (#nnz of sum): got %lld and %lld",
            (long long)grad->count, (long long)sum->shape.dims[0]);
    if (a->shape.dims[1] != b->shape.dims[1] || b->shape.dims[1] != sum->shape.dims[1])
        return error_invalid("The densified operands should have the same ndims; for A, B, sum got: %lld%lld%lld",
                             (long long)a->shape.dims[1], (long long)b->shape.dims[1], (long long)sum->shape.dims[1]);
    Shape na = shape_vector(a->shape.dims[0]), nb = shape_vector(b->shape.dims[0]);
    Tensor *to_a = kernel_output(k, 0, &na), *to_b = to_a ? kernel_output(k, 1, &nb) : NULL;
    if (!to_b) return NULL;
    gather_gradient(grad, a, sum, to_a);
    gather_gradient(grad, b, sum, to_b);
    return NULL;
}

/* Where one operand has nothing its value is zero. */
static Error *extreme(KernelContext *k, bool max) {
    SparseView a, b;
    const RowMath *math = row_math(k->in[1]->dtype);
    Error *err = two_views(k, &a, &b);
    if (!err) err = sparse_check_tuples(&a);
    if (!err) err = sparse_check_tuples(&b);
    if (err) return err;
    if (!math || !math->max)
        return kernel_lacks_type(k->node, k->in[1]->dtype);
    SparseRuns places = sparse_merge(&a, &b);
    RowFn *fn = max ? math->max : math->min;
    const size_t size = dtype_size(a.values->dtype);
    Shape matrix = shape_matrix(places.places, a.shape.rank), vector = shape_vector(places.places);
    Tensor *indices = kernel_output(k, 0, &matrix), *values = indices ? kernel_output(k, 1, &vector) : NULL;
    char *to = values ? values->data : NULL;
    for (int64_t i = 0; values && i < places.count; i++) {
        const SparseRun run = places.runs[i];
        for (int64_t at = 0; at < run.count; at++, to += size) {
            memcpy(to, run.a >= 0 ? element_at(a.values, run.a + at) : math->zero, size);
            fn(to, run.b >= 0 ? element_at(b.values, run.b + at) : math->zero, 1);
        }
    }
    if (values) sparse_runs_put(&places, &a, &b, tensor_i64(indices));
    free(places.runs);
    return NULL;
}

static Error *run_maximum(KernelContext *k) {
    return extreme(k, true);
}
static Error *run_minimum(KernelContext *k) {
    return extreme(k, false);
}

/* ---- Reductions ---- */

typedef struct ReduceState {
    bool keep_dims;
} ReduceState;

static Error *reduce_init(const Node *node, void *state) {
    return node_attr_bool(node, "keep_dims", &((ReduceState *)state)->keep_dims);
}

/* Which dimensions stay, and the shape of the result. */
typedef struct Reduction {
    SparseView v;
    int kept[SHAPE_MAX_RANK], kept_count;
    Shape kept_shape, out_shape;
    int64_t *order; /* rows with the same kept indices lie together */
    int64_t groups;
} Reduction;

static Error *reduction_plan(KernelContext *k, Reduction *r) {
    const Tensor *axes = k->in[3];
    bool drop[SHAPE_MAX_RANK] = {false}, keep_dims = ((const ReduceState *)k->state)->keep_dims;
    if (k->in[2]->shape.rank != 1) return error_invalid("Expected input_shape to be a vector; got shape: %s", shape_text(&k->in[2]->shape).text);
    if (axes->shape.rank > 1)
        return error_invalid("Expected reduction_axes to be a scalar or a vector; got shape: %s", shape_text(&axes->shape).text);
    int64_t given = k->in[2]->count;
    for (int64_t i = 0; i < axes->count; i++) {
        int64_t axis = index_at(axes, i);
        if (axis < -given || axis >= given)
            return error_invalid("Invalid reduction dimension %lld, for input with %lld dimensions.", (long long)axis, (long long)given);
        axis = axis < 0 ? axis + given : axis;
        if (axis < SHAPE_MAX_RANK) drop[axis] = true; /* higher ranks are refused below */
    }
    Error *err = sparse_check_made(k->in[0], k->in[1]);
    if (!err) err = sparse_view("Input", k->in[0], k->in[1], k->in[2], &r->v);
    if (!err) err = sparse_check_inside(&r->v);
    if (!err) err = shape_check(&r->v.shape);
    if (err) return err;
    int rank = r->v.shape.rank;
    for (int d = 0; d < rank; d++) {
        if (!drop[d]) {
            r->kept_shape.dims[r->kept_shape.rank++] = r->v.shape.dims[d];
            r->kept[r->kept_count++] = d;
        }
        if (!drop[d] || keep_dims) r->out_shape.dims[r->out_shape.rank++] = drop[d] ? 1 : r->v.shape.dims[d];
    }
    r->order = sparse_order(r->v.indices, r->v.nnz, rank, r->kept, r->kept_count);
    return NULL;
}

static bool same_group(const Reduction *r, int64_t i, int64_t j) {
    const int64_t *x = r->v.indices + r->order[i] * r->v.shape.rank, *y = r->v.indices + r->order[j] * r->v.shape.rank;
    for (int c = 0; c < r->kept_count; c++) {
        if (x[r->kept[c]] != y[r->kept[c]]) return false;
    }
    return true;
}

/* The value of the group that starts at i; returns where the next one starts. */
static int64_t reduce_group(const Reduction *r, int64_t i, RowFn *fn, char *to) {
    int64_t j = i + 1;
    memcpy(to, element_at(r->v.values, r->order[i]), dtype_size(r->v.values->dtype));
    for (; j < r->v.nnz && same_group(r, i, j); j++) fn(to, element_at(r->v.values, r->order[j]), 1);
    return j;
}

static Error *reduce_dense(KernelContext *k, const Reduction *r, RowFn *fn) {
    Tensor *out = kernel_output(k, 0, &r->out_shape);
    if (!out) return NULL;
    memset(out->data, 0, tensor_bytes(out));
    for (int64_t i = 0; i < r->v.nnz;) {
        const int64_t *at = r->v.indices + r->order[i] * r->v.shape.rank;
        int64_t flat = 0;
        for (int c = 0; c < r->kept_count; c++) flat = flat * r->kept_shape.dims[c] + at[r->kept[c]];
        i = reduce_group(r, i, fn, element_to(out, flat));
    }
    return NULL;
}

static Error *reduce_sparse(KernelContext *k, const Reduction *r, RowFn *fn) {
    int64_t groups = 0, n = 0;
    for (int64_t i = 0; i < r->v.nnz; i++) groups += i == 0 || !same_group(r, i - 1, i);
    SparseOut out;
    if (!sparse_output(k, 0, groups, &r->out_shape, &out)) return NULL;
    int rank = r->out_shape.rank;
    for (int64_t i = 0; i < r->v.nnz; n++) {
        const int64_t *at = r->v.indices + r->order[i] * r->v.shape.rank;
        int64_t *to = tensor_i64(out.indices) + n * rank;
        bool keep_dims = rank == r->v.shape.rank;
        if (keep_dims) memset(to, 0, (size_t)rank * sizeof *to);
        for (int c = 0; c < r->kept_count; c++) to[keep_dims ? r->kept[c] : c] = at[r->kept[c]];
        i = reduce_group(r, i, fn, element_to(out.values, n));
    }
    return NULL;
}

static Error *reduce(KernelContext *k, bool max, bool sparse) {
    const RowMath *math = row_math(k->in[1]->dtype);
    RowFn *fn = math ? (max ? math->max : math->add) : NULL;
    Reduction r = {0};
    if (!fn) return kernel_lacks_type(k->node, k->in[1]->dtype);
    Error *err = reduction_plan(k, &r);
    if (!err) err = (sparse ? reduce_sparse : reduce_dense)(k, &r, fn);
    free(r.order);
    return err;
}

static Error *run_reduce_sum(KernelContext *k) {
    return reduce(k, false, false);
}
static Error *run_reduce_max(KernelContext *k) {
    return reduce(k, true, false);
}
static Error *run_reduce_sum_sparse(KernelContext *k) {
    return reduce(k, false, true);
}
static Error *run_reduce_max_sparse(KernelContext *k) {
    return reduce(k, true, true);
}

/* ---- Softmax ---- */

static double value_at(const Tensor *t, int64_t i) {
    return t->dtype == DT_DOUBLE  ? tensor_f64(t)[i]
           : t->dtype == DT_FLOAT ? (double)tensor_f32(t)[i]
                                  : (double)half_to_float(((const uint16_t *)t->data)[i]);
}

static void value_put(Tensor *t, int64_t i, double v) {
    if (t->dtype == DT_DOUBLE) {
        tensor_f64(t)[i] = v;
    } else if (t->dtype == DT_FLOAT) {
        tensor_f32(t)[i] = (float)v;
    } else {
        ((uint16_t *)t->data)[i] = float_to_half((float)v);
    }
}

/* Over the values that share all indices but the last; what is not there counts as minus infinity. */
static Error *run_softmax(KernelContext *k) {
    Reduction r = {0};
    Error *err = sparse_check_named("sp", k->in[0], k->in[1], k->in[2]);
    if (err) return err;
    if (k->in[2]->count < 2) {
        StrBuf text = {0};
        put_dims(&text, k->in[2]);
        err = error_invalid("Input should have rank >= 2, but received shape: %.*s", STR_ARG(strbuf_str(&text)));
        strbuf_clear(&text);
        return err;
    }
    err = sparse_view("Input", k->in[0], k->in[1], k->in[2], &r.v);
    if (!err) err = sparse_check_inside(&r.v);
    if (!err) err = shape_check(&r.v.shape);
    if (err) return err;
    Tensor *out = kernel_output(k, 0, &r.v.values->shape);
    if (!out) return NULL;
    for (r.kept_count = 0; r.kept_count < r.v.shape.rank - 1; r.kept_count++) r.kept[r.kept_count] = r.kept_count;
    r.order = sparse_order(r.v.indices, r.v.nnz, r.v.shape.rank, r.kept, r.kept_count);
    for (int64_t i = 0, j; i < r.v.nnz; i = j) {
        double top = value_at(r.v.values, r.order[i]), sum = 0;
        for (j = i + 1; j < r.v.nnz && same_group(&r, i, j); j++) top = fmax(top, value_at(r.v.values, r.order[j]));
        for (int64_t n = i; n < j; n++) sum += exp(value_at(r.v.values, r.order[n]) - top);
        for (int64_t n = i; n < j; n++) value_put(out, r.order[n], exp(value_at(r.v.values, r.order[n]) - top) / sum);
    }
    free(r.order);
    return NULL;
}

const KernelDef sparse_math_cpu[] = {
    {"SparseAdd", .run = run_add},
    {"SparseAddGrad", .run = run_add_grad},
    {"SparseSparseMaximum", .run = run_maximum},
    {"SparseSparseMinimum", .run = run_minimum},
    {"SparseReduceSum", .run = run_reduce_sum, .state_size = sizeof(ReduceState), .init = reduce_init},
    {"SparseReduceMax", .run = run_reduce_max, .state_size = sizeof(ReduceState), .init = reduce_init},
    {"SparseReduceSumSparse", .run = run_reduce_sum_sparse, .state_size = sizeof(ReduceState), .init = reduce_init},
    {"SparseReduceMaxSparse", .run = run_reduce_max_sparse, .state_size = sizeof(ReduceState), .init = reduce_init},
    {"SparseSoftmax", .run = run_softmax},
    {0},
};
