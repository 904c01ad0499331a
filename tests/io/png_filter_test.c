/* png_filter_test.c: a PNG has the bytes that libpng writes when it chooses the filters itself. */
#include <png.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "io/image.h"
#include "unit_test.h"

static void add_bytes(png_structp png, png_bytep from, png_size_t n) {
    strbuf_add(png_get_io_ptr(png), (Str){(const char *)from, n});
}
static void flush_nothing(png_structp png) {
    (void)png;
}

static void write_plainly(const uint8_t *pixels, int height, int width, int channels, StrBuf *out) {
    static const int colors[] = {0, PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_RGB_ALPHA};
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    png_set_write_fn(png, out, add_bytes, flush_nothing);
    png_set_IHDR(png, info, (png_uint_32)width, (png_uint_32)height, 8, colors[channels], PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_set_compression_level(png, -1);
    png_write_info(png, info);
    for (int y = 0; y < height; y++) png_write_row(png, pixels + (size_t)y * (size_t)(width * channels));
    png_write_end(png, NULL);
    png_destroy_write_struct(&png, &info);
}

/* Noise, slopes in either direction, edges, and all one colour: every filter is the best of some row. */
static uint8_t pixel_at(int kind, int y, int x, int c) {
    const int noise = rand() % 256;
    switch (kind) {
        case 0:
            return (uint8_t)noise;
        case 1:
            return (uint8_t)(3 * x + 40 * c + noise % 3);
        case 2:
            return (uint8_t)(5 * y + 2 * x + noise % 2);
        case 3:
            return (uint8_t)(x * y / 4 + noise % 5);
        case 4:
            return (uint8_t)(y % 8 < 4 ? noise : (x / 5 + y / 3) % 2 * 200);
        default:
            return (uint8_t)(128 + c);
    }
}

static void check(int kind, int height, int width, int channels) {
    uint8_t *pixels = xmalloc((size_t)(height * width * channels));
    for (int i = 0; i < height * width * channels; i++) pixels[i] = pixel_at(kind, i / channels / width, i / channels % width, i % channels);
    StrBuf want = {0}, got = {0};
    write_plainly(pixels, height, width, channels, &want);
    expect_ok(image_encode_png(pixels, height, width, channels, 1, -1, &got));
    if (!str_eq(strbuf_str(&want), strbuf_str(&got))) fail_msg("kind %d of %d x %d x %d differs", kind, height, width, channels);
    strbuf_clear(&want);
    strbuf_clear(&got);
    free(pixels);
}

static void files_are_those_of_libpng(void **state) {
    (void)state;
    static const int sizes[][2] = {{1, 1}, {1, 50}, {50, 1}, {2, 2}, {3, 2}, {17, 85}, {40, 64}, {9, 300}};
    for (int kind = 0; kind < 6; kind++)
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
            for (int channels = 1; channels <= 4; channels++) check(kind, sizes[s][0], sizes[s][1], channels);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(files_are_those_of_libpng)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
