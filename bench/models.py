"""The models of the benchmark as TensorFlow graphs; bench/peers has the same for PyTorch and JAX."""
import collections

import numpy as np
import tensorflow.compat.v1 as tf

Data = collections.namedtuple("Data", "values initializer")

LSTM = {"batch": 64, "steps": 35, "units": 256}
EMBEDDING = {"rows": 1_000_000, "width": 64, "batch": 4096}


def weights(name, shape, scale=0.05):
    return tf.get_variable(name, shape, initializer=tf.random_uniform_initializer(-scale, scale, seed=1), use_resource=True)


def zeros(name, shape):
    return tf.get_variable(name, shape, initializer=tf.zeros_initializer(), use_resource=True)


def classify(logits, labels):
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))


def dense(name, x, outputs):
    return tf.nn.bias_add(tf.matmul(x, weights(name + "_w", [x.shape[1], outputs])), zeros(name + "_b", [outputs]))


def conv(name, x, size, channels, stride=1):
    return tf.nn.conv2d(x, weights(name, [size, size, x.shape[3], channels]), stride, "SAME")


def tiny(x, labels):
    return classify(dense("out", x, 10), labels)


def mlp(x, labels):
    return classify(dense("out", tf.nn.relu(dense("second", tf.nn.relu(dense("first", x, 512)), 512)), 10), labels)


def lenet(x, labels):
    for name, channels in ("first", 32), ("second", 64):
        x = tf.nn.relu(tf.nn.bias_add(conv(name, x, 5, channels), zeros(name + "_b", [channels])))
        x = tf.nn.max_pool2d(x, 2, 2, "SAME")
    return classify(dense("out", tf.nn.relu(dense("hidden", tf.reshape(x, [-1, 7 * 7 * 64]), 1024)), 10), labels)


def normalized(name, x):
    scale = tf.get_variable(name + "_scale", [x.shape[3]], initializer=tf.ones_initializer(), use_resource=True)
    return tf.nn.fused_batch_norm(x, scale, zeros(name + "_offset", [x.shape[3]]))[0]


def resnet20(x, labels):
    x = tf.nn.relu(normalized("first_norm", conv("first", x, 3, 16)))
    for group, channels in enumerate([16, 32, 64]):
        for block in range(3):
            name = "g%d_b%d_" % (group, block)
            stride = 2 if group and not block else 1
            y = tf.nn.relu(normalized(name + "norm1", conv(name + "conv1", x, 3, channels, stride)))
            y = normalized(name + "norm2", conv(name + "conv2", y, 3, channels))
            if x.shape[3] != channels:
                x = normalized(name + "norm3", conv(name + "conv3", x, 1, channels, stride))
            x = tf.nn.relu(x + y)
    return classify(dense("out", tf.reduce_mean(x, [1, 2]), 10), labels)


def lstm(x, labels):
    """One layer, unrolled; the last state is classified."""
    units = LSTM["units"]
    kernel, bias = weights("kernel", [2 * units, 4 * units]), zeros("bias", [4 * units])
    h = c = tf.zeros([LSTM["batch"], units])
    for step in tf.unstack(x, axis=1):
        i, j, f, o = tf.split(tf.nn.bias_add(tf.matmul(tf.concat([step, h], 1), kernel), bias), 4, 1)
        c = c * tf.sigmoid(f + 1.0) + tf.sigmoid(i) * tf.tanh(j)
        h = tf.tanh(c) * tf.sigmoid(o)
    return classify(dense("out", h, 10), labels)


def embedding(ids):
    table = weights("table", [EMBEDDING["rows"], EMBEDDING["width"]])
    return tf.reduce_mean(tf.square(tf.nn.embedding_lookup(table, ids)))


Model = collections.namedtuple("Model", "build inputs title")


def images(*shape):
    return lambda random: [random.rand(*shape).astype(np.float32), random.randint(0, 10, shape[0]).astype(np.int32)]


MODELS = {
    "softmax": Model(tiny, images(100, 784), "softmax 784-10, batch 100"),
    "mlp": Model(mlp, images(128, 784), "MLP 784-512-512-10, batch 128"),
    "lenet": Model(lenet, images(64, 28, 28, 1), "LeNet (32 and 64 channels 5×5, 1024), batch 64"),
    "resnet20": Model(resnet20, images(32, 32, 32, 3), "ResNet-20, 32×32×3, batch 32"),
    "lstm": Model(lstm, images(LSTM["batch"], LSTM["steps"], LSTM["units"]), "LSTM 256, 35 steps, batch 64"),
    "embedding": Model(embedding, lambda random: [random.randint(0, EMBEDDING["rows"], EMBEDDING["batch"]).astype(np.int32)],
                       "embedding 1M×64, batch 4096, sparse update"),
    "tiny": Model(tiny, images(4, 8), "linear 8-10, batch 4"),
}


def inputs(model):
    return MODELS[model].inputs(np.random.RandomState(0))


def build(model, data_device=None):
    """The loss of a model on a batch that lies in local variables of the device, so that no step feeds and none can fold it."""
    values = []
    with tf.device(data_device):
        for i, value in enumerate(inputs(model)):
            values.append(tf.get_variable("%s_input%d" % (model, i), initializer=value, trainable=False, use_resource=True,
                                          collections=[tf.GraphKeys.LOCAL_VARIABLES]))
    with tf.variable_scope(model):
        loss = MODELS[model].build(*[v.read_value() for v in values])
    return Data(values, tf.group(*[v.initializer for v in values], name="load_data")), loss
