/* csv_source.c: CSVDataset: records of files of comma-separated values, each column a component. */
#include <stdlib.h>

#include "base/file.h"
#include "base/memory.h"
#include "io/csv.h"
#include "io/record.h"
#include "ops/csv_field.h"
#include "ops/dataset/dataset.h"
#include "ops/op_list.h"

const OpDef dataset_csv_ops[] = {
    {"CSVDataset",
     "filenames: string, compression_type: string, buffer_size: int64, header: bool, field_delim: string, use_quote_delim: bool, "
     "na_value: string, select_cols: int64, record_defaults: output_types -> handle: variant",
     "output_types: list({float, double, int32, int64, string}) >= 1; output_shapes: list(shape) >= 1", OP_STATEFUL},
    {"ExperimentalCSVDataset",
     "filenames: string, compression_type: string, buffer_size: int64, header: bool, field_delim: string, use_quote_delim: bool, "
     "na_value: string, select_cols: int64, record_defaults: output_types -> handle: variant",
     "output_types: list({float, double, int32, int64, string}) >= 1; output_shapes: list(shape) >= 1", OP_STATEFUL},
    {"CSVDatasetV2",
     "filenames: string, compression_type: string, buffer_size: int64, header: bool, field_delim: string, use_quote_delim: bool, "
     "na_value: string, select_cols: int64, record_defaults: output_types, exclude_cols: int64 -> handle: variant",
     "output_types: list({float, double, int32, int64, string}) >= 1; output_shapes: list(shape) >= 1", OP_STATEFUL},
    {0},
};

/* Columns in ascending order. */
typedef struct ColumnList {
    int64_t *items;
    int64_t count;
} ColumnList;

typedef struct CsvDataset {
    Dataset base;
    char **paths;
    int64_t path_count;
    Compression compression;
    bool header, quotes;
    char delimiter;
    char *na_value;
    ColumnList selected, excluded; /* one of them may have some */
    Tensor **defaults;             /* of each component: one value, or none */
} CsvDataset;

enum { CHUNK = 65536 };

typedef struct CsvIterator {
    DatasetIterator base;
    int64_t file;
    InputStream *stream; /* NULL: no file is open */
    char *chunk;         /* CHUNK bytes, of which [at, have) are to come */
    size_t at, have;
    uint64_t given; /* records of this file; for the state */
    CsvFields fields;
} CsvIterator;

/* ---- Records ---- */

/* The next byte, which stays; -1 at the end of the file. */
static Error *peek(CsvIterator *i, int *out) {
    Error *err = NULL;
    if (i->at == i->have) {
        i->at = i->have = 0;
        err = input_stream_read(i->stream, i->chunk, CHUNK, &i->have);
    }
    *out = !err && i->at < i->have ? (unsigned char)i->chunk[i->at] : -1;
    return err;
}

/* One record without the end of its line; *more is false when the file has no more. Lines within quotes belong to a field. */
static Error *read_record(CsvIterator *i, const CsvDataset *d, StrBuf *to, bool *more) {
    bool quoted = false, field_begins = true;
    int c = 0;
    Error *err = peek(i, &c);
    *more = c >= 0;
    while (!err && c >= 0) {
        i->at++;
        if (!quoted && c == '\n') return NULL;
        if (!quoted && c == '\r') {
            err = peek(i, &c);
            if (!err && c == '\n') i->at++;
            return err;
        }
        if (d->quotes && c == '"' && (quoted || field_begins)) quoted = !quoted;
        field_begins = !quoted && c == d->delimiter;
        strbuf_addc(to, (char)c);
        int before = c;
        err = peek(i, &c);
        if (before == '"' && !quoted && c == '"' && d->quotes) field_begins = true; /* an escaped quote opens again */
    }
    if (!err && quoted) err = error_invalid("Reached end of file without closing quoted field in record");
    return err;
}

static void close_file(CsvIterator *i) {
    input_stream_close(i->stream);
    i->stream = NULL;
    i->at = i->have = 0;
    i->given = 0;
}

static void stop_csv(DatasetIterator *it) {
    CsvIterator *i = (CsvIterator *)it;
    close_file(i);
    free(i->chunk);
    csv_fields_clear(&i->fields);
}

static Error *open_file(CsvIterator *i, const CsvDataset *d) {
    if (!i->chunk) i->chunk = xmalloc(CHUNK);
    Error *err = input_stream_open(&file_system_local, d->paths[i->file], d->compression, &i->stream);
    if (err || !d->header) return err;
    StrBuf header = {0};
    bool more = false;
    err = read_record(i, d, &header, &more);
    strbuf_clear(&header);
    if (!err && !more) err = error_invalid("Can't read header of file");
    return err;
}

/* ---- Fields ---- */

static Error *set_field(const CsvDataset *d, int component, Str field, Tensor **out) {
    DataType type = d->base.types[component];
    Tensor *fallback = d->defaults[component];
    if (!field.len || str_is(field, d->na_value)) {
        if (!fallback->count) return error_invalid("Field %d is required but missing in record!", component);
        *out = tensor_alias(fallback, type, &SHAPE_SCALAR);
        return NULL;
    }
    Error *err = tensor_new(type, &SHAPE_SCALAR, out);
    if (err) return err;
    if (type == DT_STRING)
        tstring_set(tensor_str(*out), field);
    else if (!csv_field_number(field, *out, 0))
        return error_invalid("Field %d in record is not a valid %s: %.*s", component, dtype_name(type), STR_ARG(field));
    return NULL;
}

static bool has_column(const ColumnList *list, int64_t column, int64_t *at) {
    while (*at < list->count && list->items[*at] < column) ++*at;
    return *at < list->count && list->items[*at] == column;
}

static Error *set_record(const CsvDataset *d, const CsvFields *fields, Tensor **out) {
    int64_t select_at = 0, exclude_at = 0, used = 0;
    int want = d->base.component_count;
    Error *err = NULL;
    for (size_t f = 0; f < fields->count && !err; f++) {
        if (d->selected.count && !has_column(&d->selected, (int64_t)f, &select_at)) continue;
        if (has_column(&d->excluded, (int64_t)f, &exclude_at)) continue;
        if (used >= want) return error_invalid("Expect %d fields but have more in record", want);
        err = set_field(d, (int)used, fields->items[f], &out[used]);
        used++;
    }
    if (!err && used != want) err = error_invalid("Expect %d fields but have %lld in record", want, (long long)used);
    return err;
}

static Error *next_csv(DatasetIterator *it, IteratorContext *c, Tensor **out, bool *end) {
    CsvIterator *i = (CsvIterator *)it;
    const CsvDataset *d = (const CsvDataset *)it->dataset;
    for (; i->file < d->path_count; i->file++) {
        bool more = false;
        StrBuf record = {0};
        Error *err = i->stream ? NULL : open_file(i, d);
        if (err) { /* the next call tries the file again */
            close_file(i);
            i->file += c->drops_errors;
            return err;
        }
        err = read_record(i, d, &record, &more);
        if (!err && more) {
            i->fields.lines_cut = true;
            err = csv_split(strbuf_str(&record), d->delimiter, d->quotes, &i->fields);
            Str nothing = STR("");
            CsvFields one = {.items = &nothing, .count = 1}; /* an empty line is one empty field */
            if (!err) err = set_record(d, i->fields.count ? &i->fields : &one, out);
        }
        strbuf_clear(&record);
        i->given++;
        if (err || more) return err;
        close_file(i);
    }
    *end = true;
    return NULL;
}

static Error *save_csv(DatasetIterator *it, IteratorState *s) {
    CsvIterator *i = (CsvIterator *)it;
    state_put_int(s, i->file);
    state_put_int(s, i->stream ? (int64_t)i->given : 0);
    return NULL;
}

static Error *restore_csv(DatasetIterator *it, IteratorContext *c, IteratorState *s) {
    CsvIterator *i = (CsvIterator *)it;
    const CsvDataset *d = (const CsvDataset *)it->dataset;
    int64_t given = 0;
    Error *err = state_get_range(s, 0, d->path_count, &i->file);
    if (!err) err = state_get_range(s, 0, INT64_MAX, &given);
    if (err || i->file == d->path_count || !given) return err;
    err = open_file(i, d);
    for (bool more = true; !err && more && i->given < (uint64_t)given; i->given++) {
        StrBuf skipped = {0};
        err = iterator_cancelled(c);
        if (!err) err = read_record(i, d, &skipped, &more);
        strbuf_clear(&skipped);
    }
    return err;
}

static void destroy_csv(Dataset *base) {
    CsvDataset *d = (CsvDataset *)base;
    for (int64_t i = 0; i < d->path_count; i++) free(d->paths[i]);
    free(d->paths);
    free(d->na_value);
    free(d->selected.items);
    free(d->excluded.items);
    for (int i = 0; d->defaults && i < base->component_count; i++) tensor_unref(d->defaults[i]);
    free(d->defaults);
}

static const DatasetKind csv_kind = {
    .name = "CSV", .size = sizeof(CsvDataset), .iterator_size = sizeof(CsvIterator), .destroy = destroy_csv,
    .next = next_csv, .save = save_csv, .restore = restore_csv, .stop = stop_csv,
};

/* ---- Making ---- */

static Error *read_columns(const Tensor *t, const char *what, ColumnList *out) {
    if (t->shape.rank != 1) return error_invalid("`%s` must be a vector.", what);
    out->items = xmalloc((size_t)(t->count + 1) * sizeof *out->items);
    out->count = t->count;
    for (int64_t i = 0; i < t->count; i++) {
        out->items[i] = tensor_i64(t)[i];
        if (i && out->items[i] <= out->items[i - 1]) return error_invalid("%s should be strictly increasing indices", what);
        if (out->items[i] < 0) return error_invalid("%s should be non-negative indices", what);
    }
    return NULL;
}

static Error *read_defaults(KernelContext *k, CsvDataset *d) {
    int n = d->base.component_count;
    d->defaults = xcalloc((size_t)n + 1, sizeof *d->defaults);
    for (int i = 0; i < n; i++) {
        Tensor *t = k->in[8 + i];
        if (t->shape.rank > 1) return error_invalid("Each record default should be at most rank 1");
        if (t->count > 1)
            return error_invalid("There should only be 1 default per field but field %d has %lld", i, (long long)t->count);
        d->defaults[i] = tensor_ref(t);
    }
    return NULL;
}

static Error *read_options(KernelContext *k, CsvDataset *d) {
    Str compression = STR(""), delimiter = STR(""), na = STR("");
    int64_t buffer = 0;
    Error *err = kernel_string(k, 1, "compression_type", &compression);
    if (!err && str_is(compression, "NONE")) err = error_invalid("Unsupported compression_type: NONE."); /* elsewhere it is a name */
    if (!err) err = compression_from_name(compression, &d->compression);
    if (!err) err = kernel_int64(k, 2, "buffer_size", &buffer);
    if (!err && buffer <= 0) err = error_invalid("buffer_size should be positive");
    if (!err) err = kernel_bool(k, 3, "header", &d->header);
    if (!err) err = kernel_string(k, 4, "field_delim", &delimiter);
    if (!err && delimiter.len != 1) err = error_invalid("field_delim should be only 1 char");
    if (!err) err = kernel_bool(k, 5, "use_quote_delim", &d->quotes);
    if (!err) err = kernel_string(k, 6, "na_value", &na);
    if (err) return err;
    d->delimiter = delimiter.ptr[0];
    d->na_value = str_dup(na);
    return NULL;
}

static Error *read_inputs(KernelContext *k, CsvDataset *d) {
    const Tensor *names = k->in[0];
    int n = d->base.component_count;
    bool has_excluded = k->input_count > 8 + n;
    if (names->shape.rank > 1) return error_invalid("`filenames` must be a scalar or a vector.");
    d->paths = xcalloc((size_t)names->count + 1, sizeof *d->paths);
    for (; d->path_count < names->count; d->path_count++)
        d->paths[d->path_count] = str_dup(tstring_str(&tensor_str(names)[d->path_count]));
    Error *err = read_defaults(k, d);
    if (!err) err = read_options(k, d);
    if (!err) err = read_columns(k->in[7], "select_cols", &d->selected);
    if (!err && has_excluded) err = read_columns(k->in[8 + n], "exclude_cols", &d->excluded);
    if (!err && d->selected.count && d->selected.count != n) err = error_invalid("select_cols should match output size");
    if (!err && d->selected.count && d->excluded.count)
        err = error_invalid("Either select_cols or exclude_cols should be empty");
    return err;
}

static Error *run_csv(KernelContext *k) {
    Dataset *d = NULL;
    Error *err = dataset_from_attr(k, &csv_kind, "output_types", NULL, 0, &d);
    if (err) return err;
    err = read_inputs(k, (CsvDataset *)d);
    if (err)
        dataset_unref(d);
    else
        kernel_set_dataset(k, 0, d);
    return err;
}

const KernelDef dataset_csv_cpu[] = {
    {"CSVDataset", .run = run_csv},
    {"ExperimentalCSVDataset", .run = run_csv},
    {"CSVDatasetV2", .run = run_csv},
    {0},
};
