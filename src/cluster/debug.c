/* debug.c: DebugOptions of a run. */
#include "cluster/debug.h"

#include <stdlib.h>

#include "base/hashmap.h"
#include "base/memory.h"
#include "io/debug_dump.h"
#include "proto/wire.h"

Str debug_options_of(Str run_options) {
    Str found = {"", 0};
    WireReader r = wire_reader(run_options);
    while (wire_next(&r))
        if (r.field == 6 && r.type == WIRE_BYTES) found = r.bytes;
    return found;
}

static Str *strs_of(char **texts, size_t count) {
    Str *out = xcalloc(count + 1, sizeof *out);
    for (size_t i = 0; i < count; i++) out[i] = str_of(texts[i]);
    return out;
}

/* Calls fn once for every folder that the options write to; the first error is given back. */
typedef Error *ForFolder(void *arg, Str folder);

static Error *for_each_folder(const Pb__DebugOptions *o, ForFolder *fn, void *arg) {
    StrMap seen = {0};
    Error *first = NULL;
    for (size_t i = 0; i < o->n_debug_tensor_watch_opts; i++) {
        const Pb__DebugTensorWatch *w = o->debug_tensor_watch_opts[i];
        for (size_t u = 0; u < w->n_debug_urls; u++) {
            Str url = str_of(w->debug_urls[u]), folder;
            if (!debug_url_is(url, "file://", &folder) || strmap_get(&seen, url)) continue;
            strmap_put(&seen, url, w->debug_urls[u]);
            Error *err = fn(arg, folder);
            if (first)
                error_free(err);
            else
                first = err;
        }
    }
    strmap_clear(&seen);
    return first;
}

typedef struct DumpedGraph {
    Str device, graph_def;
} DumpedGraph;

static Error *dump_graph(void *arg, Str folder) {
    const DumpedGraph *g = arg;
    return debug_dump_graph(&file_system_local, folder, g->device, g->graph_def);
}

static Error *publish_graph(const Pb__DebugOptions *o, const Executable *e, const DeviceSet *devices) {
    StrBuf graph_def = {0};
    executable_graph_def(e, &graph_def);
    Error *err = for_each_folder(o, dump_graph, &(DumpedGraph){str_of(devices->devices[0]->name), strbuf_str(&graph_def)});
    strbuf_clear(&graph_def);
    return err;
}

Error *debug_executable(Str graph_def, const Pb__DebugOptions *o, const DeviceSet *devices, SessionState *session, Executable **out) {
    size_t count = o->n_debug_tensor_watch_opts;
    DebugWatch *watches = xcalloc(count + 1, sizeof *watches);
    for (size_t i = 0; i < count; i++) {
        const Pb__DebugTensorWatch *w = o->debug_tensor_watch_opts[i];
        watches[i] = (DebugWatch){.node = str_of(w->node_name),
                                  .slot = w->output_slot,
                                  .ops = strs_of(w->debug_ops, w->n_debug_ops),
                                  .op_count = (int)w->n_debug_ops,
                                  .urls = strs_of(w->debug_urls, w->n_debug_urls),
                                  .url_count = (int)w->n_debug_urls,
                                  .tolerate = w->tolerate_debug_op_creation_failures};
    }
    Error *err = executable_new_watched(graph_def, watches, (int)count, &(PassOptions){0}, devices, session, out);
    if (!err) {
        err = publish_graph(o, *out, devices);
        if (err) executable_unref(*out);
    }
    for (size_t i = 0; i < count; i++) {
        free((Str *)watches[i].ops);
        free((Str *)watches[i].urls);
    }
    free(watches);
    return err;
}

static void put_names(StrBuf *json, const char *what, const Str *names, int count) {
    strbuf_addf(json, ",\"%s\":[", what);
    for (int i = 0; i < count; i++) strbuf_addf(json, "%s\"%.*s\"", i ? "," : "", STR_ARG(names[i]));
    strbuf_addc(json, ']');
}

typedef struct DumpedRun {
    int64_t run;
    Str json;
} DumpedRun;

static Error *dump_run(void *arg, Str folder) {
    const DumpedRun *r = arg;
    return debug_dump_run(&file_system_local, folder, r->run, r->json);
}

Error *debug_publish_run(const Pb__DebugOptions *o, const RunSignature *signature, int64_t run, int64_t same) {
    StrBuf json = {0};
    strbuf_addf(&json, "{\"global_step\":%lld,\"session_run_index\":%lld,\"executor_step_index\":%lld", (long long)o->global_step, (long long)run, (long long)same);
    put_names(&json, "input_names", signature->feeds, signature->feed_count);
    put_names(&json, "output_names", signature->fetches, signature->fetch_count);
    put_names(&json, "target_nodes", signature->targets, signature->target_count);
    strbuf_addc(&json, '}');
    Error *err = for_each_folder(o, dump_run, &(DumpedRun){run, strbuf_str(&json)});
    strbuf_clear(&json);
    return err;
}
