"""One golden case: its graph, its steps, its tensors; see README.md for the format."""
import base64
import json
import os

import numpy as np
import tensorflow.compat.v1 as tf

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "data")


def names(folder):
    return sorted(f[:-5] for f in os.listdir(folder) if f.endswith(".json") and f != "index.json")


def decode(tensor, replace=None):
    """A recorded tensor as a numpy array; strings are bytes in an object array."""
    if tensor["dtype"] != "string":
        dtype = tf.as_dtype(tensor["dtype"]).as_numpy_dtype
        return np.frombuffer(base64.b64decode(tensor["b64"]), dtype).reshape(tensor["shape"])
    out = np.empty(len(tensor["strings"]), object)
    for i, text in enumerate(tensor["strings"]):
        value = base64.b64decode(text)
        for mark, path in (replace or {}).items():
            value = value.replace(mark.encode(), path.encode())
        out[i] = value
    return out.reshape(tensor["shape"])


def as_array(value):
    """A numpy array; bytes stay whole (numpy's own string type would drop zero bytes at their end)."""
    return np.array(value, dtype=object) if isinstance(value, (bytes, str)) else np.asarray(value)


def as_bytes(value):
    return value if isinstance(value, bytes) else str(value).encode()


def encode(value):
    """The recorded form of an array."""
    a = as_array(value)
    if a.dtype == object or a.dtype.kind in "SU":
        items = [as_bytes(x) for x in a.reshape(-1).tolist()]
        return {"dtype": "string", "enum": 7, "shape": list(a.shape), "strings": [base64.b64encode(x).decode() for x in items]}
    dtype = tf.as_dtype(a.dtype)
    return {"dtype": dtype.name, "enum": dtype.as_datatype_enum, "shape": list(a.shape),
            "b64": base64.b64encode(np.ascontiguousarray(a).tobytes()).decode()}


def is_exact(dtype):
    return dtype == object or dtype.kind in "biu"


def wide(a):
    return a.astype(np.complex128 if a.dtype.kind == "c" else np.float64)


def equal(got, want, case):
    """Is it the recorded value, within the case's tolerance? Integers, bools and strings exactly."""
    got = as_array(got)
    if list(got.shape) != list(want.shape):
        return False
    if want.dtype == object:
        return [as_bytes(x) for x in got.reshape(-1).tolist()] == want.reshape(-1).tolist()
    if got.dtype != want.dtype:
        return False
    if is_exact(want.dtype):
        return np.array_equal(got, want)
    rtol, atol = (1e-6, 1e-7) if case["exact"] else (case["rtol"], case["atol"])
    return np.allclose(wide(got), wide(want), rtol, atol, equal_nan=True)


def describe(a):
    a = as_array(a)
    return "%s%s %s" % (a.dtype, list(a.shape), a.reshape(-1)[:4])


class Case:
    def __init__(self, folder, name):
        self.name = name
        self.path = os.path.join(folder, name)
        with open(self.path + ".json") as f:
            self.json = json.load(f)
        graph_def = tf.GraphDef()
        with open(self.path + ".pb", "rb") as f:
            graph_def.ParseFromString(f.read())
        self.graph = tf.Graph()
        with self.graph.as_default():
            tf.import_graph_def(graph_def, name="")

    def session(self, target, timeout_ms=60000):
        """One thread for in-process runs: then the order of sums is always the same."""
        config = tf.ConfigProto(isolate_session_state=True, operation_timeout_in_ms=timeout_ms)
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        if not target:
            config.graph_options.optimizer_options.opt_level = -1
            config.intra_op_parallelism_threads = 1
            config.inter_op_parallelism_threads = 4 if self.json["kind"] == "queue" else 1
        return tf.Session(target, graph=self.graph, config=config)

    def run(self, session, step, replace):
        """The values of the step's fetches."""
        feeds = {}
        for name, tensor in step["feeds"].items():
            value = decode(self.json["tensors"][tensor], replace)
            feeds[name] = value.item() if value.dtype == object and not value.shape else value
        targets = [self.graph.get_operation_by_name(t) for t in step["targets"]]
        return session.run([step["fetches"], targets], feeds)[0]

    def check(self, target, tmp):
        """Runs all steps; what differs from the recording, as texts."""
        problems = []
        code_key = "code" if target else "local_code"
        replace = {"@TMP@": str(tmp), "@DATA@": DATA}
        with self.session(target) as session:
            for i, step in enumerate(self.json["steps"]):
                problems += ["step %d: %s" % (i, p) for p in self.check_step(session, step, replace, code_key)]
        return problems

    def check_step(self, session, step, replace, code_key):
        want = step.get("error")
        try:
            values = self.run(session, step, replace)
        except tf.errors.OpError as e:
            if not want:
                return ["%s %s" % (type(e).__name__, e.message[-300:])]
            if e.error_code != want[code_key]:
                return ["code %d, want %d: %s" % (e.error_code, want[code_key], e.message[-300:])]
            return [] if want["contains"] in e.message else ["the message lacks '%s': %s" % (want["contains"], e.message[-300:])]
        if want:
            return ["no error, want " + want["name"]]
        wanted = [decode(self.json["tensors"][t]) for t in step.get("expect", [])]
        return ["%s: got %s want %s" % (name, describe(g), describe(w))
                for name, g, w in zip(step["fetches"], values, wanted) if not equal(g, w, self.json)]
