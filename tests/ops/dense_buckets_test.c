/* dense_buckets_test.c: how many buckets a dense table has, and where removed keys lie. */
#include "ops/dense_buckets.h"

#include <stdlib.h>

#include "unit_test.h"

enum { MANY = 100000 };

static Tensor *some_value(void) {
    Tensor *t = NULL;
    expect_ok(tensor_new(DT_FLOAT, &(Shape){.rank = 0}, &t));
    return t;
}

static Str number(int64_t *i) {
    return (Str){(const char *)i, sizeof *i};
}

static void buckets_double_until_keys_fit(void **state) {
    (void)state;
    DenseBuckets b = {.count = 4, .max_load = 0.5};
    expect_ok(dense_buckets_reserve(&b, 0, 2));
    assert_int_equal(b.count, 4);
    expect_ok(dense_buckets_reserve(&b, 2, 3));
    assert_int_equal(b.count, 16);
    dense_buckets_clear(&b);
}

static void a_load_that_no_memory_could_hold_is_an_error(void **state) {
    (void)state;
    DenseBuckets b = {.count = 4, .max_load = 1e-30};
    expect_error(dense_buckets_reserve(&b, 0, 1), CODE_RESOURCE_EXHAUSTED, "max_load_factor");
    assert_int_equal(b.count, 4);
}

/* With a search through all that were removed this would take minutes. */
static void removed_keys_come_back_quickly(void **state) {
    (void)state;
    DenseBuckets b = {.count = 4, .max_load = 0.8};
    expect_ok(dense_buckets_reserve(&b, 0, MANY));
    for (int64_t i = 0; i < MANY; i++) dense_buckets_remove(&b, number(&i), some_value());
    assert_int_equal(b.removed_count, MANY);
    for (int64_t i = 0; i < MANY; i += 2) dense_buckets_add(&b, i / 2, number(&i));
    assert_int_equal(b.removed_count, MANY / 2);
    int64_t odd = 1, even = 0;
    assert_non_null(strmap_get(&b.by_key, number(&odd)));
    assert_null(strmap_get(&b.by_key, number(&even)));
    for (size_t i = 0; i < b.removed_count; i++)
        assert_int_equal((uintptr_t)strmap_get(&b.by_key, (Str){b.removed[i].key, b.removed[i].key_len}), i + 1);
    dense_buckets_clear(&b);
}

static void keys_of_one_hash_take_all_buckets(void **state) {
    (void)state;
    DenseBuckets b = {.count = 8, .max_load = 0.8};
    bool taken[8] = {0};
    for (int i = 0; i < 8; i++) dense_buckets_place(&b, 5, taken);
    for (int i = 0; i < 8; i++) assert_true(taken[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buckets_double_until_keys_fit),
        cmocka_unit_test(a_load_that_no_memory_could_hold_is_an_error),
        cmocka_unit_test(removed_keys_come_back_quickly),
        cmocka_unit_test(keys_of_one_hash_take_all_buckets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
