"""The graphs of the benchmark, built with TensorFlow once: a GraphDef file and a file of cases for rill bench, so that both servers get the same bytes.

    graphs.write(folder, "steps")      writes folder/steps.pb and folder/steps.json, returns the path of the latter
"""
import base64
import functools
import json
import os

import models
import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.python.ops import collective_ops

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


@functools.cache
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
            if size != "4B":  # what an all-reduce is with a ps: the worker's value is added to that of the ps, and the sum comes back
                with tf.device(ps), tf.control_dependencies([on_ps.assign_add(on_worker.read_value())]):
                    total = on_ps.read_value()
                with tf.device(worker):
                    cases.add("reduce_" + size, [tf.identity(total, "reduce_" + size).op])
        cases.common(init=[[tf.global_variables_initializer().name]])
    return cases.write()


LEADER = "/job:worker/replica:0/task:0"


@functools.cache
def all_reduce(folder):
    """A value of the ps and one of the worker, added up at both by CollectiveReduceV2."""
    config = tf.ConfigProto()
    config.experimental.collective_group_leader = LEADER
    cases = Cases(folder, "all_reduce", config)
    with cases.graph.as_default():
        for instance, (size, floats) in enumerate(SIZES.items()):
            sums = []
            for job in "ps", "worker":
                device = "/job:%s/task:0" % job
                value = variable("%s_%s" % (job, size), floats, device)
                with tf.device(device):
                    sums.append(collective_ops.all_reduce_v2(value.read_value(), group_size=2, group_key=1, instance_key=1 + instance))
            cases.add("all_reduce_" + size, [total.op for total in sums])
        cases.common(init=[[tf.global_variables_initializer().name]])
    return cases.write()


@functools.cache
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


@functools.cache
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


# ---- Graphs of many nodes: made by hand, the Python API would take longer than all else ----

FLOAT = tf.AttrValue(type=tf.float32.as_datatype_enum)
PRODUCER = 2474


def node(graph_def, name, op, inputs=(), **attributes):
    n = graph_def.node.add(name=name, op=op, input=inputs)
    for key, value in attributes.items():
        n.attr[key].CopyFrom(value)


def optimisers_off():
    config = tf.ConfigProto()
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    config.graph_options.optimizer_options.opt_level = -1
    return config


def start_of_graph():
    graph_def = tf.GraphDef()
    graph_def.versions.producer = PRODUCER
    value = tf.AttrValue(tensor=tf.make_tensor_proto(np.float32(1)))
    node(graph_def, "one", "Const", dtype=FLOAT, value=value)
    node(graph_def, "x", "PlaceholderWithDefault", ["one"], dtype=FLOAT, shape=tf.AttrValue(shape=tf.TensorShape([]).as_proto()))
    return graph_def


def save(folder, name, graph_def):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "wb") as f:
        f.write(graph_def.SerializeToString())


def chain(folder, nodes, optimise=True):
    """A chain of additions; case "extended" adds a tenth to it, case "signatures" fetches 1,000 of its nodes in turn."""
    name = "chain%d%s" % (nodes, "" if optimise else "_off")
    graph_def, more = start_of_graph(), tf.GraphDef()
    more.versions.producer = PRODUCER
    total = nodes + nodes // 10
    for i in range(total):
        node(graph_def if i < nodes else more, "n%d" % i, "AddV2", ["n%d" % (i - 1) if i else "x", "one"], T=FLOAT)
    save(folder, name + ".pb", graph_def)
    save(folder, name + "_more.pb", more)
    last = "n%d:0" % (nodes - 1)
    cases = {"first": {"fetches": [last], "targets": []}, "extended": {"fetches": ["n%d:0" % (total - 1)], "targets": [], "extend": name + "_more.pb"},
             "signatures": {"targets": [], "fetches": [], "rotate": ["n%d:0" % i for i in range(nodes - 1000, nodes)]}}
    return describe(folder, name, cases, None if optimise else optimisers_off())


def fan(folder, nodes):
    """Additions that all have the same inputs, and a node that waits for all."""
    name = "fan%d" % nodes
    graph_def = start_of_graph()
    for i in range(nodes):
        node(graph_def, "n%d" % i, "AddV2", ["x", "one"], T=FLOAT)
    node(graph_def, "all", "NoOp", ["^n%d" % i for i in range(nodes)])
    save(folder, name + ".pb", graph_def)
    return describe(folder, name, {"first": {"targets": ["all"], "fetches": []}}, optimisers_off())


def null_chain(folder, nodes):
    """Nodes that do nothing, each after the one before."""
    graph_def = start_of_graph()
    for i in range(nodes):
        node(graph_def, "n%d" % i, "NoOp", ["^n%d" % (i - 1) if i else "^one"])
    return null_case(folder, "null_chain%d" % nodes, graph_def, "n%d" % (nodes - 1))


def null_fan(folder, nodes):
    """Nodes that do nothing, all after the same one, and one that waits for all."""
    graph_def = start_of_graph()
    for i in range(nodes):
        node(graph_def, "n%d" % i, "NoOp", ["^one"])
    node(graph_def, "all", "NoOp", ["^n%d" % i for i in range(nodes)])
    return null_case(folder, "null_fan%d" % nodes, graph_def, "all")


def null_case(folder, name, graph_def, target):
    save(folder, name + ".pb", graph_def)
    return describe(folder, name, {"first": {"targets": [target], "fetches": []}}, optimisers_off())


def describe(folder, name, cases, config):
    path = os.path.join(folder, name + ".json")
    description = {"graph": name + ".pb", "cases": cases}
    if config is not None:
        description["config"] = base64.b64encode(config.SerializeToString()).decode()
    with open(path, "w") as f:
        json.dump(description, f)
    return path


# ---- One kernel alone ----

GEMMS = {"gemm_2048": (2048, 2048, 2048), "gemm_mlp": (128, 784, 512)}  # m, k, n
CONVS = {"conv_lenet": (64, 14, 32, 64, 5), "conv_resnet": (32, 32, 16, 16, 3), "conv_resnet16": (32, 16, 32, 32, 3),
         "conv_resnet8": (32, 8, 64, 64, 3)}  # batch, height = width, channels in, out, window


def kernel(folder, name):
    """A product or a convolution, forward and both backward passes, of values that lie in variables."""
    cases = Cases(folder, name)
    with cases.graph.as_default():
        if name in GEMMS:
            m, k, n = GEMMS[name]
            a, b = models.weights("a", [m, k]), models.weights("b", [k, n])
            cases.add("forward", [tf.matmul(a, b).op])
        else:
            batch, size, inputs, outputs, window = CONVS[name]
            x, w = models.weights("x", [batch, size, size, inputs]), models.weights("w", [window, window, inputs, outputs])
            dy = models.weights("dy", [batch, size, size, outputs])
            cases.add("forward", [tf.nn.conv2d(x, w, 1, "SAME").op])
            cases.add("backward_data", [tf.nn.conv2d_backprop_input([batch, size, size, inputs], w, dy, [1, 1, 1, 1], "SAME").op])
            cases.add("backward_weights", [tf.nn.conv2d_backprop_filter(x, [window, window, inputs, outputs], dy, [1, 1, 1, 1], "SAME").op])
        cases.common(init=[[tf.global_variables_initializer().name]])
    return cases.write()
