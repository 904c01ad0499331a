#!/usr/bin/env python3
"""How long a server takes until it accepts calls, and how much memory it holds idle: rill serve beside a real TensorFlow server."""
import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import time

import psutil

TF_SERVER = """
import os, sys, json
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf
server = tf.distribute.Server(json.loads(sys.argv[1]), job_name="worker", task_index=0)
print("READY", server.target, flush=True)
server.join()
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def measure(command):
    """Milliseconds from the start of the process to its READY line, and MiB of resident memory a second later."""
    began = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env={**os.environ, "TF_ENABLE_ONEDNN_OPTS": "0"})
    try:
        for line in process.stdout:
            if line.startswith("READY"):
                break
        else:
            sys.exit(f"{command[0]} did not start")
        ready_ms = 1000 * (time.monotonic() - began)
        time.sleep(1)  # not to synchronise: idle means some time after the start
        return ready_ms, psutil.Process(process.pid).memory_info().rss / 2**20
    finally:
        process.kill()
        process.wait()


def median(command_for, runs):
    results = []
    for _ in range(runs):
        cluster = json.dumps({"worker": [f"127.0.0.1:{free_port()}"]})
        results.append(measure(command_for(cluster)))
    return [statistics.median(column) for column in zip(*results)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rill", default=f"build/{os.environ.get('MODE', 'release')}/rill")
    parser.add_argument("--runs", type=int, default=5)
    args = parser.parse_args()
    rill = median(lambda c: [args.rill, "serve", "--cluster", c, "--job", "worker", "--task", "0"], args.runs)
    tensorflow = median(lambda c: [sys.executable, "-c", TF_SERVER, c], args.runs)
    print(f"{'median of ' + str(args.runs):24} {'rill serve':>12} {'TensorFlow':>12}")
    print(f"{'start until READY, ms':24} {rill[0]:12.0f} {tensorflow[0]:12.0f}")
    print(f"{'idle resident, MiB':24} {rill[1]:12.1f} {tensorflow[1]:12.1f}")


main()
