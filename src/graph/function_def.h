/* function_def.h: a body made by hand, written as FunctionDef. */
#pragma once
#include "base/str.h"
#include "graph/function.h"

/* A FunctionDef without attributes of its own: arguments and results have fixed types. Arguments and results are named
 * after their nodes and positions; `body->args` gives their order. Nodes must be resolved. */
Error *function_def_encode(const FunctionBody *body, Str name, StrBuf *out) MUST_CHECK;
/* The same, added to a library. */
Error *function_def_add(FunctionLibrary *lib, const FunctionBody *body, Str name) MUST_CHECK;
