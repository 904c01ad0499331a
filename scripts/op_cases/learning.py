"""Learning without gradients: clusters, linear models by dual coordinates, vectors of words."""
import numpy as np
import tensorflow as tf
from tensorflow.core.framework import attr_value_pb2

from .files import make_files
from .table import Call, cases, program

v1, raw = tf.compat.v1, tf.raw_ops

I64 = np.int64


@cases("KMC2ChainInitialization", gradient=False)
def kmc2(c):
    for seed in (0, 1, 12345, -7):
        for distances in (c.values((30,), 0, 9), c.values((1,), 0, 9), np.zeros(5, np.float32), np.float32([1, np.nan, 2, np.inf, 3])):
            yield Call(distances, I64(seed))
    yield Call(c.values((0,)), I64(1))
    yield Call(c.values((2, 2)), I64(1))
    yield Call(c.values((2,)), I64([1]))


@cases("KmeansPlusPlusInitialization", gradient=False)
def kmeans(c):
    apart = np.concatenate([c.values((6, 3), -1, 1) + 40 * np.float32(i) for i in range(4)])
    for seed in (0, 3, 99):
        for count, retries in ((1, 0), (4, 0), (4, 1), (4, 3), (4, -1), (24, 2)):
            yield Call(apart, I64(count), I64(seed), I64(retries))
    yield Call(c.values((5, 0)), I64(1), I64(1), I64(0))
    yield Call(c.values((0, 2)), I64(1), I64(1), I64(0))
    yield Call(apart, I64(0), I64(1), I64(0))
    yield Call(apart, I64(25), I64(1), I64(0))
    yield Call(apart[0], I64(1), I64(1), I64(0))
    for wrong in range(1, 4):
        yield Call(apart, *[I64([1]) if i == wrong else I64(1) for i in (1, 2, 3)])


@cases("NearestNeighbors", gradient=False)
def nearest(c):
    for points, centers, dims in ((5, 7, 3), (1, 1, 1), (40, 9, 17), (3, 1100, 2), (2, 4, 0)):
        x, y = c.values((points, dims)), c.distinct((centers, dims))
        for k in (0, 1, 3, centers, centers + 5) if centers < 100 else (1, 4):
            yield Call(x, y, I64(k))
    x = c.values((4, 3))
    yield Call(x, x[:0], I64(2))
    yield Call(x, x[[0, 1, 0, 1]], I64(1))
    yield Call(x, x[[0, 1, 0, 1]], I64(4))
    yield Call(x[:0], x, I64(1))
    yield Call(x, x[:, :2], I64(1))
    yield Call(x[0], x, I64(1))
    yield Call(x, x[0], I64(1))
    yield Call(x, x, I64([1]))


@cases("SdcaFprint", gradient=False)
def fprint(c):
    yield Call(np.array([b"abcdefghijklmnopqrstuvwxyz0123456789"[:n] for n in range(37)], object))
    yield Call(np.array([bytes((i * 7 + n) % 256 for i in range(n)) for n in (40, 64, 100, 127, 128, 143, 144, 145, 160, 175, 200, 256, 272, 300, 1000)], object))
    yield Call(np.zeros((0,), object))
    yield Call(np.array(b"a", object))


def sdca(c, **more):
    adaptive = {"adaptative" if c.op == "SdcaOptimizer" else "adaptive": more.pop("adaptive", False)}
    return {"l1": 0.0, "l2": 1.0, "num_loss_partitions": 1, "num_inner_iterations": 1, **adaptive, **more}


@cases("SdcaOptimizer SdcaOptimizerV2", types={"*": []}, gradient=False)
def sdca_optimizer(c):
    """Examples are taken in a random order: with more than one, none shares a feature with another."""
    f, i = np.float32, np.int64
    for loss in ("logistic_loss", "squared_loss", "hinge_loss", "smooth_hinge_loss", "poisson_loss"):
        for label, weight, dual in ((1, 1, 0), (0, 2.5, 0.25), (1, 0.5, 0.75), (0, 1, -0.5)):
            for adaptive, l1, l2, partitions in ((False, 0.0, 1.0, 1), (True, 0.25, 0.5, 3)):
                yield Call([i([0, 0, 0])], [i([3, 0, 2])], [f([1.5, -2, 0.5])], [f([[0.5, -1]]), f([[2.0]])], f([weight]), f([label]),
                           [i([0, 2, 3])], [f([0.5, -0.125, 0])], [f([0.75, 0.1]), f([-0.25])], f([[dual, 0, 0, 0]]), loss_type=loss, num_sparse_features=1,
                           num_sparse_features_with_values=1, num_dense_features=2, **sdca(c, adaptive=adaptive, l1=l1, l2=l2, num_loss_partitions=partitions))
        yield Call([i([0, 0, 2]), i([1])], [i([0, 1, 2]), i([4])], [], [], f([1, 2, 3]), f([1, 0, 1]), [i([0, 1, 2]), i([4])], [f([0, 0, 0]), f([0.5])], [],
                   np.zeros((3, 4), f), loss_type=loss, num_sparse_features=2, num_sparse_features_with_values=0, num_dense_features=0, **sdca(c))
    plain = {"loss_type": "logistic_loss", "num_sparse_features": 1, "num_sparse_features_with_values": 0, "num_dense_features": 0, **sdca(c)}
    state, one = np.zeros((1, 4), f), f([1])

    def sparse(examples, features, known=(0, 1), weights=(0, 0), labels=one, given=state, example_weights=one):
        return Call([i(examples)], [i(features)], [], [], example_weights, labels, [i(known)], [f(weights)], [], given, **plain)
    yield sparse([0], [2])
    yield sparse([0, 0], [1, 1])
    yield sparse([0], [0], labels=f([2]))
    yield sparse([0], [0], labels=f([1, 0]))
    yield sparse([0], [0], given=np.zeros((4,), f))
    yield sparse([0], [0], given=np.zeros((2, 4), f))
    yield sparse([], [], given=np.zeros((0, 4), f), labels=f([]), example_weights=f([]))
    dense = {**plain, "num_sparse_features": 0, "num_dense_features": 1}
    yield Call([], [], [], [f([[1, 2, 3]])], one, one, [], [], [f([1, 2])], state, **dense)
    yield Call([], [], [], [f([1, 2])], one, one, [], [], [f([1, 2])], state, **dense)
    yield Call([], [], [], [f([[1, 2]])], one, f([-1]), [], [], [f([1, 2])], state, **{**dense, "loss_type": "poisson_loss"})
    yield Call([], [], [], [], one, one, [], [], [], state, **{**dense, "num_dense_features": 0})


@program("SdcaShrinkL1")
def sdca_shrink(p):
    values = [p.values((2, 3)), p.values((4,)), p.values(())]
    variables = [v1.Variable(v, use_resource=False) for v in values]
    init, shrink = v1.global_variables_initializer(), raw.SdcaShrinkL1(weights=[v._ref() for v in variables], l1=0.75, l2=0.5)
    p.run(targets=[shrink])
    p.run(targets=[init])
    p.run(targets=[shrink])
    p.run([v.value() for v in variables])


WORDS = ["a"] * 40 + ["bc"] * 21 + ["def"] * 13 + ["g"] * 8 + ["rare"] * 3 + ["once"]


def skipgram(p, name, **more):
    def attr(value):
        kind = {str: "s", int: "i", float: "f"}[type(value)]
        return attr_value_pb2.AttrValue(**{kind: value.encode() if kind == "s" else value})
    attrs = {"filename": name, "batch_size": 7, "window_size": 2, "min_count": 0, "subsample": 0.0, **more}
    types = [tf.string, tf.int32, tf.int64, tf.int32, tf.int64, tf.int32, tf.int32]
    return list(p.graph.create_op("Skipgram", [], types, attrs={k: attr(v) for k, v in attrs.items()}, name="skipgram").outputs)


@program("Skipgram", version=18)
def skipgrams(p):
    """How often a word occurs tells it from all others: in what order TensorFlow keeps equal ones depends on its hashes."""
    write = make_files(p)
    words = np.random.default_rng(5).permutation(WORDS)
    few = skipgram(p, "@TMP@/few")
    all_of, larger, most = (skipgram(p, "@TMP@/words", **more) for more in ({}, {"batch_size": 1700, "window_size": 5, "subsample": 0.05}, {"min_count": 10, "subsample": 0.5}))
    missing = skipgram(p, "@TMP@/missing")
    write(b"@TMP@/words", b" \n".join(w.encode() for w in words))
    write(b"@TMP@/few", b"one two  three\tfour")
    for outputs in (all_of, larger, most):
        for _ in range(3):
            p.run(outputs)
    p.run(few)
    p.run(missing)


@program("NegTrain", version=18)
def neg_train(p):
    """With negative samples the outcome is random; without them it is not."""
    w_in, w_out = (v1.Variable(p.values((4, 3)), use_resource=False) for _ in range(2))
    narrow = v1.Variable(p.values((4, 2)), use_resource=False)
    examples, labels, rate = p.placeholder("examples", tf.int32), p.placeholder("labels", tf.int32), p.placeholder("rate", tf.float32)

    def op(a, b, counts=(5, 3, 2, 1)):
        attrs = {"vocab_count": attr_value_pb2.AttrValue(list=attr_value_pb2.AttrValue.ListValue(i=counts)), "num_negative_samples": attr_value_pb2.AttrValue(i=0)}
        return p.graph.create_op("NegTrain", [a._ref(), b._ref(), examples, labels, rate], [], attrs=attrs, name="train")
    train, uneven, few = op(w_in, w_out), op(w_in, narrow), op(w_in, w_out, (1, 2))
    init = v1.global_variables_initializer()
    pairs = {examples: np.int32([0, 2, 3, 2]), labels: np.int32([1, 0, 3, 1]), rate: np.float32(0.5)}
    p.run(feeds=pairs, targets=[train])
    p.run(targets=[init])
    for _ in range(2):
        p.run(feeds=pairs, targets=[train])
        p.run([w_in.value(), w_out.value()])
    p.run(feeds=pairs, targets=[uneven])
    p.run(feeds=pairs, targets=[few])
    p.run(feeds={**pairs, labels: np.int32([1])}, targets=[train])
    p.run(feeds={**pairs, examples: np.int32([[1]]), labels: np.int32([[1]])}, targets=[train])
    p.run(feeds={**pairs, rate: np.float32([0.5])}, targets=[train])
