/* device.h: Device, where nodes run; a table of what each kind of device can do. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/threadpool.h"
#include "graph/graph.h"
#include "runtime/resource.h"

typedef struct Device Device;
typedef struct DeviceSet DeviceSet;
typedef struct DeviceProgram DeviceProgram; /* what a kind makes of a partition; only the kind looks inside */
typedef struct SessionState SessionState;
typedef struct StepContext StepContext;
typedef struct StepIo StepIo;
typedef void StepDone(void *arg, Error *err); /* owns err; runs on a pool thread, or in `run` when nothing had to wait */

typedef struct DeviceKind {
    const char *type; /* "CPU" */
    int priority;     /* the highest that can run a node gets it */
    bool (*can_run)(const Node *node);
    Error *(*allocate)(Device *d, DataType dtype, const Shape *shape, Tensor **out); /* memory of the outputs of its nodes */
    Error *(*copy_in)(Device *d, Tensor *host, Tensor **out); /* host memory to the device; one reference */
    Error *(*copy_out)(Device *d, Tensor *own, Tensor **out); /* and back */
    /* A partition is all nodes of one graph on the devices of one kind in this process, or the body of a function. compile takes the graph over, also on
     * error. Partitions meet in the step's rendezvous, by _Send and _Recv, where values are in host memory. */
    Error *(*compile)(Graph *take, const DeviceSet *devices, SessionState *session, DeviceProgram **out);
    void (*run)(const DeviceProgram *p, StepContext *context, const StepIo *io, StepDone *done, void *arg);
    const Graph *(*graph)(const DeviceProgram *p); /* as it is run */
    void (*free)(DeviceProgram *p);
} DeviceKind;

struct Device {
    const DeviceKind *kind;
    char *name; /* "/job:ps/replica:0/task:0/device:CPU:0" */
    uint64_t incarnation; /* random, new at every start */
    int64_t memory_limit;
    ResourceManager *resources;
};

extern const DeviceKind cpu_device_kind;
/* The kind of that type which this program knows; NULL when it knows none: another task may have devices of any type. */
const DeviceKind *device_kind_find(Str type);
Device *cpu_device_new(Str task_name, int index, Str default_container); /* task_name "/job:ps/replica:0/task:0" */
void device_free(Device *d);

/* The devices of one process. */
struct DeviceSet {
    Device **devices;
    int count;
};
Device *device_find(const DeviceSet *set, Str name); /* full name; NULL when it is not here */
