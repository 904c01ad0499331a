/* http2_input.c: which of the bytes that come are nghttp2's and which are brief frames, and where the next ones are best read to. */
#include <string.h>

#include "net/http2_internal.h"

enum {
    DIRECT_BYTES = 32768,  /* more of a body's frame than this to come: read in place */
    BETWEEN_BYTES = 16384, /* to read while a large frame may come: its header, and little of it to copy */
    BULK_HOPE = 8,         /* a large frame was among so many: there may be one soon */
};

/* ---- Reading in place ---- */

void http2_expect_data(Http2 *h, int32_t stream, size_t bytes) {
    h->data_stream = stream;
    h->data_left = bytes;
    if (bytes > DIRECT_BYTES)
        h->bulk_hope = BULK_HOPE;
    else if (h->bulk_hope > 0)
        h->bulk_hope--;
}

bool http2_input_place(Http2 *h, char **to, size_t *len) {
    Http2Stream *s = h->data_left > DIRECT_BYTES && h->events->room ? http2_find(h, h->data_stream) : NULL;
    size_t room = s ? h->events->room(h->arg, s, to) : 0;
    if (room > 0)
        *len = room < h->data_left ? room : h->data_left;
    else
        *len = h->bulk_hope > 0 && h->data_left == 0 ? BETWEEN_BYTES : SIZE_MAX;
    return room > 0;
}

/* ---- Frames ---- */

static Error *feed_nghttp2(Http2 *h, Str bytes) {
    ssize_t n = bytes.len ? nghttp2_session_mem_recv(h->session, (const uint8_t *)bytes.ptr, bytes.len) : 0;
    return n < 0 ? error_new(CODE_UNAVAILABLE, "HTTP/2 input: %s", nghttp2_strerror((int)n)) : NULL;
}

static size_t frame_size(const char *header) {
    const uint8_t *at = (const uint8_t *)header;
    return (size_t)at[0] << 16 | (size_t)at[1] << 8 | at[2];
}

static bool is_brief_frame(const char *header) {
    return (uint8_t)header[3] == BRIEF_FRAME;
}

/* How many of the bytes are nghttp2's: up to a brief frame, or to a header that is not all there. */
static size_t pass_others(Http2 *h, Str bytes) {
    size_t n = 0;
    for (;;) {
        size_t part = h->in.left < bytes.len - n ? h->in.left : bytes.len - n;
        n += part;
        h->in.left -= part;
        if (bytes.len - n < FRAME_HEADER_BYTES || is_brief_frame(bytes.ptr + n)) return n;
        h->in.left = FRAME_HEADER_BYTES + frame_size(bytes.ptr + n);
    }
}

static Error *malformed(void) {
    return error_new(CODE_UNAVAILABLE, "HTTP/2 input: a brief frame is malformed");
}

/* The header of a frame is there. */
static Error *begin_frame(Http2 *h) {
    h->in.header_len = 0;
    h->in.left = frame_size(h->in.header);
    h->in.is_brief = is_brief_frame(h->in.header);
    if (!h->in.is_brief) return feed_nghttp2(h, (Str){h->in.header, FRAME_HEADER_BYTES});
    if (h->in.left > HTTP2_FRAME_LIMIT || !brief_begin(h, h->in.header)) return malformed();
    http2_expect_data(h, -(int32_t)h->brief.in.number, h->in.left);
    return h->in.left || brief_end(h) ? NULL : malformed();
}

static Error *feed_brief(Http2 *h, Str bytes) {
    h->in.left -= bytes.len;
    h->data_left -= bytes.len < h->data_left ? bytes.len : h->data_left;
    return brief_data(h, bytes) && (h->in.left || brief_end(h)) ? NULL : malformed();
}

/* nghttp2 sees all but the brief frames. */
Error *http2_feed(Http2 *h, Str bytes) {
    Error *err = NULL;
    while (bytes.len && !err) {
        size_t n;
        if (h->in.is_brief && h->in.left) {
            n = h->in.left < bytes.len ? h->in.left : bytes.len;
            err = feed_brief(h, str_slice(bytes, 0, n));
        } else if (h->in.header_len || (!(n = pass_others(h, bytes)) && !h->in.left)) {
            n = FRAME_HEADER_BYTES - h->in.header_len < bytes.len ? FRAME_HEADER_BYTES - h->in.header_len : bytes.len;
            memcpy(h->in.header + h->in.header_len, bytes.ptr, n);
            h->in.header_len += n;
            if (h->in.header_len == FRAME_HEADER_BYTES) err = begin_frame(h);
        } else {
            h->in.is_brief = false;
            err = feed_nghttp2(h, str_slice(bytes, 0, n));
        }
        bytes = str_slice(bytes, n, bytes.len);
    }
    return err;
}
