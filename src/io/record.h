/* record.h: TFRecord files: length, checksum, bytes, checksum; plain or compressed as a whole. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/file.h"
#include "base/str.h"

/* A file read from the start in order, decompressed on the way. */
typedef enum Compression { COMPRESSION_NONE, COMPRESSION_ZLIB, COMPRESSION_GZIP, COMPRESSION_SNAPPY } Compression;
Error *compression_from_name(Str name, Compression *out) MUST_CHECK; /* "", "ZLIB", "GZIP" */
Error *record_compression_from_name(Str name, Compression *out) MUST_CHECK; /* the same, and "SNAPPY": of records */

const char *compression_name(Compression c);
/* What a file of records seems to be compressed with, by its first bytes. */
Error *compression_guess(const FileSystem *fs, const char *path, Compression *out) MUST_CHECK;

typedef struct InputStream InputStream;
Error *input_stream_open(const FileSystem *fs, const char *path, Compression compression, InputStream **out) MUST_CHECK;
void input_stream_close(InputStream *s);
/* Reads up to size bytes; *got < size only at the end. */
Error *input_stream_read(InputStream *s, void *to, size_t size, size_t *got) MUST_CHECK;
Error *input_stream_skip(InputStream *s, uint64_t size, uint64_t *skipped) MUST_CHECK;
/* One line without its end; false in *more when nothing is left. A '\r' before the '\n' is dropped. */
Error *input_stream_line(InputStream *s, StrBuf *line, bool *more) MUST_CHECK;
uint64_t input_stream_position(const InputStream *s); /* in the decompressed bytes */
bool input_stream_cut_short(const InputStream *s); /* it failed since the file ends within compressed data (ZLIB, GZIP) */

typedef struct RecordReader RecordReader;
Error *record_reader_open(const FileSystem *fs, const char *path, Compression compression,
                          RecordReader **out) MUST_CHECK;
void record_reader_close(RecordReader *r);
/* The next record, valid until the next call; *more is false at the end of the file. DataLoss names file and offset, and comes again. */
Error *record_reader_next(RecordReader *r, Str *record, bool *more) MUST_CHECK;
bool record_reader_cut_short(const RecordReader *r); /* there was no more, but the beginning of a record: TensorFlow takes it for the end */
uint64_t record_reader_position(const RecordReader *r); /* of the next record, in the decompressed bytes */

typedef struct RecordWriter RecordWriter;
Error *record_writer_open(const FileSystem *fs, const char *path, Compression compression, bool append,
                          RecordWriter **out) MUST_CHECK;
Error *record_writer_add(RecordWriter *w, Str record) MUST_CHECK;
Error *record_writer_flush(RecordWriter *w) MUST_CHECK; /* what was added so far, to the file */
Error *record_writer_finish(RecordWriter *w) MUST_CHECK;
Error *record_writer_sync(RecordWriter *w) MUST_CHECK; /* what was flushed or finished, to the disk */
void record_writer_close(RecordWriter *w); /* NULL is allowed */

/* A whole string at once; bytes that end before their stream does give what they hold. *out is malloced. */
Error *decompress(Str bytes, Compression compression, char **out, size_t *len) MUST_CHECK;
