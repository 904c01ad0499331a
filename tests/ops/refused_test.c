/* refused_test.c: ops that Rill refuses to run as TensorFlow does, for the good of the task. */
#include "direct_run.h"

static void abort_gives_an_error_and_the_task_lives(void **state) {
    (void)state;
    GraphBuilder b = {0};
    gb_node(&b, "a", "Abort", "");
    gb_string(&b, "error_msg", "enough");
    gb_const(&b, "one", tensor_scalar_i64(1), "");
    DirectSession *s = open_session(&b, 1);
    Error *err = run_error(s, NULL, "a", NULL, NULL, 60000, NULL);
    assert_non_null(err);
    assert_int_equal(err->code, CODE_ABORTED);
    assert_non_null(strstr(err->message, "enough"));
    error_free(err);
    tensor_unref(run_fetch(s, "one"));
    direct_session_free(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(abort_gives_an_error_and_the_task_lives)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
