/* slice_file.c: reads V1 checkpoints. Nothing in the files is trusted. */
#include "io/slice_file.h"

#include <stdlib.h>

#include "base/memory.h"
#include "io/slice_box.h"
#include "io/slice_file_internal.h"
#include "io/table.h"
#include "proto/wire.h"
#include "tensor/tensor_proto.h"

struct SliceFile {
    const FileSystem *fs;
    PathList paths;
    Table **tables; /* one per path */
    SliceTensorSet tensors;
    SliceTensor **sorted;
};

void slice_file_close(SliceFile *f) {
    if (!f) return;
    for (size_t i = 0; f->tables && i < f->paths.count; i++) table_close(f->tables[i]);
    free(f->tables);
    path_list_clear(&f->paths);
    slice_tensor_set_clear(&f->tensors);
    free(f->sorted);
    free(f);
}

/* The bytes of one field of a message; of several the last. */
static bool find_field(Str message, uint32_t field, Str *out) {
    WireReader r = wire_reader(message);
    bool found = false;
    while (wire_next(&r))
        if (r.field == field && r.type == WIRE_BYTES) {
            *out = r.bytes;
            found = true;
        }
    return found && !r.failed;
}

static bool is_message(Str bytes) {
    WireReader r = wire_reader(bytes);
    while (wire_next(&r)) continue;
    return !r.failed;
}

static Error *damaged(const char *path, const char *what) {
    return error_new(CODE_DATA_LOSS, "%s: %s", path, what);
}

/* One SavedSliceMeta of the file at index `file`. */
static Error *read_tensor_meta(SliceFile *f, int file, Str message) {
    const char *path = f->paths.items[file];
    Str name = STR("");
    PartialShape shape = SHAPE_SCALAR;
    uint64_t type = DT_INVALID;
    Error *err = NULL;
    WireReader r = wire_reader(message);
    while (!err && wire_next(&r)) {
        if (r.field == TENSOR_NAME && r.type == WIRE_BYTES) name = r.bytes;
        if (r.field == TENSOR_SHAPE && r.type == WIRE_BYTES) err = shape_decode(r.bytes, &shape);
        if (r.field == TENSOR_TYPE && r.type == WIRE_VARINT) type = r.number;
    }
    if (!err) err = shape_check(&shape);
    if (err || r.failed || type > INT32_MAX || !dtype_is_valid((int)type)) {
        error_free(err);
        return damaged(path, "what it says of a tensor is damaged");
    }
    SliceTensor *t = NULL;
    err = slice_tensor_set_get(&f->tensors, name, (DataType)type, &shape, &t);
    r = wire_reader(message);
    while (!err && wire_next(&r)) {
        TensorSlice slice;
        Shape part;
        if (r.field != TENSOR_SLICE || r.type != WIRE_BYTES) continue;
        if (!slice_decode(r.bytes, &slice)) return damaged(path, "a slice of a tensor is damaged");
        err = slice_shape(&slice, &shape, &part);
        if (!err) slice_tensor_add(t, &slice, file);
    }
    return error_wrap(err, "%s", path);
}

/* Every older version can be read; a newer one says whether this one may. */
static Error *check_version(const char *path, Str versions) {
    uint64_t min_consumer = 0;
    WireReader r = wire_reader(versions);
    while (wire_next(&r))
        if (r.field == VERSION_MIN_CONSUMER && r.type == WIRE_VARINT) min_consumer = r.number;
    if (min_consumer > SLICE_FILE_VERSION)
        return error_invalid("%s: a reader of version %llu or newer is needed, this one has version %d", path,
                             (unsigned long long)min_consumer, SLICE_FILE_VERSION);
    return NULL;
}

static Error *read_file(SliceFile *f, int file) {
    const char *path = f->paths.items[file];
    Error *err = table_open(f->fs, path, &f->tables[file]);
    if (err) {
        Error *told = error_new(CODE_DATA_LOSS,
                                "Unable to open table file %s: %s: %s: perhaps your file is in a different file format and "
                                "you need to use a different restore operator?",
                                path, error_code_name(err->code), err->message);
        error_free(err);
        return told;
    }
    const TableEntry *entry = table_find(f->tables[file], STR(""));
    Str meta = STR("");
    /* The index of a later format begins with a message too: it is a file without slices. */
    if (!entry || (!find_field(entry->value, SLICES_META, &meta) && !is_message(entry->value)))
        return error_new(CODE_INTERNAL,
                         "Failed to find the saved tensor slices at the beginning of the checkpoint file: %s", path);
    WireReader r = wire_reader(meta);
    while (!err && wire_next(&r)) {
        if (r.type != WIRE_BYTES) continue;
        if (r.field == META_VERSIONS) err = check_version(path, r.bytes);
        if (r.field == META_TENSOR) err = read_tensor_meta(f, file, r.bytes);
    }
    if (!err && r.failed) err = damaged(path, "the list of tensors is damaged");
    return err;
}

Error *slice_file_open(const FileSystem *fs, const char *pattern, SliceFile **out) {
    SliceFile *f = xcalloc(1, sizeof *f);
    f->fs = fs;
    Error *err = file_glob(fs, pattern, &f->paths);
    if (!err && !f->paths.count)
        err = error_not_found("Unsuccessful TensorSliceReader constructor: Failed to find any matching files for %s",
                              pattern);
    f->tables = xcalloc(f->paths.count + 1, sizeof *f->tables);
    for (size_t i = 0; !err && i < f->paths.count; i++) err = read_file(f, (int)i);
    f->sorted = slice_tensor_set_sorted(&f->tensors);
    for (int64_t i = 0; !err && i < slice_file_count(f); i++) err = slices_check_disjoint(f->sorted[i]->slices, f->sorted[i]->count, &f->sorted[i]->shape);
    if (err)
        slice_file_close(f);
    else
        *out = f;
    return err;
}

int64_t slice_file_shard_count(const SliceFile *f) {
    return (int64_t)f->paths.count;
}

int64_t slice_file_count(const SliceFile *f) {
    return (int64_t)f->tensors.by_name.count;
}

const SliceTensor *slice_file_at(const SliceFile *f, int64_t i) {
    return f->sorted[i];
}

const SliceTensor *slice_file_find(const SliceFile *f, Str name) {
    return strmap_get(&f->tensors.by_name, name);
}

/* The values of slice i of a tensor: a TensorProto that lacks type and shape, which stand in the list of tensors. */
static Error *read_slice(const SliceFile *f, const SliceTensor *t, size_t i, Tensor **out) {
    const char *path = f->paths.items[t->files[i]];
    Shape shape;
    Str data = STR(""), values = STR("");
    StrBuf key = {0}, proto = {0}, dims = {0};
    Error *err = slice_shape(&t->slices[i], &t->shape, &shape);
    if (err) return err;
    slice_key(t->name, &t->slices[i], &key);
    const TableEntry *entry = table_find(f->tables[t->files[i]], strbuf_str(&key));
    strbuf_clear(&key);
    if (!entry || !find_field(entry->value, SLICES_DATA, &data) || !find_field(data, DATA_VALUES, &values))
        return damaged(path, "the values of a slice are missing");
    /* Each element takes a byte or more, so that a damaged shape allocates nothing large. */
    if (shape_count(&shape) > (int64_t)values.len) return damaged(path, "a slice has fewer values than its shape says");
    wire_put_uint(&proto, 1, (uint64_t)t->dtype);
    shape_encode(&shape, &dims);
    wire_put_bytes(&proto, 2, strbuf_str(&dims));
    strbuf_add(&proto, values);
    err = tensor_proto_decode(strbuf_str(&proto), out);
    strbuf_clear(&dims);
    strbuf_clear(&proto);
    if (!err && ((*out)->dtype != t->dtype || !shape_eq(&(*out)->shape, &shape))) {
        tensor_unref(*out); /* the values brought a type or shape of their own */
        err = damaged(path, "the values of a slice do not fit it");
    }
    return err;
}

Error *slice_file_read(const SliceFile *f, const SliceTensor *t, const TensorSlice *slice, Tensor **out) {
    if (!slice && t->count == 1 && slice_is_whole(&t->slices[0])) return read_slice(f, t, 0, out);
    Shape shape = t->shape;
    Tensor *whole = NULL;
    int64_t copied = 0, stored = 0;
    Error *err = slice ? slice_shape(slice, &t->shape, &shape) : NULL;
    if (err) return err;
    SliceBox wanted = slice ? slice_box(slice, &t->shape) : slice_box_whole(&t->shape);
    Tensor **parts = xcalloc(t->count + 1, sizeof *parts);
    for (size_t i = 0; !err && i < t->count; i++) {
        SliceBox box = slice_box(&t->slices[i], &t->shape);
        if (!slice_box_meets(&box, &wanted)) continue;
        err = read_slice(f, t, i, &parts[i]);
        if (!err) stored += parts[i]->count;
    }
    if (!err && stored < shape_count(&shape)) err = error_invalid("Error copying slice data");
    if (!err) err = tensor_new(t->dtype, &shape, &whole);
    for (size_t i = 0; !err && i < t->count; i++) {
        SliceBox box = slice_box(&t->slices[i], &t->shape);
        if (parts[i]) copied += slice_box_copy(&wanted, whole, &box, parts[i]);
    }
    if (!err && copied < whole->count) err = error_invalid("Error copying slice data");
    for (size_t i = 0; i < t->count; i++) tensor_unref(parts[i]);
    free(parts);
    if (err)
        tensor_unref(whole);
    else
        *out = whole;
    return err;
}
