/* grpc_channel.h: GrpcChannel, a Channel over a socket. */
#pragma once
#include "net/grpc_internal.h"

Channel *grpc_channel_new(GrpcTransport *t, Str address);
void grpc_channels_close(GrpcTransport *t); /* on the loop: every call ends with Cancelled, every connection closes */
