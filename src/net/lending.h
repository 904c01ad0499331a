/* lending.h: large messages between two processes of one host and user: the sender tells where they lie, the receiver copies them from there. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/threadpool.h"
#include "net/loop.h"
#include "net/slice.h"

typedef struct Conn Conn;

/* What one connection knows of the other side's memory. Shared by the connection and the messages that came over it. */
typedef struct Lending Lending;

/* With the loop's turn. */
Lending *lending_new(Conn *conn, Loop *loop, int fd); /* over a local socket: offers our memory. NULL: the peer is not to be seen from here */
void lending_end(Lending *l);                         /* the connection is gone, and its reference with it; NULL is allowed */
bool lending_fits(const Lending *l, const Message *m); /* the peer can read our memory, and it pays; false for NULL */

/* Any thread. */
Lending *lending_ref(Lending *l); /* NULL is allowed, here and below */
void lending_unref(Lending *l);
pid_t lending_peer(const Lending *l);
void lending_return(Lending *l, int32_t stream_id); /* tells the peer that the answer on this stream is not needed any more */

/* A message that waits in memory to be copied by another process. */
typedef struct Loan Loan;

/* Takes m. *out: what is sent in its place. */
Loan *loan_new(Message *m, Message *out);
void loan_free(void *loan); /* from now on, who still copies finds out that it was too late */

/* Puts the message in the place of what its owner, a process, has sent for it; `helpers` may copy parts of it. Takes long: not with a loop's turn.
 * When it fails, m is as it was. */
Error *loan_fetch(pid_t owner, Message *m, size_t limit, AlignAt *align_at, ThreadPool *helpers) MUST_CHECK;
