"""A contender: the models of models.py in JAX, a step compiled whole with its parameters given away. jax_peer.py MODEL INPUT.npy..."""
import sys
import time

import jax
import jax.numpy as jnp
import lines
import numpy as np
from jax import lax

RATE = 0.01


def dense(p, x):
    return x @ p["w"] + p["b"]


def conv(w, x, stride=1):
    return lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def normalized(p, x):
    mean, variance = jnp.mean(x, (0, 1, 2)), jnp.var(x, (0, 1, 2))
    return (x - mean) * (lax.rsqrt(variance + 1e-3) * p["scale"]) + p["offset"]


def pool(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "SAME")


class Parameters:
    """Makes arrays of random numbers."""

    def __init__(self):
        self.random = np.random.RandomState(0)

    def array(self, *shape):
        return self.random.uniform(-0.05, 0.05, shape).astype(np.float32)

    def dense(self, inputs, outputs):
        return {"w": self.array(inputs, outputs), "b": np.zeros(outputs, np.float32)}

    def norm(self, channels):
        return {"scale": np.ones(channels, np.float32), "offset": np.zeros(channels, np.float32)}


BLOCKS = [(16, 16, 1)] * 3 + [(16, 32, 2), (32, 32, 1), (32, 32, 1), (32, 64, 2), (64, 64, 1), (64, 64, 1)]


def parameters(name):
    p = Parameters()
    if name == "softmax":
        return {"out": p.dense(784, 10)}
    if name == "mlp":
        return {"first": p.dense(784, 512), "second": p.dense(512, 512), "out": p.dense(512, 10)}
    if name == "lenet":
        return {"first": {"w": p.array(5, 5, 1, 32), "b": np.zeros(32, np.float32)}, "second": {"w": p.array(5, 5, 32, 64), "b": np.zeros(64, np.float32)},
                "hidden": p.dense(7 * 7 * 64, 1024), "out": p.dense(1024, 10)}
    if name == "lstm":
        return {"cell": p.dense(512, 1024), "out": p.dense(256, 10)}
    if name == "embedding":
        return {"table": p.array(1_000_000, 64)}
    tree = {"first": p.array(3, 3, 3, 16), "norm": p.norm(16), "out": p.dense(64, 10)}
    for i, (inputs, outputs, _) in enumerate(BLOCKS):
        block = {"conv1": p.array(3, 3, inputs, outputs), "norm1": p.norm(outputs), "conv2": p.array(3, 3, outputs, outputs), "norm2": p.norm(outputs)}
        if inputs != outputs:
            block.update(conv3=p.array(1, 1, inputs, outputs), norm3=p.norm(outputs))
        tree["block%d" % i] = block
    return tree


def resnet20(p, x):
    x = jax.nn.relu(normalized(p["norm"], conv(p["first"], x)))
    for i, (inputs, outputs, stride) in enumerate(BLOCKS):
        b = p["block%d" % i]
        y = jax.nn.relu(normalized(b["norm1"], conv(b["conv1"], x, stride)))
        y = normalized(b["norm2"], conv(b["conv2"], y))
        x = jax.nn.relu(y + (x if inputs == outputs else normalized(b["norm3"], conv(b["conv3"], x, stride))))
    return dense(p["out"], jnp.mean(x, (1, 2)))


def lenet(p, x):
    for name in "first", "second":
        x = pool(jax.nn.relu(conv(p[name]["w"], x) + p[name]["b"]))
    return dense(p["out"], jax.nn.relu(dense(p["hidden"], x.reshape(x.shape[0], -1))))


def lstm(p, x):
    def cell(state, step):
        h, c = state
        i, j, f, o = jnp.split(dense(p["cell"], jnp.concatenate([step, h], 1)), 4, 1)
        c = c * jax.nn.sigmoid(f + 1.0) + jax.nn.sigmoid(i) * jnp.tanh(j)
        return (jnp.tanh(c) * jax.nn.sigmoid(o), c), None

    zeros = jnp.zeros((x.shape[0], 256))
    (h, _), _ = lax.scan(cell, (zeros, zeros), jnp.swapaxes(x, 0, 1))
    return dense(p["out"], h)


LOGITS = {
    "softmax": lambda p, x: dense(p["out"], x),
    "mlp": lambda p, x: dense(p["out"], jax.nn.relu(dense(p["second"], jax.nn.relu(dense(p["first"], x))))),
    "lenet": lenet, "resnet20": resnet20, "lstm": lstm,
}


def train(name):
    def loss_of(p, x, labels):
        rows = jax.nn.log_softmax(LOGITS[name](p, x))
        return -jnp.mean(jnp.take_along_axis(rows, labels[:, None], 1))

    def step(p, x, labels):
        loss, gradients = jax.value_and_grad(loss_of)(p, x, labels)
        return jax.tree.map(lambda v, g: v - RATE * g, p, gradients), loss

    return step


def train_embedding(p, ids):
    """The gradient only of the rows that were looked up."""
    rows = p["table"][ids]
    loss, gradient = jax.value_and_grad(lambda r: jnp.mean(jnp.square(r)))(rows)
    return {"table": p["table"].at[ids].add(-RATE * gradient)}, loss


def main():
    name, *paths = sys.argv[1:]
    inputs = [jnp.asarray(np.load(p)) for p in paths]
    state = jax.tree.map(jnp.asarray, parameters(name))
    compiled = jax.jit(train_embedding if name == "embedding" else train(name), donate_argnums=0)

    def step():
        nonlocal state
        state, loss = compiled(state, *inputs)
        return float(loss)

    began = time.perf_counter()
    step()
    lines.serve(step, {"first_ms": 1e3 * (time.perf_counter() - began), "version": jax.__version__})


main()
