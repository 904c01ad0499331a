"""Rows of graphs by their size: create, extend, first run, many signatures, time of a node; and of clusters by their size."""
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
            rounds = 1 if optimise and nodes > 10_000 else 3
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
    rows.__doc__ = "A chain of %s additions: create, first run, extend" % format(nodes, ",")
    return rows


def signatures(s):
    """1,000 different fetches of a graph of 1,000 nodes, each for the first time."""
    path = graphs.chain(stage.GRAPHS, 1000)
    answers = {"rill": [], "tensorflow": []}
    with machine.Watch() as watch:
        for name, kind in ("rill", "rill"), ("tensorflow", "tf"):
            with contest.generator(path, "signatures", s.cluster(kind).target(), warm=0) as c:
                answers[name].append(c.wait_ready().run(40, 999))
    s.record("signatures", "size", "first run of one of 1,000 signatures, graph of 1,000 nodes", "µs", contest.compare(answers, contest.step_us), watch)


def executor(s):
    """Time of a node in one process: a chain and a fan of 10,000 additions of scalars, optimisers off."""
    nodes = 10_000
    for key, path, title in ("executor_chain", graphs.chain(stage.GRAPHS, nodes, False), "a node of a chain"), ("executor_fan", graphs.fan(stage.GRAPHS, nodes), "a node of a fan"):
        contenders = {"rill": contest.generator(path, "first"), "tensorflow": contest.python("python_client.py", path, "first", "")}
        with contenders["rill"], contenders["tensorflow"]:
            for c in contenders.values():
                c.wait_ready()
            with machine.Watch() as watch:
                windows = contest.take_turns(contenders, s.seconds, s.rounds)
        s.record(key, "size", title + " of 10,000 additions of scalars, one process", "ns", contest.compare(windows, lambda w: 1e3 * contest.step_us(w) / nodes), watch)


# ---- Clusters ----

def resident(pid):
    return psutil.Process(pid).memory_info().rss


def scale(s):
    """1 to 64 workers, each a process, that train a tiny model on one ps; TensorFlow up to 4 (a server of it takes half a GB)."""
    for workers in 1, 4, 16, 64:
        answers, watches = {}, []
        for name, kind in ("rill", "rill"), ("tensorflow", "tf"):
            if kind == "tf" and workers > 4:
                continue
            with machine.Watch() as watch:
                answers[name] = one_scale(s, kind, workers)
            watches.append(watch)
        watch.steal, watch.others = max(w.steal for w in watches), max(w.others for w in watches)
        result = contest.compare({n: a["windows"] for n, a in answers.items()}, contest.step_us)
        s.record("scale%d" % workers, "scale", "%d worker%s, tiny model, each on its own" % (workers, "s" * (workers > 1)), "µs", result, watch, workers=workers,
                 ps_bytes_per_worker={n: a["ps_bytes"] for n, a in answers.items()}, cpu={n: contest.summary([contest.total_cpu_us(w) for w in a["windows"]]) for n, a in answers.items()})


def one_scale(s, kind, workers):
    """Windows of all workers together, and what a worker adds to the memory of the ps."""
    with cluster_process.Cluster({"ps": [kind], "worker": [kind] * workers}) as cluster:
        ps, members = cluster.task("ps").pid, []
        before = resident(ps)
        for w in range(workers):
            path = graphs.worker_model(stage.GRAPHS, "tiny", w, workers, sync=False)
            members.append(contest.generator(path, "train", cluster.target("worker", w), [ps] if w == 0 else [], warm=0))
            if w == 0:
                members[0].wait_ready()
        with contest.Team(members) as team:
            team.wait_ready()
            seconds = s.seconds * (1 + workers / 16)
            team.run(seconds / 2)
            windows = [team.run(seconds) for _ in range(3)]
            return {"windows": windows, "ps_bytes": (resident(ps) - before) / workers}


GROUPS = {"size_%dk" % (n // 1000): size_rows(n) for n in (1000, 10_000, 100_000)}
GROUPS.update(signatures=signatures, executor=executor, scale=scale)
