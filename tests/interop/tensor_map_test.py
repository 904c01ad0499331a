"""Maps of tensors and composite tensors between tasks: Rill reads what TensorFlow wrote and the other way round."""
import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from tensorflow.python.ops import composite_tensor_ops

raw = tf.raw_ops
TASKS = ["/job:ps/task:0", "/job:worker/task:0", "/job:worker/task:1"]


@pytest.mark.parametrize("cluster", ["rill_ps_cluster", "tf_ps_cluster"])
def test_maps_cross_between_tasks(request, graph, cluster):
    nested = raw.TensorMapInsert(input_handle=raw.EmptyTensorMap(), key=np.int64([4, 5]), value="deep")
    fetches = []
    for maker in TASKS:
        with tf.device(maker):
            m = raw.TensorMapInsert(input_handle=raw.EmptyTensorMap(), key="key", value=np.float32([1, 2]))
            m = raw.TensorMapInsert(input_handle=m, key=7, value=tf.identity(nested))
        for taker in TASKS:
            with tf.device(taker):
                inner = raw.TensorMapLookup(input_handle=m, key=7, value_dtype=tf.variant)
                fetches.append([raw.TensorMapSize(input_handle=m), raw.TensorMapHasKey(input_handle=m, key=8), raw.TensorMapLookup(input_handle=m, key="key", value_dtype=tf.float32),
                                raw.TensorMapLookup(input_handle=inner, key=np.int64([4, 5]), value_dtype=tf.string)])
    with tf.Session(request.getfixturevalue(cluster).target("worker")) as session:
        for size, has, value, deep in session.run(fetches):
            assert (size, has, deep) == (2, False, b"deep")
            np.testing.assert_array_equal(value, [1, 2])


@pytest.mark.parametrize("cluster", ["rill_ps_cluster", "tf_ps_cluster"])
def test_composite_tensors_cross_between_tasks(request, graph, cluster):
    value = tf.RaggedTensor.from_row_splits(["a", "bc", ""], np.int64([0, 2, 2, 3]))
    fetches = []
    for maker in TASKS:
        with tf.device(maker):
            encoded = composite_tensor_ops.composite_tensor_to_variants(value)
        for taker in TASKS:
            with tf.device(taker):
                fetches.append(composite_tensor_ops.composite_tensor_from_variant(encoded, value._type_spec))
    with tf.Session(request.getfixturevalue(cluster).target("worker")) as session:
        for got in session.run(fetches):
            assert got.to_list() == [[b"a", b"bc"], [], [b""]]
