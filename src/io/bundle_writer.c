/* bundle_writer.c: writes V2 checkpoints so that a crash never leaves a half-written one in sight, and merges them.
 *
 * Data and index are written under temporary names and synced; then the data is renamed, the directory synced, the
 * index renamed, the directory synced. A checkpoint exists once its index does. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crc32c.h"
#include "base/hashmap.h"
#include "base/memory.h"
#include "io/bundle_internal.h"
#include "io/table.h"
#include "proto/wire.h"
#include "tensor/tensor_proto.h"

enum { BUFFER_SIZE = 1 << 20 };

/* The entries of an index by key, in no order. */
typedef struct EntrySet {
    StrMap by_key; /* to IndexEntry; keys are the entries' own */
} EntrySet;

typedef struct IndexEntry {
    char *key;
    size_t key_len;
    BundleEntry entry;
} IndexEntry;

static void entry_set_clear(EntrySet *s) {
    size_t at = 0;
    Str key;
    void *value;
    while (strmap_next(&s->by_key, &at, &key, &value)) {
        IndexEntry *e = value;
        bundle_entry_clear(&e->entry);
        free(e->key);
        free(e);
    }
    strmap_clear(&s->by_key);
}

static IndexEntry *entry_set_add(EntrySet *s, Str key, const BundleEntry *entry) {
    IndexEntry *e = xmalloc(sizeof *e);
    *e = (IndexEntry){str_dup(key), key.len, *entry};
    strmap_put(&s->by_key, (Str){e->key, e->key_len}, e);
    return e;
}

static int compare_keys(const void *a, const void *b) {
    const IndexEntry *x = *(IndexEntry *const *)a, *y = *(IndexEntry *const *)b;
    return str_compare((Str){x->key, x->key_len}, (Str){y->key, y->key_len});
}

static StrBuf encode_index(const EntrySet *s, int64_t shard_count) {
    size_t n = 0, at = 0;
    IndexEntry **sorted = xmalloc((s->by_key.count + 1) * sizeof *sorted);
    Str key;
    void *value;
    while (strmap_next(&s->by_key, &at, &key, &value)) sorted[n++] = value;
    qsort(sorted, n, sizeof *sorted, compare_keys);
    TableWriter w = {0};
    StrBuf proto = {0};
    bundle_header_encode(shard_count, &proto);
    table_writer_add(&w, STR(""), strbuf_str(&proto));
    for (size_t i = 0; i < n; i++) {
        strbuf_clear(&proto);
        bundle_entry_encode(&sorted[i]->entry, &proto);
        table_writer_add(&w, (Str){sorted[i]->key, sorted[i]->key_len}, strbuf_str(&proto));
    }
    strbuf_clear(&proto);
    free(sorted);
    return table_writer_finish(&w);
}

static char *temporary_name(const char *path) {
    static atomic_uint serial;
    return xasprintf("%s.tempstate%llx%x%x", path, (unsigned long long)clock_wall_ns(), (unsigned)getpid(),
                     atomic_fetch_add(&serial, 1));
}

/* Writes the index under a temporary name and puts it in place, which makes the checkpoint exist. */
static Error *install_index(const FileSystem *fs, const EntrySet *s, int64_t shard_count, const char *prefix) {
    char *path = bundle_index_path(prefix), *temporary = temporary_name(path), *dir = path_dir(prefix);
    StrBuf bytes = encode_index(s, shard_count);
    File *f = NULL;
    Error *err = fs->open(temporary, FILE_WRITE, &f);
    if (!err) {
        err = fs->write(f, bytes.ptr, bytes.len);
        if (!err) err = fs->sync(f);
        fs->close(f);
        if (!err) err = fs->rename(temporary, path);
        if (err)
            error_free(fs->remove(temporary));
        else
            err = fs->sync_dir(dir);
    }
    strbuf_clear(&bytes);
    free(path);
    free(temporary);
    free(dir);
    return err;
}

/* ---- Writing ---- */

struct BundleWriter {
    const FileSystem *fs;
    char *prefix, *temporary; /* name of the data file before it is done; NULL afterwards */
    File *data;
    int64_t offset;
    char *buffer;
    size_t buffered;
    uint32_t crc; /* of the tensor being written */
    EntrySet entries;
};

/* Makes a missing folder, but not those above it: a wrong path is reported rather than made. */
static Error *make_folder(const FileSystem *fs, const char *dir) {
    char *above = path_dir(dir);
    Error *err = fs->is_dir(above) ? fs->make_dir(dir) : error_not_found("%s; No such file or directory", dir);
    free(above);
    return err;
}

Error *bundle_writer_open(const FileSystem *fs, const char *prefix, BundleWriter **out) {
    char *dir = path_dir(prefix), *path = bundle_data_path(prefix, 0, 1);
    BundleWriter *w = xcalloc(1, sizeof *w);
    w->fs = fs;
    w->prefix = xstrdup(prefix);
    w->buffer = xmalloc(BUFFER_SIZE);
    w->temporary = temporary_name(path);
    Error *err = make_folder(fs, dir);
    if (!err) err = fs->open(w->temporary, FILE_WRITE, &w->data);
    free(dir);
    free(path);
    if (err)
        bundle_writer_close(w);
    else
        *out = w;
    return err;
}

void bundle_writer_close(BundleWriter *w) {
    if (!w) return;
    if (w->data) w->fs->close(w->data);
    if (w->data && w->temporary) error_free(w->fs->remove(w->temporary));
    entry_set_clear(&w->entries);
    free(w->temporary);
    free(w->prefix);
    free(w->buffer);
    free(w);
}

static Error *flush(BundleWriter *w) {
    Error *err = w->fs->write(w->data, w->buffer, w->buffered);
    w->buffered = 0;
    return err;
}

static Error *put(BundleWriter *w, const void *bytes, size_t size) {
    Error *err = NULL;
    if (w->buffered + size > BUFFER_SIZE) err = flush(w);
    if (!err && size > BUFFER_SIZE) {
        err = w->fs->write(w->data, bytes, size);
    } else if (!err && size) {
        memcpy(w->buffer + w->buffered, bytes, size);
        w->buffered += size;
    }
    w->offset += (int64_t)size;
    return err;
}

static Error *put_strings(BundleWriter *w, const Tensor *t) {
    StrBuf lengths = {0};
    uint32_t crc = 0;
    for (int64_t i = 0; i < t->count; i++) {
        uint64_t len = tensor_str(t)[i].len;
        uint32_t len32 = (uint32_t)len;
        wire_put_varint(&lengths, len);
        crc = len <= UINT32_MAX ? crc32c(crc, &len32, 4) : crc32c(crc, &len, 8);
    }
    uint32_t masked = crc32c_mask(crc);
    crc = crc32c(crc, &masked, 4);
    Error *err = put(w, lengths.ptr, lengths.len);
    if (!err) err = put(w, &masked, 4);
    for (int64_t i = 0; !err && i < t->count; i++) {
        Str s = tstring_str(&tensor_str(t)[i]);
        crc = crc32c(crc, s.ptr, s.len);
        err = put(w, s.ptr, s.len);
    }
    w->crc = crc;
    strbuf_clear(&lengths);
    return err;
}

/* For each element its length as a varint, its bytes, and the CRC of all so far, with lengths as 64-bit integers. */
static Error *put_variants(BundleWriter *w, const Tensor *t) {
    uint32_t crc = 0;
    Error *err = NULL;
    for (int64_t i = 0; !err && i < t->count; i++) {
        StrBuf element = {0}, length = {0};
        err = variant_encode(&tensor_variants(t)[i], &element);
        uint64_t len = element.len;
        wire_put_varint(&length, len);
        crc = crc32c(crc32c(crc, &len, 8), strbuf_str(&element).ptr, element.len);
        uint32_t masked = crc32c_mask(crc);
        crc = crc32c(crc, &masked, 4);
        if (!err) err = put(w, length.ptr, length.len);
        if (!err) err = put(w, element.ptr, element.len);
        if (!err) err = put(w, &masked, 4);
        strbuf_clear(&element);
        strbuf_clear(&length);
    }
    w->crc = crc;
    return err;
}

Error *bundle_writer_add(BundleWriter *w, Str name, const Tensor *value) {
    if (!name.len) return error_invalid("A tensor of checkpoint %s has no name", w->prefix);
    if (strmap_get(&w->entries.by_key, name)) return error_invalid("Adding duplicate key: %.*s", STR_ARG(name));
    BundleEntry e = {.dtype = value->dtype, .shape = value->shape, .offset = w->offset};
    Error *err;
    if (value->dtype == DT_STRING) {
        err = put_strings(w, value);
    } else if (value->dtype == DT_VARIANT) {
        err = put_variants(w, value);
    } else if (dtype_is_plain(value->dtype)) {
        w->crc = crc32c(0, value->data, tensor_bytes(value));
        err = put(w, value->data, tensor_bytes(value));
    } else {
        err = error_unimplemented("Tensor %.*s of type %s cannot be saved", STR_ARG(name), dtype_name(value->dtype));
    }
    if (err) return err;
    e.size = w->offset - e.offset;
    e.masked_crc = crc32c_mask(w->crc);
    entry_set_add(&w->entries, name, &e);
    return NULL;
}

static void entry_add_slice(BundleEntry *e, const TensorSlice *slice) {
    e->slices = xrealloc(e->slices, (size_t)(e->slice_count + 1) * sizeof *e->slices);
    e->slices[e->slice_count++] = *slice;
}

Error *bundle_writer_add_slice(BundleWriter *w, Str name, const Shape *full, const TensorSlice *slice,
                               const Tensor *value) {
    if (slice_is_whole(slice)) return bundle_writer_add(w, name, value);
    IndexEntry *whole = strmap_get(&w->entries.by_key, name);
    if (whole &&
        (!whole->entry.slice_count || whole->entry.dtype != value->dtype || !shape_eq(&whole->entry.shape, full)))
        return error_invalid("A slice of tensor %.*s does not fit what was saved of it before", STR_ARG(name));
    StrBuf key = {0};
    slice_key(name, slice, &key);
    Error *err = bundle_writer_add(w, strbuf_str(&key), value);
    strbuf_clear(&key);
    if (err) return err;
    if (!whole) whole = entry_set_add(&w->entries, name, &(BundleEntry){.dtype = value->dtype, .shape = *full});
    entry_add_slice(&whole->entry, slice);
    return NULL;
}

Error *bundle_writer_finish(BundleWriter *w) {
    char *path = bundle_data_path(w->prefix, 0, 1), *dir = path_dir(w->prefix);
    Error *err = flush(w);
    if (!err) err = w->fs->sync(w->data);
    if (!err) err = w->fs->rename(w->temporary, path);
    if (!err) {
        free(w->temporary);
        w->temporary = NULL;
        err = w->fs->sync_dir(dir);
    }
    if (!err) err = install_index(w->fs, &w->entries, 1, w->prefix);
    free(path);
    free(dir);
    return err;
}

/* ---- Merging ---- */

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
        for (int s = 0; fits && s < e.slice_count; s++) entry_add_slice(&old->entry, &e.slices[s]);
        bundle_entry_clear(&e);
        if (!fits) return error_invalid("Tensor %.*s is in more than one of the checkpoints to merge", STR_ARG(t.key));
    }
    return NULL;
}

static Error *open_input(const FileSystem *fs, const char *prefix, bool allow_missing, Table **index,
                         int64_t *shard_count) {
    char *path = bundle_index_path(prefix);
    bool big_endian;
    *index = NULL;
    *shard_count = 0;
    Error *err = table_open(fs, path, index);
    if (err && allow_missing && err->code == CODE_NOT_FOUND) {
        error_free(err);
        err = NULL;
    } else if (!err) {
        const TableEntry *header = table_find(*index, STR(""));
        if (!header || !bundle_header_decode(header->value, shard_count, &big_endian) || *shard_count > 1 << 20)
            err = error_new(CODE_DATA_LOSS, "%s has no readable header", path);
    }
    free(path);
    return err;
}

static Error *move_data(const FileSystem *fs, const char *prefix, int64_t count, const char *destination, int64_t first,
                        int64_t total) {
    Error *err = NULL;
    for (int64_t i = 0; !err && i < count; i++) {
        char *from = bundle_data_path(prefix, i, count), *to = bundle_data_path(destination, first + i, total);
        err = fs->rename(from, to);
        free(from);
        free(to);
    }
    return err;
}

Error *bundle_merge(const FileSystem *fs, const char *const *prefixes, int count, const char *destination,
                    bool allow_missing) {
    EntrySet all = {0};
    Table **indexes = xcalloc((size_t)count + 1, sizeof *indexes);
    int64_t *shards = xcalloc((size_t)count + 1, sizeof *shards), total = 0;
    char *dir = path_dir(destination);
    Error *err = make_folder(fs, dir);
    for (int i = 0; !err && i < count; i++) {
        err = open_input(fs, prefixes[i], allow_missing, &indexes[i], &shards[i]);
        if (!err && indexes[i]) err = merge_entries(&all, indexes[i], prefixes[i], total, shards[i]);
        total += shards[i];
    }
    int64_t first = 0;
    for (int i = 0; !err && i < count; first += shards[i++])
        err = move_data(fs, prefixes[i], shards[i], destination, first, total);
    if (!err) err = fs->sync_dir(dir);
    if (!err) err = install_index(fs, &all, total, destination);
    for (int i = 0; !err && i < count; i++) {
        char *path = bundle_index_path(prefixes[i]);
        if (indexes[i] && strcmp(prefixes[i], destination)) error_free(fs->remove(path));
        free(path);
    }
    for (int i = 0; i < count; i++) table_close(indexes[i]);
    free(indexes);
    free(shards);
    free(dir);
    entry_set_clear(&all);
    return err;
}
