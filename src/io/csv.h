/* csv.h: one record of comma-separated values (RFC 4180) into fields. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/str.h"

/* The fields of a record; used again and again. */
typedef struct CsvFields {
    Str *items;
    size_t count, capacity;
    char **unquoted; /* text of fields that had quotes */
    size_t unquoted_count, unquoted_capacity;
    bool lines_cut; /* set by the caller: line ends that are in no quotes were cut off before, and errors do not speak of them */
} CsvFields;

/* Fields point into the record or into `fields`, until the next call. */
Error *csv_split(Str record, char delimiter, bool quotes, CsvFields *fields) MUST_CHECK;
void csv_fields_clear(CsvFields *fields);
