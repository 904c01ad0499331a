"""Collective ops between tasks: Rill alone, and Rill with real TensorFlow tasks in one group, whoever leads and whoever is master.

Expected values come from a cluster of TensorFlow tasks that runs the same program, to the bit.
"""
import threading

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from tensorflow.python.ops import collective_ops

LEADER = "/job:worker/replica:0/task:0"
LEADERS = {"TF_TASK_LEADER": LEADER}


def config(leader=LEADER, filters=()):
    c = tf.ConfigProto(device_filters=list(filters))
    c.experimental.collective_group_leader = leader
    return c


def keyed(key, timeout_ms=0):
    return tf.RunOptions(timeout_in_ms=timeout_ms, experimental=tf.RunOptions.Experimental(collective_graph_key=key))


def device(task, cpu=0):
    return "/job:worker/replica:0/task:%d/device:CPU:%d" % (task, cpu)


def values(dtype, shape, seed):
    r = np.random.RandomState(seed)
    if dtype == tf.bool:
        return r.rand(*shape) < 0.5
    if dtype.is_integer:
        return r.randint(-50, 50, shape).astype(dtype.as_numpy_dtype)
    return (r.standard_normal(shape) * 10.0 ** r.randint(-3, 4, shape)).astype(dtype.as_numpy_dtype)


def bits(a):
    return np.asarray(a).tobytes(), np.asarray(a).shape, np.asarray(a).dtype


class Program:
    """A graph with several collectives, one op of each at every member; nodes are named by their case."""

    def __init__(self, devices):
        self.devices = devices
        self.fetches = {}
        self.instance = 100

    def _each(self, case, make, dtype, shape):
        """make(rank, value, group_size, group_key, instance_key) for every member."""
        self.instance += 1
        n = len(self.devices)
        for rank, name in enumerate(self.devices):
            with tf.device(name):
                value = tf.constant(values(dtype, shape, rank), dtype)
                self.fetches[case, rank] = make(rank, value, n, 7, self.instance)

    def reduce(self, case, dtype=tf.float32, shape=(5,), v2=False, **more):
        op = collective_ops.all_reduce_v2 if v2 else collective_ops.all_reduce
        self._each(case, lambda r, t, *keys: op(t, *keys, **more), dtype, shape)

    def gather(self, case, dtype=tf.float32, shape=(5,), v2=False):
        op = collective_ops.all_gather_v2 if v2 else collective_ops.all_gather
        self._each(case, lambda r, t, *keys: op(t, *keys), dtype, shape)

    def broadcast(self, case, source, dtype=tf.float32, shape=(5,), v2=False):
        def make(rank, t, *keys):
            if v2:
                return (collective_ops.broadcast_send_v2(t, *keys) if rank == source
                        else collective_ops.broadcast_recv_v2(tf.constant(shape, tf.int32), dtype, *keys))
            return (collective_ops.broadcast_send(t, shape, dtype, *keys) if rank == source
                    else collective_ops.broadcast_recv(shape, dtype, *keys))
        self._each(case, make, dtype, shape)

    def all_to_all(self, case, dtype=tf.float32, columns=3):
        self._each(case, lambda r, t, *keys: collective_ops.all_to_all_v2(t, *keys), dtype, (len(self.devices), columns))

    def everything(self):
        for dtype in (tf.float32, tf.float64, tf.half, tf.bfloat16, tf.int32, tf.int64):
            for merge in ("Add", "Mul", "Min", "Max"):
                self.reduce("reduce %s %s" % (dtype.name, merge), dtype, (7, 5), merge_op=merge)
            self.reduce("mean %s" % dtype.name, dtype, (301,), v2=True, final_op="Div")
        for shape in ((), (0,), (1,), (16,), (17,), (200,), (3, 0, 2), (1000, 3)):
            self.reduce("shape %s" % (shape,), shape=shape)
            self.reduce("shape v2 %s" % (shape,), shape=shape, v2=True, final_op="Div")
        self.reduce("subdivs", shape=(999,), subdiv_offsets=(0, 1, -1))
        self.reduce("large", shape=(1 << 20,))
        self.reduce("large, cut", shape=(5 << 20,), v2=True, max_subdivs_per_device=0)
        self.reduce("large, cut in three", shape=(5 << 20,), v2=True, max_subdivs_per_device=3)
        for dtype in (tf.float32, tf.float64, tf.half, tf.int32, tf.int64):
            self.gather("gather %s" % dtype.name, dtype, (3, 2))
            self.gather("gather v2 %s" % dtype.name, dtype, (40000,), v2=True)
        for source in range(len(self.devices)):
            for dtype in (tf.bool, tf.float32, tf.float64, tf.half, tf.int32, tf.int64):
                self.broadcast("bcast %s from %d" % (dtype.name, source), source, dtype, (3, 2))
                self.broadcast("bcast v2 %s from %d" % (dtype.name, source), source, dtype, (50000,), v2=True)
            self.broadcast("bcast scalar from %d" % source, source, shape=())
        for dtype in (tf.float32, tf.float64, tf.half, tf.bfloat16, tf.int32, tf.int64):
            self.all_to_all("all to all %s" % dtype.name, dtype)
        return self


def run_everything(target, devices, times=1):
    with tf.Graph().as_default():
        program = Program(devices).everything()
        with tf.Session(target, config=config()) as s:
            for _ in range(times):
                got = s.run(program.fetches)
    return {case: bits(value) for case, value in got.items()}


def compare(got, want):
    assert got.keys() == want.keys() and len(got) > 100
    wrong = [case for case in want if got[case] != want[case]]
    assert not wrong, wrong


@pytest.fixture(scope="module")
def tensorflow_results():
    """What three TensorFlow tasks compute."""
    from cluster_process import Cluster
    with Cluster({"worker": ["tf"] * 3}, tf_environment=LEADERS) as cluster:
        yield run_everything(cluster.target(), [device(i) for i in range(3)])


def test_collectives_of_three_tasks(start_cluster, tensorflow_results):
    """Every op, type, merge and odd shape in one step, many instances at once; a second step works from what the first agreed on."""
    cluster = start_cluster({"worker": 3})
    devices = [device(i) for i in range(3)]
    compare(run_everything(cluster.target(), devices, times=2), tensorflow_results)
    compare(run_everything(cluster.target(index=2), devices), tensorflow_results)  # another session, another master, the same keys


@pytest.mark.parametrize("kinds", [["rill", "tf", "rill"], ["tf", "rill", "tf"]], ids=["rill_leads", "tf_leads"])
@pytest.mark.parametrize("master", [0, 1])
def test_collectives_with_tensorflow_tasks(start_cluster, tensorflow_results, kinds, master):
    """Rings and trees through tasks of both kinds, led by either, under a master of either."""
    cluster = start_cluster({"worker": kinds}, tf_environment=LEADERS)
    compare(run_everything(cluster.target(index=master), [device(i) for i in range(3)], times=2), tensorflow_results)
