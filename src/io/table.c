/* table.c: reads and writes sorted tables.
 *
 * file:   block* metaindex-block index-block footer
 * block:  entry* restart-offset* restart-count, then 1 byte compression (0 none, 1 snappy), masked CRC of all before
 * entry:  shared, unshared, value length (varints), key without the shared prefix, value
 * index:  a block whose values are (offset, size) of blocks, keys not less than their last key
 * footer: metaindex handle, index handle, zeros up to 40 bytes, magic */
#include "io/table.h"

#include <snappy-c.h>
#include <stdlib.h>

#include "base/crc32c.h"
#include "base/memory.h"
#include "proto/wire.h"

enum { FOOTER_SIZE = 48, TRAILER_SIZE = 5, BLOCK_SIZE = 262144, RESTART_INTERVAL = 16 };
static const uint64_t MAGIC = 0xdb4775248b80fb57u;

/* ---- Reading ---- */

struct Table {
    char *owned; /* the file, when the table read it */
    TableEntry *entries;
    size_t count, capacity;
    char **pieces; /* keys put together, uncompressed blocks */
    size_t piece_count, piece_capacity;
};

static char *keep_piece(Table *t, char *malloced) {
    t->pieces = vec_reserve(t->pieces, &t->piece_capacity, t->piece_count + 1, sizeof *t->pieces);
    return t->pieces[t->piece_count++] = malloced;
}

void table_close(Table *t) {
    if (!t) return;
    for (size_t i = 0; i < t->piece_count; i++) free(t->pieces[i]);
    free(t->pieces);
    free(t->entries);
    free(t->owned);
    free(t);
}

static Error *damaged(const char *path, const char *what) {
    return error_new(CODE_DATA_LOSS, "%s is not a readable table: %s", path, what);
}

static uint32_t load32(const char *p) {
    uint32_t v;
    memcpy(&v, p, 4);
    return v;
}

/* The content of the block at a handle, uncompressed. */
static Error *read_block(Table *t, Str file, uint64_t offset, uint64_t size, const char *path, Str *out) {
    if (offset > file.len || size > file.len - offset || file.len - offset - size < TRAILER_SIZE)
        return damaged(path, "a block lies outside the file");
    const char *at = file.ptr + offset;
    if (crc32c_unmask(load32(at + size + 1)) != crc32c(0, at, size + 1))
        return damaged(path, "block checksum mismatch");
    char compression = at[size];
    *out = (Str){at, size};
    if (compression == 0) return NULL;
    if (compression != 1) return damaged(path, "a block is compressed in an unknown way");
    size_t length;
    if (snappy_uncompressed_length(at, size, &length) != SNAPPY_OK || length > (size_t)1 << 30)
        return damaged(path, "a compressed block is damaged");
    char *plain = malloc(length + 1);
    if (!plain) return error_new(CODE_RESOURCE_EXHAUSTED, "%s: not enough memory for a block", path);
    if (snappy_uncompress(at, size, plain, &length) != SNAPPY_OK) {
        free(plain);
        return damaged(path, "a compressed block is damaged");
    }
    *out = (Str){keep_piece(t, plain), length};
    return NULL;
}

typedef Error *EntryFn(Table *t, void *arg, Str key, Str value);

/* Calls fn with each entry of a block. Keys are whole and last as long as the table. */
static Error *each_entry(Table *t, Str block, const char *path, EntryFn *fn, void *arg) {
    if (block.len < 4) return damaged(path, "a block is too short");
    uint32_t restarts = load32(block.ptr + block.len - 4);
    if (restarts > (block.len - 4) / 4) return damaged(path, "a block has too many restarts");
    WireReader r = wire_reader((Str){block.ptr, block.len - 4 - 4 * (size_t)restarts});
    Str last = STR("");
    while (r.at < r.end) {
        uint64_t shared, unshared, value_len;
        if (!wire_varint(&r, &shared) || !wire_varint(&r, &unshared) || !wire_varint(&r, &value_len))
            return damaged(path, "a block ends inside an entry");
        uint64_t left = (uint64_t)(r.end - r.at);
        if (shared > last.len || unshared > left || value_len > left - unshared)
            return damaged(path, "an entry is longer than its block");
        Str key = {(const char *)r.at, (size_t)unshared};
        if (shared) {
            char *whole = keep_piece(t, xmalloc((size_t)(shared + unshared) + 1));
            memcpy(whole, last.ptr, (size_t)shared);
            memcpy(whole + shared, r.at, (size_t)unshared);
            key = (Str){whole, (size_t)(shared + unshared)};
        }
        Error *err = fn(t, arg, key, (Str){(const char *)r.at + unshared, (size_t)value_len});
        if (err) return err;
        r.at += unshared + value_len;
        last = key;
    }
    return NULL;
}

typedef struct Place {
    Str file;
    const char *path;
} Place;

static Error *add_entry(Table *t, void *arg, Str key, Str value) {
    Place *p = arg;
    if (t->count && str_compare(t->entries[t->count - 1].key, key) >= 0)
        return damaged(p->path, "keys are out of order");
    t->entries = vec_reserve(t->entries, &t->capacity, t->count + 1, sizeof *t->entries);
    t->entries[t->count++] = (TableEntry){key, value};
    return NULL;
}

static Error *add_block(Table *t, void *arg, Str key, Str value) {
    Place *p = arg;
    WireReader r = wire_reader(value);
    uint64_t offset, size;
    (void)key;
    if (!wire_varint(&r, &offset) || !wire_varint(&r, &size)) return damaged(p->path, "a block handle is damaged");
    Str block;
    Error *err = read_block(t, p->file, offset, size, p->path, &block);
    return err ? err : each_entry(t, block, p->path, add_entry, arg);
}

Error *table_parse(Str bytes, const char *path, Table **out) {
    if (bytes.len < FOOTER_SIZE) return damaged(path, "file is too short to be an sstable");
    const char *footer = bytes.ptr + bytes.len - FOOTER_SIZE;
    uint64_t magic;
    memcpy(&magic, footer + 40, 8);
    if (magic != MAGIC) return damaged(path, "not an sstable (bad magic number)");
    WireReader r = wire_reader((Str){footer, 40});
    uint64_t skip, offset, size;
    if (!wire_varint(&r, &skip) || !wire_varint(&r, &skip) || !wire_varint(&r, &offset) || !wire_varint(&r, &size))
        return damaged(path, "the footer is damaged");
    Table *t = xcalloc(1, sizeof *t);
    Place place = {bytes, path};
    Str index;
    Error *err = read_block(t, bytes, offset, size, path, &index);
    if (!err) err = each_entry(t, index, path, add_block, &place);
    if (err)
        table_close(t);
    else
        *out = t;
    return err;
}

Error *table_open(const FileSystem *fs, const char *path, Table **out) {
    char *data;
    size_t len;
    Error *err = file_read_all(fs, path, &data, &len);
    if (err) return err;
    err = table_parse((Str){data, len}, path, out);
    if (err)
        free(data);
    else
        (*out)->owned = data;
    return err;
}

int64_t table_count(const Table *t) {
    return (int64_t)t->count;
}

TableEntry table_at(const Table *t, int64_t i) {
    return t->entries[i];
}

const TableEntry *table_find(const Table *t, Str key) {
    size_t low = 0, high = t->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = str_compare(t->entries[middle].key, key);
        if (order == 0) return &t->entries[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* ---- Writing ---- */

static void add32(StrBuf *b, uint32_t v) {
    strbuf_add(b, (Str){(const char *)&v, 4});
}

static void add_to_block(StrBuf *block, StrBuf *restarts, bool restart, Str last, Str key, Str value) {
    size_t shared = 0;
    if (restart)
        add32(restarts, (uint32_t)block->len);
    else
        while (shared < last.len && shared < key.len && last.ptr[shared] == key.ptr[shared]) shared++;
    wire_put_varint(block, shared);
    wire_put_varint(block, key.len - shared);
    wire_put_varint(block, value.len);
    strbuf_add(block, (Str){key.ptr + shared, key.len - shared});
    strbuf_add(block, value);
}

/* Ends a block, puts it into the file and its handle into `handle`. */
static void put_block(StrBuf *out, StrBuf *block, StrBuf *restarts, StrBuf *handle) {
    if (!restarts->len) add32(restarts, 0);
    uint32_t count = (uint32_t)(restarts->len / 4);
    strbuf_add(block, strbuf_str(restarts));
    add32(block, count);
    wire_put_varint(handle, out->len);
    wire_put_varint(handle, block->len);
    strbuf_addc(block, 0);
    strbuf_add(out, strbuf_str(block));
    add32(out, crc32c_mask(crc32c(0, block->ptr, block->len)));
    strbuf_clear(block);
    strbuf_clear(restarts);
}

static void end_block(TableWriter *w) {
    StrBuf handle = {0};
    put_block(&w->out, &w->block, &w->restarts, &handle);
    add_to_block(&w->index, &w->index_restarts, true, STR(""), strbuf_str(&w->last_key), strbuf_str(&handle));
    strbuf_clear(&handle);
    w->block_count = 0;
}

void table_writer_add(TableWriter *w, Str key, Str value) {
    bool restart = w->block_count % RESTART_INTERVAL == 0;
    add_to_block(&w->block, &w->restarts, restart, strbuf_str(&w->last_key), key, value);
    w->block_count++;
    strbuf_clear(&w->last_key);
    strbuf_add(&w->last_key, key);
    if (w->block.len >= BLOCK_SIZE) end_block(w);
}

StrBuf table_writer_finish(TableWriter *w) {
    if (w->block_count) end_block(w);
    StrBuf none = {0}, no_restarts = {0}, footer = {0};
    put_block(&w->out, &none, &no_restarts, &footer);
    put_block(&w->out, &w->index, &w->index_restarts, &footer);
    while (footer.len < 40) strbuf_addc(&footer, 0);
    strbuf_add(&footer, (Str){(const char *)&MAGIC, 8});
    strbuf_add(&w->out, strbuf_str(&footer));
    strbuf_clear(&footer);
    strbuf_clear(&w->last_key);
    StrBuf out = w->out;
    *w = (TableWriter){0};
    return out;
}
