"""Tensors large enough for the blocked and parallel code: made in the graph from a small feed, compared by a sample and sums."""
import numpy as np
import tensorflow as tf

from .table import program

v1, raw = tf.compat.v1, tf.raw_ops
FLOATS = ["float32", "float64", "float16", "bfloat16"]
NUMBERS = FLOATS + ["int32", "int64", "int16", "int8", "uint8", "complex64"]


def spread(p, shape, seed, low=-2.0, high=2.0):
    """Values that differ but need no feed: multiples of the golden ratio, modulo 1."""
    count = int(np.prod(shape))
    part = tf.math.floormod(tf.cast(tf.range(count), tf.float64) * 0.6180339887498949 + seed, 1.0)
    x = tf.reshape(part * (high - low) + low, shape)
    return tf.cast(tf.math.round(x * 64) / 64 if p.dtype.is_floating or p.dtype.is_complex else x * 9, p.dtype)


def sample(y):
    """Every 61st element, and the shape."""
    flat = tf.reshape(y, [-1])
    return [flat[::61], tf.shape(y)]


def check(p, ys):
    fetches = [f for y in ys for f in sample(y)]
    seed = p.seed
    for value in (0.25, 0.7):
        p.run(fetches, {seed: np.float64(value)})


def large(ops, types=FLOATS, **tolerance):
    """function(p, make) gives the tensors to look at; make(shape, low, high) makes inputs."""
    def register(function):
        def run(p):
            p.seed = p.placeholder("seed", tf.float64, [])
            number = iter(range(99))
            make = lambda shape, low=-2.0, high=2.0: spread(p, shape, p.seed + 0.137 * next(number), low, high)
            check(p, function(p, make))
        run.__name__ = "large_" + function.__name__
        program(ops, types=types, **tolerance)(run)
        return function
    return register


@large("Exp Log Tanh Sigmoid Sqrt Rsqrt Softplus Relu Erf Sin Square Neg")
def maps(p, make):
    x, y = make((37, 601)), make((37, 601), 0.25, 4)
    return [tf.exp(x), tf.math.log(y), tf.tanh(x), tf.sigmoid(x), tf.sqrt(y), tf.math.rsqrt(y), tf.nn.softplus(x), tf.nn.relu(x), tf.math.erf(x), tf.sin(x), tf.square(x), -x]


@large("AddV2 Sub Mul Maximum Equal", [t for t in NUMBERS if t != "complex64"])
def pairs(p, make):
    a, b, row, column = make((37, 601)), make((37, 601)), make((601,)), make((37, 1))
    return [a + b, a - row, a * column, tf.maximum(row, column), tf.cast(tf.equal(a, b), tf.int32), row + a, column * row, tf.constant(3, p.dtype) * a]


@large("AddV2 Mul Sub RealDiv", ["complex64", "complex128"])
def complex_pairs(p, make):
    a, b = make((37, 301)), make((37, 301), 0.5, 2)
    return [a + b, a * b, a - b, a / b]


@large("Sum Max Min Mean ArgMax", ["float32", "float64", "int32", "int64"], rtol=1e-4, atol=1e-2)
def reductions(p, make):
    x, small = make((61, 401)), make((31, 17, 29))
    return [tf.reduce_sum(x, 0), tf.reduce_sum(x, 1), tf.reduce_max(x, 0), tf.reduce_max(x, 1), tf.reduce_sum(x), tf.reduce_sum(small, [0, 2]), tf.reduce_sum(small, 1),
            tf.reduce_min(small, [1, 2]), tf.argmax(x, 0), tf.argmax(x, 1), tf.reduce_mean(small, [0, 1])]


@large("Transpose Pad Tile ConcatV2 Slice StridedSlice ReverseV2 Pack Unpack", NUMBERS)
def moves(p, make):
    x, cube = make((97, 203)), make((19, 23, 31))
    return [tf.transpose(x), tf.transpose(cube, [2, 0, 1]), tf.transpose(cube, [1, 0, 2]), tf.transpose(cube, [0, 2, 1]), tf.pad(x, [[3, 5], [1, 2]]), tf.tile(x, [2, 3]),
            tf.concat([x, x[:, :50], x], 1), tf.concat([x, x], 0), x[5:80:3, ::-2], tf.reverse(cube, [0, 2]), tf.stack([x, x], 1), tf.unstack(cube, axis=1)[7],
            tf.slice(cube, [2, 3, 4], [15, 11, 20])]


@large("MatMul BatchMatMulV2 BiasAdd Softmax LogSoftmax", FLOATS, rtol=1e-3, atol=1e-3)
def products(p, make):
    a, b, c = make((67, 130), -1, 1), make((130, 71), -1, 1), make((5, 33, 40), -1, 1)
    return [tf.matmul(a, b), tf.matmul(b, a, transpose_a=True, transpose_b=True), tf.matmul(c, c, transpose_b=True), tf.nn.bias_add(a, make((130,))), tf.nn.softmax(a),
            tf.nn.log_softmax(a)]


@large("Conv2D Conv2DBackpropInput Conv2DBackpropFilter MaxPool AvgPool MaxPoolGrad AvgPoolGrad", ["float32", "float64"], rtol=1e-3, atol=1e-3)
def convolutions(p, make):
    x, f = make((2, 21, 19, 16), -1, 1), make((3, 3, 16, 24), -1, 1)
    y = tf.nn.conv2d(x, f, 1, "SAME")
    z = tf.nn.conv2d(x, f, 2, "VALID")
    m, a = tf.nn.max_pool2d(x, 3, 2, "SAME"), tf.nn.avg_pool2d(x, 2, 2, "VALID")
    return [y, z, *tf.gradients([y, z], [x, f]), m, a, *tf.gradients([m, a], x)]


@large("GatherV2 ScatterNd UnsortedSegmentSum SegmentSum Cumsum TopKV2 Unique Where OneHot", ["float32", "int32", "int64"], rtol=1e-4, atol=1e-3)
def lookups(p, make):
    x = make((211, 67))
    at = tf.cast(tf.math.floormod(tf.range(1500) * 77, 211), tf.int32)
    ids = tf.sort(at)
    vector = tf.reshape(x, [-1])
    found = [tf.gather(x, at), tf.gather(x, at[:90] % 67, axis=1), tf.scatter_nd(at[:, None], tf.gather(x, at), [300, 67]), tf.math.unsorted_segment_sum(tf.gather(x, at), at, 211),
             tf.math.segment_sum(tf.gather(x, at), ids), tf.cumsum(x, 0), tf.cumsum(x, 1, exclusive=True, reverse=True), tf.math.top_k(vector, 400).values,
             tf.unique(tf.cast(vector * 8, tf.int32))[0], tf.where(vector > 1), tf.one_hot(at, 211)]
    return found + ([raw.SparseSegmentSum(data=x, indices=at, segment_ids=ids)] if p.dtype.is_floating else [])


@large("FusedBatchNormV3 FusedBatchNormGradV3 SoftmaxCrossEntropyWithLogits SparseSoftmaxCrossEntropyWithLogits LRN", ["float32"], rtol=1e-3, atol=1e-3)
def normalisation(p, make):
    x, scale, offset = make((4, 17, 13, 24)), make((24,), 0.5, 2), make((24,))
    y, mean, variance = v1.nn.fused_batch_norm(x, scale, offset)
    logits = make((150, 90))
    loss = tf.nn.softmax_cross_entropy_with_logits(labels=tf.nn.softmax(make((150, 90))), logits=logits)
    sparse = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.math.floormod(tf.range(150) * 7, 90), logits=logits)
    return [y, mean, variance, *tf.gradients(y * x, [x, scale, offset]), loss, *tf.gradients(loss, logits), sparse, *tf.gradients(sparse, logits), tf.nn.lrn(x, 3)]


@large("StatelessRandomUniformV2 StatelessRandomNormalV2 StatelessTruncatedNormalV2", FLOATS)
def random_numbers(p, make):
    s, d = [3, 9], p.dtype
    return [f([20011], s, dtype=d) for f in (tf.random.stateless_uniform, tf.random.stateless_normal, tf.random.stateless_truncated_normal)] + [make((2,))]


@large("Cast", ["float32", "float64", "int32", "int64", "uint8", "float16", "bfloat16"])
def casts(p, make):
    x = make((23, 501), 0, 2)
    return [tf.cast(x, t) for t in ("float32", "float64", "int32", "int64", "uint8", "float16", "bfloat16", "bool", "complex64")]
