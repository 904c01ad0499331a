"""rill events: event files by TensorFlow 1's FileWriter, TensorFlow 2's tf.summary, and Rill's own ops."""
import glob
import os

import numpy as np
import pytest
import tensorflow as tf

tf1 = tf.compat.v1


@pytest.fixture
def old_events(tmp_path):
    """By the FileWriter of TensorFlow 1."""
    with tf.Graph().as_default() as g, tf1.Session() as s:
        x = tf1.placeholder(tf.float32, [])
        tf1.summary.scalar("loss", x)
        tf1.summary.histogram("weights", tf.range(10.0) * x)
        tf1.summary.image("picture", tf.zeros([1, 4, 6, 3]))
        tf1.summary.text("note", tf.constant("hello"))
        merged = tf1.summary.merge_all()
        with tf1.summary.FileWriter(str(tmp_path / "old"), g) as w:
            for step in range(5):
                w.add_summary(s.run(merged, {x: 1 / (step + 1)}), step * 10)
    return tmp_path / "old"


def shown_by(plugin):
    """What tf.summary.scalar and its kin say of a tag; they themselves need TensorBoard."""
    return tf1.SummaryMetadata(plugin_data=tf1.SummaryMetadata.PluginData(plugin_name=plugin))


@pytest.fixture
def new_events(tmp_path):
    """By tf.summary of TensorFlow 2, in two runs below one folder."""
    png = tf.io.encode_png(tf.zeros([5, 7, 1], tf.uint8))
    buckets = tf.constant([[0, 50, 50], [50, 99, 50], [99, 99, 0]], tf.float64)
    for run in ("train", "eval"):
        with tf.summary.create_file_writer(str(tmp_path / "new" / run)).as_default():
            for step in range(3):
                tf.summary.write("accuracy", 0.5 + step / 10, step, shown_by("scalars"))
                tf.summary.write("tensor", tf.zeros([2, 3]), step)
                tf.summary.write("words", ["a", "b"], step, shown_by("text"))
                tf.summary.write("h", buckets, step, shown_by("histograms"))
                tf.summary.write("i", tf.stack(["7", "5", png, png]), step, shown_by("images"))
    return tmp_path / "new"


def test_old_events(rill, old_events):
    run, = rill("events", old_events, "--json").json["runs"]
    assert run["run"] == str(old_events) and run["graphs"] >= 1
    loss = run["tags"]["loss"]
    assert loss["kind"] == "scalar" and [p["step"] for p in loss["points"]] == [0, 10, 20, 30, 40]
    np.testing.assert_array_equal(np.float32([p["value"] for p in loss["points"]]), np.float32([1 / (i + 1) for i in range(5)]))
    assert run["first_time"] <= loss["points"][0]["wall_time"] <= run["last_time"]
    weights = run["tags"]["weights"]
    assert weights["kind"] == "histogram" and weights["points"][0]["count"] == 10 and weights["points"][0]["max"] == 9
    assert weights["points"][0]["mean"] == pytest.approx(4.5)
    picture = run["tags"]["picture/image/0"]["points"][0]
    assert (picture["width"], picture["height"]) == (6, 4) and picture["bytes"] > 0
    assert run["tags"]["note"] == {"kind": "text", "points": run["tags"]["note"]["points"]} and run["tags"]["note"]["points"][0]["text"] == "hello"
    text = rill("events", old_events).out
    assert "loss" in text and "steps 0..40" in text and "last 0.2" in text
    text = rill("events", glob.glob(str(old_events / "*"))[0], "--tag", "loss").out
    assert text.count("step ") == 5 and "weights" not in text


def test_new_events(rill, new_events):
    runs = {os.path.basename(r["run"]): r for r in rill("events", new_events, "--json").json["runs"]}
    assert set(runs) == {"train", "eval"}
    tags = runs["train"]["tags"]
    assert {t: v["kind"] for t, v in tags.items()} == {"accuracy": "scalar", "tensor": "tensor", "words": "text", "h": "histogram",
                                                       "i": "image"}
    np.testing.assert_allclose([p["value"] for p in tags["accuracy"]["points"]], [0.5, 0.6, 0.7], rtol=1e-6)
    assert tags["tensor"]["points"][0]["text"] == "float[2,3]" and tags["words"]["points"][2]["text"] == "a\nb"
    assert tags["h"]["points"][1]["count"] == 100 and tags["h"]["points"][1]["min"] == 0 and tags["h"]["points"][1]["max"] == 99
    point = tags["i"]["points"][0]
    assert (point["width"], point["height"], point["items"]) == (7, 5, 2)
    assert "2 runs" not in rill("events", new_events, "--tag", "accuracy").out


def test_unfinished_and_damaged_files(rill, old_events, tmp_path):
    path, = glob.glob(str(old_events / "*"))
    whole = open(path, "rb").read()
    (tmp_path / "live.tfevents").write_bytes(whole[:-7])
    result = rill("events", tmp_path / "live.tfevents", "--json")
    assert len(result.json["runs"][0]["tags"]["loss"]["points"]) == 4 and "still written" in result.err
    (tmp_path / "live.tfevents").write_bytes(whole + whole[:5])  # within the length of a record
    assert "still written" in rill("events", tmp_path / "live.tfevents", "--json").err
    (tmp_path / "live.tfevents").write_bytes(whole[:len(whole) // 2] + b"\0\0\0" + whole[len(whole) // 2 + 3:])
    assert "live.tfevents" in rill("events", tmp_path / "live.tfevents", code=1).err
    rill("events", tmp_path / "no_such", code=1)
    (tmp_path / "none").mkdir()
    assert "no event files" in rill("events", tmp_path / "none", code=1).err
    rill("events", code=2)
    assert "usage: rill events" in rill("events", "--help").out
