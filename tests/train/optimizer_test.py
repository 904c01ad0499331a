"""Every method of optimization in C gives the losses of tf.train's optimizer, dense and by rows, whole and in parts."""
import os
import subprocess

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from cluster_process import ROOT

MODE = os.environ.get("MODE", "release")
STEPS = 8


class AdaMax(tf.train.Optimizer):
    """tf.train has none: TensorFlow's op for dense gradients; by rows the same rule, written with its gather and scatter ops."""

    def __init__(self, rate, beta1=0.9, beta2=0.999, epsilon=1e-8):
        super().__init__(False, "AdaMax")
        self.rate, self.beta1, self.beta2, self.epsilon = rate, beta1, beta2, epsilon

    def _create_slots(self, variables):
        self.power = self._create_non_slot_variable(self.beta1, "beta1_power", variables[0])
        for v in variables:
            self._zeros_slot(v, "m", "AdaMax")
            self._zeros_slot(v, "v", "AdaMax_1")

    def _resource_apply_dense(self, grad, var):
        return tf.raw_ops.ResourceApplyAdaMax(var=var.handle, m=self.get_slot(var, "m").handle, v=self.get_slot(var, "v").handle, beta1_power=self.power, lr=self.rate,
                                              beta1=self.beta1, beta2=self.beta2, epsilon=self.epsilon, grad=grad)

    def _resource_apply_sparse(self, grad, var, indices):
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        new_m = self.beta1 * tf.gather(m, indices) + (1 - self.beta1) * grad
        new_v = tf.maximum(self.beta2 * tf.gather(v, indices), tf.abs(grad))
        with tf.control_dependencies([new_m, new_v]):
            step = self.rate / (1 - self.power) * new_m / (new_v + self.epsilon)
            return tf.group(m.scatter_update(tf.IndexedSlices(new_m, indices)), v.scatter_update(tf.IndexedSlices(new_v, indices)),
                            var.scatter_sub(tf.IndexedSlices(step, indices)))

    def _finish(self, update_ops, name_scope):
        with tf.control_dependencies(update_ops):
            return tf.group(*update_ops, self.power.assign(self.power * self.beta1))


METHODS = {
    "sgd": lambda: tf.train.GradientDescentOptimizer(0.1),
    "momentum": lambda: tf.train.MomentumOptimizer(0.1, 0.9),
    "nesterov": lambda: tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    "adagrad": lambda: tf.train.AdagradOptimizer(0.1),
    "adadelta": lambda: tf.train.AdadeltaOptimizer(1.0),
    "adam": lambda: tf.train.AdamOptimizer(0.1),
    "adamax": lambda: AdaMax(0.1),
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
