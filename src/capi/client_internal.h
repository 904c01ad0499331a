/* client_internal.h: ClientSession with the types of the C API. */
#pragma once
#include "base/error.h"
#include "cluster/client_session.h"
#include "capi/graph_internal.h"
#include "tensorflow/c/c_api.h"

void session_options_add_config(TF_SessionOptions *options, Str more); /* fields of a ConfigProto */
Error *client_open(const TF_SessionOptions *options, Str graph_def, ClientSession **out) MUST_CHECK;
/* Values by the step's signature; output_values are NULL before, and on error. */
Error *client_run(ClientSession *s, ClientStep *step, TF_Tensor *const *input_values, TF_Tensor **output_values, TF_Buffer *run_metadata) MUST_CHECK;
TF_DeviceList *client_device_list(ClientSession *s, TF_Status *status);

/* A session of a graph of which the client has this already. */
TF_Session *session_over(TF_Graph *graph, ClientSession *client, GraphSent sent);
