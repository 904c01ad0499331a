/* loop_wait.c: a thread that waits for a call reads its answer itself: it is the poller from before the call is made until the answer is there, awake and asleep. */
#include <poll.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/loop_internal.h"

static _Thread_local bool is_waiting; /* as the poller */

bool loop_wait_is_here(void) {
    return is_waiting;
}

void loop_wait_begin(Loop *l, LoopWait *w) {
    *w = (LoopWait){.began_ns = clock_mono_ns()};
    uint64_t poller = atomic_load(&l->poller);
    if (loop_is_own_thread() || poller % 2 || atomic_load(&l->is_ended)) return; /* a thread of the loop waits for nothing */
    w->ticket = loop_become_poller(l, &l->wait_policy, poller, true, &w->limit_ns);
    is_waiting = w->ticket != 0;
}

/* Looks for events and works on them. False: as drive_as_guest. */
static bool poll_for_call(Loop *l, LoopWait *w, const _Atomic bool *done) {
    PollLook look = poll_look(w->limit_ns, clock_mono_ns());
    PollEnd how;
    bool goes_on = true;
    while ((how = loop_look_for_events(l, w->ticket, &look, done)) == POLL_FOUND && !atomic_load(done)) {
        goes_on = loop_drive_as_guest(l);
        look.last_ns = clock_mono_ns();
        if (!goes_on || (!atomic_load(done) && !poll_look_on(&look, look.last_ns, &how))) break;
    }
    loop_note_poll(l, &l->wait_policy, how, clock_mono_ns() - look.began_ns);
    return goes_on;
}

/* The same, asleep between events. */
static bool sleep_for_call(Loop *l, const _Atomic bool *done) {
    struct pollfd fds[] = {{.fd = uv_backend_fd(&l->uv), .events = POLLIN}, {.fd = l->call_fd, .events = POLLIN}};
    bool goes_on = true;
    atomic_store(&l->is_call_slept_on, true);
    while (goes_on && !atomic_load(done)) {
        if (poll(fds, 2, -1) <= 0) continue;
        uint64_t times;
        if (fds[1].revents && read(l->call_fd, &times, sizeof times) < 0) continue; /* somebody else's wake-up */
        if (fds[0].revents) goes_on = loop_drive_as_guest(l);
    }
    atomic_store(&l->is_call_slept_on, false);
    return goes_on;
}

void loop_wait_for(Loop *l, LoopWait *w, const _Atomic bool *done) {
    if (!w->ticket) return;
    bool goes_on = !w->limit_ns || poll_for_call(l, w, done), slept = goes_on && !atomic_load(done);
    if (slept) goes_on = sleep_for_call(l, done);
    loop_stop_polling(l, w->ticket, false);
    if (!goes_on) uv_async_send(&l->wake);
    is_waiting = false;
    if (!slept || w->limit_ns) return;
    pthread_mutex_lock(&l->watch);
    poll_policy_slept(&l->wait_policy, clock_mono_ns() - w->began_ns);
    pthread_mutex_unlock(&l->watch);
}

void loop_wait_note(Loop *l) {
    if (is_waiting || !atomic_load(&l->is_call_slept_on)) return;
    uint64_t one = 1;
    if (write(l->call_fd, &one, sizeof one) < 0) return; /* it is full of wake-ups */
}
