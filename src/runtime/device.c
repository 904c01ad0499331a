/* device.c: the CPU as a Device, and sets of devices. */
#include "runtime/device.h"

#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/memory.h"
#include "runtime/kernel.h"

static bool cpu_can_run(const Node *node) {
    return kernel_exists(node->op);
}

static Error *cpu_allocate(Device *d, DataType dtype, const Shape *shape, Tensor **out) {
    (void)d;
    return tensor_new(dtype, shape, out);
}

/* Host memory is the CPU's own. */
static Error *cpu_copy(Device *d, const Tensor *from, Tensor **out) {
    (void)d;
    *out = tensor_ref((Tensor *)from);
    return NULL;
}

const DeviceKind cpu_device_kind = {
    .type = "CPU",
    .priority = 50,
    .can_run = cpu_can_run,
    .allocate = cpu_allocate,
    .copy_in = cpu_copy,
    .copy_out = cpu_copy,
};

Device *cpu_device_new(Str task_name, int index, Str default_container) {
    Device *d = xcalloc(1, sizeof *d);
    d->kind = &cpu_device_kind;
    d->name = xasprintf("%.*s/device:CPU:%d", STR_ARG(task_name), index);
    while (d->incarnation == 0)
        if (getrandom(&d->incarnation, sizeof d->incarnation, 0) < 0) d->incarnation = (uint64_t)getpid() << 32 | ((uint64_t)index + 1);
    d->memory_limit = 256ll << 20;
    d->resources = resource_manager_new(default_container);
    return d;
}

void device_free(Device *d) {
    if (!d) return;
    resource_manager_free(d->resources);
    free(d->name);
    free(d);
}

Device *device_find(const DeviceSet *set, Str name) {
    for (int i = 0; i < set->count; i++)
        if (str_is(name, set->devices[i]->name)) return set->devices[i];
    return NULL;
}
