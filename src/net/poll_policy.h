/* poll_policy.h: PollPolicy, whether and how long to look for the next event before one sleeps. No clock and no I/O of its own.

   To be woken costs more than most messages do, so a thread looks a while before it sleeps; but only while recent waits were
   short, for not much longer than they were, and not while others want the core. Whoever waits for long never polls. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

enum {
    POLL_MAX_NS = 200000,        /* the longest look */
    POLL_SHORT_SLEEP_NS = 320000, /* who slept no longer, waking included, might have polled */
    POLL_PUSHED_NS = 50000,     /* between two looks: somebody else had the core, and not only to answer */
};

typedef struct PollPolicy { /* zero-initialised: nothing known, does not poll */
    int trust;              /* up by each short wait, down by each long one */
    int64_t usual_ns;       /* what waits took that ended while one looked */
    int sit_out, next_sit_out; /* waits without polling, since others wanted the core */
} PollPolicy;

typedef enum PollEnd {
    POLL_FOUND,  /* something came */
    POLL_VAIN,   /* the time is over */
    POLL_PUSHED, /* somebody else wants the core */
    POLL_TAKEN,  /* another thread looks on: says nothing about the wait */
} PollEnd;

/* How long to look this time; 0: sleep at once. */
int64_t poll_policy_limit(PollPolicy *p);
void poll_policy_polled(PollPolicy *p, PollEnd how, int64_t waited_ns); /* one look has ended */
void poll_policy_slept(PollPolicy *p, int64_t waited_ns);              /* one wait without a look, until somebody was awake */

/* One look under way. */
typedef struct PollLook {
    int64_t began_ns, last_ns, limit_ns;
} PollLook;

static inline PollLook poll_look(int64_t limit_ns, int64_t now_ns) {
    return (PollLook){now_ns, now_ns, limit_ns};
}

/* After each look in vain: true to look on, else *how says why not. */
bool poll_look_on(PollLook *look, int64_t now_ns, PollEnd *how);
