/* file_source.c: datasets of the records of files: TFRecord, text lines, fixed length. */
#include <stdlib.h>

#include "base/file.h"
#include "base/memory.h"
#include "io/record.h"
#include "ops/dataset/dataset.h"
#include "ops/op_list.h"

const OpDef dataset_file_ops[] = {
    {"TFRecordDataset", "filenames: string, compression_type: string, buffer_size: int64 -> handle: variant",
     "metadata: string = ''", OP_STATEFUL},
    {"TFRecordDatasetV2",
     "filenames: string, compression_type: string, buffer_size: int64, byte_offsets: int64 -> handle: variant",
     "metadata: string = ''", OP_STATEFUL},
    {"TextLineDataset", "filenames: string, compression_type: string, buffer_size: int64 -> handle: variant",
     "metadata: string = ''", OP_STATEFUL},
    {"FixedLengthRecordDataset",
     "filenames: string, header_bytes: int64, record_bytes: int64, footer_bytes: int64, buffer_size: int64 -> "
     "handle: variant",
     "metadata: string = ''", OP_STATEFUL},
    {"FixedLengthRecordDatasetV2",
     "filenames: string, header_bytes: int64, record_bytes: int64, footer_bytes: int64, buffer_size: int64, "
     "compression_type: string -> handle: variant",
     "metadata: string = ''", OP_STATEFUL},
    {0},
};

typedef enum RecordForm { FORM_TFRECORD, FORM_LINE, FORM_FIXED } RecordForm;

typedef struct FileDataset {
    Dataset base;
    RecordForm form;
    char **paths;
    int64_t path_count;
    int64_t *offsets; /* (optional) where to begin in each file */
    Compression compression;
    int64_t header, record, footer; /* bytes, of fixed length */
} FileDataset;

typedef struct FileIterator {
    DatasetIterator base;
    int64_t file;
    bool open;
    RecordReader *records;
    InputStream *stream;
    uint64_t end;   /* fixed length: where the footer begins */
    uint64_t given; /* records of this file; for the state */
} FileIterator;

static void close_file(FileIterator *i) {
    record_reader_close(i->records);
    input_stream_close(i->stream);
    i->records = NULL;
    i->stream = NULL;
    i->open = false;
    i->given = 0;
}

static void stop_file(DatasetIterator *it) {
    close_file((FileIterator *)it);
}

/* The size of the content; a compressed file must be read through to know it. */
static Error *content_size(const FileDataset *d, const char *path, uint64_t *out) {
    if (d->compression == COMPRESSION_NONE) return file_system_local.size(path, out);
    InputStream *s = NULL;
    uint64_t skipped = 0;
    Error *err = input_stream_open(&file_system_local, path, d->compression, &s);
    if (!err) err = input_stream_skip(s, UINT64_MAX >> 1, &skipped);
    if (s) input_stream_close(s);
    *out = skipped;
    return err;
}

static Error *open_fixed(FileIterator *i, const FileDataset *d, const char *path) {
    uint64_t size = 0, skipped = 0, around = (uint64_t)d->header + (uint64_t)d->footer;
    Error *err = content_size(d, path, &size);
    if (err) return err;
    uint64_t body = size - around; /* of a file that is too short a large number, as in TensorFlow */
    if (body % (uint64_t)d->record)
        return error_invalid(
            "Excluding the header (%lld bytes) and footer (%lld bytes), input file \"%s\" has body length %llu bytes, "
            "which is not an "
            "exact multiple of the record length (%lld bytes).",
            (long long)d->header, (long long)d->footer, path, (unsigned long long)body,
            (long long)d->record);
    i->end = size > around ? (uint64_t)d->header + body : 0;
    err = input_stream_open(&file_system_local, path, d->compression, &i->stream);
    return err ? err : input_stream_skip(i->stream, (uint64_t)d->header, &skipped);
}

static Error *open_file(FileIterator *i) {
    const FileDataset *d = (const FileDataset *)i->base.dataset;
    const char *path = d->paths[i->file];
    Error *err = NULL;
    if (d->form == FORM_TFRECORD)
        err = record_reader_open(&file_system_local, path, d->compression, &i->records);
    else if (d->form == FORM_LINE)
        err = input_stream_open(&file_system_local, path, d->compression, &i->stream);
    else
        err = open_fixed(i, d, path);
    if (err) close_file(i);
    i->open = !err;
    /* Records cannot be found from within: those before the offset are read and dropped. */
    while (!err && d->offsets && record_reader_position(i->records) < (uint64_t)d->offsets[i->file]) {
        Str record;
        bool more = true;
        err = record_reader_next(i->records, &record, &more);
        if (!more) break;
    }
    return err;
}

static Error *read_fixed(FileIterator *i, StrBuf *out, bool *more) {
    const FileDataset *d = (const FileDataset *)i->base.dataset;
    size_t want = (size_t)d->record, got = 0;
    *more = input_stream_position(i->stream) < i->end;
    if (!*more) return NULL;
    char *bytes = try_alloc(want);
    if (!bytes) return error_new(CODE_RESOURCE_EXHAUSTED, "A record of %zu bytes is too large", want);
    Error *err = input_stream_read(i->stream, bytes, want, &got);
    if (!err && got < want) err = error_new(CODE_DATA_LOSS, "%s ends within a record", d->paths[i->file]);
    if (!err) strbuf_add(out, (Str){bytes, got});
    free(bytes);
    return err;
}

/* A compressed file that was cut short ends where it was. */
static Error *read_line(FileIterator *i, StrBuf *out, bool *more) {
    Error *err = input_stream_line(i->stream, out, more);
    if (!err || !input_stream_cut_short(i->stream)) return err;
    error_free(err);
    *more = out->len > 0;
    return NULL;
}

static Error *read_one(FileIterator *i, Tensor **out, bool *more) {
    const FileDataset *d = (const FileDataset *)i->base.dataset;
    StrBuf text = {0};
    Str record = {0};
    Error *err;
    if (d->form == FORM_TFRECORD)
        err = record_reader_next(i->records, &record, more);
    else if (d->form == FORM_LINE)
        err = read_line(i, &text, more);
    else
        err = read_fixed(i, &text, more);
    if (!err && *more) *out = tensor_scalar_str(d->form == FORM_TFRECORD ? record : strbuf_str(&text));
    strbuf_clear(&text);
    return err;
}

static Error *next_record(DatasetIterator *it, IteratorContext *c, Tensor **out, bool *end) {
    FileIterator *i = (FileIterator *)it;
    const FileDataset *d = (const FileDataset *)it->dataset;
    for (; i->file < d->path_count; i->file++) {
        bool more = false;
        Error *err = i->open ? NULL : open_file(i);
        if (!err) err = read_one(i, out, &more);
        if (err) {
            if (c->drops_errors || (i->open && d->form == FORM_TFRECORD)) {
                close_file(i);
                i->file++;
            } /* else the next call meets the same */
            return err;
        }
        i->given++;
        if (more) return NULL;
        close_file(i);
    }
    *end = true;
    return NULL;
}

static Error *save_file(DatasetIterator *it, IteratorState *s) {
    FileIterator *i = (FileIterator *)it;
    state_put_int(s, i->file);
    state_put_int(s, i->open ? (int64_t)i->given : 0);
    return NULL;
}

static Error *restore_file(DatasetIterator *it, IteratorContext *c, IteratorState *s) {
    FileIterator *i = (FileIterator *)it;
    int64_t given = 0;
    Error *err = state_get_range(s, 0, ((FileDataset *)it->dataset)->path_count, &i->file);
    if (!err) err = state_get_range(s, 0, INT64_MAX, &given);
    if (!err && i->file == ((FileDataset *)it->dataset)->path_count) return NULL;
    if (!err && given) err = open_file(i);
    for (bool more = true; !err && more && i->given < (uint64_t)given; i->given++) {
        Tensor *skipped = NULL;
        err = iterator_cancelled(c);
        if (!err) err = read_one(i, &skipped, &more);
        tensor_unref(skipped);
    }
    return err;
}

static void destroy_file(Dataset *d) {
    FileDataset *f = (FileDataset *)d;
    for (int64_t i = 0; i < f->path_count; i++) free(f->paths[i]);
    free(f->paths);
    free(f->offsets);
}

#define FILES(kind_name)                                                                                            \
    {                                                                                                               \
        .name = kind_name, .size = sizeof(FileDataset), .iterator_size = sizeof(FileIterator),                      \
        .destroy = destroy_file, .next = next_record, .save = save_file, .restore = restore_file, .stop = stop_file \
    }
static const DatasetKind tfrecord_kind = FILES("TFRecord");
static const DatasetKind line_kind = FILES("TextLine");
static const DatasetKind fixed_kind = FILES("FixedLengthRecord");

/* Input 0 has the paths, scalar or vector. */
static Error *make_files(KernelContext *k, const DatasetKind *kind, RecordForm form, FileDataset **out) {
    const Tensor *names = k->in[0];
    if (names->shape.rank > 1) return error_invalid("`filenames` must be a scalar or a vector.");
    DataType types[] = {DT_STRING};
    FileDataset *d = (FileDataset *)dataset_new(kind, types, 1, NULL, 0);
    d->form = form;
    d->paths = xcalloc((size_t)names->count + 1, sizeof *d->paths);
    for (; d->path_count < names->count; d->path_count++)
        d->paths[d->path_count] = str_dup(tstring_str(&tensor_str(names)[d->path_count]));
    *out = d;
    return NULL;
}

static Error *read_compression(KernelContext *k, int i, FileDataset *d) {
    Str name = STR("");
    Error *err = kernel_string(k, i, "compression_type", &name);
    if (err) return err;
    err = compression_from_name(name, &d->compression);
    error_free(err);
    return err ? error_invalid("Unsupported compression_type.") : NULL;
}

static Error *check_buffer(KernelContext *k, int i, const char *what_is_default) {
    int64_t bytes = 0;
    Error *err = kernel_int64(k, i, "buffer_size", &bytes);
    if (err) return err;
    return bytes < 0 ? error_invalid("`buffer_size` must be >= 0%s", what_is_default) : NULL;
}

static Error *finish(KernelContext *k, FileDataset *d, Error *err) {
    if (err)
        dataset_unref(&d->base);
    else
        kernel_set_dataset(k, 0, &d->base);
    return err;
}

static Error *run_tfrecord(KernelContext *k) {
    FileDataset *d = NULL;
    Error *err = make_files(k, &tfrecord_kind, FORM_TFRECORD, &d);
    if (err) return err;
    Str name = STR("");
    err = kernel_string(k, 1, "compression_type", &name);
    if (!err) error_free(record_compression_from_name(name, &d->compression)); /* unknown to TensorFlow: none */
    const Tensor *offsets = k->input_count > 3 ? k->in[3] : NULL;
    if (!err && offsets && offsets->count) {
        if (offsets->count != d->path_count)
            return finish(k, d, error_invalid("`byte_offsets` must be the same size as `filenames`"));
        d->offsets = xcalloc((size_t)d->path_count, sizeof *d->offsets);
        for (int64_t i = 0; i < d->path_count; i++)
            d->offsets[i] = tensor_i64(offsets)[i] > 0 ? tensor_i64(offsets)[i] : 0;
    }
    return finish(k, d, err);
}

static Error *run_lines(KernelContext *k) {
    FileDataset *d = NULL;
    Error *err = make_files(k, &line_kind, FORM_LINE, &d);
    if (err) return err;
    err = read_compression(k, 1, d);
    if (!err) err = check_buffer(k, 2, " (0 == default)");
    return finish(k, d, err);
}

static Error *run_fixed(KernelContext *k) {
    FileDataset *d = NULL;
    Error *err = make_files(k, &fixed_kind, FORM_FIXED, &d);
    if (err) return err;
    err = kernel_int64(k, 1, "header_bytes", &d->header);
    if (!err) err = kernel_int64(k, 2, "record_bytes", &d->record);
    if (!err) err = kernel_int64(k, 3, "footer_bytes", &d->footer);
    if (!err && d->header < 0) err = error_invalid("`header_bytes` must be >= 0");
    if (!err && d->record <= 0) err = error_invalid("`record_bytes` must be > 0");
    if (!err && d->footer < 0) err = error_invalid("`footer_bytes` must be >= 0");
    if (!err) err = check_buffer(k, 4, "");
    if (!err && k->input_count > 5) err = read_compression(k, 5, d);
    return finish(k, d, err);
}

const KernelDef dataset_file_cpu[] = {
    {"TFRecordDataset", .run = run_tfrecord},
    {"TFRecordDatasetV2", .run = run_tfrecord},
    {"TextLineDataset", .run = run_lines},
    {"FixedLengthRecordDataset", .run = run_fixed},
    {"FixedLengthRecordDatasetV2", .run = run_fixed},
    {0},
};
