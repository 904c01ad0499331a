"""What a client can do with sessions: fetches of every form, feeds, partial runs, callables, containers, and what it gets when it errs."""
import collections
import re

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from tensorflow.core.protobuf import config_pb2

from client_programs import compare, program

Pair = collections.namedtuple("Pair", ["first", "second"])


@program(server=True)
def test_structures_of_fetches(p):
    a, b = tf.constant([1, 2]), tf.constant("text")
    op = tf.no_op()
    p.run(a)
    p.run([])
    p.run({})
    p.run([a, [b, (a, op)], {"k": b, "l": [op]}])
    p.run(Pair(a, {"x": b}))
    p.run((op, op))
    p.run(collections.OrderedDict([("z", a), ("y", b)]))
    p.run([a, a, a])
    p.run(a.name)
    p.run([op.name, a.op])
    p.run([op.name])
    p.run("missing:0")
    p.run(None)
    p.run([a, None])
    p.run(3)


@program(server=True)
def test_fetches_of_composites(p):
    sparse = tf.SparseTensor([[0, 1], [2, 0]], [1.5, 2.5], [3, 2])
    slices = tf.IndexedSlices(tf.constant([[1.0, 2.0]]), tf.constant([3]), tf.constant([5, 2]))
    without_shape = tf.IndexedSlices(tf.constant([[1.0, 2.0]]), tf.constant([3]))
    ragged = tf.ragged.constant([[1, 2], [], [3]])
    p.run(sparse)
    p.run([sparse, {"s": slices}, without_shape])
    value = p.session.run(ragged)
    p.record([value.values, value.row_splits])


@program(server=True)
def test_feeds_of_composites(p):
    sparse = tf.sparse_placeholder(tf.float32, [3, 4])
    p.run(tf.sparse_tensor_to_dense(sparse), {sparse: tf.SparseTensorValue([[0, 1], [2, 3]], [1.0, 2.0], [3, 4])})
    p.run(tf.sparse_reduce_sum(sparse), {sparse: ([[1, 1]], [7.0], [3, 4])})
    slices = tf.IndexedSlices(tf.placeholder(tf.float32), tf.placeholder(tf.int64))
    p.run(tf.convert_to_tensor(tf.unsorted_segment_sum(slices.values, slices.indices, 4)),
          {slices: (np.ones([2, 2], np.float32), np.array([1, 3]))})


@program("v1", "v2", server=True)
def test_feeding_what_is_computed(p):
    """Any tensor may be fed: constants, results, variables' values, several outputs."""
    c = tf.constant([1.0, 2.0])
    twice = c * 2.0
    parts = tf.split(twice, 2)
    v = tf.get_variable("v", initializer=[5.0, 6.0])
    total = parts[0] + 10.0 * parts[1] + tf.reduce_sum(v)
    p.run(v.initializer)
    p.run(total)
    p.run(total, {c: [3.0, 4.0]})
    p.run([total, twice], {twice: [0.5, 0.25]})
    p.run([total, twice], {parts[0]: [7.0]})
    p.run(total, {parts[0]: [7.0], parts[1]: [8.0]})
    p.run(twice, {twice: [1.0, 1.0]})
    p.run([twice, twice.op], {twice: [1.0, 1.0]})
    p.run(total, {v: [100.0, 200.0]})
    p.run([total, v])
    p.run(total, {c: [1.0, 2.0, 3.0]})


@program(server=True)
def test_feeds_that_do_not_fit(p):
    x = tf.placeholder(tf.float32, [2, None], name="x")
    n = tf.placeholder(tf.int32)
    s = tf.placeholder(tf.string)
    p.run(x, {x: [[1, 2], [3, 4]]})
    p.run(x, {x: [1, 2]})
    p.run(x, {x: [[1, 2, 3]]})
    p.run(x, {x: "text"})
    p.run(n, {n: 2.5})
    p.run(n, {n: 2 ** 40})
    p.run(n, {n: True})
    p.run(s, {s: ["a", b"b\0c", "ä"]})
    p.run(s, {s: [["", "x" * 1000]]})
    p.run(s, {s: 3})
    p.run(x + 1.0)
    p.run(n + 1, {"x:0": [[1], [2]]})
    p.run(x, {"missing:0": 1})
    p.run(x, {tf.constant(1, name="other").op: 1})
    p.run(x, {x: tf.constant([[1.0], [2.0]])})
    p.run(x, {"x:0": np.zeros([2, 0])})


@program(server=True)
def test_placeholders_with_unknown_and_partial_shapes(p):
    x = tf.placeholder(tf.float32)
    y = tf.placeholder(tf.int64, [None, 3])
    d = tf.placeholder_with_default([[1, 2]], [None, 2])
    for value in (1.0, [1.0], [[1.0, 2.0]], np.zeros([0, 5])):
        p.run([tf.shape(x), tf.rank(x), tf.size(x)], {x: value})
    p.run(tf.reduce_sum(y, 1), {y: np.arange(6).reshape(2, 3)})
    p.run(tf.reduce_sum(y, 1), {y: np.zeros([0, 3])})
    p.run(d)
    p.run(d, {d: [[3, 4], [5, 6]]})
    p.run(d, {d: [[3, 4, 5]]})


@program(server=True)
def test_dtypes_of_feeds_and_fetches(p):
    for dtype in (tf.float16, tf.bfloat16, tf.float32, tf.float64, tf.int8, tf.uint8, tf.int16, tf.uint16, tf.int32, tf.uint32, tf.int64,
                  tf.uint64, tf.bool, tf.complex64, tf.complex128):
        x = tf.placeholder(dtype)
        p.run([x, tf.identity(x)], {x: np.array([[0, 1], [2, 3]]).astype(dtype.as_numpy_dtype)})
        p.run(tf.identity(x), {x: np.zeros([0, 3], dtype.as_numpy_dtype)})
    for dtype in (tf.qint8, tf.quint8, tf.qint32):
        x = tf.placeholder(dtype)
        p.run(tf.bitcast(x, {tf.qint8: tf.int8, tf.quint8: tf.uint8, tf.qint32: tf.int32}[dtype]), {x: np.array([1, 2], dtype.as_numpy_dtype)})


@program(server=True)
def test_partial_run(p):
    a, b, c = (tf.placeholder(tf.float32, []) for _ in range(3))
    first, s = a + b, p.session
    second = first * c
    h = s.partial_run_setup([first, second, second.op], [a, b, c])
    p.attempt(lambda: s.partial_run(h, first, {a: 1.0, b: 2.0}))
    p.attempt(lambda: s.partial_run(h, second, {first: 17.0, c: 3.0}))
    h = s.partial_run_setup([first, second], [a, b, c])
    p.attempt(lambda: s.partial_run(h, second, {a: 1.0, b: 2.0}))
    h = s.partial_run_setup([first, second], [a, b, c])
    p.attempt(lambda: s.partial_run(h, first, {a: 1.0, b: 2.0}))
    p.attempt(lambda: s.partial_run(h, first, {}))
    p.attempt(lambda: s.partial_run(h, second, {c: 2.0}))
    h = s.partial_run_setup([first], [a, b])
    p.attempt(lambda: s.partial_run(h, first, {a: 1.0, b: 2.0}))
    p.attempt(lambda: s.partial_run(h, first, {a: 1.0, b: 2.0}))
    p.attempt(lambda: s.partial_run("no such handle", first, {a: 1.0}))
    p.attempt(lambda: s.partial_run_setup([first], [a, "nothing:0"]))
    h = s.partial_run_setup([first, second], [a])
    p.attempt(lambda: s.partial_run(h, first, {c: 1.0}))
    h = s.partial_run_setup([first], [a, b])
    p.attempt(lambda: s.partial_run(h, first, {a: 1.0, c: 3.0}))
    p.attempt(lambda: s.partial_run(h, second, {a: 1.0}))
    p.attempt(lambda: s.partial_run(h, first, {a: 1.0, b: 2.0}))  # what was refused has fed nothing


@program(server=True)
def test_partial_runs_side_by_side(p):
    x, y = (tf.placeholder(tf.float32, []) for _ in range(2))
    one, two, s = x * 2.0, y * 3.0, p.session
    handles = [s.partial_run_setup([one, two], [x, y]) for _ in range(4)]
    for i, h in enumerate(handles):
        p.attempt(lambda: s.partial_run(h, one, {x: float(i)}))
    for i, h in enumerate(reversed(handles)):
        p.attempt(lambda: s.partial_run(h, [two], {y: float(i)}))


@program("v1", "v2", server=True)
def test_callables(p):
    x, y = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.float32, [])
    v = tf.get_variable("v", initializer=1.0)
    p.run(v.initializer)
    s, z = p.session, x * y + v
    with tf.control_dependencies([z]):
        bump = v.assign_add(1.0).op
    both = s.make_callable([z, {"bump": bump}], [x, y])
    p.attempt(lambda: both([1.0, 2.0], 3.0))
    p.attempt(lambda: both([], 3.0))
    p.attempt(lambda: both([1.0]))
    nothing = s.make_callable(v.assign(10.0).op)
    p.attempt(nothing)
    p.attempt(s.make_callable(v.value()))
    p.attempt(lambda: s.make_callable(z, [x])([1.0]))


@program(server=True)
def test_callables_from_options(p):
    x = tf.placeholder(tf.float32, [2], name="x")
    y = tf.multiply(x, 3.0, name="y")
    s = p.session

    def options(**more):
        return s._make_callable_from_options(config_pb2.CallableOptions(**more))

    p.attempt(lambda: options(feed=["x:0"], fetch=["y:0", "y:0", "x:0"])(np.array([1, 2], np.float32)))
    p.attempt(lambda: options(feed=["x:0"], target=["y"])(np.array([1, 2], np.float32)))
    p.attempt(lambda: options(fetch=["y:0"])())
    p.attempt(lambda: options(fetch=["nothing:0"])())
    p.attempt(lambda: options(feed=["nothing:0"], fetch=["y:0"])(np.array([1, 2], np.float32)))
    link = config_pb2.CallableOptions(feed=["const:0"], fetch=["after:0"])
    tf.add(tf.constant(1, name="const"), 1, name="after")
    p.attempt(lambda: s._make_callable_from_options(link)(np.array(5, np.int32)))


CONNECTIONS = {
    "in place of a feed": (["e:0"], [("d:0", "y:0")]),
    "two": (["e:0", "f:0", "d:0"], [("d:0", "y:0"), ("u:1", "z:0")]),
    "names without an index": (["e:0"], [("d", "y")]),
    "of a variable": (["e:0"], [("v:0", "y:0")]),
    "in place of a variable": (["v/read:0"], [("d:0", "v:0")]),
    "in place of what a node waits for": (["q:0"], [("d:0", "w:0")]),
    "seen in a loop": (["loop/Identity_2:0"], [("d:0", "y:0")]),
    "of what a later one replaces": (["f:0"], [("y:0", "z:0"), ("c:0", "y:0")]),
    "of what an earlier one has replaced": (["f:0"], [("c:0", "y:0"), ("y:0", "z:0")]),
    "of what an earlier one changes": (["f:0"], [("c:0", "y:0"), ("e:0", "z:0")]),
    "of itself": (["e:0"], [("e:0", "y:0")]),
    "of each other": (["f:0"], [("e:0", "z:0"), ("f:0", "y:0")]),
    "of no node": (["e:0"], [("nothing:0", "y:0")]),
    "of no output": (["e:0"], [("d:1", "y:0")]),
    "to no node": (["e:0"], [("d:0", "nothing:0")]),
    "to no output": (["e:0"], [("d:0", "y:3")]),
    "twice": (["e:0"], [("d:0", "y:0"), ("c:0", "y:0")]),
    "fetched": (["y:0"], [("d:0", "y:0")]),
    "of another type": (["j:0"], [("d:0", "i:0")]),
}


@pytest.mark.parametrize("row", CONNECTIONS)
def test_a_tensor_is_connected_to_another(rill, reference, tmp_path, row):
    def program(p):
        c = tf.constant([1.0, 2.0], name="c")
        d = tf.add(c, 3.0, name="d")
        y, z, w = (tf.placeholder(tf.float32, [2], name=name) for name in "yzw")
        tf.add(tf.multiply(y, 10.0, name="e"), z, name="f")
        tf.add(tf.placeholder(tf.int32, name="i"), 1, name="j")
        tf.unstack(tf.stack([c, d]), name="u")
        v = tf.Variable([5.0, 6.0], name="v")
        with tf.control_dependencies([w]):
            tf.constant(4.0, name="q")
        tf.while_loop(lambda n: n < 10.0, lambda n: n * 2 + 0 * y[0], [c[0]], name="loop")
        p.run(v.initializer)
        options = config_pb2.CallableOptions(fetch=CONNECTIONS[row][0])
        for source, replaced in CONNECTIONS[row][1]:
            options.tensor_connection.add(from_tensor=source, to_tensor=replaced)
        value = p.attempt(lambda: p.session._make_callable_from_options(options)())
        p.record(value is None and re.sub("From [^ ]*:\n", "", p.outcomes[-1].text).split("\n")[0])

    compare(program, rill, reference, tmp_path)


def test_a_chain_of_connections_has_a_bound(rill):
    with tf.Graph().as_default() as graph:
        for i in range(1001):
            tf.identity(tf.placeholder(tf.float32, [], name="x%d" % i), name="y%d" % i)
        tf.constant(7.0, name="x1001")

    def call(session, first):
        options = config_pb2.CallableOptions(fetch=["y%d:0" % first])
        for i in range(first, 1001):
            options.tensor_connection.add(from_tensor="x%d:0" % (i + 1), to_tensor="x%d:0" % i)
        return session._make_callable_from_options(options)()

    with tf.Session(rill, graph=graph) as session:
        assert call(session, 1) == [7.0]
        with pytest.raises(tf.errors.InvalidArgumentError, match="1001 tensor connections, more than 1000"):
            call(session, 0)


@program(server=True)
def test_feeds_from_a_devices_memory_are_refused(p):
    tf.add(tf.placeholder(tf.float32, [], name="x"), 1.0, name="y")
    options = config_pb2.CallableOptions(feed=["x:0"], fetch=["y:0"])
    options.feed_devices["x:0"] = "/cpu:0"
    p.attempt(lambda: p.session._make_callable_from_options(options)(np.float32(1)))


@program("v1", "v2", server=True)
def test_graph_grows_between_runs(p):
    v = tf.get_variable("v", initializer=[1.0, 2.0])
    p.run(v.initializer)
    for i in range(4):
        p.run(v.assign_add([float(i), 1.0]))
        p.run(tf.reduce_sum(v) * tf.constant(float(i)))
    w = tf.get_variable("w", initializer=tf.constant(4.0))
    p.run(w.initializer)
    p.run([v, w])


@program("v1", "v2", server=True)
def test_uninitialized_variables(p):
    v = tf.get_variable("v", initializer=1.0)
    p.run(v)
    p.run(v.assign_add(1.0))
    p.run(tf.is_variable_initialized(v))
    p.run(tf.report_uninitialized_variables())
    p.run(v.initializer)
    p.run(tf.is_variable_initialized(v))
    p.run([v.assign_sub(0.5), tf.report_uninitialized_variables()])


@program("v1", "v2", server=True)
def test_containers_and_reset(p):
    """A reset aborts all sessions of the server and empties one container."""
    with tf.container("mine"):
        a = tf.get_variable("a", initializer=1.0)
        q = tf.FIFOQueue(3, tf.int32, shared_name="q")
    b = tf.get_variable("b", initializer=2.0)
    p.run([a.initializer, b.initializer, q.enqueue(5)])
    p.run([a.assign_add(1.0), b.assign_add(1.0), q.size()])
    tf.Session.reset(p.target, ["mine"])
    p.run(b)
    with tf.Session(p.target, graph=tf.get_default_graph()) as s:
        p.attempt(lambda: s.run(b))
        p.attempt(lambda: s.run(a))
        p.attempt(lambda: s.run(q.size()))
    tf.Session.reset(p.target, [""])
    with tf.Session(p.target, graph=tf.get_default_graph()) as s:
        p.attempt(lambda: s.run(b))  # no container has an empty name


@program("v1", "v2", server=True)
def test_a_variable_of_another_type_or_shape_has_the_name(p):
    v = tf.get_variable("v", initializer=[1.0, 2.0])
    p.run(v.initializer)
    for value in ([3, 4], [3.0]):
        with tf.Graph().as_default(), tf.Session(p.target) as s:
            other = tf.get_variable("v", initializer=value)
            for fetch in (other, other.initializer, tf.is_variable_initialized(other), other):
                p.attempt(lambda: s.run(fetch))
        p.run(v)


@program("v1", "v2", server=True)
def test_state_between_sessions(p):
    v = tf.get_variable("v", initializer=1.0)
    p.run(v.initializer)
    p.run(v.assign_add(1.0))
    with tf.Session(p.target, graph=tf.get_default_graph()) as other:
        p.attempt(lambda: other.run(v))
        p.attempt(lambda: other.run(v.assign_add(5.0)))
    p.run(v)
    p.attempt(lambda: other.run(v))
    with tf.Graph().as_default(), tf.Session(p.target) as elsewhere:
        w = tf.get_variable("v", initializer=100.0)
        p.attempt(lambda: elsewhere.run(w))


@program(server=True)
def test_interactive_session_and_eval(p):
    session = tf.InteractiveSession(p.target)
    a = tf.constant(6.0)
    v = tf.Variable(2.0)
    p.attempt(lambda: (a * 7.0).eval())
    p.attempt(lambda: v.initializer.run())
    p.attempt(lambda: [v.eval(), (v / 4.0).eval({v: 1.0})])
    session.close()
    p.attempt(lambda: a.eval())
    p.attempt(lambda: session.run(a))


@program(server=True)
def test_errors_have_their_types_and_nodes(p):
    x = tf.placeholder(tf.float32, name="x")
    p.run(tf.matmul(x, tf.ones([3, 2])), {x: np.ones([2, 4])})
    p.run(tf.gather([1, 2, 3], tf.constant([5])))
    p.run(tf.reshape(x, [3]), {x: [1, 2]})
    p.run(tf.concat([x, [[1.0, 2.0]]], 0), {x: [1.0]})
    p.run(tf.check_numerics(x, "not finite"), {x: np.nan})
    p.run(tf.cast(x, tf.int32) // tf.constant(0), {x: 1.0})
    p.run(tf.Assert(x > 1.0, [x, "too small"]), {x: 0.5})
    p.run(tf.strings.to_number(tf.constant("12a")))
    p.run(tf.read_file("/no/such/file"))
    p.run(tf.decode_raw(tf.constant("abc"), tf.int32))
    p.run(tf.image.decode_png(tf.constant("no png")))
    p.run(tf.parse_single_example(tf.constant("xx"), {"a": tf.FixedLenFeature([], tf.int64)}))
    p.run(tf.slice(x, [0], [5]), {x: [1.0, 2.0]})
    p.run(tf.linalg.inv([[1.0, 2.0], [2.0, 4.0]]))
    p.run(tf.is_nan(tf.linalg.cholesky([[1.0, 2.0], [2.0, 1.0]]))[:, 0])
    p.run(tf.unstack(tf.constant([1, 2]))[1] + 1)


@program()
def test_a_shape_that_does_not_fit_is_told_where_the_flat_tensor_is_fetched(p):
    x, shape = tf.placeholder(tf.float32), tf.placeholder(tf.int32)
    flat = tf.reshape(tf.reshape(x, [3, -1]), [-1])
    any_shape = tf.reshape(tf.reshape(x, shape), [-1])
    for feeds in ({x: [1, 2, 3], shape: [1, 3]}, {x: [1, 2, 3, 4], shape: [5]}):
        p.run(flat, feeds)
        p.run(any_shape, feeds)
        p.run([flat, tf.exp(flat)], feeds)


@program(server=True)
def test_two_failures_and_a_good_branch(p):
    """A step fails as a whole; the session goes on."""
    good = tf.constant(1.0)
    bad = tf.check_numerics(tf.constant(np.inf), "bad")
    p.run([good, bad])
    p.run([good])
    p.run([bad.op])
    p.run(good + 1.0)


@program(server=True)
def test_control_dependencies_order_what_has_effects(p):
    v = tf.get_variable("v", initializer=0)
    p.run(v.initializer)
    one = v.assign_add(1)
    with tf.control_dependencies([one]):
        read = tf.identity(v.read_value() if hasattr(v, "read_value") else v)
        with tf.control_dependencies([read]):
            ten = v.assign_add(10)
    with tf.control_dependencies([ten]):
        last = v.read_value()
    p.run([read, last])
    p.run(v)
    with tf.control_dependencies(None):
        free = tf.constant(5)
    p.run([free, tf.group(one, ten)])
    p.run(tf.tuple([v.read_value(), last]))
    p.run(tf.get_variable("t", initializer=tf.constant(3), use_resource=True).initializer)


@program(server=True)
def test_assert_print_and_their_kind(p):
    x = tf.placeholder(tf.int32)
    p.run(tf.Print(x, [x, tf.shape(x)], "seen: "), {x: [1, 2]})
    with tf.control_dependencies([tf.print("also", x, summarize=2)]):
        p.run(tf.identity(x), {x: [3]})
    for check in (tf.assert_equal(x, 3), tf.assert_less(x, 5), tf.assert_rank(x, 1), tf.assert_positive(x),
                  tf.assert_non_negative(x), tf.assert_integer(x), tf.assert_rank_at_least(x, 1)):
        with tf.control_dependencies([check] if check is not None else []):
            y = tf.identity(x)
        p.run(y, {x: [3]})
        p.run(y, {x: [-7]})
        p.run(y, {x: 3})


@program()
def test_session_handles(p):
    """A tensor is kept on the server between runs."""
    handle = p.session.run(tf.get_session_handle(tf.constant([1.0, 2.0]) * 3.0))
    holder, value = tf.get_session_tensor(handle.handle, tf.float32)
    p.run(value + 1.0, {holder: handle.handle})
    p.attempt(lambda: handle.eval())
    gone, delete = tf.delete_session_tensor(handle.handle)
    p.run(delete, {gone: handle.handle})
    p.run(value, {holder: handle.handle})
    p.run(value, {holder: "no such handle"})
    handle = p.session.run(tf.get_session_handle(tf.constant([1.0, 2.0])))
    x, y = tf.placeholder(tf.float32), tf.placeholder(tf.int32)
    p.run([x * 2.0, x], {x: handle})  # fed as it is
    p.run(y, {y: handle})
    p.run(y + 1, {y: handle})


@program(server=True)
def test_run_options(p):
    a = tf.constant(2.0) * 3.0
    metadata = tf.RunMetadata()
    p.run(a, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), run_metadata=metadata)
    p.record(any(n.node_name.startswith("mul") for d in metadata.step_stats.dev_stats for n in d.node_stats))
    p.run(a, options=tf.RunOptions(inter_op_thread_pool=-1))
    p.run(a, options=tf.RunOptions(output_partition_graphs=True), run_metadata=metadata)
    p.record(len(metadata.partition_graphs) >= 1)
    q = tf.FIFOQueue(1, tf.int32)
    p.run(q.dequeue(), options=tf.RunOptions(timeout_in_ms=200))


@program(server=True)
def test_devices(p):
    with tf.device("/cpu:0"):
        a = tf.constant(1.0)
    with tf.device("/job:nobody/task:0"):
        b = a + 1.0
    with tf.device("/device:GPU:0"):
        c = a + 1.0
    p.run(a)
    p.run(b)
    p.run(c)
    p.run(tf.add(a, 1.0))


@program(allow_soft_placement=True, server=True)
def test_soft_placement(p):
    with tf.device("/device:GPU:0"):
        c = tf.constant(1.0) + 1.0
    p.run(c)


@program(server=True)
def test_large_and_small_values(p):
    p.run(tf.reduce_sum(tf.constant(np.arange(300000, dtype=np.float64))))
    x = tf.placeholder(tf.float32)
    p.run([x, tf.transpose(x)], {x: np.random.RandomState(1).rand(500, 700)})
    p.run(tf.constant("x" * 100000))
    p.run(tf.fill([1000, 3], "ab"))
    p.run(tf.zeros([0]))
    p.run(tf.zeros([3, 0, 2], tf.string))


@program()
def test_threads_of_its_own_are_no_matter(p):
    x = tf.constant([1.0, 2.0])
    pool = config_pb2.ThreadPoolOptionProto(num_threads=1)
    for config in (tf.ConfigProto(use_per_session_threads=True), tf.ConfigProto(session_inter_op_thread_pool=[pool, pool])):
        with tf.Session(p.target, config=config) as session:
            p.record(session.run(x + 1.0))
            p.record(session.run(x + 1.0, options=tf.RunOptions(inter_op_thread_pool=0)))
