/* vector_math_test.c: exp, log, tanh, sigmoid, sin, cos and erf of floats against the C library. */
#include "vector_check.h"

static const double UNITS = 2.5;

static double sigmoid(double x) {
    return 1 / (1 + exp(-x));
}

static void test_best(void **state) {
    (void)state;
    vector_check("exp", vector_exp, exp, UNITS);
    vector_check("log", vector_log, log, UNITS);
    vector_check("tanh", vector_tanh, tanh, UNITS);
    vector_check("sigmoid", vector_sigmoid, sigmoid, UNITS);
    vector_check("sin", vector_sin, sin, UNITS);
    vector_check("cos", vector_cos, cos, UNITS);
    vector_check("erf", vector_erf, erf, UNITS);
}

static void test_plain(void **state) {
    (void)state;
    vector_check("exp", vector_exp_plain, exp, UNITS);
    vector_check("log", vector_log_plain, log, UNITS);
    vector_check("tanh", vector_tanh_plain, tanh, UNITS);
    vector_check("sigmoid", vector_sigmoid_plain, sigmoid, UNITS);
    vector_check("erf", vector_erf_plain, erf, UNITS);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_best), cmocka_unit_test(test_plain)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
