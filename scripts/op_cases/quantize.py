"""Quantisation, and ops that pretend it."""
import numpy as np
import tensorflow as tf

from .table import Call, cases

F32 = np.float32
QUANTISED = ["qint8", "quint8", "qint16", "quint16", "qint32"]


@cases("QuantizeV2", types={"T": QUANTISED}, gradient=False)
def quantize(c):
    for mode in ("MIN_COMBINED", "SCALED") if c.name == "qint32" else ("MIN_COMBINED", "MIN_FIRST", "SCALED"):  # TensorFlow rounds those to floats
        for rounding in ("HALF_AWAY_FROM_ZERO", "HALF_TO_EVEN"):
            if rounding == "HALF_TO_EVEN" and mode != "SCALED":
                continue
            high = 2 if c.name == "qint32" else 3  # TensorFlow's int32 overflows
            yield Call(c.values((2, 5), -high, high, F32), F32(-2), F32(2.5), mode=mode, round_mode=rounding)
            yield Call(c.values((), 0, 2, F32), F32(0), F32(2.5), mode=mode, round_mode=rounding)
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
