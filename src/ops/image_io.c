/* image_io.c: image files to tensors and back: DecodePng, DecodeJpeg, DecodeImage, EncodePng, EncodeJpeg, ... */
#include <stdlib.h>
#include <string.h>

#include "io/image.h"
#include "ops/elements.h"
#include "ops/op_list.h"

const OpDef image_io_ops[] = {
    {"DecodePng", "contents: string -> image: dtype", "channels: int = 0; dtype: {uint8, uint16} = uint8", 0},
    {"DecodeJpeg", "contents: string -> image: uint8",
     "channels: int = 0; ratio: int = 1; fancy_upscaling: bool = true; try_recover_truncated: bool = false; "
     "acceptable_fraction: float = 1.0; dct_method: string = ''",
     0},
    {"DecodeAndCropJpeg", "contents: string, crop_window: int32 -> image: uint8",
     "channels: int = 0; ratio: int = 1; fancy_upscaling: bool = true; try_recover_truncated: bool = false; "
     "acceptable_fraction: float = 1.0; dct_method: string = ''",
     0},
    {"DecodeGif", "contents: string -> image: uint8", "", 0},
    {"DecodeBmp", "contents: string -> image: uint8", "channels: int = 0", 0},
    {"DecodeWebP", "contents: string -> image: dtype", "channels: int = 0; dtype: {uint8} = uint8", 0},
    {"DecodeImage", "contents: string -> image: dtype",
     "channels: int = 0; dtype: {uint8, uint16, float} = uint8; expand_animations: bool = true", 0},
    {"ExtractJpegShape", "contents: string -> image_shape: output_type", "output_type: {int32, int64} = int32", 0},
    {"EncodePng", "image: T -> contents: string", "compression: int = -1; T: {uint8, uint16} = uint8", 0},
    {"EncodeJpeg", "image: uint8 -> contents: string",
     "format: {'', 'grayscale', 'rgb'} = ''; quality: int = 95; progressive: bool = false; optimize_size: bool = "
     "false; chroma_downsampling: bool = true; density_unit: {'in', 'cm'} = 'in'; x_density: int = 300; y_density: int "
     "= 300; xmp_metadata: string = ''",
     0},
    {"EncodeJpegVariableQuality", "images: uint8, quality: int32 -> contents: string", "", 0},
    {0},
};

/* ---- Decoding ---- */

typedef struct DecodeState {
    int64_t channels;
    DataType dtype;
    bool is_image, is_gif, expand; /* DecodeImage, DecodeGif; all frames of a GIF */
    JpegDecodeOptions jpeg;
} DecodeState;

static Error *jpeg_options_init(const Node *node, JpegDecodeOptions *o) {
    Str method;
    int64_t ratio = 1;
    Error *err = node_attr_int(node, "ratio", &ratio);
    if (!err) err = node_attr_bool(node, "fancy_upscaling", &o->fancy_upscaling);
    if (!err) err = node_attr_bool(node, "try_recover_truncated", &o->recover_truncated);
    if (!err) err = node_attr_float(node, "acceptable_fraction", &o->acceptable_fraction);
    if (!err) err = node_attr_string(node, "dct_method", &method);
    if (err) return err;
    if (ratio != 1 && ratio != 2 && ratio != 4 && ratio != 8) {
        return error_invalid("ratio must be 1, 2, 4, or 8, got %lld", (long long)ratio);
    }
    if (method.len > 0 && !str_is(method, "INTEGER_FAST") && !str_is(method, "INTEGER_ACCURATE")) {
        return error_invalid("dct_method must be one of {'', 'INTEGER_FAST', 'INTEGER_ACCURATE'}");
    }
    o->ratio = (int)ratio;
    o->accurate_dct = str_is(method, "INTEGER_ACCURATE");
    return NULL;
}

static Error *decode_init(const Node *node, void *state) {
    DecodeState *st = state;
    Str value;
    *st = (DecodeState){
        .dtype = DT_UINT8, .expand = true, .jpeg = {.ratio = 1, .fancy_upscaling = true, .acceptable_fraction = 1}};
    st->is_image = node_is(node, "DecodeImage");
    st->is_gif = node_is(node, "DecodeGif");
    Error *err = NULL;
    if (node_attr(node, "channels", &value)) err = node_attr_int(node, "channels", &st->channels);
    if (!err && node_attr(node, "dtype", &value)) err = node_attr_type(node, "dtype", &st->dtype);
    if (!err && st->is_image) err = node_attr_bool(node, "expand_animations", &st->expand);
    if (!err && node_attr(node, "ratio", &value)) err = jpeg_options_init(node, &st->jpeg);
    if (!err && st->channels != 0 && st->channels != 1 && st->channels != 3 && st->channels != 4) {
        err = error_invalid("`channels` must be 0, 1, 3 or 4 but got %lld", (long long)st->channels);
    }
    return err;
}

static Error *scalar_contents(const KernelContext *k, Str *out) {
    const Tensor *t = k->in[0];
    if (t->shape.rank != 0)
        return error_invalid("`contents` must be scalar but got shape%s", shape_text(&t->shape).text);
    *out = tstring_str(tensor_str(t));
    return NULL;
}

/* Pixels of 8 bits where the op wants others: uint16 gets 256 times as much, float values from 0 to 1. */
static void put_pixels(KernelContext *k, Image *image, DataType dtype, bool with_frames) {
    const int64_t dims[4] = {image->frames, image->height, image->width, image->channels};
    Shape shape = with_frames ? shape_of(4, dims) : shape_of(3, dims + 1);
    if (dtype == DT_UINT8 || (dtype == DT_UINT16 && image->bytes == 2)) {
        kernel_set_output(k, 0, tensor_wrap(dtype, &shape, image->pixels, free, image->pixels));
        return;
    }
    Tensor *z = kernel_output(k, 0, &shape);
    const uint8_t *narrow = image->pixels;
    const uint16_t *wide = image->pixels;
    for (int64_t i = 0; z && i < z->count; i++) {
        if (dtype == DT_UINT16) {
            ((uint16_t *)z->data)[i] = (uint16_t)(narrow[i] << 8);
        } else {
            tensor_f32(z)[i] = image->bytes == 2 ? (float)wide[i] * (1.0f / 65535) : (float)narrow[i] * (1.0f / 255);
        }
    }
    free(image->pixels);
}

static Error *decode_gif(const KernelContext *k, Str file, Image *image) {
    const DecodeState *st = k->state;
    if (st->channels != 0 && st->channels != 3) {
        return error_invalid("channels must be 0 or 3 for GIF, got %lld", (long long)st->channels);
    }
    Error *err = image_decode_gif(file, st->expand, image);
    if (err || st->is_image || st->is_gif || image->frames == 1) return err;
    err = error_invalid(
        "Got %lld frames, but animated gifs can only be decoded by tf.io.decode_gif or tf.io.decode_image",
        (long long)image->frames);
    free(image->pixels);
    return err;
}

static Error *decode_jpeg(const KernelContext *k, Str file, Image *image) {
    const DecodeState *st = k->state;
    if (st->channels == 4) return error_invalid("JPEG does not support 4 channels");
    JpegDecodeOptions options = st->jpeg;
    options.channels = st->is_gif ? 3 : (int)st->channels;
    if (k->input_count == 2) {
        const Tensor *window = k->in[1];
        if (window->shape.rank != 1)
            return error_invalid("crop_size must be 1-D, got shape %s", shape_text(&window->shape).text);
        if (window->count != 4)
            return error_invalid("crop_size must have four elements %s", shape_text(&window->shape).text);
        const int32_t *v = tensor_i32(window);
        options.crop = true;
        options.crop_y = v[0];
        options.crop_x = v[1];
        options.crop_height = v[2];
        options.crop_width = v[3];
    }
    return image_decode_jpeg(file, &options, image);
}

static const char *const FORMATS[] = {[IMAGE_JPEG] = "JPEG", [IMAGE_PNG] = "PNG", [IMAGE_GIF] = "GIF", [IMAGE_BMP] = "BMP", [IMAGE_WEBP] = "WebP"};

static Error *check_bmp_channels(int64_t channels) {
    return channels == 1 ? error_invalid("`channels` must be 0, 3 or 4 for BMP, but got 1") : NULL;
}

/* The decoders of one format read the others too, where their outputs allow it. */
static Error *decode(KernelContext *k) {
    const DecodeState *st = k->state;
    Str file;
    Image image = {0};
    Error *err = scalar_contents(k, &file);
    if (err) return err;
    ImageFormat format = image_format(file);
    if (!file.len) return error_invalid("Input is empty.");
    if (format == IMAGE_UNKNOWN)
        return error_invalid("Unknown image file format. One of JPEG, JPEG XL, PNG, GIF, BMP, WebP required.");
    if (k->input_count == 2 && format != IMAGE_JPEG) {
        return error_invalid("DecodeAndCropJpeg operation can run on JPEG only, but detected %s.", FORMATS[format]);
    }
    err = format == IMAGE_BMP ? check_bmp_channels(st->channels) : NULL;
    if (err) return err;
    if (format == IMAGE_BMP && !st->is_image) {
        return error_invalid(
            "Trying to decode BMP format using a wrong op. Use `decode_bmp` or `decode_image` instead. Op used: %.*s",
            STR_ARG(k->node->op));
    }
    switch (format) {
        case IMAGE_JPEG:
            err = decode_jpeg(k, file, &image);
            break;
        case IMAGE_PNG:
            err = image_decode_png(file, st->is_gif ? 3 : (int)st->channels, st->dtype == DT_UINT8 ? 1 : 2, &image);
            break;
        case IMAGE_GIF:
            err = decode_gif(k, file, &image);
            break;
        case IMAGE_WEBP:
            if (st->dtype != DT_UINT8 && st->channels != 1) return error_invalid("WebP only supports uint8 for dtype");
            err = image_decode_webp(file, (int)st->channels, st->expand, &image);
            break;
        default:
            err = image_decode_bmp(file, (int)st->channels, &image);
    }
    if (err) return err;
    bool frames = st->is_gif || (st->expand && (format == IMAGE_WEBP || (st->is_image && format == IMAGE_GIF)));
    put_pixels(k, &image, st->dtype, frames);
    return NULL;
}

static Error *decode_bmp(KernelContext *k) {
    static const char *const ops[] = {[IMAGE_JPEG] = "jpeg", [IMAGE_PNG] = "png", [IMAGE_GIF] = "gif", [IMAGE_WEBP] = "webp"};
    const DecodeState *st = k->state;
    Str file;
    Image image = {0};
    Error *err = scalar_contents(k, &file);
    if (err) return err;
    ImageFormat format = image_format(file);
    if (!file.len) return error_invalid("Input is empty.");
    if (format == IMAGE_UNKNOWN)
        return error_invalid("Unknown image file format. One of JPEG, JPEG XL, PNG, GIF, BMP, WebP required.");
    if (format == IMAGE_JPEG && st->channels == 4) return error_invalid("JPEG does not support 4 channels");
    if (format != IMAGE_BMP) {
        return error_invalid(
            "Trying to decode %s format using DecodeBmp op. Use `decode_%s` or `decode_image` instead.", FORMATS[format],
            ops[format]);
    }
    err = check_bmp_channels(st->channels);
    if (!err) err = image_decode_bmp(file, (int)st->channels, &image);
    if (!err) put_pixels(k, &image, DT_UINT8, false);
    return err;
}

static Error *jpeg_shape(KernelContext *k) {
    Str file;
    Image image;
    Error *err = scalar_contents(k, &file);
    if (!err) err = image_jpeg_shape(file, &image);
    if (err) return err;
    Shape shape = shape_vector(3);
    Tensor *z = kernel_output(k, 0, &shape);
    if (!z) return NULL;
    index_put(z, 0, image.height);
    index_put(z, 1, image.width);
    index_put(z, 2, image.channels);
    return NULL;
}

/* ---- Encoding ---- */

static Error *png_init(const Node *node, void *state) {
    int64_t *level = state;
    Error *err = node_attr_int(node, "compression", level);
    if (!err && (*level < -1 || *level > 9)) {
        err = error_invalid("compression should be in [-1,9], got %lld", (long long)*level);
    }
    return err;
}

/* One file for each image of the leading dimensions. */
static Error *encode_png(KernelContext *k) {
    const Tensor *x = k->in[0];
    const int rank = x->shape.rank;
    if (rank < 3) return error_invalid("images must be at least rank 3%s", shape_text(&x->shape).text);
    const int64_t *size = x->shape.dims + rank - 3;
    if (size[2] < 1 || size[2] > 4)
        return error_invalid("image must have 1, 2, 3, or 4 channels, got %lld", (long long)size[2]);
    Shape shape = shape_of(rank - 3, x->shape.dims);
    if (x->count == 0 && shape_count(&shape) > 0)
        return error_invalid("image must have pixels, got shape %s", shape_text(&x->shape).text);
    Tensor *z = kernel_output(k, 0, &shape);
    if (!z) return NULL;
    const int bytes = (int)dtype_size(x->dtype);
    for (int64_t i = 0; i < z->count; i++) {
        StrBuf file = {0};
        const char *from = (const char *)x->data + (size_t)(i * (x->count / z->count)) * (size_t)bytes;
        Error *err = image_encode_png(from, size[0], size[1], size[2], bytes, (int)*(const int64_t *)k->state, &file);
        if (err) {
            strbuf_clear(&file);
            return err;
        }
        size_t len = file.len;
        tstring_take(&tensor_str(z)[i], strbuf_detach(&file), len);
    }
    return NULL;
}

typedef struct EncodeState {
    int channels; /* 0: as the image has */
    JpegEncodeOptions options;
    char *xmp;
} EncodeState;

static Error *jpeg_init(const Node *node, void *state) {
    EncodeState *st = state;
    Str format, unit, xmp;
    int64_t quality = 95, x = 300, y = 300;
    JpegEncodeOptions *o = &st->options;
    Error *err = node_attr_string(node, "format", &format);
    if (!err) err = node_attr_int(node, "quality", &quality);
    if (!err) err = node_attr_bool(node, "progressive", &o->progressive);
    if (!err) err = node_attr_bool(node, "optimize_size", &o->optimize);
    if (!err) err = node_attr_bool(node, "chroma_downsampling", &o->chroma_downsampling);
    if (!err) err = node_attr_string(node, "density_unit", &unit);
    if (!err) err = node_attr_int(node, "x_density", &x);
    if (!err) err = node_attr_int(node, "y_density", &y);
    if (!err) err = node_attr_string(node, "xmp_metadata", &xmp);
    if (err) return err;
    if (quality < 0 || quality > 100) return error_invalid("quality must be in [0,100], got %lld", (long long)quality);
    if (x < 0 || x > 65535 || y < 0 || y > 65535) return error_invalid("the density of a JPEG must be below 65536");
    st->channels = str_is(format, "grayscale") ? 1 : str_is(format, "rgb") ? 3 : 0;
    o->quality = (int)quality;
    o->density_in_cm = str_is(unit, "cm");
    o->x_density = (int)x;
    o->y_density = (int)y;
    st->xmp = str_dup(xmp);
    o->xmp = (Str){st->xmp, xmp.len};
    return NULL;
}
static void jpeg_clear(void *state) {
    EncodeState *st = state;
    free(st->xmp);
    st->xmp = NULL;
}

static Error *put_jpeg(KernelContext *k, const JpegEncodeOptions *options, int channels) {
    const Tensor *x = k->in[0];
    if (x->shape.rank != 3) return error_invalid("image must be 3-dimensional%s", shape_text(&x->shape).text);
    const int64_t *d = x->shape.dims;
    if (channels != 0 && d[2] != channels) {
        return error_invalid("format %s expects %d channels, got %s", channels == 1 ? "grayscale" : "rgb", channels, shape_text(&x->shape).text);
    }
    if (d[2] != 1 && d[2] != 3)
        return error_invalid("image must have 1 or 3 channels, got %s", shape_text(&x->shape).text);
    StrBuf file = {0};
    Error *err = image_encode_jpeg(tensor_u8(x), d[0], d[1], d[2], options, &file);
    Tensor *z = err ? NULL : kernel_output(k, 0, &SHAPE_SCALAR);
    size_t len = file.len;
    if (z) {
        tstring_take(tensor_str(z), strbuf_detach(&file), len);
    } else {
        strbuf_clear(&file);
    }
    return err;
}

static Error *encode_jpeg(KernelContext *k) {
    const EncodeState *st = k->state;
    return put_jpeg(k, &st->options, st->channels);
}

static Error *encode_jpeg_quality(KernelContext *k) {
    if (k->in[1]->shape.rank != 0)
        return error_invalid("quality must be scalar: %s", shape_text(&k->in[1]->shape).text);
    JpegEncodeOptions options = {
        .quality = tensor_i32(k->in[1])[0], .chroma_downsampling = true, .x_density = 300, .y_density = 300};
    return put_jpeg(k, &options, 0);
}

#define DECODE .state_size = sizeof(DecodeState), .init = decode_init, .flags = KERNEL_EXPENSIVE

const KernelDef image_io_cpu[] = {
    {"DecodePng", .run = decode, DECODE},
    {"DecodeJpeg", .run = decode, DECODE},
    {"DecodeAndCropJpeg", .run = decode, DECODE},
    {"DecodeGif", .run = decode, DECODE},
    {"DecodeImage", .run = decode, DECODE},
    {"DecodeWebP", .run = decode, DECODE},
    {"DecodeBmp", .run = decode_bmp, DECODE},
    {"ExtractJpegShape", .run = jpeg_shape},
    {"EncodePng", .run = encode_png, .state_size = sizeof(int64_t), .init = png_init, .flags = KERNEL_EXPENSIVE},
    {"EncodeJpeg", .run = encode_jpeg, .state_size = sizeof(EncodeState), .init = jpeg_init, .clear = jpeg_clear,
     .flags = KERNEL_EXPENSIVE},
    {"EncodeJpegVariableQuality", .run = encode_jpeg_quality, .flags = KERNEL_EXPENSIVE},
    {0},
};
