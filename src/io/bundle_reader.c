/* bundle_reader.c: reads tensors from V2 checkpoints, and from V1 ones as if they were such. Nothing in the files is
 * trusted. */
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/memory.h"
#include "io/bundle_internal.h"
#include "io/slice_box.h"
#include "io/slice_file.h"
#include "proto/wire.h"
#include "tensor/tensor_proto.h"

struct Bundle {
    const FileSystem *fs;
    char *prefix;
    SliceFile *old; /* a V1 checkpoint, and nothing of what follows; else NULL */
    Table *index;
    int64_t shard_count;
    File **shards; /* opened when needed */
    uint64_t *shard_sizes;
};

void bundle_close(Bundle *b) {
    if (!b) return;
    for (int64_t i = 0; b->shards && i < b->shard_count; i++)
        if (b->shards[i]) b->fs->close(b->shards[i]);
    free(b->shards);
    free(b->shard_sizes);
    slice_file_close(b->old);
    table_close(b->index);
    free(b->prefix);
    free(b);
}

/* An entry of a V2 checkpoint that says what a V1 one has of a tensor. */
static void entry_of_old(const SliceTensor *t, BundleEntry *out) {
    *out = (BundleEntry){.dtype = t->dtype, .shape = t->shape};
    out->size = shape_count(&t->shape) * (int64_t)dtype_size(t->dtype);
    for (size_t i = 0; t->count > 1 && i < t->count; i++) bundle_entry_add_slice(out, &t->slices[i]);
}

Error *bundle_open(const FileSystem *fs, const char *prefix, Bundle **out) {
    Bundle *b = xcalloc(1, sizeof *b);
    b->fs = fs;
    b->prefix = xstrdup(prefix);
    Error *err = bundle_index_open(fs, prefix, &b->index, &b->shard_count);
    if (err && (err->code == CODE_NOT_FOUND || err->code == CODE_FAILED_PRECONDITION)) { /* its directory may be none */
        error_free(err);
        err = slice_file_open(fs, prefix, &b->old); /* the error also tells that there is nothing at all */
    }
    if (err) {
        bundle_close(b);
        return err;
    }
    b->shards = xcalloc((size_t)b->shard_count + 1, sizeof(File *));
    b->shard_sizes = xcalloc((size_t)b->shard_count + 1, sizeof(uint64_t));
    *out = b;
    return NULL;
}

int64_t bundle_shard_count(const Bundle *b) {
    return b->old ? slice_file_shard_count(b->old) : b->shard_count;
}

int64_t bundle_count(const Bundle *b) {
    return b->old ? slice_file_count(b->old) : table_count(b->index) - 1;
}

Str bundle_name(const Bundle *b, int64_t i) {
    return b->old ? slice_file_at(b->old, i)->name
                  : table_at(b->index, i + 1).key; /* the header is first: its key is empty */
}

bool bundle_has(const Bundle *b, Str name) {
    return b->old ? slice_file_find(b->old, name) != NULL : name.len && table_find(b->index, name);
}

Error *bundle_find(const Bundle *b, Str name, BundleEntry *out) {
    const SliceTensor *old = b->old ? slice_file_find(b->old, name) : NULL;
    if (b->old && !old)
        return error_not_found("Tensor name \"%.*s\" not found in checkpoint files %s", STR_ARG(name), b->prefix);
    if (old) {
        entry_of_old(old, out);
        return NULL;
    }
    const TableEntry *e = name.len ? table_find(b->index, name) : NULL;
    if (!e) return error_not_found("Key %.*s not found in checkpoint", STR_ARG(name));
    if (!bundle_entry_decode(e->value, out))
        return error_new(CODE_DATA_LOSS, "%s.index: the entry of %.*s is damaged", b->prefix, STR_ARG(name));
    return NULL;
}

static Error *damaged(const Bundle *b, const BundleEntry *e, const char *what) {
    char *path = bundle_data_path(b->prefix, e->shard, b->shard_count);
    Error *err = error_new(CODE_DATA_LOSS, "%s: %s", path, what);
    free(path);
    return err;
}

/* The file that holds the entry, which must hold all of it. */
static Error *open_shard(Bundle *b, const BundleEntry *e, File **out) {
    if (e->shard >= b->shard_count) return damaged(b, e, "there is no such shard");
    if (!b->shards[e->shard]) {
        char *path = bundle_data_path(b->prefix, e->shard, b->shard_count);
        Error *err = b->fs->size(path, &b->shard_sizes[e->shard]);
        if (!err) err = b->fs->open(path, FILE_READ, &b->shards[e->shard]);
        free(path);
        if (err) return err;
    }
    uint64_t size = b->shard_sizes[e->shard];
    if ((uint64_t)e->offset > size || (uint64_t)e->size > size - (uint64_t)e->offset)
        return damaged(b, e, "the file is shorter than its index says");
    *out = b->shards[e->shard];
    return NULL;
}

static Error *read_exactly(Bundle *b, const BundleEntry *e, File *f, void *to, size_t size) {
    size_t got;
    Error *err = b->fs->read_at(f, (uint64_t)e->offset, to, size, &got);
    if (!err && got < size) err = damaged(b, e, "the file ends too early");
    return err;
}

static Error *read_plain(Bundle *b, const BundleEntry *e, File *f, Tensor *t) {
    if ((size_t)e->size != tensor_bytes(t)) return damaged(b, e, "the size of a tensor does not fit its shape");
    Error *err = read_exactly(b, e, f, t->data, tensor_bytes(t));
    if (!err && crc32c_mask(crc32c(0, t->data, tensor_bytes(t))) != e->masked_crc)
        err = damaged(b, e, "checksum does not match");
    tensor_normalize_bools(t);
    return err;
}

/* Lengths as varints, the CRC of the lengths, then the characters; the entry's CRC is over lengths as integers and all
 * else. */
static Error *parse_strings(Bundle *b, const BundleEntry *e, const char *data, Tensor *t) {
    size_t size = (size_t)e->size;
    WireReader r = wire_reader((Str){data, size});
    uint32_t crc = 0;
    uint64_t total = 0;
    for (int64_t i = 0; i < t->count; i++) {
        uint64_t len;
        if (!wire_varint(&r, &len) || len > size) return damaged(b, e, "the lengths of strings are damaged");
        uint32_t len32 = (uint32_t)len;
        crc = len <= UINT32_MAX ? crc32c(crc, &len32, 4) : crc32c(crc, &len, 8);
        total += len;
        if (total > size) return damaged(b, e, "the lengths of strings are damaged");
    }
    if (r.end - r.at < 4 || (uint64_t)(r.end - r.at) - 4 != total)
        return damaged(b, e, "strings are not as long as said");
    uint32_t stored;
    memcpy(&stored, r.at, 4);
    if (stored != crc32c_mask(crc)) return damaged(b, e, "checksum of the lengths of strings does not match");
    crc = crc32c(crc, r.at, 4);
    const char *at = (const char *)r.at + 4;
    if (crc32c_mask(crc32c(crc, at, (size_t)total)) != e->masked_crc) return damaged(b, e, "checksum does not match");
    WireReader lengths = wire_reader((Str){data, size}); /* once more */
    uint64_t len;
    for (int64_t i = 0; i < t->count && wire_varint(&lengths, &len); i++) {
        tstring_set(&tensor_str(t)[i], (Str){at, (size_t)len});
        at += len;
    }
    return NULL;
}

/* As bundle_writer.c puts them. */
static Error *parse_variants(Bundle *b, const BundleEntry *e, const char *data, Tensor *t) {
    WireReader r = wire_reader((Str){data, (size_t)e->size});
    uint32_t crc = 0, stored;
    Error *err = NULL;
    for (int64_t i = 0; !err && i < t->count; i++) {
        uint64_t len;
        if (!wire_varint(&r, &len) || len > (uint64_t)(r.end - r.at) || (uint64_t)(r.end - r.at) - len < 4)
            return damaged(b, e, "the length of a variant is damaged");
        Str element = {(const char *)r.at, (size_t)len};
        crc = crc32c(crc32c(crc, &len, 8), element.ptr, element.len);
        memcpy(&stored, r.at + len, 4);
        if (stored != crc32c_mask(crc)) return damaged(b, e, "checksum of a variant does not match");
        crc = crc32c(crc, &stored, 4);
        r.at += len + 4;
        err = variant_decode(element, &tensor_variants(t)[i]);
    }
    if (!err && (r.at != r.end || crc32c_mask(crc) != e->masked_crc)) err = damaged(b, e, "checksum does not match");
    return err;
}

static Error *read_parsed(Bundle *b, const BundleEntry *e, File *f, Tensor *t) {
    char *data = try_alloc((size_t)e->size + 1);
    if (!data) return error_new(CODE_RESOURCE_EXHAUSTED, "Not enough memory for a tensor of %s", b->prefix);
    Error *err = read_exactly(b, e, f, data, (size_t)e->size);
    if (!err) err = t->dtype == DT_STRING ? parse_strings(b, e, data, t) : parse_variants(b, e, data, t);
    free(data);
    return err;
}

static Error *read_whole(Bundle *b, const BundleEntry *e, Tensor **out) {
    File *f = NULL;
    Tensor *t = NULL;
    Error *err = open_shard(b, e, &f);
    if (err) return err;
    /* What the shape claims must be in the file, so that a damaged shape allocates nothing large. */
    uint64_t least = (uint64_t)shape_count(&e->shape);
    if (least > (uint64_t)e->size) return damaged(b, e, "a tensor has more elements than bytes");
    err = tensor_new(e->dtype, &e->shape, &t);
    if (!err && dtype_is_plain(e->dtype))
        err = read_plain(b, e, f, t);
    else if (!err && (e->dtype == DT_STRING || e->dtype == DT_VARIANT))
        err = read_parsed(b, e, f, t);
    else if (!err)
        err = error_unimplemented("Checkpoint %s holds a tensor of type %s", b->prefix, dtype_name(e->dtype));
    if (err) {
        tensor_unref(t);
        return err;
    }
    *out = t;
    return NULL;
}

/* ---- Slices ---- */

/* Puts the part of the tensor kept as slices[i] into `out`, which is the box `wanted`. */
static Error *read_part(Bundle *b, Str name, const BundleEntry *e, int i, const SliceBox *wanted, Tensor *out,
                        int64_t *copied) {
    Shape shape;
    BundleEntry part = {0};
    StrBuf key = {0};
    Tensor *t = NULL;
    Error *err = slice_shape(&e->slices[i], &e->shape, &shape);
    if (err) goto out;
    SliceBox box = slice_box(&e->slices[i], &e->shape);
    if (!slice_box_meets(&box, wanted)) goto out;
    slice_key(name, &e->slices[i], &key);
    err = bundle_find(b, strbuf_str(&key), &part);
    if (!err && (part.dtype != e->dtype || part.slice_count || !shape_eq(&part.shape, &shape)))
        err = damaged(b, &part, "a part of a tensor does not fit the tensor");
    if (!err) err = read_whole(b, &part, &t);
    if (!err) *copied += slice_box_copy(wanted, out, &box, t);
out:
    tensor_unref(t);
    bundle_entry_clear(&part);
    strbuf_clear(&key);
    return err;
}

static Error *read_box(Bundle *b, Str name, const BundleEntry *e, const TensorSlice *slice, Tensor **out) {
    Shape shape;
    Tensor *t = NULL, *whole = NULL;
    int64_t copied = 0;
    Error *err = slice_shape(slice, &e->shape, &shape);
    if (err) return error_wrap(err, "Tensor %.*s: checkpoint %s", STR_ARG(name), b->prefix);
    SliceBox wanted = slice_box(slice, &e->shape);
    err = tensor_new(e->dtype, &shape, &t);
    if (!err && !e->slice_count) {
        err = read_whole(b, e, &whole);
        SliceBox box = slice_box_whole(&e->shape);
        if (!err) copied = slice_box_copy(&wanted, t, &box, whole);
    }
    for (int i = 0; !err && i < e->slice_count; i++) err = slice_shape(&e->slices[i], &e->shape, &shape);
    if (!err) err = slices_check_disjoint(e->slices, (size_t)e->slice_count, &e->shape);
    for (int i = 0; !err && i < e->slice_count; i++) err = read_part(b, name, e, i, &wanted, t, &copied);
    if (!err && copied < t->count) {
        StrBuf text = {0};
        slice_text(slice, &text);
        err = error_invalid("Does not have sufficient slices for partitioned tensor %.*s to restore in slice_spec: %.*s", STR_ARG(name), STR_ARG(strbuf_str(&text)));
        strbuf_clear(&text);
    }
    tensor_unref(whole);
    if (err)
        tensor_unref(t);
    else
        *out = t;
    return err;
}

/* Says which tensor an error is about, but not twice: what lacks parts of a tensor names it. */
static Error *of_tensor(Error *err, Str name) {
    return !err || err->code == CODE_INVALID_ARGUMENT || err->code == CODE_INTERNAL ? err : error_wrap(err, "Tensor %.*s", STR_ARG(name));
}

Error *bundle_read(Bundle *b, Str name, Tensor **out) {
    BundleEntry e;
    Error *err = bundle_find(b, name, &e);
    if (err) return err;
    if (b->old) {
        err = slice_file_read(b->old, slice_file_find(b->old, name), NULL, out);
    } else if (e.slice_count) {
        TensorSlice all = {.rank = e.shape.rank};
        for (int d = 0; d < all.rank; d++) all.length[d] = -1;
        err = read_box(b, name, &e, &all, out);
    } else {
        err = read_whole(b, &e, out);
    }
    bundle_entry_clear(&e);
    return of_tensor(err, name);
}

Error *bundle_read_slice(Bundle *b, Str name, const TensorSlice *slice, Tensor **out) {
    BundleEntry e;
    Error *err = bundle_find(b, name, &e);
    if (err) return err;
    err =
        b->old ? slice_file_read(b->old, slice_file_find(b->old, name), slice, out) : read_box(b, name, &e, slice, out);
    bundle_entry_clear(&e);
    return of_tensor(err, name);
}
