/* quantized.h: tensors of integers that stand for floats, and the ranges that come with them. */
#pragma once
#include "kernels/quantized.h"
#include "runtime/kernel.h"

const QuantizedType *quantized_type(DataType t); /* of qint8, quint8, qint16, quint16, qint32 */

/* The range in inputs i and i + 1, of which each must be one number: `low` and `high` name them in the error. */
Error *quantized_range_input(KernelContext *k, int i, const char *low, const char *high, QuantizedRange *out) MUST_CHECK;
/* The same where they must be scalars, which TensorFlow's ops say in different words. */
typedef enum QuantizedWords {
    QUANTIZED_QUOTED, /* `min_x` must be rank 0 but is rank 1 */
    QUANTIZED_PLAIN,  /* without the quotes */
    QUANTIZED_SHAPE,  /* min_x shape must be rank 0 but is rank 1, received shape: [2] */
    QUANTIZED_SCALAR, /* min_x must be a scalar, but got shape[2] */
} QuantizedWords;
Error *quantized_scalars_input(KernelContext *k, int i, const char *low, const char *high, QuantizedWords words, QuantizedRange *out) MUST_CHECK;
/* Outputs i and i + 1, scalars. False: k->error is set. */
bool quantized_range_output(KernelContext *k, int i, QuantizedRange r);

/* InvalidArgument unless the type attribute has this value: kernels of several types exist for some combinations only. */
Error *quantized_need_type(const Node *node, const char *attr, DataType want) MUST_CHECK;
