/* remote_rendezvous.h: how a step receives from other tasks: RecvTensor. */
#pragma once
#include "runtime/rendezvous.h"

/* RemoteRecv of every step of a worker; arg is its StepEntry. */
void remote_recv(void *arg, Rendezvous *r, Str key, RecvDone *done, void *done_arg);
