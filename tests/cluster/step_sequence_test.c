/* step_sequence_test.c: step ids by graph key: made up by the leader, counted on, forgotten. */
#include "cluster/step_sequence.h"
#include "unit_test.h"

static void ids_count_on_while_steps_go_well(void **state) {
    (void)state;
    StepSequences *s = step_sequences_new();
    assert_int_equal(step_sequence_next(s, 5), 0);
    int64_t first = step_sequence_lead(s, 5);
    assert_true(first > 0 && first < 1ll << 57);
    assert_int_equal(step_sequence_lead(s, 5), first);
    assert_int_not_equal(step_sequence_lead(s, -1), first);
    step_sequence_retire(s, 5, first);
    assert_int_equal(step_sequence_next(s, 5), first + 1);
    step_sequence_set(s, 5, 99);
    assert_int_equal(step_sequence_next(s, 5), 99);
    step_sequence_forget(s, 5);
    assert_int_equal(step_sequence_next(s, 5), 0);
    step_sequences_free(s);
}

static void steps_that_overlap_end_the_sequence(void **state) {
    (void)state;
    StepSequences *s = step_sequences_new();
    step_sequence_set(s, 0, 10);
    step_sequence_retire(s, 0, 10);
    step_sequence_retire(s, 0, 10);
    assert_int_equal(step_sequence_next(s, 0), 0);
    step_sequences_free(s);
}

static void ids_stay_below_the_top_bits(void **state) {
    (void)state;
    StepSequences *s = step_sequences_new();
    step_sequence_set(s, 1, (1ll << 57) - 1);
    step_sequence_retire(s, 1, (1ll << 57) - 1);
    assert_int_equal(step_sequence_next(s, 1), 0); /* agreed on anew */
    step_sequences_free(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_count_on_while_steps_go_well),
        cmocka_unit_test(steps_that_overlap_end_the_sequence),
        cmocka_unit_test(ids_stay_below_the_top_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
