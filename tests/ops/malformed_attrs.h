/* malformed_attrs.h: attribute values: a valid one for ops without a recorded call, and extreme ones for all. */
#pragma once
#include <limits.h>
#include <math.h>

#include "graph/op_def.h"
#include "proto/wire.h"
#include "tensor/shape.h"

static const int64_t extreme_ints[] = {-1, 0, 1, 2, 3, 9, 64, 1000, INT32_MAX, INT32_MIN, (int64_t)1 << 31, ((int64_t)1 << 32) + 1, INT64_MAX, INT64_MIN};
static const float extreme_floats[] = {0, -1, 1, 1e30f, NAN, INFINITY, -INFINITY};
static const char *const extreme_strings[] = {"", "?", "NCHW", "NDHWC", "VALID", "(", "a,b;c", "ij,jk->ik", "%s%n", "REFLECT"};
static const Shape extreme_shapes[] = {{-1, {0}}, {0, {0}}, {1, {-1}}, {1, {0}}, {2, {INT64_MAX, INT64_MAX}}, {3, {2, -1, 3}}, {2, {(int64_t)1 << 62, 0}}};
static const struct {
    int count;
    int64_t items[6];
} extreme_lists[] = {
    {0, {0}},
    {1, {0}},
    {1, {1}},
    {1, {-1}},
    {1, {INT64_MIN}},
    {2, {1, 1}},
    {2, {0, 1}},
    {2, {INT32_MAX, INT32_MAX}},
    {4, {0, 0, 0, 0}},
    {4, {1, 0, 0, 1}},
    {4, {1, -1, -1, 1}},
    {4, {1, 2, 2, 1}},
    {4, {1, 1000000, 1000000, 1}},
    {4, {1, INT32_MAX, INT32_MAX, 1}},
    {4, {1, INT64_MAX, INT64_MAX, 1}},
    {4, {2, 1, 1, 2}},
    {5, {1, 0, 0, 0, 1}},
    {5, {1, 3, 3, 3, 1}},
    {5, {1, INT64_MAX, 1, 1, 1}},
    {6, {0, 1, 2, 3, 4, 5}},
    {3, {0, 0, 0}},
    {3, {2, 1, 0}},
};
#define COUNT_OF(array) (int)(sizeof(array) / sizeof(array)[0])

static inline void put_shape_field(StrBuf *b, const Shape *s) {
    StrBuf bytes = {0};
    shape_encode(s, &bytes);
    wire_put_bytes(b, 7, strbuf_str(&bytes));
    strbuf_clear(&bytes);
}

/* The i-th type the attribute allows; DT_INVALID when there are not so many. */
static inline DataType allowed_type(const AttrInfo *attr, int i) {
    for (int t = 1; t < DT_COUNT; t++)
        if ((!attr->allowed_types || attr->allowed_types >> t & 1) && i-- == 0) return (DataType)t;
    return DT_INVALID;
}

static inline Str allowed_string(const AttrInfo *attr, int i) {
    Str rest = attr->allowed_strings, item = {0};
    for (; rest.len && i >= 0; i--) item = str_trim(str_next(&rest, ','));
    return i < 0 && item.len >= 2 ? str_slice(item, 1, item.len - 1) : (Str){0};
}

/* A plain value for an attribute without default. */
static inline void usual_attr(const AttrInfo *attr, StrBuf *out) {
    StrBuf list = {0};
    int64_t least = attr->has_minimum ? attr->minimum : 0;
    DataType type = attr->allowed_types ? allowed_type(attr, 0) : DT_FLOAT;
    if (str_is(attr->type, "int")) wire_put_uint(out, 3, (uint64_t)(least > 1 ? least : 1));
    else if (str_is(attr->type, "float")) wire_put_float(out, 4, 1);
    else if (str_is(attr->type, "bool")) wire_put_uint(out, 5, 0);
    else if (str_is(attr->type, "string")) wire_put_bytes(out, 2, attr->allowed_strings.len ? allowed_string(attr, 0) : STR(""));
    else if (str_is(attr->type, "type")) wire_put_uint(out, 6, (uint64_t)type);
    else if (str_is(attr->type, "shape")) put_shape_field(out, &(Shape){.rank = -1});
    else if (str_is(attr->type, "tensor")) wire_put_bytes(out, 8, STR("\x08\x01\x12\x00\x2d\x00\x00\x80\x3f"));
    else if (str_is(attr->type, "func")) wire_put_bytes(out, 10, STR("\x0a\x04gone"));
    else {
        for (int i = 0; i < (least > 1 ? least : 1); i++) {
            if (str_is(attr->type, "list(int)")) wire_put_uint(&list, 3, 1);
            if (str_is(attr->type, "list(float)")) wire_put_float(&list, 4, 1);
            if (str_is(attr->type, "list(bool)")) wire_put_uint(&list, 5, 0);
            if (str_is(attr->type, "list(string)")) wire_put_bytes(&list, 2, STR("a"));
            if (str_is(attr->type, "list(type)")) wire_put_uint(&list, 6, (uint64_t)type);
            if (str_is(attr->type, "list(shape)")) put_shape_field(&list, &(Shape){.rank = -1});
        }
        wire_put_bytes(out, 1, strbuf_str(&list));
    }
    strbuf_clear(&list);
}

/* The i-th extreme value; false when there are no more. */
static inline bool extreme_attr(const AttrInfo *attr, int i, StrBuf *out) {
    StrBuf list = {0};
    bool ok = true;
    if (i == 0) { /* of another kind */
        wire_put_bytes(out, str_is(attr->type, "string") ? 1 : 2, STR("x"));
        return true;
    }
    i--;
    if (str_is(attr->type, "int") && i < COUNT_OF(extreme_ints)) wire_put_uint(out, 3, (uint64_t)extreme_ints[i]);
    else if (str_is(attr->type, "float") && i < COUNT_OF(extreme_floats)) wire_put_float(out, 4, extreme_floats[i]);
    else if (str_is(attr->type, "bool") && i < 2) wire_put_uint(out, 5, (uint64_t)i);
    else if (str_is(attr->type, "string") && attr->allowed_strings.len && allowed_string(attr, i).ptr) wire_put_bytes(out, 2, allowed_string(attr, i));
    else if (str_is(attr->type, "string") && !attr->allowed_strings.len && i < COUNT_OF(extreme_strings)) wire_put_bytes(out, 2, str_of(extreme_strings[i]));
    else if (str_is(attr->type, "shape") && i < COUNT_OF(extreme_shapes)) put_shape_field(out, &extreme_shapes[i]);
    else if (str_is(attr->type, "type") && i < 4) wire_put_uint(out, 6, (uint64_t)(const int[]){DT_VARIANT, DT_REF + DT_FLOAT, 0, 9999}[i]);
    else if (str_is(attr->type, "tensor") && i < 2) wire_put_bytes(out, 8, i ? STR("\x08\x01\x12\x08\x12\x06\x08\xff\xff\xff\xff\x07") : STR("\xff"));
    else if (str_starts(attr->type, STR("list(")) && i < COUNT_OF(extreme_lists)) {
        for (int j = 0; j < extreme_lists[i].count; j++) {
            int64_t item = extreme_lists[i].items[j];
            if (str_is(attr->type, "list(int)")) wire_put_uint(&list, 3, (uint64_t)item);
            if (str_is(attr->type, "list(float)")) wire_put_float(&list, 4, item == INT64_MIN ? NAN : (float)item);
            if (str_is(attr->type, "list(bool)")) wire_put_uint(&list, 5, item & 1);
            if (str_is(attr->type, "list(string)")) wire_put_bytes(&list, 2, str_of(extreme_strings[(uint64_t)item % COUNT_OF(extreme_strings)]));
            if (str_is(attr->type, "list(type)")) wire_put_uint(&list, 6, (uint64_t)(item > 0 && item < 24 ? item : 1));
            if (str_is(attr->type, "list(shape)")) put_shape_field(&list, &extreme_shapes[(uint64_t)item % COUNT_OF(extreme_shapes)]);
        }
        wire_put_bytes(out, 1, strbuf_str(&list));
    } else
        ok = false;
    strbuf_clear(&list);
    return ok;
}
