"""Graphs of ops that move values about."""
import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.compiler.tf2xla.ops import gen_xla_ops
from tensorflow.python.ops import gen_debug_ops

from gradient_case import case, floats, values


@case()
def passing():
    x = floats(2, 3)
    return [tf.identity(x), tf.identity_n([x, x * 2])[1], tf.debugging.check_numerics(x, "x"), tf.ensure_shape(x, [2, 3]), tf.raw_ops.CheckNumericsV2(tensor=x, message="v2"),
            tf.raw_ops.Print(input=x, data=[x], message="", first_n=0, summarize=1)], [x]


@case()
def marked():
    x = floats(2, 3)
    return [gen_debug_ops.debug_identity_v2(x), gen_xla_ops.xla_sharding(x, sharding="")], [x]


@case()
def shapes():
    x = floats(2, 1, 3)
    return [tf.reshape(x, [3, 2]), tf.expand_dims(x, 1), tf.squeeze(x, [1]), tf.transpose(x, [2, 0, 1]), tf.broadcast_to(x, [4, 2, 5, 3])], [x]


@case()
def conjugate_transpose():
    x = floats(2, 3, 4, dtype=np.complex128)
    return tf.transpose(x, [1, 2, 0], conjugate=True), [x]


@case()
def fill():
    x = tf.constant(2.0, tf.float64)
    return tf.fill([2, 3], x), [x]


@case()
def packs():
    x, y = floats(2, 3), floats(2, 3, seed=1)
    a, b, c = tf.unstack(x, axis=1)
    return [tf.stack([x, y, x], axis=1), a * b, c], [x, y]


@case()
def concats():
    x, y, z = floats(2, 3), floats(2, 1, seed=1), floats(2, 3, seed=2)
    return [tf.concat([x, y, x], 1), tf.concat([x, z], -2), tf.raw_ops.Concat(concat_dim=1, values=[y, x]), tf.concat([x], 0),
            tf.concat([x, z], 0)], [x, y, z]


@case()
def splits():
    x = floats(4, 6)
    a, b = tf.split(x, 2, axis=0)
    c, d, e = tf.split(x, [1, 2, 3], axis=1)
    return [a * b, c, e], [x]


@case()
def slices():
    x = floats(4, 5)
    return [tf.slice(x, [1, 0], [2, -1]), x[1:3, ::2], x[:, tf.newaxis, 2], x[::-1, ..., 1:4], tf.slice(x, tf.constant([0, 1], tf.int64), [2, 2])], [x]


@case()
def slice_twice():
    x = floats(4, 5)
    first = tf.gradients(tf.square(x[1:3, ::2]), x)[0]
    return first * 2, [x]


@case()
def slice_update():
    x, v = floats(4, 5), floats(1, 2, seed=1)
    return tf.raw_ops.TensorStridedSliceUpdate(input=x, begin=[1, 0], end=[3, 4], strides=[1, 2], value=v), [x, v]


@case()
def pads():
    x = floats(3, 4)
    p = [[1, 2], [0, 1]]
    return [tf.pad(x, p), tf.pad(x, p, constant_values=3.0), tf.pad(x, p, mode="REFLECT"), tf.pad(x, p, mode="SYMMETRIC"), tf.pad(x, tf.constant(p, tf.int64))], [x]


@case()
def mirror_pad_twice():
    x = floats(3, 4)
    first = tf.gradients(tf.square(tf.pad(x, [[1, 2], [0, 1]], mode="REFLECT")), x)[0]
    return first, [x]


@case()
def tiles():
    x = floats(2, 3)
    return [tf.tile(x, [2, 1]), tf.tile(x, tf.constant([1, 3], tf.int64))], [x]


@case()
def orders():
    x = floats(3, 4, 2)
    return [tf.reverse(x, [1]), tf.raw_ops.Reverse(tensor=x, dims=[True, False, True]), tf.reverse_sequence(x, [1, 4, 2], seq_axis=1, batch_axis=0),
            tf.roll(x, [1, -2], [0, 1])], [x]


@case()
def spaces():
    x = floats(4, 4, 4, 4)
    return [tf.space_to_batch_nd(x, [2, 2], [[0, 0], [1, 1]]), tf.batch_to_space_nd(x, [2, 2], [[0, 1], [1, 0]]), tf.space_to_depth(x, 2), tf.depth_to_space(x, 2),
            tf.raw_ops.SpaceToBatch(input=x, paddings=[[0, 0], [0, 0]], block_size=2), tf.raw_ops.BatchToSpace(input=x, crops=[[0, 0], [1, 1]], block_size=2)], [x]


@case()
def band():
    x = floats(2, 3, 4)
    return tf.matrix_band_part(x, 1, 0), [x]


@case()
def of_unknown_shape():
    x = tf.placeholder_with_default(values(2, 3), None)
    return tf.reshape(tf.concat([x, x * x], 0), [-1]), [x]


@case()
def placeholder_with_default():
    x = floats(3)
    return tf.placeholder_with_default(x, [3]) * 2, [x]


@case()
def unconnected():
    x, z = floats(3), floats(3)
    return tf.stop_gradient(x) * x, [x, z]
