/* schema.c: reads a FileDescriptorSet: messages, their fields and extensions, enums; resolves the names of types. */
#include "proto/schema.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { MAX_NESTING = 64, LABEL_REPEATED = 3 };

/* ---- Types ---- */

static const struct {
    const char *name;
    int wire;
} types[FIELD_TYPE_COUNT] = {
    [FIELD_DOUBLE] = {"double", WIRE_FIXED64},   [FIELD_FLOAT] = {"float", WIRE_FIXED32},       [FIELD_INT64] = {"int64", WIRE_VARINT},
    [FIELD_UINT64] = {"uint64", WIRE_VARINT},    [FIELD_INT32] = {"int32", WIRE_VARINT},        [FIELD_FIXED64] = {"fixed64", WIRE_FIXED64},
    [FIELD_FIXED32] = {"fixed32", WIRE_FIXED32}, [FIELD_BOOL] = {"bool", WIRE_VARINT},          [FIELD_STRING] = {"string", WIRE_BYTES},
    [FIELD_GROUP] = {"group", WIRE_START_GROUP}, [FIELD_MESSAGE] = {"message", WIRE_BYTES},     [FIELD_BYTES] = {"bytes", WIRE_BYTES},
    [FIELD_UINT32] = {"uint32", WIRE_VARINT},    [FIELD_ENUM] = {"enum", WIRE_VARINT},          [FIELD_SFIXED32] = {"sfixed32", WIRE_FIXED32},
    [FIELD_SFIXED64] = {"sfixed64", WIRE_FIXED64}, [FIELD_SINT32] = {"sint32", WIRE_VARINT},    [FIELD_SINT64] = {"sint64", WIRE_VARINT},
};

const char *field_type_name(FieldType type) {
    return types[type].name;
}

int field_wire_type(FieldType type) {
    return types[type].wire;
}

static bool can_be_packed(FieldType type) {
    return types[type].wire != WIRE_BYTES && types[type].wire != WIRE_START_GROUP;
}

/* ---- Reading ---- */

typedef struct SchemaReader {
    Schema *schema;
    SchemaField *extensions;
    Str *extendees; /* of each, as written */
    int extension_count;
    size_t extension_capacity, extendee_capacity;
    bool is_proto3; /* the file at hand */
} SchemaReader;

static Str join(SchemaReader *r, Str scope, Str name) {
    return scope.len ? arena_printf(r->schema->arena, "%.*s.%.*s", STR_ARG(scope), STR_ARG(name)) : arena_str(r->schema->arena, name);
}

/* The string in the first field of that number; empty when there is none. */
static Str bytes_of(Str message, uint32_t field) {
    WireReader r = wire_reader(message);
    while (wire_next(&r))
        if (r.field == field && r.type == WIRE_BYTES) return r.bytes;
    return (Str){"", 0};
}

static Error *malformed(void) {
    return error_invalid("Malformed FileDescriptorSet");
}

static Error *read_field(SchemaReader *r, Str scope, Str bytes, SchemaField *out, Str *extendee) {
    WireReader w = wire_reader(bytes);
    SchemaField f = {.scope = scope};
    int packed = -1;
    uint64_t type = 0;
    while (wire_next(&w)) {
        if (w.field == 1) f.name = arena_str(r->schema->arena, w.bytes);
        if (w.field == 2) *extendee = arena_str(r->schema->arena, w.bytes);
        if (w.field == 3) f.number = (uint32_t)w.number;
        if (w.field == 4) f.is_repeated = w.number == LABEL_REPEATED;
        if (w.field == 5) type = w.number;
        if (w.field == 6) f.type_name = arena_str(r->schema->arena, w.bytes);
        if (w.field == 7) {
            f.default_text = arena_str(r->schema->arena, w.bytes);
            f.has_default = true;
        }
        if (w.field != 8) continue;
        WireReader options = wire_reader(w.bytes);
        while (wire_next(&options))
            if (options.field == 2 && options.type == WIRE_VARINT) packed = options.number != 0;
    }
    if (w.failed || type >= FIELD_TYPE_COUNT || f.number == 0 || f.number >= 1u << 29 || !f.name.len) return malformed();
    f.type = (FieldType)type;
    f.full_name = join(r, scope, f.name);
    bool by_default = packed < 0 && r->is_proto3;
    f.is_packed = f.is_repeated && (packed == 1 || by_default); /* of types that cannot be: set right when types are known */
    *out = f;
    return NULL;
}

static Error *read_extension(SchemaReader *r, Str scope, Str bytes) {
    SchemaField f = {0};
    Str extendee = {"", 0};
    Error *err = read_field(r, scope, bytes, &f, &extendee);
    if (err) return err;
    f.name = f.full_name;
    r->extensions = vec_reserve(r->extensions, &r->extension_capacity, (size_t)r->extension_count + 1, sizeof *r->extensions);
    r->extendees = vec_reserve(r->extendees, &r->extendee_capacity, (size_t)r->extension_count + 1, sizeof *r->extendees);
    r->extendees[r->extension_count] = extendee;
    r->extensions[r->extension_count++] = f;
    return NULL;
}

static Error *read_enum(SchemaReader *r, Str scope, Str bytes) {
    int count = 0;
    WireReader w = wire_reader(bytes);
    while (wire_next(&w)) count += w.field == 2 && w.type == WIRE_BYTES;
    if (w.failed || count == 0) return malformed();
    SchemaEnum *e = arena_calloc(r->schema->arena, 1, sizeof *e);
    e->names = arena_calloc(r->schema->arena, (size_t)count, sizeof *e->names);
    e->numbers = arena_calloc(r->schema->arena, (size_t)count, sizeof *e->numbers);
    e->closed = !r->is_proto3;
    w = wire_reader(bytes);
    while (wire_next(&w)) {
        if (w.field != 2 || w.type != WIRE_BYTES) continue;
        e->names[e->count] = arena_str(r->schema->arena, bytes_of(w.bytes, 1));
        WireReader value = wire_reader(w.bytes);
        while (wire_next(&value))
            if (value.field == 2 && value.type == WIRE_VARINT) e->numbers[e->count] = (int32_t)value.number;
        e->count++;
    }
    strmap_put(&r->schema->enums, join(r, scope, bytes_of(bytes, 1)), e);
    return NULL;
}

static void add_field(SchemaMessage *m, const SchemaField *f) {
    m->fields = vec_reserve(m->fields, &m->capacity, (size_t)m->count + 1, sizeof *m->fields);
    m->fields[m->count++] = *f;
}

static Error *read_message(SchemaReader *r, Str scope, Str bytes, int depth) {
    Str name = bytes_of(bytes, 1);
    if (depth > MAX_NESTING || !name.len) return malformed();
    Schema *s = r->schema;
    SchemaMessage *m = arena_calloc(s->arena, 1, sizeof *m);
    m->full_name = join(r, scope, name);
    if (strmap_get(&s->messages, m->full_name)) return error_invalid("Message %.*s is there twice", STR_ARG(m->full_name));
    strmap_put(&s->messages, m->full_name, m);
    s->list = vec_reserve(s->list, &s->capacity, (size_t)s->count + 1, sizeof *s->list);
    s->list[s->count++] = m;
    WireReader w = wire_reader(bytes);
    Error *err = NULL;
    while (!err && wire_next(&w)) {
        if (w.type != WIRE_BYTES) continue;
        SchemaField f = {0};
        Str nobody;
        if (w.field == 2) err = read_field(r, m->full_name, w.bytes, &f, &nobody);
        if (w.field == 2 && !err) add_field(m, &f);
        if (w.field == 3) err = read_message(r, m->full_name, w.bytes, depth + 1);
        if (w.field == 4) err = read_enum(r, m->full_name, w.bytes);
        if (w.field == 6) err = read_extension(r, m->full_name, w.bytes);
    }
    m->own_count = m->count;
    return err ? err : w.failed ? malformed() : NULL;
}

static Error *read_file(SchemaReader *r, Str bytes) {
    Str package = arena_str(r->schema->arena, bytes_of(bytes, 2));
    r->is_proto3 = str_eq(bytes_of(bytes, 12), STR("proto3")) || str_eq(bytes_of(bytes, 12), STR("editions"));
    WireReader w = wire_reader(bytes);
    Error *err = NULL;
    while (!err && wire_next(&w)) {
        if (w.type != WIRE_BYTES) continue;
        if (w.field == 4) err = read_message(r, package, w.bytes, 0);
        if (w.field == 5) err = read_enum(r, package, w.bytes);
        if (w.field == 7) err = read_extension(r, package, w.bytes);
    }
    return err ? err : w.failed ? malformed() : NULL;
}

/* ---- Names ---- */

/* ".a.B" is a.B; "B" in a.C is a.C.B, a.B or B. */
static void *look_up(const StrMap *map, Str scope, Str name) {
    if (name.len && name.ptr[0] == '.') return strmap_get(map, (Str){name.ptr + 1, name.len - 1});
    void *found = NULL;
    for (;;) {
        StrBuf full = {0};
        strbuf_addf(&full, "%.*s%s%.*s", STR_ARG(scope), scope.len ? "." : "", STR_ARG(name));
        found = strmap_get(map, strbuf_str(&full));
        strbuf_clear(&full);
        if (found || !scope.len) return found;
        while (scope.len && scope.ptr[scope.len - 1] != '.') scope.len--;
        if (scope.len) scope.len--;
    }
}

static Error *resolve_field(Schema *s, SchemaField *f) {
    if (f->type == 0) f->type = look_up(&s->enums, f->scope, f->type_name) ? FIELD_ENUM : FIELD_MESSAGE;
    if (!can_be_packed(f->type)) f->is_packed = false;
    if (f->type == FIELD_ENUM) f->values = look_up(&s->enums, f->scope, f->type_name);
    if (f->type == FIELD_MESSAGE || f->type == FIELD_GROUP) f->message = look_up(&s->messages, f->scope, f->type_name);
    bool lacks = (f->type == FIELD_ENUM && !f->values) || ((f->type == FIELD_MESSAGE || f->type == FIELD_GROUP) && !f->message);
    return lacks ? error_invalid("\"%.*s\" of field %.*s is not defined", STR_ARG(f->type_name), STR_ARG(f->full_name)) : NULL;
}

static Error *resolve(SchemaReader *r) {
    Schema *s = r->schema;
    Error *err = NULL;
    for (int i = 0; !err && i < r->extension_count; i++) {
        SchemaMessage *m = look_up(&s->messages, r->extensions[i].scope, r->extendees[i]);
        if (m)
            add_field(m, &r->extensions[i]);
        else
            err = error_invalid("\"%.*s\" of extension %.*s is not defined", STR_ARG(r->extendees[i]), STR_ARG(r->extensions[i].name));
    }
    for (int i = 0; !err && i < s->count; i++)
        for (int j = 0; !err && j < s->list[i]->count; j++) err = resolve_field(s, &s->list[i]->fields[j]);
    return err;
}

Error *schema_read(Str set, Schema *out) {
    *out = (Schema){.arena = arena_new()};
    SchemaReader r = {.schema = out};
    WireReader w = wire_reader(set);
    Error *err = NULL;
    while (!err && wire_next(&w))
        if (w.field == 1 && w.type == WIRE_BYTES) err = read_file(&r, w.bytes);
    if (!err && w.failed) err = malformed();
    if (!err) err = resolve(&r);
    free(r.extensions);
    free(r.extendees);
    if (err) schema_clear(out);
    return err;
}

void schema_clear(Schema *s) {
    for (int i = 0; i < s->count; i++) free(s->list[i]->fields);
    free(s->list);
    strmap_clear(&s->messages);
    strmap_clear(&s->enums);
    if (s->arena) arena_free(s->arena);
    *s = (Schema){0};
}

/* ---- Questions ---- */

const SchemaMessage *schema_message(const Schema *s, Str full_name) {
    return strmap_get(&s->messages, full_name);
}

static const SchemaField *find_field(const SchemaMessage *m, int from, int to, Str name) {
    for (int i = from; i < to; i++)
        if (str_eq(m->fields[i].name, name)) return &m->fields[i];
    return NULL;
}

const SchemaField *schema_field(const SchemaMessage *m, Str name) {
    return find_field(m, 0, m->own_count, name);
}

const SchemaField *schema_extension(const SchemaMessage *m, Str full_name) {
    return find_field(m, m->own_count, m->count, full_name);
}

/* "a\001b" with its escapes undone. */
static Str unescape(Arena *arena, Str text) {
    static const char names[] = "abfnrtv", values[] = "\a\b\f\n\r\t\v";
    char *out = arena_alloc(arena, text.len + 1);
    size_t n = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] != '\\' || i + 1 == text.len) {
            out[n++] = text.ptr[i];
            continue;
        }
        char c = text.ptr[++i];
        const char *named = c ? strchr(names, c) : NULL;
        int digits = 0, value = 0;
        for (; digits < 3 && i + (size_t)digits < text.len && text.ptr[i + (size_t)digits] >= '0' && text.ptr[i + (size_t)digits] <= '7'; digits++)
            value = value * 8 + text.ptr[i + (size_t)digits] - '0';
        if (digits) i += (size_t)digits - 1;
        out[n++] = digits ? (char)value : named ? values[named - names] : c;
    }
    return (Str){out, n};
}

Error *field_default(const SchemaField *f, Arena *arena, FieldDefault *out) {
    *out = (FieldDefault){.text = {"", 0}};
    if (f->type == FIELD_ENUM) {
        out->bits = (uint64_t)(int64_t)f->values->numbers[0];
        for (int i = 0; f->has_default && i < f->values->count; i++)
            if (str_eq(f->values->names[i], f->default_text)) out->bits = (uint64_t)(int64_t)f->values->numbers[i];
        return NULL;
    }
    if (!f->has_default) return NULL;
    char *end = NULL;
    const char *text = f->default_text.ptr; /* ends with 0 */
    switch (f->type) {
        case FIELD_STRING: out->text = f->default_text; return NULL;
        case FIELD_BYTES: out->text = unescape(arena, f->default_text); return NULL;
        case FIELD_BOOL: out->bits = str_eq(f->default_text, STR("true")); return NULL;
        case FIELD_DOUBLE:
        case FIELD_FLOAT: out->real = strtod(text, &end); break;
        case FIELD_UINT64:
        case FIELD_FIXED64:
        case FIELD_UINT32:
        case FIELD_FIXED32: out->bits = strtoull(text, &end, 0); break;
        default: out->bits = (uint64_t)strtoll(text, &end, 0); break;
    }
    return end && *end == 0 && end != text ? NULL : error_invalid("Default \"%s\" of field %.*s is no %s", text, STR_ARG(f->full_name), types[f->type].name);
}
