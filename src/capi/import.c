/* import.c: TF_GraphImportGraphDef and its options. */
#include <stdlib.h>

#include "base/memory.h"
#include "capi/description_internal.h"
#include "capi/import_internal.h"
#include "capi/status_internal.h"
#include "proto/wire.h"

/* ---- Options ---- */

TF_ImportGraphDefOptions *TF_NewImportGraphDefOptions(void) {
    return xcalloc(1, sizeof(TF_ImportGraphDefOptions));
}

void TF_DeleteImportGraphDefOptions(TF_ImportGraphDefOptions *o) {
    if (!o) return;
    for (int i = 0; i < o->mapping_count; i++) free(o->mappings[i].name);
    for (int i = 0; i < o->return_output_count; i++) free(o->return_outputs[i].name);
    for (int i = 0; i < o->return_oper_count; i++) free(o->return_opers[i]);
    free(o->mappings);
    free(o->return_outputs);
    free(o->return_opers);
    free(o->controls);
    free(o->prefix);
    free(o->default_device);
    free(o);
}

void TF_ImportGraphDefOptionsSetPrefix(TF_ImportGraphDefOptions *o, const char *prefix) {
    free(o->prefix);
    o->prefix = xstrdup(prefix);
}

void TF_ImportGraphDefOptionsSetDefaultDevice(TF_ImportGraphDefOptions *o, const char *device) {
    free(o->default_device);
    o->default_device = xstrdup(device);
}

void TF_ImportGraphDefOptionsSetUniquifyNames(TF_ImportGraphDefOptions *o, unsigned char uniquify_names) {
    o->uniquify_names = uniquify_names != 0;
}

void TF_ImportGraphDefOptionsSetUniquifyPrefix(TF_ImportGraphDefOptions *o, unsigned char uniquify_prefix) {
    o->uniquify_prefix = uniquify_prefix != 0;
}

/* "node:1" also as one name, when the index is 0. */
static NamedOutput named_output(const char *name, int index) {
    Str text = str_of(name);
    ptrdiff_t colon = str_find(text, ':');
    int64_t number;
    if (colon >= 0 && index == 0 && str_to_int64(str_slice(text, (size_t)colon + 1, text.len), &number)) return (NamedOutput){xstrndup(name, (size_t)colon), (int)number};
    return (NamedOutput){xstrdup(name), index};
}

static void add_mapping(TF_ImportGraphDefOptions *o, const char *name, int index, TF_Output to) {
    o->mappings = vec_reserve(o->mappings, &o->mapping_capacity, (size_t)o->mapping_count + 1, sizeof *o->mappings);
    o->mappings[o->mapping_count++] = (InputMapping){xstrdup(name), index, to};
}

void TF_ImportGraphDefOptionsAddInputMapping(TF_ImportGraphDefOptions *o, const char *src_name, int src_index, TF_Output dst) {
    add_mapping(o, src_name, src_index, dst);
}

void TF_ImportGraphDefOptionsRemapControlDependency(TF_ImportGraphDefOptions *o, const char *src_name, TF_Operation *dst) {
    add_mapping(o, src_name, CONTROL_INDEX, (TF_Output){dst, CONTROL_INDEX});
}

void TF_ImportGraphDefOptionsAddControlDependency(TF_ImportGraphDefOptions *o, TF_Operation *oper) {
    o->controls = vec_reserve(o->controls, &o->control_capacity, (size_t)o->control_count + 1, sizeof *o->controls);
    o->controls[o->control_count++] = oper;
}

void TF_ImportGraphDefOptionsAddReturnOutput(TF_ImportGraphDefOptions *o, const char *oper_name, int index) {
    o->return_outputs = vec_reserve(o->return_outputs, &o->return_output_capacity, (size_t)o->return_output_count + 1, sizeof *o->return_outputs);
    o->return_outputs[o->return_output_count++] = named_output(oper_name, index);
}

int TF_ImportGraphDefOptionsNumReturnOutputs(const TF_ImportGraphDefOptions *o) {
    return o->return_output_count;
}

void TF_ImportGraphDefOptionsAddReturnOperation(TF_ImportGraphDefOptions *o, const char *oper_name) {
    o->return_opers = vec_reserve(o->return_opers, &o->return_oper_capacity, (size_t)o->return_oper_count + 1, sizeof *o->return_opers);
    o->return_opers[o->return_oper_count++] = xstrdup(oper_name);
}

int TF_ImportGraphDefOptionsNumReturnOperations(const TF_ImportGraphDefOptions *o) {
    return o->return_oper_count;
}

/* ---- Results ---- */

struct TF_ImportGraphDefResults {
    TF_Output *outputs;
    int output_count;
    TF_Operation **opers;
    int oper_count;
    char **missing_names;
    int *missing_indexes;
    int missing_count;
};

void TF_DeleteImportGraphDefResults(TF_ImportGraphDefResults *r) {
    if (!r) return;
    for (int i = 0; i < r->missing_count; i++) free(r->missing_names[i]);
    free(r->missing_names);
    free(r->missing_indexes);
    free(r->outputs);
    free(r->opers);
    free(r);
}

void TF_ImportGraphDefResultsReturnOutputs(TF_ImportGraphDefResults *r, int *num_outputs, TF_Output **outputs) {
    *num_outputs = r->output_count;
    *outputs = r->outputs;
}

void TF_ImportGraphDefResultsReturnOperations(TF_ImportGraphDefResults *r, int *num_opers, TF_Operation ***opers) {
    *num_opers = r->oper_count;
    *opers = r->opers;
}

void TF_ImportGraphDefResultsMissingUnusedInputMappings(TF_ImportGraphDefResults *r, int *count, const char ***src_names, int **src_indexes) {
    *count = r->missing_count;
    *src_names = (const char **)r->missing_names;
    *src_indexes = r->missing_indexes;
}

static TF_Operation *imported(const Import *im, const char *name) {
    const Str *renamed = strmap_get(&im->names, str_of(name));
    return renamed ? graph_operation(im->graph, graph_find(im->graph->graph, *renamed)) : NULL;
}

static Error *find_outputs(const Import *im, TF_ImportGraphDefResults *r) {
    const TF_ImportGraphDefOptions *o = im->options;
    r->outputs = xcalloc((size_t)o->return_output_count, sizeof *r->outputs);
    for (int i = 0; i < o->return_output_count; i++) {
        const NamedOutput *wanted = &o->return_outputs[i];
        const InputMapping *m = import_mapping(im, str_of(wanted->name), wanted->index);
        TF_Operation *op = m ? NULL : imported(im, wanted->name);
        if (!m && !op) return error_invalid("Requested return tensor '%s:%d' not found in graph def", wanted->name, wanted->index);
        if (op && op->node->info && (wanted->index < 0 || wanted->index >= op->node->output_count))
            return error_invalid("Invalid return output %d of node '%s', which has %d output(s)", wanted->index, wanted->name, op->node->output_count);
        r->outputs[r->output_count++] = m ? m->to : (TF_Output){op, wanted->index};
    }
    return NULL;
}

static Error *find_operations(const Import *im, TF_ImportGraphDefResults *r) {
    const TF_ImportGraphDefOptions *o = im->options;
    r->opers = xcalloc((size_t)o->return_oper_count, sizeof *r->opers);
    for (int i = 0; i < o->return_oper_count; i++) {
        TF_Operation *op = imported(im, o->return_opers[i]);
        if (!op) return error_invalid("Requested return node '%s' not found in graph def", o->return_opers[i]);
        r->opers[r->oper_count++] = op;
    }
    return NULL;
}

/* Mappings of what is not there at all; one that merely nobody used is fine. */
static void find_missing(const Import *im, TF_ImportGraphDefResults *r) {
    const TF_ImportGraphDefOptions *o = im->options;
    r->missing_names = xcalloc((size_t)o->mapping_count, sizeof *r->missing_names);
    r->missing_indexes = xcalloc((size_t)o->mapping_count, sizeof *r->missing_indexes);
    for (int i = 0; i < o->mapping_count; i++) {
        const InputMapping *m = &o->mappings[i];
        const TF_Operation *op = imported(im, m->name);
        if (im->mapping_used[i] || (op && (!op->node->info || m->index < op->node->output_count))) continue;
        r->missing_names[r->missing_count] = xstrdup(m->name);
        r->missing_indexes[r->missing_count++] = m->index;
    }
}

/* ---- Import ---- */

static Error *check_options(const TF_Graph *g, const TF_ImportGraphDefOptions *o) {
    for (int i = 0; i < o->mapping_count; i++) {
        const InputMapping *m = &o->mappings[i];
        Output to;
        Error *err = capi_output(g, (TF_Output){m->to.oper, m->index == CONTROL_INDEX ? 0 : m->to.index}, &to);
        if (err && m->index == CONTROL_INDEX && m->to.oper && m->to.oper->graph == g) { /* an operation without outputs */
            error_free(err);
            err = NULL;
        }
        if (err) return error_wrap(err, "input mapping of '%s:%d'", m->name, m->index);
    }
    for (int i = 0; i < o->control_count; i++)
        if (o->controls[i]->graph != g) return error_invalid("Control dependency '%s' is an operation of another graph", o->controls[i]->name);
    return NULL;
}

static Error *add_nodes(Import *im) {
    TF_Graph *g = im->graph;
    int first = g->graph->node_count;
    StrBuf rewritten = {0};
    Error *err = import_rewrite(im, &rewritten);
    if (!err) err = graph_import(g->graph, strbuf_str(&rewritten));
    strbuf_clear(&rewritten);
    for (int i = first; !err && i < g->graph->node_count; i++) node_add_defaults(g->graph, g->graph->nodes[i]);
    if (!err) graph_wrap_nodes_locked(g);
    if (!err) err = shapes_infer_graph(g->shapes);
    return err;
}

static Error *import_locked(TF_Graph *g, Str graph_def, const TF_ImportGraphDefOptions *o, TF_ImportGraphDefResults *results) {
    Import im = {.graph = g, .options = o, .library = STR("")};
    int before = g->graph->node_count, producer = g->graph->producer, min_consumer = g->graph->min_consumer;
    Error *err = check_options(g, o);
    if (!err) err = import_read(&im, graph_def);
    if (!err) err = add_nodes(&im);
    if (!err) err = find_outputs(&im, results);
    if (!err) err = find_operations(&im, results);
    if (err) {
        graph_drop_nodes_locked(g, before);
        g->graph->producer = producer;
        g->graph->min_consumer = min_consumer;
    } else {
        find_missing(&im, results);
        g->graph->producer = im.producer < producer ? im.producer : producer;
        g->graph->min_consumer = im.min_consumer > min_consumer ? im.min_consumer : min_consumer;
    }
    import_clear(&im);
    return err;
}

Error *graph_import_locked(TF_Graph *g, Str graph_def, const TF_ImportGraphDefOptions *options, TF_Output *outputs) {
    TF_ImportGraphDefResults *results = xcalloc(1, sizeof *results);
    Error *err = import_locked(g, graph_def, options, results);
    for (int i = 0; !err && outputs && i < results->output_count; i++) outputs[i] = results->outputs[i];
    TF_DeleteImportGraphDefResults(results);
    return err;
}

TF_ImportGraphDefResults *TF_GraphImportGraphDefWithResults(TF_Graph *g, const TF_Buffer *graph_def, const TF_ImportGraphDefOptions *options, TF_Status *status) {
    TF_ImportGraphDefResults *results = xcalloc(1, sizeof *results);
    pthread_mutex_lock(&g->mutex);
    Error *err = import_locked(g, buffer_str(graph_def), options, results);
    pthread_mutex_unlock(&g->mutex);
    if (status_take(status, err)) return results;
    TF_DeleteImportGraphDefResults(results);
    return NULL;
}

TF_ImportGraphDefResults *TF_GraphImportGraphDefWithResultsNoSerialization(TF_Graph *g, const TF_Buffer *graph_def, const TF_ImportGraphDefOptions *options,
                                                                           TF_Status *status) {
    (void)g;
    (void)graph_def;
    (void)options;
    status_take(status, error_unimplemented("A GraphDef without serialisation is an object of TensorFlow's C++ library; use TF_GraphImportGraphDefWithResults"));
    return NULL;
}

void TF_GraphImportGraphDefWithReturnOutputs(TF_Graph *g, const TF_Buffer *graph_def, const TF_ImportGraphDefOptions *options, TF_Output *return_outputs,
                                             int num_return_outputs, TF_Status *status) {
    if (num_return_outputs != options->return_output_count) {
        status_take(status, error_invalid("Expected 'num_return_outputs' to be %d, got %d", options->return_output_count, num_return_outputs));
        return;
    }
    TF_ImportGraphDefResults *results = TF_GraphImportGraphDefWithResults(g, graph_def, options, status);
    for (int i = 0; results && i < num_return_outputs; i++) return_outputs[i] = results->outputs[i];
    TF_DeleteImportGraphDefResults(results);
}

void TF_GraphImportGraphDef(TF_Graph *g, const TF_Buffer *graph_def, const TF_ImportGraphDefOptions *options, TF_Status *status) {
    TF_DeleteImportGraphDefResults(TF_GraphImportGraphDefWithResults(g, graph_def, options, status));
}
