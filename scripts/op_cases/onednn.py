"""Ops on bytes that TensorFlow computes by oneDNN, or not at all; record_ops.py switches it on for them."""
import numpy as np
from tensorflow.python.framework import op_def_library

from .quantize import F32, Q8, Q32, QU8, RANGES, bytes_of, sums_of
from .table import Call, cases, program


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


# ---- What the optimiser of a master with oneDNN makes ----

FLOATS = {"T": ["float32", "bfloat16"]}
LOOSE = dict(rtol=1e-4, atol=1e-4)
ACTIVATIONS = [[], ["Relu"], ["Relu6"], ["Elu"]]


@cases("_FusedDepthwiseConv2dNative", types=FLOATS, gradient=False, **LOOSE)
def fused_depthwise(c):
    image, filter_, bias = c.values((2, 5, 4, 3)), c.values((3, 2, 3, 1)), c.values((3,))
    attrs = dict(strides=[1, 1, 1, 1], padding="SAME")
    for after in ACTIVATIONS + [["_FusedHardSwish"]]:
        yield Call(image, filter_, [bias], fused_ops=["BiasAdd"] + after, **attrs)
    yield Call(image, filter_, [bias], fused_ops=["BiasAdd", "Relu"], strides=[1, 2, 2, 1], padding="VALID")
    yield Call(image, c.values((2, 2, 3, 2)), [c.values((6,))], fused_ops=["BiasAdd"], **attrs)


@cases("_FusedConv3D", types=FLOATS, gradient=False, **LOOSE)
def fused_conv_3d(c):
    image, filter_, bias = c.values((2, 3, 5, 4, 2)), c.values((2, 2, 3, 2, 4)), c.values((4,))
    attrs = dict(strides=[1, 1, 1, 1, 1], padding="SAME")
    for after in ACTIVATIONS + [["LeakyRelu"]]:
        yield Call(image, filter_, [bias], fused_ops=["BiasAdd"] + after, **attrs)
    yield Call(image, filter_, [bias, c.values((2, 3, 5, 4, 4))], fused_ops=["BiasAdd", "Add"], **attrs)
    yield Call(image, filter_, [bias, c.values((2, 3, 5, 4, 4))], fused_ops=["BiasAdd", "Add", "Relu"], **attrs)
    yield Call(image, filter_, [bias], fused_ops=["BiasAdd"], strides=[1, 2, 1, 2, 1], padding="VALID")
    yield Call(image, filter_, [bias], fused_ops=["BiasAdd"], dilations=[1, 1, 2, 1, 1], **attrs)
    yield Call(image, filter_, [bias], fused_ops=["BiasAdd"], strides=[1, 1, 1, 1, 1], padding="VALID", padding_list=[0, 0, 1, 0, 2, 1, 0, 3, 0, 0])
    yield Call(image, filter_, [bias], fused_ops=["BiasAdd", "Nonsense"], **attrs)
    yield Call(c.values((2, 3, 5, 4, 3)), filter_, [bias], fused_ops=["BiasAdd"], **attrs)


@cases("_FusedBatchNormEx", types=FLOATS, gradient=False, **LOOSE)
def fused_batch_norm_ex(c):
    scale, offset, mean, variance = (c.values((4,), low, 3, F32) for low in (0.5, -3, -1, 0.5))
    empty = np.zeros((0,), F32)
    for training in (False, True):
        moments = (empty, empty) if training else (mean, variance)
        for shape in ((2, 3, 5, 4), (1, 2, 2, 4)):
            yield Call(c.values(shape), scale, offset, *moments, [], is_training=training, activation_mode="Relu", epsilon=0.01, outputs=(0, 1, 2))
    yield Call(c.values((3, 5, 4)), scale, offset, mean, variance, [], is_training=False, activation_mode="Relu", outputs=(0,))
    yield Call(c.values((2, 3, 5, 3)), scale, offset, mean, variance, [], is_training=False, activation_mode="Relu", outputs=(0,))
    yield Call(c.values((2, 3, 5, 4)), scale, offset[:3], mean, variance, [], is_training=False, activation_mode="Relu", outputs=(0,))


@cases("_MklFusedBatchMatMulV2", types=FLOATS, gradient=False, **LOOSE)
def fused_batch_matmul(c):
    x, y, factor, mask = c.values((2, 3, 4, 5)), c.values((2, 3, 5, 4)), c.values((), 0.25, 1), c.values((2, 1, 4, 4))
    fused = dict(fused_ops=["Mul", "Add"])
    yield Call(x, y, [factor, mask], **fused)
    yield Call(x, c.values((2, 3, 4, 5)), [factor, mask], adj_y=True, **fused)
    yield Call(c.values((2, 3, 5, 4)), y, [factor, mask], adj_x=True, **fused)
    yield Call(x, y, [factor, c.values((1, 1, 1, 4))], **fused)
    yield Call(x, c.values((2, 3, 4, 4)), [factor, mask], **fused)


@cases("_MklSwish _MklFusedMish", types=FLOATS, gradient=False, **LOOSE)
def own_activation(c):
    yield Call(c.values((2, 3, 4, 5), -9, 9))
    yield Call(c.values((7,), -9, 9))
    yield Call(np.array([0, -0.0, 30, -30, 80, -80], c.T))
    yield Call(c.values((0, 3)))
    yield Call(c.values(()))


@cases("_MklLayerNorm", types=FLOATS, gradient=False, **LOOSE)
def layer_norm(c):
    for shape in ((3, 5, 8), (2, 8), (2, 3, 2, 6)):
        yield Call(c.values(shape), c.values(shape[-1:], 0.5, 2), c.values(shape[-1:]), epsilon=0.001)
    yield Call(c.values((3, 5, 8)), c.values((7,)), c.values((8,)))
    yield Call(c.values((3, 5, 8)), c.values((8,)), c.values((1, 8)))
    yield Call(c.values((3, 5, 8)), c.values((8,)), c.values((4,)))


@cases("_MklFusedInstanceNorm", types=FLOATS, gradient=False, **LOOSE)
def instance_norm(c):
    for after in ([], ["Relu"], ["LeakyRelu"]):
        for shape, axes, channels in (((2, 4, 6, 3), [1, 2], 3), ((2, 3, 4, 6), [2, 3], 3), ((2, 2, 4, 3, 3), [1, 2, 3], 3)):
            yield Call(c.values(shape), c.values((channels,), 0.5, 2), c.values((channels,)), fused_ops=after, reduction_axes=axes, epsilon=0.001)
    yield Call(c.values((2, 4, 6, 3)), c.values((2,), 0.5, 2), c.values((3,)), reduction_axes=[1, 2])
    yield Call(c.values((4, 3)), c.values((3,), 0.5, 2), c.values((3,)), reduction_axes=[1, 2])
    yield Call(c.values((2, 4, 6, 3)), c.values((3,), 0.5, 2), c.values((3,)), reduction_axes=[1, 3])
    yield Call(c.values((2, 4, 6, 3)), c.values((3,), 0.5, 2), c.values((3,)), reduction_axes=[1, 2], fused_ops=["Nonsense"])


@program("_FusedMatMul", types=("float32", "bfloat16"), **LOOSE)
def fused_matmul_of_onednn(p):
    a, b, bias, other = (p.placeholder(n) for n in "a b bias other".split())
    outs = [op_def_library.apply_op("_FusedMatMul", name="_".join(ops), a=a, b=b, args=[bias] + [other] * ("Add" in ops), fused_ops=ops, transpose_a=False, transpose_b=False, epsilon=1e-4, leakyrelu_alpha=0.2)
            for ops in (["BiasAdd", "GeluApproximate"], ["BiasAdd", "GeluExact"], ["BiasAdd", "Add"], ["BiasAdd", "Tanh"], ["BiasAdd", "Sigmoid"], ["BiasAdd", "LeakyRelu"])]
    feeds = {a: p.values((5, 6)), b: p.values((6, 4), -1, 1), bias: p.values((4,)), other: p.values((5, 4))}
    for out in outs:
        p.run([out], feeds)


@program("_FusedConv2D", **LOOSE)
def fused_conv_of_onednn(p):
    image, filter_, bias, other = (p.placeholder(n) for n in "image filter bias other".split())
    attrs = dict(strides=[1, 1, 1, 1], padding="SAME", explicit_paddings=[], data_format="NHWC", filter_format="HWIO", dilations=[1, 1, 1, 1], use_cudnn_on_gpu=True, epsilon=1e-4, leakyrelu_alpha=0.2)
    outs = [op_def_library.apply_op("_FusedConv2D", name="_".join(ops).replace("__", "_"), input=image, filter=filter_, args=[bias] + [other] * ("Add" in ops), host_args=[], num_args=1 + ("Add" in ops),
                                    fused_ops=ops, **attrs)
            for ops in (["BiasAdd", "Add"], ["BiasAdd", "Add", "Relu"], ["BiasAdd", "Add", "LeakyRelu"], ["BiasAdd", "_FusedHardSwish"], ["BiasAdd", "_MklSwish"])]
    feeds = {image: p.values((2, 5, 4, 2)), filter_: p.values((3, 3, 2, 4), -1, 1), bias: p.values((4,)), other: p.values((2, 5, 4, 4))}
    for out in outs:
        p.run([out], feeds)
