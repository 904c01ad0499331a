"""Tests of kernels and linear operators that TensorFlow's package has, run unchanged on a Rill task."""
import pytest
import tensorflow.compat.v1 as tf
from tensorflow.python.kernel_tests.nn_ops import xent_op_test_base
from tensorflow.python.kernel_tests.sparse_ops import sparse_xent_op_test_base
from tensorflow.python.ops import image_grad_test_base as images
from tensorflow.python.ops.linalg import linear_operator_test_util as operators

from own_tests import local_task, names_of_tests, run_case  # noqa: F401 (a fixture)

KERNELS = {name: vars(module)[name] for module in (images, xent_op_test_base, sparse_xent_op_test_base) for name in vars(module) if name.endswith("TestBase")}
LONG = ("CompareGpuVsCpu", "testGradients1", "testGradients2", "RGreatest")  # some ten thousand steps each
KERNEL_TESTS = [(kernel, name) for kernel in sorted(KERNELS) for name in names_of_tests(KERNELS[kernel], without=LONG)]


@pytest.mark.parametrize("kernel, name", KERNEL_TESTS)
@pytest.mark.time_limit(300)
def test_of_a_kernel(local_task, kernel, name):  # noqa: F811
    run_case(KERNELS[kernel], name, local_task)


# ---- Linear operators: TensorFlow's tests of a class want an operator and the matrix that it is ----


class OperatorTests(operators.SquareLinearOperatorDerivedClassTest):
    _atol = _rtol = {tf.float32: 1e-4, tf.complex128: 1e-9}

    @staticmethod
    def operator_shapes_infos():
        return [operators.OperatorShapesInfo((2, 1, 4, 4))]

    @staticmethod
    def use_placeholder_options():
        return [True]

    @staticmethod
    def adjoint_arg_options():
        return [False]

    def operator_and_matrix(self, shapes_info, dtype, use_placeholder, ensure_self_adjoint_and_pd=False):
        def hold(x):
            return tf.placeholder_with_default(x, None)
        good = ensure_self_adjoint_and_pd or None
        return self.make(list(shapes_info.shape), tf.as_dtype(dtype), hold, dict(is_self_adjoint=good, is_positive_definite=good))


def positive(shape, dtype):
    return operators.random_positive_definite_matrix(shape, dtype, force_well_conditioned=True)


def full_matrix(self, shape, dtype, hold, hints):
    m = positive(shape, dtype)
    return tf.linalg.LinearOperatorFullMatrix(hold(m), is_square=True, **hints), m


def diagonal(self, shape, dtype, hold, hints):
    d = tf.cast(operators.random_uniform(shape[:-1], minval=1.0, maxval=2.0, dtype=dtype.real_dtype), dtype)
    return tf.linalg.LinearOperatorDiag(hold(d), **hints), tf.matrix_diag(d)


def triangle(self, shape, dtype, hold, hints):
    m = operators.random_tril_matrix(shape, dtype, force_well_conditioned=True, remove_upper=False)
    return tf.linalg.LinearOperatorLowerTriangular(hold(m)), tf.matrix_band_part(m, -1, 0)


def circulant(self, shape, dtype, hold, hints):
    spectrum = operators.random_sign_uniform(shape[:-1], minval=1.0, maxval=2.0, dtype=dtype)
    waves = tf.broadcast_to(tf.fft(tf.eye(shape[-1], dtype=dtype)), shape)
    m = tf.matmul(waves, tf.matmul(tf.matrix_diag(spectrum), waves), adjoint_a=True) / tf.cast(shape[-1], dtype)
    return tf.linalg.LinearOperatorCirculant(hold(spectrum), input_output_dtype=dtype), m


def kronecker(self, shape, dtype, hold, hints):
    a, b = (positive(shape[:-2] + [2, 2], dtype) for _ in range(2))
    m = tf.reshape(tf.einsum("...ij,...kl->...ikjl", a, b), shape)
    factors = [tf.linalg.LinearOperatorFullMatrix(hold(x), is_square=True, is_self_adjoint=True, is_positive_definite=True) for x in (a, b)]
    return tf.linalg.LinearOperatorKronecker(factors), m


def low_rank_update(self, shape, dtype, hold, hints):
    d = tf.cast(operators.random_uniform(shape[:-1], minval=2.0, maxval=3.0, dtype=dtype.real_dtype), dtype)
    u = operators.random_normal_correlated_columns(shape[:-2] + [shape[-1], 2], dtype=dtype)
    base = tf.linalg.LinearOperatorDiag(hold(d), is_positive_definite=True, is_self_adjoint=True)
    return tf.linalg.LinearOperatorLowRankUpdate(base, hold(u), is_positive_definite=True, is_self_adjoint=True), tf.matrix_diag(d) + tf.matmul(u, u, adjoint_b=True)


def cases_of(make, dtype, skipped=()):
    case = type(make.__name__, (OperatorTests,), {"make": make, "dtypes_to_test": staticmethod(lambda: [dtype]), "skip_these_tests": staticmethod(lambda: list(skipped))})
    operators.add_tests(case)
    return case


OPERATORS = [cases_of(full_matrix, tf.float32), cases_of(diagonal, tf.complex128), cases_of(triangle, tf.float32, ["cholesky", "eigvalsh"]),
             cases_of(circulant, tf.complex128, ["adjoint", "cholesky", "eigvalsh", "cond"]), cases_of(kronecker, tf.complex128, ["slicing"]), cases_of(low_rank_update, tf.float32, ["slicing"])]
OPERATOR_TESTS = [pytest.param(case, name, id="%s-%s" % (case.__name__, name.split("__")[0] + name.split("True")[1])) for case in OPERATORS for name in names_of_tests(case)]


@pytest.mark.parametrize("case, name", OPERATOR_TESTS)
@pytest.mark.time_limit(300)
def test_of_a_linear_operator(local_task, case, name):  # noqa: F811
    run_case(case, name, local_task)


# The classes themselves are not for pytest to run, which would give them no task.
for module in (images, xent_op_test_base, sparse_xent_op_test_base):
    for kernel in KERNELS:
        if hasattr(module, kernel):
            delattr(module, kernel)
for case in [OperatorTests, *OPERATORS]:
    case.__test__ = False
