/* saved_model.c: TF_LoadSessionFromSavedModel: a model's graph imported, its variables restored. */
#include <stdlib.h>

#include "base/memory.h"
#include "capi/client_internal.h"
#include "capi/graph_internal.h"
#include "capi/import_internal.h"
#include "capi/status_internal.h"
#include "io/saved_model.h"
#include "model/restore.h"

/* A session under way and the options of its first steps. */
typedef struct Loading {
    ClientSession *client;
    Str run_options;
} Loading;

static Error *run_step(void *session, const RunSignature *signature, Tensor *const *feeds, Tensor **fetches) {
    const Loading *l = session;
    ClientStep step = {.signature = *signature, .feeds = feeds, .options = l->run_options};
    return client_session_run(l->client, &step, fetches, NULL);
}

static Error *open_model(const char *dir, const char *const *tags, int tag_count, SavedModel **model, const MetaGraph **meta) {
    if (!saved_model_exists(&file_system_local, dir))
        return error_not_found("Could not find SavedModel .pb or .pbtxt at supplied export directory path: %s", dir);
    Error *err = saved_model_open(&file_system_local, dir, model);
    Str *wanted = xcalloc((size_t)tag_count, sizeof *wanted);
    for (int i = 0; i < tag_count; i++) wanted[i] = str_of(tags[i]);
    if (!err) err = saved_model_find(*model, wanted, tag_count, meta);
    free(wanted);
    return err;
}

static Error *import_model(TF_Graph *g, const MetaGraph *meta, StrBuf *graph_def) {
    TF_ImportGraphDefOptions *o = TF_NewImportGraphDefOptions();
    pthread_mutex_lock(&g->mutex);
    Error *err = g->graph->node_count ? error_invalid("Graph is non-empty.") : graph_import_locked(g, meta->graph_def, o, NULL);
    if (!err) graph_encode_locked(g, (GraphSent){0}, graph_def);
    pthread_mutex_unlock(&g->mutex);
    TF_DeleteImportGraphDefOptions(o);
    return err;
}

static Error *fill_meta_graph(TF_Buffer *out, const MetaGraph *meta) {
    StrBuf copy = {0};
    strbuf_add(&copy, meta->bytes);
    return buffer_fill(out, &copy);
}

TF_Session *TF_LoadSessionFromSavedModel(const TF_SessionOptions *session_options, const TF_Buffer *run_options, const char *export_dir, const char *const *tags, int tags_len,
                                         TF_Graph *graph, TF_Buffer *meta_graph_def, TF_Status *status) {
    capi_init();
    SavedModel *model = NULL;
    const MetaGraph *meta = NULL;
    StrBuf graph_def = {0};
    Loading loading = {NULL, buffer_str(run_options)};
    Error *err = open_model(export_dir, tags, tags_len, &model, &meta);
    if (!err) err = import_model(graph, meta, &graph_def);
    if (!err) err = client_open(session_options, strbuf_str(&graph_def), &loading.client);
    if (!err) err = meta_graph_restore(meta, &(RestoreFrom){model->variables, model->assets}, run_step, &loading);
    if (!err && meta_graph_def) err = fill_meta_graph(meta_graph_def, meta);
    TF_Session *session = NULL;
    if (!err) {
        pthread_mutex_lock(&graph->mutex);
        GraphSent sent = graph_extent_locked(graph);
        pthread_mutex_unlock(&graph->mutex);
        session = session_over(graph, loading.client, sent);
    } else {
        client_session_free(loading.client);
    }
    strbuf_clear(&graph_def);
    saved_model_close(model);
    status_take(status, error_wrap(err, "SavedModel %s", export_dir));
    return session;
}
