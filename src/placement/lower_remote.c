/* lower_remote.c: RemoteCall: a function called on a device that a tensor names.

   Where that tensor is a constant and names a device there is, the body goes to that device, like any other nodes. Else the call stays and is told which
   tasks there are. */
#include "placement/device_name.h"
#include "placement/lowerer.h"
#include "tensor/tensor_proto.h"

/* The constant text that `o` gives, in the graph's arena. */
static bool constant_text(Lowerer *l, Output o, Str *out) {
    Str value, proto;
    if (!node_is(o.node, "Const") || !node_attr(o.node, "value", &value) || !attr_tensor(value, &proto)) return false;
    Tensor *t = NULL;
    Error *err = tensor_proto_decode(proto, &t);
    bool ok = !err && t->dtype == DT_STRING && t->count == 1;
    if (ok) *out = arena_str(l->g->arena, tstring_str(&tensor_str(t)[0]));
    error_free(err);
    tensor_unref(t);
    return ok;
}

/* What the target does not say is as the call's own device says. */
static bool names_a_device(Lowerer *l, Str target, Str own, Str *out) {
    DeviceName wanted, caller;
    Error *err = device_name_parse(target, &wanted);
    if (!err) err = device_name_parse(own, &caller);
    bool ok = !err && target.len;
    error_free(err);
    if (!ok) return false;
    device_name_fill(&wanted, &caller);
    *out = device_name_text(l->g->arena, &wanted);
    for (int i = 0; i < l->device_count; i++)
        if (device_name_matches(&wanted, &l->devices[i].parsed)) return true;
    return false;
}

static void note_tasks(Lowerer *l, Node *n) {
    Str *tasks = arena_calloc(l->g->arena, (size_t)l->device_count, sizeof *tasks);
    int count = 0;
    for (int i = 0; i < l->device_count; i++) {
        Str task = device_task_text(l->devices[i].name);
        int at = count;
        while (at > 0 && str_compare(tasks[at - 1], task) > 0) at--;
        if (at > 0 && str_eq(tasks[at - 1], task)) continue;
        for (int j = count++; j > at; j--) tasks[j] = tasks[j - 1];
        tasks[at] = task;
    }
    node_add_attr(l->g, n, STR("_tasks"), attr_make_strings(l->g->arena, tasks, count));
}

bool lowerer_remote_device(Lowerer *l, Node *n, Str *out) {
    Str target;
    if (n->input_count > 0 && constant_text(l, n->inputs[0], &target) && names_a_device(l, target, n->device, out)) return true;
    note_tasks(l, n);
    return false;
}
