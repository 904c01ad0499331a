"""Ops about shapes and the order of elements."""
import numpy as np
import tensorflow as tf

from .table import PLAIN, Call, cases, program

I32 = np.int32
INDEX = ["int32", "int64"]


def vec(c, attr, *values):
    return np.array(values, c.type(attr) if attr in c.types else I32)


@cases("Reshape")
def reshape(c):
    v = lambda *a: vec(c, "Tshape", *a)
    yield Call(c.values((2, 3)), v(3, 2))
    yield Call(c.values((2, 3)), v(-1))
    yield Call(c.values((2, 3, 2)), v(4, -1))
    yield Call(c.values((1,)), v())
    yield Call(c.values((0, 3)), v(3, 0))
    if c.full:
        yield Call(c.values((0, 3)), v(-1, 3))
        yield Call(c.values((0, 3)), v(-1, 0))
        yield Call(c.values((2, 3)), v(4, 2))
        yield Call(c.values((2, 3)), v(-1, -1))
        yield Call(c.values((2, 3)), v(-2, 3))
        yield Call(c.values((2, 3)), v(4, -1))
        yield Call(c.values((2, 3)), np.array([[6]], c.type("Tshape")))


@cases("ExpandDims")
def expand_dims(c):
    for shape, axis in (((2, 3), 0), ((2, 3), -1), ((), 0), ((2, 0), 1), ((2, 3), 2), ((2, 3), 3), ((2, 3), -4)):
        yield Call(c.values(shape), np.array(axis, c.type("Tdim")))
    yield Call(c.values((2,)), np.array([0], c.type("Tdim")))
    yield Call(c.values((2,)), np.array([0, 1], c.type("Tdim")))


@cases("Squeeze")
def squeeze(c):
    for shape, dims in (((1, 2, 1), []), ((1, 2, 1), [0]), ((1, 2, 1), [-1]), ((1, 1), []), ((1, 0, 1), [0, 2]), ((2, 1), [1])):
        yield Call(c.values(shape), squeeze_dims=dims)
    yield Call(c.values((2, 3)), squeeze_dims=[0])
    yield Call(c.values((1,)), squeeze_dims=[1])


@cases("Shape Size", types={"out_type": INDEX})
def shape(c):
    for s in ((), (2, 3), (0, 4), (1, 2, 3, 4, 5)):
        yield Call(c.values(s))


@cases("Rank")
def rank(c):
    for s in ((), (2, 3), (0, 4)):
        yield Call(c.values(s))


@cases("ShapeN", types={"out_type": INDEX})
def shape_n(c):
    yield Call([c.values((2, 3)), c.values(())])
    yield Call([c.values((0,))])


@cases("EnsureShape")
def ensure_shape(c):
    yield Call(c.values((2, 3)), shape=[2, None])
    yield Call(c.values((2, 3)), shape=None)
    yield Call(c.values((2, 3)), shape=[3, 3])
    yield Call(c.values((2, 3)), shape=[2])


@cases("Pack")
def pack(c):
    for s, axis, n in (((2, 3), 0, 2), ((2, 3), 1, 3), ((2, 3), -1, 2), ((), 0, 3), ((0, 2), 1, 2), ((2,), 0, 1), ((2, 2), -3, 2)):
        yield Call([c.values(s) for _ in range(n)], axis=axis)
    yield Call([c.values((2,)), c.values((3,))], axis=0)
    yield Call([c.values((2,))], axis=2)
    yield Call([c.values((2,))], axis=-3)


@cases("Unpack")
def unpack(c):
    for s, axis in (((2, 3), 0), ((2, 3), 1), ((2, 3, 2), -2), ((3,), 0), ((0, 2), 1), ((2, 0), 0)):
        yield Call(c.values(s), num=s[axis], axis=axis)
    yield Call(c.values((2, 3)), num=3, axis=0)
    yield Call(c.values((2, 3)), num=2, axis=2)
    yield Call(c.values(()), num=1, axis=0)


@cases("Concat")
def concat(c):
    yield Call(np.int32(0), [c.values((2, 3)), c.values((1, 3))])
    yield Call(np.int32(1), [c.values((2, 3)), c.values((2, 0)), c.values((2, 2))])
    yield Call(np.int32(0), [c.values((2,)), c.values(())])
    yield Call(np.int32(2), [c.values((2, 1)), c.values((2, 1))])


@cases("ConcatV2")
def concat_v2(c):
    axis = lambda a: np.array(a, c.type("Tidx"))
    yield Call([c.values((2, 3)), c.values((1, 3))], axis(0))
    yield Call([c.values((2, 3)), c.values((2, 0)), c.values((2, 2))], axis(-1))
    yield Call([c.values((2, 1, 2)), c.values((2, 3, 2))], axis(1))
    yield Call([c.values((0,)), c.values((0,))], axis(0))
    if c.full:
        yield Call([c.values((2, 2)) for _ in range(5)], axis(1))
        yield Call([c.values((0, 2)), c.values((3, 2))], axis(0))
        yield Call([c.values((2, 3)), c.values((2, 2))], axis(0))
        yield Call([c.values((2,)), c.values((2, 2))], axis(0))
        yield Call([c.values((2,)), c.values((2,))], axis(1))
        yield Call([c.values((2,)), c.values((2,))], axis(-2))
        yield Call([c.values(()), c.values(())], axis(0))


@cases("ConcatOffset")
def concat_offset(c):
    t = c.type("shape_type") if "shape_type" in c.types else I32
    v = lambda *a: np.array(a, t)
    yield Call(np.int32(1), [v(2, 2, 5), v(2, 3, 5), v(2, 4, 5)])
    yield Call(np.int32(-1), [v(2, 5), v(2, 1)])
    yield Call(np.int32(0), [v(2, 2), v(2, 3)])
    yield Call(np.int32(2), [v(2, 2), v(2, 2)])
    yield Call(np.int32(0), [v(2, 2), v(2)])


@cases("ParallelConcat")
def parallel_concat(c):
    yield Call([c.values((1, 3)), c.values((1, 3))], shape=[2, 3], static=True, grad=False)


@cases("Split")
def split(c):
    for s, axis, n in (((4, 3), 0, 2), ((4, 6), -1, 3), ((2, 4, 2), 1, 4), ((0, 4), 1, 2), ((4,), 0, 1), ((3,), 0, 3)):
        yield Call(np.int32(axis), c.values(s), num_split=n)
    yield Call(np.int32(0), c.values((3,)), num_split=2)
    yield Call(np.int32(1), c.values((4,)), num_split=2)
    yield Call(np.array([0], I32), c.values((4,)), num_split=2, grad=False)


@cases("SplitV")
def split_v(c):
    n = lambda *a: vec(c, "Tlen", *a)
    yield Call(c.values((5, 2)), n(2, 3), np.int32(0), num_split=2)
    yield Call(c.values((2, 6)), n(1, -1, 2), np.int32(-1), num_split=3)
    yield Call(c.values((2, 6, 2)), n(0, 6), np.int32(1), num_split=2)
    yield Call(c.values((0, 2)), n(0, 0), np.int32(0), num_split=2)
    yield Call(c.values((5,)), n(5), np.int32(0), num_split=1)
    yield Call(c.values((5,)), n(2, 2), np.int32(0), num_split=2)
    yield Call(c.values((5,)), n(-1, -1), np.int32(0), num_split=2)
    yield Call(c.values((5,)), n(2, 3), np.int32(1), num_split=2)


@cases("Slice")
def slice_(c):
    v = lambda *a: vec(c, "Index", *a)
    yield Call(c.values((4, 3)), v(1, 0), v(2, 2))
    yield Call(c.values((4, 3, 2)), v(1, 1, 0), v(-1, 2, -1))
    yield Call(c.values((5,)), v(2), v(0))
    yield Call(c.values(()), v(), v())
    yield Call(c.values((4, 3)), v(0, 0), v(4, 3))
    yield Call(c.values((4, 3)), v(0, 4), v(1, 1))
    yield Call(c.values((4, 3)), v(0, 1), v(1, 3))
    yield Call(c.values((4, 3)), v(-1, 1), v(1, 1))
    yield Call(c.values((4, 3)), v(0), v(1))
    if c.full:
        yield Call(c.values((3, 2, 2, 2, 2)), v(1, 0, 1, 0, 0), v(2, 1, 1, 2, -1))


STRIDES = [  # shape, begin, end, strides, attributes
    ((4, 3), (1, 0), (3, 2), (1, 1), {}),
    ((4, 3), (3, 2), (0, 0), (-1, -2), {}),
    ((4, 3), (0, 0), (0, 0), (2, 1), {"begin_mask": 1, "end_mask": 3}),
    ((4, 3), (1, 0), (2, 3), (1, 1), {"shrink_axis_mask": 1}),
    ((4, 3), (-1, -2), (9, -1), (1, 1), {}),
    ((4, 3), (0, 1), (0, 2), (1, 1), {"new_axis_mask": 1}),
    ((2, 3, 4), (0, 1), (0, 2), (1, 1), {"ellipsis_mask": 1}),
    ((2, 3, 4), (1, 0, 2), (0, 0, 0), (1, 1, 1), {"ellipsis_mask": 2, "shrink_axis_mask": 5}),
    ((2, 3, 4), (1,), (2,), (1,), {"shrink_axis_mask": 1}),
    ((9,), (7,), (0,), (-3,), {}), ((9,), (-100,), (100,), (4,), {}), ((9,), (5,), (2,), (1,), {}),
    ((0, 3), (0, 0), (0, 2), (1, 1), {}), ((), (), (), (), {}), ((3,), (0, 0), (0, 2), (1, 1), {"new_axis_mask": 1}),
    ((2, 2, 2, 2, 3), (0, 0, 0, 1, 0), (2, 1, 2, 2, 3), (1, 1, 1, 1, 2), {}),
    ((3,), (0,), (2,), (0,), {}), ((3,), (4,), (5,), (1,), {"shrink_axis_mask": 1}), ((3,), (0, 0), (1, 1), (1, 1), {}),
    ((3, 3), (0, 0), (1, 1), (1, 1), {"ellipsis_mask": 3}), ((3,), (0,), (1, 1), (1,), {}), ((3,), (1,), (2,), (-1,), {"shrink_axis_mask": 1})]
FULL = {"begin_mask": 0, "end_mask": 0, "ellipsis_mask": 0, "new_axis_mask": 0, "shrink_axis_mask": 0}


def stride_rows(c):
    for s, begin, end, strides, masks in STRIDES if c.full else STRIDES[:11]:
        yield s, [vec(c, "Index", *begin), vec(c, "Index", *end), vec(c, "Index", *strides)], {**FULL, **masks}


@cases("StridedSlice")
def strided_slice(c):
    for s, indices, masks in stride_rows(c):
        yield Call(c.values(s), *indices, **masks)


def result_shape(s, indices, masks):
    """What a strided slice selects; None for an invalid one."""
    import tensorflow as tf
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        try:
            return session.run(tf.raw_ops.StridedSlice(input=np.zeros(s), begin=indices[0], end=indices[1], strides=indices[2], **masks)).shape
        except (ValueError, tf.errors.OpError):
            return None


@cases("StridedSliceGrad")
def strided_slice_grad(c):
    t = c.type("Index")
    for s, indices, masks in stride_rows(c):
        shape = result_shape(s, indices, masks)
        if shape is not None:
            yield Call(np.array(s, t), *indices, c.values(shape), **masks)
    yield Call(np.array([3], t), *[np.array([i], t) for i in (0, 2, 1)], c.values((3,)), **FULL)


@cases("TensorStridedSliceUpdate StridedSliceAssign ResourceStridedSliceAssign")
def strided_slice_update(c):
    for s, indices, masks in stride_rows(c):
        shape = result_shape(s, indices, masks)
        if shape is not None and s:
            yield Call(c.values(s), *indices, c.values(shape), **masks)
    yield Call(c.values((4,)), *[np.array([i], c.type("Index")) for i in (0, 2, 1)], c.values((3,)), **FULL)


@cases("Transpose")
def transpose(c):
    p = lambda *a: vec(c, "Tperm", *a)
    for s, perm in (((2, 3), (1, 0)), ((2, 3, 4), (2, 0, 1)), ((2, 0, 3), (1, 2, 0)), ((), ()), ((2, 3, 2, 2), (0, 2, 1, 3)), ((2, 3), (0, 1))):
        yield Call(c.values(s), p(*perm))
    if c.full:
        yield Call(c.values((2, 3, 4, 2)), p(3, 2, 1, 0))
        yield Call(c.values((2, 1, 3, 2, 2)), p(4, 0, 2, 1, 3))
        yield Call(c.values((2, 1, 3, 1, 2, 2)), p(5, 0, 2, 1, 3, 4))
        yield Call(c.values((17, 19)), p(1, 0))
        yield Call(c.values((2, 3)), p(0, 0))
        yield Call(c.values((2, 3)), p(0, 2))
        yield Call(c.values((2, 3)), p(-1, 0))
        yield Call(c.values((2, 3)), p(0))


# TensorFlow ends the process when the elements are strings.
cases("ConjugateTranspose", types={"T": [t for t in PLAIN if t != "string"]})(transpose)


@cases("InvertPermutation")
def invert_permutation(c):
    yield Call(np.array([2, 0, 1, 3], c.T))
    yield Call(np.zeros((0,), c.T))
    yield Call(np.array([0, 0], c.T))
    yield Call(np.array([0, 2], c.T))
    yield Call(np.array([-1, 0], c.T))
    yield Call(np.array([[0]], c.T))


@cases("Reverse")
def reverse(c):
    yield Call(c.values((2, 3)), np.array([True, False]))
    yield Call(c.values((2, 3, 2)), np.array([False, True, True]))
    yield Call(c.values(()), np.zeros((0,), bool))
    yield Call(c.values((2, 3)), np.array([True]))


@cases("ReverseV2")
def reverse_v2(c):
    v = lambda *a: vec(c, "Tidx", *a)
    yield Call(c.values((2, 3)), v(0))
    yield Call(c.values((2, 3, 2)), v(-1, 0))
    yield Call(c.values((2, 3)), v())
    yield Call(c.values((0, 3)), v(1))
    yield Call(c.values((5, 3)), v(0, 1))
    yield Call(c.values((2, 3)), v(2))
    yield Call(c.values((2, 3)), v(0, -2))
    yield Call(c.values((2,)), v(-2))


@cases("ReverseSequence")
def reverse_sequence(c):
    n = lambda *a: vec(c, "Tlen", *a)
    yield Call(c.values((2, 4, 2)), n(3, 2), seq_dim=1, batch_dim=0)
    yield Call(c.values((4, 2)), n(0, 4), seq_dim=0, batch_dim=1)
    yield Call(c.values((4, 3, 2)), n(1, 2), seq_dim=0, batch_dim=2)
    yield Call(c.values((2, 4)), n(3, 5), seq_dim=1, batch_dim=0)
    yield Call(c.values((2, 4)), n(3, -1), seq_dim=1, batch_dim=0)
    yield Call(c.values((2, 4)), n(3), seq_dim=1, batch_dim=0)
    yield Call(c.values((2, 4)), n(3, 3), seq_dim=2, batch_dim=0)
    yield Call(c.values((2, 4)), n(3, 3), seq_dim=0, batch_dim=0)


@cases("Tile", types={"T": [t for t in PLAIN if t != "uint16"]})  # TensorFlow has that kernel, and it always fails
def tile(c):
    v = lambda *a: vec(c, "Tmultiples", *a)
    for s, m in (((2, 3), (2, 1)), ((2,), (3,)), ((), ()), ((2, 0), (2, 3)), ((1, 2, 2), (2, 2, 1)), ((2, 3), (0, 1)), ((1,), (5,))):
        yield Call(c.values(s), v(*m))
    yield Call(c.values((2, 3)), v(2))
    yield Call(c.values((2, 3)), v(2, -1))


PADS = [((2, 3), [[1, 0], [0, 2]]), ((3,), [[2, 1]]), ((2, 2, 2), [[0, 0], [1, 1], [0, 1]]), ((0, 2), [[0, 0], [1, 0]]), ((), np.zeros((0, 2)))]


@cases("Pad PadV2")
def pad(c):
    value = [c.values((), 1, 4)] if c.op == "PadV2" else []
    for s, p in PADS:
        yield Call(c.values(s), np.array(p, c.type("Tpaddings")), *value)
    if c.full:
        for s, p in (((1, 2, 1, 2), [[0, 1], [1, 0], [2, 0], [0, 0]]), ((1, 1, 2, 1, 2), [[0, 1]] * 5), ((1, 1, 2, 1, 2, 2), [[1, 0]] * 6),
                     ((2, 3), [[1, 0]]), ((2,), [[-1, 0]]), ((2,), [1, 0]), ((2, 3), [[1, 0, 0], [1, 0, 0]])):
            yield Call(c.values(s), np.array(p, c.type("Tpaddings")), *value)


@cases("MirrorPad")
def mirror_pad(c):
    for mode in ("REFLECT", "SYMMETRIC"):
        for s, p in PADS[:3] + [((4, 3), [[2, 2], [1, 2]]), ((2, 3), [[0, 0], [0, 0]]), ((3,), [[3, 0]]), ((3,), [[4, 0]]), ((3,), [[-1, 0]]), ((3,), [[1]]),
                               ((0, 2), [[0, 0], [1, 1]]), ((0,), [[0, 0]])]:
            yield Call(c.values(s), np.array(p, c.type("Tpaddings")), mode=mode)


@cases("MirrorPadGrad")
def mirror_pad_grad(c):
    for mode in ("REFLECT", "SYMMETRIC"):
        for s, p in (((5, 6), [[1, 1], [2, 1]]), ((7,), [[2, 1]]), ((3, 4), [[0, 0], [1, 1]]), ((2,), [[3, 0]])):
            yield Call(c.values(s), np.array(p, c.type("Tpaddings")), mode=mode)


@cases("Fill", types={"index_type": INDEX})
def fill(c):
    t = c.type("index_type")
    yield Call(np.array([2, 3], t), c.values(()))
    yield Call(np.array([], t), c.values(()))
    yield Call(np.array([0, 2], t), c.values(()))
    yield Call(np.array([-1], t), c.values(()))
    yield Call(np.array([2], t), c.values((1,)))
    yield Call(np.array([[2]], t), c.values(()))


@cases("BroadcastTo")
def broadcast_to(c):
    v = lambda *a: vec(c, "Tidx", *a)
    for s, to in (((3,), (2, 3)), ((2, 1), (2, 3)), ((), (2, 2)), ((1,), (0,)), ((2, 3), (2, 3)), ((), ()), ((2, 1, 2), (3, 2, 2, 2)), ((2,), (3,)), ((2, 3), (3,)), ((2,), (-1,))):
        yield Call(c.values(s), v(*to))


@cases("BroadcastArgs BroadcastGradientArgs")
def broadcast_args(c):
    v = lambda *a: np.array(a, c.T)
    for a, b in (((2, 3), (3,)), ((2, 1), (1, 3)), ((), (2,)), ((0, 3), (1, 3)), ((2, 3), (2, 3)), ((1, 1), (1,)), ((2,), (3,)), ((5, 1, 3, 1), (2, 1, 4))):
        yield Call(v(*a), v(*b))
    yield Call(np.array([[2]], c.T), v(2))


@cases("OneHot")
def one_hot(c):
    i = c.type("TI")
    on, off = c.values((), 2, 4), c.values((), 0, 2)
    for axis in (-1, 0, 1):
        yield Call(np.array([[0, 2, -1], [1, 5, 2]], i) if np.dtype(i).kind == "i" else np.array([[0, 2, 3], [1, 5, 2]], i), np.int32(3), on, off, axis=axis)
    yield Call(np.array(1, i), np.int32(3), on, off, axis=-1)
    yield Call(np.array([], i), np.int32(3), on, off, axis=-1)
    yield Call(np.array([1, 0], i), np.int32(0), on, off, axis=-1)
    yield Call(np.array([1], i), np.int32(-1), on, off, axis=-1)
    yield Call(np.array([1], i), np.array([2], I32), on, off, axis=-1)
    yield Call(np.array([1], i), np.int32(2), on, off, axis=3)


@cases("Diag")
def diag(c):
    for s in ((3,), (2, 2), (0,), (1, 2, 2)):
        yield Call(c.values(s))
    yield Call(c.values(()))


@cases("DiagPart")
def diag_part(c):
    for s in ((3, 3), (2, 3, 2, 3), (0, 0), (2, 3), (3,)):
        yield Call(c.values(s))


@cases("MatrixDiag")
def matrix_diag(c):
    for s in ((3,), (2, 3), (2, 0), ()):
        yield Call(c.values(s))


@cases("MatrixDiagPart")
def matrix_diag_part(c):
    for s in ((3, 3), (2, 3, 2), (2, 2, 3), (0, 3), (3,)):
        yield Call(c.values(s))


DIAGONALS = [(0, 0), (1, 1), (-1, -1), (-1, 1), (0, 2), (-2, 0)]


@cases("MatrixDiagV2 MatrixDiagV3")
def matrix_diag_v2(c):
    more = [{}] if c.op == "MatrixDiagV2" else [{"align": a} for a in ("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT")]
    for attrs in more if c.full else more[:1]:
        for low, high in DIAGONALS:
            rows = high - low + 1
            s = (2, rows, 3) if rows > 1 else (2, 3)
            yield Call(c.values(s), np.array([low, high], I32) if rows > 1 else np.int32(low), np.int32(-1), np.int32(-1), c.values(()), **attrs)
        yield Call(c.values((3,)), np.int32(0), np.int32(4), np.int32(5), c.values(()), **attrs)
        yield Call(c.values((3,)), np.int32(0), np.int32(2), np.int32(2), c.values(()), **attrs)
        yield Call(c.values((3,)), np.array([1, 0], I32), np.int32(-1), np.int32(-1), c.values(()), **attrs)
        yield Call(c.values((3,)), np.array([0, 1, 2], I32), np.int32(-1), np.int32(-1), c.values(()), **attrs)


@cases("MatrixDiagPartV2 MatrixDiagPartV3")
def matrix_diag_part_v2(c):
    more = [{}] if c.op == "MatrixDiagPartV2" else [{"align": a} for a in ("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT")]
    for attrs in more if c.full else more[:1]:
        for low, high in DIAGONALS:
            yield Call(c.values((2, 3, 4)), np.array([low, high], I32), c.values(()), **attrs)
        yield Call(c.values((4, 2)), np.int32(-2), c.values(()), **attrs)
        yield Call(c.values((2, 2)), np.int32(3), c.values(()), **attrs)
        yield Call(c.values((2,)), np.int32(0), c.values(()), **attrs)


@cases("MatrixSetDiag")
def matrix_set_diag(c):
    yield Call(c.values((2, 3, 3)), c.values((2, 3)))
    yield Call(c.values((2, 4)), c.values((2,)))
    yield Call(c.values((2, 4)), c.values((3,)))
    yield Call(c.values((4,)), c.values((3,)))


@cases("MatrixSetDiagV2 MatrixSetDiagV3")
def matrix_set_diag_v2(c):
    more = [{}] if c.op == "MatrixSetDiagV2" else [{"align": a} for a in ("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT")]
    for attrs in more if c.full else more[:1]:
        yield Call(c.values((2, 3, 4)), c.values((2, 3)), np.int32(0), **attrs)
        yield Call(c.values((2, 3, 4)), c.values((2, 3)), np.int32(1), **attrs)
        yield Call(c.values((2, 3, 4)), c.values((2, 3, 3)), np.array([-1, 1], I32), **attrs)
        yield Call(c.values((3, 4)), c.values((2, 3)), np.array([0, 1], I32), **attrs)
        yield Call(c.values((3, 4)), c.values((2,)), np.int32(0), **attrs)


@cases("MatrixBandPart")
def matrix_band_part(c):
    i = c.type("Tindex")
    for low, high in ((0, 0), (1, 1), (-1, 0), (0, -1), (2, 1), (-1, -1)):
        yield Call(c.values((2, 3, 4)), np.array(low, i), np.array(high, i))
    yield Call(c.values((4,)), np.array(0, i), np.array(0, i))
    yield Call(c.values((2, 2)), np.array(9, i), np.array(0, i))


@cases("Roll")
def roll(c):
    s = lambda *a: vec(c, "Tshift", *a)
    x = lambda *a: vec(c, "Taxis", *a)
    yield Call(c.values((5,)), s(2)[0], x(0)[0])
    yield Call(c.values((2, 4)), s(1, -1), x(0, 1))
    yield Call(c.values((2, 4)), s(7), x(-1))
    yield Call(c.values((2, 4)), s(1, 2), x(1, 1))
    yield Call(c.values((0, 4)), s(1), x(0))
    yield Call(c.values((2, 4)), s(1), x(2))
    yield Call(c.values((2, 4)), s(1, 2), x(0))
    yield Call(c.values(()), s(1), x(0))


@cases("Range")
def range_(c):
    v = lambda a: np.array(a, c.type("Tidx"))
    unsigned = c.types["Tidx"].startswith("u")
    for start, limit, delta in ((0, 5, 1), (3, 18, 4), (2, 2, 1), (0, 1, 3)) + (() if unsigned else ((5, -3, -2),)):
        yield Call(v(start), v(limit), v(delta))
    if "float" in c.types["Tidx"]:
        yield Call(v(0.5), v(2.25), v(0.25))
    yield Call(v(0), v(5), v(0))
    if not unsigned:
        yield Call(v(0), v(5), v(-1))
        yield Call(v(5), v(0), v(1))
    yield Call(np.array([0], c.type("Tidx")), v(5), v(1))


@cases("LinSpace")
def lin_space(c):
    n = lambda a: np.array(a, c.type("Tidx"))
    for count in (1, 2, 5, 0, -1):
        yield Call(np.array(-1, c.T), np.array(2.5, c.T), n(count))


@cases("SpaceToDepth DepthToSpace")
def space_to_depth(c):
    s = ((1, 4, 2, 3), (2, 2, 4, 4)) if c.op == "SpaceToDepth" else ((1, 2, 1, 12), (2, 1, 2, 4))
    for shape in s:
        yield Call(c.values(shape), block_size=2, data_format="NHWC")
    yield Call(c.values((1, 3, 3, 3)), block_size=2, data_format="NHWC")
    yield Call(c.values((1, 3, 3)), block_size=2, data_format="NHWC")


@cases("SpaceToBatchND")
def space_to_batch_nd(c):
    b, p = c.type("Tblock_shape"), c.type("Tpaddings")
    yield Call(c.values((1, 4, 4, 1)), np.array([2, 2], b), np.array([[0, 0], [0, 0]], p), static=True)
    yield Call(c.values((2, 3, 2)), np.array([2], b), np.array([[1, 0]], p), static=True)
    yield Call(c.values((1, 2, 3, 2, 2)), np.array([1, 3, 2], b), np.array([[0, 0], [0, 0], [1, 1]], p), static=True)
    yield Call(c.values((1, 4, 4, 1)), np.array([0, 2], b), np.array([[0, 0], [0, 0]], p), static=True)


@cases("BatchToSpaceND")
def batch_to_space_nd(c):
    b, p = c.type("Tblock_shape"), c.type("Tcrops")
    yield Call(c.values((4, 2, 2, 1)), np.array([2, 2], b), np.array([[0, 0], [0, 0]], p), static=True)
    yield Call(c.values((4, 2, 3, 2)), np.array([2, 2], b), np.array([[1, 0], [0, 2]], p), static=True)
    yield Call(c.values((2, 3, 2)), np.array([2], b), np.array([[1, 1]], p), static=True)
    yield Call(c.values((4, 1, 1, 1)), np.array([2, 2], b), np.array([[2, 2], [0, 0]], p), static=True)


@cases("SpaceToBatch")
def space_to_batch(c):
    yield Call(c.values((1, 4, 4, 1)), np.array([[0, 0], [0, 0]], c.type("Tpaddings")), block_size=2)
    yield Call(c.values((2, 3, 3, 2)), np.array([[1, 0], [0, 1]], c.type("Tpaddings")), block_size=2)
    yield Call(c.values((2, 3, 3, 2)), np.array([[0, 0], [0, 0]], c.type("Tpaddings")), block_size=2)


@cases("BatchToSpace")
def batch_to_space(c):
    yield Call(c.values((4, 2, 2, 1)), np.array([[0, 0], [0, 0]], c.type("Tidx")), block_size=2)
    yield Call(c.values((8, 2, 2, 1)), np.array([[1, 0], [0, 1]], c.type("Tidx")), block_size=2)
    yield Call(c.values((3, 2, 2, 1)), np.array([[0, 0], [0, 0]], c.type("Tidx")), block_size=2)


@cases("UnravelIndex")
def unravel_index(c):
    t = c.type("Tidx")
    yield Call(np.array([2, 5, 7], t), np.array([3, 3], t))
    yield Call(np.array(5, t), np.array([2, 3], t))
    yield Call(np.array([9], t), np.array([3, 3], t))
    yield Call(np.array([0], t), np.array([3, 0], t))
    yield Call(np.array([2], t), np.array(4, t))
    yield Call(np.array([], t), np.array([3, 3], t))


@cases("DebugGradientIdentity", gradient=False)
def debug_identity(c):
    for shape in ((), (2, 3), (0,)):
        yield Call(c.values(shape))


@cases("IdentityN")
def identity_n(c):
    yield Call([np.float32(1), c.ints((2,)), np.array([b"a"], object)])


@cases("PlaceholderWithDefault")
def placeholder_with_default(c):
    yield Call(c.values((2, 3)), shape=[2, 3])
    yield Call(c.values((0,)), shape=None)


@cases("ExtractVolumePatches")
def extract_volume_patches(c):
    for padding in ("SAME", "VALID"):
        yield Call(c.values((1, 4, 4, 4, 2)), ksizes=[1, 2, 2, 2, 1], strides=[1, 2, 1, 2, 1], padding=padding, grad=False)


@cases("ExtractImagePatches")
def extract_image_patches(c):
    for padding in ("SAME", "VALID"):
        for k, s, r in ((3, 1, 1), (2, 2, 1), (2, 1, 2)):
            yield Call(c.values((2, 5, 4, 2)), ksizes=[1, k, k, 1], strides=[1, s, s, 1], rates=[1, r, r, 1], padding=padding, static=True)
    yield Call(c.values((5, 4, 2)), ksizes=[1, 2, 2, 1], strides=[1, 1, 1, 1], rates=[1, 1, 1, 1], padding="SAME", grad=False)
    one = [1, 1, 1, 1]
    for bad in ([2, 1, 1, 1], [1, 1, 1, 2]):
        for sizes in ((bad, one, one), (one, bad, one), (one, one, bad)):
            yield Call(c.values((2, 5, 4, 2)), ksizes=sizes[0], strides=sizes[1], rates=sizes[2], padding="SAME", grad=False)


def odd_arguments(fed):
    """Scalars where vectors are wanted, empty slices, and what nobody looks at."""
    i32 = lambda v: fed(v, np.int32)
    rows = np.arange(6.).reshape(2, 3)
    masks = dict(begin_mask=0, end_mask=0, ellipsis_mask=0, new_axis_mask=0, shrink_axis_mask=0)
    yield "reverse_s", "Reverse", dict(tensor=fed(1.5), dims=fed([True], np.bool_))
    yield "reverse_m", "Reverse", dict(tensor=fed(rows), dims=fed([[True, False]], np.bool_))
    yield "reverse2_s", "ReverseV2", dict(tensor=fed(1.5), axis=i32([3]))
    yield "reverse2_0", "ReverseV2", dict(tensor=fed(rows), axis=i32(0))
    yield "roll", "Roll", dict(input=fed([1, 2, 3]), shift=i32([1]), axis=i32(0))
    yield "broadcast", "BroadcastTo", dict(input=fed(1.5), shape=i32(2))
    yield "slice_empty", "Slice", dict(input=fed(np.zeros((0, 3))), begin=i32([1, 0]), size=i32([2, 3]))
    yield "slice_all", "Slice", dict(input=fed(np.zeros((0, 3))), begin=i32([0, 0]), size=i32([-1, 3]))
    yield "update", "TensorStridedSliceUpdate", dict(input=fed(rows), begin=i32([1, 0]), end=i32([1, 3]), strides=i32([1, 1]), value=fed(np.ones((5, 2))), **masks)
    yield "slice_grad", "StridedSliceGrad", dict(shape=i32([[2]]), begin=i32([0]), end=i32([1]), strides=i32([1]), dy=fed([1]), **masks)
    yield "diag", "MatrixDiagV3", dict(diagonal=fed([1, 2]), k=i32(0), num_rows=i32(-1), num_cols=i32(-1), padding_value=fed([0]))
    yield "offset_0", "ConcatOffset", dict(concat_dim=i32([0]), shape=[i32([2, 3]), i32([2, 3])])
    yield "offset_2", "ConcatOffset", dict(concat_dim=i32(0), shape=[i32([2, 3]), i32([[2, 3]])])
    yield "split", "SplitV", dict(value=fed([1, 2, 3]), size_splits=i32([2]), axis=i32(0), num_split=1)
    yield "split_rest", "SplitV", dict(value=fed([1, 2, 3]), size_splits=i32([-1]), axis=i32(0), num_split=1)
    yield "mirror_grad", "MirrorPadGrad", dict(input=fed([1, 2, 3]), paddings=i32([[1, 1], [0, 0]]), mode="REFLECT")
    yield "scatter_i", "TensorScatterAdd", dict(tensor=fed(rows), indices=i32(np.zeros((0, 1))), updates=fed(rows))
    yield "gather", "GatherV2", dict(params=fed(rows), indices=i32(0), axis=i32(1), batch_dims=1)


@program("Reverse ReverseV2 Roll BroadcastTo Slice TensorStridedSliceUpdate StridedSliceGrad MatrixDiagV3 ConcatOffset SplitV MirrorPadGrad TensorScatterAdd GatherV2")
def arguments_that_are_odd(p):
    p.run_each(odd_arguments)


@program("ResourceScatterAdd ResourceScatterUpdate")
def rows_that_do_not_fit_a_variable(p):
    handle = tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=[4, 2], shared_name="rows")
    made = tf.raw_ops.AssignVariableOp(resource=handle, value=np.ones((4, 2), np.float32))
    indices, updates = p.placeholder("indices", tf.int32), p.placeholder("updates")
    changes = [tf.raw_ops.ResourceScatterAdd(resource=handle, indices=indices, updates=updates), tf.raw_ops.ResourceScatterUpdate(resource=handle, indices=indices, updates=updates)]
    read = tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.float32)
    p.run(targets=[made])
    for i, shape in (([], (3, 2)), ([[0, 1, 2]], (3, 2)), ([0, 1], (3, 2)), ([0, 1, 2], (1, 3, 2)), ([0, 1, 2], (3, 2))):
        for change in changes:
            p.run(feeds={indices: np.array(i, np.int32), updates: np.ones(shape, np.float32)}, targets=[change])
    p.run([read])
