"""What a client is told: the words of errors as TensorFlow has them, where programs look at them, and what a trace says of a node."""
import os
import re
import struct

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from tensorflow.python.framework import function, test_ops
from tensorflow.python.ops import data_flow_ops
from tensorflow.python.ops import functional_ops
from tensorflow.python.ops import gen_control_flow_ops
from tensorflow.python.ops import gen_data_flow_ops as flow_ops
from tensorflow.python.ops import gen_io_ops as flow_io
from tensorflow.python.ops import list_ops

from client_programs import Failure, outcomes_of, program


def fed(value, dtype=np.float32):
    """A tensor of which the client knows nothing."""
    return tf.placeholder_with_default(np.array(value, dtype), None)


def array(size=3, **more):
    return tf.TensorArray(tf.float32, size, name="rows", **more)


def uneven():
    return array(infer_shape=False).write(0, fed([[1, 2]])).write(1, fed([[1]])).write(2, fed([[3, 4]]))


def partial_run(p, feeds, fetches):
    a, b = tf.placeholder(tf.float32, [], "a"), tf.placeholder(tf.float32, [], "b")
    c, d = tf.add(a, a, "c"), tf.add(b, b, "d")
    handle = p.session.partial_run_setup([c], [a])
    return p.session.partial_run(handle, {"c": c, "d": d}[fetches], {{"a": a, "b": b}[feeds]: 1} if feeds else {})


def after_close(p):
    barrier = data_flow_ops.Barrier((tf.float32, tf.float32), shapes=((), ()))
    p.session.run(barrier.insert_many(0, ["old"], [1.0]))
    p.session.run(barrier.close())
    return p.session.run(barrier.insert_many(0, ["new"], [1.0]))


def closed_barrier(p):
    barrier = data_flow_ops.Barrier((tf.float32,), ((),))
    p.session.run(barrier.close())
    return barrier.insert_many(0, ["new"], [1.0])


def shared_barriers(p, *types, shape=()):
    p.session.run(data_flow_ops.Barrier((tf.float32,), ((),), shared_name="one").ready_size())
    return data_flow_ops.Barrier(types, [shape] * len(types), shared_name="one").ready_size()


def two_wide():
    return data_flow_ops.Barrier((tf.float32, tf.float32), ((), (2,)))


def too_wide(p):
    barrier = two_wide()
    p.session.run(barrier.insert_many(0, ["a"], [1.0]))
    return flow_ops.barrier_insert_many(barrier.barrier_ref, ["a"], fed([[1, 2, 3]]), component_index=1)


def list_of(value, shape=None):
    return list_ops.tensor_list_push_back(list_ops.empty_tensor_list(element_shape=shape, element_dtype=tf.float32), fed(value))


def closed_padding_queue(p):
    queue = tf.PaddingFIFOQueue(3, [tf.float32], [[None]])
    p.session.run(queue.close())
    return queue.enqueue([[1.0]])


def staged_twice(p):
    area = data_flow_ops.MapStagingArea([tf.float32, tf.float32])
    put = area.put(tf.constant(1, tf.int64), [tf.constant(1.0)], [0])
    p.session.run(put)
    return put


def common(p, name):
    """A path that is the same for both."""
    return os.path.join(os.path.dirname(p.folder), name)


def saved(p, spec="", values=(1, 2), name="saved"):
    p.session.run(flow_io.save_v2(common(p, name), ["x"], [spec], [np.array(values, np.float32)]))
    return common(p, name)


def saved_parts(p, *specs):
    p.session.run(flow_io.save_v2(common(p, "parts"), ["x"] * len(specs), list(specs), [np.ones([2, 2], np.float32)] * len(specs)))
    return common(p, "parts")


def in_container(use):
    return use(tf.raw_ops.VarHandleOp(shape=[], dtype=tf.float32, shared_name="v", container="never filled"))


def destroyed(p):
    variable = tf.raw_ops.VarHandleOp(shape=[], dtype=tf.float32, shared_name="v", container="filled")
    p.session.run(tf.raw_ops.AssignVariableOp(resource=variable, value=1.0))
    p.session.run(tf.raw_ops.DestroyResourceOp(resource=variable, ignore_lookup_error=False))
    return tf.raw_ops.ReadVariableOp(resource=variable, dtype=tf.float32)


def writer(p, folder=None):
    handle = tf.raw_ops.SummaryWriter(shared_name="writer", container="")
    p.session.run(tf.raw_ops.CreateSummaryFileWriter(writer=handle, logdir=folder or p.folder, max_queue=1, flush_millis=1000, filename_suffix=""))
    return handle


def filled(p, value=np.ones([3, 2], np.float32)):
    variable = tf.Variable(value, name="filled_" + value.dtype.name, use_resource=True)
    p.session.run(variable.initializer)
    return variable.handle


def another_kind(p):
    p.session.run(tf.FIFOQueue(3, tf.int32, shared_name="kind").size())
    return p.session.run(tf.RandomShuffleQueue(3, 0, tf.int32, shared_name="kind").size())


def example(**features):
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()


def sequence(context=(), **lists):
    return tf.train.SequenceExample(
        context=tf.train.Features(feature=dict(context)),
        feature_lists=tf.train.FeatureLists(feature_list={k: tf.train.FeatureList(feature=v) for k, v in lists.items()})).SerializeToString()


def numbers(*values):
    return tf.train.Feature(float_list=tf.train.FloatList(value=values))


def named_files(*names):
    queue = tf.FIFOQueue(9, [tf.string], shapes=[[]])
    with tf.control_dependencies([queue.enqueue_many([names])]):
        return tf.identity(queue.queue_ref)


BMP = b"BM" + struct.pack("<IHHIIiiHHIIiiII", 78, 0, 0, 54, 40, 2, 3, 1, 24, 0, 24, 0, 0, 0, 0) + bytes(range(24))
TWO = example(a=numbers(1, 2))
FIXED, ANY, ROWS_OF = tf.FixedLenFeature, tf.VarLenFeature, tf.FixedLenSequenceFeature


def variable():
    return tf.get_variable("rows", initializer=np.ones([3, 2], np.float32), use_resource=False)


def changed(p, change, *arguments):
    rows = variable()
    p.session.run(rows.initializer)
    return change(rows, *arguments)


def of_its_own_gradient(x):
    gradient = function.Defun(tf.float32, tf.float32, func_name="too_much")(lambda x, dy: (x, dy))
    return tf.gradients(function.Defun(tf.float32, func_name="same", grad_func=gradient)(lambda x: x)(x), x)


ROWS = {
    "bins of rows below 0": lambda p: tf.raw_ops.DenseBincount(input=fed([[1, 2], [2, -3]], np.int32), size=3, weights=tf.zeros([0]), binary_output=True),
    "diagonals: too few": lambda p: tf.raw_ops.MatrixSetDiagV3(input=tf.ones([2, 3]), diagonal=fed([[1, 2]]), k=fed([-1, 0], np.int32)),
    "diagonals: of another width": lambda p: tf.raw_ops.MatrixSetDiagV3(input=tf.ones([2, 3]), diagonal=fed([[1, 2, 3], [4, 5, 6]]), k=fed([-1, 0], np.int32)),
    "rows added to: another width": lambda p: changed(p, tf.scatter_add, fed([0], np.int32), fed([1, 2, 3])),
    "places added to: too deep": lambda p: changed(p, tf.scatter_nd_add, fed([[0, 1, 2]], np.int32), fed([1])),
    "places added to: one vector": lambda p: changed(p, tf.scatter_nd_add, fed([0], np.int32), fed([1, 2])),
    "places of a tensor: another width": lambda p: tf.tensor_scatter_nd_update(tf.ones([3, 2]), fed([0], np.int32), fed([[1, 2]])),
    "places of a tensor: one number": lambda p: tf.tensor_scatter_nd_update(tf.ones([3, 2]), fed([0, 1], np.int32), fed(1)),
    "places of a new tensor": lambda p: tf.scatter_nd(fed([0], np.int32), fed([[1, 2]]), [3, 2]),
    "one place that is not there": lambda p: tf.gather_nd(tf.ones([3, 2]), fed([0, 2], np.int32)),
    "example: another count": lambda p: tf.parse_example([TWO], {"a": FIXED([3], tf.float32)}),
    "example: another type": lambda p: tf.parse_example([TWO], {"a": FIXED([2], tf.int64)}),
    "example: another type, any count": lambda p: tf.parse_example([TWO], {"a": ANY(tf.int64)}),
    "example: rows of another size": lambda p: tf.parse_example([TWO], {"a": ROWS_OF([3], tf.float32, allow_missing=True)}),
    "one example: another type": lambda p: tf.parse_single_example(TWO, {"a": FIXED([2], tf.int64)}),
    "one example: another type, any count": lambda p: tf.parse_single_example(TWO, {"a": ANY(tf.int64)}),
    "one example: rows of another size": lambda p: tf.parse_single_example(TWO, {"a": ROWS_OF([3], tf.float32, allow_missing=True)}),
    "sequence: no list": lambda p: tf.io.parse_sequence_example([sequence()], {}, {"x": ROWS_OF([2], tf.float32)}),
    "sequence: no context": lambda p: tf.io.parse_sequence_example([sequence()], {"c": FIXED([], tf.int64)}, {}),
    "sequence: another count of a step": lambda p: tf.io.parse_sequence_example([sequence(x=[numbers(1), numbers(1, 2, 3)])], {}, {"x": ROWS_OF([2], tf.float32)}),
    "sequence: another count": lambda p: tf.io.parse_sequence_example([sequence(x=[numbers(1)])], {}, {"x": ROWS_OF([2], tf.float32)}),
    "one example: another count": lambda p: tf.parse_single_example(TWO, {"a": FIXED([1, 3], tf.float32)}),
    "examples with too many names": lambda p: tf.parse_example(fed([TWO], object), {"a": ANY(tf.float32)}, example_names=fed([b"a", b"b"], object)),
    "example: a default of another shape": lambda p: tf.raw_ops.ParseExample(serialized=[TWO], names=[], sparse_keys=[], dense_keys=["b"], dense_defaults=[fed([1])],
                                                                             sparse_types=[], dense_shapes=[[2]]),
    "sequence: a list of another type": lambda p: tf.io.parse_sequence_example([sequence(x=[numbers(1)])], {}, {"x": ROWS_OF([1], tf.int64)}, example_names=["n"]),
    "sequence: a context of another type": lambda p: tf.io.parse_sequence_example([sequence({"c": numbers(1)})], {"c": FIXED([1], tf.int64)}, {}, example_names=["n"]),
    "sequence: a context of another size": lambda p: tf.io.parse_sequence_example([sequence({"c": numbers(1)})], {"c": FIXED([2], tf.float32)}, {}),
    "one sequence: a context of another type": lambda p: tf.parse_single_sequence_example(sequence({"c": numbers(1)}), {"c": FIXED([1], tf.int64)}, {}, example_name="n"),
    "state of a reader": lambda p: tf.IdentityReader("lines").restore_state(b'BOGUS\x01"\n'),
    "file of a reader": lambda p: tf.WholeFileReader("files").read(named_files("/nonexistent/file")),
    "files in a matrix": lambda p: tf.matching_files(fed([[b"a"]], object)),
    "crop of no JPEG": lambda p: tf.image.decode_and_crop_jpeg(tf.image.encode_png(np.zeros([2, 2, 3], np.uint8)), [0, 0, 1, 1]),
    "grey of a BMP": lambda p: tf.image.decode_bmp(fed(BMP, object), channels=1),
    "BMP by another op": lambda p: tf.image.decode_png(fed(BMP, object), channels=3),
    "BMP cut short": lambda p: tf.image.decode_bmp(fed(BMP[:-3], object)),
    "strings of two sizes": lambda p: tf.decode_raw(fed([b"abcd", b"a"], object), tf.uint8),
    "empty image": lambda p: tf.image.decode_png(fed(b"", object)),
    "records of no size": lambda p: flow_io.fixed_length_record_reader_v2(record_bytes=-1),
    "records with a footer of no size": lambda p: flow_io.fixed_length_record_reader_v2(record_bytes=1, footer_bytes=-1),
    "select by a vector": lambda p: gen_control_flow_ops.ref_select(fed([0], np.int32), [v._ref() for v in (variable(), variable())]),
    "a loop left that was not entered": lambda p: gen_control_flow_ops._exit(fed(1)),
    "switch": lambda p: gen_control_flow_ops.switch(1, fed([True, False], bool))[0],
    "array of less than nothing": lambda p: array(fed(-1, np.int32)).flow,
    "array read before it is written": lambda p: array(infer_shape=False).read(0),
    "array written with another shape": lambda p: array(element_shape=[2]).write(0, fed([1])).flow,
    "array written with another type": lambda p: flow_ops.tensor_array_write_v3(array().handle, 0, 5, 0.0),
    "array read as another type": lambda p: flow_ops.tensor_array_read_v3(array().handle, 0, 0.0, tf.int32),
    "array of uneven rows stacked": lambda p: uneven().stack(),
    "array of uneven rows joined": lambda p: uneven().concat(),
    "array of numbers joined": lambda p: array(1, infer_shape=False).write(0, fed(1)).concat(),
    "array without rows stacked": lambda p: array(0).stack(),
    "array without rows joined": lambda p: array(0).concat(),
    "array scattered too far": lambda p: array().scatter([0, 3], fed([1, 2])).flow,
    "array scattered unevenly": lambda p: array().scatter([0, 1], fed([1, 2, 3])).flow,
    "array of words without some": lambda p: tf.TensorArray(tf.string, 2).write(0, "a").stack(),
    "gradient of another shape": lambda p: array(infer_shape=False).write(0, fed([1, 2])).grad("g").write(0, fed([3])).flow,
    "gradient read before it is written": lambda p: array(infer_shape=False).grad("g").read(0),
    "part of a run: a fetch before its feed": lambda p: partial_run(p, None, "c"),
    "part of a run: feed": lambda p: partial_run(p, "b", "c"),
    "part of a run: fetch": lambda p: partial_run(p, "a", "d"),
    "queue with less than nothing": lambda p: tf.FIFOQueue(3, tf.int32, shapes=[[]]).dequeue_up_to(fed(-1, np.int32)),
    "padding queue without shapes": lambda p: flow_ops.padding_fifo_queue_v2([tf.int32], []),
    "queue of another kind": another_kind,
    "barrier after close": after_close,
    "barrier after close, nothing left": lambda p: closed_barrier(p),
    "barrier of other types": lambda p: shared_barriers(p, tf.float32, tf.int32),
    "barrier without shapes": lambda p: flow_ops.barrier([tf.float32], capacity=3),
    "barrier of values of another shape": lambda p: too_wide(p),
    "barrier that gives fewer": lambda p: flow_ops.barrier_take_many(two_wide().barrier_ref, 1, [tf.float32]),
    "list without that element": lambda p: list_ops.tensor_list_gather(list_of(1.0), fed([3], np.int32), tf.float32),
    "list of numbers without that element": lambda p: tf.raw_ops.TensorListGather(input_handle=list_of(1.0, []), indices=fed([3], np.int32), element_shape=[], element_dtype=tf.float32),
    "list with an element of another shape": lambda p: list_ops.tensor_list_set_item(list_of(1.0, []), fed(7, np.int32), fed([1, 2])),
    "lists pushed to: too many": lambda p: tf.raw_ops.TensorListPushBackBatch(input_handles=tf.stack([list_of(1.0), list_of(2.0)]), tensor=fed([1, 2, 3])),
    "list of a length in a row": lambda p: tf.raw_ops.TensorListReserve(element_shape=[2], num_elements=fed([1], np.int32), element_dtype=tf.float32),
    "list of a bound in a row": lambda p: tf.raw_ops.EmptyTensorList(element_shape=[2], max_num_elements=fed([1], np.int32), element_dtype=tf.float32),
    "list of a matrix for shape": lambda p: tf.raw_ops.TensorListReserve(element_shape=fed([[1]], np.int32), num_elements=1, element_dtype=tf.float32),
    "list of a number for shape": lambda p: tf.raw_ops.TensorListReserve(element_shape=fed(3, np.int32), num_elements=1, element_dtype=tf.float32),
    "list of a negative shape": lambda p: tf.raw_ops.TensorListReserve(element_shape=fed([-2], np.int32), num_elements=1, element_dtype=tf.float32),
    "array of sizes": lambda p: tf.raw_ops.TensorArrayV3(size=fed([3], np.int32), dtype=tf.float32).flow,
    "array written at places": lambda p: tf.raw_ops.TensorArrayWriteV3(handle=array().handle, index=fed([0], np.int32), value=1.0, flow_in=0.0),
    "edit distance of vectors": lambda p: tf.edit_distance(*[tf.SparseTensor(fed([[0]], np.int64), fed([1]), fed([1], np.int64))] * 2),
    "lists of other shapes": lambda p: tf.raw_ops.AddN(inputs=[list_of(1.0), list_of([1.0])]),
    "container that is not there": lambda p: test_ops.resource_using_op(test_ops.stub_resource_handle_op("nowhere", "stub")),
    "barrier of other shapes": lambda p: shared_barriers(p, tf.float32, shape=[2]),
    "barrier: values of another type": lambda p: flow_ops.barrier_insert_many(data_flow_ops.Barrier((tf.float32,), ((),)).barrier_ref, ["a"], [1], 0),
    "padding queue after close": lambda p: closed_padding_queue(p),
    "staged with a vector for a key": lambda p: flow_ops.map_stage(fed([1, 2], np.int64), [0], [tf.constant(1.0)], [tf.float32]),
    "staged at an index that is not there": lambda p: flow_ops.map_stage(tf.constant(1, tf.int64), fed([7], np.int32), [tf.constant(1.0)], [tf.float32] * 2, shared_name="two"),
    "staged twice": lambda p: staged_twice(p),
    "inputs of two frames": lambda p: (lambda x: tf.add(gen_control_flow_ops.enter(x, "one"), gen_control_flow_ops.enter(x, "two")))(tf.constant(1.0)),
    "checkpoint: a part that is not there": lambda p: flow_io.restore_v2(saved(p, "2 2 0,1:-", [[1, 2]]), ["x"], [""], [tf.float32])[0],
    "checkpoint: a slice that is not there": lambda p: flow_io.restore_v2(saved(p, "2 2 0,1:-", [[1, 2]]), ["x"], ["2 2 1,1:-"], [tf.float32])[0],
    "checkpoint: more names than types": lambda p: flow_io.restore_v2(saved(p), fed([b"x", b"y"], object), [""], [tf.float32])[0],
    "checkpoint: a slice of another shape": lambda p: saved(p, "2 2 0,1:-", [[1, 2, 3]]),
    "checkpoints merged: the same tensor": lambda p: flow_io.merge_v2_checkpoints([saved(p), saved(p, name="other")], common(p, "merged")),
    "checkpoint: fewer slices than names": lambda p: flow_io.restore_v2(saved(p), ["x", "y"], fed([b""], object), [tf.float32] * 2)[0],
    "checkpoint: parts that overlap": lambda p: flow_io.restore_v2(saved_parts(p, "4 2 0,2:-", "4 2 1,2:-"), ["x"], [""], [tf.float32])[0],
    "checkpoint below a file": lambda p: flow_io.restore_v2(saved(p) + ".index/x", ["x"], [""], [tf.float32])[0],
    "checkpoint of the first version: a type it has not": lambda p: flow_io.save(common(p, "old"), ["x"], [tf.cast([1], tf.qint16)]),
    "checkpoints merged: not even one": lambda p: flow_io.merge_v2_checkpoints(fed([b"/nonexistent/one"], object), common(p, "merged"), allow_missing_files=True),
    "checkpoints merged: none": lambda p: flow_io.merge_v2_checkpoints(["/nonexistent/one"], common(p, "merged")),
    "contents of a file": lambda p: tf.write_file(common(p, "file"), fed([b"a", b"b"], object)),
    "summary of a sound in four dimensions": lambda p: tf.summary.audio("a", fed(np.zeros([1, 2, 1, 1])), 8000.0),
    "no tensor": lambda p: tf.parse_tensor(fed(b"\x08", object), tf.float32),
    "no tensor of two bytes": lambda p: tf.parse_tensor(fed(b"\x08\xff", object), tf.float32),
    "variable in a container that is not there": lambda p: in_container(lambda v: tf.raw_ops.ReadVariableOp(resource=v, dtype=tf.float32)),
    "variable destroyed in a container that is not there": lambda p: in_container(lambda v: tf.raw_ops.DestroyResourceOp(resource=v, ignore_lookup_error=False)),
    "variable that was destroyed": lambda p: destroyed(p),
    "summary writer below a file": lambda p: writer(p, saved(p) + ".index/logs"),
    "no summaries": lambda p: tf.raw_ops.WriteRawProtoSummary(writer=writer(p), step=tf.constant(1, tf.int64), tensor=fed([b"", b"garbage"], object)),
    "no event": lambda p: tf.raw_ops.ImportEvent(writer=writer(p), event=fed(b"garbage", object)),
    "no graph": lambda p: tf.raw_ops.WriteGraphSummary(writer=writer(p), step=tf.constant(1, tf.int64), tensor=fed(b"garbage", object)),
    "summary of numbers": lambda p: tf.summary.scalar("a", fed([1, 2])),
    "summary of an infinity": lambda p: tf.summary.histogram("h", fed([1, np.inf])),
    "a loop that goes the wrong way": lambda p: functional_ops.For(0, 5, -1, [1.0], function.Defun(tf.int32, tf.float32)(lambda i, x: x)),
    "a loop that does not go": lambda p: functional_ops.For(0, 5, 0, [1.0], function.Defun(tf.int32, tf.float32)(lambda i, x: x)),
    "a loop from a vector": lambda p: functional_ops.For(fed([0], np.int32), 5, 1, [1.0], function.Defun(tf.int32, tf.float32)(lambda i, x: x)),
    "a loop of too many results": lambda p: functional_ops.For(0, 5, 1, [1.0], function.Defun(tf.int32, tf.float32)(lambda i, x: (x, x))),
    "a while of two conditions": lambda p: functional_ops.While(
        [1.0], function.Defun(tf.float32)(lambda x: (x < 5.0, x)), function.Defun(tf.float32)(lambda x: x)),
    "a remote call of another type": lambda p: functional_ops.remote_call("/cpu:0", [1.0], [tf.int32], function.Defun(tf.float32)(lambda x: x)),
    "a gradient of nothing": lambda p: functional_ops.symbolic_gradient([fed(1), fed(1)], [tf.float32], "Nothing"),
    "a gradient of too many results": lambda p: of_its_own_gradient(fed(1)),
    "case of a vector": lambda p: tf.raw_ops.Case(branch_index=fed([0], np.int32), input=[1.0], Tout=[tf.float32], branches=[function.Defun(tf.float32)(lambda x: x)] * 2),
    "momentum of a row that is not there": lambda p: tf.raw_ops.ResourceSparseApplyKerasMomentum(
        var=filled(p), accum=filled(p), lr=0.5, grad=fed([[1, 1]]), indices=fed([9], np.int32), momentum=0.5),
    "state of another generator": lambda p: tf.raw_ops.RngReadAndSkip(resource=filled(p, np.arange(3, dtype=np.int64)), alg=2, delta=tf.constant(5, tf.uint64)),
    "barrier of unknown rows": lambda p: flow_ops.barrier([tf.float32], [tf.TensorShape([None])]),
}


def words(failure):
    """The text, without what differs from run to run: numbers of names, places."""
    assert isinstance(failure, Failure), failure
    text = re.sub(r"^Graph execution error:\s*|From /job:\S+:\s*", "", failure.text)
    return failure.type, re.sub(r"_\d+|\b_\d+_", "_N", text).split("\n\t")[0].strip().rstrip(".")


@pytest.mark.parametrize("row", ROWS)
def test_errors_are_told_in_the_same_words(rill, reference, tmp_path, row):
    def build(p):
        def fetch():
            fetches = ROWS[row](p)
            return fetches if fetches is None else p.session.run(fetches)

        p.attempt(fetch)

    (expected,) = outcomes_of(build, reference, tmp_path / "tensorflow", "v1", {})
    (got,) = outcomes_of(build, rill, tmp_path / "rill", "v1", {})
    assert words(got) == words(expected)


def test_a_while_of_other_results_says_which(rill, graph):
    def loop(body):
        return functional_ops.While([1.0], function.Defun(tf.float32)(lambda x: x < 5.0), function.Defun(tf.float32)(body))

    with tf.Session(rill) as session:
        with pytest.raises(tf.errors.InvalidArgumentError, match="While loop body returned 2 arguments. Expected: 1"):
            session.run(loop(lambda x: (x, x)))
        with pytest.raises(tf.errors.InvalidArgumentError, match="Expected type float for return value 0 but got int32."):
            session.run(loop(lambda x: tf.cast(x, tf.int32)))


def test_a_dead_fetch_is_named_in_the_words_of_both_sessions(rill, graph):
    dead, _ = gen_control_flow_ops.switch(1, tf.constant(True))
    with tf.Session(rill) as session:
        with pytest.raises(tf.errors.InternalError, match=r"Switch:0 was not valid.*Retval\[0\] does not have value"):
            session.run(dead)


def test_a_step_that_takes_too_long_says_so(rill, graph):
    with tf.Session(rill) as session:
        # The client's own timer ends at about the same time; either may win.
        with pytest.raises(tf.errors.DeadlineExceededError, match="Timed out waiting for notification|Deadline Exceeded"):
            session.run(tf.FIFOQueue(1, tf.int32).dequeue(), options=tf.RunOptions(timeout_in_ms=200))


@program()
def test_a_damaged_record_stays_the_next_one(p):
    path = p.folder + "/records"
    with tf.python_io.TFRecordWriter(path) as writer:
        writer.write(b"one")
        writer.write(b"two")
    with open(path, "rb") as whole:
        data = whole.read()
    with open(path, "wb") as cut:
        cut.write(data[:-3])
    names = tf.FIFOQueue(3, tf.string, shapes=[[]])
    p.session.run(names.enqueue_many([[path, path]]))
    reader = tf.TFRecordReader()
    value = reader.read(names).value
    for _ in range(4):
        p.run(value)
    p.run([reader.num_records_produced(), reader.num_work_units_completed()])
    p.run(reader.read_up_to(names, 0))


@program()
def test_a_vector_of_indices_names_one_place(p):
    rows = variable()
    p.init()
    p.run(tf.scatter_nd_update(rows, fed([0, 2], np.int32), fed([[5, 6], [7, 8]])))
    p.run(tf.scatter_nd_add(rows, fed([1], np.int32), fed([[5, 6]])))


@program()
def test_rows_never_written_are_zeros_when_the_shape_is_known(p):
    def write_two(**more):
        return array(**more).write(0, fed([1, 2])).write(2, fed([3, 4]))

    p.run(write_two().stack())
    p.run(write_two().read(1))
    p.run(write_two().concat())
    p.run(write_two(infer_shape=False).stack())
    p.run(tf.map_fn(lambda x: x[0] + x[1], (tf.constant([1.0, 2, 3]), fed([1, 2])), dtype=tf.float32))


def traced(target, fetches, feeds):
    metadata = tf.RunMetadata()
    with tf.Session(target) as session:
        session.run(tf.global_variables_initializer())
        session.run(fetches, feeds, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), run_metadata=metadata)
    return {n.node_name: n for d in metadata.step_stats.dev_stats for n in d.node_stats}


def test_a_trace_tells_labels_outputs_and_memory(rill, reference, graph):
    x = tf.placeholder(tf.float32, [2, 3], "x")
    v = tf.get_variable("v", [3, 4], use_resource=False)
    with tf.control_dependencies([x]):
        one = tf.constant(1, name="one")
    y = tf.placeholder(tf.int32, [3])
    unique = tf.unique(y, name="unique")
    fetches = [tf.matmul(x, v, name="product"), unique.y, tf.maximum(unique.idx, one, name="second")]
    got, expected = (traced(target, fetches, {x: np.ones([2, 3]), y: [5, 5, 6]}) for target in (rill, reference))
    for name in ("product", "unique", "v", "second"):
        outputs = []
        for node in (got[name], expected[name]):
            outputs.append([(o.slot, o.tensor_description.dtype, [d.size for d in o.tensor_description.shape.dim],
                             o.tensor_description.allocation_description.requested_bytes) for o in node.output])
        assert outputs[0] == outputs[1] and outputs[1], name
        label = expected[name].timeline_label.replace("_MklMatMul", "MatMul").replace("_arg_", "_recv_").replace("_0_0,", "_0,")
        assert got[name].timeline_label == label
    memory = got["product"].memory[0]
    assert memory.allocator_name and memory.total_bytes == memory.peak_bytes == 2 * 4 * 4
