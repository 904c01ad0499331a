"""Strings: joins, splits, numbers, regular expressions, hashes, codes."""
import base64
import zlib

import numpy as np

from .table import Call, cases, program


def s(*words):
    return np.array([w if isinstance(w, bytes) else w.encode() for w in words], object)


WORDS = s("hello", "", "a b  c", "été", "  pad ", "x,y,,z", "1.5", "UPPER lower", "0")


@cases("StringLower StringUpper StringLength StringStrip", gradient=False)
def one_string(c):
    yield Call(WORDS)
    yield Call(WORDS.reshape(3, 3))
    yield Call(np.array(b"One", object))
    yield Call(np.zeros((0, 2), object))
    if c.op in ("StringLower", "StringUpper"):
        yield Call(s("ÀÉß", "Straße"), encoding="utf-8")
        yield Call(s("İI", "Σας", "ıi", "ǆ", "ﬁ", "ŉ", b"\xffAb\xc3", b"a\x00B"), encoding="utf-8")
    if c.op == "StringLength":
        yield Call(s("ÀÉß", "日本"), unit="UTF8_CHAR")


@cases("StringJoin", gradient=False)
def join(c):
    yield Call([WORDS, WORDS[::-1].copy()], separator="")
    yield Call([WORDS, np.array(b"-", object), WORDS], separator="+")
    yield Call([s("a", "b"), s("c", "d", "e")], separator="")
    yield Call([np.array(b"x", object)], separator=",")


@cases("ReduceJoin", gradient=False)
def reduce_join(c):
    m = WORDS.reshape(3, 3)
    for axes in ([0], [1], [-1], [0, 1], [1, 0], []):
        yield Call(m, np.array(axes, np.int32), separator="-")
    yield Call(m, np.array(1, np.int32), keep_dims=True)
    yield Call(m, np.array([2], np.int32))
    yield Call(m, np.array([0, 0], np.int32))
    yield Call(m, np.array([[0], [1]], np.int32), separator="+")
    yield Call(m, np.array(-3, np.int32))
    yield Call(np.zeros((0, 2), object), np.array([0], np.int32))


@cases("StringSplit", gradient=False)
def split(c):
    yield Call(WORDS, np.array(b" ", object), skip_empty=True)
    yield Call(WORDS, np.array(b" ", object), skip_empty=False)
    yield Call(WORDS, np.array(b",", object))
    yield Call(WORDS, np.array(b"", object))
    yield Call(WORDS, np.array(b" ,", object))
    yield Call(np.zeros((0,), object), np.array(b",", object))
    yield Call(WORDS, s(",", " "))
    yield Call(WORDS.reshape(3, 3), np.array(b",", object))


@cases("StringSplitV2", gradient=False)
def split_v2(c):
    yield Call(WORDS, np.array(b"", object))
    yield Call(WORDS, np.array(b",", object))
    yield Call(s("a<>b<>c"), np.array(b"<>", object))
    yield Call(s("a,b,c", "d"), np.array(b",", object), maxsplit=1)
    yield Call(np.zeros((0,), object), np.array(b",", object))
    yield Call(WORDS, s(",", " "))
    yield Call(WORDS.reshape(3, 3), np.array(b",", object))


@cases("Substr", gradient=False)
def substr(c):
    i = lambda *a: np.array(a, c.T)
    yield Call(s("hello", "world"), np.array(1, c.T), np.array(3, c.T))
    yield Call(s("hello", "world"), i(0, 2), i(2, 9))
    yield Call(s("hello", "world"), np.array(-3, c.T), np.array(2, c.T))
    yield Call(np.array(b"hello", object), i(0, 1), i(2, 2))
    yield Call(s("日本語", "été"), np.array(1, c.T), np.array(1, c.T), unit="UTF8_CHAR")
    yield Call(s("ab"), np.array(3, c.T), np.array(1, c.T))
    yield Call(s("ab", "c"), i(0, 0, 0), i(1, 1, 1))
    yield Call(s("ab", "c"), i(0, 0), i([1, 1]))
    for unit in ("BYTE", "UTF8_CHAR"):
        yield Call(s("hello", "été"), np.array(1, c.T), np.array(-2, c.T), unit=unit)
        yield Call(s("hello", "été"), np.array(-6, c.T), np.array(1, c.T), unit=unit)
        yield Call(s("hello", "aha"), i(1, 9), i(1, 1), unit=unit)


@cases("RegexReplace", gradient=False)
def regex_replace(c):
    p = lambda t: np.array(t.encode(), object)
    for pattern, rewrite in (("l+", "L"), ("(.)(.)", r"\2\1"), ("^", ">"), (r"\d", "#"), ("[a-c]", "")):
        for every in (True, False):
            yield Call(WORDS, p(pattern), p(rewrite), replace_global=every)
    yield Call(WORDS, p("("), p(""))
    for pattern, rewrite in (("a", r"\1"), ("(a)", r"<\1\2>"), ("[a-e]", "x\\y"), ("[a-e]", "x\\")):
        for every in (True, False):
            yield Call(WORDS, p(pattern), p(rewrite), replace_global=every)
    yield Call(s(b"a\xff\xfeb", b"\xe2\x82z"), p("."), p("<\\0>"))
    yield Call(WORDS, s("a"), p(""))
    yield Call(WORDS, p("a"), s(""))


@cases("StaticRegexReplace", gradient=False)
def static_regex_replace(c):
    for pattern, rewrite in (("l+", "L"), ("(.)(.)", r"\2\1"), (r"\d", "#")):
        yield Call(WORDS, pattern=pattern, rewrite=rewrite)
    yield Call(WORDS, pattern="l", rewrite="", replace_global=False)
    yield Call(WORDS, pattern="l", rewrite="\\3")
    yield Call(WORDS, pattern="l", rewrite="<\\")


@cases("RegexFullMatch", gradient=False)
def regex_full_match(c):
    for pattern in ("h.*", "", "[a-z ]*", r"\d+(\.\d+)?"):
        yield Call(WORDS, np.array(pattern.encode(), object))
    yield Call(WORDS, np.array(b"[", object))
    for pattern in ("a[b", "(a", "a)", "+?", "a*?+", "a**", "x{2}{3}", "(a{50}|b){30}", "x{1001}", "a{2,1}", r"[x\8]", r"\1", r"[a-\d]", r"\x{110000}", "[b-a]", "[[:no:]]", "(?=a)",
                    "(?z)", "\\"):
        yield Call(WORDS, np.array(pattern.encode(), object))
    yield Call(WORDS, np.array(b"a\xff", object))
    yield Call(WORDS, s("a"))
    for pattern in (".", "[^a]", "(?s).*"):
        yield Call(s(b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", "é"), np.array(pattern.encode(), object))


@cases("StaticRegexFullMatch", gradient=False)
def static_regex_full_match(c):
    for pattern in ("h.*", "", "[a-z ]*"):
        yield Call(WORDS, pattern=pattern)


@cases("StringToHashBucket StringToHashBucketFast", gradient=False)
def hash_bucket(c):
    for n in (1, 10, 1 << 40):
        yield Call(WORDS, num_buckets=n)
    yield Call(np.zeros((0,), object), num_buckets=3)


@cases("_TensorToHashBucketFast", gradient=False)
def hash_bucket_of_numbers(c):
    for n in (1, 10, 1 << 40):
        yield Call(c.values((2, 3), -90, 90), num_buckets=n)
    yield Call(c.special(), num_buckets=1 << 40)
    yield Call(c.values((0,)), num_buckets=3)


@cases("StringToHashBucketStrong", gradient=False)
def hash_bucket_strong(c):
    yield Call(WORDS, num_buckets=100, key=[123, 456])
    yield Call(WORDS, num_buckets=7, key=[0, 0])


@cases("StringToNumber", types={"out_type": ["float32", "float64", "int32", "int64", "uint32", "uint64"]}, gradient=False)
def to_number(c):
    yield Call(s("1", "12", "0"))
    yield Call(s(" 3 ", "7"))
    if "float" in c.name:
        yield Call(s("1.5", "-2e3", "inf", "nan", "1e-40", "0x10"))
    elif "u" not in c.name:
        yield Call(s("-5"))
    for bad in ("", "abc", "1.5x", "99999999999999999999999"):
        yield Call(s(bad))


@cases("AsString", gradient=False)
def as_string(c):
    if c.name == "string":
        yield Call(c.values((2, 3)))
        return
    yield Call(c.values((2, 3)))
    yield Call(c.values(()))
    yield Call(c.values((3,), 0, 9), width=6)
    if c.name == "bool":
        return
    if not (c.is_float or c.is_complex):
        yield Call(np.array([np.iinfo(c.T).min, np.iinfo(c.T).max, 0, 10, 99, 100], c.T))
    yield Call(c.values((3,), 0, 9), width=6, fill="0")
    yield Call(c.values((3,), 0, 9), width=6, fill="-")
    if c.is_float or c.is_complex:
        # Halves of the sixth decimal, carries, both zeros, the ends of the range that is not left to printf.
        yield Call(np.array([0.0, -0.0, 0.5, 1 / 128, 3 / 128, -5 / 2**10, 0.9999995, 1e-7, 5e-7, -1.5e-6, 12345.678, -9.0, np.nan, np.inf, -np.inf, 6e4]).astype(c.T))
        yield Call(c.values((3,)), precision=2)
        yield Call(c.values((3,)), scientific=True)
        yield Call(c.values((3,)), shortest=True)
        yield Call(np.array([1e10, 1e-10, 12345.678], np.float64).astype(c.T), shortest=True)
    else:
        yield Call(c.special())
        yield Call(c.values((2,)), scientific=True)
        yield Call(c.values((2,)), shortest=True)
        yield Call(c.values((2,)), precision=1)
    yield Call(c.values((2,)), fill="ab")
    yield Call(c.values((2,)), fill="x")


@cases("StringFormat", gradient=False)
def string_format(c):
    yield Call([c.values((2, 3), dtype=np.float32)], template="x = {}", placeholder="{}", summarize=3)
    yield Call([c.ints((7,)), np.float32(1.5)], template="% and %", placeholder="%", summarize=2)
    yield Call([np.array([b"a", b"b"], object)], template="{}", placeholder="{}")
    yield Call([c.ints((2, 2, 2))], template="{}", placeholder="{}", summarize=-1)


@cases("EncodeBase64", gradient=False)
def encode_base64(c):
    for pad in (False, True):
        yield Call(WORDS, pad=pad)
    yield Call(np.zeros((0,), object))


@cases("DecodeBase64", gradient=False)
def decode_base64(c):
    yield Call(np.array([base64.urlsafe_b64encode(w) for w in WORDS], object))
    yield Call(np.array([base64.urlsafe_b64encode(w).rstrip(b"=") for w in WORDS], object))
    yield Call(s("a"))
    yield Call(s("a+b/"))
    for text in ("YQ=", "=", "YQ===", "YWJjY", "YWJj\n", "YQ=a", "YR", "====", "Y==="):
        yield Call(s(text))


@cases("DecodeRaw", types={"out_type": ["float16", "float32", "float64", "int32", "uint16", "uint8", "int16", "int8", "int64", "bool", "bfloat16", "complex64",
                                        "complex128"]}, gradient=False)
def decode_raw(c):
    size = np.dtype(c.T).itemsize
    data = [bytes(c.ints((3 * size,), 0, 2 if c.name == "bool" else 64).astype(np.uint8)) for _ in range(2)]
    yield Call(np.array(data, object))
    yield Call(np.array([data], object), little_endian=False)
    yield Call(np.zeros((0,), object))
    yield Call(s("a" * (size + 1)) if size > 1 else s("ab", "a"))
    yield Call(s("a" * size, ""))


@cases("DecodePaddedRaw", gradient=False)
def decode_padded_raw(c):
    size = np.dtype(c.T).itemsize
    data = [bytes(c.ints((n * size,), 0, 64).astype(np.uint8)) for n in (1, 2)]
    yield Call(np.array(data, object), np.int32(3 * size))
    yield Call(np.array(data, object), np.int32(2 * size), little_endian=False)
    yield Call(np.array(data, object), np.int32(0))
    yield Call(np.array(data, object), np.int32(size * 2 + 1) if size > 1 else np.int32(-1))
    yield Call(np.array(data, object), np.array([size], np.int32))


@cases("DecodeCompressed", gradient=False)
def decode_compressed(c):
    yield Call(np.array([zlib.compress(b"hello" * 9), zlib.compress(b"")], object), compression_type="ZLIB")
    yield Call(WORDS, compression_type="")
    import gzip
    hello = b"hello" * 9
    for text in (b"junk", b"", zlib.compress(hello)[:-3], zlib.compress(hello) + b"xx", zlib.compress(hello)[:7], gzip.compress(hello, mtime=0), gzip.compress(hello, mtime=0)[:-3]):
        yield Call(s(text), compression_type="ZLIB")
        yield Call(s(text), compression_type="GZIP")
    yield Call(s("junk"), compression_type="unknown")


@cases("DecodeCSV", gradient=False)
def decode_csv(c):
    f, i = np.array([1.5], np.float32), np.array([7], np.int32)
    yield Call(s("1,2,x", "3.5,,y"), [f, i, np.array([b"z"], object)])
    yield Call(s("1\t2"), [f, i], field_delim="\t")
    yield Call(s('1,"a,""b"""'), [f, np.array([b""], object)])
    yield Call(s("NA,2"), [f, i], na_value="NA")
    yield Call(s("1,2,3"), [f, np.array([0], np.int64)], select_cols=[0, 2])
    yield Call(s("1"), [f, i])
    yield Call(s("1,x"), [f, i])
    yield Call(s(",1"), [np.zeros((0,), np.float32), i])
    yield Call(s("1"), [np.zeros((1, 1), np.float32)])
    yield Call(s("1"), [np.zeros((2,), np.float32)])
    for columns in ([1, 0], [-1, 0], [0]):
        yield Call(s("1,2"), [f, i], select_cols=columns)
    for text in ('"a"b', 'a"b', '"a', "a\nb", "a\rb", '"', '"a""'):
        yield Call(s(text), [np.array([b"x"], object)])
    yield Call(s("1"), [f], field_delim="ab")


@cases("StringNGrams", gradient=False)
def ngrams(c):
    splits = np.array([0, 3, 4, 4], c.type("Tsplits"))
    for widths, pad, keep in (([2], 0, False), ([1, 3], 0, False), ([3], -1, False), ([3], 1, False), ([4], 0, True)):
        yield Call(s("a", "b", "c", "d"), splits, separator="|", ngram_widths=widths, left_pad="<", right_pad=">", pad_width=pad, preserve_short_sequences=keep)
    yield Call(s("a"), np.array([0, 3], c.type("Tsplits")), separator="|", ngram_widths=[2], left_pad="", right_pad="", pad_width=0, preserve_short_sequences=False)
    for rows in ([0, 2, 1], [1, 2], [], [0], [0, 1], [-1, 2]):
        for data in (s("a", "b"), s()):
            yield Call(data, np.array(rows, c.type("Tsplits")), separator="|", ngram_widths=[1], left_pad="", right_pad="", pad_width=0, preserve_short_sequences=False)


@cases("EditDistance", gradient=False)
def edit_distance(c):
    i = lambda *rows: np.array(rows, np.int64)
    v = lambda *a: np.array(a, c.T) if c.name != "string" else np.array([str(x).encode() for x in a], object)
    for normalize in (True, False):
        yield Call(i((0, 0), (0, 1), (1, 0)), v(1, 2, 3), i(2, 2), i((0, 0), (1, 0), (1, 1)), v(1, 3, 4), i(2, 2), normalize=normalize)
    yield Call(np.zeros((0, 2), np.int64), v(), i(2, 2), i((0, 0)).reshape(1, 2), v(1), i(2, 2))


@cases("SerializeTensor", gradient=False)
def serialize_tensor(c):
    yield Call(c.values((2, 3)))
    yield Call(c.values(()))
    yield Call(c.values((0,)))


@cases("ParseTensor", gradient=False)
def parse_tensor(c):
    import tensorflow as tf
    t = c.types["out_type"]
    value = c.values((2, 3)) if t != "string" else WORDS
    yield Call(np.array(tf.make_tensor_proto(value).SerializeToString(), object))
    yield Call(np.array(b"\xff", object))
    other = np.array([1], np.int32 if t != "int32" else np.int64)
    yield Call(np.array(tf.make_tensor_proto(other).SerializeToString(), object))


@cases("ShardedFilename", gradient=False)
def sharded_filename(c):
    yield Call(np.array(b"a/b", object), np.int32(3), np.int32(10))


@cases("ShardedFilespec", gradient=False)
def sharded_filespec(c):
    yield Call(np.array(b"a/b", object), np.int32(10))


TEXTS = s("hello", "", "été", "日本語", "a😀b", b"a\xffb\x80", b"\xe2\x82", "tab\tnew\nline", b"\xed\xa0\x80")


@cases("UnicodeDecodeWithOffsets", types={"Tsplits": ["int64"]}, gradient=False)  # TensorFlow's process ends with int32
@cases("UnicodeDecode", gradient=False)
def unicode_decode(c):
    for errors in ("replace", "ignore", "strict"):
        yield Call(TEXTS, input_encoding="UTF-8", errors=errors)
        yield Call(TEXTS[:5], input_encoding="UTF-8", errors=errors)
        yield Call(s("a\tb\x00", b"\x1f"), input_encoding="UTF-8", errors=errors, replace_control_characters=True)
    yield Call(TEXTS, input_encoding="UTF-8", replacement_char=0x20)
    yield Call(TEXTS.reshape(3, 3), input_encoding="UTF-8")
    yield Call(np.array(b"one", object), input_encoding="utf8")
    yield Call(np.zeros((0,), object), input_encoding="UTF-8")
    for encoding in ("UTF-16-BE", "UTF-16LE", "UTF-16", "UTF-32-BE", "UTF-32", "US-ASCII", "latin1", "ISO-8859-2", "windows-1252", "shift-jis", "euc-jp", "GBK", "GB18030", "big5",
                     "KOI8-R", "ISO-2022-JP", "cp437", "UTF-7", "CESU-8", "ibm-037"):
        yield Call(s(b"a\xc3\xa9\xff\x80z", b"\x00a\x00b", b"\xfe\xff\x00a", b"\xff\xfea\x00", b"\x00\x00\x00a\x00", "日本"), input_encoding=encoding)
    yield Call(TEXTS, input_encoding="no-such-encoding")
    yield Call(TEXTS, input_encoding="UTF-8", replacement_char=0x110000)


@cases("UnicodeEncode", gradient=False)
def unicode_encode(c):
    t = c.type("Tsplits")
    points = np.array([0x41, 0xe9, 0x65e5, 0x1f600, 0xd800, 0x110000, -1, 0x42, 0xfffe, 0x1ffff, 0], np.int32)
    for encoding in ("UTF-8", "UTF-16-BE", "UTF-32-BE"):
        for errors in ("replace", "ignore", "strict"):
            yield Call(points, np.array([0, 2, 2, 7, 11], t), output_encoding=encoding, errors=errors)
            yield Call(points[:4], np.array([0, 4], t), output_encoding=encoding, errors=errors)
        yield Call(points, np.array([0, 11], t), output_encoding=encoding, replacement_char=0x20)
        yield Call(points, np.array([0, 11], t), output_encoding=encoding, replacement_char=0xd800)
    yield Call(np.zeros((0,), np.int32), np.array([0], t), output_encoding="UTF-8")
    yield Call(points, np.array([0, 11], t), output_encoding="UTF-8", replacement_char=-1)
    for splits in ([], [0, 3], [0, 12], [1, 11], [0, 5, 3, 11], [[0, 11]]):
        yield Call(points, np.array(splits, t), output_encoding="UTF-8")
    yield Call(points.reshape(1, 11), np.array([0, 11], t), output_encoding="UTF-8")


@cases("UnicodeTranscode", gradient=False)
def unicode_transcode(c):
    for output in ("UTF-8", "UTF-16-BE", "UTF-32-BE"):
        for errors in ("replace", "ignore", "strict"):
            yield Call(TEXTS, input_encoding="UTF-8", output_encoding=output, errors=errors)
            yield Call(TEXTS[:5], input_encoding="UTF-8", output_encoding=output, errors=errors)
            yield Call(TEXTS, input_encoding="UTF-8", output_encoding=output, errors=errors, replace_control_characters=True)
        yield Call(TEXTS, input_encoding="UTF-8", output_encoding=output, replacement_char=0xd800)
        yield Call(s(b"a\x82\xa0z", b"\xe9"), input_encoding="shift-jis", output_encoding=output)
        yield Call(s(b"\x00a\xd8\x3d\xde\x00", b"\xd8\x3d", b"\x00"), input_encoding="UTF-16-BE", output_encoding=output)
        yield Call(s(b"\xff\xfea\x00", b"\xfe\xff\x00a", b"\xfe\xff", b"\x00a"), input_encoding="UTF-16", output_encoding=output)
        yield Call(s(b"\x00\x00\x00a\x00\x01\xf6\x00", b"\x00\x11\x00\x00"), input_encoding="UTF-32-BE", output_encoding=output)
    yield Call(TEXTS.reshape(3, 3), input_encoding="UTF-8", output_encoding="UTF-8")
    yield Call(np.zeros((0, 2), object), input_encoding="UTF-8", output_encoding="UTF-8")
    yield Call(TEXTS, input_encoding="", output_encoding="UTF-8")


@cases("UnicodeScript", gradient=False)
def unicode_script(c):
    yield Call(np.arange(0, 0x110000, 53, dtype=np.int32))
    yield Call(np.array([[-1, 0x110000], [0x10ffff, 0xd800], [2**31 - 1, -2**31]], np.int32))
    yield Call(np.array(0x3b1, np.int32))


def pieces_outside(fed):
    """Parts of strings that are not there, and edit distances of parts that do not fit."""
    i32 = lambda v: fed(v, np.int32)
    words = lambda v: fed(v, object)
    for unit in ("BYTE", "UTF8_CHAR"):
        piece = dict(input=words([b"ab", b"c"]), unit=unit)
        yield "row_" + unit, "Substr", dict(pos=i32([0, 2]), len=i32([1, 1]), **piece)
        yield "table_" + unit, "Substr", dict(pos=i32([[0], [2]]), len=i32([[1], [1]]), **piece)
        yield "column_" + unit, "Substr", dict(pos=i32([[1], [2]]), len=i32([[1], [1]]), **piece)
        yield "below_" + unit, "Substr", dict(pos=i32(-1), len=i32(-1), **piece)
    i64 = lambda v: fed(v, np.int64)
    distance = dict(hypothesis_indices=i64([[0, 0]]), hypothesis_values=i64([1]), hypothesis_shape=i64([1, 2]), truth_indices=i64([[0, 0]]), truth_values=i64([1]),
                    truth_shape=i64([1, 2]))
    for name, wrong in (("indices", [[[0, 0]]]), ("values", [[1]]), ("shape", [[1, 2]])):
        yield "hypothesis_" + name, "EditDistance", {**distance, "hypothesis_" + name: i64(wrong)}
        yield "truth_" + name, "EditDistance", {**distance, "truth_" + name: i64(wrong)}


@program("Substr EditDistance")
def pieces_of_strings_outside(p):
    p.run_each(pieces_outside)
