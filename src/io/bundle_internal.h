/* bundle_internal.h: what reading, writing and merging checkpoints share: entries and header as protobuf, names of
 * files, the index being made. */
#pragma once
#include "base/hashmap.h"
#include "io/bundle.h"
#include "io/table.h"

bool bundle_entry_decode(Str proto, BundleEntry *out); /* false: malformed; clears what it had */
void bundle_entry_encode(const BundleEntry *e, StrBuf *out);
void bundle_entry_add_slice(BundleEntry *e, const TensorSlice *slice);
bool bundle_header_decode(Str proto, int64_t *shard_count, bool *big_endian);
void bundle_header_encode(int64_t shard_count, StrBuf *out);
char *bundle_data_path(const char *prefix, int64_t shard, int64_t shard_count); /* malloced */
char *bundle_index_path(const char *prefix);

/* The index of a checkpoint and its number of shards; NotFound when there is none. */
Error *bundle_index_open(const FileSystem *fs, const char *prefix, Table **index, int64_t *shard_count) MUST_CHECK;

/* The entries of an index by key, in no order. */
typedef struct EntrySet {
    StrMap by_key; /* to IndexEntry; keys are the entries' own */
} EntrySet;

typedef struct IndexEntry {
    char *key;
    size_t key_len;
    BundleEntry entry;
} IndexEntry;

void entry_set_clear(EntrySet *s);
IndexEntry *entry_set_add(EntrySet *s, Str key, const BundleEntry *entry); /* takes what the entry owns */

/* ---- Replacing a checkpoint at once ---- */

/* A checkpoint's data files are named after their number. So that the old checkpoint of the same prefix stays whole
 * until the new index is in place, the new files must have other names: when the old one has as many shards, the new
 * one says it has one more, which holds nothing. */
typedef struct BundleInstall {
    const FileSystem *fs;
    const char *prefix;
    int64_t old_count;   /* shards of the checkpoint that is there; 0: none */
    int64_t shard_count; /* shards the new one says it has */
} BundleInstall;

Error *bundle_install_begin(BundleInstall *i, const FileSystem *fs, const char *prefix, int64_t shard_count) MUST_CHECK;
/* Writes the index, which makes the checkpoint exist, then removes the data of the old one. The new data files are in
 * place and synced. *installed: the index is there, even when an error follows (the disk did not confirm it). */
Error *bundle_install_index(const BundleInstall *i, const EntrySet *s, bool *installed) MUST_CHECK;

/* Makes a missing folder that lasts, but not those above it: a wrong path is reported rather than made. */
Error *bundle_make_dir(const FileSystem *fs, const char *dir) MUST_CHECK;
