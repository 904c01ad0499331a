"""Steps that end before their time: timeout, cancel, close, a client that dies. Nothing may be left behind, and that is counted."""
import subprocess
import sys
import time

import pytest
import tensorflow.compat.v1 as tf

import counts
from cluster_process import Cluster

pytestmark = pytest.mark.asan

REPEAT = 50
WARM_UP = 10
SOON_SECONDS = 15  # on a machine that does much else


@pytest.fixture(scope="module")
def cluster():
    with Cluster({"ps": 1, "worker": 2}) as c:
        yield c
        assert set(c.stop().values()) == {0}, c.log[-5000:]


@pytest.fixture(autouse=True)
def nothing_left(cluster):
    """Every test here begins and ends with tasks that hold nothing."""
    counts.wait_until_empty(cluster.target())
    yield
    counts.wait_until_empty(cluster.target())


def add_blocked():
    """A step over three tasks that waits for a value nobody enqueues."""
    with tf.device("/job:ps/task:0"):
        queue = tf.FIFOQueue(10, tf.float32, [[]])
        enqueue = queue.enqueue(tf.constant(3.0))
        value = queue.dequeue()
    with tf.device("/job:worker/task:1"):
        return tf.square(value), enqueue


@pytest.fixture
def blocked():
    with tf.Graph().as_default():
        yield add_blocked()


def start_blocked(session, cluster, tensor):
    step = counts.Background(lambda: session.run(tensor))
    counts.wait_for(cluster.target(), runs=3)
    assert step.ended is None, step.error
    return step


def assert_deadline(session, tensor, milliseconds, **arguments):
    begin = time.monotonic()
    with pytest.raises(tf.errors.DeadlineExceededError):
        session.run(tensor, **arguments)
    assert milliseconds / 1000 * 0.9 < time.monotonic() - begin < milliseconds / 1000 + SOON_SECONDS


def test_run_options_timeout(cluster, blocked):
    wait, enqueue = blocked
    with tf.Session(cluster.target()) as session:
        assert_deadline(session, wait, 300, options=tf.RunOptions(timeout_in_ms=300))
        counts.wait_for(cluster.target(), runs=0, steps_held=0)
        # The step that gave up took nothing: the next one gets the value.
        session.run(enqueue)
        assert session.run(wait) == 9.0


def test_operation_timeout_of_the_session(cluster, blocked):
    wait, enqueue = blocked
    with tf.Session(cluster.target(), config=tf.ConfigProto(operation_timeout_in_ms=300)) as session:
        assert_deadline(session, wait, 300)
        counts.wait_for(cluster.target(), runs=0, steps_held=0)
    with tf.Session(cluster.target()) as patient:
        patient.run(enqueue)
        assert patient.run(wait) == 9.0


def test_close_cancels_the_steps_of_the_session_and_no_others(cluster, blocked):
    wait, enqueue = blocked
    other = tf.Session(cluster.target(), config=tf.ConfigProto(isolate_session_state=True))
    with other:
        session = tf.Session(cluster.target(), config=tf.ConfigProto(isolate_session_state=True))
        step = start_blocked(session, cluster, wait)
        second = counts.Background(lambda: other.run(wait))
        counts.wait_for(cluster.target(), runs=6)
        begin = time.monotonic()
        session.close()
        step.wait()
        assert step.ended - begin < SOON_SECONDS
        assert isinstance(step.error, tf.errors.CancelledError), step.error
        assert "Step was cancelled by an explicit call" in step.error.message
        counts.wait_for(cluster.target(), runs=3, client_sessions=1)
        assert second.ended is None
        other.run(enqueue)
        assert second.wait().result == 9.0


def test_close_of_a_partial_run_leaves_nothing(cluster):
    with tf.Graph().as_default():
        a, b = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
        with tf.device("/job:ps/task:0"):
            first = a + 1.0
        with tf.device("/job:worker/task:1"):
            second = first * b
        session = tf.Session(cluster.target())
        handle = session.partial_run_setup([first, second], [a, b])
        assert session.partial_run(handle, first, {a: 4.0}) == 5.0
        session.close()


def test_a_failed_step_leaves_nothing(cluster):
    with tf.Graph().as_default():
        x = tf.placeholder(tf.int32, [])
        wait, _ = add_blocked()
        with tf.device("/job:worker/task:1"):
            bad = tf.constant([1, 2, 3]) // x
        with tf.Session(cluster.target()) as session:
            for _ in range(50):  # the tasks begin and end in many orders
                begin = time.monotonic()
                with pytest.raises(tf.errors.InvalidArgumentError, match="zero"):
                    session.run([wait, bad], {x: 0})
                assert time.monotonic() - begin < SOON_SECONDS
            counts.wait_for(cluster.target(), runs=0, steps_held=0, calls_out=0)


CLIENT = """
import sys
import tensorflow.compat.v1 as tf
with tf.Graph().as_default():
    with tf.device("/job:ps/task:0"):
        value = tf.FIFOQueue(10, tf.float32, [[]]).dequeue()
    with tf.device("/job:worker/task:1"):
        wait = tf.square(value)
    session = tf.Session(sys.argv[1])
    print("RUN", flush=True)
    session.run(wait)
"""


def test_the_step_of_a_client_that_dies_is_ended(cluster):
    client = subprocess.Popen([sys.executable, "-c", CLIENT, cluster.target()], stdout=subprocess.PIPE)
    try:
        assert client.stdout.readline() == b"RUN\n"
        counts.wait_for(cluster.target(), runs=3)
    finally:
        client.kill()
        client.wait()
        client.stdout.close()
    counts.wait_for(cluster.target(), runs=0, steps_held=0, calls_in=0, calls_out=0)
    # Its session has no owner now; Reset of the master ends it.
    tf.Session.reset(cluster.target())


def one_round(cluster, i):
    """A session with a step that succeeds, one that times out, one that fails and one that is cancelled by close."""
    with tf.Graph().as_default():
        wait, enqueue = add_blocked()
        bad = tf.constant([1]) // tf.placeholder_with_default(0, [])
        session = tf.Session(cluster.target(), config=tf.ConfigProto(isolate_session_state=True))
        session.run(enqueue)
        assert session.run(wait) == 9.0
        with pytest.raises(tf.errors.DeadlineExceededError):
            session.run(wait, options=tf.RunOptions(timeout_in_ms=20))
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run([wait, bad])
        counts.wait_for(cluster.target(), runs=0)
        step = start_blocked(session, cluster, wait)
        session.close()
        assert isinstance(step.wait().error, tf.errors.CancelledError), step.error


def test_no_thread_and_no_fd_is_left_after_many_rounds(cluster, capsys):
    for i in range(WARM_UP):
        one_round(cluster, i)
    counts.wait_until_empty(cluster.target())
    before = counts.threads_and_fds(cluster)
    for i in range(REPEAT):
        one_round(cluster, i)
    counts.wait_until_empty(cluster.target())
    # A thread or two more may have been needed at once; one for each round may not.
    after = counts.threads_and_fds(cluster, {task: (threads + 3, fds + 3) for task, (threads, fds) in before.items()})
    with capsys.disabled():
        print("\nthreads and fds before %d rounds %s, after %s" % (REPEAT, before, after))
    for task in before:
        assert after[task][0] <= before[task][0] + 3, (before, after)
        assert after[task][1] <= before[task][1] + 3, (before, after)
