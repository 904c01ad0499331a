/* file.c: what is the same for all file systems: whole files, patterns, lists of paths. */
#include "base/file.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

void path_list_add(PathList *l, const char *path) {
    l->items = vec_reserve(l->items, &l->capacity, l->count + 1, sizeof *l->items);
    l->items[l->count++] = xstrdup(path);
}

static int compare_paths(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void path_list_sort(PathList *l) {
    if (l->count > 1) qsort(l->items, l->count, sizeof *l->items, compare_paths);
}

void path_list_clear(PathList *l) {
    for (size_t i = 0; i < l->count; i++) free(l->items[i]);
    free(l->items);
    *l = (PathList){0};
}

Error *file_read_all(const FileSystem *fs, const char *path, char **out, size_t *len) {
    File *f;
    Error *err = fs->open(path, FILE_READ, &f);
    if (err) return err;
    size_t capacity = 1 << 16, have = 0;
    char *data = xmalloc(capacity + 1);
    while (!err) {
        size_t got = 0;
        err = fs->read_at(f, have, data + have, capacity - have, &got);
        have += got;
        if (err || have < capacity) break;
        char *larger = capacity < (size_t)1 << 62 ? realloc(data, 2 * capacity + 1) : NULL;
        if (!larger) {
            err = error_new(CODE_RESOURCE_EXHAUSTED, "%s; not enough memory to read it whole", path);
        } else {
            data = larger;
            capacity *= 2;
        }
    }
    fs->close(f);
    if (err) {
        free(data);
        return err;
    }
    data[have] = 0;
    *out = data;
    *len = have;
    return NULL;
}

Error *file_write_all(const FileSystem *fs, const char *path, Str content) {
    File *f;
    Error *err = fs->open(path, FILE_WRITE, &f);
    if (err) return err;
    err = fs->write(f, content.ptr, content.len);
    fs->close(f);
    return err;
}

char *path_dir(const char *path) {
    const char *slash = strrchr(path, '/');
    if (!slash) return xstrdup(".");
    return slash == path ? xstrdup("/") : xstrndup(path, (size_t)(slash - path));
}

static bool has_pattern(const char *s) {
    return strpbrk(s, "*?[\\") != NULL;
}

/* `done` is the part matched so far, "" or ending in '/'; `rest` the components to go. */
static Error *glob_rest(const FileSystem *fs, const char *done, const char *rest, PathList *out) {
    const char *slash = strchr(rest, '/');
    size_t len = slash ? (size_t)(slash - rest) : strlen(rest);
    char *component = xstrndup(rest, len);
    Error *err = NULL;
    if (!has_pattern(component)) {
        char *path = xasprintf("%s%s%s", done, component, slash ? "/" : "");
        if (slash)
            err = glob_rest(fs, path, slash + 1, out);
        else if (fs->exists(path))
            path_list_add(out, path);
        free(path);
        free(component);
        return err;
    }
    PathList names = {0};
    const char *dir = *done ? done : ".";
    if (fs->is_dir(dir)) err = fs->list(dir, &names);
    for (size_t i = 0; !err && i < names.count; i++) {
        if (fnmatch(component, names.items[i], 0) != 0) continue;
        char *path = xasprintf("%s%s%s", done, names.items[i], slash ? "/" : "");
        if (!slash)
            path_list_add(out, path);
        else if (fs->is_dir(path))
            err = glob_rest(fs, path, slash + 1, out);
        free(path);
    }
    path_list_clear(&names);
    free(component);
    return err;
}

Error *file_glob(const FileSystem *fs, const char *pattern, PathList *out) {
    Error *err = glob_rest(fs, "", pattern, out);
    if (err)
        path_list_clear(out);
    else
        path_list_sort(out);
    return err;
}
