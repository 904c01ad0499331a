"""Element-wise ops: one input, two inputs with broadcasting, comparisons, and the gradients that are ops of their own."""
import numpy as np

from .table import Call, cases

SHAPES = [(), (0,), (5,), (2, 3), (2, 0, 3), (2, 1, 3, 2), (67,)]
SOME_SHAPES = [(), (2, 0), (2, 3), (19,)]
PAIRS = [((), ()), ((3,), ()), ((), (2, 3)), ((2, 3), (3,)), ((2, 1, 3), (4, 1)), ((0, 3), (1, 3)), ((1,), (2, 0)), ((2, 3), (2, 3)),
         ((2, 1, 2, 1, 2), (1, 3, 1, 2, 1)), ((33,), (33,)), ((1, 1), (1,)), ((3, 1), (1, 3)), ((2,), (3,)), ((2, 3), (2,)), ((0,), (3,))]
SOME_PAIRS = [((), ()), ((2, 3), (3,)), ((2, 1, 3), (4, 1)), ((1,), (2, 0)), ((19,), (19,)), ((2,), (3,))]


def shapes(c):
    return SHAPES if c.full else SOME_SHAPES


def pairs(c):
    return PAIRS if c.full else SOME_PAIRS


def unary(low, high):
    def make(c):
        for shape in shapes(c):
            yield Call(c.values(shape, low, high))
        if c.full and c.is_float:
            yield Call(c.values((11,), 10 * low, 10 * high))
        yield Call(c.special(), grad=False)
    return make


cases("Abs Neg Sign Square Ceil Floor Rint Exp Expm1 Cos Sin Tan Tanh Sigmoid Sinh Cosh Atan Asinh Erfc Softplus Softsign Relu "
      "Relu6 Elu Selu IsNan IsInf IsFinite Conj Reciprocal Inv OnesLike ZerosLike Real Imag Angle ComplexAbs Identity Snapshot DeepCopy "
      "StopGradient Invert PopulationCount BesselI0e BesselI1e LogicalNot GuaranteeConst")(unary(-4, 4))
# TensorFlow 2.21 gives 0 for every int32 and int64, and NaN for Erf of an infinite double.
cases("Round", types={"T": ["float16", "bfloat16", "float32", "float64", "int8", "int16", "complex64", "complex128"]})(unary(-4, 4))
cases("Erf", types={"T": ["float16", "bfloat16", "float32"]})(unary(-4, 4))
cases("Sqrt Rsqrt Log Digamma Lgamma", atol=1e-5)(unary(0.125, 8))
cases("Log1p Acos Asin Atanh Erfinv")(unary(-1, 1))
cases("Acosh")(unary(1, 9))
cases("Ndtri", rtol=1e-4)(unary(0, 1))


def finite(low, high):
    """Where TensorFlow's results for infinite numbers are not numbers."""
    def make(c):
        for shape in shapes(c):
            yield Call(c.values(shape, low, high))
        if c.full and c.is_float:
            yield Call(c.values((11,), 5 * low, 5 * high))
    return make


cases("BesselI0 BesselI1 Dawsn FresnelCos FresnelSin BesselJ0 BesselJ1", atol=1e-5)(finite(-4, 4))
cases("BesselK0 BesselK0e BesselK1 BesselK1e BesselY0 BesselY1 Expint Spence", atol=1e-5)(finite(0.125, 8))


def binary(low, high, low2=None, high2=None, special=True):
    def make(c):
        low_b, high_b = (low if low2 is None else low2), (high if high2 is None else high2)
        for a, b in pairs(c):
            yield Call(c.values(a, low, high), c.values(b, low_b, high_b))
        if special:
            s = c.special()
            if not c.is_int:
                yield Call(s[:, None], s[None, :], grad=False)
            elif low2 is None:
                yield Call(s, s[::-1].copy(), grad=False)
    return make


cases("Add AddV2 Sub Mul Maximum Minimum SquaredDifference Equal NotEqual Less LessEqual Greater GreaterEqual LogicalAnd LogicalOr "
      "BitwiseAnd BitwiseOr BitwiseXor Complex MulNoNan")(binary(-4, 4))
cases("RealDiv DivNoNan Atan2 NextAfter Xdivy Xlogy Xlog1py")(binary(-4, 4, 0.5, 3))


@cases("Div FloorDiv FloorMod TruncateDiv TruncateMod Mod")
def divide(c):
    for a, b in pairs(c):
        divisor = c.values(b, 1, 5)
        if not c.is_unsigned:
            divisor = (divisor * c.rng.choice([-1, 1], size=b).astype(c.T)).astype(c.T)
        yield Call(c.values(a, -20, 20), divisor)
    if c.is_int:
        yield Call(np.array([1, 2], c.T), np.array([1, 0], c.T))
        if not c.is_unsigned:
            s = c.special()
            yield Call(s, np.full(s.shape, 2, c.T), grad=False)
            yield Call(s[1:], np.full(s[1:].shape, -1, c.T), grad=False)
    elif not c.is_complex:
        s = c.special()
        yield Call(s[:, None], s[None, :], grad=False)


@cases("Pow")
def power(c):
    for a, b in pairs(c):
        yield Call(c.values(a, 0 if c.is_int else 0.25, 4), c.values(b, 0, 4))
    if c.is_int and not c.is_unsigned:
        yield Call(np.array([2, 3], c.T), np.array([1, -1], c.T))
    if c.is_float:
        s = c.special()
        yield Call(s[:, None], s[None, :], grad=False)


@cases("LeftShift RightShift")
def shift(c):
    for a, b in pairs(c):
        yield Call(c.values(a, -100, 100), c.values(b, 0, 7))
    yield Call(c.special(), np.full(c.special().shape, 3, c.T))


@cases("ApproximateEqual")
def approximate_equal(c):
    x = c.values((2, 3))
    y = x.copy()
    y[0, 0] = x[0, 0] + np.array(1, c.T)
    yield Call(x, y)
    yield Call(x, y, tolerance=2.0)
    yield Call(x, c.values((3,)))




@cases("SigmoidGrad TanhGrad RsqrtGrad SqrtGrad InvGrad ReciprocalGrad SoftplusGrad SoftsignGrad ReluGrad Relu6Grad EluGrad SeluGrad")
def gradient_of_unary(c):
    for shape in shapes(c):
        yield Call(c.values(shape, 0.125, 2), c.values(shape, -2, 2))
        yield Call(c.values(shape, -2, 7), c.values(shape, 0.25, 7))
    yield Call(c.values((2, 3), 0.5, 1), c.values((3,), 0.5, 1), grad=False)


@cases("LeakyRelu")
def leaky_relu(c):
    for shape in shapes(c):
        yield Call(c.values(shape))
    yield Call(c.values((4,)), alpha=0.5)
    yield Call(c.values((4,)), alpha=1.5)
    yield Call(c.special(), grad=False)


@cases("LeakyReluGrad")
def leaky_relu_grad(c):
    yield Call(c.values((2, 3)), c.values((2, 3)))
    yield Call(c.values((2, 3)), c.values((2, 3)), alpha=0.5)
    yield Call(c.values((0,)), c.values((0,)))


@cases("Igamma Igammac", rtol=1e-4)
def igamma(c):
    for a, b in pairs(c):
        yield Call(c.values(a, 0.5, 5), c.values(b, 0.25, 6))
    yield Call(np.array([0, 1, 2, -1, 3], c.T), np.array([1, 0, 3, 1, -1], c.T), grad=False)


@cases("IgammaGradA", rtol=1e-3, atol=1e-4)
def igamma_grad_a(c):
    yield Call(c.values((2, 3), 0.5, 5), c.values((3,), 0.25, 6))


@cases("RandomGammaGrad", rtol=1e-3, atol=1e-4)
def random_gamma_grad(c):
    yield Call(c.values((2, 3), 0.5, 5), c.values((2, 3), 0.25, 6))


@cases("Zeta Polygamma", rtol=1e-4)
def zeta(c):
    first = (lambda s: c.values(s, 1.5, 6)) if c.op == "Zeta" else (lambda s: c.ints(s, 1, 4).astype(c.T))
    for a, b in pairs(c):
        yield Call(first(a), c.values(b, 0.5, 5))
    yield Call(np.array([1.5, 2, 4] if c.op == "Zeta" else [1, 2, 3], c.T), np.array(np.inf, c.T), grad=False)


@cases("Betainc", rtol=1e-4)
def betainc(c):
    for shape in ((), (2, 3), (0,)):
        yield Call(c.values(shape, 0.5, 4), c.values(shape, 0.5, 4), c.values(shape, 0.0625, 0.9375))
    yield Call(c.values((), 0.5, 4), c.values((4,), 0.5, 4), c.values((4,), 0.0625, 0.9375))
    yield Call(c.values((2,), 0.5, 4), c.values((3,), 0.5, 4), c.values((3,), 0.0625, 0.9375))


@cases("_HostCast", types={"SrcT": ["float32", "int32", "int64", "bool", "complex64"], "DstT": ["float32", "float64", "int32", "int64", "bool", "float16"], "*": []})
def host_cast(c):
    yield Call(c.values((2, 3), 0, 5))
    yield Call(c.values((), 0, 5))
    yield Call(c.values((0, 2), 0, 5))


@cases("Cast", types={"*": []})
def cast(c):
    to_int = "int" in c.types["DstT"]
    unsigned = c.types["DstT"].startswith("uint")
    yield Call(c.values((2, 3), 0 if unsigned else -4, 5))
    yield Call(c.values((), 0, 5))
    yield Call(c.values((0, 2), 0, 5))
    if c.is_float and not to_int:
        yield Call(c.special(), grad=False)
    if c.is_int and to_int and not c.types["SrcT"].startswith("q"):
        yield Call(c.special(), grad=False)
    if c.is_float and c.types["DstT"] in ("float16", "bfloat16"):
        yield Call(np.array([1.0009766, 65504, 65520, 1e-7, 6.1e-5, 0.3333333]).astype(c.T), grad=False)
        yield Call(c.values((3,)), Truncate=True)


@cases("ClipByValue", types={"T": "float16 bfloat16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64 complex64 complex128".split()})
def clip(c):
    if c.is_complex:  # parts have limits of their own; the gradient would compare complex numbers
        low, high = np.array(-1 - 2j, c.T), np.array(2 + 1j, c.T)
        x = np.array([1 + 2j, 3 - 1j, -2, 0.5 + 5j, -1 - 3j, complex(np.nan, 4)], c.T)
        rows = np.array([0, 1, -1, 2j, -2j, 1 + 1j], c.T)
        for a, b in ((low, high), (rows, high), (low, rows), (rows, rows + low.dtype.type(1)), (low, rows[:2])):
            yield Call(x, a, b, grad=False)
        return
    low, high = np.array(0 if c.is_unsigned else -2, c.T), np.array(2, c.T)
    for shape in shapes(c):
        yield Call(c.values(shape, 0 if c.is_unsigned else -4, 4), low, high)
    yield Call(c.values((2, 3), -4, 4), np.full((2, 3), 1, c.T), np.full((2, 3), 3, c.T))
    yield Call(c.values((2, 3), -4, 4), np.full((3,), 1, c.T), np.full((3,), 3, c.T), grad=False)


@cases("Select")
def select(c):
    for shape in shapes(c):
        yield Call(c.ints(shape, 0, 2).astype(bool), c.values(shape), c.values(shape))
    yield Call(np.array(True), c.values((2, 3)), c.values((2, 3)))
    yield Call(np.array([True, False]), c.values((2, 3)), c.values((2, 3)))
    yield Call(np.array([True, False, True]), c.values((2, 3)), c.values((2, 3)))
    yield Call(np.array([True, False]), c.values((2,)), c.values((3,)))


@cases("SelectV2")
def select_v2(c):
    for a, b in pairs(c):
        yield Call(c.ints(a, 0, 2).astype(bool), c.values(b), c.values((1,)))
        yield Call(c.ints(b, 0, 2).astype(bool), c.values(a), c.values(b))


@cases("AddN AccumulateNV2", atol=1e-5)
def add_n(c):
    more = {"shape": (2, 3)} if c.op == "AccumulateNV2" else {}
    for n in (1, 2, 3, 9):
        yield Call([c.values((2, 3)) for _ in range(n)], **more)
    if c.op == "AddN":
        yield Call([c.values((0,)), c.values((0,))])
        yield Call([c.values(()), c.values(())])
        yield Call([c.values((2,)), c.values((3,))])


@cases("CheckNumerics CheckNumericsV2")
def check_numerics(c):
    yield Call(c.values((2, 3)), message="x")
    yield Call(np.array([1, np.nan], c.T), message="x", grad=False)
    yield Call(np.array([1, -np.inf], c.T), message="x", grad=False)
    yield Call(c.values((0,)), message="x")


@cases("Bitcast", types={"*": []})
def bitcast(c):
    to = np.dtype(c.type("type")).itemsize
    own = np.dtype(c.T).itemsize
    yield Call(c.values((2, max(1, to // own))))
    yield Call(c.values(()))
    yield Call(c.values((0, max(1, to // own))))


@cases("Cross")
def cross(c):
    yield Call(c.values((3,)), c.values((3,)))
    yield Call(c.values((2, 4, 3)), c.values((2, 4, 3)))
    yield Call(c.values((2, 2)), c.values((2, 2)))
    yield Call(c.values((0, 3)), c.values((0, 3)))


@cases("L2Loss")
def l2_loss(c):
    for shape in shapes(c):
        yield Call(c.values(shape))


@cases("PreventGradient")
def prevent_gradient(c):
    yield Call(c.values((2, 3)), message="no", grad=False)


@cases("DebugIdentity")
def debug_identity(c):
    yield Call(c.values((2, 3)), tensor_name="x:0", device_name="/job:a/task:0", grad=False)
    yield Call(c.values((0,)), tensor_name="x:0", device_name="/job:a/task:0", grad=False)


@cases("Copy CopyHost", gradient=False)
def copy(c):
    yield Call(c.values((2, 3)), tensor_name="x:0", debug_ops_spec=["DebugIdentity;file:///nowhere;0"])
    yield Call(c.values(()))
    yield Call(c.values((0, 2)))
    yield Call(c.values((2,)), debug_ops_spec=["DebugIdentity;file:///nowhere"])


@cases("DebugNanCount DebugNumericSummary", gradient=False)
def debug_counts(c):
    yield Call(c.values((2, 3)), tensor_name="x:0", device_name="/job:a/task:0")
    yield Call(c.values(()), tensor_name="x:1")
    yield Call(c.values(()))
    yield Call(c.values((0, 2)), tensor_name="x")
    if c.name in ("float32", "float64"):
        values = np.array([np.nan, np.inf, -np.inf, 0, -0.0, 1, -2, 3.5, np.nan, np.inf], c.T)
        yield Call(values, tensor_name="x:0")
        yield Call(np.array([np.nan, np.inf], c.T), tensor_name="x:0")
    if c.op == "DebugNumericSummary":
        yield Call(c.values((4,)), lower_bound=-0.5, upper_bound=0.75, mute_if_healthy=True, tensor_name="x:0")
    yield Call(c.values((2,)), tensor_name="x:y")
    yield Call(c.values((2,)), tensor_name="x:0:1")


@cases("DebugIdentityV2 DebugIdentityV3", gradient=False)
def debug_identity_later(c):
    more = {"tensor_name": "x:0"} if c.op == "DebugIdentityV3" else {}
    yield Call(c.values((2, 3)), **more)
    yield Call(c.values((0,)), **more)
    yield Call(c.values((2,)), debug_urls=["other://nowhere"], **more)


@cases("DebugNumericSummaryV2", types={"output_dtype": ["float32", "float64"], "*": []}, gradient=False)
def debug_summary(c):
    inputs = [c.values((2, 3)), c.values(()), c.values((0, 2)), c.values((2, 1, 1, 2, 1, 1, 3, 1))]
    if c.name in ("float16", "bfloat16", "float32", "float64"):
        inputs += [np.array([np.nan, np.inf, -np.inf, 0, -0.0, 1, -2, 3.5, np.nan, np.inf], c.T), np.array([-np.inf], c.T), np.array([np.nan, 1], c.T)]
    for mode in (2, 3, 4, 5, 8, 1, 6):
        for x in inputs if c.full else inputs[:1] + inputs[3:5]:
            yield Call(x, tensor_debug_mode=mode, tensor_id=7)
    yield Call(c.values((2,)), tensor_debug_mode=2, tensor_id=1 << 24)
    yield Call(c.values((2,)), tensor_debug_mode=2, tensor_id=(1 << 24) + 1)
    yield Call(c.values((2,)), tensor_debug_mode=3, tensor_id=(1 << 53) + 1)


@cases("ToBool", types={"T": ["float32", "float64", "int32", "int64", "uint8", "int8", "int16", "bool", "string"]})
def to_bool(c):
    yield Call(np.zeros((), c.T) if c.name != "string" else np.array(b"", object))
    yield Call(c.values((), 1, 3))
    yield Call(c.values((0,)))
    yield Call(c.values((2,)))
