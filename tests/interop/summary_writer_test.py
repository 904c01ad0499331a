"""The writers of tf.summary in graphs: event files by a Rill task hold what TensorFlow's would."""
import glob
import os

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
import tensorflow.compat.v2 as tf2

import training


@pytest.fixture
def cluster(start_cluster):
    return start_cluster({"worker": 1})


def events_of(folder):
    """Everything but the time, in the order of the files."""
    found = []
    for path in sorted(glob.glob(os.path.join(str(folder), "events.out.tfevents.*"))):
        events = list(tf.train.summary_iterator(path))
        assert events[0].file_version == "brain.Event:2"
        assert all(e.wall_time > 1e9 for e in events)
        found += events[1:]
    return found


def run_both(cluster, tmp_path, build):
    """build(folder) -> lists of fetches to run in turn; returns the events of Rill and of TensorFlow."""
    for name, target in (("rill", cluster.target()), ("tf", "")):
        with tf.Graph().as_default() as g:
            with tf.device("/job:worker/task:0" if target else None):
                turns = build(str(tmp_path / name))
            with training.session(target, g) as s:
                for fetches in turns:
                    s.run(fetches)
    return events_of(tmp_path / "rill"), events_of(tmp_path / "tf")


def assert_same(got, want):
    assert len(got) == len(want) > 0
    for a, b in zip(got, want):
        a.wall_time = b.wall_time = 0
        assert a.step == b.step and a.WhichOneof("what") == b.WhichOneof("what")
        for x, y in zip(a.summary.value, b.summary.value):
            if y.HasField("tensor"):  # the same values, perhaps written another way
                np.testing.assert_array_equal(tf.make_ndarray(x.tensor), tf.make_ndarray(y.tensor))
                x.ClearField("tensor")
                y.ClearField("tensor")
            if y.HasField("image"):
                with tf.Graph().as_default(), tf.Session() as s:
                    np.testing.assert_array_equal(*s.run([tf.image.decode_png(v.image.encoded_image_string) for v in (x, y)]))
                x.image.encoded_image_string = y.image.encoded_image_string = b""
        assert a == b


def test_every_kind_of_summary(cluster, tmp_path):
    rng = np.random.RandomState(0)

    def build(folder):
        ops = tf.raw_ops
        writer = ops.SummaryWriter(shared_name="kinds")
        create = ops.CreateSummaryFileWriter(writer=writer, logdir=folder, max_queue=10, flush_millis=100000, filename_suffix=".v2")
        summary = tf.Summary(value=[tf.Summary.Value(tag="raw", simple_value=2.0)]).SerializeToString()
        event = tf.Event(wall_time=5e9, step=77, summary=tf.Summary(value=[tf.Summary.Value(tag="imported", simple_value=1.0)]))
        metadata = tf.SummaryMetadata(display_name="d", plugin_data=tf.SummaryMetadata.PluginData(plugin_name="scalars")).SerializeToString()
        writes = [
            ops.WriteScalarSummary(writer=writer, step=1, tag="scalar", value=1.5),
            ops.WriteScalarSummary(writer=writer, step=2, tag="whole", value=tf.constant(7, tf.int64)),
            ops.WriteHistogramSummary(writer=writer, step=3, tag="histogram", values=rng.randn(100)),
            ops.WriteImageSummary(writer=writer, step=4, tag="image", tensor=tf.constant(rng.rand(2, 4, 5, 3), tf.float32),
                                  bad_color=tf.constant([255, 0, 0, 255], tf.uint8), max_images=2),
            ops.WriteAudioSummary(writer=writer, step=5, tag="audio", tensor=tf.constant(rng.rand(1, 50, 2), tf.float32), sample_rate=8000.0),
            ops.WriteSummary(writer=writer, step=6, tensor=tf.constant(rng.rand(3, 2)), tag="tensor", summary_metadata=metadata),
            ops.WriteSummary(writer=writer, step=7, tensor=tf.constant(["some", "text"]), tag="text", summary_metadata=""),
            ops.WriteRawProtoSummary(writer=writer, step=8, tensor=summary),
            ops.WriteGraphSummary(writer=writer, step=9, tensor=tf.GraphDef(node=[tf.NodeDef(name="a", op="NoOp")]).SerializeToString()),
            ops.ImportEvent(writer=writer, event=event.SerializeToString()),
        ]
        rng.seed(0)
        return [create, *writes, ops.FlushSummaryWriter(writer=writer), ops.CloseSummaryWriter(writer=writer)]

    rng.seed(0)
    got, want = run_both(cluster, tmp_path, build)
    assert_same(got, want)
    assert len(got) == 10 and os.listdir(tmp_path / "rill")[0].endswith(".v2")


def test_tf_summary_in_a_graph(cluster, tmp_path):
    """As a program writes it: a writer made default, steps from a variable, recorded every other time."""
    def build(folder):
        step = tf.Variable(0, dtype=tf.int64, use_resource=True)
        writer = tf2.summary.create_file_writer(folder, flush_millis=1000000, max_queue=1000)
        with writer.as_default(), tf2.summary.record_if(tf.equal(step % 2, 0)):
            tf2.summary.write("loss", tf.cast(step, tf.float32) / 4, step=step.read_value())
        written = tf.summary.all_v2_summary_ops()
        add = step.assign_add(1)
        turns = [tf.global_variables_initializer(), writer.init()]
        for _ in range(6):
            turns += [written, add]
        return turns + [writer.close()]

    got, want = run_both(cluster, tmp_path, build)
    assert_same(got, want)
    assert [e.step for e in got] == [0, 2, 4]


def test_events_reach_the_file_when_the_task_ends(cluster, tmp_path):
    ops = tf.raw_ops
    with tf.Graph().as_default() as g, tf.device("/job:worker/task:0"):
        writer = ops.SummaryWriter(shared_name="w")
        create = ops.CreateSummaryFileWriter(writer=writer, logdir=str(tmp_path / "a"), max_queue=1000, flush_millis=1000000,
                                             filename_suffix="")
        write = ops.WriteScalarSummary(writer=writer, step=3, tag="x", value=1.0)
        many = tf.group(*[ops.WriteScalarSummary(writer=writer, step=i, tag="y", value=1.0) for i in range(50)])
        with training.session(cluster.target(), g) as s:
            with pytest.raises(tf.errors.NotFoundError):
                s.run(write)
            s.run(create)
            s.run(create)  # again: the same file goes on
            s.run(write)
            s.run(many)
            with pytest.raises(tf.errors.InvalidArgumentError):
                s.run(ops.WriteHistogramSummary(writer=writer, step=0, tag="nan", values=[np.nan]))
    assert cluster.task("worker").stop() == 0
    assert len(os.listdir(tmp_path / "a")) == 1 and len(events_of(tmp_path / "a")) == 51


@pytest.mark.parametrize("compression", ["", "GZIP", "ZLIB"])
def test_records_written_by_rill(cluster, tmp_path, compression):
    records = [b"record %d" % i * (i + 1) for i in range(300)]
    path = str(tmp_path / "out.tfrecord")
    with tf.Graph().as_default() as g, tf.device("/job:worker/task:0"):
        dataset = tf.data.Dataset.from_tensor_slices(tf.constant(records))
        write = tf.raw_ops.DatasetToTFRecord(input_dataset=dataset._variant_tensor, filename=path, compression_type=compression)
        with training.session(cluster.target(), g) as s:
            s.run(write)
    kinds = {"": tf.io.TFRecordCompressionType.NONE, "GZIP": tf.io.TFRecordCompressionType.GZIP, "ZLIB": tf.io.TFRecordCompressionType.ZLIB}
    assert list(tf.io.tf_record_iterator(path, tf.io.TFRecordOptions(kinds[compression]))) == records
