"""Savers of the first checkpoint format: written by Rill and read by TensorFlow, and the other way round."""
import glob
import os

import numpy as np
import tensorflow.compat.v1 as tf

from client_programs import program

BOTH = ("v1", "v2")
raw = tf.raw_ops


def saver(**more):
    return tf.train.Saver(write_version=tf.train.SaverDef.V1, **more)


@program(*BOTH)
def test_saver_of_the_first_version(p):
    a = tf.get_variable("a", initializer=[1.0, 2.0])
    b = tf.get_variable("b", initializer=np.array([[1, 2], [3, -4]], np.int64))
    s = tf.get_variable("s", initializer=tf.constant(["x", "longer text", ""]), use_resource=True)
    p.init()
    keeper = saver(max_to_keep=2)
    for step in range(4):
        p.run(a.assign_add([1.0, 1.0]))
        p.record(os.path.basename(keeper.save(p.session, os.path.join(p.folder, "model"), step)))
    p.record(sorted(os.path.basename(f) for f in glob.glob(os.path.join(p.folder, "*"))))
    latest = tf.train.latest_checkpoint(p.folder)
    p.run([a.assign([0.0, 0.0]), b.assign(b * 0), s.assign(["", "", ""])])
    keeper.restore(p.session, latest)
    p.run([a, b, s])
    p.record(sorted(tf.train.list_variables(latest)))
    reader = tf.train.load_checkpoint(latest)
    p.record([reader.get_tensor(n) for n in ("a", "b", "s")])
    p.run([a.assign([0.0, 0.0]), b.assign(b * 0)])
    tf.train.Saver().restore(p.session, latest)  # RestoreV2 reads the old format too
    p.run([a, b, s])
    p.attempt(lambda: tf.train.Saver({"none": a}).restore(p.session, latest))
    p.attempt(lambda: saver(var_list={"b": a}).restore(p.session, latest))
    p.attempt(lambda: keeper.restore(p.session, os.path.join(p.folder, "nothing")))
    p.attempt(lambda: keeper.save(p.session, os.path.join(p.folder, "no", "such", "folder", "x"), write_meta_graph=False))


@program(*BOTH)
def test_files_cross_over(p):
    v = tf.get_variable("v", [5, 3], initializer=tf.random_normal_initializer(seed=1), partitioner=tf.fixed_size_partitioner(2))
    w = tf.get_variable("w", [4, 6], initializer=tf.random_normal_initializer(seed=2), partitioner=tf.variable_axis_size_partitioner(60, axis=1))
    x = tf.get_variable("x", initializer=tf.constant([b"\xff\x00", b"b"]), use_resource=True)
    zero = [part.assign(part * 0.0).op for part in list(v) + list(w)]
    both = [v.as_tensor(), w.as_tensor(), x]
    p.init()
    for sharded in (False, True):
        keeper = saver(sharded=sharded)
        here = keeper.save(p.session, os.path.join(p.folder, "here%d" % sharded), write_meta_graph=False)
        p.record(os.path.basename(here))
        p.record(sorted(os.path.basename(f) for f in glob.glob(os.path.join(p.folder, "here%d*" % sharded))))
        with tf.Session() as other:  # TensorFlow reads what the server wrote, and writes for it
            keeper.restore(other, here)
            p.record(other.run(both))
            there = keeper.save(other, os.path.join(p.folder, "there%d" % sharded), write_meta_graph=False)
        p.run(zero)
        keeper.restore(p.session, there)
        p.run(both)
        with tf.Graph().as_default(), tf.Session(p.target) as other:
            whole = tf.get_variable("v", [5, 3])
            saver().restore(other, there)
            p.attempt(lambda: other.run(whole))


@program()
def test_an_index_of_the_second_format_is_a_file_without_slices(p):
    v = tf.get_variable("v", initializer=[1.0, 2.0])
    p.init()
    keeper = tf.train.Saver()
    p.attempt(lambda: keeper.restore(p.session, keeper.save(p.session, os.path.join(p.folder, "model"), write_meta_graph=False) + ".index"))
    p.run(v)


@program()
def test_every_type_and_none_more(p):
    for i, dtype in enumerate(["f2", "f4", "f8", "i1", "u1", "i2", "u2", "i4", "i8", "c8", "c16", "?", "u4", "u8", "S", "bf"]):
        dtype = tf.bfloat16.as_numpy_dtype if dtype == "bf" else dtype
        value = tf.constant(np.array([[3, 0, 1]]).astype(dtype))
        path = os.path.join(p.folder, "t%d" % i)
        p.run(raw.Save(filename=path, tensor_names=["t"], data=[value]))
        p.run(raw.Restore(file_pattern=path, tensor_name="t", dt=value.dtype))
        if os.path.exists(path):
            with tf.Session() as other:
                p.record(other.run(raw.Restore(file_pattern=path, tensor_name="t", dt=value.dtype)))


@program()
def test_what_cannot_be_saved_or_restored(p):
    path, names, spec = tf.placeholder(tf.string), tf.placeholder(tf.string), tf.placeholder(tf.string)
    one, two = tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0])
    file = os.path.join(p.folder, "file")
    save = raw.SaveSlices(filename=path, tensor_names=names, shapes_and_slices=spec, data=[one, two])
    restore = raw.RestoreSlice(file_pattern=path, tensor_name=names, shape_and_slice=spec, dt=tf.float32)
    for given in (["4 0,2", "4 2,2"], ["4 0,2", "4 1,2"], ["4 0,2", "5 1,2"], ["2 -", "4 0,3"], ["4", ""], ["x -", ""], ["2 0,0", ""], ["2 0,9", ""],
                  ["2 2 -", ""], ["", ""], [""]):
        p.run(save, {path: file, names: ["a", "a"], spec: given})
        p.run(restore, {path: file, names: "a", spec: ""})
    p.run(save, {path: file, names: ["a", "a"], spec: ["6 0,2", "6 4,2"]})
    for given in ("6 0,2", "6 1,1", "6 1,2", "6 -", "5 0,2", "6", "6 0,0", "6 0,7", "6 1 -", "6 0;2"):
        p.run(restore, {path: file, names: "a", spec: given})
    p.run(restore, {path: file, names: "b", spec: ""})
    p.run(restore, {path: [file, file], names: "a", spec: ""})
    p.run(restore, {path: file, names: ["a", "b"], spec: ""})
    p.run(restore, {path: file, names: "a", spec: ["", ""]})
    p.run(save, {path: [file, file], names: ["a", "b"], spec: ["", ""]})
    p.run(save, {path: file, names: ["a"], spec: ["", ""]})
    p.run(raw.Restore(file_pattern=path, tensor_name="a", dt=tf.int32), {path: file})
    with open(os.path.join(p.folder, "text"), "w") as f:
        f.write("no table" * 20)
    p.run(restore, {path: os.path.join(p.folder, "text"), names: "a", spec: ""})
    p.run(restore, {path: os.path.join(p.folder, "*"), names: "a", spec: ""})
    p.run(restore, {path: os.path.join(p.folder, "fil?"), names: "a", spec: "6 4,2"})
    p.record(sorted(os.listdir(p.folder)))
