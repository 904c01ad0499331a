"""Requests that are wrong in every way: each gets a status with a useful message, and the task serves on."""
import os
import random
import re
import socket
import struct
import time

import grpc
import pytest
from tensorflow.core.framework import attr_value_pb2, function_pb2

import counts
import wire
from cluster_process import Cluster
from wire import add, const, dtype, graph, message, node, tensor

pytestmark = pytest.mark.asan

OK, INVALID, NOT_FOUND, ABORTED = (grpc.StatusCode.OK, grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND, grpc.StatusCode.ABORTED)
UNIMPLEMENTED, EXHAUSTED, DEADLINE = grpc.StatusCode.UNIMPLEMENTED, grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.DEADLINE_EXCEEDED
INTERNAL, PRECONDITION, EXISTS = grpc.StatusCode.INTERNAL, grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.ALREADY_EXISTS
FLOAT, INT32, STRING, RESOURCE, VARIANT = 1, 3, 7, 20, 21
HUGE = 1 << 50
SANITIZER = {"ASAN_OPTIONS": "allocator_may_return_null=1:" + os.environ.get("ASAN_OPTIONS", "")}


@pytest.fixture(scope="module")
def cluster():
    with Cluster({"ps": 1, "worker": 1}, flags=["--session-timeout", "1"], environment=SANITIZER) as c:
        yield c
        for key, code in c.stop().items():
            assert code == 0, "%s ended with %d:\n%s" % (key, code, c.log[-5000:])


@pytest.fixture(scope="module")
def task(cluster):
    t = wire.Task(cluster.target("worker"))
    yield t
    t.close()


def assert_serves(cluster, task):
    for t in cluster.tasks.values():
        assert t.running, "%s is gone:\n%s" % (t.name, t.log[-5000:])
    nodes = [const("a", 2.0), const("b", 3.0, device="/job:ps/task:0"), add("c", "a", "b")]
    reply = task.run_graph(graph(*nodes), ["c:0"])
    assert reply.code == OK, reply
    assert struct.unpack("<f", wire.fetched(reply)[0].tensor_content) == (5.0,)


@pytest.fixture(autouse=True)
def still_serves(cluster, task):
    yield
    assert_serves(cluster, task)


def check(reply, codes, text=""):
    codes = codes if isinstance(codes, (list, tuple)) else [codes]
    assert reply.code in codes, reply
    if reply.code != OK:
        assert len(reply.message) > 5, "no message: %s" % (reply,)
        assert re.search(text, reply.message, re.I), "wanted '%s' in %s" % (text, reply)


# ---- Bytes ----


@pytest.mark.parametrize("method", wire.METHODS)
def test_bytes_that_are_no_message(task, method):
    for data in (b"\xff" * 40, b"\x0a", b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f", b"\x0a\x05ab", b"\x00\x00", b"\x07", b"\x80" * 30,
                 random.Random(1).randbytes(1000)):
        reply = task.call(method, data)
        assert reply.code not in (grpc.StatusCode.UNAVAILABLE, DEADLINE, grpc.StatusCode.UNKNOWN), (data, reply)
        if reply.code == INVALID:
            assert len(reply.message) > 5


@pytest.mark.parametrize("method", wire.METHODS)
def test_an_empty_request(task, method):
    reply = task.call(method)
    # TensorFlow's codes for members of collectives that say nothing of themselves.
    of_members = {"CompleteGroup": [grpc.StatusCode.INTERNAL], "CompleteInstance": [grpc.StatusCode.FAILED_PRECONDITION], "RecvBuf": [grpc.StatusCode.FAILED_PRECONDITION]}
    assert reply.code in (OK, INVALID, ABORTED, NOT_FOUND, UNIMPLEMENTED, *of_members.get(method.partition("/")[2], [])), reply


@pytest.mark.parametrize("method", ["MasterService/" + m for m in wire.MASTER if m not in ("CreateSession", "Reset")])
def test_an_unknown_session(task, method):
    reply = task.call(method, message(_1="no-such-session", **({"_2": b""} if "Make" in method else {})))
    check(reply, [ABORTED, INVALID], "no-such-session.*not found")


@pytest.mark.parametrize("method,session_field", [("RegisterGraph", 1), ("DeregisterGraph", 2), ("RunGraph", 8)])
def test_an_unknown_worker_session(task, method, session_field):
    check(task.call("WorkerService/" + method, wire.field(session_field, "no-such-session")), ABORTED, "Session handle is not found: no-such-session")


def test_an_unknown_graph(task):
    assert task.call("WorkerService/CreateWorkerSession", message(_1="unknown-graph")).code == OK
    for method, request in (("RunGraph", message(_1="nope", _8="unknown-graph")), ("DeregisterGraph", message(_1="nope", _2="unknown-graph"))):
        check(task.call("WorkerService/" + method, request), ABORTED, "Graph handle is not found: nope")
    check(task.call("WorkerService/CreateWorkerSession", message(_1="unknown-graph")), EXISTS, "unknown-graph")
    assert task.call("WorkerService/DeleteWorkerSession", message(_1="unknown-graph")).code == OK


def test_unknown_methods(task):
    for method in ("MasterService/Nope", "WorkerService/", "Nope/Nope"):
        check(task.call(method), UNIMPLEMENTED)


def test_unknown_fields_are_ignored(task):
    extra = message(_2000="more", _2001=7, _536870911=b"\xff\x00")
    reply = task.call("MasterService/CreateSession", message(_1=graph(const("a")).SerializeToString() + extra) + extra)
    check(reply, OK)
    handle = wire.read(reply.body)[1][0].decode()
    check(task.call("MasterService/RunStep", message(_1=handle, _3="a:0") + extra), OK)
    check(task.call("MasterService/CloseSession", message(_1=handle)), OK)


def test_wrong_wire_types_and_text_that_is_none(task):
    for data in (message(_1=5, _2=6), message(_1=b"\xff\xfe\x00\x01"), message(_1=b"\x00" * 100), message(_1="x" * 1_000_000)):
        for method in ("RunStep", "ExtendSession", "CloseSession", "ReleaseCallable"):
            check(task.call("MasterService/" + method, data), [ABORTED, INVALID])


def test_garbage_on_the_port(cluster):
    host, port = cluster.spec["worker"][0].split(":")
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    frames = [b"GET / HTTP/1.1\r\n\r\n", os.urandom(3000), preface, preface + b"\xff\xff\xff" + b"\x00" * 2000, preface + os.urandom(3000),
              preface + b"\x00\x00\x00\x04\x00\x00\x00\x00\x00" + b"\x00\x00\x05\x00\x00\x00\x00\x00\x01" + b"\x00\xff\xff\xff\xff"]
    for data in frames:
        with socket.create_connection((host, int(port)), 5) as s:
            s.sendall(data)
            s.settimeout(0.2)
            try:
                while s.recv(65536):
                    pass
            except OSError:
                pass


# ---- Graphs ----

TWO_TYPES = node("i", "Const", dtype=dtype(INT32), value=tensor(INT32, int_val=[1]))
BAD_GRAPHS = {
    "cycle": ([add("a", "b", "b"), add("b", "a", "a")], "a:0", INVALID, "cycle"),
    "node that feeds itself": ([add("a", "a", "a")], "a:0", INVALID, "cycle|itself"),
    "cycle of control edges": ([const("a"), node("b", "NoOp", ["^c"]), node("c", "NoOp", ["^b"]), node("d", "Identity", ["a", "^c"], T=dtype(1))],
                               "d:0", INVALID, "cycle"),
    "cycle over two tasks": ([add("a", "b", "b", device="/job:ps/task:0"), add("b", "a", "a", device="/job:worker/task:0")], "a:0", INVALID, "cycle"),
    "unknown op": ([node("a", "NoSuchOp")], "a:0", NOT_FOUND, "Op type not registered 'NoSuchOp'"),
    "empty op": ([node("a", "")], "a:0", [NOT_FOUND, INVALID], "a"),
    "no name": ([node("", "NoOp")], "a:0", INVALID, "name"),
    "name with a space": ([const("a b")], "a b:0", INVALID, "a b"),
    "name with a colon": ([const("a:0")], "a:0", INVALID, "a:0"),
    "name with a caret": ([const("^a")], "a:0", INVALID, "a"),
    "name twice": ([const("a"), const("a")], "a:0", [INVALID, EXISTS], "'?a'?"),
    "unknown input": ([add("a", "b", "c")], "a:0", INVALID, "'?b'?"),
    "output that is not there": ([const("a"), add("b", "a:7", "a")], "b:0", INVALID, "a"),
    "huge output number": ([const("a"), add("b", "a:99999999999999999999", "a")], "b:0", INVALID, "a"),
    "negative output number": ([const("a"), add("b", "a:-1", "a")], "b:0", INVALID, "a"),
    "empty input": ([add("b", "", "")], "b:0", INVALID, ""),
    "empty control input": ([const("a"), node("b", "Identity", ["a", "^"], T=dtype(1))], "b:0", INVALID, ""),
    "too few inputs": ([const("a"), node("b", "AddV2", ["a"], T=dtype(1))], "b:0", INVALID, "b"),
    "too many inputs": ([const("a"), node("b", "AddV2", ["a", "a", "a"], T=dtype(1))], "b:0", INVALID, "b"),
    "inputs of two types": ([const("a"), TWO_TYPES, add("b", "a", "i")], "b:0", INVALID, "b"),
    "type the op has not": ([node("a", "Placeholder", dtype=dtype(STRING)), node("b", "AddV2", ["a", "a"], T=dtype(RESOURCE))], "b:0", INVALID, "T|type|dtype"),
    "attribute missing": ([node("a", "Const", dtype=dtype(FLOAT))], "a:0", INVALID, "value"),
    "attribute of another kind": ([node("a", "Const", dtype=dtype(FLOAT), value=7)], "a:0", INVALID, "value"),
    "type that does not exist": ([node("a", "Const", dtype=dtype(99), value=tensor(99))], "a:0", INVALID, ""),
    "constant of another type": ([node("a", "Const", dtype=dtype(INT32), value=tensor(FLOAT, float_val=[1.0]))], "a:0", INVALID, ""),
    "absurd N": ([const("a"), node("b", "AddN", ["a"], T=dtype(1), N=1 << 60)], "b:0", INVALID, "b"),
    "negative N": ([const("a"), node("b", "AddN", ["a"], T=dtype(1), N=-1)], "b:0", INVALID, "b|N"),
    "job that is not there": ([const("a", device="/job:nope")], "a:0", INVALID, "/job:nope"),
    "task that is not there": ([const("a", device="/job:ps/task:99")], "a:0", INVALID, "/job:ps/task:99|/job:ps/replica:0/task:99"),
    "device that is no device": ([const("a", device="rubbish")], "a:0", INVALID, "rubbish"),
    "device of slashes": ([const("a", device="/" * 10000)], "a:0", INVALID, "device"),
    "device with a huge number": ([const("a", device="/job:ps/task:99999999999999999999")], "a:0", INVALID, "999"),
    "device that is no GPU": ([const("a", device="/job:worker/task:0/device:GPU:0")], "a:0", INVALID, "GPU"),
    "colocated with nothing": ([node("a", "Const", dtype=dtype(1), value=tensor(float_val=[1.0]), _class=attr_value_pb2.AttrValue(
        list=attr_value_pb2.AttrValue.ListValue(s=[b"loc:@nothing"])))], "a:0", [OK, INVALID], "nothing"),
    "Merge without a Switch": ([const("a"), node("b", "Merge", ["a", "b"], T=dtype(1), N=2)], "b:0", [INVALID, OK], ""),
    "NextIteration without a frame": ([const("a"), node("m", "Merge", ["a", "n"], T=dtype(1), N=2), node("n", "NextIteration", ["m"], T=dtype(1))],
                                      "m:0", INVALID, "n.*loop"),
    "Exit without a frame": ([const("a"), node("b", "Exit", ["a"], T=dtype(1))], "b:0", INVALID, "Invalid Exit op.*\\s.*node b"),
    "Enter without a frame name": ([const("a"), node("b", "Enter", ["a"], T=dtype(1))], "b:0", INVALID, "frame_name"),
    "fetch from inside a loop": ([const("a"), node("b", "Enter", ["a"], T=dtype(1), frame_name=b"f")], "b:0", [OK, INVALID, INTERNAL], ""),
}


@pytest.mark.parametrize("name", BAD_GRAPHS)
def test_a_bad_graph(task, name):
    nodes, fetch, codes, text = BAD_GRAPHS[name]
    check(task.run_graph(graph(*nodes), [fetch]), codes, text)


def test_an_extension_that_fails_leaves_the_session_as_it_was(task):
    with task.session(const("a", 4.0)) as handle:
        for bad in (graph(const("a")), graph(add("b", "a", "nope")), graph(add("b", "c", "c"), add("c", "b", "b"))):
            reply = task.call("MasterService/ExtendSession", message(_1=handle, _2=bad))
            check(reply, [INVALID, EXISTS, OK])
        check(task.call("MasterService/ExtendSession", message(_1=handle, _2=graph(const("z")), _3=77)), ABORTED, "version")
        assert task.run(handle, ["a:0"]).code == OK


# ---- Tensors ----

BAD_TENSORS = {
    "content too short": (tensor(FLOAT, [2], tensor_content=b"\0\0\0"), INVALID, ""),
    "content too long": (tensor(FLOAT, [2], tensor_content=b"\0" * 12), INVALID, ""),
    "more values than elements": (tensor(FLOAT, [2], float_val=[1, 2, 3]), [INVALID, OK], ""),
    "values of another type": (tensor(FLOAT, [2], int_val=[1, 2]), [INVALID, OK], ""),
    "negative dimension": (tensor(FLOAT, [-5]), INVALID, ""),
    "two negative dimensions": (tensor(FLOAT, [-5, -5], float_val=[1.0]), INVALID, ""),
    "dimension of -2^63": (tensor(FLOAT, [-(1 << 63), 2]), INVALID, ""),
    "huge dimension": (tensor(FLOAT, [HUGE], float_val=[1.0]), [INVALID, EXHAUSTED], ""),
    "product over 2^64": (tensor(FLOAT, [1 << 33, 1 << 33], float_val=[1.0]), [INVALID, EXHAUSTED], ""),
    "product that wraps to 0": (tensor(FLOAT, [1 << 32, 1 << 32], tensor_content=b""), [INVALID, EXHAUSTED], ""),
    "bytes that wrap": (tensor(9, [1 << 61], tensor_content=b""), [INVALID, EXHAUSTED], ""),
    "300 dimensions": (tensor(FLOAT, [1] * 300, float_val=[1.0]), INVALID, ""),
    "huge strings": (tensor(STRING, [HUGE], string_val=[b"a"]), [INVALID, EXHAUSTED], ""),
    "string lengths cut off": (tensor(STRING, [2], tensor_content=b"\xff\xff\xff"), INVALID, ""),
    "string length beyond the end": (tensor(STRING, [1], tensor_content=b"\x7fab"), INVALID, ""),
    "string length of 2^63": (tensor(STRING, [1], tensor_content=b"\xff\xff\xff\xff\xff\xff\xff\xff\x7f"), INVALID, ""),
    "type 0": (tensor(0, []), INVALID, ""),
    "type 99": (tensor(99, []), INVALID, ""),
    "type of a reference": (tensor(101, [], float_val=[1.0]), INVALID, ""),
    "resource of rubbish": (tensor(RESOURCE, [1], tensor_content=b"\x05\xff\xff\xff\xff\xff"), INVALID, ""),
    "variant of rubbish": (tensor(VARIANT, [1], tensor_content=b"\x05\xff\xff\xff\xff\xff"), [INVALID, UNIMPLEMENTED], ""),
    "no bytes at all": (b"", [INVALID], ""),
    "rubbish": (b"\xff\xff\xff", INVALID, ""),
}


@pytest.mark.parametrize("name", BAD_TENSORS)
def test_a_bad_tensor_is_refused_where_it_is_fed(task, name):
    value, codes, text = BAD_TENSORS[name]
    kind = value.dtype if not isinstance(value, bytes) and value.dtype in (FLOAT, 9, STRING, RESOURCE, VARIANT) else FLOAT
    with task.session(node("x", "Placeholder", dtype=dtype(kind)), node("y", "Identity", ["x"], T=dtype(kind))) as handle:
        reply = task.run(handle, targets=["y"], feeds=[("x:0", value)])
        check(reply, codes, text)
        if reply.code != OK:
            assert "x" in reply.message, reply


@pytest.mark.parametrize("name", [n for n, t in BAD_TENSORS.items() if not isinstance(t[0], bytes)])
def test_a_bad_tensor_is_refused_as_a_constant(task, name):
    value, codes, text = BAD_TENSORS[name]
    n = node("c", "Const", dtype=dtype(value.dtype), value=value)
    check(task.run_graph(graph(n), targets=["c"]), codes, text)


def nested_variant(depth):
    """VariantTensorDataProto{tensors{variant_val{tensors{...}}}} as bytes."""
    data = wire.field(1, "tensorflow::TensorList")
    for _ in range(depth):
        data = wire.field(1, "tensorflow::TensorList") + wire.field(3, message(_1=VARIANT, _2=b"") + wire.field(15, data))
    return message(_1=VARIANT, _2=b"") + wire.field(15, data)


@pytest.mark.parametrize("depth", [10, 2000])
def test_deeply_nested_variants(task, depth):
    with task.session(node("x", "Placeholder", dtype=dtype(VARIANT)), node("y", "Identity", ["x"], T=dtype(VARIANT))) as handle:
        check(task.run(handle, targets=["y"], feeds=[("x:0", nested_variant(depth))]), [OK, INVALID, UNIMPLEMENTED])


def test_tensors_that_are_too_large_at_run_time(task):
    dims = node("d", "Const", dtype=dtype(9), value=tensor(9, [1], int64_val=[HUGE]))
    product = node("p", "Const", dtype=dtype(9), value=tensor(9, [2], int64_val=[1 << 40, 1 << 40]))
    minus = node("m", "Const", dtype=dtype(9), value=tensor(9, [1], int64_val=[-3]))
    for shape in ("d", "p", "m"):
        for op in (node("f", "Fill", [shape, "v"], T=dtype(1), index_type=dtype(9)),
                   node("f", "BroadcastTo", ["v", shape], T=dtype(1), Tidx=dtype(9)),
                   node("f", "RandomUniform", [shape], T=dtype(9), dtype=dtype(1)),
                   node("f", "Reshape", ["v", shape], T=dtype(1), Tshape=dtype(9))):
            check(task.run_graph(graph(dims, product, minus, const("v"), op), targets=["f"]), [INVALID, EXHAUSTED], "f")


# ---- Steps ----


def test_feeds_and_fetches_that_are_not_there(task):
    with task.session(const("a"), node("x", "Placeholder", dtype=dtype(1)), node("y", "Identity", ["x"], T=dtype(1)), node("n", "NoOp")) as handle:
        one = tensor(float_val=[1.0])
        check(task.run(handle), INVALID)
        check(task.run(handle, ["nope:0"]), NOT_FOUND, "nope")
        check(task.run(handle, ["a:5"]), [INVALID, NOT_FOUND], "a")
        check(task.run(handle, ["a:-1"]), [INVALID, NOT_FOUND], "a")
        check(task.run(handle, ["a:99999999999999999999"]), [INVALID, NOT_FOUND], "a")
        check(task.run(handle, [""]), [INVALID, NOT_FOUND])
        check(task.run(handle, ["^a"]), [INVALID, NOT_FOUND])
        check(task.run(handle, ["n:0"]), [INVALID, NOT_FOUND], "n")
        check(task.run(handle, targets=["nope"]), NOT_FOUND, "nope")
        check(task.run(handle, targets=[""]), [INVALID, NOT_FOUND])
        check(task.run(handle, ["a:0"], [("nope:0", one)]), NOT_FOUND, "nope")
        check(task.run(handle, ["y:0"], [("x:0", one), ("x:0", one)]), INVALID, "x:0")
        check(task.run(handle, ["x:0"], [("x:0", one)]), INVALID, "x:0 is both fed and fetched")
        check(task.run(handle, ["y:0"]), INVALID, "You must feed a value for placeholder tensor 'x'")
        check(task.run(handle, ["y:0"], [("x:0", tensor(INT32, int_val=[1]))]), INVALID, "x")
        check(task.run(handle, ["y:0"], [("x:0", tensor(STRING, string_val=[b"a"]))]), INVALID, "x")
        check(task.run(handle, ["y:0"], [("x:0", one)]), OK)
        check(task.run(handle, ["a:0"] * 3), [OK, INVALID])


def test_a_fed_shape_that_does_not_fit(task):
    shape = attr_value_pb2.AttrValue()
    shape.shape.dim.add(size=2)
    nodes = [node("x", "Placeholder", dtype=dtype(1), shape=shape), const("a"), node("m", "MatMul", ["x", "x"], T=dtype(1))]
    with task.session(*nodes) as handle:
        check(task.run(handle, ["m:0"], [("x:0", tensor(FLOAT, [3], float_val=[1.0]))]), INVALID, "m|x")


def test_fetches_that_have_no_plain_value(task):
    nodes = [node("v", "VarHandleOp", dtype=dtype(1), shape=attr_value_pb2.AttrValue(), shared_name=b"v"), node("r", "VariableV2", dtype=dtype(1), shape=scalar()),
             const("one"), node("assign", "Assign", ["r", "one"], T=dtype(1)),
             node("s", "Const", dtype=dtype(INT32), value=tensor(INT32, [0])), node("e", "Const", dtype=dtype(INT32), value=tensor(INT32, int_val=[3])),
             node("l", "EmptyTensorList", ["s", "e"], element_dtype=dtype(1), shape_type=dtype(INT32)),
             node("q", "FIFOQueueV2", component_types=[FLOAT]), node("q1", "FIFOQueue", component_types=[FLOAT])]
    with task.session(*nodes) as handle:
        check(task.run(handle, ["r:0"]), PRECONDITION, "uninitialized")
        check(task.run(handle, ["assign:0"]), OK)
        assert wire.fetched(task.run(handle, ["r:0"]))[0].dtype == FLOAT
        for name in ("v:0", "l:0", "q:0", "q1:0"):
            check(task.run(handle, [name]), [OK, INVALID, NOT_FOUND, UNIMPLEMENTED], name[0])


def scalar():
    value = attr_value_pb2.AttrValue()
    value.shape.SetInParent()
    return value


def test_partial_runs_and_callables_that_are_wrong(task):
    nodes = [node("x", "Placeholder", dtype=dtype(1)), node("y", "Identity", ["x"], T=dtype(1))]
    one = tensor(float_val=[1.0])
    with task.session(*nodes) as handle:
        check(task.call("MasterService/PartialRunSetup", message(_1=handle, _3="nope:0")), NOT_FOUND, "nope")
        check(task.call("MasterService/RunStep", message(_1=handle, _3="y:0", _6="17")), INVALID, "Must run PartialRunSetup")
        setup = task.call("MasterService/PartialRunSetup", message(_1=handle, _2="x:0", _3="y:0"))
        check(setup, OK)
        part = wire.read(setup.body)[1][0]
        check(task.call("MasterService/RunStep", message(_1=handle, _3="y:0", _6=part)), INVALID, "Fetch x:0 can't be computed")  # TensorFlow names the feed
        check(task.call("MasterService/RunStep", message(_1=handle, _2=message(_1="z:0", _2=one), _6=part)), INVALID, "z")
        check(task.call("MasterService/MakeCallable", message(_1=handle)), INVALID)
        check(task.call("MasterService/MakeCallable", message(_1=handle, _2=message(_2="nope:0"))), NOT_FOUND, "nope")
        check(task.call("MasterService/RunCallable", message(_1=handle, _2=99)), INVALID, "99")
        check(task.call("MasterService/ReleaseCallable", message(_1=handle, _2=99)), INVALID, "99")
        made = task.call("MasterService/MakeCallable", message(_1=handle, _2=message(_1="x:0", _2="y:0")))
        check(made, OK)
        number = wire.read(made.body).get(1, [0])[0]
        check(task.call("MasterService/RunCallable", message(_1=handle, _2=number)), INVALID, "feed")
        check(task.call("MasterService/RunCallable", message(_1=handle, _2=number, _3=b"\xff")), INVALID)
        check(task.call("MasterService/RunCallable", message(_1=handle, _2=number, _3=one)), OK)


def test_the_same_request_twice(task):
    with task.session(const("a")) as handle:
        request = message(_1=handle, _3="a:0", _8=4711)
        check(task.call("MasterService/RunStep", request), OK)
        check(task.call("MasterService/RunStep", request), ABORTED, "received twice")


def test_graphs_that_are_wide_and_deep(task):
    fan = [const("a")] + [node("n%d" % i, "NoOp") for i in range(1000)]
    fan.append(node("z", "Identity", ["a"] + ["^n%d" % i for i in range(1000)], T=dtype(1)))
    check(task.run_graph(graph(*fan), ["z:0"]), OK)
    many = [const("c%d" % i) for i in range(1000)]
    check(task.run_graph(graph(*many), ["c%d:0" % i for i in range(1000)]), OK)


def test_a_graph_of_100_000_nodes(task):
    nodes = [const("one"), node("n0", "Identity", ["one"], T=dtype(1))]
    nodes += [add("n%d" % i, "n%d" % (i - 1), "one") for i in range(1, 100_000)]
    nodes.reverse()
    reply = task.run_graph(graph(*nodes), ["n99999:0"])
    check(reply, OK)
    assert struct.unpack("<f", wire.fetched(reply)[0].tensor_content) == (100_000.0,)
    # The same with a cycle at its far end.
    nodes[-2].input[0] = "n99999"
    check(task.run_graph(graph(*nodes), ["n99999:0"]), INVALID, "cycle")


# ---- Functions ----


def function(name, *nodes, out="", arg=True):
    f = function_pb2.FunctionDef()
    f.signature.name = name
    if arg:
        f.signature.input_arg.add(name="x", type=FLOAT)
    f.signature.output_arg.add(name="y", type=FLOAT)
    f.node_def.extend(nodes)
    f.ret["y"] = out
    return f


def call(name, target, x, op="PartitionedCall"):
    return node(name, op, [x], f=attr_value_pb2.NameAttrList(name=target), Tin=[FLOAT], Tout=[FLOAT])


def run_functions(task, *functions, target="f", op="PartitionedCall"):
    return task.run_graph(graph(const("a"), call("c", target, "a", op), functions=functions), ["c:0"])


@pytest.mark.parametrize("op", ["PartitionedCall", "StatefulPartitionedCall"])
def test_functions_that_call_themselves(task, op):
    check(run_functions(task, function("f", call("c", "f", "x", op), out="c:output:0"), op=op), [INVALID, EXHAUSTED, UNIMPLEMENTED], "f")
    pair = function("f", call("c", "g", "x", op), out="c:output:0"), function("g", call("c", "f", "x", op), out="c:output:0")
    check(run_functions(task, *pair, op=op), [INVALID, EXHAUSTED, UNIMPLEMENTED], "f|g")


def test_a_function_called_by_its_name_that_calls_itself(task):
    f = function("f", node("c", "f", ["x"]), out="c:y:0")
    check(task.run_graph(graph(const("a"), node("c", "f", ["a"]), functions=[f]), ["c:0"]), [INVALID, EXHAUSTED, UNIMPLEMENTED], "f")


def test_a_branch_that_calls_its_own_if(task):
    def branch(name):
        cond = node("t", "Const", dtype=dtype(10), value=tensor(10, bool_val=[True]))
        again = node("c", "If", ["t:output:0", "x"], then_branch=attr_value_pb2.NameAttrList(name="f"), else_branch=attr_value_pb2.NameAttrList(name="g"),
                     Tcond=dtype(10), Tin=[FLOAT], Tout=[FLOAT])
        return function(name, cond, again, out="c:output:0")
    check(run_functions(task, branch("f"), branch("g")), [INVALID, EXHAUSTED, UNIMPLEMENTED], "f|g")


def test_functions_nested_deeply(task):
    last = function("f999", node("i", "Identity", ["x"], T=dtype(1)), out="i:output:0")
    chain = [function("f%d" % i, call("c", "f%d" % (i + 1), "x"), out="c:output:0") for i in range(999)]
    check(run_functions(task, last, *chain, target="f0"), [OK, INVALID, EXHAUSTED], "f")
    tree = [function("f%d" % i, call("c", "f%d" % (i + 1), "x"), call("d", "f%d" % (i + 1), "c:output:0"), out="d:output:0") for i in range(40)]
    leaf = function("f40", node("i", "Identity", ["x"], T=dtype(1)), out="i:output:0")
    check(run_functions(task, leaf, *tree, target="f0"), [INVALID, EXHAUSTED], "f|function|nodes")


BAD_FUNCTIONS = {
    "result that is not there": function("f", out="nope:output:0"),
    "result without a name": function("f", out=""),
    "result of an output that is not there": function("f", node("i", "Identity", ["x"], T=dtype(1)), out="i:nope:0"),
    "result with a huge number": function("f", node("i", "Identity", ["x"], T=dtype(1)), out="i:output:99999999999999"),
    "unknown op": function("f", node("i", "NoSuchOp", ["x"]), out="i:output:0"),
    "unknown input": function("f", node("i", "Identity", ["nope"], T=dtype(1)), out="i:output:0"),
    "cycle": function("f", node("i", "Identity", ["j:output:0"], T=dtype(1)), node("j", "Identity", ["i:output:0"], T=dtype(1)), out="i:output:0"),
    "node twice": function("f", node("i", "Identity", ["x"], T=dtype(1)), node("i", "Identity", ["x"], T=dtype(1)), out="i:output:0"),
    "no argument": function("f", node("i", "Identity", ["x"], T=dtype(1)), out="i:output:0", arg=False),
    "unknown function inside": function("f", call("c", "nope", "x"), out="c:output:0"),
    "unknown attribute placeholder": function("f", node("i", "Identity", ["x"], T=attr_value_pb2.AttrValue(placeholder="Q")), out="i:output:0"),
}


@pytest.mark.parametrize("name", BAD_FUNCTIONS)
def test_a_bad_function(task, name):
    check(run_functions(task, BAD_FUNCTIONS[name]), [INVALID, NOT_FOUND, UNIMPLEMENTED], "f|nope|NoSuchOp|cycle")


def test_calls_of_functions_that_are_not_there(task):
    check(run_functions(task), [INVALID, NOT_FOUND], "f")
    loop = node("w", "While", ["a"], cond=attr_value_pb2.NameAttrList(name="nope"), body=attr_value_pb2.NameAttrList(name="nope2"), T=[FLOAT])
    check(task.run_graph(graph(const("a"), loop), ["w:0"]), [INVALID, NOT_FOUND], "nope")
    f = function("f", node("i", "Identity", ["x"], T=dtype(1)), out="i:output:0")
    two = node("c", "PartitionedCall", ["a", "a"], f=attr_value_pb2.NameAttrList(name="f"), Tin=[FLOAT, FLOAT], Tout=[FLOAT])
    check(task.run_graph(graph(const("a"), two, functions=[f]), ["c:0"]), INVALID, "f|c")
    other = function("f", const("k"), out="k:output:0")
    check(task.create(graph(const("a"), functions=[f, other])), [INVALID, EXISTS], "f")


def test_attributes_nested_deeply(task):
    """AttrValue{func{attr{value{func{...}}}}}, 2,000 deep."""
    value = wire.field(3, 1)
    for _ in range(2000):
        value = wire.field(10, message(_1="f", _2=message(_1="a", _2=value)))
    body = const("a").SerializeToString() + wire.field(5, message(_1="_nested", _2=value))
    check(task.run_graph(wire.field(1, body), ["a:0"]), [OK, INVALID])


# ---- Sessions and configuration ----


def test_configurations_that_are_wrong(task):
    g = graph(const("a"))
    check(task.create(g, message(_4="rubbish")), INVALID, "rubbish")
    check(task.create(g, message(_4="/job:ps/task:x")), INVALID, "task:x")
    check(task.create(g, b"\xff\xff"), INVALID)
    for address in ("", "nohost", ":", "host:port", "host:99999999"):
        cluster_def = message(_1=message(_1="worker", _2=message(_1=0, _2=address)))
        check(task.create(g, message(_14=cluster_def)), INVALID)
    check(task.create(g, message(_14=message(_1=message(_1="worker", _2=message(_1=-5, _2="127.0.0.1:1"))))), INVALID)
    check(task.create(b"\xff\xff\xff"), INVALID)
    check(task.create(b"\x0a\xff\xff\xff\xff\x7f"), INVALID)


def test_filters_that_leave_nothing_but_the_master(task):
    reply = task.run_graph(graph(const("a")), ["a:0"], config=message(_4="/job:nobody"))
    check(reply, OK)
    reply = task.run_graph(graph(const("a", device="/job:ps/task:0")), ["a:0"], config=message(_4="/job:worker"))
    check(reply, INVALID, "/job:ps")


# ---- Rendezvous ----

DEVICE = "/job:worker/replica:0/task:0/device:CPU:0"


@pytest.mark.parametrize("key", ["", ";", ";;;;", "a;b;c;d;e", DEVICE, ";".join([DEVICE, "xyz", DEVICE, "t", "0:0"]), ";".join([DEVICE, "0" * 16, DEVICE, "t"]),
                                 ";".join([DEVICE, "0" * 16, DEVICE, "t", "0"]), ";".join([DEVICE, "0" * 400, DEVICE, "t", "0:0"]),
                                 ";".join(["nowhere", "0" * 16, DEVICE, "t", "0:0"]), "x" * 1_000_000, "\0"])
def test_a_bad_rendezvous_key(task, key):
    check(task.call("WorkerService/RecvTensor", message(_1=1, _2=key)), [INVALID, ABORTED], "key|incarnation")


def test_a_tensor_of_a_task_that_was_another(task):
    key = ";".join([DEVICE, "%016x" % 12345, DEVICE, "edge_1", "0:0"])
    check(task.call("WorkerService/RecvTensor", message(_1=1, _2=key)), ABORTED, "incarnation.*restarted")


def incarnation(task):
    attributes = wire.read(task.call("WorkerService/GetStatus").body)[1][0]
    at = attributes.index(b"\x31")  # field 6, fixed64
    return struct.unpack_from("<Q", attributes, at + 1)[0]


def test_a_tensor_that_never_comes_and_one_asked_for_twice(cluster, task):
    key = ";".join([DEVICE, "%016x" % incarnation(task), DEVICE, "edge_1", "0:0"])
    for step in range(100, 110):
        check(task.call("WorkerService/RecvTensor", message(_1=step, _2=key), seconds=0.05), DEADLINE)
    counts.wait_for(cluster.target(), steps_held=0, calls_in=0)
    first = task.channel.unary_unary("/tensorflow.WorkerService/RecvTensor").future(message(_1=200, _2=key), timeout=20)
    second = task.channel.unary_unary("/tensorflow.WorkerService/RecvTensor").future(message(_1=200, _2=key), timeout=20)
    counts.wait_for(cluster.target(), steps_held=1)
    check(task.call("WorkerService/CleanupGraph", message(_1=200)), OK)
    for waiting in (first, second):
        assert waiting.code() in (ABORTED, INTERNAL, INVALID), waiting.details()
    counts.wait_for(cluster.target(), steps_held=0, calls_in=0)


# ---- At the worker ----


def test_graphs_registered_wrongly(task):
    check(task.call("WorkerService/CreateWorkerSession", message(_1="w")), OK)
    cpu = {"device": DEVICE}
    bad = {
        "cycle": graph(add("a", "b", "b", **cpu), add("b", "a", "a", **cpu)),
        "op": graph(node("a", "NoSuchOp", **cpu)),
        "device": graph(const("a", device="/job:ps/replica:0/task:0/device:CPU:0")),
        "no device": graph(const("a")),
        "send": graph(const("a", **cpu), node("s", "_Send", ["a"], T=dtype(1), **cpu)),
        "recv": graph(node("r", "_Recv", tensor_type=dtype(1), tensor_name=b"t", send_device=b"rubbish", recv_device=b"", send_device_incarnation=1, **cpu)),
        "placeholder": graph(node("a", "Placeholder", dtype=dtype(1), **cpu)),
        "bytes": b"\xff\xff",
    }
    for name, g in bad.items():
        reply = task.call("WorkerService/RegisterGraph", message(_1="w", _2=g, _6=True))
        assert reply.code in (OK, INVALID, NOT_FOUND, INTERNAL), (name, reply)
        if reply.code == OK:
            run = message(_1=wire.read(reply.body)[1][0], _2=300, _8="w", _10=True)
            assert task.call("WorkerService/RunGraph", run, seconds=1).code != grpc.StatusCode.UNAVAILABLE
            check(task.call("WorkerService/CleanupGraph", message(_1=300)), OK)
    good = task.call("WorkerService/RegisterGraph", message(_1="w", _2=graph(const("a", **cpu)), _6=True))
    check(good, OK)
    handle = wire.read(good.body)[1][0]
    check(task.call("WorkerService/RunGraph", message(_1=handle, _2=301, _4="no;key", _8="w")), [INVALID, INTERNAL])
    check(task.call("WorkerService/RunGraph", message(_1=handle, _2=302, _3=message(_1="k", _2=b"\xff"), _8="w")), INVALID)
    check(task.call("WorkerService/RunGraph", message(_1=handle, _2=303, _7=True, _6=True, _4=["a", "b"], _8="w"), seconds=1), [INVALID, INTERNAL, DEADLINE, ABORTED])
    for step in (301, 302, 303):
        check(task.call("WorkerService/CleanupGraph", message(_1=step)), OK)
    check(task.call("WorkerService/DeleteWorkerSession", message(_1="w")), OK)


# ---- Fuzz ----

FUZZ_REQUESTS, FUZZ_SECONDS, SEED = 2000, 20, 20240229


def mutate(rng, data):
    """One to four small changes."""
    data = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(data) + 1)
        change = rng.randrange(6)
        if change == 0 and data:
            data[at % len(data)] ^= 1 << rng.randrange(8)
        elif change == 1 and data:
            data[at % len(data)] = rng.choice((0, 1, 0x7F, 0x80, 0xFF))
        elif change == 2:
            del data[at:]
        elif change == 3:
            del data[at:at + rng.randint(1, 8)]
        elif change == 4:
            data[at:at] = rng.randbytes(rng.randint(1, 8))
        else:
            other = rng.randrange(len(data) + 1)
            data[at:at] = data[other:other + rng.randint(1, 30)]
    return bytes(data)


def corpus(handle, worker_handle, graph_handle, key):
    f = function("f", node("i", "Identity", ["x"], T=dtype(1)), out="i:output:0")
    g = graph(const("a"), const("b", device="/job:ps/task:0"), add("c", "a", "b"), call("d", "f", "c"), node("x", "Placeholder", dtype=dtype(1)),
              node("y", "Identity", ["x"], T=dtype(1)), functions=[f])
    feed = message(_1="x:0", _2=tensor(FLOAT, [2], tensor_content=b"\0" * 8))
    return [
        ("MasterService/CreateSession", message(_1=g, _2=message(_4=["/job:ps", "/job:worker"], _7=True))),
        ("MasterService/ExtendSession", message(_1=handle, _2=graph(const("e"), add("e2", "e", "a")), _3=0)),
        ("MasterService/RunStep", message(_1=handle, _2=feed, _3=["y:0", "d:0"], _4=["c"], _5=message(_1=3, _2=500, _5=True), _7=True)),
        ("MasterService/PartialRunSetup", message(_1=handle, _2="x:0", _3="y:0")),
        ("MasterService/MakeCallable", message(_1=handle, _2=message(_1="x:0", _2="y:0", _3="c"))),
        ("MasterService/RunCallable", message(_1=handle, _2=0, _3=tensor(float_val=[1.0]))),
        ("MasterService/ListDevices", message(_1=handle)),
        ("WorkerService/CreateWorkerSession", message(_1="fuzz", _2=message(_2="worker", _3=0), _5="/job:x/replica:0/task:0", _6=5)),
        ("WorkerService/RegisterGraph", message(_1=worker_handle, _2=graph(const("a", device=DEVICE)), _6=True)),
        ("WorkerService/RunGraph", message(_1=graph_handle, _2=77, _3=message(_1=key, _2=tensor(float_val=[1.0])), _5=message(_3=True), _8=worker_handle, _10=True)),
        ("WorkerService/RecvTensor", message(_1=78, _2=key)),
        ("WorkerService/CleanupAll", message(_1="container")),
        ("WorkerService/Logging", message(_1=True, _3=[1, 2])),
    ], g


@pytest.mark.time_limit(180)
def test_mutated_requests(cluster, task, capsys):
    rng = random.Random(SEED)
    check(task.call("WorkerService/CreateWorkerSession", message(_1="fuzz-worker")), OK)
    registered = task.call("WorkerService/RegisterGraph", message(_1="fuzz-worker", _2=graph(const("a", device=DEVICE)), _6=True))
    key = ";".join([DEVICE, "%016x" % incarnation(task), DEVICE, "edge_1", "0:0"])
    requests, g = corpus("", "fuzz-worker", wire.read(registered.body)[1][0], key)
    created = task.create(g)
    check(created, OK)
    requests, _ = corpus(wire.read(created.body)[1][0].decode(), "fuzz-worker", wire.read(registered.body)[1][0], key)
    codes, end, sent = {}, time.monotonic() + FUZZ_SECONDS, 0
    while sent < FUZZ_REQUESTS and time.monotonic() < end:
        method, data = rng.choice(requests)
        data = mutate(rng, data)
        reply = task.call(method, data, seconds=0.1 if method.endswith(("RecvTensor", "RunGraph")) else 5)
        assert reply.code != grpc.StatusCode.UNAVAILABLE or all(t.running for t in cluster.tasks.values()), \
            "request %d, %s %s:\n%s" % (sent, method, data.hex(), cluster.log[-5000:])
        codes[reply.code.name] = codes.get(reply.code.name, 0) + 1
        sent += 1
    with capsys.disabled():
        print("\n%d mutated requests: %s" % (sent, codes))
    assert sent > 200
    for t in cluster.tasks.values():
        assert t.running, t.log[-5000:]
    check(task.call("WorkerService/DeleteWorkerSession", message(_1="fuzz-worker")), OK)
    check(task.call("MasterService/Reset"), OK)
