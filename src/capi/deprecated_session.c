/* deprecated_session.c: TF_DeprecatedSession: graphs as GraphDef, tensors by name. */
#include <stdlib.h>

#include "base/memory.h"
#include "capi/client_internal.h"
#include "capi/graph_internal.h"
#include "capi/status_internal.h"

struct TF_DeprecatedSession {
    ClientSession *client;
};

TF_DeprecatedSession *TF_NewDeprecatedSession(const TF_SessionOptions *options, TF_Status *status) {
    capi_init();
    ClientSession *client = NULL;
    if (!status_take(status, client_open(options, STR(""), &client))) return NULL;
    TF_DeprecatedSession *s = xcalloc(1, sizeof *s);
    s->client = client;
    return s;
}

void TF_CloseDeprecatedSession(TF_DeprecatedSession *s, TF_Status *status) {
    status_take(status, client_session_close(s->client));
}

void TF_DeleteDeprecatedSession(TF_DeprecatedSession *s, TF_Status *status) {
    status_take(status, NULL);
    if (!s) return;
    client_session_free(s->client);
    free(s);
}

void TF_ExtendGraph(TF_DeprecatedSession *s, const void *proto, size_t proto_len, TF_Status *status) {
    status_take(status, client_session_extend(s->client, (Str){proto, proto_len}));
}

/* The names as a signature; free the feeds. */
static RunSignature names_of(const char **inputs, int ninputs, const char **outputs, int noutputs, const char **targets, int ntargets) {
    Str *names = xcalloc((size_t)(ninputs + noutputs + ntargets), sizeof *names);
    for (int i = 0; i < ninputs; i++) names[i] = str_of(inputs[i]);
    for (int i = 0; i < noutputs; i++) names[ninputs + i] = str_of(outputs[i]);
    for (int i = 0; i < ntargets; i++) names[ninputs + noutputs + i] = str_of(targets[i]);
    return (RunSignature){.feeds = names, .fetches = names + ninputs, .targets = names + ninputs + noutputs, .feed_count = ninputs, .fetch_count = noutputs, .target_count = ntargets};
}

/* Takes the inputs over, as these two functions always did. */
static void run(TF_DeprecatedSession *s, ClientStep step, TF_Tensor **inputs, TF_Tensor **outputs, TF_Buffer *run_metadata, TF_Status *status) {
    for (int i = 0; i < step.signature.fetch_count; i++) outputs[i] = NULL;
    status_take(status, client_run(s->client, &step, inputs, outputs, run_metadata));
    for (int i = 0; i < step.signature.feed_count; i++) TF_DeleteTensor(inputs[i]);
    free((Str *)step.signature.feeds);
}

void TF_Run(TF_DeprecatedSession *s, const TF_Buffer *run_options, const char **input_names, TF_Tensor **inputs, int ninputs, const char **output_names, TF_Tensor **outputs,
            int noutputs, const char **target_oper_names, int ntargets, TF_Buffer *run_metadata, TF_Status *status) {
    ClientStep step = {.signature = names_of(input_names, ninputs, output_names, noutputs, target_oper_names, ntargets), .options = buffer_str(run_options)};
    run(s, step, inputs, outputs, run_metadata, status);
}

void TF_PRunSetup(TF_DeprecatedSession *s, const char **input_names, int ninputs, const char **output_names, int noutputs, const char **target_oper_names, int ntargets,
                  const char **handle, TF_Status *status) {
    RunSignature signature = names_of(input_names, ninputs, output_names, noutputs, target_oper_names, ntargets);
    char *made = NULL;
    status_take(status, client_session_partial_setup(s->client, &signature, &made));
    *handle = made;
    free((Str *)signature.feeds);
}

void TF_PRun(TF_DeprecatedSession *s, const char *handle, const char **input_names, TF_Tensor **inputs, int ninputs, const char **output_names, TF_Tensor **outputs,
             int noutputs, const char **target_oper_names, int ntargets, TF_Status *status) {
    ClientStep step = {.signature = names_of(input_names, ninputs, output_names, noutputs, target_oper_names, ntargets), .partial_handle = str_of(handle)};
    run(s, step, inputs, outputs, NULL, status);
}

TF_DeviceList *TF_DeprecatedSessionListDevices(TF_DeprecatedSession *s, TF_Status *status) {
    return client_device_list(s->client, status);
}
