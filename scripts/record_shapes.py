#!/usr/bin/env python3
"""Records what TensorFlow infers of shapes: for every op of Rill a few nodes with inputs of known, partly known and unknown shapes.

usage: record_shapes.py [--all] [--seed N] [--out FILE] [OP...], record_shapes.py --graphs FILE
Walks from inputs of which nothing is known to inputs of which all is, one step at a time, and keeps the steps that say something new
(--all: every step). Writes tests/shapes/cases/ops.txt. With --graphs: the shapes of every node of the golden graphs, tests/shapes/cases/graphs.txt. Both formats are
told in tests/shapes/README.md."""
import argparse
import glob
import os
import random
import subprocess
import sys

os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "scripts"))

import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.core.framework import attr_value_pb2, graph_pb2, types_pb2
from tensorflow.python.framework import op_def_registry

import shape_attrs

INTEGERS = (types_pb2.DT_INT32, types_pb2.DT_INT64)
NUMBERS = INTEGERS + (types_pb2.DT_FLOAT, types_pb2.DT_DOUBLE)
SIZES = (1, 2, 3, 4, 6)


class Input:
    """One input: where it comes from (p placeholder, c constant, v resource variable, r reference variable, l tensor list), and what is known of it."""

    def __init__(self, kind, dtype, shape=None, value=None):
        self.kind, self.dtype, self.shape, self.value = kind, dtype, shape, value

    def text(self):
        shape = "*" if self.shape is None else "[" + ",".join("?" if d < 0 else str(d) for d in self.shape) + "]"
        value = "" if self.value is None else "=" + ",".join("%g" % v for v in self.value)
        return "%s%d:%s%s" % (self.kind, self.dtype, shape, value)

    def add_to(self, graph, name):
        node = graph.node.add(name=name)
        if self.kind == "c":
            node.op = "Const"
            node.attr["dtype"].type = self.dtype
            array = np.array(self.value, tf.as_dtype(self.dtype).as_numpy_dtype).reshape(self.shape)
            node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(array))
            return
        if self.kind == "l":
            node.op = "TensorListReserve"
            shape = self.shape
            Input("c", types_pb2.DT_INT32, [] if shape is None else [len(shape)], [-1] if shape is None else shape).add_to(graph, name + "s")
            Input("p", types_pb2.DT_INT32, []).add_to(graph, name + "n")
            node.input.extend([name + "s", name + "n"])
            node.attr["element_dtype"].type = self.dtype
            node.attr["shape_type"].type = types_pb2.DT_INT32
            return
        node.op = {"p": "Placeholder", "v": "VarHandleOp", "r": "VariableV2"}[self.kind]
        node.attr["dtype"].type = self.dtype
        shape_attrs.put_shape(node.attr["shape"].shape, self.shape)


def producer(op):
    """The version of GraphDef to use: the newest that has the op."""
    ended = op_def_registry.get(op).deprecation.version
    return ended - 1 if ended else tf.version.GRAPH_DEF_VERSION


def infer(op, attrs, inputs):
    """The shapes of the outputs as text, "!" for an error, None when TensorFlow failed otherwise."""
    graph = graph_pb2.GraphDef()
    graph.versions.producer = producer(op)
    for i, item in enumerate(inputs):
        item.add_to(graph, "i%d" % i)
    node = graph.node.add(name="node", op=op)
    node.input.extend("i%d" % i for i in range(len(inputs)))
    for name, value in attrs.items():
        node.attr[name].CopyFrom(value)
    with tf.Graph().as_default() as g:
        try:
            tf.import_graph_def(graph, name="")
        except ValueError as e:
            infer.message = str(e)
            return "!"
        except Exception as e:
            infer.message = repr(e)
            return None
        try:
            outputs = g.get_operation_by_name("node").outputs
            shapes = [o.shape for o in outputs]
        except ValueError:  # a negative dimension, which nobody could use
            return None
        return " ".join(shape_text(s) for s in shapes)


def signature(op_def, attrs):
    """(dtype, is_ref) of every input."""
    types = []
    for arg in op_def.input_arg:
        if arg.type_list_attr:
            types += [(t, False) for t in attrs[arg.type_list_attr].list.type]
            continue
        dtype = arg.type or attrs[arg.type_attr].type
        types += [(dtype, arg.is_ref)] * (attrs[arg.number_attr].i if arg.number_attr else 1)
    return types


def first_input(op, dtype, is_ref, rng):
    if is_ref:
        return Input("r", dtype)
    if dtype == types_pb2.DT_RESOURCE and shape_attrs.takes_variable(op) and rng.random() < 0.9:
        return Input("v", types_pb2.DT_FLOAT)
    if dtype == types_pb2.DT_VARIANT and op.startswith("TensorList") and rng.random() < 0.7:
        return Input("l", types_pb2.DT_FLOAT)
    return Input("p", dtype)


def known_size(shape):
    return None if shape is None or any(d < 0 for d in shape) else int(np.prod(shape, dtype=np.int64))


def refine(inputs, rng):
    """The inputs with one thing more known."""
    i = rng.randrange(len(inputs))
    old = inputs[i]
    new = Input(old.kind, old.dtype, old.shape, old.value)
    others = [x.shape for x in inputs if x is not old and x.shape is not None]
    sizes = [d for s in others for d in s if d > 0] or SIZES
    if old.kind == "c" or (old.dtype in NUMBERS and old.kind == "p" and known_size(old.shape) in range(0, 9) and rng.random() < 0.8):
        n = known_size(old.shape)
        low, high = rng.choice(((0, 3), (-1, 2), (1, 4), (1, 2), (-3, 5), (0, 0), (2, 12)))
        values = [rng.randint(low, high) for _ in range(n)]
        if rng.random() < 0.15:
            values = rng.sample(range(n), n)
        new.kind, new.value = "c", values
    elif old.shape is None:
        if others and rng.random() < 0.3:
            new.shape = list(rng.choice(others))
        else:
            rank = rng.choice((0, 0, 1, 1, 1, 2, 2, 3, 4, 4, 5))
            new.shape = [-1 if rng.random() < 0.4 else rng.choice(SIZES) for _ in range(rank)]
    elif -1 in old.shape:
        at = rng.choice([k for k, d in enumerate(old.shape) if d < 0])
        new.shape = list(old.shape)
        new.shape[at] = rng.choice(sizes if rng.random() < 0.6 else SIZES + (0, 8))
    else:
        return None
    return inputs[:i] + [new] + inputs[i + 1:]


def walk(op, attrs, types, rng, steps):
    """Pairs of inputs and what TensorFlow infers from them."""
    inputs = [first_input(op, t, r, rng) for t, r in types]
    result = infer(op, attrs, inputs)
    if result is None:
        return
    yield inputs, result
    if not inputs or result == "!":
        return
    for _ in range(steps):
        tried = refine(inputs, rng)
        if tried is None:
            continue
        result = infer(op, attrs, tried)
        if result is None:
            continue
        yield tried, result
        if result != "!":
            inputs = tried


def chosen(cases, rng, good=5, bad=3):
    """Those that say most: different results, the latest first; and a few errors."""
    kept, seen, errors = [], set(), []
    for inputs, result in reversed(cases):
        if result == "!":
            errors.append((inputs, result))
        elif result not in seen and len(kept) < good:
            seen.add(result)
            kept.append((inputs, result))
    return kept + rng.sample(errors, min(bad, len(errors)))


def attr_text(attrs):
    return " ".join("%s=%s" % (name, value.SerializeToString().hex()) for name, value in sorted(attrs.items()))


def record(op, rng, everything):
    op_def = op_def_registry.get(op)
    if op_def is None:
        return
    variants, walks, steps = (4, 3, 30) if everything else (3, 2, 24)
    done = set()
    for variant in range(variants):
        attrs = shape_attrs.choose(op_def, rng, variant)
        if attrs is None or attr_text(attrs) in done:
            continue
        done.add(attr_text(attrs))
        types = signature(op_def, attrs)
        cases = [case for _ in range(walks if types else 1) for case in walk(op, attrs, types, rng, min(steps, 4 + 8 * len(types)))]
        cases = list({" ".join(x.text() for x in inputs): (inputs, result) for inputs, result in cases}.values())
        if not everything:
            cases = chosen(cases, rng)
        if cases:
            yield "%s@%d %s" % (op, producer(op), attr_text(attrs))
        for inputs, result in cases:
            yield " %s | %s" % (" ".join(x.text() for x in inputs), result)


def record_apart(op, seed, everything):
    """The lines of one op, recorded in a process of its own: TensorFlow ends it on some inputs, then another seed is tried."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read_end)
        with os.fdopen(write_end, "w", buffering=1) as out:
            for line in record(op, random.Random("%d %s" % (seed, op)), everything):
                out.write(line.rstrip() + "\n")
        os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end) as lines:
        text = lines.read()
    if os.waitpid(child, 0)[1] == 0:
        return text
    print("TensorFlow ended while it inferred", op, file=sys.stderr)
    return record_apart(op, seed + 1000, everything) if seed < 20000 else text


def shape_text(shape):
    return Input("", 0, None if shape.rank is None else [-1 if d is None else d for d in shape.as_list()]).text().split(":")[1]


def record_graph(path):
    """One line: the file, then for each node in order its outputs' shapes; nodes are parted by ";"."""
    graph = graph_pb2.GraphDef()
    with open(path, "rb") as f:
        graph.ParseFromString(f.read())
    with tf.Graph().as_default() as g:
        tf.import_graph_def(graph, name="")
        nodes = [" ".join(shape_text(o.shape) for o in g.get_operation_by_name(n.name).outputs) for n in graph.node]
    return "%s;%s" % (os.path.relpath(path, ROOT), ";".join(nodes))


def record_graphs(out):
    """The golden graphs, and those beside the recording."""
    for path in sorted(glob.glob(os.path.join(ROOT, "tests/golden/*/*.pb")) + glob.glob(os.path.join(os.path.dirname(out.name), "*.pb"))):
        out.write(record_graph(path) + "\n")


def sections(path):
    """What a file has, by op, so that some ops can be recorded without the others."""
    found, name = {}, None
    if os.path.exists(path):
        with open(path) as lines:
            for line in lines:
                if not line.startswith(" "):
                    name = line.split("@")[0]
                found[name] = found.get(name, "") + line
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", default=os.path.join(ROOT, "tests/shapes/cases/ops.txt"))
    parser.add_argument("--graphs", metavar="FILE", help="record the golden graphs instead")
    parser.add_argument("ops", nargs="*")
    args = parser.parse_args()
    names = args.ops
    if not names:
        listed = subprocess.run([os.path.join(ROOT, "build/release/rill"), "ops"], capture_output=True, text=True, check=True).stdout
        names = sorted(line.split()[0] for line in listed.splitlines())
    os.makedirs(os.path.dirname(args.out), exist_ok=True)
    if args.graphs:
        with open(args.graphs, "w") as out:
            record_graphs(out)
        return
    kept = sections(args.out) if args.ops else {}
    kept.update({name: record_apart(name, args.seed, args.all) for name in names})
    with open(args.out, "w") as out:
        for name in sorted(kept):
            out.write(kept[name])


if __name__ == "__main__":
    main()
