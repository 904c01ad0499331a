"""Every method of optimization in C gives the losses of tf.train's optimizer, dense and by rows, whole and in parts."""
import os
import subprocess

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from cluster_process import ROOT

MODE = os.environ.get("MODE", "release")
STEPS = 8
METHODS = {
    "sgd": lambda: tf.train.GradientDescentOptimizer(0.1),
    "momentum": lambda: tf.train.MomentumOptimizer(0.1, 0.9),
    "nesterov": lambda: tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    "adagrad": lambda: tf.train.AdagradOptimizer(0.1),
    "adadelta": lambda: tf.train.AdadeltaOptimizer(1.0),
    "adam": lambda: tf.train.AdamOptimizer(0.1),
    "rmsprop": lambda: tf.train.RMSPropOptimizer(0.1, momentum=0.5),
    "centered_rmsprop": lambda: tf.train.RMSPropOptimizer(0.1, centered=True),
    "ftrl": lambda: tf.train.FtrlOptimizer(0.1, l1_regularization_strength=0.01, l2_regularization_strength=0.02),
    "proximal_sgd": lambda: tf.train.ProximalGradientDescentOptimizer(0.1, 0.01, 0.02),
    "proximal_adagrad": lambda: tf.train.ProximalAdagradOptimizer(0.1, l1_regularization_strength=0.01, l2_regularization_strength=0.02),
    "adagrad_da": lambda: tf.train.AdagradDAOptimizer(0.1, tf.train.get_or_create_global_step(), l1_regularization_strength=0.01, l2_regularization_strength=0.02),
    "clipped_norm": lambda: tf.train.GradientDescentOptimizer(0.1),
    "clipped_value": lambda: tf.train.GradientDescentOptimizer(0.1),
}


@pytest.fixture(scope="module")
def rill_losses():
    binary = os.path.join(ROOT, "build", MODE, "tests", "train", "optimizer_values")
    subprocess.run(["make", "-s", "-j2", "MODE=" + MODE, os.path.relpath(binary, ROOT)], cwd=ROOT, check=True)
    done = subprocess.run([binary], capture_output=True, text=True, timeout=200)
    assert done.returncode == 0 and "Sanitizer" not in done.stderr, done.stderr
    return {tuple(line.split()[:2]): [float(x) for x in line.split()[2:]] for line in done.stdout.splitlines()}


def tensorflow_losses(method, sparse):
    with tf.Graph().as_default(), tf.Session() as session:
        start = (0.1 * np.arange(18) - 0.7).astype(np.float32).reshape(6, 3)
        goal = (0.5 - 0.03 * np.arange(12)).astype(np.float32).reshape(4, 3)
        v = tf.get_variable("v", initializer=start, use_resource=True)
        rows = tf.gather(v, [1, 4, 1, 3]) if sparse else tf.gather(v + 0.0, [1, 4, 1, 3])
        loss = tf.reduce_mean(tf.square(rows - goal))
        step = tf.train.get_or_create_global_step()
        optimizer = METHODS[method]()
        pairs = optimizer.compute_gradients(loss, [v])
        if method == "clipped_norm":
            clipped, _ = tf.clip_by_global_norm([g for g, _ in pairs], 0.5)
            pairs = [(clipped[0], v)]
        if method == "clipped_value":
            pairs = [(tf.IndexedSlices(tf.clip_by_value(g.values, -0.05, 0.05), g.indices, g.dense_shape) if sparse else tf.clip_by_value(tf.convert_to_tensor(g), -0.05, 0.05), v)
                     for g, v in pairs]
        train = optimizer.apply_gradients(pairs, global_step=step)
        session.run(tf.global_variables_initializer())
        losses = []
        for _ in range(STEPS):
            losses.append(session.run(loss))
            session.run(train)
        return losses


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("how", ["dense", "sparse", "dense_parts"])
def test_losses_are_tensorflows(rill_losses, method, how):
    expected = tensorflow_losses(method, how == "sparse")
    np.testing.assert_allclose(rill_losses[method, how], expected, rtol=2e-5, atol=1e-6)
    assert len(set(expected)) == STEPS
