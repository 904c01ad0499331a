"""Graphs of ragged tensors."""
import numpy as np
import tensorflow.compat.v1 as tf

from gradient_case import case, floats

SPLITS = np.array([0, 2, 2, 5], np.int64)


def ragged(x):
    return tf.RaggedTensor.from_row_splits(x, SPLITS)


@case(needs=["RaggedTensorToTensor"])
def ragged_to_tensor():
    x, y, fill = floats(5), floats(5, 2, seed=1), tf.constant(.5, tf.float64)
    return [tf.ensure_shape(ragged(x).to_tensor(default_value=fill), [3, 3]), tf.ensure_shape(ragged(y).to_tensor(), [3, 3, 2])], [x, y, fill]


@case(needs=["RaggedGather", "RaggedRange"])
def ragged_gather():
    x = floats(5, 2)
    return tf.ensure_shape(tf.gather(ragged(x), [2, 0, 2]).flat_values, [8, 2]), [x]


@case(needs=["RaggedTensorToSparse"])
def ragged_to_sparse():
    x = floats(5)
    return tf.ensure_shape(ragged(x).to_sparse().values, [5]), [x]


@case(needs=["RaggedTensorToVariant", "RaggedTensorFromVariant", "RaggedTensorToVariantGradient"])
def ragged_variants():
    x = floats(5)
    encoded = tf.raw_ops.RaggedTensorToVariant(rt_nested_splits=[SPLITS], rt_dense_values=x, batched_input=True)
    decoded = tf.raw_ops.RaggedTensorFromVariant(encoded_ragged=encoded, input_ragged_rank=0, output_ragged_rank=1, Tvalues=tf.float64, Tsplits=tf.int64)
    return tf.ensure_shape(tf.square(decoded.output_dense_values), [5]), [x]


@case(needs=["NthElement"])
def nth_element():
    x = tf.constant([[3., 1, 2, 2], [4, 4, 4, 1]], tf.float64)
    return tf.raw_ops.NthElement(input=x, n=2), [x]


@case(needs=["RaggedFillEmptyRows", "RaggedFillEmptyRowsGrad"])
def ragged_fill_empty_rows():
    x, fill = floats(3), tf.constant(.5, tf.float64)
    filled = tf.raw_ops.RaggedFillEmptyRows(value_rowids=tf.constant([2, 0, 0], tf.int64), values=x, nrows=tf.constant(4, tf.int64), default_value=fill)
    return tf.ensure_shape(tf.square(filled.output_values), [5]), [x, fill]
