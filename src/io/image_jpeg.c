/* image_jpeg.c: JPEG by libjpeg. Its errors jump back to the setjmp of the running function; what they must free lives
 * in a struct of the caller. */
#include <setjmp.h>
#include <stdio.h> /* jpeglib.h wants it */
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#include "base/memory.h"
#include "io/image.h"

typedef struct JpegErrors {
    struct jpeg_error_mgr base; /* first: libjpeg knows this part */
    jmp_buf jump;
} JpegErrors;

static void on_error(j_common_ptr c) {
    longjmp(((JpegErrors *)c->err)->jump, 1);
}
static void on_message(j_common_ptr c) {
    (void)c;
}
static struct jpeg_error_mgr *errors_init(JpegErrors *e) {
    struct jpeg_error_mgr *base = jpeg_std_error(&e->base);
    base->error_exit = on_error;
    base->output_message = on_message;
    return base;
}

/* ---- Reading ---- */

enum { AGAIN_MAX = 4096 };

typedef struct JpegReader {
    struct jpeg_decompress_struct c;
    JpegErrors errors;
    struct jpeg_source_mgr source;
    bool recover;
    const JOCTET *again; /* where reading went on last because there was no more */
    int times;
    uint8_t *line; /* four channels, or a line to be cropped */
} JpegReader;

static void source_nothing(j_decompress_ptr c) {
    (void)c;
}
/* The data is over: an end marker when what is missing may be made up, else reading stops. Within a block its bytes are read again, as TensorFlow
   does; so often that any block is full. */
static boolean source_more(j_decompress_ptr c) {
    static const JOCTET end[] = {0xff, JPEG_EOI};
    JpegReader *r = c->client_data;
    if (!r->recover) return FALSE;
    r->times = c->src->next_input_byte == r->again ? r->times + 1 : 0;
    r->again = c->src->next_input_byte;
    if (c->src->bytes_in_buffer && r->times < AGAIN_MAX) return TRUE;
    c->src->next_input_byte = end;
    c->src->bytes_in_buffer = sizeof end;
    return TRUE;
}
static void source_skip(j_decompress_ptr c, long n) {
    struct jpeg_source_mgr *s = c->src;
    if (n <= 0) return;
    size_t skip = (size_t)n < s->bytes_in_buffer ? (size_t)n : s->bytes_in_buffer;
    s->next_input_byte += skip;
    s->bytes_in_buffer -= skip;
}

static void reader_init(JpegReader *r, Str file) {
    r->c.err = errors_init(&r->errors);
    jpeg_create_decompress(&r->c); /* no setjmp has run: the caller's covers it */
    r->source = (struct jpeg_source_mgr){.init_source = source_nothing,
                                         .fill_input_buffer = source_more,
                                         .skip_input_data = source_skip,
                                         .resync_to_restart = jpeg_resync_to_restart,
                                         .term_source = source_nothing,
                                         .next_input_byte = (const JOCTET *)file.ptr,
                                         .bytes_in_buffer = file.len};
    r->c.src = &r->source;
    r->c.client_data = r;
}

/* CMYK, which Adobe's programs store inverted, to RGB. */
static void cmyk_line(const uint8_t *from, uint8_t *to, int64_t width, bool inverted) {
    for (int64_t x = 0; x < width; x++, from += 4, to += 3) {
        for (int i = 0; i < 3; i++) {
            int ink = inverted ? from[i] : 255 - from[i], black = inverted ? from[3] : 255 - from[3];
            to[i] = (uint8_t)(black * ink / 255);
        }
    }
}

static Error *jpeg_bad(void) {
    return error_invalid("jpeg::Uncompress failed. Invalid JPEG data or crop window.");
}

/* Header read, decoder started: the sizes of the result. */
static Error *start_decoder(JpegReader *r, const JpegDecodeOptions *o, Image *out) {
    struct jpeg_decompress_struct *c = &r->c;
    if (jpeg_read_header(c, TRUE) != JPEG_HEADER_OK) return jpeg_bad();
    out->channels = o->channels ? o->channels : c->num_components < 3 ? c->num_components : 3;
    if (out->channels == 1) {
        c->out_color_space = JCS_GRAYSCALE;
    } else if (out->channels == 3) {
        bool cmyk = c->jpeg_color_space == JCS_CMYK || c->jpeg_color_space == JCS_YCCK;
        c->out_color_space = cmyk ? JCS_CMYK : JCS_RGB;
    } else {
        return jpeg_bad();
    }
    c->do_fancy_upsampling = o->fancy_upscaling;
    c->scale_num = 1;
    c->scale_denom = (unsigned)o->ratio;
    c->dct_method = o->accurate_dct ? JDCT_ISLOW : JDCT_IFAST;
    if ((int64_t)c->image_width * c->image_height > (1 << 29)) return error_invalid("The JPEG image is too large");
    if (!jpeg_start_decompress(c)) return jpeg_bad();
    out->height = o->crop ? o->crop_height : c->output_height;
    out->width = o->crop ? o->crop_width : c->output_width;
    if (o->crop && (o->crop_y < 0 || o->crop_x < 0 || o->crop_height <= 0 || o->crop_width <= 0 ||
                    o->crop_y > (int64_t)c->output_height - o->crop_height ||
                    o->crop_x > (int64_t)c->output_width - o->crop_width)) {
        return jpeg_bad();
    }
    return NULL;
}

/* Lines above the crop window are skipped, those below are not read; columns are read from a block's border on. */
static Error *read_lines(JpegReader *r, const JpegDecodeOptions *o, Image *out) {
    struct jpeg_decompress_struct *c = &r->c;
    const bool cmyk = c->out_color_space == JCS_CMYK;
    const size_t row = (size_t)(out->width * out->channels);
    int64_t left = 0;
    r->line = try_alloc((size_t)c->output_width * 4);
    if (!r->line) return error_new(CODE_RESOURCE_EXHAUSTED, "Not enough memory for an image");
    if (o->crop) {
        JDIMENSION x = (JDIMENSION)o->crop_x, width = (JDIMENSION)o->crop_width;
        jpeg_crop_scanline(c, &x, &width);
        left = o->crop_x - x;
        if (jpeg_skip_scanlines(c, (JDIMENSION)o->crop_y) != o->crop_y) return jpeg_bad();
    }
    for (int64_t y = 0; y < out->height; y++) {
        JSAMPROW line = r->line;
        if (jpeg_read_scanlines(c, &line, 1) != 1) {
            if (!o->recover_truncated || (float)y < o->acceptable_fraction * (float)out->height) return jpeg_bad();
            memset((uint8_t *)out->pixels + (size_t)y * row, 0, (size_t)(out->height - y) * row);
            return NULL;
        }
        uint8_t *to = (uint8_t *)out->pixels + (size_t)y * row;
        if (cmyk) {
            cmyk_line(line + left * 4, to, out->width, c->saw_Adobe_marker);
        } else {
            memcpy(to, line + left * out->channels, row);
        }
    }
    return NULL;
}

static Error *decode(JpegReader *r, Str file, const JpegDecodeOptions *o, Image *out) {
    if (setjmp(r->errors.jump)) return jpeg_bad();
    reader_init(r, file);
    Error *err = start_decoder(r, o, out);
    if (!err) err = image_alloc(out);
    if (!err) err = read_lines(r, o, out);
    return err;
}

Error *image_decode_jpeg(Str file, const JpegDecodeOptions *options, Image *out) {
    JpegReader *r = xcalloc(1, sizeof *r);
    *out = (Image){.frames = 1, .bytes = 1};
    r->recover = options->recover_truncated;
    Error *err = decode(r, file, options, out);
    if (err) {
        free(out->pixels);
        out->pixels = NULL;
    }
    jpeg_destroy_decompress(&r->c);
    free(r->line);
    free(r);
    return err;
}

static Error *read_shape(JpegReader *r, Str file, Image *out) {
    if (setjmp(r->errors.jump)) return error_invalid("Invalid JPEG data, size %zu", file.len);
    reader_init(r, file);
    if (jpeg_read_header(&r->c, TRUE) != JPEG_HEADER_OK) return error_invalid("Invalid JPEG data, size %zu", file.len);
    *out = (Image){.frames = 1,
                   .height = r->c.image_height,
                   .width = r->c.image_width,
                   .channels = r->c.num_components,
                   .bytes = 1};
    return NULL;
}

Error *image_jpeg_shape(Str file, Image *out) {
    JpegReader *r = xcalloc(1, sizeof *r);
    Error *err = read_shape(r, file, out);
    jpeg_destroy_decompress(&r->c);
    free(r);
    return err;
}

/* ---- Writing ---- */

typedef struct JpegWriter {
    struct jpeg_compress_struct c;
    JpegErrors errors;
    unsigned char *file; /* malloced by libjpeg */
    unsigned long size;
} JpegWriter;

static Error *encode(JpegWriter *w, const uint8_t *pixels, int64_t height, int64_t width, int64_t channels,
                     const JpegEncodeOptions *o) {
    struct jpeg_compress_struct *c = &w->c;
    c->err = errors_init(&w->errors);
    if (setjmp(w->errors.jump)) return error_internal("JPEG encoding failed");
    jpeg_create_compress(c);
    jpeg_mem_dest(c, &w->file, &w->size);
    c->image_width = (JDIMENSION)width;
    c->image_height = (JDIMENSION)height;
    c->input_components = (int)channels;
    c->in_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(c);
    if (o->optimize) c->optimize_coding = TRUE;
    c->density_unit = o->density_in_cm ? 2 : 1;
    c->X_density = (UINT16)o->x_density;
    c->Y_density = (UINT16)o->y_density;
    jpeg_set_quality(c, o->quality, TRUE);
    if (o->progressive) jpeg_simple_progression(c);
    if (!o->chroma_downsampling) {
        for (int i = 0; i < c->num_components; i++) c->comp_info[i].h_samp_factor = c->comp_info[i].v_samp_factor = 1;
    }
    jpeg_start_compress(c, TRUE);
    if (o->xmp.len > 0) {
        static const char name[] = "http://ns.adobe.com/xap/1.0/"; /* with its 0 */
        StrBuf marker = {0};
        strbuf_add(&marker, (Str){name, sizeof name});
        strbuf_add(&marker, o->xmp);
        jpeg_write_marker(c, JPEG_APP0 + 1, (const JOCTET *)marker.ptr, (unsigned)marker.len);
        strbuf_clear(&marker);
    }
    while (c->next_scanline < c->image_height) {
        JSAMPROW row = (JSAMPROW)(pixels + (size_t)c->next_scanline * (size_t)(width * channels));
        jpeg_write_scanlines(c, &row, 1);
    }
    jpeg_finish_compress(c);
    return NULL;
}

Error *image_encode_jpeg(const uint8_t *pixels, int64_t height, int64_t width, int64_t channels,
                         const JpegEncodeOptions *options, StrBuf *out) {
    if (channels != 1 && channels != 3) {
        return error_invalid("image must have 1 or 3 channels, got %lld", (long long)channels);
    }
    if (height < 1 || width < 1 || height > JPEG_MAX_DIMENSION || width > JPEG_MAX_DIMENSION) {
        return error_new(CODE_INTERNAL, "JPEG encoding failed");
    }
    if (options->quality < 0 || options->quality > 100) {
        return error_invalid("quality must be in [0,100], got %d", options->quality);
    }
    if (options->xmp.len > 65000) return error_invalid("xmp_metadata is too long for a JPEG");
    JpegWriter *w = xcalloc(1, sizeof *w);
    Error *err = encode(w, pixels, height, width, channels, options);
    if (!err) strbuf_add(out, (Str){(const char *)w->file, w->size});
    jpeg_destroy_compress(&w->c);
    free(w->file);
    free(w);
    return err;
}
