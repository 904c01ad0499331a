/* http2_pair.h: two Http2 sessions joined by bytes in memory, and what each has seen; for the tests of Http2. */
#pragma once
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>

#include "base/memory.h"
#include "net/http2.h"

/* What a side has seen of its streams; events are counted over all of them. */
typedef struct Side {
    Http2 *http2;
    Http2Stream *last; /* opened */
    StrBuf headers;    /* "name=value;" */
    size_t data_bytes, data_max;
    int opened, blocks, ended, closed, ready, goaway;
    uint32_t code;
} Side;

static void on_opened(void *arg, Http2Stream *s) {
    Side *side = arg;
    side->last = s;
    side->opened++;
}

static void on_header(void *arg, Http2Stream *s, Str name, Str value) {
    (void)s;
    Side *side = arg;
    strbuf_addf(&side->headers, "%.*s=%.*s;", STR_ARG(name), STR_ARG(value));
}

static void on_headers_end(void *arg, Http2Stream *s) {
    (void)s;
    ((Side *)arg)->blocks++;
}

static void on_data(void *arg, Http2Stream *s, Str bytes) {
    (void)s;
    Side *side = arg;
    side->data_bytes += bytes.len;
    if (bytes.len > side->data_max) side->data_max = bytes.len;
}

static void on_ended(void *arg, Http2Stream *s) {
    (void)s;
    ((Side *)arg)->ended++;
}

static void on_closed(void *arg, Http2Stream *s, uint32_t code) {
    Side *side = arg;
    if (side->last == s) side->last = NULL;
    side->closed++;
    side->code = code;
}

static void on_ready(void *arg) {
    ((Side *)arg)->ready++;
}

static void on_goaway(void *arg, uint32_t code, Str debug) {
    (void)debug;
    Side *side = arg;
    side->goaway++;
    side->code = code;
}

static const Http2Events events = {on_opened, on_header, on_headers_end, on_data,
                                   NULL,      on_ended,  on_closed, on_ready,       on_goaway};

typedef struct Pair {
    Side client, server;
} Pair;

static int set_up(void **state) {
    Pair *p = xcalloc(1, sizeof *p);
    p->client.http2 = http2_client_new(&events, &p->client);
    p->server.http2 = http2_server_new(&events, &p->server);
    *state = p;
    return 0;
}

static int tear_down(void **state) {
    Pair *p = *state;
    http2_free(p->client.http2);
    http2_free(p->server.http2);
    strbuf_clear(&p->client.headers);
    strbuf_clear(&p->server.headers);
    free(p);
    return 0;
}

/* Moves bytes once in one direction; returns how many. */
static size_t carry(Side *from, Side *to) {
    Message out = {0};
    assert_null(http2_take_output(from->http2, &out, 1 << 20));
    size_t len = out.len;
    for (size_t i = 0; i < out.count; i++)
        assert_null(http2_feed(to->http2, (Str){out.slices[i].data, out.slices[i].len}));
    message_clear(&out);
    return len;
}

static void settle(Pair *p) {
    while (carry(&p->client, &p->server) + carry(&p->server, &p->client) > 0) continue;
}
