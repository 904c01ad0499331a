/* uniform_dot.c: UniformQuantizedDot and UniformQuantizedDotHybrid, products of matrices of bytes; the hybrid one makes bytes of its floats first, row by row. */
#include "ops/elements.h"
#include "ops/op_list.h"
#include "ops/uniform_scale.h"

#define RANGE(what) what "_quantization_axis: int = -1; " what "_quantization_min_val: int; " what "_quantization_max_val: int"

const OpDef uniform_dot_ops[] = {
    {"UniformQuantizedDot",
     "lhs: Tin, rhs: Tin, lhs_scales: float, lhs_zero_points: int32, rhs_scales: float, rhs_zero_points: int32, output_scales: float, output_zero_points: int32 -> output: Tout",
     "Tin: {qint8}; Tout: {qint32}; " RANGE("lhs") "; " RANGE("rhs") "; " RANGE("output"), 0},
    {"UniformQuantizedDotHybrid", "lhs: Tlhs, rhs: Trhs, rhs_scales: float, rhs_zero_points: int32 -> output: Tout",
     "Tlhs: {float}; Trhs: {qint8}; Tout: {float}; " RANGE("rhs"), 0},
    {0},
};

static Error *check_axis(const Node *node, const char *name) {
    int32_t axis = 0;
    Error *err = uniform_attr(node, name, &axis);
    if (!err && axis != 1 && axis != -1) err = error_invalid("%s Attr must be 1 (per-channel) or -1 (per-tensor).", name);
    return err;
}

static Error *dot_init(const Node *node, void *state) {
    int32_t lhs = 0;
    Error *err = uniform_range(node, "output_quantization_min_val", "output_quantization_max_val", state);
    if (!err) err = uniform_attr(node, "lhs_quantization_axis", &lhs);
    if (!err && lhs != -1) err = error_invalid("lhs_quantization_axis Attr must be -1 (per-tensor).");
    if (!err) err = check_axis(node, "rhs_quantization_axis");
    if (!err) err = check_axis(node, "output_quantization_axis");
    return err;
}

static Error *hybrid_init(const Node *node, void *state) {
    (void)state;
    return check_axis(node, "rhs_quantization_axis");
}

static Error *check_shapes(const Shape *a, const Shape *b) {
    if (a->rank != 2) return error_invalid("lhs rank must be 2, but given lhs shape %s", shape_text(a).text);
    if (b->rank != 2) return error_invalid("rhs rank must be 2, but given rhs shape %s", shape_text(b).text);
    if (a->dims[1] != b->dims[0])
        return error_invalid("lhs.dim_size(1) and rhs.dim_size(0) must be equal, but given lhs shape %s and rhs shape %s", shape_text(a).text, shape_text(b).text);
    return NULL;
}

static Error *check_per_channel(const Shape *data, const Tensor *scales, const Tensor *zero_points) {
    return uniform_check(data, scales, zero_points, scales->shape.rank == 0 ? -1 : 1);
}

/* One row of the product, as whole numbers. zeros: of rhs, one for all when zero_step is 0. */
static void multiply_row(const int8_t *row, int32_t zero, const Tensor *rhs, const int32_t *zeros, int zero_step, int32_t *sums) {
    const int64_t depth = rhs->shape.dims[0], columns = rhs->shape.dims[1];
    for (int64_t j = 0; j < columns; j++) sums[j] = 0;
    for (int64_t i = 0; i < depth; i++) {
        const int8_t *b = (const int8_t *)rhs->data + i * columns;
        const int32_t a = wrap_sub(row[i], zero);
        for (int64_t j = 0; j < columns; j++) sums[j] = wrap_add(sums[j], wrap_mul(a, wrap_sub(b[j], zeros[j * zero_step])));
    }
}

static Error *dot_run(KernelContext *k) {
    const UniformRange *range = k->state;
    const Tensor *a = k->in[0], *b = k->in[1];
    static const char *const sides[] = {"lhs", "rhs", "output"};
    for (int i = 0; i < 3; i++)
        if (!uniform_all_positive(k->in[2 + 2 * i])) return error_invalid("%s scales elements must be all positive.", sides[i]);
    Error *err = check_shapes(&a->shape, &b->shape);
    if (err) return err;
    if (k->in[2]->shape.rank != 0 || k->in[3]->shape.rank != 0)
        return error_invalid("lhs scales/zero_points must be all scalar tensors. Given: %s%s", shape_text(&k->in[2]->shape).text, shape_text(&k->in[3]->shape).text);
    const int64_t rows = a->shape.dims[0], columns = b->shape.dims[1], depth = b->shape.dims[0];
    Shape shape = shape_matrix(rows, columns), width = shape_vector(columns);
    err = check_per_channel(&b->shape, k->in[4], k->in[5]);
    if (!err) err = check_per_channel(&shape, k->in[6], k->in[7]);
    if (err) return err;
    if (k->in[4]->shape.rank == 0 && k->in[6]->shape.rank != 0)
        return error_invalid("If rhs is per-tensor quantized, output must be also per-tensor quantized. Given rhs scales and zero_points of shape %s but given output scales and zero_points of shape %s",
                             shape_text(&k->in[4]->shape).text, shape_text(&k->in[6]->shape).text);
    Tensor *y = kernel_output(k, 0, &shape);
    if (!y || y->count == 0) return NULL;
    const int by_channel = k->in[4]->shape.rank, out_by_channel = k->in[6]->shape.rank;
    Shape factors_shape = shape_vector(columns * (int64_t)(sizeof(UniformFactor) / sizeof(int32_t)));
    Tensor *sums = kernel_scratch(k, DT_INT32, &width), *room = sums ? kernel_scratch(k, DT_INT32, &factors_shape) : NULL;
    UniformFactor *factors = room ? room->data : NULL;
    for (int64_t j = 0; j < columns && room && !err; j++)
        err = uniform_factor((double)tensor_f32(k->in[2])[0] * (double)tensor_f32(k->in[4])[j * by_channel] / (double)tensor_f32(k->in[6])[j * out_by_channel], &factors[j]);
    for (int64_t r = 0; r < rows && room && !err; r++) {
        const int32_t *zeros = k->in[7]->data;
        multiply_row((const int8_t *)a->data + r * depth, ((const int32_t *)k->in[3]->data)[0], b, k->in[5]->data, by_channel, sums->data);
        for (int64_t j = 0; j < columns; j++)
            ((int32_t *)y->data)[r * columns + j] = uniform_scaled(((const int32_t *)sums->data)[j], factors[j], zeros[j * out_by_channel], *range);
    }
    tensor_unref(sums);
    tensor_unref(room);
    return err;
}

static Error *hybrid_run(KernelContext *k) {
    const Tensor *a = k->in[0], *b = k->in[1];
    Error *err = check_shapes(&a->shape, &b->shape);
    if (!err) err = check_per_channel(&b->shape, k->in[2], k->in[3]);
    if (!err && !uniform_all_positive(k->in[2])) err = error_invalid("rhs scales elements must be all positive.");
    if (err) return err;
    const int64_t rows = a->shape.dims[0], columns = b->shape.dims[1], depth = b->shape.dims[0];
    Shape shape = shape_matrix(rows, columns), width = shape_vector(columns), length = shape_vector(depth);
    Tensor *y = kernel_output(k, 0, &shape);
    if (!y || y->count == 0) return NULL;
    const int by_channel = k->in[2]->shape.rank;
    Tensor *sums = kernel_scratch(k, DT_INT32, &width), *bytes = sums ? kernel_scratch(k, DT_QINT8, &length) : NULL;
    for (int64_t r = 0; r < rows && bytes; r++) {
        float scale = 1;
        int32_t zero = 0;
        uniform_asymmetric(tensor_f32(a) + r * depth, depth, bytes->data, &scale, &zero);
        multiply_row(bytes->data, zero, b, k->in[3]->data, by_channel, sums->data);
        for (int64_t j = 0; j < columns; j++) tensor_f32(y)[r * columns + j] = (float)((const int32_t *)sums->data)[j] * scale * tensor_f32(k->in[2])[j * by_channel];
    }
    tensor_unref(sums);
    tensor_unref(bytes);
    return NULL;
}

const KernelDef uniform_dot_cpu[] = {
    {"UniformQuantizedDot", .by_type = {[DT_QINT8] = dot_run}, .type_attr = "Tin", .state_size = sizeof(UniformRange), .init = dot_init, .flags = KERNEL_EXPENSIVE},
    {"UniformQuantizedDotHybrid", .by_type = {[DT_QINT8] = hybrid_run}, .type_attr = "Trhs", .init = hybrid_init, .flags = KERNEL_EXPENSIVE},
    {0},
};
