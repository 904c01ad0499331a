/* attr.c: AttrValue read from and written to its serialised form.

   AttrValue is a oneof: list=1 s=2 i=3 f=4 b=5 type=6 shape=7 tensor=8 placeholder=9 func=10. In ListValue the same kinds have
   the numbers s=2 i=3 f=4 b=5 type=6 shape=7 tensor=8 func=9, the numeric ones packed or not. */
#include "graph/attr.h"

#include <string.h>

#include "base/str.h"
#include "proto/wire.h"
#include "tensor/tensor_proto.h"

enum { LIST = 1, S, I, F, B, TYPE, SHAPE, TENSOR, PLACEHOLDER, FUNC, LIST_FUNC = 9 };

/* Finds the member that is set: the last one of the message. */
static bool find(Str value, uint32_t field, int type, WireReader *out) {
    WireReader r = wire_reader(value);
    bool found = false;
    while (wire_next(&r)) {
        found = r.field == field && r.type == type;
        if (found) *out = r;
    }
    return found && !r.failed;
}

static bool find_bytes(Str value, uint32_t field, Str *out) {
    WireReader r;
    if (!find(value, field, WIRE_BYTES, &r)) return false;
    *out = r.bytes;
    return true;
}

bool attr_string(Str value, Str *out) {
    return find_bytes(value, S, out);
}

bool attr_int(Str value, int64_t *out) {
    WireReader r;
    if (!find(value, I, WIRE_VARINT, &r)) return false;
    *out = (int64_t)r.number;
    return true;
}

static float float_of(uint64_t number) {
    uint32_t bits = (uint32_t)number;
    float f;
    memcpy(&f, &bits, 4);
    return f;
}

bool attr_float(Str value, float *out) {
    WireReader r;
    if (!find(value, F, WIRE_FIXED32, &r)) return false;
    *out = float_of(r.number);
    return true;
}

bool attr_bool(Str value, bool *out) {
    WireReader r;
    if (!find(value, B, WIRE_VARINT, &r)) return false;
    *out = r.number != 0;
    return true;
}

bool attr_type(Str value, DataType *out) {
    WireReader r;
    if (!find(value, TYPE, WIRE_VARINT, &r) || !dtype_is_valid((int)r.number)) return false;
    *out = (DataType)r.number;
    return true;
}

bool attr_shape(Str value, PartialShape *out) {
    Str bytes;
    if (!find_bytes(value, SHAPE, &bytes)) return false;
    Error *err = shape_decode(bytes, out);
    error_free(err);
    return !err;
}

bool attr_tensor(Str value, Str *tensor_proto) {
    return find_bytes(value, TENSOR, tensor_proto);
}

bool attr_func(Str value, Str *name_attr_list) {
    return find_bytes(value, FUNC, name_attr_list);
}

bool attr_placeholder(Str value, Str *out) {
    return find_bytes(value, PLACEHOLDER, out);
}

bool attr_is_list(Str value) {
    Str bytes;
    return find_bytes(value, LIST, &bytes);
}

/* Calls put for each item of one kind, packed or not; returns how many, -1 when malformed or not a list. */
typedef bool PutItem(void *out, int i, uint64_t number, Str bytes);

static int list_items(Str value, uint32_t field, int type, PutItem *put, void *out, int max) {
    Str list;
    if (!find_bytes(value, LIST, &list)) return -1;
    WireReader r = wire_reader(list);
    int n = 0;
    while (wire_next(&r)) {
        if (r.field != field) continue;
        if (r.type == type) {
            if (out && n < max && !put(out, n, r.number, r.bytes)) return -1;
            n++;
        } else if (r.type == WIRE_BYTES) {
            WireReader packed = wire_reader(r.bytes);
            while (packed.at < packed.end) {
                uint64_t number = 0;
                if (type == WIRE_FIXED32) {
                    if (packed.end - packed.at < 4) return -1;
                    memcpy(&number, packed.at, 4);
                    packed.at += 4;
                } else if (!wire_varint(&packed, &number)) {
                    return -1;
                }
                if (out && n < max && !put(out, n, number, (Str){0})) return -1;
                n++;
            }
        }
    }
    return r.failed ? -1 : n;
}

static bool put_str(void *out, int i, uint64_t number, Str bytes) {
    (void)number;
    ((Str *)out)[i] = bytes;
    return true;
}

static bool put_int(void *out, int i, uint64_t number, Str bytes) {
    (void)bytes;
    ((int64_t *)out)[i] = (int64_t)number;
    return true;
}

static bool put_float(void *out, int i, uint64_t number, Str bytes) {
    (void)bytes;
    ((float *)out)[i] = float_of(number);
    return true;
}

static bool put_bool(void *out, int i, uint64_t number, Str bytes) {
    (void)bytes;
    ((bool *)out)[i] = number != 0;
    return true;
}

static bool put_type(void *out, int i, uint64_t number, Str bytes) {
    (void)bytes;
    ((DataType *)out)[i] = (DataType)number;
    return number < 1000 && dtype_is_valid((int)number);
}

static bool put_shape(void *out, int i, uint64_t number, Str bytes) {
    (void)number;
    Error *err = shape_decode(bytes, (PartialShape *)out + i);
    error_free(err);
    return !err;
}

int attr_list_strings(Str value, Str *out, int max) {
    return list_items(value, S, WIRE_BYTES, put_str, out, max);
}

int attr_list_ints(Str value, int64_t *out, int max) {
    return list_items(value, I, WIRE_VARINT, put_int, out, max);
}

int attr_list_floats(Str value, float *out, int max) {
    return list_items(value, F, WIRE_FIXED32, put_float, out, max);
}

int attr_list_bools(Str value, bool *out, int max) {
    return list_items(value, B, WIRE_VARINT, put_bool, out, max);
}

int attr_list_types(Str value, DataType *out, int max) {
    return list_items(value, TYPE, WIRE_VARINT, put_type, out, max);
}

int attr_list_shapes(Str value, PartialShape *out, int max) {
    return list_items(value, SHAPE, WIRE_BYTES, put_shape, out, max);
}

int attr_list_tensors(Str value, Str *out, int max) {
    return list_items(value, TENSOR, WIRE_BYTES, put_str, out, max);
}

int attr_list_funcs(Str value, Str *out, int max) {
    return list_items(value, LIST_FUNC, WIRE_BYTES, put_str, out, max);
}

Str func_name(Str name_attr_list) {
    WireReader r = wire_reader(name_attr_list);
    Str name = {"", 0};
    while (wire_next(&r))
        if (r.field == 1 && r.type == WIRE_BYTES) name = r.bytes;
    return name;
}

int func_attrs(Str name_attr_list, Attr *out, int max) {
    WireReader r = wire_reader(name_attr_list);
    int n = 0;
    while (wire_next(&r)) {
        if (r.field != 2 || r.type != WIRE_BYTES) continue;
        Attr attr = {{"", 0}, {"", 0}};
        WireReader entry = wire_reader(r.bytes);
        while (wire_next(&entry)) {
            if (entry.field == 1 && entry.type == WIRE_BYTES) attr.name = entry.bytes;
            if (entry.field == 2 && entry.type == WIRE_BYTES) attr.value = entry.bytes;
        }
        if (n < max) out[n] = attr;
        n++;
    }
    return n;
}

static Str finish(Arena *a, StrBuf *b) {
    Str copy = arena_str(a, strbuf_str(b));
    strbuf_clear(b);
    return copy;
}

static Str make_bytes(Arena *a, uint32_t field, Str v) {
    StrBuf b = {0};
    wire_put_bytes(&b, field, v);
    return finish(a, &b);
}

static Str make_uint(Arena *a, uint32_t field, uint64_t v) {
    StrBuf b = {0};
    wire_put_uint(&b, field, v);
    return finish(a, &b);
}

Str attr_make_string(Arena *a, Str v) {
    return make_bytes(a, S, v);
}

Str attr_make_int(Arena *a, int64_t v) {
    return make_uint(a, I, (uint64_t)v);
}

Str attr_make_float(Arena *a, float v) {
    StrBuf b = {0};
    wire_put_float(&b, F, v);
    return finish(a, &b);
}

Str attr_make_bool(Arena *a, bool v) {
    return make_uint(a, B, v);
}

Str attr_make_type(Arena *a, DataType v) {
    return make_uint(a, TYPE, (uint64_t)v);
}

Str attr_make_shape(Arena *a, const PartialShape *v) {
    StrBuf shape = {0};
    shape_encode(v, &shape);
    Str made = make_bytes(a, SHAPE, strbuf_str(&shape));
    strbuf_clear(&shape);
    return made;
}

Str attr_make_tensor(Arena *a, const Tensor *v) {
    StrBuf proto = {0};
    tensor_proto_encode(v, &proto);
    Str made = make_bytes(a, TENSOR, strbuf_str(&proto));
    strbuf_clear(&proto);
    return made;
}

Str attr_make_strings(Arena *a, const Str *v, int n) {
    StrBuf list = {0};
    for (int i = 0; i < n; i++) wire_put_bytes(&list, S, v[i]);
    Str made = make_bytes(a, LIST, strbuf_str(&list));
    strbuf_clear(&list);
    return made;
}

Str attr_make_types(Arena *a, const DataType *v, int n) {
    StrBuf list = {0};
    for (int i = 0; i < n; i++) wire_put_uint(&list, TYPE, (uint64_t)v[i]);
    Str made = make_bytes(a, LIST, strbuf_str(&list));
    strbuf_clear(&list);
    return made;
}

Str attr_make_shapes(Arena *a, const PartialShape *v, int n) {
    StrBuf list = {0}, shape = {0};
    for (int i = 0; i < n; i++) {
        shape.len = 0;
        shape_encode(&v[i], &shape);
        wire_put_bytes(&list, SHAPE, strbuf_str(&shape));
    }
    Str made = make_bytes(a, LIST, strbuf_str(&list));
    strbuf_clear(&shape);
    strbuf_clear(&list);
    return made;
}

Str attr_make_func(Arena *a, Str name) {
    StrBuf func = {0};
    wire_put_bytes(&func, 1, name);
    Str made = make_bytes(a, FUNC, strbuf_str(&func));
    strbuf_clear(&func);
    return made;
}

Str attr_make_funcs(Arena *a, const Str *names, int n) {
    StrBuf list = {0}, func = {0};
    for (int i = 0; i < n; i++) {
        func.len = 0;
        wire_put_bytes(&func, 1, names[i]);
        wire_put_bytes(&list, LIST_FUNC, strbuf_str(&func));
    }
    Str made = make_bytes(a, LIST, strbuf_str(&list));
    strbuf_clear(&func);
    strbuf_clear(&list);
    return made;
}
