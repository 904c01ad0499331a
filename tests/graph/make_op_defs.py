"""Writes op_defs.txt: what TensorFlow says of its ops, one line per op and one per attribute."""
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
from tensorflow.core.framework import op_def_pb2, types_pb2
from tensorflow.python.client import pywrap_tf_session


def argument(a):
    text = a.type_list_attr or a.type_attr or types_pb2.DataType.Name(a.type)[3:].lower()
    if a.number_attr:
        text = f"{a.number_attr} * {text}"
    return f"{a.name}: Ref({text})" if a.is_ref else f"{a.name}: {text}"


def write(op, out):
    flags = ("S" if op.is_stateful else "-") + ("U" if op.allows_uninitialized_input else "-")
    inputs, outputs = (", ".join(map(argument, args)) for args in (op.input_arg, op.output_arg))
    out.write(f"op\t{op.name}\t{flags}\t{inputs} -> {outputs}\n")
    for a in op.attr:
        default = a.default_value.SerializeToString(deterministic=True).hex() if a.HasField("default_value") else "-"
        out.write(f"attr\t{a.name}\t{a.type}\t{default}\t{a.minimum if a.has_minimum else '-'}\n")


def main():
    ops = op_def_pb2.OpList()
    ops.ParseFromString(pywrap_tf_session.TF_GetBuffer(pywrap_tf_session.TF_GetAllOpList()))
    path = os.path.join(os.path.dirname(__file__), "op_defs.txt")
    with open(path, "w") as out:
        for op in sorted(ops.op, key=lambda o: o.name):
            write(op, out)


main()
