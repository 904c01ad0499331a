"""Graphs of gathers, scatters, segments, partitions and diagonals."""
import numpy as np
import tensorflow.compat.v1 as tf

from gradient_case import case, floats, values


@case()
def gathers():
    x = floats(5, 3, 4)
    i = tf.constant([[0, 2], [2, 1]])
    return [tf.gather(x, i), tf.raw_ops.Gather(params=x, indices=i), tf.gather(x, i, axis=1), tf.gather(x, [0, 2, 2], axis=-1)], [x]


@case()
def gather_batches():
    x = floats(2, 3, 4, 5)
    i = tf.constant([[0, 2], [2, 1]])
    j = tf.constant(np.arange(12).reshape(2, 3, 2) % 4)
    return [tf.gather(x, i, batch_dims=1, axis=2), tf.gather(x, i, batch_dims=1), tf.gather(x, j, batch_dims=2, axis=3), tf.gather(x, j, batch_dims=-1)], [x]


@case()
def gather_nd():
    x = floats(3, 4, 2)
    return [tf.gather_nd(x, [[0, 1], [2, 3], [0, 1]]), tf.gather_nd(x, [[1], [1]]), tf.gather_nd(x, tf.constant([[[0, 0, 1]]], tf.int64))], [x]


@case()
def variable_gathers():
    v = tf.get_variable("v", initializer=values(5, 3), use_resource=True)
    i = tf.constant([0, 2, 2])
    return [tf.gather(v, i), tf.gather(v, [[1]]), tf.gather_nd(v, [[0, 1], [4, 2]])], [v]


@case()
def embedding_of_reference_variable():
    v = tf.get_variable("v", initializer=values(5, 3), use_resource=False)
    return tf.nn.embedding_lookup(v, [[0, 1], [1, 4]]), [v]


@case()
def embedding_sharded():
    vs = [tf.get_variable("v%d" % i, initializer=values(3, 2, seed=i), use_resource=i == 0) for i in range(2)]
    return tf.nn.embedding_lookup(vs, [0, 5, 5, 2]), vs


@case()
def scatters():
    x, u = floats(4, 3), floats(2, 3, seed=1)
    i = tf.constant([[0], [2]])
    return [tf.scatter_nd(i, u, [4, 3]), tf.raw_ops.ScatterNdNonAliasingAdd(input=x, indices=i, updates=u), tf.tensor_scatter_nd_add(x, i, u),
            tf.tensor_scatter_nd_sub(x, i, u), tf.tensor_scatter_nd_update(x, i, u)], [x, u]


@case()
def scatter_extremes():
    x, u = tf.constant([1., 2, 3, 4], tf.float64), tf.constant([2., 2, 5], tf.float64)
    i = tf.constant([[1], [1], [3]])
    return [tf.tensor_scatter_nd_max(x, i, u), tf.tensor_scatter_nd_min(x, i, u)], [x, u]


@case()
def partitions():
    x = floats(5, 2)
    parts = tf.dynamic_partition(x, [0, 2, 0, 1, 2], 3)
    i = [tf.constant([0, 3]), tf.constant([[1, 3], [2, 0]])]
    data = [floats(2, 2, seed=1), floats(2, 2, 2, seed=2)]
    return [parts[0], parts[2], tf.dynamic_stitch(i, data), tf.raw_ops.ParallelDynamicStitch(indices=i, data=data)], [x] + data


@case()
def segments():
    x = tf.constant([[1., 2], [0, 2], [3, 4], [3, 0], [5, 6]], tf.float64)
    ids = tf.constant([0, 0, 1, 1, 3])
    return [f(x, ids) for f in (tf.segment_sum, tf.segment_mean, tf.segment_max, tf.segment_min, tf.segment_prod)], [x]


@case()
def unsorted_segments():
    x = tf.constant([[1., 2], [4, 2], [3, 4], [3, 0], [5, 6]], tf.float64)
    ids = tf.constant([1, -1, 1, 2, 2])
    return [f(x, ids, 3) for f in (tf.unsorted_segment_sum, tf.unsorted_segment_max, tf.unsorted_segment_min, tf.unsorted_segment_prod)], [x]


@case()
def sparse_segments():
    x = floats(4, 3)
    i, ids = tf.constant([0, 1, 3, 0]), tf.constant([0, 0, 1, 1])
    return [f(x, i, ids) for f in (tf.sparse_segment_sum, tf.sparse_segment_mean, tf.sparse_segment_sqrt_n)] + \
           [f(x, i, ids, num_segments=3) for f in (tf.sparse_segment_sum, tf.sparse_segment_mean, tf.sparse_segment_sqrt_n)], [x]


@case()
def sparse_segments_with_sparse_gradients():
    x = floats(4, 3)
    i, ids = tf.constant([0, 1, 3, 0]), tf.constant([0, 0, 1, 1])
    return [f(x, i, ids, sparse_gradient=True) for f in (tf.sparse_segment_sum, tf.sparse_segment_mean, tf.sparse_segment_sqrt_n)], [x]


@case()
def diagonals():
    v, m = floats(2, 3), floats(2, 3, 4)
    square, d = floats(3, 3), floats(2, 2, 3, seed=1)
    return [tf.diag(v[0]), tf.diag_part(square), tf.matrix_diag(v), tf.matrix_diag_part(m), tf.matrix_set_diag(m, v), tf.raw_ops.MatrixDiag(diagonal=v),
            tf.raw_ops.MatrixDiagPart(input=m), tf.raw_ops.MatrixSetDiag(input=m, diagonal=v), tf.matrix_diag_part(m, k=(0, 1), align="LEFT_RIGHT"),
            tf.matrix_set_diag(m, d, k=(0, 1)), tf.matrix_diag(d, k=(-1, 0)), tf.raw_ops.MatrixDiagV2(diagonal=v, k=1, num_rows=-1, num_cols=-1, padding_value=tf.constant(0., tf.float64)),
            tf.raw_ops.MatrixDiagPartV2(input=m, k=1, padding_value=tf.constant(0., tf.float64)), tf.raw_ops.MatrixSetDiagV2(input=m, diagonal=v, k=1)], [v, m, square, d]
