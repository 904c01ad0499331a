/* record_test.c: TFRecord files, plain and compressed, whole and damaged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "io/record.h"

static char path[64];

static int make_path(void **state) {
    (void)state;
    snprintf(path, sizeof path, "/tmp/rill_record_test.XXXXXX");
    int fd = mkstemp(path);
    if (fd >= 0) close(fd);
    return fd < 0;
}

static int remove_path(void **state) {
    (void)state;
    return unlink(path);
}

static void write_records(Compression compression, int n) {
    RecordWriter *w;
    assert_null(record_writer_open(&file_system_local, path, compression, false, &w));
    for (int i = 0; i < n; i++) {
        char text[32];
        int len = snprintf(text, sizeof text, "record %d", i);
        assert_null(record_writer_add(w, (Str){text, i == 1 ? 0 : (size_t)len}));
    }
    assert_null(record_writer_finish(w));
    record_writer_close(w);
}

static void records_come_back(void **state) {
    (void)state;
    Compression all[] = {COMPRESSION_NONE, COMPRESSION_ZLIB, COMPRESSION_GZIP};
    for (int c = 0; c < 3; c++) {
        write_records(all[c], 50000);
        RecordReader *r;
        Str record;
        bool more;
        int n = 0;
        assert_null(record_reader_open(&file_system_local, path, all[c], &r));
        for (;; n++) {
            assert_null(record_reader_next(r, &record, &more));
            if (!more) break;
            if (n == 1) assert_int_equal(record.len, 0);
            if (n == 2) assert_true(str_is(record, "record 2"));
        }
        assert_int_equal(n, 50000);
        record_reader_close(r);
    }
}

/* Reads until the end or an error; false on an error, which must be DataLoss, and where the file ends within a length. */
static bool readable(Str bytes) {
    assert_null(file_write_all(&file_system_local, path, bytes));
    RecordReader *r;
    Str record;
    bool more = true;
    Error *err = NULL;
    assert_null(record_reader_open(&file_system_local, path, COMPRESSION_NONE, &r));
    while (!err && more) err = record_reader_next(r, &record, &more);
    bool ok = !err && !record_reader_cut_short(r);
    record_reader_close(r);
    if (err) assert_int_equal(err->code, CODE_DATA_LOSS);
    error_free(err);
    return ok;
}

static void damaged_and_short_files_are_noticed(void **state) {
    (void)state;
    write_records(COMPRESSION_NONE, 3);
    char *bytes;
    size_t len;
    assert_null(file_read_all(&file_system_local, path, &bytes, &len));
    assert_true(readable((Str){bytes, len}));
    for (size_t i = 0; i < len; i++) {
        bytes[i] ^= 0x41;
        assert_false(readable((Str){bytes, len}));
        bytes[i] ^= 0x41;
    }
    size_t whole[] = {0, 24, 40, len}; /* ends of records: 16 bytes around each */
    for (size_t n = 0; n < len; n++) {
        bool at_end = false;
        for (int i = 0; i < 4; i++) at_end = at_end || n == whole[i];
        assert_int_equal(readable((Str){bytes, n}), at_end);
    }
    free(bytes);
}

static void lines_end_at_newlines(void **state) {
    (void)state;
    assert_null(file_write_all(&file_system_local, path, STR("one\r\n\nthree")));
    InputStream *s;
    const char *want[] = {"one", "", "three"};
    bool more;
    assert_null(input_stream_open(&file_system_local, path, COMPRESSION_NONE, &s));
    for (int i = 0; i < 4; i++) {
        StrBuf line = {0};
        assert_null(input_stream_line(s, &line, &more));
        assert_int_equal(more, i < 3);
        if (more) assert_string_equal(strbuf_str(&line).ptr, want[i]);
        strbuf_clear(&line);
    }
    input_stream_close(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(records_come_back, make_path, remove_path),
        cmocka_unit_test_setup_teardown(damaged_and_short_files_are_noticed, make_path, remove_path),
        cmocka_unit_test_setup_teardown(lines_end_at_newlines, make_path, remove_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
