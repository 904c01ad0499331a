#!/usr/bin/env python3
"""Time of small and large steps on 1 ps + 1 worker, Rill beside TensorFlow in the same run: empty steps, pulls, pushes, a softmax step."""
import argparse
import os
import statistics
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests"))
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")

import numpy as np
import tensorflow.compat.v1 as tf

from cluster_process import Cluster

LARGE = 25 * 1000 * 1000  # floats: 100 MB


def build():
    """The graph, and what to run: name -> (op, feeds, runs in one round)."""
    with tf.device("/job:ps/task:0"):
        on_ps = tf.no_op()
        small = tf.get_variable("small", [1], initializer=tf.zeros_initializer(), use_resource=True)
        large = tf.get_variable("large", [LARGE], initializer=tf.zeros_initializer(), use_resource=True)
        weights = tf.get_variable("weights", [784, 10], initializer=tf.zeros_initializer(), use_resource=True)
    with tf.device("/job:worker/task:0"):
        on_worker = tf.no_op()
        pull_small, pull_large = tf.identity(small).op, tf.identity(large).op
        one = tf.ones([1]) + 1.0
        x, y = tf.placeholder(tf.float32, [None, 784]), tf.placeholder(tf.int64, [None])
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=tf.matmul(x, weights)))
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    with tf.device("/job:ps/task:0"):
        push_small = small.assign_add(one).op
    random = np.random.RandomState(0)
    feeds = {x: random.rand(100, 784).astype(np.float32), y: random.randint(0, 10, 100)}
    return {
        "empty step, worker": (on_worker, None, 200),
        "empty step, ps": (on_ps, None, 200),
        "pull 4 B": (pull_small, None, 200),
        "push 4 B": (push_small, None, 200),
        "softmax b100": (train, feeds, 100),
        "pull 100 MB": (pull_large, None, 5),
    }


def measure(session, op, feeds, runs):
    session.run(op, feeds)
    began = time.perf_counter()
    for _ in range(runs):
        session.run(op, feeds)
    return (time.perf_counter() - began) / runs


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    tf.disable_eager_execution()
    cases = build()
    init = tf.global_variables_initializer()
    times = {}
    with Cluster({"ps": 1, "worker": 1}) as rill, Cluster({"ps": ["tf"], "worker": ["tf"]}) as tensorflow:
        with tf.Session(rill.target()) as a, tf.Session(tensorflow.target()) as b:
            a.run(init)
            b.run(init)
            for _ in range(args.rounds):  # taking turns, so that both see the same machine
                for name, case in cases.items():
                    times.setdefault(name, []).append((measure(a, *case), measure(b, *case)))
    print("%-20s %12s %12s %8s" % ("", "Rill", "TensorFlow", "ratio"))
    for name, pairs in times.items():
        ours, theirs = (statistics.median(column) for column in zip(*pairs))
        print("%-20s %9.0f us %9.0f us %7.2fx" % (name, ours * 1e6, theirs * 1e6, theirs / ours))


if __name__ == "__main__":
    main()
