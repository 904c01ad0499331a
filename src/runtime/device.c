/* device.c: the CPU as a Device, and sets of devices. */
#include "runtime/device.h"

#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/memory.h"
#include "runtime/kernel.h"
#include "runtime/plan.h"
#include "runtime/step.h"

static bool cpu_can_run(const Node *node) {
    return kernel_has(node);
}

static Error *cpu_allocate(Device *d, DataType dtype, const Shape *shape, Tensor **out) {
    (void)d;
    return tensor_new(dtype, shape, out);
}

/* Host memory is the CPU's own. */
static Error *cpu_copy(Device *d, Tensor *from, Tensor **out) {
    (void)d;
    *out = tensor_ref(from);
    return NULL;
}

/* The CPU runs a partition node by node: its program is a Plan. */
static Error *cpu_compile(Graph *take, const DeviceSet *devices, SessionState *session, DeviceProgram **out) {
    Plan *plan = NULL;
    Error *err = plan_build(take, devices, session, &plan);
    *out = (DeviceProgram *)plan;
    return err;
}

static void cpu_run(const DeviceProgram *p, StepContext *context, const StepIo *io, StepDone *done, void *arg) {
    step_start((const Plan *)p, context, io, done, arg);
}

static const Graph *cpu_graph(const DeviceProgram *p) {
    return ((const Plan *)p)->graph;
}

static void cpu_free(DeviceProgram *p) {
    plan_free((Plan *)p);
}

const DeviceKind cpu_device_kind = {
    .type = "CPU",
    .priority = 50,
    .can_run = cpu_can_run,
    .allocate = cpu_allocate,
    .copy_in = cpu_copy,
    .copy_out = cpu_copy,
    .compile = cpu_compile,
    .run = cpu_run,
    .graph = cpu_graph,
    .free = cpu_free,
};

const DeviceKind *device_kind_find(Str type) {
    static const DeviceKind *const kinds[] = {&cpu_device_kind};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (str_is(type, kinds[i]->type)) return kinds[i];
    return NULL;
}

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
