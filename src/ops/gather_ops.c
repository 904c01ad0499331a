/* gather_ops.c: Gather, GatherV2, GatherNd, and the same on variables. */
#include <stdatomic.h>
#include <string.h>

#include "kernels/gather.h"
#include "ops/elements.h"
#include "ops/op_list.h"

const OpDef gather_ops_ops[] = {
    {"Gather", "params: Tparams, indices: Tindices -> output: Tparams",
     "validate_indices: bool = true; Tparams: type; Tindices: {int32, int64}", 0},
    {"GatherV2", "params: Tparams, indices: Tindices, axis: Taxis -> output: Tparams",
     "batch_dims: int = 0; Tparams: type; Tindices: {int16, int32, int64}; Taxis: {int32, int64}", 0},
    {"GatherNd", "params: Tparams, indices: Tindices -> output: Tparams",
     "Tparams: type; Tindices: {int16, int32, int64}; bad_indices_policy: string = ''", 0},
    {"ResourceGather", "resource: resource, indices: Tindices -> output: dtype",
     "batch_dims: int = 0; validate_indices: bool = true; dtype: type; Tindices: {int32, int64}", OP_STATEFUL},
    {"ResourceGatherNd", "resource: resource, indices: Tindices -> output: dtype",
     "dtype: type; Tindices: {int32, int64}", OP_STATEFUL},
    {0},
};

typedef struct GatherState {
    int64_t batch_dims;
} GatherState;

static Error *gather_init(const Node *node, void *state) {
    return node_attr_int(node, "batch_dims", &((GatherState *)state)->batch_dims);
}

/* All indices as int64, checked. */
static Error *read_rows(KernelContext *k, const Tensor *indices, int64_t limit, Tensor **out) {
    Shape shape = shape_vector(indices->count);
    Tensor *rows = kernel_scratch(k, DT_INT64, &shape);
    if (!rows) return NULL;
    for (int64_t i = 0; i < indices->count; i++) {
        int64_t row = index_at(indices, i);
        if (row < 0 || row >= limit) {
            tensor_unref(rows);
            return bad_index("indices", indices, i, row, limit);
        }
        tensor_i64(rows)[i] = row;
    }
    *out = rows;
    return NULL;
}

static Error *check_batch(const Tensor *params, const Tensor *indices, int64_t axis, int64_t batch_dims) {
    if (batch_dims < 0 || batch_dims > indices->shape.rank)
        return error_invalid("Expected batch_dims in the range [%d, %d], but got %lld", -indices->shape.rank,
                             indices->shape.rank, (long long)batch_dims);
    if (batch_dims >= params->shape.rank && batch_dims > 0)
        return error_invalid("batch_dims (%lld) must be less than rank(params) (%d).", (long long)batch_dims,
                             params->shape.rank);
    if (axis < batch_dims)
        return error_invalid("batch_dims (%lld) must be less than or equal to axis (%lld).", (long long)batch_dims,
                             (long long)axis);
    for (int d = 0; d < batch_dims; d++) {
        if (params->shape.dims[d] != indices->shape.dims[d])
            return error_invalid("params.shape[%d]: %lld should be equal to indices.shape[%d]: %lld", d,
                                 (long long)params->shape.dims[d], d, (long long)indices->shape.dims[d]);
    }
    return NULL;
}

static Error *gather(KernelContext *k, const Tensor *params, const Tensor *indices, int64_t axis, int64_t batch_dims) {
    int rank = params->shape.rank;
    bool by_handle = params != k->in[0];
    if (rank < 1) return error_invalid("params must be at least 1 dimensional");
    if (axis < -rank || axis >= rank)
        return error_invalid("Shape must be at least rank %llu but is rank %d",
                             axis < 0 ? -(unsigned long long)axis : (unsigned long long)axis + 1, rank);
    if (axis < 0) axis += rank;
    if (batch_dims < 0) batch_dims += indices->shape.rank;
    Error *err = check_batch(params, indices, axis, batch_dims);
    if (err) return err;
    if (rank - 1 + indices->shape.rank - batch_dims > SHAPE_MAX_RANK)
        return error_invalid("Too many dimensions for Gather");
    Shape shape = shape_of((int)axis, params->shape.dims);
    for (int d = (int)batch_dims; d < indices->shape.rank; d++) shape.dims[shape.rank++] = indices->shape.dims[d];
    for (int d = (int)axis + 1; d < rank; d++) shape.dims[shape.rank++] = params->shape.dims[d];
    Tensor *rows = NULL, *out = kernel_output(k, 0, &shape);
    if (!out || (out->count == 0 && !by_handle)) return NULL; /* nobody looks at the indices then, as in TensorFlow */
    err = read_rows(k, indices, params->shape.dims[axis], &rows);
    if (err || !rows) return err;
    if (out->count > 0) {
        int64_t per_list = shape_prod(&params->shape, (int)batch_dims, (int)axis);
        RowGather g = {.kind = element_kind(params->dtype),
                       .blocks = shape_prod(&params->shape, 0, (int)axis),
                       .blocks_per_list = per_list > 0 ? per_list : 1,
                       .from_rows = params->shape.dims[axis],
                       .count = shape_prod(&indices->shape, (int)batch_dims, indices->shape.rank),
                       .width = shape_prod(&params->shape, (int)axis + 1, rank),
                       .rows = tensor_i64(rows)};
        gather_rows(k->pool, &g, out->data, params->data);
    }
    tensor_unref(rows);
    return NULL;
}

static Error *run_gather(KernelContext *k) {
    return gather(k, k->in[0], k->in[1], 0, 0);
}

static Error *run_gather_v2(KernelContext *k) {
    int64_t axis;
    if (k->in[2]->shape.rank != 0) return error_invalid("axis must be scalar");
    Error *err = element_scalar_int(k, 2, "axis", &axis);
    return err ? err : gather(k, k->in[0], k->in[1], axis, ((const GatherState *)k->state)->batch_dims);
}

typedef struct RowSource {
    Variable *variable;
    Tensor *value;
} RowSource;

static void end_rows(RowSource *from) {
    if (from->value) variable_end_rows(from->variable, from->value);
    resource_unref(&from->variable->base);
}

/* The value of the variable in input 0, held so that nobody changes it until end_rows. */
static Error *begin_rows(KernelContext *k, RowSource *from) {
    Error *err = kernel_variable(k, 0, &from->variable);
    if (err) return err;
    from->value = variable_begin_rows(from->variable);
    if (!from->value)
        err = error_new(
            CODE_FAILED_PRECONDITION,
            "Could not find variable %s. This could mean that the variable has been deleted. In TF1, it can also "
            "mean the variable is uninitialized.",
            from->variable->name);
    else if (from->value->dtype != kernel_output_type(k, 0))
        err = error_invalid("Variable %s has type %s, but %s is needed", from->variable->name, dtype_name(from->value->dtype),
                            dtype_name(kernel_output_type(k, 0)));
    if (err) end_rows(from);
    return err;
}

static Error *run_resource_gather(KernelContext *k) {
    RowSource from = {0};
    Error *err = begin_rows(k, &from);
    if (err) return err;
    int64_t batch_dims = ((const GatherState *)k->state)->batch_dims;
    err = gather(k, from.value, k->in[1], batch_dims < 0 ? batch_dims + k->in[1]->shape.rank : batch_dims, batch_dims);
    end_rows(&from);
    return err;
}

typedef struct NdState {
    bool ignore_bad; /* a bad index gives zeros */
} NdState;

static Error *nd_init(const Node *node, void *state) {
    Str policy;
    Error *err = node_attr_string(node, "bad_indices_policy", &policy);
    if (!err) ((NdState *)state)->ignore_bad = str_is(policy, "IGNORE");
    return err;
}

typedef struct NdJob {
    const Tensor *params, *indices;
    Tensor *out;
    ElementKind kind;
    int depth;     /* numbers of one index */
    int64_t width; /* elements that one index means */
    _Atomic int64_t first_bad;
} NdJob;

/* Zeros where an index is out of range. */
static void gather_nd_range(void *arg, int64_t begin, int64_t end) {
    NdJob *job = arg;
    const int64_t *dims = job->params->shape.dims;
    const size_t bytes = (size_t)job->width * job->kind.size;
    for (int64_t i = begin; i < end; i++) {
        int64_t row = 0;
        bool bad = false;
        for (int d = 0; d < job->depth; d++) {
            const int64_t at = index_at(job->indices, i * job->depth + d);
            bad = bad || at < 0 || at >= dims[d];
            row = bad ? 0 : row * dims[d] + at;
        }
        char *to = (char *)job->out->data + (size_t)i * bytes;
        const char *from = (const char *)job->params->data + (size_t)row * bytes;
        if (bad) {
            copy_fill(NULL, job->kind, to, element_zero(job->params->dtype), job->width);
            int64_t seen = job->first_bad;
            while (i < seen && !atomic_compare_exchange_weak(&job->first_bad, &seen, i)) continue;
        } else if (bytes == 4) {
            memcpy(to, from, 4);
        } else {
            copy_elements(job->kind, to, from, job->width);
        }
    }
}

static Error *gather_nd(KernelContext *k, const Tensor *params, bool ignore_bad) {
    const Tensor *indices = k->in[1];
    if (params->shape.rank < 1) return error_invalid("params must be at least a vector");
    if (indices->shape.rank < 1) return error_invalid("indices must be at least a vector");
    int64_t depth = indices->shape.dims[indices->shape.rank - 1];
    if (depth > params->shape.rank)
        return error_invalid("index innermost dimension length must be <= params rank; saw: %lld vs. %d",
                             (long long)depth, params->shape.rank);
    if (indices->shape.rank - 1 + params->shape.rank - depth > SHAPE_MAX_RANK)
        return error_invalid("Too many dimensions for GatherNd");
    Shape shape = shape_of(indices->shape.rank - 1, indices->shape.dims);
    int64_t count = shape_count(&shape), width = shape_prod(&params->shape, (int)depth, params->shape.rank);
    for (int d = (int)depth; d < params->shape.rank; d++) shape.dims[shape.rank++] = params->shape.dims[d];
    Tensor *out = kernel_output(k, 0, &shape);
    if (!out) return NULL;
    if (params->count == 0 && count > 0)
        return error_invalid("Requested more than 0 entries, but params is empty.  Params shape: %s", shape_text(&params->shape).text);
    NdJob job = {params, indices, out, element_kind(params->dtype), (int)depth, width, count};
    threadpool_parallel_for(job.kind.copy ? NULL : k->pool, count, 16384 / (width + depth + 1) + 1, gather_nd_range, &job);
    if (job.first_bad < count && !ignore_bad)
        return error_append(bad_nd_index(indices, job.first_bad, (int)depth, "param shape", &params->shape), ", node name: %.*s",
                            STR_ARG(k->node->name));
    return NULL;
}

static Error *run_gather_nd(KernelContext *k) {
    return gather_nd(k, k->in[0], ((const NdState *)k->state)->ignore_bad);
}

static Error *run_resource_gather_nd(KernelContext *k) {
    RowSource from = {0};
    Error *err = begin_rows(k, &from);
    if (err) return err;
    err = gather_nd(k, from.value, false);
    end_rows(&from);
    return err;
}

const KernelDef gather_ops_cpu[] = {
    {"Gather", .run = run_gather},
    {"GatherV2", .run = run_gather_v2, .state_size = sizeof(GatherState), .init = gather_init},
    {"GatherNd", .run = run_gather_nd, .state_size = sizeof(NdState), .init = nd_init},
    {"ResourceGather", .run = run_resource_gather, .state_size = sizeof(GatherState), .init = gather_init},
    {"ResourceGatherNd", .run = run_resource_gather_nd},
    {0},
};
