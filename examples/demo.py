#!/usr/bin/env python3
"""Starts a local Rill cluster (1 ps, 2 workers), trains examples/tf1/digits.py on it, shows progress, stops everything."""
import argparse
import json
import os
import pathlib
import re
import select
import signal
import socket
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
READY_TIMEOUT_S = 10
TRAIN_TIMEOUT_S = 120
GOOD_ACCURACY = 95.0


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


class Cluster:
    """The tasks as child processes; leaving the block ends them."""

    def __init__(self, rill, ps_count, worker_count):
        addresses = [f"127.0.0.1:{port}" for port in free_ports(ps_count + worker_count)]
        self.rill = rill
        self.spec = {"ps": addresses[:ps_count], "worker": addresses[ps_count:]}
        self.tasks = []

    def __enter__(self):
        for job, addresses in self.spec.items():
            for index in range(len(addresses)):
                self.start(job, index)
        return self

    def start(self, job, index):
        began = time.monotonic()
        command = [self.rill, "serve", "--cluster", json.dumps(self.spec), "--job", job, "--task", str(index)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.tasks.append((f"/job:{job}/task:{index}", process))
        readable = select.select([process.stdout], [], [], READY_TIMEOUT_S)[0]
        line = process.stdout.readline().strip() if readable else ""
        if not line.startswith("READY "):
            sys.exit(f"/job:{job}/task:{index} did not start")
        print(f"/job:{job}/task:{index}  pid {process.pid}  {line[6:]}  ready in {1000 * (time.monotonic() - began):.0f} ms")

    def __exit__(self, *error):
        for _, process in self.tasks:
            if process.poll() is None:
                process.terminate()
        for name, process in self.tasks:
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.returncode != 0:
                print(f"{name} ended with code {process.returncode}")

    def all_ended_well(self):
        return all(process.returncode == 0 for _, process in self.tasks)


def follow(process, deadline):
    """Copies what the process prints to our own output and returns it."""
    seen = b""
    while time.monotonic() < deadline:
        if not select.select([process.stdout], [], [], 1)[0]:
            continue
        chunk = os.read(process.stdout.fileno(), 4096)
        if not chunk:
            return seen.decode()
        seen += chunk
        sys.stdout.buffer.write(chunk)
        sys.stdout.flush()
    sys.exit(f"no end after {TRAIN_TIMEOUT_S} s")


def train(cluster, steps):
    """One client process per worker; the chief's shows the progress. Returns what it printed; None when a client failed."""
    command = [sys.executable, str(HERE / "tf1/digits.py"), "--ps_hosts", ",".join(cluster.spec["ps"]), "--worker_hosts",
               ",".join(cluster.spec["worker"]), "--steps", str(steps)] + ["--bar"] * sys.stdout.isatty()
    deadline = time.monotonic() + TRAIN_TIMEOUT_S
    clients = []
    try:
        for index in range(len(cluster.spec["worker"])):
            out = subprocess.PIPE if index == 0 else subprocess.DEVNULL
            clients.append(subprocess.Popen([*command, "--task_index", str(index)], stdout=out))
        text = follow(clients[0], deadline)
        codes = [client.wait(timeout=max(1, deadline - time.monotonic())) for client in clients]
        return text if not any(codes) else None
    finally:
        for client in clients:
            if client.poll() is None:
                client.kill()
                client.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rill", default=str(HERE.parent / "build/release/rill"))
    parser.add_argument("--steps", type=int, default=1000)
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with Cluster(args.rill, ps_count=1, worker_count=2) as cluster:
        print("starting two TensorFlow clients, one for each worker ...", flush=True)
        began = time.monotonic()
        text = train(cluster, args.steps)
        subprocess.run([args.rill, "status", "grpc://" + cluster.spec["worker"][0]])
    if text is None or not cluster.all_ended_well():
        sys.exit("the demo failed")
    accuracy = float(re.search(r"held-out accuracy ([0-9.]+)", text).group(1))
    print(f"{time.monotonic() - began:.1f} s, with the start of TensorFlow; all tasks have ended")
    if accuracy < GOOD_ACCURACY:
        sys.exit(f"the accuracy is below {GOOD_ACCURACY:.0f} %")


try:
    main()
except KeyboardInterrupt:
    sys.exit(130)
