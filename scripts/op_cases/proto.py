"""Protobuf messages in tensors: Examples written as JSON, messages of any type."""
import numpy as np
import tensorflow as tf
from google.protobuf import descriptor_pb2

from . import table
from .table import Call, cases


def in_list(kind, values):
    return '{"features":{"feature":{"a":{"%s":{"value":[%s]}}}}}' % (kind, values)


def in_map(entries):
    return '{"features":{"feature":{%s}}}' % entries


GOOD = [
    "{}", " \n\t{ \r} \n", '{"features":{}}', '{"features":null}', '{"features":{"feature":null}}', '{"features":{},"features":{"feature":{}},}',
    '{features:{"feature":{\'a\':{int64_list:{value:[1]}}}}}', '{"\\u0066eatures":{}}', '{"features":{"feature":{"a":{}},"feature":{"a":{}}}}',
    in_map('"b":{"bytesList":{"value":["AQID","YQ==","YQ","YWI=","-_-_","+/+/","-/_+","","YR==","\\u0041QID",null]}},"a":{"floatList":{"value":0.1}}'),
    in_map('"":{},"a":null,"b":{"int64List":null,"floatList":{"value":[1]}},"c":{"int64List":{},"floatList":null},"d":{"int64List":{"value":null}}'),
    in_map('"\\u00e9\\uD83D\\ude00\\n\\t\\"\\\\\\/\\b\\f\\r\\\'":{},"\u00e9":{},"a\nb":{},"\\u0000":{},_a1:{},nullx:{},\'"\':{}'),
    in_list("int64List", '1,-2,"3","-4",null,[5,[6,[]],"7"],1.0,1e3,1.5e1,"1.0","1e3","0x10","+1","00012","-00",".5e1","1.",-0.0,-1e-400,'),
    in_list("int64List", '9223372036854775807,-9223372036854775808,"9223372036854775807",9007199254740991.0,-9007199254740992.0'),
    in_list("floatList", '1,2.5,"3.5","NaN","Infinity","-Infinity",1e10,-0.0,null,[[1]],1E+5,1e-5,3.4028235e38,-3.402823567e38,16777217,16777217.0000001'),
    in_list("floatList", '"0x10"," 1 ","\\t1","+1","1.",".5","01","inf","-inf","1e400","1e-400",1e-400,-1e-40,1e-38,1.1754943508e-38,"0X1p3"'),
    in_list("int64List", "[" * 94 + "1" + "]" * 94),
    '{"features":{"feature":{"a":{"int64List":{"value":[1],"value":[2],"value":3}}}}}',
]
BAD = [
    "", "  ", "null", "[]", "1", '"a"', "{", '{"features"', '{"features":', '{"features":{}', "{}x", "{}{}", "{}\x00", "/**/{}", "\x0b{}", "{:1}", "{,}", "{}\xff",
    '{"unknown":1}', '{"Features":{}}', '{"features":{"x":1}}', in_map('"a":{"x":1}'), '{"features":{"feature":{"a":{"int64List":{"x":1}}}}}',
    '{"features":1}', '{"features":[]}', '{"features":nul}', '{"features":true}', '{"features":{"feature":[]}}', in_map('"a":[]'), in_map('"a":{"int64List":[1]}'),
    in_map('"a":{},"a":{}'), in_map('"\\u00e9":{},"\u00e9":null'), in_map('"a":{"int64List":{},"floatList":{}}'), in_map('"a":{"int64List":{},"int64List":{}}'),
    in_map('"a":{},,'), in_map(","), in_map('"a" {}'), in_map('"a":{} "b":{}'), in_map("null:{}"), in_map("1:{}"), in_map("a-b:{}"), in_map("\u00e9:{}"),
    in_map('"\\ud83d":{}'), in_map('"\\ude00":{}'), in_map('"\\ud83d\\u0041":{}'), in_map('"\\x":{}'), in_map('"\\u12":{}'), in_map('"abc'), in_map('"\\v":{}'),
    '{"features":{"feature":{"a":{"int64List":{"value":{"b":1}}}}}}', in_list("int64List", "[" * 95 + "1" + "]" * 95), "[" * 200,
] + [in_list("int64List", x) for x in ('1.5', '9223372036854775808', '"9223372036854775808"', '"x"', '" 1"', '"1 "', '""', "true", "01", "-", "+1", ",", "1,,2", "1 2", "1x", "--1", "-01",
                                       "1e18", '"1e18"', "9223372036854774784.0", '"nan"', '"inf"', "1e400", "nullx", "{}", "1e", "0x10", '"5e"', "9007199254740994.0")
     ] + [in_list("floatList", x) for x in ("NaN", "1e39", '"1e39"', "1e400", "3.4028236e38", '""', ".5", "5.", "1e", "-.5", '"1f"', '"infinit"', '"+-1"', '"."', "true", "1.2.3")
          ] + [in_list("bytesList", x) for x in ('"A"', '"A==="', '"AB=C"', '"YQ="', '"YWI=="', '"YWJj===="', '"Y Q=="', '"!!!!"', '"="', '"===="', '"YWJj\\n"', "1", "true", '"\u00e9"')]


@cases("DecodeJSONExample")
def decode_json_example(c):
    yield Call(np.array([x.encode() for x in GOOD], object).reshape(2, -1))
    yield Call(np.array(GOOD[9].encode(), object))
    yield Call(np.zeros((0, 2), object))
    for x in BAD:
        yield Call(np.array([b"{}", x.encode("latin-1") if x.endswith("\xff") else x.encode()], object))
    yield Call(np.array(b'{"features":{"feature":{"\xff":{}}}}', object))
    yield Call(np.array(b'{"features":{"feature":{"\xed\xa0\x80":{}}}}', object))
    yield Call(np.array(b'{"features":{"feature":{"a":{"bytesList":{"value":["\xff"]}}}}}', object))


# ---- Messages of any type ----

KINDS = "double float int64 uint64 int32 fixed64 fixed32 bool string group message bytes uint32 enum sfixed32 sfixed64 sint32 sint64".split()
DTYPES = dict(zip(KINDS, "float64 float32 int64 uint64 int32 uint64 uint32 bool string string string string uint32 int32 int32 int64 int32 int64".split()))
WIDER = {"float": "float64", "int32": "int64", "sfixed32": "int64", "sint32": "int64", "uint32": "uint64", "fixed32": "uint64"}
DEFAULTS = {"uint32": "300", "uint64": "70000", "int32": "-5", "string": "hey", "float": "inf", "bool": "true", "enum": "B", "bytes": "a\\001b\\n", "double": "1.5", "int64": "-7000000000"}


def schema(syntax="proto2"):
    """p.M has a field of every kind, single (o_int32), repeated (r_int32) and, in proto2, packed (p_int32) and with a default (d_int32)."""
    whole = descriptor_pb2.FileDescriptorSet()
    f = whole.file.add(name="a.proto", package="p", syntax=syntax)
    values = f.enum_type.add(name="E")
    for name, number in (("A", 0 if syntax == "proto3" else 5), ("B", 1), ("C", 9)):
        values.value.add(name=name, number=number)
    m = f.message_type.add(name="M")
    m.nested_type.add(name="G").field.add(name="in_group", number=1, label=1, type=5)

    def add(name, kind, label, **more):
        if kind == "group" and syntax == "proto3":
            return None
        names = {"message": ".p.M", "enum": "E", "group": "G"}
        return m.field.add(name=name, number=7 * len(m.field) % 997 + 1, label=label, type=KINDS.index(kind) + 1, type_name=names.get(kind), **more)

    for kind in KINDS:
        add("o_" + kind, kind, 1)
        add("r_" + kind, kind, 3)
        if syntax == "proto2" and kind not in ("string", "bytes", "message", "group"):
            add("p_" + kind, kind, 3).options.packed = True
        if syntax == "proto2" and kind in DEFAULTS:
            add("d_" + kind, kind, 1, default_value=DEFAULTS[kind])
    if syntax == "proto2":
        m.extension_range.add(start=2000, end=3000)
        f.extension.add(name="more", extendee=".p.M", number=2001, label=3, type=5)
    return whole


SOURCE = {syntax: b"bytes://" + schema(syntax).SerializeToString(deterministic=True) for syntax in ("proto2", "proto3")}
NUMBERS = {f.name: f.number for f in schema().file[0].message_type[0].field}


def varint(v):
    out = b""
    while v >= 128:
        out, v = out + bytes([v & 127 | 128]), v >> 7
    return out + bytes([v])


def tag(name, wire):
    return varint(NUMBERS[name] << 3 | wire)


MINUS_ONE = b"\xff" * 9 + b"\x01"


def encoded(kind, seed):
    """The wire type of a kind, and some values."""
    raw = np.random.default_rng(seed).bytes(64)
    if kind in ("double", "fixed64", "sfixed64"):
        return 1, [np.float64(1.5).tobytes(), raw[:7] + b"\x3f"] if kind == "double" else [raw[:8], b"\xff" * 8]
    if kind in ("float", "fixed32", "sfixed32"):
        return 5, [np.float32(-2.5).tobytes(), raw[:3] + b"\x3f"] if kind == "float" else [raw[:4], b"\xff" * 4]
    if kind in ("string", "bytes", "message"):
        return 2, [b"\x00", b"\x04abcd"]
    if kind == "group":
        return 3, [b"\x08\x07" + tag("o_group", 4), tag("o_group", 4)]
    return 0, [b"\x00", b"\x01", b"\x7f", b"\xac\x02"] + ([MINUS_ONE, b"\xff\xff\xff\xff\x07"] if kind not in ("bool",) else [])


def decode(b, fields, source=SOURCE["proto2"], types=None, **more):
    return Call(np.array(b, object), message_type="p.M", field_names=fields, output_types=[tf.dtypes.as_dtype(t) for t in types or [DTYPES[f.split("_", 1)[1]] for f in fields]],
                descriptor_source=source, **more)


@cases("DecodeProtoV2", gradient=False)
def decode_proto(c):
    yield decode([b""], ["o_" + k for k in KINDS])
    yield decode([b"", b""], ["o_" + k for k in KINDS if k != "group"] + ["r_string"], SOURCE["proto3"])
    yield decode([b""], ["d_" + k for k in DEFAULTS])
    for kind in KINDS:
        wire, values = encoded(kind, len(kind))
        one, many = tag("o_" + kind, wire), tag("r_" + kind, wire)
        end = many.replace(tag("r_" + kind, wire), tag("r_group", 4)) if kind == "group" else b""
        repeated = b"".join(many + (v.replace(tag("o_group", 4), end) if end else v) for v in values)
        messages = [b"".join(one + v for v in values), one + values[-1] + repeated, b"", repeated + repeated]
        yield decode(messages, ["r_" + kind, "o_" + kind])
        yield decode(np.array(messages, object).reshape(2, 1, 2), ["o_" + kind])
        if kind in WIDER:
            yield decode(messages, ["r_" + kind, "o_" + kind], types=[WIDER[kind]] * 2)
        if wire in (0, 1, 5):
            sure = [v for v in values if v != MINUS_ONE]
            packed = b"".join(sure)
            yield decode([tag("r_" + kind, 2) + varint(len(packed)) + packed + many + sure[0], tag("p_" + kind, 2) + varint(len(packed)) + packed, tag("r_" + kind, 2) + b"\x00"],
                         ["p_" + kind, "r_" + kind])
            yield decode([tag("r_" + kind, 2) + varint(len(packed)) + packed[:-1] + b"\xff"], ["r_" + kind])
            yield decode([tag("r_" + kind, 2) + varint(len(packed) - 1) + packed[:-1]], ["r_" + kind])
        for cut in (one, one + values[-1][:-1], many + b"\xff" * 11, tag("r_" + kind, 7), tag("r_" + kind, 2) + b"\x20a", tag("o_" + kind, 5) + b"1234", tag("o_" + kind, 4)):
            yield decode([cut], ["r_" + kind, "o_" + kind])
    yield decode([varint(2001 << 3) + b"\x05"], ["p.more"], types=["int32"])
    yield decode([tag("r_int32", 0) + b"\x05" + b"\x0b\x08\x01\x0c" + tag("o_int32", 0) + b"\x07"], ["o_int32", "r_int32"])
    yield decode([tag("o_message", 2) + b"\x02" + tag("o_int32", 0) + b"\x07"], ["o_message"], sanitize=True)
    for bad in (b"\x0c", b"\x00", b"\x0f", b"\x0b\x08\x01", b"\xff"):
        yield decode([bad], ["o_int32"])
        yield decode([bad], ["o_int32"], sanitize=True)
    yield decode(np.zeros(0, object), ["o_int32"])
    yield decode([b""], ["o_int32"], message_format="json")
    for fields, types in ((["o_int32"], ["float32"]), (["zz"], ["int32"]), (["o_int32"], ["int32", "int32"])):
        yield decode([b""], fields, types=types)
    for source in (b"local://", b"/nonexistent", b"bytes://\n", b"", b"bytes://"):
        yield decode([b""], ["o_int32"], source)
    for text in ("", "o_int32: 5 r_string: 'a' r_string: \"b\\n\"", "r_sint32: [1, -2] r_sfixed64: -3 r_fixed32: 7 o_enum: C r_enum: 5 r_enum: A", "o_message { o_int32: 4 } r_message < >",
                 "r_double: inf r_double: -1.5e3 r_float: nan o_bool: true r_bool: 0 # a remark", "r_sint64: -9 o_uint64: 18446744073709551615 r_bytes: '\\001\\xff'",
                 "o_int32: x", "o_int32 5", "o_int32: 99999999999", "r_string: 'a"):
        yield decode([text.encode()], ["o_int32", "r_string", "r_sint32", "r_sfixed64", "r_fixed32", "o_enum", "r_enum", "o_message", "r_message", "r_double", "r_float", "o_bool", "r_bool",
                                       "r_sint64", "o_uint64", "r_bytes"], message_format="text")


def encode(sizes, values, fields, source=SOURCE["proto2"], **more):
    return Call(np.array(sizes, np.int32), values, **{"message_type": "p.M", "field_names": fields, "descriptor_source": source, **more})


@cases("EncodeProto", gradient=False)
def encode_proto(c):
    for kind in KINDS:
        for dtype in {DTYPES[kind], WIDER.get(kind, DTYPES[kind])}:
            values = table.random_values(c.rng, (3, 4), -4 if not dtype.startswith("u") else 0, 4, np.bool_ if dtype == "bool" else table.np_type(dtype))
            if dtype.startswith(("int", "uint")):
                values[0, :3] = np.iinfo(values.dtype).max, np.iinfo(values.dtype).min, 300
            for source, field in (("proto2", "r_"), ("proto2", "p_"), ("proto3", "r_")):
                if kind == "group" and source == "proto3" or field == "p_" and kind in ("string", "bytes", "message", "group"):
                    continue
                yield encode([[4], [2], [0]], [values], [field + kind], SOURCE[source])
    strings = np.array([[b"a", b""], [b"", b"bc"]], object)
    both = [np.int32([[1, 2], [3, -4]]), strings]
    yield encode([[2, 1], [0, 2]], both, ["r_int32", "r_string"])
    yield encode([[2, 1], [0, 2]], both[::-1], ["r_string", "r_int32"])
    yield encode([[[2, 1]], [[0, 2]]], [v.reshape(2, 1, 2) for v in both], ["r_int32", "r_string"])
    yield encode(np.zeros((0, 1)), [np.zeros((0, 3), np.int32)], ["r_int32"])
    yield encode([[-1]], [np.int32([[5]])], ["r_int32"])
    for sizes, values, fields in (([[1]], [np.float32([[5]])], ["r_int32"]), ([[2]], [np.int32([[5]])], ["r_int32"]), ([[1]], [np.int32([5])], ["r_int32"]),
                                  ([1], [np.int32([[5]])], ["r_int32"]), ([[1, 1]], [np.int32([[5]]), strings], ["r_int32", "r_string"]), ([[1]], [np.int32([[5]])], ["zz"]),
                                  ([[1]], [np.int32([[5]])], ["r_int32", "r_string"])):
        yield encode(sizes, values, fields)
    for source in (b"local://", b"/nonexistent", b"bytes://\n"):
        yield encode([[1]], [np.int32([[5]])], ["r_int32"], source)
