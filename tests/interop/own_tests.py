"""TensorFlow's own test classes, as far as its package has them, with every session that names no target sent to a task."""
import contextlib

import pytest
import tensorflow.compat.v1 as tf
from tensorflow.python.client import session as session_module

from cluster_process import Cluster


@pytest.fixture(scope="module")
def local_task():
    """A task called as TensorFlow calls the process of a session of its own."""
    cluster = Cluster({"localhost": 1})
    yield cluster.target("localhost", 0)
    cluster.kill()
    assert "Sanitizer" not in cluster.log and "runtime error:" not in cluster.log, cluster.log


@contextlib.contextmanager
def sessions_on(target):
    original = session_module.BaseSession.__init__

    def init(self, own="", graph=None, config=None):
        original(self, own or target, graph, config)

    session_module.BaseSession.__init__ = init
    try:
        yield
    finally:
        session_module.BaseSession.__init__ = original


def names_of_tests(case_class, without=()):
    return sorted(n for n in dir(case_class) if n.startswith("test") and n != "test_session" and not any(w in n for w in without))


def run_case(case_class, name, target):
    """One test method, which must pass (or skip itself)."""
    tf.Session.reset(target)
    case_class.setUpClass()
    with sessions_on(target):
        result = case_class(name).run()
    assert result.wasSuccessful(), "\n".join(text for _, text in result.errors + result.failures)
