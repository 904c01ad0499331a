"""Sparse matrices by compressed rows: every op with every type as TensorFlow computes it, with gradients, and over the wire between Rill and TensorFlow."""
import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from tensorflow.python.ops.linalg.sparse import sparse_csr_matrix_ops as csr_ops

TYPES = [np.float32, np.float64, np.complex64, np.complex128]
TURNS = ["", "transpose", "adjoint"]


def holes(rng, shape, dtype):
    x = rng.standard_normal(shape) * (rng.random(shape) < 0.6)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.standard_normal(shape) * (x != 0)
    return x.astype(dtype)


def csr(x):
    """The matrix of the entries that are not 0; x is an array, or a constant of it."""
    array = x if isinstance(x, np.ndarray) else tf.get_static_value(x)
    return csr_ops.dense_to_csr_sparse_matrix(x, np.argwhere(array != 0))


def both(rill, reference, fetches):
    """What each gives: equal values, or errors of one class."""
    answers = []
    for target in (reference, rill):
        with tf.Session(target) as session:
            try:
                answers.append(session.run(fetches))
            except tf.errors.OpError as e:
                answers.append(type(e))
    want, got = answers
    if isinstance(want, type) or isinstance(got, type):
        assert got == want
        return got
    for w, g in zip(want, got):
        w, g = np.asarray(w), np.asarray(g)
        assert w.dtype == g.dtype and w.shape == g.shape
        np.testing.assert_allclose(g, w, rtol=2e-4, atol=2e-5)
    return got


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(4, 5), (3, 4, 5), (0, 3), (2, 0, 3), (1, 1)])
def test_conversions(rill, reference, graph, dtype, shape):
    m = csr(holes(np.random.default_rng(1), shape, dtype))
    entries = csr_ops.csr_sparse_matrix_to_sparse_tensor(m, type=dtype)
    turned = [csr_ops.sparse_matrix_transpose(m, type=dtype, conjugate=c) for c in (False, True)]
    again = csr_ops.sparse_tensor_to_csr_sparse_matrix(*entries)
    both(rill, reference, [*entries, csr_ops.sparse_matrix_nnz(m), *(csr_ops.csr_sparse_matrix_to_dense(x, type=dtype) for x in (m, again, *turned)),
                           *csr_ops.csr_sparse_matrix_components(m, 0, type=dtype)])


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("batch", [(), (2,)])
def test_products_and_their_gradients(rill, reference, graph, dtype, batch):
    rng = np.random.default_rng(2)
    fetches = []
    for f in TURNS:
        for g in TURNS:
            turns = {f + "_a": True} if f else {}
            turns.update({g + "_b": True} if g else {})
            for transpose, conjugate in ((False, False), (True, False), (False, True), (True, True)):
                a, b = tf.constant(holes(rng, batch + ((3, 4) if f else (4, 3)), dtype)), tf.constant(holes(rng, batch + ((5, 3) if g else (3, 5)), dtype))
                y = csr_ops.sparse_matrix_mat_mul(csr(a), b, transpose_output=transpose, conjugate_output=conjugate, **turns)
                weights = tf.cast(tf.reshape(tf.range(tf.size(y)), tf.shape(y)), dtype)
                fetches += [y, *tf.gradients(tf.reduce_sum(tf.math.real(y * weights)), [a, b])]
            a, b = (tf.constant(holes(rng, batch + (4, 4), dtype) + np.ones((), dtype) * 9) for _ in range(2))
            z = csr_ops.sparse_matrix_sparse_mat_mul(csr(a), csr(b), type=dtype, **turns)
            dense = csr_ops.csr_sparse_matrix_to_dense(z, type=dtype)
            fetches += [dense, csr_ops.sparse_matrix_nnz(z), *tf.gradients(tf.reduce_sum(tf.math.real(dense)), [a, b])]
    both(rill, reference, fetches)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("batch", [(), (2,)])
@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4, 5], [3, 1, 5, 0, 2, 4]])
def test_cholesky(rill, reference, graph, dtype, batch, order):
    q = holes(np.random.default_rng(3), batch + (6, 6), dtype)
    a = q @ np.conj(np.swapaxes(q, -1, -2)) + 6 * np.eye(6, dtype=dtype)
    a = np.where(np.abs(a) < 0.7, 0, a).astype(dtype)
    factor = csr_ops.sparse_matrix_sparse_cholesky(csr(a), np.broadcast_to(order, batch + (6,)).astype(np.int32), type=dtype)
    both(rill, reference, list(csr_ops.csr_sparse_matrix_to_sparse_tensor(factor, type=dtype)))


@pytest.mark.parametrize("build", [
    lambda m: csr_ops.csr_sparse_matrix_to_dense(m, type=tf.float64),
    lambda m: csr_ops.csr_sparse_matrix_components(m, 3, type=tf.float32)[0],
    lambda m: csr_ops.sparse_matrix_nnz(csr_ops.sparse_tensor_to_csr_sparse_matrix(np.array([[0, 5]]), np.array([1.0], np.float32), np.array([3, 3]))),
    lambda m: csr_ops.csr_sparse_matrix_to_dense(csr_ops.sparse_matrix_sparse_cholesky(csr(-np.eye(3, dtype=np.float32)), [0, 1, 2], type=tf.float32), type=tf.float32),
    lambda m: m,
])
def test_errors_are_of_one_class(rill, reference, graph, build):
    assert both(rill, reference, [build(csr(np.eye(3, dtype=np.float32)))]) is not None


@pytest.mark.parametrize("cluster", ["rill_ps_cluster", "tf_ps_cluster"])
def test_matrices_cross_between_tasks_of_either_kind(request, graph, cluster):
    """Each task makes a matrix that the others take: Rill reads what TensorFlow wrote and the other way round."""
    tasks = ["/job:ps/task:0", "/job:worker/task:0", "/job:worker/task:1"]
    x = holes(np.random.default_rng(4), (2, 3, 4), np.complex64)
    fetches = []
    for maker in tasks:
        with tf.device(maker):
            m = csr(x)
        for taker in tasks:
            with tf.device(taker):
                fetches.append(csr_ops.csr_sparse_matrix_to_dense(csr_ops.sparse_matrix_transpose(m, type=tf.complex64), type=tf.complex64))
    with tf.Session(request.getfixturevalue(cluster).target("worker")) as session:
        for got in session.run(fetches):
            np.testing.assert_array_equal(got, np.swapaxes(x, 1, 2))


@pytest.mark.parametrize("seed", range(4))
def test_an_order_keeps_factors_sparse(rill, reference, seed):
    """Where rows are alike TensorFlow may take others first: what counts is how many entries the factor has."""
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.random((40, 40)) < 0.05, 1)
    upper[0] = upper[1] = True  # two rows that have all others: taken first, they fill everything
    x = (upper | upper.T).astype(np.float32) + 50 * np.eye(40, dtype=np.float32)
    entries = []
    for target in (reference, rill):
        with tf.Graph().as_default(), tf.Session(target) as session:
            matrix = csr(x)
            order = csr_ops.sparse_matrix_ordering_amd(matrix)
            factors = [csr_ops.sparse_matrix_sparse_cholesky(matrix, o, tf.float32) for o in (order, tf.range(40))]
            dense = csr_ops.csr_sparse_matrix_to_dense(factors[0], tf.float32)
            got, root, counts = session.run([order, dense, [csr_ops.sparse_matrix_nnz(f) for f in factors]])
        assert sorted(got) == list(range(40))
        np.testing.assert_allclose(root @ root.T, x[got][:, got], rtol=1e-3, atol=1e-3)
        assert counts[0] < counts[1]
        entries.append(counts[0])
    assert entries[1] <= 1.2 * entries[0]
