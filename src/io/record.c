/* record.c: streams of bytes from files, and the records in them. */
#include "io/record.h"

#include <snappy-c.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/crc32c.h"
#include "base/memory.h"
#include "io/output_stream.h"

enum { CHUNK = 1 << 18, MAX_BLOCK = 1 << 30 };

Error *compression_from_name(Str name, Compression *out) {
    if (!name.len || str_is(name, "NONE"))
        *out = COMPRESSION_NONE;
    else if (str_is(name, "ZLIB"))
        *out = COMPRESSION_ZLIB;
    else if (str_is(name, "GZIP"))
        *out = COMPRESSION_GZIP;
    else
        return error_invalid("Unsupported compression_type: %.*s.", STR_ARG(name));
    return NULL;
}

Error *record_compression_from_name(Str name, Compression *out) {
    if (!str_is(name, "SNAPPY")) return compression_from_name(name, out);
    *out = COMPRESSION_SNAPPY;
    return NULL;
}

const char *compression_name(Compression c) {
    static const char *const names[] = {"none", "zlib", "gzip", "snappy"};
    return names[c];
}

Error *compression_guess(const FileSystem *fs, const char *path, Compression *out) {
    unsigned char head[12] = {0};
    size_t got = 0;
    File *f = NULL;
    Error *err = fs->open(path, FILE_READ, &f);
    if (err) return err;
    err = fs->read_at(f, 0, head, sizeof head, &got);
    fs->close(f);
    if (err) return err;
    uint32_t crc;
    memcpy(&crc, head + 8, 4);
    bool plain = got == sizeof head && crc32c_unmask(crc) == crc32c(0, head, 8);
    *out = COMPRESSION_NONE;
    if (!plain && got >= 2 && head[0] == 0x1f && head[1] == 0x8b) *out = COMPRESSION_GZIP;
    if (!plain && got >= 2 && (head[0] & 15) == 8 && head[0] >> 4 <= 7 && (head[0] * 256 + head[1]) % 31 == 0)
        *out = COMPRESSION_ZLIB;
    return NULL;
}

static int window_bits(Compression c) {
    return c == COMPRESSION_GZIP ? MAX_WBITS + 16 : MAX_WBITS;
}

/* ---- Streams ---- */

struct InputStream {
    const FileSystem *fs;
    File *file;
    char *path;
    uint64_t file_at;  /* of the next byte to read from the file */
    uint64_t position; /* of buffer[at] in the decompressed bytes */
    char *buffer;      /* decompressed, [at, end) not yet given out */
    size_t at, end;
    bool blocks;     /* of snappy */
    bool compressed; /* by zlib */
    z_stream z;
    char *raw;        /* compressed bytes that z reads, or a block */
    bool member_open; /* inside a gzip member or zlib stream */
    bool cut_short; /* the file ended within compressed data */
};

Error *input_stream_open(const FileSystem *fs, const char *path, Compression compression, InputStream **out) {
    File *file;
    Error *err = fs->open(path, FILE_READ, &file);
    if (err) return err;
    InputStream *s = xcalloc(1, sizeof *s);
    *s = (InputStream){.fs = fs, .file = file, .path = xstrdup(path), .buffer = xmalloc(CHUNK)};
    s->blocks = compression == COMPRESSION_SNAPPY;
    s->compressed = compression == COMPRESSION_ZLIB || compression == COMPRESSION_GZIP;
    if (s->compressed) {
        s->raw = xmalloc(CHUNK);
        if (inflateInit2(&s->z, window_bits(compression)) != Z_OK) {
            s->compressed = false;
            input_stream_close(s);
            return error_internal("zlib could not be started for %s", path);
        }
    }
    *out = s;
    return NULL;
}

void input_stream_close(InputStream *s) {
    if (!s) return;
    if (s->compressed) inflateEnd(&s->z);
    s->fs->close(s->file);
    free(s->raw);
    free(s->buffer);
    free(s->path);
    free(s);
}

bool input_stream_cut_short(const InputStream *s) {
    return s->cut_short;
}

uint64_t input_stream_position(const InputStream *s) {
    return s->position;
}

static Error *inflate_some(InputStream *s) {
    s->z.next_out = (Bytef *)s->buffer;
    s->z.avail_out = CHUNK;
    while (s->z.avail_out == CHUNK) {
        if (!s->z.avail_in) {
            size_t got;
            Error *err = s->fs->read_at(s->file, s->file_at, s->raw, CHUNK, &got);
            if (err) return err;
            s->file_at += got;
            s->z.next_in = (Bytef *)s->raw;
            s->z.avail_in = (uInt)got;
            s->cut_short = !got && s->member_open;
            if (s->cut_short) return error_new(CODE_DATA_LOSS, "%s: compressed data ends too early", s->path);
            if (!got) break;
        }
        s->member_open = true;
        int rc = inflate(&s->z, Z_NO_FLUSH);
        if (rc == Z_STREAM_END) {
            s->member_open = false;
            inflateReset(&s->z); /* files may be made of several members */
        } else if (rc != Z_OK && rc != Z_BUF_ERROR) {
            return error_new(CODE_DATA_LOSS, s->z.msg ? "inflate() failed with error %d: %s" : "inflate() failed with error %d", rc, s->z.msg);
        }
    }
    s->at = 0;
    s->end = CHUNK - s->z.avail_out;
    return NULL;
}

/* Replaces *bytes by room for size; sizes come from the file. */
static Error *make_room(InputStream *s, char **bytes, size_t size) {
    free(*bytes);
    *bytes = try_alloc(size + 1);
    return *bytes ? NULL : error_new(CODE_RESOURCE_EXHAUSTED, "%s: a block of %zu bytes is too large", s->path, size);
}

/* A block of snappy: its length, highest byte first, then the bytes. */
static Error *next_block(InputStream *s, bool *more) {
    unsigned char head[4];
    size_t got = 0, length = 0, plain = 0;
    s->at = s->end = 0;
    Error *err = s->fs->read_at(s->file, s->file_at, head, sizeof head, &got);
    *more = got > 0;
    if (err || !got) return err;
    for (int i = 0; i < 4; i++) length = length << 8 | head[i];
    uint64_t size = 0;
    if (got == sizeof head) err = s->fs->size(s->path, &size);
    if (!err && (got < sizeof head || size < s->file_at + 4 || length > size - s->file_at - 4))
        err = error_new(CODE_DATA_LOSS, "%s: compressed data ends too early", s->path);
    if (!err) err = make_room(s, &s->raw, length);
    if (!err) err = s->fs->read_at(s->file, s->file_at + 4, s->raw, length, &got);
    if (!err && (got < length || snappy_uncompressed_length(s->raw, length, &plain) != SNAPPY_OK || plain > MAX_BLOCK))
        err = error_new(CODE_DATA_LOSS, "%s: compressed data is damaged (snappy)", s->path);
    if (!err) err = make_room(s, &s->buffer, plain);
    if (!err && snappy_uncompress(s->raw, length, s->buffer, &plain) != SNAPPY_OK)
        err = error_new(CODE_DATA_LOSS, "%s: compressed data is damaged (snappy)", s->path);
    if (err) return err;
    s->file_at += 4 + length;
    s->end = plain;
    return NULL;
}

/* The buffer is empty: fills it; it stays empty at the end. */
static Error *refill(InputStream *s) {
    Error *err = NULL;
    for (bool more = s->blocks; !err && more && s->at == s->end;) err = next_block(s, &more);
    if (err || s->blocks) return err;
    if (s->compressed) return inflate_some(s);
    size_t got;
    err = s->fs->read_at(s->file, s->file_at, s->buffer, CHUNK, &got);
    if (err) return err;
    s->file_at += got;
    s->at = 0;
    s->end = got;
    return NULL;
}

Error *input_stream_read(InputStream *s, void *to, size_t size, size_t *got) {
    *got = 0;
    while (*got < size) {
        if (s->at == s->end) {
            Error *err = refill(s);
            if (err) return err;
            if (s->at == s->end) break;
        }
        size_t n = s->end - s->at < size - *got ? s->end - s->at : size - *got;
        if (to) memcpy((char *)to + *got, s->buffer + s->at, n);
        s->at += n;
        s->position += n;
        *got += n;
    }
    return NULL;
}

Error *input_stream_skip(InputStream *s, uint64_t size, uint64_t *skipped) {
    size_t got;
    Error *err = input_stream_read(s, NULL, (size_t)size, &got);
    *skipped = got;
    return err;
}

Error *input_stream_line(InputStream *s, StrBuf *line, bool *more) {
    *more = false;
    for (;;) {
        if (s->at == s->end) {
            Error *err = refill(s);
            if (err) return err;
            if (s->at == s->end) break;
        }
        *more = true;
        char *from = s->buffer + s->at, *end = memchr(from, '\n', s->end - s->at);
        size_t n = end ? (size_t)(end - from) : s->end - s->at;
        strbuf_add(line, (Str){from, n});
        s->at += n + (end ? 1 : 0);
        s->position += n + (end ? 1 : 0);
        if (end) break;
    }
    /* TensorFlow drops every carriage return. */
    size_t kept = 0;
    for (size_t i = 0; i < line->len; i++)
        if (line->ptr[i] != '\r') line->ptr[kept++] = line->ptr[i];
    if (line->len) line->ptr[line->len = kept] = 0;
    return NULL;
}

Error *decompress(Str bytes, Compression compression, char **out, size_t *len) {
    z_stream z = {0};
    if (inflateInit2(&z, window_bits(compression)) != Z_OK) return error_internal("zlib could not be started");
    char *chunk = xmalloc(CHUNK);
    StrBuf result = {0};
    Error *err = NULL;
    int rc = Z_OK;
    size_t fed = 0;
    while (!err && rc != Z_STREAM_END) {
        if (!z.avail_in && fed < bytes.len) {
            size_t n = bytes.len - fed < ((size_t)1 << 30) ? bytes.len - fed : (size_t)1 << 30;
            z.next_in = (Bytef *)(bytes.ptr + fed);
            z.avail_in = (uInt)n;
            fed += n;
        }
        z.next_out = (Bytef *)chunk;
        z.avail_out = CHUNK;
        rc = inflate(&z, Z_NO_FLUSH);
        if (rc == Z_BUF_ERROR) rc = Z_STREAM_END; /* the bytes ended before the stream: what there is counts */
        if (rc != Z_OK && rc != Z_STREAM_END)
            err = error_new(CODE_DATA_LOSS, "inflate() failed with error %d%s%s", rc, z.msg ? ": " : "", z.msg ? z.msg : "");
        strbuf_add(&result, (Str){chunk, CHUNK - z.avail_out});
        if (result.len > (size_t)1 << 36) err = error_new(CODE_RESOURCE_EXHAUSTED, "compressed data is too large");
    }
    inflateEnd(&z);
    free(chunk);
    if (err) {
        strbuf_clear(&result);
        return err;
    }
    *len = result.len;
    *out = strbuf_detach(&result);
    return NULL;
}

/* ---- Records ---- */

struct RecordReader {
    InputStream *stream;
    bool cut_short; /* the file ended within the length of a record */
    char *record;
    size_t capacity;
    Error *damage; /* of the record that could not be read: there is none after it */
};

Error *record_reader_open(const FileSystem *fs, const char *path, Compression compression, RecordReader **out) {
    InputStream *s = NULL;
    Error *err = input_stream_open(fs, path, compression, &s);
    if (err) return err;
    *out = xcalloc(1, sizeof **out);
    (*out)->stream = s;
    return NULL;
}

void record_reader_close(RecordReader *r) {
    if (!r) return;
    input_stream_close(r->stream);
    error_free(r->damage);
    free(r->record);
    free(r);
}

uint64_t record_reader_position(const RecordReader *r) {
    return input_stream_position(r->stream);
}

bool record_reader_cut_short(const RecordReader *r) {
    return r->cut_short;
}

static Error *truncated(uint64_t at) {
    return error_new(CODE_DATA_LOSS, "truncated record at %llu' failed with Read less bytes than requested", (unsigned long long)at);
}

/* A length is at the record, what it is the length of behind it. */
static Error *corrupted(uint64_t at) {
    return error_new(CODE_DATA_LOSS, "corrupted record at %llu%s", (unsigned long long)at, at ? "" : " (Is this even a TFRecord file?)");
}

/* Grows in steps while bytes really come, so that a damaged length allocates nothing large. */
static Error *read_body(RecordReader *r, uint64_t at, size_t size) {
    for (size_t have = 0; have < size;) {
        size_t want = size < have + (1 << 24) ? size : have + (1 << 24);
        if (want > r->capacity) {
            size_t capacity = want > 2 * r->capacity ? want : 2 * r->capacity;
            char *larger = realloc(r->record, capacity);
            if (!larger)
                return error_new(CODE_RESOURCE_EXHAUSTED, "A record of %zu bytes in %s is too large", size,
                                 r->stream->path);
            r->record = larger;
            r->capacity = capacity;
        }
        size_t got;
        Error *err = input_stream_read(r->stream, r->record + have, want - have, &got);
        if (err) return err;
        if (got < want - have) return truncated(at);
        have = want;
    }
    return NULL;
}

static Error *read_record(RecordReader *r, Str *record, bool *more) {
    uint64_t at = record_reader_position(r), length;
    char header[12];
    uint32_t crc;
    size_t got;
    Error *err = input_stream_read(r->stream, header, sizeof header, &got);
    if (err) return err;
    *more = got == sizeof header;
    r->cut_short = got && !*more;
    if (!*more) return NULL;
    memcpy(&length, header, 8);
    memcpy(&crc, header + 8, 4);
    if (crc32c_unmask(crc) != crc32c(0, header, 8) || length > (uint64_t)1 << 40) return corrupted(at);
    err = read_body(r, at, (size_t)length + 4);
    if (err) return err;
    memcpy(&crc, r->record + length, 4);
    if (crc32c_unmask(crc) != crc32c(0, r->record, (size_t)length)) return corrupted(at + sizeof header);
    *record = (Str){r->record, (size_t)length};
    return NULL;
}

Error *record_reader_next(RecordReader *r, Str *record, bool *more) {
    if (!r->damage) r->damage = read_record(r, record, more);
    return r->damage ? error_copy(r->damage) : NULL;
}

struct RecordWriter {
    OutputStream *stream;
};

Error *record_writer_open(const FileSystem *fs, const char *path, Compression compression, bool append,
                          RecordWriter **out) {
    OutputStream *s = NULL;
    Error *err = output_stream_open(fs, path, compression, append, &s);
    if (err) return err;
    *out = xcalloc(1, sizeof **out);
    (*out)->stream = s;
    return NULL;
}

void record_writer_close(RecordWriter *w) {
    if (!w) return;
    output_stream_close(w->stream);
    free(w);
}

Error *record_writer_add(RecordWriter *w, Str record) {
    uint64_t length = record.len;
    char header[12], footer[4];
    uint32_t crc = crc32c_mask(crc32c(0, &length, 8));
    memcpy(header, &length, 8);
    memcpy(header + 8, &crc, 4);
    crc = crc32c_mask(crc32c(0, record.ptr, record.len));
    memcpy(footer, &crc, 4);
    Error *err = output_stream_write(w->stream, (Str){header, sizeof header});
    if (!err) err = output_stream_write(w->stream, record);
    return err ? err : output_stream_write(w->stream, (Str){footer, sizeof footer});
}

Error *record_writer_flush(RecordWriter *w) {
    return output_stream_flush(w->stream);
}

Error *record_writer_finish(RecordWriter *w) {
    return output_stream_finish(w->stream);
}

Error *record_writer_sync(RecordWriter *w) {
    return output_stream_sync(w->stream);
}
