"""Rows of how soon a cluster works."""
import json
import os
import subprocess
import sys
import time

import cluster_process
import contest
import graphs
import machine
import stage


def start(s):
    """From nothing to the first training step: 1 ps and 4 workers on this machine."""
    seconds = {"rill": [], "tensorflow": []}
    path = graphs.worker_model(stage.GRAPHS, "tiny", 0, 4, sync=False)
    with machine.Watch() as watch:
        for _ in range(min(3, s.rounds)):
            for name, kind in ("rill", "rill"), ("tensorflow", "tf"):
                began = time.monotonic()
                with cluster_process.Cluster({"ps": [kind], "worker": [kind] * 4}) as cluster, contest.generator(path, "train", cluster.target(), warm=0) as c:
                    c.wait_ready()
                    seconds[name].append({"us": 1e6 * (time.monotonic() - began)})
    s.record("start", "scale", "from nothing to the first step, 1 ps + 4 workers", "µs", contest.compare(seconds, lambda a: a["us"]), watch)


# ---- Training in step ----

class Program:
    """sync_program.py as one task; a worker tells the time of its first step."""

    def __init__(self, command, spec, job, index):
        environment = dict(os.environ, RILL_PYTHON=sys.executable, TF_CPP_MIN_LOG_LEVEL="3", PYTHONUNBUFFERED="1")
        self.command = [*command, os.path.join(stage.HERE, "sync_program.py"), json.dumps(spec), job, str(index)]
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment)

    def first_step(self):
        for line in self.process.stdout:
            if line.startswith("FIRST STEP"):
                return float(line.split()[2])
        raise RuntimeError("ended before its first step: " + " ".join(self.command))

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def first_steps(command):
    """Seconds from the start of all tasks to the first step of the chief and of the second worker."""
    spec = {job: ["127.0.0.1:%d" % cluster_process.free_port() for _ in range(n)] for job, n in (("ps", 1), ("worker", 2))}
    began, programs = time.time(), []
    try:
        for job, index in ("ps", 0), ("worker", 0), ("worker", 1):
            programs.append(Program(command, spec, job, index))
        return [p.first_step() - began for p in programs[1:]]
    finally:
        for p in programs:
            p.kill()


def record_first_steps(s, key, title, steps, watch):
    """steps: by contender, for each round the seconds to the first step of the chief and of the second worker. Recorded is how much later the second comes."""
    after = {name: [max(1e-3, second - chief) for chief, second in rounds] for name, rounds in steps.items()}
    s.record(key, "scale", title, "µs", contest.compare(after, lambda seconds: 1e6 * seconds), watch)


def sync_start(s):
    """How soon after the chief the second worker makes its first step in training in step: Python programs (rill run beside python), and the load generator in C."""
    steps = {"rill": [], "tensorflow": []}
    with machine.Watch() as watch:
        for _ in range(2):  # TensorFlow's second worker may find the chief ready at its first look, or half a minute later at its second
            steps["rill"].append(first_steps([contest.RILL, "run"]))
            steps["tensorflow"].append(first_steps([sys.executable]))
    record_first_steps(s, "sync_start", "second worker's first step after the chief's, training in step, Python programs (`rill run` beside `python`)", steps, watch)
    s.record("sync_start_all", "scale", "the same programs, from the start of all tasks to the second worker's first step", "µs",
             contest.compare({n: [second for _, second in rounds] for n, rounds in steps.items()}, lambda seconds: 1e6 * seconds), watch)
    steps = {"rill": [], "tensorflow": []}
    with machine.Watch() as watch:
        for _ in range(min(3, s.rounds)):
            for name, kind in ("rill", "rill"), ("tensorflow", "tf"):
                steps[name].append(first_steps_in_c(s, kind))
    record_first_steps(s, "sync_start_c", "second worker's first step after the chief's, training in step, client in C that starts then", steps, watch)


def first_steps_in_c(s, kind):
    cluster = s.cluster(kind, 2)
    paths = [graphs.worker_model(stage.GRAPHS, "tiny", w, 2, sync=True) for w in (0, 1)]
    with contest.generator(paths[0], "train", cluster.target("worker", 0), warm=0).wait_ready():
        began = time.monotonic()
        with contest.generator(paths[1], "train", cluster.target("worker", 1), warm=0).wait_ready():
            return 0.0, time.monotonic() - began


GROUPS = {"start": start, "sync_start": sync_start}
