#!/usr/bin/env python3
"""A residual network on small colour images, as one trains CIFAR-10: batch normalisation with moving averages, weight decay, momentum and a
learning rate in steps. The images are made up (a colour pattern for each class, plus noise), so nothing is downloaded.

    resnet.py --ps_hosts localhost:2222 --worker_hosts localhost:2223 --steps 200
"""
import numpy as np
import tensorflow.compat.v1 as tf

import cluster_flags

CLASSES = 10


def batches(args):
    """Endless (images, labels)."""
    random = np.random.RandomState(args.seed)
    patterns = random.randn(CLASSES, args.side, args.side, 3)
    while True:
        labels = random.randint(CLASSES, size=args.batch)
        yield (patterns[labels] + random.randn(args.batch, args.side, args.side, 3)).astype(np.float32), labels.astype(np.int32)


def conv(x, name, size, channels, stride=1):
    shape = [size, size, x.shape[-1].value, channels]
    w = tf.get_variable(name, shape, initializer=tf.variance_scaling_initializer(2.0, mode="fan_out"),
                        regularizer=lambda v: 1e-4 * tf.nn.l2_loss(v))
    return tf.nn.conv2d(x, w, [1, stride, stride, 1], "SAME")


def batch_norm(x, name, training, decay=0.9):
    """Normalises by the batch while training, by the moving averages otherwise; the averages move by UPDATE_OPS."""
    with tf.variable_scope(name):
        size = [x.shape[-1].value]
        gamma = tf.get_variable("gamma", size, initializer=tf.ones_initializer())
        beta = tf.get_variable("beta", size, initializer=tf.zeros_initializer())
        mean = tf.get_variable("mean", size, initializer=tf.zeros_initializer(), trainable=False)
        variance = tf.get_variable("variance", size, initializer=tf.ones_initializer(), trainable=False)

        def by_batch():
            return tf.nn.fused_batch_norm(x, gamma, beta, epsilon=1e-5, is_training=True)

        def by_averages():
            y, _, _ = tf.nn.fused_batch_norm(x, gamma, beta, mean, variance, epsilon=1e-5, is_training=False)
            return y, tf.identity(mean), tf.identity(variance)

        y, batch_mean, batch_variance = tf.cond(training, by_batch, by_averages)
        for average, value in ((mean, batch_mean), (variance, batch_variance)):
            tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, average.assign_sub((1 - decay) * (average - value)))
    return y


def block(x, name, channels, stride, training):
    """Two convolutions and the way around them, pre-activated."""
    with tf.variable_scope(name):
        h = tf.nn.relu(batch_norm(x, "norm1", training))
        around = x if channels == x.shape[-1].value else conv(h, "around", 1, channels, stride)
        h = conv(h, "conv1", 3, channels, stride)
        h = tf.nn.relu(batch_norm(h, "norm2", training))
        return around + conv(h, "conv2", 3, channels)


def logits_of(images, args, training):
    x = conv(images, "first", 3, args.width)
    for stage in range(3):
        for i in range(args.blocks):
            x = block(x, "block%d_%d" % (stage, i), args.width << stage, 2 if stage and not i else 1, training)
    x = tf.reduce_mean(tf.nn.relu(batch_norm(x, "last", training)), [1, 2])
    w = tf.get_variable("w", [x.shape[-1].value, CLASSES], initializer=tf.glorot_uniform_initializer())
    return tf.nn.xw_plus_b(x, w, tf.get_variable("b", [CLASSES], initializer=tf.zeros_initializer()))


def train(args):
    with tf.Graph().as_default():
        tf.set_random_seed(args.seed)
        with cluster_flags.device(args):
            images = tf.placeholder(tf.float32, [None, args.side, args.side, 3])
            labels = tf.placeholder(tf.int32, [None])
            training = tf.placeholder_with_default(True, [])
            logits = logits_of(images, args, training)
            loss = tf.losses.sparse_softmax_cross_entropy(labels, logits) + tf.losses.get_regularization_loss()
            correct = tf.reduce_mean(tf.to_float(tf.nn.in_top_k(logits, labels, 1)))
            step = tf.train.get_or_create_global_step()
            rate = tf.train.piecewise_constant(step, [args.steps // 2, args.steps * 3 // 4], [0.1, 0.01, 0.001])
            with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
                update = tf.train.MomentumOptimizer(rate, 0.9).minimize(loss, step)
            init = tf.global_variables_initializer()
        with tf.Session(cluster_flags.target(args)) as session:
            session.run(init)
            data = batches(args)
            for _ in range(args.steps):
                x, y = next(data)
                yield "loss", session.run([loss, update], {images: x, labels: y})[0]
            x, y = next(data)
            yield "accuracy on unseen images", session.run(correct, {images: x, labels: y, training: False})


def parser():
    p = cluster_flags.parser(__doc__, steps=200, batch=32)
    p.add_argument("--side", type=int, default=32, help="of an image, in pixels")
    p.add_argument("--width", type=int, default=16, help="channels of the first stage")
    p.add_argument("--blocks", type=int, default=2, help="residual blocks in each of the three stages")
    return p


if __name__ == "__main__":
    cluster_flags.main(train, parser().parse_args())
