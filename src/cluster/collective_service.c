/* collective_service.c: CompleteGroup and CompleteInstance wait in the group table; GetStepSequence answers at once. */
#include "cluster/collective_service.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/refcount.h"
#include "cluster/codec.h"
#include "cluster/services.h"
#include "placement/device_name.h"
#include "proto/worker.pb-c.h"

/* A call of a member that waits for the others. */
typedef struct LeaderWait {
    RefCount refs; /* the handler, and whoever answers */
    GroupTable *groups;
    ServerCall *call;
    void *request;
    int32_t group_key;
    bool is_instance;
    InstanceJoin instance; /* points into the request */
    pthread_mutex_t mutex; /* guards all below */
    bool waiting;   /* in the table, or already answered */
    bool cancelled; /* before it was waiting */
} LeaderWait;

static void wait_unref(LeaderWait *w) {
    if (!refcount_dec(&w->refs)) return;
    pthread_mutex_destroy(&w->mutex);
    service_free(w->request);
    free(w);
}

static void withdraw(LeaderWait *w) {
    bool withdrawn = w->is_instance ? group_table_instance_withdraw(w->groups, &w->instance, w) : group_table_withdraw(w->groups, w->group_key, w);
    if (!withdrawn) return;
    server_call_fail(w->call, error_new(CODE_CANCELLED, "The member of group %d no longer waits", w->group_key));
    wait_unref(w);
}

static void member_gone(void *arg) {
    LeaderWait *w = arg;
    pthread_mutex_lock(&w->mutex);
    bool waiting = w->waiting;
    w->cancelled = true;
    pthread_mutex_unlock(&w->mutex);
    if (waiting) withdraw(w);
}

static LeaderWait *wait_begin(Services *s, ServerCall *call, void *request, int32_t group_key) {
    LeaderWait *w = xcalloc(1, sizeof *w);
    refcount_init(&w->refs);
    refcount_inc(&w->refs);
    pthread_mutex_init(&w->mutex, NULL);
    w->groups = worker_groups(s->worker);
    w->call = call;
    w->request = request;
    w->group_key = group_key;
    server_call_watch(call, member_gone, w);
    return w;
}

static void wait_on(LeaderWait *w) {
    pthread_mutex_lock(&w->mutex);
    w->waiting = true;
    bool cancelled = w->cancelled;
    pthread_mutex_unlock(&w->mutex);
    if (cancelled) withdraw(w);
    wait_unref(w);
}

/* ---- CompleteGroup ---- */

static void reply_group(ServerCall *call, const Group *g) {
    Pb__CompleteGroupResponse reply = PB__COMPLETE_GROUP_RESPONSE__INIT;
    Pb__DeviceAttributes *rows = xcalloc((size_t)g->size, sizeof *rows);
    reply.group_key = g->key;
    reply.group_size = g->size;
    reply.device_type = g->device_type;
    reply.num_tasks = g->task_count;
    reply.device_attributes = xcalloc((size_t)g->size, sizeof *reply.device_attributes);
    for (; reply.n_device_attributes < (size_t)g->size; reply.n_device_attributes++) {
        const GroupMember *member = &g->members[reply.n_device_attributes];
        Pb__DeviceAttributes *row = reply.device_attributes[reply.n_device_attributes] = &rows[reply.n_device_attributes];
        pb__device_attributes__init(row);
        row->name = member->device;
        row->device_type = g->device_type;
        row->memory_limit = member->memory_limit;
        row->incarnation = member->incarnation;
        row->xla_global_id = -1;
    }
    service_reply(call, &reply.base);
    free(reply.device_attributes);
    free(rows);
}

static void group_complete(void *arg, Error *err, Group *group) {
    LeaderWait *w = arg;
    server_call_unwatch(w->call);
    if (err)
        server_call_fail(w->call, err);
    else
        reply_group(w->call, group);
    group_unref(group);
    wait_unref(w);
}

static Error *check_group(const Pb__CompleteGroupRequest *r) {
    if (!r->device_attributes)
        return error_internal("CompleteGroupRequest device_attributes is not set. Make sure you're running the same version of Tensorflow on all workers.");
    if (r->group_size <= 0) return error_invalid("group_size must be positive integer but got %d", r->group_size);
    DeviceName name;
    return device_name_parse(str_of(r->device_attributes->name), &name);
}

void collective_service_group(void *arg, ServerCall *call) {
    Pb__CompleteGroupRequest *r = service_request(call, &pb__complete_group_request__descriptor);
    if (!r) return;
    Error *err = check_group(r);
    if (err) {
        server_call_fail(call, err);
        service_free(r);
        return;
    }
    LeaderWait *w = wait_begin(arg, call, r, r->group_key);
    Str device = str_of(r->device_attributes->name);
    GroupJoin join = {.key = r->group_key, .size = r->group_size, .device_type = str_of(r->device_type), .device = device, .task = device_task_text(device),
                      .incarnation = r->device_attributes->incarnation, .memory_limit = r->device_attributes->memory_limit, .asks_again = r->asks_again};
    group_table_join(w->groups, &join, group_complete, w);
    wait_on(w);
}

/* ---- CompleteInstance ---- */

static void instance_complete(void *arg, Error *err, int source_rank) {
    LeaderWait *w = arg;
    server_call_unwatch(w->call);
    if (err) {
        server_call_fail(w->call, err);
    } else {
        Pb__CompleteInstanceResponse reply = PB__COMPLETE_INSTANCE_RESPONSE__INIT;
        reply.instance_key = w->instance.instance_key;
        reply.source_rank = source_rank;
        service_reply(w->call, &reply.base);
    }
    wait_unref(w);
}

void collective_service_instance(void *arg, ServerCall *call) {
    Pb__CompleteInstanceRequest *r = service_request(call, &pb__complete_instance_request__descriptor);
    if (!r) return;
    Shape shape = SHAPE_SCALAR;
    Error *err = shape_decode(codec_str(r->shape), &shape);
    if (!err) err = shape_check(&shape);
    if (err) {
        server_call_fail(call, error_wrap(err, "CompleteInstance of %s", r->name));
        service_free(r);
        return;
    }
    LeaderWait *w = wait_begin(arg, call, r, r->group_key);
    w->is_instance = true;
    w->instance = (InstanceJoin){
        .group_key = r->group_key,
        .instance_key = r->instance_key,
        .group_size = r->group_size,
        .step_id = r->step_id,
        .type = (CollectiveType)r->type,
        .dtype = (DataType)r->data_type,
        .shape = shape,
        .name = str_of(r->name),
        .device = str_of(r->device),
        .device_type = str_of(r->device_type),
        .is_source = r->is_source,
    };
    group_table_instance(w->groups, &w->instance, instance_complete, w);
    wait_on(w);
}

/* ---- GetStepSequence ---- */

/* Asked of the leader of a group of collectives by the other masters. */
void collective_service_step_sequence(void *arg, ServerCall *call) {
    Pb__GetStepSequenceRequest *request = service_request(call, &pb__get_step_sequence_request__descriptor);
    if (!request) return;
    Pb__GetStepSequenceResponse reply = PB__GET_STEP_SEQUENCE_RESPONSE__INIT;
    Pb__StepSequence *rows = xcalloc(request->n_graph_key, sizeof *rows);
    reply.step_sequence = xcalloc(request->n_graph_key, sizeof *reply.step_sequence);
    for (; reply.n_step_sequence < request->n_graph_key; reply.n_step_sequence++) {
        Pb__StepSequence *row = reply.step_sequence[reply.n_step_sequence] = &rows[reply.n_step_sequence];
        pb__step_sequence__init(row);
        row->graph_key = request->graph_key[reply.n_step_sequence];
        row->next_step_id = step_sequence_lead(worker_step_sequences(((Services *)arg)->worker), row->graph_key);
    }
    service_reply(call, &reply.base);
    free(reply.step_sequence);
    free(rows);
    service_free(request);
}
