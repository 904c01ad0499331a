/* sync.c: training of many workers in step: synchronous with backups, or with bounded staleness.

   Synchronous, as SyncReplicasOptimizer: each variable has an accumulator beside it. A worker adds its gradients, marked with the step they belong to (late ones are
   dropped), then waits for a token. The chief's thread takes the average of `aggregate` gradients from each accumulator, applies it, counts the step, and puts a
   token with the new step into the queue for each worker.

   Bounded staleness: a worker that has done a step says so in a queue of its own and takes a permit from another. The chief's thread takes one message of every
   worker, that is, the slowest has done that step too, and gives each one permit. Permits for `staleness` steps are there at the start.

   A worker that leaves (its input has ended, the last step is done) would keep the others waiting for ever: unless enough of them are left, it sends each a token that
   says the end. */
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "train/graph_internal.h"
#include "train/optimizer_internal.h"

/* On the device of the global step, where all workers find it. */
static RillTensor shared_queue(RillGraph *g, const char *name) {
    TF_DataType type = TF_INT64;
    RillShape scalar = {0};
    graph_push_absolute(g, "");
    rill_device_push(g, TF_OperationDevice(rill_global_step(g)->parts[0].handle.oper));
    RillAttr attrs[] = {RILL_TYPES("component_types", &type, 1), {"shapes", RILL_ATTR_SHAPES, {0}, &scalar, 1}, RILL_STRING("shared_name", name)};
    RillTensor queue = rill_op(g, "FIFOQueueV2", name, NULL, 0, attrs, 3);
    rill_device_pop(g);
    rill_name_pop(g);
    return queue;
}

static TF_Operation *enqueue(RillGraph *g, RillTensor queue, RillTensor value) {
    return rill_operation(g, "QueueEnqueueV2", NULL, (RillTensor[]){queue, value}, 2, NULL, 0);
}

/* dims: a vector of one int32, how many. */
static TF_Operation *enqueue_some(RillGraph *g, RillTensor queue, RillTensor value, RillTensor dims) {
    RillTensor copies = rill_op(g, "Fill", NULL, (RillTensor[]){dims, value}, 2, NULL, 0);
    return rill_operation(g, "QueueEnqueueManyV2", NULL, (RillTensor[]){queue, copies}, 2, NULL, 0);
}

static TF_Operation *enqueue_copies(RillGraph *g, RillTensor queue, RillTensor value, int count) {
    return enqueue_some(g, queue, value, rill_const_i32s(g, (int32_t[]){count}, 1));
}

static RillTensor dequeue(RillGraph *g, RillTensor queue) {
    TF_DataType type = TF_INT64;
    return rill_op(g, "QueueDequeueV2", NULL, &queue, 1, (RillAttr[]){RILL_TYPES("component_types", &type, 1)}, 1);
}

/* A token that says the end becomes OutOfRange, as if an input had ended: a queue that is closed and empty is asked for more. Others are passed on. */
static RillTensor token_or_end(RillGraph *g, RillTensor token) {
    TF_DataType type = TF_INT64;
    TF_Operation *by_kind = rill_operation(g, "Switch", NULL, (RillTensor[]){token, rill_binary(g, "Less", token, rill_const_i64(g, 0))}, 2, NULL, 0);
    TF_Operation *over = rill_operation(g, "Identity", NULL, &(RillTensor){by_kind, 1}, by_kind ? 1 : 0, NULL, 0);
    RillTensor queue = rill_op(g, "FIFOQueueV2", "the_training_is_over", NULL, 0, (RillAttr[]){RILL_TYPES("component_types", &type, 1)}, 1);
    rill_control_push(g, &over, 1);
    TF_Operation *closed = rill_operation(g, "QueueCloseV2", NULL, &queue, 1, NULL, 0);
    rill_control_pop(g);
    rill_control_push(g, &closed, 1);
    RillTensor never = dequeue(g, queue);
    rill_control_pop(g);
    return rill_op(g, "Merge", NULL, (RillTensor[]){{by_kind, 0}, never}, 2, NULL, 0);
}

/* Takes out what an earlier session left. */
static void drain_at_start(RillGraph *g, RillTensor queue) {
    TF_DataType type = TF_INT64;
    RillTensor size = rill_unary(g, "QueueSizeV2", queue);
    RillTensor old = rill_op(g, "QueueDequeueManyV2", NULL, (RillTensor[]){queue, size}, 2, (RillAttr[]){RILL_TYPES("component_types", &type, 1)}, 1);
    graph_list_add(g, LIST_CHIEF_STARTS, (RillListItem){.op = old.oper});
}

/* ---- Synchronous ---- */

/* The accumulator of one gradient: the worker's side and the chief's. */
typedef struct Accumulated {
    RillTensor handle;
    TF_Operation *apply;
    RillGradient average;
} Accumulated;

static Accumulated accumulate(RillGraph *g, const RillGradient *d, RillTensor local_step, int aggregate) {
    const VariablePart *p = &d->variable->parts[d->part];
    TF_DataType type = d->variable->type;
    int64_t dims[8];
    for (int i = 0; i < d->variable->shape.rank; i++) dims[i] = i ? d->variable->shape.dims[i] : p->rows;
    char *name = xasprintf("%s/grad_accum", TF_OperationName(p->handle.oper));
    RillAttr attrs[] = {RILL_TYPE("dtype", type), RILL_DIMS("shape", dims, d->variable->shape.rank), RILL_STRING("shared_name", name)};
    Accumulated a = {.average = *d};
    bool is_sparse = tensor_ok(d->indices);
    graph_push_absolute(g, "");
    rill_device_push(g, TF_OperationDevice(p->handle.oper));
    RillTensor required = rill_const_i32(g, aggregate);
    a.handle = rill_op(g, is_sparse ? "SparseConditionalAccumulator" : "ConditionalAccumulator", name, NULL, 0, attrs, 3);
    if (is_sparse) {
        RillTensor empty = rill_const(g, "shape", TF_INT64, (int64_t[]){0}, 1, NULL);
        RillTensor in[] = {a.handle, local_step, rill_cast(g, d->indices, TF_INT64), d->values, empty};
        a.apply = rill_operation(g, "SparseAccumulatorApplyGradient", NULL, in, 5, (RillAttr[]){RILL_BOOL("has_known_shape", false)}, 1);
        TF_Operation *take = rill_operation(g, "SparseAccumulatorTakeGradient", NULL, (RillTensor[]){a.handle, required}, 2, (RillAttr[]){RILL_TYPE("dtype", type)}, 1);
        a.average.indices = take ? (RillTensor){take, 0} : NO_TENSOR;
        a.average.values = take ? (RillTensor){take, 1} : NO_TENSOR;
    } else {
        a.apply = rill_operation(g, "AccumulatorApplyGradient", NULL, (RillTensor[]){a.handle, local_step, d->values}, 3, NULL, 0);
        a.average.values = rill_op(g, "AccumulatorTakeGradient", NULL, (RillTensor[]){a.handle, required}, 2, (RillAttr[]){RILL_TYPE("dtype", type)}, 1);
    }
    rill_device_pop(g);
    rill_name_pop(g);
    free(name);
    return a;
}

/* The chief's part: averages applied, accumulators moved on, tokens given out. */
static void add_chief(RillGraph *g, const RillOptimizer *o, const Accumulated *all, int count, RillTensor tokens, int aggregate, int workers,
                      const RillAverages *moving) {
    RillGradient *averages = xcalloc((size_t)count + 1, sizeof *averages);
    TF_Operation **moved = xcalloc((size_t)count + 1, sizeof *moved);
    for (int i = 0; i < count; i++) averages[i] = all[i].average;
    rill_device_push(g, TF_OperationDevice(rill_global_step(g)->parts[0].handle.oper));
    TF_Operation *applied = rill_apply_gradients(g, o, averages, count, true);
    if (moving) applied = rill_averages_update(moving, applied);
    rill_control_push(g, &applied, 1);
    RillTensor now = rill_variable_read(g, rill_global_step(g));
    for (int i = 0; i < count; i++) {
        rill_device_push(g, TF_OperationDevice(all[i].handle.oper));
        moved[i] = rill_operation(g, "AccumulatorSetGlobalStep", NULL, (RillTensor[]){all[i].handle, now}, 2, NULL, 0);
        rill_device_pop(g);
    }
    rill_control_push(g, moved, count);
    TF_Operation *sync = enqueue_copies(g, tokens, now, workers);
    rill_control_pop(g);
    rill_control_pop(g);
    /* At first nobody has a token before all have sent a gradient, so that each counts once; with more gradients than workers some must send two. A chief that comes back
     * does not know who still waits for a token of the last step: it gives one to each. */
    RillTensor step = rill_variable_value(rill_global_step(g));
    RillTensor resumed = rill_cast(g, rill_binary(g, "Greater", step, rill_const_i64(g, 0)), TF_INT32);
    RillTensor spare = rill_const_i32(g, aggregate > workers ? aggregate - workers : 0);
    RillTensor amount = rill_add(g, rill_mul(g, resumed, rill_const_i32(g, workers)), spare);
    TF_Operation *start = enqueue_some(g, tokens, step, rill_reshape(g, amount, (int64_t[]){1}, 1));
    /* After a recovery the accumulators of tasks that lived on still stand at the old step, and may hold half an average. */
    RillTensor begin = rill_variable_read(g, rill_global_step(g));
    for (int i = 0; i < count; i++) {
        rill_device_push(g, TF_OperationDevice(all[i].handle.oper));
        TF_Operation *reset = rill_operation(g, "AccumulatorSetGlobalStep", NULL, (RillTensor[]){all[i].handle, begin}, 2, NULL, 0);
        rill_device_pop(g);
        graph_list_add(g, LIST_CHIEF_STARTS, (RillListItem){.op = reset});
    }
    drain_at_start(g, tokens);
    graph_list_add(g, LIST_CHIEF_STARTS, (RillListItem){.op = start});
    queue_runner_add(g, tokens, &sync, 1, true);
    rill_device_pop(g);
    free(moved);
    free(averages);
}

/* The chief ends the training for all, another worker when too few are left for an update. */
static void add_leave(RillGraph *g, RillTensor tokens, int aggregate, int workers, bool is_chief) {
    RillTensor end = rill_const_i64(g, -1), left = shared_queue(g, "sync_left_q");
    if (is_chief) {
        drain_at_start(g, left);
        graph_list_add(g, LIST_LEAVES, (RillListItem){.op = enqueue_copies(g, tokens, end, workers)});
        return;
    }
    TF_Operation *said = enqueue(g, left, end);
    rill_control_push(g, &said, 1);
    RillTensor gone = rill_unary(g, "QueueSizeV2", left);
    rill_control_pop(g);
    RillTensor too_few = rill_cast(g, rill_binary(g, "Greater", gone, rill_const_i32(g, workers - aggregate)), TF_INT32);
    RillTensor amount = rill_mul(g, too_few, rill_const_i32(g, workers));
    graph_list_add(g, LIST_LEAVES, (RillListItem){.op = enqueue_some(g, tokens, end, rill_reshape(g, amount, (int64_t[]){1}, 1))});
}

TF_Operation *rill_minimize_sync(RillGraph *g, const RillTask *task, const RillOptimizer *o, RillTensor loss, const RillSync *sync) {
    int workers = sync && sync->workers ? sync->workers : rill_task_workers(task), aggregate = sync && sync->aggregate ? sync->aggregate : workers, count = 0, used = 0;
    RillGradient *gradients = rill_compute_gradients(g, optimizer_loss(g, loss), &count);
    if (!gradients) return NULL;
    optimizer_clip(g, o, gradients, count);
    RillVariable *local_step = rill_variable(g, "sync_rep_local_step", NULL, 0,
        &(RillVariableOptions){.type = TF_INT64, .local = true, .init = {.kind = RILL_INIT_TENSOR, .tensor = rill_variable_value(rill_global_step(g))}});
    Accumulated *all = xcalloc((size_t)count + 1, sizeof *all);
    TF_Operation **applied = xcalloc((size_t)count + 1, sizeof *applied);
    rill_name_push(g, "sync_replicas");
    RillTensor tokens = shared_queue(g, "sync_token_q");
    for (int i = 0; i < count && !rill_graph_failed(g); i++) {
        if (!tensor_ok(gradients[i].values)) continue;
        all[used] = accumulate(g, &gradients[i], rill_variable_value(local_step), aggregate);
        applied[used] = all[used].apply;
        used++;
    }
    if (!used) rill_graph_fail(g, TF_INVALID_ARGUMENT, "The loss depends on no trainable variable");
    TF_Operation *train = NULL;
    if (!rill_graph_failed(g)) {
        rill_control_push(g, applied, used);
        RillTensor token = dequeue(g, tokens);
        rill_control_pop(g);
        train = rill_assign(g, local_step, token_or_end(g, token));
        add_leave(g, tokens, aggregate, workers, rill_task_is_chief(task));
        if (rill_task_is_chief(task)) add_chief(g, o, all, used, tokens, aggregate, workers, sync ? sync->averages : NULL);
    }
    rill_name_pop(g);
    free(applied);
    free(all);
    free(gradients);
    return optimizer_with_updates(g, train);
}

/* ---- Bounded staleness ---- */

/* One message of every worker becomes one permit for each: an end if one of them was. The chief, worker 0, gets its permit last: when it leaves, all others have
 * permits for as many steps as it has done. */
static TF_Operation *add_round(RillGraph *g, const RillTensor *done, const RillTensor *permits, int workers) {
    RillTensor least = dequeue(g, done[0]);
    for (int i = 1; i < workers; i++) least = rill_binary(g, "Minimum", least, dequeue(g, done[i]));
    TF_Operation *given = NULL;
    for (int i = workers - 1; i >= 0; i--) {
        rill_control_push(g, &given, 1);
        given = enqueue(g, permits[i], least);
        rill_control_pop(g);
    }
    return given;
}

TF_Operation *rill_minimize_bounded(RillGraph *g, const RillTask *task, const RillOptimizer *o, RillTensor loss, int staleness) {
    int workers = rill_task_workers(task), own = rill_task_index(task);
    if (staleness < 0) rill_graph_fail(g, TF_INVALID_ARGUMENT, "A staleness of %d steps is none", staleness);
    /* A chief counts as worker 0, the workers follow. */
    if (!rill_task_is_chief(task) && rill_task_count(task, "chief") + rill_task_count(task, "master")) own++;
    TF_Operation *update = rill_minimize(g, o, loss);
    if (!update) return NULL;
    rill_name_push(g, "bounded_staleness");
    RillTensor one = rill_const_i64(g, 1), *done = xcalloc((size_t)workers, sizeof *done), *permits = xcalloc((size_t)workers, sizeof *permits);
    for (int i = 0; i < workers; i++) {
        char name[64];
        snprintf(name, sizeof name, "stale_done_%d", i);
        done[i] = shared_queue(g, name);
        snprintf(name, sizeof name, "stale_permit_%d", i);
        permits[i] = shared_queue(g, name);
    }
    rill_control_push(g, &update, 1);
    TF_Operation *said = enqueue(g, done[own], one);
    rill_control_pop(g);
    rill_control_push(g, &said, 1);
    RillTensor permit = dequeue(g, permits[own]);
    rill_control_pop(g);
    permit = token_or_end(g, permit);
    if (!rill_task_is_chief(task)) graph_list_add(g, LIST_LEAVES, (RillListItem){.op = enqueue(g, done[own], rill_const_i64(g, -1))});
    if (rill_task_is_chief(task)) {
        TF_Operation *round = add_round(g, done, permits, workers);
        queue_runner_add(g, permits[0], &round, 1, true);
        for (int i = 0; i < workers; i++) graph_list_add(g, LIST_LEAVES, (RillListItem){.op = enqueue(g, permits[i], rill_const_i64(g, -1))});
        for (int i = 0; i < workers; i++) {
            drain_at_start(g, done[i]);
            drain_at_start(g, permits[i]);
        }
        for (int i = 0; staleness && i < workers; i++) graph_list_add(g, LIST_CHIEF_STARTS, (RillListItem){.op = enqueue_copies(g, permits[i], one, staleness)});
    }
    rill_name_pop(g);
    free(done);
    free(permits);
    return permit.oper;
}
