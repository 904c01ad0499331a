/* number_variant.c: single numbers as variants, which a constant of a graph can hold: the metadata is the number itself. */
#include "ops/number_variant.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* Immutable. */
typedef struct Number {
    RefCount refs;
    double value; /* exact for every type here */
} Number;

static Variant number_new(const VariantType *type, double value) {
    Number *n = xcalloc(1, sizeof *n);
    refcount_init(&n->refs);
    n->value = value;
    return (Variant){type, n};
}

static void ref_number(void *object) {
    refcount_inc(&((Number *)object)->refs);
}

static void unref_number(void *object) {
    if (refcount_dec(&((Number *)object)->refs)) free(object);
}

/* One type: how its name reads on the wire, and its sum. */
#define NUMBER(type, name, sum)                                                                              \
    static const VariantType name##_type;                                                                    \
    static Error *encode_##name(const void *object, StrBuf *metadata, StrBuf *tensors) {                     \
        type value = (type)((const Number *)object)->value;                                                  \
        (void)tensors;                                                                                       \
        strbuf_add(metadata, (Str){(const char *)&value, sizeof value});                                     \
        return NULL;                                                                                         \
    }                                                                                                        \
    static Error *decode_##name(Str metadata, Tensor **tensors, int tensor_count, Variant *out) {            \
        type value = 0;                                                                                      \
        (void)tensors;                                                                                       \
        if (metadata.len != sizeof value || tensor_count) return error_invalid("Malformed variant of " #name); \
        memcpy(&value, metadata.ptr, sizeof value);                                                          \
        *out = number_new(&name##_type, (double)value);                                                      \
        return NULL;                                                                                         \
    }                                                                                                        \
    static Error *zero_##name(const void *object, Variant *out) {                                            \
        (void)object;                                                                                        \
        *out = number_new(&name##_type, 0);                                                                  \
        return NULL;                                                                                         \
    }                                                                                                        \
    static Error *add_##name(const void *a, const void *b, Variant *out) {                                   \
        type x = (type)((const Number *)a)->value, y = (type)((const Number *)b)->value;                     \
        *out = number_new(&name##_type, (double)(sum));                                                      \
        return NULL;                                                                                         \
    }                                                                                                        \
    static const VariantType name##_type = {.type_name = #name,                                              \
                                            .ref = ref_number,                                               \
                                            .unref = unref_number,                                           \
                                            .encode = encode_##name,                                         \
                                            .zeros_like = zero_##name,                                       \
                                            .add = add_##name};

NUMBER(int32_t, int, (int32_t)((uint32_t)x + (uint32_t)y))
NUMBER(float, float, x + y)
NUMBER(double, double, x + y)
NUMBER(uint8_t, bool, x || y)

bool number_variant_int(const Variant *v, int32_t *value) {
    if (v->type != &int_type) return false;
    *value = (int32_t)((const Number *)v->object)->value;
    return true;
}

const VariantDecoder number_variant_decoders[NUMBER_VARIANTS] = {
    {"int", decode_int},
    {"float", decode_float},
    {"double", decode_double},
    {"bool", decode_bool},
};
