/* poll_policy_test.c: when threads look for events before they sleep, and for how long. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "net/poll_policy.h"

enum { US = 1000, MANY = 1000 };

static void sleep_often(PollPolicy *p, int times, int64_t ns) {
    for (int i = 0; i < times; i++) poll_policy_slept(p, ns);
}

/* A policy that polls. */
static PollPolicy trusting(void) {
    PollPolicy p = {0};
    sleep_often(&p, MANY, 50 * US);
    assert_true(poll_policy_limit(&p) > 0);
    return p;
}

static void who_knows_nothing_sleeps(void **state) {
    (void)state;
    PollPolicy p = {0};
    assert_int_equal(poll_policy_limit(&p), 0);
    poll_policy_slept(&p, 50 * US); /* one short wait proves nothing */
    assert_int_equal(poll_policy_limit(&p), 0);
}

static void short_waits_make_it_poll(void **state) {
    (void)state;
    PollPolicy p = trusting();
    assert_int_equal(poll_policy_limit(&p), POLL_MAX_NS);
}

static void long_waits_end_it_soon(void **state) {
    (void)state;
    PollPolicy p = trusting();
    int polled = 0;
    for (int i = 0; i < MANY; i++) { /* an event every millisecond */
        int64_t limit = poll_policy_limit(&p);
        polled += limit > 0;
        if (limit)
            poll_policy_polled(&p, POLL_VAIN, limit);
        else
            poll_policy_slept(&p, 1000 * US);
    }
    assert_true(polled > 0 && polled <= 5);
    assert_int_equal(poll_policy_limit(&p), 0);
}

static void it_looks_about_as_long_as_is_usual(void **state) {
    (void)state;
    PollPolicy p = trusting();
    for (int i = 0; i < MANY; i++) poll_policy_polled(&p, POLL_FOUND, 6 * US);
    int64_t limit = poll_policy_limit(&p);
    assert_true(limit >= 2 * 6 * US && limit <= 4 * 6 * US);
    for (int i = 0; i < MANY; i++) poll_policy_polled(&p, POLL_FOUND, 1);
    assert_true(poll_policy_limit(&p) >= 5 * US); /* shorter would never see a thing */
    for (int i = 0; i < MANY; i++) poll_policy_polled(&p, POLL_FOUND, POLL_MAX_NS / 2);
    assert_int_equal(poll_policy_limit(&p), POLL_MAX_NS);
}

/* Looks among `waits` waits when every look ends because somebody else wants the core. */
static int looks_when_pushed(PollPolicy *p, int waits) {
    int looks = 0;
    for (int i = 0; i < waits; i++) {
        if (poll_policy_limit(p) > 0) {
            looks++;
            poll_policy_polled(p, POLL_PUSHED, 20 * US);
        } else {
            poll_policy_slept(p, 50 * US);
        }
    }
    return looks;
}

static void it_sits_out_while_others_want_the_core(void **state) {
    (void)state;
    PollPolicy p = trusting();
    int looks = looks_when_pushed(&p, MANY);
    assert_true(looks > 0 && looks < 20);
    assert_true(looks_when_pushed(&p, MANY) < 10); /* the longer, the rarer */
    int64_t limit = 0;
    for (int i = 0; !limit && i < MANY; i++) limit = poll_policy_limit(&p); /* but it tries again */
    assert_true(limit > 0);
    for (int i = 0; i < MANY; i++) poll_policy_polled(&p, POLL_FOUND, 10 * US);
    assert_true(looks_when_pushed(&p, 6) >= 2); /* forgiven */
}

static void another_poller_says_nothing(void **state) {
    (void)state;
    PollPolicy p = trusting(), before = p;
    poll_policy_polled(&p, POLL_TAKEN, 30 * US);
    assert_memory_equal(&p, &before, sizeof p);
}

static void a_look_ends_by_time(void **state) {
    (void)state;
    PollEnd how;
    PollLook look = poll_look(30 * US, 1000);
    int looks = 0;
    int64_t now = 1000;
    for (; poll_look_on(&look, now, &how); now += 1 * US) looks++;
    assert_int_equal(how, POLL_VAIN);
    assert_true(looks >= 30 && looks <= 32);
}

static void a_look_ends_when_the_core_was_away(void **state) {
    (void)state;
    PollEnd how;
    PollLook look = poll_look(60 * US, 0);
    assert_true(poll_look_on(&look, 1 * US, &how));
    assert_true(poll_look_on(&look, 2 * US, &how));
    assert_false(poll_look_on(&look, 2 * US + POLL_PUSHED_NS + 1, &how));
    assert_int_equal(how, POLL_PUSHED);
}

/* Vain looks between short sleeps, for as long as a server may run. */
static void what_is_usual_stays_in_bounds(void **state) {
    (void)state;
    PollPolicy p = trusting();
    poll_policy_polled(&p, POLL_FOUND, 20 * US);
    for (int i = 0; i < MANY; i++) {
        poll_policy_polled(&p, POLL_VAIN, 60 * US);
        sleep_often(&p, 10, 50 * US);
        int64_t limit = poll_policy_limit(&p);
        assert_true(limit > 0 && limit <= POLL_MAX_NS);
    }
    for (int i = 0; i < 100; i++) poll_policy_polled(&p, POLL_FOUND, 5 * US);
    assert_true(poll_policy_limit(&p) <= 4 * 5 * US); /* and it finds back */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_knows_nothing_sleeps),
        cmocka_unit_test(short_waits_make_it_poll),
        cmocka_unit_test(long_waits_end_it_soon),
        cmocka_unit_test(it_looks_about_as_long_as_is_usual),
        cmocka_unit_test(it_sits_out_while_others_want_the_core),
        cmocka_unit_test(another_poller_says_nothing),
        cmocka_unit_test(a_look_ends_by_time),
        cmocka_unit_test(a_look_ends_when_the_core_was_away),
        cmocka_unit_test(what_is_usual_stays_in_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
