"""A time limit for every test of a folder whose conftest.py imports `time_limit`; the marker time_limit(seconds) changes it."""
import pytest

from cluster_process import Watchdog

SECONDS = 240


@pytest.fixture(autouse=True)
def time_limit(request):
    marker = request.node.get_closest_marker("time_limit")
    with Watchdog(marker.args[0] if marker else SECONDS, request.node.nodeid):
        yield
