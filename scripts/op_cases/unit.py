"""A unit: one graph and the steps TensorFlow ran on it; makes units from calls and programs, and writes them to a file.

A file is a compressed TFRecord file with three records for each unit: a JSON text, a GraphDef, and the tensors, each a
TensorProto after its length (4 bytes, little-endian). See tests/golden/README.md.
"""
import json
import os
import re
import shutil
import struct
import tempfile

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import graph_pb2
from tensorflow.python.framework import op_def_library, ops as framework_ops

from . import table

v1 = tf.compat.v1
DATA = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "tests", "golden", "data")
TIMEOUT_MS = 20000
RTOL = {"float32": 2e-5, "float64": 1e-9, "float16": 4e-3, "bfloat16": 3e-2, "complex64": 2e-5, "complex128": 1e-9}
ATOL = {"float32": 2e-6, "float64": 1e-12, "float16": 1e-3, "bfloat16": 1e-2, "complex64": 2e-6, "complex128": 1e-12}
GRADIENT_CALLS = 2  # with types other than float32


def config():
    c = v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1, operation_timeout_in_ms=TIMEOUT_MS)
    c.graph_options.rewrite_options.disable_meta_optimizer = True
    c.graph_options.optimizer_options.opt_level = v1.OptimizerOptions.L0
    return c


def tolerances(rtol, atol, double):
    """By type: what the op's row says for float32, scaled to the other types; else the defaults."""
    scale_r, scale_a = (rtol or RTOL["float32"]) / RTOL["float32"], (atol or ATOL["float32"]) / ATOL["float32"]
    found = {t: [RTOL[t] * max(1, min(scale_r, 0.2 / RTOL[t])), ATOL[t] * max(1, min(scale_a, 0.5 / ATOL[t]))] for t in RTOL}
    return {**found, "float64": [double, double]} if double else found


class Unit:
    def __init__(self, name, ops, types, attrs, primary, tolerance):
        self.json = {"name": name, "ops": ops, "type": primary or "", "types": types, "attrs": attrs, "steps": []}
        if any(tolerance):
            self.json["tolerance"] = tolerances(*tolerance)
        self.tensors, self.ids, self.graph = [], {}, b""

    def keep(self, value, dtype=None):
        value = np.array(value, object) if isinstance(value, bytes) else np.asarray(value)  # numpy's own strings lose a zero at the end
        proto = tf.make_tensor_proto(value, dtype=dtype or (tf.dtypes.as_dtype(value.dtype) if value.dtype != object else tf.string),
                                     shape=value.shape).SerializeToString(deterministic=True)
        if proto not in self.ids:
            self.ids[proto] = len(self.tensors)
            self.tensors.append(proto)
        return self.ids[proto]

    def run(self, session, feeds, fetches, targets=(), names_of_paths=None):
        """Runs a step and records it. The values, or None after an error. names_of_paths: see ProgramBuilder."""
        pairs = list((names_of_paths or {}).items())
        names, goals = [f.name for f in fetches], [t.name for t in targets]
        step = {"feeds": {k.name: self.keep(v) for k, v in feeds.items()}, "fetches": names}
        if goals:
            step["targets"] = goals
        try:
            values = session.run([list(fetches), list(targets)], {k: replace_bytes(v, pairs) if pairs else v for k, v in feeds.items()})[0]
            backward = [(new, old) for old, new in pairs]
            step["expect"] = [self.keep(replace_bytes(v, backward) if pairs else v, f.dtype.base_dtype if f.dtype.is_quantized else None) for f, v in zip(fetches, values)]
        except tf.errors.OpError as e:
            if "No OpKernel was registered" in str(e) or "has constraint on attr" in str(e) or "Could not find device for node" in str(e):
                raise Unsupported(str(e)) from None
            values = None
            step["code"] = e.error_code
            step["message"] = own_message(e.message)
        self.json["steps"].append(step)
        return values

    def records(self):
        tensors = b"".join(struct.pack("<I", len(t)) + t for t in self.tensors)
        return [json.dumps(self.json, separators=(",", ":")).encode(), self.graph, tensors]


class Unsupported(Exception):
    pass


def own_message(message):
    if "Node: " in message:
        message = message.rsplit("Node: ", 1)[1].split("\n", 1)[-1]
    message = message.removeprefix("Graph execution error:").lstrip()
    message = re.sub(r"0x[0-9a-f]+|_\d+_|(?<=Resource-)\d+", "_", message.split("\n\t [[")[0])  # what differs from run to run
    return re.sub(r"\S*rill-ops-\w+", "@TMP@", message).strip().encode("ascii", "replace").decode()[:120]


# ---- An op and its calls ----

def attr_key(call):
    shapes = [np.shape(x) if not isinstance(x, list) else [np.shape(y) for y in x] for x in call.inputs] if call.static else None
    consts = [np.asarray(call.inputs[i]).tolist() for i in call.const]
    counts = [[str(np.asarray(y).dtype) for y in x] if isinstance(x, list) else None for x in call.inputs]
    return repr((sorted(call.attrs.items(), key=lambda p: p[0]), shapes, call.const, consts, counts, call.outputs))


def text_of(attrs):
    return ", ".join(f"{k}={v!r}"[:80] for k, v in sorted(attrs.items()))


def default_of(attr):
    """The default of an attribute as a Python value."""
    value = attr.default_value
    kind = value.WhichOneof("value")
    if kind == "list":
        return next((list(f) for _, f in value.list.ListFields()), [])
    return tf.dtypes.as_dtype(value.type) if kind == "type" else getattr(value, kind)


def pretend_old(version):
    """Makes the default graph, still empty, one of an old version, which may have ops that are no longer allowed."""
    definition = graph_pb2.GraphDef()
    definition.versions.producer = version
    definition.node.add(name="old", op="NoOp")
    tf.import_graph_def(definition, name="")


class OpGraph:
    """Placeholders, the op, and its gradient with respect to the floating inputs."""

    def __init__(self, op, op_def, types, call, want_gradient):
        self.feeds, self.state, self.floating = [], [], []  # feeds: a placeholder, a list of them, or None for Const
        self.graph = tf.Graph()
        with self.graph.as_default():
            if op_def.HasField("deprecation"):
                pretend_old(op_def.deprecation.version - 1)
            arguments = {a.name: self.argument(i, a, types, call) for i, a in enumerate(op_def.input_arg)}
            attrs = {k: (tf.dtypes.as_dtype(v) if k in types else v) for k, v in {**types, **call.attrs}.items()}
            inferred = {a.type_attr for a in op_def.input_arg} | {a.number_attr for a in op_def.input_arg} | {a.type_list_attr for a in op_def.input_arg}
            attrs = {k: v for k, v in attrs.items() if k not in inferred}
            given = {a.name: default_of(a) for a in op_def.attr if a.HasField("default_value") and a.name not in inferred}
            op_def_library.apply_op(op, name="op", **arguments, **{**given, **attrs})
            self.op = self.graph.get_operation_by_name("op")
            self.outputs = [o for i, o in enumerate(self.op.outputs) if (call.outputs is None or i in call.outputs) and o.dtype not in (tf.resource, tf.variant) and not o.dtype._is_ref_dtype]
            self.reads = [v1.identity(s.outputs[0], name=f"read{i}") if s.type == "VariableV2" else
                          tf.raw_ops.ReadVariableOp(resource=s.outputs[0], dtype=s.get_attr("dtype"), name=f"read{i}")
                          for i, s, _ in self.state]
            self.gradient = self.make_gradient() if want_gradient and not self.state else None

    def argument(self, i, arg, types, call):
        if i >= len(call.inputs):
            raise ValueError(f"{self!r}: no value for input {arg.name}")
        value = call.inputs[i]
        if isinstance(value, list):
            self.feeds.append([self.placeholder(f"x{i}_{j}", v, call) for j, v in enumerate(value)])
            return list(self.feeds[-1])
        value = np.asarray(value)
        if arg.is_ref or (arg.type == tf.resource.as_datatype_enum):
            return self.variable(i, arg.is_ref, value)
        if i in call.const:
            self.feeds.append(None)
            return tf.constant(value, name=f"x{i}")
        self.feeds.append(self.placeholder(f"x{i}", value, call))
        return self.feeds[-1]

    def placeholder(self, name, value, call):
        value = np.asarray(value)
        dtype = tf.string if value.dtype == object else tf.dtypes.as_dtype(value.dtype)
        p = v1.placeholder(dtype, value.shape if call.static else None, name=name)
        if dtype.is_floating or dtype.is_complex:
            self.floating.append(p)
        return p

    def variable(self, i, is_ref, value):
        dtype = tf.string if value.dtype == object else tf.dtypes.as_dtype(value.dtype)
        p = v1.placeholder(dtype, None, name=f"x{i}")
        if is_ref:
            handle = tf.raw_ops.VariableV2(shape=None, dtype=dtype, name=f"v{i}")
            assign = v1.assign(handle, p, validate_shape=False, name=f"assign{i}").op
        else:
            handle = tf.raw_ops.VarHandleOp(dtype=dtype, shape=None, shared_name=f"v{i}", name=f"v{i}")
            assign = tf.raw_ops.AssignVariableOp(resource=handle, value=p, name=f"assign{i}")
        self.state.append((i, handle.op, assign))
        self.feeds.append(p)
        return handle

    def make_gradient(self):
        ys = [o for o in self.outputs if o.dtype.is_floating or o.dtype.is_complex]
        if not ys or not self.floating:
            return None
        try:
            framework_ops.get_gradient_function(self.op)
        except LookupError:
            return None
        if framework_ops.get_gradient_function(self.op) is None:
            return None
        dys = [v1.placeholder(y.dtype, None, name=f"dy{i}") for i, y in enumerate(ys)]
        try:
            found = tf.gradients(ys, self.floating, grad_ys=dys)
        except (LookupError, ValueError, TypeError, NotImplementedError, tf.errors.OpError, AttributeError, IndexError, AssertionError):
            return None
        fetches = []
        found = [g for g in found if not any(g is p for p in dys + self.floating)]  # the client would answer these itself
        for g in found:
            if isinstance(g, tf.IndexedSlices):
                fetches += [g.values, g.indices]
            elif g is not None:
                fetches.append(g)
        return (ys, dys, fetches) if fetches else None

    def feed(self, call, only=None):
        feeds = {}
        for i, (p, value) in enumerate(zip(self.feeds, call.inputs)):
            if p is None or (only is not None and i not in only):
                continue
            feeds.update(zip(p, value) if isinstance(p, list) else [(p, value)])
        return feeds


def run_call(unit, session, g, call, rng, with_gradient):
    if g.state:
        slots = [i for i, _, _ in g.state]
        if unit.run(session, g.feed(call, slots), [], [a for _, _, a in g.state]) is None:
            return
        rest = [i for i in range(len(call.inputs)) if i not in slots]
        unit.run(session, g.feed(call, rest), g.outputs, [] if g.outputs else [g.op])
        unit.run(session, {}, g.reads)
        return
    values = unit.run(session, g.feed(call), g.outputs, [] if g.outputs else [g.op])
    if values is None or not with_gradient or g.gradient is None:
        return
    by_output = dict(zip([o.name for o in g.outputs], values))
    ys, dys, fetches = g.gradient
    feeds = g.feed(call)
    for y, dy in zip(ys, dys):
        v = np.asarray(by_output[y.name])
        feeds[dy] = table.random_values(rng, v.shape, -2, 2, v.dtype)
    unit.run(session, feeds, fetches)


def op_units(op, row, op_def, rows):
    """The units of one op."""
    primary = table.primary_attr(op_def, rows, row.primary)
    for types in table.combinations(op_def, rows, row.types, primary):
        c = table.Context(op, op_def, types, primary)
        groups = {}
        for call in row.function(c):
            groups.setdefault(attr_key(call), []).append(call)
        made = 0
        for calls in groups.values():
            unit = Unit(op, [op], types, text_of(calls[0].attrs), types.get(primary), row.tolerance)
            wants = row.gradient and any(call.grad for call in calls) and (types.get(primary) == "float32" or made < GRADIENT_CALLS)
            g = OpGraph(op, op_def, types, calls[0], wants)
            unit.graph = g.graph.as_graph_def().SerializeToString(deterministic=True)
            try:
                with v1.Session(graph=g.graph, config=config()) as session:
                    for call in calls:
                        more = wants and call.grad and (types.get(primary) == "float32" or made < GRADIENT_CALLS)
                        run_call(unit, session, g, call, c.rng, more)
                        made += 1
            except Unsupported:
                continue
            yield unit


# ---- Programs ----

class ProgramBuilder:
    """Given to a program: it builds in the default graph, then calls run(). In fed and fetched strings @TMP@ stands for an empty
    directory of this program, @DATA@ for tests/golden/data."""

    def __init__(self, unit, graph, dtype, tmp):
        self.unit, self.graph, self.session, self.tmp = unit, graph, None, tmp
        self.rng = np.random.default_rng(7)
        self.rewrite = None  # for ops that TensorFlow has but no longer runs: puts them into the graph in place of their successor, which TensorFlow ran
        self.dtype = tf.dtypes.as_dtype(dtype or "float32")
        self.T = self.dtype.as_numpy_dtype

    def start(self):
        """The graph is complete."""
        self.graph.finalize()
        definition = self.graph.as_graph_def()
        if self.rewrite:
            self.rewrite(definition)
        self.unit.graph = definition.SerializeToString(deterministic=True)
        self.ops = ops_in(definition)
        self.session = v1.Session(graph=self.graph, config=config())

    def run(self, fetches=(), feeds=None, targets=()):
        if self.session is None:
            self.start()
        return self.unit.run(self.session, feeds or {}, list(fetches), list(targets), {b"@TMP@": self.tmp.encode(), b"@DATA@": DATA.encode()})

    def values(self, shape=(), low=-4, high=4, dtype=None):
        return table.random_values(self.rng, shape, low, high, self.T if dtype is None else dtype)

    def placeholder(self, name, dtype=None, shape=None):
        return v1.placeholder(dtype or self.dtype, shape, name=name)

    def run_each(self, calls):
        """Runs calls of ops one by one: calls(fed) yields name, op and arguments of each, and makes the arguments that are fed by fed(value, dtype)."""
        feeds, fetches = [], []

        def fed(value, dtype=np.float32):
            feeds.append((self.placeholder(f"x{len(feeds)}", dtype), np.array(value, dtype)))
            return feeds[-1][0]

        for name, op, arguments in calls(fed):
            getattr(tf.raw_ops, op)(name=name, **arguments)
            fetches.append(self.graph.get_tensor_by_name(name + ":0"))
        for out in fetches:
            self.run([out], {k: v for k, v in feeds if any(k is x for x in out.op.inputs)})


def program_units(program):
    for dtype in program.types:
        unit = Unit(program.name, program.ops, {"T": dtype} if dtype else {}, "", dtype, program.tolerance)
        graph = tf.Graph()
        tmp = tempfile.mkdtemp(prefix="rill-ops-")
        try:
            with graph.as_default():
                if program.version:
                    pretend_old(program.version)
                builder = ProgramBuilder(unit, graph, dtype, tmp)
                program.function(builder)
                builder.session.close()
            absent = set(program.ops) - builder.ops - IMPLIED
            if absent:
                raise ValueError(f"{program.name} names ops that its graph does not have: {sorted(absent)}")
        finally:
            shutil.rmtree(tmp)
        yield unit


IMPLIED = {"_Arg", "_Retval", "_FunctionCall"}  # what functions become


def ops_in(definition):
    return {n.op for n in definition.node} | {n.op for f in definition.library.function for n in f.node_def}


def replace_bytes(value, pairs):
    """In every string of a value."""
    def of_one(x):
        for old, new in pairs:
            x = x.replace(old, new)
        return x
    if isinstance(value, bytes):
        return of_one(value)
    value = np.asarray(value)
    if value.dtype != object:
        return value
    out = np.empty(value.shape, object)
    for i in np.ndindex(value.shape):
        out[i] = of_one(value[i] if isinstance(value[i], bytes) else value[i].encode())
    return out
