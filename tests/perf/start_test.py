"""How soon a task serves and how much memory it takes when idle, beside TensorFlow's server in the same run."""
import statistics
import time

import psutil

import cluster_process

STARTS = 10
READY_SECONDS = 0.050  # of CPU time: what else the machine does is not in it
IDLE_BYTES = 30e6


def measure(make):
    """Seconds to READY, seconds of CPU time used, and resident bytes."""
    task = make()
    begin = time.monotonic()
    task.start()
    seconds = time.monotonic() - begin
    try:
        process = psutil.Process(task.pid)
        times = process.cpu_times()
        return seconds, times.user + times.system, process.memory_info().rss
    finally:
        task.kill()


def spec():
    return {"local": ["127.0.0.1:%d" % cluster_process.free_port()]}


def test_a_task_is_ready_soon_and_idles_small(capsys):
    rill = [measure(lambda: cluster_process.rill_task(spec(), "local", 0)) for _ in range(STARTS)]
    seconds, cpu_seconds, resident = (statistics.median(column) for column in zip(*rill))
    tf_seconds, _, tf_resident = measure(lambda: cluster_process.tf_task(spec(), "local", 0))
    with capsys.disabled():
        print("\nready: Rill %.1f ms (median of %d; CPU %.0f ms), TensorFlow %.1f s; idle: Rill %.1f MB, TensorFlow %.0f MB"
              % (seconds * 1e3, STARTS, cpu_seconds * 1e3, tf_seconds, resident / 1e6, tf_resident / 1e6))
    assert cpu_seconds < READY_SECONDS
    assert resident < IDLE_BYTES
    assert seconds < tf_seconds and resident < tf_resident
