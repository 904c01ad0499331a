/* shard_writers.c: the files of a shard are numbered from 0; the reader takes one after the other. */
#include "ops/dataset/shard_writers.h"

#include <stdlib.h>

#include "base/memory.h"
#include "io/snapshot.h"

typedef struct Shard {
    int64_t number, file_count;
    char *dir;
    SnapshotWriter *writer; /* NULL between files */
} Shard;

struct ShardWriters {
    char *run_dir, *compression;
    int64_t version;
    Shard *shards;
    size_t count, capacity;
};

Error *shard_writers_new(const char *run_dir, const char *compression, int64_t version, ShardWriters **out) {
    Error *err = file_system_local.make_dir(run_dir);
    if (err) return err;
    *out = xcalloc(1, sizeof **out);
    **out = (ShardWriters){.run_dir = xstrdup(run_dir), .compression = xstrdup(compression), .version = version};
    return NULL;
}

void shard_writers_free(ShardWriters *w) {
    if (!w) return;
    for (size_t i = 0; i < w->count; i++) {
        snapshot_writer_close(w->shards[i].writer);
        free(w->shards[i].dir);
    }
    free(w->shards);
    free(w->run_dir);
    free(w->compression);
    free(w);
}

static Shard *find_shard(ShardWriters *w, int64_t number) {
    for (size_t i = 0; i < w->count; i++)
        if (w->shards[i].number == number) return &w->shards[i];
    w->shards = vec_reserve(w->shards, &w->capacity, w->count + 1, sizeof *w->shards);
    w->shards[w->count] = (Shard){.number = number, .dir = snapshot_shard_dir(w->run_dir, number)};
    return &w->shards[w->count++];
}

static Error *open_file(ShardWriters *w, Shard *s) {
    char *path = snapshot_file(s->dir, s->file_count);
    Error *err = file_system_local.make_dir(s->dir);
    if (!err)
        err = snapshot_writer_open(&file_system_local, path, str_of(w->compression), w->version, &s->writer);
    if (!err) s->file_count++;
    free(path);
    return err;
}

Error *shard_writers_add(ShardWriters *w, int64_t shard, Tensor *const *element, int count) {
    Shard *s = find_shard(w, shard);
    Error *err = s->writer ? NULL : open_file(w, s);
    return err ? err : snapshot_writer_add(s->writer, element, count);
}

Error *shard_writers_finish(ShardWriters *w) {
    Error *err = NULL;
    for (size_t i = 0; !err && i < w->count; i++) {
        Shard *s = &w->shards[i];
        if (!s->writer) continue;
        err = snapshot_writer_finish(s->writer);
        if (!err) err = file_system_local.sync_dir(s->dir);
        snapshot_writer_close(s->writer);
        s->writer = NULL;
    }
    return err ? err : file_system_local.sync_dir(w->run_dir);
}

void shard_writers_save(const ShardWriters *w, IteratorState *s) {
    state_put_int(s, (int64_t)w->count);
    for (size_t i = 0; i < w->count; i++) {
        state_put_int(s, w->shards[i].number);
        state_put_int(s, w->shards[i].file_count);
    }
}

/* The files of a shard from `first` on. */
static Error *forget_files(const char *dir, int64_t first) {
    for (bool more = true; more; first++) {
        char *path = snapshot_file(dir, first);
        more = file_system_local.exists(path);
        Error *err = more ? file_system_local.remove(path) : NULL;
        free(path);
        if (err) return err;
    }
    return NULL;
}

Error *shard_writers_restore(ShardWriters *w, IteratorState *s) {
    int64_t count = 0;
    PathList dirs = {0};
    Error *err = state_get_range(s, 0, INT64_MAX, &count);
    for (int64_t i = 0; !err && i < count; i++) {
        int64_t number = 0, file_count = 0;
        err = state_get_int(s, &number);
        if (!err) err = state_get_range(s, 0, INT64_MAX - 1, &file_count);
        if (!err) find_shard(w, number)->file_count = file_count;
    }
    if (!err) err = snapshot_shards(&file_system_local, w->run_dir, &dirs);
    for (size_t i = 0; !err && i < dirs.count; i++) {
        int64_t kept = 0;
        for (size_t j = 0; j < w->count; j++)
            if (str_is(str_of(dirs.items[i]), w->shards[j].dir)) kept = w->shards[j].file_count;
        err = forget_files(dirs.items[i], kept);
        if (!err && !kept) err = file_system_local.remove_dir(dirs.items[i]);
    }
    path_list_clear(&dirs);
    return err;
}

Error *shard_of_element(Closure *shard_func, IteratorContext *c, Tensor *const *element, int count, int64_t *out) {
    Tensor *result = NULL;
    *out = 0;
    if (!shard_func) return NULL;
    Error *err = dataset_call(shard_func, c, element, count, NULL, 1, &result);
    if (!err && (result->dtype != DT_INT64 || result->count != 1))
        err = error_invalid("`shard_func` must return a scalar int64.");
    if (!err) *out = *tensor_i64(result);
    tensor_unref(result);
    return err;
}
