"""docs/benchmarks.md and its pictures are what bench/report.py makes of docs/benchmarks.json; what is not there says so."""
import json
import os
import sys
import xml.etree.ElementTree

from cluster_process import ROOT

sys.path.insert(0, os.path.join(ROOT, "bench"))
import contest
import groups
import report
import stage

DOCS = os.path.join(ROOT, "docs")


def read(path):
    with open(path) as f:
        return f.read()


def test_the_page_is_made_of_the_results(tmp_path):
    report.write(json.loads(read(os.path.join(DOCS, "benchmarks.json"))), groups.GROUPS, str(tmp_path))
    made = sorted(os.listdir(tmp_path))
    assert made == sorted(n for n in os.listdir(DOCS) if n.startswith("benchmarks") and n != "benchmarks.json")
    for name in made:
        assert read(tmp_path / name) == read(os.path.join(DOCS, name)), name + " is stale: bench/run.py writes it"
        if name.endswith(".svg"):
            assert xml.etree.ElementTree.parse(tmp_path / name).getroot().tag.endswith("svg")


MACHINE = {"cpu": "x", "cores": 2, "memory_gib": 1, "kernel": "k", "compiler": "cc"}
COST = {"median": 1500.0, "least": 1.0, "most": 2.0}


def made_row(group="steps", title="a step", median=2.0, unit="µs", costs=None, ratios=None, **more):
    row = {"group": group, "place": 1, "title": title, "unit": unit, "problem": "", "date": "d", "commit": "c", "costs": costs or {"rill": COST, "tensorflow": COST},
           "ratios": {"tensorflow": {"median": median, "least": 1.5, "most": 5.0}} if ratios is None else ratios}
    return dict(row, **more)


def page_of(tmp_path, rows, measured=()):
    report.write({"machine": MACHINE, "rows": rows, "groups": {g: "d" for g in measured}}, groups.GROUPS, str(tmp_path))
    return read(tmp_path / "benchmarks.md")


def missed_part(page):
    return page.split("## Where a target is not reached")[1].split("\n## ")[0]


def test_what_was_not_measured_and_what_was_busy_is_told(tmp_path):
    row = made_row(problem="others used 50 % of the cores", left_out={"jax": "not installed"})
    page = page_of(tmp_path, {"a": row}, ["steps"])
    assert "| a step | ≥ 1 | **2.00 (1.50–5.00)** | 1.5 ms | 1.5 ms | *busy*: others used 50 % of the cores; JAX not measured: not installed |" in page
    assert "## Training in one process\n\nNot measured yet." in page and "`local_mlp`" in page and "`steps`" not in page.split("Groups not measured")[1]


def test_what_memory_takes_is_told_by_number_of_processes(tmp_path):
    report.write({"machine": MACHINE, "rows": {}, "groups": {}, "crowd": {"us": {"128": [48, 18, 240], "2": [21, 2, 15]}, "problem": ""}}, groups.GROUPS, str(tmp_path))
    page = read(tmp_path / "benchmarks.md")
    assert "| processes | 2 | 128 |" in page
    assert "| own lines, in any order | 2 µs | 18 µs |" in page


def test_a_ratio_is_bold_when_its_target_is_reached(tmp_path):
    page = page_of(tmp_path, {"pull_4B": made_row("transfer", "pull", 3.5), "push_4B": made_row("transfer", "push", 4.5)})
    assert "| pull | ≥ 4 | 3.50 (1.50–5.00) |" in page and "| push | ≥ 4 | **4.50 (1.50–5.00)** |" in page
    assert "- pull: TensorFlow 3.50 instead of 4" in missed_part(page) and "push" not in missed_part(page)


def test_figures_of_its_own_and_cpu_time_have_targets_too(tmp_path):
    slow, fast = ({"rill": {"median": ns, "least": ns, "most": ns}} for ns in (60.0, 40.0))
    rows = {"executor_null_fan": made_row("size", "fan", unit="ns", costs=slow, ratios={}), "executor_null_chain": made_row("size", "chain", unit="ns", costs=fast, ratios={}),
            "barrier": made_row(title="barrier", median=9.0, cpu={"rill": {"median": 10.0}, "tensorflow": {"median": 30.0}}),
            "empty_ps": made_row(title="empty", median=9.0, cpu={"rill": {"median": 10.0}, "tensorflow": {"median": 50.0}})}
    page = page_of(tmp_path, rows)
    assert "| fan | ≤ 50 ns | 60 ns |" in page and "| chain | ≤ 50 ns | **40 ns** |" in page
    assert "| 10 µs / 30 µs = 1/3.0 |" in page and "| 10 µs / 50 µs = **1/5.0** |" in page
    missed = missed_part(page)
    assert "- fan: 60 ns instead of 50 ns" in missed and "- barrier: CPU 3.00 instead of 4" in missed and "chain" not in missed and "empty" not in missed


def test_a_reason_is_shown_only_while_its_row_misses(tmp_path):
    texts = [("pull_*", "because of pulls"), ("push_*", "because of pushes")]
    rows = [made_row("transfer", "pull", 1.0, key="pull_4B"), made_row("transfer", "push", 9.0, key="push_4B"), made_row(title="other", median=0.5, key="other")]
    assert report.missed_lines(rows, texts) == ["- pull: TensorFlow 1.00 instead of 4", "", "because of pulls", "", "- other: TensorFlow 0.50 instead of 1", "", "No reason is known yet."]
    assert report.missed_lines(rows[1:2], texts) == ["All rows above reach their targets."]


def test_reasons_are_read_by_the_keys_of_their_rows(tmp_path):
    path = tmp_path / "missed.md"
    path.write_text("Told to the reader of the file.\n\n## pull_*, push_1MB\n\none\n\ntwo\n\n## start\nthree\n")
    assert report.reasons(str(path)) == [("pull_*", "one\n\ntwo"), ("push_1MB", "one\n\ntwo"), ("start", "three")]
    for pattern, text in report.reasons():
        assert pattern and text, pattern


def test_the_clients_own_time_bounds_a_ratio(tmp_path):
    costs = {"rill": dict(COST, median=2000.0), "tensorflow": dict(COST, median=6000.0)}
    page = page_of(tmp_path, {"python_fetch_100MB": made_row("python", "fetch", 3.0, costs=costs, client={"rill": COST, "tensorflow": COST})})
    assert "fetch: 1.5 ms of 2 ms a step with Rill, 1.5 ms of 6 ms with TensorFlow. With a server that takes no time at all the ratio would be 4.0 at most." in page


# ---- A run ----

def contender(step, windows=1000):
    """A process that measures as the real ones do; it ends after some windows."""
    program = "import itertools, lines, sys, time\nsys.stdin = itertools.islice(sys.stdin, %d)\nlines.serve(lambda: %s, {})" % (windows, step)
    return contest.Contender([sys.executable, "-c", program], {"PYTHONPATH": os.path.join(ROOT, "bench")})


def test_contenders_take_turns_and_one_that_fails_is_left_out_and_told(tmp_path):
    path = str(tmp_path / "benchmarks.json")
    with stage.Stage(0.01, 3, path=path) as s:
        contenders = {"rill": contender("time.sleep(0.001)"), "tensorflow": contender("time.sleep(0.01)"), "jax": contender("0", 2), "torch": contender("1 // 0")}
        s.contest("local_mlp", "local", "title", contenders, with_cpu=False, left_out={"torch_compile": "not installed"})
        s.finish_group("local_mlp")
    kept = json.loads(read(path))
    row = kept["rows"]["local_mlp"]
    assert set(row["costs"]) == {"rill", "tensorflow"}
    assert set(row["ratios"]) == {"tensorflow"} and row["costs"]["rill"]["least"] >= 1000
    assert row["left_out"] == {"torch_compile": "not installed", "torch": "it failed", "jax": "it failed"}
    assert all(c.process.returncode is not None for c in contenders.values())
    report.write(kept, groups.GROUPS, str(tmp_path))
    assert "torch.compile not measured: not installed" in read(tmp_path / "benchmarks.md")


def test_rows_that_cannot_do_without_a_contender_fail(tmp_path):
    with stage.Stage(0.01, 1, path=str(tmp_path / "benchmarks.json")) as s:
        try:
            s.contest("local_mlp", "local", "title", {"rill": contender("0"), "tensorflow": contender("0", 1)})
        except RuntimeError:
            pass
        else:
            raise AssertionError("it was recorded")
        assert "local_mlp" not in s.results["rows"]
