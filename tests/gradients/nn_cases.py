"""Graphs of neural networks: activations, losses, convolutions, pools, normalisation; variables."""
import numpy as np
import tensorflow.compat.v1 as tf

from gradient_case import case, floats, values

ACTIVATIONS = {"Relu": tf.nn.relu, "Relu6": lambda x: tf.nn.relu6(x * 9), "Elu": tf.nn.elu, "Selu": tf.nn.selu, "LeakyRelu": lambda x: tf.nn.leaky_relu(x, .3),
               "Softplus": tf.nn.softplus, "Softsign": tf.nn.softsign, "Softmax": tf.nn.softmax, "LogSoftmax": tf.nn.log_softmax}


def once(function):
    def build():
        x = floats(2, 5)
        return function(x), [x]
    return build


def twice(function):
    def build():
        x = floats(2, 5)
        first = tf.gradients(function(x), x, grad_ys=x * 2)[0]
        return first * first, [x]
    return build


for op, function in ACTIVATIONS.items():
    case("nn_" + op)(once(function))
    if op != "Softsign":
        case("nn_second_" + op)(twice(function))


@case()
def softplus_grad_twice():
    x, dy = floats(4), floats(4, seed=1)
    return tf.raw_ops.SoftplusGrad(gradients=dy, features=x), [x, dy]


@case()
def biases():
    x, c, v = floats(2, 3, 4), floats(4), floats(3, seed=2)
    return [tf.nn.bias_add(x, c), tf.nn.bias_add(tf.reshape(x, [2, 3, 2, 2]), v, data_format="NCHW"), tf.raw_ops.BiasAddV1(value=x, bias=c)], [x, c, v]


@case()
def biases_twice():
    x, c, v = floats(2, 3, 4), floats(4), floats(3, seed=2)
    ys = [tf.nn.bias_add(x, c), tf.nn.bias_add(tf.reshape(x, [2, 3, 2, 2]), v, data_format="NCHW")]
    return tf.gradients([tf.pow(y, 3) for y in ys], [c, v]), [x, c, v]


@case()
def losses():
    x, labels = floats(3, 4), tf.nn.softmax(floats(3, 4, seed=1))
    return [tf.nn.softmax_cross_entropy_with_logits_v2(labels=labels, logits=x), tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[1, 3, 0], logits=x)], [x, labels]


@case()
def losses_twice():
    x, labels = floats(3, 4), tf.nn.softmax(floats(3, 4, seed=1))
    ys = [tf.nn.softmax_cross_entropy_with_logits_v2(labels=labels, logits=x), tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[1, 3, 0], logits=x)]
    return tf.gradients([tf.square(y) for y in ys], x), [x]


@case()
def top_k():
    x = floats(2, 3, 5)
    return tf.nn.top_k(x, 2)[0], [x]


@case()
def approx_top_k():
    x = floats(2, 3, 5, dtype=np.float32)
    return tf.raw_ops.ApproxTopK(input=x, k=2).values, [x]


@case()
def lrn():
    x = floats(1, 2, 2, 8, dtype=np.float32)
    return tf.nn.lrn(x, 2, .5, .3, .4), [x]


@case(rtol=1e-4)
def ctc():
    x = floats(5, 2, 4, dtype=np.float32)
    labels = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], [0, 1, 2], [2, 2])
    return tf.nn.ctc_loss(labels, x, [5, 4]), [x]


@tf.RegisterGradient("OwnBlockLSTMV2")
def block_lstm_v2_grad(op, *grads):
    """TensorFlow's takes the gates for those of BlockLSTM, which are in another order."""
    inputs = dict(zip("seq_len_max x cs_prev h_prev w wci wcf wco b".split(), op.inputs))
    return (None, *tf.raw_ops.BlockLSTMGradV2(**inputs, **dict(zip("i cs f o ci co h".split(), op.outputs)), cs_grad=grads[1], h_grad=grads[6], use_peephole=True))


def lstm(op):
    def build():
        xs = [floats(*shape, dtype=np.float32, seed=i) for i, shape in enumerate([(3, 2, 3), (2, 4), (2, 4), (7, 16), (4,), (4,), (4,), (16,)])]
        with tf.get_default_graph().gradient_override_map({"BlockLSTMV2": "OwnBlockLSTMV2"}):
            found = op(seq_len_max=np.int64(3), **dict(zip("x cs_prev h_prev w wci wcf wco b".split(), xs)), use_peephole=True)
        return [found.cs, found.h], xs
    return build


case("block_lstm", rtol=1e-4)(lstm(tf.raw_ops.BlockLSTM))
case("block_lstm_v2", rtol=1e-4)(lstm(tf.raw_ops.BlockLSTMV2))


def conv(function, *shapes, dtype=np.float64):
    def build():
        xs = [floats(*s, dtype=dtype, seed=i) for i, s in enumerate(shapes)]
        return function(*xs), xs
    return build


def conv_twice(function, *shapes):
    def build():
        xs = [floats(*s, seed=i) for i, s in enumerate(shapes)]
        first = tf.gradients(tf.square(function(*xs)), xs)
        return [tf.square(g) for g in first], xs
    return build


def same(x, w):
    return tf.nn.conv2d(x, w, strides=[1, 2, 2, 1], padding="SAME")


def explicit(x, w):
    return tf.nn.conv2d(x, w, strides=1, padding=[[0, 0], [1, 0], [2, 1], [0, 0]])


def depthwise(x, w):
    return tf.nn.depthwise_conv2d(x, w, strides=[1, 1, 1, 1], padding="SAME")


def conv3d(x, w):
    return tf.nn.conv3d(x, w, strides=[1, 1, 2, 1, 1], padding="SAME")


for function in (same, explicit):
    case("conv2d_" + function.__name__)(conv(function, (2, 6, 5, 3), (3, 2, 3, 4)))
case("conv2d_single", rtol=1e-4)(conv(same, (2, 6, 5, 3), (3, 2, 3, 4), dtype=np.float32))
case("conv2d_twice")(conv_twice(same, (2, 5, 4, 2), (2, 2, 2, 3)))
case("conv2d_depthwise")(conv(depthwise, (2, 5, 4, 3), (2, 2, 3, 2)))
case("conv2d_depthwise_twice")(conv_twice(depthwise, (1, 4, 4, 2), (2, 2, 2, 2)))
case("conv3d")(conv(conv3d, (1, 3, 4, 4, 2), (2, 2, 2, 2, 3)))
case("conv3d_twice")(conv_twice(conv3d, (1, 3, 3, 3, 2), (2, 2, 2, 2, 2)))
case("conv2d_transposed")(conv(lambda x, w: tf.nn.conv2d_transpose(x, w, [2, 8, 6, 3], strides=2), (2, 4, 3, 4), (3, 2, 3, 4)))
case("dilation")(conv(lambda x, w: tf.nn.dilation2d(x, w, strides=[1, 1, 1, 1], rates=[1, 1, 1, 1], padding="SAME"), (1, 5, 5, 2), (2, 2, 2)))


@case()
def pools():
    x = floats(2, 5, 6, 3)
    return [tf.nn.max_pool2d(x, 2, 2, "SAME"), tf.nn.avg_pool2d(x, 3, 2, "VALID"), tf.nn.max_pool_with_argmax(x, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")[0],
            tf.raw_ops.MaxPoolV2(input=x, ksize=[1, 3, 3, 1], strides=[1, 2, 2, 1], padding="VALID")], [x]


@case(rtol=1e-5)
def pools_3d():
    x = floats(2, 3, 4, 4, 2, dtype=np.float32)
    return [tf.nn.max_pool3d(x, 2, 2, "SAME"), tf.nn.avg_pool3d(x, 2, 1, "VALID")], [x]


@case()
def avg_pool_twice():
    x = floats(2, 5, 6, 3)
    return tf.gradients(tf.pow(tf.nn.avg_pool2d(x, 3, 2, "VALID"), 3), x), [x]


@case(rtol=1e-5)
def avg_pool_3d_twice():
    x = floats(2, 3, 4, 4, 2, dtype=np.float32)
    return tf.gradients(tf.pow(tf.nn.avg_pool3d(x, 2, 1, "VALID"), 3), x), [x]


@case()
def max_pool_twice():
    x = floats(2, 5, 6, 3)
    ys = [tf.nn.max_pool2d(x, 2, 2, "SAME"), tf.raw_ops.MaxPoolV2(input=x, ksize=[1, 3, 3, 1], strides=[1, 2, 2, 1], padding="VALID")]
    return tf.gradients([tf.pow(y, 3) for y in ys], x), [x]


@case(rtol=1e-5)
def max_pool_3d_twice():
    x = floats(2, 3, 4, 4, 2, dtype=np.float32)
    return tf.gradients(tf.pow(tf.nn.max_pool3d(x, 2, 2, "SAME"), 3), x), [x]


@case(rtol=1e-5)
def max_pool_third_time():
    x, g = floats(2, 4, 4, 2, dtype=np.float32), floats(2, 4, 4, 2, dtype=np.float32, seed=1)
    y = tf.nn.max_pool2d(x, 2, 2, "SAME")
    x3, g3 = floats(1, 4, 4, 4, 2, dtype=np.float32), floats(1, 4, 4, 4, 2, dtype=np.float32, seed=1)
    y3 = tf.nn.max_pool3d(x3, 2, 2, "SAME")
    return [tf.raw_ops.MaxPoolGradGrad(orig_input=x, orig_output=y, grad=g, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME"),
            tf.raw_ops.MaxPool3DGradGrad(orig_input=x3, orig_output=y3, grad=g3, ksize=[1, 2, 2, 2, 1], strides=[1, 2, 2, 2, 1], padding="SAME")], [g, g3]


def batch_norm(version, training, data_format, again, dtype=np.float32):
    def build():
        channels_last = data_format == "NHWC"
        x = floats(2, 3, 4, 5, dtype=dtype)
        c = 5 if channels_last else 3
        scale, offset = floats(c, low=.5, high=1.5, dtype=np.float32), floats(c, dtype=np.float32, seed=1)
        mean, variance = (tf.constant([], tf.float32),) * 2 if training else (floats(c, dtype=np.float32, seed=2), floats(c, low=.5, high=1.5, dtype=np.float32, seed=3))
        op = {1: tf.raw_ops.FusedBatchNorm, 2: tf.raw_ops.FusedBatchNormV2, 3: tf.raw_ops.FusedBatchNormV3}[version]
        if not channels_last:  # TensorFlow's CPU kernel wants channels last
            x = tf.transpose(x, [0, 2, 3, 1])
        y = op(x=x, scale=scale, offset=offset, mean=mean, variance=variance, is_training=training)[0]
        if not again:
            return y, [x, scale, offset]
        first = tf.gradients(tf.pow(y, 3), [x, scale, offset])
        return [tf.square(g) for g in first], [x, scale]
    return build


for version in (1, 2, 3):
    case("batch_norm_%d" % version, rtol=2e-4, atol=1e-5)(batch_norm(version, True, "NHWC", False))
    case("batch_norm_frozen_%d" % version, rtol=2e-4, atol=1e-5)(batch_norm(version, False, "NHWC", False))
    case("batch_norm_twice_%d" % version, rtol=1e-3, atol=1e-2)(batch_norm(version, True, "NHWC", True))
    case("batch_norm_frozen_twice_%d" % version, rtol=1e-3, atol=1e-2)(batch_norm(version, False, "NHWC", True))


@case()
def reference_variable():
    v = tf.get_variable("v", initializer=values(3, 2), use_resource=False)
    x = floats(4, 3)
    return tf.square(tf.matmul(x, v)), [v, v._ref(), x]


@case()
def resource_variable():
    v = tf.get_variable("v", initializer=values(3, 2), use_resource=True)
    x = floats(4, 3)
    return tf.square(tf.matmul(x, v)), [v, x]


@case()
def fractional_pools():
    x = floats(2, 7, 6, 2)
    found = [f(x, [1.0, 1.5, 1.4, 1.0], seed=3, seed2=4, deterministic=True, overlapping=o) for o in (False, True) for f in (tf.nn.fractional_max_pool, tf.nn.fractional_avg_pool)]
    return [y[0] for y in found], [x]


@case()
def isotonic_regression():
    x = floats(3, 6)
    return tf.raw_ops.IsotonicRegression(input=x, output_dtype=tf.float64)[0], [x]
