/* csv.c: splits records, minding quotes. */
#include "io/csv.h"

#include <stdlib.h>

#include "base/memory.h"

static void reset(CsvFields *f) {
    for (size_t i = 0; i < f->unquoted_count; i++) free(f->unquoted[i]);
    f->count = f->unquoted_count = 0;
}

void csv_fields_clear(CsvFields *f) {
    reset(f);
    free(f->items);
    free(f->unquoted);
    *f = (CsvFields){0};
}

static void add(CsvFields *f, Str s) {
    f->items = vec_reserve(f->items, &f->capacity, f->count + 1, sizeof *f->items);
    f->items[f->count++] = s;
}

/* A field that starts with a quote at *at; leaves *at at what follows the closing quote. */
static Error *quoted(Str record, char delimiter, size_t *at, CsvFields *f) {
    StrBuf text = {0};
    size_t i = *at + 1;
    bool closed = false;
    while (i < record.len && !closed) {
        char c = record.ptr[i++];
        if (c != '"') {
            strbuf_addc(&text, c);
        } else if (i < record.len && record.ptr[i] == '"') {
            strbuf_addc(&text, '"');
            i++;
        } else {
            closed = true;
        }
    }
    if (!closed || (i < record.len && record.ptr[i] != delimiter)) {
        strbuf_clear(&text);
        return closed ? error_invalid("Quote inside a string has to be escaped by another quote")
                      : error_invalid("Quoted field has to end with quote followed by delim or end");
    }
    f->unquoted = vec_reserve(f->unquoted, &f->unquoted_capacity, f->unquoted_count + 1, sizeof *f->unquoted);
    Str field = {NULL, text.len};
    field.ptr = f->unquoted[f->unquoted_count++] = strbuf_detach(&text);
    add(f, field);
    *at = i;
    return NULL;
}

static Error *unquoted(Str record, char delimiter, bool quotes, size_t *at, CsvFields *f) {
    size_t from = *at, i = from;
    for (; i < record.len && record.ptr[i] != delimiter; i++)
        if ((quotes && record.ptr[i] == '"') || record.ptr[i] == '\n' || record.ptr[i] == '\r')
            return error_invalid("Unquoted fields cannot have quotes%s inside", f->lines_cut ? "" : "/CRLFs");
    add(f, str_slice(record, from, i));
    *at = i;
    return NULL;
}

Error *csv_split(Str record, char delimiter, bool quotes, CsvFields *f) {
    reset(f);
    size_t at = 0;
    while (at < record.len) {
        if (record.ptr[at] == '\n' || record.ptr[at] == '\r') {
            at++;
            continue;
        }
        bool starts_quoted = quotes && record.ptr[at] == '"';
        Error *err = starts_quoted ? quoted(record, delimiter, &at, f) : unquoted(record, delimiter, quotes, &at, f);
        if (err) return err;
        if (at < record.len && ++at == record.len) add(f, STR("")); /* ends with a delimiter */
    }
    return NULL;
}
