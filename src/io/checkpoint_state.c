/* checkpoint_state.c: reads CheckpointState in text format. */
#include "io/checkpoint_state.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "proto/model.pb-c.h"
#include "proto/text.h"
#include "proto/wire.h"

static char *absolute(const char *dir, Str path) {
    return path.len && path.ptr[0] == '/' ? str_dup(path) : xasprintf("%s/%.*s", dir, STR_ARG(path));
}

Error *checkpoint_state_read(const FileSystem *fs, const char *dir, CheckpointState *out) {
    char *path = xasprintf("%s/checkpoint", dir), *text = NULL;
    size_t len = 0;
    StrBuf wire = {0};
    Error *err = file_read_all(fs, path, &text, &len);
    if (!err)
        err = error_wrap(text_to_wire(&text__checkpoint_state__descriptor, NULL, (Str){text, len}, &wire), "%s", path);
    *out = (CheckpointState){0};
    WireReader r = wire_reader(strbuf_str(&wire));
    while (!err && wire_next(&r)) {
        if (r.field == 1) {
            free(out->latest);
            out->latest = absolute(dir, r.bytes);
        }
        if (r.field != 2) continue;
        char *one = absolute(dir, r.bytes);
        path_list_add(&out->all, one);
        free(one);
    }
    if (!err && !out->latest) err = error_new(CODE_DATA_LOSS, "%s names no checkpoint", path);
    if (!err && !out->all.count) path_list_add(&out->all, out->latest);
    if (err) checkpoint_state_clear(out);
    strbuf_clear(&wire);
    free(text);
    free(path);
    return err;
}

void checkpoint_state_clear(CheckpointState *s) {
    free(s->latest);
    path_list_clear(&s->all);
    s->latest = NULL;
}

static bool has_index(const FileSystem *fs, const char *prefix) {
    char *index = xasprintf("%s.index", prefix);
    bool found = fs->exists(index);
    free(index);
    return found;
}

/* PREFIX of PREFIX.index, PREFIX.meta, PREFIX.data-00000-of-00001; NULL when it is none of them. */
static char *prefix_of_file(const char *path) {
    Str p = str_of(path);
    if (str_ends(p, STR(".index"))) return xstrndup(path, p.len - 6);
    if (str_ends(p, STR(".meta"))) return xstrndup(path, p.len - 5);
    const char *data = strstr(path, ".data-");
    return data ? xstrndup(path, (size_t)(data - path)) : NULL;
}

Error *checkpoint_find(const FileSystem *fs, const char *path, char **prefix) {
    if (has_index(fs, path)) {
        *prefix = xstrdup(path);
        return NULL;
    }
    if (fs->is_dir(path)) {
        char *variables = xasprintf("%s/variables/variables", path);
        if (has_index(fs, variables)) {
            *prefix = variables;
            return NULL;
        }
        free(variables);
        CheckpointState state;
        Error *err = checkpoint_state_read(fs, path, &state);
        if (err) return err;
        *prefix = xstrdup(state.latest);
        checkpoint_state_clear(&state);
        return NULL;
    }
    char *of_file = prefix_of_file(path);
    if (of_file && has_index(fs, of_file)) {
        *prefix = of_file;
        return NULL;
    }
    free(of_file);
    *prefix = xstrdup(path);
    return NULL;
}
