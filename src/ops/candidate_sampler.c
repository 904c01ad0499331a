/* candidate_sampler.c: classes drawn for sampled losses: Uniform-, LogUniform- and AllCandidateSampler,
 * ComputeAccidentalHits. */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "base/hashmap.h"
#include "base/memory.h"
#include "ops/candidate_sampler.h"
#include "ops/elements.h"
#include "ops/op_list.h"
#include "ops/random_state.h"

const OpDef candidate_sampler_ops[] = {
    {"UniformCandidateSampler",
     "true_classes: int64 -> sampled_candidates: int64, true_expected_count: float, sampled_expected_count: float",
     "num_true: int >= 1; num_sampled: int >= 1; unique: bool; range_max: int >= 1; seed: int = 0; seed2: int = 0",
     OP_STATEFUL},
    {"LogUniformCandidateSampler",
     "true_classes: int64 -> sampled_candidates: int64, true_expected_count: float, sampled_expected_count: float",
     "num_true: int >= 1; num_sampled: int >= 1; unique: bool; range_max: int >= 1; seed: int = 0; seed2: int = 0",
     OP_STATEFUL},
    {"AllCandidateSampler",
     "true_classes: int64 -> sampled_candidates: int64, true_expected_count: float, sampled_expected_count: float",
     "num_true: int >= 1; num_sampled: int >= 1; unique: bool; seed: int = 0; seed2: int = 0", OP_STATEFUL},
    {"ComputeAccidentalHits",
     "true_classes: int64, sampled_candidates: int64 -> indices: int32, ids: int64, weights: float",
     "num_true: int; seed: int = 0; seed2: int = 0", 0},
    {0},
};

typedef enum SamplerKind { SAMPLER_UNIFORM, SAMPLER_LOG_UNIFORM, SAMPLER_ALL } SamplerKind;

typedef struct SamplerState {
    RandomState random; /* first: random_state_clear */
    SamplerKind kind;
    int64_t num_true, num_sampled, range;
    bool unique;
} SamplerState;

static Error *sampler_init(const Node *node, void *state) {
    SamplerState *s = state;
    s->kind = node_is(node, "UniformCandidateSampler")      ? SAMPLER_UNIFORM
              : node_is(node, "LogUniformCandidateSampler") ? SAMPLER_LOG_UNIFORM
                                                            : SAMPLER_ALL;
    Error *err = node_attr_int(node, "num_true", &s->num_true);
    if (!err) err = node_attr_int(node, "num_sampled", &s->num_sampled);
    if (!err) err = node_attr_bool(node, "unique", &s->unique);
    if (!err && s->kind == SAMPLER_ALL) s->range = s->num_sampled;
    if (!err && s->kind != SAMPLER_ALL) err = node_attr_int(node, "range_max", &s->range);
    if (!err && s->range < 1) err = error_invalid("range_max must be positive");
    return err ? err : random_state_init(node, &s->random);
}

static int64_t draw(const SamplerState *s, PhiloxStream *stream) {
    uint64_t a = philox_stream_next(stream), b = philox_stream_next(stream);
    if (s->kind == SAMPLER_UNIFORM) return (int64_t)((a | b << 32) % (uint64_t)s->range);
    double u = uniform_double((uint32_t)a, (uint32_t)b);
    return ((int64_t)exp(u * log1p((double)s->range)) - 1) % s->range;
}

static float probability(const SamplerState *s, int64_t value) {
    if (s->kind == SAMPLER_UNIFORM) return (float)(1.0 / (double)s->range);
    return (float)(log(((double)value + 2.0) / ((double)value + 1.0)) / log1p((double)s->range));
}

/* How often a class is expected among the samples, when `tries` draws were needed for them. */
static float expected(const SamplerState *s, int64_t value, int64_t tries) {
    if (s->kind == SAMPLER_ALL) return 1;
    float p = probability(s, value);
    return tries == s->num_sampled ? p * (float)s->num_sampled : -expm1f((float)tries * log1pf(-p));
}

static int64_t draw_all(const SamplerState *s, PhiloxStream *stream, int64_t *out) {
    int64_t tries = 0;
    IntMap seen = {0};
    for (int64_t n = 0; n < s->num_sampled;) {
        int64_t value = s->kind == SAMPLER_ALL ? n : draw(s, stream);
        tries++;
        if (s->unique && s->kind != SAMPLER_ALL && intmap_put(&seen, (uint64_t)value, out)) continue;
        out[n++] = value;
    }
    intmap_clear(&seen);
    return tries;
}

Error *true_classes_check(const Tensor *classes, int64_t num_true, int64_t range, int64_t needed, int64_t possible) {
    if (classes->shape.rank != 2) return error_invalid("true_classes must be a matrix");
    if (classes->shape.dims[1] != num_true)
        return error_invalid("true_classes must have num_true columns, expected: %lld was: %lld",
                             (long long)classes->shape.dims[1], (long long)num_true);
    if (needed > possible) return error_invalid("Sampler's range is too small.");
    for (int64_t i = 0; i < classes->count; i++)
        if (tensor_i64(classes)[i] < 0 || tensor_i64(classes)[i] >= range)
            return error_invalid("`true_candidate` out of range [0, %lld), received %lld", (long long)range, (long long)tensor_i64(classes)[i]);
    return NULL;
}

static Error *run_sampler(KernelContext *k) {
    SamplerState *s = k->state;
    const Tensor *classes = k->in[0];
    Error *err = true_classes_check(classes, s->num_true, s->range, s->unique ? s->num_sampled : 0, s->range);
    if (err) return err;
    Shape shape = shape_vector(s->num_sampled);
    Tensor *out = kernel_output(k, 0, &shape), *true_count = out ? kernel_output(k, 1, &classes->shape) : NULL;
    Tensor *count = true_count ? kernel_output(k, 2, &shape) : NULL;
    if (!count) return NULL;
    PhiloxStream stream = philox_stream(random_state_reserve(&s->random, 2048 / 4 * (uint64_t)s->num_sampled));
    int64_t tries = draw_all(s, &stream, tensor_i64(out));
    for (int64_t i = 0; i < out->count; i++) tensor_f32(count)[i] = expected(s, tensor_i64(out)[i], tries);
    for (int64_t i = 0; i < classes->count; i++) tensor_f32(true_count)[i] = expected(s, tensor_i64(classes)[i], tries);
    return NULL;
}

typedef struct HitsState {
    int64_t num_true;
} HitsState;

static Error *hits_init(const Node *node, void *state) {
    return node_attr_int(node, "num_true", &((HitsState *)state)->num_true);
}

/* Where a sampled class is also a true one: the row, the position of the sample, and a weight that takes it out. */
static Error *run_accidental_hits(KernelContext *k) {
    const Tensor *classes = k->in[0], *sampled = k->in[1];
    if (classes->shape.rank != 2 || classes->shape.dims[1] != ((const HitsState *)k->state)->num_true)
        return error_invalid("true_candidates must be a batch_size * num_true matrix");
    if (sampled->shape.rank != 1)
        return error_invalid(
            "sampled_candidates must be a vector, which is typically an output from "
            "CandidateSampler");
    int64_t *positions = xcalloc((size_t)sampled->count + 1, sizeof *positions), hits = 0;
    IntMap where = {0};
    for (int64_t i = 0; i < sampled->count; i++) {
        positions[i] = i;
        intmap_put(&where, (uint64_t)tensor_i64(sampled)[i], &positions[i]);
    }
    for (int64_t i = 0; i < classes->count; i++) hits += intmap_get(&where, (uint64_t)tensor_i64(classes)[i]) != NULL;
    Shape shape = shape_vector(hits);
    Tensor *rows = kernel_output(k, 0, &shape), *ids = rows ? kernel_output(k, 1, &shape) : NULL;
    Tensor *weights = ids ? kernel_output(k, 2, &shape) : NULL;
    int64_t n = 0;
    for (int64_t i = 0; weights && i < classes->count; i++) {
        const int64_t *at = intmap_get(&where, (uint64_t)tensor_i64(classes)[i]);
        if (!at) continue;
        tensor_i32(rows)[n] = (int32_t)(i / classes->shape.dims[1]);
        tensor_i64(ids)[n] = *at;
        tensor_f32(weights)[n++] = -FLT_MAX;
    }
    intmap_clear(&where);
    free(positions);
    return NULL;
}

#define STATE \
    .state_size = sizeof(SamplerState), .init = sampler_init, .clear = random_state_clear, .flags = KERNEL_PER_SESSION

const KernelDef candidate_sampler_cpu[] = {
    {"UniformCandidateSampler", .run = run_sampler, STATE},
    {"LogUniformCandidateSampler", .run = run_sampler, STATE},
    {"AllCandidateSampler", .run = run_sampler, STATE},
    {"ComputeAccidentalHits", .run = run_accidental_hits, .state_size = sizeof(HitsState), .init = hits_init},
    {0},
};
