/* request_fuzz.c: requests of clients and masters, one method after another, for a task that serves in this process. */
#include "cluster/loopback_cluster.h"
#include "fuzz_target.h"

enum { WAIT_MS = 40 };

static const char *const methods[] = {
    "MasterService/CreateSession", "MasterService/ExtendSession", "MasterService/PartialRunSetup", "MasterService/RunStep", "MasterService/MakeCallable",
    "MasterService/RunCallable", "MasterService/ReleaseCallable", "MasterService/ListDevices", "MasterService/CloseSession", "WorkerService/GetStatus",
    "WorkerService/CreateWorkerSession", "WorkerService/DeleteWorkerSession", "WorkerService/RegisterGraph", "WorkerService/DeregisterGraph", "WorkerService/RunGraph",
    "WorkerService/CleanupGraph", "WorkerService/CleanupAll", "WorkerService/RecvTensor", "WorkerService/Logging", "WorkerService/Tracing",
    "WorkerService/GetStepSequence", "WorkerService/CompleteGroup", "WorkerService/CompleteInstance", "WorkerService/RecvBuf",
};
enum { METHODS = sizeof methods / sizeof methods[0] };

static Cluster *cluster;
static char *session;

static char *new_session(void) {
    GraphBuilder b = {0};
    gb_placeholder(&b, "p", DT_FLOAT);
    gb_variable(&b, "v", 1);
    gb_op(&b, "sum", "AddV2", "p,v/read", DT_FLOAT);
    gb_i32(&b, "ten", 10);
    gb_count_loop(&b, "loop", "ten", 2, NULL);
    char *handle = NULL;
    Error *err = create_session_with(cluster, 0, &b, STR(""), &handle);
    if (err) fprintf(stderr, "%s\n", err->message), abort();
    return handle;
}

static void start(void) {
    cluster = cluster_new(0, 1, 2000);
    cluster_start_task(cluster, 0);
    session = new_session();
}

static Error *call(const char *method, StrBuf *request, Message *reply) {
    char path[100];
    snprintf(path, sizeof path, "/tensorflow.%s", method);
    Message m = {0};
    message_add_copy(&m, strbuf_str(request));
    return channel_call_wait(cluster->channels[0], path, &m, (CallOptions){.timeout_ms = WAIT_MS}, reply);
}

/* A session the input asked for is closed at once: nothing grows. */
static void close_made(Message *reply) {
    StrBuf request = {0};
    Message none = {0};
    wire_put_bytes(&request, 1, reply_field(reply, 1, NULL));
    error_free(call("MasterService/CloseSession", &request, &none));
    message_clear(&none);
    strbuf_clear(&request);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (!cluster) start();
    Str input = input_str(data, size);
    for (int i = 0; i < 4 && input.len; i++) { /* a few calls: what one does the next one meets */
        unsigned method = take_choice(&input) % METHODS;
        Str body = take_piece(&input);
        StrBuf request = {0};
        Message reply = {0};
        bool has_session = method > 0 && method < 9 && method != 7;
        if (has_session) wire_put_bytes(&request, 1, str_of(session)); /* the input may say otherwise behind it */
        strbuf_add(&request, body);
        Error *err = call(methods[method], &request, &reply);
        if (!err && method == 0) close_made(&reply);
        if (!err && method == 8) {
            free(session);
            session = new_session();
        }
        error_free(err);
        message_clear(&reply);
        strbuf_clear(&request);
    }
    return 0;
}
