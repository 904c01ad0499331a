"""Supervisor and MonitoredTrainingSession programs on Rill clusters, run to the end, also when tasks die and come back."""
import concurrent.futures
import glob
import threading

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

import models
import training

STEPS = 40
PATIENCE = 150  # seconds that one of several programs waits for another
# A queue runner whose session is closed under it says so in its thread, as it does with TensorFlow.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")


class Worker:
    """One between-graph worker program; every worker of a job runs one in a thread of its own."""

    def __init__(self, cluster, index, workers, folder, sync=False, kind="resource", ps=1, steps=STEPS):
        self.target = cluster.target("worker", index)
        self.is_chief = index == 0
        self.folder = str(folder)
        self.steps = steps
        self.index = index
        self.filters = ["/job:ps", "/job:worker/task:%d" % index]
        self.seen = []
        self.reached = threading.Event()  # set at step `announce`
        self.announce = -1
        self.hold = None  # an event the program waits for at step `hold_at`
        self.hold_at = 0
        self.graph = tf.Graph()
        with self.graph.as_default(), models.variables_of(kind), models.device_of(index, ps, True):
            self.step = tf.train.get_or_create_global_step()
            self.x, self.y = models.inputs()
            self.loss = models.loss_of("mlp", self.x, self.y)
            optimizer = models.OPTIMIZERS["sgd"]()
            if sync:
                optimizer = tf.train.SyncReplicasOptimizer(optimizer, workers, total_num_replicas=workers)
            self.train = optimizer.minimize(self.loss, global_step=self.step)
            self.hooks = [optimizer.make_session_run_hook(self.is_chief)] if sync else []
            self.optimizer = optimizer
            with tf.control_dependencies([self.train]):
                self.step_after = self.step.read_value()
            self.summary = tf.summary.scalar("loss", self.loss)

    def config(self):
        return training.config(device_filters=self.filters, operation_timeout_in_ms=60000)

    def train_until_stop(self, session, should_stop):
        data = models.batches(50, seed=self.index)
        i = 0
        while not should_stop():
            images, labels = data[i % len(data)]
            i += 1
            _, loss, step = session.run([self.train, self.loss, self.step_after], {self.x: images, self.y: labels})
            self.seen.append((int(step), float(loss)))
            if step >= self.announce >= 0:
                self.reached.set()
            if self.hold and step >= self.hold_at:
                assert self.hold.wait(PATIENCE)

    def monitored(self, save_steps=5, max_wait_secs=PATIENCE):
        with self.graph.as_default(), models.device_of(self.index, 1, True):
            with tf.train.MonitoredTrainingSession(
                    self.target, is_chief=self.is_chief, checkpoint_dir=self.folder, config=self.config(),
                    hooks=self.hooks + [tf.train.StopAtStepHook(last_step=self.steps)], save_checkpoint_steps=save_steps,
                    save_checkpoint_secs=None, save_summaries_steps=5, save_summaries_secs=None, log_step_count_steps=None,
                    max_wait_secs=max_wait_secs, stop_grace_period_secs=2) as session:
                self.train_until_stop(session, session.should_stop)

    def supervised(self):
        with self.graph.as_default(), models.device_of(self.index, 1, True):
            supervisor = tf.train.Supervisor(is_chief=self.is_chief, logdir=self.folder, global_step=self.step,
                                             save_model_secs=1, summary_op=None, recovery_wait_secs=1)
            with supervisor.managed_session(self.target, config=self.config()) as session:
                self.train_until_stop(session, lambda: supervisor.should_stop() or self.seen[-1:] >= [(self.steps,)])
                if self.is_chief:
                    feeds = dict(zip((self.x, self.y), models.batches(1)[0]))
                    supervisor.summary_computed(session, session.run(self.summary, feeds))
                    supervisor.saver.save(session, supervisor.save_path, global_step=self.step)


@pytest.fixture(autouse=True)
def short_polls(monkeypatch):
    """Workers that wait for the chief ask again every half second instead of every 30."""
    original = tf.train.SessionManager.__init__

    def init(self, *args, **kwargs):
        kwargs["recovery_wait_secs"] = 0.5
        original(self, *args, **kwargs)

    monkeypatch.setattr(tf.train.SessionManager, "__init__", init)


def run_all(programs):
    """Runs programs in threads; the first error of any is raised."""
    with concurrent.futures.ThreadPoolExecutor(len(programs)) as pool:
        for f in concurrent.futures.as_completed([pool.submit(p) for p in programs]):
            f.result()


def last_step(folder):
    return tf.train.load_checkpoint(tf.train.latest_checkpoint(str(folder))).get_tensor("global_step")


def check_learnt(workers):
    losses = [loss for _, loss in sorted(pair for w in workers for pair in w.seen)]
    assert np.isfinite(losses).all() and np.mean(losses[-5:]) < np.mean(losses[:5])


def check_summaries(folder):
    events = [e for f in glob.glob(str(folder / "events*")) for e in tf.train.summary_iterator(f)]
    assert any(v.tag == "loss" for e in events for v in e.summary.value)


@pytest.mark.parametrize("kind", ["ref", "resource"])
@pytest.mark.parametrize("sync", [False, True], ids=["async", "sync"])
def test_monitored_training(start_cluster, tmp_path, kind, sync):
    cluster = start_cluster({"ps": 2, "worker": 2})
    workers = [Worker(cluster, i, 2, tmp_path, sync=sync, kind=kind, ps=2) for i in range(2)]
    run_all([w.monitored for w in workers])
    check_learnt(workers)
    assert last_step(tmp_path) >= STEPS
    check_summaries(tmp_path)
    # A second job goes on where the first one ended.
    again = Worker(cluster, 0, 1, tmp_path, kind=kind, ps=2, steps=STEPS + 10)
    tf.Session.reset(cluster.target())
    again.monitored()
    assert again.seen[0][0] > STEPS and last_step(tmp_path) == STEPS + 10


@pytest.mark.parametrize("kind", ["ref", "resource"])
def test_supervisor(start_cluster, tmp_path, kind):
    cluster = start_cluster({"ps": 1, "worker": 2})
    workers = [Worker(cluster, i, 2, tmp_path, kind=kind) for i in range(2)]
    run_all([w.supervised for w in workers])
    check_learnt(workers)
    assert last_step(tmp_path) >= STEPS
    check_summaries(tmp_path)


def test_supervisor_with_sync_replicas(start_cluster, tmp_path):
    """The classic recipe: init tokens, the chief's queue runner, local init op, prepare_or_wait_for_session."""
    cluster = start_cluster({"ps": 1, "worker": 2})
    workers = [Worker(cluster, i, 2, tmp_path, sync=True, kind="ref") for i in range(2)]

    supervisors, sessions, both_ready, finished = [], [], threading.Barrier(2, timeout=PATIENCE), threading.Event()

    def program(w):
        with w.graph.as_default(), models.device_of(w.index, 1, True):
            opt = w.optimizer
            runner, tokens = opt.get_chief_queue_runner(), opt.get_init_tokens_op()
            supervisor = tf.train.Supervisor(
                is_chief=w.is_chief, logdir=w.folder, global_step=w.step, recovery_wait_secs=1, save_model_secs=0,
                local_init_op=opt.chief_init_op if w.is_chief else opt.local_step_init_op,
                ready_for_local_init_op=opt.ready_for_local_init_op, init_op=tf.global_variables_initializer(),
                save_summaries_secs=0, summary_op=None)
            session = supervisor.prepare_or_wait_for_session(w.target, config=w.config())
            sessions.append(session)
            supervisors.append(supervisor)
            if w.is_chief:
                supervisor.start_queue_runners(session, [runner])
                session.run(tokens)
            both_ready.wait()
            try:
                w.train_until_stop(session, lambda: w.seen[-1:] >= [(STEPS,)])
                finished.set()
            except (tf.errors.CancelledError, RuntimeError):
                assert finished.is_set()
            for each in supervisors:  # before its session goes: a queue runner that is cut off then is no failure
                each.request_stop()
            for each in sessions:  # the other one may wait for a token that no longer comes
                each.close()
            supervisor.stop(close_summary_writer=False, ignore_live_threads=True)

    run_all([lambda w=w: program(w) for w in workers])
    check_learnt(workers)


def test_report_uninitialized_variables(start_cluster, graph):
    cluster = start_cluster({"ps": 2, "worker": 1})
    with tf.device(tf.train.replica_device_setter(ps_tasks=2)):
        a = tf.Variable(1.0, name="a", use_resource=False)
        b = tf.Variable(2.0, name="b", use_resource=True)
        c = tf.Variable(3.0, name="c", use_resource=False, collections=[tf.GraphKeys.LOCAL_VARIABLES])
        report = tf.report_uninitialized_variables()
    with training.session(cluster.target(), graph) as s:
        assert sorted(s.run(report)) == [b"a", b"b", b"c"]
        s.run(b.initializer)
        assert sorted(s.run(report)) == [b"a", b"c"]
        s.run([a.initializer, c.initializer])
        assert s.run(report).size == 0


@pytest.mark.parametrize("index", [0, 1], ids=["chief", "other"])
def test_worker_killed_and_restarted(start_cluster, tmp_path, index):
    """kill -9 of a worker task in mid-training: its client gets a new session and the job runs to its end."""
    cluster = start_cluster({"ps": 1, "worker": 2})
    workers = [Worker(cluster, i, 2, tmp_path, steps=80) for i in range(2)]
    victim, other = workers[index], workers[1 - index]
    victim.announce = victim.hold_at = 20
    other.hold_at = 40  # before the end, whichever of the two is faster
    victim.hold = other.hold = threading.Event()
    seen_before = []

    def fault():
        assert victim.reached.wait(PATIENCE)
        seen_before.append(len(victim.seen))
        cluster.task("worker", index).restart()
        victim.hold.set()

    run_all([w.monitored for w in workers] + [fault])
    assert last_step(tmp_path) >= 80 and len(victim.seen) > seen_before[0]
    check_learnt(workers)


@pytest.mark.parametrize("kind", ["ref", "resource"])
def test_ps_restarted_and_restored(start_cluster, tmp_path, kind):
    """The ps loses everything; the chief restores the last checkpoint and both workers go on."""
    cluster = start_cluster({"ps": 1, "worker": 2})
    workers = [Worker(cluster, i, 2, tmp_path, steps=120, kind=kind) for i in range(2)]
    for w in workers:
        w.announce = w.hold_at = 30
        w.hold = threading.Event()

    def fault():
        for w in workers:
            assert w.reached.wait(PATIENCE)
        cluster.task("ps").restart()
        for w in workers:
            w.hold.set()

    run_all([w.monitored for w in workers] + [fault])
    assert last_step(tmp_path) >= 120
    for w in workers:
        steps = [step for step, _ in w.seen]
        back = [b for a, b in zip(steps, steps[1:]) if b <= a]  # where it went on from the checkpoint
        assert len(back) <= 1 and all(step >= 10 for step in back), steps
    check_learnt(workers)


def test_ps_killed_in_mid_step(start_cluster, tmp_path):
    """The program is inside a step when the ps dies; it waits for the new one and restores."""
    cluster = start_cluster({"ps": 1, "worker": 1})
    w = Worker(cluster, 0, 1, tmp_path, steps=60)
    w.announce, w.hold_at, w.hold = 25, 50, threading.Event()  # it cannot end before the ps has died

    def fault():
        assert w.reached.wait(PATIENCE)
        cluster.task("ps").kill()
        cluster.task("ps").start()
        w.hold.set()

    run_all([w.monitored, fault])
    assert last_step(tmp_path) == 60
