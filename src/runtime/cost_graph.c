/* cost_graph.c: a graph and the timings of a step, written as tensorflow.CostGraphDef.

   CostGraphDef: node=1. Node: name=1 device=2 id=3 input_info=4 output_info=5 temporary_memory_size=6 is_final=7 control_input=8 compute_cost=9
   persistent_memory_size=12. InputInfo: preceding_node=1 preceding_port=2. OutputInfo: size=1 alias_input_port=2 shape=3 dtype=4. Of what a traced node
   says of its tensors (node_trace.c): output=7, in it slot=1 and tensor_description=3, in that dtype=1 shape=2 and allocation_description=4 with
   requested_bytes=1 and ptr=6; memory=6 with total_bytes=2. A node of a loop ran several times: its cost is the mean. */
#include "runtime/cost_graph.h"

#include <stdlib.h>

#include "base/hashmap.h"
#include "base/memory.h"
#include "proto/wire.h"

typedef struct NodeCost {
    int64_t total_ns, runs;
    const NodeTiming *last;
} NodeCost;

typedef struct OutputSeen {
    Str shape;
    uint64_t dtype, bytes, pointer;
    bool found;
} OutputSeen;

static void read_allocation(Str message, OutputSeen *out) {
    WireReader r = wire_reader(message);
    while (wire_next(&r)) {
        if (r.field == 1 && r.type == WIRE_VARINT) out->bytes = r.number;
        if (r.field == 6 && r.type == WIRE_VARINT) out->pointer = r.number;
    }
}

static void read_tensor(Str message, OutputSeen *out) {
    WireReader r = wire_reader(message);
    out->found = true;
    while (wire_next(&r)) {
        if (r.field == 1 && r.type == WIRE_VARINT) out->dtype = r.number;
        if (r.field == 2 && r.type == WIRE_BYTES) out->shape = r.bytes;
        if (r.field == 4 && r.type == WIRE_BYTES) read_allocation(r.bytes, out);
    }
}

/* What was seen of an output of a node when it ran last. */
static OutputSeen output_seen(const NodeCost *cost, int index) {
    OutputSeen seen = {0};
    WireReader outputs = wire_reader(cost->last ? cost->last->tensors : STR(""));
    while (!seen.found && wire_next(&outputs)) {
        if (outputs.field != 7 || outputs.type != WIRE_BYTES) continue;
        uint64_t slot = 0;
        Str tensor = {"", 0};
        WireReader r = wire_reader(outputs.bytes);
        while (wire_next(&r)) {
            if (r.field == 1 && r.type == WIRE_VARINT) slot = r.number;
            if (r.field == 3 && r.type == WIRE_BYTES) tensor = r.bytes;
        }
        if (slot == (uint64_t)index) read_tensor(tensor, &seen);
    }
    return seen;
}

/* The input whose memory the output is, -1 for memory of its own. */
static int64_t alias_of(const Node *n, const NodeCost *costs, const OutputSeen *output) {
    for (int i = 0; output->pointer && i < n->input_count; i++)
        if (output_seen(&costs[n->inputs[i].node->id], n->inputs[i].index).pointer == output->pointer) return i;
    return -1;
}

static void put_output(const Node *n, int index, const NodeCost *costs, StrBuf *out) {
    OutputSeen seen = output_seen(&costs[n->id], index);
    StrBuf info = {0};
    if (seen.bytes) wire_put_uint(&info, 1, seen.bytes);
    wire_put_uint(&info, 2, (uint64_t)alias_of(n, costs, &seen));
    if (seen.found)
        wire_put_bytes(&info, 3, seen.shape);
    else
        wire_put_bytes(&info, 3, STR("\x18\x01")); /* of unknown rank */
    wire_put_uint(&info, 4, n->info && index < n->output_count ? (uint64_t)n->output_types[index] : seen.dtype);
    wire_put_bytes(out, 5, strbuf_str(&info));
    strbuf_clear(&info);
}

static void put_node(const Node *n, const Str *device_names, const NodeCost *costs, int64_t first_id, StrBuf *out) {
    const NodeCost *cost = &costs[n->id];
    wire_put_bytes(out, 1, n->name);
    if (n->placed >= 0) wire_put_bytes(out, 2, device_names[n->placed]);
    wire_put_uint(out, 3, (uint64_t)(first_id + n->id));
    for (int i = 0; i < n->input_count; i++) {
        StrBuf info = {0};
        wire_put_uint(&info, 1, (uint64_t)(first_id + n->inputs[i].node->id));
        if (n->inputs[i].index) wire_put_uint(&info, 2, (uint64_t)n->inputs[i].index);
        wire_put_bytes(out, 4, strbuf_str(&info));
        strbuf_clear(&info);
    }
    int64_t kept = 0;
    for (int i = 0; i < n->output_count; i++) {
        put_output(n, i, costs, out);
        if (node_is(n, "Const") || dtype_is_ref(n->output_types[i])) kept += (int64_t)output_seen(cost, i).bytes;
    }
    if (node_is(n, "_Send") || node_is(n, "_HostSend")) wire_put_uint(out, 7, 1);
    for (int i = 0; i < n->control_count; i++) wire_put_uint(out, 8, (uint64_t)(first_id + n->controls[i]->id));
    if (cost->runs) wire_put_uint(out, 9, (uint64_t)(cost->total_ns / cost->runs / 1000));
    if (kept) wire_put_uint(out, 12, (uint64_t)kept);
}

void cost_graph_encode(const Graph *g, const Str *device_names, const NodeTiming *timings, size_t timing_count, int64_t *next_id, StrBuf *out) {
    NodeCost *costs = xcalloc((size_t)g->node_count + 1, sizeof *costs);
    for (size_t i = 0; i < timing_count; i++) {
        const Node *n = graph_find(g, timings[i].node);
        if (!n) continue; /* of a function, or a transfer */
        costs[n->id].total_ns += timings[i].end_ns - timings[i].start_ns;
        costs[n->id].runs++;
        costs[n->id].last = &timings[i];
    }
    StrBuf node = {0};
    for (int i = 0; i < g->node_count; i++) {
        node.len = 0;
        put_node(g->nodes[i], device_names, costs, *next_id, &node);
        wire_put_bytes(out, 1, strbuf_str(&node));
    }
    *next_id += g->node_count;
    strbuf_clear(&node);
    free(costs);
}
