"""Files: checkpoints written by Rill and read by TensorFlow and the other way round, summaries, the record input pipeline."""
import glob

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

import models
import training


@pytest.fixture
def cluster(start_cluster):
    return start_cluster({"ps": 2, "worker": 1})


def variables_graph(place, sharded, resource):
    """Variables of several dtypes over two ps tasks, their values, and a saver."""
    g = tf.Graph()
    rng = np.random.RandomState(1)
    values = {"a": rng.randn(30, 20).astype(np.float32), "b": rng.randn(5).astype(np.float64), "c": np.int64(77),
              "d": np.arange(6, dtype=np.int32).reshape(3, 2), "e": np.array([True, False]),
              "f": np.array([b"", b"text", b"\0\1\2"], dtype=object), "g": rng.randn(4).astype(np.float16),
              "h": (rng.randn(3) + 1j * rng.randn(3)).astype(np.complex64), "empty": np.zeros([0, 3], np.float32)}
    with g.as_default(), models.variables_of("resource" if resource else "ref"), models.device_of(0, 2, place):
        for name, value in values.items():
            zero = np.full(value.shape, b"", dtype=object) if value.dtype == object else np.zeros_like(value)
            tf.Variable(zero, name=name)
        part = tf.get_variable("part", [10, 4], initializer=tf.zeros_initializer(),
                               partitioner=tf.fixed_size_partitioner(3))
        saver = tf.train.Saver(sharded=sharded, max_to_keep=2)
        sets = [v.assign(values[v.op.name]) for v in tf.global_variables() if v.op.name in values]
        whole = rng.randn(10, 4).astype(np.float32)
        offset = 0
        for v in part:
            rows = v.shape[0].value
            sets.append(v.assign(whole[offset:offset + rows]))
            offset += rows
        init = tf.global_variables_initializer()
    return g, saver, sets, init


def values_of(s, g):
    return {v.op.name: s.run(v) for v in g.get_collection(tf.GraphKeys.GLOBAL_VARIABLES)}


@pytest.mark.parametrize("sharded", [False, True], ids=["whole", "sharded"])
@pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])
@pytest.mark.parametrize("writer", ["rill", "tf"])
def test_checkpoint_from_one_to_the_other(cluster, tmp_path, sharded, resource, writer):
    places = {"rill": (cluster.target(), True), "tf": ("", False)}
    target, place = places.pop(writer)
    g, saver, sets, init = variables_graph(place, sharded, resource)
    with training.session(target, g) as s:
        s.run(init)
        s.run(sets)
        want = values_of(s, g)
        path = saver.save(s, str(tmp_path / "model"), global_step=7)
    assert tf.train.latest_checkpoint(str(tmp_path)) == path
    reader = tf.train.load_checkpoint(path)
    for name, value in want.items():
        if not name.startswith("part"):
            np.testing.assert_array_equal(reader.get_tensor(name), value, err_msg=name)
    assert reader.get_tensor("part").shape == (10, 4)
    (target, place), = places.values()
    g, saver, sets, init = variables_graph(place, not sharded, resource)
    with training.session(target, g) as s:
        saver.restore(s, path)
        got = values_of(s, g)
    for name, value in want.items():
        np.testing.assert_array_equal(got[name], value, err_msg=name)


def test_old_checkpoints_go_and_a_missing_tensor_is_named(cluster, tmp_path):
    g, saver, sets, init = variables_graph(True, True, True)
    with training.session(cluster.target(), g) as s:
        s.run(init)
        for step in range(4):
            path = saver.save(s, str(tmp_path / "model"), global_step=step)
        assert len(glob.glob(str(tmp_path / "*.index"))) == 2
        with g.as_default(), tf.device("/job:ps/task:1"):
            tf.Variable(1.0, name="not_in_the_file")
            with pytest.raises((tf.errors.NotFoundError, ValueError), match="not_in_the_file"):
                tf.train.Saver().restore(s, path)
        with pytest.raises((tf.errors.NotFoundError, ValueError)):
            saver.restore(s, str(tmp_path / "no_such_file"))


def test_saved_in_mid_training_goes_on_in_tensorflow(cluster, reference, tmp_path):
    """Ten steps of Adam on Rill, saved, ten more in TensorFlow: as if one of them had done all."""
    data = models.batches(20)

    def steps(s, p, part):
        x, y, loss, train_op = p.towers[0]
        return [s.run([loss, train_op], {x: a, y: b})[0] for a, b in part]

    p = models.between_graph("mlp", "resource", 2, 1, 0, optimizer="adam")
    with p.graph.as_default():
        saver = tf.train.Saver(sharded=True)
    with training.session(cluster.target(), p.graph) as s:
        s.run(p.init_op)
        losses = steps(s, p, data[:10])
        path = saver.save(s, str(tmp_path / "model"))
    p = models.between_graph("mlp", "resource", 2, 1, 0, optimizer="adam", place=False)
    with p.graph.as_default():
        saver = tf.train.Saver()
    with training.session(reference, p.graph) as s:
        saver.restore(s, path)
        losses += steps(s, p, data[10:])
        s.run(p.init_op)
        want = steps(s, p, data)
    np.testing.assert_allclose(losses, want, rtol=1e-4)


@pytest.mark.parametrize("kind", ["ref", "resource"])
def test_exponential_moving_average(cluster, reference, kind, tmp_path):
    def run(target, place):
        with tf.Graph().as_default() as g, models.variables_of(kind), models.device_of(0, 2, place):
            step = tf.train.get_or_create_global_step()
            v = tf.get_variable("v", initializer=np.arange(4, dtype=np.float32))
            update = [v.assign_add(v * 0.1 + 1.0), step.assign_add(1)]
            ema = tf.train.ExponentialMovingAverage(0.9, num_updates=step)
            apply = ema.apply([v])
            average = ema.average(v)
            restore = ema.variables_to_restore([v])
            saver, averages = tf.train.Saver(), tf.train.Saver(restore)
            init = tf.global_variables_initializer()
        out = []
        with training.session(target, g) as s:
            s.run(init)
            for _ in range(20):
                s.run(update)
                s.run(apply)
                out.append(s.run(average))
            path = saver.save(s, str(tmp_path / ("place%d" % place)))
            averages.restore(s, path)
            np.testing.assert_array_equal(s.run(v), out[-1])
        return out

    np.testing.assert_allclose(run(cluster.target(), True), run(reference, False), rtol=1e-5)


def test_summaries_are_read_back(cluster, graph, tmp_path):
    values = np.linspace(-3, 3, 50).astype(np.float32)
    image = (np.arange(48) * 5).reshape(1, 4, 4, 3).astype(np.uint8)

    def build():
        tf.summary.scalar("loss", tf.constant(1.5) * 2.0)
        tf.summary.histogram("weights", tf.constant(values))
        tf.summary.image("picture", tf.constant(image))
        tf.summary.text("note", tf.constant("hello"))
        return tf.summary.merge_all()

    with tf.device("/job:worker/task:0"):
        merged = build()
    with tf.Graph().as_default() as plain:
        wanted = build()
    with tf.Session(graph=plain) as s:
        want = tf.Summary.FromString(s.run(wanted))
    with training.session(cluster.target(), graph) as s, tf.summary.FileWriter(str(tmp_path), graph) as writer:
        for step in range(3):
            writer.add_summary(s.run(merged), step)
    events = [e for f in glob.glob(str(tmp_path / "events*")) for e in tf.train.summary_iterator(f)]
    steps = [e for e in events if e.HasField("summary")]
    assert [e.step for e in steps] == [0, 1, 2]
    assert any(e.graph_def for e in events)
    got = {v.tag: v for v in steps[0].summary.value}
    for v in want.value:
        if v.tag.startswith("picture"):
            assert (got[v.tag].image.width, got[v.tag].image.height, got[v.tag].image.colorspace) == (4, 4, 3)
            decoded = tf.Session(graph=tf.Graph())
            with decoded.graph.as_default():
                pixels = [decoded.run(tf.image.decode_png(i.image.encoded_image_string)) for i in (got[v.tag], v)]
            np.testing.assert_array_equal(*pixels)
        else:
            assert got[v.tag] == v


def write_records(folder):
    """Three files with 20 images each; the label is the number of the record."""
    files = []
    for i in range(3):
        files.append(str(folder / ("part%d.tfrecord" % i)))
        with tf.python_io.TFRecordWriter(files[-1]) as writer:
            for j in range(20):
                number = i * 20 + j
                feature = {"image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[bytes([number] * 16)])),
                           "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[number])),
                           "weight": tf.train.Feature(float_list=tf.train.FloatList(value=[number / 2, 1]))}
                writer.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())
    return files


@pytest.mark.parametrize("shuffle", [False, True], ids=["batch", "shuffle_batch"])
def test_record_input_pipeline(cluster, graph, tmp_path, shuffle):
    with tf.device("/job:worker/task:0"):
        names = tf.train.string_input_producer(write_records(tmp_path), num_epochs=2, shuffle=shuffle, seed=1)
        key, record = tf.TFRecordReader().read(names)
        parsed = tf.parse_single_example(record, {"image": tf.FixedLenFeature([], tf.string),
                                                  "label": tf.FixedLenFeature([], tf.int64),
                                                  "weight": tf.VarLenFeature(tf.float32),
                                                  "absent": tf.FixedLenFeature([], tf.float32, default_value=-1.0)})
        image = tf.cast(tf.reshape(tf.decode_raw(parsed["image"], tf.uint8), [4, 4]), tf.float32)
        tensors = [image, parsed["label"], tf.sparse_tensor_to_dense(parsed["weight"])[0], parsed["absent"], key]
        if shuffle:
            batch = tf.train.shuffle_batch(tensors, 8, capacity=40, min_after_dequeue=16, num_threads=4, seed=2,
                                           allow_smaller_final_batch=True)
        else:
            batch = tf.train.batch(tensors, 8, num_threads=1, capacity=32, allow_smaller_final_batch=True)
    labels = []
    with training.session(cluster.target(), graph) as s:
        s.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(s, coordinator)
        try:
            while not coordinator.should_stop():
                images, numbers, weights, absent, keys = s.run(batch)
                np.testing.assert_array_equal(images, np.tile(numbers[:, None, None], [1, 4, 4]))
                np.testing.assert_array_equal(weights, numbers / 2)
                np.testing.assert_array_equal(absent, np.full(len(numbers), -1))
                assert all(b"tfrecord:" in k for k in keys)
                labels += list(numbers)
        except tf.errors.OutOfRangeError:
            pass
        coordinator.request_stop()
        coordinator.join(threads, stop_grace_period_secs=20)
    assert sorted(labels) == sorted(list(range(60)) * 2)
    assert (labels == list(range(60)) * 2) == (not shuffle)


def test_other_input_producers(cluster, graph, tmp_path):
    path = tmp_path / "lines.csv"
    path.write_text("".join("%d,%.1f,name%d\n" % (i, i / 2, i) for i in range(10)))
    with tf.device("/job:worker/task:0"):
        files = tf.train.string_input_producer([str(path)], num_epochs=1, shuffle=False)
        _, line = tf.TextLineReader().read(files)
        number, half, name = tf.decode_csv(line, [[0], [0.0], [""]])
        lines = tf.train.batch([number, half, name], 5)
        sliced = tf.train.slice_input_producer([np.arange(6), np.arange(6) * 10], num_epochs=1, shuffle=False)
        pairs = tf.train.batch(sliced, 3)
        ranged = tf.train.range_input_producer(4, num_epochs=1, shuffle=False).dequeue_many(4)
        matched = tf.train.match_filenames_once(str(tmp_path / "*.csv"))
        whole = tf.read_file(matched[0])
    with training.session(cluster.target(), graph) as s:
        s.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(s, coordinator)
        got = [s.run(lines) for _ in range(2)]
        assert [n for g in got for n in g[0]] == list(range(10))
        assert got[1][2][4] == b"name9" and got[1][1][4] == 4.5
        assert [list(p) for p in s.run(pairs)] == [[0, 1, 2], [0, 10, 20]]
        assert list(s.run(ranged)) == [0, 1, 2, 3]
        assert s.run(whole) == path.read_bytes()
        coordinator.request_stop()
        coordinator.join(threads, stop_grace_period_secs=20)
