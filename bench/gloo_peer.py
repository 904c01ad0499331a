"""A contender of two processes over Gloo (of PyTorch). gloo_peer.py barrier|transfer|reduce BYTES; it starts the second process itself."""
import json
import os
import subprocess
import sys
import time

import torch
import torch.distributed as dist


def step_of(what, count, rank):
    """A function that does one step of the work."""
    values, request = torch.zeros(max(1, count)), torch.zeros(1)

    def transfer():
        if rank == 0:
            dist.send(request, 1)
            dist.recv(values, 1)
        else:
            dist.recv(request, 0)
            dist.send(values, 0)

    return {"barrier": dist.barrier, "reduce": lambda: dist.all_reduce(values), "transfer": transfer}[what]


def announce(steps):
    dist.send(torch.tensor([steps], dtype=torch.int64), 1)


def follow(step):
    steps = torch.zeros(1, dtype=torch.int64)
    while True:
        dist.recv(steps, 0)
        if not steps.item():
            return
        for _ in range(steps.item()):
            step()


def run(step, steps):
    """Runs some steps; returns the seconds of one."""
    announce(steps)
    step()
    began = time.perf_counter()
    for _ in range(steps - 1):
        step()
    return (time.perf_counter() - began) / (steps - 1)


def lead(step):
    each = run(step, 10)
    print(json.dumps({"first_ms": 0, "version": torch.__version__}), flush=True)
    for line in sys.stdin:
        steps = 2 + int(float(line.split()[0]) / each)
        cpu = time.process_time()
        each = run(step, steps)
        print(json.dumps({"steps": steps - 1, "seconds": each * (steps - 1), "steps_per_s": 1 / each, "median_us": 1e6 * each, "client_cpu_us": 1e6 * (time.process_time() - cpu) / steps,
                          "server_cpu_us": []}), flush=True)
    announce(0)


def main():
    what, count = sys.argv[1], int(sys.argv[2]) // 4
    torch.set_num_threads(1)
    if len(sys.argv) > 3:  # the second process
        store = dist.TCPStore("127.0.0.1", int(sys.argv[3]), 2, False)
        dist.init_process_group("gloo", store=store, rank=1, world_size=2)
        follow(step_of(what, count, 1))
    else:
        store = dist.TCPStore("127.0.0.1", 0, 2, True, wait_for_workers=False)
        with subprocess.Popen([sys.executable, os.path.abspath(__file__), what, sys.argv[2], str(store.port)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL):
            dist.init_process_group("gloo", store=store, rank=0, world_size=2)
            lead(step_of(what, count, 0))


main()
