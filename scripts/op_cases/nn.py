"""Matrix products, convolutions, pools, normalisation, softmax and losses."""
import numpy as np

from .table import Call, cases

I32 = np.int32
LOOSE = {"rtol": 1e-4, "atol": 1e-4}


@cases("MatMul", **LOOSE)
def mat_mul(c):
    for a in (False, True):
        for b in (False, True):
            x, y = (3, 2) if a else (2, 3), (4, 3) if b else (3, 4)
            yield Call(c.values(x), c.values(y), transpose_a=a, transpose_b=b)
            if c.full:
                x, y = (17, 9) if a else (9, 17), (21, 17) if b else (17, 21)
                yield Call(c.values(x, -1, 1), c.values(y, -1, 1), transpose_a=a, transpose_b=b, grad=False)
    yield Call(c.values((0, 3)), c.values((3, 2)))
    yield Call(c.values((2, 0)), c.values((0, 3)))
    yield Call(c.values((1, 5)), c.values((5, 1)))
    yield Call(c.values((2, 3)), c.values((2, 3)), grad=False)
    yield Call(c.values((3,)), c.values((3, 2)), grad=False)
    if c.is_float and c.full:
        yield Call(np.array([[np.nan, 1], [np.inf, 0]], c.T), c.values((2, 2)), grad=False)


@cases("BatchMatMul BatchMatMulV2", **LOOSE)
def batch_mat_mul(c):
    for a in (False, True):
        for b in (False, True):
            yield Call(c.values((2, 3, 2) if a else (2, 2, 3)), c.values((2, 4, 3) if b else (2, 3, 4)), adj_x=a, adj_y=b)
    yield Call(c.values((2, 3)), c.values((3, 2)))
    yield Call(c.values((0, 2, 3)), c.values((0, 3, 2)))
    yield Call(c.values((2, 2, 3)), c.values((2, 2, 3)), grad=False)
    yield Call(c.values((3,)), c.values((3, 2)), grad=False)
    yield Call(c.values((2, 2, 3)), c.values((3, 3, 4)), grad=False)
    if c.op == "BatchMatMulV2":
        yield Call(c.values((2, 1, 2, 3)), c.values((4, 3, 2)))
        yield Call(c.values((2, 3)), c.values((2, 3, 2)))


@cases("BatchMatMulV3", types={"*": []}, **LOOSE)
def batch_mat_mul_v3(c):
    x, y = (lambda *s: c.values(s, dtype=c.type("Ta"))), (lambda *s: c.values(s, dtype=c.type("Tb")))
    yield Call(x(2, 2, 3), y(2, 3, 4))
    yield Call(x(2, 3, 2), y(1, 4, 3), adj_x=True, adj_y=True)
    yield Call(x(2, 2), y(3, 2), grad=False)


@cases("SparseMatMul", types={"*": []}, **LOOSE)
def sparse_mat_mul(c):
    yield Call(c.values((2, 3), dtype=c.type("Ta")), c.values((3, 4), dtype=c.type("Tb")), grad=False)
    yield Call(c.values((3, 2), dtype=c.type("Ta")), c.values((4, 3), dtype=c.type("Tb")), transpose_a=True, transpose_b=True, a_is_sparse=True, grad=False)


@cases("Einsum", **LOOSE)
def einsum(c):
    for equation, shapes in (("ij,jk->ik", [(2, 3), (3, 2)]), ("bij,bjk->bik", [(2, 2, 3), (2, 3, 2)]), ("ij->ji", [(2, 3)]), ("ij->", [(2, 3)]),
                             ("ii->i", [(3, 3)]), ("i,j->ij", [(2,), (3,)]), ("...ij,...jk->...ik", [(2, 2, 3), (3, 2)]), ("i->ii", [(2,)]),
                             ("abc,cd->abd", [(2, 2, 3), (3, 2)]), ("bhqd,bhkd->bhqk", [(2, 2, 3, 4), (2, 2, 2, 4)]),
                             ("bqhd,bkhd->bhqk", [(2, 3, 2, 4), (2, 2, 2, 4)]), ("bhqk,bkhd->bqhd", [(2, 2, 3, 2), (2, 2, 2, 4)]),
                             ("ba,cb->ac", [(3, 2), (4, 3)]), ("abc,bd->dca", [(2, 3, 2), (3, 4)]), ("abc,bd->ad", [(2, 3, 2), (3, 4)])):
        yield Call([c.values(s) for s in shapes], equation=equation, static=True, grad=equation not in ("i->ii",))


@cases("BiasAdd")
def bias_add(c):
    for s in ((2, 3), (2, 2, 3), (1, 2, 2, 3), (0, 3), (1, 1, 2, 1, 3)):
        yield Call(c.values(s), c.values((3,)), data_format="NHWC")
    yield Call(c.values((2, 3, 2, 2)), c.values((3,)), data_format="NCHW")
    yield Call(c.values((2, 3, 2)), c.values((3,)), data_format="NCHW")
    yield Call(c.values((2, 3)), c.values((2,)), data_format="NHWC")
    yield Call(c.values((3,)), c.values((3,)), data_format="NHWC")
    yield Call(c.values((2, 3)), c.values((1, 3)), data_format="NHWC")


@cases("BiasAddV1")
def bias_add_v1(c):
    yield Call(c.values((2, 3)), c.values((3,)))
    yield Call(c.values((2, 2, 3)), c.values((3,)))
    yield Call(c.values((2, 3)), c.values((2,)))


@cases("BiasAddGrad", atol=1e-5)
def bias_add_grad(c):
    for s in ((2, 3), (2, 2, 3), (1, 2, 2, 3), (0, 3)):
        yield Call(c.values(s), data_format="NHWC")
    yield Call(c.values((2, 3, 2, 2)), data_format="NCHW")
    yield Call(c.values((3,)), data_format="NHWC")


CONVOLUTIONS = [  # input, filter, strides, padding, dilations
    ((1, 5, 5, 2), (3, 3, 2, 3), 1, "SAME", 1), ((2, 5, 4, 1), (2, 2, 1, 2), 1, "VALID", 1), ((1, 6, 6, 2), (3, 3, 2, 2), 2, "SAME", 1),
    ((1, 7, 6, 2), (2, 3, 2, 2), 2, "VALID", 1), ((1, 4, 4, 3), (1, 1, 3, 2), 1, "SAME", 1), ((1, 7, 7, 1), (3, 3, 1, 1), 1, "SAME", 2),
    ((1, 6, 6, 1), (2, 2, 1, 2), 1, "VALID", 2), ((1, 4, 4, 4), (3, 3, 2, 4), 1, "SAME", 1), ((0, 4, 4, 1), (2, 2, 1, 1), 1, "SAME", 1)]


def conv_attrs(stride, padding, dilation, rank=2):
    return {"strides": [1] + [stride] * rank + [1], "padding": padding, "dilations": [1] + [dilation] * rank + [1]}


@cases("Conv2D", **LOOSE)
def conv2d(c):
    for x, f, stride, padding, dilation in CONVOLUTIONS if c.full else CONVOLUTIONS[:4]:
        yield Call(c.values(x, -2, 2), c.values(f, -2, 2), **conv_attrs(stride, padding, dilation), grad=dilation == 1 and f[2] == x[3])
    if c.full:
        yield Call(c.values((1, 5, 5, 1)), c.values((3, 3, 1, 1)), strides=[1, 1, 1, 1], padding="EXPLICIT", explicit_paddings=[0, 0, 1, 0, 2, 1, 0, 0])
        yield Call(c.values((1, 5, 5, 2)), c.values((3, 3, 3, 1)), **conv_attrs(1, "SAME", 1), grad=False)
        yield Call(c.values((1, 2, 2, 1)), c.values((3, 3, 1, 1)), **conv_attrs(1, "VALID", 1), grad=False)
        yield Call(c.values((5, 5, 1)), c.values((3, 3, 1, 1)), **conv_attrs(1, "SAME", 1), grad=False)


def conv_output(x, f, stride, padding, dilation, spatial=(1, 2)):
    sizes = []
    for d in spatial:
        k = (f[d - 1] - 1) * dilation + 1
        sizes.append(-(-x[d] // stride) if padding == "SAME" else (x[d] - k) // stride + 1)
    return (x[0], *sizes, f[-1])


@cases("Conv2DBackpropInput Conv2DBackpropFilter", **LOOSE)
def conv2d_backprop(c):
    for x, f, stride, padding, dilation in CONVOLUTIONS[:5] if c.full else CONVOLUTIONS[:4]:
        out = conv_output(x, f, stride, padding, dilation)
        if c.op == "Conv2DBackpropInput":
            yield Call(np.array(x, I32), c.values(f, -2, 2), c.values(out, -2, 2), **conv_attrs(stride, padding, dilation))
        else:
            yield Call(c.values(x, -2, 2), np.array(f, I32), c.values(out, -2, 2), **conv_attrs(stride, padding, dilation))


DEPTHWISE = [((1, 5, 5, 2), (3, 3, 2, 1), 1, "SAME"), ((2, 5, 4, 2), (2, 2, 2, 2), 1, "VALID"), ((1, 6, 6, 3), (3, 3, 3, 2), 2, "SAME")]


def depthwise_output(x, f, stride, padding):
    out = conv_output(x, f, stride, padding, 1)
    return out[:3] + (f[2] * f[3],)


@cases("DepthwiseConv2dNative", **LOOSE)
def depthwise(c):
    for x, f, stride, padding in DEPTHWISE:
        yield Call(c.values(x, -2, 2), c.values(f, -2, 2), strides=[1, stride, stride, 1], padding=padding)
    yield Call(c.values((1, 4, 4, 2)), c.values((2, 2, 3, 1)), strides=[1, 1, 1, 1], padding="SAME", grad=False)


@cases("DepthwiseConv2dNativeBackpropInput DepthwiseConv2dNativeBackpropFilter", **LOOSE)
def depthwise_backprop(c):
    for x, f, stride, padding in DEPTHWISE:
        dy = c.values(depthwise_output(x, f, stride, padding), -2, 2)
        inputs = [np.array(x, I32), c.values(f, -2, 2), dy] if c.op.endswith("Input") else [c.values(x, -2, 2), np.array(f, I32), dy]
        yield Call(*inputs, strides=[1, stride, stride, 1], padding=padding)


VOLUMES = [((1, 4, 4, 3, 2), (2, 2, 2, 2, 2), 1, "SAME"), ((1, 3, 4, 4, 1), (2, 2, 2, 1, 2), 1, "VALID"), ((1, 4, 4, 4, 1), (3, 3, 3, 1, 1), 2, "SAME")]


@cases("Conv3D", **LOOSE)
def conv3d(c):
    for x, f, stride, padding in VOLUMES:
        yield Call(c.values(x, -2, 2), c.values(f, -2, 2), **conv_attrs(stride, padding, 1, 3))
    yield Call(c.values((1, 3, 3, 3, 2)), c.values((2, 2, 2, 3, 1)), **conv_attrs(1, "SAME", 1, 3), grad=False)


@cases("Conv", gradient=False, **LOOSE)
def conv(c):
    for x, f, stride, padding, dilation in CONVOLUTIONS if c.full else CONVOLUTIONS[:3]:
        yield Call(c.values(x, -2, 2), c.values(f, -2, 2), **conv_attrs(stride, padding, dilation))
    if c.T == np.int32:
        return
    for x, f, stride, padding in VOLUMES:
        yield Call(c.values(x, -2, 2), c.values(f, -2, 2), **conv_attrs(stride, padding, 1, 3))
    if c.full:
        yield Call(c.values((2, 3, 5, 5, 2)), c.values((3, 3, 2, 1)), strides=[1, 1, 1, 1], padding="VALID", batch_dims=2)
        yield Call(c.values((1, 5, 5, 1)), c.values((3, 3, 1, 1)), strides=[1, 1, 1, 1], padding="EXPLICIT", explicit_paddings=[0, 0, 1, 0, 2, 1, 0, 0])
        yield Call(c.values((0, 5, 5, 1)), c.values((3, 3, 1, 1)), strides=[1, 1, 1, 1], padding="SAME")
        yield Call(c.values((1, 5, 5, 2)), c.values((3, 3, 1, 2)), strides=[1, 1, 1, 1], padding="SAME", groups=2)
        yield Call(c.values((5, 5, 1)), c.values((3, 3, 1, 1)), strides=[1, 1, 1, 1], padding="SAME")
        yield Call(c.values((1, 2, 2, 1)), c.values((3, 3, 1, 1)), strides=[1, 1, 1, 1], padding="VALID")
        yield Call(c.values((1, 1, 5, 5)), c.values((3, 3, 1, 1)), strides=[1, 1, 1, 1], padding="SAME", data_format="CHANNELS_FIRST")


@cases("Conv3DBackpropInput Conv3DBackpropFilter Conv3DBackpropInputV2 Conv3DBackpropFilterV2", **LOOSE)
def conv3d_backprop(c):
    for x, f, stride, padding in VOLUMES:
        dy = c.values(conv_output(x, f, stride, padding, 1, (1, 2, 3)), -2, 2)
        a, b = c.values(x, -2, 2), c.values(f, -2, 2)
        attrs = {"strides": [1, stride, stride, stride, 1], "padding": padding}
        if c.op.endswith("V2"):
            sizes = lambda s: np.array(s, c.type("Tshape") if "Tshape" in c.types else I32)
            a, b = (sizes(x), b) if "Input" in c.op else (a, sizes(f))
        yield Call(a, b, dy, **attrs)


POOLS3 = [((1, 4, 4, 4, 1), 2, 2, "VALID"), ((1, 3, 4, 3, 2), 2, 1, "SAME")]
POOLS = [((1, 4, 4, 2), 2, 2, "VALID"), ((2, 5, 4, 1), 3, 1, "SAME"), ((1, 5, 5, 3), 3, 2, "SAME"), ((1, 5, 5, 1), 2, 2, "SAME")]


def pool_attrs(k, s, padding, rank=2):
    return {"ksize": [1] + [k] * rank + [1], "strides": [1] + [s] * rank + [1], "padding": padding}


def pool_output(x, k, s, padding):
    return (x[0], *[-(-d // s) if padding == "SAME" else (d - k) // s + 1 for d in x[1:-1]], x[-1])


@cases("MaxPool AvgPool")
def pool(c):
    for x, k, s, padding in POOLS:
        yield Call(c.values(x, -9, 9), **pool_attrs(k, s, padding))
    yield Call(c.values((0, 4, 4, 1)), **pool_attrs(2, 2, "SAME"), grad=False)
    yield Call(c.values((4, 4, 1)), **pool_attrs(2, 2, "SAME"), grad=False)
    yield Call(c.values((1, 2, 2, 1)), **pool_attrs(3, 1, "VALID"), grad=False)
    if c.op == "MaxPool" and c.is_float:
        x = c.values((1, 4, 6, 19), -9, 9)
        x[0, 0, 0], x[0, 1, 3], x[0, 2:, 2:4], x[0, :2, 4:], x[0, 2, 5] = np.nan, np.nan, np.nan, -np.inf, np.inf
        yield Call(x, **pool_attrs(2, 2, "VALID"), grad=False)
    if c.op == "MaxPool" and c.full and c.is_float:
        yield Call(c.values((1, 3, 3, 4)), ksize=[1, 1, 1, 2], strides=[1, 1, 1, 2], padding="VALID", grad=False)


@cases("MaxPoolV2")
def max_pool_v2(c):
    for x, k, s, padding in POOLS:
        yield Call(c.values(x, -9, 9), np.array([1, k, k, 1], I32), np.array([1, s, s, 1], I32), padding=padding)


@cases("MaxPoolGrad MaxPoolGradV2")
def max_pool_grad(c):
    for x, k, s, padding in POOLS:
        value = c.distinct(x)
        out = max_pooled(value, k, s, padding)
        size = [np.array([1, k, k, 1], I32), np.array([1, s, s, 1], I32)] if c.op.endswith("V2") else []
        attrs = {"padding": padding} if size else pool_attrs(k, s, padding)
        yield Call(value, out, c.values(out.shape), *size, **attrs, grad=False)


def max_pooled(x, k, s, padding):
    import tensorflow as tf
    rank = x.ndim - 2
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        f = tf.raw_ops.MaxPool if rank == 2 else tf.raw_ops.MaxPool3D
        return session.run(f(input=x.astype(np.float32), **pool_attrs(k, s, padding, rank))).astype(x.dtype)


@cases("MaxPoolGradGrad MaxPoolGradGradV2", gradient=False)
def max_pool_grad_grad(c):
    for x, k, s, padding in POOLS:
        value = c.distinct(x)
        out = max_pooled(value, k, s, padding)
        size = [np.array([1, k, k, 1], I32), np.array([1, s, s, 1], I32)] if c.op.endswith("V2") else []
        attrs = {"padding": padding} if size else pool_attrs(k, s, padding)
        yield Call(value, out, c.values(x), *size, **attrs)


@cases("MaxPool3DGradGrad", gradient=False)
def max_pool3d_grad_grad(c):
    for x, k, s, padding in POOLS3:
        value = c.distinct(x)
        yield Call(value, max_pooled(value, k, s, padding), c.values(x), **pool_attrs(k, s, padding, 3))


@cases("MaxPoolWithArgmax")
def max_pool_with_argmax(c):
    for include in (False, True):
        for x, k, s, padding in POOLS:
            yield Call(c.distinct(x), **pool_attrs(k, s, padding), include_batch_in_index=include)


@cases("MaxPoolGradWithArgmax")
def max_pool_grad_with_argmax(c):
    i = c.type("Targmax")
    yield Call(c.values((1, 4, 4, 1)), c.values((1, 2, 2, 1)), np.array([[[[0], [3]], [[9], [15]]]], i), **pool_attrs(2, 2, "SAME"), grad=False)


@cases("AvgPoolGrad")
def avg_pool_grad(c):
    for x, k, s, padding in POOLS:
        yield Call(np.array(x, I32), c.values(pool_output(x, k, s, padding)), **pool_attrs(k, s, padding), grad=False)




@cases("MaxPool3D AvgPool3D")
def pool3d(c):
    for x, k, s, padding in POOLS3:
        yield Call(c.values(x, -9, 9), **pool_attrs(k, s, padding, 3))


@cases("MaxPool3DGrad")
def max_pool3d_grad(c):
    for x, k, s, padding in POOLS3:
        value = c.distinct(x)
        out = max_pooled(value, k, s, padding)
        yield Call(value, out, c.values(out.shape), **pool_attrs(k, s, padding, 3), grad=False)
        value = (np.arange(np.prod(x)) * 7 // 3 % 4).reshape(x).astype(c.T)  # equal maxima; whole gradients, whose sums are exact
        out = max_pooled(value, k, s, padding)
        yield Call(value, out, np.round(c.values(out.shape).astype(np.float32)).astype(c.T), **pool_attrs(k, s, padding, 3), grad=False)


@cases("AvgPool3DGrad")
def avg_pool3d_grad(c):
    for x, k, s, padding in POOLS3:
        yield Call(np.array(x, I32), c.values(pool_output(x, k, s, padding)), **pool_attrs(k, s, padding, 3), grad=False)


@cases("LRN", **LOOSE)
def lrn(c):
    yield Call(c.values((1, 2, 2, 6)))
    yield Call(c.values((2, 1, 2, 7)), depth_radius=2, bias=2.0, alpha=0.5, beta=0.75)
    yield Call(c.values((2, 3)), grad=False)


@cases("LRNGrad", **LOOSE)
def lrn_grad(c):
    x = c.values((1, 2, 2, 6))
    yield Call(c.values((1, 2, 2, 6)), x, (x / np.array(2, c.T)).astype(c.T), depth_radius=2, bias=2.0, alpha=0.5, beta=0.75, grad=False)


def norm_inputs(c, training, x=(2, 3, 2, 3)):
    u = c.type("U") if "U" in c.types else c.T
    n = (0,) if training else (x[-1],)
    return [c.values(x), c.values((x[-1],), 0.5, 2, u), c.values((x[-1],), -1, 1, u), c.values(n, -1, 1, u), c.values(n, 0.5, 2, u)]


@cases("FusedBatchNorm FusedBatchNormV2 FusedBatchNormV3", types={"U": ["float32"]}, rtol=2e-4, atol=2e-4)
def batch_norm(c):
    for training in (True, False):
        yield Call(*norm_inputs(c, training), is_training=training, epsilon=0.001, outputs=None if training else (0, 1, 2))
    yield Call(*norm_inputs(c, True, (4, 1, 1, 5)), is_training=True, epsilon=0.01)
    inputs = norm_inputs(c, True)
    yield Call(*inputs[:3], c.values((3,), -1, 1, inputs[3].dtype), c.values((3,), 0.5, 1, inputs[3].dtype), is_training=True, exponential_avg_factor=0.5, grad=False)
    yield Call(c.values((2, 3)), *norm_inputs(c, False)[1:], is_training=False, grad=False)
    yield Call(*inputs[:2], c.values((2,), -1, 1, inputs[3].dtype), *inputs[3:], is_training=True, grad=False)


@cases("FusedBatchNormGrad FusedBatchNormGradV2 FusedBatchNormGradV3", types={"U": ["float32"]}, rtol=5e-4, atol=5e-4, gradient=False)
def batch_norm_grad(c):
    u = c.type("U") if "U" in c.types else c.T
    more = [np.zeros((0,), u)] if c.op.endswith("V3") else []
    scale = np.float32 if c.op != "FusedBatchNormGrad" else c.T
    for training in (True, False):
        yield Call(c.values((2, 2, 2, 3)), c.values((2, 2, 2, 3)), c.values((3,), 0.5, 2, scale), c.values((3,), -1, 1, u), c.values((3,), 0.5, 2, u), *more,
                   is_training=training, epsilon=0.001)
        yield Call(c.values((0, 2, 2, 3)), c.values((0, 2, 2, 3)), c.values((3,), 0.5, 2, scale), np.full((3,), np.nan, u), np.full((3,), np.nan, u), *more, is_training=training)


@cases("Softmax LogSoftmax")
def softmax(c):
    for s in ((3,), (2, 3), (2, 2, 3), (0, 3), (2, 0), (4, 19)):
        yield Call(c.values(s))
    yield Call(c.values((2, 3), 50, 90))
    yield Call(c.values(()), grad=False)
    if c.full:
        yield Call(np.array([[np.inf, 1], [-np.inf, 1], [np.nan, 1], [-np.inf, -np.inf]], c.T), grad=False)


@cases("SoftmaxCrossEntropyWithLogits")
def cross_entropy(c):
    for s, t in (((2, 3), (2, 3)), ((1, 4), (1, 4)), ((0, 3), (0, 3)), ((4, 17), (4, 17)), ((2, 3), (1, 3))):
        labels = c.values(t, 0, 1)
        yield Call(c.values(s), labels)
    yield Call(c.values((2, 3)), c.values((2, 2)), grad=False)
    yield Call(c.values((3,)), c.values((3,)), grad=False)


@cases("SparseSoftmaxCrossEntropyWithLogits")
def sparse_cross_entropy(c):
    i = c.type("Tlabels")
    yield Call(c.values((3, 4)), np.array([0, 3, 1], i))
    yield Call(c.values((0, 4)), np.array([], i))
    yield Call(c.values((2, 4)), np.array([0, 4], i), grad=False)
    yield Call(c.values((2, 4)), np.array([-1, 0], i), grad=False)
    yield Call(c.values((2, 4)), np.array([1], i), grad=False)
    yield Call(c.values((4,)), np.array([1], i), grad=False)


@cases("CTCLoss", double=1e-6, **LOOSE)
def ctc_loss(c):
    indices, labels = np.array([[0, 0], [0, 1], [1, 0]], np.int64), np.array([1, 2, 0], I32)
    yield Call(c.values((5, 2, 4)), indices, labels, np.array([5, 4], I32))
    yield Call(c.values((5, 2, 4)), indices, labels, np.array([3, 2], I32))
    yield Call(c.values((5, 2, 4)), indices, labels, np.array([5, 9], I32), grad=False)
    yield Call(c.values((5, 2, 4)), indices, labels, np.array([1, 1], I32), grad=False)
    yield Call(c.values((5, 2, 4)), indices, labels, np.array([1, 1], I32), ignore_longer_outputs_than_inputs=True, grad=False)
    yield Call(c.values((5, 2, 4)), indices, np.array([1, 1, 0], I32), np.array([5, 4], I32), preprocess_collapse_repeated=True, grad=False)
    for ignore in (False, True):
        more = dict(ignore_longer_outputs_than_inputs=ignore, grad=False)
        yield Call(c.values((5, 2, 4)), indices, np.array([1, 1, 0], I32), np.array([1, 4], I32), preprocess_collapse_repeated=True, **more)
        yield Call(c.values((5, 2, 4)), indices, np.array([1, 3, 0], I32), np.array([1, 4], I32), **more)
        yield Call(c.values((5, 2, 4)), indices[:2], labels[:2], np.array([5, 4], I32), **more)


@cases("CTCGreedyDecoder")
def ctc_greedy(c):
    yield Call(c.values((5, 2, 4)), np.array([5, 3], I32), merge_repeated=False)
    yield Call(c.values((5, 2, 4)), np.array([5, 3], I32), merge_repeated=True)
    yield Call(c.values((5, 2, 4)), np.array([5, 3], I32), blank_index=0)
    yield Call(c.values((5, 2, 4)), np.array([5, 6], I32))
    yield Call(c.values((5, 2, 4)), np.array([-1, 3], I32))


@cases("CTCBeamSearchDecoder", double=1e-6)
def ctc_beam(c):
    yield Call(c.values((5, 2, 4)), np.array([5, 3], I32), beam_width=8, top_paths=2, merge_repeated=False)
    yield Call(c.values((4, 1, 3)), np.array([4], I32), beam_width=4, top_paths=1, merge_repeated=True)
    yield Call(c.values((4, 2, 3)), np.array([-2, 4], I32), beam_width=4, top_paths=1)
    yield Call(c.values((4, 2, 3)), np.array([-2, 4], I32), beam_width=4, top_paths=2)


@cases("Dilation2D", **LOOSE)
def dilation(c):
    yield Call(c.values((1, 4, 4, 2)), c.values((2, 2, 2)), strides=[1, 1, 1, 1], rates=[1, 1, 1, 1], padding="SAME")
    yield Call(c.values((1, 5, 5, 1)), c.values((2, 2, 1)), strides=[1, 2, 2, 1], rates=[1, 2, 2, 1], padding="VALID")


@cases("Dilation2DBackpropInput Dilation2DBackpropFilter", **LOOSE)
def dilation_grad(c):
    yield Call(c.values((1, 4, 4, 2)), c.values((2, 2, 2)), c.values((1, 4, 4, 2)), strides=[1, 1, 1, 1], rates=[1, 1, 1, 1], padding="SAME")


ACTIVATIONS = [[], ["Relu"], ["Relu6"], ["Elu"], ["LeakyRelu"]]


@cases("_FusedMatMul", gradient=False, **LOOSE)
def fused_mat_mul(c):
    for after in ACTIVATIONS + [["Tanh"], ["Sigmoid"]]:
        yield Call(c.values((2, 3)), c.values((3, 4)), [c.values((4,))], fused_ops=["BiasAdd"] + after)
    yield Call(c.values((3, 2)), c.values((4, 3)), [c.values((4,))], fused_ops=["BiasAdd"], transpose_a=True, transpose_b=True)
    yield Call(c.values((2, 3)), c.values((3, 4)), [c.values((4,))], fused_ops=["BiasAdd", "LeakyRelu"], leakyrelu_alpha=0.75)
    yield Call(c.values((0, 3)), c.values((3, 4)), [c.values((4,))], fused_ops=["BiasAdd", "Relu"])
    yield Call(c.values((2, 3)), c.values((3, 0)), [c.values((0,))], fused_ops=["BiasAdd", "Relu"])
    for a, b, bias in (((2, 3), (4, 4), (4,)), ((2, 3, 1), (3, 4), (4,)), ((2, 3), (3,), (4,)), ((2, 3), (3, 4), (1, 4)), ((2, 3), (3, 4), ())):
        yield Call(c.values(a), c.values(b), [c.values(bias)], fused_ops=["BiasAdd"])
    yield Call(c.values((2, 3)), c.values((3, 4)), [c.values((4,))], fused_ops=[])
    yield Call(c.values((2, 3)), c.values((3, 4)), [c.values((4,))], fused_ops=["BiasAdd", "Nonsense"])
    yield Call(c.values((2, 3)), c.values((3, 4)), [c.values((4,)), c.values((4,))], fused_ops=["BiasAdd"])


@cases("_FusedConv2D", types={"T": ["float32", "float64", "int8", "qint8"]}, gradient=False, **LOOSE)
def fused_conv(c):
    if c.name in ("int8", "qint8"):
        yield from fused_byte_conv(c)
        return
    attrs = dict(strides=[1, 1, 1, 1], padding="SAME")
    image, filter_, bias = c.values((2, 5, 4, 2)), c.values((3, 3, 2, 3)), c.values((3,))
    norm = [c.values((3,), 1, 2), c.values((3,)), c.values((3,)), c.values((3,), 1, 4)]
    for after in ACTIVATIONS:
        yield Call(image, filter_, [bias], [], fused_ops=["BiasAdd"] + after, num_args=1, **attrs)
        yield Call(image, filter_, norm, [], fused_ops=["FusedBatchNorm"] + after, num_args=4, epsilon=0.01, **attrs)
    for more in (dict(strides=[1, 2, 1, 1], padding="VALID"), dict(strides=[1, 1, 1, 1], padding="SAME", dilations=[1, 2, 2, 1]),
                 dict(strides=[1, 2, 2, 1], padding="EXPLICIT", explicit_paddings=[0, 0, 2, 1, 0, 3, 0, 0])):
        yield Call(image, filter_, [bias], [], fused_ops=["BiasAdd", "Relu"], num_args=1, **more)
    yield Call(image, c.values((1, 1, 2, 3)), [bias], [], fused_ops=["BiasAdd"], num_args=1, **attrs)
    yield Call(c.values((2, 3, 3, 2)), filter_, [bias], [], fused_ops=["BiasAdd"], num_args=1, strides=[1, 1, 1, 1], padding="VALID")
    yield Call(c.values((0, 5, 4, 2)), filter_, [bias], [], fused_ops=["BiasAdd"], num_args=1, **attrs)
    for x, f, b in (((5, 4, 2), (3, 3, 2, 3), (3,)), ((2, 5, 4, 3), (3, 3, 2, 3), (3,)), ((2, 5, 4, 2), (3, 3, 2), (3,)), ((2, 5, 4, 2), (3, 3, 2, 3), (1, 3))):
        yield Call(c.values(x), c.values(f), [c.values(b)], [], fused_ops=["BiasAdd"], num_args=1, **attrs)
    yield Call(image, filter_, norm[:3], [], fused_ops=["FusedBatchNorm"], num_args=3, **attrs)
    yield Call(image, filter_, [bias], [], fused_ops=["BiasAdd", "Nonsense"], num_args=1, **attrs)
    yield Call(image, filter_, [bias], [], fused_ops=[], num_args=1, **attrs)


def fused_byte_conv(c):
    """Bytes times bytes, to bytes again."""
    small = lambda shape: c.values(shape, -30, 30)
    for after in ([], ["Relu"]):
        for padding, stride, filter_ in (("SAME", 1, (3, 3, 2, 4)), ("VALID", 2, (3, 2, 2, 4)), ("SAME", 1, (1, 1, 2, 4)), ("VALID", 1, (5, 4, 2, 4))):
            attrs = dict(fused_ops=["BiasAdd"] + after, num_args=2, strides=[1, stride, stride, 1], padding=padding)
            rows, columns = [(n if padding == "SAME" else n - k + 1) for n, k in ((5, filter_[0]), (4, filter_[1]))]
            out = (2, -(-rows // stride), -(-columns // stride), 4)
            x, f, bias = small((2, 5, 4, 2)), small(filter_), c.values((4,), -90, 90, np.float32)
            yield Call(x, f, [bias, small(out)], [np.float32(0.0625), np.float32(0.5)], **attrs)
            yield Call(x, f, [bias, small((0,))], [np.float32(0.125), np.float32(0)], **attrs)
            yield Call(x, f, [bias, small((0,))], [c.values((4,), 0, 1, np.float32), np.float32(0)], **attrs)
    attrs = dict(fused_ops=["BiasAdd"], num_args=2, strides=[1, 1, 1, 1], padding="SAME")
    x, f, bias = small((2, 5, 4, 2)), small((3, 3, 2, 4)), c.values((4,), -90, 90, np.float32)
    scales = [np.float32(0.125), np.float32(0)]
    yield Call(small((2, 5, 4, 4)), f, [bias, small((0,))], scales, **attrs)
    yield Call(small((5, 4, 4)), f, [bias, small((0,))], scales, **attrs)
    yield Call(x, f, [bias, small((0,))], scales, **dict(attrs, dilations=[1, 2, 2, 1]))
    yield Call(x, f, [bias, small((0,))], scales, **dict(attrs, fused_ops=["BiasAdd", "Relu6"]))
    yield Call(x, f, [bias, small((0,))], scales, **dict(attrs, fused_ops=["BiasAdd", "Nonsense"]))


@cases("_UnaryOpsComposition", gradient=False, **LOOSE)
def unary_composition(c):
    for names in (["Sqrt"], ["Abs", "Sqrt", "Neg"], ["Relu6", "Tanh"], ["Elu", "Exp", "Log"], ["Square", "Rsqrt", "Sigmoid", "Inv"], ["Selu", "Relu", "Ceil"], ["Nonsense"]):
        yield Call(c.values((2, 5), 0.5, 6), op_names=names)
        yield Call(c.values((), 0.5, 6), op_names=names)
        yield Call(c.values((0, 3)), op_names=names)


@cases("FractionalMaxPool FractionalAvgPool", rtol=1e-4, atol=1e-4)
def fractional_pool(c):
    for pseudo in (True, False):
        for overlapping in (True, False):
            for shape, ratio in (((2, 7, 6, 2), [1.0, 1.5, 1.3, 1.0]), ((1, 9, 4, 1), [1.0, 2.25, 1.0, 1.0]), ((1, 6, 6, 1), [1.0, 2.0, 3.0, 1.0])):
                yield Call(c.values(shape, -9, 9), pooling_ratio=ratio, pseudo_random=pseudo, overlapping=overlapping, deterministic=True, seed=7, seed2=11)
    x = c.values((1, 6, 5, 1))
    yield Call(x, pooling_ratio=[1.0, 1.5, 1.3, 1.0], seed=3, seed2=5)
    yield Call(x[0], pooling_ratio=[1.0, 1.5, 1.3, 1.0], seed=3, seed2=5)
    yield Call(x, pooling_ratio=[1.0, 8.0, 1.3, 1.0], seed=3, seed2=5, grad=False)
    yield Call(x[:, :0], pooling_ratio=[1.0, 1.5, 1.3, 1.0], seed=3, seed2=5, grad=False)


@cases("FractionalMaxPoolGrad", gradient=False)
def fractional_max_pool_grad(c):
    x, i = c.distinct((2, 5, 4, 2)), lambda *a: np.array(a, np.int64)
    rows, cols = i(0, 2, 3, 5), i(0, 1, 4)
    pooled = lambda more: np.array([[[x[b, rows[h]:rows[h + 1] + more, cols[w]:cols[w + 1] + more].max((0, 1)) for w in range(2)] for h in range(3)] for b in range(2)], c.T)
    for overlapping in (True, False):
        yield Call(x, pooled(int(overlapping)), c.values((2, 3, 2, 2)), rows, cols, overlapping=overlapping)


@cases("FractionalAvgPoolGrad", rtol=1e-4, atol=1e-4, gradient=False)
def fractional_avg_pool_grad(c):
    i = lambda *a: np.array(a, np.int64)
    for overlapping in (True, False):
        yield Call(i(2, 5, 4, 2), c.values((2, 3, 2, 2), -99, 99), i(0, 2, 3, 5), i(0, 1, 4), overlapping=overlapping)
    yield Call(i(2, 5, 4), c.values((2, 3, 2, 2)), i(0, 2, 3, 5), i(0, 1, 4))
    yield Call(i(2, 5, 4, 2), c.values((3, 2, 2)), i(0, 2, 3, 5), i(0, 1, 4))


@cases("IsotonicRegression", rtol=1e-3, atol=1e-3)
def isotonic_regression(c):
    yield Call(c.values((3, 7), -9, 9), static=True)
    yield Call(c.distinct((2, 5)), static=True)
    yield Call(c.values((4,)), grad=False)
    yield Call(c.values((2, 3, 4)), grad=False)
    yield Call(np.zeros((0, 3), c.T), grad=False)
    yield Call(np.zeros((3, 0), c.T), grad=False)


# One image: of several, TensorFlow gives rows of the first one for all.
@cases("FusedPadConv2D", gradient=False, rtol=1e-3, atol=1e-3)
def fused_pad_conv(c):
    attrs = dict(mode="REFLECT", strides=[1, 1, 1, 1], padding="VALID")
    for mode, stride, padding in (("REFLECT", 1, "VALID"), ("SYMMETRIC", 2, "SAME"), ("SYMMETRIC", 1, "SAME")):
        yield Call(c.values((1, 5, 4, 3)), np.array([[0, 0], [2, 1], [0, 3], [0, 0]], I32), c.values((3, 2, 3, 4), -1, 1), mode=mode, strides=[1, stride, stride, 1], padding=padding, static=True)
    image, filter_ = c.values((1, 4, 4, 2)), c.values((2, 2, 2, 1), -1, 1)
    for pads in ([[0, 0]] * 4, [[0, 0], [4, 0], [0, 0], [0, 0]], [[1, 0], [0, 0], [0, 0], [0, 0]], [[0, 0], [0, 0], [0, 0], [0, 1]], [[0, 0], [-1, 0], [0, 0], [0, 0]]):
        yield Call(image, np.array(pads, I32), filter_, **attrs, static=True)
    yield Call(c.values((0, 4, 4, 2)), np.zeros((4, 2), I32), filter_, **attrs, static=True)


@cases("FusedResizeAndPadConv2D", gradient=False, rtol=1e-3, atol=1e-3, double=1e-5)
def fused_resize_pad_conv(c):
    for mode, stride, padding, corners in (("REFLECT", 1, "VALID", False), ("SYMMETRIC", 2, "SAME", True), ("SYMMETRIC", 1, "SAME", False)):
        yield Call(c.values((1, 5, 4, 3)), np.array([7, 6], I32), np.array([[0, 0], [2, 1], [0, 3], [0, 0]], I32), c.values((3, 2, 3, 4), -1, 1), mode=mode, strides=[1, stride, stride, 1],
                   padding=padding, resize_align_corners=corners, static=True)
    attrs = dict(mode="REFLECT", strides=[1, 1, 1, 1], padding="VALID")
    image, filter_ = c.values((1, 4, 4, 2)), c.values((2, 2, 2, 1), -1, 1)
    for size in ([2, 3], [0, 3], [-1, 3]):
        yield Call(image, np.array(size, I32), np.zeros((4, 2), I32), filter_, **attrs, static=True)


@cases("ApproxTopK")
def approx_top_k(c):
    yield Call(c.distinct((3, 7)), k=3, static=True)
    yield Call(c.distinct((2, 2, 5)), k=5, recall_target=0.5, aggregate_to_topk=False, static=True)
    yield Call(c.distinct((4,)), k=0, grad=False, static=True)
    yield Call(c.distinct((4,)), k=2, reduction_input_size_override=9, grad=False, static=True)
    yield Call(c.distinct((2, 4)), k=2, is_max_k=False, grad=False, static=True)
    yield Call(c.distinct((2, 4)), k=2, reduction_dimension=0, grad=False, static=True)
