/* function.h: FunctionLibrary, the functions of a graph: signatures, and bodies made into graphs when called. */
#pragma once
#include "base/error.h"
#include "graph/graph.h"
#include "graph/op_def.h"

typedef struct Function {
    Str name;
    Str def;      /* serialised FunctionDef */
    OpInfo *info; /* its signature, as if it were an op */
} Function;

/* Grows only; functions live as long as the library. Not thread-safe while it grows. */
FunctionLibrary *function_library_new(void);
void function_library_free(FunctionLibrary *lib);
const Function *function_find(const FunctionLibrary *lib, Str name); /* NULL when unknown */
int function_count(const FunctionLibrary *lib);
const Function *function_at(const FunctionLibrary *lib, int i); /* in the order they were added */
/* Adds the functions of a serialised FunctionDefLibrary and what it says of their gradients; the same again is fine, another function or gradient
 * of that name is not. */
Error *function_library_add(FunctionLibrary *lib, Str library) MUST_CHECK;
/* The whole library, or the part that `roots` need, serialised. */
void function_library_encode(const FunctionLibrary *lib, StrBuf *out);

/* The function that computes the gradient of another, from its arguments and the gradients by its results; empty: it is derived from the body. */
Str function_gradient(const FunctionLibrary *lib, Str name);
Error *function_set_gradient(FunctionLibrary *lib, Str name, Str gradient) MUST_CHECK;
/* The name of the function that a node calls, by its own op or by PartitionedCall; empty when it is no call. */
Str function_callee(const FunctionLibrary *lib, const Node *n);

/* The function to be called instead of `f` on a device of that type ("CPU"): one that implements the same, is meant for such devices and has the
 * same signature; `f` itself when there is none. TensorFlow's master chooses so too (for random gamma of tensorflow_probability, say), and the values differ. */
const Function *function_implementation(const FunctionLibrary *lib, const Function *f, Str device_type);

/* For a node whose op is a function's name: the NameAttrList of the function with the node's attributes. */
Str function_reference(Arena *arena, const Node *call);

/* The body of a function as nodes. Arguments are _Arg nodes (attr index), results are given as edges. */
typedef struct FunctionBody {
    Graph *graph;
    Node **args;
    int arg_count;
    Output *rets;
    int ret_count;
    Node **control_rets; /* must run even when no result is used */
    int control_ret_count;
} FunctionBody;

/* Instantiates: attribute placeholders are replaced by `attrs`. The body's graph uses `lib` without owning it. */
Error *function_instantiate(const FunctionLibrary *lib, const Function *f, const Attr *attrs, int attr_count,
                            FunctionBody **out) MUST_CHECK;
void function_body_free(FunctionBody *body);
