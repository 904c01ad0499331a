/* iterator_state.c: fields of a message: 1 a number, 2 a tensor, 3 text, 4 a scalar that holds a window of elements:
 * its types and content follow. */
#include "ops/dataset/iterator_state.h"

#include <stdlib.h>

#include "base/memory.h"
#include "ops/dataset/element_list.h"
#include "tensor/tensor_proto.h"

enum { STATE_INT = 1, STATE_TENSOR = 2, STATE_TEXT = 3, STATE_WINDOW = 4 };

void state_put_int(IteratorState *s, int64_t v) {
    wire_put_uint(&s->written, STATE_INT, (uint64_t)v);
}

void state_put_text(IteratorState *s, Str v) {
    wire_put_bytes(&s->written, STATE_TEXT, v);
}

/* A window is the only dataset whose elements are at hand. */
static const Dataset *window_in(const Tensor *t) {
    if (t->dtype != DT_VARIANT || t->shape.rank != 0 || tensor_variants(t)->type != &dataset_variant_type) return NULL;
    const Dataset *d = tensor_variants(t)->object;
    return element_list_of(d) ? d : NULL;
}

static Error *put_window(IteratorState *s, const Dataset *d) {
    wire_put_uint(&s->written, STATE_WINDOW, (uint64_t)d->component_count);
    for (int i = 0; i < d->component_count; i++) state_put_int(s, d->types[i]);
    return element_list_save(element_list_of(d), d->component_count, s);
}

Error *state_put_tensor(IteratorState *s, const Tensor *t) {
    const Dataset *window = window_in(t);
    if (window) return put_window(s, window);
    if (t->dtype == DT_RESOURCE)
        return error_unimplemented("A resource handle cannot be saved in the state of an iterator");
    for (int64_t i = 0; t->dtype == DT_VARIANT && i < t->count; i++) {
        const VariantType *type = tensor_variants(t)[i].type;
        if (type && !type->encode)
            return error_unimplemented("A %s cannot be saved in the state of an iterator", type->type_name);
    }
    StrBuf proto = {0};
    tensor_proto_encode(t, &proto);
    wire_put_bytes(&s->written, STATE_TENSOR, strbuf_str(&proto));
    strbuf_clear(&proto);
    return NULL;
}

Error *state_put_element(IteratorState *s, Tensor *const *e, int count) {
    Error *err = NULL;
    for (int i = 0; !err && i < count; i++) err = state_put_tensor(s, e[i]);
    return err;
}

void state_put_error(IteratorState *s, const Error *err) {
    state_put_int(s, err ? err->code : CODE_OK);
    if (err) state_put_text(s, str_of(err->message));
}

static Error *damaged(void) {
    return error_new(CODE_DATA_LOSS, "The saved state of the iterator is damaged or belongs to another pipeline");
}

static Error *next_field(IteratorState *s, uint32_t field, int type) {
    return wire_next(&s->reader) && s->reader.field == field && s->reader.type == type ? NULL : damaged();
}

Error *state_get_int(IteratorState *s, int64_t *out) {
    Error *err = next_field(s, STATE_INT, WIRE_VARINT);
    if (!err) *out = (int64_t)s->reader.number;
    return err;
}

Error *state_get_range(IteratorState *s, int64_t min, int64_t max, int64_t *out) {
    Error *err = state_get_int(s, out);
    if (!err && (*out < min || *out > max))
        err = error_new(CODE_DATA_LOSS, "The saved state of the iterator has %lld where %lld to %lld is possible",
                        (long long)*out, (long long)min, (long long)max);
    return err;
}

Error *state_get_text(IteratorState *s, Str *out) {
    Error *err = next_field(s, STATE_TEXT, WIRE_BYTES);
    if (!err) *out = s->reader.bytes;
    return err;
}

static Error *get_window(IteratorState *s, Tensor **out) {
    if (s->reader.number > 1 << 16) return damaged();
    int count = (int)s->reader.number;
    DataType *types = xcalloc((size_t)count + 1, sizeof *types);
    ElementList list = {0};
    Error *err = NULL;
    for (int i = 0; !err && i < count; i++) {
        int64_t type = 0;
        err = state_get_range(s, DT_FLOAT, DT_COUNT - 1, &type);
        types[i] = (DataType)type;
    }
    if (!err) err = element_list_restore(&list, types, count, s);
    if (!err) {
        Dataset *d = element_list_dataset(&list, 1, types, 0, count);
        err = dataset_tensor(d, out);
        dataset_unref(d);
    }
    element_list_clear(&list, count);
    free(types);
    return err;
}

Error *state_get_tensor(IteratorState *s, Tensor **out) {
    if (!wire_next(&s->reader)) return damaged();
    if (s->reader.field == STATE_WINDOW && s->reader.type == WIRE_VARINT) return get_window(s, out);
    return s->reader.field == STATE_TENSOR && s->reader.type == WIRE_BYTES ? tensor_proto_decode(s->reader.bytes, out)
                                                                           : damaged();
}

Error *state_get_element(IteratorState *s, const DataType *types, int count, Tensor **out) {
    Error *err = NULL;
    for (int i = 0; !err && i < count; i++) {
        err = state_get_tensor(s, &out[i]);
        if (!err && out[i]->dtype != types[i])
            err = error_new(CODE_DATA_LOSS, "The saved state of the iterator has a %s where a %s belongs",
                            dtype_name(out[i]->dtype), dtype_name(types[i]));
    }
    for (int i = 0; err && i < count; i++) {
        tensor_unref(out[i]);
        out[i] = NULL;
    }
    return err;
}

Error *state_get_error(IteratorState *s, Error **out) {
    int64_t code = 0;
    Str text;
    Error *err = state_get_range(s, CODE_OK, CODE_UNAUTHENTICATED, &code);
    *out = NULL;
    if (err || code == CODE_OK) return err;
    err = state_get_text(s, &text);
    if (!err) *out = error_new((ErrorCode)code, "%.*s", STR_ARG(text));
    return err;
}
