/* transport_internal.h: what an implementation of Transport provides, and the parts that all of them share. */
#pragma once
#include <pthread.h>
#include <stdatomic.h>

#include "base/refcount.h"
#include "net/loop.h"
#include "net/transport.h"

typedef struct TransportTable {
    Channel *(*channel)(Transport *t, Str address);
    Error *(*serve)(Transport *t, Str address, const ServerOptions *options, char **bound_address);
    void (*stop_serving)(Transport *t, int64_t grace_ms);
    TransportStats (*stats)(Transport *t);
    void (*close)(Transport *t); /* may come again */
    void (*free)(Transport *t);  /* closed */
} TransportTable;

struct Transport {
    const TransportTable *table;
};

typedef struct ChannelTable {
    Call *(*call)(Channel *c, const char *path, Message *request, CallOptions options, CallDone *done, void *arg);
    bool (*is_connected)(Channel *c);
    char *(*last_error)(Channel *c);
    void (*close)(Channel *c); /* the last user has let go */
    Loop *(*loop)(Channel *c); /* (optional) which a thread that waits for a call may drive meanwhile; NULL: none */
} ChannelTable;

struct Channel {
    const ChannelTable *table;
    RefCount users;
    char *address;
};

typedef struct CallTable {
    void (*cancel)(Call *call);
    void (*unref)(Call *call);
} CallTable;

struct Call {
    const CallTable *table;
};

/* ---- Server calls: the watcher and the handler work alike everywhere ---- */

/* The handlers running on a pool now; a transport waits for them before it goes. */
typedef struct HandlerCount {
    pthread_mutex_t mutex; /* guards count */
    pthread_cond_t none;
    int64_t count;
} HandlerCount;

void handler_count_init(HandlerCount *h);
void handler_count_wait(HandlerCount *h); /* until none runs */
void handler_count_clear(HandlerCount *h);

typedef struct ServerCallTable {
    Error *(*prepare)(ServerCall *call); /* (optional) makes the request whole, where the handler will run */
    void (*finish)(ServerCall *call, Message *reply, Error *err); /* any thread, once; err NULL: takes reply's slices */
    void (*destroy)(ServerCall *call);                            /* any thread, after the last unref */
} ServerCallTable;

typedef enum WatchState { WATCH_NONE, WATCH_SET, WATCH_RUNNING, WATCH_RAN } WatchState;

enum { PEER_NAME_SIZE = 64 };

struct ServerCall {
    const ServerCallTable *table;
    RefCount refs;
    Loop *loop; /* where cancellation happens; outlives the call */
    Message request;
    char peer[PEER_NAME_SIZE];
    int64_t deadline_ns;
    Handler *handler;
    void *handler_arg;
    HandlerCount *handlers;
    LoopTask handler_task;

    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t watcher_returned;
    WatchState watch;
    CancelFn *watcher;
    void *watcher_arg;
    bool is_cancelled, is_finished, is_task_posted;
    LoopTask watcher_task; /* for a watcher that must not run where it was set or cancelled */
};

void server_call_init(ServerCall *call, const ServerCallTable *table, Loop *loop, HandlerCount *handlers);
void server_call_ref(ServerCall *call);
void server_call_unref(ServerCall *call);
void server_call_clear(ServerCall *call);  /* for destroy */
void server_call_cancel(ServerCall *call); /* for who has the loop's turn: tells the watcher, on the loop's thread */

/* Has the handler run, on the pool or, when its row says so, on the thread that has the turn, once it has left it. The handler
 * has its own reference, given back by finish. */
void server_call_dispatch(ServerCall *call, const Method *method, void *arg, ThreadPool *pool);
