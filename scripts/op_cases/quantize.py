"""Quantisation, and ops that pretend it."""
import numpy as np
import tensorflow as tf

from .table import Call, cases, program

F32 = np.float32
QUANTISED = ["qint8", "quint8", "qint16", "quint16", "qint32"]


@cases("QuantizeV2", types={"T": QUANTISED}, gradient=False)
def quantize(c):
    for mode in ("MIN_COMBINED", "MIN_FIRST", "SCALED"):
        for rounding in ("HALF_AWAY_FROM_ZERO", "HALF_TO_EVEN"):
            if rounding == "HALF_TO_EVEN" and mode != "SCALED":
                continue
            high = 2 if c.name == "qint32" else 3  # TensorFlow's int32 overflows
            yield Call(c.values((2, 5), -high, high, F32), F32(-2), F32(2.5), mode=mode, round_mode=rounding)
            yield Call(c.values((), 0, 2, F32), F32(0), F32(2.5), mode=mode, round_mode=rounding)
        yield Call(c.values((60,), -1.4, -0.1, F32), F32(-1.4943556), F32(-0.67566717), mode=mode)  # halves, but for how the scale is rounded
        yield Call(c.values((60,), -0.9, 0.9, F32), F32(-0.99266247), F32(1.0060031), mode=mode)
    yield Call(c.values((2,), dtype=F32), F32(3), F32(2))


@cases("Dequantize", types={"T": QUANTISED, "dtype": ["float32", "bfloat16"]}, gradient=False)
def dequantize(c):
    for mode in ("MIN_COMBINED", "MIN_FIRST", "SCALED"):
        yield Call(c.values((2, 5), -100, 100), F32(-2), F32(2.5), mode=mode)
        yield Call(c.values((), 0, 100), F32(0), F32(2.5), mode=mode)


@cases("QuantizeAndDequantize")
def fake(c):
    for signed in (True, False):
        yield Call(c.values((2, 5)), signed_input=signed, range_given=True, input_min=-2.0 if signed else 0.0, input_max=3.0)
        yield Call(c.values((2, 5)), signed_input=signed, num_bits=4)


@cases("QuantizeAndDequantizeV2 QuantizeAndDequantizeV4")
def fake_v2(c):
    for signed in (True, False):
        for mode in ("HALF_TO_EVEN", "HALF_UP"):
            yield Call(c.values((2, 5)), np.array(-2 if signed else 0, c.T), np.array(3, c.T), signed_input=signed, range_given=True, round_mode=mode, num_bits=5)
            yield Call(c.values((2, 5)), np.array(0, c.T), np.array(0, c.T), signed_input=signed, round_mode=mode, narrow_range=True)
    yield Call(c.values((2, 3)), np.array(3, c.T), np.array(2, c.T), range_given=True, grad=False)


@cases("QuantizeAndDequantizeV3")
def fake_v3(c):
    yield Call(c.values((2, 5)), np.array(-2, c.T), np.array(3, c.T), np.int32(8), range_given=True)
    yield Call(c.values((2, 5)), np.array(0, c.T), np.array(0, c.T), np.int32(4), range_given=False, narrow_range=True)
    yield Call(c.values((2, 5)), np.array(-2, c.T), np.array(3, c.T), np.int32(80), range_given=True, grad=False)


@cases("QuantizeAndDequantizeV4Grad", gradient=False)
def fake_v4_grad(c):
    yield Call(c.values((2, 5)), c.values((2, 5)), np.array(-2, c.T), np.array(3, c.T))
    yield Call(c.values((2, 3)), c.values((2, 3)), np.array([-2, -1, -3], c.T), np.array([1, 2, 3], c.T), axis=1)


@cases("FakeQuantWithMinMaxArgs", gradient=False)
def fake_args(c):
    for bits, narrow in ((8, False), (4, True)):
        yield Call(c.values((2, 5), -9, 9), min=-6.0, max=6.0, num_bits=bits, narrow_range=narrow)
        yield Call(c.values((2, 5), -9, 9), min=0.25, max=6.0, num_bits=bits, narrow_range=narrow)


@cases("FakeQuantWithMinMaxArgsGradient", gradient=False)
def fake_args_grad(c):
    yield Call(c.values((2, 5)), c.values((2, 5), -9, 9), min=-6.0, max=6.0)


@cases("FakeQuantWithMinMaxVars")
def fake_vars(c):
    for bits, narrow in ((8, False), (4, True)):
        yield Call(c.values((2, 5), -9, 9), F32(-5), F32(6), num_bits=bits, narrow_range=narrow)


@cases("FakeQuantWithMinMaxVarsGradient", gradient=False)
def fake_vars_grad(c):
    yield Call(c.values((2, 5)), c.values((2, 5), -9, 9), F32(-5), F32(6))


@cases("FakeQuantWithMinMaxVarsPerChannel")
def fake_channel(c):
    yield Call(c.values((2, 3), -9, 9), np.array([-5, -1, -3], F32), np.array([6, 2, 1], F32))
    yield Call(c.values((3,), -9, 9), np.array([-5, -1, -3], F32), np.array([6, 2, 1], F32))
    yield Call(c.values((2, 3), -9, 9), np.array([-5, -1], F32), np.array([6, 2], F32), grad=False)


@cases("FakeQuantWithMinMaxVarsPerChannelGradient", gradient=False)
def fake_channel_grad(c):
    yield Call(c.values((2, 3)), c.values((2, 3), -9, 9), np.array([-5, -1, -3], F32), np.array([6, 2, 1], F32))


# Integers that stand for floats.

Q8, QU8, Q32 = ["qint8"], ["quint8"], ["qint32"]
RANGES = [(-1.5, 2.25), (0.0, 3.7), (-5.1, -0.3), (0.2, 1.1), (-1.0, 1.0)]


def bytes_of(c, shape, dtype="quint8"):
    low, high = {"quint8": (0, 256), "qint8": (-128, 128), "qint32": (-(2 ** 31), 2 ** 31)}[dtype]
    return c.rng.integers(low, high, size=shape).astype(np.dtype(dtype.lstrip("q"))).astype(tf.dtypes.as_dtype(dtype).as_numpy_dtype)


def sums_of(c, shape, most=2 ** 24):
    return c.rng.integers(-most, most, size=shape).astype(np.int32).astype(tf.qint32.as_numpy_dtype)


def ends_of(dtype):
    numbers = [0, 1, 127, 128, 255] if dtype == "quint8" else [-2 ** 31, -2 ** 31 + 1, -1, 0, 1, 2 ** 30, 2 ** 31 - 1]
    return np.array(numbers, np.dtype(dtype.lstrip("q"))).astype(tf.dtypes.as_dtype(dtype).as_numpy_dtype)


@cases("QuantizeDownAndShrinkRange", types={"Tinput": Q32, "out_type": QU8}, gradient=False)
def shrink(c):
    for low, high in RANGES:
        yield Call(sums_of(c, (3, 5)), F32(low * 64), F32(high * 64))
    yield Call(ends_of("qint32"), F32(-10), F32(20))
    yield Call(sums_of(c, ()), F32(-3), F32(3))
    yield Call(sums_of(c, (2,), 2 ** 30), np.array([-3], F32), F32(3))
    yield Call(sums_of(c, (2,)), np.array([-3, 4], F32), F32(3))


@cases("RequantizationRange", types={"Tinput": Q32}, gradient=False)
def requantization_range(c):
    for low, high in RANGES:
        yield Call(sums_of(c, (3, 5)), F32(low * 64), F32(high * 64))
    yield Call(ends_of("qint32"), F32(-10), F32(20))
    yield Call(sums_of(c, (0,)), F32(-3), F32(3))
    yield Call(sums_of(c, (2,)), np.array([], F32), F32(3))


@cases("Requantize", types={"Tinput": Q32, "out_type": ["quint8", "qint8"], "*": ["all"]}, gradient=False)
def requantize(c):
    for low, high in RANGES:
        yield Call(sums_of(c, (3, 5), 2 ** 30), F32(low * 64), F32(high * 64), F32(-40), F32(33))
    yield Call(sums_of(c, (0, 2)), F32(-3), F32(3), F32(0), F32(1))
    yield Call(sums_of(c, ()), F32(-3), F32(3), F32(-1), F32(0.0))
    yield Call(sums_of(c, (2,)), F32(-3), F32(3), F32(1), F32(2))
    yield Call(sums_of(c, (2,)), F32(-3), F32(3), F32(-2), F32(-1))
    yield Call(sums_of(c, (2,)), F32(-3), np.array([3, 4], F32), F32(-2), F32(1))


@cases("RequantizationRangePerChannel", types={"T": Q32}, gradient=False)
def channel_range(c):
    yield Call(sums_of(c, (1, 2, 3, 2)), np.array([-3, -1], F32), np.array([2, 5], F32), clip_value_max=1e6)
    yield Call(sums_of(c, (2, 2, 2, 3), 2 ** 31 - 1), np.array([-3, -1, -2], F32), np.array([2, 5, 1], F32), clip_value_max=0.5)
    yield Call(np.abs(c.rng.integers(0, 99999, (1, 2, 2, 1))).astype(np.int32).astype(c.T), np.array([-3], F32), np.array([2], F32), clip_value_max=6.0)
    yield Call(sums_of(c, (1, 2, 3, 2)), np.array([-3, -1, 2], F32), np.array([2, 5], F32), clip_value_max=1e6)
    yield Call(sums_of(c, (2, 3, 2)), np.array([-3, -1], F32), np.array([2, 5], F32), clip_value_max=1e6)
    yield Call(sums_of(c, (1, 2, 3, 0)), np.array([], F32), np.array([], F32), clip_value_max=1e6)


@cases("RequantizePerChannel", types={"T": Q32, "out_type": ["quint8", "qint8"], "*": ["all"]}, gradient=False)
def requantize_channels(c):
    yield Call(sums_of(c, (1, 2, 3, 2)), np.array([-3, -1], F32), np.array([2, 5], F32), F32(-0.02), F32(0.015))
    yield Call(sums_of(c, (2, 3, 3, 3), 2 ** 30), np.array([-3, -1, -2], F32), np.array([2, 5, 1], F32), F32(-1), F32(2))
    yield Call(sums_of(c, (1, 2, 3, 2)), np.array([-3, -1], F32), np.array([2], F32), F32(-1), F32(2))


@cases("QuantizedRelu QuantizedRelu6", types={"Tinput": ["quint8", "qint32"], "out_type": ["quint8", "qint32"]}, gradient=False)
def quantized_relu(c):
    for low, high in RANGES + [(-9.0, 9.0)]:
        yield Call(bytes_of(c, (3, 7), c.name), F32(low), F32(high))
    yield Call(ends_of(c.name), F32(-7), F32(8))
    yield Call(bytes_of(c, (), c.name), F32(-7), F32(8))
    yield Call(bytes_of(c, (0, 2), c.name), np.array([[-7]], F32), F32(8))
    yield Call(bytes_of(c, (2,), c.name), np.array([-7, 2], F32), F32(8))


@cases("QuantizedBiasAdd", types={"T1": ["quint8", "qint8"], "T2": ["quint8", "qint8"], "out_type": Q32}, gradient=False)
def quantized_bias_add(c):
    for low, high in RANGES:
        yield Call(bytes_of(c, (2, 3, 4), c.name), bytes_of(c, (4,), c.name), F32(low), F32(high), F32(-2), F32(3.3))
    yield Call(bytes_of(c, (3, 4), c.name), bytes_of(c, (4,), c.name), F32(0), F32(9), F32(-200), F32(3.3))
    yield Call(bytes_of(c, (4,), c.name), bytes_of(c, (4,), c.name), F32(0), F32(9), F32(-200), F32(3.3))
    yield Call(bytes_of(c, (3, 4), c.name), bytes_of(c, (3,), c.name), F32(0), F32(9), F32(-200), F32(3.3))
    yield Call(bytes_of(c, (3, 4), c.name), bytes_of(c, (1, 4), c.name), F32(0), F32(9), F32(-200), F32(3.3))


@cases("QuantizedAdd QuantizedMul", types={"T1": QU8, "T2": QU8, "Toutput": Q32}, gradient=False)
def quantized_arithmetic(c):
    for low, high in RANGES:
        yield Call(bytes_of(c, (3, 4)), bytes_of(c, (3, 4)), F32(low), F32(high), F32(-2), F32(3.3))
    for a, b in (((3, 4), (4,)), ((4,), (3, 4)), ((), (5,)), ((5,), ()), ((2, 3), (1, 1)), ((), ()), ((2, 3, 4), (3, 4)), ((1, 2, 4), (4,)), ((0, 3), (0, 3)), ((2, 1), (2, 3))):
        yield Call(bytes_of(c, a), bytes_of(c, b), F32(-3.2), F32(1.7), F32(-0.4), F32(12.5))
    for a, b in (((3, 4), (3,)), ((2, 3, 4), (2, 1, 4)), ((0, 3), (3,))):
        yield Call(bytes_of(c, a), bytes_of(c, b), F32(-3.2), F32(1.7), F32(-0.4), F32(12.5))
    yield Call(bytes_of(c, (2,)), bytes_of(c, (2,)), F32(1), F32(1), F32(0), F32(1))
    yield Call(bytes_of(c, (2,)), bytes_of(c, (2,)), F32(0), F32(1), F32(1), F32(0))
    yield Call(bytes_of(c, (2,)), bytes_of(c, (2,)), np.array([0], F32), F32(1), F32(0), F32(1))


@cases("QuantizedBatchNormWithGlobalNormalization", types={"Tinput": QU8, "out_type": Q32}, gradient=False)
def quantized_batch_norm(c):
    for scaled in (True, False):
        for low, high in RANGES:
            yield Call(bytes_of(c, (1, 3, 2, 4)), F32(low), F32(high), bytes_of(c, (4,)), F32(-3), F32(5), bytes_of(c, (4,)), F32(0.1), F32(2),
                       bytes_of(c, (4,)), F32(-1), F32(1), bytes_of(c, (4,)), F32(0), F32(2), variance_epsilon=0.001, scale_after_normalization=scaled)
    yield Call(bytes_of(c, (3, 2, 4)), F32(0), F32(1), bytes_of(c, (4,)), F32(-3), F32(5), bytes_of(c, (4,)), F32(0.1), F32(2),
               bytes_of(c, (4,)), F32(-1), F32(1), bytes_of(c, (4,)), F32(0), F32(2), variance_epsilon=0.001, scale_after_normalization=False)
    yield Call(bytes_of(c, (1, 3, 2, 4)), F32(0), F32(1), bytes_of(c, (1, 4)), F32(-3), F32(5), bytes_of(c, (4,)), F32(0.1), F32(2),
               bytes_of(c, (4,)), F32(-1), F32(1), bytes_of(c, (4,)), F32(0), F32(2), variance_epsilon=0.001, scale_after_normalization=False)


@cases("QuantizedInstanceNorm", types={"T": QU8}, gradient=False)
def quantized_instance_norm(c):
    for shape in ((1, 4, 5, 2), (2, 3, 3, 4), (1, 1, 1, 3)):
        yield Call(bytes_of(c, shape), F32(-2), F32(3.5))
        yield Call(bytes_of(c, shape), F32(-2), F32(3.5), output_range_given=True, given_y_min=-1.5, given_y_max=2.0, variance_epsilon=0.01)
    yield Call(bytes_of(c, (1, 2, 2, 2)), F32(3), F32(2))
    yield Call(bytes_of(c, (1, 2, 2, 2)), np.array([1], F32), F32(2))
    yield Call(bytes_of(c, (1, 2, 2, 2)), F32(1), F32(2), output_range_given=True, given_y_min=2.0, given_y_max=1.0)


@cases("QuantizedReshape", types={"T": ["quint8", "qint32"], "Tshape": ["int32", "int64"]}, gradient=False)
def quantized_reshape(c):
    S = c.type("Tshape")
    yield Call(bytes_of(c, (2, 6), c.name), np.array([3, -1], S), F32(-1), F32(2))
    yield Call(bytes_of(c, (1,), c.name), np.array([], S), np.array([-1], F32), F32(2))
    yield Call(bytes_of(c, (2, 6), c.name), np.array([3, 5], S), F32(-1), F32(2))
    yield Call(bytes_of(c, (2, 6), c.name), np.array([12], S), np.array([-1, 2], F32), F32(2))


@cases("QuantizedConcat", types={"T": ["quint8", "qint32"]}, gradient=False)
def quantized_concat(c):
    for axis in (0, 1, 2, -1):
        yield Call(np.int32(axis), [bytes_of(c, (2, 3), c.name), bytes_of(c, (2, 3), c.name)], [F32(-1), F32(-2)], [F32(3), F32(1)])
    yield Call(np.int32(0), [bytes_of(c, (2, 3), c.name), bytes_of(c, (1, 3), c.name), bytes_of(c, (0, 3), c.name)], [F32(0.5)] * 3, [F32(3)] * 3)
    yield Call(np.int32(0), [bytes_of(c, (2, 3), c.name), bytes_of(c, (1, 3), c.name)], [F32(-5), F32(-4)], [F32(-1), F32(-2)])
    yield Call(np.int32(1), [bytes_of(c, (2, 3), c.name), bytes_of(c, (1, 3), c.name)], [F32(0.5)] * 2, [F32(3)] * 2)
    yield Call(np.int32(1), [bytes_of(c, (2, 3), c.name), bytes_of(c, (6,), c.name)], [F32(0.5)] * 2, [F32(3)] * 2)


@cases("QuantizedResizeBilinear", types={"T": ["quint8", "qint32", "float32"]}, gradient=False)
def quantized_resize(c):
    for align, half in ((False, False), (True, False), (False, True)):
        for size in ((5, 7), (2, 2), (3, 4), (1, 1), (10, 3)):
            image = c.values((2, 3, 4, 3)) if c.name == "float32" else bytes_of(c, (2, 3, 4, 3), c.name)
            yield Call(image, np.array(size, np.int32), F32(-1), F32(2.5), align_corners=align, half_pixel_centers=half)
    image = c.values((3, 4, 3)) if c.name == "float32" else bytes_of(c, (3, 4, 3), c.name)
    yield Call(image, np.array([2, 3], np.int32), F32(-1), F32(2.5))
    image = c.values((1, 3, 4, 3)) if c.name == "float32" else bytes_of(c, (1, 3, 4, 3), c.name)
    yield Call(image, np.array([0, 3], np.int32), F32(-1), F32(2.5))
    yield Call(image, np.array([2, 3, 1], np.int32), F32(-1), F32(2.5))
    yield Call(image, np.array([2, 3], np.int32), np.array([-1], F32), F32(2.5))


@cases("QuantizedMatMul", types={"T1": QU8, "T2": QU8, "Toutput": Q32, "Tactivation": QU8}, gradient=False)
def quantized_matmul(c):
    for low, high in RANGES:
        yield Call(bytes_of(c, (3, 5)), bytes_of(c, (5, 4)), F32(low), F32(high), F32(-2), F32(3.3))
    for a, b in ((False, True), (True, False), (True, True)):
        yield Call(bytes_of(c, (70, 33) if a else (33, 70)), bytes_of(c, (40, 70) if b else (70, 40)), F32(-3), F32(1), F32(0.5), F32(3.3), transpose_a=a, transpose_b=b)
    yield Call(bytes_of(c, (3, 5)), bytes_of(c, (4, 5)), F32(0), F32(1), F32(-2), F32(3.3))
    yield Call(bytes_of(c, (3, 5, 1)), bytes_of(c, (5, 4)), F32(0), F32(1), F32(-2), F32(3.3))
    yield Call(bytes_of(c, (3, 5)), bytes_of(c, (5, 4)), F32(1), F32(1), F32(-2), F32(3.3))
    yield Call(bytes_of(c, (3, 5)), bytes_of(c, (5, 4)), F32(0), F32(1), F32(4), F32(3.3))
    yield Call(bytes_of(c, (3, 5)), bytes_of(c, (5, 4)), F32(0), F32(1), np.array([0, 1], F32), F32(3.3))


# Whole numbers with a scale and a zero point, for a tensor or for each index of an axis.

LOW8, HIGH8 = -127, 127
I32, LEAST, MOST = np.int32, -2 ** 31, 2 ** 31 - 1


def scales_of(c, n):
    return c.values((n,), 0.05, 1.5, F32) + F32(0.01), c.ints((n,), -20, 20)


@cases("UniformQuantize", types={"Tin": ["float32"], "Tout": ["qint8", "quint8", "qint32"], "*": ["all"]}, gradient=False, primary="Tout")
def uniform_quantize(c):
    attrs = dict(quantization_min_val=-100, quantization_max_val=110) if c.name != "quint8" else dict(quantization_min_val=3, quantization_max_val=250)
    for shape in ((2, 3, 4), (), (0, 3)):
        yield Call(c.values(shape, -60, 60, F32), F32(0.37), I32(5), **attrs)
    yield Call(np.array([0.5, -0.5, 1.5, 2.5, 3e38, -3e38, np.inf, -np.inf, np.nan, 2147483647, -0.0], F32), F32(1), I32(0), **attrs)
    yield Call(c.values((4,), -60, 60, F32), F32(0), I32(0), **attrs)
    yield Call(c.values((4,), -60, 60, F32), F32(-2), I32(0), **attrs)
    for axis in (0, 1, 2):
        yield Call(c.values((2, 3, 4), -60, 60, F32), *scales_of(c, 2 + axis), quantization_axis=axis, **attrs)
    yield Call(c.values((2, 3), -60, 60, F32), *scales_of(c, 2), quantization_axis=1, **attrs)
    yield Call(c.values((2, 3), -60, 60, F32), *scales_of(c, 2), quantization_axis=2, **attrs)
    yield Call(c.values((2, 3), -60, 60, F32), *scales_of(c, 3), **attrs)
    yield Call(c.values((2, 3), -60, 60, F32), F32(1), np.zeros((3,), I32), **attrs)
    yield Call(c.values((2, 3), -60, 60, F32), F32(1), I32(0), quantization_axis=-2, **attrs)


@cases("UniformDequantize", types={"Tin": ["qint8", "quint8", "qint32"], "Tout": ["float32"], "*": ["all"]}, gradient=False, primary="Tin")
def uniform_dequantize(c):
    attrs = dict(quantization_min_val=-128, quantization_max_val=127)
    for shape in ((2, 3, 4), (), (0, 3)):
        yield Call(bytes_of(c, shape, c.name), F32(0.37), I32(5), **attrs)
    yield Call(ends_of("quint8") if c.name == "quint8" else bytes_of(c, (5,), c.name), F32(2.5), I32(1), **attrs)
    for axis in (0, 1, 2):
        yield Call(bytes_of(c, (2, 3, 4), c.name), *scales_of(c, 2 + axis), quantization_axis=axis, **attrs)
    yield Call(bytes_of(c, (2, 3), c.name), F32(-1), I32(0), **attrs)
    yield Call(bytes_of(c, (2, 3), c.name), *scales_of(c, 2), quantization_axis=1, **attrs)
    yield Call(bytes_of(c, (2, 3), c.name), F32(1), I32(0), quantization_axis=-2, **attrs)


@cases("UniformRequantize", types={"Tin": ["qint8", "qint32"], "Tout": ["qint8"], "*": ["all"]}, gradient=False, primary="Tin")
def uniform_requantize(c):
    attrs = dict(input_quantization_min_val=LEAST, input_quantization_max_val=MOST, output_quantization_min_val=LOW8, output_quantization_max_val=HIGH8)
    of = lambda shape: bytes_of(c, shape, c.name) if c.name == "qint8" else sums_of(c, shape, 5000)
    yield Call(of((2, 3, 4)), F32(0.02), I32(3), F32(0.3), I32(-5), **attrs)
    yield Call(of((2, 3, 4)), F32(0.5), I32(3), F32(0.003), I32(-5), **attrs)
    yield Call(of(()), F32(0.02), I32(3), F32(0.3), I32(-5), **attrs)
    yield Call(of((0, 2)), F32(0.02), I32(3), F32(0.3), I32(-5), **attrs)
    yield Call(ends_of("qint32") if c.name == "qint32" else of((9,)), F32(1e-9), I32(-7), F32(1), I32(2), **attrs)
    yield Call(ends_of("qint32") if c.name == "qint32" else of((9,)), F32(1e20), I32(-7), F32(1e-10), I32(2), **attrs)
    for axis in (0, 1, 2):
        n = axis + 2
        yield Call(of((2, 3, 4)), *scales_of(c, n), F32(0.3), I32(-5), input_quantization_axis=axis, **attrs)
        yield Call(of((2, 3, 4)), F32(0.3), I32(-5), *scales_of(c, n), output_quantization_axis=axis, **attrs)
        yield Call(of((2, 3, 4)), *scales_of(c, n), *scales_of(c, n), input_quantization_axis=axis, output_quantization_axis=axis, **attrs)
    yield Call(of((2, 3)), F32(0), I32(3), F32(0.3), I32(-5), **attrs)
    yield Call(of((2, 3)), F32(1), I32(3), F32(-0.3), I32(-5), **attrs)
    yield Call(of((2, 3)), *scales_of(c, 2), F32(0.3), I32(-5), **attrs)
    yield Call(of((2, 3)), *scales_of(c, 2), *scales_of(c, 3), input_quantization_axis=0, output_quantization_axis=1, **attrs)
    yield Call(of((2, 3)), F32(1), I32(3), F32(0.3), I32(-5), input_quantization_axis=-2, **attrs)
    yield Call(of((2, 3)), F32(1), I32(3), F32(0.3), I32(-5), output_quantization_axis=-2, **attrs)


def both(*names):
    return {f"{n}_quantization_{end}_val": value for n in names for end, value in (("min", LEAST), ("max", MOST))}


@cases("UniformQuantizedAdd", types={"T": Q32}, gradient=False)
def uniform_add(c):
    attrs = both("lhs", "rhs", "output")
    of = lambda shape: sums_of(c, shape, 5000)
    for a, b in (((2, 3), (2, 3)), ((2, 3), (3,)), ((3,), (2, 3)), ((), (2, 3)), ((2, 3), ()), ((2, 1, 4), (3, 1)), ((0, 3), (3,)), ((), ())):
        yield Call(of(a), of(b), F32(0.5), I32(3), F32(0.25), I32(-4), F32(0.75), I32(7), **attrs)
    yield Call(of((2, 3)), of((2, 3)), F32(0.5), I32(3), F32(0.25), I32(-4), F32(0.75), I32(7), **{**attrs, "output_quantization_min_val": -500, "output_quantization_max_val": 900})
    for axis in (0, 1):
        one, two, three = (scales_of(c, axis + 2) for _ in range(3))
        yield Call(of((2, 3)), of((2, 3)), *one, *two, *three, lhs_quantization_axis=axis, rhs_quantization_axis=axis, output_quantization_axis=axis, **attrs)
        yield Call(of((2, 3)), of((2, 3)), *one, F32(0.25), I32(-4), *three, lhs_quantization_axis=axis, output_quantization_axis=axis, **attrs)
        yield Call(of((2, 3)), of((2, 3)), *one, F32(0.25), I32(-4), F32(0.75), I32(7), lhs_quantization_axis=axis, **attrs)
    one, two, three = (scales_of(c, 3) for _ in range(3))
    yield Call(of((2, 3)), of((3,)), *one, *two, *three, lhs_quantization_axis=1, rhs_quantization_axis=0, output_quantization_axis=1, **attrs)
    yield Call(of((2, 3)), of((2, 4)), F32(0.5), I32(3), F32(0.25), I32(-4), F32(0.75), I32(7), **attrs)
    yield Call(of((2, 3)), of((2, 3)), F32(-0.5), I32(3), F32(0.25), I32(-4), F32(0.75), I32(7), **attrs)
    yield Call(of((2, 3)), of((2, 3)), F32(0.5), np.zeros((2,), I32), F32(0.25), I32(-4), F32(0.75), I32(7), **attrs)
    yield Call(of((3, 3)), of((3, 3)), *one, F32(0.25), I32(-4), *three, lhs_quantization_axis=0, output_quantization_axis=1, **attrs)
    yield Call(of((3, 3)), of((3, 3)), *one, *two, *three, lhs_quantization_axis=1, rhs_quantization_axis=0, output_quantization_axis=1, **attrs)
    yield Call(of((2, 3)), of((2, 3)), F32(0.5), I32(3), F32(0.25), I32(-4), F32(0.75), I32(7), lhs_quantization_axis=-2, **attrs)


@cases("UniformQuantizedClipByValue", types={"T": Q32}, gradient=False)
def uniform_clip(c):
    attrs = dict(quantization_min_val=LEAST, quantization_max_val=MOST)
    of = lambda shape: sums_of(c, shape, 5000)
    q = lambda v: np.array(v, I32).astype(c.T)
    yield Call(of((2, 3, 4)), q(-700), q(900), F32(0.5), I32(3), **attrs)
    yield Call(of(()), q(-700), q(900), F32(0.5), I32(3), **attrs)
    yield Call(of((2, 3, 4)), q([-700, 5, -9999]), q([900, -5, 9999]), *scales_of(c, 3), quantization_axis=1, **attrs)
    yield Call(of((0, 3)), q([-700, 5, -9999]), q([900, -5, 9999]), *scales_of(c, 3), quantization_axis=1, **attrs)
    yield Call(of((2, 3)), q([-700]), q(900), F32(0.5), I32(3), **attrs)
    yield Call(of((2, 3)), q(-700), q([900]), F32(0.5), I32(3), **attrs)
    yield Call(of((2, 3)), q(-700), q(900), *scales_of(c, 3), **attrs)


@cases("UniformQuantizedDot", types={"Tin": Q8, "Tout": Q32}, gradient=False)
def uniform_dot(c):
    attrs = both("lhs", "rhs", "output")
    of = lambda shape: bytes_of(c, shape, "qint8")
    rest = (F32(0.5), I32(3), F32(0.25), I32(-4), F32(0.75), I32(7))
    yield Call(of((3, 5)), of((5, 4)), *rest, **attrs)
    yield Call(of((3, 5)), of((5, 4)), *rest, **{**attrs, "output_quantization_min_val": -500, "output_quantization_max_val": 900})
    yield Call(of((3, 0)), of((0, 4)), *rest, **attrs)
    yield Call(of((0, 5)), of((5, 4)), *rest, **attrs)
    yield Call(of((3, 5)), of((5, 4)), F32(0.5), I32(3), *scales_of(c, 4), F32(0.75), I32(7), rhs_quantization_axis=1, **attrs)
    yield Call(of((3, 5)), of((5, 4)), F32(0.5), I32(3), *scales_of(c, 4), *scales_of(c, 4), rhs_quantization_axis=1, output_quantization_axis=1, **attrs)
    yield Call(of((3, 5)), of((5, 4)), F32(0.5), I32(3), F32(0.25), I32(-4), *scales_of(c, 4), output_quantization_axis=1, **attrs)
    yield Call(of((3, 5)), of((6, 4)), *rest, **attrs)
    yield Call(of((3, 5, 1)), of((5, 4)), *rest, **attrs)
    yield Call(of((3, 5)), of((5,)), *rest, **attrs)
    yield Call(of((3, 5)), of((5, 4)), F32(0), *rest[1:], **attrs)
    yield Call(of((3, 5)), of((5, 4)), *rest[:2], F32(-1), *rest[3:], **attrs)
    yield Call(of((3, 5)), of((5, 4)), *rest[:4], F32(-1), I32(0), **attrs)
    yield Call(of((3, 5)), of((5, 4)), np.array([1], F32), np.array([0], I32), *rest[2:], **attrs)
    yield Call(of((3, 5)), of((5, 4)), F32(0.5), I32(3), *scales_of(c, 3), F32(0.75), I32(7), rhs_quantization_axis=1, **attrs)
    for side in ("lhs", "rhs", "output"):
        yield Call(of((3, 5)), of((5, 4)), *rest, **{f"{side}_quantization_axis": 0}, **attrs)


@cases("UniformQuantizedDotHybrid", types={"Tlhs": ["float32"], "Trhs": Q8, "Tout": ["float32"]}, gradient=False)
def uniform_dot_hybrid(c):
    attrs = both("rhs")
    of = lambda shape: bytes_of(c, shape, "qint8")
    floats = lambda shape, low=-9, high=9: c.values(shape, low, high, F32)
    for low, high in ((-9, 9), (1, 9), (-9, -1)):
        yield Call(floats((3, 5), low, high), of((5, 4)), F32(0.25), I32(-4), **attrs)
    yield Call(np.zeros((3, 5), F32), of((5, 4)), F32(0.25), I32(-4), **attrs)
    yield Call(floats((3, 0)), of((0, 4)), F32(0.25), I32(-4), **attrs)
    yield Call(floats((3, 5)), of((5, 4)), *scales_of(c, 4), rhs_quantization_axis=1, **attrs)
    yield Call(floats((3, 5)), of((5, 4)), *scales_of(c, 3), rhs_quantization_axis=1, **attrs)
    yield Call(floats((3, 5)), of((6, 4)), F32(0.25), I32(-4), **attrs)
    yield Call(floats((3,)), of((6, 4)), F32(0.25), I32(-4), **attrs)
    yield Call(floats((3, 5)), of((5, 4)), F32(-0.25), I32(-4), **attrs)
    yield Call(floats((3, 5)), of((5, 4)), F32(0.25), I32(-4), rhs_quantization_axis=0, **attrs)


CHANNELS_LAST = b"\x08\x00\x10\x03\x1a\x02\x01\x02\x20\x02\x28\x03\x32\x02\x00\x01\x38\x00\x40\x03\x4a\x02\x01\x02"  # images and results NHWC, filters HWIO


def windows():
    """Shapes of images and filters, and the attributes of the window."""
    yield (2, 3, 6, 5), (4, 3, 2, 3), dict(padding="VALID")
    yield (2, 3, 6, 5), (4, 3, 2, 3), dict(padding="SAME", window_strides=[2, 1])
    yield (2, 3, 6, 5), (4, 3, 2, 3), dict(padding="EXPLICIT", explicit_padding=[1, 2, 0, 3], rhs_dilation=[2, 1], lhs_dilation=[1, 2])
    yield (2, 4, 6, 5), (6, 2, 2, 3), dict(padding="SAME", feature_group_count=2)
    yield (4, 3, 6, 5), (6, 3, 2, 3), dict(padding="VALID", batch_group_count=2)
    yield (2, 6, 5, 3), (2, 3, 3, 4), dict(padding="SAME", dimension_numbers=CHANNELS_LAST)
    yield (2, 3, 7), (4, 3, 3), dict(padding="SAME")
    yield (1, 2, 3, 4, 3), (3, 2, 2, 2, 1), dict(padding="VALID", window_strides=[1, 2, 1])
    yield (0, 3, 6, 5), (4, 3, 2, 3), dict(padding="VALID")


def wrong_windows():
    yield (2, 3, 6, 5), (4, 3, 2), dict(padding="VALID")
    yield (2, 3), (4, 3), dict(padding="VALID")
    yield (2, 3, 6, 5), (4, 2, 2, 3), dict(padding="VALID")
    yield (2, 4, 6, 5), (4, 2, 2, 3), dict(padding="VALID")
    yield (2, 4, 6, 5), (5, 2, 2, 3), dict(padding="VALID", feature_group_count=2)
    yield (2, 3, 6, 5), (4, 3, 2, 3), dict(padding="VALID", feature_group_count=2)
    yield (2, 3, 6, 5), (4, 3, 2, 3), dict(padding="VALID", feature_group_count=0)
    yield (2, 3, 6, 5), (4, 3, 2, 3), dict(padding="VALID", batch_group_count=0)
    yield (3, 3, 6, 5), (4, 3, 2, 3), dict(padding="VALID", batch_group_count=2)
    yield (2, 3, 6, 5), (5, 3, 2, 3), dict(padding="VALID", batch_group_count=2)
    yield (2, 3, 6, 5), (4, 3, 2, 3), dict(padding="VALID", window_strides=[1])
    yield (2, 3, 6, 5), (4, 3, 2, 3), dict(padding="VALID", window_strides=[1, 0])
    yield (2, 3, 6, 5), (4, 3, 2, 3), dict(padding="VALID", lhs_dilation=[1])
    yield (2, 3, 6, 5), (4, 3, 2, 3), dict(padding="VALID", rhs_dilation=[1, -1])
    yield (2, 3, 6, 5), (4, 3, 2, 3), dict(padding="NONE")
    yield (2, 3, 6, 5), (4, 3, 2, 3), dict(padding="VALID", explicit_padding=[1, 2, 0, 3])
    yield (2, 3, 6, 5), (4, 3, 2, 3), dict(padding="EXPLICIT", explicit_padding=[1, 2])
    yield (2, 3, 6, 5), (4, 3, 2, 3), dict(padding="EXPLICIT", explicit_padding=[1, 2, -1, 0])
    yield (2, 3, 7), (4, 3, 3), dict(padding="VALID", dimension_numbers=CHANNELS_LAST)
    yield (2, 3, 6, 5), (4, 3, 2, 3), dict(padding="VALID", dimension_numbers=b"\x08\x09\x1a\x02\x01\x02")


@cases("UniformQuantizedConvolution", types={"Tin": Q8, "Tout": Q32}, gradient=False)
def uniform_conv(c):
    of = lambda shape: bytes_of(c, shape, "qint8")
    rest = (F32(0.5), I32(3), F32(0.25), I32(-4), F32(0.75), I32(7))
    attrs = both("lhs", "rhs", "output")
    for a, b, window in windows():
        yield Call(of(a), of(b), *rest, **window, **attrs)
        last = "dimension_numbers" in window
        n, rhs_axis, out_axis = b[3 if last else 0], 3 if last else 0, 3 if last else 1
        yield Call(of(a), of(b), *rest[:2], *scales_of(c, n), *rest[4:], rhs_quantization_axis=rhs_axis, **window, **attrs)
        yield Call(of(a), of(b), *rest[:2], *scales_of(c, n), *scales_of(c, n), rhs_quantization_axis=rhs_axis, output_quantization_axis=out_axis, **window, **attrs)
    for a, b, window in wrong_windows():
        yield Call(of(a), of(b), *rest, **window, **attrs)
    a, b = of((2, 3, 6, 5)), of((4, 3, 2, 3))
    yield Call(a, b, F32(0), *rest[1:], padding="VALID", **attrs)
    yield Call(a, b, *rest[:2], F32(0), *rest[3:], padding="VALID", **attrs)
    yield Call(a, b, *rest[:4], F32(0), I32(0), padding="VALID", **attrs)
    yield Call(a, b, *scales_of(c, 2), *rest[2:], padding="VALID", **attrs)
    yield Call(a, b, *rest[:2], *scales_of(c, 3), *rest[4:], padding="VALID", rhs_quantization_axis=1, **attrs)
    yield Call(a, b, *rest[:2], *scales_of(c, 3), *rest[4:], padding="VALID", rhs_quantization_axis=0, **attrs)
    yield Call(a, b, *rest[:4], *scales_of(c, 4), padding="VALID", output_quantization_axis=1, **attrs)
    yield Call(a, b, *rest[:4], *scales_of(c, 4), padding="VALID", output_quantization_axis=0, **attrs)
    yield Call(a, b, *rest, padding="VALID", lhs_quantization_axis=0, **attrs)


@cases("UniformQuantizedConvolutionHybrid", types={"Tlhs": ["float32"], "Trhs": Q8, "Tout": ["float32"]}, gradient=False)
def uniform_conv_hybrid(c):
    of = lambda shape: bytes_of(c, shape, "qint8")
    attrs = both("rhs")
    for a, b, window in windows():
        yield Call(c.values(a, -9, 9, F32), of(b), F32(0.25), I32(-4), **window, **attrs)
        axis = 3 if "dimension_numbers" in window else 0
        yield Call(c.values(a, -9, 9, F32), of(b), *scales_of(c, b[axis]), rhs_quantization_axis=axis, **window, **attrs)
    for a, b, window in wrong_windows():
        yield Call(c.values(a, -9, 9, F32), of(b), F32(0.25), I32(-4), **window, **attrs)
    yield Call(c.values((2, 3, 6, 5), -9, 9, F32), of((4, 3, 2, 3)), F32(0), I32(-4), padding="VALID", **attrs)
    yield Call(c.values((2, 3, 6, 5), -9, 9, F32), of((4, 3, 2, 3)), *scales_of(c, 3), padding="VALID", rhs_quantization_axis=1, **attrs)
    yield Call(np.zeros((2, 3, 6, 5), F32), of((4, 3, 2, 3)), F32(0.25), I32(-4), padding="VALID", **attrs)


def misfits(P_):
    """Ranges and numbers of bits that do not fit: a name, the op, its arguments; P_ makes values that are fed."""
    yield "f12", "FakeQuantWithMinMaxVars", dict(inputs=P_([np.nan, np.inf, -np.inf, 5]), min=P_(-1.), max=P_(1.))
    yield "f13", "FakeQuantWithMinMaxVarsPerChannel", dict(inputs=P_([[1., 2]]), min=P_(0.), max=P_([1., 2]))
    yield "f15", "FakeQuantWithMinMaxVarsGradient", dict(gradients=P_([1., 2]), inputs=P_([1., 2]), min=P_([0.]), max=P_(1.))
    yield "f16", "FakeQuantWithMinMaxVarsGradient", dict(gradients=P_([1., 2]), inputs=P_([1., 2]), min=P_(3.), max=P_(1.))
    yield "q8", "QuantizeAndDequantizeV4", dict(input=P_([1., 2]), input_min=P_(0.), input_max=P_(1.), num_bits=64)
    yield "q9", "QuantizeAndDequantizeV3", dict(input=P_([1., 2]), input_min=P_(0.), input_max=P_(1.), num_bits=P_(64, np.int32))
    yield "q10", "QuantizeAndDequantizeV3", dict(input=P_([1., 2]), input_min=P_(0.), input_max=P_(1.), num_bits=P_(64, np.int32), signed_input=False)
    yield "q11", "QuantizeAndDequantizeV4", dict(input=P_([1., 2]), input_min=P_([0.]), input_max=P_(1.), range_given=True)
    yield "q12", "QuantizeAndDequantizeV4", dict(input=P_([[1., 2]]), input_min=P_([0., 1, 2]), input_max=P_([1., 2, 3]), axis=1, range_given=True)
    yield "q13", "QuantizeAndDequantizeV4Grad", dict(gradients=P_([[1., 2]]), input=P_([[1., 2]]), input_min=P_(0.), input_max=P_(1.), axis=1)
    yield "q14", "QuantizeAndDequantizeV4", dict(input=P_([1., 2]), input_min=P_(3.), input_max=P_(1.), range_given=True)
    yield "q17", "QuantizeAndDequantizeV4", dict(input=P_([[1., 2]]), input_min=P_([0., 1]), input_max=P_([1., 2]), axis=1, range_given=True)
    yield "q1", "QuantizeAndDequantizeV2", dict(input=P_([1., 2]), input_min=P_(2.), input_max=P_(1.), range_given=True)
    yield "q2", "QuantizeAndDequantizeV2", dict(input=P_([1., 2]), input_min=P_([0.]), input_max=P_([1.]), range_given=True)
    yield "q3", "QuantizeAndDequantizeV2", dict(input=P_([[1., 2]]), input_min=P_([0.]), input_max=P_([1.]), range_given=True, axis=1)
    yield "q4", "QuantizeAndDequantizeV2", dict(input=P_([[1., 2]]), input_min=P_([0., 1]), input_max=P_([1., 2]), range_given=True, axis=1)
    yield "q5", "QuantizeAndDequantizeV3", dict(input=P_([1., 2]), input_min=P_(0.), input_max=P_(1.), num_bits=P_(1, np.int32))
    yield "q7", "QuantizeAndDequantizeV3", dict(input=P_([1., 2]), input_min=P_(0.), input_max=P_(1.), num_bits=P_([8], np.int32))
    yield "q7b", "QuantizeAndDequantizeV4Grad", dict(gradients=P_([1., 2]), input=P_([1., 2]), input_min=P_([0.]), input_max=P_([1.]))
    yield "q7c", "QuantizeAndDequantizeV4Grad", dict(gradients=P_([1., 2]), input=P_([1., 2, 3]), input_min=P_(0.), input_max=P_(1.))
    yield "q7d", "QuantizeAndDequantizeV4", dict(input=P_([1., 2]), input_min=P_([0., 1]), input_max=P_([1., 2]))
    yield "q7e", "QuantizeAndDequantizeV4", dict(input=P_([[1., 2]]), input_min=P_([0., 1, 2]), input_max=P_([1., 2, 3]), axis=1)
    yield "q7f", "QuantizeAndDequantizeV4Grad", dict(gradients=P_([[1., 2]]), input=P_([[1., 2]]), input_min=P_([0., 1, 2]), input_max=P_([1., 2, 2]), axis=1)
    yield "q7g", "QuantizeAndDequantizeV2", dict(input=P_([1., 2]), input_min=P_([]), input_max=P_(1.), range_given=True)
    yield "q7h", "QuantizeAndDequantizeV2", dict(input=P_([1., 2]), input_min=P_(0.), input_max=P_(1.), num_bits=64)
    yield "f1", "FakeQuantWithMinMaxVars", dict(inputs=P_([1., 2]), min=P_([0.]), max=P_(1.))
    yield "f2", "FakeQuantWithMinMaxVars", dict(inputs=P_([1., 2]), min=P_(3.), max=P_(1.))
    yield "f3", "FakeQuantWithMinMaxVarsPerChannel", dict(inputs=P_([[1., 2]]), min=P_([0.]), max=P_([1.]))
    yield "f4", "FakeQuantWithMinMaxVarsPerChannel", dict(inputs=P_([[1., 2]]), min=P_([0., 1]), max=P_([1.]))
    yield "f5", "FakeQuantWithMinMaxVarsGradient", dict(gradients=P_([1.]), inputs=P_([1., 2]), min=P_(0.), max=P_(1.))
    yield "f6", "FakeQuantWithMinMaxVarsPerChannelGradient", dict(gradients=P_([[1.]]), inputs=P_([[1., 2]]), min=P_([0., 1]), max=P_([1., 2]))
    yield "f7", "FakeQuantWithMinMaxArgs", dict(inputs=P_([1.]), num_bits=1)
    yield "f8", "FakeQuantWithMinMaxArgs", dict(inputs=P_([1.]), min=3.0, max=1.0)
    yield "f9", "FakeQuantWithMinMaxVarsPerChannelGradient", dict(gradients=P_(np.ones((2, 2))), inputs=P_(np.ones((2, 2))), min=P_([0.]), max=P_([1., 2]))
    yield "f10", "FakeQuantWithMinMaxArgsGradient", dict(gradients=P_([1.]), inputs=P_([1., 2]))
    yield "f11", "FakeQuantWithMinMaxVars", dict(inputs=P_([1., 2]), min=P_(0.), max=P_(1.), num_bits=17)
    yield "qv1", "QuantizeV2", dict(input=P_([1., 2]), min_range=P_(3.), max_range=P_(1.), T=tf.quint8)
    yield "qv2", "QuantizeV2", dict(input=P_([1., 2]), min_range=P_([3.]), max_range=P_(1.), T=tf.quint8)
    yield "qv3", "QuantizeV2", dict(input=P_([[1., 2]]), min_range=P_([0.]), max_range=P_([1.]), T=tf.quint8, axis=1)
    yield "qv4", "QuantizeV2", dict(input=P_([[1., 2]]), min_range=P_([0., 1]), max_range=P_([1., 2]), T=tf.quint8, axis=3)
    yield "qv5", "QuantizeV2", dict(input=P_([1., 2]), min_range=P_([]), max_range=P_([]), T=tf.quint8)
    yield "qv6", "QuantizeV2", dict(input=P_([1., 2]), min_range=P_(0.), max_range=P_(1.), T=tf.quint8, mode="MIN_COMBINED", round_mode="HALF_TO_EVEN")


@program("FakeQuantWithMinMaxVars FakeQuantWithMinMaxVarsPerChannel FakeQuantWithMinMaxVarsGradient QuantizeAndDequantizeV4 QuantizeAndDequantizeV3 "
         "QuantizeAndDequantizeV4Grad QuantizeAndDequantizeV2 FakeQuantWithMinMaxVarsPerChannelGradient FakeQuantWithMinMaxArgs "
         "FakeQuantWithMinMaxArgsGradient QuantizeV2")
def quantised_values_that_do_not_fit(p):
    p.run_each(misfits)


@program("Equal NotEqual")
def quantised_values_are_compared(p):
    calls = []
    for plain, held in ((tf.int8, tf.qint8), (tf.uint8, tf.quint8), (tf.int32, tf.qint32)):
        x, y = p.placeholder(plain.name + "_x", plain), p.placeholder(plain.name + "_y", plain)
        a, b = tf.bitcast(x, held), tf.bitcast(y, held)
        calls.append((x, y, [tf.raw_ops.Equal(x=a, y=b), tf.raw_ops.NotEqual(x=a, y=b)]))
    for x, y, fetches in calls:
        for other in ([1, 2, 1], [3], [[1], [2]], [1, 2]):
            p.run(fetches, {x: np.array([[1, 2, 3], [3, 2, 1]], x.dtype.as_numpy_dtype), y: np.array(other, y.dtype.as_numpy_dtype)})
