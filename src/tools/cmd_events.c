/* cmd_events.c: rill events: the summaries in event files, per run and tag. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/file.h"
#include "base/memory.h"
#include "tools/command.h"
#include "tools/event_series.h"
#include "tools/report.h"

static const char usage[] =
    "events FILE|FOLDER... [--tag TAG]... [--json]\n\n"
    "Shows what is in event files (events.out.tfevents.*), of a folder and all below it: the tags with their kind, "
    "steps and last values.\n"
    "With --tag: every step of it. A file that is still being written may end in the middle of an event: that is told, "
    "and no failure.\n";

enum { MAX_PATHS = 1000, MAX_DEPTH = 32 };

typedef struct Options {
    FlagList tags;
    bool as_json, help;
} Options;

/* ---- Finding files ---- */

static Error *find_files(const char *path, int depth, PathList *out) {
    const FileSystem *fs = &file_system_local;
    if (!fs->is_dir(path)) {
        path_list_add(out, path);
        return NULL;
    }
    PathList names = {0};
    Error *err = fs->list(path, &names);
    path_list_sort(&names);
    for (int folders = 0; folders < 2; folders++) { /* the files of a folder stay together */
        for (size_t i = 0; !err && i < names.count; i++) {
            char *inner = xasprintf("%s/%s", path, names.items[i]);
            bool is_dir = fs->is_dir(inner);
            if (is_dir && folders && depth < MAX_DEPTH) err = find_files(inner, depth + 1, out);
            if (!is_dir && !folders && strstr(names.items[i], "tfevents")) path_list_add(out, inner);
            free(inner);
        }
    }
    path_list_clear(&names);
    return err;
}

/* ---- Showing ---- */

static bool wanted(const Options *o, Str tag) {
    for (int i = 0; i < o->tags.count; i++)
        if (str_is(tag, o->tags.items[i])) return true;
    return o->tags.count == 0;
}

static void format_time(double seconds, char *text, size_t size) {
    time_t whole = (time_t)seconds;
    struct tm parts;
    if (!(seconds > 0 && seconds < 1e11) || !gmtime_r(&whole, &parts)) {
        snprintf(text, size, "%.6f", seconds);
        return;
    }
    strftime(text, size, "%Y-%m-%d %H:%M:%S", &parts);
}

static void print_point(const char *kind, const EventPoint *p) {
    if (strcmp(kind, "scalar") == 0) {
        printf("%.9g", p->value);
    } else if (strcmp(kind, "histogram") == 0) {
        printf("%.9g values, %.6g to %.6g, mean %.6g", p->count, p->min, p->max, p->count > 0 ? p->sum / p->count : 0);
    } else if (strcmp(kind, "image") == 0) {
        printf("%lld x %lld, %lld images, %lld bytes", (long long)p->width, (long long)p->height, (long long)p->items,
               (long long)p->bytes);
    } else if (strcmp(kind, "audio") == 0) {
        printf("%lld sounds, %lld bytes", (long long)p->items, (long long)p->bytes);
    } else {
        ptrdiff_t end = str_find(p->text, '\n');
        Str line = end < 0 ? p->text : str_slice(p->text, 0, (size_t)end);
        printf("%.*s%s", (int)(line.len < 60 ? line.len : 60), line.ptr, line.len > 60 || end >= 0 ? " ..." : "");
    }
}

static void print_series(const EventSeries *s) {
    printf("%.*s  %s\n", STR_ARG(s->tag), s->kind);
    for (size_t i = 0; i < s->count; i++) {
        char when[64];
        format_time(s->points[i].wall_time, when, sizeof when);
        printf("  step %-10lld %s  ", (long long)s->points[i].step, when);
        print_point(s->kind, &s->points[i]);
        putchar('\n');
    }
}

static void print_summary(const EventSeries *s) {
    const EventPoint *last = &s->points[s->count - 1];
    int64_t least = last->step, most = last->step;
    double low = INFINITY, high = -INFINITY;
    for (size_t i = 0; i < s->count; i++) {
        const EventPoint *p = &s->points[i];
        least = p->step < least ? p->step : least;
        most = p->step > most ? p->step : most;
        low = fmin(low, p->value);
        high = fmax(high, p->value);
    }
    char steps[64];
    snprintf(steps, sizeof steps, "%lld..%lld", (long long)least, (long long)most);
    printf("  %-36.*s %-9s %6zu  steps %-16s last ", STR_ARG(s->tag), s->kind, s->count, steps);
    print_point(s->kind, last);
    if (strcmp(s->kind, "scalar") == 0 && s->count > 1) printf("  (%.6g to %.6g)", low, high);
    putchar('\n');
}

static void print_run(const EventRun *r, const Options *o) {
    char first[64], last[64];
    size_t count;
    EventSeries **all = event_run_sorted(r, &count);
    format_time(r->first_time, first, sizeof first);
    format_time(r->last_time, last, sizeof last);
    printf("%s: %lld files, %lld events%s, %s to %s UTC\n", r->dir, (long long)r->files, (long long)r->events,
           r->graphs ? " with a graph" : "", first, last);
    for (size_t i = 0; i < count; i++) {
        if (!wanted(o, all[i]->tag)) continue;
        if (o->tags.count)
            print_series(all[i]);
        else
            print_summary(all[i]);
    }
    free(all);
}

static void report_point(cJSON *to, const char *kind, const EventPoint *p) {
    cJSON *item = report_object(to, NULL);
    report_int(item, "step", p->step);
    report_double(item, "wall_time", p->wall_time);
    if (strcmp(kind, "scalar") == 0) {
        report_double(item, "value", p->value);
    } else if (strcmp(kind, "histogram") == 0) {
        report_double(item, "count", p->count);
        report_double(item, "min", p->min);
        report_double(item, "max", p->max);
        report_double(item, "mean", p->count > 0 ? p->sum / p->count : 0);
    } else if (strcmp(kind, "image") == 0 || strcmp(kind, "audio") == 0) {
        if (strcmp(kind, "image") == 0) {
            report_int(item, "width", p->width);
            report_int(item, "height", p->height);
        }
        report_int(item, "items", p->items);
        report_int(item, "bytes", p->bytes);
    } else {
        report_bytes(item, "text", p->text);
    }
}

static void report_run(cJSON *to, const EventRun *r, const Options *o) {
    cJSON *item = report_object(to, NULL);
    report_str(item, "run", str_of(r->dir));
    report_int(item, "files", r->files);
    report_int(item, "events", r->events);
    report_int(item, "graphs", r->graphs);
    report_double(item, "first_time", r->first_time);
    report_double(item, "last_time", r->last_time);
    cJSON *tags = report_object(item, "tags");
    size_t count;
    EventSeries **all = event_run_sorted(r, &count);
    for (size_t i = 0; i < count; i++) {
        if (!wanted(o, all[i]->tag)) continue;
        char *tag = str_dup(all[i]->tag);
        cJSON *series = report_object(tags, tag), *points;
        free(tag);
        report_str(series, "kind", str_of(all[i]->kind));
        points = report_array(series, "points");
        for (size_t k = 0; k < all[i]->count; k++) report_point(points, all[i]->kind, &all[i]->points[k]);
    }
    free(all);
}

/* ---- The command ---- */

static bool is_unfinished(const Error *err) {
    return err->code == CODE_DATA_LOSS && strstr(err->message, "truncated") != NULL;
}

/* Files of one folder are one run; they come sorted. Returns the exit code. */
static int show(const char *name, const PathList *files, const Options *o) {
    cJSON *json = cJSON_CreateObject(), *runs = report_array(json, "runs");
    EventRun *run = NULL;
    int code = 0;
    for (size_t i = 0; i <= files->count; i++) {
        char *dir = i < files->count ? path_dir(files->items[i]) : NULL;
        if (run && (!dir || strcmp(dir, run->dir))) {
            if (o->as_json)
                report_run(runs, run, o);
            else
                print_run(run, o);
            event_run_free(run);
            run = NULL;
        }
        if (dir && !run) run = event_run_new(dir);
        Error *err = dir ? event_run_read(run, files->items[i]) : NULL;
        if (err && is_unfinished(err))
            fprintf(stderr, "rill %s: %s: it is still written, or was cut off\n", name, err->message);
        else if (err)
            fprintf(stderr, "rill %s: %s\n", name, err->message);
        if (err && !is_unfinished(err)) code = EXIT_FAILURE;
        error_free(err);
        free(dir);
    }
    if (o->as_json)
        report_print(json);
    else
        cJSON_Delete(json);
    return code;
}

int cmd_events(int argc, char **argv) {
    Options o = {0};
    const Flag flags[] = {
        {"tag", FLAG_LIST, &o.tags, "TAG", "every step of this tag; may be given often"},
        {"json", FLAG_BOOL, &o.as_json, NULL, "for programs: every step of every tag"},
        {"help", FLAG_BOOL, &o.help, NULL, "print this"},
        {0},
    };
    const char *paths[MAX_PATHS];
    int count, code;
    if (command_parse(flags, usage, argc, argv, paths, 1, MAX_PATHS, &count, &code)) {
        PathList files = {0};
        Error *err = NULL;
        for (int i = 0; !err && i < count; i++) err = find_files(paths[i], 0, &files);
        if (!err && !files.count) err = error_not_found("%s has no event files", paths[0]);
        code = err ? command_failed(argv[0], err) : show(argv[0], &files, &o);
        path_list_clear(&files);
    }
    flag_list_clear(&o.tags);
    return code;
}
