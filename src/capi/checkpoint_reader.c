/* checkpoint_reader.c: TF_CheckpointReader: the tensors of a V2 checkpoint, without a graph. */
#include <stdlib.h>

#include "base/memory.h"
#include "capi/status_internal.h"
#include "capi/tensor_internal.h"
#include "io/bundle.h"
#include "tensorflow/c/c_api_experimental.h"

struct TF_CheckpointReader {
    Bundle *bundle;
    char **names; /* of whole tensors: parts have keys of their own */
    int count;
};

static void list_names(TF_CheckpointReader *r) {
    int64_t all = bundle_count(r->bundle);
    r->names = xcalloc((size_t)all, sizeof *r->names);
    for (int64_t i = 0; i < all; i++) {
        Str name = bundle_name(r->bundle, i);
        if (name.len && name.ptr[0]) r->names[r->count++] = str_dup(name);
    }
}

TF_CheckpointReader *TF_NewCheckpointReader(const char *filename, TF_Status *status) {
    Bundle *bundle = NULL;
    if (!status_take(status, bundle_open(&file_system_local, filename, &bundle))) return NULL;
    TF_CheckpointReader *r = xcalloc(1, sizeof *r);
    r->bundle = bundle;
    list_names(r);
    return r;
}

void TF_DeleteCheckpointReader(TF_CheckpointReader *r) {
    if (!r) return;
    for (int i = 0; i < r->count; i++) free(r->names[i]);
    free(r->names);
    bundle_close(r->bundle);
    free(r);
}

int TF_CheckpointReaderHasTensor(TF_CheckpointReader *r, const char *name) {
    return bundle_has(r->bundle, str_of(name));
}

int TF_CheckpointReaderSize(TF_CheckpointReader *r) {
    return r->count;
}

const char *TF_CheckpointReaderGetVariable(TF_CheckpointReader *r, int index) {
    return index >= 0 && index < r->count ? r->names[index] : NULL;
}

static Error *find(TF_CheckpointReader *r, const char *name, DataType *dtype, Shape *shape) {
    BundleEntry entry;
    Error *err = bundle_find(r->bundle, str_of(name), &entry);
    if (err) return err;
    *dtype = entry.dtype;
    *shape = entry.shape;
    bundle_entry_clear(&entry);
    return NULL;
}

TF_DataType TF_CheckpointReaderGetVariableDataType(TF_CheckpointReader *r, const char *name) {
    DataType dtype = DT_INVALID;
    Shape shape;
    error_free(find(r, name, &dtype, &shape));
    return (TF_DataType)dtype;
}

int TF_CheckpointReaderGetVariableNumDims(TF_CheckpointReader *r, const char *name) {
    DataType dtype;
    Shape shape = {.rank = -1};
    error_free(find(r, name, &dtype, &shape));
    return shape.rank;
}

void TF_CheckpointReaderGetVariableShape(TF_CheckpointReader *r, const char *name, int64_t *dims, int num_dims, TF_Status *status) {
    DataType dtype;
    Shape shape = {.rank = -1};
    Error *err = find(r, name, &dtype, &shape);
    if (!err && num_dims != shape.rank) err = error_invalid("Expected rank is %d but actual rank is %d", num_dims, shape.rank);
    for (int i = 0; !err && i < shape.rank; i++) dims[i] = shape.dims[i];
    status_take(status, err);
}

TF_Tensor *TF_CheckpointReaderGetTensor(TF_CheckpointReader *r, const char *name, TF_Status *status) {
    Tensor *value = NULL;
    TF_Tensor *tensor = NULL;
    Error *err = bundle_read(r->bundle, str_of(name), &value);
    if (!err) err = capi_tensor_new(value, &tensor);
    tensor_unref(value);
    status_take(status, err);
    return tensor;
}
