"""Tasks that are killed, restarted or missing: what the client is told, and how soon."""
import time

import grpc
import pytest
import tensorflow.compat.v1 as tf

import counts
from cluster_process import Cluster

pytestmark = pytest.mark.asan

AT_ONCE_SECONDS = 15  # less than any time limit that would end it too; the machine may be busy
PS, WORKER0, WORKER1 = "/job:ps/task:0", "/job:worker/task:0", "/job:worker/task:1"


class Blocked:
    """A graph with a step that waits in a queue of one task for another."""

    def __init__(self, queue_on=PS, compute_on=WORKER0):
        self.graph = tf.Graph()
        with self.graph.as_default():
            with tf.device(queue_on):
                queue = tf.FIFOQueue(10, tf.float32, [[]])
                self.enqueue = queue.enqueue(tf.constant(3.0))
                self.size = queue.size()
                value = queue.dequeue()
            with tf.device(compute_on):
                self.wait = tf.square(value)
            with tf.device(queue_on):
                self.variable = tf.Variable(1.0, use_resource=True)
                self.read = self.variable.read_value()
            with tf.device(compute_on):
                self.add = self.variable.assign_add(tf.constant(2.0) * 1.0)
            self.initialize = tf.global_variables_initializer()


@pytest.fixture
def cluster():
    with Cluster({"ps": 1, "worker": 2}, flags=["--session-timeout", "20"]) as c:
        yield c


def run_blocked(session, target, tensor):
    """Starts a step that waits; returns when the tasks are in it."""
    background = counts.Background(lambda: session.run(tensor))
    end = time.monotonic() + 60
    while counts.totals(target)["runs"] < 2:
        assert background.ended is None, background.error
        assert time.monotonic() < end
        time.sleep(0.01)
    return background


def test_a_ps_killed_in_mid_step_is_unavailable_at_once(cluster):
    g = Blocked()
    with tf.Session(cluster.target(), graph=g.graph) as session:
        session.run(g.initialize)
        step = run_blocked(session, cluster.target(), g.wait)
        killed = time.monotonic()
        cluster.task("ps").kill()
        step.wait()
        assert isinstance(step.error, tf.errors.UnavailableError), step.error
        assert step.ended - killed < AT_ONCE_SECONDS
        assert "/job:ps/replica:0/task:0" in step.error.message
        # The next step says so as well, as fast.
        begin = time.monotonic()
        with pytest.raises(tf.errors.UnavailableError):
            session.run(g.add)
        assert time.monotonic() - begin < AT_ONCE_SECONDS


def test_a_restarted_ps_is_aborted_and_a_new_session_works_at_once(cluster):
    g = Blocked()
    with tf.Session(cluster.target(), graph=g.graph) as session:
        session.run(g.initialize)
        assert session.run(g.add) == 3.0
        cluster.task("ps").restart()
        with pytest.raises(tf.errors.AbortedError) as caught:
            session.run(g.add)
        assert "/job:ps/replica:0/task:0" in caught.value.message
        begin = time.monotonic()
        with tf.Session(cluster.target(), graph=g.graph) as fresh:
            with pytest.raises(tf.errors.FailedPreconditionError):
                fresh.run(g.read)
            fresh.run(g.initialize)
            assert fresh.run(g.add) == 3.0
        assert time.monotonic() - begin < AT_ONCE_SECONDS


def test_a_ps_restarted_in_mid_step_ends_the_step(cluster):
    g = Blocked()
    with tf.Session(cluster.target(), graph=g.graph) as session:
        session.run(g.initialize)
        step = run_blocked(session, cluster.target(), g.wait)
        cluster.task("ps").restart()
        step.wait(AT_ONCE_SECONDS)
        assert isinstance(step.error, (tf.errors.UnavailableError, tf.errors.AbortedError)), step.error


def test_a_worker_killed_while_others_wait(cluster):
    """Worker 1 waits for the ps; its death ends that step alone, the step of worker 0's own goes on."""
    mine, other = Blocked(compute_on=WORKER0), Blocked(compute_on=WORKER1)
    config = tf.ConfigProto(device_filters=["/job:ps", WORKER0])
    with tf.Session(cluster.target("worker", 0), graph=mine.graph, config=config) as own, \
            tf.Session(cluster.target("worker", 0), graph=other.graph) as through:
        own_step = run_blocked(own, cluster.target(), mine.wait)
        lost_step = counts.Background(lambda: through.run(other.wait))
        counts.wait_for(cluster.target(), runs=5)
        killed = time.monotonic()
        cluster.task("worker", 1).kill()
        lost_step.wait()
        assert isinstance(lost_step.error, tf.errors.UnavailableError), lost_step.error
        assert lost_step.ended - killed < AT_ONCE_SECONDS
        assert "/job:worker/replica:0/task:1" in lost_step.error.message
        assert own_step.ended is None
        own.run(mine.enqueue)
        assert own_step.wait().result == 9.0
    counts.wait_for(cluster.target(), runs=0, steps_held=0, client_sessions=0)


def test_the_task_of_the_master_killed_leaves_nothing_on_the_others(cluster):
    g = Blocked()
    session = tf.Session(cluster.target("worker", 0), graph=g.graph)
    session.run(g.initialize)
    step = run_blocked(session, cluster.target("worker", 0), g.wait)
    cluster.task("worker", 0).kill()
    counts.wait_for(cluster.target("worker", 1), runs=0, steps_held=0, calls_in=0, calls_out=0)
    # The client's own library waits for the master to come back; then it learns that its session is gone.
    cluster.task("worker", 0).start()
    step.wait()
    assert isinstance(step.error, tf.errors.AbortedError), step.error
    with pytest.raises(tf.errors.AbortedError):
        session.close()
    with tf.Session(cluster.target("worker", 0), graph=g.graph) as fresh:
        fresh.run(g.initialize)
        # What the dead master held on other tasks went with the new one's first session.
        ps = counts.held(cluster.target())["/job:ps/replica:0/task:0"]
        assert ps["worker_sessions"] == 1 and ps["steps_held"] == 0
    counts.wait_until_empty(cluster.target())


def test_a_missing_task_is_named_after_the_session_timeout():
    with Cluster({"ps": 1, "worker": 1}, flags=["--session-timeout", "2"], start=False) as cluster:
        worker = cluster.task("worker").start()
        g = Blocked()
        with tf.Session(cluster.target(), graph=g.graph) as session:
            begin = time.monotonic()
            with pytest.raises(tf.errors.AbortedError) as caught:
                session.run(g.initialize)
            assert 1.5 < time.monotonic() - begin < 30  # not the 60 s that would be without the flag
        message = caught.value.message
        assert "/job:ps/replica:0/task:0" in message and cluster.spec["ps"][0] in message
        assert "refused" in message, message
        assert "device_filters" in message
        lines = [line for line in worker.log.splitlines() if cluster.spec["ps"][0] in line]
        assert len(lines) == 1, worker.log
        # Without that task it works, and with it too once it is there.
        with tf.Session(cluster.target(), config=tf.ConfigProto(device_filters=["/job:worker"])) as session:
            assert session.run(tf.constant(5)) == 5
        cluster.task("ps").start()
        with tf.Session(cluster.target(), graph=g.graph) as session:
            session.run(g.initialize)
            assert session.run(g.add) == 3.0


def test_a_session_waits_for_a_task_that_comes_late():
    with Cluster({"ps": 1, "worker": 1}, flags=["--session-timeout", "60"], start=False) as cluster:
        cluster.task("worker").start()
        g = Blocked()
        with tf.Session(cluster.target(), graph=g.graph) as session:
            first = counts.Background(lambda: session.run(g.initialize))
            first._thread.join(0.5)
            assert first.ended is None
            cluster.task("ps").start()
            started = time.monotonic()
            first.wait()
            assert first.error is None and first.ended - started < AT_ONCE_SECONDS
            assert session.run(g.add) == 3.0


def test_a_client_that_gives_up_while_its_session_is_made_leaves_none_behind():
    with Cluster({"ps": 1, "worker": 1}, flags=["--session-timeout", "30"], start=False) as cluster:
        cluster.task("worker").start()
        channel = grpc.insecure_channel(cluster.spec["worker"][0])
        create = channel.unary_unary("/tensorflow.MasterService/CreateSession", bytes, bytes)
        with pytest.raises(grpc.RpcError) as caught:
            create(b"", timeout=1)  # the ps is missing
        assert caught.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
        cluster.task("ps").start()
        counts.wait_until_empty(cluster.target())
        with tf.Session(cluster.target(), graph=tf.Graph()) as session:
            assert len(session.list_devices()) == 2
        channel.close()


def test_sessions_of_a_master_that_died_are_dropped_when_it_comes_back(cluster):
    g = Blocked()
    lost = tf.Session(cluster.target(), graph=g.graph)
    lost.run(g.initialize)
    ps = "/job:ps/replica:0/task:0"
    assert counts.held(cluster.target("ps"))[ps]["worker_sessions"] == 1
    cluster.task("worker").restart()
    with tf.Session(cluster.target(), graph=g.graph) as session:
        session.run(g.initialize)
        assert counts.held(cluster.target("ps"))[ps]["worker_sessions"] == 1
    counts.wait_until_empty(cluster.target())
    with pytest.raises(tf.errors.AbortedError):
        lost.run(g.read)
