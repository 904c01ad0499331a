/* record_input_test.c: RecordInput gives every record of its files once in each epoch, again and again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <unistd.h>

#include "direct_run.h"
#include "io/record.h"

enum { FILES = 3, RECORDS = 4 };

static char dir[] = "/tmp/rill_record_input.XXXXXX";

static void file_path(char *out, size_t size, int i) {
    snprintf(out, size, "%s/part-%d", dir, i);
}

static int write_files(void **state) {
    (void)state;
    if (!mkdtemp(dir)) return -1;
    for (int f = 0; f < FILES; f++) {
        char path[128], text[8];
        RecordWriter *w = NULL;
        file_path(path, sizeof path, f);
        expect_ok(record_writer_open(&file_system_local, path, COMPRESSION_NONE, false, &w));
        for (int i = 0; i < RECORDS; i++) {
            int len = snprintf(text, sizeof text, "%d", f * RECORDS + i);
            expect_ok(record_writer_add(w, (Str){text, (size_t)len}));
        }
        expect_ok(record_writer_finish(w));
        record_writer_close(w);
    }
    return 0;
}

static int remove_files(void **state) {
    (void)state;
    for (int f = 0; f < FILES; f++) {
        char path[128];
        file_path(path, sizeof path, f);
        unlink(path);
    }
    return rmdir(dir);
}

static DirectSession *open_input(const char *pattern, int64_t buffer, int64_t batch) {
    GraphBuilder b = {0};
    gb_node(&b, "records", "RecordInput", "");
    gb_string(&b, "file_pattern", pattern);
    gb_int(&b, "file_buffer_size", buffer);
    gb_int(&b, "batch_size", batch);
    return open_session(&b, 2);
}

/* With a buffer of one record the order is that of the files: whole epochs come one after another. */
static void test_epochs(void **state) {
    (void)state;
    char pattern[128];
    snprintf(pattern, sizeof pattern, "%s/part-*", dir);
    DirectSession *s = open_input(pattern, 1, RECORDS);
    for (int epoch = 0; epoch < 3; epoch++) {
        int seen[FILES * RECORDS] = {0};
        for (int run = 0; run < FILES; run++) {
            Tensor *t = run_fetch(s, "records:0");
            assert_int_equal(t->count, RECORDS);
            for (int i = 0; i < RECORDS; i++) {
                int64_t v = -1;
                assert_true(str_to_int64(tstring_str(&tensor_str(t)[i]), &v));
                assert_in_range(v, 0, FILES * RECORDS - 1);
                seen[v]++;
            }
            tensor_unref(t);
        }
        for (int i = 0; i < FILES * RECORDS; i++) assert_int_equal(seen[i], 1);
    }
    direct_session_free(s);
}

static void test_no_files(void **state) {
    (void)state;
    DirectSession *s = open_input("/nowhere/at-all-*", 10, 2);
    Tensor *t = NULL;
    Error *err = run_error(s, "records:0", NULL, NULL, NULL, 60000, &t);
    assert_non_null(err);
    assert_int_equal(err->code, CODE_NOT_FOUND);
    error_free(err);
    direct_session_free(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_epochs), cmocka_unit_test(test_no_files)};
    return cmocka_run_group_tests(tests, write_files, remove_files);
}
