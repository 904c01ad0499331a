/* hashmap_test.c: maps from text and from numbers: growing, removing, walking. */
#include "base/hashmap.h"

#include <stdlib.h>

#include "base/memory.h"
#include "unit_test.h"

enum { N = 5000 };

static void entries_stay_while_the_map_grows(void **state) {
    (void)state;
    StrMap m = {0};
    char (*keys)[16] = xcalloc(N, sizeof *keys);
    assert_null(strmap_get(&m, STR("x")));
    assert_null(strmap_remove(&m, STR("x")));
    for (int i = 0; i < N; i++) {
        snprintf(keys[i], sizeof keys[i], "k%d", i);
        assert_null(strmap_put(&m, str_of(keys[i]), keys[i]));
    }
    assert_int_equal(m.count, N);
    for (int i = 0; i < N; i++) assert_ptr_equal(strmap_get(&m, str_of(keys[i])), keys[i]);
    assert_ptr_equal(strmap_put(&m, STR("k7"), keys[8]), keys[7]);
    assert_ptr_equal(strmap_get(&m, STR("k7")), keys[8]);
    assert_int_equal(m.count, N);
    strmap_clear(&m);
    assert_null(strmap_get(&m, STR("k7")));
    free(keys);
}

static void removed_slots_are_used_again(void **state) {
    (void)state;
    StrMap m = {0};
    char key[16];
    char *keys[8] = {0};
    /* A window of 8 live keys moves over 100000: the map must stay small. */
    for (int i = 0; i < 100000; i++) {
        if (keys[i % 8]) assert_ptr_equal(strmap_remove(&m, str_of(keys[i % 8])), keys[i % 8]);
        free(keys[i % 8]);
        snprintf(key, sizeof key, "%d", i);
        keys[i % 8] = xstrdup(key);
        strmap_put(&m, str_of(keys[i % 8]), keys[i % 8]);
    }
    assert_int_equal(m.count, 8);
    assert_true(m.capacity <= 64);
    for (int i = 0; i < 8; i++) {
        assert_ptr_equal(strmap_get(&m, str_of(keys[i])), keys[i]);
        free(keys[i]);
    }
    strmap_clear(&m);
}

static void walking_meets_every_entry_once(void **state) {
    (void)state;
    IntMap m = {0};
    static char seen[N + 1];
    memset(seen, 0, sizeof seen);
    for (uint64_t i = 0; i <= N; i++) intmap_put(&m, i, &seen[i]);
    for (uint64_t i = 0; i <= N; i += 3) assert_ptr_equal(intmap_remove(&m, i), &seen[i]);
    size_t at = 0;
    uint64_t key;
    void *value;
    while (intmap_next(&m, &at, &key, &value)) {
        assert_ptr_equal(value, &seen[key]);
        assert_int_equal(seen[key]++, 0);
    }
    for (int i = 0; i <= N; i++) assert_int_equal(seen[i], i % 3 != 0);
    intmap_clear(&m);
}

static void entries_may_be_removed_while_walking(void **state) {
    (void)state;
    IntMap m = {0};
    for (uint64_t i = 0; i < 1000; i++) intmap_put(&m, i << 40, &m);
    size_t at = 0;
    uint64_t key;
    int met = 0;
    while (intmap_next(&m, &at, &key, NULL)) {
        intmap_remove(&m, key);
        met++;
    }
    assert_int_equal(met, 1000);
    assert_int_equal(m.count, 0);
    assert_null(intmap_get(&m, 0));
    intmap_clear(&m);
}

/* The same random steps on a map and on a plain array. */
static void random_steps_agree_with_an_array(void **state) {
    (void)state;
    IntMap m = {0};
    static void *truth[512];
    memset(truth, 0, sizeof truth);
    unsigned seed = 1;
    for (int i = 0; i < 200000; i++) {
        seed = seed * 1103515245u + 12345u;
        uint64_t key = seed >> 16 & 511;
        if (seed >> 28 < 9) {
            assert_ptr_equal(intmap_put(&m, key, &truth[key]), truth[key]);
            truth[key] = &truth[key];
        } else {
            assert_ptr_equal(intmap_remove(&m, key), truth[key]);
            truth[key] = NULL;
        }
        assert_ptr_equal(intmap_get(&m, key), truth[key]);
    }
    intmap_clear(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_stay_while_the_map_grows), cmocka_unit_test(removed_slots_are_used_again),
        cmocka_unit_test(walking_meets_every_entry_once), cmocka_unit_test(entries_may_be_removed_while_walking),
        cmocka_unit_test(random_steps_agree_with_an_array),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
