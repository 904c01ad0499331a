/* quantized_product.c: products and convolutions of bytes that stand for floats, with what TensorFlow fuses behind them: QuantizedMatMul,
 * QuantizedConv2D, QuantizedDepthwiseConv2D and their forms WithBias, AndRelu, AndRequantize.

   Two families. Those of two unsigned types have a zero point in each and give the sums as they are. Those with a qint8 filter have zero at zero;
   behind the sums comes arithmetic in floats, in the order in which oneDNN has it: times the scales of both inputs, plus the bias, Relu, divided by the
   scale of the result, rounded to even. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "kernels/gemm_int8.h"
#include "kernels/patches.h"
#include "ops/elements.h"
#include "ops/op_list.h"
#include "ops/quantized.h"
#include "ops/window.h"

#define QUANTIZED "{qint8, quint8, qint32, qint16, quint16}"
#define AB_TYPES "T1: " QUANTIZED "; T2: " QUANTIZED "; "
#define IN_TYPES "Tinput: " QUANTIZED "; Tfilter: " QUANTIZED "; "
#define MODE "; transpose_a: bool = false; transpose_b: bool = false; input_quant_mode: {'MIN_FIRST', 'SCALED'} = 'MIN_FIRST'"
#define WINDOW "strides: list(int); padding: {'SAME', 'VALID'}; dilations: list(int) = [1, 1, 1, 1]"
#define PADS "; padding_list: list(int) = []"
#define RANGES_AB "min_a: float, max_a: float, min_b: float, max_b: float"
#define RANGES "min_input: float, max_input: float, min_filter: float, max_filter: float"
#define ASKED "min_freezed_output: float, max_freezed_output: float"
#define RESULT_AB "out: Toutput, min_out: float, max_out: float"
#define RESULT "output: out_type, min_output: float, max_output: float"

const OpDef quantized_product_ops[] = {
    {"QuantizedMatMul", "a: T1, b: T2, " RANGES_AB " -> " RESULT_AB,
     AB_TYPES "Toutput: " QUANTIZED " = qint32; transpose_a: bool = false; transpose_b: bool = false; Tactivation: " QUANTIZED " = quint8", 0},
    {"QuantizedMatMulWithBias", "a: T1, b: T2, bias: Tbias, " RANGES_AB " -> " RESULT_AB,
     AB_TYPES "Tbias: {float, qint32}; Toutput: " QUANTIZED " = qint32" MODE, 0},
    {"QuantizedMatMulWithBiasAndRelu", "a: T1, b: T2, bias: float, " RANGES_AB " -> " RESULT_AB,
     AB_TYPES "Toutput: " QUANTIZED " = qint32" MODE, 0},
    {"QuantizedMatMulWithBiasAndRequantize", "a: T1, b: T2, bias: Tbias, " RANGES_AB ", " ASKED " -> " RESULT_AB,
     AB_TYPES "Tbias: {float, qint32}; Toutput: " QUANTIZED " = quint8" MODE, 0},
    {"QuantizedMatMulWithBiasAndReluAndRequantize", "a: T1, b: T2, bias: Tbias, " RANGES_AB ", " ASKED " -> " RESULT_AB,
     AB_TYPES "Tbias: {float, qint32}; Toutput: " QUANTIZED " = quint8" MODE, 0},
    {"QuantizedMatMulWithBiasAndDequantize", "a: T1, b: T2, bias: Tbias, " RANGES_AB ", " ASKED " -> out: Toutput",
     AB_TYPES "Tbias: {float, qint32}; Toutput: {float}" MODE, 0},
    {"QuantizedConv2D", "input: Tinput, filter: Tfilter, " RANGES " -> " RESULT,
     IN_TYPES "out_type: " QUANTIZED " = qint32; " WINDOW, 0},
    {"QuantizedConv2DAndRelu", "input: Tinput, filter: Tfilter, " RANGES " -> " RESULT,
     IN_TYPES "out_type: " QUANTIZED " = qint32; " WINDOW PADS, 0},
    {"QuantizedConv2DAndRequantize", "input: Tinput, filter: Tfilter, " RANGES ", " ASKED " -> " RESULT,
     IN_TYPES "out_type: " QUANTIZED " = qint8; " WINDOW PADS, 0},
    {"QuantizedConv2DAndReluAndRequantize", "input: Tinput, filter: Tfilter, " RANGES ", " ASKED " -> " RESULT,
     IN_TYPES "out_type: " QUANTIZED " = quint8; " WINDOW PADS, 0},
    {"QuantizedConv2DPerChannel", "input: Tinput, filter: Tfilter, " RANGES " -> " RESULT,
     IN_TYPES "out_type: " QUANTIZED " = qint32; " WINDOW, 0},
    {"QuantizedConv2DWithBias", "input: Tinput, filter: Tfilter, bias: float, " RANGES " -> " RESULT,
     IN_TYPES "out_type: " QUANTIZED " = qint32; " WINDOW PADS, 0},
    {"QuantizedConv2DWithBiasAndRelu", "input: Tinput, filter: Tfilter, bias: float, " RANGES " -> " RESULT,
     IN_TYPES "out_type: " QUANTIZED " = qint32; " WINDOW PADS, 0},
    {"QuantizedConv2DWithBiasAndRequantize", "input: Tinput, filter: Tfilter, bias: Tbias, " RANGES ", " ASKED " -> " RESULT,
     IN_TYPES "Tbias: {float, qint32}; out_type: " QUANTIZED " = qint8; " WINDOW PADS, 0},
    {"QuantizedConv2DWithBiasAndReluAndRequantize", "input: Tinput, filter: Tfilter, bias: Tbias, " RANGES ", " ASKED " -> " RESULT,
     IN_TYPES "Tbias: {float, qint32}; out_type: " QUANTIZED " = quint8; " WINDOW PADS, 0},
    {"QuantizedDepthwiseConv2D", "input: Tinput, filter: Tfilter, " RANGES " -> " RESULT,
     IN_TYPES "out_type: " QUANTIZED " = qint32; " WINDOW, 0},
    {"QuantizedDepthwiseConv2DWithBias", "input: Tinput, filter: Tfilter, bias: float, " RANGES " -> " RESULT,
     IN_TYPES "out_type: " QUANTIZED " = qint32; " WINDOW, 0},
    {"QuantizedDepthwiseConv2DWithBiasAndRelu", "input: Tinput, filter: Tfilter, bias: float, " RANGES " -> " RESULT,
     IN_TYPES "out_type: " QUANTIZED " = qint32; " WINDOW PADS, 0},
    {"QuantizedDepthwiseConv2DWithBiasAndReluAndRequantize", "input: Tinput, filter: Tfilter, bias: Tbias, " RANGES ", " ASKED " -> " RESULT,
     IN_TYPES "Tbias: {float, qint32}; out_type: " QUANTIZED " = quint8; " WINDOW PADS, 0},
    {0},
};

/* ---- What follows the sums ---- */

typedef struct ProductState {
    bool relu, asks, min_first; /* the result is rounded to a range that is asked for; the first matrix has its own zero */
    int bias;                   /* its input, 0: none */
    bool a_transposed, b_transposed;
    Window win; /* of convolutions */
    bool depthwise;
} ProductState;

/* Inputs: two tensors, (bias), the range of each, (the range that is asked for). */
static int ranges_at(const ProductState *st) {
    return st->bias ? 3 : 2;
}

typedef struct Finish {
    int64_t depth;      /* channels of the result */
    float *scale, *add; /* of each channel */
    bool relu;
    float divide; /* 1 / the scale of the result */
    const QuantizedType *type; /* NULL: floats, not divided */
} Finish;

static void finish_rows(const Finish *f, const int32_t *sums, void *z, int64_t begin, int64_t end) {
    const float low = f->type ? (float)f->type->lowest : 0,
                high = f->type == &quantized_i32 ? 2147483520.0f : f->type ? (float)f->type->highest : 0;
    for (int64_t i = begin; i < end; i++) {
        const int32_t *x = sums + (i - begin) * f->depth;
        for (int64_t c = 0; c < f->depth; c++) {
            float v = (float)x[c] * f->scale[c];
            if (f->add) v += f->add[c];
            if (f->relu && !(v > 0)) v = 0;
            if (!f->type) {
                ((float *)z)[i * f->depth + c] = v;
                continue;
            }
            v *= f->divide;
            v = v > low ? v < high ? v : high : low;
            quantized_put(f->type, z, i * f->depth + c, (int32_t)rintf(v));
        }
    }
}

static void finish_clear(Finish *f) {
    free(f->scale);
    free(f->add);
}

static float outer(const Tensor *low, const Tensor *high, int64_t i) {
    return fmaxf(fabsf(tensor_f32(low)[i]), fabsf(tensor_f32(high)[i]));
}

/* The bias as floats, in the result's units before the division; `sums` are those of the columns of the second matrix. */
static void finish_bias(Finish *f, const ProductState *st, const Tensor *bias, float per_unit, const int32_t *sums, float zero) {
    f->add = xmalloc((size_t)f->depth * sizeof *f->add);
    for (int64_t c = 0; c < f->depth; c++) {
        if (bias->dtype == DT_QINT32)
            f->add[c] = (float)tensor_i32(bias)[c] / (per_unit > 0 ? per_unit : 1.0f / f->scale[c]);
        else
            f->add[c] = tensor_f32(bias)[c] + (st->min_first && sums ? (float)sums[c] * zero : 0);
    }
}

static float result_limit(DataType t) {
    return t == DT_QINT8 ? 127.0f : 255.0f;
}

/* ---- Products of matrices ---- */

static bool has(Str op, const char *word) {
    size_t n = strlen(word);
    for (size_t i = 0; i + n <= op.len; i++)
        if (memcmp(op.ptr + i, word, n) == 0) return true;
    return false;
}

/* The form is in the name. */
static void read_form(const Node *node, ProductState *st) {
    st->relu = has(node->op, "Relu");
    st->asks = has(node->op, "quantize");
    st->bias = has(node->op, "WithBias") ? 2 : 0;
}

static Error *matmul_init(const Node *node, void *state) {
    ProductState *st = state;
    Str mode;
    read_form(node, st);
    Error *err = node_attr_bool(node, "transpose_a", &st->a_transposed);
    if (!err) err = node_attr_bool(node, "transpose_b", &st->b_transposed);
    if (err || !st->bias) return err ? err : quantized_need_type(node, "T2", DT_QUINT8);
    err = quantized_need_type(node, "T2", DT_QINT8);
    if (!err) err = node_attr_string(node, "input_quant_mode", &mode);
    if (err) return err;
    st->min_first = str_is(mode, "MIN_FIRST") || !has(node->op, "Dequantize"); /* TensorFlow loses the mode of the others on the way to oneDNN */
    if (st->a_transposed || st->b_transposed) return error_unimplemented("%.*s of transposed matrices", STR_ARG(node->op));
    return NULL;
}

static Error *matrix_sizes(const ProductState *st, const Tensor *a, const Tensor *b, Int8Gemm *g) {
    if (a->shape.rank != 2) return error_invalid("In[0] is not a matrix");
    if (b->shape.rank != 2) return error_invalid("In[1] is not a matrix");
    int64_t inner = a->shape.dims[!st->a_transposed];
    if (inner != b->shape.dims[st->b_transposed])
        return error_invalid("Matrix size-incompatible: In[0]: %s, In[1]: %s", shape_text(&a->shape).text, shape_text(&b->shape).text);
    *g = (Int8Gemm){.m = a->shape.dims[st->a_transposed],
                    .n = b->shape.dims[!st->b_transposed],
                    .k = inner,
                    .a_transposed = st->a_transposed,
                    .b_transposed = st->b_transposed,
                    .b_signed = b->dtype == DT_QINT8,
                    .a = a->data,
                    .b = b->data};
    return NULL;
}

static Error *run_matmul(KernelContext *k) {
    QuantizedRange a = {0, 0}, b = {0, 0};
    Int8Gemm g = {0};
    Error *err = quantized_scalars_input(k, 2, "min_a", "max_a", QUANTIZED_SCALAR, &a);
    if (!err) err = quantized_scalars_input(k, 4, "min_b", "max_b", QUANTIZED_SCALAR, &b);
    if (err) return err;
    if (!(a.high > a.low)) return error_invalid("max_a must be larger than min_a.");
    if (!(b.high > b.low)) return error_invalid("max_b must be larger than min_b.");
    err = matrix_sizes(k->state, k->in[0], k->in[1], &g);
    if (err) return err;
    g.a_offset = (int32_t)quantized_place(&quantized_u8, 0.0f, a);
    g.b_offset = (int32_t)quantized_place(&quantized_u8, 0.0f, b);
    Shape shape = shape_matrix(g.m, g.n);
    Tensor *z = kernel_output(k, 0, &shape);
    if (!z || !quantized_range_output(k, 1, quantized_product_range(&quantized_u8, a, &quantized_u8, b, false))) return NULL;
    g.c = tensor_i32(z);
    gemm_int8(&g, k->pool);
    return NULL;
}

static Error *scalars(KernelContext *k, int first, const char *const *names, int count) {
    for (int i = 0; i < count; i++)
        if (k->in[first + i]->shape.rank != 0)
            return error_invalid("`%s` must be rank 0 but is rank %d", names[i], k->in[first + i]->shape.rank);
    return NULL;
}

static Error *run_fused_matmul(KernelContext *k) {
    static const char *const names[] = {"min_a", "max_a", "min_b", "max_b", "min_freezed_output", "max_freezed_output"};
    const ProductState *st = k->state;
    const Tensor *bias = k->in[2];
    Int8Gemm g = {0};
    Error *err = scalars(k, 3, names, st->asks ? 6 : 4);
    if (!err) err = matrix_sizes(st, k->in[0], k->in[1], &g);
    if (err) return err;
    if (bias->shape.rank != 1 || bias->count != g.n)
        return error_invalid("The bias must be a vector of %lld elements, got shape %s", (long long)g.n, shape_text(&bias->shape).text);
    QuantizedRange a = {tensor_f32(k->in[3])[0], tensor_f32(k->in[4])[0]}, b = {tensor_f32(k->in[5])[0], tensor_f32(k->in[6])[0]};
    Shape shape = shape_matrix(g.m, g.n);
    DataType result = kernel_output_type(k, 0);
    if (result != DT_FLOAT && result != DT_QINT32 && k->input_count < 9) return error_invalid("No range is given for a result of type %s", dtype_name(result));
    Tensor *z = kernel_output(k, 0, &shape), *sums = z ? kernel_scratch(k, DT_INT32, &shape) : NULL;
    if (!sums) return NULL;
    const float wide = outer(k->in[5], k->in[6], 0), a_scale = st->min_first ? (float)((double)(a.high - a.low) / 255.0) : (float)((double)outer(k->in[3], k->in[4], 0) / 255.0);
    const float b_scale = (float)((double)wide / 127.0);
    Finish f = {.depth = g.n, .scale = xmalloc((size_t)g.n * sizeof(float) + 1), .relu = st->relu, .divide = 1};
    for (int64_t c = 0; c < g.n; c++) f.scale[c] = a_scale * b_scale;
    f.type = z->dtype == DT_FLOAT ? NULL : quantized_type(z->dtype);
    if (z->dtype == DT_QINT32)
        f.divide = 1.0f / (a_scale * b_scale);
    else if (f.type)
        f.divide = 1.0f / (float)((double)outer(k->in[7], k->in[8], 0) / (double)result_limit(z->dtype));
    int32_t *columns = xcalloc((size_t)g.n + 1, sizeof *columns);
    for (int64_t i = 0; i < g.k * g.n; i++) columns[i % g.n] += ((const int8_t *)g.b)[i];
    const float range = st->min_first ? a.high - a.low : a.high;
    finish_bias(&f, st, bias, (float)(255.0 * 127.0 / (double)(range * wide)), columns, 255 * a.low / (a.high - a.low));
    g.c = tensor_i32(sums);
    gemm_int8(&g, k->pool);
    finish_rows(&f, g.c, z->data, 0, g.m);
    free(columns);
    finish_clear(&f);
    tensor_unref(sums);
    if (z->dtype == DT_QINT32)
        quantized_range_output(k, 1, quantized_product_range(&quantized_u8, a, &quantized_i8, b, true));
    else if (f.type)
        quantized_range_output(k, 1, (QuantizedRange){tensor_f32(k->in[7])[0], tensor_f32(k->in[8])[0]});
    return NULL;
}

/* ---- Convolutions ---- */

static Error *conv_init(const Node *node, void *state) {
    ProductState *st = state;
    Str value;
    DataType filter;
    read_form(node, st);
    Error *err = window_init(&st->win, node);
    if (!err) err = node_attr_type(node, "Tfilter", &filter);
    if (err) return err;
    Window *w = &st->win;
    st->depthwise = has(node->op, "Depthwise");
    if (w->strides[0] != 1 || w->strides[3] != 1)
        return error_invalid("Current implementation does not yet support strides in the batch and depth dimensions.");
    if (filter == DT_QUINT8 && str_is(node->op, "QuantizedConv2D")) {
        if (w->strides[1] != w->strides[2])
            return error_invalid("Current implementation only supports equal length strides in the row and column dimensions.");
        err = quantized_need_type(node, "out_type", DT_QINT32);
    } else {
        err = quantized_need_type(node, "Tfilter", DT_QINT8);
    }
    if (err || !node_attr(node, "padding_list", &value)) return err;
    int64_t *pads = NULL;
    int count = 0;
    err = node_attr_ints(node, "padding_list", &pads, &count);
    if (!err && count != 0 && count != 8) err = error_invalid("padding_list must have 8 elements, got %d", count);
    for (int i = 0; !err && i < count; i++) {
        if (pads[i] < 0 || pads[i] > INT32_MAX) err = error_invalid("padding_list[%d] = %lld is out of range", i, (long long)pads[i]);
        w->explicit_pads[i] = pads[i];
        w->padding = PADDING_EXPLICIT;
    }
    free(pads);
    return err;
}

typedef struct ConvJob {
    PatchShape shape;
    const Tensor *x, *filter;
    const uint8_t *ones; /* an image of ones, where x has a zero point */
    bool depthwise;
    int32_t x_zero, filter_zero;
    const Finish *finish; /* NULL: sums are the result */
    void *z;
    int64_t depth;
} ConvJob;

static Error *conv_shape(const ProductState *st, const Tensor *x, const Tensor *filter, ConvJob *job) {
    const Window *win = &st->win;
    if (x->shape.rank != 4) return error_invalid("input must be 4-dimensional: %s", shape_text(&x->shape).text);
    if (filter->shape.rank != 4) return error_invalid("filter must be 4-dimensional: %s", shape_text(&filter->shape).text);
    const int64_t *d = x->shape.dims, *f = filter->shape.dims;
    if (d[3] != f[2])
        return error_invalid("%s: %lld vs %lld", filter->dtype == DT_QUINT8 ? "input and filter must have the same depth" : "input depth must be evenly divisible by filter depth",
                             (long long)d[3], (long long)f[2]);
    for (int i = 0; i < 4; i++)
        if (d[i] > INT32_MAX || f[i] > INT32_MAX || f[i] < 1 || d[i] < 1)
            return error_invalid("input and filter must not be empty or too large: %s and %s", shape_text(&x->shape).text, shape_text(&filter->shape).text);
    Span h = {0}, w = {0};
    Error *err = window_span(win, 1, d[1], f[0], &h);
    if (!err) err = window_span(win, 2, d[2], f[1], &w);
    if (!err && (h.out < 1 || w.out < 1)) err = error_invalid("The result of the convolution is empty");
    if (err) return err;
    job->shape = (PatchShape){.batch = d[0], .channels = d[3], .in = {1, d[1], d[2]}, .out = {1, h.out, w.out}, .k = {1, f[0], f[1]},
                              .stride = {1, win->strides[1], win->strides[2]}, .dilation = {1, win->dilations[1], win->dilations[2]},
                              .pad = {0, h.before, w.before}};
    job->depth = st->depthwise ? f[2] * f[3] : f[3];
    return NULL;
}

/* Sums of patches by filters of their own channel. */
static void depthwise_sums(const ConvJob *job, const void *rows, int64_t count, int32_t *sums) {
    const int64_t channels = job->shape.channels, each = job->depth / channels, pixels = patch_length(&job->shape) / channels;
    const QuantizedType *type = quantized_type(job->x->dtype);
    const int8_t *filter = job->filter->data;
    memset(sums, 0, (size_t)(count * job->depth) * sizeof *sums);
    for (int64_t i = 0; i < count; i++)
        for (int64_t p = 0; p < pixels; p++)
            for (int64_t c = 0; c < channels; c++) {
                int32_t v = quantized_get(type, rows, (i * pixels + p) * channels + c);
                for (int64_t e = 0; e < each; e++)
                    sums[i * job->depth + c * each + e] += v * filter[(p * channels + c) * each + e];
            }
}

/* Pixels outside count as zero, whether the type has it or not. */
static void outside_sums(const ConvJob *job, const uint8_t *rows, const uint8_t *inside, int64_t count, int32_t *sums) {
    const int64_t length = patch_length(&job->shape);
    const uint8_t *filter = job->filter->data;
    memset(sums, 0, (size_t)(count * job->depth) * sizeof *sums);
    for (int64_t i = 0; i < count; i++)
        for (int64_t p = 0; p < length; p++) {
            if (!inside[i * length + p]) continue;
            uint32_t v = rows[i * length + p] - (uint32_t)job->x_zero;
            for (int64_t c = 0; c < job->depth; c++)
                sums[i * job->depth + c] = (int32_t)((uint32_t)sums[i * job->depth + c] + v * (filter[p * job->depth + c] - (uint32_t)job->filter_zero));
        }
}

/* Puts the byte that is zero, or as much of it as fits, where patches leave the image. */
static void conv_sums(const ConvJob *job, int64_t begin, int64_t end, uint8_t *rows, uint8_t *inside, int32_t *sums) {
    const int64_t count = end - begin, length = patch_length(&job->shape);
    patches_copy(&job->shape, 1, job->x->data, begin, end, rows);
    if (job->depthwise) {
        depthwise_sums(job, rows, count, sums);
        return;
    }
    if (inside) {
        patches_copy(&job->shape, 1, job->ones, begin, end, inside);
        if (job->x_zero < 0) {
            outside_sums(job, rows, inside, count, sums);
            return;
        }
        for (int64_t i = 0; i < count * length; i++)
            if (!inside[i]) rows[i] = (uint8_t)job->x_zero;
    }
    gemm_int8(&(Int8Gemm){.m = count, .n = job->depth, .k = length, .a_signed = job->x->dtype == DT_QINT8,
                          .b_signed = job->filter->dtype == DT_QINT8, .a_offset = job->x_zero, .b_offset = job->filter_zero,
                          .a = rows, .b = job->filter->data, .c = sums},
              NULL);
}

static void conv_range(void *arg, int64_t begin, int64_t end) {
    ConvJob *job = arg;
    const int64_t length = patch_length(&job->shape), most = (1 << 20) / length + 1, step = end - begin < most ? end - begin : most;
    const bool marks = job->ones != NULL;
    uint8_t *rows = xmalloc((size_t)(step * length) * (marks ? 2 : 1));
    int32_t *sums = job->finish ? xmalloc((size_t)(step * job->depth) * sizeof *sums) : NULL;
    for (int64_t at = begin; at < end; at += step) {
        int64_t to = at + step < end ? at + step : end;
        conv_sums(job, at, to, rows, marks ? rows + step * length : NULL, sums ? sums : (int32_t *)job->z + at * job->depth);
        if (sums) finish_rows(job->finish, sums, job->z, at, to);
    }
    free(rows);
    free(sums);
}

static void run_conv(KernelContext *k, ConvJob *job, Tensor *z) {
    int64_t rows = patch_rows(&job->shape), length = patch_length(&job->shape);
    job->z = z->data;
    threadpool_parallel_for(k->pool, rows, (int64_t)((1 << 20) / ((double)length * (double)job->depth)) + 16, conv_range, job);
}

static Shape conv_result(const ConvJob *job) {
    return shape_of(4, (int64_t[]){job->shape.batch, job->shape.out[1], job->shape.out[2], job->depth});
}

/* With zero points, of unsigned types: the windows of VALID lie in the middle of the image. */
static Error *run_zero_conv(KernelContext *k, ConvJob *job) {
    QuantizedRange in = {0, 0}, of_filter = {0, 0};
    Error *err = quantized_scalars_input(k, 2, "min_input", "max_input", QUANTIZED_PLAIN, &in);
    if (!err) err = quantized_scalars_input(k, 4, "min_filter", "max_filter", QUANTIZED_PLAIN, &of_filter);
    if (err) return err;
    for (int i = 1; i < 3; i++)
        job->shape.pad[i] = ((job->shape.out[i] - 1) * job->shape.stride[i] + job->shape.k[i] - job->shape.in[i]) / 2;
    job->x_zero = (int32_t)quantized_place(&quantized_u8, 0.0f, in);
    job->filter_zero = (int32_t)quantized_place(&quantized_u8, 0.0f, of_filter);
    Shape shape = conv_result(job);
    Tensor *z = kernel_output(k, 0, &shape);
    if (!z || !quantized_range_output(k, 1, quantized_product_range(&quantized_u8, in, &quantized_u8, of_filter, false))) return NULL;
    Tensor *ones = kernel_scratch(k, DT_UINT8, &job->x->shape);
    if (!ones) return NULL;
    memset(ones->data, 1, (size_t)ones->count);
    job->ones = ones->data;
    run_conv(k, job, z);
    tensor_unref(ones);
    return NULL;
}

/* The range of the sums of each channel; a scalar when the filter's is. */
static void channel_ranges(KernelContext *k, const QuantizedType *type, QuantizedRange in, const Tensor *low, const Tensor *high) {
    Tensor *z_low = kernel_output(k, 1, &low->shape), *z_high = z_low ? kernel_output(k, 2, &low->shape) : NULL;
    for (int64_t c = 0; z_high && c < low->count; c++) {
        QuantizedRange r = quantized_product_range(type, in, &quantized_i8, (QuantizedRange){tensor_f32(low)[c], tensor_f32(high)[c]}, true);
        tensor_f32(z_low)[c] = r.low;
        tensor_f32(z_high)[c] = r.high;
    }
}

static Error *run_scaled_conv(KernelContext *k, ConvJob *job) {
    static const char *const names[] = {"min_input", "max_input"}, *const asked[] = {"min_freezed_output", "max_freezed_output"};
    const ProductState *st = k->state;
    const int at = ranges_at(st);
    const Tensor *low = k->in[at + 2], *high = k->in[at + 3], *bias = st->bias ? k->in[st->bias] : NULL;
    Error *err = scalars(k, at, names, 2);
    if (!err && st->asks) err = scalars(k, at + 4, asked, 2);
    if (err) return err;
    if (low->count < 1 || !shape_eq(&low->shape, &high->shape) || low->shape.rank > 1 || (low->count != 1 && low->count != job->depth))
        return error_invalid("`min_ and max_filter` must have same shape and contain at least one element.");
    if (bias && (bias->shape.rank != 1 || bias->count != job->depth))
        return error_invalid("bias must be a vector of %lld elements, got shape %s", (long long)job->depth, shape_text(&bias->shape).text);
    const QuantizedType *type = quantized_type(job->x->dtype);
    QuantizedRange in = {tensor_f32(k->in[at])[0], tensor_f32(k->in[at + 1])[0]};
    const float in_scale = outer(k->in[at], k->in[at + 1], 0) / (type == &quantized_u8 ? 255.0f : 127.0f);
    Shape shape = conv_result(job);
    Tensor *z = kernel_output(k, 0, &shape);
    if (!z) return NULL;
    Finish f = {.depth = job->depth, .scale = xmalloc((size_t)job->depth * sizeof(float)), .relu = st->relu, .type = quantized_type(z->dtype)};
    float least = tensor_f32(low)[0], most = tensor_f32(high)[0];
    for (int64_t c = 0; c < job->depth; c++) {
        int64_t own = low->count == 1 ? 0 : c;
        f.scale[c] = in_scale * (float)((double)outer(low, high, own) / 127.0);
        least = fminf(least, tensor_f32(low)[own]);
        most = fmaxf(most, tensor_f32(high)[own]);
    }
    f.divide = 1.0f / (st->asks ? outer(k->in[at + 4], k->in[at + 5], 0) / result_limit(z->dtype)
                                : (float)((double)fmaxf(fabsf(least), fabsf(most)) / 127.0) * in_scale);
    if (bias) finish_bias(&f, st, bias, 0, NULL, 0);
    job->finish = &f;
    run_conv(k, job, z);
    finish_clear(&f);
    if (st->asks)
        quantized_range_output(k, 1, (QuantizedRange){tensor_f32(k->in[at + 4])[0], tensor_f32(k->in[at + 5])[0]});
    else
        channel_ranges(k, type, in, low, high);
    return NULL;
}

static Error *run_any_conv(KernelContext *k) {
    const ProductState *st = k->state;
    ConvJob job = {.x = k->in[0], .filter = k->in[1], .depthwise = st->depthwise};
    Error *err = conv_shape(st, job.x, job.filter, &job);
    if (err) return err;
    return job.filter->dtype == DT_QUINT8 ? run_zero_conv(k, &job) : run_scaled_conv(k, &job);
}

#define MATMUL(name) {name, .by_type = {[DT_QUINT8] = run_fused_matmul}, .type_attr = "T1", .state_size = sizeof(ProductState), .init = matmul_init, .flags = KERNEL_EXPENSIVE}
#define CONV(name) {name, .by_type = {[DT_QUINT8] = run_any_conv}, .type_attr = "Tinput", .state_size = sizeof(ProductState), .init = conv_init, .flags = KERNEL_EXPENSIVE}
#define CONV_SIGNED(name) {name, .by_type = {[DT_QUINT8] = run_any_conv, [DT_QINT8] = run_any_conv}, .type_attr = "Tinput", .state_size = sizeof(ProductState), .init = conv_init, .flags = KERNEL_EXPENSIVE}

const KernelDef quantized_product_cpu[] = {
    {"QuantizedMatMul", .by_type = {[DT_QUINT8] = run_matmul}, .type_attr = "T1", .state_size = sizeof(ProductState), .init = matmul_init, .flags = KERNEL_EXPENSIVE},
    MATMUL("QuantizedMatMulWithBias"),
    MATMUL("QuantizedMatMulWithBiasAndRelu"),
    MATMUL("QuantizedMatMulWithBiasAndRequantize"),
    MATMUL("QuantizedMatMulWithBiasAndReluAndRequantize"),
    MATMUL("QuantizedMatMulWithBiasAndDequantize"),
    CONV("QuantizedConv2D"),
    CONV("QuantizedConv2DAndRelu"),
    CONV("QuantizedConv2DAndRequantize"),
    CONV("QuantizedConv2DAndReluAndRequantize"),
    CONV("QuantizedConv2DPerChannel"),
    CONV_SIGNED("QuantizedConv2DWithBias"),
    CONV_SIGNED("QuantizedConv2DWithBiasAndRelu"),
    CONV_SIGNED("QuantizedConv2DWithBiasAndRequantize"),
    CONV_SIGNED("QuantizedConv2DWithBiasAndReluAndRequantize"),
    CONV("QuantizedDepthwiseConv2D"),
    CONV("QuantizedDepthwiseConv2DWithBias"),
    CONV("QuantizedDepthwiseConv2DWithBiasAndRelu"),
    CONV("QuantizedDepthwiseConv2DWithBiasAndReluAndRequantize"),
    {0},
};
