#!/usr/bin/env python3
"""Runs the benchmark: Rill beside TensorFlow and other peers, taking turns on the same machine, ratios first. Writes docs/benchmarks.md."""
import argparse
import os
import sys
import time
import traceback

import stage

import groups
import report
import tensorflow.compat.v1 as tf


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     epilog="groups:\n" + "\n".join("  %-18s %s" % (n, f.__doc__) for n, f in groups.GROUPS.items()))
    parser.add_argument("groups", nargs="*", metavar="GROUP", help="those to run (all)")
    parser.add_argument("--seconds", type=float, default=0.5, help="length of a window (0.5)")
    parser.add_argument("--rounds", type=int, default=5, help="windows of each contender (5)")
    parser.add_argument("--without", action="append", default=[], metavar="PEER", help="leaves a peer out: torch, torch_compile, jax, openmpi, gloo; may be given several times")
    parser.add_argument("--quick", action="store_true", help="short windows, one round: to see that all works, not to judge")
    parser.add_argument("--results", default=stage.RESULTS, metavar="FILE.json", help="where results are kept; the page and its pictures go beside it (docs/benchmarks.json)")
    args = parser.parse_args()
    if args.quick:
        args.seconds, args.rounds = 0.1, 1
    unknown = [g for g in args.groups if g not in groups.GROUPS]
    if unknown:
        sys.exit("no group %s; there are: %s" % (", ".join(unknown), " ".join(groups.GROUPS)))
    tf.disable_eager_execution()
    tf.logging.set_verbosity(tf.logging.FATAL)
    failed, first = [], time.monotonic()
    for name in args.groups or groups.GROUPS:
        began = time.monotonic()
        with stage.Stage(args.seconds, args.rounds, args.without, args.results) as s:
            try:
                groups.GROUPS[name](s)
                s.finish_group(name)
            except Exception:
                traceback.print_exc()
                failed.append(name)
            report.write(s.results, groups.GROUPS, os.path.dirname(os.path.abspath(args.results)))
        print("-- %s: %.0f s, %.0f s in all" % (name, time.monotonic() - began, time.monotonic() - first), flush=True)
    if failed:
        sys.exit("failed: " + " ".join(failed))


if __name__ == "__main__":
    main()
