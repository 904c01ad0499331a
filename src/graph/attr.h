/* attr.h: attribute values of nodes, kept as serialised AttrValue and read when asked for. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

typedef struct Attr {
    Str name;
    Str value; /* serialised AttrValue */
} Attr;

/* Readers of one value: false when it is of another kind. Protobuf's rule holds: the last one wins. */
bool attr_string(Str value, Str *out);
bool attr_int(Str value, int64_t *out);
bool attr_float(Str value, float *out);
bool attr_bool(Str value, bool *out);
bool attr_type(Str value, DataType *out);
bool attr_shape(Str value, PartialShape *out);
bool attr_tensor(Str value, Str *tensor_proto);
bool attr_func(Str value, Str *name_attr_list); /* serialised NameAttrList */
bool attr_placeholder(Str value, Str *out);
bool attr_is_list(Str value);

/* Readers of lists: fill at most `max` items and return how many there are; -1 when malformed. out may be NULL. */
int attr_list_strings(Str value, Str *out, int max);
int attr_list_ints(Str value, int64_t *out, int max);
int attr_list_floats(Str value, float *out, int max);
int attr_list_bools(Str value, bool *out, int max);
int attr_list_types(Str value, DataType *out, int max);
int attr_list_shapes(Str value, PartialShape *out, int max);
int attr_list_tensors(Str value, Str *out, int max); /* serialised TensorProtos */
int attr_list_funcs(Str value, Str *out, int max);

/* NameAttrList: its name, and its attributes in turn. */
Str func_name(Str name_attr_list);
int func_attrs(Str name_attr_list, Attr *out, int max);

/* Makers, in the arena. */
Str attr_make_string(Arena *a, Str v);
Str attr_make_int(Arena *a, int64_t v);
Str attr_make_float(Arena *a, float v);
Str attr_make_bool(Arena *a, bool v);
Str attr_make_type(Arena *a, DataType v);
Str attr_make_shape(Arena *a, const PartialShape *v);
Str attr_make_tensor(Arena *a, const Tensor *v);
Str attr_make_types(Arena *a, const DataType *v, int n);
Str attr_make_shapes(Arena *a, const PartialShape *v, int n);
Str attr_make_func(Arena *a, Str name); /* of a function without attributes */
Str attr_make_funcs(Arena *a, const Str *names, int n);
Str attr_make_strings(Arena *a, const Str *v, int n);
