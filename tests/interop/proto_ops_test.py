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
