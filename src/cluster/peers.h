/* peers.h: Peers, channels to other tasks, one for each address. */
#pragma once
#include "cluster/spec.h"
#include "net/transport.h"

/* Thread-safe. */
typedef struct Peers Peers;

Peers *peers_new(Transport *transport);
void peers_free(Peers *p); /* before the transport */
Channel *peers_channel(Peers *p, Str address); /* borrowed; lives as long as the peers */
