/* collective_link.c: CompleteGroup and CompleteInstance at the leader, which may be this task; RecvBuf at the members.

   None of the calls has a deadline. Each also waits in the rendezvous of its step under a key of its own that nobody sends: an abort wakes it there. */
#include "cluster/collective_link.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/refcount.h"
#include "cluster/codec.h"
#include "cluster/random_id.h"
#include "cluster/remote_rendezvous.h"
#include "placement/device_name.h"
#include "proto/worker.pb-c.h"

typedef struct LeaderCall {
    RefCount refs; /* the answer, the waiter in the rendezvous, who starts it */
    WorkerSession *session;
    Rendezvous *rendezvous;
    char *key; /* in the rendezvous */
    GroupTable *table; /* this task is the leader; else NULL */
    int32_t group_key;
    InstanceJoin instance; /* with strings of its own; when there is an instance_done */
    char *device;
    GroupDone *group_done;
    InstanceDone *instance_done;
    void *arg;
    pthread_mutex_t mutex; /* guards all below */
    Call *call;
    bool finished, cancel_asked;
} LeaderCall;

static void leader_unref(LeaderCall *c) {
    if (!refcount_dec(&c->refs)) return;
    if (c->call) call_unref(c->call);
    rendezvous_unref(c->rendezvous);
    worker_session_unref(c->session);
    pthread_mutex_destroy(&c->mutex);
    free(c->device);
    free(c->key);
    free(c);
}

/* True for the one who may report the outcome. */
static bool finish(LeaderCall *c) {
    pthread_mutex_lock(&c->mutex);
    bool first = !c->finished;
    c->finished = true;
    pthread_mutex_unlock(&c->mutex);
    return first;
}

static void report(LeaderCall *c, Error *err, Group *group, int source_rank) {
    if (!finish(c)) {
        error_free(err);
        group_unref(group);
    } else if (c->group_done) {
        c->group_done(c->arg, err, group);
    } else {
        c->instance_done(c->arg, err, source_rank);
    }
}

/* The answer is here: takes its reference of c. */
static void answered(LeaderCall *c, Error *err, Group *group, int source_rank) {
    if (err && err->code == CODE_FAILED_PRECONDITION) { /* the leader does not know the group any more: make a new session */
        err->code = CODE_ABORTED;
        err->restarted = true;
    }
    if (rendezvous_withdraw(c->rendezvous, str_of(c->key), c)) leader_unref(c);
    report(c, err, group, source_rank);
    leader_unref(c);
}

static void aborted(void *arg, Error *err, Tensor *value, bool is_dead) {
    LeaderCall *c = arg;
    (void)is_dead;
    tensor_unref(value);
    pthread_mutex_lock(&c->mutex);
    c->cancel_asked = true;
    Call *call = c->call;
    pthread_mutex_unlock(&c->mutex);
    bool withdrawn = c->table && (c->group_done ? group_table_withdraw(c->table, c->group_key, c) : group_table_instance_withdraw(c->table, &c->instance, c));
    report(c, err, NULL, -1);
    if (call) call_cancel(call);
    if (withdrawn) leader_unref(c);
    leader_unref(c);
}

static LeaderCall *leader_call_new(WorkerSession *s, Rendezvous *r, int32_t group_key, void *arg) {
    static _Atomic uint64_t count; /* so that no two wait under the same key */
    LeaderCall *c = xcalloc(1, sizeof *c);
    refcount_init(&c->refs);
    refcount_inc(&c->refs);
    refcount_inc(&c->refs);
    pthread_mutex_init(&c->mutex, NULL);
    c->session = worker_session_ref(s);
    c->rendezvous = rendezvous_ref(r);
    c->key = xasprintf("leader of group %d;%llu", group_key, (unsigned long long)atomic_fetch_add(&count, 1));
    c->group_key = group_key;
    c->arg = arg;
    return c;
}

/* The table has been asked: from now on an abort withdraws. Takes the starter's reference. */
static void await_table(LeaderCall *c) {
    rendezvous_recv(c->rendezvous, str_of(c->key), aborted, c);
    pthread_mutex_lock(&c->mutex);
    bool finished = c->finished;
    pthread_mutex_unlock(&c->mutex);
    if (finished && rendezvous_withdraw(c->rendezvous, str_of(c->key), c)) leader_unref(c);
    leader_unref(c);
}

/* Takes the starter's reference. */
static void call_leader(LeaderCall *c, Channel *channel, const char *path, const ProtobufCMessage *request, CallDone *done) {
    Message m = {0};
    codec_pack(request, &m);
    rendezvous_recv(c->rendezvous, str_of(c->key), aborted, c);
    Call *call = channel_call(channel, path, &m, (CallOptions){0}, done, c);
    pthread_mutex_lock(&c->mutex);
    c->call = call;
    bool cancel = c->cancel_asked;
    pthread_mutex_unlock(&c->mutex);
    if (cancel) call_cancel(call);
    leader_unref(c);
}

/* ---- Groups ---- */

static Error *read_group(Message *reply, Group **out) {
    ProtobufCMessage *m = NULL;
    Error *err = codec_unpack(&pb__complete_group_response__descriptor, reply, &m);
    if (err) return err;
    Pb__CompleteGroupResponse *r = (Pb__CompleteGroupResponse *)m;
    size_t n = r->n_device_attributes;
    if (r->group_size <= 0 || (size_t)r->group_size != n) {
        err = error_internal("CompleteGroupResponse group_size doesn't match device_name list");
    } else {
        GroupMember *members = xcalloc(n, sizeof *members);
        for (size_t i = 0; i < n; i++) {
            const Pb__DeviceAttributes *d = r->device_attributes[i];
            members[i] = (GroupMember){d->name, str_dup(device_task_text(str_of(d->name))), d->incarnation, d->memory_limit, false};
        }
        *out = group_new(r->group_key, str_of(r->device_type), members, (int)n);
        for (size_t i = 0; i < n; i++) free(members[i].task);
        free(members);
    }
    protobuf_c_message_free_unpacked(m, NULL);
    return err;
}

static void group_answered(void *arg, Error *err, Message *reply) {
    LeaderCall *c = arg;
    Group *group = NULL;
    if (!err) err = read_group(reply, &group);
    answered(c, error_append(err, "\nAdditional information: CompleteGroup of group %d", c->group_key), group, -1);
}

static void group_here(void *arg, Error *err, Group *group) {
    answered(arg, err, group, -1);
}

static void join_group(void *self, Rendezvous *r, const GroupJoin *join, GroupDone *done, void *arg) {
    WorkerSession *s = self;
    Channel *channel = NULL;
    Error *err = worker_session_leader_channel(s, &channel);
    if (err) {
        done(arg, err, NULL);
        return;
    }
    LeaderCall *c = leader_call_new(s, r, join->key, arg);
    c->group_done = done;
    if (!channel) {
        GroupJoin here = *join;
        here.session = s;
        here.asks_again = true;
        c->table = worker_session_groups(s);
        group_table_join(c->table, &here, group_here, c);
        await_table(c);
        return;
    }
    Pb__DeviceAttributes device = PB__DEVICE_ATTRIBUTES__INIT;
    char *name = str_dup(join->device), *type = str_dup(join->device_type);
    device.name = name;
    device.device_type = type;
    device.memory_limit = join->memory_limit;
    device.incarnation = join->incarnation;
    device.xla_global_id = -1;
    Pb__CompleteGroupRequest request = PB__COMPLETE_GROUP_REQUEST__INIT;
    request.group_key = join->key;
    request.group_size = join->size;
    request.asks_again = true;
    request.device_type = type;
    request.device_attributes = &device;
    call_leader(c, channel, "/tensorflow.WorkerService/CompleteGroup", &request.base, group_answered);
    free(name);
    free(type);
}

/* ---- Instances ---- */

static void instance_answered(void *arg, Error *err, Message *reply) {
    LeaderCall *c = arg;
    ProtobufCMessage *m = NULL;
    int source_rank = -1;
    if (!err) err = codec_unpack(&pb__complete_instance_response__descriptor, reply, &m);
    if (!err) source_rank = ((Pb__CompleteInstanceResponse *)m)->source_rank;
    if (m) protobuf_c_message_free_unpacked(m, NULL);
    answered(c, error_append(err, "\nAdditional information: CompleteInstance of group %d, instance %d", c->group_key, c->instance.instance_key), NULL, source_rank);
}

static void instance_here(void *arg, Error *err, int source_rank) {
    answered(arg, err, NULL, source_rank);
}

static void join_instance(void *self, Rendezvous *r, const InstanceJoin *join, InstanceDone *done, void *arg) {
    WorkerSession *s = self;
    Channel *channel = NULL;
    Error *err = worker_session_leader_channel(s, &channel);
    if (err) {
        done(arg, err, -1);
        return;
    }
    LeaderCall *c = leader_call_new(s, r, join->group_key, arg);
    c->instance_done = done;
    c->instance = *join;
    c->device = str_dup(join->device);
    c->instance.device = str_of(c->device);
    if (!channel) {
        c->table = worker_session_groups(s);
        group_table_instance(c->table, &c->instance, instance_here, c);
        await_table(c);
        return;
    }
    StrBuf shape = {0};
    shape_encode(&join->shape, &shape);
    char *name = str_dup(join->name), *type = str_dup(join->device_type);
    Pb__CompleteInstanceRequest request = PB__COMPLETE_INSTANCE_REQUEST__INIT;
    request.name = name;
    request.type = (int32_t)join->type;
    request.data_type = (int32_t)join->dtype;
    request.shape = (ProtobufCBinaryData){shape.len, (uint8_t *)shape.ptr};
    request.group_key = join->group_key;
    request.group_size = join->group_size;
    request.instance_key = join->instance_key;
    request.device_type = type;
    request.device = c->device;
    request.is_source = join->is_source;
    request.step_id = join->step_id;
    int32_t *subdivs = xcalloc((size_t)join->subdiv_count, sizeof *subdivs);
    for (int i = 0; i < join->subdiv_count; i++) subdivs[i] = (int32_t)join->subdivs[i];
    request.subdiv_offset = subdivs;
    request.n_subdiv_offset = (size_t)join->subdiv_count;
    call_leader(c, channel, "/tensorflow.WorkerService/CompleteInstance", &request.base, instance_answered);
    free(subdivs);
    free(name);
    free(type);
    strbuf_clear(&shape);
}

/* ---- Members ---- */

static const RecvMethod recv_buf = {.path = "/tensorflow.WorkerService/RecvBuf",
                                    .what = "RecvBuf",
                                    .decode = codec_get_recv_buf,
                                    .align_at = codec_recv_buf_align_at,
                                    .precondition_means_restart = true};

static void recv(void *self, Rendezvous *r, const GroupMember *from, Str to_device, Str key, size_t size_bytes, RecvDone *done, void *arg) {
    WorkerSession *s = self;
    Channel *channel;
    Error *err = worker_session_channel(s, str_of(from->task), &channel);
    if (err) {
        done(arg, err, NULL, false);
        return;
    }
    char *key_text = str_dup(key), *to = str_dup(to_device);
    Pb__RecvBufRequest request = PB__RECV_BUF_REQUEST__INIT;
    request.step_id = rendezvous_step_id(r);
    request.buf_rendezvous_key = key_text;
    request.num_bytes = (int64_t)size_bytes;
    request.src_device = from->device;
    request.dst_device = to;
    request.request_id = random_id();
    request.src_incarnation = from->incarnation;
    Message m = {0};
    codec_pack(&request.base, &m);
    remote_recv_start(&recv_buf, channel, &m, s, NULL, r, key, done, arg);
    free(key_text);
    free(to);
}

static void lose_group(void *self, int32_t key) {
    group_table_forget(worker_session_groups(self), key);
}

static char *waits_for(void *self, int32_t group_key) {
    WorkerSession *s = self;
    char *here = group_table_waits_for(worker_session_groups(s), group_key);
    if (here) return here;
    Str leader = worker_session_leader(s);
    return xasprintf("the leader %.*s has not said that all members have come", STR_ARG(leader));
}

CollectiveLink collective_link(WorkerSession *s) {
    return (CollectiveLink){.self = s, .join_group = join_group, .join_instance = join_instance, .recv = recv, .lose_group = lose_group, .waits_for = waits_for};
}
