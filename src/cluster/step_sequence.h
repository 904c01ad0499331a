/* step_sequence.h: StepSequences, the ids of steps that several masters must agree on, by collective graph key.

   One task, the group leader, makes up the first id of a key; the other masters fetch it from there. After a step that went well everybody counts on by
   one, so the next needs no message; after one that failed the id is forgotten and agreed on anew. */
#pragma once
#include <stdint.h>

/* Thread-safe. */
typedef struct StepSequences StepSequences;

StepSequences *step_sequences_new(void);
void step_sequences_free(StepSequences *s);
int64_t step_sequence_next(StepSequences *s, int64_t graph_key); /* 0: not known here */
int64_t step_sequence_lead(StepSequences *s, int64_t graph_key); /* the leader's answer: made up now when it is not known */
void step_sequence_set(StepSequences *s, int64_t graph_key, int64_t next_step_id);
void step_sequence_retire(StepSequences *s, int64_t graph_key, int64_t step_id); /* that step went well */
void step_sequence_forget(StepSequences *s, int64_t graph_key);
