"""The bounds of allocations_test.c also hold in the build that users have, where memory of tensors is kept for the next ones."""
import os
import subprocess

from cluster_process import ROOT

PROGRAM = os.path.join(ROOT, "build", os.environ.get("MODE", "release"), "tests", "perf", "allocations_test")


def test_blocks_of_memory_a_step_takes():
    done = subprocess.run([PROGRAM], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
