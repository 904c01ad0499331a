"""Graphs of while loops, conds and TensorArrays as TensorFlow 1 makes them: Enter, Merge, Switch, NextIteration, Exit."""
import tensorflow.compat.v1 as tf

from gradient_case import case, floats, values


def v1(build):
    """Builds and differentiates with control flow of TensorFlow 1."""
    build.v1 = True
    return build


@case()
@v1
def cond_v1():
    x, y = floats(2, 3), floats(2, 3, seed=1)
    p = tf.placeholder_with_default(True, [])
    a = tf.cond(p, lambda: x * y, lambda: tf.sin(x))
    b = tf.cond(tf.logical_not(p), lambda: x * y, lambda: tf.sin(x))
    return [a, b], [x, y]


@case()
@v1
def cond_v1_one_side():
    x, y = floats(2, 3), floats(2, 3, seed=1)
    p = tf.placeholder_with_default(False, [])
    return tf.cond(p, lambda: x * x * y, lambda: tf.zeros_like(x)) + x, [x, y]


@case()
@v1
def cond_v1_nested():
    x = floats(3)
    p, q = tf.placeholder_with_default(True, []), tf.placeholder_with_default(False, [])
    return tf.cond(p, lambda: tf.cond(q, lambda: tf.exp(x), lambda: x * x), lambda: -x), [x]


@case()
@v1
def case_v1():
    x = floats(3)
    i = tf.placeholder_with_default(1, [])
    return tf.case([(tf.equal(i, 0), lambda: x * 2), (tf.equal(i, 1), lambda: tf.exp(x))], default=lambda: x), [x]


@case()
@v1
def cond_v1_of_variable():
    v = tf.get_variable("v", initializer=values(3), use_resource=True)
    p = tf.placeholder_with_default(True, [])
    return tf.cond(p, lambda: v * v, lambda: tf.constant(values(3))), [v]


@case()
@v1
def loop_power():
    x = floats(2, 2, low=.5)
    return tf.while_loop(lambda i, a: i < 4, lambda i, a: [i + 1, a * x], [0, x])[1], [x]


@case()
@v1
def loop_of_no_iterations():
    x = floats(2, 2, low=.5)
    n = tf.placeholder_with_default(0, [])
    return tf.while_loop(lambda i, a: i < n, lambda i, a: [i + 1, a * x], [0, x])[1], [x]


@case()
@v1
def loop_of_several_variables():
    x, w = floats(3), floats(3, 3, seed=1)

    def body(i, a, b, c):
        return [i + 1, tf.tanh(tf.tensordot(w, a, 1)) + b, b * tf.cast(i, tf.float64) + a[0], c + 1]
    out = tf.while_loop(lambda i, *_: i < 5, body, [0, x, x * 2, 0.0])
    return [out[1], out[2]], [x, w]


@case()
@v1
def loop_whose_result_is_not_used():
    x = floats(3)

    def body(i, a, b):
        return [i + 1, a * b, tf.sin(b)]
    return tf.while_loop(lambda i, *_: i < 3, body, [0, x, x * 3])[1], [x]


@case()
@v1
def loop_with_cond():
    x = floats(3)

    def body(i, a):
        odd = tf.equal(i % 2, 1)
        return [i + 1, tf.cond(odd, lambda: a * x, lambda: tf.sin(a) + tf.cond(i > 2, lambda: a * a, lambda: x))]
    return tf.while_loop(lambda i, a: i < 5, body, [0, x])[1], [x]


@case()
@v1
def loop_nested():
    x, y = floats(3), floats(3, seed=1)

    def outer(i, a):
        inner = tf.while_loop(lambda j, b: j < i + 1, lambda j, b: [j + 1, tf.sin(b) * y + a], [0, a * x])[1]
        return [i + 1, inner + a]
    return tf.while_loop(lambda i, a: i < 3, outer, [0, x])[1], [x, y]


@case()
@v1
def loop_nested_in_cond():
    x = floats(3)

    def outer(i, a):
        def inner():
            return tf.while_loop(lambda j, b: j < 2, lambda j, b: [j + 1, b * x], [0, a])[1]
        return [i + 1, tf.cond(tf.equal(i % 2, 0), inner, lambda: tf.sin(a))]
    return tf.while_loop(lambda i, a: i < 4, outer, [0, x])[1], [x]


@case()
@v1
def cond_around_loop():
    x = floats(3)
    p = tf.placeholder_with_default(True, [])
    a = tf.cond(p, lambda: tf.while_loop(lambda i, a: i < 3, lambda i, a: [i + 1, a * x], [0, x])[1], lambda: x)
    b = tf.cond(p, lambda: x, lambda: tf.while_loop(lambda i, a: i < 3, lambda i, a: [i + 1, a * x], [0, x])[1])
    return [a, b], [x]


@case()
@v1
def loop_of_changing_shape():
    x = tf.placeholder_with_default(values(1, 2), [None, 2])
    out = tf.while_loop(lambda i, a: i < 3, lambda i, a: [i + 1, tf.concat([a, a * x], 0)], [0, x], [tf.TensorShape([]), tf.TensorShape([None, 2])])[1]
    return tf.reshape(out, [8, 2]), [x]


@case()
@v1
def loop_of_variables():
    v = tf.get_variable("v", initializer=values(3), use_resource=True)
    w = tf.get_variable("w", initializer=values(3, seed=1), use_resource=False)
    x = floats(3, seed=2)
    return tf.while_loop(lambda i, a: i < 3, lambda i, a: [i + 1, tf.sin(a * v) + w], [0, x])[1], [v, w, x]


@case()
@v1
def loop_with_gather():
    table = floats(5, 3)
    x = floats(3, seed=1)
    return tf.while_loop(lambda i, a: i < 4, lambda i, a: [i + 1, a * tf.gather(table, i)], [0, x])[1], [table, x]


@case()
@v1
def tensor_arrays():
    x = floats(4, 3)
    a = tf.TensorArray(tf.float64, 4, clear_after_read=False).unstack(x)
    b = tf.TensorArray(tf.float64, 2, infer_shape=False).write(0, a.read(1) * a.read(2)).write(1, tf.sin(a.read(3)))
    c = tf.TensorArray(tf.float64, 2, infer_shape=False, clear_after_read=False).split(x, [1, 3])
    return [tf.reshape(b.stack(), [2, 3]), a.gather([2, 0]), tf.reshape(c.concat(), [4, 3]), tf.reshape(c.read(1), [3, 3])], [x]


@case()
@v1
def loop_of_tensor_arrays():
    x, w = floats(4, 3), floats(3, 3, seed=1)
    inputs = tf.TensorArray(tf.float64, 4).unstack(x)

    def body(i, state, outputs):
        state = tf.tanh(tf.tensordot(w, state, 1) + inputs.read(i))
        return [i + 1, state, outputs.write(i, state * state)]
    _, state, outputs = tf.while_loop(lambda i, *_: i < 4, body, [0, tf.zeros([3], tf.float64), tf.TensorArray(tf.float64, 4)])
    return [state, outputs.stack()], [x, w]


@case()
@v1
def map_and_scan():
    x = floats(4, 3)
    return [tf.map_fn(lambda a: tf.sin(a) * a, x), tf.scan(lambda a, b: a * b + b, x), tf.foldl(lambda a, b: a * b, x)], [x]
