/* load_generator.h: LoadGenerator, a client that runs one step over and over at a master, of Rill or of TensorFlow, or in this process, and measures it in windows of time. */
#pragma once
#include <sys/types.h>

#include "tools/bench_case.h"

typedef struct LoadGenerator LoadGenerator;

typedef struct LoadOptions {
    const char *target; /* "": in this process; "grpc://host:port" */
    int64_t warm_steps; /* after the first one */
} LoadOptions;

/* What came before the steady state. */
typedef struct LoadStart {
    double create_ms, init_ms, extend_ms, first_ms; /* CreateSession; the case's init; ExtendSession; the first step */
} LoadStart;

typedef struct LoadWindow {
    double seconds;    /* how long at most; a step under way is waited for, unless it is stuck */
    int64_t max_steps; /* 0: any number */
    const pid_t *pids; /* processes whose CPU time is counted */
    int pid_count;
} LoadWindow;

typedef struct LoadNumbers {
    int64_t steps;  /* 0: the only one was stuck, and the times are 0 */
    double seconds; /* from the start to the end of the last step */
    double median_us, p90_us, least_us;
    double client_cpu_us;  /* a step, of this process */
    double *server_cpu_us; /* a step, by LoadWindow.pids; malloced */
} LoadNumbers;

/* Opens a session with the graph of the case, which must outlive it, and runs everything up to the warm steps. */
Error *load_generator_new(const BenchCase *c, const LoadOptions *options, LoadStart *start, LoadGenerator **out) MUST_CHECK;
/* Runs steps for a while. An error of a step, or of a loop of the case, ends it. */
Error *load_generator_run(LoadGenerator *g, const LoadWindow *window, LoadNumbers *out) MUST_CHECK;
void load_generator_free(LoadGenerator *g); /* cancels what is under way; NULL is allowed */
