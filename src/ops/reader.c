/* reader.c: TFRecordReader, TextLineReader, FixedLengthRecordReader, WholeFileReader, IdentityReader and the ops on
 * them. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "io/record.h"
#include "ops/op_list.h"
#include "ops/reader_resource.h"

const OpDef reader_ops[] = {
    {"TFRecordReader", "-> reader_handle: Ref(string)",
     "container: string = ''; shared_name: string = ''; compression_type: string = ''", OP_STATEFUL},
    {"TFRecordReaderV2", "-> reader_handle: resource",
     "container: string = ''; shared_name: string = ''; compression_type: string = ''", OP_STATEFUL},
    {"TextLineReader", "-> reader_handle: Ref(string)",
     "skip_header_lines: int = 0; container: string = ''; shared_name: string = ''", OP_STATEFUL},
    {"TextLineReaderV2", "-> reader_handle: resource",
     "skip_header_lines: int = 0; container: string = ''; shared_name: string = ''", OP_STATEFUL},
    {"FixedLengthRecordReader", "-> reader_handle: Ref(string)",
     "header_bytes: int = 0; record_bytes: int; footer_bytes: int = 0; hop_bytes: int = 0; container: string = ''; "
     "shared_name: string = ''",
     OP_STATEFUL},
    {"FixedLengthRecordReaderV2", "-> reader_handle: resource",
     "header_bytes: int = 0; record_bytes: int; footer_bytes: int = 0; hop_bytes: int = 0; container: string = ''; "
     "shared_name: string = ''; encoding: string = ''",
     OP_STATEFUL},
    {"WholeFileReader", "-> reader_handle: Ref(string)", "container: string = ''; shared_name: string = ''",
     OP_STATEFUL},
    {"WholeFileReaderV2", "-> reader_handle: resource", "container: string = ''; shared_name: string = ''",
     OP_STATEFUL},
    {"IdentityReader", "-> reader_handle: Ref(string)", "container: string = ''; shared_name: string = ''",
     OP_STATEFUL},
    {"IdentityReaderV2", "-> reader_handle: resource", "container: string = ''; shared_name: string = ''", OP_STATEFUL},
    {"ReaderRead", "reader_handle: Ref(string), queue_handle: Ref(string) -> key: string, value: string", "", 0},
    {"ReaderReadV2", "reader_handle: resource, queue_handle: resource -> key: string, value: string", "", OP_STATEFUL},
    {"ReaderReadUpTo",
     "reader_handle: Ref(string), queue_handle: Ref(string), num_records: int64 -> keys: string, values: string", "",
     0},
    {"ReaderReadUpToV2",
     "reader_handle: resource, queue_handle: resource, num_records: int64 -> keys: string, values: string", "",
     OP_STATEFUL},
    {"ReaderNumRecordsProduced", "reader_handle: Ref(string) -> records_produced: int64", "", 0},
    {"ReaderNumRecordsProducedV2", "reader_handle: resource -> records_produced: int64", "", OP_STATEFUL},
    {"ReaderNumWorkUnitsCompleted", "reader_handle: Ref(string) -> units_completed: int64", "", 0},
    {"ReaderNumWorkUnitsCompletedV2", "reader_handle: resource -> units_completed: int64", "", OP_STATEFUL},
    {"ReaderReset", "reader_handle: Ref(string) ->", "", 0},
    {"ReaderResetV2", "reader_handle: resource ->", "", OP_STATEFUL},
    {"ReaderSerializeState", "reader_handle: Ref(string) -> state: string", "", 0},
    {"ReaderSerializeStateV2", "reader_handle: resource -> state: string", "", OP_STATEFUL},
    {"ReaderRestoreState", "reader_handle: Ref(string), state: string ->", "", 0},
    {"ReaderRestoreStateV2", "reader_handle: resource, state: string ->", "", OP_STATEFUL},
    {0},
};

/* ---- Kinds ---- */

/* What the attributes of any kind say; each kind uses its own. */
typedef struct Options {
    Compression compression;
    int64_t skip_lines;
    int64_t header, record, footer, hop; /* bytes */
} Options;

typedef struct FileState {
    Options options;
    RecordReader *records;
    InputStream *lines;
    int64_t number; /* of the line or record */
    File *file;     /* fixed length, not compressed */
    char *data;     /* fixed length, decompressed whole */
    uint64_t size, at;
} FileState;

static void close_any(void *state) {
    FileState *s = state;
    record_reader_close(s->records);
    input_stream_close(s->lines);
    if (s->file) file_system_local.close(s->file);
    free(s->data);
    *s = (FileState){.options = s->options};
}

static Error *open_records(void *state, const char *file) {
    FileState *s = state;
    return record_reader_open(&file_system_local, file, s->options.compression, &s->records);
}

static Error *next_record(void *state, const char *file, StrBuf *key, StrBuf *value, bool *produced, bool *at_end) {
    FileState *s = state;
    uint64_t at = record_reader_position(s->records);
    Str record;
    bool more;
    Error *err = record_reader_next(s->records, &record, &more);
    if (err) return err;
    *at_end = !more;
    *produced = more;
    if (!more) return NULL;
    strbuf_addf(key, "%s:%llu", file, (unsigned long long)at);
    strbuf_add(value, record);
    return NULL;
}

static Error *open_lines(void *state, const char *file) {
    FileState *s = state;
    Error *err = input_stream_open(&file_system_local, file, COMPRESSION_NONE, &s->lines);
    bool more = true;
    for (; !err && more && s->number < s->options.skip_lines; s->number++) {
        StrBuf line = {0};
        err = input_stream_line(s->lines, &line, &more);
        strbuf_clear(&line);
    }
    return err;
}

static Error *next_line(void *state, const char *file, StrBuf *key, StrBuf *value, bool *produced, bool *at_end) {
    FileState *s = state;
    bool more;
    Error *err = input_stream_line(s->lines, value, &more);
    if (err) return err;
    *produced = more;
    *at_end = !more;
    if (more) strbuf_addf(key, "%s:%lld", file, (long long)++s->number);
    return NULL;
}

/* Reads a compressed file whole: where its footer begins is only known at its end. */
static Error *read_compressed(FileState *s, const char *file) {
    InputStream *in;
    StrBuf all = {0};
    char chunk[1 << 14];
    Error *err = input_stream_open(&file_system_local, file, s->options.compression, &in);
    if (err) return err;
    for (size_t got = 1; !err && got;) {
        err = input_stream_read(in, chunk, sizeof chunk, &got);
        if (!err) strbuf_add(&all, (Str){chunk, got});
    }
    input_stream_close(in);
    s->size = all.len;
    s->data = strbuf_detach(&all);
    return err;
}

static Error *open_fixed(void *state, const char *file) {
    FileState *s = state;
    Error *err;
    if (s->options.compression != COMPRESSION_NONE) {
        err = read_compressed(s, file);
    } else {
        err = file_system_local.size(file, &s->size);
        if (!err) err = file_system_local.open(file, FILE_READ, &s->file);
    }
    uint64_t footer = (uint64_t)s->options.footer;
    s->size = s->size > footer ? s->size - footer : 0;
    s->at = (uint64_t)s->options.header;
    return err;
}

static Error *next_fixed(void *state, const char *file, StrBuf *key, StrBuf *value, bool *produced, bool *at_end) {
    FileState *s = state;
    size_t want = (size_t)s->options.record, got = want;
    *at_end = s->at > s->size || want > s->size - s->at;
    if (*at_end) return NULL;
    if (s->data) {
        strbuf_add(value, (Str){s->data + s->at, want});
    } else {
        char *record = malloc(want + 1);
        if (!record) return error_new(CODE_RESOURCE_EXHAUSTED, "A record of %zu bytes of %s is too large", want, file);
        Error *err = file_system_local.read_at(s->file, s->at, record, want, &got);
        strbuf_add(value, (Str){record, got});
        free(record);
        if (err) return err;
    }
    *produced = got == want;
    *at_end = got < want;
    strbuf_addf(key, "%s:%lld", file, (long long)s->number++);
    s->at += (uint64_t)(s->options.hop ? s->options.hop : s->options.record);
    return NULL;
}

static Error *open_nothing(void *state, const char *file) {
    (void)state;
    (void)file;
    return NULL;
}

static Error *next_whole(void *state, const char *file, StrBuf *key, StrBuf *value, bool *produced, bool *at_end) {
    char *data;
    size_t len;
    (void)state;
    Error *err = file_read_all(&file_system_local, file, &data, &len);
    if (err) return err;
    strbuf_add(key, str_of(file));
    strbuf_add(value, (Str){data, len});
    free(data);
    *produced = *at_end = true;
    return NULL;
}

static Error *next_identity(void *state, const char *file, StrBuf *key, StrBuf *value, bool *produced, bool *at_end) {
    (void)state;
    strbuf_add(key, str_of(file));
    strbuf_add(value, str_of(file));
    *produced = *at_end = true;
    return NULL;
}

static const ReaderKind records_kind = {"TFRecordReader", open_records, next_record, close_any, NULL, false};
static const ReaderKind lines_kind = {"TextLineReader", open_lines, next_line, close_any, NULL, false};
static const ReaderKind fixed_kind = {"FixedLengthRecordReader", open_fixed, next_fixed, close_any, NULL, false};
static const ReaderKind whole_kind = {"WholeFileReader", open_nothing, next_whole, close_any, NULL, true};
static const ReaderKind identity_kind = {"IdentityReader", open_nothing, next_identity, close_any, NULL, true};

/* ---- Making readers ---- */

typedef struct MakeState {
    const ReaderKind *kind;
    Options options;
} MakeState;

static Error *compression_attr(const Node *node, const char *name, Options *o) {
    Str text;
    Error *err = node_attr_string(node, name, &text);
    return err ? err : compression_from_name(text, &o->compression);
}

static Error *init_records(const Node *node, void *state) {
    MakeState *s = state;
    s->kind = &records_kind;
    return compression_attr(node, "compression_type", &s->options);
}

static Error *init_lines(const Node *node, void *state) {
    MakeState *s = state;
    s->kind = &lines_kind;
    Error *err = node_attr_int(node, "skip_header_lines", &s->options.skip_lines);
    if (!err && s->options.skip_lines < 0)
        err = error_invalid("skip_header_lines must be >= 0 not %lld", (long long)s->options.skip_lines);
    return err;
}

static Error *init_fixed(const Node *node, void *state) {
    MakeState *s = state;
    Options *o = &s->options;
    s->kind = &fixed_kind;
    Error *err = node_attr_int(node, "header_bytes", &o->header);
    if (!err) err = node_attr_int(node, "record_bytes", &o->record);
    if (!err) err = node_attr_int(node, "footer_bytes", &o->footer);
    if (!err) err = node_attr_int(node, "hop_bytes", &o->hop);
    if (!err && node_is(node, "FixedLengthRecordReaderV2")) err = compression_attr(node, "encoding", o);
    const struct {
        const char *name;
        int64_t value;
    } sizes[] = {{"header_bytes", o->header}, {"record_bytes", o->record}, {"footer_bytes", o->footer}, {"hop_bytes", o->hop}};
    for (size_t i = 0; !err && i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i].value < 0) err = error_invalid("%s must be >= 0 not %lld", sizes[i].name, (long long)sizes[i].value);
    if (!err && o->record == 0) err = error_invalid("record_bytes must be > 0");
    return err;
}

static Error *init_whole(const Node *node, void *state) {
    (void)node;
    ((MakeState *)state)->kind = &whole_kind;
    return NULL;
}

static Error *init_identity(const Node *node, void *state) {
    (void)node;
    ((MakeState *)state)->kind = &identity_kind;
    return NULL;
}

/* Messages name the reader as the client does; the resource's own name is not for people. */
static Error *create(KernelContext *k, Str name, Resource **out) {
    const MakeState *s = k->state;
    Str shared = STR("");
    Error *err = node_attr_string(k->node, "shared_name", &shared);
    if (err) return err;
    (void)name;
    FileState *files = xcalloc(1, sizeof *files);
    files->options = s->options;
    *out = (Resource *)reader_new(shared.len ? shared : k->node->name, s->kind, files);
    return NULL;
}

static Error *run_make(KernelContext *k) {
    return kernel_own_resource(k, &reader_type, false, create, NULL);
}

/* ---- Reading ---- */

static Error *find_reader(KernelContext *k, Reader **out) {
    Resource *r;
    Error *err = kernel_resource(k, 0, &reader_type, &r);
    if (!err) *out = (Reader *)r;
    return err;
}

static void take_record(Record *r, Tensor *keys, Tensor *values, int64_t i) {
    tstring_take(&tensor_str(keys)[i], r->key, r->key_len);
    tstring_take(&tensor_str(values)[i], r->value, r->value_len);
    r->key = r->value = NULL;
}

static void finish(KernelContext *k, Error *err, Record *records, int64_t count, const Shape *shape) {
    if (!err) {
        Tensor *keys = kernel_output(k, 0, shape), *values = kernel_output(k, 1, shape);
        for (int64_t i = 0; keys && values && i < count; i++) take_record(&records[i], keys, values, i);
    }
    kernel_done(k, err);
}

static void read_done(void *arg, Error *err, Record *records, int64_t count) {
    finish(arg, err, records, count, &SHAPE_SCALAR);
}

static void read_up_to_done(void *arg, Error *err, Record *records, int64_t count) {
    Shape shape = shape_vector(count);
    finish(arg, err, records, count, &shape);
}

static Error *start_read(KernelContext *k, int64_t max, ReaderDone *done) {
    Reader *reader;
    Resource *queue;
    Error *err = find_reader(k, &reader);
    if (err) return err;
    err = kernel_resource(k, 1, &queue_type, &queue);
    if (!err) {
        KernelContext *d = kernel_defer(k);
        reader_read(reader, (Queue *)queue, max, kernel_cancel(d), done, d);
        resource_unref(queue);
    }
    resource_unref((Resource *)reader);
    return err;
}

static Error *run_read(KernelContext *k) {
    return start_read(k, 1, read_done);
}

static Error *run_read_up_to(KernelContext *k) {
    int64_t max;
    Error *err = kernel_scalar_int(k, 2, &max);
    if (!err && max < 0) err = error_invalid("num_records must be positive, but was %lld", (long long)max);
    if (err || max) return err ? err : start_read(k, max, read_up_to_done);
    Shape none = shape_vector(0);
    kernel_output(k, 0, &none);
    kernel_output(k, 1, &none);
    return NULL;
}

static Error *run_produced(KernelContext *k) {
    Reader *r;
    Error *err = find_reader(k, &r);
    if (err) return err;
    kernel_set_output(k, 0, tensor_scalar_i64(reader_records_produced(r)));
    resource_unref((Resource *)r);
    return NULL;
}

static Error *run_completed(KernelContext *k) {
    Reader *r;
    Error *err = find_reader(k, &r);
    if (err) return err;
    kernel_set_output(k, 0, tensor_scalar_i64(reader_units_completed(r)));
    resource_unref((Resource *)r);
    return NULL;
}

static Error *run_reset(KernelContext *k) {
    Reader *r;
    Error *err = find_reader(k, &r);
    if (err) return err;
    err = reader_reset(r);
    resource_unref((Resource *)r);
    return err;
}

static Error *run_serialize(KernelContext *k) {
    Reader *r;
    StrBuf state = {0};
    Error *err = find_reader(k, &r);
    if (err) return err;
    err = reader_serialize(r, &state);
    if (!err) kernel_set_output(k, 0, tensor_scalar_str(strbuf_str(&state)));
    strbuf_clear(&state);
    resource_unref((Resource *)r);
    return err;
}

static Error *run_restore(KernelContext *k) {
    Reader *r;
    if (k->in[1]->shape.rank != 0) return error_invalid("Reader state must be scalar");
    Error *err = find_reader(k, &r);
    if (err) return err;
    err = reader_restore(r, tstring_str(tensor_str(k->in[1])));
    resource_unref((Resource *)r);
    return err;
}

#define MAKE(op_name, init_fn) \
    { op_name, .run = run_make, .state_size = sizeof(MakeState), .init = init_fn, .flags = KERNEL_PER_SESSION }
#define WAITS(op_name, run_fn) \
    { op_name, .run = run_fn, .flags = KERNEL_DEFERS | KERNEL_EXPENSIVE }

const KernelDef reader_cpu[] = {
    MAKE("TFRecordReader", init_records),
    MAKE("TFRecordReaderV2", init_records),
    MAKE("TextLineReader", init_lines),
    MAKE("TextLineReaderV2", init_lines),
    MAKE("FixedLengthRecordReader", init_fixed),
    MAKE("FixedLengthRecordReaderV2", init_fixed),
    MAKE("WholeFileReader", init_whole),
    MAKE("WholeFileReaderV2", init_whole),
    MAKE("IdentityReader", init_identity),
    MAKE("IdentityReaderV2", init_identity),
    WAITS("ReaderRead", run_read),
    WAITS("ReaderReadV2", run_read),
    WAITS("ReaderReadUpTo", run_read_up_to),
    WAITS("ReaderReadUpToV2", run_read_up_to),
    {"ReaderNumRecordsProduced", .run = run_produced},
    {"ReaderNumRecordsProducedV2", .run = run_produced},
    {"ReaderNumWorkUnitsCompleted", .run = run_completed},
    {"ReaderNumWorkUnitsCompletedV2", .run = run_completed},
    {"ReaderReset", .run = run_reset},
    {"ReaderResetV2", .run = run_reset},
    {"ReaderSerializeState", .run = run_serialize},
    {"ReaderSerializeStateV2", .run = run_serialize},
    {"ReaderRestoreState", .run = run_restore},
    {"ReaderRestoreStateV2", .run = run_restore},
    {0},
};
