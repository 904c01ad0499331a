"""Learning without gradients: clusters."""
import numpy as np

from .table import Call, cases

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
