"""Gradients that are rows of a table, for callers that take them; values taken as constants."""
import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from gradient_case import Case, control_flow, floats, run, run_extended, values


def one_lookup():
    v = tf.get_variable("v", initializer=values(5, 3), use_resource=True)
    return tf.square(tf.gather(v, [[0, 4], [0, 1]])), [v]


def two_lookups():
    v = tf.get_variable("v", initializer=values(5, 3), use_resource=False)
    return [tf.gather(v, [0, 2, 2]) * 2, tf.square(tf.gather(v, tf.constant([4, 0], tf.int64)))], [v]


def through_identity():
    x = floats(5, 3)
    return tf.nn.embedding_lookup(tf.identity(x), [1, 1, 3]), [x]


def segments():
    x = floats(4, 3)
    return tf.sparse_segment_mean(x, tf.constant([0, 1, 3, 0]), tf.constant([0, 0, 1, 1]), sparse_gradient=True), [x]


@pytest.mark.parametrize("build", [one_lookup, two_lookups, through_identity, segments])
def test_rows_of_a_table(build, rill):
    case = Case(build)
    with case.graph.as_default(), control_flow(False):
        wanted, = tf.gradients(case.ys, case.xs, grad_ys=case.dxs)
        assert isinstance(wanted, tf.IndexedSlices)
        want = run(case.graph, tf.convert_to_tensor(wanted), "", case.init)
    (names,), graph_def = case.extended(sparse=True)
    assert len(names) == 3
    for target in ("", rill):
        rows, indices, shape = run_extended(graph_def, names, target, case.init)
        table = np.zeros(shape)
        np.add.at(table, indices, rows)
        np.testing.assert_allclose(table, want, rtol=1e-10)


def mixed():
    v = tf.get_variable("v", initializer=values(5, 3), use_resource=True)
    return [tf.gather(v, [0, 2]), tf.square(v)], [v]


def test_rows_and_a_dense_part_add_up_to_a_dense_gradient():
    (names,), _ = Case(mixed).extended(sparse=True)
    assert len(names) == 1


def stopped():
    x = floats(3)
    a = tf.identity(x * x, name="a")
    return a * x, [x]


def test_values_can_be_taken_as_constants(rill):
    case = Case(stopped)
    with case.graph.as_default():
        want = run(case.graph, tf.gradients(case.ys, case.xs, grad_ys=case.dxs, stop_gradients=[case.graph.get_tensor_by_name("a:0")])[0], "", None)
    (names,), graph_def = case.extended(stops=["a:0"])
    np.testing.assert_allclose(run_extended(graph_def, names, rill, None)[0], want, rtol=1e-10)


def test_without_given_gradients_each_y_counts_once(rill):
    case = Case(stopped, given=False)
    (names,), graph_def = case.extended()
    np.testing.assert_allclose(run_extended(graph_def, names, rill, None)[0], case.expected()[0], rtol=1e-10)
