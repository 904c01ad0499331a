/* grpc_channel_internal.h: what grpc_channel.c (connecting) and grpc_call.c (one call) share. Of the loop but for what
   a mutex guards. */
#pragma once
#include "net/conn.h"
#include "net/connector.h"
#include "net/grpc_frame.h"
#include "net/grpc_internal.h"
#include "net/grpc_status.h"

typedef enum ChannelState {
    CHANNEL_IDLE,
    CHANNEL_CONNECTING,
    CHANNEL_READY,
    CHANNEL_BACKOFF,
    CHANNEL_CLOSED
} ChannelState;

typedef struct GrpcChannel {
    Channel base;
    RefCount holds; /* of the memory: the users together, calls, connections, an attempt to connect */
    GrpcTransport *transport;
    List link; /* in GrpcTransport.channels */
    ChannelState state;
    struct ClientConn *conn; /* CONNECTING after the socket is there, READY */
    List conns;              /* of ClientConn: this one and those that only finish their calls */
    Connector *connector;    /* CONNECTING before the socket is there */
    List waiting;            /* calls without a connection */
    bool failed;             /* the last attempt did */
    bool is_wanted;          /* a call came since the last attempt began */
    int64_t backoff_ms;
    LoopTimer timer; /* CONNECTING: the attempt takes too long; BACKOFF: try again */
    LoopTask close_task;

    pthread_mutex_t mutex; /* guards is_connected, last_error */
    bool is_connected;
    Error *last_error;
} GrpcChannel;

typedef struct ClientConn {
    List link;
    GrpcChannel *channel;
    Conn *conn;
    List calls;
    int64_t ping_ns; /* when a PING without an answer was sent; 0: none */
    LoopTimer keepalive;
} ClientConn;

typedef struct GrpcCall {
    Call base;
    RefCount refs; /* the user, and the transport until done */
    GrpcChannel *channel;
    List link; /* in GrpcChannel.waiting or ClientConn.calls */
    char *path;
    Message request;
    bool wait_for_ready, may_stay, is_noted, is_one_way, is_done;
    int64_t deadline_ns; /* 0: none */
    CallDone *done;
    void *arg;
    ClientConn *conn;
    Http2Stream *stream; /* NULL: none */
    int32_t lent_stream; /* where the reply was lent; 0: it was not */
    GrpcReader reader;
    GrpcStatus status;
    LoopTimer deadline;
    Error *err; /* for done */
    LoopTask start_task, cancel_task, done_task;
    _Atomic bool is_cancel_posted;
} GrpcCall;

extern const Http2Events grpc_call_events; /* arg: ClientConn */

Call *grpc_call_new(Channel *c, const char *path, Message *request, CallOptions options, CallDone *done, void *arg);
bool grpc_call_send(GrpcCall *call, ClientConn *conn); /* false: the connection takes no more calls */
void grpc_call_finish(GrpcCall *call, Error *err);     /* takes err; NULL: with the message received */

void grpc_channel_start_call(GrpcChannel *c, GrpcCall *call);
void grpc_channel_unhold(GrpcChannel *c);
void grpc_conn_ready(ClientConn *conn);
void grpc_conn_gone_away(ClientConn *conn); /* it takes no more calls */
void grpc_conn_watch(ClientConn *conn);     /* a call is on it: keep it alive */
