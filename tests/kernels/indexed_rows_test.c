/* indexed_rows_test.c: every index once, those of one row in order, however many threads there are. */
#include "kernels/indexed_rows.h"

#include <stdlib.h>

#include "base/memory.h"
#include "unit_test.h"

enum { ROWS = 300, COUNT = 20000, WIDTH = 64 };

typedef struct Seen {
    int64_t last[ROWS]; /* the i that came last, -1 before */
    int64_t times[ROWS];
    bool out_of_order[ROWS];
    int64_t data[ROWS][WIDTH];
} Seen;

/* What belongs to a row is only touched by whoever changes that row. */
static void see(void *arg, int64_t row, int64_t i) {
    Seen *s = arg;
    s->out_of_order[row] |= i <= s->last[row];
    s->last[row] = i;
    s->times[row]++;
}

static void check(int64_t count, bool wide, ThreadPool *pool) {
    int64_t *wides = xcalloc(COUNT, sizeof *wides), want[ROWS] = {0};
    int32_t *narrow = xcalloc(COUNT, sizeof *narrow);
    Seen *s = xcalloc(1, sizeof *s);
    for (int i = 0; i < ROWS; i++) s->last[i] = -1;
    for (int64_t i = 0; i < count; i++) {
        wides[i] = narrow[i] = i % 3 ? rand() % ROWS : 7; /* one row comes very often */
        want[wides[i]]++;
    }
    IndexedRows r = {.indices = wide ? (void *)wides : narrow, .wide = wide, .count = count, .first = s->data, .row_bytes = sizeof s->data[0],
                     .fn = see, .arg = s};
    indexed_rows_run(&r, pool);
    for (int i = 0; i < ROWS; i++) {
        assert_int_equal(s->times[i], want[i]);
        assert_false(s->out_of_order[i]);
    }
    free(s);
    free(wides);
    free(narrow);
}

static void rows_are_changed_in_order(void **state) {
    (void)state;
    static const int64_t counts[] = {0, 1, 7, 8, 9, 1000, COUNT};
    ThreadPool *pool = threadpool_new("test", 3);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        check(counts[i], i % 2, NULL);
        check(counts[i], true, pool);
        check(counts[i], false, pool);
    }
    threadpool_free(pool);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_are_changed_in_order)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
