/* cmd_stop.c: rill stop grpc://HOST:PORT: ends every task of a cluster. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/flags.h"
#include "base/memory.h"
#include "cluster/codec.h"
#include "net/transport.h"
#include "proto/job.pb-c.h"
#include "tools/command.h"
#include "tools/report.h"

enum { STOP_MS = 60000 };

/* {"stopped": true when everybody was told, "unreached": [...], "error": "..." when the given task could not be told}. */
static void print_json(const Error *err, char *const *unreached, int count) {
    cJSON *json = cJSON_CreateObject();
    cJSON_AddBoolToObject(json, "stopped", !err && count == 0);
    if (err) report_str(json, "error", str_of(err->message));
    cJSON *list = report_array(json, "unreached");
    for (int i = 0; i < count; i++) report_str(list, NULL, str_of(unreached[i]));
    report_print(json);
}

/* How many tasks could not be told, -1 when the given one could not. */
static int stop(Transport *t, const char *address, bool only_this, bool as_json) {
    Channel *c = transport_channel(t, str_of(address));
    Pb__StopRequest request = PB__STOP_REQUEST__INIT;
    request.whole_cluster = !only_this;
    Message m = {0}, reply = {0};
    codec_pack(&request.base, &m);
    Error *err = channel_call_wait(c, "/rill.JobService/Stop", &m, (CallOptions){.timeout_ms = STOP_MS}, &reply);
    ProtobufCMessage *answer = NULL;
    if (!err) err = codec_unpack(&pb__stop_response__descriptor, &reply, &answer);
    message_clear(&reply);
    channel_unref(c);
    if (err) {
        if (as_json) print_json(err, NULL, 0);
        fprintf(stderr, "rill stop: %s: %s\n", address, err->code == CODE_UNIMPLEMENTED ? "is not a Rill task and cannot be told to end" : err->message);
        error_free(err);
        return -1;
    }
    const Pb__StopResponse *got = (Pb__StopResponse *)answer;
    int unreached = (int)got->n_unreached;
    if (as_json) print_json(NULL, got->unreached, unreached);
    for (int i = 0; i < unreached; i++) fprintf(stderr, "rill stop: not told: %s\n", got->unreached[i]);
    protobuf_c_message_free_unpacked(answer, NULL);
    return unreached;
}

int cmd_stop(int argc, char **argv) {
    bool only_this = false, as_json = false, help = false;
    const Flag flags[] = {
        {"task-only", FLAG_BOOL, &only_this, NULL, "end only the task at that address"},
        {"json", FLAG_BOOL, &as_json, NULL, "for programs"},
        {"help", FLAG_BOOL, &help, NULL, "print this"},
        {0},
    };
    const char *usage = "stop [--task-only] [--json] grpc://HOST:PORT\n\nEnds every task of the cluster that the given task belongs to, as by SIGTERM. Exit code 1 when one could not be told.\n", *target = NULL;
    int count = 0, code = 0;
    if (!command_parse(flags, usage, argc, argv, &target, 1, 1, &count, &code)) return code;
    Transport *t = NULL;
    Error *err = transport_grpc_new(NULL, &t);
    if (err) return command_failed("stop", err);
    const char *address = strncmp(target, "grpc://", 7) == 0 ? target + 7 : target;
    int failed = stop(t, address, only_this, as_json);
    transport_free(t);
    return failed ? EXIT_FAILURE : 0;
}
