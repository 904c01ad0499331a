/* request_ids_test.c: ids that come twice are refused as long as they are among the last n, and the memory for that is there from the first on. */
#include "cluster/request_ids.h"

#include <malloc.h>

#include "unit_test.h"

static void only_the_last_are_remembered(void **state) {
    (void)state;
    RequestIds *r = request_ids_new(3);
    assert_true(request_ids_add(r, 0) && request_ids_add(r, 0)); /* no id at all */
    for (int64_t id = 1; id <= 3; id++) assert_true(request_ids_add(r, id));
    for (int64_t id = 1; id <= 3; id++) assert_false(request_ids_add(r, id));
    assert_true(request_ids_add(r, 4)); /* 1 is forgotten */
    assert_false(request_ids_add(r, 2) || request_ids_add(r, 3) || request_ids_add(r, 4));
    assert_true(request_ids_add(r, 1));
    request_ids_free(r);
}

/* Ids that collide, in any order: what is taken out must not hide others. */
static void forgetting_hides_no_other(void **state) {
    (void)state;
    enum { CAPACITY = 50, COUNT = 20000 };
    static int64_t ids[COUNT];
    RequestIds *r = request_ids_new(CAPACITY);
    uint64_t x = 1;
    for (int i = 0; i < COUNT; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        ids[i] = i % 3 ? (int64_t)x : (int64_t)(x >> 57) + 1; /* small ones come again */
        bool is_there = false;
        for (int k = i - 1, seen = 0; k >= 0 && seen < CAPACITY && !is_there; k--) {
            if (!ids[k]) continue; /* one that was refused */
            is_there = ids[k] == ids[i];
            seen++;
        }
        assert_int_equal(request_ids_add(r, ids[i]), !is_there);
        if (is_there) ids[i] = 0;
    }
    request_ids_free(r);
}

static void many_take_no_more_memory_than_one(void **state) {
    (void)state;
    RequestIds *r = request_ids_new(10000);
    assert_true(request_ids_add(r, 1));
    struct mallinfo2 before = mallinfo2();
    for (int64_t id = 2; id < 50000; id++) assert_true(request_ids_add(r, id * 0x9e3779b9));
    struct mallinfo2 now = mallinfo2();
    assert_int_equal(now.uordblks + now.hblkhd, before.uordblks + before.hblkhd);
    request_ids_free(r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_last_are_remembered),
        cmocka_unit_test(forgetting_hides_no_other),
        cmocka_unit_test(many_take_no_more_memory_than_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
