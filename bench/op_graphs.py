"""One op of each kind alone, at sizes where arithmetic counts and not the session: OPS names them, write() makes the graph of one."""
import collections

import graphs
import numpy as np
import tensorflow.compat.v1 as tf

Op = collections.namedtuple("Op", "title build family")
OPS = {}  # by name, in the order of the page
FAMILIES = {}  # by name, what is in them


def op(name, title, build):
    OPS[name] = Op(title, build, None)


def family(title):
    """What a function adds to OPS is a family of the function's name."""
    def add(fill):
        FAMILIES[fill.__name__] = title
        before = set(OPS)
        fill()
        for name in OPS.keys() - before:
            OPS[name] = OPS[name]._replace(family=fill.__name__)
        return fill
    return add


def floats(*shape, low=-1.0, high=1.0, dtype=tf.float32, seed=1):
    """A variable, so that nothing is folded into a constant."""
    return variable(np.random.RandomState(seed).uniform(low, high, shape), dtype)


def integers(*shape, high=100, dtype=tf.int32, seed=1):
    return variable(np.random.RandomState(seed).randint(0, high, shape), dtype)


def variable(array, dtype=None):
    return tf.get_variable("v%d" % len(tf.global_variables()), initializer=tf.constant(array, dtype), use_resource=True).read_value()


def positive(n):
    """A positive definite matrix."""
    a = np.random.RandomState(1).randn(n, n).astype(np.float32)
    return variable(a @ a.T + n * np.eye(n, dtype=np.float32))


def texts(n, words=3):
    random = np.random.RandomState(1)
    return variable([" ".join("w%d" % w for w in row) for row in random.randint(0, 100000, (n, words))])


def pool_gradient(x):
    return tf.gradients(tf.nn.max_pool2d(x, 2, 2, "SAME"), x)[0]


@family("functions of one number")
def unary():
    op("nothing", "nothing: what the session takes", tf.no_op)
    for name, low, high in [("exp", -3, 3), ("log", 0.1, 9), ("tanh", -3, 3), ("sigmoid", -3, 3), ("sqrt", 0, 9), ("rsqrt", 0.1, 9), ("sin", -9, 9), ("erf", -3, 3), ("lgamma", 0.1, 9),
                            ("digamma", 0.1, 9), ("expm1", -1, 1), ("log1p", 0, 9), ("atan", -3, 3), ("asinh", -3, 3), ("sign", -1, 1), ("round", -9, 9), ("floor", -9, 9), ("square", -1, 1)]:
        op(name, "%s of 1M floats" % name, lambda name=name, low=low, high=high: getattr(tf.math, name)(floats(1024, 1024, low=low, high=high)))
    for name in "relu", "elu", "selu", "softplus", "softsign", "leaky_relu":
        op(name, "%s of 1M floats" % name, lambda name=name: getattr(tf.nn, name)(floats(1024, 1024)))
    op("exp_double", "exp of 1M doubles", lambda: tf.exp(floats(1024, 1024, dtype=tf.float64)))
    op("tanh_half", "tanh of 1M halves", lambda: tf.tanh(floats(1024, 1024, dtype=tf.float16)))
    op("tanh_bfloat16", "tanh of 1M bfloat16", lambda: tf.tanh(floats(1024, 1024, dtype=tf.bfloat16)))


@family("functions of several, casts")
def binary():
    for name in "add", "multiply", "divide", "maximum", "pow", "atan2", "floormod", "squared_difference":
        op(name, "%s of 1M and 1M floats" % name, lambda name=name: getattr(tf.math, name)(floats(1024, 1024, low=0.1), floats(1024, 1024, low=0.1, seed=2)))
    op("add_row", "add of a row to 1024×1024", lambda: floats(1024, 1024) + floats(1024, seed=2))
    op("add_column", "add of a column to 1024×1024", lambda: floats(1024, 1024) + floats(1024, 1, seed=2))
    op("add_half", "add of 1M and 1M halves", lambda: floats(1024, 1024, dtype=tf.float16) + floats(1024, 1024, dtype=tf.float16, seed=2))
    op("add_bfloat16", "add of 1M and 1M bfloat16", lambda: floats(1024, 1024, dtype=tf.bfloat16) + floats(1024, 1024, dtype=tf.bfloat16, seed=2))
    op("floordiv_int", "floordiv of 1M and 1M ints", lambda: integers(1024, 1024) // (1 + integers(1024, 1024, seed=2)))
    op("less", "less of 1M and 1M floats", lambda: floats(1024, 1024) < floats(1024, 1024, seed=2))
    op("where3", "choice among 1M and 1M floats", lambda: tf.where_v2(floats(1024, 1024) > 0, floats(1024, 1024, seed=2), floats(1024, 1024, seed=3)))
    op("clip", "clip_by_value of 1M floats", lambda: tf.clip_by_value(floats(1024, 1024), -0.5, 0.5))
    op("complex_mul", "multiply of 512K and 512K complex numbers", lambda: tf.complex(floats(512, 1024), floats(512, 1024)) * tf.complex(floats(512, 1024, seed=3), floats(512, 1024)))
    op("cast_int", "cast of 1M floats to int32", lambda: tf.cast(floats(1024, 1024, high=99), tf.int32))
    op("cast_half", "cast of 1M floats to half", lambda: tf.cast(floats(1024, 1024), tf.float16))
    op("cast_bfloat16", "cast of 1M floats to bfloat16", lambda: tf.cast(floats(1024, 1024), tf.bfloat16))
    op("addn", "add_n of 4 times 1M floats", lambda: tf.add_n([floats(1024, 1024, seed=i) for i in range(4)]))


@family("sums, means, extremes, scans")
def reductions():
    for name in "sum", "max", "prod", "mean":
        for axis, what in (None, "all"), (0, "columns"), (1, "rows"):
            op("%s_%s" % (name, what), "reduce_%s of 1024×1024, %s" % (name, what), lambda name=name, axis=axis: getattr(tf, "reduce_" + name)(floats(1024, 1024), axis))
    op("sum_middle", "reduce_sum of 64×128×128 over the middle", lambda: tf.reduce_sum(floats(64, 128, 128), 1))
    op("sum_double", "reduce_sum of 1M doubles", lambda: tf.reduce_sum(floats(1024, 1024, dtype=tf.float64)))
    op("sum_int", "reduce_sum of 1024×1024 ints, rows", lambda: tf.reduce_sum(integers(1024, 1024), 1))
    op("any", "reduce_any of 1024×1024, rows", lambda: tf.reduce_any(integers(1024, 1024, high=2) > 1, 1))
    op("logsumexp", "reduce_logsumexp of 1024×1024, rows", lambda: tf.reduce_logsumexp(floats(1024, 1024), 1))
    op("argmax_rows", "argmax of 1024×1024, rows", lambda: tf.argmax(floats(1024, 1024), 1))
    op("argmax_columns", "argmax of 1024×1024, columns", lambda: tf.argmax(floats(1024, 1024), 0))
    op("moments", "moments of 64×32×32×16", lambda: tf.nn.moments(floats(64, 32, 32, 16), [0, 1, 2])[0] + tf.nn.moments(floats(64, 32, 32, 16), [0, 1, 2])[1])
    op("l2_loss", "l2_loss of 1M floats", lambda: tf.nn.l2_loss(floats(1024, 1024)))
    op("cumsum_rows", "cumsum of 1024×1024, rows", lambda: tf.cumsum(floats(1024, 1024), 1))
    op("cumsum_columns", "cumsum of 1024×1024, columns", lambda: tf.cumsum(floats(1024, 1024), 0))
    op("cumprod", "cumprod of 1024×1024, rows", lambda: tf.math.cumprod(floats(1024, 1024), 1))
    op("bincount", "bincount of 1M ints", lambda: tf.math.bincount(integers(1 << 20, high=1000), minlength=1000, maxlength=1000))


@family("copies in another order")
def arrays():
    op("transpose", "transpose of 1024×1024", lambda: tf.transpose(floats(1024, 1024)))
    op("transpose_nchw", "transpose of 32×32×32×32 to channels first", lambda: tf.transpose(floats(32, 32, 32, 32), [0, 3, 1, 2]))
    op("concat", "concat of 4 times 512×512 along rows", lambda: tf.concat([floats(512, 512, seed=i) for i in range(4)], 1))
    op("split", "split of 1024×1024 into 4 along rows", lambda: tf.split(floats(1024, 1024), 4, 1)[3])
    op("slice", "slice of 800×800 from 1024×1024", lambda: tf.slice(floats(1024, 1024), [100, 100], [800, 800]))
    op("strided_slice", "every other row and column of 1024×1024", lambda: floats(1024, 1024)[::2, ::2])
    op("pad", "pad of 1000×1000 by 12", lambda: tf.pad(floats(1000, 1000), [[12, 12], [12, 12]]))
    op("mirror_pad", "reflecting pad of 1000×1000 by 12", lambda: tf.pad(floats(1000, 1000), [[12, 12], [12, 12]], "REFLECT"))
    op("tile", "tile of 256×256 to 1024×1024", lambda: tf.tile(floats(256, 256), [4, 4]))
    op("reverse", "reverse of 1024×1024, rows", lambda: tf.reverse(floats(1024, 1024), [1]))
    op("reverse_sequence", "reverse_sequence of 256×64×64", lambda: tf.reverse_sequence(floats(256, 64, 64), integers(256, high=64), 1))
    op("gather", "gather of 4096 rows of 64", lambda: tf.gather(floats(100000, 64), integers(4096, high=100000)))
    op("gather_columns", "gather of 512 columns of 1024×1024", lambda: tf.gather(floats(1024, 1024), integers(512, high=1024), axis=1))
    op("gather_nd", "gather_nd of 100,000 elements", lambda: tf.gather_nd(floats(1024, 1024), integers(100000, 2, high=1024)))
    op("scatter_nd", "scatter_nd of 4096 rows of 64", lambda: tf.scatter_nd(integers(4096, 1, high=10000), floats(4096, 64), [10000, 64]))
    op("tensor_scatter_add", "tensor_scatter_add of 4096 rows of 64", lambda: tf.tensor_scatter_nd_add(floats(10000, 64), integers(4096, 1, high=10000), floats(4096, 64)))
    op("one_hot", "one_hot of 4096 in 1000", lambda: tf.one_hot(integers(4096, high=1000), 1000))
    op("where", "where of 1M", lambda: tf.where(floats(1024, 1024) > 0))
    op("boolean_mask", "boolean_mask of 1M", lambda: tf.boolean_mask(floats(1024, 1024), floats(1024, 1024, seed=2) > 0))
    op("stack", "stack of 8 times 256×512", lambda: tf.stack([floats(256, 512, seed=i) for i in range(8)], 1))
    op("space_to_depth", "space_to_depth of 32×64×64×16", lambda: tf.space_to_depth(floats(32, 64, 64, 16), 2))
    op("space_to_batch", "space_to_batch of 32×64×64×16", lambda: tf.space_to_batch(floats(32, 64, 64, 16), [[0, 0], [0, 0]], 2))
    op("dynamic_partition", "dynamic_partition of 100,000 rows of 16 into 8", lambda: tf.dynamic_partition(floats(100000, 16), integers(100000, high=8), 8)[7])
    op("dynamic_stitch", "dynamic_stitch of two halves of 100,000 rows of 16", lambda: tf.dynamic_stitch([variable(np.arange(0, 100000, 2), tf.int32), variable(np.arange(1, 100000, 2), tf.int32)],
                                                                                                        [floats(50000, 16), floats(50000, 16)]))
    op("band_part", "matrix_band_part of 1024×1024", lambda: tf.linalg.band_part(floats(1024, 1024), 5, 5))
    op("roll", "roll of 1024×1024", lambda: tf.roll(floats(1024, 1024), 100, 1))
    op("broadcast_to", "broadcast_to of a row to 1024×1024", lambda: tf.broadcast_to(floats(1024), [1024, 1024]))
    op("extract_patches", "extract_image_patches 3×3 of 16×64×64×8", lambda: tf.image.extract_patches(floats(16, 64, 64, 8), [1, 3, 3, 1], [1, 1, 1, 1], [1, 1, 1, 1], "SAME"))


@family("sorting, segments, look-ups")
def orders():
    op("top_k", "top 10 of 1024×1024, rows", lambda: tf.nn.top_k(floats(1024, 1024), 10).values)
    op("sort", "sort of 1024×1024, rows", lambda: tf.sort(floats(1024, 1024), 1))
    op("argsort", "argsort of 256×1024, rows", lambda: tf.argsort(floats(256, 1024), 1))
    op("in_top_k", "in_top_k 5 of 1024×1000", lambda: tf.nn.in_top_k(floats(1024, 1000), integers(1024, high=1000), 5))
    op("unique", "unique of 200,000 ids", lambda: tf.unique(integers(200000, high=50000)).y)
    op("segment_sum", "segment_sum of 100,000 rows of 16", lambda: tf.math.segment_sum(floats(100000, 16), variable(np.arange(100000) // 10, tf.int32)))
    op("unsorted_segment_sum", "unsorted_segment_sum of 100,000 rows of 16", lambda: tf.math.unsorted_segment_sum(floats(100000, 16), integers(100000, high=10000), 10000))
    op("unsorted_segment_max", "unsorted_segment_max of 100,000 rows of 16", lambda: tf.math.unsorted_segment_max(floats(100000, 16), integers(100000, high=10000), 10000))
    op("sparse_segment_mean", "sparse_segment_mean of 100,000 rows of 64", lambda: tf.sparse.segment_mean(floats(50000, 64), integers(100000, high=50000), variable(np.arange(100000) // 10, tf.int32)))
    op("searchsorted", "searchsorted of 100,000 in 10,000", lambda: tf.searchsorted(variable(np.arange(10000, dtype=np.float32)), floats(100000, high=9999.0)))
    op("random_shuffle", "random_shuffle of 100,000 rows of 16", lambda: tf.random_shuffle(floats(100000, 16)))


@family("products, linear algebra, Fourier transforms")
def matrices():
    op("matmul_double", "product of 512×512 doubles", lambda: tf.matmul(floats(512, 512, dtype=tf.float64), floats(512, 512, dtype=tf.float64)))
    op("matmul_half", "product of 512×512 halves", lambda: tf.matmul(floats(512, 512, dtype=tf.float16), floats(512, 512, dtype=tf.float16)))
    op("matmul_bfloat16", "product of 1024×1024 bfloat16", lambda: tf.matmul(floats(1024, 1024, dtype=tf.bfloat16), floats(1024, 1024, dtype=tf.bfloat16)))
    op("matmul_int", "product of 256×256 ints", lambda: tf.matmul(integers(256, 256), integers(256, 256)))
    op("matmul_vector", "product of 2048×2048 and a vector", lambda: tf.matmul(floats(2048, 2048), floats(2048, 1)))
    op("matmul_transposed", "product of 512×512 transposed", lambda: tf.matmul(floats(512, 512), floats(512, 512), transpose_a=True, transpose_b=True))
    op("batch_matmul", "product of 64 times 128×64 and 64×128", lambda: tf.matmul(floats(64, 128, 64), floats(64, 64, 128)))
    op("batch_matmul_small", "product of 4096 times 8×8", lambda: tf.matmul(floats(4096, 8, 8), floats(4096, 8, 8)))
    op("einsum", "einsum bhqd,bhkd->bhqk, 8 times 8 of 64×64", lambda: tf.einsum("bhqd,bhkd->bhqk", floats(8, 8, 64, 64), floats(8, 8, 64, 64)))
    op("cholesky", "Cholesky of 512×512", lambda: tf.linalg.cholesky(positive(512)))
    op("cholesky_small", "Cholesky of 1024 times 16×16", lambda: tf.linalg.cholesky(floats(1024, 16, 16, high=0.1) * 0.01 + 10 * tf.eye(16)))
    op("qr", "QR of 256×256", lambda: tf.linalg.qr(floats(256, 256)).q)
    op("svd", "SVD of 128×128", lambda: tf.linalg.svd(floats(128, 128))[0])
    op("eigh", "eigenvalues and -vectors of symmetric 256×256", lambda: tf.linalg.eigh(positive(256))[1])
    op("eig", "eigenvalues and -vectors of 128×128", lambda: tf.raw_ops.Eig(input=floats(128, 128), Tout=tf.complex64)[1])
    op("inverse", "inverse of 512×512", lambda: tf.linalg.inv(positive(512)))
    op("solve", "solution of 512×512", lambda: tf.linalg.solve(positive(512), floats(512, 16)))
    op("triangular_solve", "solution of triangular 512×512", lambda: tf.linalg.triangular_solve(positive(512), floats(512, 512)))
    op("determinant", "determinant of 64 times 64×64", lambda: tf.linalg.det(floats(64, 64, 64)))
    op("lu", "LU of 512×512", lambda: tf.linalg.lu(positive(512))[0])
    op("expm", "exponential of 128×128", lambda: tf.linalg.expm(floats(128, 128)))
    op("fft", "FFT of 1024 rows of 1024", lambda: tf.signal.fft(tf.complex(floats(1024, 1024), floats(1024, 1024, seed=2))))
    op("rfft", "real FFT of 1024 rows of 1000", lambda: tf.signal.rfft(floats(1024, 1000)))
    op("fft2d", "FFT of 16 times 256×256", lambda: tf.signal.fft2d(tf.complex(floats(16, 256, 256), floats(16, 256, 256, seed=2))))


@family("convolutions, pools, normalisation, losses")
def networks():
    image = lambda: floats(32, 32, 32, 32)
    op("conv1x1", "conv2d 1×1 of 32×32×32×32 to 64", lambda: tf.nn.conv2d(image(), floats(1, 1, 32, 64), 1, "SAME"))
    op("conv_strided", "conv2d 3×3 of 32×32×32×32 to 64, strides 2", lambda: tf.nn.conv2d(image(), floats(3, 3, 32, 64), 2, "SAME"))
    op("conv_dilated", "conv2d 3×3 of 32×32×32×32 to 32, dilated", lambda: tf.nn.conv2d(image(), floats(3, 3, 32, 32), 1, "SAME", dilations=2))
    op("conv_double", "conv2d 3×3 of 8×32×32×32 doubles to 32", lambda: tf.nn.conv2d(floats(8, 32, 32, 32, dtype=tf.float64), floats(3, 3, 32, 32, dtype=tf.float64), 1, "SAME"))
    op("conv_transpose", "conv2d_transpose 3×3 of 32×16×16×32", lambda: tf.nn.conv2d_transpose(floats(32, 16, 16, 32), floats(3, 3, 32, 32), [32, 32, 32, 32], 2))
    op("conv3d", "conv3d 3×3×3 of 4×16×16×16×16 to 16", lambda: tf.nn.conv3d(floats(4, 16, 16, 16, 16), floats(3, 3, 3, 16, 16), [1] * 5, "SAME"))
    op("conv1d", "conv1d 5 of 32×512×32 to 32", lambda: tf.nn.conv1d(floats(32, 512, 32), floats(5, 32, 32), 1, "SAME"))
    op("depthwise", "depthwise conv2d 3×3 of 32×32×32×32", lambda: tf.nn.depthwise_conv2d(image(), floats(3, 3, 32, 1), [1, 1, 1, 1], "SAME"))
    op("depthwise_data", "its gradient by data", lambda: tf.nn.depthwise_conv2d_backprop_input([32, 32, 32, 32], floats(3, 3, 32, 1), image(), [1, 1, 1, 1], "SAME"))
    op("depthwise_weights", "its gradient by weights", lambda: tf.nn.depthwise_conv2d_backprop_filter(image(), [3, 3, 32, 1], floats(32, 32, 32, 32, seed=2), [1, 1, 1, 1], "SAME"))
    op("max_pool", "max_pool 2×2 of 32×32×32×32", lambda: tf.nn.max_pool2d(image(), 2, 2, "SAME"))
    op("max_pool_grad", "its gradient", lambda: pool_gradient(image()))
    op("avg_pool", "avg_pool 3×3 of 32×32×32×32", lambda: tf.nn.avg_pool2d(image(), 3, 1, "SAME"))
    op("max_pool3d", "max_pool3d 2×2×2 of 4×32×32×32×16", lambda: tf.nn.max_pool3d(floats(4, 32, 32, 32, 16), 2, 2, "SAME"))
    op("batch_norm", "fused_batch_norm of 32×32×32×32, training", lambda: tf.nn.fused_batch_norm(image(), floats(32), floats(32))[0])
    op("batch_norm_inference", "fused_batch_norm of 32×32×32×32, inference", lambda: tf.nn.fused_batch_norm(image(), floats(32), floats(32), floats(32), floats(32, low=0.1), is_training=False)[0])
    op("lrn", "local_response_normalization of 32×32×32×32", lambda: tf.nn.lrn(image()))
    op("bias_add", "bias_add of 32×32×32×32", lambda: tf.nn.bias_add(image(), floats(32)))
    op("bias_add_grad", "its gradient", lambda: tf.raw_ops.BiasAddGrad(out_backprop=image()))
    op("softmax", "softmax of 1024×1000", lambda: tf.nn.softmax(floats(1024, 1000)))
    op("log_softmax", "log_softmax of 1024×1000", lambda: tf.nn.log_softmax(floats(1024, 1000)))
    op("xent", "softmax_cross_entropy of 1024×1000", lambda: tf.raw_ops.SoftmaxCrossEntropyWithLogits(features=floats(1024, 1000), labels=floats(1024, 1000, low=0))[0])
    op("sparse_xent", "sparse_softmax_cross_entropy of 1024×1000", lambda: tf.raw_ops.SparseSoftmaxCrossEntropyWithLogits(features=floats(1024, 1000), labels=integers(1024, high=1000))[0])
    op("dropout", "dropout of 1M floats", lambda: tf.nn.dropout(floats(1024, 1024), rate=0.5))
    op("ctc_loss", "ctc_loss, 32 of 100 steps, 50 classes", lambda: tf.raw_ops.CTCLoss(inputs=floats(100, 32, 50), labels_indices=variable(np.array([[b, t] for b in range(32) for t in range(10)])),
                                                                                     labels_values=integers(320, high=49), sequence_length=variable(np.full(32, 100), tf.int32))[0])
    op("dilation", "dilation2d 3×3 of 16×32×32×16", lambda: tf.nn.dilation2d(floats(16, 32, 32, 16), floats(3, 3, 16), [1, 1, 1, 1], [1, 1, 1, 1], "SAME"))


@family("random numbers")
def randoms():
    for name in "uniform", "normal", "truncated_normal":
        op("random_" + name, "random %s, 1M" % name, lambda name=name: getattr(tf.random, name)([1024, 1024]))
    op("random_gamma", "random gamma, 100,000", lambda: tf.random.gamma([100000], variable(np.float32(2.5))))
    op("random_poisson", "random Poisson, 100,000", lambda: tf.random.poisson(variable(np.float32(4)), [100000]))
    op("multinomial", "multinomial, 64 of 1000 classes, 100 each", lambda: tf.random.multinomial(floats(64, 1000), 100))
    op("stateless_uniform", "stateless random uniform, 1M", lambda: tf.random.stateless_uniform([1024, 1024], integers(2)))


@family("images")
def images():
    picture = lambda: floats(8, 256, 256, 3, low=0.0)
    for method in "bilinear", "nearest_neighbor", "bicubic", "area":
        op("resize_" + method, "resize %s of 8×256×256×3 to 224×224" % method, lambda method=method: getattr(tf.image, "resize_" + method)(picture(), [224, 224]))
    op("crop_and_resize", "crop_and_resize of 64 boxes", lambda: tf.image.crop_and_resize(picture(), variable(np.random.RandomState(1).rand(64, 4).astype(np.float32)), integers(64, high=8), [64, 64]))
    op("adjust_contrast", "adjust_contrast of 8×256×256×3", lambda: tf.image.adjust_contrast(picture(), 0.7))
    op("adjust_hue", "adjust_hue of 8×256×256×3", lambda: tf.image.adjust_hue(picture(), 0.1))
    op("adjust_saturation", "adjust_saturation of 8×256×256×3", lambda: tf.image.adjust_saturation(picture(), 0.7))
    op("rgb_to_hsv", "rgb_to_hsv of 8×256×256×3", lambda: tf.image.rgb_to_hsv(picture()))
    noise = lambda: variable(np.random.RandomState(1).randint(0, 255, (256, 256, 3)).astype(np.uint8))
    op("encode_png", "encode_png of 256×256×3", lambda: tf.image.encode_png(noise()))
    op("encode_jpeg", "encode_jpeg of 256×256×3", lambda: tf.image.encode_jpeg(noise()))
    op("nms", "non_max_suppression of 2000 boxes", lambda: tf.image.non_max_suppression(variable(np.sort(np.random.RandomState(1).rand(2000, 2, 2), 1).reshape(2000, 4).astype(np.float32)), floats(2000), 100))


@family("strings")
def strings():
    op("string_join", "string_join of 20,000 and 20,000", lambda: tf.strings.join([texts(20000), texts(20000)], "-"))
    op("string_split", "string_split of 20,000", lambda: tf.string_split(texts(20000)).values)
    op("string_to_number", "string_to_number of 50,000", lambda: tf.string_to_number(variable(np.array(["%.4f" % x for x in np.random.RandomState(1).randn(50000)]))))
    op("as_string", "as_string of 50,000 floats", lambda: tf.as_string(floats(50000)))
    op("string_hash", "string_to_hash_bucket_fast of 50,000", lambda: tf.string_to_hash_bucket_fast(texts(50000), 1000))
    op("string_lower", "lower case of 50,000", lambda: tf.strings.lower(texts(50000)))
    op("regex_replace", "regex_replace of 20,000", lambda: tf.strings.regex_replace(texts(20000), "[0-9]+", "#"))
    op("substr", "substr of 50,000", lambda: tf.strings.substr(texts(50000), 1, 4))


@family("sparse tensors")
def sparse():
    def matrix(rows=10000, columns=10000, count=200000):
        random = np.random.RandomState(1)
        places = np.unique(random.randint(0, rows * columns, count))
        return tf.SparseTensor(variable(np.stack([places // columns, places % columns], 1)), floats(len(places)), [rows, columns])
    op("sparse_matmul", "sparse 10,000×10,000 with 200,000 values times 10,000×32", lambda: tf.sparse.sparse_dense_matmul(matrix(), floats(10000, 32)))
    op("sparse_add", "sparse_add, 200,000 values each", lambda: tf.sparse_add(matrix(), matrix()).values)
    op("sparse_reorder", "sparse_reorder of 200,000 values", lambda: tf.sparse.reorder(tf.SparseTensor(integers(200000, 2, high=10000, dtype=tf.int64), floats(200000), [10000, 10000])).values)
    op("sparse_to_dense", "sparse_to_dense of 200,000 values", lambda: tf.sparse.to_dense(matrix(1000, 1000, 100000)))
    op("sparse_reduce_sum", "sparse_reduce_sum of 200,000 values, rows", lambda: tf.sparse.reduce_sum(matrix(), 1))
    op("embedding_sparse", "safe_embedding_lookup_sparse of 4096 rows, 3 ids each", lambda: tf.nn.embedding_lookup_sparse(
        floats(100000, 32), tf.SparseTensor(variable(np.array([[r, c] for r in range(4096) for c in range(3)])), integers(4096 * 3, high=100000, dtype=tf.int64), [4096, 3]), None, combiner="mean"))


@family("optimizers")
def updates():
    def step(optimizer):
        variable = tf.get_variable("w", initializer=tf.constant(np.random.RandomState(1).randn(1024, 1024), tf.float32), use_resource=True)
        return optimizer.apply_gradients([(floats(1024, 1024), variable)])
    for name, make in {"momentum": lambda: tf.train.MomentumOptimizer(1e-6, 0.9), "adam": lambda: tf.train.AdamOptimizer(1e-6), "adagrad": lambda: tf.train.AdagradOptimizer(1e-6),
                       "rmsprop": lambda: tf.train.RMSPropOptimizer(1e-6), "ftrl": lambda: tf.train.FtrlOptimizer(1e-6), "adadelta": lambda: tf.train.AdadeltaOptimizer(1e-6)}.items():
        op("apply_" + name, "%s of 1M floats" % name, lambda make=make: step(make()))
    op("clip_global_norm", "clip_by_global_norm of 1M floats", lambda: tf.clip_by_global_norm([floats(1024, 1024)], 1.0)[0][0])


@family("quantisation")
def quantised():
    op("quantize", "quantize_v2 of 1M floats", lambda: tf.quantization.quantize(floats(1024, 1024), -1.0, 1.0, tf.quint8)[0])
    op("dequantize", "dequantize of 1M bytes", lambda: tf.quantization.dequantize(tf.bitcast(tf.cast(integers(1024, 1024, high=255), tf.uint8), tf.quint8), -1.0, 1.0))
    op("fake_quant", "fake_quant_with_min_max_vars of 1M floats", lambda: tf.quantization.fake_quant_with_min_max_vars(floats(1024, 1024), variable(np.float32(-1)), variable(np.float32(1))))


def write(folder, name):
    """The file of cases of one op."""
    cases = graphs.Cases(folder, "op_" + name)
    with cases.graph.as_default():
        made = OPS[name].build()
        cases.add("op", [made if isinstance(made, tf.Operation) else made.op], init=[[tf.global_variables_initializer().name]])
    return cases.write()
