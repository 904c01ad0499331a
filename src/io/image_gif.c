/* image_gif.c: GIF by giflib, in two passes: how many frames of what size, then their pixels. Of a file that is cut off or broken the whole frames before that are the image. */
#include <gif_lib.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "io/image.h"

static int read_bytes(GifFileType *gif, GifByteType *to, int n) {
    Str *rest = gif->UserData;
    size_t count = (size_t)n < rest->len ? (size_t)n : rest->len;
    memcpy(to, rest->ptr, count);
    *rest = str_slice(*rest, count, rest->len);
    return (int)count;
}

/* What the passes know. */
typedef struct GifWalk {
    GifFileType *gif;
    Image *image;
    int64_t frame, limit; /* no frame from `limit` on is looked at */
    bool is_broken;       /* nothing more can be read */
    int bad_color, colors; /* a colour that is not among so many, when colors > 0 */
    int transparent; /* colour index of the next frame that shows what was there; -1: none */
    bool all_frames;
    GifPixelType *line;
} GifWalk;

static Error *gif_bad(const char *what) {
    return error_invalid("%s", what);
}

/* giflib failed; the frames so far count. */
static Error *gif_broken(GifWalk *w) {
    w->is_broken = true;
    if (w->frame > 0) return NULL;
    const char *why = GifErrorString(w->gif->Error);
    return error_invalid("failed to slurp gif file: %s", why ? why : "?");
}

static Error *skip_pixels(GifWalk *w) {
    int code_size = 0;
    GifByteType *block = NULL;
    if (DGifGetCode(w->gif, &code_size, &block) != GIF_OK) return gif_broken(w);
    while (block) {
        if (DGifGetCodeNext(w->gif, &block) != GIF_OK) return gif_broken(w);
    }
    return NULL;
}

/* First pass: the image is as large as its largest frame. */
static Error *measure_frame(GifWalk *w) {
    const GifImageDesc d = w->gif->Image;
    Error *err = skip_pixels(w);
    if (err || w->is_broken) return err;
    if (d.Height > w->image->height) w->image->height = d.Height;
    if (d.Width > w->image->width) w->image->width = d.Width;
    w->image->frames = w->all_frames ? w->frame + 1 : 1;
    return NULL;
}

/* Row y of the frame over what is in the image; columns and rows outside of the image are dropped. */
static void draw_row(GifWalk *w, int y) {
    const GifImageDesc *d = &w->gif->Image;
    const ColorMapObject *colors = d->ColorMap ? d->ColorMap : w->gif->SColorMap;
    const int64_t row = (int64_t)d->Top + y;
    if (row < 0 || row >= w->image->height) return;
    uint8_t *to = (uint8_t *)w->image->pixels + ((w->frame * w->image->height + row) * w->image->width) * 3;
    for (int x = 0; x < d->Width; x++) {
        const int64_t at = (int64_t)d->Left + x;
        const int index = w->line[x];
        if (at < 0 || at >= w->image->width || index == w->transparent) continue;
        if (index >= colors->ColorCount) {
            if (w->colors == 0) w->bad_color = index, w->colors = colors->ColorCount;
            continue;
        }
        to[3 * at] = colors->Colors[index].Red;
        to[3 * at + 1] = colors->Colors[index].Green;
        to[3 * at + 2] = colors->Colors[index].Blue;
    }
}

/* Second pass. A frame starts as the one before it, the first one black. */
static Error *draw_frame(GifWalk *w) {
    const GifImageDesc *d = &w->gif->Image;
    if (w->frame >= w->image->frames) return skip_pixels(w);
    if (!d->ColorMap && !w->gif->SColorMap) return error_invalid("missing color map for frame %lld", (long long)w->frame);
    const size_t size = (size_t)(w->image->height * w->image->width * 3);
    uint8_t *to = (uint8_t *)w->image->pixels + (size_t)w->frame * size;
    if (w->frame == 0) {
        memset(to, 0, size);
    } else {
        memcpy(to, to - size, size);
    }
    static const int first[] = {0, 4, 2, 1}, step[] = {8, 8, 4, 2}; /* of interlaced lines */
    for (int pass = 0; pass < (d->Interlace ? 4 : 1); pass++) {
        for (int y = d->Interlace ? first[pass] : 0; y < d->Height; y += d->Interlace ? step[pass] : 1) {
            if (DGifGetLine(w->gif, w->line, d->Width) != GIF_OK) return gif_broken(w);
            draw_row(w, y);
        }
    }
    return NULL;
}

static Error *read_extension(GifWalk *w) {
    int code = 0;
    GifByteType *block = NULL;
    if (DGifGetExtension(w->gif, &code, &block) != GIF_OK) return gif_broken(w);
    while (block) {
        GraphicsControlBlock control;
        if (code == GRAPHICS_EXT_FUNC_CODE && DGifExtensionToGCB(block[0], block + 1, &control) == GIF_OK) {
            w->transparent = control.TransparentColor;
        }
        if (DGifGetExtensionNext(w->gif, &block) != GIF_OK) return gif_broken(w);
    }
    return NULL;
}

static Error *walk(GifWalk *w, Error *(*on_frame)(GifWalk *)) {
    w->frame = 0;
    w->transparent = NO_TRANSPARENT_COLOR;
    w->is_broken = false;
    Error *err = NULL;
    while (!err && !w->is_broken && w->frame < w->limit) {
        GifRecordType type;
        if (DGifGetRecordType(w->gif, &type) != GIF_OK) return gif_broken(w);
        if (type == TERMINATE_RECORD_TYPE) return NULL;
        if (type == EXTENSION_RECORD_TYPE) err = read_extension(w);
        if (type != IMAGE_DESC_RECORD_TYPE) continue;
        if (DGifGetImageDesc(w->gif) != GIF_OK) return gif_broken(w);
        if (w->gif->Image.Width <= 0 || w->gif->Image.Height <= 0) return gif_bad("a frame has no pixels");
        err = on_frame(w);
        if (!w->is_broken) w->frame++;
        w->transparent = NO_TRANSPARENT_COLOR;
    }
    return err;
}

static Error *pass(GifWalk *w, Str file, Error *(*on_frame)(GifWalk *)) {
    int code = 0;
    Str rest = file;
    w->gif = DGifOpen(&rest, read_bytes, &code);
    if (!w->gif) {
        const char *why = GifErrorString(code);
        return error_invalid("failed to open gif file: %s", why ? why : "?");
    }
    Error *err = walk(w, on_frame);
    DGifCloseFile(w->gif, &code);
    w->gif = NULL;
    return err;
}

/* The pixels of the frames that were measured; *whole is how many there are, less where a frame cannot be decoded. */
static Error *draw(GifWalk *w, Str file, int64_t *whole) {
    Error *err = image_alloc(w->image);
    if (err) return err;
    w->line = xmalloc((size_t)w->image->width);
    err = pass(w, file, draw_frame);
    free(w->line);
    *whole = w->frame;
    if (!err && *whole >= w->image->frames && w->colors > 0)
        err = error_invalid("found color index %d outside of color map range %d", w->bad_color, w->colors);
    return err;
}

Error *image_decode_gif(Str file, bool all_frames, Image *out) {
    GifWalk w = {.image = out, .all_frames = all_frames, .limit = INT64_MAX};
    Error *err = NULL;
    int64_t whole = 0;
    do {
        *out = (Image){.channels = 3, .bytes = 1};
        err = pass(&w, file, measure_frame);
        if (!err && out->frames == 0) err = gif_bad("gif file does not contain any image");
        if (!err) err = draw(&w, file, &whole);
        w.limit = whole;
        if (err || whole < out->frames) {
            free(out->pixels);
            out->pixels = NULL;
        }
    } while (!err && whole < out->frames);
    if (!err) return NULL;
    Error *named = error_new(err->code, "Invalid GIF data (size %zu), %s", file.len, err->message);
    error_free(err);
    return named;
}
