/* composite_tensor.c: composite tensors as variants: their tensors, and a serialised CompositeTensorVariantMetadata that says of which class they are. */
#include "ops/composite_tensor.h"

#include <stdlib.h>

#include "base/memory.h"
#include "ops/elements.h"
#include "ops/op_list.h"
#include "proto/wire.h"

const OpDef composite_tensor_ops[] = {
    {"CompositeTensorVariantFromComponents", "components: Tcomponents -> encoded: variant", "metadata: string; Tcomponents: list(type) >= 0", 0},
    {"CompositeTensorVariantToComponents", "encoded: variant -> components: Tcomponents", "metadata: string; Tcomponents: list(type) >= 0", 0},
    {0},
};

/* ---- The value ---- */

/* Immutable. */
typedef struct Composite {
    RefCount refs;
    char *metadata;
    size_t metadata_size;
    int64_t class_id; /* what metadata says */
    Tensor **parts;
    int count;
} Composite;

static const VariantType composite_type;

static Composite *composite_new(Str metadata, int64_t class_id, Tensor *const *parts, int count) {
    Composite *c = xcalloc(1, sizeof *c);
    refcount_init(&c->refs);
    c->metadata = str_dup(metadata);
    c->metadata_size = metadata.len;
    c->class_id = class_id;
    c->parts = xcalloc((size_t)count + 1, sizeof(Tensor *));
    c->count = count;
    for (int i = 0; i < count; i++) c->parts[i] = tensor_ref(parts[i]);
    return c;
}

static void ref_composite(void *object) {
    refcount_inc(&((Composite *)object)->refs);
}

static void unref_composite(void *object) {
    Composite *c = object;
    if (!refcount_dec(&c->refs)) return;
    for (int i = 0; i < c->count; i++) tensor_unref(c->parts[i]);
    free(c->parts);
    free(c->metadata);
    free(c);
}

/* The class in a CompositeTensorVariantMetadata, whose field 1 is a TypeSpecProto, whose field 1 is the class; false when it is malformed. */
static bool read_class(Str metadata, int64_t *class_id) {
    WireReader outer = wire_reader(metadata);
    *class_id = 0;
    while (wire_next(&outer)) {
        if (outer.field != 1 || outer.type != WIRE_BYTES) continue;
        WireReader spec = wire_reader(outer.bytes);
        while (wire_next(&spec))
            if (spec.field == 1 && spec.type == WIRE_VARINT) *class_id = (int64_t)spec.number;
        if (spec.failed) return false;
    }
    return !outer.failed;
}

static const char *class_name(int64_t class_id) {
    static const char *const names[] = {"UNKNOWN", "SPARSE_TENSOR_SPEC", "INDEXED_SLICES_SPEC", "RAGGED_TENSOR_SPEC", "TENSOR_ARRAY_SPEC", "DATA_DATASET_SPEC",
                                        "DATA_ITERATOR_SPEC", "OPTIONAL_SPEC", "PER_REPLICA_SPEC", "VARIABLE_SPEC", "ROW_PARTITION_SPEC", "", "REGISTERED_TYPE_SPEC",
                                        "EXTENSION_TYPE_SPEC"};
    return class_id >= 0 && class_id < (int64_t)(sizeof names / sizeof names[0]) ? names[class_id] : "";
}

static Error *encode_composite(const void *object, StrBuf *metadata, StrBuf *tensors) {
    const Composite *c = object;
    strbuf_add(metadata, (Str){c->metadata, c->metadata_size});
    for (int i = 0; i < c->count; i++) {
        StrBuf proto = {0};
        tensor_proto_encode(c->parts[i], &proto);
        wire_put_bytes(tensors, 3, strbuf_str(&proto));
        strbuf_clear(&proto);
    }
    return NULL;
}

static Error *decode_composite(Str metadata, Tensor **tensors, int tensor_count, Variant *out) {
    int64_t class_id = 0;
    if (!read_class(metadata, &class_id)) return error_invalid("Malformed CompositeTensorVariant");
    *out = (Variant){&composite_type, composite_new(metadata, class_id, tensors, tensor_count)};
    return NULL;
}

static const VariantType composite_type = {.type_name = "CompositeTensorVariant", .ref = ref_composite, .unref = unref_composite, .encode = encode_composite};
const VariantDecoder composite_tensor_decoder = {"CompositeTensorVariant", decode_composite};

/* ---- The ops ---- */

typedef struct CompositeState {
    Str metadata; /* in the node */
    int64_t class_id;
} CompositeState;

static Error *init_composite(const Node *node, void *state) {
    CompositeState *s = state;
    Error *err = node_attr_string(node, "metadata", &s->metadata);
    if (!err && !read_class(s->metadata, &s->class_id)) err = error_invalid("Error parsing metadata");
    return err;
}

static Error *run_from(KernelContext *k) {
    const CompositeState *s = k->state;
    Tensor *out = kernel_output(k, 0, &SHAPE_SCALAR);
    if (out) tensor_variants(out)[0] = (Variant){&composite_type, composite_new(s->metadata, s->class_id, k->in, k->input_count)};
    return NULL;
}

static Error *run_to(KernelContext *k) {
    const CompositeState *s = k->state;
    if (k->in[0]->count == 0) return error_invalid("Input `encoded` must not be an empty variant tensor");
    const Variant *v = &tensor_variants(k->in[0])[0];
    if (v->type != &composite_type) return error_invalid("The input `encoded` is not a valid CompositeTensorVariant tensor");
    const Composite *c = v->object;
    if (c->class_id != s->class_id)
        return error_invalid("Expected a %s (based on `type_spec`), but `encoded` contains a %s", class_name(s->class_id), class_name(c->class_id));
    if (c->count != k->output_count)
        return error_invalid("Encoded value has %d tensor components; expected %d components based on type_spec", c->count, k->output_count);
    for (int i = 0; i < c->count; i++) {
        DataType want = kernel_output_type(k, i), got = c->parts[i]->dtype;
        if (got != want) return error_invalid("Tensor component %d had dtype %s; expected dtype %s", i, type_text(got).text, type_text(want).text);
    }
    for (int i = 0; i < c->count; i++) kernel_set_output(k, i, tensor_ref(c->parts[i]));
    return NULL;
}

const KernelDef composite_tensor_cpu[] = {
    {"CompositeTensorVariantFromComponents", .run = run_from, .state_size = sizeof(CompositeState), .init = init_composite},
    {"CompositeTensorVariantToComponents", .run = run_to, .state_size = sizeof(CompositeState), .init = init_composite},
    {0},
};
