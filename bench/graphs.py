"""The graphs of the benchmark, built with TensorFlow once: a GraphDef file and a file of cases for rill bench, so that both servers get the same bytes.

    graphs.write(folder, "steps")      writes folder/steps.pb and folder/steps.json, returns the path of the latter
"""
import base64
import json
import os

import models
import numpy as np
import tensorflow.compat.v1 as tf

SIZES = {"4B": 1, "1KB": 256, "1MB": 250_000, "100MB": 25_000_000}  # floats


class Cases:
    """A graph under construction and the steps of it that are measured."""

    def __init__(self, folder, name, config=None):
        self.path = os.path.join(folder, name + ".json")
        self.graph = tf.Graph()
        self.folder, self.name = folder, name
        self.description = {"graph": name + ".pb", "cases": {}}
        if config is not None:
            self.description["config"] = base64.b64encode(config.SerializeToString()).decode()

    def add(self, name, targets=(), fetches=(), **more):
        self.description["cases"][name] = dict(more, targets=[t.name for t in targets], fetches=[f.name for f in fetches])

    def common(self, **more):
        """What all cases share."""
        self.description.update(more)

    def write(self):
        os.makedirs(self.folder, exist_ok=True)
        with open(os.path.join(self.folder, self.name + ".pb"), "wb") as f:
            f.write(self.graph.as_graph_def().SerializeToString())
        with open(self.path, "w") as f:
            json.dump(self.description, f)
        return self.path


def variable(name, floats, device):
    with tf.device(device):
        return tf.get_variable(name, [floats], initializer=tf.zeros_initializer(), use_resource=True)


def steps(folder):
    """Empty steps, barriers, pulls and pushes between one ps and one worker."""
    cases = Cases(folder, "steps")
    ps, worker = "/job:ps/task:0", "/job:worker/task:0"
    with cases.graph.as_default():
        with tf.device(ps):
            empty_ps, first_ps = tf.no_op("empty_ps"), tf.no_op("first_ps")
        with tf.device(worker):
            empty_worker, first_worker = tf.no_op("empty_worker"), tf.no_op("first_worker")
        with tf.device(ps), tf.control_dependencies([first_worker]):
            last_ps = tf.no_op("last_ps")
        with tf.device(worker), tf.control_dependencies([first_ps]):
            last_worker = tf.no_op("last_worker")
        cases.add("empty_ps", [empty_ps])
        cases.add("empty_worker", [empty_worker])
        cases.add("barrier", [last_ps, last_worker])
        for size, floats in SIZES.items():
            on_ps, on_worker = variable("at_ps_" + size, floats, ps), variable("at_worker_" + size, floats, worker)
            with tf.device(worker):
                pulled = tf.identity(on_ps.read_value(), "pull_" + size)
            with tf.device(ps):
                pushed = on_ps.assign(on_worker.read_value()).op
            cases.add("pull_" + size, [pulled.op])
            cases.add("push_" + size, [pushed])
            cases.add("fetch_" + size, fetches=[on_ps.read_value()])
        cases.common(init=[[tf.global_variables_initializer().name]])
    return cases.write()


def local_model(folder, model):
    """A training step of a model in one process."""
    cases = Cases(folder, "local_" + model)
    with cases.graph.as_default():
        data, loss = models.build(model)
        train = tf.train.GradientDescentOptimizer(0.01).minimize(loss)
        cases.add("train", [train], fetches=[loss], init=[[tf.global_variables_initializer().name, data.initializer.name]])
    return cases.write()


def inputs(folder, model):
    """Files with the batch, for peers that have no TensorFlow."""
    paths = []
    for i, value in enumerate(models.inputs(model)):
        paths.append(os.path.join(folder, "%s_input%d.npy" % (model, i)))
        np.save(paths[-1], value)
    return paths


def worker_model(folder, model, worker, workers, sync):
    """A training step of one worker, with the variables on the ps; worker 0 is the chief."""
    mode = "%s%d" % ("sync" if sync else "async", workers)
    cases = Cases(folder, "%s_%s_worker%d" % (model, mode, worker))
    device = "/job:worker/task:%d" % worker
    cluster = {"ps": ["ps:1"], "worker": ["worker:1"] * workers}
    tf.logging.set_verbosity(tf.logging.FATAL)  # TensorFlow warns of SyncReplicasOptimizer in many words
    with cases.graph.as_default(), cases.graph.container(model + mode):
        with tf.device(tf.train.replica_device_setter(cluster=cluster, worker_device=device)):
            step = tf.train.get_or_create_global_step()
            data, loss = models.build(model, data_device=device)
            optimizer = tf.train.GradientDescentOptimizer(0.01)
            if sync:
                optimizer = tf.train.SyncReplicasOptimizer(optimizer, workers, workers)
            train = optimizer.minimize(loss, global_step=step)
        init, loops = [[data.initializer.name]], []
        if worker == 0:
            init.append([tf.global_variables_initializer().name])
        if sync:
            init.append([(optimizer.chief_init_op if worker == 0 else optimizer.local_step_init_op).name])
        if sync and worker == 0:
            init.append([optimizer.get_init_tokens_op().name])
            loops = [[op.name] for op in optimizer.get_chief_queue_runner().enqueue_ops]
        cases.add("train", [train], fetches=[loss], init=init, loops=loops)
    return cases.write()
