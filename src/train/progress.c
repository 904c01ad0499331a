/* progress.c: a hook that shows how far the training is: a bar on a terminal, a line now and then elsewhere. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/str.h"
#include "rill/training.h"

enum { MAX_SHOWN = 4, BAR = 30 };

typedef struct ProgressHook {
    RillHook base;
    int64_t last_step, first_step, start_ns, shown_ns, shown_step;
    char *names[MAX_SHOWN];
    RillTensor tensors[MAX_SHOWN];
    int count;
    bool is_terminal, is_due, has_started;
} ProgressHook;

static int progress_before_run(RillHook *base, RillTraining *t, RillTensor *fetches, int max) {
    ProgressHook *h = (ProgressHook *)base;
    int64_t step = rill_training_step(t);
    int64_t every_ns = h->is_terminal ? 100000000 : 2000000000;
    if (!h->has_started) {
        h->has_started = true;
        h->first_step = step;
        h->start_ns = clock_mono_ns();
    }
    h->is_due = max >= h->count && (clock_mono_ns() - h->shown_ns >= every_ns || step + 2 >= h->last_step);
    for (int i = 0; h->is_due && i < h->count; i++) fetches[i] = h->tensors[i];
    return h->is_due ? h->count : 0;
}

static void put_time(StrBuf *b, int64_t seconds) {
    if (seconds >= 3600)
        strbuf_addf(b, "%lld:%02lld:%02lld", (long long)(seconds / 3600), (long long)(seconds / 60 % 60), (long long)(seconds % 60));
    else
        strbuf_addf(b, "%lld:%02lld", (long long)(seconds / 60), (long long)(seconds % 60));
}

static void progress_after_run(RillHook *base, RillTraining *t, TF_Tensor *const *values, int64_t step) {
    (void)t;
    ProgressHook *h = (ProgressHook *)base;
    if (!h->is_due) return;
    int64_t now = clock_mono_ns();
    double seconds = (double)(now - h->start_ns) / 1e9, rate = seconds > 0 ? (double)(step - h->first_step) / seconds : 0;
    StrBuf line = {0};
    if (h->is_terminal) {
        int done = h->last_step > 0 ? (int)(step * BAR / h->last_step) : 0;
        strbuf_addf(&line, "\r\033[K[");
        for (int i = 0; i < BAR; i++) strbuf_addf(&line, i < done ? "#" : ".");
        strbuf_addf(&line, "] ");
    }
    strbuf_addf(&line, "step %lld", (long long)step);
    if (h->last_step > 0) strbuf_addf(&line, "/%lld", (long long)h->last_step);
    for (int i = 0; i < h->count; i++) strbuf_addf(&line, "  %s %.4f", h->names[i], rill_value_number(values[i]));
    strbuf_addf(&line, "  %.1f steps/s", rate);
    if (h->last_step > step && rate > 0) {
        strbuf_addf(&line, "  ");
        put_time(&line, (int64_t)((double)(h->last_step - step) / rate) + 1);
        strbuf_addf(&line, " left");
    }
    fprintf(stderr, "%s%s", line.ptr, h->is_terminal ? "" : "\n");
    strbuf_clear(&line);
    h->shown_ns = now;
}

static void progress_end(RillHook *base, RillTraining *t, RillSession *s) {
    (void)t;
    (void)s;
    if (((ProgressHook *)base)->is_terminal) fputc('\n', stderr);
}

static void progress_free(RillHook *base) {
    ProgressHook *h = (ProgressHook *)base;
    for (int i = 0; i < h->count; i++) free(h->names[i]);
    free(h);
}

RillHook *rill_hook_progress(int64_t last_step, const char *const *names, const RillTensor *tensors, int count) {
    ProgressHook *h = xcalloc(1, sizeof *h);
    *h = (ProgressHook){.base = {.before_run = progress_before_run, .after_run = progress_after_run, .end = progress_end, .free = progress_free},
                        .last_step = last_step, .is_terminal = isatty(2)};
    for (; h->count < count && h->count < MAX_SHOWN; h->count++) {
        h->names[h->count] = xstrdup(names[h->count]);
        h->tensors[h->count] = tensors[h->count];
    }
    return &h->base;
}
