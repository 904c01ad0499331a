/* sdca.c: SdcaOptimizer, SdcaShrinkL1, SdcaFprint: linear models trained by stochastic dual coordinate ascent.

   An example has some of the features of each sparse group (an index, and a value or 1) and a row of each dense group. In turn, in a random
   order, each gets the dual variable that is best for it; the weights of its features follow. */
#include <math.h>
#include <stdlib.h>

#include "base/fingerprint.h"
#include "base/hashmap.h"
#include "base/memory.h"
#include "base/rng.h"
#include "kernels/dual_loss.h"
#include "kernels/random.h"
#include "ops/elements.h"
#include "ops/op_list.h"

#define SDCA_SIGNATURE                                                                                                                         \
    "sparse_example_indices: num_sparse_features * int64, sparse_feature_indices: num_sparse_features * int64, sparse_feature_values: "        \
    "num_sparse_features_with_values * float, dense_features: num_dense_features * float, example_weights: float, example_labels: float, "     \
    "sparse_indices: num_sparse_features * int64, sparse_weights: num_sparse_features * float, dense_weights: num_dense_features * float, "    \
    "example_state_data: float -> out_example_state_data: float, out_delta_sparse_weights: num_sparse_features * float, "                      \
    "out_delta_dense_weights: num_dense_features * float"
#define SDCA_ATTRS(adaptive)                                                                                                                   \
    "loss_type: {'logistic_loss', 'squared_loss', 'hinge_loss', 'smooth_hinge_loss', 'poisson_loss'}; " adaptive                               \
    ": bool = false; num_sparse_features: int >= 0; num_sparse_features_with_values: int >= 0; num_dense_features: int >= 0; l1: float; l2: "  \
    "float; num_loss_partitions: int >= 1; num_inner_iterations: int >= 1"

const OpDef sdca_ops[] = {
    {"SdcaOptimizer", SDCA_SIGNATURE, SDCA_ATTRS("adaptative"), 0},
    {"SdcaOptimizerV2", SDCA_SIGNATURE, SDCA_ATTRS("adaptive"), 0},
    {"SdcaShrinkL1", "weights: Ref(num_features * float) ->", "num_features: int >= 0; l1: float; l2: float", 0},
    {"SdcaFprint", "input: string -> output: int64", "", 0},
    {0},
};

typedef struct SdcaState {
    const DualLoss *loss;
    bool adaptive;
    int64_t sparse, with_values, dense, partitions;
    float l2;
    double shrinkage; /* l1 / l2 */
} SdcaState;

static Error *init_shrinkage(const Node *node, SdcaState *s) {
    float l1 = 0;
    Error *err = node_attr_float(node, "l1", &l1);
    if (!err) err = node_attr_float(node, "l2", &s->l2);
    if (!err) s->shrinkage = l1 / s->l2;
    return err;
}

static Error *init_shrink(const Node *node, void *state) {
    return init_shrinkage(node, state);
}

static Error *init_optimizer(const Node *node, void *state) {
    SdcaState *s = state;
    Str loss = STR("");
    Error *err = node_attr_string(node, "loss_type", &loss);
    if (!err) err = node_attr_bool(node, node_is(node, "SdcaOptimizer") ? "adaptative" : "adaptive", &s->adaptive);
    if (!err) err = node_attr_int(node, "num_sparse_features", &s->sparse);
    if (!err) err = node_attr_int(node, "num_sparse_features_with_values", &s->with_values);
    if (!err) err = node_attr_int(node, "num_dense_features", &s->dense);
    if (!err) err = node_attr_int(node, "num_loss_partitions", &s->partitions);
    if (!err) err = init_shrinkage(node, s);
    if (err) return err;
    s->loss = dual_loss_find(loss);
    if (!s->loss) return error_invalid("Unsupported loss type: %.*s", STR_ARG(loss));
    if (s->sparse + s->dense <= 0) return error_invalid("Requires at least one feature to train.");
    return NULL;
}

/* ---- The batch ---- */

/* A group of sparse features: entry i says that an example has the feature whose weight is slot[i]. */
typedef struct SparseGroup {
    const float *values; /* (optional) of the entries; else they are 1 */
    int64_t *slot, *begin; /* malloced; entries [begin[e], begin[e + 1]) are those of example e */
    const float *weights;
    float *deltas;
} SparseGroup;

typedef struct DenseGroup {
    const float *rows, *weights;
    float *deltas;
    int64_t width;
} DenseGroup;

typedef struct Batch {
    const SdcaState *s;
    int64_t count;
    const float *weights, *labels;
    float *state; /* four numbers of each example: dual variable, primal loss, dual loss, weight */
    SparseGroup *sparse;
    DenseGroup *dense;
    double *norms; /* squared, of the features of each example */
} Batch;

static void batch_clear(Batch *b) {
    for (int64_t i = 0; b->sparse && i < b->s->sparse; i++) {
        free(b->sparse[i].slot);
        free(b->sparse[i].begin);
    }
    free(b->sparse);
    free(b->dense);
    free(b->norms);
}

/* From the index of a feature to where its weight is, plus 1. */
static void map_indices(const Tensor *indices, IntMap *map) {
    for (int64_t i = 0; i < indices->count; i++) intmap_put(map, (uint64_t)tensor_i64(indices)[i], (void *)(intptr_t)(i + 1));
}

static Error *find_slots(SparseGroup *g, const IntMap *map, const Tensor *features, int64_t weight_count, int64_t e) {
    for (int64_t i = g->begin[e]; i < g->begin[e + 1]; i++) {
        int64_t index = tensor_i64(features)[i], slot = (intptr_t)intmap_get(map, (uint64_t)index) - 1;
        if (slot < 0) return error_invalid("Found sparse feature indices out of valid range: %lld", (long long)index);
        if (slot >= weight_count) return error_invalid("sparse_weights has no weight for the feature %lld", (long long)index);
        g->slot[i] = slot;
    }
    return NULL;
}

/* seen[slot] is the last example, plus 1, that had it. */
static Error *sum_squares(const SparseGroup *g, int64_t e, int64_t *seen, double *norm) {
    for (int64_t i = g->begin[e]; i < g->begin[e + 1]; i++) {
        if (seen[g->slot[i]] == e + 1) return error_invalid("Duplicate index in sparse vector.");
        seen[g->slot[i]] = e + 1;
        double value = g->values ? g->values[i] : 1;
        *norm += value * value;
    }
    return NULL;
}

static Error *sparse_group(KernelContext *k, Batch *b, int group, const int *first) {
    SparseGroup *g = &b->sparse[group];
    const Tensor *examples = k->in[first[0] + group], *features = k->in[first[1] + group];
    const Tensor *indices = k->in[first[6] + group], *weights = k->in[first[7] + group];
    const Tensor *values = group < b->s->with_values ? k->in[first[2] + group] : NULL;
    if (examples->count != features->count) return error_invalid("Found mismatched example_indices and feature_indices of %lld and %lld elements", (long long)examples->count, (long long)features->count);
    if (values && values->count < features->count) return error_invalid("There are %lld sparse feature values for %lld features", (long long)values->count, (long long)features->count);
    Tensor *deltas = kernel_output(k, 1 + group, &weights->shape);
    if (!deltas) return NULL;
    memset(deltas->data, 0, tensor_bytes(deltas));
    *g = (SparseGroup){.values = values ? tensor_f32(values) : NULL, .weights = tensor_f32(weights), .deltas = tensor_f32(deltas)};
    g->slot = xmalloc((size_t)(features->count + 1) * sizeof *g->slot);
    g->begin = xmalloc((size_t)(b->count + 1) * sizeof *g->begin);
    int64_t *seen = calloc((size_t)weights->count + 1, sizeof *seen), at = 0;
    IntMap map = {0};
    map_indices(indices, &map);
    Error *err = seen ? NULL : error_new(CODE_RESOURCE_EXHAUSTED, "No memory for %lld weights", (long long)weights->count);
    g->begin[0] = 0;
    for (int64_t e = 0; !err && e < b->count; e++) {
        while (at < examples->count && tensor_i64(examples)[at] == e) at++;
        g->begin[e + 1] = at;
        err = find_slots(g, &map, features, weights->count, e);
        if (!err) err = sum_squares(g, e, seen, &b->norms[e]);
    }
    free(seen);
    intmap_clear(&map);
    return err;
}

static Error *dense_group(KernelContext *k, Batch *b, int group, const int *first) {
    DenseGroup *g = &b->dense[group];
    const Tensor *rows = k->in[first[3] + group], *weights = k->in[first[8] + group];
    if (rows->shape.rank != 2) return error_invalid("Dense features at index %d must be rank 2 but is rank %d", group, rows->shape.rank);
    Tensor *deltas = kernel_output(k, 1 + (int)b->s->sparse + group, &weights->shape);
    if (!deltas) return NULL;
    memset(deltas->data, 0, tensor_bytes(deltas));
    *g = (DenseGroup){tensor_f32(rows), tensor_f32(weights), tensor_f32(deltas), rows->shape.dims[1]};
    if (g->width < 1 || g->width > weights->count) return error_invalid("More dense features than we have parameters for: %lld", (long long)g->width);
    if (g->width < weights->count) return error_invalid("There are %lld dense features for %lld parameters", (long long)g->width, (long long)weights->count);
    if (rows->shape.dims[0] < b->count) return error_invalid("There are dense features of %lld examples, not of %lld", (long long)rows->shape.dims[0], (long long)b->count);
    for (int64_t e = 0; e < b->count; e++) {
        float sum = 0;
        for (int64_t i = 0; i < g->width; i++) sum += g->rows[e * g->width + i] * g->rows[e * g->width + i];
        b->norms[e] += sum;
    }
    return NULL;
}

static Error *batch_init(KernelContext *k, Batch *b) {
    static const char *const names[] = {"sparse_example_indices", "sparse_feature_indices", "sparse_feature_values", "dense_features", "example_weights", "example_labels",
                                        "sparse_indices", "sparse_weights", "dense_weights", "example_state_data"};
    int first[10], count;
    Error *err = NULL;
    for (int i = 0; !err && i < 10; i++) err = node_arg_range(k->node, true, str_of(names[i]), &first[i], &count);
    if (err) return err;
    const Tensor *weights = k->in[first[4]], *labels = k->in[first[5]], *state = k->in[first[9]];
    b->count = weights->count;
    b->weights = tensor_f32(weights);
    b->labels = tensor_f32(labels);
    if (labels->count != b->count) return error_invalid("Expected %lld example labels but got %lld", (long long)b->count, (long long)labels->count);
    b->sparse = xcalloc((size_t)b->s->sparse + 1, sizeof *b->sparse);
    b->dense = xcalloc((size_t)b->s->dense + 1, sizeof *b->dense);
    b->norms = xcalloc((size_t)b->count + 1, sizeof *b->norms);
    for (int i = 0; !err && !k->error && i < b->s->sparse; i++) err = sparse_group(k, b, i, first);
    for (int i = 0; !err && !k->error && i < b->s->dense; i++) err = dense_group(k, b, i, first);
    if (err || k->error) return err;
    if (state->shape.rank != 2) return error_invalid("example_state_data must be rank 2 but is rank %d", state->shape.rank);
    if (state->shape.dims[0] != b->count || state->shape.dims[1] != 4)
        return error_invalid("Expected shape [%lld,4] for example_state_data, got %s", (long long)b->count, shape_text(&state->shape).text);
    Tensor *out = kernel_output_from(k, 0, first[9], &state->shape);
    if (!out) return NULL;
    if (out->data != state->data) memcpy(out->data, state->data, tensor_bytes(out));
    b->state = tensor_f32(out);
    return NULL;
}

/* ---- The model ---- */

static double shrink(double weight, double by) {
    double rest = fabs(weight) - by;
    return rest > 0 ? copysign(rest, weight) : 0;
}

static float shrink_float(float weight, float by) {
    float rest = fabsf(weight) - by;
    return rest > 0 ? copysignf(rest, weight) : 0;
}

/* What the weights say of an example, with the changes so far (as if every partition had made the same) and without them. */
static void predict(const Batch *b, int64_t e, double *wx, double *before) {
    double shrinkage = b->s->shrinkage;
    *wx = *before = 0;
    for (int64_t j = 0; j < b->s->sparse; j++) {
        const SparseGroup *g = &b->sparse[j];
        for (int64_t i = g->begin[e]; i < g->begin[e + 1]; i++) {
            double value = g->values ? g->values[i] : 1;
            float weight = g->weights[g->slot[i]];
            *before += value * shrink(weight, shrinkage);
            *wx += value * shrink(weight + g->deltas[g->slot[i]] * (float)b->s->partitions, shrinkage);
        }
    }
    for (int64_t j = 0; j < b->s->dense; j++) {
        const DenseGroup *g = &b->dense[j];
        float sum = 0, sum_before = 0;
        for (int64_t i = 0; i < g->width; i++) {
            float x = g->rows[e * g->width + i];
            sum_before += x * shrink_float(g->weights[i], (float)shrinkage);
            sum += x * shrink_float(g->weights[i] + g->deltas[i] * (float)b->s->partitions, (float)shrinkage);
        }
        *before += sum_before;
        *wx += sum;
    }
}

static void move_weights(Batch *b, int64_t e, double by) {
    for (int64_t j = 0; j < b->s->sparse; j++) {
        SparseGroup *g = &b->sparse[j];
        for (int64_t i = g->begin[e]; i < g->begin[e + 1]; i++) {
            float *delta = &g->deltas[g->slot[i]];
            *delta = (float)(*delta + (g->values ? g->values[i] : 1) * by);
        }
    }
    for (int64_t j = 0; j < b->s->dense; j++) {
        DenseGroup *g = &b->dense[j];
        for (int64_t i = 0; i < g->width; i++) g->deltas[i] += g->rows[e * g->width + i] * (float)by;
    }
}

static Error *bad_label(const DualLoss *loss, float label) {
    if (loss->labels == LABEL_NOT_NEGATIVE)
        return error_invalid("Only non-negative labels can be used with the Poisson log loss. Found example with label: %g", label);
    return error_invalid("Only labels of 0.0 or 1.0 are supported right now. Found example with label: %g", label);
}

static Error *train_on(Batch *b, int64_t e) {
    const DualLoss *loss = b->s->loss;
    float label = b->labels[e], *state = b->state + 4 * e, weight = b->weights[e];
    if (!dual_loss_label(loss, &label)) return bad_label(loss, label);
    double before = 0;
    DualExample x = {.label = label, .weight = weight, .dual = state[0], .norm = b->norms[e] / b->s->l2, .partitions = (double)b->s->partitions};
    predict(b, e, &x.wx, &before);
    double dual = loss->update(&x);
    move_weights(b, e, (dual - x.dual) * weight / b->s->l2);
    state[0] = (float)dual;
    state[1] = (float)loss->primal_loss(before, label, weight);
    state[2] = (float)loss->dual_loss(x.dual, label, weight);
    state[3] = weight;
    return NULL;
}

/* ---- The order ---- */

static int64_t draw(const double *ends, int64_t n, double at) {
    int64_t low = 0, high = n - 1;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (ends[middle] > at)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* More often those that are far from their best; one that was taken is ten times less likely to be taken again. */
static void order_by_need(Batch *b, PhiloxStream *random, int64_t *order) {
    int64_t n = b->count, taken = 0, *times = xcalloc((size_t)n + 1, sizeof *times);
    double *ends = xmalloc((size_t)(n + 1) * sizeof *ends), sum = 0;
    for (int64_t e = 0; e < n; e++) {
        float label = b->labels[e];
        double wx, before;
        dual_loss_label(b->s->loss, &label);
        predict(b, e, &wx, &before);
        double far = fabs(b->state[4 * e] + b->s->loss->derivative(wx, label, 1));
        double need = b->weights[e] * sqrt(b->norms[e] + b->s->l2 * b->s->loss->smoothness) * far;
        sum += need > 0 && isfinite(need) ? need : 0;
        ends[e] = sum;
    }
    for (int64_t tries = 0; taken < n && tries < n && sum > 0;) {
        int64_t e = draw(ends, n, sum * uniform_float(philox_stream_next(random)));
        if (uniform_float(philox_stream_next(random)) > pow(0.1, (double)times[e])) {
            tries++;
            continue;
        }
        times[e]++;
        order[taken++] = e;
    }
    for (int64_t e = 0; e < n && taken < n; e++)
        if (!times[e]) order[taken++] = e;
    free(times);
    free(ends);
}

static Error *run_optimizer(KernelContext *k) {
    Batch b = {.s = k->state};
    int64_t *order = NULL;
    Error *err = batch_init(k, &b);
    if (!err && !k->error && b.count) {
        PhiloxStream random = philox_stream(philox_from_seeds(rng_entropy(), rng_entropy()));
        order = xmalloc((size_t)b.count * sizeof *order);
        for (int64_t i = 0; i < b.count; i++) order[i] = i;
        if (b.s->adaptive)
            order_by_need(&b, &random, order);
        else
            random_shuffle(random.philox, order, b.count);
        for (int64_t i = 0; !err && i < b.count; i++) err = train_on(&b, order[i]);
    }
    free(order);
    batch_clear(&b);
    return err;
}

static Error *run_shrink(KernelContext *k) {
    const SdcaState *s = k->state;
    for (int i = 0; i < k->input_count; i++) {
        Variable *v = NULL;
        Error *err = kernel_variable(k, i, &v);
        if (err) return err;
        pthread_mutex_lock(&v->mutex);
        err = variable_write_locked(k, i, v, DT_FLOAT);
        for (int64_t j = 0; !err && j < v->value->count; j++) tensor_f32(v->value)[j] = shrink_float(tensor_f32(v->value)[j], (float)s->shrinkage);
        pthread_mutex_unlock(&v->mutex);
        resource_unref(&v->base);
        if (err) return err;
    }
    return NULL;
}

static Error *run_fprint(KernelContext *k) {
    const Tensor *in = k->in[0];
    if (in->shape.rank != 1) return error_invalid("Input must be a vector, got shape %s", shape_text(&in->shape).text);
    Tensor *out = kernel_output(k, 0, &(Shape){.rank = 2, .dims = {in->count, 2}});
    for (int64_t i = 0; out && i < in->count; i++) {
        uint64_t hash[2];
        fingerprint128(tstring_str(&tensor_str(in)[i]), hash);
        tensor_i64(out)[2 * i] = (int64_t)(hash[0] >= 2 ? hash[0] : hash[0] + ~(uint64_t)1); /* tables use 0 and 1 for what is not there */
        tensor_i64(out)[2 * i + 1] = (int64_t)hash[1];
    }
    return NULL;
}

const KernelDef sdca_cpu[] = {
    {"SdcaOptimizer", .run = run_optimizer, .state_size = sizeof(SdcaState), .init = init_optimizer, .flags = KERNEL_EXPENSIVE},
    {"SdcaOptimizerV2", .run = run_optimizer, .state_size = sizeof(SdcaState), .init = init_optimizer, .flags = KERNEL_EXPENSIVE},
    {"SdcaShrinkL1", .run = run_shrink, .state_size = sizeof(SdcaState), .init = init_shrink, .flags = KERNEL_REFS},
    {"SdcaFprint", .run = run_fprint},
    {0},
};
