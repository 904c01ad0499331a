/* step_table.h: the rendezvous of every step this worker has heard of.

   A peer may ask for a tensor before RunGraph arrives and after it was answered, so an entry is made by whoever comes first. It stays until the run
   has ended well and every tensor was fetched, until CleanupGraph, or until the session of its step is deleted. */
#pragma once
#include <stdint.h>

#include "runtime/rendezvous.h"

typedef struct StepTable StepTable;
typedef struct WorkerSession WorkerSession;

/* `remote` is how steps ask other tasks; its arg is the StepEntry. */
typedef struct StepEntry StepEntry;

StepTable *step_table_new(const RemoteWay *remote, void *worker);
void step_table_free(StepTable *t); /* aborts what is left */

/* Finds or makes the entry; a reference. */
StepEntry *step_table_get(StepTable *t, int64_t step_id);
/* For a tensor that comes unasked: NULL when the step is not known here, or is over. *is_over says which. */
StepEntry *step_table_find(StepTable *t, int64_t step_id, bool *is_over);
StepEntry *step_entry_ref(StepEntry *e);
void step_entry_unref(StepEntry *e);
Rendezvous *step_entry_rendezvous(StepEntry *e);
void *step_entry_worker(StepEntry *e);
/* The session whose step it is: for the addresses of peers, and so that it goes with the session. */
void step_entry_set_session(StepEntry *e, WorkerSession *s);
WorkerSession *step_entry_session(StepEntry *e); /* borrowed; NULL before RunGraph */
bool step_entry_is_ended(StepEntry *e);          /* by step_table_end */

void step_table_cleanup(StepTable *t, int64_t step_id);                       /* CleanupGraph */
void step_table_cleanup_session(StepTable *t, WorkerSession *s);
void step_table_end(StepTable *t, StepEntry *e);          /* its run has ended well: peers may still fetch what it has sent */
void step_table_drop_if_idle(StepTable *t, StepEntry *e); /* a peer gave up on a step that never ran here, or fetched the last of one that has ended */
/* A step failed here; later a member of its collectives may ask for a part of it, in vain. The last few hundred are remembered. */
void step_table_note_failure(StepTable *t, int64_t step_id, const Error *err);
void step_table_forget_failure(StepTable *t, int64_t step_id); /* it is tried again, under the same id */
Error *step_table_failure(StepTable *t, int64_t step_id); /* a copy; NULL when it is not known to have failed */
int64_t step_table_count(StepTable *t);
