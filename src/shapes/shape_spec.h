/* shape_spec.h: rules written as a line of text.

   "[n,k] [k] -> [n]": one item for each argument of the op (not each tensor: what an argument repeats, its item repeats), then
   one for each result. Arguments without an item are not looked at; results without one are unknown. An item is

     *            anything; as a result: unknown
     []           a scalar
     [n,3,?]      that rank; n is the same number wherever it stands, ? any
     [S...,m,n]   at least that rank; S stands for the dimensions before (or, at the end, after); ... for any
     S            a whole shape, the same wherever it stands
     {dim}        inside brackets: the integer attribute dim
     @shape       a result as the attribute shape says, @shapes for a list of them: one for each tensor

   Small letters are dimensions, capitals shapes. */
#pragma once
#include "shapes/shape_context.h"

void shape_spec_apply(ShapeContext *c, const char *spec);
