"""Tables from keys to values."""
import numpy as np
import tensorflow as tf

from .table import program

v1, raw = tf.compat.v1, tf.raw_ops
I64 = np.int64
PAIRS = ["string-int64", "int64-string", "string-string", "int64-int64", "int64-float32", "string-float32", "int32-int32", "int64-float64", "string-bool", "int64-bool"]


def each_pair(names, pairs=PAIRS):
    """The program once for each pair of key and value type."""
    def register(function):
        for pair in pairs:
            def run(p, pair=pair):
                k, v = (tf.dtypes.as_dtype(t) for t in pair.split("-"))
                function(p, k, v)
            run.__name__ = f"{function.__name__}_{pair.replace('-', '_to_')}"
            program(names, types=[pair.split("-")[0]])(run)
        return function
    return register


def of(dtype, *numbers):
    if dtype == tf.string:
        return np.array([f"w{n}".encode() for n in numbers], object)
    return np.array([bool(n % 2) if dtype == tf.bool else n for n in numbers], dtype.as_numpy_dtype)


def static_table(v2):
    end = "V2" if v2 else ""

    def make(p, k, v):
        table = getattr(raw, "HashTable" + end)(key_dtype=k, value_dtype=v)
        keys, values, ask, default = p.placeholder("keys", k), p.placeholder("values", v), p.placeholder("ask", k), p.placeholder("default", v)
        fill = getattr(raw, "InitializeTable" + end)(table_handle=table, keys=keys, values=values)
        find = getattr(raw, "LookupTableFind" + end)(table_handle=table, keys=ask, default_value=default)
        size = getattr(raw, "LookupTableSize" + end)(table_handle=table)
        query = {ask: of(k, 2, 9, 1).reshape(3), default: of(v, 7)[0:1].reshape(())}
        p.run([find], query)
        p.run(feeds={keys: of(k, 1, 2, 3), values: of(v, 10, 21, 30)}, targets=[fill])
        p.run([find, size], query)
        p.run([find], {ask: of(k, 1, 2).reshape(2, 1), default: of(v, 7).reshape(())})
        p.run(feeds={keys: of(k, 1, 2), values: of(v, 11, 21)}, targets=[fill])
    make.__name__ = "hash_table" + end.lower()
    return make


STATIC = [x for x in PAIRS if not x.endswith("bool")]
each_pair("HashTableV2 InitializeTableV2 LookupTableFindV2 LookupTableSizeV2", STATIC)(static_table(True))
each_pair("HashTable InitializeTable LookupTableFind LookupTableSize", STATIC)(static_table(False))


def mutable_table(kind, v2):
    end = "V2" if v2 else ""

    def make(p, k, v):
        vector = kind == "MutableHashTableOfTensors"
        more = {"value_shape": [2]} if vector else {}
        if kind == "MutableDenseHashTable":
            more = {"empty_key": tf.constant(of(k, -1)[0]), "initial_num_buckets": 4, "value_shape": []}
            if v2:
                more["deleted_key"] = tf.constant(of(k, -2)[0])
            table = getattr(raw, kind + end)(value_dtype=v, **more)
        else:
            table = getattr(raw, kind + end)(key_dtype=k, value_dtype=v, **more)
        keys, values, ask, default = p.placeholder("keys", k), p.placeholder("values", v), p.placeholder("ask", k), p.placeholder("default", v)
        insert = getattr(raw, "LookupTableInsert" + end)(table_handle=table, keys=keys, values=values)
        load = getattr(raw, "LookupTableImport" + end)(table_handle=table, keys=keys, values=values)
        find = getattr(raw, "LookupTableFind" + end)(table_handle=table, keys=ask, default_value=default)
        size = getattr(raw, "LookupTableSize" + end)(table_handle=table)
        remove = raw.LookupTableRemoveV2(table_handle=table, keys=keys) if v2 else None
        export = getattr(raw, "LookupTableExport" + end)(table_handle=table, Tkeys=k, Tvalues=v)
        value = lambda *n: np.stack([of(v, *n), of(v, *n)], 1) if vector else of(v, *n)
        nothing = of(v, 7, 8) if vector else of(v, 7).reshape(())
        p.run(feeds={keys: of(k, 1, 2, 3), values: value(10, 21, 30)}, targets=[insert])
        p.run(feeds={keys: of(k, 2, 4), values: value(25, 40)}, targets=[insert])
        p.run([find, size], {ask: of(k, 2, 9, 4, 1), default: nothing})
        p.run(feeds={keys: of(k, 2, 4), values: value(25)}, targets=[insert])
        if remove is not None:
            p.run(feeds={keys: of(k, 1, 9)}, targets=[remove])
            p.run([find, size], {ask: of(k, 1, 2), default: nothing})
        if kind != "MutableDenseHashTable":  # it imports its buckets as they are
            p.run(feeds={keys: of(k, 5), values: value(50)}, targets=[load])
            p.run([export.keys, export.values])
        p.run([find, size], {ask: of(k, 5, 2), default: nothing})
    make.__name__ = {"MutableHashTable": "mutable_table", "MutableHashTableOfTensors": "vector_table", "MutableDenseHashTable": "dense_table"}[kind] + end.lower()
    return make


MUTABLE = ["string-int64", "int64-string", "int64-int64", "int64-float32", "string-float32", "int64-float64", "string-bool"]
each_pair("MutableHashTableV2 LookupTableInsertV2 LookupTableImportV2 LookupTableExportV2 LookupTableRemoveV2", MUTABLE)(mutable_table("MutableHashTable", True))
each_pair("MutableHashTable LookupTableInsert LookupTableImport LookupTableExport", MUTABLE[:1])(mutable_table("MutableHashTable", False))
each_pair("MutableHashTableOfTensorsV2", ["string-int64", "int64-string", "int64-int64", "string-float32"])(mutable_table("MutableHashTableOfTensors", True))
each_pair("MutableHashTableOfTensors", ["string-int64"])(mutable_table("MutableHashTableOfTensors", False))
each_pair("MutableDenseHashTableV2", ["int64-int64", "int64-float32", "string-int64", "string-float32", "int64-bool"])(mutable_table("MutableDenseHashTable", True))
each_pair("MutableDenseHashTable", ["int64-int64"])(mutable_table("MutableDenseHashTable", False))


def anonymous_table(kind):
    """A table lives as long as its handle: all in one step."""
    def make(p, k, v):
        vector = kind == "AnonymousMutableHashTableOfTensors"
        more = {"value_shape": [2]} if vector else {}
        if kind == "AnonymousMutableDenseHashTable":
            table = raw.AnonymousMutableDenseHashTable(empty_key=tf.constant(of(k, -1)[0]), deleted_key=tf.constant(of(k, -2)[0]), value_dtype=v, initial_num_buckets=4)
        else:
            table = getattr(raw, kind)(key_dtype=k, value_dtype=v, **more)
        keys, values, ask, default = p.placeholder("keys", k), p.placeholder("values", v), p.placeholder("ask", k), p.placeholder("default", v)
        fill = raw.InitializeTableV2 if kind == "AnonymousHashTable" else raw.LookupTableInsertV2
        with tf.control_dependencies([fill(table_handle=table, keys=keys, values=values)]):
            find = raw.LookupTableFindV2(table_handle=table, keys=ask, default_value=default)
            size = raw.LookupTableSizeV2(table_handle=table)
        value = lambda *n: np.stack([of(v, *n), of(v, *n)], 1) if vector else of(v, *n)
        query = {ask: of(k, 2, 9, 1), default: of(v, 7, 8) if vector else of(v, 7).reshape(())}
        p.run([find, size], {**query, keys: of(k, 1, 2, 3), values: value(10, 21, 30)})
        p.run([find, size], {**query, keys: of(k, 4), values: value(40)})
        p.run([find], {**query, keys: of(k, 4, 5), values: value(40)})
    make.__name__ = {"AnonymousHashTable": "anonymous_table", "AnonymousMutableHashTable": "anonymous_mutable_table", "AnonymousMutableHashTableOfTensors": "anonymous_vector_table",
                     "AnonymousMutableDenseHashTable": "anonymous_dense_table"}[kind]
    return make


each_pair("AnonymousHashTable", STATIC)(anonymous_table("AnonymousHashTable"))
each_pair("AnonymousMutableHashTable", MUTABLE)(anonymous_table("AnonymousMutableHashTable"))
each_pair("AnonymousMutableHashTableOfTensors", ["string-int64", "int64-string", "int64-int64", "string-float32"])(anonymous_table("AnonymousMutableHashTableOfTensors"))
each_pair("AnonymousMutableDenseHashTable", ["int64-int64", "int64-float32", "string-int64", "string-float32", "int64-bool"])(anonymous_table("AnonymousMutableDenseHashTable"))


def text_table(v2):
    end = "V2" if v2 else ""

    def make(p):
        table = getattr(raw, "HashTable" + end)(key_dtype=tf.string, value_dtype=tf.int64)
        name, text, ask = p.placeholder("name", tf.string), p.placeholder("text", tf.string), p.placeholder("ask", tf.string)
        put = raw.WriteFile(filename=name, contents=text)
        fill = getattr(raw, "InitializeTableFromTextFile" + end)(table_handle=table, filename=name, key_index=-2, value_index=-1)
        columns = getattr(raw, "HashTable" + end)(key_dtype=tf.string, value_dtype=tf.int64)
        fill_columns = getattr(raw, "InitializeTableFromTextFile" + end)(table_handle=columns, filename=name, key_index=0, value_index=1, delimiter=",")
        find = [getattr(raw, "LookupTableFind" + end)(table_handle=t, keys=ask, default_value=tf.constant(-1, tf.int64)) for t in (table, columns)]
        words, pairs = {name: np.array(b"@TMP@/words", object)}, {name: np.array(b"@TMP@/pairs", object)}
        p.run(feeds={**words, text: np.array(b"one\ntwo\nthree\n", object)}, targets=[put])
        p.run(feeds={**pairs, text: np.array(b"a,7\nb,8\n", object)}, targets=[put])
        p.run(feeds=words, targets=[fill])
        p.run(feeds=pairs, targets=[fill_columns])
        p.run([find[0]], {ask: np.array([b"two", b"x"], object)})
        p.run([find[1]], {ask: np.array([b"b", b"x"], object)})
        p.run(feeds={name: np.array(b"@TMP@/none", object)}, targets=[fill])
    make.__name__ = "text_file_table" + end.lower()
    return make


program("InitializeTableFromTextFileV2 WriteFile")(text_table(True))
program("InitializeTableFromTextFile")(text_table(False))
