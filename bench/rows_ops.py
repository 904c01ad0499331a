"""Rows of single ops: Rill in one process beside TensorFlow's session in this one."""
import json
import os

import contest
import lines
import op_graphs
import stage
import tensorflow.compat.v1 as tf

SECONDS = 0.1  # of a window: a step takes a few milliseconds at most, or some twenty


class Session:
    """A contender within this process: to start another for each op would take longer than to measure it."""
    start = {}

    def __init__(self, path):
        with open(path) as f:
            description = json.load(f)
        graph_def = tf.GraphDef()
        with open(os.path.join(os.path.dirname(path), description["graph"]), "rb") as f:
            graph_def.ParseFromString(f.read())
        with tf.Graph().as_default() as graph:
            tf.import_graph_def(graph_def, name="")
        self.session = tf.Session(graph=graph)
        case = description["cases"]["op"]
        for names in case["init"]:
            self.session.run([graph.get_operation_by_name(n) for n in names])
        self.step = self.session.make_callable([graph.get_operation_by_name(t) for t in case["targets"]])
        self.step()

    def wait_ready(self):
        return self

    def run(self, seconds, steps=0):
        return lines.window(self.step, seconds, steps, [])

    def close(self):
        self.session.close()


def family_rows(family):
    def rows(s):
        for name, op in op_graphs.OPS.items():
            if op.family == family:
                path = op_graphs.write(stage.GRAPHS, name)
                s.contest("op_" + name, "ops", op.title, {"rill": contest.generator(path, "op", warm=2), "tensorflow": Session(path)}, min(s.seconds, SECONDS), with_cpu=False)
    rows.__doc__ = "Single ops beside TensorFlow: " + op_graphs.FAMILIES[family]
    return rows


GROUPS = {"ops_" + family: family_rows(family) for family in op_graphs.FAMILIES}
