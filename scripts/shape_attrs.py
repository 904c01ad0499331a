"""Attributes with which record_shapes.py tries ops: by kind, and by name where an op wants something special."""
from tensorflow.core.framework import attr_value_pb2, types_pb2

FLOAT, INT32, INT64, STRING = types_pb2.DT_FLOAT, types_pb2.DT_INT32, types_pb2.DT_INT64, types_pb2.DT_STRING
SKIP_TYPES = {types_pb2.DT_RESOURCE, types_pb2.DT_VARIANT}


def takes_variable(op):
    """Whether resource inputs of the op are variables."""
    return op.startswith(("Resource", "Assign")) and "Accumulator" not in op or op in (
        "ReadVariableOp", "VariableShape", "VarIsInitializedOp", "DestroyResourceOp", "DisableCopyOnRead", "_ReadVariablesOp", "Identity",
        "Switch", "Merge", "Enter", "Exit", "NextIteration")


# By op, then attribute: what to choose from.
SPECIAL = {
    "Einsum": {"equation": ["ab,bc->ac", "bij,bjk->bik", "...ij,...jk->...ik", "ii->i", "ij->ji", "ij->", "a...b->b...a", "abc,c->ab", "i,i->"]},
    "Conv2D": {"strides": [[1, 1, 1, 1], [1, 2, 2, 1], [1, 1, 2, 2]], "data_format": ["NHWC", "NCHW"], "dilations": [[1, 1, 1, 1], [1, 2, 2, 1]],
               "explicit_paddings": [[], [0, 0, 1, 1, 1, 1, 0, 0]], "padding": ["SAME", "VALID", "EXPLICIT"]},
    "_FusedConv2D": {"strides": [[1, 1, 1, 1], [1, 2, 2, 1]], "data_format": ["NHWC", "NCHW"], "padding": ["SAME", "VALID"], "num_args": [1]},
    "Conv3D": {"strides": [[1, 1, 1, 1, 1], [1, 2, 2, 2, 1]], "dilations": [[1, 1, 1, 1, 1]], "data_format": ["NDHWC", "NCDHW"]},
    "DepthwiseConv2dNative": {"strides": [[1, 1, 1, 1], [1, 2, 2, 1]], "dilations": [[1, 1, 1, 1]], "padding": ["SAME", "VALID"], "explicit_paddings": [[]],
                              "data_format": ["NHWC", "NCHW"]},
    "Dilation2D": {"strides": [[1, 1, 1, 1], [1, 2, 2, 1]], "rates": [[1, 1, 1, 1], [1, 2, 2, 1]]},
    "ExtractImagePatches": {"ksizes": [[1, 2, 2, 1], [1, 3, 3, 1]], "strides": [[1, 1, 1, 1], [1, 2, 2, 1]], "rates": [[1, 1, 1, 1], [1, 2, 2, 1]]},
    "ExtractVolumePatches": {"ksizes": [[1, 2, 2, 2, 1]], "strides": [[1, 1, 1, 1, 1], [1, 2, 2, 2, 1]]},
    "Squeeze": {"squeeze_dims": [[], [0], [-1], [1, 2], [0, 2]]},
    "Unpack": {"axis": [0, 1, -1, 2]}, "Pack": {"axis": [0, 1, -1, -3]},
    "RaggedTensorToTensor": {"row_partition_types": [["ROW_SPLITS"], ["FIRST_DIM_SIZE", "VALUE_ROWIDS"], ["ROW_SPLITS", "ROW_SPLITS"]], "num_row_partition_tensors": [1, 2]},
    "RaggedTensorFromVariant": {"input_ragged_rank": [-1, 0, 1], "output_ragged_rank": [0, 1, 2]},
    "RaggedTensorToVariant": {"RAGGED_RANK": [0, 1, 2]},
    "StringSplitV2": {}, "Bitcast": {"T": [FLOAT, types_pb2.DT_INT8, types_pb2.DT_DOUBLE], "type": [INT32, types_pb2.DT_UINT8, types_pb2.DT_INT64]},
    "StridedSlice": {"begin_mask": [0, 1, 2], "end_mask": [0, 1, 3], "ellipsis_mask": [0, 0, 1, 2], "new_axis_mask": [0, 0, 1, 2], "shrink_axis_mask": [0, 0, 1, 2]},
    "SpaceToDepth": {"block_size": [2, 3]}, "DepthToSpace": {"block_size": [2]}, "SpaceToBatch": {"block_size": [2]}, "BatchToSpace": {"block_size": [2]},
    "ReverseSequence": {"seq_dim": [0, 1, 2], "batch_dim": [0, 1]},
    "DecodePng": {"channels": [0, 1, 3]}, "DecodeJpeg": {"channels": [0, 1, 3]}, "DecodeBmp": {"channels": [0, 3]}, "DecodeImage": {"channels": [0, 3]},
    "DecodeAndCropJpeg": {"channels": [0, 1, 3]},
    "ReduceJoin": {}, "ParallelConcat": {"N": [2], "shape": [[2, 3]]},
    "Cumsum": {}, "ListDiff": {},
    "SplitV": {"num_split": [1, 2, 3]}, "Split": {"num_split": [1, 2, 3]},
    "IteratorGetNext": {}, "DecodeCSV": {"OUT_TYPE": [[FLOAT, STRING]]},
    "QueueDequeueV2": {}, "SparseSplit": {"num_split": [2]},
    "FractionalMaxPool": {"pooling_ratio": [[1.0, 1.5, 1.5, 1.0]]},
    "Assert": {"T": [[FLOAT, INT32]]}, "QuantizeV2": {"axis": [-1, 1]}, "Dequantize": {"axis": [-1, 1]},
    "QuantizeAndDequantizeV2": {"axis": [-1, 0, 1]}, "QuantizeAndDequantizeV3": {"axis": [-1, 0, 1]}, "QuantizeAndDequantizeV4": {"axis": [-1, 0, 1]},
    "QuantizeAndDequantizeV4Grad": {"axis": [-1, 0, 1]},
    "Dilation2DBackpropInput": {"rates": [[1, 1, 1, 1], [1, 2, 2, 1]]}, "Dilation2DBackpropFilter": {"rates": [[1, 1, 1, 1], [1, 2, 2, 1]]},
    "ParseExample": {"Nsparse": [1], "Ndense": [2], "sparse_types": [[INT64]], "Tdense": [[FLOAT, STRING]], "dense_shapes": [[[2], []], [[2, 3], [-1, 2]]]},
    "ParseExampleV2": {"num_sparse": [1], "sparse_types": [[INT64]], "Tdense": [[FLOAT, STRING]], "dense_shapes": [[[2], []], [[2, 3], [-1, 2]]],
                       "ragged_value_types": [[], [INT64]], "ragged_split_types": [[], [INT64]]},
    "ParseSingleExample": {"num_sparse": [1], "sparse_keys": [["a"]], "dense_keys": [["b", "c"]], "sparse_types": [[INT64]], "Tdense": [[FLOAT, STRING]],
                           "dense_shapes": [[[2], []], [[2, 3], [-1, 2]]]},
    "ParseSingleSequenceExample": {"Ncontext_sparse": [1], "Ncontext_dense": [1], "Nfeature_list_sparse": [1], "Nfeature_list_dense": [1],
                                   "context_sparse_types": [[INT64]], "Tcontext_dense": [[FLOAT]], "feature_list_dense_types": [[FLOAT]],
                                   "context_dense_shapes": [[[2]], [[]]], "feature_list_sparse_types": [[STRING]], "feature_list_dense_shapes": [[[3]], [[]]]},
    "ParseSequenceExample": {"Ncontext_sparse": [1], "Ncontext_dense": [1], "Nfeature_list_sparse": [1], "Nfeature_list_dense": [1],
                             "context_sparse_keys": [["a"]], "context_dense_keys": [["b"]], "feature_list_sparse_keys": [["c"]], "feature_list_dense_keys": [["d"]],
                             "feature_list_dense_missing_assumed_empty": [[]],
                             "context_sparse_types": [[INT64]], "Tcontext_dense": [[FLOAT]], "feature_list_dense_types": [[FLOAT]],
                             "context_dense_shapes": [[[2]], [[]]], "feature_list_sparse_types": [[STRING]], "feature_list_dense_shapes": [[[3]], [[]]]},
    "ParseSequenceExampleV2": {"Ncontext_sparse": [1], "Nfeature_list_sparse": [1], "Nfeature_list_dense": [1], "context_ragged_value_types": [[], [INT64]],
                               "context_ragged_split_types": [[], [INT64]], "feature_list_ragged_value_types": [[], [INT64]],
                               "feature_list_ragged_split_types": [[], [INT64]],
                               "context_sparse_types": [[INT64]], "Tcontext_dense": [[FLOAT]], "feature_list_dense_types": [[FLOAT]],
                               "context_dense_shapes": [[[2]], [[]]], "feature_list_sparse_types": [[STRING]], "feature_list_dense_shapes": [[[3]], [[]]]},
    "_VarHandlesOp": {"N": [2], "containers": [["", ""]], "shared_names": [["a", "b"]], "dtypes": [[FLOAT, FLOAT]], "shapes": [[[2], [-1, 3]]]},
    "TensorArrayV3": {"element_shape": [None, [2], [-1, 3]]},
    "TensorArrayConcatV3": {"element_shape_except0": [None, [2], [-1, 3]]},
    "_FusedMatMul": {"num_args": [1]},
    "NonMaxSuppressionV4": {}, "NonMaxSuppressionV5": {},
    "MatrixDiagPartV3": {}, "Substr": {}, "Roll": {}, "StatelessMultinomial": {},
    "LookupTableExportV2": {}, "_SwitchN": {"num_outs": [2, 3]},
    "Where": {"T": [FLOAT, types_pb2.DT_BOOL]}, "Slice": {}, "BroadcastTo": {},
    "FakeParam": {"shape": [[2, 3], [-1], None]}, "ImmutableConst": {"shape": [[2, 3]]}, "EnsureShape": {"shape": [[2, -1], None, [3]]},
    "RecordInput": {}, "AccumulateNV2": {"shape": [[2, 3], [], None]},
}

# By the name of an attribute, whatever the op.
BY_NAME = {
    "ksize": [[1, 2, 2, 1], [1, 3, 3, 1]],
    "padding": ["SAME", "VALID"],
    "data_format": ["NHWC", "NCHW"],
    "strides": [[1, 1, 1, 1], [1, 2, 2, 1]],
    "dilations": [[1, 1, 1, 1]],
    "explicit_paddings": [[]],
    "shape": [[2, 3], [-1, 2], None, []],
    "element_shape": [None, [2], [-1, 3]],
    "frame_name": ["frame"], "shared_name": [""], "container": [""],
    "N": [1, 2, 3], "n": [2], "num": [1, 2, 3], "K": [2],
    "data_files": [[]], "message": [""], "summarize": [3],
    "output_shapes": "output_types", "shapes": "component_types", "memory_limit": [0], "capacity": [0, 2],
    "index": [0], "value_index": [0], "keep_dims": [True, False], "keepdims": [True, False],
    "num_threads": [1], "num_parallel_calls": [1], "min_after_dequeue": [0],
}
TYPE_LISTS = {"output_types": [[FLOAT, INT64]], "dtypes": [[FLOAT, INT32]], "component_types": [[FLOAT, INT64]], "Tinput_types": [[FLOAT]]}


def kernel3d(name, op):
    """Attributes of three-dimensional windows have two more numbers."""
    if "3D" in op and name in ("ksize", "strides", "dilations"):
        return [v[:2] + [v[1]] + v[2:] for v in BY_NAME[name]]
    if "3D" in op and name == "data_format":
        return ["NDHWC", "NCDHW"]
    return None


def put(value, kind, v):
    """Fills an AttrValue."""
    if kind == "type":
        value.type = v
    elif kind == "int":
        value.i = v
    elif kind == "bool":
        value.b = v
    elif kind == "float":
        value.f = v
    elif kind == "string":
        value.s = v.encode() if isinstance(v, str) else v
    elif kind == "shape":
        put_shape(value.shape, v)
    elif kind.startswith("list("):
        value.list.SetInParent()
        item = kind[5:-1]
        for x in v:
            if item == "shape":
                put_shape(value.list.shape.add(), x)
            elif item == "string":
                value.list.s.append(x.encode())
            else:
                getattr(value.list, {"type": "type", "int": "i", "float": "f", "bool": "b"}[item]).append(x)
    else:
        raise ValueError(kind)


def put_shape(proto, dims):
    if dims is None:
        proto.unknown_rank = True
        return
    proto.SetInParent()
    for d in dims:
        proto.dim.add(size=d)


def pick_type(allowed, rng):
    usable = [t for t in allowed if t not in SKIP_TYPES] or list(allowed)
    for preferred in ([FLOAT, INT32, INT64, STRING], [INT32, INT64, FLOAT]):
        both = [t for t in preferred if t in usable]
        if both and rng.random() < 0.9:
            return both[0]
    return rng.choice(usable)


def candidates(op, attr, rng):
    """What to choose the attribute from; None: leave it to its default."""
    special = SPECIAL.get(op, {})
    if attr.name in special:
        return special[attr.name]
    known = kernel3d(attr.name, op)
    if known:
        return known
    kind, allowed = attr.type, attr.allowed_values.list
    named = BY_NAME.get(attr.name)
    if kind == "list(type)":
        return TYPE_LISTS.get(attr.name, [[FLOAT], [FLOAT, INT32]]) if not allowed.type else [[pick_type(allowed.type, rng)]]
    if isinstance(named, str):
        return named
    if named is not None and not allowed.s and fits(kind, named[0]):
        return named
    if allowed.s:
        return [s.decode() for s in allowed.s if b"VECT" not in s or "Space" in op] if kind == "string" else [[allowed.s[0].decode()]]
    if kind == "type":
        return [pick_type(allowed.type or range(1, 20), rng)]
    return {"int": [max(attr.minimum, 0) if attr.has_minimum else 0, 1, 2], "bool": [False, True], "float": [0.5], "string": ["x"], "shape": [[2, 3], None, [-1, 2]],
            "list(int)": [[], [1, 2]], "list(float)": [[0.5]], "list(bool)": [[True]], "list(string)": [["x"]], "list(shape)": [[[2], [3]]], "func": ["f"],
            "list(func)": [[]]}.get(kind)


def fits(kind, value):
    return {"int": int, "bool": bool, "string": str, "shape": (list, type(None)), "list(int)": list, "list(float)": list}.get(kind) is not None and \
        isinstance(value, {"int": int, "bool": bool, "string": str, "shape": (list, type(None)), "list(int)": list, "list(float)": list}[kind]) or value is None


def choose(op_def, rng, variant):
    """A value for every attribute; None when one cannot be made."""
    attrs = {}
    for a in sorted(op_def.attr, key=lambda a: BY_NAME.get(a.name).__class__ is str):
        optional = a.HasField("default_value")
        special = a.name in SPECIAL.get(op_def.name, {})
        if optional and not special and a.type in ("string", "float", "list(string)", "list(float)", "list(func)", "func", "list(int)", "list(bool)") and not a.allowed_values.list.s \
                and a.name not in ("data_format",):
            attrs[a.name] = a.default_value
            continue
        if optional and (variant == 0 and not special) and a.name not in ("N", "num"):
            attrs[a.name] = a.default_value
            continue
        value = attr_value_pb2.AttrValue()
        if a.type == "func":
            value.func.name = "f"
        elif a.type == "list(func)":
            value.list.func.add(name="f")
            value.list.func.add(name="f")
        elif a.type == "tensor":
            value.tensor.dtype = FLOAT
            value.tensor.tensor_shape.dim.add(size=2)
            value.tensor.float_val.extend([1, 2])
        else:
            items = candidates(op_def.name, a, rng)
            if items is None:
                return None
            if isinstance(items, str):
                linked = [x for x in (items, "output_types", "Toutput_types", "dtypes", "component_types", "Tout", "Tdense") if x in attrs and x != a.name]
                n = len(attrs[linked[0]].list.type) if linked else 1
                v = [rng.choice(([2, 3], [-1], None, [])) for _ in range(n)]
            else:
                v = rng.choice(items)
            if optional and not special and v == [] and a.type == "list(int)":
                attrs[a.name] = a.default_value
                continue
            put(value, a.type, v)
        attrs[a.name] = value
    # dtype and tensor must agree
    if op_def.name in ("Const", "HostConst"):
        attrs["dtype"].type = FLOAT
    return attrs
