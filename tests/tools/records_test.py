"""rill records: TFRecord files that TensorFlow wrote, plain and compressed, whole and damaged."""
import json

import numpy as np
import pytest
import tensorflow as tf


def example(i):
    features = {"id": tf.train.Feature(int64_list=tf.train.Int64List(value=[i, -2**63])),
                "weights": tf.train.Feature(float_list=tf.train.FloatList(value=np.arange(i, dtype=np.float32) / 3)),
                "name": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"n%d" % i, b"\xff\x00"])),
                "nothing": tf.train.Feature()}
    if i % 2:
        features["odd"] = tf.train.Feature(int64_list=tf.train.Int64List(value=[1]))
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()


def write(path, records, compression=""):
    with tf.io.TFRecordWriter(str(path), compression) as w:
        for r in records:
            w.write(r)
    return path


@pytest.fixture(params=["", "GZIP", "ZLIB"], ids=["plain", "gzip", "zlib"])
def examples(request, tmp_path):
    return write(tmp_path / "examples.tfrecord", [example(i) for i in range(7)], request.param), request.param


def test_examples(rill, examples):
    path, compression = examples
    listed = rill("records", "ls", path, "--json").json["files"][0]
    assert listed["records"] == 7 and listed["examples"] == 7 and listed["compression"] == (compression.lower() or "none")
    assert listed["bytes"] == sum(len(example(i)) for i in range(7))
    assert listed["features"]["weights"] == {"type": "float", "records": 7, "least_values": 0, "most_values": 6}
    assert listed["features"]["odd"]["records"] == 3 and listed["features"]["nothing"]["type"] == "none"
    text = rill("records", "ls", path).out
    assert "7 records" in text and "7 tf.train.Example" in text and "0 to 6 values" in text
    lines = [json.loads(line) for line in rill("records", "cat", path, "--json").out.splitlines()]
    assert [r["index"] for r in lines] == list(range(7)) and lines[0]["offset"] == 0
    for i, r in enumerate(lines):
        assert r["example"]["id"] == {"type": "int64", "values": [i, -2**63]}
        assert r["example"]["name"]["values"] == ["n%d" % i, {"b64": "/wA="}]
        np.testing.assert_array_equal(np.float32(r["example"]["weights"]["values"]), np.arange(i, dtype=np.float32) / 3)
    text = rill("records", "cat", path, "--skip", "2", "--limit", "2").out
    assert text.count("record ") == 2 and "  id: int64 2 -9223372036854775808" in text and "  id: int64 3 " in text
    assert rill("records", "count", path).out.split()[0] == "7"
    assert rill("records", "verify", path).out.startswith("OK")


def test_other_records(rill, tmp_path):
    lists = {"tokens": tf.train.FeatureList(feature=[tf.train.Feature(int64_list=tf.train.Int64List(value=[i])) for i in range(3)])}
    sequence = tf.train.SequenceExample(feature_lists=tf.train.FeatureLists(feature_list=lists))
    sequence.context.feature["length"].int64_list.value.append(3)
    path = write(tmp_path / "mixed", [b"", b"plain text", b"\x00\xff", sequence.SerializeToString()])
    lines = [json.loads(line) for line in rill("records", "cat", path, "--json").out.splitlines()]
    assert [r.get("data") for r in lines[:3]] == ["", "plain text", {"b64": "AP8="}]
    assert lines[3]["sequence_example"]["context"] == {"length": {"type": "int64", "values": [3]}}
    assert [f["values"] for f in lines[3]["sequence_example"]["feature_lists"]["tokens"]] == [[0], [1], [2]]
    text = rill("records", "cat", path).out
    assert '"plain text"' in text and "tokens: sequence" in text and "2: int64 2" in text
    listed = rill("records", "ls", path, "--json").json["files"][0]
    assert listed["sequence_examples"] == 1 and listed["features"]["tokens"]["type"] == "sequence"
    empty = write(tmp_path / "empty", [])
    assert rill("records", "count", empty, path, "--json").json["files"] == [{"file": str(empty), "records": 0}, {"file": str(path), "records": 4}]


@pytest.mark.parametrize("compression", ["", "GZIP", "ZLIB"])
def test_damage_is_found(rill, tmp_path, compression):
    good = write(tmp_path / "good", [b"x" * 100] * 50, compression)
    whole = good.read_bytes()
    bad = tmp_path / "bad"
    for at in (len(whole) // 3, len(whole) // 2):
        bad.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1:])
        found = rill("records", "verify", good, bad, "--json", code=1).json["files"]
        assert [f["ok"] for f in found] == [True, False] and "bad" in found[1]["problem"]
        assert "BROKEN" in rill("records", "verify", bad, code=1).out
        rill("records", "count", bad, code=1)
        bad.write_bytes(whole[:at + 1])
        assert not rill("records", "verify", bad, "--json", code=1).json["files"][0]["ok"]
    if not compression:
        bad.write_bytes(whole[:16 * 3 + 300 + 16 + 50])
        found = rill("records", "verify", bad, "--json", code=1).json["files"][0]
        assert found["records"] == 3 and "truncated record at 348" in found["problem"]
    rill("records", "verify", tmp_path / "no_such", code=1)


def test_usage(rill, tmp_path):
    rill("records", code=2)
    rill("records", "ls", code=2)
    rill("records", "ls", tmp_path, "--nope", code=2)
    path = write(tmp_path / "z", [b"abc"], "GZIP")
    assert "abc" in rill("records", "cat", path, "--compression", "gzip").out
    rill("records", "cat", path, "--compression", "none", code=1)
    rill("records", "cat", path, "--compression", "what", code=1)
    for command in ("ls", "cat", "count", "verify"):
        assert "usage: rill records" in rill("records", command, "--help").out
