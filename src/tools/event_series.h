/* event_series.h: the summaries of event files, gathered by run (a folder) and tag. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/hashmap.h"
#include "base/str.h"

/* One summary of a tag. What the numbers are depends on the kind of the series. */
typedef struct EventPoint {
    int64_t step;
    double wall_time;
    double value;                /* scalar */
    double count, min, max, sum; /* histogram */
    int64_t width, height, items,
        bytes; /* images and sounds: of the first, how many, bytes of all; tensors: elements, bytes */
    Str text;  /* of text and tensors: what it says, its type */
} EventPoint;

typedef struct EventSeries {
    Str tag;
    const char *kind; /* "scalar", "histogram", "image", "audio", "text", "tensor" */
    EventPoint *points;
    size_t count, capacity;
} EventSeries;

typedef struct EventRun {
    char *dir;
    Arena *arena;
    StrMap by_tag;  /* to EventSeries */
    StrMap plugins; /* of tags, to Str in the arena: told only once */
    int64_t files, events, graphs;
    double first_time, last_time; /* 0: no event */
} EventRun;

EventRun *event_run_new(const char *dir);
void event_run_free(EventRun *r);
/* Adds the events of a file. A damaged or unfinished end is an error; what came before it is in. */
Error *event_run_read(EventRun *r, const char *path) MUST_CHECK;
EventSeries **event_run_sorted(const EventRun *r, size_t *count); /* by tag, malloced */
