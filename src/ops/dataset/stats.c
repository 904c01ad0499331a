/* stats.c: aggregators of statistics of datasets, of which TensorFlow 2 keeps the ops and gathers nothing. */
#include <stdlib.h>

#include "base/memory.h"
#include "ops/dataset/dataset.h"
#include "ops/op_list.h"

#define HANDLE(name) {name, "-> handle: resource", "container: string = ''; shared_name: string = ''", OP_STATEFUL}
#define SUMMARY(name) {name, "iterator: resource -> summary: string", "", OP_STATEFUL}
#define SET(name)                                                                                                              \
    {name, "input_dataset: variant, stats_aggregator: resource, tag: string, counter_prefix: string -> handle: variant",       \
     "output_types: list(type) >= 1; output_shapes: list(shape) >= 1", OP_STATEFUL}

const OpDef dataset_stats_ops[] = {
    HANDLE("StatsAggregatorHandle"),
    HANDLE("StatsAggregatorHandleV2"),
    HANDLE("ExperimentalStatsAggregatorHandle"),
    SUMMARY("StatsAggregatorSummary"),
    SUMMARY("ExperimentalStatsAggregatorSummary"),
    SET("SetStatsAggregatorDataset"),
    SET("ExperimentalSetStatsAggregatorDataset"),
    {"StatsAggregatorSetSummaryWriter", "stats_aggregator: resource, summary: resource ->", "", OP_STATEFUL},
    {0},
};

static void destroy(Resource *r) {
    free(r);
}

static const ResourceType aggregator_type = {.type_name = "N10tensorflow4data12_GLOBAL__N_123StatsAggregatorResourceE", .what = "stats aggregator", .destroy = destroy};

static Error *create(KernelContext *k, Str name, Resource **out) {
    (void)k;
    (void)name;
    *out = xcalloc(1, sizeof **out);
    resource_init(*out, &aggregator_type);
    return NULL;
}

static Error *run_handle(KernelContext *k) {
    return kernel_own_resource(k, &aggregator_type, false, create, NULL);
}

static Error *check_aggregator(KernelContext *k, int i) {
    Resource *r = NULL;
    Error *err = kernel_resource(k, i, &aggregator_type, &r);
    if (!err) resource_unref(r);
    return err;
}

static Error *run_summary(KernelContext *k) {
    Error *err = check_aggregator(k, 0);
    if (!err) kernel_set_output(k, 0, tensor_scalar_str(STR("")));
    return err;
}

static Error *run_set(KernelContext *k) {
    Dataset *in = NULL;
    Str text;
    Error *err = kernel_dataset(k, 0, &in);
    if (!err) err = check_aggregator(k, 1);
    if (!err) err = kernel_string(k, 2, "tag", &text);
    if (!err) err = kernel_string(k, 3, "counter_prefix", &text);
    if (!err) kernel_set_output(k, 0, tensor_ref(k->in[0]));
    return err;
}

static Error *run_set_writer(KernelContext *k) {
    return check_aggregator(k, 0);
}

const KernelDef dataset_stats_cpu[] = {
    {"StatsAggregatorHandle", .run = run_handle},
    {"StatsAggregatorHandleV2", .run = run_handle},
    {"ExperimentalStatsAggregatorHandle", .run = run_handle},
    {"StatsAggregatorSummary", .run = run_summary},
    {"ExperimentalStatsAggregatorSummary", .run = run_summary},
    {"SetStatsAggregatorDataset", .run = run_set},
    {"ExperimentalSetStatsAggregatorDataset", .run = run_set},
    {"StatsAggregatorSetSummaryWriter", .run = run_set_writer},
    {0},
};
