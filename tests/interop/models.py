"""The models of the interop suite, built the same way for a cluster (devices given) and for the reference (no devices)."""
import contextlib

import numpy as np
import tensorflow.compat.v1 as tf

SIDE = 12
CLASSES = 10
BATCH = 16
OPTIMIZERS = {
    "sgd": lambda: tf.train.GradientDescentOptimizer(0.1),
    "adam": lambda: tf.train.AdamOptimizer(0.003),
    "adagrad": lambda: tf.train.AdagradOptimizer(0.05),
    "momentum": lambda: tf.train.MomentumOptimizer(0.03, 0.9),
    "nesterov": lambda: tf.train.MomentumOptimizer(0.03, 0.9, use_nesterov=True),
    "rmsprop": lambda: tf.train.RMSPropOptimizer(0.003, momentum=0.5),
    "centered_rmsprop": lambda: tf.train.RMSPropOptimizer(0.003, centered=True),
}


def batches(count, seed=1):
    """Digits-like images: a blurred pattern for each class, plus noise. Returns [(images, labels)]."""
    rng = np.random.RandomState(99)
    patterns = (rng.rand(CLASSES, SIDE, SIDE) > 0.7).astype(np.float32)
    rng = np.random.RandomState(seed)
    out = []
    for _ in range(count):
        labels = rng.randint(0, CLASSES, BATCH)
        images = patterns[labels] + 0.3 * rng.randn(BATCH, SIDE, SIDE)
        out.append((images.reshape(BATCH, -1).astype(np.float32), labels.astype(np.int64)))
    return out


class Weights:
    """Makes variables with initial values that depend only on their order."""

    def __init__(self, seed=7):
        self.rng = np.random.RandomState(seed)
        self.count = 0

    def __call__(self, *shape):
        self.count += 1
        scale = 1.0 / np.sqrt(np.prod(shape[:-1])) if len(shape) > 1 else 0.01
        value = (scale * self.rng.randn(*shape)).astype(np.float32)
        return tf.get_variable("w%d" % self.count, initializer=value)


def softmax_logits(x, w):
    return tf.nn.xw_plus_b(x, w(SIDE * SIDE, CLASSES), w(CLASSES))


def mlp_logits(x, w):
    h = tf.nn.relu(tf.matmul(x, w(SIDE * SIDE, 32)) + w(32))
    h = tf.nn.tanh(tf.nn.bias_add(tf.matmul(h, w(32, 24)), w(24)))
    return tf.matmul(h, w(24, CLASSES)) + w(CLASSES)


def cnn_logits(x, w):
    h = tf.reshape(x, [-1, SIDE, SIDE, 1])
    for channels_in, channels_out in ((1, 6), (6, 12)):
        h = tf.nn.conv2d(h, w(5, 5, channels_in, channels_out), [1, 1, 1, 1], "SAME")
        h = tf.nn.relu(tf.nn.bias_add(h, w(channels_out)))
        h = tf.nn.max_pool(h, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
    h = tf.reshape(h, [-1, (SIDE // 4) ** 2 * 12])
    h = tf.nn.relu(tf.matmul(h, w(h.shape[1].value, 24)) + w(24))
    return tf.matmul(h, w(24, CLASSES)) + w(CLASSES)


def embedding_logits(x, w):
    """A row of a table for each of the brightest pixels: sparse gradients."""
    _, ids = tf.nn.top_k(x, 24)
    h = tf.reduce_sum(tf.nn.embedding_lookup(w(SIDE * SIDE, 16), ids), axis=1)
    return tf.matmul(h, w(16, CLASSES)) + w(CLASSES)


LOGITS = {"softmax": softmax_logits, "mlp": mlp_logits, "cnn": cnn_logits, "embedding": embedding_logits}


def loss_of(model, x, y):
    """The loss of one tower; the variables are shared with every other tower of the graph."""
    with tf.variable_scope("model", reuse=tf.AUTO_REUSE):
        logits = LOGITS[model](x, Weights())
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(logits=logits, labels=y))


@contextlib.contextmanager
def variables_of(kind):
    """Within it, variables are ref variables ("ref") or resource variables ("resource")."""
    before = tf.resource_variables_enabled()
    (tf.enable_resource_variables if kind == "resource" else tf.disable_resource_variables)()
    try:
        yield
    finally:
        (tf.enable_resource_variables if before else tf.disable_resource_variables)()


class Program:
    """A graph and the names to drive it with: towers are (x, y, loss, train_op) in the order of the workers."""

    def __init__(self):
        self.graph = tf.Graph()
        self.towers = []
        self.init_op = None
        self.local_init_op = None
        self.ready_for_local_init_op = None
        self.chief_queue_runner = None
        self.init_tokens_op = None


def inputs():
    x = tf.placeholder(tf.float32, [None, SIDE * SIDE])
    y = tf.placeholder(tf.int64, [None])
    return x, y


def device_of(worker, ps_tasks, place):
    """Variables in turn over the ps tasks, all else on the worker; nothing for the reference."""
    if not place:
        return tf.device(None)
    return tf.device(tf.train.replica_device_setter(ps_tasks=ps_tasks, worker_device="/job:worker/task:%d" % worker))


def between_graph(model, kind, ps_tasks, workers, worker, optimizer="sgd", sync=False, place=True):
    """The program of one worker. With sync it has what a chief needs as well."""
    p = Program()
    with p.graph.as_default(), variables_of(kind), device_of(worker, ps_tasks, place):
        tf.set_random_seed(1)
        global_step = tf.train.get_or_create_global_step()
        x, y = inputs()
        loss = loss_of(model, x, y)
        opt = OPTIMIZERS[optimizer]()
        if sync:
            opt = tf.train.SyncReplicasOptimizer(opt, replicas_to_aggregate=workers, total_num_replicas=workers)
        train_op = opt.minimize(loss, global_step=global_step)
        if sync:
            p.chief_queue_runner = opt.get_chief_queue_runner()
            p.init_tokens_op = opt.get_init_tokens_op(num_tokens=0)
            p.local_init_op = opt.chief_init_op if worker == 0 else opt.local_step_init_op
            p.ready_for_local_init_op = opt.ready_for_local_init_op
        p.init_op = tf.global_variables_initializer()
        p.global_step = global_step
        p.towers = [(x, y, loss, train_op)]
    return p


def in_graph(model, kind, ps_tasks, workers, optimizer="sgd", sync=False, place=True):
    """One graph with a tower on each worker. With sync, the gradients of all towers are averaged into one update."""
    p = Program()
    with p.graph.as_default(), variables_of(kind):
        tf.set_random_seed(1)
        with device_of(0, ps_tasks, place):
            global_step = tf.train.get_or_create_global_step()
        opt = OPTIMIZERS[optimizer]()
        grads, towers = [], []
        for worker in range(workers):
            with device_of(worker, ps_tasks, place):
                x, y = inputs()
                loss = loss_of(model, x, y)
                grads.append(opt.compute_gradients(loss))
                towers.append((x, y, loss))
        if sync:
            with device_of(0, ps_tasks, place):
                mean = [(tf.add_n([g for g, _ in of_one]) / workers, of_one[0][1]) for of_one in zip(*grads)]
                train_op = opt.apply_gradients(mean, global_step=global_step)
            p.towers = [t + (train_op,) for t in towers]
        else:
            train_ops = [opt.apply_gradients(g, global_step=global_step) for g in grads]
            p.towers = [t + (op,) for t, op in zip(towers, train_ops)]
        with device_of(0, ps_tasks, place):
            p.init_op = tf.global_variables_initializer()
        p.global_step = global_step
    return p
