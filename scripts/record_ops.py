#!/usr/bin/env python3
"""Records the op cases: runs every op of scripts/op_cases on the installed TensorFlow, with every type of its CPU kernels, and
writes what it gave to tests/golden/ops/FAMILY.units.

usage: record_ops.py [--check] [--ops X,Y] [FAMILY...]
--check rewrites nothing: it says which units differ from the recording and ends with 1 if any does.
--ops records only these and keeps the other units of their families."""
import argparse
import json
import os
import struct
import subprocess
import sys
import time

if os.environ.get("PYTHONHASHSEED") != "0":  # the names of gradient nodes depend on the order of sets
    os.environ["PYTHONHASHSEED"] = "0"
    os.execv(sys.executable, [sys.executable, "-W", "ignore", *sys.argv])
ONEDNN = sys.argv[-1] == "onednn"  # that family alone needs it
os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", TF_ENABLE_ONEDNN_OPTS="1" if ONEDNN else "0", CUDA_VISIBLE_DEVICES="")
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDER = os.path.join(ROOT, "tests", "golden", "ops")

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import tensor_pb2

import op_cases
from op_cases import table, unit as units

FAILED = []
VERBOSE = bool(os.environ.get("V"))
OPTIONS = tf.io.TFRecordOptions(compression_type="ZLIB", compression_level=9)


def path_of(family):
    return os.path.join(FOLDER, family + ".units")


def read(family):
    """The recorded units: name and records of each."""
    if not os.path.exists(path_of(family)):
        return []
    flat = [r.numpy() for r in tf.data.TFRecordDataset(path_of(family), compression_type="ZLIB")] if tf.executing_eagerly() else \
        list(tf.compat.v1.io.tf_record_iterator(path_of(family), OPTIONS))
    return [flat[i:i + 3] for i in range(0, len(flat), 3)]


def write(family, all_records):
    os.makedirs(FOLDER, exist_ok=True)
    with tf.io.TFRecordWriter(path_of(family), OPTIONS) as f:
        for records in all_records:
            for r in records:
                f.write(r)


def name_of(records):
    return json.loads(records[0])["name"]


def record(family, chosen):
    """The new units of a family, by name; chosen: ops, or None for all."""
    definitions, kernels = table.load_op_defs(), table.load_kernels()
    new = {}
    for op, row in table.ROWS.items():
        if row.family != family or (chosen and op not in chosen):
            continue
        if op not in definitions:
            print(f"   {op} is not in TensorFlow {tf.__version__}")
            continue
        if VERBOSE:
            print(op, flush=True)
        try:
            new[op] = [u.records() for u in units.op_units(op, row, definitions[op], kernels.get(op, []))]
        except Exception as e:
            print(f"   {op}: its cases do not run: {type(e).__name__} {str(e)[:300]}")
            FAILED.append(op)
            continue
        if not new[op]:
            print(f"   {op}: TensorFlow's CPU runs none of its cases")
    for program in table.PROGRAMS:
        if program.family == family and (not chosen or program.name in chosen or set(program.ops) & set(chosen)):
            try:
                new[program.name] = [u.records() for u in units.program_units(program)]
            except Exception as e:
                print(f"   {program.name}: does not run: {type(e).__name__} {str(e)[:300]}")
                FAILED.append(program.name)
    return new


def tensors_of(packed):
    found, at = [], 0
    while at < len(packed):
        size = struct.unpack_from("<I", packed, at)[0]
        found.append(packed[at + 4:at + 4 + size])
        at += 4 + size
    return found


def close(a, b, tolerance):
    if a == b:
        return True
    a, b = (tf.make_ndarray(tensor_pb2.TensorProto.FromString(x)) for x in (a, b))
    if a.dtype != b.dtype or a.shape != b.shape or a.dtype.name not in tolerance:
        return False
    rtol, atol = tolerance[a.dtype.name]
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    return np.allclose(a.astype(wide), b.astype(wide), rtol=rtol, atol=atol, equal_nan=True)


def without_messages(text):
    """TensorFlow puts counters into some."""
    unit = json.loads(text)
    for step in unit["steps"]:
        step.pop("message", None)
    return unit


def same(old, new):
    if old[1] != new[1] or without_messages(old[0]) != without_messages(new[0]):
        return False
    tolerance = json.loads(old[0]).get("tolerance") or units.tolerances(None, None, None)
    a, b = tensors_of(old[2]), tensors_of(new[2])
    return len(a) == len(b) and all(close(x, y, tolerance) for x, y in zip(a, b))


def work(family, chosen, only_check):
    """Returns how many units differ from the recording."""
    began = time.time()
    new, old = record(family, chosen), {}
    for records in read(family):
        old.setdefault(name_of(records), []).append(records)
    differ = 0
    for name, made in new.items():
        before = old.get(name, [])
        wrong = sum(not same(a, b) for a, b in zip(before, made)) + abs(len(made) - len(before))
        if wrong and only_check:
            print(f"   {name}: {wrong} of {len(made)} units differ")
        differ += wrong
    if not only_check:
        if chosen:
            new = {**old, **new}
        write(family, [r for _, made in sorted(new.items()) for r in made])
    made = [json.loads(r[0]) for each in new.values() for r in each]
    print(f"{family}: {len({op for u in made for op in u['ops']})} ops, {len(made)} units, {sum(len(u['steps']) for u in made)} steps, "
          f"{differ} units differ, {os.path.getsize(path_of(family)) if os.path.exists(path_of(family)) else 0} bytes, "
          f"{time.time() - began:.0f} s", flush=True)
    return differ


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare only, rewrite nothing")
    parser.add_argument("--ops", help="only these ops or programs, separated by commas")
    parser.add_argument("families", nargs="*", help="none: all")
    arguments = parser.parse_args()
    tf.compat.v1.disable_eager_execution()
    tf.compat.v1.disable_control_flow_v2()
    op_cases.load()
    chosen = set(arguments.ops.split(",")) if arguments.ops else None
    families = arguments.families or table.FAMILIES
    if chosen:
        known = {r.family for op, r in table.ROWS.items() if op in chosen} | \
                {p.family for p in table.PROGRAMS if p.name in chosen or set(p.ops) & chosen}
        families = [f for f in families if f in known]
    differ = sum(work(f, chosen, arguments.check) for f in families if ONEDNN or f != "onednn")
    if "onednn" in families and not ONEDNN:
        flags = ["--check"] * arguments.check + (["--ops", arguments.ops] if chosen else [])
        differ += subprocess.call([sys.executable, "-W", "ignore", __file__, *flags, "onednn"])
    return 1 if FAILED or (differ and arguments.check) else 0


if __name__ == "__main__":
    sys.exit(main())
