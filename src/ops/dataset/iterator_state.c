/* iterator_state.c: fields of a message: 1 a number, 2 a tensor, 3 text. */
#include "ops/dataset/iterator_state.h"

#include <stdlib.h>

#include "tensor/tensor_proto.h"

void state_put_int(IteratorState *s, int64_t v) {
    wire_put_uint(&s->written, 1, (uint64_t)v);
}

void state_put_text(IteratorState *s, Str v) {
    wire_put_bytes(&s->written, 3, v);
}

Error *state_put_tensor(IteratorState *s, const Tensor *t) {
    if (t->dtype == DT_RESOURCE) return error_unimplemented("A resource handle cannot be saved in the state of an iterator");
    for (int64_t i = 0; t->dtype == DT_VARIANT && i < t->count; i++) {
        const VariantType *type = tensor_variants(t)[i].type;
        if (type && !type->encode) return error_unimplemented("A %s cannot be saved in the state of an iterator", type->type_name);
    }
    StrBuf proto = {0};
    tensor_proto_encode(t, &proto);
    wire_put_bytes(&s->written, 2, strbuf_str(&proto));
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

static Error *next_field(IteratorState *s, uint32_t field, int type) {
    if (!wire_next(&s->reader) || s->reader.field != field || s->reader.type != type)
        return error_new(CODE_DATA_LOSS, "The saved state of the iterator is damaged or belongs to another pipeline");
    return NULL;
}

Error *state_get_int(IteratorState *s, int64_t *out) {
    Error *err = next_field(s, 1, WIRE_VARINT);
    if (!err) *out = (int64_t)s->reader.number;
    return err;
}

Error *state_get_range(IteratorState *s, int64_t min, int64_t max, int64_t *out) {
    Error *err = state_get_int(s, out);
    if (!err && (*out < min || *out > max)) err = error_new(CODE_DATA_LOSS, "The saved state of the iterator has %lld where %lld to %lld is possible",
                                                            (long long)*out, (long long)min, (long long)max);
    return err;
}

Error *state_get_text(IteratorState *s, Str *out) {
    Error *err = next_field(s, 3, WIRE_BYTES);
    if (!err) *out = s->reader.bytes;
    return err;
}

Error *state_get_tensor(IteratorState *s, Tensor **out) {
    Error *err = next_field(s, 2, WIRE_BYTES);
    return err ? err : tensor_proto_decode(s->reader.bytes, out);
}

Error *state_get_element(IteratorState *s, const DataType *types, int count, Tensor **out) {
    Error *err = NULL;
    for (int i = 0; !err && i < count; i++) {
        err = state_get_tensor(s, &out[i]);
        if (!err && out[i]->dtype != types[i])
            err = error_new(CODE_DATA_LOSS, "The saved state of the iterator has a %s where a %s belongs", dtype_name(out[i]->dtype), dtype_name(types[i]));
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
