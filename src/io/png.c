/* png.c: writes PNG: signature, header, one chunk of deflated rows (each after a filter byte), end. */
#include "io/png.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/memory.h"

static void put32(StrBuf *b, uint32_t v) {
    char bytes[4] = {(char)(v >> 24), (char)(v >> 16), (char)(v >> 8), (char)v};
    strbuf_add(b, (Str){bytes, 4});
}

static void put_chunk(StrBuf *b, const char *type, Str data) {
    put32(b, (uint32_t)data.len);
    strbuf_add(b, (Str){type, 4});
    strbuf_add(b, data);
    uLong crc = crc32(crc32(0, (const Bytef *)type, 4), (const Bytef *)data.ptr, (uInt)data.len);
    put32(b, (uint32_t)crc);
}

Error *png_encode(const uint8_t *pixels, int64_t height, int64_t width, int channels, StrBuf *out) {
    static const char color_types[] = {0, 0, 4, 2, 6};
    if (channels < 1 || channels > 4) return error_invalid("A PNG image has 1 to 4 channels, not %d", channels);
    if (height < 1 || width < 1 || height > INT32_MAX || width > INT32_MAX ||
        (width * channels + 1) > ((int64_t)1 << 30) / height)
        return error_invalid("An image of %lld x %lld cannot be a PNG", (long long)height, (long long)width);
    size_t row = (size_t)(width * channels), size = (row + 1) * (size_t)height;
    uLongf packed_size = compressBound(size);
    uint8_t *raw = try_alloc(size), *packed = try_alloc(packed_size);
    Error *err = NULL;
    for (int64_t y = 0; raw && y < height; y++) {
        raw[(size_t)y * (row + 1)] = 0; /* no filter */
        memcpy(raw + (size_t)y * (row + 1) + 1, pixels + (size_t)y * row, row);
    }
    if (!raw || !packed || compress2(packed, &packed_size, raw, size, Z_DEFAULT_COMPRESSION) != Z_OK) {
        err = error_new(CODE_RESOURCE_EXHAUSTED, "Not enough memory to compress an image");
    } else {
        StrBuf header = {0};
        put32(&header, (uint32_t)width);
        put32(&header, (uint32_t)height);
        strbuf_add(&header, (Str){(char[]){8, color_types[channels], 0, 0, 0}, 5});
        strbuf_add(out, (Str){"\x89PNG\r\n\x1a\n", 8});
        put_chunk(out, "IHDR", strbuf_str(&header));
        put_chunk(out, "IDAT", (Str){(const char *)packed, packed_size});
        put_chunk(out, "IEND", STR(""));
        strbuf_clear(&header);
    }
    free(raw);
    free(packed);
    return err;
}
