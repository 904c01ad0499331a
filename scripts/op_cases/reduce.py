"""Reductions, scans, arg-max and counts."""
import numpy as np
import tensorflow as tf

from .table import PLAIN, Call, cases, program

I32 = np.int32


def axes(c, *values):
    return np.array(values[0] if len(values) == 1 and isinstance(values[0], int) else list(values), c.type("Tidx") if "Tidx" in c.types else I32)


def reduction(low, high):
    def make(c):
        v = lambda *shape: c.values(shape, low, high)
        yield Call(v(2, 3), axes(c, 0), keep_dims=False)
        yield Call(v(2, 3), axes(c, 1, 0), keep_dims=True)
        yield Call(v(2, 3, 4), axes(c, -1, 0), keep_dims=False)
        yield Call(v(), axes(c, *()), keep_dims=False)
        if not (c.op == "Mean" and c.is_complex):  # TensorFlow says 0, where real numbers give NaN
            yield Call(v(0, 3), axes(c, -2), keep_dims=False, grad=c.op != "Mean")
        if not c.full:
            return
        yield Call(v(2, 3, 4), axes(c, 1), keep_dims=True)
        yield Call(v(2, 3, 4, 2), axes(c, 0, 2), keep_dims=False)
        yield Call(v(2, 3, 4, 2), axes(c, 1, 3), keep_dims=False)
        yield Call(v(2, 3), axes(c, *()), keep_dims=False)
        yield Call(v(3, 0), axes(c, 0), keep_dims=False)
        yield Call(v(1, 1, 1), axes(c, 0, 1, 2), keep_dims=False)
        yield Call(v(37), axes(c, 0), keep_dims=False)
        yield Call(v(3, 41), axes(c, 1), keep_dims=False)
        yield Call(v(41, 3), axes(c, 0), keep_dims=False)
        yield Call(v(2, 3), axes(c, 2), keep_dims=False)
        yield Call(v(2, 3), axes(c, -3), keep_dims=False)
        yield Call(v(2, 3), axes(c, 0, 0), keep_dims=False)
        if c.is_float:
            yield Call(np.array([[np.nan, 1, np.inf], [2, -np.inf, 3]], c.T), axes(c, 1), keep_dims=False, grad=False)
            yield Call(np.array([[np.nan, 1, np.inf], [2, -np.inf, 3]], c.T), axes(c, 0), keep_dims=False, grad=False)
    return make


cases("Sum Mean Max Min EuclideanNorm", atol=2e-5)(reduction(-4, 4))
cases("Prod")(reduction(0.5, 2))


@cases("Any All")
def any_all(c):
    v = lambda *shape: c.values(shape, dtype=bool)
    for shape, over in (((2, 3), (0,)), ((2, 3), (1,)), ((3, 2, 2), (0, -1)), ((), ()), ((0, 2), (0,)), ((2, 3), (2,)), ((37,), (0,))):
        yield Call(v(*shape), axes(c, *over), keep_dims=False)
    yield Call(v(2, 3), axes(c, 0), keep_dims=True)
    yield Call(v(2, 3), np.array(1, c.type("Tidx")), keep_dims=True)


@cases("ArgMax ArgMin", types={"Tidx": ["int32", "int64"], "output_type": ["int64", "int32", "int16", "uint16"]})
def arg_max(c):
    axis = lambda a: np.array(a, c.type("Tidx"))
    yield Call(c.values((2, 3)), axis(0))
    yield Call(c.values((2, 3, 4), 0, 3), axis(-1))
    yield Call(c.values((5,)), axis(0))
    if c.full:
        yield Call(c.values((2, 3, 4), 0, 3), axis(1))
        yield Call(c.values((0, 3)), axis(1))
        yield Call(c.values((3, 0)), axis(0))
        yield Call(c.values((3, 0)), axis(1))
        yield Call(c.values((2, 3)), axis(2))
        yield Call(c.values((2, 3)), axis(-3))
        yield Call(c.values((1, 2, 1, 2, 2)), axis(-2))
        if c.is_float:
            yield Call(np.array([[np.nan, 1], [2, np.inf]], c.T), axis(1))


@cases("Cumsum Cumprod", atol=1e-5)
def cumulative(c):
    axis = lambda a: np.array(a, c.type("Tidx"))
    for exclusive in (False, True):
        for reverse in (False, True):
            yield Call(c.values((2, 4), 1, 3), axis(1), exclusive=exclusive, reverse=reverse)
            if c.full:
                yield Call(c.values((3, 2, 2), 1, 3), axis(-3), exclusive=exclusive, reverse=reverse)
                yield Call(c.values((0, 2)), axis(0), exclusive=exclusive, reverse=reverse)
    yield Call(c.values((3,)), axis(1))
    yield Call(c.values(()), axis(0))


@cases("CumulativeLogsumexp")
def cumulative_logsumexp(c):
    axis = lambda a: np.array(a, c.type("Tidx"))
    for exclusive in (False, True):
        for reverse in (False, True):
            yield Call(c.values((2, 4)), axis(1), exclusive=exclusive, reverse=reverse, grad=False)
            yield Call(c.values((4, 2)), axis(0), exclusive=exclusive, reverse=reverse, grad=False)
    yield Call(c.values((4,), 80, 90), axis(0), grad=False)
    yield Call(c.values((3,)), axis(1), grad=False)


@cases("Bincount")
def bincount(c):
    yield Call(c.ints((7,), 0, 5), np.int32(5), np.zeros((0,), c.T))
    yield Call(c.ints((7,), 0, 9), np.int32(5), np.zeros((0,), c.T))
    yield Call(c.ints((2, 3), 0, 5), np.int32(5), c.values((2, 3)))
    yield Call(c.ints((0,)), np.int32(2), np.zeros((0,), c.T))
    yield Call(np.array([-1, 2], I32), np.int32(5), np.zeros((0,), c.T))
    yield Call(c.ints((3,), 0, 5), np.int32(-1), np.zeros((0,), c.T))
    yield Call(c.ints((3,), 0, 5), np.int32(5), c.values((2,)))
    yield Call(c.ints((3,), 0, 5), np.array([5], I32), np.zeros((0,), c.T))


@cases("DenseBincount")
def dense_bincount(c):
    i = c.type("Tidx")
    for binary in (False, True):
        yield Call(c.ints((7,), 0, 5, i), np.array(5, i), np.zeros((0,), c.T), binary_output=binary)
        yield Call(c.ints((2, 6), 0, 7, i), np.array(5, i), np.zeros((0,), c.T), binary_output=binary)
    yield Call(c.ints((2, 3), 0, 5, i), np.array(5, i), c.values((2, 3)))
    yield Call(np.array([-1, 2], i), np.array(5, i), np.zeros((0,), c.T))
    yield Call(c.ints((2, 2, 2), 0, 5, i), np.array(5, i), np.zeros((0,), c.T))
    yield Call(c.ints((3,), 0, 5, i), np.array(-2, i), np.zeros((0,), c.T))


@cases("SparseBincount", gradient=False)
def sparse_bincount(c):
    i, none = c.type("Tidx"), np.zeros((0,), c.T)
    n, one, two = np.array(4, i), np.array([[0], [2], [1]], np.int64), np.array([[0, 0], [1, 0], [0, 2]], np.int64)
    three, matrix, values = np.array([3], np.int64), np.array([2, 3], np.int64), np.array([1, 3, 1], i)
    for binary in (False, True):
        yield Call(one, values, three, n, none, binary_output=binary)
        yield Call(one, values, three, n, c.values((3,)), binary_output=binary)
        yield Call(two, values, matrix, n, none, binary_output=binary)
        yield Call(two, values, matrix, n, c.values((3,)), binary_output=binary)
    yield Call(np.array([[0, 0, 1], [1, 1, 1]], np.int64), values[:2], np.array([2, 2, 2], np.int64), n, none)
    yield Call(two[:0], values[:0], matrix, n, none)
    for bad in (7, -7):
        yield Call(one, np.array([1, bad, 2], i), three, n, none)
        yield Call(two, np.array([1, bad, 2], i), matrix, n, none)
    yield Call(two, values, np.array([1, 3], np.int64), n, none)
    yield Call(-two, values, matrix, n, none)
    yield Call(one, values, three, np.array(-1, i), none)
    yield Call(one, values, three, n, c.values((2,)))
    yield Call(one, values[:2], three, n, none)
    yield Call(one.ravel(), values, three, n, none)
    yield Call(one, values, matrix, n, none)
    yield Call(one, values, three, np.array([4], i), none)


@cases("RaggedBincount", gradient=False)
def ragged_bincount(c):
    i, none = c.type("Tidx"), np.zeros((0,), c.T)
    n, values = np.array(4, i), np.array([1, 1, 2, 9, 0], i)
    for binary in (False, True):
        yield Call(np.array([0, 2, 2, 5], np.int64), values, n, none, binary_output=binary)
        yield Call(np.array([0, 2, 2, 5], np.int64), values, n, c.values((5,)), binary_output=binary)
    for splits in ([0, 5], [], [1, 5], [0, 4], [0, 3, 1, 5]):
        yield Call(np.array(splits, np.int64), values, n, none)
    yield Call(np.array([0], np.int64), values[:0], n, none)
    yield Call(np.array([0, 5], np.int64), -values, n, none)
    yield Call(np.array([0, 5], np.int64), values, -n, none)
    yield Call(np.array([0, 5], np.int64), values, np.array([4], i), none)


@cases("DenseCountSparseOutput", gradient=False)
def dense_count(c):
    none = np.zeros((0,), c.type("output_type"))
    for binary in (False, True):
        for least, most in ((-1, -1), (9, -1), (-1, 3), (9, 3), (0, 0)):
            yield Call(c.ints((7,), 0, 6, c.T), none, binary_output=binary, minlength=least, maxlength=most)
            yield Call(c.ints((2, 6), 0, 6, c.T), c.values((2, 6), dtype=none.dtype), binary_output=binary, minlength=least, maxlength=most)
    for shape in ((0,), (3, 0), (0, 3), (), (1, 1, 1)):
        yield Call(c.ints(shape, 0, 6, c.T), none, binary_output=False)
    yield Call(np.array([-1, 2], c.T), none, binary_output=False)
    yield Call(c.ints((3,), 0, 6, c.T), c.values((2,), dtype=none.dtype), binary_output=False)


@cases("SparseCountSparseOutput", gradient=False)
def sparse_count(c):
    none, i = np.zeros((0,), c.type("output_type")), lambda *a: np.array(a, np.int64)
    indices, values = i([0, 0], [0, 2], [2, 0], [1, 1]), np.array([3, 3, 0, 5], c.T)
    for binary in (False, True):
        for least, most in ((-1, -1), (9, -1), (-1, 4)):
            yield Call(indices, values, i(3, 3), none, binary_output=binary, minlength=least, maxlength=most)
            yield Call(indices, values, i(3, 3), c.values((4,), dtype=none.dtype), binary_output=binary, minlength=least, maxlength=most)
            yield Call(indices[:, :1], values, i(3), none, binary_output=binary, minlength=least, maxlength=most)
    yield Call(i([1, 0, 0], [1, 1, 1]), values[:2], i(2, 2, 2), none, binary_output=False)
    yield Call(indices[:0], values[:0], i(2, 3), none, binary_output=False)
    for shape in (i(0, 3), i(2, 3), i(3, -3), i(3), i(2**31, 3)):
        yield Call(indices, values, shape, none, binary_output=False)
    yield Call(indices[:0], values[:0], i(0, 3), none, binary_output=False)
    yield Call(indices, values[:3], i(3, 3), none, binary_output=False)
    yield Call(indices, -values, i(3, 3), none, binary_output=False)
    yield Call(indices, values, i(3, 3), c.values((3,), dtype=none.dtype), binary_output=False)
    yield Call(indices[0], values, i(3, 3), none, binary_output=False)


@cases("RaggedCountSparseOutput", gradient=False)
def ragged_count(c):
    none, values = np.zeros((0,), c.type("output_type")), np.array([3, 3, 0, 5], c.T)
    for binary in (False, True):
        for least, most in ((-1, -1), (9, -1), (-1, 4)):
            yield Call(np.array([0, 2, 2, 4], np.int64), values, none, binary_output=binary, minlength=least, maxlength=most)
            yield Call(np.array([0, 3, 4], np.int64), values, c.values((4,), dtype=none.dtype), binary_output=binary, minlength=least, maxlength=most)
    for splits in ([0], [], [1, 4], [0, 3], [0, 3, 1, 4]):
        yield Call(np.array(splits, np.int64), values, none, binary_output=False)
    yield Call(np.array([0, 4], np.int64), -values, none, binary_output=False)
    yield Call(np.array([0, 4], np.int64), values, c.values((3,), dtype=none.dtype), binary_output=False)


@cases("HistogramFixedWidth")
def histogram(c):
    yield Call(c.values((20,)), np.array([-2, 2], c.T), np.int32(5))
    yield Call(c.values((2, 3)), np.array([0, 3], c.T), np.int32(3))
    yield Call(c.values((0,)), np.array([0, 3], c.T), np.int32(3))
    yield Call(c.values((4,)), np.array([3, 1], c.T), np.int32(3))
    yield Call(c.values((4,)), np.array([0, 1], c.T), np.int32(0))
    yield Call(c.values((4,)), np.array([0, 1, 2], c.T), np.int32(2))
    yield Call(c.values((4,)), np.array([[0, 1]], c.T), np.int32(2))
    yield Call(c.values((4,)), np.array([3, 1], c.T), np.array([2], np.int32))


@cases("Bucketize")
def bucketize(c):
    yield Call(c.values((2, 4), -8, 8), boundaries=[-2.0, 0.0, 3.0])
    yield Call(c.values((), -8, 8), boundaries=[])
    yield Call(np.array([0, 3], c.T), boundaries=[0.0, 3.0])
    yield Call(c.values((2,)), boundaries=[3.0, 1.0])


@cases("TopKV2")
def top_k(c):
    n = lambda k: np.array(k, c.type("Tk"))
    for k, shape in ((2, (5,)), (3, (2, 4)), (0, (3,)), (4, (2, 2, 4)), (1, (2, 5)), (3, (0, 3))):
        yield Call(c.values(shape, 0, 4), n(k), sorted=True)
    yield Call(c.distinct((2, 9)), n(9), sorted=True)
    yield Call(c.values((3,)), n(4))
    yield Call(c.values(()), n(1))
    if c.full:
        yield Call(c.values((3,)), n(-1))
        yield Call(c.values((40,), 0, 9), n(17))
    yield Call(c.values((2, 70), 0, 40), n(70), grad=False)  # sorted in runs that are merged


@cases("InTopK InTopKV2", types={"T": ["int32", "int64"]})
def in_top_k(c):
    k = lambda n: {"k": n} if c.op == "InTopK" else {}
    i = lambda n: [np.array(n, c.T)] if c.op == "InTopKV2" else []
    p = np.array([[0.1, 0.3, 0.2, 0.4], [0.1, 0.4, 0.3, 0.2], [0.5, 0.5, 0.5, 0.1]], np.float32)
    for n in (1, 2, 4, 0):
        yield Call(p, np.array([3, 2, 1], c.T), *i(n), **k(n))
    yield Call(p, np.array([3, 7, -1], c.T), *i(2), **k(2))
    yield Call(np.array([[np.nan, 1], [np.inf, 2], [1, 2]], np.float32), np.array([1, 0, 1], c.T), *i(1), **k(1))
    yield Call(p, np.array([3, 1], c.T), *i(2), **k(2))


@cases("Unique UniqueWithCounts")
def unique(c):
    yield Call(c.values((9,), 0, 4))
    yield Call(c.values((0,)))
    yield Call(c.values((1,)))
    yield Call(c.values((2, 2)))
    yield Call(c.values(()))


@cases("UniqueV2 UniqueWithCountsV2", types={"Taxis": ["int64", "int32"]})
def unique_v2(c):
    axis = lambda *a: np.array(a, c.type("Taxis"))
    yield Call(c.values((9,), 0, 4), axis())
    yield Call(c.values((9,), 0, 4), axis(0))
    yield Call(c.values((4, 2), 0, 2), axis(0))
    yield Call(c.values((2, 5), 0, 2), axis(1))
    yield Call(c.values((2, 5), 0, 2), axis(-1))
    yield Call(c.values((2, 3, 2), 0, 2), axis(1))
    yield Call(c.values((0, 2)), axis(0))
    yield Call(c.values((2, 2)), axis())
    yield Call(c.values((2,)), axis(1))
    yield Call(c.values((2,)), axis(0, 0))


@cases("ListDiff")
def list_diff(c):
    yield Call(c.values((8,), 0, 6), c.values((3,), 0, 6))
    yield Call(c.values((0,)), c.values((3,)))
    yield Call(c.values((3,)), c.values((0,)))
    yield Call(c.values((2, 2)), c.values((1,)))


@cases("LowerBound UpperBound")
def bounds(c):
    s = lambda *shape: np.sort(c.values(shape, -9, 9), axis=-1)
    yield Call(s(2, 5), c.values((2, 3), -9, 9))
    yield Call(s(1, 4), c.values((1, 6), -9, 9))
    yield Call(s(2, 0), c.values((2, 3)))
    yield Call(s(2, 3), c.values((3, 3)))


@cases("Where", types={"T": [t for t in PLAIN if t != "float16"]})  # TensorFlow has that kernel, and it always fails
def where(c):
    yield Call(c.values((2, 3), 0, 2))
    yield Call(c.values((), 0, 2))
    yield Call(c.values((0, 2)))
    yield Call(c.values((3, 2, 2), 0, 2))
    yield Call(c.values((1, 2, 1, 2, 2), 0, 2))
    if c.is_float:
        yield Call(np.array([np.nan, -0.0, 0, 1], c.T))


@program("TopK", types=["float32", "float64", "int32", "int64", "uint8", "int16", "int8", "bfloat16", "uint16", "float16"])
def top_k_old(p):
    """TensorFlow 2.21 no longer runs TopK; it gives what TopKV2 gives."""
    def rewrite(definition):
        for n in definition.node:
            if n.op == "TopKV2":
                n.op = "TopK"
                del n.input[1:]
                n.attr.clear()
                n.attr["T"].type, n.attr["k"].i, n.attr["sorted"].b = p.dtype.as_datatype_enum, 3, True
    p.rewrite = rewrite
    x = p.placeholder("x")
    top = tf.raw_ops.TopKV2(input=x, k=3, sorted=True)
    p.run([top.values, top.indices], {x: p.values((2, 5), 0, 4)})
    p.run([top.values, top.indices], {x: p.values((3,))})
    p.run([top.values, top.indices], {x: p.values((2,))})
