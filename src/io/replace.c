/* replace.c: a file that appears whole or not at all. */
#include "io/replace.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"

char *temporary_path(const char *path) {
    static atomic_uint serial;
    return xasprintf("%s.tempstate%llx%x%x", path, (unsigned long long)clock_wall_ns(), (unsigned)getpid(),
                     atomic_fetch_add(&serial, 1));
}

static Error *write_synced(const FileSystem *fs, const char *path, Str bytes) {
    File *f = NULL;
    Error *err = fs->open(path, FILE_WRITE, &f);
    if (err) return err;
    err = fs->write(f, bytes.ptr, bytes.len);
    if (!err) err = fs->sync(f);
    fs->close(f);
    return err;
}

Error *file_replace(const FileSystem *fs, const char *path, Str bytes, bool *replaced) {
    char *temporary = temporary_path(path), *dir = path_dir(path);
    Error *err = write_synced(fs, temporary, bytes);
    if (!err) err = fs->rename(temporary, path);
    *replaced = !err;
    if (err)
        error_free(fs->remove(temporary));
    else
        err = fs->sync_dir(dir);
    free(temporary);
    free(dir);
    return err;
}
