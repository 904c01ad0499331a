"""Protobuf messages in tensors: Examples written as JSON."""
import numpy as np

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
