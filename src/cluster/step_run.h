/* step_run.h: StepRun, one step of a master over all tasks that have a part in it. */
#pragma once
#include "base/error.h"
#include "cluster/client_graph.h"
#include "cluster/master_session.h"
#include "net/transport.h"

typedef struct StepRun StepRun;

/* What one round of RunGraph calls does; an ordinary step has one round, a partial run several. */
typedef struct StepRound {
    const Str *send_keys;
    Tensor *const *send_values;
    int send_count;
    const Str *recv_keys;
    Tensor **recv_values; /* filled, one reference each */
    int recv_count;
    bool trace, costs, partition_graphs, is_partial, is_last;
    int64_t timeout_ms; /* for step_run_round */
    ServerCall *call; /* (optional) its cancellation cancels the step */
    StrBuf *step_stats, *cost_graph, *partition_graph_fields; /* (optional) */
} StepRound;

StepRun *step_run_new(MasterSession *s, ClientGraph *g, int64_t step_id); /* keeps references to both */
Error *step_run_round(StepRun *run, const StepRound *round) MUST_CHECK; /* waits until every task has answered */

/* The same without waiting, for a round that is not traced and has no timeout. done runs exactly once, on the thread that ended last, perhaps before
 * this returns; what the round points to must live until then. Takes err. */
typedef void StepRoundDone(void *arg, Error *err);
void step_run_start(StepRun *run, const StepRound *round, StepRoundDone *done, void *arg);

void step_run_cancel(StepRun *run, Error *reason); /* takes reason; the round under way ends with it */
void step_run_cleanup(StepRun *run); /* CleanupGraph at every task that needs it */
void step_run_free(StepRun *run);

StepRun **step_run_next(StepRun *run); /* the link of the session's list */
