/* graph_dataset.c: DatasetFromGraph: a dataset that a serialised graph makes, as DatasetToGraph writes it: its _Retval is the dataset.

   GraphDef: node=1. NodeDef: name=1 op=2 input=3 attr=5. AttrValue: s=2 i=3 type=6. */
#include <stdlib.h>

#include "base/thread.h"
#include "ops/dataset/dataset.h"
#include "ops/op_list.h"
#include "proto/wire.h"
#include "runtime/device.h"
#include "runtime/executable.h"
#include "runtime/function_runtime.h"
#include "runtime/step_context.h"

const OpDef dataset_graph_dataset_ops[] = {
    {"DatasetFromGraph", "graph_def: string -> handle: variant", "", 0},
    {0},
};

static const char KEY[] = "/device:CPU:0;0000000000000001;/device:CPU:0;dataset;0:0";

static void put_attr(StrBuf *node, const char *name, uint32_t field, Str text, uint64_t number) {
    StrBuf value = {0}, entry = {0};
    if (text.ptr)
        wire_put_bytes(&value, field, text);
    else
        wire_put_uint(&value, field, number);
    wire_put_bytes(&entry, 1, str_of(name));
    wire_put_bytes(&entry, 2, strbuf_str(&value));
    wire_put_bytes(node, 5, strbuf_str(&entry));
    strbuf_clear(&value);
    strbuf_clear(&entry);
}

/* What the graph returns is sent instead, to whoever runs it. */
static void put_send(StrBuf *graph, Str input) {
    StrBuf node = {0};
    wire_put_bytes(&node, 1, STR("_send_dataset"));
    wire_put_bytes(&node, 2, STR("_Send"));
    wire_put_bytes(&node, 3, input);
    put_attr(&node, "T", 6, (Str){0}, DT_VARIANT);
    put_attr(&node, "tensor_name", 2, STR("dataset"), 0);
    put_attr(&node, "send_device", 2, STR("/device:CPU:0"), 0);
    put_attr(&node, "send_device_incarnation", 3, (Str){0}, 1);
    put_attr(&node, "recv_device", 2, STR("/device:CPU:0"), 0);
    wire_put_bytes(graph, 1, strbuf_str(&node));
    strbuf_clear(&node);
}

/* The graph without its _Retval; `result` is that one's input. */
static Error *rewrite(Str graph_def, StrBuf *out) {
    Str result = STR("");
    WireReader r = wire_reader(graph_def);
    while (wire_next(&r)) {
        if (r.type != WIRE_BYTES) continue;
        Str op = STR(""), input = STR("");
        WireReader node = wire_reader(r.field == 1 ? r.bytes : STR(""));
        while (wire_next(&node)) {
            if (node.field == 2 && node.type == WIRE_BYTES) op = node.bytes;
            if (node.field == 3 && node.type == WIRE_BYTES && !input.len) input = node.bytes;
        }
        if (str_is(op, "_Retval"))
            result = input;
        else
            wire_put_bytes(out, r.field, r.bytes);
    }
    if (r.failed) return error_invalid("Could not parse the graph of a dataset");
    if (!result.len) return error_new(CODE_NOT_FOUND, "Failed to find a _Retval op in the given dataset");
    put_send(out, result);
    return NULL;
}

typedef struct Waiter {
    Latch done;
    Error *err;
} Waiter;

static void step_ended(void *arg, Error *err) {
    Waiter *w = arg;
    w->err = err;
    latch_done(&w->done);
}

typedef struct Made {
    Error *err;
    Tensor *dataset;
    bool came;
} Made;

static void made(void *arg, Error *err, Tensor *value, bool is_dead) {
    (void)is_dead;
    *(Made *)arg = (Made){err, value, true};
}

static Error *run_graph(KernelContext *k, Executable *e, Tensor **out) {
    Rendezvous *r = rendezvous_new(k->step->step_id, NULL, NULL);
    Waiter w = {.err = NULL};
    Made m = {0};
    latch_init(&w.done, 1);
    executable_run(e, &(RunOptions){.step_id = k->step->step_id, .rendezvous = r, .cancel = k->step->cancel, .pool = k->step->pool, .blocking = k->step->blocking}, step_ended, &w);
    latch_wait(&w.done);
    if (!w.err) {
        rendezvous_recv(r, str_of(KEY), made, &m); /* the step is over: it is there or never comes */
        if (!m.came) rendezvous_withdraw(r, str_of(KEY), &m);
    }
    latch_clear(&w.done);
    rendezvous_unref(r);
    *out = m.dataset;
    if (w.err || m.err) return w.err ? w.err : m.err;
    return m.dataset ? NULL : error_internal("The graph of a dataset gave none");
}

static void from_graph(KernelContext *k, void *arg) {
    static const PassOptions all;
    StrBuf graph = {0};
    Str graph_def = STR("");
    Executable *e = NULL;
    Tensor *t = NULL;
    Dataset *d = NULL;
    (void)arg;
    Error *err = kernel_string(k, 0, "graph_def", &graph_def);
    if (!err) err = rewrite(graph_def, &graph);
    const PassOptions *passes = k->step->function_runtime ? function_runtime_passes(k->step->function_runtime) : &all;
    if (!err) err = executable_new(strbuf_str(&graph), passes, session_devices(k->step->session), k->step->session, &e);
    if (!err) err = run_graph(k, e, &t);
    if (!err) err = tensor_dataset(t, &d);
    if (!err)
        kernel_set_output(k, 0, t);
    else
        tensor_unref(t);
    executable_unref(e); /* closures of the dataset hold on to it */
    strbuf_clear(&graph);
    kernel_done(k, err);
}

static Error *run_from_graph(KernelContext *k) {
    kernel_block(k, from_graph, NULL);
    return NULL;
}

const KernelDef dataset_graph_dataset_cpu[] = {
    {"DatasetFromGraph", .run = run_from_graph, .flags = KERNEL_DEFERS},
    {0},
};
