"""Writes docs/benchmarks.md from docs/benchmarks.json: the ratios first, then what they are made of."""
import fnmatch
import os
import re

import machine
import plot
import stage
import targets

BYTES = {"4B": 4, "1KB": 1e3, "1MB": 1e6, "100MB": 1e8}
DOCS = os.path.join(stage.ROOT, "docs")
PEERS = {"rill": "Rill", "tensorflow": "TensorFlow", "tensorflow_xla": "TensorFlow XLA", "torch": "PyTorch", "torch_compile": "torch.compile", "jax": "JAX", "onednn": "oneDNN", "onednn_blocked": "oneDNN, blocked images",
         "openmpi": "OpenMPI", "gloo": "Gloo", "tcp": "plain TCP"}
MISSED = os.path.join(stage.HERE, "missed.md")

INTRODUCTION = """# Benchmarks

Rill beside TensorFlow 2.21 and others, measured by `make bench`. Written by `bench/run.py` from [benchmarks.json](benchmarks.json): nothing here is typed by hand, and what was not
measured says so.

- All contenders of a row run in the same minutes on the same machine and take turns, window by window, after a window that is not counted. A **ratio** is what the peer takes divided by
  what Rill takes in the same round, median over the rounds, with the least and the most: above 1 Rill is faster. A target may also be a figure of Rill's own ("≤ 50 ns") or a
  ratio of CPU times. Bold: the target is reached; what is not reached is told with its reasons under [Where a target is not reached](#where-a-target-is-not-reached).
- Steps on servers are driven by the same load generator in C (`rill bench FILE CASE --target grpc://...`) with the same GraphDef; TensorFlow is its own server (`tf.distribute.Server`),
  as it comes, oneDNN included. Rows "Python client" use `tf.compat.v1.Session`. CPU is that of all server processes for one step.
- A row is marked *busy* when others used more than %d %% of the cores, more than %d %% was stolen, or the ratios of its rounds differ by more than half: do not judge by it.
- `make bench BENCH="steps local_mlp"` runs some groups; `bench/run.py --help` lists them.
""" % (100 * machine.BUSY_SHARE, 100 * machine.STEAL_SHARE)

TITLES = {
    "steps": "Small steps, 1 ps + 1 worker",
    "transfer": "Transfers, 1 ps + 1 worker",
    "peers": "OpenMPI and Gloo, two processes",
    "collective": "Collective ops, two tasks",
    "python": "Python client, 1 ps + 1 worker",
    "cluster": "Training on a cluster",
    "sync": "What training in step costs",
    "local": "Training in one process",
    "kernels": "One kernel alone, one process",
    "ops": "One op alone, one process",
    "size": "Graphs by size",
    "scale": "Clusters by size",
}
NOTES = {
    "peers": "Own small programs on OpenMPI (its processes poll all the time, which a server shared with others must not) and on Gloo (of PyTorch, over TCP), beside what Rill's ps and worker do "
             "for a client: there is no target, they say what a message costs without a session, a graph and a client.",
    "sync": "How much longer a step of `SyncReplicasOptimizer` takes than one of workers that each go on their own: all four take turns, the figure is that of each round.",
    "kernels": "oneDNN is called alone, with the filter in the layout it likes best. Images are height × width × channels, as TensorFlow has them, and once more in the layout that oneDNN picks for "
               "them (blocks of channels) at no charge for getting them there: what a network would gain at most if its convolutions, normalisations and pools handed such images on.",
    "ops": "Each op by itself, on values that lie in variables; Rill's session is driven from C (`rill bench`), TensorFlow's from Python by `make_callable` without a fetch, "
           "which costs it some 20 µs a step. Linear algebra of floats is computed in doubles by Rill, but for triangular solves, and in floats by TensorFlow.",
    "scale": "A step is one of any worker: with 4 workers, 250 µs means 4,000 steps a second over all.",
}


def duration(us):
    for unit, size in ("s", 1e6), ("ms", 1e3):
        if us >= size:
            return "%.3g %s" % (us / size, unit) if us < 100 * size else "%.0f %s" % (us / size, unit)
    return "%.3g µs" % us


def value(row, figure):
    if row["unit"] == "µs":
        return duration(figure)
    return "%.1f %%" % figure if row["unit"] == "%" else "%.4g %s" % (figure, row["unit"])


def bold(text, reached):
    return "**%s**" % text if reached else text


def ratio_cell(r, least):
    text = "%.2f (%.2f–%.2f)" if r["least"] >= 0.05 else "%.2g (%.2g–%.2g)"
    return bold(text % (r["median"], r["least"], r["most"]), least is not None and r["median"] >= least)


def own_cell(row):
    """Rill's own figure, with its spread where no ratio has one."""
    cost, most = row["costs"]["rill"], targets.aims(row["key"]).get("most")
    text = value(row, cost["median"])
    if not row["ratios"] and cost["most"] > cost["least"]:
        text += " (%s–%s)" % (value(row, cost["least"]).split(" ")[0], value(row, cost["most"]).split(" ")[0])
    return bold(text, most is not None and cost["median"] <= most)


def target_cell(row):
    """One figure where all peers have the same; else the others' after those with one of their own. Then what is meant of Rill alone."""
    least = {p: targets.target(row["key"], p) for p in row["ratios"]}
    least = {p: a for p, a in least.items() if a is not None}
    own = {p: a for p, a in least.items() if a != 1}
    cells = []
    if len(own) == len(least) == 1 or (least and not own):
        cells.append("≥ %g" % max(least.values()))
    elif own:
        cells += ["%s ≥ %g" % (PEERS[p], a) for p, a in own.items()] + ["others ≥ 1"]
    aims = targets.aims(row["key"])
    if "cpu" in aims:
        cells.append("CPU ≥ %g" % aims["cpu"])
    if "most" in aims:
        cells.append("≤ " + value(row, aims["most"]))
    return ", ".join(cells) or "–"


def cpu_cell(row):
    if "cpu" not in row:
        return "–"
    text = " / ".join(duration(c["median"]) for c in (row["cpu"][p] for p in PEERS if p in row["cpu"]) if c["median"])
    ratio, least = targets.cpu_ratio(row), targets.aims(row["key"]).get("cpu")
    if ratio:
        text += " = " + bold("1/%.1f" % ratio, least is not None and ratio >= least)
    return text


def remarks(row):
    left_out = "; ".join("%s not measured: %s" % (PEERS[p], why) for p, why in row.get("left_out", {}).items())
    return "; ".join(filter(None, ["*busy*: " + row["problem"] if row["problem"] else "", left_out]))


def table(rows):
    peers = [p for p in PEERS if p != "rill" and any(p in row["costs"] for row in rows)]
    compared = [p for p in PEERS if any(p in row["ratios"] for row in rows)]
    with_cpu = any("cpu" in r for r in rows)
    head = ["", "target"] + ["ratio to " + PEERS[p] for p in compared] + ["Rill"] + [PEERS[p] for p in peers] + (["CPU: Rill / TensorFlow"] if with_cpu else []) + [""]
    lines = ["| %s |" % " | ".join(head), "|---|" + "---:|" * (len(head) - 2) + "---|"]
    for row in rows:
        cells = [row["title"], target_cell(row)]
        cells += [ratio_cell(row["ratios"][p], targets.target(row["key"], p)) if p in row["ratios"] else "–" for p in compared]
        cells += [own_cell(row)] + [value(row, row["costs"][p]["median"]) if p in row["costs"] else "–" for p in peers]
        if with_cpu:
            cells.append(cpu_cell(row))
        lines.append("| %s |" % " | ".join(cells + [remarks(row)]))
    return lines


def client_lines(rows):
    """What of a large fetch is the client's own time, whatever the server does."""
    lines = []
    for row in rows:
        if "client" in row:
            own, whole = row["client"], row["costs"]
            lines += ["", "CPU time of the client itself, %s: %s of %s a step with Rill, %s of %s with TensorFlow. With a server that takes no time at all the ratio would be %.1f at most." % (
                row["title"], duration(own["rill"]["median"]), duration(whole["rill"]["median"]), duration(own["tensorflow"]["median"]), duration(whole["tensorflow"]["median"]),
                whole["tensorflow"]["median"] / own["rill"]["median"])]
    return lines


def reasons(path=MISSED):
    """Why targets are not reached, by row: [(pattern of keys, text)]."""
    with open(path) as f:
        sections = re.split(r"^## (.*)\n", f.read(), flags=re.M)[1:]
    return [(pattern.strip(), text.strip()) for patterns, text in zip(sections[::2], sections[1::2]) for pattern in patterns.split(",")]


def missed_lines(rows, texts):
    """The rows that miss a target, those with the same reason together."""
    by_text = {}
    for row in rows:
        what = targets.missed(row["key"], row)
        if what:
            text = next((t for pattern, t in texts if fnmatch.fnmatchcase(row["key"], pattern)), "No reason is known yet.")
            told = ", ".join("%s instead of %s" % (value(row, figure), value(row, aim)) if who == "most" else "%s %.2f instead of %g" % (PEERS.get(who, "CPU"), figure, aim) for who, figure, aim in what)
            by_text.setdefault(text, []).append("- %s: %s%s" % (row["title"], told, " (*busy*)" if row["problem"] else ""))
    if not by_text:
        return ["All rows above reach their targets."]
    lines = []
    for text, titles in by_text.items():
        lines += titles + ["", text, ""]
    return lines[:-1]


def limits_table(limits):
    sizes = list(BYTES)
    names = {"tcp": "TCP on loopback, request and answer", "unix": "Unix socket, request and answer", "memcpy": "copy in memory"}
    lines = ["", "What the machine allows, by own small programs in the same run%s:" % (" (*busy*: %s)" % limits["problem"] if limits["problem"] else ""), "",
             "| | %s |" % " | ".join(sizes), "|---|" + "---:|" * len(sizes)]
    return lines + ["| %s | %s |" % (names[n], " | ".join(duration(us[s]) for s in sizes)) for n, us in ((n, limits["us"][n]) for n in names)]


def crowd_table(crowd):
    by_processes = sorted(crowd["us"].items(), key=lambda item: int(item[0]))
    lines = ["", "What memory takes when many processes share the processor's caches: a small program (`bench/crowd.c`) touches as many cache lines, in as many pages, as a step of the tiny model "
             "does on a worker, its code and its data, in turns of 2 to 128 processes (a worker and a client for each of 1 to 64)%s:" % (" (*busy*: %s)" % crowd["problem"] if crowd["problem"] else ""), "",
             "| processes | %s |" % " | ".join(n for n, _ in by_processes), "|---|" + "---:|" * len(by_processes)]
    names = ("lines of code, shared by all, one after the other", "own lines, in any order", "own lines, one after the other")
    return lines + ["| %s | %s |" % (name, " | ".join(duration(us[i]) for _, us in by_processes)) for i, name in enumerate(names)]


SOAK = {  # title, how it is written, how many times that of the first third the last may be; None: the machine's own part
    "step_us": ("a step, both workers together", duration, 1.05),
    "fresh_us": ("the same on a cluster just started, every fourth window", duration, None),
    "bytes": ("resident memory of the three tasks", lambda b: "%.1f MB" % (b / 1e6), 1.02),
    "descriptors": ("open descriptors", "%d".__mod__, 1),
    "threads": ("threads", "%d".__mod__, 1),
}


def soak_lines(soak):
    if not soak:
        return ["`bench/soak.py` was not run yet."]
    what = "%g minutes of training (MLP, 1 ps + 2 workers, each on its own), %d steps, while %d sessions more came and went; %s UTC (commit %s)%s. The first minute is not counted." % (
        soak["minutes"], soak["steps"], soak["sessions"], soak["date"], soak["commit"], ", *busy*: " + soak["problem"] if soak["problem"] else "")
    rows = []
    for key, (title, form, most) in SOAK.items():
        first, last = soak[key]
        growth = "%+.1f %%" % (100 * (last / first - 1))
        target = "" if most is None else "no more" if most == 1 else "≤ +%.0f %%" % (100 * (most - 1))
        rows.append("| %s | %s | %s | %s | %s |" % (title, target, form(first), form(last), growth if most is None else bold(growth, last <= most * first)))
    trend = soak["trend"]
    line = "A line through the steps of all %d windows, %s to %s, grows by %+.1f %% from first to last, with a standard error of %.1f %%." % (
        trend["windows"], duration(trend["least_us"]), duration(trend["most_us"]), 100 * trend["growth"], 100 * trend["error"])
    return [what, "", "| medians | target | first third | last third | growth |", "|---|---:|---:|---:|---:|"] + rows + ["", line]


# ---- Pictures ----
NAMES = dict(PEERS, tcp="TCP", unix="Unix socket", memcpy="copy")


def picture(folder, name):
    return os.path.join(folder, "benchmarks_%s.svg" % name)


def ordered(rows):
    """By group, then as they were recorded."""
    order = list(TITLES)
    return dict(sorted(rows.items(), key=lambda item: (order.index(item[1]["group"]), item[1]["place"])))


def by_peer(rows, x):
    """{peer: [(x, cost)]} of rows that have x."""
    series = {}
    for row in rows:
        if x in row:
            for peer, cost in row["costs"].items():
                series.setdefault(peer, []).append((row[x], cost["median"]))
    return series


def draw(results, folder):
    """All pictures whose rows exist; returns those made."""
    rows, made = ordered(results["rows"]), []
    for name, text in ("ratios", "ratios to TensorFlow, row by row"), ("ops", "ratios to TensorFlow, op by op"):
        bars = [(key, r["ratios"]["tensorflow"], bool(r["problem"])) for key, r in rows.items() if "tensorflow" in r["ratios"] and (r["group"] == "ops") == (name == "ops")]
        if bars:
            plot.ratio_bars(picture(folder, name), "How many times the cost of Rill's TensorFlow 2.21 takes (* busy machine)", bars)
            made.append((name, text))
    for way in "pull", "push":
        series = {}
        for size, count in BYTES.items():
            for peer, cost in rows.get("%s_%s" % (way, size), {}).get("costs", {}).items():
                series.setdefault(peer, []).append((count, cost["median"]))
        if series:
            for limit, us in results.get("limits", {}).get("us", {}).items():
                series[limit] = [(BYTES[size], v) for size, v in us.items()]
            plot.curves(picture(folder, way), "%s between a ps and a worker, by size" % way.capitalize(), series, "bytes", "a step", NAMES, "{:.0e}".format, duration)
            made.append((way, "%s by size, with the limits of the machine" % way))
    sizes = [r for k, r in rows.items() if k.startswith("chain") and not k.endswith("extend") and "_off" in k]
    if sizes:
        plot.curves(picture(folder, "size"), "Create and first run of a chain of additions, optimisers off", by_peer(sizes, "nodes"), "nodes", "time", NAMES, lambda x: format(int(x), ","), duration)
        made.append(("size", "create and first run by graph size"))
    if any("workers" in r for r in rows.values()):
        plot.curves(picture(folder, "scale"), "A step of a tiny model over all workers on one ps", by_peer(rows.values(), "workers"), "workers", "a step", NAMES, y_text=duration)
        made.append(("scale", "steps by number of workers"))
    return made


def write(results, groups, folder=DOCS):
    """benchmarks.md and its pictures."""
    m = results["machine"]
    lines = [INTRODUCTION, "Machine: %s, %d cores, %d GiB, Linux %s, %s." % (m["cpu"], m["cores"], m["memory_gib"], m["kernel"], m["compiler"])]
    by_group = {}
    for key, row in ordered(results["rows"]).items():
        by_group.setdefault(row["group"], []).append(dict(row, key=key))
    for group, title in TITLES.items():
        rows = by_group.get(group)
        lines += ["", "## " + title, ""] + ([NOTES[group], ""] if group in NOTES else [])
        lines += table(rows) + ["", "Measured %s." % dates(rows)] if rows else ["Not measured yet."]
        if group == "transfer" and "limits" in results:
            lines += limits_table(results["limits"])
        if group == "scale" and "crowd" in results:
            lines += crowd_table(results["crowd"])
        lines += client_lines(rows or [])
    lines += ["", "## Where a target is not reached", ""] + missed_lines([r for g in TITLES for r in by_group.get(g, [])], reasons())
    lines += ["", "## A long run", ""] + soak_lines(results.get("soak"))
    lines += ["", "## Pictures", ""]
    for name, text in draw(results, folder):
        lines += ["![%s](benchmarks_%s.svg)" % (text, name), ""]
    missing = [name for name in groups if name not in results.get("groups", {})]
    if missing:
        lines += ["Groups not measured whole yet: " + ", ".join("`%s`" % n for n in missing) + "."]
    with open(os.path.join(folder, "benchmarks.md"), "w") as f:
        f.write("\n".join(lines) + "\n")


def dates(rows):
    """When, and of which commit."""
    seen = sorted({"%s UTC (commit %s)" % (r["date"], r["commit"]) for r in rows})
    return seen[0] if len(seen) == 1 else "%s to %s" % (seen[0], seen[-1])
