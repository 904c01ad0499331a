"""TensorArrays, lists of tensors, stacks, stages, maps of tensors, sessions' tensors."""
import numpy as np
import tensorflow as tf

from .table import PLAIN, program

v1, raw = tf.compat.v1, tf.raw_ops
NUMBERS = [t for t in PLAIN if t not in ("string", "bool")]
I32 = np.int32


@program("TensorArrayV3 TensorArrayWriteV3 TensorArrayReadV3 TensorArrayGatherV3 TensorArrayConcatV3 TensorArraySizeV3 TensorArrayCloseV3", types=PLAIN)
def tensor_arrays(p):
    x = p.placeholder("x")
    ta = raw.TensorArrayV3(size=3, dtype=p.dtype, dynamic_size=True, clear_after_read=False)
    flow = ta.flow
    for i in range(3):
        flow = raw.TensorArrayWriteV3(handle=ta.handle, index=i, value=x[i], flow_in=flow)
    more = raw.TensorArrayWriteV3(handle=ta.handle, index=5, value=x[0], flow_in=flow)
    read = raw.TensorArrayReadV3(handle=ta.handle, index=1, flow_in=flow, dtype=p.dtype)
    gather = raw.TensorArrayGatherV3(handle=ta.handle, indices=[2, 0], flow_in=flow, dtype=p.dtype)
    concat = raw.TensorArrayConcatV3(handle=ta.handle, flow_in=flow, dtype=p.dtype)
    size, grown = raw.TensorArraySizeV3(handle=ta.handle, flow_in=flow), raw.TensorArraySizeV3(handle=ta.handle, flow_in=more)
    outside = raw.TensorArrayReadV3(handle=ta.handle, index=9, flow_in=flow, dtype=p.dtype)
    with tf.control_dependencies([read]):
        close = raw.TensorArrayCloseV3(handle=ta.handle)
    value = {x: p.values((3, 2, 2))}
    p.run([read, gather, concat.value, concat.lengths, size], value)
    p.run([grown], value)
    p.run([outside], value)
    p.run([read], value, [close])


@program("TensorArrayScatterV3 TensorArraySplitV3 TensorArrayGradV3", types=[t for t in NUMBERS if "float" in t])
def tensor_array_gradients(p):
    x, y = p.placeholder("x"), p.placeholder("y")
    ta = raw.TensorArrayV3(size=3, dtype=p.dtype, clear_after_read=False)
    flow = raw.TensorArrayScatterV3(handle=ta.handle, indices=[2, 0, 1], value=x, flow_in=ta.flow)
    all_of = raw.TensorArrayGatherV3(handle=ta.handle, indices=[0, 1, 2], flow_in=flow, dtype=p.dtype)
    split = raw.TensorArrayV3(size=2, dtype=p.dtype, clear_after_read=False)
    split_flow = raw.TensorArraySplitV3(handle=split.handle, value=y, lengths=tf.constant([1, 3], tf.int64), flow_in=split.flow)
    second = raw.TensorArrayReadV3(handle=split.handle, index=1, flow_in=split_flow, dtype=p.dtype)
    made = tf.TensorArray(p.dtype, 3, clear_after_read=False).unstack(x)
    total = made.read(0) * made.read(0) + made.read(2)
    gradient = tf.gradients(total, x)[0]
    p.run([all_of], {x: p.values((3, 2))})
    p.run([second], {y: p.values((4, 2))})
    p.run([gradient], {x: p.values((3, 2))})
    p.run([second], {y: p.values((3, 2))})


@program("EmptyTensorList TensorListPushBack TensorListPopBack TensorListLength TensorListElementShape TensorListStack TensorListConcatLists "
         "TensorListPushBackBatch", types=PLAIN)
def tensor_list_stack(p):
    x = p.placeholder("x")
    e = raw.EmptyTensorList(element_shape=[2], max_num_elements=-1, element_dtype=p.dtype)
    one = raw.TensorListPushBack(input_handle=e, tensor=x[0])
    two = raw.TensorListPushBack(input_handle=one, tensor=x[1])
    rest, top = raw.TensorListPopBack(input_handle=two, element_shape=[2], element_dtype=p.dtype)
    bounded = raw.EmptyTensorList(element_shape=[2], max_num_elements=1, element_dtype=p.dtype)
    full = raw.TensorListPushBack(input_handle=raw.TensorListPushBack(input_handle=bounded, tensor=x[0]), tensor=x[1])
    stacked = raw.TensorListStack(input_handle=two, element_shape=[2], element_dtype=p.dtype)
    joined = raw.TensorListStack(input_handle=raw.TensorListConcatLists(input_a=two, input_b=one, element_dtype=p.dtype), element_shape=[2], element_dtype=p.dtype)
    _, none = raw.TensorListPopBack(input_handle=e, element_shape=[2], element_dtype=p.dtype)
    shape = raw.TensorListElementShape(input_handle=two, shape_type=tf.int32)
    batch = tf.stack([one, two])
    pushed = raw.TensorListPushBackBatch(input_handles=batch, tensor=x)
    lengths = [raw.TensorListLength(input_handle=h) for h in (e, two, rest, pushed[0], pushed[1])]
    p.run([top, stacked, joined, shape, *lengths], {x: p.values((2, 2))})
    p.run([none], {x: p.values((2, 2))})


@program("TensorListReserve TensorListSetItem TensorListGetItem TensorListResize TensorListFromTensor TensorListGather TensorListScatter "
         "TensorListScatterV2 TensorListScatterIntoExistingList TensorListSplit TensorListConcat TensorListConcatV2", types=PLAIN)
def tensor_list_items(p):
    x, i = p.placeholder("x"), p.placeholder("i", tf.int32)
    empty = raw.TensorListReserve(element_shape=[2], num_elements=3, element_dtype=p.dtype)
    one = raw.TensorListSetItem(input_handle=empty, index=i, item=x[0])
    item = lambda h, at: raw.TensorListGetItem(input_handle=h, index=at, element_shape=[2], element_dtype=p.dtype)
    stack = lambda h: raw.TensorListStack(input_handle=h, element_shape=[2], element_dtype=p.dtype)
    made = raw.TensorListFromTensor(tensor=x, element_shape=[2])
    gathered = raw.TensorListGather(input_handle=made, indices=[1, 0, 1], element_shape=[2], element_dtype=p.dtype)
    scattered = raw.TensorListScatter(tensor=x, indices=[2, 0], element_shape=[2])
    scattered2 = raw.TensorListScatterV2(tensor=x, indices=[2, 0], element_shape=[2], num_elements=4)
    into = raw.TensorListScatterIntoExistingList(input_handle=made, tensor=x[:1], indices=[1])
    split = raw.TensorListSplit(tensor=x, element_shape=[-1, 2], lengths=tf.constant([2, 0], tf.int64))
    joined = raw.TensorListConcat(input_handle=split, element_dtype=p.dtype, element_shape=None)
    joined2 = raw.TensorListConcatV2(input_handle=split, element_dtype=p.dtype, element_shape=[-1, 2], leading_dims=tf.constant([], tf.int64))
    bigger = raw.TensorListLength(input_handle=raw.TensorListResize(input_handle=made, size=5))
    value = p.values((2, 2))
    fetches = [item(one, i), item(one, 0), stack(made), gathered, stack(scattered), stack(scattered2), stack(into), joined.tensor, joined.lengths, joined2.tensor,
               bigger]
    for at in (0, 2):
        p.run(fetches, {x: value, i: I32(at)})
    p.run([fetches[0]], {x: value, i: I32(3)})
    p.run([fetches[0]], {x: value, i: I32(-1)})


@program("TensorListReserve TensorListSetItem TensorListPopBack TensorListGetItem TensorListStack TensorListGather TensorListConcat TensorListConcatV2")
def tensor_list_elements_that_are_not_set(p):
    x, s, n = p.placeholder("x"), p.placeholder("s", tf.int32), p.placeholder("n", tf.int64)
    empty = raw.TensorListReserve(element_shape=s, num_elements=2, element_dtype=tf.float32)
    one = raw.TensorListSetItem(input_handle=raw.TensorListReserve(element_shape=-1, num_elements=3, element_dtype=tf.float32), index=1, item=x)
    fetches = []
    for h in (empty, one):
        fetches += [raw.TensorListStack(input_handle=h, element_shape=-1, element_dtype=tf.float32),
                    raw.TensorListPopBack(input_handle=h, element_shape=-1, element_dtype=tf.float32)[1],
                    raw.TensorListGetItem(input_handle=h, index=0, element_shape=-1, element_dtype=tf.float32),
                    raw.TensorListGather(input_handle=h, indices=[1, 0], element_shape=s, element_dtype=tf.float32),
                    raw.TensorListGather(input_handle=h, indices=s[:0], element_shape=-1, element_dtype=tf.float32),
                    raw.TensorListConcat(input_handle=h, element_dtype=tf.float32, element_shape=[None, 2]).tensor,
                    raw.TensorListConcatV2(input_handle=h, element_shape=s, leading_dims=n, element_dtype=tf.float32).tensor]
    both = raw.TensorListConcatV2(input_handle=one, element_shape=[-1, 2], leading_dims=n, element_dtype=tf.float32)
    for shape in ([2, 2], [-1, 2], [3], []):
        for fetch in fetches:
            p.run([fetch], {x: p.values((2, 2)), s: np.array(shape, I32), n: np.array([1], np.int64)})
    for leading in ([], [1], [3, 0, 2]):
        p.run([both.tensor, both.lengths], {x: p.values((2, 2)), n: np.array(leading, np.int64)})


@program("TensorListConcatLists TensorListFromTensor TensorListStack")
def batches_of_tensor_lists(p):
    x, y = p.placeholder("x"), p.placeholder("y")
    of = lambda t, shape=(): raw.TensorListFromTensor(tensor=t, element_shape=tf.constant(shape, tf.int32))
    join = lambda a, b: raw.TensorListConcatLists(input_a=tf.stack(a), input_b=tf.stack(b), element_dtype=tf.float32)
    stack = lambda h: raw.TensorListStack(input_handle=h, element_shape=-1, element_dtype=tf.float32)
    joined = join([of(x), of(y)], [of(y), of(x)])
    hidden = lambda h: raw.PlaceholderWithDefault(input=h, shape=None)
    uneven = raw.TensorListConcatLists(input_a=hidden(tf.stack([of(x), of(x)])), input_b=hidden(tf.stack([of(y)])), element_dtype=tf.float32)
    shapes = raw.TensorListConcatLists(input_a=hidden(of(x)), input_b=hidden(of(x[None], (3,))), element_dtype=tf.float32)
    types = raw.TensorListConcatLists(input_a=hidden(of(x)), input_b=hidden(of(tf.cast(x, tf.int32))), element_dtype=tf.float32)
    cases = [stack(joined[0]), stack(joined[1])], [stack(hidden(uneven)[0])], [stack(shapes)], [stack(types)]
    for fetches in cases:
        p.run(fetches, {x: p.values((3,)), y: p.values((2,))})


@program("EmptyTensorList TensorListPushBack TensorListPushBackBatch TensorListReserve TensorListResize TensorListSplit TensorListScatter TensorListScatterV2 "
         "TensorListScatterIntoExistingList TensorListFromTensor TensorListStack AddN")
def tensor_lists_that_are_wrong(p):
    x, i, n = p.placeholder("x"), p.placeholder("i", tf.int32), p.placeholder("n", tf.int64)
    stack = lambda h: raw.TensorListStack(input_handle=h, element_shape=-1, element_dtype=tf.float32)
    made = raw.TensorListFromTensor(tensor=x, element_shape=-1)
    scalars = raw.TensorListFromTensor(tensor=x, element_shape=tf.constant([], tf.int32))
    bounded = raw.EmptyTensorList(element_shape=-1, max_num_elements=1, element_dtype=tf.float32)
    full = raw.TensorListPushBack(input_handle=raw.TensorListPushBack(input_handle=bounded, tensor=x), tensor=x)
    pushed = raw.TensorListPushBackBatch(input_handles=tf.stack([scalars, scalars]), tensor=tf.stack([x, x]))[0]
    uneven = raw.TensorListPushBack(input_handle=made, tensor=x)
    reserve = lambda shape, count: raw.TensorListReserve(element_shape=shape, num_elements=count, element_dtype=tf.float32)
    sums = [tf.add_n([made, uneven]), tf.add_n([made, scalars]), tf.add_n([made, reserve(-1, 2)]), tf.add_n([scalars, reserve(i, 2)])]
    built = [stack(h) for h in (full, pushed, uneven, *sums)]
    stack_scalars, length = stack(scalars), lambda h: raw.TensorListLength(input_handle=h)
    counted = [length(reserve(-1, i)), length(raw.TensorListResize(input_handle=made, size=i))]
    splits = [length(raw.TensorListSplit(tensor=x, element_shape=tf.constant(shape, tf.int32), lengths=n)) for shape in ([-1], [-1, 2], [])]
    scattered = [length(raw.TensorListScatter(tensor=x, indices=i, element_shape=tf.constant([], tf.int32)))]
    scattered += [length(raw.TensorListScatterV2(tensor=x, indices=i, element_shape=tf.constant(shape, tf.int32), num_elements=count))
                  for shape, count in (([], 3), ([3], -2), ([3], 5))]
    into = length(raw.TensorListScatterIntoExistingList(input_handle=reserve(-1, 1), tensor=x, indices=i))
    for fetch in built:
        p.run([fetch], {x: p.values((2,)), i: I32([1])})
    for shape in ((2,), (2, 2), ()):
        p.run([stack_scalars], {x: p.values(shape)})
    for count in ([2, 2], -1, 3):
        for fetch in counted:
            p.run([fetch], {x: p.values((2,)), i: I32(count)})
    for lengths in ([2, 1], [2, 2], [-1, 4], [2], [[2, 1]]):
        for fetch in splits:
            p.run([fetch], {x: p.values((3,)), n: np.array(lengths, np.int64)})
    for indices in ([0, 3], [-1, 0], [0, 7, 1], [-1, 7, 1]):
        for fetch in scattered:
            p.run([fetch], {x: p.values((2,)), i: I32(indices)})
    for indices in ([0, 3], [0], [[0, 1]]):
        for shape in ((2,), ()):
            p.run([into], {x: p.values(shape), i: I32(indices)})


@program("StackV2 StackPushV2 StackPopV2 StackCloseV2", types=PLAIN)
def stacks(p):
    x = p.placeholder("x")
    s = raw.StackV2(max_size=2, elem_type=p.dtype)
    first = raw.StackPushV2(handle=s, elem=x[0])
    with tf.control_dependencies([first]):
        second = raw.StackPushV2(handle=s, elem=x[1])
    with tf.control_dependencies([second]):
        top = raw.StackPopV2(handle=s, elem_type=p.dtype)
        third = raw.StackPushV2(handle=s, elem=x[0])
    with tf.control_dependencies([top]):
        bottom = raw.StackPopV2(handle=s, elem_type=p.dtype)
    with tf.control_dependencies([bottom]):
        none = raw.StackPopV2(handle=s, elem_type=p.dtype)
        close = raw.StackCloseV2(handle=s)
    value = {x: p.values((2, 2))}
    p.run([second, top, bottom], value, [close])
    p.run([none], value)
    p.run([third], value)


@program("Stage Unstage StagePeek StageSize StageClear", types=PLAIN)
def stages(p):
    x, i = p.placeholder("x"), p.placeholder("i", tf.int32)
    a = {"dtypes": [p.dtype], "capacity": 4, "shared_name": "s"}
    put, take = raw.Stage(values=[x], **{k: v for k, v in a.items() if k != "dtypes"}), raw.Unstage(**a)
    peek, size, clear = raw.StagePeek(index=i, **a), raw.StageSize(**a), raw.StageClear(**a)
    for _ in range(3):
        p.run(feeds={x: p.values((2,))}, targets=[put])
    p.run([size])
    p.run([peek[0]], {i: I32(1)})
    p.run([take[0]])
    p.run([take[0], ])
    p.run([size])
    p.run(targets=[clear])
    p.run([size])


def staging_maps(ordered):
    def make(p):
        kind = "OrderedMap" if ordered else "Map"
        x, key = p.placeholder("x"), p.placeholder("key", tf.int64)
        a = {"dtypes": [p.dtype, tf.int32], "capacity": 0, "shared_name": "m"}
        call = lambda name, **more: getattr(raw, kind + name)(**a, **more)
        put = call("Stage", key=key, indices=[0, 1], values=[x, tf.constant(7)])
        part = call("Stage", key=key, indices=[1], values=[tf.constant(8)])
        take = call("Unstage", key=key, indices=[0, 1])
        peek = call("Peek", key=key, indices=[0, 1])
        any_key, any_values = call("UnstageNoKey", indices=[0, 1])
        size, incomplete, clear = call("Size"), call("IncompleteSize"), call("Clear")
        p.run(feeds={key: np.int64(5), x: p.values((2,))}, targets=[put])
        p.run(feeds={key: np.int64(3), x: p.values((2,))}, targets=[put])
        p.run(feeds={key: np.int64(9)}, targets=[part])
        p.run([size, incomplete])
        p.run(peek, {key: np.int64(5)})
        p.run(take, {key: np.int64(5)})
        p.run([any_key, *any_values])
        p.run([size, incomplete])
        p.run(feeds={key: np.int64(4), x: p.values((2,))}, targets=[put])
        p.run(feeds={key: np.int64(4), x: p.values((2,))}, targets=[put])
        p.run([size, incomplete])
        p.run(take, {key: np.int64(4)})
        p.run([size, incomplete])
        p.run(targets=[clear])
        p.run([size, incomplete])
    make.__name__ = "ordered_maps" if ordered else "unordered_maps"
    return make


program("MapStage MapUnstage MapPeek MapUnstageNoKey MapSize MapIncompleteSize MapClear", types=["float32", "string", "int64"])(staging_maps(False))
program("OrderedMapStage OrderedMapUnstage OrderedMapPeek OrderedMapUnstageNoKey OrderedMapSize OrderedMapIncompleteSize OrderedMapClear",
        types=["float32", "string", "int64"])(staging_maps(True))


@program("GetSessionHandleV2 GetSessionHandle GetSessionTensor DeleteSessionTensor", types=PLAIN)
def session_tensors(p):
    x, name = p.placeholder("x"), p.placeholder("name", tf.string)
    keep, back, drop = raw.GetSessionHandleV2(value=x), raw.GetSessionTensor(handle=name, dtype=p.dtype), raw.DeleteSessionTensor(handle=name)
    old = raw.GetSessionHandle(value=x)
    missing = {name: np.array(b"none", object)}
    p.run([back], missing)
    p.run(feeds=missing, targets=[drop])
    p.run(feeds={x: p.values((2,))}, targets=[keep.op, old.op])


# ---- Maps ----

MAP_OPS = "EmptyTensorMap TensorMapInsert TensorMapLookup TensorMapErase TensorMapHasKey TensorMapSize TensorMapStackKeys"


@program(MAP_OPS, types=PLAIN)
def tensor_map(p):
    """Keys of one type, values of another; the order of keys is nobody's promise."""
    key, other, value = p.placeholder("key"), p.placeholder("other"), p.placeholder("value", tf.float32)
    empty = raw.EmptyTensorMap()
    one = raw.TensorMapInsert(input_handle=empty, key=key, value=value)
    two = raw.TensorMapInsert(input_handle=one, key=other, value=value + 1)
    back = raw.TensorMapInsert(input_handle=empty, key="name", value=key)
    found = raw.TensorMapLookup(input_handle=two, key=key, value_dtype=tf.float32)
    kept = raw.TensorMapLookup(input_handle=back, key="name", value_dtype=p.dtype)
    has = [raw.TensorMapHasKey(input_handle=m, key=other) for m in (empty, one, two)]
    size = [raw.TensorMapSize(input_handle=m) for m in (empty, one, two)]
    less = raw.TensorMapErase(input_handle=two, key=key, value_dtype=tf.float32)
    after = [raw.TensorMapSize(input_handle=less), raw.TensorMapHasKey(input_handle=less, key=key), raw.TensorMapHasKey(input_handle=less, key=other)]
    keys = raw.TensorMapStackKeys(input_handle=one, key_dtype=p.dtype)
    no_keys = raw.TensorMapStackKeys(input_handle=empty, key_dtype=p.dtype)
    wrong = raw.TensorMapStackKeys(input_handle=back, key_dtype=p.dtype)
    mixed = raw.TensorMapSize(input_handle=tf.identity(two)), tf.shape(raw.TensorMapStackKeys(input_handle=two, key_dtype=p.dtype))
    missing = raw.TensorMapLookup(input_handle=empty, key=key, value_dtype=tf.float32)
    nothing = raw.TensorMapSize(input_handle=raw.TensorMapErase(input_handle=one, key=other, value_dtype=tf.float32))
    other_type = raw.TensorMapLookup(input_handle=one, key=key, value_dtype=tf.int32)
    several = raw.TensorMapSize(input_handle=tf.stack([one, one]))
    no_map = raw.TensorMapSize(input_handle=raw.EmptyTensorList(element_shape=[2], max_num_elements=1, element_dtype=p.dtype))
    def some(shape):
        """Messages have keys in them, and recorded messages only ASCII."""
        found = p.values(shape)
        return np.array([b"eat" if v == "\u00e9t\u00e9".encode() else v for v in found.reshape(-1)], object).reshape(shape) if p.dtype == tf.string else found

    for shape in ((), (3,), (2, 2), (0,)):
        one_key = some(shape)
        for second in (some(shape), one_key, some((4,))):
            feed = {key: one_key, other: second, value: np.float32([1.5, -2])}
            p.run([found, kept, keys, *has, *size, *mixed] if np.shape(second) == np.shape(one_key) else [found, kept, keys, *has, *size], feed)
            p.run(after, feed)
            p.run([nothing], feed)
            p.run([mixed[1]], feed)
    feed = {key: some((2,)), other: some(()), value: np.float32(3)}
    for fetch in (no_keys, missing, other_type, several, no_map) + ((wrong,) if p.dtype != tf.string else ()):
        p.run([fetch], feed)


@program(MAP_OPS.replace("TensorMapStackKeys", "AddN ZerosLike"))
def tensor_map_sums(p):
    x, y = p.placeholder("x"), p.placeholder("y")
    empty = raw.EmptyTensorMap()
    maps = [raw.TensorMapInsert(input_handle=raw.TensorMapInsert(input_handle=empty, key=1, value=x), key=second, value=y) for second in (2, 3)]
    total = raw.AddN(inputs=maps)
    parts = [raw.TensorMapLookup(input_handle=total, key=k, value_dtype=tf.float32) for k in (1, 2, 3)]
    size = raw.TensorMapSize(input_handle=raw.TensorMapErase(input_handle=total, key=2, value_dtype=tf.float32))
    nothing = raw.TensorMapSize(input_handle=raw.ZerosLike(x=total))
    has = raw.TensorMapHasKey(input_handle=total, key=tf.constant(1, tf.int64))
    p.run([*parts, size, nothing, has], {x: p.values((2, 3)), y: p.values((4,))})


@program("TensorMapLookup TensorMapInsert TensorMapErase TensorMapHasKey")
def tensor_map_gradients(p):
    """With the rules that TensorFlow keeps in a module that it does not load by itself."""
    from tensorflow.python.ops import map_ops  # noqa: F401
    a, b = p.placeholder("a"), p.placeholder("b")
    m = map_ops.tensor_map_insert(map_ops.empty_tensor_map(), "a", a)
    m = map_ops.tensor_map_insert(m, "b", b)
    m = map_ops.tensor_map_insert(m, "a", b * 2)
    looked = map_ops.tensor_map_lookup(m, "a", tf.float32)
    grads = tf.gradients(looked, [a, b])
    left = map_ops.tensor_map_erase(m, "b", tf.float32)
    less = tf.gradients(map_ops.tensor_map_lookup(left, "a", tf.float32) * 3, [b])
    p.run([looked, *[g for g in grads if g is not None], *less], {a: p.values((2,)), b: p.values((2,))})


# ---- Composite tensors ----

def type_spec(number):
    """A CompositeTensorVariantMetadata of that class of type."""
    return b"\x0a\x02\x08" + bytes([number])


@program("CompositeTensorVariantFromComponents CompositeTensorVariantToComponents", types=PLAIN)
def composite_tensors(p):
    x, n = p.placeholder("x"), p.placeholder("n", tf.int64)
    ragged = raw.CompositeTensorVariantFromComponents(components=[x, n], metadata=type_spec(3))
    nothing = raw.CompositeTensorVariantFromComponents(components=[], metadata=b"")
    to = raw.CompositeTensorVariantToComponents
    parts = to(encoded=ragged, metadata=type_spec(3), Tcomponents=[p.dtype, tf.int64])
    again = to(encoded=tf.io.parse_tensor(tf.io.serialize_tensor(ragged), tf.variant), metadata=type_spec(3), Tcomponents=[p.dtype, tf.int64])
    first = to(encoded=tf.stack([ragged, nothing]), metadata=type_spec(3), Tcomponents=[p.dtype, tf.int64])
    wrong = [to(encoded=ragged, metadata=type_spec(1), Tcomponents=[p.dtype, tf.int64]), to(encoded=nothing, metadata=type_spec(13), Tcomponents=[p.dtype]),
             to(encoded=ragged, metadata=type_spec(3), Tcomponents=[p.dtype]), to(encoded=ragged, metadata=type_spec(3), Tcomponents=[p.dtype, tf.qint8]),
             to(encoded=nothing, metadata=b"", Tcomponents=[p.dtype])]
    feed = {x: p.values((2, 3)), n: np.int64([0, 1])}
    p.run([*parts, *again, *first], feed)
    for some in wrong:
        p.run([some[0]], feed)


@program("CompositeTensorVariantFromComponents CompositeTensorVariantToComponents")
def composite_tensors_that_are_none(p):
    x = p.placeholder("x")
    empty = raw.EmptyTensorList(element_shape=[2], max_num_elements=1, element_dtype=tf.float32)
    one = raw.CompositeTensorVariantFromComponents(components=[x], metadata=type_spec(1))
    bad = raw.CompositeTensorVariantFromComponents(components=[x], metadata=b"\x0a")
    to = [raw.CompositeTensorVariantToComponents(encoded=e, metadata=m, Tcomponents=[tf.float32])[0]
          for e, m in ((empty, type_spec(1)), (tf.stack([one])[:0], type_spec(1)), (one, b"\x0a"), (bad, type_spec(1)))]
    for fetch in to:
        p.run([fetch], {x: p.values((2,))})
