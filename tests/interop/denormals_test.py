"""Numbers smaller than the normal ones are zero to every kernel, as in TensorFlow: on the thread that reads the request and on those of the pool."""
import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from client_programs import table


def is_zero(x):
    """What the bits say: a comparison would take small numbers for zero itself."""
    return tf.equal(tf.bitcast(x, tf.int32 if x.dtype == tf.float32 else tf.int64), 0)


def rows(dtype, shape):
    tiny = np.finfo(dtype).tiny
    normal = lambda: tf.placeholder_with_default(np.full(shape, tiny, dtype), None)
    small = lambda: tf.placeholder_with_default(np.full(shape, tiny * 0.25, dtype), None)
    return {
        "product": lambda: is_zero(normal() * dtype(0.1)),
        "constants": lambda: is_zero(tf.constant(tiny, dtype, shape) * dtype(0.1)),
        "sum": lambda: [is_zero(small() + small()), is_zero(tf.add_n([small(), small()])), is_zero(tf.reduce_sum(small()))],
        "quotient": lambda: is_zero(normal() / dtype(4)),
        "root": lambda: is_zero(tf.sqrt(small())),
        "compared": lambda: [tf.equal(small(), dtype(0)), tf.less(dtype(0), small()), tf.cast(small(), tf.bool), tf.math.count_nonzero(small())],
        "rounded": lambda: [tf.floor(-small()), tf.math.ceil(small())],
        "copied": lambda: [is_zero(tf.identity(small())), is_zero(-small()), is_zero(tf.abs(small()))],
    }


ROWS = {"%s %s %s" % (name, dtype.__name__, shape): row for dtype in (np.float32, np.float64) for shape in ((), (1 << 18,)) for name, row in rows(dtype, shape).items()}
test_small_numbers = table(ROWS)


def test_the_client_keeps_them():
    assert np.finfo(np.float32).tiny * np.float32(0.1) != pytest.approx(0, abs=0)
