/* segment_ops.c: sums, means, products and extremes of the rows that have one segment id. */
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "ops/elements.h"
#include "ops/op_list.h"

const OpDef segment_ops_ops[] = {
    {"SegmentSum", "data: T, segment_ids: Tindices -> output: T",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; Tindices: {int32, int64}",
     0},
    {"SegmentMean", "data: T, segment_ids: Tindices -> output: T",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; Tindices: {int32, int64}",
     0},
    {"SegmentProd", "data: T, segment_ids: Tindices -> output: T",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; Tindices: {int32, int64}",
     0},
    {"SegmentMax", "data: T, segment_ids: Tindices -> output: T",
     "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}; Tindices: {int32, "
     "int64}",
     0},
    {"SegmentMin", "data: T, segment_ids: Tindices -> output: T",
     "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}; Tindices: {int32, "
     "int64}",
     0},
    {"UnsortedSegmentSum", "data: T, segment_ids: Tindices, num_segments: Tnumsegments -> output: T",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; Tindices: {int16, int32, int64}; Tnumsegments: {int32, "
     "int64} = int32",
     0},
    {"UnsortedSegmentProd", "data: T, segment_ids: Tindices, num_segments: Tnumsegments -> output: T",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64}; Tindices: {int32, int64}; Tnumsegments: {int32, int64} = "
     "int32",
     0},
    {"UnsortedSegmentMax", "data: T, segment_ids: Tindices, num_segments: Tnumsegments -> output: T",
     "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}; Tindices: {int32, "
     "int64}; Tnumsegments: {int32, int64} = int32",
     0},
    {"UnsortedSegmentMin", "data: T, segment_ids: Tindices, num_segments: Tnumsegments -> output: T",
     "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}; Tindices: {int32, "
     "int64}; Tnumsegments: {int32, int64} = int32",
     0},
    {"SparseSegmentSum", "data: T, indices: Tidx, segment_ids: Tsegmentids -> output: T",
     "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}; Tidx: {int32, "
     "int64} = int32; Tsegmentids: {int32, int64} = int32; sparse_gradient: bool = false",
     0},
    {"SparseSegmentMean", "data: T, indices: Tidx, segment_ids: Tsegmentids -> output: T",
     "T: {bfloat16, half, float, double}; Tidx: {int32, int64} = int32; Tsegmentids: {int32, int64} = int32; "
     "sparse_gradient: bool = false",
     0},
    {"SparseSegmentSqrtN", "data: T, indices: Tidx, segment_ids: Tsegmentids -> output: T",
     "T: {bfloat16, half, float, double}; Tidx: {int32, int64} = int32; Tsegmentids: {int32, int64} = int32; "
     "sparse_gradient: bool = false",
     0},
    {"SparseSegmentSumWithNumSegments",
     "data: T, indices: Tidx, segment_ids: Tsegmentids, num_segments: Tnumsegments -> output: T",
     "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}; Tidx: {int32, "
     "int64} = int32; Tnumsegments: {int32, int64} = int32; Tsegmentids: {int32, int64} = int32; sparse_gradient: "
     "bool = false",
     0},
    {"SparseSegmentMeanWithNumSegments",
     "data: T, indices: Tidx, segment_ids: Tsegmentids, num_segments: Tnumsegments -> output: T",
     "T: {bfloat16, half, float, double}; Tidx: {int32, int64} = int32; Tnumsegments: {int32, int64} = int32; "
     "Tsegmentids: {int32, int64} = int32; sparse_gradient: bool = false",
     0},
    {"SparseSegmentSqrtNWithNumSegments",
     "data: T, indices: Tidx, segment_ids: Tsegmentids, num_segments: Tnumsegments -> output: T",
     "T: {bfloat16, half, float, double}; Tidx: {int32, int64} = int32; Tnumsegments: {int32, int64} = int32; "
     "Tsegmentids: {int32, int64} = int32; sparse_gradient: bool = false",
     0},
    {"SparseSegmentSumGrad", "grad: T, indices: Tidx, segment_ids: Tsegmentids, output_dim0: int32 -> output: T",
     "T: {bfloat16, half, float, double}; Tidx: {int32, int64} = int32; Tsegmentids: {int32, int64} = int32", 0},
    {"SparseSegmentMeanGrad", "grad: T, indices: Tidx, segment_ids: Tsegmentids, output_dim0: int32 -> output: T",
     "T: {bfloat16, half, float, double}; Tidx: {int32, int64} = int32; Tsegmentids: {int32, int64} = int32", 0},
    {"SparseSegmentSqrtNGrad", "grad: T, indices: Tidx, segment_ids: Tsegmentids, output_dim0: int32 -> output: T",
     "T: {bfloat16, half, float, double}; Tidx: {int32, int64} = int32; Tsegmentids: {int32, int64} = int32", 0},
    {"SparseSegmentSumGradV2",
     "grad: T, indices: Tidx, segment_ids: Tsegmentids, dense_output_dim0: int32 -> output: T, sorted_unique_indices: "
     "Tidx",
     "T: {bfloat16, half, float, double}; Tidx: {int32, int64} = int32; Tsegmentids: {int32, int64} = int32", 0},
    {"SparseSegmentMeanGradV2",
     "grad: T, indices: Tidx, segment_ids: Tsegmentids, dense_output_dim0: int32 -> output: T, sorted_unique_indices: "
     "Tidx",
     "T: {bfloat16, half, float, double}; Tidx: {int32, int64} = int32; Tsegmentids: {int32, int64} = int32", 0},
    {"SparseSegmentSqrtNGradV2",
     "grad: T, indices: Tidx, segment_ids: Tsegmentids, dense_output_dim0: int32 -> output: T, sorted_unique_indices: "
     "Tidx",
     "T: {bfloat16, half, float, double}; Tidx: {int32, int64} = int32; Tsegmentids: {int32, int64} = int32", 0},
    {0},
};

typedef enum SegmentKind {
    SEGMENT_SUM,
    SEGMENT_MEAN,
    SEGMENT_SQRT_N,
    SEGMENT_PROD,
    SEGMENT_MAX,
    SEGMENT_MIN
} SegmentKind;

typedef struct SegmentState {
    SegmentKind kind;
} SegmentState;

/* The op is named [Sparse|Unsorted]Segment<kind>... */
static Error *segment_init(const Node *node, void *state) {
    static const char *const kinds[] = {"Sum", "Mean", "SqrtN", "Prod", "Max", "Min"};
    Str rest = node->op;
    if (str_starts(rest, STR("Sparse"))) rest = str_slice(rest, 6, rest.len);
    if (str_starts(rest, STR("Unsorted"))) rest = str_slice(rest, 8, rest.len);
    rest = str_slice(rest, 7, rest.len);
    for (int i = 0; i < 6; i++) {
        if (str_starts(rest, str_of(kinds[i]))) ((SegmentState *)state)->kind = (SegmentKind)i;
    }
    return NULL;
}

static RowFn *row_fn(const RowMath *m, SegmentKind kind) {
    switch (kind) {
        case SEGMENT_PROD:
            return m->mul;
        case SEGMENT_MAX:
            return m->later_max;
        case SEGMENT_MIN:
            return m->later_min;
        default:
            return m->add;
    }
}

/* What a segment without rows is. */
static const void *empty_value(const RowMath *m, SegmentKind kind, bool sorted) {
    switch (kind) {
        case SEGMENT_PROD:
            return m->one;
        case SEGMENT_MAX:
            return sorted ? m->zero : m->lowest;
        case SEGMENT_MIN:
            return sorted ? m->zero : m->highest;
        default:
            return m->zero;
    }
}

static double divisor(SegmentKind kind, int64_t n) {
    return kind == SEGMENT_MEAN ? (double)n : kind == SEGMENT_SQRT_N ? sqrt((double)n) : 1;
}

static Error *math_of(KernelContext *k, DataType dtype, SegmentKind kind, const RowMath **math) {
    *math = row_math(dtype);
    if (*math && row_fn(*math, kind)) return NULL;
    return kernel_lacks_type(k->node, dtype);
}

/* The rows of one call: row i of the input goes to segment ids[i]; with indices it is row indices[i]. */
typedef struct Segments {
    const Tensor *data, *indices, *ids;
    int64_t rows, width;
    size_t row_bytes;
} Segments;

static const char *row_at(const Segments *s, int64_t i) {
    int64_t row = s->indices ? index_at(s->indices, i) : i;
    return (const char *)s->data->data + (size_t)row * s->row_bytes;
}

/* Sorted ids, every one below `limit`. Segment after segment: what is wrong with the first that is not right is said.
 */
static Error *check_sorted(const Segments *s, int64_t limit) {
    for (int64_t i = 0; i < s->rows;) {
        int64_t id = index_at(s->ids, i);
        while (i < s->rows && index_at(s->ids, i) == id) i++;
        if (i < s->rows && index_at(s->ids, i) < id) return error_invalid("segment ids are not increasing");
        if (id >= 0 && id < limit) continue;
        return error_invalid(
            "Segment id %lld out of range [0, %lld), possibly because 'segment_ids' input is not sorted.",
            (long long)id, (long long)limit);
    }
    return NULL;
}

typedef struct SortedJob {
    const Segments *s;
    SegmentKind kind;
    RowFn *fold;
    const RowMath *math;
    ElementKind element;
    char *out;
} SortedJob;

/* The segments that begin in these rows. */
static void fold_segments(void *arg, int64_t begin, int64_t end) {
    const SortedJob *job = arg;
    const Segments *s = job->s;
    int64_t i = begin;
    while (i > 0 && i < end && index_at(s->ids, i) == index_at(s->ids, i - 1)) i++;
    while (i < end) {
        int64_t id = index_at(s->ids, i), first = i;
        char *to = job->out + (size_t)id * s->row_bytes;
        copy_elements(job->element, to, row_at(s, i), s->width);
        for (i++; i < s->rows && index_at(s->ids, i) == id;) i++;
        if (job->fold == job->math->add && !s->indices && job->math->add_rows)
            job->math->add_rows(to, row_at(s, first + 1), i - first - 1, s->width);
        else
            for (int64_t row = first + 1; row < i; row++) job->fold(to, row_at(s, row), s->width);
        double by = divisor(job->kind, i - first);
        if (by != 1) job->math->divide(to, by, s->width);
    }
}

/* Output of `segments` rows from sorted ids. */
static Error *reduce_sorted(KernelContext *k, const Segments *s, int64_t segments) {
    SegmentKind kind = ((const SegmentState *)k->state)->kind;
    const RowMath *math;
    Error *err = math_of(k, s->data->dtype, kind, &math);
    if (!err) err = check_sorted(s, segments);
    if (err) return err;
    Shape shape = s->data->shape;
    shape.dims[0] = segments;
    Tensor *out = kernel_output(k, 0, &shape);
    if (!out) return NULL;
    SortedJob job = {s, kind, row_fn(math, kind), math, element_kind(out->dtype), out->data};
    copy_fill(k->pool, job.element, out->data, empty_value(math, kind, true), out->count);
    threadpool_parallel_for(k->pool, s->rows, 16384 / (s->width + 1) + 1, fold_segments, &job);
    return NULL;
}

static Segments segments_of(const Tensor *data, const Tensor *indices, const Tensor *ids) {
    int64_t width = shape_prod(&data->shape, 1, data->shape.rank);
    return (Segments){data, indices, ids, ids->count, width, (size_t)width * dtype_size(data->dtype)};
}

static Error *run_segment(KernelContext *k) {
    const Tensor *data = k->in[0], *ids = k->in[1];
    if (ids->shape.rank != 1) return error_invalid("segment_ids should be a vector.");
    if (data->shape.rank < 1) return error_invalid("input must be at least rank 1");
    if (data->shape.dims[0] != ids->count)
        return error_invalid("segment_ids should be the same size as dimension 0 of input.");
    Segments s = segments_of(data, NULL, ids);
    int64_t last = s.rows > 0 ? index_at(ids, s.rows - 1) : -1;
    if ((s.rows > 0 && last < 0) || last == INT64_MAX) return error_invalid("segment ids must be >= 0");
    return reduce_sorted(k, &s, last + 1);
}

static Error *run_unsorted_segment(KernelContext *k) {
    const Tensor *data = k->in[0], *ids = k->in[1];
    SegmentKind kind = ((const SegmentState *)k->state)->kind;
    const RowMath *math;
    int64_t segments;
    Error *err = math_of(k, data->dtype, kind, &math);
    if (!err && k->in[2]->shape.rank != 0)
        err = error_invalid("num_segments should be a scalar, not shape %s", shape_text(&k->in[2]->shape).text);
    if (err) return err;
    segments = (int32_t)index_at(k->in[2], 0); /* TensorFlow takes no more bits of it */
    if (segments < 0) return error_invalid("Input num_segments == %lld must not be negative.", (long long)segments);
    bool prefix = data->shape.rank >= ids->shape.rank;
    for (int d = 0; prefix && d < ids->shape.rank; d++) prefix = data->shape.dims[d] == ids->shape.dims[d];
    if (!prefix)
        return error_invalid("data.shape = %s does not start with segment_ids.shape = %s",
                             shape_text(&data->shape).text, shape_text(&ids->shape).text);
    Shape shape = {.rank = 1, .dims = {segments}};
    for (int d = ids->shape.rank; d < data->shape.rank; d++) {
        if (shape.rank >= SHAPE_MAX_RANK) return error_invalid("Too many dimensions for UnsortedSegment");
        shape.dims[shape.rank++] = data->shape.dims[d];
    }
    Tensor *out = kernel_output(k, 0, &shape);
    if (!out) return NULL;
    copy_fill(k->pool, element_kind(out->dtype), out->data, empty_value(math, kind, false), out->count);
    int64_t width = shape_prod(&shape, 1, shape.rank);
    size_t row_bytes = (size_t)width * dtype_size(data->dtype);
    for (int64_t i = 0; i < ids->count; i++) {
        int64_t id = index_at(ids, i);
        if (id < 0) continue;
        if (id >= segments)
            return error_invalid("segment_ids[%lld] = %lld is out of range [0, %lld)", (long long)i, (long long)id,
                                 (long long)segments);
        row_fn(math, kind)((char *)out->data + (size_t)id * row_bytes, (const char *)data->data + (size_t)i * row_bytes,
                           width);
    }
    return NULL;
}

static Error *check_sparse(const Tensor *data, const Tensor *indices, const Tensor *ids) {
    if (indices->shape.rank != 1) return error_invalid("indices should be a vector.");
    if (ids->shape.rank != 1) return error_invalid("segment_ids should be a vector.");
    if (indices->count != ids->count) return error_invalid("segment_ids and indices should have same size.");
    if (data->shape.rank < 1) return error_invalid("Shape must be at least rank 1");
    return NULL;
}

static Error *run_sparse_segment(KernelContext *k) {
    const Tensor *data = k->in[0], *indices = k->in[1], *ids = k->in[2];
    Error *err = check_sparse(data, indices, ids);
    if (err) return err;
    Segments s = segments_of(data, indices, ids);
    int64_t last = s.rows > 0 ? index_at(ids, s.rows - 1) : -1;
    if ((s.rows > 0 && last < 0) || last == INT64_MAX) return error_invalid("segment ids must be >= 0");
    int64_t segments = last + 1;
    if (k->input_count > 3) {
        if (k->in[3]->shape.rank != 0)
            return error_invalid("num_segments should be a scalar, not shape %s", shape_text(&k->in[3]->shape).text);
        int64_t given = index_at(k->in[3], 0);
        if (given < 0) return error_invalid("segment ids must be >= 0");
        if (segments > given) return error_invalid("segment ids must be < num_segments");
        segments = given;
    }
    Shape shape = data->shape;
    shape.dims[0] = segments;
    err = shape_check_grown(&shape);
    if (err) return err;
    for (int64_t i = 0; i < s.rows; i++) {
        int64_t row = index_at(indices, i);
        if (row < 0 || row >= data->shape.dims[0])
            return error_invalid("Bad: indices[%lld] == %lld out of range [0, %lld)", (long long)i, (long long)row,
                                 (long long)data->shape.dims[0]);
    }
    return reduce_sorted(k, &s, segments);
}

/* ---- Gradients: row ids[i] of the gradient, scaled by the size of its segment, is added to row indices[i]. */

static Error *check_grad(const Tensor *grad, const Tensor *indices, const Tensor *ids, int64_t rows) {
    Error *err = check_sparse(grad, indices, ids);
    if (err) return err;
    if (ids->count > 0 && index_at(ids, ids->count - 1) >= grad->shape.dims[0])
        return error_invalid("Invalid number of segments");
    for (int64_t i = 0; i < ids->count; i++) {
        int64_t row = index_at(indices, i), id = index_at(ids, i);
        if (row < 0 || row >= rows)
            return error_invalid("Index %lld out of range [0, %lld).", (long long)row, (long long)rows);
        if (id < 0 || id >= grad->shape.dims[0])
            return error_invalid("Segment id %lld out of range [0, %lld).", (long long)id,
                                 (long long)grad->shape.dims[0]);
    }
    return NULL;
}

/* to_row[i]: the output row for indices[i]. */
static Error *add_gradients(KernelContext *k, Tensor *out, const int64_t *to_row) {
    const Tensor *grad = k->in[0], *ids = k->in[2];
    SegmentKind kind = ((const SegmentState *)k->state)->kind;
    const RowMath *math = row_math(grad->dtype);
    int64_t segments = grad->shape.dims[0], width = shape_prod(&grad->shape, 1, grad->shape.rank);
    size_t row_bytes = (size_t)width * dtype_size(grad->dtype);
    memset(out->data, 0, tensor_bytes(out));
    if (out->count == 0) return NULL;
    Tensor *scaled = NULL;
    Error *err = tensor_copy(grad, &scaled);
    if (err) return err;
    int64_t *counts =
        xcalloc((size_t)segments + 1, sizeof *counts); /* no more than the gradient has elements: it has some */
    for (int64_t i = 0; i < ids->count; i++) counts[index_at(ids, i)]++;
    for (int64_t s = 0; s < segments; s++) {
        double by = divisor(kind, counts[s] > 0 ? counts[s] : 1);
        if (by != 1) math->divide((char *)scaled->data + (size_t)s * row_bytes, by, width);
    }
    for (int64_t i = 0; i < ids->count; i++)
        math->add((char *)out->data + (size_t)to_row[i] * row_bytes,
                  (const char *)scaled->data + (size_t)index_at(ids, i) * row_bytes, width);
    free(counts);
    tensor_unref(scaled);
    return NULL;
}

static Error *grad_rows(KernelContext *k, int64_t *rows) {
    if (k->in[3]->shape.rank != 0) return error_invalid("output_dim0 should be a scalar.");
    *rows = index_at(k->in[3], 0);
    if (*rows < 0) return error_invalid("Expected a non-negative size, got %lld", (long long)*rows);
    const RowMath *math;
    Error *err = math_of(k, k->in[0]->dtype, SEGMENT_SUM, &math);
    return err ? err : check_grad(k->in[0], k->in[1], k->in[2], *rows);
}

static Error *run_sparse_grad(KernelContext *k) {
    int64_t rows = 0;
    Error *err = grad_rows(k, &rows);
    if (err) return err;
    Shape shape = k->in[0]->shape;
    shape.dims[0] = rows;
    Tensor *out = kernel_output(k, 0, &shape), *to_row = out ? kernel_scratch(k, DT_INT64, &k->in[1]->shape) : NULL;
    if (!to_row) return NULL;
    for (int64_t i = 0; i < to_row->count; i++) tensor_i64(to_row)[i] = index_at(k->in[1], i);
    err = add_gradients(k, out, tensor_i64(to_row));
    tensor_unref(to_row);
    return err;
}

static int compare_int64(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Only the rows that occur, in ascending order; output 1 names them. */
static Error *run_sparse_grad_v2(KernelContext *k) {
    int64_t rows, n = 0;
    Error *err = grad_rows(k, &rows);
    if (err) return err;
    const Tensor *indices = k->in[1];
    Tensor *to_row = kernel_scratch(k, DT_INT64, &indices->shape),
           *sorted = kernel_scratch(k, DT_INT64, &indices->shape);
    if (!to_row || !sorted) goto out;
    int64_t *s = tensor_i64(sorted);
    for (int64_t i = 0; i < indices->count; i++) s[i] = index_at(indices, i);
    qsort(s, (size_t)indices->count, sizeof *s, compare_int64);
    for (int64_t i = 0; i < indices->count; i++) {
        if (n == 0 || s[n - 1] != s[i]) s[n++] = s[i];
    }
    for (int64_t i = 0; i < indices->count; i++) {
        int64_t row = index_at(indices, i);
        tensor_i64(to_row)[i] = (int64_t *)bsearch(&row, s, (size_t)n, sizeof *s, compare_int64) - s;
    }
    Shape shape = k->in[0]->shape, vector = shape_vector(n);
    shape.dims[0] = n;
    Tensor *out = kernel_output(k, 0, &shape), *unique = out ? kernel_output(k, 1, &vector) : NULL;
    if (!unique) goto out;
    for (int64_t i = 0; i < n; i++) index_put(unique, i, s[i]);
    err = add_gradients(k, out, tensor_i64(to_row));
out:
    tensor_unref(to_row);
    tensor_unref(sorted);
    return err;
}

const KernelDef segment_ops_cpu[] = {
    {"SegmentSum", .run = run_segment, .state_size = sizeof(SegmentState), .init = segment_init},
    {"SegmentMean", .run = run_segment, .state_size = sizeof(SegmentState), .init = segment_init},
    {"SegmentProd", .run = run_segment, .state_size = sizeof(SegmentState), .init = segment_init},
    {"SegmentMax", .run = run_segment, .state_size = sizeof(SegmentState), .init = segment_init},
    {"SegmentMin", .run = run_segment, .state_size = sizeof(SegmentState), .init = segment_init},
    {"UnsortedSegmentSum", .run = run_unsorted_segment, .state_size = sizeof(SegmentState), .init = segment_init},
    {"UnsortedSegmentProd", .run = run_unsorted_segment, .state_size = sizeof(SegmentState), .init = segment_init},
    {"UnsortedSegmentMax", .run = run_unsorted_segment, .state_size = sizeof(SegmentState), .init = segment_init},
    {"UnsortedSegmentMin", .run = run_unsorted_segment, .state_size = sizeof(SegmentState), .init = segment_init},
    {"SparseSegmentSum", .run = run_sparse_segment, .state_size = sizeof(SegmentState), .init = segment_init},
    {"SparseSegmentMean", .run = run_sparse_segment, .state_size = sizeof(SegmentState), .init = segment_init},
    {"SparseSegmentSqrtN", .run = run_sparse_segment, .state_size = sizeof(SegmentState), .init = segment_init},
    {"SparseSegmentSumWithNumSegments", .run = run_sparse_segment, .state_size = sizeof(SegmentState),
     .init = segment_init},
    {"SparseSegmentMeanWithNumSegments", .run = run_sparse_segment, .state_size = sizeof(SegmentState),
     .init = segment_init},
    {"SparseSegmentSqrtNWithNumSegments", .run = run_sparse_segment, .state_size = sizeof(SegmentState),
     .init = segment_init},
    {"SparseSegmentSumGrad", .run = run_sparse_grad, .state_size = sizeof(SegmentState), .init = segment_init},
    {"SparseSegmentMeanGrad", .run = run_sparse_grad, .state_size = sizeof(SegmentState), .init = segment_init},
    {"SparseSegmentSqrtNGrad", .run = run_sparse_grad, .state_size = sizeof(SegmentState), .init = segment_init},
    {"SparseSegmentSumGradV2", .run = run_sparse_grad_v2, .state_size = sizeof(SegmentState), .init = segment_init},
    {"SparseSegmentMeanGradV2", .run = run_sparse_grad_v2, .state_size = sizeof(SegmentState), .init = segment_init},
    {"SparseSegmentSqrtNGradV2", .run = run_sparse_grad_v2, .state_size = sizeof(SegmentState), .init = segment_init},
    {0},
};
