/* variable_internal.h: initial values of a part of a variable. */
#pragma once
#include "rill/variable.h"

/* Of rows [first, first + rows) of a variable of shape `full`; random values are scaled as for the whole. */
RillTensor initial_part(RillGraph *g, const RillInit *init, TF_DataType type, const int64_t *full, int rank, int64_t first, int64_t rows);
