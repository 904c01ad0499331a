"""What one client does with several tasks, on Rill and on TensorFlow: placement and its errors, functions called on other tasks, clusters that the client brings."""
import re

import pytest
import tensorflow.compat.v1 as tf
from tensorflow.python.framework import function
from tensorflow.python.ops import functional_ops
from tensorflow.python.ops import gen_functional_ops
from tensorflow.python.ops import gen_resource_variable_ops

import training
from client_programs import Client, modes_of, same
from cluster_process import free_port

JOBS = {"ps": 2, "worker": 2}


@pytest.fixture(scope="module")
def tf_cluster():
    """The targets of the workers of a TensorFlow cluster in this process."""
    spec = {job: ["localhost:%d" % free_port() for _ in range(count)] for job, count in JOBS.items()}
    servers = {(job, i): tf.train.Server(spec, job_name=job, task_index=i) for job in JOBS for i in range(JOBS[job])}
    return servers


def on(job, task):
    return tf.device("/job:%s/task:%d" % (job, task))


def texts_of(outcomes):
    """What an error says, without what only one run can say: addresses and who told the client first."""
    texts = [getattr(o, "text", None) for o in outcomes]
    return [t and re.sub(r"(localhost|127\.0\.0\.1):\d+", "ADDRESS", t.split("Additional ")[0].split("\n\t [[{{node")[0]).strip() for t in texts]


@pytest.fixture
def both(start_cluster, tf_cluster, tmp_path):
    """Runs a program of a Client on both clusters; the outcomes must be the same, with texts=True also what errors say."""
    def run(build, mode="v1", texts=False):
        rill = start_cluster(JOBS).target("worker", 0)
        outcomes = []
        for target in (tf_cluster["worker", 0].target, rill):
            tf.Session.reset(target)
            modes_of(mode)
            try:
                with tf.Graph().as_default():
                    client = Client(target, tmp_path)
                    try:
                        build(client)
                    finally:
                        client.close()
            finally:
                modes_of("v1")
            outcomes.append(client.outcomes)
        expected, got = outcomes
        assert len(got) == len(expected) and expected
        for i, (a, b) in enumerate(zip(got, expected)):
            same(a, b, "outcome %d" % i, 1e-4)
        if texts:
            assert texts_of(got) == texts_of(expected)

    return run


def test_gradients_of_branches_in_loops_on_other_tasks(both):
    """What a branch did not compute crosses tasks as an Optional without a value."""
    def program(p):
        x = tf.placeholder(tf.float32, [2])
        with on("ps", 1):
            v = tf.get_variable("v", [2], initializer=tf.constant_initializer(0.5))

        def body(i, a):
            with on("worker", 1):
                return i + 1, tf.cond(tf.equal(i % 2, 0), lambda: a * v, lambda: tf.while_loop(lambda j, c: j < 2, lambda j, c: (j + 1, c + v * a), [0, a])[1])

        with on("worker", 0):
            result = tf.while_loop(lambda i, a: i < 5, body, [0, x])[1]
            slopes = tf.gradients(result, [x, v])
            second = tf.gradients(tf.reduce_sum(slopes[0]), [x, v])
        p.init()
        p.run([result, slopes], {x: [1.0, 2.0]})
        p.run(second, {x: [1.0, 2.0]})

    both(program, mode="v2")


def test_remote_calls(both):
    def program(p):
        @function.Defun(tf.int32, tf.int32)
        def calculate(a, b):
            return a * b + 1

        @function.Defun(tf.resource, tf.float32)
        def add(handle, x):
            with tf.control_dependencies([gen_resource_variable_ops.assign_add_variable_op(handle, x)]):
                return gen_resource_variable_ops.read_variable_op(handle, tf.float32)

        with on("ps", 0):
            v = tf.get_variable("v", [2], initializer=tf.ones_initializer(), use_resource=True)
        targets = ["/job:worker/replica:0/task:1/cpu:0", "/job:ps/task:0/cpu:0", "/cpu:0", "/job:nosuch/task:0/cpu:0", "/job:worker/task:7/cpu:0",
                   "/job:worker/task:0/device:GPU:0", "gibberish"]
        with on("worker", 0):
            calls = [functional_ops.remote_call(args=[tf.constant(3), tf.constant(5)], Tout=[tf.int32], f=calculate, target=t) for t in targets]
            added = functional_ops.remote_call(args=[v.handle, tf.constant([1.0, 2.0])], Tout=[tf.float32], f=add, target="/job:ps/replica:0/task:0/device:CPU:0")
        p.init()
        for call in calls:
            p.run(call)
        p.run(added)
        p.run(added)
        p.run(v.read_value())

    both(program, texts=True)


def test_the_body_of_a_function_runs_where_its_call_does(both):
    """Whatever its nodes say of devices."""
    def program(p):
        def body(x):
            with tf.device("/device:GPU:3"):
                return x * x

        x = tf.placeholder_with_default(3.0, [])
        square = function.Defun(tf.float32, func_name="square_of_another_device")(body)
        twice = function.Defun(tf.float32, func_name="square_of_a_square")(lambda y: square(square(y)))
        with on("worker", 1):
            y = square(x)
            fetches = [y, twice(x), tf.gradients(y, x), functional_ops.remote_call("/cpu:0", [x], [tf.float32], square)]
            fetches += [tf.cond(x > 1.0, lambda: square(x), lambda: x), tf.map_fn(square, tf.constant([1.0, 2.0]))]
            fetches += [gen_functional_ops.partitioned_call([x], [tf.float32], f=twice)]
        p.run(fetches)

    for mode in ("v1", "v2"):
        both(program, mode=mode)


def test_a_remote_call_to_a_target_known_only_at_run_time(both):
    def program(p):
        @function.Defun(tf.int32)
        def double(a):
            return a * 2

        target = tf.placeholder(tf.string, [])
        with on("worker", 0):
            call = functional_ops.remote_call(args=[tf.constant(3)], Tout=[tf.int32], f=double, target=target)
        for name in ("/job:worker/task:0/cpu:0", "/job:ps/task:1/cpu:0", "/job:nosuch/task:0/cpu:0"):
            p.run(call, {target: name})

    both(program, texts=True)


def nowhere():
    with tf.device("/job:nosuch"):
        x = tf.constant(1.0)
        return x * x


def no_gpu():
    with tf.device("/device:GPU:0"):
        return tf.constant(1.0) + tf.constant(2.0)


def no_such_task():
    with on("ps", 9):
        return tf.Variable(1.0, name="far", use_resource=True).initializer


def no_such_cpu():
    with tf.device("/job:worker/task:0/device:CPU:3"):
        return tf.matmul([[1.0]], [[2.0]])


def torn_apart():
    with on("ps", 0):
        a = tf.placeholder(tf.float32, name="a")
    with on("ps", 1):
        tf.placeholder(tf.float32, name="b")
    out = tf.identity(a, name="out")
    out.op._set_attr("_class", tf.AttrValue(list=tf.AttrValue.ListValue(s=[b"loc:@a", b"loc:@b"])))
    return out


@pytest.mark.parametrize("build", [nowhere, no_gpu, no_such_task, no_such_cpu, torn_apart])
def test_what_cannot_be_placed_is_said_in_tensorflows_words(both, build):
    both(lambda p: p.run(build()), texts=True)


def test_a_reference_variable_and_a_resource_variable_of_one_name_are_two(both):
    def program(p):
        with on("ps", 0):
            reference = tf.raw_ops.VariableV2(shape=[], dtype=tf.float32, shared_name="same", container="")
            handle = tf.raw_ops.VarHandleOp(shape=[], dtype=tf.float32, shared_name="same", container="")
            assign = [tf.raw_ops.Assign(ref=reference, value=tf.constant(3.0)), tf.raw_ops.AssignVariableOp(resource=handle, value=tf.constant(4.0))]
            read = tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.float32)
            known = [tf.raw_ops.IsVariableInitialized(ref=reference), tf.raw_ops.VarIsInitializedOp(resource=handle)]
            destroy = tf.raw_ops.DestroyResourceOp(resource=handle, ignore_lookup_error=False)
        for fetch in (known, assign[0], known, read, assign[1], [read, reference], destroy, known, reference, read):
            p.run(fetch)

    both(program)


def local_tasks(start_cluster, count):
    """Tasks that know of no other, as targets: first TensorFlow's, then Rill's."""
    servers = [tf.train.Server.create_local_server() for _ in range(count)]
    return servers, [[s.target for s in servers], [start_cluster({"localhost": 1}).target("localhost", 0) for _ in range(count)]]


def cluster_def(*targets):
    return tf.train.ClusterSpec({"worker": [t[len("grpc://"):] for t in targets]}).as_cluster_def()


def test_a_session_that_brings_its_cluster_shares_no_state(start_cluster):
    _servers, kinds = local_tasks(start_cluster, 3)
    seen = []
    for first, second, third in kinds:
        outcomes = []
        with tf.Graph().as_default() as graph:
            with on("worker", 1):
                v = tf.Variable(tf.zeros([2]), name="v")
                add = v.assign_add([1.0, 1.0])
            clusters = [cluster_def(second, first), cluster_def(second, third), cluster_def(second, first)]
            sessions = [training.session(second, graph, cluster_def=c) for c in clusters]
            try:
                for s in sessions[:2]:
                    s.run(v.initializer)
                for s, fetch in [(0, add), (0, add), (1, v), (1, add), (0, v), (1, v), (2, v)]:
                    try:
                        outcomes.append(list(sessions[s].run(fetch)))
                    except tf.errors.OpError as error:
                        outcomes.append(type(error))
                outcomes.append(sorted(d.name for d in sessions[0].list_devices()))
            finally:
                for s in sessions:
                    s.close()
        with tf.Graph().as_default() as graph:  # nor with those that bring none
            v = tf.Variable(tf.zeros([2]), name="v")
            with training.session(first, graph) as s, pytest.raises(tf.errors.FailedPreconditionError):
                s.run(v)
        with tf.Graph().as_default() as graph, pytest.raises(tf.errors.InvalidArgumentError, match="The master .* is not included in the provided cluster_def"):
            one = tf.constant(1)
            training.session(first, graph, cluster_def=cluster_def(second)).run(one)
        seen.append(outcomes)
    assert seen[0] == seen[1]
    assert seen[0][-2] is tf.errors.FailedPreconditionError


def test_a_session_that_brings_its_cluster_may_share_state(start_cluster):
    _servers, kinds = local_tasks(start_cluster, 1)
    for (target,) in kinds:
        config = tf.ConfigProto(cluster_def=cluster_def(target), operation_timeout_in_ms=60000)
        config.experimental.share_session_state_in_clusterspec_propagation = True
        with tf.Graph().as_default():
            v = tf.Variable(37, name="v")
            with tf.Session(target, config=config) as first, tf.Session(target, config=config) as second:
                first.run(v.initializer)
                assert second.run(v.assign_add(1)) == 38
            with tf.Session(target, config=config) as third:
                assert third.run(v) == 38
