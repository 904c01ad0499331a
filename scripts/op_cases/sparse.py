"""Sparse tensors and sets."""
import numpy as np
import tensorflow as tf

from .table import Call, cases, program

I64 = np.int64


def i(*rows):
    return np.array(rows, I64)


A = (i((0, 1), (1, 0), (1, 2)), i(2, 3))  # indices, shape
B = (i((0, 1), (1, 1)), i(2, 3))
EMPTY = (np.zeros((0, 2), I64), i(2, 3))
CUBE = (i((0, 0, 1), (0, 1, 0), (1, 1, 1)), i(2, 2, 2))


@cases("SparseToDense")
def sparse_to_dense(c):
    t = c.type("Tindices")
    yield Call(A[0].astype(t), A[1].astype(t), c.values((3,)), c.values(()))
    yield Call(np.array([1, 3], t), np.array([5], t), c.values(()), c.values(()))
    yield Call(np.array(2, t), np.array([4], t), c.values(()), c.values(()))
    yield Call(np.zeros((0, 2), t), np.array([2, 2], t), c.values((0,)), c.values(()))
    yield Call(np.array([3, 1], t), np.array([5], t), c.values((2,)), c.values(()))
    yield Call(np.array([3, 1], t), np.array([5], t), c.values((2,)), c.values(()), validate_indices=False)
    yield Call(np.array([1, 1], t), np.array([5], t), c.values((2,)), c.values(()))
    yield Call(np.array([5], t), np.array([5], t), c.values((1,)), c.values(()))
    yield Call(A[0].astype(t), A[1].astype(t), c.values((2,)), c.values(()))


@cases("SparseAdd", types={"*": []})
def sparse_add(c):
    if c.types["Treal"] != {"complex64": "float32", "complex128": "float64"}.get(c.name, c.name):
        return  # TensorFlow reads the threshold as of that type, whatever it is
    real = np.array(0, c.type("Treal"))
    yield Call(A[0], c.values((3,), 1, 4), A[1], B[0], c.values((2,), 1, 4), B[1], real)
    yield Call(A[0], c.values((3,), 1, 4), A[1], EMPTY[0], c.values((0,)), EMPTY[1], real)
    yield Call(A[0], np.array([1, 2, 3], c.T), A[1], A[0], np.array([1, 1, 1], c.T), A[1], np.array(3, c.type("Treal")))
    yield Call(A[0], c.values((3,), 1, 4), A[1], B[0], c.values((2,), 1, 4), i(3, 3), real, grad=False)
    yield Call(A[0], c.values((2,), 1, 4), A[1], B[0], c.values((2,), 1, 4), B[1], real, grad=False)


@cases("SparseAddGrad")
def sparse_add_grad(c):
    yield Call(c.values((4,)), A[0], B[0], i((0, 1), (1, 0), (1, 1), (1, 2)))


@cases("SparseTensorDenseAdd")
def sparse_tensor_dense_add(c):
    t = c.type("Tindices")
    yield Call(A[0].astype(t), c.values((3,)), A[1].astype(t), c.values((2, 3)))
    yield Call(A[0].astype(t), c.values((3,)), A[1].astype(t), c.values((3, 3)))


@cases("SparseTensorDenseMatMul", rtol=1e-4, atol=1e-4)
def sparse_tensor_dense_mat_mul(c):
    t = c.type("Tindices")
    for a in (False, True):
        for b in (False, True):
            x = (3, 2) if not a else (2, 2)
            yield Call(A[0].astype(t), c.values((3,)), A[1], c.values(x[::-1] if b else x), adjoint_a=a, adjoint_b=b)
    yield Call(A[0].astype(t), c.values((3,)), A[1], c.values((2, 2)), grad=False)
    yield Call(np.array([[0, 3]], t), c.values((1,)), A[1], c.values((3, 2)), grad=False)


@cases("SparseConcat")
def sparse_concat(c):
    for dim in (0, 1, -1):
        yield Call([A[0], B[0]], [c.values((3,)), c.values((2,))], [A[1], B[1]], concat_dim=dim)
    yield Call([A[0], EMPTY[0]], [c.values((3,)), c.values((0,))], [A[1], EMPTY[1]], concat_dim=0)
    yield Call([A[0], B[0]], [c.values((3,)), c.values((2,))], [A[1], i(3, 3)], concat_dim=1, grad=False)


@cases("SparseSplit")
def sparse_split(c):
    yield Call(np.array(1, I64), A[0], c.values((3,)), A[1], num_split=2)
    yield Call(np.array(0, I64), A[0], c.values((3,)), A[1], num_split=2)
    yield Call(np.array(2, I64), A[0], c.values((3,)), A[1], num_split=2, grad=False)
    yield Call(np.array(0, I64), A[0], c.values((3,)), A[1], num_split=3, grad=False)


@cases("SparseReorder")
def sparse_reorder(c):
    yield Call(i((1, 2), (0, 1), (1, 0)), c.values((3,)), A[1])
    yield Call(A[0], c.values((3,)), A[1])
    yield Call(EMPTY[0], c.values((0,)), EMPTY[1])
    yield Call(i((5, 2)), c.values((1,)), A[1], grad=False)


@cases("SparseReshape")
def sparse_reshape(c):
    yield Call(A[0], A[1], i(3, 2))
    yield Call(A[0], A[1], i(-1))
    yield Call(EMPTY[0], EMPTY[1], i(3, -1))
    yield Call(A[0], A[1], i(4, 2))
    yield Call(A[0], A[1], i(-1, -1))


@cases("SparseSlice")
def sparse_slice(c):
    yield Call(A[0], c.values((3,)), A[1], i(0, 1), i(2, 2))
    yield Call(A[0], c.values((3,)), A[1], i(1, 0), i(5, 5))
    yield Call(EMPTY[0], c.values((0,)), EMPTY[1], i(0, 0), i(1, 1))
    yield Call(A[0], c.values((3,)), A[1], i(0), i(2), grad=False)


@cases("SparseSliceGrad")
def sparse_slice_grad(c):
    yield Call(c.values((2,)), A[0], i(0, 1), i((0, 0), (1, 1)))


def sparse_reduce(c):
    for axes in ([0], [1], [-1], [0, 1], []):
        for keep in (False, True):
            yield Call(A[0], c.values((3,), 1, 4), A[1], np.array(axes, np.int32), keep_dims=keep)
    yield Call(CUBE[0], c.values((3,), 1, 4), CUBE[1], np.array([0, 2], np.int32), keep_dims=False)
    yield Call(A[0], c.values((3,), 1, 4), A[1], np.array([2], np.int32), keep_dims=False, grad=False)


cases("SparseReduceSum SparseReduceMax")(sparse_reduce)
cases("SparseReduceSumSparse SparseReduceMaxSparse", gradient=False)(sparse_reduce)


@cases("SparseSoftmax")
def sparse_softmax(c):
    yield Call(A[0], c.values((3,)), A[1])
    yield Call(CUBE[0], c.values((3,)), CUBE[1])
    yield Call(i((0,), (1,)), c.values((2,)), i(3), grad=False)


@cases("SparseSparseMaximum SparseSparseMinimum")
def sparse_sparse(c):
    yield Call(A[0], c.values((3,)), A[1], B[0], c.values((2,)), B[1])
    yield Call(A[0], c.values((3,)), A[1], EMPTY[0], c.values((0,)), EMPTY[1])
    yield Call(A[0], c.values((3,)), A[1], B[0], c.values((2,)), i(3, 3), grad=False)


@cases("SparseDenseCwiseAdd SparseDenseCwiseMul SparseDenseCwiseDiv")
def sparse_dense(c):
    yield Call(A[0], c.values((3,), 1, 9), A[1], c.values((2, 3), 1, 4))
    yield Call(A[0], c.values((3,), 1, 9), A[1], c.values((3,), 1, 4))
    yield Call(A[0], c.values((3,), 1, 9), A[1], c.values((), 1, 4))
    yield Call(A[0], c.values((3,), 1, 9), A[1], c.values((2, 1), 1, 4))
    yield Call(A[0], c.values((3,), 1, 9), A[1], c.values((2,), 1, 4), grad=False)


@cases("SparseFillEmptyRows")
def sparse_fill_empty_rows(c):
    yield Call(i((0, 1), (2, 0), (2, 2)), c.values((3,)), i(4, 3), c.values(()))
    yield Call(A[0], c.values((3,)), A[1], c.values(()))
    yield Call(EMPTY[0], c.values((0,)), EMPTY[1], c.values(()))
    yield Call(i((2, 1), (0, 0)), c.values((2,)), i(4, 3), c.values(()))
    yield Call(i((4, 0)), c.values((1,)), i(4, 3), c.values(()), grad=False)


@cases("RaggedFillEmptyRows")
def ragged_fill_empty_rows(c):
    n = lambda x: np.array(x, np.int64)
    yield Call(i(0, 0, 2), c.values((3,)), n(4), c.values(()))
    yield Call(i(2, 0, 1, 0), c.values((4,)), n(4), c.values(()))
    yield Call(n([]), c.values((0,)), n(2), c.values(()))
    yield Call(n([]), c.values((0,)), n(0), c.values(()), grad=False)
    for rows in ((0, 5), (0,), (-1, 0), (0, 1, 2)):
        yield Call(i(*rows), c.values((2,)), n(4), c.values(()), grad=False)
    yield Call(i(0, 1), c.values((2,)), n([4]), c.values(()), grad=False)
    yield Call(i(0, 1), c.values((2,)), n(4), c.values((1,)), grad=False)
    yield Call(i(0, 1), c.values((2, 1)), n(4), c.values(()), grad=False)
    yield Call(i((0, 1)).reshape(1, 2), c.values((2,)), n(4), c.values(()), grad=False)
    yield Call(i(0, 1), c.values((2,)), n(-4), c.values(()), grad=False)
    yield Call(i(0, 1), c.values((2,)), n(0), c.values(()), grad=False)


@cases("SparseFillEmptyRowsGrad RaggedFillEmptyRowsGrad")
def sparse_fill_empty_rows_grad(c):
    yield Call(i(0, 2, 3), c.values((5,)))
    yield Call(i(5), c.values((5,)))
    yield Call(np.zeros((0,), np.int64), c.values((3,)))
    yield Call(i((0, 1)).reshape(1, 2), c.values((3,)))
    yield Call(i(0, 1), c.values((3, 1)))


@cases("SerializeSparse", types={"out_type": ["string"]}, gradient=False)
def serialize_sparse(c):
    yield Call(A[0], c.values((3,)), A[1])


@cases("SerializeManySparse", types={"out_type": ["string"]}, gradient=False)
def serialize_many_sparse(c):
    yield Call(A[0], c.values((3,)), A[1])
    yield Call(EMPTY[0], c.values((0,)), EMPTY[1])


def serialized(c, parts):
    import tensorflow as tf
    return np.array([[tf.make_tensor_proto(x).SerializeToString() for x in p] for p in parts], object)


@cases("DeserializeManySparse", gradient=False)
def deserialize_many_sparse(c):
    t = c.type("dtype")
    parts = [(i((0,), (2,)), c.values((2,), dtype=t), i(3)), (i((1,)).reshape(1, 1), c.values((1,), dtype=t), i(4))]
    yield Call(serialized(c, parts))


@cases("DeserializeSparse", types={"Tserialized": ["string"]}, gradient=False)
def deserialize_sparse(c):
    t = c.type("dtype")
    parts = [(i((0,), (2,)), c.values((2,), dtype=t), i(3)), (i((1,)).reshape(1, 1), c.values((1,), dtype=t), i(4))]
    yield Call(serialized(c, parts))
    yield Call(serialized(c, parts)[0])


def string_or(c, *values):
    return np.array([str(v).encode() for v in values], object) if c.name == "string" else np.array(values, c.T)


OPERATIONS = ("a-b", "b-a", "intersection", "union")


@cases("DenseToDenseSetOperation", gradient=False)
def dense_sets(c):
    for operation in OPERATIONS:
        yield Call(string_or(c, 1, 2, 3, 4).reshape(2, 2), string_or(c, 2, 9, 4, 3).reshape(2, 2), set_operation=operation)
    yield Call(string_or(c, 1, 2), string_or(c, 1, 2).reshape(2, 1), set_operation="union")


@cases("DenseToSparseSetOperation", gradient=False)
def dense_sparse_sets(c):
    for operation in OPERATIONS:
        yield Call(string_or(c, 1, 2, 3, 4).reshape(2, 2), i((0, 0), (1, 0), (1, 1)), string_or(c, 2, 3, 9), i(2, 2), set_operation=operation)


@cases("SparseToSparseSetOperation", gradient=False)
def sparse_sets(c):
    for operation in OPERATIONS:
        yield Call(i((0, 0), (1, 0)), string_or(c, 2, 3), i(2, 2), i((0, 0), (1, 0), (1, 1)), string_or(c, 2, 3, 9), i(2, 2), set_operation=operation)
    yield Call(i((1, 0), (0, 0)), string_or(c, 2, 3), i(2, 2), i((0, 0)), string_or(c, 2), i(2, 2), set_operation="union")


@cases("SetSize", gradient=False)
def set_size(c):
    yield Call(i((0, 0), (1, 0), (1, 1)), string_or(c, 2, 3, 3), i(2, 2))
    yield Call(np.zeros((0, 2), I64), string_or(c), i(2, 2))


@cases("SparseCross", types={"out_type": ["int64", "string"], "internal_type": ["int64", "string"], "*": []}, gradient=False)
def sparse_cross(c):
    hashed = c.types["out_type"] == "int64"
    kind = c.types["internal_type"]
    v = (lambda *a: np.array(a, I64)) if kind == "int64" else (lambda *a: np.array([str(x).encode() for x in a], object))
    if hashed == (kind == "int64"):  # as the client asks for it
        yield Call([i((0, 0), (1, 0), (1, 1)), i((0, 0), (1, 0))], [v(1, 2, 3), v(7, 8)], [i(2, 2), i(2, 1)], [v(5, 6).reshape(2, 1)],
                   hashed_output=hashed, num_buckets=100 if hashed else 0, hash_key=956888297470)


@cases("SparseCrossV2", gradient=False)
def sparse_cross_v2(c):
    v = lambda *a: np.array([str(x).encode() for x in a], object)
    yield Call([i((0, 0), (1, 0), (1, 1))], [v(1, 2, 3)], [i(2, 2)], [v(5, 6).reshape(2, 1)], np.array(b"_X_", object))
    yield Call([i((0, 0), (1, 0), (1, 1))], [v(1, 2, 3)], [i(2, 2)], [v(5, 6).reshape(2, 1)], np.array([b"_X_"], object))


@cases("SparseCrossHashed", gradient=False)
def sparse_cross_hashed(c):
    v = lambda *a: np.array(a, I64)
    for strong in (False,):
        yield Call([i((0, 0), (1, 0), (1, 1))], [v(1, 2, 3)], [i(2, 2)], [np.array([[5], [6]], I64)], np.int64(100), np.array(strong), np.array([12, 34], I64))


@cases("RaggedCross", types={"out_values_type": ["int64", "string"], "*": []}, gradient=False)
def ragged_cross(c):
    hashed = c.types["out_values_type"] == "int64"
    numbers, words = lambda *a: np.array(a, I64), lambda *a: np.array([str(x).encode() for x in a], object)
    splits = lambda *a: np.array(a, c.type("out_row_splits_type"))
    more = dict(hashed_output=hashed, num_buckets=100 if hashed else 0, hash_key=956888297470, out_values_type=c.types["out_values_type"], out_row_splits_type=c.types["out_row_splits_type"])
    ragged, sparse = ([words("a", "b", "c"), numbers(1, 2, 3)], [splits(0, 2, 3), splits(0, 1, 3)]), ([i((0, 0), (0, 1), (1, 0))], [words("x", "y", "z")], [i(2, 3)])
    none = ([], [], [])
    dense = [numbers(5, 6).reshape(2, 1), words("d", "e", "f", "g").reshape(2, 2)]
    yield Call(*ragged, *none, [], input_order="RR", **more)
    yield Call(*ragged, *sparse, dense, input_order="DRSDR", **more)
    yield Call([], [], *sparse, dense, input_order="SDD", **more)
    yield Call([], [], *none, dense, input_order="DD", **{**more, "num_buckets": 0})
    yield Call([words(), words("q")], [splits(0, 0, 0), splits(0, 1, 1)], *none, [], input_order="RR", **more)
    yield Call([words("p", "q")], [splits(0, 0, 2)], *none, [], input_order="R", **more)
    for bad in (splits(0, 2), splits(0, 2, 4), splits(1, 2, 3), splits(0, 5, 3), splits(0, 2, 3, 3), splits(0, 2, 3).reshape(1, 3), splits()):
        yield Call([words("a", "b", "c"), numbers(1, 2, 3)], [splits(0, 2, 3), bad], *none, [], input_order="RR", **more)
    for order in ("R", "RS", "RX", "DD"):
        yield Call(*ragged, *none, [], input_order=order, **more)
    yield Call([], [], [i((0, 0))], [words("x")], [i(2, 3, 1)], [], input_order="S", **more)
    yield Call([], [], *sparse, [words("a", "b", "c").reshape(3, 1)], input_order="SD", **more)
    yield Call([], [], *none, [words("a", "b", "c")], input_order="D", **more)


def misfits(I, V):
    """Sparse tensors that do not fit: a name, the op, its arguments; I and V make indices and values that are fed."""
    yield "s2d_order", "SparseToDense", dict(sparse_indices=I([2, 1]), output_shape=I([5]), sparse_values=V(1.), default_value=V(0.))
    yield "s2d_rep", "SparseToDense", dict(sparse_indices=I([1, 1]), output_shape=I([5]), sparse_values=V(1.), default_value=V(0.))
    yield "s2d_oob", "SparseToDense", dict(sparse_indices=I([1, 6]), output_shape=I([5]), sparse_values=V(1.), default_value=V(0.))
    yield "s2d_neg", "SparseToDense", dict(sparse_indices=I([-1, 3]), output_shape=I([5]), sparse_values=V(1.), default_value=V(0.))
    yield "s2d_2d", "SparseToDense", dict(sparse_indices=I([[0, 0], [0, 9]]), output_shape=I([2, 3]), sparse_values=V(1.), default_value=V(0.))
    yield "s2d_rank", "SparseToDense", dict(sparse_indices=I([[[0]]]), output_shape=I([5]), sparse_values=V(1.), default_value=V(0.))
    yield "s2d_shape", "SparseToDense", dict(sparse_indices=I([[0, 1]]), output_shape=I([[5]]), sparse_values=V(1.), default_value=V(0.))
    yield "s2d_mis", "SparseToDense", dict(sparse_indices=I([[0, 1]]), output_shape=I([5]), sparse_values=V(1.), default_value=V(0.))
    yield "s2d_vals", "SparseToDense", dict(sparse_indices=I([0, 1]), output_shape=I([5]), sparse_values=V([1., 2, 3]), default_value=V(0.))
    yield "s2d_def", "SparseToDense", dict(sparse_indices=I([0, 1]), output_shape=I([5]), sparse_values=V([1., 2]), default_value=V([0.]))
    yield "s2d_negshape", "SparseToDense", dict(sparse_indices=I([2, 1]), output_shape=I([-5]), sparse_values=V([1., 2]), default_value=V(0.))
    yield "conc_dim", "SparseConcat", dict(indices=[I([[0, 0]]), I([[0, 1]])], values=[V([1.]), V([2.])], shapes=[I([2, 3]), I([3, 3])], concat_dim=1)
    yield "conc_rank", "SparseConcat", dict(indices=[I([[0, 0]]), I([[0, 1, 0]])], values=[V([1.]), V([2.])], shapes=[I([2, 3]), I([3, 3, 1])], concat_dim=1)
    yield "conc_oob", "SparseConcat", dict(indices=[I([[0, 0]]), I([[0, 1]])], values=[V([1.]), V([2.])], shapes=[I([2, 3]), I([2, 3])], concat_dim=5)
    yield "conc_vals", "SparseConcat", dict(indices=[I([[0, 0]]), I([[0, 1]])], values=[V([1., 2]), V([2.])], shapes=[I([2, 3]), I([2, 3])], concat_dim=1)
    yield "add_shape", "SparseAdd", dict(a_indices=I([[0, 0]]), a_values=V([1.]), a_shape=I([2, 3]), b_indices=I([[0, 0]]), b_values=V([1.]), b_shape=I([2, 4]), thresh=V(0.))
    yield "add_rank", "SparseAdd", dict(a_indices=I([[0, 0]]), a_values=V([1.]), a_shape=I([2, 3]), b_indices=I([[0]]), b_values=V([1.]), b_shape=I([2]), thresh=V(0.))
    yield "add_thresh", "SparseAdd", dict(a_indices=I([[0, 0]]), a_values=V([1.]), a_shape=I([2, 3]), b_indices=I([[0, 0]]), b_values=V([1.]), b_shape=I([2, 3]), thresh=V([0.]))
    yield "add_vals", "SparseAdd", dict(a_indices=I([[0, 0]]), a_values=V([1., 2]), a_shape=I([2, 3]), b_indices=I([[0, 0]]), b_values=V([1.]), b_shape=I([2, 3]), thresh=V(0.))
    yield "add_order", "SparseAdd", dict(a_indices=I([[1, 0], [0, 0]]), a_values=V([1., 2]), a_shape=I([2, 3]), b_indices=I([[0, 0]]), b_values=V([1.]), b_shape=I([2, 3]), thresh=V(0.))
    yield "addg", "SparseAddGrad", dict(backprop_val_grad=V([1., 2]), a_indices=I([[0, 0]]), b_indices=I([[0, 0]]), sum_indices=I([[0, 0]]))
    yield "mm_oob", "SparseTensorDenseMatMul", dict(a_indices=I([[5, 0]]), a_values=V([1.]), a_shape=I([2, 3]), b=V(np.ones((3, 2))))
    yield "mm_oobk", "SparseTensorDenseMatMul", dict(a_indices=I([[0, 7]]), a_values=V([1.]), a_shape=I([2, 3]), b=V(np.ones((3, 2))))
    yield "mm_k", "SparseTensorDenseMatMul", dict(a_indices=I([[0, 0]]), a_values=V([1.]), a_shape=I([2, 3]), b=V(np.ones((4, 2))))
    yield "mm_b", "SparseTensorDenseMatMul", dict(a_indices=I([[0, 0]]), a_values=V([1.]), a_shape=I([2, 3]), b=V(np.ones((4, ))))
    yield "mm_shape", "SparseTensorDenseMatMul", dict(a_indices=I([[0, 0]]), a_values=V([1.]), a_shape=I([2, 3, 4]), b=V(np.ones((3, 2))))
    yield "mm_vals", "SparseTensorDenseMatMul", dict(a_indices=I([[0, 0]]), a_values=V([1., 2]), a_shape=I([2, 3]), b=V(np.ones((3, 2))))
    yield "resh", "SparseReshape", dict(input_indices=I([[0, 0]]), input_shape=I([2, 3]), new_shape=I([-1, -1]))
    yield "resh2", "SparseReshape", dict(input_indices=I([[0, 0]]), input_shape=I([2, 3]), new_shape=I([4, -1]))
    yield "resh3", "SparseReshape", dict(input_indices=I([[0, 0]]), input_shape=I([2, 3]), new_shape=I([4, 2]))
    yield "resh4", "SparseReshape", dict(input_indices=I([[0, 0]]), input_shape=I([2, 3]), new_shape=I([-2, 3]))
    yield "resh5", "SparseReshape", dict(input_indices=I([0, 0]), input_shape=I([2, 3]), new_shape=I([2, 3]))
    yield "fill", "SparseFillEmptyRows", dict(indices=I([[5, 0]]), values=V([1.]), dense_shape=I([2, 3]), default_value=V(0.))
    yield "fill2", "SparseFillEmptyRows", dict(indices=I([[0, 0]]), values=V([1., 2]), dense_shape=I([2, 3]), default_value=V(0.))
    yield "fill4", "SparseFillEmptyRows", dict(indices=I([[0, 0]]), values=V([1.]), dense_shape=I([2, 3]), default_value=V([0.]))
    yield "fill5", "SparseFillEmptyRows", dict(indices=I([[0, 0]]), values=V([1.]), dense_shape=I([[2, 3]]), default_value=V(0.))
    yield "fill6", "SparseFillEmptyRows", dict(indices=I([[0, 0]]), values=V([1.]), dense_shape=I([0, 3]), default_value=V(0.))
    yield "red", "SparseReduceSum", dict(input_indices=I([[0, 0]]), input_values=V([1.]), input_shape=I([2, 3]), reduction_axes=tf.constant([2]))
    yield "red2", "SparseReduceSum", dict(input_indices=I([[0, 0]]), input_values=V([1.]), input_shape=I([2, 3]), reduction_axes=tf.constant([-3]))
    yield "soft1", "SparseSoftmax", dict(sp_indices=I([[0]]), sp_values=V([1.]), sp_shape=I([2]))
    yield "soft2", "SparseSoftmax", dict(sp_indices=I([[0, 0]]), sp_values=V([1., 2]), sp_shape=I([2, 3]))
    yield "cw1", "SparseDenseCwiseMul", dict(sp_indices=I([[0, 0]]), sp_values=V([1.]), sp_shape=I([2, 3]), dense=V(np.ones((2, 2))))
    yield "cw2", "SparseDenseCwiseAdd", dict(sp_indices=I([[0, 0]]), sp_values=V([1.]), sp_shape=I([2]), dense=V(np.ones((2, 2))))
    yield "cw3", "SparseDenseCwiseDiv", dict(sp_indices=I([[0, 5]]), sp_values=V([1.]), sp_shape=I([2, 3]), dense=V(np.ones((2, 3))))
    yield "cw4", "SparseDenseCwiseDiv", dict(sp_indices=I([[0, 0]]), sp_values=V([1., 2]), sp_shape=I([2, 3]), dense=V(np.ones((2, 3))))
    yield "mx1", "SparseSparseMaximum", dict(a_indices=I([[0, 0]]), a_values=V([1.]), a_shape=I([2, 3]), b_indices=I([[0, 0]]), b_values=V([1.]), b_shape=I([2, 4]))
    yield "mx2", "SparseSparseMinimum", dict(a_indices=I([[0, 0]]), a_values=V([1.]), a_shape=I([2, 3]), b_indices=I([[0]]), b_values=V([1.]), b_shape=I([2]))
    yield "mx3", "SparseSparseMinimum", dict(a_indices=I([[0, 0]]), a_values=V([1., 3]), a_shape=I([2, 3]), b_indices=I([[0, 0]]), b_values=V([1.]), b_shape=I([2, 3]))
    yield "sl1", "SparseSlice", dict(indices=I([[0, 0]]), values=V([1.]), shape=I([2, 3]), start=I([0]), size=I([1, 1]))
    yield "sl2", "SparseSlice", dict(indices=I([[0, 0]]), values=V([1.]), shape=I([2, 3]), start=I([0, -1]), size=I([1, 1]))
    yield "sl3", "SparseSlice", dict(indices=I([[0, 0]]), values=V([1.]), shape=I([2, 3]), start=I([0, 1]), size=I([1, -1]))
    yield "slg", "SparseSliceGrad", dict(backprop_val_grad=V([1., 2]), input_indices=I([[0, 0]]), input_start=I([0, 0]), output_indices=I([[0, 0]]))
    yield "slg2", "SparseSliceGrad", dict(backprop_val_grad=V([1.]), input_indices=I([[0, 0]]), input_start=I([0]), output_indices=I([[0, 0]]))
    yield "sp1", "SparseSplit", dict(split_dim=I(5), indices=I([[0, 0]]), values=V([1.]), shape=I([2, 3]), num_split=2)
    yield "sp2", "SparseSplit", dict(split_dim=I(1), indices=I([[0, 0]]), values=V([1.]), shape=I([2, 3]), num_split=7)
    yield "sp3", "SparseSplit", dict(split_dim=I([1]), indices=I([[0, 0]]), values=V([1.]), shape=I([2, 3]), num_split=2)
    yield "re1", "SparseReorder", dict(input_indices=I([[0, 0]]), input_values=V([1., 2]), input_shape=I([2, 3]))
    yield "re2", "SparseReorder", dict(input_indices=I([[0, 0, 0]]), input_values=V([1.]), input_shape=I([2, 3]))
    yield "da1", "SparseTensorDenseAdd", dict(a_indices=I([[0, 9]]), a_values=V([1.]), a_shape=I([2, 3]), b=V(np.ones((2, 3))))
    yield "da2", "SparseTensorDenseAdd", dict(a_indices=I([[0, 0]]), a_values=V([1.]), a_shape=I([2, 4]), b=V(np.ones((2, 3))))
    yield "da3", "SparseTensorDenseAdd", dict(a_indices=I([[0, 0]]), a_values=V([1.]), a_shape=I([2]), b=V(np.ones((2, 3))))
    yield "ser1", "SerializeManySparse", dict(sparse_indices=I([[0, 0]]), sparse_values=V([1.]), sparse_shape=I([2, 3, 1]))
    yield "ser2", "SerializeSparse", dict(sparse_indices=I([0, 0]), sparse_values=V([1.]), sparse_shape=I([2, 3]))
    yield "ser3", "SerializeManySparse", dict(sparse_indices=I([[5, 0]]), sparse_values=V([1.]), sparse_shape=I([2, 3]))
    yield "ser4", "SerializeManySparse", dict(sparse_indices=I([[0]]), sparse_values=V([1.]), sparse_shape=I([2]))
    ends = dict(set1_indices=I([[0, 0]]), set1_values=I([1]))
    two = dict(set2_indices=I([[0, 0]]), set2_values=I([1]), set_operation="union")
    yield "set1", "SparseToSparseSetOperation", dict(set1_shape=I([2, 3]), set2_shape=I([3, 3]), **ends, **two)
    yield "set2", "SparseToSparseSetOperation", dict(set1_shape=I([2]), set2_shape=I([3, 3]), **ends, **two)
    yield "set10", "SetSize", dict(set_indices=I([[0]]), set_values=I([1]), set_shape=I([2]))
    truth = dict(truth_indices=I([[0, 0]]), truth_values=I([1]), truth_shape=I([1, 2]))
    yield "ed3", "EditDistance", dict(hypothesis_indices=I([[0, 0]]), hypothesis_values=I([1, 2]), hypothesis_shape=I([1, 2]), **truth)
    none = dict(weights=I([]), binary_output=False)
    yield "cnt1", "SparseCountSparseOutput", dict(indices=I([[0, 0]]), values=I([1, 2]), dense_shape=I([2, 3]), **none)
    yield "cnt4", "SparseCountSparseOutput", dict(indices=I([[5, 0]]), values=I([1]), dense_shape=I([2, 3]), **none)
    yield "sred3", "SparseReduceSum", dict(input_indices=I([0]), input_values=V([1.]), input_shape=I([2]), reduction_axes=tf.constant([0]))
    yield "sred4", "SparseReduceSum", dict(input_indices=I([[0]]), input_values=V([1.]), input_shape=I([[2]]), reduction_axes=tf.constant([0]))
    yield "sred5", "SparseReduceSum", dict(input_indices=I([[0, 0]]), input_values=V([[1.]]), input_shape=I([2, 3]), reduction_axes=tf.constant([0]))
    yield "des1", "DeserializeManySparse", dict(serialized_sparse=tf.constant([[b"a", b"b", b"c"]]), dtype=tf.float32)
    yield "des3", "DeserializeSparse", dict(serialized_sparse=tf.constant([b"a", b"b", b"c"]), dtype=tf.float32)


@program("SparseToDense SparseConcat SparseAdd SparseAddGrad SparseTensorDenseMatMul SparseReshape SparseFillEmptyRows SparseReduceSum SparseSoftmax SparseDenseCwiseMul "
         "SparseDenseCwiseAdd SparseDenseCwiseDiv SparseSparseMaximum SparseSparseMinimum SparseSlice SparseSliceGrad SparseSplit SparseReorder SparseToSparseSetOperation SetSize EditDistance SparseCountSparseOutput SparseTensorDenseAdd SerializeManySparse SerializeSparse DeserializeManySparse DeserializeSparse")
def sparse_tensors_that_do_not_fit(p):
    p.run_each(lambda fed: misfits(lambda v, shape=None: fed(np.reshape(v, shape) if shape else v, np.int64), fed))


def wrong_parts(i64, fed):
    """Calls of ops with one part of a sparse tensor of another rank or length than it has to have."""
    f32 = lambda v: fed(v, np.float32)
    places, values, size = [[0, 1], [1, 0], [1, 2]], [1, 2, 3], [2, 3]
    parts = {"i": (0, [places]), "ishort": (0, [[0], [1], [1]]), "v": (1, [values]), "s": (2, [size]), "snone": (2, []), "sneg": (2, [-1, 3])}

    def part(which, n):
        at, wrong = parts[which]
        value = wrong if at == n else [places, values, size][n]
        return f32(value) if n == 1 else i64(value)

    for w in parts:
        yield "add_a_" + w, "SparseAdd", dict(a_indices=part(w, 0), a_values=part(w, 1), a_shape=part(w, 2), b_indices=i64(places), b_values=f32(values),
                                              b_shape=i64(size), thresh=f32(0))
        yield "add_b_" + w, "SparseAdd", dict(b_indices=part(w, 0), b_values=part(w, 1), b_shape=part(w, 2), a_indices=i64(places), a_values=f32(values),
                                              a_shape=i64(size), thresh=f32(0))
        yield "cwise_" + w, "SparseDenseCwiseAdd", dict(sp_indices=part(w, 0), sp_values=part(w, 1), sp_shape=part(w, 2), dense=f32(np.ones((2, 3))))
        yield "sum_" + w, "SparseReduceSum", dict(input_indices=part(w, 0), input_values=part(w, 1), input_shape=part(w, 2), reduction_axes=fed([0], np.int32))
        yield "soft_" + w, "SparseSoftmax", dict(sp_indices=part(w, 0), sp_values=part(w, 1), sp_shape=part(w, 2))
        if w != "sneg":
            yield "dense_" + w, "SparseTensorDenseAdd", dict(a_indices=part(w, 0), a_values=part(w, 1), a_shape=part(w, 2), b=f32(np.ones((2, 3))))
            yield "mul_" + w, "SparseTensorDenseMatMul", dict(a_indices=part(w, 0), a_values=part(w, 1), a_shape=part(w, 2), b=f32(np.ones((3, 1))))
            yield "cat_" + w, "SparseConcat", dict(indices=[i64(places), part(w, 0)], values=[f32(values), part(w, 1)], shapes=[i64(size), part(w, 2)], concat_dim=0)
        if w != "v":
            yield "again_" + w, "SparseReshape", dict(input_indices=part(w, 0), input_shape=part(w, 2), new_shape=i64([3, 2]))
    yield "axes", "SparseReduceSum", dict(input_indices=i64(places), input_values=f32(values), input_shape=i64(size), reduction_axes=fed([[0]], np.int32))
    yield "rows", "SparseTensorDenseAdd", dict(a_indices=i64(places), a_values=f32([1, 2]), a_shape=i64(size), b=f32(np.ones((2, 3))))
    yield "empty", "SparseReshape", dict(input_indices=i64(places), input_shape=i64([0, 3]), new_shape=i64([3, 0]))
    yield "sets", "SetSize", dict(set_indices=i64([places]), set_values=fed(values, np.int64), set_shape=i64(size))
    yield "sets_v", "SetSize", dict(set_indices=i64(places), set_values=fed([values], np.int64), set_shape=i64(size))
    yield "sets_s", "SetSize", dict(set_indices=i64(places), set_values=fed(values, np.int64), set_shape=i64([size]))
    sums = dict(backprop_val_grad=f32(values), a_indices=i64(places), b_indices=i64(places), sum_indices=i64(places))
    yield "sums_g", "SparseAddGrad", {**sums, "backprop_val_grad": f32([values])}
    yield "sums_a", "SparseAddGrad", {**sums, "a_indices": i64([places])}
    yield "sums_n", "SparseAddGrad", {**sums, "a_indices": i64([[0], [1]])}
    slices = dict(backprop_val_grad=f32(values), input_indices=i64(places), input_start=i64([0, 0]), output_indices=i64(places))
    yield "slice_g", "SparseSliceGrad", {**slices, "backprop_val_grad": f32([values])}
    yield "slice_n", "SparseSliceGrad", {**slices, "input_indices": i64([[0], [1]])}
    yield "slice_s", "SparseSliceGrad", {**slices, "input_start": i64([[0, 0]])}
    yield "slice_more", "SparseSliceGrad", {**slices, "input_indices": i64(np.zeros((0, 2)))}
    cross = dict(indices=[i64(places)], values=[i64(values)], shapes=[i64(size)], dense_inputs=[i64([[1], [2]])], hashed_output=True, num_buckets=9, hash_key=1,
                 out_type=tf.int64, internal_type=tf.int64)
    yield "cross_v", "SparseCross", {**cross, "values": [i64([1, 2])]}
    yield "cross_i", "SparseCross", {**cross, "indices": [i64([[0], [1], [1]])]}
    yield "cross_s", "SparseCross", {**cross, "shapes": [i64([])]}


@program("SparseAdd SparseAddGrad SparseTensorDenseAdd SparseTensorDenseMatMul SparseDenseCwiseAdd SparseReduceSum SparseSoftmax SparseConcat SparseReshape SetSize "
         "SparseSliceGrad SparseCross")
def sparse_parts_of_wrong_ranks(p):
    p.run_each(lambda fed: wrong_parts(lambda v: fed(v, np.int64), fed))
