/* snapshot_reader.c: SnapshotDatasetReader, SnapshotNestedDatasetReader, SnapshotChunkDataset. */
#include "ops/dataset/snapshot_reader.h"

#include <stdlib.h>

#include "base/memory.h"
#include "io/snapshot.h"
#include "ops/op_list.h"

const OpDef dataset_snapshot_reader_ops[] = {
    {"SnapshotDatasetReader", "shard_dir: string, start_index: int64 -> handle: variant",
     "output_types: list(type) >= 1; output_shapes: list(shape) >= 1; compression: string = ''; version: int", 0},
    {"SnapshotNestedDatasetReader", "inputs: N * variant -> handle: variant",
     "output_types: list(type) >= 1; output_shapes: list(shape) >= 1; N: int >= 1", 0},
    {"SnapshotChunkDataset", "chunk_file: string -> handle: variant",
     "output_types: list(type) >= 1; output_shapes: list(shape) >= 1; compression: string = ''", 0},
    {0},
};

typedef struct ShardDataset {
    Dataset base;
    char *path; /* of the folder of a shard, or of one file */
    char *compression;
    int64_t version, first;
    bool is_file;
} ShardDataset;

typedef struct ShardIterator {
    DatasetIterator base;
    SnapshotReader *reader; /* NULL at the end */
    int64_t file;           /* number of the one that is open */
    int64_t given;          /* elements of it */
} ShardIterator;

static Error *open_file(ShardIterator *s) {
    const ShardDataset *d = (const ShardDataset *)s->base.dataset;
    char *path = d->is_file ? xstrdup(d->path) : snapshot_file(d->path, s->file);
    snapshot_reader_close(s->reader);
    s->reader = NULL;
    s->given = 0;
    Error *err = NULL;
    if (s->file == 0 || (!d->is_file && file_system_local.exists(path)))
        err = snapshot_reader_open(&file_system_local, path, str_of(d->compression), d->version, d->base.types,
                                   d->base.component_count, &s->reader);
    free(path);
    return err;
}

static Error *next_in_shard(DatasetIterator *it, IteratorContext *c, Tensor **out, bool *end) {
    ShardIterator *s = (ShardIterator *)it;
    (void)c;
    while (s->reader) {
        bool more = false;
        Error *err = snapshot_reader_next(s->reader, out, &more);
        if (err) return err;
        s->given += more;
        if (more) return NULL;
        s->file++;
        err = open_file(s);
        if (err) return err;
    }
    *end = true;
    return NULL;
}

Error *iterator_skip(DatasetIterator *it, IteratorContext *c, int64_t count) {
    int n = it->dataset->component_count;
    Tensor **element = tuple_new(n);
    Error *err = NULL;
    for (bool end = false; !err && !end && count > 0; count--) {
        err = iterator_next(it, c, element, &end);
        tuple_clear(element, n);
    }
    tuple_free(element, n);
    return err;
}

static Error *start_shard(DatasetIterator *it, IteratorContext *c) {
    Error *err = open_file((ShardIterator *)it);
    return err ? err : iterator_skip(it, c, ((ShardDataset *)it->dataset)->first);
}

static void stop_shard(DatasetIterator *it) {
    snapshot_reader_close(((ShardIterator *)it)->reader);
}

static Error *save_shard(DatasetIterator *it, IteratorState *s) {
    state_put_int(s, ((ShardIterator *)it)->file);
    state_put_int(s, ((ShardIterator *)it)->given);
    return NULL;
}

static Error *restore_shard(DatasetIterator *it, IteratorContext *c, IteratorState *s) {
    ShardIterator *i = (ShardIterator *)it;
    int64_t given = 0;
    Error *err = state_get_range(s, 0, INT64_MAX - 1, &i->file);
    if (!err) err = state_get_range(s, 0, INT64_MAX, &given);
    if (!err) err = open_file(i);
    return err ? err : iterator_skip(it, c, given);
}

static void destroy_shard(Dataset *d) {
    free(((ShardDataset *)d)->path);
    free(((ShardDataset *)d)->compression);
}

#define SHARD(kind_name)                                                                                           \
    {                                                                                                              \
        .name = kind_name, .size = sizeof(ShardDataset), .iterator_size = sizeof(ShardIterator),                   \
        .destroy = destroy_shard, .start = start_shard, .next = next_in_shard, .save = save_shard,                 \
        .restore = restore_shard, .stop = stop_shard                                                               \
    }
static const DatasetKind shard_kind = SHARD("SnapshotDatasetReader");
static const DatasetKind chunk_kind = SHARD("SnapshotChunk");

Dataset *shard_dataset_new(const char *shard_dir, const char *compression, int64_t version, const DataType *types,
                           int count, int64_t first) {
    ShardDataset *d = (ShardDataset *)dataset_new(&shard_kind, types, count, NULL, 0);
    d->path = xstrdup(shard_dir);
    d->compression = xstrdup(compression);
    d->version = version;
    d->first = first;
    return &d->base;
}

/* ---- A dataset of datasets ---- */

typedef struct NestedIterator {
    DatasetIterator base;
    int64_t at;
} NestedIterator;

static Error *next_dataset(DatasetIterator *it, IteratorContext *c, Tensor **out, bool *end) {
    NestedIterator *n = (NestedIterator *)it;
    (void)c;
    *end = n->at >= it->dataset->input_count;
    return *end ? NULL : dataset_tensor(it->dataset->inputs[n->at++], &out[0]);
}

static Error *save_nested(DatasetIterator *it, IteratorState *s) {
    state_put_int(s, ((NestedIterator *)it)->at);
    return NULL;
}

static Error *restore_nested(DatasetIterator *it, IteratorContext *c, IteratorState *s) {
    (void)c;
    return state_get_range(s, 0, it->dataset->input_count, &((NestedIterator *)it)->at);
}

static int64_t count_nested(const Dataset *d) {
    return d->input_count;
}

static const DatasetKind nested_kind = {.name = "SnapshotNestedDatasetReader",
                                        .iterator_size = sizeof(NestedIterator),
                                        .cardinality = count_nested,
                                        .next = next_dataset,
                                        .save = save_nested,
                                        .restore = restore_nested};

static Dataset *nested_new(Dataset *const *inputs, int count) {
    DataType types[] = {DT_VARIANT};
    return dataset_new(&nested_kind, types, 1, inputs, count);
}

Error *snapshot_read_run(const char *run_dir, const char *compression, int64_t version, const DataType *types, int count,
                         Closure *reader_func, IteratorContext *c, DatasetIterator **out) {
    PathList dirs = {0};
    Error *err = snapshot_shards(&file_system_local, run_dir, &dirs);
    if (err) return err;
    Dataset **shards = xcalloc(dirs.count + 1, sizeof *shards), *result = NULL;
    for (size_t i = 0; i < dirs.count; i++)
        shards[i] = shard_dataset_new(dirs.items[i], compression, version, types, count, 0);
    Dataset *nested = nested_new(shards, (int)dirs.count);
    Tensor *arg = NULL, *returned = NULL;
    err = dataset_tensor(nested, &arg);
    if (!err) err = dataset_call(reader_func, c, &arg, 1, NULL, 1, &returned);
    if (!err) err = tensor_dataset(returned, &result);
    bool same = !err && result->component_count == count;
    for (int i = 0; same && i < count; i++) same = result->types[i] == types[i];
    if (!err && !same) err = error_invalid("The dataset that `reader_func` returns has elements of other types");
    if (!err) err = dataset_iterate(result, c, out);
    tensor_unref(arg);
    tensor_unref(returned);
    dataset_unref(nested);
    for (size_t i = 0; i < dirs.count; i++) dataset_unref(shards[i]);
    free(shards);
    path_list_clear(&dirs);
    return err;
}

/* ---- Kernels ---- */

static Error *make(KernelContext *k, const DatasetKind *kind, int64_t version, int64_t first) {
    Str path = STR(""), compression = STR("");
    Dataset *d = NULL;
    Error *err = kernel_string(k, 0, kind == &chunk_kind ? "chunk_file" : "shard_dir", &path);
    if (!err) err = node_attr_string(k->node, "compression", &compression);
    if (!err) err = dataset_from_attr(k, kind, "output_types", NULL, 0, &d);
    if (err) return err;
    ShardDataset *s = (ShardDataset *)d;
    s->path = str_dup(path);
    s->compression = str_dup(compression);
    s->version = version;
    s->first = first;
    s->is_file = kind == &chunk_kind;
    kernel_set_dataset(k, 0, d);
    return NULL;
}

static Error *run_reader(KernelContext *k) {
    int64_t version = 0, first = 0;
    Error *err = node_attr_int(k->node, "version", &version);
    if (!err) err = kernel_int64(k, 1, "start_index", &first);
    return err ? err : make(k, &shard_kind, version, first);
}

static Error *run_chunk(KernelContext *k) {
    return make(k, &chunk_kind, SNAPSHOT_VERSION_RECORDS, 0);
}

static Error *run_nested(KernelContext *k) {
    Dataset **inputs = xcalloc((size_t)k->input_count + 1, sizeof *inputs);
    Error *err = NULL;
    for (int i = 0; !err && i < k->input_count; i++) err = kernel_dataset(k, i, &inputs[i]);
    if (!err) kernel_set_dataset(k, 0, nested_new(inputs, k->input_count));
    free(inputs);
    return err;
}

const KernelDef dataset_snapshot_reader_cpu[] = {
    {"SnapshotDatasetReader", .run = run_reader},
    {"SnapshotNestedDatasetReader", .run = run_nested},
    {"SnapshotChunkDataset", .run = run_chunk},
    {0},
};
