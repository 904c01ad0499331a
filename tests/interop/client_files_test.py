"""Savers, readers, tables and summaries of clients: files written by one and read by the other."""
import glob
import os

import numpy as np
import tensorflow.compat.v1 as tf

from client_programs import Failure, program

BOTH = ("v1", "v2")


@program(*BOTH)
def test_saver(p):
    a = tf.get_variable("a", initializer=[1.0, 2.0])
    b = tf.get_variable("b", initializer=np.array([[1, 2], [3, 4]], np.int64))
    s = tf.get_variable("s", initializer=tf.constant(["x", "longer text", ""]), use_resource=True)
    p.init()
    saver = tf.train.Saver(max_to_keep=2)
    for step in range(4):
        p.run(a.assign_add([1.0, 1.0]))
        p.record(os.path.basename(saver.save(p.session, os.path.join(p.folder, "model"), step)))
    p.record(sorted(os.path.basename(f) for f in glob.glob(os.path.join(p.folder, "*"))))
    p.record(os.path.basename(tf.train.latest_checkpoint(p.folder)))
    p.run([a.assign([0.0, 0.0]), b.assign(b * 0), s.assign(["", "", ""])])
    saver.restore(p.session, tf.train.latest_checkpoint(p.folder))
    p.run([a, b, s])
    p.record(sorted(tf.train.list_variables(tf.train.latest_checkpoint(p.folder))))
    reader = tf.train.load_checkpoint(tf.train.latest_checkpoint(p.folder))
    p.record([reader.get_tensor(n) for n in ("a", "b", "s")])


@program(*BOTH)
def test_saver_of_some_under_other_names(p):
    a = tf.get_variable("a", initializer=[1.0, 2.0])
    b = tf.get_variable("b", initializer=[3.0])
    p.init()
    path = tf.train.Saver({"first": a, "second": b}, sharded=True).save(p.session, os.path.join(p.folder, "named"), write_meta_graph=False)
    p.record(sorted(os.path.basename(f) for f in glob.glob(os.path.join(p.folder, "named*"))))
    p.run([a.assign([9.0, 9.0]), b.assign([9.0])])
    tf.train.Saver({"first": a}).restore(p.session, path)
    p.run([a, b])
    p.attempt(lambda: tf.train.Saver({"third": a}).restore(p.session, path))
    p.attempt(lambda: tf.train.Saver({"second": a}).restore(p.session, path))
    p.attempt(lambda: tf.train.Saver({"first": a}).restore(p.session, path + "-none"))
    p.attempt(lambda: tf.train.Saver([a]).save(p.session, os.path.join(p.folder, "no", "such", "folder", "x")))
    c = tf.get_variable("c", initializer=tf.constant([1, 2]))
    p.attempt(lambda: tf.train.Saver({"first": c}).restore(p.session, path))


@program(*BOTH)
def test_saver_of_partitioned_variables(p):
    v = tf.get_variable("v", [5, 3], initializer=tf.random_normal_initializer(seed=1), partitioner=tf.fixed_size_partitioner(2))
    w = tf.get_variable("w", [4, 6], initializer=tf.random_normal_initializer(seed=2), partitioner=tf.variable_axis_size_partitioner(60, axis=1))
    p.init()
    p.run([v.as_tensor(), w.as_tensor(), len(list(v)) + tf.constant(0)])
    path = tf.train.Saver().save(p.session, os.path.join(p.folder, "parts"))
    p.run([x.assign(x * 0.0).op for x in list(v) + list(w)])
    tf.train.Saver().restore(p.session, path)
    p.run([v.as_tensor(), w.as_tensor()])
    with tf.Graph().as_default(), tf.Session(p.target) as other:
        whole = tf.get_variable("v", [5, 3])
        tf.train.Saver().restore(other, path)
        p.attempt(lambda: other.run(whole))


@program()
def test_saver_variables_of_every_type(p):
    values = [np.array([1, 2], t) for t in ("f2", "f4", "f8", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "c8", "c16", "?")]
    values.append(np.array([1, 2], tf.bfloat16.as_numpy_dtype))
    variables = [tf.get_variable("v%d" % i, initializer=tf.constant(v), use_resource=True) for i, v in enumerate(values)]
    p.init()
    path = tf.train.Saver().save(p.session, os.path.join(p.folder, "types"))
    with tf.Session(p.target, graph=tf.get_default_graph()) as s:
        tf.train.Saver().restore(s, path)
        p.attempt(lambda: s.run(variables))


@program(*BOTH)
def test_meta_graph_and_import(p):
    x = tf.placeholder(tf.float32, [None], name="x")
    v = tf.get_variable("v", initializer=2.0)
    tf.multiply(x, v, name="y")
    p.init()
    path = tf.train.Saver().save(p.session, os.path.join(p.folder, "whole"))
    with tf.Graph().as_default(), tf.Session(p.target) as s:
        tf.train.import_meta_graph(path + ".meta").restore(s, path)
        p.attempt(lambda: s.run("y:0", {"x:0": [1.0, 2.0]}))
    frozen = tf.graph_util.convert_variables_to_constants(p.session, tf.get_default_graph().as_graph_def(), ["y"])
    with tf.Graph().as_default(), tf.Session(p.target) as s:
        tf.import_graph_def(frozen, name="in")
        p.attempt(lambda: s.run("in/y:0", {"in/x:0": [1.0, 2.0]}))


@program()
def test_saved_model(p):
    x = tf.placeholder(tf.float32, [None], name="x")
    v = tf.get_variable("v", initializer=3.0)
    y = x * v
    p.init()
    folder = os.path.join(p.folder, "saved")
    tf.saved_model.simple_save(p.session, folder, {"x": x}, {"y": y})
    with tf.Graph().as_default(), tf.Session(p.target) as s:
        meta = tf.saved_model.load(s, ["serve"], folder)
        signature = meta.signature_def["serving_default"]
        p.attempt(lambda: s.run(signature.outputs["y"].name, {signature.inputs["x"].name: [1.0, 2.0]}))


@program()
def test_save_and_restore_ops(p):
    path = os.path.join(p.folder, "raw")
    p.run(tf.raw_ops.SaveV2(prefix=path, tensor_names=["a", "b"], shape_and_slices=["", ""], tensors=[tf.constant([1.0, 2.0, 3.0]), tf.constant("t")]))
    p.run(tf.raw_ops.RestoreV2(prefix=path, tensor_names=["b", "a"], shape_and_slices=["", "3 1,2"], dtypes=[tf.string, tf.float32]))
    p.run(tf.raw_ops.RestoreV2(prefix=path, tensor_names=["nothing"], shape_and_slices=[""], dtypes=[tf.float32]))
    p.run(tf.raw_ops.RestoreV2(prefix=path, tensor_names=["a"], shape_and_slices=[""], dtypes=[tf.int32]))
    p.run(tf.raw_ops.RestoreV2(prefix=path, tensor_names=["a"], shape_and_slices=["4 0,4"], dtypes=[tf.float32]))
    p.run(tf.raw_ops.RestoreV2(prefix=path + "x", tensor_names=["a"], shape_and_slices=[""], dtypes=[tf.float32]))
    for i in range(2):
        p.run(tf.raw_ops.SaveV2(prefix=path + "-part%d" % i, tensor_names=["t"], shape_and_slices=["4 2 %d,2:-" % (2 * i)],
                                tensors=[tf.fill([2, 2], float(i))]))
    p.run(tf.raw_ops.MergeV2Checkpoints(checkpoint_prefixes=[path + "-part0", path + "-part1"], destination_prefix=path + "-all"))
    p.run(tf.raw_ops.RestoreV2(prefix=path + "-all", tensor_names=["t", "t"], shape_and_slices=["", "4 2 1,2:0,1"], dtypes=[tf.float32, tf.float32]))


@program()
def test_where_a_saver_cannot_write(p):
    v = tf.Variable(1.0, name="v", use_resource=False)
    p.init()
    saver = tf.train.Saver([v])
    with open(os.path.join(p.folder, "file"), "w"):
        pass
    for path in ("nothing/path", "file/path", "nothing/below/nothing"):
        outcome = Failure(ValueError(""))
        try:
            saver.save(p.session, os.path.join(p.folder, path))
        except Exception as error:  # noqa: BLE001 (compared)
            outcome = Failure(error)
        p.record(outcome)
        p.record(outcome.text.replace(p.folder, ""))
        p.attempt(lambda: saver.restore(p.session, os.path.join(p.folder, path)))


def write_files(folder):
    paths = []
    for i in range(3):
        paths.append(os.path.join(folder, "lines-%d.txt" % i))
        with open(paths[-1], "w") as f:
            f.writelines("file %d line %d\n" % (i, j) for j in range(i + 1))
    return paths


@program()
def test_readers_over_many_files(p):
    paths = write_files(p.folder)
    base = len(p.folder)
    for reader in (tf.TextLineReader(), tf.TextLineReader(skip_header_lines=1), tf.WholeFileReader(), tf.IdentityReader(),
                   tf.FixedLengthRecordReader(5, header_bytes=2, footer_bytes=1)):
        q = tf.FIFOQueue(10, tf.string, [[]])
        p.run([q.enqueue_many([paths]), reader.reset()])
        p.run(q.close())
        key, value = reader.read(q)
        while True:
            got = p.attempt(lambda: (lambda k, v: (k[base:], v[-11:]))(*p.session.run([key, value])))
            if got is None:
                break
        p.run([reader.num_records_produced(), reader.num_work_units_completed()])
    reader = tf.TextLineReader()
    q = tf.FIFOQueue(10, tf.string, [[]])
    p.run(q.enqueue_many([paths]))
    keys, values = reader.read_up_to(q, 4)
    p.attempt(lambda: [k[base:] for k in p.session.run(keys)])
    p.run(q.close())
    p.run(values)
    p.run(values)


@program()
def test_readers_of_what_is_not_there(p):
    q = tf.FIFOQueue(10, tf.string, [[]])
    p.run(q.enqueue_many([[os.path.join(p.folder, "missing")]]))
    p.run(tf.TextLineReader().read(q))
    p.run(q.enqueue_many([[os.path.join(p.folder, "bad.tfrecord")]]))
    with open(os.path.join(p.folder, "bad.tfrecord"), "wb") as f:
        f.write(b"this is not a record file at all")
    p.run(tf.TFRecordReader().read(q))
    p.run(tf.read_file(p.folder + "/nothing"))
    p.run(tf.matching_files(p.folder + "/none*"))
    state = tf.IdentityReader()
    p.run(q.enqueue("x"))
    p.run(state.read(q))
    kept = p.session.run(state.serialize_state())
    p.run(state.reset())
    p.run(state.num_records_produced())
    p.run(state.restore_state(kept))
    p.run(state.num_records_produced())
    p.run(state.restore_state(tf.constant("garbage")))


@program()
def test_refused_states_of_readers(p):
    """A state that is refused leaves a reader as new, also one that cannot be restored at all."""
    path = os.path.join(p.folder, "lines")
    with open(path, "wb") as f:
        f.write(b"a\nb\nc")
    for make in (tf.IdentityReader, tf.WholeFileReader, tf.TextLineReader):
        for state in (b"BOGUS", b"\x08\x01", b"\x10\x01", b"\x08\x02\x10\x02\x18\x02"):
            reader, q = make(), tf.FIFOQueue(9, [tf.string], shapes=())
            p.run(q.enqueue_many([[path, path]]))
            p.run(tf.regex_replace(reader.read(q)[1], ".*/", ""))
            p.run(reader.restore_state(tf.constant(state)))
            p.run([reader.num_records_produced(), reader.num_work_units_completed()])
            p.run(tf.regex_replace(reader.read(q)[1], ".*/", ""))
            p.run([reader.num_records_produced(), reader.num_work_units_completed()])


@program()
def test_compressed_records(p):
    for name in ("", "GZIP", "ZLIB"):
        path = os.path.join(p.folder, "r" + name)
        with tf.io.TFRecordWriter(path, tf.io.TFRecordOptions(getattr(tf.io.TFRecordCompressionType, name or "NONE"))) as w:
            for i in range(20):
                w.write(b"record %d" % i * i)
        q = tf.FIFOQueue(10, tf.string, [[]])
        p.run(q.enqueue(path))
        p.run(q.close())
        reader = tf.TFRecordReader(options=tf.io.TFRecordOptions(getattr(tf.io.TFRecordCompressionType, name or "NONE")))
        p.run(reader.read_up_to(q, 12)[1])
        p.run(reader.read_up_to(q, 12)[1])
        p.run(reader.read_up_to(q, 12)[1])


@program()
def test_files(p):
    path = os.path.join(p.folder, "sub", "file.bin")
    p.run(tf.io.write_file(path, b"content \0 with zero"))
    p.run(tf.read_file(path))
    p.run(tf.io.decode_raw(tf.read_file(path), tf.uint8))
    p.attempt(lambda: [f[len(p.folder):] for f in p.session.run(tf.matching_files([p.folder + "/sub/*", p.folder + "/none"]))])
    with open(os.path.join(p.folder, "t.csv"), "w") as f:
        f.write('1,2.5,"a,b"\n3,,c\n')
    p.run(tf.decode_csv(tf.constant(['1,2.5,"a,b"', "3,,c"]), [[0], [0.5], [""]]))
    p.run(tf.decode_csv(tf.constant(["1,2"]), [[0], [0.5], [""]]))
    p.run(tf.decode_csv(tf.constant(["x,2,3"]), [[0], [0.5], [""]]))


@program(*BOTH)
def test_tables(p):
    path = os.path.join(p.folder, "vocabulary.txt")
    with open(path, "w") as f:
        f.write("apple\nbanana\ncherry\n")
    words = tf.constant(["banana", "durian", "apple"])
    static = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a", "b"], [1, 2], value_dtype=tf.int64), -1)
    from_file = tf.lookup.StaticHashTable(tf.lookup.TextFileInitializer(
        path, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER), 7)
    backwards = tf.lookup.StaticHashTable(tf.lookup.TextFileInitializer(
        path, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE), "?")
    buckets = tf.lookup.StaticVocabularyTable(tf.lookup.TextFileInitializer(
        path, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER), 4)
    p.run(from_file.lookup(words))
    p.init()
    p.run([static.lookup(tf.constant([["a"], ["z"]])), static.size()])
    p.run([from_file.lookup(words), from_file.size(), backwards.lookup(tf.constant([2, 9], tf.int64))])
    p.run([buckets.lookup(words), buckets.size()])
    sparse = tf.SparseTensor([[0, 0], [1, 1]], ["cherry", "x"], [2, 2])
    p.run(from_file.lookup(sparse))
    again = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a", "a"], [1, 2], value_dtype=tf.int64), -1)
    p.run(tf.tables_initializer())
    missing = tf.lookup.TextFileInitializer(os.path.join(p.folder, "none"), tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64,
                                            tf.lookup.TextFileIndex.LINE_NUMBER)
    p.run(tf.lookup.StaticHashTable(missing, 0).initializer)
    p.run(again.size())
    two = os.path.join(p.folder, "two.txt")
    with open(two, "w") as f:
        f.write("x 10\ny 20\nx 10\n")
    columns = tf.lookup.StaticHashTable(tf.lookup.TextFileInitializer(two, tf.string, 0, tf.int64, 1, delimiter=" "), -1)
    p.run(columns.initializer)
    p.run(columns.lookup(tf.constant(["x", "y", "z"])))


@program(*BOTH)
def test_mutable_tables(p):
    t = tf.lookup.experimental.MutableHashTable(tf.string, tf.float32, [-1.0, -1.0])
    p.run(t.insert(["a", "b"], [[1.0, 2.0], [3.0, 4.0]]))
    p.run([t.size(), t.lookup(tf.constant(["b", "c"]))])
    p.run(t.insert(["a"], [[9.0, 9.0]]))
    p.run(t.remove(tf.constant(["b", "zz"])))
    keys, values = t.export()
    p.run([keys, values])
    p.run(t.insert(["a", "b"], [[1.0, 2.0]]))
    p.run(t.insert(["a"], [[1.0, 2.0, 3.0]]))
    d = tf.lookup.experimental.DenseHashTable(tf.int64, tf.int64, default_value=-1, empty_key=0, deleted_key=-2, initial_num_buckets=4)
    p.run(d.insert(tf.constant(np.arange(1, 20)), tf.constant(np.arange(1, 20) ** 2)))
    p.run([d.size(), d.lookup(tf.constant([3, 100], tf.int64))])
    p.run(d.remove(tf.constant([3], tf.int64)))
    p.run([d.size(), d.lookup(tf.constant([3, 4], tf.int64))])
    p.run(d.insert(tf.constant([0], tf.int64), tf.constant([5], tf.int64)))
    saver = tf.train.Saver([t])
    path = saver.save(p.session, os.path.join(p.folder, "table"), write_meta_graph=False)
    p.run(t.remove(tf.constant(["a"])))
    saver.restore(p.session, path)
    p.run(t.lookup(tf.constant(["a"])))


@program()
def test_summaries(p):
    x = tf.placeholder(tf.float32)
    tf.summary.scalar("s", x[0])
    tf.summary.histogram("h", x)
    tf.summary.text("t", tf.as_string(x))
    tf.summary.image("i", tf.reshape(x, [1, 2, 2, 1]))
    tf.summary.audio("a", tf.reshape(x, [1, 4]), 100)
    tf.summary.tensor_summary("tensor", x)
    merged = tf.summary.merge_all()
    data = p.session.run(merged, {x: [0.1, 0.2, 0.3, 0.4]})
    summary = tf.Summary.FromString(data)
    p.record([v.tag for v in summary.value])
    p.record([v.simple_value for v in summary.value])
    p.record([(list(v.histo.bucket), v.histo.num) for v in summary.value if v.HasField("histo")])
    p.record([(v.image.width, v.image.height) for v in summary.value if v.HasField("image")])
    p.record([v.audio.sample_rate for v in summary.value if v.HasField("audio")])
    p.run(tf.summary.scalar("bad", x), {x: [1.0, 2.0]})
    p.run(tf.summary.histogram("bad", x), {x: [np.nan]})


@program()
def test_no_record_comes_twice_in_an_epoch(p):
    for name in "ab":
        with tf.io.TFRecordWriter("%s/%s.records" % (p.folder, name)) as writer:
            for i in range(5):
                writer.write(b"%s%d" % (name.encode(), i))
    records = tf.raw_ops.RecordInput(file_pattern=p.folder + "/*.records", file_random_seed=7, file_shuffle_shift_ratio=0.3,
                                     file_buffer_size=100, file_parallelism=2, batch_size=5, compression_type="")
    for _ in range(3):
        p.record(sorted(r for _ in range(2) for r in p.session.run(records)))
