/* model.c: opens a model: reads it, makes a session, restores. */
#include "model/model.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "graph/function.h"
#include "graph/graph_def.h"
#include "model/restore.h"
#include "runtime/direct_session.h"

struct Model {
    SavedModel *file;
    MetaGraph meta_graph; /* as in the file, but for a saver found in a bare graph */
    Graph *graph;         /* the nodes, to look up types; the session has its own */
    FunctionLibrary *functions;
    const ModelSessions *sessions;
    void *session;
};

/* ---- In this process ---- */

static Error *open_direct(const void *arg, Str graph_def, void **session) {
    DirectSession *s = NULL;
    Error *err = direct_session_new(graph_def, *(const int *)arg, &s);
    *session = s;
    return err;
}

static Error *run_direct(void *session, const RunSignature *signature, Tensor *const *feeds, Tensor **fetches,
                         int64_t timeout_ms) {
    return direct_session_run(session, signature, feeds, fetches, timeout_ms);
}

static void close_direct(void *session) {
    direct_session_free(session);
}

static const ModelSessions direct_sessions = {.open = open_direct, .run = run_direct, .close = close_direct};

/* ---- Any ---- */

void model_close(Model *m) {
    if (!m) return;
    if (m->session) m->sessions->close(m->session);
    graph_free(m->graph);
    function_library_free(m->functions);
    saved_model_close(m->file);
    free(m);
}

const SavedModel *model_file(const Model *m) {
    return m->file;
}

const MetaGraph *model_meta_graph(const Model *m) {
    return &m->meta_graph;
}

static Error *choose(const SavedModel *file, const ModelOptions *o, const MetaGraph **out) {
    Str serve = STR("serve");
    if (o->tag_count) return saved_model_find(file, o->tags, o->tag_count, out);
    if (file->count > 1) return saved_model_find(file, &serve, 1, out);
    *out = file->meta_graphs[0];
    return NULL;
}

static Error *run_step(void *model, const RunSignature *signature, Tensor *const *feeds, Tensor **fetches) {
    return model_run(model, signature, feeds, fetches, 0);
}

/* A bare graph may still have the nodes that tf.train.Saver adds, under their usual names. */
static void find_saver(Model *m) {
    SaverDef *s = &m->meta_graph.saver;
    if (s->present || !graph_find(m->graph, STR("save/restore_all")) || !graph_find(m->graph, STR("save/Const")))
        return;
    *s = (SaverDef){
        .present = true, .filename_tensor = STR("save/Const:0"), .restore_op = STR("save/restore_all"), .version = 2};
}

/* A graph with its saver beside it (.meta) has no init op: tables are filled by the nodes of a collection. */
static Error *run_init(Model *m, const ModelOptions *o) {
    const Collection *tables = meta_graph_collection(&m->meta_graph, STR("table_initializer"));
    Error *err = NULL;
    bool fill = m->file->format == MODEL_META_GRAPH && tables && tables->kind == COLLECTION_NODES;
    for (int i = 0; !err && fill && i < tables->count; i++) {
        RunSignature signature = {.targets = &tables->items[i], .target_count = 1};
        err = error_wrap(run_step(m, &signature, NULL, NULL), "running %.*s", STR_ARG(tables->items[i]));
    }
    for (int i = 0; !err && i < o->init_count; i++) {
        RunSignature signature = {.targets = &o->init[i], .target_count = 1};
        err = error_wrap(run_step(m, &signature, NULL, NULL), "running %.*s", STR_ARG(o->init[i]));
    }
    return err;
}

static Error *start(Model *m, const ModelOptions *o) {
    int threads = o->threads ? o->threads : (int)sysconf(_SC_NPROCESSORS_ONLN);
    m->sessions = o->sessions ? o->sessions : &direct_sessions;
    Error *err = graph_import(m->graph, m->meta_graph.graph_def);
    if (!err)
        err = m->sessions->open(o->sessions ? o->sessions_arg : &threads, m->meta_graph.graph_def, &m->session);
    if (err) return err;
    RestoreFrom from = {.variables = o->checkpoint ? o->checkpoint : m->file->variables, .assets = m->file->assets};
    if (o->checkpoint) find_saver(m);
    /* A .meta without saver nodes beside a checkpoint can still be run: only what it does not restore is missing. */
    if (!o->checkpoint && !m->meta_graph.saver.restore_op.len) from.variables = NULL;
    err = meta_graph_restore(&m->meta_graph, &from, run_step, m);
    return err ? err : run_init(m, o);
}

Error *model_open(const FileSystem *fs, const char *path, const ModelOptions *options, Model **out) {
    const MetaGraph *chosen = NULL;
    Model *m = xcalloc(1, sizeof *m);
    m->functions = function_library_new();
    m->graph = graph_new();
    m->graph->functions = m->functions;
    Error *err = saved_model_open(fs, path, &m->file);
    if (!err) err = choose(m->file, options, &chosen);
    if (!err) {
        m->meta_graph = *chosen;
        err = error_wrap(start(m, options), "%s", path);
    }
    if (err)
        model_close(m);
    else
        *out = m;
    return err;
}

Error *model_tensor_info(const Model *m, Str tensor, TensorInfo *out) {
    Str name;
    int index;
    if (!tensor_name_parse(tensor, &name, &index))
        return error_invalid("'%.*s' is no name of a tensor", STR_ARG(tensor));
    const Node *n = graph_find(m->graph, name);
    if (!n) return error_not_found("There is no node '%.*s' in %s", STR_ARG(name), m->file->path);
    if (n->info && (index < 0 || index >= n->output_count))
        return error_invalid("Node '%.*s' has %d outputs, '%.*s' is none of them", STR_ARG(name), n->output_count,
                             STR_ARG(tensor));
    *out = (TensorInfo){.key = tensor, .name = tensor, .shape = {.rank = -1}};
    out->dtype = n->info ? dtype_base(n->output_types[index]) : DT_INVALID;
    /* In graphs older than version 24 a placeholder of unknown shape says []. */
    if (str_starts(n->op, STR("Placeholder"))) error_free(node_attr_shape(n, "shape", &out->shape));
    if (m->graph->producer < 24 && out->shape.rank == 0) out->shape.rank = -1;
    return NULL;
}

Error *model_run(Model *m, const RunSignature *signature, Tensor *const *feeds, Tensor **fetches, int64_t timeout_ms) {
    return m->sessions->run(m->session, signature, feeds, fetches, timeout_ms);
}
