/* session_internal.h: what graphs and sessions know of each other. */
#pragma once
#include "tensorflow/c/c_api.h"

int session_sent_nodes(const TF_Session *s); /* of its graph, guarded by the graph's mutex */
void graph_add_session_locked(TF_Graph *g, TF_Session *s);
void graph_remove_session(TF_Graph *g, TF_Session *s); /* frees the graph when its user has deleted it and this was the last */
