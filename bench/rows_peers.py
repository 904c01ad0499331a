"""Rows of OpenMPI and Gloo beside Rill: what two processes pay for a barrier, a transfer and an all-reduce."""
import os
import shutil

import contest
import graphs
import rows_steps
import stage

MPI = stage.bench_program("mpi")
# As few words as it takes: as root too, on as many cores as there are, and over shared memory as it likes.
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2"]
BYTES = {"1KB": 1024, "1MB": 1_000_000, "100MB": 100_000_000}
ROWS = {"barrier": ("barrier", 0, "barrier of two processes")}
for size in BYTES:
    text = rows_steps.size_text(size)
    ROWS["pull_" + size] = ("transfer", BYTES[size], "%s from one process to the other (Rill: pull)" % text)
    ROWS["reduce_" + size] = ("reduce", BYTES[size], "all-reduce of %s over two processes (Rill: added at the ps, the sum pulled)" % text)


def peers(s, what, count):
    found, left_out = {}, {}
    if "openmpi" in s.without or "gloo" in s.without:
        left_out = {p: "left out by hand" for p in ("openmpi", "gloo") if p in s.without}
    if "openmpi" not in left_out:
        if os.path.exists(MPI) and shutil.which("mpirun"):
            found["openmpi"] = contest.Contender(MPIRUN + [MPI, what, count])
        else:
            left_out["openmpi"] = "not installed"
    if "gloo" not in left_out:
        if stage.has_peer("torch"):
            found["gloo"] = contest.python("gloo_peer.py", what, count, interpreter=stage.PEERS)
        else:
            left_out["gloo"] = "not installed"
    return found, left_out


def peer_rows(s):
    """A barrier, transfers and all-reduces of 1 KB to 100 MB between two processes: OpenMPI and Gloo beside Rill's ps and worker."""
    cases = graphs.steps(stage.GRAPHS)
    for case, (what, count, title) in ROWS.items():
        cluster = s.cluster("rill")
        found, left_out = peers(s, what, count)
        contenders = {"rill": contest.generator(cases, case, cluster.target(), stage.pids(cluster), warm=3), **found}
        s.contest("peer_" + case, "peers", title, contenders, with_cpu=False, left_out=left_out)


def collective_rows(s):
    """An all-reduce of 4 B to 100 MB over two tasks by TensorFlow's collective ops; OpenMPI and Gloo beside it."""
    cases = graphs.all_reduce(stage.GRAPHS)
    for size, floats in graphs.SIZES.items():
        found, left_out = peers(s, "reduce", 4 * floats)
        contenders = {name: contest.generator(cases, "all_reduce_" + size, cluster.target(), stage.pids(cluster), warm=10)
                      for name, cluster in (("rill", s.cluster("rill")), ("tensorflow", s.cluster("tf_led")))}
        text = rows_steps.size_text(size)
        s.contest("all_reduce_" + size, "collective", "all-reduce of %s over two tasks" % text, {**contenders, **found}, left_out=left_out)


GROUPS = {"peers": peer_rows, "collective": collective_rows}
