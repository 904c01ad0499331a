/* image_webp.c: WebP files, still and animated, through libwebp. */
#include <stdlib.h>
#include <string.h>
#include <webp/decode.h>
#include <webp/demux.h>

#include "io/image.h"

enum { MOST_CANVAS = 1 << 26 }; /* pixels of an animation; the decoder keeps two canvases */

static Error *decode_still(Str file, Image *out) {
    Error *err = image_alloc(out);
    if (err) return err;
    int stride = (int)(out->width * out->channels);
    size_t size = (size_t)stride * (size_t)out->height;
    const uint8_t *data = (const uint8_t *)file.ptr;
    bool ok = out->channels == 4 ? WebPDecodeRGBAInto(data, file.len, out->pixels, size, stride) != NULL
                                 : WebPDecodeRGBInto(data, file.len, out->pixels, size, stride) != NULL;
    if (ok) return NULL;
    free(out->pixels);
    out->pixels = NULL;
    return error_invalid("Failed to decode WebP image.");
}

/* Frames come as RGBA, each with what the ones before it left. */
static Error *decode_frames(WebPAnimDecoder *decoder, Image *out) {
    Error *err = image_alloc(out);
    uint8_t *to = out->pixels, *from;
    int64_t pixels = out->height * out->width;
    int at_ms;
    for (int64_t f = 0; !err && f < out->frames; f++) {
        if (!WebPAnimDecoderHasMoreFrames(decoder) || !WebPAnimDecoderGetNext(decoder, &from, &at_ms)) {
            free(out->pixels);
            out->pixels = NULL;
            return error_invalid("Failed to decode WebP frame.");
        }
        for (int64_t i = 0; i < pixels; i++, to += out->channels) memcpy(to, from + 4 * i, (size_t)out->channels);
    }
    return err;
}

static Error *decode_animation(Str file, bool all_frames, Image *out) {
    WebPAnimDecoderOptions options;
    WebPAnimInfo info;
    WebPData data = {(const uint8_t *)file.ptr, file.len};
    if (out->height * out->width > MOST_CANVAS) return error_invalid("An animation of %lld x %lld pixels is too large", (long long)out->height, (long long)out->width);
    if (!WebPAnimDecoderOptionsInit(&options)) return error_internal("libwebp is not the one Rill was made for");
    options.color_mode = MODE_RGBA;
    WebPAnimDecoder *decoder = WebPAnimDecoderNew(&data, &options);
    Error *err = NULL;
    if (!decoder || !WebPAnimDecoderGetInfo(decoder, &info)) err = error_invalid("Failed to decode WebP Animation");
    if (!err) {
        out->frames = all_frames ? info.frame_count : 1;
        out->height = info.canvas_height;
        out->width = info.canvas_width;
        err = decode_frames(decoder, out);
    }
    WebPAnimDecoderDelete(decoder);
    return err;
}

Error *image_decode_webp(Str file, int channels, bool all_frames, Image *out) {
    WebPBitstreamFeatures features;
    if (channels == 1) return error_invalid("WebP only supports 3 or 4 channels");
    if (WebPGetFeatures((const uint8_t *)file.ptr, file.len, &features) != VP8_STATUS_OK) return error_invalid("Failed to decode WebP header.");
    int found = features.has_alpha ? 4 : 3;
    if (channels != 0 && channels != found) return error_invalid("Number of channels requested does not match input");
    *out = (Image){.frames = 1, .height = features.height, .width = features.width, .channels = found, .bytes = 1};
    return features.has_animation ? decode_animation(file, all_frames, out) : decode_still(file, out);
}
