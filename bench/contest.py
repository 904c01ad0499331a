"""Contenders that take turns: processes that measure a window of steps for each line they are sent, and the comparison of what they answer."""
import json
import os
import select
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
RILL = os.path.join(ROOT, "build", os.environ.get("MODE", "release"), "rill")
START_SECONDS = 100


class Contender:
    """A process that prints a line of JSON when it is ready, then one for each line "SECONDS [STEPS]" it reads."""

    def __init__(self, command, environment=None):
        self.command = [str(c) for c in command]
        self._log = tempfile.TemporaryFile(mode="w+", errors="replace")
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, text=True,
                                        env=dict(os.environ, **(environment or {})))
        self.start = None

    def wait_ready(self):
        self.start = self._answer(START_SECONDS)
        return self

    def send(self, seconds, steps=0):
        try:
            self.process.stdin.write("%g %d\n" % (seconds, steps))
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # it has ended: its answer is missing, and its last words are told then

    def answer(self, timeout=90):
        return self._answer(timeout)

    def run(self, seconds, steps=0):
        self.send(seconds, steps)
        return self.answer()

    def _answer(self, timeout):
        if not select.select([self.process.stdout], [], [], timeout)[0]:
            self.process.kill()
            raise TimeoutError("no answer in %d s: %s" % (timeout, " ".join(self.command)))
        line = self.process.stdout.readline()
        if not line.startswith("{"):
            self.process.kill()
            self._log.seek(0)
            raise RuntimeError("%s: %s" % (" ".join(self.command), line + self._log.read()[-2000:]))
        return json.loads(line)

    def leave(self):
        """Tells it that no more lines come."""
        if not self.process.stdin.closed:
            try:
                self.process.stdin.close()
            except BrokenPipeError:
                pass

    def close(self):
        self.leave()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self._log.close()

    def __enter__(self):
        return self

    def __exit__(self, *what):
        self.close()


def generator(cases, name, target="", pids=(), warm=10):
    """The load generator in C, on a server or (without a target) in its own process."""
    command = [RILL, "bench", cases, name, "--lines", "--warm", warm, "--target", target]
    for pid in pids:
        command += ["--pid", pid]
    return Contender(command)


def python(script, *words, interpreter=sys.executable, environment=None):
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "", "PYTHONWARNINGS": "ignore"}
    return Contender([interpreter, os.path.join(HERE, script)] + list(words), dict(quiet, **(environment or {})))


class Team:
    """Several contenders that run at the same time and are counted together: workers of one cluster."""

    def __init__(self, members):
        self.members = members

    @property
    def start(self):
        return self.members[0].start

    def wait_ready(self):
        for m in self.members:
            m.start or m.wait_ready()
        return self

    def run(self, seconds, steps=0):
        for m in self.members:
            m.send(seconds, steps)
        answers = [m.answer() for m in self.members]
        total = sum(a["steps"] for a in answers)
        if not total:
            raise RuntimeError("no step ended in %g s" % seconds)
        elapsed = max(a["seconds"] for a in answers)
        cpu = [c * a["steps"] / total for a in answers for c in a.get("server_cpu_us", ())]
        return {"steps": total, "seconds": elapsed, "steps_per_s": sum(a["steps"] / a["seconds"] for a in answers),
                "median_us": statistics.mean(a["median_us"] for a in answers), "server_cpu_us": cpu,
                "client_cpu_us": statistics.mean(a.get("client_cpu_us", 0) for a in answers)}

    def close(self):
        for m in self.members:
            m.leave()  # all at once: one may wait for the other
        for m in self.members:
            m.close()

    def __enter__(self):
        return self

    def __exit__(self, *what):
        self.close()


def take_turns(contenders, seconds, rounds, steps=0, give_up=None):
    """Windows of each contender, by name: a discarded one, then one in each round; the order turns around every round. give_up(name, error) tells whether the others go on
    without one that fails."""
    windows = {name: [] for name in contenders}
    for r in range(-1, rounds):
        for name in list(windows)[::1 if r % 2 else -1]:
            try:
                window = contenders[name].run(seconds if r >= 0 else seconds / 2, steps)
            except (RuntimeError, TimeoutError) as e:
                if not give_up or not give_up(name, e):
                    raise
                del windows[name]
                continue
            if r >= 0:
                windows[name].append(window)
    return windows


def summary(values):
    """The middle of some numbers and their spread."""
    return {"median": statistics.median(values), "least": min(values), "most": max(values)}


def compare(windows, cost):
    """For each contender the cost of a step, and for each but the first ("rill") its ratio: how many times the cost of Rill's, round by round."""
    costs = {name: [cost(w) for w in ws] for name, ws in windows.items()}
    first, *others = costs
    result = {"costs": {name: summary(values) for name, values in costs.items()}, "ratios": {}}
    for name in others:
        result["ratios"][name] = summary([theirs / ours for theirs, ours in zip(costs[name], costs[first])])
    return result


def step_us(window):
    return 1e6 / window["steps_per_s"]


def total_cpu_us(window):
    """CPU time of a step over all processes of the server side."""
    return sum(window["server_cpu_us"])


