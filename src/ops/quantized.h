/* quantized.h: tensors of integers that stand for floats, and the ranges that come with them. */
#pragma once
#include "kernels/quantized.h"
#include "runtime/kernel.h"

const QuantizedType *quantized_type(DataType t); /* of qint8, quint8, qint16, quint16, qint32 */

/* The range in inputs i and i + 1, of which each must be one number: `low` and `high` name them in the error. */
Error *quantized_range_input(KernelContext *k, int i, const char *low, const char *high, QuantizedRange *out) MUST_CHECK;
/* Outputs i and i + 1, scalars. False: k->error is set. */
bool quantized_range_output(KernelContext *k, int i, QuantizedRange r);

/* InvalidArgument unless the type attribute has this value: kernels of several types exist for some combinations only. */
Error *quantized_need_type(const Node *node, const char *attr, DataType want) MUST_CHECK;
