"""SymbolicGradient, which TensorFlow 1 clients send for functions made by Defun: run by Rill, expanded when the graph is placed or when a function is called."""
import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from tensorflow.python.framework import function
from tensorflow.python.ops import functional_ops

from gradient_case import control_flow, run, values


def defun(python, count):
    return function.Defun(*[tf.float64] * count)(python)


def symbolic(f, *xs):
    """The gradients of f by xs, by the op."""
    return tf.raw_ops.SymbolicGradient(input=[*xs, tf.ones_like(xs[0])], Tout=[x.dtype for x in xs], f=f)


def product(x, y):
    return tf.sin(x) * y * y


def inner(z):
    return tf.exp(z) * z


def nested(x, y):
    g = defun(inner, 1) if isinstance(tf.get_default_graph(), function._FuncGraph) else inner
    return g(x * g(y)) + y


def loop(x, y):
    return tf.while_loop(lambda i, a: i < 3, lambda i, a: [i + 1, tf.sin(a) * y], [0, x])[1]


def branch(x, y):
    return tf.cond(tf.reduce_sum(x) > 0, lambda: x * y, lambda: tf.exp(x) + y)


def flat(x, y):
    return tf.floor(x) + y


@pytest.mark.parametrize("v1", [True, False])
@pytest.mark.parametrize("python", [product, nested, loop, branch, flat])
def test_gradients_of_a_function(python, v1, rill):
    with tf.Graph().as_default() as graph, control_flow(v1):
        x, y = tf.constant(values(3)), tf.constant(values(3, seed=1))
        wanted = [tf.zeros_like(v) if g is None else g for v, g in zip((x, y), tf.gradients(python(x, y), [x, y]))]
        f = defun(python, 2)
        f.add_to_graph(graph)
        found = symbolic(f, x, y)
    expected = run(graph, wanted, "", None)
    for got, want in zip(run(graph, list(found), rill, None), expected):
        np.testing.assert_allclose(got, want, rtol=1e-10)


def test_a_gradient_of_its_own_is_called(rill):
    """Of a function, of one that another calls, and in a loop: what the library says, not what the body would give."""
    @function.Defun(tf.float64, tf.float64, tf.float64)
    def own_gradient(x, y, dy):
        return dy * 100.0 * y, dy * x * x

    @function.Defun(tf.float64, tf.float64, grad_func=own_gradient)
    def own(x, y):
        return tf.sin(x) * y

    @function.Defun(tf.float64, tf.float64)
    def outer(x, y):
        return own(x * 2.0, y) * y

    with tf.Graph().as_default() as graph:
        x, y = tf.constant(values(3)), tf.constant(values(3, seed=1))
        looped = tf.while_loop(lambda i, a: i < 3, lambda i, a: [i + 1, tf.reshape(own(a, y), [3])], [0, x])[1]
        found = [g for f in (own, outer) for g in tf.gradients(f(x, y), [x, y])] + tf.gradients(looped, [x, y])
    assert graph.as_graph_def().library.gradient
    expected = run(graph, found, "", None)
    np.testing.assert_allclose(expected[0], 100 * values(3, seed=1))
    for got, want in zip(run(graph, found, rill, None), expected):
        np.testing.assert_allclose(got, want, rtol=1e-10)


def test_inside_of_a_function_that_is_called_at_run_time(rill):
    with tf.Graph().as_default() as graph:
        f = defun(product, 2)
        f.add_to_graph(graph)

        def body(x):
            return symbolic(f, x, x * 2)[0]

        def cond(x):
            return tf.reduce_sum(tf.abs(x)) < 3
        # A loop that is not lowered calls its body when it runs.
        y = functional_ops.While([tf.constant(values(3))], body=defun(body, 1), cond=defun(cond, 1))[0]
    np.testing.assert_allclose(run(graph, y, rill, None), run(graph, y, "", None), rtol=1e-10)
