"""Ops on bytes that TensorFlow computes by oneDNN, or not at all; record_ops.py switches it on for them."""
import numpy as np

from .quantize import F32, Q8, Q32, QU8, RANGES, bytes_of, sums_of
from .table import Call, cases


@cases("QuantizedConcatV2", types={"T": ["quint8", "qint8"], "Tidx": ["int32"]}, gradient=False)
def quantized_concat_v2(c):
    for axis in (0, 1, -1, 2):
        yield Call([bytes_of(c, (2, 3), c.name), bytes_of(c, (2, 3), c.name)], np.int32(axis), [F32(0), F32(0)], [F32(3), F32(3)], const=(1,))


@cases("QuantizedMaxPool QuantizedAvgPool", types={"T": ["quint8", "qint8"]}, gradient=False)
def quantized_pool(c):
    for padding in ("SAME", "VALID"):
        yield Call(bytes_of(c, (2, 5, 6, 3), c.name), F32(-1), F32(2), ksize=[1, 2, 3, 1], strides=[1, 2, 1, 1], padding=padding)
        yield Call(bytes_of(c, (1, 4, 4, 1), c.name), F32(0), F32(2), ksize=[1, 3, 3, 1], strides=[1, 1, 1, 1], padding=padding)
    yield Call(bytes_of(c, (4, 4, 1), c.name), F32(0), F32(2), ksize=[1, 3, 3, 1], strides=[1, 1, 1, 1], padding="SAME")


FUSED_MATMUL = {"T1": QU8, "T2": Q8, "Tbias": ["float32", "qint32"], "*": ["all"]}


@cases("QuantizedMatMulWithBias QuantizedMatMulWithBiasAndRelu", types=dict(FUSED_MATMUL, Toutput=Q32), gradient=False)
def fused_matmul(c):
    yield from fused_products(c, ())


@cases("QuantizedMatMulWithBiasAndRequantize QuantizedMatMulWithBiasAndReluAndRequantize", types=dict(FUSED_MATMUL, Toutput=QU8), gradient=False)
def narrow_matmul(c):
    yield from fused_products(c, (F32(-1.5), F32(6)))


@cases("QuantizedMatMulWithBiasAndDequantize", types=dict(FUSED_MATMUL, Toutput=["float32"]), gradient=False)
def float_matmul(c):
    yield from fused_products(c, (F32(-1.5), F32(6)))


def fused_products(c, asked):
    for mode in ("MIN_FIRST", "SCALED"):
        for low, high in ((0, 1.3), (0, 0.7)) + ((-0.4, 1.1),):
            for m, k, n in ((3, 5, 4), (20, 70, 17), (1, 6, 2)):
                bias = c.values((n,), -3, 3, F32) if c.types.get("Tbias", "float32") == "float32" else sums_of(c, (n,), 5000)
                yield Call(bytes_of(c, (m, k)), bytes_of(c, (k, n), "qint8"), bias, F32(low), F32(high), F32(-0.8), F32(0.6), *asked, const=(1, 2), input_quant_mode=mode)


CONV = {"Tinput": ["quint8", "qint8"], "Tfilter": Q8, "Tbias": ["float32", "qint32"], "*": ["all"]}


@cases("QuantizedConv2D", types={"Tinput": QU8, "Tfilter": ["quint8", "qint8"], "out_type": Q32, "*": ["all"]}, gradient=False)
def quantized_conv(c):
    filter_type = c.types["Tfilter"]
    for padding in ("SAME", "VALID"):
        for low, high in RANGES if filter_type == "quint8" else [(0.0, 3.7), (-1.0, 1.0)]:
            for stride in (1, 2):
                yield Call(bytes_of(c, (2, 5, 6, 2)), bytes_of(c, (3, 3, 2, 4), filter_type), F32(low), F32(high), F32(-2), F32(2), const=(1,), strides=[1, stride, stride, 1], padding=padding)
    yield Call(bytes_of(c, (1, 7, 8, 16)), bytes_of(c, (3, 3, 16, 20), filter_type), F32(0), F32(2), F32(-2), F32(2), const=(1,), strides=[1, 1, 1, 1], padding="SAME")
    yield Call(bytes_of(c, (1, 4, 4, 3)), bytes_of(c, (3, 3, 2, 4), filter_type), F32(0), F32(2), F32(-2), F32(2), const=(1,), strides=[1, 1, 1, 1], padding="SAME")


def convs(c, with_bias, asked, depthwise=False, channels=(False, True)):
    image = c.types["Tinput"]
    for padding, stride, dilation in (("SAME", 1, 1), ("VALID", 2, 1), ("SAME", 1, 2)):
        for h, w, cin, cout in ((5, 6, 2, 4), (7, 8, 16, 40)):
            if cin > 2 and (padding, dilation) != ("SAME", 1):
                continue
            for per_channel in channels:
                depth = cin if depthwise else cout
                low, high = (F32(-0.9), F32(1.1))
                if per_channel:
                    low, high = c.values((depth,), -2, -0.5, F32), c.values((depth,), 0.5, 2, F32)
                bias = [c.values((depth,), -9, 9, F32) if c.types.get("Tbias", "float32") == "float32" else sums_of(c, (depth,), 5000)] if with_bias else []
                yield Call(bytes_of(c, (1 if cin > 2 else 2, h, w, cin), image), bytes_of(c, (3, 3, cin, 1 if depthwise else cout), "qint8"), *bias, F32(-0.7 if image == "qint8" else 0), F32(1.3), low, high,
                           *asked, const=(1, 2, 5, 6) if with_bias else (1, 4, 5), strides=[1, stride, stride, 1], padding=padding, dilations=[1, dilation, dilation, 1])


@cases("QuantizedConv2DAndRelu QuantizedConv2DPerChannel", types=dict(CONV, out_type=Q32), gradient=False)
def relu_conv(c):
    yield from convs(c, False, ())


@cases("QuantizedConv2DAndRequantize", types=dict(CONV, out_type=Q8), gradient=False)
def narrow_conv(c):
    yield from convs(c, False, (F32(-7), F32(9.5)), channels=(False,))


@cases("QuantizedConv2DAndReluAndRequantize", types=dict(CONV, out_type=QU8), gradient=False)
def narrow_relu_conv(c):
    yield from convs(c, False, (F32(0), F32(9.5)), channels=(False,))


@cases("QuantizedConv2DWithBias QuantizedConv2DWithBiasAndRelu", types=dict(CONV, out_type=Q32), gradient=False)
def bias_conv(c):
    yield from convs(c, True, ())


@cases("QuantizedConv2DWithBiasAndRequantize", types=dict(CONV, out_type=Q8), gradient=False)
def narrow_bias_conv(c):
    yield from convs(c, True, (F32(-7), F32(9.5)))


@cases("QuantizedConv2DWithBiasAndReluAndRequantize", types=dict(CONV, out_type=QU8), gradient=False)
def narrow_bias_relu_conv(c):
    yield from convs(c, True, (F32(0), F32(9.5)))


@cases("QuantizedDepthwiseConv2D", types=dict(CONV, out_type=Q32), gradient=False)
def depthwise(c):
    yield from convs(c, False, (), True)


@cases("QuantizedDepthwiseConv2DWithBias QuantizedDepthwiseConv2DWithBiasAndRelu", types=dict(CONV, out_type=Q32), gradient=False)
def bias_depthwise(c):
    yield from convs(c, True, (), True)


@cases("QuantizedDepthwiseConv2DWithBiasAndReluAndRequantize", types=dict(CONV, out_type=QU8), gradient=False)
def narrow_depthwise(c):
    yield from convs(c, True, (F32(0), F32(9.5)), True)
