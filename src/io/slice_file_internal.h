/* slice_file_internal.h: field numbers of the messages of V1 checkpoints, and the tensors of one by name.
 *
 * "" -> SavedTensorSlices { meta }: the tensors with their shapes, types and slices
 * key of (name, slice) -> SavedTensorSlices { data }: the values of that slice, in the typed field of a TensorProto
 *                         that says neither type nor shape */
#pragma once
#include "base/hashmap.h"
#include "io/slice_file.h"

enum { SLICES_META = 1, SLICES_DATA = 2 };                                     /* SavedTensorSlices */
enum { META_TENSOR = 1, META_VERSIONS = 2 };                                   /* SavedTensorSliceMeta */
enum { TENSOR_NAME = 1, TENSOR_SHAPE = 2, TENSOR_TYPE = 3, TENSOR_SLICE = 4 }; /* SavedSliceMeta */
enum { DATA_NAME = 1, DATA_SLICE = 2, DATA_VALUES = 3 };                       /* SavedSlice */
enum { VERSION_PRODUCER = 1, VERSION_MIN_CONSUMER = 2 };                       /* VersionDef */
enum { SLICE_FILE_VERSION = 1 };

typedef struct SliceTensorSet {
    StrMap by_name; /* to SliceTensor, which owns its name */
} SliceTensorSet;

/* The tensor of this name, made when there is none; Internal, in these words, when type or shape are others. */
Error *slice_tensor_set_get(SliceTensorSet *s, Str name, DataType dtype, const Shape *shape,
                            SliceTensor **out) MUST_CHECK;
void slice_tensor_add(SliceTensor *t, const TensorSlice *slice, int file);
SliceTensor **slice_tensor_set_sorted(const SliceTensorSet *s); /* by name; malloced, borrowed tensors */
void slice_tensor_set_clear(SliceTensorSet *s);
