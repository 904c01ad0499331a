/* cmd_status.c: rill status grpc://HOST:PORT: the tasks of a cluster, seen from one of them. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/flags.h"
#include "base/memory.h"
#include "net/transport.h"
#include "tools/command.h"
#include "tools/report.h"

enum { TIMEOUT_MS = 3000 };

/* Asks a task for its status; NULL with *err when it does not answer, and an object with only a name when it is no Rill task. */
static cJSON *ask(Transport *t, const char *address, Error **err) {
    Channel *c = transport_channel(t, str_of(address));
    Message request = {0}, reply = {0};
    *err = channel_call_wait(c, "/rill.StatusService/Status", &request, (CallOptions){.timeout_ms = TIMEOUT_MS}, &reply);
    cJSON *json = NULL;
    if (!*err) {
        Str text = message_flatten(&reply);
        json = cJSON_ParseWithLength(text.ptr, text.len);
        if (!json) *err = error_internal("%s sent a status that is not JSON", address);
    } else if ((*err)->code == CODE_UNIMPLEMENTED) {
        error_free(*err);
        *err = NULL;
        json = cJSON_CreateObject();
        cJSON_AddStringToObject(json, "server", "tensorflow");
    }
    message_clear(&reply);
    channel_unref(c);
    return json;
}

static double number(const cJSON *json, const char *name) {
    const cJSON *item = cJSON_GetObjectItem(json, name);
    return cJSON_IsNumber(item) ? item->valuedouble : 0;
}

static void print_row(const char *name, const char *address, const cJSON *status, const Error *err) {
    if (err) {
        printf("%-28s %-22s %-12s %s\n", name, address, "UNREACHABLE", err->message);
        return;
    }
    const cJSON *server = cJSON_GetObjectItem(status, "server");
    if (!cJSON_GetObjectItem(status, "task")) {
        printf("%-28s %-22s %-12s %s task: no details\n", name, address, "UP", cJSON_IsString(server) ? server->valuestring : "unknown");
        return;
    }
    printf("%-28s %-22s %-12s up %.0f s, %d devices, %.0f client and %.0f worker sessions, %.0f graphs, %.0f running, %.0f resources, %.0f steps\n", name, address, "UP",
           number(status, "uptime_s"), cJSON_GetArraySize(cJSON_GetObjectItem(status, "devices")), number(status, "client_sessions"),
           number(status, "worker_sessions"), number(status, "graphs"), number(status, "runs"), number(status, "resources"), number(status, "steps_run"));
}

/* The asked task first, then every other of its cluster. Returns how many could not be reached. */
static int show_cluster(Transport *t, const char *address, bool as_json) {
    Error *err = NULL;
    cJSON *first = ask(t, address, &err);
    cJSON *list = cJSON_CreateArray();
    if (err) {
        cJSON *row = report_object(list, NULL);
        report_str(row, "address", str_of(address));
        report_str(row, "error", str_of(err->message));
        cJSON_AddFalseToObject(row, "reachable");
        if (as_json) report_print(list);
        else cJSON_Delete(list);
        fprintf(stderr, "rill status: %s: %s\n", address, err->message);
        error_free(err);
        return -1;
    }
    int lost = 0;
    const cJSON *tasks = cJSON_GetObjectItem(first, "tasks"), *own = cJSON_GetObjectItem(first, "task");
    if (!as_json) printf("%-28s %-22s %-12s\n", "TASK", "ADDRESS", "STATE");
    if (!tasks && !as_json) print_row("?", address, first, NULL);
    const cJSON *task;
    cJSON_ArrayForEach(task, tasks) {
        const char *name = cJSON_GetObjectItem(task, "name")->valuestring, *at = cJSON_GetObjectItem(task, "address")->valuestring;
        bool is_own = cJSON_IsString(own) && strcmp(name, own->valuestring) == 0;
        cJSON *status = is_own ? cJSON_Duplicate(first, true) : ask(t, at, &err);
        lost += err != NULL;
        if (!as_json) print_row(name, at, status, err);
        if (!status) status = cJSON_CreateObject();
        if (!cJSON_GetObjectItem(status, "task")) cJSON_AddStringToObject(status, "task", name);
        cJSON_AddStringToObject(status, "address", at);
        if (err) cJSON_AddStringToObject(status, "error", err->message);
        cJSON_AddBoolToObject(status, "reachable", !err);
        cJSON_AddItemToArray(list, status);
        error_free(err);
        err = NULL;
    }
    if (as_json) report_print(list);
    else cJSON_Delete(list);
    cJSON_Delete(first);
    return lost;
}

static bool all_answer(Transport *t, const char *address) {
    Error *err = NULL;
    cJSON *first = ask(t, address, &err);
    const cJSON *task;
    cJSON_ArrayForEach(task, cJSON_GetObjectItem(first, "tasks")) {
        if (err) break;
        cJSON_Delete(ask(t, cJSON_GetObjectItem(task, "address")->valuestring, &err));
    }
    cJSON_Delete(first);
    bool ok = !err;
    error_free(err);
    return ok;
}

/* Until every task answers, or the time is over. */
static void wait_for_all(Transport *t, const char *address, int64_t seconds) {
    int64_t deadline = clock_mono_ns() + seconds * 1000000000;
    while (clock_mono_ns() < deadline && !all_answer(t, address)) nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
}

int cmd_status(int argc, char **argv) {
    bool as_json = false, help = false;
    int64_t wait_s = 0;
    const Flag flags[] = {
        {"wait", FLAG_INT, &wait_s, "SECONDS", "wait up to so long until every task answers (0)"},
        {"json", FLAG_BOOL, &as_json, NULL, "for programs"},
        {"help", FLAG_BOOL, &help, NULL, "print this"},
        {0},
    };
    const char *usage = "status [--json] [--wait SECONDS] grpc://HOST:PORT\n\nShows every task of the cluster that the given task belongs to. Exit code 1 when one cannot be reached.\n", *target = NULL;
    int count = 0, code = 0;
    if (!command_parse(flags, usage, argc, argv, &target, 1, 1, &count, &code)) return code;
    Transport *t = NULL;
    Error *err = transport_grpc_new(NULL, &t);
    if (err) return command_failed("status", err);
    const char *address = strncmp(target, "grpc://", 7) == 0 ? target + 7 : target;
    wait_for_all(t, address, wait_s);
    int lost = show_cluster(t, address, as_json);
    transport_free(t);
    return lost ? EXIT_FAILURE : 0;
}
