/* event_series.c: reads event files into series. */
#include "tools/event_series.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "io/event_file.h"
#include "io/record.h"
#include "proto/wire.h"
#include "tensor/number.h"
#include "tensor/print.h"
#include "tensor/tensor_proto.h"
#include "tools/report.h"

EventRun *event_run_new(const char *dir) {
    EventRun *r = xcalloc(1, sizeof *r);
    r->dir = xstrdup(dir);
    r->arena = arena_new();
    return r;
}

void event_run_free(EventRun *r) {
    if (!r) return;
    size_t at = 0;
    void *value;
    while (strmap_next(&r->by_tag, &at, NULL, &value)) free(((EventSeries *)value)->points);
    strmap_clear(&r->by_tag);
    strmap_clear(&r->plugins);
    arena_free(r->arena);
    free(r->dir);
    free(r);
}

static int by_tag(const void *a, const void *b) {
    return str_compare((*(EventSeries *const *)a)->tag, (*(EventSeries *const *)b)->tag);
}

EventSeries **event_run_sorted(const EventRun *r, size_t *count) {
    EventSeries **all = xcalloc(r->by_tag.count + 1, sizeof *all);
    size_t at = 0;
    void *value;
    *count = 0;
    while (strmap_next(&r->by_tag, &at, NULL, &value)) all[(*count)++] = value;
    qsort(all, *count, sizeof *all, by_tag);
    return all;
}

/* ---- One summary ---- */

static double wire_double(const WireReader *r) {
    double v;
    memcpy(&v, &r->number, 8);
    return v;
}

/* HistogramProto: min = 1, max = 2, num = 3, sum = 4. */
static void read_histogram(Str bytes, EventPoint *p) {
    WireReader r = wire_reader(bytes);
    while (wire_next(&r)) {
        if (r.type != WIRE_FIXED64) continue;
        if (r.field == 1) p->min = wire_double(&r);
        if (r.field == 2) p->max = wire_double(&r);
        if (r.field == 3) p->count = wire_double(&r);
        if (r.field == 4) p->sum = wire_double(&r);
    }
}

/* Summary.Image: height = 1, width = 2, encoded = 4. Summary.Audio: channels = 2, frames = 3, encoded = 4. */
static void read_media(Str bytes, bool image, EventPoint *p) {
    WireReader r = wire_reader(bytes);
    p->items = 1;
    while (wire_next(&r)) {
        if (r.type == WIRE_VARINT && r.field == (image ? 1 : 2)) p->height = (int64_t)r.number;
        if (r.type == WIRE_VARINT && r.field == (image ? 2 : 3)) p->width = (int64_t)r.number;
        if (r.type == WIRE_BYTES && r.field == 4) p->bytes = (int64_t)r.bytes.len;
    }
}

/* A tensor of the plugin "histograms": rows of left end, right end, count. */
static void read_histogram_rows(const Tensor *t, EventPoint *p) {
    p->min = INFINITY;
    p->max = -INFINITY;
    for (int64_t i = 0; i + 2 < t->count; i += 3) {
        double left = number_real(t, i), right = number_real(t, i + 1), n = number_real(t, i + 2);
        if (n <= 0) continue;
        p->count += n;
        p->sum += n * (left + right) / 2; /* the middle of the bucket stands for its values */
        p->min = left < p->min ? left : p->min;
        p->max = right > p->max ? right : p->max;
    }
    if (p->count <= 0) p->min = p->max = 0;
}

/* Strings of the plugin "images": width, height, then the pictures. */
static void read_images(const Tensor *t, EventPoint *p) {
    int64_t numbers[2] = {0, 0};
    for (int64_t i = 0; i < t->count; i++) {
        Str s = tstring_str(&tensor_str(t)[i]);
        if (i < 2) {
            str_to_int64(s, &numbers[i]);
        } else {
            p->items++;
            p->bytes += (int64_t)s.len;
        }
    }
    p->width = numbers[0];
    p->height = numbers[1];
}

static Str text_of(Arena *arena, const Tensor *t) {
    StrBuf text = {0};
    for (int64_t i = 0; i < t->count; i++) {
        if (i) strbuf_addc(&text, '\n');
        strbuf_add(&text, tstring_str(&tensor_str(t)[i]));
    }
    Str kept = arena_str(arena, strbuf_str(&text));
    strbuf_clear(&text);
    return kept;
}

/* By the plugin that shows it; else by what it is. */
static const char *read_tensor(EventRun *run, Str bytes, Str plugin, EventPoint *p) {
    Tensor *t = NULL;
    Error *err = tensor_proto_decode(bytes, &t);
    const char *kind = "tensor";
    if (err) {
        p->text = arena_str(run->arena, str_of(err->message));
        error_free(err);
        return kind;
    }
    bool number = number_kind(t->dtype) != NUMBER_NONE, strings = t->dtype == DT_STRING;
    if (number && t->count == 1 && (str_is(plugin, "scalars") || !plugin.len)) {
        kind = "scalar";
        p->value = number_real(t, 0);
    } else if (number && str_is(plugin, "histograms")) {
        kind = "histogram";
        read_histogram_rows(t, p);
    } else if (strings && str_is(plugin, "images")) {
        kind = "image";
        read_images(t, p);
    } else if (strings && str_is(plugin, "audio")) {
        kind = "audio";
        p->items = t->shape.rank == 2 ? t->shape.dims[0] : t->count;
        for (int64_t i = 0; i < t->count; i++) p->bytes += (int64_t)tstring_str(&tensor_str(t)[i]).len;
    } else if (strings && (str_is(plugin, "text") || !plugin.len)) {
        kind = "text";
        p->text = text_of(run->arena, t);
    } else {
        char *type = report_type(t->dtype, &t->shape);
        p->text = arena_str(run->arena, str_of(type));
        p->items = t->count;
        p->bytes = (int64_t)bytes.len;
        free(type);
    }
    tensor_unref(t);
    return kind;
}

static const char *read_value(EventRun *run, const SummaryValue *v, Str plugin, EventPoint *p) {
    switch (v->kind) {
        case SUMMARY_SCALAR:
            p->value = v->number;
            return "scalar";
        case SUMMARY_HISTOGRAM:
            read_histogram(v->bytes, p);
            return "histogram";
        case SUMMARY_IMAGE:
            read_media(v->bytes, true, p);
            return "image";
        case SUMMARY_AUDIO:
            read_media(v->bytes, false, p);
            return "audio";
        case SUMMARY_TENSOR:
            return read_tensor(run, v->bytes, plugin, p);
        default:
            return NULL;
    }
}

/* ---- Files ---- */

/* What shows the tag, as this or an earlier event said. */
static Str plugin_of(EventRun *run, const SummaryValue *v) {
    Str *known = strmap_get(&run->plugins, v->tag);
    if (!known && v->plugin.len) {
        known = arena_alloc(run->arena, sizeof *known);
        *known = arena_str(run->arena, v->plugin);
        strmap_put(&run->plugins, arena_str(run->arena, v->tag), known);
    }
    return known ? *known : STR("");
}

static void add_value(EventRun *run, const Event *e, const SummaryValue *v) {
    EventPoint point = {.step = e->step, .wall_time = e->wall_time};
    const char *kind = read_value(run, v, plugin_of(run, v), &point);
    if (!kind) return;
    EventSeries *s = strmap_get(&run->by_tag, v->tag);
    if (!s) {
        s = arena_calloc(run->arena, 1, sizeof *s);
        s->tag = arena_str(run->arena, v->tag);
        s->kind = kind;
        strmap_put(&run->by_tag, s->tag, s);
    }
    s->points = vec_reserve(s->points, &s->capacity, s->count + 1, sizeof *s->points);
    s->points[s->count++] = point;
}

static void add_event(EventRun *run, const Event *e) {
    SummaryValue v;
    run->events++;
    run->graphs += e->graph_def.ptr || e->meta_graph_def.ptr;
    if (!run->first_time || e->wall_time < run->first_time) run->first_time = e->wall_time;
    if (e->wall_time > run->last_time) run->last_time = e->wall_time;
    for (size_t at = 0; e->summary.ptr && summary_next(e->summary, &at, &v);) add_value(run, e, &v);
}

Error *event_run_read(EventRun *run, const char *path) {
    RecordReader *r = NULL;
    Error *err = record_reader_open(&file_system_local, path, COMPRESSION_NONE, &r);
    bool more = true;
    run->files += !err;
    while (!err && more) {
        Str record;
        Event e;
        uint64_t at = record_reader_position(r);
        err = record_reader_next(r, &record, &more);
        if (!err && record_reader_cut_short(r)) err = error_new(CODE_DATA_LOSS, "truncated record at %llu", (unsigned long long)at);
        if (err) err = error_wrap(err, "%s", path);
        if (err || !more) break;
        if (event_parse(record, &e))
            add_event(run, &e);
        else
            err = error_new(CODE_DATA_LOSS, "%s: the record at %llu is no event", path, (unsigned long long)at);
    }
    record_reader_close(r);
    return err;
}
