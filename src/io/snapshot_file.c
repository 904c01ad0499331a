/* snapshot_file.c: elements in one file of a snapshot.

   Version 2: TFRecords, one TensorProto for each component. Version 1: records of eight bytes of length and the bytes;
   one is a SnapshotRecord, the TensorProtos of an element. With snappy an element is two records: shapes and sizes of its
   components, then their bytes together, compressed. Version 0 is version 1 with snappy as a stream. */
#include <snappy-c.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "io/output_stream.h"
#include "io/record.h"
#include "io/snapshot.h"
#include "proto/wire.h"
#include "tensor/tensor_proto.h"

enum { RECORD_TENSOR = 1, ELEMENT_COMPONENT = 1, COMPONENT_SHAPE = 2, COMPONENT_SIZE = 3, SHAPE_DIM = 2, DIM_SIZE = 1 };
enum { MAX_RECORD = 1 << 30 };

static Error *unsupported(const char *who, int64_t version) {
    return error_invalid("Snapshot %s version: %lld is not supported.", who, (long long)version);
}

/* TensorFlow writes and reads plain records for a name it does not know. */
static Compression compression_of(Str name) {
    Compression how = COMPRESSION_NONE;
    error_free(record_compression_from_name(name, &how));
    return how;
}

/* ---- Writing ---- */

struct SnapshotWriter {
    RecordWriter *records; /* version 2 */
    OutputStream *stream;  /* version 1 */
    bool packs;            /* version 1 with snappy */
};

Error *snapshot_writer_open(const FileSystem *fs, const char *path, Str compression, int64_t version,
                            SnapshotWriter **out) {
    Compression how = compression_of(compression);
    Error *err = NULL;
    SnapshotWriter *w = xcalloc(1, sizeof *w);
    w->packs = version == SNAPSHOT_VERSION_CUSTOM && how == COMPRESSION_SNAPPY;
    if (version == SNAPSHOT_VERSION_RECORDS)
        err = record_writer_open(fs, path, how, false, &w->records);
    else if (version == SNAPSHOT_VERSION_CUSTOM)
        err = output_stream_open(fs, path, w->packs ? COMPRESSION_NONE : how, false, &w->stream);
    else
        err = unsupported("writer", version);
    if (err)
        free(w);
    else
        *out = w;
    return err;
}

static Error *write_record(OutputStream *s, Str bytes) {
    char header[8];
    uint64_t length = bytes.len;
    memcpy(header, &length, sizeof length);
    Error *err = output_stream_write(s, (Str){header, sizeof header});
    return err ? err : output_stream_write(s, bytes);
}

static void encode_shape(const Shape *shape, StrBuf *out) {
    for (int i = 0; i < shape->rank; i++) {
        StrBuf dim = {0};
        wire_put_uint(&dim, DIM_SIZE, (uint64_t)shape->dims[i]);
        wire_put_bytes(out, SHAPE_DIM, strbuf_str(&dim));
        strbuf_clear(&dim);
    }
}

static Error *add_packed(SnapshotWriter *w, Tensor *const *element, int count) {
    StrBuf sizes = {0}, bytes = {0};
    for (int i = 0; i < count; i++) {
        StrBuf component = {0}, shape = {0};
        size_t before = bytes.len;
        if (dtype_is_plain(element[i]->dtype))
            strbuf_add(&bytes, (Str){element[i]->data, tensor_bytes(element[i])});
        else
            tensor_proto_encode(element[i], &bytes);
        encode_shape(&element[i]->shape, &shape);
        wire_put_bytes(&component, COMPONENT_SHAPE, strbuf_str(&shape));
        wire_put_uint(&component, COMPONENT_SIZE, bytes.len - before);
        wire_put_bytes(&sizes, ELEMENT_COMPONENT, strbuf_str(&component));
        strbuf_clear(&component);
        strbuf_clear(&shape);
    }
    size_t len = snappy_max_compressed_length(bytes.len);
    char *packed = try_alloc(len + 1);
    Error *err = packed ? NULL : error_new(CODE_RESOURCE_EXHAUSTED, "An element of %zu bytes is too large", bytes.len);
    if (!err && snappy_compress(strbuf_str(&bytes).ptr, bytes.len, packed, &len) != SNAPPY_OK)
        err = error_internal("Failed to compress using snappy.");
    if (!err) err = write_record(w->stream, strbuf_str(&sizes));
    if (!err) err = write_record(w->stream, (Str){packed, len});
    free(packed);
    strbuf_clear(&bytes);
    strbuf_clear(&sizes);
    return err;
}

Error *snapshot_writer_add(SnapshotWriter *w, Tensor *const *element, int count) {
    if (w->packs) return add_packed(w, element, count);
    StrBuf record = {0};
    Error *err = NULL;
    for (int i = 0; !err && i < count; i++) {
        StrBuf proto = {0};
        tensor_proto_encode(element[i], &proto);
        if (w->records)
            err = record_writer_add(w->records, strbuf_str(&proto));
        else
            wire_put_bytes(&record, RECORD_TENSOR, strbuf_str(&proto));
        strbuf_clear(&proto);
    }
    if (!err && w->stream) err = write_record(w->stream, strbuf_str(&record));
    strbuf_clear(&record);
    return err;
}

Error *snapshot_writer_flush(SnapshotWriter *w) {
    return w->records ? record_writer_flush(w->records) : output_stream_flush(w->stream);
}

Error *snapshot_writer_finish(SnapshotWriter *w) {
    Error *err = w->records ? record_writer_finish(w->records) : output_stream_finish(w->stream);
    if (err) return err;
    return w->records ? record_writer_sync(w->records) : output_stream_sync(w->stream);
}

void snapshot_writer_close(SnapshotWriter *w) {
    if (!w) return;
    record_writer_close(w->records);
    output_stream_close(w->stream);
    free(w);
}

/* ---- Reading ---- */

struct SnapshotReader {
    RecordReader *records; /* version 2 */
    InputStream *stream;   /* versions 0 and 1 */
    bool packed;
    char *path;
    const DataType *types;
    int count;
    StrBuf record, second;
};

Error *snapshot_reader_open(const FileSystem *fs, const char *path, Str compression, int64_t version,
                            const DataType *types, int count, SnapshotReader **out) {
    Compression how = compression_of(compression);
    Error *err = NULL;
    SnapshotReader *r = xcalloc(1, sizeof *r);
    r->packed = version == SNAPSHOT_VERSION_CUSTOM && how == COMPRESSION_SNAPPY;
    r->types = types;
    r->count = count;
    if (version == SNAPSHOT_VERSION_RECORDS)
        err = record_reader_open(fs, path, how, &r->records);
    else if (version == 0 || version == SNAPSHOT_VERSION_CUSTOM)
        err = input_stream_open(fs, path, r->packed ? COMPRESSION_NONE : how, &r->stream);
    else
        err = unsupported("reader", version);
    if (err) {
        free(r);
        return err;
    }
    r->path = xstrdup(path);
    *out = r;
    return NULL;
}

void snapshot_reader_close(SnapshotReader *r) {
    if (!r) return;
    record_reader_close(r->records);
    input_stream_close(r->stream);
    strbuf_clear(&r->record);
    strbuf_clear(&r->second);
    free(r->path);
    free(r);
}

static Error *damaged(const SnapshotReader *r, const char *what) {
    return error_new(CODE_DATA_LOSS, "%s in %s", what, r->path);
}

static Error *check_type(const SnapshotReader *r, int i, const Tensor *t) {
    if (t->dtype == r->types[i]) return NULL;
    return error_new(CODE_DATA_LOSS, "Component %d in %s is %s, it should be %s", i, r->path, dtype_name(t->dtype),
                     dtype_name(r->types[i]));
}

static Error *next_of_records(SnapshotReader *r, Tensor **out, bool *more) {
    Error *err = NULL;
    for (int i = 0; !err && i < r->count; i++) {
        Str record = STR("");
        err = record_reader_next(r->records, &record, more);
        if (!err && !*more) {
            *more = false;
            return i ? damaged(r, "An element that ends too early") : NULL;
        }
        if (!err) err = tensor_proto_decode(record, &out[i]);
        if (!err) err = check_type(r, i, out[i]);
    }
    return err;
}

/* Grows while bytes really come: the length may be damaged. */
static Error *read_record(SnapshotReader *r, StrBuf *out, bool *more) {
    char header[8], chunk[4096];
    uint64_t length = 0;
    size_t got = 0;
    Error *err = input_stream_read(r->stream, header, sizeof header, &got);
    if (err) return err;
    *more = got > 0;
    if (!got) return NULL;
    if (got < sizeof header) return damaged(r, "A record that ends too early");
    memcpy(&length, header, sizeof length);
    if (length > MAX_RECORD) return damaged(r, "A length that cannot be");
    out->len = 0;
    while (out->len < length) {
        size_t want = length - out->len < sizeof chunk ? (size_t)(length - out->len) : sizeof chunk;
        err = input_stream_read(r->stream, chunk, want, &got);
        if (err) return err;
        if (got < want) return damaged(r, "A record that ends too early");
        strbuf_add(out, (Str){chunk, got});
    }
    return NULL;
}

static Error *next_of_protos(SnapshotReader *r, Tensor **out, bool *more) {
    Error *err = read_record(r, &r->record, more);
    if (err || !*more) return err;
    WireReader w = wire_reader(strbuf_str(&r->record));
    int i = 0;
    while (!err && wire_next(&w)) {
        if (w.field != RECORD_TENSOR || w.type != WIRE_BYTES) continue;
        if (i == r->count) return damaged(r, "An element with too many components");
        err = tensor_proto_decode(w.bytes, &out[i]);
        if (!err) err = check_type(r, i, out[i]);
        i++;
    }
    if (!err && (w.failed || i < r->count)) err = damaged(r, "An element with too few components");
    return err;
}

static bool decode_shape(Str bytes, Shape *out) {
    WireReader w = wire_reader(bytes);
    *out = SHAPE_SCALAR;
    while (wire_next(&w)) {
        if (w.field != SHAPE_DIM || w.type != WIRE_BYTES) continue;
        WireReader d = wire_reader(w.bytes);
        int64_t size = 0;
        while (wire_next(&d))
            if (d.field == DIM_SIZE && d.type == WIRE_VARINT) size = (int64_t)d.number;
        if (d.failed || size < 0 || out->rank == SHAPE_MAX_RANK) return false;
        out->dims[out->rank++] = size;
    }
    return !w.failed;
}

/* One component out of the bytes of an element; *at moves behind it. */
static Error *unpack(SnapshotReader *r, int i, Str component, Str plain, size_t *at, Tensor **out) {
    Shape shape = SHAPE_SCALAR;
    uint64_t size = 0;
    WireReader w = wire_reader(component);
    bool fits = true;
    while (wire_next(&w)) {
        if (w.field == COMPONENT_SHAPE && w.type == WIRE_BYTES) fits = fits && decode_shape(w.bytes, &shape);
        if (w.field == COMPONENT_SIZE && w.type == WIRE_VARINT) size = w.number;
    }
    if (w.failed || !fits || size > plain.len - *at) return damaged(r, "A component that cannot be");
    Str bytes = {plain.ptr + *at, (size_t)size};
    *at += (size_t)size;
    if (!dtype_is_plain(r->types[i])) {
        Error *err = tensor_proto_decode(bytes, out);
        return err ? err : check_type(r, i, *out);
    }
    Error *err = shape_check(&shape);
    if (!err && (uint64_t)shape_count(&shape) * dtype_size(r->types[i]) != size)
        err = damaged(r, "A component whose size is not that of its shape");
    if (!err) err = tensor_new(r->types[i], &shape, out);
    if (!err && size) memcpy((*out)->data, bytes.ptr, bytes.len);
    return err;
}

static Error *next_packed(SnapshotReader *r, Tensor **out, bool *more) {
    Error *err = read_record(r, &r->record, more);
    if (err || !*more) return err;
    bool second = false;
    err = read_record(r, &r->second, &second);
    size_t plain_len = 0, at = 0;
    if (!err && (!second || snappy_uncompressed_length(r->second.ptr, r->second.len, &plain_len) != SNAPPY_OK ||
                 plain_len > MAX_RECORD))
        err = damaged(r, "An element that is damaged");
    if (err) return err;
    char *plain = try_alloc(plain_len + 1);
    if (!plain) return error_new(CODE_RESOURCE_EXHAUSTED, "An element of %zu bytes is too large", plain_len);
    if (snappy_uncompress(r->second.ptr, r->second.len, plain, &plain_len) != SNAPPY_OK)
        err = damaged(r, "An element that is damaged");
    WireReader w = wire_reader(strbuf_str(&r->record));
    int i = 0;
    while (!err && wire_next(&w)) {
        if (w.field != ELEMENT_COMPONENT || w.type != WIRE_BYTES) continue;
        err = i < r->count ? unpack(r, i, w.bytes, (Str){plain, plain_len}, &at, &out[i])
                           : damaged(r, "An element with too many components");
        i++;
    }
    if (!err && (w.failed || i < r->count)) err = damaged(r, "An element with too few components");
    free(plain);
    return err;
}

Error *snapshot_reader_next(SnapshotReader *r, Tensor **out, bool *more) {
    *more = true;
    if (r->records) return next_of_records(r, out, more);
    return r->packed ? next_packed(r, out, more) : next_of_protos(r, out, more);
}
