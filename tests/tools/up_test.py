"""rill up and rill stop: real processes, started, watched and ended; nothing is left behind."""
import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from cluster_process import RILL, Cluster

SCRIPT = """
import json, os, sys, time
config = json.loads(os.environ["TF_CONFIG"])
task = config.get("task", {"type": "client", "index": 0})
name = "%s/%d" % (task["type"], task["index"])
"""


def up(flags, script, *words, code=0, **more):
    """Runs rill up with a Python program; returns its lines."""
    command = [RILL, "up", *flags, "--", sys.executable, "-c", SCRIPT + script, *words]
    done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, timeout=100, **more)
    out = done.stdout.decode()
    assert done.returncode == code, "exit code %d\n%s\n%s" % (done.returncode, out, done.stderr.decode())
    return out.splitlines()


def alive(pid):
    """False for a process that is gone or waits to be reaped."""
    try:
        with open("/proc/%d/stat" % pid) as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_gone(pids, seconds=60):
    end = time.monotonic() + seconds
    while any(alive(p) for p in pids):
        assert time.monotonic() < end, [p for p in pids if alive(p)]
        time.sleep(0.01)


def pids_of(lines):
    return [int(m.group(1)) for m in (re.search(r"pid=(\d+)", line) for line in lines) if m]


def test_every_task_is_told_who_it_is():
    lines = up(["--ps", "2", "--workers", "2", "--chief", "--quiet"],
               'print("I am", name, os.environ["RILL_TARGET"], *sys.argv[1:], json.dumps(config["cluster"]), sep="|")',
               "{job}:{task}", "--ps_hosts={ps_hosts}", "{unknown}")
    rows = dict((line.split(" | ")[0].strip(), line.split(" | ")[1].split("|")) for line in lines if "I am" in line)
    assert set(rows) == {"chief/0", "worker/0", "worker/1"}
    for name, (_, own, target, task, ps_hosts, unknown, cluster) in rows.items():
        cluster = json.loads(cluster)
        job, index = name.split("/")
        assert own == name and task == name.replace("/", ":") and unknown == "{unknown}"
        assert {j: len(t) for j, t in cluster.items()} == {"chief": 1, "worker": 2, "ps": 2}
        assert target == "grpc://" + cluster[job][int(index)]
        assert ps_hosts == "--ps_hosts=" + ",".join(cluster["ps"])


def test_a_client_runs_against_served_tasks():
    lines = up(["--ps", "1", "--workers", "1", "--client"], """
import subprocess
out = subprocess.run([sys.argv[1], "status", "--json", os.environ["RILL_TARGET"]], capture_output=True, check=True).stdout
print("states", [t["reachable"] for t in json.loads(out)], sys.argv[2] == os.environ["RILL_TARGET"])
""", RILL, "{target}")
    assert "client   | states [True, True] True" in lines


@pytest.mark.parametrize("who,code", [("worker/0", 7), ("worker/1", 9)])
def test_a_task_that_fails_fails_the_job(who, code):
    lines = up(["--workers", "2"], """
print("pid=%%d" %% os.getpid())
if name == "%s":
    sys.exit(%d)
time.sleep(100)
""" % (who, code), code=code)
    assert any("rill" in line and "%s ended with code %d: the job has failed" % (who, code) in line for line in lines), lines
    wait_gone(pids_of(lines))


def test_the_chief_decides_and_others_get_a_while(tmp_path):
    lines = up(["--workers", "3", "--grace", "5"], """
print("pid=%d" % os.getpid())
def said(who): return os.path.exists(sys.argv[1] + who)
open(sys.argv[1] + "/" + str(task["index"]), "w").close()
if name == "worker/0":
    while not (said("/1") and said("/2")): time.sleep(0.01)  # the while begins when the chief ends, however late the others came
    open(sys.argv[1] + "/ends", "w").close()
if name == "worker/1":
    while not said("/ends"): time.sleep(0.01)
    print("ended by itself")
if name == "worker/2":
    time.sleep(200)
""", str(tmp_path))
    assert any(line.startswith("worker/1") and "ended by itself" in line for line in lines)
    assert any("have not ended by themselves" in line for line in lines)
    assert len(pids_of(lines)) == 3
    wait_gone(pids_of(lines))


def test_a_failed_task_is_started_again(tmp_path):
    script = """
if name == "worker/1":
    path = sys.argv[1] + "/tries"
    tries = int(open(path).read()) if os.path.exists(path) else 0
    open(path, "w").write(str(tries + 1))
    if tries < 2:
        os.kill(os.getpid(), 9)
    open(sys.argv[1] + "/won", "w").close()
else:
    while not os.path.exists(sys.argv[1] + "/won"):
        time.sleep(0.01)
"""
    lines = up(["--workers", "2", "--restart", "2"], script, str(tmp_path))
    assert sum("worker/1 ended with code 137: restart" in line for line in lines) == 2
    os.remove(tmp_path / "won")
    os.remove(tmp_path / "tries")
    lines = up(["--workers", "2", "--restart", "1"], script, str(tmp_path), code=137)
    assert any("worker/1 ended with code 137: the job has failed" in line for line in lines)


def start_up(flags, script, ignored=()):
    """A rill up that goes on, once every program has said ready; with the given signals ignored, as a shell does for what runs in the background."""

    def dispositions():
        for number in (signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN if number in ignored else signal.SIG_DFL)

    command = [RILL, "up", *flags, "--", sys.executable, "-c", SCRIPT + script]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=dispositions)
    lines, ready = [], 0
    while ready < 2:
        lines.append(process.stdout.readline())
        assert lines[-1], lines
        ready += "ready" in lines[-1]
    return process, lines


WAITS = """
import subprocess
child = subprocess.Popen(["sleep", "1000"])
print("pid=%d" % child.pid)
try:
    print("pid=%d ready" % os.getpid())
    time.sleep(1000)
except KeyboardInterrupt:
    print("saw Ctrl-C")
"""


@pytest.mark.parametrize("ignored", [(), (signal.SIGINT,)], ids=["foreground", "background"])
def test_ctrl_c_reaches_the_programs(ignored):
    process, lines = start_up(["--workers", "2"], WAITS, ignored)
    process.send_signal(signal.SIGINT)
    rest = process.communicate(timeout=60)[0].splitlines()
    assert process.returncode == 130
    assert sum("saw Ctrl-C" in line for line in rest) == 2, rest
    assert len(pids_of(lines)) == 4
    wait_gone(pids_of(lines))


def test_nohup_is_respected():
    """A hangup that is ignored ends nothing; one that is not ends the job."""
    process, lines = start_up(["--workers", "2"], WAITS, (signal.SIGHUP,))
    process.send_signal(signal.SIGHUP)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGINT
    wait_gone(pids_of(lines))
    process, lines = start_up(["--workers", "2"], WAITS)
    process.send_signal(signal.SIGHUP)
    process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGHUP
    wait_gone(pids_of(lines))


def test_kill_9_leaves_no_orphans():
    """Neither the tasks nor what they have started."""
    process, lines = start_up(["--workers", "2", "--ps", "1"], WAITS)
    with open("/proc/%d/task/%d/children" % (process.pid, process.pid)) as f:
        children = [int(p) for p in f.read().split()]
    assert len(children) == 4  # three tasks, and who looks after them
    process.kill()
    process.communicate(timeout=60)
    assert len(pids_of(lines)) == 4
    wait_gone(children + pids_of(lines))


def test_a_task_that_never_stops_printing_does_not_hold_up_the_others():
    """Ctrl-C and the lines of others are seen nevertheless."""
    process, _ = start_up(["--ps", "0", "--workers", "2", "--grace", "1"], """
if name == "worker/1":
    os.execvp("yes", ["yes"])
print("pid=%d ready" % os.getpid())
print("pid=%d ready" % os.getpid())
time.sleep(1000)
""")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=100)
    assert process.returncode == 130


def test_lines_of_any_length_and_content_come_through():
    command = [RILL, "up", "--ps", "0", "--workers", "1", "--", sys.executable, "-c",
               "import sys; sys.stdout.buffer.write(b'x' * 3500000 + b'\\n' + bytes(range(256)) + b'\\n\\nlast'); sys.stdout.flush()"]
    out = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, timeout=100, check=True).stdout
    assert out.count(b"x") == 3500000 + 1
    assert bytes(b for b in range(256) if b != 10) in out.replace(b"\nworker/0 | ", b"")
    assert out.endswith(b"worker/0 | \nworker/0 | last\n")


def test_no_line_is_lost_when_tasks_print_fast():
    lines = up(["--ps", "0", "--workers", "3", "--grace", "100"], 'for i in range(20000): print("line", i)')
    for task in range(3):
        assert [line for line in lines if line.startswith("worker/%d | line" % task)] == ["worker/%d | line %d" % (task, i) for i in range(20000)]


def test_wrong_usage_is_told(rill):
    assert "needs a worker" in rill("up", "--workers", "0", code=2).err
    assert "--client needs a command" in rill("up", "--client", code=2).err
    assert "--restart" in rill("up", "--restart", "-1", code=2).err
    assert "cannot be run" in rill("up", "--workers", "1", "--", "/no/such/program", code=127).out
    assert "an argument is missing\nusage: rill stop [--task-only] [--json] grpc://HOST:PORT" in rill("stop", code=2).err
    assert "unexpected argument" in rill("stop", "grpc://127.0.0.1:1", "grpc://127.0.0.1:2", code=2).err
    assert "usage: rill status" in rill("status", code=2).err
    assert "127.0.0.1:1:" in rill("stop", "grpc://127.0.0.1:1", code=1).err


def test_stop_ends_a_cluster(rill):
    with Cluster({"ps": 2, "worker": 1}) as cluster:
        rill("stop", "--task-only", cluster.target("ps", 1))
        assert cluster.task("ps", 1).process.wait(60) == 0
        assert cluster.task("ps", 0).running and cluster.task("worker", 0).running
        told = rill("stop", cluster.target("worker", 0), code=1)
        assert "not told: /job:ps/replica:0/task:1 at " + cluster.spec["ps"][1] in told.err
        assert [t.process.wait(60) for t in cluster.tasks.values()] == [0, 0, 0]


def test_ps_tasks_end_when_all_that_compute_are_done():
    import grpc

    import wire
    with Cluster({"ps": 1, "worker": 2}) as cluster:
        with grpc.insecure_channel(cluster.spec["ps"][0]) as channel:
            done = channel.unary_unary("/rill.JobService/Done")
            done(wire.message(_1="/job:worker/replica:0/task:1"), timeout=60)
            done(wire.message(_1="/job:worker/replica:0/task:1"), timeout=60)
            with pytest.raises(grpc.RpcError, match="task:7 is not a task of this cluster"):
                done(wire.message(_1="/job:worker/replica:0/task:7"), timeout=60)
            assert cluster.task("ps", 0).running
            done(wire.message(_1="/job:worker/replica:0/task:0"), timeout=60)
        assert cluster.task("ps", 0).process.wait(60) == 0
        assert cluster.task("worker", 0).running
