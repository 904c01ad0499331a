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
def test_collectives_with_tensorflow_tasks(start_cluster, tensorflow_results, kinds):
    """Rings and trees through tasks of both kinds, led by either, under a master of either."""
    cluster = start_cluster({"worker": kinds}, tf_environment=LEADERS)
    for master in (0, 1):
        compare(run_everything(cluster.target(index=master), [device(i) for i in range(3)], times=2), tensorflow_results)


# ---- Between graphs: each worker its own session and master


def in_threads(*calls):
    """Runs the calls side by side; their results, or their exceptions."""
    results = [None] * len(calls)

    def run(i):
        try:
            results[i] = calls[i]()
        except Exception as e:
            results[i] = e
    threads = [threading.Thread(target=run, args=[i]) for i in range(len(calls))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return results


open_sessions = []


@pytest.fixture(autouse=True)
def closed_sessions(start_cluster):
    """Sessions end while their tasks live: TensorFlow's client waits for ever for a task that is gone when a session is collected."""
    yield
    while open_sessions:
        try:
            open_sessions.pop().close()
        except tf.errors.OpError:
            pass  # its task has been another one since


class Worker:
    """The program of one worker: an all-reduce of a fed vector, on its own device."""

    def __init__(self, cluster, task, group_size=2, filters=True, **more):
        self.graph = tf.Graph()
        with self.graph.as_default(), tf.device(device(task)):
            self.x = tf.placeholder(tf.float32, [None])
            self.sum = collective_ops.all_reduce(self.x, group_size, 1, 1, **more)
        self.session = tf.Session(cluster.target(index=task), graph=self.graph,
                                  config=config(filters=["/job:worker/task:%d" % task] if filters else []))
        open_sessions.append(self.session)

    def run(self, value, options=None):
        return self.session.run(self.sum, {self.x: value}, options=options)


@pytest.mark.parametrize("kinds", [["rill", "rill"], ["rill", "tf"], ["tf", "rill"]], ids=["rill", "rill_leads", "tf_leads"])
def test_workers_with_sessions_of_their_own(start_cluster, kinds):
    """Masters agree on step ids by the key of the graph or that of the client; a session that is made anew goes on.

    (TensorFlow keeps the key of the first run of a signature, so each key has sessions of its own.)"""
    cluster = start_cluster({"worker": kinds}, tf_environment=LEADERS)
    for options in (None, keyed(77)):
        a, b = Worker(cluster, 0), Worker(cluster, 1)
        for step in range(5):
            got = in_threads(lambda: a.run([step, 1], options), lambda: b.run([10, step], options))
            assert [list(g) for g in got] == [[10 + step, 1 + step]] * 2
        b.session.close()
        b = Worker(cluster, 1)
        got = in_threads(lambda: a.run([1, 2], options), lambda: b.run([3, 4], options))
        assert [list(g) for g in got] == [[4, 6]] * 2
        a.session.close()
        b.session.close()


def test_devices_of_one_task(start_cluster, tensorflow_results):
    """Two devices in each of two tasks: rings and trees inside a task and between them."""
    cluster = start_cluster({"worker": 2}, flags=["--cpu_devices", "2"])
    with tf.Graph().as_default():
        program = Program([device(t, c) for t in range(2) for c in range(2)]).everything()
        with tf.Session(cluster.target(), config=config()) as s:
            got = s.run(program.fetches)
    for source in range(4):
        for rank in range(4):
            np.testing.assert_array_equal(got["bcast int32 from %d" % source, rank], values(tf.int32, (3, 2), source))
    want = sum(values(tf.int64, (7, 5), r) for r in range(4))
    rows = np.concatenate([values(tf.int64, (3, 2), r) for r in range(4)])
    for rank in range(4):
        np.testing.assert_array_equal(got["reduce int64 Add", rank], want)
        np.testing.assert_array_equal(got["gather int64", rank], rows)
        for from_rank in range(4):
            np.testing.assert_array_equal(got["all to all int64", rank][from_rank], values(tf.int64, (4, 3), from_rank)[rank])


def test_groups_of_one_and_the_ops_that_set_groups_up(start_cluster):
    cluster = start_cluster({"worker": 2})
    raw = tf.raw_ops
    with tf.Graph().as_default():
        x = tf.constant([1.0, 2.0, 3.0, 4.0])
        alone = [collective_ops.all_reduce(x, 1, 3, 1, final_op="Div"), collective_ops.all_gather(x, 1, 3, 2),
                 raw.CollectiveBcastSendV2(input=x, group_size=1, group_key=3, instance_key=3), collective_ops.all_reduce_v2(x, 1, 3, 4)]
        assigned = raw.CollectiveAssignGroupV2(group_assignment=[[0, 1], [2, 3]], device_index=3, base_key=40)
        parts, third = [], []
        for task in range(2):
            with tf.device(device(task)):
                y = x * (task + 1)
                parts.append(raw.CollectiveReduceScatterV2(input=y, group_size=2, group_key=5, instance_key=1, ordering_token=[], merge_op="Add", final_op="Id"))
                group = raw.CollectiveInitializeCommunicator(group_key=6, rank=task, group_size=2)
                none = tf.zeros([0, 0], tf.int32)
                third.append(raw.CollectiveReduceV3(input=y, communicator=group, group_assignment=none, reduction="Add"))
        with tf.Session(cluster.target(), config=config()) as s:
            for value in s.run(alone):
                np.testing.assert_array_equal(value, [1, 2, 3, 4])
            assert tuple(s.run(assigned)) == (2, 41)
            got = s.run(parts)
            assert [list(g) for g in got] == [[3, 6], [9, 12]]
            assert [list(g) for g in s.run(third)] == [[3, 6, 9, 12]] * 2


# ---- Members that do not fit, or do not come


def pair(s, first, second):
    """Runs one op at each of two tasks in one step."""
    return s.run([first, second], options=tf.RunOptions(timeout_in_ms=60000))


MISFITS = {
    "size": (tf.errors.InternalError, "is joining a group with size3, but that group has size 2|with size2, but that group has size 3",
             lambda t: collective_ops.all_reduce(tf.ones([2]), 2 + t, 21, 1)),
    "shape": (tf.errors.InvalidArgumentError, "Shape mismatch in the collective instance 2",
              lambda t: collective_ops.all_reduce(tf.ones([2 + t]), 2, 22, 2)),
    "type": (tf.errors.InternalError, "Collective instance 3 expected type",
             lambda t: collective_ops.all_reduce(tf.ones([2], [tf.float32, tf.int32][t]), 2, 23, 3)),
    "kind": (tf.errors.InternalError, "Collective instance 4 expected type",
             lambda t: [collective_ops.all_reduce, collective_ops.all_gather][t](tf.ones([2]), 2, 24, 4)),
    "no source": (tf.errors.InternalError, "Instance 5 found no source for broadcast",
                  lambda t: collective_ops.broadcast_recv([2], tf.float32, 2, 25, 5)),
    "two sources": (tf.errors.InternalError, "Instance 6 already has source",
                    lambda t: collective_ops.broadcast_send(tf.ones([2]), [2], tf.float32, 2, 26, 6)),
    "rows": (tf.errors.InvalidArgumentError, r"first dimension size \(3\) must be the same as the group size \(2\)",
             lambda t: collective_ops.all_to_all_v2(tf.ones([3, 2]), 2, 27, 7)),
    "scalar": (tf.errors.InvalidArgumentError, "group_size must be positive integer but got 0",
               lambda t: collective_ops.all_reduce_v2(tf.ones([2]), tf.constant(0) * t, 28, 8)),
}


def test_members_that_do_not_fit(start_cluster):
    """Each has the error of TensorFlow, and the session works on afterwards."""
    cluster = start_cluster({"worker": 2})
    with tf.Graph().as_default():
        ops = {}
        for case, (_, _, make) in MISFITS.items():
            ops[case] = []
            for task in range(2):
                with tf.device(device(task)):
                    ops[case].append(make(task))
        good = []
        for task in range(2):
            with tf.device(device(task)):
                good.append(collective_ops.all_reduce(tf.ones([2]), 2, 21, 1))
        with tf.Session(cluster.target(), config=config()) as s:
            for case, (error, text, _) in MISFITS.items():
                with pytest.raises(error, match=text):
                    pair(s, *ops[case])
            assert [list(v) for v in pair(s, *good)] == [[2, 2]] * 2


def test_a_member_that_never_comes(start_cluster):
    """The op's own timeout says who is here; a step's timeout ends it too; and the group forms when all come."""
    cluster = start_cluster({"worker": 2})
    a = Worker(cluster, 0, timeout=1)
    with pytest.raises(tf.errors.DeadlineExceededError, match="1 of 2 members have not come; here are /job:worker/replica:0/task:0"):
        a.run([1])
    b = Worker(cluster, 1)
    with pytest.raises(tf.errors.DeadlineExceededError):
        b.run([1], tf.RunOptions(timeout_in_ms=500))
    a = Worker(cluster, 0)
    got = in_threads(lambda: a.run([1]), lambda: b.run([2]))
    assert [list(g) for g in got] == [[3]] * 2


def test_a_failure_at_one_member_ends_the_step_of_the_other(start_cluster):
    """Under masters of their own, where nobody cancels the other's step."""
    cluster = start_cluster({"worker": 2})
    a, b = Worker(cluster, 0), Worker(cluster, 1)
    got = in_threads(lambda: a.run([1]), lambda: b.run([1]))
    assert [list(g) for g in got] == [[2]] * 2
    got = in_threads(lambda: a.run([1, 2, 3]), lambda: b.run(np.ones(1000)))  # shapes of later steps are not compared: the sizes of parts are
    assert all(isinstance(g, tf.errors.OpError) for g in got), got
    assert any("bytes where" in str(g) for g in got), got


@pytest.mark.parametrize("victim", [0, 1], ids=["leader", "member"])
def test_a_task_that_dies(start_cluster, victim):
    """The other member's step ends with Unavailable; new sessions work once the task is back and the survivor has found it."""
    cluster = start_cluster({"worker": 2})
    workers = [Worker(cluster, 0), Worker(cluster, 1)]
    got = in_threads(lambda: workers[0].run([1]), lambda: workers[1].run([1]))
    assert [list(g) for g in got] == [[2]] * 2
    cluster.task("worker", victim).kill()
    with pytest.raises((tf.errors.UnavailableError, tf.errors.AbortedError)):
        workers[1 - victim].run([1])
    cluster.task("worker", victim).start()
    lost, limit = (tf.errors.UnavailableError, tf.errors.AbortedError, tf.errors.DeadlineExceededError), tf.RunOptions(timeout_in_ms=2000)
    got = [None]
    while any(not isinstance(g, np.ndarray) for g in got):
        workers = [Worker(cluster, 0), Worker(cluster, 1)]
        got = in_threads(lambda: workers[0].run([1], limit), lambda: workers[1].run([1], limit))
        assert all(isinstance(g, lost + (np.ndarray,)) for g in got), got
    assert [list(g) for g in got] == [[2]] * 2
