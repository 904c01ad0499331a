/* transport.h: Transport, how tasks call each other: slices in, slices or an error out. No TensorFlow in here.

   A Transport has two sides. As a client it makes channels to addresses and calls methods on them; as a server it
   accepts calls and hands them to a handler. `grpc` (sockets), `loopback` (same process) and `joined` (both) implement
   it and behave alike: deadlines, cancellation both ways, fail-fast and wait-for-ready, Unavailable when the peer is gone. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/str.h"
#include "base/threadpool.h"
#include "net/slice.h"

typedef struct Transport Transport;
typedef struct Channel Channel;       /* to one peer; connects by itself, again after a loss with backoff of 1 s at most */
typedef struct Call Call;             /* one outgoing call */
typedef struct ServerCall ServerCall; /* one incoming call */

/* ---- Client side ---- */

typedef struct CallOptions {
    int64_t timeout_ms;  /* 0: none */
    bool wait_for_ready; /* false: Unavailable at once while the peer cannot be reached */
    bool may_stay;       /* done computes for a while when transport_thread_is_spare; else it is always short */
    bool is_noted;       /* done only notes the outcome: it may run anywhere, even while the transport is locked */
    bool is_one_way;     /* see channel_note */
    AlignAt *align_at;   /* (optional) of the reply */
} CallOptions;

/* Called exactly once for each call, on a thread of the transport that must not be blocked: post longer work to a pool,
 * unless transport_thread_is_spare or transport_stay_after. Owns err and the slices of reply (message_move them; what is left is released);
 * reply is NULL when err is not. */
typedef void CallDone(void *arg, Error *err, Message *reply);

/* In a CallDone or a handler of those that may stay: may it compute for a while in this thread, because the transport has another one
 * for what comes meanwhile? To wait for a call would still be wrong. */
bool transport_thread_is_spare(void);
/* The same, for work on all that came together: fn will be called when the last of those calls and handlers has returned. false: do not compute. */
bool transport_stay_after(void (*fn)(void));
/* In a handler that stays, while no thread is spare since other calls came with it: fn runs here after them, and then one is. false: it will not. */
bool transport_do_last(void (*fn)(void *arg), void *arg);

/* Makes a channel to "host:port"; nothing is connected until the first call. Thread-safe as all functions here. */
Channel *transport_channel(Transport *t, Str address);
void channel_unref(Channel *c); /* calls under way end with Cancelled */
Channel *channel_ref(Channel *c);
Str channel_address(const Channel *c);
bool channel_is_connected(const Channel *c);
char *channel_last_error(const Channel *c); /* why it is not connected, malloced; NULL when nothing failed yet */

/* Starts a call of "/package.Service/Method" and takes the slices of request. The Call stays valid until
 * call_unref. */
Call *channel_call(Channel *c, const char *path, Message *request, CallOptions options, CallDone *done, void *arg);
/* The same without an answer: nobody learns whether it has arrived, or what the handler says. For what is found out otherwise. */
void channel_note(Channel *c, const char *path, Message *message);
void call_cancel(Call *call); /* done gets Cancelled unless it is already under way; the peer is told */
void call_unref(Call *call);

/* Calls and waits; for threads that may block. */
Error *channel_call_wait(Channel *c, const char *path, Message *request, CallOptions options, Message *reply) MUST_CHECK;

/* ---- Server side ---- */

typedef enum HandlerPlace {
    ON_POOL,   /* may wait */
    ON_READER, /* the thread that read the request: never blocks and is short */
    CONTINUING, /* the same, and may use transport_stay_after */
    STAYING,   /* and computes for a while when transport_thread_is_spare */
} HandlerPlace;

/* Runs on the server's pool or on the thread that read the request. Must lead to exactly one
 * server_call_reply or server_call_fail, now or later, from any thread. */
typedef void Handler(void *arg, ServerCall *call);

typedef struct Method {
    const char *path; /* "/tensorflow.MasterService/RunStep" */
    Handler *handler;
    HandlerPlace place;
    AlignAt *align_at; /* (optional) of the request */
} Method;

Message *server_call_request(ServerCall *call); /* borrowed; the handler may message_move it */
Str server_call_peer(const ServerCall *call);   /* "127.0.0.1:4711" */
int64_t server_call_deadline_ns(const ServerCall *call); /* monotonic; 0: none */
void server_call_reply(ServerCall *call, Message *reply); /* takes the slices; the call is gone afterwards */
void server_call_fail(ServerCall *call, Error *err);      /* takes err; the call is gone afterwards */

/* Tells fn once when the caller cancels, its deadline passes or its connection breaks before the reply; at once when
 * that has happened already. fn runs on a transport thread, must not block and must not use the call other than to
 * reply. One watcher per call. server_call_unwatch returns true when fn has not run and never will; otherwise it waits
 * until fn has returned. A reply after cancellation is dropped. */
typedef void CancelFn(void *arg);
void server_call_watch(ServerCall *call, CancelFn *fn, void *arg);
bool server_call_unwatch(ServerCall *call);

typedef struct ServerOptions {
    const Method *methods; /* ends with a row whose path is NULL; outlives the calls. Other paths get Unimplemented */
    void *arg;             /* for the handlers */
    ThreadPool *pool;      /* runs the handlers */
    size_t max_message_bytes; /* 0: 2 GiB - 1. Larger requests get ResourceExhausted */
} ServerOptions;

/* Listens on "host:port" (port 0: any free one); *address is the address in use, malloced. A transport serves once. */
Error *transport_serve(Transport *t, Str address, const ServerOptions *options, char **bound_address) MUST_CHECK;

/* Graceful: refuses new calls, waits up to grace_ms for those under way, then cancels and closes all. */
void transport_stop_serving(Transport *t, int64_t grace_ms);

/* Stops serving, cancels every call, waits until all callbacks have returned. New calls end with Cancelled at once. */
void transport_close(Transport *t);
void transport_free(Transport *t); /* closes it */

/* ---- Implementations ---- */

typedef struct GrpcOptions {
    size_t max_message_bytes;     /* replies; 0: 2 GiB - 1 */
    int64_t keepalive_ms;         /* PING when silent that long with calls under way; 0: 20 s */
    int64_t keepalive_timeout_ms; /* connection is dead without an answer; 0: 20 s */
    int64_t connect_timeout_ms;   /* 0: 20 s */
    bool plain_grpc;              /* false: calls of Rill servers are brief, see http2_brief.c */
    bool tcp_only;                /* false: tasks of one host and user take sockets of the kernel, see local_socket.h */
} GrpcOptions;

Error *transport_grpc_new(const GrpcOptions *options, Transport **out) MUST_CHECK; /* options may be NULL */

/* Transports made from one network reach each other by the addresses they serve; no sockets. */
typedef struct LoopbackNetwork LoopbackNetwork;
LoopbackNetwork *loopback_network_new(void);
void loopback_network_free(LoopbackNetwork *n); /* after its transports */
Transport *transport_loopback_new(LoopbackNetwork *n);

/* Reaches what is served on the network without sockets and everything else by gRPC; serves on both. To the network its
 * address is the host of own_address, "host:port", with the port it serves on. */
Error *transport_joined_new(LoopbackNetwork *n, const GrpcOptions *options, Str own_address, Transport **out) MUST_CHECK;

/* What the transport holds right now; for leak tests and `rill status`. */
typedef struct TransportStats {
    int64_t connections_in, connections_out, calls_in, calls_out;
    int64_t messages_lent; /* since the start: those that a task of this host copied from our memory */
} TransportStats;
TransportStats transport_stats(Transport *t);
