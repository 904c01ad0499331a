/* http2_test.c: what passes between two sessions, how it ends, and what a bad peer can do. */
#include "http2_pair.h"

static const Http2Header request_headers[] = {{STR(":method"), STR("POST")},
                                              {STR(":scheme"), STR("http")},
                                              {STR(":path"), STR("/a/B")},
                                              {STR(":authority"), STR("me")}};
static const Http2Header response_headers[] = {{STR(":status"), STR("200")}};
static const Http2Header trailers[] = {{STR("grpc-status"), STR("0")}};

static Http2Stream *request(Pair *p, size_t size) {
    Message body = {0};
    if (size) message_add_take(&body, xcalloc(1, size), size);
    Http2Stream *s = http2_request(p->client.http2, request_headers, 4, &body, p);
    assert_non_null(s);
    return s;
}

static void respond(Pair *p, size_t size) {
    Message body = {0};
    message_add_take(&body, xcalloc(1, size), size);
    http2_respond(p->server.http2, p->server.last, response_headers, 1, &body, trailers, 1);
}

static void a_request_and_its_response_pass(void **state) {
    Pair *p = *state;
    assert_ptr_equal(http2_stream_user(request(p, 10)), p);
    settle(p);
    assert_int_equal(p->client.ready, 1);
    assert_int_equal(p->server.ready, 1);
    assert_true(http2_peer_is_rill(p->client.http2));
    assert_false(http2_peer_is_rill(p->server.http2));
    assert_string_equal(p->server.headers.ptr, ":method=POST;:scheme=http;:path=/a/B;:authority=me;");
    assert_int_equal(p->server.data_bytes, 10);
    assert_int_equal(p->server.ended, 1);
    respond(p, 20);
    settle(p);
    assert_string_equal(p->client.headers.ptr, ":status=200;grpc-status=0;");
    assert_int_equal(p->client.blocks, 2);
    assert_int_equal(p->client.data_bytes, 20);
    assert_int_equal(p->client.closed, 1);
    assert_int_equal(p->server.closed, 1);
    assert_int_equal(http2_stream_count(p->client.http2) + http2_stream_count(p->server.http2), 0);
}

static void payloads_are_not_copied(void **state) {
    Pair *p = *state;
    settle(p);
    size_t size = 3 << 20, seen = 0;
    char *data = xcalloc(1, size);
    Message body = {0}, out = {0};
    message_add_take(&body, data, size);
    http2_request(p->client.http2, request_headers, 4, &body, NULL);
    assert_null(http2_take_output(p->client.http2, &out, 64 << 20));
    for (size_t i = 0; i < out.count; i++) {
        const char *at = out.slices[i].data;
        if (at >= data && at < data + size) seen += out.slices[i].len;
    }
    assert_int_equal(seen, size);
    assert_true(out.count <= 8); /* frames of 1 MiB */
    message_clear(&out);
}

static void windows_hold_large_bodies_back_and_let_small_ones_pass(void **state) {
    Pair *p = *state;
    settle(p);
    request(p, 40 << 20);
    Message out = {0};
    assert_null(http2_take_output(p->client.http2, &out, SIZE_MAX));
    assert_true(out.len > 16 << 20 && out.len < 17 << 20); /* the stream's window */
    request(p, 5);
    size_t before = out.len;
    assert_null(http2_take_output(p->client.http2, &out, SIZE_MAX));
    assert_in_range(out.len - before, 1, 100);
    for (size_t i = 0; i < out.count; i++)
        assert_null(http2_feed(p->server.http2, (Str){out.slices[i].data, out.slices[i].len}));
    assert_int_equal(p->server.ended, 1); /* the small one */
    message_clear(&out);
    settle(p);
    assert_int_equal(p->server.ended, 2);
    assert_int_equal(p->server.data_bytes, (40 << 20) + 5);
}

/* How much the server would read next. */
static size_t next_read(Pair *p) {
    char *to = NULL;
    size_t len = 0;
    assert_false(http2_input_place(p->server.http2, &to, &len)); /* these events have no room */
    return len;
}

static void where_large_bodies_came_little_is_read_before_the_next_one(void **state) {
    Pair *p = *state;
    settle(p);
    assert_int_equal(next_read(p), SIZE_MAX);
    request(p, 1 << 20);
    request(p, 10); /* a small one between two large ones */
    settle(p);
    assert_true(next_read(p) < 64 << 10);
    for (int i = 0; i < 20; i++) request(p, 10);
    settle(p);
    assert_int_equal(next_read(p), SIZE_MAX);
}

static void resets_end_a_stream_on_both_sides(void **state) {
    Pair *p = *state;
    Http2Stream *s = request(p, 10);
    settle(p);
    http2_reset(p->client.http2, s, HTTP2_CANCEL);
    settle(p);
    assert_int_equal(p->client.closed, 1);
    assert_int_equal(p->server.closed, 1);
    assert_int_equal(p->server.code, HTTP2_CANCEL);
    s = request(p, 10); /* never sent: the server does not see it */
    http2_reset(p->client.http2, s, HTTP2_CANCEL);
    settle(p);
    assert_int_equal(p->client.closed, 2);
    assert_int_equal(p->server.opened, 1);
}

static void an_early_answer_stops_the_request(void **state) {
    Pair *p = *state;
    settle(p);
    request(p, 100 << 20);
    carry(&p->client, &p->server);
    http2_respond(p->server.http2, p->server.last, response_headers, 1, NULL, NULL, 0);
    settle(p);
    assert_int_equal(p->client.ended, 1);
    assert_int_equal(p->client.closed, 1);
    assert_int_equal(p->server.closed, 1);
    assert_true(p->server.data_bytes < 40 << 20);
}

static void going_away_lets_streams_finish(void **state) {
    Pair *p = *state;
    request(p, 10);
    settle(p);
    http2_goaway(p->server.http2, HTTP2_NO_ERROR);
    settle(p);
    assert_int_equal(p->client.goaway, 1);
    assert_false(http2_is_done(p->server.http2));
    request(p, 10); /* refused without being sent */
    settle(p);
    assert_int_equal(p->client.closed, 1);
    assert_int_equal(p->client.code, HTTP2_REFUSED_STREAM);
    respond(p, 10);
    settle(p);
    assert_int_equal(p->client.closed, 2);
    assert_true(http2_is_done(p->server.http2));
    assert_true(http2_is_done(p->client.http2));
}

static void many_header_bytes_reset_the_stream_more_end_the_connection(void **state) {
    Pair *p = *state;
    Http2Header headers[6];
    char *value = xmalloc(5000);
    memset(value, 'v', 5000);
    memcpy(headers, request_headers, sizeof request_headers);
    headers[4] = (Http2Header){STR("a"), {value, 5000}};
    headers[5] = (Http2Header){STR("b"), {value, 5000}};
    Message body = {0};
    http2_request(p->client.http2, headers, 6, &body, NULL);
    settle(p);
    assert_int_equal(p->server.closed, 0);
    value = xrealloc(value, 60000);
    memset(value, 'v', 60000);
    headers[4].value = (Str){value, 18000};
    http2_request(p->client.http2, headers, 5, &body, NULL);
    settle(p);
    assert_int_equal(p->server.closed, 1);
    assert_int_equal(p->client.closed, 1);
    headers[4].value = (Str){value, 30000};
    headers[5].value = (Str){value, 33000};
    http2_request(p->client.http2, headers, 6, &body, NULL);
    Message out = {0};
    Error *err = NULL;
    assert_null(http2_take_output(p->client.http2, &out, SIZE_MAX));
    for (size_t i = 0; i < out.count && !err; i++)
        err = http2_feed(p->server.http2, (Str){out.slices[i].data, out.slices[i].len});
    message_clear(&out);
    free(value);
    assert_true(err || http2_stream_count(p->client.http2) == 2); /* nghttp2 itself sends no block above 64 KiB */
    error_free(err);
}

static void rapid_resets_end_the_connection(void **state) {
    Pair *p = *state;
    settle(p);
    for (int i = 0; i < 60000 && !p->client.goaway; i++) {
        Http2Stream *s = request(p, 1);
        carry(&p->client, &p->server);
        http2_reset(p->client.http2, s, HTTP2_CANCEL);
        carry(&p->client, &p->server);
        carry(&p->server, &p->client);
    }
    assert_int_equal(p->client.goaway, 1);
    assert_in_range(p->server.opened, 20000, 59999);
    assert_true(http2_is_done(p->server.http2));
}

static void other_bytes_are_an_error(void **state) {
    Pair *p = *state;
    Error *err = http2_feed(p->server.http2, STR("GET / HTTP/1.1\r\nHost: me\r\n\r\n"));
    assert_non_null(err);
    error_free(err);
    assert_int_equal(p->server.opened, 0);
}

static void damaged_frames_end_the_connection(void **state) {
    Pair *p = *state;
    settle(p);
    unsigned seed = 1;
    for (int round = 0; round < 200; round++) {
        Pair fresh = {0};
        fresh.client.http2 = http2_client_new(&events, &fresh.client);
        fresh.server.http2 = http2_server_new(&events, &fresh.server);
        request(&fresh, 100);
        Message out = {0};
        assert_null(http2_take_output(fresh.client.http2, &out, SIZE_MAX));
        char *bytes = str_dup(message_flatten(&out));
        size_t len = out.len;
        for (int k = 0; k < 5; k++) {
            seed = seed * 1103515245 + 12345;
            bytes[24 + (seed >> 8) % (len - 24)] ^= (char)(1 << (seed >> 4) % 8);
        }
        error_free(http2_feed(fresh.server.http2, (Str){bytes, len})); /* an error or not, no crash */
        Message answer = {0};
        error_free(http2_take_output(fresh.server.http2, &answer, SIZE_MAX));
        message_clear(&answer);
        message_clear(&out);
        free(bytes);
        http2_free(fresh.client.http2);
        http2_free(fresh.server.http2);
        strbuf_clear(&fresh.server.headers);
    }
}

#define ROW(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        ROW(a_request_and_its_response_pass),
        ROW(payloads_are_not_copied),
        ROW(windows_hold_large_bodies_back_and_let_small_ones_pass),
        ROW(where_large_bodies_came_little_is_read_before_the_next_one),
        ROW(resets_end_a_stream_on_both_sides),
        ROW(an_early_answer_stops_the_request),
        ROW(going_away_lets_streams_finish),
        ROW(many_header_bytes_reset_the_stream_more_end_the_connection),
        ROW(rapid_resets_end_the_connection),
        ROW(other_bytes_are_an_error),
        ROW(damaged_frames_end_the_connection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
