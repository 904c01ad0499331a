/* bundle_merge.c: makes one checkpoint of several: their data files get its name, their indexes become one. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "io/bundle_internal.h"

/* Entries of one index, with their shards counted from first_shard. */
static Error *merge_entries(EntrySet *all, const Table *index, const char *path, int64_t first_shard,
                            int64_t shard_count) {
    for (int64_t i = 0; i < table_count(index); i++) {
        TableEntry t = table_at(index, i);
        BundleEntry e;
        if (!t.key.len) continue;
        if (!bundle_entry_decode(t.value, &e) || e.shard >= shard_count)
            return error_new(CODE_DATA_LOSS, "%s: the entry of %.*s is damaged", path, STR_ARG(t.key));
        IndexEntry *old = strmap_get(&all->by_key, t.key);
        if (!e.slice_count) e.shard += first_shard;
        if (!old) {
            entry_set_add(all, t.key, &e);
            continue;
        }
        bool fits = old->entry.slice_count && e.slice_count && old->entry.dtype == e.dtype &&
                    shape_eq(&old->entry.shape, &e.shape);
        for (int s = 0; fits && s < e.slice_count; s++) bundle_entry_add_slice(&old->entry, &e.slices[s]);
        bundle_entry_clear(&e);
        if (!fits) return error_invalid("Duplicate tensor keyed by %.*s encountered, when merging prefix: %s", STR_ARG(t.key), path);
    }
    return NULL;
}

static Error *open_input(const FileSystem *fs, const char *prefix, bool allow_missing, Table **index,
                         int64_t *shard_count) {
    Error *err = bundle_index_open(fs, prefix, index, shard_count);
    if (!err || err->code != CODE_NOT_FOUND) return err;
    error_free(err);
    if (!allow_missing) return error_invalid("allow_missing_files was set to false and %s did not exist.NOT_FOUND: %s not found", prefix, prefix);
    *index = NULL;
    *shard_count = 0;
    return NULL;
}

/* A data file on its way from the checkpoint it was written for to the merged one. */
typedef struct Move {
    char *from, *to;
    bool needed; /* some tensor is in it */
    bool done;
} Move;

typedef struct Merge {
    const FileSystem *fs;
    const char *const *prefixes;
    int count;
    Table **indexes; /* NULL: missing, and that is allowed */
    int64_t *shards;
    EntrySet all;
    Move *moves;
    int64_t move_count;
} Merge;

static Error *read_inputs(Merge *m, bool allow_missing) {
    Error *err = NULL;
    for (int i = 0; !err && i < m->count; i++) {
        err = open_input(m->fs, m->prefixes[i], allow_missing, &m->indexes[i], &m->shards[i]);
        if (!err && m->indexes[i])
            err = merge_entries(&m->all, m->indexes[i], m->prefixes[i], m->move_count, m->shards[i]);
        m->move_count += m->shards[i];
    }
    if (!err && !m->move_count) err = error_invalid("At least one prefix checkpoint file must exist, but none existed.");
    return err;
}

static void plan_moves(Merge *m, const BundleInstall *install) {
    m->moves = xcalloc((size_t)m->move_count + 1, sizeof *m->moves);
    int64_t next = 0;
    for (int i = 0; i < m->count; i++)
        for (int64_t shard = 0; shard < m->shards[i]; shard++, next++)
            m->moves[next] = (Move){.from = bundle_data_path(m->prefixes[i], shard, m->shards[i]),
                                    .to = bundle_data_path(install->prefix, next, install->shard_count)};
    size_t at = 0;
    void *value;
    while (strmap_next(&m->all.by_key, &at, NULL, &value)) {
        const BundleEntry *e = &((IndexEntry *)value)->entry;
        if (!e->slice_count) m->moves[e->shard].needed = true;
    }
}

/* Another program may have written it without waiting for the disk. */
static Error *sync_file(const FileSystem *fs, const char *path) {
    File *f = NULL;
    Error *err = fs->open(path, FILE_READ, &f);
    if (err) return err;
    err = fs->sync(f);
    fs->close(f);
    return err;
}

/* A shard that holds nothing may not be there. */
static Error *move_data(Merge *m) {
    Error *err = NULL;
    for (int64_t i = 0; !err && i < m->move_count; i++) {
        if (!m->moves[i].needed && !m->fs->exists(m->moves[i].from)) continue;
        err = sync_file(m->fs, m->moves[i].from);
        if (!err) err = m->fs->rename(m->moves[i].from, m->moves[i].to);
        m->moves[i].done = !err;
    }
    return err;
}

static void move_back(Merge *m) {
    for (int64_t i = 0; i < m->move_count; i++)
        if (m->moves[i].done) error_free(m->fs->rename(m->moves[i].to, m->moves[i].from));
}

static void remove_inputs(Merge *m, const char *destination) {
    for (int i = 0; i < m->count; i++) {
        char *path = bundle_index_path(m->prefixes[i]);
        if (m->indexes[i] && strcmp(m->prefixes[i], destination)) error_free(m->fs->remove(path));
        free(path);
    }
}

static void merge_clear(Merge *m) {
    for (int i = 0; i < m->count; i++) table_close(m->indexes[i]);
    for (int64_t i = 0; m->moves && i < m->move_count; i++) {
        free(m->moves[i].from);
        free(m->moves[i].to);
    }
    free(m->moves);
    free(m->indexes);
    free(m->shards);
    entry_set_clear(&m->all);
}

Error *bundle_merge(const FileSystem *fs, const char *const *prefixes, int count, const char *destination,
                    bool allow_missing) {
    Merge m = {.fs = fs,
               .prefixes = prefixes,
               .count = count,
               .indexes = xcalloc((size_t)count + 1, sizeof *m.indexes),
               .shards = xcalloc((size_t)count + 1, sizeof *m.shards)};
    BundleInstall install;
    bool installed = false;
    char *dir = path_dir(destination);
    Error *err = bundle_make_dir(fs, dir);
    if (!err) err = read_inputs(&m, allow_missing);
    if (!err) err = bundle_install_begin(&install, fs, destination, m.move_count);
    if (!err) {
        plan_moves(&m, &install);
        err = move_data(&m);
        if (!err) err = fs->sync_dir(dir);
        if (!err) err = bundle_install_index(&install, &m.all, &installed);
        if (err && !installed) move_back(&m);
    }
    if (!err) remove_inputs(&m, destination);
    merge_clear(&m);
    free(dir);
    return err;
}
