/* gradients_internal.h: gradients added to a TF_Graph, whoever asks for them. */
#pragma once
#include "capi/graph_internal.h"
#include "gradients/gradients.h"

/* On error the graph is as before. Operations that grew are noted for the sessions that have them. */
Error *graph_gradients_locked(TF_Graph *g, const TF_Output *ys, int ny, const TF_Output *xs, int nx, const GradientOptions *options, Gradient *dys) MUST_CHECK;
