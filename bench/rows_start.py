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
        for _ in range(3):
            for name, kind in ("rill", "rill"), ("tensorflow", "tf"):
                began = time.monotonic()
                with cluster_process.Cluster({"ps": [kind], "worker": [kind] * 4}) as cluster, contest.generator(path, "train", cluster.target(), warm=0) as c:
                    c.wait_ready()
                    seconds[name].append({"us": 1e6 * (time.monotonic() - began)})
    s.record("start", "scale", "from nothing to the first step, 1 ps + 4 workers", "µs", contest.compare(seconds, lambda a: a["us"]), watch)


def second_worker(command):
    """Seconds from the start of all tasks to the first step of the second worker."""
    spec = {job: ["127.0.0.1:%d" % cluster_process.free_port() for _ in range(n)] for job, n in (("ps", 1), ("worker", 2))}
    program = os.path.join(stage.HERE, "sync_program.py")
    environment = dict(os.environ, RILL_PYTHON=sys.executable, TF_CPP_MIN_LOG_LEVEL="3")
    began, processes = time.monotonic(), []
    try:
        for job, index in ("ps", 0), ("worker", 0), ("worker", 1):
            processes.append(subprocess.Popen([*command, program, json.dumps(spec), job, str(index)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment))
        for line in processes[-1].stdout:
            if line.startswith("FIRST STEP"):
                return time.monotonic() - began
        raise RuntimeError("the second worker ended before its first step: " + " ".join(command))
    finally:
        for p in processes:
            p.kill()
            p.wait()
            p.stdout.close()


def sync_start(s):
    """How soon the second worker of a Python program that trains in step makes its first step: rill run beside python."""
    seconds = {"rill": [], "tensorflow": []}
    with machine.Watch() as watch:
        for _ in range(2):  # TensorFlow's second worker may find the chief ready at its first look, or half a minute later at its second
            seconds["rill"].append({"us": 1e6 * second_worker([contest.RILL, "run"])})
            seconds["tensorflow"].append({"us": 1e6 * second_worker([sys.executable])})
    s.record("sync_start", "scale", "a Python program trains in step: first step of the second worker (`rill run` beside `python`)", "µs", contest.compare(seconds, lambda a: a["us"]), watch)


GROUPS = {"start": start, "sync_start": sync_start}
