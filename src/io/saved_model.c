/* saved_model.c: finds and reads saved_model.pb, *.meta and GraphDef files, binary or text. */
#include "io/saved_model.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "proto/model.pb-c.h"
#include "proto/text.h"
#include "proto/wire.h"

static char *join(const char *dir, const char *name) {
    size_t len = strlen(dir);
    return xasprintf("%s%s%s", dir, len && dir[len - 1] == '/' ? "" : "/", name);
}

static bool has(const FileSystem *fs, const char *dir, const char *name) {
    char *path = join(dir, name);
    bool found = fs->exists(path);
    free(path);
    return found;
}

bool saved_model_exists(const FileSystem *fs, const char *dir) {
    return has(fs, dir, "saved_model.pb") || has(fs, dir, "saved_model.pbtxt");
}

void saved_model_close(SavedModel *m) {
    if (!m) return;
    arena_free(m->arena);
    free(m->meta_graphs);
    free(m->bytes);
    free(m->path);
    free(m->variables);
    free(m->assets);
    free(m);
}

static bool is_op_name(Str s) {
    for (size_t i = 0; i < s.len; i++)
        if (!isalnum((unsigned char)s.ptr[i]) && !strchr("_>./", s.ptr[i])) return false;
    return s.len > 0;
}

/* A GraphDef begins with nodes, which have an op in field 2; a MetaGraphDef has a MetaInfoDef there, whose field 2 is a
 * message. A SavedModel begins with a number. */
static ModelFormat format_of(Str bytes) {
    WireReader r = wire_reader(bytes);
    while (wire_next(&r)) {
        if (r.field == 1 && r.type == WIRE_VARINT) return MODEL_SAVED;
        if (r.field != 1 || r.type != WIRE_BYTES) continue;
        WireReader inner = wire_reader(r.bytes);
        while (wire_next(&inner))
            if (inner.field == 2 && inner.type == WIRE_BYTES && is_op_name(inner.bytes)) return MODEL_GRAPH_DEF;
        return MODEL_META_GRAPH;
    }
    return MODEL_GRAPH_DEF;
}

/* ---- Text ---- */

static bool is_text(const char *file, Str bytes) {
    if (str_ends(str_of(file), STR(".pbtxt")) || str_ends(str_of(file), STR(".textproto"))) return true;
    /* Binary files have bytes below the space in their first tags and lengths. */
    size_t some = bytes.len < 200 ? bytes.len : 200;
    for (size_t i = 0; i < some; i++)
        if ((unsigned char)bytes.ptr[i] < 0x20 && !isspace((unsigned char)bytes.ptr[i])) return false;
    return some > 0;
}

/* By the first field that only one of the three has. */
static ModelFormat format_of_text(Str text) {
    static const struct {
        const char *field;
        ModelFormat format;
    } rows[] = {{"saved_model_schema_version", MODEL_SAVED},
                {"meta_graphs", MODEL_SAVED},
                {"meta_info_def", MODEL_META_GRAPH},
                {"graph_def", MODEL_META_GRAPH},
                {"node", MODEL_GRAPH_DEF},
                {"library", MODEL_GRAPH_DEF},
                {"versions", MODEL_GRAPH_DEF},
                {"saver_def", MODEL_META_GRAPH}};
    while (text.len) {
        Str line = str_trim(str_next(&text, '\n')), word = line;
        while (word.len && !isalnum((unsigned char)word.ptr[word.len - 1]) && word.ptr[word.len - 1] != '_') word.len--;
        ptrdiff_t colon = str_find(word, ':'), space = str_find(word, ' ');
        if (colon >= 0) word.len = (size_t)colon;
        if (space >= 0 && (size_t)space < word.len) word.len = (size_t)space;
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
            if (str_is(word, rows[i].field)) return rows[i].format;
        if (line.len && line.ptr[0] != '#') break;
    }
    return MODEL_GRAPH_DEF;
}

/* Replaces the text by what a binary file would hold. */
static Error *convert_text(SavedModel *m, ModelFormat format, Str *bytes) {
    static const ProtobufCMessageDescriptor *const types[] = {
        &text__saved_model__descriptor, &text__meta_graph_def__descriptor, &text__graph_def__descriptor};
    static const ProtobufCMessageDescriptor *const any_types[] = {&text__asset_file_def__descriptor, NULL};
    StrBuf wire = {0};
    Error *err = text_to_wire(types[format], any_types, *bytes, &wire);
    if (err) {
        strbuf_clear(&wire);
        return err;
    }
    free(m->bytes);
    bytes->len = wire.len;
    bytes->ptr = m->bytes = strbuf_detach(&wire);
    return NULL;
}

static void add(SavedModel *m, MetaGraph *g) {
    m->meta_graphs = xrealloc(m->meta_graphs, (size_t)(m->count + 1) * sizeof *m->meta_graphs);
    m->meta_graphs[m->count++] = g;
}

static Error *parse_saved_model(SavedModel *m, Str bytes) {
    WireReader r = wire_reader(bytes);
    Error *err = NULL;
    while (!err && wire_next(&r)) {
        if (r.field == 1 && r.type == WIRE_VARINT) m->schema_version = (int64_t)r.number;
        if (r.field != 2 || r.type != WIRE_BYTES) continue;
        MetaGraph *g = NULL;
        err = meta_graph_parse(m->arena, r.bytes, &g);
        if (!err) add(m, g);
    }
    if (!err && (r.failed || !m->count)) err = error_new(CODE_DATA_LOSS, "not a SavedModel");
    return err;
}

static Error *parse(SavedModel *m, Str bytes) {
    MetaGraph *g = NULL;
    if (m->format == MODEL_SAVED) return parse_saved_model(m, bytes);
    if (m->format == MODEL_META_GRAPH) {
        Error *err = meta_graph_parse(m->arena, bytes, &g);
        if (!err && !g->graph_def.len) err = error_new(CODE_DATA_LOSS, "there is no graph in it");
        if (!err) add(m, g);
        return err;
    }
    WireReader r = wire_reader(bytes);
    while (wire_next(&r)) {
    }
    if (r.failed || !bytes.len)
        return error_new(CODE_DATA_LOSS, "neither a SavedModel, nor a MetaGraph, nor a GraphDef");
    g = arena_calloc(m->arena, 1, sizeof *g);
    g->graph_def = bytes;
    add(m, g);
    return NULL;
}

/* The checkpoint at a prefix, when there is one; frees the prefix otherwise. */
static char *when_checkpoint(const FileSystem *fs, char *prefix) {
    char *index = xasprintf("%s.index", prefix);
    bool found = fs->exists(index);
    free(index);
    if (found) return prefix;
    free(prefix);
    return NULL;
}

/* Where the variables and assets are that belong to the graphs. */
static void find_parts(const FileSystem *fs, SavedModel *m, const char *file) {
    char *dir = path_dir(file);
    size_t len = strlen(file);
    if (m->format == MODEL_SAVED) {
        m->variables = when_checkpoint(fs, join(dir, "variables/variables"));
        m->assets = join(dir, "assets");
    } else if (m->format == MODEL_META_GRAPH && len > 5 && strcmp(file + len - 5, ".meta") == 0) {
        m->variables = when_checkpoint(fs, xstrndup(file, len - 5));
    }
    free(dir);
}

static Error *find_file(const FileSystem *fs, const char *path, char **file) {
    *file = NULL;
    if (!fs->is_dir(path)) {
        *file = xstrdup(path);
        return NULL;
    }
    const char *name = has(fs, path, "saved_model.pb") ? "saved_model.pb" : "saved_model.pbtxt";
    if (!has(fs, path, name)) return error_not_found("%s: a folder without saved_model.pb or saved_model.pbtxt", path);
    *file = join(path, name);
    return NULL;
}

Error *saved_model_open(const FileSystem *fs, const char *path, SavedModel **out) {
    char *file = NULL;
    size_t len = 0;
    Error *err = find_file(fs, path, &file);
    if (err) return err;
    SavedModel *m = xcalloc(1, sizeof *m);
    m->arena = arena_new();
    m->path = xstrdup(path);
    err = file_read_all(fs, file, &m->bytes, &len);
    if (!err) {
        Str bytes = {m->bytes, len};
        m->file_bytes = len;
        bool text = is_text(file, bytes);
        m->format = str_ends(str_of(file), STR(".meta")) ? MODEL_META_GRAPH
                    : text                               ? format_of_text(bytes)
                                                         : format_of(bytes);
        if (text) err = convert_text(m, m->format, &bytes);
        if (!err) err = parse(m, bytes);
        err = error_wrap(err, "%s", file);
        find_parts(fs, m, file);
    }
    free(file);
    if (err)
        saved_model_close(m);
    else
        *out = m;
    return err;
}

Error *saved_model_find(const SavedModel *m, const Str *tags, int tag_count, const MetaGraph **out) {
    StrBuf wanted = {0}, known = {0};
    for (int i = 0; i < m->count; i++) {
        if (meta_graph_has_tags(m->meta_graphs[i], tags, tag_count)) {
            *out = m->meta_graphs[i];
            strbuf_clear(&known);
            return NULL;
        }
        char *text = meta_graph_tags_text(m->meta_graphs[i]);
        strbuf_addf(&known, "%s{ %s }", i ? ", " : "", text);
        free(text);
    }
    for (int i = 0; i < tag_count; i++) strbuf_addf(&wanted, "%s%.*s", i ? "," : "", STR_ARG(tags[i]));
    Error *err = error_not_found("Could not find meta graph def matching supplied tags: { %s } in %s; there are: %s",
                                 strbuf_str(&wanted).ptr, m->path, strbuf_str(&known).ptr);
    strbuf_clear(&wanted);
    strbuf_clear(&known);
    return err;
}
