"""Fixtures of the interop suite: Rill clusters for a test, mixed clusters and a TensorFlow reference for the whole run."""
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

tf.disable_v2_behavior()
tf.logging.set_verbosity(tf.logging.ERROR)


def pytest_collection_modifyitems(items):
    """The suite also runs with the sanitizers."""
    for item in items:
        if os.path.dirname(str(item.path)) == os.path.dirname(os.path.abspath(__file__)):
            item.add_marker(pytest.mark.asan)


@pytest.fixture
def start_cluster():
    """start_cluster({"ps": 1, "worker": 2}, flags=[...]) -> Cluster, killed at the end of the test."""
    clusters = []

    def start(jobs, **more):
        clusters.append(Cluster(jobs, **more))
        return clusters[-1]

    yield start
    for cluster in clusters:
        cluster.kill()
        assert "Sanitizer" not in cluster.log and "runtime error:" not in cluster.log, cluster.log


@pytest.fixture(scope="session")
def reference_server():
    """A real TensorFlow server of one task in this process."""
    return tf.train.Server.create_local_server()


@pytest.fixture
def reference(reference_server):
    """The target of the TensorFlow server, without variables left by other tests."""
    tf.Session.reset(reference_server.target)
    return reference_server.target


@pytest.fixture(scope="session")
def rill_server():
    """A Rill cluster of one task."""
    yield from _mixed({"worker": 1})


@pytest.fixture
def rill(rill_server):
    """The target of the Rill task."""
    return rill_server.target()


def _mixed(jobs):
    cluster = Cluster(jobs)
    try:
        yield cluster
    finally:
        cluster.kill()
    assert "Sanitizer" not in cluster.log and "runtime error:" not in cluster.log, cluster.log


@pytest.fixture(scope="session")
def rill_ps_cluster():
    """A Rill ps with a TensorFlow worker (task 0) and a Rill worker (task 1)."""
    yield from _mixed({"ps": ["rill"], "worker": ["tf", "rill"]})


@pytest.fixture(scope="session")
def tf_ps_cluster():
    """A TensorFlow ps with a Rill worker (task 0) and a TensorFlow worker (task 1)."""
    yield from _mixed({"ps": ["tf"], "worker": ["rill", "tf"]})


@pytest.fixture
def graph():
    """An empty graph, the default one during the test."""
    with tf.Graph().as_default() as g:
        yield g
