/* sparse_serialize.c: sparse tensors as strings or variants, one or one per row, and kept in a map under a number. */
#include <pthread.h>
#include <stdlib.h>

#include "base/hashmap.h"
#include "base/memory.h"
#include "ops/op_list.h"
#include "ops/sparse_tensor.h"
#include "proto/wire.h"
#include "tensor/tensor_proto.h"

const OpDef sparse_serialize_ops[] = {
    {"SerializeSparse", "sparse_indices: int64, sparse_values: T, sparse_shape: int64 -> serialized_sparse: out_type",
     "T: type; out_type: {string, variant} = string", 0},
    {"SerializeManySparse",
     "sparse_indices: int64, sparse_values: T, sparse_shape: int64 -> serialized_sparse: out_type",
     "T: type; out_type: {string, variant} = string", 0},
    {"DeserializeSparse",
     "serialized_sparse: Tserialized -> sparse_indices: int64, sparse_values: dtype, sparse_shape: int64",
     "dtype: type; Tserialized: {string, variant} = string", 0},
    {"DeserializeManySparse",
     "serialized_sparse: string -> sparse_indices: int64, sparse_values: dtype, sparse_shape: int64", "dtype: type", 0},
    {"AddSparseToTensorsMap", "sparse_indices: int64, sparse_values: T, sparse_shape: int64 -> sparse_handle: int64",
     "T: type; container: string = ''; shared_name: string = ''", OP_STATEFUL},
    {"AddManySparseToTensorsMap",
     "sparse_indices: int64, sparse_values: T, sparse_shape: int64 -> sparse_handles: int64",
     "T: type; container: string = ''; shared_name: string = ''", OP_STATEFUL},
    {"TakeManySparseFromTensorsMap",
     "sparse_handles: int64 -> sparse_indices: int64, sparse_values: dtype, sparse_shape: int64",
     "dtype: type; container: string = ''; shared_name: string = ''", OP_STATEFUL},
    {0},
};

/* ---- Tensors as variants ---- */

static void ref_tensor(void *object) {
    tensor_ref(object);
}
static void unref_tensor(void *object) {
    tensor_unref(object);
}
static Error *encode_tensor(const void *object, StrBuf *metadata, StrBuf *tensors) {
    StrBuf proto = {0};
    (void)metadata;
    tensor_proto_encode(object, &proto);
    wire_put_bytes(tensors, 3, strbuf_str(&proto));
    strbuf_clear(&proto);
    return NULL;
}
static const VariantType tensor_variant = {"tensorflow::Tensor", ref_tensor, unref_tensor, encode_tensor, NULL, NULL, NULL};

static Error *decode_one(Str metadata, Tensor **tensors, int count, Variant *out) {
    (void)metadata;
    if (count != 1) return error_invalid("A tensor as a variant has %d tensors", count);
    variant_set(out, (Variant){&tensor_variant, tensors[0]});
    return NULL;
}
const VariantDecoder tensor_variant_decoder = {"tensorflow::Tensor", decode_one};

/* One element of `to`, a string or a variant. */
static void put_tensor(Tensor *to, int64_t i, Tensor *t) {
    if (to->dtype == DT_VARIANT) {
        variant_set(&tensor_variants(to)[i], (Variant){&tensor_variant, t});
        return;
    }
    StrBuf proto = {0};
    tensor_proto_encode(t, &proto);
    tstring_set(&tensor_str(to)[i], strbuf_str(&proto));
    strbuf_clear(&proto);
}

static Error *take_tensor(const Tensor *from, int64_t i, Tensor **out) {
    if (from->dtype == DT_STRING) {
        Error *err = tensor_proto_decode(tstring_str(&tensor_str(from)[i]), out);
        if (!err || err->code != CODE_INVALID_ARGUMENT) return err;
        error_free(err);
        return error_invalid("Could not parse serialized proto");
    }
    const Variant *v = &tensor_variants(from)[i];
    if (v->type != &tensor_variant) return error_invalid("serialized_sparse[%lld] is not a tensor", (long long)i);
    *out = tensor_ref(v->object);
    return NULL;
}

Error *sparse_variant(Tensor *indices, Tensor *values, Tensor *shape, Tensor **out) {
    Shape three = shape_vector(3);
    Error *err = tensor_new(DT_VARIANT, &three, out);
    if (err) return err;
    Tensor *parts[] = {indices, values, shape};
    for (int i = 0; i < 3; i++) put_tensor(*out, i, parts[i]);
    return NULL;
}

/* ---- Three tensors that make a sparse one ---- */

typedef struct Triple {
    Tensor *part[3]; /* indices, values, shape */
} Triple;

static void triple_clear(Triple *t) {
    for (int i = 0; i < 3; i++) tensor_unref(t->part[i]);
}

/* The part of v from row `from` to row `to` of its indices, without the first dimension. */
static Error *row_triple(const SparseView *v, int64_t from, int64_t to, Triple *out) {
    int rank = v->shape.rank;
    Shape matrix = shape_matrix(to - from, rank - 1), vector = shape_vector(to - from), dims = shape_vector(rank - 1);
    Triple t = {{0}};
    Error *err = tensor_new(DT_INT64, &matrix, &t.part[0]);
    if (!err) err = tensor_new(v->values->dtype, &vector, &t.part[1]);
    if (!err) err = tensor_new(DT_INT64, &dims, &t.part[2]);
    if (err) {
        triple_clear(&t);
        return err;
    }
    for (int64_t i = from; i < to; i++)
        memcpy(tensor_i64(t.part[0]) + (i - from) * (rank - 1), v->indices + i * rank + 1,
               (size_t)(rank - 1) * sizeof(int64_t));
    elements_copy(v->values->dtype, t.part[1]->data, element_at(v->values, from), to - from);
    for (int d = 1; d < rank; d++) tensor_i64(t.part[2])[d - 1] = v->shape.dims[d];
    *out = t;
    return NULL;
}

static Error *many_view(KernelContext *k, SparseView *v) {
    Error *err = sparse_view("Input", k->in[0], k->in[1], k->in[2], v);
    if (err) return err;
    if (v->shape.rank < 2)
        return error_invalid("Rank of input SparseTensor should be > 1, but saw rank: %d", v->shape.rank);
    err = sparse_check_inside(v);
    if (err) return err;
    for (int64_t i = 0; i < v->nnz; i++) {
        int64_t row = v->indices[i * v->shape.rank];
        if (row < 0 || row >= v->shape.dims[0])
            return error_invalid("Received unexpected column 0 value in input SparseTensor: %lld >= N (= %lld)",
                                 (long long)row, (long long)v->shape.dims[0]);
        if (i > 0 && row < v->indices[(i - 1) * v->shape.rank])
            return error_invalid("Rows of the input SparseTensor are not in order at indices[%lld]", (long long)i);
    }
    return NULL;
}

/* Calls put for every row of v. */
static Error *each_row(const SparseView *v, Error *(*put)(void *arg, int64_t row, Triple *t), void *arg) {
    int64_t from = 0;
    for (int64_t row = 0; row < v->shape.dims[0]; row++) {
        int64_t to = from;
        while (to < v->nnz && v->indices[to * v->shape.rank] == row) to++;
        Triple t;
        Error *err = row_triple(v, from, to, &t);
        if (err) return err;
        err = put(arg, row, &t);
        triple_clear(&t);
        if (err) return err;
        from = to;
    }
    return NULL;
}

/* ---- Serialize ---- */

static Error *run_serialize(KernelContext *k) {
    SparseView v;
    Error *err = sparse_view("Input", k->in[0], k->in[1], k->in[2], &v);
    if (err) return err;
    Shape three = shape_vector(3);
    Tensor *out = kernel_output(k, 0, &three);
    for (int i = 0; out && i < 3; i++) put_tensor(out, i, k->in[i]);
    return NULL;
}

static Error *put_row(void *arg, int64_t row, Triple *t) {
    for (int i = 0; i < 3; i++) put_tensor(arg, 3 * row + i, t->part[i]);
    return NULL;
}

static Error *run_serialize_many(KernelContext *k) {
    SparseView v;
    Error *err = many_view(k, &v);
    if (err) return err;
    Shape shape = shape_matrix(v.shape.dims[0], 3);
    Tensor *out = kernel_output(k, 0, &shape);
    return out ? each_row(&v, put_row, out) : NULL;
}

/* ---- Several sparse tensors become one of higher rank ---- */

static Error *check_triple(const Triple *t, DataType dtype, int rank, int64_t at) {
    SparseView v;
    if (t->part[0]->dtype != DT_INT64 || t->part[2]->dtype != DT_INT64)
        return error_invalid("Expected serialized_sparse[%lld] to have int64 indices and shape", (long long)at);
    if (t->part[1]->dtype != dtype)
        return error_invalid("Requested SparseTensor of type %s but SparseTensor[%lld].values.dtype() == %s",
                             dtype_name(dtype), (long long)at, dtype_name(t->part[1]->dtype));
    Error *err = sparse_view("Serialized", t->part[0], t->part[1], t->part[2], &v);
    if (!err && rank >= 0 && v.shape.rank != rank)
        err = error_invalid(
            "Inconsistent rank across SparseTensors: rank prior to SparseTensor[%lld] was: %d but rank of "
            "SparseTensor[%lld] is: %d",
            (long long)at, rank, (long long)at, v.shape.rank);
    return err;
}

/* The triples are laid out along the dimensions of `outer`; every other dimension is as large as the largest needs. */
static Error *stack_triples(KernelContext *k, const Triple *triples, const Shape *outer) {
    int64_t count = shape_count(outer), nnz = 0, at = 0;
    DataType dtype = kernel_output_type(k, 1);
    Shape shape = *outer;
    int inner = -1;
    for (int64_t i = 0; i < count; i++) {
        Error *err = check_triple(&triples[i], dtype, inner, i);
        if (err) return err;
        if (inner < 0) {
            inner = (int)triples[i].part[2]->count;
            if (outer->rank + inner > SHAPE_MAX_RANK) return error_invalid("The sparse tensor has too many dimensions");
            shape.rank = outer->rank + inner;
        }
        for (int d = 0; d < inner; d++) {
            int64_t size = tensor_i64(triples[i].part[2])[d], *to = &shape.dims[outer->rank + d];
            if (i == 0 || size > *to) *to = size;
        }
        nnz += triples[i].part[1]->count;
    }
    SparseOut out;
    if (!sparse_output(k, 0, nnz, &shape, &out)) return NULL;
    for (int64_t i = 0; i < count; i++) {
        const Triple *t = &triples[i];
        elements_copy(dtype, element_to(out.values, at), t->part[1]->data, t->part[1]->count);
        for (int64_t r = 0; r < t->part[1]->count; r++, at++) {
            int64_t *row = tensor_i64(out.indices) + at * shape.rank, rest = i;
            for (int d = outer->rank - 1; d >= 0; d--) {
                row[d] = rest % outer->dims[d];
                rest /= outer->dims[d];
            }
            memcpy(row + outer->rank, tensor_i64(t->part[0]) + r * inner, (size_t)inner * sizeof *row);
        }
    }
    return NULL;
}

static Error *deserialize(KernelContext *k, const Shape *outer) {
    int64_t count = shape_count(outer);
    if (count == 0) return error_invalid("Must have at least 1 serialized SparseTensor, but input matrix has 0 rows");
    Triple *triples = calloc((size_t)count, sizeof *triples);
    if (!triples) return error_new(CODE_RESOURCE_EXHAUSTED, "Too many serialized tensors");
    Error *err = NULL;
    for (int64_t i = 0; i < 3 * count && !err; i++) err = take_tensor(k->in[0], i, &triples[i / 3].part[i % 3]);
    if (!err) err = stack_triples(k, triples, outer);
    for (int64_t i = 0; i < count; i++) triple_clear(&triples[i]);
    free(triples);
    return err;
}

static Error *run_deserialize(KernelContext *k) {
    Shape outer = k->in[0]->shape;
    if (outer.rank == 0) return error_invalid("Serialized sparse should have non-zero rank 0");
    if (outer.dims[outer.rank - 1] != 3)
        return error_invalid("Serialized sparse should have 3 as the last dimension %lld",
                             (long long)outer.dims[outer.rank - 1]);
    outer.rank--;
    return deserialize(k, &outer);
}

static Error *run_deserialize_many(KernelContext *k) {
    Shape outer = k->in[0]->shape;
    if (outer.rank != 2)
        return error_invalid("Serialized sparse should be a matrix but received shape %s", shape_text(&outer).text);
    if (outer.dims[1] != 3)
        return error_invalid("Serialize sparse input must have 3 columns but saw %lld", (long long)outer.dims[1]);
    outer.rank = 1;
    return deserialize(k, &outer);
}

/* ---- Sparse tensors under a number ---- */

typedef struct TensorsMap {
    Resource base;
    pthread_mutex_t mutex; /* guards what follows */
    IntMap items;          /* to Triple */
    int64_t next;
} TensorsMap;

static void map_destroy(Resource *r) {
    TensorsMap *m = (TensorsMap *)r;
    size_t at = 0;
    uint64_t key;
    void *value;
    while (intmap_next(&m->items, &at, &key, &value)) {
        triple_clear(value);
        free(value);
    }
    intmap_clear(&m->items);
    pthread_mutex_destroy(&m->mutex);
    free(m);
}

static const ResourceType tensors_map_type = {"N10tensorflow16SparseTensorsMapE", "sparse tensors map", map_destroy,
                                              NULL};

static Error *map_create(void *arg, Resource **out) {
    TensorsMap *m = xcalloc(1, sizeof *m);
    (void)arg;
    resource_init(&m->base, &tensors_map_type);
    pthread_mutex_init(&m->mutex, NULL);
    *out = &m->base;
    return NULL;
}

static Error *map_of(KernelContext *k, TensorsMap **out) {
    Str container = STR(""), name = STR(""), value;
    if (node_attr(k->node, "container", &value)) attr_string(value, &container);
    if (node_attr(k->node, "shared_name", &value)) attr_string(value, &name);
    Resource *r = NULL;
    Error *err = resource_find_or_create(kernel_resources(k), container, name.len ? name : k->node->name,
                                         &tensors_map_type, map_create, NULL, &r);
    *out = (TensorsMap *)r;
    return err;
}

/* Keeps references to the parts. */
static int64_t map_add(TensorsMap *m, Tensor *const part[3]) {
    Triple *t = xmalloc(sizeof *t);
    for (int i = 0; i < 3; i++) t->part[i] = tensor_ref(part[i]);
    pthread_mutex_lock(&m->mutex);
    int64_t handle = m->next++;
    intmap_put(&m->items, (uint64_t)handle, t);
    pthread_mutex_unlock(&m->mutex);
    return handle;
}

static Error *run_add(KernelContext *k) {
    SparseView v;
    TensorsMap *m = NULL;
    Error *err = sparse_view("Input", k->in[0], k->in[1], k->in[2], &v);
    if (!err) err = map_of(k, &m);
    if (err) return err;
    kernel_set_output(k, 0, tensor_scalar_i64(map_add(m, k->in)));
    resource_unref(&m->base);
    return NULL;
}

typedef struct AddRows {
    TensorsMap *map;
    Tensor *handles;
} AddRows;

static Error *add_row(void *arg, int64_t row, Triple *t) {
    AddRows *a = arg;
    tensor_i64(a->handles)[row] = map_add(a->map, t->part);
    return NULL;
}

static Error *run_add_many(KernelContext *k) {
    SparseView v;
    AddRows rows = {0};
    Error *err = many_view(k, &v);
    if (!err) err = shape_check(&v.shape);
    if (!err) err = map_of(k, &rows.map);
    if (err) return err;
    Shape vector = shape_vector(v.shape.dims[0]);
    rows.handles = kernel_output(k, 0, &vector);
    if (rows.handles) err = each_row(&v, add_row, &rows);
    resource_unref(&rows.map->base);
    return err;
}

static Error *run_take_many(KernelContext *k) {
    const Tensor *handles = k->in[0];
    TensorsMap *m = NULL;
    if (handles->shape.rank != 1)
        return error_invalid("sparse_handles should be a vector but received shape %s",
                             shape_text(&handles->shape).text);
    if (handles->count == 0)
        return error_invalid("Must have at least 1 serialized SparseTensor, but input matrix has 0 rows");
    Error *err = map_of(k, &m);
    if (err) return err;
    Triple *triples = calloc((size_t)handles->count, sizeof *triples);
    if (!triples) err = error_new(CODE_RESOURCE_EXHAUSTED, "Too many handles");
    pthread_mutex_lock(&m->mutex);
    for (int64_t i = 0; !err && i < handles->count; i++) {
        Triple *t = intmap_remove(&m->items, (uint64_t)tensor_i64(handles)[i]);
        if (!t) {
            err = error_invalid("Unable to find SparseTensor: %lld in map: %.*s", (long long)tensor_i64(handles)[i],
                                STR_ARG(k->node->name));
        } else {
            triples[i] = *t;
            free(t);
        }
    }
    pthread_mutex_unlock(&m->mutex);
    if (!err) err = stack_triples(k, triples, &handles->shape);
    for (int64_t i = 0; triples && i < handles->count; i++) triple_clear(&triples[i]);
    free(triples);
    resource_unref(&m->base);
    return err;
}

const KernelDef sparse_serialize_cpu[] = {
    {"SerializeSparse", .run = run_serialize},
    {"SerializeManySparse", .run = run_serialize_many},
    {"DeserializeSparse", .run = run_deserialize},
    {"DeserializeManySparse", .run = run_deserialize_many},
    {"AddSparseToTensorsMap", .run = run_add},
    {"AddManySparseToTensorsMap", .run = run_add_many},
    {"TakeManySparseFromTensorsMap", .run = run_take_many},
    {0},
};
