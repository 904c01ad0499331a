/* grpc_server.h: GrpcServer, accepts connections and hands their calls to handlers. */
#pragma once
#include "net/grpc_internal.h"

Error *grpc_server_new(GrpcTransport *t, Str address, const ServerOptions *options, GrpcServer **out,
                       char **bound_address) MUST_CHECK;
void grpc_server_stop(GrpcServer *s, int64_t grace_ms); /* waits; from any thread but the loop's */
void grpc_server_free(GrpcServer *s);                   /* stopped, and the loop too */
