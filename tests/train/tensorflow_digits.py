"""The program examples/c/digits.c on TensorFlow, in one process: the same images, split, network, batches and optimizer."""
import ctypes
import gzip
import os

import numpy as np
import tensorflow.compat.v1 as tf

from cluster_process import ROOT

TRAIN, VALID, TEST = 1297, 200, 300


class Random:
    """rand_r of the C library, by which the program mixes its images."""

    def __init__(self, seed):
        self._seed, self._next = ctypes.c_uint(seed), ctypes.CDLL(None).rand_r

    def below(self, n):
        return self._next(ctypes.byref(self._seed)) % n


def load():
    with gzip.open(os.path.join(ROOT, "data", "digits.csv.gz"), "rt") as f:
        table = np.loadtxt(f, delimiter=",", dtype=np.float32)
    random, order = Random(7), list(range(len(table)))
    for i in range(len(table) - 1, 0, -1):
        j = random.below(i + 1)
        order[i], order[j] = order[j], order[i]
    return table[order, :64] / 16, table[order, 64].astype(np.int32)


def network(images, training):
    glorot = tf.glorot_uniform_initializer
    with tf.variable_scope("network", reuse=tf.AUTO_REUSE):
        x = tf.reshape(images, [-1, 8, 8, 1])
        x = tf.nn.relu(tf.nn.conv2d(x, tf.get_variable("conv1", [5, 5, 1, 16], initializer=glorot()), 1, "SAME") + tf.get_variable("b1", [16], initializer=tf.zeros_initializer()))
        x = tf.nn.max_pool2d(x, 2, 2, "VALID")
        x = tf.nn.relu(tf.nn.conv2d(x, tf.get_variable("conv2", [3, 3, 16, 32], initializer=glorot()), 1, "SAME") + tf.get_variable("b2", [32], initializer=tf.zeros_initializer()))
        x = tf.reshape(x, [-1, 4 * 4 * 32])
        x = tf.nn.relu(tf.matmul(x, tf.get_variable("dense", [512, 64], initializer=glorot())) + tf.get_variable("b3", [64], initializer=tf.zeros_initializer()))
        if training:
            x = tf.nn.dropout(x, rate=0.4)
        return tf.matmul(x, tf.get_variable("logits", [64, 10], initializer=glorot())) + tf.get_variable("b4", [10], initializer=tf.zeros_initializer())


def accuracy(workers, steps, seed, batch=64, rate=0.002):
    """On the held-out images. Averaging the gradients of equal batches is the gradient of all of them together."""
    all_images, all_labels = load()
    randoms = [Random(1 + i) for i in range(workers)]
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(seed)
        images, labels = tf.placeholder(tf.float32, [None, 64]), tf.placeholder(tf.int32, [None])
        step = tf.train.get_or_create_global_step()
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=network(images, True)))
        train = tf.train.AdamOptimizer(tf.train.exponential_decay(rate, step, 200, 0.7)).minimize(loss, global_step=step)
        good = tf.reduce_mean(tf.cast(tf.nn.in_top_k(network(images, False), labels, 1), tf.float32))
        session.run(tf.global_variables_initializer())
        for _ in range(steps):
            rows = [random.below(TRAIN) for random in randoms for _ in range(batch)]
            session.run(train, {images: all_images[rows], labels: all_labels[rows]})
        return float(session.run(good, {images: all_images[TRAIN + VALID:], labels: all_labels[TRAIN + VALID:]}))
