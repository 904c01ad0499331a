/* services.h: what the handlers of a server work on. */
#pragma once
#include "base/threadpool.h"
#include "cluster/worker.h"
#include "net/transport.h"

typedef struct Master Master;

typedef struct Services {
    Worker *worker;
    Master *master;
    ThreadPool *compute, *serve;
    Transport *transport;
    struct JobEnd *job_end;
    struct Server *owner;
} Services;

/* Reads the request of a call; replies with the error itself and returns NULL when it is malformed. */
void *service_request(ServerCall *call, const ProtobufCMessageDescriptor *type);
void service_free(void *request); /* what service_request gave */
void service_reply(ServerCall *call, const ProtobufCMessage *reply);
void service_reply_empty(ServerCall *call);
/* Replies empty, or fails with err when it is not NULL. */
void service_finish(ServerCall *call, Error *err);
