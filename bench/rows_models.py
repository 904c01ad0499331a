"""Rows of training steps: on clusters, and in one process."""
import contest
import graphs
import models
import stage


def team(s, kind, model, workers, sync):
    """The load generators of all workers, ready. The chief comes first: it gives the variables their values."""
    cluster = s.cluster(kind, 2)
    members = []
    try:
        for w in range(workers):
            cases = graphs.worker_model(stage.GRAPHS, model, w, workers, sync)
            pids = [cluster.task("worker", w).pid] + ([cluster.task("ps").pid] if w == 0 else [])
            members.append(contest.generator(cases, "train", cluster.target("worker", w), pids, warm=0).wait_ready())
    except BaseException:
        for m in members:
            m.close()
        raise
    return contest.Team(members)


def on_cluster(s, model, workers):
    """Each worker on its own and all in step, Rill and TensorFlow: four that take turns."""
    contenders, kinds = {}, {"rill": "rill", "tensorflow": "tf"}
    try:
        for sync in False, True:
            for name, kind in kinds.items():
                contenders[name if not sync else name + " in step"] = team(s, kind, model, workers, sync)
    except BaseException:
        for c in contenders.values():
            c.close()
        raise
    windows, watch, _ = s.take_turns(contenders, max(s.seconds, 0.5))
    title = models.MODELS[model].title
    for sync in False, True:
        mode = {name: windows[name if not sync else name + " in step"] for name in kinds}
        key = "%s_%s%d" % (model, "sync" if sync else "async", workers)
        how = "1 ps + %d worker%s, %s" % (workers, "s" * (workers > 1), "in step" if sync else "each on its own")
        s.record_windows(key, "cluster", "%s: %s" % (title, how), mode, watch, model=model)
    more = {name: contest.summary([100 * (contest.step_us(a) / contest.step_us(b) - 1) for a, b in zip(windows[name + " in step"], windows[name])]) for name in kinds}
    s.record("sync_cost_%s%d" % (model, workers), "sync", "%s: 1 ps + %d worker%s" % (title, workers, "s" * (workers > 1)), "%", {"costs": more, "ratios": {}}, watch)


def cluster_rows(model):
    def rows(s):
        for workers in 1, 2:
            on_cluster(s, model, workers)
    rows.__doc__ = "Training on 1 ps and 1 or 2 workers: " + models.MODELS[model].title
    return rows


def peers(s, model):
    """PyTorch and JAX, where they are installed; and why the others are not there."""
    inputs = graphs.inputs(stage.GRAPHS, model)
    found, left_out = {}, {}
    for name, package, words in ("torch", "torch", ["torch_peer.py", model, "eager"]), ("torch_compile", "torch", ["torch_peer.py", model, "compile"]), ("jax", "jax", ["jax_peer.py", model]):
        if name in s.without:
            left_out[name] = "left out by hand"
        elif not stage.has_peer(package):
            left_out[name] = "not installed"
        else:
            found[name] = contest.python(*words, *inputs, interpreter=stage.PEERS)
    return found, left_out


def local_rows(model):
    def rows(s):
        cases = graphs.local_model(stage.GRAPHS, model)
        found, left_out = peers(s, model)
        contenders = {
            "rill": contest.generator(cases, "train"),
            "tensorflow": contest.python("python_client.py", cases, "train", ""),
            "tensorflow_xla": contest.python("python_client.py", cases, "train", "", environment={"RILL_BENCH_XLA": "1", "TF_XLA_FLAGS": "--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit"}),
            **found,
        }
        s.contest("local_" + model, "local", models.MODELS[model].title, contenders, max(s.seconds, 0.6), with_cpu=False, left_out=left_out, model=model)
    rows.__doc__ = "Training in one process: " + models.MODELS[model].title
    return rows


NAMES = ["softmax", "mlp", "lenet", "resnet20", "lstm", "embedding"]
GROUPS = {"cluster_" + m: cluster_rows(m) for m in NAMES}
GROUPS.update({"local_" + m: local_rows(m) for m in NAMES})
