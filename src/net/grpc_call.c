/* grpc_call.c: one outgoing call, from the request to its status. */
#include <stdlib.h>

#include "base/before_long.h"
#include "base/clock.h"
#include "base/memory.h"
#include "net/grpc_channel_internal.h"

/* ---- End ---- */

static void grpc_call_unref(Call *base) {
    GrpcCall *call = (GrpcCall *)base;
    if (!refcount_dec(&call->refs)) return;
    message_clear(&call->request);
    grpc_reader_clear(&call->reader);
    grpc_status_clear(&call->status);
    grpc_channel_unhold(call->channel);
    free(call->path);
    free(call);
}

static void tell_user(void *arg) {
    GrpcCall *call = arg;
    Error *err = call->err;
    Message reply = {0};
    call->err = NULL;
    if (call->lent_stream) before_long(); /* it is copied */
    if (!err) err = grpc_reader_take(&call->reader, call->channel->transport->copiers, &reply);
    if (call->lent_stream) lending_return(call->reader.lending, call->lent_stream);
    call->channel->transport->calls_out--;
    call->done(call->arg, err, err ? NULL : &reply);
    message_clear(&reply);
    grpc_call_unref(&call->base);
}

void grpc_call_finish(GrpcCall *call, Error *err) {
    Loop *loop = call->channel->transport->loop;
    if (call->is_done) {
        error_free(err);
        return;
    }
    call->is_done = true;
    call->err = err;
    list_remove(&call->link);
    loop_timer_stop(loop, &call->deadline);
    if (call->stream) http2_stream_set_user(call->stream, NULL);
    call->stream = NULL;
    message_clear(&call->request);
    call->done_task = (LoopTask){.fn = tell_user, .arg = call};
    LoopKind kind = call->lent_stream ? LOOP_LONG : call->may_stay ? LOOP_CONTINUES : LOOP_SHORT;
    if ((call->is_noted && !call->lent_stream) || !loop_hand_out(loop, &call->done_task, kind)) tell_user(call);
}

/* It was sent, and that is all. */
static void forget(GrpcCall *call) {
    call->is_done = true;
    list_remove(&call->link);
    call->channel->transport->calls_out--;
    grpc_call_unref(&call->base);
}

/* Ends a call whose stream may still be open, and tells the peer. */
static void give_up(GrpcCall *call, Error *err) {
    if (call->stream) {
        http2_reset(conn_http2(call->conn->conn), call->stream, HTTP2_CANCEL);
        conn_flush_soon(call->conn->conn);
    }
    grpc_call_finish(call, err);
}

static void on_deadline(void *arg) {
    GrpcCall *call = arg;
    give_up(call, error_new(CODE_DEADLINE_EXCEEDED, "Deadline Exceeded"));
}

static void cancel_here(void *arg) {
    GrpcCall *call = arg;
    give_up(call, error_new(CODE_CANCELLED, "CANCELLED"));
    grpc_call_unref(&call->base);
}

static void grpc_call_cancel(Call *base) {
    GrpcCall *call = (GrpcCall *)base;
    if (atomic_exchange(&call->is_cancel_posted, true)) return;
    refcount_inc(&call->refs);
    call->cancel_task = (LoopTask){.fn = cancel_here, .arg = call};
    if (!loop_post(call->channel->transport->loop, &call->cancel_task)) grpc_call_unref(base);
}

/* ---- Beginning ---- */

static const CallTable call_table = {.cancel = grpc_call_cancel, .unref = grpc_call_unref};

static void start_here(void *arg) {
    GrpcCall *call = arg;
    if (call->request.len > GRPC_MESSAGE_LIMIT) {
        grpc_call_finish(
            call, error_new(CODE_RESOURCE_EXHAUSTED, "request of %zu bytes is larger than the limit of %zu bytes",
                            call->request.len, GRPC_MESSAGE_LIMIT));
        return;
    }
    if (call->deadline_ns)
        loop_timer_start(call->channel->transport->loop, &call->deadline, call->deadline_ns, on_deadline, call);
    grpc_channel_start_call(call->channel, call);
}

Call *grpc_call_new(Channel *c, const char *path, Message *request, CallOptions options, CallDone *done, void *arg) {
    GrpcChannel *channel = (GrpcChannel *)c;
    GrpcCall *call = xcalloc(1, sizeof *call);
    call->base.table = &call_table;
    refcount_init(&call->refs);
    refcount_inc(&call->refs);
    refcount_inc(&channel->holds);
    call->channel = channel;
    list_init(&call->link);
    call->path = xstrdup(path);
    call->request = message_move(request);
    call->wait_for_ready = options.wait_for_ready;
    call->may_stay = options.may_stay;
    call->is_noted = options.is_noted;
    call->is_one_way = options.is_one_way;
    if (options.timeout_ms > 0) call->deadline_ns = clock_mono_ns() + options.timeout_ms * 1000000;
    call->done = done;
    call->arg = arg;
    call->reader.limit = channel->transport->options.max_message_bytes;
    call->reader.align_at = options.align_at;
    call->start_task = (LoopTask){.fn = start_here, .arg = call};
    channel->transport->calls_out++;
    if (!loop_run(channel->transport->loop, &call->start_task))
        grpc_call_finish(call, error_new(CODE_CANCELLED, "the transport was freed"));
    return &call->base;
}

bool grpc_call_send(GrpcCall *call, ClientConn *conn) {
    char timeout[GRPC_TIMEOUT_SIZE];
    Http2Header headers[8] = {
        {STR(":method"), STR("POST")},      {STR(":scheme"), STR("http")},
        {STR(":path"), str_of(call->path)}, {STR(":authority"), str_of(call->channel->base.address)},
        {STR("te"), STR("trailers")},       {STR("content-type"), STR("application/grpc")},
        {STR("user-agent"), STR("rill")},
    };
    Http2Header own[2] = {headers[2]}; /* not the same for all calls */
    bool is_timed = call->deadline_ns;
    if (is_timed)
        headers[7] = own[1] =
            (Http2Header){STR("grpc-timeout"), grpc_timeout_format(call->deadline_ns - clock_mono_ns(), timeout)};
    Loan *loan;
    Http2 *http2 = conn_http2(conn->conn);
    Message body = grpc_frame_lend(conn_lending(conn->conn), &call->request, &loan);
    bool is_brief = http2_takes_brief(http2, &body) && !call->channel->transport->options.plain_grpc;
    if (is_brief && call->is_one_way && !loan && http2_note(http2, own, 1 + is_timed, &body)) {
        forget(call);
        conn_flush_soon(conn->conn);
        return true;
    }
    call->reader.lending = lending_ref(conn_lending(conn->conn));
    if (is_brief)
        call->stream = http2_request_briefly(http2, own, 1 + is_timed, &body, call);
    else
        call->stream = http2_request(http2, headers, 7 + is_timed, &body, call);
    if (!call->stream) {
        loan_free(loan);
        grpc_call_finish(call,
                         error_new(CODE_UNAVAILABLE, "%s: the connection has no streams left", conn_peer(conn->conn)));
        message_clear(&body);
        return false;
    }
    if (loan) {
        call->channel->transport->messages_lent++;
        http2_stream_keep(call->stream, loan_free, loan);
    }
    call->conn = conn;
    list_remove(&call->link);
    list_add(&conn->calls, &call->link);
    conn_flush_soon(conn->conn);
    grpc_conn_watch(conn);
    return true;
}

/* ---- Events; a call that is done has left its stream, which then has no user ---- */

static void on_header(void *arg, Http2Stream *stream, Str name, Str value) {
    (void)arg;
    GrpcCall *call = http2_stream_user(stream);
    if (call) grpc_status_add(&call->status, name, value);
}

static void on_headers_end(void *arg, Http2Stream *stream) {
    (void)arg, (void)stream;
}

static void on_data(void *arg, Http2Stream *stream, Str bytes) {
    (void)arg;
    GrpcCall *call = http2_stream_user(stream);
    if (!call || !call->status.is_grpc || call->status.http_status != 200) return; /* a page of a proxy */
    Error *err = grpc_reader_feed(&call->reader, bytes);
    if (err) {
        give_up(call, error_wrap(err, "reply from %s", conn_peer(call->conn->conn)));
    } else if (call->reader.is_lent && grpc_reader_is_complete(&call->reader)) {
        call->lent_stream = http2_stream_id(stream); /* it ends when the message was copied */
        grpc_call_finish(call, NULL);
    }
}

static size_t on_room(void *arg, Http2Stream *stream, char **to) {
    (void)arg;
    GrpcCall *call = http2_stream_user(stream);
    return call ? grpc_reader_room(&call->reader, to) : 0;
}

static void on_ended(void *arg, Http2Stream *stream) {
    ClientConn *conn = arg;
    GrpcCall *call = http2_stream_user(stream);
    if (!call) return;
    Error *err = grpc_status_error(&call->status);
    if (!err && !grpc_reader_is_complete(&call->reader))
        err = error_internal("%s: the reply ended before its message was complete", conn_peer(conn->conn));
    grpc_call_finish(call, err);
}

static void on_closed(void *arg, Http2Stream *stream, uint32_t code) {
    ClientConn *conn = arg;
    GrpcCall *call = http2_stream_user(stream);
    if (!call) return;
    call->stream = NULL;
    grpc_call_finish(call, error_new(grpc_code_of_http2(code), "%s: stream was reset with HTTP/2 error code %u",
                                     conn_peer(conn->conn), code));
}

static void on_ready(void *arg) {
    grpc_conn_ready(arg);
}

static void on_goaway(void *arg, uint32_t code, Str debug) {
    (void)code, (void)debug;
    grpc_conn_gone_away(arg);
}

const Http2Events grpc_call_events = {
    .header = on_header,
    .headers_end = on_headers_end,
    .data = on_data,
    .room = on_room,
    .ended = on_ended,
    .closed = on_closed,
    .ready = on_ready,
    .goaway = on_goaway,
};
