/* bundle_writer.c: writes V2 checkpoints so that a crash never leaves a half-written one in sight; see bundle_index.c.
 */
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/memory.h"
#include "io/bundle_internal.h"
#include "io/replace.h"
#include "proto/wire.h"
#include "tensor/tensor_proto.h"

enum { BUFFER_SIZE = 1 << 20 };

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

Error *bundle_writer_open(const FileSystem *fs, const char *prefix, BundleWriter **out) {
    char *dir = path_dir(prefix), *path = bundle_data_path(prefix, 0, 1);
    BundleWriter *w = xcalloc(1, sizeof *w);
    w->fs = fs;
    w->prefix = xstrdup(prefix);
    w->buffer = xmalloc(BUFFER_SIZE);
    w->temporary = temporary_path(path);
    Error *err = bundle_make_dir(fs, dir);
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
        uint64_t len = tstring_str(&tensor_str(t)[i]).len;
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
    bundle_entry_add_slice(&whole->entry, slice);
    return NULL;
}

Error *bundle_writer_finish(BundleWriter *w) {
    BundleInstall install;
    char *path = NULL, *dir = path_dir(w->prefix);
    bool installed = false;
    Error *err = flush(w);
    if (!err) err = w->fs->sync(w->data);
    if (!err) err = bundle_install_begin(&install, w->fs, w->prefix, 1);
    if (!err) {
        path = bundle_data_path(w->prefix, 0, install.shard_count);
        err = w->fs->rename(w->temporary, path);
    }
    if (!err) {
        free(w->temporary);
        w->temporary = NULL;
        err = w->fs->sync_dir(dir);
        if (!err) err = bundle_install_index(&install, &w->entries, &installed);
        if (err && !installed) error_free(w->fs->remove(path));
    }
    free(path);
    free(dir);
    return err;
}
