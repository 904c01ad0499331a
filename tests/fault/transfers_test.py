"""Large tensors between tasks, by the ways there are: they arrive whole, and a task that dies in the midst of one is an error, not a wrong value."""
import threading

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

import counts
from cluster_process import Cluster

pytestmark = pytest.mark.asan

PS, WORKER = "/job:ps/task:0", "/job:worker/task:0"
FLOATS = 3_000_000


class Transfers:
    """A large variable on the ps and steps that move it."""

    def __init__(self):
        self.graph = tf.Graph()
        with self.graph.as_default():
            self.fed = tf.placeholder(tf.float32, [FLOATS])
            with tf.device(PS):
                self.variable = tf.get_variable("v", [FLOATS], initializer=tf.zeros_initializer(), use_resource=True)
                self.assign = self.variable.assign(self.fed)
                read = self.variable.read_value()
            with tf.device(WORKER):
                doubled = tf.identity(read) * 2.0
                self.distinct = tf.reduce_max(doubled) - tf.reduce_min(doubled)
                self.ends = tf.stack([doubled[0], doubled[FLOATS // 2], doubled[FLOATS - 1]])
            with tf.device(PS):
                self.push = self.variable.assign(doubled)
            self.initialize = tf.global_variables_initializer()


@pytest.mark.parametrize("flags", [[], ["--tcp-only"]], ids=["default", "tcp_only"])
def test_large_tensors_arrive_whole(flags):
    g = Transfers()
    value = np.random.RandomState(1).rand(FLOATS).astype(np.float32)
    with Cluster({"ps": 1, "worker": 1}, flags=flags) as cluster, tf.Session(cluster.target(), graph=g.graph) as session:
        session.run(g.initialize)
        for _ in range(3):
            session.run(g.assign.op, {g.fed: value})
            for factor in 2, 4:
                session.run(g.push.op)
                np.testing.assert_array_equal(session.run(g.variable), value * np.float32(factor))
        lent = [row["messages_lent"] for row in counts.status(cluster.target()).values()]
    if flags:
        assert lent == [0, 0]


def test_a_task_killed_while_it_sends_is_an_error_and_no_value():
    g = Transfers()
    with Cluster({"ps": 1, "worker": 1}) as cluster:
        with tf.Session(cluster.target(), graph=g.graph) as session:
            session.run(g.initialize)
            pulled, failed = [], []
            enough = threading.Event()

            def pull():
                try:
                    while len(pulled) < 100_000:
                        pulled.append(session.run([g.distinct, g.ends]))
                        if len(pulled) == 10:
                            enough.set()
                except tf.errors.OpError as e:
                    failed.append(e)
                finally:
                    enough.set()

            thread = threading.Thread(target=pull)
            thread.start()
            enough.wait(60)
            cluster.task("ps").kill()
            thread.join(60)
            assert not thread.is_alive()
        assert failed and isinstance(failed[0], (tf.errors.UnavailableError, tf.errors.AbortedError)), failed
        assert len(pulled) >= 10
        for distinct, ends in pulled:
            assert distinct == 0 and not ends.any()
        counts.wait_for(cluster.target(), runs=0, steps_held=0)
