/* csr_matrix.c: sparse matrices by compressed rows as variants.

   On the wire the metadata are a bool and, four bytes on, the type as an int32; the tensors are shape, batches, rows, columns and values. */
#include "ops/csr_matrix.h"

#include <complex.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "ops/elements.h"
#include "proto/wire.h"

enum { METADATA_SIZE = 8 };

static const VariantType csr_type;

CsrView csr_view(const CsrMatrix *m, int64_t batch) {
    const int32_t *batches = tensor_i32(m->batches);
    return (CsrView){csr_row_count(m),
                     csr_col_count(m),
                     batches[batch + 1] - batches[batch],
                     tensor_i32(m->rows) + batch * (csr_row_count(m) + 1),
                     tensor_i32(m->cols) + batches[batch],
                     (const char *)m->values->data + (size_t)batches[batch] * dtype_size(m->dtype)};
}

static CsrMatrix *csr_empty(DataType dtype) {
    CsrMatrix *m = xcalloc(1, sizeof *m);
    refcount_init(&m->refs);
    m->dtype = dtype;
    return m;
}

Error *csr_new(DataType dtype, const Shape *shape, int64_t nnz, CsrMatrix **out) {
    int64_t batch = shape->rank == 2 ? 1 : shape->dims[0], rows = shape->dims[shape->rank - 2], size;
    if (batch >= INT32_MAX) return error_invalid("dense_shape batch_size must be < Int32Max, but the input value is %lld", (long long)batch);
    if (nnz > INT32_MAX) return error_invalid("values number of elements must be <= Int32Max, but the input value is %lld", (long long)nnz);
    if (rows >= INT32_MAX || __builtin_mul_overflow(rows + 1, batch, &size) || size > INT32_MAX)
        return error_invalid("The csr row index size, computed based on the dense_shape, must be <= Int32Max, but is too large.");
    Shape dims = shape_vector(shape->rank), batches = shape_vector(batch + 1), row_ptrs = shape_vector(size), entries = shape_vector(nnz);
    CsrMatrix *m = csr_empty(dtype);
    Error *err = tensor_new(DT_INT64, &dims, &m->shape);
    if (!err) err = tensor_new(DT_INT32, &batches, &m->batches);
    if (!err) err = tensor_new(DT_INT32, &row_ptrs, &m->rows);
    if (!err) err = tensor_new(DT_INT32, &entries, &m->cols);
    if (!err) err = tensor_new(dtype, &entries, &m->values);
    if (err) {
        csr_unref(m);
        return err;
    }
    memcpy(m->shape->data, shape->dims, (size_t)shape->rank * sizeof(int64_t));
    memset(m->batches->data, 0, tensor_bytes(m->batches));
    memset(m->rows->data, 0, tensor_bytes(m->rows));
    *out = m;
    return NULL;
}

static void ref_csr(void *object) {
    refcount_inc(&((CsrMatrix *)object)->refs);
}

static void unref_csr(void *object) {
    CsrMatrix *m = object;
    if (!refcount_dec(&m->refs)) return;
    tensor_unref(m->shape);
    tensor_unref(m->batches);
    tensor_unref(m->rows);
    tensor_unref(m->cols);
    tensor_unref(m->values);
    free(m);
}

void csr_unref(CsrMatrix *m) {
    unref_csr(m);
}

/* ---- Checks ---- */

static bool is_vector(const Tensor *t, DataType dtype) {
    return t->dtype == dtype && t->shape.rank == 1;
}

/* Pointers [0, n] rise from 0 to `end`. */
static bool rises(const int32_t *p, int64_t n, int64_t end) {
    if (p[0] != 0 || p[n] != end) return false;
    for (int64_t i = 0; i < n; i++)
        if (p[i + 1] < p[i]) return false;
    return true;
}

Error *csr_check(const CsrMatrix *m) {
    bool known = m->dtype == DT_FLOAT || m->dtype == DT_DOUBLE || m->dtype == DT_COMPLEX64 || m->dtype == DT_COMPLEX128;
    if (!known) return error_invalid("CSRSparseMatrix::Validate: dtype = %s not in {float32, float64, complex64, complex128}", dtype_name(m->dtype));
    if (!is_vector(m->shape, DT_INT64) || m->shape->count < 2 || m->shape->count > 3)
        return error_invalid("CSRSparseMatrix::Validate: dense_shape should be a 2- or 3- vector of int64");
    if (!is_vector(m->batches, DT_INT32) || !is_vector(m->rows, DT_INT32) || !is_vector(m->cols, DT_INT32) || !is_vector(m->values, m->dtype))
        return error_invalid("CSRSparseMatrix::Validate: pointers, indices and values should be vectors of int32 and of %s", dtype_name(m->dtype));
    int64_t batch = m->shape->count == 2 ? 1 : tensor_i64(m->shape)[0], rows = csr_row_count(m), cols = csr_col_count(m), size;
    if (batch < 0 || rows < 0 || cols < 0) return error_invalid("CSRSparseMatrix::Validate: dense_shape has a negative dimension");
    if (rows == INT64_MAX || __builtin_mul_overflow(rows + 1, batch, &size) || m->batches->count - 1 != batch || m->rows->count != size)
        return error_invalid("CSRSparseMatrix::Validate: %lld batch pointers and %lld row pointers do not fit the shape", (long long)m->batches->count,
                             (long long)m->rows->count);
    if (m->cols->count != m->values->count)
        return error_invalid("CSRSparseMatrix::Validate: size(col_indices) = %lld != size(values) = %lld", (long long)m->cols->count, (long long)m->values->count);
    const int32_t *batches = tensor_i32(m->batches);
    bool fits = rises(batches, batch, m->cols->count);
    for (int64_t b = 0; fits && b < batch; b++) fits = rises(tensor_i32(m->rows) + b * (rows + 1), rows, batches[b + 1] - batches[b]);
    if (!fits) return error_invalid("CSRSparseMatrix::Validate: pointers must rise from 0 to the number of entries");
    for (int64_t i = 0; i < m->cols->count; i++)
        if (tensor_i32(m->cols)[i] < 0 || tensor_i32(m->cols)[i] >= cols)
            return error_invalid("CSRSparseMatrix::Validate: column index %d is outside of the valid range [0, %lld)", tensor_i32(m->cols)[i], (long long)cols);
    return NULL;
}

/* ---- As a variant ---- */

static Error *encode_csr(const void *object, StrBuf *metadata, StrBuf *tensors) {
    const CsrMatrix *m = object;
    char bytes[METADATA_SIZE] = {1};
    int32_t type = (int32_t)m->dtype;
    memcpy(bytes + 4, &type, sizeof type);
    strbuf_add(metadata, (Str){bytes, sizeof bytes});
    const Tensor *const parts[] = {m->shape, m->batches, m->rows, m->cols, m->values};
    for (int i = 0; i < 5; i++) {
        StrBuf proto = {0};
        tensor_proto_encode(parts[i], &proto);
        wire_put_bytes(tensors, 3, strbuf_str(&proto));
        strbuf_clear(&proto);
    }
    return NULL;
}

static Error *decode_csr(Str metadata, Tensor **tensors, int tensor_count, Variant *out) {
    int32_t type;
    if (metadata.len != METADATA_SIZE || !metadata.ptr[0] || tensor_count != 5) return error_invalid("Malformed CSRSparseMatrix");
    memcpy(&type, metadata.ptr + 4, sizeof type);
    CsrMatrix *m = csr_empty(dtype_is_valid(type) ? (DataType)type : DT_INVALID);
    m->shape = tensor_ref(tensors[0]);
    m->batches = tensor_ref(tensors[1]);
    m->rows = tensor_ref(tensors[2]);
    m->cols = tensor_ref(tensors[3]);
    m->values = tensor_ref(tensors[4]);
    Error *err = csr_check(m);
    if (err)
        csr_unref(m);
    else
        *out = (Variant){&csr_type, m};
    return err;
}

static Error *conj_csr(const void *object, Variant *out) {
    const CsrMatrix *from = object;
    CsrMatrix *m = csr_empty(from->dtype);
    Error *err = NULL;
    if (m->dtype == DT_COMPLEX64 || m->dtype == DT_COMPLEX128)
        err = tensor_copy(from->values, &m->values);
    else
        m->values = tensor_ref(from->values);
    m->shape = tensor_ref(from->shape);
    m->batches = tensor_ref(from->batches);
    m->rows = tensor_ref(from->rows);
    m->cols = tensor_ref(from->cols);
    if (err) {
        csr_unref(m);
        return err;
    }
    for (int64_t i = 0; i < m->values->count; i++) {
        if (m->dtype == DT_COMPLEX64) ((float _Complex *)m->values->data)[i] = conjf(((float _Complex *)m->values->data)[i]);
        if (m->dtype == DT_COMPLEX128) ((double _Complex *)m->values->data)[i] = conj(((double _Complex *)m->values->data)[i]);
    }
    *out = (Variant){&csr_type, m};
    return NULL;
}

static const VariantType csr_type = {.type_name = "tensorflow::CSRSparseMatrix", .ref = ref_csr, .unref = unref_csr, .encode = encode_csr, .conjugate = conj_csr};
const VariantDecoder csr_matrix_decoder = {"tensorflow::CSRSparseMatrix", decode_csr};

Error *kernel_csr(KernelContext *k, int i, DataType dtype, const CsrMatrix **out) {
    const Tensor *t = k->in[i];
    if (t->shape.rank != 0) return error_invalid("Variant input %d must be a scalar, but has shape %s", i, shape_text(&t->shape).text);
    const Variant *v = &tensor_variants(t)[0];
    if (v->type != &csr_type) return error_invalid("Could not retrieve Variant input %d", i);
    const CsrMatrix *m = v->object;
    if (dtype != DT_INVALID && m->dtype != dtype)
        return error_invalid("Asked for a CSRSparseMatrix of type %s but saw dtype: %s", dtype_name(dtype), dtype_name(m->dtype));
    *out = m;
    return NULL;
}

void kernel_set_csr(KernelContext *k, int o, CsrMatrix *take) {
    Tensor *t = kernel_output(k, o, &SHAPE_SCALAR);
    if (t)
        tensor_variants(t)[0] = (Variant){&csr_type, take};
    else
        csr_unref(take);
}
