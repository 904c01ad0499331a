"""Ragged tensors; ops that write in place, fingerprints, formats, the n-th element, states of generators."""
import numpy as np
import tensorflow as tf

from .table import PLAIN, Call, cases, program

raw = tf.raw_ops
I32, I64 = np.int32, np.int64


@cases("RaggedRange", gradient=False)
def ragged_range(c):
    v = lambda *a: np.array(a, c.T)
    yield Call(v(0, 2, 5), v(3, 2, 9), v(1, 1, 2))
    yield Call(v(0)[0], v(3, 0), v(1)[0])
    yield Call(v(5), v(0), v(-2))
    yield Call(v(0), v(3), v(0))
    yield Call(v(0, 1), v(3, 4, 5), v(1))


@cases("RaggedGather")
def ragged_gather(c):
    i, s, t = c.type("Tindices"), c.type("Tsplits"), c.type("Tvalues")
    splits = np.array([0, 2, 2, 5], s)
    for indices in ([2, 0], [1], [], [[0, 2], [1, 0]], [3], [-1]):
        indices = np.array(indices, i)
        yield Call([splits], c.values((5,), dtype=t), indices, OUTPUT_RAGGED_RANK=indices.ndim)
    yield Call([np.array([0, 2, 3], s), splits], c.values((5, 2), dtype=t), np.array([1, 0], i), OUTPUT_RAGGED_RANK=2)
    for wrong in ([0, 2, 9], [0, 4, 2], [1, 2], [0, 2], [2, 5]):
        yield Call([np.array(wrong, s)], c.values((5,), dtype=t), np.array([0], i), OUTPUT_RAGGED_RANK=1, grad=False)


@cases("RaggedTensorToSparse", gradient=False)
def ragged_to_sparse(c):
    s = c.type("Tsplits")
    yield Call([np.array([0, 2, 2, 5], s)], c.values((5,)))
    yield Call([np.array([0, 2, 3], s), np.array([0, 1, 1, 4], s)], c.values((4,)))
    yield Call([np.array([0, 2, 5], s)], c.values((5, 2)))
    yield Call([np.array([0, 2, 9], s)], c.values((5,)))
    yield Call([np.array([1, 2, 5], s)], c.values((5,)))
    for wrong in ([], [0, 2], [0, 4, 2], [0, 3, 2, 5]):
        yield Call([np.array(wrong, s)], c.values((5,)))


@cases("RaggedTensorToTensor")
def ragged_to_tensor(c):
    i, s = c.type("Tindex"), c.type("Tshape")
    splits = ["ROW_SPLITS"]
    for shape in ([-1, -1], [3, 4], [2, 1], [-1, 2]):
        yield Call(np.array(shape, s), c.values((5,)), c.values(()), [np.array([0, 2, 2, 5], i)], row_partition_types=splits)
    yield Call(np.array([-1, -1, 2], s), c.values((5, 2)), c.values((2,)), [np.array([0, 2, 2, 5], i)], row_partition_types=splits)
    yield Call(np.array([-1, -1], s), c.values((4,)), c.values(()), [np.array(3, i), np.array([0, 0, 2, 2], i)], row_partition_types=["FIRST_DIM_SIZE", "VALUE_ROWIDS"])


@program("RaggedTensorToVariant RaggedTensorFromVariant", types=PLAIN)
def ragged_variants(p):
    x, s = p.placeholder("x"), p.placeholder("s", tf.int64)
    whole = raw.RaggedTensorToVariant(rt_nested_splits=[s], rt_dense_values=x, batched_input=False)
    rows = raw.RaggedTensorToVariant(rt_nested_splits=[s], rt_dense_values=x, batched_input=True)
    one = raw.RaggedTensorFromVariant(encoded_ragged=whole, input_ragged_rank=1, output_ragged_rank=1, Tvalues=p.dtype, Tsplits=tf.int64)
    all_of = raw.RaggedTensorFromVariant(encoded_ragged=rows, input_ragged_rank=0, output_ragged_rank=1, Tvalues=p.dtype, Tsplits=tf.int64)
    second = raw.RaggedTensorFromVariant(encoded_ragged=rows[2], input_ragged_rank=-1, output_ragged_rank=0, Tvalues=p.dtype, Tsplits=tf.int64)
    count = tf.shape(rows)
    feeds = {x: p.values((5,)), s: np.array([0, 2, 2, 5], I64)}
    p.run([*one.output_nested_splits, one.output_dense_values], feeds)
    p.run([*all_of.output_nested_splits, all_of.output_dense_values, count], feeds)
    p.run([second.output_dense_values], feeds)
    for wrong in ([], [0, 2], [0, 2, 9], [1, 5], [0, 3, 2, 5], [[0, 5]]):
        p.run([count], {x: p.values((5,)), s: np.array(wrong, I64)})


@program("RaggedTensorToVariantGradient", types=["float32", "float64", "float16"])
def ragged_variant_gradient(p):
    x, s = p.placeholder("x"), p.placeholder("s", tf.int64)
    grads = raw.RaggedTensorToVariant(rt_nested_splits=[s], rt_dense_values=x, batched_input=True)
    back = raw.RaggedTensorToVariantGradient(encoded_ragged_grad=grads, row_splits=s, dense_values_shape=tf.shape(x), Tvalues=p.dtype)
    p.run([back], {x: p.values((5,)), s: np.array([0, 2, 2, 5], I64)})
    p.run([back], {x: p.values((5, 2)), s: np.array([0, 2, 2, 5], I64)})


@cases("Fingerprint", gradient=False)
def fingerprint(c):
    yield Call(c.values((3, 2)), np.array(b"farmhash64", object))
    yield Call(c.values((2,)), np.array(b"farmhash64", object))
    yield Call(c.values(()), np.array(b"farmhash64", object))
    yield Call(c.values((2,)), np.array(b"other", object))


@cases("Empty", gradient=False)
def empty(c):
    yield Call(np.array([2, 3], I32), init=True)
    yield Call(np.array([0], I32), init=True)
    yield Call(np.array([-1], I32), init=True)


@cases("InplaceUpdate InplaceAdd InplaceSub", types={"T": [t for t in PLAIN if t not in ("string", "bool")]}, gradient=False)
def inplace(c):
    yield Call(c.values((4, 2), 0, 4), np.array([2, 0], I32), c.values((2, 2), 0, 4))
    yield Call(c.values((4, 2), 0, 4), np.array([-1], I32), c.values((1, 2), 0, 4))
    yield Call(c.values((4, 2), 0, 4), np.array([1, 1], I32), c.values((1, 2), 0, 4))


@cases("DataFormatDimMap DataFormatVecPermute", gradient=False)
def data_format(c):
    v = lambda *a: np.array(a, c.T)
    x = v(0, 1, 2, 3) if c.op == "DataFormatDimMap" else v(7, 4, 9, 3)
    yield Call(x, src_format="NHWC", dst_format="NCHW")
    yield Call(x, src_format="NCHW", dst_format="NHWC")
    if c.op == "DataFormatDimMap":
        yield Call(v(-1, -4, 2), src_format="NHWC", dst_format="NCHW")
        yield Call(v(4), src_format="NHWC", dst_format="NCHW")
    else:
        yield Call(np.array([[1, 2], [3, 4], [5, 6], [7, 8]], c.T), src_format="NHWC", dst_format="NCHW")
        yield Call(v(1, 2), src_format="NHWC", dst_format="NCHW")
        yield Call(v(1, 2, 3), src_format="NHWC", dst_format="NCHW")
        yield Call(np.array([[1, 2], [3, 4], [5, 6]], c.T), src_format="NHWC", dst_format="NCHW")
    for src, dst in (("NH", "HN"), ("NHWC", "NCDHW"), ("NHWC", ""), ("1234", "1253"), ("1233", "1233"), ("1233", "1234")):
        yield Call(x, src_format=src, dst_format=dst)


@cases("NthElement")
def nth_element(c):
    for reverse in (False, True):
        for n in (0, 2, 4):
            yield Call(c.distinct((5,)), I32(n), reverse=reverse)
        yield Call(c.distinct((2, 5)), I32(1), reverse=reverse)
    yield Call(c.distinct((5,)), I32(5), grad=False)
    yield Call(c.distinct((5,)), I32(-1), grad=False)


@cases("UnsortedSegmentJoin", gradient=False)
def segment_join(c):
    i, n = c.type("Tindices"), c.type("Tnumsegments")
    words = np.array([b"a", b"bc", b"", b"d"], object)
    for separator in ("", "-"):
        yield Call(words, np.array([1, 0, 1, 1], i), np.array(3, n), separator=separator)
    yield Call(words, np.array([1, -1, 1, 0], i), np.array(2, n))
    yield Call(words, np.array([1, 0, 1, 5], i), np.array(3, n))
    yield Call(words.reshape(2, 2), np.array([1, 0], i), np.array(2, n))
    for ids in ([], [0, 1, 0], [[0, 1], [1, 0], [0, 0]], [[[0]]], 0):
        yield Call(words.reshape(2, 2), np.array(ids, i), np.array(2, n))
    yield Call(words, np.array([0, 0, 0, 0], i), np.array(-1, n))
    yield Call(words, np.array([0, 0, 0, 0], i), np.array([1], n))
    yield Call(words[:0], np.array([], i), np.array(3, n))


@cases("RngSkip", gradient=False)
def rng_skip(c):
    yield Call(np.array([3, 9, 77], I64), I64(1), I64(5))
    yield Call(np.array([-1, 9, 77], I64), I64(1), I64(5))
    yield Call(np.array([3], I64), I64(1), I64(5))


@cases("RngReadAndSkip", gradient=False)
def rng_read_and_skip(c):
    yield Call(np.array([3, 9, 77], I64), I32(1), np.uint64(5))
    yield Call(np.array([3], I64), I32(1), np.uint64(5))
