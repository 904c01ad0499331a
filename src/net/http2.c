/* http2.c: the bridge between nghttp2 and our events, messages and limits.

   Payloads are never copied: nghttp2 makes the 9 bytes of a DATA frame's header, and send_data appends them and a
   reference to the message's own memory to the output. A stream's body lives until the last such reference is gone.
   What comes in the midst of a large DATA frame is read to where the message wants it, and fed from there.

   Windows are given back as data arrives, since all of it is kept by the receiver anyway (up to its message limit):
   a stream that nobody reads cannot block another one.

   A Rill server greets with a PING that says so. A Rill client then knows that it may probe a silent connection often,
   which other gRPC servers punish, and that it may open brief streams (http2_brief.c), of which nghttp2 knows nothing. */
#include "net/http2_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum {
    STREAM_WINDOW = 16 << 20,
    CONNECTION_WINDOW = 128 << 20,
    HEADER_LIST_FLOOD = 65536,  /* a connection with more is closed */
    MAX_HEADERS = 16,           /* sent at once */
    MAX_CONTINUATIONS = 8,
};

static const uint8_t GREETING[HTTP2_PING_SIZE] = "rill/2\0"; /* 1: without brief streams */

/* ---- Bodies and streams ---- */

static void body_unref(void *arg) {
    Body *b = arg;
    if (!b || !refcount_dec(&b->refs)) return;
    message_clear(&b->message);
    free(b);
}

Http2Stream *http2_stream_new(Http2 *h, void *user) {
    Http2Stream *s = xcalloc(1, sizeof *s);
    s->user = user;
    list_add(&h->streams, &s->link);
    h->stream_count++;
    return s;
}

void http2_stream_free(Http2 *h, Http2Stream *s) {
    list_remove(&s->link);
    h->stream_count--;
    if (http2_stream_is_brief(s)) brief_forget(h, s);
    body_unref(s->body);
    if (s->release) s->release(s->owner);
    free(s->trailers);
    free(s);
}

void http2_stream_take_body(Http2Stream *s, Message *body) {
    s->body = xcalloc(1, sizeof *s->body);
    refcount_init(&s->body->refs);
    s->body->message = message_move(body);
    s->left = s->body->message.len;
}

static void stream_copy_trailers(Http2Stream *s, const Http2Header *trailers, size_t count) {
    size_t bytes = count * sizeof *trailers;
    for (size_t i = 0; i < count; i++) bytes += trailers[i].name.len + trailers[i].value.len;
    s->trailers = xmalloc(bytes);
    s->trailer_count = count;
    char *at = (char *)(s->trailers + count);
    for (size_t i = 0; i < count; i++) {
        Str name = trailers[i].name, value = trailers[i].value;
        memcpy(at, name.ptr, name.len);
        s->trailers[i].name = (Str){at, name.len};
        at += name.len;
        memcpy(at, value.ptr, value.len);
        s->trailers[i].value = (Str){at, value.len};
        at += value.len;
    }
}

static size_t fill_headers(nghttp2_nv *out, const Http2Header *headers, size_t count) {
    if (count > MAX_HEADERS) count = MAX_HEADERS;
    for (size_t i = 0; i < count; i++)
        out[i] = (nghttp2_nv){(uint8_t *)headers[i].name.ptr, (uint8_t *)headers[i].value.ptr, headers[i].name.len,
                              headers[i].value.len, NGHTTP2_NV_FLAG_NONE};
    return count;
}

/* ---- Output ---- */

static void finish_small(Http2 *h) {
    size_t len = h->small.len;
    if (len) message_add_take(h->out, strbuf_detach(&h->small), len);
}

/* Appends the next n bytes of the stream's body. */
void http2_append_body(Http2 *h, Http2Stream *s, size_t n) {
    s->left -= n;
    while (n > 0) {
        const Slice *slice = &s->body->message.slices[s->slice];
        size_t part = slice->len - s->offset < n ? slice->len - s->offset : n;
        const char *data = (const char *)slice->data + s->offset;
        if (part <= HTTP2_COPY_LIMIT) {
            strbuf_add(&h->small, (Str){data, part});
        } else {
            finish_small(h);
            refcount_inc(&s->body->refs);
            message_add_slice(h->out, (Slice){data, part, body_unref, s->body});
        }
        n -= part;
        s->offset += part;
        if (s->offset == slice->len) {
            s->slice++;
            s->offset = 0;
        }
    }
}

static int send_data(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *header, size_t length,
                     nghttp2_data_source *source, void *arg) {
    (void)session, (void)frame;
    Http2 *h = arg;
    strbuf_add(&h->small, (Str){(const char *)header, 9});
    http2_append_body(h, source->ptr, length);
    return h->out->len + h->small.len >= h->out_limit ? NGHTTP2_ERR_PAUSE : 0;
}

static ssize_t frame_length(nghttp2_session *session, uint8_t frame_type, int32_t id, int32_t connection_window,
                            int32_t stream_window, uint32_t peer_frame_limit, void *arg) {
    (void)session, (void)frame_type, (void)id, (void)connection_window, (void)stream_window, (void)arg;
    return peer_frame_limit < HTTP2_SEND_FRAME_LIMIT ? (ssize_t)peer_frame_limit : HTTP2_SEND_FRAME_LIMIT;
}

static ssize_t read_body(nghttp2_session *session, int32_t id, uint8_t *buf, size_t length, uint32_t *flags,
                         nghttp2_data_source *source, void *arg) {
    (void)buf, (void)arg;
    Http2Stream *s = source->ptr;
    size_t n = s->left < length ? s->left : length;
    if (s->is_held && s->left == 0) return NGHTTP2_ERR_DEFERRED;
    *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    if (n < s->left || s->is_held) return (ssize_t)n;
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    if (s->trailer_count) {
        nghttp2_nv trailers[MAX_HEADERS];
        *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
        nghttp2_submit_trailer(session, id, trailers, fill_headers(trailers, s->trailers, s->trailer_count));
    }
    return (ssize_t)n;
}

Error *http2_take_output(Http2 *h, Message *out, size_t limit) {
    h->out = out;
    h->out_limit = limit;
    ssize_t n = 1;
    bool in_headers = false; /* nothing may come between their frames */
    brief_take_output(h);
    while (n > 0 && (in_headers || out->len + h->small.len < limit)) {
        const uint8_t *data = NULL;
        n = nghttp2_session_mem_send(h->session, &data);
        if (n > 0) strbuf_add(&h->small, (Str){(const char *)data, (size_t)n});
        in_headers = n > 0 && (data[3] == NGHTTP2_HEADERS || data[3] == NGHTTP2_CONTINUATION) && !(data[4] & NGHTTP2_FLAG_END_HEADERS);
    }
    finish_small(h);
    h->out = NULL;
    return n < 0 ? error_internal("HTTP/2 output: %s", nghttp2_strerror((int)n)) : NULL;
}

/* ---- Input ---- */

static Http2Stream *find(nghttp2_session *session, int32_t id) {
    return nghttp2_session_get_stream_user_data(session, id);
}

Http2Stream *http2_find(Http2 *h, int32_t id) {
    return id < 0 ? brief_find(h, (uint32_t)-id) : find(h->session, id);
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *arg) {
    Http2 *h = arg;
    Http2Stream *s = find(session, frame->hd.stream_id);
    if (!s && h->is_server && frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
        s = http2_stream_new(h, NULL);
        s->id = frame->hd.stream_id;
        nghttp2_session_set_stream_user_data(session, s->id, s);
        h->events->opened(h->arg, s);
    }
    if (s) s->header_bytes = 0;
    return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_len,
                     const uint8_t *value, size_t value_len, uint8_t flags, void *arg) {
    (void)flags;
    Http2 *h = arg;
    Http2Stream *s = find(session, frame->hd.stream_id);
    if (!s) return 0;
    s->header_bytes += name_len + value_len + 32;
    if (s->header_bytes > HEADER_LIST_FLOOD) return NGHTTP2_ERR_CALLBACK_FAILURE;
    if (s->header_bytes > HTTP2_HEADER_LIST_LIMIT) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    h->events->header(h->arg, s, (Str){(const char *)name, name_len}, (Str){(const char *)value, value_len});
    return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data, size_t len, void *arg) {
    (void)flags;
    Http2 *h = arg;
    Http2Stream *s = find(session, id);
    h->data_left -= len < h->data_left ? len : h->data_left;
    if (s) h->events->data(h->arg, s, (Str){(const char *)data, len});
    return 0;
}

static int on_begin_frame(nghttp2_session *session, const nghttp2_frame_hd *header, void *arg) {
    (void)session;
    Http2 *h = arg;
    h->data_left = 0;
    if (header->type == NGHTTP2_DATA) http2_expect_data(h, header->stream_id, header->length);
    if (header->flags & NGHTTP2_FLAG_PADDED) h->data_left = 0;
    return 0;
}

static void stream_frame(Http2 *h, const nghttp2_frame *frame) {
    Http2Stream *s = find(h->session, frame->hd.stream_id);
    if (s && frame->hd.type == NGHTTP2_HEADERS) h->events->headers_end(h->arg, s);
    s = find(h->session, frame->hd.stream_id);
    if (!s || !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM)) return;
    h->events->ended(h->arg, s);
    /* A server that has answered does not want the rest of the request. */
    if (!h->is_server && nghttp2_session_get_stream_local_close(h->session, frame->hd.stream_id) == 0)
        nghttp2_submit_rst_stream(h->session, NGHTTP2_FLAG_NONE, frame->hd.stream_id, NGHTTP2_NO_ERROR);
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *arg) {
    (void)session;
    Http2 *h = arg;
    bool is_ack = frame->hd.flags & NGHTTP2_FLAG_ACK;
    switch (frame->hd.type) {
        case NGHTTP2_HEADERS:
        case NGHTTP2_DATA:
            stream_frame(h, frame);
            break;
        case NGHTTP2_SETTINGS:
            if (is_ack || h->is_ready) break;
            h->is_ready = true;
            h->events->ready(h->arg);
            break;
        case NGHTTP2_PING:
            if (is_ack) break;
            if (memcmp(frame->ping.opaque_data, GREETING, sizeof GREETING) == 0) h->peer_is_rill = true; /* which takes brief streams */
            if (h->ping) h->ping(h->ping_arg, frame->ping.opaque_data);
            break;
        case NGHTTP2_GOAWAY:
            if (h->events->goaway)
                h->events->goaway(h->arg, frame->goaway.error_code,
                                  (Str){(const char *)frame->goaway.opaque_data, frame->goaway.opaque_data_len});
            break;
    }
    return 0;
}

/* The same, as the server. */
static int on_frame_sent(nghttp2_session *session, const nghttp2_frame *frame, void *arg) {
    Http2 *h = arg;
    if (frame->hd.type == NGHTTP2_GOAWAY && frame->goaway.error_code != NGHTTP2_NO_ERROR) h->is_broken = true;
    if (h->is_server && frame->hd.type == NGHTTP2_HEADERS && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) &&
        nghttp2_session_get_stream_remote_close(session, frame->hd.stream_id) == 0)
        nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id, NGHTTP2_NO_ERROR);
    return 0;
}

static int on_closed(nghttp2_session *session, int32_t id, uint32_t code, void *arg) {
    Http2 *h = arg;
    Http2Stream *s = find(session, id);
    if (!s) return 0;
    h->events->closed(h->arg, s, code);
    http2_stream_free(h, s);
    return 0;
}

/* ---- Life ---- */

static nghttp2_session *session_new(Http2 *h) {
    nghttp2_session_callbacks *calls = NULL;
    nghttp2_option *option = NULL;
    nghttp2_session *session = NULL;
    nghttp2_session_callbacks_new(&calls);
    nghttp2_session_callbacks_set_send_data_callback(calls, send_data);
    nghttp2_session_callbacks_set_data_source_read_length_callback(calls, frame_length);
    nghttp2_session_callbacks_set_on_begin_frame_callback(calls, on_begin_frame);
    nghttp2_session_callbacks_set_on_begin_headers_callback(calls, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(calls, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(calls, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(calls, on_frame);
    nghttp2_session_callbacks_set_on_frame_send_callback(calls, on_frame_sent);
    nghttp2_session_callbacks_set_on_stream_close_callback(calls, on_closed);
    nghttp2_option_new(&option);
    nghttp2_option_set_peer_max_concurrent_streams(option, NGHTTP2_INITIAL_MAX_CONCURRENT_STREAMS);
    nghttp2_option_set_no_closed_streams(option, 1);
    nghttp2_option_set_stream_reset_rate_limit(option, HTTP2_RESET_BURST, HTTP2_RESETS_PER_SECOND);
    nghttp2_option_set_max_continuations(option, MAX_CONTINUATIONS);
    if (h->is_server)
        nghttp2_session_server_new2(&session, calls, h, option);
    else
        nghttp2_session_client_new2(&session, calls, h, option);
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(calls);
    if (!session) abort(); /* only when memory is out */
    return session;
}

static Http2 *http2_new(bool is_server, const Http2Events *events, void *arg) {
    Http2 *h = xcalloc(1, sizeof *h);
    h->is_server = is_server;
    h->events = events;
    h->arg = arg;
    list_init(&h->streams);
    brief_init(h);
    if (is_server) h->in.left = NGHTTP2_CLIENT_MAGIC_LEN; /* the preface */
    h->session = session_new(h);
    nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW},
        {NGHTTP2_SETTINGS_MAX_FRAME_SIZE, HTTP2_FRAME_LIMIT},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, HTTP2_HEADER_LIST_LIMIT},
        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0}, /* of clients only */
    };
    nghttp2_submit_settings(h->session, NGHTTP2_FLAG_NONE, settings, is_server ? 3 : 4);
    nghttp2_session_set_local_window_size(h->session, NGHTTP2_FLAG_NONE, 0, CONNECTION_WINDOW);
    if (is_server) nghttp2_submit_ping(h->session, NGHTTP2_FLAG_NONE, GREETING);
    return h;
}

Http2 *http2_client_new(const Http2Events *events, void *arg) {
    return http2_new(false, events, arg);
}

Http2 *http2_server_new(const Http2Events *events, void *arg) {
    return http2_new(true, events, arg);
}

void http2_free(Http2 *h) {
    if (!h) return;
    nghttp2_session_del(h->session);
    for (List *link; (link = list_first(&h->streams));) http2_stream_free(h, LIST_ENTRY(link, Http2Stream, link));
    brief_clear(h);
    strbuf_clear(&h->small);
    free(h);
}

bool http2_is_done(const Http2 *h) {
    return !nghttp2_session_want_read(h->session) && !nghttp2_session_want_write(h->session) && (h->is_broken || !h->brief.streams.count);
}

bool http2_peer_is_rill(const Http2 *h) {
    return h->peer_is_rill;
}

size_t http2_stream_count(const Http2 *h) {
    return h->stream_count;
}

/* ---- Sending ---- */

Http2Stream *http2_request(Http2 *h, const Http2Header *headers, size_t count, Message *body, void *user) {
    nghttp2_nv fields[MAX_HEADERS];
    Http2Stream *s = http2_stream_new(h, user);
    http2_stream_take_body(s, body);
    nghttp2_data_provider provider = {{.ptr = s}, read_body};
    s->id = nghttp2_submit_request(h->session, NULL, fields, fill_headers(fields, headers, count), &provider, s);
    if (s->id < 0) {
        *body = message_move(&s->body->message);
        http2_stream_free(h, s);
        s = NULL;
    }
    return s;
}

void http2_respond(Http2 *h, Http2Stream *s, const Http2Header *headers, size_t count, Message *body,
                   const Http2Header *trailers, size_t trailer_count) {
    if (http2_stream_is_brief(s)) {
        brief_respond(h, s, headers, count, body);
        return;
    }
    nghttp2_nv fields[MAX_HEADERS];
    nghttp2_data_provider provider = {{.ptr = s}, read_body};
    if (body) {
        http2_stream_take_body(s, body);
        stream_copy_trailers(s, trailers, trailer_count);
    }
    nghttp2_submit_response(h->session, s->id, fields, fill_headers(fields, headers, count), body ? &provider : NULL);
}

void http2_reset(Http2 *h, Http2Stream *s, uint32_t code) {
    if (http2_stream_is_brief(s))
        brief_reset(h, s, code);
    else
        nghttp2_submit_rst_stream(h->session, NGHTTP2_FLAG_NONE, s->id, code);
}

void http2_ping(Http2 *h, const uint8_t *payload) {
    nghttp2_submit_ping(h->session, NGHTTP2_FLAG_NONE, payload);
}

void http2_on_ping(Http2 *h, Http2Ping *ping, void *arg) {
    h->ping = ping;
    h->ping_arg = arg;
}

void http2_goaway(Http2 *h, uint32_t code) {
    h->is_going = true;
    nghttp2_submit_goaway(h->session, NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(h->session), code,
                          NULL, 0);
}

void http2_stream_keep(Http2Stream *s, void (*release)(void *), void *owner) {
    s->release = release;
    s->owner = owner;
}

void http2_stream_hold(Http2Stream *s) {
    s->is_held = true;
}

void http2_let_end(Http2 *h, int32_t stream_id) {
    Http2Stream *s = http2_find(h, stream_id);
    if (!s || !s->is_held) return;
    s->is_held = false;
    if (http2_stream_is_brief(s))
        brief_let_end(h, s);
    else
        nghttp2_session_resume_data(h->session, stream_id); /* fails when all of it is still to be sent: then it goes on by itself */
}

int32_t http2_stream_id(const Http2Stream *s) {
    return s->id;
}

void *http2_stream_user(const Http2Stream *s) {
    return s->user;
}

void http2_stream_set_user(Http2Stream *s, void *user) {
    s->user = user;
}
