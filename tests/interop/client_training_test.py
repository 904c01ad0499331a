"""Variables, optimizers, metrics, moving averages and tf.data as training programs use them."""
import os

import numpy as np
import pytest
import tensorflow as tf2
import tensorflow.compat.v1 as tf

from client_programs import compare, program

BOTH = ("v1", "v2")
OPTIMIZERS = {
    "sgd": lambda: tf.train.GradientDescentOptimizer(0.1),
    "momentum": lambda: tf.train.MomentumOptimizer(0.1, 0.9),
    "nesterov": lambda: tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    "adam": lambda: tf.train.AdamOptimizer(0.1),
    "adagrad": lambda: tf.train.AdagradOptimizer(0.1),
    "adagrad_da": lambda: tf.train.AdagradDAOptimizer(0.1, tf.train.get_or_create_global_step(), l1_regularization_strength=0.001),
    "adadelta": lambda: tf.train.AdadeltaOptimizer(1.0),
    "rmsprop": lambda: tf.train.RMSPropOptimizer(0.1, momentum=0.5),
    "rmsprop_centered": lambda: tf.train.RMSPropOptimizer(0.1, centered=True),
    "ftrl": lambda: tf.train.FtrlOptimizer(0.1, l1_regularization_strength=0.01, l2_regularization_strength=0.01),
    "ftrl_shrinkage": lambda: tf.train.FtrlOptimizer(0.1, l2_shrinkage_regularization_strength=0.1),
    "proximal_sgd": lambda: tf.train.ProximalGradientDescentOptimizer(0.1, l1_regularization_strength=0.01),
    "proximal_adagrad": lambda: tf.train.ProximalAdagradOptimizer(0.1, l2_regularization_strength=0.01),
}


def optimize(optimizer, sparse, dtype, p):
    v = tf.get_variable("v", initializer=np.arange(1, 9).reshape(4, 2).astype(dtype) / 10)
    w = tf.get_variable("w", initializer=np.ones([2], dtype))
    if sparse:
        loss = tf.reduce_sum(tf.square(tf.nn.embedding_lookup(v, [0, 2, 2]) * w - 1))
    else:
        loss = tf.reduce_sum(tf.square(v * w - 1))
    step = tf.train.get_or_create_global_step()
    train = OPTIMIZERS[optimizer]().minimize(loss, step)
    p.init()
    for _ in range(3):
        p.run(train)
        p.run([v, w, loss, step])
    p.run(sorted(tf.global_variables(), key=lambda x: x.name))


@pytest.mark.parametrize("mode", BOTH)
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_optimizer(rill, tmp_path, optimizer, sparse, mode):
    compare(lambda p: optimize(optimizer, sparse, np.float32, p), rill, "", tmp_path, mode)


@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "adam", "adagrad", "rmsprop", "ftrl"])
def test_optimizer_with_doubles(rill, tmp_path, optimizer):
    compare(lambda p: optimize(optimizer, False, np.float64, p), rill, "", tmp_path, "v2", rtol=1e-9)


@program(*BOTH)
def test_slots_of_halves_count_as_they_are_stored(p):
    """The squares of these gradients are all but lost in a slot of halves."""
    v = tf.get_variable("v", initializer=np.array([3.0, 4.0], np.float16))
    step = tf.train.AdamOptimizer(0.5).apply_gradients([(tf.constant([0.01, 0.02], tf.half), v)])
    p.init()
    for _ in range(3):
        p.run(step)
        p.run(v)


@program(*BOTH)
def test_variable_methods(p):
    v = tf.get_variable("v", initializer=np.arange(6, dtype=np.float32).reshape(3, 2))
    p.init()
    p.run(v.assign_add(tf.ones([3, 2])))
    p.run(v.assign_sub(tf.ones([3, 2]) * 0.5))
    for op in (tf.scatter_update, tf.scatter_add, tf.scatter_sub, tf.scatter_mul, tf.scatter_div, tf.scatter_min, tf.scatter_max):
        p.run(op(v, [0, 2], [[1.0, 2.0], [3.0, 4.0]]))
        p.run(v)
    p.run(tf.scatter_nd_update(v, [[0, 1]], [7.0]))
    p.run(tf.scatter_nd_add(v, [[1]], [[1.0, 1.0]]))
    p.run(v[1:, 0].assign([50.0, 60.0]))
    p.run(v)
    p.run(v.scatter_update(tf.IndexedSlices([[9.0, 9.0]], [1])))
    p.run(tf.scatter_update(v, [7], [[1.0, 1.0]]))
    i = tf.get_variable("i", initializer=0)
    p.run(i.initializer)
    for _ in range(4):
        p.run(tf.count_up_to(i, 3))


@program(*BOTH)
def test_variable_scopes_and_reuse(p):
    with tf.variable_scope("a", initializer=tf.constant_initializer(2.0), regularizer=tf.nn.l2_loss):
        x = tf.get_variable("x", [2])
        with tf.variable_scope("b", reuse=tf.AUTO_REUSE):
            y = tf.get_variable("y", [3])
            again = tf.get_variable("y", [3])
    with tf.variable_scope("a", reuse=True):
        z = tf.get_variable("x", [2])
    local = tf.get_local_variable("l", [1], initializer=tf.ones_initializer())
    p.init()
    p.run(z.assign([5.0, 6.0]))
    p.run([x, y, again, local, tf.losses.get_regularization_loss()])
    p.record(sorted(v.name for v in tf.global_variables()))


@program(*BOTH)
def test_initialization_order(p):
    a = tf.get_variable("a", initializer=lambda: tf.random_normal([2], seed=1))
    with tf.control_dependencies([a.initializer]):
        b = tf.get_variable("b", initializer=lambda: tf.ones([2]))
    p.run([a.initializer, b.initializer])
    p.run([a, b])
    p.run(tf.variables_initializer([a]))
    p.run(tf.report_uninitialized_variables())
    p.run(tf.Variable(tf.zeros([2]), name="c"))
    p.run(tf.assert_variables_initialized([a]))


@program(*BOTH)
def test_read_and_assign_in_one_step(p):
    v = tf.get_variable("v", initializer=1.0)
    p.init()
    read = v.read_value()
    with tf.control_dependencies([read]):
        write = v.assign_add(10.0)
    with tf.control_dependencies([write]):
        after = v.read_value()
    for _ in range(3):
        p.run([read, after])


@program(*BOTH)
def test_moving_averages(p):
    v = tf.get_variable("v", initializer=[1.0, 2.0])
    step = tf.get_variable("step", initializer=0)
    average = tf.train.ExponentialMovingAverage(0.9, step, zero_debias=False)
    update = average.apply([v])
    shadow = average.average(v)
    p.init()
    for i in range(3):
        p.run(v.assign_add([1.0, -1.0]))
        p.run(step.assign(i * 10))
        p.run(update)
        p.run(shadow)


@program()
def test_metrics(p):
    labels, predictions = tf.placeholder(tf.int64, [None]), tf.placeholder(tf.int64, [None])
    scores, weights = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.float32, [None])
    binary = tf.cast(labels, tf.bool)
    metrics = {
        "accuracy": tf.metrics.accuracy(labels, predictions, weights),
        "precision": tf.metrics.precision(binary, predictions),
        "recall": tf.metrics.recall(binary, predictions, weights),
        "auc": tf.metrics.auc(binary, scores, weights),
        "auc_pr": tf.metrics.auc(binary, scores, curve="PR", summation_method="careful_interpolation"),
        "mean": tf.metrics.mean(scores, weights),
        "mean_iou": tf.metrics.mean_iou(labels, predictions, 2),
        "mse": tf.metrics.mean_squared_error(scores, weights),
        "rmse": tf.metrics.root_mean_squared_error(scores, weights),
        "mae": tf.metrics.mean_absolute_error(scores, weights),
        "per_class": tf.metrics.mean_per_class_accuracy(labels, predictions, 2),
        "percentage": tf.metrics.percentage_below(scores, 0.5),
        "true_positives": tf.metrics.true_positives(binary, predictions),
        "thresholds": tf.metrics.recall_at_thresholds(binary, scores, [0.2, 0.6]),
        "sensitivity": tf.metrics.sensitivity_at_specificity(binary, scores, 0.5),
        "mean_tensor": tf.metrics.mean_tensor(tf.reshape(scores, [2, 2])),
        "relative": tf.metrics.mean_relative_error(scores, weights, weights),
    }
    top = tf.metrics.recall_at_k(labels, tf.stack([scores, 1.0 - scores, weights], 1), 2)
    average = tf.metrics.average_precision_at_k(labels, tf.stack([scores, 1.0 - scores, weights], 1), 2)
    p.init()
    random = np.random.RandomState(5)
    for _ in range(3):
        feeds = {labels: random.randint(0, 2, 4), predictions: random.randint(0, 2, 4), scores: random.rand(4), weights: random.rand(4) + 0.1}
        p.run({name: m[1] for name, m in metrics.items()}, feeds)
        p.run([top[1], average[1]], feeds)
    p.run({name: m[0] for name, m in metrics.items()})
    p.run([top[0], average[0]])


def elements(p, dataset, count=30):
    """All of a dataset by a one-shot iterator, then what comes after its end."""
    following = tf.data.make_one_shot_iterator(dataset).get_next()
    for _ in range(count):
        if p.run(following) is None:
            return


Data = tf.data.Dataset
DATASETS = {
    "range": lambda: Data.range(2, 9, 3),
    "slices": lambda: Data.from_tensor_slices({"a": [1, 2, 3], "b": (["x", "y", "z"], [[1.0], [2.0], [3.0]])}),
    "tensors": lambda: Data.from_tensors([1, 2]).repeat(2),
    "batch": lambda: Data.range(7).batch(3),
    "batch_remainder": lambda: Data.range(7).batch(3, drop_remainder=True),
    "unbatch": lambda: Data.range(6).batch(3).unbatch(),
    "padded": lambda: Data.range(1, 6).map(lambda i: tf.fill([i], i)).padded_batch(2, [None]),
    "padded_values": lambda: Data.range(1, 4).map(lambda i: (tf.fill([i], i), tf.as_string(i))).padded_batch(2, ([5], []), padding_values=(tf.constant(-1, tf.int64), "")),
    "map": lambda: Data.range(5).map(lambda i: (i * i, tf.as_string(i))),
    "map_parallel": lambda: Data.range(9).map(lambda i: i + 1, num_parallel_calls=3),
    "flat_map": lambda: Data.range(4).flat_map(lambda i: Data.range(i)),
    "interleave": lambda: Data.range(4).interleave(lambda i: Data.from_tensors(i).repeat(3), cycle_length=2, block_length=2),
    "interleave_parallel": lambda: Data.range(4).interleave(lambda i: Data.from_tensors(i).repeat(3), cycle_length=2, block_length=2, num_parallel_calls=2, deterministic=True),
    "filter": lambda: Data.range(10).filter(lambda i: tf.equal(i % 3, 0)),
    "zip": lambda: Data.zip((Data.range(3), Data.range(10, 20))),
    "concatenate": lambda: Data.range(2).concatenate(Data.range(5, 7)),
    "take_skip": lambda: Data.range(20).skip(3).take(5),
    "shard": lambda: Data.range(10).shard(3, 1),
    "repeat": lambda: Data.range(2).repeat(3),
    "repeat_zero": lambda: Data.range(2).repeat(0),
    "shuffle": lambda: Data.range(10).shuffle(4, seed=3),
    "shuffle_repeat": lambda: Data.range(4).shuffle(4, seed=3).repeat(3),
    "shuffle_once": lambda: Data.range(4).shuffle(4, seed=3, reshuffle_each_iteration=False).repeat(2),
    "shuffle_and_repeat": lambda: Data.range(4).apply(tf.data.experimental.shuffle_and_repeat(3, 2, seed=5)),
    "window": lambda: Data.range(7).window(3, 2).flat_map(lambda w: w.batch(3)),
    "window_drop": lambda: Data.range(7).window(3, 1, 2, True).flat_map(lambda w: w.batch(3)),
    "scan": lambda: Data.range(5).apply(tf.data.experimental.scan(tf.constant(0, tf.int64), lambda s, i: (s + i, s * 10))),
    "take_while": lambda: Data.range(9).apply(tf.data.experimental.take_while(lambda i: i < 4)),
    "unique": lambda: Data.from_tensor_slices([1, 2, 1, 3]).apply(tf.data.experimental.unique()),
    "enumerate": lambda: Data.from_tensor_slices(["a", "b"]).apply(tf.data.experimental.enumerate_dataset(5)),
    "group_by_window": lambda: Data.range(8).apply(tf.data.experimental.group_by_window(lambda i: i % 2, lambda k, d: d.batch(3), 3)),
    "group_by_reducer": lambda: Data.range(6).apply(tf.data.experimental.group_by_reducer(lambda i: i % 2, tf.data.experimental.Reducer(lambda k: tf.constant(0, tf.int64), lambda s, i: s + i, lambda s: s * 100))),
    "bucket": lambda: Data.range(1, 9).map(lambda i: tf.fill([i % 4 + 1], i)).apply(tf.data.experimental.bucket_by_sequence_length(lambda x: tf.shape(x)[0], [3], [2, 2])),
    "map_and_batch": lambda: Data.range(7).apply(tf.data.experimental.map_and_batch(lambda i: i * 2, 3)),
    "choose": lambda: tf.data.experimental.choose_from_datasets([Data.range(3), Data.range(10, 13)], Data.from_tensor_slices(np.array([0, 1, 1, 0, 1], np.int64))),
    "sample": lambda: tf.data.experimental.sample_from_datasets([Data.range(5), Data.range(10, 15)], [0.5, 0.5], seed=3),
    "rejection": lambda: Data.range(12).apply(tf.data.experimental.rejection_resample(lambda i: tf.cast(i % 2, tf.int32), [0.5, 0.5], [0.5, 0.5], seed=2)),
    "counter": lambda: tf.data.experimental.Counter(3, 2).take(4),
    "random": lambda: tf.data.experimental.RandomDataset(4).take(4),
    "cache": lambda: Data.range(3).cache().repeat(2),
    "prefetch": lambda: Data.range(5).prefetch(2),
    "reduce": lambda: Data.from_tensors(0).map(lambda _: Data.range(5).reduce(tf.constant(0, tf.int64), lambda s, i: s + i)),
    "sparse": lambda: Data.from_tensor_slices(tf.SparseTensor([[0, 0], [1, 1]], [1.0, 2.0], [2, 2])).map(lambda s: tf.sparse_tensor_to_dense(s)),
    "ragged": lambda: Data.range(3).map(lambda i: tf.fill([i], i)).apply(tf.data.experimental.dense_to_ragged_batch(2)).map(lambda r: r.to_tensor()),
    "ragged_batch": lambda: Data.range(4).map(tf.range).ragged_batch(2).map(lambda r: r.flat_values),
    "errors_in_the_middle": lambda: Data.range(4).map(lambda i: tf.check_numerics(1.0 / tf.cast(i - 2, tf.float32), "bad")),
    "ignore_errors": lambda: Data.range(4).map(lambda i: tf.check_numerics(1.0 / tf.cast(i - 2, tf.float32), "bad")).apply(tf.data.experimental.ignore_errors()),
    "from_generator_like": lambda: Data.range(3).map(lambda i: {"x": i, "y": tf.cond(i > 1, lambda: i, lambda: -i)}),
    "captures": lambda: (lambda c: Data.range(3).map(lambda i: i + c))(tf.constant(5, tf.int64)),
    "nested_functions": lambda: Data.range(4).map(tf2.function(lambda i: tf.while_loop(lambda j, s: j < i, lambda j, s: (j + 1, s + j), [tf.constant(0, tf.int64), tf.constant(0, tf.int64)])[1])),
    "assert_cardinality": lambda: Data.range(4).filter(lambda i: i < 3).apply(tf.data.experimental.assert_cardinality(3)),
    "strings": lambda: Data.from_tensor_slices(["a b", "c"]).map(lambda s: tf.string_split([s]).values).flat_map(lambda v: Data.from_tensor_slices(v)),
    "random_map": lambda: Data.range(4).map(lambda i: tf.random_uniform([], seed=7)),
    "options": lambda: Data.range(4).with_options(tf.data.Options()).map(lambda i: i + 1),
    "snapshot_free": lambda: Data.range(6).batch(2).map(tf.reduce_sum).repeat(2).shuffle(3, seed=1).prefetch(1),
    "rebatch": lambda: Data.range(7).batch(3).rebatch(2),
    "bernoulli": lambda: Data.range(3).map(lambda i: tf.random.stateless_uniform([2], tf.stack([i, i + 1]))),
}


@pytest.mark.parametrize("name", DATASETS)
def test_dataset(rill, tmp_path, name):
    compare(lambda p: elements(p, DATASETS[name]()), rill, "", tmp_path)


@program()
def test_iterators(p):
    n = tf.placeholder(tf.int64, [])
    initializable = tf.data.make_initializable_iterator(Data.range(n).map(lambda i: i * i))
    following = initializable.get_next()
    p.run(following)
    for size in (2, 3):
        p.run(initializable.initializer, {n: size})
        for _ in range(size + 1):
            p.run(following)
    either = tf.data.Iterator.from_structure(tf.int64, [])
    first, second = either.make_initializer(Data.range(2)), either.make_initializer(Data.range(5, 6))
    item = either.get_next()
    for op in (first, second, first):
        p.run(op)
        p.run(item)
    handle = tf.placeholder(tf.string, [])
    fed = tf.data.Iterator.from_string_handle(handle, tf.int64, []).get_next()
    one = tf.data.make_one_shot_iterator(Data.range(100, 103))
    two = tf.data.make_initializable_iterator(Data.range(200, 203))
    p.run(two.initializer)
    handles = p.session.run([one.string_handle(), two.string_handle()])
    for i in (0, 1, 0, 1):
        p.run(fed, {handle: handles[i]})
    optional = tf.data.experimental.get_next_as_optional(one)
    p.run(optional.has_value())
    for _ in range(3):
        p.run([optional.has_value()])
    p.run(either.get_next())


@program()
def test_iterator_checkpoints(p):
    path = os.path.join(p.folder, "iterator")
    iterator = tf.data.make_initializable_iterator(Data.range(20).shuffle(5, seed=1).map(lambda i: i * 2).batch(2).repeat(2))
    saver = tf.train.Saver([tf.data.experimental.make_saveable_from_iterator(iterator)])
    following = iterator.get_next()
    p.run(iterator.initializer)
    for _ in range(4):
        p.run(following)
    saver.save(p.session, path, write_meta_graph=False)
    for _ in range(3):
        p.run(following)
    saver.restore(p.session, path)
    for _ in range(6):
        p.run(following)


@program()
def test_datasets_of_files(p):
    lines = os.path.join(p.folder, "lines.txt")
    with open(lines, "w") as f:
        f.write("header\none\ntwo\r\n\nlast")
    records = os.path.join(p.folder, "r.tfrecord")
    with tf.io.TFRecordWriter(records) as w:
        for i in range(4):
            w.write(tf.train.Example(features=tf.train.Features(feature={
                "n": tf.train.Feature(int64_list=tf.train.Int64List(value=[i])),
                "v": tf.train.Feature(float_list=tf.train.FloatList(value=[i] * i))})).SerializeToString())
    fixed = os.path.join(p.folder, "fixed.bin")
    with open(fixed, "wb") as f:
        f.write(b"HHaabbccF")
    table = os.path.join(p.folder, "t.csv")
    with open(table, "w") as f:
        f.write("a,b\n1,x\n2,y\n")
    features = {"n": tf.FixedLenFeature([], tf.int64), "v": tf.VarLenFeature(tf.float32)}
    for dataset in (tf.data.TextLineDataset(lines), tf.data.TextLineDataset([lines, lines]).skip(1).filter(lambda s: tf.strings.length(s) > 0),
                    tf.data.TFRecordDataset([records]).map(lambda r: tf.parse_single_example(r, features)),
                    tf.data.TFRecordDataset([records]).batch(2).map(lambda r: tf.parse_example(r, features)),
                    tf.data.FixedLengthRecordDataset(fixed, 2, header_bytes=2, footer_bytes=1),
                    tf.data.TextLineDataset(table).skip(1).map(lambda line: tf.decode_csv(line, [[0], [""]])),
                    tf.data.TextLineDataset(os.path.join(p.folder, "none"))):
        elements(p, dataset)
    elements(p, Data.list_files(os.path.join(p.folder, "*.txt"), shuffle=False).map(lambda s: tf.strings.length(s) * 0))


@program()
def test_parsing(p):
    def example(**features):
        return tf.train.Example(features=tf.train.Features(feature={
            k: tf.train.Feature(**{{int: "int64_list", float: "float_list", bytes: "bytes_list"}[type(v[0])]: {
                int: tf.train.Int64List, float: tf.train.FloatList, bytes: tf.train.BytesList}[type(v[0])](value=v)}) for k, v in features.items()})).SerializeToString()

    both = [example(a=[1, 2], b=[1.5], c=[b"x", b"y"]), example(a=[3, 4], c=[b"z"])]
    p.run(tf.parse_example(both, {"a": tf.FixedLenFeature([2], tf.int64), "b": tf.FixedLenFeature([], tf.float32, -1.0), "c": tf.VarLenFeature(tf.string)}))
    p.run(tf.parse_example(both, {"c": tf.FixedLenSequenceFeature([], tf.string, allow_missing=True)}))
    p.run(tf.parse_example(both, {"s": tf.SparseFeature(["a"], "zz", tf.float32, [10])}))
    p.run(tf.parse_example(both, {"b": tf.FixedLenFeature([], tf.float32)}))
    p.run(tf.parse_example(both, {"a": tf.FixedLenFeature([3], tf.int64)}))
    p.run(tf.parse_example(both, {"a": tf.FixedLenFeature([2], tf.float32)}))
    p.run(tf.parse_example([b"junk"], {"a": tf.FixedLenFeature([2], tf.float32)}))
    sequence = tf.train.SequenceExample(context=tf.train.Features(feature={"n": tf.train.Feature(int64_list=tf.train.Int64List(value=[7]))}),
                                        feature_lists=tf.train.FeatureLists(feature_list={"s": tf.train.FeatureList(feature=[
                                            tf.train.Feature(float_list=tf.train.FloatList(value=[i, i + 1])) for i in range(3)])}))
    p.run(tf.parse_single_sequence_example(sequence.SerializeToString(), {"n": tf.FixedLenFeature([], tf.int64)}, {"s": tf.FixedLenSequenceFeature([2], tf.float32)}))
    p.run(tf.parse_single_sequence_example(sequence.SerializeToString(), {}, {"s": tf.VarLenFeature(tf.float32)}))
    p.run(tf.parse_single_sequence_example(sequence.SerializeToString(), {}, {"s": tf.FixedLenSequenceFeature([3], tf.float32)}))
    p.run(tf.io.parse_tensor(tf.io.serialize_tensor(tf.constant([[1, 2]])), tf.int32))
    p.run(tf.io.parse_tensor(tf.io.serialize_tensor(tf.constant([[1, 2]])), tf.float32))


@program(*BOTH)
def test_random_generators(p):
    g = tf2.random.Generator.from_seed(5)
    p.init()
    p.run(g.uniform([3]))
    p.run(g.normal([2]))
    p.run(g.uniform([2], 0, 10, tf.int32))
    p.run(g.truncated_normal([2]))
    p.run(g.uniform_full_int([2], tf.int64))
    p.run(g.skip(3))
    p.run(g.uniform([1]))
    p.run(g.make_seeds(2))


@program()
def test_feature_columns(p):
    f = tf.feature_column
    age, word = f.numeric_column("age"), f.categorical_column_with_hash_bucket("word", 10)
    listed = f.categorical_column_with_vocabulary_list("color", ["r", "g"], num_oov_buckets=1)
    columns = [age, f.bucketized_column(age, [20.0, 40.0]), f.indicator_column(listed), f.embedding_column(word, 3, initializer=tf.ones_initializer()),
               f.indicator_column(f.crossed_column(["word", "color"], 7))]
    features = {"age": tf.constant([[18.0], [50.0]]), "word": tf.constant([["a"], ["b"]]), "color": tf.constant([["r"], ["zz"]])}
    dense = tf.feature_column.input_layer(features, columns)
    linear = tf.feature_column.linear_model(features, [age, listed])
    p.init()
    p.run([dense, linear])


@program(*BOTH)
def test_checkpoints_of_the_new_kind(p):
    v = tf2.Variable([1.0, 2.0])
    checkpoint = tf.train.Checkpoint(v=v)
    p.init()
    with p.session.as_default():
        path = checkpoint.save(os.path.join(p.folder, "new"), session=p.session)
        p.run(v.assign([0.0, 0.0]))
        checkpoint.restore(path).run_restore_ops(p.session)
        p.run(v)


@program()
def test_temporary_variables_have_names(p):
    """One name is one variable in a step, until it is destroyed; in a loop every iteration has its own."""
    make = lambda name: tf.raw_ops.TemporaryVariable(shape=[], dtype=tf.float32, var_name=name)
    destroy = lambda variable, name: tf.raw_ops.DestroyTemporaryVariable(ref=variable, var_name=name)

    def body(i, total):
        variable = tf.assign(make("each"), tf.cast(i, tf.float32))
        return i + 1, total + destroy(variable, "each")

    unnamed = make("")
    once = make("once")
    fetches = [make("two") + make("two"), destroy(make("one"), "other"), destroy(once, "once") + destroy(once, "once"),
               destroy(tf.assign(unnamed, 5.0), unnamed.op.name), tf.while_loop(lambda i, total: i < 20, body, [0, 0.0])]
    for fetch in fetches:
        p.run(fetch)
        p.run(fetch)


@program()
def test_the_shape_of_a_variable_that_is_not_there_is_not_found(p):
    handle = tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=[2], shared_name="nowhere")
    p.run(tf.raw_ops.VariableShape(input=handle))
    p.run(tf.raw_ops.AssignVariableOp(resource=handle, value=[1.0, 2.0]))
    p.run(tf.raw_ops.VariableShape(input=handle))


@program()
def test_a_generator_that_may_choose_takes_philox(p):
    state = tf.Variable(np.arange(1, 4, dtype=np.int64), use_resource=True)
    p.init()
    for algorithm in (1, 3, 2):
        p.run(tf.raw_ops.RngReadAndSkip(resource=state.handle, alg=algorithm, delta=tf.constant(5, tf.uint64)))
        p.run(tf.raw_ops.RngSkip(resource=state.handle, algorithm=tf.constant(algorithm, tf.int64), delta=tf.constant(5, tf.int64)))
        p.run(state)
