"""One graph whose gradients by Rill's C code are compared with those of TensorFlow's Python code, run by TensorFlow and by Rill."""
import contextlib
import os
import subprocess
import tempfile

import numpy as np
import tensorflow.compat.v1 as tf

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOOL = os.path.join(ROOT, "build", os.environ.get("MODE", "release"), "tests", "gradients", "gradients_test")
CASES = {}


def case(name=None, **options):
    """Registers a function that builds a graph and returns (ys, xs)."""
    def add(build):
        key = name or build.__name__
        assert key not in CASES, key
        CASES[key] = (build, options)
        return build
    return add


def values(*shape, low=-1.0, high=1.0, dtype=np.float64, seed=0):
    """Numbers of a range, the same every time."""
    numbers = np.random.RandomState(seed + sum(shape)).uniform(low, high, shape)
    if np.issubdtype(dtype, np.complexfloating):
        return (numbers + 1j * np.random.RandomState(seed + 7).uniform(low, high, shape)).astype(dtype)
    return numbers.astype(dtype)


def floats(*shape, **options):
    """A constant of such numbers."""
    return tf.constant(values(*shape, **options))


def as_list(x):
    return list(x) if isinstance(x, (list, tuple)) else [x]


def x_name(x):
    return x.handle.name if hasattr(x, "handle") and x.handle.dtype == tf.resource else x.name


class Failure(Exception):
    """The C code refused."""


def add_gradients(graph_def, ys, xs, dxs, sparse=False, stops=(), prefix="rill"):
    """Names of the gradients, each None, (values,) or (values, indices, shape), and the extended GraphDef."""
    with tempfile.TemporaryDirectory() as folder:
        source, result = os.path.join(folder, "in.pb"), os.path.join(folder, "out.pb")
        with open(source, "wb") as f:
            f.write(graph_def.SerializeToString())
        arguments = [",".join(names) or "-" for names in (ys, xs, dxs, stops)]
        done = subprocess.run([TOOL, "add", source, result, "sparse" if sparse else "dense", prefix, *arguments], capture_output=True, text=True, timeout=60)
        if done.returncode:
            raise Failure(done.stdout + done.stderr)
        extended = tf.GraphDef()
        with open(result, "rb") as f:
            extended.ParseFromString(f.read())
    return [None if line == "none" else tuple(line.split()) for line in done.stdout.splitlines()], extended


def dense(x):
    return tf.convert_to_tensor(x) if isinstance(x, tf.IndexedSlices) else x


def run(graph, fetches, target, init):
    config = tf.ConfigProto(inter_op_parallelism_threads=1, intra_op_parallelism_threads=1)
    config.isolate_session_state = True
    with tf.Session(target, graph=graph, config=config) as session:
        if init:
            session.run(init)
        return session.run(fetches)


def run_extended(graph_def, names, target, init):
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(graph_def, name="")
        return run(graph, [None if n is None else n for n in names if n], target, init)


@contextlib.contextmanager
def control_flow(v1):
    """Conds and loops as Switch and Merge, or as functions."""
    enabled = tf.control_flow_v2_enabled()
    (tf.disable_control_flow_v2 if v1 else tf.enable_control_flow_v2)()
    try:
        yield
    finally:
        (tf.enable_control_flow_v2 if enabled else tf.disable_control_flow_v2)()


class Case:
    """The graph a function builds; its gradients by TensorFlow, and as the C code adds them."""

    def __init__(self, build, given=True):
        self.graph = tf.Graph()
        self.v1 = getattr(build, "v1", False)
        with self.graph.as_default(), control_flow(self.v1):
            tf.set_random_seed(3)
            ys, self.xs = (as_list(x) for x in build())
            self.init = tf.global_variables_initializer().name if tf.global_variables() else None
            self.dxs = [self.weights(y, i) for i, y in enumerate(ys)] if given else None
            self.graph_def = self.graph.as_graph_def(add_shapes=False)
            self.ys = ys
        self.ops = {n.op for n in self.graph_def.node} | {n.op for f in self.graph_def.library.function for n in f.node_def}

    @staticmethod
    def weights(y, i):
        """Gradients by y that differ from element to element."""
        shape = y.shape.as_list() if y.shape.is_fully_defined() else None
        if shape is None:
            return tf.ones_like(y)
        dtype = y.dtype.base_dtype.as_numpy_dtype
        return tf.constant(values(*shape, low=0.5, high=1.5, dtype=dtype, seed=i + 1), name="weights_%d" % i)

    def expected(self):
        with self.graph.as_default(), control_flow(self.v1):
            wanted = [dense(g) for g in tf.gradients(self.ys, self.xs, grad_ys=self.dxs)]
            found = run(self.graph, [g for g in wanted if g is not None], "", self.init)
        return [None if g is None else found.pop(0) for g in wanted]

    def extended(self, **options):
        dxs = [d.name for d in self.dxs] if self.dxs else []
        return add_gradients(self.graph_def, [y.name for y in self.ys], [x_name(x) for x in self.xs], dxs, **options)

    def check(self, rill, rtol=None, atol=None):
        wanted = self.expected()
        names, graph_def = self.extended()
        assert [n is None for n in names] == [w is None for w in wanted], (names, wanted)
        for runner, target in (("TensorFlow", ""), ("Rill", rill)):
            found = run_extended(graph_def, [n and n[0] for n in names], target, self.init)
            for x, want, got in zip([x for x, w in zip(self.xs, wanted) if w is not None], [w for w in wanted if w is not None], found):
                assert got.dtype == want.dtype and got.shape == want.shape, (runner, x.name, got.dtype, got.shape, want.dtype, want.shape)
                narrow = want.dtype in (np.float16, tf.bfloat16.as_numpy_dtype)
                single = want.dtype in (np.float32, np.complex64)
                limit = rtol or (2e-2 if narrow else 1e-5 if single else 1e-10)
                low = atol if atol is not None else (1e-2 if narrow else 1e-6 if single else 1e-10)
                kind = np.complex128 if np.iscomplexobj(want) else np.float64
                np.testing.assert_allclose(got.astype(kind), want.astype(kind), rtol=limit, atol=low, err_msg="%s, by %s" % (runner, x.name))
