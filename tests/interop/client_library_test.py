"""The corners of TensorFlow's public library in the graphs of clients: text of any script, counts, and what else is named below."""
import numpy as np
import tensorflow as tf2
import tensorflow.compat.v1 as tf
from tensorflow.python.data.experimental.ops import testing
from tensorflow.python.framework import test_ops, test_util

from client_programs import program, table


def parts(r):
    """What a ragged tensor is made of."""
    return [r.flat_values, list(r.nested_row_splits)]


def words():
    return tf.constant([w.encode() for w in ("hello", "", "été", "日本語", "a😀b")] + [b"a\xffb"])


def sparse(values=(1, 3, 1, 0), dtype=np.int32):
    return tf.SparseTensor([[0, 0], [0, 2], [1, 1], [3, 0]], np.array(values, dtype), [4, 3])


TEXT = {
    "decode": lambda: [parts(tf.strings.unicode_decode(words(), "UTF-8")), tf.strings.unicode_decode("héllo", "UTF-8"), parts(tf.strings.unicode_decode(words(), "UTF-8", errors="ignore"))],
    "decode_strict": lambda: parts(tf.strings.unicode_decode(words(), "UTF-8", errors="strict")),
    "decode_offsets": lambda: [parts(r) for r in tf.strings.unicode_decode_with_offsets([["a😀", "b"], ["", "日本"]], "UTF-8")],
    "decode_encodings": lambda: [parts(tf.strings.unicode_decode([b"a\xe9", b"\x00b"], e)) for e in ("UTF-16-BE", "ISO-8859-1", "shift-jis", "US-ASCII")],
    "split": lambda: [parts(tf.strings.unicode_split(words(), "UTF-8")), tf.strings.unicode_split("😀x", "UTF-8"), [parts(r) for r in tf.strings.unicode_split_with_offsets(words(), "UTF-8")]],
    "encode": lambda: [tf.strings.unicode_encode(tf.ragged.constant([[72, 233], [0x1f600], []]), e) for e in ("UTF-8", "UTF-16-BE", "UTF-32-BE")] + [tf.strings.unicode_encode([72, 105], "UTF-8"), tf.strings.unicode_encode([[72, 105], [33, 63]], "UTF-8")],
    "encode_errors": lambda: [tf.strings.unicode_encode([0xd800, 65], "UTF-8"), tf.strings.unicode_encode([0xd800, 65], "UTF-8", "ignore")],
    "encode_strict": lambda: tf.strings.unicode_encode([0xd800, 65], "UTF-8", "strict"),
    "transcode": lambda: [tf.strings.unicode_transcode(words(), "UTF-8", e) for e in ("UTF-8", "UTF-16-BE", "UTF-32-BE")] + [tf.strings.unicode_transcode(["a\tb"], "UTF-8", "UTF-8", replace_control_characters=True, replacement_char=ord("?"))],
    "script": lambda: tf.strings.unicode_script([ord(c) for c in "aé日αЖ1 "]),
    "length": lambda: [tf2.strings.length(words(), unit="UTF8_CHAR"), tf.strings.substr("a😀b", 1, 1, unit="UTF8_CHAR")],
}
test_text = table(TEXT, modes=("v1", "v2"))

def most(dtype):
    """Numbers whose sum their type cannot hold."""
    top = np.iinfo(dtype).max
    return np.array([[top, top - 5, top], [top - 2, top - 100, 7]], dtype)


def random(*shape, dtype=np.float64):
    r = np.random.RandomState(3)
    return tf.constant((r.randn(*shape) + 1j * r.randn(*shape)).astype(dtype) if np.dtype(dtype).kind == "c" else r.randn(*shape).astype(dtype))


NUMBERS = {
    "mean_of_integers": lambda: [tf.reduce_mean(tf.constant(most(t)), axis) for t in (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64) for axis in (None, 0, 1)]
        + [tf.reduce_mean(tf.fill([3, 3000], np.int8(7)), 1)],
    "svd_of_no_number": lambda: [list(tf.linalg.svd(tf.constant([[1, bad], [0, 1.0]]))) for bad in (np.nan, np.inf)],
    "svd_of_columns": lambda: [[s, tf.matmul(u * tf.cast(s, u.dtype), v, adjoint_b=True)] for shape in ((9, 5), (3, 9), (40, 40)) for t in (np.float64, np.complex128) for s, u, v in [tf.linalg.svd(random(*shape, dtype=t))]],
    "products_of_tiles": lambda: [tf.matmul(random(*a, dtype=t), random(*b, dtype=t), adjoint_a=x, adjoint_b=y) for t in (np.float64, np.complex128, np.complex64)
                                  for a, b, x, y in (((67, 131), (131, 66), False, False), ((131, 67), (131, 66), True, False), ((3, 300), (9, 300), False, True), ((2, 65, 30), (30, 70), False, False))],
}
test_numbers = table(NUMBERS)

COUNTS = {
    "bincount": lambda: [tf.math.bincount(np.array([1, 1, 3], np.int32)), tf.math.bincount([1, 1, 3], weights=[0.5, 0.25, 1.0], minlength=6), tf.math.bincount([1, 5], maxlength=3), tf2.math.bincount([[1, 1], [2, 0]], axis=-1), tf2.math.bincount([[1, 1], [2, 0]], axis=-1, binary_output=True)],
    "bincount_sparse": lambda: [tf2.math.bincount(sparse(), axis=-1), tf2.math.bincount(sparse(), axis=0), tf2.math.bincount(sparse(), axis=-1, binary_output=True, minlength=6), tf2.math.bincount(sparse(), axis=-1, weights=sparse((1, 2, 3, 4), np.float32))],
    "bincount_ragged": lambda: [tf2.math.bincount(tf.ragged.constant([[1, 1], [], [3]]), axis=-1), tf2.math.bincount(tf.ragged.constant([[1, 1], [], [3]]), axis=-1, weights=tf.ragged.constant([[0.5, 1.5], [], [2.0]])), tf2.math.bincount(tf.ragged.constant([[1, 1], [], [3]]), axis=0)],
    "count_dense": lambda: [tf2.sparse.bincount([[1, 1], [2, 5]], axis=-1), tf2.sparse.bincount([1, 1, 4]), tf2.sparse.bincount([[1, 1], [2, 5]], axis=-1, weights=[[0.5, 1.0], [2.0, 3.0]], maxlength=3)],
    "count_sparse": lambda: [tf2.sparse.bincount(sparse(), axis=-1), tf2.sparse.bincount(sparse(), axis=-1, binary_output=True), tf2.sparse.bincount(sparse(), axis=-1, weights=sparse((1, 2, 3, 4), np.float32))],
    "count_ragged": lambda: [tf2.sparse.bincount(tf.ragged.constant([[1, 1], [], [3]]), axis=-1, minlength=7)],
    "count_error": lambda: tf2.sparse.bincount(tf.stop_gradient([-1, 2])),
}
test_counts = table(COUNTS, modes=("v1", "v2"))


def diagonals():
    return np.array([[2.0, 1.0, 0.5, 0.0], [5.0, 6.0, 7.0, 8.0], [0.0, 1.0, 2.0, 3.0]])


def image():
    return tf.constant(np.arange(2 * 6 * 5 * 3, dtype=np.float32).reshape(2, 6, 5, 3) % 17)


MATHS = {
    "tridiagonal_solve": lambda: [tf.linalg.tridiagonal_solve(tf.constant(diagonals()), tf.constant([1.0, 2.0, 3.0, 4.0], tf.float64)), tf.linalg.tridiagonal_solve(tf.constant(diagonals()), tf.ones((4, 2), tf.float64), partial_pivoting=False), tf.linalg.tridiagonal_solve(tf.constant(diagonals()), tf.ones(4, tf.float64), perturb_singular=True)],
    "tridiagonal_matmul": lambda: [tf.linalg.tridiagonal_matmul(diagonals(), np.ones((4, 2))), tf.linalg.tridiagonal_matmul(tuple(diagonals()), np.ones((4, 2)), diagonals_format="sequence")],
    "banded_triangular_solve": lambda: [tf2.linalg.banded_triangular_solve(diagonals()[1:], np.ones((4, 2)))],
    "gradients": lambda: (lambda d: tf.gradients(tf.linalg.tridiagonal_solve(d, tf.ones(4, tf.float64)), d))(tf.constant(diagonals())),
    "isotonic": lambda: list(tf2.nn.isotonic_regression(np.array([[3.0, 1.0, 2.0, 5.0], [4.0, 3.0, 2.0, 1.0]]))) + list(tf2.nn.isotonic_regression([[3.0, 1.0, 2.0, 5.0]], decreasing=False)),
    "binomial": lambda: [tf.random.stateless_binomial([5, 2], [1, 2], [10.0, 90.0], [0.5, 0.25]), tf.random.stateless_binomial([6], [3, 4], 20.0, 0.75, output_dtype=tf.float32)],
    "poisson": lambda: [tf.random.stateless_poisson([5, 3], [1, 2], [0.5, 3.0, 30.0]), tf.random.stateless_poisson([7], [3, 4], 12.0, dtype=tf.int64)],
}
test_maths = table(MATHS, modes=("v1", "v2"))

IMAGES = {
    "antialias": lambda: [tf2.image.resize(image(), [3, 4], m, antialias=True) for m in ("bilinear", "bicubic", "lanczos3", "lanczos5", "gaussian", "mitchellcubic", "area")],
    "lanczos": lambda: [tf2.image.resize(image(), [9, 4], m) for m in ("lanczos3", "lanczos5", "gaussian", "mitchellcubic")],
    "preserve": lambda: tf2.image.resize(image(), [4, 4], "lanczos3", preserve_aspect_ratio=True, antialias=True),
    "gradients": lambda: (lambda x: tf.gradients(tf2.image.resize(x, [3, 8], "lanczos3", antialias=True), x))(image()),
    "fractional": lambda: [f(image(), [1.0, 1.4, 1.6, 1.0], True, overlapping, seed=7) for f in (tf2.nn.fractional_max_pool, tf2.nn.fractional_avg_pool) for overlapping in (False, True)],
    "fractional_gradients": lambda: (lambda x: tf.gradients(tf2.nn.fractional_max_pool(x, [1.0, 1.4, 1.6, 1.0], seed=7)[0] ** 2, x))(image()),
}
test_images = table(IMAGES, modes=("v1", "v2"))


@program("v1", "v2")
def test_csv_datasets(p):
    path = p.folder + "/data.csv"
    with open(path, "w") as f:
        f.write('id,x,name\n1,2.5,a\n2,,"b, c"\n3,4,"two\nlines"\n4,oops,d\n5,6,e\n')
    whole = tf2.data.experimental.CsvDataset(path, [tf.int64, tf.constant([0.5]), tf.string], header=True)
    some = tf2.data.experimental.CsvDataset([path, path], [tf.string], header=True, select_cols=[2])
    rest = tf2.data.experimental.CsvDataset(path, [tf.int64, tf.string], header=True, exclude_cols=[1])
    for dataset in (whole, some, rest):
        following = tf.data.make_one_shot_iterator(dataset).get_next()
        for _ in range(12):
            p.run(following)


@program("v1", "v2")
def test_make_csv_dataset(p):
    path = p.folder + "/data.csv"
    with open(path, "w") as f:
        f.write("id,x,label\n" + "".join("%d,%g,%d\n" % (i, i / 4, i % 3) for i in range(10)))
    dataset = tf2.data.experimental.make_csv_dataset(path, 4, label_name="label", num_epochs=1, shuffle=False)
    following = tf.data.make_one_shot_iterator(dataset).get_next()
    for _ in range(4):
        p.run(following)


@program("v1", "v2")
def test_batched_features(p):
    feature = tf.train.Feature
    path = p.folder + "/data.tfrecord"
    with tf.io.TFRecordWriter(path) as f:
        for i in range(7):
            parts = {"i": feature(int64_list=tf.train.Int64List(value=[i])), "v": feature(float_list=tf.train.FloatList(value=[0.5] * i)),
                     "s": feature(bytes_list=tf.train.BytesList(value=[b"x"] * (i % 3)))}
            f.write(tf.train.Example(features=tf.train.Features(feature=parts)).SerializeToString())
    features = {"i": tf.io.FixedLenFeature([], tf.int64), "v": tf.io.VarLenFeature(tf.float32), "s": tf.io.RaggedFeature(tf.string)}
    parsed = tf2.data.TFRecordDataset(path).batch(3).apply(tf2.data.experimental.parse_example_dataset(features))
    batched = tf2.data.experimental.make_batched_features_dataset(path, 3, {"i": features["i"], "v": features["v"]}, num_epochs=1, shuffle=False)
    for dataset in (parsed, batched):
        following = tf.data.make_one_shot_iterator(dataset).get_next()
        following = {k: [v.flat_values, v.row_splits] if isinstance(v, tf.RaggedTensor) else v for k, v in following.items()}
        for _ in range(4):
            p.run(following)


@program("v1", "v2")
def test_dense_to_sparse_batches(p):
    rows = tf2.data.Dataset.range(5).map(lambda n: tf.fill([n], n))
    following = tf.data.make_one_shot_iterator(rows.apply(tf2.data.experimental.dense_to_sparse_batch(2, [6]))).get_next()
    for _ in range(4):
        p.run(following)


@program()
def test_ops_that_try_out_a_runtime(p):
    """TensorFlow's own tests use them."""
    handle = test_ops.stub_resource_handle_op(container="trial", shared_name="stub")
    there, create, use = test_ops.resource_initialized_op(handle), test_ops.resource_create_op(handle), test_ops.resource_using_op(handle)
    for step in (there, use, create, there, use, create):
        p.run(step)
    with tf.get_default_graph()._kernel_label_map({"KernelLabel": "overload_1"}):
        labelled = test_ops.kernel_label()
    p.run([test_ops.kernel_label(), labelled])
    with tf.Graph().as_default() as old, tf.Session(p.target, graph=old) as session:
        test_util.set_producer_version(old, 7)
        op = test_ops.old()
        p.attempt(lambda: session.run(op))


@program()
def test_classes_of_characters_by_unicode(p):
    text = tf.constant(["aÉβ1 ж", "日本語かな €!", "\x01a\u200d\u0301"])
    for pattern in (r"\pL", r"\p{Greek}|\p{Han}+", r"[\p{Lu}\p{Nd}]", r"\p{^Latin}", r"[^\p{L}\pM]", r"(?i)[б-з]", r"\PZ", r"\p{S}|\pC", r"\p{Nope}", r"\p{Any}{2}"):
        p.run(tf.strings.regex_replace(text, pattern, "<\\0>"))


@program()
def test_steps_that_a_pipeline_has_not(p):
    def pull(dataset):
        iterator = tf.data.make_initializable_iterator(dataset)
        p.run(iterator.initializer)
    options = tf2.data.Options()
    options.experimental_optimization.apply_default_optimizations = False
    for names in (["Map"], ["Whoops"], ["Map", "Whoops"], ["Map", "Root", "Map"]):
        pull(tf2.data.Dataset.from_tensors(0).apply(testing.assert_next(names)).map(lambda x: x).with_options(options))
    for steps in ([("TensorDataset", {})], [("Whoops", {})], [("TensorDataset", {}), ("Whoops", {})], [("TensorDataset", {"whoops": "true"})]):
        pull(tf2.data.Dataset.from_tensors(0).apply(testing.assert_prev(steps)).with_options(options))
