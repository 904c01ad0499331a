/* approx_top_k.c: ApproxTopK, the largest or smallest values along a dimension; here they are exact. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "ops/as_float.h"
#include "ops/elements.h"
#include "ops/op_list.h"

const OpDef approx_top_k_ops[] = {
    {"ApproxTopK", "input: T -> values: T, indices: int32",
     "k: int >= 0; reduction_dimension: int = -1; recall_target: float = 0.949999988079; is_max_k: bool = true; "
     "reduction_input_size_override: int = -1; aggregate_to_topk: bool = true; T: {half, bfloat16, float}",
     0},
    {0},
};

typedef struct ApproxState {
    int64_t k, axis;
    bool largest;
} ApproxState;

static Error *approx_init(const Node *node, void *state) {
    ApproxState *st = state;
    Error *err = node_attr_int(node, "k", &st->k);
    if (!err) err = node_attr_int(node, "reduction_dimension", &st->axis);
    if (!err) err = node_attr_bool(node, "is_max_k", &st->largest);
    return err;
}

typedef struct Candidate {
    float value; /* of the smallest, negated */
    int32_t at;
} Candidate;

/* NaNs come last: an order that is none would lead a sort astray. */
static int by_value(const void *x, const void *y) {
    const Candidate *a = x, *b = y;
    if (isnan(a->value) != isnan(b->value)) return isnan(a->value) ? 1 : -1;
    if (a->value > b->value || a->value < b->value) return a->value > b->value ? -1 : 1;
    return a->at < b->at ? -1 : a->at > b->at;
}

typedef struct ApproxJob {
    const float *x;
    const char *from;
    char *values;
    int32_t *indices;
    size_t size; /* of an element */
    int64_t n, k, inner;
    bool largest;
} ApproxJob;

static void approx_range(void *arg, int64_t begin, int64_t end) {
    const ApproxJob *job = arg;
    Candidate *row = xcalloc((size_t)job->n, sizeof *row);
    for (int64_t r = begin; r < end; r++) {
        const int64_t first = r / job->inner * job->n * job->inner + r % job->inner;
        for (int64_t i = 0; i < job->n; i++) {
            const float v = job->x[first + i * job->inner];
            row[i] = (Candidate){job->largest ? v : -v, (int32_t)i};
        }
        qsort(row, (size_t)job->n, sizeof *row, by_value);
        const int64_t out = r / job->inner * job->k * job->inner + r % job->inner;
        for (int64_t i = 0; i < job->k; i++) {
            const int64_t to = out + i * job->inner;
            memcpy(job->values + (size_t)to * job->size, job->from + (size_t)(first + row[i].at * job->inner) * job->size, job->size);
            job->indices[to] = row[i].at;
        }
    }
    free(row);
}

static Error *approx_run(KernelContext *k) {
    const ApproxState *st = k->state;
    Tensor *x = k->in[0];
    const int rank = x->shape.rank;
    if (rank < 1) return error_invalid("input must be >= 1-D, got shape %s", shape_text(&x->shape).text);
    if (st->axis < -rank || st->axis >= rank)
        return error_invalid("Invalid reduction dimension: %lld. Must be within the range of [%d, %d]", (long long)st->axis, -rank, rank - 1);
    const int axis = (int)(st->axis < 0 ? st->axis + rank : st->axis);
    const int64_t n = x->shape.dims[axis];
    if (n < st->k) return error_invalid("input must have at least k columns. Had %lld, needed %lld", (long long)n, (long long)st->k);
    Shape shape = x->shape;
    shape.dims[axis] = st->k;
    Tensor *values = kernel_output(k, 0, &shape), *indices = values ? kernel_output(k, 1, &shape) : NULL;
    if (!indices || values->count == 0) return NULL;
    Tensor *floats = kernel_floats(k, x);
    if (!floats) return NULL;
    ApproxJob job = {tensor_f32(floats), x->data, values->data, indices->data, dtype_size(x->dtype), n, st->k, shape_prod(&shape, axis + 1, rank), st->largest};
    threadpool_parallel_for(k->pool, values->count / st->k, 1024 / n + 1, approx_range, &job);
    tensor_unref(floats);
    return NULL;
}

const KernelDef approx_top_k_cpu[] = {
    {"ApproxTopK", .by_type = {[DT_HALF] = approx_run, [DT_BFLOAT16] = approx_run, [DT_FLOAT] = approx_run}, .state_size = sizeof(ApproxState), .init = approx_init},
    {0},
};
