/* count_sparse.c: DenseCountSparseOutput and its like: how often each value occurs in each row, as a sparse tensor. */
#include <stdlib.h>

#include "base/memory.h"
#include "ops/op_list.h"
#include "ops/sparse_tensor.h"

const OpDef count_sparse_ops[] = {
    {"DenseCountSparseOutput",
     "values: T, weights: output_type -> output_indices: int64, output_values: output_type, output_dense_shape: int64",
     "T: {int32, int64}; minlength: int >= -1 = -1; maxlength: int >= -1 = -1; binary_output: bool; output_type: {int32, "
     "int64, float, double}",
     0},
    {"SparseCountSparseOutput",
     "indices: int64, values: T, dense_shape: int64, weights: output_type -> output_indices: int64, output_values: "
     "output_type, output_dense_shape: int64",
     "T: {int32, int64}; minlength: int >= -1 = -1; maxlength: int >= -1 = -1; binary_output: bool; output_type: {int32, "
     "int64, float, double}",
     0},
    {"RaggedCountSparseOutput",
     "splits: int64, values: T, weights: output_type -> output_indices: int64, output_values: output_type, "
     "output_dense_shape: int64",
     "T: {int32, int64}; minlength: int >= -1 = -1; maxlength: int >= -1 = -1; binary_output: bool; output_type: {int32, "
     "int64, float, double}",
     0},
    {0},
};

typedef struct CountState {
    int64_t min, max; /* how many values there are at least; only those below max count, -1: all */
    bool binary;
} CountState;

static Error *init_count(const Node *node, void *state) {
    CountState *s = state;
    Error *err = node_attr_int(node, "minlength", &s->min);
    if (!err) err = node_attr_int(node, "maxlength", &s->max);
    if (!err) err = node_attr_bool(node, "binary_output", &s->binary);
    return err;
}

/* One value of one row; `from` is its place among the inputs. */
typedef struct Counted {
    int64_t row, value, from;
} Counted;

static int compare_counted(const void *a, const void *b) {
    const Counted *x = a, *y = b;
    if (x->row != y->row) return x->row < y->row ? -1 : 1;
    if (x->value != y->value) return x->value < y->value ? -1 : 1;
    return x->from < y->from ? -1 : x->from > y->from;
}

/* What a kernel counts: row_of[i] is the row of values[i] (NULL: all in row 0). */
typedef struct CountJob {
    const Tensor *values, *weights;
    int64_t *row_of;
    int64_t rows; /* -1: the result is a vector */
} CountJob;

static Error *job_outputs(KernelContext *k, const CountJob *job, const Counted *all, int64_t n, int64_t size) {
    int64_t distinct = 0;
    for (int64_t i = 0; i < n; i++) distinct += i == 0 || all[i].row != all[i - 1].row || all[i].value != all[i - 1].value;
    Shape shape = job->rows < 0 ? shape_vector(size) : shape_matrix(job->rows, size);
    SparseOut out;
    if (!sparse_output(k, 0, distinct, &shape, &out)) return NULL;
    const RowMath *math = row_math(out.values->dtype);
    bool binary = ((const CountState *)k->state)->binary;
    int64_t at = -1, *index = tensor_i64(out.indices);
    for (int64_t i = 0; i < n; i++) {
        bool first = i == 0 || all[i].row != all[i - 1].row || all[i].value != all[i - 1].value;
        const void *weight = binary || !job->weights->count ? math->one : element_at(job->weights, all[i].from);
        if (first) {
            memcpy(element_to(out.values, ++at), weight, dtype_size(out.values->dtype));
            if (job->rows >= 0) *index++ = all[i].row;
            *index++ = all[i].value;
        } else if (!binary) {
            math->add(element_to(out.values, at), weight, 1);
        }
    }
    return NULL;
}

/* Frees job->row_of. */
static Error *job_run(KernelContext *k, CountJob *job) {
    const CountState *s = k->state;
    Error *err = NULL;
    int64_t n = 0, largest = 0;
    Counted *all = xmalloc((size_t)(job->values->count + 1) * sizeof *all);
    for (int64_t i = 0; i < job->values->count && !err; i++) {
        int64_t value = index_at(job->values, i);
        if (value < 0) err = error_invalid("Input values must all be non-negative");
        if (s->max >= 0 && value >= s->max) continue;
        all[n++] = (Counted){job->row_of ? job->row_of[i] : 0, value, i};
        largest = value > largest ? value : largest;
    }
    if (!err && largest == INT64_MAX) err = error_invalid("Input values must be less than the largest integer");
    if (!err) {
        qsort(all, (size_t)n, sizeof *all, compare_counted);
        err = job_outputs(k, job, all, n, s->max >= 0 ? s->max : largest + 1 > s->min ? largest + 1 : s->min);
    }
    free(all);
    free(job->row_of);
    return err;
}

static Error *check_weights(const Tensor *weights, const Tensor *values, const char *what) {
    if (weights->count == 0 || shape_eq(&weights->shape, &values->shape)) return NULL;
    return error_invalid("Weights and %s must have the same shape. Weight shape: %s; %s shape: %s", what,
                         shape_text(&weights->shape).text, what, shape_text(&values->shape).text);
}

static Error *run_dense(KernelContext *k) {
    const Tensor *values = k->in[0];
    CountJob job = {values, k->in[1], NULL, -1};
    if (values->shape.rank < 1 || values->shape.rank > 2)
        return error_invalid("Input must be a 1 or 2-dimensional tensor. Got: %s", shape_text(&values->shape).text);
    Error *err = check_weights(job.weights, values, "data");
    if (err) return err;
    if (values->shape.rank == 2) {
        job.rows = values->shape.dims[0];
        if (job.rows == 0) return error_invalid("Invalid input: Shapes dimension cannot be 0.");
        job.row_of = xmalloc((size_t)(values->count + 1) * sizeof *job.row_of);
        for (int64_t i = 0; i < values->count; i++) job.row_of[i] = i / values->shape.dims[1];
    }
    return job_run(k, &job);
}

static Error *check_inside(const SparseView *s) {
    const int rank = s->shape.rank;
    for (int64_t i = 0; i < s->nnz * rank; i++) {
        int d = (int)(i % rank);
        if (s->indices[i] >= 0 && s->indices[i] < s->shape.dims[d]) continue;
        StrBuf dims = {0};
        for (int j = 0; j < rank; j++) strbuf_addf(&dims, " %lld", (long long)s->shape.dims[j]);
        Error *err = error_invalid("Invalid index value at %lld: dimension %d has value %lld which is not in [0, %lld) (as given by dense shape Tensor<type: int64 shape: [%d] values:%.*s>",
                                   (long long)(i / rank), d, (long long)s->indices[i], (long long)s->shape.dims[d], rank, STR_ARG(strbuf_str(&dims)));
        strbuf_clear(&dims);
        return err;
    }
    return NULL;
}

static Error *run_sparse(KernelContext *k) {
    SparseView s;
    if (sparse_counts_differ(k->in[0], k->in[1]))
        return error_invalid("Number of values must match first dimension of indices.Got %lld values, indices shape: %s", (long long)k->in[1]->count, shape_text(&k->in[0]->shape).text);
    Error *err = sparse_view("Input", k->in[0], k->in[1], k->in[2], &s);
    if (!err) err = check_inside(&s);
    if (!err) err = check_weights(k->in[3], k->in[1], "values");
    if (err) return err;
    if (s.shape.rank == 0) return error_invalid("The shape argument requires at least one element.");
    CountJob job = {k->in[1], k->in[3], NULL, s.shape.rank == 1 ? -1 : s.shape.dims[0]};
    if (job.rows == 0 || job.rows >= INT32_MAX)
        return error_invalid("Cannot allocate %lld batches, is the dense shape too wide?", (long long)job.rows);
    if (job.rows > 0) {
        job.row_of = xmalloc((size_t)(s.nnz + 1) * sizeof *job.row_of);
        for (int64_t i = 0; i < s.nnz; i++) job.row_of[i] = s.indices[i * s.shape.rank];
    }
    return job_run(k, &job);
}

static Error *run_ragged(KernelContext *k) {
    const Tensor *splits = k->in[0], *values = k->in[1];
    int64_t last = splits->count - 1, row = 0;
    Error *err = check_weights(k->in[2], values, "values");
    if (err) return err;
    if (last < 1) return error_invalid("Must provide at least 2 elements for the splits argument");
    if (index_at(splits, 0) != 0)
        return error_invalid("Splits must start with 0, not with %lld", (long long)index_at(splits, 0));
    if (index_at(splits, last) != values->count)
        return error_invalid("Splits must end with the number of values, got %lld instead of %lld",
                             (long long)index_at(splits, last), (long long)values->count);
    CountJob job = {values, k->in[2], xmalloc((size_t)(values->count + 1) * sizeof *job.row_of), last};
    for (int64_t i = 0; i < values->count; i++) {
        while (i >= index_at(splits, row)) row++; /* ends: the last split is above every i */
        job.row_of[i] = row - 1;
    }
    return job_run(k, &job);
}

const KernelDef count_sparse_cpu[] = {
    {"DenseCountSparseOutput", .run = run_dense, .state_size = sizeof(CountState), .init = init_count},
    {"SparseCountSparseOutput", .run = run_sparse, .state_size = sizeof(CountState), .init = init_count},
    {"RaggedCountSparseOutput", .run = run_ragged, .state_size = sizeof(CountState), .init = init_count},
    {0},
};
