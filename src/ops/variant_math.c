/* variant_math.c: zeros like a tensor and the sum of two, element by element for variants. */
#include "ops/variant_math.h"

#include "ops/elements.h"

static const char *name_of(const Variant *v) {
    return v->type ? v->type->type_name : "";
}

Error *tensor_zeros_like(const Tensor *t, Tensor **out) {
    if (t->dtype == DT_RESOURCE) return error_unimplemented("ZerosLike of type %s", dtype_name(t->dtype));
    Tensor *zeros = NULL;
    Error *err = tensor_new(t->dtype, &t->shape, &zeros);
    if (err) return err;
    if (dtype_is_plain(t->dtype)) memset(zeros->data, 0, tensor_bytes(zeros));
    for (int64_t i = 0; !err && t->dtype == DT_VARIANT && i < t->count; i++) {
        const Variant *v = &tensor_variants(t)[i];
        if (v->type && v->type->zeros_like)
            err = v->type->zeros_like(v->object, &tensor_variants(zeros)[i]);
        else
            err = error_unimplemented("ZerosLike of a variant of type '%s'", name_of(v));
    }
    if (err)
        tensor_unref(zeros);
    else
        *out = zeros;
    return err;
}

static Error *sum_variants(const Tensor *a, const Tensor *b, Tensor **out) {
    Tensor *sum = NULL;
    Error *err = tensor_new(DT_VARIANT, &a->shape, &sum);
    if (err) return err;
    for (int64_t i = 0; !err && i < a->count; i++) {
        const Variant *x = &tensor_variants(a)[i], *y = &tensor_variants(b)[i];
        if (!x->type || x->type != y->type || !x->type->add)
            err = error_invalid("Variants of type '%s' and '%s' cannot be added", name_of(x), name_of(y));
        else
            err = x->type->add(x->object, y->object, &tensor_variants(sum)[i]);
    }
    if (err)
        tensor_unref(sum);
    else
        *out = sum;
    return err;
}

Error *tensor_sum(const Tensor *a, const Tensor *b, Tensor **out) {
    if (a->dtype != b->dtype)
        return error_invalid("Trying to add a tensor of %s and one of %s", dtype_name(a->dtype), dtype_name(b->dtype));
    if (!shape_eq(&a->shape, &b->shape))
        return error_invalid("Trying to add two tensors with incompatible element shapes. One is %s and the other is %s",
                             shape_text(&a->shape).text, shape_text(&b->shape).text);
    if (a->dtype == DT_VARIANT) return sum_variants(a, b, out);
    const RowMath *math = row_math(a->dtype);
    if (!math || !math->add) return error_unimplemented("Adding tensors of type %s", dtype_name(a->dtype));
    Error *err = tensor_copy(a, out);
    if (!err) math->add((*out)->data, b->data, a->count);
    return err;
}
