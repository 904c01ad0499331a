/* http2_brief.c: streams between Rill tasks that cost a fifth of HTTP/2's own: one frame for a request, one or a few for its answer.

   A call of another gRPC takes three or four frames, two blocks of compressed headers that say the same each time, and nghttp2's bookkeeping of
   a stream; for a small message that is most of the work. Here a frame of a type of our own, which other peers ignore by the rules of HTTP/2, carries
   what differs: number of the stream, path, message. To those above it looks like any stream; the headers that every gRPC call has are made up.

   A frame is the 9 bytes of every frame (its stream number is ours, counted apart), then, with HAS_HEAD, 2 bytes with the length of a list of headers and the
   list (1 byte length of the name, 2 of the value, both; numbers are big-endian), then bytes of the message as gRPC frames it. With IS_RESET the
   payload is an error code; a request with IS_NOTE is not answered. Large answers are sent in several frames, those of different streams in turns. There are no windows: an answer is kept by the
   receiver anyway, and requests are short. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "net/http2_internal.h"

enum { HAS_HEAD = 1, IS_END = 2, IS_RESET = 4, IS_NOTE = 8 }; /* flags of a frame */
enum {
    REQUEST_LIMIT = 64 << 10,
    LENGTH_BYTES = 2,
    LAST_NUMBER = INT32_MAX,
};

static const Http2Header of_requests[] = {{STR(":method"), STR("POST")}, {STR("content-type"), STR("application/grpc")}};
static const Http2Header of_answers[] = {{STR(":status"), STR("200")}, {STR("content-type"), STR("application/grpc")}};
static const Http2Header of_good_ends = {STR("grpc-status"), STR("0")};

static uint32_t number_of(const Http2Stream *s) {
    return (uint32_t)-s->id;
}

bool http2_stream_is_brief(const Http2Stream *s) {
    return s->id < 0;
}

bool http2_stream_is_note(const Http2Stream *s) {
    return s->is_note;
}

bool http2_takes_brief(const Http2 *h, const Message *body) {
    return h->peer_is_rill && !h->is_server && body->len <= REQUEST_LIMIT;
}

Http2Stream *brief_find(Http2 *h, uint32_t number) {
    return intmap_get(&h->brief.streams, number);
}

static Http2Stream *add_stream(Http2 *h, uint32_t number, void *user) {
    Http2Stream *s = http2_stream_new(h, user);
    s->id = -(int32_t)number;
    list_init(&s->turn);
    intmap_put(&h->brief.streams, number, s);
    return s;
}

void brief_forget(Http2 *h, Http2Stream *s) {
    list_remove(&s->turn);
    strbuf_clear(&s->head);
    intmap_remove(&h->brief.streams, number_of(s));
}

static void close_stream(Http2 *h, Http2Stream *s, uint32_t code) {
    h->events->closed(h->arg, s, code);
    http2_stream_free(h, s);
}

/* It is closed when output is taken: not in the stack of who ends it. */
static void be_done(Http2 *h, Http2Stream *s, uint32_t code) {
    list_remove(&s->turn);
    list_add(&h->brief.done, &s->turn);
    s->code = code;
}

/* ---- Output ---- */

static void put(StrBuf *out, uint32_t value, size_t bytes) {
    char text[4];
    for (size_t i = 0; i < bytes; i++) text[i] = (char)(value >> 8 * (bytes - 1 - i));
    strbuf_add(out, (Str){text, bytes});
}

static void put_frame_header(Http2 *h, size_t length, uint8_t flags, uint32_t number) {
    const char text[FRAME_HEADER_BYTES] = {(char)(length >> 16), (char)(length >> 8), (char)length,         (char)BRIEF_FRAME, (char)flags,
                                     (char)(number >> 24), (char)(number >> 16), (char)(number >> 8), (char)number};
    strbuf_add(&h->small, (Str){text, sizeof text});
}

static void put_head(StrBuf *out, const Http2Header *headers, size_t count) {
    size_t len = 0;
    for (size_t i = 0; i < count; i++) len += 1 + LENGTH_BYTES + headers[i].name.len + headers[i].value.len;
    strbuf_reserve(out, LENGTH_BYTES + len);
    put(out, (uint32_t)len, LENGTH_BYTES);
    for (size_t i = 0; i < count; i++) {
        put(out, (uint32_t)headers[i].name.len, 1);
        put(out, (uint32_t)headers[i].value.len, LENGTH_BYTES);
        strbuf_add(out, headers[i].name);
        strbuf_add(out, headers[i].value);
    }
}

static void put_reset(Http2 *h, uint32_t number, uint32_t code) {
    put_frame_header(h, sizeof code, IS_RESET, number);
    put(&h->small, code, sizeof code);
}

static uint8_t first_flags(const Http2Stream *s) {
    return HAS_HEAD | (s->is_note ? IS_NOTE : 0);
}

/* Nothing comes after its last frame. */
static bool ends_with_output(const Http2 *h, const Http2Stream *s) {
    return (h->is_server || s->is_note) && !s->is_held;
}

/* Short: made at once, between whole frames. Else in turns with others, when output is taken. */
static void start_sending(Http2 *h, Http2Stream *s, Message *body) {
    size_t len = body ? body->len : 0;
    if (len > HTTP2_COPY_LIMIT) {
        http2_stream_take_body(s, body);
        list_add(&h->brief.sending, &s->turn);
        return;
    }
    strbuf_reserve(&h->small, FRAME_HEADER_BYTES + s->head.len + len);
    put_frame_header(h, s->head.len + len, first_flags(s) | (s->is_held ? 0 : IS_END), number_of(s));
    strbuf_add(&h->small, strbuf_str(&s->head));
    for (size_t i = 0; i < (body ? body->count : 0); i++) strbuf_add(&h->small, (Str){body->slices[i].data, body->slices[i].len});
    if (body) message_clear(body);
    strbuf_clear(&s->head);
    if (ends_with_output(h, s)) be_done(h, s, HTTP2_NO_ERROR);
}

Http2Stream *http2_request_briefly(Http2 *h, const Http2Header *headers, size_t count, Message *body, void *user) {
    if (h->brief.last_number == LAST_NUMBER) return NULL;
    Http2Stream *s = add_stream(h, ++h->brief.last_number, user);
    put_head(&s->head, headers, count);
    start_sending(h, s, body);
    return s;
}

bool http2_note(Http2 *h, const Http2Header *headers, size_t count, Message *body) {
    if (h->brief.last_number == LAST_NUMBER) return false;
    Http2Stream *s = add_stream(h, ++h->brief.last_number, NULL);
    s->is_note = true;
    put_head(&s->head, headers, count);
    start_sending(h, s, body);
    return true;
}

void brief_respond(Http2 *h, Http2Stream *s, const Http2Header *headers, size_t count, Message *body) {
    put_head(&s->head, headers, body ? 0 : count);
    start_sending(h, s, body);
}

void brief_reset(Http2 *h, Http2Stream *s, uint32_t code) {
    bool is_unsent = s->head.len > 0; /* the peer has not heard of it */
    if (!is_unsent) put_reset(h, number_of(s), code);
    be_done(h, s, code);
}

void brief_let_end(Http2 *h, Http2Stream *s) {
    if (s->left) return; /* then the last frame of the body says it */
    put_frame_header(h, 0, IS_END, number_of(s));
    be_done(h, s, HTTP2_NO_ERROR);
}

/* One frame of a long body. */
static void send_part(Http2 *h, Http2Stream *s) {
    size_t len = s->left < HTTP2_SEND_FRAME_LIMIT ? s->left : HTTP2_SEND_FRAME_LIMIT;
    bool is_last = len == s->left && !s->is_held;
    put_frame_header(h, s->head.len + len, (uint8_t)((s->head.len ? first_flags(s) : 0) | (is_last ? IS_END : 0)), number_of(s));
    strbuf_add(&h->small, strbuf_str(&s->head));
    strbuf_clear(&s->head);
    http2_append_body(h, s, len);
    list_remove(&s->turn);
    if (s->left)
        list_add(&h->brief.sending, &s->turn);
    else if (ends_with_output(h, s))
        be_done(h, s, HTTP2_NO_ERROR);
}

void brief_take_output(Http2 *h) {
    List *link;
    while (h->out->len + h->small.len < h->out_limit && (link = list_first(&h->brief.sending))) send_part(h, LIST_ENTRY(link, Http2Stream, turn));
    while ((link = list_first(&h->brief.done))) {
        Http2Stream *s = LIST_ENTRY(link, Http2Stream, turn);
        close_stream(h, s, s->code);
    }
}

/* ---- Input ---- */

static uint32_t get(const char *at, size_t bytes) {
    uint32_t value = 0;
    for (size_t i = 0; i < bytes; i++) value = value << 8 | (uint8_t)at[i];
    return value;
}

static void tell_headers(Http2 *h, Http2Stream *s, const Http2Header *headers, size_t count) {
    for (size_t i = 0; i < count; i++) h->events->header(h->arg, s, headers[i].name, headers[i].value);
}

/* False: it is malformed. */
static bool tell_list(Http2 *h, Http2Stream *s, Str list) {
    while (list.len) {
        if (list.len < 1 + LENGTH_BYTES) return false;
        size_t name_len = (uint8_t)list.ptr[0], value_len = get(list.ptr + 1, LENGTH_BYTES), all = 1 + LENGTH_BYTES + name_len + value_len;
        if (all > list.len) return false;
        const char *name = list.ptr + 1 + LENGTH_BYTES;
        h->events->header(h->arg, s, (Str){name, name_len}, (Str){name + name_len, value_len});
        list = str_slice(list, all, list.len);
    }
    return true;
}

static bool take_head(Http2 *h, Str list) {
    uint32_t number = h->brief.in.number;
    Http2Stream *s = brief_find(h, number);
    if (h->is_server) {
        if (s || !(h->brief.in.flags & IS_END)) return false; /* a request is one frame, with a new number */
        if (h->is_going) {
            put_reset(h, number, HTTP2_REFUSED_STREAM);
            return true;
        }
        s = add_stream(h, number, NULL);
        s->is_note = h->brief.in.flags & IS_NOTE;
        h->events->opened(h->arg, s);
        tell_headers(h, s, of_requests, sizeof of_requests / sizeof *of_requests);
    } else if (s) {
        s->is_failed = list.len > 0;
        tell_headers(h, s, of_answers, sizeof of_answers / sizeof *of_answers);
    }
    if (!s) return true; /* of one that was given up */
    if (!tell_list(h, s, list)) return false;
    h->events->headers_end(h->arg, s);
    return true;
}

static bool may_reset(Brief *b) {
    int64_t now = clock_mono_ns(), more = (now - b->reset_ns) / (1000000000 / HTTP2_RESETS_PER_SECOND);
    if (more > 0) {
        b->resets_left = b->resets_left + more < HTTP2_RESET_BURST ? b->resets_left + more : HTTP2_RESET_BURST;
        b->reset_ns = now;
    }
    return b->resets_left-- > 0;
}

static bool take_reset(Http2 *h, Str code) {
    Http2Stream *s = brief_find(h, h->brief.in.number);
    if (code.len != sizeof(uint32_t) || !may_reset(&h->brief)) return false;
    if (s) close_stream(h, s, get(code.ptr, sizeof(uint32_t)));
    return true;
}

bool brief_begin(Http2 *h, const char header[FRAME_HEADER_BYTES]) {
    h->brief.in.number = get(header + 5, sizeof(uint32_t));
    h->brief.in.flags = (uint8_t)header[4];
    h->brief.in.is_body = !(h->brief.in.flags & (HAS_HEAD | IS_RESET));
    h->brief.in.head.len = 0;
    return h->brief.in.number > 0 && h->brief.in.number <= LAST_NUMBER;
}

/* Takes what belongs to the head; false: that is too much. */
static bool collect_head(Http2 *h, Str *bytes, Str *head) {
    StrBuf *got = &h->brief.in.head;
    size_t before = got->len, wanted = LENGTH_BYTES;
    Str all = *bytes;
    if (before) {
        strbuf_add(got, *bytes);
        all = strbuf_str(got);
    }
    *head = (Str){NULL, 0};
    if (all.len >= LENGTH_BYTES) wanted += get(all.ptr, LENGTH_BYTES);
    if (wanted > HTTP2_HEADER_LIST_LIMIT) return false;
    if (all.len < wanted) {
        if (!before) strbuf_add(got, *bytes);
        *bytes = str_slice(*bytes, bytes->len, bytes->len);
    } else {
        *head = str_slice(all, 0, wanted);
        *bytes = str_slice(*bytes, wanted - before, bytes->len);
    }
    return true;
}

bool brief_data(Http2 *h, Str bytes) {
    if (h->brief.in.flags & IS_RESET) {
        strbuf_add(&h->brief.in.head, str_slice(bytes, 0, bytes.len < 8 ? bytes.len : 8));
        return h->brief.in.head.len <= 8;
    }
    if (!h->brief.in.is_body) {
        Str head;
        if (!collect_head(h, &bytes, &head)) return false;
        if (!head.ptr) return true;
        h->brief.in.is_body = true;
        if (!take_head(h, str_slice(head, LENGTH_BYTES, head.len))) return false;
    }
    Http2Stream *s = bytes.len ? brief_find(h, h->brief.in.number) : NULL;
    if (s) h->events->data(h->arg, s, bytes);
    return true;
}

bool brief_end(Http2 *h) {
    if (h->brief.in.flags & IS_RESET) return take_reset(h, strbuf_str(&h->brief.in.head));
    if (!h->brief.in.is_body) return false; /* it ended within its head */
    Http2Stream *s = h->brief.in.flags & IS_END ? brief_find(h, h->brief.in.number) : NULL;
    if (!s) return true;
    if (!h->is_server && !s->is_failed) tell_headers(h, s, &of_good_ends, 1);
    h->events->ended(h->arg, s);
    if (!h->is_server || s->is_note) close_stream(h, s, HTTP2_NO_ERROR);
    return true;
}

/* ---- Life ---- */

void brief_init(Http2 *h) {
    list_init(&h->brief.sending);
    list_init(&h->brief.done);
    h->brief.resets_left = HTTP2_RESET_BURST;
}

void brief_clear(Http2 *h) {
    intmap_clear(&h->brief.streams);
    strbuf_clear(&h->brief.in.head);
}
