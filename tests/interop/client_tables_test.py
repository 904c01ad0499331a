"""Lookup tables as TensorFlow's client uses them: what an export of a dense table shows, tables in checkpoints, and the words of errors."""
import os

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from tensorflow.python.ops import gen_lookup_ops as raw
from tensorflow.python.ops import lookup_ops

from client_programs import outcomes_of, program
from client_texts_test import fed, words

LINE, NUMBER = lookup_ops.TextFileIndex.WHOLE_LINE, lookup_ops.TextFileIndex.LINE_NUMBER


def longs(*values):
    return tf.constant(np.array(values, np.int64))


def dense(**more):
    more = {"default_value": -1, "empty_key": 100, "deleted_key": 200, "initial_num_buckets": 8, **more}
    return lookup_ops.DenseHashTable(tf.int64, tf.int64, **more)


def buckets(table):
    """All of them, by key: where a key lies says nothing."""
    keys, values = table.export()
    order = tf.argsort(keys[:, 0], stable=True)
    return [tf.gather(keys, order), tf.gather(values, order)]


@program()
def test_an_export_of_a_dense_table_shows_all_buckets(p):
    table = dense()
    all_of = buckets(table)
    p.run(all_of)
    p.run(table.insert(longs(11, 12, 13, 14), longs(1, 2, 3, 4)))
    p.run(table.remove(longs(12, 15)))
    p.run(all_of)
    p.run(table.insert(longs(12), longs(9)))
    p.run(all_of)
    p.run(table.insert(longs(1, 2, 3, 4), longs(9, 8, 7, 6)))
    p.run(all_of)
    rows = dense(default_value=[-1, -1, -1], empty_key=[0, 1], deleted_key=[1, 0], initial_num_buckets=4)
    p.run(rows.insert(longs([5, 6]), longs([1, 2, 3])))
    p.run(buckets(rows))


def test_a_dense_table_goes_from_one_to_the_other_in_a_checkpoint(rill, reference, tmp_path):
    for writer, reader in ((rill, reference), (reference, rill)):
        tf.Session.reset(writer)
        with tf.Graph().as_default():
            table = dense(name="numbers", checkpoint=True)
            saver = tf.train.Saver([table._saveable] if hasattr(table, "_saveable") else None)
            with tf.Session(writer) as session:
                session.run(table.insert(longs(11, 12, 13, 14), longs(1, 2, 3, 4)))
                session.run(table.remove(longs(12)))
                path = saver.save(session, str(tmp_path / "table"))
            tf.Session.reset(reader)
            with tf.Session(reader) as session:
                saver.restore(session, path)
                assert session.run([table.size(), table.lookup(longs(11, 12, 14))[2]]) == [3, 4]
                session.run(table.insert(longs(1, 2, 3, 4, 5), longs(9, 8, 7, 6, 5)))
                assert session.run(table.lookup(longs(1, 5, 11, 12))).tolist() == [9, 5, 1, -1]


@program()
def test_a_fixed_table_takes_content_of_the_same_size_for_the_same(p):
    table = lookup_ops.StaticHashTableV1(lookup_ops.KeyValueTensorInitializer(tf.constant(["a", "b"]), longs(1, 2)), -1)
    p.run(table.initializer)
    p.run(raw.lookup_table_import_v2(table.resource_handle, tf.constant(["a", "c"]), longs(7, 8)))
    p.run(raw.initialize_table_v2(table.resource_handle, tf.constant(["a"]), longs(1)))
    p.run(table.lookup(tf.constant(["a", "b", "c"])))


def fixed(p, values=(1, 2)):
    table = lookup_ops.StaticHashTableV1(lookup_ops.KeyValueTensorInitializer(tf.constant(["a", "a"]), longs(*values)), -1, name="fixed")
    p.session.run(table.initializer)
    return table.resource_handle


def lines(p, text, key=LINE, value=NUMBER, kind=tf.string):
    path = os.path.join(os.path.dirname(p.folder), "lines")  # the same for both
    with open(path, "w") as file:
        file.write(text)
    return lookup_ops.StaticHashTableV1(lookup_ops.TextFileInitializer(path, kind, key, tf.int64, value), -1).initializer


def empty(value=tf.int64, key=tf.string):
    return raw.hash_table_v2(key, value, shared_name="empty")


def from_file(p, text="a\nb\n", path=None, key=LINE, value=NUMBER, table=None, **more):
    path = os.path.join(os.path.dirname(p.folder), "lines") if path is None else path
    with open(path or os.devnull, "w") as file:
        file.write(text)
    return raw.initialize_table_from_text_file_v2(empty() if table is None else table, path, key, value, **more)


def mutable(values=-1, name="words"):
    return lookup_ops.MutableHashTable(tf.string, tf.int64, values, name=name).resource_handle


ROWS = {
    "two values for a key": lambda p: fixed(p),
    "insert": lambda p: raw.lookup_table_insert_v2(fixed(p, (1, 1)), tf.constant(["b"]), longs(1)),
    "remove": lambda p: raw.lookup_table_remove_v2(fixed(p, (1, 1)), tf.constant(["b"])),
    "find keys of another type": lambda p: raw.lookup_table_find_v2(fixed(p, (1, 1)), longs(1), longs(1)[0]),
    "find values of another type": lambda p: raw.lookup_table_find_v2(mutable(), tf.constant(["a"]), tf.constant("b")),
    "insert keys of another type": lambda p: raw.lookup_table_insert_v2(mutable(), longs(1), longs(1)),
    "remove keys of another type": lambda p: raw.lookup_table_remove_v2(mutable(), longs(1)),
    "default values": lambda p: raw.lookup_table_find_v2(mutable(), tf.constant(["a", "b"]), longs(1, 2, 3)),
    "default rows": lambda p: raw.lookup_table_find_v2(mutable([1, 2], "pairs"), tf.constant(["a", "b"]), longs(1, 2, 3)),
    "rows of rows": lambda p: raw.mutable_hash_table_of_tensors_v2(tf.string, tf.int64, value_shape=[2, 2]),
    "one default in a row": lambda p: raw.lookup_table_find_v2(mutable(), tf.constant(["a", "b"]), fed([7], np.int64)),
    "a default row in a row": lambda p: raw.lookup_table_find_v2(mutable([1, 2], "pairs"), tf.constant(["a", "b"]), fed([[7, 8]], np.int64)),
    "a matrix of keys": lambda p: dense().lookup(fed([[5, 6], [7, 8]], np.int64)),
    "default before keys": lambda p: raw.lookup_table_find_v2(dense(empty_key=[0, 1], deleted_key=[1, 0]).resource_handle, fed([5, 6], np.int64), longs(1)),
    "a matrix of keys put in": lambda p: raw.lookup_table_insert_v2(dense().resource_handle, fed([[5, 6]], np.int64), fed([[7, 8]], np.int64)),
    "export of nothing": lambda p: raw.lookup_table_export_v2(empty(), tf.string, tf.int64),
    "values that do not fit": lambda p: raw.lookup_table_import_v2(empty(), tf.constant(["a", "b"]), fed([1], np.int64)),
    "fewer values": lambda p: raw.initialize_table_v2(empty(), tf.constant(["a", "b"]), fed([1], np.int64)),
    "a key that is no vector": lambda p: raw.initialize_table_v2(empty(), fed(b"a", object), fed(1, np.int64)),
    "a value that is no vector": lambda p: raw.initialize_table_v2(empty(), tf.constant(["a"]), fed([[1]], np.int64)),
    "no content": lambda p: raw.initialize_table_v2(empty(), fed(np.zeros([0], object), object), fed(np.zeros([0]), np.int64)),
    "content for a mutable table": lambda p: raw.initialize_table_v2(raw.mutable_hash_table_v2(tf.string, tf.int64, "tables", "m"), tf.constant(["a"]), longs(1)),
    "a file for a mutable table": lambda p: from_file(p, table=raw.mutable_hash_table_v2(tf.string, tf.int64, "tables", "m")),
    "no file": lambda p: from_file(p, path=""),
    "no lines of a file": lambda p: from_file(p, vocab_size=0),
    "line numbers as strings": lambda p: from_file(p, key=NUMBER, value=LINE),
    "line numbers for strings": lambda p: from_file(p, table=empty(tf.string)),
    "an empty line": lambda p: lines(p, "a\n\nb\n"),
    "no lines": lambda p: lines(p, ""),
    "a field that is no number": lambda p: lines(p, "0\ta\nx\tb\n", 1, 0),
    "many files": lambda p: raw.initialize_table_from_text_file_v2(raw.hash_table_v2(tf.string, tf.int64), fed([b"a", b"b"], object), -2, -1),
    "keys of two shapes": lambda p: dense(empty_key=[0]).size(),
    "too full": lambda p: raw.mutable_dense_hash_table_v2(longs(0)[0], longs(1)[0], tf.int64, max_load_factor=1.5),
    "values of two dimensions": lambda p: raw.mutable_dense_hash_table_v2(longs(0)[0], longs(1)[0], tf.int64, value_shape=[2, 2]),
    "one key of two": lambda p: raw.lookup_table_find_v2(dense(empty_key=[0, 1], deleted_key=[1, 0]).resource_handle, fed([5, 6], np.int64), longs(1)[0]),
    "wide keys": lambda p: raw.lookup_table_remove_v2(dense(empty_key=[0, 1], deleted_key=[1, 0]).resource_handle, fed([[5, 6, 7]], np.int64)),
}


@pytest.mark.parametrize("row", ROWS)
def test_errors_of_tables_are_told_in_the_same_words(rill, reference, tmp_path, row):
    def build(p):
        p.attempt(lambda: p.session.run(ROWS[row](p)))

    tf.Session.reset(rill)
    (expected,) = outcomes_of(build, reference, tmp_path / "tensorflow", "v1", {})
    (got,) = outcomes_of(build, rill, tmp_path / "rill", "v1", {})
    assert words(got) == words(expected)


@program()
def test_default_values_of_tables(p):
    """A mutable table takes one for each key, others the first for all."""
    for table, key in ((empty(), tf.constant), (mutable(), tf.constant), (dense().resource_handle, lambda keys: longs(*map(ord, keys)))):
        p.run(raw.lookup_table_import_v2(table, key(["a"]), longs(1)) if table.op.type == "HashTableV2" else raw.lookup_table_insert_v2(table, key(["a"]), longs(1)))
        for default in (longs(7)[0], longs(7, 8)):
            p.run(raw.lookup_table_find_v2(table, key(["a", "c"]), default))


@program()
def test_a_file_for_a_table_that_has_its_content_is_not_looked_into(p):
    first, second = (os.path.join(p.folder, name) for name in ("first", "second"))
    p.run(from_file(p, path=first))
    p.run(from_file(p, "c\nd\ne\n", path=second))
    p.run([raw.lookup_table_size_v2(empty()), raw.lookup_table_find_v2(empty(), tf.constant(["b", "c"]), longs(-1)[0])])


@program()
def test_types_that_a_table_that_is_never_changed_may_have(p):
    for key in (tf.int32, tf.int64, tf.string, tf.float32):
        for value in (tf.bool, tf.int32, tf.int64, tf.float32, tf.float64, tf.string, tf.uint8):
            with tf.Graph().as_default(), tf.Session(p.target) as session:
                size = raw.lookup_table_size_v2(raw.hash_table_v2(key, value))
                p.attempt(lambda: session.run(size))
