"""What TensorFlow's tests of its kernels ask of single ops: odd windows, empty tensors, special values, files of all kinds. Values are TensorFlow's."""
import numpy as np
import tensorflow.compat.v1 as tf

from client_programs import program, table

R = tf.raw_ops


def ramp(*shape, dtype=np.float32):
    """Numbers that differ, of both signs."""
    return (np.arange(np.prod(shape)) * 7 % 23 - 9).reshape(shape).astype(dtype)


def with_gradients(y, *xs):
    return [y, tf.gradients(y * y, xs)]


def conv_without_filters():
    x, w = tf.constant(ramp(1, 8, 8, 3)), tf.zeros([2, 2, 3, 0])
    return with_gradients(tf.nn.conv2d(x, w, [1, 1, 1, 1], "VALID"), x, w)


test_windows = table({
    "a pool over channels tells the place of each": lambda: list(R.MaxPoolWithArgmax(input=ramp(1, 2, 2, 6), ksize=[1, 1, 1, 3], strides=[1, 1, 1, 3], padding="SAME")),
    "a pool over channels with strides over columns": lambda: R.MaxPool(input=ramp(2, 3, 3, 2), ksize=[1, 1, 1, 2], strides=[1, 1, 2, 2], padding="SAME"),
    "a convolution without filters": conv_without_filters,
})


def slopes(op):
    """Gradients that are no numbers where the slope is 0."""
    def fetches():
        x = tf.constant([-1.0, 0.0, 2.0, 7.0, np.nan, -3.0])
        return getattr(R, op)(gradients=tf.constant([np.nan, np.inf, 3.0, -np.inf, 1.0, -2.0]), features=x)
    return fetches


test_activations = table({op: slopes(op) for op in ("ReluGrad", "Relu6Grad", "LeakyReluGrad", "SoftplusGrad", "SoftsignGrad")})


def quantized(dtype, held):
    """A quantised type is cast as the integer it holds."""
    def fetches():
        x = tf.constant([0, 1, 100], held)
        there = [R.Cast(x=tf.bitcast(x, dtype), DstT=to) for to in (tf.float32, tf.int64, tf.uint8, tf.bool, tf.complex64)]
        return there + [tf.bitcast(R.Cast(x=tf.cast(x, source), DstT=dtype), held) for source in (tf.float32, tf.int64, tf.bool)]
    return fetches


test_casts = table({dtype.name: quantized(dtype, held) for dtype, held in (
    (tf.qint8, tf.int8), (tf.quint8, tf.uint8), (tf.qint16, tf.int16), (tf.quint16, tf.uint16), (tf.qint32, tf.int32))})


FLOAT8 = (tf.dtypes.experimental.float8_e5m2, tf.dtypes.experimental.float8_e4m3fn)


def float8(dtype):
    """Every value of the type as others, and what others become of it: rounded, too small, too large."""
    def fetches():
        x = tf.constant(np.arange(256).astype(np.uint8).view(dtype.as_numpy_dtype))
        numbers = np.array([1e9, -1e9, np.inf, np.nan, 448, 464, 465, 57344, 61440, 61441, 1e-9, -1e-9, 0.0014, 17, 19, 1.0625, 7.6e-6, -0.0])
        there = [tf.cast(x, to) for to in (tf.float64, tf.float32, tf.float16, tf.bfloat16, tf.int8, tf.uint16, tf.int32, tf.bool, tf.complex64)]
        back = [tf.cast(tf.cast(tf.constant(numbers, source), dtype), tf.float64) for source in (tf.float64, tf.float32, tf.float16, tf.bfloat16)]
        return there + back + [tf.cast(tf.cast(x, other), tf.float32) for other in FLOAT8]
    return fetches


def int4(dtype):
    """Of an integer the lowest four bits stay."""
    def fetches():
        sources = (tf.int8, tf.uint8, tf.int16, tf.uint16, tf.int32, tf.uint32, tf.int64, tf.uint64)
        small = [tf.cast(tf.cast(tf.constant([0, 3, 9, 15, 16, 100, -6, -100], tf.int64), source), dtype) for source in sources]
        return [tf.cast(v, source) for v, source in zip(small, sources)]
    return fetches


test_small_casts = table({
    **{dtype.name: float8(dtype) for dtype in FLOAT8},
    **{dtype.name: int4(dtype) for dtype in (tf.dtypes.experimental.int4, tf.dtypes.experimental.uint4)}})


def quantized_equal(dtype):
    def fetches():
        x, y = (R.Cast(x=tf.constant(v), DstT=dtype) for v in ([0, 1, 100], [0, 2, 100]))
        return [R.Equal(x=x, y=y), R.NotEqual(x=x, y=y)]
    return fetches


test_equality = table({dtype.name: quantized_equal(dtype) for dtype in (tf.qint8, tf.quint8, tf.qint16, tf.quint16, tf.qint32)})


def ranges(op, low, high, **others):
    """A range of one number in a vector, where most quantised ops want a scalar."""
    def fetches():
        one = tf.placeholder_with_default(tf.constant([0.0]), None)
        made = {name: tf.bitcast(tf.constant(np.ones(v, np.uint8)), tf.quint8) if isinstance(v, tuple) else v for name, v in others.items()}
        return list(getattr(R, op)(**{low: one, high: 1.0}, **made))[1:]
    return fetches


WINDOW = dict(ksize=[1, 2, 2, 1], strides=[1, 1, 1, 1], padding="SAME")
test_quantized_ranges = table({
    "bias": ranges("QuantizedBiasAdd", "min_input", "max_input", input=(2, 3), bias=(3,), min_bias=0.0, max_bias=1.0, out_type=tf.qint32),
    "average": ranges("QuantizedAvgPool", "min_input", "max_input", input=(1, 4, 4, 2), **WINDOW),
    "product": ranges("QuantizedMatMul", "min_a", "max_a", a=(2, 3), b=(3, 2), min_b=0.0, max_b=1.0),
    "convolution": ranges("QuantizedConv2D", "min_input", "max_input", input=(1, 4, 4, 2), filter=(2, 2, 2, 3), min_filter=0.0, max_filter=1.0,
                          strides=[1, 1, 1, 1], padding="SAME"),
    "range": lambda: list(R.RequantizationRange(input=tf.bitcast(tf.constant([3, 7]), tf.qint32), input_min=tf.placeholder_with_default([0.0], None), input_max=1.0)),
})


def printed(dtype):
    return lambda: R.StringFormat(inputs=[tf.cast(tf.constant([[0, 1], [2, 3]], tf.float32), dtype)], template="{}", placeholder="{}")


test_printed = table({
    **{dtype.name: printed(dtype) for dtype in (tf.complex64, tf.complex128, tf.qint32, tf.qint8, tf.bfloat16) + FLOAT8},
    "a complex scalar": lambda: R.StringFormat(inputs=[tf.constant(1j)], template="{}", placeholder="{}"),
    "no complex numbers": lambda: R.StringFormat(inputs=[tf.zeros([0, 2], tf.complex64)], template="{}", placeholder="{}", summarize=-1),
    "an assertion": lambda: R.Assert(condition=False, data=[tf.ones([2, 2], tf.complex64), tf.constant(2j)], summarize=3),
})


def unknown(value):
    """A value whose shape only the server sees."""
    return tf.placeholder_with_default(tf.constant(value), None)


def long_range(start, limit, delta=1):
    return lambda: R.Range(start=unknown(np.int64(start)), limit=tf.constant(limit, tf.int64), delta=tf.constant(delta, tf.int64))


test_scalars = table({
    "shards in a vector": lambda: R.ShardedFilename(basename="x", shard=4, num_shards=unknown([100])),
    "a name in a vector": lambda: R.ShardedFilespec(basename=unknown([b"x"]), num_shards=100),
    "the number of bins in a vector": lambda: R.DenseBincount(input=[1, 2, 2], size=unknown([3]), weights=tf.zeros([0])),
    "no number of bins, and weights of another shape": lambda: R.DenseBincount(input=[1, 2], size=unknown(-1), weights=unknown([1.0])),
    "the number of bins in a vector, for a cube": lambda: R.DenseBincount(input=unknown([[[1]]]), size=unknown([3]), weights=tf.zeros([0])),
    "a range nobody has memory for": long_range(0, 2**62),
    "a range too long to count": long_range(-2**62, 2**62),
    "a long range of few": long_range(0, 2**63 - 1, 2**62),
})


def compiled(fn):
    """What TensorFlow's compiler computes of a function."""
    def fetches():
        return tf.function(fn, jit_compile=True)(tf.constant(np.random.RandomState(1).permutation(480).reshape(2, 80, 3), tf.float32))
    return fetches


test_compiled = table({
    "the largest of rows": compiled(lambda x: tf.math.approx_max_k(x, 2)),
    "the smallest of columns": compiled(lambda x: tf.math.approx_min_k(x, 4, reduction_dimension=1)),
})


def variant_int(value):
    proto = tf.make_tensor_proto(0)
    proto.Clear()
    proto.dtype = tf.variant.as_datatype_enum
    proto.tensor_shape.SetInParent()
    proto.variant_val.add(type_name=b"int", metadata=np.int32(value).tobytes())
    return tf.constant(proto)


test_variants = table({
    "numbers in variants are added": lambda: tf.as_string(R.AddN(inputs=[variant_int(v) for v in (3, -7, 40)])),
    "zeros like a number in a variant": lambda: tf.as_string(R.ZerosLike(x=variant_int(5))),
})


test_segments = table({
    "a segment beyond all sizes": lambda: R.SparseSegmentSum(data=np.ones((2, 4)), indices=tf.constant([2**62], tf.int64), segment_ids=tf.constant([2**62 - 1], tf.int64)),
    "segments too many to count": lambda: R.UnsortedSegmentSum(data=np.ones(3), segment_ids=1, num_segments=tf.constant(8327099846119777499, tf.int64)),
})


def many_rows(reduce, dtype, widths=(2, 3, 16, 100, 511, 512, 513)):
    """Matrices of so many rows that they are folded in parts; the last part is short."""
    def fetches():
        return [reduce(tf.constant(ramp(70000 // width * 3 + 1, width, dtype=dtype)), 0) for width in widths]
    return fetches


test_many_rows = table({"%s of %s" % (name, dtype.__name__): many_rows(reduce, dtype) for name, reduce, dtypes in (
    ("sum", tf.reduce_sum, (np.float32, np.float64, np.int32, np.int8, np.complex64)), ("mean", tf.reduce_mean, (np.float32, np.int32)), ("max", tf.reduce_max, (np.float32, np.int64, np.float16)),
    ("min", tf.reduce_min, (np.float32,)), ("any", tf.reduce_any, (np.bool_,)), ("norm", lambda x, axis: tf.norm(x, axis=axis), (np.float32,))) for dtype in dtypes}, rtol=1e-3)


def products(dtype):
    """Products of matrices of all shapes that are cut into tiles."""
    def fetches():
        return [tf.matmul(tf.constant(ramp(k, m, dtype=dtype)) if a else tf.constant(ramp(m, k, dtype=dtype)), tf.constant(ramp(n, k, dtype=dtype)) if b else tf.constant(ramp(k, n, dtype=dtype)), transpose_a=a, transpose_b=b)
                for m, k, n, a, b in ((1, 1, 1, False, False), (65, 67, 66, False, False), (3, 130, 5, True, False), (64, 64, 128, False, True), (129, 3, 2, True, True))]
    return fetches


test_products = table({dtype.__name__: products(dtype) for dtype in (np.float64, np.float16, np.int32, np.int64, np.complex64, np.complex128)})


def numbers_as_variants():
    """A constant of variants that hold one number each: stacked, kept in a variable, added, zeroed and told by what they serialise to."""
    def variant(kind, value):
        proto = tf.make_tensor_proto(0)
        proto.Clear()
        proto.dtype = tf.variant.as_datatype_enum
        proto.tensor_shape.SetInParent()
        proto.variant_val.add(type_name=kind, metadata=value.tobytes())
        return tf.constant(proto)

    numbers = [variant(b"int", np.int32(3)), variant(b"float", np.float32(1.5)), variant(b"double", np.float64(-2.5)), variant(b"bool", np.bool_(True))]
    handle = R.VarHandleOp(dtype=tf.variant, shape=[4])
    with tf.control_dependencies([R.AssignVariableOp(resource=handle, value=tf.stack(numbers))]):
        kept = R.ReadVariableOp(resource=handle, dtype=tf.variant)
    return [tf.io.serialize_tensor(x) for x in (*numbers, kept[1], tf.zeros_like(numbers[0]), tf.add_n([numbers[1], numbers[1]]))]


test_variants = table({"numbers": numbers_as_variants})


@program()
def test_jpegs_cut_off_anywhere_are_made_up_alike(p):
    noise = np.random.RandomState(0).randint(0, 255, (24, 20, 3)).astype(np.uint8)
    data = tf.placeholder(tf.string)
    image = tf.image.decode_jpeg(data, try_recover_truncated=True, acceptable_fraction=0.25)
    for progressive in (False, True):
        with tf.Graph().as_default(), tf.Session() as session:  # both are given the same
            whole = session.run(tf.image.encode_jpeg(noise, quality=60, progressive=progressive))
        for size in range(whole.index(b"\xff\xda") + 14, len(whole), 17):
            if whole[size - 1] != 0xff:
                p.run(image, {data: whole[:size]})


def complex_step():
    handle, one = R.VarHandleOp(dtype=tf.complex64, shape=[]), tf.constant(1, tf.complex64)
    return R.ResourceApplyFtrl(var=handle, accum=handle, linear=handle, grad=one, lr=one, l1=one, l2=one, lr_power=one)


NONE, EMPTY = np.zeros([0], np.int8), np.zeros([0, 2], np.int64)
test_types_that_a_kernel_is_not_for = table({
    "bounds": lambda: R.LowerBound(sorted_inputs=[[True]], values=[[True]]),
    "complex optimizer": complex_step,
    "filled rows": lambda: R.SparseFillEmptyRowsGrad(reverse_index_map=np.int64([0]), grad_values=["a"]),
    "in place": lambda: R.InplaceAdd(x=["a"], i=[0], v=["b"]),
    "mirrored text": lambda: R.MirrorPadGrad(input=["a"], paddings=[[0, 0]], mode="REFLECT"),
    "sparse product": lambda: R.SparseTensorDenseMatMul(a_indices=EMPTY, a_values=NONE, a_shape=np.int64([1, 1]), b=np.zeros([1, 1], np.int8)),
    "text in a variable": lambda: R.AssignAddVariableOp(resource=R.VarHandleOp(dtype=tf.string, shape=[]), value="a"),
})


@program()
def test_integers_of_a_variable_are_not_divided_by_0(p):
    for dtype in (tf.int32, tf.uint8, tf.int64):
        v = tf.Variable(tf.constant([6, 7], dtype), use_resource=True)
        p.session.run(v.initializer)
        for indices, divisors in (([0], [0]), ([0, 1], [2, 0]), (0, 0), ([1, 0], [7, 2])):
            p.run(R.ResourceScatterDiv(resource=v.handle, indices=indices, updates=tf.constant(divisors, dtype)))
            p.run(v.read_value())


test_poisson = table({"rates below 0": lambda: [tf.random_poisson([-3.0, 2.0, -0.5], [4], seed=1), tf.random.stateless_poisson([4, 2], [1, 2], [2.0, -1.0], tf.float64)]})


def at_infinity(op):
    return lambda: [getattr(R, op)(x=tf.constant([np.inf, -np.inf, 1.0, 1e30], dtype)) for dtype in (tf.float32, tf.float64)]


test_special_functions = table({op: at_infinity(op) for op in ("BesselJ0", "BesselJ1", "BesselY0", "BesselY1", "Expint", "Spence", "Dawsn", "FresnelCos", "FresnelSin")})
