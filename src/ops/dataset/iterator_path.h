/* iterator_path.h: errors that say where in a pipeline they come from. */
#pragma once
#include "ops/dataset/dataset.h"

/* An error of a function that the user gave to the iterator's dataset; takes and returns it, NULL stays NULL. */
Error *iterator_function_error(const DatasetIterator *it, Error *take) MUST_CHECK;

/* What the path of an iterator calls its last step: "Map" of Iterator::Root::Map. */
void iterator_step_name(const DatasetIterator *it, StrBuf *out);

/* Only the end of a sequence is out of range, and that is no error: another error instead. Takes err. */
Error *iterator_out_of_range(const DatasetIterator *it, Error *take) MUST_CHECK;
