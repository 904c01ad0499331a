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


# ---- In branches, calls and loops ----

def table(kind):
    if kind == "tensor":
        return floats(6, 3)
    return tf.get_variable("v", initializer=values(6, 3), use_resource=kind == "resource")


def look(v, ids, weight=1.0):
    return tf.reduce_sum(tf.square(tf.gather(v, ids))) * weight


def steps(body):
    """What body(i) gives for 0, 1 and 2, added up in a loop."""
    return tf.while_loop(lambda i, _: i < 3, lambda i, a: (i + 1, a + body(i)), [0, tf.constant(0.0, tf.float64)])[1]


def yes():
    return tf.constant(values(1)) < 2


def zero():
    return tf.constant(0.0, tf.float64)


def cond(test, yes_branch, no_branch):
    return tf.cond(tf.reshape(test, []), yes_branch, no_branch)


PLACES = {
    "loop": lambda v: steps(lambda i: look(v, [i, 5, 5])),
    "loop and outside": lambda v: steps(lambda i: look(v, [i, 5])) + look(v, [4]),
    "loop, two kinds of indices": lambda v: steps(lambda i: look(v, [i, 5]) + look(v, tf.constant([2], tf.int64))),
    "loop, dense too": lambda v: steps(lambda i: look(v, [i, 5]) + tf.reduce_sum(v * v)),
    "loop in a loop": lambda v: steps(lambda i: steps(lambda j: look(v, [i + j, 5]))),
    "cond in a loop": lambda v: steps(lambda i: cond(i > 0, lambda: look(v, [i, 5]), zero)),
    "branch that is taken": lambda v: cond(yes(), lambda: look(v, [1, 1]), zero),
    "branch that is not": lambda v: cond(yes(), zero, lambda: look(v, [1, 1])),
    "both branches": lambda v: cond(yes(), lambda: look(v, [1, 1]), lambda: look(v, tf.constant([3], tf.int64))),
    "a dense branch": lambda v: cond(yes(), lambda: look(v, [1, 1]), lambda: tf.reduce_sum(v * 2)),
    "rows of what a cond chose": lambda v: look(cond(yes(), lambda: tf.identity(v), lambda: v * 2), [1, 4]),
    "case": lambda v: tf.switch_case(tf.constant(1), [lambda: look(v, [1]), lambda: look(v, [2, 2]), zero]),
    "call": lambda v: tf.function(lambda: look(v, [0, 3, 3]))() if not isinstance(v, tf.Tensor) else tf.function(lambda t: look(t, [0, 3]))(v),
    "call in a loop": lambda v: steps(lambda i: tf.function(lambda t, k: look(t, [k, 3]))(v, i)),
    "call in a call": lambda v: tf.function(lambda t: tf.function(lambda u: look(u, [2]))(t) + look(t, [0]))(v),
    "cond in a call": lambda v: tf.function(lambda t: cond(yes(), lambda: look(t, [2]), zero) + look(t, [0]))(v),
}
REF_ONLY_OUTSIDE = {"call", "call in a loop", "call in a call", "cond in a call"}  # functions take no references
ALL_ROWS = {"a dense branch", "rows of what a cond chose"}  # TensorFlow makes rows of a dense gradient that meets one of rows in an If; Rill adds the rows up


@pytest.mark.parametrize("v1", [True, False], ids=["switch", "functional"])
@pytest.mark.parametrize("kind", ["resource", "ref", "tensor"])
@pytest.mark.parametrize("place", list(PLACES))
def test_rows_stay_rows_where_tensorflow_keeps_them(place, kind, v1, rill):
    if kind == "ref" and place in REF_ONLY_OUTSIDE or kind == "resource" and place in REF_ONLY_OUTSIDE - {"call"}:
        pytest.skip("not a program")
    if (place, kind, v1) == ("loop in a loop", "resource", True):
        pytest.skip("TensorFlow's own gradient fails: the shape of a resource in an inner loop is taken as known")

    def build():
        v = table(kind)
        return PLACES[place](v), [v]
    build.v1 = v1
    case = Case(build)
    with case.graph.as_default(), control_flow(v1):
        wanted, = tf.gradients(case.ys, case.xs, grad_ys=case.dxs)
        want = run(case.graph, tf.convert_to_tensor(wanted), "", case.init)
    (names,), graph_def = case.extended(sparse=True)
    if place not in ALL_ROWS or v1:
        assert (len(names) == 3) == isinstance(wanted, tf.IndexedSlices), (names, type(wanted))
    for target in ("", rill):
        found = run_extended(graph_def, names, target, case.init)
        if len(names) == 3:
            rows, indices, shape = found
            found = [np.zeros(shape)]
            np.add.at(found[0], indices, rows)
        np.testing.assert_allclose(found[0], want, rtol=1e-10)


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
