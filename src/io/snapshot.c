/* snapshot.c: the metadata and the names of snapshots. */
#include "io/snapshot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "io/replace.h"
#include "proto/wire.h"

/* Fields of SnapshotMetadataRecord. */
enum {
    META_GRAPH_HASH = 1,
    META_RUN_ID = 2,
    META_CREATED = 3,
    META_VERSION = 4,
    META_DTYPE = 5,
    META_ELEMENTS = 6,
    META_FINALIZED = 1000,
};

static const char metadata_name[] = "snapshot.metadata";

void snapshot_metadata_clear(SnapshotMetadata *m) {
    free(m->graph_hash);
    free(m->run_id);
    free(m->types);
    *m = (SnapshotMetadata){0};
}

static void add_type(SnapshotMetadata *m, uint64_t number) {
    m->types = xrealloc(m->types, ((size_t)m->type_count + 1) * sizeof *m->types);
    m->types[m->type_count++] = number < DT_COUNT ? (DataType)number : DT_INVALID;
}

static void replace(char **text, Str by) {
    free(*text);
    *text = str_dup(by);
}

static void take_field(SnapshotMetadata *m, const WireReader *r) {
    if (r->type == WIRE_BYTES && r->field == META_GRAPH_HASH) replace(&m->graph_hash, r->bytes);
    if (r->type == WIRE_BYTES && r->field == META_RUN_ID) replace(&m->run_id, r->bytes);
    if (r->type == WIRE_BYTES && r->field == META_DTYPE) {
        WireReader packed = wire_reader(r->bytes);
        for (uint64_t number; packed.at < packed.end && wire_varint(&packed, &number);) add_type(m, number);
    }
    if (r->type != WIRE_VARINT) return;
    if (r->field == META_CREATED) m->created_us = (int64_t)r->number;
    if (r->field == META_VERSION) m->version = (int64_t)r->number;
    if (r->field == META_DTYPE) add_type(m, r->number);
    if (r->field == META_ELEMENTS) m->element_count = (int64_t)r->number;
    if (r->field == META_FINALIZED) m->finalized = r->number != 0;
}

Error *snapshot_metadata_read(const FileSystem *fs, const char *dir, SnapshotMetadata *out, bool *exists) {
    char *path = snapshot_path(dir, metadata_name), *bytes = NULL;
    size_t len = 0;
    Error *err = NULL;
    *out = (SnapshotMetadata){0};
    *exists = fs->exists(path);
    if (*exists) err = file_read_all(fs, path, &bytes, &len);
    WireReader r = wire_reader((Str){bytes ? bytes : "", len});
    while (!err && wire_next(&r)) take_field(out, &r);
    if (!err && r.failed) err = error_new(CODE_DATA_LOSS, "Can't parse %s as binary proto", path);
    if (!err && !out->run_id) out->run_id = xstrdup("");
    if (err) snapshot_metadata_clear(out);
    free(bytes);
    free(path);
    return err;
}

static void encode(const SnapshotMetadata *m, StrBuf *b) {
    StrBuf types = {0};
    if (m->graph_hash) wire_put_bytes(b, META_GRAPH_HASH, str_of(m->graph_hash));
    wire_put_bytes(b, META_RUN_ID, str_of(m->run_id));
    wire_put_uint(b, META_CREATED, (uint64_t)m->created_us);
    wire_put_uint(b, META_VERSION, (uint64_t)m->version);
    for (int i = 0; i < m->type_count; i++) wire_put_varint(&types, (uint64_t)m->types[i]);
    wire_put_bytes(b, META_DTYPE, strbuf_str(&types));
    if (m->element_count) wire_put_uint(b, META_ELEMENTS, (uint64_t)m->element_count);
    if (m->finalized) wire_put_uint(b, META_FINALIZED, 1);
    strbuf_clear(&types);
}

Error *snapshot_metadata_write(const FileSystem *fs, const char *dir, const SnapshotMetadata *m) {
    char *path = snapshot_path(dir, metadata_name);
    StrBuf bytes = {0};
    bool replaced = false;
    encode(m, &bytes);
    Error *err = fs->make_dir(dir);
    if (!err) err = file_replace(fs, path, strbuf_str(&bytes), &replaced);
    strbuf_clear(&bytes);
    free(path);
    return err;
}

/* ---- Names ---- */

char *snapshot_path(const char *dir, const char *name) {
    size_t len = strlen(dir);
    return len && dir[len - 1] == '/' ? xasprintf("%s%s", dir, name) : xasprintf("%s%s%s", dir, len ? "/" : "", name);
}

char *snapshot_prefixed(Str prefix, Str path) {
    if (!prefix.len) return str_dup(path);
    while (path.len && *path.ptr == '/') path = str_slice(path, 1, path.len);
    return xasprintf("%.*s%s%.*s", STR_ARG(prefix), prefix.ptr[prefix.len - 1] == '/' ? "" : "/", STR_ARG(path));
}

char *snapshot_shard_dir(const char *run_dir, int64_t shard) {
    char name[40];
    snprintf(name, sizeof name, "%08llu.shard", (unsigned long long)shard);
    return snapshot_path(run_dir, name);
}

char *snapshot_file(const char *shard_dir, int64_t number) {
    char name[40];
    snprintf(name, sizeof name, "%08llu.snapshot", (unsigned long long)number);
    return snapshot_path(shard_dir, name);
}

Error *snapshot_shards(const FileSystem *fs, const char *run_dir, PathList *out) {
    PathList names = {0};
    Error *err = fs->exists(run_dir) ? fs->list(run_dir, &names) : NULL;
    for (size_t i = 0; !err && i < names.count; i++) {
        if (!str_ends(str_of(names.items[i]), STR(".shard"))) continue;
        char *path = snapshot_path(run_dir, names.items[i]);
        path_list_add(out, path);
        free(path);
    }
    path_list_clear(&names);
    path_list_sort(out);
    return err;
}
