/* idle_test.c: nodes that others only wait for are not computed, and what must be computed all the same. */
#include "passes/optimized_graph.h"

static const unsigned OTHERS = PASS_ALL & ~PASS_IDLE;

static bool waits_for(const Optimized *o, const char *name, const char *source) {
    const Node *n = node_named(o, name);
    assert_non_null(n);
    for (int i = 0; i < n->control_count; i++)
        if (str_is(n->controls[i]->name, source)) return true;
    return false;
}

static void a_node_nobody_takes_values_of_is_not_computed(void **state) {
    (void)state;
    GraphBuilder b = {0};
    gb_placeholder(&b, "x", DT_FLOAT);
    gb_placeholder(&b, "y", DT_FLOAT);
    gb_op(&b, "used", "Exp", "x", DT_FLOAT);
    gb_op(&b, "half", "Neg", "x", DT_FLOAT);       /* taken by `idle` alone */
    gb_op(&b, "idle", "Mul", "half,y", DT_FLOAT);
    gb_op(&b, "result", "Log", "used,^idle", DT_FLOAT);
    Optimized o = optimized(&b, OTHERS);
    expect_op(&o, "idle", "NoOp");
    expect_op(&o, "half", "NoOp");
    expect_op(&o, "used", "Exp");
    assert_true(waits_for(&o, "result", "idle"));
    assert_true(waits_for(&o, "idle", "half"));
    assert_true(waits_for(&o, "idle", "y"));
    assert_true(waits_for(&o, "half", "x"));
    optimized_clear(&o);
}

static void what_the_graph_is_run_for_stays(void **state) {
    (void)state;
    GraphBuilder b = {0};
    gb_placeholder(&b, "x", DT_FLOAT);
    gb_op(&b, "target", "Exp", "x", DT_FLOAT);
    gb_op(&b, "seen", "Neg", "x", DT_FLOAT);
    gb_op(&b, "also", "Log", "seen,^seen", DT_FLOAT);
    Optimized o = optimized(&b, OTHERS);
    expect_op(&o, "target", "Exp");
    expect_op(&o, "seen", "Neg");
    optimized_clear(&o);
}

static void checks_and_branches_stay(void **state) {
    (void)state;
    GraphBuilder b = {0};
    gb_placeholder(&b, "x", DT_FLOAT);
    gb_placeholder(&b, "p", DT_BOOL);
    gb_variable(&b, "v", 1); /* v/read takes a reference */
    gb_op(&b, "check", "CheckNumerics", "x", DT_FLOAT);
    gb_string(&b, "message", "wrong");
    gb_op(&b, "s", "Switch", "x,p", DT_FLOAT);
    gb_op(&b, "branch", "Exp", "s:1", DT_FLOAT);
    gb_op(&b, "r", "Exp", "v/read", DT_FLOAT);
    gb_op(&b, "result", "Neg", "x,^check,^branch,^r", DT_FLOAT);
    Optimized o = optimized(&b, OTHERS);
    expect_op(&o, "check", "CheckNumerics");
    expect_op(&o, "branch", "Exp"); /* is dead when the branch is not taken: an edge from the Switch would not be */
    expect_op(&o, "r", "NoOp");
    expect_op(&o, "v/read", "Identity");
    optimized_clear(&o);
}

static void a_step_waits_for_what_the_idle_node_waited_for(void **state) {
    (void)state;
    for (int on = 0; on < 2; on++) {
        GraphBuilder b = {0};
        gb_variable(&b, "v", 3);
        gb_variable(&b, "w", 0);
        gb_op(&b, "change", "AssignAdd", "v,v/start", DT_FLOAT);
        gb_op(&b, "idle", "Exp", "change", DT_FLOAT);
        gb_op(&b, "late", "Identity", "v,^idle", DT_FLOAT);
        DirectSession *s = NULL;
        ops_register_all();
        expect_ok(direct_session_new(gb_graph(&b), 2, &s));
        gb_clear(&b);
        direct_session_set_passes(s, &(PassOptions){.disabled = on ? 0 : PASS_ALL});
        Str init = STR("v/init"), late = STR("late:0");
        expect_ok(direct_session_run(s, &(RunSignature){.targets = &init, .target_count = 1}, NULL, NULL, 0));
        Tensor *value = NULL;
        expect_ok(direct_session_run(s, &(RunSignature){.fetches = &late, .fetch_count = 1}, NULL, &value, 0));
        assert_true(tensor_f32(value)[0] == 6);
        tensor_unref(value);
        direct_session_free(s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_nobody_takes_values_of_is_not_computed),
        cmocka_unit_test(what_the_graph_is_run_for_stays),
        cmocka_unit_test(checks_and_branches_stay),
        cmocka_unit_test(a_step_waits_for_what_the_idle_node_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
