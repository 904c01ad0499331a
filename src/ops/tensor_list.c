/* tensor_list.c: lists of tensors: building, stacking, and the form they have on the wire.

   Metadata of the variant: varint count of unset elements, their indices, dtype, max_count, then the serialised partial shape; the
   elements that are set follow as tensors. */
#include "ops/tensor_list.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "ops/elements.h"
#include "ops/variant_math.h"
#include "proto/wire.h"

TensorList *tensor_list_new(DataType dtype, const PartialShape *shape, int64_t max_count) {
    TensorList *list = xcalloc(1, sizeof *list);
    refcount_init(&list->refs);
    list->dtype = dtype;
    list->shape = *shape;
    list->max_count = max_count;
    return list;
}

void tensor_list_unref(TensorList *list) {
    if (!list || !refcount_dec(&list->refs)) return;
    for (int64_t i = 0; i < list->count; i++) tensor_unref(list->items[i]);
    free(list->items);
    free(list);
}

void tensor_list_resize(TensorList *list, int64_t count) {
    for (int64_t i = count; i < list->count; i++) tensor_unref(list->items[i]);
    list->items = vec_reserve(list->items, &list->capacity, (size_t)count, sizeof *list->items);
    for (int64_t i = list->count; i < count; i++) list->items[i] = NULL;
    list->count = count;
}

void tensor_list_set(TensorList *list, int64_t i, Tensor *item) {
    tensor_ref(item);
    tensor_unref(list->items[i]);
    list->items[i] = item;
}

static TensorList *copy_list(const TensorList *from) {
    TensorList *list = tensor_list_new(from->dtype, &from->shape, from->max_count);
    tensor_list_resize(list, from->count);
    for (int64_t i = 0; i < from->count; i++) list->items[i] = tensor_ref(from->items[i]);
    return list;
}

/* ---- As a variant ---- */

static void ref_list(void *object) {
    refcount_inc(&((TensorList *)object)->refs);
}

static void unref_list(void *object) {
    tensor_list_unref(object);
}

static Error *encode_list(const void *object, StrBuf *metadata, StrBuf *tensors) {
    const TensorList *list = object;
    uint64_t unset = 0;
    for (int64_t i = 0; i < list->count; i++) unset += !list->items[i];
    wire_put_varint(metadata, unset);
    for (int64_t i = 0; i < list->count; i++)
        if (!list->items[i]) wire_put_varint(metadata, (uint64_t)i);
    wire_put_varint(metadata, (uint64_t)list->dtype);
    wire_put_varint(metadata, (uint64_t)list->max_count);
    shape_encode(&list->shape, metadata);
    for (int64_t i = 0; i < list->count; i++) {
        if (!list->items[i]) continue;
        StrBuf proto = {0};
        tensor_proto_encode(list->items[i], &proto);
        wire_put_bytes(tensors, 3, strbuf_str(&proto));
        strbuf_clear(&proto);
    }
    return NULL;
}

static Error *decode_list(Str metadata, Tensor **tensors, int tensor_count, Variant *out) {
    WireReader r = wire_reader(metadata);
    uint64_t unset = 0, dtype = 0, max_count = 0;
    bool ok = wire_varint(&r, &unset) && unset <= metadata.len;
    bool *is_unset = xcalloc((size_t)unset + (size_t)tensor_count + 1, sizeof *is_unset);
    for (uint64_t i = 0; ok && i < unset; i++) {
        uint64_t at = 0;
        ok = wire_varint(&r, &at) && at < unset + (uint64_t)tensor_count;
        if (ok) is_unset[at] = true;
    }
    ok = ok && wire_varint(&r, &dtype) && wire_varint(&r, &max_count) && dtype < DT_COUNT && dtype_is_valid((int)dtype);
    PartialShape shape = {.rank = -1};
    Error *err = ok ? shape_decode((Str){(const char *)r.at, (size_t)(r.end - r.at)}, &shape) : error_invalid("Malformed TensorList");
    if (!err) {
        TensorList *list = tensor_list_new((DataType)dtype, &shape, (int64_t)max_count);
        tensor_list_resize(list, (int64_t)unset + tensor_count);
        for (int64_t i = 0, next = 0; i < list->count && next < tensor_count; i++)
            if (!is_unset[i]) tensor_list_set(list, i, tensors[next++]);
        *out = (Variant){&tensor_list_type, list};
    }
    free(is_unset);
    return err;
}

static Error *zeros_like_list(const void *object, Variant *out) {
    const TensorList *from = object;
    TensorList *list = tensor_list_new(from->dtype, &from->shape, from->max_count);
    tensor_list_resize(list, from->count);
    Error *err = NULL;
    for (int64_t i = 0; !err && i < from->count; i++)
        if (from->items[i]) err = tensor_zeros_like(from->items[i], &list->items[i]);
    if (err)
        tensor_list_unref(list);
    else
        *out = (Variant){&tensor_list_type, list};
    return err;
}

static Error *add_lists(const void *a, const void *b, Variant *out) {
    const TensorList *x = a, *y = b;
    if (x->dtype != y->dtype) return error_invalid("Trying to add two lists of tensors of different dtypes. One is %s and the other is %s", dtype_name(x->dtype), dtype_name(y->dtype));
    PartialShape shape = x->shape;
    Error *err = partial_shape_merge(&shape, &y->shape);
    if (err) {
        error_free(err);
        return error_invalid("Trying to add two lists of tensors with incompatible element shapes. One is %s and the other is %s", shape_text(&x->shape).text, shape_text(&y->shape).text);
    }
    if (x->count != y->count)
        return error_invalid("Trying to add two lists of tensors with different lengths. One is %lld and the other is %lld", (long long)x->count, (long long)y->count);
    TensorList *list = tensor_list_new(x->dtype, &shape, x->max_count);
    tensor_list_resize(list, x->count);
    for (int64_t i = 0; !err && i < list->count; i++) {
        Tensor *p = x->items[i], *q = y->items[i];
        if (p && q)
            err = tensor_sum(p, q, &list->items[i]);
        else
            list->items[i] = tensor_ref(p ? p : q);
    }
    if (err)
        tensor_list_unref(list);
    else
        *out = (Variant){&tensor_list_type, list};
    return err;
}

const VariantType tensor_list_type = {"tensorflow::TensorList", ref_list, unref_list, encode_list, zeros_like_list, add_lists, NULL};
const VariantDecoder tensor_list_decoder = {"tensorflow::TensorList", decode_list};

/* ---- In kernels ---- */

Error *kernel_list(KernelContext *k, int i, DataType dtype, TensorList **out) {
    const Tensor *t = k->in[i];
    if (t->dtype != DT_VARIANT || t->count != 1) return error_invalid("Input list must be a scalar saw: %s", shape_text(&t->shape).text);
    const Variant *v = &tensor_variants(t)[0];
    if (v->type != &tensor_list_type) return error_invalid("Input handle is not a list. Saw: '%s'", v->type ? v->type->type_name : "nothing");
    TensorList *list = v->object;
    if (dtype != DT_INVALID && list->dtype != dtype)
        return error_invalid("Invalid data types; op elements %s but list elements %s", dtype_name(dtype), dtype_name(list->dtype));
    *out = list;
    return NULL;
}

void kernel_set_list(KernelContext *k, int o, TensorList *take) {
    Tensor *t = kernel_output(k, o, &SHAPE_SCALAR);
    if (t) tensor_variants(t)[0] = (Variant){&tensor_list_type, take};
    else tensor_list_unref(take);
}

Error *kernel_list_output(KernelContext *k, int i, int o, TensorList **out) {
    TensorList *list = NULL;
    Error *err = kernel_list(k, i, DT_INVALID, &list);
    if (err) return err;
    if (tensor_is_unique(k->in[i]) && refcount_is_one(&list->refs)) {
        kernel_set_output(k, o, tensor_ref(k->in[i]));
        *out = list;
        return NULL;
    }
    *out = copy_list(list);
    kernel_set_list(k, o, *out);
    return k->error ? error_internal("No memory for a list") : NULL;
}

Error *partial_shape_merge(PartialShape *into, const PartialShape *from) {
    if (from->rank < 0) return NULL;
    if (into->rank < 0) {
        *into = *from;
        return NULL;
    }
    if (into->rank != from->rank) return error_invalid("PartialTensorShape: Incompatible ranks during merge: %d vs. %d", into->rank, from->rank);
    PartialShape before = *into;
    for (int d = 0; d < into->rank; d++) {
        if (into->dims[d] >= 0 && from->dims[d] >= 0 && from->dims[d] != into->dims[d])
            return error_invalid("PartialTensorShape: Incompatible shapes during merge: %s vs. %s", shape_text(&before).text, shape_text(from).text);
        if (into->dims[d] < 0) into->dims[d] = from->dims[d];
    }
    return NULL;
}

Error *kernel_partial_shape(KernelContext *k, int i, PartialShape *out) {
    const Tensor *t = k->in[i];
    if (t->shape.rank == 0 && t->count == 1 && tensor_index(t, 0) == -1) {
        out->rank = -1;
        return NULL;
    }
    if (t->shape.rank == 0) return error_invalid("The only valid scalar shape tensor is the fully unknown shape specified as -1.");
    if (t->shape.rank != 1) return error_invalid("Shape must be at most rank 1 but is rank %d", t->shape.rank);
    if (t->count > SHAPE_MAX_RANK) return error_invalid("Shapes of %lld dimensions are not supported", (long long)t->count);
    out->rank = (int)t->count;
    for (int d = 0; d < out->rank; d++) {
        out->dims[d] = tensor_index(t, d);
        if (out->dims[d] < -1) return error_invalid("Dimension %lld must be >= -1", (long long)out->dims[d]);
    }
    return NULL;
}

/* ---- Stacking ---- */

bool partial_shape_is_full(const PartialShape *s) {
    if (s->rank < 0) return false;
    for (int d = 0; d < s->rank; d++)
        if (s->dims[d] < 0) return false;
    return true;
}

Error *tensor_zeros(DataType dtype, const Shape *shape, Tensor **out) {
    Error *err = tensor_new(dtype, shape, out);
    if (!err && dtype_is_plain(dtype)) memset((*out)->data, 0, tensor_bytes(*out));
    return err;
}

Error *tensors_stack(Tensor *const *items, int64_t n, DataType dtype, const PartialShape *shape, Tensor **out) {
    PartialShape element = *shape;
    Error *err = NULL;
    for (int64_t i = 0; !err && i < n; i++)
        if (items[i]) err = partial_shape_merge(&element, &items[i]->shape);
    if (err) return err;
    if (!partial_shape_is_full(&element)) return error_invalid("Tried to stack elements of an empty list with non-fully-defined element_shape: %s", shape_text(&element).text);
    if (element.rank == SHAPE_MAX_RANK) return error_invalid("Stacked tensors would have %d dimensions", element.rank + 1);
    Shape whole = element;
    shape_insert_dim(&whole, 0, n);
    err = tensor_new(dtype, &whole, out);
    if (err) return err;
    int64_t count = shape_count(&element);
    size_t size = dtype_size(dtype);
    for (int64_t i = 0; i < n; i++) {
        char *to = (char *)(*out)->data + (size_t)(i * count) * size;
        if (items[i])
            elements_copy(dtype, to, items[i]->data, count);
        else if (dtype_is_plain(dtype))
            memset(to, 0, (size_t)count * size);
    }
    return NULL;
}

Error *tensors_concat(Tensor *const *items, int64_t n, DataType dtype, const PartialShape *rest, Tensor **out, Tensor **lengths) {
    PartialShape row = *rest;
    int64_t total = 0;
    for (int64_t i = 0; i < n; i++) {
        if (!items[i]) return error_invalid("Concat: element %lld is not set", (long long)i);
        if (items[i]->shape.rank < 1) return error_invalid("Concat saw a scalar shape at index %lld but requires at least vectors.", (long long)i);
        Shape s = items[i]->shape;
        shape_remove_dim(&s, 0);
        Error *err = partial_shape_merge(&row, &s);
        if (err) return error_wrap(err, "Concat: element %lld", (long long)i);
        total += items[i]->shape.dims[0];
    }
    if (!partial_shape_is_full(&row)) return error_invalid("All except the first dimension must be fully defined when concating an empty tensor list. element_shape: %s", shape_text(&row).text);
    Shape whole = row, vector = shape_vector(n);
    shape_insert_dim(&whole, 0, total);
    Error *err = tensor_new(dtype, &whole, out);
    if (!err) err = tensor_new(DT_INT64, &vector, lengths);
    char *to = err ? NULL : (*out)->data;
    for (int64_t i = 0; !err && i < n; i++) {
        tensor_i64(*lengths)[i] = items[i]->shape.dims[0];
        elements_copy(dtype, to, items[i]->data, items[i]->count);
        to += tensor_bytes(items[i]);
    }
    return err;
}

Error *tensor_row(const Tensor *t, int64_t i, Tensor **out) {
    Shape s = t->shape;
    shape_remove_dim(&s, 0);
    Error *err = tensor_new(t->dtype, &s, out);
    if (err) return err;
    elements_copy(t->dtype, (*out)->data, (char *)t->data + (size_t)(i * (*out)->count) * dtype_size(t->dtype), (*out)->count);
    return NULL;
}
