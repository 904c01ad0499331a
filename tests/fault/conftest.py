"""A time limit for every test of this folder, and the path to what the test folders share."""
import os
import pathlib
import signal
import sys

import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

LIMIT_SECONDS = 120


def pytest_configure(config):
    config.addinivalue_line("markers", "limit(seconds): the test may take that long")
    config.addinivalue_line("markers", "asan: worth running again with MODE=asan")


@pytest.fixture(autouse=True)
def time_limit(request):
    marker = request.node.get_closest_marker("limit")
    seconds = marker.args[0] if marker else LIMIT_SECONDS

    def expired(signum, frame):
        pytest.fail("not done after %d s" % seconds)

    before = signal.signal(signal.SIGALRM, expired)
    signal.alarm(seconds)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
