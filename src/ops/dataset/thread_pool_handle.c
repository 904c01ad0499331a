/* thread_pool_handle.c: ThreadPoolHandle and ThreadPoolDataset: a dataset that asks for threads of its own.

   Functions of datasets run on the pools of the task, however many threads a dataset names: the handle is checked and the
   dataset is its input. */
#include <stdlib.h>

#include "base/memory.h"
#include "ops/dataset/dataset.h"
#include "ops/op_list.h"

const OpDef dataset_thread_pool_ops[] = {
    {"ThreadPoolDataset", "input_dataset: variant, thread_pool: resource -> handle: variant",
     "output_types: list(type) >= 1; output_shapes: list(shape) >= 1", OP_STATEFUL},
    {"ThreadPoolHandle", "-> handle: resource",
     "num_threads: int; max_intra_op_parallelism: int = 1; display_name: string; container: string = ''; shared_name: "
     "string = ''",
     OP_STATEFUL},
    {"ExperimentalThreadPoolDataset", "input_dataset: variant, thread_pool: resource -> handle: variant",
     "output_types: list(type) >= 1; output_shapes: list(shape) >= 1", OP_STATEFUL},
    {"ExperimentalThreadPoolHandle", "-> handle: resource",
     "num_threads: int; max_intra_op_parallelism: int = 1; display_name: string; container: string = ''; shared_name: "
     "string = ''",
     OP_STATEFUL},
    {0},
};

static void destroy_pool(Resource *r) {
    free(r);
}

static const ResourceType thread_pool_type = {
    .type_name = "N10tensorflow4data12experimental12_GLOBAL__N_118ThreadPoolResourceE",
    .what = "thread pool",
    .destroy = destroy_pool};

static Error *create_pool(KernelContext *k, Str name, Resource **out) {
    (void)k;
    (void)name;
    *out = xcalloc(1, sizeof **out);
    resource_init(*out, &thread_pool_type);
    return NULL;
}

static Error *run_handle(KernelContext *k) {
    return kernel_own_resource(k, &thread_pool_type, false, create_pool, NULL);
}

static Error *run_dataset(KernelContext *k) {
    Dataset *in = NULL;
    Resource *pool = NULL;
    Error *err = kernel_dataset(k, 0, &in);
    if (!err) err = kernel_resource(k, 1, &thread_pool_type, &pool);
    if (err) return err;
    resource_unref(pool);
    kernel_set_output(k, 0, tensor_ref(k->in[0]));
    return NULL;
}

const KernelDef dataset_thread_pool_cpu[] = {
    {"ThreadPoolDataset", .run = run_dataset},
    {"ThreadPoolHandle", .run = run_handle},
    {"ExperimentalThreadPoolDataset", .run = run_dataset},
    {"ExperimentalThreadPoolHandle", .run = run_handle},
    {0},
};
