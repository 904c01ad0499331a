"""What the tasks of a cluster hold, as `rill status --json` tells it, and waiting for it."""
import json
import subprocess
import threading
import time

import psutil

import cluster_process

HELD = ("runs", "steps_held", "worker_sessions", "client_sessions", "graphs", "calls_out")


def status(target):
    """The status of every task, by its name."""
    done = subprocess.run([cluster_process.RILL, "status", "--json", target], stdout=subprocess.PIPE, timeout=60)
    return {row["task"]: row for row in json.loads(done.stdout)}


def held(target):
    """What is counted, per reachable task. One call is the status itself, which is not counted."""
    rows = {}
    for task, row in status(target).items():
        if not row["reachable"]:
            continue
        rows[task] = {key: row[key] for key in HELD}
        rows[task]["calls_in"] = row["calls_in"] - 1
    return rows


def totals(target):
    out = {}
    for row in held(target).values():
        for key, value in row.items():
            out[key] = out.get(key, 0) + value
    return out


def wait_for(target, seconds=60, **wanted):
    """Waits until the totals are as wanted; fails with what they were."""
    end = time.monotonic() + seconds
    while True:
        seen = totals(target)
        if all(seen[key] == value for key, value in wanted.items()):
            return seen
        assert time.monotonic() < end, "wanted %s, after %d s there is %s" % (wanted, seconds, held(target))
        time.sleep(0.01)


def wait_until_empty(target, seconds=60):
    """Waits until no task holds anything: no session, no graph, no step, no call."""
    wait_for(target, seconds, calls_in=0, **{key: 0 for key in HELD})


def threads_and_fds(cluster, most=None):
    """Of each task; connections that are closing have a moment to do so, and longer while there are more than `most`."""
    end = time.monotonic() + 30
    while True:
        time.sleep(0.2)
        processes = {key: psutil.Process(task.pid) for key, task in cluster.tasks.items()}
        rows = {key: (p.num_threads(), p.num_fds()) for key, p in processes.items()}
        if not most or time.monotonic() > end or all(n <= m for key in rows for n, m in zip(rows[key], most[key])):
            return rows


class Background:
    """A call in a thread of its own; its result, its error and when it ended."""

    def __init__(self, function):
        self.result = self.error = self.ended = None
        self._function = function
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        try:
            self.result = self._function()
        except Exception as e:
            self.error = e
        self.ended = time.monotonic()

    def wait(self, seconds=60):
        self._thread.join(seconds)
        assert not self._thread.is_alive(), "the call has not ended after %d s" % seconds
        return self


def abandon(session):
    """Forgets a session whose master is gone: its close would wait for the master to come back."""
    session._closed = True
