/* sparse_shapes.c: rules of sparse tensors (indices [n,rank], values [n], shape [rank]), segments and sets. */
#include "shapes/rule_list.h"

static void segment_reduction(ShapeContext *c) {
    PartialShape data = ctx_rank_at_least(c, c->in[0], 1), ids = ctx_in_rank(c, 1, 1);
    (void)ids;
    ctx_out(c, 0, ctx_concat(c, shape_vector(DIM_UNKNOWN), ctx_sub(c, data, 1, SHAPE_END)));
}

static void sparse_segment(ShapeContext *c) {
    PartialShape data = ctx_rank_at_least(c, c->in[0], 1);
    ctx_merge(c, ctx_in_rank(c, 1, 1), ctx_in_rank(c, 2, 1));
    int64_t count = DIM_UNKNOWN;
    if (c->in_count > 3) {
        ctx_want_scalar(c, 3);
        count = ctx_dim_of(c, 3);
    }
    ctx_out(c, 0, ctx_concat(c, shape_vector(count), ctx_sub(c, data, 1, SHAPE_END)));
}

static void sparse_segment_grad(ShapeContext *c) {
    PartialShape grad = ctx_rank_at_least(c, c->in[0], 1);
    ctx_merge(c, ctx_in_rank(c, 1, 1), ctx_in_rank(c, 2, 1));
    ctx_want_scalar(c, 3);
    int64_t count = c->out_count > 1 ? DIM_UNKNOWN : ctx_dim_of(c, 3);
    ctx_out(c, 0, ctx_concat(c, shape_vector(count), ctx_sub(c, grad, 1, SHAPE_END)));
    ctx_out(c, 1, shape_vector(DIM_UNKNOWN));
}

static void unsorted_segment(ShapeContext *c) {
    PartialShape data = c->in[0], ids = c->in[1];
    ctx_want_scalar(c, 2);
    if (ids.rank < 0) return;
    data = ctx_merge_prefix(c, data, ids);
    int64_t count = ctx_dim_of(c, 2);
    ctx_out(c, 0, ctx_concat(c, shape_vector(count), ctx_sub(c, data, ids.rank, SHAPE_END)));
}

static void dynamic_partition(ShapeContext *c) {
    PartialShape data = c->in[0], partitions = c->in[1];
    if (partitions.rank < 0) return;
    data = ctx_merge_prefix(c, data, partitions);
    ctx_out_all(c, ctx_concat(c, shape_vector(DIM_UNKNOWN), ctx_sub(c, data, partitions.rank, SHAPE_END)));
}

static void dynamic_stitch(ShapeContext *c) {
    int n = c->in_count / 2;
    int64_t last = -1;
    bool all_known = true;
    PartialShape extra = SHAPE_UNKNOWN;
    for (int i = 0; i < n; i++) {
        PartialShape indices = c->in[i], data = c->in[n + i];
        const Tensor *t = ctx_value(c, i);
        all_known &= t != NULL;
        for (int64_t j = 0; t && j < t->count; j++)
            if (tensor_index(t, j) > last) last = tensor_index(t, j);
        if (indices.rank < 0) continue;
        data = ctx_merge_prefix(c, data, indices);
        extra = ctx_merge(c, extra, ctx_sub(c, data, indices.rank, SHAPE_END));
    }
    ctx_out(c, 0, ctx_concat(c, shape_vector(all_known ? last + 1 : DIM_UNKNOWN), extra));
}

static void sparse_to_dense(ShapeContext *c) {
    ctx_out(c, 0, ctx_shape_of(c, 1));
}

static void sparse_dense_add(ShapeContext *c) {
    ctx_out(c, 0, c->in[3]);
}

static void sparse_matmul(ShapeContext *c) {
    PartialShape a = ctx_shape_of(c, 2), b = ctx_in_rank(c, 3, 2);
    ctx_in_rank(c, 0, 2);
    ctx_in_rank(c, 1, 1);
    a = ctx_rank(c, a, 2);
    bool ta = ctx_attr_bool(c, "adjoint_a"), tb = ctx_attr_bool(c, "adjoint_b");
    ctx_merge_dim(c, a.dims[ta ? 0 : 1], b.dims[tb ? 1 : 0]);
    ctx_out(c, 0, shape_matrix(a.dims[ta ? 1 : 0], b.dims[tb ? 0 : 1]));
}

static void sparse_concat(ShapeContext *c) {
    int n = c->in_count / 3;
    int64_t rows = 0, rank = DIM_UNKNOWN;
    PartialShape shape = shape_vector(DIM_UNKNOWN);
    for (int i = 0; i < n; i++) {
        PartialShape indices = ctx_in_rank(c, i, 2), values = ctx_in_rank(c, n + i, 1), s = ctx_in_rank(c, 2 * n + i, 1);
        int64_t count = ctx_merge_dim(c, indices.dims[0], values.dims[0]);
        rows = ctx_dim_add(c, rows, count);
        rank = ctx_merge_dim(c, rank, indices.dims[1]);
        shape = ctx_merge(c, shape, s);
    }
    ctx_out(c, 0, shape_matrix(rows, rank));
    ctx_out(c, 1, shape_vector(rows));
    ctx_out(c, 2, shape);
}

static void sparse_reshape(ShapeContext *c) {
    PartialShape indices = ctx_in_rank(c, 0, 2), shape = ctx_in_rank(c, 1, 1), wanted = ctx_in_rank(c, 2, 1);
    (void)shape;
    ctx_out(c, 0, shape_matrix(indices.dims[0], wanted.dims[0]));
    ctx_out(c, 1, wanted);
}

static void sparse_slice(ShapeContext *c) {
    PartialShape shape = c->in[2];
    ctx_out(c, 0, shape_matrix(DIM_UNKNOWN, shape_elements(shape)));
    ctx_out(c, 1, shape_vector(DIM_UNKNOWN));
    ctx_out(c, 2, shape);
}

/* Axes count modulo the rank, as TensorFlow counts them. */
static void sparse_reduce(ShapeContext *c) {
    const Tensor *shape = ctx_value(c, 2), *axes = ctx_value(c, 3);
    bool keep = ctx_attr_bool(c, "keep_dims"), drop[SHAPE_MAX_RANK] = {0};
    if (shape && axes && shape->count == 0) ctx_fail(c, "Number of dims in shape tensor must not be 0");
    if (!shape || !axes || c->err || shape->count > SHAPE_MAX_RANK) return;
    for (int64_t i = 0; i < axes->count; i++) {
        int64_t axis = (tensor_index(axes, i) + shape->count) % shape->count;
        if (axis >= 0) drop[axis] = true;
    }
    PartialShape out = SHAPE_SCALAR;
    for (int i = 0; i < shape->count; i++) {
        int64_t size = tensor_index(shape, i);
        if (!drop[i] || keep) out.dims[out.rank++] = drop[i] ? 1 : size < 0 ? DIM_UNKNOWN : size;
    }
    ctx_out(c, 0, out);
}

/* Checks indices, values and shape of a sparse tensor at inputs [i, i + 3); the rank, when its shape says it. */
static int64_t sparse_rank(ShapeContext *c, int i) {
    PartialShape indices = ctx_in_rank(c, i, 2), values = ctx_in_rank(c, i + 1, 1), shape = ctx_in_rank(c, i + 2, 1);
    ctx_merge_dim(c, indices.dims[0], values.dims[0]);
    ctx_merge_dim(c, indices.dims[1], shape.dims[0]);
    return shape.dims[0];
}

static void edit_distance(ShapeContext *c) {
    const Tensor *a = ctx_value(c, 2), *b = ctx_value(c, 5);
    sparse_rank(c, 0);
    sparse_rank(c, 3);
    if (!a || !b) return;
    if (a->count != b->count) {
        ctx_fail(c, "Num elements of hypothesis_shape does not match truth_shape: %lld vs. %lld", (long long)a->count, (long long)b->count);
        return;
    }
    if (a->count < 2) ctx_fail(c, "Input Hypothesis SparseTensors must have rank at least 2, but hypothesis_shape rank is: %lld", (long long)a->count);
    PartialShape s = SHAPE_SCALAR;
    for (int64_t i = 0; i + 1 < a->count && i < SHAPE_MAX_RANK; i++) {
        int64_t x = tensor_index(a, i), y = tensor_index(b, i);
        s.dims[s.rank++] = x > y ? x : y;
    }
    ctx_out(c, 0, s);
}

static void bincount(ShapeContext *c) {
    int64_t size;
    ctx_want_scalar(c, 1);
    bool known = ctx_int(c, 1, &size);
    if (known && size < 0) ctx_fail(c, "size (%lld) must be non-negative", (long long)size);
    ctx_out(c, 0, shape_vector(known ? size : DIM_UNKNOWN));
}

static void dense_bincount(ShapeContext *c) {
    int64_t size;
    PartialShape in = ctx_rank_at_most(c, c->in[0], 2);
    ctx_want_scalar(c, 1);
    bool known = ctx_int(c, 1, &size);
    if (known && size < 0) ctx_fail(c, "size (%lld) must be non-negative", (long long)size);
    if (in.rank < 0) return;
    if (!known)
        ctx_out(c, 0, shape_unknown_dims(in.rank));
    else
        ctx_out(c, 0, in.rank == 2 ? shape_matrix(in.dims[0], size) : shape_vector(size));
}

static void histogram_fixed_width(ShapeContext *c) {
    PartialShape range = ctx_in_rank(c, 1, 1);
    ctx_dim_is(c, range.dims[0], 2);
    ctx_want_scalar(c, 2);
    int64_t bins;
    bool known = ctx_int(c, 2, &bins);
    if (known && bins <= 0) ctx_fail(c, "Requires nbins > 0: %lld", (long long)bins);
    ctx_out(c, 0, shape_vector(known ? bins : DIM_UNKNOWN));
}

static void set_size(ShapeContext *c) {
    ctx_out(c, 0, SHAPE_UNKNOWN);
}

/* Results of set operations: as many dimensions as the sets have. */
static void set_result(ShapeContext *c, int64_t rank) {
    ctx_out(c, 0, shape_matrix(DIM_UNKNOWN, rank));
    ctx_out(c, 1, shape_vector(DIM_UNKNOWN));
    ctx_out(c, 2, shape_vector(rank));
}

static void dense_sets(ShapeContext *c) {
    if (c->in_count != 2) return;
    PartialShape a = c->in[0], b = c->in[1];
    int64_t rank = DIM_UNKNOWN;
    if (a.rank >= 0) {
        if (a.rank < 2) ctx_fail(c, "Input 0, expected rank >= 2, got %d.", a.rank);
        rank = a.rank;
    }
    if (b.rank >= 0) {
        if (b.rank < 2) ctx_fail(c, "Input 1, expected rank >= 2, got %d.", b.rank);
        if (a.rank >= 0 && a.rank != b.rank) ctx_fail(c, "Ranks do not match: input 0 %d, input 1 %d.", a.rank, b.rank);
        rank = b.rank;
    }
    if (a.rank >= 0 && b.rank >= 0 && !c->err) ctx_merge(c, ctx_sub(c, a, 0, a.rank - 1), ctx_sub(c, b, 0, b.rank - 1));
    set_result(c, rank);
}

static void dense_sparse_sets(ShapeContext *c) {
    int64_t rank = c->in[0].rank < 0 ? DIM_UNKNOWN : c->in[0].rank, other = sparse_rank(c, 1);
    if (rank >= 0 && rank < 2) ctx_fail(c, "Input 0, expected rank >= 2, got %lld.", (long long)rank);
    if (rank >= 0) ctx_dim_is(c, other, rank);
    set_result(c, rank >= 0 ? rank : other);
}

static void sparse_sparse_sets(ShapeContext *c) {
    int64_t a = sparse_rank(c, 0), b = sparse_rank(c, 3);
    for (int i = 0; i < 2; i++) {
        int64_t rank = i ? b : a;
        if (rank >= 0 && rank < 2) ctx_fail(c, "Input %d, expected rank >= 2, got %lld.", i, (long long)rank);
    }
    set_result(c, ctx_merge_dim(c, a, b));
}

static void sparse_split(ShapeContext *c) {
    PartialShape shape = c->in[3];
    int64_t rank = shape_elements(shape);
    int n = c->out_count / 3;
    for (int i = 0; i < n; i++) {
        ctx_out(c, i, shape_matrix(DIM_UNKNOWN, rank));
        ctx_out(c, n + i, shape_vector(DIM_UNKNOWN));
        ctx_out(c, 2 * n + i, shape);
    }
}

static void sparse_fill_empty_rows(ShapeContext *c) {
    PartialShape indices = ctx_in_rank(c, 0, 2), values = ctx_in_rank(c, 1, 1), shape = ctx_in_rank(c, 2, 1);
    ctx_want_scalar(c, 3);
    int64_t count = ctx_merge_dim(c, indices.dims[0], values.dims[0]);
    int64_t rank = ctx_merge_dim(c, indices.dims[1], shape.dims[0]);
    if (rank == 0) ctx_fail(c, "dense_shape must have at least one element");
    PartialShape dense = ctx_shape_of(c, 2);
    ctx_out(c, 0, shape_matrix(DIM_UNKNOWN, shape.dims[0]));
    ctx_out(c, 1, shape_vector(DIM_UNKNOWN));
    ctx_out(c, 2, shape_vector(shape_dim(dense, 0)));
    ctx_out(c, 3, shape_vector(count));
}

static void ragged_fill_empty_rows(ShapeContext *c) {
    PartialShape rows = ctx_in_rank(c, 0, 1), values = ctx_in_rank(c, 1, 1);
    ctx_want_scalar(c, 2);
    ctx_want_scalar(c, 3);
    int64_t count = ctx_merge_dim(c, rows.dims[0], values.dims[0]);
    ctx_out(c, 0, shape_vector(DIM_UNKNOWN));
    ctx_out(c, 1, shape_vector(DIM_UNKNOWN));
    ctx_out(c, 2, shape_vector(DIM_UNKNOWN));
    ctx_out(c, 3, shape_vector(count));
}

/* Lists that belong together are of one length. */
static void ragged_cross(ShapeContext *c) {
    int first, values, splits, sparse, sparse_values, dense;
    ctx_arg(c, "ragged_values", &first, &values);
    ctx_arg(c, "ragged_row_splits", &first, &splits);
    ctx_arg(c, "sparse_indices", &first, &sparse);
    ctx_arg(c, "sparse_values", &first, &sparse_values);
    ctx_arg(c, "dense_inputs", &first, &dense);
    if (values != splits) ctx_fail(c, "ragged values and splits must have the same length");
    if (sparse != sparse_values) ctx_fail(c, "sparse indices and values must have the same length");
    if (ctx_attr_str(c, "input_order").len != (size_t)(values + sparse + dense)) ctx_fail(c, "Invalid length for input_order");
    ctx_out_all(c, shape_vector(DIM_UNKNOWN));
}

static void serialize_many_sparse(ShapeContext *c) {
    ctx_in_rank(c, 0, 2);
    ctx_in_rank(c, 1, 1);
    ctx_in_rank(c, 2, 1);
    ctx_out(c, 0, shape_matrix(DIM_UNKNOWN, 3));
}

static void deserialize_sparse(ShapeContext *c) {
    PartialShape s = ctx_rank_at_least(c, c->in[0], 1);
    ctx_dim_is(c, shape_dim(s, -1), 3);
    ctx_out(c, 0, shape_matrix(DIM_UNKNOWN, DIM_UNKNOWN));
    ctx_out(c, 1, shape_vector(DIM_UNKNOWN));
    ctx_out(c, 2, shape_vector(DIM_UNKNOWN));
}

/* TensorFlow says something only when both size and shape are constant. */
static void sparse_bincount(ShapeContext *c) {
    const Tensor *size = ctx_value(c, 3), *shape = ctx_value(c, 2);
    if (!size) return;
    if (size->shape.rank) ctx_fail(c, "Shape must be rank 0 but is rank %d", size->shape.rank);
    int64_t bins = ctx_failed(c) ? DIM_UNKNOWN : ctx_dim_of(c, 3);
    if (!shape || ctx_failed(c)) return;
    if (shape->count > 2) ctx_fail(c, "Input must be less than rank 2");
    if (shape->count == 1) ctx_out(c, 0, shape_vector(bins));
    if (shape->count == 2) ctx_out(c, 0, shape_matrix(tensor_index(shape, 0), bins));
}

static void count_output(ShapeContext *c, int64_t rank) {
    ctx_out(c, 0, shape_matrix(DIM_UNKNOWN, rank));
    ctx_out(c, 1, shape_vector(DIM_UNKNOWN));
    ctx_out(c, 2, shape_vector(rank));
}

static void dense_count(ShapeContext *c) {
    PartialShape s = shape_elements(c->in[1]) == 0 ? c->in[0] : ctx_merge(c, c->in[1], c->in[0]);
    count_output(c, s.rank);
}

static void sparse_count(ShapeContext *c) {
    count_output(c, shape_dim(ctx_in_rank(c, 0, 2), 1));
}

static void ragged_count(ShapeContext *c) {
    count_output(c, c->in[1].rank < 0 ? DIM_UNKNOWN : c->in[1].rank + 1);
}

const ShapeRow sparse_rules[] = {
    {"AddManySparseToTensorsMap", 0, "[?,?] [?] [?] -> [?]"},
    {"AddSparseToTensorsMap", 0, "[?,?] [?] [?] -> []"},
    {"Bincount", bincount, 0},
    {"Bucketize", rule_same, 0},
    {"DenseBincount", dense_bincount, 0},
    {"DenseCountSparseOutput", dense_count, 0},
    {"DenseToDenseSetOperation", dense_sets, 0},
    {"DenseToSparseSetOperation", dense_sparse_sets, 0},
    {"DeserializeManySparse", 0, "[?,3] -> [?,?] [?] [?]"},
    {"DeserializeSparse", deserialize_sparse, 0},
    {"DynamicPartition", dynamic_partition, 0},
    {"DynamicStitch", dynamic_stitch, 0},
    {"EditDistance", edit_distance, 0},
    {"HistogramFixedWidth", histogram_fixed_width, 0},
    {"ParallelDynamicStitch", dynamic_stitch, 0},
    {"RaggedBincount", rule_unknown, 0},
    {"RaggedCountSparseOutput", ragged_count, 0},
    {"SegmentMax", segment_reduction, 0},
    {"SegmentMean", segment_reduction, 0},
    {"SegmentMin", segment_reduction, 0},
    {"SegmentProd", segment_reduction, 0},
    {"SegmentSum", segment_reduction, 0},
    {"SerializeManySparse", serialize_many_sparse, 0},
    {"SerializeSparse", 0, "[?,?] [?] [?] -> [3]"},
    {"SerializeTensor", rule_scalar, 0},
    {"SetSize", set_size, 0},
    {"SparseAdd", 0, "* * [r] -> [?,r] [?] [r]"},
    {"SparseAddGrad", 0, "* [n,?] [m,?] * -> [n] [m]"},
    {"SparseBincount", sparse_bincount, 0},
    {"SparseConcat", sparse_concat, 0},
    {"SparseCountSparseOutput", sparse_count, 0},
    {"SparseCross", 0, "-> [?,2] [?] [2]"},
    {"SparseCrossHashed", 0, "-> [?,2] [?] [2]"},
    {"SparseCrossV2", 0, "-> [?,2] [?] [2]"},
    {"SparseDenseCwiseAdd", 0, "[n,?] * * * -> [n]"},
    {"SparseDenseCwiseDiv", 0, "[n,?] * * * -> [n]"},
    {"SparseDenseCwiseMul", 0, "[n,?] * * * -> [n]"},
    {"SparseFillEmptyRows", sparse_fill_empty_rows, 0},
    {"SparseFillEmptyRowsGrad", 0, "[n] [?] -> [n] []"},
    {"RaggedFillEmptyRows", ragged_fill_empty_rows, 0},
    {"RaggedFillEmptyRowsGrad", 0, "[n] [?] -> [n] []"},
    {"RaggedCross", ragged_cross, 0},
    {"SparseReduceMax", sparse_reduce, 0},
    {"SparseReduceMaxSparse", rule_unknown, 0},
    {"SparseReduceSum", sparse_reduce, 0},
    {"SparseReduceSumSparse", rule_unknown, 0},
    {"SparseReorder", 0, "[n,r] [m] [?] -> [n,r] [m]"},
    {"SparseReshape", sparse_reshape, 0},
    {"SparseSegmentMean", sparse_segment, 0},
    {"SparseSegmentMeanGrad", sparse_segment_grad, 0},
    {"SparseSegmentMeanGradV2", sparse_segment_grad, 0},
    {"SparseSegmentMeanWithNumSegments", sparse_segment, 0},
    {"SparseSegmentSqrtN", sparse_segment, 0},
    {"SparseSegmentSqrtNGrad", sparse_segment_grad, 0},
    {"SparseSegmentSqrtNGradV2", sparse_segment_grad, 0},
    {"SparseSegmentSqrtNWithNumSegments", sparse_segment, 0},
    {"SparseSegmentSum", sparse_segment, 0},
    {"SparseSegmentSumGrad", sparse_segment_grad, 0},
    {"SparseSegmentSumGradV2", sparse_segment_grad, 0},
    {"SparseSegmentSumWithNumSegments", sparse_segment, 0},
    {"SparseSlice", sparse_slice, 0},
    {"SparseSliceGrad", 0, "* [n,?] * * -> [n]"},
    {"SparseSoftmax", 0, "[?,?] [n] [?] -> [n]"},
    {"SparseSparseMaximum", 0, "[?,?] [?] [?] [?,?] [?] [?] -> [?,?] [?]"},
    {"SparseSparseMinimum", 0, "[?,?] [?] [?] [?,?] [?] [?] -> [?,?] [?]"},
    {"SparseSplit", sparse_split, 0},
    {"SparseTensorDenseAdd", sparse_dense_add, 0},
    {"SparseTensorDenseMatMul", sparse_matmul, 0},
    {"SparseToDense", sparse_to_dense, 0},
    {"SparseToSparseSetOperation", sparse_sparse_sets, 0},
    {"TakeManySparseFromTensorsMap", 0, "[?] -> [?,?] [?] [?]"},
    {"UnsortedSegmentMax", unsorted_segment, 0},
    {"UnsortedSegmentMin", unsorted_segment, 0},
    {"UnsortedSegmentProd", unsorted_segment, 0},
    {"UnsortedSegmentSum", unsorted_segment, 0},
    {0},
};
