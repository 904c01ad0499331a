/* stitch.c: DynamicStitch and DynamicPartition, which put rows together and apart by index. */
#include <stdlib.h>

#include "base/memory.h"
#include "ops/elements.h"
#include "ops/op_list.h"

const OpDef stitch_ops[] = {
    {"DynamicStitch", "indices: N * int32, data: N * T -> merged: T", "N: int >= 1; T: type", 0},
    {"ParallelDynamicStitch", "indices: N * int32, data: N * T -> merged: T", "N: int >= 1; T: type", 0},
    {"DynamicPartition", "data: T, partitions: int32 -> outputs: num_partitions * T",
     "num_partitions: int >= 1; T: type", 0},
    {0},
};

static bool starts_with(const Shape *s, const Shape *prefix) {
    if (s->rank < prefix->rank) return false;
    for (int d = 0; d < prefix->rank; d++) {
        if (s->dims[d] != prefix->dims[d]) return false;
    }
    return true;
}

static bool same_rest(const Shape *a, int from_a, const Shape *b, int from_b) {
    if (a->rank - from_a != b->rank - from_b) return false;
    for (int d = 0; from_a + d < a->rank; d++) {
        if (a->dims[from_a + d] != b->dims[from_b + d]) return false;
    }
    return true;
}

/* *rows: one more than the largest index. */
static Error *stitch_rows(KernelContext *k, int n, int64_t *rows) {
    *rows = 0;
    const Tensor *first_index = k->in[0], *first = k->in[n];
    for (int i = 0; i < n; i++) {
        const Tensor *index = k->in[i], *data = k->in[n + i];
        if (!starts_with(&data->shape, &index->shape))
            return error_invalid("data[%d].shape = %s does not start with indices[%d].shape = %s", i,
                                 shape_text(&data->shape).text, i, shape_text(&index->shape).text);
        if (!same_rest(&first->shape, first_index->shape.rank, &data->shape, index->shape.rank))
            return error_invalid(
                "Need data[0].shape[%d:] = data[%d].shape[%d:], got data[0].shape = %s, data[%d].shape = %s, "
                "indices[0].shape = %s, "
                "indices[%d].shape = %s",
                first_index->shape.rank, i, index->shape.rank, shape_text(&first->shape).text, i,
                shape_text(&data->shape).text, shape_text(&first_index->shape).text, i, shape_text(&index->shape).text);
        for (int64_t j = 0; j < index->count; j++) {
            int64_t row = index_at(index, j);
            if (row < 0) return error_invalid("indices[%lld] is out of range", (long long)j);
            if (row >= *rows) *rows = row + 1;
        }
    }
    return NULL;
}

/* Whether no row is given twice, and how many are given at all. */
static bool rows_differ(KernelContext *k, int n, int64_t rows, int64_t *given) {
    uint64_t *seen = xcalloc((size_t)(rows / 64 + 1), sizeof *seen);
    bool differ = true;
    *given = 0;
    for (int i = 0; i < n; i++) {
        const int32_t *index = tensor_i32(k->in[i]);
        for (int64_t j = 0; j < k->in[i]->count; j++) {
            uint64_t *word = &seen[index[j] / 64], bit = (uint64_t)1 << (index[j] % 64);
            if (*word & bit)
                differ = false;
            else
                ++*given;
            *word |= bit;
        }
    }
    free(seen);
    return differ;
}

typedef struct StitchJob {
    ElementKind kind;
    const int32_t *index;
    const char *from;
    char *to;
    int64_t width; /* elements of a row */
} StitchJob;

static void stitch_range(void *arg, int64_t begin, int64_t end) {
    const StitchJob *job = arg;
    size_t row_bytes = (size_t)job->width * job->kind.size;
    for (int64_t j = begin; j < end; j++)
        copy_elements(job->kind, job->to + (size_t)job->index[j] * row_bytes, job->from + (size_t)j * row_bytes,
                      job->width);
}

static Error *run_stitch(KernelContext *k) {
    int n = k->input_count / 2;
    int64_t rows, given;
    Error *err = stitch_rows(k, n, &rows);
    if (err) return err;
    int skip = k->in[0]->shape.rank;
    Shape shape = {.rank = 1, .dims = {rows}};
    for (int d = skip; d < k->in[n]->shape.rank; d++) {
        if (shape.rank >= SHAPE_MAX_RANK) return error_invalid("Too many dimensions for DynamicStitch");
        shape.dims[shape.rank++] = k->in[n]->shape.dims[d];
    }
    Tensor *out = kernel_output(k, 0, &shape);
    if (!out) return NULL;
    StitchJob job = {.kind = element_kind(out->dtype), .to = out->data, .width = shape_prod(&shape, 1, shape.rank)};
    bool any_order = rows_differ(k, n, rows, &given);
    if (dtype_is_plain(out->dtype) && given < rows) memset(out->data, 0, tensor_bytes(out));
    for (int i = 0; i < n; i++) {
        job.index = tensor_i32(k->in[i]);
        job.from = k->in[n + i]->data;
        /* Of rows that are given twice the last one counts. */
        if (any_order)
            threadpool_parallel_for(k->pool, k->in[i]->count, 16384 / (job.width + 1) + 1, stitch_range, &job);
        else
            stitch_range(&job, 0, k->in[i]->count);
    }
    return NULL;
}

/* How many rows go to each partition. */
static Error *count_parts(const Tensor *partitions, int n, int64_t *counts) {
    for (int64_t i = 0; i < partitions->count; i++) {
        int64_t p = index_at(partitions, i);
        if (p < 0 || p >= n) return bad_index("partitions", partitions, i, p, n);
        counts[p]++;
    }
    return NULL;
}

static Error *partition(KernelContext *k, int64_t *counts) {
    const Tensor *data = k->in[0], *partitions = k->in[1];
    int n = k->output_count;
    Error *err = count_parts(partitions, n, counts);
    if (err) return err;
    Shape shape = {.rank = 1};
    for (int d = partitions->shape.rank; d < data->shape.rank; d++) shape.dims[shape.rank++] = data->shape.dims[d];
    for (int p = 0; p < n; p++) {
        shape.dims[0] = counts[p];
        if (!kernel_output(k, p, &shape)) return NULL;
        counts[p] = 0;
    }
    ElementKind kind = element_kind(data->dtype);
    size_t row_bytes = (size_t)shape_prod(&shape, 1, shape.rank) * kind.size;
    for (int64_t i = 0; i < partitions->count; i++) {
        int64_t p = index_at(partitions, i);
        copy_elements(kind, (char *)k->out[p]->data + (size_t)counts[p]++ * row_bytes,
                      (const char *)data->data + (size_t)i * row_bytes, (int64_t)(row_bytes / kind.size));
    }
    return NULL;
}

static Error *run_partition(KernelContext *k) {
    const Tensor *data = k->in[0], *partitions = k->in[1];
    if (!starts_with(&data->shape, &partitions->shape))
        return error_invalid("data.shape must start with partitions.shape, got data.shape = %s, partitions.shape = %s",
                             shape_text(&data->shape).text, shape_text(&partitions->shape).text);
    if (data->shape.rank - partitions->shape.rank >= SHAPE_MAX_RANK)
        return error_invalid("Too many dimensions for DynamicPartition");
    int64_t *counts = xcalloc((size_t)k->output_count + 1, sizeof *counts);
    Error *err = partition(k, counts);
    free(counts);
    return err;
}

const KernelDef stitch_cpu[] = {
    {"DynamicStitch", .run = run_stitch},
    {"ParallelDynamicStitch", .run = run_stitch},
    {"DynamicPartition", .run = run_partition},
    {0},
};
