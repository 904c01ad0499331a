/* summary_writer.c: SummaryWriter and the ops that write events into its file: tf.summary of TensorFlow 2 in graphs. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "io/event_file.h"
#include "ops/op_list.h"
#include "ops/summary_value.h"
#include "proto/wire.h"
#include "tensor/number.h"

const OpDef summary_writer_ops[] = {
    {"SummaryWriter", "-> writer: resource", "shared_name: string = ''; container: string = ''", OP_STATEFUL},
    {"CreateSummaryFileWriter",
     "writer: resource, logdir: string, max_queue: int32, flush_millis: int32, filename_suffix: string ->", "",
     OP_STATEFUL},
    {"FlushSummaryWriter", "writer: resource ->", "", OP_STATEFUL},
    {"CloseSummaryWriter", "writer: resource ->", "", OP_STATEFUL},
    {"WriteSummary", "writer: resource, step: int64, tensor: T, tag: string, summary_metadata: string ->", "T: type",
     OP_STATEFUL},
    {"WriteRawProtoSummary", "writer: resource, step: int64, tensor: string ->", "", OP_STATEFUL},
    {"ImportEvent", "writer: resource, event: string ->", "", OP_STATEFUL},
    {"WriteGraphSummary", "writer: resource, step: int64, tensor: string ->", "", OP_STATEFUL},
    {"WriteScalarSummary", "writer: resource, step: int64, tag: string, value: T ->",
     "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}", OP_STATEFUL},
    {"WriteHistogramSummary", "writer: resource, step: int64, tag: string, values: T ->",
     "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64, bool} = float",
     OP_STATEFUL},
    {"WriteImageSummary", "writer: resource, step: int64, tag: string, tensor: T, bad_color: uint8 ->",
     "max_images: int >= 1 = 3; T: {uint8, double, float, half} = float", OP_STATEFUL},
    {"WriteAudioSummary", "writer: resource, step: int64, tag: string, tensor: float, sample_rate: float ->",
     "max_outputs: int >= 1 = 3", OP_STATEFUL},
    {0},
};

enum { FIELD_GRAPH = 4, FIELD_SUMMARY = 5 };

/* An open event file. What is written lies in memory until max_queue events wait or flush_ms have passed. */
typedef struct FileWriter {
    Resource base;
    pthread_mutex_t mutex; /* guards the rest */
    EventWriter *events;
    int64_t max_queue, flush_ms;
    int64_t waiting, flushed_ms; /* events since the last flush, and when that was */
} FileWriter;

static void destroy_writer(Resource *r) {
    FileWriter *w = (FileWriter *)r;
    event_writer_close(w->events);
    pthread_mutex_destroy(&w->mutex);
    free(w);
}

static const ResourceType writer_type = {
    .type_name = "N10tensorflow22SummaryWriterInterfaceE",
    .what = "summary writer",
    .destroy = destroy_writer,
};

typedef struct HandleState {
    Str container, shared_name;
} HandleState;

static Error *init_handle(const Node *node, void *state) {
    HandleState *s = state;
    Error *err = node_attr_string(node, "container", &s->container);
    return err ? err : node_attr_string(node, "shared_name", &s->shared_name);
}

static Error *run_handle(KernelContext *k) {
    const HandleState *s = k->state;
    Tensor *t = kernel_make_handle(k, s->container, s->shared_name.len ? s->shared_name : k->node->name, &writer_type);
    if (t) kernel_set_output(k, 0, t);
    return NULL;
}

/* ---- Opening and closing ---- */

static Error *string_input(KernelContext *k, int i, const char *what, Str *out) {
    if (k->in[i]->count != 1) return error_invalid("%s must be a scalar", what);
    *out = tstring_str(tensor_str(k->in[i]));
    return NULL;
}

typedef struct OpenArg {
    char *dir;
    Str suffix;
    int64_t max_queue, flush_ms;
} OpenArg;

static Error *open_writer(void *arg, Resource **out) {
    static atomic_uint serial; /* files of one second have different names */
    OpenArg *a = arg;
    FileWriter *w = xcalloc(1, sizeof *w);
    resource_init(&w->base, &writer_type);
    pthread_mutex_init(&w->mutex, NULL);
    w->max_queue = a->max_queue;
    w->flush_ms = a->flush_ms;
    w->flushed_ms = clock_mono_ms();
    char *suffix = xasprintf(".%d.%u%.*s", (int)getpid(), atomic_fetch_add(&serial, 1), STR_ARG(a->suffix));
    Error *err = event_writer_open(&file_system_local, a->dir, suffix, &w->events);
    free(suffix);
    if (err)
        resource_unref(&w->base);
    else
        *out = &w->base;
    return err;
}

static Error *run_create(KernelContext *k) {
    Str dir;
    OpenArg arg = {0};
    Error *err = string_input(k, 1, "logdir", &dir);
    if (!err) err = kernel_scalar_int(k, 2, &arg.max_queue);
    if (!err) err = kernel_scalar_int(k, 3, &arg.flush_ms);
    if (!err) err = string_input(k, 4, "filename_suffix", &arg.suffix);
    const ResourceHandle *h = k->in[0]->count == 1 ? tensor_handles(k->in[0])[0] : NULL;
    if (!err && !h) err = error_invalid("writer is not a handle");
    if (err) return err;
    Resource *r = NULL;
    arg.dir = str_dup(dir);
    err = resource_find_or_create(kernel_resources(k), str_of(h->container), str_of(h->name), &writer_type, open_writer,
                                  &arg, &r);
    free(arg.dir);
    if (!err) resource_unref(r);
    return err;
}

static Error *flush_locked(FileWriter *w) {
    w->waiting = 0;
    w->flushed_ms = clock_mono_ms();
    return event_writer_flush(w->events);
}

static Error *run_flush(KernelContext *k) {
    Resource *r = NULL;
    Error *err = kernel_resource(k, 0, &writer_type, &r);
    if (err) return err;
    FileWriter *w = (FileWriter *)r;
    pthread_mutex_lock(&w->mutex);
    err = flush_locked(w);
    pthread_mutex_unlock(&w->mutex);
    resource_unref(r);
    return err;
}

static Error *run_close(KernelContext *k) {
    const ResourceHandle *h = k->in[0]->count == 1 ? tensor_handles(k->in[0])[0] : NULL;
    if (!h) return error_invalid("writer is not a handle");
    return resource_delete(kernel_resources(k), str_of(h->container), str_of(h->name), &writer_type);
}

/* ---- Writing ---- */

/* One event with the field, or whole when the field is 0; flushes when it is time. */
static Error *write_event(KernelContext *k, int64_t step, uint32_t field, Str content) {
    Resource *r = NULL;
    Error *err = kernel_resource(k, 0, &writer_type, &r);
    if (err) return err;
    FileWriter *w = (FileWriter *)r;
    pthread_mutex_lock(&w->mutex);
    err = field ? event_writer_add_field(w->events, step, field, content) : event_writer_add(w->events, content);
    w->waiting++;
    if (!err && (w->waiting > w->max_queue || clock_mono_ms() - w->flushed_ms > w->flush_ms)) err = flush_locked(w);
    pthread_mutex_unlock(&w->mutex);
    resource_unref(r);
    return err;
}

/* Writes the summary at the step of input 1, unless it could not be made. */
static Error *write_summary(KernelContext *k, StrBuf *summary, Error *err) {
    int64_t step = 0;
    if (!err) err = kernel_scalar_int(k, 1, &step);
    if (!err) err = write_event(k, step, FIELD_SUMMARY, strbuf_str(summary));
    strbuf_clear(summary);
    return err;
}

static Error *run_write(KernelContext *k) {
    Str tag, metadata;
    Error *err = string_input(k, 3, "tag", &tag);
    if (!err) err = string_input(k, 4, "summary_metadata", &metadata);
    StrBuf summary = {0};
    if (!err) summary_put_tensor(&summary, tag, STR(""), k->in[2], metadata.len ? metadata : (Str){0});
    return write_summary(k, &summary, err);
}

static bool is_message(Str bytes) {
    WireReader r = wire_reader(bytes);
    while (wire_next(&r)) continue;
    return !r.failed;
}

/* Every element is a Summary; together they are one. */
static Error *run_write_proto(KernelContext *k) {
    StrBuf summary = {0};
    Error *err = NULL;
    for (int64_t i = 0; !err && i < k->in[2]->count; i++) {
        Str part = tstring_str(&tensor_str(k->in[2])[i]);
        if (is_message(part))
            strbuf_add(&summary, part);
        else
            err = error_new(CODE_DATA_LOSS, "Bad tf.compat.v1.Summary binary proto tensor string at index %lld", (long long)i);
    }
    return write_summary(k, &summary, err);
}

static Error *run_write_scalar(KernelContext *k) {
    Str tag;
    Error *err = string_input(k, 2, "tag", &tag);
    if (!err && k->in[3]->count != 1) err = error_invalid("value must be a scalar");
    StrBuf summary = {0};
    if (!err) summary_put_scalar(&summary, tag, (float)number_real(k->in[3], 0));
    return write_summary(k, &summary, err);
}

static Error *run_write_histogram(KernelContext *k) {
    Str tag;
    StrBuf summary = {0};
    Error *err = string_input(k, 2, "tag", &tag);
    if (!err) err = summary_put_histogram(&summary, tag, k->in[3], tag);
    return write_summary(k, &summary, err);
}

typedef struct MostState {
    int64_t most; /* pictures or sounds of a batch */
} MostState;

static Error *init_images(const Node *node, void *state) {
    return node_attr_int(node, "max_images", &((MostState *)state)->most);
}

static Error *init_sounds(const Node *node, void *state) {
    return node_attr_int(node, "max_outputs", &((MostState *)state)->most);
}

static Error *run_write_images(KernelContext *k) {
    Str tag;
    StrBuf summary = {0};
    uint8_t bad_color[4] = {255, 0, 0, 255};
    Error *err = string_input(k, 2, "tag", &tag);
    for (int64_t i = 0; i < k->in[4]->count && i < 4; i++) bad_color[i] = tensor_u8(k->in[4])[i];
    if (!err) err = summary_put_images(&summary, tag, k->in[3], ((MostState *)k->state)->most, bad_color);
    return write_summary(k, &summary, err);
}

static Error *run_write_sounds(KernelContext *k) {
    Str tag;
    StrBuf summary = {0};
    Error *err = string_input(k, 2, "tag", &tag);
    if (!err && k->in[4]->count != 1) err = error_invalid("sample_rate must be a scalar");
    if (!err) err = summary_put_sounds(&summary, tag, k->in[3], ((MostState *)k->state)->most, *tensor_f32(k->in[4]));
    return write_summary(k, &summary, err);
}

static Error *run_write_graph(KernelContext *k) {
    Str graph;
    int64_t step = 0;
    Error *err = string_input(k, 2, "tensor", &graph);
    if (!err && !is_message(graph)) err = error_new(CODE_DATA_LOSS, "Bad tf.GraphDef binary proto tensor string");
    if (!err) err = kernel_scalar_int(k, 1, &step);
    return err ? err : write_event(k, step, FIELD_GRAPH, graph);
}

static Error *run_import(KernelContext *k) {
    Str event;
    Event parsed;
    Error *err = string_input(k, 1, "event", &event);
    if (!err && !event_parse(event, &parsed)) err = error_new(CODE_DATA_LOSS, "Bad tf.Event binary proto tensor string");
    return err ? err : write_event(k, 0, 0, event);
}

const KernelDef summary_writer_cpu[] = {
    {"SummaryWriter", .run = run_handle, .state_size = sizeof(HandleState), .init = init_handle},
    {"CreateSummaryFileWriter", .run = run_create, .flags = KERNEL_EXPENSIVE},
    {"FlushSummaryWriter", .run = run_flush, .flags = KERNEL_EXPENSIVE},
    {"CloseSummaryWriter", .run = run_close, .flags = KERNEL_EXPENSIVE},
    {"WriteSummary", .run = run_write, .flags = KERNEL_EXPENSIVE},
    {"WriteRawProtoSummary", .run = run_write_proto, .flags = KERNEL_EXPENSIVE},
    {"ImportEvent", .run = run_import, .flags = KERNEL_EXPENSIVE},
    {"WriteGraphSummary", .run = run_write_graph, .flags = KERNEL_EXPENSIVE},
    {"WriteScalarSummary", .run = run_write_scalar, .flags = KERNEL_EXPENSIVE},
    {"WriteHistogramSummary", .run = run_write_histogram, .flags = KERNEL_EXPENSIVE},
    {"WriteImageSummary", .run = run_write_images, .state_size = sizeof(MostState), .init = init_images,
     .flags = KERNEL_EXPENSIVE},
    {"WriteAudioSummary", .run = run_write_sounds, .state_size = sizeof(MostState), .init = init_sounds,
     .flags = KERNEL_EXPENSIVE},
    {0},
};
