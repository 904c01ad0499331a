"""Control flow in both styles, functions, assertions, constants, ops that only order others."""
import numpy as np
import tensorflow as tf
from tensorflow.core.framework import attr_value_pb2, types_pb2
from tensorflow.python.framework import function, test_ops

from .table import PLAIN, Call, cases, program

v1, raw = tf.compat.v1, tf.raw_ops
I32 = np.int32
REAL = [t for t in PLAIN if t not in ("string", "bool", "complex64", "complex128")]


def func_attr(name):
    return attr_value_pb2.AttrValue(func=attr_value_pb2.NameAttrList(name=name))


def types_attr(*types):
    return attr_value_pb2.AttrValue(list=attr_value_pb2.AttrValue.ListValue(type=[t.as_datatype_enum for t in types]))


def node(p, op, inputs, outputs, name=None, **attrs):
    """A node made from its parts: for ops that have no Python function."""
    return p.graph.create_op(op, inputs, outputs, attrs=attrs, name=name or op.strip("_")).outputs


@program("Switch Merge RefSwitch RefMerge RefSelect RefIdentity ControlTrigger NoOp", types=PLAIN)
def switches(p):
    x, c, n = p.placeholder("x"), p.placeholder("c", tf.bool), p.placeholder("n", tf.int32)
    no, yes = raw.Switch(data=x, pred=c)
    merged = raw.Merge(inputs=[tf.concat([no, no], 0), tf.identity(yes)])
    a, b = (raw.VariableV2(shape=[2], dtype=p.dtype, name=name) for name in "ab")
    fill = [v1.assign(a, x).op, v1.assign(b, x[::-1]).op]
    ref_no, ref_yes = raw.RefSwitch(data=a, pred=c)
    ref = raw.RefMerge(inputs=[raw.RefIdentity(input=ref_no), raw.RefIdentity(input=ref_yes)])
    chosen = raw.RefSelect(index=n, inputs=[a, b])
    with tf.control_dependencies([raw.ControlTrigger(), tf.no_op()]):
        after = tf.identity(x)
    value = {x: p.values((2,))}
    for truth in (False, True):
        p.run([merged.output, merged.value_index], {**value, c: np.array(truth)})
    p.run([no], {**value, c: np.array(True)})
    p.run([no], {**value, c: np.array([True])})
    p.run(feeds=value, targets=fill)
    for truth in (False, True):
        p.run([ref.output, ref.value_index], {c: np.array(truth)})
    for i in (0, 1, 2):
        p.run([chosen], {n: I32(i)})
    p.run([after], value)


@program("Enter Exit NextIteration LoopCond Switch Merge", types=REAL)
def loops(p):
    x, n = p.placeholder("x"), p.placeholder("n", tf.int32)
    i, total = v1.while_loop(lambda i, _: i < n, lambda i, t: (i + 1, t + x), [tf.constant(0), tf.zeros_like(x)])
    _, nested = v1.while_loop(lambda i, _: i < n, lambda i, t: (i + 1, v1.while_loop(lambda j, _: j < i, lambda j, u: (j + 1, u + x), [tf.constant(0), t])[1]),
                              [tf.constant(0), tf.zeros_like(x)])
    fetches = [i, total, nested]
    if p.dtype.is_floating:
        fetches.append(tf.gradients(total, x)[0])
    for times in (0, 1, 5):
        p.run(fetches, {x: p.values((2,), 0, 3), n: I32(times)})


@program("RefEnter RefExit RefNextIteration", types=["float32", "int32"])
def reference_loops(p):
    v = raw.VariableV2(shape=[2], dtype=p.dtype, name="v")
    x = p.placeholder("x")
    fill = v1.assign(v, x).op
    enter = lambda value, constant=False: raw.Enter(data=value, frame_name="f", is_constant=constant, parallel_iterations=1)
    count = raw.Merge(inputs=[enter(tf.constant(0))] * 2).output
    one, limit = enter(tf.constant(1), True), enter(tf.constant(3), True)
    go_on = raw.LoopCond(input=tf.less(count, limit))
    number = raw.Switch(data=count, pred=go_on)
    count.op._update_input(1, raw.NextIteration(data=number.output_true + one))
    inside = raw.RefMerge(inputs=[raw.RefEnter(data=v, frame_name="f", is_constant=False, parallel_iterations=1)] * 2).output
    done, again = raw.RefSwitch(data=inside, pred=go_on)
    inside.op._update_input(1, raw.RefNextIteration(data=v1.assign_add(again, enter(x, True))))
    out = raw.RefExit(data=done)
    p.run(feeds={x: p.values((2,))}, targets=[fill])
    p.run([out], {x: p.values((2,))})


@program("If StatelessIf Case StatelessCase While StatelessWhile For PartitionedCall StatefulPartitionedCall RemoteCall _FunctionCall FakeParam _Arg _Retval "
         "Placeholder", types=REAL)
def functions(p):
    d = p.dtype

    @function.Defun(d)
    def double(x):
        return x + x

    @function.Defun(d)
    def square(x):
        return x * x

    @function.Defun(tf.int32, d)
    def below(i, x):
        return i < 3

    @function.Defun(tf.int32, d)
    def step(i, x):
        return i + 1, x + x

    @function.Defun(tf.int32, d)
    def body(i, x):
        return x + tf.cast(i, d)

    x, c, n = p.placeholder("x"), p.placeholder("c", tf.bool), p.placeholder("n", tf.int32)
    for f in (double, square, below, step, body):
        f.add_to_graph(p.graph)
    one, pair = types_attr(d), types_attr(tf.int32, d)
    fetches = []
    for op in ("If", "StatelessIf"):
        fetches += node(p, op, [c, x], [d], Tcond=attr_value_pb2.AttrValue(type=types_pb2.DT_BOOL), Tin=one, Tout=one, then_branch=func_attr(double.name),
                        else_branch=func_attr(square.name))
    for op in ("Case", "StatelessCase"):
        fetches += node(p, op, [n, x], [d], Tin=one, Tout=one, branches=attr_value_pb2.AttrValue(list=attr_value_pb2.AttrValue.ListValue(
            func=[attr_value_pb2.NameAttrList(name=double.name), attr_value_pb2.NameAttrList(name=square.name)])))
    for op in ("While", "StatelessWhile"):
        fetches += node(p, op, [n, x], [tf.int32, d], T=pair, cond=func_attr(below.name), body=func_attr(step.name))
    for op in ("PartitionedCall", "StatefulPartitionedCall"):
        fetches += node(p, op, [x], [d], Tin=one, Tout=one, f=func_attr(square.name))
    fetches.append(double(x))
    loop = node(p, "For", [tf.constant(0), n, tf.constant(1), x], [d], T=one, body=func_attr(body.name))[0]
    remote = node(p, "RemoteCall", [tf.constant("/cpu:0"), x], [d], Tin=one, Tout=one, f=func_attr(square.name))[0]
    unfed = tf.identity(x)
    nothing = tf.shape(node(p, "FakeParam", [], [d], dtype=attr_value_pb2.AttrValue(type=d.as_datatype_enum), shape=attr_value_pb2.AttrValue(
        shape=tf.TensorShape([2, 3]).as_proto()))[0])
    for truth, number in ((True, 0), (False, 1), (True, 5), (False, -1)):
        p.run(fetches, {x: p.values((2,), 0, 4), c: np.array(truth), n: I32(number)})
    p.run([loop], {x: p.values((2,), 0, 4), n: I32(3)})
    p.run([remote], {x: p.values((2,), 0, 4)})
    p.run([unfed])
    p.run([nothing])


@program("PlaceholderV2", types=PLAIN, version=22)
def old_placeholder(p):
    made = node(p, "PlaceholderV2", [], [p.dtype], dtype=attr_value_pb2.AttrValue(type=p.dtype.as_datatype_enum), shape=attr_value_pb2.AttrValue(
        shape=tf.TensorShape([2]).as_proto()))[0]
    out = tf.identity(made)
    p.run([out], {made: p.values((2,))})
    p.run([out])


@program("_SwitchN _ListToArray _ArrayToList", types=["float32", "int32", "string"])
def internal(p):
    x, n = p.placeholder("x"), p.placeholder("n", tf.int32)
    kind = attr_value_pb2.AttrValue(type=p.dtype.as_datatype_enum)
    outputs = node(p, "_SwitchN", [x, n], [p.dtype] * 3, num_outs=attr_value_pb2.AttrValue(i=3), T=kind)
    merged = raw.Merge(inputs=[tf.identity(o) for o in outputs])
    listed = node(p, "_ListToArray", [x, x], [p.dtype] * 2, N=attr_value_pb2.AttrValue(i=2), T=kind, Tin=types_attr(p.dtype, p.dtype))
    arrayed = node(p, "_ArrayToList", [x, x], [p.dtype] * 2, N=attr_value_pb2.AttrValue(i=2), T=kind, out_types=types_attr(p.dtype, p.dtype))
    p.run([*listed, *arrayed], {x: p.values((2,))})
    for i in (0, 1, 2, 9, -1):
        p.run([merged.output, merged.value_index], {x: p.values((2,)), n: I32(i)})


@cases("Assert", gradient=False)
def assert_(c):
    yield Call(np.array(True), [c.ints((3,)), np.array(b"no", object)])
    yield Call(np.array(False), [c.ints((3,)), np.array(b"no", object)], summarize=2)


@cases("Print", gradient=False)
def print_(c):
    yield Call(c.values((2,)), [c.ints((3,))], message="op case: ", first_n=0)


@cases("PrintV2", gradient=False)
def print_v2(c):
    yield Call(np.array(b"", object), output_stream="log(info)", end="")


@program("Const HostConst _EagerConst", types=PLAIN)
def constants(p):
    kind = attr_value_pb2.AttrValue(type=p.dtype.as_datatype_enum)
    fetches = []
    for shape in ((), (2, 3), (0, 2)):
        fetches.append(tf.constant(p.values(shape), p.dtype))
    if p.dtype != tf.string:
        fetches.append(tf.fill([3], tf.constant(p.values(()), p.dtype)))
    value = attr_value_pb2.AttrValue(tensor=tf.make_tensor_proto(p.values((2,)), p.dtype))
    fetches += node(p, "HostConst", [], [p.dtype], value=value, dtype=kind)
    fetches += node(p, "_EagerConst", [fetches[1]], [p.dtype], T=kind)
    p.run(fetches)


@program("Timestamp")
def clock(p):
    # The time itself differs: only that it is positive is recorded.
    p.run([raw.Timestamp() > 1.0])


@program("DeviceIndex")
def device_index(p):
    p.run([raw.DeviceIndex(device_names=names) for names in (["CPU", "GPU"], ["GPU", "CPU"], ["GPU"], [])])


@program("MakeWeakResourceHandle")
def weak_handle(p):
    x = p.placeholder("x")
    variable = raw.VarHandleOp(dtype=p.dtype, shape=[2], shared_name="weak")
    weak = node(p, "MakeWeakResourceHandle", [variable], [tf.resource])[0]
    assign = raw.AssignVariableOp(resource=weak, value=x)
    read = raw.ReadVariableOp(resource=weak, dtype=p.dtype)
    p.run(feeds={x: p.values((2,))}, targets=[assign])
    p.run([read])


@program("_ParallelConcatStart _ParallelConcatUpdate", types=PLAIN)
def parallel_concat(p):
    kind = attr_value_pb2.AttrValue(type=p.dtype.as_datatype_enum)
    x, wrong = p.placeholder("x"), p.placeholder("wrong")
    shape = attr_value_pb2.AttrValue(shape=tf.TensorShape([3, 2]).as_proto())
    start = node(p, "_ParallelConcatStart", [], [p.dtype], shape=shape, dtype=kind)[0]
    rows = [node(p, "_ParallelConcatUpdate", [start, x[i:i + 1]], [p.dtype], name=f"row{i}", loc=attr_value_pb2.AttrValue(i=i), T=kind)[0] for i in range(3)]
    with tf.control_dependencies(rows):
        all_of = tf.identity(start)
    bad = node(p, "_ParallelConcatUpdate", [start, wrong], [p.dtype], name="bad", loc=attr_value_pb2.AttrValue(i=1), T=kind)[0]
    p.run([all_of], {x: p.values((3, 2))})
    p.run([bad], {wrong: p.values((1, 3))})
    p.run([bad], {wrong: p.values((2, 2))})
    p.run([bad], {wrong: p.values((2,))})


@program("SyncDevice IsTensorFloat32Enabled")
def device_state(p):
    sync, enabled = raw.SyncDevice(), node(p, "IsTensorFloat32Enabled", [], [tf.bool])
    p.run(targets=[sync])
    p.run(enabled)


@program("IsResourceHandleRefCounting")
def ref_counting(p):
    handles = [raw.VarHandleOp(dtype=tf.float32, shape=[2], shared_name="counted"), raw.AnonymousMutableHashTable(key_dtype=tf.int64, value_dtype=tf.int64)]
    p.run([node(p, "IsResourceHandleRefCounting", [h], [tf.bool], name=f"counted{i}")[0] for i, h in enumerate(handles)])


@program("KernelLabel KernelLabelRequired")
def kernel_labels(p):
    def labelled(op, label, inputs):
        with p.graph._kernel_label_map({op: label}):
            return node(p, op, inputs, [tf.string], name=f"{op}_{label}")[0]
    one = tf.constant([1])
    known = [labelled("KernelLabel", label, []) for label in ("", "overload_1", "overload_2")] + [labelled("KernelLabelRequired", "overload_1", [one])]
    p.run(known)


@program("StubResourceHandleOp ResourceInitializedOp ResourceCreateOp ResourceUsingOp")
def stub_resources(p):
    handle, absent = (test_ops.stub_resource_handle_op(container="stubs", shared_name=name) for name in ("here", "absent"))
    variable = raw.VarHandleOp(dtype=tf.float32, shape=[], shared_name="stub_variable")
    there = [test_ops.resource_initialized_op(h) for h in (handle, absent, variable, test_ops.stub_resource_handle_op())]
    create, create_variable = test_ops.resource_create_op(handle), test_ops.resource_create_op(variable)
    use = [test_ops.resource_using_op(h) for h in (handle, absent, variable)]
    destroy = raw.DestroyResourceOp(resource=handle)
    p.run(there)
    for target in [create, create] + use + [create_variable]:
        p.run(targets=[target])
    p.run(there)
    p.run(targets=[destroy])
    p.run(there)


@program("DevicePlacementOp TestAttr")
def placed(p):
    p.run([test_ops.device_placement_op(), test_ops.test_attr(T=tf.float32)])


@program("DtypeWithDefaultOp", types=PLAIN)
def type_name(p):
    x = p.placeholder("x")
    p.run([node(p, "DtypeWithDefaultOp", [x], [tf.string], T=attr_value_pb2.AttrValue(type=p.dtype.as_datatype_enum))[0]], {x: p.values((2,))})


@program("DummyIterationCounter")
def iteration_counter(p):
    p.run([tf.shape(raw.DummyIterationCounter())])


@program("Fact")
def fact(p):
    p.run([raw.Fact()])


@program("CheckPinned XlaSharding XlaOptimizationBarrier", types=[t for t in PLAIN if t != "string"])
def passed_on(p):
    kind = attr_value_pb2.AttrValue(type=p.dtype.as_datatype_enum)
    kinds = attr_value_pb2.AttrValue(list=attr_value_pb2.AttrValue.ListValue(type=[p.dtype.as_datatype_enum] * 2))
    x = p.placeholder("x")
    sharded, pinned = node(p, "XlaSharding", [x], [p.dtype], T=kind)[0], node(p, "CheckPinned", [x], [p.dtype], T=kind)[0]
    behind = node(p, "XlaOptimizationBarrier", [x, sharded], [p.dtype] * 2, T=kinds)
    for shape in ((2, 3), (), (0, 2)):
        p.run([sharded] + list(behind), {x: p.values(shape)})
    p.run([pinned], {x: p.values((2,))})
