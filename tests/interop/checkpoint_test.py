"""Checkpoints between Rill and TensorFlow, both ways: every dtype, strings, variants, slices, merging, writing over an old one."""
import glob
import os

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

import training


@pytest.fixture
def cluster(start_cluster):
    return start_cluster({"worker": 1})


@pytest.fixture(params=["rill writes", "tensorflow writes"])
def targets(request, cluster):
    """(target that writes, target that reads)"""
    return (cluster.target(), "") if request.param == "rill writes" else ("", cluster.target())


def run(target, build):
    """Runs build() -> fetches in a fresh graph on the target; "" is TensorFlow in this process."""
    with tf.Graph().as_default() as g:
        with tf.device("/job:worker/task:0" if target else None):
            fetches = build()
        with training.session(target, g) as s:
            return s.run(fetches)


def save(target, prefix, names, values, slices=None):
    def build():
        return tf.raw_ops.SaveV2(prefix=prefix, tensor_names=names, shape_and_slices=slices or [""] * len(names),
                                 tensors=[v() if callable(v) else tf.constant(v) for v in values])

    run(target, build)


def restore(target, prefix, names, dtypes, slices=None):
    return run(target, lambda: tf.raw_ops.RestoreV2(prefix=prefix, tensor_names=names, shape_and_slices=slices or [""] * len(names),
                                                    dtypes=dtypes))


def test_every_dtype(targets, tmp_path):
    rng = np.random.RandomState(3)
    values = {t.name: rng.uniform(0, 100, [3, 5]).astype(t.as_numpy_dtype)
              for t in (tf.float16, tf.float32, tf.float64, tf.bfloat16, tf.int8, tf.int16, tf.int32, tf.int64, tf.uint8, tf.uint16,
                        tf.uint32, tf.uint64, tf.complex64, tf.complex128)}
    values["bool"] = rng.rand(3, 5) > 0.5
    values["strings"] = np.array([[b"", b"a\0b"], [bytes(300), b"\xff" * 70000]], dtype=object)
    values["empty"] = np.zeros([0, 7], np.float32)
    values["no strings"] = np.array([], dtype=object).astype(object)
    values["scalar"] = np.float32(3.25)
    names = list(values)
    dtypes = [tf.string if v.dtype == object else tf.as_dtype(v.dtype) for v in values.values()]
    save(targets[0], str(tmp_path / "ck"), names, [lambda v=v, d=d: tf.constant(v, d) for v, d in zip(values.values(), dtypes)])
    for name, got in zip(names, restore(targets[1], str(tmp_path / "ck"), names, dtypes)):
        assert np.shape(got) == values[name].shape
        assert np.array_equal(np.asarray(got, values[name].dtype), values[name]), name


def test_variants(targets, tmp_path):
    """Lists of tensors, one with an element that is not set, nested in a tensor of variants."""
    def lists():
        plain = tf.raw_ops.TensorListFromTensor(tensor=[[1.0, 2.0], [3.0, 4.0]], element_shape=[2])
        gap = tf.raw_ops.TensorListReserve(element_shape=[2], num_elements=3, element_dtype=tf.float32)
        return tf.stack([plain, tf.raw_ops.TensorListSetItem(input_handle=gap, index=1, item=[5.0, 6.0])])

    save(targets[0], str(tmp_path / "ck"), ["lists", "after"], [lists, np.float32([7])])

    def build():
        got, after = tf.raw_ops.RestoreV2(prefix=str(tmp_path / "ck"), tensor_names=["lists", "after"], shape_and_slices=["", ""],
                                          dtypes=[tf.variant, tf.float32])
        lengths = [tf.raw_ops.TensorListLength(input_handle=got[i]) for i in range(2)]
        item = tf.raw_ops.TensorListGetItem(input_handle=got[1], index=1, element_shape=[2], element_dtype=tf.float32)
        stacked = tf.raw_ops.TensorListStack(input_handle=got[0], element_shape=[2], element_dtype=tf.float32)
        return lengths, stacked, item, after

    lengths, stacked, item, after = run(targets[1], build)
    assert lengths == [2, 3] and after == [7]
    np.testing.assert_array_equal(stacked, [[1, 2], [3, 4]])
    np.testing.assert_array_equal(item, [5, 6])


def test_slices_put_together_another_way(targets, tmp_path):
    """Saved in four parts that cut both dimensions, restored whole, in other parts, and in a single column."""
    whole = np.arange(60, dtype=np.float32).reshape(10, 6)
    words = np.array([b"w%d" % i for i in range(12)], dtype=object).reshape(4, 3)
    parts = [(0, 4, 0, 6), (4, 3, 0, 2), (4, 3, 2, 4), (7, 3, 0, 6)]
    values = [whole[r:r + n, c:c + m] for r, n, c, m in parts] + [words[:1], words[1:]]
    slices = ["10 6 %d,%d:%d,%d" % p for p in parts] + ["4 3 0,1:-", "4 3 1,3:-"]
    save(targets[0], str(tmp_path / "ck"), ["v"] * 4 + ["s"] * 2, values, slices)
    wanted = ["", "10 6 3,5:1,4", "10 6 -:5,1", "10 6 9,1:-"]
    got = restore(targets[1], str(tmp_path / "ck"), ["v"] * 4, [tf.float32] * 4, wanted)
    for value, want in zip(got, [whole, whole[3:8, 1:5], whole[:, 5:6], whole[9:]]):
        np.testing.assert_array_equal(value, want)
    if targets[1]:  # TensorFlow writes parts of strings and cannot read them
        got = restore(targets[1], str(tmp_path / "ck"), ["s"] * 2, [tf.string] * 2, ["", "4 3 0,2:1,2"])
        np.testing.assert_array_equal(got[0], words)
        np.testing.assert_array_equal(got[1], words[:2, 1:])


@pytest.mark.parametrize("pieces", [(3, 2), (1, 4), (5, 1)])
def test_partitioned_variable_restored_in_other_pieces(cluster, tmp_path, pieces):
    def build(count):
        with tf.Graph().as_default() as g:
            v = tf.get_variable("v", [11, 4], initializer=tf.random_uniform_initializer(),
                                partitioner=tf.fixed_size_partitioner(count) if count > 1 else None)
            return g, tf.global_variables_initializer(), tf.identity(v), tf.train.Saver()

    for writer, reader in ((cluster.target(), ""), ("", cluster.target())):
        tf.Session.reset(cluster.target())  # the variable of the first turn has other shapes
        g, init, read, saver = build(pieces[0])
        with tf.Session(writer, graph=g) as s:
            s.run(init)
            value = s.run(read)
            path = saver.save(s, str(tmp_path / ("rill" if writer else "tf")))
        g, init, read, saver = build(pieces[1])
        with tf.Session(reader, graph=g) as s:
            saver.restore(s, path)
            np.testing.assert_array_equal(s.run(read), value)


@pytest.mark.parametrize("merger", ["rill", "tf"])
def test_parts_merged_by_the_other(targets, cluster, tmp_path, merger):
    prefixes = [str(tmp_path / "parts" / ("part%d" % i)) for i in range(3)]
    for i, prefix in enumerate(prefixes):
        save(targets[0], prefix, ["own%d" % i, "shared"], [np.full([2], i, np.int32), np.full([1, 2], i, np.float32)],
             ["", "3 2 %d,1:-" % i])
    merge = cluster.target() if merger == "rill" else ""
    run(merge, lambda: tf.raw_ops.MergeV2Checkpoints(checkpoint_prefixes=prefixes, destination_prefix=str(tmp_path / "all"),
                                                     delete_old_dirs=True))
    assert not os.path.exists(tmp_path / "parts") or not os.listdir(tmp_path / "parts")
    got = restore(targets[1], str(tmp_path / "all"), ["own0", "own2", "shared"], [tf.int32, tf.int32, tf.float32])
    np.testing.assert_array_equal(got[1], [2, 2])
    np.testing.assert_array_equal(got[2], [[0, 0], [1, 1], [2, 2]])


def test_written_over_again_and_again(cluster, tmp_path):
    """A checkpoint of the same name replaces the old one; TensorFlow reads, merges and replaces each, nothing piles up."""
    prefix = str(tmp_path / "ck")
    for turn in range(6):
        writer = "" if turn == 3 else cluster.target()
        save(writer, prefix, ["v", "step"], [np.full([1000], turn, np.float32), np.int64(turn)])
        for target in ("", cluster.target()):
            v, step = restore(target, prefix, ["v", "step"], [tf.float32, tf.int64])
            assert step == turn and (v == turn).all()
        assert tf.train.load_checkpoint(prefix).get_tensor("step") == turn
        assert tf.train.checkpoint_exists(prefix)
        if writer:
            assert len(os.listdir(tmp_path)) == 2, os.listdir(tmp_path)
    save(cluster.target(), prefix, ["v"], [np.float32(1)])
    save(cluster.target(), prefix, ["v"], [np.float32(2)])
    save("", str(tmp_path / "other"), ["w"], [np.float32(3)])
    run("", lambda: tf.raw_ops.MergeV2Checkpoints(checkpoint_prefixes=[prefix, str(tmp_path / "other")],
                                                  destination_prefix=str(tmp_path / "all")))
    assert restore(cluster.target(), str(tmp_path / "all"), ["v", "w"], [tf.float32] * 2) == [2, 3]


def test_saver_without_a_step_writes_over_its_checkpoint(cluster, tmp_path):
    with tf.Graph().as_default() as g:
        v = tf.get_variable("v", initializer=np.zeros([50], np.float32))
        add, init, saver = v.assign_add(np.ones([50], np.float32)), tf.global_variables_initializer(), tf.train.Saver()
        with tf.Session(cluster.target(), graph=g) as s:
            s.run(init)
            for _ in range(4):
                s.run(add)
                path = saver.save(s, str(tmp_path / "model"))
        with tf.Session(graph=g) as s:
            saver.restore(s, tf.train.latest_checkpoint(str(tmp_path)))
            assert (s.run(v) == 4).all()
    assert len(glob.glob(path + ".data-*")) == 1


def test_damage_names_the_tensor(cluster, tmp_path):
    prefix = str(tmp_path / "ck")
    save(cluster.target(), prefix, ["good", "bad"], [np.arange(1000, dtype=np.float32), np.arange(1000, dtype=np.float32)])
    data = glob.glob(prefix + ".data-*")[0]
    with open(data, "r+b") as f:
        f.seek(6000)
        f.write(b"\x55")
    restore(cluster.target(), prefix, ["good"], [tf.float32])
    with pytest.raises(tf.errors.DataLossError, match="Tensor bad"):
        restore(cluster.target(), prefix, ["bad"], [tf.float32])
