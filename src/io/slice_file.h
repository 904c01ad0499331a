/* slice_file.h: V1 checkpoints: one table per file, the values in it. */
#pragma once
#include <stdint.h>

#include "base/error.h"
#include "base/file.h"
#include "io/tensor_slice.h"
#include "tensor/tensor.h"

/* What the files have of one tensor. */
typedef struct SliceTensor {
    Str name;
    DataType dtype;
    Shape shape;
    TensorSlice *slices; /* the parts it is kept in; one that is the whole tensor, as a rule */
    int *files;          /* which file holds each */
    size_t count, slice_capacity, file_capacity;
} SliceTensor;

/* ---- Reading ---- */

/* All files of a pattern as one checkpoint. */
typedef struct SliceFile SliceFile;

/* NotFound: no file matches; DataLoss: one is no table; Internal: a table, but not of tensors. */
Error *slice_file_open(const FileSystem *fs, const char *pattern, SliceFile **out) MUST_CHECK;
void slice_file_close(SliceFile *f);
int64_t slice_file_shard_count(const SliceFile *f);
int64_t slice_file_count(const SliceFile *f);
const SliceTensor *slice_file_at(const SliceFile *f, int64_t i);  /* ordered by name */
const SliceTensor *slice_file_find(const SliceFile *f, Str name); /* NULL when absent */
/* A slice, put together of what the files have; the whole tensor when slice is NULL. */
Error *slice_file_read(const SliceFile *f, const SliceTensor *t, const TensorSlice *slice, Tensor **out) MUST_CHECK;

/* ---- Writing ---- */
typedef struct SliceFileWriter SliceFileWriter;

SliceFileWriter *slice_file_writer_new(void);
/* Internal: does not fit what was added of this tensor before. Unimplemented: a type that the format lacks. */
Error *slice_file_writer_add(SliceFileWriter *w, Str name, const Shape *full, const TensorSlice *slice,
                             const Tensor *value) MUST_CHECK;
/* Writes the file under a temporary name, then puts it in place at once: a crash leaves the old one or the new one. */
Error *slice_file_writer_finish(SliceFileWriter *w, const FileSystem *fs, const char *path) MUST_CHECK;
void slice_file_writer_free(SliceFileWriter *w);
