/* debug_dump.h: the files that TensorFlow's debugger reads: an Event for every tensor that was seen, for every graph, and for what was run. */
#pragma once
#include "base/error.h"
#include "base/file.h"
#include "base/str.h"
#include "tensor/tensor.h"

/* One watched output, and the op that says something of it. */
typedef struct DebugKey {
    Str device, node, op;
    int slot;
    Str io_of_node; /* (optional) the node that gets or gives the value, as its input or output io_index, in a step */
    bool is_input;
    int io_index;
    int64_t step;
} DebugKey;

/* Writes ROOT/<device>/<node>_<slot>_<op>_<time>, or of the inputs and outputs of a node ROOT/node-io-dump/step-<step>/<node>:<in or out>:<index>_<time>. `value` is a serialised TensorProto. */
Error *debug_dump_tensor(const FileSystem *fs, Str root, const DebugKey *key, Str value) MUST_CHECK;
/* A serialised GraphDef, of one device. */
Error *debug_dump_graph(const FileSystem *fs, Str root, Str device, Str graph_def) MUST_CHECK;
/* JSON that says what was run, of the run of that number. */
Error *debug_dump_run(const FileSystem *fs, Str root, int64_t run, Str json) MUST_CHECK;
/* "file://" and "grpc://" at the start of a debug URL, in any case; what follows is `rest`. */
bool debug_url_is(Str url, const char *scheme, Str *rest);
