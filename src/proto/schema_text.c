/* schema_text.c: makes the descriptors that the reader of text format works with out of a Schema. */
#include "proto/schema_text.h"

#include <stdlib.h>
#include <string.h>

#include "proto/text.h"

static const ProtobufCType kinds[FIELD_TYPE_COUNT] = {
    [FIELD_DOUBLE] = PROTOBUF_C_TYPE_DOUBLE,     [FIELD_FLOAT] = PROTOBUF_C_TYPE_FLOAT,       [FIELD_INT64] = PROTOBUF_C_TYPE_INT64,
    [FIELD_UINT64] = PROTOBUF_C_TYPE_UINT64,     [FIELD_INT32] = PROTOBUF_C_TYPE_INT32,       [FIELD_FIXED64] = PROTOBUF_C_TYPE_FIXED64,
    [FIELD_FIXED32] = PROTOBUF_C_TYPE_FIXED32,   [FIELD_BOOL] = PROTOBUF_C_TYPE_BOOL,         [FIELD_STRING] = PROTOBUF_C_TYPE_STRING,
    [FIELD_GROUP] = PROTOBUF_C_TYPE_MESSAGE,     [FIELD_MESSAGE] = PROTOBUF_C_TYPE_MESSAGE,   [FIELD_BYTES] = PROTOBUF_C_TYPE_BYTES,
    [FIELD_UINT32] = PROTOBUF_C_TYPE_UINT32,     [FIELD_ENUM] = PROTOBUF_C_TYPE_ENUM,         [FIELD_SFIXED32] = PROTOBUF_C_TYPE_SFIXED32,
    [FIELD_SFIXED64] = PROTOBUF_C_TYPE_SFIXED64, [FIELD_SINT32] = PROTOBUF_C_TYPE_SINT32,     [FIELD_SINT64] = PROTOBUF_C_TYPE_SINT64,
};

typedef struct NamedIndex {
    const char *name;
    unsigned index;
} NamedIndex;

static int by_name(const void *a, const void *b) {
    return strcmp(((const NamedIndex *)a)->name, ((const NamedIndex *)b)->name);
}

static ProtobufCEnumDescriptor *enum_descriptor(Arena *arena, const SchemaEnum *e) {
    ProtobufCEnumDescriptor *d = arena_calloc(arena, 1, sizeof *d);
    ProtobufCEnumValueIndex *index = arena_calloc(arena, (size_t)e->count, sizeof *index);
    ProtobufCEnumValue *values = arena_calloc(arena, (size_t)e->count, sizeof *values);
    NamedIndex *names = arena_calloc(arena, (size_t)e->count, sizeof *names);
    for (int i = 0; i < e->count; i++) {
        values[i] = (ProtobufCEnumValue){e->names[i].ptr, "", e->numbers[i]};
        names[i] = (NamedIndex){e->names[i].ptr, (unsigned)i};
    }
    qsort(names, (size_t)e->count, sizeof *names, by_name);
    for (int i = 0; i < e->count; i++) index[i] = (ProtobufCEnumValueIndex){names[i].name, names[i].index};
    d->magic = PROTOBUF_C__ENUM_DESCRIPTOR_MAGIC;
    d->values = values;
    d->n_values = d->n_value_names = (unsigned)e->count;
    d->values_by_name = index;
    return d;
}

/* Fields in the order of the schema; their types are set when all messages have a descriptor. */
static ProtobufCMessageDescriptor *message_descriptor(Arena *arena, const SchemaMessage *m) {
    ProtobufCMessageDescriptor *d = arena_calloc(arena, 1, sizeof *d);
    size_t n = (size_t)m->own_count;
    ProtobufCFieldDescriptor *fields = arena_calloc(arena, n + 1, sizeof *fields);
    unsigned *sorted = arena_calloc(arena, n + 1, sizeof *sorted);
    NamedIndex *names = arena_calloc(arena, n + 1, sizeof *names);
    for (size_t i = 0; i < n; i++) {
        const SchemaField *f = &m->fields[i];
        const char *name = f->type == FIELD_GROUP ? f->message->full_name.ptr + f->message->full_name.len : f->name.ptr;
        while (f->type == FIELD_GROUP && name > f->message->full_name.ptr && name[-1] != '.') name--; /* groups are called as their message */
        fields[i].name = name;
        fields[i].id = f->number;
        fields[i].type = kinds[f->type];
        names[i] = (NamedIndex){name, (unsigned)i};
    }
    qsort(names, n, sizeof *names, by_name);
    for (size_t i = 0; i < n; i++) sorted[i] = names[i].index;
    d->magic = PROTOBUF_C__MESSAGE_DESCRIPTOR_MAGIC;
    d->name = m->full_name.ptr;
    d->n_fields = (unsigned)n;
    d->fields = fields;
    d->fields_sorted_by_name = sorted;
    return d;
}

Error *schema_text_to_wire(const Schema *s, const SchemaMessage *type, Str text, StrBuf *out) {
    Arena *arena = arena_new();
    StrMap made = {0};
    for (int i = 0; i < s->count; i++) strmap_put(&made, s->list[i]->full_name, message_descriptor(arena, s->list[i]));
    for (int i = 0; i < s->count; i++) {
        ProtobufCMessageDescriptor *d = strmap_get(&made, s->list[i]->full_name);
        for (int j = 0; j < s->list[i]->own_count; j++) {
            const SchemaField *f = &s->list[i]->fields[j];
            ProtobufCFieldDescriptor *to = (ProtobufCFieldDescriptor *)&d->fields[j];
            if (f->message) to->descriptor = strmap_get(&made, f->message->full_name);
            if (f->values) to->descriptor = enum_descriptor(arena, f->values);
        }
    }
    const ProtobufCMessageDescriptor *no_any[] = {NULL};
    Error *err = text_to_wire(strmap_get(&made, type->full_name), no_any, text, out);
    strmap_clear(&made);
    arena_free(arena);
    return err;
}
