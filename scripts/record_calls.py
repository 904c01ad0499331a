#!/usr/bin/env python3
"""Records tests/ops/calls.bin: for every op of the golden cases and op units a few valid calls, which tests/ops/malformed_test.c then makes malformed.

A call is a GraphDef with one node "x" of the op. Its inputs are constants with the values they had in the golden case when TensorFlow ran it; handles
and variants come from copies of the nodes that made them. The file is a message with one field, 1: the GraphDefs.
"""
import json
import os
import pathlib
import struct
import sys
import tempfile

os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", TF_ENABLE_ONEDNN_OPTS="0", CUDA_VISIBLE_DEVICES="")
ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/golden"))

import tensorflow.compat.v1 as tf  # noqa: E402
from google.protobuf.internal.encoder import _VarintBytes  # noqa: E402
from tensorflow.core.framework import graph_pb2, tensor_pb2  # noqa: E402

import golden_case  # noqa: E402

CALLS_PER_OP = 2
MAX_BYTES = 4000
MAX_DEPTH = 8
SKIPPED = {"Const", "Placeholder", "NoOp"}
HANDLES = (tf.resource, tf.variant)


class Unusable(Exception):
    """A node whose inputs cannot be had."""


def is_handle(tensor):
    return tensor.dtype.base_dtype in HANDLES


def must_copy(tensor):
    """Values that only the node itself can give: handles, references, and what orders the use of a handle."""
    op = tensor.op
    return is_handle(tensor) or tensor.dtype._is_ref_dtype or any(is_handle(t) for t in op.inputs)


class Recorder:
    """Makes one call out of one node."""

    def __init__(self, case, values):
        self.case, self.values = case, values
        self.out = graph_pb2.GraphDef()
        self.made = {}

    def node_of(self, op, name, depth):
        if depth > MAX_DEPTH:
            raise Unusable("deep")
        inputs = [self.input_of(t, depth + 1) for t in op.inputs]
        node = self.out.node.add()
        node.CopyFrom(op.node_def)
        node.name = name
        node.device = ""
        del node.input[:]
        node.input.extend(inputs)
        for attr in ("_class", "_output_shapes"):
            node.attr.pop(attr, None)
        return node

    def input_of(self, tensor, depth):
        key = tensor.name
        if key not in self.made:
            name = "n%d" % len(self.made)
            self.made[key] = name
            if must_copy(tensor):
                same = self.made.get("op:" + tensor.op.name)
                if not same:
                    self.made["op:" + tensor.op.name] = same = name
                    self.node_of(tensor.op, name, depth)
                index = tensor.value_index
                self.made[key] = same if index == 0 else "%s:%d" % (same, index)
            else:
                self.constant(name, tensor)
        return self.made[key]

    def constant(self, name, tensor):
        if tensor.name not in self.values:
            raise Unusable("no value of " + tensor.name)
        node = self.out.node.add(name=name, op="Const")
        value = tf.make_tensor_proto(self.values[tensor.name], dtype=tensor.dtype)
        node.attr["dtype"].type = tensor.dtype.base_dtype.as_datatype_enum
        node.attr["value"].tensor.CopyFrom(value)

    def copy_functions(self):
        """Those the call needs: their names stand in it."""
        added = True
        while added:
            added, text = False, self.out.SerializeToString()
            have = {f.signature.name for f in self.out.library.function}
            for f in self.case.library.function:
                if f.signature.name not in have and f.signature.name.encode() in text:
                    self.out.library.function.add().CopyFrom(f)
                    added = True

    def record(self, op):
        self.node_of(op, "x", 0)
        self.copy_functions()
        self.out.versions.CopyFrom(self.case.versions)
        if self.out.ByteSize() > MAX_BYTES * (1 + 4 * len(self.out.library.function)):
            raise Unusable("large")
        return self.out


def wanted_values(ops):
    """Names of the tensors whose values the calls may need."""
    tensors = {}
    stack, seen = list(ops), set()
    while stack:
        op = stack.pop()
        if op.name in seen:
            continue
        seen.add(op.name)
        for t in op.inputs:
            if must_copy(t):
                stack.append(t.op)
            else:
                tensors[t.name] = t
    return tensors


def values_of(case, session, tensors, feeds_list):
    values = {}
    for feeds in feeds_list:
        try:
            left = {n: t for n, t in tensors.items() if n not in values}
            values.update(session.run(left, feeds))
        except Exception:
            pass
        for name, tensor in tensors.items():
            if name in values:
                continue
            try:
                values[name] = feeds[name] if name in feeds else session.run(tensor, feeds)
            except Exception:
                pass
    return values


class GoldenCase:
    """A golden case: its graph, and what its steps feed; run() takes it through its steps."""

    def __init__(self, name, tmp):
        self.case = golden_case.Case(str(ROOT / "tests/golden/cases"), name)
        self.graph = self.case.graph
        self.replace = {"@TMP@": tmp, "@DATA@": golden_case.DATA}
        feeds = [{n: golden_case.decode(self.case.json["tensors"][t], self.replace) for n, t in s["feeds"].items()} for s in self.case.json["steps"]]
        self.feeds = [{n: v.item() if v.dtype == object and not v.shape else v for n, v in f.items()} for f in feeds]

    def run(self, session):
        for step in self.case.json["steps"]:
            try:
                self.case.run(session, step, self.replace)
            except Exception:
                pass


class OpUnit:
    """The same of a unit of tests/golden/ops: a JSON text, a GraphDef, the tensors."""

    def __init__(self, records):
        self.json = json.loads(records[0])
        tensors, at = [], 0
        while at < len(records[2]):
            size = struct.unpack_from("<I", records[2], at)[0]
            tensors.append(tf.make_ndarray(tensor_pb2.TensorProto.FromString(records[2][at + 4:at + 4 + size])))
            at += 4 + size
        self.graph = tf.Graph()
        with self.graph.as_default():
            tf.import_graph_def(graph_pb2.GraphDef.FromString(records[1]), name="")
        self.feeds = [{n: tensors[t] for n, t in s.get("feeds", {}).items()} for s in self.json["steps"]]

    def run(self, session):
        for step, feeds in zip(self.json["steps"], self.feeds):
            try:
                session.run([step["fetches"], step.get("targets", [])], feeds)
            except Exception:
                pass


def calls_of(case, counts):
    graph_def = case.graph.as_graph_def()
    case.library, case.versions = graph_def.library, graph_def.versions
    chosen, here = [], {}
    for op in case.graph.get_operations():
        kinds = here.setdefault(op.type, set())
        kind = str(sorted((k, str(v)) for k, v in op.node_def.attr.items() if not k.startswith("_")))
        if op.type in SKIPPED or counts.get(op.type, 0) + len(kinds) >= CALLS_PER_OP or kind in kinds:
            continue
        kinds.add(kind)
        chosen.append(op)
    if not chosen:
        return
    config = tf.ConfigProto(isolate_session_state=True, operation_timeout_in_ms=700, intra_op_parallelism_threads=1, inter_op_parallelism_threads=4)
    with tf.Session(graph=case.graph, config=config) as session:
        case.run(session)
        values = values_of(case, session, wanted_values(chosen), [{}, *case.feeds])
    for op in chosen:
        try:
            call = Recorder(case, values).record(op)
        except Unusable:
            continue
        counts[op.type] = counts.get(op.type, 0) + 1
        yield call


def sources(counts):
    with tempfile.TemporaryDirectory() as tmp:
        for name in golden_case.names(str(ROOT / "tests/golden/cases")):
            if not name.startswith("traj_"):  # whole trainings: ops that other cases have, and some wait for each other
                yield GoldenCase(name, tmp)
    for path in sorted((ROOT / "tests/golden/ops").glob("*.units")):
        flat = list(tf.io.tf_record_iterator(str(path), tf.io.TFRecordOptions(compression_type="ZLIB")))
        for i in range(0, len(flat), 3):
            if all(counts.get(op, 0) >= CALLS_PER_OP for op in json.loads(flat[i])["ops"]):
                continue
            try:
                unit = OpUnit(flat[i:i + 3])
            except (ValueError, tf.errors.OpError):  # a call that the client refuses to build: there are others of the op
                continue
            yield unit


def main():
    counts, out, total = {}, bytearray(), 0
    os.chdir(tempfile.mkdtemp())  # some cases write files
    for source in sources(counts):
        for call in calls_of(source, counts):
            data = call.SerializeToString(deterministic=True).replace(golden_case.DATA.encode(), b"." * len(golden_case.DATA))
            out += b"\x0a" + _VarintBytes(len(data)) + data
            total += 1
    (ROOT / "tests/ops/calls.bin").write_bytes(bytes(out))
    print("%d calls of %d ops, %d bytes" % (total, len(counts), len(out)))


if __name__ == "__main__":
    main()
