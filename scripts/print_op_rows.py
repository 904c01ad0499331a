#!/usr/bin/env python3
"""Prints OpDef rows (src/graph/op_def.h) for TensorFlow ops by name, from the installed TensorFlow's own registry."""
import sys

from tensorflow.core.framework import op_def_pb2, types_pb2
from tensorflow.python.client import pywrap_tf_session
from tensorflow.python.framework import op_def_registry


def type_name(number):
    return types_pb2.DataType.Name(number)[3:].lower()


def value_text(attr, value):
    kind = value.WhichOneof("value")
    if kind == "list":
        v = value.list
        items = [type_name(t) for t in v.type] + [str(i) for i in v.i] + [repr(round(f, 9)) for f in v.f] + \
                [str(b).lower() for b in v.b] + ["'%s'" % s.decode() for s in v.s] + ["[]"] * len(v.shape)
        return "[" + ", ".join(items) + "]"
    if kind == "s":
        return "'%s'" % value.s.decode("latin1")
    if kind == "b":
        return str(value.b).lower()
    if kind == "f":
        return repr(round(value.f, 12))
    if kind == "i":
        return str(value.i)
    if kind == "type":
        return type_name(value.type)
    if kind == "shape":
        return "?" if value.shape.unknown_rank else "[" + ", ".join(str(d.size) for d in value.shape.dim) + "]"
    raise SystemExit("default of kind %s in %s" % (kind, attr.name))


def attr_text(a):
    kind = a.type
    allowed = a.allowed_values.list
    if allowed.type:
        names = "{" + ", ".join(type_name(t) for t in allowed.type) + "}"
        kind = "list(%s)" % names if kind.startswith("list") else names
    elif allowed.s:
        names = "{" + ", ".join("'%s'" % s.decode() for s in allowed.s) + "}"
        kind = "list(%s)" % names if kind.startswith("list") else names
    if a.has_minimum:
        kind += " >= %d" % a.minimum
    if a.HasField("default_value") and a.default_value.WhichOneof("value") not in ("tensor", "func"):
        kind += " = " + value_text(a, a.default_value)
    return "%s: %s" % (a.name, kind)


def arg_text(a):
    base = a.type_list_attr or a.type_attr or type_name(a.type)
    if a.number_attr:
        base = "%s * %s" % (a.number_attr, base)
    return "%s: %s" % (a.name, "Ref(%s)" % base if a.is_ref else base)


def row(op):
    flags = [n for n, on in (("OP_STATEFUL", op.is_stateful), ("OP_COMMUTATIVE", op.is_commutative), ("OP_AGGREGATE", op.is_aggregate),
                             ("OP_UNINITIALIZED_INPUT", op.allows_uninitialized_input)) if on]
    left = ", ".join(arg_text(a) for a in op.input_arg)
    right = ", ".join(arg_text(a) for a in op.output_arg)
    signature = (left + " -> " + right).strip()
    attrs = "; ".join(attr_text(a) for a in op.attr)
    attrs = attrs.replace("\\", "\\\\").replace('"', '\\"')
    return '    {"%s", "%s",\n     "%s", %s},' % (op.name, signature, attrs, " | ".join(flags) or "0")


def main():
    buf = pywrap_tf_session.TF_GetAllOpList()
    all_ops = op_def_pb2.OpList.FromString(pywrap_tf_session.TF_GetBuffer(buf))
    wanted = set(sys.argv[1:])
    for op in all_ops.op:
        if not wanted or op.name in wanted:
            print(row(op))


main()
