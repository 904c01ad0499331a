/* conn.h: Conn, one socket under one Http2 session. */
#pragma once
#include <uv.h>

#include "net/http2.h"
#include "net/lending.h"
#include "net/loop.h"

/* All functions: for who has the loop's turn. */
typedef struct Conn Conn;
typedef void ConnClosed(void *arg, const Error *why);

Conn *conn_new(Loop *loop); /* not yet connected; conn_close frees it */
uv_tcp_t *conn_tcp(Conn *c); /* libuv's name for any connected socket */
void conn_set_peer(Conn *c, const char *peer); /* what the socket does not know: of a local one */

/* Begins to read. Takes http2. closed runs once, from the loop and never inside another function of Conn; http2 and the
 * Conn are gone afterwards. idle_ms and timeout_ms: when the kernel probes a silent peer, and when it gives up. */
void conn_start(Conn *c, Http2 *http2, int64_t idle_ms, int64_t timeout_ms, ConnClosed *closed, void *arg);

Http2 *conn_http2(Conn *c);
Lending *conn_lending(const Conn *c); /* NULL: not of this host */
const char *conn_peer(const Conn *c); /* "127.0.0.1:4711" */
int64_t conn_last_read_ns(const Conn *c);
void conn_flush_soon(Conn *c);        /* after anything was sent on the session; not in its events elsewhere than on
                                         the loop's thread, which flushes once per turn; others write at once */
void conn_close(Conn *c, Error *why); /* at once; takes why, the first one counts */
