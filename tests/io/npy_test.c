/* npy_test.c: .npy files: written, read, cut short and damaged; tests/tools has those that NumPy wrote. */
#include "io/npy.h"

#include <stdlib.h>

#include "base/memory.h"
#include "tensor/json.h"
#include "unit_test.h"

static void a_cut_npy_file_is_refused(void **state) {
    (void)state;
    char path[] = "/tmp/rill_npy_test.XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    Tensor *t = NULL, *back = NULL;
    expect_ok(json_parse_tensor(STR("[[1, 2, 3], [4, 5, 6]]"), DT_FLOAT, &t));
    expect_ok(npy_write(&file_system_local, path, t));
    char *bytes = NULL;
    size_t len = 0;
    expect_ok(file_read_all(&file_system_local, path, &bytes, &len));
    expect_ok(npy_parse((Str){bytes, len}, path, &back));
    assert_memory_equal(back->data, t->data, tensor_bytes(t));
    tensor_unref(back);
    for (size_t n = 0; n < len; n++) {
        char *copy = xmalloc(n + 1);
        memcpy(copy, bytes, n);
        Error *err = npy_parse((Str){copy, n}, path, &back);
        assert_non_null(err);
        error_free(err);
        free(copy);
    }
    for (size_t i = 0; i < 128; i++) { /* any other header: an array or an error */
        char *copy = xmalloc(len);
        memcpy(copy, bytes, len);
        copy[i] = (char)(copy[i] + 1);
        back = NULL;
        error_free(npy_parse((Str){copy, len}, path, &back));
        tensor_unref(back);
        free(copy);
    }
    free(bytes);
    tensor_unref(t);
    remove(path);
}

static void elements_of_no_bytes_are_refused(void **state) {
    (void)state;
    static const char header[] = "{'descr': '<U0', 'fortran_order': False, 'shape': (66666, 66)}";
    StrBuf file = {0};
    strbuf_add(&file, (Str){"\x93NUMPY\1\0", 8});
    strbuf_addc(&file, (char)(sizeof header - 1));
    strbuf_addc(&file, 0);
    strbuf_add(&file, (Str){header, sizeof header - 1});
    Tensor *t = NULL;
    expect_error(npy_parse(strbuf_str(&file), "short.npy", &t), CODE_UNIMPLEMENTED, "4399956 elements of no bytes");
    strbuf_clear(&file);
}

static void strings_that_cannot_be_kept_are_refused(void **state) {
    (void)state;
    Tensor *t = tensor_scalar_str(STR("a\0"));
    expect_error(npy_write(&file_system_local, "/tmp/rill_never_written.npy", t), CODE_INVALID_ARGUMENT, "0 byte");
    tensor_unref(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cut_npy_file_is_refused),
        cmocka_unit_test(elements_of_no_bytes_are_refused),
        cmocka_unit_test(strings_that_cannot_be_kept_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
