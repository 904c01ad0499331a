/* ragged_variant.c: ragged tensors as variants, one for a whole or one for each of its rows, and back.

   On the wire a variant of type RaggedTensorVariant has no metadata; its tensors are the splits, outermost first, then
   the values. */
#include "ops/ragged_variant.h"

#include <stdlib.h>

#include "base/memory.h"
#include "ops/elements.h"
#include "ops/op_list.h"
#include "ops/tensor_list.h"
#include "ops/variant_math.h"
#include "proto/wire.h"

const OpDef ragged_variant_ops[] = {
    {"RaggedTensorToVariant",
     "rt_nested_splits: RAGGED_RANK * Tsplits, rt_dense_values: Tvalues -> encoded_ragged: variant",
     "RAGGED_RANK: int >= 0; Tvalues: type; Tsplits: {int32, int64} = int64; batched_input: bool", 0},
    {"RaggedTensorFromVariant",
     "encoded_ragged: variant -> output_nested_splits: output_ragged_rank * Tsplits, output_dense_values: Tvalues",
     "input_ragged_rank: int >= -1; output_ragged_rank: int >= 0; Tvalues: type; Tsplits: {int32, int64} = int64", 0},
    {"RaggedTensorToVariantGradient",
     "encoded_ragged_grad: variant, row_splits: Tsplits, dense_values_shape: int32 -> dense_values_grad: Tvalues",
     "Tvalues: type; Tsplits: {int32, int64} = int64", 0},
    {0},
};

typedef struct Ragged {
    RefCount refs;
    int rank;
    Tensor *values;
    Tensor *splits[]; /* rank of them */
} Ragged;

static const VariantType ragged_type;

static Ragged *ragged_new(int rank) {
    Ragged *r = xcalloc(1, sizeof *r + (size_t)rank * sizeof(Tensor *));
    refcount_init(&r->refs);
    r->rank = rank;
    return r;
}

static void ref_ragged(void *object) {
    refcount_inc(&((Ragged *)object)->refs);
}

static void unref_ragged(void *object) {
    Ragged *r = object;
    if (!refcount_dec(&r->refs)) return;
    for (int i = 0; i < r->rank; i++) tensor_unref(r->splits[i]);
    tensor_unref(r->values);
    free(r);
}

/* ---- As a variant ---- */

static Error *encode_ragged(const void *object, StrBuf *metadata, StrBuf *tensors) {
    const Ragged *r = object;
    (void)metadata;
    for (int i = 0; i <= r->rank; i++) {
        StrBuf proto = {0};
        tensor_proto_encode(i < r->rank ? r->splits[i] : r->values, &proto);
        wire_put_bytes(tensors, 3, strbuf_str(&proto));
        strbuf_clear(&proto);
    }
    return NULL;
}

static Error *decode_ragged(Str metadata, Tensor **tensors, int tensor_count, Variant *out) {
    (void)metadata;
    if (tensor_count < 1) return error_invalid("Malformed RaggedTensorVariant");
    Ragged *r = ragged_new(tensor_count - 1);
    for (int i = 0; i < r->rank; i++) r->splits[i] = tensor_ref(tensors[i]);
    r->values = tensor_ref(tensors[r->rank]);
    *out = (Variant){&ragged_type, r};
    return NULL;
}

/* One with the splits of `from`; its values come from the caller. */
static Ragged *ragged_like(const Ragged *from) {
    Ragged *r = ragged_new(from->rank);
    for (int i = 0; i < r->rank; i++) r->splits[i] = tensor_ref(from->splits[i]);
    return r;
}

static Error *finish(Ragged *r, Error *err, Variant *out) {
    if (err)
        unref_ragged(r);
    else
        *out = (Variant){&ragged_type, r};
    return err;
}

static Error *zeros_like_ragged(const void *object, Variant *out) {
    const Ragged *from = object;
    Ragged *r = ragged_like(from);
    return finish(r, tensor_zeros_like(from->values, &r->values), out);
}

static Error *add_ragged(const void *a, const void *b, Variant *out) {
    const Ragged *x = a, *y = b;
    if (x->rank != y->rank) return error_invalid("Can't add RaggedTensorVariants of different ragged rank");
    Ragged *r = ragged_like(x);
    return finish(r, tensor_sum(x->values, y->values, &r->values), out);
}

static const VariantType ragged_type = {"RaggedTensorVariant", ref_ragged,        unref_ragged,
                                        encode_ragged,         zeros_like_ragged, add_ragged, NULL};
const VariantDecoder ragged_variant_decoder = {"RaggedTensorVariant", decode_ragged};

/* ---- RaggedTensorToVariant ---- */

/* Splits [from, to] of a level, starting again with 0. */
static Error *splits_of(const Tensor *splits, int64_t from, int64_t to, Tensor **out) {
    Shape shape = shape_vector(to - from + 1);
    Error *err = tensor_new(splits->dtype, &shape, out);
    for (int64_t i = from; !err && i <= to; i++)
        index_put(*out, i - from, index_at(splits, i) - index_at(splits, from));
    return err;
}

/* Splits that are vectors from 0 upwards within what lies below them. */
static Error *check_levels(Tensor *const *splits, int rank, const Tensor *values) {
    if (rank && values->shape.rank < 1) return error_invalid("Ragged values must be a vector at least");
    for (int i = 0; i < rank; i++) {
        int64_t below = i + 1 < rank ? splits[i + 1]->count - 1 : values->shape.dims[0], n = splits[i]->count;
        if (splits[i]->shape.rank != 1)
            return error_invalid("Invalid ragged splits: ragged splits must be rank 1 but is rank %d", splits[i]->shape.rank);
        if (n < 1) return error_invalid("Invalid ragged splits: ragged splits must have at least one splits, but is empty");
        long long first = index_at(splits[i], 0), last = index_at(splits[i], n - 1);
        if (first != 0) return error_invalid("Invalid ragged splits: first element of ragged splits  must be 0 but is %lld", first);
        for (int64_t j = 1; j < n; j++)
            if (index_at(splits[i], j) < index_at(splits[i], j - 1))
                return error_invalid("Invalid ragged splits: ragged splits must be monotonically increasing, but ragged_splits[%lld]=%lld is smaller "
                                     "than row_splits[%lld]=%lld", (long long)j, (long long)index_at(splits[i], j), (long long)j - 1,
                                     (long long)index_at(splits[i], j - 1));
        if (last != below)
            return error_invalid("Invalid ragged splits: last element of ragged splits must be the number of ragged values(%lld) but is %lld",
                                 (long long)below, last);
    }
    return NULL;
}

/* Row `row` of the ragged tensor in the inputs, one level less deep. */
static Error *ragged_row(KernelContext *k, int rank, int64_t row, Variant *out) {
    int64_t from = row, to = row + 1;
    Ragged *r = ragged_new(rank > 0 ? rank - 1 : 0);
    Error *err = NULL;
    for (int i = 0; !err && i < rank; i++) {
        from = index_at(k->in[i], from);
        to = index_at(k->in[i], to);
        if (i + 1 < rank) err = splits_of(k->in[i + 1], from, to, &r->splits[i]);
    }
    const Tensor *values = k->in[rank];
    if (!err) err = rank ? rows_of(values, from, to, &r->values) : tensor_row(values, row, &r->values);
    return finish(r, err, out);
}

static Error *init_to_variant(const Node *node, void *state) {
    return node_attr_bool(node, "batched_input", state);
}

static Error *run_to_variant(KernelContext *k) {
    int rank = k->input_count - 1;
    bool batched = *(bool *)k->state;
    Error *err = check_levels(k->in, rank, k->in[rank]);
    if (err) return err;
    if (!batched) {
        Tensor *out = kernel_output(k, 0, &SHAPE_SCALAR);
        if (!out) return NULL;
        Ragged *r = ragged_new(rank);
        for (int i = 0; i < rank; i++) r->splits[i] = tensor_ref(k->in[i]);
        r->values = tensor_ref(k->in[rank]);
        tensor_variants(out)[0] = (Variant){&ragged_type, r};
        return NULL;
    }
    if (!rank && k->in[0]->shape.rank < 1) return error_invalid("A batched input must have a first dimension");
    int64_t rows = rank ? k->in[0]->count - 1 : k->in[0]->shape.dims[0];
    Shape shape = shape_vector(rows);
    Tensor *out = kernel_output(k, 0, &shape);
    for (int64_t i = 0; out && !err && i < rows; i++) err = ragged_row(k, rank, i, &tensor_variants(out)[i]);
    return err;
}

/* ---- RaggedTensorFromVariant ---- */

typedef struct FromState {
    int64_t input_rank, output_rank;
    DataType values_type, splits_type;
} FromState;

static Error *init_from_variant(const Node *node, void *state) {
    FromState *s = state;
    Error *err = node_attr_int(node, "input_ragged_rank", &s->input_rank);
    if (!err) err = node_attr_int(node, "output_ragged_rank", &s->output_rank);
    if (!err) err = node_attr_type(node, "Tvalues", &s->values_type);
    if (!err) err = node_attr_type(node, "Tsplits", &s->splits_type);
    return err;
}

static Error *check_component(const FromState *s, const Variant *v, int64_t rank) {
    if (v->type != &ragged_type)
        return error_invalid("Input Variant element doesn't hold a RaggedTensorVariant but '%s'",
                             v->type ? v->type->type_name : "");
    const Ragged *r = v->object;
    if (r->rank != rank)
        return error_invalid("Encoded input RaggedTensorVariant has ragged_rank=%d.  Expected ragged_rank=%lld.",
                             r->rank, (long long)rank);
    if (r->values->dtype != s->values_type)
        return error_invalid("Expected values Tensor dtype: %s, found: %s", dtype_name(s->values_type),
                             dtype_name(r->values->dtype));
    for (int i = 0; i < r->rank; i++)
        if (r->splits[i]->dtype != s->splits_type)
            return error_invalid("Expected row_splits Tensor dtype: %s, found: %s", dtype_name(s->splits_type),
                                 dtype_name(r->splits[i]->dtype));
    if (rank == 0 && r->values->shape.rank < 1)
        return error_invalid("The values of a ragged tensor must be a vector at least");
    return check_levels(r->splits, r->rank, r->values);
}

static int64_t rows_in(const Ragged *r) {
    return r->rank ? r->splits[0]->count - 1 : r->values->shape.dims[0];
}

/* Outputs [0, n): the splits of the dimensions the variant tensor has, the last of them by the rows of its elements. */
static void put_outer_splits(KernelContext *k, const Tensor *in) {
    int64_t rows = 1;
    for (int d = 0; d < in->shape.rank; d++) {
        rows *= in->shape.dims[d];
        Shape shape = shape_vector(rows + 1);
        Tensor *out = kernel_output(k, d, &shape);
        if (!out) return;
        index_put(out, 0, 0);
        for (int64_t i = 0; i < rows; i++) {
            int64_t n = d + 1 < in->shape.rank ? in->shape.dims[d + 1] : rows_in(tensor_variants(in)[i].object);
            index_put(out, i + 1, index_at(out, i) + n);
        }
    }
}

/* Level `level` of all elements one after the other. */
static void put_inner_splits(KernelContext *k, const Tensor *in, int level, int output) {
    int64_t rows = 0, at = 0, base = 0;
    for (int64_t i = 0; i < in->count; i++) rows += ((Ragged *)tensor_variants(in)[i].object)->splits[level]->count - 1;
    Shape shape = shape_vector(rows + 1);
    Tensor *out = kernel_output(k, output, &shape);
    if (!out) return;
    index_put(out, 0, 0);
    for (int64_t i = 0; i < in->count; i++) {
        const Tensor *splits = ((Ragged *)tensor_variants(in)[i].object)->splits[level];
        for (int64_t j = 1; j < splits->count; j++) index_put(out, ++at, base + index_at(splits, j));
        base = index_at(out, at);
    }
}

static Error *put_values(KernelContext *k, const Tensor *in, int output) {
    Shape shape = shape_vector(0);
    for (int64_t i = 0; i < in->count; i++) {
        const Shape *s = &((Ragged *)tensor_variants(in)[i].object)->values->shape;
        Shape tail = *s;
        tail.dims[0] = i ? shape.dims[0] : 0;
        if (i && !shape_eq(&tail, &shape))
            return error_invalid("All flat_values must have compatible shapes.  Shape at index %lld: %s.", (long long)i,
                                 shape_text(s).text);
        shape = tail;
        shape.dims[0] += s->dims[0];
    }
    Tensor *out = kernel_output(k, output, &shape);
    if (!out) return NULL;
    ElementKind kind = element_kind(out->dtype);
    char *to = out->data;
    for (int64_t i = 0; i < in->count; i++) {
        const Tensor *values = ((Ragged *)tensor_variants(in)[i].object)->values;
        copy_elements(kind, to, values->data, values->count);
        to += (size_t)values->count * kind.size;
    }
    return NULL;
}

static Error *run_from_variant(KernelContext *k) {
    const FromState *s = k->state;
    const Tensor *in = k->in[0];
    int outer = in->shape.rank;
    int64_t rank = s->input_rank < 0 ? s->output_rank - outer : s->input_rank;
    if (rank < 0)
        return error_invalid(
            "Inferred input_ragged_rank (output_ragged_rank - encoded_variant.dims()) must be >= 0, found "
            "output_ragged_rank: %lld, encoded_variant.dims(): %d",
            (long long)s->output_rank, outer);
    if (rank + outer != s->output_rank)
        return error_invalid(
            "output_ragged_rank must be equal to input_ragged_rank + encoded_ragged.dims(); output_ragged_rank: %lld, "
            "input_ragged_rank: %lld, encoded_ragged.dims(): %d",
            (long long)s->output_rank, (long long)rank, outer);
    for (int64_t i = 0; i < in->count; i++) {
        const Variant *v = &tensor_variants(in)[i];
        if (outer == 0 && rank == 0 && v->type == &ragged_type && ((Ragged *)v->object)->rank == 0 &&
            ((Ragged *)v->object)->values->dtype == s->values_type) {
            kernel_set_output(k, 0, tensor_ref(((Ragged *)v->object)->values));
            return NULL;
        }
        Error *err = check_component(s, v, rank);
        if (err) return err;
    }
    if (outer == 0) {
        const Ragged *r = tensor_variants(in)[0].object;
        for (int i = 0; i < rank; i++) kernel_set_output(k, i, tensor_ref(r->splits[i]));
        kernel_set_output(k, (int)rank, tensor_ref(r->values));
        return NULL;
    }
    put_outer_splits(k, in);
    for (int i = 0; !k->error && i < rank; i++) put_inner_splits(k, in, i, outer + i);
    return k->error ? NULL : put_values(k, in, outer + (int)rank);
}

/* ---- RaggedTensorToVariantGradient ---- */

static Error *run_gradient(KernelContext *k) {
    const Tensor *in = k->in[0], *splits = k->in[1];
    Shape shape;
    Error *err = kernel_shape_input(k, 2, &shape);
    if (err) return err;
    Tensor *out = kernel_output(k, 0, &shape);
    if (!out) return NULL;
    ElementKind kind = element_kind(out->dtype);
    copy_fill(k->pool, kind, out->data, element_zero(out->dtype), out->count);
    int64_t width = shape.rank ? shape_prod(&shape, 1, shape.rank) : 1, rows = shape.rank ? shape.dims[0] : 1;
    bool whole = splits->count == 0; /* the variant was of the whole tensor */
    if (!whole && splits->count - 1 != in->count)
        return error_invalid("%lld rows for %lld variants", (long long)(splits->count - 1), (long long)in->count);
    for (int64_t i = 0; i < in->count; i++) {
        const Variant *v = &tensor_variants(in)[i];
        if (!v->type) continue; /* no gradient: zero */
        if (v->type != &ragged_type) return error_invalid("The gradient holds no RaggedTensorVariant");
        const Ragged *r = v->object;
        int64_t from = whole ? 0 : index_at(splits, i), to = whole ? rows : index_at(splits, i + 1);
        if (from < 0 || to < from || to > rows || r->values->dtype != out->dtype ||
            r->values->count != (to - from) * width)
            return error_invalid("The gradient of row %lld does not fit", (long long)i);
        copy_elements(kind, (char *)out->data + (size_t)(from * width) * kind.size, r->values->data, r->values->count);
    }
    return NULL;
}

const KernelDef ragged_variant_cpu[] = {
    {"RaggedTensorToVariant", .run = run_to_variant, .state_size = sizeof(bool), .init = init_to_variant},
    {"RaggedTensorFromVariant", .run = run_from_variant, .state_size = sizeof(FromState), .init = init_from_variant},
    {"RaggedTensorToVariantGradient", .run = run_gradient},
    {0},
};
