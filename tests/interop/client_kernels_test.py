"""What TensorFlow's tests of its kernels ask of single ops: odd windows, empty tensors, special values, files of all kinds. Values are TensorFlow's."""
import numpy as np
import tensorflow.compat.v1 as tf

from client_programs import table

R = tf.raw_ops


def ramp(*shape, dtype=np.float32):
    """Numbers that differ, of both signs."""
    return (np.arange(np.prod(shape)) * 7 % 23 - 9).reshape(shape).astype(dtype)


def with_gradients(y, *xs):
    return [y, tf.gradients(y * y, xs)]


def conv_without_filters():
    x, w = tf.constant(ramp(1, 8, 8, 3)), tf.zeros([2, 2, 3, 0])
    return with_gradients(tf.nn.conv2d(x, w, [1, 1, 1, 1], "VALID"), x, w)


test_windows = table({
    "a pool over channels tells the place of each": lambda: list(R.MaxPoolWithArgmax(input=ramp(1, 2, 2, 6), ksize=[1, 1, 1, 3], strides=[1, 1, 1, 3], padding="SAME")),
    "a pool over channels with strides over columns": lambda: R.MaxPool(input=ramp(2, 3, 3, 2), ksize=[1, 1, 1, 2], strides=[1, 1, 2, 2], padding="SAME"),
    "a convolution without filters": conv_without_filters,
})


def slopes(op):
    """Gradients that are no numbers where the slope is 0."""
    def fetches():
        x = tf.constant([-1.0, 0.0, 2.0, 7.0, np.nan, -3.0])
        return getattr(R, op)(gradients=tf.constant([np.nan, np.inf, 3.0, -np.inf, 1.0, -2.0]), features=x)
    return fetches


test_activations = table({op: slopes(op) for op in ("ReluGrad", "Relu6Grad", "LeakyReluGrad", "SoftplusGrad", "SoftsignGrad")})


def quantized(dtype, held):
    """A quantised type is cast as the integer it holds."""
    def fetches():
        x = tf.constant([0, 1, 100], held)
        there = [R.Cast(x=tf.bitcast(x, dtype), DstT=to) for to in (tf.float32, tf.int64, tf.uint8, tf.bool, tf.complex64)]
        return there + [tf.bitcast(R.Cast(x=tf.cast(x, source), DstT=dtype), held) for source in (tf.float32, tf.int64, tf.bool)]
    return fetches


test_casts = table({dtype.name: quantized(dtype, held) for dtype, held in (
    (tf.qint8, tf.int8), (tf.quint8, tf.uint8), (tf.qint16, tf.int16), (tf.quint16, tf.uint16), (tf.qint32, tf.int32))})
