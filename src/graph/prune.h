/* prune.h: the part of a graph that one Session.run needs, with feeds and fetches as _Recv and _Send nodes. */
#pragma once
#include "base/error.h"
#include "graph/graph.h"

/* A tensor of the graph that stands where a feed would: all that reads `to` reads `from`. */
typedef struct Connection {
    Str from, to; /* "node:0" or "node" */
} Connection;

typedef struct RunSignature {
    const Str *feeds, *fetches; /* "node:0" or "node" */
    const Str *targets;         /* "node" */
    int feed_count, fetch_count, target_count;
    const Connection *connections; /* in order: one made later changes what an earlier one reads, not the other way round */
    int connection_count;
} RunSignature;

/* Where the client stands: the device on which feeds arrive and fetches leave. */
typedef struct ClientDevice {
    Str name;
    uint64_t incarnation;
    int placed; /* its index */
} ClientDevice;

/* "node:1" as a node name and an index; false when malformed. */
bool tensor_name_parse(Str text, Str *node, int *index);

/* A new graph; names and attributes point into `g`, which must outlive it. */
Error *graph_prune(const Graph *g, const RunSignature *signature, const ClientDevice *client, Graph **out) MUST_CHECK;

/* The rendezvous key of a feed or fetch. */
char *client_key(const ClientDevice *client, Str tensor_name);
