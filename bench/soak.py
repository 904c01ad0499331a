#!/usr/bin/env python3
"""Hours in minutes: trains on a cluster without a pause while sessions come and go, and watches memory, descriptors and the time of a step. Run by hand."""
import argparse
import datetime
import statistics
import time

import stage

import contest
import graphs
import groups
import machine
import psutil
import report
import tensorflow.compat.v1 as tf

WINDOW_SECONDS = 5


def look(cluster):
    """Resident bytes and open descriptors over all tasks."""
    processes = [psutil.Process(t.pid) for t in cluster.tasks.values()]
    return {"bytes": sum(p.memory_info().rss for p in processes), "descriptors": sum(p.num_fds() for p in processes), "threads": sum(p.num_threads() for p in processes)}


def thirds(samples, key):
    """The middle of the first and of the last third of the samples."""
    values = [s[key] for s in samples]
    part = max(1, len(values) // 3)
    return statistics.median(values[:part]), statistics.median(values[-part:])


def soak(s, minutes):
    cluster = s.cluster("rill", 2)
    members = []
    for w in 0, 1:
        path = graphs.worker_model(stage.GRAPHS, "mlp", w, 2, sync=False)
        members.append(contest.generator(path, "train", cluster.target("worker", w), stage.pids(cluster) if w == 0 else [], warm=10).wait_ready())
    visitor = graphs.worker_model(stage.GRAPHS, "tiny", 0, 1, sync=False)
    samples, sessions = [], 0
    end = time.monotonic() + 60 * minutes
    with contest.Team(members) as team, machine.Watch() as watch:
        while time.monotonic() < end:
            with contest.generator(visitor, "train", cluster.target(), warm=0) as guest:  # a session more, opened and closed
                guest.wait_ready()
            sessions += 1
            window = team.run(WINDOW_SECONDS)
            samples.append(dict(look(cluster), step_us=contest.step_us(window), steps=window["steps"]))
            print("%4d s  %8.1f us a step  %6.1f MB  %4d descriptors  %3d threads" % (len(samples) * WINDOW_SECONDS, samples[-1]["step_us"], samples[-1]["bytes"] / 1e6,
                                                                                 samples[-1]["descriptors"], samples[-1]["threads"]), flush=True)
    # The first minute, or the first quarter when that is less, is for getting warm.
    settled = samples[min(len(samples) // 4, 60 // WINDOW_SECONDS):]
    return {"minutes": minutes, "steps": sum(w["steps"] for w in samples), "sessions": sessions, "problem": watch.problem,
            "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M"), "commit": stage.commit(),
            **{key: thirds(settled, key) for key in ("step_us", "bytes", "descriptors", "threads")}}


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
