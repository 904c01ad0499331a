/* parse_shapes.c: rules of tf.Example and serialised tensors. */
#include "base/memory.h"

#include <stdlib.h>

#include "shapes/rule_list.h"

/* Where the outputs of a parsing op stand: taken one group after the other. */
typedef struct Outputs {
    ShapeContext *c;
    int at;
} Outputs;

static void give(Outputs *o, int count, PartialShape s) {
    for (int i = 0; i < count; i++) ctx_out(o->c, o->at++, s);
}

/* Sparse features: indices [?,rank], values [?], shapes [rank]. */
static void give_sparse(Outputs *o, int count, int rank) {
    give(o, count, shape_matrix(DIM_UNKNOWN, rank));
    give(o, count, shape_vector(DIM_UNKNOWN));
    give(o, count, shape_vector(rank));
}

/* Dense features: `prefix`, then each as the attribute says. */
static void give_dense(Outputs *o, const char *attr, int count, PartialShape prefix) {
    PartialShape *shapes = xcalloc((size_t)count + 1, sizeof *shapes);
    int found = ctx_attr_shapes(o->c, attr, shapes, count);
    if (found != count) ctx_fail(o->c, "len(%s) != %d", attr, count);
    for (int i = 0; i < count; i++) {
        PartialShape s = i < found ? shapes[i] : SHAPE_UNKNOWN;
        /* A first dimension that is not known is padded to the longest of the batch. */
        ctx_out(o->c, o->at++, ctx_concat(o->c, prefix, s));
    }
    free(shapes);
}

static int list_size(ShapeContext *c, const char *name) {
    Str value;
    int n = node_attr(c->node, name, &value) ? attr_list_types(value, NULL, 0) : 0;
    return n < 0 ? 0 : n;
}

static void parse_example(ShapeContext *c) {
    Outputs o = {c, 0};
    PartialShape in = ctx_in_rank(c, 0, 1);
    ctx_in_rank(c, 1, 1);
    int sparse = (int)ctx_attr_int(c, "Nsparse"), dense = (int)ctx_attr_int(c, "Ndense");
    if (sparse != list_size(c, "sparse_types")) ctx_fail(c, "len(sparse_keys) != len(sparse_types)");
    if (dense != list_size(c, "Tdense")) ctx_fail(c, "len(dense_keys) != len(dense_types)");
    if (c->err) return;
    give_sparse(&o, sparse, 2);
    give_dense(&o, "dense_shapes", dense, in);
}

static void parse_example_v2(ShapeContext *c) {
    Outputs o = {c, 0};
    PartialShape in = c->in[0];
    if (in.rank > 1) ctx_fail(c, "Shape must be at most rank 1 but is rank %d", in.rank);
    PartialShape names = c->in[1];
    if (names.rank > 1) ctx_fail(c, "Shape must be at most rank 1 but is rank %d", names.rank);
    int sparse = (int)ctx_attr_int(c, "num_sparse"), dense = list_size(c, "Tdense"), ragged = list_size(c, "ragged_value_types");
    if (sparse != list_size(c, "sparse_types")) ctx_fail(c, "len(sparse_keys) != len(sparse_types)");
    if (ragged != list_size(c, "ragged_split_types")) ctx_fail(c, "len(ragged_value_types) != len(ragged_split_types)");
    if (c->err) return;
    int rank = in.rank < 0 ? DIM_UNKNOWN : in.rank + 1;
    give_sparse(&o, sparse, rank);
    give_dense(&o, "dense_shapes", dense, in);
    give(&o, ragged, shape_vector(DIM_UNKNOWN));
    give(&o, ragged, shape_vector(in.rank == 1 ? ctx_dim_add(c, in.dims[0], 1) : DIM_UNKNOWN));
}

static void parse_single_example(ShapeContext *c) {
    Outputs o = {c, 0};
    ctx_want_scalar(c, 0);
    int sparse = (int)ctx_attr_int(c, "num_sparse"), dense = list_size(c, "Tdense");
    if (sparse != list_size(c, "sparse_types")) ctx_fail(c, "num_sparse and sparse_types must have the same length");
    if (c->err) return;
    give_sparse(&o, sparse, 1);
    give_dense(&o, "dense_shapes", dense, SHAPE_SCALAR);
}

/* The context and the feature lists of a sequence; `batch` is the shape of the batch. */
static void parse_sequence(ShapeContext *c, PartialShape batch, bool is_batch, bool has_ragged, bool has_lengths) {
    Outputs o = {c, 0};
    int64_t dense = list_size(c, "Tcontext_dense"), sparse = ctx_attr_int(c, "Ncontext_sparse");
    int64_t list_sparse = ctx_attr_int(c, "Nfeature_list_sparse"), list_dense = ctx_attr_int(c, "Nfeature_list_dense");
    int sparse_rank = batch.rank < 0 ? DIM_UNKNOWN : is_batch ? 2 : 1;
    if (sparse != list_size(c, "context_sparse_types") || list_sparse != list_size(c, "feature_list_sparse_types") ||
        list_dense != list_size(c, "feature_list_dense_types"))
        ctx_fail(c, "The numbers of features and of their types differ");
    if (has_ragged && (list_size(c, "context_ragged_value_types") != list_size(c, "context_ragged_split_types") ||
                       list_size(c, "feature_list_ragged_value_types") != list_size(c, "feature_list_ragged_split_types")))
        ctx_fail(c, "The numbers of types of ragged values and of their splits differ");
    if (c->err) return;
    PartialShape rows = ctx_concat(c, batch, shape_vector(DIM_UNKNOWN));
    give_sparse(&o, (int)sparse, sparse_rank);
    give_dense(&o, "context_dense_shapes", (int)dense, batch);
    if (has_ragged) {
        int ragged = list_size(c, "context_ragged_value_types");
        give(&o, ragged, shape_vector(DIM_UNKNOWN));
        give(&o, ragged, shape_vector(is_batch && batch.rank == 1 && batch.dims[0] >= 0 ? ctx_dim_add(c, batch.dims[0], 1) : DIM_UNKNOWN));
    }
    give_sparse(&o, (int)list_sparse, sparse_rank < 0 ? DIM_UNKNOWN : sparse_rank + 1);
    give_dense(&o, "feature_list_dense_shapes", (int)list_dense, rows);
    if (has_lengths) give(&o, (int)list_dense, batch);
    if (has_ragged) {
        int ragged = list_size(c, "feature_list_ragged_value_types");
        give(&o, ragged, shape_vector(DIM_UNKNOWN));
        give(&o, ragged, shape_vector(is_batch && batch.rank == 1 && batch.dims[0] >= 0 ? ctx_dim_add(c, batch.dims[0], 1) : DIM_UNKNOWN));
        give(&o, ragged, shape_vector(DIM_UNKNOWN));
    }
}

/* The keys are attributes of the first version: as many as features. */
static void check_keys(ShapeContext *c, const char *keys, const char *number) {
    Str value;
    int found = node_attr(c->node, keys, &value) ? attr_list_strings(value, NULL, 0) : 0;
    if (found != ctx_attr_int(c, number)) ctx_fail(c, "%s (%lld) must match the size of %s (%d)", number, (long long)ctx_attr_int(c, number), keys, found);
}

static void parse_sequence_example(ShapeContext *c) {
    ctx_in_rank(c, 1, 1);
    check_keys(c, "context_sparse_keys", "Ncontext_sparse");
    check_keys(c, "context_dense_keys", "Ncontext_dense");
    check_keys(c, "feature_list_sparse_keys", "Nfeature_list_sparse");
    check_keys(c, "feature_list_dense_keys", "Nfeature_list_dense");
    PartialShape in = ctx_in_rank(c, 0, 1);
    parse_sequence(c, in, true, false, true);
}

static void parse_sequence_example_v2(ShapeContext *c) {
    PartialShape in = ctx_rank_at_most(c, c->in[0], 1);
    ctx_rank_at_most(c, c->in[1], 1);
    parse_sequence(c, in, in.rank != 0, true, true);
}

static void parse_single_sequence_example(ShapeContext *c) {
    ctx_want_scalar(c, 0);
    ctx_in_rank(c, 1, 1);
    parse_sequence(c, SHAPE_SCALAR, false, false, false);
}

/* ---- Sounds ---- */

static int64_t wanted_or_unknown(ShapeContext *c, const char *attr) {
    int64_t n = ctx_attr_int(c, attr);
    if (n >= 0) return n;
    if (n != -1) ctx_fail(c, "%s must be >= 0 or -1, got %lld", attr, (long long)n);
    return DIM_UNKNOWN;
}

static void decode_wav(ShapeContext *c) {
    ctx_want_scalar(c, 0);
    int64_t channels = wanted_or_unknown(c, "desired_channels"), samples = wanted_or_unknown(c, "desired_samples");
    ctx_out(c, 0, shape_matrix(samples, channels));
    ctx_out(c, 1, SHAPE_SCALAR);
}

static void audio_spectrogram(ShapeContext *c) {
    PartialShape in = ctx_in_rank(c, 0, 2);
    int64_t window = ctx_attr_int(c, "window_size"), stride = ctx_attr_int(c, "stride"), length = 1;
    if (window <= 1 || stride <= 0) {
        ctx_fail(c, "window_size must be > 1 and stride > 0, got %lld and %lld", (long long)window, (long long)stride);
        return;
    }
    while (length < window) length *= 2;
    int64_t windows = in.dims[0] < 0 ? DIM_UNKNOWN : in.dims[0] < window ? 0 : 1 + (in.dims[0] - window) / stride;
    ctx_out(c, 0, (PartialShape){3, {in.dims[1], windows, 1 + length / 2}});
}

static void mfcc(ShapeContext *c) {
    PartialShape in = ctx_in_rank(c, 0, 3);
    ctx_want_scalar(c, 1);
    ctx_out(c, 0, (PartialShape){3, {in.dims[0], in.dims[1], ctx_attr_int(c, "dct_coefficient_count")}});
}

/* A row of values, as many as the fullest message has, for each message. */
static void decode_proto(ShapeContext *c) {
    ctx_out(c, 0, ctx_concat(c, c->in[0], shape_vector(c->out_count - 1)));
    for (int i = 1; i < c->out_count; i++) ctx_out(c, i, ctx_concat(c, c->in[0], shape_vector(DIM_UNKNOWN)));
}

static void encode_proto(ShapeContext *c) {
    PartialShape messages = SHAPE_UNKNOWN;
    for (int i = c->in_count - 1; i > 0; i--) messages = ctx_merge(c, ctx_sub(c, ctx_rank_at_least(c, c->in[i], 2), 0, -1), messages);
    ctx_out(c, 0, messages);
}

const ShapeRow parse_rules[] = {
    {"AudioSpectrogram", audio_spectrogram, 0},
    {"DecodeJSONExample", rule_same, 0},
    {"DecodeProtoV2", decode_proto, 0},
    {"DecodeWav", decode_wav, 0},
    {"EncodeProto", encode_proto, 0},
    {"EncodeWav", 0, "[?,?] [] -> []"},
    {"Mfcc", mfcc, 0},
    {"ParseExample", parse_example, 0},
    {"ParseExampleV2", parse_example_v2, 0},
    {"ParseSequenceExample", parse_sequence_example, 0},
    {"ParseSequenceExampleV2", parse_sequence_example_v2, 0},
    {"ParseSingleExample", parse_single_example, 0},
    {"ParseSingleSequenceExample", parse_single_sequence_example, 0},
    {"ParseTensor", rule_unknown, 0},
    {0},
};
