"""Datasets as both sessions give them: elements copied between devices, files that cannot be read, iterators used wrongly, the words of errors."""
import gzip
import os
import re

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
import tensorflow.compat.v2 as tf2
from tensorflow.core.framework import graph_pb2
from tensorflow.python.data.experimental.ops import distribute, random_access
from tensorflow.python.data.ops import dataset_ops
from tensorflow.python.data.ops.options import ExternalStatePolicy

from client_programs import Failure, compare, outcomes_of, program
from client_texts_test import words

Data = tf2.data.Dataset
copy_to_device = tf2.data.experimental.copy_to_device


def number(value):
    return tf.placeholder_with_default(np.int64(value), [])


def pairs():
    return Data.range(3).map(lambda i: (i * 2, tf.as_string(i)))


def pull(p, dataset, times):
    iterator = tf.data.make_initializable_iterator(dataset)
    step = iterator.get_next()
    p.run(iterator.initializer)
    for _ in range(times):
        p.run(step)
    return iterator, step


@program()
def test_elements_are_copied_to_a_device(p):
    iterator, step = pull(p, pairs().apply(copy_to_device("/cpu:0")), 5)
    p.run(iterator.initializer)
    p.run(step)
    pull(p, pairs().apply(copy_to_device("/cpu:0", source_device="/replica:0/task:0/cpu:0")).repeat(2), 8)
    pull(p, Data.range(0).apply(copy_to_device("/cpu:0")), 2)
    pull(p, pairs().apply(tf2.data.experimental.prefetch_to_device("/cpu:0", buffer_size=2)), 5)
    p.run(tf.data.make_one_shot_iterator(pairs().apply(copy_to_device("/cpu:0"))).get_next())


def test_copies_of_copies_may_be_left_unfinished(rill, graph):
    """TensorFlow itself may wait for ever here, for want of threads."""
    copied = pairs().prefetch(1).apply(copy_to_device("/cpu:0")).prefetch(1).apply(copy_to_device("/cpu:0")).prefetch(1)
    iterator = tf.data.make_initializable_iterator(copied)
    step = iterator.get_next()
    with tf.Session(rill) as session:
        for _ in range(2):
            session.run(iterator.initializer)
            assert session.run(step) == (0, b"0")


@program()
def test_a_copy_gives_the_errors_of_its_source(p):
    pull(p, Data.range(3).map(lambda i: 4 // (i - 1)).apply(copy_to_device("/cpu:0")), 4)
    pull(p, pairs().apply(copy_to_device("/cpu:0", source_device="/cpu:7")), 2)


def write(p, **files):
    for name, content in files.items():
        with open(p.folder + "/" + name, "wb") as f:
            f.write(content)
    return lambda *names: [p.folder + "/" + name for name in names]


@program()
def test_a_file_that_cannot_be_opened_stays_the_next_one(p):
    paths = write(p, text=b"a\nb\n", fixed=b"abcd", uneven=b"abcde")
    with tf.python_io.TFRecordWriter(paths("records")[0]) as writer:
        writer.write(b"one")
    pull(p, tf2.data.TextLineDataset(paths("text", "none", "text")), 5)
    pull(p, tf2.data.FixedLengthRecordDataset(paths("none", "fixed"), 2), 3)
    pull(p, tf2.data.FixedLengthRecordDataset(paths("uneven", "fixed"), 2), 3)
    pull(p, tf2.data.TFRecordDataset(paths("none", "records")), 3)
    pull(p, Data.from_tensor_slices(paths("none", "text")).flat_map(tf2.data.TextLineDataset), 3)


@program()
def test_a_damaged_file_stays_or_is_left_as_its_form_has_it(p):
    paths = write(p, plain=b"not compressed at all", cut=gzip.compress(b"a\nb\n" * 10)[:-12], lines=gzip.compress(b"a\nb\n"))
    for name in paths("records", "broken"):
        with tf.python_io.TFRecordWriter(name) as writer:
            writer.write(b"one")
            writer.write(b"two")
    with open(paths("broken")[0], "r+b") as f:
        f.seek(13)
        f.write(b"X")
    pull(p, tf2.data.TFRecordDataset(paths("broken", "records")), 4)
    pull(p, tf2.data.TFRecordDataset(paths("broken", "records")).ignore_errors(), 3)
    pull(p, tf2.data.TextLineDataset(paths("plain", "lines"), "GZIP"), 3)
    pull(p, tf2.data.TextLineDataset(paths("cut", "lines"), "GZIP"), 8)


@pytest.mark.parametrize("make", [
    lambda paths: tf2.data.TextLineDataset(paths),
    lambda paths: tf2.data.TextLineDataset(paths).prefetch(1),
    lambda paths: tf2.data.experimental.CsvDataset(paths, [tf.string]).map(lambda x: x),
    lambda paths: Data.from_tensor_slices(paths).interleave(tf2.data.TextLineDataset, num_parallel_calls=2),
])
def test_ignored_errors_leave_a_file_that_is_not_there_behind(rill, graph, tmp_path, make):
    """TensorFlow tries the same file for ever."""
    (tmp_path / "text").write_text("a\nb\n")
    iterator = tf.data.make_initializable_iterator(make([str(tmp_path / "none"), str(tmp_path / "text")]).ignore_errors())
    step = iterator.get_next()
    with tf.Session(rill, graph=graph) as s:
        s.run(iterator.initializer)
        assert [s.run(step), s.run(step)] == [b"a", b"b"]
        with pytest.raises(tf.errors.OutOfRangeError):
            s.run(step)


@program()
def test_a_string_handle_is_checked_before_an_element_is_taken(p):
    iterator = tf.data.make_initializable_iterator(Data.range(4))
    handle = tf.placeholder(tf.string, [])
    p.run(iterator.initializer)
    name = p.session.run(iterator.string_handle())
    right = tf.data.Iterator.from_string_handle(handle, tf.int64, []).get_next()
    for other in (tf.data.Iterator.from_string_handle(handle, tf.int64, [2]), tf.data.Iterator.from_string_handle(handle, tf.float32, [])):
        p.run(other.get_next(), {handle: name})
    p.run(right, {handle: name})
    p.run(right, {handle: b""})
    p.run(tf.raw_ops.IteratorGetNext(iterator=iterator._iterator_resource, output_types=[tf.int64], output_shapes=[[2]]))
    p.run(right, {handle: name})


@program()
def test_a_cache_file_has_one_writer(p):
    path = p.folder + "/cache"
    pull(p, Data.zip((Data.range(3).cache(path), Data.range(3).cache(path))), 2)
    pull(p, Data.range(3).cache(path + "2").take(2), 3)
    pull(p, Data.range(3).cache(path + "2").repeat(2), 7)
    pull(p, Data.range(3).cache(p.folder + "/none/cache"), 2)


@program()
def test_a_quote_that_is_not_closed_is_an_error(p):
    paths = write(p, table=b'1,x,3\n"q,2\n')
    records = tf2.data.experimental.CsvDataset(paths("table"), [tf.string, tf.string])
    pull(p, records, 3)
    pull(p, records.batch(2).prefetch(1), 3)


@program()
def test_a_fused_batch_has_the_shape_of_its_first_element(p):
    shape = lambda i: tf.reshape(tf.range(4), tf.where(i > 0, tf.constant([2, 2]), tf.constant([4, 1])))  # noqa: E731
    pull(p, Data.range(2).apply(tf2.data.experimental.map_and_batch(shape, 2, num_parallel_calls=1)), 2)


def uneven():
    return Data.range(3).map(lambda i: tf.fill([i], i))


def files_of(p, count):
    names = [os.path.join(p.folder, "%d.records" % i) for i in range(count)]
    for i, name in enumerate(names):
        with tf.python_io.TFRecordWriter(name) as f:
            for j in range(4):
                f.write(b"%d of %d" % (j, i))
    return names


SHARDED = {
    "files": lambda names: tf2.data.TFRecordDataset(names),
    "files in batches": lambda names: tf2.data.TFRecordDataset(names).map(tf.strings.length).batch(3).repeat(2),
    "interleaved files": lambda names: Data.from_tensor_slices(names).interleave(tf2.data.TFRecordDataset, cycle_length=2),
    "shuffled files": lambda names: Data.from_tensor_slices(names).shuffle(5, seed=3).flat_map(tf2.data.TFRecordDataset).shuffle(3, seed=4),
    "pairs of files": lambda names: Data.zip((tf2.data.TFRecordDataset(names), tf2.data.TFRecordDataset(names[::-1]))),
    "too few files": lambda names: tf2.data.TFRecordDataset(names[:2]),
    "groups of files": lambda names: tf2.data.TFRecordDataset(names).group_by_window(lambda x: tf.constant(0, tf.int64), lambda key, window: window.batch(3), 3),
    "numbers": lambda names: Data.range(10),
}


@pytest.mark.parametrize("row", SHARDED)
@pytest.mark.parametrize("policy", (tf2.data.experimental.AutoShardPolicy.AUTO, tf2.data.experimental.AutoShardPolicy.FILE, tf2.data.experimental.AutoShardPolicy.DATA))
def test_workers_share_files_or_elements(rill, reference, tmp_path, row, policy):
    def build(p):
        options = tf2.data.Options()
        options.experimental_distribute.auto_shard_policy = policy
        source = SHARDED[row](files_of(p, 5)).with_options(options)
        for index in range(3):
            pull(p, distribute._AutoShardDataset(source, 3, index, None), 16)

    compare(build, rill, reference, tmp_path)


@program(server=True)
def test_a_dataset_tells_how_it_was_made(p):
    for dataset in (Data.range(10), Data.range(10).map(lambda x: x + 1).batch(3)):
        graph = graph_pb2.GraphDef.FromString(p.session.run(dataset._as_serialized_graph()))
        p.record([(node.name, node.op, list(node.input)) for node in graph.node])
    stateful = Data.range(10).map(lambda x: tf.random_uniform([]))
    for policy in (ExternalStatePolicy.FAIL, ExternalStatePolicy.IGNORE):
        p.run(tf.strings.length(stateful._as_serialized_graph(external_state_policy=policy)) > 100)


ROWS = {
    "fused batch": lambda: Data.range(2).apply(tf2.data.experimental.map_and_batch(lambda i: tf.fill([i], i), 2, num_parallel_calls=1)),
    "padded to less than nothing": lambda: uneven().padded_batch(2, tf.placeholder_with_default(np.int64([-2]), [1])),
    "window of nothing": lambda: Data.range(3).window(number(0)).flat_map(lambda x: x),
    "window without a shift": lambda: Data.range(3).window(2, number(0)).flat_map(lambda x: x),
    "window without a stride": lambda: Data.range(3).window(2, 1, number(0)).flat_map(lambda x: x),
    "slices of two lengths": lambda: Data.from_tensor_slices((tf.placeholder_with_default([1, 2], [None]), tf.placeholder_with_default([1], [None]))),
    "slices of a number": lambda: Data.from_tensor_slices(tf.placeholder_with_default(1, None)),
    "interleave of none": lambda: Data.range(3).interleave(Data.from_tensors, cycle_length=number(0), num_parallel_calls=2),
    "sparse rows that are too long": lambda: Data.from_tensors([1, 2]).sparse_batch(1, [1]),
    "shuffle of none": lambda: Data.range(3).shuffle(number(0)),
    "batch of none": lambda: Data.range(3).batch(number(0)),
    "filter by a vector": lambda: Data.range(3).filter(lambda x: tf.placeholder_with_default([True, False], None)),
    "take while a vector": lambda: Data.range(3).take_while(lambda x: tf.placeholder_with_default([True, False], None)),
    "shard of none": lambda: Data.range(3).shard(number(0), 0),
    "one element was promised": lambda: Data.range(0).apply(tf.data.experimental.assert_cardinality(1)),
    "no end was promised": lambda: Data.range(0).apply(tf.data.experimental.assert_cardinality(tf.data.experimental.INFINITE_CARDINALITY)),
    "more than was promised": lambda: Data.range(3).apply(tf.data.experimental.assert_cardinality(0)),
    "nobody knows how many were promised": lambda: Data.range(3).apply(tf.data.experimental.assert_cardinality(tf.data.experimental.UNKNOWN_CARDINALITY)),
}


@pytest.mark.parametrize("row", ROWS)
def test_errors_of_datasets_are_told_in_the_same_words(rill, reference, tmp_path, row):
    def build(p):
        iterator = tf.data.make_initializable_iterator(ROWS[row]())
        step = iterator.get_next()
        p.run(iterator.initializer)
        p.run(step)

    expected = outcomes_of(build, reference, tmp_path / "tensorflow", "v1", {})
    got = outcomes_of(build, rill, tmp_path / "rill", "v1", {})
    at = next(i for i, outcome in enumerate(expected) if isinstance(outcome, Failure))
    assert words(got[at]) == words(expected[at])


def files_of_a_program(p):
    """Of three records; in `header` the last one is cut within its length, in `body` behind it."""
    with tf.python_io.TFRecordWriter(p.folder + "/whole") as writer:
        for i in range(3):
            writer.write(b"x%d" % i)
    with open(p.folder + "/whole", "rb") as f:
        whole = f.read()
    return write(p, body=whole[:-3], header=whole[:38], value=whole[:30] + b"?" + whole[31:], length=whole[:8] + b"????" + whole[12:], later=whole[:26] + b"????" + whole[30:], digits=b"0123456789")


FILES = {
    "record cut in its value": lambda paths: tf2.data.TFRecordDataset(paths("body")),
    "record cut in its length": lambda paths: tf2.data.TFRecordDataset(paths("header")),
    "another value": lambda paths: tf2.data.TFRecordDataset(paths("value")),
    "no records": lambda paths: tf2.data.TFRecordDataset(paths("length")),
    "another length": lambda paths: tf2.data.TFRecordDataset(paths("later")),
    "records that are not compressed": lambda paths: tf2.data.TFRecordDataset(paths("whole"), "GZIP"),
    "lines that are not compressed": lambda paths: tf2.data.TextLineDataset(paths("digits"), "ZLIB"),
    "lines compressed somehow": lambda paths: tf2.data.TextLineDataset(paths("digits"), tf.placeholder_with_default("LZ", [])),
    "fields compressed somehow": lambda paths: tf2.data.experimental.CsvDataset(paths("digits"), [tf.string], compression_type="LZ"),
    "lines without a buffer": lambda paths: tf2.data.TextLineDataset(paths("digits"), buffer_size=number(-1)),
    "pieces without a buffer": lambda paths: tf2.data.FixedLengthRecordDataset(paths("digits"), 2, buffer_size=number(-1)),
    "less than header and footer": lambda paths: tf2.data.FixedLengthRecordDataset(paths("digits"), 2, 6, 6),
    "an odd number less": lambda paths: tf2.data.FixedLengthRecordDataset(paths("digits"), 3, 6, 6),
    "more calls than a cycle": lambda paths: Data.range(3).interleave(Data.from_tensors, cycle_length=number(1), num_parallel_calls=number(2)),
}


@pytest.mark.parametrize("row", FILES)
def test_errors_of_files_are_told_in_the_same_words(rill, reference, tmp_path, row):
    def build(p):
        pull(p, FILES[row](files_of_a_program(p)), 4)

    def told(outcome):
        if not isinstance(outcome, Failure):
            return outcome
        kind, text = words(outcome)
        return kind, re.sub(r"Iterator::Root\S*|Dataset(V\d)?:\d+|\S*/(?=\w+\")|^'\w+'\s|__inference\S*", "*", text.split("\n")[-1]).lstrip("*")

    expected = outcomes_of(build, reference, tmp_path / "tensorflow", "v1", {})
    got = outcomes_of(build, rill, tmp_path / "rill", "v1", {})
    assert list(map(told, got)) == list(map(told, expected))


@program()
def test_numbers_up_to_the_largest_have_no_end(p):
    for make in (lambda: Data.range(2 ** 63 - 1), lambda: Data.range(3).enumerate(), lambda: Data.range(2 ** 63 - 2)):
        p.run(make().cardinality())
        p.run(random_access.at(make(), 1))


@program()
def test_some_batches_are_made_of_nothing(p):
    for sizes in ([0, 1], [1, 0], [3, 0], [0, 2, 0, 1]):
        for count in (6, 7):
            for drop in (True, False):
                pull(p, Data.range(count).map(lambda x: (x, tf.fill([2], tf.as_string(x)))).batch(2).rebatch(sizes, drop_remainder=drop), 14)


@program()
def test_an_optional_of_something_and_one_of_nothing(p):
    some, none = tf.raw_ops.OptionalFromValue(components=[1.0]), tf.raw_ops.OptionalNone()
    p.run(tf.raw_ops.OptionalHasValue(optional=tf.add_n([some, none])))
    p.record("one has a value and the other doesn't" in p.outcomes[-1].text)


def unless_two(x):
    with tf.control_dependencies([tf.debugging.Assert(tf.not_equal(x, 2), ["two", x])]):
        return tf.identity(x)


def some(make):
    """Six numbers, one of which fails, and what is made of them."""
    return lambda: make(Data.range(6).map(unless_two))


FAILING = {
    "map": some(lambda d: d),
    "map with a name": lambda: Data.range(4).map(unless_two, name="mine"),
    "parallel map": lambda: Data.range(4).map(unless_two, num_parallel_calls=2),
    "filter": lambda: Data.range(4).filter(lambda x: unless_two(x) > 0),
    "flat map": lambda: Data.range(4).flat_map(lambda x: Data.from_tensors(unless_two(x))),
    "inside of a flat map": lambda: Data.range(4).flat_map(lambda x: Data.range(x, x + 2).map(unless_two)),
    "interleave": lambda: Data.range(4).interleave(lambda x: Data.from_tensors(unless_two(x)), cycle_length=2),
    "parallel interleave": lambda: Data.range(4).interleave(lambda x: Data.from_tensors(unless_two(x)), cycle_length=2, num_parallel_calls=2),
    "take while": lambda: Data.range(4).take_while(lambda x: unless_two(x) < 9),
    "scan": lambda: Data.range(4).scan(np.int64(0), lambda s, x: (s + unless_two(x), s)),
    "group": lambda: Data.range(6).group_by_window(lambda x: x % 3, lambda k, d: Data.from_tensors(unless_two(k)), 2),
    "group that is not full": lambda: Data.range(5).group_by_window(lambda x: x % 3, lambda k, d: Data.from_tensors(unless_two(k)), 2),
    "zip": some(lambda d: Data.zip((Data.range(5), d, Data.range(3)))),
    "batch": some(lambda d: d.batch(2)),
    "batch of three": some(lambda d: d.batch(3)),
    "padded batch": some(lambda d: d.map(lambda x: tf.fill([x], x)).padded_batch(2, [None])),
    "window": some(lambda d: d.window(2).flat_map(lambda w: w.batch(2))),
    "windows that overlap": some(lambda d: d.window(3, 1, 2).flat_map(lambda w: w.batch(3))),
    "windows with gaps": some(lambda d: d.window(1, 2).flat_map(lambda w: w.batch(3))),
    "rebatch": some(lambda d: d.batch(2).rebatch(3)),
    "unbatch": some(lambda d: d.batch(2).unbatch()),
}


@pytest.mark.parametrize("row", FAILING)
def test_what_follows_an_element_that_fails(rill, reference, tmp_path, row):
    """Values, types of errors, and whose function it was; the path of iterators has what TensorFlow's optimizer puts there."""
    def build(p):
        pull(p, FAILING[row](), 8)

    def told(outcome):
        if not isinstance(outcome, Failure):
            return np.asarray(outcome).tolist()
        kind, text = words(outcome)
        text = re.sub(r"Dataset(V\d)?:\d+", "Dataset", text)
        return kind, re.sub(r"^'\w+'\s|Iterator::Root\S*|__inference\S*", "*", text).lstrip("*")

    expected = outcomes_of(build, reference, tmp_path / "tensorflow", "v1", {})
    got = outcomes_of(build, rill, tmp_path / "rill", "v1", {})
    assert list(map(told, got)) == list(map(told, expected))


@program()
def test_random_numbers_may_differ_from_pass_to_pass(p):
    for again in (True, False):
        iterator, step = pull(p, Data.random(seed=4, rerandomize_each_iteration=again).take(2).repeat(2), 5)
        p.run(iterator.initializer)
        p.run(step)


@program()
def test_the_end_of_another_sequence_is_no_end_of_this_one(p):
    for make in (lambda d, f: d.filter(lambda x: f(x) > -1), lambda d, f: d.flat_map(lambda x: Data.from_tensors(f(x))), lambda d, f: d.take_while(lambda x: f(x) > -1),
                 lambda d, f: d.map(f)):
        other = tf.data.make_initializable_iterator(Data.range(2))
        p.run(other.initializer)
        pull(p, make(Data.range(4), lambda x, other=other: other.get_next() + x), 4)


@program()
def test_a_function_with_a_constant_of_another_type(p):
    def broken(_):
        value = tf.AttrValue(tensor=tf.make_tensor_proto([], tf.float32, [0]))
        return tf.get_default_graph().create_op("Const", [], [tf.int32], attrs={"value": value, "dtype": tf.AttrValue(type=tf.int32.as_datatype_enum)}).outputs[0]

    p.run(tf.data.make_one_shot_iterator(Data.range(2).map(broken)).get_next())
    assert any("Type mismatch" in x.text for x in p.outcomes if isinstance(x, Failure))


def options(**settings):
    made = tf2.data.Options()
    for name, value in settings.items():
        setattr(made, name, value)
    return made


def set_options(dataset, value):
    """The settings in what GetOptions gives; where two say something else the later one counts."""
    message = tf2.data.Options()._to_proto().FromString(value)
    return sorted((field.name, getattr(message, field.name)) for field, _ in message.ListFields() if field.message_type is None)


@pytest.mark.parametrize("row", ["one", "two", "other later", "zipped", "below", "none", "from a graph"])
def test_options_are_told(rill, reference, graph, row):
    slack, order, other = options(experimental_slack=True), options(deterministic=False), options(deterministic=True)
    dataset = {"one": lambda: Data.range(3).with_options(slack), "two": lambda: Data.range(3).with_options(slack).with_options(order),
               "other later": lambda: Data.range(3).with_options(order).map(lambda x: x).with_options(other),
               "zipped": lambda: Data.zip((Data.range(3).with_options(slack), Data.range(3).with_options(order))),
               "below": lambda: Data.range(3).with_options(slack).batch(2).repeat(2), "none": lambda: Data.range(3),
               "from a graph": lambda: again(Data.range(3).with_options(slack).map(lambda x: x + 1))}[row]()
    told = tf.raw_ops.GetOptions(input_dataset=dataset._variant_tensor)
    found = []
    for target in (rill, reference):
        with tf.Session(target) as session:
            found.append(set_options(dataset, session.run(told)))
    assert found[0] == found[1]


def again(dataset):
    """The dataset that its own graph makes."""
    made = tf.raw_ops.DatasetFromGraph(graph_def=tf.raw_ops.DatasetToGraphV2(input_dataset=dataset._variant_tensor))
    return dataset_ops._VariantDataset(made, dataset.element_spec)


@program()
def test_a_graph_makes_its_dataset_again(p):
    for dataset in (Data.range(5), Data.range(6).map(lambda x: x * x).filter(lambda x: x > 3).batch(2), Data.range(3).flat_map(lambda x: Data.range(x)).map(tf.as_string),
                    Data.from_tensor_slices((["a", "b"], [1.0, 2.0])).repeat(2), Data.range(9).shuffle(4, seed=3).take(4), pairs().with_options(options(deterministic=False))):
        pull(p, again(dataset), 9)
        pull(p, again(again(dataset)).repeat(2), 3)
        p.run(tf.data.make_one_shot_iterator(again(dataset)).get_next())


@program()
def test_a_graph_that_makes_no_dataset(p):
    for graph in (b"", b"no graph", tf.Graph().as_graph_def().SerializeToString()):
        p.run(tf.data.experimental.cardinality(dataset_ops._VariantDataset(tf.raw_ops.DatasetFromGraph(graph_def=tf.placeholder_with_default(graph, [])), tf.TensorSpec([], tf.int64))))


@program()
def test_elements_by_their_place(p):
    rows = Data.range(10).batch(4, drop_remainder=True)
    for dataset, places in ((Data.range(9).shuffle(4, seed=3), range(-1, 10)), (Data.range(9).shuffle(9, seed=5).map(lambda x: x * x).take(4), range(5)),
                            (rows.unbatch(), (-1, 0, 5, 7, 8)), (rows.map(lambda x: x + 1), (0, 1, 2)), (Data.range(10).batch(4).unbatch(), (0,)),
                            (Data.range(9).filter(lambda x: x > 2), (0,)), (Data.range(9).repeat(), (0,))):
        for place in places:
            p.run(random_access.at(dataset, place))
        p.run(dataset.cardinality())


def test_fields_of_files_in_their_own_words(rill, reference, graph, tmp_path):
    """A quote in a field without quotes; lines are cut before, so that nothing is said of them."""
    (tmp_path / "rows.csv").write_text('1,2"3,4\n')
    step = tf.data.make_one_shot_iterator(tf2.data.experimental.CsvDataset(str(tmp_path / "rows.csv"), [tf.string] * 3)).get_next()
    for target in (rill, reference):
        with tf.Session(target) as session, pytest.raises(tf.errors.InvalidArgumentError, match="Unquoted fields cannot have quotes inside"):
            session.run(step)


def test_pipelines_that_differ_in_seeds_are_one(rill, reference, graph):
    told = [tf.raw_ops.DatasetFingerprint(input_dataset=Data.range(9).shuffle(4, seed=seed).batch(size)._variant_tensor) for seed, size in ((1, 2), (5, 2), (1, 3))]
    for target in (rill, reference):
        with tf.Session(target) as session:
            found = session.run(told)
        assert found[0] == found[1] != found[2]
