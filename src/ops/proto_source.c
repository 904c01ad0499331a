/* proto_source.c: where the descriptors of messages come from: a file, the attribute itself after "bytes://", or "local://", the messages that are linked into the
 * program. */
#include "ops/proto_source.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"

static const char bytes_prefix[] = "bytes://";

static bool read_file(Str path, Schema *out) {
    char *name = str_dup(path), *content = NULL;
    size_t size = 0;
    bool can = strlen(name) == path.len && file_system_local.exists(name) && !file_system_local.is_dir(name);
    Error *err = can ? file_read_all(&file_system_local, name, &content, &size) : NULL;
    bool ok = can && !err;
    if (ok) {
        err = schema_read((Str){content, size}, out);
        ok = !err;
    }
    error_free(err);
    free(content);
    free(name);
    return ok;
}

static Error *read_source(Str source, Schema *out) {
    size_t n = sizeof bytes_prefix - 1;
    if (source.len == 0 || str_eq(source, STR("local://"))) return proto_local_schema(out);
    if (read_file(source, out)) return NULL;
    Error *err = NULL;
    if (source.len >= n && memcmp(source.ptr, bytes_prefix, n) == 0) {
        err = schema_read((Str){source.ptr + n, source.len - n}, out);
        if (!err) return NULL;
    }
    error_free(err);
    return error_invalid("Source does not represent serialized file descriptor set proto. This may be due to a missing dependency on the file containing "
                         "REGISTER_DESCRIPTOR_POOL(\"%.*s\", ...);",
                         STR_ARG(source));
}

static Error *find_fields(const Node *node, bool extensions, ProtoFields *out) {
    Str source, type, *names = NULL;
    Error *err = node_attr_string(node, "descriptor_source", &source);
    if (!err) err = node_attr_string(node, "message_type", &type);
    if (!err) err = read_source(source, &out->schema);
    if (err) return err;
    out->message = schema_message(&out->schema, type);
    if (!out->message) return error_invalid("No descriptor found for message type %.*s", STR_ARG(type));
    err = node_attr_strings(node, "field_names", &names, &out->count);
    if (err) return err;
    out->fields = xcalloc((size_t)out->count + 1, sizeof *out->fields);
    for (int i = 0; !err && i < out->count; i++) {
        out->fields[i] = schema_field(out->message, names[i]);
        if (!out->fields[i] && extensions) out->fields[i] = schema_extension(out->message, names[i]);
        if (!out->fields[i]) err = error_invalid("Unknown field: %.*s in message type %.*s", STR_ARG(names[i]), STR_ARG(type));
    }
    free(names);
    return err;
}

Error *proto_fields_init(const Node *node, bool extensions, ProtoFields *out) {
    *out = (ProtoFields){0};
    Error *err = find_fields(node, extensions, out);
    if (err) return err;
    out->by_number = xcalloc((size_t)out->count + 1, sizeof *out->by_number);
    for (int i = 0; i < out->count; i++) {
        int at = i;
        for (; at > 0 && out->fields[out->by_number[at - 1]]->number > out->fields[i]->number; at--) out->by_number[at] = out->by_number[at - 1];
        out->by_number[at] = i;
    }
    return NULL;
}

void proto_fields_clear(ProtoFields *f) {
    schema_clear(&f->schema);
    free(f->fields);
    free(f->by_number);
}

bool proto_field_fits(FieldType field, DataType dtype) {
    switch (field) {
        case FIELD_DOUBLE: return dtype == DT_DOUBLE;
        case FIELD_FLOAT: return dtype == DT_FLOAT || dtype == DT_DOUBLE;
        case FIELD_INT64:
        case FIELD_SFIXED64:
        case FIELD_SINT64: return dtype == DT_INT64;
        case FIELD_UINT64:
        case FIELD_FIXED64: return dtype == DT_UINT64;
        case FIELD_INT32:
        case FIELD_SFIXED32:
        case FIELD_SINT32: return dtype == DT_INT32 || dtype == DT_INT64;
        case FIELD_UINT32:
        case FIELD_FIXED32: return dtype == DT_UINT32 || dtype == DT_UINT64;
        case FIELD_BOOL: return dtype == DT_BOOL;
        case FIELD_ENUM: return dtype == DT_INT32;
        default: return dtype == DT_STRING;
    }
}
