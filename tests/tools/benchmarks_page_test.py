"""docs/benchmarks.md and its pictures are what bench/report.py makes of docs/benchmarks.json; what is not there says so."""
import json
import os
import sys
import xml.etree.ElementTree

from cluster_process import ROOT

sys.path.insert(0, os.path.join(ROOT, "bench"))
import groups
import report

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


def test_what_was_not_measured_and_what_was_busy_is_told(tmp_path):
    ratio, cost = {"median": 2.0, "least": 1.5, "most": 2.5}, {"median": 1500.0, "least": 1.0, "most": 2.0}
    row = {"group": "steps", "place": 1, "title": "a step", "unit": "µs", "problem": "others used 50 % of the cores", "date": "d", "commit": "c",
           "costs": {"rill": cost, "tensorflow": cost}, "ratios": {"tensorflow": ratio}}
    machine = {"cpu": "x", "cores": 2, "memory_gib": 1, "kernel": "k", "compiler": "cc"}
    report.write({"machine": machine, "rows": {"a": row}, "groups": {"steps": "d"}}, groups.GROUPS, str(tmp_path))
    page = read(tmp_path / "benchmarks.md")
    assert "| a step | ≥ 1 | **2.00 (1.50–2.50)** | 1.5 ms | 1.5 ms | *busy*: others used 50 % of the cores |" in page
    assert "## Training in one process\n\nNot measured yet." in page and "`local_mlp`" in page and "`steps`" not in page.split("Groups not measured")[1]


def test_a_ratio_is_bold_when_its_target_is_reached(tmp_path):
    cost = {"median": 1500.0, "least": 1.0, "most": 2.0}
    rows = {}
    for key, median in ("empty_ps", 3.5), ("barrier", 4.5):
        rows[key] = {"group": "steps", "place": 1, "title": key, "unit": "µs", "problem": "", "date": "d", "commit": "c",
                     "costs": {"rill": cost, "tensorflow": cost}, "ratios": {"tensorflow": {"median": median, "least": 1.5, "most": 5}}}
    machine = {"cpu": "x", "cores": 2, "memory_gib": 1, "kernel": "k", "compiler": "cc"}
    report.write({"machine": machine, "rows": rows, "groups": {}}, groups.GROUPS, str(tmp_path))
    page = read(tmp_path / "benchmarks.md")
    assert "| empty_ps | ≥ 4 | 3.50 (1.50–5.00) |" in page and "| barrier | ≥ 4 | **4.50 (1.50–5.00)** |" in page
