"""Everything a client can ask of a session on a Rill master, besides plain runs."""
import json

import grpc
import numpy as np
import pytest
import tensorflow.compat.v1 as tf
import tensorflow.compat.v2 as tf2
from tensorflow.core.protobuf import config_pb2
from tensorflow.python.client import timeline
from tensorflow.python.ops import functional_ops

import training
import wire


@pytest.fixture
def cluster(start_cluster):
    return start_cluster({"ps": 1, "worker": 2})


def test_list_devices(cluster, graph):
    with training.session(cluster.target(), graph) as s:
        devices = s.list_devices()
        assert sorted(d.name for d in devices) == ["/job:ps/replica:0/task:0/device:CPU:0",
                                                   "/job:worker/replica:0/task:0/device:CPU:0",
                                                   "/job:worker/replica:0/task:1/device:CPU:0"]
        assert all(d.device_type == "CPU" for d in devices)
        c = tf.constant(3.0) * 2.0
        assert s.run(c) == 6.0


def test_several_cpu_devices(start_cluster, graph):
    cluster = start_cluster({"worker": 1}, flags=["--cpu-devices", "3"])
    with tf.device("/cpu:0"):
        a = tf.constant([1.0, 2.0])
    with tf.device("/cpu:2"):
        b = a * 10.0
    with tf.device("/cpu:1"):
        c = tf.reduce_sum(b)
    with training.session(cluster.target(), graph) as s:
        assert len(s.list_devices()) == 3
        assert s.run(c) == 30.0


def test_graph_grows_between_runs(cluster, graph):
    with training.session(cluster.target(), graph) as s:
        with tf.device("/job:ps/task:0"):
            v = tf.Variable(1.0)
        s.run(v.initializer)
        for step in range(5):
            with tf.device("/job:worker/task:%d" % (step % 2)):
                more = v.assign_add(float(step))
            s.run(more)
        assert s.run(v) == 11.0


def test_partial_run(cluster, graph):
    a, b, c = (tf.placeholder(tf.float32, []) for _ in range(3))
    with tf.device("/job:ps/task:0"):
        first = a + b
    with tf.device("/job:worker/task:1"):
        second = first * c
    with training.session(cluster.target(), graph) as s:
        for _ in range(2):
            handle = s.partial_run_setup([first, second], [a, b, c])
            assert s.partial_run(handle, first, {a: 1.0, b: 2.0}) == 3.0
            assert s.partial_run(handle, second, {c: 10.0}) == 30.0
        handle = s.partial_run_setup([first, second], [a, b, c])
        with pytest.raises(tf.errors.InvalidArgumentError):
            s.partial_run(handle, second, {a: 1.0, b: 2.0})


def test_make_callable(cluster, graph):
    x = tf.placeholder(tf.float32, [])
    with tf.device("/job:ps/task:0"):
        y = x * 3.0
    with training.session(cluster.target(), graph) as s:
        f = s.make_callable(y, [x])
        assert [f(1.0), f(2.0)] == [3.0, 6.0]


def test_make_callable_from_options(cluster, graph):
    x = tf.placeholder(tf.float32, [2])
    with tf.device("/job:ps/task:0"):
        y = x * 3.0
        v = tf.Variable(0.0, use_resource=True)
    bump = v.assign_add(1.0)
    with training.session(cluster.target(), graph) as s:
        s.run(v.initializer)
        options = config_pb2.CallableOptions()
        options.feed.append(x.name)
        options.fetch.extend([y.name, y.name])
        options.target.append(bump.op.name)
        f = s._make_callable_from_options(options)
        for i in range(3):
            got = f(np.array([i, 2.0], np.float32))
            np.testing.assert_array_equal(got[0], [3.0 * i, 6.0])
            np.testing.assert_array_equal(got[1], got[0])
        del f
        assert s.run(v) == 3.0


def test_state_is_shared_between_sessions(cluster, graph):
    with tf.device("/job:ps/task:0"):
        v = tf.Variable(1.0)
    with training.session(cluster.target("worker", 0), graph) as one, training.session(cluster.target("worker", 1), graph) as two:
        one.run(v.initializer)
        one.run(v.assign(5.0))
        assert two.run(v) == 5.0


@pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])
def test_isolated_session_state(cluster, graph, resource):
    with tf.device("/job:ps/task:0"):
        v = tf.Variable(1.0, use_resource=resource)
    isolated = training.config(isolate_session_state=True)
    with tf.Session(cluster.target(), graph=graph, config=isolated) as one:
        one.run(v.initializer)
        one.run(v.assign(5.0))
        assert one.run(v) == 5.0
        with tf.Session(cluster.target(), graph=graph, config=isolated) as two, \
                training.session(cluster.target(), graph) as three:
            with pytest.raises(tf.errors.FailedPreconditionError):
                two.run(v)
            with pytest.raises(tf.errors.FailedPreconditionError):
                three.run(v)


@pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])
def test_reset_drops_variables_and_sessions(cluster, graph, resource):
    with tf.device("/job:ps/task:0"):
        v = tf.Variable(1.0, use_resource=resource)
        with graph.container("mine"):
            w = tf.Variable(2.0, use_resource=resource)
    s = training.session(cluster.target(), graph)
    s.run([v.initializer, w.initializer])
    tf.Session.reset(cluster.target(), ["mine"])
    with pytest.raises(tf.errors.AbortedError):
        s.run(v)
    with training.session(cluster.target(), graph) as s:
        assert s.run(v) == 1.0
        with pytest.raises(tf.errors.FailedPreconditionError):
            s.run(w)
    tf.Session.reset(cluster.target())
    with training.session(cluster.target(), graph) as s:
        with pytest.raises(tf.errors.FailedPreconditionError):
            s.run(v)


def test_device_filters_leave_out_a_dead_task(cluster, graph):
    cluster.task("worker", 1).kill()
    with tf.device("/job:ps/task:0"):
        v = tf.Variable(4.0)
    with training.session(cluster.target(), graph, device_filters=["/job:ps", "/job:worker/task:0"]) as s:
        s.run(v.initializer)
        assert s.run(v) == 4.0
        assert len(s.list_devices()) == 2


def test_session_on_a_missing_task_names_it(start_cluster, graph):
    cluster = start_cluster({"ps": 1, "worker": 1}, flags=["--session-timeout", "1"])
    cluster.task("ps").kill()
    with training.session(cluster.target(), graph) as s:
        with pytest.raises((tf.errors.UnavailableError, tf.errors.AbortedError)) as error:  # what clients retry on
            s.run(tf.constant(1))
    assert "/job:ps/replica:0/task:0" in str(error.value) and cluster.spec["ps"][0] in str(error.value)


def test_cluster_def_propagation(start_cluster, graph):
    """The client names the cluster; the tasks themselves only know their own address."""
    alone = [start_cluster({"local": 1}) for _ in range(3)]
    addresses = [c.spec["local"][0] for c in alone]
    spec = tf.train.ClusterSpec({"ps": [addresses[0]], "worker": addresses[1:]})
    with tf.device("/job:ps/task:0"):
        v = tf.Variable([1.0, 2.0])
    with tf.device("/job:worker/task:1"):
        out = tf.reduce_sum(v * 2.0)
    with training.session("grpc://" + addresses[1], graph, cluster_def=spec.as_cluster_def()) as s:
        s.run(v.initializer)
        assert s.run(out) == 6.0
        names = sorted(d.name for d in s.list_devices())
        assert names[0] == "/job:ps/replica:0/task:0/device:CPU:0" and len(names) == 3


def test_full_trace_gives_a_timeline(cluster, graph):
    with tf.device("/job:ps/task:0"):
        v = tf.Variable(tf.ones([64, 64]), name="traced_variable")
    with tf.device("/job:worker/task:0"):
        out = tf.reduce_sum(tf.matmul(v, v, name="traced_product"))
    with training.session(cluster.target(), graph) as s:
        s.run(v.initializer)
        metadata = tf.RunMetadata()
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE, output_partition_graphs=True)
        assert s.run(out, options=options, run_metadata=metadata) == 64.0 ** 3
    devices = {d.device for d in metadata.step_stats.dev_stats if d.node_stats}
    assert any("job:ps" in d for d in devices) and any("job:worker" in d for d in devices), devices
    nodes = [n for d in metadata.step_stats.dev_stats for n in d.node_stats]
    assert any(n.node_name == "traced_product" and n.all_end_rel_micros >= 0 and n.all_start_micros > 0 for n in nodes)
    transfers = [(d.device, n) for d in metadata.step_stats.dev_stats for n in d.node_stats if n.node_name == "RecvTensor"]
    assert transfers and all("job:worker/replica:0/task:0" in device for device, _ in transfers)
    assert any("[16384B] [" in n.timeline_label and "traced_variable" in n.timeline_label
               and "from /job:ps/replica:0/task:0/device:CPU:0 to /job:worker/replica:0/task:0/device:CPU:0" in n.timeline_label
               for _, n in transfers), transfers
    trace = json.loads(timeline.Timeline(metadata.step_stats).generate_chrome_trace_format())
    assert any(e.get("args", {}).get("name") == "traced_product" for e in trace["traceEvents"])
    parts = [n.op for g in metadata.partition_graphs for n in g.node]
    assert len(metadata.partition_graphs) >= 2 and "_Send" in parts and "_Recv" in parts


def test_a_trace_shows_tensors_on_their_way_to_the_ps(cluster, graph):
    with tf.device("/job:ps/task:0"):
        v = tf.Variable(tf.zeros([64, 64]), name="target")
    with tf.device("/job:worker/task:0"):
        product = tf.matmul(tf.ones([64, 64]), tf.fill([64, 64], tf.placeholder_with_default(2.0, [])), name="pushed_product")
    with tf.device("/job:ps/task:0"):
        update = v.assign(product)
    with training.session(cluster.target(), graph) as s:
        metadata = tf.RunMetadata()
        s.run(update.op, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), run_metadata=metadata)
        assert (s.run(v) == 128.0).all()
    labels = [n.timeline_label for d in metadata.step_stats.dev_stats if "job:ps" in d.device for n in d.node_stats if n.node_name == "RecvTensor"]
    assert any("[16384B] [" in label and "pushed_product" in label and "from /job:worker/replica:0/task:0/device:CPU:0 to /job:ps/replica:0/task:0/device:CPU:0" in label
               for label in labels), labels


def test_masters_agree_on_the_steps_of_a_graph_key(cluster, graph):
    """With a collective graph key the leader of the group gives the first step id and each master counts on from there."""
    leader, other = cluster.target("worker", 0), cluster.target("worker", 1)
    key = 7

    def next_id(target):
        with grpc.insecure_channel(target[len("grpc://"):]) as channel:
            reply = channel.unary_unary("/tensorflow.WorkerService/GetStepSequence")(wire.message(_1=key), timeout=30)
        sequence, = wire.read(reply)[1]
        assert wire.read(sequence)[1] == [key]
        return wire.read(sequence)[2][0]

    out = tf.constant(2.0) * 3.0
    fails = tf.check_numerics(tf.placeholder_with_default(1.0, []) / 0.0, "fails")
    options = tf.RunOptions(experimental=tf.RunOptions.Experimental(collective_graph_key=key))
    experimental = tf.ConfigProto.Experimental(collective_group_leader="/job:worker/replica:0/task:0")
    with training.session(other, graph, experimental=experimental) as s:
        first = next_id(leader)
        assert first > 0
        for _ in range(3):
            assert s.run(out, options=options) == 6.0
        assert next_id(other) == first + 3
        assert next_id(leader) == first
        with pytest.raises(tf.errors.InvalidArgumentError):
            s.run(fails, options=options)
        assert s.run(out, options=options) == 6.0  # agreed on anew
        assert next_id(other) == first + 1
    experimental.collective_group_leader = "/job:worker/replica:0/task:9"
    with training.session(cluster.target("worker", 0), graph, experimental=experimental) as s:
        assert s.run(out) == 6.0
    with training.session(other, graph, experimental=experimental) as s:
        with pytest.raises(tf.errors.InvalidArgumentError, match="task:9 is not a task"):
            s.run(out, options=tf.RunOptions(experimental=tf.RunOptions.Experimental(collective_graph_key=8)))


def test_messages_over_the_limit_are_refused(start_cluster, graph):
    cluster = start_cluster({"ps": 1, "worker": 1}, flags=["--max-message-mb", "1"])
    x = tf.placeholder(tf.float32, [None])
    with tf.device("/job:ps"):
        big = tf.fill([1000000], 1.0)
    with training.session(cluster.target(), graph) as s:
        total = tf.reduce_sum(x)
        assert s.run(total, {x: np.ones(100000, np.float32)}) == 100000.0
        with pytest.raises(tf.errors.ResourceExhaustedError, match="4000[0-9]+ bytes.*1048576|1048576.*4000[0-9]+"):
            s.run(total, {x: np.ones(1000000, np.float32)})
        with tf.device("/job:worker"):
            far = tf.reduce_sum(big)
        with pytest.raises(tf.errors.ResourceExhaustedError):
            s.run(far)
        assert s.run(total, {x: np.ones(10, np.float32)}) == 10.0


@pytest.mark.parametrize("how", ["session", "run"])
def test_timeout_of_a_step(cluster, graph, how):
    with tf.device("/job:ps/task:0"):
        queue = tf.FIFOQueue(1, tf.float32)
    with training.session(cluster.target(), graph, operation_timeout_in_ms=500 if how == "session" else 60000) as s:
        with pytest.raises(tf.errors.DeadlineExceededError):
            s.run(queue.dequeue(), options=tf.RunOptions(timeout_in_ms=500) if how == "run" else None)
    with training.session(cluster.target(), graph) as s:
        s.run(queue.enqueue(2.0))
        assert s.run(queue.dequeue()) == 2.0  # the step that gave up took nothing


def test_errors_name_their_node(cluster, graph):
    with tf.device("/job:ps/task:0"):
        v = tf.Variable(1.0, name="never_set", use_resource=False)
        bad = tf.check_numerics(tf.constant([1.0]) / 0.0, "a check that fails", name="guard")
        x = tf.placeholder(tf.float32, name="not_fed")
    with training.session(cluster.target(), graph) as s:
        with pytest.raises(tf.errors.FailedPreconditionError, match="never_set"):
            s.run(v)
        with pytest.raises(tf.errors.InvalidArgumentError, match="a check that fails") as error:
            s.run(bad)
        assert error.value.op.name == "guard"
        with pytest.raises(tf.errors.InvalidArgumentError, match="not_fed"):
            s.run(x + 1.0)
        with pytest.raises(tf.errors.InvalidArgumentError, match="/job:ps/task:7"):
            with tf.device("/job:ps/task:7"):
                s.run(tf.constant(1.0))


def test_closed_queue_and_closed_session(cluster, graph):
    with tf.device("/job:ps/task:0"):
        queue = tf.FIFOQueue(3, tf.int32)
    with training.session(cluster.target(), graph) as s:
        s.run(queue.enqueue(1))
        s.run(queue.close())
        assert s.run(queue.dequeue()) == 1
        with pytest.raises(tf.errors.OutOfRangeError):
            s.run(queue.dequeue())
        with pytest.raises(tf.errors.CancelledError):
            s.run(queue.enqueue(2))


@pytest.mark.parametrize("version", [1, 2])
def test_control_flow_across_ps_and_worker(cluster, graph, version):
    (tf.enable_control_flow_v2 if version == 2 else tf.disable_control_flow_v2)()
    try:
        with tf.device("/job:ps/task:0"):
            v = tf.Variable(3.0)
        x = tf.placeholder(tf.float32, [])

        def body(i, total):
            with tf.device("/job:ps/task:0"):
                part = v * total
            with tf.device("/job:worker/task:1"):
                return i + 1, tf.cond(part > 50.0, lambda: part / 10.0, lambda: part + tf.cast(i, tf.float32))

        with tf.device("/job:worker/task:0"):
            _, out = tf.while_loop(lambda i, _: i < 8, body, [0, x])
            array = tf.map_fn(lambda e: e * x + v, tf.constant([1.0, 2.0, 3.0]))
            scan = tf.scan(lambda a, e: a * 0.5 + e, tf.constant([1.0, 2.0, 3.0]), initializer=x)
            grads = tf.gradients([out, tf.reduce_sum(array)], [x, v])
            case = tf.case([(x > 5.0, lambda: tf.constant(1)), (x > 1.0, lambda: tf.constant(2))], lambda: tf.constant(3))
    finally:
        tf.disable_control_flow_v2()
    fetches = [out, array, scan, grads, case]
    stripped = tf.train.export_meta_graph(graph=graph, clear_devices=True)
    for node in (n for f in stripped.graph_def.library.function for n in f.node_def):
        node.device = ""
    with tf.Graph().as_default() as plain:
        tf.train.import_meta_graph(stripped)
    init = v.initializer
    with training.session(cluster.target(), graph) as s, tf.Session(graph=plain) as r:
        s.run(init)
        r.run(init.name)
        for value in (0.5, 2.0, 7.0):
            got = s.run(fetches, {x: value})
            want = r.run([out.name, array.name, scan.name, [g.name for g in grads], case.name], {x.name: value})
            for a, b in zip(tf.nest.flatten(got), tf.nest.flatten(want)):
                np.testing.assert_allclose(a, b, rtol=1e-5)


def test_a_loop_uses_what_another_task_holds(cluster, graph):
    """In the bodies of loops that are functions: a variable, read in every iteration; a queue, of which no more is taken than there are iterations."""
    tf.enable_control_flow_v2()
    try:
        with tf.device("/job:ps/task:0"):
            v = tf.get_variable("v", initializer=3.0, use_resource=True)
            queue = tf.FIFOQueue(10, tf.float32, shapes=[()])
        with tf.device("/job:worker/task:0"):
            mapped = tf.map_fn(lambda e: e + v, tf.constant([1.0, 2.0, 3.0]))
            nested = tf.while_loop(lambda i, _: i < 2, lambda i, t: (i + 1, tf.while_loop(lambda j, _: j < 3, lambda j, u: (j + 1, u + v), [0, t])[1]), [0, 0.0])[1]
            taken = tf.while_loop(lambda i, _: i < 4, lambda i, t: (i + 1, t + queue.dequeue()), [0, 0.0])[1]
            slope = tf.gradients(tf.reduce_sum(mapped * mapped), v)
    finally:
        tf.disable_control_flow_v2()
    with training.session(cluster.target(), graph) as s:
        s.run(v.initializer)
        assert list(s.run(mapped)) == [4.0, 5.0, 6.0]
        assert s.run(nested) == 18.0
        assert s.run(slope) == [30.0]
        s.run(queue.enqueue_many([[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]]))
        assert s.run(taken) == 10.0
        assert s.run(queue.size()) == 2


def test_a_function_may_be_called_for_another_task(cluster, graph):
    square = tf2.function(lambda x: x * x, input_signature=[tf2.TensorSpec([], tf.float32)]).get_concrete_function()
    out = functional_ops.remote_call(args=[tf.constant(3.0)], Tout=[tf.float32], f=square, target="/job:ps/task:0/cpu:0")
    with training.session(cluster.target(), graph) as s:
        assert s.run(out) == [9.0]


@pytest.mark.parametrize("how", ["py_func", "from_generator"])
def test_python_in_the_graph_is_refused_clearly(cluster, graph, how):
    if how == "py_func":
        out = tf.py_func(lambda: np.float32(1), [], tf.float32, name="calls_python")
        init = tf.no_op()
    else:
        dataset = tf.data.Dataset.from_generator(lambda: iter([1.0]), tf.float32)
        iterator = tf.data.make_initializable_iterator(dataset)
        init, out = iterator.initializer, iterator.get_next()
    with training.session(cluster.target(), graph) as s:
        with pytest.raises(tf.errors.OpError, match="calls Python (code )?in the process"):
            s.run(init)
            s.run(out)
