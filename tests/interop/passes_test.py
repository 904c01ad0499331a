"""Graph passes as a client sees them: its configuration switches them, values, errors and traces stay right."""
import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tensorflow.core.protobuf import rewriter_config_pb2

OFF = rewriter_config_pb2.RewriterConfig.OFF


def config_of(remapping=OFF, **rewrites):
    """Without fusion, so that single nodes show, unless it is asked for."""
    config = tf.ConfigProto(isolate_session_state=True)
    for name, value in dict(rewrites, remapping=remapping).items():
        setattr(config.graph_options.rewrite_options, name, value)
    return config


def level_0(**optimizer_options):
    config = tf.ConfigProto(isolate_session_state=True)
    config.graph_options.optimizer_options.opt_level = -1
    for name, value in optimizer_options.items():
        setattr(config.graph_options.optimizer_options, name, value)
    return config


@pytest.fixture(scope="module")
def cluster():
    from cluster_process import Cluster
    with Cluster({"ps": 1, "worker": 1}) as c:
        yield c


@pytest.fixture(scope="module")
def graph():
    """Something for every pass, on one task."""
    graph = tf.Graph()
    with graph.as_default(), tf.device("/job:worker/task:0"):
        x = tf.placeholder(tf.float32, [None], name="x")
        two = tf.constant(2.0, name="two")
        folded = tf.multiply(two, two, name="folded")
        once = tf.multiply(x, tf.constant(1.0, name="one"), name="once")
        plain = tf.identity(once, name="plain")
        a = tf.exp(plain, name="a")
        b = tf.exp(plain, name="b")
        tf.reduce_sum(tf.stack([a, b * folded]), name="y")
    return graph


def nodes_of(session, fetch, feeds):
    metadata = tf.RunMetadata()
    value = session.run(fetch, feeds, tf.RunOptions(output_partition_graphs=True), metadata)
    return value, {n.name: n.op for g in metadata.partition_graphs for n in g.node}


@pytest.mark.parametrize("config, off", [
    (config_of(), ""),
    (config_of(disable_meta_optimizer=True), "fold simplify bypass share"),
    (level_0(), "fold bypass share"),
    (level_0(do_constant_folding=True), "bypass share"),
    (level_0(do_common_subexpression_elimination=True), "fold bypass"),
    (config_of(constant_folding=OFF), "fold"),
    (config_of(arithmetic_optimization=OFF), "simplify"),
    (config_of(dependency_optimization=OFF), "bypass"),
    (config_of(common_subgraph_elimination=OFF), "share"),
], ids=["default", "disabled", "L0", "L0 and folding", "L0 and sharing", "no folding", "no arithmetic", "no dependency", "no sharing"])
def test_the_clients_configuration_switches_each_pass(cluster, graph, config, off):
    with tf.Session(cluster.target("worker"), graph=graph, config=config) as s:
        value, nodes = nodes_of(s, "y:0", {"x:0": [0.5, -1.0]})
    off = off.split()
    assert value == pytest.approx(5 * (np.exp(0.5) + np.exp(-1.0)), rel=1e-6)
    assert (nodes["folded"] == "Mul") == ("fold" in off)
    assert ("once" in nodes) == ("simplify" in off)
    assert ("plain" in nodes) == ("bypass" in off)
    assert ("a" in nodes and "b" in nodes) == ("share" in off)


@pytest.mark.parametrize("config, fused", [(tf.ConfigProto(isolate_session_state=True), True), (config_of(), False), (level_0(), False)],
                         ids=["default", "no remapping", "L0"])
def test_elementwise_nodes_run_as_one(cluster, config, fused):
    graph = tf.Graph()
    with graph.as_default(), tf.device("/job:worker/task:0"):
        x = tf.placeholder(tf.float32)
        scaled = tf.multiply(x, 0.5, name="scaled")
        y = tf.tanh(scaled * scaled + x, name="y")
    with tf.Session(cluster.target("worker"), graph=graph, config=config) as s:
        value, nodes = nodes_of(s, "y:0", {x: [[1, 2], [3, 4]]})
        np.testing.assert_allclose(value, np.tanh(np.square([[0.5, 1], [1.5, 2]]) + [[1, 2], [3, 4]]), rtol=1e-6)
        assert (nodes["y"] == "_FusedElementwise") == fused and ("scaled" in nodes) == (not fused)
        options, metadata = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), tf.RunMetadata()
        s.run("y:0", {x: 1.0}, options, metadata)
        traced = {n.node_name for d in metadata.step_stats.dev_stats for n in d.node_stats}
        assert "y" in traced and ("scaled" in traced) == (not fused)
        assert s.run("scaled:0", {x: 3.0}) == 1.5


@pytest.mark.parametrize("config, fused", [(tf.ConfigProto(isolate_session_state=True), True), (config_of(), False)], ids=["default", "no remapping"])
def test_a_layer_runs_as_one(cluster, config, fused):
    random = np.random.RandomState(0)
    x, w, b = (random.randn(*shape).astype(np.float32) for shape in ((5, 6), (6, 4), (4,)))
    graph = tf.Graph()
    with graph.as_default(), tf.device("/job:worker/task:0"):
        product = tf.matmul(tf.placeholder(tf.float32, [5, 6], name="x"), w, name="product")
        y = tf.tanh(tf.nn.bias_add(product, b), name="y")
    with tf.Session(cluster.target("worker"), graph=graph, config=config) as s:
        value, nodes = nodes_of(s, "y:0", {"x:0": x})
        np.testing.assert_allclose(value, np.tanh(x @ w + b), rtol=1e-5)
        assert (nodes["y"] == "_FusedProduct") == fused and ("product" in nodes) == (not fused)
        both, nodes = nodes_of(s, ["y:0", "product:0"], {"x:0": x})  # a fetched product is there
        np.testing.assert_array_equal(both[0], value)
        np.testing.assert_allclose(both[1], x @ w, rtol=1e-5, atol=1e-6)  # one of the sums cancels to 1e-3
        assert nodes["product"] == "MatMul"


def test_an_error_within_a_fused_node_names_the_node(cluster):
    graph = tf.Graph()
    with graph.as_default(), tf.device("/job:worker/task:0"):
        a, b = tf.placeholder(tf.float32), tf.placeholder(tf.float32)
        y = tf.exp(tf.negative(tf.add(tf.square(a), b, name="misfit")), name="y")
    with tf.Session(cluster.target("worker"), graph=graph) as s:
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"Incompatible shapes: \[2\] vs. \[3\][\s\S]*node misfit\b"):
            s.run(y, {a: [1, 2], b: [1, 2, 3]})


def test_fetches_feeds_and_targets_keep_their_names(cluster, graph):
    with tf.Session(cluster.target("worker"), graph=graph) as s:
        x = np.float32([1, 2])
        once, plain, folded, b = s.run(["once:0", "plain:0", "folded:0", "b:0"], {"x:0": x})
        assert (once == x).all() and (plain == x).all() and folded == 4
        np.testing.assert_allclose(b, np.exp(x), rtol=1e-6)
        assert s.run("y:0", {"plain:0": [0.0], "folded:0": 7.0}) == 8
        assert s.run("y:0", {"a:0": [1.0], "b:0": [2.0]}) == 9
        s.run(graph.get_operation_by_name("plain"), {"x:0": x})


def test_an_error_names_the_node_of_the_client(cluster):
    graph = tf.Graph()
    with graph.as_default(), tf.device("/job:worker/task:0"):
        wrong = tf.gather(tf.constant([1, 2]), tf.constant(5), name="wrong")
        y = tf.identity(wrong + 1, name="y")
        checked = tf.check_numerics(tf.log(tf.constant(-1.0)), "not a number", name="checked")
    with tf.Session(cluster.target("worker"), graph=graph) as s:
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"node wrong\b"):
            s.run(y)
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"not a number[\s\S]*node checked\b"):
            s.run(checked)


def test_equal_values_cross_between_tasks_once(cluster):
    graph = tf.Graph()
    with graph.as_default():
        with tf.device("/job:ps/task:0"):
            v = tf.placeholder(tf.float32, [2])
            a, b = tf.exp(v), tf.exp(v)
        with tf.device("/job:worker/task:0"):
            y = a * 2 + b
    for config, sends in (tf.ConfigProto(), 1), (level_0(), 2):
        with tf.Session(cluster.target("worker"), graph=graph, config=config) as s:
            metadata = tf.RunMetadata()
            value = s.run(y, {v: [0, 1]}, tf.RunOptions(output_partition_graphs=True), metadata)
        np.testing.assert_allclose(value, 3 * np.exp([0, 1]), rtol=1e-6)
        sent = [n for g in metadata.partition_graphs for n in g.node
                if n.op == "_Send" and b"job:ps" in n.attr["send_device"].s and b"job:worker" in n.attr["recv_device"].s
                and not n.attr["client_terminated"].b]
        assert len(sent) == sends


@pytest.mark.parametrize("rill_is_master", [True, False])
def test_parts_from_either_master_are_optimized(start_cluster, rill_is_master):
    """The TensorFlow master has rewritten the graph before, and made ops of its own where unary ones follow each other."""
    cluster = start_cluster({"worker": ["rill", "tf"]})
    graph = tf.Graph()
    with graph.as_default():
        with tf.device("/job:worker/task:1"):
            x = tf.placeholder(tf.float32, [2])
            z = tf.exp(x)
        with tf.device("/job:worker/task:0"):
            y = tf.add(tf.sqrt(tf.abs(tf.sin(z))), z * z, name="y")
        with tf.device("/job:worker/task:1"):
            out = y * 2
    with tf.Session(cluster.target("worker", 0 if rill_is_master else 1), graph=graph) as s:
        value, nodes = nodes_of(s, out, {x: [0, 1]})
    e = np.exp([0, 1])
    np.testing.assert_allclose(value, 2 * (np.sqrt(np.abs(np.sin(e))) + e * e), rtol=1e-5)
    assert nodes["y"] == "_FusedElementwise"
    assert rill_is_master != ("_UnaryOpsComposition" in nodes.values())


def test_training_gives_the_same_losses_with_and_without_passes(cluster):
    """To the bit: no pass changes the order of additions."""
    random = np.random.RandomState(0)
    data, labels = random.rand(64, 20).astype(np.float32), random.randint(0, 4, 64)

    def losses(config):
        graph = tf.Graph()
        with graph.as_default(), tf.device(tf.train.replica_device_setter(1, worker_device="/job:worker/task:0")):
            tf.set_random_seed(1)
            x, y = tf.placeholder(tf.float32, [None, 20]), tf.placeholder(tf.int64, [None])
            h = x
            for i, width in enumerate((16, 8)):
                w = tf.get_variable("w%d" % i, [h.shape[1], width], initializer=tf.truncated_normal_initializer(seed=i))
                b = tf.get_variable("b%d" % i, [width], initializer=tf.zeros_initializer())
                h = [tf.nn.relu, tf.tanh][i](tf.nn.bias_add(tf.matmul(h, w), b))
            logits = tf.matmul(h, tf.get_variable("w", [8, 4], initializer=tf.truncated_normal_initializer(seed=9))) + 1.0
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
            train = tf.train.AdamOptimizer(0.01).minimize(loss)
            init = tf.global_variables_initializer()
        with tf.Session(cluster.target("worker"), graph=graph, config=config) as s:
            s.run(init)
            return [s.run([loss, train], {x: data, y: labels})[0] for _ in range(20)]

    with_passes, without = losses(config_of()), losses(config_of(disable_meta_optimizer=True))
    assert with_passes == without and with_passes[-1] < with_passes[0]


@pytest.mark.parametrize("activation", ["", "Relu", "Elu"])
def test_a_fused_convolution_of_planes_gives_what_that_of_pixels_gives(cluster, activation):
    """_FusedConv2D of a TensorFlow master's making, with data format NCHW, held to Conv2D, BiasAdd and the activation in TensorFlow."""
    random = np.random.RandomState(0)
    x, w, b = (random.randn(*shape).astype(np.float32) for shape in ((2, 6, 5, 3), (3, 3, 3, 4), (4,)))
    g = tf.GraphDef()
    for name, value in ("x", x.transpose(0, 3, 1, 2)), ("w", w), ("b", b):
        n = g.node.add(name=name, op="Placeholder")
        n.attr["dtype"].type = tf.float32.as_datatype_enum
    n = g.node.add(name="y", op="_FusedConv2D", input=["x", "w", "b"])
    n.attr["T"].type = tf.float32.as_datatype_enum
    n.attr["num_args"].i = 1
    n.attr["TArgs"].list.type.append(tf.float32.as_datatype_enum)
    n.attr["strides"].list.i.extend([1, 1, 1, 1])
    n.attr["padding"].s, n.attr["data_format"].s = b"SAME", b"NCHW"
    n.attr["fused_ops"].list.s.extend([b"BiasAdd"] + ([activation.encode()] if activation else []))
    graph, reference = tf.Graph(), tf.Graph()
    with graph.as_default():
        tf.import_graph_def(g, name="")
    with tf.Session(cluster.target("worker"), graph=graph) as s:
        got = s.run("y:0", {"x:0": x.transpose(0, 3, 1, 2), "w:0": w, "b:0": b})
    with reference.as_default(), tf.Session() as s:
        z = tf.nn.bias_add(tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME"), b)
        want = s.run({"": tf.identity, "Relu": tf.nn.relu, "Elu": tf.nn.elu}[activation](z))
    np.testing.assert_allclose(got.transpose(0, 2, 3, 1), want, rtol=1e-4, atol=1e-5)
