/* bridge.h: what Rill's training library needs of graphs and sessions beyond the C API. */
#pragma once
#include "base/error.h"
#include "base/str.h"
#include "net/transport.h"
#include "tensorflow/c/c_api.h"

/* Derivatives of the sum of ys by each x; values[i].oper is NULL where nothing depends on it. With `indices`, gradients of single rows stay so: their values and which
 * rows they are; without, all are dense. New operations ask for the device of the one they differentiate. On error the graph is as before. */
Error *bridge_gradients(TF_Graph *graph, const TF_Output *ys, int y_count, const TF_Output *xs, int x_count, TF_Output *values, TF_Output *indices) MUST_CHECK;

/* A session; config is a serialised ConfigProto. transport (optional, outlives it): the way to a master within this process. */
Error *bridge_session(TF_Graph *graph, Str target, Str config, Transport *transport, TF_Session **out) MUST_CHECK;
