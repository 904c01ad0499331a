/* device.h: Device, where nodes run; a table of what each kind of device can do. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/threadpool.h"
#include "graph/graph.h"
#include "runtime/resource.h"

typedef struct Plan Plan;
typedef struct Device Device;

typedef struct DeviceKind {
    const char *type; /* "CPU" */
    int priority;     /* the highest that can run a node gets it */
    bool (*can_run)(const Node *node);
    Error *(*allocate)(Device *d, DataType dtype, const Shape *shape, Tensor **out);
    Error *(*copy_in)(Device *d, const Tensor *host, Tensor **out);  /* host memory to the device */
    Error *(*copy_out)(Device *d, const Tensor *own, Tensor **out);  /* and back */
} DeviceKind;

struct Device {
    const DeviceKind *kind;
    char *name; /* "/job:ps/replica:0/task:0/device:CPU:0" */
    uint64_t incarnation; /* random, new at every start */
    int64_t memory_limit;
    ResourceManager *resources;
};

extern const DeviceKind cpu_device_kind;
Device *cpu_device_new(Str task_name, int index, Str default_container); /* task_name "/job:ps/replica:0/task:0" */
void device_free(Device *d);

/* The devices of one process. */
typedef struct DeviceSet {
    Device **devices;
    int count;
} DeviceSet;
Device *device_find(const DeviceSet *set, Str name); /* full name; NULL when it is not here */
