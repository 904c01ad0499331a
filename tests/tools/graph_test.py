"""rill graph: SavedModels of both generations, MetaGraphs and GraphDefs, written by TensorFlow, run by Rill alone."""
import json
import os
import shutil

import numpy as np
import pytest
import tensorflow as tf
from google.protobuf import text_format
from tensorflow.core.framework import graph_pb2
from tensorflow.core.protobuf import meta_graph_pb2, saved_model_pb2

from cluster_process import Cluster

tf1 = tf.compat.v1


def text_table(path):
    whole, number = tf.lookup.TextFileIndex.WHOLE_LINE, tf.lookup.TextFileIndex.LINE_NUMBER
    return tf.lookup.StaticHashTable(tf.lookup.TextFileInitializer(path, tf.string, whole, tf.int64, number), -1)


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory):
    path = tmp_path_factory.mktemp("vocabulary") / "vocabulary.txt"
    path.write_text("red\ngreen\nblue\n")
    return str(path)


@pytest.fixture(scope="module")
def old_model(tmp_path_factory, vocabulary):
    """A SavedModel by the builder of TensorFlow 1 with two MetaGraphs, a table filled from an asset, ref and resource variables;
    and the .meta, checkpoint and GraphDef of the same graph."""
    folder = tmp_path_factory.mktemp("old")
    with tf.Graph().as_default() as g:
        x = tf1.placeholder(tf.float32, [None, 3], name="x")
        words = tf1.placeholder(tf.string, [None], name="words")
        w = tf1.get_variable("w", initializer=np.arange(6, dtype=np.float32).reshape(3, 2), use_resource=False)
        b = tf1.get_variable("b", initializer=np.float32([10, 20]), use_resource=True)
        asset = tf.constant(vocabulary)
        tf1.add_to_collection(tf1.GraphKeys.ASSET_FILEPATHS, asset)
        ids = text_table(asset).lookup(words)
        y = tf.add(tf.matmul(x, w), b, name="y")
        signature = tf1.saved_model.predict_signature_def({"x": x, "words": words}, {"y": y, "ids": ids})
        only_y = tf1.saved_model.predict_signature_def({"x": x}, {"y": y})
        with tf1.Session() as s:
            s.run([tf1.global_variables_initializer(), tf1.tables_initializer()])
            tf1.train.Saver().save(s, str(folder / "ck" / "model"), global_step=5)
            builder = tf1.saved_model.Builder(str(folder / "saved"))
            builder.add_meta_graph_and_variables(s, ["serve"], {"serving_default": signature, "only_y": only_y},
                                                 main_op=tf1.tables_initializer(),
                                                 assets_collection=tf1.get_collection(tf1.GraphKeys.ASSET_FILEPATHS))
            builder.add_meta_graph(["serve", "small"], {"only_y": only_y})
            builder.save()
        (folder / "graph.pb").write_bytes(g.as_graph_def().SerializeToString())
        frozen = tf1.graph_util.convert_variables_to_constants
        with tf1.Session() as s:
            s.run(tf1.global_variables_initializer())
            (folder / "frozen.pb").write_bytes(frozen(s, g.as_graph_def(), ["y"]).SerializeToString())
    return folder


class Model(tf.Module):
    def __init__(self, vocabulary):
        super().__init__()
        self.v = tf.Variable(np.arange(6, dtype=np.float32).reshape(3, 2))
        self.calls = tf.Variable(0, dtype=tf.int64)
        self.table = text_table(vocabulary)
        self.names = tf.Variable([b"one", b"two"])

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32, name="x")])
    def score(self, x):
        self.calls.assign_add(1)
        total = tf.constant(0.0)
        for i in tf.range(4):
            if i != 2:
                total += tf.cast(i, tf.float32)
        return {"y": tf.nn.softmax(tf.matmul(x, self.v) * 0.1 + total), "calls": self.calls.read_value()}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="words")])
    def lookup(self, words):
        return {"ids": self.table.lookup(words), "names": self.names.read_value()}


@pytest.fixture(scope="module")
def new_model(tmp_path_factory, vocabulary):
    folder = str(tmp_path_factory.mktemp("new") / "saved")
    model = Model(vocabulary)
    tf.saved_model.save(model, folder, signatures={"serving_default": model.score, "lookup": model.lookup})
    return folder


def outputs(result):
    return {k: np.array(v["value"]) for k, v in result.json["outputs"].items()}


def wanted(model, signature, **inputs):
    call = tf.saved_model.load(model).signatures[signature]
    return {k: v.numpy() for k, v in call(**{k: tf.constant(v) for k, v in inputs.items()}).items()}


X = [[1.0, 2.0, 3.0], [0.5, -1.0, 0.25]]


def test_saved_model_of_tensorflow_1(rill, old_model):
    got = outputs(rill("graph", "run", old_model / "saved", "--tags", "serve", "--input", "x=%s" % X, "--input", 'words=["blue", nothing]',
                       "--json"))
    np.testing.assert_allclose(got["y"], np.array(X) @ np.arange(6).reshape(3, 2) + [10, 20])
    assert list(got["ids"]) == [2, -1]
    text = rill("graph", "run", old_model / "saved", "--tags", "serve,small", "--input", "x=[[1, 1, 1]]").out
    assert "y  float[1,2]" in text and "[[16 29]]" in text
    moved = str(old_model / "moved")
    shutil.copytree(old_model / "saved", moved)
    got = outputs(rill("graph", "run", moved, "--input", "x=[[0,0,0]]", "--input", "words=[green]", "--json"))
    assert list(got["ids"]) == [1], "the asset is looked for where the model is"


def test_simple_save_and_init_ops_of_old(rill, tmp_path):
    """simple_save with an init op in the collection that came before saved_model_main_op; a ref variable not restored."""
    with tf.Graph().as_default(), tf1.Session() as s:
        x = tf1.placeholder(tf.float32, [None], name="x")
        w = tf1.get_variable("w", initializer=3.0, use_resource=False)
        local = tf1.get_variable("local", initializer=7.0, collections=[tf1.GraphKeys.LOCAL_VARIABLES], use_resource=False)
        s.run([tf1.global_variables_initializer(), tf1.local_variables_initializer()])
        tf1.saved_model.simple_save(s, str(tmp_path / "simple"), {"x": x}, {"y": x * w + local},
                                    legacy_init_op=tf1.local_variables_initializer())
    got = outputs(rill("graph", "run", tmp_path / "simple", "--input", "x=[1, 2]", "--json"))
    assert list(got["y"]) == [10, 13]


def test_ragged_inputs(rill, tmp_path):
    class Sums(tf.Module):
        @tf.function(input_signature=[tf.RaggedTensorSpec([None, None], tf.float32)])
        def sums(self, rows):
            return {"sums": tf.reduce_sum(rows, 1)}

    model = Sums()
    tf.saved_model.save(model, str(tmp_path / "ragged"), signatures={"serving_default": model.sums})
    got = outputs(rill("graph", "run", tmp_path / "ragged", "--input", "rows=[1, 2, 4]", "--input", "rows_1=[0, 1, 3]", "--json"))
    assert list(got["sums"]) == [1, 6]


def test_wrong_tags_signatures_and_inputs_are_named(rill, old_model):
    model = old_model / "saved"
    assert "{ serve }, { serve,small }" in rill("graph", "run", model, "--tags", "gpu", code=1).err
    assert "serving_default" in rill("graph", "run", model, "--signature", "nope", code=1).err
    assert "input 'words', string[?], is missing" in rill("graph", "run", model, "--input", "x=[[1,2,3]]", code=1).err
    assert "its shape is [1,2], the graph wants [?,3]" in rill("graph", "run", model, "--input", "x=[[1,2]]", code=1).err
    assert "'one' is no float" in rill("graph", "run", model, "--input", "x=[[one,2,3]]", code=1).err
    assert "no node 'z'" in rill("graph", "run", model, "--input", "z=1", code=1).err
    assert "saved_model.pb" in rill("graph", "run", old_model, code=1).err
    assert "nothing_here" in rill("graph", "run", "nothing_here", code=1).err
    rill("graph", "run", code=2)
    rill("graph", "run", model, "--nope", code=2)
    rill("graph", "nope", code=2)


@pytest.mark.parametrize("signature,inputs", [("serving_default", {"x": X}), ("lookup", {"words": ["blue", "black"]})])
def test_saved_model_of_tensorflow_2(rill, new_model, signature, inputs):
    flags = [f for k, v in inputs.items() for f in ("--input", "%s=%s" % (k, json.dumps(v)))]
    got = outputs(rill("graph", "run", new_model, "--signature", signature, *flags, "--json"))
    want = wanted(new_model, signature, **inputs)
    assert set(got) == set(want)
    for key, value in want.items():
        if value.dtype == object:
            assert [s.decode() for s in value] == list(got[key])
        else:
            np.testing.assert_allclose(got[key], value, rtol=1e-6, err_msg=key)


def test_keras_model(rill, tmp_path):
    layers = tf.keras.layers
    tf.keras.utils.set_random_seed(3)
    model = tf.keras.Sequential([layers.Input([12, 12, 1]), layers.Conv2D(4, 3, activation="relu"), layers.BatchNormalization(),
                                 layers.MaxPool2D(), layers.Flatten(), layers.Dense(16, activation="gelu"), layers.Dense(5)])
    model.export(str(tmp_path / "keras"), verbose=False)
    image = np.random.RandomState(0).rand(3, 12, 12, 1)
    np.save(tmp_path / "image.npy", image)  # double: becomes float on the way
    key = list(tf.saved_model.load(str(tmp_path / "keras")).signatures["serving_default"].structured_input_signature[1])[0]
    rill("graph", "run", tmp_path / "keras", "--input", "%s=@%s" % (key, tmp_path / "image.npy"), "--out", tmp_path / "out")
    got = np.load(tmp_path / "out" / "output_0.npy")
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, model(image.astype(np.float32)).numpy(), rtol=1e-4, atol=1e-6)


def test_recurrent_and_embedding_model(rill, tmp_path):
    layers = tf.keras.layers
    tf.keras.utils.set_random_seed(4)
    model = tf.keras.Sequential([layers.Input([7], dtype="int32"), layers.Embedding(20, 8), layers.GRU(6, return_sequences=True),
                                 layers.LSTM(5), layers.Dense(3, activation="sigmoid")])
    model.export(str(tmp_path / "rnn"), verbose=False)
    words = np.random.RandomState(1).randint(0, 20, [2, 7])
    key = list(tf.saved_model.load(str(tmp_path / "rnn")).signatures["serving_default"].structured_input_signature[1])[0]
    got = outputs(rill("graph", "run", tmp_path / "rnn", "--input", "%s=%s" % (key, words.tolist()), "--json"))
    np.testing.assert_allclose(got["output_0"], model(words).numpy(), rtol=1e-4, atol=1e-6)


def test_meta_graph_with_its_checkpoint(rill, old_model, tmp_path):
    meta = str(old_model / "ck" / "model-5.meta")
    got = outputs(rill("graph", "run", meta, "--input", "x:0=[[1,1,1]]", "--input", "words=[red]", "--fetch", "y:0", "--fetch",
                       "hash_table_Lookup/LookupTableFindV2", "--json"))
    np.testing.assert_allclose(got["y:0"], [[16, 29]])
    assert list(got["hash_table_Lookup/LookupTableFindV2"]) == [0]
    with tf.Graph().as_default(), tf1.Session() as s:  # another checkpoint of the same variables
        tf1.train.import_meta_graph(meta)
        s.run(tf1.global_variables_initializer())
        s.run(tf1.trainable_variables()[1].assign([1.0, 2.0]))
        other = tf1.train.Saver(name="other").save(s, str(tmp_path / "other"), write_meta_graph=False)
    for model in (meta, str(old_model / "graph.pb")):
        got = outputs(rill("graph", "run", model, "--checkpoint", other, "--input", "x=[[1,1,1]]", "--fetch", "y", "--json"))
        np.testing.assert_allclose(got["y"], [[7, 11]])


def test_on_a_cluster(rill, old_model, new_model):
    with Cluster({"ps": 1, "worker": 1}) as cluster:
        for _ in range(2):  # a session of its own each time: the counter starts anew
            got = outputs(rill("graph", "run", new_model, "--target", cluster.target(), "--input", "x=%s" % X, "--json"))
            want = wanted(new_model, "serving_default", x=X)
            np.testing.assert_allclose(got["y"], want["y"], rtol=1e-6)
            assert got["calls"] == 1
        got = outputs(rill("graph", "run", old_model / "saved", "--tags", "serve", "--target", cluster.target(), "--input", "x=%s" % X, "--input",
                           "words=[green]", "--json"))
        assert list(got["ids"]) == [1]
        rill("graph", "run", old_model / "ck" / "model-5.meta", "--target", cluster.target(), "--timeout", "30", "--input", "x=[[1,1,1]]",
             "--fetch", "y")
        rill("graph", "run", new_model, "--target", "nosuch://x", "--input", "x=%s" % X, code=1)


def test_graph_def(rill, old_model):
    frozen = old_model / "frozen.pb"
    assert "[[16 29]]" in rill("graph", "run", frozen, "--input", "x=[[1,1,1]]", "--fetch", "y").out
    assert "--fetch" in rill("graph", "run", frozen, code=1).err
    assert "[[16 29]]" in rill("graph", "run", old_model / "graph.pb", "--init", "init", "--input", "x=[[1,1,1]]", "--fetch", "y").out
    assert "no_such" in rill("graph", "run", old_model / "graph.pb", "--init", "no_such", "--fetch", "y", code=1).err
    assert "uninitialized" in rill("graph", "run", old_model / "graph.pb", "--input", "x=[[1,1,1]]", "--fetch", "y", code=1).err.lower()


def assert_same(got, want):
    """Equal, NaN to NaN too; NumPy does not know the NaN of bfloat16."""
    if want.dtype.kind == "V" or want.dtype.name == "bfloat16":
        got, want = got.astype(np.float32), want.astype(np.float32)
    np.testing.assert_array_equal(got, want)


DTYPES = ["float16", "float32", "float64", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
          "bool", "complex64", "complex128"]


@pytest.mark.parametrize("name", DTYPES)
def test_every_dtype_goes_in_and_comes_out(rill, tmp_path, name):
    dtype = tf.as_dtype(name)
    with tf.Graph().as_default() as g:
        x = tf1.placeholder(dtype, None, name="x")
        tf.identity(x, name="y")
        (tmp_path / "g.pb").write_bytes(g.as_graph_def().SerializeToString())
    if dtype.is_integer:
        values = [dtype.min, 0, 1, dtype.max]
    elif dtype.is_bool:
        values = [True, False]
    elif dtype.is_complex:
        values = [1 + 2j, -0.5 - 1e-3j, 3]
    else:
        values = [0.1, -2.5, 1 / 3, 1e-3, float("inf"), float("nan"), float(dtype.max)]
    array = np.array(values, dtype.as_numpy_dtype)
    text = json.dumps([str(v) if dtype.is_complex or not np.isfinite(v) else v if not dtype.is_floating else float(v) for v in values])
    for given in (text, None):
        if given is None:
            np.save(tmp_path / "x.npy", array)
            given = "@%s" % (tmp_path / "x.npy")
        result = rill("graph", "run", tmp_path / "g.pb", "--input", "x=" + given, "--fetch", "y", "--json").json["outputs"]["y"]
        assert result["shape"] == [len(values)] and tf.as_dtype(result["dtype"]) == dtype
        if dtype.is_complex:
            got = np.array([complex(v) for v in result["value"]], array.dtype)
        else:
            got = np.array([float(v) if isinstance(v, str) else v for v in result["value"]], array.dtype)
        assert_same(got, array)
        rill("graph", "run", tmp_path / "g.pb", "--input", "x=" + given, "--fetch", "y", "--out", tmp_path / "out")
        saved = np.load(tmp_path / "out" / "y.npy")
        assert_same(saved.view(array.dtype) if name == "bfloat16" else saved, array)
        if name != "bfloat16":
            assert saved.dtype == array.dtype


def test_shapes_strings_and_odd_arrays(rill, tmp_path):
    with tf.Graph().as_default() as g:
        tf.identity(tf1.placeholder(tf.string, None, name="s"), name="t")
        tf.identity(tf1.placeholder(tf.float32, None, name="x"), name="y")
        (tmp_path / "g.pb").write_bytes(g.as_graph_def().SerializeToString())

    def value(feed, fetch):
        r = rill("graph", "run", tmp_path / "g.pb", "--input", feed, "--fetch", fetch, "--json").json["outputs"][fetch]
        return r["shape"], r["value"]

    assert value('s=["a\\u00e9\\n", {"b64": "AP8="}, bare]', "t") == ([3], ["a\u00e9\n", {"b64": "AP8="}, "bare"])
    assert value("s=one, two", "t") == ([], "one, two")
    assert value("s=", "t") == ([], "")
    (tmp_path / "bytes.bin").write_bytes(b"\0\xff")
    assert value("s=@%s" % (tmp_path / "bytes.bin"), "t") == ([], {"b64": "AP8="})
    assert value("x=[[], []]", "y") == ([2, 0], [[], []])
    np.save(tmp_path / "columns.npy", np.asfortranarray(np.arange(6, dtype=">f8").reshape(2, 3)))
    assert value("x=@%s" % (tmp_path / "columns.npy"), "y") == ([2, 3], [[0, 1, 2], [3, 4, 5]])
    np.save(tmp_path / "text.npy", np.array([["ab", "\u00e9"]]))
    assert value("s=@%s" % (tmp_path / "text.npy"), "t") == ([1, 2], [["ab", "\u00e9"]])
    np.save(tmp_path / "objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    assert "objects.npy" in rill("graph", "run", tmp_path / "g.pb", "--input", "x=@%s" % (tmp_path / "objects.npy"), "--fetch", "y", code=1).err
    for wrong in ("[[1], [2, 3]]", "[1, [2]]", "[1", "1]", "1 2", "", "[1 2]"):
        rill("graph", "run", tmp_path / "g.pb", "--input", "x=" + wrong, "--fetch", "y", code=1)


def test_sparse_and_default_inputs(rill, tmp_path):
    with tf.Graph().as_default(), tf1.Session() as s:
        x = tf1.sparse_placeholder(tf.float32, [None, 4], name="x")
        y = tf.sparse.reduce_sum(x, 1)
        inputs = {"x": tf1.saved_model.build_tensor_info(x)}
        signature = tf1.saved_model.build_signature_def(inputs, {"y": tf1.saved_model.build_tensor_info(y)}, "m")
        builder = tf1.saved_model.Builder(str(tmp_path / "sparse"))
        builder.add_meta_graph_and_variables(s, ["serve"], {"sum": signature})
        builder.save()
    got = outputs(rill("graph", "run", tmp_path / "sparse", "--input", "x.values=[1, 2, 4]", "--input", "x.indices=[[0,0],[0,3],[1,1]]",
                       "--input", "x.dense_shape=[2,4]", "--json"))
    assert list(got["y"]) == [3, 4]


def test_show(rill, old_model, new_model):
    shown = rill("graph", "show", old_model / "saved", "--json").json
    assert shown["format"] == "SavedModel" and [g["tags"] for g in shown["graphs"]] == [["serve"], ["serve", "small"]]
    graph = shown["graphs"][0]
    assert graph["signatures"]["serving_default"]["inputs"]["x"] == {"tensor": "x:0", "dtype": "float", "shape": [-1, 3]}
    assert {(v["name"], v["op"], tuple(v["shape"])) for v in graph["variables"]} == {("w", "VariableV2", (3, 2)), ("b", "VarHandleOp", (2,))}
    assert graph["assets"][0]["file"] == "vocabulary.txt" and graph["init_op"] == "init_all_tables_1"
    text = rill("graph", "show", old_model / "saved").out
    assert "signature serving_default" in text and "float[?,3]" in text
    shown = rill("graph", "show", new_model, "--json").json["graphs"][0]
    assert set(shown["signatures"]) == {"serving_default", "lookup", "__saved_model_init_op"} and shown["function_count"] > 5
    shown = rill("graph", "show", old_model / "frozen.pb", "--json", "--nodes").json
    assert shown["format"] == "GraphDef" and [o["name"] for o in shown["graphs"][0]["outputs"]] == ["y"]
    assert len(shown["graphs"][0]["nodes"]) == shown["graphs"][0]["node_count"]
    assert rill("graph", "show", old_model / "ck" / "model-5.meta", "--json").json["format"] == "MetaGraph"


def test_ops(rill, new_model, tmp_path):
    counted = rill("graph", "ops", new_model, "--json").json
    assert counted["missing"] == 0
    proto = open(os.path.join(new_model, "saved_model.pb"), "rb").read()
    meta = saved_model_pb2.SavedModel.FromString(proto).meta_graphs[0].graph_def
    nodes = [n.op for n in meta.node] + [n.op for f in meta.library.function for n in f.node_def]
    assert {o["op"]: o["count"] for o in counted["ops"]} == {op: nodes.count(op) for op in set(nodes)}
    with tf.Graph().as_default() as g:
        tf.raw_ops.Bitcast(input=tf.constant(1.0), type=tf.int32)
        d = g.as_graph_def()
        d.node.add(name="odd", op="NoSuchOp")
        (tmp_path / "odd.pb").write_bytes(d.SerializeToString())
    text = rill("graph", "ops", tmp_path / "odd.pb", "--missing", code=1).out
    assert "NoSuchOp" in text and "MISSING" in text and "Bitcast" not in text and "1 missing" in text


def test_dot(rill, old_model):
    text = rill("graph", "dot", old_model / "frozen.pb").out
    assert text.startswith("digraph") and '"MatMul" -> "y"' in text and '"x" -> "MatMul"' in text and text.count("{") == text.count("}")
    assert '"save/' not in rill("graph", "dot", old_model / "saved", "--prefix", "y").out


def test_text_files_are_the_same_as_binary_ones(rill, old_model, new_model, tmp_path):
    for kind, model in (("old", old_model / "saved"), ("new", new_model)):
        shutil.copytree(model, tmp_path / kind)
        proto = saved_model_pb2.SavedModel.FromString((tmp_path / kind / "saved_model.pb").read_bytes())
        (tmp_path / kind / "saved_model.pbtxt").write_text(text_format.MessageToString(proto))
        binary = rill("graph", "show", tmp_path / kind, "--nodes", "--json").json
        (tmp_path / kind / "saved_model.pb").unlink()
        text = rill("graph", "show", tmp_path / kind, "--nodes", "--json").json
        assert text["graphs"][0]["nodes"] == binary["graphs"][0]["nodes"]
        assert [g["signatures"] for g in text["graphs"]] == [g["signatures"] for g in binary["graphs"]]
        assert text["graphs"][0]["assets"] == binary["graphs"][0]["assets"]
    got = outputs(rill("graph", "run", tmp_path / "new", "--input", "x=%s" % X, "--json"))
    np.testing.assert_allclose(got["y"], wanted(new_model, "serving_default", x=X)["y"], rtol=1e-6)
    got = outputs(rill("graph", "run", tmp_path / "old", "--input", "x=%s" % X, "--input", "words=[blue]", "--json"))
    assert list(got["ids"]) == [2]
    meta = meta_graph_pb2.MetaGraphDef.FromString((old_model / "ck" / "model-5.meta").read_bytes())
    for suffix in (".index", ".data-00000-of-00001"):
        shutil.copy(str(old_model / "ck" / "model-5") + suffix, str(tmp_path / "model-5") + suffix)
    (tmp_path / "model-5.meta").write_text(text_format.MessageToString(meta))
    assert "[[16 29]]" in rill("graph", "run", tmp_path / "model-5.meta", "--input", "x=[[1,1,1]]", "--fetch", "y").out
    (tmp_path / "g.pbtxt").write_text(text_format.MessageToString(graph_pb2.GraphDef.FromString((old_model / "frozen.pb").read_bytes())))
    assert "[[16 29]]" in rill("graph", "run", tmp_path / "g.pbtxt", "--input", "x=[[1,1,1]]", "--fetch", "y").out
    (tmp_path / "g.pbtxt").write_text("node {\n  name: 3\n}\n")
    assert "g.pbtxt: line 2" in rill("graph", "show", tmp_path / "g.pbtxt", code=1).err


def test_damaged_files_are_refused(rill, old_model, tmp_path):
    whole = (old_model / "saved" / "saved_model.pb").read_bytes()
    for size in (0, 1, 10, 100, len(whole) // 2, len(whole) - 1):
        (tmp_path / "saved_model.pb").write_bytes(whole[:size])
        result = rill("graph", "show", tmp_path, code=1)
        assert "saved_model.pb" in result.err


def test_help(rill):
    for command in (["graph"], ["graph", "run"], ["graph", "show"], ["graph", "ops"], ["graph", "dot"]):
        assert "usage: rill graph" in rill(*command, "--help").out
