"""Messages of any type by descriptors from a file, on Rill and on TensorFlow."""
import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from google.protobuf import descriptor_pb2


@pytest.fixture
def descriptors(tmp_path):
    whole = descriptor_pb2.FileDescriptorSet()
    f = whole.file.add(name="a.proto", package="p.q", syntax="proto3")
    inner = f.message_type.add(name="Inner")
    inner.field.add(name="text", number=1, label=3, type=9)
    outer = f.message_type.add(name="Outer")
    outer.field.add(name="inner", number=3, label=1, type=11, type_name=".p.q.Inner")
    outer.field.add(name="numbers", number=1, label=3, type=3)
    path = tmp_path / "descriptors.pb"
    path.write_bytes(whole.SerializeToString())
    return str(path)


def test_messages_are_made_and_read_by_a_file_of_descriptors(rill, reference, graph, descriptors):
    texts = np.array([[b"a", b"", b"ccc"], [b"x", b"y", b"z"]], object)
    inner = tf.io.encode_proto([[3], [1]], [texts], ["text"], "p.q.Inner", descriptors)
    outer = tf.io.encode_proto([[1, 2], [1, 0]], [tf.expand_dims(inner, 1), np.int64([[5, -6], [7, 8]])], ["inner", "numbers"], "p.q.Outer", descriptors)
    sizes, (again, numbers) = tf.io.decode_proto(outer, "p.q.Outer", ["inner", "numbers"], [tf.string, tf.int64], descriptors)
    fetches = [inner, outer, sizes, numbers, *tf.io.decode_proto(again, "p.q.Inner", ["text"], [tf.string], descriptors)]
    with tf.Session(reference) as session:
        want = session.run(fetches)
    with tf.Session(rill) as session:
        got = session.run(fetches)
    for w, g in zip(want, got):
        np.testing.assert_array_equal(np.asarray(w), np.asarray(g))
    assert np.asarray(got[-1]).tolist() == [[[[b"a", b"", b"ccc"]], [[b"x", b"", b""]]]]


@pytest.mark.parametrize("source", ["local://", "/no/such/file"])
def test_descriptors_that_are_not_there_are_an_error(rill, reference, graph, source):
    fetch = tf.io.decode_proto([b""], "p.q.Outer", ["inner"], [tf.string], source)
    messages = []
    for target in (reference, rill):
        with tf.Session(target) as session, pytest.raises(tf.errors.InvalidArgumentError) as failed:
            session.run(fetch)
        messages.append(failed.value.message.split("\n")[0])
    assert messages[0] == messages[1]


def test_tensorflows_own_messages_need_no_descriptors(rill, reference, graph):
    def feature(**lists):
        return tf.train.Feature(**{kind: getattr(tf.train, kind.title().replace("_", ""))(value=value) for kind, value in lists.items()})

    example = tf.train.Example(features=tf.train.Features(feature={"a": feature(int64_list=[3, -4]), "b": feature(float_list=[1.5]), "c": feature(bytes_list=[b"x"])}))
    tensors = [tf.make_tensor_proto(v).SerializeToString() for v in (np.float32([1.5, 2]), np.int64([7]), ["a", "bb"], np.float64(3))]
    features = tf.io.decode_proto(example.SerializeToString(deterministic=True), "tensorflow.Example", ["features"], [tf.string])[1][0][0]
    entries = tf.io.decode_proto(features, "tensorflow.Features", ["feature"], [tf.string])[1][0]
    entry = tf.io.decode_proto(entries, "tensorflow.Features.FeatureEntry", ["key", "value"], [tf.string, tf.string])
    lists = tf.io.decode_proto(tf.squeeze(entry[1][1], -1), "tensorflow.Feature", ["int64_list", "float_list", "bytes_list"], [tf.string] * 3)
    longs = tf.io.decode_proto(lists[1][0][0], "tensorflow.Int64List", ["value"], [tf.int64])
    parts = tf.io.decode_proto(tensors, "tensorflow.TensorProto", ["dtype", "tensor_shape", "float_val", "string_val", "tensor_content"], [tf.int32, tf.string, tf.float32, tf.string, tf.string])
    text = tf.io.decode_proto(["dtype: DT_STRING float_val: 3"], "tensorflow.TensorProto", ["dtype", "float_val"], [tf.int32, tf.float32], message_format="text")
    encoded = tf.io.encode_proto([[2, 1]], [np.array([[1, 2]], np.float32), np.array([[True]])], ["float_val", "bool_val"], "tensorflow.TensorProto")
    fetches = tf.nest.flatten([entry, lists, longs, parts, text, encoded])
    results = []
    for target in (reference, rill):
        with tf.Session(target) as session:
            results.append(session.run(fetches))
    for want, got in zip(*results):
        np.testing.assert_array_equal(got, want)
    assert results[1][fetches.index(longs[1][0])].tolist() == [[3, -4]]
