/* elements.c: how array ops copy, compute with and index elements; variables as inputs of ops. */
#include "ops/elements.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

static void copy_objects(int type, void *to, const void *from, int64_t n) {
    elements_copy((DataType)type, to, from, n);
}

ElementKind element_kind(DataType type) {
    return (ElementKind){dtype_size(type), (int)type, dtype_is_plain(type) ? NULL : copy_objects};
}

static const RowMath *const math[DT_COUNT] = {
    [DT_FLOAT] = &row_math_float,         [DT_DOUBLE] = &row_math_double,
    [DT_HALF] = &row_math_half,           [DT_BFLOAT16] = &row_math_bfloat16,
    [DT_INT8] = &row_math_int8,           [DT_INT16] = &row_math_int16,
    [DT_INT32] = &row_math_int32,         [DT_INT64] = &row_math_int64,
    [DT_UINT8] = &row_math_uint8,         [DT_UINT16] = &row_math_uint16,
    [DT_UINT32] = &row_math_uint32,       [DT_UINT64] = &row_math_uint64,
    [DT_COMPLEX64] = &row_math_complex64, [DT_COMPLEX128] = &row_math_complex128,
    [DT_BOOL] = &row_math_bool,           [DT_QINT8] = &row_math_int8,
    [DT_QINT16] = &row_math_int16,        [DT_QINT32] = &row_math_int32,
    [DT_QUINT8] = &row_math_uint8,        [DT_QUINT16] = &row_math_uint16,
};

const RowMath *row_math(DataType type) {
    return type < DT_COUNT ? math[type] : NULL;
}

const void *element_zero(DataType type) {
    static const _Alignas(16) char zero[32];
    (void)type;
    return zero;
}

int64_t small_index_at(const Tensor *t, int64_t i) {
    switch (t->dtype) {
        case DT_INT16:
        case DT_QINT16:
            return ((const int16_t *)t->data)[i];
        case DT_INT8:
        case DT_QINT8:
            return ((const int8_t *)t->data)[i];
        case DT_UINT8:
        case DT_QUINT8:
            return ((const uint8_t *)t->data)[i];
        case DT_UINT16:
        case DT_QUINT16:
            return ((const uint16_t *)t->data)[i];
        case DT_UINT32:
            return ((const uint32_t *)t->data)[i];
        case DT_UINT64:
            return (int64_t)((const uint64_t *)t->data)[i];
        default:
            return tensor_i32(t)[i];
    }
}

void index_put(const Tensor *t, int64_t i, int64_t value) {
    if (t->dtype == DT_INT64) {
        tensor_i64(t)[i] = value;
    } else {
        tensor_i32(t)[i] = (int32_t)value;
    }
}

void strides_of(const Shape *s, int64_t *strides) {
    int64_t stride = 1;
    for (int d = s->rank - 1; d >= 0; d--) {
        strides[d] = stride;
        stride = (int64_t)((uint64_t)stride * (uint64_t)s->dims[d]); /* may wrap where another dimension is empty */
    }
}

Error *rows_of(const Tensor *t, int64_t from, int64_t to, Tensor **out) {
    size_t row_bytes = (size_t)shape_prod(&t->shape, 1, t->shape.rank) * dtype_size(t->dtype);
    size_t start = (size_t)from * row_bytes;
    if (dtype_is_plain(t->dtype) && start % 64 == 0 && to > from) {
        *out = tensor_rows(t, from, to);
        return NULL;
    }
    Shape shape = t->shape;
    shape.dims[0] = to - from;
    Error *err = tensor_new(t->dtype, &shape, out);
    if (!err) elements_copy(t->dtype, (*out)->data, (const char *)t->data + start, (*out)->count);
    return err;
}

Error *require_integers(const Tensor *t, const char *what) {
    switch (t->dtype) {
        case DT_INT64:
        case DT_INT32:
        case DT_INT16:
        case DT_INT8:
        case DT_UINT8:
        case DT_UINT16:
        case DT_UINT32:
            return NULL;
        default:
            return error_invalid("%s must be integers, not %s", what, dtype_name(t->dtype));
    }
}

Error *element_scalar_int(KernelContext *k, int input, const char *what, int64_t *out) {
    const Tensor *t = k->in[input];
    if (t->shape.rank != 0) return error_invalid("%s must be a scalar, got shape %s", what, shape_text(&t->shape).text);
    Error *err = require_integers(t, what);
    if (!err) *out = index_at(t, 0);
    return err;
}

TypeText type_text(DataType t) {
    TypeText out = {"DT_"};
    const char *name = dtype_name(t);
    for (size_t i = 0; name[i] && i + 4 < sizeof out.text; i++) out.text[3 + i] = (char)toupper((unsigned char)name[i]);
    return out;
}

ShapeText shape_text(const Shape *s) {
    ShapeText out;
    char *text = shape_str(s);
    snprintf(out.text, sizeof out.text, "%s", text);
    free(text);
    return out;
}

Error *bad_index(const char *what, const Tensor *indices, int64_t i, int64_t value, int64_t limit) {
    Shape at = indices->shape;
    for (int d = at.rank - 1; d >= 0; d--) {
        int64_t dim = indices->shape.dims[d] > 0 ? indices->shape.dims[d] : 1;
        at.dims[d] = i % dim;
        i /= dim;
    }
    if (at.rank == 0) return error_invalid("%s = %lld is not in [0, %lld)", what, (long long)value, (long long)limit);
    return error_invalid("%s%s = %lld is not in [0, %lld)", what, shape_text(&at).text, (long long)value,
                         (long long)limit);
}

Error *bad_nd_index(const Tensor *indices, int64_t at, int depth, const char *what, const Shape *shape) {
    StrBuf text = {0};
    Shape place = shape_of(indices->shape.rank - 1, indices->shape.dims);
    int64_t rest = at;
    for (int d = place.rank - 1; d >= 0; d--) {
        int64_t dim = place.dims[d] > 0 ? place.dims[d] : 1;
        place.dims[d] = rest % dim;
        rest /= dim;
    }
    for (int d = 0; d < depth; d++)
        strbuf_addf(&text, "%s%lld", d ? ", " : "", (long long)index_at(indices, at * depth + d));
    Error *err = error_invalid("indices%s = [%s] does not index into %s %s", place.rank ? shape_text(&place).text : "",
                               strbuf_str(&text).ptr, what, shape_text(shape).text);
    strbuf_clear(&text);
    return err;
}

Error *kernel_variable(KernelContext *k, int i, Variable **out) {
    if (k->ref && k->ref[i]) {
        resource_ref(&k->ref[i]->base);
        *out = k->ref[i];
        return NULL;
    }
    if (!k->in[i] || k->in[i]->dtype != DT_RESOURCE)
        return error_invalid("Input %d of node %.*s is not a reference to a variable", i, STR_ARG(k->node->name));
    Resource *r = NULL;
    Error *err = kernel_resource(k, i, &variable_type, &r);
    if (!err) *out = (Variable *)r;
    return err;
}

Error *variable_missing(KernelContext *k, int i, Error *err) {
    if (!err || err->code != CODE_NOT_FOUND || !k->in[i] || k->in[i]->count != 1 || !tensor_handles(k->in[i])[0])
        return err;
    const ResourceHandle *h = tensor_handles(k->in[i])[0];
    Error *missing =
        error_new(CODE_FAILED_PRECONDITION,
                  "Could not find variable %s. This could mean that the variable has been deleted. In TF1, it "
                  "can also mean the variable is uninitialized. Debug info: container=%s, status error "
                  "message=%s",
                  h->name, h->container, err->message);
    error_free(err);
    return missing;
}

typedef struct RowsJob {
    RowFn *fn;
    char *to;
    const char *from;
    int64_t size;
} RowsJob;

static void rows_range(void *arg, int64_t begin, int64_t end) {
    const RowsJob *job = arg;
    job->fn(job->to + begin * job->size, job->from + begin * job->size, end - begin);
}

void rows_apply(ThreadPool *pool, RowFn *fn, size_t size, void *to, const void *from, int64_t n) {
    RowsJob job = {fn, to, from, (int64_t)size};
    threadpool_parallel_for(pool, n, 32768, rows_range, &job);
}

Error *variable_write_locked(KernelContext *k, int i, Variable *v, DataType dtype) {
    bool is_ref = k->ref && k->ref[i] == v;
    if (!v->value) {
        if (is_ref) return error_new(CODE_FAILED_PRECONDITION, "Attempting to use uninitialized value %s", v->name);
        return error_new(
            CODE_FAILED_PRECONDITION,
            "Could not find variable %s. This could mean that the variable has been deleted. In TF1, it can "
            "also mean the variable is uninitialized.",
            v->name);
    }
    if (v->value->dtype != dtype)
        return error_invalid("Variable %s has type %s, but %s is needed", v->name, dtype_name(v->value->dtype),
                             dtype_name(dtype));
    return is_ref ? NULL : variable_own_locked(v);
}

void kernel_pass_ref(KernelContext *k, int i) {
    if (k->output_count > 0 && k->ref && k->ref[i]) kernel_set_output_ref(k, 0, k->ref[i]);
}
