"""Programs of the training library, built as `make` builds the examples."""
import os
import subprocess
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
os.environ["CUDA_VISIBLE_DEVICES"] = ""
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import pytest
import tensorflow.compat.v1 as tf

from cluster_process import ROOT
from time_limit import time_limit  # noqa: F401 (a fixture for every test here)

tf.disable_v2_behavior()
tf.logging.set_verbosity(tf.logging.ERROR)
MODE = os.environ.get("MODE", "release")


def pytest_collection_modifyitems(items):
    """The suite also runs with the sanitizers."""
    for item in items:
        if os.path.dirname(str(item.path)) == os.path.dirname(os.path.abspath(__file__)):
            item.add_marker(pytest.mark.asan)


@pytest.fixture(scope="session")
def built():
    """built("digits") -> the path of an example, built together with the others."""
    subprocess.run(["make", "-s", "-j2", "MODE=" + MODE, "examples", "build/%s/rill" % MODE], cwd=ROOT, check=True)
    return lambda name: os.path.join(ROOT, "build", MODE, "examples", name)
