"""The breadth of TensorFlow's Python library, a row for each thing it does, evaluated on Rill and on TensorFlow."""
import numpy as np
import tensorflow as tf2
import tensorflow.compat.v1 as tf

from client_programs import table

R = np.random.RandomState(7)
F = R.randn(3, 4).astype(np.float32)
G = R.rand(3, 4).astype(np.float32) + 0.1
I = R.randint(-5, 9, [3, 4]).astype(np.int32)
M = (R.randn(2, 3, 3) + 3 * np.eye(3)).astype(np.float32)
W = np.array([1e-5, 0.1, 0.3, 0.7, 1.0, 1.4, 1.6, 2.0, 2.9, 5.0, 11.0, 39.0, 41.0, 100.0])
S = tf.SparseTensorValue(np.array([[0, 1], [1, 0], [2, 3]]), np.array([1.0, -2.0, 3.0], np.float32), np.array([3, 4]))
IMAGE = R.rand(2, 8, 6, 3).astype(np.float32)


def sparse():
    return tf.SparseTensor(S.indices, S.values, S.dense_shape)


MATH = {
    "special": lambda: [f(x) for x in (W, -W, W.astype(np.float32)) for f in (tf.math.special.dawsn, tf.math.special.expint, tf.math.special.fresnel_cos, tf.math.special.fresnel_sin, tf.math.special.spence)],
    "bessel_more": lambda: [f(x) for x in (W, -W) for f in (tf.math.special.bessel_j0, tf.math.special.bessel_j1, tf.math.special.bessel_k0, tf.math.special.bessel_k1, tf.math.special.bessel_k0e, tf.math.special.bessel_k1e, tf.math.special.bessel_y0, tf.math.special.bessel_y1)],
    "bessel": lambda: [tf.math.bessel_i0(F), tf.math.bessel_i0e(F), tf.math.bessel_i1(F), tf.math.bessel_i1e(F)],
    "nth_element": lambda: [tf.raw_ops.NthElement(input=F, n=1), tf.raw_ops.NthElement(input=I, n=2, reverse=True)],
    "accumulate_n": lambda: tf.math.accumulate_n([F, F, F]),
    "add_n": lambda: tf.add_n([F, G]),
    "angle": lambda: tf.math.angle(tf.complex(F, G)),
    "argmax_axes": lambda: [tf.argmax(F, a) for a in (0, 1, -1)],
    "argsort": lambda: [tf.argsort(F, direction="DESCENDING"), tf.argsort(I, axis=0, stable=True), tf.sort(F)],
    "betainc": lambda: tf.math.betainc(G, G + 1.0, G / 2.0),
    "bincount": lambda: [tf.math.bincount(np.abs(I).ravel()), tf.math.bincount([1, 2, 2], weights=[0.5, 1.0, 2.0], minlength=5, maxlength=6)],
    "clip": lambda: [tf.clip_by_value(F, -0.5, 0.5), tf.clip_by_norm(F, 1.0), tf.clip_by_norm(F, 1.0, axes=[1]), tf.clip_by_average_norm(F, 0.2)],
    "clip_by_global_norm": lambda: tf.clip_by_global_norm([F, None, tf.IndexedSlices(tf.constant(G), tf.constant([0, 1, 1]))], 1.5),
    "confusion_matrix": lambda: tf.math.confusion_matrix([0, 1, 2, 1], [0, 2, 2, 1], weights=[1, 2, 3, 4]),
    "count_nonzero": lambda: [tf.math.count_nonzero(I), tf.math.count_nonzero(I, axis=1, keepdims=True), tf.math.count_nonzero(["a", "", "c"])],
    "cross": lambda: tf.linalg.cross(F[:, :3], G[:, :3]),
    "cumsum": lambda: [tf.cumsum(F), tf.cumsum(F, 1, exclusive=True), tf.cumsum(I, reverse=True), tf.cumprod(F, 1), tf.math.cumulative_logsumexp(F)],
    "divide_no_nan": lambda: [tf.math.divide_no_nan(F, np.zeros_like(F)), tf.math.multiply_no_nan(np.full_like(F, np.nan), np.zeros_like(F)), tf.math.reciprocal_no_nan([0.0, 2.0])],
    "erf": lambda: [tf.erf(F), tf.erfc(F), tf.math.erfinv(F / 5.0), tf.math.erfcinv(G), tf.math.ndtri(G / 2.0)],
    "floor_family": lambda: [tf.floor(F), tf.ceil(F), tf.round(F * 3), tf.rint(F * 3), tf.sign(F), tf.math.floormod(I, 3), tf.math.floordiv(I, 3), tf.truncatediv(I, 3), tf.truncatemod(I, 3)],
    "gammas": lambda: [tf.lgamma(G), tf.digamma(G), tf.igamma(G, G), tf.igammac(G, G), tf.polygamma(1.0 + 0 * G, G), tf.zeta(G + 1.5, G)],
    "in_top_k": lambda: tf.math.in_top_k(F, [0, 1, 2], 2),
    "integers": lambda: [I // 2 + tf.constant(I) % 3, tf.bitwise.bitwise_and(I, 3), tf.bitwise.bitwise_xor(I, 5), tf.bitwise.left_shift(I, 2), tf.bitwise.right_shift(I, 1), tf.bitwise.invert(I)],
    "invert_permutation": lambda: tf.math.invert_permutation([2, 0, 1]),
    "is_family": lambda: [tf.is_nan([1.0, np.nan]), tf.is_inf([np.inf, 1.0]), tf.is_finite([np.inf, 1.0]), tf.math.is_non_decreasing([1, 1, 2]), tf.is_strictly_increasing([1, 1])],
    "l2_normalize": lambda: [tf.math.l2_normalize(F, 1), tf.norm(F), tf.norm(F, 1, axis=0), tf.norm(F, np.inf, axis=1)],
    "lbeta": lambda: tf.math.lbeta(G),
    "log_family": lambda: [tf.log(G), tf.log1p(G), tf.expm1(F), tf.log_sigmoid(F), tf.math.xlogy(G, G), tf.math.xlog1py(G, G), tf.math.xdivy(G, G)],
    "logical": lambda: [tf.logical_and(F > 0, G > 0.5), tf.logical_xor(F > 0, G > 0.5), tf.logical_not(F > 0), tf.reduce_all(F > 0, 1), tf.reduce_any(F > 0, 0)],
    "matmul_forms": lambda: [tf.matmul(F, G, transpose_b=True), tf.matmul(M, M, adjoint_a=True), tf.matmul(F, G, a_is_sparse=True, transpose_a=True), tf.linalg.matvec(M, F[:2, :3])],
    "matmul_integers": lambda: [tf.matmul(I, I, transpose_b=True), tf.matmul(I.astype(np.int64), I.astype(np.int64), transpose_a=True)],
    "nextafter": lambda: tf.math.nextafter(F.astype(np.float64), G.astype(np.float64)),
    "polyval": lambda: tf.math.polyval([F, G, F], G),
    "pow": lambda: [tf.pow(G, F), tf.pow(I, 2), tf.square(F), tf.squared_difference(F, G), tf.rsqrt(G), tf.math.rsqrt(G.astype(np.float64))],
    "reduce_family": lambda: [f(F, axis=a, keepdims=k) for f in (tf.reduce_sum, tf.reduce_mean, tf.reduce_max, tf.reduce_min, tf.reduce_prod, tf.reduce_logsumexp) for a in (None, 0, [1], [0, 1], []) for k in (True, False)],
    "reduce_deviation": lambda: [tf.math.reduce_std(F), tf.math.reduce_variance(F, 0), tf.math.reduce_euclidean_norm(F, 1)],
    "segment_family": lambda: [f(F, [0, 0, 2]) for f in (tf.segment_sum, tf.segment_mean, tf.segment_max, tf.segment_min, tf.segment_prod)],
    "unsorted_segment_family": lambda: [f(F, [2, -1, 0], 4) for f in (tf.unsorted_segment_sum, tf.unsorted_segment_mean, tf.unsorted_segment_max, tf.unsorted_segment_min, tf.unsorted_segment_prod, tf.unsorted_segment_sqrt_n)],
    "sparse_segment_family": lambda: [f(F, [0, 2, 1], [0, 0, 1]) for f in (tf.sparse_segment_sum, tf.sparse_segment_mean, tf.sparse_segment_sqrt_n)] + [tf.sparse_segment_sum(F, [0, 2], [0, 3], num_segments=5)],
    "segment_errors": lambda: tf.segment_sum(F, [2, 1, 0]),
    "softsign_family": lambda: [tf.nn.softsign(F), tf.nn.softplus(F), tf.nn.elu(F), tf.nn.selu(F), tf.nn.relu6(F * 9), tf.nn.crelu(F), tf.nn.leaky_relu(F), tf.nn.swish(F), tf2.nn.gelu(F), tf2.nn.gelu(F, approximate=True)],
    "special_fft": lambda: [tf.signal.fft(tf.complex(F, G)), tf.signal.ifft2d(tf.complex(F, G)), tf.signal.rfft(F), tf.signal.irfft(tf.complex(F, G)), tf.signal.dct(F), tf.signal.fft3d(tf.complex(M, M))],
    "stft": lambda: [tf.signal.stft(np.arange(20, dtype=np.float32), 6, 3), tf.signal.frame(np.arange(10), 4, 2), tf.signal.hann_window(5), tf.signal.linear_to_mel_weight_matrix(4, 8)],
    "tensordot": lambda: [tf.tensordot(F, G, [[1], [1]]), tf.tensordot(M, M, [[1, 2], [1, 2]]), tf.einsum("ij,kj->ik", F, G), tf.einsum("bij,bjk->bk", M, M), tf.einsum("bij->bji", M)],
    "top_k": lambda: [tf.nn.top_k(F, 2), tf.nn.top_k(I, 3, sorted=False).values * 0],
    "trig": lambda: [f(F / 4.0) for f in (tf.sin, tf.cos, tf.tan, tf.asin, tf.acos, tf.atan, tf.sinh, tf.cosh, tf.tanh, tf.asinh, tf.atanh, tf.sigmoid)] + [tf.acosh(G + 1.0), tf.atan2(F, G)],
    "zero_fraction": lambda: tf.math.zero_fraction(I),
}
test_math = table(MATH)

ARRAYS = {
    "unravel": lambda: [tf.unravel_index([5, 7], [3, 4]), tf.raw_ops.DataFormatVecPermute(x=[1, 2, 3, 4]), tf.raw_ops.DataFormatDimMap(x=[0, 3])],
    "inplace": lambda: [tf.raw_ops.InplaceUpdate(x=tf.constant(F) * 1.0, i=[1], v=G[:1]), tf.raw_ops.InplaceAdd(x=tf.constant(F) * 1.0, i=[1, 1], v=G[:2]), tf.raw_ops.DeepCopy(x=F)],
    "fingerprint": lambda: tf.fingerprint(tf.constant(["a", "bc"])),
    "batch_to_space": lambda: [tf.batch_to_space(np.arange(16).reshape(4, 2, 2, 1), [[0, 0], [0, 1]], 2), tf.space_to_batch(np.arange(16).reshape(1, 4, 4, 1), [[0, 0], [0, 0]], 2)],
    "space_to_depth": lambda: [tf.space_to_depth(np.arange(16).reshape(1, 4, 4, 1), 2), tf.depth_to_space(np.arange(16).reshape(1, 2, 2, 4), 2)],
    "bitcast": lambda: [tf.bitcast(F, tf.int32), tf.bitcast(I, tf.uint8), tf.bitcast(np.arange(8, dtype=np.uint8).reshape(2, 4), tf.float32)],
    "boolean_mask": lambda: [tf.boolean_mask(F, F > 0), tf.boolean_mask(F, [True, False, True]), tf.boolean_mask(F, [True, False, True, True], axis=1)],
    "broadcast": lambda: [tf.broadcast_to([1, 2], [3, 2]), tf.broadcast_dynamic_shape([3, 1], [1, 4])],
    "cast": lambda: [tf.cast(F * 3, t) for t in (tf.int32, tf.int64, tf.float64, tf.float16, tf.bfloat16, tf.uint8, tf.bool, tf.complex64)] + [tf.saturate_cast(F * 1000, tf.int8)],
    "concat": lambda: [tf.concat([F, G], 0), tf.concat([F, G], -1), tf.stack([F, G], 1), tf.unstack(F, axis=1), tf.parallel_stack([F, G])],
    "diag": lambda: [tf.diag([1, 2]), tf.diag_part(np.diag([3.0, 4.0])), tf.matrix_diag(F), tf.matrix_diag_part(M), tf.matrix_set_diag(M, np.ones([2, 3], np.float32)), tf.linalg.diag(F, k=1), tf.matrix_band_part(M, 1, 0)],
    "dynamic_partition": lambda: [tf.dynamic_partition(F, [1, 0, 1], 3), tf.dynamic_stitch([[0, 2], [1]], [F[:2], G[:1]])],
    "edit_distance": lambda: tf.edit_distance(tf.SparseTensor([[0, 0], [0, 1]], ["a", "b"], [1, 2]), tf.SparseTensor([[0, 0]], ["a"], [1, 1])),
    "expand_squeeze": lambda: [tf.expand_dims(F, -1), tf.squeeze(F[None, :, None]), tf.squeeze(F[None], [0]), tf.shape_n([F, M])[1], tf.size(F, out_type=tf.int64)],
    "fill_family": lambda: [tf.fill([2, 2], 7), tf.zeros_like(F), tf.ones_like(I), tf.eye(3, 4, batch_shape=[2]), tf.one_hot([0, 2, -1], 3, 5.0, -5.0, axis=0), tf.range(3, 12, 4), tf.range(1.0, 2.0, 0.25), tf.linspace(0.0, 1.0, 5), tf.sequence_mask([1, 3])],
    "gather_family": lambda: [tf.gather(F, [2, 0]), tf.gather(F, [[1], [3]], axis=1), tf.gather(M, [[0], [2]], batch_dims=1, axis=1), tf.gather_nd(F, [[0, 1], [2, 3]]), tf.gather_nd(M, [[[1]], [[0]]], batch_dims=1), tf.batch_gather(F, [[0], [1], [2]])],
    "gather_errors": lambda: tf.gather_nd(F, [[0, 9]]),
    "guarantee_and_identity": lambda: [tf.guarantee_const(F), tf.identity_n([F, I]), tf.stop_gradient(F), tf.identity(tf.constant("x"))],
    "histogram": lambda: [tf.histogram_fixed_width([0.0, 1.1, 5.5, -1.0], [0.0, 5.0], 5), tf.histogram_fixed_width_bins([0.0, 1.1, 5.5], [0.0, 5.0], 5)],
    "lower_bound": lambda: [tf.searchsorted([1, 3, 5, 7], [0, 3, 6, 9]), tf.searchsorted([[1.0, 2.0], [3.0, 4.0]], [[1.5], [9.0]], side="right")],
    "meshgrid": lambda: tf.meshgrid([1, 2, 3], [4, 5], indexing="ij"),
    "pad": lambda: [tf.pad(F, [[1, 0], [0, 2]]), tf.pad(F, [[1, 1], [2, 2]], "REFLECT"), tf.pad(F, [[1, 1], [2, 2]], "SYMMETRIC"), tf.pad(I, [[0, 0], [1, 1]], constant_values=9)],
    "quantize": lambda: [tf.quantize(F, -3.0, 3.0, tf.quint8)[1:], tf.fake_quant_with_min_max_args(F), tf.quantization.quantize_and_dequantize(F, -3.0, 3.0)],
    "repeat_tile": lambda: [tf.repeat(F, [1, 0, 2], axis=0), tf.tile(F, [2, 1]), tf.roll(F, [1, -1], [0, 1]), tf.reverse(F, [1])],
    "required_space": lambda: tf.required_space_to_batch_paddings([5, 7], [2, 3]),
    "reshape": lambda: [tf.reshape(F, [-1, 2]), tf.reshape(F, [2, 3, 2]), tf.reshape(F[:0], [0, 7]), tf.ensure_shape(F, [3, None]), tf.transpose(M), tf.transpose(M, [1, 0, 2]), tf.transpose(tf.complex(F, G), conjugate=True)],
    "scatter_nd": lambda: [tf.scatter_nd([[0], [2], [0]], F[:, 0], [4]), tf.tensor_scatter_update(F, [[1, 1]], [9.0]), tf.tensor_scatter_add(F, [[1], [1]], G[:2]), tf.tensor_scatter_sub(F, [[0, 0]], [1.0]), tf2.tensor_scatter_nd_max(F, [[0]], G[:1])],
    "select": lambda: [tf.where(F > 0, F, G), tf.where(F > 0), tf.where_v2(F > 0, 1.0, F), tf.where([True, False, True], F, G)],
    "set_ops": lambda: [tf.sets.intersection([[1, 2, 3]], [[2, 3, 4]]), tf.sets.union([[1, 2]], [[2, 3]]), tf.sets.difference([[1, 2]], [[2, 3]]), tf.sets.size(tf.sets.union([[1, 2]], [[2, 3]])), tf.setdiff1d([1, 2, 3, 4], [2, 4])],
    "slices": lambda: [F[1:], F[::-1, ::2], F[..., 1], F[:, tf.newaxis, 1:3], tf.slice(F, [1, 0], [-1, 2]), tf.strided_slice(F, [0, 1], [3, 4], [2, 2]), tf.constant(F)[-1, -2:], tf.constant(F)[tf.constant(1)]],
    "split": lambda: [tf.split(F, 2, 1), tf.split(F, [1, 3], 1), tf.split(F, [1, -1], 1), tf.unstack(I)],
    "unique": lambda: [tf.unique([3, 1, 3, 2]), tf.unique_with_counts(["a", "b", "a"]), tf.raw_ops.UniqueV2(x=[[1, 1], [2, 2], [1, 1]], axis=[0])],
    "upper": lambda: [tf.linalg.band_part(F, 0, -1), tf.trace(M), tf.rank(M), tf.linalg.tensor_diag([1.0, 2.0])],
    "extract_patches": lambda: [tf.image.extract_image_patches(IMAGE, [1, 2, 2, 1], [1, 2, 2, 1], [1, 1, 1, 1], "VALID"), tf.extract_volume_patches(np.arange(27, dtype=np.float32).reshape(1, 3, 3, 3, 1), [1, 2, 2, 2, 1], [1, 1, 1, 1, 1], "VALID")],
}
test_arrays = table(ARRAYS)

STRINGS = {
    "unsorted_segment_join": lambda: tf.strings.unsorted_segment_join(["a", "b", "c"], [1, 0, 1], 2, ":"),
    "split_v2": lambda: [tf2.strings.split(["a b", "c"]).to_sparse(), tf2.strings.split("a;b;c", ";", maxsplit=1)],
    "ngrams": lambda: tf.strings.ngrams(tf.ragged.constant([["a", "b", "c"], ["d"]]), 2).to_tensor(),
    "bytes_split": lambda: [tf.strings.bytes_split(["ab", "c"]).to_sparse(), tf.strings.substr(["hello", "worlds"], 1, 3), tf.strings.substr("héllo", [1], [2], unit="UTF8_CHAR")],
    "as_string": lambda: [tf.as_string(F, precision=3), tf.as_string(I, width=5, fill="0"), tf.as_string([True, False]), tf.as_string(F, scientific=True), tf.as_string([1 + 2j]), tf.as_string(["x"])],
    "base64": lambda: [tf.encode_base64(["hello", "\xff\xfe?"], pad=True), tf.decode_base64(tf.encode_base64(["hello", ""]))],
    "base64_error": lambda: tf.decode_base64("a===b"),
    "substr_error": lambda: tf.strings.substr(["abc"], 9, 1),
    "format": lambda: tf.strings.format("x={} y={}", (tf.constant(F[0]), tf.constant(3))),
    "hashes": lambda: [tf.string_to_hash_bucket(["a", "b"], 100), tf.strings.to_hash_bucket_fast(["a", "b"], 100), tf.strings.to_hash_bucket_strong(["a"], 100, [1, 2])],
    "join": lambda: [tf.string_join(["a", tf.constant(["b", "c"])], "-"), tf.strings.reduce_join([["a", "b"], ["c", "d"]], 1, separator=","), tf.strings.reduce_join([["a", "b"]], keep_dims=True, axis=[0, 1])],
    "number": lambda: [tf.strings.to_number(["1.5", "-2e3", "inf"]), tf.strings.to_number(["7", "-9"], tf.int64), tf.string_to_number("3", tf.int32), tf.string_to_number(["1e5"], tf.float64)],
    "number_error": lambda: tf.strings.to_number("1.5", tf.int32),
    "regex": lambda: [tf.strings.regex_replace(["a1b22", "x"], "[0-9]+", "#"), tf.strings.regex_replace("abab", "(a)(b)", "\\2\\1", replace_global=False), tf.strings.regex_full_match(["abc", "ab"], "a.c")],
    "regex_error": lambda: tf.strings.regex_full_match(["abc"], "(a"),
    "split": lambda: [tf.string_split(["a b c", " d  e"]), tf.string_split(["a,b,,c"], ",", skip_empty=False), tf.strings.split(["x y", "z"]), tf.strings.split(["a||b"], sep="||")],
    "decode": lambda: [tf.io.decode_raw(["abcd"], tf.int16), tf.io.decode_raw(["abcd"], tf.int16, little_endian=False), tf2.io.decode_raw(["abcd"], tf.uint8, fixed_length=2), tf.io.decode_compressed(tf.constant(b"plain"))],
    "compare": lambda: [tf.equal(["a", "b"], ["a", "c"]), tf.not_equal(["a"], "b"), tf.constant("a") + tf.constant(["b", "c"])],
}
test_strings = table(STRINGS)

SPARSE = {
    "add": lambda: [tf.sparse_add(sparse(), sparse()), tf.sparse_add(sparse(), F), tf.sparse_add(sparse(), sparse(), threshold=5.0)],
    "concat": lambda: [tf.sparse_concat(0, [sparse(), sparse()]), tf.sparse_concat(1, [sparse(), sparse()]), tf.sparse_concat(0, [sparse(), tf.SparseTensor([[0, 5]], [1.0], [1, 6])], expand_nonconcat_dim=True)],
    "cross": lambda: [tf.sparse.cross([tf.constant([["a"], ["b"]]), tf.constant([["c"], ["d"]])]), tf.sparse.cross_hashed([tf.constant([["a"], ["b"]]), tf.constant([["c"], ["d"]])], num_buckets=100)],
    "dense": lambda: [tf.sparse_tensor_to_dense(sparse(), -1.0), tf.sparse_to_dense([0, 2], [4], [1.0, 2.0], 9.0), tf.sparse_to_indicator(tf.SparseTensor([[0, 0]], [2], [1, 1]), 4), tf.sparse.from_dense(F)],
    "dense_error": lambda: tf.sparse_tensor_to_dense(tf.SparseTensor([[1, 0], [0, 1]], [1.0, 2.0], [2, 2])),
    "fill_empty": lambda: tf.sparse_fill_empty_rows(tf.SparseTensor([[0, 1], [2, 0]], [1.0, 2.0], [4, 2]), 7.0),
    "mask": lambda: [tf.sparse_mask(tf.IndexedSlices(tf.constant(F), tf.constant([1, 5, 7])), [5]).values, tf.sparse_retain(sparse(), [True, False, True])],
    "matmul": lambda: [tf.sparse_tensor_dense_matmul(sparse(), G, adjoint_b=True), tf.sparse_tensor_dense_matmul(sparse(), G[:, :2], adjoint_a=True), tf.sparse.sparse_dense_matmul(G, sparse(), adjoint_b=True)],
    "math": lambda: [sparse() * 2.0, sparse() / F, tf.sparse_softmax(tf.SparseTensor([[0, 0], [0, 1], [1, 0]], [1.0, 2.0, 3.0], [2, 2])), tf.sparse_maximum(sparse(), sparse()), tf.sparse_minimum(sparse(), sparse())],
    "order": lambda: [tf.sparse_reorder(tf.SparseTensor([[1, 0], [0, 1]], [1.0, 2.0], [2, 2])), tf.sparse_reshape(sparse(), [2, 6]), tf.sparse_transpose(sparse()), tf.sparse.expand_dims(sparse(), 1), tf.sparse_merge(tf.SparseTensor([[0, 0]], [2], [1, 1]), tf.SparseTensor([[0, 0]], [5.0], [1, 1]), 4)],
    "reduce": lambda: [tf.sparse_reduce_sum(sparse(), 0), tf.sparse_reduce_sum(sparse(), 1, keepdims=True), tf.sparse_reduce_max(sparse(), 1), tf.sparse_reduce_sum_sparse(sparse(), 1), tf.sparse_reduce_max_sparse(sparse(), 0)],
    "reset_shape": lambda: tf.sparse_reset_shape(sparse(), [5, 5]),
    "serialize": lambda: [tf.deserialize_many_sparse(tf.serialize_many_sparse(sparse()), tf.float32), tf.shape(tf.serialize_sparse(sparse()))],
    "slice": lambda: [tf.sparse_slice(sparse(), [0, 0], [2, 2]), tf.sparse_split(sp_input=sparse(), num_split=2, axis=1)],
    "eye": lambda: [tf.sparse.eye(2, 3), tf2.sparse.map_values(tf.abs, sparse())],
    "segment": lambda: tf.sparse_segment_sum(F, [0, 1, 1], [0, 0, 1]),
    "embedding": lambda: [tf.nn.embedding_lookup_sparse([F], tf.SparseTensor([[0, 0], [0, 1], [1, 0]], [0, 2, 1], [2, 2]), tf.SparseTensor([[0, 0], [0, 1], [1, 0]], [1.0, 2.0, 3.0], [2, 2]), combiner=c) for c in ("sum", "mean", "sqrtn")],
    "safe_embedding": lambda: tf.nn.safe_embedding_lookup_sparse([F], tf.SparseTensor([[0, 0], [2, 1]], [0, -1], [3, 2]), default_id=1),
    "embedding_partitions": lambda: [tf.nn.embedding_lookup([F, G], [0, 3, 5], partition_strategy=s) for s in ("mod", "div")] + [tf.nn.embedding_lookup(F, [0, 2], max_norm=1.0)],
}
test_sparse = table(SPARSE)

BANDS = np.array([[1.0, 1.0, 0.0], [4.0, 5.0, 6.0], [0.0, 2.0, 3.0]], np.float32)
LINALG = {
    "adjoint": lambda: [tf.linalg.adjoint(M), tf.linalg.logdet(tf.matmul(M, M, transpose_b=True)), tf.linalg.slogdet(M), tf.matrix_determinant(M)],
    "cholesky": lambda: [tf.cholesky(tf.matmul(M, M, transpose_b=True)), tf.cholesky_solve(tf.cholesky(tf.matmul(M, M, transpose_b=True)), M)],
    "eig": lambda: [tf.self_adjoint_eig(tf.matmul(M, M, transpose_b=True))[0], tf.self_adjoint_eigvals(tf.matmul(M, M, transpose_b=True)), tf.abs(tf2.linalg.eigvals(tf.constant([[2.0, 0.0], [0.0, 3.0]])))],
    "expm": lambda: [tf.linalg.expm(M / 5.0), tf.linalg.matrix_rank(M), tf.linalg.pinv(M), tf.linalg.sqrtm(tf.matmul(M, M, transpose_b=True))],
    "inverse": lambda: [tf.matrix_inverse(M), tf.matrix_solve(M, M), tf.matrix_solve_ls(M, M, 0.1), tf.matrix_triangular_solve(np.tril(M), M), tf.linalg.lstsq(F.T, G.T, fast=False)],
    "inverse_error": lambda: tf.matrix_inverse(np.ones([2, 2], np.float32)),
    "qr": lambda: [tf.abs(x) for x in tf.linalg.qr(M)] + [tf.svd(M, compute_uv=False), tf.abs(tf.svd(F)[1])],
    "operators": lambda: [tf.linalg.LinearOperatorDiag([1.0, 2.0]).matvec([3.0, 4.0]), tf.linalg.LinearOperatorFullMatrix(M).solve(M), tf.linalg.LinearOperatorKronecker([tf.linalg.LinearOperatorIdentity(2), tf.linalg.LinearOperatorFullMatrix(M[0])]).to_dense()],
    "global_norm": lambda: tf.global_norm([F, G]),
    "normalize": lambda: tf.linalg.normalize(F, axis=1),
    "complex": lambda: [tf.real(tf.matmul(tf.complex(F, G), tf.complex(F, G), adjoint_b=True)), tf.conj(tf.complex(F, G)), tf.abs(tf.complex(F, G)), tf.matrix_inverse(tf.complex(M, M))],
}
test_linalg = table(LINALG, rtol=2e-3)

FILTER = R.randn(3, 2, 3, 4).astype(np.float32)
LOGITS = R.randn(4, 2, 5).astype(np.float32)
LABELS = np.eye(4, dtype=np.float32)[[0, 2, 3]]


def gradients_of(f, *values):
    """Results, first gradients of their squares, and second gradients."""
    def build():
        xs = [tf.constant(v) for v in values]
        y = f(*xs)
        g = tf.gradients(tf.reduce_sum(tf.square(tf.cast(y, tf.float32))), xs, unconnected_gradients="zero")
        return [y, [tf.convert_to_tensor(x) for x in g]]
    return build


def twice(f, *values):
    def build():
        xs = [tf.constant(v) for v in values]
        g = tf.gradients(f(*xs), xs)
        h = tf.gradients([tf.reduce_sum(tf.square(x)) for x in g], xs, unconnected_gradients="zero")
        return [g, [tf.convert_to_tensor(x) for x in h]]
    return build


NN = {
    "conv2d_" + padding + str(stride): gradients_of(lambda x, w, p=padding, s=stride: tf.nn.conv2d(x, w, s, p), IMAGE, FILTER)
    for padding in ("SAME", "VALID") for stride in (1, 2)
}
NN.update({
    "ctc_loss_v2": lambda: tf2.nn.ctc_loss([[1, 2], [3, 0]], np.tile(F[None, :2], [5, 1, 1]), [2, 1], [5, 4], blank_index=0),
    "conv2d_dilated": lambda: tf.nn.conv2d(IMAGE, FILTER, 1, "SAME", dilations=2),
    "conv2d_explicit": gradients_of(lambda x, w: tf.nn.conv2d(x, w, 1, [[0, 0], [1, 2], [0, 3], [0, 0]]), IMAGE, FILTER),
    "conv2d_twice": twice(lambda x, w: tf.nn.conv2d(x, w, 1, "SAME") ** 2, IMAGE, FILTER),
    "atrous_conv2d": gradients_of(lambda x, w: tf.nn.atrous_conv2d(x, w, 2, "SAME"), IMAGE, FILTER),
    "conv2d_transpose": gradients_of(lambda x, w: tf.nn.conv2d_transpose(x, w, [2, 16, 12, 2], 2), IMAGE, R.randn(3, 3, 2, 3).astype(np.float32)),
    "conv1d": gradients_of(lambda x, w: tf.nn.conv1d(x, w, 2, "SAME"), IMAGE[:, 0], FILTER[0]),
    "conv3d": gradients_of(lambda x, w: tf.nn.conv3d(x, w, [1, 1, 1, 1, 1], "SAME"), R.rand(1, 3, 4, 4, 2).astype(np.float32), R.rand(2, 2, 2, 2, 3).astype(np.float32)),
    "conv3d_transpose": lambda: tf.nn.conv3d_transpose(R.rand(1, 2, 2, 2, 3).astype(np.float32) * 0 + 1, np.ones([2, 2, 2, 1, 3], np.float32), [1, 4, 4, 4, 1], 2),
    "depthwise": gradients_of(lambda x, w: tf.nn.depthwise_conv2d(x, w, [1, 1, 1, 1], "SAME"), IMAGE, R.randn(2, 2, 3, 2).astype(np.float32)),
    "separable": gradients_of(lambda x, w, v: tf.nn.separable_conv2d(x, w, v, [1, 1, 1, 1], "SAME"), IMAGE, R.randn(2, 2, 3, 2).astype(np.float32), R.randn(1, 1, 6, 4).astype(np.float32)),
    "convolution": gradients_of(lambda x, w: tf.nn.convolution(x, w, "VALID", dilation_rate=[2, 2]), IMAGE, FILTER),
    "dilation2d": gradients_of(lambda x, w: tf.nn.dilation2d(x, w, [1, 1, 1, 1], [1, 1, 1, 1], "SAME"), IMAGE, R.rand(2, 2, 3).astype(np.float32)),
    "erosion2d": lambda: tf.nn.erosion2d(IMAGE, np.ones([2, 2, 3], np.float32), [1, 1, 1, 1], [1, 1, 1, 1], "SAME"),
    "max_pool": gradients_of(lambda x: tf.nn.max_pool2d(x, 3, 2, "SAME"), IMAGE),
    "max_pool_twice": twice(lambda x: tf.nn.max_pool2d(x, 2, 2, "VALID") ** 2, IMAGE),
    "avg_pool": gradients_of(lambda x: tf.nn.avg_pool2d(x, 3, 2, "SAME"), IMAGE),
    "pools": lambda: [tf.nn.max_pool1d(IMAGE[0], 2, 2, "VALID"), tf.nn.avg_pool1d(IMAGE[0], 2, 2, "VALID"), tf.nn.max_pool_with_argmax(IMAGE, [1, 2, 2, 1], [1, 2, 2, 1], "VALID"), tf.nn.pool(IMAGE, [2, 2], "AVG", "SAME")],
    "pool3d": gradients_of(lambda x: tf.nn.max_pool3d(x, 2, 2, "SAME") + tf.nn.avg_pool3d(x, 2, 2, "SAME"), R.rand(1, 4, 4, 4, 2).astype(np.float32)),
    "lrn": gradients_of(lambda x: tf.nn.lrn(x, 2, 1.0, 0.5), IMAGE),
    "batch_norm": gradients_of(lambda x, g, b: tf.nn.fused_batch_norm(x, g, b)[0], IMAGE, G[0, :3], F[0, :3]),
    "batch_norm_frozen": gradients_of(lambda x, g, b, m, v: tf.nn.fused_batch_norm(x, g, b, m, v, is_training=False)[0], IMAGE, G[0, :3], F[0, :3], F[1, :3], G[1, :3]),
    "batch_norm_parts": gradients_of(lambda x: tf.nn.batch_normalization(x, *tf.nn.moments(x, [0, 1, 2]), None, None, 1e-3), IMAGE),
    "moments": lambda: [tf.nn.moments(F, [0]), tf.nn.weighted_moments(F, [1], G), tf.nn.sufficient_statistics(F, [0]), tf.nn.normalize_moments(3.0, F, G, None)],
    "bias_add": gradients_of(lambda x, b: tf.nn.bias_add(x, b), IMAGE, F[0, :3]),
    "dropout": lambda: [tf.nn.dropout(F, rate=0.4, seed=3), tf.nn.dropout(F, rate=0.4, noise_shape=[3, 1], seed=4)],
    "softmax": gradients_of(lambda x: tf.nn.softmax(x) + tf.nn.log_softmax(x), F),
    "softmax_axis": gradients_of(lambda x: tf.nn.softmax(x, axis=0), F),
    "softmax_twice": twice(lambda x: tf.nn.softmax(x) ** 2, F),
    "xent": gradients_of(lambda x: tf.nn.softmax_cross_entropy_with_logits_v2(labels=LABELS, logits=x), F),
    "xent_twice": twice(lambda x: tf.nn.softmax_cross_entropy_with_logits_v2(labels=LABELS, logits=x), F),
    "sparse_xent": gradients_of(lambda x: tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[0, 2, 3], logits=x), F),
    "sparse_xent_error": lambda: tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[0, 2, 9], logits=F),
    "sigmoid_xent": gradients_of(lambda x: tf.nn.sigmoid_cross_entropy_with_logits(labels=LABELS, logits=x) + tf.nn.weighted_cross_entropy_with_logits(LABELS, x, 2.0), F),
    "activations": gradients_of(lambda x: tf.nn.relu(x) + tf.nn.relu6(9 * x) + tf.nn.leaky_relu(x) + tf.nn.softsign(x) + tf.nn.swish(x) + tf2.nn.gelu(x), F),
    "l2_and_poisson": gradients_of(lambda x: tf.nn.l2_loss(x) + tf.reduce_sum(tf.nn.log_poisson_loss(G, x, compute_full_loss=True)), F),
    "sampled_softmax": lambda: tf.nn.sampled_softmax_loss(np.ones([10, 4], np.float32), np.zeros(10, np.float32), tf.constant([[1], [2], [3]]), F, 4, 10, seed=5),
    "nce": lambda: tf.nn.nce_loss(np.ones([10, 4], np.float32), np.zeros(10, np.float32), tf.constant([[1], [2], [3]]), F, 4, 10, sampled_values=tf.nn.uniform_candidate_sampler([[1], [2], [3]], 1, 4, True, 10, seed=6)),
    "samplers": lambda: [tf.nn.log_uniform_candidate_sampler([[1], [2]], 1, 3, True, 20, seed=1), tf.nn.fixed_unigram_candidate_sampler([[1], [2]], 1, 3, False, 5, unigrams=[1, 2, 3, 4, 5], seed=2), tf.nn.all_candidate_sampler([[1], [2]], 1, 3, True, seed=1), tf.nn.compute_accidental_hits([[1], [2]], [2, 3, 1], 1)],
    "ctc_beam": lambda: tf.nn.ctc_beam_search_decoder(LOGITS, [4, 3], top_paths=2),
    "with_space_to_batch": lambda: tf.nn.with_space_to_batch(IMAGE, [2, 2], "VALID", lambda x, dims, padding: tf.nn.max_pool2d(x, 1, 1, "VALID"), [1, 1]),
    "data_format": lambda: tf.nn.bias_add(np.transpose(IMAGE, [0, 3, 1, 2]), F[0, :3], data_format="NCHW"),
})
test_nn = table(NN, rtol=1e-3)

GRADIENTS = {
    "broadcast": gradients_of(lambda x, y: x * y + x / y - y, F, G[:1]),
    "gather": gradients_of(lambda x: tf.gather(x, [0, 2, 0]), F),
    "gather_axis": gradients_of(lambda x: tf.gather(x, [[0, 2], [1, 1]], axis=1), F),
    "gather_nd": gradients_of(lambda x: tf.gather_nd(x, [[0, 1], [0, 1], [2, 3]]), F),
    "slices": gradients_of(lambda x: x[1:, ::2], F),
    "slice": gradients_of(lambda x: tf.slice(x, [1, 1], [2, 2]), F),
    "concat": gradients_of(lambda x, y: tf.concat([x, y, x], 1), F, G),
    "stack": gradients_of(lambda x, y: tf.stack([x, y], 1), F, G),
    "split": gradients_of(lambda x: tf.split(x, [1, 3], 1)[1], F),
    "pad": gradients_of(lambda x: tf.pad(x, [[1, 1], [0, 2]]), F),
    "mirror_pad": gradients_of(lambda x: tf.pad(x, [[1, 1], [2, 2]], "REFLECT"), F),
    "tile": gradients_of(lambda x: tf.tile(x, [2, 3]), F),
    "transpose": gradients_of(lambda x: tf.transpose(x, [2, 0, 1]), M),
    "reductions": gradients_of(lambda x: tf.reduce_sum(x, 0) * tf.reduce_mean(x, 0) + tf.reduce_max(x, 0) - tf.reduce_min(x, 0) + tf.reduce_prod(x, 0), F),
    "cumulative": gradients_of(lambda x: tf.cumsum(x, 1, exclusive=True) + tf.cumprod(x, 1, reverse=True), F),
    "matmul": gradients_of(lambda x, y: tf.matmul(x, y, transpose_b=True), F, G),
    "matmul_twice": twice(lambda x, y: tf.matmul(x, y, transpose_a=True) ** 3, F, G),
    "batch_matmul": gradients_of(lambda x, y: tf.matmul(x, y[:1]), M, M),
    "einsum": gradients_of(lambda x, y: tf.einsum("bij,bkj->bik", x, y), M, M),
    "segment": gradients_of(lambda x: tf.segment_sum(x, [0, 0, 1]), F),
    "segment_mean_max": gradients_of(lambda x: tf.segment_mean(x, [0, 0, 1]) + tf.segment_max(x, [0, 1, 1]), F),
    "unsorted_segment": gradients_of(lambda x: tf.unsorted_segment_sum(x, [2, 0, 2], 3) + tf.unsorted_segment_max(x, [2, 0, 1], 3) + tf.unsorted_segment_prod(x, [0, 1, 2], 3), F),
    "sparse_segment": gradients_of(lambda x: tf.sparse_segment_mean(x, [0, 2], [0, 0]) + tf.sparse_segment_sqrt_n(x, [0, 2], [0, 0]), F),
    "where": gradients_of(lambda x, y: tf.where(x > 0, x * y, y), F, G),
    "maximum": gradients_of(lambda x, y: tf.maximum(x, y) - tf.minimum(x, y * 2.0), F, G),
    "unary": gradients_of(lambda x: sum(f(x) for f in (tf.exp, tf.tanh, tf.sin, tf.cos, tf.sigmoid, tf.square, tf.abs, tf.nn.softplus, tf.nn.elu, tf.nn.selu, tf.erf, tf.atan, tf.sinh)), F),
    "unary_positive": gradients_of(lambda x: sum(f(x) for f in (tf.log, tf.sqrt, tf.rsqrt, tf.log1p, tf.lgamma, tf.reciprocal, tf.digamma)), G),
    "unary_twice": twice(lambda x: tf.tanh(x) * tf.sigmoid(x) + tf.exp(tf.sin(x)) + tf.nn.softplus(x) + tf.nn.elu(x), F),
    "pow": gradients_of(lambda x, y: tf.pow(x, y), G, F),
    "gamma_functions": gradients_of(lambda x: tf.igamma(2.0, x) + tf.zeta(x + 2.0, 1.5 + 0 * x) * 0 + tf.betainc(2.0 + 0 * x, 3.0 + 0 * x, x / 2.0), G),
    "clip": gradients_of(lambda x: tf.clip_by_value(x, -0.5, 0.5) + tf.clip_by_norm(x, 1.0), F),
    "top_k": gradients_of(lambda x: tf.nn.top_k(x, 2).values, F),
    "dynamic": gradients_of(lambda x: tf.dynamic_stitch([[0, 2], [1]], tf.dynamic_partition(x, [0, 1, 0], 2)), F),
    "scatter": gradients_of(lambda x, y: tf.tensor_scatter_update(x, [[1]], y[:1]) + tf.tensor_scatter_add(x, [[0]], y[1:2]), F, G),
    "sparse_matmul": gradients_of(lambda v, b: tf.sparse_tensor_dense_matmul(tf.SparseTensor(S.indices, v, S.dense_shape), b), S.values, F.T.copy()),
    "sparse_ops": gradients_of(lambda v: tf.sparse_reduce_sum(tf.SparseTensor(S.indices, v, S.dense_shape), 1) + tf.reduce_sum(tf.sparse_tensor_to_dense(tf.SparseTensor(S.indices, v, S.dense_shape))), S.values),
    "sparse_concat": gradients_of(lambda v: tf.sparse_concat(1, [tf.SparseTensor(S.indices, v, S.dense_shape)] * 2).values, S.values),
    "inverse": gradients_of(tf.matrix_inverse, M),
    "cholesky": gradients_of(lambda x: tf.cholesky(tf.matmul(x, x, transpose_b=True)), M),
    "determinant": gradients_of(lambda x: tf.matrix_determinant(x) + tf.linalg.logdet(tf.matmul(x, x, transpose_b=True)), M),
    "solve": gradients_of(lambda x, y: tf.matrix_solve(x, y), M, M),
    "triangular_solve": gradients_of(lambda x, y: tf.matrix_triangular_solve(tf.matrix_band_part(x, -1, 0), y), M, M),
    "eigh": gradients_of(lambda x: tf.self_adjoint_eigvals(tf.matmul(x, x, transpose_b=True)), M),
    "svd": gradients_of(lambda x: tf.svd(x, compute_uv=False), M),
    "qr": gradients_of(lambda x: tf.abs(tf.linalg.qr(x)[1]), M),
    "diag": gradients_of(lambda x: tf.matrix_diag(x)[:, :3, :3] + tf.matrix_set_diag(x[:, :3, None] * tf.ones([3]), x[:, :3]), F),
    "fft": gradients_of(lambda x: tf.abs(tf.signal.rfft(x)) + tf.abs(tf.signal.fft(tf.complex(x, x)))[:, :3], F),
    "complex": gradients_of(lambda x, y: tf.abs(tf.complex(x, y) ** 2) + tf.real(tf.conj(tf.complex(x, y)) * tf.complex(y, x)), F, G),
    "resize": gradients_of(lambda x: tf.image.resize_bilinear(x, [5, 9]), IMAGE),
    "resize_bicubic": gradients_of(lambda x: tf.image.resize_bicubic(x, [5, 9]), IMAGE),
    "crop_and_resize": gradients_of(lambda x: tf.image.crop_and_resize(x, [[0.1, 0.2, 0.8, 0.9]], [0], [3, 3]), IMAGE),
    "image": gradients_of(lambda x: tf.image.adjust_brightness(tf.image.rgb_to_grayscale(x), 0.5), IMAGE),
    "embedding": lambda: [tf.convert_to_tensor(g) for g in (lambda v: tf.gradients(tf.nn.embedding_lookup_sparse([v], tf.SparseTensor([[0, 0], [0, 1]], [0, 2], [1, 2]), None, combiner="mean"), v))(tf.constant(F))],
    "indexed_slices": lambda: (lambda x: tf.gradients(tf.gather(x, [1, 1]) * 2.0, x)[0])(tf.identity(tf.constant(F))),
    "hessian": lambda: (lambda x: tf.hessians(tf.reduce_sum(x ** 3) + x[0] * x[1], x))(tf.constant([1.0, 2.0, 3.0])),
    "jacobian_of_lists": lambda: (lambda x: [tf.gradients(y, x) for y in tf.unstack(tf.sin(x) * x[0])])(tf.constant([1.0, 2.0])),
    "grad_ys": lambda: (lambda x: tf.gradients([x * 2.0, x * x], x, grad_ys=[tf.constant(F), tf.constant(G)]))(tf.constant(F)),
    "aggregation": lambda: (lambda x: [tf.gradients([x * float(i) for i in range(5)], x, aggregation_method=m) for m in (0, 2)])(tf.constant(F)),
    "integers": lambda: (lambda x: tf.gradients(tf.cast(tf.cast(x, tf.int32), tf.float32) + x, x))(tf.constant(F)),
    "nan_guard": lambda: tf.gradients(tf.where_v2(tf.constant(F) > 0, 1.0, 2.0), tf.constant(F), unconnected_gradients="zero"),
    "space_to_batch": gradients_of(lambda x: tf.space_to_batch_nd(x, [2, 2], [[0, 0], [0, 0]]), IMAGE),
    "depth_to_space": gradients_of(lambda x: tf.depth_to_space(tf.tile(x, [1, 1, 1, 4]), 2), IMAGE),
    "reverse_sequence": gradients_of(lambda x: tf.reverse_sequence(x, [1, 2, 3], 1, 0), F),
    "extract_patches": gradients_of(lambda x: tf.image.extract_image_patches(x, [1, 2, 2, 1], [1, 1, 1, 1], [1, 1, 1, 1], "SAME"), IMAGE),
    "fake_quant": gradients_of(lambda x: tf.fake_quant_with_min_max_vars(x, -1.0, 1.0), F),
    "norm": gradients_of(lambda x: tf.norm(x, axis=1) + tf.reduce_logsumexp(x, 1), F),
    "low_precision": lambda: (lambda x: tf.gradients(tf.matmul(x, x, transpose_b=True), x))(tf.constant(F.astype(np.float16))),
    "double": lambda: (lambda x: tf.gradients(tf.tanh(tf.matmul(x, x, transpose_b=True)), x))(tf.constant(F.astype(np.float64))),
}
test_gradients = table(GRADIENTS, rtol=1e-3)

IMAGES = {
    "adjust": lambda: [tf.image.adjust_brightness(IMAGE, 0.1), tf.image.adjust_contrast(IMAGE, 1.5), tf.image.adjust_hue(IMAGE, 0.2), tf.image.adjust_saturation(IMAGE, 0.5), tf.image.adjust_gamma(IMAGE, 2.0)],
    "color": lambda: [tf.image.rgb_to_hsv(IMAGE), tf.image.hsv_to_rgb(IMAGE), tf.image.rgb_to_grayscale(IMAGE), tf.image.rgb_to_yuv(IMAGE), tf.image.grayscale_to_rgb(tf.constant(IMAGE[..., :1])), tf.image.convert_image_dtype(IMAGE, tf.uint8)],
    "crop": lambda: [tf.image.central_crop(IMAGE[0], 0.5), tf.image.crop_to_bounding_box(IMAGE, 1, 1, 3, 3), tf.image.pad_to_bounding_box(IMAGE, 1, 1, 10, 9), tf.image.resize_image_with_crop_or_pad(IMAGE, 5, 9)],
    "flip": lambda: [tf.image.flip_left_right(IMAGE), tf.image.flip_up_down(IMAGE), tf.image.rot90(IMAGE[0]), tf.image.transpose_image(IMAGE[0]), tf.image.random_flip_left_right(IMAGE[0], seed=1)],
    "resize": lambda: [tf.image.resize_images(IMAGE, [5, 4], m) for m in range(4)] + [tf.image.resize_images(IMAGE, [16, 12], m, align_corners=True) for m in range(4)],
    "resize_v2": lambda: [tf2.image.resize(IMAGE, [5, 4], m) for m in ("bilinear", "nearest", "bicubic", "area")],
    "boxes": lambda: [tf.image.non_max_suppression([[0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 1.1, 1.1], [2.0, 2.0, 3.0, 3.0]], [0.9, 0.8, 0.7], 3), tf.image.draw_bounding_boxes(IMAGE, np.array([[[0.1, 0.1, 0.9, 0.9]]] * 2, np.float32)), tf.image.crop_and_resize(IMAGE, [[0.0, 0.0, 1.0, 1.0]], [1], [4, 4], "nearest")],
    "combined_nms": lambda: tf.image.combined_non_max_suppression(R.rand(1, 4, 1, 4).astype(np.float32) * 0 + np.array([[[[0, 0, 1, 1]], [[0, 0, 1, 1.1]], [[2, 2, 3, 3]], [[5, 5, 6, 6]]]], np.float32), np.array([[[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.6, 0.9]]], np.float32), 2, 3),
    "measures": lambda: [tf.image.psnr(IMAGE, IMAGE * 0.9, 1.0), tf.image.total_variation(tf.constant(IMAGE)), tf.image.image_gradients(tf.constant(IMAGE)), tf.image.sobel_edges(tf.constant(IMAGE)), tf.image.per_image_standardization(IMAGE)],
    "ssim": lambda: tf.image.ssim(np.tile(IMAGE, [1, 2, 2, 1]), np.tile(IMAGE * 0.9, [1, 2, 2, 1]), 1.0),
    "random": lambda: [tf.image.random_brightness(IMAGE, 0.2, seed=1), tf.image.random_contrast(IMAGE, 0.5, 1.5, seed=2), tf.image.random_hue(IMAGE, 0.2, seed=3), tf.image.random_saturation(IMAGE, 0.5, 1.5, seed=4), tf.random_crop(IMAGE, [1, 3, 3, 3], seed=5)],
    "codes": lambda: [tf.image.decode_png(tf.image.encode_png((IMAGE[0] * 255).astype(np.uint8))), tf.image.decode_image(tf.image.encode_png((IMAGE[0] * 255).astype(np.uint8)))],
    "distorted_box": lambda: tf.image.sample_distorted_bounding_box([8, 6, 3], [[[0.1, 0.1, 0.9, 0.9]]], seed=3, min_object_covered=0.1),
    "jpeg_error": lambda: tf.image.decode_jpeg("not a jpeg"),
}
test_images = table(IMAGES, rtol=1e-3)

RANDOM = {
    "normals": lambda: [tf.random_normal([5], seed=1), tf.random_normal([2, 3], 1.0, 2.0, tf.float64, seed=2), tf.truncated_normal([5], seed=3), tf.random_normal([3], dtype=tf.float16, seed=4)],
    "uniforms": lambda: [tf.random_uniform([5], seed=1), tf.random_uniform([5], -3, 9, tf.int32, seed=2), tf.random_uniform([2], 0, 2 ** 40, tf.int64, seed=3)],
    "graph_seed_only": lambda: [tf.random_normal([3]), tf.random_uniform([3])],
    "shuffle": lambda: [tf.random_shuffle(np.arange(10), seed=1), tf.random_shuffle(F, seed=2)],
    "multinomial": lambda: [tf.multinomial(F, 5, seed=1), tf.random.categorical(F, 3, dtype=tf.int32, seed=2)],
    "gamma_poisson": lambda: [tf.random_gamma([3], [0.5, 2.0], seed=1), tf.random_poisson([0.5, 20.0], [3], seed=2)],
    "stateless": lambda: [tf.random.stateless_normal([3], [1, 2]), tf.random.stateless_uniform([3], [1, 2]), tf.random.stateless_truncated_normal([3], [1, 2]), tf.random.stateless_categorical(F, 3, [1, 2]), tf2.random.stateless_gamma([3], [1, 2], 2.0)],
    "fold_in": lambda: [tf2.random.fold_in([1, 2], 3), tf2.random.split([1, 2], 3)],
    "initializers": lambda: [f([3, 4], tf.float32) for f in (tf.zeros_initializer(), tf.ones_initializer(), tf.constant_initializer(3.0), tf.random_uniform_initializer(seed=1), tf.random_normal_initializer(seed=2), tf.truncated_normal_initializer(seed=3), tf.glorot_uniform_initializer(seed=4), tf.glorot_normal_initializer(seed=5), tf.initializers.he_normal(seed=6), tf.uniform_unit_scaling_initializer(seed=7), tf.initializers.lecun_uniform(seed=8), tf.initializers.identity())],
    "orthogonal": lambda: tf.abs(tf.orthogonal_initializer(seed=1)([3, 3], tf.float32)),
    "distributions": lambda: [tf.distributions.Normal(0.0, 2.0).log_prob([1.0]), tf.distributions.Categorical(logits=F).entropy(), tf.distributions.Beta(2.0, 3.0).mean(), tf.distributions.Dirichlet([1.0, 2.0]).log_prob([0.3, 0.7]), tf.distributions.kl_divergence(tf.distributions.Normal(0.0, 1.0), tf.distributions.Normal(1.0, 2.0)), tf.distributions.Bernoulli(0.3).sample(5, seed=1), tf.distributions.Gamma(2.0, 1.0).cdf([1.0]), tf.distributions.StudentT(3.0, 0.0, 1.0).log_prob(0.5)],
}
test_random = table(RANDOM)

LOSSES = {
    "losses": lambda: [tf.losses.absolute_difference(LABELS, F), tf.losses.mean_squared_error(LABELS, F, weights=[[1.0], [0.0], [2.0]]), tf.losses.hinge_loss(LABELS, F), tf.losses.huber_loss(LABELS, F), tf.losses.log_loss(LABELS, G / 2.0), tf.losses.cosine_distance(LABELS, F, axis=1), tf.losses.mean_pairwise_squared_error(LABELS, F), tf.losses.sigmoid_cross_entropy(LABELS, F, label_smoothing=0.1), tf.losses.softmax_cross_entropy(LABELS, F, label_smoothing=0.1), tf.losses.get_total_loss()],
    "reductions": lambda: [tf.losses.mean_squared_error(LABELS, F, reduction=r) for r in ("none", "weighted_sum", "weighted_mean", "weighted_sum_over_batch_size", "weighted_sum_by_nonzero_weights")],
    "schedules": lambda: [f(tf.constant(s)) for s in (0, 7, 100) for f in (lambda s: tf.train.exponential_decay(0.1, s, 10, 0.5), lambda s: tf.train.polynomial_decay(0.1, s, 50, 0.01, cycle=True), lambda s: tf.train.piecewise_constant(s, [5, 50], [1.0, 0.5, 0.1]), lambda s: tf.train.cosine_decay(0.1, s, 50), lambda s: tf.train.cosine_decay_restarts(0.1, s, 20), lambda s: tf.train.natural_exp_decay(0.1, s, 10, 0.5), lambda s: tf.train.inverse_time_decay(0.1, s, 10, 0.5), lambda s: tf.train.linear_cosine_decay(0.1, s, 50))],
}
test_losses = table(LOSSES)
