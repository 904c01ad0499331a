/* bundle_index.c: the index of a checkpoint: gathered, read, and put in place of another one at once.
 *
 * A checkpoint exists once its index does. The order is: data under a temporary name, synced; data renamed; directory
 * synced; index under a temporary name, synced; index renamed; directory synced; only then the data of the replaced one
 * goes. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "io/bundle_internal.h"
#include "io/replace.h"

void entry_set_clear(EntrySet *s) {
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

IndexEntry *entry_set_add(EntrySet *s, Str key, const BundleEntry *entry) {
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

Error *bundle_index_open(const FileSystem *fs, const char *prefix, Table **index, int64_t *shard_count) {
    char *path = bundle_index_path(prefix);
    Table *t = NULL;
    bool big_endian = false;
    Error *err = table_open(fs, path, &t);
    const TableEntry *header = err ? NULL : table_find(t, STR(""));
    if (!err && (!header || !bundle_header_decode(header->value, shard_count, &big_endian) || *shard_count > 1 << 20))
        err = error_new(CODE_DATA_LOSS, "%s has no readable header", path);
    else if (big_endian)
        err = error_unimplemented("%s was written on a machine of the other byte order", path);
    free(path);
    if (err)
        table_close(t);
    else
        *index = t;
    return err;
}

Error *bundle_make_dir(const FileSystem *fs, const char *dir) {
    if (fs->is_dir(dir) || fs->exists(dir)) return NULL; /* below what is no directory nobody can open a file, and so is told of it */
    char *above = path_dir(dir);
    Error *err = fs->is_dir(above) ? fs->make_dir(dir) : error_not_found("%s; No such file or directory", dir);
    if (!err) err = fs->sync_dir(above);
    free(above);
    return err;
}

Error *bundle_install_begin(BundleInstall *i, const FileSystem *fs, const char *prefix, int64_t shard_count) {
    *i = (BundleInstall){.fs = fs, .prefix = prefix, .shard_count = shard_count};
    Table *old = NULL;
    Error *err = bundle_index_open(fs, prefix, &old, &i->old_count);
    if (err) {
        /* None, or one that cannot be read and so cannot be kept. */
        bool lost = err->code == CODE_NOT_FOUND || err->code == CODE_DATA_LOSS || err->code == CODE_UNIMPLEMENTED;
        i->old_count = 0;
        if (!lost) return err;
        error_free(err);
    }
    table_close(old);
    if (i->old_count == shard_count) i->shard_count++;
    return NULL;
}

Error *bundle_install_index(const BundleInstall *i, const EntrySet *s, bool *installed) {
    const FileSystem *fs = i->fs;
    char *path = bundle_index_path(i->prefix);
    StrBuf bytes = encode_index(s, i->shard_count);
    Error *err = file_replace(fs, path, strbuf_str(&bytes), installed);
    for (int64_t shard = 0; !err && i->old_count != i->shard_count && shard < i->old_count; shard++) {
        char *data = bundle_data_path(i->prefix, shard, i->old_count);
        error_free(fs->remove(data)); /* some may hold nothing and not be there */
        free(data);
    }
    strbuf_clear(&bytes);
    free(path);
    return err;
}
