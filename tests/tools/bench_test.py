"""rill bench FILE CASE: the load generator at Rill's and TensorFlow's servers and in its own process, its answers, its mistakes."""
import json
import os
import subprocess
import sys

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from cluster_process import RILL, ROOT, Cluster

sys.path.insert(0, os.path.join(ROOT, "bench"))
import contest
import graphs

NUMBERS = {"steps", "seconds", "steps_per_s", "median_us", "p90_us", "least_us", "client_cpu_us", "server_cpu_us"}
START = {"create_ms", "init_ms", "extend_ms", "first_ms"}


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    """A counter, a sum of something fed, a rotation over three constants, a step that fails; the sum of 1 and 2 comes by an extension."""
    folder = tmp_path_factory.mktemp("cases")
    with tf.Graph().as_default() as graph:
        count = tf.get_variable("count", [], tf.int32, tf.zeros_initializer(), use_resource=True)
        add = count.assign_add(1).op
        x = tf.placeholder(tf.float32, [2, 3], "x")
        total = tf.reduce_sum(x, name="total")
        constants = [tf.constant(i, name="c%d" % i) for i in range(3)]
        bad = tf.debugging.Assert(tf.equal(tf.reduce_sum(x), 1.0), ["not one"], name="bad")
        init = tf.global_variables_initializer()
        first = graph.as_graph_def()
        extended = tf.add(constants[1], constants[2], name="extended")
    later = tf.GraphDef(versions=first.versions)
    later.node.extend(graph.as_graph_def().node[len(first.node):])
    (folder / "g.pb").write_bytes(first.SerializeToString())
    (folder / "later.pb").write_bytes(later.SerializeToString())
    np.save(folder / "x.npy", np.ones([2, 3], np.float32))
    fed = {"feeds": {"x:0": "x.npy"}}
    rows = {"count": {"targets": [add.name], "init": [[init.name]]},
            "fed": dict(fed, fetches=[total.name]),
            "rotate": {"rotate": [c.name for c in constants]},
            "extended": {"fetches": [extended.name], "extend": "later.pb"},
            "bad": dict(fed, targets=[bad.name]),
            "bad_loop": dict(fed, fetches=["c0:0"], loops=[["no_such_node"]]),
            "no_file": {"fetches": ["c0:0"], "graph": "missing.pb"},
            "no_list": {"fetches": "c0:0"}}
    path = folder / "cases.json"
    path.write_text(json.dumps({"graph": "g.pb", "cases": rows}))
    return path


def test_in_this_process(rill, cases):
    for name in "count", "fed", "rotate", "extended":
        numbers = rill("bench", cases, name, "--seconds", 5, "--steps", 30, "--json").json
        assert set(numbers) == NUMBERS | START and numbers["steps"] == 30 and numbers["server_cpu_us"] == []
        assert 0 < numbers["least_us"] <= numbers["median_us"] <= numbers["p90_us"]
        assert numbers["steps_per_s"] == pytest.approx(numbers["steps"] / numbers["seconds"])
    text = rill("bench", cases, "count", "--seconds", 1, "--steps", 3).out
    assert "(3 in " in text and "us median" in text and len(text.splitlines()) == 5


@pytest.mark.parametrize("kind", ["rill", "tf"])
def test_at_a_server(rill, cases, kind):
    with Cluster({"worker": [kind]}) as cluster:
        words = "--target", cluster.target(), "--steps", 20, "--pid", cluster.task("worker").pid, "--json"
        for name in "count", "fed", "rotate", "extended":
            numbers = rill("bench", cases, name, *words).json
            assert numbers["steps"] == 20 and numbers["server_cpu_us"][0] > 0
        with tf.Session(cluster.target(), graph=tf.Graph()) as session:  # the variable outlives the session of the generator
            with session.graph.as_default():
                handle = tf.raw_ops.VarHandleOp(dtype=tf.int32, shape=[], shared_name="count")
                assert session.run(tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.int32)) == 20 + 10 + 1


@pytest.mark.parametrize("kind", ["rill", "tf"])
def test_a_window_for_every_line(cases, kind):
    with Cluster({"worker": [kind]}) as cluster, contest.generator(cases, "fed", cluster.target(), [cluster.task("worker").pid]) as c:
        assert set(c.wait_ready().start) == START
        for steps in 1, 7:
            numbers = c.run(30, steps)
            assert set(numbers) == NUMBERS and numbers["steps"] == steps and len(numbers["server_cpu_us"]) == 1
        assert c.run(0.01)["steps"] >= 1


@pytest.mark.parametrize("kind", ["rill", "tf"])
def test_two_workers_in_step(tmp_path, kind):
    with Cluster({"ps": [kind], "worker": [kind, kind]}) as cluster:
        members = []
        for w in 0, 1:
            path = graphs.worker_model(str(tmp_path), "tiny", w, 2, sync=True)
            members.append(contest.generator(path, "train", cluster.target("worker", w), warm=0).wait_ready())
        with contest.Team(members) as team:
            for _ in range(2):
                assert team.run(0.2)["steps"] >= 2


def test_mistakes_are_told(rill, cases):
    assert "count fed" in rill("bench", cases, "nothing", code=1).err
    assert "name of a case" in rill("bench", cases, code=2).err
    assert "--pid" in rill("bench", cases, "count", "--pid", "x", code=2).err
    assert "missing.pb" in rill("bench", cases, "no_file", code=1).err
    assert "list of names" in rill("bench", cases, "no_list", code=1).err
    assert "not one" in rill("bench", cases, "bad", code=1).err
    assert "no_such_node" in rill("bench", cases, "bad_loop", "--seconds", 30, code=1).err
    assert "is not JSON" in rill("bench", cases.parent / "g.pb", "count", code=1).err
    done = subprocess.run([RILL, "bench", cases, "count", "--lines"], input="soon\n", capture_output=True, text=True)
    assert done.returncode == 1 and "'soon' is not SECONDS" in done.stderr
