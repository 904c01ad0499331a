/* bundle_internal.h: what reading and writing checkpoints share: entries and header as protobuf, names of files. */
#pragma once
#include "io/bundle.h"

bool bundle_entry_decode(Str proto, BundleEntry *out); /* false: malformed; clears what it had */
void bundle_entry_encode(const BundleEntry *e, StrBuf *out);
bool bundle_header_decode(Str proto, int64_t *shard_count, bool *big_endian);
void bundle_header_encode(int64_t shard_count, StrBuf *out);
char *bundle_data_path(const char *prefix, int64_t shard, int64_t shard_count); /* malloced */
char *bundle_index_path(const char *prefix);
