"""What a client learns about a step: RunMetadata with its timings and costs, TensorFlow's timeline and its profiler over them; on Rill and on TensorFlow."""
import json

import pytest
import tensorflow.compat.v1 as tf
from tensorflow.python.client import timeline
from tensorflow.python.profiler import model_analyzer, option_builder

import training


def model():
    x = tf.constant([[1.0, 2.0, 3.0]], name="x")
    w = tf.Variable(tf.ones([3, 5]), name="w", use_resource=False)
    return tf.reduce_sum(tf.matmul(x, w, name="product"), name="total")


def metadata_of(target, level, config=None):
    """The RunMetadata of the steps of a new session."""
    with tf.Graph().as_default() as graph:
        fetch = model()
        with training.session(target, graph, **(config or {})) as s:
            s.run(tf.global_variables_initializer())
            while True:
                metadata = tf.RunMetadata()
                assert s.run(fetch, options=tf.RunOptions(trace_level=level), run_metadata=metadata) == 30.0
                yield metadata, graph


def nodes_of(metadata):
    return {n.node_name: n for d in metadata.step_stats.dev_stats for n in d.node_stats}


@pytest.mark.parametrize("every, after", [(1, 0), (3, 0), (2, 1), (1, 3), (100, 0)])
def test_costs_come_as_often_as_they_were_asked_for(rill, reference, every, after):
    options = tf.GraphOptions(build_cost_model=every, build_cost_model_after=after)
    seen = []
    for target in (reference, rill):
        steps = metadata_of(target, tf.RunOptions.NO_TRACE, config={"graph_options": options})
        seen.append([next(steps)[0].HasField("cost_graph") for _ in range(7)])
        steps.close()
    assert seen[0] == seen[1]


def test_a_cost_graph_describes_the_nodes(rill, reference):
    options = tf.GraphOptions(build_cost_model=1)
    graphs = []
    for target in (reference, rill):
        steps = metadata_of(target, tf.RunOptions.FULL_TRACE, config={"graph_options": options})
        graphs.append(next(steps)[0].cost_graph)
        steps.close()
    for graph in graphs:
        nodes = {n.name: n for n in graph.node}
        ids = {n.id: n.name for n in graph.node}
        assert len(ids) == len(graph.node)
        product = nodes["product"]
        assert [ids[i.preceding_node] for i in product.input_info] == ["x", "w/read"]
        assert product.output_info[0].size == 20 and product.output_info[0].dtype == tf.float32.as_datatype_enum
        assert [d.size for d in product.output_info[0].shape.dim] == [1, 5]
        assert nodes["w/read"].output_info[0].alias_input_port == 0
        assert nodes["w"].persistent_memory_size == 60 and nodes["x"].persistent_memory_size == 12
        assert product.device.endswith("/device:CPU:0")
        assert nodes["_send_total_0"].is_final and not product.is_final


def test_a_trace_tells_what_memory_a_node_took_and_keeps(rill, reference):
    for target in (reference, rill):
        steps = metadata_of(target, tf.RunOptions.FULL_TRACE)
        nodes = nodes_of(next(steps)[0])
        steps.close()
        assert nodes["x"].memory_stats.persistent_memory_size == 12 and not nodes["x"].memory
        assert nodes["w"].memory_stats.persistent_memory_size == 60
        memory = nodes["product"].memory[0]
        assert memory.total_bytes == 20 and memory.peak_bytes == 20
        assert memory.allocation_records[0].alloc_bytes == 20 and memory.allocation_records[0].alloc_micros > 0


def test_tensorflows_profiler_and_timeline_read_a_trace(rill):
    builder = option_builder.ProfileOptionBuilder
    steps = metadata_of(rill, tf.RunOptions.FULL_TRACE)
    metadata, graph = next(steps)
    selected = ["bytes", "peak_bytes", "residual_bytes", "output_bytes", "micros", "params", "float_ops", "occurrence", "device", "op_types", "input_shapes"]
    options = builder(builder.time_and_memory(min_micros=0, min_bytes=0)).select(selected).order_by("name").with_empty_output().build()
    with graph.as_default():
        scopes = model_analyzer.profile(graph, metadata, cmd="scope", options=options)
        ops = model_analyzer.profile(graph, metadata, cmd="op", options=options)
    steps.close()
    product = [n for n in scopes.children if n.name == "product"][0]
    assert product.run_count == 1 and product.output_bytes == 20 and product.requested_bytes == 20
    assert [d for d in product.devices if d.endswith("cpu:0")]
    assert ops.total_requested_bytes >= 24
    trace = json.loads(timeline.Timeline(metadata.step_stats).generate_chrome_trace_format(show_memory=True))
    assert "product" in [e["args"]["name"] for e in trace["traceEvents"] if e.get("args", {}).get("op") == "MatMul"]
    assert timeline.Timeline(metadata.step_stats).analyze_step_stats().allocator_maximums["cpu"].num_bytes >= 20
