/* initial.c: initial values of variables. */
#include <math.h>

#include "train/graph_internal.h"
#include "train/variable_internal.h"

void rill_graph_seed(RillGraph *g, int64_t seed) {
    g->seed = seed;
    g->next_op_seed = 0;
}

void graph_seeds(RillGraph *g, int64_t *seed, int64_t *seed2) {
    *seed = g->seed;
    *seed2 = g->seed ? ++g->next_op_seed : 0;
}

/* Inputs and outputs of one unit: of a filter, times the size of the window. */
static void fans(const int64_t *dims, int rank, double *in, double *out) {
    double window = 1;
    for (int i = 0; i + 2 < rank; i++) window *= (double)dims[i];
    *in = rank >= 2 ? window * (double)dims[rank - 2] : rank == 1 ? (double)dims[0] : 1;
    *out = rank >= 2 ? window * (double)dims[rank - 1] : *in;
}

static RillTensor filled(RillGraph *g, TF_DataType type, RillTensor shape, double value) {
    return rill_op(g, "Fill", NULL, (RillTensor[]){shape, rill_const_as(g, type, value)}, 2, NULL, 0);
}

/* factor * random + offset */
static RillTensor drawn(RillGraph *g, const char *op, TF_DataType type, RillTensor shape, double factor, double offset) {
    int64_t seed, seed2;
    graph_seeds(g, &seed, &seed2);
    RillTensor x = rill_op(g, op, NULL, &shape, 1, (RillAttr[]){RILL_TYPE("dtype", type), RILL_INT("seed", seed), RILL_INT("seed2", seed2)}, 3);
    if (factor != 1) x = rill_mul(g, x, rill_const_as(g, type, factor));
    return offset == 0 ? x : rill_add(g, x, rill_const_as(g, type, offset));
}

static bool is_float(TF_DataType t) {
    return t == TF_FLOAT || t == TF_DOUBLE || t == TF_HALF || t == TF_BFLOAT16;
}

/* `full`: the dims that decide the scale; a part of a variable is drawn like the whole. */
static RillTensor initial(RillGraph *g, const RillInit *init, TF_DataType type, const int64_t *dims, const int64_t *full, int rank) {
    double in, out, limit = 0.87962566103423978; /* of the standard deviation of a normal cut at two deviations */
    fans(full, rank, &in, &out);
    RillInitKind kind = init->kind;
    if (kind == RILL_INIT_DEFAULT) kind = rank >= 2 && is_float(type) ? RILL_INIT_GLOROT_UNIFORM : RILL_INIT_ZEROS;
    if (kind == RILL_INIT_TENSOR) return init->tensor;
    RillTensor shape = rill_const(g, "shape", TF_INT64, (int64_t[]){rank}, 1, dims);
    double bound;
    switch (kind) {
    case RILL_INIT_ONES: return filled(g, type, shape, 1);
    case RILL_INIT_CONSTANT: return filled(g, type, shape, init->a);
    case RILL_INIT_UNIFORM: return drawn(g, "RandomUniform", type, shape, init->b - init->a, init->a);
    case RILL_INIT_NORMAL: return drawn(g, "RandomStandardNormal", type, shape, init->b, init->a);
    case RILL_INIT_TRUNCATED_NORMAL: return drawn(g, "TruncatedNormal", type, shape, init->b, init->a);
    case RILL_INIT_GLOROT_UNIFORM: bound = sqrt(6 / (in + out)); return drawn(g, "RandomUniform", type, shape, 2 * bound, -bound);
    case RILL_INIT_GLOROT_NORMAL: return drawn(g, "TruncatedNormal", type, shape, sqrt(2 / (in + out)) / limit, 0);
    case RILL_INIT_HE_NORMAL: return drawn(g, "TruncatedNormal", type, shape, sqrt(2 / in) / limit, 0);
    case RILL_INIT_HE_UNIFORM: bound = sqrt(6 / in); return drawn(g, "RandomUniform", type, shape, 2 * bound, -bound);
    default: return filled(g, type, shape, 0);
    }
}

RillTensor rill_initial(RillGraph *g, const RillInit *init, TF_DataType type, const int64_t *dims, int rank) {
    return initial(g, init, type, dims, dims, rank);
}

RillTensor initial_part(RillGraph *g, const RillInit *init, TF_DataType type, const int64_t *full, int rank, int64_t first, int64_t rows) {
    if (rows == (rank ? full[0] : 1)) return initial(g, init, type, full, full, rank);
    int64_t dims[8], begin[8] = {first};
    for (int i = 0; i < rank; i++) dims[i] = i ? full[i] : rows;
    if (init->kind != RILL_INIT_TENSOR) return initial(g, init, type, dims, full, rank);
    RillTensor in[] = {init->tensor, rill_const(g, "begin", TF_INT64, (int64_t[]){rank}, 1, begin), rill_const(g, "size", TF_INT64, (int64_t[]){rank}, 1, dims)};
    return rill_op(g, "Slice", NULL, in, 3, NULL, 0);
}
