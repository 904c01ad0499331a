/* table_test.c: sorted tables: what is written is read, and damaged ones are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "io/table.h"

static StrBuf make_table(int n) {
    TableWriter w = {0};
    for (int i = 0; i < n; i++) {
        char key[32], value[64];
        int k = snprintf(key, sizeof key, "key/%08d", i);
        int v = snprintf(value, sizeof value, "the value of entry %d", i);
        table_writer_add(&w, (Str){key, (size_t)k}, (Str){value, (size_t)v});
    }
    return table_writer_finish(&w);
}

static void entries_come_back_in_order(void **state) {
    (void)state;
    int sizes[] = {0, 1, 16, 17, 1000, 30000}; /* the last ones take several blocks */
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        StrBuf bytes = make_table(sizes[s]);
        Table *t = NULL;
        assert_null(table_parse(strbuf_str(&bytes), "memory", &t));
        assert_int_equal(table_count(t), sizes[s]);
        if (sizes[s]) {
            char key[32];
            snprintf(key, sizeof key, "key/%08d", sizes[s] / 2);
            const TableEntry *e = table_find(t, str_of(key));
            assert_non_null(e);
            assert_true(str_starts(e->value, STR("the value of entry ")));
        }
        assert_null(table_find(t, STR("nothing")));
        table_close(t);
        strbuf_clear(&bytes);
    }
}

static void any_damaged_byte_is_noticed_or_harmless(void **state) {
    (void)state;
    StrBuf bytes = make_table(40);
    for (size_t i = 0; i < bytes.len; i++) {
        for (int bit = 0; bit < 8; bit += 3) {
            bytes.ptr[i] ^= (char)(1 << bit);
            Table *t = NULL;
            Error *err = table_parse(strbuf_str(&bytes), "memory", &t);
            if (err)
                assert_int_equal(err->code, CODE_DATA_LOSS);
            else
                assert_int_equal(table_count(t), 40); /* padding of the footer, metaindex */
            error_free(err);
            table_close(err ? NULL : t);
            bytes.ptr[i] ^= (char)(1 << bit);
        }
    }
    strbuf_clear(&bytes);
}

static void every_truncation_is_noticed(void **state) {
    (void)state;
    StrBuf bytes = make_table(40);
    for (size_t n = 0; n < bytes.len; n++) {
        Table *t = NULL;
        char *copy = malloc(n + 1); /* so that reading beyond it is seen by the sanitizer */
        memcpy(copy, bytes.ptr, n);
        Error *err = table_parse((Str){copy, n}, "memory", &t);
        assert_non_null(err);
        assert_int_equal(err->code, CODE_DATA_LOSS);
        error_free(err);
        free(copy);
    }
    strbuf_clear(&bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_come_back_in_order),
        cmocka_unit_test(any_damaged_byte_is_noticed_or_harmless),
        cmocka_unit_test(every_truncation_is_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
