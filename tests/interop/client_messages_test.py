"""What a client reads when it calls an op wrongly: the exception and its text, word for word, are those of TensorFlow.

Shapes and values come through placeholders of unknown shape, so that the server is asked and not the client library."""
import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from client_programs import Failure

R = tf.raw_ops


def ints(*values):
    return np.array(values, np.int32)


def zeros(*shape):
    return np.zeros(shape, np.float32)


def longs(*values):
    return np.array(values, np.int64)


def made():
    """The handle of a variable that has a value when it is used."""
    handle = R.VarHandleOp(dtype=tf.float32, shape=[4, 2], shared_name="made")
    with tf.control_dependencies([R.AssignVariableOp(resource=handle, value=tf.zeros([4, 2]))]):
        return tf.identity(handle)


def windows(name, *arguments, rank=4, k=2, s=1, **attrs):
    """A convolution or, with ksize, a pool in `rank` dimensions."""
    if "ksize" in attrs:
        attrs["ksize"] = [1] + [k] * (rank - 2) + [1]
    return op(name, *arguments, strides=[1] + [s] * (rank - 2) + [1], padding="VALID", **attrs)


def step(name, slots, *arguments):
    """An optimizer's step of a variable by its handle; its slots are like it."""
    def function(*values):
        return getattr(R, name)(var=made(), **{slot: made() for slot in slots}, **dict(zip(arguments, values)))
    return function


def norm(*values, name="FusedBatchNormV3", training=True, factor=1.0):
    return list(getattr(R, name)(**dict(zip(("x", "scale", "offset", "mean", "variance"), values)), is_training=training, exponential_avg_factor=factor))[:3]


def norm_grad(*values):
    return list(R.FusedBatchNormGrad(**dict(zip(("y_backprop", "x", "scale", "reserve_space_1", "reserve_space_2"), values))))[:3]


def dense_sum(step, x):
    """A gradient for an accumulator that has one."""
    handle = R.ResourceConditionalAccumulator(dtype=tf.float32, shape=tf.TensorShape(None), shared_name="dense sum")
    with tf.control_dependencies([R.ResourceAccumulatorApplyGradient(handle=handle, local_step=np.int64(0), gradient=tf.zeros([3, 2]))]):
        return R.ResourceAccumulatorApplyGradient(handle=tf.identity(handle), local_step=step, gradient=x)


def sparse_sum(step, indices, values):
    handle = R.SparseConditionalAccumulator(dtype=tf.float32, shape=[3, 3])
    return R.SparseAccumulatorApplyGradient(handle=handle, local_step=step, gradient_indices=indices, gradient_values=values, gradient_shape=np.int64([]), has_known_shape=False)


def true(*shape):
    return np.ones(shape, bool)


def op(name, *arguments, **attrs):
    """A function of the op's inputs in this order."""
    return lambda *values: getattr(R, name)(**dict(zip(arguments, values)), **attrs)


def block(name, pads):
    return lambda x, size, p: getattr(R, name)(**{"input": x, "block_shape": tf.reshape(size, [1]), pads: p})


PADS = ints([1, -1])
ROWS = ints([0, 0], [9, 0])
VOLUME, KERNEL, FLAT, IMAGE = zeros(2, 3, 3, 3, 2), zeros(2, 2, 2, 2, 3), zeros(2, 2, 2, 2), zeros(2, 3, 3, 2)
RATES = [zeros(2), zeros(), zeros()], [zeros(), zeros(2), zeros()], [zeros(), zeros(), zeros(2)]

# Too many values, too many columns; ranks
SPARSE = [(longs([0, 0, 0]), zeros(3), longs(3, 3)), (longs([0, 0, 0]), zeros(1), longs(3, 3)), (longs(0, 1), zeros(2), longs(3, 3)), (longs([0, 1]), zeros(1, 1), longs(3, 3)), (longs([0, 1]), zeros(1), longs([3, 3]))]
# 2 x 1 pixels, twice
GIF_FRAME = b",\0\0\0\0\2\0\1\0\0" b"\2\2\x44\x0a\0"
GIF = b"GIF89a\2\0\1\0\x80\0\0" b"\0\1\2\xff\xfe\xfd" + GIF_FRAME + GIF_FRAME + b";"

# op: (function, calls: the inputs of each)
CALLS = {
    "Concat": (lambda a, b: R.Concat(concat_dim=0, values=[a, b]), [(zeros(2), zeros()), (zeros(), zeros())]),
    "MirrorPad": (op("MirrorPad", "input", "paddings", mode="REFLECT"), [(zeros(2), PADS), (zeros(2), ints([2, 1])), (zeros(2), ints(2, 1)), (zeros(2, 3), ints([2, 1]))]),
    "MirrorPadGrad": (op("MirrorPadGrad", "input", "paddings", mode="SYMMETRIC"), [(zeros(2), ints([1, 1])), (zeros(2), ints([1, 2])), (zeros(2), PADS), (zeros(3), ints([0, 2]))]),
    "PadV2": (op("PadV2", "input", "paddings", "constant_values"), [(zeros(2), ints([2, 1]), zeros(2)), (zeros(2), PADS, zeros())]),
    "Select": (op("Select", "condition", "x", "y"), [(true(), zeros(2), zeros(3)), (true(2), zeros(2), zeros(3)), (true(2), zeros(2, 3), zeros(2, 2)), (true(3), zeros(2, 3), zeros(2, 3)), (true(2, 2), zeros(2, 3), zeros(2, 3)),
                                                     (true(2, 3), zeros(2, 3), zeros(2, 2)), (true(2), zeros(), zeros()), (true(2), zeros(3), zeros(3))]),
    "ComplexAbs": (op("ComplexAbs", "x", Tout=tf.float64), [(np.zeros(2, np.complex64),)]),
    "OneHot": (op("OneHot", "indices", "depth", "on_value", "off_value"), [(ints(0), ints(1), zeros(), zeros()), (ints(0), np.int32(2), zeros(2), zeros()), (ints(0), np.int32(2), zeros(), zeros(1)), (ints(0), np.int32(-2), zeros(), zeros())]),
    "ExpandDims": (op("ExpandDims", "input", "axis"), [(zeros(2), ints(5)), (zeros(2), ints(1, 2))]),
    "BroadcastTo": (op("BroadcastTo", "input", "shape"), [(zeros(2, 3), ints(3)), (zeros(2, 3), ints(2, 4)), (zeros(2, 3), ints(-1, 3)), (zeros(2, 3), ints([2, 3]))]),
    "SplitV": (op("SplitV", "value", "size_splits", "axis", num_split=2), [(zeros(3, 2), ints(1, 1), np.int32(0)), (zeros(3, 2), ints(-1, -1), np.int32(0)), (zeros(3, 2), ints(-2, 4), np.int32(0)), (zeros(3, 2), ints(1, 1, 1), np.int32(0)),
                                                                          (zeros(3), ints([1, 2]), np.int32(0)), (zeros(3), ints(1, 2), ints(0, 0)), (zeros(3), ints(1, 2), np.int32(3))]),
    "Transpose": (op("Transpose", "x", "perm"), [(zeros(2, 3), ints(0)), (zeros(2, 3), ints(0, 0)), (zeros(2, 3), ints(0, 2)), (zeros(2, 3), ints(-3, 0)), (zeros(2, 3), ints([0, 1]))]),
    "GatherV2": (op("GatherV2", "params", "indices", "axis"), [(zeros(3, 2), ints([0, 1], [7, 0]), np.int32(1)), (zeros(3, 2), ints(0), np.int32(2)), (zeros(), ints(0), np.int32(0)), (zeros(3), ints(0), ints(0, 1)), (zeros(3, 0), ints(5), np.int32(0))]),
    "GatherNd": (op("GatherNd", "params", "indices"), [(zeros(3, 2), ints([0, 1], [0, 7])), (zeros(0, 2), ints([0])), (zeros(3, 2), ints([0, 0, 0])), (zeros(3, 2), np.int32(0)), (zeros(), ints(0))]),
    "SpaceToBatchND": (block("SpaceToBatchND", "paddings"), [(zeros(1, 3, 1), ints(2), ints([0, 0])), (zeros(1, 3), ints(0), ints([0, 0])), (zeros(1, 3), ints(2), PADS)]),
    "BatchToSpaceND": (block("BatchToSpaceND", "crops"), [(zeros(3, 3, 1), ints(2), ints([0, 0])), (zeros(2, 3), ints(0), ints([0, 0])), (zeros(2, 3), ints(2), PADS), (zeros(2, 1), ints(2), ints([2, 1]))]),
    "ScatterNd": (op("ScatterNd", "indices", "updates", "shape"), [(ints([0, 0]), zeros(1), ints(3)), (ints([0], [0]), zeros(2, 3), ints(3, 4)), (ints([0], [0]), zeros(1, 4), ints(3, 4)), (ints([0], [0]), zeros(), ints(3, 4)),
                                                                   (np.int32(0), zeros(), ints(3, 4)), (ints(0), zeros(4), ints(3, 4)), (ints(0), zeros(3), ints(3, 4)), (ints([0]), zeros(1), ints()), (ints([7]), zeros(1), ints(3)), (ints([0]), zeros(1), ints(-3))]),
    "ScatterNdNonAliasingAdd": (op("ScatterNdNonAliasingAdd", "input", "indices", "updates"), [(zeros(3), ints([0, 0]), zeros(1)), (zeros(3, 4), ints([0], [0]), zeros(1, 4)), (zeros(), ints([0]), zeros(1)),
                                                                                              (zeros(3, 4), ints([[0], [0]], [[0], [0]]), zeros(2, 1, 4)), (zeros(3, 4), ints(0, 1), zeros(2, 4)), (zeros(0, 4), ints([0]), zeros(1, 4))]),
    "TensorScatterUpdate": (op("TensorScatterUpdate", "tensor", "indices", "updates"), [(zeros(3), ints([0, 0]), zeros(1)), (zeros(3, 4), ints([0], [0]), zeros(2, 3)), (zeros(3, 4), ints([0], [0]), zeros(1, 4)), (zeros(3, 4), ints([0], [0]), zeros()),
                                                                                       (zeros(0, 4), ints([0]), zeros(1, 4)), (zeros(3, 4), ints(0), zeros(4)), (zeros(), ints([0]), zeros(1)), (zeros(3, 4), ROWS, zeros(2))]),
    "Cumsum": (op("Cumsum", "x", "axis"), [(zeros(2, 3), np.int32(-3)), (zeros(2, 3), np.int32(2)), (zeros(2, 3), ints(0, 1))]),
    "Einsum": (lambda a, b: R.Einsum(inputs=[a, b], equation="...ij,...jk->...ik"), [(zeros(2, 2, 3), zeros(3, 3, 2)), (zeros(2, 2, 3), zeros(2, 2, 2)), (zeros(2), zeros(2, 2))]),
    "diagonal": (lambda a: R.Einsum(inputs=[a], equation="ii->i"), [(zeros(2, 3),), (zeros(2),)]),
    "NthElement": (op("NthElement", "input", "n"), [(zeros(2, 3), ints(0, 1)), (zeros(3), np.int32(3)), (zeros(3), np.int32(-1)), (zeros(), np.int32(0))]),
    "SegmentSum": (op("SegmentSum", "data", "segment_ids"), [(zeros(), ints(0)), (zeros(3, 2), ints(1, 0, 2)), (zeros(3, 2), ints(-1, 0, 1)), (zeros(3, 2), ints(0, 1)), (zeros(3), ints([0], [1], [2]))]),
    "SparseSegmentMean": (op("SparseSegmentMean", "data", "indices", "segment_ids"), [(zeros(3, 2), ints(0, 1), ints(-1, 0)), (zeros(3, 2), ints(0, 3), ints(0, 1)), (zeros(3, 2), ints(0, 1), ints(1, 0)), (zeros(3, 2), ints(0, 1), ints(0))]),
    "SparseSegmentSumWithNumSegments": (op("SparseSegmentSumWithNumSegments", "data", "indices", "segment_ids", "num_segments"), [(zeros(3, 2), ints(0, 1), ints(0, 1), n) for n in (np.int32(1), np.int32(-1), ints(2, 2), ints(3))]),
    "SparseSegmentSumGrad": (op("SparseSegmentSumGrad", "grad", "indices", "segment_ids", "output_dim0"), [(zeros(2, 2), ints(0, 1), ints(-1, 0), np.int32(3)), (zeros(2, 2), ints(0, 1), ints(0, 2), np.int32(3)), (zeros(2, 2), ints(0, 1), ints(0, 1), ints(3, 3)), (zeros(2, 2), ints(0, 1), ints(0, 1), np.int32(1))]),
    "HistogramFixedWidth": (op("HistogramFixedWidth", "values", "value_range", "nbins"), [(zeros(4), zeros(3), np.int32(5)), (zeros(4), ints(1, 0).astype(np.float32), np.int32(5)), (zeros(4), ints(0, 1).astype(np.float32), ints(2, 3))]),
    "Bincount": (op("Bincount", "arr", "size", "weights"), [(ints(1, 2), np.int32(-1), zeros(0)), (ints(-1, 2), np.int32(3), zeros(0)), (ints(1, 2), np.int32(3), zeros(3))]),
    "Cross": (op("Cross", "a", "b"), [(zeros(), zeros()), (zeros(2, 2), zeros(2, 2)), (zeros(3), zeros(2, 3))]),
    "EditDistance": (op("EditDistance", "hypothesis_indices", "hypothesis_values", "hypothesis_shape", "truth_indices", "truth_values", "truth_shape"), [
        (longs([0, 0]), longs(1), shape, longs([0, 0]), longs(1), longs(1, 1)) for shape in (longs(1, 1, 1), longs(-1, 2), longs(1, 1))] + [(longs([5, 0]), longs(1), longs(1, 1), longs([0, 0]), longs(1), longs(1, 1))]),
    "StridedSlice": (op("StridedSlice", "input", "begin", "end", "strides", shrink_axis_mask=1), [(x, ints(at), ints(at + 1), ints(1)) for x, at in ((zeros(3), -4), (zeros(3), 3), (zeros(), 0), (zeros(3), -1))]),
    "UnravelIndex": (op("UnravelIndex", "indices", "dims"), [(ints(at), ints(*dims)) for at, dims in ((5, (2, 3)), (6, (2, 3)), (-1, (2, 3)), (0, (2, 0)), (0, (-2, 3)), (1, (65536, 65536)))]),
    "LowerBound": (op("LowerBound", "sorted_inputs", "values"), [(zeros(3), zeros(1)), (zeros(1, 3), zeros(1)), (zeros(2, 3), zeros(3, 1))]),
    "MatrixSetDiagV3": (op("MatrixSetDiagV3", "input", "diagonal", "k"), [(zeros(2, 3), zeros(2), np.int32(7)), (zeros(2, 3), zeros(), np.int32(0)), (zeros(2, 3), zeros(2), ints()), (zeros(2, 3), zeros(3), np.int32(0))]),
    "MatrixDiagPartV3": (op("MatrixDiagPartV3", "input", "k", "padding_value"), [(zeros(2, 3), np.int32(7), zeros()), (zeros(2, 3), np.int32(0), zeros(2)), (zeros(2, 3), ints(), zeros()), (zeros(2, 3), ints(1, 0), zeros())]),
    "MatrixBandPart": (op("MatrixBandPart", "input", "num_lower", "num_upper"), [(zeros(2, 3), longs(1, 1), np.int64(0)), (zeros(2, 3), np.int64(5), np.int64(0)), (zeros(3), np.int64(0), np.int64(0))]),
    "SpaceToBatch": (op("SpaceToBatch", "input", "paddings", block_size=2), [(zeros(1, 4, 4), ints([0, 0], [0, 0])), (zeros(1, 3, 4, 1), ints([0, 0], [0, 0]))]),
    "ResourceScatterAdd": (lambda i, u: R.ResourceScatterAdd(resource=made(), indices=i, updates=u), [(ints(0, 1), zeros(3, 2)), (ints(0, 9), zeros(2, 2))]),
    "DecodeRaw": (op("DecodeRaw", "bytes", out_type=tf.int16), [(np.array([b"ab", b"abcd"], object),), (np.array([b"abc"], object),)]),
    "Conv3D": (windows("Conv3D", "input", "filter", rank=5), [(VOLUME, zeros(2, 2, 2, 3, 3)), (VOLUME, zeros(2, 2, 2, 1, 3)), (FLAT, KERNEL), (VOLUME, FLAT), (VOLUME, zeros(0, 2, 2, 2, 3)), (VOLUME, zeros(2, 2, 2, 0, 3))]),
    "Conv3D strides": (op("Conv3D", "input", "filter", strides=[2, 1, 1, 1, 1], padding="VALID"), [(VOLUME, KERNEL)]),
    "Conv3DBackpropInputV2": (windows("Conv3DBackpropInputV2", "input_sizes", "filter", "out_backprop", rank=5), [
        (ints(*sizes), KERNEL, zeros(*dz)) for sizes, dz in (((2, 3, 3, 3), (2, 2, 2, 2, 3)), ((2, 3, 3, 4, 2), (2, 2, 2, 2, 3)), ((3, 3, 3, 3, 2), (2, 2, 2, 2, 3)), ((2, 3, 3, 3, 1), (2, 2, 2, 2, 3)), ((2, 3, 3, 3, 2), (2, 2, 2, 2, 4)),
                                                              ((2, 3, 3, 3, 2), (2, 2, 2, 3)))]),
    "Conv3DBackpropFilterV2": (windows("Conv3DBackpropFilterV2", "input", "filter_sizes", "out_backprop", rank=5), [
        (VOLUME, sizes, FLAT[..., None] * zeros(3)) for sizes in (ints(2, 2, 2, 2), ints([2, 2, 2, 2, 3]), ints(2, 2, 2, 1, 3), ints(2, 2, 2, 2, 4), ints(3, 2, 2, 2, 3))] + [(VOLUME[:1], ints(2, 2, 2, 2, 3), FLAT[..., None] * zeros(3)), (FLAT, ints(2, 2, 2, 2, 3), FLAT)]),
    "DepthwiseConv2dNative": (windows("DepthwiseConv2dNative", "input", "filter"), [(IMAGE, zeros(2, 2, 2, 0)), (IMAGE, zeros(0, 2, 2, 2)), (IMAGE[0], FLAT), (IMAGE, FLAT[0]), (IMAGE, zeros(2, 2, 1, 1))]),
    "depthwise strides": (op("DepthwiseConv2dNative", "input", "filter", strides=[2, 1, 1, 1], padding="SAME"), [(IMAGE, FLAT)]),
    "DepthwiseConv2dNativeBackpropInput": (windows("DepthwiseConv2dNativeBackpropInput", "input_sizes", "filter", "out_backprop"), [
        (sizes, FLAT, zeros(2, 2, 2, 4)) for sizes in (ints(2, 3, 3), ints([2, 3, 3, 2]), ints(2, 3, 4, 2), ints(3, 3, 3, 2), ints(2, 3, 3, 1), ints(2, -3, 3, 2))] + [(ints(2, 3, 3, 2), FLAT, zeros(2, 2, 2, 3)), (ints(2, 3, 3, 2), FLAT, FLAT[0]), (ints(2, 3, 3, 2), FLAT[0], FLAT)]),
    "DepthwiseConv2dNativeBackpropFilter": (windows("DepthwiseConv2dNativeBackpropFilter", "input", "filter_sizes", "out_backprop"), [
        (IMAGE, sizes, zeros(2, 2, 2, 4)) for sizes in (ints(2, 2, 2), ints([2, 2, 2, 2]), ints(2, 2, 1, 2), ints(2, 2, 2, 3), ints(1, 2, 2, 2), ints(2, -2, 2, 2))] + [(IMAGE[:1], ints(2, 2, 2, 2), zeros(2, 2, 2, 4)), (IMAGE[0], ints(2, 2, 2, 2), FLAT), (IMAGE, ints(2, 2, 2, 2), FLAT[0])]),
    "Conv2D": (windows("Conv2D", "input", "filter"), [(IMAGE, zeros(2, 2, 2, 0)), (IMAGE, zeros(2, 0, 2, 1)), (IMAGE[..., :0], zeros(2, 2, 0, 1)), (IMAGE, zeros(2, 2, 3, 1))]),
    "Conv2DBackpropInput": (windows("Conv2DBackpropInput", "input_sizes", "filter", "out_backprop"), [
        (sizes, FLAT, FLAT) for sizes in (ints(2, 3, 3, 3), ints(2, -3, 3, 2), ints(3, 3), ints(2, 3, 3), ints([2, 3, 3, 2]))] + [(ints(2, 3, 3, 2), FLAT[0], FLAT), (ints(2, 3, 3, 2), FLAT, FLAT[0]), (ints(2, 3, 3, 0), FLAT[:, :, :0], FLAT)]),
    "Conv2DBackpropFilter": (windows("Conv2DBackpropFilter", "input", "filter_sizes", "out_backprop"), [
        (IMAGE, sizes, FLAT) for sizes in (ints(2, 2, 3, 2), ints(2, -2, 2, 2), ints(2, 2, 2), ints([2, 2, 2, 2]))] + [(IMAGE[0], ints(2, 2, 2, 2), FLAT), (IMAGE, ints(2, 2, 2, 2), FLAT[0])]),
    **{"Conv2DBackprop paddings %s" % pads: (op("Conv2DBackpropInput", "input_sizes", "filter", "out_backprop", strides=[1] * 4, padding="EXPLICIT", explicit_paddings=pads), [(ints(2, 3, 3, 2), FLAT, FLAT)])
       for pads in ([0, 0, -1, 0, 0, 0, 0, 0], [0, 0, 1, 0, 0, 0], [1, 0, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0, 1])},
    "MaxPool": (windows("MaxPool", "input", ksize=0), [(IMAGE[0],), (VOLUME,)]),
    "AvgPool": (windows("AvgPool", "value", ksize=0), [(IMAGE[0],), (IMAGE[:, :1],)]),
    "AvgPool ksize": (windows("AvgPool", "value", ksize=0, k=-1), [(IMAGE,)]),
    "MaxPool3D": (windows("MaxPool3D", "input", ksize=0, rank=5), [(IMAGE,)]),
    "MaxPool3D ksize": (windows("MaxPool3D", "input", ksize=0, rank=5, k=-1), [(VOLUME,)]),
    "MaxPool padding": (op("MaxPool", "input", ksize=[1, 2, 2, 1], strides=[1, 1, 1, 1], padding="EXPLICIT", explicit_paddings=[0, 0, 0, 0, 0, 2, 0, 0]), [(IMAGE,)]),
    "MaxPoolV2": (op("MaxPoolV2", "input", "ksize", "strides", padding="SAME"), [(IMAGE, ints(1, 2, 2), ints(1, 1, 1, 1)), (IMAGE, ints(1, 2, 2, 1), ints(1, 1, 1)), (IMAGE, ints(1, 0, 2, 1), ints(1, 1, 1, 1)), (IMAGE, ints([1, 2, 2, 1]), ints([1, 1], [1, 1]))]),
    "MaxPoolGrad": (windows("MaxPoolGrad", "orig_input", "orig_output", "grad", ksize=0), [(IMAGE[0], FLAT, FLAT), (IMAGE, FLAT[0], FLAT), (IMAGE, FLAT, FLAT[0]), (IMAGE, FLAT[:1], FLAT), (IMAGE, FLAT, FLAT[:1])]),
    "MaxPoolGradGrad": (windows("MaxPoolGradGrad", "orig_input", "orig_output", "grad", ksize=0), [(IMAGE[0], FLAT, IMAGE), (IMAGE, FLAT[0], IMAGE), (IMAGE, FLAT, IMAGE[0]), (IMAGE, FLAT[:1], IMAGE), (IMAGE, FLAT, FLAT)]),
    "MaxPoolWithArgmax": (windows("MaxPoolWithArgmax", "input", ksize=0), [(IMAGE[0],), (IMAGE[:0],)]),
    "MaxPoolGradWithArgmax": (windows("MaxPoolGradWithArgmax", "input", "grad", "argmax", ksize=0), [(IMAGE[0], FLAT, FLAT.astype(np.int64)), (IMAGE, FLAT[:1], FLAT.astype(np.int64)), (IMAGE, FLAT, FLAT[:1].astype(np.int64))]),
    "AvgPoolGrad": (windows("AvgPoolGrad", "orig_input_shape", "grad", ksize=0), [(ints(2, 3, 3), FLAT), (ints([2, 3, 3, 2]), FLAT), (ints(2, 3, 3, 2), FLAT[0])]),
    "MaxPool depth": (op("MaxPool", "input", ksize=[1, 1, 1, 2], strides=[1, 1, 1, 1], padding="SAME"), [(zeros(1, 1, 1, 4),), (zeros(1, 1, 1, 5),)]),
    "MaxPool all": (op("MaxPool", "input", ksize=[1, 2, 1, 2], strides=[1, 1, 1, 2], padding="SAME"), [(IMAGE,)]),
    "AvgPool depth": (op("AvgPool", "value", ksize=[1, 1, 1, 2], strides=[1, 1, 1, 2], padding="SAME"), [(IMAGE,), (zeros(1, 1, 1, 5),)]),
    "AvgPoolGrad reach": (op("AvgPoolGrad", "orig_input_shape", "grad", ksize=[1] * 4, strides=[1, 1, 1, 2], padding="VALID"), [(ints(1, 1, 3, 1), zeros(3, 1, 3, 1))]),
    "AvgPoolGrad windows": (op("AvgPoolGrad", "orig_input_shape", "grad", ksize=[1, 4, 12, 1], strides=[1, 12, 12, 3], padding="SAME"), [(ints(11, 9, 7, 9), zeros(16, 16, 16, 16))]),
    "FractionalMaxPool": (lambda x: list(R.FractionalMaxPool(value=x, pooling_ratio=[2, 1, 1, 1])), [(IMAGE,)]),
    "FractionalAvgPool": (lambda x: list(R.FractionalAvgPool(value=x, pooling_ratio=[1, 1, 1, 2])), [(IMAGE,)]),
    "FractionalMaxPoolGrad": (op("FractionalMaxPoolGrad", "orig_input", "orig_output", "out_backprop", "row_pooling_sequence", "col_pooling_sequence"), [
        (zeros(1, 4, 4, 1), zeros(1, 2, 2, 1), zeros(1, 2, 2, 1), rows, columns) for rows, columns in ((longs(0, 2), longs(0, 2, 4)), (longs(0, 2, 9), longs(0, 2, 4)), (longs(0, 2, 4), longs([0, 2], [4, 4])))]),
    "FractionalAvgPoolGrad": (op("FractionalAvgPoolGrad", "orig_input_tensor_shape", "out_backprop", "row_pooling_sequence", "col_pooling_sequence"), [
        (longs(1, 4, 4, 1), zeros(1, 2, 2, 1), rows, columns) for rows, columns in ((longs(-10, 1, 3), longs(0, 2, 4)), (longs(0, 2, 9), longs(0, 2, 4)), (longs(0, 2, 4), longs(0, -123, 3)), (longs(0, 2), longs(0, 2, 4)), (longs(4, 2, 0), longs(0, 2, 4)))] + [
        (shape, zeros(1, 2, 2, 1), longs(0, 2, 4), longs(0, 2, 4)) for shape in (longs(0, 4, 4, 1), longs(1, 0, 4, 1), longs(1, 4, 0, 1), longs(1, 4, 4, 0), longs(1, -4, 4, 1), longs(1, 4, 4), longs(2, 4, 4, 1))] + [
        (longs(1, 4, 4, 1), gradient, longs(0, 2, 4), longs(0, 2, 4)) for gradient in (zeros(2, 2), zeros(0, 2, 2, 1))]),
    "AvgPool3DGrad": (windows("AvgPool3DGrad", "orig_input_shape", "grad", ksize=0, rank=5), [(ints(2, 3, 3, 3), zeros(2, 2, 2, 2, 2)), (ints(2, 3, 3, 3, 2), FLAT), (ints(1, 3, 3, 3, 2), zeros(2, 2, 2, 2, 2)), (ints(2, 3, -3, 3, 2), zeros(2, 2, 2, 2, 2))]),
    "FusedBatchNormV3": (lambda *v: norm(*v, training=False), [(IMAGE, zeros(2), zeros(2), zeros(3), zeros(2)), (IMAGE, zeros(2), zeros(2), zeros(2), zeros(3)), (IMAGE, zeros(2), zeros(2), zeros(1, 2), zeros(2)), (IMAGE, zeros(2), zeros(2), zeros(2), zeros(1, 2)), (IMAGE, zeros(1, 2), zeros(2), zeros(2), zeros(2))]),
    "average": (lambda *v: norm(*v, factor=0.5), [(IMAGE, zeros(2), zeros(2), zeros(0), zeros(0)), (IMAGE, zeros(2), zeros(2), zeros(2), zeros(0))]),
    "FusedBatchNormGrad": (norm_grad, [(IMAGE[0], IMAGE, zeros(2), zeros(2), zeros(2)), (IMAGE, IMAGE[0], zeros(2), zeros(2), zeros(2)), (IMAGE, IMAGE, zeros(2), zeros(1, 2), zeros(2)), (IMAGE, IMAGE, zeros(2), zeros(2), zeros(1, 2)), (IMAGE[:1], IMAGE, zeros(2), zeros(2), zeros(2))]),
    "Dilation2D": (op("Dilation2D", "input", "filter", strides=[1] * 4, rates=[1] * 4, padding="SAME"), [(IMAGE[0], zeros(2, 2, 2)), (IMAGE, zeros(2, 2, 3))]),
    "Dilation2DBackpropInput": (op("Dilation2DBackpropInput", "input", "filter", "out_backprop", strides=[1] * 4, rates=[1] * 4, padding="SAME"), [(IMAGE, zeros(2, 2, 2), IMAGE[:1]), (IMAGE, zeros(2, 2, 2), IMAGE[0])]),
    "CTCLoss": (op("CTCLoss", "inputs", "labels_indices", "labels_values", "sequence_length"), [(zeros(5, 1, 4), longs([0, 0]), ints(0, 1), ints(5)), (zeros(5, 1, 4), longs([0, 0]), ints(0), ints(-1)), (zeros(5, 1, 4), longs([0, 0]), ints(0), ints(6))]),
    "CTCGreedyDecoder": (op("CTCGreedyDecoder", "inputs", "sequence_length", blank_index=9), [(zeros(5, 1, 4), ints(5)), (zeros(0, 1, 4), ints(0)), (zeros(5, 1), ints(5))]),
    "ResourceApplyAdam": (step("ResourceApplyAdam", "mv", "beta1_power", "beta2_power", "lr", "beta1", "beta2", "epsilon", "grad"), [(zeros(), zeros(), zeros(2), zeros(), zeros(), zeros(), zeros(4, 2)), (zeros(),) * 6 + (zeros(4),), (zeros(),) * 5 + (zeros(1), zeros(4, 2))]),
    "ResourceApplyRMSProp": (step("ResourceApplyRMSProp", ("ms", "mom"), "lr", "rho", "momentum", "epsilon", "grad"), [(zeros(2), zeros(), zeros(), zeros(), zeros(4, 2)), (zeros(), zeros(2), zeros(), zeros(), zeros(4, 2))]),
    "ResourceApplyFtrl": (step("ResourceApplyFtrl", ("accum", "linear"), "grad", "lr", "l1", "l2", "lr_power"), [(zeros(4, 2), *rates, zeros()) for rates in RATES] + [(zeros(4, 2), zeros(), zeros(), zeros(), zeros(2))]),
    "ResourceSparseApplyFtrl": (step("ResourceSparseApplyFtrl", ("accum", "linear"), "grad", "indices", "lr", "l1", "l2", "lr_power"), [
        (zeros(1, 2), ints(0), np.float32(lr), np.float32(l1), np.float32(l2), np.float32(power)) for lr, l1, l2, power in ((0, 0, 0, 0), (-1, 0, 0, 0), (1, -1, 0, 0), (1, 0, -1, 0), (1, 0, 0, 1))] + [(zeros(1, 2), ints(0), *rates, zeros()) for rates in RATES[:1]]),
    "ResourceApplyProximalAdagrad": (step("ResourceApplyProximalAdagrad", ("accum",), "lr", "l1", "l2", "grad"), [(*rates, zeros(4, 2)) for rates in RATES[:1]] + [(np.float32(lr), np.float32(l1), np.float32(l2), zeros(4, 2)) for lr, l1, l2 in ((0, 0, 0), (1, -1, 0), (1, 0, -1))]),
    "ResourceSparseApplyMomentum": (step("ResourceSparseApplyMomentum", ("accum",), "lr", "grad", "indices", "momentum"), [(zeros(2), zeros(1, 2), ints(0), zeros()), (zeros(), zeros(1, 2), ints(4), zeros()), (zeros(), zeros(1, 2), ints(0, 1), zeros()), (zeros(), zeros(1, 3), ints(0), zeros())]),
    "ResourceSparseApplyAdagrad": (step("ResourceSparseApplyAdagrad", ("accum",), "lr", "grad", "indices"), [(zeros(), zeros(1, 2, 1), ints(0)), (zeros(), zeros(1, 3), ints(0)), (zeros(), zeros(1, 2), ints([0]))]),
    "RaggedTensorToTensor": (lambda shape, values, value, splits: R.RaggedTensorToTensor(shape=shape, values=values, default_value=value, row_partition_tensors=[splits], row_partition_types=["ROW_SPLITS"]), [
        (shape, ints(1, 2, 3), np.int32(0), longs(0, 2, 3)) for shape in (longs(2, 2, 2), longs(2), longs([2, 2]), longs(-2, 2), np.int64(3), longs(-1, 3))] + [
        (longs(-1, -1, 3), ints([1, 2], [3, 4], [5, 6]), value, longs(0, 2, 3)) for value in (ints(7, 8, 9), ints([7, 8]), ints(7, 8), np.int32(0))] + [
        (longs(-1, -1), ints(1, 2, 3), np.int32(0), splits) for splits in (longs(0, 2, 1), longs(1, 2, 3), longs()[:0])]),
    "SparseSlice": (lambda *v: list(R.SparseSlice(**dict(zip(("indices", "values", "shape"), v)), start=[0, 0], size=[1, 1])), SPARSE),
    "SparseSplit": (lambda *v: list(R.SparseSplit(split_dim=1, **dict(zip(("indices", "values", "shape"), v)), num_split=1))[0], SPARSE[:2] + [(longs([0, 9]), zeros(1), longs(3, 3)), (longs([0, 1], [-1, 0]), zeros(2), longs(3, 3))]),
    "SparseSplit axis": (lambda axis: list(R.SparseSplit(split_dim=axis, indices=longs([0, 0]), values=zeros(1), shape=longs(3, 3), num_split=1))[0], [(np.int64(-3),), (np.int64(2),), (longs(1, 2),)]),
    "SparseReorder": (lambda *v: list(R.SparseReorder(**dict(zip(("input_indices", "input_values", "input_shape"), v)))), SPARSE),
    "SparseSparseMaximum": (lambda i, v, s: list(R.SparseSparseMaximum(a_indices=longs([0, 0]), a_values=zeros(1), a_shape=longs(3, 3), b_indices=i, b_values=v, b_shape=s)), SPARSE + [(longs([0, 9]), zeros(1), longs(3, 3)), (longs([0]), zeros(1), longs(2)), (longs([0, 0]), zeros(1), longs(3, 4))]),
    "SparseFillEmptyRows": (lambda *v: list(R.SparseFillEmptyRows(**dict(zip(("indices", "values", "dense_shape"), v)), default_value=0.0)), SPARSE[1:]),
    "SparseFillEmptyRowsGrad": (lambda *v: list(R.SparseFillEmptyRowsGrad(**dict(zip(("reverse_index_map", "grad_values"), v)))), [(longs(-1, 3), zeros(0))]),
    **{"ExtractImagePatches %s %s" % (ksizes, strides): (op("ExtractImagePatches", "images", ksizes=ksizes, strides=strides, rates=[1] * 4, padding="SAME"), [(IMAGE,)])
       for ksizes, strides in (([1, 0, 1, 1], [1] * 4), ([2, 2, 2, 1], [1] * 4), ([1, 2, 2, 1], [1, 1, 1, 2]), ([2, 0, 1, 1], [1] * 4))},
    "DecodeGif": (op("DecodeGif", "contents"), [(file,) for file in (b"GIF89a", b"GIF89a" + GIF[6:19], GIF[:40], GIF, GIF[:-1], GIF[:46] + b"\x07" + GIF[47:])]),
    "DecodeImage": (op("DecodeImage", "contents"), [(b"no image",), (b"\x89PNG\r\n\x1a\n",)]),
    "EncodeJpeg": (op("EncodeJpeg", "image", format="rgb"), [(np.zeros(shape, np.uint8),) for shape in ((3, 3, 1), (0, 3, 3), (3, 3), (3, 3, 4))]),
    "EncodeJpeg grayscale": (op("EncodeJpeg", "image", format="grayscale"), [(np.zeros((3, 3, 3), np.uint8),)]),
    "SparseSoftmaxCrossEntropyWithLogits": (lambda x, y: list(R.SparseSoftmaxCrossEntropyWithLogits(features=x, labels=y)), [(zeros(4, 4), ints(4, 3, 0, -1)), (zeros(4, 4), ints(0, 4, 9, 1)), (zeros(2, 4), ints(0, 1, 2))]),
    "FloorDiv": (op("FloorDiv", "x", "y"), [(ints(1), ints(0)), (ints(1, 2, 3), ints(1, 2))]),
    "TruncateDiv": (op("TruncateDiv", "x", "y"), [(ints(1), ints(0))]),
    "segments out of order": (op("SegmentSum", "data", "segment_ids"), [(zeros(4, 2), ints(*ids)) for ids in ((0, 1, 2, 0), (0, 1, 0, 1), (-1, -1, 0, 0), (0, 0, 0, -1), (0, 1), (1, 1, 3, 3))]),
    "segments of negative size": (op("SparseSegmentSumGrad", "grad", "indices", "segment_ids", "output_dim0"), [(zeros(2, 4), ints(0, 1, 2), ints(0, 0, 1), np.int32(-1)), (zeros(2, 4), ints(0, 1, 4), ints(0, 0, 1), np.int32(4))]),
    "RandomUniformInt": (op("RandomUniformInt", "shape", "minval", "maxval"), [(ints(3), *low_high) for low_high in ((np.int32(5), np.int32(5)), (np.int32(5), np.int32(4)))] + [(ints(0), np.int32(5), np.int32(5)), (ints(10, 0), np.int32(0), np.int32(0))]),
    "StatelessRandomUniformInt": (op("StatelessRandomUniformInt", "shape", "seed", "minval", "maxval"), [(ints(n), ints(1, 2), np.int32(5), np.int32(5)) for n in (0, 3)]),
    "Reshape": (op("Reshape", "tensor", "shape"), [(zeros(3), longs(2**40, 2**40)), (zeros(3), longs(2**40, 2**40, -1))]),
    "Tile": (op("Tile", "input", "multiples"), [(zeros(2, 3), longs(2**40, 2**40)), (zeros(2, 3), longs(2**62, 1))]),
    "Pad": (op("Pad", "input", "paddings"), [(zeros(1, 1), longs([0, 2**40], [0, 2**40]))]),
    "ReverseV2": (op("ReverseV2", "tensor", "axis"), [(zeros(2, 3), ints([0])), (zeros(2, 3), ints(2)), (zeros(2, 3), ints(0, -2))]),
    "LinSpace": (op("LinSpace", "start", "stop", "num"), [(zeros(1), np.float32(2), np.int32(3)), (np.float32(1), np.float32(2), np.int32(0))]),
    "GuaranteeConst": (lambda x: R.GuaranteeConst(input=made()), [(zeros(),)]),
    "Einsum ellipsis": (lambda x: R.Einsum(inputs=[x], equation="...->"), [(zeros(2, 3),), (zeros(),)]),
    "SparseCrossV2": (lambda i, v, s, d: R.SparseCrossV2(indices=[i], values=[v], shapes=[s], dense_inputs=[d], sep="_X_"),
                      [(longs((0, 0)), longs(1), longs(2, 2), longs((1, 2), (3, 4))), (longs(), longs(1), longs(2, 2), longs((1, 2), (3, 4))),
                       (longs((0, 0)), np.int64(1), longs(2, 2), longs((1, 2), (3, 4))), (longs((0, 0)), longs(1), np.int64(2), longs((1, 2), (3, 4))),
                       (longs((0,)), longs(1), longs(2), longs((1, 2), (3, 4))), (longs((0, 0)), longs(1), longs(2, 2), longs(1, 2)),
                       (longs((0, 0)), longs(1), longs(2, 2), longs((1, 2)))]),
    "SparseCrossV2 separator": (lambda sep: list(R.SparseCrossV2(indices=[], values=[], shapes=[], dense_inputs=[[["a"]], [["b"]]], sep=sep)),
                                [(np.array(sep, object),) for sep in (b"_", [b"_"], [[b"_"]], [b"_", b"x"], [])]),
    "MirrorPad of nothing": (op("MirrorPad", "input", "paddings", mode="REFLECT"), [(zeros(0, 2), ints([0, 0], [1, 1])), (zeros(2, 0), ints([0, 0], [0, 0]))]),
    "UnravelIndex": (op("UnravelIndex", "indices", "dims"), [(ints(), ints(3, 3)), (ints(), ints(0)), (zeros(0, 2).astype(np.int32), ints(3)), (ints(4), ints(3))]),
    **{name: (lambda x, name=name: list(getattr(R, name)(true_classes=x, num_true=2, num_sampled=4, unique=True, range_max=2)), [(longs([0, 10]),), (longs([0, 1]),), (longs(0, 1),)])
       for name in ("UniformCandidateSampler", "LearnedUnigramCandidateSampler")},
    "RaggedRange": (lambda a, b, c: R.RaggedRange(starts=a, limits=b, deltas=c, Tsplits=tf.int32),
                    [(np.float32(0), np.float32(1), np.float32(0)), (np.float32(0), np.float32(1e10), np.float32(1)),
                     (np.float32(0), np.array([1.5e9, 1.5e9], np.float32), np.float32(1))]),
    "StatefulStandardNormalV2": (lambda x: R.StatefulStandardNormalV2(resource=made(), algorithm=np.int64(1), shape=x), [(longs(2),)]),
    "MatrixTriangularSolve": (op("MatrixTriangularSolve", "matrix", "rhs"), [(zeros(3), zeros(3, 1)), (zeros(3, 3), zeros(3))]),
    "MatrixInverse": (op("MatrixInverse", "input"), [(np.array([[np.nan, 0], [0, 1]], np.float32),), (zeros(2, 2),)]),
    "ResourceAccumulatorApplyGradient": (dense_sum, [(np.int64(0), zeros(3, 3)), (np.int64(0), zeros(2, 2)), (longs(0), zeros(3, 2))]),
    "SparseAccumulatorApplyGradient": (sparse_sum, [(np.int64(0), np.int64([[0, 1], [1, 0]]), zeros(2)), (np.int64(0), longs(0), zeros()),
                                                    (np.int64(0), longs(0, 1), zeros(1, 3)), (np.int64(0), np.int64(0), zeros(1)), (longs(0), longs(0), zeros(1, 3))]),
    "SelfAdjointEigV2": (op("SelfAdjointEigV2", "input"), [(np.array([[x, 0], [0, 1]], np.float32),) for x in (np.nan, 1)]),
}


def outcome(session, fetch, feeds):
    try:
        value = session.run(fetch, feeds, tf.RunOptions(timeout_in_ms=60000))
        return [np.shape(v) for v in value] if isinstance(value, list) else np.shape(value)
    except tf.errors.OpError as error:
        lines = [line for line in Failure(error).text.split("\n\t [[")[0].split("\n") if not line.startswith(("From /job:", "Graph execution error", "Detected at node"))]
        return type(error).__name__, "\n".join(lines).strip()


@pytest.mark.parametrize("name", CALLS)
def test_message(rill, name):
    """A wrong call is answered in TensorFlow's words."""
    function, calls = CALLS[name]
    with tf.Graph().as_default() as graph:
        inputs = [tf.placeholder(tf.as_dtype(np.asarray(x).dtype) if np.asarray(x).dtype.kind != "O" else tf.string) for x in calls[0]]
        fetch = function(*inputs)
        with tf.Session(graph=graph) as tensorflow, tf.Session(rill, graph=graph) as session:
            for values in calls:
                feeds = dict(zip(inputs, values))
                expected, got = (outcome(s, list(fetch) if isinstance(fetch, (list, tuple)) else fetch, feeds) for s in (tensorflow, session))
                assert got == expected, "%s%s" % (name, [np.shape(v) for v in values])
