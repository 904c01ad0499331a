/* graph_fuzz.c: GraphDef, MetaGraphDef and SavedModel: imported, lowered, placed, made ready to run (not run), exported. */
#include "fuzz_target.h"
#include "graph/function.h"
#include "graph/graph_def.h"
#include "io/saved_model.h"
#include "memory_files.h"
#include "ops/op_list.h"
#include "placement/lower.h"
#include "placement/placer.h"
#include "runtime/executable.h"

enum { MAX_NODES = 300 };

static void compile(const Graph *g) {
    Graph *lowered = NULL;
    Error *err = graph_lower(g, &lowered);
    if (err) {
        error_free(err);
        return;
    }
    Str name = STR("/job:localhost/replica:0/task:0/device:CPU:0");
    PlacerDevice place = {.name = name, .is_local = true};
    error_free(device_name_parse(name, &place.parsed));
    err = graph_place(lowered, &(PlacerOptions){.devices = &place, .device_count = 1, .soft = true});
    if (err) {
        error_free(err);
        graph_free(lowered);
        return;
    }
    Device *device = cpu_device_new(STR("/job:localhost/replica:0/task:0"), 0, STR("localhost"));
    DeviceSet devices = {&device, 1};
    SessionState *state = session_state_new(&devices, STR(""), false);
    Executable *e = NULL;
    err = executable_from_graph(lowered, &(PassOptions){0}, &devices, state, &e);
    if (!err) executable_unref(e);
    error_free(err);
    session_state_close(state);
    session_state_unref(state);
    device_free(device);
}

static void import(Str bytes) {
    Graph *g = graph_new();
    FunctionLibrary *functions = function_library_new();
    g->functions = functions;
    Error *err = graph_import(g, bytes);
    if (!err) {
        StrBuf out = {0};
        graph_export(g, &(GraphExport){.strip_defaults = true}, &out);
        strbuf_clear(&out);
        if (g->node_count <= MAX_NODES) compile(g);
    }
    error_free(err);
    graph_free(g);
    function_library_free(functions);
}

static void open_model(Str bytes, bool is_meta) {
    memory_files[0] = (struct MemoryFile){is_meta ? "model.meta" : "dir/saved_model.pb", bytes};
    SavedModel *m = NULL;
    Error *err = saved_model_open(&memory_file_system, is_meta ? "model.meta" : "dir", &m);
    for (int i = 0; !err && i < m->count; i++) {
        free(meta_graph_tags_text(m->meta_graphs[i]));
        import(m->meta_graphs[i]->graph_def);
    }
    if (!err) saved_model_close(m);
    error_free(err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static bool ready;
    if (!ready) ops_register_all();
    ready = true;
    Str input = input_str(data, size);
    unsigned choice = take_choice(&input) % 8;
    if (choice == 6 || choice == 7)
        open_model(input, choice == 6);
    else
        import(input);
    return 0;
}
