/* collective.c: group, instance, moves, one after the other; a watchdog where there is a timeout. */
#include "collective/collective.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/refcount.h"
#include "base/thread.h"
#include "placement/device_name.h"

typedef struct Run {
    RefCount refs; /* itself until the end, the watchdog */
    CollectiveRequest request;
    CollectiveSession *session; /* NULL: no cluster */
    bool only_joins;
    CollectiveDone *done;
    void *arg;
    Group *group;
    Tensor *scratch; /* (optional) what is merged, of which the output is a part */
    char *exec_key;
    Latch over; /* for the watchdog */
    pthread_mutex_t mutex; /* guards all below */
    bool has_ended, is_agreed; /* is_agreed: with the other members */
} Run;

static void run_unref(Run *run) {
    if (!refcount_dec(&run->refs)) return;
    group_unref(run->group);
    tensor_unref(run->scratch);
    free(run->exec_key);
    latch_clear(&run->over);
    pthread_mutex_destroy(&run->mutex);
    free(run);
}

/* ---- Ending ---- */

static bool is_loss(const Error *err) {
    return err->code == CODE_UNAVAILABLE || err->restarted;
}

static void end_run(Run *run, Error *err) {
    const CollectiveRequest *q = &run->request;
    pthread_mutex_lock(&run->mutex);
    run->has_ended = true;
    pthread_mutex_unlock(&run->mutex);
    latch_done(&run->over);
    if (err && run->session) {
        const CollectiveLink *link = collective_session_link(run->session);
        collective_session_forget(run->session, q->group_key);
        if (is_loss(err)) link->lose_group(link->self, q->group_key);
    }
    if (!err && q->out && q->out->dtype == DT_BOOL) tensor_normalize_bools(q->out);
    run->done(run->arg, err);
    run_unref(run);
}

/* Takes err: nothing of the collective is under way. */
static void fail_run(Run *run, Error *err) {
    Error *consequence = error_derived(error_copy(err));
    rendezvous_abort(run->request.step->rendezvous, consequence);
    error_free(consequence);
    end_run(run, err);
}

static void set_agreed(Run *run) {
    pthread_mutex_lock(&run->mutex);
    run->is_agreed = true;
    pthread_mutex_unlock(&run->mutex);
}

/* ---- Timeout ---- */

static Error *timeout_error(Run *run, bool is_agreed) {
    const CollectiveRequest *q = &run->request;
    if (is_agreed || !run->session)
        return error_new(CODE_DEADLINE_EXCEEDED, "Collective has timed out during execution. (%.*s, group %d, instance %d, after %g s)", STR_ARG(q->name), q->group_key,
                         q->instance_key, (double)q->timeout_s);
    const CollectiveLink *link = collective_session_link(run->session);
    char *who = link->waits_for(link->self, q->group_key);
    Error *err = error_new(CODE_DEADLINE_EXCEEDED, "Collective has timed out waiting for other workers. (%.*s, group %d of size %d, after %g s: %s)", STR_ARG(q->name),
                           q->group_key, q->group_size, (double)q->timeout_s, who);
    free(who);
    return err;
}

static const double MAX_TIMEOUT_S = 1e9; /* more is for ever */

/* On a thread that may wait. Whatever the collective waits for hears of the abort. */
static void watch(void *arg) {
    Run *run = arg;
    double seconds = (double)run->request.timeout_s;
    if (!latch_wait_for(&run->over, seconds < MAX_TIMEOUT_S ? (int64_t)(seconds * 1000) : -1)) {
        pthread_mutex_lock(&run->mutex); /* the step lives as long as the collective has not ended */
        bool is_late = !run->has_ended;
        Rendezvous *r = is_late ? rendezvous_ref(run->request.step->rendezvous) : NULL;
        Error *err = is_late ? timeout_error(run, run->is_agreed) : NULL;
        pthread_mutex_unlock(&run->mutex);
        if (is_late) rendezvous_abort(r, err);
        error_free(err);
        rendezvous_unref(r);
    }
    run_unref(run);
}

/* ---- Carrying out ---- */

static const RowMath *math_of(DataType dtype) {
    switch (dtype) {
    case DT_FLOAT: return &row_math_float;
    case DT_DOUBLE: return &row_math_double;
    case DT_HALF: return &row_math_half;
    case DT_BFLOAT16: return &row_math_bfloat16;
    case DT_INT32: return &row_math_int32;
    case DT_INT64: return &row_math_int64;
    default: return NULL;
    }
}

static RowFn *merge_of(const RowMath *math, MergeOp op) {
    return op == MERGE_ADD ? math->add : op == MERGE_MUL ? math->mul : op == MERGE_MIN ? math->min : math->max;
}

static void moved(void *arg, Error *err) {
    Run *run = arg;
    const Tensor *out = run->request.out;
    if (!err && run->scratch) {
        int rank = group_rank(run->group, str_of(run->request.device->name));
        memcpy(out->data, (char *)run->scratch->data + (size_t)rank * tensor_bytes(out), tensor_bytes(out));
    }
    end_run(run, err);
}

static void carry_out(Run *run, int source_rank) {
    const CollectiveRequest *q = &run->request;
    MovesContext c = {
        .link = run->session ? collective_session_link(run->session) : NULL,
        .rendezvous = q->step->rendezvous,
        .pool = q->step->pool,
        .group = run->group,
        .rank = group_rank(run->group, str_of(q->device->name)),
        .in = q->in,
        .out = q->out,
    };
    Error *err = NULL;
    bool merges = q->type == COLLECTIVE_REDUCE || q->type == COLLECTIVE_REDUCE_SCATTER;
    const RowMath *math = merges ? math_of(q->out->dtype) : NULL;
    if (merges && !math) err = error_unimplemented("Collectives of type %s cannot be merged", dtype_name(q->out->dtype));
    if (math) c.merge = merge_of(math, q->merge);
    if (math && q->divides) c.divide = math->divide;
    if (c.rank < 0) err = error_internal("Device %s is not a member of group %d", q->device->name, q->group_key);
    if (!err && q->type == COLLECTIVE_REDUCE_SCATTER) err = tensor_new(q->in->dtype, &q->in->shape, &run->scratch);
    if (err) {
        fail_run(run, err);
        return;
    }
    if (run->scratch) c.out = run->scratch;
    Moves *m = moves_new(&c);
    switch (q->type) {
    case COLLECTIVE_REDUCE: err = ring_reduce(m, &c, run->exec_key, &q->subdivs); break;
    case COLLECTIVE_BROADCAST: tree_broadcast(m, &c, run->exec_key, source_rank); break;
    case COLLECTIVE_GATHER: ring_gather(m, &c, run->exec_key); break;
    case COLLECTIVE_ALL_TO_ALL: all_to_all(m, &c, run->exec_key); break;
    case COLLECTIVE_REDUCE_SCATTER: ring_reduce_scatter(m, &c, run->exec_key); break;
    case COLLECTIVE_PERMUTE: break;
    }
    if (err) {
        moves_free(m);
        fail_run(run, err);
    } else {
        moves_start(m, moved, run);
    }
}

/* ---- Agreeing ---- */

static InstanceJoin instance_of(const CollectiveRequest *q) {
    static const int64_t first[] = {0}; /* what a broadcast says */
    bool is_broadcast = q->type == COLLECTIVE_BROADCAST;
    return (InstanceJoin){
        .group_key = q->group_key,
        .instance_key = q->instance_key,
        .group_size = q->group_size,
        .type = q->type,
        .dtype = q->out->dtype,
        .shape = q->out->shape,
        .name = q->name,
        .device = str_of(q->device->name),
        .device_type = str_of(q->device->kind->type),
        .is_source = q->is_source,
        .subdivs = is_broadcast ? first : q->subdivs.offsets,
        .subdiv_count = is_broadcast ? 1 : q->subdivs.count,
    };
}

static void instance_joined(void *arg, Error *err, int source_rank) {
    Run *run = arg;
    const CollectiveRequest *q = &run->request;
    if (err) {
        fail_run(run, err);
        return;
    }
    KnownInstance known = {q->type, q->out->dtype, q->out->shape, source_rank};
    collective_session_set_instance(run->session, q->group_key, q->instance_key, &known);
    set_agreed(run);
    carry_out(run, source_rank);
}

static void agree_on_instance(Run *run) {
    const CollectiveRequest *q = &run->request;
    KnownInstance known;
    InstanceJoin join = instance_of(q);
    if (collective_session_instance(run->session, q->group_key, q->instance_key, &known)) {
        Error *err = q->agrees_once ? NULL : instance_check(&join, known.type, known.dtype, &known.shape);
        set_agreed(run);
        if (err)
            fail_run(run, err);
        else
            carry_out(run, known.source_rank);
        return;
    }
    const CollectiveLink *link = collective_session_link(run->session);
    link->join_instance(link->self, q->step->rendezvous, &join, instance_joined, run);
}

static void group_joined(void *arg, Error *err, Group *group) {
    Run *run = arg;
    run->group = group;
    if (err) {
        fail_run(run, err);
        return;
    }
    collective_session_set_group(run->session, group);
    if (run->only_joins)
        end_run(run, NULL);
    else
        agree_on_instance(run);
}

/* Without a cluster there is only this device. */
static void run_alone(Run *run) {
    const CollectiveRequest *q = &run->request;
    if (q->group_size != 1) {
        fail_run(run, error_new(CODE_FAILED_PRECONDITION, "%.*s has group_size %d, but this session has no other tasks", STR_ARG(q->name), q->group_size));
        return;
    }
    GroupMember self = {.device = q->device->name, .task = q->device->name};
    run->group = group_new(q->group_key, str_of(q->device->kind->type), &self, 1);
    if (run->only_joins)
        end_run(run, NULL);
    else
        carry_out(run, 0);
}

static void start(const CollectiveRequest *q, bool only_joins, CollectiveDone *done, void *arg) {
    Run *run = xcalloc(1, sizeof *run);
    refcount_init(&run->refs);
    pthread_mutex_init(&run->mutex, NULL);
    latch_init(&run->over, 1);
    run->request = *q;
    run->only_joins = only_joins;
    run->session = q->step->session ? session_collectives(q->step->session) : NULL;
    run->done = done;
    run->arg = arg;
    run->exec_key = xasprintf("%d:%d:%llu:%lld", q->group_key, q->instance_key, (unsigned long long)q->frame_id, (long long)q->iteration);
    if (q->timeout_s > 0 && q->step->blocking) {
        refcount_inc(&run->refs);
        threadpool_post(q->step->blocking, watch, run);
    }
    if (!run->session) {
        run_alone(run);
        return;
    }
    run->group = collective_session_group(run->session, q->group_key);
    if (run->group && run->group->size == q->group_size) {
        if (only_joins)
            end_run(run, NULL);
        else
            agree_on_instance(run);
        return;
    }
    group_unref(run->group);
    run->group = NULL;
    Str device = str_of(q->device->name);
    GroupJoin join = {.key = q->group_key, .size = q->group_size, .device_type = str_of(q->device->kind->type), .device = device, .task = device_task_text(device),
                      .incarnation = q->device->incarnation, .memory_limit = q->device->memory_limit};
    const CollectiveLink *link = collective_session_link(run->session);
    link->join_group(link->self, q->step->rendezvous, &join, group_joined, run);
}

void collective_start(const CollectiveRequest *q, CollectiveDone *done, void *arg) {
    start(q, false, done, arg);
}

void collective_join(const CollectiveRequest *q, CollectiveDone *done, void *arg) {
    start(q, true, done, arg);
}
