/* media_value.c: pictures and sounds as tf.Summary.Value: PNG and WAV. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/float16.h"
#include "base/memory.h"
#include "io/image.h"
#include "io/wav.h"
#include "ops/elements.h"
#include "ops/summary_value.h"
#include "proto/wire.h"
#include "tensor/number.h"

/* One Summary.Value: the tag, numbered when more than one was asked for, and a picture or sound in `field`. */
static void put_value(StrBuf *summary, Str tag, const char *kind, int64_t i, bool numbered, uint32_t field,
                      StrBuf *content) {
    StrBuf value = {0}, name = {0};
    strbuf_add(&name, tag);
    strbuf_addf(&name, "/%s", kind);
    if (numbered) strbuf_addf(&name, "/%lld", (long long)i);
    wire_put_bytes(&value, 1, strbuf_str(&name));
    wire_put_bytes(&value, field, strbuf_str(content));
    wire_put_bytes(summary, 1, strbuf_str(&value));
    strbuf_clear(&name);
    strbuf_clear(&value);
    strbuf_clear(content);
}

/* ---- Images ---- */

static float real_at(const Tensor *t, int64_t i) {
    return (float)number_real(t, i);
}

static bool pixel_is_finite(const Tensor *t, int64_t first, int channels) {
    for (int c = 0; c < channels; c++)
        if (!isfinite(number_real(t, first + c))) return false;
    return true;
}

/* x * scale + offset with each step in the tensor's own type. */
static double scaled(const Tensor *t, int64_t i, float scale, float offset) {
    switch (t->dtype) {
        case DT_DOUBLE:
            return tensor_f64(t)[i] * (double)scale + (double)offset;
        case DT_HALF: {
            uint16_t product = float_to_half(real_at(t, i) * half_to_float(float_to_half(scale)));
            return (double)half_to_float(float_to_half(half_to_float(product) + offset));
        }
        default:
            return (double)(real_at(t, i) * scale + offset);
    }
}

/* Scales to 0..255: the largest value becomes 255; when there are negative ones, 0 becomes 128. */
static void normalize(const uint8_t *bad_color, const Tensor *t, int64_t first, int64_t pixels, int channels,
                      uint8_t *to) {
    float low = INFINITY, high = -INFINITY;
    for (int64_t p = 0; p < pixels; p++) {
        int64_t at = first + p * channels;
        for (int c = 0; pixel_is_finite(t, at, channels) && c < channels; c++) {
            low = fminf(low, real_at(t, at + c));
            high = fmaxf(high, real_at(t, at + c));
        }
    }
    float largest = low < 0 ? fmaxf(fabsf(low), fabsf(high)) : high, offset = low < 0 ? 128 : 0;
    float scale = largest < 1e-6f ? 0 : (low < 0 ? 127 : 255) / largest;
    for (int64_t p = 0; p < pixels; p++) {
        int64_t at = first + p * channels;
        bool finite = pixel_is_finite(t, at, channels);
        for (int c = 0; c < channels; c++)
            to[p * channels + c] = finite ? (uint8_t)scaled(t, at + c, scale, offset) : bad_color[c];
    }
}

static Error *put_image(const uint8_t *bad_color, const Tensor *t, int64_t i, uint8_t *pixels, StrBuf *content) {
    int64_t height = t->shape.dims[1], width = t->shape.dims[2], count = height * width;
    int channels = (int)t->shape.dims[3];
    StrBuf png = {0};
    const uint8_t *from = pixels;
    if (t->dtype == DT_UINT8)
        from = tensor_u8(t) + i * count * channels;
    else
        normalize(bad_color, t, i * count * channels, count, channels, pixels);
    Error *err = image_encode_png(from, height, width, channels, 1, -1, &png);
    if (!err) {
        wire_put_uint(content, 1, (uint64_t)height);
        wire_put_uint(content, 2, (uint64_t)width);
        wire_put_uint(content, 3, (uint64_t)channels);
        wire_put_bytes(content, 4, strbuf_str(&png));
    }
    strbuf_clear(&png);
    return err;
}

Error *summary_put_images(StrBuf *summary, Str tag, const Tensor *t, int64_t max_images, const uint8_t bad_color[4]) {
    int64_t channels = t->shape.rank == 4 ? t->shape.dims[3] : 0;
    if (channels != 1 && channels != 3 && channels != 4) {
        char *text = shape_str(&t->shape);
        Error *err = error_invalid("Tensor must be 4-D with last dim 1, 3, or 4, not %s", text);
        free(text);
        return err;
    }
    const int64_t *d = t->shape.dims;
    if (d[1] == 0 || d[2] == 0) {
        return error_invalid("input tensor must have non-zero dims. Found: [%lld, %lld, %lld, %lld].", (long long)d[0],
                             (long long)d[1], (long long)d[2], (long long)d[3]);
    }
    int64_t count = d[0] < max_images ? d[0] : max_images;
    uint8_t *pixels = try_alloc((size_t)shape_prod(&t->shape, 1, 4) + 1);
    if (!pixels) return error_new(CODE_RESOURCE_EXHAUSTED, "Not enough memory for an image");
    Error *err = NULL;
    for (int64_t i = 0; !err && i < count; i++) {
        StrBuf content = {0};
        err = put_image(bad_color, t, i, pixels, &content);
        if (!err) put_value(summary, tag, "image", i, max_images > 1, 4, &content);
    }
    free(pixels);
    return err;
}

/* ---- Sounds ---- */

Error *summary_put_sounds(StrBuf *summary, Str tag, const Tensor *t, int64_t max_outputs, float rate) {
    int rank = t->shape.rank;
    if (rank != 2 && rank != 3) return error_invalid("Tensor must be 3-D or 2-D, got: %s", shape_text(&t->shape).text);
    if (!(rate > 0 && rate < 4e9f)) return error_invalid("sample_rate must be > 0");
    int64_t frames = t->shape.dims[1], channels = rank == 3 ? t->shape.dims[2] : 1;
    int64_t count = t->shape.dims[0] < max_outputs ? t->shape.dims[0] : max_outputs;
    if (count == 0) return NULL;
    if (channels == 0) return error_invalid(frames ? "audio is null" : "num_channels must be in (0, 2^16), got: 0");
    if (channels > 65535 || frames > ((int64_t)1 << 30) / channels)
        return error_invalid("A sound of %lld frames and %lld channels cannot be encoded", (long long)frames,
                             (long long)channels);
    for (int64_t i = 0; i < count; i++) {
        StrBuf content = {0}, wav = {0};
        wav_encode(tensor_f32(t) + i * frames * channels, frames, channels, (uint32_t)rate, &wav);
        wire_put_float(&content, 1, rate);
        wire_put_uint(&content, 2, (uint64_t)channels);
        if (frames) wire_put_uint(&content, 3, (uint64_t)frames);
        wire_put_bytes(&content, 4, strbuf_str(&wav));
        wire_put_bytes(&content, 5, STR("audio/wav"));
        strbuf_clear(&wav);
        put_value(summary, tag, "audio", i, max_outputs > 1, 6, &content);
    }
    return NULL;
}
