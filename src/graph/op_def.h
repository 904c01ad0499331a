/* op_def.h: OpDef, a row that says what an op is; OpInfo, the same parsed; the registry of all rows. */
#pragma once
#include <stdbool.h>

#include "base/arena.h"
#include "graph/attr.h"
#include "tensor/dtype.h"

enum {
    OP_STATEFUL = 1,            /* keeps something between steps or talks to the outside: never shared, folded or dropped */
    OP_COMMUTATIVE = 2,
    OP_AGGREGATE = 4,
    OP_UNINITIALIZED_INPUT = 8, /* accepts a reference to a variable that has no value yet */
};

/* One op, by TensorFlow's name.
   signature: "a: T, b: T -> product: T". An argument is NAME: TYPE, where TYPE is a dtype ("int32"), an attribute of type
   "type" ("T"), a number of them ("N * T", "N * int64"), an attribute of type "list(type)", or Ref(TYPE).
   attrs: "T: {float, double}; transpose_a: bool = false; N: int >= 1; padding: {'SAME', 'VALID'}; shapes: list(shape) = []". */
typedef struct OpDef {
    const char *name;
    const char *signature;
    const char *attrs;
    unsigned flags;
} OpDef;

typedef struct ArgInfo {
    Str name;
    DataType type;       /* when it is fixed, else DT_INVALID */
    Str type_attr;       /* else the attribute that gives it */
    Str number_attr;     /* repeated that often */
    Str type_list_attr;  /* or one argument for each type of this list */
    bool is_ref;
} ArgInfo;

typedef struct AttrInfo {
    Str name;
    Str type; /* "type", "int", "string", "list(type)", ... */
    Str default_value; /* serialised AttrValue; ptr NULL when there is none */
    uint64_t allowed_types; /* bit per DataType; 0: any */
    Str allowed_strings;    /* "'SAME', 'VALID'"; empty: any */
    bool has_minimum;
    int64_t minimum;
} AttrInfo;

typedef struct OpInfo {
    Str name;
    unsigned flags;
    int input_count, output_count, attr_count;
    ArgInfo *inputs, *outputs;
    AttrInfo *attrs;
} OpInfo;

/* Parses a row; the result lives in the arena. The row is ours: a mistake in it is reported, naming the op. */
Error *op_info_parse(Arena *arena, const OpDef *def, OpInfo **out) MUST_CHECK;

/* Fills the registry, once, before anything else runs; tables end with a row whose name is NULL. */
void op_registry_init(const OpDef *const *tables, int table_count);
const OpInfo *op_find(Str name);    /* NULL when unknown; thread-safe */
Str op_nearest(Str name);           /* the registered name most like it, for error messages */
int op_count(void);
const OpInfo *op_at(int i);
const AttrInfo *op_attr(const OpInfo *op, Str name); /* NULL when the op has none of that name */
