/* random_shapes.c: rules of random numbers and samplers. */
#include "shapes/rule_list.h"

static void random_shape(ShapeContext *c) {
    ctx_out(c, 0, ctx_shape_of(c, 0));
}

/* Gamma and Poisson: shape, then that of the parameters. */
static void random_with_parameter(ShapeContext *c, int parameter) {
    PartialShape s = ctx_shape_of(c, 0);
    ctx_out(c, 0, ctx_concat(c, s, c->in[parameter]));
}

static void random_gamma(ShapeContext *c) {
    random_with_parameter(c, 1);
}

static void check_seed(ShapeContext *c, int i) {
    ctx_dim_is(c, ctx_in_rank(c, i, 1).dims[0], 2);
}

static void stateless(ShapeContext *c) {
    PartialShape s = ctx_shape_of(c, 0);
    check_seed(c, 1);
    if (c->in_count == 4) {
        ctx_want_scalar(c, 2);
        ctx_want_scalar(c, 3);
    }
    ctx_out(c, 0, s);
}

static void stateless_v2(ShapeContext *c) {
    PartialShape s = ctx_shape_of(c, 0);
    ctx_dim_is(c, ctx_in_rank(c, 1, 1).dims[0], 1);
    ctx_in_rank(c, 2, 1);
    ctx_want_scalar(c, 3);
    for (int i = 4; i < c->in_count; i++) ctx_want_scalar(c, i);
    ctx_out(c, 0, s);
}

static void stateless_gamma_v2(ShapeContext *c) {
    PartialShape s = ctx_shape_of(c, 0);
    check_seed(c, 1);
    ctx_out(c, 0, s);
}

static void stateful_binomial(ShapeContext *c) {
    ctx_out(c, 0, ctx_shape_of(c, 2));
}

/* The algorithm, then the shape. */
static void stateful(ShapeContext *c) {
    ctx_want_scalar(c, 1);
    ctx_out(c, 0, ctx_shape_of(c, 2));
}

static void stateful_int(ShapeContext *c) {
    ctx_want_scalar(c, 1);
    ctx_want_scalar(c, 3);
    ctx_want_scalar(c, 4);
    ctx_out(c, 0, ctx_shape_of(c, 2));
}

static void stateful_tagged(ShapeContext *c) {
    ctx_out(c, 0, ctx_shape_of(c, 1));
}

/* A scalar when index and max_index are and there is one seed of three numbers; else a vector of as many as any of them has. */
static void index_shuffle(ShapeContext *c) {
    PartialShape index = ctx_rank_at_most(c, c->in[0], 1), most = ctx_rank_at_most(c, c->in[2], 1);
    PartialShape seed = ctx_rank_at_most(c, ctx_rank_at_least(c, c->in[1], 1), 2);
    ctx_dim_is(c, shape_dim(seed, -1), 3);
    int64_t n = DIM_UNKNOWN;
    if (index.rank == 1) n = index.dims[0];
    if (seed.rank == 2) n = ctx_merge_dim(c, n, seed.dims[0]);
    if (most.rank == 1) n = ctx_merge_dim(c, n, most.dims[0]);
    const bool is_scalar = index.rank == 0 && seed.rank == 1 && most.rank == 0, is_vector = index.rank == 1 || seed.rank == 2 || most.rank == 1;
    ctx_out(c, 0, is_scalar ? SHAPE_SCALAR : is_vector ? shape_vector(n) : SHAPE_UNKNOWN);
}

static void stateless_gamma_v3(ShapeContext *c) {
    PartialShape s = ctx_shape_of(c, 0);
    ctx_dim_is(c, ctx_in_rank(c, 1, 1).dims[0], 1);
    ctx_in_rank(c, 2, 1);
    ctx_want_scalar(c, 3);
    ctx_out(c, 0, s);
}

static void multinomial(ShapeContext *c) {
    PartialShape logits = ctx_in_rank(c, 0, 2);
    ctx_want_scalar(c, 1);
    int64_t samples = ctx_dim_of(c, 1);
    if (c->in_count > 2) check_seed(c, 2);
    ctx_out(c, 0, shape_matrix(logits.dims[0], samples));
}

static void candidate_sampler(ShapeContext *c) {
    int64_t sampled = ctx_attr_int(c, "num_sampled"), num_true = ctx_attr_int(c, "num_true");
    PartialShape classes = ctx_in_rank(c, 0, 2);
    ctx_out(c, 0, shape_vector(sampled));
    ctx_out(c, 1, shape_matrix(classes.dims[0], num_true));
    ctx_out(c, 2, shape_vector(sampled));
}

static void accidental_hits(ShapeContext *c) {
    int64_t num_true = ctx_attr_int(c, "num_true");
    ctx_dim_is(c, ctx_in_rank(c, 0, 2).dims[1], num_true);
    ctx_in_rank(c, 1, 1);
    ctx_out_all(c, shape_vector(DIM_UNKNOWN));
}

static void bounded_normal(ShapeContext *c) {
    PartialShape s = ctx_shape_of(c, 0);
    for (int i = 1; i < 5; i++) ctx_rank_at_most(c, c->in[i], 1);
    ctx_out(c, 0, s);
}

static void stateless_bounded_normal(ShapeContext *c) {
    PartialShape s = ctx_shape_of(c, 0), batch = c->in[2];
    check_seed(c, 1);
    for (int i = 3; i < 6; i++) batch = ctx_broadcast(c, batch, c->in[i]);
    ctx_out(c, 0, s);
}

static void sobol(ShapeContext *c) {
    int64_t sizes[] = {DIM_UNKNOWN, DIM_UNKNOWN, DIM_UNKNOWN};
    for (int i = 0; i < 3; i++) {
        ctx_want_scalar(c, i);
        if (!ctx_int(c, i, &sizes[i]) || sizes[i] < 0) sizes[i] = DIM_UNKNOWN;
    }
    ctx_out(c, 0, shape_matrix(sizes[1], sizes[0]));
}

const ShapeRow random_rules[] = {
    {"AllCandidateSampler", candidate_sampler, 0},
    {"ComputeAccidentalHits", accidental_hits, 0},
    {"FixedUnigramCandidateSampler", candidate_sampler, 0},
    {"LearnedUnigramCandidateSampler", candidate_sampler, 0},
    {"LogUniformCandidateSampler", candidate_sampler, 0},
    {"Multinomial", multinomial, 0},
    {"NonDeterministicInts", random_shape, 0},
    {"ParameterizedTruncatedNormal", bounded_normal, 0},
    {"RandomGamma", random_gamma, 0},
    {"RandomGammaGrad", rule_broadcast, 0},
    {"RandomIndexShuffle", index_shuffle, 0},
    {"RandomPoisson", random_gamma, 0},
    {"RandomPoissonV2", random_gamma, 0},
    {"RandomShuffle", rule_same, 0},
    {"RandomStandardNormal", random_shape, 0},
    {"RandomUniform", random_shape, 0},
    {"RandomUniformInt", random_shape, "* [] []"},
    {"StatefulRandomBinomial", stateful_binomial, 0},
    {"StatefulStandardNormal", stateful_tagged, 0},
    {"SobolSample", sobol, 0},
    {"StatefulStandardNormalV2", stateful, 0},
    {"StatefulTruncatedNormal", stateful, 0},
    {"StatefulUniform", stateful, 0},
    {"StatefulUniformFullInt", stateful, 0},
    {"StatefulUniformInt", stateful_int, 0},
    {"StatelessMultinomial", multinomial, 0},
    {"StatelessParameterizedTruncatedNormal", stateless_bounded_normal, 0},
    {"StatelessRandomBinomial", stateless_gamma_v2, 0},
    {"StatelessRandomGammaV2", stateless_gamma_v2, 0},
    {"StatelessRandomGammaV3", stateless_gamma_v3, 0},
    {"StatelessRandomGetAlg", rule_scalar, 0},
    {"StatelessRandomGetKeyCounter", 0, "[2] -> [1] [2]"},
    {"StatelessRandomGetKeyCounterAlg", 0, "[2] -> [1] [2] []"},
    {"StatelessRandomNormal", stateless, 0},
    {"StatelessRandomNormalV2", stateless_v2, 0},
    {"StatelessRandomPoisson", stateless_gamma_v2, 0},
    {"StatelessRandomUniform", stateless, 0},
    {"StatelessRandomUniformFullInt", stateless, 0},
    {"StatelessRandomUniformFullIntV2", stateless_v2, 0},
    {"StatelessRandomUniformInt", stateless, 0},
    {"StatelessRandomUniformIntV2", stateless_v2, 0},
    {"StatelessRandomUniformV2", stateless_v2, 0},
    {"StochasticCastToInt", 0, "S [1] [?] [] -> S"},
    {"StatelessShuffle", 0, "S * * * -> S"},
    {"StatelessTruncatedNormal", stateless, 0},
    {"StatelessTruncatedNormalV2", stateless_v2, 0},
    {"ThreadUnsafeUnigramCandidateSampler", candidate_sampler, 0},
    {"TruncatedNormal", random_shape, 0},
    {"UniformCandidateSampler", candidate_sampler, 0},
    {0},
};
