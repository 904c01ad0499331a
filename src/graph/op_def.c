/* op_def.c: parses the rows of ops and finds them by name. */
#include "graph/op_def.h"

#include <stdlib.h>
#include <string.h>

#include "base/hashmap.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/str.h"
#include "proto/wire.h"

/* ---- Signatures ---- */

static Error *parse_arg(Str text, ArgInfo *out) {
    *out = (ArgInfo){0};
    ptrdiff_t colon = str_find(text, ':');
    if (colon < 0) return error_internal("argument '%.*s' has no type", STR_ARG(text));
    out->name = str_trim(str_slice(text, 0, (size_t)colon));
    Str type = str_trim(str_slice(text, (size_t)colon + 1, text.len));
    if (str_starts(type, STR("Ref(")) && str_ends(type, STR(")"))) {
        out->is_ref = true;
        type = str_slice(type, 4, type.len - 1);
    }
    ptrdiff_t star = str_find(type, '*');
    if (star >= 0) {
        out->number_attr = str_trim(str_slice(type, 0, (size_t)star));
        type = str_trim(str_slice(type, (size_t)star + 1, type.len));
    }
    out->type = dtype_from_name(type);
    if (out->type == DT_INVALID) out->type_attr = type; /* told from a list attribute when the attributes are known */
    return NULL;
}

static Error *parse_args(Arena *arena, Str text, ArgInfo **out, int *count) {
    int n = 0;
    text = str_trim(text);
    for (size_t i = 0; i < text.len; i++) n += text.ptr[i] == ',';
    ArgInfo *args = arena_calloc(arena, (size_t)n + 1, sizeof *args);
    *count = 0;
    while (text.len) {
        Error *err = parse_arg(str_trim(str_next(&text, ',')), &args[(*count)++]);
        if (err) return err;
    }
    *out = args;
    return NULL;
}

/* ---- Attributes ---- */

/* Takes text up to `sep` off the front, quotes and brackets respected. */
static Str next_item(Str *rest, char sep) {
    int depth = 0;
    bool quoted = false;
    size_t i = 0;
    for (; i < rest->len; i++) {
        char c = rest->ptr[i];
        if (c == '\'') quoted = !quoted;
        if (quoted) continue;
        depth += (c == '[' || c == '{' || c == '(') - (c == ']' || c == '}' || c == ')');
        if (c == sep && depth == 0) break;
    }
    Str item = str_trim(str_slice(*rest, 0, i));
    *rest = str_slice(*rest, i + 1, rest->len);
    return item;
}

static Str unquote(Str s) {
    return s.len >= 2 && s.ptr[0] == '\'' ? str_slice(s, 1, s.len - 1) : s;
}

static void put_shape(StrBuf *b, Str text) {
    PartialShape shape = {.rank = -1};
    if (!str_is(text, "?")) {
        shape.rank = 0;
        Str dims = str_slice(text, 1, text.len - 1);
        while (dims.len && shape.rank < SHAPE_MAX_RANK) {
            int64_t size = 0;
            str_to_int64(str_trim(str_next(&dims, ',')), &size);
            shape.dims[shape.rank++] = size;
        }
    }
    StrBuf bytes = {0};
    shape_encode(&shape, &bytes);
    wire_put_bytes(b, 7, strbuf_str(&bytes));
    strbuf_clear(&bytes);
}

/* One value of an attribute type as a field of AttrValue or of its list. */
static bool put_value(StrBuf *b, Str type, Str text) {
    int64_t number = 0;
    if (str_is(type, "string")) {
        wire_put_bytes(b, 2, unquote(text));
    } else if (str_is(type, "int")) {
        if (!str_to_int64(text, &number)) return false;
        wire_put_uint(b, 3, (uint64_t)number);
    } else if (str_is(type, "float")) {
        char *copy = str_dup(text);
        wire_put_float(b, 4, strtof(copy, NULL));
        free(copy);
    } else if (str_is(type, "bool")) {
        wire_put_uint(b, 5, str_is(text, "true"));
    } else if (str_is(type, "type")) {
        DataType t = dtype_from_name(text);
        if (t == DT_INVALID) return false;
        wire_put_uint(b, 6, (uint64_t)t);
    } else if (str_is(type, "shape")) {
        put_shape(b, text);
    } else {
        return false;
    }
    return true;
}

static Error *parse_default(Arena *arena, AttrInfo *attr, Str text) {
    StrBuf b = {0};
    bool ok = true;
    if (str_starts(attr->type, STR("list("))) {
        Str element = str_slice(attr->type, 5, attr->type.len - 1);
        Str items = str_slice(text, 1, text.len - 1);
        StrBuf list = {0};
        while (ok && str_trim(items).len) ok = put_value(&list, element, next_item(&items, ','));
        wire_put_bytes(&b, 1, strbuf_str(&list));
        strbuf_clear(&list);
    } else {
        ok = put_value(&b, attr->type, text);
    }
    if (ok) attr->default_value = arena_str(arena, strbuf_str(&b));
    strbuf_clear(&b);
    return ok ? NULL : error_internal("default '%.*s' of attribute %.*s", STR_ARG(text), STR_ARG(attr->name));
}

/* "{float, double}" or "{'SAME', 'VALID'}": what is allowed. */
static Str parse_allowed(AttrInfo *attr, Str braces) {
    Str items = str_slice(braces, 1, braces.len - 1);
    if (items.len && str_trim(items).ptr[0] == '\'') {
        attr->allowed_strings = items;
        return STR("string");
    }
    while (items.len) {
        DataType t = dtype_from_name(str_trim(str_next(&items, ',')));
        attr->allowed_types |= (uint64_t)1 << t;
    }
    return STR("type");
}

static Error *parse_attr(Arena *arena, Str text, AttrInfo *out) {
    *out = (AttrInfo){0};
    ptrdiff_t colon = str_find(text, ':');
    if (colon < 0) return error_internal("attribute '%.*s' has no type", STR_ARG(text));
    out->name = str_trim(str_slice(text, 0, (size_t)colon));
    Str rest = str_slice(text, (size_t)colon + 1, text.len);
    Str head = rest;
    Str default_text = {NULL, 0};
    for (size_t i = 0; i < rest.len; i++) { /* the '=' of the default, not that of ">=" */
        if (rest.ptr[i] != '=' || (i && rest.ptr[i - 1] == '>')) continue;
        head = str_slice(rest, 0, i);
        default_text = str_trim(str_slice(rest, i + 1, rest.len));
        break;
    }
    ptrdiff_t at = str_find(head, '>');
    if (at >= 0) {
        out->has_minimum = true;
        if (!str_to_int64(str_trim(str_slice(head, (size_t)at + 2, head.len)), &out->minimum))
            return error_internal("minimum of attribute %.*s", STR_ARG(out->name));
        head = str_slice(head, 0, (size_t)at);
    }
    head = str_trim(head);
    if (str_starts(head, STR("{"))) {
        out->type = parse_allowed(out, head);
    } else if (str_starts(head, STR("list({"))) {
        Str element = parse_allowed(out, str_slice(head, 5, head.len - 1));
        out->type = str_is(element, "type") ? STR("list(type)") : STR("list(string)");
    } else {
        out->type = head;
    }
    return default_text.ptr ? parse_default(arena, out, default_text) : NULL;
}

static Error *parse_attrs(Arena *arena, Str text, AttrInfo **out, int *count) {
    int n = 1;
    for (size_t i = 0; i < text.len; i++) n += text.ptr[i] == ';';
    AttrInfo *attrs = arena_calloc(arena, (size_t)n, sizeof *attrs);
    *count = 0;
    while (str_trim(text).len) {
        Error *err = parse_attr(arena, next_item(&text, ';'), &attrs[(*count)++]);
        if (err) return err;
    }
    *out = attrs;
    return NULL;
}

const AttrInfo *op_attr(const OpInfo *op, Str name) {
    for (int i = 0; i < op->attr_count; i++)
        if (str_eq(op->attrs[i].name, name)) return &op->attrs[i];
    return NULL;
}

/* An argument of type "Tlist" is a list of types when the attribute says so. */
static Error *settle_args(OpInfo *op, ArgInfo *args, int count) {
    for (int i = 0; i < count; i++) {
        if (args[i].type != DT_INVALID) continue;
        const AttrInfo *attr = op_attr(op, args[i].type_attr);
        if (!attr) return error_internal("type %.*s of argument %.*s", STR_ARG(args[i].type_attr), STR_ARG(args[i].name));
        if (str_is(attr->type, "list(type)")) {
            args[i].type_list_attr = args[i].type_attr;
            args[i].type_attr = (Str){0};
        }
    }
    return NULL;
}

Error *op_info_parse(Arena *arena, const OpDef *def, OpInfo **out) {
    OpInfo *op = arena_calloc(arena, 1, sizeof *op);
    op->name = str_of(def->name);
    op->flags = def->flags;
    const char *arrow = strstr(def->signature, "->");
    Error *err = arrow ? NULL : error_internal("signature has no '->'");
    if (!err) err = parse_args(arena, (Str){def->signature, (size_t)(arrow - def->signature)}, &op->inputs, &op->input_count);
    if (!err) err = parse_args(arena, str_of(arrow + 2), &op->outputs, &op->output_count);
    if (!err) err = parse_attrs(arena, str_of(def->attrs), &op->attrs, &op->attr_count);
    if (!err) err = settle_args(op, op->inputs, op->input_count);
    if (!err) err = settle_args(op, op->outputs, op->output_count);
    if (!err) *out = op;
    return error_wrap(err, "op %s", def->name);
}

/* ---- The registry ---- */

/* Filled once by op_registry_init and constant afterwards. */
static struct {
    Arena *arena;
    StrMap by_name;
    const OpInfo **ops;
    int count;
    size_t capacity;
} registry;

void op_registry_init(const OpDef *const *tables, int table_count) {
    if (!registry.arena) registry.arena = arena_new();
    for (int i = 0; i < table_count; i++) {
        for (const OpDef *def = tables[i]; def->name; def++) {
            OpInfo *op = NULL;
            Error *err = op_info_parse(registry.arena, def, &op);
            if (err) {
                log_error("%s", err->message);
                error_free(err);
                continue;
            }
            if (strmap_put(&registry.by_name, op->name, op)) log_error("op %s is registered twice", def->name);
            registry.ops = vec_reserve(registry.ops, &registry.capacity, (size_t)registry.count + 1, sizeof *registry.ops);
            registry.ops[registry.count++] = op;
        }
    }
}

const OpInfo *op_find(Str name) {
    return strmap_get(&registry.by_name, name);
}

int op_count(void) {
    return registry.count;
}

const OpInfo *op_at(int i) {
    return registry.ops[i];
}

/* Edit distance, cut off above 63 characters. */
static int distance(Str a, Str b) {
    int row[64];
    if (a.len > 63) a.len = 63;
    if (b.len > 63) b.len = 63;
    for (int j = 0; j <= (int)b.len; j++) row[j] = j;
    for (int i = 1; i <= (int)a.len; i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= (int)b.len; j++) {
            int cost = diagonal + (a.ptr[i - 1] != b.ptr[j - 1]);
            diagonal = row[j];
            if (row[j] + 1 < cost) cost = row[j] + 1;
            if (row[j - 1] + 1 < cost) cost = row[j - 1] + 1;
            row[j] = cost;
        }
    }
    return row[b.len];
}

Str op_nearest(Str name) {
    Str best = {"", 0};
    int least = 1000;
    for (int i = 0; i < registry.count; i++) {
        int d = distance(name, registry.ops[i]->name);
        if (d < least) {
            least = d;
            best = registry.ops[i]->name;
        }
    }
    return best;
}
