/* string_hash.c: StringToHashBucket, StringToHashBucketFast, StringToHashBucketStrong, _TensorToHashBucketFast,
 * and Fingerprint of rows of any type. */
#include <stdio.h>
#include <stdlib.h>

#include "base/fingerprint.h"
#include "ops/elements.h"
#include "ops/op_list.h"
#include "tensor/number.h"

const OpDef string_hash_ops[] = {
    {"StringToHashBucket", "string_tensor: string -> output: int64", "num_buckets: int >= 1", 0},
    {"StringToHashBucketFast", "input: string -> output: int64", "num_buckets: int >= 1", 0},
    {"StringToHashBucketStrong", "input: string -> output: int64", "num_buckets: int >= 1; key: list(int)", 0},
    {"_TensorToHashBucketFast", "input: T -> output: int64",
     "T: {int8, uint8, int16, uint16, int32, uint32, int64, uint64}; num_buckets: int >= 1", 0},
    {"Fingerprint", "data: T, method: string -> fingerprint: uint8", "T: type", 0},
    {0},
};

typedef struct HashState {
    int64_t buckets;
    uint64_t key[2];
} HashState;

static Error *init_buckets(const Node *node, void *state) {
    HashState *s = state;
    Error *err = node_attr_int(node, "num_buckets", &s->buckets);
    if (!err && s->buckets < 1) err = error_invalid("num_buckets must be at least 1");
    return err;
}

static Error *init_strong(const Node *node, void *state) {
    HashState *s = state;
    int64_t *key = NULL;
    int count;
    Error *err = init_buckets(node, state);
    if (!err) err = node_attr_ints(node, "key", &key, &count);
    if (!err && count != 2) err = error_invalid("Key must have 2 elements");
    for (int i = 0; !err && i < 2; i++) s->key[i] = (uint64_t)key[i];
    free(key);
    return err;
}

static Error *run_slow(KernelContext *k) {
    const HashState *s = k->state;
    Tensor *out = kernel_output(k, 0, &k->in[0]->shape);
    for (int64_t i = 0; out && i < out->count; i++)
        tensor_i64(out)[i] = (int64_t)(hash64(tstring_str(&tensor_str(k->in[0])[i])) % (uint64_t)s->buckets);
    return NULL;
}

static Error *run_fast(KernelContext *k) {
    const HashState *s = k->state;
    Tensor *out = kernel_output(k, 0, &k->in[0]->shape);
    for (int64_t i = 0; out && i < out->count; i++)
        tensor_i64(out)[i] = (int64_t)(fingerprint64(tstring_str(&tensor_str(k->in[0])[i])) % (uint64_t)s->buckets);
    return NULL;
}

/* Numbers as they are written; of the types that the definition allows TensorFlow takes the signed ones. */
static Error *run_numbers(KernelContext *k) {
    const HashState *s = k->state;
    if (number_kind(k->in[0]->dtype) != NUMBER_INT) return error_invalid("Type not supported: %s", dtype_name(k->in[0]->dtype));
    Tensor *out = kernel_output(k, 0, &k->in[0]->shape);
    for (int64_t i = 0; out && i < out->count; i++) {
        char text[32];
        int n = snprintf(text, sizeof text, "%lld", (long long)number_int(k->in[0], i));
        tensor_i64(out)[i] = (int64_t)(fingerprint64((Str){text, (size_t)n}) % (uint64_t)s->buckets);
    }
    return NULL;
}

static Error *run_strong(KernelContext *k) {
    HashState *s = k->state;
    Tensor *out = kernel_output(k, 0, &k->in[0]->shape);
    for (int64_t i = 0; out && i < out->count; i++)
        tensor_i64(out)[i] = (int64_t)(siphash(tstring_str(&tensor_str(k->in[0])[i]), s->key) % (uint64_t)s->buckets);
    return NULL;
}

/* Strings are hashed one by one, and several of one row by the bytes of their hashes. */
static uint64_t fingerprint_row(const Tensor *t, int64_t row, int64_t width, uint64_t *hashes) {
    if (t->dtype != DT_STRING) {
        size_t size = (size_t)width * dtype_size(t->dtype);
        return fingerprint64((Str){(const char *)t->data + (size_t)row * size, size});
    }
    for (int64_t i = 0; i < width; i++) hashes[i] = fingerprint64(tstring_str(&tensor_str(t)[row * width + i]));
    return t->shape.rank == 1 ? hashes[0] : fingerprint64((Str){(const char *)hashes, (size_t)width * sizeof *hashes});
}

static Error *run_fingerprint(KernelContext *k) {
    const Tensor *data = k->in[0], *method = k->in[1];
    if (data->shape.rank < 1) return error_invalid("`data` should have at least one dimension: []");
    if (method->shape.rank != 0) return error_invalid("`method` should be a scalar string: %s", shape_text(&method->shape).text);
    Str name = tstring_str(tensor_str(method));
    if (!str_is(name, "farmhash64")) return error_invalid("Unsupported fingerprint method: %.*s", STR_ARG(name));
    if (data->dtype != DT_STRING && !dtype_is_plain(data->dtype))
        return error_invalid("Fingerprint of type %s", dtype_name(data->dtype));
    int64_t rows = data->shape.dims[0], width = shape_prod(&data->shape, 1, data->shape.rank);
    Shape shape = shape_matrix(rows, 8), of_hashes = shape_vector(width);
    Tensor *out = kernel_output(k, 0, &shape), *hashes = out ? kernel_scratch(k, DT_INT64, &of_hashes) : NULL;
    if (!hashes) return NULL;
    for (int64_t r = 0; r < rows; r++) {
        uint64_t hash = fingerprint_row(data, r, width, (uint64_t *)tensor_i64(hashes));
        for (int b = 0; b < 8; b++) ((uint8_t *)out->data)[8 * r + b] = (uint8_t)(hash >> 8 * b);
    }
    tensor_unref(hashes);
    return NULL;
}

const KernelDef string_hash_cpu[] = {
    {"StringToHashBucket", .run = run_slow, .state_size = sizeof(HashState), .init = init_buckets},
    {"StringToHashBucketFast", .run = run_fast, .state_size = sizeof(HashState), .init = init_buckets},
    {"_TensorToHashBucketFast", .run = run_numbers, .state_size = sizeof(HashState), .init = init_buckets},
    {"Fingerprint", .run = run_fingerprint},
    {"StringToHashBucketStrong", .run = run_strong, .state_size = sizeof(HashState), .init = init_strong},
    {0},
};
