"""TensorFlow's debugger over a Rill task: TensorFlow's own tests of it, and sessions that are debugged over several tasks, Rill's and TensorFlow's."""
import os

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from tensorflow.python.debug.lib import debug_data, debug_utils, session_debug_testlib
from tensorflow.python.debug.wrappers import dumping_wrapper

import training
from own_tests import local_task, names_of_tests, run_case  # noqa: F401 (a fixture)

TESTS = names_of_tests(session_debug_testlib.SessionDebugTestBase)


class DebuggedTests(session_debug_testlib.SessionDebugTestBase):
    """TensorFlow's tests of its debugger, writing to a folder."""

    def _debug_urls(self, run_number=None):
        return ["file://" + self._debug_dump_dir(run_number)]

    def _debug_dump_dir(self, run_number=None):
        return self._dump_root if run_number is None else os.path.join(self._dump_root, "run_%d" % run_number)


del session_debug_testlib.SessionDebugTestBase  # not to be collected by itself
DebuggedTests.__test__ = False


@pytest.mark.parametrize("name", TESTS)
def test_tensorflows_own_test(local_task, name):
    run_case(DebuggedTests, name, local_task)


def watched_run(target, graph, fetch, feeds, folder, **more):
    with training.session(target, graph) as s:
        s.run(tf.global_variables_initializer())
        options = tf.RunOptions(output_partition_graphs=True)
        debug_utils.watch_graph(options, graph, debug_urls="file://%s" % folder, **more)
        metadata = tf.RunMetadata()
        value = s.run(fetch, feeds, options=options, run_metadata=metadata)
        again = s.run(fetch, feeds)  # without anybody who looks
    return value, again, debug_data.DebugDumpDir(str(folder), partition_graphs=metadata.partition_graphs)


@pytest.mark.parametrize("kinds", [{"ps": ["rill"], "worker": ["rill"]}, {"ps": ["tf"], "worker": ["rill"]}, {"ps": ["rill"], "worker": ["tf"]}],
                         ids=["rill", "tf ps", "tf master"])
def test_values_of_all_tasks_are_seen(start_cluster, graph, tmp_path, kinds):
    target = start_cluster(kinds).target("worker", 0)
    with tf.device("/job:ps/task:0"):
        v = tf.Variable([1.0, 2.0], name="v")
    with tf.device("/job:worker/task:0"):
        x = tf.placeholder(tf.float32, [2], name="x")
        out = tf.reduce_sum(tf.multiply(x, v, name="product"), name="total")
    value, again, dump = watched_run(target, graph, out, {x: [3.0, 4.0]}, tmp_path)
    assert value == again == 11.0
    ps, worker = "/job:ps/replica:0/task:0/device:CPU:0", "/job:worker/replica:0/task:0/device:CPU:0"
    assert set(dump.devices()) == {ps, worker}
    np.testing.assert_array_equal(dump.get_tensors("v/read", 0, "DebugIdentity", device_name=ps)[0], [1.0, 2.0])
    np.testing.assert_array_equal(dump.get_tensors("product", 0, "DebugIdentity", device_name=worker)[0], [3.0, 8.0])
    assert dump.core_metadata.input_names == ["x:0"] and dump.core_metadata.output_names == ["total:0"]


def test_a_dumping_session_writes_every_run(rill, graph, tmp_path):
    x = tf.placeholder(tf.float32, [], name="x")
    y = tf.multiply(x, 2.0, name="y")
    with training.session(rill, graph) as s:
        wrapped = dumping_wrapper.DumpingDebugWrapperSession(s, str(tmp_path))
        assert [wrapped.run(y, {x: n}) for n in (1.0, 2.0)] == [2.0, 4.0]
    runs = sorted(os.listdir(tmp_path))
    assert len(runs) == 2
    seen = [float(debug_data.DebugDumpDir(os.path.join(tmp_path, run)).get_tensors("y", 0, "DebugIdentity")[0]) for run in runs]
    assert sorted(seen) == [2.0, 4.0]


@pytest.mark.parametrize("url", ["nowhere://x", "grpc://127.0.0.1:1"])
def test_a_run_that_cannot_be_written_fails(rill, graph, url):
    """The client library cannot even read who failed, since names of debug nodes look like those of tensors."""
    y = tf.identity(tf.placeholder_with_default(1.0, []), name="y")
    options = tf.RunOptions()
    debug_utils.add_debug_tensor_watch(options, "y", 0, debug_urls=url)
    with training.session(rill, graph) as s:
        with pytest.raises(ValueError, match="__dbg_y:0_0_DebugIdentity"):
            s.run(y, options=options)
        assert s.run(y) == 1.0
