/* task_internal.h: the struct behind RillTask, and what the process shares. */
#pragma once
#include "cluster/server.h"
#include "cluster/spec.h"
#include "net/transport.h"
#include "rill/task.h"
#include "train/flags.h"

struct RillTask {
    const ClusterSpec *cluster; /* NULL: on its own */
    const ProgramFlags *flags;
    char *job, *target, *device;
    int index;
    Server *server;       /* NULL: on its own */
    Transport *transport; /* the server's, by which its sessions reach it without a socket; NULL: by the target's address */
    bool is_client; /* no task: it uses the cluster from outside */
    int exit_code;
};
