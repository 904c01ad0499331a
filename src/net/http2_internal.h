/* http2_internal.h: what http2.c (over nghttp2) and http2_brief.c (beside it) share: streams, bodies, output. */
#pragma once
#include <nghttp2/nghttp2.h>

#include "base/hashmap.h"
#include "base/list.h"
#include "base/refcount.h"
#include "net/http2.h"

enum {
    HTTP2_FRAME_LIMIT = 4 << 20,      /* received */
    HTTP2_SEND_FRAME_LIMIT = 1 << 20, /* so that streams take turns */
    HTTP2_HEADER_LIST_LIMIT = 16384,  /* a stream with more is reset */
    HTTP2_COPY_LIMIT = 4096,          /* shorter pieces are cheaper to copy than to send as an own piece */
    HTTP2_RESET_BURST = 20000,        /* a step with thousands of parked calls may be cancelled at once */
    HTTP2_RESETS_PER_SECOND = 2000,
    FRAME_HEADER_BYTES = 9,
    BRIEF_FRAME = 0xf2,               /* a type for private use */
};

/* What is being sent on a stream. */
typedef struct Body {
    RefCount refs;
    Message message;
} Body;

struct Http2Stream {
    List link;  /* in Http2.streams */
    int32_t id; /* negative: brief */
    void *user;
    size_t header_bytes; /* of the block being received */
    Body *body;
    size_t slice, offset, left; /* what of the body was not sent yet */
    Http2Header *trailers;      /* one allocation with the bytes */
    size_t trailer_count;
    bool is_held;
    void (*release)(void *owner); /* (optional) when the stream is gone */
    void *owner;

    /* Of a brief one. */
    List turn;   /* in Brief.sending or Brief.done */
    StrBuf head; /* to be sent before the body */
    bool is_failed; /* the answer was an error */
    bool is_note;   /* there is no answer */
    uint32_t code;  /* why it is done */
};

/* Brief streams of a connection; see http2_brief.c. */
typedef struct Brief {
    IntMap streams; /* by number */
    List sending;   /* have a body that was not sent */
    List done;      /* will be closed when output is taken */
    uint32_t last_number;
    int64_t resets_left; /* that the peer may send; more with time */
    int64_t reset_ns;    /* the last one; 0: none */
    struct {
        uint32_t number;
        uint8_t flags;
        size_t head_len; /* known when `head` has begun */
        StrBuf head;     /* the first bytes of the frame, until all of its head is there */
        bool is_body;    /* what comes now */
    } in; /* the frame being received */
} Brief;

struct Http2 {
    nghttp2_session *session;
    const Http2Events *events;
    void *arg;
    Http2Ping *ping; /* (optional) */
    void *ping_arg;
    List streams;
    size_t stream_count;
    bool is_server, is_ready, peer_is_rill;
    bool is_going, is_broken; /* a GOAWAY was sent: with an error */
    struct {
        char header[FRAME_HEADER_BYTES]; /* of the next frame, as much as came of it */
        size_t header_len;
        size_t left; /* of this frame */
        bool is_brief;
    } in;
    Message *out; /* while taking output */
    size_t out_limit;
    StrBuf small; /* output not yet in `out`; whole frames while no output is taken */
    int32_t data_stream; /* of the last frame, when it was DATA or brief */
    size_t data_left;    /* of that frame; 0 when it was padded */
    int bulk_hope;       /* small DATA frames until one no longer expects a large one */
    Brief brief;
};

Http2Stream *http2_stream_new(Http2 *h, void *user);
void http2_stream_free(Http2 *h, Http2Stream *s);
void http2_stream_take_body(Http2Stream *s, Message *body);
Http2Stream *http2_find(Http2 *h, int32_t id); /* or NULL */
void http2_expect_data(Http2 *h, int32_t stream, size_t bytes); /* a frame with so much of a body begins */
void http2_append_body(Http2 *h, Http2Stream *s, size_t n); /* the next n bytes of it, to the output that is being taken */

void brief_init(Http2 *h);
void brief_clear(Http2 *h); /* after the streams */
void brief_forget(Http2 *h, Http2Stream *s); /* it is about to be freed */
Http2Stream *brief_find(Http2 *h, uint32_t number); /* or NULL */
void brief_respond(Http2 *h, Http2Stream *s, const Http2Header *headers, size_t count, Message *body);
void brief_reset(Http2 *h, Http2Stream *s, uint32_t code);
void brief_let_end(Http2 *h, Http2Stream *s);
void brief_take_output(Http2 *h);

/* What comes. False: the peer has broken the rules. */
bool brief_begin(Http2 *h, const char header[FRAME_HEADER_BYTES]);
bool brief_data(Http2 *h, Str bytes);
bool brief_end(Http2 *h);
