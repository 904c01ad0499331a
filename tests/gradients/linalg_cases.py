"""Graphs of linear algebra, Einsum, Fourier transforms, sparse tensors, images and quantisation."""
import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.python.ops.linalg.sparse import sparse_csr_matrix_ops as csr_ops

from gradient_case import case, floats, values


def square(n=3, batch=2, dtype=np.float64, seed=0):
    """Well conditioned matrices."""
    return tf.constant(values(batch, n, n, dtype=dtype, seed=seed) + 2 * np.eye(n))


def positive(n=3):
    a = values(2, n, n)
    return tf.constant(np.matmul(a, np.swapaxes(a, 1, 2)) + np.eye(n))


@case()
def inverses():
    a = square()
    return [tf.linalg.inv(a), tf.linalg.inv(a, adjoint=True), tf.linalg.det(a), tf.linalg.slogdet(a)[1]], [a]


@case()
def inverse_complex():
    a = square(dtype=np.complex128)
    return [tf.linalg.inv(a), tf.linalg.inv(a, adjoint=True)], [a]


@case()
def solves():
    a, y = square(), floats(2, 3, 2)
    return [tf.linalg.solve(a, y), tf.linalg.solve(a, y, adjoint=True)], [a, y]


@case()
def triangular_solves():
    a, y = square(), floats(2, 3, 2)
    return [tf.linalg.triangular_solve(a, y, lower=lower, adjoint=adjoint) for lower in (True, False) for adjoint in (True, False)], [a, y]


@case()
def tridiagonal_solves():
    d, y = tf.constant(values(2, 3, 4) + np.array([[0.0], [4.0], [0.0]])), floats(2, 4, 2)
    return [tf.linalg.tridiagonal_solve(d, y, partial_pivoting=p) for p in (True, False)], [d, y]


@case()
def tridiagonal_product():
    d = [floats(2, 4, seed=i) for i in range(3)]
    x = floats(2, 4, 3)
    return tf.linalg.tridiagonal_matmul(d, x, diagonals_format="sequence"), d + [x]


@case()
def banded_solves():
    y, found = floats(2, 4, 2), []
    lower = tf.constant(values(2, 3, 4) + np.array([[4.0], [0.0], [0.0]]))
    upper = tf.constant(values(3, 4, seed=1) + np.array([[0.0], [0.0], [4.0]]))
    for adjoint in (True, False):
        found += [tf.raw_ops.BandedTriangularSolve(matrix=lower, rhs=y, lower=True, adjoint=adjoint), tf.raw_ops.BandedTriangularSolve(matrix=upper, rhs=y, lower=False, adjoint=adjoint)]
    return found, [lower, upper, y]


@case()
def cholesky():
    a = positive()
    return tf.linalg.cholesky(a), [a]


@case(rtol=1e-8)
def matrix_square_root():
    a = positive()
    return tf.linalg.sqrtm(a), [a]


@case(rtol=1e-8)
def least_squares():
    tall, wide, y, z = floats(2, 5, 3), floats(2, 3, 5), floats(2, 5, 2, seed=1), floats(2, 3, 2, seed=2)
    return [tf.linalg.lstsq(tall, y, l2_regularizer=.1), tf.linalg.lstsq(wide, z, l2_regularizer=.1)], [tall, wide, y, z]


@case(rtol=1e-8)
def least_squares_by_one_op():
    tall, wide, y, z = floats(2, 5, 3), floats(2, 3, 5), floats(2, 5, 2, seed=1), floats(2, 3, 2, seed=2)
    ridge = tf.constant(.1, tf.float64)
    return [tf.raw_ops.MatrixSolveLs(matrix=tall, rhs=y, l2_regularizer=ridge), tf.raw_ops.MatrixSolveLs(matrix=wide, rhs=z, l2_regularizer=ridge)], [tall, wide, y, z]


@case(rtol=1e-8)
def eigenvalues():
    a = positive()
    e, v = tf.linalg.eigh(a)
    return [e, tf.square(v), tf.linalg.eigvalsh(a)], [a]


@case(rtol=1e-7)
def eigenvalues_general():
    a = tf.constant(values(1, 3, 3) * .3 + np.diag([1., 2, 3]))
    e, v = tf.raw_ops.Eig(input=a, Tout=tf.complex128)
    only, _ = tf.raw_ops.Eig(input=a, Tout=tf.complex128, compute_v=False)
    return [tf.real(e), tf.abs(v), tf.real(only)], [a]


@case(rtol=1e-7)
def singular_values():
    a, tall = floats(2, 3, 3), floats(2, 4, 2)
    s, u, v = tf.linalg.svd(a)
    t, p, q = tf.linalg.svd(tall)
    w, x, y = tf.linalg.svd(tf.transpose(tall, [0, 2, 1]))
    return [s, tf.square(u), tf.square(v), tf.linalg.svd(tall, compute_uv=False), t, tf.square(p), tf.square(q), tf.square(x) + tf.reshape(w, [2, 1, 2]), tf.square(y)], [a, tall]


@case(rtol=1e-8)
def qr():
    a, tall, wide = square(), floats(2, 4, 2), floats(2, 2, 4)
    ys = []
    for x in (a, tall, wide):
        q, r = tf.linalg.qr(x)
        ys += [tf.square(q), tf.square(r)]
    return ys, [a, tall, wide]


def einsum(equation, *shapes, dtype=np.float64):
    def build():
        xs = [floats(*s, dtype=dtype, seed=i) for i, s in enumerate(shapes)]
        return tf.raw_ops.Einsum(inputs=xs, equation=equation), xs
    return build


for i, (equation, *shapes) in enumerate([("ij,jk->ik", (2, 3), (3, 4)), ("ij->ji", (2, 3)), ("ij->i", (2, 3)), ("ii->i", (3, 3)), ("...ij,...jk->...ik", (2, 1, 2, 3), (5, 3, 4)),
                                         ("ij,k->ik", (2, 3), (4,)), ("abc,cd->ad", (2, 3, 4), (4, 5)), ("i...->...", (2, 3, 4)), ("ij,ij->", (2, 3), (2, 3)), ("b...,b->...", (2, 3), (2,))]):
    case("einsum_%d" % i)(einsum(equation, *shapes))
case("einsum_complex")(einsum("ij,jk->ik", (2, 3), (3, 4), dtype=np.complex128))


@case()
def transforms():
    x = floats(2, 3, 4, dtype=np.complex128)
    return [tf.signal.fft(x), tf.signal.ifft(x), tf.signal.fft2d(x), tf.signal.ifft2d(x), tf.signal.fft3d(x), tf.signal.ifft3d(x)], [x]


@case()
def real_transforms():
    x, z = floats(2, 5, 4), floats(2, 5, 3, dtype=np.complex128)
    return [tf.signal.rfft(x), tf.signal.rfft2d(x), tf.signal.irfft(z), tf.signal.irfft(z, [5]), tf.signal.irfft2d(z)], [x, z]


@case()
def real_transforms_of_other_lengths():
    x = floats(2, 5)
    return [tf.signal.rfft(x, [5]), tf.signal.rfft(x, [8])], [x]


SP = dict(indices=np.array([[0, 1], [1, 0], [1, 2]], np.int64), shape=np.array([2, 3], np.int64))


@case()
def sparse_elementwise():
    v, d, w = floats(3), floats(2, 3, low=.5), floats(3, low=.5, seed=1)
    args = dict(sp_indices=SP["indices"], sp_values=v, sp_shape=SP["shape"])
    return [tf.raw_ops.SparseDenseCwiseMul(dense=d, **args), tf.raw_ops.SparseDenseCwiseDiv(dense=d, **args), tf.raw_ops.SparseDenseCwiseMul(dense=w, **args)], [v, d, w]


@case()
def sparse_sums():
    v, d, u = floats(3), floats(2, 3), floats(2, seed=1)
    a = tf.SparseTensor(SP["indices"], v, SP["shape"])
    b = tf.SparseTensor([[0, 1], [1, 1]], u, [2, 3])
    added = tf.sparse_add(a, b)
    return [tf.raw_ops.SparseTensorDenseAdd(a_indices=SP["indices"], a_values=v, a_shape=SP["shape"], b=d), tf.sparse_reduce_sum(a, 1), tf.sparse_reduce_sum(a, [0, 1]),
            tf.sparse_reduce_sum(a, -1, keepdims=True), tf.reshape(added.values, [4])], [v, d, u]


@case()
def sparse_moves():
    v, fill = floats(3), tf.constant(2., tf.float64)
    mixed = tf.SparseTensor([[1, 2], [0, 1], [1, 0]], v, [2, 3])
    a = tf.SparseTensor(SP["indices"], v, [4, 3])
    full, _ = tf.sparse_fill_empty_rows(a, fill)
    part = tf.sparse_slice(mixed_sorted := tf.sparse_reorder(mixed), [1, 0], [1, 3])
    return [tf.reshape(mixed_sorted.values, [3]), tf.reshape(full.values, [5]), tf.reshape(part.values, [2]),
            tf.sparse_to_dense(SP["indices"], [2, 3], v, fill), tf.sparse_softmax(tf.SparseTensor(SP["indices"], v, SP["shape"])).values], [v, fill]


@case()
def sparse_products():
    v = floats(3)
    m, n = floats(3, 4), floats(2, 4, seed=1)
    a = tf.SparseTensor(SP["indices"], v, SP["shape"])
    return [tf.sparse_tensor_dense_matmul(a, m), tf.sparse_tensor_dense_matmul(a, n, adjoint_a=True), tf.sparse_tensor_dense_matmul(a, tf.transpose(m), adjoint_b=True)], [v, m, n]


@case(rtol=1e-4, atol=1e-5)
def images():
    x = floats(2, 4, 5, 3, dtype=np.float32)
    return [tf.image.resize_bilinear(x, [6, 3]), tf.image.resize_bilinear(x, [6, 3], half_pixel_centers=True), tf.image.resize_bicubic(x, [3, 7]), tf.image.resize_nearest_neighbor(x, [2, 9]),
            tf.image.extract_image_patches(x, [1, 2, 3, 1], [1, 1, 2, 1], [1, 1, 1, 1], "SAME"), tf.image.extract_image_patches(x, [1, 2, 2, 1], [1, 2, 1, 1], [1, 2, 1, 1], "VALID")], [x]


@case()
def volume_patches():
    x = floats(2, 3, 4, 4, 2)
    return tf.extract_volume_patches(x, [1, 2, 2, 2, 1], [1, 1, 2, 1, 1], "SAME"), [x]


@case(rtol=1e-4, atol=1e-5)
def crops():
    x = floats(2, 5, 5, 2, dtype=np.float32)
    boxes = tf.constant([[.1, .2, .7, .8], [0., .1, .9, 1.]])
    return [tf.image.crop_and_resize(x, boxes, [1, 0], [3, 4]), tf.image.crop_and_resize(x, boxes, [1, 0], [3, 4], method="nearest")], [x]


@case(rtol=1e-4, atol=1e-5)
def crop_boxes():
    x = floats(2, 5, 5, 2, dtype=np.float32)
    boxes = tf.constant([[.1, .2, .7, .8], [0., .1, .9, 1.]])
    return tf.image.crop_and_resize(x, boxes, [1, 0], [3, 4]), [boxes, x]


@case(rtol=1e-4, atol=1e-5)
def warps():
    x = floats(2, 5, 5, 2, dtype=np.float32)
    transforms = tf.constant([[1., .1, .5, 0, 1, 0, 0, 0]] * 2)
    return [tf.raw_ops.ImageProjectiveTransformV2(images=x, transforms=transforms, output_shape=[4, 4], interpolation="BILINEAR"),
            tf.raw_ops.ImageProjectiveTransformV3(images=x, transforms=transforms, output_shape=[4, 4], interpolation="NEAREST", fill_value=1.)], [x]


@case(rtol=1e-4, atol=1e-5)
def colours():
    x = floats(3, 4, 3, low=.05, high=.95, dtype=np.float32)
    return tf.image.rgb_to_hsv(x), [x]


@case()
def quantisation():
    x = floats(2, 3, dtype=np.float32)
    low, high = tf.constant(-.5), tf.constant(.6)
    lows, highs = tf.constant([-.5, -.3, -.9]), tf.constant([.6, .2, .9])
    return [tf.quantization.fake_quant_with_min_max_args(x, -.5, .5), tf.quantization.fake_quant_with_min_max_vars(x, low, high),
            tf.quantization.fake_quant_with_min_max_vars_per_channel(x, lows, highs), tf.raw_ops.QuantizeAndDequantizeV2(input=x, input_min=low, input_max=high, range_given=True),
            tf.raw_ops.QuantizeAndDequantizeV3(input=x, input_min=low, input_max=high, num_bits=8, range_given=True),
            tf.raw_ops.QuantizeAndDequantizeV4(input=x, input_min=low, input_max=high, range_given=True)], [x, low, high, lows, highs]


@case(rtol=1e-5, atol=1e-6)
def samples():
    alpha = floats(3, low=.5, high=2)
    return [tf.random.stateless_gamma([4, 3], [1, 2], alpha, dtype=tf.float64), tf.raw_ops.StatelessRandomGammaV2(shape=[4, 3], seed=[1, 2], alpha=alpha)], [alpha]


@case(rtol=1e-5, atol=1e-6)
def samples_between_bounds():
    mean, deviation, low, high = floats(3), floats(2, 1, low=.5, high=2), tf.constant(-1.5, tf.float64), floats(3, low=.5, high=2)
    return tf.random.stateless_parameterized_truncated_normal([4, 2, 3], [1, 2], mean, deviation, low, high), [mean, deviation, low, high]


@case()
def samples_with_a_seed():
    alpha = floats(3, low=.5, high=2)
    return tf.reshape(tf.random.gamma([4], alpha, dtype=tf.float64, seed=7), [4, 3]), [alpha]


@case(rtol=1e-4)
def scale_and_translate():
    x = tf.constant(values(1, 5, 6, 2).astype(np.float32))
    return [tf.raw_ops.ScaleAndTranslate(images=x, size=[7, 3], scale=[1.4, 0.5], translation=[0.25, 1.0], kernel_type=k) for k in ("lanczos3", "triangle")], [x]


def csr(x):
    """The matrix of those entries of x that are not 0."""
    dense = np.asarray(tf.get_static_value(x))
    return csr_ops.dense_to_csr_sparse_matrix(x, np.argwhere(dense != 0))


def holes(*shape, dtype=np.float64, seed=0):
    x = values(*shape, dtype=dtype, seed=seed)
    return tf.constant(np.where(np.arange(x.size).reshape(shape) % 3 == 1, 0, x).astype(dtype))


@case(needs=["SparseMatrixTranspose", "CSRSparseMatrixToDense"])
def csr_matrices():
    x = holes(2, 3, 4, dtype=np.complex128)
    turned = csr_ops.sparse_matrix_transpose(csr(x), type=tf.complex128, conjugate=True)
    return [csr_ops.csr_sparse_matrix_to_dense(turned, type=tf.complex128)], [x]


@case(needs=["SparseTensorToCSRSparseMatrix", "CSRSparseMatrixToSparseTensor"])
def csr_entries():
    x = floats(3)
    m = csr_ops.sparse_tensor_to_csr_sparse_matrix(np.array([[0, 1], [1, 0], [2, 2]]), x, np.array([3, 3]))
    return [tf.ensure_shape(csr_ops.csr_sparse_matrix_to_sparse_tensor(m, type=tf.float64).values, [3])], [x]


@case(needs=["SparseMatrixMatMul"])
def csr_products():
    results, operands = [], []
    for i, (f, g, transpose, conjugate) in enumerate([("", "", False, False), ("t", "", True, False), ("", "a", False, True), ("a", "t", True, True), ("t", "a", False, False)]):
        a, y = holes(*((2, 4, 3) if f else (2, 3, 4)), dtype=np.complex128, seed=i), holes(*((2, 5, 4) if g else (2, 4, 5)), dtype=np.complex128, seed=9 + i)
        results.append(csr_ops.sparse_matrix_mat_mul(csr(a), y, transpose_a=f == "t", adjoint_a=f == "a", transpose_b=g == "t", adjoint_b=g == "a",
                                                     transpose_output=transpose, conjugate_output=conjugate))
        operands += [a, y]
    return results, operands


@case(needs=["SparseMatrixSparseMatMul"])
def csr_sparse_products():
    results, operands = [], []
    for i, (f, g) in enumerate([("", ""), ("t", "a"), ("a", "t"), ("", "t")]):
        a, y = (tf.constant(values(3, 3, dtype=np.complex128, seed=2 * i + j)) for j in range(2))
        z = csr_ops.sparse_matrix_sparse_mat_mul(csr(a), csr(y), type=tf.complex128, transpose_a=f == "t", adjoint_a=f == "a", transpose_b=g == "t", adjoint_b=g == "a")
        results.append(csr_ops.csr_sparse_matrix_to_dense(z, type=tf.complex128))
        operands += [a, y]
    return results, operands
