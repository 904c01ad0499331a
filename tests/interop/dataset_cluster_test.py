"""Datasets of one task used by another: iterators in loops and branches, captured tables and variables, datasets of datasets, several devices."""
import numpy as np
import pytest
import tensorflow.compat.v1 as tf
import tensorflow.compat.v2 as tf2
from tensorflow.python.data.ops import multi_device_iterator_ops

from client_programs import modes_of, program, same
from cluster_process import Cluster

Data = tf2.data.Dataset
PS, WORKER = "/job:ps/task:0", "/job:worker/task:0"


@pytest.fixture(scope="module")
def cluster():
    made = Cluster({"ps": 1, "worker": 2})
    yield made.target("worker")
    made.kill()


real_device = tf.device


def loop_over_an_iterator(run):
    with tf.device(PS):
        iterator = tf.data.make_initializable_iterator(Data.range(100).map(lambda x: x * x))
    with tf.device(WORKER):
        taken = tf.while_loop(lambda i, total: i < 5, lambda i, total: (i + 1, total + iterator.get_next()), [0, np.int64(0)], parallel_iterations=1)
    run(iterator.initializer)
    for _ in range(3):
        run(taken)


def branch_on_an_iterator(run):
    with tf.device(PS):
        iterator = tf.data.make_initializable_iterator(Data.range(10))
    with tf.device(WORKER):
        element = iterator.get_next()
        chosen = tf.cond(element % 2 > 0, lambda: element * 100, lambda: element + iterator.get_next())
    run(iterator.initializer)
    for _ in range(8):
        run(chosen)


def loop_until_the_end(run):
    with tf.device(WORKER):
        iterator = tf.data.make_initializable_iterator(Data.range(7))

        def body(total, going):
            with tf.device(WORKER):
                element = iterator.get_next_as_optional()
                has = element.has_value()
                return total + tf.cond(has, element.get_value, lambda: tf.constant(0, tf.int64)), has

        with tf.device("/job:worker/task:1"):
            total = tf.while_loop(lambda total, going: going, body, [np.int64(0), True], parallel_iterations=1)
    run(iterator.initializer)
    run(total)
    run(total)


def table_and_variable(run):
    with tf.device(PS):
        table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a", "b"], np.int64([1, 2])), -1)
        weight = tf.get_variable("weight", initializer=np.int64(10), use_resource=True)
        words = Data.from_tensor_slices(["a", "b", "c", "a"]).map(lambda w: table.lookup(w) * weight, num_parallel_calls=2)
        iterator = tf.data.make_initializable_iterator(words.batch(2))
    with tf.device(WORKER):
        step = iterator.get_next() + 1
    run([tf.tables_initializer(), tf.global_variables_initializer()])
    run(iterator.initializer)
    run(step)
    run(weight.assign_add(5))
    run(iterator.initializer)
    run(step)


def datasets_of_datasets(run):
    with tf.device(PS):
        nested = Data.range(4).map(lambda x: Data.range(x + 1).map(lambda y: x * 10 + y))
        iterator = tf.data.make_initializable_iterator(nested.map(lambda d: d.reduce(np.int64(0), lambda a, b: a + b)))
        flat = tf.data.make_initializable_iterator(Data.zip((nested, Data.range(4))).flat_map(lambda d, i: d.map(lambda y: (y, i))))
    with tf.device(WORKER):
        steps = [iterator.get_next() * 1, flat.get_next()]
    run([iterator.initializer, flat.initializer])
    for _ in range(4):
        run(steps[0])
    for _ in range(11):
        run(steps[1])


def handles_by_name(run):
    with tf.device(PS):
        sources = [tf.data.make_initializable_iterator(Data.range(i, i + 3)) for i in (0, 10)]
        handle = tf.placeholder(tf.string, [])
        step = tf.data.Iterator.from_string_handle(handle, tf.int64, []).get_next()
    with tf.device(WORKER):
        doubled = step * 2
    run([s.initializer for s in sources])
    names = [run(s.string_handle(), recorded=False) for s in sources]
    for i in (0, 1, 1, 0, 1, 1):
        run(doubled, {handle: names[i]})


PROGRAMS = [loop_over_an_iterator, branch_on_an_iterator, loop_until_the_end, table_and_variable, datasets_of_datasets, handles_by_name]


def outcomes(build, target, mode):
    modes_of(mode)
    found = []
    try:
        with tf.Graph().as_default(), tf.Session(target, config=tf.ConfigProto(allow_soft_placement=True, operation_timeout_in_ms=20000)) as session:
            def run(fetches, feeds=None, recorded=True):
                try:
                    value = session.run(fetches, feeds)
                except tf.errors.OpError as error:
                    value = type(error).__name__
                if recorded:
                    found.append(value)
                return value

            tf.set_random_seed(3)
            build(run)
    finally:
        modes_of("v1")
    return found


@pytest.mark.parametrize("mode", ["v1", "v2"])
@pytest.mark.parametrize("build", PROGRAMS, ids=lambda f: f.__name__)
def test_a_pipeline_spans_tasks(cluster, monkeypatch, build, mode):
    got = outcomes(build, cluster, mode)
    monkeypatch.setattr(tf, "device", lambda name: real_device("/cpu:0"))
    same(got, outcomes(build, "", mode), build.__name__, 1e-5)


@program()
def test_elements_are_dealt_to_devices_in_turn(p):
    for devices, size in ((["/cpu:0", "/cpu:0"], 1), (["/cpu:0"] * 3, 2)):
        iterator = multi_device_iterator_ops.MultiDeviceIterator(Data.range(7).map(lambda x: (x, x * 2)), devices, max_buffer_size=size)
        elements = iterator.get_next()
        p.run(iterator.initializer)
        for _ in range(7 // len(devices)):
            p.run(elements)
        for element in elements: # at the end one by one: of several that end together TensorFlow may say that they were cancelled
            p.run(element)
        p.run(iterator.initializer)
        p.run(elements[0])
        p.run(elements[1])
