"""Gradients added by the C code against tf.gradients: every op that TensorFlow can differentiate, on TensorFlow and on Rill."""
import functools
import os
import subprocess

import pytest
from tensorflow.python.framework import ops

import array_cases  # noqa: F401 (registers cases)
import function_cases  # noqa: F401
import gather_cases  # noqa: F401
import linalg_cases  # noqa: F401
import loop_cases  # noqa: F401
import math_cases  # noqa: F401
import nn_cases  # noqa: F401
import ragged_cases  # noqa: F401
from gradient_case import CASES, ROOT, TOOL, Case


@functools.cache
def rill_ops():
    text = subprocess.run([os.path.join(ROOT, "build", os.environ.get("MODE", "release"), "rill"), "ops"], capture_output=True, text=True, check=True).stdout
    return {line.split()[0] for line in text.splitlines()}


@pytest.mark.parametrize("name", sorted(CASES))
def test_values(name, rill):
    build, options = CASES[name]
    lacks = set(options.get("needs", ())) - rill_ops()
    if lacks:
        pytest.skip("Rill lacks " + ", ".join(sorted(lacks)))
    Case(build).check(rill, **{key: value for key, value in options.items() if key != "needs"})


@pytest.fixture(scope="module")
def kinds():
    """What the C code knows of each op: "rule", or "none" when nothing flows back through it."""
    text = subprocess.run([TOOL, "kinds"], capture_output=True, text=True, check=True).stdout
    return dict(line.split() for line in text.splitlines())


# Ops that TensorFlow has a gradient for and Rill has none, and why.
OLD_ARRAYS = "a TensorArray of an old graph: TensorFlow's gradient is a node that does not take its handle"
EXCEPTIONS = {
    **{f"TensorArray{what}{end}": OLD_ARRAYS for what in "Read Write Gather Scatter Concat Split".split() for end in ("", "V2")},
    "_EagerConst": "only in eager execution, and TensorFlow's gradient is an error",
}
# Ops whose gradient in TensorFlow is None for every input: nothing flows back.
FLAT = {"ArgMax", "ArgMin", "Ceil", "Floor", "FloorDiv", "LoopCond", "Rint", "Round", "TruncateDiv"}


def test_every_op_that_tensorflow_can_differentiate_has_a_rule(kinds):
    registry = ops._gradient_registry
    missing = []
    for op in sorted(rill_ops() & set(registry.list())):
        differentiable = registry.lookup(op) is not None and op not in FLAT
        if op not in EXCEPTIONS and kinds.get(op) != ("rule" if differentiable else "none"):
            missing.append(op)
    assert not missing


# Rules without a case, and why.
UNTRIED = {
    "BatchNormWithGlobalNormalization": "not in graphs of this version of TensorFlow",
    "XlaClusterOutput": "TensorFlow has no CPU kernel",
    "CTCLossV2": "TensorFlow has no CPU kernel",
    "DebugGradientIdentity": "TensorFlow's gradient tells it to a debugger that knows the node by its name",
    "DebugGradientRefIdentity": "TensorFlow's gradient tells it to a debugger that knows the node by its name",
    "IRFFT3D": "TensorFlow has no gradient",
    "QuantizeAndDequantize": "not in graphs of this version of TensorFlow",
    "QuantizeAndDequantizeV4Grad": "TensorFlow's gradient of it is for another op's inputs",
    "RFFT3D": "TensorFlow has no gradient",
    "RefEnter": "TensorFlow's client makes no such node",
    "RefExit": "TensorFlow's client makes no such node",
    "RefIdentity": "TensorFlow's client makes no such node",
    "RefMerge": "TensorFlow's client makes no such node",
    "RefNextIteration": "TensorFlow's client makes no such node",
    "RefSwitch": "TensorFlow's client makes no such node",
    "SparseDenseCwiseAdd": "an error, as in TensorFlow",
    "SparseSparseMaximum": "an error, as in TensorFlow",
    "SparseSparseMinimum": "an error, as in TensorFlow",
    "PreventGradient": "an error, as in TensorFlow",
    "TopK": "not in graphs of this version of TensorFlow",
}


def test_every_rule_has_a_case(kinds):
    tried = set().union(*(Case(build).ops for build, _ in CASES.values()))
    assert not sorted(op for op, kind in kinds.items() if kind == "rule" and op not in tried | set(UNTRIED))
    assert not sorted(set(UNTRIED) & tried)
