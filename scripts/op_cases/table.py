"""The table of op cases: which function makes the calls of an op, and with which types TensorFlow's CPU has the op.

A family file says, for some ops, how they are called:

    @cases("Abs Neg Sign")
    def unary(c):
        yield Call(c.values((2, 3)))

`c` is a Context: the op, the types of this round, and seeded values. A function runs once for every combination of types;
its calls become units (see unit.py), one for each set of attributes.
"""
import itertools
import zlib

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import op_def_pb2, types_pb2
from tensorflow.python.client import pywrap_tf_session
from tensorflow.python.framework import kernels

ROWS = {}  # op -> Row
PROGRAMS = []  # Program
FAMILIES = []  # names of family modules, in order
MAIN = ("float32", "int32")  # types that get the whole grid; others a part of it
PLAIN = "float32 float64 int32 uint8 int16 int8 string complex64 int64 bool bfloat16 uint16 complex128 float16 uint32 uint64".split()


class Row:
    def __init__(self, function, family, types, tolerance, gradient, primary):
        self.function, self.family, self.types, self.tolerance, self.gradient = function, family, types, tolerance, gradient
        self.primary = primary


class Program:
    """A small graph of its own and steps on it, for ops with state; function(p) builds it, see unit.ProgramBuilder. types: it is made
    once for each, as p.T. version: of a graph so old that its ops were allowed."""

    def __init__(self, name, ops, family, function, tolerance, types, version):
        self.name, self.ops, self.family, self.function, self.tolerance, self.types = name, ops, family, function, tolerance, types
        self.version = version


class Call:
    """One run of an op: its inputs (arrays, lists of arrays for list inputs), its attributes. const: numbers of inputs that are
    Const nodes; static: placeholders know their shape; grad=False: no gradient of this call; outputs: the only ones TensorFlow defines."""

    def __init__(self, *inputs, const=(), static=False, grad=True, outputs=None, **attrs):
        self.inputs, self.const, self.static, self.grad, self.outputs, self.attrs = inputs, tuple(const), static, grad, outputs, attrs


def cases(names, types=None, rtol=None, atol=None, double=None, gradient=True, primary=None):
    """types: attribute -> list of types, where the registry leaves them open or has too many. rtol, atol: for float32 where
    the defaults of unit.py do not suit; other types scale with their precision;
    double: both of float64, where TensorFlow computes part of it in float. primary: the attribute whose values
    count as the op's types, where it is not T."""
    def register(function):
        for name in names.split():
            if name in ROWS:
                raise ValueError(f"{name} has cases already")
            ROWS[name] = Row(function, FAMILIES[-1], types or {}, (rtol, atol, double), gradient, primary)
        return function
    return register


def program(names, rtol=None, atol=None, types=(None,), version=None):
    def register(function):
        PROGRAMS.append(Program(function.__name__, names.split(), FAMILIES[-1], function, (rtol, atol, None), types, version))
        return function
    return register


def load_op_defs():
    buffer = pywrap_tf_session.TF_GetAllOpList()
    return {op.name: op for op in op_def_pb2.OpList.FromString(pywrap_tf_session.TF_GetBuffer(buffer)).op}


def load_kernels():
    found = {}
    for kernel in kernels.get_all_registered_kernels().kernel:
        if kernel.device_type in ("CPU", "DEFAULT") and not kernel.label:
            found.setdefault(kernel.op, []).append({c.name: [name_of(t) for t in c.allowed_values.list.type] for c in kernel.constraint})
    return found


def name_of(number):
    return tf.dtypes.as_dtype(number).name if number else "invalid"


def type_attrs(op_def):
    return [a for a in op_def.attr if a.type == "type"]


def primary_attr(op_def, rows, asked=None):
    """The attribute whose values count as the op's types: T, else the first one that kernels differ in."""
    if asked:
        return asked
    names = [a.name for a in type_attrs(op_def)]
    if not names:
        return None
    if "T" in names:
        return "T"
    return next((n for n in names if any(n in r for r in rows)), names[0])


def combinations(op_def, rows, chosen, primary):
    """The combinations of types to try, the main ones with all values of the other attributes."""
    attrs = type_attrs(op_def)
    if not attrs:
        return [{}]
    all_found, seen = [], set()
    for row in rows or [{}]:
        options = []
        for a in attrs:
            allowed = [name_of(t) for t in a.allowed_values.list.type]
            default = [name_of(a.default_value.type)] if a.default_value.type else None
            some = row.get(a.name)
            if some is None:
                some = chosen.get(a.name) or allowed or (PLAIN if a.name == primary else default or ["float32"])
            elif a.name in chosen:
                some = [s for s in some if s in chosen[a.name]]
            options.append([s for s in dict.fromkeys(some) if (s in PLAIN or s in chosen.get(a.name, ())) and (not allowed or s in allowed)])
        for values in itertools.product(*options):
            if values not in seen:
                seen.add(values)
                all_found.append(dict(zip([a.name for a in attrs], values)))
    if "*" in chosen:
        return all_found
    picked, used = [], set()
    for combination in all_found:
        p = combination[primary]
        if p in MAIN or p not in used:
            picked.append(combination)
        used.add(p)
    return picked


class Context:
    """What a case function sees."""

    def __init__(self, op, op_def, types, primary):
        self.op, self.op_def, self.types = op, op_def, types
        fixed = next((name_of(a.type) for a in op_def.input_arg if a.type and name_of(a.type) in PLAIN), "float32")
        self.name = types[primary] if primary else fixed
        self.T = np_type(self.name)
        self.full = primary is None or self.name in MAIN
        self.rng = np.random.default_rng(zlib.crc32(f"{op} {sorted(types.items())}".encode()))

    def type(self, attr):
        return np_type(self.types[attr])

    @property
    def is_float(self):
        return self.name in ("float32", "float64", "float16", "bfloat16")

    @property
    def is_complex(self):
        return self.name in ("complex64", "complex128")

    @property
    def is_int(self):
        return self.name is not None and "int" in self.name

    @property
    def is_unsigned(self):
        return self.name is not None and self.name.startswith(("uint", "quint"))

    def values(self, shape=(), low=-4, high=4, dtype=None):
        """Random values, multiples of 1/64 where they are not integers."""
        dtype = self.T if dtype is None else dtype
        return random_values(self.rng, shape, low, high, dtype)

    def distinct(self, shape, dtype=None):
        """Values without ties, in random order."""
        count = int(np.prod(shape))
        v = self.rng.permutation(count) - (0 if np.dtype(dtype or self.T).kind == "u" else count // 2)
        return v.astype(dtype or self.T).reshape(shape)

    def ints(self, shape=(), low=0, high=4, dtype=np.int32):
        return self.rng.integers(low, high, size=shape).astype(dtype)

    def special(self):
        """The edges of the type."""
        return special_values(self.T, self.name)


def np_type(name):
    return tf.dtypes.as_dtype(name).as_numpy_dtype


def random_values(rng, shape, low, high, dtype):
    shape = tuple(shape)
    if dtype in (object, np.object_):
        words = [b"", b"a", b"b", b"abc", b"Hello", b"x y", b"\xc3\xa9t\xc3\xa9", b"0123456789" * 3]
        out = np.empty(shape, object)
        for i in np.ndindex(shape):
            out[i] = words[rng.integers(len(words))]
        return out
    kind = np.dtype(dtype).kind
    if np.dtype(dtype).names:  # the quantised types
        return random_values(rng, shape, low, high, np.dtype(dtype)[0]).astype(dtype)
    if kind == "b":
        return rng.integers(0, 2, size=shape).astype(bool)
    if kind == "c":
        return (random_values(rng, shape, low, high, np.float64) + 1j * random_values(rng, shape, low, high, np.float64)).astype(dtype)
    if kind in "iu" or "int" in np.dtype(dtype).name:
        low = max(low, 0) if kind == "u" else low
        return rng.integers(int(np.floor(low)), max(int(np.floor(high)), int(np.floor(low)) + 1), size=shape).astype(dtype)
    return (np.round(rng.uniform(low, high, size=shape) * 64) / 64).astype(dtype)


def special_values(dtype, name):
    if name == "string":
        return np.array([b"", b"\x00", b"a" * 300], object)
    if name == "bool":
        return np.array([False, True])
    if "int" in name:
        info = np.iinfo(np.dtype(dtype.__name__.lstrip("q")) if name.startswith("q") else dtype)
        return np.array(sorted({info.min, info.max, 0, 1, info.max // 2, max(info.min, -1)}), info.dtype).astype(dtype)
    reals = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 1e-5, 3e4]
    if name in ("complex64", "complex128"):
        return np.array([complex(0, 0), complex(1, 0), complex(0, -1), complex(30, 0.5), complex(-1e-3, 2)]).astype(dtype)
    return np.array(reals).astype(dtype)
