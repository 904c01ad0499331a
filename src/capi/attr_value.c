/* attr_value.c: kinds of attribute values, and lists of them.

   AttrValue: list=1 s=2 i=3 f=4 b=5 type=6 shape=7 tensor=8 placeholder=9 func=10; ListValue has the same numbers, but func=9. */
#include <string.h>

#include "capi/attr_value_internal.h"
#include "graph/attr.h"
#include "proto/wire.h"

enum { LIST = 1, FIRST_KIND = 2, PLACEHOLDER = 9, FUNC = 10, LIST_FUNC = 9 };

/* By field number, from s=2 on. */
static const struct {
    TF_AttrType type;
    const char *name, *list_name;
} kinds[] = {
    {TF_ATTR_STRING, "string", "list(string)"}, {TF_ATTR_INT, "int", "list(int)"},
    {TF_ATTR_FLOAT, "float", "list(float)"},    {TF_ATTR_BOOL, "bool", "list(bool)"},
    {TF_ATTR_TYPE, "type", "list(type)"},       {TF_ATTR_SHAPE, "shape", "list(shape)"},
    {TF_ATTR_TENSOR, "tensor", "list(tensor)"}, {TF_ATTR_PLACEHOLDER, "placeholder", "list(placeholder)"},
    {TF_ATTR_FUNC, "func", "list(func)"},
};
enum { KIND_COUNT = sizeof kinds / sizeof kinds[0] };

static int count_items(Str value, TF_AttrType type) {
    switch (type) {
        case TF_ATTR_INT: return attr_list_ints(value, NULL, 0);
        case TF_ATTR_FLOAT: return attr_list_floats(value, NULL, 0);
        case TF_ATTR_BOOL: return attr_list_bools(value, NULL, 0);
        case TF_ATTR_TYPE: return attr_list_types(value, NULL, 0);
        case TF_ATTR_SHAPE: return attr_list_shapes(value, NULL, 0);
        case TF_ATTR_TENSOR: return attr_list_tensors(value, NULL, 0);
        case TF_ATTR_FUNC: return attr_list_funcs(value, NULL, 0);
        default: return attr_list_strings(value, NULL, 0);
    }
}

static AttrKind list_kind(Str value, Str list, Str declared) {
    AttrKind kind = {.is_list = true, .is_set = true, .is_empty_list = true};
    WireReader r = wire_reader(list);
    while (wire_next(&r)) {
        uint32_t field = r.field == LIST_FUNC ? FUNC : r.field;
        if (field < FIRST_KIND || field >= FIRST_KIND + KIND_COUNT) continue;
        kind.type = kinds[field - FIRST_KIND].type;
        kind.is_empty_list = false;
    }
    for (int i = 0; kind.is_empty_list && i < KIND_COUNT; i++)
        if (str_is(declared, kinds[i].list_name)) kind.type = kinds[i].type;
    if (!kind.is_empty_list) kind.size = count_items(value, kind.type);
    return kind;
}

AttrKind attr_kind(Str value, Str declared) {
    AttrKind kind = {0};
    WireReader r = wire_reader(value);
    while (wire_next(&r)) {
        if (r.field == LIST && r.type == WIRE_BYTES) kind = list_kind(value, r.bytes, declared);
        if (r.field >= FIRST_KIND && r.field < FIRST_KIND + KIND_COUNT) kind = (AttrKind){.type = kinds[r.field - FIRST_KIND].type, .is_set = true};
    }
    return kind;
}

const char *attr_kind_name(AttrKind kind) {
    if (!kind.is_set) return "none";
    if (kind.is_empty_list) return "list(any)";
    for (int i = 0; i < KIND_COUNT; i++)
        if (kinds[i].type == kind.type) return kind.is_list ? kinds[i].list_name : kinds[i].name;
    return "unknown";
}

Error *attr_check_kind(Str value, const AttrInfo *declared) {
    AttrKind kind = attr_kind(value, declared->type);
    if (kind.is_set && kind.type == TF_ATTR_PLACEHOLDER && !kind.is_list) return NULL;
    if (kind.is_empty_list ? str_starts(declared->type, STR("list(")) : str_is(declared->type, attr_kind_name(kind))) return NULL;
    if (kind.is_set) return error_invalid("AttrValue had value with type '%s' when '%.*s' expected", attr_kind_name(kind), STR_ARG(declared->type));
    return error_invalid("AttrValue missing value with expected type '%.*s'", STR_ARG(declared->type));
}

Str attr_make_list(Arena *a, PutAttrItem *put, const void *items, int n) {
    StrBuf list = {0}, value = {0};
    for (int i = 0; i < n; i++) put(&list, items, i);
    wire_put_bytes(&value, LIST, strbuf_str(&list));
    Str made = arena_str(a, strbuf_str(&value));
    strbuf_clear(&list);
    strbuf_clear(&value);
    return made;
}
