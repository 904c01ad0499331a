/* encode_proto.c: EncodeProto: serialised messages of fields that are tensors. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "ops/elements.h"
#include "ops/op_list.h"
#include "ops/proto_source.h"

const OpDef encode_proto_ops[] = {
    {"EncodeProto", "sizes: int32, values: Tinput_types -> bytes: string",
     "field_names: list(string); message_type: string; descriptor_source: string = 'local://'; Tinput_types: list(type) >= 1", 0},
    {0},
};

static Error *init_encode(const Node *node, void *state) {
    return proto_fields_init(node, false, state);
}

static void clear_encode(void *state) {
    proto_fields_clear(state);
}

/* ---- Values ---- */

/* Element i as the field has it, without a tag. */
static void put_number(StrBuf *b, FieldType type, const Tensor *t, int64_t i) {
    uint64_t bits = 0;
    if (type == FIELD_DOUBLE) {
        strbuf_add(b, (Str){(const char *)(tensor_f64(t) + i), sizeof(double)});
        return;
    }
    if (type == FIELD_FLOAT) {
        float real = t->dtype == DT_DOUBLE ? (float)tensor_f64(t)[i] : tensor_f32(t)[i];
        strbuf_add(b, (Str){(const char *)&real, sizeof real});
        return;
    }
    if (type == FIELD_BOOL)
        bits = tensor_bool(t)[i];
    else if (t->dtype == DT_INT32)
        bits = (uint64_t)(int64_t)tensor_i32(t)[i];
    else if (t->dtype == DT_UINT32)
        bits = ((const uint32_t *)t->data)[i];
    else
        bits = (uint64_t)tensor_i64(t)[i];
    switch (type) {
        case FIELD_INT32:
        case FIELD_ENUM: bits = (uint64_t)(int64_t)(int32_t)bits; break;
        case FIELD_UINT32: bits = (uint32_t)bits; break;
        case FIELD_SINT32: bits = (uint32_t)bits << 1 ^ ((uint32_t)bits >> 31 ? UINT32_MAX : 0); break;
        case FIELD_SINT64: bits = bits << 1 ^ (bits >> 63 ? UINT64_MAX : 0); break;
        default: break;
    }
    switch (field_wire_type(type)) {
        case WIRE_FIXED64: strbuf_add(b, (Str){(const char *)&bits, 8}); return;
        case WIRE_FIXED32: strbuf_add(b, (Str){(const char *)&(uint32_t){(uint32_t)bits}, 4}); return;
        default: wire_put_varint(b, bits); return;
    }
}

static void put_field(StrBuf *b, const SchemaField *f, const Tensor *t, int64_t from, int64_t count) {
    int wire = field_wire_type(f->type);
    if (f->is_packed) {
        StrBuf values = {0};
        for (int64_t i = 0; i < count; i++) put_number(&values, f->type, t, from + i);
        wire_put_bytes(b, f->number, strbuf_str(&values));
        strbuf_clear(&values);
        return;
    }
    for (int64_t i = from; i < from + count; i++) {
        if (wire == WIRE_BYTES) {
            wire_put_bytes(b, f->number, tstring_str(&tensor_str(t)[i]));
        } else if (wire == WIRE_START_GROUP) {
            wire_put_tag(b, f->number, WIRE_START_GROUP);
            strbuf_add(b, tstring_str(&tensor_str(t)[i]));
            wire_put_tag(b, f->number, WIRE_END_GROUP);
        } else {
            wire_put_tag(b, f->number, wire);
            put_number(b, f->type, t, i);
        }
    }
}

/* ---- The op ---- */

static Shape without_last(const Shape *s) {
    Shape prefix = *s;
    shape_remove_dim(&prefix, prefix.rank - 1);
    return prefix;
}

static Error *check_values(KernelContext *k, const ProtoFields *s) {
    if (s->count != k->input_count - 1) return error_invalid("Length of inputs list must match field_names");
    Shape prefix = {0};
    for (int i = 0; i < s->count; i++) {
        const SchemaField *f = s->fields[i];
        const Tensor *v = k->in[1 + i];
        if (!proto_field_fits(f->type, v->dtype))
            return error_invalid("Incompatible type for field %.*s.  Saw dtype: %s but field type is: %s", STR_ARG(f->name), dtype_name(v->dtype), field_type_name(f->type));
        if (v->shape.rank < 2)
            return error_invalid("Invalid shape for field %.*s.  Saw shape %s but it should be at least a matrix.", STR_ARG(f->name), shape_text(&v->shape).text);
        Shape mine = without_last(&v->shape);
        if (i == 0) prefix = mine;
        if (!shape_eq(&mine, &prefix)) return error_invalid("Values must match up to the last dimension");
    }
    Shape wanted = prefix;
    shape_insert_dim(&wanted, wanted.rank, s->count);
    if (!shape_eq(&k->in[0]->shape, &wanted))
        return error_invalid("sizes should be batch_size + [len(field_names)].  Saw: %s but expected: %s", shape_text(&k->in[0]->shape).text, shape_text(&wanted).text);
    for (int i = 0; i < s->count; i++) {
        int64_t most = k->in[1 + i]->shape.dims[prefix.rank], messages = shape_count(&prefix);
        for (int64_t m = 0; m < messages; m++) {
            int32_t size = tensor_i32(k->in[0])[m * s->count + i];
            if (size > most)
                return error_invalid("Size to write must not be larger than value tensor; but saw: %d > %lld at message %lld field %d", size, (long long)most, (long long)m, i);
        }
    }
    return NULL;
}

static Error *run_encode(KernelContext *k) {
    const ProtoFields *s = k->state;
    Error *err = check_values(k, s);
    if (err) return err;
    Shape prefix = without_last(&k->in[0]->shape);
    Tensor *out = kernel_output(k, 0, &prefix);
    for (int64_t m = 0; out && m < out->count; m++) {
        StrBuf message = {0};
        for (int i = 0; i < s->count; i++) {
            int f = s->by_number[i];
            const Tensor *v = k->in[1 + f];
            int32_t size = tensor_i32(k->in[0])[m * s->count + f];
            if (size > 0) put_field(&message, s->fields[f], v, m * v->shape.dims[v->shape.rank - 1], size);
        }
        tstring_set(&tensor_str(out)[m], strbuf_str(&message));
        strbuf_clear(&message);
    }
    return NULL;
}

const KernelDef encode_proto_cpu[] = {
    {"EncodeProto", .run = run_encode, .state_size = sizeof(ProtoFields), .init = init_encode, .clear = clear_encode},
    {0},
};
