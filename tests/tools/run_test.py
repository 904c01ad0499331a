"""rill run: TensorFlow 1-style scripts as they are, with Rill's servers; and the Python package."""
import os
import re
import signal
import subprocess
import sys

import pytest
import tensorflow as tf

from cluster_process import RILL, ROOT

SCRIPTS = os.path.join(ROOT, "examples", "python")
MODE = os.environ.get("MODE", "release")
# The library would bring the sanitizer's runtime into a Python that was built without it.
pytestmark = pytest.mark.skipif(MODE == "asan", reason="Python cannot load a library built with the sanitizers")


def run(*command, code=0, **more):
    environment = dict(os.environ, RILL_PYTHON=sys.executable, TF_CPP_MIN_LOG_LEVEL="3", **more)
    done = subprocess.run([str(c) for c in command], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=200)
    out = done.stdout + done.stderr
    assert done.returncode == code, "exit code %d\n%s" % (done.returncode, out)
    return out


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    folder = tmp_path_factory.mktemp("records")
    subprocess.run(["make", "-s", "-j2", "build/%s/examples/records" % MODE], cwd=ROOT, check=True)
    run(os.path.join(ROOT, "build", MODE, "examples", "records"), "--folder=%s" % folder)
    return folder


def test_standalone_and_placed():
    out = run(RILL, "run", SCRIPTS + "/standalone.py")
    assert re.search(r"grpc://localhost:\d+: 5050", out), out
    out = run(RILL, "up", "--ps", 2, "--workers", 2, "--client", "--quiet", "--", RILL, "run", SCRIPTS + "/placed.py", "--target={target}")
    first, last = map(float, re.search(r"100 steps: loss ([\d.]+), then ([\d.]+)", out).groups())
    assert first > 2 and last < 0.6


def test_workers_look_often_whether_the_chief_is_ready(tmp_path):
    script = tmp_path / "waits.py"
    script.write_text("""import tensorflow as tf
a, b = tf.train.SessionManager(), tf.train.SessionManager(recovery_wait_secs=7)
tf.constant(0)
c = tf.train.Supervisor(is_chief=False)
d = tf.train.Supervisor(is_chief=False, recovery_wait_secs=8)
print([x._recovery_wait_secs for x in (a, b)] + [x.session_manager._recovery_wait_secs for x in (c, d)])
""")
    assert "[0.2, 7, 0.2, 8]" in run(RILL, "run", script)


def test_managed(tmp_path):
    out = run(RILL, "up", "--ps", 1, "--workers", 2, "--run-ps", "--grace", 60, "--quiet", "--", RILL, "run", SCRIPTS + "/managed.py", "--logdir=%s" % tmp_path)
    assert len(re.findall(r"worker:\d stopped at step", out)) == 2 and "have not ended" not in out, out  # the ps, which joined, has ended by itself
    assert tf.train.load_checkpoint(tf.train.latest_checkpoint(str(tmp_path))).get_tensor("global_step") >= 300


@pytest.mark.parametrize("flags", [[], ["--issync", "--aggregate=1"]], ids=["async", "sync with a backup"])
def test_queues(records, tmp_path, flags):
    out = run(RILL, "up", "--ps", 1, "--workers", 2, "--quiet", "--", RILL, "run", SCRIPTS + "/queues.py", "--ps_hosts={ps_hosts}", "--worker_hosts={worker_hosts}",
              "--job_name={job}", "--task_index={task}", "--folder=%s" % records, "--logdir=%s" % tmp_path, "--steps=500", *flags)
    assert all(float(a) > 0.75 for a in re.findall(r"stopped at step \d+, validation accuracy ([\d.]+)", out)), out
    assert tf.train.latest_checkpoint(str(tmp_path))


def test_a_killed_worker_comes_back(tmp_path):
    """MonitoredTrainingSession, cluster from TF_CONFIG, and kill -9 of a worker in mid-training."""
    command = [RILL, "up", "--ps", "1", "--workers", "2", "--restart", "5", "--quiet", "--grace", "60", "--", RILL, "run", SCRIPTS + "/managed.py",
               "--logdir=%s" % tmp_path, "--steps=6000"]
    environment = dict(os.environ, RILL_PYTHON=sys.executable, TF_CPP_MIN_LOG_LEVEL="3")
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
    lines, killed = [], False
    for line in process.stdout:
        lines.append(line)
        if not killed and line.startswith("worker/1") and re.search(r"step \d+  loss", line):
            with open("/proc/%d/task/%d/children" % (process.pid, process.pid)) as f:
                children = f.read().split()
            for child in children:
                with open("/proc/%s/environ" % child) as f:
                    if '"type": "worker", "index": 1' in f.read():
                        os.kill(int(child), signal.SIGKILL)
                        killed = True
    out = "".join(lines)
    assert process.wait(100) == 0, out
    assert killed and "worker/1 ended with code 137: restart 1 of 5" in out and "worker:0 stopped at step" in out, out
    assert tf.train.load_checkpoint(tf.train.latest_checkpoint(str(tmp_path))).get_tensor("global_step") >= 6000


def accuracies(out):
    return [float(a) for a in re.findall(r"stopped at step \d+,.* accuracy(?: of the last batch)? ([\d.]+)", out)]


def test_accuracy_is_that_of_tensorflows_servers(records, tmp_path):
    """The same scripts, unchanged, on both: as good but for the noise of their seeds."""
    shim = [sys.executable, os.path.join(ROOT, "tests", "tools", "as_tensorflow_1.py")]
    flags = ["--ps_hosts={ps_hosts}", "--worker_hosts={worker_hosts}", "--job_name={job}", "--task_index={task}", "--folder=%s" % records, "--steps=600"]
    for script, more in (("managed.py", []), ("queues.py", flags)):
        got = accuracies(run(RILL, "up", "--ps", 1, "--workers", 2, "--quiet", "--grace", 20, "--", RILL, "run", SCRIPTS + "/" + script, *more))
        wants = accuracies(run(RILL, "up", "--ps", 1, "--workers", 2, "--run-ps", "--quiet", "--grace", 20, "--", *shim, SCRIPTS + "/" + script, *more))
        assert got and wants and abs(max(got) - max(wants)) < 0.15 and max(got) > 0.8, (script, got, wants)


def test_mistakes_are_told(tmp_path):
    script = tmp_path / "bad.py"
    script.write_text("import tensorflow as tf\nassert tf.Session and tf.app and tf.flags and tf.gfile\ntf.contrib.layers\n")
    assert "tf.contrib was removed" in run(RILL, "run", script, code=1)
    script.write_text("import sys\nsys.exit(7)\n")
    run(RILL, "run", script, code=7)
    script.write_text("import tensorflow as tf\ntf.train.Server({'ps': ['localhost:0']}, job_name='worker', task_index=0)\n")
    assert "Task worker:0 is not in the cluster" in run(RILL, "run", script, code=1)
    assert "does not exist" in run(RILL, "run", tmp_path / "none.py", code=2)
    assert "usage: rill run" in run(RILL, "run", code=2)


def test_the_wheel_holds_all_it_needs(tmp_path):
    """pip builds it, an empty environment installs it, and a server answers."""
    run(sys.executable, "-m", "pip", "wheel", "--no-deps", "-q", "-w", tmp_path, ROOT)
    wheel, = tmp_path.glob("rill-*.whl")
    run(sys.executable, "-m", "venv", tmp_path / "empty")
    python = tmp_path / "empty" / "bin" / "python"
    run(python, "-m", "pip", "install", "-q", wheel)
    out = run(python, "-c", "import rill; s = rill.Server({'local': ['localhost:0']}); print(s.target); s.stop()")
    assert re.search(r"grpc://localhost:\d+", out)
    assert "rill 0.1.0" in run(tmp_path / "empty" / "bin" / "rill", "version")
