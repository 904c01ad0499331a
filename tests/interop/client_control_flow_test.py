"""Conditions, loops and functions in the graphs of clients, in TensorFlow 1's and 2's forms, with their gradients."""
import numpy as np
import tensorflow as tf2
import tensorflow.compat.v1 as tf
from tensorflow.python.framework import function
from tensorflow.python.ops import functional_ops

import training
from client_programs import program

BOTH = ("v1", "v2")


@program(*BOTH)
def test_cond_takes_one_branch(p):
    c = tf.placeholder(tf.bool, [])
    x = tf.placeholder(tf.float32, [])
    v = tf.get_variable("v", initializer=0.0)
    w = tf.get_variable("w", initializer=0.0)
    p.init()
    y = tf.cond(c, lambda: v.assign_add(x) + 1.0, lambda: w.assign_add(2.0 * x) + 2.0)
    for value in (True, False, True):
        p.run(y, {c: value, x: 3.0})
        p.run([v, w])
    p.run(y, {c: True})


@program(*BOTH)
def test_cond_structures(p):
    c = tf.placeholder(tf.bool, [])
    x = tf.constant([1.0, 2.0])
    p.run(tf.cond(c, lambda: {"a": x, "b": (x + 1.0, tf.constant(1))}, lambda: {"a": -x, "b": (x * 3.0, tf.constant(2))}), {c: True})
    p.run(tf.cond(c, lambda: [x], lambda: [2.0 * x], strict=True), {c: False})
    p.run(tf.cond(c, lambda: tf.constant(3), lambda: tf.constant(4)), {c: False})
    p.run(tf.cond(c, lambda: tf.no_op(), lambda: tf.no_op()), {c: False})
    sparse = tf.SparseTensor([[0, 0]], [1.0], [2, 2])
    p.run(tf.cond(c, lambda: sparse, lambda: tf.SparseTensor([[1, 1]], [2.0], [2, 2])), {c: True})
    p.run(tf.cond(c, lambda: sparse, lambda: tf.SparseTensor([[1, 1]], [2.0], [2, 2])), {c: False})
    p.run(tf.cond(c, lambda: tf.constant("yes"), lambda: tf.constant("no")), {c: True})


@program(*BOTH)
def test_cond_with_shapes_that_differ(p):
    c = tf.placeholder(tf.bool)
    y = tf.cond(c, lambda: tf.ones([2, 2]), lambda: tf.zeros([3]))
    for value in (True, False):
        p.run([y, tf.shape(y), tf.reduce_sum(y)], {c: value})
    p.run(y, {c: [True]})


@program(*BOTH)
def test_nested_conds(p):
    a, b = (tf.placeholder(tf.bool, []) for _ in range(2))
    x = tf.placeholder(tf.float32, [])
    y = tf.cond(a, lambda: tf.cond(b, lambda: x * 2.0, lambda: x * 3.0), lambda: tf.cond(b, lambda: x * x, lambda: -x))
    g = tf.gradients(y, x)
    for i in (True, False):
        for j in (True, False):
            p.run([y, g], {a: i, b: j, x: 3.0})


@program(*BOTH)
def test_gradients_of_cond(p):
    c = tf.placeholder(tf.bool, [])
    x = tf.placeholder(tf.float32, [2])
    u, w = tf.constant([3.0, 4.0]), tf.constant(2.0)
    y = tf.cond(c, lambda: tf.reduce_sum(x * u) * w, lambda: tf.reduce_sum(tf.exp(x)))
    g = tf.gradients(y, [x, u, w], unconnected_gradients=tf.UnconnectedGradients.ZERO)
    for value in (True, False):
        p.run(g, {c: value, x: [1.0, 2.0]})
    second = tf.gradients(g[0], x, unconnected_gradients=tf.UnconnectedGradients.ZERO)
    for value in (True, False):
        p.run(second, {c: value, x: [1.0, 2.0]})


@program(*BOTH)
def test_gradients_of_cond_through_gather(p):
    v = tf.get_variable("v", initializer=np.arange(6, dtype=np.float32).reshape(3, 2), use_resource=True)
    p.init()
    c = tf.placeholder(tf.bool, [])
    y = tf.cond(c, lambda: tf.gather(v, [0, 2, 2]), lambda: tf.gather(v, [1, 1, 1]))
    g = tf.gradients(tf.reduce_sum(y * y), v)[0]
    for value in (True, False):
        p.run(tf.convert_to_tensor(g), {c: value})


@program(*BOTH)
def test_case_and_switch_case(p):
    i = tf.placeholder(tf.int32, [])
    y = tf.case([(tf.less(i, 1), lambda: tf.constant(10)), (tf.less(i, 2), lambda: tf.constant(20))], default=lambda: tf.constant(-1))
    z = tf.switch_case(i, {0: lambda: tf.constant(1.0), 1: lambda: tf.constant(2.0), 2: lambda: tf.constant(4.0)})
    only = tf.case([(tf.equal(i, 1), lambda: tf.constant(1)), (tf.equal(i, 1), lambda: tf.constant(2))], default=lambda: tf.constant(0), exclusive=True)
    for value in (0, 1, 2, 3, 7, -2):
        p.run([y, z], {i: value})
    p.run(only, {i: 1})
    p.run(only, {i: 0})
    p.run(tf.case([(tf.equal(i, 1), lambda: tf.constant(1))]), {i: 0})


@program(*BOTH)
def test_while_counts(p):
    n = tf.placeholder(tf.int32, [])
    i, total = tf.while_loop(lambda i, t: i < n, lambda i, t: (i + 1, t + tf.to_float(i)), [tf.constant(0), tf.constant(0.0)])
    for value in (0, 1, 10, 300):
        p.run([i, total], {n: value})
    p.run(tf.while_loop(lambda i: i < 100, lambda i: i + 1, [0], maximum_iterations=n), {n: 7})
    p.run(tf.while_loop(lambda i: i < 100, lambda i: i + 1, [0], maximum_iterations=0))
    p.run(tf.while_loop(lambda i: i < 50, lambda i: i + 3, [0], parallel_iterations=1, back_prop=False))
    p.run(tf.while_loop(lambda i, j: i < 5, lambda i, j: {"i": i + 1, "j": j * 2}.values(), [0, 1]))


@program(*BOTH)
def test_while_structures_and_invariants(p):
    def body(i, x, d):
        return i + 1, tf.concat([x, [i]], 0), {"a": d["a"] + 1.0, "b": [tf.stack([d["a"], d["a"]])]}

    shapes = [tf.TensorShape([]), tf.TensorShape([None]), {"a": tf.TensorShape([]), "b": [tf.TensorShape([2])]}]
    start = [tf.constant(0), tf.constant([], tf.int32), {"a": tf.constant(0.5), "b": [tf.zeros([2])]}]
    p.run(tf.while_loop(lambda i, x, d: i < 5, body, start, shapes))
    p.run(tf.while_loop(lambda i, s: i < 3, lambda i, s: (i + 1, s + "x"), [0, tf.constant("a")]))
    sparse = tf.SparseTensor([[0]], [1.0], [3])
    p.run(tf.while_loop(lambda i, s: i < 3, lambda i, s: (i + 1, tf.SparseTensor(s.indices, s.values * 2.0, s.dense_shape)), [0, sparse]))


@program(*BOTH)
def test_nested_whiles(p):
    def outer(i, total):
        _, inner = tf.while_loop(lambda j, t: j < i, lambda j, t: (j + 1, t + tf.to_float(i * j)), [0, 0.0])
        return i + 1, total + inner

    p.run(tf.while_loop(lambda i, t: i < 6, outer, [0, 0.0]))
    x = tf.placeholder(tf.float32, [])

    def cubes(i, y):
        return i + 1, tf.while_loop(lambda j, z: j < 2, lambda j, z: (j + 1, z * x), [0, y])[1]

    y = tf.while_loop(lambda i, y: i < 3, cubes, [0, tf.constant(1.0)])[1]
    p.run([y, tf.gradients(y, x)], {x: 1.5})


@program(*BOTH)
def test_cond_in_while_and_while_in_cond(p):
    x = tf.placeholder(tf.float32, [])
    y = tf.while_loop(lambda i, y: i < 6, lambda i, y: (i + 1, tf.cond(tf.equal(i % 2, 0), lambda: y * x, lambda: y + x)), [0, tf.constant(1.0)])[1]
    p.run([y, tf.gradients(y, x)], {x: 2.0})
    z = tf.cond(x > 1.0, lambda: tf.while_loop(lambda i, y: i < 4, lambda i, y: (i + 1, y * x), [0, x])[1], lambda: x * 10.0)
    for value in (3.0, 0.5):
        p.run([z, tf.gradients(z, x)], {x: value})


@program(*BOTH)
def test_gradients_of_while(p):
    x = tf.placeholder(tf.float32, [2])
    w = tf.constant([[0.5, 0.1], [0.2, 0.7]])
    n = tf.placeholder(tf.int32, [])
    y = tf.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, tf.tanh(tf.squeeze(tf.matmul(w, y[:, None]), 1)) + x), [0, x])[1]
    g = tf.gradients(tf.reduce_sum(y), [x, w])
    for value in (0, 1, 5):
        p.run([y, g], {x: [0.3, -0.2], n: value})
    p.run(tf.gradients(y, x, grad_ys=tf.constant([1.0, -1.0])), {x: [0.3, -0.2], n: 3})
    swapped = tf.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, y * y + x), [0, x], swap_memory=True, parallel_iterations=1)[1]
    p.run(tf.gradients(swapped, x), {x: [0.3, -0.2], n: 4})


@program("v2")
def test_second_gradients_of_while(p):
    x = tf.placeholder(tf.float32, [])
    y = tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * x), [0, x])[1]
    g = tf.gradients(y, x)[0]
    h = tf.gradients(g, x)[0]
    p.run([y, g, h, tf.gradients(h, x)], {x: 2.0})


@program(*BOTH)
def test_variables_in_loops(p):
    v = tf.get_variable("v", initializer=0.0, use_resource=True)
    r = tf.get_variable("r", initializer=1.0, use_resource=False)
    p.init()

    def body(i):
        with tf.control_dependencies([v.assign_add(tf.to_float(i))]):
            return i + 1

    p.run(tf.while_loop(lambda i: i < 5, body, [0]))
    p.run(v)
    y = tf.while_loop(lambda i, y: i < 4, lambda i, y: (i + 1, y * (v + 1.0)), [0, tf.constant(1.0)])[1]
    p.run([y, tf.gradients(y, v)])
    if not tf.control_flow_v2_enabled():
        z = tf.while_loop(lambda i, y: i < 4, lambda i, y: (i + 1, y * r), [0, tf.constant(3.0)])[1]
        p.run([z, tf.gradients(z, r)])


@program(*BOTH)
def test_loops_that_fail(p):
    n = tf.placeholder(tf.int32, [])
    bad = tf.while_loop(lambda i, x: i < n, lambda i, x: (i + 1, tf.check_numerics(tf.log(4.0 - tf.to_float(i)), "log")), [0, 1.0])
    p.run(bad, {n: 3})
    p.run(bad, {n: 9})
    p.run(tf.while_loop(lambda i: i < 5, lambda i: i + tf.gather([1, 1, 1], i), [0]))
    p.run(bad, {n: 2})


@program(*BOTH)
def test_tensor_arrays(p):
    a = tf.TensorArray(tf.float32, 3, clear_after_read=False)
    a = a.write(0, [1.0, 2.0]).write(1, [3.0, 4.0]).write(2, [5.0, 6.0])
    p.run([a.stack(), a.read(1), a.size(), a.gather([2, 0]), a.concat()])
    b = tf.TensorArray(tf.int32, 0, dynamic_size=True, infer_shape=False)
    b = b.write(4, 7)
    p.run(b.size())
    c = tf.TensorArray(tf.float32, 3).unstack(tf.constant([[1.0], [2.0], [3.0]]))
    p.run([c.read(2), c.read(0)])
    d = tf.TensorArray(tf.float32, 2, infer_shape=False).split(tf.constant([1.0, 2.0, 3.0]), [1, 2])
    p.run([d.read(0), d.read(1)])
    e = tf.TensorArray(tf.float32, 4, element_shape=[2]).scatter([1, 3], tf.constant([[1.0, 1.0], [2.0, 2.0]]))
    p.run([e.read(3), e.read(1)])
    s = tf.TensorArray(tf.string, 2).write(0, "a").write(1, "bc")
    p.run(s.stack())


@program(*BOTH)
def test_tensor_arrays_that_fail(p):
    a = tf.TensorArray(tf.float32, 3)
    p.run(a.write(3, 1.0).flow)
    p.run(a.write(-1, 1.0).flow)
    p.run(a.read(7))
    b = tf.TensorArray(tf.float32, 2, infer_shape=False).write(0, [1.0])
    p.run(b.write(1, [1.0, 2.0]).stack())
    p.run(tf.TensorArray(tf.float32, 2, infer_shape=False).split(tf.constant([1.0, 2.0, 3.0]), [1, 1]).flow)
    p.run(tf.TensorArray(tf.float32, 2).unstack(tf.constant([1.0, 2.0, 3.0])).flow)


@program(*BOTH)
def test_tensor_arrays_in_loops(p):
    x = tf.placeholder(tf.float32, [None, 2])
    n = tf.shape(x)[0]
    source = tf.TensorArray(tf.float32, n).unstack(x)

    def body(i, out, state):
        state = state * 0.5 + source.read(i)
        return i + 1, out.write(i, state), state

    _, out, last = tf.while_loop(lambda i, *_: i < n, body, [0, tf.TensorArray(tf.float32, n), tf.zeros([2])])
    y = out.stack()
    g = tf.gradients([tf.reduce_sum(y * y), tf.reduce_sum(last)], x)
    p.run([y, last, g], {x: np.arange(8).reshape(4, 2)})
    p.run([y, last, g], {x: np.arange(2).reshape(1, 2)})
    grown = tf.while_loop(lambda i, a: i < 5, lambda i, a: (i + 1, a.write(i, tf.fill([2], i))), [0, tf.TensorArray(tf.int32, 0, dynamic_size=True)])[1]
    p.run([grown.stack(), grown.size()])


@program(*BOTH)
def test_map_scan_and_folds(p):
    x = tf.placeholder(tf.float32, [None])
    w = tf.constant(2.0)
    m = tf.map_fn(lambda e: e * e * w, x)
    s = tf.scan(lambda a, e: a * 0.5 + e * w, x)
    s0 = tf.scan(lambda a, e: (a[0] + e, a[1] * e), x, (tf.constant(0.0), tf.constant(1.0)))
    back = tf.scan(lambda a, e: a + e, x, reverse=True)
    left = tf.foldl(lambda a, e: a - e, x)
    right = tf.foldr(lambda a, e: a - e, x, initializer=tf.constant(1.0))
    pairs = tf.map_fn(lambda e: (e[0] + e[1], e[0]), (x, -x), dtype=(tf.float32, tf.float32))
    for values in ([1.0, 2.0, 3.0], [5.0]):
        p.run([m, s, s0, back, left, right, pairs], {x: values})
        p.run([tf.gradients(t, [x, w], unconnected_gradients="zero") for t in (m, s, s0[1], left, right)], {x: values})
    p.run(m, {x: []})
    p.run(tf.map_fn(lambda e: tf.strings.length(e), tf.constant(["a", "bcd"]), dtype=tf.int32))
    p.run(tf.map_fn(lambda e: tf.range(3) + e, tf.constant([1, 2]), parallel_iterations=1))


@program(*BOTH)
def test_functions_in_graphs(p):
    @tf2.function
    def square(x, y=2.0):
        return x * x * y

    @tf2.function
    def outer(x):
        if x > 0.0:
            return square(x)
        return square(-x, 5.0)

    @tf2.function
    def collatz(n):
        steps = 0
        while n > 1:
            n = tf2.cond(tf2.equal(n % 2, 0), lambda: n // 2, lambda: 3 * n + 1)
            steps += 1
        return steps

    x = tf.placeholder(tf.float32, [])
    y = outer(x)
    for value in (3.0, -3.0):
        p.run([y, tf.gradients(y, x)], {x: value})
    p.run(collatz(tf.constant(27)))

    @tf2.function
    def several(a, b):
        return {"sum": a + b, "pair": (a, [b])}, tf.shape(a)

    p.run(several(tf.ones([2, 2]), tf.constant(3.0)))
    v = tf.get_variable("v", initializer=1.0, use_resource=True)

    @tf2.function
    def bump(by):
        v.assign_add(by)
        v.assign(v * 2.0)
        return v.read_value()

    p.init()
    p.run(bump(tf.constant(3.0)))
    p.run(v)


@program(*BOTH)
def test_constants_of_called_functions_stay_in_their_branch(p):
    @tf2.function
    def double(x):
        return x * 2.0, tf.constant(2.0)

    @tf2.function
    def fivefold(x):
        return x * 5.0, tf.constant(5.0)

    @tf2.function
    def nested(x):
        return double(x) if x > 10.0 else fivefold(x)

    x = tf.placeholder(tf.float32, [])
    z = nested(x)
    for value in (11.0, 9.0):
        p.run([z, tf.gradients(z[0], x)], {x: value})
    w = tf.while_loop(lambda i, a, b: i < 3, lambda i, a, b: (i + 1, *nested(a)), [0, x, tf.constant(0.0)])
    p.run([w, tf.gradients(w[1], x)], {x: 1.0})


def test_constants_of_called_functions_stay_in_their_old_branch(rill, graph):
    """TensorFlow gives the constant of the other branch here."""
    @tf2.function
    def times(x, by):
        return x * by, tf.constant(by)

    c = tf.placeholder(tf.bool, [])
    y = tf.cond(c, lambda: times(tf.constant(3.0), 2.0), lambda: times(tf.constant(3.0), 5.0))
    with training.session(rill, graph) as s:
        assert [s.run(y, {c: value}) for value in (True, False)] == [(6.0, 2.0), (15.0, 5.0)]


@program(*BOTH)
def test_repeated_calls(p):
    @tf2.function
    def called(x):
        return (x + 1.0) * 2.0

    y = tf.constant(1.0)
    for _ in range(10):
        y = called(y)
    p.run(y)


@program(*BOTH)
def test_custom_gradients(p):
    @tf.custom_gradient
    def clipped(x):
        return x * 3.0, lambda dy: tf.clip_by_value(dy, -0.1, 0.1)

    x = tf.placeholder(tf.float32, [2])
    y = clipped(x)
    p.run([y, tf.gradients(y * 5.0, x)], {x: [1.0, 2.0]})
    stopped = tf.stop_gradient(x) * x
    p.run(tf.gradients(stopped, x), {x: [1.0, 2.0]})
    p.run(tf.gradients(x * x, x, stop_gradients=[x]), {x: [1.0, 2.0]})
    z = tf.grad_pass_through(tf.round)(x)
    p.run([z, tf.gradients(z, x)], {x: [1.2, 2.7]})
    recomputed = tf.recompute_grad(lambda t: tf.sin(t) * t)(x)
    p.run([recomputed, tf.gradients(recomputed, x)], {x: [1.2, 2.7]})


@program(*BOTH)
def test_vectorized_maps(p):
    x = tf.constant(np.arange(12, dtype=np.float32).reshape(3, 2, 2))
    p.run(tf.vectorized_map(lambda m: tf.matmul(m, m, transpose_b=True) + tf.reduce_sum(m), x))


@program(server=True, graph_options=tf.GraphOptions(optimizer_options=tf.OptimizerOptions(opt_level=tf.OptimizerOptions.L0)))
def test_gradients_of_a_vectorized_batch_normalization_at_level_0(p):
    x = tf.constant(np.random.RandomState(0).rand(3, 2, 5, 5, 2), tf.float32)

    def normalize(one):
        y, mean, variance = tf.nn.fused_batch_norm(one, [1.0, 2.0], [0.5, 0.2], epsilon=0.01)
        return y, mean, variance, tf.gradients(y * y * y, one)[0]

    p.run(tf.vectorized_map(normalize, x, fallback_to_while_loop=False))
    from tensorflow.python.ops.parallel_for import gradients
    v = tf.constant([1.0, 2.0, 3.0])
    p.run(gradients.jacobian(tf.cumsum(v * v), v))
    w = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    p.run(gradients.batch_jacobian(tf.exp(w) * w, w))


@program(*BOTH)
def test_rnns(p):
    class Cell:
        state_size = output_size = 3

        def zero_state(self, batch, dtype):
            return tf.zeros([batch, 3], dtype)

        def __call__(self, x, state, scope=None):
            with tf.variable_scope(scope or "cell"):
                w = tf.get_variable("w", [x.shape[-1].value + 3, 3], initializer=tf.ones_initializer())
                y = tf.tanh(tf.matmul(tf.concat([x, state], 1), w) * 0.1)
            return y, y

    x = tf.placeholder(tf.float32, [2, None, 4])
    feed = {x: np.random.RandomState(1).rand(2, 5, 4)}
    full, last = tf.nn.dynamic_rnn(Cell(), x, dtype=tf.float32, scope="a")
    short, short_last = tf.nn.dynamic_rnn(Cell(), x, [2, 5], dtype=tf.float32, scope="b")
    (f, b), (fl, bl) = tf.nn.bidirectional_dynamic_rnn(Cell(), Cell(), x, tf.constant([3, 4], tf.int64), dtype=tf.float32, scope="c")
    major, _ = tf.nn.dynamic_rnn(Cell(), tf.transpose(x, [1, 0, 2]), [2, 5], dtype=tf.float32, time_major=True, scope="d")
    p.init()
    p.run([full, last, short, short_last, f, b, fl, bl, major], feed)
    for y in (full, short, f, b, major):
        p.run(tf.gradients(tf.reduce_sum(y * y), x), feed)
        p.run([g for g in tf.gradients(y, tf.trainable_variables()) if g is not None], feed)


@program(*BOTH)
def test_ctc_and_sequence_ops_in_loops(p):
    logits = tf.constant(np.random.RandomState(3).randn(5, 2, 4).astype(np.float32))
    labels = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], [0, 1, 2], [2, 2])
    loss = tf.nn.ctc_loss(labels, logits, [5, 4])
    p.run([loss, tf.gradients(loss, logits)])
    p.run(tf.nn.ctc_greedy_decoder(logits, [5, 4]))
    p.run(tf.sequence_mask([1, 3, 2], 4))
    p.run(tf.reverse_sequence(logits, [2, 4], 0, 1))
    emissions = tf.constant(np.random.RandomState(4).randn(2, 3, 3).astype(np.float32))
    transitions = tf.constant(np.random.RandomState(5).randn(3, 3).astype(np.float32))

    def step(state, e):
        return e + tf.reduce_logsumexp(state[:, :, None] + transitions, 1)

    z = tf.foldl(step, tf.transpose(emissions, [1, 0, 2]), tf.zeros([2, 3]))
    p.run([z, tf.gradients(z, [emissions, transitions])])


@program(*BOTH)
def test_the_function_meant_for_the_device_is_called(p):
    def function(factor, interface, device=None):
        attributes = {"api_implements": interface, **({"api_preferred_device": device} if device else {})}
        f = tf2.function(lambda x: x * factor, autograph=False, experimental_attributes=attributes)
        f.get_concrete_function(tf.TensorSpec([2], tf.float32)).add_to_graph()
        return f

    x = tf.placeholder(tf.float32, [2])
    general = function(3.0, "scaled")
    function(5.0, "scaled", "GPU")
    function(7.0, "scaled", "CPU")
    alone = function(11.0, "alone")
    function(13.0, "alone", "TPU")
    nested = tf2.function(lambda y: general(y) + 1.0, autograph=False)
    with tf.device("/cpu:0"):
        here = general(x)
    # As many nodes as TensorFlow's optimiser asks for.
    p.run([tf.sqrt(tf.square(y)) for y in (general(x), alone(x), nested(x), here)], {x: [1.0, 2.0]})


@program()
def test_effects_in_branches_and_loops_of_functions(p):
    """What has an effect in a function runs where its branch is taken, and does not make the function's results dead where it is not."""
    v = tf.Variable(0.0, use_resource=True)
    add = lambda handle, value: tf.raw_ops.AssignAddVariableOp(resource=handle, value=value)

    @function.Defun(tf.float32)
    def positive(x):
        with tf.control_dependencies([tf.Assert(x > 0, [x])]):
            return x * 2

    @function.Defun(tf.resource, tf.int32)
    def count(handle, n):
        def one(i):
            add(handle, 1.0)
            return i + 1

        return tf.cond(n > 2, lambda: tf.while_loop(lambda i: i < n, one, [0]), lambda: n)

    @function.Defun(tf.resource, tf.int32)
    def count_twice(handle, n):
        def inner(j):
            add(handle, 10.0)
            return j + 1

        def outer(i):
            tf.while_loop(lambda j: j < 2, inner, [0])
            return i + 1

        return tf.while_loop(lambda i: i < n, outer, [0])

    x, taken = tf.placeholder(tf.float32, []), tf.placeholder(tf.bool, [])
    doubled = positive(x)
    maybe = tf.cond(taken, lambda: count(v.handle, 4), lambda: 7)
    group = tf.cond(taken, lambda: tf.group(count(v.handle, 1)), lambda: tf.no_op())
    looped = tf.while_loop(lambda i: i < 4, lambda i: i + tf.reshape(count(v.handle, 1), []), [0])
    fetches = [count(v.handle, 5), count(v.handle, 1), count_twice(v.handle, 3), looped]
    p.init()
    for value in (1.0, -1.0):
        p.run(doubled, {x: value})
    for fetch in fetches:
        p.run(fetch)
        p.run(v)
    for yes in (True, False):
        p.run([maybe, group], {taken: yes})
        p.run(v)


@program("v2")
def test_a_gradient_after_the_first_run_needs_all_intermediates(p):
    x = tf.constant(10.0)
    y = tf.cond(x > 1, lambda: (x * x) * (x * x), lambda: x)
    p.run(y)
    text = str(p.attempt(lambda: p.session.run(tf.gradients(y, x))) or p.outcomes[-1].text)
    p.record("Try using tf.compat.v1.experimental.output_all_intermediates(True)." in text)


@program("v2")
def test_an_executor_of_one_thread_keeps_conditions_whole(p):
    x = tf.placeholder_with_default(2.0, [])
    y = tf.cond(x > 1.0, lambda: x * 3.0, lambda: x)
    z = tf.while_loop(lambda v: v < 100.0, lambda v: v * v, [y])
    for executor in ("", "SINGLE_THREADED_EXECUTOR"):
        config = tf.ConfigProto()
        config.experimental.executor_type = executor
        seen = tf.RunMetadata()
        with tf.Session(p.target, config=config) as session:
            p.record(session.run([y, z], options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), run_metadata=seen))
        p.record(any("switch" in n.node_name for d in seen.step_stats.dev_stats for n in d.node_stats))


@program()
def test_a_function_that_does_not_fit_fails_only_the_steps_that_call_it(p):
    same, word = (function.Defun(t)(f) for t, f in ((tf.int64, lambda x: x + 1), (tf.int32, lambda x: tf.as_string(x))))
    number, good = tf.constant([1, 2]), tf.constant(5)

    def call(f, *args, **more):
        return tf.raw_ops.PartitionedCall(args=list(args), f=f, **more)

    calls = [call(same, number, Tout=[tf.int64]), call(word, number, Tout=[tf.int32]), call(word, number, Tout=[tf.string, tf.string]),
             tf.raw_ops.StatelessIf(cond=good > 3, input=[number], Tout=[tf.int32], then_branch=word, else_branch=same),
             tf.raw_ops.Case(branch_index=0, input=[number], Tout=[tf.int32], branches=[word, word]),
             functional_ops.remote_call("/cpu:0", [number], [tf.int32], word),
             functional_ops.symbolic_gradient([1.0, 1.0], [tf.float32], "Nothing")]
    asks = function.Defun(tf.float32)(lambda x: tf.py_func(lambda y: y, [x], tf.float32))
    call(asks, 1.0, Tout=[tf.float32])  # no task can answer it, nor has it to
    for fetch in (good, *calls, good + 1):
        p.run(fetch)


@program("v1", "v2")
def test_effects_that_no_result_needs(p):
    """A call by name runs them whenever a result of it is used; what is lowered runs only those that its functions ask for."""
    v = tf.Variable(0.0, use_resource=True)
    p.init()
    taken = tf.placeholder_with_default(True, [])

    def count(handle, x):
        tf.raw_ops.AssignAddVariableOp(resource=handle, value=1.0)
        return x + 1.0

    def define(name, body, *types, **more):
        return function.Defun(*types, func_name=name, **more)(body)

    on_handle = tf.resource, tf.float32
    counted, kept = define("Counted", count, *on_handle), define("Kept", count, *on_handle, noinline=True)
    other, below = define("Other", lambda handle, x: x - 1.0, *on_handle), define("Below", lambda handle, x: x < 3.0, *on_handle)
    again = define("Again", lambda handle, x: (handle, count(handle, x)), *on_handle)
    asks = define("Asks", lambda handle, x: counted(handle, x) * 3.0, *on_handle)
    checked = define("Checked", lambda x: (tf.Assert(x > 0.0, [x]), x * 2.0)[1], tf.float32)

    def lowered(outputs):
        outputs[0].op._set_attr("_lower_using_switch_merge", tf.AttrValue(b=True))
        return outputs[-1]

    def branches(**more):
        return dict(input=[v.handle, 1.0], Tout=[tf.float32], **more)

    def loop(lower):
        return lower(tf.raw_ops.While(input=[v.handle, 0.0], cond=below, body=again))

    def last(outputs):
        return outputs[-1]

    results = [counted(v.handle, 1.0), kept(v.handle, 1.0), tf.cond(taken, lambda: counted(v.handle, 1.0), lambda: 2.0),
               functional_ops.remote_call("/cpu:0", [v.handle, 1.0], [tf.float32], counted)[0],
               tf.while_loop(lambda x: x < 3.0, lambda x: count(v.handle, x), [0.0])]
    results += [call(args=[v.handle, 1.0], Tout=[tf.float32], f=f)[0] for call in (tf.raw_ops.PartitionedCall, tf.raw_ops.StatefulPartitionedCall) for f in (counted, asks)]
    results += [loop(last), loop(lowered)]
    for lower in (last, lowered):
        results.append(lower(tf.raw_ops.If(cond=taken, then_branch=counted, else_branch=other, **branches())))
        results.append(lower(tf.raw_ops.Case(branch_index=tf.placeholder_with_default(0, []), branches=[counted, other], **branches())))
    for result in results:
        for fetch in (result, result * 2.0):
            p.run(fetch)
            p.run(v.read_value())
    p.run(checked(-1.0) + 1.0)
    x = tf.constant(2.0)
    p.run(tf.gradients(counted(v.handle, x), x)[0] * 1.0)
    p.run(v.read_value())


@program()
def test_a_gradient_of_a_function_that_is_given_a_variable(p):
    """What the function does not read of the variable has the gradient 0."""
    v = tf.Variable(2.0, use_resource=True)
    p.init()
    x = tf.constant(3.0)
    times, plus = (function.Defun(tf.resource, tf.float32, func_name=name)(body) for name, body in (
        ("Times", lambda handle, y: y * tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.float32)), ("Plus", lambda handle, y: y + 1.0)))
    for f in (times, plus):
        p.run(tf.gradients(f(v.handle, x), [x]))
        p.run(tf.gradients(f(v.handle, x), [x, v.handle]))
