/* optional.c: OptionalFromValue, OptionalNone, OptionalHasValue, OptionalGetValue. */
#include "ops/dataset/optional.h"

#include <stdlib.h>

#include "base/memory.h"
#include "ops/dataset/dataset.h"
#include "ops/op_list.h"
#include "ops/variant_math.h"
#include "proto/wire.h"

const OpDef dataset_optional_ops[] = {
    {"OptionalFromValue", "components: Toutput_types -> optional: variant", "Toutput_types: list(type) >= 1", 0},
    {"OptionalNone", "-> optional: variant", "", 0},
    {"OptionalHasValue", "optional: variant -> has_value: bool", "", 0},
    {"OptionalGetValue", "optional: variant -> components: output_types",
     "output_types: list(type) >= 1; output_shapes: list(shape) >= 1", 0},
    {0},
};

#define OPTIONAL_TYPE_NAME "tensorflow::data::Optional"

typedef struct Optional {
    RefCount refs;
    Tensor **element; /* NULL: nothing */
    int count;        /* 0: nothing */
} Optional;

static void ref_optional(void *object) {
    refcount_inc(&((Optional *)object)->refs);
}

static void unref_optional(void *object) {
    Optional *o = object;
    if (!refcount_dec(&o->refs)) return;
    tuple_free(o->element, o->count);
    free(o);
}

static Optional *optional_new(int count) {
    Optional *o = xcalloc(1, sizeof *o);
    refcount_init(&o->refs);
    o->element = count ? tuple_new(count) : NULL;
    o->count = count;
    return o;
}

static const VariantType optional_type;

/* Nothing stays nothing: its gradient has nothing to add either. */
static Error *zeros_like_optional(const void *object, Variant *out) {
    const Optional *from = object;
    Optional *o = optional_new(from->count);
    Error *err = NULL;
    for (int i = 0; !err && i < from->count; i++) err = tensor_zeros_like(from->element[i], &o->element[i]);
    if (err)
        unref_optional(o);
    else
        *out = (Variant){&optional_type, o};
    return err;
}

static Error *add_optionals(const void *a, const void *b, Variant *out) {
    const Optional *x = a, *y = b;
    if (!x->count != !y->count) return error_invalid("Cannot add optionals because one has a value and the other doesn't.");
    if (x->count != y->count) return error_invalid("Cannot add optionals because they have different numbers of components (%d vs. %d).", x->count, y->count);
    Optional *o = optional_new(x->count);
    Error *err = NULL;
    for (int i = 0; !err && i < x->count; i++) err = tensor_sum(x->element[i], y->element[i], &o->element[i]);
    if (err)
        unref_optional(o);
    else
        *out = (Variant){&optional_type, o};
    return err;
}

/* To other tasks, as TensorFlow's: whether there is a value, then its components. */
static Error *encode_optional(const void *object, StrBuf *metadata, StrBuf *tensors) {
    const Optional *o = object;
    strbuf_add(metadata, (Str){o->element ? "\1" : "\0", 1});
    for (int i = 0; i < o->count; i++) {
        StrBuf proto = {0};
        tensor_proto_encode(o->element[i], &proto);
        wire_put_bytes(tensors, 3, strbuf_str(&proto));
        strbuf_clear(&proto);
    }
    return NULL;
}

static Error *decode_optional(Str metadata, Tensor **tensors, int tensor_count, Variant *out) {
    if (metadata.len != 1 || (metadata.ptr[0] ? tensor_count < 1 : tensor_count != 0))
        return error_invalid("Malformed Optional");
    Optional *o = optional_new(tensor_count);
    tuple_copy(o->element, tensors, tensor_count);
    *out = (Variant){&optional_type, o};
    return NULL;
}

const VariantDecoder dataset_optional_decoder = {OPTIONAL_TYPE_NAME, decode_optional};

static const VariantType optional_type = {.type_name = OPTIONAL_TYPE_NAME,
                                          .ref = ref_optional,
                                          .unref = unref_optional,
                                          .encode = encode_optional,
                                          .zeros_like = zeros_like_optional,
                                          .add = add_optionals};

void kernel_set_optional(KernelContext *k, int out, Tensor **element, int count) {
    Optional *o = optional_new(element ? count : 0);
    if (element) tuple_move(o->element, element, count);
    Tensor *t = kernel_output(k, out, &SHAPE_SCALAR);
    if (t) variant_set(tensor_variants(t), (Variant){&optional_type, o});
    unref_optional(o);
}

static Error *find_optional(KernelContext *k, const Optional **out) {
    const Tensor *t = k->in[0];
    if (t->shape.rank != 0)
        return error_invalid("Input to %.*s must be a scalar tensor containing an OptionalVariant object.",
                             STR_ARG(k->node->op));
    const Variant *v = tensor_variants(t);
    if (v->type != &optional_type)
        return error_invalid("Input to %.*s must be an OptionalVariant object.", STR_ARG(k->node->op));
    *out = v->object;
    return NULL;
}

static Error *run_from_value(KernelContext *k) {
    Tensor **element = tuple_new(k->input_count);
    tuple_copy(element, k->in, k->input_count);
    kernel_set_optional(k, 0, element, k->input_count);
    free(element);
    return NULL;
}

static Error *run_none(KernelContext *k) {
    kernel_set_optional(k, 0, NULL, 0);
    return NULL;
}

static Error *run_has_value(KernelContext *k) {
    const Optional *o = NULL;
    Error *err = find_optional(k, &o);
    if (!err) kernel_set_output(k, 0, tensor_scalar_bool(o->element != NULL));
    return err;
}

static Error *run_get_value(KernelContext *k) {
    const Optional *o = NULL;
    Error *err = find_optional(k, &o);
    if (err) return err;
    if (!o->element) return error_invalid("The given optional does not have a value.");
    if (o->count != k->output_count)
        return error_invalid("The given optional has %d components, expected %d.", o->count, k->output_count);
    for (int i = 0; i < o->count; i++)
        if (o->element[i]->dtype != kernel_output_type(k, i))
            return error_invalid(
                "The given optional does not match the expected type for component %d. Expected: %s. Actual: %s.", i,
                dtype_name(kernel_output_type(k, i)), dtype_name(o->element[i]->dtype));
    for (int i = 0; i < o->count; i++) kernel_set_output(k, i, tensor_ref(o->element[i]));
    return NULL;
}

const KernelDef dataset_optional_cpu[] = {
    {"OptionalFromValue", .run = run_from_value},
    {"OptionalNone", .run = run_none},
    {"OptionalHasValue", .run = run_has_value},
    {"OptionalGetValue", .run = run_get_value},
    {0},
};
