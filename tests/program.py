"""Programs that a test follows line by line: one process, or a whole job under `rill up` whose tasks can be killed."""
import os
import queue
import re
import signal
import subprocess
import threading
import time

from cluster_process import RILL, ROOT

SECONDS = 150  # that any one thing may take, on a machine that does much else


class Program:
    """A process and its output, as it comes."""

    def __init__(self, command, environment=None):
        self.process = subprocess.Popen([str(word) for word in command], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True, env=dict(os.environ, **(environment or {})))
        self.lines, self._new = [], queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.process.stdout:
            self._new.put(line)
        self._new.put(None)

    def _next(self, end):
        try:
            line = self._new.get(timeout=max(end - time.monotonic(), 0.01))
        except queue.Empty:
            raise AssertionError("nothing came in time\n" + self.text()) from None
        if line is not None:
            self.lines.append(line)
        return line

    def text(self):
        return "".join(self.lines)

    def wait_for(self, pattern):
        """The first line from here on with the pattern."""
        end = time.monotonic() + SECONDS
        while True:
            line = self._next(end)
            assert line is not None, "ended without %r\n%s" % (pattern, self.text())
            if re.search(pattern, line):
                return line

    def wait_for_all(self, *patterns):
        """Until each pattern was in a line from here on, in whatever order."""
        missing = list(patterns)
        while missing:
            line = self.wait_for("|".join(missing))
            missing = [pattern for pattern in missing if not re.search(pattern, line)]

    def finish(self, code=0):
        end = time.monotonic() + SECONDS
        while self._next(end) is not None:
            pass
        assert self.process.wait(30) == code, self.text()
        assert "Sanitizer" not in self.text() and "runtime error:" not in self.text(), self.text()
        return self.text()

    def kill(self):
        self.process.kill()
        self.process.wait()
        self._reader.join()
        self.process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *what):
        self.kill()


class Job(Program):
    """rill up, with a program for the tasks. Lines come behind the name of their task: "worker/1 | step ..."."""

    def __init__(self, flags, command, environment=None):
        super().__init__([RILL, "up", *flags, "--", *command], environment)
        self._killed = set()

    def _config(self, pid):
        """TF_CONFIG of a process; empty when it has ended."""
        try:
            with open("/proc/%s/environ" % pid) as f:
                return dict(pair.partition("=")[::2] for pair in f.read().split("\0")).get("TF_CONFIG", "")
        except OSError:
            return ""

    def _children(self):
        with open("/proc/%d/task/%d/children" % (self.process.pid, self.process.pid)) as f:
            return f.read().split()

    def kill_task(self, job, index):
        """kill -9 of a task's process; when it was killed before, of the next one as soon as there is one."""
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            for pid in self._children():
                if pid not in self._killed and re.search(r'"task": {"type": "%s", "index": %d}' % (job, index), self._config(pid)):
                    os.kill(int(pid), signal.SIGKILL)
                    self._killed.add(pid)
                    return
            assert self.process.poll() is None, self.text()
            time.sleep(0.01)
        raise AssertionError("%s/%d has no process\n%s" % (job, index, self.text()))

    def address(self, job, index):
        """host:port of a task."""
        config = next(c for c in map(self._config, self._children()) if c)
        return re.findall(r'"([^"]+:\d+)"', re.search(r'"%s": \[([^]]*)\]' % job, config).group(1))[index]


def reach_step(target, step, use_resource):
    """Sets the global step of a running training: it ends when that is its last one."""
    import tensorflow.compat.v1 as tf
    with tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            variable = tf.get_variable("global_step", [], tf.int64, use_resource=use_resource, trainable=False)
        with tf.Session(target, config=tf.ConfigProto(device_filters=["/job:ps"])) as session:
            session.run(variable.assign(step, read_value=False))
