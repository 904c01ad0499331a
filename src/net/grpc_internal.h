/* grpc_internal.h: GrpcTransport, what the server side and the channels of the grpc transport share. */
#pragma once
#include "base/list.h"
#include "net/transport_internal.h"

typedef struct GrpcServer GrpcServer;

/* Lives until its user has freed it and the last channel, call and server call is gone. */
typedef struct GrpcTransport {
    Transport base;
    RefCount refs;
    Loop *loop;
    ThreadPool *copiers; /* of large messages: one beside the thread that wants it; none before the first */
    GrpcOptions options; /* defaults filled in */
    _Atomic int64_t connections_in, connections_out, calls_in, calls_out, messages_lent;
    HandlerCount handlers;
    bool is_closed;        /* for its owner */
    pthread_mutex_t mutex; /* guards what follows; never held while waiting for the loop */
    List channels;         /* of GrpcChannel */
    GrpcServer *server;    /* NULL: does not serve */
    bool is_serving;       /* or about to */
} GrpcTransport;

void grpc_transport_unref(GrpcTransport *t);
