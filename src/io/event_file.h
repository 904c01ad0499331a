/* event_file.h: event files, which TensorBoard shows: TFRecords of tf.Event, each with a time, a step and perhaps a
 * summary. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/file.h"
#include "base/str.h"

typedef struct Event {
    double wall_time; /* seconds since 1970 */
    int64_t step;
    Str file_version;                       /* of the first event of a file: "brain.Event:2" */
    Str graph_def, meta_graph_def, summary; /* serialised; ptr NULL: not in it */
    Str run_metadata;                       /* serialised TaggedRunMetadata */
} Event;

/* Strings point into the bytes. False when malformed. */
bool event_parse(Str bytes, Event *out);

typedef enum SummaryKind {
    SUMMARY_UNKNOWN,
    SUMMARY_SCALAR,    /* `number` */
    SUMMARY_HISTOGRAM, /* bytes: HistogramProto */
    SUMMARY_IMAGE,     /* bytes: Summary.Image */
    SUMMARY_AUDIO,     /* bytes: Summary.Audio */
    SUMMARY_TENSOR,    /* bytes: TensorProto */
} SummaryKind;

typedef struct SummaryValue {
    Str tag, plugin; /* plugin: who shows it ("scalars", "images", ...); told only the first time a tag occurs */
    SummaryKind kind;
    float number;
    Str bytes;
} SummaryValue;

/* Walks the values of a serialised Summary: start with *at = 0; false at the end or when it is malformed. */
bool summary_next(Str summary, size_t *at, SummaryValue *out);

/* ---- Writing ---- */
typedef struct EventWriter EventWriter;

/* Makes DIR/events.out.tfevents.TIME.HOST + suffix, with DIR when it is missing, and its first event. */
Error *event_writer_open(const FileSystem *fs, const char *dir, const char *suffix, EventWriter **out) MUST_CHECK;
Error *event_writer_add(EventWriter *w, Str event) MUST_CHECK; /* a serialised Event */
/* An Event with the time of now and one field: 4 graph_def, 5 summary, ... */
Error *event_writer_add_field(EventWriter *w, int64_t step, uint32_t field, Str content) MUST_CHECK;
Error *event_writer_flush(EventWriter *w) MUST_CHECK;
void event_writer_close(EventWriter *w); /* flushes; NULL is allowed */
const char *event_writer_path(const EventWriter *w);
