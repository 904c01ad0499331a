/* crash_disk.h: a FileSystem in memory that loses what was not synced, as a disk may when the power goes.
 *
 * A file's bytes last once it was synced; names (new files, renames, removals) last once their directory was. At a crash every
 * unsynced byte is lost; of the unsynced names some may have reached the disk, in any order: the caller chooses which. An operation
 * may also fail, and all after it: the process was killed there, or the disk is full. */
#pragma once
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"

enum { DISK_FILES = 64, DISK_NAME = 160 };

typedef struct DiskFile { /* content; named by entries */
    StrBuf now, synced;
} DiskFile;

typedef struct DiskEntry {
    char name[DISK_NAME];
    DiskFile *now, *synced; /* what the name stands for; NULL: nothing */
} DiskEntry;

static struct {
    DiskEntry entries[DISK_FILES];
    DiskFile *files[4096];
    int file_count;
    int operations;  /* that change something, since the start */
    int fail_at;     /* the operation that fails, and all after it; -1: none */
    bool fail_once;  /* only that one */
    bool torn;       /* a write that fails puts half of its bytes */
} disk;

struct File {
    DiskFile *file;
    char name[DISK_NAME];
};

static inline void disk_clear(void) {
    for (int i = 0; i < disk.file_count; i++) {
        strbuf_clear(&disk.files[i]->now);
        strbuf_clear(&disk.files[i]->synced);
        free(disk.files[i]);
    }
    memset(&disk, 0, sizeof disk);
    disk.fail_at = -1;
}

/* Which names that were not synced reached the disk all the same. */
typedef enum Names { NAMES_NONE, NAMES_ALL, NAMES_OF_INDEX, NAMES_OF_DATA, NAMES_COUNT } Names;

/* What is on the disk when the machine comes back. */
static inline void disk_crash(Names names) {
    for (int i = 0; i < DISK_FILES; i++) {
        DiskEntry *e = &disk.entries[i];
        bool is_index = strstr(e->name, ".index") != NULL;
        if (names == NAMES_NONE || names == (is_index ? NAMES_OF_DATA : NAMES_OF_INDEX))
            e->now = e->synced;
        else
            e->synced = e->now;
    }
    for (int i = 0; i < disk.file_count; i++) {
        strbuf_clear(&disk.files[i]->now);
        strbuf_add(&disk.files[i]->now, strbuf_str(&disk.files[i]->synced));
    }
    disk.fail_at = -1;
}

static inline Error *disk_step(const char *path) {
    int at = disk.operations++;
    bool fails = disk.fail_at >= 0 && (disk.fail_once ? at == disk.fail_at : at >= disk.fail_at);
    return fails ? error_new(CODE_RESOURCE_EXHAUSTED, "%s; no space left", path) : NULL;
}

static inline DiskEntry *disk_entry(const char *path, bool make) {
    DiskEntry *free_one = NULL;
    for (int i = 0; i < DISK_FILES; i++) {
        if (strcmp(disk.entries[i].name, path) == 0) return &disk.entries[i];
        if (!free_one && !disk.entries[i].now && !disk.entries[i].synced) free_one = &disk.entries[i];
    }
    if (!make) return NULL;
    if (!free_one || strlen(path) >= DISK_NAME) abort();
    memset(free_one, 0, sizeof *free_one);
    strcpy(free_one->name, path);
    return free_one;
}

static inline DiskFile *disk_find(const char *path) {
    DiskEntry *e = disk_entry(path, false);
    return e ? e->now : NULL;
}

static Error *disk_open(const char *path, FileMode mode, File **out) {
    DiskFile *f = disk_find(path);
    if (mode == FILE_READ && !f) return error_not_found("%s; no such file", path);
    if (mode != FILE_READ) {
        Error *err = disk_step(path);
        if (err) return err;
        if (disk.file_count == 4096) abort();
        f = disk.files[disk.file_count++] = xcalloc(1, sizeof *f);
        disk_entry(path, true)->now = f;
    }
    File *file = xcalloc(1, sizeof *file);
    file->file = f;
    snprintf(file->name, sizeof file->name, "%s", path);
    *out = file;
    return NULL;
}

static void disk_close(File *f) {
    free(f);
}

static Error *disk_read_at(File *f, uint64_t offset, void *to, size_t size, size_t *got) {
    Str s = strbuf_str(&f->file->now);
    *got = offset >= s.len ? 0 : size < s.len - offset ? size : s.len - (size_t)offset;
    if (*got) memcpy(to, s.ptr + offset, *got);
    return NULL;
}

static Error *disk_write(File *f, const void *from, size_t size) {
    Error *err = disk_step(f->name);
    if (!err || disk.torn) strbuf_add(&f->file->now, (Str){from, err ? size / 2 : size});
    return err;
}

static Error *disk_sync(File *f) {
    Error *err = disk_step(f->name);
    if (err) return err;
    strbuf_clear(&f->file->synced);
    strbuf_add(&f->file->synced, strbuf_str(&f->file->now));
    return NULL;
}

static Error *disk_size(const char *path, uint64_t *out) {
    DiskFile *f = disk_find(path);
    if (!f) return error_not_found("%s; no such file", path);
    *out = f->now.len;
    return NULL;
}

static bool disk_exists(const char *path) {
    return disk_find(path) != NULL;
}

static bool disk_is_dir(const char *path) {
    return strcmp(path, "/d") == 0 || strcmp(path, "/d/parts") == 0;
}

static Error *disk_rename(const char *from, const char *to) {
    Error *err = disk_step(from);
    if (err) return err;
    DiskEntry *e = disk_entry(from, false);
    if (!e || !e->now) return error_not_found("%s; no such file", from);
    DiskFile *f = e->now;
    e->now = NULL;
    disk_entry(to, true)->now = f;
    return NULL;
}

static Error *disk_remove(const char *path) {
    Error *err = disk_step(path);
    if (err) return err;
    DiskEntry *e = disk_entry(path, false);
    if (!e || !e->now) return error_not_found("%s; no such file", path);
    e->now = NULL;
    return NULL;
}

static Error *disk_make_dir(const char *path) {
    (void)path;
    return NULL;
}

static Error *disk_sync_dir(const char *path) {
    Error *err = disk_step(path);
    if (err) return err;
    for (int i = 0; i < DISK_FILES; i++) {
        char *dir = path_dir(disk.entries[i].name);
        if (strcmp(dir, path) == 0) disk.entries[i].synced = disk.entries[i].now;
        free(dir);
    }
    return NULL;
}

static inline int disk_count(void) {
    int n = 0;
    for (int i = 0; i < DISK_FILES; i++) n += disk.entries[i].now != NULL;
    return n;
}

static const FileSystem crash_disk = {
    .open = disk_open,
    .close = disk_close,
    .read_at = disk_read_at,
    .write = disk_write,
    .sync = disk_sync,
    .size = disk_size,
    .exists = disk_exists,
    .is_dir = disk_is_dir,
    .rename = disk_rename,
    .remove = disk_remove,
    .make_dir = disk_make_dir,
    .sync_dir = disk_sync_dir,
};
