/* range.c: Range and LinSpace. */
#include <math.h>

#include "base/float16.h"
#include "ops/elements.h"
#include "ops/op_list.h"

const OpDef range_ops[] = {
    {"Range", "start: Tidx, limit: Tidx, delta: Tidx -> output: Tidx",
     "Tidx: {bfloat16, half, float, double, int8, int16, int32, int64, uint16, uint32, uint64} = int32", 0},
    {"LinSpace", "start: T, stop: T, num: Tidx -> output: T",
     "T: {bfloat16, half, float, double}; Tidx: {int32, int64} = int32", 0},
    {0},
};

static double float_at(const Tensor *t, int64_t i) {
    switch (t->dtype) {
        case DT_FLOAT:
            return tensor_f32(t)[i];
        case DT_HALF:
            return half_to_float(((const uint16_t *)t->data)[i]);
        case DT_BFLOAT16:
            return bfloat16_to_float(((const uint16_t *)t->data)[i]);
        default:
            return tensor_f64(t)[i];
    }
}

/* To the nearest number of a 16-bit type, or as it is. */
static float round_to(DataType type, float f) {
    if (type == DT_HALF) return half_to_float(float_to_half(f));
    return type == DT_BFLOAT16 ? bfloat16_to_float(float_to_bfloat16(f)) : f;
}

static void put_16(const Tensor *t, int64_t i, float f) {
    ((uint16_t *)t->data)[i] = t->dtype == DT_HALF ? float_to_half(f) : float_to_bfloat16(f);
}

static Error *range_size(double start, double limit, double delta) {
    if (delta == 0) return error_invalid("Requires delta != 0: 0");
    if (delta > 0 && start > limit) return error_invalid("Requires start <= limit when delta > 0: %g/%g", start, limit);
    if (delta < 0 && start < limit) return error_invalid("Requires start >= limit when delta < 0: %g/%g", start, limit);
    return NULL;
}

static Error *check_scalars(KernelContext *k) {
    bool strict = str_is(k->node->op, "LinSpace"); /* Range takes vectors of one element */
    for (int i = 0; i < 3; i++) {
        if (k->in[i]->count != 1 || (strict && k->in[i]->shape.rank != 0))
            return error_invalid("%.*s must be a scalar, not shape %s", STR_ARG(k->node->info->inputs[i].name),
                                 shape_text(&k->in[i]->shape).text);
    }
    return NULL;
}

/* Each element is start + i * delta, rounded after each operation in the element's type. */
static Error *run_range_float(KernelContext *k) {
    Error *err = check_scalars(k);
    if (err) return err;
    double start = float_at(k->in[0], 0), limit = float_at(k->in[1], 0), delta = float_at(k->in[2], 0);
    err = range_size(start, limit, delta);
    if (err) return err;
    double size = ceil(fabs((limit - start) / delta));
    if (k->in[0]->dtype != DT_DOUBLE) {
        DataType t = k->in[0]->dtype;
        float distance = round_to(t, (float)limit - (float)start);
        size = ceilf(fabsf(round_to(t, distance / (float)delta)));
    }
    if (!(size < 0x1p62)) return error_invalid("Requires ((limit - start) / delta) <= %lld", (long long)INT64_MAX);
    Shape shape = shape_vector((int64_t)size);
    Tensor *out = kernel_output(k, 0, &shape);
    if (!out) return NULL;
    const float first = (float)start, step = (float)delta;
    switch (out->dtype) {
        case DT_FLOAT:
            for (int64_t i = 0; i < out->count; i++) tensor_f32(out)[i] = first + (float)i * step;
            break;
        case DT_HALF:
        case DT_BFLOAT16:
            for (int64_t i = 0; i < out->count; i++)
                put_16(out, i, first + round_to(out->dtype, round_to(out->dtype, (float)i) * step));
            break;
        default:
            for (int64_t i = 0; i < out->count; i++) tensor_f64(out)[i] = start + (double)i * delta;
    }
    return NULL;
}

/* Wraps around. */
static void put_ints(const Tensor *t, uint64_t start, uint64_t delta) {
    uint64_t v = start;
    switch (dtype_size(t->dtype)) {
        case 1:
            for (int64_t i = 0; i < t->count; i++, v += delta) ((uint8_t *)t->data)[i] = (uint8_t)v;
            break;
        case 2:
            for (int64_t i = 0; i < t->count; i++, v += delta) ((uint16_t *)t->data)[i] = (uint16_t)v;
            break;
        case 4:
            for (int64_t i = 0; i < t->count; i++, v += delta) ((uint32_t *)t->data)[i] = (uint32_t)v;
            break;
        default:
            for (int64_t i = 0; i < t->count; i++, v += delta) ((uint64_t *)t->data)[i] = v;
    }
}

static Error *run_range_int(KernelContext *k) {
    Error *err = check_scalars(k);
    if (err) return err;
    __int128 v[3];
    for (int i = 0; i < 3; i++) {
        v[i] = k->in[i]->dtype == DT_UINT64 ? (__int128)((const uint64_t *)k->in[i]->data)[0]
                                            : (__int128)index_at(k->in[i], 0);
    }
    __int128 start = v[0], limit = v[1], delta = v[2];
    if (delta == 0) return error_invalid("Requires delta != 0: 0");
    if (delta > 0 && start > limit)
        return error_invalid("Requires start <= limit when delta > 0: %lld/%lld", (long long)start, (long long)limit);
    if (delta < 0 && start < limit)
        return error_invalid("Requires start >= limit when delta < 0: %lld/%lld", (long long)start, (long long)limit);
    __int128 distance = limit > start ? limit - start : start - limit, step = delta > 0 ? delta : -delta;
    __int128 size = (distance + step - 1) / step;
    if (size > INT64_MAX) return error_invalid("Requires ((limit - start) / delta) <= %lld", (long long)INT64_MAX);
    Shape shape = shape_vector((int64_t)size);
    Tensor *out = kernel_output(k, 0, &shape);
    if (out) put_ints(out, (uint64_t)start, (uint64_t)delta);
    return NULL;
}

static Error *run_lin_space(KernelContext *k) {
    Error *err = check_scalars(k);
    if (err) return err;
    int64_t num = index_at(k->in[2], 0);
    if (num <= 0) return error_invalid("Requires num > 0: %lld", (long long)num);
    double start = float_at(k->in[0], 0), stop = float_at(k->in[1], 0);
    Shape shape = shape_vector(num);
    Tensor *out = kernel_output(k, 0, &shape);
    if (!out) return NULL;
    double step = num > 1 ? (stop - start) / (double)(num - 1) : 0;
    float step_f = num > 1 ? ((float)stop - (float)start) / (float)(num - 1) : 0;
    const float first = (float)start;
    switch (out->dtype) {
        case DT_FLOAT:
            for (int64_t i = 0; i < num; i++) tensor_f32(out)[i] = first + step_f * (float)i;
            if (num > 1) tensor_f32(out)[num - 1] = (float)stop;
            break;
        case DT_HALF:
        case DT_BFLOAT16:
            for (int64_t i = 0; i < num; i++) put_16(out, i, first + step_f * (float)i);
            if (num > 1) put_16(out, num - 1, (float)stop);
            break;
        default:
            for (int64_t i = 0; i < num; i++) tensor_f64(out)[i] = start + step * (double)i;
            if (num > 1) tensor_f64(out)[num - 1] = stop;
    }
    return NULL;
}

const KernelDef range_cpu[] = {
    {"Range", .type_attr = "Tidx",
     .by_type = {[DT_FLOAT] = run_range_float,
                 [DT_DOUBLE] = run_range_float,
                 [DT_HALF] = run_range_float,
                 [DT_BFLOAT16] = run_range_float,
                 [DT_INT8] = run_range_int,
                 [DT_INT16] = run_range_int,
                 [DT_INT32] = run_range_int,
                 [DT_INT64] = run_range_int,
                 [DT_UINT16] = run_range_int,
                 [DT_UINT32] = run_range_int,
                 [DT_UINT64] = run_range_int}},
    {"LinSpace", .run = run_lin_space},
    {0},
};
