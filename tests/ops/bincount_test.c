/* bincount_test.c: a long row of integers is counted in parts, and counted right. */
#include "direct_run.h"

enum { BINS = 50, LONG = 100003 };

static Tensor *numbers(DataType type, int64_t n, int most) {
    Shape shape = shape_vector(n);
    Tensor *t = NULL;
    expect_ok(tensor_new(type, &shape, &t));
    for (int64_t i = 0; i < n; i++) {
        const int v = (int)(i * 7919 % 1999) % most;
        if (type == DT_INT64) tensor_i64(t)[i] = v;
        else tensor_i32(t)[i] = v;
    }
    return t;
}

static int64_t number(const Tensor *t, int64_t i) {
    return t->dtype == DT_INT64 ? tensor_i64(t)[i] : tensor_i32(t)[i];
}

static Error *count(Tensor *values, DataType type, Tensor *weights, Tensor **out) {
    GraphBuilder b = {0};
    gb_placeholder(&b, "values", values->dtype);
    gb_i32(&b, "size", BINS);
    gb_const(&b, "weights", tensor_ref(weights), "");
    gb_op(&b, "z", "Bincount", "values,size,weights", type);
    DirectSession *s = open_session(&b, 2);
    Error *err = run_error(s, "z", NULL, "values", values, 60000, out);
    direct_session_free(s);
    return err;
}

static void check(DataType type, int64_t weight_count) {
    Tensor *values = numbers(DT_INT32, LONG, BINS + 9), *weights = numbers(type, weight_count, 1000), *got = NULL;
    int64_t want[BINS] = {0};
    for (int64_t i = 0; i < LONG; i++)
        if (number(values, i) < BINS) want[number(values, i)] += weight_count ? number(weights, i) : 1;
    expect_ok(count(values, type, weights, &got));
    for (int i = 0; i < BINS; i++) assert_int_equal(number(got, i), want[i]);
    tensor_unref(got);
    tensor_i32(values)[LONG - 5] = -1;
    expect_error(count(values, type, weights, &got), CODE_INVALID_ARGUMENT, "non-negative");
    tensor_unref(values);
    tensor_unref(weights);
}

static void parts_are_added_up(void **state) {
    (void)state;
    static const DataType types[] = {DT_INT32, DT_INT64};
    for (int i = 0; i < 2; i++) {
        check(types[i], 0);
        check(types[i], LONG);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(parts_are_added_up)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
