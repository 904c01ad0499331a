"""Checkpoints while tasks are killed or their disk is full: the last good one stays, and is what TensorFlow restores."""
import os
import random
import resource
import threading

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from cluster_process import Cluster

pytestmark = pytest.mark.asan


def build(parts=2):
    """Variables over two ps whose elements all hold the number of the step; whoever finds two numbers has a torn checkpoint."""
    with tf.Graph().as_default() as g:
        variables = []
        for i in range(parts):
            with tf.device("/job:ps/task:%d" % (i % 2)):
                variables.append(tf.get_variable("v%d" % i, [200, 500], initializer=tf.zeros_initializer()))
        add = tf.group(*[v.assign_add(tf.ones([200, 500])) for v in variables])
        saver = tf.train.Saver(sharded=True, max_to_keep=3)
        return g, tf.global_variables_initializer(), add, saver


def value_of(prefix):
    reader = tf.train.load_checkpoint(prefix)
    values = {float(x) for name in reader.get_variable_to_shape_map() for x in np.unique(reader.get_tensor(name))}
    assert len(values) == 1, "%s is torn: %s" % (prefix, values)
    return values.pop()


@pytest.mark.time_limit(300)
def test_a_ps_killed_while_it_saves(tmp_path):
    """Saves under one name as fast as they go; a task is killed at some moment of it. What is there is whole."""
    chance = random.Random(5)
    prefix = str(tmp_path / "model")
    g, init, add, saver = build()
    with Cluster({"ps": 2, "worker": 1}, flags=["--session-timeout", "20"]) as cluster:
        for turn in range(8):
            with tf.Session(cluster.target(), graph=g) as s:
                s.run(init)
                s.run(add)
                saver.save(s, prefix)  # the first of this turn is whole
                done, killed = 1, cluster.task("ps", turn % 2)
                timer = threading.Timer(chance.uniform(0, 0.15), killed.process.kill)
                timer.start()
                try:
                    for _ in range(1000):
                        s.run(add)
                        saver.save(s, prefix)
                        done += 1
                except (tf.errors.UnavailableError, tf.errors.AbortedError):
                    pass
                timer.join()
            assert value_of(prefix) in (done, done + 1, done + 2)
            killed.kill()
            killed.start()
    assert "Sanitizer" not in cluster.log


def test_a_full_disk_is_told_and_the_old_checkpoint_stays(tmp_path):
    prefix = str(tmp_path / "model")
    g, init, add, saver = build()
    limit = 150000  # of a file: less than one variable
    with Cluster({"ps": 2, "worker": 1}) as cluster, tf.Session(cluster.target(), graph=g) as s:
        s.run(init)
        s.run(add)
        saver.save(s, prefix)
        pid, old = cluster.task("ps", 1).pid, resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (limit, old[1]))
        s.run(add)
        with pytest.raises(tf.errors.ResourceExhaustedError, match="model_temp|model"):
            saver.save(s, prefix)
        assert value_of(prefix) == 1
        assert not [f for f in os.listdir(tmp_path) if "tempstate" in f]
        resource.prlimit(pid, resource.RLIMIT_FSIZE, old)
        saver.save(s, prefix)  # room again: as if nothing had been
        assert value_of(prefix) == 2
        assert cluster.task("ps", 1).running
