/* image_fuzz.c: PNG, JPEG, GIF, BMP and WebP files. */
#include "fuzz_target.h"
#include "io/image.h"

static void decode_jpeg(Str file, unsigned choice) {
    JpegDecodeOptions o = {.channels = (int[]){0, 1, 3, 3}[choice & 3], .ratio = 1 << (choice >> 2 & 3), .fancy_upscaling = choice & 16,
                           .accurate_dct = choice & 32, .recover_truncated = choice & 64, .acceptable_fraction = 0.5f};
    o.crop = choice & 128;
    if (o.crop && file.len > 8) {
        o.crop_y = (uint8_t)file.ptr[file.len - 1];
        o.crop_x = (uint8_t)file.ptr[file.len - 2];
        o.crop_height = (int8_t)file.ptr[file.len - 3];
        o.crop_width = (int8_t)file.ptr[file.len - 4];
    }
    Image image = {0};
    error_free(image_decode_jpeg(file, &o, &image));
    free(image.pixels);
    Image sizes = {0};
    error_free(image_jpeg_shape(file, &sizes));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Str file = input_str(data, size);
    unsigned choice = take_choice(&file);
    Image image = {0};
    switch (image_format(file)) {
    case IMAGE_PNG: error_free(image_decode_png(file, (int)(choice % 5), choice & 8 ? 2 : 1, &image)); break;
    case IMAGE_GIF: error_free(image_decode_gif(file, choice & 1, &image)); break;
    case IMAGE_BMP: error_free(image_decode_bmp(file, (int)(choice % 5), &image)); break;
    case IMAGE_WEBP: error_free(image_decode_webp(file, choice & 2 ? 3 : 0, choice & 1, &image)); break;
    case IMAGE_JPEG: decode_jpeg(file, choice); break;
    case IMAGE_UNKNOWN: break;
    }
    free(image.pixels);
    return 0;
}
