/* sql_source.c: SqlDataset: the rows of a query to a database file of SQLite. */
#include <sqlite3.h>
#include <stdlib.h>

#include "base/memory.h"
#include "ops/dataset/dataset.h"
#include "ops/op_list.h"

const OpDef dataset_sql_ops[] = {
    {"SqlDataset", "driver_name: string, data_source_name: string, query: string -> handle: variant",
     "output_types: list(type) >= 1; output_shapes: list(shape) >= 1", OP_STATEFUL},
    {"ExperimentalSqlDataset", "driver_name: string, data_source_name: string, query: string -> handle: variant",
     "output_types: list(type) >= 1; output_shapes: list(shape) >= 1", OP_STATEFUL},
    {0},
};

typedef struct SqlDataset {
    Dataset base;
    char *file, *query;
    size_t query_len;
} SqlDataset;

typedef struct SqlIterator {
    DatasetIterator base;
    sqlite3 *db; /* NULL until the first element is asked for */
    sqlite3_stmt *statement;
    int64_t rows; /* given so far */
    bool ended;
} SqlIterator;

static void destroy_sql(Dataset *d) {
    free(((SqlDataset *)d)->file);
    free(((SqlDataset *)d)->query);
}

static void close_db(SqlIterator *s) {
    sqlite3_finalize(s->statement);
    sqlite3_close(s->db);
    s->statement = NULL;
    s->db = NULL;
}

static void stop_sql(DatasetIterator *it) {
    close_db((SqlIterator *)it);
}

static ErrorCode code_of(int status) {
    switch (status & 0xff) {
        case SQLITE_ABORT:
            return CODE_ABORTED;
        case SQLITE_READONLY:
        case SQLITE_MISMATCH:
            return CODE_FAILED_PRECONDITION;
        case SQLITE_MISUSE:
        case SQLITE_INTERNAL:
            return CODE_INTERNAL;
        case SQLITE_RANGE:
            return CODE_OUT_OF_RANGE;
        case SQLITE_CANTOPEN:
        case SQLITE_CONSTRAINT:
        case SQLITE_NOTFOUND:
        case SQLITE_NOTADB:
            return CODE_INVALID_ARGUMENT;
        case SQLITE_CORRUPT:
            return CODE_DATA_LOSS;
        case SQLITE_AUTH:
        case SQLITE_PERM:
            return CODE_PERMISSION_DENIED;
        case SQLITE_FULL:
        case SQLITE_TOOBIG:
        case SQLITE_NOLFS:
            return CODE_RESOURCE_EXHAUSTED;
        case SQLITE_BUSY:
        case SQLITE_LOCKED:
        case SQLITE_PROTOCOL:
        case SQLITE_NOMEM:
            return CODE_UNAVAILABLE;
        case SQLITE_INTERRUPT:
            return CODE_CANCELLED;
        default:
            return CODE_UNKNOWN;
    }
}

/* With the words of SQLite. */
static Error *query_error(SqlIterator *s, int status, const char *what) {
    const SqlDataset *d = (const SqlDataset *)s->base.dataset;
    Error *err = error_new(code_of(status), "%s failed: [%d] %s: %s", what, status, sqlite3_errmsg(s->db), d->query);
    close_db(s);
    return err;
}

/* A file that is not there is made, as TensorFlow does: a query may do more than ask. */
static Error *open_db(SqlIterator *s) {
    const SqlDataset *d = (const SqlDataset *)s->base.dataset;
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_URI;
    int status = sqlite3_open_v2(d->file, &s->db, flags, NULL);
    if (status != SQLITE_OK) {
        close_db(s);
        return error_new(code_of(status), "Sqlite::Open(%s) failed: %s", d->file, sqlite3_errstr(status));
    }
    status =
        sqlite3_exec(s->db, "PRAGMA schema_version", NULL, NULL, NULL); /* looks into the file, which a query may not */
    if (status == SQLITE_OK) status = sqlite3_prepare_v2(s->db, d->query, (int)d->query_len, &s->statement, NULL);
    if (status != SQLITE_OK) return query_error(s, status, "Prepare()");
    int columns = sqlite3_column_count(s->statement);
    if (columns == d->base.component_count) return NULL;
    close_db(s);
    return error_invalid("The number of columns in query (%d) must match the number of elements in output_types (%d).",
                         columns, d->base.component_count);
}

static Str text_of(sqlite3_stmt *st, int column) {
    const char *text = sqlite3_column_blob(st, column); /* before the length: it may convert */
    size_t len = (size_t)sqlite3_column_bytes(st, column);
    return text ? (Str){text, len} : STR("");
}

static Error *column_value(SqlIterator *s, int column, Tensor **out) {
    DataType type = s->base.dataset->types[column];
    sqlite3_stmt *st = s->statement;
    Error *err = tensor_new(type, &SHAPE_SCALAR, out);
    if (err) return err;
    void *to = (*out)->data;
    switch (type) {
        case DT_STRING:
            tstring_set(tensor_str(*out), text_of(st, column));
            break;
        case DT_INT8:
            *(int8_t *)to = (int8_t)sqlite3_column_int64(st, column);
            break;
        case DT_INT16:
            *(int16_t *)to = (int16_t)sqlite3_column_int64(st, column);
            break;
        case DT_INT32:
            *(int32_t *)to = (int32_t)sqlite3_column_int64(st, column);
            break;
        case DT_INT64:
            *(int64_t *)to = sqlite3_column_int64(st, column);
            break;
        case DT_UINT8:
            *(uint8_t *)to = (uint8_t)sqlite3_column_int64(st, column);
            break;
        case DT_UINT16:
            *(uint16_t *)to = (uint16_t)sqlite3_column_int64(st, column);
            break;
        case DT_BOOL:
            *(bool *)to = sqlite3_column_int64(st, column) != 0;
            break;
        case DT_FLOAT:
            *(float *)to = (float)sqlite3_column_double(st, column);
            break;
        case DT_DOUBLE:
            *(double *)to = sqlite3_column_double(st, column);
            break;
        default:
            return error_invalid("Each element of `output_types_` must be a type that SQLite has, not %s",
                                 dtype_name(type));
    }
    return NULL;
}

/* Steps to the next row; *end when there is none. */
static Error *step(SqlIterator *s, bool *end) {
    int status = sqlite3_step(s->statement);
    *end = status == SQLITE_DONE;
    if (status == SQLITE_ROW || *end) return NULL;
    return query_error(s, status, "Step()");
}

static Error *next_row(DatasetIterator *it, IteratorContext *c, Tensor **out, bool *end) {
    SqlIterator *s = (SqlIterator *)it;
    (void)c;
    *end = s->ended;
    if (*end) return NULL;
    Error *err = s->db ? NULL : open_db(s);
    if (!err) err = step(s, end);
    if (err) return err;
    if (*end) {
        s->ended = true;
        close_db(s);
        return NULL;
    }
    s->rows++;
    for (int i = 0; !err && i < it->dataset->component_count; i++) err = column_value(s, i, &out[i]);
    return err;
}

static Error *save_sql(DatasetIterator *it, IteratorState *s) {
    state_put_int(s, ((SqlIterator *)it)->ended);
    state_put_int(s, ((SqlIterator *)it)->rows);
    return NULL;
}

static Error *restore_sql(DatasetIterator *it, IteratorContext *c, IteratorState *s) {
    SqlIterator *i = (SqlIterator *)it;
    int64_t ended = 0;
    Error *err = state_get_range(s, 0, 1, &ended);
    if (!err) err = state_get_range(s, 0, INT64_MAX, &i->rows);
    i->ended = ended;
    if (!err && !ended && i->rows) err = open_db(i);
    bool end = false;
    for (int64_t row = 0; !err && !ended && !end && row < i->rows; row++) {
        err = iterator_cancelled(c);
        if (!err) err = step(i, &end);
    }
    return err;
}

static const DatasetKind sql_kind = {.name = "Sql",
                                     .size = sizeof(SqlDataset),
                                     .iterator_size = sizeof(SqlIterator),
                                     .destroy = destroy_sql,
                                     .next = next_row,
                                     .save = save_sql,
                                     .restore = restore_sql,
                                     .stop = stop_sql};

static bool has_column_type(DataType type) {
    static const DataType types[] = {DT_STRING, DT_INT8,   DT_INT16, DT_INT32, DT_INT64,
                                     DT_UINT8,  DT_UINT16, DT_BOOL,  DT_FLOAT, DT_DOUBLE};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i] == type) return true;
    return false;
}

static Error *run_sql(KernelContext *k) {
    Str driver = STR(""), file = STR(""), query = STR("");
    Dataset *d = NULL;
    Error *err = kernel_string(k, 0, "driver_name", &driver);
    if (!err) err = kernel_string(k, 1, "data_source_name", &file);
    if (!err) err = kernel_string(k, 2, "query", &query);
    if (!err && !str_is(driver, "sqlite"))
        err = error_invalid("tensorflow.contrib.data.SqlDataset does not support driver_name: `%.*s`", STR_ARG(driver));
    if (!err && query.len > INT32_MAX) err = error_invalid("The query is too long");
    if (!err) err = dataset_from_attr(k, &sql_kind, "output_types", NULL, 0, &d);
    for (int i = 0; !err && i < d->component_count; i++)
        if (!has_column_type(d->types[i]))
            err = error_invalid(
                "Each element of `output_types_` must be one of: DT_STRING, DT_INT8, DT_INT16, DT_INT32, DT_INT64, "
                "DT_UINT8, DT_UINT16, DT_BOOL, DT_DOUBLE ");
    if (err) {
        dataset_unref(d);
        return err;
    }
    ((SqlDataset *)d)->file = str_dup(file);
    ((SqlDataset *)d)->query = str_dup(query);
    ((SqlDataset *)d)->query_len = query.len;
    kernel_set_dataset(k, 0, d);
    return NULL;
}

const KernelDef dataset_sql_cpu[] = {
    {"SqlDataset", .run = run_sql},
    {"ExperimentalSqlDataset", .run = run_sql},
    {0},
};
