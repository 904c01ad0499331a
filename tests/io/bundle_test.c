/* bundle_test.c: checkpoints: written, read, merged, cut short and damaged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "io/bundle.h"

static const FileSystem *fs = &file_system_local;
static char dir[64];

static int make_dir(void **state) {
    (void)state;
    snprintf(dir, sizeof dir, "/tmp/rill_bundle_test.XXXXXX");
    return !mkdtemp(dir);
}

static int remove_dir(void **state) {
    (void)state;
    PathList names = {0};
    error_free(fs->list(dir, &names));
    for (size_t i = 0; i < names.count; i++) {
        char *path = xasprintf("%s/%s", dir, names.items[i]);
        error_free(fs->remove(path));
        free(path);
    }
    path_list_clear(&names);
    error_free(fs->remove_dir(dir));
    return 0;
}

static char *in_dir(const char *name) {
    return xasprintf("%s/%s", dir, name);
}

static Tensor *floats(int64_t rows, int64_t cols, float first) {
    Shape shape = shape_matrix(rows, cols);
    Tensor *t;
    assert_null(tensor_new(DT_FLOAT, &shape, &t));
    for (int64_t i = 0; i < t->count; i++) tensor_f32(t)[i] = first + (float)i;
    return t;
}

static void write_one(const char *prefix, const char *name, Tensor *t) {
    BundleWriter *w;
    assert_null(bundle_writer_open(fs, prefix, &w));
    assert_null(bundle_writer_add(w, str_of(name), t));
    assert_null(bundle_writer_finish(w));
    bundle_writer_close(w);
}

static void values_come_back(void **state) {
    (void)state;
    char *prefix = in_dir("ck");
    BundleWriter *w;
    assert_null(bundle_writer_open(fs, prefix, &w));
    Tensor *f = floats(3, 2, 1), *big = floats(1000, 1000, 0), *step = tensor_scalar_i64(42), *strings;
    Shape three = shape_vector(3);
    assert_null(tensor_new(DT_STRING, &three, &strings));
    tstring_set(&tensor_str(strings)[0], STR("hello"));
    tstring_set(&tensor_str(strings)[2], STR("x\0y"));
    assert_null(bundle_writer_add(w, STR("w"), f));
    assert_null(bundle_writer_add(w, STR("big"), big));
    assert_null(bundle_writer_add(w, STR("step"), step));
    assert_null(bundle_writer_add(w, STR("strings"), strings));
    Error *err = bundle_writer_add(w, STR("w"), f);
    assert_int_equal(err->code, CODE_INVALID_ARGUMENT);
    error_free(err);
    assert_null(bundle_writer_finish(w));
    bundle_writer_close(w);

    Bundle *b;
    Tensor *t;
    assert_null(bundle_open(fs, prefix, &b));
    assert_int_equal(bundle_count(b), 4);
    assert_null(bundle_read(b, STR("big"), &t));
    assert_memory_equal(t->data, big->data, tensor_bytes(big));
    tensor_unref(t);
    assert_null(bundle_read(b, STR("step"), &t));
    assert_int_equal(t->shape.rank, 0);
    assert_int_equal(*tensor_i64(t), 42);
    tensor_unref(t);
    assert_null(bundle_read(b, STR("strings"), &t));
    assert_true(str_eq(tstring_str(&tensor_str(t)[2]), STR("x\0y")));
    assert_int_equal(tstring_str(&tensor_str(t)[1]).len, 0);
    tensor_unref(t);
    err = bundle_read(b, STR("zz"), &t);
    assert_int_equal(err->code, CODE_NOT_FOUND);
    assert_string_equal(err->message, "Key zz not found in checkpoint");
    error_free(err);
    bundle_close(b);
    tensor_unref(f);
    tensor_unref(big);
    tensor_unref(step);
    tensor_unref(strings);
    free(prefix);
}

static void parts_are_put_together_and_cut(void **state) {
    (void)state;
    char *parts[] = {in_dir("part-0"), in_dir("part-1")}, *prefix = in_dir("whole");
    Shape full = shape_matrix(5, 2);
    TensorSlice slices[] = {{.rank = 2, .start = {0, 0}, .length = {3, 2}},
                            {.rank = 2, .start = {3, 0}, .length = {2, 2}}};
    Tensor *values[] = {floats(3, 2, 0), floats(2, 2, 6)};
    for (int i = 0; i < 2; i++) {
        BundleWriter *w;
        assert_null(bundle_writer_open(fs, parts[i], &w));
        assert_null(bundle_writer_add_slice(w, STR("pv"), &full, &slices[i], values[i]));
        assert_null(bundle_writer_finish(w));
        bundle_writer_close(w);
        tensor_unref(values[i]);
    }
    assert_null(bundle_merge(fs, (const char *const *)parts, 2, prefix, false));
    Bundle *b;
    Tensor *t;
    assert_null(bundle_open(fs, prefix, &b));
    assert_null(bundle_read(b, STR("pv"), &t));
    for (int i = 0; i < 10; i++) assert_true(tensor_f32(t)[i] == (float)i);
    tensor_unref(t);
    TensorSlice middle;
    assert_null(slice_parse_spec(STR("5 2 2,2:1,1"), &full, &middle));
    assert_null(bundle_read_slice(b, STR("pv"), &middle, &t));
    assert_int_equal(t->count, 2);
    assert_true(tensor_f32(t)[0] == 5 && tensor_f32(t)[1] == 7);
    tensor_unref(t);
    bundle_close(b);
    Bundle *gone;
    Error *err = bundle_open(fs, parts[0], &gone);
    assert_int_equal(err->code, CODE_NOT_FOUND);
    error_free(err);
    for (int i = 0; i < 2; i++) free(parts[i]);
    free(prefix);
}

static void keys_of_slices_are_tensorflows(void **state) {
    (void)state;
    TensorSlice s = {.rank = 2, .start = {3, 0}, .length = {2, 2}};
    StrBuf key = {0};
    slice_key(STR("pv"), &s, &key);
    assert_int_equal(key.len, 11);
    assert_memory_equal(key.ptr, "\0pv\0\1\1\2\x83\x82\x80\x82", 11);
    strbuf_clear(&key);
    s = (TensorSlice){.rank = 1, .start = {1000}, .length = {-1}};
    slice_key(STR("a"), &s, &key); /* a whole dimension starts at 0 */
    assert_memory_equal(key.ptr, "\0a\0\1\1\1\x80\x7f", 8);
    strbuf_clear(&key);
}

static void nothing_is_seen_of_an_unfinished_checkpoint(void **state) {
    (void)state;
    char *prefix = in_dir("ck");
    Tensor *old = floats(2, 2, 1), *fresh = floats(2, 2, 9), *t;
    write_one(prefix, "v", old);
    BundleWriter *w;
    assert_null(bundle_writer_open(fs, prefix, &w));
    assert_null(bundle_writer_add(w, STR("v"), fresh));
    bundle_writer_close(w);
    Bundle *b;
    assert_null(bundle_open(fs, prefix, &b));
    assert_null(bundle_read(b, STR("v"), &t));
    assert_true(tensor_f32(t)[0] == 1);
    tensor_unref(t);
    bundle_close(b);
    PathList names = {0};
    assert_null(fs->list(dir, &names));
    assert_int_equal(names.count, 2);
    path_list_clear(&names);
    tensor_unref(old);
    tensor_unref(fresh);
    free(prefix);
}

/* Opens and reads everything; the code of the error, CODE_OK when there is none. */
static ErrorCode read_everything(const char *prefix) {
    Bundle *b = NULL;
    Error *err = bundle_open(fs, prefix, &b);
    for (int64_t i = 0; !err && i < bundle_count(b); i++) {
        Tensor *t = NULL;
        err = bundle_read(b, bundle_name(b, i), &t);
        tensor_unref(err ? NULL : t);
    }
    bundle_close(b);
    ErrorCode code = err ? err->code : CODE_OK;
    error_free(err);
    return code;
}

static void damage_is_noticed_and_never_crashes(void **state) {
    (void)state;
    char *prefix = in_dir("ck"), *paths[] = {in_dir("ck.index"), in_dir("ck.data-00000-of-00001")};
    Shape two = shape_vector(2);
    Tensor *strings, *f = floats(2, 3, 1);
    assert_null(tensor_new(DT_STRING, &two, &strings));
    tstring_set(&tensor_str(strings)[1], STR("some text"));
    BundleWriter *w;
    assert_null(bundle_writer_open(fs, prefix, &w));
    assert_null(bundle_writer_add(w, STR("f"), f));
    assert_null(bundle_writer_add(w, STR("s"), strings));
    assert_null(bundle_writer_finish(w));
    bundle_writer_close(w);
    assert_int_equal(read_everything(prefix), CODE_OK);
    for (int p = 0; p < 2; p++) {
        char *bytes;
        size_t len;
        assert_null(file_read_all(fs, paths[p], &bytes, &len));
        for (size_t i = 0; i < len; i++) {
            bytes[i] ^= 0x15;
            assert_null(file_write_all(fs, paths[p], (Str){bytes, len}));
            ErrorCode code = read_everything(prefix);
            if (p == 1) assert_int_equal(code, CODE_DATA_LOSS); /* the index has bytes that mean nothing */
            assert_true(code == CODE_OK || code == CODE_DATA_LOSS);
            bytes[i] ^= 0x15;
            assert_null(file_write_all(fs, paths[p], (Str){bytes, i}));
            assert_int_equal(read_everything(prefix), CODE_DATA_LOSS);
        }
        assert_null(file_write_all(fs, paths[p], (Str){bytes, len}));
        free(bytes);
        free(paths[p]);
    }
    tensor_unref(f);
    tensor_unref(strings);
    free(prefix);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(values_come_back, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(parts_are_put_together_and_cut, make_dir, remove_dir),
        cmocka_unit_test(keys_of_slices_are_tensorflows),
        cmocka_unit_test_setup_teardown(nothing_is_seen_of_an_unfinished_checkpoint, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(damage_is_noticed_and_never_crashes, make_dir, remove_dir),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
