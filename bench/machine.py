"""What the machine is, and whether it was quiet enough while something was measured."""
import os
import platform
import re
import subprocess
import time

import psutil

BUSY_SHARE = 0.10  # of all cores, used by others
STEAL_SHARE = 0.02


def describe():
    with open("/proc/cpuinfo") as f:
        model = re.search(r"model name\s*: (.*)", f.read())
    return {"cpu": model.group(1) if model else platform.machine(), "cores": os.cpu_count(),
            "memory_gib": round(psutil.virtual_memory().total / 2**30), "kernel": platform.release(),
            "compiler": subprocess.run(["cc", "--version"], capture_output=True, text=True).stdout.split("\n")[0]}


def ticks():
    """Seconds of CPU time since the start: busy, stolen."""
    t = psutil.cpu_times()
    return t.user + t.nice + t.system + t.irq + t.softirq, t.steal


def tree_seconds():
    """CPU seconds of this process and all it started, those that ended included."""
    total = 0
    for p in [psutil.Process()] + psutil.Process().children(recursive=True):
        try:
            t = p.cpu_times()
        except psutil.Error:
            continue
        total += t.user + t.system + t.children_user + t.children_system
    return total


class Quiet:
    """Stands for a watch where figures of several rows are put together. problem: that of those rows."""

    def __init__(self, problem=""):
        self.problem = problem


class Watch:
    """Between enter and exit: how much of the machine others used. `others` and `steal` are shares of all cores."""

    def __enter__(self):
        self._began, self._own, (self._busy, self._steal) = time.monotonic(), tree_seconds(), ticks()
        return self

    def __exit__(self, *what):
        cores = (time.monotonic() - self._began) * os.cpu_count()
        busy, steal = ticks()
        self.steal = (steal - self._steal) / cores
        self.others = max(0.0, (busy - self._busy - (tree_seconds() - self._own)) / cores)

    @property
    def problem(self):
        """Why it was too busy to judge; "" when it was not."""
        what = []
        if self.others > BUSY_SHARE:
            what.append("others used %.0f %% of the cores" % (100 * self.others))
        if self.steal > STEAL_SHARE:
            what.append("%.0f %% of the cores were stolen" % (100 * self.steal))
        return ", ".join(what)
