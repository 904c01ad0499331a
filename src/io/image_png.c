/* image_png.c: PNG by libpng. Its errors jump back to the setjmp of the running function; what they must free lives in
 * a struct of the caller. */
#include <png.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "io/image.h"
#include "io/png_filter.h"

typedef struct PngReader {
    png_structp png;
    png_infop info;
    Str rest; /* of the file */
    size_t size; /* of all of it */
    png_bytepp rows;
} PngReader;

static void on_error(png_structp png, png_const_charp text) {
    (void)text;
    png_longjmp(png, 1);
}
static void on_warning(png_structp png, png_const_charp text) {
    (void)png;
    (void)text;
}

static void read_bytes(png_structp png, png_bytep to, png_size_t n) {
    PngReader *r = png_get_io_ptr(png);
    if (n > r->rest.len) png_error(png, "the file ends too early");
    memcpy(to, r->rest.ptr, n);
    r->rest = str_slice(r->rest, n, r->rest.len);
}

/* Asks libpng for the channels and the width of them that `out` says; channels may still be 0. */
static void choose_transforms(PngReader *r, int depth, int color, Image *out) {
    const bool has_alpha = (color & PNG_COLOR_MASK_ALPHA) || png_get_valid(r->png, r->info, PNG_INFO_tRNS);
    const bool clear_color = png_get_valid(r->png, r->info, PNG_INFO_tRNS);
    const bool is_palette = color == PNG_COLOR_TYPE_PALETTE, is_grey = !(color & PNG_COLOR_MASK_COLOR);
    if (out->channels == 0) {
        out->channels = is_palette ? (clear_color ? 4 : 3) : png_get_channels(r->png, r->info);
    }
    if (out->channels % 2 == 0) {
        if (clear_color) png_set_tRNS_to_alpha(r->png);
        if (!has_alpha) png_set_add_alpha(r->png, (1u << depth) - 1, PNG_FILLER_AFTER);
    } else if (has_alpha) {
        png_set_strip_alpha(r->png);
    }
    if (depth > 8 && out->bytes == 1) png_set_strip_16(r->png);
    png_set_packing(r->png);
    if (depth > 8 && out->bytes == 2) png_set_swap(r->png); /* files have the high byte first */
    if (is_palette) png_set_palette_to_rgb(r->png);
    if (is_grey && depth < 8) png_set_expand_gray_1_2_4_to_8(r->png);
    if (out->channels < 3 && !is_grey) png_set_rgb_to_gray(r->png, PNG_ERROR_ACTION_NONE, 0.299, 0.587);
    if (out->channels >= 3 && is_grey) png_set_gray_to_rgb(r->png);
    png_set_interlace_handling(r->png);
}

static Error *read_png(PngReader *r, Image *out) {
    png_uint_32 width = 0, height = 0;
    int depth = 0, color = 0;
    if (setjmp(png_jmpbuf(r->png))) return error_invalid("Invalid PNG. Failed to initialize decoder.");
    png_set_read_fn(r->png, r, read_bytes);
    png_read_info(r->png, r->info);
    if (setjmp(png_jmpbuf(r->png))) return error_invalid("Invalid PNG data, size %zu", r->size);
    png_get_IHDR(r->png, r->info, &width, &height, &depth, &color, NULL, NULL, NULL);
    out->width = width;
    out->height = height;
    choose_transforms(r, depth, color, out);
    png_read_update_info(r->png, r->info);
    Error *err = image_alloc(out);
    if (err) return err;
    const size_t file_row = (size_t)(out->width * out->channels) * (depth > 8 && out->bytes == 2 ? 2 : 1);
    if (png_get_rowbytes(r->png, r->info) != file_row) return error_invalid("Invalid PNG data, size %zu: unexpected row size", r->size);
    const bool repeat = depth <= 8 && out->bytes == 2;
    r->rows = try_alloc(height * sizeof *r->rows);
    if (!r->rows) return error_new(CODE_RESOURCE_EXHAUSTED, "Not enough memory for an image");
    /* Narrow rows are read into the first half of their place and spread afterwards. */
    for (png_uint_32 y = 0; y < height; y++) r->rows[y] = (png_bytep)out->pixels + y * file_row * (repeat ? 2 : 1);
    png_read_image(r->png, r->rows);
    png_read_end(r->png, NULL);
    for (png_uint_32 y = 0; repeat && y < height; y++) {
        for (size_t i = file_row; i-- > 0;) {
            uint8_t v = r->rows[y][i];
            r->rows[y][2 * i] = r->rows[y][2 * i + 1] = v;
        }
    }
    return NULL;
}

Error *image_decode_png(Str file, int channels, int bytes, Image *out) {
    PngReader r = {.rest = file, .size = file.len};
    *out = (Image){.frames = 1, .channels = channels, .bytes = bytes};
    r.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, NULL, on_error, on_warning);
    r.info = r.png ? png_create_info_struct(r.png) : NULL;
    Error *err = r.info ? read_png(&r, out) : error_new(CODE_RESOURCE_EXHAUSTED, "Not enough memory for libpng");
    if (err) {
        free(out->pixels);
        out->pixels = NULL;
    }
    free(r.rows);
    if (r.png) png_destroy_read_struct(&r.png, &r.info, NULL);
    return err;
}

/* ---- Writing ---- */

static void write_bytes(png_structp png, png_bytep from, png_size_t n) {
    strbuf_add(png_get_io_ptr(png), (Str){(const char *)from, n});
}
static void flush_nothing(png_structp png) {
    (void)png;
}

typedef struct PngWriter {
    png_structp png;
    png_infop info;
    const char *pixels;
    int64_t height, width, channels;
    int bytes, level;
    uint8_t *lines; /* two rows of bytes, each with the zeros of a pixel before it; NULL: libpng chooses the filters */
} PngWriter;

/* Tells libpng which filter row y gets, which is written next. That of the first row it chooses by itself: it makes room for all filters then. */
static void choose_filter(PngWriter *w, int64_t y, size_t row) {
    static const int filters[] = {PNG_FILTER_NONE, PNG_FILTER_SUB, PNG_FILTER_UP, PNG_FILTER_AVG, PNG_FILTER_PAETH};
    const size_t pixel = (size_t)w->channels;
    uint8_t *line = w->lines + (size_t)(y % 2) * (pixel + row) + pixel, *above = w->lines + (size_t)((y + 1) % 2) * (pixel + row) + pixel;
    memcpy(line, w->pixels + (size_t)y * row, row);
    if (y > 0) png_set_filter(w->png, PNG_FILTER_TYPE_BASE, filters[png_filter_of(line, above, row, pixel)]);
}

static Error *write_png(PngWriter *w, StrBuf *out) {
    static const int colors[] = {0, PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                                 PNG_COLOR_TYPE_RGB_ALPHA};
    if (setjmp(png_jmpbuf(w->png))) return error_internal("PNG encoding failed");
    png_set_write_fn(w->png, out, write_bytes, flush_nothing);
    png_set_user_limits(w->png, 0x7fffffff, 0x7fffffff);
    png_set_IHDR(w->png, w->info, (png_uint_32)w->width, (png_uint_32)w->height, 8 * w->bytes, colors[w->channels],
                 PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_set_compression_level(w->png, w->level);
    png_write_info(w->png, w->info);
    if (w->bytes == 2) png_set_swap(w->png);
    const size_t row = (size_t)(w->width * w->channels) * (size_t)w->bytes;
    for (int64_t y = 0; y < w->height; y++) {
        if (w->lines) choose_filter(w, y, row);
        png_write_row(w->png, (png_const_bytep)w->pixels + (size_t)y * row);
    }
    png_write_end(w->png, NULL);
    return NULL;
}

Error *image_encode_png(const void *pixels, int64_t height, int64_t width, int64_t channels, int bytes, int level,
                        StrBuf *out) {
    if (channels < 1 || channels > 4) {
        return error_invalid("image must have 1, 2, 3, or 4 channels, got %lld", (long long)channels);
    }
    if (height < 1 || width < 1 || height > INT32_MAX || width > INT32_MAX || width * channels > (1 << 30)) {
        return error_invalid("An image of %lld x %lld cannot be a PNG", (long long)height, (long long)width);
    }
    PngWriter w = {
        .pixels = pixels, .height = height, .width = width, .channels = channels, .bytes = bytes, .level = level};
    const size_t lines = 2 * (size_t)((width + 1) * channels);
    if (bytes == 1 && height > 1 && width > 1) w.lines = try_alloc(lines);
    if (w.lines) memset(w.lines, 0, lines);
    w.png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, on_error, on_warning);
    w.info = w.png ? png_create_info_struct(w.png) : NULL;
    Error *err = w.info ? write_png(&w, out) : error_new(CODE_RESOURCE_EXHAUSTED, "Not enough memory for libpng");
    if (w.png) png_destroy_write_struct(&w.png, &w.info);
    free(w.lines);
    return err;
}
