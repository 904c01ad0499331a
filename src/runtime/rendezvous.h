/* rendezvous.h: hands the tensors of one step from producers to consumers, by key. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "tensor/tensor.h"

/* Thread-safe. A producer never blocks. The first abort wins and reaches every waiter, present and future. */
typedef struct Rendezvous Rendezvous;

typedef void RecvDone(void *arg, Error *err, Tensor *value, bool is_dead); /* owns err and value; value NULL when dead */

/* How keys of other tasks are asked for, and sent to those who need not ask; the cluster provides it. */
typedef struct RemoteWay {
    void (*recv)(void *arg, Rendezvous *r, Str key, RecvDone *done, void *done_arg);
    Error *(*push)(void *arg, Rendezvous *r, Str key, Tensor *value, bool is_dead);
} RemoteWay;

Rendezvous *rendezvous_new(int64_t step_id, const RemoteWay *remote, void *remote_arg); /* remote may be NULL */
Rendezvous *rendezvous_ref(Rendezvous *r);
void rendezvous_unref(Rendezvous *r);
int64_t rendezvous_step_id(const Rendezvous *r);

Error *rendezvous_send(Rendezvous *r, Str key, Tensor *value, bool is_dead) MUST_CHECK; /* keeps a reference to value */
/* The same, and taken is told once when somebody has received the value, or why nobody will. Owns err; may run before this returns. */
typedef void TakenDone(void *arg, Error *err);
void rendezvous_offer(Rendezvous *r, Str key, Tensor *value, TakenDone *taken, void *arg);
void rendezvous_recv(Rendezvous *r, Str key, RecvDone *done, void *arg); /* done may run before this returns */
Error *rendezvous_push(Rendezvous *r, Str key, Tensor *value, bool is_dead) MUST_CHECK; /* sends to the task of its key */
void rendezvous_recv_remote(Rendezvous *r, Str key, RecvDone *done, void *arg);
/* Withdraws a waiter registered with (key, arg); true when done will not be called. */
bool rendezvous_withdraw(Rendezvous *r, Str key, void *arg);
void rendezvous_abort(Rendezvous *r, const Error *reason);
void rendezvous_end(Rendezvous *r); /* aborts because the step is over */
bool rendezvous_is_empty(Rendezvous *r); /* nobody waits in it, and nothing waits for anybody */
bool rendezvous_is_aborted(Rendezvous *r);

/* <src device>;<incarnation, 16 hex digits>;<dst device>;<name>;<frame>:<iteration> */
typedef struct RendezvousKey {
    Str src_device, dst_device, edge;
    uint64_t src_incarnation;
} RendezvousKey;
bool rendezvous_key_parse(Str key, RendezvousKey *out);
