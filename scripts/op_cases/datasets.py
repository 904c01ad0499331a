"""Datasets: each op in a small pipeline, drained through an iterator to its end; iterators, optionals, caches."""
import numpy as np
import tensorflow as tf
from tensorflow.core.framework import attr_value_pb2
from tensorflow.python.framework import function

from .files import EXAMPLES, make_files, records, serialized, text
from .table import PLAIN, program

v1, raw = tf.compat.v1, tf.raw_ops
I64 = np.int64
SCALAR = {"output_types": [tf.int64], "output_shapes": [tf.TensorShape([])]}
MOST = 40


def c64(value):
    return tf.constant(value, tf.int64)


def numbers(stop=7, start=0, step=1):
    return raw.RangeDataset(start=c64(start), stop=c64(stop), step=c64(step), **SCALAR)


class Drain:
    """An iterator over a dataset."""

    def __init__(self, dataset, output_types=(tf.int64,), output_shapes=((),), sync=False):
        kind = {"output_types": list(output_types), "output_shapes": [tf.TensorShape(s) for s in output_shapes]}
        self.iterator = raw.IteratorV2(shared_name="", container="", **kind)
        self.start = raw.MakeIterator(dataset=dataset, iterator=self.iterator)
        self.next = (raw.IteratorGetNextSync if sync else raw.IteratorGetNext)(iterator=self.iterator, **kind)

    def run(self, p, feeds=None, most=MOST):
        p.run(feeds=feeds, targets=[self.start])
        for _ in range(most):
            if p.run(self.next) is None:
                break


def in_place_of(op, successor, inputs=None, drop=(), add=None):
    """A rewrite: nodes of the successor become nodes of the op, with their first inputs, and those of the names in add."""
    def rewrite(definition):
        for n in definition.node:
            if n.op == successor:
                n.op = op
                kept = list(n.input)[:inputs] + list(add or ())
                del n.input[:]
                n.input.extend(kept)
                for name in drop:
                    n.attr.pop(name, None)
    return rewrite


def pipeline(ops, make, types=(tf.int64,), shapes=((),), most=MOST, sync=False, name=None, rewrite=None):
    """A program that drains the dataset make(p) gives."""
    def run(p):
        p.rewrite = rewrite
        d = Drain(make(p), types, shapes, sync)
        d.run(p, most=most)
    run.__name__ = name or ops.split()[0]
    program(ops)(run)


def defined(p, types, body):
    """A function as the attribute of a dataset."""
    f = function.Defun(*types)(body)
    f.add_to_graph(p.graph)
    return attr_value_pb2.AttrValue(func=attr_value_pb2.NameAttrList(name=f.name))


def with_functions(p, op, inputs, functions, more=None, output_types=(tf.int64,), output_shapes=((),)):
    """A dataset node whose attributes are functions: the Python functions want traced ones, here are plain ones."""
    attrs = {k: v if isinstance(v, attr_value_pb2.AttrValue) else to_attr(v) for k, v in {**functions, **(more or {})}.items()}
    attrs["output_types"] = types_list(output_types)
    attrs["output_shapes"] = attr_value_pb2.AttrValue(list=attr_value_pb2.AttrValue.ListValue(shape=[tf.TensorShape(s).as_proto() for s in output_shapes]))
    return p.graph.create_op(op, [tf.convert_to_tensor(i) for i in inputs], [tf.variant], attrs=attrs, name=op).outputs[0]


def types_list(types):
    return attr_value_pb2.AttrValue(list=attr_value_pb2.AttrValue.ListValue(type=[t.as_datatype_enum for t in types]))


def to_attr(value):
    if isinstance(value, bool):
        return attr_value_pb2.AttrValue(b=value)
    if isinstance(value, int):
        return attr_value_pb2.AttrValue(i=value)
    return attr_value_pb2.AttrValue(s=value.encode())


NONE = {"Targuments": types_list([])}
pipeline("RangeDataset", lambda p: numbers(9, 1, 3))
pipeline("IteratorGetNextSync", lambda p: numbers(3), sync=True)
pipeline("TakeDataset", lambda p: raw.TakeDataset(input_dataset=numbers(), count=c64(3), **SCALAR))
pipeline("TakeDataset", lambda p: raw.TakeDataset(input_dataset=numbers(), count=c64(-1), **SCALAR), name="take_all")
pipeline("SkipDataset", lambda p: raw.SkipDataset(input_dataset=numbers(), count=c64(5), **SCALAR))
pipeline("RepeatDataset", lambda p: raw.RepeatDataset(input_dataset=numbers(3), count=c64(2), **SCALAR))
pipeline("RepeatDataset", lambda p: raw.RepeatDataset(input_dataset=numbers(3), count=c64(-1), **SCALAR), most=8, name="repeat_forever")
pipeline("ConcatenateDataset", lambda p: raw.ConcatenateDataset(input_dataset=numbers(2), another_dataset=numbers(9, 7), **SCALAR))
pipeline("ZipDataset", lambda p: raw.ZipDataset(input_datasets=[numbers(3), numbers(9, 5)], output_types=[tf.int64] * 2, output_shapes=[[], []]), (tf.int64,) * 2, ((), ()))
pipeline("ShardDataset", lambda p: raw.ShardDataset(input_dataset=numbers(), num_shards=c64(3), index=c64(1), **SCALAR))
pipeline("ShardDataset", lambda p: raw.ShardDataset(input_dataset=numbers(), num_shards=c64(3), index=c64(4), **SCALAR), name="shard_outside")
for drop in (False, True):
    pipeline("BatchDatasetV2", lambda p, drop=drop: raw.BatchDatasetV2(input_dataset=numbers(), batch_size=c64(3), drop_remainder=drop, output_types=[tf.int64],
                                                                       output_shapes=[[None]]), shapes=([None],), name=f"batch_{drop}")
    pipeline("ParallelBatchDataset", lambda p, drop=drop: raw.ParallelBatchDataset(
        input_dataset=numbers(), batch_size=c64(3), num_parallel_calls=c64(2), drop_remainder=drop, output_types=[tf.int64], output_shapes=[[None]]),
        shapes=([None],), name=f"parallel_batch_{drop}")
pipeline("BatchDatasetV2", lambda p: raw.BatchDatasetV2(input_dataset=numbers(), batch_size=c64(0), drop_remainder=False, output_types=[tf.int64], output_shapes=[[None]]),
         shapes=([None],), name="batch_of_none")
pipeline("BatchDataset", lambda p: raw.BatchDatasetV2(input_dataset=numbers(), batch_size=c64(3), drop_remainder=False, output_types=[tf.int64], output_shapes=[[None]]),
         shapes=([None],), rewrite=in_place_of("BatchDataset", "BatchDatasetV2", 2, ["parallel_copy"]))
pipeline("ExperimentalRandomDataset", lambda p: raw.RandomDataset(seed=c64(3), seed2=c64(5), **SCALAR), most=6,
         rewrite=in_place_of("ExperimentalRandomDataset", "RandomDataset", drop=["metadata"]))
pipeline("UnbatchDataset", lambda p: raw.UnbatchDataset(input_dataset=raw.TensorSliceDataset(components=[c64([[1, 2], [3, 4]])], output_shapes=[[2]]), **SCALAR))
pipeline("ExperimentalUnbatchDataset", lambda p: raw.ExperimentalUnbatchDataset(input_dataset=raw.TensorSliceDataset(components=[c64([[1, 2], [3, 4]])],
                                                                                                                       output_shapes=[[2]]), **SCALAR))
pipeline("RebatchDatasetV2", lambda p: raw.RebatchDatasetV2(
    input_dataset=raw.BatchDatasetV2(input_dataset=numbers(), batch_size=c64(3), drop_remainder=False, output_types=[tf.int64], output_shapes=[[None]]),
    batch_sizes=c64([2]), drop_remainder=False, output_types=[tf.int64], output_shapes=[[None]]), shapes=([None],))
for sizes, drop in (([2, 3], False), ([3, 1, 2], True), ([4, 3], True)):
    pipeline("RebatchDatasetV2", lambda p, sizes=sizes, drop=drop: raw.RebatchDatasetV2(
        input_dataset=raw.BatchDatasetV2(input_dataset=numbers(), batch_size=c64(3), drop_remainder=False, output_types=[tf.int64], output_shapes=[[None]]),
        batch_sizes=c64(sizes), drop_remainder=drop, output_types=[tf.int64], output_shapes=[[None]]), shapes=([None],), name=f"rebatch_{len(sizes)}_{drop}")
pipeline("PrefetchDataset", lambda p: raw.PrefetchDataset(input_dataset=numbers(4), buffer_size=c64(2), **SCALAR))
pipeline("ShuffleDataset", lambda p: raw.ShuffleDataset(input_dataset=numbers(9), buffer_size=c64(4), seed=c64(3), seed2=c64(5), reshuffle_each_iteration=False, **SCALAR))
pipeline("ShuffleDatasetV2 DummySeedGenerator", lambda p: raw.ShuffleDatasetV2(input_dataset=numbers(4), buffer_size=c64(1), seed_generator=raw.DummySeedGenerator(), **SCALAR))
pipeline("ShuffleDatasetV3 AnonymousSeedGenerator", lambda p: raw.ShuffleDatasetV3(
    input_dataset=numbers(9), buffer_size=c64(4), seed=c64(3), seed2=c64(5), seed_generator=raw.AnonymousSeedGenerator(seed=c64(3), seed2=c64(5), reshuffle=False).handle,
    reshuffle_each_iteration=False, **SCALAR))
pipeline("ShuffleAndRepeatDataset", lambda p: raw.ShuffleAndRepeatDataset(input_dataset=numbers(5), buffer_size=c64(3), seed=c64(3), seed2=c64(5), count=c64(2), **SCALAR))
pipeline("ShuffleAndRepeatDatasetV2", lambda p: raw.ShuffleAndRepeatDatasetV2(
    input_dataset=numbers(5), buffer_size=c64(3), seed=c64(3), seed2=c64(5), count=c64(2), seed_generator=raw.AnonymousSeedGenerator(
        seed=c64(3), seed2=c64(5), reshuffle=False).handle, reshuffle_each_iteration=False, **SCALAR))
pipeline("RandomDataset", lambda p: raw.RandomDataset(seed=c64(3), seed2=c64(5), **SCALAR), most=6)
pipeline("RandomDatasetV2", lambda p: raw.RandomDatasetV2(seed=c64(3), seed2=c64(5), seed_generator=raw.DummySeedGenerator(), rerandomize_each_iteration=False, **SCALAR), most=6)
pipeline("CacheDataset", lambda p: raw.RepeatDataset(input_dataset=raw.CacheDataset(input_dataset=numbers(3), filename="", **SCALAR), count=c64(2), **SCALAR))
pipeline("CacheDatasetV2 DummyMemoryCache", lambda p: raw.CacheDatasetV2(input_dataset=numbers(3), filename="", cache=raw.DummyMemoryCache(), **SCALAR))
pipeline("CacheDatasetV2 AnonymousMemoryCache", lambda p: raw.CacheDatasetV2(input_dataset=numbers(3), filename="", cache=raw.AnonymousMemoryCache().handle,
                                                                                                **SCALAR), name="anonymous_cache")
pipeline("UniqueDataset", lambda p: raw.UniqueDataset(input_dataset=raw.TensorSliceDataset(components=[c64([1, 2, 1, 3, 2])], output_shapes=[[]]), **SCALAR))
pipeline("ExperimentalUniqueDataset", lambda p: raw.ExperimentalUniqueDataset(input_dataset=raw.TensorSliceDataset(components=[c64([1, 2, 1, 3, 2])], output_shapes=[[]]), **SCALAR))
pipeline("AssertCardinalityDataset", lambda p: raw.AssertCardinalityDataset(input_dataset=numbers(3), cardinality=c64(3), **SCALAR))
pipeline("AssertCardinalityDataset", lambda p: raw.AssertCardinalityDataset(input_dataset=numbers(3), cardinality=c64(4), **SCALAR), name="wrong_cardinality")
pipeline("DirectedInterleaveDataset", lambda p: raw.DirectedInterleaveDataset(
    selector_input_dataset=raw.TensorSliceDataset(components=[c64([0, 1, 1, 0])], output_shapes=[[]]), data_input_datasets=[numbers(2), numbers(9, 7)], **SCALAR))
pipeline("ExperimentalDirectedInterleaveDataset", lambda p: raw.ExperimentalDirectedInterleaveDataset(
    selector_input_dataset=raw.TensorSliceDataset(components=[c64([0, 1, 1, 0])], output_shapes=[[]]), data_input_datasets=[numbers(2), numbers(9, 7)], **SCALAR))
for name, more in (("ModelDataset", {}), ("NonSerializableDataset", {}), ("ExperimentalNonSerializableDataset", {}), ("OptionsDataset", {"serialized_options": b""}),
                   ("FinalizeDataset", {}), ("OptimizeDataset", {"optimizations": tf.constant}), ("MaxIntraOpParallelismDataset", {"max_intra_op_parallelism": 1}),
                   ("ExperimentalMaxIntraOpParallelismDataset", {"max_intra_op_parallelism": 1}), ("PrivateThreadPoolDataset", {"num_threads": 1}),
                   ("ExperimentalPrivateThreadPoolDataset", {"num_threads": 1}), ("LatencyStatsDataset", {"tag": "t"}), ("ExperimentalLatencyStatsDataset", {"tag": "t"}),
                   ("BytesProducedStatsDataset", {"tag": "t"}), ("ExperimentalBytesProducedStatsDataset", {"tag": "t"}), ("RewriteDataset", {"rewrite_name": "none"}),
                   ("AssertNextDataset", {"transformations": []}), ("ExperimentalAssertNextDataset", {"transformations": []}), ("AssertPrevDataset", {"transformations": []}),
                   ("IgnoreErrorsDataset", {}), ("ExperimentalIgnoreErrorsDataset", {})):
    def around(p, name=name, more=more):
        made = {}
        for k, v in more.items():
            made[k] = c64(v) if isinstance(v, int) else tf.constant([], tf.string) if k in ("optimizations", "transformations") else v
        return getattr(raw, name)(input_dataset=numbers(4), **made, **SCALAR)
    pipeline(name, around)
pipeline("OptimizeDatasetV2", lambda p: raw.OptimizeDatasetV2(input_dataset=numbers(4), optimizations_enabled=tf.constant([], tf.string),
                                                              optimizations_disabled=tf.constant([], tf.string), optimizations_default=tf.constant([], tf.string), **SCALAR))


@program("TensorDataset TensorSliceDataset IteratorV2 MakeIterator IteratorGetNext", types=PLAIN)
def tensor_datasets(p):
    x = p.placeholder("x")
    whole = Drain(raw.TensorDataset(components=[x, tf.constant(3)], output_shapes=[[2, 2], []]), (p.dtype, tf.int32), ((2, 2), ()))
    slices = Drain(raw.TensorSliceDataset(components=[x], output_shapes=[[2]]), (p.dtype,), ((2,),))
    p.run(whole.next)
    whole.run(p, {x: p.values((2, 2))})
    slices.run(p, {x: p.values((3, 2))})
    slices.run(p, {x: p.values((0, 2))})


@program("PaddedBatchDatasetV2", types=PLAIN)
def padded_batches(p):
    x, pad = p.placeholder("x"), p.placeholder("pad")
    source = raw.TensorSliceDataset(components=[x], output_shapes=[[2]])
    drains = [Drain(raw.PaddedBatchDatasetV2(input_dataset=source, batch_size=c64(2), padded_shapes=[c64([size])], padding_values=[pad], drop_remainder=drop,
                                             output_shapes=[[None, None]]), (p.dtype,), ([None, None],)) for size, drop in ((3, False), (-1, True), (1, False))]
    for d in drains:
        d.run(p, {x: p.values((3, 2)), pad: p.values(())})


@program("PaddedBatchDataset", types=["float32", "string"])
def padded_batches_old(p):
    p.rewrite = in_place_of("PaddedBatchDataset", "PaddedBatchDatasetV2", 4, ["parallel_copy"])
    x, pad = p.placeholder("x"), p.placeholder("pad")
    source = raw.TensorSliceDataset(components=[x], output_shapes=[[2]])
    d = Drain(raw.PaddedBatchDatasetV2(input_dataset=source, batch_size=c64(2), padded_shapes=[c64([3])], padding_values=[pad], drop_remainder=False,
                                       output_shapes=[[None, None]]), (p.dtype,), ([None, None],))
    d.run(p, {x: p.values((3, 2)), pad: p.values(())})


def old_records(op, successor, make, data, **more):
    def run(p):
        p.rewrite = in_place_of(op, successor, **more)
        write = make_files(p)
        name, _ = p.placeholder("files", tf.string), tf.constant([], tf.int64, name="offsets")
        d = Drain(make(name), (tf.string,))
        path = write(b"@TMP@/f.bin", data)
        d.run(p, {name: np.array([path], object)})
    run.__name__ = op
    program(op)(run)


old_records("TFRecordDatasetV2", "TFRecordDataset", lambda name: raw.TFRecordDataset(filenames=name, compression_type="", buffer_size=c64(0)),
            records(b"first", b"", b"third"), add=["offsets"])
old_records("FixedLengthRecordDataset", "FixedLengthRecordDatasetV2", lambda name: raw.FixedLengthRecordDatasetV2(
    filenames=name, header_bytes=c64(1), record_bytes=c64(3), footer_bytes=c64(1), buffer_size=c64(0), compression_type=""), b"Habcdef\n", inputs=5)


@program("SparseTensorSliceDataset", types=PLAIN)
def sparse_slices(p):
    x = p.placeholder("x")
    d = Drain(raw.SparseTensorSliceDataset(indices=c64([[0, 1], [2, 0], [2, 2]]), values=x, dense_shape=c64([3, 3])), (tf.int64, p.dtype, tf.int64), ([None, 1], [None], [1]))
    d.run(p, {x: p.values((3,))})


def both(names, make, **more):
    """The same for an op and its name from experimental times."""
    for name in names.split():
        pipeline(name, lambda p, name=name: make(p, name), **more)


both("MapDataset", lambda p, op: with_functions(p, op, [numbers(4)], {"f": defined(p, [tf.int64], lambda x: x * x)}, NONE))
both("ExperimentalMapDataset", lambda p, op: with_functions(p, "MapDataset", [numbers(4)], {"f": defined(p, [tf.int64], lambda x: x * x)}, NONE),
     rewrite=in_place_of("ExperimentalMapDataset", "MapDataset", drop=["metadata"]))
both("ParallelFilterDataset", lambda p, op: [with_functions(p, "FilterDataset", [numbers(7)], {"predicate": defined(p, [tf.int64], lambda x: tf.equal(x % 2, 0))}, NONE),
                                             tf.constant(2, tf.int64, name="calls")][0],
     rewrite=in_place_of("ParallelFilterDataset", "FilterDataset", add=["calls"]))
both("ParallelMapDataset", lambda p, op: with_functions(p, op, [numbers(4), tf.constant(2)], {"f": defined(p, [tf.int64], lambda x: x + x)}, NONE))
both("ParallelMapDatasetV2", lambda p, op: with_functions(p, op, [numbers(4), c64(2)], {"f": defined(p, [tf.int64], lambda x: x + x)}, NONE))
both("MapAndBatchDataset ExperimentalMapAndBatchDataset", lambda p, op: with_functions(
    p, op, [numbers(5), c64(2), c64(2), tf.constant(False)], {"f": defined(p, [tf.int64], lambda x: x + x)}, NONE, output_shapes=([None],)), shapes=([None],))
both("FilterDataset", lambda p, op: with_functions(p, op, [numbers(7)], {"predicate": defined(p, [tf.int64], lambda x: tf.equal(x % 2, 0))}, NONE))
both("TakeWhileDataset ExperimentalTakeWhileDataset", lambda p, op: with_functions(p, op, [numbers(7)], {"predicate": defined(p, [tf.int64], lambda x: x < 3)}, NONE))
both("FlatMapDataset", lambda p, op: with_functions(p, op, [numbers(4)], {"f": defined(p, [tf.int64], lambda x: raw.RangeDataset(start=c64(0), stop=x, step=c64(1), **SCALAR))}, NONE))
inner = lambda x: raw.RangeDataset(start=x, stop=x + 3, step=c64(1), **SCALAR)
both("InterleaveDataset", lambda p, op: with_functions(p, op, [numbers(4), c64(2), c64(2)], {"f": defined(p, [tf.int64], inner)}, NONE))
both("ParallelInterleaveDatasetV2", lambda p, op: with_functions(p, op, [numbers(4), c64(2), c64(2), c64(2)], {"f": defined(p, [tf.int64], inner)}, {**NONE, "sloppy": False}))
both("ParallelInterleaveDatasetV3", lambda p, op: with_functions(p, op, [numbers(4), c64(2), c64(2), c64(2)], {"f": defined(p, [tf.int64], inner)},
                                                                 {**NONE, "deterministic": "true"}))
both("ParallelInterleaveDatasetV4", lambda p, op: with_functions(p, op, [numbers(4), c64(2), c64(2), c64(1), c64(1), c64(2)], {"f": defined(p, [tf.int64], inner)},
                                                                 {**NONE, "deterministic": "true"}))
both("ParallelInterleaveDataset ExperimentalParallelInterleaveDataset", lambda p, op: with_functions(
    p, op, [numbers(4), c64(2), c64(2), tf.constant(False), c64(1), c64(1)], {"f": defined(p, [tf.int64], inner)}, NONE))
both("LegacyParallelInterleaveDatasetV2", lambda p, op: with_functions(p, op, [numbers(4), c64(2), c64(2), c64(1), c64(1)], {"f": defined(p, [tf.int64], inner)},
                                                                       {**NONE, "deterministic": "true"}))
both("ScanDataset ExperimentalScanDataset", lambda p, op: with_functions(
    p, op, [numbers(5), c64(10)], {"f": defined(p, [tf.int64, tf.int64], lambda s, x: (s + x, s - x))}, {**NONE, "Tstate": types_list([tf.int64])}))
both("GroupByWindowDataset ExperimentalGroupByWindowDataset", lambda p, op: with_functions(
    p, op, [numbers(7)], {"key_func": defined(p, [tf.int64], lambda x: x % 2),
                          "reduce_func": defined(p, [tf.int64, tf.variant], lambda k, w: raw.BatchDatasetV2(
                              input_dataset=w, batch_size=c64(9), drop_remainder=False, output_types=[tf.int64], output_shapes=[[None]])),
                          "window_size_func": defined(p, [tf.int64], lambda k: k + 2)},
    {"Tkey_func_other_arguments": types_list([]), "Treduce_func_other_arguments": types_list([]), "Twindow_size_func_other_arguments": types_list([])},
    output_shapes=([None],)), shapes=([None],))
both("GroupByReducerDataset ExperimentalGroupByReducerDataset", lambda p, op: with_functions(
    p, op, [numbers(7)], {"key_func": defined(p, [tf.int64], lambda x: x % 2), "init_func": defined(p, [tf.int64], lambda k: k * 100),
                          "reduce_func": defined(p, [tf.int64, tf.int64], lambda s, x: s + x), "finalize_func": defined(p, [tf.int64], lambda s: s + 1)},
    {k: types_list([]) for k in ("Tkey_func_other_arguments", "Tinit_func_other_arguments", "Treduce_func_other_arguments", "Tfinalize_func_other_arguments")}))


@program("WindowDataset WindowOp")
def windows(p):
    windowed = raw.WindowDataset(input_dataset=numbers(6), size=c64(3), shift=c64(2), stride=c64(1), drop_remainder=False, output_types=[tf.variant],
                                 output_shapes=[[]])
    flat = with_functions(p, "FlatMapDataset", [windowed], {"f": defined(p, [tf.variant], lambda w: raw.BatchDatasetV2(
        input_dataset=w, batch_size=c64(9), drop_remainder=False, output_types=[tf.int64], output_shapes=[[None]]))}, NONE, output_shapes=([None],))
    d = Drain(flat, (tf.int64,), ([None],))
    made = raw.WindowOp(inputs=[c64(5), c64(6)], output_types=[tf.int64], output_shapes=[[]])
    e = Drain(made)
    d.run(p)
    e.run(p)


@program("DatasetCardinality ExperimentalDatasetCardinality ReduceDataset DatasetToSingleElement GetElementAtIndex")
def dataset_answers(p):
    n = p.placeholder("n", tf.int64)
    made = raw.RangeDataset(start=c64(0), stop=n, step=c64(1), **SCALAR)
    endless = raw.RepeatDataset(input_dataset=made, count=c64(-1), **SCALAR)
    filtered = with_functions(p, "FilterDataset", [made], {"predicate": defined(p, [tf.int64], lambda x: x > 2)}, NONE)
    sizes = [f(input_dataset=d) for f in (raw.DatasetCardinality, raw.ExperimentalDatasetCardinality) for d in (made, endless, filtered)]
    total = p.graph.create_op("ReduceDataset", [made, c64(100)], [tf.int64], attrs={
        "f": defined(p, [tf.int64, tf.int64], lambda s, x: s + x), "Tstate": types_list([tf.int64]), "Targuments": types_list([]), "output_types": types_list([tf.int64]),
        "output_shapes": attr_value_pb2.AttrValue(list=attr_value_pb2.AttrValue.ListValue(shape=[tf.TensorShape([]).as_proto()]))}, name="reduce").outputs[0]
    single = raw.DatasetToSingleElement(dataset=made, **SCALAR)[0]
    place = p.placeholder("place", tf.int64)
    at = [raw.GetElementAtIndex(dataset=d, index=place, **SCALAR)[0] for d in (made, raw.TakeDataset(input_dataset=made, count=c64(2), **SCALAR), endless, filtered)]
    for element in at:
        for index in (1, 3, 4, -1):
            p.run([element], {n: I64(4), place: I64(index)})
    for count in (4, 1, 0):
        p.run(sizes, {n: I64(count)})
        p.run([total], {n: I64(count)})
        p.run([single], {n: I64(count)})


@program("OptionalFromValue OptionalNone OptionalHasValue OptionalGetValue IteratorGetNextAsOptional", types=PLAIN)
def optionals(p):
    x = p.placeholder("x")
    kind = {"output_types": [p.dtype], "output_shapes": [tf.TensorShape(None)]}
    full, none = raw.OptionalFromValue(components=[x]), raw.OptionalNone()
    has = [raw.OptionalHasValue(optional=o) for o in (full, none)]
    got, missing = raw.OptionalGetValue(optional=full, **kind)[0], raw.OptionalGetValue(optional=none, **kind)[0]
    d = Drain(raw.TensorSliceDataset(components=[x], output_shapes=[[2]]), (p.dtype,), ((2,),))
    asked = raw.IteratorGetNextAsOptional(iterator=d.iterator, output_types=[p.dtype], output_shapes=[[2]])
    more, value = raw.OptionalHasValue(optional=asked), raw.OptionalGetValue(optional=asked, **kind)[0]
    values = {x: p.values((2, 2))}
    p.run([*has, got], values)
    p.run([missing])
    p.run(feeds=values, targets=[d.start])
    p.run([more, value])
    p.run([value])
    p.run([more])


@program("Iterator OneShotIterator IteratorToStringHandle IteratorFromStringHandle IteratorFromStringHandleV2 AnonymousIterator AnonymousIteratorV2 AnonymousIteratorV3 "
         "DeleteIterator IteratorGetDevice ExperimentalIteratorGetDevice")
def iterators(p):
    old = raw.Iterator(shared_name="old", container="", **SCALAR)
    start = raw.MakeIterator(dataset=numbers(5), iterator=old)
    step = raw.IteratorGetNext(iterator=old, **SCALAR)[0]
    name = raw.IteratorToStringHandle(resource_handle=old)
    found = [raw.IteratorGetNext(iterator=f(string_handle=name, **SCALAR), **SCALAR)[0] for f in (raw.IteratorFromStringHandle, raw.IteratorFromStringHandleV2)]
    junk = raw.IteratorGetNext(iterator=raw.IteratorFromStringHandleV2(string_handle="junk", **SCALAR), **SCALAR)[0]
    once = p.graph.create_op("OneShotIterator", [], [tf.resource], attrs={
        "dataset_factory": defined(p, [], lambda: numbers(3)), "output_types": types_list([tf.int64]), "output_shapes": attr_value_pb2.AttrValue(
            list=attr_value_pb2.AttrValue.ListValue(shape=[tf.TensorShape([]).as_proto()]))}, name="once").outputs[0]
    once_next = raw.IteratorGetNext(iterator=once, **SCALAR)[0]
    where = [f(resource=old) for f in (raw.IteratorGetDevice, raw.ExperimentalIteratorGetDevice)]
    unnamed = []
    for make in (raw.AnonymousIterator, raw.AnonymousIteratorV2, raw.AnonymousIteratorV3):
        made = make(**SCALAR)
        handle = made.handle if hasattr(made, "handle") else made
        with tf.control_dependencies([raw.MakeIterator(dataset=numbers(5), iterator=handle)]):
            unnamed.append(raw.IteratorGetNext(iterator=handle, **SCALAR)[0])
            if hasattr(made, "deleter"):
                with tf.control_dependencies([unnamed[-1]]):
                    unnamed.append(tf.group(raw.DeleteIterator(handle=made.handle, deleter=made.deleter)))
    p.run([step])
    p.run(targets=[start])
    p.run(targets=[w.op for w in where])  # the name of the device is the session's
    p.run([step])
    p.run([found[0]])
    p.run([found[1]])
    p.run([junk])
    for _ in range(4):
        p.run([once_next])
    p.run([o for o in unnamed if not isinstance(o, tf.Operation)], targets=[o for o in unnamed if isinstance(o, tf.Operation)])
    p.run([step])


@program("TextLineDataset TFRecordDataset FixedLengthRecordDatasetV2 DatasetToTFRecord ExperimentalDatasetToTFRecord ListDataset "
         "WrapDatasetVariant UnwrapDatasetVariant")
def file_datasets(p):
    write = make_files(p)
    name = p.placeholder("files", tf.string)
    out = p.placeholder("out", tf.string)
    lines = raw.TextLineDataset(filenames=name, compression_type="", buffer_size=c64(0))
    made = [lines, raw.TFRecordDataset(filenames=name, compression_type="", buffer_size=c64(0)),
            raw.FixedLengthRecordDatasetV2(filenames=name, header_bytes=c64(1), record_bytes=c64(3), footer_bytes=c64(1), buffer_size=c64(0), compression_type=""),
            raw.UnwrapDatasetVariant(input_handle=raw.WrapDatasetVariant(input_handle=lines))]
    drains = [Drain(d, (tf.string,)) for d in made]
    listed = Drain(raw.ListDataset(tensors=[c64(5), c64(6)], **SCALAR))
    save = [raw.DatasetToTFRecord(input_dataset=lines, filename=out, compression_type=""), raw.ExperimentalDatasetToTFRecord(input_dataset=lines, filename=out, compression_type="")]
    t = write(b"@TMP@/t.txt", b"one\r\ntwo\n\nlast")
    r = write(b"@TMP@/r.rec", records(b"first", b"", b"third"))
    f = write(b"@TMP@/f.bin", b"Habcdef\n")
    for d, file in zip(drains, (t, r, f, t)):
        d.run(p, {name: np.array([file], object)})
    drains[0].run(p, {name: np.array([b"@TMP@/none"], object)})
    drains[1].run(p, {name: np.array([t], object)})
    listed.run(p)
    for s in save:
        p.run(feeds={name: np.array([t], object), out: text(b"@TMP@/o.rec")}, targets=[s])
        drains[1].run(p, {name: np.array([b"@TMP@/o.rec"], object)})


@program("InitializeTableFromDataset")
def table_from_dataset(p):
    table = raw.HashTableV2(key_dtype=tf.int64, value_dtype=tf.int64)
    zipped = raw.ZipDataset(input_datasets=[numbers(3), numbers(13, 10)], output_types=[tf.int64] * 2, output_shapes=[[], []])
    fill = raw.InitializeTableFromDataset(table_handle=table, dataset=zipped)
    find = raw.LookupTableFindV2(table_handle=table, keys=c64([0, 2, 9]), default_value=c64(-1))
    p.run(targets=[fill])
    p.run([find])


# ---- Files of values, examples, and rows of different lengths ----

CSV = b'a,b,c\n1,2.5,x\n2,,"quoted, with ""q"""\r\n3,1e3,"two\nlines"\n,nan,NA\n\n4,5\n5,6,7,8\nx,1,y\n6,7,z'
CSV_TYPES = (tf.int64, tf.float32, tf.string)


def csv_dataset(name, op="CSVDatasetV2", defaults=None, **more):
    options = {"output_shapes": [tf.TensorShape([])] * 3, "filenames": name, "compression_type": "", "buffer_size": c64(16), "header": False, "field_delim": ",", "use_quote_delim": True, "na_value": "NA",
               "select_cols": tf.constant([], tf.int64), "record_defaults": defaults or [c64([-1]), tf.constant([0.5], tf.float32), tf.constant([], tf.string)]}
    if op == "CSVDatasetV2":
        options["exclude_cols"] = tf.constant([], tf.int64)
    return getattr(raw, op)(**{**options, **more})


@program("CSVDataset CSVDatasetV2 ExperimentalCSVDataset")
def csv_datasets(p):
    write = make_files(p)
    name = p.placeholder("files", tf.string)
    no_default = [tf.constant([], tf.int64), tf.constant([0.5], tf.float32), tf.constant(["d"])]
    made = [csv_dataset(name, op) for op in ("CSVDataset", "CSVDatasetV2", "ExperimentalCSVDataset")]
    made += [csv_dataset(name, header=True), csv_dataset(name, header=True, defaults=no_default), csv_dataset(name, use_quote_delim=False), csv_dataset(name, field_delim=";")]
    made += [csv_dataset(name, select_cols=c64([0, 1, 3])), csv_dataset(name, exclude_cols=c64([3])), csv_dataset(name, exclude_cols=c64([0])), csv_dataset(name, na_value="")]
    drains = [Drain(d, CSV_TYPES, ((), (), ())) for d in made]
    main = write(b"@TMP@/a.csv", CSV)
    plain = write(b"@TMP@/b.csv", b"1,2,x\n3,4,y\n")
    others = [write(b"@TMP@/c.csv", b""), write(b"@TMP@/d.csv", b"\n"), write(b"@TMP@/e.csv", b"1;2;x\n3;4;y;z\r5;6;w"), write(b"@TMP@/f.csv", b'1,2,x"y\n3,4,"z"w\n5,6,v'),
              write(b"@TMP@/g.csv", b"1,2,3,4\n5,6,7,8\n")]
    for d in drains:
        for files in ([main], [plain, plain], others[:2], others[2:3], others[3:4], others[4:], [b"@TMP@/none", plain], []):
            d.run(p, {name: np.array(files, object)}, most=14)


@program("CSVDatasetV2")
def csv_refused(p):
    drains = [Drain(csv_dataset(tf.constant(["@TMP@/none"]), **more), CSV_TYPES, ((), (), ())) for more in (
        {"buffer_size": c64(0)}, {"field_delim": ""}, {"field_delim": "ab"}, {"compression_type": "NONE"}, {"select_cols": c64([1, 0, 2])}, {"select_cols": c64([0, 1])},
        {"select_cols": c64([-1, 0, 1])}, {"exclude_cols": c64([1, 1])}, {"exclude_cols": c64([-1])}, {"select_cols": c64([0, 1, 2]), "exclude_cols": c64([3])})]
    for d in drains:
        p.run(targets=[d.start])


def drained(p, drains, feeds, most=4):
    """Each to its end; of a drain (start, fetches)."""
    for start, fetches in drains:
        p.run(feeds=feeds, targets=[start])
        for _ in range(most):
            if p.run(fetches) is None:
                break


@program("ParseExampleDataset ParseExampleDatasetV2 ExperimentalParseExampleDataset")
def parse_datasets(p):
    data = p.placeholder("data", tf.string)
    rows = raw.TensorSliceDataset(components=[data], output_shapes=[()])
    rows = raw.BatchDatasetV2(input_dataset=rows, batch_size=c64(2), drop_remainder=False, output_types=[tf.string], output_shapes=[(None,)])
    drains = []
    for op in ("ParseExampleDatasetV2", "ParseExampleDataset", "ExperimentalParseExampleDataset"):
        ragged = not op.startswith("Exp")
        types, shapes = [tf.float32, tf.int64] + [tf.variant] * (1 + ragged), [(None, 2), (None, 1)] + [()] * ragged + [(3,)]
        more = {"ragged_keys": ["iv"], "ragged_value_types": [tf.int64], "ragged_split_types": [tf.int32]} if ragged else {}
        made = getattr(raw, op)(input_dataset=rows, num_parallel_calls=c64(2), dense_defaults=[tf.constant([], tf.float32), c64([7])], sparse_keys=["s"], dense_keys=["i", "f"][::-1],
                                sparse_types=[tf.string], dense_shapes=[(2,), (1,)], output_types=types, output_shapes=shapes, **more)
        d = Drain(made, types, shapes)
        found = list(d.next)
        fetches = found[:2] + list(raw.DeserializeSparse(serialized_sparse=found[-1], dtype=tf.string))
        if ragged:
            splits, values = raw.RaggedTensorFromVariant(encoded_ragged=found[2], input_ragged_rank=1, output_ragged_rank=1, Tvalues=tf.int64, Tsplits=tf.int32)
            fetches += splits + [values]
        drains.append((d.start, fetches))
    for examples in (EXAMPLES, EXAMPLES[:1], [], [b"junk"], [serialized(i=[1])], [serialized(f=[1, 2], i=[1], s=[b"a"], iv=[4, 5])] * 5):
        drained(p, drains, {data: np.array(examples, object)})


@program("DenseToSparseBatchDataset ExperimentalDenseToSparseBatchDataset", types=("int64", "float32", "string"))
def sparse_batches(p):
    size, row = p.placeholder("size", tf.int64), p.placeholder("row", tf.int64)
    drains = []
    for op in ("DenseToSparseBatchDataset", "ExperimentalDenseToSparseBatchDataset"):
        for parts in ([(2,), (0,), (3,), (1,)], [(2, 1), (1, 3), (0, 2)], [(2,), (1, 2)], [(), ()]):
            items = [raw.TensorDataset(components=[tf.constant(p.values(s, 0, 9), p.dtype)], output_shapes=[tf.TensorShape(s)]) for s in parts]
            rows = items[0]
            for more in items[1:]:
                rows = raw.ConcatenateDataset(input_dataset=rows, another_dataset=more, output_types=[p.dtype], output_shapes=[tf.TensorShape(None)])
            made = getattr(raw, op)(input_dataset=rows, batch_size=size, row_shape=row, output_types=[p.dtype], output_shapes=[tf.TensorShape(None)])
            d = Drain(made, (tf.variant,), (None,))
            drains.append((d.start, list(raw.DeserializeSparse(serialized_sparse=d.next[0], dtype=p.dtype))))
    for n, shape in ((2, [4]), (3, [-1]), (2, [2]), (2, [2, 4]), (9, [-1, -1]), (2, []), (0, [4]), (2, [-2])):
        drained(p, drains, {size: I64(n), row: np.array(shape, I64)})


# ---- Fewer elements, slower ones, windows, files by pattern ----

for rate in (0.0, 0.5, 1.0):
    pipeline("SamplingDataset", lambda p, rate=rate: raw.SamplingDataset(input_dataset=numbers(30), rate=rate, seed=c64(7), seed2=c64(3), **SCALAR), name=f"sampling_{rate}")
both("SleepDataset ExperimentalSleepDataset", lambda p, op: getattr(raw, op)(input_dataset=numbers(3), sleep_microseconds=c64(10), **SCALAR))
pipeline("SleepDataset", lambda p: raw.SleepDataset(input_dataset=numbers(3), sleep_microseconds=c64(-1), **SCALAR), name="sleep_backwards")
for size, shift, stride in ((3, 2, 1), (2, 1, 3), (2, 5, 1), (3, 3, 1), (20, 1, 1), (0, 1, 1), (1, 0, 1), (1, 1, 0)):
    both("SlidingWindowDataset ExperimentalSlidingWindowDataset", lambda p, op, size=size, shift=shift, stride=stride: getattr(raw, op)(
        input_dataset=numbers(8), window_size=c64(size), window_shift=c64(shift), window_stride=c64(stride), output_types=[tf.int64], output_shapes=[[None]]),
        shapes=([None],), name=f"sliding_{size}_{shift}_{stride}")
    pipeline("SlidingWindowDataset", lambda p, size=size, shift=shift, stride=stride: raw.SlidingWindowDataset(
        input_dataset=numbers(8), window_size=c64(size), window_shift=c64(shift), window_stride=c64(stride), drop_remainder=False, output_types=[tf.int64],
        output_shapes=[[None]]), shapes=([None],), name=f"sliding_all_{size}_{shift}_{stride}")
both("ThreadPoolDataset ExperimentalThreadPoolDataset", lambda p, op: getattr(raw, op)(
    input_dataset=numbers(3), thread_pool=getattr(raw, op.replace("Dataset", "Handle"))(num_threads=2, display_name="pool"), **SCALAR))
both("ThreadPoolHandle ExperimentalThreadPoolHandle", lambda p, op: getattr(raw, op.replace("Handle", "Dataset"))(
    input_dataset=numbers(3), thread_pool=getattr(raw, op)(num_threads=0, display_name="none"), **SCALAR))


@program("MatchingFilesDataset ExperimentalMatchingFilesDataset")
def matching_files(p):
    write, patterns = make_files(p), p.placeholder("patterns", tf.string)
    drains = [Drain(f(patterns=patterns), (tf.string,)) for f in (raw.MatchingFilesDataset, raw.ExperimentalMatchingFilesDataset)]
    for name in (b"b.txt", b"a.txt", b"a.bin", b".hidden.txt", b"ab.txt", b"c*"):
        write(b"@TMP@/" + name, b"")
    for asked in (b"@TMP@/*.txt", b"@TMP@/?.txt", b"@TMP@/[bc].*", b"@TMP@/a.bin", b"@TMP@/none*", b"@TMP@/nowhere/*", b"@TMP@/**", b"@TMP@*/a.???"):
        drains[0].run(p, {patterns: np.array([asked], object)})
    drains[1].run(p, {patterns: np.array([b"@TMP@/b*", b"@TMP@/*.bin", b"@TMP@/a.bin"], object)})
    drains[1].run(p, {patterns: np.array(b"@TMP@/b*", object)})


# ---- One sequence for several devices, rows through a function, compressed elements, several ways to the same elements ----

@program("MultiDeviceIterator MultiDeviceIteratorInit MultiDeviceIteratorGetNextFromShard MultiDeviceIteratorToStringHandle MultiDeviceIteratorFromStringHandle")
def multi_device_iterators(p):
    made = []
    for name, count, size in (("two", 2, 1), ("three", 3, 4)):
        iterator = raw.MultiDeviceIterator(devices=["/cpu:0"] * count, shared_name=name, container="", **SCALAR)
        incarnation = p.placeholder("incarnation_" + name, tf.int64)
        start = raw.MultiDeviceIteratorInit(dataset=numbers(5), multi_device_iterator=iterator, max_buffer_size=c64(size))
        named = raw.MultiDeviceIteratorFromStringHandle(string_handle=raw.MultiDeviceIteratorToStringHandle(multi_device_iterator=iterator), **SCALAR)
        steps = [raw.MultiDeviceIteratorGetNextFromShard(multi_device_iterator=named if i else iterator, shard_num=i, incarnation_id=incarnation, **SCALAR)[0] for i in range(count)]
        made.append((start, steps, incarnation))
    junk = raw.MultiDeviceIteratorFromStringHandle(string_handle="junk", **SCALAR)
    for start, steps, incarnation in made:
        p.run([start])
        p.run([steps[1]], {incarnation: I64(1)})
        p.run([steps[0]], {incarnation: I64(7)})
        for _ in range(4):
            for step in steps:
                p.run([step], {incarnation: I64(1)})
        p.run([start])
        p.run([steps[0]], {incarnation: I64(1)})
        p.run([steps[0]], {incarnation: I64(2)})
    p.run(targets=[junk.op])


@program("AnonymousMultiDeviceIterator AnonymousMultiDeviceIteratorV3 DeleteMultiDeviceIterator")
def anonymous_multi_device_iterators(p):
    found = []
    for make in (raw.AnonymousMultiDeviceIterator, raw.AnonymousMultiDeviceIteratorV3):
        made = make(devices=["/cpu:0", "/cpu:0"], **SCALAR)
        handle = made.handle if hasattr(made, "handle") else made
        start = raw.MultiDeviceIteratorInit(dataset=numbers(3, 1), multi_device_iterator=handle, max_buffer_size=c64(1))
        steps = [raw.MultiDeviceIteratorGetNextFromShard(multi_device_iterator=handle, shard_num=i, incarnation_id=start, **SCALAR)[0] for i in range(2)]
        found.append((steps, made))
    with tf.control_dependencies(found[0][0]):
        delete = raw.DeleteMultiDeviceIterator(multi_device_iterator=found[0][1].handle, iterators=[], deleter=found[0][1].deleter)
    p.run(found[0][0], targets=[delete])
    p.run(found[1][0])


@program("CompressElement UncompressElement", types=PLAIN)
def compressed_elements(p):
    x = p.placeholder("x")
    several = [x, c64([1, 2]), tf.constant(["a", "", "long" * 9])]
    kinds = {"output_types": [p.dtype, tf.int64, tf.string], "output_shapes": [tf.TensorShape(None)] * 3}
    back = raw.UncompressElement(compressed=raw.CompressElement(components=several), **kinds)
    twice = raw.UncompressElement(compressed=raw.CompressElement(components=[raw.CompressElement(components=[x])]), output_types=[tf.variant], output_shapes=[[]])
    inner = raw.UncompressElement(compressed=twice[0], output_types=[p.dtype], output_shapes=[tf.TensorShape(None)])
    few = raw.UncompressElement(compressed=raw.CompressElement(components=several), output_types=[p.dtype], output_shapes=[tf.TensorShape(None)])
    other = raw.UncompressElement(compressed=raw.CompressElement(components=[x]), output_types=[tf.qint8], output_shapes=[tf.TensorShape(None)])
    number = tf.bitcast(other[0], tf.int8)
    for shape in ((2, 3), (), (0, 4), (40, 5)):
        p.run(list(back), {x: p.values(shape)})
    p.run(list(inner), {x: p.values((2, 3))})
    p.run(list(few), {x: p.values((2, 3))})
    p.run([number], {x: p.values((2, 3))})


both("ChooseFastestDataset ExperimentalChooseFastestDataset", lambda p, op: getattr(raw, op)(input_datasets=[numbers(5), numbers(5)], num_experiments=2, **SCALAR))
pipeline("ChooseFastestDataset", lambda p: raw.ChooseFastestDataset(input_datasets=[numbers(5), numbers(6)], num_experiments=2, **SCALAR), name="fastest_of_two_lengths")
pipeline("ChooseFastestDataset", lambda p: raw.ChooseFastestDataset(input_datasets=[numbers(5), raw.TensorDataset(components=[1.0], output_shapes=[[]])], num_experiments=2, **SCALAR),
         name="fastest_of_two_types")


def branches(p, numerator, denominator):
    batch = lambda d: raw.BatchDatasetV2(input_dataset=d, batch_size=c64(2), drop_remainder=False, output_types=[tf.int64], output_shapes=[[None]])  # noqa: E731
    named = [defined(p, [tf.variant], batch).func for _ in range(2)]
    return with_functions(p, "ChooseFastestBranchDataset", [numbers(8), c64(numerator), c64(denominator)], {}, {
        **NONE, "num_elements_per_branch": 2, "branches": attr_value_pb2.AttrValue(list=attr_value_pb2.AttrValue.ListValue(func=named)),
        "other_arguments_lengths": attr_value_pb2.AttrValue(list=attr_value_pb2.AttrValue.ListValue(i=[0, 0]))}, output_shapes=([None],))


pipeline("ChooseFastestBranchDataset", lambda p: branches(p, 2, 1), shapes=([None],))
pipeline("ChooseFastestBranchDataset", lambda p: branches(p, 0, 1), shapes=([None],), name="branches_of_no_ratio")
pipeline("ChooseFastestBranchDataset", lambda p: branches(p, 2, -1), shapes=([None],), name="branches_of_a_negative_ratio")


@program("MapDefun", types=["float32", "int32", "string", "int64", "bool"])
def mapped_rows(p):
    x, more = p.placeholder("x"), p.placeholder("more", tf.int64)

    def made(body, outputs, shapes, arguments, captured=()):
        types = [t.dtype for t in arguments] + [t.dtype for t in captured]
        node = p.graph.create_op("MapDefun", [*arguments, *captured], list(outputs), attrs={
            "f": defined(p, types, body), "Targuments": types_list([t.dtype for t in arguments]), "Tcaptured": types_list([t.dtype for t in captured]),
            "output_types": types_list(outputs), "output_shapes": attr_value_pb2.AttrValue(list=attr_value_pb2.AttrValue.ListValue(
                shape=[tf.TensorShape(s).as_proto() for s in shapes]))}, name="mapped")
        return list(node.outputs)

    same = made(lambda a, b, c: (tf.identity(a), b + c), [p.dtype, tf.int64], [None, []], [x, more], [c64(10)])
    stated = made(lambda a: tf.stack([a, a]), [p.dtype], [(2, 3)], [x])
    uneven = made(lambda b: tf.fill([b], b), [tf.int64], [[None]], [more])
    for shape in ((2, 3), (1, 1), (5,)):
        p.run(same, {x: p.values(shape), more: np.arange(shape[0], dtype=I64)})
    p.run(stated, {x: p.values((4, 3))})
    p.run(stated, {x: p.values((0, 3))})
    p.run(stated, {x: p.values((4, 2))})
    p.run(same, {x: p.values(()), more: I64(1)})
    p.run(same, {x: p.values((2, 3)), more: np.arange(3, dtype=I64)})
    p.run(uneven, {more: np.array([2, 2], I64)})


def batches(count=10, size=4, drop=False):
    return raw.BatchDatasetV2(input_dataset=numbers(count), batch_size=c64(size), drop_remainder=drop, output_types=[tf.int64], output_shapes=[[None]])


ROWS = {"output_types": [tf.int64], "output_shapes": [tf.TensorShape([None])]}
for op in (raw.RebatchDataset, raw.ExperimentalRebatchDataset):
    for replicas in (1, 2, 3, 0):
        pipeline("ExperimentalRebatchDataset" if op is raw.ExperimentalRebatchDataset else "RebatchDataset", lambda p, op=op, replicas=replicas: op(
            input_dataset=batches(), num_replicas=c64(replicas), **ROWS), shapes=([None],), name=f"legacy_rebatch_{replicas}")
pipeline("RebatchDataset", lambda p: raw.RebatchDataset(input_dataset=numbers(), num_replicas=c64(2), **SCALAR), name="legacy_rebatch_of_scalars")
for policy in (0, 2, 3, -1):
    pipeline("AutoShardDataset", lambda p, policy=policy: raw.AutoShardDataset(input_dataset=numbers(10), num_workers=c64(3), index=c64(1), auto_shard_policy=policy, **SCALAR),
             name=f"auto_shard_{policy}")
for workers, index in ((1, 0), (3, 3), (0, 0), (3, -1)):
    pipeline("AutoShardDataset", lambda p, workers=workers, index=index: raw.AutoShardDataset(input_dataset=numbers(10), num_workers=c64(workers), index=c64(index), **SCALAR),
             name=f"auto_shard_{workers}_{index}")
for count, index in ((2, 0), (2, 1), (2, 2), (3, 1), (7, 0), (0, 0)):
    pipeline("ShardDataset", lambda p, count=count, index=index: raw.ShardDataset(input_dataset=numbers(count), num_shards=c64(3), index=c64(index), require_non_empty=True, **SCALAR),
             name=f"shard_non_empty_{count}_{index}")
pipeline("ExperimentalAutoShardDataset", lambda p: raw.ExperimentalAutoShardDataset(input_dataset=batches(), num_workers=c64(2), index=c64(0), **ROWS), shapes=([None],))


def global_shuffle(source, seeds=None, reshuffle=False, **kind):
    return raw.GlobalShuffleDataset(input_dataset=source, seed=c64(3), seed2=c64(5), seed_generator=seeds if seeds is not None else raw.DummySeedGenerator(),
                                    reshuffle_each_iteration=reshuffle, **(kind or SCALAR))


pipeline("GlobalShuffleDataset", lambda p: global_shuffle(numbers(23)))
pipeline("GlobalShuffleDataset", lambda p: global_shuffle(numbers(1)), name="global_shuffle_of_one")
pipeline("GlobalShuffleDataset", lambda p: global_shuffle(raw.RepeatDataset(input_dataset=numbers(7), count=c64(3), **SCALAR)), name="global_shuffle_of_repeat")
pipeline("GlobalShuffleDataset", lambda p: raw.RepeatDataset(input_dataset=global_shuffle(numbers(7), reshuffle=True), count=c64(3), **SCALAR), name="global_shuffle_again")
pipeline("GlobalShuffleDataset", lambda p: global_shuffle(numbers(9), raw.AnonymousSeedGenerator(seed=c64(3), seed2=c64(5), reshuffle=True).handle, True), name="global_shuffle_seeds")
pipeline("GlobalShuffleDataset", lambda p: global_shuffle(batches(12, 3, True), **ROWS), shapes=([None],), name="global_shuffle_batches")
pipeline("GlobalShuffleDataset", lambda p: global_shuffle(batches(12, 3), **ROWS), shapes=([None],), name="global_shuffle_remainder")
pipeline("GlobalShuffleDataset", lambda p: global_shuffle(raw.RepeatDataset(input_dataset=numbers(7), count=c64(-1), **SCALAR)), name="global_shuffle_forever")
pipeline("GlobalShuffleDataset", lambda p: global_shuffle(raw.UniqueDataset(input_dataset=numbers(7), **SCALAR)), name="global_shuffle_unique")


def index_flat_map(p, op, place, count=6):
    return with_functions(p, op, [numbers(3), c64(count)], {"map_func": defined(p, [tf.int64], lambda x: tf.stack([x, x + 10])), "index_map_func": defined(p, [tf.int64], place)},
                          {k: types_list([]) for k in ("Tmap_func_args", "Tindex_map_func_args")})


for name, place in {"pairs": lambda i: (i // 2, i % 2), "first": lambda i: (i, c64(0)), "narrow": lambda i: (tf.cast(i // 2, tf.int32), tf.cast(i % 2, tf.int32)),
                    "no_number": lambda i: (tf.cast(i, tf.float32), i)}.items():
    pipeline("IndexFlatMapDataset", lambda p, place=place: index_flat_map(p, "IndexFlatMapDataset", place), name=f"index_flat_map_{name}")


def weighted(weights, counts):
    return raw.WeightedFlatMapDataset(input_datasets=[numbers(10 * i + n, 10 * i) for i, n in enumerate(counts)], weights=[tf.constant(w, tf.float64) for w in weights], **SCALAR)


for weights, counts in (([0.3, 0.7], [10, 10]), ([0.5, 0.25, 0.25], [10, 10, 10]), ([0.2, 0.3, 0.5], [9, 9, 1]), ([1, 1], [3, 5])):
    pipeline("WeightedFlatMapDataset", lambda p, weights=weights, counts=counts: weighted(weights, counts), name=f"weighted_{weights[0]}_{counts[-1]}")
pipeline("WeightedFlatMapDataset", lambda p: weighted([0.5] * 3, [3, 3]), name="weighted_uneven")


@program("ComputeBatchSize")
def batch_sizes(p):
    plain = batches(9, 3)
    padded = raw.PaddedBatchDatasetV2(input_dataset=numbers(9), batch_size=c64(5), padded_shapes=[tf.constant([], tf.int64)], padding_values=[c64(0)], drop_remainder=False,
                                      output_shapes=[[None]])
    made = [numbers(), plain, padded, raw.TakeDataset(input_dataset=plain, count=c64(2), **ROWS), raw.PrefetchDataset(input_dataset=padded, buffer_size=c64(1), **ROWS),
            raw.ConcatenateDataset(input_dataset=plain, another_dataset=padded, **ROWS), raw.ConcatenateDataset(input_dataset=plain, another_dataset=plain, **ROWS),
            raw.ZipDataset(input_datasets=[plain, plain], output_types=[tf.int64] * 2, output_shapes=[[None]] * 2), raw.UnbatchDataset(input_dataset=plain, **SCALAR),
            raw.RepeatDataset(input_dataset=raw.ShardDataset(input_dataset=plain, num_shards=c64(2), index=c64(1), **ROWS), count=c64(-1), **ROWS)]
    sizes = [raw.ComputeBatchSize(input_dataset=d) for d in made]
    p.run(sizes)


@program("DatasetToGraph DatasetToGraphV2 DatasetFingerprint DatasetFromGraph GetOptions")
def as_graphs(p):
    """The bytes are in any order; what they are is compared by tests/interop/client_datasets_test.py."""
    graphs = [raw.DatasetToGraph(input_dataset=batches()), raw.DatasetToGraphV2(input_dataset=batches(), external_state_policy=2)]
    same = [p.graph.create_op("DatasetFingerprint", [d], [tf.uint64]).outputs[0] for d in (batches(), batches(), batches(9))]
    again = raw.OptionsDataset(input_dataset=p.graph.create_op("DatasetFromGraph", [graphs[1]], [tf.variant]).outputs[0], serialized_options=b"\x30\x01", **ROWS)
    told = [p.graph.create_op("GetOptions", [d], [tf.string]).outputs[0] for d in (again, batches())]
    p.run([tf.strings.length(g) > 100 for g in graphs] + [tf.equal(same[0], same[1]), tf.equal(same[0], same[2]), raw.DatasetCardinality(input_dataset=again)] + told)


@program("StatsAggregatorHandle StatsAggregatorHandleV2 ExperimentalStatsAggregatorHandle StatsAggregatorSummary ExperimentalStatsAggregatorSummary "
         "SetStatsAggregatorDataset ExperimentalSetStatsAggregatorDataset")
def statistics(p):
    handles = [raw.StatsAggregatorHandle(shared_name="one"), raw.StatsAggregatorHandleV2(shared_name="two"), raw.ExperimentalStatsAggregatorHandle(shared_name="three")]
    summaries = [raw.StatsAggregatorSummary(iterator=handles[0]), raw.ExperimentalStatsAggregatorSummary(iterator=handles[2])]
    drains = [Drain(op(input_dataset=numbers(3), stats_aggregator=h, tag="a", counter_prefix="b", **SCALAR))
              for op, h in ((raw.SetStatsAggregatorDataset, handles[1]), (raw.ExperimentalSetStatsAggregatorDataset, handles[2]))]
    for d in drains:
        d.run(p)
    p.run(summaries)
