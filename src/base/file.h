/* file.h: FileSystem, a table of what can be done with files; the local one. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/str.h"

typedef struct File File;

typedef enum FileMode { FILE_READ, FILE_WRITE /* from the start, created when missing */, FILE_APPEND } FileMode;

/* Paths, each malloced. */
typedef struct PathList {
    char **items;
    size_t count, capacity;
} PathList;
void path_list_add(PathList *l, const char *path); /* a copy */
void path_list_sort(PathList *l);
void path_list_clear(PathList *l);

/* Errors name the path: NotFound, PermissionDenied, AlreadyExists, FailedPrecondition, ResourceExhausted, else Unknown.
 */
typedef struct FileSystem {
    Error *(*open)(const char *path, FileMode mode, File **out);
    void (*close)(File *f);
    /* Reads up to size bytes; *got < size only at the end of the file. */
    Error *(*read_at)(File *f, uint64_t offset, void *to, size_t size, size_t *got);
    Error *(*write)(File *f, const void *from, size_t size); /* at the end; all of it */
    Error *(*sync)(File *f);                                 /* to the disk */
    Error *(*size)(const char *path, uint64_t *out);
    bool (*exists)(const char *path);
    bool (*is_dir)(const char *path);
    Error *(*rename)(const char *from, const char *to); /* replaces `to` at once */
    Error *(*remove)(const char *path);
    Error *(*make_dir)(const char *path); /* with those above it; one that exists is fine */
    Error *(*remove_dir)(const char *path);
    Error *(*sync_dir)(const char *path); /* makes renames and new files in it last */
    Error *(*list)(const char *path, PathList *names);
} FileSystem;

extern const FileSystem file_system_local;

/* ---- With any file system ---- */
/* The whole file, malloced into *out (0-terminated after len bytes). */
Error *file_read_all(const FileSystem *fs, const char *path, char **out, size_t *len) MUST_CHECK;
Error *file_write_all(const FileSystem *fs, const char *path, Str content) MUST_CHECK;
/* Paths that match a pattern with *, ? and [...], sorted; directories too. None is not an error. */
Error *file_glob(const FileSystem *fs, const char *pattern, PathList *out) MUST_CHECK;
/* The directory part of a path, malloced: "." when there is none. */
char *path_dir(const char *path);
