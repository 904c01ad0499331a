/* file_local.c: the local file system. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"

struct File {
    int fd;
    char *path;
};

static ErrorCode code_of(int number) {
    switch (number) {
        case ENOENT:
            return CODE_NOT_FOUND;
        case EACCES:
        case EPERM:
        case EROFS:
            return CODE_PERMISSION_DENIED;
        case EEXIST:
            return CODE_ALREADY_EXISTS;
        case ENOTDIR:
        case EISDIR:
        case ENOTEMPTY:
        case EBUSY:
            return CODE_FAILED_PRECONDITION;
        case ENOSPC:
        case EDQUOT:
        case EMFILE:
        case ENFILE:
        case EFBIG:
            return CODE_RESOURCE_EXHAUSTED;
        case EINVAL:
        case ENAMETOOLONG:
            return CODE_INVALID_ARGUMENT;
        default:
            return CODE_UNKNOWN;
    }
}

static Error *failed(const char *path) {
    int number = errno;
    char text[128];
    return error_new(code_of(number), "%s; %s", path, strerror_r(number, text, sizeof text));
}

static const char *plain(const char *path) {
    return strncmp(path, "file://", 7) == 0 ? path + 7 : path;
}

static Error *local_open(const char *path, FileMode mode, File **out) {
    static const int flags[] = {O_RDONLY, O_WRONLY | O_CREAT | O_TRUNC, O_WRONLY | O_CREAT | O_APPEND};
    int fd = open(plain(path), flags[mode] | O_CLOEXEC, 0644);
    if (fd < 0) return failed(path);
    File *f = xmalloc(sizeof *f);
    *f = (File){fd, xstrdup(path)};
    *out = f;
    return NULL;
}

static void local_close(File *f) {
    if (!f) return;
    close(f->fd);
    free(f->path);
    free(f);
}

static Error *local_read_at(File *f, uint64_t offset, void *to, size_t size, size_t *got) {
    *got = 0;
    if (offset > INT64_MAX - size) return NULL; /* beyond the end of any file */
    while (*got < size) {
        ssize_t n = pread(f->fd, (char *)to + *got, size - *got, (off_t)(offset + *got));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return failed(f->path);
        if (n == 0) break;
        *got += (size_t)n;
    }
    return NULL;
}

static Error *local_write(File *f, const void *from, size_t size) {
    for (size_t done = 0; done < size;) {
        ssize_t n = write(f->fd, (const char *)from + done, size - done);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return failed(f->path);
        done += (size_t)n;
    }
    return NULL;
}

static Error *local_sync(File *f) {
    return fsync(f->fd) ? failed(f->path) : NULL;
}

static Error *local_size(const char *path, uint64_t *out) {
    struct stat st;
    if (stat(plain(path), &st)) return failed(path);
    *out = (uint64_t)st.st_size;
    return NULL;
}

static bool local_exists(const char *path) {
    return access(plain(path), F_OK) == 0;
}

static bool local_is_dir(const char *path) {
    struct stat st;
    return stat(plain(path), &st) == 0 && S_ISDIR(st.st_mode);
}

static Error *local_rename(const char *from, const char *to) {
    return rename(plain(from), plain(to)) ? failed(from) : NULL;
}

static Error *local_remove(const char *path) {
    return unlink(plain(path)) ? failed(path) : NULL;
}

static Error *local_make_dir(const char *path) {
    char *copy = xstrdup(plain(path));
    Error *err = NULL;
    for (char *p = copy + 1; *copy && !err; p++) {
        bool last = *p == 0;
        if (!last && *p != '/') continue;
        *p = 0;
        bool made = mkdir(copy, 0755) == 0;
        if (!made && errno != EEXIST)
            err = failed(copy);
        else if (!made && !local_is_dir(copy))
            err = error_new(CODE_FAILED_PRECONDITION, "%s is not a directory", copy);
        if (last) break;
        *p = '/';
    }
    free(copy);
    return err;
}

static Error *local_remove_dir(const char *path) {
    return rmdir(plain(path)) ? failed(path) : NULL;
}

static Error *local_sync_dir(const char *path) {
    int fd = open(plain(path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return failed(path);
    /* Some file systems cannot sync directories; that is theirs to make up for. */
    Error *err = fsync(fd) && errno != EINVAL && errno != EROFS ? failed(path) : NULL;
    close(fd);
    return err;
}

static Error *local_list(const char *path, PathList *names) {
    DIR *dir = opendir(plain(path));
    if (!dir) return failed(path);
    for (struct dirent *e; (e = readdir(dir));)
        if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..")) path_list_add(names, e->d_name);
    closedir(dir);
    return NULL;
}

const FileSystem file_system_local = {
    .open = local_open,
    .close = local_close,
    .read_at = local_read_at,
    .write = local_write,
    .sync = local_sync,
    .size = local_size,
    .exists = local_exists,
    .is_dir = local_is_dir,
    .rename = local_rename,
    .remove = local_remove,
    .make_dir = local_make_dir,
    .remove_dir = local_remove_dir,
    .sync_dir = local_sync_dir,
    .list = local_list,
};
