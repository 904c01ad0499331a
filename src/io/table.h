/* table.h: the sorted table of keys and values that checkpoints keep their index in (LevelDB's format). */
#pragma once
#include <stdint.h>

#include "base/error.h"
#include "base/file.h"
#include "base/str.h"

typedef struct TableEntry {
    Str key, value;
} TableEntry;

/* A table read whole; keys increase bytewise. Entries are valid until table_close. */
typedef struct Table Table;

Error *table_open(const FileSystem *fs, const char *path, Table **out) MUST_CHECK; /* DataLoss names the path */
Error *table_parse(Str bytes, const char *path, Table **out) MUST_CHECK; /* path for messages; bytes are borrowed */
void table_close(Table *t);
int64_t table_count(const Table *t);
TableEntry table_at(const Table *t, int64_t i);
const TableEntry *table_find(const Table *t, Str key); /* NULL when absent */

/* Keys must come in increasing order. */
typedef struct TableWriter {
    StrBuf out;          /* finished blocks */
    StrBuf block, index; /* being filled */
    StrBuf restarts, index_restarts;
    StrBuf last_key;
    int64_t block_count; /* entries in the block */
} TableWriter;

void table_writer_add(TableWriter *w, Str key, Str value); /* zero-initialised is a new writer */
StrBuf table_writer_finish(TableWriter *w);                /* the bytes of the file; clears the writer */
