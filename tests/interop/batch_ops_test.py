"""Requests of concurrent steps put together: Batch, Unbatch, UnbatchGrad, BatchFunction, as TensorFlow's."""
import threading

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
import tensorflow.compat.v2 as tf2

raw = tf2.raw_ops
LONG = 2_000_000_000  # microseconds: batches are full, or time has no part in a test
OPTIONS = {"num_batch_threads": 1, "max_batch_size": 2, "batch_timeout_micros": LONG, "grad_timeout_micros": LONG}


def run_all(session, fetches, feeds):
    """One thread for each feed; the results in their order."""
    results = [None] * len(feeds)

    def run(i):
        try:
            results[i] = session.run(fetches, feeds[i])
        except tf.errors.OpError as e:
            results[i] = e
    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(feeds))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return results


@pytest.fixture(params=["rill", "tf"])
def session(request, rill):
    """A session of a new graph, on Rill and, to know that the test is right, on TensorFlow."""
    with tf.Graph().as_default() as g, tf.Session(rill if request.param == "rill" else "", graph=g) as s:
        yield s


def test_a_batch_of_two_steps(session):
    x = tf.placeholder(tf.int32, [None, 2])
    [batched], index, key = raw.Batch(in_tensors=[x], shared_name="two", **OPTIONS)
    results = run_all(session, [batched, index, key], [{x: [[i, i]]} for i in (1, 2)])
    whole, empty = sorted(results, key=lambda r: -len(r[0]))
    assert sorted(map(tuple, whole[0])) == [(1, 1), (2, 2)] and empty[0].shape == (0, 2) and empty[1].shape == (0, 3)
    assert [list(row[1:]) for row in whole[1]] == [[0, 1], [1, 2]]
    assert sorted(row[0] for row in whole[1]) == sorted([whole[2], empty[2]]) and whole[1][1][0] == whole[2]


def test_rows_come_back_to_their_steps(session):
    x = tf.placeholder(tf.float32, [None])
    [batched], index, key = raw.Batch(in_tensors=[x], shared_name="back", **OPTIONS)
    back = raw.Unbatch(batched_tensor=batched * 10, batch_index=index, id=key, timeout_micros=LONG, shared_name="unback")
    assert [list(r) for r in run_all(session, back, [{x: [1]}, {x: [2]}])] == [[10], [20]]


def test_gradients_are_put_together(session):
    x = tf.placeholder(tf.float32, [None])
    [batched], index, key = raw.Batch(in_tensors=[x], shared_name="grad", **OPTIONS)
    whole = raw.UnbatchGrad(original_input=batched, batch_index=index, grad=x * 2, id=key, shared_name="together")
    back = raw.Unbatch(batched_tensor=whole, batch_index=index, id=key, timeout_micros=LONG, shared_name="ungrad")
    results = run_all(session, [whole, back], [{x: [3]}, {x: [5]}])
    assert [list(r[1]) for r in results] == [[6], [10]]
    assert sorted(sorted(r[0]) for r in results) == [[], [6, 10]]


def test_batches_are_padded_to_sizes_that_are_allowed(session):
    x = tf.placeholder(tf.int32, [None])
    [batched], index, _ = raw.Batch(in_tensors=[x], shared_name="pad", **{**OPTIONS, "max_batch_size": 8, "batch_timeout_micros": 0, "allowed_batch_sizes": [2, 4, 8]})
    for rows, size in ((1, 2), (2, 2), (3, 4), (5, 8), (8, 8)):
        whole, where = session.run([batched, index], {x: range(5, 5 + rows)})
        assert list(whole) == list(range(5, 5 + rows)) + [5] * (size - rows) and where[0][2] == rows
    assert [list(r.shape) for r in session.run([batched, index], {x: []})] == [[0], [0]]


def test_what_is_refused(session):
    x, y = tf.placeholder(tf.int32), tf.placeholder(tf.int32)
    refused = tf.errors.InvalidArgumentError
    [b, _], _, _ = raw.Batch(in_tensors=[x, y], shared_name="refused", **{**OPTIONS, "batch_timeout_micros": 0})
    for values, words in (((1, [1]), "must have at least one dimension"), (([1], [1, 2]), "must have equal 0th-dimension size"),
                          (([1, 2, 3], [1, 2, 3]), "Task size 3 is larger than maximum input batch size 2")):
        with pytest.raises(refused, match=words):
            session.run(b, dict(zip((x, y), values)))
    for allowed, words in (([2, 1], "must be monotonically increasing"), ([1], "final entry in allowed_batch_sizes must equal max_batch_size")):
        with pytest.raises(refused, match=words):
            session.run(raw.Batch(in_tensors=[x], allowed_batch_sizes=allowed, **OPTIONS).batch_index, {x: [1]})
    index = tf.constant([[7, 0, 1]], tf.int64)
    for i, words in ((index[:, :2], "Expected 1st dimension size to be 3"), (tf.concat([index] * 3, 0), "no greater than 2")):
        with pytest.raises(refused, match=words):
            session.run(raw.Unbatch(batched_tensor=[1, 2], batch_index=i, id=tf.constant(7, tf.int64), timeout_micros=LONG))


def test_a_step_whose_rows_never_come(session):
    none = raw.Unbatch(batched_tensor=tf.zeros([0]), batch_index=tf.zeros([0, 3], tf.int64), id=tf.constant(5, tf.int64), timeout_micros=1000, shared_name="never")
    with pytest.raises(tf.errors.DeadlineExceededError, match="Batched data did not arrive within timeout window"):
        session.run(none)


# ---- BatchFunction ----

def batched(f, name, **options):
    """The node's name, which is also that of its scheduler for all sessions, is the test's."""
    made = tf2.nondifferentiable_batch_function(**{"num_batch_threads": 1, "max_batch_size": 4, "batch_timeout_micros": LONG, **options})(f)

    def call(*args):
        with tf.name_scope(name):
            return made(*args)
    return call


def test_a_function_of_a_batch(session):
    x, y = tf.placeholder(tf.float32, [None, 1]), tf.placeholder(tf.float32, [None, 1])
    rows = batched(lambda a, b: (a + b, tf.fill(tf.shape(a), tf.shape(a)[0])), "sum")(x, y)
    feeds = [{x: [[i]], y: [[10 * i]]} for i in range(4)]
    results = run_all(session, rows, feeds)
    assert [r[0].tolist() for r in results] == [[[11.0 * i]] for i in range(4)]
    assert [r[1].tolist() for r in results] == [[[4]]] * 4


def test_a_function_with_captured_values_and_padding(session):
    scale = tf.get_variable("scale", initializer=3.0, use_resource=True)
    x = tf.placeholder(tf.float32, [None])
    f = batched(lambda a: (a * scale, tf.fill(tf.shape(a), tf.shape(a)[0])), "captured", max_batch_size=8, allowed_batch_sizes=[4, 8], batch_timeout_micros=0)
    y, size = f(x)
    session.run(scale.initializer)
    for rows, padded in ((1, 4), (4, 4), (5, 8)):
        got, sizes = session.run([y, size], {x: np.arange(rows)})
        assert got.tolist() == [3.0 * i for i in range(rows)] and sizes.tolist() == [padded] * rows


def test_a_large_request_is_split(session):
    x = tf.placeholder(tf.int32, [None])
    f = batched(lambda a: (a + 1, tf.fill(tf.shape(a), tf.shape(a)[0])), "split", max_batch_size=10, allowed_batch_sizes=[2, 4], batch_timeout_micros=0, enable_large_batch_splitting=True)
    y, size = session.run(f(x), {x: range(9)})
    assert y.tolist() == list(range(1, 10)) and size.tolist() == [4] * 8 + [2]


def test_errors_of_a_function_reach_every_step(session):
    x = tf.placeholder(tf.float32, [None])
    f = batched(lambda a: tf.debugging.check_numerics(1 / a, "division"), "failing", max_batch_size=2)
    results = run_all(session, f(x), [{x: [1]}, {x: [0]}])
    assert all(isinstance(r, tf.errors.InvalidArgumentError) and "division" in str(r) for r in results)
    scalar = batched(lambda a: tf.reduce_sum(a), "scalar", max_batch_size=2, batch_timeout_micros=0)(x)
    with pytest.raises(tf.errors.FailedPreconditionError, match="Batched output tensor has 0 dimensions"):
        session.run(scalar, {x: [1]})
    short = batched(lambda a: a[:1], "short", max_batch_size=2, batch_timeout_micros=0)(x)
    with pytest.raises(tf.errors.FailedPreconditionError, match="0th dimension does not equal the sum"):
        session.run(short, {x: [1, 2]})
