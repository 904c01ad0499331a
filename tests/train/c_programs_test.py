"""The programs of examples/c, as users run them: real processes, killed and restarted; what they write is read by TensorFlow."""
import glob
import os
import re
import subprocess

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

import tensorflow_digits
from cluster_process import RILL, ROOT
from program import SECONDS, Job, reach_step


def run(*command, code=0, **more):
    done = subprocess.run([str(c) for c in command], cwd=ROOT, capture_output=True, text=True, timeout=SECONDS, **more)
    out = done.stdout + done.stderr
    assert done.returncode == code, "exit code %d\n%s" % (done.returncode, out)
    assert "Sanitizer" not in out and "runtime error:" not in out, out
    return out


@pytest.fixture(scope="module")
def records(built, tmp_path_factory):
    folder = tmp_path_factory.mktemp("records")
    assert "1497 digits to train, 300 to test" in run(built("records"), "--folder=%s" % folder)
    return folder


def saved_step(folder):
    return tf.train.load_checkpoint(tf.train.latest_checkpoint(str(folder))).get_tensor("global_step")


def test_standalone(built):
    assert re.search(r"grpc://localhost:\d+: low \+ /cpu:0 = 5050", run(built("standalone")))
    out = run(RILL, "up", "--ps", 2, "--workers", 2, "--client", "--quiet", "--", built("standalone"), "--target={target}")
    assert "/job:ps/task:1 + /job:worker/task:1 = 5050" in out


def test_placed_by_hand(built):
    out = run(RILL, "up", "--ps", 2, "--workers", 2, "--client", "--quiet", "--", built("placed"), "--target={target}")
    first, last = map(float, re.search(r"100 steps: loss ([\d.]+), then ([\d.]+)", out).groups())
    assert first > 2 and last < 0.6
    failed = run(RILL, "up", "--ps", 1, "--workers", 2, "--client", "--quiet", "--", built("placed"), "--target={target}", code=1)
    assert "/job:ps/task:1" in failed and "available devices" in failed  # no such task: it is named


@pytest.mark.parametrize("how", ["one process", "processes", "alone"])
def test_digits_in_step(built, tmp_path, how):
    """The network of the demo learns, however its tasks are spread, and TensorFlow reads what it wrote."""
    flags = ["--steps=150", "--logdir=%s" % tmp_path, "--expect=85"]
    command = {"one process": [built("digits"), "--cluster=local", "--ps=2", "--workers=2"], "alone": [built("digits")],
               "processes": [RILL, "up", "--ps", 2, "--workers", 2, "--quiet", "--", built("digits")]}[how]
    out = run(*command, *flags)
    assert re.search(r"held-out accuracy (8[5-9]|9\d|100)", out), out
    path = tf.train.latest_checkpoint(str(tmp_path))
    assert path.endswith("model.ckpt-150")
    reader = tf.train.load_checkpoint(path)
    assert reader.get_variable_to_shape_map()["conv2/kernel"] == [3, 3, 16, 32] and reader.get_tensor("global_step") == 150
    events = [e for f in glob.glob(str(tmp_path / "events*")) for e in tf.train.summary_iterator(f)]
    assert events[0].file_version == "brain.Event:2" and any(e.graph_def for e in events)
    tags = {v.tag: v.simple_value for e in events for v in e.summary.value}
    assert {"loss", "accuracy"} <= set(tags)


def test_digits_are_learnt_as_well_as_by_tensorflow(built):
    """The same network, batches, split and rate of two workers in step, on TensorFlow: apart by what other seeds do to TensorFlow's own."""
    got = float(re.search(r"held-out accuracy ([\d.]+) %", run(built("digits"), "--cluster=local", "--ps=2", "--workers=2", "--steps=150")).group(1)) / 100
    wants = [tensorflow_digits.accuracy(workers=2, steps=150, seed=seed) for seed in range(3)]
    assert min(wants) - 0.02 < got < max(wants) + 0.02, (got, wants)


def test_tensorflow_goes_on_from_a_checkpoint_of_c_and_back(built, tmp_path):
    run(built("digits"), "--steps=40", "--logdir=%s" % tmp_path)
    path = tf.train.latest_checkpoint(str(tmp_path))
    with tf.Graph().as_default(), tf.Session() as session:
        shapes = tf.train.load_checkpoint(path).get_variable_to_dtype_map()
        variables = {name: tf.get_variable(name, initializer=tf.train.load_checkpoint(path).get_tensor(name), use_resource=True) for name in sorted(shapes)}
        saver = tf.train.Saver(variables)
        session.run(tf.global_variables_initializer())
        saver.restore(session, path)
        session.run(variables["global_step"].assign(60))
        session.run(variables["logits/bias"].assign(np.arange(10, dtype=np.float32)))
        saver.save(session, str(tmp_path / "model.ckpt"), global_step=60)
    out = run(built("digits"), "--steps=62", "--logdir=%s" % tmp_path)
    assert "step 60/62" in out or "step 61/62" in out, out
    assert tf.train.latest_checkpoint(str(tmp_path)).endswith("-62")
    bias = tf.train.load_checkpoint(tf.train.latest_checkpoint(str(tmp_path))).get_tensor("logits/bias")
    assert abs(bias[9] - 9) < 0.5  # went on from TensorFlow's value


def test_queues_and_supervisor(built, records, tmp_path):
    out = run(RILL, "up", "--ps", 1, "--workers", 2, "--quiet", "--", built("queues"), "--folder=%s" % records, "--logdir=%s" % tmp_path, "--steps=400")
    assert "validation accuracy" in out and len(re.findall(r"step \d+  loss", out)) >= 4
    assert all(float(a) > 0.85 for a in re.findall(r"stopped at step \d+, validation accuracy ([\d.]+)", out)), out
    names = tf.train.load_checkpoint(tf.train.latest_checkpoint(str(tmp_path))).get_variable_to_shape_map()
    assert "hidden1/kernel/ExponentialMovingAverage" in names


def test_queues_in_step_with_a_backup_worker(built, records, tmp_path):
    out = run(RILL, "up", "--ps", 2, "--workers", 3, "--quiet", "--", built("queues"), "--folder=%s" % records, "--logdir=%s" % tmp_path, "--steps=200",
              "--issync", "--aggregate=2")
    assert all(float(a) > 0.8 for a in re.findall(r"stopped at step \d+, validation accuracy ([\d.]+)", out)), out
    # The program adds its own step to the one it read; with a backup worker its gradient may come too late to make that step.
    assert tf.train.load_checkpoint(tf.train.latest_checkpoint(str(tmp_path))).get_tensor("global_step") >= 199


def test_in_graph_over_two_workers(built):
    out = run(RILL, "up", "--ps", 1, "--workers", 2, "--client", "--quiet", "--", built("managed"), "--in_graph", "--steps=120")
    assert float(re.search(r"held-out accuracy ([\d.]+)", out).group(1)) > 0.8


LAST = 100000000  # no training gets there by itself


@pytest.mark.parametrize("victim", [("worker", 1), ("worker", 0), ("ps", 0)], ids=["worker", "chief", "ps"])
def test_a_killed_task_comes_back_and_the_training_goes_on(built, tmp_path, victim):
    """kill -9 in mid-training, again and again; the job ends well, at its last step."""
    trains = r"^worker/%d .*step \d+  loss" % (victim[1] if victim[0] == "worker" else 0)
    with Job(["--ps", 1, "--workers", 2, "--restart", 20, "--grace", 100], [built("managed"), "--steps=%d" % LAST, "--logdir=%s" % tmp_path]) as job:
        for _ in range(2):
            job.wait_for(trains)
            job.kill_task(*victim)
            restarted = "%s/%d ended with code 137: restart" % victim
            if victim[0] == "ps":  # whose values are restored before the training goes on
                job.wait_for_all(restarted, r"^worker/0 .*the session is made anew")
            else:
                job.wait_for(restarted)
        job.wait_for(trains)
        job.wait_for(r"step ([4-9]\d\d|\d{4,})  loss")  # has learnt
        reach_step("grpc://" + job.address("ps", 0), LAST, use_resource=True)
        out = job.finish()
    assert out.count("ended with code 137: restart") == 2, out
    assert all(float(a) > 0.8 for a in re.findall(r"worker:\d stopped at step \d+, held-out accuracy ([\d.]+)", out)), out
    assert saved_step(tmp_path) >= LAST


@pytest.mark.parametrize("victim", [("worker", 1), ("worker", 0)], ids=["worker", "chief"])
def test_training_in_step_survives_too(built, tmp_path, victim):
    """Who comes back finds his place: no worker waits for ever for a gradient or a token."""
    flags = ["--ps", 1, "--workers", 2, "--restart", 20, "--grace", 100]
    with Job(flags, [built("digits"), "--steps=%d" % LAST, "--batch=8", "--logdir=%s" % tmp_path]) as job:
        for _ in range(2):
            job.wait_for(r"step [1-9]\d+/")
            job.kill_task(*victim)
            job.wait_for("%s/%d ended with code 137: restart" % victim)
        job.wait_for(r"step [1-9]\d+/")
        # Not at once: a worker that saw the last step a round before the other would leave it alone.
        reach_step("grpc://" + job.address("ps", 0), LAST - 100, use_resource=True)
        out = job.finish()
    assert "held-out accuracy" in out and out.count("ended with code 137: restart") == 2, out


def test_a_missing_task_is_named(built):
    """A worker whose ps never comes says which task it waits for."""
    process = subprocess.Popen([built("managed"), "--ps_hosts=127.0.0.1:1", "--worker_hosts=127.0.0.1:0", "--job_name=worker", "--task_index=0"], cwd=ROOT,
                               stderr=subprocess.PIPE, text=True)
    try:
        line = ""
        while "127.0.0.1:1" not in line:
            line = process.stderr.readline()
            assert line, "ended with %s" % process.wait()
        assert "/job:ps/replica:0/task:0" in line
    finally:
        process.kill()
        process.wait()


def test_wrong_flags_are_told(built):
    assert "task worker:5 is not in the cluster" in run(built("digits"), "--worker_hosts=a:1", "--job_name=worker", "--task_index=5", code=2)
    assert "which task" in run(built("digits"), "--worker_hosts=a:1", code=2)
    assert "--keepalive=soon" in run(built("digits"), "--worker_hosts=127.0.0.1:0", "--job_name=worker", "--task_index=0", "--keepalive=soon", code=2)
    assert "--workers=x" in run(built("digits"), "--cluster=local", "--workers=x", code=2)
    assert "flag --steps: 'many' is not a whole number" in run(built("digits"), "--steps=many", code=2)
    assert "no_such_file" in run(built("digits"), "--data=no_such_file", code=1)
