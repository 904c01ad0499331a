/* sampling_test.c: classes are drawn from one stream of random numbers, whatever the number of threads. */
#include <math.h>

#include "direct_run.h"

enum { ROWS = 40, CLASSES = 300, SAMPLES = 7 };

static Tensor *draw(int rows, int threads) {
    GraphBuilder b = {0};
    gb_placeholder(&b, "logits", DT_FLOAT);
    gb_i32(&b, "samples", SAMPLES);
    gb_op(&b, "z", "Multinomial", "logits,samples", DT_FLOAT);
    gb_int(&b, "seed", 3);
    gb_int(&b, "seed2", 4);
    gb_type(&b, "output_dtype", DT_INT64);
    DirectSession *s = open_session(&b, threads);
    Shape matrix = shape_matrix(rows, CLASSES);
    Tensor *logits = NULL, *z = NULL;
    expect_ok(tensor_new(DT_FLOAT, &matrix, &logits));
    for (int64_t i = 0; i < logits->count; i++) tensor_f32(logits)[i] = (float)(i * 7919 % 1999) / 700;
    tensor_f32(logits)[5] = INFINITY; /* is never drawn */
    expect_ok(run_error(s, "z", NULL, "logits", logits, 60000, &z));
    tensor_unref(logits);
    direct_session_free(s);
    return z;
}

static void rows_take_their_numbers_one_after_the_other(void **state) {
    (void)state;
    Tensor *all = draw(ROWS, 3);
    for (int rows = 1; rows < ROWS; rows += 9) {
        Tensor *some = draw(rows, 1);
        assert_memory_equal(some->data, all->data, tensor_bytes(some));
        tensor_unref(some);
    }
    for (int64_t i = 0; i < all->count; i++) assert_in_range(tensor_i64(all)[i], 0, CLASSES - 1);
    for (int i = 0; i < SAMPLES; i++) assert_int_not_equal(tensor_i64(all)[i], 5);
    tensor_unref(all);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_take_their_numbers_one_after_the_other)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
