/* batch_ops.c: Batch, which makes one tensor of those of concurrent steps, and BatchFunction, which calls a function on it. */
#include <stdlib.h>

#include "base/memory.h"
#include "ops/batch_scheduler.h"
#include "ops/op_list.h"

const OpDef batch_ops_ops[] = {
    {"Batch", "in_tensors: T -> batched_tensors: T, batch_index: int64, id: int64",
     "num_batch_threads: int; max_batch_size: int; max_enqueued_batches: int = 10; batch_timeout_micros: int; "
     "allowed_batch_sizes: list(int) = []; grad_timeout_micros: int; container: string = ''; shared_name: string = ''; "
     "batching_queue: string = ''; T: list(type) >= 1",
     0},
    {"BatchFunction", "in_tensors: Tin, captured_tensors: Tcaptured -> out_tensors: Tout",
     "f: func; num_batch_threads: int; max_batch_size: int; batch_timeout_micros: int; max_enqueued_batches: int = 10; "
     "allowed_batch_sizes: list(int) = []; container: string = ''; shared_name: string = ''; batching_queue: string = "
     "''; low_priority_max_batch_size: int = 0; low_priority_batch_timeout_micros: int = 0; "
     "low_priority_allowed_batch_sizes: list(int) = []; low_priority_max_enqueued_batches: int = 0; "
     "mixed_priority_policy: {'low_priority_padding_with_max_batch_size', "
     "'low_priority_padding_with_next_allowed_batch_size', 'priority_isolation', 'priority_merge'} = "
     "'low_priority_padding_with_max_batch_size'; batch_padding_policy: {'PAD_UP', 'BATCH_DOWN', "
     "'MINIMIZE_TPU_COST_PER_REQUEST'} = 'PAD_UP'; Tin: list(type) >= 1; Tcaptured: list(type) >= 0; Tout: list(type) "
     ">= 1; enable_large_batch_splitting: bool = false",
     0},
    {0},
};

/* ---- What both read ---- */

typedef struct BatchState {
    BatchOptions options;
    int64_t *allowed;
} BatchState;

static void clear_state(void *state) {
    free(((BatchState *)state)->allowed);
}

static Error *check_allowed(const BatchOptions *o, bool is_function) {
    for (int i = 0; i < o->allowed_count; i++)
        if (i && o->allowed[i] <= o->allowed[i - 1])
            return error_invalid("allowed_batch_sizes entries must be monotonically increasing");
    if (!o->allowed_count || o->splits || o->allowed[o->allowed_count - 1] == o->max_request) return NULL;
    return error_invalid("final entry in allowed_batch_sizes must equal max_batch_size%s",
                         is_function ? " when enable_large_batch_splitting is False" : "");
}

static Error *init_options(const Node *node, void *state) {
    BatchState *b = state;
    BatchOptions *o = &b->options;
    bool is_function = node_is(node, "BatchFunction");
    Error *err = node_attr_int(node, "num_batch_threads", &o->threads);
    if (!err) err = node_attr_int(node, "max_batch_size", &o->max_request);
    if (!err) err = node_attr_int(node, "max_enqueued_batches", &o->max_queued);
    if (!err) err = node_attr_int(node, "batch_timeout_micros", &o->timeout_us);
    if (!err && is_function) err = node_attr_bool(node, "enable_large_batch_splitting", &o->splits);
    if (!err) err = node_attr_ints(node, "allowed_batch_sizes", &b->allowed, &o->allowed_count);
    o->allowed = b->allowed;
    if (!err) err = check_allowed(o, is_function);
    if (err) return err;
    o->max_batch = o->splits && o->allowed_count ? o->allowed[o->allowed_count - 1] : o->max_request;
    return NULL;
}

static Error *check_options(const BatchOptions *o, bool is_function) {
    if (!is_function && o->threads < 1)
        return error_invalid("num_batch_threads must be positive; was %lld", (long long)o->threads);
    if (o->max_request < 1)
        return error_invalid("input_batch_size_limit must be positive; was %lld", (long long)o->max_request);
    if (o->timeout_us < 0)
        return error_invalid("batch_timeout_micros must be non-negative; was %lld", (long long)o->timeout_us);
    if (o->max_queued < 0)
        return error_invalid("max_enqueued_batches must be non-negative; was %lld", (long long)o->max_queued);
    if (o->splits && o->max_batch > o->max_request)
        return error_invalid("max_execution_batch_size should be less than or equal to input_batch_size_limit");
    return o->max_batch < 1 ? error_invalid("allowed_batch_sizes must be positive") : NULL;
}

static Error *check_inputs(KernelContext *k, int count) {
    for (int i = 0; i < count; i++) {
        if (k->in[i]->shape.rank == 0)
            return error_invalid("Batching input tensors must have at least one dimension.");
        if (k->in[i]->shape.dims[0] != k->in[0]->shape.dims[0])
            return error_invalid(
                "Batching input tensors supplied in a given op invocation must have equal 0th-dimension size");
    }
    return NULL;
}

static Error *give_nothing(KernelContext *k) {
    Shape none = shape_vector(0);
    for (int i = 0; i < k->output_count; i++)
        if (!kernel_output(k, i, &none)) return NULL;
    return NULL;
}

static Error *schedule(KernelContext *k, int input_count, bool is_function, BatchWork *work, Closure *closure) {
    const BatchState *state = k->state;
    Str queue = STR("");
    BatchScheduler *s = NULL;
    Error *err = check_options(&state->options, is_function);
    if (!err) err = check_inputs(k, input_count);
    if (!err) err = node_attr_string(k->node, "batching_queue", &queue);
    if (!err && k->in[0]->shape.dims[0] == 0) {
        closure_unref(closure);
        return give_nothing(k);
    }
    if (!err) err = batch_scheduler_find(k, &state->options, work, &s);
    if (!err) err = batch_scheduler_add(s, k, queue, input_count, closure);
    if (err) closure_unref(closure);
    resource_unref((Resource *)s);
    return err;
}

/* ---- Batch: the step whose request came last goes on with the whole, the others with nothing ---- */

static Error *index_of(const BatchPiece *pieces, int count, Tensor **out) {
    Shape shape = shape_matrix(count, 3);
    Error *err = tensor_new(DT_INT64, &shape, out);
    int64_t at = 0;
    for (int i = 0; !err && i < count; i++) {
        int64_t *row = tensor_i64(*out) + 3 * i;
        row[0] = pieces[i].request->id;
        row[1] = at;
        row[2] = at += pieces[i].to - pieces[i].from;
    }
    return err;
}

/* What the step of a piece gets; `all`: the whole batch. */
static Error *batch_results(BatchScheduler *s, const BatchPiece *p, const BatchPiece *pieces, int count, bool all,
                            Tensor **out) {
    const BatchRequest *r = p->request;
    Error *err = NULL;
    for (int i = 0; !err && i < r->input_count; i++) {
        Shape none = r->inputs[i]->shape;
        none.dims[0] = 0;
        err = all ? batch_concat(s, pieces, count, i, &out[i]) : tensor_new(r->inputs[i]->dtype, &none, &out[i]);
    }
    if (!err) err = index_of(pieces, all ? count : 0, &out[r->input_count]);
    if (!err) out[r->input_count + 1] = tensor_scalar_i64(r->id);
    return err;
}

static void work_on_batch(BatchScheduler *s, const BatchPiece *pieces, int count) {
    Tensor ***results = xcalloc((size_t)count, sizeof *results);
    Error *err = NULL;
    for (int i = 0; i < count; i++) {
        results[i] = xcalloc((size_t)pieces[i].request->input_count + 2, sizeof(Tensor *));
        if (!err) err = batch_results(s, &pieces[i], pieces, count, i == count - 1, results[i]);
    }
    for (int i = 0; i < count; i++) batch_piece_done(&pieces[i], results[i], err ? error_copy(err) : NULL);
    error_free(err);
    free(results);
}

static Error *run_batch(KernelContext *k) {
    return schedule(k, k->input_count, false, work_on_batch, NULL);
}

/* ---- BatchFunction ---- */

/* Cuts what the function returned for the whole batch into what belongs to each piece. */
static Error *cut(const BatchPiece *pieces, int count, Tensor *const *rets, int ret_count, Tensor ***results) {
    int64_t size = 0;
    for (int i = 0; i < count; i++) size += pieces[i].to - pieces[i].from;
    for (int j = 0; j < ret_count; j++) {
        if (rets[j]->shape.rank == 0)
            return error_new(CODE_FAILED_PRECONDITION, "Batched output tensor has 0 dimensions");
        if (rets[j]->shape.dims[0] < size)
            return error_new(CODE_FAILED_PRECONDITION,
                             "Batched output tensor's 0th dimension does not equal the sum of the 0th dimension sizes "
                             "of the input tensors");
        int64_t at = 0;
        for (int i = 0; i < count; i++) {
            int64_t n = pieces[i].to - pieces[i].from;
            results[i][j] = tensor_rows(rets[j], at, at + n);
            at += n;
        }
    }
    return NULL;
}

static Error *call(BatchScheduler *s, const BatchPiece *pieces, int count, Tensor ***results) {
    const BatchRequest *last = pieces[count - 1].request;
    Tensor **args = xcalloc((size_t)last->input_count, sizeof *args), **rets = NULL;
    int ret_count = 0;
    Error *err = NULL;
    for (int i = 0; !err && i < last->input_count; i++) err = batch_concat(s, pieces, count, i, &args[i]);
    int64_t rows = err ? 0 : args[0]->shape.dims[0];
    if (!err) err = closure_call(last->closure, NULL, NULL, args, last->input_count, &rets, &ret_count);
    if (!err && ret_count != last->k->output_count)
        err = error_invalid("The function of a batch returned %d values, %d are needed", ret_count,
                            last->k->output_count);
    for (int j = 0; !err && j < ret_count; j++)
        if (rets[j]->shape.rank && rets[j]->shape.dims[0] != rows)
            err = error_new(CODE_FAILED_PRECONDITION,
                            "Batched output tensor's 0th dimension does not equal the sum of the 0th dimension sizes "
                            "of the input tensors");
    if (!err) err = cut(pieces, count, rets, ret_count, results);
    for (int i = 0; i < last->input_count; i++) tensor_unref(args[i]);
    for (int j = 0; rets && j < ret_count; j++) tensor_unref(rets[j]);
    free(args);
    free(rets);
    return err;
}

static void work_on_function(BatchScheduler *s, const BatchPiece *pieces, int count) {
    Tensor ***results = xcalloc((size_t)count, sizeof *results);
    for (int i = 0; i < count; i++)
        results[i] = xcalloc((size_t)pieces[i].request->k->output_count + 1, sizeof(Tensor *));
    Error *err = call(s, pieces, count, results);
    for (int i = 0; i < count; i++) batch_piece_done(&pieces[i], results[i], err ? error_copy(err) : NULL);
    error_free(err);
    free(results);
}

static Error *run_function(KernelContext *k) {
    DataType *types = NULL;
    int count = 0;
    Str value = STR(""), function = STR("");
    Error *err = node_attr_types(k->node, "Tin", &types, &count);
    free(types);
    if (!err && (count < 1 || count > k->input_count)) err = error_invalid("Tin does not fit the inputs");
    for (int i = 0; !err && i < count; i++)
        if (k->in[i]->dtype == DT_RESOURCE)
            err = error_invalid("BatchFunction cannot take resource inputs but input %d is a resource.", i);
    if (!err && (!node_attr(k->node, "f", &value) || !attr_func(value, &function)))
        err = error_invalid("Attribute f is not a function");
    if (err) return err;
    return schedule(k, count, true, work_on_function,
                    closure_new(k, function, k->in + count, k->input_count - count));
}

const KernelDef batch_ops_cpu[] = {
    {"Batch", .run = run_batch, .state_size = sizeof(BatchState), .init = init_options, .clear = clear_state,
     .flags = KERNEL_DEFERS},
    {"BatchFunction", .run = run_function, .state_size = sizeof(BatchState), .init = init_options,
     .clear = clear_state, .flags = KERNEL_DEFERS},
    {0},
};
