"""Stage: the clusters and graphs that rows share, and the results they leave."""
import datetime
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path.insert(0, os.path.join(ROOT, "tests"))
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import cluster_process
import contest
import graphs
import machine

cluster_process.TF_ENVIRONMENT.pop("TF_ENABLE_ONEDNN_OPTS")  # TensorFlow as it comes, at its fastest
GRAPHS = os.path.join(ROOT, "build", "bench")
PEERS = os.path.join(ROOT, "build", "peers", "bin", "python")
RESULTS = os.path.join(ROOT, "docs", "benchmarks.json")
UNSTEADY = 1.5  # rounds that differ by more


def commit():
    return subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip()


class Stage:
    """One run of some rows."""

    def __init__(self, seconds=0.5, rounds=5, without=(), path=RESULTS):
        self.seconds, self.rounds, self.without, self.path = seconds, rounds, without, path
        self._clusters = {}
        self._commit, self._date = commit(), datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M")
        try:
            with open(path) as f:
                self.results = json.load(f)
        except FileNotFoundError:
            self.results = {"rows": {}}
        self.results["machine"] = machine.describe()

    # ---- Clusters ----

    def cluster(self, kind, workers=1):
        """One ps and some workers, all of one kind ("rill", "rill_tcp": with TCP forced, "tf", "tf_led": with a leader of collectives, which TensorFlow's tasks want when they start); kept until the end of the run."""
        key = kind, workers
        if key not in self._clusters:
            server, flags = kind.partition("_")[0], ["--tcp-only"] if kind == "rill_tcp" else []
            leader = {"TF_TASK_LEADER": graphs.LEADER} if kind == "tf_led" else None
            self._clusters[key] = cluster_process.Cluster({"ps": [server], "worker": [server] * workers}, flags=flags, tf_environment=leader)
        return self._clusters[key]

    def drop_clusters(self):
        for c in self._clusters.values():
            c.kill()
        self._clusters = {}

    def __enter__(self):
        return self

    def __exit__(self, *what):
        self.drop_clusters()

    # ---- Results ----

    def record(self, key, group, title, unit, result, watch, **more):
        """Keeps and prints a row. result: what contest.compare gave. left_out: why a peer is not among them, by its name."""
        problem = [watch.problem] if watch.problem else []
        for name, ratio in result["ratios"].items():
            if ratio["most"] > UNSTEADY * ratio["least"]:
                problem.append("rounds differ: %.2f to %.2f of %s" % (ratio["least"], ratio["most"], name))
        old = self.results["rows"].get(key)
        place = old["place"] if old else 1 + max([r["place"] for r in self.results["rows"].values()], default=0)
        more = {k: v for k, v in more.items() if v != {}}
        row = dict(more, place=place, group=group, title=title, unit=unit, problem="; ".join(problem), date=self._date, commit=self._commit, **result)
        self.results["rows"][key] = row
        self.save()
        costs = "  ".join("%s %.4g" % (n, c["median"]) for n, c in row["costs"].items())
        ratios = "  ".join("%.2fx of %s (%.2f-%.2f)" % (r["median"], n, r["least"], r["most"]) for n, r in row["ratios"].items())
        cpu = "  CPU " + " ".join("%s %.4g" % (n, c["median"]) for n, c in row["cpu"].items()) if "cpu" in row else ""
        print("%-28s %s  [%s %s%s]%s" % (key, ratios, costs, unit, cpu, "  BUSY: " + row["problem"] if problem else ""), flush=True)

    def record_limits(self, us, watch):
        self.results["limits"] = {"us": us, "problem": watch.problem, "date": self._date}
        self.save()
        for name, by_size in us.items():
            print("%-28s %s  [µs]" % ("limit, " + name, "  ".join("%s %.4g" % item for item in by_size.items())), flush=True)

    def record_crowd(self, us, watch):
        """What a turn takes that touches a step's memory, by processes: lists of µs, as bench/crowd.c prints them."""
        self.results["crowd"] = {"us": us, "problem": watch.problem, "date": self._date}
        self.save()
        for processes, parts in us.items():
            print("%-28s %s  [µs]" % ("crowd of %s" % processes, "  ".join("%.4g" % part for part in parts)), flush=True)

    def finish_group(self, name):
        self.results.setdefault("groups", {})[name] = self._date
        self.save()

    def save(self):
        """Whole or not at all: a run may be ended at any moment."""
        with open(self.path + ".new", "w") as f:
            json.dump(self.results, f, indent=1, sort_keys=True)
            f.write("\n")
        os.replace(self.path + ".new", self.path)

    # ---- The usual way ----

    def take_turns(self, contenders, seconds=None, steps=0):
        """Waits for the contenders, lets them take turns, ends them: their windows by name, the watch, and why a peer was left out, by name."""
        left_out = {}

        def give_up(name, error):
            if name.split(" ")[0] in ("rill", "tensorflow"):
                return False
            print("%s is left out: %s" % (name, error), flush=True)
            left_out[name] = "no answer in time" if isinstance(error, TimeoutError) else "it failed"
            return True

        try:
            ready = {}
            for name, c in contenders.items():
                try:
                    c.wait_ready()
                    ready[name] = c
                except (RuntimeError, TimeoutError) as e:
                    if not give_up(name, e):
                        raise
            with machine.Watch() as watch:
                windows = contest.take_turns(ready, seconds or self.seconds, self.rounds, steps, give_up)
        finally:
            for c in contenders.values():
                c.close()
        return windows, watch, left_out

    def contest(self, key, group, title, contenders, seconds=None, steps=0, with_cpu=True, with_client=False, left_out=None, **more):
        """Lets them take turns and records microseconds a step. left_out: why a peer is not among them."""
        windows, watch, failed = self.take_turns(contenders, seconds, steps)
        if with_client:
            more["client"] = contest.compare(windows, lambda w: w["client_cpu_us"])["costs"]
        self.record_windows(key, group, title, windows, watch, with_cpu, left_out=dict(left_out or {}, **failed), **more)

    def record_windows(self, key, group, title, windows, watch, with_cpu=True, **more):
        if with_cpu:
            more["cpu"] = contest.compare(windows, contest.total_cpu_us)["costs"]
        self.record(key, group, title, "µs", contest.compare(windows, contest.step_us), watch, **more)


def bench_program(name):
    return os.path.join(ROOT, "build", os.environ.get("MODE", "release"), "bench", name)


def has_peer(package):
    """Whether build/peers has a Python package."""
    return os.path.exists(PEERS) and subprocess.run([PEERS, "-c", "import importlib.util, sys; sys.exit(not importlib.util.find_spec(%r))" % package]).returncode == 0


def pids(cluster):
    return [t.pid for t in cluster.tasks.values()]
