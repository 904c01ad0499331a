/* bench_case.c: reads one case of a file of cases, with the files it names. */
#include "tools/bench_case.h"

#include <cjson/cJSON.h>
#include <stdlib.h>

#include "base/base64.h"
#include "base/file.h"
#include "base/memory.h"
#include "io/npy.h"

/* Where a case is read from. */
typedef struct Source {
    const char *path, *name;
    char *folder;
    const cJSON *root, *row;
} Source;

static const cJSON *field(const Source *s, const char *name) {
    const cJSON *own = cJSON_GetObjectItemCaseSensitive(s->row, name);
    return own ? own : cJSON_GetObjectItemCaseSensitive(s->root, name);
}

static Error *wrong(const Source *s, const char *name, const char *what) {
    return error_invalid("%s: \"%s\" of case %s must be %s", s->path, name, s->name, what);
}

static Error *read_beside(const Source *s, const char *file, char **out, size_t *len) {
    char *path = xasprintf("%s/%s", s->folder, file);
    Error *err = file_read_all(&file_system_local, path, out, len);
    free(path);
    return err;
}

/* ---- The parts of a case ---- */

static Error *read_names(BenchCase *c, const Source *s, const char *name, const cJSON *json, TargetList *out) {
    if (!json) return NULL;
    if (!cJSON_IsArray(json)) return wrong(s, name, "a list of names");
    out->items = arena_calloc(c->arena, (size_t)cJSON_GetArraySize(json), sizeof *out->items);
    const cJSON *item;
    cJSON_ArrayForEach(item, json) {
        if (!cJSON_IsString(item)) return wrong(s, name, "a list of names");
        out->items[out->count++] = arena_str(c->arena, str_of(item->valuestring));
    }
    return NULL;
}

static Error *read_lists(BenchCase *c, const Source *s, const char *name, TargetList **out, int *count) {
    const cJSON *json = field(s, name), *item;
    if (!json) return NULL;
    if (!cJSON_IsArray(json)) return wrong(s, name, "a list of lists of names");
    *out = arena_calloc(c->arena, (size_t)cJSON_GetArraySize(json), sizeof **out);
    Error *err = NULL;
    cJSON_ArrayForEach(item, json) {
        if (!err) err = read_names(c, s, name, item, &(*out)[(*count)++]);
    }
    return err;
}

static Error *read_feed(const Source *s, const cJSON *item, Tensor **out) {
    char *bytes = NULL;
    size_t len = 0;
    if (!cJSON_IsString(item)) return wrong(s, "feeds", "an object of .npy files by tensor");
    Error *err = read_beside(s, item->valuestring, &bytes, &len);
    if (!err) err = npy_parse((Str){bytes, len}, item->valuestring, out);
    free(bytes);
    return err;
}

static Error *read_feeds(BenchCase *c, const Source *s) {
    const cJSON *json = field(s, "feeds"), *item;
    size_t count = (size_t)cJSON_GetArraySize(json);
    Str *names = arena_calloc(c->arena, count, sizeof *names);
    c->feeds = arena_calloc(c->arena, count, sizeof *c->feeds);
    c->step.feeds = names;
    Error *err = NULL;
    cJSON_ArrayForEach(item, json) {
        if (err) break;
        names[c->step.feed_count] = arena_str(c->arena, str_of(item->string));
        err = read_feed(s, item, &c->feeds[c->step.feed_count]);
        if (!err) c->step.feed_count++;
    }
    return err;
}

static Error *read_step(BenchCase *c, const Source *s) {
    TargetList fetches = {0}, targets = {0};
    Error *err = read_names(c, s, "fetches", field(s, "fetches"), &fetches);
    if (!err) err = read_names(c, s, "targets", field(s, "targets"), &targets);
    if (!err) err = read_names(c, s, "rotate", field(s, "rotate"), &c->rotation);
    if (!err) err = read_feeds(c, s);
    c->step.fetches = fetches.items;
    c->step.fetch_count = fetches.count;
    c->step.targets = targets.items;
    c->step.target_count = targets.count;
    return err;
}

static Error *read_graphs(BenchCase *c, const Source *s) {
    const cJSON *graph = field(s, "graph"), *more = field(s, "extend"), *config = field(s, "config");
    if (!cJSON_IsString(graph)) return wrong(s, "graph", "a path");
    if (more && !cJSON_IsString(more)) return wrong(s, "extend", "a path");
    if (config && (!cJSON_IsString(config) || !base64_decode(str_of(config->valuestring), &c->config)))
        return wrong(s, "config", "base64");
    Error *err = read_beside(s, graph->valuestring, &c->graph, &c->graph_len);
    if (!err && more) err = read_beside(s, more->valuestring, &c->extension, &c->extension_len);
    return err;
}

/* ---- The file ---- */

static Error *find_case(Source *s) {
    const cJSON *cases = cJSON_GetObjectItemCaseSensitive(s->root, "cases"), *item;
    s->row = cJSON_GetObjectItemCaseSensitive(cases, s->name);
    if (cJSON_IsObject(s->row)) return NULL;
    StrBuf known = {0};
    cJSON_ArrayForEach(item, cases) strbuf_addf(&known, " %s", item->string ? item->string : "");
    Error *err = error_not_found("%s has no case '%s'; it has:%s", s->path, s->name, known.len ? known.ptr : " none");
    strbuf_clear(&known);
    return err;
}

Error *bench_case_read(const char *path, const char *name, BenchCase *out) {
    char *text = NULL;
    size_t len = 0;
    Error *err = file_read_all(&file_system_local, path, &text, &len);
    if (err) return err;
    cJSON *root = cJSON_ParseWithLength(text, len);
    BenchCase c = {.arena = arena_new()};
    Source s = {.path = path, .name = name, .folder = path_dir(path), .root = root};
    err = root ? find_case(&s) : error_invalid("%s is not JSON", path);
    if (!err) err = read_graphs(&c, &s);
    if (!err) err = read_step(&c, &s);
    if (!err) err = read_lists(&c, &s, "init", &c.init, &c.init_count);
    if (!err) err = read_lists(&c, &s, "loops", &c.loops, &c.loop_count);
    if (err)
        bench_case_clear(&c);
    else
        *out = c;
    cJSON_Delete(root);
    free(s.folder);
    free(text);
    return err;
}

void bench_case_clear(BenchCase *c) {
    for (int i = 0; i < c->step.feed_count; i++) tensor_unref(c->feeds[i]);
    strbuf_clear(&c->config);
    free(c->graph);
    free(c->extension);
    arena_free(c->arena);
    *c = (BenchCase){0};
}
