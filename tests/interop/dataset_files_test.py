"""Datasets in files: what TensorFlow saves, Rill loads, and the other way round; snapshots; states of iterators over both."""
import glob
import os
import shutil

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
import tensorflow.compat.v2 as tf2
from tensorflow.core.framework import graph_pb2
from tensorflow.core.protobuf import snapshot_pb2
from tensorflow.python.data.experimental.ops import snapshot as legacy

N = 10
LARGE = 150_000  # floats: more than a block of snappy


def numbers():
    words = [("s%d" % i) * i for i in range(N)]
    return tf2.data.Dataset.from_tensor_slices((np.arange(N, dtype=np.int64), np.arange(2 * N, dtype=np.float32).reshape(N, 2), words))


def drain(target, make, most=1000):
    """The elements of the dataset make() gives."""
    with tf.Graph().as_default() as g:
        iterator = tf.data.make_initializable_iterator(make())
        step = iterator.get_next()
        with tf.Session(target, graph=g) as s:
            s.run(iterator.initializer)
            return pull(s, step, most)


def pull(s, step, most=1000):
    found = []
    try:
        while len(found) < most:
            found.append(s.run(step))
    except tf.errors.OutOfRangeError:
        pass
    return found


def assert_equal(got, want):
    assert len(got) == len(want)
    for a, b in zip(got, want):
        for x, y in zip(tf2.nest.flatten(a), tf2.nest.flatten(b)):
            np.testing.assert_array_equal(x, y)


def save(target, make, path, **options):
    with tf.Graph().as_default() as g:
        make().save(path, **options)
        writes = [o for o in g.get_operations() if o.type == "SaveDataset"]
        with tf.Session(target, graph=g) as s:
            s.run(writes[-1])


def load_in_order(path, **options):
    """One shard after the other: what is done by default depends on the number of cores."""
    return tf2.data.Dataset.load(path, reader_func=lambda shards: shards.flat_map(lambda x: x), **options)


def metadata(path):
    with open(os.path.join(path, "snapshot.metadata"), "rb") as f:
        return snapshot_pb2.SnapshotMetadataRecord.FromString(f.read())


def targets(rill, reference):
    return {"rill": rill, "tf": reference}


@pytest.mark.parametrize("writer,reader", [("rill", "tf"), ("tf", "rill"), ("rill", "rill")])
@pytest.mark.parametrize("compression", [None, "GZIP", "SNAPPY"])
def test_saved_datasets_are_loaded_by_the_other(rill, reference, tmp_path, writer, reader, compression):
    where = targets(rill, reference)
    for name, shard in (("one", None), ("three", lambda x, y, z: x % 3)):
        path = str(tmp_path / name)
        save(where[writer], numbers, path, compression=compression, shard_func=shard)
        load = lambda: load_in_order(path, compression=compression, element_spec=numbers().element_spec)
        assert_equal(drain(where[reader], load), drain(reference, load))
        assert sorted(int(e[0]) for e in drain(where[reader], load)) == list(range(N))
        assert metadata(path).num_elements == N and metadata(path).finalized


@pytest.mark.parametrize("writer,reader", [("rill", "tf"), ("tf", "rill")])
@pytest.mark.parametrize("compression", [None, "SNAPPY"])
def test_large_elements(rill, reference, tmp_path, writer, reader, compression):
    where = targets(rill, reference)
    make = lambda: tf2.data.Dataset.range(3).map(lambda i: tf.random.stateless_uniform([LARGE], [i, 1]))
    save(where[writer], make, str(tmp_path / "d"), compression=compression)
    load = lambda: load_in_order(str(tmp_path / "d"), compression=compression, element_spec=tf.TensorSpec([LARGE], tf.float32))
    assert_equal(drain(where[reader], load), drain(where[writer], make))


def test_every_type_of_component(rill, reference, tmp_path):
    values = [np.array([[1, 0]], t) for t in (np.float16, np.float64, np.int8, np.uint16, np.bool_, np.complex64)] + [np.zeros((0, 3), np.int32)]
    make = lambda: tf2.data.Dataset.from_tensors(tuple(values))
    for writer, reader in (("rill", "tf"), ("tf", "rill")):
        path = str(tmp_path / writer)
        save(targets(rill, reference)[writer], make, path)
        load = lambda: load_in_order(path, element_spec=make().element_spec)
        assert_equal(drain(targets(rill, reference)[reader], load), [tuple(values)])


def test_loading_what_is_not_there_or_damaged(rill, reference, tmp_path):
    load = lambda: load_in_order(str(tmp_path / "d"), element_spec=numbers().element_spec)
    for target in (rill, reference):
        with pytest.raises(tf.errors.NotFoundError, match="Could not find metadata file"):
            drain(target, load)
    save(rill, numbers, str(tmp_path / "d"))
    [path] = glob.glob(str(tmp_path / "d/*/*/*.snapshot"))
    with open(path, "r+b") as f:
        f.truncate(os.path.getsize(path) - 3)
    for target in (rill, reference):
        with pytest.raises(tf.errors.DataLossError):
            drain(target, load)


def test_nothing_counts_before_all_is_written(rill, tmp_path):
    """A dataset that fails half way leaves metadata that are not finalized."""
    make = lambda: tf2.data.Dataset.range(5).map(lambda x: tf.debugging.check_numerics(1.0 / tf.cast(3 - x, tf.float32), "three"))
    with pytest.raises(tf.errors.InvalidArgumentError, match="three"):
        save(rill, make, str(tmp_path / "d"))
    assert not metadata(str(tmp_path / "d")).finalized


# ---- Snapshots ----

def counted(path, **options):
    """A snapshot whose input counts how often it is asked, in a variable."""
    asked = tf.get_variable("asked", initializer=0, use_resource=True)

    def ask(x):
        with tf.control_dependencies([asked.assign_add(1)]):
            return tf.identity(x)
    return tf2.data.Dataset.range(N).map(ask).snapshot(path, **options), asked


@pytest.mark.parametrize("compression", ["AUTO", None, "GZIP"])
def test_the_second_pass_reads_what_the_first_has_written(rill, tmp_path, compression):
    totals = []
    for _ in range(2):  # the second time in a graph of its own, where functions have other names
        with tf.Graph().as_default() as g:
            d, asked = counted(str(tmp_path / "d"), compression=compression, shard_func=lambda x: tf.constant(0, tf.int64),
                               reader_func=lambda d: d.flat_map(lambda x: x))
            iterator = tf.data.make_initializable_iterator(d)
            step = iterator.get_next()
            with tf.Session(rill, graph=g) as s:
                s.run(asked.initializer)
                for _ in range(2):
                    s.run(iterator.initializer)
                    assert pull(s, step) == list(range(N))
                totals.append(s.run(asked))
    assert totals == [N, 0]


def test_other_inputs_have_other_snapshots(rill, tmp_path):
    for scale in (2, 3):
        assert drain(rill, lambda: tf2.data.Dataset.range(4).map(lambda x: x * scale).snapshot(str(tmp_path))) == [0, scale, 2 * scale, 3 * scale]
    assert drain(rill, lambda: tf2.data.Dataset.from_tensor_slices([5, 6]).snapshot(str(tmp_path))) == [5, 6]
    assert drain(rill, lambda: tf2.data.Dataset.from_tensor_slices([5, 7]).snapshot(str(tmp_path))) == [5, 7]
    assert len(os.listdir(tmp_path)) == 4


def with_hash(make, number):
    """The graph of the dataset, with a given hash for its snapshots; names of the initializer and of what comes next."""
    with tf.Graph().as_default() as g:
        iterator = tf.data.make_initializable_iterator(make())
        names = iterator.initializer.name, tf2.nest.map_structure(lambda t: t.name, iterator.get_next())
        definition = graph_pb2.GraphDef.FromString(g.as_graph_def().SerializeToString())
    for node in definition.node:
        if node.op == "SnapshotDatasetV2":
            node.attr["hash"].i, node.attr["hash_valid"].b = number, True
    return definition, names


@pytest.mark.parametrize("writer,reader", [("rill", "tf"), ("tf", "rill")])
@pytest.mark.parametrize("compression", ["AUTO", None, "GZIP"])
def test_snapshots_are_read_by_the_other(rill, reference, tmp_path, writer, reader, compression):
    make = lambda: numbers().snapshot(str(tmp_path), compression=compression, shard_func=lambda x, y, z: x % 2, reader_func=lambda d: d.flat_map(lambda x: x))
    definition, (start, step) = with_hash(make, 1234)
    results = []
    for target in (targets(rill, reference)[writer], targets(rill, reference)[reader]):
        with tf.Graph().as_default() as g:
            tf.import_graph_def(definition, name="")
            with tf.Session(target, graph=g) as s:
                s.run(start)
                results.append(pull(s, step))
    assert [int(e[0]) for e in results[0]] == list(range(N))
    assert [int(e[0]) for e in results[1]] == [0, 2, 4, 6, 8, 1, 3, 5, 7, 9]
    assert [n for n in os.listdir(tmp_path)] == ["1234"] and metadata(tmp_path / "1234").graph_hash == "1234"


@pytest.mark.parametrize("compression", ["", "GZIP", "SNAPPY"])
def test_files_of_the_first_version(rill, tmp_path, compression):
    """As TensorFlow's SnapshotDataset wrote them; Rill reads the files."""
    kind = {"output_types": [tf.int64, tf.float32, tf.string], "output_shapes": [[], [2], []]}

    def old():
        d = numbers()
        return tf2.raw_ops.SnapshotDataset(input_dataset=d._variant_tensor, path=str(tmp_path), compression=compression, snapshot_name="x", mode="write", **kind)

    def drain_raw(target, make):
        with tf.Graph().as_default() as g:
            it = tf2.raw_ops.IteratorV2(shared_name="", container="", **kind)
            start, step = tf2.raw_ops.MakeIterator(dataset=make(), iterator=it), tf2.raw_ops.IteratorGetNext(iterator=it, **kind)
            with tf.Session(target, graph=g) as s:
                s.run(start)
                return pull(s, step)
    want = drain_raw("", old)
    [found] = [p for p in glob.glob(str(tmp_path / "**/*.snapshot"), recursive=True)]
    os.makedirs(tmp_path / "shard")
    shutil.copy(found, tmp_path / "shard/00000000.snapshot")
    for first in (0, 4):
        assert_equal(drain_raw(rill, lambda: tf2.raw_ops.SnapshotDatasetReader(
            shard_dir=str(tmp_path / "shard"), start_index=first, compression=compression, version=1, **kind)), want[first:])


def test_chunks_and_nested_readers(rill, reference, tmp_path):
    save(reference, numbers, str(tmp_path / "d"), compression="SNAPPY")
    [path] = glob.glob(str(tmp_path / "d/*/*/*.snapshot"))
    kind = {"output_types": [tf.int64, tf.float32, tf.string], "output_shapes": [[], [2], []]}
    spec = numbers().element_spec

    def chunk():
        return tf2.data.experimental.from_variant(tf2.raw_ops.SnapshotChunkDataset(chunk_file=path, compression="SNAPPY", **kind), spec)

    def nested():
        shards = [tf2.raw_ops.SnapshotDatasetReader(shard_dir=os.path.dirname(path), start_index=i, compression="SNAPPY", version=2, **kind) for i in (0, 7)]
        both = tf2.raw_ops.SnapshotNestedDatasetReader(inputs=shards, output_types=[tf.variant], output_shapes=[[]])
        return tf2.data.experimental.from_variant(both, tf2.data.DatasetSpec(spec)).flat_map(lambda d: d)
    want = drain("", numbers)  # TensorFlow's iterators refuse to start at these readers
    assert_equal(drain(rill, chunk), want)
    assert_equal(drain(rill, nested), want + want[7:])


# ---- States of iterators ----

def stopped_and_gone_on(rill, tmp_path, make, first, lost):
    """Pulls `first` elements, saves the state, pulls `lost` more that are forgotten, then goes on in a new session from the state."""
    checkpoint = str(tmp_path / "state")
    found = []
    for turn in range(2):
        with tf.Graph().as_default() as g:
            iterator = tf.data.make_initializable_iterator(make())
            saver = tf.train.Saver([tf.data.experimental.make_saveable_from_iterator(iterator)])
            step = iterator.get_next()
            with tf.Session(rill, graph=g) as s:
                s.run(iterator.initializer)
                if turn:
                    saver.restore(s, checkpoint)
                    found += pull(s, step)
                else:
                    found += pull(s, step, first)
                    saver.save(s, checkpoint, write_meta_graph=False)
                    pull(s, step, lost)
    return found


@pytest.mark.parametrize("first,lost", [(0, 0), (3, 0), (3, 4), (9, 1), (10, 0)])
def test_a_snapshot_goes_on_being_written_after_a_restore(rill, reference, tmp_path, first, lost):
    make = lambda: tf2.data.Dataset.range(N).snapshot(str(tmp_path / "d"), shard_func=lambda x: x % 3, reader_func=lambda d: d.flat_map(lambda x: x))
    assert stopped_and_gone_on(rill, tmp_path, make, first, lost) == list(range(N))
    assert drain(rill, make) == [0, 3, 6, 9, 1, 4, 7, 2, 5, 8]  # read: every element once
    assert stopped_and_gone_on(rill, tmp_path, make, first, lost) == [0, 3, 6, 9, 1, 4, 7, 2, 5, 8]


@pytest.mark.parametrize("first", [0, 4, 10])
def test_loading_goes_on_after_a_restore(rill, tmp_path, first):
    save(rill, lambda: tf2.data.Dataset.range(N), str(tmp_path / "d"))
    make = lambda: load_in_order(str(tmp_path / "d"), element_spec=tf.TensorSpec([], tf.int64))
    assert stopped_and_gone_on(rill, tmp_path, make, first, 2) == list(range(N))


@pytest.mark.parametrize("first", [0, 2, 5])
def test_other_sources_go_on_after_a_restore(rill, tmp_path, first):
    for name in "abcdef":
        (tmp_path / "files" / name).mkdir(parents=True)
        (tmp_path / "files" / name / "x.txt").write_text("")
    files = lambda: tf2.data.experimental.from_variant(tf2.raw_ops.MatchingFilesDataset(patterns=[str(tmp_path / "files/*/*.txt")]), tf.TensorSpec([], tf.string))
    kind = {"output_types": [tf.int64], "output_shapes": [[]]}
    spec = tf.TensorSpec([], tf.int64)
    sampled = lambda: tf2.data.experimental.from_variant(tf2.raw_ops.SamplingDataset(
        input_dataset=tf2.data.Dataset.range(40)._variant_tensor, rate=0.5, seed=3, seed2=4, **kind), spec)
    sliding = lambda: tf2.data.experimental.from_variant(tf2.raw_ops.SlidingWindowDataset(
        input_dataset=tf2.data.Dataset.range(40)._variant_tensor, window_size=3, window_shift=5, window_stride=2, output_types=[tf.int64], output_shapes=[[None]]),
        tf.TensorSpec([None], tf.int64))
    for make in (files, sampled, sliding):
        assert_equal(stopped_and_gone_on(rill, tmp_path, make, first, 1), drain(rill, make))


def saved_on_the_way(path):
    """SaveDatasetV2, which gives on what it writes."""
    d = tf2.data.Dataset.range(N)
    d.save(path, shard_func=lambda x: x % 2)
    g = tf.get_default_graph()
    [old] = [o for o in g.get_operations() if o.type == "SaveDataset"]
    attrs = {name: old.node_def.attr[name] for name in ("shard_func", "use_shard_func", "compression", "Tshard_func_args")}
    attrs["output_types"] = tf.AttrValue(list=tf.AttrValue.ListValue(type=[tf.int64.as_datatype_enum]))
    attrs["output_shapes"] = tf.AttrValue(list=tf.AttrValue.ListValue(shape=[tf.TensorShape([]).as_proto()]))
    made = g.create_op("SaveDatasetV2", list(old.inputs), [tf.variant], attrs=attrs).outputs[0]
    return tf2.data.experimental.from_variant(made, tf.TensorSpec([], tf.int64))


@pytest.mark.parametrize("first,lost", [(0, 0), (3, 4), (10, 0)])
def test_saving_on_the_way(rill, reference, tmp_path, first, lost):
    path = str(tmp_path / "d")
    assert stopped_and_gone_on(rill, tmp_path, lambda: saved_on_the_way(path), first, lost) == list(range(N))
    load = lambda: load_in_order(path, element_spec=tf.TensorSpec([], tf.int64))
    assert drain(rill, load) == [0, 2, 4, 6, 8, 1, 3, 5, 7, 9]
    if not lost:  # of a shard with several files TensorFlow 2.21 cannot read the second
        assert drain(reference, load) == [0, 2, 4, 6, 8, 1, 3, 5, 7, 9]


def test_records_with_a_compression_that_does_not_exist_are_plain(rill, reference, tmp_path):
    path = str(tmp_path / "r")
    with tf.io.TFRecordWriter(path) as f:
        f.write(b"one")
    for target in (rill, reference):
        assert drain(target, lambda: tf2.data.TFRecordDataset([path], compression_type=tf.constant("XYZ"))) == [b"one"]


# ---- SnapshotDataset, the first of its kind ----


def runs_of(path):
    """How many files each run of each pipeline has."""
    return sorted(len(os.listdir(run)) for run in glob.glob(path + "/*/*") if os.path.isdir(run))


@pytest.mark.parametrize("compression", ["", "GZIP", "SNAPPY"])
@pytest.mark.parametrize("writer, reader", [("rill", "rill"), ("rill", "reference"), ("reference", "rill")])
def test_old_snapshots_are_read_by_the_other(request, tmp_path, writer, reader, compression):
    """By a name of their own: the hash of a pipeline is another in Rill."""
    path = str(tmp_path)

    def make(count=1):
        return numbers().apply(legacy.legacy_snapshot(path, compression, snapshot_name="mine")).repeat(count)
    want = drain("", numbers)
    assert_equal(drain(request.getfixturevalue(writer), make), want)
    assert_equal(drain(request.getfixturevalue(reader), lambda: make(2)), want * 2)
    assert runs_of(path) == [1] and os.listdir(path + "/custom-mine/custom") == ["00000000.snapshot"]


def test_old_snapshots_begin_files_where_tensorflow_does(rill, reference, tmp_path):
    def wide():
        return tf2.data.Dataset.range(10).map(lambda i: tf.fill([1024, 256], i))
    steps = [(numbers, {}, 3), (numbers, {"mode": "passthrough"}, 1), (numbers, {"mode": "write"}, 2), (numbers, {"shard_size_bytes": 10}, 1),
             (wide, {"shard_size_bytes": 5 << 20}, 1), (wide, {"shard_size_bytes": 5 << 20, "compression": "GZIP"}, 1)]
    for make, how, count in steps:
        found = []
        for target, folder in ((rill, "rill"), (reference, "tensorflow")):
            path = str(tmp_path / folder)
            os.makedirs(path, exist_ok=True)
            drain(target, lambda: make().apply(legacy.legacy_snapshot(path, **how)).repeat(count))
            found.append(runs_of(path))
        assert found[0] == found[1], how


@pytest.mark.parametrize("who", ["rill", "reference"])
def test_an_old_snapshot_that_somebody_writes_is_let_alone(request, tmp_path, who):
    path = str(tmp_path)
    make = lambda: tf2.data.Dataset.range(100).apply(legacy.legacy_snapshot(path))  # noqa: E731
    target = request.getfixturevalue(who)
    assert drain(target, make, 50) == list(range(50))  # and is never finished
    assert drain(target, make) == list(range(100)) and runs_of(path) == [1]
    with pytest.raises(tf.errors.NotFoundError, match="Metadata file does not exist"):
        drain(target, lambda: numbers().apply(legacy.legacy_snapshot(path, mode="read")))


def test_shuffled_files_of_an_old_snapshot_have_their_order_from_the_seed(rill, tmp_path):
    def make(**more):
        return tf2.data.Dataset.range(40).apply(legacy.legacy_snapshot(str(tmp_path), shard_size_bytes=10, **more))
    drain(rill, make)
    orders = [drain(rill, lambda: make(shuffle_on_read=True, shuffle_seed=seed)) for seed in (7, 7, 8)]
    assert orders[0] == orders[1] != orders[2] and sorted(orders[2]) == list(range(40))


@pytest.mark.parametrize("first, lost", [(0, 0), (3, 4), (9, 1), (10, 0)])
def test_an_old_snapshot_goes_on_after_a_restore(rill, tmp_path, first, lost):
    """While it is written, and while it is read."""
    make = lambda: tf2.data.Dataset.range(N).apply(legacy.legacy_snapshot(str(tmp_path / "d")))  # noqa: E731
    for _ in range(2):
        assert stopped_and_gone_on(rill, tmp_path, make, first, lost) == list(range(N))
    assert drain(rill, make) == list(range(N))
