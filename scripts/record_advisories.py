#!/usr/bin/env python3
"""Records tests/ops/advisories.bin: the argument patterns of TensorFlow's published security advisories, with what TensorFlow 2.21 answers to each.

Each row of ROWS is one call: a name, the op, its inputs in order, its attributes. The call is run in a process of its own, since it may end it. The file is a
message whose field 1 is a GraphDef; its node "x" is the call, with the attributes _name and _expect (an error code as TensorFlow writes it, or OK).
"""
import os
import pathlib
import resource
import signal
import sys

os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", TF_ENABLE_ONEDNN_OPTS="0", CUDA_VISIBLE_DEVICES="")
ROOT = pathlib.Path(__file__).resolve().parents[1]

import numpy as np  # noqa: E402
import tensorflow.compat.v1 as tf  # noqa: E402
from google.protobuf.internal.encoder import _VarintBytes  # noqa: E402
from tensorflow.core.framework import graph_pb2  # noqa: E402
from tensorflow.python.framework import op_def_registry  # noqa: E402

from advisory_rows import Made, ROWS  # noqa: E402

CODES = {3: "INVALID_ARGUMENT", 5: "NOT_FOUND", 8: "RESOURCE_EXHAUSTED", 9: "FAILED_PRECONDITION", 11: "OUT_OF_RANGE", 12: "UNIMPLEMENTED", 13: "INTERNAL",
         4: "DEADLINE_EXCEEDED", 1: "CANCELLED", 15: "DATA_LOSS", 6: "ALREADY_EXISTS", 2: "UNKNOWN"}
SECONDS = 60


def set_attr(attr, kind, value):
    if kind.startswith("list("):
        attr.list.SetInParent()
        for item in value:
            one = type(attr)()
            set_attr(one, kind[5:-1], item)
            field = one.WhichOneof("value")
            target = getattr(attr.list, field)
            target.add().CopyFrom(getattr(one, field)) if field in ("shape", "tensor", "func") else target.append(getattr(one, field))
    elif kind == "type":
        attr.type = tf.as_dtype(value).as_datatype_enum
    elif kind == "shape":
        attr.shape.CopyFrom(tf.TensorShape(value).as_proto())
    elif kind == "string":
        attr.s = value if isinstance(value, bytes) else value.encode()
    else:
        setattr(attr, {"int": "i", "float": "f", "bool": "b"}[kind], value)


class Builder:
    def __init__(self):
        self.graph = graph_pb2.GraphDef()
        self.graph.versions.producer = tf.GRAPH_DEF_VERSION if hasattr(tf, "GRAPH_DEF_VERSION") else 1882
        self.count = 0

    def value(self, value):
        """The name of a node that gives it, and its type."""
        name = "n%d" % self.count
        self.count += 1
        if isinstance(value, Made):
            return self.node(name, value.op, value.inputs, value.attrs)
        node = self.graph.node.add(name=name, op="Const")
        node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(value))
        node.attr["dtype"].type = node.attr["value"].tensor.dtype
        return name, tf.as_dtype(node.attr["dtype"].type)

    def node(self, name, op, inputs, attrs):
        op_def = op_def_registry.get(op)
        attrs, names = dict(attrs), []
        for arg, value in zip(op_def.input_arg, inputs):
            group = value if isinstance(value, list) else [value]
            given = [self.value(v) for v in group]
            names += [n for n, _ in given]
            if arg.number_attr:
                attrs.setdefault(arg.number_attr, len(given))
            if arg.type_list_attr:
                attrs.setdefault(arg.type_list_attr, [t for _, t in given])
            if arg.type_attr and given:
                attrs.setdefault(arg.type_attr, given[0][1])
        node = self.graph.node.add(name=name, op=op, input=names)
        for attr in op_def.attr:
            if attr.name in attrs:
                set_attr(node.attr[attr.name], attr.type, attrs[attr.name])
            elif attr.HasField("default_value"):
                node.attr[attr.name].CopyFrom(attr.default_value)
        out = op_def.output_arg[0] if op_def.output_arg else None
        dtype = tf.as_dtype(out.type) if out and out.type else tf.as_dtype(node.attr[out.type_attr].type) if out and out.type_attr else tf.float32
        return name, dtype


def answer_of(graph):
    """What TensorFlow says; called in a child."""
    resource.setrlimit(resource.RLIMIT_AS, (24 << 30, 24 << 30))
    signal.alarm(SECONDS)
    with tf.Graph().as_default() as g:
        try:
            tf.import_graph_def(graph, name="")
            with tf.Session(graph=g, config=tf.ConfigProto(operation_timeout_in_ms=3000, intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)) as s:
                s.run(g.get_operation_by_name("x"))
        except tf.errors.OpError as e:
            return CODES.get(e.error_code, str(e.error_code)), e.message
        except ValueError as e:
            return "INVALID_ARGUMENT", str(e)
    return "OK", ""


def ask(graph):
    """The same in a process of its own."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        code, text = answer_of(graph)
        os.write(write, (code + "\n" + text[:300]).encode())
        os._exit(0)
    os.close(write)
    text = b""
    while chunk := os.read(read, 4096):
        text += chunk
    os.close(read)
    _, status = os.waitpid(pid, 0)
    if status:
        return "DIED", "status %d" % status
    code, _, message = text.decode(errors="replace").partition("\n")
    return code, message


def main():
    out, tally = bytearray(), {}
    for name, op, inputs, attrs in ROWS:
        builder = Builder()
        builder.node("x", op, inputs, attrs)
        code, message = ask(builder.graph)
        if "-v" in sys.argv:
            print("%-18s %s: %s" % (code, name, message.replace("\n", " ")[:140]), flush=True)
        tally[code] = tally.get(code, 0) + 1
        x = builder.graph.node[-1]
        x.attr["_name"].s = name.encode()
        x.attr["_expect"].s = code.encode()
        data = builder.graph.SerializeToString(deterministic=True)
        out += b"\x0a" + _VarintBytes(len(data)) + data
    (ROOT / "tests/ops/advisories.bin").write_bytes(bytes(out))
    print("%d patterns, %d bytes: %s" % (len(ROWS), len(out), tally))


if __name__ == "__main__":
    main()
