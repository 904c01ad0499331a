"""Linear algebra and Fourier transforms. Factors that are not unique are compared where TensorFlow's choice is the usual one."""
import numpy as np
import tensorflow as tf

from .table import Call, cases, program

LOOSE = {"rtol": 1e-3, "atol": 1e-3}


def spd(c, *shape):
    """Well conditioned symmetric matrices."""
    n = shape[-1]
    a = c.values(shape, -1, 1, np.complex128 if c.is_complex else np.float64)
    return (a @ np.conj(np.swapaxes(a, -1, -2)) + 2 * np.eye(n)).astype(c.T)


def regular(c, *shape):
    return (c.values(shape, -1, 1, np.complex128 if c.is_complex else np.float64) + 3 * np.eye(shape[-2], shape[-1])).astype(c.T)


@cases("Cholesky BatchCholesky", **LOOSE)
def cholesky(c):
    yield Call(spd(c, 3, 3))
    yield Call(spd(c, 2, 4, 4))
    yield Call(spd(c, 1, 1))
    yield Call(np.zeros((0, 0), c.T))
    yield Call(c.values((2, 3)))


@cases("CholeskyGrad BatchCholeskyGrad", **LOOSE)
def cholesky_grad(c):
    low = np.linalg.cholesky(spd(c, 3, 3).astype(np.float64)).astype(c.T)
    yield Call(low, c.values((3, 3)))


@cases("MatrixInverse BatchMatrixInverse", **LOOSE)
def inverse(c):
    for adjoint in (False, True):
        yield Call(regular(c, 3, 3), adjoint=adjoint)
        yield Call(regular(c, 2, 2, 2), adjoint=adjoint)
    yield Call(np.zeros((0, 0), c.T))
    yield Call(np.ones((2, 2), c.T))
    yield Call(c.values((2, 3)))


@cases("MatrixDeterminant BatchMatrixDeterminant", **LOOSE)
def determinant(c):
    yield Call(regular(c, 3, 3))
    yield Call(regular(c, 2, 2, 2))
    yield Call(np.zeros((0, 0), c.T))
    yield Call(np.ones((2, 2), c.T), grad=False)
    yield Call(c.values((2, 3)), grad=False)


@cases("LogMatrixDeterminant", **LOOSE)
def log_determinant(c):
    yield Call(regular(c, 3, 3))
    yield Call(regular(c, 2, 2, 2))
    yield Call(c.values((2, 3)), grad=False)


@cases("MatrixSolve BatchMatrixSolve", **LOOSE)
def solve(c):
    for adjoint in (False, True):
        yield Call(regular(c, 3, 3), c.values((3, 2)), adjoint=adjoint)
        yield Call(regular(c, 2, 2, 2), c.values((2, 2, 1)), adjoint=adjoint)
    yield Call(np.ones((2, 2), c.T), c.values((2, 1)))
    yield Call(regular(c, 2, 2), c.values((3, 1)))
    yield Call(c.values((2, 3)), c.values((2, 1)))


@cases("MatrixTriangularSolve BatchMatrixTriangularSolve", **LOOSE)
def triangular_solve(c):
    for lower in (False, True):
        for adjoint in (False, True):
            yield Call(regular(c, 3, 3), c.values((3, 2)), lower=lower, adjoint=adjoint)
            yield Call(regular(c, 2, 2, 2), c.values((2, 2, 1)), lower=lower, adjoint=adjoint)
    if c.op == "MatrixTriangularSolve":
        yield Call(regular(c, 2, 1, 2, 2), c.values((3, 2, 1)), lower=True)
    yield Call(np.zeros((2, 2), c.T), c.values((2, 1)))
    yield Call(regular(c, 2, 2), c.values((3, 1)))


@cases("TridiagonalSolve", **LOOSE)
def tridiagonal_solve(c):
    d = c.values((3, 5)) + np.array([[0], [9], [0]], c.T)
    for pivoting in (True, False):
        yield Call(d, c.values((5, 2)), partial_pivoting=pivoting)
        yield Call(d, c.values((5, 2)), partial_pivoting=pivoting, static=True)
        yield Call(c.values((2, 3, 4)) + np.array([[0], [9], [0]], c.T), c.values((2, 4, 1)), partial_pivoting=pivoting)
        yield Call(c.values((3, 1), 1, 4), c.values((1, 2)), partial_pivoting=pivoting)
        yield Call(c.values((3, 2), 1, 4) + np.array([[0], [9], [0]], c.T), c.values((2, 2)), partial_pivoting=pivoting)
        yield Call(np.zeros((3, 1), c.T), c.values((1, 2)), partial_pivoting=pivoting, grad=False)
        yield Call(np.zeros((3, 4), c.T), c.values((4, 2)), partial_pivoting=pivoting, grad=False)
        yield Call(np.array([[1, 1, 0], [1, 1, 1], [0, 1, 1]], c.T), c.values((3, 2)), partial_pivoting=pivoting, grad=False)
        yield Call(np.zeros((3, 0), c.T), np.zeros((0, 2), c.T), partial_pivoting=pivoting, grad=False)
        yield Call(np.zeros((2, 4), c.T), c.values((4, 2)), partial_pivoting=pivoting)
        yield Call(d, c.values((4, 2)), partial_pivoting=pivoting)
        yield Call(d, c.values((1, 5, 2)), partial_pivoting=pivoting)
        yield Call(d, c.values((5,)), partial_pivoting=pivoting)
    yield Call(np.array([[2, 1, 3, 0], [0, 1, 0, 2], [0, 4, 1, 5]], c.T), c.values((4, 2)))
    yield Call(d, c.values((5, 2)), perturb_singular=True)
    yield Call(np.zeros((3, 1), c.T), c.values((1, 2)), perturb_singular=True, grad=False)
    yield Call(np.array([[1, 1, 0], [1, 1, 1], [0, 1, 1]], c.T), c.values((3, 2)), perturb_singular=True, grad=False)
    yield Call(np.array([[2, 1, 3, 0], [0, 1, 0, 2], [0, 4, 1, 5]], c.T), c.values((4, 2)), perturb_singular=True)
    yield Call(d, c.values((5, 2)), partial_pivoting=False, perturb_singular=True)


@cases("TridiagonalMatMul", **LOOSE)
def tridiagonal_matmul(c):
    v = lambda *shape: c.values(shape)
    yield Call(v(1, 4), v(1, 4), v(1, 4), v(4, 2))
    yield Call(v(2, 1, 3), v(2, 1, 3), v(2, 1, 3), v(2, 3, 3))
    yield Call(v(1, 1), v(1, 1), v(1, 1), v(1, 2))
    yield Call(v(1, 4), v(1, 4), v(1, 4), v(4, 0), grad=False)
    yield Call(v(1, 3), v(1, 4), v(1, 4), v(4, 2))
    yield Call(v(2, 4), v(1, 4), v(1, 4), v(4, 2))
    yield Call(v(1, 4), v(1, 4), v(1, 4), v(1, 4, 2))
    yield Call(v(4), v(4), v(4), v(4, 2))


@cases("BandedTriangularSolve", **LOOSE)
def banded_solve(c):
    for lower in (True, False):
        at = np.array([[8], [0], [0]] if lower else [[0], [0], [8]], c.T)
        for adjoint in (True, False):
            yield Call(c.values((3, 5)) + at, c.values((5, 2)), lower=lower, adjoint=adjoint)
            yield Call(c.values((2, 3, 4)) + at, c.values((2, 4, 1)), lower=lower, adjoint=adjoint)
            yield Call(c.values((2, 1, 3, 4)) + at, c.values((3, 4, 1)), lower=lower, adjoint=adjoint)
            yield Call(c.values((1, 4), 1, 4), c.values((4, 2)), lower=lower, adjoint=adjoint)
            yield Call(c.values((3, 2)) + at, c.values((2, 2)), lower=lower, adjoint=adjoint, grad=False)
            yield Call(np.zeros((3, 4), c.T), c.values((4, 2)), lower=lower, adjoint=adjoint)
            yield Call(c.values((3, 5)) + at, c.values((4, 2)), lower=lower, adjoint=adjoint)
            yield Call(c.values((2, 3, 4)) + at, c.values((3, 4, 2)), lower=lower, adjoint=adjoint)
    yield Call(c.values((3, 0)), c.values((0, 2)))
    yield Call(c.values((3,)), c.values((3, 2)))
    yield Call(c.values((3, 3)), c.values((3,)))


@cases("MatrixSolveLs BatchMatrixSolveLs", **LOOSE)
def solve_ls(c):
    for fast in (True, False):
        yield Call(regular(c, 4, 2), c.values((4, 1)), np.float64(0.0), fast=fast, grad=False)
        yield Call(regular(c, 4, 2), c.values((4, 2)), np.float64(0.5), fast=True, grad=False)
    yield Call(regular(c, 2, 4), c.values((2, 1)), np.float64(0.0), fast=True, grad=False)


@cases("SelfAdjointEig BatchSelfAdjointEig", gradient=False, **LOOSE)
def self_adjoint_eig_old(c):
    yield Call(np.array([[2, 0], [0, 1]], c.T))


@cases("SelfAdjointEigV2 BatchSelfAdjointEigV2", **LOOSE)
def self_adjoint_eig(c):
    yield Call(spd(c, 3, 3), compute_v=False, outputs=(0,), grad=False)
    yield Call(spd(c, 2, 2, 2), compute_v=False, outputs=(0,), grad=False)
    yield Call(c.values((2, 3)), compute_v=False, outputs=(0,), grad=False)


@cases("Eig", types={"*": []}, gradient=False, **LOOSE)
def eig(c):
    yield Call(np.array([[[2]], [[3]]], c.T), compute_v=False, outputs=(0,))


@cases("Svd BatchSvd", gradient=False, **LOOSE)
def svd(c):
    yield Call(regular(c, 3, 2), compute_uv=False, outputs=(0,))
    yield Call(regular(c, 2, 2, 3), compute_uv=False, outputs=(0,))


@cases("Qr", **LOOSE)
def qr(c):
    yield Call(regular(c, 3, 3), full_matrices=False)
    yield Call(regular(c, 4, 2), full_matrices=True, grad=False)
    yield Call(regular(c, 4, 2), full_matrices=False)
    yield Call(regular(c, 2, 3), full_matrices=False, grad=False)


@cases("Lu", types={"*": []}, **LOOSE)
def lu(c):
    yield Call(regular(c, 3, 3))
    yield Call(regular(c, 2, 2, 2))
    yield Call(np.zeros((2, 2), c.T), grad=False)
    yield Call(c.values((2, 3)), grad=False)


@cases("MatrixSquareRoot MatrixLogarithm", gradient=False, **LOOSE)
def matrix_function(c):
    yield Call(spd(c, 3, 3))


@cases("FFT IFFT", **LOOSE)
def fft(c):
    for s in ((4,), (2, 3), (1,), (8,), (2, 2, 5), (0,), (30,), (18, 12), (5, 4, 7)):
        yield Call(c.values(s))
    yield Call(c.values(()), grad=False)


@cases("FFT2D IFFT2D", **LOOSE)
def fft2d(c):
    for s in ((2, 4), (2, 3, 5), (2, 17, 6)):
        yield Call(c.values(s))
    yield Call(c.values((2,)), grad=False)


@cases("FFT3D IFFT3D", **LOOSE)
def fft3d(c):
    yield Call(c.values((2, 3, 4)))


def real_fft(rank):
    def make(c):
        real, last = c.type("Treal"), 6
        s = (3, 4, last)[-rank:]
        yield Call(c.values((2, *s), dtype=real), np.array(s, np.int32), static=True, const=(1,))
        longer = [d + 2 for d in s]
        yield Call(c.values(s, dtype=real), np.array(longer, np.int32), static=True, const=(1,), grad=False)
        shorter = [d - 1 for d in s]
        yield Call(c.values(s, dtype=real), np.array(shorter, np.int32), static=True, const=(1,), grad=False)
        yield Call(c.values((18, *s), dtype=real), np.array(shorter, np.int32), static=True, const=(1,), grad=False)
        yield Call(c.values((18, *s), dtype=real), np.array(s, np.int32), static=True, const=(1,), grad=False)
    return make


def inverse_real_fft(rank):
    def make(c):
        z = c.type("Tcomplex")
        s = (3, 4, 4)[-rank:]
        lengths = [*s[:-1], 6]
        yield Call(c.values((2, *s), dtype=z), np.array(lengths, np.int32), static=True, const=(1,), grad=False)
        lengths[-1] = 7
        yield Call(c.values(s, dtype=z), np.array(lengths, np.int32), static=True, const=(1,), grad=False)
        yield Call(c.values((18, *s), dtype=z), np.array(lengths, np.int32), static=True, const=(1,), grad=False)
        yield Call(c.values((18, *s), dtype=z), np.array([*s[:-1], 6], np.int32), static=True, const=(1,), grad=False)
    return make


for number, name in ((1, "RFFT"), (2, "RFFT2D"), (3, "RFFT3D")):
    cases(name, types={"Treal": ["float32", "float64"], "*": []}, **LOOSE)(real_fft(number))
    cases("I" + name, types={"Treal": ["float32", "float64"], "*": []}, **LOOSE)(inverse_real_fft(number))


def misfits(P_):
    """Matrices that do not fit: a name, the op, its arguments; P_ makes values that are fed."""
    for place in (0, 0), (2, 0), (2, 2):
        m = 3 * np.eye(3) + 0.5
        m[place] = np.nan
        yield "chol_nan%d%d" % place, "Cholesky", dict(input=P_(m))
        yield "inv_nan%d%d" % place, "MatrixInverse", dict(input=P_(m))
        yield "slv_nan%d%d" % place, "MatrixSolve", dict(matrix=P_(m), rhs=P_(np.ones((3, 1))))
        yield "lu_nan%d%d" % place, "Lu", dict(input=P_(m))
    yield "chol_ns", "Cholesky", dict(input=P_(np.ones((2, 3))))
    yield "chol_1", "Cholesky", dict(input=P_(np.ones(3)))
    yield "inv_s", "MatrixInverse", dict(input=P_([[1, 2], [2, 4.]]))
    yield "inv_ns", "MatrixInverse", dict(input=P_(np.ones((2, 3))))
    yield "inv_1", "MatrixInverse", dict(input=P_(np.ones(3)))
    yield "inv_b", "MatrixInverse", dict(input=P_(np.zeros((2, 3, 3))))
    yield "det_ns", "MatrixDeterminant", dict(input=P_(np.ones((2, 3))))
    yield "det_1", "MatrixDeterminant", dict(input=P_(np.ones(3)))
    yield "ldet", "LogMatrixDeterminant", dict(input=P_(np.ones((2, 3))))
    yield "slv_s", "MatrixSolve", dict(matrix=P_([[1, 2], [2, 4.]]), rhs=P_(np.ones((2, 1))))
    yield "slv_ns", "MatrixSolve", dict(matrix=P_(np.ones((2, 3))), rhs=P_(np.ones((2, 1))))
    yield "slv_r", "MatrixSolve", dict(matrix=P_(np.eye(2)), rhs=P_(np.ones((3, 1))))
    yield "slv_v", "MatrixSolve", dict(matrix=P_(np.eye(2)), rhs=P_(np.ones(2)))
    yield "slv_b", "MatrixSolve", dict(matrix=P_(np.ones((2, 2, 2))), rhs=P_(np.ones((3, 2, 1))))
    yield "tri_s", "MatrixTriangularSolve", dict(matrix=P_([[1, 0], [0, 0.]]), rhs=P_(np.ones((2, 1))))
    yield "tri_ns", "MatrixTriangularSolve", dict(matrix=P_(np.ones((2, 3))), rhs=P_(np.ones((2, 1))))
    yield "tri_r", "MatrixTriangularSolve", dict(matrix=P_(np.eye(2)), rhs=P_(np.ones((3, 1))))
    yield "tri_b", "MatrixTriangularSolve", dict(matrix=P_(np.ones((2, 2, 2))), rhs=P_(np.ones((3, 2, 1))))
    yield "tri_v", "MatrixTriangularSolve", dict(matrix=P_(np.eye(2)), rhs=P_(np.ones(2)))
    yield "tri_nsv", "MatrixTriangularSolve", dict(matrix=P_(np.ones((2, 3))), rhs=P_(np.ones(2)))
    yield "ls_r", "MatrixSolveLs", dict(matrix=P_(np.ones((3, 2))), rhs=P_(np.ones((2, 1))), l2_regularizer=P_(0.1, np.float64))
    yield "ls_l2", "MatrixSolveLs", dict(matrix=P_(np.ones((3, 2))), rhs=P_(np.ones((3, 1))), l2_regularizer=P_([0.1], np.float64))
    yield "ls_neg", "MatrixSolveLs", dict(matrix=P_(np.ones((3, 2))), rhs=P_(np.ones((3, 1))), l2_regularizer=P_(-0.1, np.float64))
    yield "ls_1", "MatrixSolveLs", dict(matrix=P_(np.ones(3)), rhs=P_(np.ones((3, 1))), l2_regularizer=P_(0.1, np.float64))
    yield "eig_ns", "SelfAdjointEigV2", dict(input=P_(np.ones((2, 3))), compute_v=True)
    yield "eig_1", "SelfAdjointEigV2", dict(input=P_(np.ones(3)), compute_v=True)
    yield "eigg", "Eig", dict(input=P_(np.ones((2, 3))), Tout=tf.complex64)
    yield "svd_1", "Svd", dict(input=P_(np.ones(3)))
    yield "qr_1", "Qr", dict(input=P_(np.ones(3)))
    yield "lu_s", "Lu", dict(input=P_(np.zeros((2, 2))))
    yield "lu_ns", "Lu", dict(input=P_(np.ones((2, 3))))
    yield "lu_1", "Lu", dict(input=P_(np.ones(3)))
    yield "log_ns", "MatrixLogarithm", dict(input=P_(np.ones((2, 3)), np.complex64))
    yield "sqrt_ns", "MatrixSquareRoot", dict(input=P_(np.ones((2, 3))))
    yield "sqrt_1", "MatrixSquareRoot", dict(input=P_(np.ones(3)))
    yield "sqrt_s", "MatrixSquareRoot", dict(input=P_([[0, 1], [0, 0.]]))
    yield "trd1", "TridiagonalSolve", dict(diagonals=P_(np.ones((2, 3))), rhs=P_(np.ones((3, 1))))
    yield "trd2", "TridiagonalSolve", dict(diagonals=P_(np.zeros((3, 3))), rhs=P_(np.ones((3, 1))))
    yield "trd3", "TridiagonalSolve", dict(diagonals=P_(np.ones((3, 3))), rhs=P_(np.ones((2, 1))))
    yield "trd4", "TridiagonalSolve", dict(diagonals=P_([[1, 1, 0], [0, 1, 1], [0, 1, 1]]), rhs=P_(np.ones((3, 1))), partial_pivoting=False)
    yield "trd5", "TridiagonalSolve", dict(diagonals=P_(np.ones((3, 1))), rhs=P_(np.ones((1, 1))))
    yield "tmm1", "TridiagonalMatMul", dict(superdiag=P_(np.ones((1, 3))), maindiag=P_(np.ones((1, 3))), subdiag=P_(np.ones((1, 2))), rhs=P_(np.ones((3, 2))))
    yield "tmm2", "TridiagonalMatMul", dict(superdiag=P_(np.ones((2, 3))), maindiag=P_(np.ones((1, 3))), subdiag=P_(np.ones((1, 3))), rhs=P_(np.ones((3, 2))))
    yield "band1", "MatrixBandPart", dict(input=P_(np.ones((2, 2))), num_lower=P_(5, np.int64), num_upper=P_(0, np.int64))
    yield "band2", "MatrixBandPart", dict(input=P_(np.ones((2, 2))), num_lower=P_(0, np.int64), num_upper=P_(5, np.int64))
    yield "band3", "MatrixBandPart", dict(input=P_(np.ones(2)), num_lower=P_(0, np.int64), num_upper=P_(0, np.int64))
    yield "band4", "MatrixBandPart", dict(input=P_(np.ones((2, 2))), num_lower=P_([0], np.int64), num_upper=P_(0, np.int64))
    yield "dp1", "MatrixDiagPart", dict(input=P_(np.ones(2)))
    yield "md1", "MatrixDiag", dict(diagonal=P_(1.))
    yield "sd1", "MatrixSetDiag", dict(input=P_(np.ones((2, 3))), diagonal=P_(np.ones(3)))
    yield "sd2", "MatrixSetDiag", dict(input=P_(np.ones(3)), diagonal=P_(np.ones(3)))
    yield "d3a", "MatrixDiagPartV3", dict(input=P_(np.ones((2, 3))), k=P_(5, np.int32), padding_value=P_(0.))
    yield "d3b", "MatrixDiagPartV3", dict(input=P_(np.ones((2, 3))), k=P_([1, 0], np.int32), padding_value=P_(0.))
    yield "d3c", "MatrixDiagPartV3", dict(input=P_(np.ones((2, 3))), k=P_([1, 0, 2], np.int32), padding_value=P_(0.))
    yield "d3d", "MatrixDiagPartV3", dict(input=P_(np.ones((2, 3))), k=P_(0, np.int32), padding_value=P_([0.]))
    yield "d3e", "MatrixDiagV3", dict(diagonal=P_(np.ones((2, 3))), k=P_([0, 1], np.int32), num_rows=P_(2, np.int32), num_cols=P_(9, np.int32), padding_value=P_(0.))
    yield "d3f", "MatrixDiagV3", dict(diagonal=P_(np.ones((3, 3))), k=P_([0, 1], np.int32), num_rows=P_(-1, np.int32), num_cols=P_(-1, np.int32), padding_value=P_(0.))
    yield "d3g", "MatrixSetDiagV3", dict(input=P_(np.ones((3, 3))), diagonal=P_(np.ones((2, 2))), k=P_([0, 1], np.int32))
    yield "d3h", "MatrixDiagV3", dict(diagonal=P_(np.ones(3)), k=P_(0, np.int32), num_rows=P_(1, np.int32), num_cols=P_(1, np.int32), padding_value=P_(0.))
    yield "cr", "Cross", dict(a=P_(np.ones(2)), b=P_(np.ones(2)))
    yield "cr2", "Cross", dict(a=P_(np.ones(3)), b=P_(np.ones((1, 3))))
    yield "cg", "CholeskyGrad", dict(l=P_(np.ones((2, 3))), grad=P_(np.ones((2, 3))))
    yield "cg2", "CholeskyGrad", dict(l=P_(np.eye(2)), grad=P_(np.ones((3, 3))))
    yield "bts", "BandedTriangularSolve", dict(matrix=P_(np.ones((2, 3))), rhs=P_(np.ones((2, 1))))
    yield "bts2", "BandedTriangularSolve", dict(matrix=P_(np.zeros((2, 3))), rhs=P_(np.ones((3, 1))))


@program("Cholesky MatrixInverse MatrixDeterminant LogMatrixDeterminant MatrixSolve MatrixTriangularSolve MatrixSolveLs SelfAdjointEigV2 Eig Svd Qr Lu "
         "MatrixLogarithm MatrixSquareRoot TridiagonalSolve TridiagonalMatMul MatrixBandPart MatrixDiagPart MatrixDiag MatrixSetDiag "
         "MatrixDiagPartV3 MatrixDiagV3 MatrixSetDiagV3 Cross CholeskyGrad BandedTriangularSolve")
def matrices_that_do_not_fit(p):
    p.run_each(misfits)
