"""How many instructions a step takes, in one process and in the tasks of a cluster, counted by callgrind: bounds that may only go down.

A count is the difference of two runs of the same program that differ only in their steps, so neither the start nor the time of day is in it. One thread; valgrind
knows no AVX-512, so every x86-64 machine with AVX2 runs the same loops."""
import base64
import json
import os
import re
import shutil
import subprocess

import pytest
import tensorflow.compat.v1 as tf

from cluster_process import RILL, Cluster

FEW = 10  # steps
MANY = {"an empty step": 2000, "a chain of 1,000 additions": 40, "a training step of a small softmax": 400}  # threads that start in another order cost up to 100,000
SLACK = 1.25        # compilers and libraries differ
MEASURED = {"an empty step": 7300, "a chain of 1,000 additions": 936000, "a training step of a small softmax": 61700}


def empty(graph):
    tf.no_op(name="step")


def chain(graph):
    x = tf.placeholder_with_default(tf.constant(1.0), [])
    one = tf.constant(1.0)
    for _ in range(1000):
        x = x + one
    with tf.control_dependencies([x]):
        tf.no_op(name="step")


def softmax(graph):
    pixels = tf.constant([[(i * 7 + j) % 11 / 11 for j in range(32)] for i in range(16)], tf.float32)
    weights = tf.get_variable("weights", [32, 4], initializer=tf.zeros_initializer(), use_resource=True)
    bias = tf.get_variable("bias", [4], initializer=tf.zeros_initializer(), use_resource=True)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.constant([i % 4 for i in range(16)]), logits=pixels @ weights + bias))
    tf.train.GradientDescentOptimizer(0.1).minimize(loss, name="step")
    tf.group(tf.global_variables_initializer(), name="init")


ROWS = dict(zip(MEASURED, (empty, chain, softmax)))


def write(folder, build):
    graph = tf.Graph()
    with graph.as_default():
        build(graph)
    config = tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    config.graph_options.optimizer_options.opt_level = -1
    (folder / "graph.pb").write_bytes(graph.as_graph_def().SerializeToString())
    names = [n.name for n in graph.as_graph_def().node]
    case = {"init": [["init"]] if "init" in names else [], "fetches": [], "targets": ["step"]}
    (folder / "graph.json").write_text(json.dumps({"graph": "graph.pb", "config": base64.b64encode(config.SerializeToString()).decode(), "cases": {"run": case}}))
    return str(folder / "graph.json")


def instructions(path, steps):
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", RILL, "bench", path, "run", "--warm", "5", "--seconds", "1000", "--steps", str(steps), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=250)
    assert done.returncode == 0, done.stdout + done.stderr
    return int(re.search(r"Collected : (\d+)", done.stderr).group(1))


@pytest.mark.skipif(not shutil.which("valgrind"), reason="valgrind is not installed: scripts/install_deps.sh test")
@pytest.mark.skipif(os.environ.get("MODE", "release") != "release", reason="counts are those of the release build")
@pytest.mark.parametrize("name", ROWS)
@pytest.mark.time_limit(600)
def test_instructions_of_a_step(name, tmp_path, capsys):
    path = write(tmp_path, ROWS[name])
    each = (instructions(path, MANY[name]) - instructions(path, FEW)) / (MANY[name] - FEW)
    most = SLACK * MEASURED[name]
    with capsys.disabled():
        print("\n%s: %.0f instructions, at most %.0f" % (name, each, most))
    assert each <= most, "%s takes %.0f instructions, more than the %.0f it took and a quarter: what was added to every step? (callgrind_annotate tells)" % (name, each, MEASURED[name])


# ---- In the tasks of a cluster ----

CLUSTER_STEPS = 100, 600
CLUSTER_MEASURED = {"ps": 91500, "worker": 135300}


def cluster_softmax(graph):
    with tf.device("/job:ps/task:0"):
        weights = tf.get_variable("weights", [8, 10], initializer=tf.zeros_initializer(), use_resource=True)
        bias = tf.get_variable("bias", [10], initializer=tf.zeros_initializer(), use_resource=True)
    with tf.device("/job:worker/task:0"):
        pixels = tf.constant([[(i * 7 + j) % 11 / 11 for j in range(8)] for i in range(4)], tf.float32)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.constant([0, 1, 2, 3]), logits=pixels @ weights + bias))
        tf.train.GradientDescentOptimizer(0.1).minimize(loss, name="step")
    with tf.device("/job:ps/task:0"):
        tf.group(tf.global_variables_initializer(), name="init")


def task_instructions(path, job, steps):
    """Of a task from its start to its end, in which so many steps were run."""
    cluster = Cluster({"ps": 1, "worker": 1}, start=False)
    task = cluster.task(job)
    task.command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"] + task.command
    with cluster.start():
        command = [RILL, "bench", path, "run", "--target", cluster.target(), "--warm", "20", "--seconds", "1000", "--steps", str(steps), "--json"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=250)
        assert done.returncode == 0, done.stdout + done.stderr
        assert task.stop() == 0, task.log
    return int(re.search(r"Collected : (\d+)", task.log).group(1))


@pytest.mark.skipif(not shutil.which("valgrind"), reason="valgrind is not installed: scripts/install_deps.sh test")
@pytest.mark.skipif(os.environ.get("MODE", "release") != "release", reason="counts are those of the release build")
@pytest.mark.parametrize("job", CLUSTER_MEASURED)
@pytest.mark.time_limit(600)
def test_instructions_of_a_step_on_a_cluster(job, tmp_path, capsys):
    path = write(tmp_path, cluster_softmax)
    few, many = CLUSTER_STEPS
    each = (task_instructions(path, job, many) - task_instructions(path, job, few)) / (many - few)
    with capsys.disabled():
        print("\n%s: %.0f instructions a step, at most %.0f" % (job, each, SLACK * CLUSTER_MEASURED[job]))
    assert each <= SLACK * CLUSTER_MEASURED[job], "a step takes the %s %.0f instructions, more than the %.0f it took and a quarter" % (job, each, CLUSTER_MEASURED[job])
