/* client_session.c: what both kinds of sessions share. */
#include "cluster/client_session.h"

#include <stdlib.h>

#include "base/memory.h"
#include "cluster/client_session_internal.h"

Error *client_config(Str bytes, Pb__ConfigProto **out) {
    *out = pb__config_proto__unpack(NULL, bytes.len, (const uint8_t *)bytes.ptr);
    return *out ? NULL : error_invalid("Unparseable ConfigProto");
}

static bool is_local(Str target) {
    return !target.len || str_is(target, "local");
}

static Error *unknown_target(Str target) {
    return error_not_found("No session factory registered for the given session options: {target: \"%.*s\"}. Targets are \"\" and \"grpc://host:port\".", STR_ARG(target));
}

Error *client_session_open(const ClientSessionOptions *options, Str graph_def, ClientSession **out) {
    if (is_local(options->target)) return local_session_open(options, graph_def, out);
    if (str_starts(options->target, STR("grpc://"))) return master_client_open(options, graph_def, out);
    return unknown_target(options->target);
}

Error *client_reset(const ClientSessionOptions *options, const Str *containers, int count) {
    if (is_local(options->target)) return NULL; /* a local session shares its containers with nobody */
    if (str_starts(options->target, STR("grpc://"))) return master_client_reset(options, containers, count);
    return unknown_target(options->target);
}

static Error *check_open(ClientSession *s) {
    return atomic_load(&s->is_closed) ? error_new(CODE_CANCELLED, "Session has been closed.") : NULL;
}

Error *client_session_extend(ClientSession *s, Str graph_def) {
    Error *err = check_open(s);
    return err ? err : s->kind->extend(s, graph_def);
}

Error *client_session_run(ClientSession *s, const ClientStep *step, Tensor **fetches, StrBuf *metadata) {
    Error *err = check_open(s);
    const RunSignature *sig = &step->signature;
    if (!err && !step->partial_handle.len && !sig->fetch_count && !sig->target_count)
        err = error_invalid("Must specify at least one target to fetch or execute.");
    return err ? err : s->kind->run(s, step, fetches, metadata);
}

Error *client_session_partial_setup(ClientSession *s, const RunSignature *signature, char **handle) {
    Error *err = check_open(s);
    return err ? err : s->kind->partial_setup(s, signature, handle);
}

Error *client_session_devices(ClientSession *s, ClientDeviceInfo **out, int *count) {
    Error *err = check_open(s);
    return err ? err : s->kind->devices(s, out, count);
}

void client_device_set(ClientDeviceInfo *row, const Pb__DeviceAttributes *device) {
    *row = (ClientDeviceInfo){xstrdup(device->name), xstrdup(device->device_type), device->memory_limit, device->incarnation};
}

void client_devices_free(ClientDeviceInfo *devices, int count) {
    for (int i = 0; i < count; i++) {
        free(devices[i].name);
        free(devices[i].type);
    }
    free(devices);
}

Error *client_session_close(ClientSession *s) {
    return atomic_exchange(&s->is_closed, true) ? NULL : s->kind->close(s);
}

void client_session_free(ClientSession *s) {
    if (!s) return;
    error_free(client_session_close(s));
    s->kind->free(s);
}
