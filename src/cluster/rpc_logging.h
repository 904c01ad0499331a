/* rpc_logging.h: the transfers of a traced step, as the tasks that run it logged them. */
#pragma once
#include "base/str.h"
#include "cluster/client_graph.h"

/* Tells the remote tasks of the graph to log their calls. A task that does not answer goes without: a trace never fails a step. */
void rpc_logging_start(SessionTasks *tasks, const ClientGraph *graph);
/* Ends it and adds what was logged for the step to the serialised StepStats. Rill's tasks answer with nothing: their transfers come with the other statistics
 * of RunGraph. */
void rpc_logging_fetch(SessionTasks *tasks, const ClientGraph *graph, int64_t step_id, StrBuf *step_stats);
