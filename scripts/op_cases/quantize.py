"""Quantisation, and ops that pretend it."""
import numpy as np

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
