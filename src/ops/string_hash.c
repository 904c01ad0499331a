/* string_hash.c: StringToHashBucket, StringToHashBucketFast, StringToHashBucketStrong. */
#include <stdlib.h>

#include "base/fingerprint.h"
#include "ops/op_list.h"

const OpDef string_hash_ops[] = {
    {"StringToHashBucket", "string_tensor: string -> output: int64", "num_buckets: int >= 1", 0},
    {"StringToHashBucketFast", "input: string -> output: int64", "num_buckets: int >= 1", 0},
    {"StringToHashBucketStrong", "input: string -> output: int64", "num_buckets: int >= 1; key: list(int)", 0},
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

static Error *run_strong(KernelContext *k) {
    HashState *s = k->state;
    Tensor *out = kernel_output(k, 0, &k->in[0]->shape);
    for (int64_t i = 0; out && i < out->count; i++)
        tensor_i64(out)[i] = (int64_t)(siphash(tstring_str(&tensor_str(k->in[0])[i]), s->key) % (uint64_t)s->buckets);
    return NULL;
}

const KernelDef string_hash_cpu[] = {
    {"StringToHashBucket", .run = run_slow, .state_size = sizeof(HashState), .init = init_buckets},
    {"StringToHashBucketFast", .run = run_fast, .state_size = sizeof(HashState), .init = init_buckets},
    {"StringToHashBucketStrong", .run = run_strong, .state_size = sizeof(HashState), .init = init_strong},
    {0},
};
