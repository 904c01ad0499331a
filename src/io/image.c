/* image.c: tells image files apart, limits their size; BMP, which needs no library. */
#include "io/image.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

ImageFormat image_format(Str file) {
    if (str_starts(file, STR("\xff\xd8\xff"))) return IMAGE_JPEG;
    if (str_starts(file, STR("\x89PNG\r\n\x1a\n"))) return IMAGE_PNG;
    if (str_starts(file, STR("GIF8"))) return IMAGE_GIF;
    if (str_starts(file, STR("BM"))) return IMAGE_BMP;
    if (file.len >= 12 && str_starts(file, STR("RIFF")) && str_starts(str_slice(file, 8, file.len), STR("WEBP"))) return IMAGE_WEBP;
    return IMAGE_UNKNOWN;
}

Error *image_alloc(Image *image) {
    const int64_t limit = (int64_t)1 << 29; /* channels of all pixels */
    const int64_t sizes[4] = {image->frames, image->height, image->width, image->channels};
    int64_t total = image->bytes;
    for (int i = 0; i < 4; i++) {
        if (sizes[i] <= 0 || sizes[i] > limit / total) {
            return error_invalid("An image of %lld x %lld pixels, %lld channels and %lld frames is too large or empty",
                                 (long long)image->height, (long long)image->width, (long long)image->channels,
                                 (long long)image->frames);
        }
        total *= sizes[i];
    }
    image->pixels = try_alloc((size_t)total);
    return image->pixels ? NULL : error_new(CODE_RESOURCE_EXHAUSTED, "Not enough memory for an image");
}

/* ---- BMP ---- */

static int32_t read_le32(const uint8_t *p) {
    return (int32_t)((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24);
}

Error *image_decode_bmp(Str file, int channels, Image *out) {
    const uint8_t *in = (const uint8_t *)file.ptr;
    if (file.len < 32) {
        return error_invalid(
            "Incomplete bmp content, requires at least 32 bytes to find the header size, width, height, "
            "and bpp, got %zu bytes",
            file.len);
    }
    const int64_t start = read_le32(in + 10), width = read_le32(in + 18), high = read_le32(in + 22);
    const int bits = in[28] | in[29] << 8, found = bits / 8;
    if (found != 1 && found != 3 && found != 4) {
        return error_invalid("Number of channels inherent in the image must be 1, 3 or 4, was %d", found);
    }
    if (start < 0 || width <= 0 || high == 0) return error_invalid("Width and height of a BMP must be positive");
    const int wanted = channels ? channels : found;
    *out = (Image){.frames = 1, .height = high < 0 ? -high : high, .width = width, .channels = wanted, .bytes = 1};
    const int64_t row = (width * found + 3) / 4 * 4; /* sizes are below 2^31 */
    if (start > (int64_t)file.len || row > ((int64_t)file.len - start) / out->height) {
        return error_invalid("Input size should match (header_size + row_size * abs_height) but they differ by %.0f",
                             (double)file.len - (double)start - (double)row * (double)out->height);
    }
    Error *err = image_alloc(out);
    if (err) return err;
    uint8_t *to = out->pixels;
    for (int64_t y = 0; y < out->height; y++) { /* bottom up unless the height is negative */
        const uint8_t *from = in + start + (high < 0 ? y : out->height - 1 - y) * row;
        for (int64_t x = 0; x < width; x++, from += found, to += wanted) {
            to[0] = from[found == 1 ? 0 : 2]; /* blue, green, red; grey is all three */
            if (wanted >= 3) to[1] = from[found == 1 ? 0 : 1];
            if (wanted >= 3) to[2] = from[0];
            if (wanted == 4) to[3] = found == 4 ? from[3] : 255;
        }
    }
    return NULL;
}
