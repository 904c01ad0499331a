/* model.h: Model, a graph from a file with its variables restored, run in this process or by a session elsewhere. */
#pragma once
#include "base/error.h"
#include "base/file.h"
#include "graph/prune.h"
#include "io/saved_model.h"
#include "tensor/tensor.h"

typedef struct Model Model;

/* Where steps run; the default is this process. */
typedef struct ModelSessions {
    Error *(*open)(const void *arg, Str graph_def, void **session);
    Error *(*run)(void *session, const RunSignature *signature, Tensor *const *feeds, Tensor **fetches, int64_t timeout_ms);
    void (*close)(void *session);
} ModelSessions;

typedef struct ModelOptions {
    const Str *tags; /* of the MetaGraph in a SavedModel; none: the only one there is, else the one tagged "serve" */
    int tag_count;
    const char *checkpoint; /* (optional) a prefix to restore instead of the model's own */
    const Str *init;        /* (optional) nodes to run once after restoring, one after the other */
    int init_count;
    int threads;                   /* 0: one for each core */
    const ModelSessions *sessions; /* (optional) elsewhere; paths are then those of the tasks that read them */
    const void *sessions_arg;      /* for sessions->open */
} ModelOptions;

Error *model_open(const FileSystem *fs, const char *path, const ModelOptions *options, Model **out) MUST_CHECK;
void model_close(Model *m);
const SavedModel *model_file(const Model *m);
const MetaGraph *model_meta_graph(const Model *m);
/* The type and shape the graph declares for "node:0": NotFound when there is no such node. The shape is unknown unless
 * the node is a placeholder. */
Error *model_tensor_info(const Model *m, Str tensor, TensorInfo *out) MUST_CHECK;
Error *model_run(Model *m, const RunSignature *signature, Tensor *const *feeds, Tensor **fetches,
                 int64_t timeout_ms) MUST_CHECK;
