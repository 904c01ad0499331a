/* job_progress.c: the chief's step count by StatusService, and its rate. */
#include "tools/job_progress.h"

#include <cjson/cJSON.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "net/transport.h"

struct JobProgress {
    Transport *transport;
    Channel *channel;
    int64_t started_ns, asked_ns;
    _Atomic bool is_asking;
    _Atomic int64_t steps;
    int64_t shown_steps;
    double rate; /* steps a second, smoothed */
};

JobProgress *job_progress_new(const char *chief_address) {
    JobProgress *p = xcalloc(1, sizeof *p);
    Error *err = transport_grpc_new(NULL, &p->transport);
    if (err) {
        error_free(err);
        free(p);
        return NULL;
    }
    p->channel = transport_channel(p->transport, str_of(chief_address));
    p->started_ns = clock_mono_ns();
    return p;
}

void job_progress_free(JobProgress *p) {
    if (!p) return;
    channel_unref(p->channel);
    transport_free(p->transport);
    free(p);
}

static void answered(void *arg, Error *err, Message *reply) {
    JobProgress *p = arg;
    if (!err) {
        Str text = message_flatten(reply);
        cJSON *json = cJSON_ParseWithLength(text.ptr, text.len);
        const cJSON *steps = cJSON_GetObjectItem(json, "steps_run");
        if (cJSON_IsNumber(steps)) atomic_store(&p->steps, (int64_t)steps->valuedouble);
        cJSON_Delete(json);
    }
    error_free(err);
    atomic_store(&p->is_asking, false);
}

void job_progress_show(JobProgress *p, TaskLog *log, int running, int tasks) {
    int64_t now = clock_mono_ns();
    if (now - p->asked_ns < 1000000000) return;
    int64_t steps = atomic_load(&p->steps);
    double seconds = (double)(now - p->asked_ns) / 1e9, rate = (double)(steps - p->shown_steps) / seconds;
    if (p->asked_ns) p->rate = p->rate ? 0.7 * p->rate + 0.3 * rate : rate;
    p->shown_steps = steps;
    p->asked_ns = now;
    int elapsed = (int)((now - p->started_ns) / 1000000000);
    char *text = xasprintf("\033[1mrill up\033[0m  %d:%02d  %d of %d tasks compute  step %lld  %.1f/s", elapsed / 60, elapsed % 60, running, tasks, (long long)steps, p->rate);
    task_log_progress(log, text);
    free(text);
    if (atomic_exchange(&p->is_asking, true)) return;
    Message request = {0};
    call_unref(channel_call(p->channel, "/rill.StatusService/Status", &request, (CallOptions){.timeout_ms = 2000}, answered, p));
}
