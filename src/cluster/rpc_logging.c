/* rpc_logging.c: WorkerService.Logging, before and after a traced step. */
#include "cluster/rpc_logging.h"

#include "base/log.h"
#include "cluster/codec.h"
#include "cluster/worker_client.h"
#include "proto/worker.pb-c.h"

enum { LOGGING_MS = 10000 };

static WorkerCalls *call_all(SessionTasks *t, const ClientGraph *graph, const Pb__LoggingRequest *request) {
    WorkerCalls *calls = worker_calls_new(t->task_count);
    for (int i = 1; i < t->task_count; i++) {
        if (!graph->handles[i].ptr) continue;
        Message m = {0};
        codec_pack(&request->base, &m);
        worker_calls_start(calls, i, &t->tasks[i], "Logging", &m, (CallOptions){.timeout_ms = LOGGING_MS});
    }
    worker_calls_wait(calls, -1);
    return calls;
}

void rpc_logging_start(SessionTasks *tasks, const ClientGraph *graph) {
    Pb__LoggingRequest request = PB__LOGGING_REQUEST__INIT;
    request.enable_rpc_logging = true;
    worker_calls_free(call_all(tasks, graph, &request));
}

static void add_reply(Message *reply, int64_t step_id, StrBuf *step_stats) {
    ProtobufCMessage *m = NULL;
    Error *err = codec_unpack(&pb__logging_response__descriptor, reply, &m);
    if (err) {
        log_debug("a reply to Logging is left out: %s", err->message);
        error_free(err);
        return;
    }
    const Pb__LoggingResponse *got = (Pb__LoggingResponse *)m;
    for (size_t i = 0; i < got->n_step; i++)
        if (got->step[i]->step_id == step_id) strbuf_add(step_stats, codec_str(got->step[i]->step_stats)); /* repeated fields join */
    protobuf_c_message_free_unpacked(m, NULL);
}

void rpc_logging_fetch(SessionTasks *tasks, const ClientGraph *graph, int64_t step_id, StrBuf *step_stats) {
    Pb__LoggingRequest request = PB__LOGGING_REQUEST__INIT;
    request.disable_rpc_logging = true;
    request.fetch_step_id = &step_id;
    request.n_fetch_step_id = 1;
    WorkerCalls *calls = call_all(tasks, graph, &request);
    for (int i = 1; i < tasks->task_count; i++)
        if (graph->handles[i].ptr && !worker_calls_error(calls, i)) add_reply(worker_calls_reply(calls, i), step_id, step_stats);
    worker_calls_free(calls);
}
