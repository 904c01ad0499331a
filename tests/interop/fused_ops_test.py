"""Ops that the optimiser of a TensorFlow master sends to its workers, with oneDNN, as TensorFlow has it unless told otherwise, and without: a Rill worker runs them."""
import numpy as np
import pytest
import tensorflow as tf2
import tensorflow.compat.v1 as tf

from cluster_process import Cluster

RNG = np.random.RandomState(5)
IMAGE, VOLUME, MATRIX = (RNG.randn(*s).astype(np.float32) for s in ((2, 9, 8, 4), (1, 4, 5, 6, 3), (5, 6)))
FILTER, DEPTH_FILTER, VOLUME_FILTER, WEIGHT = (RNG.randn(*s).astype(np.float32) for s in ((3, 3, 4, 4), (3, 3, 4, 1), (2, 2, 2, 3, 4), (6, 4)))
BIAS, MEAN, VARIANCE = np.float32([0.5, -1, 2, 0.25]), np.float32([0.1, 0.2, 0.3, 0.4]), np.float32([1, 2, 3, 4])

PRODUCTS = {
    "conv": lambda feed: tf.nn.conv2d(feed(IMAGE), tf.constant(FILTER), 1, "SAME"),
    "depthwise": lambda feed: tf.nn.depthwise_conv2d(feed(IMAGE), tf.constant(DEPTH_FILTER), [1, 1, 1, 1], "SAME"),
    "conv3d": lambda feed: tf.nn.conv3d(feed(VOLUME), tf.constant(VOLUME_FILTER), [1, 1, 1, 1, 1], "SAME"),
    "matmul": lambda feed: tf.matmul(feed(MATRIX), tf.constant(WEIGHT)),
}
ACTIVATIONS = {
    "none": tf.identity,
    "relu": tf.nn.relu,
    "relu6": tf.nn.relu6,
    "elu": tf.nn.elu,
    "leaky_relu": tf.nn.leaky_relu,
    "tanh": tf.tanh,
    "sigmoid": tf.sigmoid,
    "swish": lambda z: z * tf.sigmoid(z),
    "hard_swish": lambda z: z * tf.nn.relu6(z + 3.0) * (1 / 6.0),
    "gelu": lambda z: tf2.nn.gelu(z, approximate=True),
    "gelu_exact": lambda z: tf2.nn.gelu(z),
    "mish": lambda z: z * tf.tanh(tf.nn.softplus(z)),
}


def normalised(x, training=False):
    moments = {} if training else {"mean": tf.constant(MEAN), "variance": tf.constant(VARIANCE)}
    return tf.nn.fused_batch_norm(x, tf.constant(VARIANCE), tf.constant(BIAS), is_training=training, **moments)[0]


def attention(feed):
    """Scaled products of queries and keys, and a mask."""
    queries, keys, mask = RNG.randn(2, 3, 5, 6), RNG.randn(2, 3, 6, 5), RNG.randn(2, 1, 5, 5)
    return tf.matmul(feed(queries), feed(keys)) * 0.125 + feed(mask)


def layer_norm(feed):
    """As Keras had it: a batch norm whose channels are the rows."""
    x = tf.placeholder_with_default(feed(RNG.randn(3, 5, 8)), [None, 5, 8])
    rows = tf.shape(x)[0] * tf.shape(x)[1]
    y = tf.nn.fused_batch_norm(tf.reshape(x, [1, rows, 8, 1]), tf.fill([rows], 1.0), tf.fill([rows], 0.0), epsilon=1e-3, data_format="NCHW")[0]
    return tf.reshape(y, tf.shape(x)) * tf.constant(np.linspace(0.5, 2, 8, dtype=np.float32)) + tf.constant(np.linspace(-1, 1, 8, dtype=np.float32))


def instance_norm(feed, axes):
    x = feed(RNG.randn(3, 4, 6, 4)) if axes == [1, 2] else feed(RNG.randn(3, 4, 6, 5))
    of_channel = [1, 1, 1, 4] if axes == [1, 2] else [1, 4, 1, 1]
    mean = tf.reduce_mean(x, axes, keepdims=True)
    variance = tf.reduce_mean(tf.squared_difference(x, tf.stop_gradient(mean)), axes, keepdims=True)
    factor = tf.rsqrt(variance + 1e-3) * tf.constant(VARIANCE.reshape(of_channel))
    return x * factor + (tf.constant(BIAS.reshape(of_channel)) - mean * factor)


def build(feed):
    """name -> tensor"""
    out = {}
    for product, make in PRODUCTS.items():
        for name, activate in ACTIVATIONS.items():
            out[product + " bias " + name] = activate(tf.nn.bias_add(make(feed), tf.constant(BIAS)))
        out[product + " plus a row"] = tf.nn.relu(make(feed) + tf.constant(BIAS))
        other = RNG.randn(*make(feed).shape.as_list())
        out[product + " bias plus another"] = tf.nn.relu(tf.nn.bias_add(make(feed), tf.constant(BIAS)) + feed(other))
    out["attention"] = attention(feed)
    out["norm"] = tf.nn.relu(normalised(feed(IMAGE)))
    out["norm, training"] = tf.nn.relu(normalised(feed(IMAGE), training=True))
    out["norm plus another"] = tf.nn.relu(normalised(feed(IMAGE)) + feed(IMAGE))
    out["conv norm"] = normalised(PRODUCTS["conv"](feed))
    out["conv norm relu"] = tf.nn.relu(normalised(PRODUCTS["conv"](feed)))
    out["layer norm"] = layer_norm(feed)
    for axes in [1, 2], [2, 3]:
        for name in "none", "relu", "leaky_relu":
            out["instance norm over %s %s" % (axes, name)] = ACTIVATIONS[name](instance_norm(feed, axes))
    out["swish"] = ACTIVATIONS["swish"](feed(IMAGE))
    out["mish"] = ACTIVATIONS["mish"](feed(IMAGE))
    return out


def built(device):
    feeds = {}

    def feed(value):
        p = tf.placeholder(tf.float32, value.shape)
        feeds[p] = value.astype(np.float32)
        return p

    with tf.Graph().as_default() as graph, tf.device(device):
        RNG.seed(6)
        return graph, build(feed), feeds


@pytest.fixture(scope="module")
def wanted():
    graph, outs, feeds = built(None)
    config = tf.ConfigProto()
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    with tf.Session(graph=graph, config=config) as s:
        return s.run(outs, feeds)


EXPECTED = {
    "0": {"_FusedConv2D", "_FusedMatMul"},
    "1": {"_FusedConv2D", "_FusedMatMul", "_FusedDepthwiseConv2dNative", "_FusedConv3D", "_FusedBatchNormEx", "_MklFusedBatchMatMulV2", "_MklSwish", "_MklFusedMish",
          "_MklLayerNorm", "_MklFusedInstanceNorm"},
}


@pytest.mark.parametrize("onednn", ["0", "1"], ids=["without oneDNN", "with oneDNN"])
def test_a_worker_runs_what_the_optimiser_of_a_tensorflow_master_makes(wanted, onednn):
    graph, outs, feeds = built("/job:worker/task:0")
    seen = set()
    with Cluster({"worker": ["rill", "tf"]}, tf_environment={"TF_ENABLE_ONEDNN_OPTS": onednn}) as cluster:
        with tf.Session(cluster.target("worker", 1), graph=graph) as s:
            for name, out in outs.items():
                metadata = tf.RunMetadata()
                got = s.run(out, feeds, tf.RunOptions(output_partition_graphs=True), metadata)
                seen |= {n.op for g in metadata.partition_graphs for n in g.node}
                np.testing.assert_allclose(got, wanted[name], rtol=2e-4, atol=2e-5, err_msg=name)
    assert EXPECTED[onednn] <= seen
