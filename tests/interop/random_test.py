"""Seeded random ops and dropout on Rill tasks give TensorFlow's numbers."""
import numpy as np
import pytest
import tensorflow.compat.v1 as tf

import models
import training


def random_ops():
    probabilities = np.log([[0.1, 0.2, 0.7], [0.6, 0.3, 0.1]]).astype(np.float32)
    return {
        "uniform": tf.random_uniform([7, 5], seed=3),
        "uniform_range": tf.random_uniform([4], -2.0, 5.0, seed=4),
        "uniform_double": tf.random_uniform([9], dtype=tf.float64, seed=4),
        "uniform_int32": tf.random_uniform([50], 3, 17, tf.int32, seed=5),
        "uniform_int64": tf.random_uniform([50], -9, 1 << 40, tf.int64, seed=6),
        "normal": tf.random_normal([6, 11], 1.0, 2.0, seed=7),
        "normal_double": tf.random_normal([33], dtype=tf.float64, seed=8),
        "truncated": tf.truncated_normal([100], stddev=0.1, seed=9),
        "only_graph_seed": tf.random_normal([5]),
        "shuffle": tf.random_shuffle(tf.range(40), seed=10),
        "multinomial": tf.multinomial(probabilities, 20, seed=11),
        "dropout": tf.nn.dropout(tf.ones([8, 9]), rate=0.4, seed=12),
        "glorot": tf.glorot_uniform_initializer(seed=13)([5, 6]),
        "stateless": tf.random.stateless_normal([12], seed=[1, 2]),
        "large": tf.random_uniform([100000], seed=14),
    }


def run_twice(target, device):
    with tf.Graph().as_default() as g, tf.device(device):
        tf.set_random_seed(42)
        ops = random_ops()
    with tf.Session(target, graph=g, config=training.config()) as s:
        return s.run(ops), s.run(ops)


@pytest.mark.parametrize("device", ["/job:worker/task:0", "/job:ps/task:0"])
def test_seeded_random_ops(start_cluster, device):
    cluster = start_cluster({"ps": 1, "worker": 1})
    got, want = run_twice(cluster.target(), device), run_twice("", None)
    for g, w in zip(got, want):
        for name in w:
            np.testing.assert_allclose(g[name], w[name], rtol=1e-5, atol=1e-6, err_msg=name)
    assert not np.array_equal(want[0]["uniform"], want[1]["uniform"])


def test_training_with_dropout(start_cluster, reference):
    """Initial values and dropout both come from seeded random ops, so the losses only agree if every number does."""
    def losses(target, place):
        with tf.Graph().as_default() as g, models.device_of(0, 1, place):
            tf.set_random_seed(5)
            x, y = models.inputs()
            w1 = tf.get_variable("w1", [x.shape[1], 32], initializer=tf.truncated_normal_initializer(stddev=0.1, seed=1))
            w2 = tf.get_variable("w2", [32, 10], initializer=tf.random_normal_initializer(stddev=0.1))
            hidden = tf.nn.dropout(tf.nn.relu(tf.matmul(x, w1)), rate=0.3, seed=2)
            loss = tf.losses.sparse_softmax_cross_entropy(y, tf.matmul(hidden, w2))
            train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
            init = tf.global_variables_initializer()
        with training.session(target, g) as s:
            s.run(init)
            return [s.run([loss, train_op], {x: a, y: b})[0] for a, b in models.batches(20)]

    cluster = start_cluster({"ps": 1, "worker": 1})
    np.testing.assert_allclose(losses(cluster.target(), True), losses(reference, False), rtol=1e-4)


def generator_steps(target, device):
    """A tf.random.Generator, whose state is a variable on a task, drawn from in two steps, one after a reset and a skip."""
    with tf.Graph().as_default() as g, tf.device(device):
        tf.enable_resource_variables()
        try:
            random = tf.random.Generator.from_seed(7)
        finally:
            tf.disable_resource_variables()
        drawn = []
        for draw in (lambda: random.normal([9]), lambda: random.uniform([4, 3], -1, 5), lambda: random.uniform([6], 3, 90, tf.int32),
                     lambda: random.uniform_full_int([5], tf.uint64), lambda: random.truncated_normal([7], dtype=tf.float64),
                     lambda: random.binomial([5], 10.0, 0.5), lambda: random.make_seeds(2)):
            with tf.control_dependencies(drawn[-1:]):
                drawn.append(draw())
        state = random.state.read_value()
        reset = random.state.assign([5, 6, 7])
        with tf.control_dependencies([reset]):
            skipped = random.skip(3)
        entropy = tf.raw_ops.NonDeterministicInts(shape=[4], dtype=tf.uint64)
        init = tf.global_variables_initializer()
    with tf.Session(target, graph=g, config=training.config()) as s:
        s.run(init)
        first = s.run(drawn)
        moved = s.run(state)
        s.run(skipped)
        return first + [moved] + s.run(drawn) + [s.run(state)], s.run(entropy)


def test_a_generator_on_a_task_gives_tensorflows_numbers(start_cluster):
    cluster = start_cluster({"ps": 1, "worker": 1})
    (got, entropy), (want, _) = generator_steps(cluster.target(), "/job:ps/task:0"), generator_steps("", None)
    for i, (g, w) in enumerate(zip(got, want)):
        np.testing.assert_allclose(g, w, rtol=1e-5, atol=1e-6, err_msg=str(i))
    assert len(set(entropy)) == 4 and entropy.dtype == np.uint64


def boxes_between_failures(target):
    """Crops drawn at random; the steps between them fail after their op took its numbers."""
    with tf.Graph().as_default() as g:
        size = tf.placeholder(tf.int32)
        crop = tf.image.sample_distorted_bounding_box(size, [[[0.0, 0, 1, 1]]], seed=1, seed2=2, min_object_covered=0.1, max_attempts=5)
    with training.session(target, g) as s:
        drawn = []
        for dims in ([40, 50, 1], [40, 50], [40, 50, 1], [[40, 50, 1]], [40, -1, 1], [40, 50, 1]):
            try:
                drawn.append(s.run(crop.begin, {size: dims}))
            except tf.errors.InvalidArgumentError:
                drawn.append([])
    return drawn


def test_a_call_that_fails_has_used_up_its_numbers(start_cluster):
    got, want = boxes_between_failures(start_cluster({"worker": 1}).target()), boxes_between_failures("")
    np.testing.assert_equal([list(g) for g in got], [list(w) for w in want])
