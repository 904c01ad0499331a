/* bundle.h: V2 checkpoints: an index (PREFIX.index) and the values (PREFIX.data-00000-of-00001, ...). */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/file.h"
#include "io/tensor_slice.h"
#include "tensor/tensor.h"

typedef struct BundleEntry {
    DataType dtype;
    Shape shape;
    int64_t shard, offset, size;
    uint32_t masked_crc;
    TensorSlice *slices; /* the tensor is kept in these parts, each under its own key; else NULL */
    int slice_count;
} BundleEntry;

/* ---- Reading ---- */
/* Also V1 checkpoints (slice_file.h): `prefix` is then the file, or a pattern of files. */
typedef struct Bundle Bundle;

Error *bundle_open(const FileSystem *fs, const char *prefix,
                   Bundle **out) MUST_CHECK; /* NotFound: no such checkpoint */
void bundle_close(Bundle *b);
int64_t bundle_shard_count(const Bundle *b); /* as the index says; some may hold nothing and not exist */
int64_t bundle_count(const Bundle *b);       /* of tensors and of parts of tensors */
Str bundle_name(const Bundle *b, int64_t i); /* in order; a part's key starts with a 0 byte */
bool bundle_has(const Bundle *b, Str name);
/* NotFound when there is none of that name; DataLoss when its entry is damaged. Clear it with bundle_entry_clear. */
Error *bundle_find(const Bundle *b, Str name, BundleEntry *out) MUST_CHECK;
void bundle_entry_clear(BundleEntry *e);
/* The value, put together when it is kept in parts. */
Error *bundle_read(Bundle *b, Str name, Tensor **out) MUST_CHECK;
Error *bundle_read_slice(Bundle *b, Str name, const TensorSlice *slice, Tensor **out) MUST_CHECK;

/* ---- Writing ---- */
typedef struct BundleWriter BundleWriter;

/* Nothing is seen under the prefix before bundle_writer_finish; a crash leaves at most temporary files. */
Error *bundle_writer_open(const FileSystem *fs, const char *prefix, BundleWriter **out) MUST_CHECK;
Error *bundle_writer_add(BundleWriter *w, Str name, const Tensor *value) MUST_CHECK; /* InvalidArgument: added before */
Error *bundle_writer_add_slice(BundleWriter *w, Str name, const Shape *full, const TensorSlice *slice,
                               const Tensor *value) MUST_CHECK;
Error *bundle_writer_finish(BundleWriter *w) MUST_CHECK;
void bundle_writer_close(BundleWriter *w); /* removes what was not finished */

/* Makes one checkpoint of several: moves the data files, joins the indexes, deletes the old ones. */
Error *bundle_merge(const FileSystem *fs, const char *const *prefixes, int count, const char *destination,
                    bool allow_missing) MUST_CHECK;
