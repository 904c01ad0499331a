#!/usr/bin/env python3
"""Hours in minutes: trains on a cluster while sessions come and go, and watches memory, descriptors and the time of a step, beside that of a cluster just started. Run by hand."""
import argparse
import datetime
import statistics
import time

import stage

import cluster_process
import contest
import graphs
import groups
import machine
import psutil
import report
import tensorflow.compat.v1 as tf

WINDOW_SECONDS = 5
FRESH_EVERY = 4  # windows
FRESH_WARM_SECONDS = 2


def look(cluster):
    """Resident bytes and open descriptors over all tasks."""
    processes = [psutil.Process(t.pid) for t in cluster.tasks.values()]
    return {"bytes": sum(p.memory_info().rss for p in processes), "descriptors": sum(p.num_fds() for p in processes), "threads": sum(p.num_threads() for p in processes)}


def thirds(samples, key):
    """The middle of the first and of the last third of the samples."""
    values = [s[key] for s in samples if key in s]
    part = max(1, len(values) // 3)
    return statistics.median(values[:part]), statistics.median(values[-part:])


def trend(values):
    """How much a straight line through the values grows from the first to the last, as a share of their mean, and the standard error of that."""
    x = [i / (len(values) - 1) - 0.5 for i in range(len(values))]
    spread, mean = sum(a * a for a in x), statistics.mean(values)
    growth = sum(a * v for a, v in zip(x, values)) / spread
    rest = sum((v - mean - growth * a) ** 2 for a, v in zip(x, values))
    return {"growth": growth / mean, "error": (rest / (len(values) - 2) / spread) ** 0.5 / mean, "windows": len(values), "least_us": min(values), "most_us": max(values)}


def trainers(cluster, paths):
    """The two workers, each with its client."""
    members = [contest.generator(path, "train", cluster.target("worker", w), stage.pids(cluster) if w == 0 else [], warm=10).wait_ready() for w, path in enumerate(paths)]
    return contest.Team(members)


def fresh_step_us(paths):
    """A step on a cluster that has only just started: what the machine gives at this moment."""
    cluster = cluster_process.Cluster({"ps": ["rill"], "worker": ["rill"] * 2})
    try:
        with trainers(cluster, paths) as team:
            team.run(FRESH_WARM_SECONDS)
            return contest.step_us(team.run(WINDOW_SECONDS))
    finally:
        cluster.kill()


def soak(s, minutes):
    cluster = s.cluster("rill", 2)
    paths = [graphs.worker_model(stage.GRAPHS, "mlp", w, 2, sync=False) for w in (0, 1)]
    visitor = graphs.worker_model(stage.GRAPHS, "tiny", 0, 1, sync=False)
    samples, sessions = [], 0
    end = time.monotonic() + 60 * minutes
    with trainers(cluster, paths) as team, machine.Watch() as watch:
        while time.monotonic() < end:
            with contest.generator(visitor, "train", cluster.target(), warm=0) as guest:  # a session more, opened and closed
                guest.wait_ready()
            sessions += 1
            window = team.run(WINDOW_SECONDS)
            samples.append(dict(look(cluster), step_us=contest.step_us(window), steps=window["steps"]))
            if len(samples) % FRESH_EVERY == 0:
                samples[-1]["fresh_us"] = fresh_step_us(paths)
            print("%3d  %%(step_us)8.1f us a step  %%(bytes)d bytes  %%(descriptors)d descriptors  %%(threads)d threads" % len(samples) % samples[-1]
                  + ("  %.1f on a cluster just started" % samples[-1]["fresh_us"] if "fresh_us" in samples[-1] else ""), flush=True)
    # The first minute, or the first quarter when that is less, is for getting warm.
    settled = samples[min(len(samples) // 4, 60 // WINDOW_SECONDS):]
    return {"minutes": minutes, "steps": sum(w["steps"] for w in samples), "sessions": sessions, "problem": watch.problem,
            "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M"), "commit": stage.commit(),
            "trend": trend([w["step_us"] for w in settled]), **{key: thirds(settled, key) for key in ("step_us", "fresh_us", "bytes", "descriptors", "threads")}}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    args = parser.parse_args()
    tf.disable_eager_execution()
    with stage.Stage() as s:
        s.results["soak"] = soak(s, args.minutes)
        s.save()
        report.write(s.results, groups.GROUPS)


if __name__ == "__main__":
    main()
