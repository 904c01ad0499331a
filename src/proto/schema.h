/* schema.h: Schema, the messages that a FileDescriptorSet describes. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/hashmap.h"
#include "base/str.h"
#include "proto/wire.h"

/* Numbered as in descriptor.proto. */
typedef enum FieldType {
    FIELD_DOUBLE = 1,
    FIELD_FLOAT,
    FIELD_INT64,
    FIELD_UINT64,
    FIELD_INT32,
    FIELD_FIXED64,
    FIELD_FIXED32,
    FIELD_BOOL,
    FIELD_STRING,
    FIELD_GROUP,
    FIELD_MESSAGE,
    FIELD_BYTES,
    FIELD_UINT32,
    FIELD_ENUM,
    FIELD_SFIXED32,
    FIELD_SFIXED64,
    FIELD_SINT32,
    FIELD_SINT64,
    FIELD_TYPE_COUNT
} FieldType;

enum { WIRE_START_GROUP = 3, WIRE_END_GROUP = 4 };

typedef struct SchemaEnum {
    Str *names;
    int32_t *numbers;
    int count;
    bool closed; /* only these numbers are values: proto2 */
} SchemaEnum;

typedef struct SchemaField {
    Str name;      /* "x"; of an extension with its package: "package.x" */
    Str full_name; /* "package.Message.x" */
    uint32_t number;
    FieldType type;
    bool is_repeated, is_packed, has_default;
    Str default_text; /* as descriptor.proto tells: strings as they are, bytes escaped, enums by name */
    Str type_name;    /* of messages and enums, as written */
    Str scope;        /* where that name is looked up from */
    struct SchemaMessage *message; /* of FIELD_MESSAGE and FIELD_GROUP */
    const SchemaEnum *values;      /* of FIELD_ENUM */
} SchemaField;

typedef struct SchemaMessage {
    Str full_name;
    SchemaField *fields; /* extensions are at the end */
    int count;
    size_t capacity;
    int own_count; /* of fields that are no extensions */
} SchemaMessage;

typedef struct Schema {
    Arena *arena; /* of names */
    StrMap messages, enums;
    SchemaMessage **list;
    int count;
    size_t capacity;
} Schema;

/* InvalidArgument when it is no FileDescriptorSet, or one with names that lead nowhere. */
Error *schema_read(Str file_descriptor_set, Schema *out) MUST_CHECK;
void schema_clear(Schema *s);
const SchemaMessage *schema_message(const Schema *s, Str full_name); /* NULL: there is none */
const SchemaField *schema_field(const SchemaMessage *m, Str name);   /* one of its own fields; NULL: there is none */
const SchemaField *schema_extension(const SchemaMessage *m, Str full_name);
const char *field_type_name(FieldType type); /* "int32" */
int field_wire_type(FieldType type);

/* What a field that is not set has. */
typedef struct FieldDefault {
    double real; /* of floating types */
    uint64_t bits; /* of integers, negative ones as two's complement of 64 bits; of bools and enums */
    Str text;    /* of strings and bytes */
} FieldDefault;
Error *field_default(const SchemaField *f, Arena *arena, FieldDefault *out) MUST_CHECK;
