/* restore.c: the restore op, then the init op. */
#include "model/restore.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* The assets' tensors and paths; room for one feed more. */
typedef struct Feeds {
    Str *names;
    Tensor **values;
    int count;
} Feeds;

static Feeds asset_feeds(const MetaGraph *m, const char *folder) {
    Feeds f = {.names = xcalloc((size_t)m->asset_count + 1, sizeof(Str)),
               .values = xcalloc((size_t)m->asset_count + 1, sizeof(Tensor *))};
    for (int i = 0; folder && i < m->asset_count; i++) {
        bool again = false; /* builders may list an asset twice; a tensor is fed once */
        for (int k = 0; k < f.count; k++) again = again || str_eq(f.names[k], m->assets[i].tensor);
        if (again) continue;
        char *path = xasprintf("%s/%.*s", folder, STR_ARG(m->assets[i].filename));
        f.names[f.count] = m->assets[i].tensor;
        f.values[f.count++] = tensor_scalar_str(str_of(path));
        free(path);
    }
    return f;
}

static Error *run_target(Str target, const Feeds *feeds, int feed_count, RunStepFn *run, void *session) {
    RunSignature signature = {.feeds = feeds->names, .feed_count = feed_count, .targets = &target, .target_count = 1};
    return run(session, &signature, feeds->values, NULL);
}

Error *meta_graph_restore(const MetaGraph *m, const RestoreFrom *from, RunStepFn *run, void *session) {
    if (from->variables && (!m->saver.present || !m->saver.restore_op.len))
        return error_new(CODE_FAILED_PRECONDITION, "the graph has no saver: it says no way to restore %s",
                         from->variables);
    Feeds feeds = asset_feeds(m, from->assets);
    Error *err = NULL;
    int assets = feeds.count;
    if (from->variables) {
        feeds.names[assets] = m->saver.filename_tensor;
        feeds.values[assets] = tensor_scalar_str(str_of(from->variables));
        feeds.count++;
        err = error_wrap(run_target(m->saver.restore_op, &feeds, assets + 1, run, session), "restoring %s",
                         from->variables);
    }
    if (!err && m->init_op.len)
        err = error_wrap(run_target(m->init_op, &feeds, assets, run, session), "running the init op %.*s",
                         STR_ARG(m->init_op));
    for (int i = 0; i < feeds.count; i++) tensor_unref(feeds.values[i]);
    free(feeds.names);
    free(feeds.values);
    return err;
}
