/* variant_int.c: a variant that holds an int: it is sent, added and printed. */
#include "ops/variant_int.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/refcount.h"

typedef struct IntObject {
    RefCount refs;
    int32_t value;
} IntObject;

static void ref_int(void *object) {
    refcount_inc(&((IntObject *)object)->refs);
}

static void unref_int(void *object) {
    if (refcount_dec(&((IntObject *)object)->refs)) free(object);
}

static Error *encode_int(const void *object, StrBuf *metadata, StrBuf *tensors) {
    (void)tensors;
    const IntObject *v = object;
    strbuf_add(metadata, (Str){(const char *)&v->value, sizeof v->value});
    return NULL;
}

static Variant int_variant(int32_t value);

static Error *zero_int(const void *object, Variant *out) {
    (void)object;
    *out = int_variant(0);
    return NULL;
}

static Error *add_ints(const void *a, const void *b, Variant *out) {
    *out = int_variant((int32_t)((uint32_t)((const IntObject *)a)->value + (uint32_t)((const IntObject *)b)->value));
    return NULL;
}

static const VariantType int_type = {.type_name = "int", .ref = ref_int, .unref = unref_int, .encode = encode_int, .zeros_like = zero_int, .add = add_ints};

static Variant int_variant(int32_t value) {
    IntObject *v = xcalloc(1, sizeof *v);
    refcount_init(&v->refs);
    v->value = value;
    return (Variant){&int_type, v};
}

static Error *decode_int(Str metadata, Tensor **tensors, int tensor_count, Variant *out) {
    (void)tensors;
    int32_t value;
    if (metadata.len != sizeof value || tensor_count != 0) return error_invalid("Malformed variant of type int");
    memcpy(&value, metadata.ptr, sizeof value);
    *out = int_variant(value);
    return NULL;
}

bool variant_int_value(const Variant *v, int32_t *value) {
    if (v->type != &int_type) return false;
    *value = ((const IntObject *)v->object)->value;
    return true;
}

const VariantDecoder variant_int_decoder = {"int", decode_int};
