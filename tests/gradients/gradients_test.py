"""Gradients added by the C code against tf.gradients: every op that TensorFlow can differentiate, on TensorFlow and on Rill."""
import pytest

import array_cases  # noqa: F401 (registers cases)
import function_cases  # noqa: F401
import gather_cases  # noqa: F401
import loop_cases  # noqa: F401
import math_cases  # noqa: F401
import nn_cases  # noqa: F401
from gradient_case import CASES, Case


@pytest.mark.parametrize("name", sorted(CASES))
def test_values(name, rill):
    build, options = CASES[name]
    Case(build).check(rill, **options)
