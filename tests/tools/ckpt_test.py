"""rill ckpt: on checkpoints that TensorFlow wrote, whole and damaged."""
import glob
import os

import numpy as np
import pytest
import tensorflow as tf

tf1 = tf.compat.v1


def write(prefix, values, slices=None):
    """Saves by TensorFlow's op; values: {name: array}."""
    names = list(values)
    tf.raw_ops.SaveV2(prefix=str(prefix), tensor_names=names, shape_and_slices=slices or [""] * len(names),
                      tensors=[tf.constant(v) for v in values.values()])
    return prefix


VALUES = {"w": np.arange(6, dtype=np.float32).reshape(2, 3) / 10, "step": np.int64(2**62 + 1), "names": np.array([b"a", b"\xff"], object),
          "half": np.float16([0.1, np.inf]), "z": np.complex64([1 - 2j]), "flags": np.array([True, False]), "u": np.uint64([2**64 - 1]),
          "b16": tf.constant([0.1], tf.bfloat16).numpy(), "empty": np.zeros([0, 4], np.float64)}


@pytest.fixture
def checkpoint(tmp_path):
    return write(tmp_path / "ck", VALUES)


@pytest.fixture
def partitioned(tmp_path):
    (tmp_path / "parts").mkdir()
    with tf.Graph().as_default(), tf1.Session() as s:
        tf1.get_variable("v", [10, 4], initializer=tf1.random_uniform_initializer(), partitioner=tf1.fixed_size_partitioner(3))
        tf1.get_variable("w", initializer=1.5)
        s.run(tf1.global_variables_initializer())
        return tf1.train.Saver(sharded=True).save(s, str(tmp_path / "parts" / "model"), global_step=3)


def test_ls(rill, checkpoint, partitioned):
    listed = rill("ckpt", "ls", checkpoint, "--json").json
    assert {t["name"]: (tf.as_dtype(t["dtype"]), t["shape"]) for t in listed["tensors"]} == {
        k: (tf.string if v.dtype == object else tf.as_dtype(v.dtype), list(v.shape)) for k, v in VALUES.items()}
    text = rill("ckpt", "ls", checkpoint).out
    assert "float[2,3]" in text and "9 tensors" in text
    listed = rill("ckpt", "ls", os.path.dirname(partitioned), "--json").json  # the latest of the folder
    assert [(t["name"], t["shape"], t["parts"]) for t in listed["tensors"]] == [("v", [10, 4], 3), ("w", [], 0)]
    for given in (partitioned + ".index", partitioned + ".meta", glob.glob(partitioned + ".data-*")[0]):
        assert rill("ckpt", "ls", given, "--json").json == listed


def test_cat(rill, checkpoint, partitioned, tmp_path):
    def value(name):
        return rill("ckpt", "cat", checkpoint, name, "--json").json["value"]

    assert value("step") == 2**62 + 1 and value("u") == [2**64 - 1]
    np.testing.assert_array_equal(np.float32(value("w")), VALUES["w"])
    assert value("half") == [pytest.approx(0.1, abs=1e-4), "Infinity"]
    assert value("names") == ["a", {"b64": "/w=="}] and value("flags") == [True, False] and value("z") == ["1-2j"] and value("empty") == []
    assert np.float32(value("b16")) == np.float32(VALUES["b16"])
    assert rill("ckpt", "cat", checkpoint, "w").out == "w  float[2,3]\n[[0 0.1 0.2]\n [0.3 0.4 0.5]]\n"
    rill("ckpt", "cat", partitioned, "v", "--out", tmp_path / "v.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "v.npy"), tf.train.load_checkpoint(partitioned).get_tensor("v"))
    assert "nope not found" in rill("ckpt", "cat", checkpoint, "nope", code=1).err
    assert "no_such" in rill("ckpt", "cat", tmp_path / "no_such", "w", code=1).err
    rill("ckpt", "cat", checkpoint, code=2)


def test_diff(rill, checkpoint, tmp_path):
    same = write(tmp_path / "same", VALUES)
    assert "9 tensors the same, 0 not" in rill("ckpt", "diff", checkpoint, same).out
    changed = dict(VALUES, w=VALUES["w"] + np.float32([0, 0, 0.5]), step=VALUES["step"] + 1, flags=np.array([1, 0], np.int8),
                   empty=np.zeros([0, 5]), names=np.array([b"a", b"b"], object), half=np.float16([np.nan, np.inf]), new=np.float32(1))
    del changed["u"]
    other = write(tmp_path / "other", changed)
    found = rill("ckpt", "diff", checkpoint, other, "--json", code=1).json
    assert found["only_in_a"] == ["u"] and found["only_in_b"] == ["new"] and found["same"] == 2
    by_name = {d["name"]: d for d in found["different"]}
    assert by_name["w"] == {"name": "w", "what": "values", "differing": 2, "elements": 6, "index": by_name["w"]["index"],
                            "max_abs_diff": pytest.approx(0.5)}
    assert by_name["step"]["max_abs_diff"] == 1 and by_name["flags"]["what"] == "dtype" and by_name["empty"]["what"] == "shape"
    assert by_name["names"]["differing"] == 1 and by_name["half"]["max_abs_diff"] == "NaN"
    text = rill("ckpt", "diff", checkpoint, other, code=1).out
    assert "< u" in text and "> new" in text and "! w  2 of 6 elements, at most 0.5" in text
    near = write(tmp_path / "near", dict(VALUES, w=VALUES["w"] * np.float32(1.0001)))
    rill("ckpt", "diff", checkpoint, near, code=1)
    rill("ckpt", "diff", checkpoint, near, "--rtol", "1e-3")
    rill("ckpt", "diff", checkpoint, near, "--atol", "1e-2")
    rill("ckpt", "diff", checkpoint, near, "--atol", "x", code=2)
    nan = write(tmp_path / "nan", {"x": np.float32([np.nan])})
    rill("ckpt", "diff", nan, nan)
    rill("ckpt", "diff", checkpoint, tmp_path / "none", code=1)


def damage(path, at):
    with open(path, "r+b") as f:
        f.seek(at)
        byte = f.read(1)[0]
        f.seek(at)
        f.write(bytes([byte ^ 0x20]))


def test_verify_names_the_broken_tensor(rill, tmp_path):
    prefix = write(tmp_path / "ck", {"first": np.zeros(100, np.float32), "second": np.ones(100, np.float32), "text": np.array([b"abc"], object)})
    data = str(prefix) + ".data-00000-of-00001"
    assert rill("ckpt", "verify", prefix).out.startswith("OK")
    damage(data, 600)
    found = rill("ckpt", "verify", prefix, "--json", code=1).json["checkpoints"][0]
    assert not found["ok"] and len(found["problems"]) == 1 and "Tensor second" in found["problems"][0]
    damage(data, 10)
    text = rill("ckpt", "verify", prefix, code=1).out
    assert text.startswith("BROKEN") and "Tensor first" in text and "Tensor second" in text and "Tensor text" not in text
    whole = open(data, "rb").read()
    with open(data, "wb") as f:
        f.write(whole[:-1])
    assert "Tensor text" in rill("ckpt", "verify", prefix, code=1).out
    os.remove(data)
    assert "data-00000-of-00001" in rill("ckpt", "verify", prefix, code=1).out
    size = os.path.getsize(str(prefix) + ".index")
    for at in (3, size // 2, size - 4):
        damage(str(prefix) + ".index", at)
        assert "ck.index" in rill("ckpt", "verify", prefix, code=1).out
        damage(str(prefix) + ".index", at)


def test_verify_a_folder(rill, tmp_path, partitioned):
    folder = tmp_path / "many"
    with tf.Graph().as_default(), tf1.Session() as s:
        tf1.get_variable("v", initializer=np.zeros(1000, np.float32))
        s.run(tf1.global_variables_initializer())
        saver = tf1.train.Saver()
        paths = [saver.save(s, str(folder / "model"), global_step=i) for i in range(3)]
    assert rill("ckpt", "verify", folder).out.count("OK /") == 3
    damage(paths[2] + ".data-00000-of-00001", 100)
    (folder / "model-1.data-00000-of-00001.tempstate123").write_text("half")
    result = rill("ckpt", "verify", folder, code=1).out
    assert result.count("OK /") == 2 and "the newest that is whole: %s" % paths[1] in result and "tempstate123" in result
    assert rill("ckpt", "verify", folder, "--json", code=1).json["newest_ok"] == paths[1]
    assert rill("ckpt", "verify", partitioned, "--json").json["checkpoints"][0]["tensors"] == 2
    os.remove(glob.glob(partitioned + ".data-*")[0])
    assert "Tensor v" in rill("ckpt", "verify", partitioned, code=1).out
    assert "no_such" in rill("ckpt", "verify", tmp_path / "no_such", code=1).out


def test_objects_of_tensorflow_2(rill, tmp_path):
    saved = tf.train.Checkpoint(model=tf.Variable(np.float32([1, 2])), step=tf.Variable(7, dtype=tf.int64)).save(str(tmp_path / "ck"))
    listed = rill("ckpt", "ls", tmp_path, "--json").json
    assert "model/.ATTRIBUTES/VARIABLE_VALUE" in [t["name"] for t in listed["tensors"]]
    assert rill("ckpt", "cat", saved, "step/.ATTRIBUTES/VARIABLE_VALUE", "--json").json["value"] == 7
    rill("ckpt", "verify", tmp_path)


def test_help(rill):
    for command in (["ckpt"], ["ckpt", "ls"], ["ckpt", "cat"], ["ckpt", "diff"], ["ckpt", "verify"]):
        assert "usage: rill ckpt" in rill(*command, "--help").out
    rill("ckpt", code=2)


def test_the_first_format_is_read_too(rill, tmp_path):
    path = str(tmp_path / "old")
    kinds = {k: v for k, v in VALUES.items() if k not in ("u", "b16")}
    names, values = list(kinds) + ["v", "v"], [tf.constant(v) for v in kinds.values()] + [tf.ones([2, 4]), tf.zeros([3, 4])]
    specs = [""] * len(kinds) + ["5 4 0,2:-", "5 4 2,3:-"]
    tf.raw_ops.SaveSlices(filename=path, tensor_names=names, shapes_and_slices=specs, data=values)
    listed = {t["name"]: t for t in rill("ckpt", "ls", path, "--json").json["tensors"]}
    assert {k: (t["shape"], t["parts"]) for k, t in listed.items()} == {**{k: (list(v.shape), 0) for k, v in kinds.items()}, "v": ([5, 4], 2)}
    assert rill("ckpt", "cat", path, "step", "--json").json["value"] == 2**62 + 1
    assert rill("ckpt", "cat", path, "v", "--json").json["value"] == [[1.0] * 4] * 2 + [[0.0] * 4] * 3
    assert rill("ckpt", "verify", path).code == 0
    write(tmp_path / "new", kinds)
    assert rill("ckpt", "diff", path, tmp_path / "new", "--json", code=1).json["only_in_a"] == ["v"]
    data = bytearray(open(path, "rb").read())
    data[len(data) // 2] ^= 1
    open(path, "wb").write(data)
    assert "checksum" in rill("ckpt", "verify", path, code=1).out
