/* event_file_test.c: event files written and read; events and examples cut short and damaged. */
#include "io/event_file.h"

#include <stdlib.h>

#include "base/memory.h"
#include "io/example.h"
#include "io/record.h"
#include "proto/wire.h"
#include "unit_test.h"

static StrBuf a_summary(void) {
    StrBuf summary = {0}, value = {0}, metadata = {0}, data = {0};
    wire_put_bytes(&value, 1, STR("loss"));
    wire_put_float(&value, 2, 0.25f);
    wire_put_bytes(&summary, 1, strbuf_str(&value));
    strbuf_clear(&value);
    wire_put_bytes(&value, 1, STR("tensor"));
    wire_put_bytes(&value, 8, STR("\x08\x01"));
    wire_put_bytes(&data, 1, STR("scalars"));
    wire_put_bytes(&metadata, 1, strbuf_str(&data));
    wire_put_bytes(&value, 9, strbuf_str(&metadata));
    wire_put_bytes(&summary, 1, strbuf_str(&value));
    strbuf_clear(&value);
    strbuf_clear(&metadata);
    strbuf_clear(&data);
    return summary;
}

static void events_come_back(void **state) {
    (void)state;
    char dir[] = "/tmp/rill_event_test.XXXXXX";
    assert_non_null(mkdtemp(dir));
    EventWriter *w = NULL;
    StrBuf summary = a_summary();
    expect_ok(event_writer_open(&file_system_local, dir, ".v2", &w));
    expect_ok(event_writer_add_field(w, 7, 5, strbuf_str(&summary)));
    expect_ok(event_writer_add_field(w, 0, 4, STR("graph")));
    char *path = xstrdup(event_writer_path(w));
    assert_true(str_ends(str_of(path), STR(".v2")));
    event_writer_close(w);
    RecordReader *r = NULL;
    Str record;
    bool more;
    Event e;
    SummaryValue v;
    size_t at = 0;
    expect_ok(record_reader_open(&file_system_local, path, COMPRESSION_NONE, &r));
    expect_ok(record_reader_next(r, &record, &more));
    assert_true(more && event_parse(record, &e));
    expect_str(e.file_version, "brain.Event:2");
    expect_ok(record_reader_next(r, &record, &more));
    assert_true(more && event_parse(record, &e));
    assert_int_equal(e.step, 7);
    assert_true(e.wall_time > 1e9);
    assert_true(summary_next(e.summary, &at, &v));
    expect_str(v.tag, "loss");
    assert_true(v.kind == SUMMARY_SCALAR && v.number == 0.25f);
    assert_true(summary_next(e.summary, &at, &v));
    assert_true(v.kind == SUMMARY_TENSOR);
    expect_str(v.plugin, "scalars");
    assert_false(summary_next(e.summary, &at, &v));
    expect_ok(record_reader_next(r, &record, &more));
    assert_true(more && event_parse(record, &e));
    expect_str(e.graph_def, "graph");
    expect_ok(record_reader_next(r, &record, &more));
    assert_false(more);
    record_reader_close(r);
    expect_ok(file_system_local.remove(path));
    expect_ok(file_system_local.remove_dir(dir));
    free(path);
    strbuf_clear(&summary);
}

static bool count_feature(void *arg, Str name, const ExampleFeature *f) {
    (void)name;
    int64_t n = feature_count(f);
    if (n < 0) return false;
    char *values = xcalloc((size_t)n + 1, 16);
    if (n) feature_copy(f, values);
    if (f->type == DT_STRING)
        for (int64_t i = 0; i < n; i++) tstring_set(&((TString *)values)[i], STR(""));
    free(values);
    *(int64_t *)arg += n;
    return true;
}

/* Bytes that were cut or changed are read as something else or refused; ASan watches. */
static void read_damaged(const char *bytes, size_t len) {
    char *copy = xmalloc(len + 1);
    memcpy(copy, bytes, len);
    Str text = {copy, len};
    Event e;
    SummaryValue v;
    int64_t n = 0;
    if (event_parse(text, &e))
        for (size_t at = 0; e.summary.ptr && summary_next(e.summary, &at, &v);) n++;
    for (size_t at = 0; summary_next(text, &at, &v);) n++;
    example_each(text, count_feature, &n);
    free(copy);
}

static void damaged_messages_never_crash(void **state) {
    (void)state;
    StrBuf event = {0}, summary = a_summary();
    wire_put_double(&event, 1, 1e9);
    wire_put_uint(&event, 2, 300);
    wire_put_bytes(&event, 5, strbuf_str(&summary));
    static const char example[] = "\n\x24\n\x0b\n\1a\x12\6\x1a\4\n\2\1\2\n\x0b\n\1b\x12\6\n\4\n\2xy\n\x08\n\1c\x12\3\x12\1\n";
    const Str all[] = {strbuf_str(&event), strbuf_str(&summary), {example, sizeof example - 1}};
    for (size_t m = 0; m < sizeof all / sizeof all[0]; m++) {
        char *bytes = xmalloc(all[m].len + 1);
        memcpy(bytes, all[m].ptr, all[m].len);
        for (size_t i = 0; i < all[m].len; i++) {
            read_damaged(bytes, i);
            for (int bit = 0; bit < 8; bit++) {
                bytes[i] = (char)(bytes[i] ^ (1 << bit));
                read_damaged(bytes, all[m].len);
                bytes[i] = (char)(bytes[i] ^ (1 << bit));
            }
        }
        free(bytes);
    }
    strbuf_clear(&event);
    strbuf_clear(&summary);
}

static void compression_is_guessed(void **state) {
    (void)state;
    char path[] = "/tmp/rill_guess_test.XXXXXX";
    assert_true(mkstemp(path) >= 0);
    for (Compression c = COMPRESSION_NONE; c <= COMPRESSION_GZIP; c++) {
        RecordWriter *w = NULL;
        expect_ok(record_writer_open(&file_system_local, path, c, false, &w));
        expect_ok(record_writer_add(w, STR("some record")));
        expect_ok(record_writer_finish(w));
        record_writer_close(w);
        Compression guessed;
        expect_ok(compression_guess(&file_system_local, path, &guessed));
        assert_int_equal(guessed, c);
    }
    remove(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_come_back),
        cmocka_unit_test(damaged_messages_never_crash),
        cmocka_unit_test(compression_is_guessed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
