#!/usr/bin/env python3
"""Handwritten digits on a parameter-server cluster: a plain TensorFlow 1-style program; the cluster may be Rill, TensorFlow or both.

Between-graph replication: every worker runs this script with its own --task_index. Variables go to the ps tasks, the arithmetic to the
worker; each worker draws its own batches and the updates meet on the ps, asynchronously.

    digits.py --ps_hosts localhost:2222 --worker_hosts localhost:2223,localhost:2224 --task_index 0 &
    digits.py --ps_hosts localhost:2222 --worker_hosts localhost:2223,localhost:2224 --task_index 1

The tasks run elsewhere, for example as `rill serve` with the same --ps_hosts and --worker_hosts.
"""
import argparse
import gzip
import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")

import numpy as np
import tensorflow.compat.v1 as tf

DATA = pathlib.Path(__file__).resolve().parents[2] / "data" / "digits.csv.gz"


def load_digits(path):
    """1,797 images of 8x8 pixels in 0..16, shuffled once: 1,297 to train, 200 to validate, 300 held out."""
    with gzip.open(path, "rt") as f:
        table = np.loadtxt(f, delimiter=",", dtype=np.float32)
    table = table[np.random.RandomState(0).permutation(len(table))]
    images, labels = table[:, :64] / 16.0, table[:, 64].astype(np.int32)
    return (images[:1297], labels[:1297]), (images[1297:1497], labels[1297:1497]), (images[1497:], labels[1497:])


def build_model(images, labels, rate):
    """Two layers of 5x5 and 3x3 convolution, one hidden layer, dropout; Adam."""
    keep = tf.placeholder_with_default(1.0, [], name="keep")

    def weights(name, shape):
        return tf.get_variable(name, shape, initializer=tf.glorot_uniform_initializer())

    def bias(name, size):
        return tf.get_variable(name, [size], initializer=tf.zeros_initializer())

    x = tf.reshape(images, [-1, 8, 8, 1])
    x = tf.nn.relu(tf.nn.conv2d(x, weights("conv1", [5, 5, 1, 16]), 1, "SAME") + bias("bias1", 16))
    x = tf.nn.max_pool2d(x, 2, 2, "SAME")
    x = tf.nn.relu(tf.nn.conv2d(x, weights("conv2", [3, 3, 16, 32]), 1, "SAME") + bias("bias2", 32))
    x = tf.reshape(x, [-1, 4 * 4 * 32])
    x = tf.nn.relu(tf.matmul(x, weights("dense", [4 * 4 * 32, 64])) + bias("bias3", 64))
    x = tf.nn.dropout(x, rate=1.0 - keep)
    logits = tf.matmul(x, weights("out", [64, 10])) + bias("bias4", 10)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1, output_type=tf.int32), labels), tf.float32))
    step = tf.train.get_or_create_global_step()
    train = tf.train.AdamOptimizer(rate).minimize(loss, global_step=step)
    return keep, loss, accuracy, step, train


def show(bar, step, steps, loss, accuracy):
    text = f"step {step:5d}/{steps}  loss {loss:.4f}  validation accuracy {100 * accuracy:5.1f} %"
    if not bar:
        print(text, flush=True)
        return
    done = min(30, 30 * step // steps)
    print(f"\r[{'#' * done}{'.' * (30 - done)}] {text}", end="\n" if step >= steps else "", flush=True)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ps_hosts", required=True, help="host:port,... of the ps tasks")
    parser.add_argument("--worker_hosts", required=True, help="host:port,... of the worker tasks")
    parser.add_argument("--task_index", type=int, default=0, help="the worker this script drives; 0 is the chief")
    parser.add_argument("--steps", type=int, default=1000, help="global steps, of all workers together")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rate", type=float, default=0.002, help="learning rate")
    parser.add_argument("--data", default=DATA)
    parser.add_argument("--bar", action="store_true", default=sys.stdout.isatty(), help="draw a bar even where it is no terminal")
    return parser.parse_args()


def main():
    args = parse_arguments()
    workers = args.worker_hosts.split(",")
    is_chief = args.task_index == 0
    training, validation, held_out = load_digits(args.data)
    tf.disable_eager_execution()
    tf.logging.set_verbosity(tf.logging.ERROR)
    tf.set_random_seed(1)

    cluster = tf.train.ClusterSpec({"ps": args.ps_hosts.split(","), "worker": workers})
    device = tf.train.replica_device_setter(cluster=cluster, worker_device=f"/job:worker/task:{args.task_index}")
    with tf.device(device):
        images = tf.placeholder(tf.float32, [None, 64])
        labels = tf.placeholder(tf.int32, [None])
        keep, loss, accuracy, step, train = build_model(images, labels, args.rate)

    def feed(data):
        return {images: data[0], labels: data[1]}

    random = np.random.RandomState(args.task_index)
    supervisor = tf.train.Supervisor(is_chief=is_chief, recovery_wait_secs=1, global_step=step, summary_op=None)
    with supervisor.managed_session("grpc://" + workers[args.task_index]) as session:
        at = shown = 0
        while at < args.steps and not supervisor.should_stop():
            picked = random.randint(len(training[0]), size=args.batch)
            batch = (training[0][picked], training[1][picked])
            _, at, value = session.run([train, step, loss], {**feed(batch), keep: 0.7})
            if is_chief and (at // 100 > shown or at >= args.steps):
                shown = at // 100
                show(args.bar, min(at, args.steps), args.steps, value, session.run(accuracy, feed(validation)))
        if is_chief:
            final = session.run(accuracy, feed(held_out))
            print(f"held-out accuracy {100 * final:.1f} % on {len(held_out[0])} images, {at} steps on {len(workers)} workers", flush=True)


if __name__ == "__main__":
    main()
