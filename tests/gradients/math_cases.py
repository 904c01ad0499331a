"""Graphs of element-wise functions, reductions and matrix products."""
import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.python.ops import gen_math_ops

from gradient_case import case, floats, values

UNARY = {
    "Abs": (tf.abs, -1, 1), "Acos": (tf.acos, -.9, .9), "Acosh": (tf.acosh, 1.1, 3), "Asin": (tf.asin, -.9, .9), "Asinh": (tf.asinh, -2, 2),
    "Atan": (tf.atan, -2, 2), "Atanh": (tf.atanh, -.9, .9), "BesselI0e": (tf.math.bessel_i0e, -2, 2), "BesselI1e": (tf.math.bessel_i1e, -2, 2),
    "Cos": (tf.cos, -2, 2), "Cosh": (tf.cosh, -2, 2), "Digamma": (tf.digamma, .5, 4), "Erf": (tf.erf, -2, 2), "Erfc": (tf.erfc, -2, 2),
    "Erfinv": (tf.math.erfinv, -.9, .9), "Exp": (tf.exp, -2, 2), "Expm1": (tf.math.expm1, -2, 2), "Inv": (lambda x: tf.raw_ops.Inv(x=x), .5, 2),
    "Lgamma": (tf.lgamma, .5, 4), "Log": (tf.log, .1, 3), "Log1p": (tf.log1p, -.5, 3), "Ndtri": (tf.math.ndtri, .1, .9), "Neg": (tf.negative, -2, 2),
    "Reciprocal": (tf.reciprocal, .5, 2), "Rsqrt": (tf.rsqrt, .2, 3), "Sigmoid": (tf.sigmoid, -3, 3), "Sign": (tf.sign, -1, 1), "Sin": (tf.sin, -2, 2),
    "Sinh": (tf.sinh, -2, 2), "Sqrt": (tf.sqrt, .1, 4), "Square": (tf.square, -2, 2), "Tan": (tf.tan, -1, 1), "Tanh": (tf.tanh, -2, 2),
    "Floor": (lambda x: tf.floor(x) + x, -3, 3), "Ceil": (lambda x: tf.ceil(x) * x, -3, 3), "Round": (lambda x: tf.round(x) * x, -3, 3),
    "Rint": (lambda x: tf.rint(x) * x, -3, 3),
    "BesselI0": (tf.math.special.bessel_i0, -2, 2), "BesselI1": (tf.math.special.bessel_i1, -2, 2), "BesselJ0": (tf.math.special.bessel_j0, -3, 3),
    "BesselJ1": (tf.math.special.bessel_j1, -3, 3), "BesselK0": (tf.math.special.bessel_k0, .3, 3), "BesselK0e": (tf.math.special.bessel_k0e, .3, 3),
    "BesselK1": (tf.math.special.bessel_k1, .3, 3), "BesselK1e": (tf.math.special.bessel_k1e, .3, 3), "BesselY0": (tf.math.special.bessel_y0, .3, 3),
    "BesselY1": (tf.math.special.bessel_y1, .3, 3), "Dawsn": (tf.math.special.dawsn, -2, 2), "Expint": (tf.math.special.expint, .2, 3),
    "FresnelCos": (tf.math.special.fresnel_cos, -2, 2), "FresnelSin": (tf.math.special.fresnel_sin, -2, 2), "Spence": (tf.math.special.spence, .2, 3),
}
SMOOTH_COMPLEX = ["Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Cos", "Cosh", "Exp", "Expm1", "Inv", "Log", "Log1p", "Neg", "Reciprocal", "Rsqrt", "Sigmoid",
                  "Sin", "Sinh", "Sqrt", "Square", "Tan", "Tanh"]


def unary(name, dtype):
    function, low, high = UNARY[name]

    def build():
        x = floats(2, 3, low=low, high=high, dtype=dtype)
        return function(x), [x]
    return build


for op in UNARY:
    case("unary_" + op)(unary(op, np.float64))
for op in SMOOTH_COMPLEX:
    case("complex_" + op, rtol=1e-8)(unary(op, np.complex128))
for op, point in (("BesselI1", 0.0), ("BesselJ1", 0.0), ("Spence", 1.0)):
    case("limit_" + op)(lambda op=op, point=point: (lambda x: (UNARY[op][0](x), [x]))(tf.constant(np.array([point, 0.5]))))
for op in ("Exp", "Tanh", "Sqrt", "Sigmoid"):
    case("half_" + op)(unary(op, np.float16))
    case("single_" + op)(unary(op, np.float32))


def twice(name):
    """The gradient of the gradient: ops like TanhGrad."""
    function, low, high = UNARY[name]

    def build():
        x = floats(2, 3, low=low, high=high)
        first = tf.gradients(function(x), x, grad_ys=floats(2, 3, seed=5))[0]
        return tf.square(first), [x]
    return build


for op in ("Tanh", "Sigmoid", "Sqrt", "Rsqrt", "Reciprocal", "Inv", "Exp", "Log", "Lgamma", "Abs"):
    case("second_" + op)(twice(op))


@case()
def inv_grad():
    y, dy = floats(3, low=.5, high=2), floats(3, seed=2)
    return tf.raw_ops.InvGrad(y=y, dy=dy), [y, dy]


@case()
def complex_parts():
    z = floats(2, 3, dtype=np.complex128)
    return [tf.real(z), tf.imag(z), tf.angle(z), tf.abs(z), tf.conj(z)], [z]


@case()
def complex_of_two():
    x, y = floats(2, 3), floats(1, 3)
    return tf.complex(x, y), [x, y]


@case()
def casts():
    x = floats(2, 3)
    return [tf.cast(tf.cast(x, tf.float32), tf.float64) * x, tf.cast(tf.cast(x, tf.int32), tf.float64) * x], [x]


BINARY = {
    "Add": lambda x, y: tf.raw_ops.Add(x=x, y=y), "AddV2": lambda x, y: x + y, "Sub": tf.subtract, "Mul": tf.multiply, "MulNoNan": tf.math.multiply_no_nan,
    "Div": lambda x, y: tf.raw_ops.Div(x=x, y=y), "RealDiv": tf.realdiv, "DivNoNan": tf.math.divide_no_nan, "FloorMod": tf.floormod,
    "FloorDiv": lambda x, y: tf.floordiv(x, y) + x * y, "TruncateDiv": lambda x, y: tf.cast(tf.truncatediv(tf.cast(x, tf.int32), tf.cast(y * 9, tf.int32)), tf.float64) * x,
    "Pow": tf.pow, "Maximum": tf.maximum, "Minimum": tf.minimum, "SquaredDifference": tf.squared_difference, "Atan2": tf.atan2, "Xlogy": tf.math.xlogy,
    "Xlog1py": tf.math.xlog1py, "Xdivy": tf.math.xdivy, "Igamma": tf.igamma, "Igammac": tf.igammac, "Zeta": lambda x, q: tf.zeta(x + 1, q),
    "Polygamma": lambda n, x: tf.polygamma(tf.round(n) + 1, x), "NextAfter": tf.math.nextafter,
}


def binary(function, shapes, dtype=np.float64, low=.3):
    def build():
        x, y = (floats(*s, low=low, high=2.5, dtype=dtype, seed=i) for i, s in enumerate(shapes))
        return function(x, y), [x, y]
    return build


for op, function in BINARY.items():
    rtol = 1e-6 if op in ("Igamma", "Igammac", "Zeta", "Polygamma") else None
    case("binary_" + op, rtol=rtol)(binary(function, [(2, 3), (2, 3)]))
    case("broadcast_" + op, rtol=rtol)(binary(function, [(2, 1, 3), (4, 1)]))
for op in ("AddV2", "Sub", "Mul", "RealDiv", "DivNoNan", "Pow"):
    case("complex_" + op)(binary(BINARY[op], [(2, 3), (3,)], np.complex128))
case("pow_of_negative_base")(binary(lambda x, y: tf.pow(x, tf.round(y)), [(2, 3), (3,)], low=-2))


@case()
def the_same_value_twice():
    x = floats(2, 3)
    return [x * x, x + x, x - x, tf.pow(x * x, x)], [x]


@case()
def equal_values_of_maximum():
    x, y = tf.constant([1., 2, 3]), tf.constant([1., 2, 4])
    return [tf.maximum(x, y), tf.minimum(x, y)], [x, y]


@case()
def xlogy_at_zero():
    x, y = tf.constant([0., 2, 0]), tf.constant([1., 0.5, 0])
    return [tf.math.xlogy(x, y), tf.math.xdivy(x, y), tf.math.xlog1py(x, y)], [x, y]


@case(rtol=1e-6)
def betainc():
    a, b, x = (floats(4, low=.3, high=.9, seed=i) for i in range(3))
    return tf.betainc(a * 3, b * 3, x), [x, a]


@case()
def cross():
    u, v = floats(2, 3), floats(2, 3, seed=1)
    return tf.cross(u, v), [u, v]


@case()
def selects():
    x, y, c = floats(2, 3), floats(2, 3, seed=1), tf.constant([[True, False, True], [False, False, True]])
    rows = tf.constant([True, False])
    return [tf.where(c, x, y), tf.where(rows, x, y), tf.where_v2(c[:, :1], x, y[:, 1:2]), tf.where_v2(c, x[0], y)], [x, y]


@case()
def clips():
    x, low, high = floats(2, 3), tf.constant(-.3, tf.float64), tf.constant([.2, .3, .4], tf.float64)
    return [tf.raw_ops.ClipByValue(t=x, clip_value_min=low, clip_value_max=low + .5), tf.clip_by_value(x, low, high)], [x, low, high]


@case()
def sums_of_many():
    x, y, z = (floats(2, 3, seed=i) for i in range(3))
    return [tf.add_n([x, y, x, z]), tf.raw_ops.AccumulateNV2(inputs=[x, y], shape=[2, 3])], [x, y, z]


REDUCE = {"Sum": tf.reduce_sum, "Mean": tf.reduce_mean, "Max": tf.reduce_max, "Min": tf.reduce_min, "Prod": tf.reduce_prod,
          "EuclideanNorm": lambda x, **o: tf.raw_ops.EuclideanNorm(input=x, axis=[0, 1, 2] if o["axis"] is None else o["axis"], keep_dims=o["keepdims"])}


def reduce(function, axis, keepdims, dtype=np.float64):
    def build():
        x = floats(2, 3, 4, dtype=dtype)
        return function(x, axis=axis, keepdims=keepdims), [x]
    return build


for op, function in REDUCE.items():
    for i, (axis, keepdims) in enumerate([(None, False), ([1], False), ([0, -1], True), ([-2], False)]):
        case("reduce_%s_%d" % (op, i))(reduce(function, axis, keepdims))
for op in ("Sum", "Mean", "Prod"):
    case("reduce_complex_" + op)(reduce(REDUCE[op], [1], False, np.complex128))


@case()
def reduce_with_ties_and_zeros():
    x = tf.constant([[1., 0, 3, 3], [0, 0, 2, 2], [5, 4, 0, 1]], tf.float64)
    return [tf.reduce_max(x, 1), tf.reduce_min(x, 0), tf.reduce_prod(x, 1), tf.reduce_prod(x, 0)], [x]


@case()
def reduce_of_unknown_shape():
    x = tf.placeholder_with_default(values(2, 3), None)
    return tf.reduce_mean(x, 0) + tf.reduce_sum(x, 0), [x]


@case()
def running():
    x = floats(3, 4, low=.5)
    return [f(x, axis=a, exclusive=e, reverse=r) for f in (tf.cumsum, tf.cumprod, tf.math.cumulative_logsumexp) for a, e, r in ((0, False, False), (1, True, True))], [x]


@case()
def l2_loss():
    x = floats(2, 3)
    return tf.nn.l2_loss(x), [x]


def matmul(ta, tb, dtype):
    def build():
        a, b = floats(*((4, 3) if ta else (3, 4)), dtype=dtype), floats(*((2, 4) if tb else (4, 2)), dtype=dtype, seed=1)
        return tf.matmul(a, b, transpose_a=ta, transpose_b=tb), [a, b]
    return build


def batch_matmul(ta, tb, dtype, op):
    def build():
        a, b = floats(5, *((4, 3) if ta else (3, 4)), dtype=dtype), floats(5, *((2, 4) if tb else (4, 2)), dtype=dtype, seed=1)
        return op(a, b, ta, tb), [a, b]
    return build


for ta in (False, True):
    for tb in (False, True):
        case("matmul_%d%d" % (ta, tb))(matmul(ta, tb, np.float64))
        case("matmul_complex_%d%d" % (ta, tb))(matmul(ta, tb, np.complex128))
        case("batch_matmul_%d%d" % (ta, tb))(batch_matmul(ta, tb, np.float64, lambda a, b, x, y: tf.raw_ops.BatchMatMul(x=a, y=b, adj_x=x, adj_y=y)))
        case("batch_matmul_v2_%d%d" % (ta, tb))(batch_matmul(ta, tb, np.complex128, lambda a, b, x, y: tf.matmul(a, b, adjoint_a=x, adjoint_b=y)))
        case("sparse_matmul_%d%d" % (ta, tb), rtol=1e-4)(
            (lambda ta, tb: lambda: (lambda a, b: (tf.matmul(a, b, transpose_a=ta, transpose_b=tb, a_is_sparse=True), [a, b]))(
                floats(*((4, 3) if ta else (3, 4)), dtype=np.float32), floats(*((2, 4) if tb else (4, 2)), dtype=np.float32, seed=1)))(ta, tb))


@case()
def batch_matmul_broadcast():
    a, b = floats(2, 1, 3, 4), floats(5, 4, 2)
    return [tf.matmul(a, b), tf.raw_ops.BatchMatMulV3(x=a, y=b, Tout=tf.float64)], [a, b]
