/* node_trace.c: the parts of tensorflow.NodeExecStats that describe tensors.

   NodeExecStats: memory=6 output=7 memory_stats=12. AllocatorMemoryUsed: allocator_name=1 total_bytes=2 peak_bytes=3 live_bytes=4 allocation_records=6.
   AllocationRecord: alloc_micros=1 alloc_bytes=2. MemoryStats: persistent_memory_size=3. NodeOutput: slot=1
   tensor_description=3. TensorDescription: dtype=1 shape=2 allocation_description=4. AllocationDescription: requested_bytes=1 allocated_bytes=2
   allocator_name=3 ptr=6. */
#include "runtime/node_trace.h"

#include "proto/wire.h"
#include "tensor/tensor_proto.h"

static const char allocator[] = "cpu";

static void put_output(StrBuf *out, int slot, const Tensor *t) {
    StrBuf allocation = {0}, tensor = {0}, shape = {0}, output = {0};
    wire_put_uint(&allocation, 1, (uint64_t)tensor_bytes(t));
    wire_put_uint(&allocation, 2, (uint64_t)tensor_bytes(t));
    wire_put_bytes(&allocation, 3, str_of(allocator));
    wire_put_uint(&allocation, 6, (uint64_t)(uintptr_t)t->data);
    shape_encode(&t->shape, &shape);
    wire_put_uint(&tensor, 1, (uint64_t)t->dtype);
    wire_put_bytes(&tensor, 2, strbuf_str(&shape));
    wire_put_bytes(&tensor, 4, strbuf_str(&allocation));
    if (slot) wire_put_uint(&output, 1, (uint64_t)slot);
    wire_put_bytes(&output, 3, strbuf_str(&tensor));
    wire_put_bytes(out, 7, strbuf_str(&output));
    strbuf_clear(&allocation);
    strbuf_clear(&tensor);
    strbuf_clear(&shape);
    strbuf_clear(&output);
}

static void put_memory(StrBuf *out, int64_t bytes, int64_t when_us) {
    StrBuf memory = {0}, record = {0};
    wire_put_bytes(&memory, 1, str_of(allocator));
    for (uint32_t field = 2; field <= 4; field++) wire_put_uint(&memory, field, (uint64_t)bytes);
    wire_put_uint(&record, 1, (uint64_t)when_us);
    wire_put_uint(&record, 2, (uint64_t)bytes);
    wire_put_bytes(&memory, 6, strbuf_str(&record));
    wire_put_bytes(out, 6, strbuf_str(&memory));
    strbuf_clear(&record);
    strbuf_clear(&memory);
}

/* What stays when the step is over: constants and variables. */
static void put_memory_stats(StrBuf *out, int64_t kept) {
    StrBuf stats = {0};
    if (kept) wire_put_uint(&stats, 3, (uint64_t)kept);
    wire_put_bytes(out, 12, strbuf_str(&stats));
    strbuf_clear(&stats);
}

/* Is it the memory of an input, handed on? */
static bool is_passed_on(const KernelContext *k, const Tensor *t) {
    for (int i = 0; i < k->input_count; i++)
        if (k->in[i] && k->in[i]->data == t->data) return true;
    return false;
}

static void put_label(StrBuf *label, const Node *n) {
    strbuf_addf(label, "%.*s = %.*s(", STR_ARG(n->name), STR_ARG(n->op));
    for (int i = 0; i < n->input_count; i++) {
        strbuf_addf(label, "%s%.*s", i ? ", " : "", STR_ARG(n->inputs[i].node->name));
        if (n->inputs[i].index) strbuf_addf(label, ":%d", n->inputs[i].index);
    }
    for (int i = 0; i < n->control_count; i++) strbuf_addf(label, "%s^%.*s", n->input_count + i ? ", " : "", STR_ARG(n->controls[i]->name));
    strbuf_addc(label, ')');
}

void node_trace_add(StepStats *stats, const KernelContext *k, NodeTiming t) {
    StrBuf label = {0}, tensors = {0};
    int64_t taken = 0, kept = 0;
    for (int i = 0; i < k->output_count; i++) {
        Tensor *value = k->out_ref[i] ? variable_read(k->out_ref[i]) : tensor_ref(k->out[i]);
        if (!value) continue;
        t.output_bytes += (int64_t)tensor_bytes(value);
        if (k->out_ref[i] ? k->input_count == 0 : node_is(k->node, "Const"))
            kept += (int64_t)tensor_bytes(value);
        else if (!k->out_ref[i] && !is_passed_on(k, value))
            taken += (int64_t)tensor_bytes(value);
        put_output(&tensors, i, value);
        tensor_unref(value);
    }
    if (taken) put_memory(&tensors, taken, t.start_ns / 1000);
    put_memory_stats(&tensors, kept);
    put_label(&label, k->node);
    t.node = k->node->name;
    t.op = k->node->op;
    t.label = strbuf_str(&label);
    t.tensors = strbuf_str(&tensors);
    step_stats_add(stats, &t);
    strbuf_clear(&label);
    strbuf_clear(&tensors);
}
