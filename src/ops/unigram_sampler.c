/* unigram_sampler.c: classes drawn by how often they occur: FixedUnigram-, LearnedUnigramCandidateSampler. */
#include <math.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/hashmap.h"
#include "base/memory.h"
#include "ops/alias_table.h"
#include "ops/candidate_sampler.h"
#include "ops/elements.h"
#include "ops/op_list.h"
#include "ops/random_state.h"

const OpDef unigram_sampler_ops[] = {
    {"FixedUnigramCandidateSampler",
     "true_classes: int64 -> sampled_candidates: int64, true_expected_count: float, sampled_expected_count: float",
     "num_true: int >= 1; num_sampled: int >= 1; unique: bool; range_max: int >= 1; vocab_file: string = ''; "
     "distortion: float = 1.0; num_reserved_ids: int = 0; num_shards: int >= 1 = 1; shard: int >= 0 = 0; "
     "unigrams: list(float) = []; seed: int = 0; seed2: int = 0",
     OP_STATEFUL},
    {"LearnedUnigramCandidateSampler",
     "true_classes: int64 -> sampled_candidates: int64, true_expected_count: float, sampled_expected_count: float",
     "num_true: int >= 1; num_sampled: int >= 1; unique: bool; range_max: int >= 1; seed: int = 0; seed2: int = 0",
     OP_STATEFUL},
    {"ThreadUnsafeUnigramCandidateSampler",
     "true_classes: int64 -> sampled_candidates: int64, true_expected_count: float, sampled_expected_count: float",
     "num_true: int >= 1; num_sampled: int >= 1; unique: bool; range_max: int >= 1; seed: int = 0; seed2: int = 0",
     OP_STATEFUL},
    {0},
};

typedef struct UnigramState {
    RandomState random; /* first: random_state_clear; its mutex guards counts too */
    int64_t num_true, num_sampled, range;
    bool unique;
    /* Fixed: weights of this shard's classes, and the table to draw them by. */
    int64_t shards, shard, count;
    float *weights;
    double total;
    AliasTable table;
    /* Learned: how often each class was a true one, plus 1, as a binary indexed tree. */
    int64_t *tree, seen;
} UnigramState;

static void unigram_clear(void *state) {
    UnigramState *s = state;
    free(s->weights);
    alias_table_clear(&s->table);
    free(s->tree);
    random_state_clear(state);
}

static Error *common_init(const Node *node, UnigramState *s) {
    Error *err = random_state_init(node, &s->random);
    if (!err) err = node_attr_int(node, "num_true", &s->num_true);
    if (!err) err = node_attr_int(node, "num_sampled", &s->num_sampled);
    if (!err) err = node_attr_bool(node, "unique", &s->unique);
    if (!err) err = node_attr_int(node, "range_max", &s->range);
    if (!err && (s->range < 1 || s->range > INT32_MAX)) err = error_invalid("range_max must be in [1, 2^31)");
    return err;
}

/* ---- Weights given once ---- */

static void add_weight(UnigramState *s, size_t *capacity, int64_t class_id, float weight) {
    if (class_id % s->shards != s->shard) return;
    s->weights = vec_reserve(s->weights, capacity, (size_t)s->count + 1, sizeof *s->weights);
    s->weights[s->count++] = weight;
    s->total += weight;
}

/* The weight of a line is its last field. */
static Error *weights_from_file(UnigramState *s, const char *path, float distortion, int64_t class_id,
                                size_t *capacity) {
    char *text = NULL;
    size_t len = 0;
    Error *err = file_read_all(&file_system_local, path, &text, &len);
    Str rest = {text, len};
    while (!err && rest.len) {
        Str line = str_next(&rest, '\n');
        if (!line.len) continue;
        size_t start = line.len;
        while (start > 0 && line.ptr[start - 1] != ',') start--;
        char *field = str_dup(str_slice(line, start, line.len)), *end = field;
        float weight = strtof(field, &end);
        if (end == field || weight < 0) err = error_invalid("Wrong vocabulary format at line: %.*s", STR_ARG(line));
        free(field);
        if (!err) add_weight(s, capacity, class_id++, powf(weight, distortion));
    }
    free(text);
    return err;
}

static Error *fixed_init(const Node *node, void *state) {
    UnigramState *s = state;
    Str file = STR("");
    float distortion = 1, *unigrams = NULL;
    int64_t reserved = 0;
    int n = 0;
    size_t capacity = 0;
    Error *err = common_init(node, s);
    if (!err) err = node_attr_string(node, "vocab_file", &file);
    if (!err) err = node_attr_floats(node, "unigrams", &unigrams, &n);
    if (!err) err = node_attr_float(node, "distortion", &distortion);
    if (!err) err = node_attr_int(node, "num_reserved_ids", &reserved);
    if (!err) err = node_attr_int(node, "num_shards", &s->shards);
    if (!err) err = node_attr_int(node, "shard", &s->shard);
    if (!err && !file.len && !n) err = error_invalid("Must provide either vocab_file or unigrams.");
    if (!err && file.len && n) err = error_invalid("Must only provide one of vocab_file and unigrams.");
    if (!err && (s->shards < 1 || s->shard < 0)) err = error_invalid("shard must be in [0, num_shards)");
    if (!err && (reserved < 0 || reserved > s->range))
        err = error_invalid("num_reserved_ids must be in [0, range_max]");
    for (int64_t i = 0; !err && i < reserved; i++) add_weight(s, &capacity, i, 0);
    for (int i = 0; !err && i < n; i++) {
        if (!(unigrams[i] >= 0)) err = error_invalid("unigrams must not be negative");
        if (!err) add_weight(s, &capacity, reserved + i, powf(unigrams[i], distortion));
    }
    if (!err && file.len) {
        char *path = str_dup(file);
        err = weights_from_file(s, path, distortion, reserved, &capacity);
        free(path);
    }
    free(unigrams);
    if (!err && (int64_t)s->count != s->range)
        err = error_invalid("range is %lld must be equal to weights size  %lld", (long long)s->range, (long long)s->count);
    if (!err && !(s->count > 0 && s->total > 0 && isfinite(s->total)))
        err = error_invalid("FixedUnigramCandidateSampler has no class of positive weight");
    if (!err) alias_table_init(&s->table, s->weights, s->count);
    return err;
}

/* ---- Weights learned ---- */

static Error *learned_init(const Node *node, void *state) {
    UnigramState *s = state;
    Error *err = common_init(node, s);
    if (err) return err;
    s->tree = calloc((size_t)s->range + 1, sizeof *s->tree);
    if (!s->tree) return error_new(CODE_RESOURCE_EXHAUSTED, "range_max %lld is too large", (long long)s->range);
    for (int64_t i = 1; i <= s->range; i++) s->tree[i] = i & -i; /* every class counts 1 */
    s->seen = s->range;
    return NULL;
}

static void learn(UnigramState *s, int64_t class_id) {
    for (int64_t i = class_id + 1; i <= s->range; i += i & -i) s->tree[i]++;
    s->seen++;
}

static int64_t sum_below(const UnigramState *s, int64_t class_id) {
    int64_t sum = 0;
    for (int64_t i = class_id; i > 0; i -= i & -i) sum += s->tree[i];
    return sum;
}

/* The class whose share of [0, seen) holds `at`. */
static int64_t class_at(const UnigramState *s, int64_t at) {
    int64_t i = 0, step = 1;
    while (step * 2 <= s->range) step *= 2;
    for (; step > 0; step /= 2) {
        if (i + step <= s->range && s->tree[i + step] <= at) {
            i += step;
            at -= s->tree[i];
        }
    }
    return i;
}

/* ---- Drawing ---- */

static int64_t draw(const UnigramState *s, PhiloxStream *stream) {
    if (s->tree) return class_at(s, philox_stream_below(stream, s->seen > UINT32_MAX ? UINT32_MAX : (uint32_t)s->seen));
    return alias_table_draw(&s->table, stream) * s->shards + s->shard;
}

static double probability(const UnigramState *s, int64_t class_id) {
    if (class_id < 0 || class_id >= s->range) return 0;
    if (s->tree) return (double)(sum_below(s, class_id + 1) - sum_below(s, class_id)) / (double)s->seen;
    if (class_id % s->shards != s->shard || class_id / s->shards >= s->count) return 0;
    return (double)s->weights[class_id / s->shards] / s->total;
}

static float expected(const UnigramState *s, int64_t class_id, int64_t tries) {
    float p = (float)probability(s, class_id);
    return tries == s->num_sampled ? p * (float)s->num_sampled : -expm1f((float)tries * log1pf(-p));
}

/* How many different classes can be drawn at all. */
static int64_t possible(const UnigramState *s) {
    int64_t n = 0;
    if (s->tree) return s->range;
    for (int64_t i = 0; i < s->count; i++) n += s->weights[i] > 0;
    return n;
}

static int64_t draw_all(const UnigramState *s, PhiloxStream *stream, int64_t *out) {
    int64_t tries = 0;
    IntMap seen = {0};
    for (int64_t n = 0; n < s->num_sampled;) {
        int64_t value = draw(s, stream);
        tries++;
        if (s->unique && intmap_put(&seen, (uint64_t)value, out)) continue;
        out[n++] = value;
    }
    intmap_clear(&seen);
    return tries;
}

static Error *run_unigram(KernelContext *k) {
    UnigramState *s = k->state;
    const Tensor *classes = k->in[0];
    Error *err = true_classes_check(classes, s->num_true, s->range, s->unique ? s->num_sampled : 0, possible(s));
    if (err) return err;
    Shape shape = shape_vector(s->num_sampled);
    Tensor *out = kernel_output(k, 0, &shape), *true_count = out ? kernel_output(k, 1, &classes->shape) : NULL;
    Tensor *count = true_count ? kernel_output(k, 2, &shape) : NULL;
    if (!count) return NULL;
    PhiloxStream stream = philox_stream(random_state_reserve(&s->random, 2048 / 4 * (uint64_t)s->num_sampled));
    pthread_mutex_lock(&s->random.mutex);
    int64_t tries = draw_all(s, &stream, tensor_i64(out));
    for (int64_t i = 0; i < out->count; i++) tensor_f32(count)[i] = expected(s, tensor_i64(out)[i], tries);
    for (int64_t i = 0; i < classes->count; i++) tensor_f32(true_count)[i] = expected(s, tensor_i64(classes)[i], tries);
    for (int64_t i = 0; s->tree && i < classes->count; i++) learn(s, tensor_i64(classes)[i]);
    pthread_mutex_unlock(&s->random.mutex);
    return NULL;
}

#define UNIGRAM(init_fn)                                                                             \
    .run = run_unigram, .state_size = sizeof(UnigramState), .init = init_fn, .clear = unigram_clear, \
    .flags = KERNEL_PER_SESSION

const KernelDef unigram_sampler_cpu[] = {
    {"FixedUnigramCandidateSampler", UNIGRAM(fixed_init)},
    {"LearnedUnigramCandidateSampler", UNIGRAM(learned_init)},
    {"ThreadUnsafeUnigramCandidateSampler", UNIGRAM(learned_init)},
    {0},
};
