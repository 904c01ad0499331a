/* inplace.c: Empty, and InplaceUpdate, InplaceAdd, InplaceSub, which change some rows of a tensor. */
#include "ops/elements.h"
#include "ops/op_list.h"

const OpDef inplace_ops[] = {
    {"Empty", "shape: int32 -> output: dtype", "dtype: type; init: bool = false", OP_STATEFUL},
    {"InplaceUpdate", "x: T, i: int32, v: T -> y: T", "T: type", 0},
    {"InplaceAdd", "x: T, i: int32, v: T -> y: T", "T: type", 0},
    {"InplaceSub", "x: T, i: int32, v: T -> y: T", "T: type", 0},
    {0},
};

/* Always zeros: what a new tensor happens to hold is nobody's business. */
static Error *run_empty(KernelContext *k) {
    Shape shape;
    if (k->in[0]->shape.rank != 1)
        return error_invalid("shape must be a vector of int32, got shape %s", shape_text(&k->in[0]->shape).text);
    Error *err = kernel_shape_input(k, 0, &shape);
    if (err) return err;
    Tensor *out = kernel_output(k, 0, &shape);
    if (out && dtype_is_plain(out->dtype)) memset(out->data, 0, tensor_bytes(out));
    return NULL;
}

static Error *check_rows(const Tensor *x, const Tensor *i, const Tensor *v) {
    if (i->shape.rank != 1) return error_invalid("i must be a vector. %s", shape_text(&i->shape).text);
    if (x->shape.rank != v->shape.rank || x->shape.rank < 1)
        return error_invalid("x and v shape doesn't match (ranks differ): %s vs. %s", shape_text(&x->shape).text,
                             shape_text(&v->shape).text);
    for (int d = 1; d < x->shape.rank; d++)
        if (x->shape.dims[d] != v->shape.dims[d])
            return error_invalid("x and v shape doesn't match at index %d : %s vs. %s", d, shape_text(&x->shape).text,
                                 shape_text(&v->shape).text);
    if (i->shape.dims[0] != v->shape.dims[0])
        return error_invalid("i and x shape doesn't match at index 0: %s vs. %s", shape_text(&i->shape).text,
                             shape_text(&v->shape).text);
    if (x->shape.dims[0] == 0 && i->count) return error_invalid("x has no rows to change");
    return NULL;
}

/* Row r of v goes to row i[r] of a copy of x, counted around. combine NULL: it replaces it. */
static Error *change_rows(KernelContext *k, RowFn *combine) {
    const Tensor *x = k->in[0], *i = k->in[1], *v = k->in[2];
    Error *err = check_rows(x, i, v);
    if (err) return err;
    Tensor *y = kernel_output_from(k, 0, 0, &x->shape);
    if (!y) return NULL;
    ElementKind kind = element_kind(x->dtype);
    if (y->data != x->data) copy_elements(kind, y->data, x->data, x->count);
    int64_t rows = x->shape.dims[0], width = shape_prod(&x->shape, 1, x->shape.rank);
    for (int64_t r = 0; r < i->count; r++) {
        int64_t row = ((index_at(i, r) % rows) + rows) % rows;
        char *to = (char *)y->data + (size_t)(row * width) * kind.size;
        const char *from = (const char *)v->data + (size_t)(r * width) * kind.size;
        if (combine)
            combine(to, from, width);
        else
            copy_elements(kind, to, from, width);
    }
    return NULL;
}

static Error *run_update(KernelContext *k) {
    return change_rows(k, NULL);
}

static Error *run_add(KernelContext *k) {
    const RowMath *math = row_math(k->in[0]->dtype);
    if (!math || !math->add) return error_invalid("Unsupported data type: %s", dtype_name(k->in[0]->dtype));
    return change_rows(k, math->add);
}

static Error *run_sub(KernelContext *k) {
    const RowMath *math = row_math(k->in[0]->dtype);
    if (!math || !math->sub) return error_invalid("Unsupported data type: %s", dtype_name(k->in[0]->dtype));
    return change_rows(k, math->sub);
}

const KernelDef inplace_cpu[] = {
    {"Empty", .run = run_empty},
    {"InplaceUpdate", .run = run_update},
    {"InplaceAdd", .run = run_add},
    {"InplaceSub", .run = run_sub},
    {0},
};
