"""SIGTERM ends a task with exit code 0 and soon, whatever it is doing."""
import signal
import time

import pytest
import tensorflow.compat.v1 as tf

import counts
from cluster_process import Cluster

pytestmark = pytest.mark.asan

END_SECONDS = 20  # two are given to open calls; the machine may be busy


def assert_ends(task):
    begin = time.monotonic()
    code = task.stop(60)
    assert code == 0, task.log
    assert time.monotonic() - begin < END_SECONDS


def blocked_step(target, queue_on):
    with tf.Graph().as_default():
        with tf.device(queue_on):
            value = tf.FIFOQueue(1, tf.float32, [[]]).dequeue()
        with tf.device("/job:worker/task:0"):
            wait = value + 1.0
        session = tf.Session(target)
        step = counts.Background(lambda: session.run(wait))
    try:
        counts.wait_for(target, runs=len({queue_on, "/job:worker/task:0"}))
    finally:
        counts.abandon(session)
    return step


def test_an_idle_task_ends():
    with Cluster({"ps": 1, "worker": 1}) as cluster:
        for task in cluster.tasks.values():
            assert_ends(task)


def test_a_task_with_an_open_session_ends():
    with Cluster({"ps": 1, "worker": 1}) as cluster, tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            c = tf.constant(1.0)
        session = tf.Session(cluster.target())
        assert session.run(c) == 1.0
        counts.abandon(session)
        assert_ends(cluster.task("worker"))
        assert_ends(cluster.task("ps"))


@pytest.mark.parametrize("first,second", [("ps", "worker"), ("worker", "ps")])
def test_tasks_in_a_blocked_step_end(first, second):
    with Cluster({"ps": 1, "worker": 1}) as cluster:
        step = blocked_step(cluster.target(), "/job:ps/task:0")
        assert_ends(cluster.task(first))
        if first == "ps":
            step.wait()
            assert isinstance(step.error, tf.errors.UnavailableError), step.error
        assert_ends(cluster.task(second))


def test_a_task_blocked_in_its_own_queue_ends():
    with Cluster({"worker": 1}) as cluster:
        step = blocked_step(cluster.target(), "/job:worker/task:0")
        assert_ends(cluster.task("worker"))


def test_a_task_that_waits_for_a_missing_one_ends():
    with Cluster({"ps": 1, "worker": 1}, start=False) as cluster:
        worker = cluster.task("worker").start()
        with tf.Graph().as_default():
            session, one = tf.Session(cluster.target()), tf.constant(1)
        waiting = counts.Background(lambda: session.run(one))
        counts.wait_for(cluster.target(), calls_in=1)
        counts.abandon(session)
        assert_ends(worker)
        assert waiting.ended is None or waiting.error is not None


@pytest.mark.parametrize("known", [True, False], ids=["in RunGraph", "in RegisterGraph"])
def test_a_master_that_waits_for_a_silent_task_ends(known):
    """The ps is stopped, not dead: its connections are there, its answers are not."""
    with Cluster({"ps": 1, "worker": 1}) as cluster, tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            one, two = tf.constant(1), tf.constant(2)
        session = tf.Session(cluster.target())
        session.run(one)
        cluster.task("ps").process.send_signal(signal.SIGSTOP)
        waiting = counts.Background(lambda: session.run(one if known else two))
        waiting._thread.join(0.3)
        counts.abandon(session)
        assert waiting.ended is None, waiting.error
        assert_ends(cluster.task("worker"))
