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


def true(*shape):
    return np.ones(shape, bool)


def op(name, *arguments, **attrs):
    """A function of the op's inputs in this order."""
    return lambda *values: getattr(R, name)(**dict(zip(arguments, values)), **attrs)


def block(name, pads):
    return lambda x, size, p: getattr(R, name)(**{"input": x, "block_shape": tf.reshape(size, [1]), pads: p})


PADS = ints([1, -1])
ROWS = ints([0, 0], [9, 0])

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
    "FloorDiv": (op("FloorDiv", "x", "y"), [(ints(1), ints(0)), (ints(1, 2, 3), ints(1, 2))]),
    "TruncateDiv": (op("TruncateDiv", "x", "y"), [(ints(1), ints(0))]),
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
