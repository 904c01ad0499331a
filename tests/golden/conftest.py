"""Prints, after the tests, how many of the golden cases pass."""
import pytest

from time_limit import time_limit

OUTCOMES = {}  # name of the case: "pass", "lack" or "fail"


@pytest.fixture(scope="session")
def tally():
    return OUTCOMES


def pytest_terminal_summary(terminalreporter):
    if not OUTCOMES:
        return
    passed, lack, fail = (sum(1 for x in OUTCOMES.values() if x == o) for o in ("pass", "lack", "fail"))
    terminalreporter.write_line("golden cases over grpc: %d of %d pass, %d need an op Rill lacks, %d fail"
                                % (passed, len(OUTCOMES), lack, fail))
