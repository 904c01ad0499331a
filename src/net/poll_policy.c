/* poll_policy.c: trust in short waits, and what is usual among them. */
#include "net/poll_policy.h"

enum {
    TRUST_ENOUGH = 4, /* short waits, less long ones, before one polls */
    TRUST_MOST = 12,
    LOST_BY_VAIN = 3,
    LOST_BY_SLEEP = 2,
    LEAST_LIMIT_NS = 8000,
    FIRST_SIT_OUT = 2,
    LONGEST_SIT_OUT = 256,
};

static void trust_less(PollPolicy *p, int by) {
    p->trust = p->trust > by ? p->trust - by : 0;
}

static void trust_more(PollPolicy *p) {
    if (p->trust < TRUST_MOST) p->trust++;
}

static void note_usual(PollPolicy *p, int64_t ns) {
    p->usual_ns = ns < POLL_MAX_NS ? ns : POLL_MAX_NS;
}

int64_t poll_policy_limit(PollPolicy *p) {
    if (p->trust < TRUST_ENOUGH) return 0;
    if (p->sit_out > 0) {
        p->sit_out--;
        return 0;
    }
    if (!p->usual_ns) return POLL_MAX_NS;
    int64_t limit = p->usual_ns * 3;
    return limit < LEAST_LIMIT_NS ? LEAST_LIMIT_NS : limit < POLL_MAX_NS ? limit : POLL_MAX_NS;
}

void poll_policy_polled(PollPolicy *p, PollEnd how, int64_t waited_ns) {
    switch (how) {
    case POLL_FOUND:
        trust_more(p);
        note_usual(p, p->usual_ns ? (p->usual_ns * 7 + waited_ns) / 8 : waited_ns);
        p->next_sit_out = p->next_sit_out / 2;
        break;
    case POLL_VAIN:
        trust_less(p, LOST_BY_VAIN);
        note_usual(p, p->usual_ns * 5 / 4); /* perhaps it looked too shortly */
        break;
    case POLL_PUSHED:
        p->sit_out = p->next_sit_out < FIRST_SIT_OUT ? FIRST_SIT_OUT : p->next_sit_out;
        p->next_sit_out = p->sit_out * 2 < LONGEST_SIT_OUT ? p->sit_out * 2 : LONGEST_SIT_OUT;
        break;
    case POLL_TAKEN: break;
    }
}

void poll_policy_slept(PollPolicy *p, int64_t waited_ns) {
    if (waited_ns <= POLL_SHORT_SLEEP_NS)
        trust_more(p);
    else
        trust_less(p, LOST_BY_SLEEP);
}

bool poll_look_on(PollLook *look, int64_t now_ns, PollEnd *how) {
    bool is_pushed = now_ns - look->last_ns > POLL_PUSHED_NS, is_over = now_ns - look->began_ns > look->limit_ns;
    look->last_ns = now_ns;
    *how = is_pushed ? POLL_PUSHED : POLL_VAIN;
    return !is_pushed && !is_over;
}
