/* worker_service.h: WorkerService on the wire. */
#pragma once
#include "cluster/worker.h"
#include "net/transport.h"

/* Rows for the server's method table; the handlers get a Services as arg. */
extern const Method worker_methods[];
extern const int worker_method_count;
void device_attributes_fill(const Device *d, Str name, Pb__DeviceAttributes *out); /* strings point into d and name */
