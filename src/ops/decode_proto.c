/* decode_proto.c: DecodeProtoV2: fields of serialised messages as tensors.

   Messages are read twice: once to count the values of each field, then into outputs as wide as the most of them; what a message lacks has the field's default. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "ops/elements.h"
#include "ops/op_list.h"
#include "ops/proto_source.h"
#include "proto/schema_text.h"

const OpDef decode_proto_ops[] = {
    {"DecodeProtoV2", "bytes: string -> sizes: int32, values: output_types",
     "message_type: string; field_names: list(string); output_types: list(type) >= 0; descriptor_source: string = 'local://'; message_format: string = 'binary'; sanitize: bool = "
     "false",
     0},
    {0},
};

enum { MAX_DEPTH = 100 };

/* ---- Bytes ---- */

typedef struct Cursor {
    const uint8_t *at, *end;
} Cursor;

static Error *data_loss(const char *what) {
    return error_new(CODE_DATA_LOSS, "%s", what);
}

static bool take_varint(Cursor *c, uint64_t *out) {
    uint64_t value = 0;
    for (int i = 0; i < 10 && c->at < c->end; i++) {
        uint8_t byte = *c->at++;
        value |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            *out = value;
            return true;
        }
    }
    return false;
}

static bool take_bytes(Cursor *c, uint64_t size, Str *out) {
    if (size > (uint64_t)(c->end - c->at) || size > INT32_MAX) return false;
    *out = (Str){(const char *)c->at, (size_t)size};
    c->at += size;
    return true;
}

static bool take_length(Cursor *c, Str *out) {
    uint64_t size = 0;
    return take_varint(c, &size) && take_bytes(c, (uint32_t)size, out);
}

/* Reads over what follows a tag. */
static bool skip_value(Cursor *c, uint32_t tag, int depth) {
    uint64_t number = 0;
    Str bytes;
    switch (tag & 7) {
        case WIRE_VARINT: return take_varint(c, &number);
        case WIRE_FIXED64: return take_bytes(c, 8, &bytes);
        case WIRE_FIXED32: return take_bytes(c, 4, &bytes);
        case WIRE_BYTES: return take_length(c, &bytes);
        case WIRE_START_GROUP: break;
        default: return false;
    }
    while (depth < MAX_DEPTH && take_varint(c, &number) && (uint32_t)number != 0) {
        if ((number & 7) == WIRE_END_GROUP) return (uint32_t)number >> 3 == tag >> 3;
        if (!skip_value(c, (uint32_t)number, depth + 1)) return false;
    }
    return false;
}

/* ---- One field ---- */

typedef struct DecodeState {
    ProtoFields fields;
    FieldDefault *defaults; /* of each */
    bool is_text, sanitize;
} DecodeState;

/* Where the values of one field of one message go; without data they are only counted. */
typedef struct Collector {
    const SchemaField *field;
    Tensor *out;
    int64_t first, count, most; /* elements of out: from `first` on, so many so far, and no more than that */
} Collector;

/* Puts the bits of a number that came in the field's form. */
static void put_number(Collector *c, int64_t at, uint64_t bits) {
    Tensor *t = c->out;
    int64_t i = c->first + at;
    float real;
    switch (c->field->type) {
        case FIELD_DOUBLE: memcpy(tensor_f64(t) + i, &bits, sizeof bits); return;
        case FIELD_FLOAT:
            memcpy(&real, &(uint32_t){(uint32_t)bits}, sizeof real);
            if (t->dtype == DT_DOUBLE)
                tensor_f64(t)[i] = real;
            else
                tensor_f32(t)[i] = real;
            return;
        case FIELD_BOOL: tensor_bool(t)[i] = bits != 0; return;
        case FIELD_UINT32:
        case FIELD_FIXED32: bits = (uint32_t)bits; break;
        case FIELD_INT32:
        case FIELD_ENUM:
        case FIELD_SFIXED32: bits = (uint64_t)(int64_t)(int32_t)bits; break;
        case FIELD_SINT32: bits = (uint64_t)(int64_t)(int32_t)((uint32_t)bits >> 1 ^ -((uint32_t)bits & 1)); break;
        case FIELD_SINT64: bits = bits >> 1 ^ -(bits & 1); break;
        default: break;
    }
    if (t->dtype == DT_INT64 || t->dtype == DT_UINT64)
        tensor_i64(t)[i] = (int64_t)bits;
    else
        tensor_i32(t)[i] = (int32_t)bits;
}

/* Where the next value belongs: of a field that is not repeated the last one stays. */
static int64_t next_place(Collector *c) {
    int64_t at = c->field->is_repeated ? c->count : 0;
    c->count = at + 1;
    return at;
}

static bool take_number(Cursor *in, int wire, uint64_t *bits) {
    Str bytes;
    *bits = 0;
    if (wire == WIRE_VARINT) return take_varint(in, bits);
    if (!take_bytes(in, wire == WIRE_FIXED64 ? 8 : 4, &bytes)) return false;
    memcpy(bits, bytes.ptr, bytes.len);
    return true;
}

static Error *collect_packed(Collector *c, Cursor *in) {
    Str bytes;
    uint64_t size = 0;
    if (!take_varint(in, &size) || size > INT32_MAX) return data_loss("CollectField: Failed reading packed size");
    if (!take_bytes(in, size, &bytes)) return data_loss("ReadPackedValues: Skipping packed field failed");
    if (c->out && c->count >= c->most && c->field->is_repeated)
        return error_new(CODE_DATA_LOSS, "ReadPackedValues: Tried to write more entries than allowed.  Field tag: %u, Max entries allowed: %lld", c->field->number,
                         (long long)c->most);
    if (bytes.len == 0) return NULL;
    if (c->field->type == FIELD_GROUP) return data_loss("TYPE_GROUP encountered as packed");
    int wire = field_wire_type(c->field->type);
    size_t width = wire == WIRE_FIXED64 ? 8 : wire == WIRE_FIXED32 ? 4 : 1;
    if (bytes.len % width) return error_new(CODE_DATA_LOSS, "Illegal data length for packed fixed-size type: %zu", bytes.len);
    Cursor inner = {(const uint8_t *)bytes.ptr, (const uint8_t *)bytes.ptr + bytes.len};
    while (inner.at < inner.end) {
        uint64_t bits = 0;
        if (!take_number(&inner, wire, &bits)) return data_loss("Corrupt packed varint");
        int64_t at = next_place(c);
        if (c->out) put_number(c, at, bits);
    }
    return NULL;
}

static Error *collect_value(Collector *c, Cursor *in) {
    int wire = field_wire_type(c->field->type);
    const uint8_t *start = in->at;
    uint32_t tag = c->field->number << 3 | (uint32_t)wire;
    uint64_t bits = 0;
    Str bytes = {"", 0};
    bool ok = wire == WIRE_START_GROUP ? skip_value(in, tag, 0) : wire == WIRE_BYTES ? take_length(in, &bytes) : take_number(in, wire, &bits);
    if (!ok) return data_loss("ReadValue: Failed skipping field when counting");
    int64_t at = next_place(c);
    if (!c->out) return NULL;
    if (wire == WIRE_START_GROUP) { /* with both of its tags */
        StrBuf group = {0};
        wire_put_tag(&group, c->field->number, wire);
        strbuf_add(&group, (Str){(const char *)start, (size_t)(in->at - start)});
        tstring_set(&tensor_str(c->out)[c->first + at], strbuf_str(&group));
        strbuf_clear(&group);
    } else if (c->out->dtype == DT_STRING)
        tstring_set(&tensor_str(c->out)[c->first + at], bytes);
    else
        put_number(c, at, bits);
    return NULL;
}

/* ---- One message ---- */

static Error *collect(const DecodeState *s, Str message, Collector *collectors) {
    Cursor in = {(const uint8_t *)message.ptr, (const uint8_t *)message.ptr + message.len};
    while (in.at < in.end) {
        uint64_t number = 0;
        bool ok = take_varint(&in, &number);
        uint32_t tag = (uint32_t)number;
        if (!ok || tag >> 3 == 0 || (tag & 7) == WIRE_END_GROUP) return data_loss("CountFields: Failed to consume entire buffer");
        Collector *c = NULL;
        for (int i = s->fields.count - 1; !c && i >= 0; i--) /* asked for twice: the last one has it */
            if (collectors[s->fields.by_number[i]].field->number == tag >> 3) c = &collectors[s->fields.by_number[i]];
        if (!c) {
            if (!skip_value(&in, tag, 0)) return data_loss("Failed skipping unrequested field");
            continue;
        }
        int wire = tag & 7, wanted = field_wire_type(c->field->type);
        Error *err = NULL;
        if (wire == WIRE_BYTES && wanted != WIRE_BYTES)
            err = collect_packed(c, &in);
        else if (wire == wanted)
            err = collect_value(c, &in);
        else if (!skip_value(&in, tag, 0))
            err = data_loss("CollectField: Failed skipping malformed field");
        if (err) return err;
    }
    return NULL;
}

/* Whether it is a message of that type, with all that is in it. */
static bool is_message(const SchemaMessage *m, Str message, int depth) {
    Cursor in = {(const uint8_t *)message.ptr, (const uint8_t *)message.ptr + message.len};
    while (in.at < in.end) {
        uint64_t tag = 0;
        if (!take_varint(&in, &tag) || (uint32_t)tag >> 3 == 0) return false;
        Cursor value = in;
        Str bytes;
        if (!skip_value(&in, (uint32_t)tag, 0)) return false;
        for (int i = 0; i < m->count && (tag & 7) == WIRE_BYTES; i++) {
            const SchemaField *f = &m->fields[i];
            if (f->number != (uint32_t)tag >> 3 || f->type != FIELD_MESSAGE) continue;
            if (depth >= MAX_DEPTH || !take_length(&value, &bytes) || !is_message(f->message, bytes, depth + 1)) return false;
        }
    }
    return true;
}

/* The message as bytes: itself, or what its text means, kept in *room. */
static Error *bytes_of_message(const DecodeState *s, Str message, StrBuf *room, Str *out) {
    *out = message;
    if (s->is_text) {
        Error *err = schema_text_to_wire(&s->fields.schema, s->fields.message, message, room);
        if (err) {
            error_free(err);
            return data_loss("Unable to parse text protobuf");
        }
        *out = strbuf_str(room);
    } else if (s->sanitize && !is_message(s->fields.message, message, 0)) {
        return data_loss("Unable to parse binary protobuf");
    }
    return NULL;
}

/* ---- The op ---- */

static Error *init_decode(const Node *node, void *state) {
    DecodeState *s = state;
    DataType *types = NULL;
    int type_count = 0;
    Str format = {"", 0};
    Error *err = proto_fields_init(node, true, &s->fields);
    if (!err) err = node_attr_types(node, "output_types", &types, &type_count);
    if (!err && type_count != s->fields.count) err = error_invalid("field_names and output_types attributes must have the same length");
    s->defaults = xcalloc((size_t)s->fields.count + 1, sizeof *s->defaults);
    for (int i = 0; !err && i < s->fields.count; i++) {
        const SchemaField *f = s->fields.fields[i];
        if (!proto_field_fits(f->type, types[i]))
            err = error_invalid("Unexpected output type for %.*s: %s to %s", STR_ARG(f->full_name), field_type_name(f->type), type_text(types[i]).text);
        if (!err) err = field_default(f, s->fields.schema.arena, &s->defaults[i]);
    }
    free(types);
    if (!err) err = node_attr_string(node, "message_format", &format);
    s->is_text = str_eq(format, STR("text"));
    if (!err && !s->is_text && !str_eq(format, STR("binary"))) err = error_invalid("format must be one of binary or text");
    return err ? err : node_attr_bool(node, "sanitize", &s->sanitize);
}

static void clear_decode(void *state) {
    DecodeState *s = state;
    proto_fields_clear(&s->fields);
    free(s->defaults);
}

static void fill_default(Collector *c, const FieldDefault *d) {
    for (; c->count < c->most; c->count++) {
        int64_t i = c->first + c->count;
        switch (c->out->dtype) {
            case DT_DOUBLE: tensor_f64(c->out)[i] = d->real; break;
            case DT_FLOAT: tensor_f32(c->out)[i] = (float)d->real; break;
            case DT_BOOL: tensor_bool(c->out)[i] = d->bits != 0; break;
            case DT_STRING: tstring_set(&tensor_str(c->out)[i], d->text); break;
            case DT_INT64:
            case DT_UINT64: tensor_i64(c->out)[i] = (int64_t)d->bits; break;
            default: tensor_i32(c->out)[i] = (int32_t)d->bits; break;
        }
    }
}

typedef struct Decoding {
    Str *messages;
    StrBuf *rooms;
    Collector *collectors;
    int64_t *most; /* values of each field in one message, at least 1 */
} Decoding;

static Error *count_values(KernelContext *k, const DecodeState *s, Decoding *d) {
    int n = s->fields.count;
    Shape shape = k->in[0]->shape;
    if (shape.rank == SHAPE_MAX_RANK) return error_invalid("Fields would have %d dimensions", shape.rank + 1);
    shape_insert_dim(&shape, shape.rank, n);
    Tensor *sizes = kernel_output(k, 0, &shape);
    for (int f = 0; f < n; f++) d->most[f] = 1;
    for (int64_t m = 0; sizes && m < k->in[0]->count; m++) {
        Error *err = bytes_of_message(s, tstring_str(&tensor_str(k->in[0])[m]), &d->rooms[m], &d->messages[m]);
        for (int f = 0; f < n; f++) d->collectors[f] = (Collector){.field = s->fields.fields[f]};
        if (!err) err = collect(s, d->messages[m], d->collectors);
        if (err) return err;
        for (int f = 0; f < n; f++) {
            tensor_i32(sizes)[m * n + f] = (int32_t)d->collectors[f].count;
            if (d->collectors[f].count > d->most[f]) d->most[f] = d->collectors[f].count;
        }
    }
    return NULL;
}

static Error *take_values(KernelContext *k, const DecodeState *s, Decoding *d) {
    int n = s->fields.count;
    Error *err = NULL;
    for (int f = 0; f < n; f++) {
        Shape shape = k->in[0]->shape;
        shape_insert_dim(&shape, shape.rank, d->most[f]);
        if (!kernel_output(k, 1 + f, &shape)) return NULL;
    }
    for (int64_t m = 0; !err && m < k->in[0]->count; m++) {
        for (int f = 0; f < n; f++) d->collectors[f] = (Collector){s->fields.fields[f], k->out[1 + f], m * d->most[f], 0, d->most[f]};
        err = collect(s, d->messages[m], d->collectors);
        for (int f = 0; f < n; f++) fill_default(&d->collectors[f], &s->defaults[f]);
    }
    return err;
}

static Error *run_decode(KernelContext *k) {
    const DecodeState *s = k->state;
    int64_t count = k->in[0]->count;
    if (count == 0) return error_invalid("Bufs argument must contain at least one value");
    Decoding d = {xcalloc((size_t)count, sizeof *d.messages), xcalloc((size_t)count, sizeof *d.rooms), xcalloc((size_t)s->fields.count + 1, sizeof *d.collectors),
                  xcalloc((size_t)s->fields.count + 1, sizeof *d.most)};
    Error *err = count_values(k, s, &d);
    if (!err && !k->error) err = take_values(k, s, &d);
    for (int64_t m = 0; m < count; m++) strbuf_clear(&d.rooms[m]);
    free(d.messages);
    free(d.rooms);
    free(d.collectors);
    free(d.most);
    return err;
}

const KernelDef decode_proto_cpu[] = {
    {"DecodeProtoV2", .run = run_decode, .state_size = sizeof(DecodeState), .init = init_decode, .clear = clear_decode},
    {0},
};
