"""Rows of graphs by their size: create, extend, first run, many signatures, time of a node; and of clusters by their size."""
import functools
import json
import subprocess

import cluster_process
import contest
import graphs
import machine
import psutil
import stage


def starts(s, path, case, rounds):
    """What the generator tells of its start, round by round, taking turns: {"rill": [...], "tensorflow": [...]}."""
    answers = {"rill": [], "tensorflow": []}
    for _ in range(rounds):
        for name, kind in ("rill", "rill"), ("tensorflow", "tf"):
            with contest.generator(path, case, s.cluster(kind).target(), warm=0) as c:
                answers[name].append(c.wait_ready().start)
    return answers


def size_rows(nodes):
    def rows(s):
        for optimise in False, True:
            path = graphs.chain(stage.GRAPHS, nodes, optimise)
            how = "" if optimise else ", optimisers off"
            key = "chain%d%s" % (nodes, "" if optimise else "_off")
            rounds = 1 if optimise and nodes > 10_000 else min(3, s.rounds)
            with machine.Watch() as watch:
                answers = starts(s, path, "first", rounds)
            s.record(key, "size", "%s nodes: create and first run%s" % (format(nodes, ","), how), "µs",
                     contest.compare(answers, lambda a: 1e3 * (a["create_ms"] + a["first_ms"])), watch, nodes=nodes, rounds=rounds)
            if optimise and nodes > 10_000:
                continue
            with machine.Watch() as watch:
                answers = starts(s, path, "extended", rounds)
            s.record(key + "_extend", "size", "%s nodes: extend by a tenth and first run%s" % (format(nodes, ","), how), "µs",
                     contest.compare(answers, lambda a: 1e3 * (a["extend_ms"] + a["first_ms"])), watch, nodes=nodes, rounds=rounds)
        if nodes == 100_000:
            growth(s)
    rows.__doc__ = "A chain of %s additions: create, first run, extend" % format(nodes, ",")
    return rows


def signatures(s):
    """1,000 different fetches of a graph of 1,000 nodes, each for the first time; TensorFlow as many as it makes in 15 s."""
    path = graphs.chain(stage.GRAPHS, 1000)
    answers = {"rill": [], "tensorflow": []}
    with machine.Watch() as watch:
        for name, kind in ("rill", "rill"), ("tensorflow", "tf"):
            with contest.generator(path, "signatures", s.cluster(kind).target(), warm=0) as c:
                answers[name].append(c.wait_ready().run(15, 999))
    s.record("signatures", "size", "first run of one of 1,000 signatures, graph of 1,000 nodes", "µs", contest.compare(answers, contest.step_us), watch,
             signatures={n: 1 + a[0]["steps"] for n, a in answers.items()})


def growth(s):
    """How much more a node takes in a large graph than in a small one: from the rows of both sizes."""
    rows, ratios = s.results["rows"], {}
    small, large = rows.get("chain1000_off"), rows.get("chain100000_off")
    if not small or not large:
        return
    for name, cost in large["costs"].items():
        values = [cost[k] / large["nodes"] / (small["costs"][name]["median"] / small["nodes"]) for k in ("least", "median", "most")]
        ratios[name] = contest.summary(values)
    watch = machine.Quiet("; ".join(filter(None, {small["problem"], large["problem"]})))
    s.record("size_growth", "size", "what a node takes in a graph of 100,000 over what it takes in one of 1,000, optimisers off", "times", {"costs": ratios, "ratios": {}}, watch)


def executor(s):
    """Time of a node in one process: chains and fans of 10,000 nodes that do nothing and of as many additions of scalars, optimisers off."""
    nodes = 10_000
    for key, make, title in (("executor_null_chain", graphs.null_chain, "a chain of 10,000 null ops"), ("executor_null_fan", graphs.null_fan, "a fan of 10,000 null ops"),
                             ("executor_chain", functools.partial(graphs.chain, optimise=False), "a chain of 10,000 additions of scalars"),
                             ("executor_fan", graphs.fan, "a fan of 10,000 additions of scalars")):
        path = make(stage.GRAPHS, nodes)
        contenders = {"rill": contest.generator(path, "first"), "tensorflow": contest.python("python_client.py", path, "first", "")}
        windows, watch, _ = s.take_turns(contenders)
        s.record(key, "size", "a node of %s, one process" % title, "ns", contest.compare(windows, lambda w: 1e3 * contest.step_us(w) / nodes), watch)


# ---- Clusters ----

WORKERS = (1, 4, 16, 64)
TF_SERVER_BYTES = 600e6  # resident, with the Python around it


def resident(pid):
    return psutil.Process(pid).memory_info().rss


class Crowd:
    """A ps and some workers of one kind, a load generator at each."""

    def __init__(self, kind, workers):
        self.team = contest.Team([])
        self.cluster = cluster_process.Cluster({"ps": [kind], "worker": [kind] * workers})
        try:
            self._join(workers)
        except BaseException:
            self.close()
            raise

    def _join(self, workers):
        ps = self.cluster.task("ps").pid
        for w in range(workers):
            path = graphs.worker_model(stage.GRAPHS, "tiny", w, workers, sync=False)
            self.team.members.append(contest.generator(path, "train", self.cluster.target("worker", w), [self.cluster.task("worker", w).pid] + [ps] * (w == 0), warm=20))
            if w == 0:
                self.team.members[0].wait_ready()
                first = resident(ps)
        self.team.wait_ready()
        self.kb_per_worker = (resident(ps) - first) / 1e3 / max(1, workers - 1)

    def close(self):
        self.team.close()
        self.cluster.kill()


def fits(kind, workers):
    """Why a cluster has no place on this machine; "" when it has."""
    need, free = (workers + 1) * TF_SERVER_BYTES, psutil.virtual_memory().available
    if kind == "tf" and need > 0.9 * free:
        return "%d servers of it with about 0.6 GB each do not fit in %.0f GB" % (workers + 1, free / 1e9)
    return ""


def scale(s):
    """1 to 64 workers, each a process, that train a tiny model on one ps; TensorFlow as far as its servers fit in memory."""
    memory, costs, theirs = {}, {}, {}
    for workers in WORKERS:
        left_out, crowds = {}, {}
        try:
            for name, kind in ("rill", "rill"), ("tensorflow", "tf"):
                why = fits(kind, workers)
                if why:
                    left_out[name] = why
                else:
                    crowds[name] = Crowd(kind, workers)
            with machine.Watch() as watch:
                windows = contest.take_turns({n: c.team for n, c in crowds.items()}, s.seconds * (1 + workers / 16), s.rounds)
        finally:
            for c in crowds.values():
                c.close()
        if workers > 1:
            memory.update({n: c.kb_per_worker for n, c in crowds.items()})
        costs[workers] = [contest.step_us(w) for w in windows["rill"]]
        if "tensorflow" in windows:
            theirs[workers] = [contest.step_us(w) for w in windows["tensorflow"]]
        s.record_windows("scale%d" % workers, "scale", "%d worker%s, tiny model, each on its own: a step of all" % (workers, "s" * (workers > 1)), windows, watch, workers=workers, left_out=left_out)
    if WORKERS[-1] not in theirs:
        best = min(theirs, key=lambda w: contest.summary(theirs[w])["median"])
        s.record("scale_best", "scale", "%d workers of Rill beside the number of workers at which TensorFlow is fastest: %d" % (WORKERS[-1], best), "µs",
                 contest.compare({"rill": costs[WORKERS[-1]], "tensorflow": theirs[best]}, float), watch)
    s.record("scale_memory", "scale", "memory of the ps for each worker more", "KB", {"costs": {n: contest.summary([kb]) for n, kb in memory.items()}, "ratios": {}}, watch)
    one = contest.summary(costs[1])["median"]
    worst = max((costs[w] for w in WORKERS[1:]), key=lambda c: contest.summary(c)["median"])
    s.record("scale_growth", "scale", "a step of all with 4, 16 or 64 workers, the slowest of them, over that of 1 worker", "times",
             {"costs": {"rill": contest.summary([c / one for c in worst])}, "ratios": {}}, watch)
    crowd(s)


# What a step of the tiny model touches on a worker: cache lines and pages of code, the same of data; the median of 6 windows of 171,000 instructions, a step each,
# in `valgrind --tool=lackey --trace-mem=yes rill serve`.
STEP_MEMORY = (2319, 172, 1434, 195)


def crowd(s):
    """How long it takes to touch that much memory when as many processes as the clusters above have, a worker and a client for each, do so in turn."""
    with machine.Watch() as watch:
        command = [stage.bench_program("crowd"), *STEP_MEMORY, 2, *(2 * workers for workers in WORKERS[1:])]
        us = json.loads(subprocess.run([str(c) for c in command], capture_output=True, text=True, check=True).stdout)
    s.record_crowd(us, watch)


GROUPS = {"size_%dk" % (n // 1000): size_rows(n) for n in (1000, 10_000, 100_000)}
GROUPS.update(signatures=signatures, executor=executor, scale=scale)
