/* output_stream.h: OutputStream, a file written in order, compressed on the way. */
#pragma once
#include "base/error.h"
#include "base/file.h"
#include "base/str.h"
#include "io/record.h"

typedef struct OutputStream OutputStream;
Error *output_stream_open(const FileSystem *fs, const char *path, Compression compression, bool append,
                          OutputStream **out) MUST_CHECK;
Error *output_stream_write(OutputStream *s, Str bytes) MUST_CHECK;
Error *output_stream_flush(OutputStream *s) MUST_CHECK;  /* what was written so far, to the file */
Error *output_stream_finish(OutputStream *s) MUST_CHECK; /* the end of what is compressed; nothing can follow */
Error *output_stream_sync(OutputStream *s) MUST_CHECK;   /* what was flushed, to the disk */
void output_stream_close(OutputStream *s);               /* NULL is allowed */
