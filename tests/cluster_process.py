"""Starts, kills and restarts the tasks of a cluster as processes; used by every test folder that needs a real cluster.

    with Cluster({"ps": 1, "worker": 2}) as cluster:            # Rill tasks
        session = tf.compat.v1.Session(cluster.target("worker", 0))
    Cluster({"ps": ["rill"], "worker": ["tf", "rill"]})         # a mix of Rill and TensorFlow tasks
"""
import atexit
import faulthandler
import json
import os
import random
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import weakref

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RILL = os.path.join(ROOT, "build", os.environ.get("MODE", "release"), "rill")
TF_TASK = os.path.join(ROOT, "tests", "interop", "tf_task.py")
START_SECONDS = 120
TF_ENVIRONMENT = {"TF_CPP_MIN_LOG_LEVEL": "3", "TF_ENABLE_ONEDNN_OPTS": "0", "CUDA_VISIBLE_DEVICES": ""}

_alive = weakref.WeakSet()
_given_ports = set()


def free_port():
    """A port nobody listens on. Below the range of outgoing connections, so that a task can come back on its port:
    a client that retries a dead port of that range may connect to itself."""
    while True:
        port = random.randrange(12000, 32000)
        if port in _given_ports:
            continue
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
            except OSError:
                continue
        _given_ports.add(port)
        return port


@atexit.register
def _kill_leftovers():
    for task in list(_alive):
        task.kill()


class Task:
    """One process that prints a line "READY target" on its standard output; its standard error goes to a file."""

    def __init__(self, command, name="task", environment=None):
        self.command = command
        self.name = name
        self.environment = dict(os.environ, **(environment or {}))
        self.process = None
        self.target = None
        self._log = tempfile.NamedTemporaryFile(prefix="rill-%s-" % name.replace("/", "-"), suffix=".log")

    def launch(self):
        """Starts the process without waiting for it."""
        assert self.process is None or self.process.poll() is not None, self.name + " already runs"
        self.process = subprocess.Popen(self.command, env=self.environment, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=self._log)
        self._out = b""
        _alive.add(self)
        return self

    def wait_ready(self, timeout=START_SECONDS):
        end = time.monotonic() + timeout
        stdout = self.process.stdout.fileno()
        while True:
            for line in self._out.split(b"\n")[:-1]:
                if line.startswith(b"READY "):
                    self.target = line.split()[1].decode()
                    return self
            left = end - time.monotonic()
            if left <= 0 or not select.select([stdout], [], [], left)[0]:
                raise TimeoutError("%s printed no READY line in %d s:\n%s" % (self.name, timeout, self.log))
            chunk = os.read(stdout, 4096)
            if not chunk:
                raise RuntimeError("%s ended with %s before READY:\n%s" % (self.name, self.process.wait(), self.log))
            self._out += chunk

    def start(self, timeout=START_SECONDS):
        return self.launch().wait_ready(timeout)

    def kill(self):
        """kill -9, and waits for the end."""
        self._end(signal.SIGKILL, 60)

    def stop(self, timeout=60):
        """SIGTERM, and returns the exit status; kills what does not end in time and raises."""
        return self._end(signal.SIGTERM, timeout)

    def restart(self):
        """kill -9 and start again, on the same port, with nothing remembered."""
        self.kill()
        return self.start()

    def _end(self, how, timeout):
        if self.process is None:
            return None
        try:
            if self.process.poll() is None:
                self.process.send_signal(how)
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(60)
            raise
        finally:
            self.process.stdout.close()
            _alive.discard(self)

    @property
    def pid(self):
        return self.process.pid

    @property
    def running(self):
        return self.process is not None and self.process.poll() is None

    @property
    def log(self):
        """All it has written to standard error so far, over its restarts."""
        with open(self._log.name, errors="replace") as f:
            return f.read()


def rill_task(cluster, job, index, flags=(), environment=None):
    command = [RILL, "serve", "--cluster", json.dumps(cluster), "--job", job, "--task", str(index)] + list(flags)
    return Task(command, "%s/%d" % (job, index), environment)


def tf_task(cluster, job, index, environment=None):
    command = [sys.executable, TF_TASK, json.dumps(cluster), job, str(index)]
    return Task(command, "tf/%s/%d" % (job, index), dict(TF_ENVIRONMENT, **(environment or {})))


class Cluster:
    """The tasks of one cluster on loopback. jobs: {"ps": 2} or {"ps": ["rill", "tf"]}; flags go to every Rill task, environment
    too, tf_environment to every TensorFlow task."""

    def __init__(self, jobs, flags=(), environment=None, start=True, tf_environment=None):
        kinds = {job: ["rill"] * n if isinstance(n, int) else list(n) for job, n in jobs.items()}
        self.spec = {job: ["127.0.0.1:%d" % free_port() for _ in k] for job, k in kinds.items()}
        self.tasks = {}
        for job, names in kinds.items():
            for i, kind in enumerate(names):
                make = {"rill": lambda: rill_task(self.spec, job, i, flags, environment),
                        "tf": lambda: tf_task(self.spec, job, i, tf_environment)}[kind]
                self.tasks[job, i] = make()
        if start:
            self.start()

    def start(self):
        """Starts all tasks side by side and waits until each is ready."""
        try:
            for task in self.tasks.values():
                task.launch()
            for task in self.tasks.values():
                task.wait_ready()
        except BaseException:
            self.kill()
            raise
        return self

    def task(self, job, index=0):
        return self.tasks[job, index]

    def target(self, job="worker", index=0):
        return "grpc://" + self.spec[job][index]

    def kill(self):
        for task in self.tasks.values():
            task.kill()

    def stop(self):
        """SIGTERM to all Rill tasks; returns their exit statuses by (job, index). TensorFlow tasks are killed."""
        return {key: task.kill() if task.name.startswith("tf/") else task.stop() for key, task in self.tasks.items()}

    @property
    def log(self):
        return "".join("--- %s\n%s" % (t.name, t.log) for t in self.tasks.values())

    def __enter__(self):
        return self

    def __exit__(self, *what):
        self.kill()


class Watchdog:
    """Kills every task when its time is over, so that a test that hangs in a call fails; a little later ends the run."""

    def __init__(self, seconds, name=""):
        self.seconds = seconds
        self.name = name

    def _bite(self):
        self.expired = True
        sys.stderr.write("%s took longer than %d s: killing its tasks\n" % (self.name, self.seconds))
        _kill_leftovers()
        faulthandler.dump_traceback_later(60, exit=True)

    def __enter__(self):
        self.expired = False
        self.timer = threading.Timer(self.seconds, self._bite)
        self.timer.daemon = True
        self.timer.start()
        return self

    def __exit__(self, *what):
        self.timer.cancel()
        faulthandler.cancel_dump_traceback_later()
        if self.expired and what[0] is None:
            raise TimeoutError("%s took longer than %d s" % (self.name, self.seconds))
