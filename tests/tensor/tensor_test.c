/* tensor_test.c: dtypes, shapes, tensors and who shares their memory. */
#include "tensor/tensor.h"

#include <stdlib.h>

#include "tensor/dtype.h"
#include "tensor/shape.h"
#include "unit_test.h"

static void dtypes_have_names_and_sizes(void **state) {
    (void)state;
    for (int t = 1; t < DT_COUNT; t++) {
        assert_true(dtype_is_valid(t) && dtype_is_valid(t + DT_REF));
        assert_int_equal(dtype_from_name(str_of(dtype_name((DataType)t))), t);
        assert_int_equal(dtype_from_name(str_of(dtype_name((DataType)(t + DT_REF)))), t + DT_REF);
        assert_true(dtype_size((DataType)t) > 0 && dtype_size((DataType)(t + DT_REF)) == dtype_size((DataType)t));
        assert_int_equal(dtype_base((DataType)(t + DT_REF)), t);
    }
    const int bad[] = {0, -1, DT_COUNT, DT_REF, DT_REF + DT_COUNT, DT_REF + 101, 2 * DT_REF + 1, 1 << 30};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_false(dtype_is_valid(bad[i]));
        assert_string_equal(dtype_name((DataType)bad[i]), "invalid");
    }
    assert_int_equal(dtype_from_name(STR("float32")), DT_FLOAT);
    assert_int_equal(dtype_from_name(STR("no")), DT_INVALID);
}

static void expect_shape(const Shape *s, const char *text) {
    char *got = shape_str(s);
    assert_string_equal(got, text);
    free(got);
}

static void shapes_count_and_print(void **state) {
    (void)state;
    Shape s = shape_matrix(2, 3);
    assert_int_equal(shape_count(&s), 6);
    expect_shape(&s, "[2,3]");
    shape_insert_dim(&s, 1, 5);
    expect_shape(&s, "[2,5,3]");
    assert_int_equal(shape_prod(&s, 1, 3), 15);
    shape_remove_dim(&s, 0);
    expect_shape(&s, "[5,3]");
    expect_shape(&SHAPE_SCALAR, "[]");
    PartialShape partial = {.rank = 2, .dims = {-1, 3}}, unknown = {.rank = -1};
    expect_shape(&partial, "[?,3]");
    expect_shape(&unknown, "<unknown>");
    assert_true(partial_shape_matches(&partial, &s) && partial_shape_matches(&unknown, &s));
    s.dims[1] = 4;
    assert_false(partial_shape_matches(&partial, &s));
}

static void shapes_that_are_too_large_are_refused(void **state) {
    (void)state;
    Shape negative = shape_vector(-3), large = shape_matrix(INT64_MAX, 2), empty = {.rank = 3, .dims = {INT64_MAX, INT64_MAX, 0}};
    expect_error(shape_check(&negative), CODE_INVALID_ARGUMENT, "must be >= 0");
    expect_error(shape_check(&large), CODE_INVALID_ARGUMENT, "more than 2**63 - 1 elements");
    expect_ok(shape_check(&empty));
    assert_int_equal(shape_count(&empty), 0);
}

static void shapes_survive_the_wire(void **state) {
    (void)state;
    const PartialShape shapes[] = {SHAPE_SCALAR, {.rank = 1, .dims = {0}}, {.rank = 3, .dims = {-1, 7, INT64_MAX}}, {.rank = -1}};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        StrBuf b = {0};
        PartialShape back = {.rank = 5};
        shape_encode(&shapes[i], &b);
        expect_ok(shape_decode(strbuf_str(&b), &back));
        assert_true(back.rank < 0 ? shapes[i].rank < 0 : shape_eq(&shapes[i], &back));
        strbuf_clear(&b);
    }
    PartialShape s;
    StrBuf many = {0};
    for (int i = 0; i <= SHAPE_MAX_RANK; i++) strbuf_add(&many, STR("\x12\x00"));
    expect_error(shape_decode(strbuf_str(&many), &s), CODE_INVALID_ARGUMENT, "dimensions");
    strbuf_clear(&many);
    expect_error(shape_decode(STR("\x12\x0b\x08\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"), &s), CODE_INVALID_ARGUMENT, "dimension of -2");
    expect_error(shape_decode(STR("\x12\x05"), &s), CODE_INVALID_ARGUMENT, "Malformed");
    expect_error(shape_decode(STR("\x12\x02\x08\xff"), &s), CODE_INVALID_ARGUMENT, "Malformed");
}

static void tensors_that_no_machine_holds_are_refused(void **state) {
    (void)state;
    Tensor *t = NULL;
    const Shape shapes[] = {shape_vector((int64_t)1 << 40), shape_matrix((int64_t)1 << 31, (int64_t)1 << 31), shape_vector(INT64_MAX)};
    for (int i = 0; i < 3; i++) {
        expect_error(tensor_new(DT_COMPLEX128, &shapes[i], &t), CODE_RESOURCE_EXHAUSTED, "OOM when allocating tensor with shape[");
        expect_error(tensor_new(DT_STRING, &shapes[i], &t), CODE_RESOURCE_EXHAUSTED, "string");
    }
    Shape negative = shape_vector(-1), one = shape_vector(1);
    expect_error(tensor_new(DT_FLOAT, &negative, &t), CODE_INVALID_ARGUMENT, NULL);
    expect_error(tensor_new((DataType)(DT_FLOAT + DT_REF), &one, &t), CODE_INTERNAL, NULL);
    expect_error(tensor_new((DataType)77, &one, &t), CODE_INTERNAL, NULL);
}

static void an_alias_shares_memory_and_nobody_is_unique(void **state) {
    (void)state;
    Shape shape = shape_matrix(4, 3), flat = shape_vector(12);
    Tensor *t = NULL;
    expect_ok(tensor_new(DT_INT32, &shape, &t));
    assert_int_equal((uintptr_t)t->data % 64, 0);
    for (int i = 0; i < 12; i++) tensor_i32(t)[i] = i;
    assert_true(tensor_is_unique(t));
    Tensor *alias = tensor_alias(t, DT_FLOAT, &flat);
    assert_ptr_equal(alias->data, t->data);
    assert_false(tensor_is_unique(t) || tensor_is_unique(alias));
    Tensor *rows = tensor_rows(t, 1, 3);
    assert_int_equal(rows->shape.dims[0], 2);
    assert_int_equal(tensor_i32(rows)[0], 3);
    assert_int_equal(rows->count, 6);
    tensor_unref(t);
    tensor_unref(alias);
    assert_int_equal(tensor_i32(rows)[5], 8);
    assert_true(tensor_is_unique(rows));
    Tensor *second = tensor_ref(rows);
    assert_false(tensor_is_unique(rows));
    tensor_unref(second);
    Tensor *none = tensor_rows(rows, 1, 1);
    assert_int_equal(none->count, 0);
    tensor_unref(none);
    tensor_unref(rows);
    tensor_unref(NULL);
}

static int released;
static void release(void *owner) {
    released += *(int *)owner;
}

static void borrowed_memory_is_released_with_the_last_reference(void **state) {
    (void)state;
    float values[3] = {1, 2, 3};
    int weight = 5;
    Shape shape = shape_vector(3);
    Tensor *t = tensor_wrap(DT_FLOAT, &shape, values, release, &weight);
    assert_false(tensor_is_unique(t)); /* it is not ours to overwrite */
    Tensor *row = tensor_rows(t, 2, 3), *copy = NULL;
    expect_ok(tensor_copy(t, &copy));
    assert_true(tensor_is_unique(copy) && tensor_f32(copy)[2] == 3);
    tensor_unref(t);
    assert_int_equal(released, 0);
    assert_true(tensor_f32(row)[0] == 3);
    tensor_unref(row);
    assert_int_equal(released, 5);
    tensor_unref(copy);
}

static void strings_of_any_length_are_kept_and_moved(void **state) {
    (void)state;
    char bytes[64];
    for (int i = 0; i < 64; i++) bytes[i] = (char)(200 + i);
    TString a = {0}, b = {0};
    for (size_t len = 0; len <= sizeof bytes; len++) {
        const Str whole = {bytes, len};
        tstring_set(&a, whole);
        tstring_move(&b, &a);
        assert_int_equal(tstring_str(&a).len, 0);
        assert_true(str_eq(tstring_str(&b), whole));
        for (size_t cut = 0; cut <= len; cut += 7) { /* of a part of itself */
            tstring_set(&a, whole);
            tstring_set(&a, str_slice(tstring_str(&a), cut, len));
            assert_true(str_eq(tstring_str(&a), str_slice(whole, cut, len)));
        }
        memcpy(tstring_room(&a, len), bytes, len);
        assert_true(str_eq(tstring_str(&a), whole));
        elements_copy(DT_STRING, &b, &a, 1);
        tstring_clear(&a);
        assert_true(str_eq(tstring_str(&b), whole));
        if (len) tstring_take(&a, memcpy(malloc(len), bytes, len), len);
        assert_true(str_eq(tstring_str(&a), whole));
    }
    tstring_clear(&a);
    tstring_clear(&b);
}

static void strings_and_handles_are_copied_and_freed(void **state) {
    (void)state;
    Shape shape = shape_vector(3);
    Tensor *t = NULL, *copy = NULL;
    expect_ok(tensor_new(DT_STRING, &shape, &t));
    expect_str(tstring_str(&tensor_str(t)[2]), "");
    tstring_set(&tensor_str(t)[0], STR("first"));
    tstring_set(&tensor_str(t)[0], STR("again"));
    tstring_set(&tensor_str(t)[1], (Str){"a\0b", 3});
    expect_ok(tensor_copy(t, &copy));
    tensor_unref(t);
    expect_str(tstring_str(&tensor_str(copy)[0]), "again");
    assert_int_equal(tstring_str(&tensor_str(copy)[1]).len, 3);
    tensor_unref(copy);
    expect_ok(tensor_new(DT_RESOURCE, &shape, &t));
    tensor_handles(t)[1] = resource_handle_new(STR("/d"), STR("c"), STR("n"), STR("t"));
    expect_ok(tensor_copy(t, &copy));
    assert_ptr_equal(tensor_handles(copy)[1], tensor_handles(t)[1]);
    assert_null(tensor_handles(copy)[0]);
    tensor_unref(t);
    assert_string_equal(tensor_handles(copy)[1]->name, "n");
    tensor_unref(copy);
    expect_ok(tensor_new(DT_VARIANT, &shape, &t));
    expect_ok(tensor_copy(t, &copy));
    tensor_unref(t);
    tensor_unref(copy);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dtypes_have_names_and_sizes), cmocka_unit_test(shapes_count_and_print), cmocka_unit_test(shapes_that_are_too_large_are_refused),
        cmocka_unit_test(shapes_survive_the_wire), cmocka_unit_test(tensors_that_no_machine_holds_are_refused),
        cmocka_unit_test(an_alias_shares_memory_and_nobody_is_unique), cmocka_unit_test(borrowed_memory_is_released_with_the_last_reference),
        cmocka_unit_test(strings_of_any_length_are_kept_and_moved),
        cmocka_unit_test(strings_and_handles_are_copied_and_freed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
