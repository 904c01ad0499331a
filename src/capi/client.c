/* client.c: options of sessions, one step with the tensors of the C API, lists of devices. */
#include <stdlib.h>

#include "base/memory.h"
#include "capi/client_internal.h"
#include "capi/status_internal.h"
#include "capi/tensor_internal.h"
#include "proto/wire.h"

/* ---- Options ---- */

struct TF_SessionOptions {
    char *target;
    StrBuf config; /* serialised ConfigProto */
};

TF_SessionOptions *TF_NewSessionOptions(void) {
    return xcalloc(1, sizeof(TF_SessionOptions));
}

void TF_DeleteSessionOptions(TF_SessionOptions *o) {
    if (!o) return;
    free(o->target);
    strbuf_clear(&o->config);
    free(o);
}

void TF_SetTarget(TF_SessionOptions *o, const char *target) {
    free(o->target);
    o->target = xstrdup(target);
}

void TF_SetConfig(TF_SessionOptions *o, const void *proto, size_t proto_len, TF_Status *status) {
    Str bytes = {proto, proto_len};
    WireReader r = wire_reader(bytes);
    while (wire_next(&r)) continue;
    if (r.failed) {
        status_take(status, error_invalid("Unparseable ConfigProto"));
        return;
    }
    o->config.len = 0;
    strbuf_add(&o->config, bytes);
    status_take(status, NULL);
}

void session_options_add_config(TF_SessionOptions *o, Str more) {
    strbuf_add(&o->config, more);
}

static ClientSessionOptions options_of(const TF_SessionOptions *o) {
    return o ? (ClientSessionOptions){.target = str_of(o->target), .config = strbuf_str(&o->config)} : (ClientSessionOptions){.target = STR(""), .config = STR("")};
}

Error *client_open(const TF_SessionOptions *o, Str graph_def, ClientSession **out) {
    ClientSessionOptions options = options_of(o);
    return client_session_open(&options, graph_def, out);
}

void TF_Reset(const TF_SessionOptions *o, const char **containers, int ncontainers, TF_Status *status) {
    ClientSessionOptions options = options_of(o);
    Str *names = xcalloc((size_t)ncontainers, sizeof *names);
    for (int i = 0; i < ncontainers; i++) names[i] = str_of(containers[i]);
    status_take(status, client_reset(&options, names, ncontainers));
    free(names);
}

/* ---- Steps ---- */

static Error *give_outputs(Tensor **fetches, int count, TF_Tensor **out) {
    Error *err = NULL;
    for (int i = 0; !err && i < count; i++) err = capi_tensor_new(fetches[i], &out[i]);
    for (int i = 0; err && i < count; i++) {
        TF_DeleteTensor(out[i]);
        out[i] = NULL;
    }
    return err;
}

Error *client_run(ClientSession *s, ClientStep *step, TF_Tensor *const *input_values, TF_Tensor **output_values, TF_Buffer *run_metadata) {
    if (run_metadata && run_metadata->data) return error_invalid("Passing non-empty run_metadata is invalid.");
    int feed_count = step->signature.feed_count, fetch_count = step->signature.fetch_count;
    Tensor **feeds = xcalloc((size_t)feed_count, sizeof *feeds), **fetches = xcalloc((size_t)fetch_count, sizeof *fetches);
    StrBuf metadata = {0};
    Error *err = NULL;
    for (int i = 0; !err && i < feed_count; i++)
        err = input_values[i] ? error_wrap(capi_tensor_get(input_values[i], &feeds[i]), "feed %.*s", STR_ARG(step->signature.feeds[i]))
                              : error_invalid("feed %.*s has no tensor", STR_ARG(step->signature.feeds[i]));
    step->feeds = feeds;
    if (!err) err = client_session_run(s, step, fetches, run_metadata ? &metadata : NULL);
    if (!err) err = give_outputs(fetches, fetch_count, output_values);
    if (!err && run_metadata) err = buffer_fill(run_metadata, &metadata);
    strbuf_clear(&metadata);
    for (int i = 0; i < feed_count; i++) tensor_unref(feeds[i]);
    for (int i = 0; i < fetch_count; i++) tensor_unref(fetches[i]);
    free(feeds);
    free(fetches);
    return err;
}

/* ---- Devices ---- */

struct TF_DeviceList {
    ClientDeviceInfo *devices;
    int count;
};

TF_DeviceList *client_device_list(ClientSession *s, TF_Status *status) {
    TF_DeviceList *list = xcalloc(1, sizeof *list);
    if (status_take(status, client_session_devices(s, &list->devices, &list->count))) return list;
    free(list);
    return NULL;
}

void TF_DeleteDeviceList(TF_DeviceList *list) {
    if (!list) return;
    client_devices_free(list->devices, list->count);
    free(list);
}

int TF_DeviceListCount(const TF_DeviceList *list) {
    return list->count;
}

static const ClientDeviceInfo *device_at(const TF_DeviceList *list, int index, TF_Status *status) {
    bool ok = index >= 0 && index < list->count;
    status_take(status, ok ? NULL : error_invalid("index out of bounds: %d of %d devices", index, list->count));
    return ok ? &list->devices[index] : NULL;
}

const char *TF_DeviceListName(const TF_DeviceList *list, int index, TF_Status *status) {
    const ClientDeviceInfo *d = device_at(list, index, status);
    return d ? d->name : NULL;
}

const char *TF_DeviceListType(const TF_DeviceList *list, int index, TF_Status *status) {
    const ClientDeviceInfo *d = device_at(list, index, status);
    return d ? d->type : NULL;
}

int64_t TF_DeviceListMemoryBytes(const TF_DeviceList *list, int index, TF_Status *status) {
    const ClientDeviceInfo *d = device_at(list, index, status);
    return d ? d->memory_bytes : -1;
}

uint64_t TF_DeviceListIncarnation(const TF_DeviceList *list, int index, TF_Status *status) {
    const ClientDeviceInfo *d = device_at(list, index, status);
    return d ? d->incarnation : 0;
}
