/* http2_fuzz.c: bytes of a peer for an HTTP/2 connection, as server and as client, with gRPC messages read and answered. */
#include "base/memory.h"
#include "fuzz_target.h"
#include "net/grpc_frame.h"
#include "net/grpc_status.h"
#include "net/http2.h"

typedef struct Reader {
    GrpcReader grpc; /* first */
    struct Reader *next;
} Reader;

typedef struct Side {
    Http2 *http2;
    Reader *readers; /* of all streams there were */
    bool is_server;
} Side;

static Reader *new_reader(Side *side) {
    Reader *r = xcalloc(1, sizeof *r);
    *r = (Reader){.grpc.limit = 1 << 16, .next = side->readers};
    side->readers = r;
    return r;
}

static void on_opened(void *arg, Http2Stream *s) {
    http2_stream_set_user(s, new_reader(arg));
}

static void on_header(void *arg, Http2Stream *s, Str name, Str value) {
    (void)arg, (void)s, (void)name;
    int64_t timeout_ns;
    grpc_timeout_parse(value, &timeout_ns);
}

static void on_headers_end(void *arg, Http2Stream *s) {
    (void)arg, (void)s;
}

static void on_data(void *arg, Http2Stream *s, Str bytes) {
    (void)arg;
    GrpcReader *r = http2_stream_user(s);
    if (r) error_free(grpc_reader_feed(r, bytes));
}

static void on_ended(void *arg, Http2Stream *s) {
    static const Http2Header headers[] = {{{":status", 7}, {"200", 3}}, {{"content-type", 12}, {"application/grpc", 16}}};
    static const Http2Header trailer = {{"grpc-status", 11}, {"0", 1}};
    Side *side = arg;
    GrpcReader *r = http2_stream_user(s);
    if (!side->is_server || !r || !grpc_reader_is_complete(r)) return;
    Message m = {0};
    error_free(grpc_reader_take(r, NULL, &m)); /* only what was lent can fail */
    Message body = grpc_frame_message(&m);
    http2_respond(side->http2, s, headers, 2, &body, &trailer, 1);
}

static void on_closed(void *arg, Http2Stream *s, uint32_t code) {
    (void)arg, (void)code;
    http2_stream_set_user(s, NULL);
}

static void on_ready(void *arg) {
    (void)arg;
}

static void on_goaway(void *arg, uint32_t code, Str debug) {
    (void)arg, (void)code, (void)debug;
}

static const Http2Events events = {
    .opened = on_opened, .header = on_header, .headers_end = on_headers_end, .data = on_data, .ended = on_ended,
    .closed = on_closed, .ready = on_ready,   .goaway = on_goaway,
};

static bool drain(Http2 *h) {
    Message out = {0};
    Error *err = http2_take_output(h, &out, 1 << 20);
    bool more = !err && out.len;
    message_clear(&out);
    error_free(err);
    return more;
}

static void ask(Side *side, bool briefly) {
    static const Http2Header headers[] = {{{":method", 7}, {"POST", 4}}, {{":scheme", 7}, {"http", 4}}, {{":path", 5}, {"/a/B", 4}}, {{":authority", 10}, {"me", 2}}};
    Message body = {0};
    message_add_copy(&body, STR("\0\0\0\0\1x"));
    if (briefly)
        http2_request_briefly(side->http2, headers + 2, 1, &body, new_reader(side));
    else
        http2_request(side->http2, headers, 4, &body, new_reader(side));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const Str preface = {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0", 33};
    Str input = input_str(data, size);
    unsigned choice = take_choice(&input);
    Side side = {.is_server = choice & 1};
    side.http2 = side.is_server ? http2_server_new(&events, &side) : http2_client_new(&events, &side);
    if (!side.is_server) ask(&side, choice & 2);
    Error *err = side.is_server && choice & 2 ? http2_feed(side.http2, preface) : NULL;
    size_t step = choice >> 2 ? choice >> 2 : input.len + 1; /* in pieces, as sockets give them */
    while (!err && input.len) {
        err = http2_feed(side.http2, str_slice(input, 0, step));
        input = str_slice(input, step, input.len);
        drain(side.http2);
    }
    error_free(err);
    for (int i = 0; i < 10 && drain(side.http2); i++) continue;
    http2_goaway(side.http2, HTTP2_NO_ERROR);
    drain(side.http2);
    http2_free(side.http2);
    while (side.readers) {
        Reader *r = side.readers;
        side.readers = r->next;
        grpc_reader_clear(&r->grpc);
        free(r);
    }
    return 0;
}
