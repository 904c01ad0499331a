"""A time limit for every test of this folder, and the path to what the test folders share."""
import faulthandler
import os
import pathlib
import signal
import sys
import threading

import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import cluster_process

LIMIT_SECONDS = 120


def pytest_configure(config):
    config.addinivalue_line("markers", "limit(seconds): the test may take that long")
    config.addinivalue_line("markers", "asan: worth running again with MODE=asan")


def give_up(name):
    """A test that is stuck inside TensorFlow's C++ cannot be interrupted: all ends here."""
    print("\n%s is stuck" % name, file=sys.__stderr__, flush=True)
    faulthandler.dump_traceback(file=sys.__stderr__)
    cluster_process._kill_leftovers()
    os._exit(1)


@pytest.fixture(autouse=True)
def time_limit(request):
    marker = request.node.get_closest_marker("limit")
    seconds = marker.args[0] if marker else LIMIT_SECONDS

    def expired(signum, frame):
        pytest.fail("not done after %d s" % seconds)

    before = signal.signal(signal.SIGALRM, expired)
    last_resort = threading.Timer(seconds + 20, give_up, [request.node.name])
    last_resort.daemon = True
    last_resort.start()
    signal.alarm(seconds)
    yield
    signal.alarm(0)
    last_resort.cancel()
    signal.signal(signal.SIGALRM, before)
