"""Variables, by reference and by handle; counters; saving and restoring."""
import numpy as np
import tensorflow as tf

from .table import PLAIN, Call, cases, program

v1, raw = tf.compat.v1, tf.raw_ops
NUMBERS = [t for t in PLAIN if t not in ("string", "bool")]


@cases("AssignAdd AssignSub", gradient=False)
def assign_add(c):
    for s in ((2, 3), (), (0,)):
        yield Call(c.values(s), c.values(s))
    yield Call(c.values((2, 3)), c.values((3,)))


@cases("Assign", gradient=False)
def assign(c):
    yield Call(c.values((2, 3)), c.values((2, 3)))
    yield Call(c.values((2, 3)), c.values((4,)), validate_shape=False)
    yield Call(c.values((2, 3)), c.values((4,)), validate_shape=True)


@cases("AssignAddVariableOp AssignSubVariableOp", types={"dtype": NUMBERS}, gradient=False)
def assign_add_variable(c):
    for s in ((2, 3), (), (0,)):
        yield Call(c.values(s), c.values(s))
    yield Call(c.values((2, 3)), c.values((3,)))


@cases("AssignVariableOp", gradient=False)
def assign_variable(c):
    yield Call(c.values((2, 3)), c.values((2, 3)))
    yield Call(c.values((2, 3)), c.values((4,)))
    yield Call(c.values((2, 3)), c.values((4,)), validate_shape=True)


@cases("ReadVariableOp", gradient=False)
def read_variable(c):
    yield Call(c.values((2, 3)))
    yield Call(c.values(()))


@cases("VariableShape", types={"out_type": ["int32", "int64"]}, gradient=False)
def variable_shape(c):
    yield Call(c.values((2, 3), dtype=np.float32))
    yield Call(c.values((), dtype=np.float32))


@cases("CountUpTo ResourceCountUpTo", gradient=False)
def count_up_to(c):
    yield Call(np.array(3, c.T), limit=5)
    yield Call(np.array(5, c.T), limit=5)
    yield Call(np.array([1], c.T), limit=5)


@cases("RefIdentity DisableCopyOnRead DebugGradientRefIdentity", gradient=False)
def ref_identity(c):
    yield Call(c.values((2, 3)))


@program("VariableV2 Variable IsVariableInitialized Assign", types=PLAIN)
def reference_variables(p):
    v = raw.VariableV2(shape=[2, 3], dtype=p.dtype, name="v")
    old = v1.Graph.create_op(p.graph, "Variable", [], [p.dtype._as_ref], attrs={
        "shape": v1.AttrValue(shape=tf.TensorShape([2]).as_proto()), "dtype": v1.AttrValue(type=p.dtype.as_datatype_enum)}, name="old").outputs[0]
    known, known_old = raw.IsVariableInitialized(ref=v), raw.IsVariableInitialized(ref=old)
    x, y = p.placeholder("x"), p.placeholder("y")
    assign, assign_old = v1.assign(v, x).op, v1.assign(old, y).op
    read, read_old = v1.identity(v), v1.identity(old)
    p.run([known, known_old])
    p.run([read])
    p.run(feeds={x: p.values((2, 3)), y: p.values((2,))}, targets=[assign, assign_old])
    p.run([known, known_old, read, read_old])
    p.run(feeds={x: p.values((3, 2))}, targets=[assign])
    p.run([read])


@program("VarHandleOp VarIsInitializedOp AssignVariableOp ReadVariableOp DestroyResourceOp", types=PLAIN)
def resource_variables(p):
    h = raw.VarHandleOp(dtype=p.dtype, shape=[2, 3], shared_name="shared")
    again = raw.VarHandleOp(dtype=p.dtype, shape=[2, 3], shared_name="shared")
    known, read = raw.VarIsInitializedOp(resource=h), raw.ReadVariableOp(resource=again, dtype=p.dtype)
    x = p.placeholder("x")
    assign = raw.AssignVariableOp(resource=h, value=x)
    drop = raw.DestroyResourceOp(resource=h, ignore_lookup_error=False)
    drop_any = raw.DestroyResourceOp(resource=h, ignore_lookup_error=True)
    p.run([known])
    p.run([read])
    p.run(feeds={x: p.values((2, 3))}, targets=[assign])
    p.run([known, read])
    p.run(targets=[drop])
    p.run([known])
    p.run(targets=[drop])
    p.run(targets=[drop_any])


@program("TemporaryVariable DestroyTemporaryVariable", types=NUMBERS)
def temporary_variables(p):
    x = p.placeholder("x")
    t = raw.TemporaryVariable(shape=[2], dtype=p.dtype, var_name="t")
    first = v1.assign(t, x)
    second = v1.assign_add(first, x)
    out = raw.DestroyTemporaryVariable(ref=second, var_name="t")
    p.run([out], {x: p.values((2,), 0, 4)})
    p.run([out], {x: p.values((2,), 0, 4)})


@program("_VarHandlesOp _ReadVariablesOp", types=["float32"])
def many_handles(p):
    handles = p.graph.create_op("_VarHandlesOp", [], [tf.resource] * 2, attrs={
        "containers": v1.AttrValue(list=v1.AttrValue.ListValue(s=[b"", b""])), "shared_names": v1.AttrValue(list=v1.AttrValue.ListValue(s=[b"a", b"b"])),
        "N": v1.AttrValue(i=2), "dtypes": v1.AttrValue(list=v1.AttrValue.ListValue(type=[1, 3])),
        "shapes": v1.AttrValue(list=v1.AttrValue.ListValue(shape=[tf.TensorShape([2]).as_proto(), tf.TensorShape([]).as_proto()]))}, name="handles").outputs
    x, y = p.placeholder("x"), p.placeholder("y", tf.int32)
    assign = [raw.AssignVariableOp(resource=handles[0], value=x), raw.AssignVariableOp(resource=handles[1], value=y)]
    reads = p.graph.create_op("_ReadVariablesOp", handles, [tf.float32, tf.int32], attrs={
        "N": v1.AttrValue(i=2), "dtypes": v1.AttrValue(list=v1.AttrValue.ListValue(type=[1, 3]))}, name="reads").outputs
    p.run(feeds={x: p.values((2,)), y: np.int32(7)}, targets=assign)
    p.run(reads)


@program("SaveV2 RestoreV2 MergeV2Checkpoints", types=PLAIN)
def checkpoints(p):
    prefix = p.placeholder("prefix", tf.string)
    x = p.placeholder("x")
    save = raw.SaveV2(prefix=prefix, tensor_names=["a", "b"], shape_and_slices=["", ""], tensors=[x, tf.constant([1, 2], tf.int64)])
    a, b = raw.RestoreV2(prefix=prefix, tensor_names=["a", "b"], shape_and_slices=["", ""], dtypes=[p.dtype, tf.int64])
    missing = raw.RestoreV2(prefix=prefix, tensor_names=["c"], shape_and_slices=[""], dtypes=[tf.float32])
    wrong = raw.RestoreV2(prefix=prefix, tensor_names=["b"], shape_and_slices=[""], dtypes=[tf.float32])
    parts, whole = p.placeholder("parts", tf.string), p.placeholder("whole", tf.string)
    merged = raw.MergeV2Checkpoints(checkpoint_prefixes=parts, destination_prefix=whole)
    at = {prefix: np.array(b"@TMP@/one", object)}
    p.run(feeds={x: p.values((2, 3)), **at}, targets=[save])
    p.run([a, b], at)
    p.run([missing[0]], at)
    p.run([wrong[0]], at)
    p.run([a], {prefix: np.array(b"@TMP@/none", object)})
    p.run(feeds={parts: np.array([b"@TMP@/one"], object), whole: np.array(b"@TMP@/all", object)}, targets=[merged])
    p.run([a, b], {prefix: np.array(b"@TMP@/all", object)})
    p.run([a], at)


@program("SaveV2 RestoreV2")
def checkpoint_slices(p):
    prefix, x = p.placeholder("prefix", tf.string), p.placeholder("x")
    save = raw.SaveV2(prefix=prefix, tensor_names=["a", "a"], shape_and_slices=["4 3 0,2:-", "4 3 2,2:-"], tensors=[x[:2], x[2:]])
    part = raw.RestoreV2(prefix=prefix, tensor_names=["a", "a"], shape_and_slices=["4 3 1,2:0,2", ""], dtypes=[tf.float32, tf.float32])
    at = {prefix: np.array(b"@TMP@/s", object)}
    p.run(feeds={x: p.values((4, 3)), **at}, targets=[save])
    p.run(part, at)


@program("Save Restore", types=PLAIN)
def old_checkpoints(p):
    path, x = p.placeholder("path", tf.string), p.placeholder("x")
    save = raw.Save(filename=path, tensor_names=["a", "b"], data=[x, tf.constant([1, 2], tf.int64)])
    a, b = raw.Restore(file_pattern=path, tensor_name="a", dt=p.dtype), raw.Restore(file_pattern=path, tensor_name="b", dt=tf.int64)
    missing = raw.Restore(file_pattern=path, tensor_name="c", dt=tf.float32)
    wrong = raw.Restore(file_pattern=path, tensor_name="b", dt=tf.float32)
    at = {path: np.array(b"@TMP@/one", object)}
    p.run(feeds={x: p.values((2, 3)), **at}, targets=[save])
    p.run([a, b], at)
    p.run([b], {path: np.array(b"@TMP@/o*e", object)})
    p.run([missing], at)
    p.run([wrong], at)
    p.run([a], {path: np.array(b"@TMP@/none", object)})


@program("SaveSlices RestoreSlice")
def old_checkpoint_slices(p):
    path, x, spec = p.placeholder("path", tf.string), p.placeholder("x"), p.placeholder("spec", tf.string)
    save = raw.SaveSlices(filename=path, tensor_names=["a", "a", "b"], shapes_and_slices=["4 3 0,2:-", "4 3 2,2:-", ""], data=[x[:2], x[2:], x])
    part = raw.RestoreSlice(file_pattern=path, tensor_name="a", shape_and_slice=spec, dt=tf.float32)
    at = {path: np.array(b"@TMP@/s", object)}
    p.run(feeds={x: p.values((4, 3)), **at}, targets=[save])
    for text in (b"4 3 1,2:0,2", b"", b"4 3 -:2,1", b"4 2 -:-", b"4 3 3,2:-", b"4 3", b"4 x -:-"):
        p.run([part], {spec: np.array(text, object), **at})


@program("MutexV2 MutexLock ConsumeMutexLock", types=["float32"])
def mutexes(p):
    mutex = raw.MutexV2(shared_name="m")
    lock = raw.MutexLock(mutex=mutex)
    consume = raw.ConsumeMutexLock(mutex_lock=lock)
    with tf.control_dependencies([consume]):
        out = tf.constant(1)
    with tf.control_dependencies([raw.MutexLock(mutex=mutex)]):
        kept = tf.constant(2)  # nobody consumes it: it goes with the step
    no_lock = raw.ConsumeMutexLock(mutex_lock=raw.EmptyTensorList(element_shape=-1, max_num_elements=0, element_dtype=tf.float32))
    for fetch in (out, kept, out, kept):
        p.run([fetch])
    p.run(feeds={}, targets=[no_lock])


@program("ResourceScatterNdSub", types=["bool"])
def differences_of_bools(p):
    v = v1.get_variable("v", initializer=tf.constant([True, False, True, False]), use_resource=True)
    sub = raw.ResourceScatterNdSub(ref=v.handle, indices=[[0], [1], [2], [3]], updates=tf.constant([True, True, False, False]))
    value = v.read_value()
    p.run(feeds={}, targets=[v.initializer])
    p.run(feeds={}, targets=[sub])
    p.run([value])
