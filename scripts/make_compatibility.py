#!/usr/bin/env python3
"""Writes docs/compatibility.md: every op of the installed TensorFlow, and what Rill runs of it; --check only compares."""
import json
import os
import pathlib
import struct
import subprocess
import sys
import zlib

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"

import tensorflow as tf
from tensorflow.core.framework import op_def_pb2, types_pb2
from tensorflow.python.client import pywrap_tf_session
from tensorflow.python.framework import kernels

ROOT = pathlib.Path(__file__).resolve().parents[1]
FILE = ROOT / "docs/compatibility.md"
HEAD = """# Compatibility: ops

Made by `scripts/make_compatibility.py` from `rill ops` and the registry of TensorFlow {version}; do not edit.

Rill runs {run} of TensorFlow's {all} ops{partly}. {no_kernel} of the others have no CPU kernel in TensorFlow either that a graph could ask for (TPU, GPU, `_Mkl...` of its own
optimiser, tests of TensorFlow itself); of those with one, Rill lacks {xla} of XLA's own (`Xla...`) and these {rest}:

{names}

- **Rill**: the types of its CPU kernel; `any` where one kernel serves every type that makes sense for the op; empty where Rill lacks the op.
- **TensorFlow's CPU has also**: types that TensorFlow's CPU kernels have and Rill's lacks.
- **Tested by**: how many types and steps of the op `tests/golden/ops_test.c` replays against what TensorFlow gave (values, error codes, gradients), or what else tests it.
- A graph may contain ops that Rill lacks: only running one fails. Ops that begin with `_` are made by runtimes, not by programs.

| op | Rill | TensorFlow's CPU has also | tested by |
|---|---|---|---|
"""


def type_name(number):
    return types_pb2.DataType.Name(number)[3:].lower()


def rill_ops():
    out = subprocess.run([ROOT / "build" / os.environ.get("MODE", "release") / "rill", "ops"], check=True, capture_output=True, text=True).stdout
    return {line.split()[0]: line.split()[1:] for line in out.splitlines()}


def tensorflow_ops():
    buffer = pywrap_tf_session.TF_GetAllOpList()
    return {op.name: op for op in op_def_pb2.OpList.FromString(pywrap_tf_session.TF_GetBuffer(buffer)).op}


def cpu_types(known):
    """Types of TensorFlow's CPU kernels by op: the attribute T where there is one, else the only one the kernels differ in."""
    found = {}
    for kernel in kernels.get_all_registered_kernels().kernel:
        if kernel.device_type != "CPU" or kernel.label or kernel.op not in known:
            continue
        by_attr = found.setdefault(kernel.op, {})
        for c in kernel.constraint:
            by_attr.setdefault(c.name, set()).update(c.allowed_values.list.type)
    types = {}
    for op, by_attr in found.items():
        attr = "T" if "T" in by_attr else next(iter(by_attr)) if len(by_attr) == 1 else None
        allowed = next((set(a.allowed_values.list.type) for a in known[op].attr if a.name == attr), set())
        numbers = by_attr.get(attr, set())
        types[op] = {type_name(t) for t in (numbers & allowed if allowed else numbers)}
    return types


def units():
    """The JSON of every unit of the recorded op cases, see tests/golden/README.md."""
    for path in sorted((ROOT / "tests/golden/ops").glob("*.units")):
        data = zlib.decompress(path.read_bytes())
        at = number = 0
        while at < len(data):
            size = struct.unpack_from("<Q", data, at)[0]
            if number % 3 == 0:
                yield json.loads(data[at + 12:at + 12 + size])
            at += 16 + size
            number += 1


def tested_by():
    """A text for every op that has a test."""
    types, steps = {}, {}
    for unit in units():
        for op in unit["ops"]:
            types.setdefault(op, set()).add(unit["type"])
            steps[op] = steps.get(op, 0) + len(unit["steps"])
    found = {}
    for op in types:
        count = len(types[op] - {""})
        found[op] = f"{steps[op]} cases" + (f", {count} type{'s' if count > 1 else ''}" if count else "")
    for line in (ROOT / "tests/golden/ops/elsewhere.txt").read_text().splitlines():
        if not line.startswith("#"):
            op, path, _ = line.split(" ", 2)
            found[op] = f"[{path.rsplit('/', 1)[1]}](../{path})"
    return found


def missing(names, on_cpu):
    """What TensorFlow has and Rill lacks, by kind."""
    with_kernel = sorted((n for n in names if n in on_cpu), key=str.lower)
    xla = [n for n in with_kernel if n.lstrip("_").startswith("Xla")]
    rest = [n for n in with_kernel if n not in xla]
    return {"no_kernel": len(names) - len(with_kernel), "xla": len(xla), "rest": len(rest), "names": ", ".join(rest)}


def row(name, types, reference, test):
    if types is None or types == ["*"]:
        more = []
    else:
        more = sorted(reference - set(types)) if reference & set(types) else []
    cells = [name, "" if types is None else "any" if types == ["*"] else ", ".join(types), ", ".join(more), test if types is not None else ""]
    return "| " + " | ".join(cells).replace("|  |", "| |").replace("|  |", "| |").rstrip() + " |", bool(more)


def text():
    rill, known = rill_ops(), tensorflow_ops()
    reference = cpu_types(known)
    tests = tested_by()
    rows, lacking = zip(*[row(name, rill.get(name), reference.get(name, set()), tests.get(name, "")) for name in sorted(known, key=str.lower)])
    run = sum(name in rill for name in known)
    part = sum(lacking)
    partly = f", {part} of them with fewer types than TensorFlow" if part else ""
    own = sorted(set(rill) - set(known))
    tail = f"\nRill's own, or no longer in TensorFlow's registry: {', '.join(own)}.\n" if own else ""
    lacks = missing([name for name in known if name not in rill], reference)
    return HEAD.format(version=tf.__version__, run=run, all=len(known), partly=partly, **lacks) + "\n".join(rows) + "\n" + tail


def main():
    wanted = text()
    if sys.argv[1:] == ["--check"]:
        if FILE.exists() and FILE.read_text() == wanted:
            print("docs/compatibility.md is up to date")
            return
        sys.exit("docs/compatibility.md is out of date: run .venv/bin/python scripts/make_compatibility.py")
    FILE.write_text(wanted)
    print(wanted.splitlines()[4])


main()
