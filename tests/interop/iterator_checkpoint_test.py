"""Iterators saved in the middle of a pass and restored by another server go on where they were."""
import numpy as np
import pytest
import tensorflow.compat.v1 as tf
import tensorflow.compat.v2 as tf2

from cluster_process import Cluster

Data = tf2.data.Dataset
experimental = tf2.data.experimental


def add(state, x):
    return state + x, state


def rows_of(d):
    return d.map(lambda x: tf.fill([x % 4], x))


PIPELINES = {
    "slices": lambda: Data.from_tensor_slices(np.arange(12)),
    "map": lambda: Data.range(12).map(lambda x: x * 2),
    "parallel map": lambda: Data.range(12).map(lambda x: x * 2, num_parallel_calls=3),
    "filter": lambda: Data.range(24).filter(lambda x: x % 2 < 1),
    "flat map": lambda: Data.range(5).flat_map(lambda x: Data.range(x + 1)),
    "interleave": lambda: Data.range(6).interleave(lambda x: Data.range(x, x + 3), cycle_length=2, block_length=2),
    "parallel interleave": lambda: Data.range(6).interleave(lambda x: Data.range(x, x + 3), cycle_length=2, block_length=2, num_parallel_calls=2),
    "batch": lambda: Data.range(30).batch(3),
    "parallel batch": lambda: Data.range(30).batch(3, num_parallel_calls=2),
    "padded batch": lambda: rows_of(Data.range(20)).padded_batch(2, [None]),
    "unbatch": lambda: Data.range(30).batch(4).unbatch(),
    "rebatch": lambda: Data.range(30).batch(4).rebatch([3, 2]),
    "shuffle": lambda: Data.range(12).shuffle(5, seed=1).repeat(2),
    "shuffle once": lambda: Data.range(12).shuffle(5, seed=1, reshuffle_each_iteration=False).repeat(2),
    "random numbers": lambda: Data.random(seed=3).take(12),
    "random numbers, other ones each time": lambda: Data.random(seed=3, rerandomize_each_iteration=True).take(4).repeat(3),
    "skip, shard, take": lambda: Data.range(99).skip(2).shard(3, 1).take(12),
    "concatenate": lambda: Data.range(3).concatenate(Data.range(10, 19)),
    "zip": lambda: Data.zip((Data.range(12), Data.range(20, 32))),
    "cache": lambda: Data.range(6).cache().repeat(2),
    "window": lambda: Data.range(20).window(3, 2).flat_map(lambda w: w.batch(3)),
    "scan": lambda: Data.range(12).scan(np.int64(0), add),
    "take while": lambda: Data.range(12).take_while(lambda x: x < 11),
    "unique": lambda: Data.range(30).map(lambda x: x % 12).unique(),
    "prefetch": lambda: Data.range(12).prefetch(3),
    "groups": lambda: Data.range(24).group_by_window(lambda x: x % 3, lambda k, d: d.map(lambda x: x + k * 100), 4),
    "groups in batches": lambda: Data.range(24).group_by_window(lambda x: x % 3, lambda k, d: d.batch(2), 4),
    "reducer": lambda: Data.range(24).apply(experimental.group_by_reducer(lambda x: x % 8, experimental.Reducer(lambda k: np.int64(0), lambda s, x: s + x, lambda s: s))),
    "buckets": lambda: rows_of(Data.range(1, 24)).bucket_by_sequence_length(lambda x: tf.shape(x)[0], [2, 3], [2, 2, 2]),
    "choose": lambda: Data.choose_from_datasets([Data.range(9), Data.range(10, 19)], Data.range(14).map(lambda x: x % 2)),
    "sample": lambda: Data.sample_from_datasets([Data.range(9), Data.range(10, 19)], [0.5, 0.5], seed=2),
    "map and batch": lambda: Data.range(30).apply(experimental.map_and_batch(lambda x: x * 2, 3)),
    "shuffled sparse tensors": lambda: Data.range(12).map(lambda x: tf.SparseTensor([[x]], [x], [12])).shuffle(5, seed=1).map(lambda x: x.values),
    "sparse tensors apart": lambda: Data.from_tensors(tf.SparseTensor([[0, 1], [3, 2], [11, 0]], [1, 2, 3], [12, 4])).unbatch().map(tf.sparse.to_dense),
    "sparse batch": lambda: rows_of(Data.range(20)).sparse_batch(2, [4]),
}


@pytest.fixture(scope="module")
def another_server():
    cluster = Cluster({"worker": 1})
    yield cluster.target()
    cluster.kill()


def drain(session, step, most=99):
    found = []
    for _ in range(most):
        try:
            found.append([np.asarray(x).tolist() for x in tf.nest.flatten(session.run(step))])
        except tf.errors.OutOfRangeError:
            break
    return found


@pytest.mark.parametrize("row", PIPELINES)
def test_an_iterator_goes_on_where_it_was_saved(rill, another_server, graph, tmp_path, row):
    tf.set_random_seed(7)
    iterator = tf.data.make_initializable_iterator(PIPELINES[row]())
    step = iterator.get_next()
    saver = tf.train.Saver([experimental.make_saveable_from_iterator(iterator)])
    for taken in (1, 5, 8):
        with tf.Session(rill) as session:
            session.run(iterator.initializer)
            drain(session, step, taken)
            saver.save(session, str(tmp_path / "state"), write_meta_graph=False)
            rest = drain(session, step)
        with tf.Session(another_server) as session:
            session.run(iterator.initializer)
            saver.restore(session, str(tmp_path / "state"))
            assert drain(session, step) == rest


def test_a_cache_file_goes_on_where_it_was_saved(rill, graph, tmp_path):
    iterator = tf.data.make_initializable_iterator(Data.range(6).cache(str(tmp_path / "cache")).repeat(2))
    step = iterator.get_next()
    saver = tf.train.Saver([experimental.make_saveable_from_iterator(iterator)])
    found = []
    for taken in (0, 2, 3, 4, 99):
        with tf.Session(rill) as session:
            session.run(iterator.initializer)
            if found or taken:
                saver.restore(session, str(tmp_path / "state"))
            found += drain(session, step, taken)
            saver.save(session, str(tmp_path / "state"), write_meta_graph=False)
    assert found == [[i] for i in list(range(6)) * 2]
    assert not [path.name for path in tmp_path.iterdir() if path.name.startswith("cache_")]


@pytest.mark.parametrize("policy, refused", [(None, True), ("fail", True), ("warn", False), ("ignore", False)])
def test_what_functions_keep_is_not_saved(rill, reference, graph, tmp_path, policy, refused):
    dataset = Data.range(9).map(lambda x: tf.random.uniform([]), num_parallel_calls=2).batch(2)
    iterator = tf.data.make_initializable_iterator(dataset)
    saver = tf.train.Saver([experimental.make_saveable_from_iterator(iterator, policy) if policy else experimental.make_saveable_from_iterator(iterator)])
    for target in (rill, reference):
        with tf.Session(target) as session:
            session.run(iterator.initializer)
            if not refused:
                saver.save(session, str(tmp_path / "state"), write_meta_graph=False)
                continue
            with pytest.raises(tf.errors.FailedPreconditionError, match="RandomUniform is stateful"):
                saver.save(session, str(tmp_path / "state"), write_meta_graph=False)


def test_datasets_made_in_functions_may_be_saved(rill, graph, tmp_path):
    iterator = tf.data.make_initializable_iterator(Data.range(3).flat_map(lambda x: Data.range(x + 1).take(2)))
    saver = tf.train.Saver([experimental.make_saveable_from_iterator(iterator)])
    with tf.Session(rill) as session:
        session.run(iterator.initializer)
        saver.save(session, str(tmp_path / "state"), write_meta_graph=False)
