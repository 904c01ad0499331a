"""The other side of contest.Contender: measures a function in windows, as rill bench --lines does."""
import json
import sys
import time

WARM_STEPS = 10


def cpu_seconds(pid):
    return time.clock_gettime(~pid << 3 | 2)  # the CPU clock of a process, as clock_getcpuclockid makes it


def window(step, seconds, steps, pids):
    cpu = [cpu_seconds(p) for p in pids]
    own = time.process_time()
    durations = []
    began = now = time.perf_counter()
    while now - began < seconds and (not steps or len(durations) < steps):
        before = now
        step()
        now = time.perf_counter()
        durations.append(now - before)
    durations.sort()
    n = len(durations)
    return {"steps": n, "seconds": now - began, "steps_per_s": n / (now - began), "median_us": 1e6 * durations[n // 2], "p90_us": 1e6 * durations[n * 9 // 10],
            "least_us": 1e6 * durations[0], "client_cpu_us": 1e6 * (time.process_time() - own) / n,
            "server_cpu_us": [1e6 * (cpu_seconds(p) - c) / n for p, c in zip(pids, cpu)]}


def serve(step, start, pids=()):
    """Prints what the start took, then measures a window for each line of standard input."""
    for _ in range(WARM_STEPS):
        step()
    print(json.dumps(start), flush=True)
    for line in sys.stdin:
        seconds, *steps = line.split()
        print(json.dumps(window(step, float(seconds), int(steps[0]) if steps else 0, pids)), flush=True)
