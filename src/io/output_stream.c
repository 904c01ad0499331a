/* output_stream.c: bytes are gathered, then written plain, deflated, or as blocks of snappy.

   A block of snappy is its length, four bytes with the highest first, and the compressed bytes. TensorFlow reads blocks
   of up to 256 KiB. */
#include "io/output_stream.h"

#include <snappy-c.h>
#include <stdlib.h>
#include <zlib.h>

#include "base/memory.h"

enum { CHUNK = 1 << 18, SNAPPY_BLOCK = 1 << 17 };

struct OutputStream {
    const FileSystem *fs;
    File *file;
    Compression compression;
    z_stream z;
    StrBuf pending;
};

static bool deflates(const OutputStream *s) {
    return s->compression == COMPRESSION_ZLIB || s->compression == COMPRESSION_GZIP;
}

Error *output_stream_open(const FileSystem *fs, const char *path, Compression compression, bool append,
                          OutputStream **out) {
    File *file;
    Error *err = fs->open(path, append ? FILE_APPEND : FILE_WRITE, &file);
    if (err) return err;
    OutputStream *s = xcalloc(1, sizeof *s);
    s->fs = fs;
    s->file = file;
    s->compression = compression;
    int bits = compression == COMPRESSION_GZIP ? MAX_WBITS + 16 : MAX_WBITS;
    if (deflates(s) &&
        deflateInit2(&s->z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, bits, 9, Z_DEFAULT_STRATEGY) != Z_OK) {
        s->compression = COMPRESSION_NONE;
        output_stream_close(s);
        return error_internal("zlib could not be started for %s", path);
    }
    *out = s;
    return NULL;
}

void output_stream_close(OutputStream *s) {
    if (!s) return;
    if (deflates(s)) deflateEnd(&s->z);
    s->fs->close(s->file);
    strbuf_clear(&s->pending);
    free(s);
}

static Error *deflate_pending(OutputStream *s, int mode) {
    char *chunk = xmalloc(CHUNK);
    Error *err = NULL;
    size_t fed = 0;
    do { /* zlib counts with 32 bits */
        size_t n = s->pending.len - fed < ((size_t)1 << 30) ? s->pending.len - fed : (size_t)1 << 30;
        s->z.next_in = (Bytef *)s->pending.ptr + fed;
        s->z.avail_in = (uInt)n;
        fed += n;
        do {
            s->z.next_out = (Bytef *)chunk;
            s->z.avail_out = CHUNK;
            deflate(&s->z, fed < s->pending.len ? Z_NO_FLUSH : mode);
            err = s->fs->write(s->file, chunk, CHUNK - s->z.avail_out);
        } while (!err && s->z.avail_out == 0);
    } while (!err && fed < s->pending.len);
    free(chunk);
    return err;
}

static Error *write_blocks(OutputStream *s) {
    size_t room = snappy_max_compressed_length(SNAPPY_BLOCK);
    char *block = xmalloc(room + 4);
    Error *err = NULL;
    for (size_t at = 0; !err && at < s->pending.len; at += SNAPPY_BLOCK) {
        size_t n = s->pending.len - at < SNAPPY_BLOCK ? s->pending.len - at : SNAPPY_BLOCK, len = room;
        if (snappy_compress(s->pending.ptr + at, n, block + 4, &len) != SNAPPY_OK) {
            err = error_internal("snappy could not compress %zu bytes", n);
            break;
        }
        for (int i = 0; i < 4; i++) block[i] = (char)(len >> (24 - 8 * i));
        err = s->fs->write(s->file, block, len + 4);
    }
    free(block);
    return err;
}

static Error *write_pending(OutputStream *s, int mode) {
    Error *err;
    if (deflates(s))
        err = deflate_pending(s, mode);
    else if (s->compression == COMPRESSION_SNAPPY)
        err = write_blocks(s);
    else
        err = s->fs->write(s->file, s->pending.ptr, s->pending.len);
    strbuf_clear(&s->pending);
    return err;
}

Error *output_stream_write(OutputStream *s, Str bytes) {
    strbuf_add(&s->pending, bytes);
    return s->pending.len < CHUNK ? NULL : write_pending(s, Z_NO_FLUSH);
}

Error *output_stream_flush(OutputStream *s) {
    return write_pending(s, Z_SYNC_FLUSH);
}

Error *output_stream_finish(OutputStream *s) {
    return write_pending(s, Z_FINISH);
}

Error *output_stream_sync(OutputStream *s) {
    return s->fs->sync(s->file);
}
