/* iterator_variant.c: on the wire its metadata is the state. */
#include "ops/dataset/iterator_variant.h"

#include <stdlib.h>

#include "base/memory.h"

typedef struct SavedState {
    RefCount refs;
    char *bytes;
    size_t len;
} SavedState;

static void ref_state(void *object) {
    refcount_inc(&((SavedState *)object)->refs);
}

static void unref_state(void *object) {
    SavedState *s = object;
    if (!refcount_dec(&s->refs)) return;
    free(s->bytes);
    free(s);
}

static Error *encode_state(const void *object, StrBuf *metadata, StrBuf *tensors) {
    const SavedState *s = object;
    (void)tensors;
    strbuf_add(metadata, (Str){s->bytes, s->len});
    return NULL;
}

static const VariantType saved_state_type = {
    .type_name = "rill::IteratorState", .ref = ref_state, .unref = unref_state, .encode = encode_state};

static SavedState *state_new(Str bytes) {
    SavedState *s = xcalloc(1, sizeof *s);
    refcount_init(&s->refs);
    s->bytes = str_dup(bytes);
    s->len = bytes.len;
    return s;
}

static Error *decode_state(Str metadata, Tensor **tensors, int tensor_count, Variant *out) {
    (void)tensors;
    (void)tensor_count;
    *out = (Variant){&saved_state_type, state_new(metadata)};
    return NULL;
}

const VariantDecoder iterator_variant_decoder = {"rill::IteratorState", decode_state};

void iterator_variant_set(Variant *v, Str state) {
    SavedState *s = state_new(state);
    variant_set(v, (Variant){&saved_state_type, s});
    unref_state(s);
}

Error *iterator_variant_get(const Variant *v, Str *state) {
    if (v->type != &saved_state_type)
        return error_invalid("The variant is not the saved state of an iterator of this runtime");
    const SavedState *s = v->object;
    *state = (Str){s->bytes, s->len};
    return NULL;
}
