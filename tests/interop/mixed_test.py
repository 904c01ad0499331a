"""Clusters whose tasks are partly Rill and partly real TensorFlow: training and loops across them, with either as master.

The TensorFlow master runs with Grappler on, so Rill tasks also get ops that the client never wrote.
"""
import contextlib
import json
import subprocess
import time

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from tensorflow import nn as nn2
from tensorflow.python.client import timeline

import models
import training
from cluster_process import RILL

MODELS = pytest.mark.parametrize("model", ["softmax", "mlp", "cnn"])
MASTERS = pytest.mark.parametrize("master", [("worker", 0), ("worker", 1), ("ps", 0)], ids=["w0", "w1", "ps"])
KINDS = pytest.mark.parametrize("kind", ["ref", "resource"])


@pytest.fixture(params=["rill_ps", "tf_ps"])
def mixed(request):
    """Both mixed clusters in turn, without variables left by other tests. In each, one worker is Rill, one TensorFlow."""
    cluster = request.getfixturevalue(request.param + "_cluster")
    tf.Session.reset(cluster.target("worker", 0))
    return cluster


def check(got, want):
    assert len(got) == len(want) >= 20
    np.testing.assert_allclose(got, want, rtol=1e-4)


@MODELS
@KINDS
@pytest.mark.parametrize("worker", [0, 1])
def test_one_worker_is_master(mixed, reference, model, kind, worker):
    """A worker-master of the one kind with a ps of the other (or of its own)."""
    def losses(target, place):
        p = models.between_graph(model, kind, 1, 2, worker, place=place)
        x, y, loss, train_op = p.towers[0]
        with training.session(target, p.graph) as s:
            s.run(p.init_op)
            return [s.run([loss, train_op], {x: a, y: b})[0] for a, b in models.batches(20)]

    check(losses(mixed.target("worker", worker), True), losses(reference, False))


@MODELS
@KINDS
def test_workers_side_by_side_async(mixed, reference, model, kind):
    targets = [mixed.target("worker", w) for w in range(2)]
    got = training.between_graph_async_losses(targets, model, kind, 1)
    check(got, training.between_graph_async_losses([reference] * 2, model, kind, 1, place=False))


@pytest.mark.parametrize("model", ["mlp", "cnn"])
@KINDS
def test_workers_side_by_side_sync_replicas(mixed, reference, model, kind):
    targets = [mixed.target("worker", w) for w in range(2)]
    got = training.between_graph_sync_losses(targets, model, kind, 1)
    check(got, training.between_graph_sync_losses([reference] * 2, model, kind, 1, place=False))


@pytest.mark.parametrize("model", ["mlp", "cnn"])
@KINDS
@pytest.mark.parametrize("sync", [False, True], ids=["async", "sync"])
@pytest.mark.parametrize("master", [0, 1])
def test_workers_side_by_side_in_graph(mixed, reference, model, kind, sync, master):
    got = training.in_graph_losses(mixed.target("worker", master), model, kind, 1, 2, sync)
    check(got, training.in_graph_losses(reference, model, kind, 1, 2, sync, place=False))


@pytest.mark.parametrize("optimizer", ["adam", "rmsprop"])
@KINDS
def test_optimizer(mixed, reference, optimizer, kind):
    targets = [mixed.target("worker", w) for w in range(2)]
    got = training.between_graph_async_losses(targets, "mlp", kind, 1, optimizer=optimizer)
    check(got, training.between_graph_async_losses([reference] * 2, "mlp", kind, 1, place=False, optimizer=optimizer))


@contextlib.contextmanager
def control_flow(version):
    (tf.enable_control_flow_v2 if version == 2 else tf.disable_control_flow_v2)()
    try:
        yield
    finally:
        tf.disable_control_flow_v2()


@contextlib.contextmanager
def maybe_device(name, place):
    with tf.device(name if place else None):
        yield


def loop_graph(version, place, nested=False):
    """A loop whose body and condition span ps:0, worker:0 and worker:1, and its gradient."""
    g = tf.Graph()
    with g.as_default(), control_flow(version):
        x = tf.placeholder(tf.float32, [2, 3], name="x")
        n = tf.placeholder(tf.int32, [], name="n")
        with maybe_device("/job:worker/task:1", place):
            scale = tf.constant(1.25, name="scale")

        def body(i, v):
            with maybe_device("/job:worker/task:0", place):
                a = tf.tanh(v * 0.1) * 8.0 * scale
            with maybe_device("/job:worker/task:1", place):
                b = a + 0.1 * tf.cast(i, tf.float32)
                if nested:
                    _, b = tf.while_loop(lambda j, _: j < 3, lambda j, u: (j + 1, inner(u)), [tf.constant(0), b])
            with maybe_device("/job:ps/task:0", place):
                c = tf.sqrt(b * b + 0.5)
            return i + 1, c

        def inner(u):
            with maybe_device("/job:worker/task:0", place):
                u = u * 0.5
            with maybe_device("/job:ps/task:0", place):
                return u + 0.25

        with maybe_device("/job:worker/task:0", place):
            _, out = tf.while_loop(lambda i, _: i < n, body, [tf.constant(0), x], parallel_iterations=4)
            out = tf.identity(out, name="out")
            tf.identity(tf.gradients(out, x)[0], name="grad")
    return g


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("nested", [False, True], ids=["plain", "nested"])
@MASTERS
def test_while_loop_spans_tasks(mixed, version, nested, master):
    feeds = {"x:0": np.arange(6, dtype=np.float32).reshape(2, 3) / 5, "n:0": 7}
    with tf.Session(graph=loop_graph(version, False, nested)) as s:
        want = s.run(["out:0", "grad:0"], feeds)
    with training.session(mixed.target(*master), loop_graph(version, True, nested)) as s:
        for _ in range(3):
            got = s.run(["out:0", "grad:0"], feeds)
            np.testing.assert_allclose(got, want, rtol=1e-4)
        feeds["n:0"] = 0
        np.testing.assert_array_equal(s.run("out:0", feeds), feeds["x:0"])


def steps_held(cluster):
    """By each Rill task."""
    held = {}
    for key, task in cluster.tasks.items():
        if not task.name.startswith("tf/"):
            done = subprocess.run([RILL, "status", "--json", cluster.target(*key)], stdout=subprocess.PIPE, timeout=60)
            held.update({row["task"]: row["steps_held"] for row in json.loads(done.stdout) if "steps_held" in row})
    return held


@MASTERS
def test_tasks_keep_nothing_of_a_step(mixed, master):
    """While its session is open: the master's CleanupGraph, where one comes, or the task by itself."""
    with training.session(mixed.target(*master), loop_graph(1, True)) as s:
        for n in range(5):
            s.run(["out:0", "grad:0"], {"x:0": np.ones([2, 3], np.float32), "n:0": n})
        end = time.monotonic() + 60
        while any(steps_held(mixed).values()) and time.monotonic() < end:
            time.sleep(0.05)  # the last CleanupGraph of a TensorFlow master is on its way
        held = steps_held(mixed)
        assert held and not any(held.values()), held


@pytest.mark.parametrize("version", [1, 2])
@MASTERS
def test_cond_spans_tasks(mixed, graph, version, master):
    with control_flow(version):
        with tf.device("/job:ps/task:0"):
            flag = tf.placeholder(tf.bool, [])
            x = tf.placeholder(tf.float32, [3])

        def yes():
            with tf.device("/job:worker/task:0"):
                a = x * 2.0
            with tf.device("/job:worker/task:1"):
                return a + 1.0

        def no():
            with tf.device("/job:worker/task:1"):
                return x - 10.0

        out = tf.cond(flag, yes, no)
        grad = tf.gradients(out, x)[0]
    with training.session(mixed.target(*master), graph) as s:
        for value, want, slope in ((True, [3, 5, 7], 2), (False, [-9, -8, -7], 1)) * 3:
            got = s.run([out, grad], {flag: value, x: [1, 2, 3]})
            np.testing.assert_array_equal(got[0], want)
            np.testing.assert_array_equal(got[1], [slope] * 3)


@MASTERS
def test_every_dtype_crosses(mixed, graph, master):
    """A tensor of each dtype goes ps -> worker 0 -> worker 1 and comes back the same, also empty and scalar."""
    values = [np.arange(6).reshape(2, 3).astype(t) for t in
              ("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
               "complex64", "complex128")]
    values += [np.array([True, False]), np.array([b"", b"abc", b"\0" * 300], dtype=object), np.zeros([0, 4], np.float32),
               np.float32(3.5), np.array(b"scalar", dtype=object), np.arange(6).astype(tf.bfloat16.as_numpy_dtype)]
    outs = []
    for value in values:
        with tf.device("/job:ps/task:0"):
            a = tf.identity(tf.placeholder_with_default(value, value.shape))
        with tf.device("/job:worker/task:0"):
            b = tf.identity(a)
        with tf.device("/job:worker/task:1"):
            outs.append(tf.identity(b))
    with training.session(mixed.target(*master), graph) as s:
        for got, want in zip(s.run(outs), values):
            assert np.asarray(got).dtype == np.asarray(want).dtype or np.asarray(want).dtype == object
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("master", [0, 1])
def test_ops_that_grappler_fuses(mixed, graph, master):
    """Patterns the TensorFlow master's remapper turns into _FusedMatMul and _FusedConv2D, on every task."""
    rng = np.random.RandomState(3)
    image, filters, bias = (rng.randn(*s).astype(np.float32) for s in ([2, 9, 9, 3], [3, 3, 3, 4], [4]))
    matrix, weight = (rng.randn(*s).astype(np.float32) for s in ([5, 6], [6, 4]))
    mean, variance = np.float32([0.1, 0.2, 0.3, 0.4]), np.float32([1, 2, 3, 4])
    feeds = {}

    def feed(value):
        p = tf.placeholder(tf.float32, value.shape)
        feeds[p] = value
        return p

    def build():
        conv = tf.nn.conv2d(feed(image), feed(filters), [1, 2, 2, 1], "SAME")
        product = tf.matmul(feed(matrix), feed(weight))
        f = [tf.nn.relu, tf.nn.relu6, tf.nn.elu, tf.nn.leaky_relu, tf.nn.tanh, tf.nn.sigmoid, tf.identity]
        out = [act(tf.nn.bias_add(conv, tf.constant(bias))) for act in f[:5]]
        out += [act(tf.nn.bias_add(product, tf.constant(bias))) for act in f]
        norm = tf.nn.fused_batch_norm(tf.nn.conv2d(feed(image), tf.constant(filters), 1, "VALID"), tf.constant(bias),
                                      tf.constant(bias), mean=tf.constant(mean), variance=tf.constant(variance),
                                      is_training=False)[0]
        return out + [tf.nn.relu(norm), nn2.gelu(tf.nn.bias_add(tf.matmul(feed(matrix), tf.constant(weight)),
                                                                  tf.constant(bias)))]

    want_outs = build()
    with tf.Session(graph=graph) as s:
        want = s.run(want_outs, feeds)
    for device in ("/job:ps/task:0", "/job:worker/task:0", "/job:worker/task:1"):
        with tf.Graph().as_default() as g, tf.device(device):
            feeds.clear()
            outs = build()
        with training.session(mixed.target("worker", master), g) as s:
            for one in outs + [outs]:
                s.run(one, feeds)
            for a, b in zip(s.run(outs, feeds), want):
                np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)



def receivers(metadata):
    """Devices that the traced step brought tensors to."""
    return {d.device for d in metadata.step_stats.dev_stats for n in d.node_stats if n.node_name == "RecvTensor"}


@MASTERS
def test_full_trace(mixed, graph, master):
    """Every task sends its part of the step's trace and its partition of the graph, whoever is the master."""
    with tf.device("/job:ps/task:0"):
        v = tf.Variable(tf.ones([8, 8]))
    with tf.device("/job:worker/task:0"):
        a = tf.matmul(v, v, name="first_product")
    with tf.device("/job:worker/task:1"):
        b = tf.matmul(a, v, name="second_product")
    metadata = tf.RunMetadata()
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE, output_partition_graphs=True)
    with training.session(mixed.target(*master), graph) as s:
        s.run(v.initializer)
        np.testing.assert_array_equal(s.run(b, options=options, run_metadata=metadata), np.full([8, 8], 64))
        into = receivers(metadata)
        rill = next(i for i in (0, 1) if not mixed.task("worker", i).name.startswith("tf/"))
        assert any("/job:worker/replica:0/task:%d" % rill in device for device in into), into
        for _ in range(20):  # a TensorFlow task may log a transfer only when its master has fetched the log
            if all(any("/job:worker/replica:0/task:%d" % i in device for device in into) for i in (0, 1)):
                break
            again = tf.RunMetadata()
            s.run(b, options=options, run_metadata=again)
            into |= receivers(again)
        else:
            pytest.fail("no transfers into %s" % into)
    names = {n.node_name: d.device for d in metadata.step_stats.dev_stats for n in d.node_stats}
    assert "worker/replica:0/task:0" in names["first_product"] and "worker/replica:0/task:1" in names["second_product"]
    assert len(metadata.partition_graphs) >= 3
    assert timeline.Timeline(metadata.step_stats).generate_chrome_trace_format()


@MASTERS
def test_errors_cross(mixed, graph, master):
    """An op that fails on any task fails the step with its code and its node, and the session goes on."""
    outs = {}
    for device in ("/job:ps/task:0", "/job:worker/task:0", "/job:worker/task:1"):
        with tf.device(device):
            x = tf.placeholder_with_default(np.float32([1.0]), [1])
            outs[device] = tf.check_numerics(x / 0.0, "not a number here", name="guard" + device.replace("/", "_").replace(":", "_"))
    with training.session(mixed.target(*master), graph) as s:
        for out in outs.values():
            with tf.device("/job:worker/task:0"):
                far = out + 1.0
            with pytest.raises(tf.errors.InvalidArgumentError, match="not a number here") as error:
                s.run(far)
            assert error.value.op.name == out.op.name
            assert s.run(tf.constant(2.0)) == 2.0


@MASTERS
def test_timeout_and_isolated_state(mixed, graph, master):
    with tf.device("/job:ps/task:0"):
        queue = tf.FIFOQueue(1, tf.float32)
        v = tf.Variable(1.0, use_resource=True)
    with tf.device("/job:worker/task:0"):
        near = queue.dequeue() + v
    with tf.device("/job:worker/task:1"):
        out = near * 2.0
    with tf.Session(mixed.target(*master), graph=graph, config=training.config(isolate_session_state=True)) as s:
        s.run(v.initializer)
        with pytest.raises(tf.errors.DeadlineExceededError):
            s.run(out, options=tf.RunOptions(timeout_in_ms=300))
        s.run(queue.enqueue(4.0))
        assert s.run(out) == 10.0
    with training.session(mixed.target(*master), graph) as s:
        with pytest.raises(tf.errors.FailedPreconditionError):
            s.run(v)


@MASTERS
@pytest.mark.parametrize("sharded", [False, True], ids=["whole", "sharded"])
def test_checkpoint_of_a_mixed_cluster(mixed, graph, master, sharded, tmp_path):
    values = np.arange(12, dtype=np.float32).reshape(3, 4)
    variables = []
    for device in ("/job:ps/task:0", "/job:worker/task:0", "/job:worker/task:1"):
        with tf.device(device):
            variables.append(tf.Variable(values * len(variables), name="v%d" % len(variables)))
    saver = tf.train.Saver(sharded=sharded)
    zero = [v.assign(tf.zeros([3, 4])) for v in variables]
    with training.session(mixed.target(*master), graph) as s:
        s.run([v.initializer for v in variables])
        path = saver.save(s, str(tmp_path / "model"))
        s.run(zero)
        saver.restore(s, path)
        for i, got in enumerate(s.run(variables)):
            np.testing.assert_array_equal(got, values * i)
