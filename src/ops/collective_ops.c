/* collective_ops.c: CollectiveReduce, CollectiveGather, CollectiveBcast..., CollectiveAllToAll... and what sets them up.

   The first version of an op has its keys as attributes, the second as inputs, the third in a resource that a communicator op made. */
#include <stdatomic.h>
#include <stdlib.h>

#include "base/memory.h"
#include "collective/collective.h"
#include "ops/op_list.h"

#define REDUCE_TYPES "T: {bfloat16, float, half, double, int32, int64}"
#define GATHER_TYPES "T: {float, half, double, int32, int64}"
#define BCAST_TYPES "T: {bool, float, half, double, int32, int64}"
#define KEYS "group_size: int; group_key: int; instance_key: int"
#define MERGE "merge_op: {'Min', 'Max', 'Mul', 'Add'}; final_op: {'Id', 'Div'}"
#define HINTS "communication_hint: string = 'auto'; timeout_seconds: float = 0.0"
#define ORDER "is_stateless: bool = false; Nordering_token: int >= 0 = 0"
#define KEY_INPUTS "group_size: int32, group_key: int32, instance_key: int32"
#define TOKENS "ordering_token: Nordering_token * resource"

const OpDef collective_ops_ops[] = {
    {"CollectiveReduce", "input: T -> data: T", REDUCE_TYPES "; " KEYS "; " MERGE "; subdiv_offsets: list(int); wait_for: list(int) = []; " HINTS, OP_STATEFUL},
    {"CollectiveReduceV2", "input: T, " KEY_INPUTS ", " TOKENS " -> data: T", REDUCE_TYPES "; " MERGE "; " HINTS "; " ORDER "; max_subdivs_per_device: int = -1",
     OP_STATEFUL},
    {"CollectiveReduceV3", "input: T, communicator: resource, group_assignment: int32 -> data: T",
     REDUCE_TYPES "; reduction: {'Min', 'Max', 'Mul', 'Add'}; timeout_seconds: float = 0.0", OP_STATEFUL},
    {"CollectiveReduceScatterV2", "input: T, " KEY_INPUTS ", " TOKENS " -> data: T",
     REDUCE_TYPES "; " MERGE "; " HINTS "; " ORDER "; max_subdivs_per_device: int = -1", OP_STATEFUL},
    {"CollectiveGather", "input: T -> data: T", GATHER_TYPES "; " KEYS "; shape: shape; " HINTS, OP_STATEFUL},
    {"CollectiveGatherV2", "input: T, " KEY_INPUTS ", " TOKENS " -> data: T", GATHER_TYPES "; " HINTS "; " ORDER, OP_STATEFUL},
    {"CollectiveBcastSend", "input: T -> data: T", BCAST_TYPES "; " KEYS "; shape: shape; " HINTS, OP_STATEFUL},
    {"CollectiveBcastRecv", "-> data: T", BCAST_TYPES "; " KEYS "; shape: shape; " HINTS, OP_STATEFUL},
    {"CollectiveBcastSendV2", "input: T, " KEY_INPUTS " -> data: T", BCAST_TYPES "; " HINTS, OP_STATEFUL},
    {"CollectiveBcastRecvV2", KEY_INPUTS ", shape: Tshape -> data: T", BCAST_TYPES "; Tshape: {int32, int64} = int32; " HINTS, OP_STATEFUL},
    {"CollectiveAllToAllV2", "input: T, " KEY_INPUTS ", " TOKENS " -> data: T", REDUCE_TYPES "; " HINTS "; " ORDER, OP_STATEFUL},
    {"CollectiveAllToAllV3", "input: T, communicator: resource, group_assignment: int32 -> data: T", REDUCE_TYPES "; timeout_seconds: float = 0.0", OP_STATEFUL},
    {"CollectiveAssignGroupV2", "group_assignment: int32, device_index: int32, base_key: int32 -> group_size: int32, group_key: int32", "", OP_STATEFUL},
    {"CollectiveInitializeCommunicator", "group_key: int32, rank: int32, group_size: int32 -> communicator: resource", HINTS, OP_STATEFUL},
    {0},
};

/* ---- Attributes ---- */

typedef struct CollectiveAttrs {
    int64_t group_size, group_key, instance_key; /* of the first version */
    MergeOp merge;
    bool divides;
    int64_t *subdivs;
    int subdiv_count;
    int64_t max_subdivs;
    float timeout_s;
    PartialShape shape;
} CollectiveAttrs;

static Error *read_merge(const Node *node, const char *name, MergeOp *out) {
    Str op = STR("Add");
    Error *err = node_attr_string(node, name, &op);
    *out = str_is(op, "Add") ? MERGE_ADD : str_is(op, "Mul") ? MERGE_MUL : str_is(op, "Min") ? MERGE_MIN : MERGE_MAX;
    return err;
}

static Error *read_final(const Node *node, bool *divides) {
    Str op = STR("Id");
    Error *err = node_attr_string(node, "final_op", &op);
    *divides = str_is(op, "Div");
    return err;
}

static Error *init_common(const Node *node, CollectiveAttrs *a) {
    a->max_subdivs = -1;
    return node_attr_float(node, "timeout_seconds", &a->timeout_s);
}

/* The first version: keys are attributes. */
static Error *init_keys(const Node *node, void *state) {
    CollectiveAttrs *a = state;
    Error *err = init_common(node, a);
    if (!err) err = node_attr_int(node, "group_size", &a->group_size);
    if (!err) err = node_attr_int(node, "group_key", &a->group_key);
    if (!err) err = node_attr_int(node, "instance_key", &a->instance_key);
    if (!err && (a->group_size <= 0 || a->group_size > INT32_MAX))
        err = error_invalid("group_size must be positive integer but got %lld", (long long)a->group_size);
    return err;
}

static Error *init_shape(const Node *node, void *state) {
    CollectiveAttrs *a = state;
    Error *err = init_keys(node, a);
    return err ? err : node_attr_shape(node, "shape", &a->shape);
}

static Error *init_reduce(const Node *node, void *state) {
    CollectiveAttrs *a = state;
    Error *err = init_keys(node, a);
    if (!err) err = read_merge(node, "merge_op", &a->merge);
    if (!err) err = read_final(node, &a->divides);
    return err ? err : node_attr_ints(node, "subdiv_offsets", &a->subdivs, &a->subdiv_count);
}

static Error *init_reduce_v2(const Node *node, void *state) {
    CollectiveAttrs *a = state;
    Error *err = init_common(node, a);
    if (!err) err = read_merge(node, "merge_op", &a->merge);
    if (!err) err = read_final(node, &a->divides);
    return err ? err : node_attr_int(node, "max_subdivs_per_device", &a->max_subdivs);
}

static Error *init_reduce_v3(const Node *node, void *state) {
    CollectiveAttrs *a = state;
    Error *err = init_common(node, a);
    return err ? err : read_merge(node, "reduction", &a->merge);
}

static Error *init_plain(const Node *node, void *state) {
    return init_common(node, state);
}

static void clear_attrs(void *state) {
    free(((CollectiveAttrs *)state)->subdivs);
}

/* ---- Running ---- */

static CollectiveRequest request_of(KernelContext *k, CollectiveType type) {
    const CollectiveAttrs *a = k->state;
    return (CollectiveRequest){
        .type = type,
        .group_size = (int)a->group_size,
        .group_key = (int32_t)a->group_key,
        .instance_key = (int32_t)a->instance_key,
        .agrees_once = true,
        .merge = a->merge,
        .divides = a->divides,
        .subdivs = {a->subdivs, a->subdiv_count, a->max_subdivs},
        .timeout_s = a->timeout_s,
    };
}

static Error *scalar_key(KernelContext *k, int i, const char *name, int32_t *out) {
    const Tensor *t = k->in[i];
    if (t->shape.rank > 0) {
        char *shape = shape_str(&t->shape);
        Error *err = error_invalid("Unexpected dimensions on input %s, got %s", name, shape);
        free(shape);
        return err;
    }
    *out = tensor_i32(t)[0];
    return NULL;
}

/* The second version: keys are three inputs, from `first` on. */
static Error *read_keys(KernelContext *k, int first, CollectiveRequest *q) {
    int32_t size = 0;
    Error *err = scalar_key(k, first, "group_size", &size);
    if (!err) err = scalar_key(k, first + 1, "group_key", &q->group_key);
    if (!err) err = scalar_key(k, first + 2, "instance_key", &q->instance_key);
    if (!err && size <= 0) err = error_invalid("group_size must be positive integer but got %d", size);
    q->group_size = size;
    q->agrees_once = false;
    return err;
}

static void ended(void *arg, Error *err) {
    kernel_done(arg, err);
}

/* Outputs are made before: they move with the context. */
static Error *launch(KernelContext *k, CollectiveRequest *q, Tensor *in, Tensor *out) {
    if (k->error) return NULL;
    KernelContext *waiting = kernel_defer(k);
    q->name = waiting->node->name;
    q->frame_id = waiting->frame_id;
    q->iteration = waiting->iteration;
    q->in = in;
    q->out = out;
    q->device = waiting->device;
    q->step = waiting->step;
    collective_start(q, ended, waiting);
    return NULL;
}

static Error *reduce(KernelContext *k, CollectiveRequest *q) {
    Tensor *in = k->in[0];
    return launch(k, q, in, kernel_output_from(k, 0, 0, &in->shape));
}

static Error *run_reduce(KernelContext *k) {
    CollectiveRequest q = request_of(k, COLLECTIVE_REDUCE);
    return reduce(k, &q);
}

static Error *run_reduce_v2(KernelContext *k) {
    CollectiveRequest q = request_of(k, COLLECTIVE_REDUCE);
    Error *err = read_keys(k, 1, &q);
    return err ? err : reduce(k, &q);
}

/* The input's shape with its first dimension times or divided by the size of the group. */
static Error *scaled_shape(const Tensor *in, int64_t times, int64_t divisor, Shape *out) {
    if (in->shape.rank == 0) return error_invalid("input should have rank > 0, received 0");
    *out = in->shape;
    if (__builtin_mul_overflow(out->dims[0], times, &out->dims[0])) return error_invalid("The output of the collective is too large");
    if (out->dims[0] % divisor)
        return error_invalid("The first dimension of the input, %lld, is not divisible by the group size %lld", (long long)out->dims[0], (long long)divisor);
    out->dims[0] /= divisor;
    return shape_check(out);
}

static Error *run_reduce_scatter(KernelContext *k) {
    CollectiveRequest q = request_of(k, COLLECTIVE_REDUCE_SCATTER);
    Shape shape = SHAPE_SCALAR;
    Error *err = read_keys(k, 1, &q);
    if (!err) err = scaled_shape(k->in[0], 1, q.group_size, &shape);
    return err ? err : launch(k, &q, k->in[0], kernel_output(k, 0, &shape));
}

static Error *gather(KernelContext *k, CollectiveRequest *q) {
    Shape shape = SHAPE_SCALAR;
    Error *err = scaled_shape(k->in[0], q->group_size, 1, &shape);
    return err ? err : launch(k, q, k->in[0], kernel_output(k, 0, &shape));
}

static Error *run_gather(KernelContext *k) {
    CollectiveRequest q = request_of(k, COLLECTIVE_GATHER);
    return gather(k, &q);
}

static Error *run_gather_v2(KernelContext *k) {
    CollectiveRequest q = request_of(k, COLLECTIVE_GATHER);
    Error *err = read_keys(k, 1, &q);
    return err ? err : gather(k, &q);
}

static Error *broadcast(KernelContext *k, CollectiveRequest *q) {
    q->is_source = true;
    return launch(k, q, k->in[0], kernel_output_from(k, 0, 0, &k->in[0]->shape));
}

static Error *run_bcast_send(KernelContext *k) {
    const CollectiveAttrs *a = k->state;
    CollectiveRequest q = request_of(k, COLLECTIVE_BROADCAST);
    if (!shape_eq(&a->shape, &k->in[0]->shape)) return error_internal("Declared shape of op %.*s: Broadcast(1) does not match shape of input", STR_ARG(k->node->name));
    return broadcast(k, &q);
}

static Error *run_bcast_send_v2(KernelContext *k) {
    CollectiveRequest q = request_of(k, COLLECTIVE_BROADCAST);
    Error *err = read_keys(k, 1, &q);
    return err ? err : broadcast(k, &q);
}

static Error *run_bcast_recv(KernelContext *k) {
    const CollectiveAttrs *a = k->state;
    CollectiveRequest q = request_of(k, COLLECTIVE_BROADCAST);
    Error *err = shape_check(&a->shape);
    return err ? err : launch(k, &q, NULL, kernel_output(k, 0, &a->shape));
}

static Error *run_bcast_recv_v2(KernelContext *k) {
    CollectiveRequest q = request_of(k, COLLECTIVE_BROADCAST);
    Shape shape = SHAPE_SCALAR;
    Error *err = read_keys(k, 0, &q);
    if (!err) err = kernel_shape_input(k, 3, &shape);
    return err ? err : launch(k, &q, NULL, kernel_output(k, 0, &shape));
}

static Error *exchange(KernelContext *k, CollectiveRequest *q) {
    const Shape *shape = &k->in[0]->shape;
    int64_t rows = shape->rank ? shape->dims[0] : 0;
    if (rows != q->group_size) return error_invalid("input to all-to-all first dimension size (%lld) must be the same as the group size (%d)", (long long)rows, q->group_size);
    return launch(k, q, k->in[0], kernel_output(k, 0, shape));
}

static Error *run_all_to_all_v2(KernelContext *k) {
    CollectiveRequest q = request_of(k, COLLECTIVE_ALL_TO_ALL);
    Error *err = read_keys(k, 1, &q);
    return err ? err : exchange(k, &q);
}

/* ---- Groups from an assignment ---- */

static Error *check_assignment(KernelContext *k) {
    const char *const names[] = {"group_assignment must be a 2-d Tensor, but received tensor of shape: ", "device_index must be a scalar, but received tensor of shape: ",
                                 "base_key must be a scalar, but received tensor of shape: "};
    const int order[] = {1, 0, 2}, ranks[] = {2, 0, 0};
    for (int i = 0; i < 3; i++) {
        const Tensor *t = k->in[order[i]];
        if (t->shape.rank == ranks[order[i]]) continue;
        char *shape = shape_str(&t->shape);
        Error *err = error_invalid("%s%s", names[order[i]], shape);
        free(shape);
        return err;
    }
    return NULL;
}

static Error *run_assign_group(KernelContext *k) {
    Error *err = check_assignment(k);
    if (err) return err;
    const Tensor *groups = k->in[0];
    int32_t device = tensor_i32(k->in[1])[0], base = tensor_i32(k->in[2])[0];
    int64_t size = groups->shape.dims[1];
    for (int64_t i = 0; i < groups->count; i++) {
        int32_t key = (int32_t)((uint32_t)base + (uint32_t)(i / size)), member = tensor_i32(groups)[i];
        if (key == 0) return error_invalid("Using the reserved group_key = 0 is not allowed: group_id = %lld, base_key = %d", (long long)(i / size), base);
        if (member < 0 || member >= groups->count) return error_invalid("Not all items in group_assignment is within [0, number of devices)");
        if (member != device) continue;
        kernel_set_output(k, 0, tensor_scalar_i32((int32_t)size));
        kernel_set_output(k, 1, tensor_scalar_i32(key));
        return NULL;
    }
    return error_invalid("device_index %d is not found in group_assignment", device);
}

/* ---- Communicators: the third version ---- */

typedef struct Communicator {
    Resource base;
    int32_t group_key, group_size;
    float timeout_s;
    _Atomic uint32_t next_instance;
} Communicator;

static void destroy(Resource *r) {
    free(r);
}

static const ResourceType communicator_type = {
    .type_name = "N10tensorflow12_GLOBAL__N_123CollectiveGroupResourceE", .what = "collective group", .destroy = destroy};

static Error *communicator_key(KernelContext *k, int i, const char *name, int32_t *out) {
    const Tensor *t = k->in[i];
    if (t->shape.rank > 0) {
        char *shape = shape_str(&t->shape);
        Error *err = error_invalid("Unexpected dimensions on input %s. It shoulbe a scalar, got tensor with shape %s", name, shape);
        free(shape);
        return err;
    }
    *out = tensor_i32(t)[0];
    return NULL;
}

static Error *run_communicator(KernelContext *k) {
    const CollectiveAttrs *a = k->state;
    int32_t key = 0, rank = 0, size = 0;
    Error *err = communicator_key(k, 2, "group_size", &size);
    if (!err) err = communicator_key(k, 0, "group_key", &key);
    if (!err) err = communicator_key(k, 1, "rank", &rank);
    if (!err && size <= 0) err = error_invalid("group_size must be positive integer but got %d", size);
    if (!err && rank < 0) err = error_invalid("rank must be non-negative integer but got %d", rank);
    if (!err && rank >= size) err = error_invalid("rank must be less than group size but got %d >= %d", rank, size);
    if (err) return err;
    Communicator *c = xcalloc(1, sizeof *c);
    resource_init(&c->base, &communicator_type);
    c->group_key = key;
    c->group_size = size;
    c->timeout_s = a->timeout_s;
    char *name = xasprintf("%d:r%04d", key, rank);
    err = resource_add(kernel_resources(k), STR("collective_op_group"), str_of(name), &c->base);
    Tensor *handle = err ? NULL : kernel_make_handle(k, STR("collective_op_group"), str_of(name), &communicator_type);
    resource_unref(&c->base);
    free(name);
    if (err) return err;
    kernel_set_output(k, 0, handle);
    CollectiveRequest q = {.group_key = key, .group_size = size, .timeout_s = a->timeout_s};
    KernelContext *waiting = kernel_defer(k);
    q.name = waiting->node->name;
    q.device = waiting->device;
    q.step = waiting->step;
    collective_join(&q, ended, waiting);
    return NULL;
}

static Error *read_communicator(KernelContext *k, CollectiveRequest *q) {
    Resource *r = NULL;
    Error *err = kernel_resource(k, 1, &communicator_type, &r);
    if (err) return err;
    Communicator *c = (Communicator *)r;
    if (k->in[2]->count) {
        err = error_unimplemented("Group assignments are not supported yet.");
    } else {
        q->group_key = c->group_key;
        q->group_size = c->group_size;
        q->instance_key = (int32_t)(atomic_fetch_add(&c->next_instance, 1) & 0x1fffff);
        q->agrees_once = false;
        if (q->timeout_s > 0) q->timeout_s = c->timeout_s;
    }
    resource_unref(r);
    return err;
}

static Error *run_reduce_v3(KernelContext *k) {
    CollectiveRequest q = request_of(k, COLLECTIVE_REDUCE);
    Error *err = read_communicator(k, &q);
    return err ? err : reduce(k, &q);
}

static Error *run_all_to_all_v3(KernelContext *k) {
    CollectiveRequest q = request_of(k, COLLECTIVE_ALL_TO_ALL);
    Error *err = read_communicator(k, &q);
    return err ? err : exchange(k, &q);
}

#define KERNEL(name, fn, how) {name, .run = fn, .state_size = sizeof(CollectiveAttrs), .init = how, .clear = clear_attrs, .flags = KERNEL_DEFERS}

const KernelDef collective_ops_cpu[] = {
    KERNEL("CollectiveReduce", run_reduce, init_reduce),
    KERNEL("CollectiveReduceV2", run_reduce_v2, init_reduce_v2),
    KERNEL("CollectiveReduceV3", run_reduce_v3, init_reduce_v3),
    KERNEL("CollectiveReduceScatterV2", run_reduce_scatter, init_reduce_v2),
    KERNEL("CollectiveGather", run_gather, init_keys),
    KERNEL("CollectiveGatherV2", run_gather_v2, init_plain),
    KERNEL("CollectiveBcastSend", run_bcast_send, init_shape),
    KERNEL("CollectiveBcastRecv", run_bcast_recv, init_shape),
    KERNEL("CollectiveBcastSendV2", run_bcast_send_v2, init_plain),
    KERNEL("CollectiveBcastRecvV2", run_bcast_recv_v2, init_plain),
    KERNEL("CollectiveAllToAllV2", run_all_to_all_v2, init_plain),
    KERNEL("CollectiveAllToAllV3", run_all_to_all_v3, init_plain),
    {"CollectiveAssignGroupV2", .run = run_assign_group},
    KERNEL("CollectiveInitializeCommunicator", run_communicator, init_plain),
    {0},
};
