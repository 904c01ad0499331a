"""Queues, barriers, staging areas and accumulators as clients use them: order, closing, cancelling, waiting, and what goes wrong."""
import threading
import time

import numpy as np
import tensorflow.compat.v1 as tf

import training
from client_programs import program


@program()
def test_fifo_queue(p):
    q = tf.FIFOQueue(4, [tf.int32, tf.string], shapes=[[], [2]], names=None)
    x, s = tf.placeholder(tf.int32), tf.placeholder(tf.string)
    put, many = q.enqueue([x, s]), q.enqueue_many([x, s])
    get, get_many, up_to, size = q.dequeue(), q.dequeue_many(2), q.dequeue_up_to(3), q.size()
    p.run(put, {x: 1, s: ["a", "b"]})
    p.run(many, {x: [2, 3], s: [["c", "d"], ["e", "f"]]})
    p.run(size)
    p.run(get)
    p.run(get_many)
    p.run(many, {x: np.zeros([0]), s: np.zeros([0, 2], object)})
    p.run(put, {x: 1, s: ["a", "b", "c"]})
    p.run(put, {x: [1], s: ["a", "b"]})
    p.run(many, {x: [2, 3], s: [["c", "d"]]})
    p.run(many, {x: [5], s: [["x", "y"]]})
    p.run([q.is_closed(), size])
    p.run(q.close())
    p.run([q.is_closed(), size])
    p.run(put, {x: 1, s: ["a", "b"]})
    p.run(up_to)
    p.run(up_to)
    p.run(get)
    p.run(get_many)
    p.run(q.close())


@program()
def test_queue_with_names(p):
    q = tf.FIFOQueue(3, [tf.int32, tf.float32], [[], []], names=["i", "f"])
    p.run(q.enqueue({"i": 1, "f": 2.0}))
    p.run(q.enqueue_many({"i": [1, 2], "f": [2.5, 3.5]}))
    p.run(q.dequeue())
    p.run(q.dequeue_many(2))


@program()
def test_queue_without_shapes(p):
    q = tf.FIFOQueue(10, tf.float32)
    x = tf.placeholder(tf.float32)
    p.run(q.enqueue(x), {x: 1.0})
    p.run(q.enqueue(x), {x: [[1.0, 2.0]]})
    p.run(q.enqueue(x), {x: np.zeros([0, 3])})
    for _ in range(3):
        p.run(q.dequeue())


@program()
def test_dequeues_that_wait_are_cancelled_by_close(p):
    q = tf.FIFOQueue(3, tf.int32, [[]])
    closer = q.close(cancel_pending_enqueues=True)
    get, get_two = q.dequeue(), q.dequeue_many(2)
    p.run(q.enqueue(7))
    s = p.session
    result = []

    def wait():
        try:
            result.append(s.run(get_two))
        except tf.errors.OpError as error:
            result.append(type(error).__name__)

    thread = threading.Thread(target=wait)
    thread.start()
    p.run(closer)
    thread.join(60)
    p.record(result)
    p.run([q.size()])
    p.run(get)


@program()
def test_enqueues_that_wait(p):
    q = tf.FIFOQueue(2, tf.int32, [[]])
    s, results = p.session, []
    many, get = q.enqueue_many([[1, 2, 3, 4, 5]]), q.dequeue()
    started = threading.Thread(target=lambda: results.append(s.run(many)))
    started.start()
    p.record([int(s.run(get)) for _ in range(5)])
    started.join(60)
    p.record(results)
    p.run(q.enqueue_many([[1, 2]]))
    failed = []

    def blocked():
        try:
            s.run(q_put)
        except tf.errors.OpError as error:
            failed.append(type(error).__name__)

    q_put, cancel = q.enqueue(9), q.close(cancel_pending_enqueues=True)
    thread = threading.Thread(target=blocked)
    thread.start()
    s.run(cancel)
    thread.join(60)
    p.record(failed)


@program()
def test_closed_queue_still_gives_what_waits(p):
    """close() without cancelling lets a blocked enqueue through once there is room."""
    q = tf.FIFOQueue(1, tf.int32, [[]])
    p.run(q.enqueue(1))
    p.run(q.close(cancel_pending_enqueues=False))
    p.run(q.dequeue())
    p.run(q.dequeue())


@program()
def test_random_shuffle_queue(p):
    q = tf.RandomShuffleQueue(20, 0, tf.int32, [[]], seed=5)
    p.run(q.enqueue_many([list(range(12))]))
    p.run(q.dequeue())
    p.run(q.dequeue_many(4))
    p.run([q.size()])
    p.run(q.enqueue_many([list(range(100, 104))]))
    p.run(q.close())
    p.run(q.dequeue_up_to(5))
    p.run(q.dequeue_many(6))
    p.run(q.dequeue())
    r = tf.RandomShuffleQueue(20, 3, [tf.float32, tf.string], [[], []], seed=9)
    p.run(r.enqueue_many([[1.0, 2.0, 3.0, 4.0, 5.0], ["a", "b", "c", "d", "e"]]))
    p.run(r.dequeue_many(2))
    p.run(r.close())
    p.run(r.dequeue_many(3))


@program()
def test_padding_queue(p):
    q = tf.PaddingFIFOQueue(10, [tf.int32, tf.float32], [[None], [2, None]])
    x = tf.placeholder(tf.int32)
    y = tf.placeholder(tf.float32)
    put = q.enqueue([x, y])
    p.run(put, {x: [1, 2, 3], y: np.ones([2, 1])})
    p.run(put, {x: [4], y: np.ones([2, 3])})
    p.run(put, {x: [], y: np.ones([2, 0])})
    p.run(put, {x: [4], y: np.ones([3, 3])})
    p.run(put, {x: 4, y: np.ones([2, 3])})
    p.run(q.dequeue_many(3))
    p.run(put, {x: [1, 2], y: np.ones([2, 1])})
    p.run(q.dequeue())
    p.run(q.enqueue_many([[[1, 2], [3, 4]], np.ones([2, 2, 2])]))
    p.run(q.close())
    p.run(q.dequeue_up_to(5))


@program()
def test_priority_queue(p):
    q = tf.PriorityQueue(10, [tf.string], [()])
    for priority, text in ((3, "c"), (1, "a"), (2, "b"), (1, "a2"), (-5, "first")):
        p.run(q.enqueue([priority, text]))
    p.run(q.dequeue())
    p.run(q.dequeue_many(4))
    p.run(q.enqueue_many([[9, 8], ["x", "y"]]))
    p.run(q.close())
    p.run(q.dequeue_many(2))
    p.run(q.dequeue())


@program()
def test_queue_choice_and_shared_names(p):
    a = tf.FIFOQueue(5, tf.int32, [[]], shared_name="both")
    b = tf.FIFOQueue(5, tf.int32, [[]], shared_name="both")
    p.run(a.enqueue(4))
    p.run(b.size())
    p.run(b.dequeue())
    i = tf.placeholder(tf.int32)
    c = tf.FIFOQueue(5, tf.int32, [[]], shared_name="other")
    p.run(c.enqueue(8))
    p.run(a.enqueue(7))
    p.run(tf.QueueBase.from_list(i, [a, c]).dequeue(), {i: 1})
    p.run(tf.QueueBase.from_list(i, [a, c]).dequeue(), {i: 0})
    wrong = tf.FIFOQueue(6, tf.float32, [[]], shared_name="both")
    p.run(wrong.size())


@program()
def test_big_queue_and_many_dequeues(p):
    q = tf.FIFOQueue(1000, tf.float32, [[3]])
    p.run(q.enqueue_many([np.arange(900, dtype=np.float32).reshape(300, 3)]))
    s, got = p.session, []
    get = q.dequeue_many(30)
    threads = [threading.Thread(target=lambda: got.append(s.run(get))) for _ in range(10)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    p.record(sorted(np.concatenate(got)[:, 0].tolist()))


@program()
def test_gradients_stop_at_queues(p):
    q = tf.FIFOQueue(3, tf.float32, [[]])
    w = tf.constant(3.0)
    y = q.dequeue() * w
    p.run(q.enqueue_many([[1.0, 2.0]]))
    p.run([y, tf.gradients(y, w)])


@program()
def test_batching_functions(p):
    """tf.train.batch and its kin with their queue runners; one thread each, so the order is known."""
    numbers = tf.train.limit_epochs(tf.constant([1, 2, 3]), num_epochs=2)
    one = tf.train.batch([tf.reduce_sum(numbers), tf.constant("x")], 2, allow_smaller_final_batch=True)
    slices = tf.train.slice_input_producer([tf.constant([10, 20, 30]), tf.constant(["a", "b", "c"])], num_epochs=2, shuffle=False)
    i = tf.train.range_input_producer(5, num_epochs=1, shuffle=False).dequeue()
    padded = tf.train.batch([tf.range(i)], 3, dynamic_pad=True, allow_smaller_final_batch=True)
    kept = tf.train.maybe_batch([slices[0]], slices[0] > 10, 2, enqueue_many=False, allow_smaller_final_batch=True)
    p.init()
    coordinator = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(p.session, coordinator)
    for fetch in (one, padded, kept):
        for _ in range(4):
            p.run(fetch)
    coordinator.request_stop()
    coordinator.join(threads)


@program()
def test_bucketing(p):
    shuffled = tf.train.shuffle_batch([tf.constant([1, 2, 3, 4])], 4, 8, 2, enqueue_many=True, seed=3)
    joined = tf.train.batch_join([[tf.constant(1)], [tf.constant(1)]], 3)
    p.init()
    coordinator = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(p.session, coordinator)
    p.record(p.session.run(tf.shape(shuffled)))
    p.run(joined)
    coordinator.request_stop()
    coordinator.join(threads)


@program()
def test_barrier(p):
    from tensorflow.python.ops.data_flow_ops import Barrier
    b = Barrier((tf.float32, tf.string), shapes=((), ()), shared_name="b")
    p.run(b.insert_many(0, ["k1", "k2"], [1.0, 2.0]))
    p.run([b.ready_size(), b.incomplete_size()])
    p.run(b.insert_many(1, ["k2", "k3"], ["two", "three"]))
    p.run([b.ready_size(), b.incomplete_size()])
    p.run(b.take_many(1))
    p.run(b.insert_many(0, ["k1"], [5.0]))
    p.run(b.insert_many(1, ["k1"], ["one"]))
    p.run(b.insert_many(0, ["k1", "k1"], [5.0, 6.0]))
    p.run(b.close())
    p.run(b.insert_many(0, ["new"], [1.0]))
    p.run(b.insert_many(0, ["k3"], [3.0]))
    p.run(b.take_many(5, allow_small_batch=True))
    p.run(b.take_many(5, allow_small_batch=True))
    p.run(b.close(cancel_pending_enqueues=True))
    p.run(b.take_many(1))
    p.run(b.close())


@program()
def test_staging_areas(p):
    from tensorflow.python.ops import data_flow_ops
    a = data_flow_ops.StagingArea([tf.float32, tf.int32], names=["f", "i"])
    p.run(a.put({"f": tf.constant(1.0), "i": tf.constant(2)}))
    p.run(a.size())
    p.run(a.peek(0))
    p.run(a.get())
    p.run(a.put({"f": tf.constant(3.0), "i": tf.constant(4)}))
    p.run(a.clear())
    p.run(a.size())
    m = data_flow_ops.MapStagingArea([tf.float32], shapes=[[]], ordered=True)
    for key in (5, 1, 3):
        p.run(m.put(tf.constant(key, tf.int64), [tf.constant(float(key))], [0]))
    p.run([m.size(), m.incomplete_size()])
    p.run(m.peek(tf.constant(3, tf.int64)))
    p.run(m.get())
    p.run(m.get(tf.constant(5, tf.int64)))
    p.run(m.size())


@program()
def test_parts_for_a_key_that_has_a_whole_entry_are_an_entry_of_their_own(p):
    from tensorflow.python.ops import data_flow_ops
    m = data_flow_ops.MapStagingArea([tf.float32, tf.int32], shapes=[[], []])
    key, x, n = tf.constant(3, tf.int64), tf.placeholder(tf.float32, []), tf.placeholder(tf.int32, [])
    both, first, second, sizes, get = m.put(key, [x, n], [0, 1]), m.put(key, [x], [0]), m.put(key, [n], [1]), [m.size(), m.incomplete_size()], m.get(key)
    for step in (both, sizes, first, sizes, first, get, sizes, second, sizes, get, both, first, second, sizes, get, both, both, sizes):
        p.run(step, {x: len(p.outcomes), n: -len(p.outcomes)})


@program()
def test_accumulators(p):
    a = tf.ConditionalAccumulator(tf.float32, [2], shared_name="acc")
    x, step = tf.placeholder(tf.float32), tf.placeholder(tf.int64)
    put, get = a.apply_grad(x, step), a.take_grad(2)
    p.run(put, {x: [1.0, 2.0], step: 0})
    p.run(a.num_accumulated())
    p.run(put, {x: [3.0, 6.0], step: 0})
    p.run(get)
    p.run(a.set_global_step(5))
    p.run(put, {x: [100.0, 100.0], step: 1})
    p.run(a.num_accumulated())
    p.run(put, {x: [1.0], step: 7})
    p.run(put, {x: [1.0], step: 1})
    summed = tf.ConditionalAccumulator(tf.float32, [], reduction_type="SUM")
    for value in (1.0, 2.0, 3.0):
        p.run(summed.apply_grad(value))
    p.run(summed.take_grad(3))
    s = tf.SparseConditionalAccumulator(tf.float32, [4, 2])
    p.run(s.apply_grad([1, 3], np.ones([2, 2], np.float32)))
    p.run(s.apply_indexed_slices_grad(tf.IndexedSlices(tf.fill([1, 2], 5.0), tf.constant([3], tf.int64), tf.constant([4, 2], tf.int64))))
    p.run(s.num_accumulated())
    p.run(s.take_grad(2))
    for step in (0, 9):
        p.run(s.apply_grad([[1]], np.ones([1, 2], np.float32), local_step=step))
        p.run(s.apply_grad([1], np.ones([1, 3], np.float32), local_step=step))


@program()
def test_accumulators_of_rows_of_any_shape(p):
    """SyncReplicasOptimizer makes one of shape () for every variable with sparse gradients."""
    a = tf.SparseConditionalAccumulator(tf.float32, shape=())
    rows = np.arange(12, dtype=np.float32).reshape(3, 4)
    p.run(a.apply_grad([5, 7, 9], rows))
    p.run(a.apply_grad([7], rows[:1], grad_shape=[10, 4]))
    for wrong in (rows[:, :2], rows[:, :, None], rows[0, 0]):
        p.run(a.apply_grad([5, 7, 9][:wrong.shape[0] if wrong.ndim else 1], wrong))
    p.run(a.take_grad(2))
    b = tf.SparseConditionalAccumulator(tf.float32, shape=[10, None, 2])
    for indices, values, shape in [([9], np.ones([1, 2], np.float32), None), ([9], np.ones([1, 3, 2], np.float32), [10, 3]),
                                   ([9], np.ones([1, 3, 2], np.float32), [11, 3, 2]), ([10], np.ones([1, 3, 2], np.float32), None),
                                   ([0], np.ones([1, 3, 4], np.float32), None), ([9, 9], np.ones([2, 3, 2, 2], np.float32), [10, 3, 2]),
                                   ([1], np.ones([1, 3, 2], np.float32), None), ([1], np.ones([1, 1, 2, 2], np.float32), None)]:
        p.run(b.apply_grad(indices, values, shape))
    p.run(b.take_grad(1))


@program()
def test_stacks_and_temporary_variables(p):
    from tensorflow.python.ops import gen_data_flow_ops, gen_state_ops
    h = gen_data_flow_ops.stack_v2(-1, elem_type=tf.float32)
    with tf.control_dependencies([gen_data_flow_ops.stack_push_v2(h, 1.0)]):
        with tf.control_dependencies([gen_data_flow_ops.stack_push_v2(h, [2.0])]):
            first = gen_data_flow_ops.stack_pop_v2(h, tf.float32)
        with tf.control_dependencies([first]):
            second = gen_data_flow_ops.stack_pop_v2(h, tf.float32)
    p.run([first, second])
    p.run(gen_data_flow_ops.stack_pop_v2(gen_data_flow_ops.stack_v2(-1, elem_type=tf.float32), tf.float32))
    v = gen_state_ops.temporary_variable([2], tf.float32, var_name="tmp")
    v = tf.assign_add(tf.assign(v, [1.0, 2.0]), [10.0, 20.0])
    p.run(gen_state_ops.destroy_temporary_variable(v, var_name="tmp"))


@program()
def test_dequeue_up_to_of_a_closed_priority_queue(p):
    q = tf.PriorityQueue(10, [tf.int64], [[]])
    p.run(q.enqueue_many(([3, 1, 2], [30, 10, 20])))
    p.run(q.close())
    p.run(q.dequeue_up_to(2))
    p.run(q.dequeue_up_to(2))  # refused; TensorFlow then loses the one element that was left, Rill keeps it


@program("v1", "v2")
def test_critical_sections(p):
    section = tf.CriticalSection(shared_name="section")
    v = tf.get_variable("v", initializer=0.0, use_resource=True)
    p.init()

    def add_slowly(a):
        with tf.control_dependencies([v.read_value()]):
            value = v.read_value() + a
        with tf.control_dependencies([value]):
            with tf.control_dependencies([v.assign(value)]):
                return tf.identity(value)

    many = [section.execute(lambda a=a: add_slowly(tf.constant(a)), exclusive_resource_access=False) for a in (1.0, 2.0, 3.0, 4.0, 5.0)]
    for _ in range(5):
        p.session.run(many)
    p.run(v)
    failing = section.execute(lambda: tf.check_numerics(v.read_value() / 0.0, "in a section"), exclusive_resource_access=False)
    p.run(failing)
    p.session.run(many)
    p.run(v)
    x = tf.placeholder(tf.bool, [])
    p.run(section.execute(lambda: tf.cond(x, lambda: v + 1.0, lambda: v - 1.0), exclusive_resource_access=False), {x: True})


@program()
def test_a_lock_that_never_comes_is_cancelled(p):
    mutex = tf.raw_ops.MutexV2(shared_name="inner")
    first = tf.raw_ops.MutexLock(mutex=mutex)
    with tf.control_dependencies([first]):
        second = tf.raw_ops.MutexLock(mutex=mutex)
    with tf.control_dependencies([second]):
        both = tf.raw_ops.ConsumeMutexLock(mutex_lock=first)
    p.run(both, options=tf.RunOptions(timeout_in_ms=300))
    p.run(tf.raw_ops.ConsumeMutexLock(mutex_lock=tf.raw_ops.MutexLock(mutex=mutex)))


@program()
def test_an_entry_larger_than_the_staging_area_is_refused(p):
    from tensorflow.python.ops import data_flow_ops
    x, key = tf.placeholder(tf.uint8), tf.placeholder(tf.int64, [])
    areas = [data_flow_ops.StagingArea([tf.uint8], memory_limit=100), data_flow_ops.MapStagingArea([tf.uint8], memory_limit=100), data_flow_ops.MapStagingArea([tf.uint8], memory_limit=100, ordered=True)]
    for a in areas:
        put = a.put([x]) if type(a) is data_flow_ops.StagingArea else a.put(key, [x], [0])
        for size in (60, 200):
            p.run(put, {x: np.zeros(size, np.uint8), key: size})
        p.run(a.size())
    p.run(tf.raw_ops.MapStage(key=key, indices=tf.zeros([0], tf.int32), values=[tf.constant(1.0)], dtypes=[tf.float32]), {key: 1})


@program()
def test_barrier_gives_a_number_that_is_a_scalar(p):
    from tensorflow.python.ops import data_flow_ops
    b, n = data_flow_ops.Barrier(tf.float32, shapes=()), tf.placeholder(tf.int32)
    p.run(b.insert_many(0, ["k"], [1.0]))
    take = tf.raw_ops.BarrierTakeMany(handle=b.barrier_ref, num_elements=n, component_types=[tf.float32])
    p.run(take, {n: [1]})
    p.run(take, {n: 1})


def test_a_session_that_closes_says_what_it_stopped(rill):
    from tensorflow.python.ops import data_flow_ops
    with tf.Graph().as_default() as graph:
        q, full = tf.FIFOQueue(1, tf.float32, [[]], name="empty"), tf.FIFOQueue(1, tf.float32, [[]], name="full")
        waits = {"Dequeue": q.dequeue(), "Enqueue": full.enqueue(2.0), "TakeGrad": data_flow_ops.ConditionalAccumulator(tf.float32, [], name="sum").take_grad(1)}
        fill = full.enqueue(1.0)
    session = training.session(rill, graph)
    session.run(fill)
    said = {}

    def wait(what):
        try:
            session.run(waits[what])
        except tf.errors.CancelledError as error:
            said[what] = error.message

    threads = [threading.Thread(target=wait, args=(what,)) for what in waits]
    for thread in threads:
        thread.start()
    time.sleep(0.5)
    session.close()
    for thread in threads:
        thread.join(60)
    for what in waits:
        assert what + " operation was cancelled" in said[what] and "Step was cancelled by an explicit call to `Session::Close()`." in said[what]
