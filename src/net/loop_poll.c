/* loop_poll.c: one of the threads looks for events while the others sleep: the poller.

   It has a ticket instead of the turn. While there is one, the epoll that the others sleep on is not armed; who stops being the poller arms it, or looks
   at the events itself. */
#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "net/loop_internal.h"

void loop_set_armed_locked(Loop *l, bool armed) {
    struct epoll_event event = {.events = armed ? EPOLLIN | EPOLLONESHOT : 0};
    if (l->is_armed != armed) epoll_ctl(l->wait_fd, EPOLL_CTL_MOD, uv_backend_fd(&l->uv), &event);
    l->is_armed = armed;
}

void loop_arm(Loop *l) {
    pthread_mutex_lock(&l->watch);
    loop_set_armed_locked(l, true);
    pthread_mutex_unlock(&l->watch);
}

bool loop_has_events(Loop *l) {
    struct pollfd events = {.fd = uv_backend_fd(&l->uv), .events = POLLIN};
    return poll(&events, 1, 0) > 0;
}

uint64_t loop_become_poller(Loop *l, PollPolicy *policy, uint64_t instead, bool sleeps_too, int64_t *limit_ns) {
    uint64_t ticket = atomic_fetch_add(&l->tickets, 2) + 2 + sleeps_too;
    pthread_mutex_lock(&l->watch);
    *limit_ns = poll_policy_limit(policy);
    bool is_poller = (*limit_ns || sleeps_too) && atomic_compare_exchange_strong(&l->poller, &instead, ticket);
    if (is_poller) {
        loop_set_armed_locked(l, false);
        l->idle_since_ns = 0;
    }
    pthread_mutex_unlock(&l->watch);
    return is_poller ? ticket : 0;
}

PollEnd loop_look_for_events(Loop *l, uint64_t ticket, PollLook *look, const _Atomic bool *stop) {
    PollEnd how = POLL_FOUND;
    while (!(stop && atomic_load_explicit(stop, memory_order_acquire)) && !loop_has_events(l)) {
        if (atomic_load(&l->poller) != ticket) return POLL_TAKEN;
        if (!poll_look_on(look, clock_mono_ns(), &how)) return how;
        sched_yield();
        how = POLL_FOUND;
    }
    return how;
}

void loop_stop_polling(Loop *l, uint64_t ticket, bool looks_next) {
    pthread_mutex_lock(&l->watch);
    bool was_poller = atomic_compare_exchange_strong(&l->poller, &ticket, 0);
    if (was_poller && !looks_next) loop_set_armed_locked(l, true);
    pthread_mutex_unlock(&l->watch);
}

void loop_note_poll(Loop *l, PollPolicy *policy, PollEnd how, int64_t waited_ns) {
    pthread_mutex_lock(&l->watch);
    poll_policy_polled(policy, how, waited_ns);
    pthread_mutex_unlock(&l->watch);
}
