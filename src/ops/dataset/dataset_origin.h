/* dataset_origin.h: DatasetOrigin, the op a dataset was made by, kept so that what it computes can be told from others. */
#pragma once
#include "ops/dataset/dataset.h"

/* Keeps the node's op and attributes, and references to its inputs. */
DatasetOrigin *dataset_origin_new(KernelContext *k);
void dataset_origin_free(DatasetOrigin *o); /* NULL is allowed */

/* The op, and the name the user gave to the dataset; both empty when they are not known. */
Str dataset_origin_op(const Dataset *d);
Str dataset_origin_name(const Dataset *d);

/* Input i of the op, borrowed; NULL: it has none. Attribute i; false: it has none. The functions that attributes name; NULL: there are none. */
const Tensor *dataset_origin_input(const Dataset *d, int i);
bool dataset_origin_attr(const Dataset *d, int i, Str *name, Str *value);
/* What the first component of every element has in its first dimension, as the op says; -1 when that is not known. */
int64_t dataset_origin_rows(const Dataset *d);
const FunctionLibrary *dataset_origin_functions(const Dataset *d);
/* Calls it for every op of the functions that attributes name, until it gives an error, and returns that. */
typedef Error *OpVisitor(Str op);
Error *dataset_origin_visit(const Dataset *d, OpVisitor *visit) MUST_CHECK;
/* FailedPrecondition when its functions hold an op that keeps something between calls. */
Error *dataset_origin_check_state(const Dataset *d) MUST_CHECK;
Error *dataset_check_state(const Dataset *d) MUST_CHECK; /* the same for it and all it reads from */
/* A dataset made by the same op with the same attributes of other inputs: inputs[i] instead of d->inputs[i]. A new reference. */
Error *dataset_origin_remake(KernelContext *k, const Dataset *d, Dataset *const *inputs, Dataset **out) MUST_CHECK;

/* The same for datasets made the same way of the same data, in every process: by the ops and their attributes, the bodies
 * of their functions and the values of their inputs, whatever the names of nodes and functions. What files hold does not
 * count. */
uint64_t dataset_fingerprint(const Dataset *d);
