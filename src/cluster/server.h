/* server.h: Server, one task: its devices, worker, master and the transport that joins them to others. */
#pragma once
#include "base/error.h"
#include "cluster/spec.h"
#include "net/transport.h"

typedef struct ServerConfig {
    const ClusterSpec *cluster; /* copied */
    Str job;
    int task;
    int cpu_devices;            /* 0: one */
    int threads;                /* of the compute pool; 0: as many as cores */
    int64_t session_timeout_ms; /* 0: 60 s */
    int max_sessions;           /* 0: 1000 */
    size_t max_message_bytes;   /* of requests; 0: 2 GiB - 1 */
    Str listen;                 /* (optional) "host:port" to listen on instead of the port of the task's address on all interfaces */
    void (*ended)(void *arg);   /* (optional) the task was told to end, or its job is done; it must not wait and not stop the server itself */
    void *ended_arg;
} ServerConfig;

typedef struct Server Server;

/* Takes the transport over, also on error. */
Error *server_start(const ServerConfig *config, Transport *take, Server **out) MUST_CHECK;
Str server_target(const Server *s); /* "grpc://host:port" */
struct Master *server_master(Server *s); /* for sessions opened by function */
/* Waits until the task is told to end or its job is done; false when timeout_ms (-1: none) has passed first. The server still serves. */
bool server_wait(Server *s, int64_t timeout_ms);
/* This task has done its part: the ps tasks are told, and end when all have. */
void server_announce_done(Server *s);
void server_end(Server *s); /* as if it was told to: server_wait returns */
void server_stop(Server *s, int64_t grace_ms); /* and frees it; nobody may be in server_wait */
