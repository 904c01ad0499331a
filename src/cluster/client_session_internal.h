/* client_session_internal.h: the two kinds of ClientSession. */
#pragma once
#include <stdatomic.h>

#include "cluster/client_session.h"
#include "proto/config.pb-c.h"

typedef struct ClientSessionKind {
    Error *(*extend)(ClientSession *s, Str graph_def);
    Error *(*run)(ClientSession *s, const ClientStep *step, Tensor **fetches, StrBuf *metadata);
    Error *(*partial_setup)(ClientSession *s, const RunSignature *signature, char **handle);
    Error *(*devices)(ClientSession *s, ClientDeviceInfo **out, int *count);
    Error *(*close)(ClientSession *s);
    void (*free)(ClientSession *s);
} ClientSessionKind;

struct ClientSession {
    const ClientSessionKind *kind;
    _Atomic bool is_closed;
    int64_t timeout_ms; /* of every call: operation_timeout_in_ms of the config; 0: none */
};

Error *local_session_open(const ClientSessionOptions *options, Str graph_def, ClientSession **out) MUST_CHECK;
Error *master_client_open(const ClientSessionOptions *options, Str graph_def, ClientSession **out) MUST_CHECK;
Error *master_client_reset(const ClientSessionOptions *options, const Str *containers, int count) MUST_CHECK;

/* Free with pb__config_proto__free_unpacked. */
Error *client_config(Str bytes, Pb__ConfigProto **out) MUST_CHECK;
void client_device_set(ClientDeviceInfo *row, const Pb__DeviceAttributes *device);
