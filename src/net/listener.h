/* listener.h: Listener, the sockets that accept connections on one address. */
#pragma once
#include "base/error.h"
#include "base/str.h"
#include "net/loop.h"

typedef struct Listener Listener;
typedef void ListenerAccepted(void *arg, int fd); /* on the loop; owns fd */

/* Binds every address that the host has, and the local sockets beside them unless tcp_only. bound_address is malloced:
 * the host as given, the port in use. */
Error *listener_open(Str address, bool tcp_only, Listener **out, char **bound_address) MUST_CHECK;

/* On the loop's thread. */
void listener_start(Listener *l, Loop *loop, ListenerAccepted *accepted, void *arg);
void listener_close(Listener *l); /* frees it once the loop has let go; may follow listener_open at once */
