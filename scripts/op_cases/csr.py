"""Sparse matrices by compressed rows: variants that live in one step, made of a matrix and the places that count."""
import numpy as np
import tensorflow as tf

from .table import program

raw = tf.raw_ops
TYPES = ["float32", "float64", "complex64", "complex128"]


def places(array):
    return np.argwhere(array != 0).astype(np.int64)


def matrix(p, name, rank):
    """A matrix that is fed with its places, and both as a dictionary of a feed; TensorFlow wants to know its rank beforehand."""
    x, at = p.placeholder(f"{name}{rank}"), p.placeholder(f"{name}{rank}_at", tf.int64)
    m = raw.DenseToCSRSparseMatrix(dense_input=tf.ensure_shape(x, [None] * rank), indices=tf.ensure_shape(at, [None, rank]))
    return m, lambda array, where=None: {x: array, at: places(array) if where is None else where}


def with_holes(p, shape):
    x = p.values(shape)
    flat = x.reshape(-1)
    flat[::3] = 0
    return x


def run_all(p, steps):
    """Steps are run when the whole graph is made."""
    for fetches, feed in steps:
        p.run(fetches, feed)


@program("DenseToCSRSparseMatrix CSRSparseMatrixToDense CSRSparseMatrixToSparseTensor CSRSparseMatrixComponents SparseMatrixNNZ SparseMatrixTranspose", types=TYPES)
def csr_conversions(p):
    item, steps = p.placeholder("item", tf.int32, []), []
    for rank, sizes in {2: [(4, 5), (0, 3), (1, 1)], 3: [(3, 4, 5), (2, 0, 3)]}.items():
        m, feed = matrix(p, "x", rank)
        dense = raw.CSRSparseMatrixToDense(sparse_input=m, type=p.dtype)
        entries = raw.CSRSparseMatrixToSparseTensor(sparse_matrix=m, type=p.dtype)
        parts = raw.CSRSparseMatrixComponents(csr_sparse_matrix=m, index=item, type=p.dtype)
        turned = [raw.CSRSparseMatrixToDense(sparse_input=raw.SparseMatrixTranspose(input=m, conjugate=c, type=p.dtype), type=p.dtype) for c in (False, True)]
        count = raw.SparseMatrixNNZ(sparse_matrix=m)
        for size in sizes:
            array = with_holes(p, size)
            steps.append(([dense, *entries, count, *turned], feed(array)))
            steps += [([*parts], {**feed(array), item: np.int32(i)}) for i in ([0, size[0] - 1] if rank == 3 else [0]) + [9, -1]]
        array = with_holes(p, sizes[0])
        steps += [([dense], feed(array, np.array([wrong], np.int64))) for wrong in (sizes[0], (-1,) * rank)]
    run_all(p, steps)


@program("SparseTensorToCSRSparseMatrix", types=TYPES)
def csr_of_entries(p):
    steps = []
    for i, size in enumerate([(4, 5), (3, 4, 5), (0, 3), (1, 1)]):
        indices, values = p.placeholder(f"indices{i}", tf.int64, [None, len(size)]), p.placeholder(f"values{i}", None, [None])
        m = raw.SparseTensorToCSRSparseMatrix(indices=indices, values=values, dense_shape=np.array(size, np.int64))
        dense = raw.CSRSparseMatrixToDense(sparse_input=m, type=p.dtype)
        array = with_holes(p, size)
        steps.append(([dense], {indices: places(array), values: array[array != 0]}))
        steps.append(([dense], {indices: places(array)[:0], values: array[array != 0][:0]}))
        if array.size > 1:
            steps.append(([dense], {indices: np.array([size], np.int64), values: array[array != 0][:1]}))
    run_all(p, steps)


@program("SparseMatrixMatMul SparseMatrixSparseMatMul", types=TYPES)
def csr_products(p):
    turns = [{}, {"transpose_a": True}, {"adjoint_a": True}, {"transpose_b": True}, {"adjoint_b": True}, {"transpose_a": True, "transpose_b": True}]
    steps = []
    for rank in (2, 3):
        (left, feed_left), (right, feed_right) = matrix(p, "a", rank), matrix(p, "b", rank)
        dense = raw.CSRSparseMatrixToDense(sparse_input=right, type=p.dtype)
        for turn in turns:
            product = raw.SparseMatrixMatMul(a=left, b=dense, **turn)
            sparse = raw.CSRSparseMatrixToDense(sparse_input=raw.SparseMatrixSparseMatMul(a=left, b=right, type=p.dtype, **turn), type=p.dtype)
            batch = (2,) * (rank - 2)
            x = with_holes(p, batch + ((5, 4) if any(name.endswith("_a") for name in turn) else (4, 5)))
            y = with_holes(p, batch + ((3, 5) if any(name.endswith("_b") for name in turn) else (5, 3)))
            steps.append(([product, sparse], {**feed_left(x), **feed_right(y)}))
            if not turn:
                wrong = {**feed_left(x), **feed_right(with_holes(p, batch + (4, 3)))}
                steps += [([product], wrong), ([sparse], wrong)]
    run_all(p, steps)


@program("SparseMatrixOrderingAMD", types=TYPES)
def csr_ordering(p):
    """Matrices of which there is one best order, or where the rows that are alike stay as they are; tests/interop/csr_matrix_test.py has others."""
    m, feed = matrix(p, "x", 2)
    batch, feed_batch = matrix(p, "y", 3)
    orders = [raw.SparseMatrixOrderingAMD(input=x) for x in (m, batch)]
    two = np.eye(4)
    two[0, 3] = two[3, 0] = 1
    steps = [([orders[0]], feed(a.astype(p.T))) for a in (np.eye(5), np.ones((4, 4)), two, np.zeros((3, 3)), np.ones((2, 3)))]
    run_all(p, steps + [([orders[1]], feed_batch(np.stack([np.eye(4), np.ones((4, 4)), two]).astype(p.T)))])


@program("SparseMatrixSparseCholesky", types=TYPES)
def csr_cholesky(p):
    steps = []
    for rank in (2, 3):
        m, feed = matrix(p, "x", rank)
        order = p.placeholder(f"order{rank}", tf.int32, [None] * (rank - 1))
        root = raw.SparseMatrixSparseCholesky(input=m, permutation=order, type=p.dtype)
        dense = raw.CSRSparseMatrixToDense(sparse_input=root, type=p.dtype)
        batch = (2,) * (rank - 2)
        half = np.tril(p.values(batch + (4, 4)))
        half[..., 3, 0] = 0
        array = (half @ np.conj(np.swapaxes(half, -1, -2)) + 20 * np.eye(4)).astype(half.dtype)
        steps += [([dense], {**feed(array), order: np.broadcast_to(way, batch + (len(way),)).astype(np.int32)}) for way in ([0, 1, 2, 3], [2, 0, 3, 1], [0, 1, 2])]
    run_all(p, steps)
