/* crop_and_resize_test.c: boxes of more columns than are worked on together. */
#include "direct_run.h"

enum { WIDE = 700, HIGH = 3 };

static Tensor *floats(const char *name, GraphBuilder *b, const Shape *shape, const float *values) {
    Tensor *t = NULL;
    expect_ok(tensor_new(DT_FLOAT, shape, &t));
    for (int64_t i = 0; i < t->count; i++) tensor_f32(t)[i] = values ? values[i] : (float)(i * 7919 % 1999);
    gb_const(b, name, tensor_ref(t), "");
    return t;
}

/* The first box is the whole image, the second the image the other way round, the third lies beside it. */
static void check(const char *method) {
    static const float corners[] = {0, 0, 1, 1, 1, 1, 0, 0, 2, 2, 3, 3};
    GraphBuilder b = {0};
    Shape shape = shape_of(4, (int64_t[]){1, HIGH, WIDE, 1}), four = shape_matrix(3, 4), three = shape_vector(3), two = shape_vector(2);
    Tensor *image = floats("image", &b, &shape, NULL), *boxes = floats("boxes", &b, &four, corners), *which = NULL, *size = NULL;
    expect_ok(tensor_new(DT_INT32, &three, &which));
    memset(which->data, 0, tensor_bytes(which));
    expect_ok(tensor_new(DT_INT32, &two, &size));
    tensor_i32(size)[0] = HIGH;
    tensor_i32(size)[1] = WIDE;
    gb_const(&b, "which", which, "");
    gb_const(&b, "size", size, "");
    gb_op(&b, "z", "CropAndResize", "image,boxes,which,size", DT_FLOAT);
    gb_string(&b, "method", method);
    DirectSession *s = open_session(&b, 2);
    Tensor *z = run_fetch(s, "z");
    assert_int_equal(z->count, 3 * HIGH * WIDE);
    for (int i = 0; i < HIGH * WIDE; i++) {
        assert_float_equal(tensor_f32(z)[i], tensor_f32(image)[i], 0.5);
        assert_float_equal(tensor_f32(z)[HIGH * WIDE + i], tensor_f32(image)[HIGH * WIDE - 1 - i], 0.5);
        assert_float_equal(tensor_f32(z)[2 * HIGH * WIDE + i], 0, 0);
    }
    tensor_unref(z);
    tensor_unref(image);
    tensor_unref(boxes);
    direct_session_free(s);
}

static void every_column_is_where_it_belongs(void **state) {
    (void)state;
    check("bilinear");
    check("nearest");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_column_is_where_it_belongs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
