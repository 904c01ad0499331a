"""Rows of SQLite's files as datasets: values of every type, queries that fail, an iterator saved among the rows."""
import sqlite3

import pytest
import tensorflow.compat.v1 as tf
import tensorflow.compat.v2 as tf2

from client_programs import program

SqlDataset = tf2.data.experimental.SqlDataset


def database(p):
    path = p.folder + "/rows.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT, height REAL, picture BLOB, rank INTEGER, big INTEGER)")
        rows = [(1, "Ann", 1.75, b"\x00\x01", 3, 2 ** 40), (2, "Bo", -2.5, b"", -129, -2 ** 63), (3, None, None, None, None, None), (4, "7", 1e300, b"x" * 300, 70000, 2 ** 63 - 1)]
        connection.executemany("INSERT INTO people VALUES (?, ?, ?, ?, ?, ?)", rows)
    connection.close()
    return path


def pull(p, dataset, times):
    iterator = tf.data.make_initializable_iterator(dataset)
    step = iterator.get_next()
    p.run(iterator.initializer)
    for _ in range(times):
        p.run(step)


@program()
def test_rows_have_the_types_that_are_asked_for(p):
    path = database(p)
    pull(p, SqlDataset("sqlite", path, "SELECT id, name, height, picture FROM people ORDER BY id DESC", (tf.int64, tf.string, tf.float64, tf.string)), 5)
    for dtype in (tf.int8, tf.int16, tf.int32, tf.int64, tf.uint8, tf.uint16, tf.bool, tf.float64, tf.string):
        pull(p, SqlDataset("sqlite", path, "SELECT rank, big FROM people ORDER BY id", (dtype, dtype)), 5)
    pull(p, SqlDataset("sqlite", path, "SELECT name FROM people WHERE id > 90", (tf.string,)), 2)
    pull(p, SqlDataset("sqlite", path, "SELECT id FROM people ORDER BY id", (tf.int32,)).repeat(2).batch(3), 4)
    pull(p, SqlDataset("sqlite", path, tf.placeholder_with_default("SELECT count(*) FROM people", []), (tf.int32,)), 2)


@program()
def test_queries_that_fail(p):
    path = database(p)
    pull(p, SqlDataset("sqlite", path, "SELECT id FROM people", (tf.int32, tf.int32)), 2)
    pull(p, SqlDataset("sqlite", path, "SELECT nothing FROM people", (tf.int32,)), 2)
    pull(p, SqlDataset("sqlite", path, "no words of SQL", (tf.int32,)), 2)
    pull(p, SqlDataset("sqlite", p.folder + "/none.sqlite", "SELECT 1", (tf.int32,)), 2)
    pull(p, SqlDataset("postgres", path, "SELECT 1", (tf.int32,)), 1)
    pull(p, SqlDataset("sqlite", path, "SELECT 1", (tf.complex64,)), 1)
    with open(p.folder + "/other", "w") as f:
        f.write("not a database" * 100)
    pull(p, SqlDataset("sqlite", p.folder + "/other", "SELECT 1", (tf.int32,)), 2)


@pytest.mark.parametrize("taken", [0, 1, 3, 4])
def test_an_iterator_is_restored_among_the_rows(rill, graph, tmp_path, taken):
    class Place:
        folder = str(tmp_path)

    iterator = tf.data.make_initializable_iterator(SqlDataset("sqlite", database(Place), "SELECT id FROM people ORDER BY id", (tf.int32,)))
    step = iterator.get_next()
    saver = tf.train.Saver([tf2.data.experimental.make_saveable_from_iterator(iterator)])
    with tf.Session(rill) as session:
        session.run(iterator.initializer)
        for _ in range(taken):
            session.run(step)
        saver.save(session, str(tmp_path / "state"), write_meta_graph=False)
    with tf.Session(rill) as session:
        session.run(iterator.initializer)
        saver.restore(session, str(tmp_path / "state"))
        for i in range(taken, 4):
            assert session.run(step) == (i + 1,)
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(step)
