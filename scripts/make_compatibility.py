#!/usr/bin/env python3
"""Writes docs/compatibility.md: every op of the installed TensorFlow, and what Rill runs of it; --check only compares."""
import os
import pathlib
import subprocess
import sys

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

Rill runs {run} of TensorFlow's {all} ops{partly}.

- **Rill**: the types of its CPU kernel; `any` where one kernel serves every type that makes sense for the op; empty where Rill lacks the op.
- **TensorFlow's CPU has also**: types that TensorFlow's CPU kernels have and Rill's lacks.
- A graph may contain ops that Rill lacks: only running one fails. Ops that begin with `_` are made by runtimes, not by programs.

| op | Rill | TensorFlow's CPU has also |
|---|---|---|
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


def row(name, types, reference):
    if types is None or types == ["*"]:
        return f"| {name} | {'any ' if types else ''}| |"
    more = sorted(reference - set(types)) if reference & set(types) else []
    return f"| {name} | {', '.join(types)} | {', '.join(more) + ' ' if more else ''}|"


def text():
    rill, known = rill_ops(), tensorflow_ops()
    reference = cpu_types(known)
    rows = [row(name, rill.get(name), reference.get(name, set())) for name in sorted(known, key=str.lower)]
    run = sum(name in rill for name in known)
    part = sum(not r.endswith("| |") for r in rows)
    partly = f", {part} of them with fewer types than TensorFlow" if part else ""
    own = sorted(set(rill) - set(known))
    tail = f"\nRill's own, or no longer in TensorFlow's registry: {', '.join(own)}.\n" if own else ""
    return HEAD.format(version=tf.__version__, run=run, all=len(known), partly=partly) + "\n".join(rows) + "\n" + tail


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
