/* connector.h: Connector, one attempt to connect to "host:port", over all addresses the name has. */
#pragma once
#include "base/error.h"
#include "net/conn.h"
#include "net/loop.h"

/* Everything on the loop's thread. */
typedef struct Connector Connector;

/* conn is connected but not started; NULL: err says why not. Owns both. The Connector is gone. */
typedef void ConnectorDone(void *arg, Error *err, Conn *conn);

Connector *connector_start(Loop *loop, const char *host, const char *port, bool tcp_only, ConnectorDone *done, void *arg);
void connector_cancel(Connector *c); /* done will not run */
