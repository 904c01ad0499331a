/* fft.c: gradients of Fourier transforms. */
#include "gradients/rule.h"

/* How many dimensions are transformed. */
static int dims_of(const Rule *r) {
    Str op = rule_node(r)->op;
    return str_ends(op, STR("3D")) ? 3 : str_ends(op, STR("2D")) ? 2 : 1;
}

/* The number of elements of one transform. */
static Output size_of(Builder *b, Rule *r, Output x, DataType type) {
    Output last = b_items(b, b_shape(b, x), -dims_of(r), 0);
    return b_cast(
        b, b_cast(b, b_prod(b, last, b_i32(b, 0)), type == DT_COMPLEX128 || type == DT_DOUBLE ? DT_DOUBLE : DT_FLOAT),
        type);
}

static void fft_grad(Builder *b, Rule *r) {
    static const char *const back[] = {"IFFT", "IFFT2D", "IFFT3D"};
    Output dy = rule_dy(r, 0);
    rule_set(r, 0, b_mul(b, b_op1(b, back[dims_of(r) - 1], dy), size_of(b, r, dy, output_dtype(dy))));
}

static void ifft_grad(Builder *b, Rule *r) {
    static const char *const back[] = {"FFT", "FFT2D", "FFT3D"};
    Output dy = rule_dy(r, 0);
    rule_set(r, 0, b_div(b, b_op1(b, back[dims_of(r) - 1], dy), size_of(b, r, dy, output_dtype(dy))));
}

/* Cut or filled up with zeros at the end of each dimension. */
static Output fitted(Builder *b, Output x, Output shape) {
    Output size = b_op2(b, "Minimum", b_shape(b, x), shape), zeros = b_zeros_like(b, size);
    Output columns[] = {zeros, b_sub(b, shape, size)}, part = b_slice(b, x, zeros, size);
    b_with_int(b, "axis", 1);
    Output paddings = b_pack(b, columns, 2);
    return b_op2(b, "Pad", part, paddings);
}

/* The shape of x with other last dimensions. */
static Output with_last(Builder *b, Output x, int dims, Output last) {
    return b_concat2(b, b_items(b, b_shape(b, x), 0, -dims), last, 0);
}

/* The half that was left out counts as zeros: then it is a whole transform of real numbers. */
static void rfft_grad(Builder *b, Rule *r) {
    static const char *const back[] = {"IFFT", "IFFT2D", "IFFT3D"};
    int dims = dims_of(r);
    Output dy = rule_dy(r, 0), whole = fitted(b, dy, with_last(b, dy, dims, rule_in(r, 1)));
    Output dx = b_mul(b, b_op1(b, back[dims - 1], whole), size_of(b, r, whole, output_dtype(dy)));
    b_with_type(b, "Tout", output_dtype(dy) == DT_COMPLEX128 ? DT_DOUBLE : DT_FLOAT);
    dx = b_op1(b, "Real", dx);
    rule_set(r, 0, fitted(b, dx, rule_in_shape(r, 0)));
}

/* All but the first and, of even lengths, the last column stand for two. */
static void irfft_grad(Builder *b, Rule *r) {
    static const char *const back[] = {"RFFT", "RFFT2D", "RFFT3D"};
    int dims = dims_of(r);
    Output dy = rule_dy(r, 0), length = rule_in(r, 1), last = b_item(b, length, -1);
    DataType type = output_dtype(dy), complex_type = type == DT_DOUBLE ? DT_COMPLEX128 : DT_COMPLEX64;
    Output odd = b_op2(b, "FloorMod", last, b_i32(b, 2)),
           columns = b_shift(b, b_op2(b, "FloorDiv", last, b_i32(b, 2)), 1);
    Output ones = b_fill(b, b_i32s(b, 1, (int[]){1}), b_scalar(b, type, 1));
    Output inner = b_fill(b, b_expand(b, b_add(b, b_shift(b, columns, -2), odd), 0), b_scalar(b, type, 2));
    Output end = b_fill(b, b_expand(b, b_from(b, 1, odd), 0), b_scalar(b, type, 1));
    Output weights = b_div(b, b_concat(b, (Output[]){ones, inner, end}, 3, 0), size_of(b, r, dy, type));
    b_with_type(b, "Tcomplex", complex_type);
    Output dx = b_op2(b, back[dims - 1], dy, length);
    rule_set(r, 0, fitted(b, b_mul(b, dx, b_cast(b, weights, complex_type)), rule_in_shape(r, 0)));
}

const GradientDef fft_gradients[] = {
    {"FFT", fft_grad},
    {"FFT2D", fft_grad},
    {"FFT3D", fft_grad},
    {"IFFT", ifft_grad},
    {"IFFT2D", ifft_grad},
    {"IFFT3D", ifft_grad},
    {"IRFFT", irfft_grad},
    {"IRFFT2D", irfft_grad},
    {"IRFFT3D", irfft_grad},
    {"RFFT", rfft_grad},
    {"RFFT2D", rfft_grad},
    {"RFFT3D", rfft_grad},
    {0},
};
