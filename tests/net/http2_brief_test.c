/* http2_brief_test.c: brief streams: they look like any stream to both sides, take turns, and a bad peer gets nowhere. */
#include <sched.h>
#include <string.h>

#include "base/clock.h"
#include "http2_pair.h"

enum { BRIEF_TYPE = 0xf2, HAS_HEAD = 1, IS_END = 2, IS_RESET = 4 };

static const Http2Header path = {STR(":path"), STR("/a/B")};
static const Http2Header failure[] = {{STR("grpc-status"), STR("5")}, {STR("grpc-message"), STR("not here")}};

static Message bytes_of(size_t size) {
    Message body = {0};
    if (size) message_add_take(&body, xcalloc(1, size), size);
    return body;
}

static Http2Stream *request(Pair *p, size_t size) {
    Message body = bytes_of(size);
    assert_true(http2_takes_brief(p->client.http2, &body));
    Http2Stream *s = http2_request_briefly(p->client.http2, &path, 1, &body, p);
    assert_non_null(s);
    return s;
}

static void answer(Pair *p, Http2Stream *s, size_t size) {
    Message body = bytes_of(size);
    http2_respond(p->server.http2, s, NULL, 0, &body, NULL, 0);
}

static size_t open_streams(const Pair *p) {
    return http2_stream_count(p->client.http2) + http2_stream_count(p->server.http2);
}

/* As set_up, after the greeting. */
static int meet(void **state) {
    set_up(state);
    settle(*state);
    return 0;
}

static void it_looks_like_any_stream(void **state) {
    Pair *p = *state;
    assert_ptr_equal(http2_stream_user(request(p, 10)), p);
    settle(p);
    assert_string_equal(p->server.headers.ptr, ":method=POST;content-type=application/grpc;:path=/a/B;");
    assert_int_equal(p->server.blocks, 1);
    assert_int_equal(p->server.data_bytes, 10);
    assert_int_equal(p->server.ended, 1);
    assert_true(http2_stream_is_brief(p->server.last));
    answer(p, p->server.last, 20);
    settle(p);
    assert_string_equal(p->client.headers.ptr, ":status=200;content-type=application/grpc;grpc-status=0;");
    assert_int_equal(p->client.data_bytes, 20);
    assert_int_equal(p->client.ended, 1);
    assert_int_equal(p->client.closed, 1);
    assert_int_equal(p->server.closed, 1);
    assert_int_equal(open_streams(p), 0);
}

static void a_request_without_bytes_is_one(void **state) {
    Pair *p = *state;
    request(p, 0);
    settle(p);
    assert_int_equal(p->server.ended, 1);
    answer(p, p->server.last, 0);
    settle(p);
    assert_int_equal(p->client.ended, 1);
    assert_int_equal(open_streams(p), 0);
}

static void an_error_comes_with_its_headers(void **state) {
    Pair *p = *state;
    request(p, 10);
    settle(p);
    http2_respond(p->server.http2, p->server.last, failure, 2, NULL, NULL, 0);
    settle(p);
    assert_string_equal(p->client.headers.ptr, ":status=200;content-type=application/grpc;grpc-status=5;grpc-message=not here;");
    assert_int_equal(p->client.ended, 1);
    assert_int_equal(open_streams(p), 0);
}

static void bytes_in_single_pieces_say_the_same(void **state) {
    Pair *p = *state;
    Message out = {0};
    request(p, 300);
    assert_null(http2_take_output(p->client.http2, &out, SIZE_MAX));
    Str bytes = message_flatten(&out);
    for (size_t i = 0; i < bytes.len; i++) assert_null(http2_feed(p->server.http2, (Str){bytes.ptr + i, 1}));
    message_clear(&out);
    assert_string_equal(p->server.headers.ptr, ":method=POST;content-type=application/grpc;:path=/a/B;");
    assert_int_equal(p->server.data_bytes, 300);
    assert_int_equal(p->server.ended, 1);
}

static void only_short_requests_to_rill_servers_are_brief(void **state) {
    Pair *p = *state;
    Message fits = bytes_of(64 << 10), too_long = bytes_of((64 << 10) + 1);
    assert_false(http2_takes_brief(p->client.http2, &fits)); /* nobody has greeted */
    settle(p);
    assert_true(http2_takes_brief(p->client.http2, &fits));
    assert_false(http2_takes_brief(p->client.http2, &too_long));
    assert_false(http2_takes_brief(p->server.http2, &fits));
    message_clear(&fits);
    message_clear(&too_long);
}

static void large_answers_take_turns_and_are_not_copied(void **state) {
    Pair *p = *state;
    enum { LARGE = 5 << 20 };
    request(p, 60 << 10); /* in its own memory */
    settle(p);
    Http2Stream *first = p->server.last;
    request(p, 10);
    settle(p);
    char *data = xcalloc(1, LARGE);
    Message body = {0}, out = {0};
    message_add_take(&body, data, LARGE);
    http2_respond(p->server.http2, first, NULL, 0, &body, NULL, 0);
    answer(p, p->server.last, 2 << 20);
    assert_null(http2_take_output(p->server.http2, &out, 4 << 20)); /* two frames of each, or so */
    size_t seen = 0;
    for (size_t i = 0; i < out.count; i++) {
        const char *at = out.slices[i].data;
        if (at >= data && at < data + LARGE) seen += out.slices[i].len;
        assert_null(http2_feed(p->client.http2, (Str){at, out.slices[i].len}));
    }
    message_clear(&out);
    assert_int_equal(seen, 2 << 20);
    assert_int_equal(p->client.ended, 1); /* the shorter one */
    settle(p);
    assert_int_equal(p->client.ended, 2);
    assert_int_equal(p->client.data_bytes, 7 << 20);
    assert_int_equal(open_streams(p), 0);
}

static void a_held_answer_ends_when_it_is_let(void **state) {
    Pair *p = *state;
    for (size_t size = 10; size < 100000; size *= 1000) { /* sent at once, and in its turn */
        int ended = p->client.ended;
        request(p, 10);
        settle(p);
        int32_t id = http2_stream_id(p->server.last);
        http2_stream_hold(p->server.last);
        answer(p, p->server.last, size);
        settle(p);
        assert_int_equal(p->client.ended, ended);
        http2_let_end(p->server.http2, id);
        http2_let_end(p->server.http2, id);
        settle(p);
        assert_int_equal(p->client.ended, ended + 1);
        assert_int_equal(open_streams(p), 0);
    }
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
    s = request(p, 60000); /* never sent: the server does not see it */
    http2_reset(p->client.http2, s, HTTP2_CANCEL);
    settle(p);
    assert_int_equal(p->client.closed, 2);
    assert_int_equal(p->server.opened, 1);
    assert_int_equal(open_streams(p), 0);
}

static void an_answer_that_crosses_a_reset_is_dropped(void **state) {
    Pair *p = *state;
    for (size_t size = 10; size < 5000000; size *= 1000) {
        Http2Stream *s = request(p, 10);
        settle(p);
        answer(p, p->server.last, size);
        http2_reset(p->client.http2, s, HTTP2_CANCEL);
        carry(&p->client, &p->server);
        settle(p);
        assert_int_equal(open_streams(p), 0);
    }
    assert_int_equal(p->client.ended, 0);
    assert_int_equal(p->client.data_bytes, 0);
}

static void a_reset_stops_a_large_answer(void **state) {
    Pair *p = *state;
    Http2Stream *s = request(p, 10);
    settle(p);
    answer(p, p->server.last, 50 << 20);
    carry(&p->server, &p->client);
    http2_reset(p->client.http2, s, HTTP2_CANCEL);
    settle(p);
    assert_true(p->client.data_bytes < 10 << 20);
    assert_int_equal(p->server.code, HTTP2_CANCEL);
    assert_int_equal(open_streams(p), 0);
}

static void who_goes_away_ends_what_has_begun_and_refuses_more(void **state) {
    Pair *p = *state;
    request(p, 10);
    settle(p);
    Http2Stream *begun = p->server.last;
    request(p, 10); /* on its way */
    http2_goaway(p->server.http2, HTTP2_NO_ERROR);
    settle(p);
    assert_int_equal(p->client.goaway, 1);
    assert_int_equal(p->client.closed, 1);
    assert_int_equal(p->server.opened, 1);
    assert_false(http2_is_done(p->server.http2));
    assert_false(http2_is_done(p->client.http2));
    answer(p, begun, 10);
    settle(p);
    assert_int_equal(p->client.ended, 1);
    assert_true(http2_is_done(p->server.http2));
    assert_true(http2_is_done(p->client.http2));
}

static void rapid_resets_end_the_connection(void **state) {
    Pair *p = *state;
    Error *err = NULL;
    for (int i = 0; i < 60000 && !err; i++) {
        Message out = {0};
        http2_reset(p->client.http2, request(p, 1), HTTP2_CANCEL);
        assert_null(http2_take_output(p->client.http2, &out, SIZE_MAX));
        for (size_t k = 0; k < out.count && !err; k++) err = http2_feed(p->server.http2, (Str){out.slices[k].data, out.slices[k].len});
        message_clear(&out);
    }
    assert_non_null(err);
    error_free(err);
    assert_in_range(p->server.opened, 20000, 59999);
}

/* As fast as a peer may for as long as it likes. */
static void resets_now_and_then_go_on(void **state) {
    Pair *p = *state;
    int64_t began = clock_mono_ns();
    int count = 0;
    for (; count < 22000; count++) {
        int64_t due_ns = began + (int64_t)(count - 19000) * 1000000; /* a thousand a second, after the burst */
        while (clock_mono_ns() < due_ns) sched_yield();
        http2_reset(p->client.http2, request(p, 1), HTTP2_CANCEL);
        carry(&p->client, &p->server);
        if (count % 100 == 0) settle(p);
    }
    assert_int_equal(p->server.opened, count);
    assert_int_equal(p->server.closed, count);
}

/* What a side says to one frame of a peer. */
static bool is_taken(Http2 *h, uint8_t flags, uint8_t number, Str payload) {
    char header[9] = {0, (char)(payload.len >> 8), (char)payload.len, (char)BRIEF_TYPE, (char)flags, 0, 0, 0, (char)number};
    Error *err = http2_feed(h, (Str){header, sizeof header});
    if (!err && payload.len) err = http2_feed(h, payload);
    bool taken = !err;
    error_free(err);
    return taken;
}

static bool server_takes(uint8_t flags, Str payload) {
    Pair *p;
    meet((void **)&p);
    bool taken = is_taken(p->server.http2, flags, 9, payload);
    tear_down((void **)&p);
    return taken;
}

static void a_note_is_not_answered(void **state) {
    Pair *p = *state;
    for (size_t size = 10; size < 60000; size *= 5000) { /* sent at once, and in its turn */
        Message body = bytes_of(size);
        int ended = p->server.ended;
        size_t got = p->server.data_bytes;
        assert_true(http2_note(p->client.http2, &path, 1, &body));
        carry(&p->client, &p->server);
        assert_int_equal(p->server.ended, ended + 1);
        assert_int_equal(p->server.data_bytes - got, size);
        assert_null(p->server.last); /* closed */
        assert_int_equal(carry(&p->server, &p->client), 0);
        assert_int_equal(open_streams(p), 0);
    }
    assert_string_equal(p->server.headers.ptr, ":method=POST;content-type=application/grpc;:path=/a/B;:method=POST;content-type=application/grpc;:path=/a/B;");
}

static void malformed_frames_end_the_connection(void **state) {
    (void)state;
    assert_true(server_takes(HAS_HEAD | IS_END, (Str){"\0\0", 2}));
    assert_true(server_takes(HAS_HEAD | IS_END, (Str){"\0\5\1\0\1ab", 7}));
    assert_false(server_takes(HAS_HEAD, (Str){"\0\0", 2}));               /* a request in two frames */
    assert_false(server_takes(HAS_HEAD | IS_END, (Str){"", 0}));          /* no head */
    assert_false(server_takes(HAS_HEAD | IS_END, (Str){"\0", 1}));        /* half a length */
    assert_false(server_takes(HAS_HEAD | IS_END, (Str){"\0\5\1\0\1a", 6})); /* less than it says */
    assert_false(server_takes(HAS_HEAD | IS_END, (Str){"\0\5\1\0\2ab", 7})); /* a value that is longer than the list */
    assert_false(server_takes(HAS_HEAD | IS_END, (Str){"\0\2\1\0", 4}));   /* half a header */
    assert_false(server_takes(HAS_HEAD | IS_END, (Str){"\xff\xff\1", 3})); /* too long a list */
    assert_false(server_takes(IS_RESET, (Str){"\0\0", 2}));
    assert_false(server_takes(IS_RESET, (Str){"\0\0\0\0\0\0\0\0\0", 9}));
    assert_true(server_takes(IS_RESET, (Str){"\0\0\0\10", 4})); /* of a stream that is gone */
    assert_true(server_takes(IS_END, (Str){"abc", 3}));          /* the same */
}

static void a_number_serves_one_stream_at_a_time(void **state) {
    Pair *p = *state;
    Str empty = {"\0\0", 2};
    assert_true(is_taken(p->server.http2, HAS_HEAD | IS_END, 1, empty));
    assert_false(is_taken(p->server.http2, HAS_HEAD | IS_END, 1, empty));
}

static void answers_to_nothing_are_ignored(void **state) {
    Pair *p = *state;
    assert_true(is_taken(p->client.http2, HAS_HEAD | IS_END, 1, (Str){"\0\0abc", 5}));
    assert_true(is_taken(p->client.http2, IS_RESET, 2, (Str){"\0\0\0\7", 4}));
    assert_int_equal(p->client.data_bytes, 0);
    request(p, 1);
    settle(p);
    answer(p, p->server.last, 3);
    settle(p);
    assert_int_equal(p->client.data_bytes, 3);
}

static void streams_that_are_open_vanish_with_the_session(void **state) {
    Pair *p = *state;
    request(p, 60000);
    request(p, 10);
    carry(&p->client, &p->server);
    answer(p, p->server.last, 1 << 20);
    request(p, 60000);
}

#define ROW(test) cmocka_unit_test_setup_teardown(test, meet, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        ROW(it_looks_like_any_stream),
        ROW(a_request_without_bytes_is_one),
        ROW(an_error_comes_with_its_headers),
        ROW(bytes_in_single_pieces_say_the_same),
        cmocka_unit_test_setup_teardown(only_short_requests_to_rill_servers_are_brief, set_up, tear_down),
        ROW(large_answers_take_turns_and_are_not_copied),
        ROW(a_held_answer_ends_when_it_is_let),
        ROW(resets_end_a_stream_on_both_sides),
        ROW(an_answer_that_crosses_a_reset_is_dropped),
        ROW(a_reset_stops_a_large_answer),
        ROW(who_goes_away_ends_what_has_begun_and_refuses_more),
        ROW(rapid_resets_end_the_connection),
        ROW(resets_now_and_then_go_on),
        ROW(a_note_is_not_answered),
        cmocka_unit_test(malformed_frames_end_the_connection),
        ROW(a_number_serves_one_stream_at_a_time),
        ROW(answers_to_nothing_are_ignored),
        ROW(streams_that_are_open_vanish_with_the_session),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
