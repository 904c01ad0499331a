#!/usr/bin/env python3
"""What graph passes save: steps of one task with passes and without, and of TensorFlow (its optimiser on), in the same run."""
import argparse
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests"))
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")

import numpy as np
import tensorflow.compat.v1 as tf

from cluster_process import Cluster


def gelu(x):
    return 0.5 * x * (1.0 + tf.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


def variable(name, shape):
    return tf.get_variable(name, shape, initializer=tf.random_uniform_initializer(-0.1, 0.1, seed=1), use_resource=True)


def lstm_step(x, h, c, units):
    i, j, f, o = tf.split(tf.nn.bias_add(tf.matmul(tf.concat([x, h], 1), variable("lstm", [2 * units, 4 * units])), variable("lstm_bias", [4 * units])), 4, 1)
    c = c * tf.sigmoid(f + 1.0) + tf.sigmoid(i) * tf.tanh(j)
    return tf.tanh(c) * tf.sigmoid(o), c


def mlp_train():
    random = np.random.RandomState(0)
    x = tf.constant(random.rand(128, 784).astype(np.float32))
    y = tf.constant(random.randint(0, 10, 128))
    h = tf.nn.relu(tf.nn.bias_add(tf.matmul(x, variable("w1", [784, 512])), variable("b1", [512])))
    h = tf.nn.relu(tf.nn.bias_add(tf.matmul(h, variable("w2", [512, 512])), variable("b2", [512])))
    logits = tf.nn.bias_add(tf.matmul(h, variable("w3", [512, 10])), variable("b3", [10]))
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
    return tf.train.GradientDescentOptimizer(0.01).minimize(loss)


def dense(rows, inputs, units, activation):
    with tf.variable_scope("dense_%d_%d_%d" % (rows, inputs, units), reuse=tf.AUTO_REUSE):
        x, w, b = variable("x", [rows, inputs]), variable("w", [inputs, units]), variable("b", [units])
    return activation(tf.nn.bias_add(tf.matmul(x, w), b)).op


def conv(images, size, channels, filters, activation):
    with tf.variable_scope("conv_%d_%d_%d" % (size, channels, filters)):
        x, w, b = variable("x", [images, size, size, channels]), variable("w", [3, 3, channels, filters]), variable("b", [filters])
    return activation(tf.nn.bias_add(tf.nn.conv2d(x, w, 1, "SAME"), b)).op


def gelu_train(n):
    x = variable("gelu_train", [n])
    loss = tf.reduce_sum(tf.square(gelu(x)))
    return x.assign_sub(1e-6 * tf.gradients(loss, x)[0]).op


def build():
    """The graph, and what to run: name -> (op, runs in one round)."""
    large = variable("large", [4096, 1024])
    middle = variable("middle", [256, 256])
    scalar = variable("scalar", [])
    row = variable("row", [1024])
    state = variable("state", [64, 128])
    chain = scalar
    for i in range(200):
        chain = chain * 0.999 + 0.001
    shared = [tf.reduce_sum(tf.tanh(tf.square(middle) + 1.0)) for _ in range(8)]
    norm = (large - row) * row + 1.0
    h, c = state, state
    with tf.variable_scope("cell", reuse=tf.AUTO_REUSE):
        for _ in range(20):
            h, c = lstm_step(state, h, c, 128)
    return {
        "gelu of 4M floats": (gelu(large).op, 5),
        "gelu of 64k floats": (gelu(middle).op, 100),
        "gelu of 4M, training": (gelu_train(4 << 20), 3),
        "(x - row) * row + 1": (tf.nn.relu(norm).op, 5),
        "400 scalar operations": (chain.op, 100),
        "8 times the same": (tf.add_n(shared).op, 100),
        "LSTM, 20 steps": (h.op, 10),
        "dense 512x64x512, relu": (dense(512, 64, 512, tf.nn.relu), 30),
        "dense 512x64x512, gelu": (dense(512, 64, 512, gelu), 20),
        "dense 64x512x512, tanh": (dense(64, 512, 512, tf.tanh), 30),
        "dense 32x32x32, relu": (dense(32, 32, 32, tf.nn.relu), 100),
        "conv 3x3 of 16x56x56x3, relu": (conv(16, 56, 3, 32, tf.nn.relu), 10),
        "conv 3x3 of 16x28x28x32, elu": (conv(16, 28, 32, 32, tf.nn.elu), 10),
        "x > 0 ? x : row": (tf.where_v2(large * 2.0 > 1.0, tf.square(large), row).op, 5),
        "MLP, training": (mlp_train(), 10),
    }


def measure(session, op, runs):
    """The best of the runs: what others do on the machine only adds to it."""
    session.run(op)
    times = []
    for _ in range(runs):
        began = time.perf_counter()
        session.run(op)
        times.append(time.perf_counter() - began)
    return min(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="", help="part of the name of a case")
    args = parser.parse_args()
    tf.disable_eager_execution()
    cases = {name: case for name, case in build().items() if args.only in name}
    init = tf.global_variables_initializer()
    off = tf.ConfigProto(isolate_session_state=True)
    off.graph_options.rewrite_options.disable_meta_optimizer = True
    on = tf.ConfigProto(isolate_session_state=True)
    times = {}
    with Cluster({"worker": 1}) as rill, Cluster({"worker": ["tf"]}) as tensorflow:
        with tf.Session(rill.target("worker"), config=on) as a, tf.Session(rill.target("worker"), config=off) as b, \
                tf.Session(tensorflow.target("worker"), config=on) as c:
            for session in a, b, c:
                session.run(init)
            for _ in range(args.rounds):  # taking turns, so that all see the same machine
                for name, case in cases.items():
                    times.setdefault(name, []).append([measure(s, *case) for s in (a, b, c)])
    print("%-30s %12s %12s %12s %10s %10s" % ("", "Rill", "passes off", "TensorFlow", "passes", "TensorFlow"))
    for name, rows in times.items():
        with_passes, without, theirs = (min(column) for column in zip(*rows))
        print("%-30s %9.0f us %9.0f us %9.0f us %9.2fx %9.2fx" % (name, with_passes * 1e6, without * 1e6, theirs * 1e6, without / with_passes, theirs / with_passes))


if __name__ == "__main__":
    main()
