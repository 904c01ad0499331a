/* index_shuffle.c: RandomIndexShuffle: where an index goes when all numbers up to max_index are shuffled by a seed.

   A small Simon cipher permutes the numbers of as many bits as max_index has (16 at least); a number that comes out too large is
   put in again until one fits. The constants and the order of rounds are TensorFlow's, and so are the results. */
#include "ops/index_shuffle.h"

#include "ops/elements.h"
#include "ops/op_list.h"

const OpDef index_shuffle_ops[] = {
    {"RandomIndexShuffle", "index: dtype, seed: Tseed, max_index: dtype -> output: dtype",
     "rounds: int = 4; dtype: {int32, uint32, int64, uint64}; Tseed: {int32, uint32, int64, uint64}", 0},
    {0},
};

enum { LEAST_BITS = 16, MOST_ROUNDS = 1024, SEED_SIZE = 3 };

static Error *init(const Node *node, void *state) {
    int64_t *rounds = state;
    Error *err = node_attr_int(node, "rounds", rounds);
    if (!err && (*rounds < 4 || *rounds % 2 || *rounds > MOST_ROUNDS))
        err = error_invalid("rounds must be an even number from 4 to %d, not %lld", MOST_ROUNDS, (long long)*rounds);
    return err;
}

typedef struct Cipher {
    int width; /* of a word; a block is two */
    uint64_t mask;
    int rounds;
    uint64_t keys[MOST_ROUNDS];
} Cipher;

static uint64_t turn_left(const Cipher *c, uint64_t x, int by) {
    return ((x << by) | (x >> (c->width - by))) & c->mask;
}

static uint64_t turn_right(const Cipher *c, uint64_t x, int by) {
    return ((x >> by) | (x << (c->width - by))) & c->mask;
}

static uint64_t mix(const Cipher *c, uint64_t x) {
    return (turn_left(c, x, 1) & turn_left(c, x, 8)) ^ turn_left(c, x, 2);
}

/* The least even number of bits with 2^bits >= most. */
static int block_bits(uint64_t most) {
    int bits = LEAST_BITS;
    while (bits < 64 && most > UINT64_C(1) << bits) bits += 2;
    return bits;
}

static void cipher_init(Cipher *c, const uint32_t *seed, uint64_t most, int64_t rounds) {
    c->width = block_bits(most) / 2;
    c->mask = (UINT64_C(1) << c->width) - 1;
    c->rounds = (int)rounds;
    uint64_t z = UINT64_C(0x7369f885192c0ef5) & c->mask;
    for (int i = 0; i < c->rounds; i++) {
        if (i < SEED_SIZE) {
            c->keys[i] = seed[i] & c->mask;
            continue;
        }
        uint64_t last = c->keys[i - 1];
        c->keys[i] = ((UINT64_C(0xfffffffc) & c->mask) ^ (z & 1) ^ c->keys[i - SEED_SIZE] ^ turn_right(c, last, 3) ^ turn_right(c, last, 4));
        z >>= 1;
    }
}

static uint64_t encrypt(const Cipher *c, uint64_t value) {
    uint64_t left = (value >> c->width) & c->mask, right = value & c->mask;
    for (int i = 0; i < c->rounds; i += 2) {
        left ^= mix(c, right) ^ c->keys[i];
        right ^= mix(c, left) ^ c->keys[i + 1];
    }
    return left << c->width | right;
}

uint64_t index_shuffle(uint64_t index, const uint32_t *seed, uint64_t most, int64_t rounds) {
    if (most == 0) return 0;
    Cipher c;
    cipher_init(&c, seed, most, rounds);
    do {
        index = encrypt(&c, index);
    } while (index > most); /* it was not larger in the beginning, so the cycle comes back to such a number */
    return index;
}

/* Element i of an integer tensor, which has one for all or one for each. */
static uint64_t whole(const Tensor *t, int64_t i) {
    switch (t->dtype) {
        case DT_INT32:
            return (uint64_t)tensor_i32(t)[i];
        case DT_UINT32:
            return ((const uint32_t *)t->data)[i];
        default:
            return ((const uint64_t *)t->data)[i];
    }
}

static Error *check(const KernelContext *k, int64_t n) {
    const Tensor *index = k->in[0], *seed = k->in[1], *most = k->in[2];
    if (index->shape.rank > 1 || (index->shape.rank == 1 && index->count != n))
        return error_invalid("Index bust be a scalar or vector."); /* TensorFlow's words, to the letter */
    if (!(seed->shape.rank == 1 && seed->count == SEED_SIZE) &&
        !(seed->shape.rank == 2 && seed->shape.dims[0] == n && seed->shape.dims[1] == SEED_SIZE))
        return error_invalid("Seed must be a vector of size [3] or a matrix of size [%lld, 3] but got %s.", (long long)n,
                             shape_text(&seed->shape).text);
    if (most->shape.rank > 1 || (most->shape.rank == 1 && most->count != n))
        return error_invalid("Maxval must be a scalar or a vector of the same size as index but got %s", shape_text(&most->shape).text);
    return NULL;
}

static Error *run(KernelContext *k) {
    const Tensor *index = k->in[0], *seed = k->in[1], *most = k->in[2];
    int64_t n = index->count > most->count ? index->count : most->count;
    if (seed->count / SEED_SIZE > n) n = seed->count / SEED_SIZE;
    Error *err = check(k, n);
    if (err) return err;
    Shape shape = index->shape.rank || seed->shape.rank == 2 || most->shape.rank ? shape_vector(n) : SHAPE_SCALAR;
    Tensor *out = kernel_output(k, 0, &shape);
    const bool is_signed = index->dtype == DT_INT32 || index->dtype == DT_INT64;
    for (int64_t i = 0; out && i < n; i++) {
        uint64_t limit = whole(most, most->shape.rank ? i : 0);
        uint64_t from = whole(index, index->shape.rank ? i : 0);
        if (is_signed && (int64_t)limit < 0) return error_invalid("max_index must be >= 0 but was %lld", (long long)limit);
        if (is_signed && (int64_t)from < 0) return error_invalid("index must be >= 0 but was %lld", (long long)from);
        if (limit < from)
            return error_invalid("max_index must be >= index, but %llu < %llu", (unsigned long long)limit, (unsigned long long)from);
        uint32_t words[SEED_SIZE];
        for (int j = 0; j < SEED_SIZE; j++) words[j] = (uint32_t)whole(seed, (seed->shape.rank == 2 ? i * SEED_SIZE : 0) + j);
        uint64_t to = index_shuffle(from, words, limit, *(const int64_t *)k->state);
        if (dtype_size(out->dtype) == 4) {
            ((uint32_t *)out->data)[i] = (uint32_t)to;
        } else {
            ((uint64_t *)out->data)[i] = to;
        }
    }
    return NULL;
}

const KernelDef index_shuffle_cpu[] = {
    {"RandomIndexShuffle", .run = run, .state_size = sizeof(int64_t), .init = init},
    {0},
};
