/* image.h: PNG, JPEG, GIF, BMP and WebP files to pixels and back. Files are not trusted: sizes are limited, broken ones are
 * InvalidArgument. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/str.h"

/* frames x height x width x channels; channels: 1 grey, 2 grey and alpha, 3 RGB, 4 RGBA. */
typedef struct Image {
    int64_t frames, height, width, channels;
    int bytes;    /* of one channel: 1 or 2 */
    void *pixels; /* free() it */
} Image;

typedef enum ImageFormat { IMAGE_UNKNOWN, IMAGE_JPEG, IMAGE_PNG, IMAGE_GIF, IMAGE_BMP, IMAGE_WEBP } ImageFormat;
ImageFormat image_format(Str file);

/* InvalidArgument when an image of this size is too large to be read, else memory for it. */
Error *image_alloc(Image *image) MUST_CHECK;

/* channels: 0 means as in the file. bytes: 1 or 2; wider channels are cut, narrower ones repeated. */
Error *image_decode_png(Str file, int channels, int bytes, Image *out) MUST_CHECK;
/* Pixels are `bytes` wide; level is zlib's, -1 the default. */
Error *image_encode_png(const void *pixels, int64_t height, int64_t width, int64_t channels, int bytes, int level,
                        StrBuf *out) MUST_CHECK;

typedef struct JpegDecodeOptions {
    int channels; /* 0, 1 or 3 */
    int ratio;    /* the image is made smaller by 1, 2, 4 or 8 */
    bool fancy_upscaling, accurate_dct;
    bool recover_truncated;
    float acceptable_fraction; /* of lines that must be there */
    bool crop;
    int64_t crop_y, crop_x, crop_height, crop_width;
} JpegDecodeOptions;
Error *image_decode_jpeg(Str file, const JpegDecodeOptions *options, Image *out) MUST_CHECK;
Error *image_jpeg_shape(Str file, Image *out) MUST_CHECK; /* sizes alone */

typedef struct JpegEncodeOptions {
    int quality; /* 0 to 100 */
    bool progressive, optimize, chroma_downsampling;
    bool density_in_cm;
    int x_density, y_density;
    Str xmp;
} JpegEncodeOptions;
/* channels: 1 or 3. */
Error *image_encode_jpeg(const uint8_t *pixels, int64_t height, int64_t width, int64_t channels,
                         const JpegEncodeOptions *options, StrBuf *out) MUST_CHECK;

Error *image_decode_gif(Str file, bool all_frames, Image *out) MUST_CHECK; /* RGB */
Error *image_decode_bmp(Str file, int channels, Image *out) MUST_CHECK;
Error *image_decode_webp(Str file, int channels, bool all_frames, Image *out) MUST_CHECK; /* RGB or RGBA, as the file has; channels: 0, or that */
