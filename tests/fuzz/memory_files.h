/* memory_files.h: a FileSystem of a few files in memory, to be read; for fuzz targets. */
#pragma once
#include "base/file.h"
#include "base/memory.h"

enum { MEMORY_FILES = 4 };
static struct MemoryFile {
    const char *path;
    Str content;
} memory_files[MEMORY_FILES];

struct File {
    Str content;
};

static struct MemoryFile *memory_file(const char *path) {
    for (int i = 0; i < MEMORY_FILES; i++)
        if (memory_files[i].path && strcmp(memory_files[i].path, path) == 0) return &memory_files[i];
    return NULL;
}

static Error *memory_open(const char *path, FileMode mode, File **out) {
    struct MemoryFile *f = memory_file(path);
    if (!f || mode != FILE_READ) return error_not_found("%s", path);
    *out = xcalloc(1, sizeof **out);
    (*out)->content = f->content;
    return NULL;
}

static void memory_close(File *f) {
    free(f);
}

static Error *memory_read_at(File *f, uint64_t offset, void *to, size_t size, size_t *got) {
    size_t left = offset < f->content.len ? f->content.len - (size_t)offset : 0;
    *got = size < left ? size : left;
    if (*got) memcpy(to, f->content.ptr + offset, *got);
    return NULL;
}

static Error *memory_size(const char *path, uint64_t *out) {
    struct MemoryFile *f = memory_file(path);
    if (!f) return error_not_found("%s", path);
    *out = f->content.len;
    return NULL;
}

static bool memory_exists(const char *path) {
    return memory_file(path) != NULL;
}

static bool memory_is_dir(const char *path) {
    return strcmp(path, "dir") == 0;
}

static Error *memory_list(const char *path, PathList *names) {
    (void)path, (void)names;
    return NULL;
}

static const FileSystem memory_file_system = {.open = memory_open, .close = memory_close, .read_at = memory_read_at, .size = memory_size,
                                              .exists = memory_exists, .is_dir = memory_is_dir, .list = memory_list};
