/* attr_value_internal.h: attribute values made from what the C API gives, and their kinds. */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "graph/op_def.h"
#include "tensorflow/c/c_api.h"

/* What an AttrValue is. A list without elements has no kind of its own: `is_empty_list`. */
typedef struct AttrKind {
    TF_AttrType type;
    bool is_list, is_empty_list, is_set;
    int64_t size; /* of lists */
} AttrKind;
/* declared: the op's "list(int)" and the like, which tells the kind of empty lists; may be empty. */
AttrKind attr_kind(Str value, Str declared);
/* "int", "list(string)", ...; "list(any)" for an empty one. */
const char *attr_kind_name(AttrKind kind);

/* InvalidArgument when a value is not of the kind that the op declares. */
Error *attr_check_kind(Str value, const AttrInfo *declared) MUST_CHECK;

/* A list of n values: put writes the i-th one into a ListValue. */
typedef void PutAttrItem(StrBuf *list, const void *items, int i);
Str attr_make_list(Arena *a, PutAttrItem *put, const void *items, int n);
