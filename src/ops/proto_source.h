/* proto_source.h: the schema that an op's attributes descriptor_source, message_type and field_names name. */
#pragma once
#include "graph/graph.h"
#include "proto/schema.h"

typedef struct ProtoFields {
    Schema schema;
    const SchemaMessage *message;
    const SchemaField **fields; /* in the order of field_names */
    int count;
    int *by_number; /* indices of fields, by rising number */
} ProtoFields;

/* InvalidArgument as TensorFlow says it. extensions: field_names may also be full names of extensions. */
Error *proto_fields_init(const Node *node, bool extensions, ProtoFields *out) MUST_CHECK;
void proto_fields_clear(ProtoFields *f);
/* The messages of "local://". */
Error *proto_local_schema(Schema *out) MUST_CHECK;
/* Whether values of the field may be in a tensor of that type. */
bool proto_field_fits(FieldType field, DataType dtype);
