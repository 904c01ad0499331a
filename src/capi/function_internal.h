/* function_internal.h: TF_Function, and how one is made of operations. */
#pragma once
#include "capi/graph_internal.h"

struct TF_Function {
    char *name;
    StrBuf def; /* serialised FunctionDef */
};

typedef struct FunctionSpec {
    const TF_Graph *graph;
    Str name, description; /* description may be empty */
    bool append_hash;
    const TF_Operation *const *opers; /* NULL: all but those that make the inputs */
    int oper_count;
    const TF_Output *inputs, *outputs;
    int input_count, output_count;
    const char *const *output_names; /* (optional) */
    const TF_Operation *const *control_outputs;
    int control_output_count;
    const char *const *control_output_names; /* (optional) */
} FunctionSpec;

/* A serialised FunctionDef; its name, with the hash when there is one, malloced. */
Error *function_def_of_graph(const FunctionSpec *spec, StrBuf *out, char **name) MUST_CHECK;
