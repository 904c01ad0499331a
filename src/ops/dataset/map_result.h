/* map_result.h: how a mapped function may end a sequence. */
#pragma once
#include <stdbool.h>

#include "base/error.h"
#include "ops/dataset/dataset.h"

/* OutOfRange from the function ends the sequence, unless it must keep its count: then it is an error of another kind.
 * Takes err. */
Error *map_result(Error *err, bool keep_count, bool *end) MUST_CHECK;
/* The same, and other errors say whose function it was. */
Error *mapped_result(const DatasetIterator *it, Error *err, bool keep_count, bool *end) MUST_CHECK;
