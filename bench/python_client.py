"""A contender: a Python program's tf.compat.v1 session. python_client.py CASES.json CASE TARGET [PID...]: at a server, or with the target "" in this process.

RILL_BENCH_XLA=1 compiles what the session runs (in this process only)."""
import base64
import json
import os
import sys
import time

import lines
import tensorflow.compat.v1 as tf


def read(path, name):
    with open(path) as f:
        description = json.load(f)
    case = dict({k: v for k, v in description.items() if k != "cases"}, **description["cases"][name])
    graph_def = tf.GraphDef()
    with open(os.path.join(os.path.dirname(path), case["graph"]), "rb") as f:
        graph_def.ParseFromString(f.read())
    config = tf.ConfigProto()
    if "config" in case:
        config.ParseFromString(base64.b64decode(case["config"]))
    return case, graph_def, config


def main():
    tf.disable_eager_execution()
    path, name, target, *pids = sys.argv[1:]
    case, graph_def, config = read(path, name)
    if os.environ.get("RILL_BENCH_XLA"):
        config.graph_options.optimizer_options.global_jit_level = tf.OptimizerOptions.ON_2
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(graph_def, name="")
    with tf.Session(target, graph=graph, config=config) as session:
        begins = [time.perf_counter()]
        for names in case.get("init", []):
            session.run([graph.get_operation_by_name(n) for n in names])
        begins.append(time.perf_counter())
        run = session.make_callable([graph.get_tensor_by_name(f) for f in case["fetches"]] + [graph.get_operation_by_name(t) for t in case["targets"]])
        run()
        begins.append(time.perf_counter())
        start = {"init_ms": 1e3 * (begins[1] - begins[0]), "first_ms": 1e3 * (begins[2] - begins[1])}
        lines.serve(run, start, [int(p) for p in pids])


main()
