"""Fixtures of the gradient tests: a task of Rill that runs the graphs, a time limit."""
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
os.environ["CUDA_VISIBLE_DEVICES"] = ""
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import pytest
import tensorflow.compat.v1 as tf

from cluster_process import Cluster
from time_limit import time_limit  # noqa: F401 (a fixture for every test here)

tf.disable_eager_execution()
tf.logging.set_verbosity(tf.logging.ERROR)


@pytest.fixture(scope="session")
def rill():
    """The address of a task of Rill."""
    with Cluster({"local": 1}) as cluster:
        yield cluster.target("local")
        assert "Sanitizer" not in cluster.log and "runtime error:" not in cluster.log, cluster.log
