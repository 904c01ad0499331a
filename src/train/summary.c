/* summary.c: summary ops, and event files.

   Event: wall_time=1 step=2 file_version=3 graph_def=4 summary=5. Summary: value=1. Summary.Value: tag=1 simple_value=2. */
#include "rill/summary.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "io/record.h"
#include "proto/wire.h"
#include "train/graph_internal.h"

static RillTensor collected(RillGraph *g, RillTensor summary) {
    if (tensor_ok(summary)) graph_list_add(g, LIST_SUMMARIES, (RillListItem){.op = summary.oper, .index = summary.index});
    return summary;
}

static RillTensor summary_op(RillGraph *g, const char *op, const char *tag, RillTensor value, const RillAttr *attrs, int attr_count) {
    rill_name_push(g, "summary");
    RillTensor out = rill_op(g, op, NULL, (RillTensor[]){rill_const_string(g, tag), value}, 2, attrs, attr_count);
    rill_name_pop(g);
    return collected(g, out);
}

RillTensor rill_summary_scalar(RillGraph *g, const char *tag, RillTensor value) {
    return summary_op(g, "ScalarSummary", tag, value, NULL, 0);
}

RillTensor rill_summary_histogram(RillGraph *g, const char *tag, RillTensor values) {
    return summary_op(g, "HistogramSummary", tag, values, NULL, 0);
}

RillTensor rill_summary_image(RillGraph *g, const char *tag, RillTensor images, int max_images) {
    return summary_op(g, "ImageSummary", tag, images, (RillAttr[]){RILL_INT("max_images", max_images)}, 1);
}

RillTensor rill_summary_merge(RillGraph *g) {
    int count = g->lists[LIST_SUMMARIES].count;
    if (!count || rill_graph_failed(g)) return NO_TENSOR;
    RillTensor *all = xcalloc((size_t)count, sizeof *all);
    for (int i = 0; i < count; i++) all[i] = (RillTensor){g->lists[LIST_SUMMARIES].items[i].op, g->lists[LIST_SUMMARIES].items[i].index};
    RillTensor merged = rill_op(g, "MergeSummary", NULL, all, count, NULL, 0);
    free(all);
    return merged;
}

/* ---- Event files ---- */

struct RillWriter {
    pthread_mutex_t mutex; /* guards all below */
    RecordWriter *file;
    Error *err; /* the first one */
};

static void add_event(RillWriter *w, int64_t step, uint32_t field, Str value) {
    StrBuf event = {0};
    wire_put_double(&event, 1, (double)clock_wall_us() / 1e6);
    if (step) wire_put_uint(&event, 2, (uint64_t)step);
    wire_put_bytes(&event, field, value);
    pthread_mutex_lock(&w->mutex);
    if (!w->err) w->err = record_writer_add(w->file, strbuf_str(&event));
    pthread_mutex_unlock(&w->mutex);
    strbuf_clear(&event);
}

RillWriter *rill_writer_open(const char *directory, TF_Status *status) {
    char host[256] = "localhost";
    gethostname(host, sizeof host - 1);
    RillWriter *w = xcalloc(1, sizeof *w);
    pthread_mutex_init(&w->mutex, NULL);
    char *path = xasprintf("%s/events.out.tfevents.%010lld.%s.%d", directory, (long long)(clock_wall_us() / 1000000), host, (int)getpid());
    Error *err = file_system_local.make_dir(directory);
    if (!err) err = record_writer_open(&file_system_local, path, COMPRESSION_NONE, true, &w->file);
    free(path);
    TF_SetStatus(status, err ? (TF_Code)err->code : TF_OK, err ? err->message : "");
    if (err) {
        error_free(err);
        pthread_mutex_destroy(&w->mutex);
        free(w);
        return NULL;
    }
    add_event(w, 0, 3, STR("brain.Event:2"));
    return w;
}

void rill_writer_close(RillWriter *w) {
    if (!w) return;
    if (!w->err) w->err = record_writer_finish(w->file);
    record_writer_close(w->file);
    error_free(w->err);
    pthread_mutex_destroy(&w->mutex);
    free(w);
}

void rill_writer_summary(RillWriter *w, const TF_Tensor *summary, int64_t step) {
    if (!w || !summary || TF_TensorType(summary) != TF_STRING || TF_TensorElementCount(summary) < 1) return;
    const TF_TString *s = TF_TensorData(summary);
    add_event(w, step, 5, (Str){TF_StringGetDataPointer(s), TF_StringGetSize(s)});
}

void rill_writer_scalar(RillWriter *w, const char *tag, double value, int64_t step) {
    if (!w) return;
    StrBuf item = {0}, summary = {0};
    wire_put_bytes(&item, 1, str_of(tag));
    wire_put_float(&item, 2, (float)value);
    wire_put_bytes(&summary, 1, strbuf_str(&item));
    add_event(w, step, 5, strbuf_str(&summary));
    strbuf_clear(&item);
    strbuf_clear(&summary);
}

void rill_writer_graph(RillWriter *w, RillGraph *g) {
    if (!w) return;
    TF_Buffer *graph = TF_NewBuffer();
    TF_Status *status = TF_NewStatus();
    TF_GraphToGraphDef(g->tf, graph, status);
    if (TF_GetCode(status) == TF_OK) add_event(w, 0, 4, (Str){graph->data, graph->length});
    TF_DeleteStatus(status);
    TF_DeleteBuffer(graph);
}

TF_Code rill_writer_flush(RillWriter *w, TF_Status *status) {
    pthread_mutex_lock(&w->mutex);
    if (!w->err) w->err = record_writer_flush(w->file);
    TF_SetStatus(status, w->err ? (TF_Code)w->err->code : TF_OK, w->err ? w->err->message : "");
    pthread_mutex_unlock(&w->mutex);
    return TF_GetCode(status);
}
