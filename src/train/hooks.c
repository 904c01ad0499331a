/* hooks.c: hooks that stop, save, summarise, log and guard. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "train/graph_internal.h"
#include "train/hooks_internal.h"

/* ---- Stop ---- */

typedef struct StopHook {
    RillHook base;
    int64_t last_step;
} StopHook;

/* The step that came with the run may be the one before it: near the end it is read again. */
static void stop_after_run(RillHook *h, RillTraining *t, TF_Tensor *const *values, int64_t step) {
    (void)values;
    int64_t last = ((StopHook *)h)->last_step;
    if (step + 1 < last) return;
    if (step < last) {
        TF_Status *status = TF_NewStatus();
        RillSession *s = rill_training_session(t);
        double now = rill_session_number(s, rill_variable_value(rill_global_step(rill_session_graph(s))), status);
        if (TF_GetCode(status) == TF_OK) step = (int64_t)now;
        TF_DeleteStatus(status);
    }
    if (step >= last) rill_training_stop(t);
}

static void free_hook(RillHook *h) {
    free(h);
}

RillHook *rill_hook_stop_at(int64_t last_step) {
    StopHook *h = xcalloc(1, sizeof *h);
    *h = (StopHook){{.after_run = stop_after_run, .free = free_hook}, last_step};
    return &h->base;
}

/* ---- Checkpoints ---- */

typedef struct CheckpointHook {
    RillHook base;
    RillSaver *saver;
    char *path;
    int seconds;
    int64_t steps, saved_step, saved_ns;
} CheckpointHook;

static void save(CheckpointHook *h, RillTraining *t, RillSession *s) {
    TF_Status *status = TF_NewStatus();
    int64_t step = (int64_t)rill_session_number(s, rill_variable_value(rill_global_step(rill_session_graph(s))), status);
    char *prefix = NULL;
    if (TF_GetCode(status) == TF_OK && step != h->saved_step) prefix = rill_saver_save(h->saver, s, h->path, step, status);
    TF_Code code = TF_GetCode(status);
    if (prefix) h->saved_step = step;
    /* A task that is lost now is found by the next run, which recovers. */
    if (code != TF_OK && code != TF_UNAVAILABLE && code != TF_ABORTED) training_fail(t, code, TF_Message(status));
    h->saved_ns = clock_mono_ns();
    free(prefix);
    TF_DeleteStatus(status);
}

static void checkpoint_session_made(RillHook *base, RillTraining *t, RillSession *s) {
    CheckpointHook *h = (CheckpointHook *)base;
    h->saved_step = -1;
    save(h, t, s); /* so that a ps that dies soon can be restored */
}

static void checkpoint_after_run(RillHook *base, RillTraining *t, TF_Tensor *const *values, int64_t step) {
    (void)values;
    CheckpointHook *h = (CheckpointHook *)base;
    bool due = h->steps > 0 ? step - h->saved_step >= h->steps : h->seconds > 0 && clock_mono_ns() - h->saved_ns >= h->seconds * 1000000000ll;
    if (due) save(h, t, rill_training_session(t));
}

static void checkpoint_end(RillHook *base, RillTraining *t, RillSession *s) {
    save((CheckpointHook *)base, t, s);
}

static void checkpoint_free(RillHook *base) {
    free(((CheckpointHook *)base)->path);
    free(base);
}

RillHook *hook_checkpoint(RillSaver *saver, const char *directory, int seconds, int64_t steps) {
    CheckpointHook *h = xcalloc(1, sizeof *h);
    *h = (CheckpointHook){.base = {.session_made = checkpoint_session_made, .after_run = checkpoint_after_run, .end = checkpoint_end, .free = checkpoint_free},
                          .saver = saver, .path = xasprintf("%s/model.ckpt", directory), .seconds = seconds, .steps = steps, .saved_step = -1};
    return &h->base;
}

/* ---- Summaries ---- */

typedef struct SummaryHook {
    RillHook base;
    RillTensor fetches[2];
    int fetch_count;
    bool has_summary, has_loss, is_due;
    char *directory;
    RillWriter *writer;
    int every;
    int64_t next_step, rate_step, rate_ns;
} SummaryHook;

static void summary_session_made(RillHook *base, RillTraining *t, RillSession *s) {
    SummaryHook *h = (SummaryHook *)base;
    if (h->writer) return;
    TF_Status *status = TF_NewStatus();
    h->writer = rill_writer_open(h->directory, status);
    if (h->writer)
        rill_writer_graph(h->writer, rill_session_graph(s));
    else
        training_fail(t, TF_GetCode(status), TF_Message(status));
    TF_DeleteStatus(status);
}

static int summary_before_run(RillHook *base, RillTraining *t, RillTensor *fetches, int max) {
    SummaryHook *h = (SummaryHook *)base;
    h->is_due = rill_training_step(t) >= h->next_step && max >= h->fetch_count;
    for (int i = 0; h->is_due && i < h->fetch_count; i++) fetches[i] = h->fetches[i];
    return h->is_due ? h->fetch_count : 0;
}

static void summary_after_run(RillHook *base, RillTraining *t, TF_Tensor *const *values, int64_t step) {
    (void)t;
    SummaryHook *h = (SummaryHook *)base;
    if (!h->is_due) return;
    if (h->has_summary) rill_writer_summary(h->writer, values[0], step);
    if (h->has_loss) rill_writer_scalar(h->writer, "loss", rill_value_number(values[h->has_summary]), step);
    int64_t now = clock_mono_ns();
    if (h->rate_ns && now > h->rate_ns) rill_writer_scalar(h->writer, "global_step/sec", (double)(step - h->rate_step) * 1e9 / (double)(now - h->rate_ns), step);
    h->rate_ns = now;
    h->rate_step = step;
    h->next_step = step + h->every;
}

static void summary_end(RillHook *base, RillTraining *t, RillSession *s) {
    (void)s;
    SummaryHook *h = (SummaryHook *)base;
    TF_Status *status = TF_NewStatus();
    if (h->writer && rill_writer_flush(h->writer, status) != TF_OK) training_fail(t, TF_GetCode(status), TF_Message(status));
    TF_DeleteStatus(status);
}

static void summary_free(RillHook *base) {
    SummaryHook *h = (SummaryHook *)base;
    rill_writer_close(h->writer);
    free(h->directory);
    free(h);
}

RillHook *hook_summary(RillTensor merged, RillTensor loss, const char *directory, int every_steps) {
    SummaryHook *h = xcalloc(1, sizeof *h);
    *h = (SummaryHook){.base = {.session_made = summary_session_made, .before_run = summary_before_run, .after_run = summary_after_run, .end = summary_end, .free = summary_free},
                       .has_summary = tensor_ok(merged), .has_loss = tensor_ok(loss), .directory = xstrdup(directory), .every = every_steps};
    if (h->has_summary) h->fetches[h->fetch_count++] = merged;
    if (h->has_loss) h->fetches[h->fetch_count++] = loss;
    return &h->base;
}

/* ---- Lines ---- */

enum { MAX_LOGGED = 8 };

typedef struct LogHook {
    RillHook base;
    char *names[MAX_LOGGED];
    RillTensor tensors[MAX_LOGGED];
    int count, every;
    int64_t next_step, last_step, last_ns;
    bool is_due;
} LogHook;

static int log_before_run(RillHook *base, RillTraining *t, RillTensor *fetches, int max) {
    LogHook *h = (LogHook *)base;
    h->is_due = rill_training_step(t) + 1 >= h->next_step && max >= h->count;
    for (int i = 0; h->is_due && i < h->count; i++) fetches[i] = h->tensors[i];
    return h->is_due ? h->count : 0;
}

static void log_after_run(RillHook *base, RillTraining *t, TF_Tensor *const *values, int64_t step) {
    LogHook *h = (LogHook *)base;
    if (!h->is_due || step < h->next_step) return;
    StrBuf line = {0};
    int64_t now = clock_mono_ns();
    strbuf_addf(&line, "step %lld", (long long)step);
    for (int i = 0; i < h->count; i++) strbuf_addf(&line, "  %s %.6g", h->names[i], rill_value_number(values[i]));
    if (h->last_ns && now > h->last_ns) strbuf_addf(&line, "  %.1f steps/s", (double)(step - h->last_step) * 1e9 / (double)(now - h->last_ns));
    const RillTask *task = training_task(t);
    if (task)
        rill_log(task, "%s", line.ptr);
    else
        log_info("%s", line.ptr);
    strbuf_clear(&line);
    h->last_ns = now;
    h->last_step = step;
    h->next_step = step - step % h->every + h->every;
}

static void log_free(RillHook *base) {
    LogHook *h = (LogHook *)base;
    for (int i = 0; i < h->count; i++) free(h->names[i]);
    free(h);
}

RillHook *rill_hook_log(const char *const *names, const RillTensor *tensors, int count, int every_steps) {
    LogHook *h = xcalloc(1, sizeof *h);
    *h = (LogHook){.base = {.before_run = log_before_run, .after_run = log_after_run, .free = log_free}, .every = every_steps > 0 ? every_steps : 100};
    for (; h->count < count && h->count < MAX_LOGGED; h->count++) {
        h->names[h->count] = xstrdup(names[h->count]);
        h->tensors[h->count] = tensors[h->count];
    }
    return &h->base;
}

RillHook *hook_step_rate(int every_steps, RillTensor loss) {
    return rill_hook_log((const char *[]){"loss"}, &loss, tensor_ok(loss) ? 1 : 0, every_steps);
}

/* ---- NaN ---- */

typedef struct NanHook {
    RillHook base;
    RillTensor loss;
} NanHook;

static int nan_before_run(RillHook *base, RillTraining *t, RillTensor *fetches, int max) {
    (void)t;
    if (max < 1) return 0;
    fetches[0] = ((NanHook *)base)->loss;
    return 1;
}

static void nan_after_run(RillHook *base, RillTraining *t, TF_Tensor *const *values, int64_t step) {
    (void)base;
    if (!isnan(rill_value_number(values[0]))) return;
    char *text = xasprintf("The loss is not a number at step %lld", (long long)step);
    training_fail(t, TF_INVALID_ARGUMENT, text);
    free(text);
}

RillHook *rill_hook_nan_guard(RillTensor loss) {
    NanHook *h = xcalloc(1, sizeof *h);
    *h = (NanHook){{.before_run = nan_before_run, .after_run = nan_after_run, .free = free_hook}, loss};
    return &h->base;
}
