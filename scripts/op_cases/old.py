"""Ops that only graphs of old versions have: earlier forms of TensorArrays and stacks, deprecated names, RandomCrop, BatchNormWithGlobalNormalization."""
import numpy as np
import tensorflow as tf

from .table import PLAIN, program

raw = tf.raw_ops
NUMBERS = [t for t in PLAIN if t not in ("string", "bool")]
ARRAY = "TensorArray{0} TensorArrayWrite{0} TensorArrayRead{0} TensorArrayGather{0} TensorArrayScatter{0} TensorArrayConcat{0} TensorArraySplit{0} TensorArraySize{0} TensorArrayClose{0}"


def old_arrays(end):
    def op(name, **inputs):
        return getattr(raw, "TensorArray" + name + end)(**inputs)

    def arrays(p):
        x, lengths = p.placeholder("x"), p.placeholder("lengths", tf.int64)
        start = tf.constant(0.0)
        a = op("", size=3, dtype=p.dtype, dynamic_size=True, clear_after_read=False)
        flow = start
        for i in range(3):
            flow = op("Write", handle=a, index=i, value=x[i], flow_in=flow)
        grown = op("Write", handle=a, index=5, value=x[0], flow_in=flow)
        read = op("Read", handle=a, index=1, flow_in=flow, dtype=p.dtype)
        gather = op("Gather", handle=a, indices=[2, 0], flow_in=flow, dtype=p.dtype)
        concat = op("Concat", handle=a, flow_in=flow, dtype=p.dtype)
        sizes = [op("Size", handle=a, flow_in=f) for f in (flow, grown)]
        outside = op("Read", handle=a, index=9, flow_in=flow, dtype=p.dtype)
        with tf.control_dependencies([read]):
            close = op("Close", handle=a)
        b = op("", size=3, dtype=p.dtype)
        scattered = op("Scatter", handle=b, indices=[1, 2, 0], value=x, flow_in=start)
        first = op("Read", handle=b, index=0, flow_in=scattered, dtype=p.dtype)
        with tf.control_dependencies([first]):
            again = op("Read", handle=b, index=0, flow_in=scattered, dtype=p.dtype)
        c = op("", size=2, dtype=p.dtype)
        split = op("Split", handle=c, value=x, lengths=lengths, flow_in=start)
        part = op("Read", handle=c, index=1, flow_in=split, dtype=p.dtype)
        more = []
        if not end:
            d = op("", size=3, dtype=p.dtype)
            unpacked = raw.TensorArrayUnpack(handle=d, value=x, flow_in=start)
            more = [raw.TensorArrayPack(handle=d, flow_in=unpacked, dtype=p.dtype)]
        value = {x: p.values((3, 2, 2))}
        p.run([read, gather, concat.value, concat.lengths, sizes[0]], value)
        p.run([sizes[1]], value)
        p.run([outside], value)
        p.run([read], value, [close])
        p.run([first], value)
        p.run([again], value)
        p.run([part], {**value, lengths: np.array([1, 2], np.int64)})
        p.run([part], {**value, lengths: np.array([1, 1], np.int64)})
        if more:
            p.run(more, value)
            p.run(more, {x: p.values((2, 2))})
    arrays.__name__ = "old_tensor_arrays" + end.lower()
    return arrays


program(ARRAY.format("V2"), types=PLAIN, version=25)(old_arrays("V2"))
program(ARRAY.format("") + " TensorArrayPack TensorArrayUnpack", types=PLAIN, version=15)(old_arrays(""))


def old_gradients(end):
    def gradients(p):
        x = p.placeholder("x")
        op = lambda name, **inputs: getattr(raw, "TensorArray" + name + end)(**inputs)
        a = op("", size=2, dtype=p.dtype, clear_after_read=False)
        flow = op("Scatter", handle=a, indices=[0, 1], value=x, flow_in=tf.constant(0.0))
        g = op("Grad", handle=a, flow_in=flow, source="back")
        written = op("Write", handle=g, index=1, value=x[0], flow_in=flow)
        added = op("Write", handle=g, index=1, value=x[1], flow_in=written)
        total = op("Read", handle=g, index=1, flow_in=added, dtype=p.dtype)
        p.run([total], {x: p.values((2, 3))})
    gradients.__name__ = "old_tensor_array_gradients" + end.lower()
    return gradients


FLOATS = ["float32", "float64", "float16", "bfloat16"]
program("TensorArrayGradV2", types=FLOATS, version=25)(old_gradients("V2"))
program("TensorArrayGrad", types=FLOATS, version=15)(old_gradients(""))


@program("TensorArrayGradWithShape", types=FLOATS)
def gradients_with_shape(p):
    x = p.placeholder("x")
    a = raw.TensorArrayV3(size=3, dtype=p.dtype, clear_after_read=False)
    flow = raw.TensorArrayScatterV3(handle=a.handle, indices=[0, 1, 2], value=x, flow_in=a.flow)
    g = raw.TensorArrayGradWithShape(handle=a.handle, flow_in=flow, shape_to_prepend=[2], source="back")
    written = raw.TensorArrayWriteV3(handle=g.grad_handle, index=1, value=x[:2], flow_in=g.flow_out)
    reads = [raw.TensorArrayReadV3(handle=g.grad_handle, index=i, flow_in=written, dtype=p.dtype) for i in range(2)]
    wrong = raw.TensorArrayWriteV3(handle=g.grad_handle, index=0, value=x, flow_in=g.flow_out)
    p.run(reads, {x: p.values((3, 4))})


@program("Stack StackPush StackPop StackClose", types=PLAIN)
def old_stacks(p):
    x = p.placeholder("x")
    s = raw.Stack(elem_type=p.dtype)
    first = raw.StackPush(handle=s, elem=x[0])
    with tf.control_dependencies([first]):
        second = raw.StackPush(handle=s, elem=x[1])
    with tf.control_dependencies([second]):
        top = raw.StackPop(handle=s, elem_type=p.dtype)
    with tf.control_dependencies([top]):
        bottom = raw.StackPop(handle=s, elem_type=p.dtype)
    with tf.control_dependencies([bottom]):
        none = raw.StackPop(handle=s, elem_type=p.dtype)
        close = raw.StackClose(handle=s)
    value = {x: p.values((2, 2))}
    p.run([top, bottom], value)
    p.run([none], value)
    p.run([top], value, [close])


@program("BatchMatrixDiag BatchMatrixDiagPart BatchMatrixSetDiag BatchMatrixBandPart", types=[t for t in PLAIN if t not in ("string", "bool")], version=13)
def batch_matrices(p):
    x, d, lower = p.placeholder("x"), p.placeholder("d"), p.placeholder("lower", tf.int64)
    found = [raw.BatchMatrixDiag(diagonal=d), raw.BatchMatrixDiagPart(input=x), raw.BatchMatrixSetDiag(input=x, diagonal=d),
             raw.BatchMatrixBandPart(input=x, num_lower=lower, num_upper=tf.constant(1, tf.int64))]
    p.run(found, {x: p.values((2, 3, 3)), d: p.values((2, 3)), lower: np.int64(-1)})
    p.run(found, {x: p.values((1, 3, 4)), d: p.values((1, 3)), lower: np.int64(0)})
    p.run(found, {x: p.values((0, 2, 2)), d: p.values((0, 2)), lower: np.int64(1)})
    p.run([found[1]], {x: p.values((3,))})
    p.run([found[3]], {x: p.values((2, 3, 3)), lower: np.int64(9)})


@program("RandomCrop", types=["uint8", "int8", "int16", "int32", "int64", "float32", "float64"], version=7)
def random_crop(p):
    x, size = p.placeholder("x"), p.placeholder("size", tf.int64)
    crop = raw.RandomCrop(image=x, size=size, seed=5, seed2=9)
    for want in ([3, 2], [1, 1], [6, 5], [2, 5], [0, 2]):
        p.run([crop], {x: p.values((6, 5, 3)), size: np.array(want, np.int64)})
    for want in ([7, 2], [2, 6], [2, 2, 1]):
        p.run([crop], {x: p.values((6, 5, 3)), size: np.array(want, np.int64)})
    p.run([crop], {x: p.values((6, 5)), size: np.array([2, 2], np.int64)})


@program("BatchNormWithGlobalNormalization BatchNormWithGlobalNormalizationGrad", types=["float32", "float64", "float16"], version=8, rtol=1e-4, atol=1e-4)
def global_normalization(p):
    t, m, v, beta, gamma, dy = [p.placeholder(name) for name in "t m v beta gamma dy".split()]
    found, grads = [], []
    for scales in (False, True):
        attrs = dict(variance_epsilon=0.01, scale_after_normalization=scales)
        found.append(raw.BatchNormWithGlobalNormalization(t=t, m=m, v=v, beta=beta, gamma=gamma, **attrs))
        grads += list(raw.BatchNormWithGlobalNormalizationGrad(t=t, m=m, v=v, gamma=gamma, backprop=dy, **attrs))
        grads += tf.gradients(found[-1], [t, m, v, beta, gamma], grad_ys=dy)

    def feeds(shape, depth):
        return {t: p.values(shape), m: p.values((depth,)), v: p.values((depth,), 0.5, 2), beta: p.values((depth,)), gamma: p.values((depth,)), dy: p.values(shape)}
    p.run(found + grads, feeds((2, 3, 2, 4), 4))
    p.run(found + grads, feeds((1, 1, 1, 1), 1))
    p.run(found, feeds((2, 3, 4), 4))
    p.run([found[0]], {**feeds((2, 3, 2, 4), 4), m: p.values((4, 1))})
