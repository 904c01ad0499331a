"""Fixtures of the tests of rill's commands: the program itself, run on files that real TensorFlow made."""
import json
import os
import subprocess
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
os.environ["CUDA_VISIBLE_DEVICES"] = ""
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import pytest
import tensorflow as tf

from cluster_process import RILL
from time_limit import time_limit  # noqa: F401 (a fixture for every test here)

tf.get_logger().setLevel("ERROR")


def pytest_collection_modifyitems(items):
    """The suite also runs with the sanitizers."""
    for item in items:
        if os.path.dirname(str(item.path)) == os.path.dirname(os.path.abspath(__file__)):
            item.add_marker(pytest.mark.asan)


class Result:
    def __init__(self, done):
        self.code, self.out, self.err = done.returncode, done.stdout.decode(), done.stderr.decode(errors="replace")

    @property
    def json(self):
        return json.loads(self.out)


@pytest.fixture
def rill():
    """rill("ckpt", "ls", path) -> Result; `code` is the exit code it must end with."""

    def run(*arguments, code=0, **more):
        done = Result(subprocess.run([RILL, *map(str, arguments)], capture_output=True, stdin=subprocess.DEVNULL, timeout=100, **more))
        assert done.code == code, "exit code %d\n%s\n%s" % (done.code, done.out, done.err)
        assert "Sanitizer" not in done.err and "runtime error:" not in done.err, done.err
        return done

    return run
