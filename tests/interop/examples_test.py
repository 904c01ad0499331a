"""The programs of examples/tf1 on a Rill cluster with two ps, against the same programs on TensorFlow: same seeds, same losses."""
import importlib
import os
import sys

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

import models
from cluster_process import ROOT, Cluster

sys.path.insert(0, os.path.join(ROOT, "examples", "tf1"))

PROGRAMS = [
    "resnet --steps 8 --batch 8 --side 12 --width 4 --blocks 1",
    "lstm --steps 8 --batch 4 --length 6 --size 16",
    "lstm --steps 8 --batch 4 --length 6 --size 16 --unrolled",
    "wide_deep --steps 10 --batch 16 --buckets 100",
    "transformer --steps 8 --batch 4 --length 8 --size 16 --heads 2",
]


@pytest.fixture(scope="module")
def cluster():
    with Cluster({"ps": 2, "worker": 1}) as c:
        yield c
        assert "Sanitizer" not in c.log and "runtime error:" not in c.log, c.log


@pytest.fixture
def on_rill(cluster):
    """The flags of a program on the cluster, which has no variables left from other programs."""
    tf.Session.reset(cluster.target())
    return ["--ps_hosts", ",".join(cluster.spec["ps"]), "--worker_hosts", ",".join(cluster.spec["worker"])]


def run(name, flags, **more):
    program = importlib.import_module(name)
    return [value for _, value in program.train(program.parser().parse_args(flags), **more)]


@pytest.mark.parametrize("command", PROGRAMS)
@pytest.mark.parametrize("kind", ["ref", "resource"])
def test_training(on_rill, command, kind):
    name, *flags = command.split()
    with models.variables_of(kind):
        got, expected = run(name, flags + on_rill), run(name, flags)
    np.testing.assert_allclose(got, expected, rtol=1e-3)
    assert len(set(expected)) > 4


def test_queue_input_in_order(on_rill, tmp_path):
    flags = ["--folder", str(tmp_path), "--epochs", "2", "--in_order"]
    seen, reference = [], []
    got, expected = run("queue_input", flags + on_rill, seen=seen), run("queue_input", flags, seen=reference)
    np.testing.assert_allclose(got, expected, rtol=1e-3)
    assert seen == reference and len(seen) == 400


def test_queue_input_shuffled(on_rill, tmp_path):
    """The order depends on how fast the threads are; every record must come as often as there are epochs."""
    seen = []
    losses = run("queue_input", ["--folder", str(tmp_path), "--epochs", "3"] + on_rill, seen=seen)
    assert sorted(seen) == sorted(list(range(200)) * 3) and seen[:200] != sorted(seen[:200])
    assert np.mean(losses[-5:]) < np.mean(losses[:5])


def test_data_input_and_its_continuation(on_rill, tmp_path):
    """The second run restores variables and iterator, so it goes on with the next record."""
    folders = {flags: tmp_path / name for name, flags in (("rill", tuple(on_rill)), ("tensorflow", ()))}
    losses, seen = {}, {}
    for flags, folder in folders.items():
        folder.mkdir()
        seen[flags] = []
        losses[flags] = [loss for _ in range(2)
                         for loss in run("data_input", ["--folder", str(folder), "--steps", "7", *flags], seen=seen[flags])]
    np.testing.assert_allclose(losses[tuple(on_rill)], losses[()], rtol=1e-3)
    assert seen[tuple(on_rill)] == seen[()] and sorted(seen[()][:200]) == list(range(200))
