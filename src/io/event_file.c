/* event_file.c: Event and Summary messages read where they lie; event files written. */
#include "io/event_file.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "io/record.h"
#include "proto/wire.h"

bool event_parse(Str bytes, Event *out) {
    WireReader r = wire_reader(bytes);
    *out = (Event){0};
    while (wire_next(&r)) {
        if (r.field == 1 && r.type == WIRE_FIXED64) memcpy(&out->wall_time, &r.number, 8);
        if (r.field == 2 && r.type == WIRE_VARINT) out->step = (int64_t)r.number;
        if (r.type != WIRE_BYTES) continue;
        if (r.field == 3) out->file_version = r.bytes;
        if (r.field == 4) out->graph_def = r.bytes;
        if (r.field == 5) out->summary = r.bytes;
        if (r.field == 8) out->run_metadata = r.bytes;
        if (r.field == 9) out->meta_graph_def = r.bytes;
    }
    return !r.failed;
}

/* The name of the plugin in a SummaryMetadata: plugin_data = 1 { plugin_name = 1 }. */
static Str plugin_of(Str metadata) {
    Str name = STR("");
    WireReader r = wire_reader(metadata);
    while (wire_next(&r)) {
        if (r.field != 1 || r.type != WIRE_BYTES) continue;
        WireReader data = wire_reader(r.bytes);
        while (wire_next(&data))
            if (data.field == 1 && data.type == WIRE_BYTES) name = data.bytes;
    }
    return name;
}

static bool parse_value(Str bytes, SummaryValue *out) {
    static const SummaryKind kinds[] = {
        [4] = SUMMARY_IMAGE, [5] = SUMMARY_HISTOGRAM, [6] = SUMMARY_AUDIO, [8] = SUMMARY_TENSOR};
    WireReader r = wire_reader(bytes);
    *out = (SummaryValue){.tag = STR(""), .plugin = STR("")};
    while (wire_next(&r)) {
        if (r.field == 2 && r.type == WIRE_FIXED32) {
            uint32_t bits = (uint32_t)r.number;
            memcpy(&out->number, &bits, 4);
            out->kind = SUMMARY_SCALAR;
        }
        if (r.type != WIRE_BYTES) continue;
        if (r.field == 1) out->tag = r.bytes;
        if (r.field == 9) out->plugin = plugin_of(r.bytes);
        if (r.field < sizeof kinds / sizeof kinds[0] && kinds[r.field]) {
            out->kind = kinds[r.field];
            out->bytes = r.bytes;
        }
    }
    return !r.failed;
}

bool summary_next(Str summary, size_t *at, SummaryValue *out) {
    WireReader r = wire_reader(str_slice(summary, *at, summary.len));
    while (wire_next(&r)) {
        *at = (size_t)((const char *)r.at - summary.ptr);
        if (r.field == 1 && r.type == WIRE_BYTES) return parse_value(r.bytes, out);
    }
    return false;
}

/* ---- Writing ---- */

struct EventWriter {
    RecordWriter *records;
    char *path;
};

static Error *add_version(EventWriter *w) {
    StrBuf event = {0}, source = {0};
    wire_put_double(&event, 1, (double)clock_wall_us() / 1e6);
    wire_put_bytes(&event, 3, STR("brain.Event:2"));
    wire_put_bytes(&source, 1, STR("rill"));
    wire_put_bytes(&event, 10, strbuf_str(&source)); /* source_metadata.writer */
    Error *err = event_writer_add(w, strbuf_str(&event));
    strbuf_clear(&event);
    strbuf_clear(&source);
    return err ? err : event_writer_flush(w);
}

Error *event_writer_open(const FileSystem *fs, const char *dir, const char *suffix, EventWriter **out) {
    char host[256] = "localhost";
    gethostname(host, sizeof host - 1);
    EventWriter *w = xcalloc(1, sizeof *w);
    w->path =
        xasprintf("%s/events.out.tfevents.%010lld.%s%s", dir, (long long)(clock_wall_us() / 1000000), host, suffix);
    Error *err = fs->make_dir(dir);
    if (!err) err = record_writer_open(fs, w->path, COMPRESSION_NONE, false, &w->records);
    if (!err) err = add_version(w);
    if (err)
        event_writer_close(w);
    else
        *out = w;
    return err;
}

Error *event_writer_add(EventWriter *w, Str event) {
    return record_writer_add(w->records, event);
}

Error *event_writer_add_field(EventWriter *w, int64_t step, uint32_t field, Str content) {
    StrBuf event = {0};
    wire_put_double(&event, 1, (double)clock_wall_us() / 1e6);
    if (step) wire_put_uint(&event, 2, (uint64_t)step);
    wire_put_bytes(&event, field, content);
    Error *err = event_writer_add(w, strbuf_str(&event));
    strbuf_clear(&event);
    return err;
}

Error *event_writer_flush(EventWriter *w) {
    return record_writer_flush(w->records);
}

void event_writer_close(EventWriter *w) {
    if (!w) return;
    if (w->records) error_free(record_writer_finish(w->records));
    record_writer_close(w->records);
    free(w->path);
    free(w);
}

const char *event_writer_path(const EventWriter *w) {
    return w->path;
}
