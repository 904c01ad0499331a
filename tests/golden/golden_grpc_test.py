"""Replays the golden cases with a real client over grpc: on one task, and the distributed ones on 2 ps and 2 workers.

A case that needs an op Rill lacks is skipped; one that is named in must_pass.txt must pass."""
import os
import re

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import pytest

import golden_case
from cluster_process import Cluster

CASES = os.path.join(golden_case.HERE, "cases")
DIST = os.path.join(golden_case.HERE, "dist")
LACKS = re.compile(r"Op type not registered '(\w+)'|No OpKernel was registered to support Op '(\w+)'")

with open(os.path.join(golden_case.HERE, "must_pass.txt")) as f:
    MUST_PASS = set(f.read().split())


@pytest.fixture(scope="module")
def one_task():
    with Cluster({"local": 1}) as cluster:
        yield cluster.target("local")


@pytest.fixture(scope="module")
def four_tasks():
    with Cluster({"ps": 2, "worker": 2}) as cluster:
        yield cluster.target("worker")


def replay(folder, name, target, tmp, tally):
    problems = golden_case.Case(folder, name).check(target, tmp)
    lacks = sorted({a or b for a, b in LACKS.findall("\n".join(problems))})
    tally[name] = "lack" if lacks else "fail" if problems else "pass"
    if lacks and name not in MUST_PASS:
        pytest.skip("Rill lacks " + ", ".join(lacks))
    assert not problems, "\n".join(problems[:5])


@pytest.mark.parametrize("name", golden_case.names(CASES))
def test_case(name, one_task, tmp_path, tally):
    replay(CASES, name, one_task, tmp_path, tally)


@pytest.mark.parametrize("name", golden_case.names(DIST))
def test_distributed_case(name, four_tasks, tmp_path, tally):
    replay(DIST, name, four_tasks, tmp_path, tally)


def test_every_case_that_must_pass_is_here():
    assert MUST_PASS <= set(golden_case.names(CASES)) | set(golden_case.names(DIST))
