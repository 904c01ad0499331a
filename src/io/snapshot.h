/* snapshot.h: the files of saved datasets and of snapshots, as TensorFlow writes and reads them.

   A folder has snapshot.metadata, which names a run; the folder of that run has one folder for each shard, NNNNNNNN.shard,
   and those the elements, in files NNNNNNNN.snapshot, one after the other. A run counts once the metadata says that it is
   finalized: that is written, by a rename, after the elements are on the disk. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/file.h"
#include "base/str.h"
#include "tensor/tensor.h"

enum { SNAPSHOT_VERSION_CUSTOM = 1, SNAPSHOT_VERSION_RECORDS = 2 };

/* ---- Metadata ---- */

typedef struct SnapshotMetadata {
    char *graph_hash; /* (optional) */
    char *run_id;
    int64_t created_us, version, element_count;
    DataType *types;
    int type_count;
    bool finalized;
} SnapshotMetadata;

void snapshot_metadata_clear(SnapshotMetadata *m);
/* *exists is false when the folder has none. */
Error *snapshot_metadata_read(const FileSystem *fs, const char *dir, SnapshotMetadata *out, bool *exists) MUST_CHECK;
Error *snapshot_metadata_write(const FileSystem *fs, const char *dir, const SnapshotMetadata *m) MUST_CHECK;

/* ---- Names, malloced ---- */

char *snapshot_path(const char *dir, const char *name);             /* one below the other */
char *snapshot_prefixed(Str prefix, Str path);                      /* the same; just the path when there is no prefix */
char *snapshot_shard_dir(const char *run_dir, int64_t shard);       /* RUN/00000003.shard */
char *snapshot_file(const char *shard_dir, int64_t number);         /* SHARD/00000000.snapshot */
Error *snapshot_shards(const FileSystem *fs, const char *run_dir, PathList *out) MUST_CHECK; /* their folders, sorted */

/* ---- Elements ---- */

typedef struct SnapshotWriter SnapshotWriter;
/* compression: "", "GZIP", "SNAPPY" or, of records, "ZLIB". The folder must exist; a file of that name is written anew. */
Error *snapshot_writer_open(const FileSystem *fs, const char *path, Str compression, int64_t version,
                            SnapshotWriter **out) MUST_CHECK;
Error *snapshot_writer_add(SnapshotWriter *w, Tensor *const *element, int count) MUST_CHECK;
Error *snapshot_writer_flush(SnapshotWriter *w) MUST_CHECK;  /* what was added so far, to the file */
Error *snapshot_writer_finish(SnapshotWriter *w) MUST_CHECK; /* to the disk */
void snapshot_writer_close(SnapshotWriter *w);               /* NULL is allowed */

typedef struct SnapshotReader SnapshotReader;
/* types must live as long as the reader. Version 0 is read, too. */
Error *snapshot_reader_open(const FileSystem *fs, const char *path, Str compression, int64_t version,
                            const DataType *types, int count, SnapshotReader **out) MUST_CHECK;
/* Fills out[count], cleared before; *more is false at the end of the file. */
Error *snapshot_reader_next(SnapshotReader *r, Tensor **out, bool *more) MUST_CHECK;
void snapshot_reader_close(SnapshotReader *r); /* NULL is allowed */
