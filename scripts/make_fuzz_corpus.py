#!/usr/bin/env python3
"""Makes tests/fuzz/corpus: small valid inputs for each fuzz target, from which random ones are derived. Real TensorFlow, NumPy and gRPC write them.

The first byte of an input is a choice, see the targets; pieces have their length (2 bytes) in front."""
import os
import pathlib
import shutil
import socket
import struct
import tempfile
import threading

os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", TF_ENABLE_ONEDNN_OPTS="0", CUDA_VISIBLE_DEVICES="")
ROOT = pathlib.Path(__file__).resolve().parents[1]
CORPUS = ROOT / "tests/fuzz/corpus"

import grpc  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow.compat.v1 as tf  # noqa: E402
from tensorflow.core.protobuf import cluster_pb2, tensor_bundle_pb2  # noqa: E402

import op_cases  # noqa: E402

op_cases.load()
from op_cases import image as image_cases  # noqa: E402

tf.disable_eager_execution()


def put(target, name, data, choice=None):
    folder = CORPUS / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes((bytes([choice]) if choice is not None else b"") + data)


def piece(data):
    return struct.pack("<H", len(data)) + data


def tensors():
    values = {"float": np.array([[1, 2], [3, 4]], np.float32), "string": np.array([b"a", b"bc"], object), "bool": np.array([True, False]),
              "half": np.array([1.5], np.float16), "int64": np.array(7, np.int64), "complex": np.array([1 + 2j], np.complex64), "empty": np.zeros((0, 3), np.int8)}
    for name, value in values.items():
        put("tensor", name, tf.make_tensor_proto(value).SerializeToString(), 1)
    content = tf.make_tensor_proto([True, False])
    content.ClearField("bool_val")
    content.tensor_content = b"\x01\x00"
    put("tensor", "bool_content", content.SerializeToString(), 1)
    proto = tf.make_tensor_proto([0.5, 0.5, 0.5], tf.float32)
    proto.ClearField("tensor_content")
    proto.float_val.append(0.5)
    put("tensor", "repeated", proto.SerializeToString(), 1)
    for name, value in (("npy_f8", np.ones((2, 3))), ("npy_fortran", np.asfortranarray(np.ones((2, 3), ">i2"))), ("npy_text", np.array(["a", "bc"])), ("npy_bytes", np.array([b"a"]))):
        with tempfile.TemporaryFile() as f:
            np.save(f, value)
            f.seek(0)
            put("tensor", name, f.read(), 0)


def small_graph():
    with tf.Graph().as_default() as g:
        x = tf.placeholder(tf.float32, [None, 2], name="x")
        w = tf.get_variable("w", [2, 1])
        y = tf.cond(tf.reduce_sum(x) > 0, lambda: tf.matmul(x, w), lambda: -tf.matmul(x, w))
        tf.while_loop(lambda i: i < 3, lambda i: i + 1, [tf.constant(0)])
        tf.gradients(y, w)
    return g


def graphs():
    cases = sorted((ROOT / "tests/golden/cases").glob("*.pb"), key=lambda p: p.stat().st_size)
    wanted = [p for p in cases if p.stat().st_size < 4000][:12] + [p for p in cases if p.name.startswith(("while_v2", "cond", "data_")) and p.stat().st_size < 9000][:6]
    for p in wanted:
        put("graph", p.stem, p.read_bytes(), 0)
    g = small_graph()
    put("graph", "switch_merge", g.as_graph_def().SerializeToString(), 0)
    with g.as_default():
        put("graph", "meta", tf.train.export_meta_graph().SerializeToString(), 6)
    folder = tempfile.mkdtemp()
    with tf.Session(graph=g) as s, g.as_default():
        s.run(tf.global_variables_initializer())
        tf.saved_model.simple_save(s, folder + "/m", {"x": g.get_tensor_by_name("x:0")}, {"w": g.get_tensor_by_name("w:0")})
    put("graph", "saved_model", pathlib.Path(folder + "/m/saved_model.pb").read_bytes(), 7)
    shutil.rmtree(folder)


def checkpoints():
    folder = pathlib.Path(tempfile.mkdtemp())
    with tf.Graph().as_default(), tf.Session() as s:
        tf.get_variable("a", [2, 2])
        tf.get_variable("s", initializer=tf.constant(["x", "yz"]), dtype=tf.string)
        tf.get_variable("p", [4], partitioner=tf.fixed_size_partitioner(2))
        s.run(tf.global_variables_initializer())
        tf.train.Saver().save(s, str(folder / "x"))
        tf.train.Saver(write_version=tf.train.SaverDef.V1).save(s, str(folder / "old"), latest_filename="old_state", write_meta_graph=False)
    index, data = (folder / "x.index").read_bytes(), (folder / "x.data-00000-of-00001").read_bytes()
    put("checkpoint", "saved", piece(index) + data, 1)
    put("checkpoint", "old", (folder / "old").read_bytes(), 4)
    put("checkpoint", "state", (folder / "checkpoint").read_bytes(), 0)
    header = tensor_bundle_pb2.BundleHeaderProto(num_shards=1)
    header.version.producer = 1
    entry = tensor_bundle_pb2.BundleEntryProto(dtype=1, size=16)
    entry.shape.dim.add(size=4)
    sliced = tensor_bundle_pb2.BundleEntryProto(dtype=1)
    sliced.shape.dim.add(size=4)
    part = sliced.slices.add().extent.add(start=0)
    part.length = 2
    sliced.slices.add().extent.add(start=2).length = 2
    put("checkpoint", "made", b"".join(piece(p) for p in (b"", header.SerializeToString(), b"a", entry.SerializeToString())) + bytes(16), 2)
    put("checkpoint", "sliced", b"".join(piece(p) for p in (b"", header.SerializeToString(), b"a", sliced.SerializeToString())) + bytes(16), 2)
    shutil.rmtree(folder)


def records():
    for choice, kind in ((6, None), (7, "ZLIB"), (8, "GZIP")):
        with tempfile.NamedTemporaryFile() as f:
            with tf.io.TFRecordWriter(f.name, tf.io.TFRecordOptions(compression_type=kind or "")) as w:
                w.write(b"first")
                w.write(b"")
                w.write(b"x" * 100)
            put("record", "records_%s" % (kind or "plain"), pathlib.Path(f.name).read_bytes(), choice)
            put("record", "lines_%s" % (kind or "plain"), pathlib.Path(f.name).read_bytes(), choice - 6)
            put("record", "whole_%s" % (kind or "plain"), pathlib.Path(f.name).read_bytes(), choice - 3)
    put("record", "text", b"one\r\ntwo\n\nthree", 0)


def images():
    pixels = np.arange(8 * 6 * 3, dtype=np.uint8).reshape(8, 6, 3)
    with tf.Graph().as_default(), tf.Session() as s:
        for channels in (1, 2, 3, 4):
            put("image", "png%d" % channels, s.run(tf.io.encode_png(np.resize(pixels, (8, 6, channels)))), 0)
        put("image", "png16", s.run(tf.io.encode_png(np.resize(pixels, (8, 6, 3)).astype(np.uint16))), 8)
        put("image", "jpeg", s.run(tf.io.encode_jpeg(pixels)), 0)
        put("image", "jpeg_progressive", s.run(tf.io.encode_jpeg(pixels, progressive=True)), 17)
        put("image", "jpeg_crop", s.run(tf.io.encode_jpeg(np.resize(pixels, (8, 6, 1)))), 128)
    gif = b"GIF89a\x02\x00\x02\x00\x91\x00\x00\xff\xff\xff\xff\x00\x00\x00\xff\x00\x00\x00\xff,\x00\x00\x00\x00\x02\x00\x02\x00\x00\x02\x03D\x02\x05\x00;"
    put("image", "gif", gif, 0)
    for name, data in image_cases.WEBP.items():
        put("image", "webp_%s" % name, data, 0)
    put("image", "webp_frames", image_cases.animated([image_cases.WEBP["rgba"], image_cases.WEBP["rgb"]]), 1)
    put("image", "gif_frames", gif[:-1] + gif[gif.index(b","):], 1)
    for bits, size in ((24, 8 * 4), (32, 8 * 4), (8, 4 * 4)):
        row = (8 * bits // 8 + 3) // 4 * 4
        put("image", "bmp%d" % bits, b"BM" + struct.pack("<IHHI", 54 + row * 4, 0, 0, 54) + struct.pack("<IiiHHIIiiII", 40, 8, 4, 1, bits, 0, 0, 0, 0, 0, 0) + bytes(row * 4), 0)


def texts():
    for i, text in enumerate((b"1,2.5,\"a,b\"\"c\",\n", b",,,", b"\"open")):
        put("text", "csv%d" % i, text, 0)
    for i, text in enumerate((b"5 2 3,2:0,2", b"4 4 -:1,2", b"3 -")):
        put("text", "slice%d" % i, text, 1)
    put("text", "cluster", b'{"ps": ["a:1", "b:2"], "worker": {"0": "c:3"}}', 2)
    put("text", "tf_config", b'{"cluster": {"ps": ["a:1"], "worker": ["b:2"]}, "task": {"type": "worker", "index": 0}}', 2)
    definition = cluster_pb2.ClusterDef()
    job = definition.job.add(name="ps")
    job.tasks[0] = "a:1"
    put("text", "cluster_def", definition.SerializeToString(), 3)
    put("text", "device", piece(b"/job:ps/replica:0/task:1/device:CPU:0") + b"/cpu:0", 4)
    put("text", "timeout", b"1500m", 5)
    put("text", "address", b"[::1]:2222", 5)
    for i, (pattern, rewrite, text) in enumerate(((b"(a|b)*c{2,3}[^x-z\\d]+$", b"\\1-\\0", b"abcc!"), (b"^\\w+\\s?(?i:hello)", b"\\\\", b"say hello"), (b"(?P<n>\\pL.)+?", b"\\1", "äbc".encode()))):
        put("text", "regex%d" % i, piece(pattern) + piece(rewrite) + text, 6)


def capture():
    """What a gRPC client sends: the preface, settings, a call."""
    server, got = socket.create_server(("127.0.0.1", 0)), []

    def serve():
        connection, _ = server.accept()
        connection.settimeout(1)
        connection.sendall(b"\0\0\0\4\0\0\0\0\0" + b"\0\0\0\4\1\0\0\0\0")
        try:
            while chunk := connection.recv(65536):
                got.append(chunk)
        except TimeoutError:
            pass
        connection.close()

    thread = threading.Thread(target=serve)
    thread.start()
    with grpc.insecure_channel("127.0.0.1:%d" % server.getsockname()[1]) as channel:
        try:
            channel.unary_unary("/a.B/Echo")(b"hello", timeout=0.8)
        except grpc.RpcError:
            pass
    thread.join()
    return b"".join(got)


def connections():
    sent = capture()
    for target in ("server", "http2"):
        put(target, "call", sent, 1 if target == "http2" else 0)
        put(target, "headers", sent[24 + 9:], 3 if target == "http2" else 1)
        put(target, "get", b"GET / HTTP/1.1\r\n\r\n", 1 if target == "http2" else 0)
    put("http2", "reply", b"\0\0\0\4\0\0\0\0\0" + b"\0\0\1\1\4\0\0\0\1\x88" + b"\0\0\6\0\1\0\0\0\1\0\0\0\0\1x", 0)
    put("http2", "goaway", b"\0\0\0\4\0\0\0\0\0" + b"\0\0\x08\7\0\0\0\0\0\0\0\0\1\0\0\0\0" + b"\0\0\4\3\0\0\0\0\1\0\0\0\x08", 0)


def int64s(*values):
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def floats(*values):
    return tf.train.Feature(float_list=tf.train.FloatList(value=values))


def strings(*values):
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))


def examples():
    features = tf.train.Features(feature={"a": floats(1, 2), "b": int64s(3), "c": strings(b"x", b"yz"), "d": floats(1, 2), "e": int64s(1, 2, 3), "f": strings(b"q")})
    put("example", "example", tf.train.Example(features=features).SerializeToString(), 0)
    data = tf.train.Example(features=features).SerializeToString()
    put("example", "two", piece(data) + data, 8)
    lists = tf.train.FeatureLists(feature_list={"a": tf.train.FeatureList(feature=[floats(1), floats(2, 3)]), "b": tf.train.FeatureList(feature=[int64s(1)]),
                                                "c": tf.train.FeatureList(feature=[strings(b"x")]), "d": tf.train.FeatureList(feature=[floats(1, 2)]),
                                                "e": tf.train.FeatureList(feature=[int64s(1)]), "f": tf.train.FeatureList(feature=[strings(b"x")])})
    put("example", "sequence", tf.train.SequenceExample(context=features, feature_lists=lists).SerializeToString(), 2)
    put("example", "csv", b"1.5,2,abc", 4)
    put("example", "number", b"-1.5e10", 5)
    put("example", "base64", b"aGVsbG8", 6)
    put("example", "wav", b"RIFF$\0\0\0WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 2, 8000, 32000, 4, 16) + b"data\x08\0\0\0" + bytes(range(8)), 224)
    put("example", "json", b'{"features":{"feature":{"a":{"int64List":{"value":[1,"-2",1e3]}},b:{"float_list":{"value":["NaN",0.5]}},"\\u00e9":{"bytesList":{"value":["AQ=="]}}}}}', 7)
    with tf.Graph().as_default(), tf.Session() as s:
        serialized = s.run(tf.io.serialize_sparse(tf.SparseTensor([[0, 1]], [1.0], [2, 2])))
    put("example", "sparse", piece(serialized[0]) + piece(serialized[1]) + serialized[2], 240)


def varint(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes(out) + bytes([n])


def message(*fields):
    """Of pairs (number, int, bytes or text), as proto/*.proto number them."""
    out = b""
    for number, value in fields:
        value = value.encode() if isinstance(value, str) else value
        out += varint(number << 3) + varint(value) if isinstance(value, int) else varint(number << 3 | 2) + varint(len(value)) + value
    return out


def requests():
    graph = small_graph().as_graph_def().SerializeToString()
    number = tf.make_tensor_proto(2.0).SerializeToString()
    small = tf.GraphDef()
    small.node.add(name="c", op="NoOp", device="/job:worker/replica:0/task:0/device:CPU:0")
    small = small.SerializeToString()
    key = "/job:worker/replica:0/task:0/device:CPU:0;1;/job:worker/replica:0/task:0/device:CPU:0;x;0:0"
    feed = message((1, "p:0"), (2, number))
    calls = {
        "create": [(0, message((1, graph)))],
        "extend": [(1, message((2, small), (3, 1)))],
        "run": [(3, message((2, feed), (3, "sum:0"), (3, "loop/exit:0"), (4, "v/init")))],
        "partial": [(2, message((2, "p:0"), (3, "sum:0"))), (3, message((6, "x"), (2, feed), (3, "sum:0")))],
        "callable": [(4, message((2, message((1, "p:0"), (2, "sum:0"))))), (5, message((2, 1), (3, number))), (6, message((2, 1)))],
        "devices": [(7, b"")],
        "close": [(8, b"")],
        "status": [(9, b"")],
        "register": [(10, message((1, "s"))), (12, message((1, "s"), (2, small), (6, 1))),
                     (14, message((1, "0"), (2, 1), (3, message((1, key), (2, number))), (4, key), (8, "s"), (10, 1)))],
        "receive": [(17, message((1, 1), (2, key)))],
        "cleanup": [(15, message((1, 1))), (16, message((1, "c")))],
        "logging": [(18, message((1, 1), (3, 1)))],
        "sequence": [(20, message((1, 1)))],
        "group": [(21, message((1, 1), (2, 2)))],
    }
    for name, parts in calls.items():
        put("request", name, b"".join(bytes([m]) + piece(r) for m, r in parts))


def main():
    shutil.rmtree(CORPUS, ignore_errors=True)
    for make in (tensors, graphs, checkpoints, records, images, texts, connections, examples, requests):
        make()
    files = [p for p in CORPUS.rglob("*") if p.is_file()]
    print("%d inputs, %d bytes" % (len(files), sum(p.stat().st_size for p in files)))


main()
