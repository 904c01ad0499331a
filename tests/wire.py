"""Requests of MasterService and WorkerService as plain bytes, right and wrong, and a channel to send them."""
import collections
import contextlib

import grpc
from tensorflow.core.framework import attr_value_pb2, graph_pb2, node_def_pb2, tensor_pb2, types_pb2

MASTER = ("CreateSession", "ExtendSession", "PartialRunSetup", "RunStep", "CloseSession", "ListDevices", "Reset", "MakeCallable",
          "RunCallable", "ReleaseCallable")
WORKER = ("GetStatus", "CreateWorkerSession", "DeleteWorkerSession", "RegisterGraph", "DeregisterGraph", "RunGraph", "CleanupGraph",
          "CleanupAll", "RecvTensor", "MarkRecvFinished", "Logging", "Tracing", "RecvBuf", "CompleteGroup", "CompleteInstance", "GetStepSequence")
METHODS = ["MasterService/" + m for m in MASTER] + ["WorkerService/" + m for m in WORKER]
NO_LIMIT = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]

Reply = collections.namedtuple("Reply", "code message body")


# ---- protobuf by hand ----


def varint(value):
    out, value = b"", value & (1 << 64) - 1
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def field(number, value):
    """One field: bytes, text and messages with their length, numbers as varints, lists as repeated fields."""
    if isinstance(value, list):
        return b"".join(field(number, v) for v in value)
    if isinstance(value, (bool, int)):
        return varint(number << 3) + varint(int(value))
    if isinstance(value, str):
        value = value.encode()
    elif not isinstance(value, bytes):
        value = value.SerializeToString()
    return varint(number << 3 | 2) + varint(len(value)) + value


def message(**fields):
    """message(_1="x", _2=3): fields by number."""
    return b"".join(field(int(k[1:]), v) for k, v in fields.items())


def read(data):
    """Field number to the values of a flat message."""
    out, i = collections.defaultdict(list), 0

    def number():
        nonlocal i
        value = shift = 0
        while True:
            value |= (data[i] & 127) << shift
            shift, i = shift + 7, i + 1
            if data[i - 1] < 128:
                return value

    while i < len(data):
        tag = number()
        if tag & 7 == 2:
            length = number()
            out[tag >> 3].append(data[i:i + length])
            i += length
        else:
            assert tag & 7 == 0, data
            out[tag >> 3].append(number())
    return out


# ---- graphs ----


def tensor(dtype=types_pb2.DT_FLOAT, shape=(), **fields):
    t = tensor_pb2.TensorProto(dtype=dtype, **fields)
    for size in shape:
        t.tensor_shape.dim.add(size=size)
    t.tensor_shape.SetInParent()
    return t


def attr(value):
    a = attr_value_pb2.AttrValue()
    if isinstance(value, attr_value_pb2.AttrValue):
        return value
    if isinstance(value, tensor_pb2.TensorProto):
        a.tensor.CopyFrom(value)
    elif isinstance(value, attr_value_pb2.NameAttrList):
        a.func.CopyFrom(value)
    elif isinstance(value, bool):
        a.b = value
    elif isinstance(value, int):
        a.i = value
    elif isinstance(value, bytes):
        a.s = value
    elif isinstance(value, list):
        a.list.type.extend(value)
        a.list.SetInParent()
    return a


def dtype(number):
    return attr_value_pb2.AttrValue(type=number)


def node(name, op, inputs=(), device="", **attrs):
    n = node_def_pb2.NodeDef(name=name, op=op, device=device)
    n.input.extend(inputs)
    for key, value in attrs.items():
        n.attr[key].CopyFrom(attr(value))
    return n


def const(name, value=1.0, **more):
    return node(name, "Const", dtype=dtype(1), value=tensor(float_val=[value]), **more)


def add(name, a, b, **more):
    return node(name, "AddV2", [a, b], T=dtype(1), **more)


def graph(*nodes, functions=()):
    g = graph_pb2.GraphDef()
    g.versions.producer = 2474
    g.node.extend(nodes)
    g.library.function.extend(functions)
    return g


# ---- calls ----


def same(data):
    return data


class Task:
    """A channel to one task."""

    def __init__(self, target):
        self.channel = grpc.insecure_channel(target.replace("grpc://", ""), options=NO_LIMIT)

    def close(self):
        self.channel.close()

    def call(self, method, request=b"", seconds=20):
        function = self.channel.unary_unary("/tensorflow." + method, request_serializer=same, response_deserializer=same)
        try:
            return Reply(grpc.StatusCode.OK, "", function(request, timeout=seconds))
        except grpc.RpcError as e:
            return Reply(e.code(), e.details() or "", b"")

    def create(self, graph_def, config=b""):
        return self.call("MasterService/CreateSession", message(_1=graph_def, _2=config))

    @contextlib.contextmanager
    def session(self, *nodes, config=b"", functions=()):
        reply = self.create(graph(*nodes, functions=functions), config)
        assert reply.code == grpc.StatusCode.OK, reply
        handle = read(reply.body)[1][0].decode()
        yield handle
        self.call("MasterService/CloseSession", message(_1=handle))

    def run(self, handle, fetches=(), feeds=(), targets=(), seconds=20):
        feeds = [message(_1=name, _2=value) for name, value in feeds]
        return self.call("MasterService/RunStep", message(_1=handle, _2=feeds, _3=list(fetches), _4=list(targets)), seconds)

    def run_graph(self, graph_def, fetches=(), feeds=(), targets=(), config=b""):
        """Creates a session, runs one step, closes it; the first reply that is an error, or the step's."""
        reply = self.create(graph_def, config)
        if reply.code != grpc.StatusCode.OK:
            return reply
        handle = read(reply.body)[1][0].decode()
        reply = self.run(handle, fetches, feeds, targets)
        self.call("MasterService/CloseSession", message(_1=handle))
        return reply


def fetched(reply):
    """The tensors of a RunStep reply."""
    return [tensor_pb2.TensorProto.FromString(read(named)[2][0]) for named in read(reply.body)[1]]
