"""Tasks that look for events before they sleep do so only while steps follow each other: idle ones use no time."""
import time

import psutil
import tensorflow.compat.v1 as tf

from cluster_process import Cluster

STEPS, IDLE_SECONDS = 300, 1.0


def used_seconds(cluster):
    """CPU time of every task so far; a loaded machine makes it grow slower, not faster."""
    times = [psutil.Process(t.pid).cpu_times() for t in cluster.tasks.values()]
    return [t.user + t.system for t in times]


def test_an_idle_cluster_uses_no_cpu_time():
    with Cluster({"ps": 1, "worker": 1}) as cluster, tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            total = tf.get_variable("total", [], initializer=tf.zeros_initializer())
        with tf.device("/job:worker/task:0"):
            one = tf.constant(1.0)
        add = total.assign_add(one)
        with tf.Session(cluster.target()) as session:
            session.run(total.initializer)
            for _ in range(STEPS):
                session.run(add.op)
            before = used_seconds(cluster)
            time.sleep(IDLE_SECONDS)  # what is measured, with the session still open
            used = [after - b for after, b in zip(used_seconds(cluster), before)]
            assert session.run(total) == STEPS
    assert max(used) < IDLE_SECONDS / 5, used
