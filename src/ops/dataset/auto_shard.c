/* auto_shard.c: AutoShardDataset: a worker's share of a dataset, whole files where it is made of files, else single elements.

   To share out files, the pipeline is made once more from its ops, with a shard of the names before the function that reads them. */
#include <stdlib.h>

#include "base/memory.h"
#include "ops/dataset/dataset.h"
#include "ops/dataset/dataset_origin.h"
#include "ops/dataset/shard.h"
#include "ops/op_list.h"

const OpDef dataset_auto_shard_ops[] = {
    {"AutoShardDataset", "input_dataset: variant, num_workers: int64, index: int64 -> handle: variant",
     "auto_shard_policy: int = 0; output_types: list(type) >= 1; output_shapes: list(shape) >= 1; num_replicas: int = 0", 0},
    {"ExperimentalAutoShardDataset", "input_dataset: variant, num_workers: int64, index: int64 -> handle: variant",
     "auto_shard_policy: int = 0; output_types: list(type) >= 1; output_shapes: list(shape) >= 1", 0},
    {0},
};

enum { SHARD_OFF = -1, SHARD_AUTO = 0, SHARD_FILE = 1, SHARD_HINT = 3 };

typedef struct Share {
    int64_t workers, index;
} Share;

static const char *const readers[] = {"ArrayRecordDataset", "FixedLengthRecordDataset", "TextLineDataset", "TFRecordDataset", NULL};
/* Through these TensorFlow looks for files, in their only input or in all of them. */
static const char *const passed[] = {"AssertCardinalityDataset", "BatchDataset",          "CacheDataset",     "ConcatenateDataset",      "ExperimentalMapAndBatchDataset", "ExperimentalRebatchDataset",
                                     "FilterDataset",            "MapAndBatchDataset",    "MapDataset",       "PaddedBatchDataset",      "ParallelBatchDataset",           "ParallelMapDataset",
                                     "ParseExampleDataset",      "PrefetchDataset",       "RebatchDataset",   "RepeatDataset",           "ShardDataset",                   "ShuffleAndRepeatDataset",
                                     "ShuffleDataset",           "SkipDataset",           "TakeDataset",      "UnbatchDataset",          "ZipDataset",                     NULL};

/* Any version counts. */
static bool is_among(Str op, const char *const *names) {
    for (; *names; names++) {
        Str name = str_of(*names);
        if (str_starts(op, name) && (op.len == name.len || op.ptr[name.len] == 'V')) return true;
    }
    return false;
}

static Error *refuse_readers(Str op) {
    return is_among(op, readers) ? error_invalid("it reads files") : NULL;
}

static bool reads_files(const Dataset *d) {
    Error *found = dataset_origin_visit(d, refuse_readers);
    error_free(found);
    return found != NULL;
}

/* The shard of a dataset of names; one that is shuffled is shared out before: workers would shuffle it differently. */
static Error *shard_names(KernelContext *k, Dataset *names, Share share, Dataset **out) {
    if (!str_starts(dataset_origin_op(names), STR("Shuffle")) || names->input_count != 1) {
        *out = every_nth_dataset_new(names, share.workers, share.index, true);
        return NULL;
    }
    Dataset *part = NULL;
    Error *err = shard_names(k, names->inputs[0], share, &part);
    if (!err) err = dataset_origin_remake(k, names, &part, out);
    dataset_unref(part);
    return err;
}

/* The dataset with its files shared out; NotFound when it has a source that is not of files. */
static Error *shard_files(KernelContext *k, Dataset *d, Share share, Dataset **out) {
    if (d->input_count == 0) return error_new(CODE_NOT_FOUND, "Found an unshardable source dataset: op: \"%.*s\"", STR_ARG(dataset_origin_op(d)));
    bool reads = reads_files(d);
    if (!reads && !is_among(dataset_origin_op(d), passed))
        return error_new(CODE_NOT_FOUND, "Did not find a shardable source, walked to a node which is not a dataset: op: \"%.*s\". Consider either turning off auto-sharding or switching the "
                         "auto_shard_policy to DATA to shard this dataset.", STR_ARG(dataset_origin_op(d)));
    Dataset **parts = xcalloc((size_t)d->input_count, sizeof *parts);
    Error *err = NULL;
    if (reads)
        err = shard_names(k, d->inputs[0], share, &parts[0]);
    else
        for (int i = 0; !err && i < d->input_count; i++) err = shard_files(k, d->inputs[i], share, &parts[i]);
    if (!err) err = dataset_origin_remake(k, d, parts, out);
    for (int i = 0; i < d->input_count; i++)
        if (parts[i]) dataset_unref(parts[i]);
    free(parts);
    return err;
}

static Error *run_auto_shard(KernelContext *k) {
    Dataset *in = NULL, *made = NULL;
    Share share = {0};
    int64_t policy = 0;
    Error *err = kernel_dataset(k, 0, &in);
    if (!err) err = kernel_int64(k, 1, "num_workers", &share.workers);
    if (!err && share.workers <= 0) err = error_invalid("num_workers must be greater than zero.");
    if (!err) err = kernel_int64(k, 2, "index", &share.index);
    if (!err && (share.index < 0 || share.index >= share.workers)) err = error_invalid("index must be between 0 and %lld", (long long)share.workers - 1);
    if (!err) err = node_attr_int(k->node, "auto_shard_policy", &policy);
    if (err) return err;
    if (policy == SHARD_OFF || policy == SHARD_HINT || share.workers == 1) {
        kernel_set_output(k, 0, tensor_ref(k->in[0]));
        return NULL;
    }
    if (policy == SHARD_AUTO || policy == SHARD_FILE) err = shard_files(k, in, share, &made);
    if (err && policy == SHARD_FILE) return err;
    error_free(err);
    kernel_set_dataset(k, 0, made ? made : every_nth_dataset_new(in, share.workers, share.index, false));
    return NULL;
}

const KernelDef dataset_auto_shard_cpu[] = {
    {"AutoShardDataset", .run = run_auto_shard},
    {"ExperimentalAutoShardDataset", .run = run_auto_shard},
    {0},
};
