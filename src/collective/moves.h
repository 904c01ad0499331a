/* moves.h: Moves, what one member does in a collective: parts of a tensor sent, received, merged, in a given order.

   An algorithm writes them down, moves_start carries them out. Moves of one lane happen one after the other; lanes do not wait for each other. What is
   received is asked for at once, so it may be there when its turn comes; what is sent stays offered until its receiver has taken it. */
#pragma once
#include "base/threadpool.h"
#include "collective/session.h"
#include "kernels/accumulate.h"

typedef struct Moves Moves;

/* Who takes part and with what; all of it must live until done. */
typedef struct MovesContext {
    const CollectiveLink *link; /* NULL: there are no other tasks */
    Rendezvous *rendezvous;     /* of the step */
    ThreadPool *pool;
    const Group *group;
    int rank;
    const Tensor *in; /* (optional) */
    Tensor *out;
    RowFn *merge; /* (optional) own by received */
    void (*divide)(void *to, double divisor, int64_t n); /* (optional) */
} MovesContext;

Moves *moves_new(const MovesContext *c);
int moves_lane(Moves *m);
/* Ranges are in elements of the tensor sent or of the output. Keys are taken over: malloced. */
void moves_send_input(Moves *m, int lane, char *key, int64_t at, int64_t count);
void moves_send_output(Moves *m, int lane, char *key, int64_t at, int64_t count);
void moves_copy_input(Moves *m, int lane, int64_t in_at, int64_t out_at, int64_t count);
void moves_receive(Moves *m, int lane, int from_rank, char *key, int64_t at, int64_t count);
/* The output becomes the input merged with what comes, then divided by the size of the group where `is_last`. */
void moves_merge(Moves *m, int lane, int from_rank, char *key, int64_t at, int64_t count, bool is_last);

void moves_free(Moves *m); /* that were not started */

typedef void MovesDone(void *arg, Error *err); /* owns err */
void moves_start(Moves *m, MovesDone *done, void *arg); /* takes m; the first failure aborts the rendezvous */
