#!/usr/bin/env python3
"""Records the golden cases anew: runs their graphs and feeds on the installed TensorFlow and rewrites what they expect.

usage: record_golden.py [--check] [NAME-SUBSTRING...]
--check rewrites nothing: it says what TensorFlow gives now that differs from the recording, and ends with 1 if anything does.
Cases with the tag "onednn" use kernels that only oneDNN brings: a second process with --onednn runs them."""
import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile

os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", TF_ENABLE_ONEDNN_OPTS="1" if "--onednn" in sys.argv else "0", CUDA_VISIBLE_DEVICES="")
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(ROOT, "tests"), os.path.join(ROOT, "tests", "golden")]

import tensorflow.compat.v1 as tf

import golden_case
from cluster_process import Cluster

LOCAL = os.path.join(golden_case.HERE, "cases")
DIST = os.path.join(golden_case.HERE, "dist")


def preview(value):
    """The first elements, for people who read the file."""
    flat = golden_case.as_array(value).reshape(-1)[:6]
    if flat.dtype == object:
        return [golden_case.as_bytes(x).decode("latin1")[:40] for x in flat[:4]]
    return [repr(x) if isinstance(x, float) and not golden_case.np.isfinite(x) else x
            for x in (x if isinstance(x, (bool, int, float)) else str(x) for x in flat.tolist())]


def same(a, b):
    keys = ("dtype", "shape", "b64", "strings")
    return [a.get(k) for k in keys] == [b.get(k) for k in keys]


class Recorder:
    """The new recording of one case."""

    def __init__(self, case):
        self.case = case
        self.json = dict(case.json, tensors={}, steps=[])

    def keep(self, value, old_id=None):
        """Stores a value under its old id when it is unchanged, else under a new one."""
        encoded = golden_case.encode(value)
        known = self.case.json["tensors"].get(old_id)
        if known and same(known, encoded):
            self.json["tensors"][old_id] = known
            return old_id
        encoded["preview"] = preview(value)
        new_id = hashlib.sha1(json.dumps(encoded, sort_keys=True).encode()).hexdigest()[:10]
        self.json["tensors"][new_id] = encoded
        return new_id

    def step(self, session, old, replace):
        new = {k: v for k, v in old.items() if k not in ("expect", "error")}
        for tensor in old["feeds"].values():
            self.json["tensors"][tensor] = self.case.json["tensors"][tensor]
        try:
            values = self.case.run(session, old, replace)
            if "expect" in old or "error" in old:
                before = old.get("expect", [None] * len(values))
                new["expect"] = [self.keep(v, b) for v, b in zip(values, before)]
        except tf.errors.OpError as e:
            new["error"] = self.error(e, old.get("error", {}))
        self.json["steps"].append(new)

    def error(self, e, old):
        """Over grpc one code may differ from that of a session in process: then `code` is kept as it was found there."""
        code = old["code"] if old.get("local_code") == e.error_code else e.error_code
        contains = old.get("contains", "")
        return {"code": code, "local_code": e.error_code, "name": type(e).__name__,
                "contains": contains if contains in e.message else "", "message": own_message(e.message)}

    def write(self):
        with open(self.case.path + ".json", "w") as f:
            json.dump(self.json, f, indent=0)


def own_message(message):
    """What the kernel said, without the client's stack trace."""
    if "Node: " in message:
        message = message.rsplit("Node: ", 1)[1].split("\n", 1)[1]
    return message.split("\n\t [[")[0].strip()[:400]


def record(folder, name, target):
    tmp = tempfile.mkdtemp(prefix="rill-golden-")
    recorder = Recorder(golden_case.Case(folder, name))
    try:
        with recorder.case.session(target) as session:
            for step in recorder.case.json["steps"]:
                recorder.step(session, step, {"@TMP@": tmp, "@DATA@": golden_case.DATA})
    finally:
        shutil.rmtree(tmp)
    recorder.write()


def check(folder, name, target):
    tmp = tempfile.mkdtemp(prefix="rill-golden-")
    try:
        return golden_case.Case(folder, name).check(target, tmp)
    finally:
        shutil.rmtree(tmp)


def work(folder, chosen, target, only_check):
    """Returns how many cases differ."""
    differ = 0
    for name in chosen:
        problems = check(folder, name, target)
        differ += bool(problems)
        if not only_check:
            record(folder, name, target)
        print("%s %s" % ("differs" if problems else "same", name), *problems[:3], sep="\n      ", flush=True)
    return differ


def needs_onednn(name):
    with open(os.path.join(LOCAL, name + ".json")) as f:
        return "onednn" in json.load(f)["tags"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare only, rewrite nothing")
    parser.add_argument("--onednn", action="store_true", help="only the cases that need oneDNN")
    parser.add_argument("names", nargs="*", help="parts of the names of the cases; none: all")
    arguments = parser.parse_args()
    local, dist = ([n for n in golden_case.names(folder) if not arguments.names or any(a in n for a in arguments.names)]
                   for folder in (LOCAL, DIST))
    other = [n for n in local if needs_onednn(n) != arguments.onednn]
    local = [n for n in local if n not in other]
    differ = work(LOCAL, local, "", arguments.check)
    if dist and not arguments.onednn:
        with Cluster({"ps": ["tf", "tf"], "worker": ["tf", "tf"]}) as cluster:
            differ += work(DIST, dist, cluster.target("worker"), arguments.check)
    count = len(local) if arguments.onednn else len(local) + len(dist)
    print("%d cases, TensorFlow %s: %d differ from the recording" % (count, tf.__version__, differ), flush=True)
    if other and not arguments.onednn:
        differ += subprocess.run([sys.executable, os.path.abspath(__file__), "--onednn"] + sys.argv[1:]).returncode
    return 1 if differ and arguments.check else 0


if __name__ == "__main__":
    sys.exit(main())
