/* symbolic_gradient.h: what SymbolicGradient computes: the gradient of a function, as the body of another one. */
#pragma once
#include "base/error.h"
#include "graph/function.h"

/* Arguments: those of the function, then a gradient for each of its results. Results: a gradient for each of its
 * arguments; zeros where there is none. The function is computed again. The library is only read. `nesting` counts
 * gradients of gradients: more than a few are an error. */
Error *symbolic_gradient_body(const FunctionLibrary *lib, Str name_attr_list, int nesting,
                              FunctionBody **out) MUST_CHECK;
