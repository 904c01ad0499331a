/* http2.h: Http2, one HTTP/2 connection as a pure function of bytes: feed input, get events, take output. No I/O. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/str.h"
#include "net/slice.h"

typedef struct Http2 Http2;
typedef struct Http2Stream Http2Stream; /* valid until its `closed` event */

typedef struct Http2Header {
    Str name, value;
} Http2Header;

/* Error codes of RFC 9113 that are sent or told apart here. */
enum {
    HTTP2_NO_ERROR = 0,
    HTTP2_INTERNAL_ERROR = 2,
    HTTP2_REFUSED_STREAM = 7,
    HTTP2_CANCEL = 8,
    HTTP2_ENHANCE_YOUR_CALM = 11,
    HTTP2_INADEQUATE_SECURITY = 12,
};

/* What the peer did. Called inside http2_feed and http2_take_output, which must not be called from them; everything
 * else may be. */
typedef struct Http2Events {
    void (*opened)(void *arg, Http2Stream *s); /* (optional) server: a request begins */
    void (*header)(void *arg, Http2Stream *s, Str name, Str value);
    void (*headers_end)(void *arg, Http2Stream *s); /* of headers, then of trailers */
    void (*data)(void *arg, Http2Stream *s, Str bytes);
    /* (optional) Where the next bytes of a stream will end up: *to, with room for the returned number of bytes. They may
     * come to `data` there already. */
    size_t (*room)(void *arg, Http2Stream *s, char **to);
    void (*ended)(void *arg, Http2Stream *s);                 /* the peer has sent all */
    void (*closed)(void *arg, Http2Stream *s, uint32_t code); /* the stream is gone */
    void (*ready)(void *arg);                                 /* first SETTINGS */
    void (*goaway)(void *arg, uint32_t code, Str debug);      /* (optional) no new streams */
} Http2Events;

enum { HTTP2_PING_SIZE = 8 };
typedef void Http2Ping(void *arg, const uint8_t payload[HTTP2_PING_SIZE]); /* the peer's, not the answer to ours */

Http2 *http2_client_new(const Http2Events *events, void *arg);
Http2 *http2_server_new(const Http2Events *events, void *arg);
void http2_free(Http2 *h); /* streams still open vanish without an event */

Error *http2_feed(Http2 *h, Str bytes) MUST_CHECK; /* an error: send what http2_take_output gives, then close */

/* Where the next input is best read to, and how much of it: into the message it belongs to in the midst of a large DATA
 * frame (returns true), or elsewhere. */
bool http2_input_place(Http2 *h, char **to, size_t *len);

/* Appends what must be written now, in order, about `limit` bytes at most; call again after writing. Payloads are
 * references to the messages sent. */
Error *http2_take_output(Http2 *h, Message *out, size_t limit) MUST_CHECK;
bool http2_is_done(const Http2 *h);      /* went away and no stream is left */
bool http2_peer_is_rill(const Http2 *h); /* the peer said so; see http2.c */
size_t http2_stream_count(const Http2 *h);

/* May a request be brief (http2_brief.c)? The peer is a Rill server, and the body not too long. */
bool http2_takes_brief(const Http2 *h, const Message *body);
/* As http2_request, cheaper. Of the headers those are given that other gRPC requests do not have: the path, a timeout. */
Http2Stream *http2_request_briefly(Http2 *h, const Http2Header *headers, size_t count, Message *body, void *user);
/* The same for a message without an answer. False, and body is as it was, when the connection has no stream numbers left. */
bool http2_note(Http2 *h, const Http2Header *headers, size_t count, Message *body);
bool http2_stream_is_brief(const Http2Stream *s); /* such a request, here or of the peer */
bool http2_stream_is_note(const Http2Stream *s);  /* it closes when it has ended, without an answer */

/* Sends a request and ends our side; takes body. NULL when the connection has no stream numbers left. */
Http2Stream *http2_request(Http2 *h, const Http2Header *headers, size_t count, Message *body, void *user);

/* Sends headers, body and trailers; takes body. With body NULL the headers are all. A brief stream is not told the headers and trailers
 * that all answers with a body have: only those of an error. */
void http2_respond(Http2 *h, Http2Stream *s, const Http2Header *headers, size_t count, Message *body,
                   const Http2Header *trailers, size_t trailer_count);
void http2_reset(Http2 *h, Http2Stream *s, uint32_t code); /* `closed` follows */
void http2_ping(Http2 *h, const uint8_t *payload); /* NULL: zeros */
void http2_on_ping(Http2 *h, Http2Ping *ping, void *arg);
void http2_goaway(Http2 *h, uint32_t code); /* refuses new streams */

/* Before a request or an answer is sent: release(owner) comes when the stream is gone. An answer that is held does not end
 * before http2_let_end: until then the peer, who has all of the body, may want something of the owner's. */
void http2_stream_keep(Http2Stream *s, void (*release)(void *), void *owner);
void http2_stream_hold(Http2Stream *s);
void http2_let_end(Http2 *h, int32_t stream_id);
int32_t http2_stream_id(const Http2Stream *s);

void *http2_stream_user(const Http2Stream *s);
void http2_stream_set_user(Http2Stream *s, void *user);
