"""Gather, scatter, segments, dynamic partitions."""
import numpy as np

from .table import PLAIN, Call, cases

I32 = np.int32


@cases("Gather")
def gather(c):
    i = c.type("Tindices")
    yield Call(c.values((4, 2)), np.array([3, 0, 0], i), validate_indices=True)
    yield Call(c.values((4, 2)), np.array([[1], [2]], i), validate_indices=True)
    yield Call(c.values((4, 2)), np.array(1, i), validate_indices=True)
    yield Call(c.values((4, 2)), np.array([4], i), validate_indices=True)
    yield Call(c.values((4, 2)), np.array([-1], i), validate_indices=True)
    yield Call(c.values(()), np.array([0], i), validate_indices=True)


@cases("GatherV2")
def gather_v2(c):
    i, a = c.type("Tindices"), c.type("Taxis")
    for s, indices, axis, batch in (((4, 2), [3, 0, 0], 0, 0), ((2, 4), [[1, 2], [0, 3]], 1, 0), ((2, 4, 3), [2, 0], -1, 0), ((4,), 2, 0, 0),
                                    ((2, 3, 2), [[0, 2], [1, 1]], 1, 1), ((0, 2), [], 0, 0), ((3, 0), [1, 2], 0, 0), ((2, 2, 3), [[1], [0]], 2, 1),
                                    ((4, 2), [4], 0, 0), ((4, 2), [-1], 0, 0), ((4, 2), [0], 2, 0), ((4, 2), [0], -3, 0), ((2, 3), [[0]], 1, 1)):
        yield Call(c.values(s), np.array(indices, i), np.array(axis, a), batch_dims=batch, const=(2,))
    yield Call(c.values(()), np.array([0], i), np.array(0, a), batch_dims=0, grad=False)


@cases("GatherNd")
def gather_nd(c):
    i = c.type("Tindices")
    for s, indices in (((3, 2), [[0, 1], [2, 0]]), ((3, 2), [[1], [2]]), ((3, 2), [[[0, 1]], [[2, 1]]]), ((3,), [2]), ((3, 2), np.zeros((2, 0))),
                       ((3, 2), np.zeros((0, 2))), ((2, 2, 2), [[1, 1, 0]]), ((3, 2), [[3, 0]]), ((3, 2), [[0, -1]]), ((3,), [[0, 0]]), ((0, 2), [[0]])):
        yield Call(c.values(s), np.array(indices, i))
    yield Call(c.values((3,)), np.array(1, i))
    yield Call(c.values(()), np.array([0], i))


ND = [((4, 2), [[1], [3]], (2, 2)), ((4, 2), [[1, 0], [1, 1], [3, 0]], (3,)), ((5,), [[2], [2], [0]], (3,)), ((2, 2, 2), [[0, 1]], (1, 2)),
      ((3,), np.zeros((0, 1)), (0,)), ((4, 2), [[[0]], [[2]]], (2, 1, 2)), ((4, 2), [[4]], (1, 2)), ((4, 2), [[-1]], (1, 2)),
      ((4, 2), [[1]], (1, 3)), ((4, 2), [[1], [2]], (1, 2)), ((3,), [[0, 0]], (1,))]


@cases("ScatterNd")
def scatter_nd(c):
    i = c.type("Tindices")
    for s, indices, updates in ND:
        yield Call(np.array(indices, i), c.values(updates), np.array(s, i))
    yield Call(np.zeros((1, 0), i), c.values((1, 2)), np.array([2], i))
    yield Call(np.array([[0]], i), c.values((1,)), np.array([-2], i))


@cases("TensorScatterUpdate TensorScatterAdd TensorScatterSub TensorScatterMax TensorScatterMin ScatterNdNonAliasingAdd")
def tensor_scatter(c):
    i = c.type("Tindices")
    for s, indices, updates in ND:
        yield Call(c.values(s), np.array(indices, i), c.values(updates))
    yield Call(c.values(()), np.array([[0]], i), c.values((1,)))


@cases("ScatterNdUpdate ScatterNdAdd ScatterNdSub ScatterNdMax ScatterNdMin ResourceScatterNdUpdate ResourceScatterNdAdd "
       "ResourceScatterNdMax ResourceScatterNdMin")
def scatter_nd_variable(c):
    i = c.type("Tindices")
    for s, indices, updates in ND if c.full else ND[:3]:
        yield Call(c.values(s), np.array(indices, i), c.values(updates))


# Subtracting truth values is left out.
cases("ResourceScatterNdSub", types={"T": [t for t in PLAIN if t != "bool"]})(scatter_nd_variable)
ROWS = [((4, 2), [1, 3, 1], (3, 2)), ((4,), [[0, 2], [2, 3]], (2, 2)), ((4, 2), 2, (2,)), ((4, 2), [], (0, 2)), ((4, 2), [1, 2], ()),
        ((4, 2), [4], (1, 2)), ((4, 2), [-1], (1, 2)), ((4, 2), [1], (1, 3)), ((4, 2), [1, 2], (1, 2))]


# TensorFlow does not check the shape of what is written to a resource variable.
@cases("ScatterUpdate ScatterAdd ScatterSub ScatterMul ScatterDiv ScatterMin ScatterMax ResourceScatterUpdate ResourceScatterAdd "
       "ResourceScatterSub ResourceScatterMul ResourceScatterDiv ResourceScatterMin ResourceScatterMax")
def scatter_variable(c):
    i = c.type("Tindices")
    for s, indices, updates in ROWS[:7] if c.full and c.op.startswith("Resource") else ROWS if c.full else ROWS[:5]:
        yield Call(c.values(s, 1, 9), np.array(indices, i), c.values(updates, 1, 4))


@cases("ResourceGather")
def resource_gather(c):
    i = c.type("Tindices")
    yield Call(c.values((4, 2)), np.array([3, 0, 0], i))
    yield Call(c.values((4, 2)), np.array([[3], [0]], i))
    yield Call(c.values((4, 2)), np.array([4], i))
    yield Call(c.values((2, 3)), np.array([[2, 0], [1, 1]], i), batch_dims=1)


@cases("ResourceGatherNd")
def resource_gather_nd(c):
    i = c.type("Tindices")
    yield Call(c.values((4, 2)), np.array([[3, 1], [0, 0]], i))
    yield Call(c.values((4, 2)), np.array([[4]], i))


def segment_ids(c):
    return c.type("Tindices")


def not_numbers(c):
    nan = np.nan
    return np.array([1, nan, 2, nan, 1, 2, 1, 2, nan, nan, nan, nan, nan], c.T)


@cases("SegmentSum SegmentMean SegmentProd SegmentMin SegmentMax")
def segment(c):
    i = segment_ids(c)
    for s, ids in (((5, 2), [0, 0, 1, 1, 1]), ((4,), [0, 2, 2, 4]), ((3, 2, 2), [1, 1, 2]), ((0, 2), []), ((1,), [0]), ((3,), [1, 0, 2]), ((3,), [-1, 0, 1]),
                   ((3,), [0, 1])):
        yield Call(c.values(s, 1, 4), np.array(ids, i))
    yield Call(c.values((2,)), np.array([[0], [1]], i))
    if c.op in ("SegmentMin", "SegmentMax") and c.is_float:
        yield Call(not_numbers(c), np.array([0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4], i), grad=False)


@cases("UnsortedSegmentSum UnsortedSegmentProd UnsortedSegmentMin UnsortedSegmentMax")
def unsorted_segment(c):
    i = segment_ids(c)
    n = lambda k: np.array(k, c.type("Tnumsegments"))
    for s, ids, k in (((5, 2), [2, 0, 1, 0, 2], 3), ((4,), [0, 2, -1, 0], 4), ((2, 2), [[0, 1], [1, 3]], 4), ((0, 2), [], 2), ((3,), [0, 0, 0], 0),
                      ((3,), [0, 1, 3], 3), ((3,), [0, 1], 3), ((2, 3), [0, 1], -1)):
        yield Call(c.values(s, 1, 4), np.array(ids, i), n(k))
    if c.op in ("UnsortedSegmentMin", "UnsortedSegmentMax") and c.is_float:
        yield Call(not_numbers(c), np.array([0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4], i), n(6), grad=False)


@cases("SparseSegmentSum SparseSegmentMean SparseSegmentSqrtN")
def sparse_segment(c):
    i, s = c.type("Tidx"), c.type("Tsegmentids")
    for indices, ids in (([0, 3, 1], [0, 0, 1]), ([2, 2, 0, 1], [0, 1, 1, 3]), ([], []), ([4], [0]), ([-1], [0]), ([0, 1], [1, 0]), ([0, 1], [0]), ([0], [-1])):
        yield Call(c.values((4, 3)), np.array(indices, i), np.array(ids, s), grad=bool(indices))  # of none, TensorFlow gives what was in memory
    yield Call(c.values((4,)), np.array([1, 1, 3], i), np.array([0, 0, 2], s))


@cases("SparseSegmentSumWithNumSegments SparseSegmentMeanWithNumSegments SparseSegmentSqrtNWithNumSegments")
def sparse_segment_with_num(c):
    i, s = c.type("Tidx"), c.type("Tsegmentids")
    n = lambda k: np.array(k, c.type("Tnumsegments"))
    for indices, ids, k in (([0, 3, 1], [0, 0, 1], 4), ([2, 2, 0, 1], [0, 1, 1, 3], 4), ([], [], 2), ([0, 1], [0, 3], 3), ([0], [0], -1), ([0], [0], 0)):
        yield Call(c.values((4, 3)), np.array(indices, i), np.array(ids, s), n(k), grad=bool(indices))


@cases("SparseSegmentSumGrad SparseSegmentMeanGrad SparseSegmentSqrtNGrad")
def sparse_segment_grad(c):
    i, s = c.type("Tidx"), c.type("Tsegmentids")
    for indices, ids, k in (([0, 3, 1], [0, 0, 1], 5), ([2, 2, 0, 1], [0, 1, 1, 2], 3), ([4], [0], 4), ([0], [3], 4), ([0, 1], [0], 4)):
        yield Call(c.values((3, 2)), np.array(indices, i), np.array(ids, s), np.int32(k))


@cases("SparseSegmentSumGradV2 SparseSegmentMeanGradV2 SparseSegmentSqrtNGradV2")
def sparse_segment_grad_v2(c):
    i, s = c.type("Tidx"), c.type("Tsegmentids")
    for indices, ids, k in (([0, 3, 1], [0, 0, 1], 5), ([2, 2, 0, 1], [0, 1, 1, 2], 3), ([4], [0], 4), ([0], [3], 4)):
        yield Call(c.values((3, 2)), np.array(indices, i), np.array(ids, s), np.int32(k))


@cases("DynamicPartition")
def dynamic_partition(c):
    for s, parts in (((5,), [1, 0, 1, 2, 0]), ((4, 2), [2, 2, 0, 0]), ((2, 2), [[0, 1], [2, 0]]), ((0,), []), ((2,), [3, 0]), ((2,), [-1, 0]), ((3,), [0, 1])):
        yield Call(c.values(s), np.array(parts, I32), num_partitions=3)
    yield Call(c.values(()), np.int32(1), num_partitions=2)


@cases("DynamicStitch ParallelDynamicStitch")
def dynamic_stitch(c):
    i = lambda *a: np.array(a, I32)
    yield Call([i(0, 2), i(3, 1)], [c.values((2, 2)), c.values((2, 2))])
    yield Call([i(0, 1), np.int32(2)], [c.values((2,)), c.values(())])
    yield Call([i(0, 4)], [c.values((2,))]) if c.op == "DynamicStitch" else Call([i(0, 1)], [c.values((2,))])
    yield Call([i(), i(0)], [c.values((0, 2)), c.values((1, 2))])
    yield Call([i(0, -1)], [c.values((2,))])
    yield Call([i(0, 1)], [c.values((3,))])
    yield Call([i(0), i(1)], [c.values((1, 2)), c.values((1, 3))])
