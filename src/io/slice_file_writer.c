/* slice_file_writer.c: writes V1 checkpoints; the set of tensors that reading and writing share. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "io/replace.h"
#include "io/slice_file_internal.h"
#include "io/table.h"
#include "proto/wire.h"

/* ---- Tensors by name ---- */

Error *slice_tensor_set_get(SliceTensorSet *s, Str name, DataType dtype, const Shape *shape, SliceTensor **out) {
    SliceTensor *t = strmap_get(&s->by_name, name);
    if (t && !shape_eq(&t->shape, shape)) {
        char *old = shape_str(&t->shape), *new = shape_str(shape);
        Error *err =
            error_new(CODE_INTERNAL, "Mismatching shapes: existing tensor = %s, trying to add name %.*s, shape = %s",
                      old, STR_ARG(name), new);
        free(old);
        free(new);
        return err;
    }
    if (t && t->dtype != dtype)
        return error_new(CODE_INTERNAL, "Mismatching types: existing type = %s, trying to add name %.*s, type = %s",
                         dtype_name(t->dtype), STR_ARG(name), dtype_name(dtype));
    if (!t) {
        t = xcalloc(1, sizeof *t);
        *t = (SliceTensor){.name = {str_dup(name), name.len}, .dtype = dtype, .shape = *shape};
        strmap_put(&s->by_name, t->name, t);
    }
    *out = t;
    return NULL;
}

void slice_tensor_add(SliceTensor *t, const TensorSlice *slice, int file) {
    t->slices = vec_reserve(t->slices, &t->slice_capacity, t->count + 1, sizeof *t->slices);
    t->files = vec_reserve(t->files, &t->file_capacity, t->count + 1, sizeof *t->files);
    t->slices[t->count] = *slice;
    t->files[t->count++] = file;
}

static int compare_names(const void *a, const void *b) {
    return str_compare((*(SliceTensor *const *)a)->name, (*(SliceTensor *const *)b)->name);
}

SliceTensor **slice_tensor_set_sorted(const SliceTensorSet *s) {
    SliceTensor **sorted = xmalloc((s->by_name.count + 1) * sizeof *sorted);
    size_t n = 0, at = 0;
    Str name;
    void *value;
    while (strmap_next(&s->by_name, &at, &name, &value)) sorted[n++] = value;
    qsort(sorted, n, sizeof *sorted, compare_names);
    return sorted;
}

void slice_tensor_set_clear(SliceTensorSet *s) {
    size_t at = 0;
    Str name;
    void *value;
    while (strmap_next(&s->by_name, &at, &name, &value)) {
        SliceTensor *t = value;
        free((char *)t->name.ptr);
        free(t->slices);
        free(t->files);
        free(t);
    }
    strmap_clear(&s->by_name);
}

/* ---- Writing ---- */

typedef struct Record {
    StrBuf key, value;
} Record;

struct SliceFileWriter {
    SliceTensorSet tensors;
    Record *records;
    size_t count, capacity;
};

SliceFileWriter *slice_file_writer_new(void) {
    return xcalloc(1, sizeof(SliceFileWriter));
}

void slice_file_writer_free(SliceFileWriter *w) {
    if (!w) return;
    for (size_t i = 0; i < w->count; i++) {
        strbuf_clear(&w->records[i].key);
        strbuf_clear(&w->records[i].value);
    }
    free(w->records);
    slice_tensor_set_clear(&w->tensors);
    free(w);
}

/* Elements as packed varints; signed ones as 64-bit integers. */
static void pack_integers(const Tensor *t, StrBuf *out) {
    for (int64_t i = 0; i < t->count; i++) {
        switch (t->dtype) {
            case DT_INT64:
                wire_put_varint(out, (uint64_t)((const int64_t *)t->data)[i]);
                break;
            case DT_INT32:
            case DT_QINT32:
                wire_put_varint(out, (uint64_t)(int64_t)((const int32_t *)t->data)[i]);
                break;
            case DT_INT16:
            case DT_QINT16:
                wire_put_varint(out, (uint64_t)(int64_t)((const int16_t *)t->data)[i]);
                break;
            case DT_INT8:
            case DT_QINT8:
                wire_put_varint(out, (uint64_t)(int64_t)((const int8_t *)t->data)[i]);
                break;
            case DT_HALF:
            case DT_UINT16:
            case DT_QUINT16:
                wire_put_varint(out, ((const uint16_t *)t->data)[i]);
                break;
            default:
                wire_put_varint(out, ((const uint8_t *)t->data)[i]);
                break;
        }
    }
}

/* The typed field of a TensorProto: a file of the old format has no other. */
static Error *encode_values(const Tensor *t, StrBuf *out) {
    StrBuf packed = {0};
    Str bytes = {t->data, tensor_bytes(t)};
    switch (t->dtype) {
        case DT_FLOAT:
            wire_put_bytes(out, 5, bytes);
            break;
        case DT_DOUBLE:
            wire_put_bytes(out, 6, bytes);
            break;
        case DT_COMPLEX64:
            wire_put_bytes(out, 9, bytes);
            break;
        case DT_COMPLEX128:
            wire_put_bytes(out, 12, bytes);
            break;
        case DT_STRING:
            for (int64_t i = 0; i < t->count; i++) wire_put_bytes(out, 8, tstring_str(&tensor_str(t)[i]));
            break;
        case DT_INT64:
        case DT_BOOL:
        case DT_HALF:
        case DT_INT32:
        case DT_INT16:
        case DT_INT8:
        case DT_UINT16:
        case DT_UINT8:
        case DT_QINT32:
        case DT_QINT8:
        case DT_QUINT8:
            pack_integers(t, &packed);
            wire_put_bytes(out,
                           t->dtype == DT_INT64  ? 10
                           : t->dtype == DT_BOOL ? 11
                           : t->dtype == DT_HALF ? 13
                                                 : 7,
                           strbuf_str(&packed));
            break;
        case DT_UINT32:
        case DT_UINT64:
            return error_invalid("Tensor slice serialization not implemented for dtype %d", (int)t->dtype);
        default:
            return error_unimplemented("Saving data type %s not yet supported", dtype_name(t->dtype));
    }
    strbuf_clear(&packed);
    return NULL;
}

Error *slice_file_writer_add(SliceFileWriter *w, Str name, const Shape *full, const TensorSlice *slice,
                             const Tensor *value) {
    StrBuf values = {0}, data = {0}, box = {0};
    SliceTensor *t = NULL;
    Record r = {0};
    Error *err = encode_values(value, &values);
    if (!err && values.len > (size_t)INT32_MAX - 1024)
        err = error_invalid("Tensor slice is too large to serialize (conservative estimate: %zu bytes)", values.len);
    if (!err) err = slice_tensor_set_get(&w->tensors, name, value->dtype, full, &t);
    if (!err) {
        slice_tensor_add(t, slice, 0);
        slice_encode(slice, &box);
        wire_put_bytes(&data, DATA_NAME, name);
        wire_put_bytes(&data, DATA_SLICE, strbuf_str(&box));
        wire_put_bytes(&data, DATA_VALUES, strbuf_str(&values));
        strbuf_clear(&values); /* large ones are not kept three times */
        wire_put_bytes(&r.value, SLICES_DATA, strbuf_str(&data));
        slice_key(name, slice, &r.key);
        w->records = vec_reserve(w->records, &w->capacity, w->count + 1, sizeof *w->records);
        w->records[w->count++] = r;
    }
    strbuf_clear(&values);
    strbuf_clear(&data);
    strbuf_clear(&box);
    return err;
}

static void encode_tensor(const SliceTensor *t, StrBuf *out) {
    StrBuf part = {0};
    wire_put_bytes(out, TENSOR_NAME, t->name);
    shape_encode(&t->shape, &part);
    wire_put_bytes(out, TENSOR_SHAPE, strbuf_str(&part));
    wire_put_uint(out, TENSOR_TYPE, (uint64_t)t->dtype);
    for (size_t i = 0; i < t->count; i++) {
        strbuf_clear(&part);
        slice_encode(&t->slices[i], &part);
        wire_put_bytes(out, TENSOR_SLICE, strbuf_str(&part));
    }
    strbuf_clear(&part);
}

/* The value of the key "". */
static StrBuf encode_meta(const SliceTensorSet *tensors) {
    StrBuf meta = {0}, part = {0}, out = {0};
    SliceTensor **sorted = slice_tensor_set_sorted(tensors);
    for (size_t i = 0; i < tensors->by_name.count; i++) {
        strbuf_clear(&part);
        encode_tensor(sorted[i], &part);
        wire_put_bytes(&meta, META_TENSOR, strbuf_str(&part));
    }
    strbuf_clear(&part);
    wire_put_uint(&part, VERSION_PRODUCER, SLICE_FILE_VERSION);
    wire_put_bytes(&meta, META_VERSIONS, strbuf_str(&part));
    wire_put_bytes(&out, SLICES_META, strbuf_str(&meta));
    strbuf_clear(&part);
    strbuf_clear(&meta);
    free(sorted);
    return out;
}

/* By key; of equal keys the one added first comes first. */
static int compare_records(const void *a, const void *b) {
    const Record *x = *(const Record *const *)a, *y = *(const Record *const *)b;
    int order = str_compare(strbuf_str(&x->key), strbuf_str(&y->key));
    return order ? order : x < y ? -1 : x > y;
}

static StrBuf encode_file(const SliceFileWriter *w) {
    const Record **sorted = xmalloc((w->count + 1) * sizeof *sorted);
    for (size_t i = 0; i < w->count; i++) sorted[i] = &w->records[i];
    qsort(sorted, w->count, sizeof *sorted, compare_records);
    TableWriter table = {0};
    StrBuf meta = encode_meta(&w->tensors);
    table_writer_add(&table, STR(""), strbuf_str(&meta));
    for (size_t i = 0; i < w->count; i++)
        if (!i || !str_eq(strbuf_str(&sorted[i - 1]->key), strbuf_str(&sorted[i]->key)))
            table_writer_add(&table, strbuf_str(&sorted[i]->key), strbuf_str(&sorted[i]->value));
    strbuf_clear(&meta);
    free(sorted);
    return table_writer_finish(&table);
}

Error *slice_file_writer_finish(SliceFileWriter *w, const FileSystem *fs, const char *path) {
    StrBuf bytes = encode_file(w);
    bool replaced = false;
    Error *err = file_replace(fs, path, strbuf_str(&bytes), &replaced);
    strbuf_clear(&bytes);
    return err;
}
