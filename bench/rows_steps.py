"""Rows of small steps and of transfers between a ps and a worker."""
import json
import subprocess

import contest
import graphs
import machine
import stage

WARM_STEPS = 20  # TensorFlow's servers take new memory from the system for their first large tensors

TITLES = {
    "empty_worker": "empty step on the master's own task",
    "empty_ps": "empty step on a remote ps",
    "barrier": "barrier, ps and worker wait for each other",
    "pull": "pull of %s, ps to worker",
    "push": "push of %s, worker to ps",
    "fetch": "fetch of %s from the ps",
}


def size_text(size):
    return size.replace("B", " B").replace("K ", " K").replace("M ", " M")


def title(case):
    kind, _, size = case.partition("_")
    if case in TITLES:
        return TITLES[case]
    return TITLES[kind] % size_text(size)


def c_client(s, group, case, seconds=None):
    cases = graphs.steps(stage.GRAPHS)
    contenders = {}
    for name, kind in ("rill", "rill"), ("tensorflow", "tf"):
        cluster = s.cluster(kind)
        contenders[name] = contest.generator(cases, case, cluster.target(), stage.pids(cluster), warm=WARM_STEPS)
    s.contest(case, group, title(case), contenders, seconds)


def tcp_forced(s, case):
    """A step of tasks that talk over TCP, beside as many bytes over a plain TCP connection."""
    cluster, size = s.cluster("rill_tcp"), case.partition("_")[2]
    contenders = {"rill": contest.generator(graphs.steps(stage.GRAPHS), case, cluster.target(), stage.pids(cluster), warm=WARM_STEPS),
                  "tcp": contest.Contender([stage.bench_program("limits"), "tcp", 4 * graphs.SIZES[size]])}
    s.contest("tcp_" + case, "transfer", title(case) + ", TCP forced (`--tcp-only`)", contenders, with_cpu=False)


def python_client(s, case, seconds=None):
    cases = graphs.steps(stage.GRAPHS)
    contenders = {}
    for name, kind in ("rill", "rill"), ("tensorflow", "tf"):
        cluster = s.cluster(kind)
        contenders[name] = contest.python("python_client.py", cases, case, cluster.target(), *stage.pids(cluster))
    s.contest("python_" + case, "python", title(case) + ", Python client", contenders, seconds, with_client=case == "fetch_100MB")


def steps(s):
    """Empty steps and barriers, C client."""
    for case in "empty_worker", "empty_ps", "barrier":
        c_client(s, "steps", case)


def limits(s):
    """What sockets and memory of this machine allow, by size."""
    with machine.Watch() as watch:
        us = json.loads(subprocess.run([stage.bench_program("limits")], capture_output=True, text=True, check=True).stdout)
    s.record_limits({name: dict(zip(graphs.SIZES, values)) for name, values in us.items()}, watch)


def transfer(s):
    """Pulls and pushes of 4 B to 100 MB, C client; the limits of sockets and memory."""
    limits(s)
    for case in [kind + "_" + size for kind in ("pull", "push") for size in graphs.SIZES]:
        c_client(s, "transfer", case)


def transfer_tcp(s):
    """Pulls and pushes with TCP forced, beside plain TCP."""
    for case in "pull_1MB", "pull_100MB", "push_1MB", "push_100MB":
        tcp_forced(s, case)


def python(s):
    """A Python client: empty steps, small pulls, and a fetch of 100 MB."""
    for case in "empty_worker", "empty_ps", "pull_4B", "fetch_4B", "fetch_100MB":
        python_client(s, case, 1.0 if case == "fetch_100MB" else None)
